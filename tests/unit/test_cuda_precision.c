/* test_cuda_precision.c: what rounding does to the gradients of a training step on a GPU. In tf32 and bf16 every
 * gradient has a small error beside that of the CPU in fp32, and hardly any bias: it is neither shorter nor longer. On
 * the emulated device, or on a real one where the environment variable LAPSE_TEST_DEVICE is cuda. */
#include "bench/bench_check.h"
#include "model/model_options.h"
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_device(void **state)
{
    (void)state;
    test_device_choose();
    return 0;
}

/* rms: root mean square of the error, relative to that of the gradient. bias: its relative change of length,
 * <got, wanted> / <wanted, wanted> - 1. mean_bias: the mean of the latter over all parameters. */
typedef struct bounds {
    const char *precision;
    double rms, bias, mean_bias;
} bounds;

static const bounds precisions[] = {{"fp32", 1e-4, 1e-4, 1e-5}, {"tf32", 2e-2, 5e-3, 2e-3}, {"bf16", 6e-2, 2e-2, 3e-3}};

/* 6 heads of 32 columns, widths of fused kernels, and odd ones. */
static const struct size {
    int dims, heads, periods, harmonics;
} sizes[] = {{192, 6, 16, 5}, {50, 1, 10, 5}, {63, 3, 2, 7}, {100, 4, 3, 7}};

/* The gradients after one step; fills `trainer` for the names of parameters. The caller frees both. */
static float *gradients_of(lp_trainer *trainer, const lapse_dataset *dataset, const struct size *size,
                           const char *device, const char *precision)
{
    lapse_train_options options = small_train_options();
    lapse_error error = {0};
    small_set(&options, "device", device);
    small_set(&options, "precision", precision);
    small_set(&options, "encoding", "mercer");
    small_set_number(&options, "blocks", 2);
    small_set_number(&options, "heads", size->heads);
    small_set_number(&options, "periods", size->periods);
    small_set_number(&options, "harmonics", size->harmonics);
    options.model.dims = size->dims;
    options.run.shards = 1;
    options.run.clip = 0;
    if (lp_trainer_init(trainer, dataset, &options, &error) != LAPSE_OK ||
        lp_trainer_epoch(trainer, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lp_trainer_step(trainer);
    size_t dense = trainer->adam.size - trainer->adam.table_size;
    float *gradients = calloc(dense + 1, sizeof *gradients);
    trainer->backend->copy_to_host(trainer->backend->context, gradients, trainer->adam.gradients,
                                   dense * sizeof *gradients);
    const char *problem = trainer->backend->device_error && strcmp(device, "cuda") == 0
                              ? trainer->backend->device_error(trainer->backend->context)
                              : NULL;
    if (problem)
        fail_msg("%s", problem);
    return gradients;
}

/* Checks the gradient of a parameter; returns its bias. */
static double check(const float *got, const float *wanted, const lp_value *value, const bounds *allowed,
                    const struct size *size)
{
    double errors = 0, squares = 0, products = 0, least = 0;
    for (int i = 0; i < value->rows * value->cols; i++) {
        double x = (double)got[i], y = (double)wanted[i];
        errors += (x - y) * (x - y);
        squares += y * y;
        products += x * y;
    }
    /* A sum of large terms that cancel, and gradients behind relu: a token whose unit is rounded to the other side of 0. */
    bool cancels = strcmp(value->name, "time.log_period") == 0,
         relu = strstr(value->name, "forward.inner") || strstr(value->name, "gap.hidden");
    least = (cancels || relu ? 5 : 1) * allowed->rms;
    double rms = sqrt(errors / squares), bias = products / squares - 1;
    if (getenv("LAPSE_TEST_PRINT"))
        print_message("%4d dims, %s, %-30s rms %.1e bias %+.1e\n", size->dims, allowed->precision, value->name, rms,
                      bias);
    if (!(rms <= least) || !(fabs(bias) <= allowed->bias * (cancels || relu ? 5 : 1)))
        fail_msg("%d dims, %d heads, %s, gradient of %s: rms error %.2e, allowed %.2e; bias %+.2e", size->dims,
                 size->heads, allowed->precision, value->name, rms, least, bias);
    return bias;
}

static void test_gradients(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(1);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s += (size_t)small_effort(1, 2)) {
        lp_trainer reference;
        float *wanted = gradients_of(&reference, dataset, &sizes[s], "cpu", "fp32");
        const lp_graph *graph = &reference.network.graph;
        for (int k = small_effort(s > 0, 1); k < 3; k++) {
            lp_trainer trainer;
            float *got = gradients_of(&trainer, dataset, &sizes[s], "cuda", precisions[k].precision);
            double sum = 0;
            int count = 0;
            for (int i = 0; i < graph->parameter_count; i++) {
                const lp_value *value = graph->parameters[i].value;
                /* The gradient of a key bias is 0 up to rounding. */
                if (graph->parameters[i].table || strstr(value->name, "key.event.bias"))
                    continue;
                size_t offset = value->offset - graph->table_size;
                sum += check(got + offset, wanted + offset, value, &precisions[k], &sizes[s]);
                count++;
            }
            if (!(fabs(sum / count) <= precisions[k].mean_bias))
                fail_msg("%d dims, %s: gradients have a bias of %+.2e on average", sizes[s].dims,
                         precisions[k].precision, sum / count);
            if (getenv("LAPSE_TEST_PRINT"))
                print_message("mean bias %+.2e\n", sum / count);
            free(got);
            lp_trainer_clear(&trainer);
        }
        free(wanted);
        lp_trainer_clear(&reference);
    }
    lapse_dataset_close(dataset);
}

static void set(lapse_train_options *options, const char *name, const char *value)
{
    lapse_error error = {0};
    if (lapse_train_options_set(options, name, value, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
}

/* Every model with attention blocks, with all numbers of them: each block adds products and reductions to those that wait for a launch. */
static void test_blocks(void **state)
{
    (void)state;
    small_skip_under_tools();
    const char *const blocks[] = {"4", "6", "8"}, *const presets[] = {"so", "ml-1m-softmax"};
    int tested = 0;
    for (const lp_model_row *const *each = lp_models; *each; each++) {
        const lp_model_row *row = *each;
        if (!lp_model_has_option(row, "blocks"))
            continue;
        for (int b = 0; b < small_effort(3, 1); b++) {
            lapse_train_options training;
            lapse_error error = {0};
            bool ranks = !(row->tasks & 1u << LP_TASK_CLASSIFY);
            lapse_bench_options bench = {.device = "cuda", .precision = "bf16", .seed = 1, .training = &training};
            lp_train_options_default(&training);
            set(&training, "model", row->name);
            set(&training, "blocks", blocks[b]);
            set(&training, "dims", "16");
            set(&training, "heads", "2");
            set(&training, "context", "12");
            double worst = 0;
            if (lp_bench_check(lp_bench_preset_find(presets[ranks]), &bench, NULL, &worst, &error) != LAPSE_OK)
                fail_msg("%s, %s blocks: %s", row->name, blocks[b], error.message);
            tested++;
        }
    }
    assert_true(tested >= 2 * small_effort(3, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, find_device, NULL);
}
