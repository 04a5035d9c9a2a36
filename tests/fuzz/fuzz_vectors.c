/* fuzz_vectors.c: fuzzes the file of item vectors. Vectors that load are read completely; with a share of them a recommender is
 * trained, whose items they initialize. */
#include "fuzz/support/fuzz.h"
#include "lapse_lab.h"

#include <math.h>
#include <string.h>

enum { SHARE = 8, LARGEST = 4096 }; /* inputs per training; numbers in vectors to train with */

static void train(const char *path, const char *loss)
{
    const char *const settings[][2] = {{"task", "recommend"}, {"item-vectors", path}, {"context", "3"},
                                       {"batch", "4"},        {"epochs", "1"},        {"threads", "1"},
                                       {"shards", "1"},       {"periods", "2"},       {"loss", loss},
                                       {"heads", "1"},        {"blocks", "1"}};
    lapse_train_options *options;
    FUZZ_CHECK(lapse_train_options_new(&options, NULL) == LAPSE_OK);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        FUZZ_CHECK(lapse_train_options_set(options, settings[i][0], settings[i][1], NULL) == LAPSE_OK);
    lapse_model *model = NULL;
    lapse_error error;
    lapse_status status = lapse_train(fuzz_events(), options, NULL, NULL, &model, &error);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_INPUT);
    lapse_model_free(model);
    lapse_train_options_free(options);
}

static double read_whole(const lapse_vectors *vectors)
{
    double sum = 0;
    for (int64_t i = 0; i < lapse_vectors_count(vectors); i++) {
        sum += (double)strlen(lapse_vectors_name(vectors, i)) + (double)lapse_vectors_occurrences(vectors, i);
        for (int d = 0; d < lapse_vectors_dims(vectors); d++) {
            FUZZ_CHECK(isfinite(lapse_vectors_get(vectors, i)[d]));
            sum += (double)lapse_vectors_get(vectors, i)[d];
        }
    }
    const char *name, *value;
    for (int i = 0; lapse_vectors_property(vectors, i, &name, &value); i++)
        sum += (double)strlen(name) + (double)strlen(value);
    return sum;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_container_mutate(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_json_start();
    lapse_vectors *vectors = NULL;
    lapse_error error;
    const char *path = fuzz_mapped(data, size);
    if (lapse_vectors_load(path, &vectors, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_FORMAT && !vectors);
        return 0;
    }
    static volatile double kept;
    kept = read_whole(vectors);
    (void)kept;
    int64_t numbers = lapse_vectors_count(vectors) * lapse_vectors_dims(vectors);
    lapse_vectors_free(vectors);
    if (numbers <= LARGEST && fuzz_takes(data, size, SHARE))
        train(path, fuzz_hash(data, size) / SHARE % 2 ? "softmax" : "bce");
    return 0;
}
