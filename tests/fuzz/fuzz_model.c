/* fuzz_model.c: fuzzes the model file. A model that loads is read completely; a share of them predicts in a session, whatever
 * its weights and sizes are. */
#include "fuzz/support/fuzz.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

enum {
    SHARE = 32,             /* inputs per session */
    LARGEST_STATE = 1 << 18 /* numbers in a session's cache: beyond, a session is slow but no different */
};

/* Numbers in the cache of a session, about. */
static double state_size(const lapse_model *model)
{
    double width = 2 * model->config.dims;
    for (int f = 0; f < model->config.field_count; f++)
        width += model->config.fields[f].dims;
    return 2.0 * model->config.context * width + (double)model->network.graph.parameter_size +
           model->config.event_types;
}

/* Appends an event whose type and categories are in the model's vocabularies. */
static void append(lapse_session *session, const lapse_model *model, int number, double time)
{
    lapse_value values[LP_FIELD_LIMIT] = {{0}};
    lapse_field field;
    int count = 0;
    for (; lapse_model_field(model, count, &field); count++)
        if (field.category_count > 0)
            values[count].text = lapse_model_category_name(model, count, number % field.category_count);
        else
            values[count].number = number % 3 ? number * 1e6 : NAN;
    lapse_event event = {time, lapse_model_event_type_name(model, number % model->config.event_types), values, count};
    FUZZ_CHECK(lapse_session_append_event(session, &event, NULL) == LAPSE_OK);
}

/* Weights of any size may overflow, which is an error; a prediction has no other numbers than probabilities. */
static void predict(lapse_session *session, double time, const char *target, double *probabilities, int64_t size)
{
    double sum = 0;
    if (lapse_session_predict_target(session, time, target, probabilities, NULL) != LAPSE_OK)
        return;
    for (int64_t i = 0; i < size; i++) {
        FUZZ_CHECK(probabilities[i] >= 0 && probabilities[i] <= 1 + 1e-6);
        sum += probabilities[i];
    }
    FUZZ_CHECK(fabs(sum - 1) < 1e-3);
}

static void recommend(lapse_session *session, const lapse_model *model, double time)
{
    lapse_recommendation best[4];
    int64_t count = 0;
    for (int unseen = 0; unseen < 2; unseen++) {
        if (lapse_session_recommend(session, time, 4, unseen, best, &count, NULL) != LAPSE_OK)
            continue;
        FUZZ_CHECK(count >= 0 && count <= 4);
        for (int64_t i = 0; i < count; i++)
            FUZZ_CHECK(best[i].item >= 0 && best[i].item < model->config.event_types &&
                       (i == 0 || best[i - 1].score >= best[i].score));
    }
}

/* Queries a session with every target of the model. Contexts up to 3 events drop events, too. */
static void query(const lapse_model *model, uint64_t choice)
{
    static const double gaps[] = {1e8, 0, 1, 1e-300, 1e15, 1e300};
    double gap = gaps[choice % (sizeof gaps / sizeof *gaps)];
    int events = 1 + (int)(choice / 8 % 8);
    const char *target;
    int64_t largest = 0;
    for (int t = 0; (target = lapse_model_target(model, t)); t++)
        largest = lapse_model_target_size(model, target) > largest ? lapse_model_target_size(model, target) : largest;
    lapse_session *session = NULL;
    double *probabilities = malloc((size_t)largest * sizeof *probabilities);
    FUZZ_CHECK(probabilities && lapse_session_new(model, &session, NULL) == LAPSE_OK);
    for (int i = 0; i < events; i++)
        append(session, model, i, i * gap);
    double time = (events - 0.5) * gap;
    for (int t = 0; (target = lapse_model_target(model, t)); t++)
        predict(session, time, target, probabilities, lapse_model_target_size(model, target));
    recommend(session, model, time);
    lapse_session_free(session);
    free(probabilities);
}

static size_t read_whole(const lapse_model *model)
{
    const char *name, *value;
    size_t sum = 0;
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        sum += strlen(name) + strlen(value);
    for (int64_t i = 0; (name = lapse_model_event_type_name(model, i)); i++)
        sum += strlen(name) + (size_t)lapse_model_event_type_find(model, name);
    lapse_field field;
    for (int f = 0; lapse_model_field(model, f, &field); f++)
        for (int64_t i = 0; i < field.category_count; i++)
            sum += strlen(lapse_model_category_name(model, f, i));
    return sum;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_container_mutate(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_json_start();
    lapse_model *model = NULL;
    lapse_error error;
    if (lapse_model_load(fuzz_mapped(data, size), &model, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_FORMAT);
        return 0;
    }
    static volatile size_t kept;
    kept = read_whole(model);
    (void)kept;
    if (fuzz_takes(data, size, SHARE) && state_size(model) < LARGEST_STATE)
        query(model, fuzz_hash(data, size) / SHARE);
    lapse_model_free(model);
    return 0;
}
