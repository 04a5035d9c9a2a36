/* batch.h: windows laid end to end, as the matrices a model reads, cut into shards.
 *
 * Times are shifted so that the last time of each window is 0: absolute times never reach a model, and phases stay
 * exact. A shard is a run of whole windows. The number of shards is a setting of the run, so that the sums over shards
 * are the same on any machine.
 */
#ifndef LP_BATCH_H
#define LP_BATCH_H

#include "data/window.h"

typedef struct lp_batch {
    int capacity_windows, context, shard_count;
    int windows, tokens, targets;
    int32_t *kind;     /* [tokens] */
    int32_t *position; /* [tokens]: place in the window */
    double *time;      /* [tokens]: of the event, seconds before the window's last time, so <= 0 */
    double *until;     /* [tokens]: the moment asked about: the next event's time, or the event's own if unknown */
    int32_t *target;   /* [tokens]: kind of the next event */
    float *weight;     /* [tokens]: 1 where it is asked for, else 0 */
    int64_t *event;    /* [windows]: first event of each window */
    int64_t *sequence; /* [windows]: of each window */
    int32_t *segment;  /* [windows + shards]: token numbers within the shard, one list of windows + 1 for each shard */
    int *shard_window; /* [shards + 1] */
    int *shard_token;  /* [shards + 1] */
} lp_batch;

/* A batch of up to `windows` windows of up to `context` tokens. */
lapse_status lp_batch_init(lp_batch *batch, int windows, int context, int shards, lapse_error *error);
void lp_batch_clear(lp_batch *batch);

/* The largest shard in tokens. */
int lp_batch_shard_tokens(const lp_batch *batch);

/* Lays out `count` windows of the list from `first` on. kinds holds the kind of every event of the dataset, in the
 * numbers of the model. */
void lp_batch_fill(lp_batch *batch, const lp_windows *list, int64_t first, int count, const lp_targets *targets,
                   bool target_known, const int32_t *kinds);

/* The segments of a shard: windows in shard + 1 numbers. */
static inline const int32_t *lp_batch_segments(const lp_batch *batch, int shard)
{
    return batch->segment + batch->shard_window[shard] + shard;
}

#endif
