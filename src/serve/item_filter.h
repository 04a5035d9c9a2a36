/* item_filter.h: which event types may be recommended, as one bit set for each query (lapse_item_filter). */
#ifndef LP_ITEM_FILTER_H
#define LP_ITEM_FILTER_H

#include "model/model.h"

/* A filter applied to one history. */
typedef struct lp_item_mask {
    uint64_t *skip;      /* [lp_item_mask_words]: the event types that are left out; NULL: none */
    const float *offset; /* as in lapse_item_filter */
} lp_item_mask;

static inline size_t lp_item_mask_words(const lapse_model *model)
{
    return ((size_t)model->config.event_types + 63) / 64;
}

/* Checks ids and offsets; NULL is a filter that leaves nothing out. */
lapse_status lp_item_filter_check(const lapse_item_filter *filter, const lapse_model *model, lapse_error *error);

/* Applies a valid filter to a history of these event types. `skip` is memory for the mask. */
lp_item_mask lp_item_filter_apply(const lapse_item_filter *filter, const lapse_model *model, const int32_t *types,
                                  int64_t count, uint64_t *skip);

/* lp_top_k_skip of an lp_item_mask that has a bit set. */
bool lp_item_skipped(const void *mask, int64_t item);

#endif
