/* test_flow.c: normalizing flows: inverse(forward(x)) = x, log-determinant against a numeric Jacobian, dependencies between
 * variables, gradients against finite differences; and the noise op. */
#include "backend/cpu/cpu.h"
#include "nn/flow.h"
#include "nn/inverse_cdf.h"
#include "support/graph_case.h"
#include "support/graph_slope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 12 };

static const struct {
    const char *name;
    const lp_flow_type *type;
} types[] = {{"maf", &lp_flow_maf}, {"iaf", &lp_flow_iaf}, {"nvp", &lp_flow_nvp}};

static const struct {
    int units, hidden;
} sizes[] = {{1, 1}, {1, 5}, {2, 3}, {3, 2}, {5, 7}, {MOST, 9}};

static char what[120];

/* A flow and its inverse on one row, with random parameters. */
typedef struct flow_case {
    graph_case graph;
    lp_value *z, *x, *back;
    lp_value *scales[LP_FLOW_LAYERS], *back_scales[LP_FLOW_LAYERS];
    int units, layers;
} flow_case;

static void start(flow_case *this, int type, int size, int seed)
{
    lp_flow flow;
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 900);
    snprintf(what, sizeof what, "%s of %d variables, %d hidden, seed %d", types[type].name, sizes[size].units,
             sizes[size].hidden, seed);
    *this = (flow_case){.graph = {.gap = 1}, .units = sizes[size].units, .layers = types[type].type->layers};
    lp_graph *graph = &this->graph.graph;
    this->z = lp_example_fixed(graph, "z", 1, this->units);
    lp_flow_declare(graph, types[type].type, this->units, sizes[size].hidden, &flow);
    this->x = lp_flow_forward(graph, &flow, this->z, this->scales);
    this->back = lp_flow_inverse(graph, &flow, this->x, this->back_scales);
    assert_non_null(this->back);
    this->x->retained = true;
    for (int i = 0; i < this->layers; i++)
        this->scales[i]->retained = this->back_scales[i]->retained = true;
    graph_case_gradients(&this->graph, this->back->producer);
    graph_case_fill(&this->graph, &random);
    for (size_t i = (size_t)16 * ((this->units + 15) / 16); i < graph->parameter_size; i++)
        this->graph.parameters[i] *= 0.5; /* larger ones shrink some variable below the precision */
}

static double log_determinant(const flow_case *this, const graph_result *result, lp_value *const *scales)
{
    double sum = 0;
    for (int i = 0; i < this->layers; i++)
        for (int k = 0; k < this->units; k++)
            sum += result->values[scales[i]->id][k];
    return sum;
}

static void run(flow_case *this, graph_result *result)
{
    graph_case_run(&this->graph, sizeof(double), lp_reference_kernels_double, result);
}

static void for_each_flow(void (*check)(flow_case *this, int type))
{
    for (int type = 0; type < 3; type++)
        for (int size = 0; size < 6; size++)
            for (int seed = 0; seed < 5; seed++) {
                flow_case this;
                start(&this, type, size, seed);
                check(&this, type);
                graph_case_clear(&this.graph);
            }
}

static void check_inverse(flow_case *this, int type)
{
    (void)type;
    graph_result result;
    run(this, &result);
    double moved = 0;
    for (int i = 0; i < this->units; i++) {
        double z = this->graph.parameters[this->z->offset + (size_t)i], back = result.values[this->back->id][i];
        if (!(fabs(back - z) <= 1e-6 * fmax(1, fabs(z))))
            fail_msg("%s: variable %d: %.9g became %.9g", what, i, z, back);
        moved = fmax(moved, fabs(result.values[this->x->id][i] - z));
    }
    if (moved < 1e-3)
        fail_msg("%s: the flow is the identity", what);
    double there = log_determinant(this, &result, this->scales),
           back = log_determinant(this, &result, this->back_scales);
    if (fabs(there + back) > 1e-6)
        fail_msg("%s: log-determinants %.9g forward and %.9g inverse", what, there, back);
    graph_result_clear(&result);
}

static void forward_and_inverse(void **state)
{
    (void)state;
    for_each_flow(check_inverse);
}

/* dx_i / dz_j by finite differences of fourth order */
static void jacobian(flow_case *this, double matrix[MOST][MOST])
{
    static const double steps[] = {-2, -1, 1, 2}, weights[] = {1, -8, 8, -1};
    memset(matrix, 0, MOST * sizeof *matrix);
    for (int j = 0; j < this->units; j++) {
        double *z = &this->graph.parameters[this->z->offset + (size_t)j], at = *z;
        for (int s = 0; s < 4; s++) {
            graph_result result;
            *z = at + steps[s] * 1e-5;
            run(this, &result);
            for (int i = 0; i < this->units; i++)
                matrix[i][j] += weights[s] * result.values[this->x->id][i] / 12e-5;
            graph_result_clear(&result);
        }
        *z = at;
    }
}

/* log |det| by Gaussian elimination with partial pivoting */
static double log_det(double matrix[MOST][MOST], int size)
{
    double sum = 0;
    for (int c = 0; c < size; c++) {
        int best = c;
        for (int r = c; r < size; r++)
            best = fabs(matrix[r][c]) > fabs(matrix[best][c]) ? r : best;
        for (int k = 0; k < size; k++) {
            double other = matrix[c][k];
            matrix[c][k] = matrix[best][k];
            matrix[best][k] = other;
        }
        sum += log(fabs(matrix[c][c]));
        for (int r = c + 1; r < size; r++)
            for (int k = size - 1; k >= c; k--)
                matrix[r][k] -= matrix[r][c] / matrix[c][c] * matrix[c][k];
    }
    return sum;
}

static void check_determinant(flow_case *this, int type)
{
    double matrix[MOST][MOST];
    graph_result result;
    jacobian(this, matrix);
    /* Autoregressive: nothing above the diagonal. */
    for (int i = 0; i < this->units && types[type].type != &lp_flow_nvp; i++)
        for (int j = i + 1; j < this->units; j++)
            if (fabs(matrix[i][j]) > 1e-7)
                fail_msg("%s: variable %d depends on %d", what, i, j);
    run(this, &result);
    double wanted = log_det(matrix, this->units), got = log_determinant(this, &result, this->scales);
    if (!(fabs(got - wanted) <= 1e-5))
        fail_msg("%s: log-determinant %.9g, the Jacobian's is %.9g", what, got, wanted);
    graph_result_clear(&result);
}

static void log_determinants(void **state)
{
    (void)state;
    for_each_flow(check_determinant);
}

/* A coupling layer does not change the half it conditions on. */
static void coupling(void **state)
{
    (void)state;
    for (int layer = 0; layer < 2; layer++) {
        lp_flow_type type = {1, {lp_flow_nvp.order[layer]}, false};
        lp_flow flow;
        graph_case this = {.gap = 1};
        lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 901);
        lp_value *z = lp_example_fixed(&this.graph, "z", 1, 5);
        lp_flow_declare(&this.graph, &type, 5, 4, &flow);
        lp_value *x = lp_flow_forward(&this.graph, &flow, z, NULL);
        graph_case_gradients(&this, x->producer);
        graph_case_fill(&this, &random);
        graph_result result;
        graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &result);
        for (int i = 0; i < 5; i++)
            assert_int_equal(result.values[x->id][i] == this.parameters[z->offset + (size_t)i],
                             (i < 2) == (layer == 0));
        graph_result_clear(&result);
        graph_case_clear(&this);
    }
}

static void map_gradients(void **state)
{
    (void)state;
    for (int m = 0; lp_inverse_cdfs[m]; m++)
        for (int count = 1; count <= 7; count += 2) {
            graph_case this = {.gap = 1};
            lp_random random = lp_random_start((uint64_t)count, LP_PURPOSE_TEST, 902);
            bool joint = lp_inverse_cdfs[m]->joint;
            lp_value *noise = lp_noise(&this.graph, joint ? 1 : count, joint ? count : 1, lp_inverse_cdfs[m]->uniform,
                                       count % 4 == 1, 0);
            lp_value *y = lp_inverse_cdfs[m]->build(&this.graph, noise, 6);
            assert_non_null(y);
            assert_true(lp_value_same_shape(y, noise));
            graph_case_gradients(&this, y->producer);
            graph_case_fill(&this, &random);
            snprintf(what, sizeof what, "%s of %d numbers", lp_inverse_cdfs[m]->name, count);
            graph_slope_check(&this, what, 1);
            graph_case_clear(&this);
        }
}

/* ------------------------------------------------------------------------------------------------ noise ------ */

static void run_noise(int count, bool uniform, bool independent, uint64_t seed, uint32_t step, uint32_t stream,
                      double *out)
{
    lp_graph graph = {0};
    lp_plan plan;
    lp_value *noise = lp_noise(&graph, 1, count, uniform, independent, stream);
    assert_int_equal(lp_plan_make(&plan, &graph, &(lp_extent){0}, sizeof(double), NULL), LAPSE_OK);
    assert_int_equal(noise->offset, 0);
    lp_run run = {.plan = &plan, .work = (char *)out, .seed = seed, .step = step};
    lp_reference_kernels_double[LP_OP_NOISE](noise->producer, &run);
    lp_graph_clear(&graph);
}

static void noise(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    double a[COUNT], b[COUNT], sum = 0, square = 0;
    for (uint32_t step = 0; step < 50; step++) {
        run_noise(COUNT, true, false, 5, step, 0, a);
        for (int i = 0; i < COUNT; i++)
            assert_true(a[i] > (double)i / COUNT && a[i] < (i + 1.0) / COUNT); /* one in each stratum */
        run_noise(COUNT, false, false, 5, step, 0, a);
        for (int i = 0; i < COUNT; i++) {
            assert_true(i == 0 || a[i] > a[i - 1]);
            sum += a[i] / (50 * COUNT);
            square += a[i] * a[i] / (50 * COUNT);
        }
    }
    assert_true(fabs(sum) < 0.02 && fabs(square - 1) < 0.03);
    run_noise(COUNT, false, false, 5, 49, 0, b);
    assert_memory_equal(a, b, sizeof a);
    run_noise(COUNT, false, false, 5, 48, 0, b);
    assert_memory_not_equal(a, b, sizeof a);
    run_noise(COUNT, false, false, 6, 49, 0, b);
    assert_memory_not_equal(a, b, sizeof a);
    run_noise(COUNT, false, false, 5, 49, 1, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* Independent samples have the distribution, but not one in each stratum: the number in the lower half is binomial. */
static void independent_noise(void **state)
{
    (void)state;
    enum { COUNT = 40, STEPS = 500 };
    double a[COUNT], variance = 0, sum = 0, square = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        int lower = 0;
        run_noise(COUNT, false, true, 5, step, 0, a);
        for (int i = 0; i < COUNT; i++) {
            lower += a[i] < 0;
            sum += a[i] / (STEPS * COUNT);
            square += a[i] * a[i] / (STEPS * COUNT);
        }
        variance += (lower - COUNT / 2) * (lower - COUNT / 2) / (double)STEPS;
    }
    assert_true(fabs(sum) < 0.03 && fabs(square - 1) < 0.05);
    assert_true(fabs(variance / (COUNT / 4.0) - 1) < 0.3); /* stratified: 0 */
}

static void normal_quantiles(void **state)
{
    (void)state;
    static const double known[][2] = {{0.5, 0},
                                      {0.975, 1.959963984540054},
                                      {0.84134474606854293, 1},
                                      {0.001349898031630095, -3},
                                      {9.865876450376946e-10, -6}};
    for (int i = 0; i < 5; i++)
        assert_true(fabs(lp_normal_quantile(known[i][0]) - known[i][1]) < 1e-9);
    for (double p = 1e-16; p < 0.5; p *= 1.7) {
        double x = lp_normal_quantile(p);
        assert_true(fabs(0.5 * erfc(-x / sqrt(2.0)) / p - 1) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_and_inverse),
        cmocka_unit_test(log_determinants),
        cmocka_unit_test(coupling),
        cmocka_unit_test(map_gradients),
        cmocka_unit_test(noise),
        cmocka_unit_test(independent_noise),
        cmocka_unit_test(normal_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
