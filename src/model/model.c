/* model.c: the model table, model objects, and their properties, fields and targets. */
#include "model/model.h"

#include "base/finite.h"
#include "base/text.h"
#include "model/item_rows.h"
#include "model/model_rows.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const lp_model_row *const lp_models[] = {
    &lp_model_attention,   &lp_model_sasrec,   &lp_model_lstm,       &lp_model_gru4rec,   &lp_model_rnn_attention,
    &lp_model_caser,       &lp_model_transrec, &lp_model_rmtpp,      &lp_model_timejoint, &lp_model_markov,
    &lp_model_item_markov, &lp_model_recency,  &lp_model_popularity, &lp_model_majority,  NULL};

const lp_model_row *lp_model_row_find(const char *name)
{
    return lp_find_by_name((const void *const *)lp_models, name);
}

/* ------------------------------------------------------------------------------------------------ models ----- */

static bool copy_fields(lapse_model *model)
{
    lp_model_config *config = &model->config;
    if (config->field_count == 0)
        return true;
    lp_model_field *fields = lp_arena_alloc(&model->arena, (size_t)config->field_count * sizeof *fields);
    bool good = fields != NULL;
    for (int f = 0; good && f < config->field_count; f++) {
        const lp_model_field *from = &config->fields[f];
        fields[f] = *from;
        fields[f].name = lp_arena_text(&model->arena, from->name);
        good = fields[f].name && (from->type == LAPSE_FIELD_NUMBER ||
                                  lp_names_copy(&model->arena, &from->categories, &fields[f].categories));
    }
    config->fields = fields;
    return good;
}

static lapse_status out_of_memory(lapse_error *error)
{
    return lp_fail_memory(error, "a model", sizeof(lapse_model));
}

/* The tensors of the network of times, behind those of the model. */
static bool list_times(lapse_model *model)
{
    for (int i = 0; model->times && i < model->times->tensor_count; i++) {
        lp_tensor tensor = model->times->tensors[i];
        size_t size = sizeof LP_TIMES_PREFIX + strlen(tensor.name);
        char *name = lp_arena_alloc(&model->arena, size);
        if (!name)
            return false;
        snprintf(name, size, "%s%s", LP_TIMES_PREFIX, tensor.name);
        tensor.name = name;
        model->tensors[model->tensor_count++] = tensor;
    }
    return true;
}

/* Builds the network for inference. Its parameters are tensors. */
static lapse_status make_network(lapse_model *model, lapse_error *error)
{
    LP_TRY(lp_network_build(&model->network, &model->config, false, error));
    const lp_graph *graph = &model->network.graph;
    int count = graph->parameter_count + (model->times ? model->times->tensor_count : 0);
    model->parameters = lp_alloc_sparse(graph->parameter_size, sizeof *model->parameters);
    model->tensors = lp_arena_alloc(&model->arena, (size_t)count * sizeof *model->tensors);
    if (!model->parameters || !model->tensors)
        return out_of_memory(error);
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        model->tensors[model->tensor_count++] =
            (lp_tensor){value->name, LP_TENSOR_F32, value->rows, value->cols, model->parameters + value->offset};
    }
    return list_times(model) ? LAPSE_OK : out_of_memory(error);
}

lp_model_config lp_model_times_config(const lp_model_config *config)
{
    lp_model_config times = *config;
    times.of_times = true;
    times.target_time = 1;
    times.output = LP_OUTPUT_SHARED;
    times.loss = times.loss != LP_UNSET && lp_model_samples_items(config) ? LP_LOSS_SAMPLED_SOFTMAX : LP_LOSS_SOFTMAX;
    times.negatives = LP_NEGATIVES_IN_BATCH;
    times.negative_count = 0;
    return times;
}

static lapse_status make_times(lapse_model *model, lapse_error *error)
{
    model->times = lp_alloc(1, sizeof *model->times);
    if (!model->times)
        return out_of_memory(error);
    model->times->config = lp_model_times_config(&model->config);
    model->times->types = model->types;
    return make_network(model->times, error);
}

lapse_status lp_model_drop_times(lapse_model *model, lapse_error *error)
{
    model->tensor_count -= model->times->tensor_count;
    lapse_model_free(model->times);
    model->times = NULL;
    model->config.when = false;
    model->config.censoring = LP_CENSORING_OFF;
    return lp_model_property_set(model, error, "when", "false");
}

const lapse_model *lp_model_of_times(const lapse_model *model)
{
    return model->times ? model->times : lp_network_time(&model->network) ? model : NULL;
}

lapse_status lp_model_new(const lp_model_config *config, const lp_names *types, lapse_model **model, lapse_error *error)
{
    lapse_model *made = lp_alloc(1, sizeof *made);
    if (!made)
        return out_of_memory(error);
    made->config = *config;
    made->split_by = lp_split_rule_find("sequence");
    bool copied = lp_names_copy(&made->arena, types, &made->types) && copy_fields(made);
    lapse_status status = copied ? LAPSE_OK : out_of_memory(error);
    if (status == LAPSE_OK && config->when)
        status = make_times(made, error);
    if (status == LAPSE_OK && lp_model_is_network(config))
        status = make_network(made, error);
    if (status != LAPSE_OK) {
        lapse_model_free(made);
        return status;
    }
    *model = made;
    return LAPSE_OK;
}

void lp_model_divide(lapse_model *model, lapse_comm *comm)
{
    if (lapse_comm_size(comm) == 1 || !lp_model_ranks(&model->config))
        return;
    for (lapse_model *each = model; each; each = each->times) {
        each->divided = comm;
        lp_item_rows_place(&each->network.graph, comm, each->parameters);
    }
}

bool lapse_model_divided(const lapse_model *model)
{
    return model && model->divided;
}

lapse_status lp_model_check_whole(const lapse_model *model, const lapse_comm *comm, lapse_error *error)
{
    if (!model->divided || model->divided == comm)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the item tables of this model are divided among %d ranks, and this call needs whole ones: save the "
                   "model and load it",
                   lp_comm_size(model->divided));
}

const char *lp_model_target_time(const lapse_model *model)
{
    const lp_encoding *encoding = model->network.encoding;
    bool reads = encoding ? encoding->sees_time : model->config.row->reads_time;
    return !reads ? "not used" : lp_model_target_known(&model->config) ? "known" : "unknown";
}

lapse_model *lp_model_share(const lapse_model *model)
{
    lapse_model *shared = (lapse_model *)(uintptr_t)model;
    __atomic_fetch_add(&shared->sharers, 1, __ATOMIC_RELAXED);
    return shared;
}

void lapse_model_free(lapse_model *model)
{
    if (!model || __atomic_fetch_sub(&model->sharers, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (model->program)
        model->program_free(model->program);
    lapse_model_free(model->times);
    lp_graph_clear(&model->network.graph);
    lp_free(model->parameters);
    lp_free(model->history);
    lp_free(model->property_name);
    lp_free(model->property_value);
    lp_arena_clear(&model->arena);
    lp_free(model);
}

lp_tensor *lp_model_tensor_find(const lapse_model *model, const char *name)
{
    for (int i = 0; i < model->tensor_count; i++)
        if (strcmp(model->tensors[i].name, name) == 0)
            return &model->tensors[i];
    return NULL;
}

size_t lp_tensor_bytes(const lp_tensor *tensor)
{
    static const size_t sizes[] = {
        [LP_TENSOR_F32] = 4, [LP_TENSOR_I32] = 4, [LP_TENSOR_U8] = 1, [LP_TENSOR_U64] = 8, [LP_TENSOR_F64] = 8};
    return (size_t)tensor->rows * (size_t)tensor->cols * sizes[tensor->type];
}

double lp_tensor_largest(const lp_tensor *tensor)
{
    size_t count = (size_t)tensor->rows * (size_t)tensor->cols;
    return tensor->type == LP_TENSOR_F32   ? (double)lp_largest_float(tensor->data, count)
           : tensor->type == LP_TENSOR_F64 ? lp_largest_double(tensor->data, count)
                                           : 0;
}

lapse_status lp_model_fail_infinite(const lapse_model *model, lapse_error *error)
{
    const char *name = "";
    double largest = -1;
    for (int i = 0; i < model->tensor_count; i++) {
        double size = lp_tensor_largest(&model->tensors[i]);
        if (size > largest) {
            largest = size;
            name = model->tensors[i].name;
        }
    }
    return lp_fail(error, LAPSE_ERROR_FORMAT,
                   "a prediction of the model is not finite: its parameters are too large, in tensor '%s' up to %g",
                   name, largest);
}

void *lp_model_tensor_add(lapse_model *model, const char *name, lp_tensor_type type, int64_t rows, int64_t cols)
{
    if (!model->tensors)
        model->tensors = lp_arena_alloc(&model->arena, LP_BASELINE_TENSORS * sizeof *model->tensors);
    if (!model->tensors || model->tensor_count == LP_BASELINE_TENSORS)
        return NULL;
    lp_tensor tensor = {lp_arena_text(&model->arena, name), type, rows, cols, NULL};
    tensor.data = lp_arena_alloc(&model->arena, lp_tensor_bytes(&tensor));
    if (!tensor.name || !tensor.data)
        return NULL;
    model->tensors[model->tensor_count++] = tensor;
    return tensor.data;
}

/* -------------------------------------------------------------------------------------------- properties ----- */

static int property_index(const lapse_model *model, const char *name)
{
    for (int i = 0; i < model->property_count; i++)
        if (strcmp(model->property_name[i], name) == 0)
            return i;
    return -1;
}

static bool reserve_property(lapse_model *model)
{
    if (model->property_count < model->property_capacity)
        return true;
    int capacity = model->property_capacity ? 2 * model->property_capacity : 64;
    const char **names = lp_grow(model->property_name, (size_t)capacity, sizeof *names);
    if (!names)
        return false;
    model->property_name = names;
    const char **values = lp_grow(model->property_value, (size_t)capacity, sizeof *values);
    if (!values)
        return false;
    model->property_value = values;
    model->property_capacity = capacity;
    return true;
}

/* value: in the model's arena. */
static bool append_property(lapse_model *model, const char *name, const char *value)
{
    const char *copy = lp_arena_text(&model->arena, name);
    if (!copy || !reserve_property(model))
        return false;
    model->property_name[model->property_count] = copy;
    model->property_value[model->property_count++] = value;
    return true;
}

lapse_status lp_model_property_set(lapse_model *model, lapse_error *error, const char *name, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t size = (size_t)vsnprintf(NULL, 0, format, arguments) + 1;
    char *value = lp_arena_alloc(&model->arena, size);
    if (value)
        vsnprintf(value, size, format, again);
    va_end(again);
    va_end(arguments);
    if (!value)
        return out_of_memory(error);
    int index = property_index(model, name);
    if (index < 0)
        return append_property(model, name, value) ? LAPSE_OK : out_of_memory(error);
    model->property_value[index] = value;
    return LAPSE_OK;
}

lapse_status lp_model_property_append(lapse_model *model, const char *name, const char *value, lapse_error *error)
{
    const char *copy = lp_arena_text(&model->arena, value);
    return copy && append_property(model, name, copy) ? LAPSE_OK : out_of_memory(error);
}

lapse_status lp_model_property_number(lapse_model *model, lapse_error *error, const char *name, double value)
{
    char text[LP_NUMBER_SIZE];
    return lp_model_property_set(model, error, name, "%s", lp_number_text(value, text));
}

const char *lp_model_property_find(const lapse_model *model, const char *name)
{
    int index = property_index(model, name);
    return index < 0 ? NULL : model->property_value[index];
}

bool lapse_model_tensor(const lapse_model *model, int index, lapse_tensor *tensor)
{
    static const lapse_tensor_type types[] = {[LP_TENSOR_F32] = LAPSE_TENSOR_F32,
                                              [LP_TENSOR_I32] = LAPSE_TENSOR_I32,
                                              [LP_TENSOR_U8] = LAPSE_TENSOR_U8,
                                              [LP_TENSOR_U64] = LAPSE_TENSOR_U64,
                                              [LP_TENSOR_F64] = LAPSE_TENSOR_F64};
    if (index < 0 || index >= model->tensor_count)
        return false;
    const lp_tensor *found = &model->tensors[index];
    *tensor = (lapse_tensor){found->name, types[found->type], found->rows, found->cols, found->data};
    return true;
}

bool lapse_model_property(const lapse_model *model, int index, const char **name, const char **value)
{
    if (index < 0 || index >= model->property_count)
        return false;
    *name = model->property_name[index];
    *value = model->property_value[index];
    return true;
}

int64_t lapse_model_event_type_count(const lapse_model *model)
{
    return model->types.count;
}

const char *lapse_model_event_type_name(const lapse_model *model, int64_t type)
{
    return type >= 0 && type < model->types.count ? lp_names_get(&model->types, type) : NULL;
}

int64_t lapse_model_event_type_find(const lapse_model *model, const char *name)
{
    return lp_names_find(&model->types, name);
}

/* ------------------------------------------------------------------------------------ fields and targets ----- */

static const lp_model_field *field_at(const lapse_model *model, int field)
{
    return field >= 0 && field < model->config.field_count ? &model->config.fields[field] : NULL;
}

bool lapse_model_field(const lapse_model *model, int index, lapse_field *field)
{
    const lp_model_field *found = field_at(model, index);
    if (found)
        *field = (lapse_field){found->name, found->type, found->categories.count};
    return found != NULL;
}

const char *lapse_model_category_name(const lapse_model *model, int field, int64_t category)
{
    const lp_model_field *found = field_at(model, field);
    bool exists = found && category >= 0 && category < found->categories.count;
    return exists ? lp_names_get(&found->categories, category) : NULL;
}

int64_t lapse_model_category_find(const lapse_model *model, int field, const char *name)
{
    const lp_model_field *found = field_at(model, field);
    return found ? lp_names_find(&found->categories, name) : -1;
}

/* (number - mean) / deviation, clipped to +-10. */
static float standardize(double number, double mean, double deviation)
{
    return (float)fmin(10, fmax(-10, (number - mean) / deviation));
}

float lp_model_standardize(const lp_model_field *field, double number)
{
    return isnan(number) ? 0 : standardize(number, field->mean, field->deviation);
}

float lp_model_standardize_gap(const lp_gap_scale *scale, double gap)
{
    return isnan(gap) ? NAN : standardize(log(gap + scale->offset), scale->mean, scale->deviation);
}

int lp_model_target_size(const lp_model_config *config, lp_target target)
{
    return target == LP_TARGET_EVENT ? config->event_types : (int)config->fields[0].categories.count;
}

const lp_names *lp_model_target_names(const lapse_model *model, lp_target target)
{
    return target == LP_TARGET_EVENT ? &model->types : &model->config.fields[0].categories;
}

lp_target lp_model_target_find(const lapse_model *model, const char *name)
{
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        if (lp_model_predicts(&model->config, (lp_target)t) && (!name || strcmp(name, lp_predict_names[t]) == 0))
            return (lp_target)t;
    return LP_TARGET_COUNT;
}

const char *lapse_model_target(const lapse_model *model, int index)
{
    for (int t = 0; t < LP_TARGET_COUNT && index >= 0; t++)
        if (lp_model_predicts(&model->config, (lp_target)t) && index-- == 0)
            return lp_predict_names[t];
    return NULL;
}

int64_t lapse_model_target_size(const lapse_model *model, const char *target)
{
    lp_target found = lp_model_target_find(model, target);
    return found == LP_TARGET_COUNT ? 0 : lp_model_target_names(model, found)->count;
}

const char *lapse_model_target_name(const lapse_model *model, const char *target, int64_t number)
{
    lp_target found = lp_model_target_find(model, target);
    const lp_names *names = found == LP_TARGET_COUNT ? NULL : lp_model_target_names(model, found);
    return names && number >= 0 && number < names->count ? lp_names_get(names, number) : NULL;
}
