/* translate.c: the names of a model decide. A dataset imported from the same source has them in the same order, and then
 * nothing is copied; any other is renumbered by name. */
#include "model/translate.h"

#include "data/dataset/fingerprint.h"

#include <string.h>

/* Whether every name of the dataset has the same number in the model, which may know more. */
static bool same_names(const lp_names *dataset, const lp_names *model)
{
    bool same = dataset->count <= model->count;
    for (int64_t i = 0; same && i < dataset->count; i++)
        same = strcmp(lp_names_get(dataset, i), lp_names_get(model, i)) == 0;
    return same;
}

/* What the names are of, for messages. */
typedef struct vocabulary {
    const lp_names *dataset, *model;
    const char *field; /* NULL: the event types */
    bool lenient;      /* unknown names are -1 */
} vocabulary;

static lapse_status number_names(const vocabulary *names, int32_t *number, lapse_error *error)
{
    for (int64_t i = 0; i < names->dataset->count; i++) {
        const char *name = lp_names_get(names->dataset, i);
        number[i] = (int32_t)lp_names_find(names->model, name);
        if (number[i] >= 0 || names->lenient)
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

/* *column becomes one in the model's numbers. */
static lapse_status renumber(lp_translation *translation, const vocabulary *names, int64_t events,
                             const int32_t **column, lapse_error *error)
{
    if (same_names(names->dataset, names->model))
        return LAPSE_OK;
    int32_t *number = lp_alloc((size_t)names->dataset->count, sizeof *number);
    int32_t *made = lp_alloc((size_t)events, sizeof *made);
    lapse_status status = number && made ? number_names(names, number, error)
                                         : lp_fail_memory(error, "renumbering events", (size_t)events * sizeof *made);
    if (status == LAPSE_OK) {
        for (int64_t i = 0; i < events; i++)
            made[i] = number[(*column)[i]];
        *column = translation->owned[translation->owned_count++] = made;
    } else {
        lp_free(made);
    }
    lp_free(number);
    return status;
}

/* A dataset has one action at the most, so its column may have any name. */
static const lp_field *find_field(const lapse_dataset *dataset, const lp_model_field *wanted)
{
    for (int f = 0; f < dataset->field_count; f++)
        if (dataset->fields[f].type == wanted->type &&
            (wanted->type == LAPSE_FIELD_ACTION || strcmp(dataset->fields[f].name, wanted->name) == 0))
            return &dataset->fields[f];
    return NULL;
}

static lapse_status translate_field(lp_translation *translation, const lp_model_field *wanted,
                                    const lapse_dataset *dataset, bool lenient, lapse_error *error)
{
    static const char *const options[] = {"--action", "--field", "--number"};
    lp_event_columns *columns = &translation->columns;
    const lp_field *field = find_field(dataset, wanted);
    if (!field)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the model sees the %s '%s' of every event, and the dataset does not have it; import it with "
                       "%s '%s'",
                       lp_field_type_name(wanted->type), wanted->name, options[wanted->type], wanted->name);
    if (wanted->type != LAPSE_FIELD_NUMBER) {
        const int32_t *category = field->category;
        vocabulary names = {&field->categories, &wanted->categories, field->name, lenient};
        LP_TRY(renumber(translation, &names, dataset->event_count, &category, error));
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
    columns->field[columns->field_count++] = translation->owned[translation->owned_count++] = number;
    return LAPSE_OK;
}

static lapse_status translate(lp_translation *translation, const lapse_model *model, const lapse_dataset *dataset,
                              bool lenient, lapse_error *error)
{
    *translation = (lp_translation){.columns = {.type = dataset->type}};
    if (model->config.row->sequence_input)
        translation->columns.sequences_known = lp_dataset_fingerprint(dataset) == model->fingerprint;
    vocabulary types = {&dataset->types, &model->types, NULL, lenient};
    lapse_status status = renumber(translation, &types, dataset->event_count, &translation->columns.type, error);
    for (int f = 0; status == LAPSE_OK && f < model->config.field_count; f++)
        status = translate_field(translation, &model->config.fields[f], dataset, lenient, error);
    if (status != LAPSE_OK)
        lp_translation_clear(translation);
    return status;
}

lapse_status lp_translation_init(lp_translation *translation, const lapse_model *model, const lapse_dataset *dataset,
                                 lapse_error *error)
{
    return translate(translation, model, dataset, false, error);
}

lapse_status lp_translation_init_known(lp_translation *translation, const lapse_model *model,
                                       const lapse_dataset *dataset, lapse_error *error)
{
    return translate(translation, model, dataset, true, error);
}

void lp_translation_clear(lp_translation *translation)
{
    for (int i = 0; i < translation->owned_count; i++)
        lp_free(translation->owned[i]);
    *translation = (lp_translation){0};
}
