/* graph_case.h: a graph with random leaves, run on any kernels: what the tests of ops and graphs share.
 *
 * Leaves are held as doubles that a float can hold exactly, so float and double kernels see the same numbers. Work,
 * scratch and gradients are filled with NaN before a run: whatever reads what nobody wrote, shows.
 */
#ifndef LP_GRAPH_CASE_H
#define LP_GRAPH_CASE_H

#include "backend/backend.h"

enum { CASE_VALUES = 1024, CASE_SEGMENTS = 320 };

typedef struct graph_case {
    lp_graph graph;
    lp_plan plan;
    int rows[LP_ROWS_COUNT], segments; /* rows of each event type that is not FIXED */
    int32_t segment[CASE_SEGMENTS + 1];
    double gap;                  /* mean seconds between events */
    double *inputs[CASE_VALUES]; /* by slot; elements in rows */
    double *parameters;          /* graph.parameter_size */
    int output_count;            /* what the gradients are of */
    lp_value *outputs[LP_NODE_OUTPUTS], *seeds[LP_NODE_OUTPUTS];
    uint64_t first_token;
    int misalign; /* bytes by which inputs are put off their alignment */
    lp_precision precision;
    bool in_order; /* on a backend: node by node, not as it would arrange them */
} graph_case;

/* What a run gave, by value id (NULL: not looked at); gradients of parameters as one block. */
typedef struct graph_result {
    double *values[CASE_VALUES];
    double *gradients;
} graph_result;

/* Seeds for the outputs of node (all but the second, which is for gradients only), and the gradients. */
void graph_case_gradients(graph_case *this, lp_node *node);
/* Sizes of segments; 0 of them is an empty shard. */
void graph_case_segments(graph_case *this, const int *lengths, int count);
/* Random leaves. */
void graph_case_fill(graph_case *this, lp_random *random);
/* Plans and runs. Values marked kept are in the result. */
void graph_case_run(graph_case *this, size_t real_size, const lp_kernel *kernels, graph_result *result);
/* The same through a backend and buffers of its own, planned for `room` more tokens than there are, `times` times over with the
 * same buffers: the result is that of the last. Parameters are zeros before that, so that what is left of an earlier run is wrong. */
void graph_case_run_on(graph_case *this, const lp_backend *backend, int room, int times, graph_result *result);
/* sum of outputs * seeds */
double graph_case_loss(const graph_case *this, const graph_result *result);
void graph_case_clear(graph_case *this);
void graph_result_clear(graph_result *result);

int graph_case_elements(const graph_case *this, const lp_value *value);

#endif
