/* graph_case.h: a graph with random leaves that runs on any kernels or backend, for tests of ops and graphs.
 *
 * Leaves are held as doubles that a float can hold exactly, so float and double kernels see the same numbers. Work,
 * scratch and gradients are filled with NaN before a run, so that reads of uninitialized memory show.
 */
#ifndef LP_GRAPH_CASE_H
#define LP_GRAPH_CASE_H

#include "backend/backend.h"

enum { CASE_VALUES = 1024, CASE_SEGMENTS = 320 };

typedef struct graph_case {
    lp_graph graph;
    lp_plan plan;
    int rows[LP_ROWS_COUNT], segments; /* rows by lp_rows */
    int32_t segment[CASE_SEGMENTS + 1];
    double gap;                  /* mean seconds between events */
    double *inputs[CASE_VALUES]; /* by slot; elements in rows */
    double *parameters;          /* graph.parameter_size */
    int output_count;            /* outputs with seeds */
    lp_value *outputs[LP_NODE_OUTPUTS], *seeds[LP_NODE_OUTPUTS];
    uint64_t first_token;
    int misalign; /* misalignment of inputs in bytes */
    lp_precision precision;
    bool in_order; /* on a backend: nodes in order, without its schedule */
} graph_case;

/* Results by value id (NULL: not collected); gradients of parameters as one block. */
typedef struct graph_result {
    double *values[CASE_VALUES];
    double *gradients;
} graph_result;

/* Adds seeds for the outputs of node (except the second, which only gradients use) and the gradients. */
void graph_case_gradients(graph_case *this, lp_node *node);
/* Sizes of segments; 0 of them is an empty shard. */
void graph_case_segments(graph_case *this, const int *lengths, int count);
/* Random leaves. */
void graph_case_fill(graph_case *this, lp_random *random);
/* Plans and runs. The result has the retained values. */
void graph_case_run(graph_case *this, size_t real_size, const lp_kernel *kernels, graph_result *result);
/* The same on a backend, planned for `extra_tokens` more tokens, `times` times with the same buffers; returns the last
 * result. Earlier runs have zero parameters, so that stale results show. */
void graph_case_run_on(graph_case *this, const lp_backend *backend, int extra_tokens, int times, graph_result *result);
/* sum of outputs * seeds */
double graph_case_loss(const graph_case *this, const graph_result *result);
void graph_case_clear(graph_case *this);
void graph_result_clear(graph_result *result);

int graph_case_elements(const graph_case *this, const lp_value *value);

#endif
