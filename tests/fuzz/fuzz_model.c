/* fuzz_model.c: fuzz target: loads any bytes as a model file and predicts with the model. Corrects the checksum first, because a
 * mutated input would otherwise be refused before anything else is read.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_model.c LIBRARY -o fuzz_model
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "model/model.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char BEGINNING[] = "{\"__metadata__\":{\"checksum\":\"";
enum {
    CHECKSUM_AT = 8 + sizeof BEGINNING - 1,
    DIGITS = 16,
    LARGEST_CONTEXT = 64,
    LARGEST_WIDTH = 1000,
    LARGEST_PARAMETERS = 1 << 16
};

/* Writes the checksum of the bytes into their header. */
static void seal(char *bytes, size_t size)
{
    if (size < CHECKSUM_AT + DIGITS)
        return;
    memcpy(bytes + 8, BEGINNING, sizeof BEGINNING - 1);
    memset(bytes + CHECKSUM_AT, '0', DIGITS);
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(bytes + 8, size - 8));
    memcpy(bytes + CHECKSUM_AT, digits, DIGITS);
}

/* Whether all parameters are small enough that no intermediate result overflows, as in any trained model. */
static bool parameters_are_small(const lapse_model *model)
{
    for (size_t i = 0; i < model->network.graph.parameter_size; i++)
        if (!(fabsf(model->parameters[i]) < 1e4f))
            return false;
    return true;
}

/* Appends an event whose type and categories are in the model's vocabularies. */
static void append(lapse_session *session, const lapse_model *model, int number)
{
    lapse_value values[LP_FIELD_LIMIT] = {{0}};
    lapse_field field;
    int count = 0;
    for (; lapse_model_field(model, count, &field); count++)
        if (field.category_count > 0)
            values[count].text = lapse_model_category_name(model, count, number % field.category_count);
        else
            values[count].number = number * 1e6;
    lapse_event event = {number * 1e8, lapse_model_event_type_name(model, number % model->config.event_types), values,
                         count};
    if (lapse_session_append_event(session, &event, NULL) != LAPSE_OK)
        abort();
}

/* Predicts with every target of the model after each of 5 events. Skips models that are too large to be fast. */
static void predict(const lapse_model *model)
{
    const lp_model_config *config = &model->config;
    const char *target;
    int64_t largest = 0;
    for (int t = 0; (target = lapse_model_target(model, t)); t++)
        largest = lapse_model_target_size(model, target) > largest ? lapse_model_target_size(model, target) : largest;
    for (int f = 0; f < config->field_count; f++)
        if (config->fields[f].dims > LARGEST_WIDTH || config->fields[f].categories.count > LARGEST_WIDTH)
            return;
    if (config->context > LARGEST_CONTEXT || config->event_types > LARGEST_WIDTH || config->dims > LARGEST_WIDTH ||
        model->network.graph.parameter_size > LARGEST_PARAMETERS || !parameters_are_small(model))
        return;
    lapse_session *session = NULL;
    double *probabilities = malloc((size_t)largest * sizeof *probabilities);
    if (!probabilities || lapse_session_new(model, &session, NULL) != LAPSE_OK)
        abort();
    for (int i = 0; i < 5; i++) {
        append(session, model, i);
        for (int t = 0; (target = lapse_model_target(model, t)); t++)
            if (lapse_session_predict_target(session, i * 1e8 + 0.5, target, probabilities, NULL) != LAPSE_OK)
                abort();
    }
    lapse_session_free(session);
    free(probabilities);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *bytes = malloc(size), path[64];
    int handle = memfd_create("fuzz", 0);
    if (!bytes || handle < 0)
        abort();
    memcpy(bytes, data, size);
    seal(bytes, size);
    if (write(handle, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    lapse_model *model = NULL;
    lapse_error error;
    if (lapse_model_load(path, &model, &error) == LAPSE_OK)
        predict(model);
    else if (error.status != LAPSE_ERROR_FORMAT)
        abort();
    lapse_model_free(model);
    close(handle);
    free(bytes);
    return 0;
}
