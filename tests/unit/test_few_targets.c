/* test_few_targets.c: a network for evaluation with few targets, whose last block attends from these alone, has the parameters and the
 * outputs of the network that computes all tokens: in double, at every instruction-set level, and with the CUDA kernels, on the emulated
 * device or on a GPU if the environment variable LAPSE_TEST_DEVICE is cuda. */
#include "backend/cpu/cpu.h"
#include "model/model.h"
#include "support/device_check.h"
#include "support/small_data.h"
#include "support/small_model.h"
#ifdef LAPSE_EMULATED
#include "support/test_device.h"
#endif

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const lp_backend *device; /* NULL: there is none */

static int find_device(void **state)
{
    (void)state;
#ifdef LAPSE_EMULATED
    device = test_device_open();
    return device ? 0 : -1;
#else
    return 0;
#endif
}

typedef struct variant {
    const char *model;
    int dims, blocks, heads;
    const char *options[8]; /* names and values */
} variant;

static const variant variants[] = {
    {"attention", 8, 2, 1, {"encoding", "mercer"}},
    {"attention", 12, 1, 3, {"encoding", "mercer"}},
    {"attention", 50, 2, 1, {"encoding", "bochner", "periods", "11"}},
    {"attention", 72, 3, 4, {"encoding", "bochner", "periods", "70"}},
    {"attention", 8, 2, 2, {"encoding", "bochner-normal", "frequency-samples", "2"}},
    {"attention", 7, 2, 1, {"encoding", "position"}},
    {"attention", 10, 1, 2, {"encoding", "none"}},
    {"attention", 8, 2, 2, {"projection", "mlp-query"}},
    {"attention", 8, 2, 2, {"projection", "mlp"}},
    {"attention", 8, 2, 2, {"projection", "mlp", "encoding", "position"}},
    {"attention", 8, 2, 2, {"combine", "add"}},
    {"attention", 8, 1, 4, {"combine", "add", "encoding", "position"}},
    {"attention", 8, 2, 2, {"combine", "add", "projection", "mlp-query"}},
    {"sasrec", 12, 2, 3, {NULL}},
    {"sasrec", 33, 1, 1, {"encoding", "mercer"}},
};

/* The network of a variant, and random leaves: the same ones for both networks, because these declare the same inputs and parameters. */
static void start(graph_case *this, const variant *v, bool few_targets, lp_task task, lp_value **output)
{
    static const struct {
        int count, lengths[4];
    } shards[] = {{3, {33, 1, 70}}, {1, {129}}, {4, {2, 1, 16, 31}}};
    lp_network network;
    lapse_error error = {0};
    lp_model_config config = small_config_of(lp_model_row_find(v->model), v->dims);
    lp_random random = lp_random_start((uint64_t)(v - variants), LP_PURPOSE_TEST, 460);
    int shard = (int)(v - variants) % 3;
    config.task = task;
    config.context = 150;
    small_config_number(&config, "blocks", v->blocks);
    small_config_number(&config, "heads", v->heads);
    small_config_set(&config, "periods", "3");
    small_config_set(&config, "harmonics", "2");
    small_config_set(&config, "period-min", "1m");
    small_config_set(&config, "period-max", "30d");
    for (int i = 0; v->options[i]; i += 2)
        small_config_set(&config, v->options[i], v->options[i + 1]);
    if (lp_network_build_evaluation(&network, &config, few_targets, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    assert_true(network.graph.value_count <= CASE_VALUES);
    *this = (graph_case){.graph = network.graph, .gap = 1};
    graph_case_segments(this, shards[shard].lengths, shards[shard].count);
    this->rows[LP_ROWS_TARGETS] = this->rows[LP_ROWS_TOKENS] / 10 + 1;
    graph_case_fill(this, &random);
    for (size_t i = 0; i < this->graph.parameter_size; i++)
        this->parameters[i] = (float)(this->parameters[i] / sqrt(v->dims));
    *output = network.logits[0] ? network.logits[0] : network.state;
}

static void check_same(const graph_case *this, const lp_value *output, const graph_result *got, const lp_value *expected,
                       const graph_result *wanted, double bound, const char *what)
{
    const double *a = got->values[output->id], *b = wanted->values[expected->id];
    int count = graph_case_elements(this, output);
    double largest = 0.1;
    for (int k = 0; k < count; k++)
        largest = fmax(largest, fabs(b[k]));
    for (int k = 0; k < count; k++)
        if (!(fabs(a[k] - b[k]) <= bound * largest))
            fail_msg("%s: element %d of the output is %.9g, should be %.9g within %.3g", what, k, a[k], b[k],
                     bound * largest);
}

static void check_variant(const variant *v, lp_task task)
{
    static const struct {
        lp_precision precision;
        double bound;
    } precisions[] = {{LP_PRECISION_FP32, 1e-5}, {LP_PRECISION_TF32, 1e-2}, {LP_PRECISION_BF16, 1e-1}};
    graph_case all, few;
    graph_result wanted, got;
    lp_value *output, *expected;
    char what[200];
    int length =
        snprintf(what, sizeof what, "%s, %d dims, %d blocks, %d heads", v->model, v->dims, v->blocks, v->heads);
    for (int i = 0; v->options[i]; i++)
        length += snprintf(what + length, sizeof what - (size_t)length, ", %s", v->options[i]);
    start(&all, v, false, task, &expected);
    start(&few, v, true, task, &output);
    int found = 0;
    for (int i = 0; i < few.graph.node_count; i++)
        found += few.graph.nodes[i]->op->id == LP_OP_ATTENTION_AT;
    assert_int_equal(found, 1);
    assert_int_equal(few.graph.parameter_count, all.graph.parameter_count);
    for (int i = 0; i < all.graph.parameter_count; i++) {
        assert_string_equal(few.graph.parameters[i].value->name, all.graph.parameters[i].value->name);
        assert_int_equal(few.graph.parameters[i].value->offset, all.graph.parameters[i].value->offset);
    }
    assert_memory_equal(few.parameters, all.parameters, all.graph.parameter_size * sizeof(double));
    graph_case_run(&all, sizeof(double), lp_reference_kernels_double, &wanted);
    graph_case_run(&few, sizeof(double), lp_reference_kernels_double, &got);
    check_same(&few, output, &got, expected, &wanted, 1e-11, what);
    graph_result_clear(&got);
    for (int level = 0; lp_cpu_level_name(level); level++) {
        graph_case_run(&few, sizeof(float), lp_cpu_level_kernels(level), &got);
        check_same(&few, output, &got, expected, &wanted, 1e-5, what);
        graph_result_clear(&got);
    }
    for (int i = 0; device && i < 3; i += small_effort(1, 2)) {
        few.precision = precisions[i].precision;
        graph_case_run_on(&few, device, 40 * i, 2, &got);
        check_same(&few, output, &got, expected, &wanted, precisions[i].bound, what);
        graph_result_clear(&got);
    }
    graph_result_clear(&wanted);
    graph_case_clear(&all);
    graph_case_clear(&few);
}

static void outputs_are_those_of_all_tokens(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int i = 0; i < (int)(sizeof variants / sizeof *variants); i++)
        check_variant(&variants[i], i % 2 ? LP_TASK_RECOMMEND : LP_TASK_CLASSIFY);
}

static lp_value *input(lp_graph *graph, lp_rows rows, int cols)
{
    return cols ? lp_graph_input(graph, "x", LP_TYPE_REAL, rows, 0, cols) : NULL;
}

static void wrong_shapes(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "graph: attention_at needs a query for each position, divided by the heads, and keys and values with its "
        "columns or those of one head",
        "graph: attention_at needs a time query for each position, head and column of the basis"};
    static const struct {
        lp_rows time_rows, position_rows;
        int key, value, time_query, basis, heads, message; /* columns; the query has 6 */
    } wrong[] = {
        {LP_ROWS_FIXED, LP_ROWS_TOKENS, 6, 6, 0, 0, 1, 0},    {LP_ROWS_FIXED, LP_ROWS_TARGETS, 6, 3, 0, 0, 1, 0},
        {LP_ROWS_FIXED, LP_ROWS_TARGETS, 2, 2, 0, 0, 2, 0},   {LP_ROWS_FIXED, LP_ROWS_TARGETS, 6, 6, 0, 0, 4, 0},
        {LP_ROWS_TARGETS, LP_ROWS_TARGETS, 6, 6, 4, 0, 2, 1}, {LP_ROWS_TARGETS, LP_ROWS_TARGETS, 6, 6, 4, 4, 2, 1},
        {LP_ROWS_TOKENS, LP_ROWS_TARGETS, 3, 3, 8, 4, 2, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lp_graph graph = {0};
        lapse_error error = {0};
        lp_value *positions = lp_graph_input(&graph, "positions", LP_TYPE_INT32, wrong[i].position_rows, 0, 1);
        assert_null(lp_attention_at(
            &graph, input(&graph, LP_ROWS_TARGETS, 6), input(&graph, LP_ROWS_TOKENS, wrong[i].key),
            input(&graph, LP_ROWS_TOKENS, wrong[i].value), input(&graph, wrong[i].time_rows, wrong[i].time_query),
            input(&graph, LP_ROWS_TOKENS, wrong[i].basis), positions, wrong[i].heads, 1, NULL));
        assert_int_equal(lp_graph_status(&graph, &error), LAPSE_ERROR_INTERNAL);
        assert_string_equal(error.message, messages[wrong[i].message]);
        lp_graph_clear(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(outputs_are_those_of_all_tokens),
                                       cmocka_unit_test(wrong_shapes)};
    return cmocka_run_group_tests(tests, find_device, NULL);
}
