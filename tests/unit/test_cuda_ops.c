/* test_cuda_ops.c: compares every CUDA kernel with the reference kernels in double, on the emulated device, or on a
 * GPU if the environment variable LAPSE_TEST_DEVICE is cuda. */
#include "backend/cpu/cpu.h"
#include "support/device_check.h"
#include "support/graph_samples.h"
#include "support/small_data.h"
#include "support/test_device.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

static const lp_backend *device;
static char what[200];

static int find_device(void **state)
{
    (void)state;
    device = test_device_open();
    return device ? 0 : -1;
}

/* Compares with the reference kernels: node by node; in stages; and in stages with tf32 operands, which use the fused
 * kernels and have 11 bits. The second run of a program, which replays what the first captured, with blocks in the
 * opposite order, must give the bits of a single run. */
static void check_case(graph_case *this, int slack)
{
    graph_result wanted, once, replayed;
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &wanted);
    for (int k = 0; k < 3; k += small_effort(1, 2)) {
        this->in_order = k == 0;
        this->precision = k < 2 ? LP_PRECISION_FP32 : LP_PRECISION_TF32;
        graph_case_run_on(this, device, slack, 1, &once);
        device_check_error(this, &once, &wanted, k < 2 ? 1e-4 : 1e-2, what);
        if (k > 0) {
            device_check_run_reversed(this, device, slack, 2, &replayed);
            device_check_same_bits(this, &once, &replayed, what);
            graph_result_clear(&replayed);
        }
        graph_result_clear(&once);
    }
    graph_result_clear(&wanted);
    graph_case_clear(this);
}

static void test_examples(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int count, lengths[4];
    } shards[] = {{0, {0}}, {1, {1}}, {3, {33, 1, 70}}, {2, {64, 31}}, {1, {129}}};
    for (int id = 0; id < LP_OP_COUNT; id++)
        for (int seed = 0; seed < small_effort(5, 4) && lp_op_table[id]->example; seed += small_effort(1, 3)) {
            graph_case this = {.gap = 40000};
            lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, (uint32_t)id);
            graph_case_segments(&this, shards[seed % 5].lengths, shards[seed % 5].count);
            graph_case_gradients(&this, lp_op_table[id]->example(&this.graph, &random)->producer);
            graph_case_fill(&this, &random);
            snprintf(what, sizeof what, "%s, seed %d, %d tokens", lp_op_table[id]->name, seed,
                     this.rows[LP_ROWS_TOKENS]);
            check_case(&this, seed % 3 * 100);
        }
}

static void test_samples(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const int cols[] = {1, 2, 7, 17, 33, 50, 64, 100};
    static const struct {
        int count, lengths[4];
    } shards[] = {{0, {0}}, {1, {1}}, {3, {33, 1, 70}}, {4, {64, 31, 2, 16}}};
    for (int sample = 0; sample < graph_sample_count; sample += small_effort(1, 2))
        for (int i = 0; i < small_effort(8, 3); i += small_effort(1, 2)) {
            graph_case this = {.gap = 40000, .first_token = (uint64_t)(1000 * i)};
            lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 201);
            int heads = 1 + i % 4;
            graph_case_segments(&this, shards[i % 4].lengths, shards[i % 4].count);
            graph_case_gradients(&this, graph_samples[sample].build(&this.graph, cols[i], heads, cols[7 - i]));
            graph_case_fill(&this, &random);
            snprintf(what, sizeof what, "%s of %d columns, %d heads, %d tokens", graph_samples[sample].name, cols[i],
                     heads, this.rows[LP_ROWS_TOKENS]);
            check_case(&this, i * 37);
        }
}

/* Chains of nodes by row, of rows that take some lanes, a warp, several passes of it, or a block: values that stay in registers, that a
 * later step reads from memory, that another launch reads, and gradients that are added up. */
static void test_rows(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const int cols[] = {1, 3, 50, 64, 65, 128, 256, 257, 300, 1000};
    for (int i = 0; i < 10; i += small_effort(1, 4)) {
        graph_case this = {.gap = 1, .first_token = 77};
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 207);
        graph_case_segments(&this, (int[]){99 - 9 * i, 1}, 2);
        lp_graph *graph = &this.graph;
        lp_value *x = lp_example_tokens(graph, "x", cols[i]), *weight = lp_example_fixed(graph, "weight", 1, cols[i]);
        lp_value *bias = lp_example_fixed(graph, "bias", 1, cols[i]);
        lp_value *y = lp_layer_norm(graph, x, weight, bias, 1e-2);
        lp_value *z = lp_dropout(graph, lp_scale_columns(graph, y, bias), 0.3);
        lp_value *table = lp_example_fixed(graph, "table", 7, cols[i]);
        lp_value *ids = lp_graph_input(graph, "ids", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
        lp_value *w = lp_add(graph, lp_relu(graph, lp_dropout(graph, y, 0.2)), lp_embed(graph, table, ids));
        w = lp_affine(graph, lp_multiply(graph, lp_add(graph, w, w), y), 0.5, 0.25);
        w = lp_layer_norm(graph, lp_add(graph, w, z), weight, bias, 1e-1);
        graph_case_gradients(&this, lp_add(graph, w, lp_layer_norm(graph, x, bias, weight, 1e-1))->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "rows of %d columns", cols[i]);
        check_case(&this, 30 * i);
    }
}

/* More columns than a block takes at once: as odd a number, as even. */
static void test_widest_rows(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int cols = 4103; cols < 17000; cols += 12421) {
        graph_case this = {.gap = 1, .first_token = 5};
        lp_random random = lp_random_start((uint64_t)cols, LP_PURPOSE_TEST, 209);
        graph_case_segments(&this, (int[]){2}, 1);
        lp_value *scale = lp_example_fixed(&this.graph, "scale", 1, cols),
                 *x = lp_example_tokens(&this.graph, "x", cols);
        graph_case_gradients(&this, lp_dropout(&this.graph, lp_scale_columns(&this.graph, x, scale), 0.3)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "rows of %d columns", cols);
        check_case(&this, 0);
    }
}

/* Sets all but `unchanged` of every 4 elements of an input of ids to the same id. */
static void set_frequent_id(graph_case *this, const lp_value *ids, int id, int unchanged)
{
    for (int i = 0; i < graph_case_elements(this, ids); i++)
        if (i % 4 >= unchanged)
            this->inputs[ids->slot][i] = id;
}

/* Few ids with many tokens each, many ids with few, and one frequent id among many that never occur. */
static void test_embed_gradients(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int rows, cols, tokens, unchanged; /* of 4 ids: not set to the frequent one */
    } sizes[] = {{1, 35, 700, 4},   {2, 50, 700, 4},   {5, 64, 300, 4},  {40, 7, 300, 4},
                 {900, 35, 300, 4}, {900, 50, 300, 1}, {300, 1, 900, 0}, {90, 200, 90, 0},
                 {60, 129, 64, 0},  {60, 50, 0, 4},    {1, 6, 20, 4}};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i += small_effort(1, 7)) {
        graph_case this = {.gap = 1};
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 206);
        graph_case_segments(&this, (int[]){sizes[i].tokens, 1}, sizes[i].tokens ? 2 : 0);
        lp_value *table = lp_example_fixed(&this.graph, "table", sizes[i].rows, sizes[i].cols);
        lp_value *ids = lp_graph_input(&this.graph, "ids", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
        lp_value *other = lp_graph_input(&this.graph, "other", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
        lp_value *both = lp_add(&this.graph, lp_embed(&this.graph, table, ids), lp_embed(&this.graph, table, other));
        graph_case_gradients(&this, both->producer);
        graph_case_fill(&this, &random);
        set_frequent_id(&this, ids, sizes[i].rows - 1, sizes[i].unchanged);
        snprintf(what, sizeof what, "table of %d rows and %d columns, %d tokens", sizes[i].rows, sizes[i].cols,
                 sizes[i].tokens);
        check_case(&this, 500);
    }
}

/* Few items and many, one negative and more negatives than a warp has lanes; items that never occur, and one that is
 * the target or negative of almost every row. */
static void test_sampled_loss(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int items, cols, rows, negatives, targets_unchanged, negatives_unchanged;
    } sizes[] = {{200, 50, 400, 1, 4, 4}, {1, 50, 150, 1, 4, 4},   {900, 64, 200, 1, 0, 4}, {900, 33, 200, 1, 4, 0},
                 {300, 50, 150, 1, 0, 0}, {30, 130, 40, 33, 4, 4}, {700, 6, 70, 70, 1, 4},  {40, 50, 0, 2, 4, 4}};
    for (int i = small_effort(0, 4); i < (int)(sizeof sizes / sizeof *sizes); i += small_effort(1, 3)) {
        graph_case this = {.gap = 1};
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 208);
        graph_case_segments(&this, &sizes[i].rows, sizes[i].rows > 0);
        lp_graph *graph = &this.graph;
        lp_value *z = lp_example_tokens(graph, "z", sizes[i].cols);
        lp_value *items = lp_example_fixed(graph, "items", sizes[i].items, sizes[i].cols);
        lp_value *bias = lp_example_fixed(graph, "bias", sizes[i].items, 1);
        lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
        lp_value *negative = lp_graph_input(graph, "negative", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, sizes[i].negatives);
        lp_loss type = (lp_loss)(LP_LOSS_BCE + i % (LP_LOSS_COUNT - LP_LOSS_BCE));
        lp_score_rule score = (lp_score_rule)((i + 2) % 3); /* of one item the gradients by a distance cancel */
        lp_value *loss = lp_sampled_loss(graph, z, items, bias, target, negative, type, 0.2, score);
        graph_case_gradients(&this, loss->producer);
        graph_case_fill(&this, &random);
        set_frequent_id(&this, target, sizes[i].items / 2, sizes[i].targets_unchanged);
        set_frequent_id(&this, negative, sizes[i].items / 2, sizes[i].negatives_unchanged);
        snprintf(what, sizeof what, "sampled_loss %d, score %d, of %d rows, %d of %d items, %d columns", type, score, sizes[i].rows,
                 1 + sizes[i].negatives, sizes[i].items, sizes[i].cols);
        check_case(&this, i * 50);
    }
}

/* Cosines and sines must be correct to float precision even after millions of cycles. */
static void test_basis_error(void **state)
{
    (void)state;
    small_skip_under_tools();
    graph_case this = {.gap = 86400};
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 202);
    graph_case_segments(&this, (int[]){300, 1}, 2);
    lp_value *time = lp_graph_input(&this.graph, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *log_period = lp_graph_parameter(&this.graph, "log_period", 1, 9, LP_INIT_NORMAL, 1);
    graph_case_gradients(&this, lp_basis(&this.graph, time, lp_harmonics(&this.graph, log_period, 5))->producer);
    graph_case_fill(&this, &random);
    for (size_t i = 0; i < this.graph.parameter_size; i++)
        this.parameters[i] = (float)(this.parameters[i] + 6);
    graph_result wanted, got;
    graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &wanted);
    graph_case_run_on(&this, device, 0, 1, &got);
    const double *u = got.values[this.outputs[0]->id], *exact = wanted.values[this.outputs[0]->id];
    for (int k = 0; k < graph_case_elements(&this, this.outputs[0]); k++)
        if (!(fabs(u[k] - exact[k]) <= 2e-7))
            fail_msg("basis, element %d: got %.9g, expected %.9g", k, u[k], exact[k]);
    graph_result_clear(&wanted);
    graph_result_clear(&got);
    graph_case_clear(&this);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),    cmocka_unit_test(test_samples),         cmocka_unit_test(test_rows),
        cmocka_unit_test(test_widest_rows), cmocka_unit_test(test_embed_gradients), cmocka_unit_test(test_sampled_loss),
        cmocka_unit_test(test_basis_error),
    };
    return cmocka_run_group_tests(tests, find_device, NULL);
}
