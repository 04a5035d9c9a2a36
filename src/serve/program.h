/* program.h: what queries to a model need and no history changes: the decoding graph and its plan, tables computed from parameters
 * alone, and the transposed item vectors. Built once per model, by the first query, and shared by all sessions and threads: immutable
 * from then on.
 *
 * The nodes are ordered by what they depend on, so that each part of the work is a range of nodes: parameters alone (run
 * once, into `inputs`), the time of an event alone, each event once, the query.
 */
#ifndef LP_PROGRAM_H
#define LP_PROGRAM_H

#include "model/runner.h"

struct lp_decoder;

typedef struct lp_program {
    const lapse_model *model;
    const lp_backend *backend;
    lp_network network; /* empty for baselines, as is what follows up to `items` */
    lp_plan plan;
    int rows;          /* rows of one run about branches or several histories, at most */
    int samples;       /* parameter samples, each with cached rows of its own */
    lp_value **cached; /* the graph's cached matrices, those that sessions store first; owned */
    int stored_count, cached_count;
    bool incremental;   /* cached rows are used by later queries */
    int constant_nodes; /* nodes at the start of the graph that depend on parameters alone: `inputs` has their outputs */
    int window_nodes;   /* nodes, these included, that compute the cached rows that are not stored */
    int cached_nodes;   /* nodes, these included, that compute cached rows */
    void **inputs;      /* by slot: outputs of the constant nodes, otherwise NULL; owned */
    char *constants;    /* owned */
    float *items; /* [dims x stride]: transposed item vectors of a recommender; NULL: the catalogue is too large */
    size_t stride;
    uint64_t identity; /* a hash of the model's names and tensors: two models with the same one compute the same */
    struct lp_decoder *idle; /* decoders that no thread uses now (decoder.h); changed under `lock` */
    bool lock;
} lp_program;

/* The program of a model; any thread may call it. */
lapse_status lp_program_of(const lapse_model *model, lp_program **program, lapse_error *error);

/* Tokens of a run, at most. */
static inline size_t lp_program_tokens(const lp_program *program)
{
    int context = program->model->config.context;
    return (size_t)(context > program->rows ? context : program->rows);
}

#endif
