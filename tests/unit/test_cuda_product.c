/* test_cuda_product.c: products of every width, in every precision: forward, and the gradients of both factors, which are
 * products of their own; on the emulated device, or on a GPU if LAPSE_TEST_DEVICE is cuda. */
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

/* Two products of one weight, so that gradients accumulate. Odd widths, all alignments, tiles of both sizes, several
 * chunks of rows, and heads. */
static void test_products(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int tokens, in, out, heads;
    } sizes[] = {{70, 257, 100, 1},  {130, 50, 257, 1},  {600, 3, 63, 1},    {65, 63, 1, 1},
                 {9, 100, 50, 3},    {300, 128, 256, 1}, {40, 20, 33, 8},    {33, 1, 3, 5},
                 {90, 257, 257, 1},  {1, 64, 64, 7},     {400, 130, 130, 1}, {150, 16, 24, 6},
                 {140, 320, 200, 1}, {200, 192, 180, 1}, {130, 64, 128, 4},  {260, 200, 40, 3}};
    for (int i = 0; i < (int)(2 * sizeof sizes / sizeof *sizes); i += small_effort(1, 4)) {
        graph_case this = {.gap = 1};
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 401);
        int in = sizes[i / 2].in, out = sizes[i / 2].out, heads = sizes[i / 2].heads;
        bool transpose = i % 2;
        graph_case_segments(&this, &sizes[i / 2].tokens, 1);
        lp_value *x = lp_example_tokens(&this.graph, "x", heads * in);
        lp_value *w = lp_example_fixed(&this.graph, "w", heads * (transpose ? out : in), transpose ? in : out);
        lp_value *bias = lp_example_fixed(&this.graph, "bias", 1, heads * out);
        lp_value *once = lp_linear(&this.graph, x, w, bias, NULL, heads, transpose);
        lp_value *again = lp_linear(&this.graph, x, w, NULL, once, heads, transpose);
        graph_case_gradients(&this, lp_add(&this.graph, once, again)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "%d tokens, %d x %d, %d heads%s", sizes[i / 2].tokens, in, out, heads,
                 transpose ? ", transposed" : "");
        int checks = 1 << (i + i / 3) % 3 | (heads > 1 ? DEVICE_BF16 : 0) | (i % 2 ? DEVICE_SAME_BITS : 0);
        device_check_precisions(&this, device, 37, checks, what);
        graph_case_clear(&this);
    }
}

/* In bf16 products read copies of their operands: of dropout, which reads and writes them; of tanh, whose kernel does not;
 * of a gradient to which two products add; and of heads with 7, 6 and 8 columns, of which the first have none. */
static void test_copies(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int tokens, cols, heads;
        bool drops;
    } sizes[] = {{140, 72, 1, true}, {70, 35, 5, true}, {90, 48, 8, false}, {200, 80, 10, true}, {66, 33, 1, false}};
    for (int i = 0; i < 5; i++) {
        graph_case this = {.gap = 1};
        lp_graph *graph = &this.graph;
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 403);
        int cols = sizes[i].cols, heads = sizes[i].heads;
        graph_case_segments(&this, &sizes[i].tokens, 1);
        lp_value *x = lp_example_tokens(graph, "x", cols), *first = lp_example_fixed(graph, "first", cols, cols);
        lp_value *second = lp_example_fixed(graph, "second", cols, 40);
        lp_value *third = lp_example_fixed(graph, "third", heads * 40, cols / heads);
        lp_value *hidden = lp_linear(graph, lp_affine(graph, x, 1 / sqrt(cols), 0), first, NULL, NULL, 1, true);
        lp_value *inner = sizes[i].drops ? lp_dropout(graph, hidden, 0.3) : lp_tanh(graph, hidden, 3);
        lp_value *one = lp_linear(graph, inner, second, NULL, NULL, heads, false);
        graph_case_gradients(&this, lp_linear(graph, inner, third, NULL, one, heads, true)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "copies of %d columns, %d heads", cols, heads);
        device_check_precisions(&this, device, 37, DEVICE_BF16 | DEVICE_SAME_BITS, what);
        graph_case_clear(&this);
    }
}

/* The softmax loss at widths that are no multiple of a slab, with few and many tiles of items, several chunks of them, and
 * items of the shard. With a spread of 150, many targets are more than exp(69) times less probable than some item. */
static void test_losses(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int cols, items, targets, spread; /* items 0: the shard's own */
    } sizes[] = {{100, 301, 140, 1}, {257, 70, 40, 1},    {66, 0, 150, 1},    {66, 150, 40, 150}, {128, 130, 7, 1},
                 {1, 150, 130, 1},   {50, 290, 140, 150}, {192, 390, 200, 1}, {3, 65, 0, 1},      {256, 200, 65, 1}};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i += small_effort(1, 3)) {
        graph_case this = {.gap = 1};
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 402);
        graph_case_segments(&this, &sizes[i].targets, sizes[i].targets > 0);
        lp_graph *graph = &this.graph;
        int cols = sizes[i].cols, count = sizes[i].items;
        lp_value *z = lp_example_rows(graph, "z", LP_ROWS_TARGETS, cols);
        lp_value *items = count ? lp_example_fixed(graph, "items", count, cols)
                                : lp_example_rows(graph, "items", LP_ROWS_ITEMS, cols);
        lp_value *bias =
            count ? lp_example_fixed(graph, "bias", count, 1) : lp_example_rows(graph, "bias", LP_ROWS_ITEMS, 1);
        lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1);
        lp_value *small = lp_affine(graph, z, 0.3 / sqrt(cols), 0); /* no item has a probability near 1 */
        lp_value *spread = lp_affine(graph, bias, sizes[i].spread, 0);
        graph_case_gradients(&this, lp_softmax_loss(graph, small, items, spread, NULL, target)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "loss over %d items, %d columns, %d targets", count, cols, sizes[i].targets);
        int checks = small_effort(DEVICE_ALL, i ? DEVICE_TF32 : DEVICE_BF16);
        device_check_precisions(&this, device, 37, sizes[i].targets ? checks : DEVICE_FP32, what); /* 0 is exact */
        graph_case_clear(&this);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_losses)};
    return cmocka_run_group_tests(tests, find_device, NULL);
}
