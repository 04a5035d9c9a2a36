/* decoder.h: runs a network for queries about one growing history, and caches what it computed of earlier events (KV cache).
 *
 * Keys, values and bases of an event do not depend on the query time. The input of a deeper layer does: its row for event q is
 * computed for the time of event q + 1. So the rows of an event are final once the next event is known, and the rows of the newest
 * event are computed anew for each query. Before a query, all events but the newest that have no final rows yet go through the
 * part of the graph that computes cached rows, which ends at the last layer's input; then the newest event goes through all of it.
 * The same query about the same history gives the same bits.
 *
 * When the window slides, deeper layers have attended to an event that left it, and positions count from another event. All
 * cached rows are then computed again at the next query, except (without positions) those that depend on one event alone: the
 * first layer's queries, keys and values. With one layer and no positions all rows stay valid.
 *
 * Branches are continuations of the history, each by events of its own. They share the cached rows of the history, and each has
 * further rows. Queries about several branches are the rows of one run: products of matrices instead of products of vectors.
 *
 * A model that cannot decode incrementally (lp_model_row.incremental) runs the whole window for each query.
 */
#ifndef LP_DECODER_H
#define LP_DECODER_H

#include "model/runner.h"

/* The newest events of a history, oldest first. Views. */
typedef struct lp_history {
    int64_t count;
    const double *times;
    const int32_t *types;
    void *const *fields; /* int32_t of a category, float of a number */
    const float *gaps;   /* standardized; NaN: no event before. NULL: the model does not read them */
} lp_history;

/* Branches that can be queried together, and events of each after the history. */
typedef struct lp_branch_limits {
    int branches, events;
} lp_branch_limits;

typedef struct lp_decoder {
    const lapse_model *model;
    const lp_backend *backend;
    lp_network network;
    lp_plan plan;
    char *work, *scratch; /* owned */
    void **inputs;        /* by slot; owned */
    int32_t *position;    /* [rows of a run]; owned, as are the next seven */
    int32_t *position_from_end;
    double *time, *query_time;
    float *gap;               /* [rows of a run x LP_GAP_COLUMNS] */
    int32_t *target_position; /* [branches]: 0, 1, .. */
    int32_t *sequence_id;     /* all the same: of the sequence in the training data, plus 1; 0: unknown */
    double *attention_scores; /* [context]: of lp_decoder_attention */
    int64_t capacity;         /* events of a history */
    int samples;              /* parameter samples, each with its own cache */
    lp_value **cached;        /* the graph's cached matrices: rows, or transposed; owned */
    int cached_count;
    float *cache;       /* [samples][cached matrices]; owned */
    size_t sample_size; /* elements of `cache` of one sample */
    lp_branch_limits limits;
    float *branch_cache;       /* [samples][cached matrices][branches][limits.events + 1]; owned */
    size_t branch_sample_size; /* elements of `branch_cache` of one sample */
    void **branch_rows;        /* by slot: of the sample that runs; owned */
    bool incremental;          /* cached rows are used by later queries */
    bool rows_stay;            /* all of them stay valid when the window slides */
    bool event_rows_stay;      /* those that depend on one event alone do */
    int64_t first, final;      /* events first .. final - 1 have all their cached rows */
    int64_t event_final;       /* events before it have the rows that depend on one event alone */
    double origin;             /* of times: the first event of the window when the oldest cached row was computed */
    int constant_nodes;        /* nodes at the start of the graph that depend on parameters alone: run once */
    int event_nodes;           /* nodes, these included, that depend on one event alone */
    int cached_nodes;          /* nodes, these included, that compute cached rows */
} lp_decoder;

/* For histories of up to `capacity` events. */
lapse_status lp_decoder_init(lp_decoder *decoder, const lapse_model *model, int64_t capacity, lp_branch_limits limits,
                             lapse_error *error);
void lp_decoder_clear(lp_decoder *decoder);

/* Invalidates the cache: the history is another one. */
void lp_decoder_reset(lp_decoder *decoder);

/* The history is that of a sequence of the training data: its index plus 1. 0: unknown, as at first. Before a
 * query about the history. */
void lp_decoder_set_sequence(lp_decoder *decoder, int32_t sequence);

/* The history has lost its first `count` events. */
void lp_decoder_drop(lp_decoder *decoder, int64_t count);

/* A state of the cache, to which it can return after events have been appended and queried, but not after lp_decoder_drop or
 * lp_decoder_reset. Rows of the events before are not computed again, unless the window has moved and they depend on it. */
typedef struct lp_decoder_mark {
    int64_t first, final, event_final;
} lp_decoder_mark;

lp_decoder_mark lp_decoder_mark_of(const lp_decoder *decoder);
void lp_decoder_return(lp_decoder *decoder, lp_decoder_mark mark);

/* Called with the output of each parameter sample. */
typedef void (*lp_on_output)(void *context, const lp_outcome *outcome);

/* Predicts what follows the history at this time. Allocates nothing. */
void lp_decoder_query(lp_decoder *decoder, const lp_history *history, double time, lp_on_output on_output,
                      void *context);

/* A query about the newest events of `count` branches. The number of events of a branch is at most limits.events, and together with the
 * history at most `context`, where it is not 0. */
typedef struct lp_branch_query {
    int count;             /* at most limits.branches */
    const int32_t *branch; /* [count]: index of the branch */
    const int32_t
        *length; /* [count]: events of the branch after the history; 0: its newest event is the history's last */
    const double *event_time; /* [count]: of the newest event */
    const int32_t *type;
    const float *gap;   /* as in lp_history */
    const double *time; /* [count]: query times */
} lp_branch_query;

/* Predicts what follows each branch; the outputs have a row for each. The row of a branch's newest event stays in the cache as that of
 * an event whose successor is at the query time: the next query about the branch may be one event longer if its newest event
 * is at this time. Of an incremental model without fields. Allocates nothing. */
void lp_decoder_query_branches(lp_decoder *decoder, const lp_history *history, const lp_branch_query *query,
                               lp_on_output on_output, void *context);

/* Fills weights[0 .. events of the window - 1] with the attention probabilities of the newest event at this time: of a block
 * that the graph has (attention_weights.h), and of a head or, with -1, the mean over heads; the mean over parameter samples.
 * Allocates nothing. */
void lp_decoder_attention(lp_decoder *decoder, const lp_history *history, double time, int block, int head,
                          double *weights);

#endif
