/* id_map.c: maps ids of event types and categories by name. A dataset imported from the same source has the model's ids
 * already, and its columns are used without a copy. */
#include "model/id_map.h"

#include "base/assert.h"
#include "data/dataset/fingerprint.h"

#include <math.h>
#include <string.h>

/* Whether every name of the dataset has the same id in the model. The model may have more names. */
static bool same_names(const lp_names *dataset, const lp_names *model)
{
    bool same = dataset->count <= model->count;
    for (int64_t i = 0; same && i < dataset->count; i++)
        same = strcmp(lp_names_get(dataset, i), lp_names_get(model, i)) == 0;
    return same;
}

typedef struct vocabulary {
    const lp_names *dataset, *model;
    const char *field; /* for messages; NULL: the event types */
    bool lenient;      /* unknown names are -1, not an error */
} vocabulary;

static lapse_status map_names(const vocabulary *names, int32_t *id, lapse_error *error)
{
    for (int64_t i = 0; i < names->dataset->count; i++) {
        const char *name = lp_names_get(names->dataset, i);
        id[i] = (int32_t)lp_names_find(names->model, name);
        if (id[i] >= 0 || names->lenient)
            continue;
        if (!names->field)
            return lp_fail(error, LAPSE_ERROR_UNKNOWN,
                           "the dataset has events '%s', which the model does not know; leave them out of the import",
                           name);
        if (!*name)
            return lp_fail(error, LAPSE_ERROR_UNKNOWN,
                           "the dataset has events without '%s', and the model has never seen one; leave them out of "
                           "the import",
                           names->field);
        return lp_fail(error, LAPSE_ERROR_UNKNOWN,
                       "the dataset has events with '%s' in '%s', which the model does not know; leave them out of the "
                       "import",
                       name, names->field);
    }
    return LAPSE_OK;
}

static int32_t least(const int32_t *ids, int64_t count)
{
    int32_t id = ids[0];
    for (int64_t i = 1; i < count; i++)
        id = ids[i] < id ? ids[i] : id;
    return id;
}

/* Replaces *column by a column of the model's ids, unless it has them already. */
static lapse_status map_column(lp_id_map *map, const vocabulary *names, int64_t events, const int32_t **column,
                               lapse_error *error)
{
    if (same_names(names->dataset, names->model))
        return LAPSE_OK;
    int32_t *id = lp_alloc((size_t)names->dataset->count, sizeof *id);
    int32_t *mapped = lp_alloc((size_t)events, sizeof *mapped);
    lapse_status status = id && mapped ? map_names(names, id, error)
                                       : lp_fail_memory(error, "mapping ids", (size_t)events * sizeof *mapped);
    if (status == LAPSE_OK) {
        for (int64_t i = 0; i < events; i++)
            mapped[i] = id[(*column)[i]];
        LP_ASSERT(events == 0 || names->lenient || least(mapped, events) >= 0);
        LP_ASSERT(map->owned_count < (int)(sizeof map->owned / sizeof *map->owned));
        *column = map->owned[map->owned_count++] = mapped;
    } else {
        lp_free(mapped);
    }
    lp_free(id);
    return status;
}

/* A dataset has one action at most, so its column may have any name. */
static const lp_field *find_field(const lapse_dataset *dataset, const lp_model_field *wanted)
{
    for (int f = 0; f < dataset->field_count; f++)
        if (dataset->fields[f].type == wanted->type &&
            (wanted->type == LAPSE_FIELD_ACTION || strcmp(dataset->fields[f].name, wanted->name) == 0))
            return &dataset->fields[f];
    return NULL;
}

static lapse_status map_field(lp_id_map *map, const lp_model_field *wanted, const lapse_dataset *dataset, bool lenient,
                              lapse_error *error)
{
    static const char *const options[] = {"--action", "--field", "--number"};
    lp_event_columns *columns = &map->columns;
    const lp_field *field = find_field(dataset, wanted);
    if (!field)
        return lp_fail(
            error, LAPSE_ERROR_INPUT,
            "the model sees the %s '%s' of every event, and the dataset does not have it; import it with " LP_OPTION(
                "%s '%s'"),
            lp_field_type_name(wanted->type), wanted->name, options[wanted->type], wanted->name);
    if (wanted->type != LAPSE_FIELD_NUMBER) {
        const int32_t *category = field->category;
        vocabulary names = {&field->categories, &wanted->categories, field->name, lenient};
        LP_TRY(map_column(map, &names, dataset->event_count, &category, error));
        if (wanted->type == LAPSE_FIELD_ACTION)
            columns->action = category;
        columns->field[columns->field_count++] = category;
        return LAPSE_OK;
    }
    float *number = lp_alloc((size_t)dataset->event_count, sizeof *number);
    if (!number)
        return lp_fail_memory(error, "standardizing numbers", (size_t)dataset->event_count * sizeof *number);
    for (int64_t i = 0; i < dataset->event_count; i++)
        number[i] = lp_model_standardize(wanted, field->number[i]);
    columns->field[columns->field_count++] = map->owned[map->owned_count++] = number;
    return LAPSE_OK;
}

/* The gap of each event, to the event before it in its sequence. */
static lapse_status map_gaps(lp_id_map *map, const lp_gap_scale *scale, const lapse_dataset *dataset,
                             lapse_error *error)
{
    float *gap = lp_alloc((size_t)dataset->event_count, sizeof *gap);
    if (!gap)
        return lp_fail_memory(error, "standardizing gaps", (size_t)dataset->event_count * sizeof *gap);
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t first = dataset->start[s], i = first; i < dataset->start[s + 1]; i++)
            gap[i] = lp_model_standardize_gap(scale, i > first ? dataset->time[i] - dataset->time[i - 1] : NAN);
    map->columns.gap = map->owned[map->owned_count++] = gap;
    return LAPSE_OK;
}

static lapse_status init(lp_id_map *map, const lapse_model *model, const lapse_dataset *dataset, bool lenient,
                         lapse_error *error)
{
    *map = (lp_id_map){.columns = {.type = dataset->type}};
    /* The number too: a forged file may have the fingerprint of a dataset with more sequences than it has user vectors. */
    if (model->config.row->sequence_input)
        map->columns.sequences_known =
            dataset->sequence_count == model->config.sequences && lp_dataset_fingerprint(dataset) == model->fingerprint;
    vocabulary types = {&dataset->types, &model->types, NULL, lenient};
    lapse_status status = map_column(map, &types, dataset->event_count, &map->columns.type, error);
    for (int f = 0; status == LAPSE_OK && f < model->config.field_count; f++)
        status = map_field(map, &model->config.fields[f], dataset, lenient, error);
    if (status == LAPSE_OK && lp_model_reads_gap(&model->config) && !lenient)
        status = map_gaps(map, &model->config.gap, dataset, error);
    if (status != LAPSE_OK)
        lp_id_map_clear(map);
    return status;
}

lapse_status lp_id_map_init(lp_id_map *map, const lapse_model *model, const lapse_dataset *dataset, lapse_error *error)
{
    return init(map, model, dataset, false, error);
}

lapse_status lp_id_map_init_lenient(lp_id_map *map, const lapse_model *model, const lapse_dataset *dataset,
                                    lapse_error *error)
{
    return init(map, model, dataset, true, error);
}

void lp_id_map_clear(lp_id_map *map)
{
    for (int i = 0; i < map->owned_count; i++)
        lp_free(map->owned[i]);
    *map = (lp_id_map){0};
}
