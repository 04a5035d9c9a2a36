#include "model/model_file.h"

#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "lapse-model", FORMAT_VERSION[] = "1";
static const char VOCABULARY[] = "vocabulary.";

enum { KEY_SIZE = 48, TYPES = -1 };

/* Names of the two tensors that hold the event types, or the categories of field 0, 1, ... */
typedef struct vocabulary_names {
    char offsets[KEY_SIZE], bytes[KEY_SIZE];
} vocabulary_names;

static vocabulary_names vocabulary_of(int field)
{
    vocabulary_names names;
    if (field == TYPES)
        snprintf(names.offsets, KEY_SIZE, "%sevent", VOCABULARY);
    else
        snprintf(names.offsets, KEY_SIZE, "%sfield.%d", VOCABULARY, field);
    snprintf(names.bytes, KEY_SIZE, "%.32s.bytes", names.offsets);
    snprintf(names.offsets + strlen(names.offsets), KEY_SIZE - strlen(names.offsets), ".offset");
    return names;
}

/* "field.<f>.<what>" */
typedef struct field_key {
    char text[KEY_SIZE];
} field_key;

static field_key key_of(int field, const char *what)
{
    field_key key;
    snprintf(key.text, sizeof key.text, "field.%d.%s", field, what);
    return key;
}

/* Which models a setting belongs to. */
typedef enum config_owner { ANY_MODEL, NETWORKS, LEARNED_PERIODS, MAPPED_NOISE, SAMPLED, FLOORS } config_owner;

/* The whole numbers and numbers of a configuration: one table for writing and reading. */
typedef struct config_field {
    const char *name;
    size_t offset;
    bool whole;
    config_owner owner;
    double least, most;
} config_field;

#define WHOLE(member, owner, least, most)                                    \
    {                                                                        \
#member, offsetof(lp_model_config, member), true, owner, least, most \
    }
#define NUMBER(member, owner, least, most)                                    \
    {                                                                         \
#member, offsetof(lp_model_config, member), false, owner, least, most \
    }

static const config_field fields[] = {
    WHOLE(event_types, ANY_MODEL, 1, 2e9),
    WHOLE(context, ANY_MODEL, 1, 1e6),
    WHOLE(dims, NETWORKS, 1, 65536),
    WHOLE(blocks, NETWORKS, 1, 64),
    WHOLE(heads, NETWORKS, 1, 64),
    WHOLE(periods, NETWORKS, 0, 1e6),
    WHOLE(harmonics, NETWORKS, 0, 1e6),
    NUMBER(period_min, NETWORKS, 0, 1e300),
    NUMBER(period_max, NETWORKS, 0, 1e300),
    NUMBER(dropout, NETWORKS, 0, 1),
    WHOLE(periods_fixed, LEARNED_PERIODS, 0, 1),
    WHOLE(hidden, MAPPED_NOISE, 1, LP_LARGEST_SAMPLER),
    WHOLE(draws, SAMPLED, 1, 1000),
    WHOLE(order, FLOORS, 0, 3),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields, LARGEST_FREQUENCIES = 1000000 };

static lapse_status describe_fields(lapse_model *model, lapse_error *error)
{
    const lp_model_config *config = &model->config;
    LP_TRY(lp_model_property_set(model, error, "predict", "%s", lp_predict_names[config->predict]));
    LP_TRY(lp_model_property_set(model, error, "fields", "%d", config->field_count));
    for (int f = 0; f < config->field_count; f++) {
        const lp_model_field *field = &config->fields[f];
        LP_TRY(lp_model_property_set(model, error, key_of(f, "name").text, "%s", field->name));
        LP_TRY(lp_model_property_set(model, error, key_of(f, "type").text, "%s", lp_field_type_name(field->type)));
        LP_TRY(lp_model_property_set(model, error, key_of(f, "dims").text, "%d", field->dims));
        if (field->type != LAPSE_FIELD_NUMBER)
            continue;
        LP_TRY(lp_model_property_number(model, error, key_of(f, "mean").text, field->mean));
        LP_TRY(lp_model_property_number(model, error, key_of(f, "deviation").text, field->deviation));
    }
    return LAPSE_OK;
}

static bool field_matters(const config_field *field, const lp_model_config *config)
{
    bool network = config->row->build != NULL;
    const bool matters[] = {
        [ANY_MODEL] = true,
        [NETWORKS] = network,
        [LEARNED_PERIODS] = network && config->encoding->learns_periods,
        [MAPPED_NOISE] = network && config->encoding->maps_noise,
        [SAMPLED] = network && config->encoding->sample,
        [FLOORS] = !network,
    };
    return matters[field->owner];
}

lapse_status lp_model_describe(lapse_model *model, lapse_error *error)
{
    const lp_model_config *config = &model->config;
    LP_TRY(lp_model_property_set(model, error, "format", "%s", FORMAT));
    LP_TRY(lp_model_property_set(model, error, "format.version", "%s", FORMAT_VERSION));
    LP_TRY(lp_model_property_set(model, error, "task", "%s", lp_task_names[config->task]));
    LP_TRY(lp_model_property_set(model, error, "model", "%s", config->row->name));
    if (config->row->build) {
        if (config->task == LP_TASK_RECOMMEND)
            LP_TRY(lp_model_property_set(model, error, "output", "%s", lp_output_names[config->output]));
        LP_TRY(lp_model_property_set(model, error, "encoding", "%s", config->encoding->name));
        LP_TRY(lp_model_property_set(model, error, "projection", "%s", lp_projection_names[config->projection]));
        LP_TRY(lp_model_property_set(model, error, "combine", "%s", lp_combine_names[config->combine]));
        if (config->encoding->sees_time)
            LP_TRY(
                lp_model_property_set(model, error, "lags", lp_model_config_anchored(config) ? "anchored" : "exact"));
        if (config->encoding->learns_periods)
            LP_TRY(lp_model_property_set(model, error, "period_init", "%s", config->period_init->name));
        if (config->encoding->maps_noise)
            LP_TRY(lp_model_property_set(model, error, "inverse_cdf", "%s", config->inverse_cdf->name));
    }
    LP_TRY(lp_model_property_set(model, error, "target_time", "%s", config->target_known ? "known" : "unknown"));
    for (int i = 0; i < FIELD_COUNT; i++) {
        const void *place = (const char *)config + fields[i].offset;
        if (!field_matters(&fields[i], config))
            continue;
        double value = fields[i].whole ? *(const int *)place : *(const double *)place;
        LP_TRY(lp_model_property_number(model, error, fields[i].name, value));
    }
    if (config->row->build)
        LP_TRY(describe_fields(model, error));
    LP_TRY(lp_model_property_set(model, error, "seed", "%llu", (unsigned long long)model->seed));
    LP_TRY(lp_model_property_set(model, error, "split", "%s", lp_split_rule_name(model->split_by)));
    return lp_model_property_set(model, error, "dataset.fingerprint", "%016llx",
                                 (unsigned long long)model->fingerprint);
}

static bool contain_names(lp_container *container, int field, const lp_names *names)
{
    vocabulary_names tensors = vocabulary_of(field);
    const char *offsets = lp_arena_text(&container->arena, tensors.offsets);
    const char *bytes = lp_arena_text(&container->arena, tensors.bytes);
    container->tensors[container->tensor_count++] =
        (lp_tensor){offsets, LP_TENSOR_U64, 1, names->count + 1, (void *)(uintptr_t)names->offset};
    container->tensors[container->tensor_count++] =
        (lp_tensor){bytes, LP_TENSOR_U8, 1, (int64_t)names->offset[names->count], (void *)(uintptr_t)names->bytes};
    return offsets && bytes;
}

lapse_status lp_model_contain(const lapse_model *model, int extra, lp_container *container, lapse_error *error)
{
    const lp_model_config *config = &model->config;
    size_t count = (size_t)(model->tensor_count + 2 + 2 * config->field_count + extra);
    container->tensors = lp_arena_alloc(&container->arena, count * sizeof *container->tensors);
    if (!container->tensors)
        return lp_fail_memory(error, "a model file", count * sizeof *container->tensors);
    memcpy(container->tensors, model->tensors, (size_t)model->tensor_count * sizeof *container->tensors);
    container->tensor_count = model->tensor_count;
    bool good = contain_names(container, TYPES, &model->types);
    for (int f = 0; good && f < config->field_count; f++)
        if (config->fields[f].type != LAPSE_FIELD_NUMBER)
            good = contain_names(container, f, &config->fields[f].categories);
    if (!good)
        return lp_fail_memory(error, "a model file", count * sizeof *container->tensors);
    container->property_name = model->property_name;
    container->property_value = model->property_value;
    container->property_count = model->property_count;
    return LAPSE_OK;
}

lapse_status lapse_model_save(const lapse_model *model, const char *path, lapse_error *error)
{
    lp_container container = {0};
    lapse_status status = lp_model_contain(model, 0, &container, error);
    if (status == LAPSE_OK)
        status = lp_container_save(&container, path, error);
    lp_arena_clear(&container.arena);
    return status;
}

/* ----------------------------------------------------------------------------------------------- reading ----- */

static lapse_status wrong(lapse_error *error, const char *path, const char *name)
{
    return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                      "this is not a Lapse model that can be used: '%s' is missing or wrong", name);
}

static bool parse_field(const lp_container *container, const config_field *field, lp_model_config *config)
{
    const char *text = lp_container_property(container, field->name);
    double value = 0;
    if (!text || !lp_number_parse(text, text + strlen(text), &value) || value < field->least || value > field->most ||
        (field->whole && value != floor(value)))
        return false;
    void *place = (char *)config + field->offset;
    if (field->whole)
        *(int *)place = (int)value;
    else
        *(double *)place = value;
    return true;
}

/* What networks have beyond numbers. */
static lapse_status parse_network(const lp_container *container, const char *path, lp_model_config *config,
                                  lapse_error *error)
{
    const char *encoding = lp_container_property(container, "encoding");
    config->encoding = encoding ? lp_encoding_find(encoding) : NULL;
    if (!config->encoding)
        return wrong(error, path, "encoding");
    int projection = lp_name_index(lp_container_property(container, "projection"), lp_projection_names);
    int combine = lp_name_index(lp_container_property(container, "combine"), lp_combine_names);
    if (projection < 0 || combine < 0)
        return wrong(error, path, projection < 0 ? "projection" : "combine");
    int output = lp_name_index(lp_container_property(container, "output"), lp_output_names);
    if (config->task == LP_TASK_RECOMMEND && output < 0)
        return wrong(error, path, "output");
    config->output = output < 0 ? LP_OUTPUT_SHARED : (lp_output)output;
    config->projection = (lp_projection)projection;
    config->combine = (lp_combine)combine;
    const char *start = lp_container_property(container, "period_init");
    const char *inverse = lp_container_property(container, "inverse_cdf");
    config->period_init = start ? lp_period_init_find(start) : NULL;
    config->inverse_cdf = inverse ? lp_inverse_cdf_find(inverse) : NULL;
    if (config->encoding->learns_periods && !config->period_init)
        return wrong(error, path, "period_init");
    if (config->encoding->maps_noise && !config->inverse_cdf)
        return wrong(error, path, "inverse_cdf");
    return LAPSE_OK;
}

static lapse_status parse_config(const lp_container *container, const char *path, lp_model_config *config,
                                 lapse_error *error)
{
    const char *format = lp_container_property(container, "format");
    const char *version = lp_container_property(container, "format.version");
    if (!format || strcmp(format, FORMAT) != 0)
        return wrong(error, path, "format");
    if (!version || strcmp(version, FORMAT_VERSION) != 0)
        return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                          "this model file has version %s; this Lapse reads version %s", version ? version : "?",
                          FORMAT_VERSION);
    const char *model = lp_container_property(container, "model");
    int task = lp_name_index(lp_container_property(container, "task"), lp_task_names);
    const char *target_time = lp_container_property(container, "target_time");
    if (task < 0)
        return wrong(error, path, "task");
    config->task = (lp_task)task;
    config->row = model ? lp_model_row_find(model) : NULL;
    if (!config->row)
        return wrong(error, path, "model");
    config->encoding = lp_encodings[0];
    config->draws = 1;
    if (config->row->build)
        LP_TRY(parse_network(container, path, config, error));
    if (!target_time || (strcmp(target_time, "known") != 0 && strcmp(target_time, "unknown") != 0))
        return wrong(error, path, "target_time");
    config->target_known = strcmp(target_time, "known") == 0;
    for (int i = 0; i < FIELD_COUNT; i++)
        if (field_matters(&fields[i], config) && !parse_field(container, &fields[i], config))
            return wrong(error, path, fields[i].name);
    if (config->row->build && config->dims % config->heads)
        return wrong(error, path, "heads");
    bool periods = config->periods > 0 && config->period_min > 0 && config->period_max >= config->period_min;
    if (config->row->build && config->encoding->default_periods && !periods)
        return wrong(error, path, "periods");
    if (config->row->build && config->encoding->default_harmonics && config->harmonics < 1)
        return wrong(error, path, "harmonics");
    if (config->encoding->sample && config->periods > LP_LARGEST_SAMPLER)
        return wrong(error, path, "periods");
    if ((int64_t)config->periods * config->harmonics > LARGEST_FREQUENCIES)
        return wrong(error, path, "harmonics");
    return LAPSE_OK;
}

/* A table of names; a copy, since tensors in a file need not be aligned. */
static lapse_status parse_names(const lp_container *container, const char *path, int field, lp_arena *arena,
                                lp_names *names, lapse_error *error)
{
    vocabulary_names tensors = vocabulary_of(field);
    const lp_tensor *offsets = lp_container_tensor(container, tensors.offsets);
    const lp_tensor *bytes = lp_container_tensor(container, tensors.bytes);
    if (!offsets || offsets->type != LP_TENSOR_U64 || offsets->rows != 1 || offsets->cols < 2 ||
        offsets->cols > INT32_MAX)
        return wrong(error, path, tensors.offsets);
    if (!bytes || bytes->type != LP_TENSOR_U8 || bytes->rows != 1)
        return wrong(error, path, tensors.bytes);
    uint64_t *offset = lp_arena_alloc(arena, lp_tensor_bytes(offsets));
    if (!offset)
        return lp_fail_memory(error, "the names in a model file", lp_tensor_bytes(offsets));
    memcpy(offset, offsets->data, lp_tensor_bytes(offsets));
    const char *text = bytes->data;
    int64_t count = offsets->cols - 1;
    for (int64_t i = 0; i < count; i++)
        if (offset[i] >= offset[i + 1] || offset[i + 1] > (uint64_t)bytes->cols || text[offset[i + 1] - 1] != 0)
            return wrong(error, path, tensors.offsets);
    if (offset[0] != 0 || offset[count] != (uint64_t)bytes->cols)
        return wrong(error, path, tensors.offsets);
    *names = (lp_names){.count = count, .offset = offset, .bytes = text};
    return LAPSE_OK;
}

static bool parse_number(const lp_container *container, const char *key, double least, double most, double *value)
{
    const char *text = lp_container_property(container, key);
    return text && lp_number_parse(text, text + strlen(text), value) && *value >= least && *value <= most;
}

static lapse_status parse_model_field(const lp_container *container, const char *path, int f, lp_arena *arena,
                                      lp_model_field *field, lapse_error *error)
{
    const char *type = lp_container_property(container, key_of(f, "type").text);
    double dims;
    field->name = lp_container_property(container, key_of(f, "name").text);
    if (!field->name)
        return wrong(error, path, key_of(f, "name").text);
    field->type = LAPSE_FIELD_ACTION;
    while (field->type <= LAPSE_FIELD_NUMBER && (!type || strcmp(type, lp_field_type_name(field->type)) != 0))
        field->type++;
    /* the action first, then categories, then numbers */
    if (field->type > LAPSE_FIELD_NUMBER ||
        (f > 0 && (field->type < field[-1].type || field->type == LAPSE_FIELD_ACTION)))
        return wrong(error, path, key_of(f, "type").text);
    bool number = field->type == LAPSE_FIELD_NUMBER;
    if (!parse_number(container, key_of(f, "dims").text, 1, number ? 1 : 65536, &dims) || dims != floor(dims))
        return wrong(error, path, key_of(f, "dims").text);
    field->dims = (int)dims;
    if (!number)
        return parse_names(container, path, f, arena, &field->categories, error);
    if (!parse_number(container, key_of(f, "mean").text, -1e308, 1e308, &field->mean))
        return wrong(error, path, key_of(f, "mean").text);
    if (!parse_number(container, key_of(f, "deviation").text, 1e-308, 1e308, &field->deviation))
        return wrong(error, path, key_of(f, "deviation").text);
    return LAPSE_OK;
}

/* Files from before there were fields have neither key: no fields, and events are predicted. */
static lapse_status parse_fields(const lp_container *container, const char *path, lp_arena *arena,
                                 lp_model_config *config, lapse_error *error)
{
    const char *predict = lp_container_property(container, "predict");
    double count = 0;
    if (lp_container_property(container, "fields") &&
        (!parse_number(container, "fields", 0, config->row->build ? LP_FIELD_LIMIT : 0, &count) ||
         count != floor(count)))
        return wrong(error, path, "fields");
    lp_model_field *list = lp_arena_alloc(arena, ((size_t)count + 1) * sizeof *list);
    if (!list)
        return lp_fail_memory(error, "the fields in a model file", (size_t)count * sizeof *list);
    config->fields = list;
    config->field_count = (int)count;
    for (int f = 0; f < config->field_count; f++)
        LP_TRY(parse_model_field(container, path, f, arena, &list[f], error));
    while (predict && lp_predict_names[config->predict] && strcmp(predict, lp_predict_names[config->predict]) != 0)
        config->predict++;
    bool action = config->field_count > 0 && list[0].type == LAPSE_FIELD_ACTION;
    if (!lp_predict_names[config->predict] ||
        (config->predict != LP_PREDICT_EVENT && (!action || config->task == LP_TASK_RECOMMEND)))
        return wrong(error, path, "predict");
    return LAPSE_OK;
}

/* Whether the file has what a network of this configuration needs: asked before room is made for it, since a made-up
 * configuration may need any amount. */
static lapse_status check_shapes(const lp_model_config *config, const lp_container *container, const char *path,
                                 lapse_error *error)
{
    lp_network network;
    LP_TRY(lp_network_build(&network, config, false, error));
    lapse_status status = LAPSE_OK;
    for (int i = 0; status == LAPSE_OK && i < network.graph.parameter_count; i++) {
        const lp_value *value = network.graph.parameters[i].value;
        const lp_tensor *found = lp_container_tensor(container, value->name);
        if (!found || found->type != LP_TENSOR_F32 || found->rows != value->rows || found->cols != value->cols)
            status = wrong(error, path, value->name);
    }
    lp_graph_clear(&network.graph);
    return status;
}

/* Networks have their tensors' places already; baselines take what the file has. */
static lapse_status take_tensors(lapse_model *model, const lp_container *container, const char *path,
                                 lapse_error *error)
{
    if (model->config.row->build) {
        for (int i = 0; i < model->tensor_count; i++) {
            lp_tensor *tensor = &model->tensors[i];
            memcpy(tensor->data, lp_container_tensor(container, tensor->name)->data, lp_tensor_bytes(tensor));
            const float *values = tensor->data;
            for (int64_t k = 0; k < tensor->rows * tensor->cols; k++)
                if (!isfinite(values[k]))
                    return wrong(error, path, tensor->name);
        }
        return LAPSE_OK;
    }
    for (int i = 0; i < container->tensor_count; i++) {
        const lp_tensor *found = &container->tensors[i];
        if (strncmp(found->name, VOCABULARY, strlen(VOCABULARY)) == 0)
            continue;
        if (model->tensor_count == LP_BASELINE_TENSORS)
            return wrong(error, path, found->name);
        void *data = lp_model_tensor_add(model, found->name, found->type, found->rows, found->cols);
        if (!data)
            return lp_fail_memory(error, "a model", lp_tensor_bytes(found));
        memcpy(data, found->data, lp_tensor_bytes(found));
    }
    lapse_status status = model->config.row->check(model, error);
    if (status != LAPSE_OK && error)
        snprintf(error->file, sizeof error->file, "%s", path);
    return status;
}

static bool parse_whole(const char *text, const char *digits, int base, uint64_t *value)
{
    if (!text || !*text || text[strspn(text, digits)])
        return false;
    errno = 0;
    *value = strtoull(text, NULL, base);
    return errno == 0;
}

static lapse_status take_properties(lapse_model *model, const lp_container *container, const char *path,
                                    lapse_error *error)
{
    for (int i = 0; i < container->property_count; i++)
        LP_TRY(lp_model_property_set(model, error, container->property_name[i], "%s", container->property_value[i]));
    const char *seed = lp_model_property_find(model, "seed"), *split = lp_model_property_find(model, "split");
    const char *fingerprint = lp_model_property_find(model, "dataset.fingerprint");
    if (!parse_whole(seed, "0123456789", 10, &model->seed))
        return wrong(error, path, "seed");
    if (!parse_whole(fingerprint, "0123456789abcdef", 16, &model->fingerprint))
        return wrong(error, path, "dataset.fingerprint");
    model->split_by = lp_split_rule_find(split);
    return model->split_by ? LAPSE_OK : wrong(error, path, "split");
}

lapse_status lp_model_from_container(const lp_container *container, const char *path, lapse_model **model,
                                     lapse_error *error)
{
    lp_model_config config = {0};
    lp_names names = {0};
    lp_arena arena = {0};
    lapse_model *made = NULL;
    lapse_status status = parse_config(container, path, &config, error);
    if (status == LAPSE_OK)
        status = parse_names(container, path, TYPES, &arena, &names, error);
    if (status == LAPSE_OK && names.count != config.event_types)
        status = wrong(error, path, vocabulary_of(TYPES).offsets);
    if (status == LAPSE_OK)
        status = parse_fields(container, path, &arena, &config, error);
    if (status == LAPSE_OK && config.row->build)
        status = check_shapes(&config, container, path, error);
    if (status == LAPSE_OK)
        status = lp_model_new(&config, &names, &made, error);
    lp_arena_clear(&arena);
    if (status == LAPSE_OK)
        status = take_tensors(made, container, path, error);
    if (status == LAPSE_OK)
        status = take_properties(made, container, path, error);
    if (status != LAPSE_OK) {
        lapse_model_free(made);
        return status;
    }
    *model = made;
    return LAPSE_OK;
}

lapse_status lapse_model_load(const char *path, lapse_model **model, lapse_error *error)
{
    lp_container container;
    LP_TRY(lp_container_open(&container, path, error));
    lapse_status status = lp_model_from_container(&container, path, model, error);
    lp_container_close(&container);
    return status;
}
