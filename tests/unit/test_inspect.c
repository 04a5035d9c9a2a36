/* test_inspect.c: the numbers of a report's figures, hostile names in the page, logs of runs, and reports that cannot be made. */
#include "inspect/encoding_figures.h"
#include "inspect/figure_draw.h"
#include "inspect/inspection.h"
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------- the encoding ----- */

/* A day with amplitudes 1 and 1 and its first harmonic with 0.5 and 0.5, and an hour with 2 and 0. */
static lapse_spectrum known_spectrum(void)
{
    lapse_spectrum s;
    double day = 2 * 3.14159265358979323846 / 86400;
    assert_int_equal(lp_spectrum_init(&s, 3, NULL), LAPSE_OK);
    double frequency[] = {day, 2 * day, 24 * day}, cosine[] = {1, 0.5, 2}, sine[] = {1, 0.5, 0};
    memcpy(s.frequency, frequency, sizeof frequency);
    memcpy(s.cosine, cosine, sizeof cosine);
    memcpy(s.sine, sine, sizeof sine);
    assert_int_equal(lp_spectrum_complete(&s, NULL), LAPSE_OK);
    return s;
}

static void assert_csv(const lp_figure *figure, const char *begin)
{
    lp_buffer text = {0};
    assert_true(lp_figure_csv(figure, false, &text) && lp_buffer_add(&text, "", 1));
    if (strncmp(text.data, begin, strlen(begin)) != 0)
        fail_msg("%s: the numbers are\n%.400s\nnot\n%s", figure->id, text.data, begin);
    lp_buffer_clear(&text);
}

static void encodings(void **state)
{
    (void)state;
    lapse_spectrum s = known_spectrum();
    lp_figures figures = {0};
    lapse_lags lags = {"linear", 0, 86400, 10};

    lp_spectrum_figure(&figures, &s, &lags);
    assert_csv(figures.last, "kind,period_seconds,weight\nperiod,86400,1\nperiod,3600,2\nits harmonics,43200,0.25\n"
                             "equal weights,0,1.08333333\nequal weights,86400,1.08333333\n");
    assert_string_equal(figures.last->title, "The period of 1 hour has the largest weight: 61.5 % of the kernel");

    lp_kernel_figure(&figures, &s, &lags, 24 * 60);
    const lp_series *k = figures.last->series;
    for (int i = 0; i < k->count; i += 100) {
        assert_true(fabs(k->points[i].y - lapse_spectrum_kernel(&s, k->points[i].x)) < 0.01);
        assert_true(k->points[i].low <= k->points[i].y && k->points[i].y <= k->points[i].high);
    }

    lp_phi_figure(&figures, &s, &lags, 8);
    assert_int_equal(figures.last->grid.rows, 6);
    assert_string_equal(figures.last->y.names[0], "cosine 1 day");
    assert_string_equal(figures.last->y.names[5], "sine 1 hour");

    assert_false(figures.failed);
    lp_figures_clear(&figures);
    lapse_spectrum_clear(&s);
}

/* --------------------------------------------------------------------------------------------- the survey ----- */

static lapse_model *trained(const lapse_dataset *dataset)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "blocks", "2");
    return small_train(dataset, &options, NULL, NULL);
}

/* Every case is what a new session says about its history. */
static void surveys(void **state)
{
    (void)state;
    lapse_dataset *d = small_train_data(7);
    lapse_model *model = trained(d);
    lp_survey survey;
    lapse_session *session = NULL;
    double worth = 0;
    assert_int_equal(lp_survey_make(&survey, model, d, "all", 1000000, 1, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(survey.case_count, d->event_count - d->sequence_count);
    assert_int_equal(survey.case_total, survey.case_count);
    for (int64_t i = 0; i < survey.case_count; i++) {
        const lp_survey_case *c = &survey.cases[i];
        double p[8], weights[256];
        assert_int_equal(lp_survey_read(&survey, session, c->sequence, (uint64_t)c->event, NULL), LAPSE_OK);
        assert_int_equal(lapse_session_predict(session, d->time[c->event], p, NULL), LAPSE_OK);
        assert_int_equal(lapse_session_attention(session, d->time[c->event], 1, -1, weights, NULL), LAPSE_OK);
        assert_true(fabs(p[c->target] - c->target_probability) < 1e-6 && fabs(p[c->predicted] - c->confidence) < 1e-6);
        assert_true(fabs(weights[lapse_session_window(session) - 1] - c->weight) < 1e-5);
        assert_true(c->gap == d->time[c->event] - d->time[c->event - 1]);
        int rank = 0;
        for (int64_t k = 0; k < survey.classes; k++)
            rank += p[k] >= p[c->target];
        assert_int_equal(rank, c->rank);
        assert_true((c->rank == 1) == (c->predicted == c->target));

        /* Without the elapsed time: the mean over the eight octiles of all gaps. */
        double mean[8] = {0}, last = d->time[c->event - 1];
        int blind = 0;
        for (int g = 1; g < 16; g += 2) {
            assert_int_equal(lapse_session_predict(session, last + survey.gaps[g * survey.gap_count / 16], p, NULL),
                             LAPSE_OK);
            for (int k = 0; k < survey.classes; k++)
                mean[k] += p[k];
        }
        for (int k = 0; k < survey.classes; k++)
            blind = mean[k] > mean[blind] ? k : blind;
        worth += (c->predicted == c->target) - (blind == c->target);
    }
    assert_true(survey.sees_time && survey.time_cases == survey.case_count);
    assert_true(fabs(survey.time_worth - worth / (double)survey.case_count) < 1e-9);
    lp_survey few;
    assert_int_equal(lp_survey_make(&few, model, d, "all", survey.case_count / 3, 1, NULL), LAPSE_OK);
    assert_in_range(few.case_count, 1, survey.case_count / 2);
    lp_survey_clear(&few);
    lp_survey_clear(&survey);
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(d);
}

static const lp_figure *find(const lp_figures *figures, const char *id)
{
    const lp_figure *f = figures->first;
    while (f && strcmp(f->id, id) != 0)
        f = f->next;
    if (!f)
        fail_msg("there is no figure %s", id);
    return f;
}

/* Successes of a figure's points add up to those of the cases: weighted by the number of cases of each. */
static void counts(void **state)
{
    (void)state;
    lapse_dataset *d = small_train_data(7);
    lapse_model *model = trained(d);
    lapse_inspect_options options;
    lapse_inspect_options_default(&options);
    lp_inspection about = {.model = model, .dataset = d, .options = &options, .action = -1, .has_survey = true};
    lp_figures figures = {0};
    assert_int_equal(lp_survey_make(&about.survey, model, d, "all", 1000000, 1, NULL), LAPSE_OK);
    assert_int_equal(lp_error_figures(&about, &figures, NULL), LAPSE_OK);
    assert_int_equal(lp_reliability_figure(&about, &figures, NULL), LAPSE_OK);
    assert_int_equal(lp_attention_figures(&about, &figures, NULL), LAPSE_OK);
    assert_int_equal(lp_case_figures(&about, &figures, NULL), LAPSE_OK);

    const lp_figure *confusion = find(&figures, "confusion");
    double right[8] = {0}, total[8] = {0};
    for (int64_t i = 0; i < about.survey.case_count; i++) {
        const lp_survey_case *c = &about.survey.cases[i];
        total[c->target]++;
        right[c->target] += c->predicted == c->target;
    }
    for (int row = 0; row < confusion->grid.rows; row++) {
        int64_t class = lapse_model_event_type_find(model, confusion->y.names[row]);
        double sum = 0;
        for (int column = 0; column < confusion->grid.cols; column++)
            sum += confusion->grid.values[row * confusion->grid.cols + column];
        assert_true(total[class] == 0 || fabs(sum - 1) < 1e-9);
        if (total[class] > 0)
            assert_true(fabs(confusion->grid.values[row * confusion->grid.cols + row] - right[class] / total[class]) <
                        1e-9);
    }

    /* Histories of 2 to 3 events. */
    double good = 0, all = 0, lengths = 0;
    for (int64_t i = 0; i < about.survey.case_count; i++) {
        const lp_survey_case *c = &about.survey.cases[i];
        if (c->history < 2 || c->history > 3)
            continue;
        all++;
        lengths += (double)c->history;
        good += c->predicted == c->target;
    }
    const lp_point *point = &find(&figures, "success-by-length")->series->points[1];
    assert_true(fabs(point->x - lengths / all) < 1e-9 && fabs(point->y - good / all) < 1e-9);
    assert_true(point->low < point->y && point->y < point->high);

    /* The weights of a case study add up to 1 at every time: its sequence is shorter than what is shown. */
    const lp_figure *study = find(&figures, "case-1-weights");
    for (int p = 0; p < study->grid.cols; p++) {
        double sum = 0;
        for (int row = 0; row < study->grid.rows; row++)
            sum += study->grid.values[row * study->grid.cols + p];
        assert_true(sum <= 1 + 1e-9 && (study->grid.rows == 12 || fabs(sum - 1) < 1e-9));
    }
    for (const lp_series *s = find(&figures, "attention-event")->series; s; s = s->next)
        for (int i = 0; i < s->count; i++)
            assert_true(isnan(s->points[i].y) || /* a gap */
                        (s->points[i].y > 0 && s->points[i].y <= 1 && s->points[i].low <= s->points[i].y));
    assert_non_null(find(&figures, "attention-action")->missing);
    lp_figures_clear(&figures);
    lp_survey_clear(&about.survey);
    lapse_model_free(model);
    lapse_dataset_close(d);
}

static lp_inspection inspection_of(const lapse_model *model, const lapse_dataset *d,
                                   const lapse_inspect_options *options)
{
    lp_inspection about = {.model = model, .dataset = d, .options = options, .action = -1, .has_survey = true};
    assert_int_equal(lp_survey_make(&about.survey, model, d, "all", 1000000, 1, NULL), LAPSE_OK);
    return about;
}

/* The reliability of times counts what lapse_time_evaluate scores, and a survival curve is 1 minus the cdf that a session gives. */
static void times(void **state)
{
    (void)state;
    lapse_dataset *d = small_train_data(7);
    lapse_train_options train = small_train_options();
    small_set(&train, "blocks", "2");
    small_set(&train, "when", "true");
    train.model.context = 16; /* whole sequences: an evaluation sees what a session sees */
    lapse_model *model = small_train(d, &train, NULL, NULL);
    lapse_inspect_options options;
    lapse_inspect_options_default(&options);
    lp_inspection about = inspection_of(model, d, &options);
    lp_figures figures = {0};
    assert_int_equal(lp_time_reliability_figure(&about, &figures, NULL), LAPSE_OK);
    assert_int_equal(lp_case_figures(&about, &figures, NULL), LAPSE_OK);
    lapse_time_scores scores;
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = "all";
    assert_int_equal(lapse_time_evaluate(model, d, &evaluate, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.cases, about.survey.case_count);
    const lp_series *levels = find(&figures, "reliability-time")->series->next;
    assert_int_equal(levels->count, 19);
    double inner = levels->points[14].y - levels->points[4].y; /* between the quantiles 0.25 and 0.75 */
    assert_true(fabs(inner - scores.scores[0].coverage[0]) < 2.5 / (double)scores.cases);
    for (int k = 0; k < 19; k++) {
        const lp_point *p = &levels->points[k];
        assert_true(fabs(p->x - (k + 1) / 20.0) < 1e-9 && p->low <= p->y && p->y <= p->high);
        assert_true(fabs(p->y - p->x) <= scores.scores[0].pit_distance + 1e-6 && (k == 0 || p[-1].y <= p->y));
    }
    const lp_series *curve = find(&figures, "case-1-survival")->series;
    const char *name = strstr(find(&figures, "case-1-weights")->title, " of ") + strlen(" of ");
    int64_t sequence = -1;
    for (int64_t s = 0; s < d->sequence_count; s++)
        if (strcmp(name, lapse_dataset_sequence_name(d, s)) == 0)
            sequence = s;
    assert_true(sequence >= 0);
    assert_int_equal(lp_survey_read(&about.survey, about.survey.session, sequence, d->start[sequence + 1], NULL),
                     LAPSE_OK);
    for (int p = 0; p < curve->count; p++) {
        double last = d->time[d->start[sequence + 1] - 1], at = last + curve->points[p].x, cdf;
        lapse_when when = {.now = last, .times = &at, .time_count = 1, .cdf = &cdf};
        assert_int_equal(lapse_session_when(about.survey.session, &when, NULL), LAPSE_OK);
        assert_true(fabs(curve->points[p].y - (1 - cdf)) < 1e-6);
        assert_true(p == 0 || curve->points[p].y <= curve->points[p - 1].y);
    }
    lp_figures_clear(&figures);
    lp_survey_clear(&about.survey);
    lapse_model_free(model);

    model = trained(d);
    about = inspection_of(model, d, &options);
    assert_int_equal(lp_time_reliability_figure(&about, &figures, NULL), LAPSE_OK);
    assert_int_equal(lp_case_figures(&about, &figures, NULL), LAPSE_OK);
    assert_non_null(strstr(find(&figures, "reliability-time")->missing, "--when"));
    assert_non_null(strstr(find(&figures, "case-survival")->missing, "--when"));
    lp_figures_clear(&figures);
    lp_survey_clear(&about.survey);
    lapse_model_free(model);
    lapse_dataset_close(d);
}

/* The headline has the scores of lapse_compare, and says so where a baseline is as good. A model is beaten that has hardly learned. */
static void headlines(void **state)
{
    (void)state;
    lapse_dataset *d = small_train_data(7);
    lapse_inspect_options options;
    lapse_evaluate_options evaluate;
    lapse_inspect_options_default(&options);
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = "all";
    int beaten = 0;
    for (int i = 0; i < 3; i++) {
        static const char *const models[] = {"attention", "attention", "lstm"}, *const rates[] = {"0.01", "1e-9",
                                                                                                  "0.01"};
        lapse_train_options train = small_train_options();
        lapse_comparison c;
        small_set(&train, "model", models[i]);
        small_set(&train, "learning-rate", rates[i]);
        lapse_model *model = small_train(d, &train, NULL, NULL);
        lp_inspection about = {.model = model, .dataset = d, .options = &options, .action = -1, .has_survey = true};
        lp_figures figures = {.section = "scores"};
        assert_int_equal(lp_survey_make(&about.survey, model, d, "all", 1000000, -1, NULL), LAPSE_OK);
        assert_int_equal(lp_score_figures(&about, &figures, NULL), LAPSE_OK);
        assert_int_equal(lapse_compare(model, d, &evaluate, &c, NULL), LAPSE_OK);
        int accuracy = strcmp(c.metric_names[0], "accuracy") != 0, best = 1;
        for (int r = 2; r < c.row_count; r++)
            best = c.rows[r].metrics[accuracy].mean > c.rows[best].metrics[accuracy].mean ? r : best;
        const lapse_mean *by = &c.rows[best].differences[accuracy];
        assert_true(fabs(strtod(about.headline, NULL) - 100 * c.rows[0].metrics[accuracy].mean) < 0.51);
        assert_non_null(strstr(about.headline, c.rows[best].name));
        int loss = 1 - accuracy, least = 1;
        for (int r = 2; r < c.row_count; r++)
            least = c.rows[r].metrics[loss].mean < c.rows[least].metrics[loss].mean ? r : least;
        assert_int_equal(about.is_beaten, by->low <= 0 || c.rows[least].differences[loss].low > 0);
        const char *said = by->low > 0    ? "; the best baseline, "
                           : by->high < 0 ? " is better, with "
                                          : "; no clear difference from the baseline ";
        assert_non_null(strstr(about.headline, said));
        assert_int_equal(strstr(about.headline, "does not see the elapsed time") != NULL, i == 2);
        assert_string_equal(find(&figures, "scores-event-accuracy")->section, "lead");
        beaten += about.is_beaten;
        lp_figures_clear(&figures);
        lp_survey_clear(&about.survey);
        lapse_model_free(model);
    }
    assert_in_range(beaten, 1, 3);
    lapse_dataset_close(d);
}

/* ---------------------------------------------------------------------------------------------- the report ---- */

static const char hostile[] =
    "user,time,event,action,\"f<i>\"\n"
    "\"</script><script>alert(1)</script>\",1,\"</script>\",view,\"a\"\"b\"\n"
    "\"</script><script>alert(1)</script>\",40,\"<!--\",\"'><b>\",x&y\n"
    "\"</script><script>alert(1)</script>\",90,\"\\u003c\"\"\\\",view,\n"
    "u,1,\"</script>\",view,\xe2\x80\xa8\nu,70,\"<!--\",\"'><b>\",x&y\nu,99,\"</script>\",view,x&y\n"
    "v,1,\"<!--\",view,x&y\nv,6,\"</script>\",view,x&y\nv,7,\"<!--\",view,\n";

static int occurrences(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

static lapse_dataset *hostile_data(void)
{
    static const char *const categories[] = {"f<i>"};
    const char *path = small_path("hostile.csv");
    lapse_import_options import;
    lapse_dataset *d = NULL;
    lapse_error error = {0};
    small_file_write(path, hostile, sizeof hostile - 1);
    lapse_import_options_default(&import);
    import.input = path;
    import.action = "action";
    import.categories = categories;
    import.category_count = 1;
    if (lapse_dataset_read(&import, &d, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return d;
}

static void hostile_names(void **state)
{
    (void)state;
    static const char *const chosen[] = {"</script><script>alert(1)</script>", "u"};
    lapse_dataset *d = hostile_data();
    lapse_model *model = trained(d);
    lapse_inspect_options options;
    lapse_inspection made;
    lapse_error error = {0};
    const char *one = small_path("one.html"), *two = small_path("two.html");
    lapse_inspect_options_default(&options);
    options.title = "\"<b>&\xff</title>";
    options.split = "all";
    options.sequences = chosen;
    options.sequence_count = 2;
    if (lapse_inspect(model, d, &options, one, &made, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    options.threads = 2;
    assert_int_equal(lapse_inspect(model, d, &options, two, NULL, NULL), LAPSE_OK);
    small_files_same(one, two);
    lp_buffer page = small_file_read(one);
    assert_true(lp_buffer_add(&page, "", 1));
    assert_int_equal(occurrences(page.data, "<svg"), made.figures);
    assert_int_equal(occurrences(page.data, "class=\"missing\""), made.missing);
    assert_int_equal(occurrences(page.data, "</script"), 2); /* of the data, and of the script */
    assert_int_equal(occurrences(page.data, "<script"), 2);
    assert_int_equal(occurrences(page.data, "<!--"), 0);
    assert_int_equal(occurrences(page.data, "<b>"), 0);
    assert_int_equal(occurrences(page.data, "<i>"), 0);
    assert_int_equal(occurrences(page.data, "</title>"), 1 + made.figures);
    assert_non_null(strstr(page.data, "<title>&quot;&lt;b&gt;&amp;?&lt;/title&gt;</title>"));
    assert_non_null(
        strstr(page.data, "Attention to each event of &lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_non_null(strstr(page.data, "Attention to the last event by the time since it, by f&lt;i&gt;"));
    assert_null(strstr(page.data, "nan"));
    lp_buffer_clear(&page);
    lapse_model_free(model);
    lapse_dataset_close(d);
    small_paths_remove();
}

static void texts_in_scripts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json, *xml;
    } cases[] = {{"", "\"\"", ""},
                 {"a\"b\\c", "\"a\\u0022b\\u005cc\"", "a&quot;b\\c"},
                 {"</script>", "\"\\u003c/script\\u003e\"", "&lt;/script&gt;"},
                 {"x\n\x01\x7f&", "\"x\\u000a\\u0001\\u007f\\u0026\"", "x???&amp;"},
                 {"\xff\xc3", "\"??\"", "??"},
                 {"\xc3\xbc\xe2\x80\xa8", "\"\xc3\xbc\xe2\x80\xa8\"", "\xc3\xbc\xe2\x80\xa8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_buffer json = {0}, xml = {0};
        assert_true(lp_json_add(&json, cases[i].text) && lp_buffer_add(&json, "", 1));
        assert_true(lp_xml_add(&xml, cases[i].text) && lp_buffer_add(&xml, "", 1));
        assert_string_equal(json.data, cases[i].json);
        assert_string_equal(xml.data, cases[i].xml);
        lp_buffer_clear(&json);
        lp_buffer_clear(&xml);
    }
}

/* Names that become the same id, and quotes in CSV. */
static void names_of_figures(void **state)
{
    (void)state;
    lp_figures figures = {0};
    for (int i = 0; i < 3; i++)
        lp_figures_add(&figures, lp_figures_slug(&figures, "by-", "A b"), "", "");
    assert_string_equal(figures.first->id, "by-a-b");
    assert_string_equal(figures.first->next->id, "by-a-b-2");
    assert_string_equal(figures.last->id, "by-a-b-3");
    figures.last->x.column = "x";
    figures.last->y.column = "y";
    lp_series *s = lp_figure_series(&figures, figures.last, "a \"b\", c", LP_MARK_LINE);
    lp_series_add(&figures, s, 1, 0.5);
    lp_series_add_interval(&figures, s, (lp_point){2, 0.25, 0, 1});
    assert_csv(figures.last, "series,x,y,low,high\n\"a \"\"b\"\", c\",1,0.5,,\n\"a \"\"b\"\", c\",2,0.25,0,1\n");
    lp_figures_clear(&figures);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    lapse_dataset *d = hostile_data();
    lapse_model *model = trained(d);
    const char *path = small_path("failed.html");
    lapse_inspect_options options;
    lapse_inspect_options_default(&options);
    options.split = "all";
    options.bootstrap = 0;
    options.threads = 1;
    lapse_status status = LAPSE_ERROR_MEMORY;
    int64_t n = 1;
    for (; status != LAPSE_OK && n < 1000000; n += 1 + n / small_effort(60, 12)) {
        lp_memory_fail_at(n);
        status = lapse_inspect(model, d, &options, path, NULL, NULL);
        lp_memory_fail_at(0);
        assert_true(status == LAPSE_OK || status == LAPSE_ERROR_MEMORY);
        assert_int_equal(access(path, F_OK), status == LAPSE_OK ? 0 : -1);
    }
    assert_in_range(n, 100, 999999);
    lapse_model_free(model);
    lapse_dataset_close(d);
    small_paths_remove();
}

/* Data with other events or without the model's fields is explained; a wrong option is an error. */
static void unsuited_data(void **state)
{
    (void)state;
    lapse_dataset *d = hostile_data(), *other = small_train_data(3);
    lapse_model *model = trained(d);
    lapse_inspect_options options;
    lapse_inspection with, without, made;
    lapse_error error = {0};
    const char *path = small_path("page.html");
    lapse_inspect_options_default(&options);
    options.bootstrap = 0;
    assert_int_equal(lapse_inspect(model, other, &options, path, &with, NULL), LAPSE_OK);
    assert_int_equal(lapse_inspect(model, NULL, &options, path, &without, NULL), LAPSE_OK);
    assert_int_equal(with.figures, without.figures);
    assert_int_equal(with.missing, without.missing);
    options.split = "all";
    options.action = "view";
    assert_int_equal(lapse_inspect(model, d, &options, path, &made, NULL), LAPSE_OK);
    assert_true(made.figures > with.figures);
    options.action = "sing";
    assert_int_equal(lapse_inspect(model, d, &options, path, NULL, &error), LAPSE_ERROR_UNKNOWN);
    assert_string_equal(error.message, "the data has no action 'sing'");
    assert_int_equal(lapse_inspect(model, other, &options, path, NULL, &error), LAPSE_ERROR_USAGE);
    options.action = NULL;
    options.block = 2;
    assert_int_equal(lapse_inspect(model, d, &options, path, NULL, &error), LAPSE_ERROR_USAGE);
    lapse_model_free(model);
    lapse_dataset_close(d);
    lapse_dataset_close(other);
    small_paths_remove();
}

static void logs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int epochs; /* -1: refused */
        double last;
    } cases[] = {{"", 0, 0},
                 {"{\"epoch\": 1, \"seconds\": 1.5}\n", 1, 1.5},
                 {"{\"epoch\": 1, \"seconds\": 1.5}\n{\"epoch\": 3, \"best\": true, \"seconds\": 9}\n", 3, 9},
                 {"{\"epoch\": 1, \"seconds\": 1.5}\n{\"epoch\": 2, \"seco", 1, 1.5},
                 {"{\"epoch\": 2}\n", 2, NAN},
                 {"{\"epoch\": 0, \"seconds\": 1}\n", -1, 0},
                 {"{\"epoch\": 1, \"seconds\": -1}\n", -1, 0},
                 {"{\"epoch\": 1, \"seconds\": \"x\"}\n", -1, 0},
                 {"{\"seconds\": 1}\n", -1, 0},
                 {"user,time\n", -1, 0},
                 {"\n", -1, 0},
                 {"{\"epoch\": 9999999, \"seconds\": 1}\n", -1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double *seconds = NULL;
        int epochs = 7;
        lapse_status status =
            lp_run_log_parse(cases[i].text, strlen(cases[i].text), "run.jsonl", &seconds, &epochs, NULL);
        assert_int_equal(status, cases[i].epochs < 0 ? LAPSE_ERROR_INPUT : LAPSE_OK);
        assert_int_equal(epochs, cases[i].epochs < 0 ? 0 : cases[i].epochs);
        if (epochs > 0)
            assert_true(isnan(cases[i].last) ? isnan(seconds[epochs - 1]) : seconds[epochs - 1] == cases[i].last);
        lp_free(seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodings),
        cmocka_unit_test(surveys),
        cmocka_unit_test(counts),
        cmocka_unit_test(times),
        cmocka_unit_test(headlines),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(texts_in_scripts),
        cmocka_unit_test(names_of_figures),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(unsuited_data),
        cmocka_unit_test(logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
