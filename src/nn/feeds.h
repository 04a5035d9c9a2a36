/* feeds.h: what a batch feeds a network with: its inputs, always these and in this order, used or not. */
#ifndef LP_FEEDS_H
#define LP_FEEDS_H

#include "graph/op.h"

typedef enum lp_feed {
    LP_FEED_KIND,     /* [T x 1] int32 */
    LP_FEED_POSITION, /* [T x 1] int32 */
    LP_FEED_TIME,     /* [T x 1] double: of the event */
    LP_FEED_UNTIL,    /* [T x 1] double: the moment asked about */
    LP_FEED_TARGET,   /* [T x 1] int32 */
    LP_FEED_WEIGHT,   /* [T x 1] real */
    LP_FEED_SEED,     /* [1 x 1] real: the gradient's seed, one over the targets of the batch */
    LP_FEED_DRAW,     /* [1 x 1] int32: which of the draws a model keeps */
    LP_FEED_COUNT
} lp_feed;

/* Declares all of them in an empty graph. */
void lp_feeds_declare(lp_graph *graph, lp_value *feeds[LP_FEED_COUNT]);

#endif
