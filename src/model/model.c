/* model.c: making models, and looking things up in them. */
#include "model/model.h"

#include "base/random.h"
#include "model/model_rows.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const lp_model_row *const lp_models[] = {&lp_model_attention,
                                         &lp_model_markov,
                                         &lp_model_item_markov,
                                         &lp_model_recency,
                                         &lp_model_popularity,
                                         &lp_model_majority,
                                         NULL};

const lp_model_row *lp_model_row_find(const char *name)
{
    for (int i = 0; lp_models[i]; i++)
        if (strcmp(lp_models[i]->name, name) == 0)
            return lp_models[i];
    return NULL;
}

const char *const lp_predict_names[] = {"event", "action", "both", NULL};
const char *const lp_task_names[] = {"classify", "recommend", NULL};
const char *const lp_loss_names[] = {"softmax", "bce", "sampled-softmax", NULL};
const char *const lp_output_names[] = {"shared", "separate", NULL};

/* ---------------------------------------------------------------------------------------------- networks ----- */

/* The losses of all targets, added. */
static lp_value *total_loss(lp_graph *graph, lp_value *const logits[LP_TARGET_COUNT],
                            lp_value *const feeds[LP_FEED_LIMIT])
{
    static const lp_feed wanted[LP_TARGET_COUNT] = {LP_FEED_TARGET, LP_FEED_ACTION};
    lp_value *sum = NULL;
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        if (!logits[t])
            continue;
        lp_value *loss = lp_cross_entropy(graph, logits[t], feeds[wanted[t]]);
        sum = sum ? lp_add(graph, sum, loss) : loss;
    }
    return sum;
}

/* What a recommender learns by. */
static lp_value *ranking_loss(lp_network *network, const lp_model_config *config, lp_value *const feeds[LP_FEED_LIMIT])
{
    lp_graph *graph = &network->graph;
    lp_value *z = network->state, *items = network->items, *bias = network->bias, *target = feeds[LP_FEED_TARGET];
    lp_value *shift = config->loss == LP_LOSS_SAMPLED_SOFTMAX ? feeds[LP_FEED_LOGQ] : NULL;
    if (config->loss != LP_LOSS_BCE)
        return lp_softmax_loss(graph, z, items, bias, shift, target);
    return lp_bce_loss(graph, z, items, bias, target, feeds[LP_FEED_NEGATIVE]);
}

lp_encoding_config lp_model_encoding(const lp_model_config *config)
{
    return (lp_encoding_config){
        .dims = config->dims,
        .context = config->context,
        .periods = config->periods,
        .harmonics = config->harmonics,
        .period_min = config->period_min,
        .period_max = config->period_max,
        .period_init = config->period_init,
        .periods_fixed = config->periods_fixed != 0,
        .inverse_cdf = config->inverse_cdf,
        .hidden = config->hidden,
        .draws = config->draws,
    };
}

/* Into a network that may have its `live` already. */
static lapse_status build_network(lp_network *network, const lp_model_config *config, bool training, lapse_error *error)
{
    lp_graph *graph = &network->graph;
    lapse_field_type types[LP_FIELD_LIMIT];
    lp_value *feeds[LP_FEED_LIMIT];
    for (int f = 0; f < config->field_count; f++)
        types[f] = config->fields[f].type;
    lp_feeds_declare(graph, types, config->field_count, config->loss == LP_LOSS_BCE ? config->negative_count : 0,
                     feeds);
    config->row->build(network, config, training, feeds);
    if (training) {
        network->loss = config->task == LP_TASK_RECOMMEND ? ranking_loss(network, config, feeds)
                                                          : total_loss(graph, network->logits, feeds);
        if (network->loss)
            network->loss->retained = true;
        if (lp_graph_status(graph, NULL) == LAPSE_OK)
            lp_graph_gradients(graph, 1, &network->loss, &feeds[LP_FEED_SEED], NULL);
    }
    for (int t = 0; !training && t < LP_TARGET_COUNT; t++)
        if (network->logits[t])
            network->logits[t]->retained = true;
    if (!training && network->state)
        network->state->retained = true;
    lapse_status status = lp_graph_status(graph, error);
    if (status != LAPSE_OK)
        lp_graph_clear(graph);
    return status;
}

lapse_status lp_network_build(lp_network *network, const lp_model_config *config, bool training, lapse_error *error)
{
    *network = (lp_network){0};
    return build_network(network, config, training, error);
}

lapse_status lp_network_build_decoder(lp_network *network, const lp_model_config *config, int capacity,
                                      lapse_error *error)
{
    *network = (lp_network){0};
    lp_graph *graph = &network->graph;
    lp_decode_state *live = lp_graph_alloc(graph, sizeof *live);
    lp_kv_cache *blocks = lp_graph_alloc(graph, (size_t)config->blocks * sizeof *blocks);
    if (live && blocks) {
        live->blocks = blocks;
        live->capacity = capacity;
        network->live = live;
    }
    return build_network(network, config, false, error);
}

static double sinusoid(int row, int col, int cols)
{
    double angle = row * pow(10000, -(double)(col - col % 2) / cols);
    return col % 2 ? cos(angle) : sin(angle);
}

/* The log of a number whose power is uniform between those of low and high. */
static double log_of_power(lp_random *random, double power, double low, double high)
{
    double a = pow(low, power), b = pow(high, power);
    return log(a + (b - a) * lp_random_uniform(random)) / power;
}

void lp_network_init_parameters(const lp_graph *graph, uint64_t seed, float *parameters)
{
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_parameter *parameter = &graph->parameters[i];
        const lp_value *value = parameter->value;
        float *data = parameters + value->offset;
        lp_random random = lp_random_start(seed, LP_PURPOSE_INIT, (uint32_t)i);
        for (int64_t k = 0; k < (int64_t)value->rows * value->cols; k++) {
            switch (parameter->initializer) {
            case LP_INIT_ZEROS:
                data[k] = 0;
                break;
            case LP_INIT_ONES:
                data[k] = 1;
                break;
            case LP_INIT_UNIFORM:
                data[k] = (float)(parameter->spread * (2 * lp_random_uniform(&random) - 1));
                break;
            case LP_INIT_NORMAL:
                data[k] = (float)(parameter->spread * lp_random_normal(&random));
                break;
            case LP_INIT_VALUES:
                data[k] = (float)parameter->values[k];
                break;
            case LP_INIT_SINUSOID:
                data[k] = (float)sinusoid((int)(k / value->cols), (int)(k % value->cols), value->cols);
                break;
            case LP_INIT_LOG_POWER:
                data[k] = (float)log_of_power(&random, parameter->spread, parameter->values[0], parameter->values[1]);
                break;
            }
        }
    }
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

/* The parameters of the network, as tensors. */
static lapse_status list_parameters(lapse_model *model, lapse_error *error)
{
    const lp_graph *graph = &model->network.graph;
    model->parameters = lp_alloc(graph->parameter_size, sizeof *model->parameters);
    model->tensors = lp_arena_alloc(&model->arena, (size_t)graph->parameter_count * sizeof *model->tensors);
    if (!model->parameters || !model->tensors)
        return out_of_memory(error);
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        model->tensors[model->tensor_count++] =
            (lp_tensor){value->name, LP_TENSOR_F32, value->rows, value->cols, model->parameters + value->offset};
    }
    return LAPSE_OK;
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
    if (status == LAPSE_OK && config->row->build) {
        status = lp_network_build(&made->network, &made->config, false, error);
        if (status == LAPSE_OK)
            status = list_parameters(made, error);
    }
    if (status != LAPSE_OK) {
        lapse_model_free(made);
        return status;
    }
    *model = made;
    return LAPSE_OK;
}

void lapse_model_free(lapse_model *model)
{
    if (!model)
        return;
    lp_graph_clear(&model->network.graph);
    lp_free(model->parameters);
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
    if (index < 0) {
        const char *copy = lp_arena_text(&model->arena, name);
        if (!copy || !reserve_property(model))
            return out_of_memory(error);
        index = model->property_count++;
        model->property_name[index] = copy;
    }
    model->property_value[index] = value;
    return LAPSE_OK;
}

const char *lp_number_text(double value, char text[LP_NUMBER_SIZE])
{
    bool whole = fabs(value) < 1e15 && value == (double)(int64_t)value;
    int digits = whole ? 17 : 1;
    do
        snprintf(text, LP_NUMBER_SIZE, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    const char *point = localeconv()->decimal_point;
    char *found = strstr(text, point);
    if (found) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    }
    return text;
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

float lp_model_standardize(const lp_model_field *field, double number)
{
    if (isnan(number))
        return 0;
    return (float)fmin(10, fmax(-10, (number - field->mean) / field->deviation));
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
