/* test_attention_figures.c: figures 2a to 2c of the paper on the simulated sessions show what their law says: a search gains
 * weight in the minutes after it, a view loses it, a transaction ends the interest that add-to-cart still has, and a day after a
 * search the departments differ. */
#include "inspect/inspection.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE = 60, HOUR = 3600 };

static lapse_dataset *sessions_data(void)
{
    static const char *const categories[] = {"department"};
    lapse_simulate_options options;
    lapse_simulation *simulation = NULL;
    lapse_import_options import;
    lapse_dataset *d = NULL;
    lapse_error error = {0};
    const char *path = small_path("sessions.csv");
    lapse_simulate_options_default(&options);
    options.preset = "sessions";
    options.sequences = small_effort(1200, 700);
    options.items = 500;
    options.seed = 4;
    if (lapse_simulate(&options, &simulation, &error) != LAPSE_OK ||
        lapse_simulation_save(simulation, path, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_simulation_free(simulation);
    lapse_import_options_default(&import);
    import.input = path;
    import.event = "item";
    import.action = "action";
    import.categories = categories;
    import.category_count = 1;
    if (lapse_dataset_read(&import, &d, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    small_paths_remove();
    return d;
}

static lapse_model *trained(const lapse_dataset *d)
{
    static const char *const options[][2] = {{"task", "recommend"},      {"dims", "32"},  {"blocks", "1"},
                                             {"learning-rate", "0.005"}, {"epochs", "4"}, {"seed", "1"}};
    lapse_train_options *chosen = NULL;
    lapse_model *model = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_train_options_new(&chosen, NULL), LAPSE_OK);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        assert_int_equal(lapse_train_options_set(chosen, options[i][0], options[i][1], NULL), LAPSE_OK);
    if (lapse_train(d, chosen, NULL, NULL, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_train_options_free(chosen);
    return model;
}

/* The mean weight of a series between two lags. */
static double mean_of(const lp_figures *figures, const char *id, const char *name, double from, double to)
{
    const lp_figure *f = figures->first;
    double sum = 0;
    int count = 0;
    while (f && strcmp(f->id, id) != 0)
        f = f->next;
    if (!f || f->missing)
        fail_msg("there is no figure %s", id);
    for (const lp_series *s = f->series; s; s = s->next)
        for (int i = 0; i < s->count; i++)
            if (strcmp(s->name, name) == 0 && s->points[i].x >= from && s->points[i].x <= to) {
                sum += s->points[i].y;
                count++;
            }
    if (count == 0)
        fail_msg("%s has no points of %s", id, name);
    return sum / count;
}

static void assert_larger(const char *what, double larger, double smaller)
{
    print_message("%s: %.3f and %.3f\n", what, larger, smaller);
    if (!(larger > smaller))
        fail_msg("%s: %g is not larger than %g", what, larger, smaller);
}

static void sessions_show_their_law(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *d = sessions_data();
    lapse_model *model = trained(d);
    lapse_inspect_options options;
    lapse_inspect_options_default(&options);
    lp_inspection about = {.model = model, .dataset = d, .options = &options, .action = -1, .has_survey = true};
    lp_figures figures = {0};
    static const char *const ids[] = {"attention-action", "attention-future-action"};
    assert_int_equal(lp_survey_make(&about.survey, model, d, "all", 20000, 0, NULL), LAPSE_OK);
    assert_int_equal(lp_attention_figures(&about, &figures, NULL), LAPSE_OK);
    for (int i = 0; i < 2; i++) {
        assert_larger("a search, after 10 minutes and at once",
                      mean_of(&figures, ids[i], "search", 8 * MINUTE, 30 * MINUTE),
                      mean_of(&figures, ids[i], "search", 0, MINUTE));
        assert_larger("a view, at once and after 10 minutes", mean_of(&figures, ids[i], "view", 0, MINUTE),
                      mean_of(&figures, ids[i], "view", 8 * MINUTE, 30 * MINUTE));
        if (small_effort(1, 0)) /* few sequences have too few transactions */
            assert_larger("at once, add-to-cart and a transaction", mean_of(&figures, ids[i], "add-to-cart", 0, MINUTE),
                          mean_of(&figures, ids[i], "transaction", 0, MINUTE));
    }
    lp_figures_clear(&figures);

    /* Only searches, by department: interest in electronics is over at the next session, that in baby products lasts. */
    for (about.action = 0; strcmp(lapse_dataset_category_name(d, 0, about.action), "search") != 0; about.action++)
        continue;
    options.action = "search";
    assert_int_equal(lp_attention_figures(&about, &figures, NULL), LAPSE_OK);
    assert_larger("a search a day later, in baby and in electronics",
                  mean_of(&figures, "attention-department", "baby", 10 * HOUR, 200 * HOUR),
                  mean_of(&figures, "attention-department", "electronics", 10 * HOUR, 200 * HOUR));
    lp_figures_clear(&figures);
    lp_survey_clear(&about.survey);
    lapse_model_free(model);
    lapse_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_show_their_law)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
