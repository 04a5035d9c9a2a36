/* test_cuda_tiles.c: the tiled CUDA kernels (attention, softmax loss) at sizes that are no multiple of a tile and that
 * reach each variant, in every precision and with blocks in either order; on the emulated device, or on a GPU if
 * LAPSE_TEST_DEVICE is cuda. */
#include "backend/cpu/cpu.h"
#include "support/graph_case.h"
#include "support/graph_samples.h"
#include "support/small_data.h"
#include "support/test_device.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lp_backend *device;
static char what[200];

static int find_device(void **state)
{
    (void)state;
    lapse_error error = {0};
    test_device_choose();
    if (lp_backend_open("cuda", &device, &error) != LAPSE_OK)
        print_error("%s\n", error.message);
    return device ? 0 : -1;
}

/* The largest difference between two matrices, relative to the largest element. */
static double distance(const double *got, const double *wanted, int count)
{
    double largest = 0.1, most = 0;
    for (int k = 0; k < count; k++) {
        double apart = fabs(got[k] - wanted[k]);
        largest = fmax(largest, fabs(wanted[k]));
        most = apart <= most ? most : apart;
    }
    return most / largest;
}

/* The maximum over all values and gradients; fails if one exceeds `relative` or is NaN. */
static double distance_all(const graph_case *this, const graph_result *got, const graph_result *wanted, double relative)
{
    double most = 0;
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (!wanted->values[i])
            continue;
        double apart = distance(got->values[i], wanted->values[i], graph_case_elements(this, value));
        if (!(apart <= relative))
            fail_msg("%s, %s: error %.3g of the largest element, allowed %.3g", what, value->name, apart, relative);
        most = fmax(most, apart);
    }
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        double apart = distance(got->gradients + value->offset, wanted->gradients + value->offset,
                                graph_case_elements(this, value));
        if (!(apart <= relative))
            fail_msg("%s, gradient of %s: error %.3g of the largest element, allowed %.3g", what, value->name, apart,
                     relative);
        most = fmax(most, apart);
    }
    return most;
}

/* Compares with the reference kernels in double. Tensor cores must be within the error of their type, but not better:
 * otherwise they were not used. */
static void check_precisions(graph_case *this, int slack, bool all)
{
    static const struct {
        lp_precision precision;
        double max_error, min_error;
    } types[] = {{LP_PRECISION_FP32, 2e-5, 0}, {LP_PRECISION_TF32, 5e-3, 2e-5}, {LP_PRECISION_BF16, 4e-2, 2e-5}};
    graph_result wanted, got;
    size_t length = strlen(what);
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &wanted);
    for (int i = 0; i < (all ? 3 : 1); i++) {
        this->precision = types[i].precision;
        snprintf(what + length, sizeof what - length, ", precision %d", i);
        graph_case_run_on(this, device, slack, 1, &got);
        double apart = distance_all(this, &got, &wanted, types[i].max_error);
        if (apart < types[i].min_error)
            fail_msg("%s: error of only %.3g", what, apart);
        graph_result_clear(&got);
    }
    graph_result_clear(&wanted);
}

/* ------------------------------------------------------------------------------------------- attention ------- */

static const graph_sample *sample(const char *name)
{
    for (int i = 0; i < graph_sample_count; i++)
        if (strcmp(graph_samples[i].name, name) == 0)
            return &graph_samples[i];
    fail_msg("there is no sample '%s'", name);
    return NULL;
}

static const struct shape {
    const char *sample;
    int cols, heads, extra, count, lengths[6];
    bool all;
} shapes[] = {
    /* as in training on MovieLens; segments that end inside a tile; an empty one */
    {"lag attention", 50, 1, 100, 5, {70, 33, 0, 1, 40}, true},
    {"accumulating attention", 50, 1, 100, 2, {32, 31}, true},
    /* many segments in one tile */
    {"lag attention", 8, 2, 6, 6, {1, 2, 3, 1, 9, 4}, true},
    /* longer than several inner tiles */
    {"lag attention", 5, 1, 3, 2, {300, 7}, true},
    {"plain attention", 12, 3, 0, 2, {130, 17}, true},
    {"bare attention", 20, 2, 0, 4, {70, 1, 150, 40}, true},
    /* long enough that a separate kernel draws the dropout mask */
    {"lag attention", 6, 1, 4, 2, {530, 3}, true},
    /* more segments than a warp loads at once, more in a tile than a warp has lanes, empty ones among them */
    {"lag attention", 4, 1, 4, 300, {1, 2, 0, 1, 3, 1}, true},
    /* instances with more accumulators; columns divided among blocks; the smallest tiles */
    {"lag attention", 64, 2, 128, 2, {65, 4}, true},
    {"lag attention", 64, 1, 160, 2, {33, 3}, true},
    {"lag attention", 128, 1, 256, 2, {20, 3}, true},
    {"accumulating attention", 256, 1, 512, 2, {20, 3}, false},
    /* odd widths, up to 8 heads */
    {"lag attention", 3, 8, 1, 2, {40, 9}, true},
    {"lag attention", 63, 3, 100, 2, {33, 3}, false},
    {"lag attention", 1, 5, 257, 2, {17, 2}, false},
    {"bare attention", 257, 1, 0, 2, {33, 3}, false},
    {"bare attention", 63, 2, 0, 2, {33, 3}, true},
    {"lag attention", 100, 6, 3, 2, {1, 18}, false},
    /* the longest context */
    {"bare attention", 1, 1, 0, 2, {4096, 1}, false},
};

static void init_attention(graph_case *this, const struct shape *shape)
{
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 300);
    int lengths[CASE_SEGMENTS];
    for (int i = 0; i < shape->count; i++)
        lengths[i] = shape->lengths[i % 6];
    *this = (graph_case){.gap = 40000, .first_token = 1000};
    graph_case_segments(this, lengths, shape->count);
    graph_case_gradients(this, sample(shape->sample)->build(&this->graph, shape->cols, shape->heads, shape->extra));
    graph_case_fill(this, &random);
    snprintf(what, sizeof what, "%s of %d + %d columns, %d heads, %d tokens", shape->sample, shape->cols, shape->extra,
             shape->heads, this->rows[LP_ROWS_TOKENS]);
}

static void test_attention(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += (size_t)small_effort(1, 5)) {
        graph_case this;
        init_attention(&this, &shapes[i]);
        check_precisions(&this, (int)i * 29, shapes[i].all);
        graph_case_clear(&this);
    }
}

/* -------------------------------------------------------------------------------------------- the loss ------- */

static const struct loss {
    int cols, items, tokens; /* items 0: the shard's own items */
    bool all;
} losses[] = {{50, 700, 150, true}, {1, 1, 40, false},   {128, 70, 260, true}, {20, 0, 300, true},
              {200, 65, 30, false}, {63, 90, 140, true}, {300, 40, 9, false},  {7, 3000, 3, true}};

static void init_loss(graph_case *this, const struct loss *loss)
{
    lp_random random = lp_random_start(12, LP_PURPOSE_TEST, 301);
    *this = (graph_case){.gap = 1};
    graph_case_segments(this, &loss->tokens, 1);
    lp_graph *graph = &this->graph;
    bool own = loss->items == 0;
    lp_value *z = lp_example_rows(graph, "z", LP_ROWS_TARGETS, loss->cols);
    lp_value *items = own ? lp_example_rows(graph, "items", LP_ROWS_ITEMS, loss->cols)
                          : lp_example_fixed(graph, "items", loss->items, loss->cols);
    lp_value *bias =
        own ? lp_example_rows(graph, "bias", LP_ROWS_ITEMS, 1) : lp_example_fixed(graph, "bias", loss->items, 1);
    lp_value *logq = own ? lp_graph_input(graph, "logq", LP_TYPE_REAL, LP_ROWS_ITEMS, 0, 1) : NULL;
    lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1);
    /* Small scores, so that no item has a probability near 1. */
    lp_value *small = lp_affine(graph, z, 0.3 / sqrt(loss->cols), 0);
    lp_value *first = lp_softmax_loss(graph, small, items, bias, logq, target);
    graph_case_gradients(this, lp_add(graph, first, lp_softmax_loss(graph, z, items, bias, NULL, target))->producer);
    graph_case_fill(this, &random);
    snprintf(what, sizeof what, "loss over %d items, %d columns, %d tokens", loss->items, loss->cols, loss->tokens);
}

static void test_softmax_loss(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i += (size_t)small_effort(1, 3)) {
        graph_case this;
        init_loss(&this, &losses[i]);
        check_precisions(&this, (int)i * 50, losses[i].all);
        graph_case_clear(&this);
    }
}

/* ------------------------------------------------------------------------------------------- same bits ------- */

static void run_reversed(graph_case *this, bool reverse, graph_result *result)
{
    if (reverse)
        setenv("LAPSE_EMULATE_REVERSE", "1", 1);
    graph_case_run_on(this, device, 40, 1, result);
    unsetenv("LAPSE_EMULATE_REVERSE");
}

/* No result depends on the order of blocks. */
static void check_order(graph_case *this)
{
    graph_result forward, backward;
    run_reversed(this, false, &forward);
    run_reversed(this, true, &backward);
    for (int i = 0; i < this->graph.value_count; i++)
        if (forward.values[i] && memcmp(forward.values[i], backward.values[i],
                                        sizeof(double) * (size_t)graph_case_elements(this, this->graph.values[i])) != 0)
            fail_msg("%s: '%s' depends on the order of blocks", what, this->graph.values[i]->name);
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        if (memcmp(forward.gradients + value->offset, backward.gradients + value->offset,
                   sizeof(double) * (size_t)graph_case_elements(this, value)) != 0)
            fail_msg("%s: the gradient of '%s' depends on the order of blocks", what, value->name);
    }
    graph_result_clear(&forward);
    graph_result_clear(&backward);
}

static void test_order(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const lp_precision types[] = {LP_PRECISION_FP32, LP_PRECISION_TF32};
    for (int i = small_effort(0, 1); i < 2; i++) {
        graph_case this;
        init_attention(&this, &shapes[0]);
        this.precision = types[i];
        check_order(&this);
        graph_case_clear(&this);
        init_attention(&this, &shapes[5]);
        this.precision = types[i];
        check_order(&this);
        graph_case_clear(&this);
        init_loss(&this, &losses[0]);
        this.precision = types[i];
        check_order(&this);
        graph_case_clear(&this);
    }
}

/* NaN in a query, a key or a value propagates to everything that depends on it: a diverged run must show it. */
static void test_nan(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int leaf = 0; leaf < 6; leaf++) {
        graph_case this;
        init_attention(&this, &shapes[2]);
        int cols = shapes[2].cols * shapes[2].heads;
        this.inputs[leaf % 3][4 * cols] = NAN; /* token 4, of the segment 3 .. 5, head 0 */
        this.precision = leaf < 3 ? LP_PRECISION_FP32 : LP_PRECISION_TF32;
        graph_result got;
        graph_case_run_on(&this, device, 0, 1, &got);
        const double *y = got.values[this.outputs[0]->id];
        for (int t = 4; t < (leaf % 3 == 0 ? 5 : 6); t++)
            if (!isnan(y[t * cols]))
                fail_msg("leaf %d, token %d: %g", leaf, t, y[t * cols]);
        graph_result_clear(&got);
        graph_case_clear(&this);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_softmax_loss),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, find_device, NULL);
}
