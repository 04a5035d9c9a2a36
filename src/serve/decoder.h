/* decoder.h: runs a model's decoding program for queries about growing histories: the memory of one thread.
 *
 * Before a query, all events but the newest that have no final rows yet (row_cache.h) go through the part of the graph that computes
 * cached rows, which ends at the last layer's input; then the newest event goes through all of it. The same query about
 * the same history gives the same bits.
 *
 * Branches are continuations of the history, each by events of its own. They share the cached rows of the history, and each has
 * further rows. Queries about several branches are the rows of one run: products of matrices instead of products of vectors.
 *
 * A model that cannot decode incrementally (lp_model_row.incremental) runs the whole window for each query.
 *
 * Bases of times are not stored in sessions. A thread computes those of the window that it queries, and keeps them for the next query
 * about the same session.
 *
 * A thread borrows a decoder from the program for as long as it queries: as many are made as threads query at once.
 */
#ifndef LP_DECODER_H
#define LP_DECODER_H

#include "serve/answer.h"
#include "serve/row_cache.h"

/* A field of an event: the id of a category, or a standardized number. */
typedef union lp_field_number {
    int32_t category;
    float number;
} lp_field_number;

/* The events of a history, oldest first. Views. */
typedef struct lp_history {
    int64_t count;
    const double *times;
    const int32_t *types;
    void *const *fields; /* int32_t of a category, float of a number */
    const float *gaps;   /* standardized; NaN: no event before. NULL: the model does not read them */
    int32_t sequence;    /* of the training data: its index plus 1; 0: unknown */
} lp_history;

/* Rows of branches: those of the events that each has after the history, and of its newest. */
typedef struct lp_branch_rows {
    int branches, events; /* at most: branches, and events of each after the history */
    float *data;          /* [samples][cached matrices][branches][events + 1]; owned */
    size_t sample_size;   /* elements of one sample */
} lp_branch_rows;

lapse_status lp_branch_rows_init(lp_branch_rows *rows, const lp_program *program, int branches, int events,
                                 lapse_error *error);
void lp_branch_rows_clear(lp_branch_rows *rows);

typedef struct lp_decoder {
    lp_program *program;
    struct lp_decoder *next; /* of the idle ones */
    char *work, *scratch;    /* owned */
    void **inputs;           /* by slot; owned */
    int32_t *position;       /* [tokens of a run]; owned, as are the next six */
    int32_t *position_from_end;
    double *time, *query_time;
    float *gap; /* [tokens of a run x LP_GAP_COLUMNS] */
    int32_t *sequence_id;
    int32_t *target_position; /* [rows of a run]: 0, 1, .. */
    double *attention_scores; /* [context]: of lp_decoder_attention; owned */
    float *
        window; /* the cached matrices that sessions do not store, [window_rows x columns] each: of the histories of a run; owned */
    int64_t window_rows;
    lp_run_transposed basis; /* of the window of a run about one history; its memory is owned */
    uint64_t window_stamp;   /* of the history and the parameter sample that it has the rows of; 0: of several */
    int window_sample;
    int64_t window_final; /* event after the last one that it has a row of */
    float *fresh; /* [cached matrices][rows of a run]: those of the newest events of a run about branches; owned */
    void **history_rows, **branch_slots; /* by slot: of the sample that runs; owned */
    lp_run_history *histories;           /* [rows of a run]: of a query about several; owned, as are the next three */
    void **histories_slots;              /* [rows of a run x slots] */
    int32_t *type;                       /* [rows of a run]: of their newest events */
    lp_field_number *fields;             /* [fields x rows of a run] */
    lp_branch_rows at_times;             /* of a query about several times: made by the first */
    lp_answer answer;                    /* of the newest query */
} lp_decoder;

/* Takes an idle decoder of the model's program, or makes one, until lp_decoder_return. Any thread may call both. */
lapse_status lp_decoder_borrow(const lapse_model *model, lp_decoder **decoder, lapse_error *error);
void lp_decoder_return(lp_decoder *decoder);
void lp_decoder_free(lp_decoder *decoder);

/* Predicts what follows the history at this time; the rows of its events are cached. Allocates only what the cache grows by. */
lapse_status lp_decoder_query(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, double time,
                              lapse_error *error);

/* How many of these histories, from the first on, can be the rows of one run: at least 1. */
int lp_decoder_most(const lp_decoder *decoder, int count, const lp_history *histories);

/* Predicts what follows each of `count` different histories, at most lp_decoder_most, at its time, in one run; the answer has a row for
 * each, with the bits of lp_decoder_query. Of an incremental model. */
lapse_status lp_decoder_query_many(lp_decoder *decoder, int count, lp_row_cache *const *caches,
                                   const lp_history *histories, const double *times, lapse_error *error);

/* A query about the newest events of `count` branches, at most those of the rows and of a run. The number of events of a branch
 * together with the history is at most `context`, where it is not 0. */
typedef struct lp_branch_query {
    int count;
    const int32_t *branch; /* [count]: index of the branch */
    const int32_t
        *length; /* [count]: events of the branch after the history; 0: its newest event is the history's last */
    const double *event_time; /* [count]: of the newest event */
    const int32_t *type;
    const int32_t *source; /* [count]: the event of the history whose fields the newest event has */
    const float *gap;      /* as in lp_history */
    const double *time; /* [count]: query times */
} lp_branch_query;

/* Predicts what follows each branch; the answer has a row for each. The row of a branch's newest event stays in `rows` as that of
 * an event whose successor is at the query time: the next query about the branch may be one event longer if its newest event
 * is at this time. Of an incremental model. */
lapse_status lp_decoder_query_branches(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history,
                                       lp_branch_rows *rows, const lp_branch_query *query, lapse_error *error);

/* Fills weights[0 .. events of the window - 1] with the attention probabilities of the newest event at this time: of a block
 * that the graph has (attention_weights.h), and of a head or, with -1, the mean over heads; the mean over parameter samples. */
lapse_status lp_decoder_attention(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, double time,
                                  int block, int head, double *weights, lapse_error *error);

#endif
