/* test_target_lag.c: the lag to the predicted event as an input of models that are not built on an encoding: they read the query time with an encoding and a
 * known target time only; encodings of positions are refused; a file without the key has no encoding. test_models.c trains and
 * queries with it too. */
#include "model/model_file.h"
#include "model/model_options.h"
#include "support/small_data.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static const char *const models[] = {"lstm",     "gru4rec", "rnn-attention", "sasrec", "caser",
                                     "transrec", "rmtpp",   "timejoint",     NULL};

static lp_model_config config_of(const char *model, const char *encoding)
{
    lp_model_config config = small_config_of(lp_model_row_find(model), 4);
    config.task = config.row->tasks >> LP_TASK_RECOMMEND & 1 ? LP_TASK_RECOMMEND : LP_TASK_CLASSIFY;
    if (encoding)
        small_config_set(&config, "encoding", encoding);
    small_config_set(&config, "periods", "3");
    small_config_set(&config, "harmonics", "2");
    small_config_set(&config, "period-min", "0.5");
    small_config_set(&config, "period-max", "40");
    config.gap = (lp_gap_scale){.offset = 1, .deviation = 1};
    config.sequences = config.row->sequence_input ? 3 : 0;
    if (lp_model_has_option(config.row, "heads"))
        small_config_set(&config, "heads", "2");
    if (lp_model_has_option(config.row, "time-unit"))
        small_config_set(&config, "time-unit", "60");
    return config;
}

/* Whether predictions after one history differ from query time to query time, as lp_model_target_time says. */
static bool reads_query_time(const lp_model_config *config)
{
    double one[5], two[5];
    lapse_model *model = small_model(config, 3);
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(lapse_session_append(session, 1000 + 3 * i, lapse_model_event_type_name(model, i), NULL),
                         LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 1010, one, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 1017, two, NULL), LAPSE_OK);
    bool differ = memcmp(one, two, sizeof one) != 0;
    const char *unread = model->network.encoding && model->network.encoding->sees_time ? "unknown" : "not used";
    assert_string_equal(lp_model_target_time(model), differ ? "known" : unread);
    lapse_session_free(session);
    lapse_model_free(model);
    return differ;
}

static void the_query_time_is_read_with_an_encoding(void **state)
{
    (void)state;
    static const struct {
        const char *encoding; /* NULL: the default */
        int target_time;
        bool reads;
    } cases[] = {{NULL, 0, false}, {"none", 0, false}, {"mercer", 0, true}, {"bochner", 0, true}, {"mercer", 1, false}};
    for (int m = 0; models[m]; m++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            lp_model_config config = config_of(models[m], cases[i].encoding);
            config.target_time = cases[i].target_time;
            if (reads_query_time(&config) != cases[i].reads)
                fail_msg("%s, encoding %s, target time %d: it must be %d", models[m],
                         cases[i].encoding ? cases[i].encoding : "by default", cases[i].target_time, cases[i].reads);
        }
}

static void encodings_of_positions_are_refused(void **state)
{
    (void)state;
    for (int m = 0; models[m]; m++)
        for (int e = 0; lp_encodings[e]; e++) {
            lapse_error error = {0};
            lp_model_config config = config_of(models[m], lp_encodings[e]->name);
            bool good = lp_encodings[e]->sees_time || strcmp(lp_encodings[e]->name, "none") == 0;
            if (lp_model_config_check(&config, &error) != (good ? LAPSE_OK : LAPSE_ERROR_USAGE))
                fail_msg("%s, %s: %s", models[m], lp_encodings[e]->name, error.message);
            assert_true(good || strstr(error.message, "sees the order of events without the encoding"));
        }
}

static void files_without_the_key_have_no_encoding(void **state)
{
    (void)state;
    for (int m = 0; models[m]; m++) {
        lp_model_config config = config_of(models[m], NULL);
        lapse_model *model = small_model(&config, 2), *loaded = NULL;
        assert_int_equal(lp_model_describe(model, NULL), LAPSE_OK);
        assert_string_equal(lp_model_property_find(model, "encoding"), "none");
        for (int i = 0; i < model->property_count; i++)
            if (strcmp(model->property_name[i], "encoding") == 0)
                model->property_name[i] = "another";
        assert_int_equal(lapse_model_save(model, small_path("old"), NULL), LAPSE_OK);
        assert_int_equal(lapse_model_load(small_path("old"), &loaded, NULL), LAPSE_OK);
        assert_string_equal(small_encoding(&loaded->config)->name, "none");
        assert_null(loaded->network.encoding);
        lapse_model_free(model);
        lapse_model_free(loaded);
    }
}

static int teardown(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_query_time_is_read_with_an_encoding),
        cmocka_unit_test(encodings_of_positions_are_refused),
        cmocka_unit_test(files_without_the_key_have_no_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
