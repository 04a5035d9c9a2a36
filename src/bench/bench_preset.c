#include "bench/bench_preset.h"

#include "base/error.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

/* ml-1m: the paper's sizes. so: those that docs/results.md has scores of. catalogue: the paper's Walmart data. */
static const lp_bench_preset presets[] = {
    {.name = "ml-1m",
     .sequences = 6040,
     .items = 3416,
     .shortest = 18,
     .median = 96,
     .mean = 165.5,
     .task = "recommend",
     .loss = "bce",
     .windows = "last",
     .dims = 50,
     .blocks = 2,
     .context = 200,
     .batch = 128,
     .periods = 10,
     .harmonics = 5,
     .dropout = 0.2},
    {.name = "ml-1m-softmax",
     .sequences = 6040,
     .items = 3416,
     .shortest = 18,
     .median = 96,
     .mean = 165.5,
     .task = "recommend",
     .loss = "softmax",
     .windows = "last",
     .dims = 50,
     .blocks = 2,
     .context = 200,
     .batch = 128,
     .periods = 10,
     .harmonics = 5,
     .dropout = 0.2},
    {.name = "so",
     .sequences = 6633,
     .items = 22,
     .shortest = 40,
     .median = 58,
     .mean = 72.4,
     .task = "classify",
     .loss = "softmax",
     .windows = "all",
     .dims = 32,
     .blocks = 1,
     .context = 100,
     .batch = 64,
     .periods = 16,
     .harmonics = 5,
     .dropout = 0.1},
    {.name = "catalogue",
     .sequences = 72000,
     .items = 1700000,
     .shortest = 4,
     .median = 12,
     .mean = 16,
     .task = "recommend",
     .loss = "sampled-softmax",
     .negatives = "uniform",
     .windows = "last",
     .dims = 100,
     .blocks = 1,
     .context = 50,
     .batch = 128,
     .periods = 10,
     .harmonics = 5,
     .dropout = 0.2},
};

enum { PRESETS = sizeof presets / sizeof *presets };

const char *const *lapse_bench_preset_names(void)
{
    static const char *const names[] = {"ml-1m", "ml-1m-softmax", "so", "catalogue", NULL};
    _Static_assert(sizeof names / sizeof *names == PRESETS + 1, "every preset has a name, in the order of the table");
    return names;
}

const lp_bench_preset *lp_bench_preset_find(const char *name)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

void lp_bench_preset_options(const lp_bench_preset *preset, lapse_train_options *options)
{
    lapse_train_options_default(options);
    options->task = preset->task;
    options->loss = preset->loss;
    options->windows = preset->windows;
    if (preset->negatives)
        options->negatives = preset->negatives;
    options->dims = preset->dims;
    options->blocks = preset->blocks;
    options->heads = 1;
    options->context = preset->context;
    options->batch = preset->batch;
    options->periods = preset->periods;
    options->harmonics = preset->harmonics;
    options->dropout = preset->dropout;
}

/* Names of one length, so that name i begins at i times that. */
static bool make_names(char letter, int64_t count, void **offsets, void **bytes, lp_names *names)
{
    enum { SIZE = 12 };
    uint64_t *offset = *offsets = lp_alloc((size_t)count + 1, sizeof *offset);
    char *text = *bytes = lp_alloc((size_t)count, SIZE);
    if (!offset || !text)
        return false;
    for (int64_t i = 0; i <= count; i++)
        offset[i] = (uint64_t)i * SIZE;
    for (int64_t i = 0; i < count; i++)
        snprintf(text + i * SIZE, SIZE, "%c%010lld", letter, (long long)(i % 10000000000));
    *names = (lp_names){.count = count, .offset = offset, .bytes = text};
    return true;
}

/* Events of a sequence: log-normal above the shortest, with the preset's median and mean. */
static int64_t draw_length(const lp_bench_preset *preset, lp_random *random)
{
    const double longest = 2500;
    double middle = preset->median - preset->shortest, average = preset->mean - preset->shortest;
    double deviation = sqrt(2 * log(average / middle));
    double length = preset->shortest + middle * exp(deviation * lp_random_normal(random));
    return (int64_t)(length < longest ? length : longest);
}

static void draw_events(const lapse_dataset *dataset, lp_random *random, double *time, int32_t *type)
{
    int64_t items = dataset->types.count;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        double now = 1e9 + 1e7 * lp_random_uniform(random);
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            double place = lp_random_uniform(random);
            now += 3600 * exp(3 * lp_random_normal(random));
            time[i] = now;
            type[i] = (int32_t)((double)items * place * place);
        }
    }
}

static bool fill(lapse_dataset *dataset, const lp_bench_preset *preset, int64_t sequences, int64_t items, uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_BENCH, 0);
    uint64_t *start = dataset->buffers[0] = lp_alloc((size_t)sequences + 1, sizeof *start);
    if (!start || !make_names('i', items, &dataset->buffers[4], &dataset->buffers[5], &dataset->types) ||
        !make_names('s', sequences, &dataset->buffers[6], &dataset->buffers[7], &dataset->sequences))
        return false;
    for (int64_t s = 0; s < sequences; s++)
        start[s + 1] = start[s] + (uint64_t)draw_length(preset, &random);
    double *time = dataset->buffers[1] = lp_alloc(start[sequences], sizeof *time);
    int32_t *type = dataset->buffers[2] = lp_alloc(start[sequences], sizeof *type);
    if (!time || !type)
        return false;
    dataset->sequence_count = sequences;
    dataset->event_count = (int64_t)start[sequences];
    dataset->start = start;
    dataset->time = time;
    dataset->type = type;
    draw_events(dataset, &random, time, type);
    return true;
}

lapse_status lp_bench_data(const lp_bench_preset *preset, int64_t sequences, int64_t items, uint64_t seed,
                           lapse_dataset **dataset, lapse_error *error)
{
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    if (!made || !fill(made, preset, sequences, items, seed)) {
        lapse_dataset_close(made);
        return lp_fail_memory(error, "events to measure with", (size_t)items * 12);
    }
    *dataset = made;
    return LAPSE_OK;
}
