/* target_events.c: see target_events.h. */
#include "data/dataset/target_events.h"

#include "data/dataset/names.h"

#include <stdio.h>
#include <string.h>

static const char PREFIX[] = "action=";

const char *lp_target_events_action(const char *target)
{
    return strncmp(target, PREFIX, sizeof PREFIX - 1) == 0 ? target + sizeof PREFIX - 1 : NULL;
}

/* Lists the actions, as far as they fit. */
static void list_actions(const lp_names *names, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int64_t i = 0; i < names->count && used < size; i++) {
        const char *name = lp_names_get(names, i);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", *name ? name : "''");
    }
    if (used >= size)
        memcpy(out + size - 4, "...", 4);
}

lapse_status lp_target_events_find(const lapse_dataset *dataset, const char *target, int32_t *action,
                                   lapse_error *error)
{
    char known[240];
    const char *name = lp_target_events_action(target);
    *action = -1;
    if (!*target || strcmp(target, "all") == 0)
        return LAPSE_OK;
    if (!name)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the target events are '%.80s'; they must be action=NAME or all",
                       target);
    if (dataset->field_count == 0 || dataset->fields[0].type != LAPSE_FIELD_ACTION)
        return lp_fail(
            error, LAPSE_ERROR_INPUT,
            "'%.80s' needs an action, and the dataset has none: import it with " LP_OPTION("--action COLUMN"), target);
    *action = (int32_t)lp_names_find(&dataset->fields[0].categories, name);
    if (*action >= 0)
        return LAPSE_OK;
    list_actions(&dataset->fields[0].categories, known, sizeof known);
    return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the dataset has no action '%.80s'; its actions are: %s", name, known);
}

lapse_status lp_target_events_mask(const lapse_dataset *dataset, const char *target, uint8_t **split,
                                   lapse_error *error)
{
    int32_t action;
    LP_TRY(lp_target_events_find(dataset, target, &action, error));
    if (action < 0)
        return LAPSE_OK;
    size_t events = (size_t)dataset->event_count;
    uint8_t *masked = *split ? *split : lp_alloc(events, 1);
    if (!masked)
        return lp_fail_memory(error, "the target events", events);
    if (!*split)
        memset(masked, LP_SPLIT_TEST, events);
    for (size_t i = 0; i < events; i++)
        if (dataset->fields[0].category[i] != action)
            masked[i] = LP_SPLIT_NONE;
    *split = masked;
    return LAPSE_OK;
}
