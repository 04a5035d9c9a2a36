/* bench_preset.c: the table of benchmark presets, and the events they simulate. */
#include "bench/bench_preset.h"

#include "base/random.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* MovieLens-1M at the paper's sizes. */
static const lp_bench_preset ml_1m = {.name = "ml-1m",
                                      .sizes = {6040, 3416, 18, 96, 165.5},
                                      .options = {{"task", "recommend"},
                                                  {"loss", "bce"},
                                                  {"windows", "last"},
                                                  {"dims", "50"},
                                                  {"blocks", "2"},
                                                  {"heads", "1"},
                                                  {"context", "200"},
                                                  {"batch", "128"},
                                                  {"periods", "10"},
                                                  {"harmonics", "5"},
                                                  {"dropout", "0.2"},
                                                  {"gap-input", "off"}}};
static const lp_bench_preset ml_1m_softmax = {
    .name = "ml-1m-softmax", .base = &ml_1m, .options = {{"loss", "softmax"}}};
/* Stack Overflow, with the sizes in docs/results.md. */
static const lp_bench_preset so = {.name = "so",
                                   .sizes = {6633, 22, 40, 58, 72.4},
                                   .options = {{"dims", "32"},
                                               {"blocks", "1"},
                                               {"heads", "1"},
                                               {"context", "100"},
                                               {"batch", "64"},
                                               {"periods", "16"},
                                               {"harmonics", "5"},
                                               {"dropout", "0.1"},
                                               {"gap-input", "off"}}};
/* The sizes of the paper's Walmart data. */
static const lp_bench_preset catalogue = {
    .name = "catalogue",
    .base = &ml_1m,
    .sizes = {72000, 1700000, 4, 12, 16},
    .options = {{"loss", "sampled-softmax"}, {"dims", "100"}, {"blocks", "1"}, {"context", "50"}}};

static const lp_bench_preset *const presets[] = {&ml_1m, &ml_1m_softmax, &so, &catalogue, NULL};

const char *const *lapse_bench_preset_names(void)
{
    static const char *names[LP_ROW_NAMES];
    return lp_row_names((const void *const *)presets, names);
}

const lp_bench_preset *lp_bench_preset_find(const char *name)
{
    int index = lp_name_index(name, lapse_bench_preset_names());
    return index < 0 ? NULL : presets[index];
}

const lp_bench_sizes *lp_bench_preset_sizes(const lp_bench_preset *preset)
{
    while (preset->sizes.sequences == 0)
        preset = preset->base;
    return &preset->sizes;
}

static lapse_status set_options(const lp_bench_preset *preset, lapse_train_options *options, lapse_error *error)
{
    if (preset->base)
        LP_TRY(set_options(preset->base, options, error));
    for (int i = 0; i < LP_BENCH_OPTIONS && preset->options[i].name; i++)
        LP_TRY(lapse_train_options_set(options, preset->options[i].name, preset->options[i].value, error));
    return LAPSE_OK;
}

/* The options that the caller set replace the preset's. */
static lapse_status replace_options(const lapse_train_options *given, lapse_train_options *options, lapse_error *error)
{
    char value[4096];
    lapse_option option;
    for (int i = 0; given && lapse_train_option(i, &option); i++)
        if (given->given[i])
            LP_TRY(lapse_train_options_set(options, option.name,
                                           lapse_train_options_get(given, option.name, value, sizeof value), error));
    return LAPSE_OK;
}

lapse_status lp_bench_preset_options(const lp_bench_preset *preset, const lapse_bench_options *bench,
                                     lapse_train_options *options, lapse_error *error)
{
    lp_train_options_default(options);
    LP_TRY(set_options(preset, options, error));
    memset(options->given, 0, sizeof options->given); /* a model without an option of the preset does not refuse it */
    LP_TRY(replace_options(bench->training, options, error));
    LP_TRY(lapse_train_options_set(options, "device", bench->device, error));
    if (bench->precision)
        LP_TRY(lapse_train_options_set(options, "precision", bench->precision, error));
    options->run.seed = bench->seed;
    return LAPSE_OK;
}

/* Names of equal length, so that name i begins at i times that length. */
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

/* Events of a sequence: log-normal above the shortest, with this median and mean. */
static int64_t sample_length(const lp_bench_sizes *sizes, lp_random *random)
{
    const double limit = 2500;
    double middle = sizes->median - sizes->shortest, average = sizes->mean - sizes->shortest;
    double deviation = sqrt(2 * log(average / middle));
    double length = sizes->shortest + middle * exp(deviation * lp_random_normal(random));
    return (int64_t)(length < limit ? length : limit);
}

static void sample_events(const lapse_dataset *dataset, lp_random *random, double *time, int32_t *type)
{
    int64_t items = dataset->types.count;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        double now = 1e9 + 1e7 * lp_random_uniform(random);
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            double uniform = lp_random_uniform(random);
            now += 3600 * exp(3 * lp_random_normal(random));
            time[i] = now;
            type[i] = (int32_t)((double)items * uniform * uniform);
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
        start[s + 1] = start[s] + (uint64_t)sample_length(lp_bench_preset_sizes(preset), &random);
    double *time = dataset->buffers[1] = lp_alloc(start[sequences], sizeof *time);
    int32_t *type = dataset->buffers[2] = lp_alloc(start[sequences], sizeof *type);
    if (!time || !type)
        return false;
    dataset->sequence_count = sequences;
    dataset->event_count = (int64_t)start[sequences];
    dataset->start = start;
    dataset->time = time;
    dataset->type = type;
    sample_events(dataset, &random, time, type);
    return true;
}

lapse_status lp_bench_data(const lp_bench_preset *preset, int64_t sequences, int64_t items, uint64_t seed,
                           lapse_dataset **dataset, lapse_error *error)
{
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    if (!made || !fill(made, preset, sequences, items, seed)) {
        lapse_dataset_close(made);
        return lp_fail_memory(error, "the events of a benchmark", (size_t)items * 12);
    }
    *dataset = made;
    return LAPSE_OK;
}
