/* test_lstm.c: the op lstm against torch.nn.LSTM, and all of its kernels against the plain ones in double on shapes that the examples of
 * the op table do not have: empty segments, more segments than advance together, weights that do not fit into shared memory.
 * tests/golden/make_lstm_golden.py wrote the numbers of PyTorch, and says what the file holds. The CUDA kernels run on the emulated
 * device, or on a real one where the environment variable LAPSE_TEST_DEVICE is cuda.
 */
#include "backend/cpu/cpu.h"
#include "base/file.h"
#include "support/graph_case.h"
#include "support/small_data.h"
#ifdef LAPSE_EMULATED
#include "support/test_device.h"
#endif

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char GOLDEN[] = "tests/golden/lstm.safetensors";
enum { NAME_SIZE = 128, LAYERS = 2 };

static const lp_backend *device; /* NULL: there is no emulation in this build */
static char what[200];

/* ------------------------------------------------------------------------------------------ the golden file --- */

static lp_map map;
static json_t *header;
static const char *data;

static int open_all(void **state)
{
    (void)state;
    lapse_error error;
#ifdef LAPSE_EMULATED
    test_device_choose();
    if (lp_backend_open("cuda", &device, &error) != LAPSE_OK) {
        print_error("%s\n", error.message);
        return -1;
    }
#endif
    if (lp_map_open(&map, GOLDEN, &error) != LAPSE_OK) {
        print_error("%s: %s (tests run in the project's root)\n", error.file, error.message);
        return -1;
    }
    uint64_t size = 0;
    for (int i = 0; i < 8; i++)
        size |= (uint64_t)(unsigned char)map.data[i] << (8 * i);
    header = size <= map.size - 8 ? json_loadb(map.data + 8, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    data = map.data + 8 + size;
    return header ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    json_decref(header);
    lp_map_close(&map);
    return 0;
}

static int setting(const char *case_name, const char *name)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "%s.%s", case_name, name);
    const char *text = json_string_value(json_object_get(json_object_get(header, "__metadata__"), full));
    if (!text)
        fail_msg("%s has no setting '%s'", GOLDEN, full);
    return atoi(text);
}

static double element(const char *type, const char *from, size_t i)
{
    float single;
    double wide;
    int32_t whole;
    if (strcmp(type, "F64") == 0)
        return memcpy(&wide, from + i * sizeof wide, sizeof wide), wide;
    if (strcmp(type, "F32") == 0)
        return memcpy(&single, from + i * sizeof single, sizeof single), (double)single;
    assert_string_equal(type, "I32");
    return memcpy(&whole, from + i * sizeof whole, sizeof whole), (double)whole;
}

/* Tensor <case>.<name> of `count` elements as doubles. Freed by the caller. */
static double *tensor(const char *case_name, const char *name, int count)
{
    char full[NAME_SIZE];
    const char *type;
    json_int_t rows, cols, begin, end;
    snprintf(full, sizeof full, "%s.%s", case_name, name);
    json_t *entry = json_object_get(header, full);
    if (!entry)
        fail_msg("%s has no tensor '%s'", GOLDEN, full);
    assert_int_equal(json_unpack(entry, "{s:s, s:[I,I], s:[I,I]}", "dtype", &type, "shape", &rows, &cols,
                                 "data_offsets", &begin, &end),
                     0);
    if (rows * cols != count)
        fail_msg("'%s' has %lld elements, and should have %d", full, (long long)(rows * cols), count);
    assert_true(data + end <= map.data + map.size);
    double *out = calloc((size_t)count + 1, sizeof *out);
    assert_non_null(out);
    for (int i = 0; i < count; i++)
        out[i] = element(type, data + begin, (size_t)i);
    return out;
}

/* -------------------------------------------------------------------------------------------- comparisons ----- */

/* On the scale of the largest element, or of 1. */
static void check_matrix(const double *got, const double *wanted, int count, double relative, const char *part)
{
    double largest = 1;
    for (int k = 0; k < count; k++)
        largest = fmax(largest, fabs(wanted[k]));
    for (int k = 0; k < count; k++)
        if (!(fabs(got[k] - wanted[k]) <= relative * largest))
            fail_msg("%s, %s, element %d: %.9g, should be %.9g within %.3g", what, part, k, got[k], wanted[k],
                     relative * largest);
}

typedef void (*checker)(graph_case *this, const graph_result *result, double relative, const void *wanted);

/* Runs the case on all kernels: the plain ones in double and in float, each level of the CPU's, and the CUDA device. */
static void run_everywhere(graph_case *this, checker check, const void *wanted, double relative)
{
    graph_result result;
    size_t length = strlen(what);
    snprintf(what + length, sizeof what - length, ", reference-double");
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
    check(this, &result, 1e-12, wanted);
    graph_result_clear(&result);
    for (int level = -1; level < 0 || lp_cpu_level_name(level); level++) {
        snprintf(what + length, sizeof what - length, ", %s", level < 0 ? "reference" : lp_cpu_level_name(level));
        graph_case_run(this, sizeof(float), level < 0 ? lp_reference_kernels_float : lp_cpu_level_kernels(level),
                       &result);
        check(this, &result, relative, wanted);
        graph_result_clear(&result);
    }
    for (int room = 0; device && room < 100; room += 60) {
        snprintf(what + length, sizeof what - length, ", cuda with space for %d more", room);
        graph_case_run_on(this, device, room, 1, &result);
        check(this, &result, relative, wanted);
        graph_result_clear(&result);
    }
}

/* ------------------------------------------------------------------------------------------------- PyTorch ---- */

typedef struct golden_lstm {
    const char *name;
    int layers, input, hidden, sequences;
    lp_value *x, *weight_ih[LAYERS], *weight_hh[LAYERS], *bias[LAYERS], *cell;
} golden_lstm;

static void set_parameter(graph_case *this, const lp_value *value, const double *from)
{
    for (int i = 0; i < graph_case_elements(this, value); i++)
        this->parameters[value->offset + (size_t)i] += from[i];
}

static void set_layer(graph_case *this, const golden_lstm *golden, int layer)
{
    static const char *const names[] = {"weight_ih_l%d", "weight_hh_l%d", "bias_ih_l%d", "bias_hh_l%d"};
    const lp_value *values[] = {golden->weight_ih[layer], golden->weight_hh[layer], golden->bias[layer],
                                golden->bias[layer]};
    for (int i = 0; i < 4; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, names[i], layer);
        double *from = tensor(golden->name, name, graph_case_elements(this, values[i]));
        set_parameter(this, values[i], from);
        free(from);
    }
}

static void build_golden(graph_case *this, golden_lstm *golden)
{
    int lengths[CASE_SEGMENTS], gates = 4 * golden->hidden;
    double *segment = tensor(golden->name, "segment", golden->sequences + 1);
    for (int s = 0; s < golden->sequences; s++)
        lengths[s] = (int)(segment[s + 1] - segment[s]);
    free(segment);
    graph_case_segments(this, lengths, golden->sequences);
    lp_graph *graph = &this->graph;
    lp_value *h = golden->x = lp_example_tokens(graph, "input", golden->input);
    for (int layer = 0; layer < golden->layers; layer++) {
        golden->weight_ih[layer] = lp_example_fixed(graph, "weight_ih", gates, h->cols);
        golden->weight_hh[layer] = lp_example_fixed(graph, "weight_hh", gates, golden->hidden);
        golden->bias[layer] = lp_example_fixed(graph, "bias", 1, gates);
        lp_value *x = lp_linear(graph, h, golden->weight_ih[layer], golden->bias[layer], NULL, 1, true);
        h = lp_lstm(graph, x, golden->weight_hh[layer]);
        assert_non_null(h);
        golden->cell = h->producer->outputs[2];
    }
    golden->cell->retained = true;
    graph_case_gradients(this, lp_shift_rows(graph, h, 0)->producer);
    this->inputs[golden->x->slot] = tensor(golden->name, "input", graph_case_elements(this, golden->x));
    this->inputs[this->seeds[0]->slot] = tensor(golden->name, "seed", graph_case_elements(this, this->seeds[0]));
    this->parameters = calloc(graph->parameter_size + 1, sizeof(double));
    for (int layer = 0; layer < golden->layers; layer++)
        set_layer(this, golden, layer);
}

static void check_tensor(const golden_lstm *golden, const char *name, const double *got, int count, double relative)
{
    double *wanted = tensor(golden->name, name, count);
    check_matrix(got, wanted, count, relative, name);
    free(wanted);
}

static void check_golden(graph_case *this, const graph_result *result, double relative, const void *wanted)
{
    const golden_lstm *golden = wanted;
    int hidden = golden->hidden, tokens = this->rows[LP_ROWS_TOKENS];
    check_tensor(golden, "output", result->values[this->outputs[0]->id], tokens * hidden, relative);
    check_tensor(golden, "gradient.input", result->values[golden->x->gradient->id], tokens * golden->input, relative);
    double *cell = calloc((size_t)(golden->sequences * hidden), sizeof *cell);
    for (int s = 0; s < golden->sequences; s++)
        memcpy(cell + s * hidden, result->values[golden->cell->id] + (this->segment[s + 1] - 1) * hidden,
               (size_t)hidden * sizeof *cell);
    check_tensor(golden, "cell", cell, golden->sequences * hidden, relative);
    free(cell);
    static const char *const names[] = {"gradient.weight_ih_l%d", "gradient.weight_hh_l%d", "gradient.bias_ih_l%d",
                                        "gradient.bias_hh_l%d"};
    for (int layer = 0; layer < golden->layers; layer++) {
        const lp_value *values[] = {golden->weight_ih[layer], golden->weight_hh[layer], golden->bias[layer],
                                    golden->bias[layer]};
        for (int i = 0; i < 4; i++) {
            char name[NAME_SIZE];
            snprintf(name, sizeof name, names[i], layer);
            check_tensor(golden, name, result->gradients + values[i]->offset, graph_case_elements(this, values[i]),
                         relative);
        }
    }
}

static void test_golden(void **state)
{
    (void)state;
    static const char *const cases[] = {"small", "stacked", "wide"};
    for (int i = 0; i < 3; i++) {
        graph_case this = {.gap = 1};
        golden_lstm golden = {.name = cases[i],
                              .layers = setting(cases[i], "layers"),
                              .input = setting(cases[i], "input_size"),
                              .hidden = setting(cases[i], "hidden_size"),
                              .sequences = setting(cases[i], "sequences")};
        assert_true(golden.layers <= LAYERS);
        build_golden(&this, &golden);
        snprintf(what, sizeof what, "torch.nn.LSTM, case %s", cases[i]);
        run_everywhere(&this, check_golden, &golden, 1e-5);
        graph_case_clear(&this);
    }
}

/* -------------------------------------------------------------------------------------------- packed shapes --- */

static void check_result(graph_case *this, const graph_result *got, double relative, const void *other)
{
    const graph_result *wanted = other;
    for (int i = 0; i < this->graph.value_count; i++)
        if (wanted->values[i])
            check_matrix(got->values[i], wanted->values[i], graph_case_elements(this, this->graph.values[i]), relative,
                         this->graph.values[i]->name);
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        check_matrix(got->gradients + value->offset, wanted->gradients + value->offset,
                     graph_case_elements(this, value), relative, value->name);
    }
}

/* Gates as a trained layer has them: normal weights of deviation 1 would saturate all of them. */
static void fill_lstm(graph_case *this, int hidden, lp_random *random)
{
    graph_case_fill(this, random);
    for (size_t i = 0; i < this->graph.parameter_size; i++)
        this->parameters[i] = (float)(this->parameters[i] / sqrt(hidden));
}

static void check_shape(int hidden, const int *lengths, int segments, const char *name)
{
    graph_case this = {.gap = 1};
    graph_result wanted;
    lp_random random = lp_random_start((uint64_t)hidden, LP_PURPOSE_TEST, (uint32_t)segments);
    graph_case_segments(&this, lengths, segments);
    lp_value *x = lp_example_tokens(&this.graph, "x", 4 * hidden);
    lp_value *h = lp_lstm(&this.graph, x, lp_example_fixed(&this.graph, "weight_hh", 4 * hidden, hidden));
    graph_case_gradients(&this, lp_add(&this.graph, h, lp_shift_rows(&this.graph, h, 2))->producer);
    fill_lstm(&this, hidden, &random);
    graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &wanted);
    snprintf(what, sizeof what, "%s, hidden size %d", name, hidden);
    run_everywhere(&this, check_result, &wanted, 2e-5);
    graph_result_clear(&wanted);
    graph_case_clear(&this);
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
static void test_same_bits(void **state)
{
    (void)state;
    graph_case this = {.gap = 1};
    graph_result first, other;
    lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 211);
    int hidden = 19;
    graph_case_segments(&this, (int[]){5, 1, 9, 0, 7, 7}, 6);
    lp_value *x = lp_example_tokens(&this.graph, "x", 4 * hidden);
    lp_value *weight = lp_example_fixed(&this.graph, "weight_hh", 4 * hidden, hidden);
    lp_value *h = lp_lstm(&this.graph, x, weight);
    graph_case_gradients(&this, lp_add(&this.graph, h, lp_lstm(&this.graph, x, weight))->producer);
    fill_lstm(&this, hidden, &random);
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
