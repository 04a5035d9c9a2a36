/* test_cuda_tiles.c: the tiled CUDA kernels (attention, softmax loss) at sizes that are no multiple of a tile and that
 * reach each variant, in every precision and with blocks in either order; on the emulated device, or on a GPU if
 * LAPSE_TEST_DEVICE is cuda. */
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
#include <string.h>

static const lp_backend *device;
static char what[200];

static int find_device(void **state)
{
    (void)state;
    device = test_device_open();
    return device ? 0 : -1;
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

enum { LONG_EMULATED = 1500 };

static const struct shape {
    const char *sample;
    int cols, heads, extra, count, lengths[6];
    int checks;
} shapes[] = {
    /* as in training on MovieLens; segments that end inside a tile; an empty one */
    {"lag attention", 50, 1, 100, 5, {70, 33, 0, 1, 40}, DEVICE_ALL | DEVICE_SAME_BITS},
    {"accumulating attention", 50, 1, 100, 2, {32, 31}, DEVICE_ALL},
    /* many segments in one tile */
    {"lag attention", 8, 2, 6, 6, {1, 2, 3, 1, 9, 4}, DEVICE_ALL},
    /* longer than several inner tiles */
    {"lag attention", 5, 1, 3, 2, {300, 7}, DEVICE_ALL},
    {"plain attention", 12, 3, 0, 2, {130, 17}, DEVICE_ALL},
    {"bare attention", 20, 2, 0, 4, {70, 1, 90, 40}, DEVICE_ALL | DEVICE_SAME_BITS},
    /* long enough that a separate kernel draws the dropout mask */
    {"lag attention", 6, 1, 4, 2, {530, 3}, DEVICE_ALL},
    /* more segments than a warp loads at once, more in a tile than a warp has lanes, empty ones among them */
    {"lag attention", 4, 1, 4, 300, {1, 2, 0, 1, 3, 1}, DEVICE_ALL},
    /* instances with more accumulators; columns divided among blocks; the smallest tiles */
    {"lag attention", 64, 2, 128, 2, {65, 4}, DEVICE_ALL},
    {"lag attention", 64, 1, 160, 2, {33, 3}, DEVICE_ALL},
    {"lag attention", 128, 1, 256, 2, {20, 3}, DEVICE_ALL},
    {"lag attention", 32, 3, 126, 2, {33, 3}, DEVICE_ALL},
    {"lag attention", 25, 2, 70, 2, {33, 3}, DEVICE_ALL},
    {"lag attention", 30, 1, 160, 2, {20, 3}, DEVICE_ALL},
    {"lag attention", 60, 1, 80, 2, {20, 3}, DEVICE_ALL},
    /* many short segments, and heads over which a block adds the gradient of the basis */
    {"lag attention", 6, 2, 20, 150, {1, 2, 0, 1, 3, 1}, DEVICE_ALL | DEVICE_SAME_BITS},
    {"accumulating attention", 32, 3, 16, 150, {1, 2, 0, 1, 3, 1}, DEVICE_ALL},
    {"accumulating attention", 256, 1, 512, 2, {20, 3}, DEVICE_FP32},
    /* odd widths, up to 8 heads */
    {"lag attention", 3, 8, 1, 2, {40, 9}, DEVICE_ALL},
    {"lag attention", 63, 3, 100, 2, {33, 3}, DEVICE_FP32},
    {"lag attention", 1, 5, 257, 2, {17, 2}, DEVICE_FP32},
    {"bare attention", 257, 1, 0, 2, {33, 3}, DEVICE_FP32},
    {"bare attention", 63, 2, 0, 2, {33, 3}, DEVICE_ALL},
    {"lag attention", 100, 6, 3, 2, {1, 18}, DEVICE_FP32},
    /* the longest context; in the emulation LONG_EMULATED */
    {"bare attention", 1, 1, 0, 2, {4096, 1}, DEVICE_FP32},
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static void init_attention(graph_case *this, const struct shape *shape)
{
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 300);
    int lengths[CASE_SEGMENTS];
    for (int i = 0; i < shape->count; i++)
        lengths[i] = test_device_emulated() ? min_int(shape->lengths[i % 6], LONG_EMULATED) : shape->lengths[i % 6];
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
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += (size_t)small_effort(1, 9)) {
        graph_case this;
        init_attention(&this, &shapes[i]);
        device_check_precisions(&this, device, (int)i * 29, shapes[i].checks, what);
        graph_case_clear(&this);
    }
}

/* -------------------------------------------------------------------------------------------- the loss ------- */

static const struct loss {
    int cols, items, tokens; /* items 0: the shard's own items */
    int checks;
} losses[] = {{50, 300, 140, DEVICE_ALL | DEVICE_SAME_BITS},
              {1, 1, 40, DEVICE_FP32},
              {128, 70, 140, DEVICE_ALL},
              {20, 0, 150, DEVICE_ALL},
              {257, 300, 20, DEVICE_ALL},
              {63, 90, 140, DEVICE_ALL},
              {300, 40, 9, DEVICE_FP32},
              {3, 600, 3, DEVICE_ALL}};

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
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i += (size_t)small_effort(1, 5)) {
        graph_case this;
        init_loss(&this, &losses[i]);
        device_check_precisions(&this, device, (int)i * 50, losses[i].checks, what);
        graph_case_clear(&this);
    }
}

/* --------------------------------------------------------------------------------------- peaked attention ------- */

/* Root mean square of the error of the gradient of an input, relative to that of the gradient. */
static double gradient_error(const graph_case *this, const graph_result *got, const graph_result *wanted,
                             const lp_value *input)
{
    const lp_value *gradient = input->gradient;
    int count = graph_case_elements(this, gradient);
    double squares = 0, errors = 0;
    for (int i = 0; i < count; i++) {
        double x = got->values[gradient->id][i], y = wanted->values[gradient->id][i];
        squares += y * y;
        errors += (x - y) * (x - y);
    }
    return sqrt(errors / squares);
}

/* One key has nearly all the probability, and comes after another one that had it before: scores are relative to the
 * latter, and the probability is not a power of 2. dscores are then small differences. Operands are multiples of 1/16,
 * which bf16 represents, so that only the rounding of probabilities and dscores acts. */
static void test_peaked(void **state)
{
    (void)state;
    small_skip_under_tools();
    enum { COLS = 8, TOKENS = 110, FIRST = 0, LATER = 70, INPUTS = 3 };
    static const char *const names[INPUTS] = {"query", "key", "value"};
    static const struct {
        lp_precision precision;
        double allowed;
    } types[] = {{LP_PRECISION_TF32, 2e-3}, {LP_PRECISION_BF16, 1e-2}};
    graph_case this = {.gap = 1};
    lp_random random = lp_random_start(13, LP_PURPOSE_TEST, 302);
    lp_value *inputs[INPUTS], *time_out;
    graph_case_segments(&this, (int[]){TOKENS}, 1);
    for (int i = 0; i < INPUTS; i++)
        inputs[i] = lp_example_tokens(&this.graph, names[i], COLS);
    lp_value *out = lp_attention(&this.graph, inputs[0], inputs[1], inputs[2], NULL, NULL, 1, 1, 0, &time_out);
    graph_case_gradients(&this, out->producer);
    graph_case_fill(&this, &random);
    for (int k = 0; k < TOKENS * COLS; k++) {
        double *query = &this.inputs[inputs[0]->slot][k], *key = &this.inputs[inputs[1]->slot][k];
        double *value = &this.inputs[inputs[2]->slot][k];
        *query = k % COLS ? round(2 * sin(k)) / 16 : 1;
        *key = k % COLS ? round(2 * cos(3 * k)) / 16 : k / COLS == FIRST ? 0 : k / COLS == LATER ? 5.25 : -15;
        *value = round(16 * *value) / 16;
    }
    double *seeds = this.inputs[this.seeds[0]->slot];
    for (int k = 0; k < TOKENS * COLS; k++)
        seeds[k] = round(16 * seeds[k]) / 16;
    graph_result wanted, got;
    graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &wanted);
    for (int k = 0; k < 2; k++) {
        this.precision = types[k].precision;
        graph_case_run_on(&this, device, 10, 1, &got);
        for (int i = 0; i < INPUTS; i++) {
            double error = gradient_error(&this, &got, &wanted, inputs[i]);
            if (!(error <= types[k].allowed))
                fail_msg("peaked attention, precision %d, gradient of the %s: error %.2e, allowed %.2e", k, names[i],
                         error, types[k].allowed);
        }
        graph_result_clear(&got);
    }
    graph_result_clear(&wanted);
    graph_case_clear(&this);
}

/* ------------------------------------------------------------------------------------------------ NaN ------- */

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
        cmocka_unit_test(test_peaked),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, find_device, NULL);
}
