/* item_filter.h: which event types may be recommended, applied to the scores of a query (lapse_item_filter). */
#ifndef LP_ITEM_FILTER_H
#define LP_ITEM_FILTER_H

#include "model/model.h"

/* Words of a bit set of event types. */
static inline size_t lp_item_mask_words(const lapse_model *model)
{
    return ((size_t)model->config.event_types + 63) / 64;
}

/* Checks ids and offsets; NULL is a filter that leaves nothing out. */
lapse_status lp_item_filter_check(const lapse_item_filter *filter, const lapse_model *model, lapse_error *error);

/* Applies a valid filter to the scores of all event types, for a history of these types: adds its offsets, and scores of types that
 * are left out become NaN, as lp_top_k wants them. `only` is memory for a bit set. */
void lp_item_filter_apply(const lapse_item_filter *filter, const lapse_model *model, const int32_t *types,
                          int64_t count, uint64_t *only, float *scores);

#endif
