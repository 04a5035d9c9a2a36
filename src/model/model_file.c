/* model_file.c: models as safetensors files. Options are written and read by their tables; the rest is vocabularies, fields and
 * tensors. */
#include "model/model_file.h"

#include "base/text.h"
#include "model/history.h"
#include "model/item_rows.h"
#include "model/model_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "lapse-model", FORMAT_VERSION[] = "2";
static const char VOCABULARY[] = "vocabulary.", HISTORY[] = "history", TIMES_HISTORY[] = LP_TIMES_PREFIX "history",
                  SEASON[] = "when.season";

enum { KEY_SIZE = 64, EVENT_TYPES = -1 };

/* Names of the two tensors that hold the names of the event types, or the categories of field 0, 1, ... */
typedef struct vocabulary_names {
    char offsets[KEY_SIZE], bytes[KEY_SIZE];
} vocabulary_names;

static vocabulary_names vocabulary_of(int field)
{
    vocabulary_names names;
    if (field == EVENT_TYPES)
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

/* The metadata key of an option: "period-min" is "period_min", "learning-rate" is "train.learning_rate". */
typedef struct option_key {
    char text[KEY_SIZE];
} option_key;

static option_key option_key_of(const lp_option *option)
{
    option_key key;
    snprintf(key.text, sizeof key.text, "%s%s", option->stored == LP_STORED_TRAINING ? "train." : "", option->name);
    for (char *c = key.text; *c; c++)
        if (*c == '-')
            *c = '_';
    return key;
}

lapse_status lp_model_property_option(lapse_model *model, const lp_option *option, const void *settings,
                                      lapse_error *error)
{
    char text[LP_OPTION_TEXT_SIZE];
    if (option->stored == LP_STORED_NO || !lp_option_applies(option, settings) ||
        !*lp_option_text(option, settings, text))
        return LAPSE_OK;
    bool told = option->type != LAPSE_OPTION_FLAG || !option->absent || strcmp(text, option->absent) != 0;
    if (!told)
        return LAPSE_OK;
    return lp_model_property_set(model, error, option_key_of(option).text, "%s", text);
}

const char *lp_model_option_text(const lapse_model *model, const lp_option *option)
{
    return option->stored == LP_STORED_NO ? NULL : lp_model_property_find(model, option_key_of(option).text);
}

static lapse_status describe_fields(lapse_model *model, lapse_error *error)
{
    const lp_model_config *config = &model->config;
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

/* After the keys that it follows from, so that a checkpoint of another run is refused by the seed or the dataset. */
static lapse_status describe_gap(lapse_model *model, lapse_error *error)
{
    const lp_gap_scale *gap = &model->config.gap;
    LP_TRY(lp_model_property_number(model, error, "gap.offset", gap->offset));
    LP_TRY(lp_model_property_number(model, error, "gap.mean", gap->mean));
    return lp_model_property_number(model, error, "gap.deviation", gap->deviation);
}

/* Walks the options of a model and writes each one. */
typedef struct option_writer {
    lapse_model *model;
    lapse_error *error;
    lapse_status status;
} option_writer;

static void write_option(void *context, const lp_option *option, const void *settings)
{
    option_writer *writer = context;
    if (writer->status == LAPSE_OK)
        writer->status = lp_model_property_option(writer->model, option, settings, writer->error);
}

lapse_status lp_model_describe(lapse_model *model, lapse_error *error)
{
    const lp_model_config *config = &model->config;
    option_writer writer = {model, error, LAPSE_OK};
    LP_TRY(lp_model_property_set(model, error, "format", "%s", FORMAT));
    LP_TRY(lp_model_property_set(model, error, "format.version", "%s", FORMAT_VERSION));
    LP_TRY(lp_model_property_set(model, error, "model", "%s", config->row->name));
    LP_TRY(lp_model_property_set(model, error, "event_types", "%d", config->event_types));
    if (config->row->sequence_input)
        LP_TRY(lp_model_property_set(model, error, "sequences", "%d", config->sequences));
    lp_model_options_walk(config, write_option, &writer);
    LP_TRY(writer.status);
    if (model->network.encoding && model->network.encoding->sees_time)
        LP_TRY(lp_model_property_set(model, error, "lags",
                                     model->network.anchored && !model->network.lag_only ? "anchored" : "exact"));
    if (lp_model_is_network(config))
        LP_TRY(describe_fields(model, error));
    LP_TRY(lp_model_property_set(model, error, "seed", "%llu", (unsigned long long)model->seed));
    LP_TRY(lp_model_property_set(model, error, "split", "%s", lp_split_rule_name(model->split_by)));
    LP_TRY(
        lp_model_property_set(model, error, "dataset.fingerprint", "%016llx", (unsigned long long)model->fingerprint));
    if (config->when || config->row->next_time)
        LP_TRY(lp_model_property_number(model, error, "when.span", config->when_span));
    if (config->when) {
        LP_TRY(lp_model_property_number(model, error, "when.mean", config->when_mean));
        LP_TRY(lp_model_property_number(model, error, "when.deviation", config->when_deviation));
    }
    return lp_model_reads_gap(config) ? describe_gap(model, error) : LAPSE_OK;
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

static bool has_season(const lp_model_config *config)
{
    return config->when && config->when_background == LP_BACKGROUND_WEEK;
}

static void contain_history(lp_container *container, const lapse_model *model, const char *name)
{
    if (model->epochs > 0)
        container->tensors[container->tensor_count++] =
            (lp_tensor){name, LP_TENSOR_F64, model->epochs, lp_history_columns(&model->config), model->history};
}

lapse_status lp_model_contain(const lapse_model *model, int extra, lp_container *container, lapse_error *error)
{
    const lp_model_config *config = &model->config;
    size_t count = (size_t)(model->tensor_count + 5 + 2 * config->field_count + extra);
    container->tensors = lp_arena_alloc(&container->arena, count * sizeof *container->tensors);
    if (!container->tensors)
        return lp_fail_memory(error, "a model file", count * sizeof *container->tensors);
    memcpy(container->tensors, model->tensors, (size_t)model->tensor_count * sizeof *container->tensors);
    container->tensor_count = model->tensor_count;
    bool good = contain_names(container, EVENT_TYPES, &model->types);
    for (int f = 0; good && f < config->field_count; f++)
        if (config->fields[f].type != LAPSE_FIELD_NUMBER)
            good = contain_names(container, f, &config->fields[f].categories);
    if (!good)
        return lp_fail_memory(error, "a model file", count * sizeof *container->tensors);
    contain_history(container, model, HISTORY);
    if (model->times)
        contain_history(container, model->times, TIMES_HISTORY);
    if (has_season(config))
        container->tensors[container->tensor_count++] =
            (lp_tensor){SEASON, LP_TENSOR_F64, 1, LP_SEASON_HOURS, (void *)(uintptr_t)config->season.level};
    container->property_name = model->property_name;
    container->property_value = model->property_value;
    container->property_count = model->property_count;
    container->comm = model->divided;
    for (const lapse_model *each = model; model->divided && each; each = each->times)
        lp_container_divide(container, each->parameters, &each->network.graph);
    return LAPSE_OK;
}

lapse_status lapse_model_save(const lapse_model *model, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, model, path);
    lp_container container = {0};
    lapse_status status = lp_model_contain(model, 0, &container, error);
    if (status == LAPSE_OK)
        status = lp_container_check_finite(&container, path, error);
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

/* Reads the options of one table that the forward pass depends on, in the table's order: a row's `applies` depends on rows
 * before it alone. */
static lapse_status parse_options(const lp_container *container, const char *path, const lp_option *table,
                                  void *settings, lapse_error *error)
{
    for (; table->name; table++) {
        if (table->stored != LP_STORED_FORWARD || !lp_option_applies(table, settings))
            continue;
        option_key key = option_key_of(table);
        const char *text = lp_container_property(container, key.text);
        text = text ? text : table->absent;
        if (!text || lp_option_set(table, settings, text, NULL) != LAPSE_OK)
            return wrong(error, path, key.text);
    }
    return LAPSE_OK;
}

static bool parse_number(const lp_container *container, const char *key, double least, double most, double *value)
{
    const char *text = lp_container_property(container, key);
    return text && lp_number_parse(text, text + strlen(text), value) && *value >= least && *value <= most;
}

static lapse_status parse_gap(const lp_container *container, const char *path, lp_gap_scale *gap, lapse_error *error)
{
    if (!parse_number(container, "gap.offset", 1e-308, 1e308, &gap->offset))
        return wrong(error, path, "gap.offset");
    if (!parse_number(container, "gap.mean", -1e308, 1e308, &gap->mean))
        return wrong(error, path, "gap.mean");
    if (!parse_number(container, "gap.deviation", 1e-308, 1e308, &gap->deviation))
        return wrong(error, path, "gap.deviation");
    return LAPSE_OK;
}

static lapse_status parse_row(const lp_container *container, const char *path, lp_model_config *config,
                              lapse_error *error)
{
    const char *format = lp_container_property(container, "format");
    const char *version = lp_container_property(container, "format.version");
    if (!format || strcmp(format, FORMAT) != 0)
        return wrong(error, path, "format");
    if (!version || strcmp(version, FORMAT_VERSION) != 0)
        return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                          "this model file has version %s, and this Lapse reads version %s: train the model again",
                          version ? version : "?", FORMAT_VERSION);
    const char *model = lp_container_property(container, "model");
    double types;
    config->row = model ? lp_model_row_find(model) : NULL;
    if (!config->row)
        return wrong(error, path, "model");
    if (!parse_number(container, "event_types", 1, 2e9, &types) || types != floor(types))
        return wrong(error, path, "event_types");
    config->event_types = (int)types;
    double sequences = 0;
    if (config->row->sequence_input &&
        (!parse_number(container, "sequences", 1, 2e9, &sequences) || sequences != floor(sequences)))
        return wrong(error, path, "sequences");
    config->sequences = (int)sequences;
    lp_options_default(lp_model_options, config);
    config->dims = 0; /* baselines have none; networks read theirs from the file */
    lp_model_settings_default(config->row, &config->settings);
    return LAPSE_OK;
}

static lapse_status parse_season(const lp_container *container, const char *path, lp_season *season, lapse_error *error)
{
    double level[LP_SEASON_HOURS];
    const lp_tensor *found = lp_container_tensor(container, SEASON);
    if (!found || found->type != LP_TENSOR_F64 || found->rows != 1 || found->cols != LP_SEASON_HOURS)
        return wrong(error, path, SEASON);
    memcpy(level, found->data, sizeof level); /* tensors in a file need not be aligned */
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        if (!(level[h] >= 1e-9 && level[h] <= LP_SEASON_HOURS))
            return wrong(error, path, SEASON);
    lp_season_set(season, level);
    return LAPSE_OK;
}

/* After the row and the fields. */
static lapse_status parse_config(const lp_container *container, const char *path, lp_model_config *config,
                                 lapse_error *error)
{
    lapse_error reason;
    LP_TRY(parse_options(container, path, lp_model_options, config, error));
    for (const lp_option *const *table = config->row->options; *table; table++)
        LP_TRY(parse_options(container, path, *table, config->settings.bytes, error));
    if (lp_model_config_validate(config, &reason) != LAPSE_OK)
        return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0, "this is not a Lapse model that can be used: %s",
                          reason.message);
    if (lp_model_reads_gap(config))
        LP_TRY(parse_gap(container, path, &config->gap, error));
    if ((config->when || config->row->next_time) &&
        !parse_number(container, "when.span", 0, 1e30, &config->when_span))
        return wrong(error, path, "when.span");
    if (config->when && !parse_number(container, "when.mean", -1e3, 1e3, &config->when_mean))
        return wrong(error, path, "when.mean");
    if (config->when && !parse_number(container, "when.deviation", 1e-9, 1e3, &config->when_deviation))
        return wrong(error, path, "when.deviation");
    lp_season_constant(&config->season);
    if (has_season(config))
        LP_TRY(parse_season(container, path, &config->season, error));
    bool action = config->field_count > 0 && config->fields[0].type == LAPSE_FIELD_ACTION;
    if (config->predict != LP_PREDICT_EVENT && (!action || config->task == LP_TASK_RECOMMEND))
        return wrong(error, path, "predict");
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
        if (offset[i] >= offset[i + 1] || offset[i + 1] > (uint64_t)bytes->cols ||
            memchr(text + offset[i], 0, offset[i + 1] - offset[i]) != text + offset[i + 1] - 1)
            return wrong(error, path, tensors.offsets);
    if (offset[0] != 0 || offset[count] != (uint64_t)bytes->cols)
        return wrong(error, path, tensors.offsets);
    *names = (lp_names){.count = count, .offset = offset, .bytes = text};
    return lp_container_check_names(names, path, tensors.bytes, error);
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

static lapse_status parse_fields(const lp_container *container, const char *path, lp_arena *arena,
                                 lp_model_config *config, lapse_error *error)
{
    double count = 0;
    if (lp_model_is_network(config) &&
        (!parse_number(container, "fields", 0, LP_FIELD_LIMIT, &count) || count != floor(count)))
        return wrong(error, path, "fields");
    lp_model_field *list = lp_arena_alloc(arena, ((size_t)count + 1) * sizeof *list);
    if (!list)
        return lp_fail_memory(error, "the fields in a model file", (size_t)count * sizeof *list);
    config->fields = list;
    config->field_count = (int)count;
    for (int f = 0; f < config->field_count; f++)
        LP_TRY(parse_model_field(container, path, f, arena, &list[f], error));
    return LAPSE_OK;
}

/* Checks that the file has the tensors of the configuration's network, behind the prefix, before they are allocated: a forged
 * configuration may need any amount of memory. */
static lapse_status check_shapes(const lp_model_config *config, const char *prefix, const lp_container *container,
                                 const char *path, lapse_error *error)
{
    lp_network network;
    LP_TRY(lp_network_build(&network, config, false, error));
    lapse_status status = LAPSE_OK;
    for (int i = 0; status == LAPSE_OK && i < network.graph.parameter_count; i++) {
        const lp_value *value = network.graph.parameters[i].value;
        char name[2 * KEY_SIZE];
        snprintf(name, sizeof name, "%s%s", prefix, value->name);
        const lp_tensor *found = lp_container_tensor(container, name);
        if (!found || found->type != LP_TENSOR_F32 || found->rows != value->rows || found->cols != value->cols)
            status = wrong(error, path, name);
    }
    lp_graph_clear(&network.graph);
    return status;
}

/* Copies the tensors: those that the network declares, or for a baseline all that the file has. */
static lapse_status take_tensors(lapse_model *model, const lp_container *container, const char *path,
                                 lapse_error *error)
{
    if (lp_model_is_network(&model->config)) {
        for (int i = 0; i < model->tensor_count; i++) {
            lp_tensor *tensor = &model->tensors[i];
            const char *from = lp_container_tensor(container, tensor->name)->data;
            float *values = tensor->data;
            const lapse_model *of = i < model->network.graph.parameter_count ? model : model->times;
            size_t begin = (size_t)(values - of->parameters), end = begin + (size_t)(tensor->rows * tensor->cols);
            for (size_t at = begin, next; at < end; at = next) {
                int rank;
                next = lp_item_piece(&of->network.graph, model->divided, at, end, &rank);
                size_t first = at - begin, count = next - at;
                if (rank >= 0 && rank != lp_comm_rank(model->divided))
                    continue;
                memcpy(values + first, from + first * sizeof *values, count * sizeof *values);
                for (size_t k = first; k < first + count; k++)
                    if (!isfinite(values[k]))
                        return wrong(error, path, tensor->name);
            }
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

/* A run that was stopped in its first epoch has no history. */
static lapse_status take_history(lapse_model *model, const char *name, const lp_container *container, const char *path,
                                 lapse_error *error)
{
    const lp_tensor *found = lp_container_tensor(container, name);
    if (!found || !lp_model_is_network(&model->config))
        return LAPSE_OK;
    if (found->type != LP_TENSOR_F64 || found->cols != lp_history_columns(&model->config) || found->rows < 1 ||
        found->rows > INT32_MAX)
        return wrong(error, path, name);
    LP_TRY(lp_history_reserve(model, (int)found->rows, error));
    memcpy(model->history, found->data, lp_tensor_bytes(found));
    model->epochs = (int)found->rows;
    return LAPSE_OK;
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
    for (int i = 0; i < container->property_count; i++) /* names are unique: JSON_REJECT_DUPLICATES */
        LP_TRY(lp_model_property_append(model, container->property_name[i], container->property_value[i], error));
    const char *seed = lp_model_property_find(model, "seed"), *split = lp_model_property_find(model, "split");
    const char *fingerprint = lp_model_property_find(model, "dataset.fingerprint");
    if (!parse_whole(seed, "0123456789", 10, &model->seed))
        return wrong(error, path, "seed");
    if (!parse_whole(fingerprint, "0123456789abcdef", 16, &model->fingerprint))
        return wrong(error, path, "dataset.fingerprint");
    model->split_by = lp_split_rule_find(split);
    return model->split_by ? LAPSE_OK : wrong(error, path, "split");
}

lapse_status lp_model_from_container(const lp_container *container, const char *path, lapse_comm *comm,
                                     lapse_model **model, lapse_error *error)
{
    lp_model_config config = {0};
    lp_names names = {0};
    lp_arena arena = {0};
    lapse_model *made = NULL;
    lapse_status status = parse_row(container, path, &config, error);
    if (status == LAPSE_OK)
        status = parse_names(container, path, EVENT_TYPES, &arena, &names, error);
    if (status == LAPSE_OK && names.count != config.event_types)
        status = wrong(error, path, vocabulary_of(EVENT_TYPES).offsets);
    if (status == LAPSE_OK)
        status = parse_fields(container, path, &arena, &config, error);
    if (status == LAPSE_OK)
        status = parse_config(container, path, &config, error);
    if (status == LAPSE_OK && lp_model_is_network(&config))
        status = check_shapes(&config, "", container, path, error);
    if (status == LAPSE_OK && config.when) {
        lp_model_config times = lp_model_times_config(&config);
        status = check_shapes(&times, LP_TIMES_PREFIX, container, path, error);
    }
    if (status == LAPSE_OK)
        status = lp_model_new(&config, &names, &made, error);
    lp_arena_clear(&arena);
    if (status == LAPSE_OK)
        lp_model_divide(made, comm);
    if (status == LAPSE_OK)
        status = take_tensors(made, container, path, error);
    if (status == LAPSE_OK)
        status = take_history(made, HISTORY, container, path, error);
    if (status == LAPSE_OK && made->times)
        status = take_history(made->times, TIMES_HISTORY, container, path, error);
    if (status == LAPSE_OK)
        status = take_properties(made, container, path, error);
    if (status != LAPSE_OK) {
        lapse_model_free(made);
        return status;
    }
    *model = made;
    return LAPSE_OK;
}

static lapse_status load(const char *path, lapse_comm *comm, lapse_model **model, lapse_error *error)
{
    lp_container container;
    LP_TRY(lp_container_open(&container, path, error));
    lapse_status status = lp_model_from_container(&container, path, comm, model, error);
    lp_container_close(&container);
    return status;
}

lapse_status lapse_model_load(const char *path, lapse_model **model, lapse_error *error)
{
    LP_REQUIRE(error, path, model);
    return load(path, NULL, model, error);
}

lapse_status lapse_model_load_divided(const char *path, lapse_comm *comm, lapse_model **model, lapse_error *error)
{
    LP_REQUIRE(error, path, model);
    return load(path, comm, model, error);
}
