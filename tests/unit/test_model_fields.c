/* test_model_fields.c: models that see fields of events, and predict the event, the action or both: gradients, formulas,
 * and what files and sessions refuse. */
#include "backend/cpu/cpu.h"
#include "model/model_file.h"
#include "support/graph_case.h"
#include "support/naive_attention.h"
#include "support/small_data.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FIELDS = 4, TOKENS = 9 };

/* An action of 3, a category of 2, and two numbers. */
static const uint64_t offsets[] = {0, 1, 5, 10};
static const lp_model_field fields[FIELDS] = {
    {"action", LAPSE_FIELD_ACTION, 2, 0, 0, {.count = 3, .offset = offsets, .bytes = "\0buy\0view\0"}},
    {"device", LAPSE_FIELD_CATEGORY, 3, 0, 0, {.count = 2, .offset = offsets, .bytes = "\0pad\0"}},
    {"price", LAPSE_FIELD_NUMBER, 1, 10, 2, {.count = 0}},
    {"weight", LAPSE_FIELD_NUMBER, 1, -1, 0.5, {.count = 0}},
};

static lp_model_config with_fields(const lp_encoding *encoding, int blocks, lp_predict predict)
{
    lp_model_config config = small_config(encoding, 4, blocks, 2);
    config.fields = fields;
    config.field_count = FIELDS;
    config.predict = predict;
    return config;
}

/* ---------------------------------------------------------------------------------- finite differences ------- */

static double loss_at(graph_case *this, double *x, double value)
{
    graph_result result;
    double kept = *x;
    *x = value;
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
    double loss = graph_case_loss(this, &result);
    graph_result_clear(&result);
    *x = kept;
    return loss;
}

static void check_slope(graph_case *this, double *x, double gradient, const char *name)
{
    double slope = 0, bound = 0;
    for (double step = 1e-4; step > 1e-8; step /= 10) { /* a shorter step misses the corner of a relu */
        slope = (loss_at(this, x, *x - 2 * step) - 8 * loss_at(this, x, *x - step) + 8 * loss_at(this, x, *x + step) -
                 loss_at(this, x, *x + 2 * step)) /
                (12 * step);
        bound = 1e-5 * fmax(1e-3, fmax(fabs(gradient), fabs(slope)));
        if (fabs(gradient - slope) <= bound)
            return;
    }
    fail_msg("'%s': gradient %.12g, slope %.12g", name, gradient, slope);
}

static void gradients(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++) {
        for (int predict = 0; predict < 3; predict++) {
            graph_case this = {.gap = 1};
            graph_result result;
            lp_network network;
            lp_model_config config = with_fields(lp_encodings[e], 1 + predict % 2, (lp_predict)predict);
            config.dropout = 0.3;
            assert_int_equal(lp_network_build(&network, &config, true, NULL), LAPSE_OK);
            this.graph = network.graph;
            this.output_count = 1;
            this.outputs[0] = network.loss;
            for (int i = 0; i < this.graph.value_count; i++)
                if (strcmp(this.graph.values[i]->name, "seed") == 0)
                    this.seeds[0] = this.graph.values[i];
            lp_random random = lp_random_start((uint64_t)(10 * e + predict), LP_PURPOSE_TEST, 410);
            graph_case_segments(&this, (int[]){1, 4, 2}, 3);
            graph_case_fill(&this, &random);
            graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &result);
            int every = small_effort(1, 17);
            for (int i = 0; i < this.graph.parameter_count; i++) {
                const lp_value *value = this.graph.parameters[i].value;
                if (!value->requires_grad) /* fixed, or learned by a graph of its own: test_sampler.c */
                    continue;
                assert_non_null(value->gradient);
                for (size_t k = 0; k < (size_t)value->rows * (size_t)value->cols; k += (size_t)every)
                    check_slope(&this, &this.parameters[value->offset + k], result.gradients[value->offset + k],
                                value->name);
            }
            graph_result_clear(&result);
            graph_case_clear(&this);
        }
    }
}

/* ----------------------------------------------------------------------------------- formulas, by sessions ---- */

/* A history with fields as text and numbers, and as the formulas want them. */
typedef struct history {
    int32_t type[TOKENS];
    double time[TOKENS], query_time[TOKENS];
    lapse_value values[TOKENS][FIELDS];
    double fields[TOKENS][FIELDS];
} history;

static void draw_history(history *this, uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 411);
    double now = 0;
    for (int t = TOKENS - 1; t >= 0; t--) {
        this->query_time[t] = now;
        now -= 5 * lp_random_exponential(&random);
        this->time[t] = now;
        this->type[t] = (int32_t)lp_random_below(&random, 5);
        for (int f = 0; f < FIELDS; f++) {
            if (fields[f].type == LAPSE_FIELD_NUMBER) {
                bool missing = lp_random_below(&random, 4) == 0, far = lp_random_below(&random, 6) == 0;
                double number = missing ? NAN : far ? -1e9 : fields[f].mean + 2 * lp_random_normal(&random);
                this->values[t][f] = (lapse_value){.number = number};
                this->fields[t][f] = missing ? 0 : fmin(10, fmax(-10, (number - fields[f].mean) / fields[f].deviation));
                continue;
            }
            uint32_t category = lp_random_below(&random, (uint32_t)fields[f].categories.count);
            this->values[t][f] = (lapse_value){.text = category ? lp_names_get(&fields[f].categories, category) : NULL};
            this->fields[t][f] = category;
        }
    }
}

static void append(lapse_session *session, const history *events, int count)
{
    lapse_session_clear(session);
    for (int t = 0; t < count; t++) {
        const char name[] = {(char)('a' + events->type[t]), 0};
        lapse_event event = {1e9 + events->time[t], name, events->values[t], FIELDS};
        assert_int_equal(lapse_session_append_event(session, &event, NULL), LAPSE_OK);
    }
}

/* Every place of every target, asked as a session of its own. */
static void answers_are_those_of_the_formulas(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++) {
        for (int predict = 0; predict < 3; predict++) {
            lp_model_config config = with_fields(lp_encodings[e], 2, (lp_predict)predict);
            lapse_model *model = small_model(&config, (uint64_t)(7 + e));
            lapse_session *session = NULL;
            history events;
            draw_history(&events, (uint64_t)(20 * e + predict));
            assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
            for (int target = 0; target < LP_TARGET_COUNT; target++) {
                double wanted[TOKENS * 5], got[5];
                int size = target == LP_TARGET_EVENT ? 5 : 3;
                assert_int_equal(lapse_model_target_size(model, lp_predict_names[target]),
                                 lp_model_predicts(&config, (lp_target)target) ? size : 0);
                if (!lp_model_predicts(&config, (lp_target)target))
                    continue;
                naive_target_answers(model, (lp_target)target, TOKENS, events.type, &events.fields[0][0], events.time,
                                     events.query_time, wanted);
                for (int q = 0; q < TOKENS; q++) {
                    append(session, &events, q + 1);
                    assert_int_equal(lapse_session_predict_target(session, 1e9 + events.query_time[q],
                                                                  lp_predict_names[target], got, NULL),
                                     LAPSE_OK);
                    for (int c = 0; c < size; c++)
                        if (!(fabs(log(got[c]) - wanted[q * size + c]) < 2e-5))
                            fail_msg("%s, %s, place %d: %.9g, should be %.9g", lp_encodings[e]->name,
                                     lp_predict_names[target], q, log(got[c]), wanted[q * size + c]);
                }
            }
            lapse_session_free(session);
            lapse_model_free(model);
        }
    }
}

/* More events than a session keeps: fields move down with them. */
static void long_histories_keep_their_fields(void **state)
{
    (void)state;
    lp_model_config config = with_fields(lp_encodings[0], 1, LP_PREDICT_BOTH);
    lapse_model *model = small_model(&config, 3);
    lapse_session *session = NULL, *fresh = NULL;
    history events;
    double one[5], other[5];
    draw_history(&events, 5);
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &fresh, NULL), LAPSE_OK);
    for (int i = 0; i < 100; i++) {
        const char name[] = {(char)('a' + events.type[i % TOKENS]), 0};
        lapse_event event = {i, name, events.values[i % TOKENS], FIELDS};
        assert_int_equal(lapse_session_append_event(session, &event, NULL), LAPSE_OK);
        if (i >= 100 - config.context)
            assert_int_equal(lapse_session_append_event(fresh, &event, NULL), LAPSE_OK);
    }
    assert_int_equal(lapse_session_predict(session, 101, one, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(fresh, 101, other, NULL), LAPSE_OK);
    assert_memory_equal(one, other, sizeof one);
    lapse_session_free(session);
    lapse_session_free(fresh);
    lapse_model_free(model);
}

/* ------------------------------------------------------------------------------------------ what is refused --- */

static void made_up_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } edits[] = {
        {"fields", "65"},           {"fields", "-1"},
        {"fields", "2.5"},          {"fields", "5"},
        {"predict", "all"},         {"field.0.type", "colour"},
        {"field.1.type", "action"}, {"field.2.type", "category"},
        {"field.0.dims", "0"},      {"field.1.dims", "x"},
        {"field.2.dims", "2"},      {"field.2.mean", "inf"},
        {"field.3.deviation", "0"}, {"field.3.deviation", "-1"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        lp_model_config config = with_fields(lp_encodings[0], 1, LP_PREDICT_BOTH);
        lapse_model *model = small_model(&config, 1), *loaded = NULL;
        lapse_error error = {0};
        char expected[200];
        assert_int_equal(lp_model_describe(model, NULL), LAPSE_OK);
        assert_int_equal(lp_model_property_set(model, NULL, edits[i].key, "%s", edits[i].value), LAPSE_OK);
        assert_int_equal(lapse_model_save(model, small_path("edited"), NULL), LAPSE_OK);
        assert_int_equal(lapse_model_load(small_path("edited"), &loaded, &error), LAPSE_ERROR_FORMAT);
        const char *named = strcmp(edits[i].value, "5") == 0 ? "field.4.name" : edits[i].key;
        if (strcmp(edits[i].key, "field.2.type") == 0)
            named = "vocabulary.field.2.offset";
        snprintf(expected, sizeof expected, "this is not a Lapse model that can be used: '%s' is missing or wrong",
                 named);
        assert_string_equal(error.message, expected);
        lapse_model_free(model);
    }
}

/* A model that predicts the action must have one. */
static void an_action_must_be_there_to_be_predicted(void **state)
{
    (void)state;
    lp_model_config config = with_fields(lp_encodings[0], 1, LP_PREDICT_EVENT);
    config.fields = fields + 1;
    config.field_count = 2;
    lapse_model *model = small_model(&config, 1), *loaded = NULL;
    lapse_error error = {0};
    assert_int_equal(lp_model_describe(model, NULL), LAPSE_OK);
    assert_int_equal(lp_model_property_set(model, NULL, "predict", "both"), LAPSE_OK);
    assert_int_equal(lapse_model_save(model, small_path("edited"), NULL), LAPSE_OK);
    assert_int_equal(lapse_model_load(small_path("edited"), &loaded, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "this is not a Lapse model that can be used: 'predict' is missing or wrong");
    lapse_model_free(model);
}

static void sessions_want_the_models_fields(void **state)
{
    (void)state;
    lp_model_config config = with_fields(lp_encodings[0], 1, LP_PREDICT_ACTION);
    lapse_model *model = small_model(&config, 1);
    lapse_session *session = NULL;
    lapse_error error = {0};
    double probabilities[8];
    lapse_value values[FIELDS] = {{.text = "buy"}, {.text = "pad"}, {.number = 1}, {.number = NAN}};
    lapse_event event = {5, "a", values, FIELDS};
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(session, 5, "a", &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message,
                        "the event 'a' was given 0 fields, but the model sees 4 of each, the first being 'action'");
    values[0].text = "steal";
    assert_int_equal(lapse_session_append_event(session, &event, &error), LAPSE_ERROR_UNKNOWN);
    assert_string_equal(error.message, "the model does not know 'steal' in 'action'");
    values[0].text = NULL;
    values[2].number = INFINITY;
    assert_int_equal(lapse_session_append_event(session, &event, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "the number 'price' of the event 'a' is infinite");
    values[2].number = 3;
    assert_int_equal(lapse_session_predict_target(session, 9, "action", probabilities, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the history is empty: append at least one event before the query");
    assert_int_equal(lapse_session_append_event(session, &event, &error), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 9, probabilities, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the model does not predict 'event', but the action");
    assert_int_equal(lapse_session_predict_target(session, 9, "action", probabilities, &error), LAPSE_OK);
    assert_true(fabs(probabilities[0] + probabilities[1] + probabilities[2] - 1) < 1e-12);
    assert_int_equal(lapse_model_target_size(model, "event"), 0);
    assert_null(lapse_model_target_name(model, "event", 0));
    assert_string_equal(lapse_model_target_name(model, "action", 2), "view");
    assert_null(lapse_model_target_name(model, "action", 3));
    assert_int_equal(lapse_model_category_find(model, 1, "pad"), 1);
    assert_int_equal(lapse_model_category_find(model, 9, "pad"), -1);
    lapse_session_free(session);
    lapse_model_free(model);
    lp_model_config plain = small_config(lp_encodings[0], 4, 1, 1);
    model = small_model(&plain, 1);
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append_event(session, &event, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the event 'a' was given 4 fields, but the model sees 0 of each");
    lapse_session_free(session);
    lapse_model_free(model);
}

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(answers_are_those_of_the_formulas),
        cmocka_unit_test(long_histories_keep_their_fields),
        cmocka_unit_test(made_up_files_are_refused),
        cmocka_unit_test(an_action_must_be_there_to_be_predicted),
        cmocka_unit_test(sessions_want_the_models_fields),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
