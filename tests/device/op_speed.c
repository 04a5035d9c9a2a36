/* op_speed.c: times every op except the catalogue losses on a GPU, forward and backward, and prints its throughput. Needs a GPU; the
 * test command only builds it.
 *
 *   op_speed [fp32|tf32|bf16] [TOKENS]                               ops at the sizes of a step on MovieLens
 *   op_speed PRECISION TOKENS COLS HEADS TIME_COLUMNS CONTEXT ...    attention alone, at one or more sizes
 *
 * Every node is launched and timed alone; then whole graphs are replayed, as in training. tests/unit/test_cuda_ops.c checks results.
 */
#include "support/graph_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIMS = 50, FREQUENCIES = 50, ITEMS = 3416, RUNS = 20, REPLAYS = 200, SEGMENTS = 60 };

static const lp_backend *device;
static lp_precision precision;
static int tokens = 15261;
static bool whole; /* times whole graphs instead of nodes */
static double by_node[CASE_VALUES];
static int runs;

/* The first runs only warm up. */
static void add_launch(void *context, const lp_launch *launch)
{
    (void)context;
    if (runs >= RUNS)
        by_node[launch->parts[0].node] += launch->seconds / RUNS;
}

static void run_and_add(void *context, const lp_run *run)
{
    lp_profiler profiler = {add_launch, NULL};
    device->run_profiled(context, run, &profiler);
    runs++;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The second half of REPLAYS runs is timed. */
static double replay_start, replay_seconds;

static void run_and_clock(void *context, const lp_run *run)
{
    runs++;
    if (runs == REPLAYS / 2) {
        device->sync(context);
        replay_start = now();
    }
    device->run(context, run);
    if (runs == REPLAYS) {
        device->sync(context);
        replay_seconds = (now() - replay_start) / (REPLAYS - REPLAYS / 2 + 1);
    }
}

static void replay(graph_case *this)
{
    lp_backend clocked = *device;
    graph_result result;
    clocked.run = run_and_clock;
    runs = 0;
    graph_case_run_on(this, &clocked, 10000, REPLAYS, &result);
    printf("all %d nodes, replayed: %.2f us\n", this->graph.node_count, 1e6 * replay_seconds);
    graph_result_clear(&result);
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
           node->attributes.transpose ? " t" : "  ", node->accumulate ? " +" : "  ", 1e6 * seconds,
           1e-9 * cost.bytes / seconds, 1e-12 * cost.flop / seconds);
}

static void time_nodes(graph_case *this)
{
    lp_backend timed = *device;
    graph_result result;
    timed.run = run_and_add;
    memset(by_node, 0, sizeof by_node);
    runs = 0;
    graph_case_run_on(this, &timed, 10000, 2 * RUNS, &result);
    graph_result_clear(&result);
    lp_extent extent = {.longest = 200};
    for (int type = 0; type < LP_ROWS_COUNT; type++)
        extent.rows[type] = this->rows[type];
    for (int i = 0; i < this->graph.node_count; i++)
        say(this->graph.nodes[i], by_node[i], &extent);
}

/* Times the nodes of this loss and of its gradient. */
static void time_loss(graph_case *this, lp_value *loss, const char *name)
{
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 0);
    graph_case_gradients(this, loss->producer);
    graph_case_fill(this, &random);
    this->precision = precision;
    printf("-- %s\n", name);
    if (whole)
        replay(this);
    else
        time_nodes(this);
    fflush(stdout);
    graph_case_clear(this);
}

/* The same with a loss of this matrix of tokens. */
static void time_graph(graph_case *this, lp_value *logits, const char *name)
{
    lp_value *target = lp_graph_input(&this->graph, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    time_loss(this, lp_cross_entropy(&this->graph, logits, target), name);
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

/* A matrix computed on the device, so that uploads stay small. */
static lp_value *events(lp_graph *graph, const char *name, int cols)
{
    char ids[40];
    snprintf(ids, sizeof ids, "%s.ids", name);
    lp_value *table = lp_example_fixed(graph, name, ITEMS, cols);
    return lp_embed(graph, table, lp_graph_input(graph, ids, LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1));
}

static void time_products(int in, int out, bool transpose)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *x = events(graph, "x", in);
    lp_value *w = lp_example_fixed(graph, "w", transpose ? out : in, transpose ? in : out);
    lp_value *y = lp_linear(graph, x, w, lp_example_fixed(graph, "bias", 1, out), NULL, 1, transpose);
    time_graph(&this, lp_linear(graph, x, w, NULL, y, 1, transpose), "products");
}

static void time_rows(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *gain = lp_example_fixed(graph, "gain", 1, DIMS), *shift = lp_example_fixed(graph, "logq", 1, DIMS);
    lp_value *x = lp_dropout(graph, events(graph, "x", DIMS), 0.2);
    lp_value *y = lp_layer_norm(graph, lp_relu(graph, x), gain, shift, 1e-5);
    time_graph(&this, lp_add(graph, x, y), "rows of 50");
}

static void time_time(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *time = lp_graph_input(graph, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *log_period = lp_graph_parameter(graph, "log_period", 1, FREQUENCIES / 5, LP_INIT_NORMAL, 1);
    lp_value *u = lp_basis(graph, time, lp_harmonics(graph, log_period, 5));
    lp_value *x = events(graph, "x", 2 * FREQUENCIES);
    time_graph(&this, lp_reflect(graph, lp_reflect(graph, x, u), u), "time");
}

static void time_weights(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *w = lp_example_fixed(graph, "w", DIMS, 2 * FREQUENCIES);
    lp_value *scale = lp_example_fixed(graph, "scale", 1, 2 * FREQUENCIES);
    lp_value *first = lp_example_fixed(graph, "first", DIMS, DIMS);
    lp_value *product = lp_scale_columns(graph, lp_linear(graph, first, w, NULL, NULL, 1, false), scale);
    time_graph(&this, lp_linear(graph, events(graph, "x", DIMS), product, NULL, NULL, 1, false), "weights");
}

/* Binary cross-entropy with one negative at every position. */
static void time_choices(void)
{
    graph_case this = start();
    lp_graph *graph = &this.graph;
    lp_value *items = lp_example_fixed(graph, "items", ITEMS, DIMS), *bias = lp_example_fixed(graph, "bias", ITEMS, 1);
    lp_value *type = lp_graph_input(graph, "event", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *negative = lp_graph_input(graph, "negative", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *z = lp_embed(graph, items, type);
    time_loss(&this, lp_sampled_loss(graph, z, items, bias, target, negative, LP_LOSS_BCE, 0, LP_SCORE_PRODUCT), "choices");
}

/* Segments of `context` tokens and of a fifth of that, in turn. */
static void time_attention(int cols, int heads, int extra, int context)
{
    graph_case this = {.gap = 3600};
    int lengths[CASE_SEGMENTS], count = 0;
    for (int left = tokens, length; left > 0 && count < CASE_SEGMENTS; left -= length) {
        length = count % 2 ? context / 5 : context;
        length = length < left ? length : left;
        lengths[count++] = length;
    }
    graph_case_segments(&this, lengths, count);
    lp_graph *graph = &this.graph;
    lp_value *time_query = extra ? events(graph, "time_query", heads * extra) : NULL, *time_out = NULL;
    lp_value *basis = extra ? events(graph, "basis", extra) : NULL;
    lp_value *out = lp_attention(graph, events(graph, "query", cols), events(graph, "key", cols),
                                 events(graph, "value", cols), time_query, basis, heads, 0.05, 0.2, &time_out);
    if (time_out)
        out = lp_linear(graph, time_out, lp_example_fixed(graph, "w", heads * extra, cols), NULL, out, 1, false);
    char name[80];
    snprintf(name, sizeof name, "attention of %d columns, %d heads, %d time columns, context %d", cols, heads, extra,
             context);
    time_graph(&this, out, name);
}

int main(int argc, char **argv)
{
    lapse_error error = {0};
    for (int i = 0; argc > 1 && lp_precision_names[i]; i++)
        if (strcmp(argv[1], lp_precision_names[i]) == 0)
            precision = (lp_precision)i;
    tokens = argc > 2 ? atoi(argv[2]) : tokens;
    if (lp_backend_open("cuda", &device, &error) != LAPSE_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%d tokens, %s\n", tokens, lp_precision_names[precision]);
    for (int i = 3; i + 3 < argc; i += 4)
        time_attention(atoi(argv[i]), atoi(argv[i + 1]), atoi(argv[i + 2]), atoi(argv[i + 3]));
    if (argc > 3)
        return 0;
    for (int i = 0; i < 2; i++) {
        whole = i == 1;
        time_products(DIMS, DIMS, true);
        time_products(2 * FREQUENCIES, DIMS, true);
        time_products(DIMS, 2 * FREQUENCIES, false);
        time_rows();
        time_time();
        time_weights();
        time_choices();
    }
    return 0;
}
