/* feeds.h: the inputs of a network. Every graph declares all of lp_feed in this order, used or not, then one input for each field of
 * the model. To add an input, add its id here and its row in feeds.c: graphs, training and evaluation follow.
 *
 *     T    tokens                                  W, V  tokens and targets of the segments that learn the time
 *     A    targets                                 I     items of the batch vocabulary
 *     L    labels: targets whose event is known    N     negatives per label
 */
#ifndef LP_FEEDS_H
#define LP_FEEDS_H

#include "data/batch/batch.h"
#include "graph/op.h"

typedef enum lp_feed {
    LP_FEED_EVENT,            /* [T x 1] int32 */
    LP_FEED_POSITION,         /* [T x 1] int32 */
    LP_FEED_TIME,             /* [T x 1] double: of the event */
    LP_FEED_QUERY_TIME,       /* [T x 1] double */
    LP_FEED_LAG,              /* [T x 1] double: query time - time of the event; of batches */
    LP_FEED_TARGET_POSITION,  /* [A x 1] int32: index of the token before the target event */
    LP_FEED_TARGET,           /* [L x 1] int32: event type of the target event */
    LP_FEED_SEED,             /* [1 x 1] real: gradient of the loss: 1 / targets of the batch */
    LP_FEED_FREQUENCY_SAMPLE, /* [1 x 1] int32: index of the frequency sample */
    LP_FEED_ACTION,           /* [L x 1] int32: action of the target event */
    LP_FEED_NEGATIVE,         /* [L x N] int32: negative items */
    LP_FEED_ITEM,             /* [I x 1] int32: the shard's batch vocabulary: item ids of the model */
    LP_FEED_LOGQ,             /* [I x 1] real: logQ correction, added to an item's score in the loss */
    LP_FEED_TARGET_GAP, /* [A x 1] double: seconds from the event at the target position to the target event; negative: right-censored */
    LP_FEED_TARGET_SEASON, /* [A x 2] double: integral of the season over this gap, in seconds, and its level at the end */
    LP_FEED_SEQUENCE,      /* [T x 1] int32: index of the sequence in the training data plus 1; 0: unknown */
    LP_FEED_GAP,           /* [T x 2] real: gap input of the event (lp_gap_row) */
    LP_FEED_TARGET_GAP_INPUT,     /* [A x 2] real: gap input of the target event */
    LP_FEED_POSITION_FROM_END,    /* [T x 1] int32: events after this one in the window */
    LP_FEED_LABEL_ROW,            /* [L x 1] int32: index of the label's target */
    LP_FEED_COUNT /* LP_FEED_COUNT + f: field f of the event, [T x 1] int32 of a category, real of a number */
} lp_feed;

enum { LP_FEED_LIMIT = LP_FEED_COUNT + LP_FIELD_LIMIT };

/* Declares all inputs in an empty graph, with this number of negatives per label. censored: some targets have no label; otherwise the
 * labels have the rows of the targets, LP_ROWS_TARGETS. */
void lp_feeds_declare(lp_graph *graph, const lapse_field_type *types, int field_count, int negatives, bool censored,
                      lp_value *feeds[LP_FEED_LIMIT]);

/* The inputs of a shard, all but LP_FEED_SEED and LP_FEED_FREQUENCY_SAMPLE. */
void lp_feeds_of_batch(const lp_batch *batch, int shard, void *inputs[LP_FEED_LIMIT]);

#endif
