/* test_op_golden.c: losses over sampled negatives, the loss of a time and ops of convolutions against PyTorch, on all kernels.
 * tests/golden/make_op_golden.py wrote the numbers, and says what the file holds.
 */
#include "support/every_kernel.h"
#include "support/golden_file.h"
#include "support/small_data.h"

typedef double real;
#include "formula/sampled.h"

#include <stdlib.h>

static golden_file golden;

static int open_all(void **state)
{
    (void)state;
    return every_kernel_open() == 0 ? golden_open(&golden, "tests/golden/op.safetensors") : -1;
}

static int close_all(void **state)
{
    (void)state;
    golden_close(&golden);
    return 0;
}

static double *tensor(const char *case_name, const char *name, int cols, int count)
{
    size_t found;
    double *out = golden_tensor(&golden, case_name, name, -1, cols, &found);
    assert_int_equal(found, count);
    return out;
}

static int setting(const char *case_name, const char *name)
{
    return (int)golden_setting(&golden, case_name, name);
}

static void check_tensor(const char *case_name, const char *name, const double *got, int cols, int count,
                         double relative)
{
    double *wanted = tensor(case_name, name, cols, count);
    check_matrix(got, wanted, count, relative, name);
    free(wanted);
}

static void load_parameter(graph_case *this, const char *case_name, const char *name, const lp_value *value)
{
    int count = graph_case_elements(this, value);
    double *from = tensor(case_name, name, value->cols, count);
    memcpy(this->parameters + value->offset, from, (size_t)count * sizeof *from);
    free(from);
}

/* --------------------------------------------------------------------------------------------------- losses --- */

typedef struct loss_case {
    char name[GOLDEN_NAME_SIZE];
    lp_value *z, *items, *bias;
    int cols, item_count;
} loss_case;

static void check_loss(graph_case *this, const graph_result *result, double relative, const void *wanted)
{
    const loss_case *c = wanted;
    int rows = this->rows[LP_ROWS_TOKENS];
    check_tensor(c->name, "loss", result->values[this->outputs[0]->id], 1, 1, relative);
    check_tensor(c->name, "gradient.z", result->values[c->z->gradient->id], c->cols, rows * c->cols, relative);
    check_tensor(c->name, "gradient.items", result->gradients + c->items->offset, c->cols, c->item_count * c->cols,
                 relative);
    check_tensor(c->name, "gradient.bias", result->gradients + c->bias->offset, 1, c->item_count, relative);
}

static void run_loss(lp_loss type, const char *loss, const char *name)
{
    graph_case this = {.gap = 1};
    lp_graph *graph = &this.graph;
    loss_case c;
    snprintf(c.name, sizeof c.name, "%s.%s", loss, name);
    c.cols = setting(c.name, "cols");
    c.item_count = setting(c.name, "items");
    int rows = setting(c.name, "rows"), negatives = setting(c.name, "negatives");
    graph_case_segments(&this, &rows, 1);
    c.z = lp_example_tokens(graph, "z", c.cols);
    c.items = lp_example_fixed(graph, "items", c.item_count, c.cols);
    c.bias = lp_example_fixed(graph, "bias", c.item_count, 1);
    lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *negative = lp_graph_input(graph, "negative", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, negatives);
    double regularization = golden_setting(&golden, "", "regularization");
    graph_case_gradients(
        &this, lp_sampled_loss(graph, c.z, c.items, c.bias, target, negative, type, regularization, LP_SCORE_PRODUCT)->producer);
    this.inputs[c.z->slot] = tensor(c.name, "z", c.cols, rows * c.cols);
    this.inputs[target->slot] = tensor(c.name, "target", 1, rows);
    this.inputs[negative->slot] = tensor(c.name, "negative", negatives, rows * negatives);
    this.inputs[this.seeds[0]->slot] = calloc(1, sizeof(double));
    this.inputs[this.seeds[0]->slot][0] = 1;
    this.parameters = calloc(graph->parameter_size + 1, sizeof(double));
    load_parameter(&this, c.name, "items", c.items);
    load_parameter(&this, c.name, "bias", c.bias);
    snprintf(what, sizeof what, "PyTorch, %s", c.name);
    run_everywhere(&this, check_loss, &c, 1e-5);
    graph_case_clear(&this);
}

static void test_losses(void **state)
{
    (void)state;
    static const char *const cases[] = {"small", "wide", "many", "far"};
    for (int type = LP_LOSS_BCE; type < LP_LOSS_COUNT; type++)
        for (int i = 0; i < 4 && type != LP_LOSS_TOP1; i++) /* top1_is_its_formula */
            run_loss((lp_loss)type, lp_losses[type].name, cases[i]);
}

static double top1_of(const double *scores, int negatives)
{
    double sum = 0;
    for (int j = 1; j <= negatives; j++)
        sum += 1 / (1 + exp(scores[0] - scores[j])) + 1 / (1 + exp(-scores[j] * scores[j]));
    return sum / negatives;
}

/* The loss of a row and its gradient are those of the formula. */
static void top1_is_its_formula(void **state)
{
    (void)state;
    enum { NEGATIVES = 6 };
    lp_random random = lp_random_start(9, LP_PURPOSE_TEST, 216);
    for (int round = 0; round < 50; round++) {
        double row[1 + NEGATIVES], scores[1 + NEGATIVES];
        for (int i = 0; i <= NEGATIVES; i++)
            row[i] = scores[i] = 2 * lp_random_normal(&random);
        assert_true(fabs(lp_top1_row(row, 1 + NEGATIVES, 0, 0) - top1_of(scores, NEGATIVES)) < 1e-12);
        for (int i = 0; i <= NEGATIVES; i++) {
            double at = scores[i], step = 1e-5;
            scores[i] = at + step;
            double above = top1_of(scores, NEGATIVES);
            scores[i] = at - step;
            double below = top1_of(scores, NEGATIVES);
            scores[i] = at;
            assert_true(fabs(row[i] - (above - below) / (2 * step)) < 1e-8);
        }
    }
}

/* Scores far apart: losses and gradients stay finite, and equal those of the reference in double. */
static void test_extreme_scores(void **state)
{
    (void)state;
    static const double biases[] = {0, 300, -300, 120, -120, 45, -45};
    enum { ITEMS = sizeof biases / sizeof *biases, NEGATIVES = ITEMS - 1 };
    for (int type = LP_LOSS_BCE; type < LP_LOSS_COUNT; type++) {
        graph_case this = {.gap = 1};
        lp_graph *graph = &this.graph;
        graph_result wanted;
        int rows = ITEMS;
        graph_case_segments(&this, &rows, 1);
        lp_value *z = lp_example_tokens(graph, "z", 1), *items = lp_example_fixed(graph, "items", ITEMS, 1);
        lp_value *bias = lp_example_fixed(graph, "bias", ITEMS, 1);
        lp_value *target = lp_graph_input(graph, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
        lp_value *negative = lp_graph_input(graph, "negative", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, NEGATIVES);
        lp_value *loss = lp_sampled_loss(graph, z, items, bias, target, negative, (lp_loss)type, 0.001, LP_SCORE_PRODUCT);
        graph_case_gradients(&this, loss->producer);
        lp_random random = lp_random_start((uint64_t)type, LP_PURPOSE_TEST, 215);
        graph_case_fill(&this, &random);
        for (int i = 0; i < ITEMS; i++) {
            this.parameters[bias->offset + (size_t)i] = biases[i];
            this.inputs[target->slot][i] = i;
            for (int k = 0; k < NEGATIVES; k++)
                this.inputs[negative->slot][i * NEGATIVES + k] = (i + 1 + k) % ITEMS;
        }
        graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &wanted);
        assert_true(isfinite(wanted.values[this.outputs[0]->id][0]));
        snprintf(what, sizeof what, "extreme scores, loss %d", type);
        run_everywhere(&this, check_result, &wanted, 2e-5);
        graph_result_clear(&wanted);
        graph_case_clear(&this);
    }
}

/* ------------------------------------------------------------------------------------------ the loss of a time --- */

typedef struct mixture_case {
    char name[GOLDEN_NAME_SIZE];
    lp_value *mixture;
} mixture_case;

static void check_mixture(graph_case *this, const graph_result *result, double relative, const void *wanted)
{
    const mixture_case *c = wanted;
    int cols = c->mixture->cols;
    check_tensor(c->name, "loss", result->values[this->outputs[0]->id], 1, 1, relative);
    check_tensor(c->name, "gradient.mixture", result->values[c->mixture->gradient->id], cols,
                 this->rows[LP_ROWS_TOKENS] * cols, relative);
}

/* Gaps that have ended, ties, and right-censored gaps, far out in both tails; with a background and without. */
static void test_mixtures(void **state)
{
    (void)state;
    static const char *const names[] = {"near", "one", "far", "background", "background-far"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        graph_case this = {.gap = 1};
        mixture_case c;
        snprintf(c.name, sizeof c.name, "mixture.%s", names[i]);
        int rows = setting(c.name, "rows"), background = setting(c.name, "background");
        int cols = 3 * setting(c.name, "components") + background;
        graph_case_segments(&this, &rows, 1);
        c.mixture = lp_example_tokens(&this.graph, "mixture", cols);
        lp_value *gap = lp_graph_input(&this.graph, "gap", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
        lp_value *season =
            background ? lp_graph_input(&this.graph, "season", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 2) : NULL;
        lp_value *loss = lp_mixture_loss(
            &this.graph, c.mixture, gap, season, golden_setting(&golden, "mixture", "floor"),
            golden_setting(&golden, "mixture", "mean"), golden_setting(&golden, "mixture", "deviation"));
        graph_case_gradients(&this, loss->producer);
        this.inputs[c.mixture->slot] = tensor(c.name, "mixture", cols, rows * cols);
        this.inputs[gap->slot] = tensor(c.name, "gap", 1, rows);
        if (season)
            this.inputs[season->slot] = tensor(c.name, "season", 2, 2 * rows);
        this.inputs[this.seeds[0]->slot] = calloc(1, sizeof(double));
        this.inputs[this.seeds[0]->slot][0] = 1;
        this.parameters = calloc(1, sizeof(double));
        snprintf(what, sizeof what, "PyTorch, %s", c.name);
        run_everywhere(&this, check_mixture, &c, 1e-5);
        graph_case_clear(&this);
    }
}

/* ---------------------------------------------------------------------------------------- ops over segments --- */

typedef struct sequence_case {
    char name[GOLDEN_NAME_SIZE];
    int cols, filters, height, sequences;
    lp_value *x, *weight, *bias; /* NULL: the op has none */
} sequence_case;

static lp_value *build_conv1d(lp_graph *graph, sequence_case *c)
{
    c->weight = lp_example_fixed(graph, "weight", c->height * c->filters, c->cols);
    c->bias = lp_example_fixed(graph, "bias", 1, c->filters);
    return lp_fold(graph, lp_linear(graph, c->x, c->weight, NULL, NULL, 1, true), c->bias, c->height);
}

static lp_value *build_vertical(lp_graph *graph, sequence_case *c)
{
    c->weight = lp_example_fixed(graph, "weight", 1, c->filters * c->height);
    return lp_vertical_conv(graph, c->x, c->weight, c->height);
}

static lp_value *build_max_rows(lp_graph *graph, sequence_case *c)
{
    return lp_max_rows(graph, c->x, c->height);
}

static const struct {
    const char *name;
    lp_value *(*build)(lp_graph *graph, sequence_case *c);
    bool conv1d;
} sequence_ops[] = {
    {"conv1d", build_conv1d, true}, {"vertical", build_vertical, false}, {"max_rows", build_max_rows, false}};

/* PyTorch counts taps from the oldest token, we from the newest: element e of our weight is element at(e) of PyTorch's. */
static int torch_element(const sequence_case *c, bool conv1d, int e)
{
    if (!conv1d)
        return e / c->height * c->height + c->height - 1 - e % c->height;
    int tap = e / (c->filters * c->cols), filter = e / c->cols % c->filters, col = e % c->cols;
    return (filter * c->cols + col) * c->height + c->height - 1 - tap;
}

static double *torch_weight(const sequence_case *c, const char *name, bool conv1d, int count)
{
    double *from = tensor(c->name, name, conv1d ? c->cols * c->height : c->height, count);
    double *out = calloc((size_t)count, sizeof *out);
    for (int e = 0; e < count; e++)
        out[e] = from[torch_element(c, conv1d, e)];
    free(from);
    return out;
}

static void check_sequence(graph_case *this, const graph_result *result, double relative, const void *wanted)
{
    const sequence_case *c = wanted;
    int tokens = this->rows[LP_ROWS_TOKENS], cols = this->outputs[0]->cols;
    check_tensor(c->name, "output", result->values[this->outputs[0]->id], cols, tokens * cols, relative);
    check_tensor(c->name, "gradient.input", result->values[c->x->gradient->id], c->cols, tokens * c->cols, relative);
    if (c->weight) {
        int count = graph_case_elements(this, c->weight);
        double *weight = torch_weight(c, "gradient.weight", c->bias != NULL, count);
        check_matrix(result->gradients + c->weight->offset, weight, count, relative, "gradient.weight");
        free(weight);
    }
    if (c->bias)
        check_tensor(c->name, "gradient.bias", result->gradients + c->bias->offset, c->filters, c->filters, relative);
}

static void run_sequence(int op, const char *name)
{
    graph_case this = {.gap = 1};
    lp_graph *graph = &this.graph;
    sequence_case c = {0};
    int lengths[CASE_SEGMENTS];
    snprintf(c.name, sizeof c.name, "%s.%s", sequence_ops[op].name, name);
    c.cols = setting(c.name, "cols");
    c.filters = setting(c.name, "filters");
    c.height = setting(c.name, "height");
    c.sequences = setting(c.name, "sequences");
    double *segment = tensor(c.name, "segment", c.sequences + 1, c.sequences + 1);
    for (int s = 0; s < c.sequences; s++)
        lengths[s] = (int)(segment[s + 1] - segment[s]);
    free(segment);
    graph_case_segments(&this, lengths, c.sequences);
    c.x = lp_example_tokens(graph, "input", c.cols);
    graph_case_gradients(&this, sequence_ops[op].build(graph, &c)->producer);
    this.inputs[c.x->slot] = tensor(c.name, "input", c.cols, graph_case_elements(&this, c.x));
    this.inputs[this.seeds[0]->slot] =
        tensor(c.name, "seed", this.outputs[0]->cols, graph_case_elements(&this, this.seeds[0]));
    this.parameters = calloc(graph->parameter_size + 1, sizeof(double));
    if (c.weight) {
        int count = graph_case_elements(&this, c.weight);
        double *weight = torch_weight(&c, "weight", sequence_ops[op].conv1d, count);
        memcpy(this.parameters + c.weight->offset, weight, (size_t)count * sizeof *weight);
        free(weight);
    }
    if (c.bias)
        load_parameter(&this, c.name, "bias", c.bias);
    snprintf(what, sizeof what, "PyTorch, %s", c.name);
    run_everywhere(&this, check_sequence, &c, 1e-5);
    graph_case_clear(&this);
}

static void test_sequences(void **state)
{
    (void)state;
    static const char *const cases[] = {"one", "short", "long"};
    for (int op = 0; op < (int)(sizeof sequence_ops / sizeof *sequence_ops); op++)
        for (int i = 0; i < 3; i++)
            run_sequence(op, cases[i]);
}

/* Equal rows: the gradient of a maximum goes to the newest of them, as many times as it is the maximum. */
static void test_equal_rows(void **state)
{
    (void)state;
    graph_case this = {.gap = 1};
    graph_result result;
    graph_case_segments(&this, (int[]){5}, 1);
    lp_value *x = lp_example_tokens(&this.graph, "x", 1);
    graph_case_gradients(&this, lp_max_rows(&this.graph, x, 3)->producer);
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 216);
    graph_case_fill(&this, &random);
    static const double rows[] = {2, 2, 1, 2, 0}, seeds[] = {1, 10, 100, 1000, 10000}, wanted[] = {1, 110, 0, 11000, 0};
    for (int t = 0; t < 5; t++) {
        this.inputs[x->slot][t] = rows[t];
        this.inputs[this.seeds[0]->slot][t] = seeds[t];
    }
    for (int level = -1; level < 0 || lp_cpu_level_name(level); level++) {
        graph_case_run(&this, sizeof(float), level < 0 ? lp_reference_kernels_float : lp_cpu_level_kernels(level),
                       &result);
        for (int t = 0; t < 5; t++)
            assert_true(result.values[x->gradient->id][t] == wanted[t]);
        graph_result_clear(&result);
    }
    graph_case_clear(&this);
}

static void test_mistakes(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        lp_graph graph = {0};
        lp_value *x = lp_example_tokens(&graph, "x", 6), *fixed = lp_example_fixed(&graph, "fixed", 3, 6);
        lp_value *bias = lp_example_fixed(&graph, "bias", 1, 4), *made = NULL;
        switch (i) {
        case 0:
            made = lp_fold(&graph, x, NULL, 4);
            break; /* does not divide the columns */
        case 1:
            made = lp_fold(&graph, x, bias, 2);
            break; /* 3 columns, 4 biases */
        case 2:
            made = lp_fold(&graph, fixed, NULL, 2);
            break; /* no tokens */
        case 3:
            made = lp_max_rows(&graph, x, 0);
            break; /* no rows */
        case 4:
            made = lp_vertical_conv(&graph, x, bias, 3);
            break; /* does not divide the weight */
        default:
            made = lp_vertical_conv(&graph, fixed, bias, 2);
            break; /* no tokens */
        }
        assert_null(made);
        assert_int_not_equal(lp_graph_status(&graph, NULL), LAPSE_OK);
        lp_graph_clear(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),   cmocka_unit_test(top1_is_its_formula), cmocka_unit_test(test_extreme_scores),
        cmocka_unit_test(test_mixtures), cmocka_unit_test(test_sequences),      cmocka_unit_test(test_equal_rows),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
