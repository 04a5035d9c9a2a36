/* item_filter.c: filters of recommendations. */
#include "serve/item_filter.h"

#include "base/finite.h"

#include <string.h>

static lapse_status check_ids(const char *what, const int64_t *ids, int64_t count, int64_t types, lapse_error *error)
{
    for (int64_t i = 0; ids && i < count; i++)
        if (ids[i] < 0 || ids[i] >= types)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "%s[%lld] of the filter is %lld; event types are numbered 0 to %lld", what, (long long)i,
                           (long long)ids[i], (long long)types - 1);
    return LAPSE_OK;
}

lapse_status lp_item_filter_check(const lapse_item_filter *filter, const lapse_model *model, lapse_error *error)
{
    int64_t types = model->config.event_types;
    if (!filter)
        return LAPSE_OK;
    LP_TRY(check_ids("only", filter->only, filter->only_count, types, error));
    LP_TRY(check_ids("exclude", filter->exclude, filter->exclude_count, types, error));
    if (filter->offset && !lp_all_finite(filter->offset, (size_t)types))
        return lp_fail(error, LAPSE_ERROR_USAGE, "an offset of the filter is not finite");
    return LAPSE_OK;
}

static void set(uint64_t *bits, int64_t item)
{
    bits[item / 64] |= UINT64_C(1) << (item % 64);
}

/* Leaves out the items whose bit in the set is `out`. */
static void leave_out(const uint64_t *set, bool out, int64_t items, float *scores)
{
    for (int64_t i = 0; i < items; i++)
        if ((set[i / 64] >> (i % 64) & 1) == out)
            scores[i] = NAN;
}

void lp_item_filter_apply(const lapse_item_filter *filter, const lapse_model *model, const int32_t *types,
                          int64_t count, uint64_t *only, float *scores)
{
    int64_t items = model->config.event_types;
    if (!filter)
        return;
    for (int64_t i = 0; filter->offset && i < items; i++)
        scores[i] += filter->offset[i];
    if (filter->only) {
        memset(only, 0, lp_item_mask_words(model) * sizeof *only);
        for (int64_t i = 0; i < filter->only_count; i++)
            set(only, filter->only[i]);
        leave_out(only, false, items, scores);
    }
    if (filter->only_set)
        leave_out(filter->only_set, false, items, scores);
    if (filter->exclude_set)
        leave_out(filter->exclude_set, true, items, scores);
    for (int64_t i = 0; filter->exclude && i < filter->exclude_count; i++)
        scores[filter->exclude[i]] = NAN;
    for (int64_t i = 0; filter->unseen && i < count; i++)
        scores[types[i]] = NAN;
}
