/* test_hoist.c: constant folding does not change results, at every instruction-set level; and linear kernels on shapes that
 * vectors do not divide. */
#include "backend/cpu/cpu.h"
#include "graph/hoist.h"
#include "graph/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { TOKENS = 37, TYPES = 9, PLACES = 40, COLS = 18, WIDE = 35 };

/* A graph with event and position lookups, and its outputs. */
typedef struct network {
    lp_graph graph;
    lp_value *out, *joined, *pair;
} network;

static lp_value *weight(lp_graph *graph, const char *name, int rows, int cols)
{
    return lp_graph_parameter(graph, name, rows, cols, LP_INIT_NORMAL, 0.3);
}

/* A product with two heads, a product of positions with an addend, one added to a lookup, and one that is used twice. */
static void build(network *n)
{
    lp_graph *graph = &n->graph;
    *n = (network){.graph = {.value_count = 0}};
    lp_value *type = lp_graph_input(graph, "event", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *place = lp_graph_input(graph, "place", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *x = lp_graph_input(graph, "x", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, COLS);
    lp_value *z = lp_affine(graph, lp_embed(graph, weight(graph, "events", TYPES, COLS), type), 3, 0);
    lp_value *p = lp_embed(graph, weight(graph, "places", PLACES, COLS), place);
    lp_value *normal = lp_layer_norm(graph, z, weight(graph, "gain", 1, COLS), weight(graph, "logq", 1, COLS), 1e-5);
    lp_value *key = lp_linear(graph, lp_relu(graph, normal), weight(graph, "key", WIDE, COLS),
                              weight(graph, "key.bias", 1, WIDE), NULL, 1, true);
    lp_value *place_weight = weight(graph, "place", WIDE, COLS);
    n->pair = lp_linear(graph, p, place_weight, NULL, key, 1, true);
    lp_value *other =
        lp_linear(graph, x, weight(graph, "other", WIDE, COLS), weight(graph, "other.bias", 1, WIDE), NULL, 1, true);
    n->joined = lp_linear(graph, p, place_weight, NULL, other, 1, true);
    lp_value *twice = lp_linear(graph, x, weight(graph, "twice", WIDE, COLS), NULL, NULL, 1, true);
    lp_value *sum =
        lp_linear(graph, p, weight(graph, "third", WIDE, COLS), weight(graph, "third.bias", 1, WIDE), twice, 1, true);
    n->out = lp_linear(
        graph, lp_add(graph, x, x), weight(graph, "heads", 10, COLS / 2), NULL,
        lp_linear(graph, lp_add(graph, sum, twice), weight(graph, "last", 10, WIDE), NULL, NULL, 1, true), 2, true);
    lp_relu(graph, twice); /* unused */
    n->out->retained = n->joined->retained = n->pair->retained = true;
    assert_int_equal(lp_graph_status(graph, NULL), LAPSE_OK);
}

static int32_t types[TOKENS], places[TOKENS];
static double numbers[20000];

static void run(network *n, const lp_kernel *kernels, size_t real_size, double *out)
{
    lp_plan plan;
    lp_extent extent = {.longest = TOKENS};
    extent.rows[LP_ROWS_TOKENS] = TOKENS;
    lp_graph *graph = &n->graph;
    assert_int_equal(lp_plan_make(&plan, graph, &extent, real_size, NULL), LAPSE_OK);
    char *parameters = lp_alloc(graph->parameter_size, real_size), *x = lp_alloc(TOKENS * COLS, real_size);
    char *work = lp_alloc(plan.work_size, 1), *scratch = lp_alloc(plan.scratch_size, 1);
    assert_true(parameters && x && work && scratch && graph->parameter_size < 15000);
    for (size_t i = 0; i < graph->parameter_size + TOKENS * COLS; i++) {
        bool parameter = i < graph->parameter_size;
        char *to = parameter ? parameters + i * real_size : x + (i - graph->parameter_size) * real_size;
        if (real_size == sizeof(double))
            *(double *)(void *)to = numbers[i];
        else
            *(float *)(void *)to = (float)numbers[i];
    }
    void *inputs[] = {types, places, x};
    lp_run r = {.plan = &plan,
                .work = work,
                .scratch = scratch,
                .inputs = inputs,
                .parameters = parameters,
                .rows = {[LP_ROWS_TOKENS] = TOKENS}};
    for (int i = 0; i < graph->node_count; i++)
        kernels[graph->nodes[i]->op->id](graph->nodes[i], &r);
    const lp_value *wanted[] = {n->out, n->joined, n->pair};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < TOKENS * wanted[k]->cols; i++)
            *out++ = real_size == sizeof(double) ? ((double *)lp_run_data(&r, wanted[k]))[i]
                                                 : (double)((float *)lp_run_data(&r, wanted[k]))[i];
    lp_free(parameters);
    lp_free(x);
    lp_free(work);
    lp_free(scratch);
}

static int count_ops(const lp_graph *graph, lp_op_id id, bool fixed)
{
    int count = 0;
    for (int i = 0; i < graph->node_count; i++)
        count += graph->nodes[i]->op->id == id && lp_value_is_constant(graph->nodes[i]->outputs[0]) == fixed;
    return count;
}

enum { RESULTS = TOKENS * (10 + 2 * WIDE) };

static void check_same(network *n, const lp_kernel *kernels, size_t real_size, const double *wanted, double bound)
{
    static double got[RESULTS];
    run(n, kernels, real_size, got);
    for (int i = 0; i < RESULTS; i++)
        if (!(fabs(got[i] - wanted[i]) <= bound))
            fail_msg("element %d is %.9g, should be %.9g", i, got[i], wanted[i]);
}

static void the_same_is_computed(void **state)
{
    (void)state;
    static double wanted[RESULTS];
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 740);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (double)(float)(0.3 * lp_random_normal(&random));
    for (int t = 0; t < TOKENS; t++) {
        types[t] = (int32_t)lp_random_below(&random, TYPES);
        places[t] = t;
    }
    network n;
    build(&n);
    run(&n, lp_reference_kernels_double, sizeof(double), wanted);
    lp_graph_clear(&n.graph);
    for (int room = 0; room < 100000; room += room < 3000 ? 500 : 20000) {
        build(&n);
        assert_int_equal(lp_graph_hoist(&n.graph, (size_t)room, NULL), LAPSE_OK);
        check_same(&n, lp_reference_kernels_double, sizeof(double), wanted, 1e-12);
        check_same(&n, lp_reference_kernels_float, sizeof(float), wanted, 1e-4);
        for (int level = 0; lp_cpu_level_name(level); level++)
            check_same(&n, lp_cpu_level_kernels(level), sizeof(float), wanted, 1e-4);
        assert_int_equal(count_ops(&n.graph, LP_OP_RELU, false), room < 3 * TYPES * COLS ? 1 : 0);
        lp_graph_clear(&n.graph);
    }
}

static void rules_apply(void **state)
{
    (void)state;
    network n;
    build(&n);
    assert_int_equal(lp_graph_hoist(&n.graph, 1 << 20, NULL), LAPSE_OK);
    const lp_graph *graph = &n.graph;
    assert_int_equal(n.pair->producer->op->id, LP_OP_EMBED_PAIR);
    assert_int_equal(n.joined->producer->op->id, LP_OP_LINEAR);
    assert_null(n.joined->producer->inputs[2]); /* the bias is in the table */
    assert_int_equal(n.joined->producer->inputs[3]->producer->op->id, LP_OP_EMBED);
    assert_int_equal(count_ops(graph, LP_OP_LINEAR, false), 4); /* other, twice, last and heads */
    assert_int_equal(count_ops(graph, LP_OP_LAYER_NORM, false) + count_ops(graph, LP_OP_RELU, false), 0);
    assert_int_equal(count_ops(graph, LP_OP_TRANSPOSE, true), 4);
    for (int i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->op->id == LP_OP_LINEAR && !lp_value_is_constant(graph->nodes[i]->outputs[0]))
            assert_false(graph->nodes[i]->attributes.transpose);
    lp_graph_clear(&n.graph);
}

/* ---------------------------------------------------------------------------------------------- products ----- */

typedef struct product {
    int rows, in, out;
    bool transposed, bias, add;
} product;

static void multiply(const product *p, const lp_kernel *kernels, size_t real_size, double *out)
{
    static double x[220 * 300], w[300 * 300], more[220 * 300], one[300], y[220 * 300];
    static float floats[4][300 * 300];
    double *const from[] = {x, w, one, more};
    const int sizes[] = {p->rows * p->in, p->in * p->out, p->out, p->rows * p->out};
    void *inputs[4];
    lp_graph graph = {0};
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < sizes[k]; i++)
            floats[k][i] = (float)(from[k][i] = (double)(float)numbers[(i * 7 + k * 13) % 19997]);
        inputs[k] = real_size == sizeof(double) ? (void *)from[k] : (void *)floats[k];
    }
    lp_value *left = lp_graph_input(&graph, "x", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, p->in);
    lp_value *right = lp_graph_input(&graph, "w", LP_TYPE_REAL, LP_ROWS_FIXED, p->transposed ? p->in : p->out,
                                     p->transposed ? p->out : p->in);
    lp_value *bias = lp_graph_input(&graph, "bias", LP_TYPE_REAL, LP_ROWS_FIXED, 1, p->out);
    lp_value *add = lp_graph_input(&graph, "add", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, p->out);
    lp_value *result = lp_linear(&graph, left, right, p->bias ? bias : NULL, p->add ? add : NULL, 1, !p->transposed);
    lp_plan plan;
    lp_extent extent = {0};
    extent.rows[LP_ROWS_TOKENS] = p->rows;
    assert_int_equal(lp_plan_make(&plan, &graph, &extent, real_size, NULL), LAPSE_OK);
    lp_run r = {.plan = &plan, .work = (char *)y, .inputs = inputs, .rows = {[LP_ROWS_TOKENS] = p->rows}};
    kernels[LP_OP_LINEAR](result->producer, &r);
    for (int i = 0; i < sizes[3]; i++)
        out[i] = real_size == sizeof(double) ? y[i] : (double)((float *)(void *)y)[i];
    lp_graph_clear(&graph);
}

static void products_of_odd_shapes(void **state)
{
    (void)state;
    static const int rows[] = {1, 7, 16, 33, 199}, in[] = {3, 16, 17, 50, 160, 300};
    static const int out[] = {1, 15, 17, 18, 19, 20, 35, 50, 52, 100, 160, 209};
    static double wanted[220 * 300], got[220 * 300];
    for (int c = 0; c < 5 * 6 * 12; c++) {
        product p = {rows[c % 5], in[c / 5 % 6], out[c / 30], c % 2, c % 3 != 0, c % 7 < 3};
        multiply(&p, lp_reference_kernels_double, sizeof(double), wanted);
        for (int level = 0; lp_cpu_level_name(level); level++) {
            multiply(&p, lp_cpu_level_kernels(level), sizeof(float), got);
            for (int i = 0; i < p.rows * p.out; i++)
                if (!(fabs(got[i] - wanted[i]) <= 2e-5))
                    fail_msg(
                        "%s: [%d x %d] to %d columns, transposed %d, bias %d, add %d: element %d is %.9g, not %.9g",
                        lp_cpu_level_name(level), p.rows, p.in, p.out, p.transposed, p.bias, p.add, i, got[i],
                        wanted[i]);
        }
    }
}

/* Rows of a known basis are copied only where times are equal. */
static void a_basis_after(void **state)
{
    (void)state;
    double frequency[] = {0.3, 7, 1e-3}, time[] = {0, 5, 5, 9, 14}, query_time[] = {5, 5, 9, 11, 14};
    float known[5 * 6], u[5 * 6], wanted[5 * 6];
    for (int i = 0; i < 30; i++)
        known[i] = (float)(100 + i);
    lp_graph graph = {0};
    lp_value *times = lp_graph_input(&graph, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *moments = lp_graph_input(&graph, "query_time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *frequencies = lp_graph_input(&graph, "frequency", LP_TYPE_DOUBLE, LP_ROWS_FIXED, 1, 3);
    lp_value *basis = lp_cache_rows(&graph, lp_basis(&graph, times, frequencies));
    lp_value *after = lp_cache_rows(&graph, lp_basis_after(&graph, moments, times, basis));
    lp_value *plain = lp_cache_rows(&graph, lp_basis(&graph, moments, frequencies));
    assert_int_equal(lp_graph_status(&graph, NULL), LAPSE_OK);
    void *inputs[] = {time, query_time, frequency, known, u, wanted};
    lp_plan plan = {.graph = &graph, .real_size = sizeof(float)};
    lp_run r = {.plan = &plan, .inputs = inputs, .rows = {[LP_ROWS_TOKENS] = 5}};
    for (int level = 0; lp_cpu_level_name(level); level++) {
        lp_cpu_level_kernels(level)[LP_OP_BASIS](after->producer, &r);
        lp_cpu_level_kernels(level)[LP_OP_BASIS](plain->producer, &r);
        static const int from[] = {1, 1, 3, -1, 4};
        for (int t = 0; t < 5; t++)
            assert_memory_equal(u + 6 * t, from[t] < 0 ? wanted + 6 * t : known + 6 * from[t], 6 * sizeof *u);
    }
    assert_null(lp_basis_after(&graph, moments, frequencies, basis));
    lapse_error error = {0};
    lp_graph_status(&graph, &error);
    assert_string_equal(error.message, "graph: basis needs the times of the known basis");
    lp_graph_clear(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_computed),
        cmocka_unit_test(rules_apply),
        cmocka_unit_test(products_of_odd_shapes),
        cmocka_unit_test(a_basis_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
