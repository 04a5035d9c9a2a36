/* item_filter.c: filters of recommendations. Lists and sets become one bit set, which the selection of the best reads only for
 * event types that would be among them. */
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

lp_item_mask lp_item_filter_apply(const lapse_item_filter *filter, const lapse_model *model, const int32_t *types,
                                  int64_t count, uint64_t *skip)
{
    size_t words = lp_item_mask_words(model);
    lp_item_mask mask = {.offset = filter ? filter->offset : NULL};
    if (!filter || !(filter->unseen || filter->only || filter->only_set || filter->exclude || filter->exclude_set))
        return mask;
    memset(skip, 0, words * sizeof *skip);
    for (int64_t i = 0; filter->only && i < filter->only_count; i++)
        set(skip, filter->only[i]);
    for (size_t w = 0; w < words; w++) {
        if (filter->only)
            skip[w] = ~skip[w];
        if (filter->only_set)
            skip[w] |= ~filter->only_set[w];
        if (filter->exclude_set)
            skip[w] |= filter->exclude_set[w];
    }
    for (int64_t i = 0; filter->exclude && i < filter->exclude_count; i++)
        set(skip, filter->exclude[i]);
    for (int64_t i = 0; filter->unseen && i < count; i++)
        set(skip, types[i]);
    mask.skip = skip;
    return mask;
}

bool lp_item_skipped(const void *context, int64_t item)
{
    const lp_item_mask *mask = context;
    return mask->skip[item / 64] >> (item % 64) & 1;
}
