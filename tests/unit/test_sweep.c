/* test_sweep.c: plans, runs and tables of a comparison: equal on one and two threads, continued after an interruption, chosen on
 * the validation split, and equal to the scores of the models themselves. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nftw */
#endif
#include "search/sweep.h"

#include "search/paired_test.h"

#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/small_data.h"
#include "support/small_train.h"

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *level)
{
    (void)info, (void)type, (void)level;
    return remove(path);
}

static void remove_folder(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int remove_files(void **state)
{
    (void)state;
    remove_folder(small_path("runs"));
    small_paths_remove();
    return 0;
}

/* A plan of short runs; settings are NAME=VALUE, up to NULL. */
static lapse_sweep_plan *plan_of(const char *const *settings)
{
    static const char *const common[] = {
        "dims=4",   "epochs=2", "context=8",     "batch=8", "shards=2", "learning-rate=0.01",
        "blocks=1", "heads=1",  "bootstrap=200", NULL};
    lapse_sweep_plan *plan = NULL;
    lapse_error error = {0};
    assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
    for (int list = 0; list < 2; list++)
        for (const char *const *s = list ? common : settings; *s; s++) {
            char name[64];
            const char *equals = strchr(*s, '=');
            snprintf(name, sizeof name, "%.*s", (int)(equals - *s), *s);
            if (lapse_sweep_plan_set(plan, name, equals + 1, &error) != LAPSE_OK)
                fail_msg("%s: %s", *s, error.message);
        }
    return plan;
}

static lapse_sweep *sweep_of(const lapse_dataset *dataset, const char *const *settings)
{
    lapse_sweep_plan *plan = plan_of(settings);
    lapse_sweep *sweep = NULL;
    lapse_error error = {0};
    if (lapse_sweep_new(dataset, plan, &sweep, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_sweep_plan_free(plan);
    return sweep;
}

static lapse_sweep *run_of(const lapse_dataset *dataset, const char *const *settings)
{
    lapse_sweep *sweep = sweep_of(dataset, settings);
    lapse_error error = {0};
    if (lapse_sweep_run(sweep, NULL, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return sweep;
}

/* Everything of the table but times. */
static void assert_same_table(const lapse_sweep *a, const lapse_sweep *b)
{
    lapse_sweep_info info = lapse_sweep_describe(a), other = lapse_sweep_describe(b);
    lapse_sweep_cell x, y;
    assert_int_equal(info.cells, other.cells);
    assert_int_equal(info.finished, info.runs);
    assert_int_equal(other.finished, info.runs);
    for (int c = 0; lapse_sweep_cell_at(a, c, &x); c++) {
        assert_true(lapse_sweep_cell_at(b, c, &y));
        assert_string_equal(x.row, y.row);
        assert_string_equal(x.config, y.config);
        assert_true(x.chosen == y.chosen && x.best == y.best && x.runs == y.runs);
        assert_memory_equal(&x.valid, &y.valid, sizeof x.valid);
        assert_memory_equal(x.metrics, y.metrics, (size_t)info.metric_count * sizeof *x.metrics);
        assert_memory_equal(&x.difference, &y.difference, sizeof x.difference);
        assert_memory_equal(&x.p, &y.p, sizeof x.p);
    }
}

/* ------------------------------------------------------------------------------------------------- plans ----- */

static void bad_settings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *message;
    } cases[] = {
        {"models", "attention,nothing", "nothing"},
        {"models", "attention,attention", "twice"},
        {"models", "attention,,lstm", "separated by commas"},
        {"encodings", "mercer,x", "x"},
        {"seeds", "0x", "seeds"},
        {"seeds", "", "separated by commas"},
        {"seeds", "3..1", "seeds"},
        {"seeds", "1,2,1", "different"},
        {"seeds", "0", "seeds"},
        {"seeds", "1..100000", "at most"},
        {"seeds", "99999999999999999999", "seeds"},
        {"grid", "dropout", "OPTION=VALUE"},
        {"grid", "nothing=1", "nothing"},
        {"grid", "dropout=0.1,2", "dropout"},
        {"grid", "seed=1,2", "seeds"},
        {"split", "all", "split"},
        {"protocol", "none", "protocol"},
        {"parallel", "0", "parallel"},
        {"nothing", "1", "nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_sweep_plan *plan = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
        assert_int_equal(lapse_sweep_plan_set(plan, cases[i].name, cases[i].value, &error), LAPSE_ERROR_USAGE);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s=%s: %s", cases[i].name, cases[i].value, error.message);
        lapse_sweep_plan_free(plan);
    }
}

static void seeds_are_numbers_ranges_and_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
        uint64_t seeds[4];
    } cases[] = {
        {"3", 3, {1, 2, 3}}, {"5..6", 2, {5, 6}}, {"9,1", 2, {9, 1}}, {"0,2..3", 3, {0, 2, 3}}, {"7..7", 1, {7}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_sweep_plan *plan = NULL;
        assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
        assert_int_equal(lapse_sweep_plan_set(plan, "seeds", cases[i].text, NULL), LAPSE_OK);
        assert_int_equal(plan->seed_count, cases[i].count);
        assert_memory_equal(plan->seeds, cases[i].seeds, (size_t)cases[i].count * sizeof *plan->seeds);
        lapse_sweep_plan_free(plan);
    }
}

static void a_file_fills_what_is_not_set(void **state)
{
    (void)state;
    static const char json[] =
        "{\"data\": \"d.lapse\", \"title\": \"T\", \"seeds\": [4, 9], \"models\": [\"markov\"],\n"
        " \"options\": {\"epochs\": 7, \"dropout\": 0.5}, \"grid\": {\"dims\": [4, 8]},\n"
        " \"rows\": [{\"name\": \"r\", \"options\": {\"encoding\": \"bochner\"}, \"grid\": "
        "{\"heads\": [1]}}]}";
    lapse_sweep_plan *plan = NULL;
    lapse_error error = {0};
    char text[64];
    assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
    assert_int_equal(lapse_sweep_plan_set(plan, "epochs", "3", NULL), LAPSE_OK);
    assert_int_equal(lapse_sweep_plan_set(plan, "models", "lstm,majority", NULL), LAPSE_OK);
    if (lapse_sweep_plan_parse(plan, json, sizeof json - 1, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    assert_string_equal(lapse_sweep_plan_get(plan, "epochs", text, sizeof text), "3");
    assert_string_equal(lapse_sweep_plan_get(plan, "dropout", text, sizeof text), "0.5");
    assert_string_equal(lapse_sweep_plan_get(plan, "data", text, sizeof text), "d.lapse");
    assert_string_equal(lapse_sweep_plan_title(plan), "T");
    assert_int_equal(plan->model_count, 2);
    assert_true(plan->seed_count == 2 && plan->seeds[0] == 4 && plan->seeds[1] == 9);
    assert_true(plan->grid_count == 1 && plan->grid[0].count == 2);
    assert_true(plan->row_count == 1 && plan->rows[0].grid_count == 1);
    lapse_sweep_plan_free(plan);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line;
    } cases[] = {
        {"", "empty", 1},
        {"[]", "object", 1},
        {"{\"seeds\": 3,\n\"models\"}", "not valid JSON", 2},
        {"{\"seeds\": {}}", "string, a number", 1},
        {"{\"seeds\": []}", "empty list", 1},
        {"{\"seeds\": null}", "string, a number", 1},
        {"{\n\n\"epochs\": 3}", "members of \"options\"", 3},
        {"{\"options\": {\"epoch\": 3}}", "no training option 'epoch'", 1},
        {"{\"options\": {\"epochs\": 0}}", "epochs", 1},
        {"{\"options\": 3}", "object of names", 1},
        {"{\"grid\": {\"dims\": 0}}", "dims", 1},
        {"{\"grid\": {\"dims\": [[4]]}}", "string, a number", 1},
        {"{\"rows\": []}", "list of 1 to", 1},
        {"{\"rows\": [{\"nam\": 3}]}", "name, options and grid", 1},
        {"{\"rows\": [{\"options\": {\"nothing\": 3}}]}", "nothing", 1},
        {"{\"rows\": [{}], \"rows\": [{}]}", "once", 1},
        {"{\"unknown\": 3}", "no setting 'unknown'", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_sweep_plan *plan = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
        assert_int_equal(lapse_sweep_plan_parse(plan, cases[i].text, strlen(cases[i].text), &error), LAPSE_ERROR_INPUT);
        if (!strstr(error.message, cases[i].message) || error.line != cases[i].line)
            fail_msg("%s: line %lld: %s", cases[i].text, (long long)error.line, error.message);
        lapse_sweep_plan_free(plan);
    }
}

static void wrong_comparisons_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *settings[4], *message;
    } cases[] = {
        {{"models=markov", "dropout=0.3"}, "no model of this comparison has an option --"},
        {{"models=markov,majority", "encodings=mercer"}, "--encodings has no effect"},
        {{"models=attention", "grid=order=1,2"}, "no row of this comparison has the grid's option 'order'"},
        {{"models=attention", "grid=heads=3"}, "attention, heads 3: "},
        {{"models=attention", "metric=mrr"}, "no metric 'mrr'"},
        {{"models=attention", "checkpoint=x"}, "instead of checkpoints"},
    };
    lapse_dataset *dataset = small_train_data(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_sweep_plan *plan = plan_of(cases[i].settings);
        lapse_sweep *sweep = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_sweep_new(dataset, plan, &sweep, &error), LAPSE_ERROR_USAGE);
        assert_null(sweep);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: %s", cases[i].settings[1], error.message);
        lapse_sweep_plan_free(plan);
    }
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------ tables ----- */

static void tables_do_not_depend_on_threads(void **state)
{
    (void)state;
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 800);
    lapse_dataset *dataset = small_dataset_random(&random, 120, 14, 5, 100, false);
    static const char *const one[] = {"models=attention,lstm,markov", "encodings=mercer,position", "seeds=3",
                                      "parallel=1", NULL};
    static const char *const two[] = {"models=attention,lstm,markov", "encodings=mercer,position", "seeds=3",
                                      "parallel=2", NULL};
    lapse_sweep *a = run_of(dataset, one), *b = run_of(dataset, two);
    lapse_sweep_cell row;
    lapse_sweep_info info = lapse_sweep_describe(a);
    static const char *const names[] = {"attention, mercer", "attention, position", "lstm, mercer", "markov"};
    assert_int_equal(info.rows, 4);
    assert_int_equal(info.runs, 12);
    int best = 0;
    for (int r = 0; lapse_sweep_row(a, r, &row); r++) {
        assert_string_equal(row.row, names[r]);
        assert_int_equal(row.metrics[0].count, 3);
        assert_true(row.best ? isnan(row.p) : isnan(row.p) || (row.p > 0 && row.p <= 1));
        assert_true(row.best || row.difference.mean >= 0); /* log-loss */
        assert_true(row.best || isnan(row.difference.low) ||
                    (row.difference.low <= row.difference.mean && row.difference.mean <= row.difference.high));
        best += row.best;
    }
    assert_int_equal(best, 1);
    assert_same_table(a, b);
    lapse_sweep_free(a);
    lapse_sweep_free(b);
    lapse_dataset_close(dataset);
}

static bool stop_after_two(const lapse_sweep_progress *progress, void *context)
{
    assert_int_equal(progress->done + progress->running + progress->left, progress->total);
    *(int *)context = progress->done;
    return progress->done < 2;
}

/* A sweep that was stopped continues, trains only what is missing, and ends with the same table. */
static void interrupted_sweeps_continue(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(3);
    char keep[512], epochs[24];
    snprintf(keep, sizeof keep, "keep=%s", small_path("runs"));
    snprintf(epochs, sizeof epochs, "epochs=%d", small_effort(20, 4));
    const char *const settings[] = {"models=attention,majority",
                                    "seeds=4",
                                    "grid=dropout=0.1,0.4",
                                    epochs,
                                    "patience=20",
                                    "parallel=1",
                                    keep,
                                    NULL};
    const char *const memory[] = {
        "models=attention,majority", "seeds=4", "grid=dropout=0.1,0.4", epochs, "patience=20", NULL};
    lapse_sweep *whole = run_of(dataset, memory), *first = sweep_of(dataset, settings);
    int done = 0;
    assert_int_equal(lapse_sweep_run(first, stop_after_two, &done, NULL), LAPSE_OK);
    lapse_sweep_info info = lapse_sweep_describe(first);
    assert_true(info.finished >= 2 && info.finished < info.runs);
    lapse_sweep *second = sweep_of(dataset, settings);
    assert_int_equal(lapse_sweep_describe(second).finished, info.finished);
    assert_int_equal(lapse_sweep_run(second, NULL, NULL, NULL), LAPSE_OK);
    assert_same_table(whole, second);
    lapse_sweep *third = sweep_of(dataset, settings); /* nothing is left to train */
    assert_same_table(whole, third);
    lapse_sweep_free(whole);
    lapse_sweep_free(first);
    lapse_sweep_free(second);
    lapse_sweep_free(third);
    remove_folder(small_path("runs"));
    lapse_dataset_close(dataset);
}

static int count_records(const char *folder)
{
    DIR *opened = opendir(folder);
    int count = 0;
    for (struct dirent *entry; opened && (entry = readdir(opened));)
        count += strlen(entry->d_name) == 16 + strlen(".json");
    if (opened)
        closedir(opened);
    return count;
}

/* A process that is killed leaves whole records and no claims. */
static void killed_sweeps_continue(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(11);
    char keep[512];
    snprintf(keep, sizeof keep, "keep=%s", small_path("runs"));
    const char *const settings[] = {"seeds=3", "parallel=1", "epochs=25", "patience=25", keep, NULL};
    const char *const memory[] = {"seeds=3", "epochs=25", "patience=25", NULL};
    pid_t child = fork();
    if (child == 0) /* it opens the folder by itself, as a process of its own would */
        _exit(lapse_sweep_run(sweep_of(dataset, settings), NULL, NULL, NULL) == LAPSE_OK ? 0 : 1);
    for (int i = 0; i < 2000 && count_records(small_path("runs")) < 1; i++)
        usleep(2000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    lapse_sweep *second = run_of(dataset, settings), *whole = run_of(dataset, memory);
    assert_same_table(whole, second);
    assert_int_equal(count_records(small_path("runs")), 3);
    lapse_sweep_free(second);
    lapse_sweep_free(whole);
    remove_folder(small_path("runs"));
    lapse_dataset_close(dataset);
}

/* Two sweeps on one folder share the runs. */
static void *run_in_thread(void *sweep)
{
    return (void *)(intptr_t)lapse_sweep_run(sweep, NULL, NULL, NULL);
}

static void processes_share_a_folder(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(4);
    char keep[512];
    pthread_t thread;
    void *status;
    snprintf(keep, sizeof keep, "keep=%s", small_path("runs"));
    const char *const settings[] = {"models=attention", "seeds=6", "parallel=1", keep, NULL};
    lapse_sweep *a = sweep_of(dataset, settings), *b = sweep_of(dataset, settings);
    assert_int_equal(pthread_create(&thread, NULL, run_in_thread, a), 0);
    assert_int_equal(lapse_sweep_run(b, NULL, NULL, NULL), LAPSE_OK);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, LAPSE_OK);
    assert_same_table(a, b);
    for (int s = 0; s < 6; s++) { /* equal times: each run was trained once */
        lapse_sweep_result x, y;
        assert_true(lapse_sweep_result_at(a, 0, s, &x) && lapse_sweep_result_at(b, 0, s, &y));
        assert_true(x.seconds == y.seconds && x.seed == (uint64_t)s + 1 && x.epochs == 2);
    }
    lapse_sweep_free(a);
    lapse_sweep_free(b);
    remove_folder(small_path("runs"));
    lapse_dataset_close(dataset);
}

typedef struct other_process {
    lp_run_folder folder;
    uint64_t run;
    int most; /* runs that were reported as running */
} other_process;

static bool release_at_once(const lapse_sweep_progress *progress, void *context)
{
    other_process *other = context;
    assert_int_equal(progress->done + progress->running + progress->left, progress->total);
    other->most = progress->running > other->most ? progress->running : other->most;
    lp_run_folder_release(&other->folder, other->run);
    return true;
}

/* The last run is claimed by another process, which gives it up: it is counted, and trained here in the end. */
static void progress_has_the_runs_of_others(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(4);
    char keep[512];
    snprintf(keep, sizeof keep, "keep=%s", small_path("runs"));
    const char *const settings[] = {"models=attention", "seeds=4", "parallel=1", keep, NULL};
    lapse_sweep *sweep = sweep_of(dataset, settings);
    other_process other = {.run = sweep->runs[3].hash};
    assert_int_equal(lp_run_folder_open(&other.folder, small_path("runs"), NULL), LAPSE_OK);
    assert_false(lp_run_folder_is_elsewhere(&sweep->folder, other.run));
    assert_true(lp_run_folder_claim(&other.folder, other.run));
    assert_true(lp_run_folder_is_elsewhere(&sweep->folder, other.run));
    assert_false(lp_run_folder_is_elsewhere(&other.folder, other.run)); /* its own */
    assert_int_equal(lapse_sweep_run(sweep, release_at_once, &other, NULL), LAPSE_OK);
    assert_int_equal(other.most, 2);
    assert_int_equal(lapse_sweep_describe(sweep).finished, 4);
    lp_run_folder_close(&other.folder);
    lapse_sweep_free(sweep);
    remove_folder(small_path("runs"));
    lapse_dataset_close(dataset);
}

/* The scores of a row are those of its model, and of a baseline. */
static void scores_are_those_of_the_models(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(5);
    static const char *const names[] = {"attention", "markov"};
    static const char *const settings[] = {"models=attention,markov", "seeds=7..7", NULL};
    lapse_sweep *sweep = run_of(dataset, settings);
    for (int r = 0; r < 2; r++) {
        lapse_sweep_plan *plan = plan_of((const char *const[]){NULL});
        lapse_train_options *options = lapse_sweep_plan_train_options(plan);
        lapse_sweep_cell row;
        lapse_model *model = NULL;
        lapse_scores scores;
        lapse_evaluate_options evaluate;
        lapse_evaluate_options_default(&evaluate);
        if (r == 1)
            lp_train_options_default(options);
        small_set(options, "model", names[r]);
        small_set(options, "seed", "7");
        assert_int_equal(lapse_train(dataset, options, NULL, NULL, &model, NULL), LAPSE_OK);
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        assert_true(lapse_sweep_row(sweep, r, &row));
        assert_true(fabs(row.metrics[0].mean - scores.log_loss) < 1e-12 &&
                    fabs(row.metrics[1].mean - scores.accuracy) < 1e-12);
        assert_int_equal(row.cases, scores.cases);
        evaluate.split = "valid";
        lapse_scores_clear(&scores);
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        assert_true(fabs(row.valid.mean - scores.log_loss) < 1e-12);
        lapse_scores_clear(&scores);
        lapse_model_free(model);
        lapse_sweep_plan_free(plan);
    }
    lapse_sweep_free(sweep);
    lapse_dataset_close(dataset);
}

static void ranks_follow_the_protocol(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(6);
    static const char *const protocols[] = {"full-unseen", "full", "uniform", "popularity"};
    for (int p = 0; p < 4; p++) {
        char protocol[64];
        lapse_rank_options options;
        lapse_rank_scores scores;
        lapse_sweep_cell row;
        lapse_model *model = NULL;
        lapse_train_options train = small_train_options();
        snprintf(protocol, sizeof protocol, "protocol=%s", protocols[p]);
        const char *const settings[] = {
            "models=popularity", "task=recommend", "seeds=1", protocol, "negatives-per-case=2", NULL};
        lapse_sweep_plan *plan = NULL;
        lapse_sweep *sweep = NULL;
        assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
        for (int i = 0; settings[i]; i++) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(settings[i], "="), settings[i]);
            assert_int_equal(lapse_sweep_plan_set(plan, name, strchr(settings[i], '=') + 1, NULL), LAPSE_OK);
        }
        assert_int_equal(lapse_sweep_new(dataset, plan, &sweep, NULL), LAPSE_OK);
        assert_int_equal(lapse_sweep_run(sweep, NULL, NULL, NULL), LAPSE_OK);
        small_set(&train, "model", "popularity");
        small_set(&train, "task", "recommend");
        model = small_train(dataset, &train, NULL, NULL);
        lapse_rank_options_default(&options);
        options.negatives = 2;
        assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &scores, NULL), LAPSE_OK);
        assert_true(lapse_sweep_row(sweep, 0, &row));
        assert_true(fabs(row.metrics[0].mean - scores.whole.scores[p].ndcg[1].mean) < 1e-12);
        assert_true(fabs(row.metrics[2].mean - scores.whole.scores[p].mrr.mean) < 1e-12);
        lapse_rank_scores_clear(&scores);
        lapse_model_free(model);
        lapse_sweep_free(sweep);
        lapse_sweep_plan_free(plan);
    }
    lapse_dataset_close(dataset);
}

/* The cell of a row has the best mean validation score; cells that do not differ are one; grid-seeds saves runs. */
static void the_validation_split_chooses_the_cell(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(7);
    static const char *const settings[] = {
        "models=attention,markov",      "encodings=mercer,position", "seeds=3",        "grid-seeds=1",
        "grid=learning-rate=1e-9,0.02", "grid=periods=2,3",          "grid=order=1,2", NULL};
    lapse_sweep *sweep = run_of(dataset, settings);
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    lapse_sweep_cell row, cell;
    assert_int_equal(info.rows, 3);
    assert_int_equal(info.cells,
                     4 + 2 + 2); /* positions have no periods, and markov has neither of the first two options */
    assert_int_equal(info.runs, info.cells + 2 * info.rows);
    for (int r = 0; lapse_sweep_row(sweep, r, &row); r++) {
        assert_true(row.runs == 3 && row.chosen && *row.config);
        lapse_sweep_result first;
        assert_true(lapse_sweep_result_at(sweep, r, 0, &first));
        for (int c = 0; lapse_sweep_cell_at(sweep, c, &cell); c++)
            if (cell.row_index == r && !cell.chosen)
                assert_true(cell.runs == 1 && cell.valid.mean >= first.valid);
        if (r < 2)
            assert_non_null(strstr(row.config, "learning-rate 0.02"));
    }
    assert_true(lapse_sweep_row(sweep, 2, &row));
    assert_int_equal(strncmp(row.config, "order ", 6), 0);
    lapse_sweep_free(sweep);
    lapse_dataset_close(dataset);
}

static void times_to_a_score_are_measured(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(8);
    static const char *const easy[] = {"seeds=2", "reach=100", NULL}, *const hard[] = {"seeds=2", "reach=0", NULL};
    lapse_sweep *a = run_of(dataset, easy), *b = run_of(dataset, hard);
    lapse_sweep_cell row;
    lapse_sweep_result run;
    assert_true(lapse_sweep_row(a, 0, &row) && lapse_sweep_result_at(a, 0, 0, &run));
    assert_int_equal(row.reach.count, 2);
    assert_true(row.reach.mean > 0 && row.reach.mean <= row.seconds.mean && run.curve[0] <= run.curve[2]);
    assert_true(lapse_sweep_row(b, 0, &row));
    assert_true(row.reach.count == 0 && isnan(row.reach.mean));
    lapse_sweep_free(a);
    lapse_sweep_free(b);
    lapse_dataset_close(dataset);
}

static void damaged_records_are_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(9);
    char keep[512], path[LP_SWEEP_PATH];
    lp_run_record record;
    bool found;
    snprintf(keep, sizeof keep, "keep=%s", small_path("runs"));
    const char *const settings[] = {"models=attention", "seeds=1", keep, NULL};
    lapse_sweep *sweep = run_of(dataset, settings);
    lp_buffer text = small_file_read(lp_sweep_path(sweep, &sweep->runs[0], path));
    assert_memory_equal(text.data + text.size - 2, "}\n", 2); /* without its last character it is whole */
    for (size_t cut = 0; cut < text.size - 1; cut += 1 + text.size / 40) {
        lapse_error error = {0};
        char *part = lp_alloc(cut + 1, 1); /* a block of malloc may end with the mark of a guarded one that was there */
        memcpy(part, text.data, cut);
        assert_int_equal(lp_run_record_parse(&record, sweep->runs[0].key, path, part, cut, &error), LAPSE_ERROR_FORMAT);
        assert_true(strcmp(error.file, path) == 0 && strstr(error.message, "delete it"));
        lp_free(part);
    }
    assert_int_equal(lp_run_record_parse(&record, "other", path, text.data, text.size, NULL), LAPSE_ERROR_FORMAT);
    assert_int_equal(lp_run_record_parse(&record, sweep->runs[0].key, path, text.data, text.size, NULL), LAPSE_OK);
    assert_int_equal(record.cases, sweep->runs[0].record.cases);
    lp_run_record_clear(&record);
    for (size_t at = 0; at < text.size; at += 1 + text.size / 60) {
        text.data[at] ^= 1; /* one character is another */
        small_file_write(path, text.data, text.size);
        assert_int_equal(lp_run_record_load(&record, sweep->runs[0].key, path, &found, NULL), LAPSE_ERROR_FORMAT);
        text.data[at] ^= 1;
    }
    lp_buffer_clear(&text);
    assert_int_equal(truncate(path, 20), 0);
    lapse_sweep *again = NULL;
    lapse_sweep_plan *plan = plan_of(settings);
    assert_int_equal(lapse_sweep_new(dataset, plan, &again, NULL), LAPSE_ERROR_FORMAT);
    lapse_sweep_plan_free(plan);
    lapse_sweep_free(sweep);
    remove_folder(small_path("runs"));
    lapse_dataset_close(dataset);
}

/* Records whose metric is `base` plus noise that both rows share, plus `gain`. */
static void fill_records(lp_run_record *records, int seeds, double gain, double noise)
{
    for (int s = 0; s < seeds; s++) {
        lp_random random = lp_random_start((uint64_t)s, LP_PURPOSE_TEST, 0),
                  own = lp_random_start((uint64_t)s, LP_PURPOSE_TEST, 1);
        records[s] = (lp_run_record){.metrics = 1, .group_count = 50};
        records[s].groups = lp_alloc(50, sizeof *records[s].groups);
        for (int g = 0; g < 50; g++) {
            double shared = lp_random_uniform(&random), mine = lp_random_uniform(&own) - 0.5;
            records[s].groups[g] =
                (lp_record_group){.group = g, .cases = 4, .sums = {4 * (1 + shared + gain + noise * mine)}};
            records[s].cases += 4;
        }
    }
}

static void paired_tests_find_differences(void **state)
{
    (void)state;
    static const struct {
        double gain, noise, least, most; /* of p */
    } cases[] = {{0, 0, 1, 1}, {0.1, 0.02, 0, 0.01}, {-0.1, 0.02, 0, 0.01}, {0.0001, 1, 0.02, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_run_record a[3], b[3];
        lp_paired one, two;
        fill_records(a, 3, cases[i].gain, cases[i].noise);
        fill_records(b, 3, 0, 0);
        const lp_run_record *x[] = {&a[0], &a[1], &a[2]}, *y[] = {&b[0], &b[1], &b[2]};
        assert_int_equal(lp_paired_test(x, y, 3, 0, 500, 1, &one, NULL), LAPSE_OK);
        assert_int_equal(lp_paired_test(x, y, 3, 0, 500, 2, &two, NULL), LAPSE_OK);
        assert_memory_equal(&one, &two, sizeof one);
        assert_true(one.p >= cases[i].least && one.p <= cases[i].most);
        assert_true(one.difference.low <= one.difference.mean && one.difference.mean <= one.difference.high);
        assert_true(fabs(one.difference.mean - cases[i].gain) < 0.05 + cases[i].noise);
        a[1].groups[0].cases++; /* other cases: no test */
        assert_int_equal(lp_paired_test(x, y, 3, 0, 500, 1, &one, NULL), LAPSE_OK);
        assert_true(isnan(one.p));
        x[1] = NULL; /* without that seed there is one */
        assert_int_equal(lp_paired_test(x, y, 3, 0, 500, 1, &one, NULL), LAPSE_OK);
        assert_false(isnan(one.p));
        for (int s = 0; s < 3; s++) {
            lp_run_record_clear(&a[s]);
            lp_run_record_clear(&b[s]);
        }
    }
}

/* A run that diverges is a row without scores. */
static void diverged_runs_are_results(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(10);
    static const char *const settings[] = {"models=attention", "seeds=1",   "grid=learning-rate=10,0.01",
                                           "clip=0",           "epochs=30", NULL};
    lapse_sweep *sweep = run_of(dataset, settings);
    lapse_sweep_cell row;
    assert_true(lapse_sweep_row(sweep, 0, &row));
    assert_true(row.best && row.diverged == 0 && strcmp(row.config, "learning-rate 0.01") == 0);
    lp_sweep_run_of(sweep, 1, 0)->record.diverged = true; /* as if it had */
    lp_sweep_choose(sweep);
    assert_int_equal(lp_sweep_test(sweep, NULL), LAPSE_OK);
    assert_true(lapse_sweep_row(sweep, 0, &row));
    assert_string_equal(row.config, "learning-rate 10");
    lapse_sweep_free(sweep);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(seeds_are_numbers_ranges_and_lists),
        cmocka_unit_test(a_file_fills_what_is_not_set),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(wrong_comparisons_are_refused),
        cmocka_unit_test(tables_do_not_depend_on_threads),
        cmocka_unit_test(interrupted_sweeps_continue),
        cmocka_unit_test(killed_sweeps_continue),
        cmocka_unit_test(processes_share_a_folder),
        cmocka_unit_test(progress_has_the_runs_of_others),
        cmocka_unit_test(scores_are_those_of_the_models),
        cmocka_unit_test(ranks_follow_the_protocol),
        cmocka_unit_test(the_validation_split_chooses_the_cell),
        cmocka_unit_test(times_to_a_score_are_measured),
        cmocka_unit_test(damaged_records_are_refused),
        cmocka_unit_test(paired_tests_find_differences),
        cmocka_unit_test(diverged_runs_are_results),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
