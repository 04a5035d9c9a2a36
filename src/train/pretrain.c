/* pretrain.c: lapse_pretrain: checks the options, reads the catalogue and trains item vectors by skip-gram. */
#include "data/dataset/fingerprint.h"
#include "data/dataset/split.h"
#include "model/vectors.h"
#include "train/skipgram.h"

#include <math.h>
#include <time.h>

enum { MAX_DIMS = 4096, MAX_WINDOW = 1000, MAX_NEGATIVES = 1000, MAX_EPOCHS = 10000, CHUNK = 256 };

void lapse_pretrain_options_default(lapse_pretrain_options *options)
{
    *options = (lapse_pretrain_options){.dims = 64,
                                        .window = 5,
                                        .negative_count = 5,
                                        .popularity_power = 0.75,
                                        .learning_rate = 0.05,
                                        .epochs = 10,
                                        .seed = 1};
}

static lapse_status check_integer(const char *name, int value, int most, lapse_error *error)
{
    if (value >= 1 && value <= most)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "%s must be from 1 to %d, not %d", name, most, value);
}

static lapse_status check_number(const char *name, double value, double least, double most, lapse_error *error)
{
    if (value >= least && value <= most)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "%s must be from %g to %g, not %g", name, least, most, value);
}

static lapse_status check(const lapse_pretrain_options *options, lapse_error *error)
{
    LP_TRY(check_integer("dims", options->dims, MAX_DIMS, error));
    LP_TRY(check_integer("window", options->window, MAX_WINDOW, error));
    LP_TRY(check_integer("negative-count", options->negative_count, MAX_NEGATIVES, error));
    LP_TRY(check_integer("epochs", options->epochs, MAX_EPOCHS, error));
    LP_TRY(check_number("session-gap", options->session_gap, 0, 1e12, error));
    LP_TRY(check_number("popularity-power", options->popularity_power, 0, 2, error));
    return check_number("learning-rate", options->learning_rate, 1e-6, 1, error);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* end: number of sequences processed in this epoch. */
static lapse_progress progress_of(const lp_skipgram *skipgram, int epoch, int64_t end, double start)
{
    int64_t count = skipgram->dataset->sequence_count;
    double seconds = now() - start, rate = (double)skipgram->done / fmax(seconds, 1e-9);
    double whole = (double)skipgram->events / fmax(rate, 1e-9);
    double left = (skipgram->epochs - epoch - (double)end / (double)count) * whole;
    return (lapse_progress){.epoch = epoch + 1,
                            .epochs = skipgram->epochs,
                            .step = end,
                            .steps = count,
                            .epoch_end = end == count,
                            .loss = skipgram->pairs ? skipgram->loss / (double)skipgram->pairs : NAN,
                            .score = NAN,
                            .best_score = NAN,
                            .events_per_second = rate,
                            .seconds = seconds,
                            .epoch_seconds = whole,
                            .seconds_left = left,
                            .seconds_left_most = left};
}

static lapse_status train(lp_skipgram *skipgram, lapse_on_progress on_progress, void *context, lapse_error *error)
{
    double start = now();
    int64_t count = skipgram->dataset->sequence_count;
    for (int epoch = 0; epoch < skipgram->epochs; epoch++) {
        lp_skipgram_epoch(skipgram, epoch);
        for (int64_t first = 0; first < count; first += CHUNK) {
            int64_t end = first + CHUNK < count ? first + CHUNK : count;
            lp_skipgram_train(skipgram, first, end, epoch);
            if (!isfinite(skipgram->loss))
                return lp_fail(
                    error, LAPSE_ERROR_USAGE,
                    "training diverged: the loss is not finite. Use a " LP_OPTION("--learning-rate") " below %g",
                    skipgram->learning_rate);
            lapse_progress progress = progress_of(skipgram, epoch, end, start);
            if (on_progress && !on_progress(&progress, context))
                return LAPSE_OK;
        }
        if (skipgram->pairs == 0)
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "no two events of the training split are in one window: use a longer " LP_OPTION(
                               "--session-gap") ", or data "
                                                "with longer sequences");
    }
    return LAPSE_OK;
}

static lapse_status describe(lapse_vectors *vectors, const lp_skipgram *skipgram, const lapse_pretrain_options *options,
                             const char *split_by, lapse_error *error)
{
    const lp_catalogue *catalogue = skipgram->catalogue;
    char text[LP_NUMBER_SIZE];
    LP_TRY(lp_vectors_property_set(vectors, error, "items", "%lld", (long long)vectors->count));
    LP_TRY(lp_vectors_property_set(vectors, error, "dims", "%d", options->dims));
    LP_TRY(lp_vectors_property_set(vectors, error, "window", "%d", options->window));
    LP_TRY(lp_vectors_property_set(vectors, error, "session_gap", "%s", lp_number_text(options->session_gap, text)));
    LP_TRY(lp_vectors_property_set(vectors, error, "negative_count", "%d", options->negative_count));
    LP_TRY(lp_vectors_property_set(vectors, error, "popularity_power", "%s",
                                   lp_number_text(options->popularity_power, text)));
    LP_TRY(
        lp_vectors_property_set(vectors, error, "learning_rate", "%s", lp_number_text(options->learning_rate, text)));
    LP_TRY(lp_vectors_property_set(vectors, error, "epochs", "%d", options->epochs));
    LP_TRY(lp_vectors_property_set(vectors, error, "seed", "%llu", (unsigned long long)options->seed));
    LP_TRY(lp_vectors_property_set(vectors, error, "split_by", "%s", split_by));
    LP_TRY(lp_vectors_property_set(vectors, error, "features", "%u", catalogue->features.count));
    if (options->catalogue)
        LP_TRY(lp_vectors_property_set(vectors, error, "catalogue", "%.900s", options->catalogue));
    return lp_vectors_property_set(vectors, error, "dataset.fingerprint", "%016llx",
                                   (unsigned long long)lp_dataset_fingerprint(skipgram->dataset));
}

static lapse_status make_vectors(const lp_skipgram *skipgram, const lapse_pretrain_options *options,
                                 const char *split_by, lapse_vectors **vectors, lapse_error *error)
{
    lp_names names = lp_intern_names(&skipgram->catalogue->items);
    lapse_vectors *made = lp_vectors_new(&names, skipgram->dims);
    if (!made)
        return lp_fail_memory(error, "item vectors", (size_t)names.count * (size_t)skipgram->dims * sizeof(float));
    for (int64_t i = 0; i < made->count; i++) {
        lp_skipgram_vector(skipgram, i, made->vector + i * made->dims);
        made->counts[i] = skipgram->counts[i];
    }
    lapse_status status = describe(made, skipgram, options, split_by, error);
    if (status == LAPSE_OK)
        *vectors = made;
    else
        lapse_vectors_free(made);
    return status;
}

static lapse_status pretrain(const lapse_dataset *dataset, const uint8_t *split, const lp_catalogue *catalogue,
                             const lapse_pretrain_options *options, const char *split_by, lapse_on_progress on_progress,
                             void *context, lapse_vectors **vectors, lapse_error *error)
{
    lp_skipgram skipgram = {.dataset = dataset,
                            .split = split,
                            .catalogue = catalogue,
                            .dims = options->dims,
                            .window = options->window,
                            .negative_count = options->negative_count,
                            .epochs = options->epochs,
                            .session_gap = options->session_gap,
                            .learning_rate = options->learning_rate,
                            .power = options->popularity_power,
                            .seed = options->seed};
    LP_TRY(lp_skipgram_init(&skipgram, error));
    lapse_status status = train(&skipgram, on_progress, context, error);
    if (status == LAPSE_OK)
        status = make_vectors(&skipgram, options, split_by, vectors, error);
    lp_skipgram_clear(&skipgram);
    return status;
}

lapse_status lapse_pretrain(const lapse_dataset *dataset, const lapse_pretrain_options *options,
                            lapse_on_progress on_progress, void *context, lapse_vectors **vectors, lapse_error *error)
{
    LP_REQUIRE(error, dataset, options, vectors);
    *vectors = NULL;
    LP_TRY(check(options, error));
    const lp_split_rule *rule =
        options->split_by ? lp_split_rule_find(options->split_by) : lp_split_rule_default(dataset, "recommend");
    if (!rule)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no split rule '%.40s'", options->split_by);
    uint8_t *split;
    lp_catalogue catalogue;
    LP_TRY(lp_split_make(dataset, rule, options->seed, &split, error));
    lapse_status status = lp_catalogue_start(&catalogue, &dataset->types, error);
    if (status == LAPSE_OK) {
        lp_catalogue_columns columns = {options->item, options->words};
        if (options->catalogue)
            status = lp_catalogue_read(&catalogue, options->catalogue, &columns, error);
        if (status == LAPSE_OK)
            status = pretrain(dataset, split, &catalogue, options, lp_split_rule_name(rule), on_progress, context,
                              vectors, error);
        lp_catalogue_clear(&catalogue);
    }
    lp_free(split);
    return status;
}
