/* batch.h: windows laid end to end, as the matrices a model reads, cut into shards.
 *
 * Times are shifted so that the last time of each window is 0: absolute times never reach a model, and phases stay
 * exact. A shard is a run of whole windows. The number of shards is a setting of the run, so that the sums over shards
 * are the same on any machine.
 */
#ifndef LP_BATCH_H
#define LP_BATCH_H

#include "data/batch/window.h"

/* The events of a dataset in the numbers of a model (model/translate.h). Views of event_count elements each. */
typedef struct lp_event_columns {
    const int32_t *type;
    const int32_t *action; /* what is asked for beside the event type; NULL: nothing */
    int field_count;
    const void *field[LP_FIELD_LIMIT]; /* int32_t of a category, float of a number */
} lp_event_columns;

typedef struct lp_batch {
    int capacity_windows, context, shard_count, field_count;
    int windows, tokens, targets;
    int32_t *type;            /* [tokens] */
    int32_t *position;        /* [tokens]: place in the window */
    double *time;             /* [tokens]: of the event, seconds before the window's last time, so <= 0 */
    double *query_time;       /* [tokens]: the query time: the next event's time, or the event's own if unknown */
    void **field;             /* [field_count][tokens]: fields of the event; int32_t or float */
    int32_t *target_position; /* [targets]: the tokens after which the model is asked, numbered within the shard */
    int32_t *target;          /* [targets]: event type of the event that came */
    int32_t *action;          /* [targets]: its action, where it is asked for */
    int64_t *event;           /* [windows]: first event of each window */
    int64_t *sequence;        /* [windows]: of each window */
    int32_t *segment;   /* [windows + shards]: token numbers within the shard, one list of windows + 1 for each shard */
    int *shard_window;  /* [shards + 1] */
    int *shard_token;   /* [shards + 1] */
    int *shard_targets; /* [shards + 1] */

    /* Where shards have small catalogues of their own (batch_vocabulary.h). Event types, targets and negatives then are places in them. */
    int negative_count, item_capacity; /* negatives of a target; the most items of a shard, 0: there are no lists */
    int32_t *negative;                 /* [targets x negative_count] */
    int32_t *item;                     /* [shards x item_capacity] */
    float *shift;                      /* [shards x item_capacity]: added to the item's score in the loss */
    int *shard_items;                  /* [shards] */
} lp_batch;

/* A batch of up to `windows` windows of up to `context` tokens, whose events have `fields` fields. */
lapse_status lp_batch_init(lp_batch *batch, int windows, int context, int shards, int fields, lapse_error *error);
void lp_batch_clear(lp_batch *batch);

/* Gives shards catalogues of their own, for so many negatives of each target, so many that all targets share, and events of so
 * many event types. Once, after init. */
lapse_status lp_batch_list_items(lp_batch *batch, int negatives, int shared, int64_t types, lapse_error *error);

/* The largest shard in tokens. */
int lp_batch_shard_tokens(const lp_batch *batch);

/* Lays out `count` windows of the list from `first` on. */
void lp_batch_fill(lp_batch *batch, const lp_windows *list, int64_t first, int count, const lp_targets *targets,
                   bool target_known, const lp_event_columns *columns);

/* The segments of a shard: windows in shard + 1 numbers. */
static inline const int32_t *lp_batch_segments(const lp_batch *batch, int shard)
{
    return batch->segment + batch->shard_window[shard] + shard;
}

#endif
