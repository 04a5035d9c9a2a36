/* test_golden.c: compares whole training steps with PyTorch: the loss, the gradient of every parameter, and the parameters after
 * a step of Adam. tests/golden/make_golden.py wrote the expected numbers and describes their file. The batch runs through the
 * graph that training uses: in double, which finds algebraic mistakes that float rounding hides, and in float with the reference
 * and the cpu kernels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "support/golden_file.h"
#include "support/small_model.h"
#include "model/model.h"

enum { NAME_SIZE = GOLDEN_NAME_SIZE, SHARDS = 2 };

/* ---------------------------------------------------------------------------------------- the golden file ----- */

static golden_file golden;

static int open_golden(void **state)
{
    (void)state;
    return golden_open(&golden, "tests/golden/step.safetensors");
}

static int close_golden(void **state)
{
    (void)state;
    golden_close(&golden);
    return 0;
}

static double setting(const char *case_name, const char *name)
{
    return golden_setting(&golden, case_name, name);
}

/* Copies tensor <case>.<part> to out as doubles. Checks its shape; rows -1 accepts any number. Returns the number of elements. */
static size_t tensor(const char *case_name, const char *part, int64_t rows, int64_t cols, double *out, size_t capacity)
{
    size_t count;
    double *numbers = golden_tensor(&golden, case_name, part, rows, cols, &count);
    assert_true(count <= capacity);
    memcpy(out, numbers, count * sizeof *out);
    free(numbers);
    return count;
}

/* ---------------------------------------------------------------------------------------------- one case ------ */

enum { TOKENS = 64, WINDOWS = 16 };

typedef struct golden_case {
    const char *name;
    lp_network network;
    int context, windows, tokens, segment[WINDOWS + 1];
    double feed[LP_FEED_COUNT][TOKENS];
    double mask[TOKENS]; /* 1 at target positions, otherwise 0 */
    double targets;      /* number of target positions */
    double loss;
    double *initial, *gradient; /* [parameter_size], in the layout of the graph's parameters; owned */
} golden_case;

/* Tensors <case>.<part>.<parameter> of all parameters, in the layout of the graph. The caller frees them. */
static double *parameters(const golden_case *this, const char *part)
{
    const lp_graph *graph = &this->network.graph;
    double *out = calloc(graph->parameter_size, sizeof *out);
    assert_non_null(out);
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        char full[NAME_SIZE];
        snprintf(full, sizeof full, "%s.%s", part, value->name);
        tensor(this->name, full, value->rows, value->cols, out + value->offset, graph->parameter_size - value->offset);
    }
    return out;
}

/* Number of tensors <case>.<part>.*: must equal the number of parameters of the graph. */
static int count_part(const char *case_name, const char *part)
{
    char prefix[NAME_SIZE];
    const char *name;
    json_t *entry;
    int count = 0;
    snprintf(prefix, sizeof prefix, "%s.%s.", case_name, part);
    json_object_foreach(golden.header, name, entry)
    {
        count += strncmp(name, prefix, strlen(prefix)) == 0;
    }
    return count;
}

static void read_batch(golden_case *this)
{
    static const struct {
        lp_feed feed;
        const char *name;
    } columns[] = {{LP_FEED_EVENT, "event"},
                   {LP_FEED_POSITION, "position"},
                   {LP_FEED_TIME, "time"},
                   {LP_FEED_QUERY_TIME, "query_time"},
                   {LP_FEED_TARGET, "target"}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        this->tokens = (int)tensor(this->name, columns[i].name, -1, 1, this->feed[columns[i].feed], TOKENS);
    for (int t = 0; t < this->tokens; t++)
        this->feed[LP_FEED_LAG][t] = this->feed[LP_FEED_QUERY_TIME][t] - this->feed[LP_FEED_TIME][t];
    tensor(this->name, "mask", -1, 1, this->mask, TOKENS);
    double segment[WINDOWS + 1];
    this->windows = 7;
    tensor(this->name, "segment", 1, this->windows + 1, segment, WINDOWS + 1);
    for (int w = 0; w <= this->windows; w++)
        this->segment[w] = (int)segment[w];
    assert_int_equal(this->segment[this->windows], this->tokens);
    for (int t = 0; t < this->tokens; t++)
        this->targets += this->mask[t];
    assert_true(this->targets > 0 && this->targets < this->tokens);
    this->feed[LP_FEED_SEED][0] = 1 / this->targets;
}

static void open_case(golden_case *this, const char *name)
{
    lapse_error error;
    *this = (golden_case){.name = name, .context = (int)setting(name, "context")};
    lp_model_config config = small_config(lp_encoding_find(name), (int)setting(name, "dims"),
                                          (int)setting(name, "blocks"), (int)setting(name, "heads"));
    config.target_time = setting(name, "target_known") == 0;
    config.event_types = (int)setting(name, "event_types");
    config.context = this->context;
    if (setting(name, "periods") > 0) {
        small_config_number(&config, "periods", setting(name, "periods"));
        small_config_number(&config, "harmonics", setting(name, "harmonics"));
    }
    assert_int_equal(lp_network_build(&this->network, &config, true, &error), LAPSE_OK);
    read_batch(this);
    tensor(name, "loss", 1, 1, &this->loss, 1);
    this->initial = parameters(this, "initial");
    this->gradient = parameters(this, "gradient");
    assert_int_equal(count_part(name, "initial"), this->network.graph.parameter_count);
    assert_int_equal(count_part(name, "gradient"), this->network.graph.parameter_count);
}

static void close_case(golden_case *this)
{
    free(this->initial);
    free(this->gradient);
    lp_graph_clear(&this->network.graph);
}

static void to_real(void *out, size_t real_size, const double *in, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (real_size == sizeof(float))
            ((float *)out)[i] = (float)in[i];
        else
            ((double *)out)[i] = in[i];
    }
}

static double from_real(const void *in, size_t real_size, size_t i)
{
    return real_size == sizeof(float) ? (double)((const float *)in)[i] : ((const double *)in)[i];
}

/* Allocates the feeds of `tokens` tokens from `token` on, in the types of the graph's inputs. The caller frees them. Stores the
 * number of target positions. */
static void make_feeds(const golden_case *this, size_t real_size, int token, int tokens, void *inputs[LP_FEED_COUNT],
                       int *target_count)
{
    for (int i = 0; i < this->network.graph.value_count; i++) {
        const lp_value *value = this->network.graph.values[i];
        if (value->storage != LP_STORAGE_INPUT)
            continue;
        bool fixed = value->rows_of == LP_ROWS_FIXED;
        double picked[TOKENS];
        const double *from = this->feed[value->slot] + (fixed ? 0 : token);
        int count = fixed ? 1 : tokens;
        if (value->rows_of == LP_ROWS_TARGETS) {
            count = 0;
            for (int t = 0; t < tokens; t++)
                if (this->mask[token + t] != 0)
                    picked[count++] = value->slot == LP_FEED_TARGET_POSITION ? t : from[t];
            from = picked;
            *target_count = count;
        }
        void *block = inputs[value->slot] = lp_alloc((size_t)count, sizeof(double));
        assert_non_null(block);
        if (value->type != LP_TYPE_INT32)
            to_real(block, value->type == LP_TYPE_REAL ? real_size : sizeof(double), from, (size_t)count);
        for (int t = 0; t < count && value->type == LP_TYPE_INT32; t++)
            ((int32_t *)block)[t] = (int32_t)from[t];
    }
}

/* Runs windows begin .. end-1, forward and backward, with the parameters `at`. Writes the gradients of this shard
 * [parameter_size reals] and returns its loss. */
static double run_shard(golden_case *this, const lp_backend *backend, const void *at, int begin, int end,
                        void *gradients)
{
    lapse_error error;
    lp_plan plan;
    int token = this->segment[begin], tokens = this->segment[end] - token;
    lp_extent extent = {.pairs = (int64_t)tokens * (this->context + 1) / 2, .longest = this->context};
    extent.rows[LP_ROWS_TOKENS] = extent.rows[LP_ROWS_TARGETS] = tokens;
    assert_int_equal(lp_plan_make(&plan, &this->network.graph, &extent, backend->real_size, &error), LAPSE_OK);
    int32_t segment[WINDOWS + 1];
    for (int w = begin; w <= end; w++)
        segment[w - begin] = this->segment[w] - token;
    void *inputs[LP_FEED_COUNT];
    int target_count = 0;
    make_feeds(this, backend->real_size, token, tokens, inputs, &target_count);
    lp_run run = {.plan = &plan,
                  .work = backend->buffer_new(backend->context, plan.work_size),
                  .inputs = inputs,
                  .parameters = at,
                  .scratch = backend->buffer_new(backend->context, plan.scratch_size),
                  .gradients = gradients,
                  .rows = {[LP_ROWS_TOKENS] = tokens, [LP_ROWS_TARGETS] = target_count},
                  .segments = end - begin,
                  .segment = segment,
                  .seed = 1,
                  .first_token = (uint64_t)token};
    assert_true(run.work && run.scratch);
    backend->run(backend->context, &run);
    double loss = from_real(lp_run_data(&run, this->network.loss), backend->real_size, 0);
    for (int i = 0; i < LP_FEED_COUNT; i++)
        lp_free(inputs[i]);
    backend->buffer_free(backend->context, run.work);
    backend->buffer_free(backend->context, run.scratch);
    return loss;
}

/* Runs the batch in SHARDS shards, as training does. Writes gradients [SHARDS x parameter_size] reals; returns the loss. */
static double run_batch(golden_case *this, const char *backend_name, void *gradients)
{
    const lp_backend *backend = lp_backend_find(backend_name);
    assert_non_null(backend);
    size_t size = this->network.graph.parameter_size;
    void *at = lp_alloc(size, backend->real_size);
    assert_non_null(at);
    to_real(at, backend->real_size, this->initial, size);
    double loss = 0;
    for (int shard = 0; shard < SHARDS; shard++)
        loss += run_shard(this, backend, at, this->windows * shard / SHARDS, this->windows * (shard + 1) / SHARDS,
                          (char *)gradients + (size_t)shard * size * backend->real_size);
    lp_free(at);
    return loss;
}

/* --------------------------------------------------------------------------------------------- comparing ------ */

static double largest(const double *x, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* The largest difference of an element, relative to the largest gradient element of its parameter. Some gradients are 0 except
 * for rounding: a bias of keys shifts all scores of a row equally. So the divisor is at least a thousandth of the largest
 * element of all parameters. */
static double worst_gradient(const golden_case *this, const double *found)
{
    const lp_graph *graph = &this->network.graph;
    double least = 1e-3 * largest(this->gradient, graph->parameter_size), worst = 0;
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        size_t count = (size_t)value->rows * (size_t)value->cols;
        double scale = fmax(largest(this->gradient + value->offset, count), least);
        for (size_t k = value->offset; k < value->offset + count; k++) {
            double difference = fabs(found[k] - this->gradient[k]) / scale;
            worst = difference <= worst ? worst : difference; /* stores a NaN */
        }
    }
    return worst;
}

static void check_gradients(const char *case_name, const char *backend_name, double tolerance)
{
    golden_case this;
    open_case(&this, case_name);
    size_t size = this.network.graph.parameter_size, real_size = lp_backend_find(backend_name)->real_size;
    void *gradients = lp_alloc(SHARDS * size, real_size);
    double *sum = calloc(size, sizeof *sum);
    assert_true(gradients && sum);
    double loss = run_batch(&this, backend_name, gradients);
    for (size_t i = 0; i < SHARDS * size; i++)
        sum[i % size] += from_real(gradients, real_size, i);
    double loss_error = fabs(loss - this.loss) / this.loss, worst = worst_gradient(&this, sum);
    print_message("# %s, %s: loss off by %.1e, gradients by %.1e\n", case_name, backend_name, loss_error, worst);
    assert_true(loss_error <= tolerance);
    assert_true(worst <= tolerance);
    free(sum);
    lp_free(gradients);
    close_case(&this);
}

static const char *const case_names[] = {"mercer", "bochner", "position"};
enum { CASE_COUNT = 3 };

static void test_double(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i++)
        check_gradients(case_names[i], "reference-double", 1e-9);
}

static void test_reference(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i++)
        check_gradients(case_names[i], "reference", 1e-4);
}

static void test_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i++)
        check_gradients(case_names[i], "cpu", 1e-4);
}

/* Sets Adam's moments to those of the file. */
static void load_moments(const golden_case *this, lp_adam *adam)
{
    double *first = parameters(this, "moment1"), *second = parameters(this, "moment2");
    to_real(adam->moment1, sizeof(float), first, adam->size);
    to_real(adam->moment2, sizeof(float), second, adam->size);
    free(first);
    free(second);
}

/* One step of Adam from the initial parameters, with gradients of the cpu kernels. Every parameter equals PyTorch's to
 * `tolerance` times the learning rate, plus the rounding of a float. */
static void check_step(const char *case_name, const char *part, uint64_t step, bool with_moments, double tolerance)
{
    golden_case this;
    lapse_error error;
    open_case(&this, case_name);
    const lp_backend *cpu = lp_backend_find("cpu");
    lp_adam adam = {.shards = SHARDS,
                    .threads = 2,
                    .learning_rate = setting("", "learning_rate"),
                    .beta1 = setting("", "beta1"),
                    .beta2 = setting("", "beta2"),
                    .epsilon = setting("", "epsilon"),
                    .l2 = setting("", "l2"),
                    .clip = setting("", "clip")};
    assert_int_equal(lp_adam_init(&adam, cpu, &this.network.graph, &error), LAPSE_OK);
    if (with_moments)
        load_moments(&this, &adam);
    double *expected = parameters(&this, part), worst = 0;
    float *values = lp_alloc(adam.size, sizeof *values);
    assert_non_null(values);
    to_real(values, sizeof *values, this.initial, adam.size);
    run_batch(&this, "cpu", adam.gradients);
    cpu->reduce(cpu->context, &adam, NULL);
    cpu->adam_step(cpu->context, &adam, step, NULL, values);
    for (size_t i = 0; i < adam.size; i++) {
        double difference = fabs((double)values[i] - expected[i]), rounding = 1.2e-7 * fabs(expected[i]);
        double over = (difference - rounding) / adam.learning_rate;
        worst = over <= worst ? worst : over;
    }
    print_message("# %s, %s: parameters off by %.1e of the learning rate\n", case_name, part, worst);
    assert_true(worst <= tolerance);
    free(expected);
    lp_free(values);
    lp_adam_clear(&adam);
    close_case(&this);
}

/* With both moments 0 the step is lr * g / (|g| + epsilon): for a g as small as epsilon, rounding errors are large. */
static void test_first_step(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i++)
        check_step(case_names[i], "first", 1, false, 1e-2);
}

static void test_later_step(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i++)
        check_step(case_names[i], "later", (uint64_t)setting("", "later"), true, 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double),     cmocka_unit_test(test_reference),  cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_first_step), cmocka_unit_test(test_later_step),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
