/* batch.h: windows packed end to end without padding, as the arrays a model reads, divided into shards.
 *
 * Times are relative to the last time of their window, which is 0 (that of its last event, where the network must not know the
 * target time): absolute times never reach a model, so phases stay
 * exact in float. A shard is a run of whole windows. The number of shards is a setting of the run and not of the
 * machine, so sums over shards have the same bits everywhere.
 */
#ifndef LP_BATCH_H
#define LP_BATCH_H

#include "formula/season.h"
#include "data/batch/window.h"

#include <math.h>

/* The events of a dataset with the ids of a model (model/id_map.h). Views of event_count elements each. */
typedef struct lp_event_columns {
    const int32_t *type;
    const int32_t *action; /* second target beside the event type; NULL: none */
    int field_count;
    const void *field[LP_FIELD_LIMIT]; /* int32_t for a category, float for a number */
    const float *gap;                  /* standardized; NaN: no event before. NULL: the model does not read it */
    bool sequences_known;              /* the dataset's sequences are those of the model's training data */
} lp_event_columns;

typedef struct lp_batch {
    int capacity_windows, context, shard_count, field_count;
    int window_targets; /* most targets of a window; the context, unless the owner of the batch knows better */
    int windows, tokens, targets;
    int labels;         /* targets whose event is known: all, but the open ones (window.h) */
    int32_t *type;      /* [tokens] */
    int32_t *position;  /* [tokens]: index within the window */
    double *time;       /* [tokens]: of the event, in seconds relative to the window's last query time, so <= 0 */
    double *query_time; /* [tokens]: the next event's time, or the event's own if the target time is unknown */
    double *lag;        /* [tokens]: query_time - time */
    void *field[LP_FIELD_LIMIT]; /* [tokens] each: fields of the event; int32_t or float */
    int32_t *target_position;    /* [targets]: index within the shard of the token whose next event is predicted */
    int32_t *label_row;          /* [labels]: index within the shard of a target whose event is known */
    int32_t *target;             /* [labels]: event type of that next event */
    int32_t *action;             /* [labels]: its action, where actions are predicted */
    int64_t *event;              /* [windows]: first event of each window */
    int64_t *sequence;           /* [windows] */
    int32_t *segment;     /* [windows + shards]: window boundaries, as token indices within the shard; windows + 1 per
                         * shard */
    int *shard_window;    /* [shards + 1] */
    int *shard_token;     /* [shards + 1] */
    int *shard_targets;   /* [shards + 1] */
    int *shard_labels;    /* [shards + 1] */
    const lp_season *season; /* of target_season, with the floor of its gaps in seconds */
    double season_floor;

    /* Set with a batch vocabulary (batch_vocabulary.h). type, target and negative then are indices into the shard's
     * item list. */
    int negative_count, item_capacity; /* negative samples per target; capacity of a shard's item list, 0: no batch
                                        * vocabulary */
    int32_t *negative;                 /* [labels x negative_count] */
    int32_t *item;                     /* [shards x item_capacity] */
    float *logq;                       /* [shards x item_capacity]: logQ correction, added to the item's score in the
                                        * loss */
    int *shard_items;                  /* [shards] */

    /* Of networks that read them; otherwise NULL. */
    double *target_gap; /* [targets]: seconds from the event before to the target event; of an open target the
                                 * negative of those to the end of the observation */
    double
        *target_season;   /* [targets x 2]: integral of the season over the gap, in seconds, and its level at the end */
    int32_t *sequence_id; /* [tokens]: index of the sequence in the training data plus 1; 0: unknown */
    float *gap;           /* [tokens x LP_GAP_COLUMNS]: rows of lp_gap_row */
    float *target_gap_input;    /* [targets x LP_GAP_COLUMNS]: the same of the target event */
    int32_t *position_from_end; /* [tokens]: events after this one in the window */

    void *blocks[LP_FIELD_LIMIT + 31]; /* all arrays above; owned */
    int block_count;
    bool failed; /* out of memory */
} lp_batch;

/* Allocates a batch of up to `windows` windows of up to `context` tokens, whose events have `fields` fields. */
lapse_status lp_batch_init(lp_batch *batch, int windows, int context, int shards, int fields, lapse_error *error);
void lp_batch_clear(lp_batch *batch);

/* Allocates the batch vocabulary: `negatives` samples per target, `shared` samples per step, and a catalogue of
 * `types` items. Call once, after init. */
lapse_status lp_batch_init_vocabulary(lp_batch *batch, int negatives, int shared, int64_t types, lapse_error *error);

/* The largest shard in tokens, and in targets. */
int lp_batch_shard_tokens(const lp_batch *batch);
int lp_batch_shard_targets(const lp_batch *batch);

/* Fills the batch with `count` windows of the list from `first` on. */
void lp_batch_fill(lp_batch *batch, const lp_windows *list, int64_t first, int count, const lp_targets *targets,
                   bool target_known, const lp_event_columns *columns);

/* The inputs that only some networks read. */
typedef struct lp_batch_inputs {
    bool target_gap, sequence_id, gap, target_gap_input, position_from_end;
    const lp_season
        *season; /* of networks that read target_season, with the shortest gap that counts; otherwise NULL */
    double season_floor;
} lp_batch_inputs;

/* Adds inputs that only some networks read. Once, after init. */
lapse_status lp_batch_init_inputs(lp_batch *batch, lp_batch_inputs inputs, lapse_error *error);

/* Those of another batch. */
static inline lp_batch_inputs lp_batch_inputs_of(const lp_batch *batch)
{
    return (lp_batch_inputs){.target_gap = batch->target_gap != NULL,
                             .sequence_id = batch->sequence_id != NULL,
                             .gap = batch->gap != NULL,
                             .target_gap_input = batch->target_gap_input != NULL,
                             .position_from_end = batch->position_from_end != NULL,
                             .season = batch->season,
                             .season_floor = batch->season_floor};
}

/* The input of an event's gap, the time since the event before it in its sequence: (gap, 0), or (0, 1) for a NaN, which stands
 * for an event with none before it. */
enum { LP_GAP_COLUMNS = 2 };
static inline void lp_gap_row(float gap, float row[LP_GAP_COLUMNS])
{
    row[0] = isnan(gap) ? 0 : gap;
    row[1] = isnan(gap) ? 1 : 0;
}

/* Window boundaries of a shard: one more than its windows. */
static inline const int32_t *lp_batch_segments(const lp_batch *batch, int shard)
{
    return batch->segment + batch->shard_window[shard] + shard;
}

#endif
