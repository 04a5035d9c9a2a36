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
    for (int i = 0; i < (int)(2 * sizeof sizes / sizeof *sizes); i += small_effort(1, 9)) {
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

/* Products that add up to one value, which are one launch in bf16: of two or three values; and in the gradient of z, which two
 * products read. The gradient of y comes from dropout, and a product accumulates into it: into its copy where only products read
 * it. Odd widths and heads; the sum that is also read by tanh stays a value of its own. */
static void test_sums(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int tokens, first, second, out, heads;
        bool third, reads;
    } sizes[] = {
        {70, 257, 100, 50, 1, true, false},  {130, 50, 35, 257, 1, false, false}, {9, 3, 1, 63, 1, true, true},
        {140, 64, 128, 192, 1, false, true}, {65, 100, 63, 24, 3, true, false},   {140, 256, 128, 256, 1, false, false},
        {66, 63, 100, 3, 1, false, false},   {33, 8, 20, 5, 5, false, true},      {150, 80, 160, 64, 2, true, false}};
    for (int i = 0; i < (int)(2 * sizeof sizes / sizeof *sizes); i += small_effort(1, 7)) {
        graph_case this = {.gap = 1};
        lp_graph *graph = &this.graph;
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 404);
        int first = sizes[i / 2].first, second = sizes[i / 2].second, out = sizes[i / 2].out,
            heads = sizes[i / 2].heads;
        bool transpose = i % 2;
        graph_case_segments(&this, &sizes[i / 2].tokens, 1);
        lp_value *x = lp_example_tokens(graph, "x", heads * first), *u = lp_example_tokens(graph, "u", heads * second);
        lp_value *bias = lp_example_fixed(graph, "bias", 1, heads * out), *weights[4];
        for (int k = 0; k < 4; k++) {
            char name[] = {'w', (char)('0' + k), 0};
            int in = k == 1 ? second : k == 3 ? out : first;
            if (k != 2 || sizes[i / 2].third)
                weights[k] = lp_example_fixed(graph, name, heads * (transpose ? out : in), transpose ? in : out);
        }
        lp_value *z = lp_affine(graph, x, 1 / sqrt(first), 0);
        lp_value *h = lp_linear(graph, z, weights[0], bias, NULL, heads, transpose);
        lp_value *y = lp_linear(graph, lp_affine(graph, u, 1 / sqrt(second), 0), weights[1], NULL, h, heads, transpose);
        lp_value *more = sizes[i / 2].reads ? lp_tanh(graph, h, 3) : NULL;
        if (sizes[i / 2].third)
            y = lp_linear(graph, z, weights[2], NULL, y, heads, transpose);
        lp_value *last = lp_linear(graph, y, weights[3], NULL, more, heads, transpose);
        graph_case_gradients(
            &this, lp_linear(graph, lp_dropout(graph, y, 0.3), weights[3], NULL, last, heads, transpose)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "sum of %d and %d to %d columns, %d heads%s", first, second, out, heads,
                 transpose ? ", transposed" : "");
        device_check_precisions(&this, device, 37, 1 << (i + i / 3) % 2 | DEVICE_BF16 | (i % 2 ? DEVICE_SAME_BITS : 0),
                                what);
        graph_case_clear(&this);
    }
}

/* Products with relu and dropout in either order, or one of them, and their gradients: the same launch in bf16. Where heads divide
 * the columns, or tanh reads what dropout gives, they are launches of their own. The bias is large, so that rounding seldom changes
 * the sign of what relu reads. */
static void test_followed(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int tokens, in, out, heads;
        const char *after; /* d: dropout, r: relu, t: tanh */
    } sizes[] = {{140, 72, 128, 1, "dr"}, {70, 35, 50, 1, "rd"}, {90, 48, 257, 1, "dr"},  {33, 100, 3, 1, "r"},
                 {150, 80, 192, 1, "r"},  {66, 33, 63, 3, "dr"}, {129, 40, 320, 1, "dr"}, {65, 50, 100, 1, "dt"},
                 {40, 64, 256, 1, "rd"},  {130, 20, 33, 1, "d"}};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        graph_case this = {.gap = 1};
        lp_graph *graph = &this.graph;
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 405);
        int in = sizes[i].in, out = sizes[i].out, heads = sizes[i].heads;
        graph_case_segments(&this, &sizes[i].tokens, 1);
        lp_value *x = lp_example_tokens(graph, "x", heads * in);
        lp_value *bias = lp_affine(graph, lp_example_fixed(graph, "bias", 1, heads * out), 40, 0);
        lp_value *w = lp_example_fixed(graph, "w", heads * out, in), *v = lp_example_fixed(graph, "v", 40, heads * out);
        lp_value *y = lp_linear(graph, lp_affine(graph, x, 1 / sqrt(in), 0), w, bias, NULL, heads, true);
        for (const char *at = sizes[i].after; *at; at++)
            y = *at == 'd' ? lp_dropout(graph, y, 0.3) : *at == 'r' ? lp_relu(graph, y) : lp_tanh(graph, y, 3);
        graph_case_gradients(&this, lp_linear(graph, y, v, NULL, NULL, 1, true)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "%d x %d, %d heads, then %s", in, out, heads, sizes[i].after);
        device_check_precisions(&this, device, 37, 1 << i % 2 | DEVICE_BF16 | DEVICE_SAME_BITS, what);
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
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i += small_effort(1, 5)) {
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
                                       cmocka_unit_test(test_sums), cmocka_unit_test(test_followed),
                                       cmocka_unit_test(test_losses)};
    return cmocka_run_group_tests(tests, find_device, NULL);
}
