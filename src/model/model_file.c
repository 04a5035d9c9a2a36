#include "model/model_file.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "lapse-model", FORMAT_VERSION[] = "1";
static const char NAME_OFFSETS[] = "vocabulary.kind.offset", NAME_BYTES[] = "vocabulary.kind.bytes";

/* The whole numbers and numbers of a configuration: one table for writing and reading. */
typedef struct config_field {
    const char *name;
    size_t offset;
    bool whole;
    double least, most;
} config_field;

#define WHOLE(member, least, most) {#member, offsetof(lp_model_config, member), true, least, most}
#define NUMBER(member, least, most) {#member, offsetof(lp_model_config, member), false, least, most}

static const config_field fields[] = {
    WHOLE(kinds, 1, 2e9),           WHOLE(dims, 1, 65536),         WHOLE(blocks, 1, 64),
    WHOLE(heads, 1, 64),            WHOLE(context, 1, 1e6),        WHOLE(periods, 0, 1e6),
    WHOLE(harmonics, 0, 1e6),       NUMBER(period_min, 0, 1e300),  NUMBER(period_max, 0, 1e300),
    NUMBER(dropout, 0, 1),          WHOLE(order, 0, 3),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields, LARGEST_FREQUENCIES = 1000000 };

lapse_status lp_model_describe(lapse_model *model, lapse_error *error)
{
    const lp_model_config *config = &model->config;
    LP_TRY(lp_model_property_set(model, error, "format", "%s", FORMAT));
    LP_TRY(lp_model_property_set(model, error, "format.version", "%s", FORMAT_VERSION));
    LP_TRY(lp_model_property_set(model, error, "task", "classify"));
    LP_TRY(lp_model_property_set(model, error, "model", "%s", config->row->name));
    LP_TRY(lp_model_property_set(model, error, "encoding", "%s", config->encoding->name));
    LP_TRY(lp_model_property_set(model, error, "target_time", "%s", config->target_known ? "known" : "unknown"));
    for (int i = 0; i < FIELD_COUNT; i++) {
        const void *place = (const char *)config + fields[i].offset;
        if (fields[i].whole)
            LP_TRY(lp_model_property_set(model, error, fields[i].name, "%d", *(const int *)place));
        else
            LP_TRY(lp_model_number_set(model, error, fields[i].name, *(const double *)place));
    }
    LP_TRY(lp_model_property_set(model, error, "seed", "%llu", (unsigned long long)model->seed));
    LP_TRY(lp_model_property_set(model, error, "split", "%s", model->split_by_column ? "column" : "sequence"));
    return lp_model_property_set(model, error, "dataset.fingerprint", "%016llx", (unsigned long long)model->fingerprint);
}

lapse_status lp_model_contain(const lapse_model *model, int extra, lp_container *container, lapse_error *error)
{
    size_t count = (size_t)(model->tensor_count + 2 + extra);
    container->tensors = lp_arena_alloc(&container->arena, count * sizeof *container->tensors);
    if (!container->tensors)
        return lp_fail_memory(error, "a model file", count * sizeof *container->tensors);
    memcpy(container->tensors, model->tensors, (size_t)model->tensor_count * sizeof *container->tensors);
    int n = model->tensor_count;
    const lp_names *kinds = &model->kinds;
    container->tensors[n++] =
        (lp_tensor){NAME_OFFSETS, LP_TENSOR_U64, 1, kinds->count + 1, (void *)(uintptr_t)kinds->offset};
    container->tensors[n++] = (lp_tensor){NAME_BYTES, LP_TENSOR_U8, 1, (int64_t)kinds->offset[kinds->count],
                                          (void *)(uintptr_t)kinds->bytes};
    container->tensor_count = n;
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
    return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0, "this is not a Lapse model that can be used: '%s' is missing or wrong",
                      name);
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
    const char *model = lp_container_property(container, "model"), *encoding = lp_container_property(container, "encoding");
    const char *target_time = lp_container_property(container, "target_time");
    config->row = model ? lp_model_row_find(model) : NULL;
    config->encoding = encoding ? lp_encoding_find(encoding) : NULL;
    if (!config->row)
        return wrong(error, path, "model");
    if (!config->encoding)
        return wrong(error, path, "encoding");
    if (!target_time || (strcmp(target_time, "known") != 0 && strcmp(target_time, "unknown") != 0))
        return wrong(error, path, "target_time");
    config->target_known = strcmp(target_time, "known") == 0;
    for (int i = 0; i < FIELD_COUNT; i++)
        if (!parse_field(container, &fields[i], config))
            return wrong(error, path, fields[i].name);
    if (config->dims % config->heads)
        return wrong(error, path, "heads");
    bool periods = config->periods > 0 && config->period_min > 0 && config->period_max >= config->period_min;
    if (config->row->build && config->encoding->default_periods && !periods)
        return wrong(error, path, "periods");
    if (config->row->build && config->encoding->default_harmonics && config->harmonics < 1)
        return wrong(error, path, "harmonics");
    if ((int64_t)config->periods * config->harmonics > LARGEST_FREQUENCIES)
        return wrong(error, path, "harmonics");
    return LAPSE_OK;
}

/* The table of kinds; a copy, since tensors in a file need not be aligned. */
static lapse_status parse_names(const lp_container *container, const char *path, int kinds, lp_arena *arena,
                                lp_names *names, lapse_error *error)
{
    const lp_tensor *offsets = lp_container_tensor(container, NAME_OFFSETS);
    const lp_tensor *bytes = lp_container_tensor(container, NAME_BYTES);
    if (!offsets || offsets->type != LP_TENSOR_U64 || offsets->rows != 1 || offsets->cols != (int64_t)kinds + 1)
        return wrong(error, path, NAME_OFFSETS);
    if (!bytes || bytes->type != LP_TENSOR_U8 || bytes->rows != 1)
        return wrong(error, path, NAME_BYTES);
    uint64_t *offset = lp_arena_alloc(arena, lp_tensor_bytes(offsets));
    if (!offset)
        return lp_fail_memory(error, "the names in a model file", lp_tensor_bytes(offsets));
    memcpy(offset, offsets->data, lp_tensor_bytes(offsets));
    const char *text = bytes->data;
    for (int i = 0; i < kinds; i++)
        if (offset[i] >= offset[i + 1] || offset[i + 1] > (uint64_t)bytes->cols || text[offset[i + 1] - 1] != 0)
            return wrong(error, path, NAME_OFFSETS);
    if (offset[0] != 0 || offset[kinds] != (uint64_t)bytes->cols)
        return wrong(error, path, NAME_OFFSETS);
    *names = (lp_names){kinds, offset, text};
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

/* Networks have their tensors' places already; floors take what the file has. */
static lapse_status take_tensors(lapse_model *model, const lp_container *container, const char *path, lapse_error *error)
{
    if (model->config.row->build) {
        for (int i = 0; i < model->tensor_count; i++) {
            lp_tensor *tensor = &model->tensors[i];
            memcpy(tensor->data, lp_container_tensor(container, tensor->name)->data, lp_tensor_bytes(tensor));
        }
        return LAPSE_OK;
    }
    for (int i = 0; i < container->tensor_count; i++) {
        const lp_tensor *found = &container->tensors[i];
        if (strcmp(found->name, NAME_OFFSETS) == 0 || strcmp(found->name, NAME_BYTES) == 0)
            continue;
        if (model->tensor_count == LP_FLOOR_TENSORS)
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
    if (!split || (strcmp(split, "column") != 0 && strcmp(split, "sequence") != 0))
        return wrong(error, path, "split");
    model->split_by_column = strcmp(split, "column") == 0;
    return LAPSE_OK;
}

lapse_status lp_model_from_container(const lp_container *container, const char *path, lapse_model **model,
                                     lapse_error *error)
{
    lp_model_config config = {0};
    lp_names names;
    lp_arena arena = {0};
    lapse_model *made = NULL;
    lapse_status status = parse_config(container, path, &config, error);
    if (status == LAPSE_OK)
        status = parse_names(container, path, config.kinds, &arena, &names, error);
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
