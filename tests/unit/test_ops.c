/* test_ops.c: every op: gradients against finite differences in double, and the float kernels of every instruction-set level
 * against the reference in double, on random instances and on shapes that vectors do not divide. */
#include "backend/cpu/cpu.h"
#include "support/graph_case.h"
#include "support/graph_samples.h"
#include "support/small_data.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The instance, for failure messages. */
static char what[200];

static const struct shard {
    int count, lengths[8];
} shards[] = {
    {1, {1}}, {1, {7}}, {4, {1, 3, 1, 6}}, {3, {2, 8, 5}}, {6, {1, 1, 1, 1, 1, 2}},
};

static void check_close(double got, double wanted, double scale, double relative, const char *part, int element)
{
    double bound = relative * scale;
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s, %s, element %d: %.9g, should be %.9g within %.3g", what, part, element, got, wanted, bound);
}

/* ---------------------------------------------------------------------------------- finite differences ------- */

/* The derivative of the loss with respect to *x by finite differences of fourth order. */
static double slope(graph_case *this, double *x)
{
    static const double steps[] = {-2, -1, 1, 2}, weights[] = {1, -8, 8, -1};
    const double step = 1e-5;
    double at = *x, sum = 0;
    for (int i = 0; i < 4; i++) {
        graph_result result;
        *x = at + steps[i] * step;
        graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
        sum += weights[i] * graph_case_loss(this, &result);
        graph_result_clear(&result);
    }
    *x = at;
    return sum / (12 * step);
}

static void check_slope(graph_case *this, double *x, double gradient, const char *name, int element)
{
    double wanted = slope(this, x);
    check_close(gradient, wanted, fmax(1, fmax(fabs(gradient), fabs(wanted))), 1e-5, name, element);
}

static void check_gradients(graph_case *this)
{
    graph_result result;
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (!value->requires_grad || (value->storage != LP_STORAGE_INPUT && value->storage != LP_STORAGE_PARAMETER))
            continue;
        if (!value->gradient)
            fail_msg("%s: '%s' got no gradient", what, value->name);
        bool input = value->storage == LP_STORAGE_INPUT;
        double *x = input ? this->inputs[value->slot] : this->parameters + value->offset;
        const double *gradient = input ? result.values[value->gradient->id] : result.gradients + value->offset;
        for (int k = 0; k < graph_case_elements(this, value); k++)
            check_slope(this, &x[k], gradient[k], value->name, k);
    }
    graph_result_clear(&result);
}

static void start_example(graph_case *this, const lp_op *op, int seed, const struct shard *shard, double gap)
{
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, (uint32_t)op->id);
    *this = (graph_case){.gap = gap};
    graph_case_segments(this, shard->lengths, shard->count);
    graph_case_gradients(this, op->example(&this->graph, &random)->producer);
    graph_case_fill(this, &random);
    snprintf(what, sizeof what, "%s, seed %d, %d tokens", op->name, seed, this->rows[LP_ROWS_TOKENS]);
}

static void test_gradients(void **state)
{
    (void)state;
    for (int id = 0; id < LP_OP_COUNT; id++)
        for (int seed = 0; seed < small_effort(20, 5) && lp_op_table[id]->example;
             seed += small_under_valgrind() ? 2 : 1) {
            graph_case this;
            start_example(&this, lp_op_table[id], seed, &shards[seed % 5], 1);
            check_gradients(&this);
            graph_case_clear(&this);
        }
}

static void test_sample_gradients(void **state)
{
    (void)state;
    for (int sample = 0; sample < graph_sample_count; sample++)
        for (int i = 0; i < 2; i++) {
            graph_case this = {.gap = 1};
            lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 200);
            graph_case_segments(&this, shards[2 + i].lengths, shards[2 + i].count);
            graph_case_gradients(&this, graph_samples[sample].build(&this.graph, 3, 1 + i, 2));
            graph_case_fill(&this, &random);
            snprintf(what, sizeof what, "%s, seed %d", graph_samples[sample].name, i);
            check_gradients(&this);
            graph_case_clear(&this);
        }
}

/* Every op is in the table at its index, and has an example, is part of a gradient, or serves inference only. */
static void test_table(void **state)
{
    (void)state;
    for (int id = 0; id < LP_OP_COUNT; id++) {
        assert_int_equal(lp_op_table[id]->id, id);
        assert_non_null(lp_op_table[id]->cost);
        assert_true(lp_op_table[id]->example || !lp_op_table[id]->gradient);
        assert_non_null(lp_reference_kernels_double[id]);
        assert_non_null(lp_cpu_kernels()[id]);
    }
}

/* --------------------------------------------------------------------------------------- float kernels ------- */

/* The worst-case error of a float sum of n products near s is n s 6e-8; the longest sums have 1,000 terms and are far from
 * the worst case. The tolerance is relative to the largest element of the matrix. */
static void check_matrix(const double *got, const double *wanted, int count, const char *part)
{
    double largest = 0.1;
    for (int k = 0; k < count; k++)
        largest = fmax(largest, fabs(wanted[k]));
    for (int k = 0; k < count; k++)
        check_close(got[k], wanted[k], largest, 1e-4, part, k);
}

static void check_results(const graph_case *this, const graph_result *got, const graph_result *wanted)
{
    for (int i = 0; i < this->graph.value_count; i++)
        if (wanted->values[i])
            check_matrix(got->values[i], wanted->values[i], graph_case_elements(this, this->graph.values[i]),
                         this->graph.values[i]->name);
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        check_matrix(got->gradients + value->offset, wanted->gradients + value->offset,
                     graph_case_elements(this, value), value->name);
    }
}

static void check_floats(graph_case *this)
{
    graph_result wanted, got;
    size_t length = strlen(what);
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &wanted);
    for (int level = -1; level < 0 || lp_cpu_level_name(level); level++) {
        snprintf(what + length, sizeof what - length, ", %s", level < 0 ? "reference" : lp_cpu_level_name(level));
        graph_case_run(this, sizeof(float), level < 0 ? lp_reference_kernels_float : lp_cpu_level_kernels(level), &got);
        check_results(this, &got, &wanted);
        graph_result_clear(&got);
    }
    graph_result_clear(&wanted);
}

static void test_floats(void **state)
{
    (void)state;
    static const struct shard more[] = {{0, {0}}, {1, {1}}, {3, {33, 1, 70}}, {2, {64, 31}}, {1, {129}}};
    for (int id = 0; id < LP_OP_COUNT; id++)
        for (int seed = 0; seed < small_effort(20, 5) && lp_op_table[id]->example;
             seed += small_under_valgrind() ? 2 : 1) {
            graph_case this;
            start_example(&this, lp_op_table[id], seed, &more[seed % 5], 40000);
            check_floats(&this);
            graph_case_clear(&this);
        }
}

static void test_shapes(void **state)
{
    (void)state;
    static const int cols[] = {1, 2, 7, 8, 15, 16, 17, 32, 33, 50, 64, 160};
    static const struct shard more[] = {{0, {0}}, {1, {1}}, {3, {33, 1, 70}}, {4, {64, 31, 2, 16}}};
    for (int sample = 0; sample < graph_sample_count; sample++)
        for (int i = 0; i < 12; i++)
            for (int k = i % 2; k < 4; k += 2) {
                graph_case this = {.gap = 40000, .first_token = (uint64_t)(1000 * k)};
                lp_random random = lp_random_start((uint64_t)(i * 4 + k), LP_PURPOSE_TEST, 201);
                int heads = 1 + (i + k) % 4;
                graph_case_segments(&this, more[k].lengths, more[k].count);
                graph_case_gradients(&this, graph_samples[sample].build(&this.graph, cols[i], heads, cols[11 - i]));
                graph_case_fill(&this, &random);
                snprintf(what, sizeof what, "%s of %d columns, %d heads, %d tokens", graph_samples[sample].name,
                         cols[i], heads, this.rows[LP_ROWS_TOKENS]);
                check_floats(&this);
                graph_case_clear(&this);
            }
}

/* Products with several passes over terms, and products large enough for BLAS. */
static void test_large_products(void **state)
{
    (void)state;
    static const struct {
        int tokens, in, out;
    } sizes[] = {{300, 33, 21}, {20, 530, 70}, {530, 520, 7}, {7, 700, 400}, {600, 11, 500}};
    for (int i = 0; i < 10; i++) {
        graph_case this = {.gap = 1};
        lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 205);
        int in = sizes[i / 2].in, out = sizes[i / 2].out;
        bool transpose = i % 2;
        graph_case_segments(&this, &sizes[i / 2].tokens, 1);
        lp_value *x = lp_example_tokens(&this.graph, "x", in);
        lp_value *w = lp_example_fixed(&this.graph, "w", transpose ? out : in, transpose ? in : out);
        lp_value *once = lp_linear(&this.graph, x, w, NULL, NULL, 1, transpose);
        lp_value *again = lp_linear(&this.graph, x, w, NULL, NULL, 1, transpose);
        graph_case_gradients(&this, lp_add(&this.graph, once, again)->producer);
        graph_case_fill(&this, &random);
        snprintf(what, sizeof what, "product of %d x %d x %d", this.rows[LP_ROWS_TOKENS], in, out);
        check_floats(&this);
        graph_case_clear(&this);
    }
}

/* Cosines and sines have float precision even after millions of turns. */
static void test_basis_error(void **state)
{
    (void)state;
    static const struct shard shard = {2, {300, 1}};
    graph_case this = {.gap = 86400};
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 202);
    graph_case_segments(&this, shard.lengths, shard.count);
    lp_value *time = lp_graph_input(&this.graph, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *log_period = lp_graph_parameter(&this.graph, "log_period", 1, 9, LP_INIT_NORMAL, 1);
    graph_case_gradients(&this, lp_basis(&this.graph, time, lp_harmonics(&this.graph, log_period, 5))->producer);
    graph_case_fill(&this, &random);
    /* Periods of a minute and more: with 300 days that is millions of turns. */
    for (size_t i = 0; i < this.graph.parameter_size; i++)
        this.parameters[i] = (float)(this.parameters[i] + 6);
    graph_result wanted, got;
    graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &wanted);
    const lp_value *u = this.outputs[0];
    for (int level = 0; lp_cpu_level_name(level); level++) {
        graph_case_run(&this, sizeof(float), lp_cpu_level_kernels(level), &got);
        snprintf(what, sizeof what, "basis, %s", lp_cpu_level_name(level));
        /* log_period is exact in float, so the frequencies are equal, and the phases to 1e-8. */
        for (int k = 0; k < graph_case_elements(&this, u); k++)
            check_close(got.values[u->id][k], wanted.values[u->id][k], 1, 1.5e-7, "u", k);
        graph_result_clear(&got);
    }
    graph_result_clear(&wanted);
    graph_case_clear(&this);
}

/* ------------------------------------------------------------------------------------------- same bits ------- */

static void check_same_bits(const graph_case *this, const graph_result *a, const graph_result *b)
{
    for (int i = 0; i < this->graph.value_count; i++)
        if (a->values[i] && b->values[i] &&
            memcmp(a->values[i], b->values[i],
                   sizeof(double) * (size_t)graph_case_elements(this, this->graph.values[i])) != 0)
            fail_msg("%s: '%s' differs", what, this->graph.values[i]->name);
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        if (memcmp(a->gradients + value->offset, b->gradients + value->offset,
                   sizeof(double) * (size_t)graph_case_elements(this, value)) != 0)
            fail_msg("%s: the gradient of '%s' differs", what, value->name);
    }
}

/* Neither the alignment of inputs nor the sharing of bytes changes a bit of the results. */
static void test_same_bits(void **state)
{
    (void)state;
    for (int sample = 0; sample < graph_sample_count; sample++)
        for (int level = 0; lp_cpu_level_name(level); level++) {
            graph_case this = {.gap = 40000};
            lp_random random = lp_random_start(9, LP_PURPOSE_TEST, 203);
            graph_case_segments(&this, (int[]){33, 1, 70, 5}, 4);
            graph_case_gradients(&this, graph_samples[sample].build(&this.graph, 37, 2, 11));
            graph_case_fill(&this, &random);
            graph_result first, other;
            graph_case_run(&this, sizeof(float), lp_cpu_level_kernels(level), &first);
            this.misalign = 4;
            graph_case_run(&this, sizeof(float), lp_cpu_level_kernels(level), &other);
            snprintf(what, sizeof what, "%s, %s, misaligned", graph_samples[sample].name, lp_cpu_level_name(level));
            check_same_bits(&this, &first, &other);
            graph_result_clear(&other);
            for (int i = 0; i < this.graph.value_count; i++)
                this.graph.values[i]->retained = true;
            graph_case_run(&this, sizeof(float), lp_cpu_level_kernels(level), &other);
            snprintf(what, sizeof what, "%s, %s, nothing shared", graph_samples[sample].name, lp_cpu_level_name(level));
            check_same_bits(&this, &first, &other);
            graph_result_clear(&other);
            graph_result_clear(&first);
            graph_case_clear(&this);
        }
}

/* A gradient that computes the scores again, because the planner left them out, has the same bits as one that reads them. */
static void test_scores_left_out(void **state)
{
    (void)state;
    graph_case this = {.gap = 1};
    lp_random random = lp_random_start(6, LP_PURPOSE_TEST, 205);
    graph_case_segments(&this, (int[]){61, 1, 40}, 3);
    lp_value *z = lp_example_rows(&this.graph, "z", LP_ROWS_TARGETS, 19);
    lp_value *items = lp_example_fixed(&this.graph, "items", 2 * LP_SOFTMAX_ITEMS + 5, 19);
    lp_value *bias = lp_example_fixed(&this.graph, "bias", items->rows, 1);
    lp_value *target = lp_graph_input(&this.graph, "target", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1);
    lp_node *loss = lp_softmax_loss(&this.graph, z, items, bias, NULL, target)->producer;
    graph_case_gradients(&this, loss);
    graph_case_fill(&this, &random);
    const lp_value *scores = loss->outputs[2];
    graph_result stored, computed;
    graph_case_run_on(&this, lp_backend_find("cpu"), 0, 1, &stored);
    assert_true(scores->optional && scores->offset != LP_LEFT_OUT);
    graph_case_run_on(&this, lp_backend_find("cpu"), LP_OPTIONAL_BYTES / 4 / items->rows, 1, &computed);
    assert_true(scores->offset == LP_LEFT_OUT);
    snprintf(what, sizeof what, "scores left out");
    check_same_bits(&this, &stored, &computed);
    graph_result_clear(&stored);
    graph_result_clear(&computed);
    graph_case_clear(&this);
}

/* Dropout masks do not depend on how a batch is split into shards. */
static void test_shards(void **state)
{
    (void)state;
    graph_case whole = {.gap = 1}, shard = {.gap = 1, .first_token = 34};
    graph_case *both[] = {&whole, &shard};
    for (int i = 0; i < 2; i++) {
        lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 204);
        graph_case_segments(both[i], i ? (int[]){70, 5} : (int[]){33, 1, 70, 5}, i ? 2 : 4);
        graph_case_gradients(both[i], graph_samples[2].build(&both[i]->graph, 19, 2, 12));
        graph_case_fill(both[i], &random);
    }
    memcpy(shard.parameters, whole.parameters, whole.graph.parameter_size * sizeof(double));
    for (int i = 0; i < whole.graph.value_count; i++) {
        const lp_value *value = whole.graph.values[i];
        if (value->storage == LP_STORAGE_INPUT)
            memcpy(shard.inputs[value->slot], whole.inputs[value->slot] + 34 * value->cols,
                   75 * (size_t)value->cols * sizeof(double));
    }
    for (int level = -1; level < 0 || lp_cpu_level_name(level); level++) {
        const lp_kernel *kernels = level < 0 ? lp_reference_kernels_float : lp_cpu_level_kernels(level);
        graph_result all, part;
        graph_case_run(&whole, sizeof(float), kernels, &all);
        graph_case_run(&shard, sizeof(float), kernels, &part);
        snprintf(what, sizeof what, "shards, level %d", level);
        for (int i = 0; i < whole.graph.value_count; i++)
            if (all.values[i])
                check_matrix(part.values[i], all.values[i] + 34 * whole.graph.values[i]->cols,
                             75 * whole.graph.values[i]->cols, whole.graph.values[i]->name);
        graph_result_clear(&all);
        graph_result_clear(&part);
    }
    graph_case_clear(&whole);
    graph_case_clear(&shard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_sample_gradients),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_basis_error),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_large_products),
        cmocka_unit_test(test_scores_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
