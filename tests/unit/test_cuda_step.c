/* test_cuda_step.c: whole training steps on a GPU against the CPU: gradients, losses over some epochs, scores; and two runs give
 * the same bits. On the emulated device, or on a real one where the environment variable LAPSE_TEST_DEVICE is cuda. */
#include "support/small_data.h"
#include "support/small_train.h"
#include "support/test_device.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_device(void **state)
{
    (void)state;
    test_device_choose();
    return 0;
}

/* The trained models: every loss, and features that the other tests do not cover. */
static const struct setup {
    const char *name, *task, *loss, *negatives, *encoding, *output;
    int negative_count, blocks, gap_input;
    double l2;
    bool when, censored;
} setups[] = {
    {"mercer", "classify", "softmax", "uniform", "mercer", "shared", 0, 2, 1, 0, false, false},
    {"bochner with l2", "classify", "softmax", "uniform", "bochner", "shared", 0, 1, 0, 0.1, false, false},
    {"positions", "classify", "softmax", "uniform", "position", "shared", 0, 1, 0, 0, false, false},
    {"sampled frequencies", "classify", "softmax", "uniform", "bochner-normal", "shared", 0, 1, 0, 0, false, false},
    {"softmax", "recommend", "softmax", "uniform", "mercer", "shared", 0, 1, 0, 0, false, false},
    {"bce", "recommend", "bce", "popularity", "mercer", "shared", 3, 1, 1, 0.01, false, false},
    {"sampled softmax", "recommend", "sampled-softmax", "uniform", "mercer", "separate", 4, 1, 1, 0, false, false},
    {"in-batch", "recommend", "sampled-softmax", "in-batch", "mercer", "shared", 0, 1, 0, 0, false, false},
    {"when", "classify", "softmax", "uniform", "mercer", "shared", 0, 2, 1, 0, true, false},
    {"points", "recommend", "bpr", "uniform", "none", "shared", 2, 0, 0, 0, false, false},
    {"when, censored", "recommend", "bce", "popularity", "mercer", "shared", 3, 1, 1, 0, true, true},
};
enum { SETUPS = sizeof setups / sizeof *setups };

static lapse_train_options options_of(const struct setup *setup, const char *device)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "task", setup->task);
    small_set(&options, "loss", setup->loss);
    small_set(&options, "negatives", setup->negatives);
    options.model.negative_count = setup->negative_count;
    small_set(&options, "encoding", setup->encoding);
    small_set(&options, "item-output", setup->output);
    if (setup->blocks)
        small_set_number(&options, "blocks", setup->blocks);
    else
        small_set(&options, "model", "transrec");
    options.run.l2 = setup->l2;
    options.model.gap_input = setup->gap_input;
    options.model.when = setup->when;
    options.model.censoring = setup->censored;
    if (setup->censored)
        small_set(&options, "split-by", "sequence");
    options.model.dims = 6; /* rows of tables then begin at unaligned offsets */
    options.run.clip = 0.5; /* below the norm of most gradients, so that clipping acts */
    options.model.dropout = 0.2;
    small_set(&options, "device", device);
    small_set(&options, "precision", "fp32"); /* the default on a GPU is less precise than the comparisons */
    return options;
}

static void start(lp_trainer *trainer, const lapse_dataset *dataset, const lapse_train_options *options)
{
    lapse_error error = {0};
    if (lp_trainer_init(trainer, dataset, options, &error) != LAPSE_OK ||
        (trainer->model->times && lp_trainer_times(trainer, &error) != LAPSE_OK) ||
        lp_trainer_epoch(trainer, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
}

static float *on_host(const lp_trainer *trainer, const float *data, size_t count)
{
    float *host = calloc(count + 1, sizeof *host);
    trainer->backend->copy_to_host(trainer->backend->context, host, data, count * sizeof *host);
    if (trainer->backend->device_error && trainer->backend->device_error(trainer->backend->context))
        fail_msg("%s", trainer->backend->device_error(trainer->backend->context));
    return host;
}

static void check_within(const float *got, const float *wanted, size_t count, double allowed, const char *what,
                         const char *part)
{
    double largest = 1e-3;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)wanted[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)wanted[i]) <= allowed * largest))
            fail_msg("%s, %s, element %zu: %.9g, should be %.9g within %.3g", what, part, i, (double)got[i],
                     (double)wanted[i], allowed * largest);
}

static void check_close(const float *got, const float *wanted, size_t count, const char *what, const char *part)
{
    check_within(got, wanted, count, 1e-4, what, part);
}

/* The gradients after a first step, of all parameters but tables. */
static void test_gradients(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(1);
    for (int i = 0; i < SETUPS; i += small_effort(1, 6)) {
        float *gradients[2], *parameters[2];
        size_t dense = 0, size = 0;
        for (int k = 0; k < 2; k++) {
            lp_trainer trainer;
            lapse_train_options options = options_of(&setups[i], k ? "cuda" : "cpu");
            options.run.shards = 1;
            start(&trainer, dataset, &options);
            lp_trainer_step(&trainer);
            size = trainer.adam.size;
            dense = size - trainer.adam.table_size;
            gradients[k] = on_host(&trainer, trainer.adam.gradients, dense);
            parameters[k] = on_host(&trainer, trainer.adam.moment1, size);
            assert_string_equal(trainer.backend->name, k ? "cuda" : "cpu");
            lp_trainer_clear(&trainer);
        }
        check_close(gradients[1], gradients[0], dense, setups[i].name, "gradient");
        check_close(parameters[1], parameters[0], size, setups[i].name, "first moment");
        for (int k = 0; k < 2; k++) {
            free(gradients[k]);
            free(parameters[k]);
        }
    }
    lapse_dataset_close(dataset);
}

/* Changes all parameters: a factor that starts at 1 could otherwise be ignored unnoticed. */
static void perturb(lp_trainer *trainer)
{
    float *parameters = on_host(trainer, trainer->parameters, trainer->adam.size);
    for (size_t i = 0; i < trainer->adam.size; i++)
        parameters[i] *= (float)(1 + 0.5 * sin((double)i));
    trainer->backend->copy_to_device(trainer->backend->context, trainer->parameters, parameters,
                                     trainer->adam.size * sizeof *parameters);
    free(parameters);
}

/* The range of a parameter; empty where there is none of this name. */
static void find_parameter(const lp_trainer *trainer, const char *name, size_t *first, size_t *end)
{
    const lp_graph *graph = &trainer->network.graph;
    *first = *end = 0;
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        if (strcmp(value->name, name) == 0) {
            *first = value->offset;
            *end = *first + (size_t)value->rows * (size_t)value->cols;
        }
    }
}

/* The same on tensor cores, where most of a step runs in fused kernels and packs. The gradient of a period is a sum of large terms that
 * cancel, so its tolerance is larger.
 *
 * Gradients are compared, not what Adam makes of them. It moves every element by the learning rate, however small its gradient is, and
 * clipping divides all gradients by a norm that those of the periods dominate. So there is no clipping, and the second step is at nearly
 * the same parameters. What needs the tolerance are units of a relu that rounding takes across 0: with `when`, in emulation, one unit of
 * the head in one row, 8e-3 of the largest gradient; all other setups are within 1e-3. */
static void test_tensor_cores(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(1);
    for (int i = 0; i < SETUPS; i += small_effort(1, 8)) {
        float *moments[2];
        size_t size = 0, periods = 0, end = 0;
        for (int k = 0; k < 2; k++) {
            lp_trainer trainer;
            lapse_train_options options = options_of(&setups[i], k ? "cuda" : "cpu");
            options.run.shards = 1;
            small_set(&options, "precision", k ? "tf32" : "fp32");
            small_set_number(&options, "heads", 1);
            options.run.learning_rate = 1e-5;
            options.run.clip = 0;
            options.model.dims = 30; /* a basis then has two halves as wide as an event, which fused kernels require */
            small_set_number(&options, "periods", 6);
            small_set_number(&options, "harmonics", 5);
            start(&trainer, dataset, &options);
            perturb(&trainer);
            for (int s = 0; s < 2; s++) /* the second is captured */
                lp_trainer_step(&trainer);
            size = trainer.adam.size;
            moments[k] = on_host(&trainer, trainer.adam.moment1, size);
            find_parameter(&trainer, "time.log_period", &periods, &end);
            lp_trainer_clear(&trainer);
        }
        check_within(moments[1] + periods, moments[0] + periods, end - periods, setups[i].when ? 1e-1 : 5e-2,
                     setups[i].name, "periods, tf32");
        for (size_t p = periods; p < end; p++)
            moments[1][p] = moments[0][p];
        check_within(moments[1], moments[0], size, 2e-2, setups[i].name, "first moment, tf32");
        free(moments[0]);
        free(moments[1]);
    }
    lapse_dataset_close(dataset);
}

typedef struct curve {
    double loss[16], score[16];
    int count;
} curve;

static bool note(const lapse_progress *progress, void *context)
{
    curve *c = context;
    if (progress->epoch_end) {
        c->loss[c->count] = progress->loss;
        c->score[c->count++] = progress->score;
    }
    return true;
}

/* Losses and validation scores of some epochs agree with those on the CPU. */
static void test_curves(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(2);
    for (int i = small_effort(1, 0); i < SETUPS; i += small_effort(2, 8)) {
        curve curves[2] = {0};
        for (int k = 0; k < 2; k++) {
            lapse_train_options options = options_of(&setups[i], k ? "cuda" : "cpu");
            options.run.shards = 1; /* in-batch negatives are those of the shard */
            lapse_model_free(small_train(dataset, &options, note, &curves[k]));
        }
        assert_int_equal(curves[0].count, setups[i].when ? 6 : 3);
        assert_int_equal(curves[1].count, curves[0].count);
        for (int e = 0; e < curves[0].count; e++) {
            if (!(fabs(curves[1].loss[e] - curves[0].loss[e]) <= 1e-3 * curves[0].loss[e]))
                fail_msg("%s, epoch %d: loss %.9g, should be %.9g", setups[i].name, e, curves[1].loss[e],
                         curves[0].loss[e]);
            if (!(fabs(curves[1].score[e] - curves[0].score[e]) <= 0.02))
                fail_msg("%s, epoch %d: score %.9g, should be %.9g", setups[i].name, e, curves[1].score[e],
                         curves[0].score[e]);
        }
    }
    lapse_dataset_close(dataset);
}

static void test_same_bits(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(3);
    for (int i = 0; i < SETUPS; i += small_effort(2, 8)) {
        float *parameters[2];
        size_t size = 0;
        for (int k = 0; k < 2; k++) {
            lp_trainer trainer;
            lapse_train_options options = options_of(&setups[i], "cuda");
            start(&trainer, dataset, &options);
            for (int s = 0; s < 4 && !lp_trainer_epoch_done(&trainer); s++)
                lp_trainer_step(&trainer);
            size = trainer.adam.size;
            parameters[k] = on_host(&trainer, trainer.parameters, size);
            lp_trainer_clear(&trainer);
        }
        if (memcmp(parameters[0], parameters[1], size * sizeof(float)) != 0)
            fail_msg("%s: two runs differ", setups[i].name);
        free(parameters[0]);
        free(parameters[1]);
    }
    lapse_dataset_close(dataset);
}

/* One of several trainings on the device. */
typedef struct device_training {
    const lapse_dataset *dataset;
    lapse_train_options options;
    float *parameters;
    size_t size;
    char error[sizeof(((lapse_error *)0)->message)]; /* cmocka's checks may fail only in the main thread */
} device_training;

static void *train_on_device(void *context)
{
    device_training *mine = context;
    lapse_error error = {0};
    lp_trainer trainer;
    lapse_status status = lp_trainer_init(&trainer, mine->dataset, &mine->options, &error);
    if (status == LAPSE_OK) {
        const lp_backend *backend = trainer.backend;
        status = lp_trainer_epoch(&trainer, &error);
        for (int s = 0; status == LAPSE_OK && s < 6 && !lp_trainer_epoch_done(&trainer); s++)
            lp_trainer_step(&trainer);
        mine->size = trainer.adam.size;
        mine->parameters = calloc(mine->size + 1, sizeof *mine->parameters);
        backend->copy_to_host(backend->context, mine->parameters, trainer.parameters,
                              mine->size * sizeof *mine->parameters);
        const char *problem = backend->device_error(backend->context);
        if (problem)
            snprintf(mine->error, sizeof mine->error, "%s", problem);
        lp_trainer_clear(&trainer);
    }
    if (status != LAPSE_OK)
        snprintf(mine->error, sizeof mine->error, "%s", error.message);
    return NULL;
}

/* Two models that train at the same time, on two host threads, have the same bits as one after the other. */
static void test_two_threads(void **state)
{
    (void)state;
    small_skip_under_tools();
    enum { MODELS = 2 };
    static const int chosen[MODELS] = {0, 5};
    lapse_dataset *dataset = small_train_data(6);
    device_training serial[MODELS] = {0}, parallel[MODELS] = {0};
    pthread_t threads[MODELS];
    for (int i = 0; i < MODELS; i++) {
        serial[i].dataset = parallel[i].dataset = dataset;
        serial[i].options = parallel[i].options = options_of(&setups[chosen[i]], "cuda");
        serial[i].options.run.batch = parallel[i].options.run.batch = 4;
        train_on_device(&serial[i]);
    }
    for (int i = 0; i < MODELS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, train_on_device, &parallel[i]), 0);
    for (int i = 0; i < MODELS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < MODELS; i++) {
        const char *name = setups[chosen[i]].name;
        if (serial[i].error[0] || parallel[i].error[0])
            fail_msg("%s: %s%s", name, serial[i].error, parallel[i].error);
        assert_int_equal(serial[i].size, parallel[i].size);
        if (memcmp(serial[i].parameters, parallel[i].parameters, serial[i].size * sizeof(float)) != 0)
            fail_msg("%s: the parameters differ when another model trains at the same time", name);
        free(serial[i].parameters);
        free(parallel[i].parameters);
    }
    lapse_dataset_close(dataset);
}

static bool stop_at_third(const lapse_progress *progress, void *context)
{
    int *left = context;
    (void)progress;
    return --*left > 0;
}

/* A run that is stopped in the middle of an epoch, with a prefetched batch and losses not yet fetched, and then resumed has the same
 * parameters and mean loss as an uninterrupted one. */
static void test_resumed(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(4);
    for (int i = 0; i < SETUPS; i += small_effort(2, 8)) {
        lapse_train_options options = options_of(&setups[i], "cuda");
        options.run.batch = 4;
        curve curves[2] = {0};
        int left = 3;
        options.run.checkpoint_seconds = 1e9; /* only at the stop */
        lapse_model *whole = small_train(dataset, &options, note, &curves[0]);
        small_set(&options, "checkpoint", small_path("device-checkpoint"));
        lapse_model_free(small_train(dataset, &options, stop_at_third, &left));
        options.run.resume = true;
        lapse_model *resumed = small_train(dataset, &options, note, &curves[1]);
        assert_memory_equal(resumed->parameters, whole->parameters,
                            whole->network.graph.parameter_size * sizeof(float));
        assert_int_equal(curves[1].count, curves[0].count);
        assert_memory_equal(curves[1].loss, curves[0].loss, sizeof curves[0].loss);
        lapse_model_free(whole);
        lapse_model_free(resumed);
        small_paths_remove();
    }
    lapse_dataset_close(dataset);
}

/* Scores of a trained model on the GPU agree with those on the CPU. */
static void test_evaluated(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(5);
    lapse_error error = {0};
    for (int i = 0; i < SETUPS; i += small_effort(2, 8)) {
        lapse_train_options options = options_of(&setups[i], "cpu");
        bool ranked = strcmp(setups[i].task, "recommend") == 0;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        double got[2];
        for (int k = 0; k < 2; k++) {
            lapse_evaluate_options evaluate;
            lapse_rank_options rank;
            lapse_scores scores = {0};
            lapse_rank_scores ranks = {0};
            lapse_evaluate_options_default(&evaluate);
            lapse_rank_options_default(&rank);
            evaluate.split = rank.split = "train";
            evaluate.device = rank.device = k ? "cuda" : "cpu";
            lapse_status status = ranked ? lapse_rank_evaluate(model, dataset, &rank, &ranks, &error)
                                         : lapse_evaluate(model, dataset, &evaluate, &scores, &error);
            if (status != LAPSE_OK)
                fail_msg("%s: %s", setups[i].name, error.message);
            got[k] = ranked ? ranks.whole.scores[1].mrr.mean : scores.log_loss;
            lapse_scores_clear(&scores);
            lapse_rank_scores_clear(&ranks);
        }
        if (!(got[0] > 0 && fabs(got[1] - got[0]) <= 1e-3 * got[0]))
            fail_msg("%s: score %.9g, should be %.9g", setups[i].name, got[1], got[0]);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* The device is resolved to the one in use; a model that only counts needs none. */
static void test_resolved(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(1);
    lapse_error error = {0};
    lapse_train_options options = small_train_options();
    small_set(&options, "device", "auto");
    assert_int_equal(small_resolve(&options, dataset, &error), LAPSE_OK);
    assert_string_equal(lp_device_names()[options.run.device], "cuda");
    assert_int_equal(options.run.shards, 1);
    assert_int_equal(options.run.precision, LP_PRECISION_BF16);
    options = small_train_options();
    small_set(&options, "device", "cuda");
    small_set(&options, "precision", "fp32");
    assert_int_equal(small_resolve(&options, dataset, &error), LAPSE_OK);
    assert_int_equal(options.run.precision, LP_PRECISION_FP32);
    options = small_train_options();
    assert_int_equal(small_resolve(&options, dataset, &error), LAPSE_OK);
    assert_string_equal(lp_device_names()[options.run.device], "cpu");
    assert_int_equal(options.run.precision, LP_PRECISION_FP32);
    options = small_train_options();
    small_set(&options, "device", "cuda");
    small_set(&options, "model", "majority");
    assert_int_equal(small_resolve(&options, dataset, &error), LAPSE_OK);
    assert_string_equal(lp_device_names()[options.run.device], "cpu");
    const lp_backend *backend;
    assert_int_equal(lp_backend_open("tpu", &backend, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "there is no device 'tpu'; choose from cpu, cuda, auto");
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_tensor_cores), cmocka_unit_test(test_curves),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_resumed),      cmocka_unit_test(test_evaluated),
        cmocka_unit_test(test_resolved),  cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, find_device, NULL);
}
