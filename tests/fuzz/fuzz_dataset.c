/* fuzz_dataset.c: fuzzes the dataset file. A dataset that opens is read completely; on a share of them models and item vectors
 * are trained. Checksums would reject nearly every mutation, so the mutator corrects them. */
#include "data/dataset/split.h"
#include "fuzz/support/fuzz.h"
#include "lapse_lab.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Offsets of docs/dataset.md. */
enum {
    HEADER = 64,
    ENTRY = 64,
    FILE_SIZE_AT = 16,
    COUNT_AT = 24,
    TABLE_SUM_AT = 48,
    SUM_AT = 56,
    OFFSET_AT = 32,
    SIZE_AT = 40,
    COLUMN_SUM_AT = 48
};

enum { SHARE = 8, LARGEST = 4096 }; /* inputs per training; event types and events to train on */

/* ------------------------------------------------------------------------------------------------ mutation --- */

static uint64_t number_at(const uint8_t *place)
{
    uint64_t value;
    memcpy(&value, place, sizeof value);
    return value;
}

static void put_sum(uint8_t *place, const uint8_t *data, size_t size)
{
    uint64_t sum = XXH3_64bits(data, size);
    memcpy(place, &sum, sizeof sum);
}

static uint64_t column_count(const uint8_t *bytes, size_t size)
{
    uint32_t count = 0;
    if (size >= HEADER)
        memcpy(&count, bytes + COUNT_AT, sizeof count);
    return count <= (size - HEADER) / ENTRY ? count : 0;
}

/* Corrects the size and the checksums. */
static void seal(uint8_t *bytes, uint64_t size)
{
    if (size < HEADER)
        return;
    memcpy(bytes + FILE_SIZE_AT, &size, sizeof size);
    uint64_t count = column_count(bytes, size);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *entry = bytes + HEADER + i * ENTRY;
        uint64_t offset = number_at(entry + OFFSET_AT), length = number_at(entry + SIZE_AT);
        if (offset <= size && length <= size - offset)
            put_sum(entry + COLUMN_SUM_AT, bytes + offset, length);
    }
    put_sum(bytes + TABLE_SUM_AT, bytes + HEADER, count * (size_t)ENTRY);
    put_sum(bytes + SUM_AT, bytes, SUM_AT);
}

static void edit_element(uint8_t *column, size_t size, fuzz_random *random)
{
    static const uint64_t wholes[] = {
        0, 1, 2, 255, 256, INT32_MAX, (uint64_t)INT32_MAX + 1, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 1};
    static const double numbers[] = {0, -0.0, 1, -1e300, 1e300, 1e15, 1e-300, INFINITY, -INFINITY, NAN};
    size_t width = (size_t)1 << fuzz_random_below(random, 4);
    if (size < width)
        return;
    uint8_t *at = column + fuzz_random_below(random, size / width) * width;
    uint64_t whole = wholes[fuzz_random_below(random, sizeof wholes / sizeof *wholes)];
    double number = numbers[fuzz_random_below(random, sizeof numbers / sizeof *numbers)];
    if (width == sizeof number && fuzz_random_below(random, 2))
        memcpy(at, &number, sizeof number);
    else
        memcpy(at, &whole, width);
}

/* Edits the bytes of one column: an element, a copy of a part to another place (equal names, equal times), or any bytes. */
static void edit_column(uint8_t *bytes, size_t size, fuzz_random *random)
{
    const uint8_t *entry = bytes + HEADER + fuzz_random_below(random, column_count(bytes, size)) * ENTRY;
    uint64_t offset = number_at(entry + OFFSET_AT), length = number_at(entry + SIZE_AT);
    if (offset > size || length > size - offset || length == 0)
        return;
    uint64_t way = fuzz_random_below(random, 4), part = 1 + fuzz_random_below(random, length < 16 ? length : 16);
    uint64_t from = fuzz_random_below(random, length), to = fuzz_random_below(random, length);
    if (way == 0) {
        edit_element(bytes + offset, length, random);
    } else if (way == 1 && from + part <= length && to + part <= length) {
        memmove(bytes + offset + to, bytes + offset + from, part);
    } else {
        LLVMFuzzerMutate(bytes + offset, length, length);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    fuzz_random random = fuzz_random_start(seed);
    uint64_t way = fuzz_random_below(&random, 8), count = size >= HEADER ? column_count(data, size) : 0;
    if (count == 0 || way == 0)
        size = LLVMFuzzerMutate(data, size, max_size);
    else if (way == 1) /* the column table */
        LLVMFuzzerMutate(data + HEADER, count * ENTRY, count * ENTRY);
    else if (way == 2)
        edit_element(data + COUNT_AT, HEADER - COUNT_AT, &random);
    else
        edit_column(data, size, &random);
    if (fuzz_random_below(&random, 32) > 0)
        seal(data, size);
    return size;
}

/* ------------------------------------------------------------------------------------------------- reading --- */

static double read_fields(const lapse_dataset *dataset, int64_t sequence, int64_t count)
{
    lapse_field field;
    double sum = 0;
    for (int f = 0; lapse_dataset_field(dataset, f, &field); f++) {
        const int32_t *categories;
        const double *numbers;
        lapse_dataset_field_values(dataset, f, sequence, &categories, &numbers);
        sum += (double)strlen(field.name);
        for (int64_t i = 0; i < count; i++)
            sum += numbers ? numbers[i] : (double)strlen(lapse_dataset_category_name(dataset, f, categories[i]));
    }
    return sum;
}

/* Reads everything that a caller may read. */
static void read_whole(const lapse_dataset *dataset)
{
    double sum = 0;
    for (int64_t s = 0; s < lapse_dataset_sequence_count(dataset); s++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(dataset, s, &times, &types, &count);
        sum += (double)strlen(lapse_dataset_sequence_name(dataset, s));
        for (int64_t i = 0; i < count; i++)
            sum += times[i] + (double)strlen(lapse_dataset_event_type_name(dataset, types[i]));
        sum += read_fields(dataset, s, count);
    }
    const char *name, *value;
    for (int i = 0; lapse_dataset_property(dataset, i, &name, &value); i++)
        sum += (double)strlen(name) + (double)strlen(value);
    uint8_t *split = NULL;
    lapse_check check;
    lapse_check_options checked;
    lapse_check_options_default(&checked);
    (void)lapse_dataset_check(dataset, &checked, &check, NULL);
    if (lp_split_make(dataset, lp_split_rule_default(dataset, "classify"), 1, &split, NULL) == LAPSE_OK)
        lp_free(split);
    static volatile double kept;
    kept = sum;
    (void)kept;
}

/* ------------------------------------------------------------------------------------------------ training --- */

/* Takes the next digit of a number to choose by. */
static unsigned choose(uint64_t *choice, unsigned count)
{
    unsigned chosen = (unsigned)(*choice % count);
    *choice /= count;
    return chosen;
}

static const char *choose_name(uint64_t *choice, const char *option)
{
    lapse_option found;
    unsigned count = 0;
    FUZZ_CHECK(lapse_train_option_find(option, &found));
    while (found.choices[count])
        count++;
    return found.choices[choose(choice, count)];
}

/* Scores a model that was trained on the dataset. */
static void evaluate(const lapse_model *model, const lapse_dataset *dataset)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_evaluate_options_default(&options);
    options.split = "all";
    options.threads = 1;
    options.bootstrap = 4;
    if (lapse_evaluate(model, dataset, &options, &scores, NULL) == LAPSE_OK)
        lapse_scores_clear(&scores);
    lapse_rank_options ranked;
    lapse_rank_scores ranks;
    lapse_rank_options_default(&ranked);
    ranked.threads = 1;
    ranked.bootstrap = 4;
    ranked.negatives = 3;
    ranked.slices = true;
    if (lapse_rank_evaluate(model, dataset, &ranked, &ranks, NULL) == LAPSE_OK)
        lapse_rank_scores_clear(&ranks);
}

/* Options of a small run of any model, without those that the model does not have. */
static lapse_train_options *choose_options(uint64_t choice)
{
    const char *model = choose_name(&choice, "model");
    const char *const settings[][2] = {
        {"model", model},
        {"dims", "2"},
        {"context", "3"},
        {"batch", "4"},
        {"epochs", "1"},
        {"threads", "1"},
        {"shards", "2"},
        {"blocks", "1"},
        {"heads", choose(&choice, 2) ? "2" : "1"},
        {"periods", "2"},
        {"harmonics", "2"},
        {"hidden", "2"},
        {"frequency-samples", "2"},
        {"negative-count", "2"},
        {"encoding", choose_name(&choice, "encoding")},
        {"task", choose_name(&choice, "task")},
        {"split-by", choose_name(&choice, "split-by")},
        {"loss", choose_name(&choice, "loss")},
        {"negatives", choose_name(&choice, "negatives")},
        {"predict", choose_name(&choice, "predict")},
        {"target-time", choose_name(&choice, "target-time")},
    };
    lapse_train_options *options;
    FUZZ_CHECK(lapse_train_options_new(&options, NULL) == LAPSE_OK);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (lapse_model_has_option(model, settings[i][0]))
            FUZZ_CHECK(lapse_train_options_set(options, settings[i][0], settings[i][1], NULL) == LAPSE_OK);
    return options;
}

static void train(const lapse_dataset *dataset, uint64_t choice)
{
    lapse_train_options *options = choose_options(choice);
    lapse_model *model = NULL;
    lapse_error error;
    lapse_status status = lapse_train(dataset, options, NULL, NULL, &model, &error);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_INPUT);
    if (model)
        evaluate(model, dataset);
    lapse_model_free(model);
    lapse_train_options_free(options);
}

static void pretrain(const lapse_dataset *dataset, uint64_t choice)
{
    lapse_pretrain_options options;
    lapse_pretrain_options_default(&options);
    options.dims = 2;
    options.window = 2;
    options.negative_count = 1;
    options.epochs = 1;
    options.session_gap = choose(&choice, 2) ? 60 : 0;
    lapse_vectors *vectors = NULL;
    lapse_error error;
    lapse_status status = lapse_pretrain(dataset, &options, NULL, NULL, &vectors, &error);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_INPUT);
    for (int64_t i = 0; vectors && i < lapse_vectors_count(vectors) * 2; i++)
        FUZZ_CHECK(isfinite(lapse_vectors_get(vectors, 0)[i]));
    lapse_vectors_free(vectors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lapse_dataset *dataset = NULL;
    lapse_error error;
    if (lapse_dataset_open(fuzz_mapped(data, size), &dataset, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_FORMAT);
        return 0;
    }
    read_whole(dataset);
    bool small = dataset->event_count <= LARGEST && dataset->types.count <= LARGEST;
    if (small && fuzz_takes(data, size, SHARE)) {
        pretrain(dataset, fuzz_hash(data, size) / SHARE);
        train(dataset, fuzz_hash(data, size) / SHARE);
    }
    lapse_dataset_close(dataset);
    return 0;
}
