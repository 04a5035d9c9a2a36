/* decoder.h: a network that is asked about one growing history, and keeps what it computed of its events.
 *
 * Keys, values and bases of an event never depend on the query time. What enters a deeper block does: the row of
 * event q there is made for the moment of event q + 1. So a row is final (settled) once the next event is known, and the
 * newest one is made anew for each question. Before a question the events but the newest that are not settled yet go
 * through the network as far as their rows need, which ends at the last block's input; then the newest goes
 * through all of it. So the same question gets the same bits again.
 *
 * When the window slides, deeper blocks have seen an event that is no longer there, and places count from another event:
 * all rows are made again, by the next question; but without places, what the first block sees of events by themselves (queries,
 * keys, values) stays. With one block and no places all rows stay. Where times are measured from
 * the query time (projection mlp), nothing is kept.
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
} lp_history;

typedef struct lp_decoder lp_decoder;

struct lp_decoder {
    const lapse_model *model;
    const lp_backend *backend;
    lp_network network;
    lp_plan plan;
    char *work, *scratch; /* owned */
    void **inputs;        /* by slot; owned */
    int32_t *position;    /* [context]; owned, as are the next two */
    double *time, *query_time;
    int64_t capacity; /* events of a history */
    lp_value **parts; /* what is kept of events: rows, or matrices on their side; owned */
    int part_count;
    float *rows;            /* for each draw its parts, one behind the other; owned */
    size_t draw_size;       /* elements of `rows` for one draw */
    bool keeps, slides;     /* rows stay from question to question; also when the window moves on */
    bool renews;            /* when the window moves on, those rows stay that are an event's alone */
    int64_t first, settled; /* events first .. settled - 1 have all their rows */
    int64_t known; /* those before it, the settled ones and maybe more, have the rows that are an event's alone */
    double origin; /* of times: the first event there was when the oldest kept row was made */
    int fixed;     /* nodes at the start of the graph that compute from parameters alone */
    int alone;     /* nodes, these included, that see events by themselves */
    int settling;  /* nodes, these included, that rows are made by */
};

/* For histories of up to `capacity` events. */
lapse_status lp_decoder_init(lp_decoder *decoder, const lapse_model *model, int64_t capacity, lapse_error *error);

void lp_decoder_clear(lp_decoder *decoder);

/* The history is another one now. */
void lp_decoder_reset(lp_decoder *decoder);

/* The history has lost its first `count` events, all of them before its last `context`. */
void lp_decoder_drop(lp_decoder *decoder, int64_t count);

/* Reads the answer of one draw. */
typedef void (*lp_on_answer)(void *context, const lp_outcome *outcome);

/* Asks what comes after the history at this time. Allocates nothing. */
void lp_decoder_query(lp_decoder *decoder, const lp_history *history, double time, lp_on_answer on_answer,
                      void *context);

#endif
