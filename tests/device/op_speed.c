/* op_speed.c: how long each op but attention and the losses takes on a GPU at the sizes of a step on MovieLens, forward and back, and what
 * share of the machine that is. Needs a GPU, and so is built but not run where tests run.
 *
 *   op_speed [fp32|tf32] [TOKENS]
 *
 * Every node is launched by itself and timed by the device. Right results are the matter of tests/unit/test_cuda_ops.c.
 */
#include "support/graph_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 50, FREQUENCIES = 50, ITEMS = 3416, RUNS = 20, SEGMENTS = 60 };

static const lp_backend *device;
static lp_precision precision;
static int tokens = 15261;
static double by_node[CASE_VALUES];
static int runs;

/* The first runs only warm up. */
static void run_and_add(const lp_run *run)
{
    double seconds[CASE_VALUES];
    device->run_timed(run, seconds);
    for (int i = 0; runs >= RUNS && i < run->plan->graph->node_count; i++)
        by_node[i] += seconds[i] / RUNS;
    runs++;
}

static void say(const lp_node *node, double seconds, const lp_extent *extent)
{
    char shape[80] = "";
    size_t length = 0;
    for (int k = 0; k < node->op->input_count && length < sizeof shape; k++)
        if (node->inputs[k])
            length += (size_t)snprintf(shape + length, sizeof shape - length, " %lldx%d",
                                       (long long)lp_value_rows(node->inputs[k], extent), node->inputs[k]->cols);
    lp_cost cost = node->op->cost ? node->op->cost(node, extent) : (lp_cost){0, 0};
    printf("%-22s%-42s%s%s %7.2f us %8.1f GB/s %7.3f TFLOP/s\n", node->op->name, shape,
           node->with.transpose ? " t" : "  ", node->accumulate ? " +" : "  ", 1e6 * seconds,
           1e-9 * cost.bytes / seconds, 1e-12 * cost.flop / seconds);
}

/* A graph ends in this value; its nodes and those of its gradient are timed. */
static void time_graph(graph_case *this, lp_value *end, const char *name)
{
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 0);
    lp_backend timed = *device;
    graph_result result;
    timed.run = run_and_add;
    graph_case_gradients(this, end->maker);
    graph_case_fill(this, &random);
    this->precision = precision;
    memset(by_node, 0, sizeof by_node);
    runs = 0;
    graph_case_run_on(this, &timed, 10000, 2 * RUNS, &result);
    lp_extent extent = {.longest = 200};
    for (int kind = 0; kind < LP_ROWS_COUNT; kind++)
        extent.rows[kind] = this->rows[kind];
    printf("-- %s\n", name);
    for (int i = 0; i < this->graph.node_count; i++)
        say(this->graph.nodes[i], by_node[i], &extent);
    fflush(stdout);
    graph_result_clear(&result);
    graph_case_clear(this);
}

static graph_case start(void)
{
    graph_case this = {.gap = 3600};
    int lengths[SEGMENTS];
    for (int i = 0; i < SEGMENTS; i++)
        lengths[i] = tokens * (i + 1) / SEGMENTS - tokens * i / SEGMENTS;
    graph_case_segments(&this, lengths, SEGMENTS);
    return this;
}

static void time_products(int in, int out, bool transpose)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *x = lp_example_tokens(graph, "x", in), *add = lp_example_tokens(graph, "add", out);
    lp_value *w = lp_example_fixed(graph, "w", transpose ? out : in, transpose ? in : out);
    lp_value *y = lp_linear(graph, x, w, lp_example_fixed(graph, "bias", 1, out), NULL, 1, transpose);
    time_graph(&this, lp_linear(graph, x, w, NULL, lp_add(graph, y, add), 1, transpose), "products");
}

static void time_rows(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *ids = lp_graph_input(graph, "ids", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *table = lp_example_fixed(graph, "table", ITEMS, DIMS);
    lp_value *gain = lp_example_fixed(graph, "gain", 1, DIMS), *shift = lp_example_fixed(graph, "shift", 1, DIMS);
    lp_value *x = lp_dropout(graph, lp_embed(graph, table, ids), 0.2);
    lp_value *y = lp_layer_norm(graph, lp_relu(graph, x), gain, shift, 1e-5);
    time_graph(&this, lp_add(graph, x, y), "rows of 50");
}

static void time_time(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *time = lp_graph_input(graph, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *log_period = lp_graph_parameter(graph, "log_period", 1, FREQUENCIES / 5, LP_START_NORMAL, 1);
    lp_value *u = lp_basis(graph, time, lp_harmonics(graph, log_period, 5));
    lp_value *x = lp_example_tokens(graph, "x", 2 * FREQUENCIES);
    time_graph(&this, lp_reflect(graph, lp_reflect(graph, x, u), u), "time");
}

static void time_weights(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *w = lp_example_fixed(graph, "w", DIMS, 2 * FREQUENCIES);
    lp_value *scale = lp_example_fixed(graph, "scale", 1, 2 * FREQUENCIES);
    lp_value *first = lp_example_fixed(graph, "first", DIMS, DIMS);
    time_graph(&this, lp_scale_columns(graph, lp_linear(graph, first, w, NULL, NULL, 1, false), scale), "weights");
}

int main(int argc, char **argv)
{
    lapse_error error = {0};
    precision = argc > 1 && strcmp(argv[1], "tf32") == 0 ? LP_PRECISION_TF32 : LP_PRECISION_FP32;
    tokens = argc > 2 ? atoi(argv[2]) : tokens;
    if (lp_backend_open("cuda", &device, &error) != LAPSE_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%d tokens, %s\n", tokens, precision == LP_PRECISION_FP32 ? "fp32" : "tf32");
    time_products(DIMS, DIMS, true);
    time_products(2 * FREQUENCIES, DIMS, true);
    time_products(DIMS, 2 * FREQUENCIES, false);
    time_rows();
    time_time();
    time_weights();
    return 0;
}
