/* device_steps.c: training on a real GPU at realistic sizes: compares losses with the CPU, checks that two runs have the same bits, and times
 * a step by op. Needs a GPU; the test command only builds it.
 *
 *   device_steps [STEPS] [reuse_delay=N] [PART...]
 *
 * PART is bits, time, evaluation or curves (default: all). STEPS of time and curves (default: 200). reuse_delay: replaces
 * lp_backend.reuse_delay. The names fp32, tf32, bf16, bce, softmax and sampled-softmax restrict bits and time to these.
 *
 * The data is synthetic, with as many sequences, events and items as MovieLens-1M and a rule that can be learned.
 */
#include "data/dataset/dataset.h"
#include "support/small_train.h"
#include "support/small_data.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEQUENCES = 6040, ITEMS = 3416, EVENTS = 1000000 };

static int failures;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(bool good, const char *what)
{
    printf("%-6s %s\n", good ? "ok" : "FAILED", what);
    fflush(stdout);
    failures += !good;
}

/* Lengths from 20 to 2,300, 165 in the mean; an item is followed by one near it. */
static lapse_dataset *make_data(void)
{
    lp_random random = lp_random_start(7, LP_PURPOSE_TEST, 900);
    int *lengths = calloc(SEQUENCES, sizeof *lengths);
    double *time = calloc(EVENTS, sizeof *time);
    int32_t *type = calloc(EVENTS, sizeof *type);
    int total = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        int length = 20 + (int)(145 * lp_random_exponential(&random));
        length = length > 2300 ? 2300 : length;
        length = length > EVENTS - total ? EVENTS - total : length;
        double at = 1e9 + 1e6 * lp_random_uniform(&random);
        int item = (int)lp_random_below(&random, ITEMS);
        lengths[s] = length;
        for (int i = 0; i < length; i++) {
            time[total] = at;
            type[total++] = item;
            at += 3600 * lp_random_exponential(&random);
            bool jump = lp_random_below(&random, 4) == 0;
            item =
                (item + (jump ? (int)lp_random_below(&random, ITEMS) : 1 + (int)lp_random_below(&random, 20))) % ITEMS;
        }
    }
    lapse_dataset *dataset = small_dataset(SEQUENCES, lengths, time, type, ITEMS, NULL);
    free(lengths);
    free(time);
    free(type);
    return dataset;
}

/* The sizes of the paper's MovieLens model: 50 dims, 2 blocks, contexts of 200, 128 windows a step, a basis of 100 columns. */
static lapse_train_options paper_sizes(const char *device, const char *loss, const char *precision)
{
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "task", "recommend");
    small_set(&options, "loss", loss);
    small_set(&options, "windows", "last");
    small_set(&options, "gap-input", "off");
    options.model.dims = 50;
    small_set_number(&options, "blocks", 2);
    small_set_number(&options, "heads", 1);
    options.model.context = 200;
    small_set_number(&options, "periods", 10);
    small_set_number(&options, "harmonics", 5);
    options.model.dropout = 0.2;
    options.run.batch = 128;
    small_set(&options, "device", device);
    small_set(&options, "precision", precision);
    options.run.threads = LP_UNSET;
    return options;
}

static bool begin(lp_trainer *trainer, const lapse_dataset *dataset, const lapse_train_options *options)
{
    lapse_error error = {0};
    if (lp_trainer_init(trainer, dataset, options, &error) == LAPSE_OK && lp_trainer_epoch(trainer, &error) == LAPSE_OK)
        return true;
    printf("FAILED %s\n", error.message);
    failures++;
    return false;
}

static const char *problem(const lp_trainer *trainer)
{
    return trainer->backend->device_error ? trainer->backend->device_error(trainer->backend->context) : NULL;
}

/* One step, in a new epoch where the last one is over. Returns the mean loss of the step where it waits for it. */
static double step(lp_trainer *trainer, bool wait)
{
    lapse_error error;
    if (lp_trainer_epoch_done(trainer)) {
        trainer->state.epoch++;
        trainer->state.window = trainer->state.targets = 0;
        trainer->state.loss = 0;
        lp_trainer_epoch(trainer, &error);
    }
    double before = trainer->state.loss;
    lp_trainer_step(trainer);
    if (!wait)
        return 0;
    lp_trainer_collect(trainer);
    return (trainer->state.loss - before) / trainer->batch.targets;
}

static void compare_curves(const lapse_dataset *dataset, const char *loss, const char *precision, int steps,
                           double allowed)
{
    lp_trainer cpu, cuda;
    char what[200];
    lapse_train_options options = paper_sizes("cpu", loss, precision);
    options.run.batch = 32; /* limits the time on the CPU */
    options.model.context = 64;
    if (strcmp(loss, "sampled-softmax") == 0)
        options.run.shards = 1; /* in-batch negatives are those of the shard */
    if (!begin(&cpu, dataset, &options))
        return;
    small_set(&options, "device", "cuda");
    if (!begin(&cuda, dataset, &options)) {
        lp_trainer_clear(&cpu);
        return;
    }
    double worst = 0, last = 0, first = 0;
    int worst_at = 0;
    for (int s = 0; s < steps; s++) {
        double wanted = step(&cpu, true), got = step(&cuda, true);
        double difference = fabs(got - wanted) / wanted;
        first = s == 0 ? wanted : first;
        last = wanted;
        if (!(difference <= worst)) {
            worst = difference;
            worst_at = s;
        }
        if (problem(&cuda)) {
            printf("       %s\n", problem(&cuda));
            break;
        }
    }
    snprintf(what, sizeof what, "%s, %s: %d steps, loss %.4f to %.4f, at most %.2g apart (step %d; %.0e allowed)", loss,
             precision, steps, first, last, worst, worst_at, allowed);
    check(worst <= allowed && !problem(&cuda), what);
    lp_trainer_clear(&cpu);
    lp_trainer_clear(&cuda);
}

static void compare_bits(const lapse_dataset *dataset, const char *loss, const char *precision)
{
    float *parameters[2] = {NULL, NULL};
    size_t size = 0;
    char what[200];
    for (int k = 0; k < 2; k++) {
        lp_trainer trainer;
        lapse_train_options options = paper_sizes("cuda", loss, precision);
        if (!begin(&trainer, dataset, &options))
            return;
        for (int s = 0; s < 60; s++)
            step(&trainer, false);
        size = trainer.adam.size * sizeof(float);
        parameters[k] = malloc(size);
        trainer.backend->copy_to_host(trainer.backend->context, parameters[k], trainer.parameters, size);
        lp_trainer_clear(&trainer);
    }
    snprintf(what, sizeof what, "%s, %s: two runs of 60 steps have the same bits", loss, precision);
    check(memcmp(parameters[0], parameters[1], size) == 0, what);
    free(parameters[0]);
    free(parameters[1]);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

static double *node_seconds; /* seconds by node; a launch of several nodes counts for the first */
static int runs;

static void add_launch(void *context, const lp_launch *launch)
{
    (void)context;
    node_seconds[launch->parts[0].node] += launch->seconds;
}

static void run_and_time(void *context, const lp_run *run)
{
    const lp_backend *cuda;
    lapse_error error;
    lp_profiler profiler = {add_launch, NULL};
    lp_backend_open("cuda", &cuda, &error);
    cuda->run_profiled(context, run, &profiler);
    runs++;
}

static void time_ops(lp_trainer *trainer)
{
    lp_backend timed = *trainer->backend;
    const lp_backend *device = trainer->backend;
    timed.run = run_and_time;
    timed.train_step = NULL;
    trainer->backend = trainer->runner.backend = &timed;
    const lp_graph *graph = &trainer->network.graph;
    node_seconds = calloc((size_t)graph->node_count, sizeof *node_seconds);
    for (int s = 0; s < 3; s++)
        step(trainer, true);
    memset(node_seconds, 0, (size_t)graph->node_count * sizeof *node_seconds);
    runs = 0;
    for (int s = 0; s < 10; s++)
        step(trainer, true);
    trainer->backend = trainer->runner.backend = device;
    double sum = 0;
    for (int i = 0; i < graph->node_count; i++) {
        sum += node_seconds[i];
        if (node_seconds[i] > 0)
            printf("       %3d %-24s %9.1f us\n", i, graph->nodes[i]->op->name, 1e6 * node_seconds[i] / runs);
    }
    printf("       %-24s     %9.1f us a step, launched one by one\n", "all", 1e6 * sum / runs);
    free(node_seconds);
}

static void time_steps(const lapse_dataset *dataset, const char *loss, const char *precision, int steps)
{
    lp_trainer trainer;
    lapse_train_options options = paper_sizes("cuda", loss, precision);
    if (!begin(&trainer, dataset, &options))
        return;
    for (int s = 0; s < 10; s++)
        step(&trainer, false);
    trainer.backend->sync(trainer.backend->context);
    double start = now(), tokens = 0;
    for (int s = 0; s < steps; s++) {
        step(&trainer, false);
        tokens += trainer.batch.tokens;
    }
    trainer.backend->sync(trainer.backend->context);
    double seconds = (now() - start) / steps;
    /* Time of the host, without waiting for the device. */
    start = now();
    for (int s = 0; s < 3; s++)
        step(&trainer, false);
    double host = (now() - start) / 3;
    trainer.backend->sync(trainer.backend->context);
    printf("time   %s, %s: %.0f tokens a step, %.1f us a step (host busy %.1f us), %.2f M tokens/s; an epoch of 48 "
           "steps %.1f ms\n",
           loss, precision, tokens / steps, 1e6 * seconds, 1e6 * host, 1e-6 * tokens / steps / seconds, 48e3 * seconds);
    time_ops(&trainer);
    if (problem(&trainer))
        check(false, problem(&trainer));
    lp_trainer_clear(&trainer);
    fflush(stdout);
}

/* Validation after an epoch: states of all histories, and their ranks. */
static void time_evaluation(const lapse_dataset *dataset)
{
    lp_trainer trainer;
    lapse_train_options options = paper_sizes("cuda", "bce", "fp32");
    if (!begin(&trainer, dataset, &options))
        return;
    double run = 0, rank = 0;
    for (int k = 0; k < 5; k++) {
        double start = now();
        lp_evaluator_run(&trainer.evaluator, trainer.parameters);
        double middle = now();
        lp_evaluator_rank(&trainer.evaluator, trainer.parameters);
        run = k > 1 ? fmin(run, middle - start) : middle - start;
        rank = k > 1 ? fmin(rank, now() - middle) : now() - middle;
    }
    printf("time   evaluation of %lld histories: states %.1f ms, ranks %.1f ms\n",
           (long long)trainer.evaluator.windows.count, 1e3 * run, 1e3 * rank);
    double least = INFINITY;
    for (int k = 0; k < 5; k++) {
        lapse_error error;
        double start = now();
        lp_trainer_epoch(&trainer, &error);
        double laid_out = now() - start;
        while (!lp_trainer_epoch_done(&trainer))
            lp_trainer_step(&trainer);
        double requires_grad = now() - start;
        lp_trainer_score(&trainer);
        if (now() - start < least)
            printf("time   an epoch: windows in %.1f ms, learned in %.1f ms, with its score %.1f ms\n", 1e3 * laid_out,
                   1e3 * (requires_grad - laid_out), 1e3 * (now() - start));
        least = fmin(least, now() - start);
    }
    lp_trainer_clear(&trainer);
    fflush(stdout);
}

/* Command line. */
static const char *const parts[] = {"bits", "time", "evaluation", "curves", NULL};
static const char *const precisions[] = {"fp32", "tf32", "bf16", NULL};
static const char *const losses[] = {"bce", "softmax", "sampled-softmax", NULL};
static int steps = 200, reuse_delay = -1;

static int index_in(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* Whether the name is among the arguments, or none of `names` is. */
static bool wanted(const char *const *names, const char *name, char **argv)
{
    bool named = false, any = false;
    for (int i = 1; argv[i]; i++) {
        any = any || index_in(names, argv[i]) >= 0;
        named = named || strcmp(argv[i], name) == 0;
    }
    return named || !any;
}

static bool read_arguments(char **argv)
{
    for (int i = 1; argv[i]; i++) {
        char *end;
        long number = strtol(argv[i], &end, 10);
        if (*argv[i] && !*end && number > 0 && number <= 1000000)
            steps = (int)number;
        else if (strncmp(argv[i], "reuse_delay=", 12) == 0)
            reuse_delay = atoi(argv[i] + 12);
        else if (index_in(parts, argv[i]) < 0 && index_in(precisions, argv[i]) < 0 && index_in(losses, argv[i]) < 0) {
            fprintf(stderr,
                    "device_steps: '%s' is neither a number of steps, nor reuse_delay=N, nor one of bits, time, "
                    "evaluation, "
                    "curves, fp32, tf32, bf16, bce, softmax, sampled-softmax\n",
                    argv[i]);
            return false;
        }
    }
    return true;
}

/* The plugin's lp_backend lies in writable memory. */
static void set_reuse_delay(void)
{
    const lp_backend *cuda;
    lapse_error error;
    if (reuse_delay >= 0 && lp_backend_open("cuda", &cuda, &error) == LAPSE_OK)
        ((lp_backend *)(uintptr_t)cuda)->reuse_delay = reuse_delay;
}

static void time_all(const lapse_dataset *dataset, char **argv)
{
    for (int p = 0; precisions[p]; p++)
        for (int i = 0; losses[i]; i++)
            if ((p == 0 || i < 2) && wanted(precisions, precisions[p], argv) && wanted(losses, losses[i], argv))
                time_steps(dataset, losses[i], precisions[p], steps);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!read_arguments(argv))
        return 2;
    lapse_dataset *dataset = make_data();
    set_reuse_delay();
    for (int i = 0; losses[i] && wanted(parts, "bits", argv); i++)
        for (int p = 0; precisions[p]; p++)
            if (wanted(losses, losses[i], argv) && wanted(precisions, precisions[p], argv))
                compare_bits(dataset, losses[i], precisions[p]);
    if (wanted(parts, "time", argv))
        time_all(dataset, argv);
    if (wanted(parts, "evaluation", argv))
        time_evaluation(dataset);
    if (wanted(parts, "curves", argv)) {
        for (int i = 0; losses[i]; i++)
            compare_curves(dataset, losses[i], "fp32", steps, 1e-3);
        compare_curves(dataset, "bce", "tf32", steps, 1e-2);
        compare_curves(dataset, "bce", "bf16", steps, 3e-2);
    }
    lapse_dataset_close(dataset);
    printf("%d failed\n", failures);
    return failures != 0;
}
