/* test_recurrent.c: the ops lstm and gru against torch.nn.LSTM and torch.nn.GRU, and all of their kernels against the plain ones in
 * double on shapes that the examples of the op table do not have: empty segments, more segments than advance together, weights that
 * do not fit into shared memory. tests/golden/make_recurrent_golden.py wrote the numbers of PyTorch, and says what the file holds. The
 * CUDA kernels run on the emulated device, or on a real one where the environment variable LAPSE_TEST_DEVICE is cuda.
 */
#include "support/golden_file.h"
#include "support/small_data.h"

#include "support/every_kernel.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = GOLDEN_NAME_SIZE, LAYERS = 2 };

/* --------------------------------------------------------------------------------------------- the layers ----- */

typedef struct recurrent_layer {
    const char *name;
    int gates;
    /* x [T x gates*H] -> hidden states; bias is unused by an LSTM, which has both biases in x. */
    lp_value *(*build)(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias);
    bool has_bias;
} recurrent_layer;

static lp_value *build_lstm(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias)
{
    (void)bias;
    return lp_lstm(graph, x, weight);
}

static const recurrent_layer layers[] = {{"lstm", 4, build_lstm, false}, {"gru", 3, lp_gru, true}};
enum { LAYER_COUNT = sizeof layers / sizeof *layers };

/* A layer with its own weight and bias. */
static lp_value *example_layer(const recurrent_layer *layer, lp_graph *graph, lp_value *x, int hidden)
{
    lp_value *weight = lp_example_fixed(graph, "weight_hh", layer->gates * hidden, hidden);
    return layer->build(graph, x, weight,
                        layer->has_bias ? lp_example_fixed(graph, "bias_hh", 1, layer->gates * hidden) : NULL);
}

/* ------------------------------------------------------------------------------------------ the golden file --- */

static golden_file golden;

static int open_all(void **state)
{
    (void)state;
    if (every_kernel_open() != 0)
        return -1;
    return golden_open(&golden, "tests/golden/recurrent.safetensors");
}

static int close_all(void **state)
{
    (void)state;
    golden_close(&golden);
    return 0;
}

/* ------------------------------------------------------------------------------------------------- PyTorch ---- */

typedef struct golden_case {
    const recurrent_layer *layer;
    char name[NAME_SIZE];
    int layers, input, hidden, sequences;
    lp_value *x, *cell; /* cell: of an LSTM */
    lp_value *parameter[LAYERS][4];
} golden_case;

static const char *const parameter_names[4] = {"weight_ih_l%d", "weight_hh_l%d", "bias_ih_l%d", "bias_hh_l%d"};

/* A tensor of the golden file with `count` elements. */
static double *tensor(const golden_case *this, const char *name, int cols, int count)
{
    size_t found;
    double *out = golden_tensor(&golden, this->name, name, -1, cols, &found);
    assert_int_equal(found, count);
    return out;
}

static void build_layer(graph_case *this, golden_case *expected, int l, lp_value **h)
{
    lp_graph *graph = &this->graph;
    int gates = expected->layer->gates * expected->hidden;
    lp_value **parameter = expected->parameter[l];
    char names[4][NAME_SIZE];
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], parameter_names[i], l);
    parameter[0] = lp_example_fixed(graph, names[0], gates, (*h)->cols);
    parameter[1] = lp_example_fixed(graph, names[1], gates, expected->hidden);
    parameter[2] = lp_example_fixed(graph, names[2], 1, gates);
    /* Both biases of an LSTM are one parameter, their sum. */
    parameter[3] = expected->layer->has_bias ? lp_example_fixed(graph, names[3], 1, gates) : parameter[2];
    lp_value *x = lp_linear(graph, *h, parameter[0], parameter[2], NULL, 1, true);
    *h = expected->layer->build(graph, x, parameter[1], parameter[3]);
    assert_non_null(*h);
}

static void build_golden(graph_case *this, golden_case *expected)
{
    int lengths[CASE_SEGMENTS];
    lp_graph *graph = &this->graph;
    double *segment = tensor(expected, "segment", expected->sequences + 1, expected->sequences + 1);
    for (int s = 0; s < expected->sequences; s++)
        lengths[s] = (int)(segment[s + 1] - segment[s]);
    free(segment);
    graph_case_segments(this, lengths, expected->sequences);
    lp_value *h = expected->x = lp_example_tokens(graph, "input", expected->input);
    for (int l = 0; l < expected->layers; l++)
        build_layer(this, expected, l, &h);
    if (!expected->layer->has_bias) {
        expected->cell = h->producer->outputs[2];
        expected->cell->retained = true;
    }
    graph_case_gradients(this, lp_shift_rows(graph, h, 0)->producer);
    this->inputs[expected->x->slot] =
        tensor(expected, "input", expected->input, graph_case_elements(this, expected->x));
    this->inputs[this->seeds[0]->slot] =
        tensor(expected, "seed", expected->hidden, graph_case_elements(this, this->seeds[0]));
    this->parameters = calloc(graph->parameter_size + 1, sizeof(double));
    for (int l = 0; l < expected->layers; l++)
        for (int i = 0; i < 4; i++) {
            char name[NAME_SIZE];
            const lp_value *value = expected->parameter[l][i];
            snprintf(name, sizeof name, parameter_names[i], l);
            double *from = tensor(expected, name, value->cols, graph_case_elements(this, value));
            for (int k = 0; k < graph_case_elements(this, value); k++)
                this->parameters[value->offset + (size_t)k] += from[k];
            free(from);
        }
}

static void check_tensor(const golden_case *expected, const char *name, const double *got, int cols, int count,
                         double relative)
{
    double *wanted = tensor(expected, name, cols, count);
    check_matrix(got, wanted, count, relative, name);
    free(wanted);
}

/* The cell states at the end of each sequence. */
static void check_cell(const graph_case *this, const golden_case *expected, const graph_result *result, double relative)
{
    int hidden = expected->hidden;
    double *cell = calloc((size_t)(expected->sequences * hidden), sizeof *cell);
    for (int s = 0; s < expected->sequences; s++)
        memcpy(cell + s * hidden, result->values[expected->cell->id] + (this->segment[s + 1] - 1) * hidden,
               (size_t)hidden * sizeof *cell);
    check_tensor(expected, "cell", cell, hidden, expected->sequences * hidden, relative);
    free(cell);
}

static void check_golden(graph_case *this, const graph_result *result, double relative, const void *wanted)
{
    const golden_case *expected = wanted;
    int hidden = expected->hidden, input = expected->input, tokens = this->rows[LP_ROWS_TOKENS];
    check_tensor(expected, "output", result->values[this->outputs[0]->id], hidden, tokens * hidden, relative);
    check_tensor(expected, "gradient.input", result->values[expected->x->gradient->id], input, tokens * input,
                 relative);
    if (expected->cell)
        check_cell(this, expected, result, relative);
    for (int l = 0; l < expected->layers; l++)
        for (int i = 0; i < 4; i++) {
            char name[NAME_SIZE] = "gradient.";
            const lp_value *value = expected->parameter[l][i];
            snprintf(name + strlen(name), sizeof name - strlen(name), parameter_names[i], l);
            check_tensor(expected, name, result->gradients + value->offset, value->cols,
                         graph_case_elements(this, value), relative);
        }
}

static void test_golden(void **state)
{
    (void)state;
    static const char *const cases[] = {"small", "stacked", "wide"};
    for (int i = 0; i < 3 * LAYER_COUNT; i++) {
        graph_case this = {.gap = 1};
        golden_case expected = {.layer = &layers[i / 3]};
        snprintf(expected.name, sizeof expected.name, "%s.%s", expected.layer->name, cases[i % 3]);
        expected.layers = (int)golden_setting(&golden, expected.name, "layers");
        expected.input = (int)golden_setting(&golden, expected.name, "input_size");
        expected.hidden = (int)golden_setting(&golden, expected.name, "hidden_size");
        expected.sequences = (int)golden_setting(&golden, expected.name, "sequences");
        assert_true(expected.layers <= LAYERS);
        build_golden(&this, &expected);
        snprintf(what, sizeof what, "PyTorch, case %s", expected.name);
        run_everywhere(&this, check_golden, &expected, 1e-5);
        graph_case_clear(&this);
    }
}

/* -------------------------------------------------------------------------------------------- packed shapes --- */

/* Gates as a trained layer has them: normal weights of deviation 1 would saturate all of them. */
static void fill_layer(graph_case *this, int hidden, lp_random *random)
{
    graph_case_fill(this, random);
    for (size_t i = 0; i < this->graph.parameter_size; i++)
        this->parameters[i] = (float)(this->parameters[i] / sqrt(hidden));
}

static void check_layer_shape(const recurrent_layer *layer, int hidden, const int *lengths, int segments,
                              const char *name)
{
    graph_case this = {.gap = 1};
    graph_result wanted;
    lp_random random = lp_random_start((uint64_t)hidden, LP_PURPOSE_TEST, (uint32_t)segments);
    graph_case_segments(&this, lengths, segments);
    lp_value *h = example_layer(layer, &this.graph, lp_example_tokens(&this.graph, "x", layer->gates * hidden), hidden);
    graph_case_gradients(&this, lp_add(&this.graph, h, lp_shift_rows(&this.graph, h, 2))->producer);
    fill_layer(&this, hidden, &random);
    graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &wanted);
    snprintf(what, sizeof what, "%s, %s, hidden size %d", layer->name, name, hidden);
    run_everywhere(&this, check_result, &wanted, 2e-5);
    graph_result_clear(&wanted);
    graph_case_clear(&this);
}

static void check_shape(int hidden, const int *lengths, int segments, const char *name)
{
    for (int i = 0; i < LAYER_COUNT; i++)
        check_layer_shape(&layers[i], hidden, lengths, segments, name);
}

static void test_packed_shapes(void **state)
{
    (void)state;
    int many[CASE_SEGMENTS];
    for (int s = 0; s < CASE_SEGMENTS; s++)
        many[s] = s * 7 % 5;
    check_shape(3, (int[]){0, 5, 0, 0, 2, 9, 0}, 7, "empty segments");
    check_shape(3, (int[]){0, 0}, 2, "only empty segments");
    check_shape(17, NULL, 0, "no segments");
    check_shape(1, (int[]){1}, 1, "one row");
    check_shape(6, many, 150, "150 segments");
    check_shape(9, many, CASE_SEGMENTS, "many segments");
    check_shape(70, many, CASE_SEGMENTS, "many segments");
    check_shape(64, (int[]){30, 50, 2}, 3, "long segments");
    check_shape(130, (int[]){3, 4}, 2, "weight larger than shared memory");
    check_shape(260, (int[]){1, 3}, 2, "more gates than threads");
}

/* The results have the same bits wherever inputs lie, and whichever block comes first. */
static void check_same_bits(const recurrent_layer *layer)
{
    graph_case this = {.gap = 1};
    graph_result first, other;
    lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 211);
    int hidden = 19;
    graph_case_segments(&this, (int[]){5, 1, 9, 0, 7, 7}, 6);
    lp_value *x = lp_example_tokens(&this.graph, "x", layer->gates * hidden);
    lp_value *h = example_layer(layer, &this.graph, x, hidden);
    graph_case_gradients(&this, lp_add(&this.graph, h, example_layer(layer, &this.graph, x, hidden))->producer);
    fill_layer(&this, hidden, &random);
    for (int level = 0; lp_cpu_level_name(level); level++) {
        this.misalign = 0;
        graph_case_run(&this, sizeof(float), lp_cpu_level_kernels(level), &first);
        this.misalign = 4;
        graph_case_run(&this, sizeof(float), lp_cpu_level_kernels(level), &other);
        snprintf(what, sizeof what, "misaligned, %s", lp_cpu_level_name(level));
        check_result(&this, &other, 0, &first);
        graph_result_clear(&first);
        graph_result_clear(&other);
    }
    if (device) {
        graph_case_run_on(&this, device, 0, 1, &first);
        setenv("LAPSE_EMULATE_REVERSE", "1", 1);
        graph_case_run_on(&this, device, 90, 2, &other);
        unsetenv("LAPSE_EMULATE_REVERSE");
        snprintf(what, sizeof what, "blocks in the opposite order");
        check_result(&this, &other, 0, &first);
        graph_result_clear(&first);
        graph_result_clear(&other);
    }
    graph_case_clear(&this);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < LAYER_COUNT; i++)
        check_same_bits(&layers[i]);
}

/* ------------------------------------------------------------------------------------------------- mistakes --- */

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        int x_cols, rows, cols;
    } wrong[] = {{12, 12, 4}, {12, 16, 4}, {16, 4, 4}, {4100, 4100, 1025}};
    for (int i = 0; i < 4; i++) {
        lp_graph graph = {0};
        lapse_error error;
        lp_value *x = lp_example_tokens(&graph, "x", wrong[i].x_cols);
        assert_null(lp_lstm(&graph, x, lp_example_fixed(&graph, "weight_hh", wrong[i].rows, wrong[i].cols)));
        assert_int_not_equal(lp_graph_status(&graph, &error), LAPSE_OK);
        lp_graph_clear(&graph);
    }
    static const int bias[] = {12, 5};
    for (int i = 0; i < 2; i++) { /* a right and a wrong one */
        lp_graph graph = {0};
        lp_value *x = lp_example_tokens(&graph, "x", 12), *weight = lp_example_fixed(&graph, "weight_hh", 12, 4);
        lp_value *h = lp_gru(&graph, x, weight, lp_example_fixed(&graph, "bias_hh", 1, bias[i]));
        assert_int_equal(lp_graph_status(&graph, NULL) == LAPSE_OK && h, i == 0);
        lp_graph_clear(&graph);
    }
    lp_graph graph = {0};
    assert_null(lp_shift_rows(&graph, lp_example_fixed(&graph, "x", 3, 2), 1));
    lp_graph_clear(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_packed_shapes),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
