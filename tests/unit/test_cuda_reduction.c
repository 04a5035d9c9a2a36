/* test_cuda_reduction.c: hand-made groups of reductions on the emulated device, compared with the reference kernels in double. Random
 * groups print their seed. */
#include "backend/cpu/cpu.h"
#include "emulate/emulate_reduction.h"
#include "graph/op_rows.h"
#include "support/small_data.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 256, PIECES = 32 };

/* Values and nodes of a group. Numbers are exact in float; outputs that are not accumulated into start as NaN. */
typedef struct group_case {
    lp_plan plan;
    int rows[LP_ROWS_COUNT];
    int value_count, node_count;
    lp_value values[VALUES];
    double *given[VALUES];
    lp_node nodes[PIECES];
    lp_random random;
    bool misaligned; /* inputs are misaligned by 4 bytes */
} group_case;

static char what[200];

static void group_start(group_case *this, uint64_t seed, int tokens, int targets, int spare)
{
    *this = (group_case){.random = lp_random_start(seed, LP_PURPOSE_TEST, 208)};
    this->rows[LP_ROWS_TOKENS] = tokens;
    this->rows[LP_ROWS_TARGETS] = targets;
    this->rows[LP_ROWS_ITEMS] = 77;
    for (int type = 0; type < LP_ROWS_COUNT; type++)
        this->plan.largest.rows[type] = this->rows[type] + spare;
}

static void group_clear(group_case *this)
{
    for (int i = 0; i < this->value_count; i++)
        free(this->given[i]);
}

static int elements(const group_case *this, const lp_value *value)
{
    return (value->rows_of == LP_ROWS_FIXED ? value->rows : this->rows[value->rows_of]) * value->cols;
}

static lp_value *add_value(group_case *this, lp_type type, lp_rows rows_of, int rows, int cols, double scale)
{
    int slot = this->value_count++;
    assert_true(slot < VALUES);
    lp_value *value = &this->values[slot];
    *value = (lp_value){.id = slot,
                        .slot = slot,
                        .type = type,
                        .storage = LP_STORAGE_INPUT,
                        .rows_of = rows_of,
                        .rows = rows,
                        .cols = cols};
    int count = elements(this, value);
    this->given[slot] = calloc((size_t)count + 1, sizeof(double));
    for (int i = 0; i < count; i++)
        this->given[slot][i] = (float)(scale * lp_random_normal(&this->random));
    return value;
}

static lp_value *add_output(group_case *this, lp_type type, int rows, int cols)
{
    return add_value(this, type, LP_ROWS_FIXED, rows, cols, NAN);
}

/* Whether a group computes this output. */
static bool is_sum(const lp_node *node, int output)
{
    return node->op != &lp_op_layer_norm_gradient || output > 0;
}

/* The node accumulates into these outputs, which start with random numbers. */
static void accumulate_into(group_case *this, lp_node *node, unsigned outputs)
{
    node->accumulate |= outputs;
    for (int k = 0; k < LP_NODE_OUTPUTS; k++)
        if (outputs >> k & 1 && node->outputs[k] && is_sum(node, k))
            for (int i = 0; i < elements(this, node->outputs[k]); i++)
                this->given[node->outputs[k]->slot][i] = (float)lp_random_normal(&this->random);
}

static lp_node *add_node(group_case *this, const lp_op *op)
{
    assert_true(this->node_count < PIECES);
    lp_node *node = &this->nodes[this->node_count++];
    node->op = op;
    return node;
}

static lp_node *add_outer(group_case *this, lp_rows rows_of, int rows, int heads, int a, int b, bool bias,
                          bool transpose)
{
    lp_node *node = add_node(this, &lp_op_linear_outer);
    node->attributes.heads = heads;
    node->attributes.transpose = transpose;
    node->inputs[0] = add_value(this, LP_TYPE_REAL, rows_of, rows, heads * a, 1);
    node->inputs[1] = add_value(this, LP_TYPE_REAL, rows_of, rows, heads * b, 1);
    node->outputs[0] = add_output(this, LP_TYPE_REAL, heads * a, b);
    node->outputs[1] = bias ? add_output(this, LP_TYPE_REAL, 1, heads * (transpose ? b : a)) : NULL;
    return node;
}

static lp_node *add_columns(group_case *this, lp_rows rows_of, int rows, int cols, bool dot)
{
    lp_node *node = add_node(this, dot ? &lp_op_column_dot : &lp_op_column_sum);
    node->inputs[0] = add_value(this, LP_TYPE_REAL, rows_of, rows, cols, 1);
    node->inputs[1] = dot ? add_value(this, LP_TYPE_REAL, rows_of, rows, cols, 1) : NULL;
    node->outputs[0] = add_output(this, LP_TYPE_REAL, 1, cols);
    return node;
}

static lp_node *add_basis(group_case *this, lp_rows rows_of, int rows, int count)
{
    lp_node *node = add_node(this, &lp_op_basis_gradient);
    node->inputs[0] = add_value(this, LP_TYPE_DOUBLE, rows_of, rows, 1, 1e6);
    node->inputs[1] = add_value(this, LP_TYPE_REAL, rows_of, rows, 2 * count, 1);
    node->inputs[2] = add_value(this, LP_TYPE_REAL, rows_of, rows, 2 * count, 1);
    node->outputs[0] = add_output(this, LP_TYPE_DOUBLE, 1, count);
    return node;
}

static lp_node *add_norm(group_case *this, lp_rows rows_of, int rows, int cols, bool gain, bool shift)
{
    lp_node *node = add_node(this, &lp_op_layer_norm_gradient);
    node->inputs[0] = add_value(this, LP_TYPE_REAL, rows_of, rows, cols, 1);
    node->inputs[1] = add_value(this, LP_TYPE_REAL, LP_ROWS_FIXED, 1, cols, 1);
    node->inputs[2] = add_value(this, LP_TYPE_REAL, rows_of, rows, 2, 1);
    node->inputs[3] = add_value(this, LP_TYPE_REAL, rows_of, rows, cols, 1);
    node->outputs[0] = add_value(this, LP_TYPE_REAL, rows_of, rows, cols, NAN);
    node->outputs[1] = gain ? add_output(this, LP_TYPE_REAL, 1, cols) : NULL;
    node->outputs[2] = shift ? add_output(this, LP_TYPE_REAL, 1, cols) : NULL;
    return node;
}

/* ---- runs ---------------------------------------------------------------------------------------------------- */

/* Values as the kernels see them, each in an allocation of exactly its size. */
typedef struct memory {
    void *blocks[VALUES], *data[VALUES];
} memory;

static bool in_float(const lp_value *value, bool device)
{
    return device && value->type == LP_TYPE_REAL;
}

static void memory_fill(memory *all, const group_case *this, bool device)
{
    for (int i = 0; i < this->value_count; i++) {
        const lp_value *value = &this->values[i];
        int count = elements(this, value);
        bool is_float = in_float(value, device);
        bool off = is_float && this->misaligned && value->cols != 2; /* pairs of moments are aligned */
        size_t size = is_float ? sizeof(float) : sizeof(double);
        all->blocks[i] = malloc((size_t)count * size + (off ? sizeof(float) : 0) + 1);
        all->data[i] = (char *)all->blocks[i] + (off ? sizeof(float) : 0);
        for (int k = 0; k < count; k++) {
            if (is_float)
                ((float *)all->data[i])[k] = (float)this->given[i][k];
            else
                ((double *)all->data[i])[k] = this->given[i][k];
        }
    }
}

static double element_of(const memory *all, const lp_value *value, bool device, int i)
{
    return in_float(value, device) ? ((const float *)all->data[value->slot])[i]
                                   : ((const double *)all->data[value->slot])[i];
}

static void memory_clear(memory *all, const group_case *this)
{
    for (int i = 0; i < this->value_count; i++)
        free(all->blocks[i]);
}

static void run_plain(group_case *this, memory *all)
{
    memory_fill(all, this, false);
    this->plan.real_size = sizeof(double);
    lp_run run = {.plan = &this->plan, .inputs = all->data};
    memcpy(run.rows, this->rows, sizeof run.rows);
    for (int i = 0; i < this->node_count; i++)
        lp_reference_kernels_double[this->nodes[i].op->id](&this->nodes[i], &run);
}

static void run_group(group_case *this, lp_precision precision, memory *all)
{
    const lp_node *nodes[PIECES];
    memory_fill(all, this, true);
    this->plan.real_size = sizeof(float);
    lp_run run = {.plan = &this->plan, .inputs = all->data, .precision = precision};
    memcpy(run.rows, this->rows, sizeof run.rows);
    assert_int_equal(lp_emulate_reduction_max(), PIECES);
    for (int i = 0; i < this->node_count; i++)
        nodes[i] = &this->nodes[i];
    if (!lp_emulate_reduction(nodes, this->node_count, &run))
        fail_msg("%s: wrote beyond the scratch", what);
}

static void check_output(const group_case *this, const lp_value *value, const memory *got, const memory *wanted,
                         double relative)
{
    double largest = 0.1;
    int count = elements(this, value);
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs(element_of(wanted, value, false, i)));
    for (int i = 0; i < count; i++) {
        double is = element_of(got, value, true, i), should = element_of(wanted, value, false, i);
        if (!(fabs(is - should) <= relative * largest))
            fail_msg("%s, value %d, element %d: %.9g, should be %.9g within %.3g", what, value->id, i, is, should,
                     relative * largest);
    }
}

/* Sums in double have a tight tolerance; other outputs must be unchanged. */
static void check_outputs(const group_case *this, const memory *got, const memory *wanted, double relative)
{
    for (int i = 0; i < this->node_count; i++)
        for (int k = 0; k < LP_NODE_OUTPUTS; k++) {
            const lp_value *value = this->nodes[i].outputs[k];
            if (!value)
                continue;
            if (is_sum(&this->nodes[i], k))
                check_output(this, value, got, wanted, value->type == LP_TYPE_DOUBLE ? 1e-12 : relative);
            else
                for (int e = 0; e < elements(this, value); e++)
                    assert_true(isnan(element_of(got, value, true, e)));
        }
}

static void check_same_bits(const group_case *this, const memory *a, const memory *b)
{
    for (int i = 0; i < this->value_count; i++)
        if (memcmp(a->data[i], b->data[i],
                   (size_t)elements(this, &this->values[i]) *
                       (in_float(&this->values[i], true) ? sizeof(float) : sizeof(double))) != 0)
            fail_msg("%s: value %d differs when blocks come in another order", what, i);
}

/* Compares with the reference kernels, in fp32 and tf32, and checks that reversing the order of the blocks gives the same bits. */
static void check_group(group_case *this)
{
    static const struct {
        lp_precision precision;
        double near;
    } types[] = {{LP_PRECISION_FP32, 1e-5}, {LP_PRECISION_TF32, 5e-3}};
    memory wanted, got, reversed;
    run_plain(this, &wanted);
    for (int i = 0; i < 2; i++) {
        run_group(this, types[i].precision, &got);
        check_outputs(this, &got, &wanted, types[i].near);
        setenv("LAPSE_EMULATE_REVERSE", "1", 1);
        run_group(this, types[i].precision, &reversed);
        unsetenv("LAPSE_EMULATE_REVERSE");
        check_same_bits(this, &got, &reversed);
        memory_clear(&got, this);
        memory_clear(&reversed, this);
    }
    memory_clear(&wanted, this);
    group_clear(this);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

/* Products of every shape that warps and tiles are arranged for, with few and many rows. */
static void test_outer(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        int rows, heads, a, b;
    } sizes[] = {{700, 1, 50, 50},  {700, 1, 50, 100}, {700, 1, 100, 50}, {300, 1, 100, 100}, {130, 1, 1, 1},
                 {129, 1, 16, 7},   {400, 1, 48, 33},  {200, 2, 17, 65},  {1, 1, 64, 128},    {0, 1, 20, 5},
                 {65, 3, 130, 129}, {500, 4, 8, 6},    {128, 1, 65, 300}, {1000, 1, 3, 257},  {301, 1, 50, 50},
                 {77, 1, 2, 10},    {143, 1, 12, 66}};
    for (int i = 0; i < 17; i += small_effort(1, 3))
        for (int side = 0; side < 2; side++) {
            group_case this;
            group_start(&this, (uint64_t)i, sizes[i].rows, 1, i % 3 * 50);
            this.misaligned = i % 5 == 4;
            lp_node *node = add_outer(&this, LP_ROWS_TOKENS, 0, sizes[i].heads, sizes[i].a, sizes[i].b, true, side);
            accumulate_into(&this, node, (unsigned)(i + side) % 4);
            snprintf(what, sizeof what, "%d heads of %d x %d over %d rows, sums of %s", sizes[i].heads, sizes[i].a,
                     sizes[i].b, sizes[i].rows, side ? "q" : "p");
            check_group(&this);
        }
}

static void test_columns(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const int cols[] = {1, 3, 32, 33, 50, 64, 100, 128, 129, 258, 1000};
    static const int rows[] = {0, 1, 2, 129, 300, 1000};
    for (int i = 0; i < 11; i++)
        for (int type = 0; type < 4; type++) {
            int count = rows[(i + type) % 6];
            lp_rows of = type % 2 ? LP_ROWS_TOKENS : LP_ROWS_FIXED;
            group_case this;
            group_start(&this, (uint64_t)i, count, 1, i % 3 * 60);
            this.misaligned = i % 4 == 3;
            lp_node *node = type < 2    ? add_columns(&this, of, count, cols[i], type)
                            : type == 2 ? add_basis(&this, of, count, cols[i])
                                        : add_norm(&this, of, count, cols[i], i % 3 != 1, i % 3 != 2);
            accumulate_into(&this, node, (unsigned)i % 3 == 0 ? 7u : 0u);
            snprintf(what, sizeof what, "%s of %d columns over %d rows", node->op->name, cols[i], count);
            check_group(&this);
        }
}

/* Many reductions, each with so few blocks that the rows of a block do not fit into shared memory at once. */
static void test_long_chunks(void **state)
{
    (void)state;
    small_skip_under_tools();
    group_case this;
    group_start(&this, 3, 4501, 1, 0);
    for (int i = 0; i < PIECES - 2; i++)
        add_outer(&this, LP_ROWS_TOKENS, 0, 1, 34, 18, i % 2, i % 4 == 1);
    add_norm(&this, LP_ROWS_TOKENS, 0, 50, true, true);
    add_basis(&this, LP_ROWS_TOKENS, 0, 50);
    snprintf(what, sizeof what, "long chunks");
    check_group(&this);
}

/* What a step of training asks for: outputs that get several sums, over rows of several event types. */
static void test_shared_outputs(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int i = 0; i < 4; i++) {
        group_case this;
        group_start(&this, (uint64_t)i, i == 2 ? 0 : 900, 40, 100 * i);
        lp_node *dots[6], *basis[2], *products[2], *norms[2];
        for (int k = 0; k < 6; k++)
            dots[k] = add_columns(&this, k % 2 ? LP_ROWS_TOKENS : LP_ROWS_TARGETS, 0, 70, k != 3);
        for (int k = 0; k < 2; k++) {
            basis[k] = add_basis(&this, k ? LP_ROWS_TARGETS : LP_ROWS_TOKENS, 0, 35);
            products[k] = add_outer(&this, k ? LP_ROWS_ITEMS : LP_ROWS_TOKENS, 0, 1, 50, 33, true, true);
            norms[k] = add_norm(&this, LP_ROWS_TOKENS, 0, 33, true, true);
        }
        accumulate_into(&this, dots[0], i % 2 ? 1 : 0);
        accumulate_into(&this, basis[0], i % 2 ? 0 : 1);
        accumulate_into(&this, products[0], i > 1 ? 3 : 0);
        accumulate_into(&this, norms[0], (unsigned)i << 1);
        for (int k = 1; k < 6; k++) {
            dots[k]->outputs[0] = dots[0]->outputs[0];
            dots[k]->accumulate = 1;
        }
        basis[1]->outputs[0] = basis[0]->outputs[0];
        products[1]->outputs[0] = products[0]->outputs[0];
        norms[1]->outputs[2] = norms[0]->outputs[2];
        basis[1]->accumulate = products[1]->accumulate = 1;
        norms[1]->accumulate = 4;
        snprintf(what, sizeof what, "shared outputs, group %d", i);
        check_group(&this);
    }
}

/* One node of random event type and size; now and then it adds to what one before it, of the same event type and size, has summed. */
static void add_any(group_case *this, const lp_node *before)
{
    static const lp_rows types[] = {LP_ROWS_FIXED, LP_ROWS_TOKENS, LP_ROWS_TARGETS, LP_ROWS_ITEMS};
    lp_random *random = &this->random;
    lp_rows of = types[lp_random_below(random, 4)];
    int rows = (int)lp_random_below(random, 200), cols = 1 + (int)lp_random_below(random, 140);
    uint32_t type = lp_random_below(random, 5), with = lp_random_below(random, 4);
    if (before && before->op == &lp_op_column_dot && lp_random_below(random, 2)) {
        lp_node *node = add_columns(this, of, rows, before->outputs[0]->cols, with & 1);
        node->outputs[0] = before->outputs[0];
        node->accumulate = 1;
        return;
    }
    lp_node *node = type == 0   ? add_outer(this, of, rows, 1 + (int)lp_random_below(random, 2), cols % 70 + 1,
                                            1 + (int)lp_random_below(random, 140), with & 1, with & 2)
                    : type == 1 ? add_columns(this, of, rows, cols, true)
                    : type == 2 ? add_columns(this, of, rows, cols, false)
                    : type == 3 ? add_basis(this, of, rows, cols % 70 + 1)
                                : add_norm(this, of, rows, cols, with != 1, with != 2);
    accumulate_into(this, node, lp_random_below(random, 8));
}

static void test_groups(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const int sizes[] = {1, 2, 5, 13, PIECES};
    for (int seed = 0; seed < small_effort(10, 2); seed++) {
        group_case this;
        group_start(&this, (uint64_t)seed, seed % 3 ? 350 : 5, seed % 4 ? 90 : 0, seed * 31 % 200);
        for (int i = 0; i < sizes[seed % 5]; i++)
            add_any(&this, i ? &this.nodes[i - 1] : NULL);
        snprintf(what, sizeof what, "group of %d, seed %d", sizes[seed % 5], seed);
        check_group(&this);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outer),          cmocka_unit_test(test_columns),     cmocka_unit_test(test_groups),
        cmocka_unit_test(test_shared_outputs), cmocka_unit_test(test_long_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
