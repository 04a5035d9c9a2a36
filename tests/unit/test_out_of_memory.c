/* test_out_of_memory.c: every allocation of a public call may fail, and each failure is LAPSE_ERROR_MEMORY: no call returns
 * a result that is smaller or less exact for lack of memory. */
#include "support/small_data.h"
#include "support/small_train.h"
#include "lapse_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static lapse_dataset *dataset;
static lapse_model *classifier, *recommender, *sampled, *baseline;
static lapse_simulation *simulation;

static lapse_model *trained(const char *model, const char *task, const char *encoding)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "model", model);
    small_set(&options, "task", task);
    if (encoding)
        small_set(&options, "encoding", encoding);
    options.run.epochs = 1;
    return small_train(dataset, &options, NULL, NULL);
}

static int make(void **state)
{
    (void)state;
    static const char items[] = "item,name,brand\na,red lamp,X\nb,blue lamp,X\nc,red drill,Y\nz,blue drill,Y\n";
    static const char events[] = "user,time,event,action,price\n1,1,a,view,3\n1,2,b,buy,\n2,1,c,view,1\n2,9,a,buy,2\n";
    lapse_simulate_options options;
    small_file_write(small_path("items.csv"), items, strlen(items));
    small_file_write(small_path("events.csv"), events, strlen(events));
    dataset = small_train_data(1);
    assert_int_equal(lapse_dataset_save(dataset, small_path("d.lapse"), NULL), LAPSE_OK);
    classifier = trained("attention", "classify", "mercer");
    recommender = trained("attention", "recommend", "mercer");
    sampled = trained("attention", "classify", "bochner-normal");
    baseline = trained("markov", "classify", NULL);
    /* Large enough to need memory of its own. */
    assert_int_equal(lp_model_property_set(baseline, NULL, "source", "%30000s", "x"), LAPSE_OK);
    assert_int_equal(lapse_model_save(classifier, small_path("m"), NULL), LAPSE_OK);
    assert_int_equal(lapse_model_save(baseline, small_path("b"), NULL), LAPSE_OK);
    lapse_simulate_options_default(&options);
    options.sequences = 5;
    options.days = 30;
    return lapse_simulate(&options, &simulation, NULL);
}

static int clear(void **state)
{
    (void)state;
    lapse_model_free(classifier);
    lapse_model_free(recommender);
    lapse_model_free(sampled);
    lapse_model_free(baseline);
    lapse_simulation_free(simulation);
    lapse_dataset_close(dataset);
    small_paths_remove();
    return 0;
}

/* ----------------------------------------------------------------------------------------------- the calls --- */

static lapse_status read_events(lapse_error *error)
{
    static const char *const numbers[] = {"price"};
    lapse_dataset *made = NULL;
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.input = small_path("events.csv");
    options.action = "action";
    options.numbers = numbers;
    options.number_count = 1;
    options.session_gap = 100;
    options.deduplicate = "exact";
    options.threads = 1;
    lapse_status status = lapse_dataset_read(&options, &made, NULL, error);
    assert_true(status == LAPSE_OK || !made);
    lapse_dataset_close(made);
    return status;
}

/* Writes a file to be replaced. */
static void keep_file(void)
{
    small_file_write(small_path("saved"), "as it was", 9);
}

/* A failed save leaves the file as it was. */
static lapse_status check_kept(lapse_status status)
{
    struct stat there;
    assert_int_equal(stat(small_path("saved"), &there), 0);
    assert_int_equal(there.st_size == 9, status != LAPSE_OK);
    return status;
}

static lapse_status save_dataset(lapse_error *error)
{
    keep_file();
    return check_kept(lapse_dataset_save(dataset, small_path("saved"), error));
}

static lapse_status open_dataset(lapse_error *error)
{
    lapse_dataset *opened = NULL;
    lapse_status status = lapse_dataset_open(small_path("d.lapse"), &opened, error);
    assert_true(status == LAPSE_OK || !opened);
    lapse_dataset_close(opened);
    return status;
}

static lapse_status check_dataset(lapse_error *error)
{
    lapse_check_options options;
    lapse_check check;
    lapse_check_options_default(&options);
    return lapse_dataset_check(dataset, &options, &check, error);
}

static lapse_status new_options(lapse_error *error)
{
    lapse_train_options *options = NULL;
    lapse_status status = lapse_train_options_new(&options, error);
    lapse_train_options_free(options);
    return status;
}

static lapse_status train_as(const char *model, const char *task, const char *encoding, const char *loss,
                             lapse_error *error)
{
    lapse_train_options options = small_train_options();
    lapse_model *made = NULL;
    small_set(&options, "model", model);
    small_set(&options, "task", task);
    if (encoding)
        small_set(&options, "encoding", encoding);
    if (loss)
        small_set(&options, "loss", loss);
    options.run.epochs = 1;
    options.run.threads = 1;
    small_set(&options, "checkpoint", small_path("checkpoint"));
    lapse_status status = lapse_train(dataset, &options, NULL, NULL, &made, error);
    assert_true(status == LAPSE_OK || !made);
    lapse_model_free(made);
    return status;
}

static lapse_status train_classifier(lapse_error *error)
{
    return train_as("attention", "classify", "bochner-normal", NULL, error);
}

static lapse_status train_recommender(lapse_error *error)
{
    return train_as("attention", "recommend", "mercer", "sampled-softmax", error);
}

static lapse_status train_lstm(lapse_error *error)
{
    return train_as("lstm", "classify", NULL, NULL, error);
}

static lapse_status train_markov(lapse_error *error)
{
    return train_as("markov", "classify", NULL, NULL, error);
}

static lapse_status train_recency(lapse_error *error)
{
    return train_as("recency", "recommend", NULL, NULL, error);
}

static lapse_status train_item_markov(lapse_error *error)
{
    return train_as("item-markov", "recommend", NULL, NULL, error);
}

static lapse_status pretrain(lapse_error *error)
{
    lapse_pretrain_options options;
    lapse_vectors *vectors = NULL;
    lapse_pretrain_options_default(&options);
    options.catalogue = small_path("items.csv");
    options.epochs = 1;
    lapse_status status = lapse_pretrain(dataset, &options, NULL, NULL, &vectors, error);
    if (status == LAPSE_OK)
        status = lapse_vectors_save(vectors, small_path("v"), error);
    lapse_vectors_free(vectors);
    return status;
}

static lapse_status load_vectors(lapse_error *error)
{
    lapse_vectors *vectors = NULL;
    lapse_status status = lapse_vectors_load(small_path("v"), &vectors, error);
    lapse_vectors_free(vectors);
    return status;
}

static lapse_status save_model(lapse_error *error)
{
    keep_file();
    return check_kept(lapse_model_save(classifier, small_path("saved"), error));
}

static lapse_status load(const char *name, lapse_error *error)
{
    lapse_model *model = NULL;
    lapse_status status = lapse_model_load(small_path(name), &model, error);
    assert_true(status == LAPSE_OK || !model);
    lapse_model_free(model);
    return status;
}

static lapse_status load_model(lapse_error *error)
{
    return load("m", error);
}

static lapse_status load_baseline(lapse_error *error)
{
    return load("b", error);
}

static lapse_status evaluate(const lapse_model *model, lapse_error *error)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_evaluate_options_default(&options);
    options.threads = 1;
    options.bootstrap = 5;
    lapse_status status = lapse_evaluate(model, dataset, &options, &scores, error);
    if (status == LAPSE_OK)
        lapse_scores_clear(&scores);
    return status;
}

static lapse_status evaluate_network(lapse_error *error)
{
    return evaluate(sampled, error);
}

static lapse_status evaluate_baseline(lapse_error *error)
{
    return evaluate(baseline, error);
}

static lapse_status rank(const lapse_model *model, lapse_error *error)
{
    lapse_rank_options options;
    lapse_rank_scores scores;
    lapse_rank_options_default(&options);
    options.threads = 1;
    options.bootstrap = 5;
    options.slices = true;
    options.negatives = 2;
    lapse_status status = lapse_rank_evaluate(model, dataset, &options, &scores, error);
    if (status == LAPSE_OK)
        lapse_rank_scores_clear(&scores);
    return status;
}

static lapse_status rank_beside_baselines(lapse_error *error)
{
    lapse_rank_options options;
    lapse_rank_scores scores;
    lapse_comparison comparison;
    lapse_rank_options_default(&options);
    options.threads = 1;
    options.bootstrap = 5;
    lapse_status status = lapse_rank_compare(recommender, dataset, &options, &scores, &comparison, error);
    if (status == LAPSE_OK)
        lapse_rank_scores_clear(&scores);
    return status;
}

static lapse_status rank_network(lapse_error *error)
{
    return rank(recommender, error);
}

static lapse_status rank_baseline(lapse_error *error)
{
    return rank(baseline, error);
}

static lapse_status query_session(lapse_error *error)
{
    lapse_session *session = NULL;
    double probabilities[8];
    lapse_status status = lapse_session_new(recommender, &session, error);
    if (status == LAPSE_OK)
        status = lapse_session_append(session, 1, "a", error);
    if (status == LAPSE_OK)
        status = lapse_session_predict(session, 2, probabilities, error);
    lapse_session_free(session);
    return status;
}

static lapse_status predict_all(lapse_error *error)
{
    static const lapse_query queries[] = {{0, 4e9}, {1, 4e9}};
    lapse_predict_options options = {.top = 2, .threads = 1};
    lapse_recommendation best[4];
    int64_t counts[2];
    return lapse_predict_all(recommender, dataset, queries, 2, &options, best, counts, error);
}

static lapse_status draw_spectrum(lapse_error *error)
{
    lapse_spectrum spectrum;
    lapse_lags lags;
    lapse_lags_default(&lags);
    lapse_status status = lapse_model_spectrum(classifier, &spectrum, error);
    if (status != LAPSE_OK)
        return status;
    status = lapse_lags_resolve(&spectrum, &lags, error);
    if (status == LAPSE_OK)
        status = lapse_spectrum_save_svg(&spectrum, &lags, "title", small_path("saved"), error);
    lapse_spectrum_clear(&spectrum);
    return status;
}

static lapse_status measure_bound(lapse_error *error)
{
    lapse_bound_options options;
    lapse_bound_error measured;
    lapse_bound_options_default(&options);
    options.repeats = 2;
    options.threads = 1;
    options.span = 10;
    options.sigma = 1;
    return lapse_bound_measure(&options, 4, &measured, error);
}

static lapse_status simulate(const char *preset, lapse_error *error)
{
    lapse_simulate_options options;
    lapse_simulation *made = NULL;
    lapse_simulate_options_default(&options);
    options.preset = preset;
    options.sequences = 3;
    options.days = 30;
    options.items = strcmp(preset, "catalogue") == 0 ? 100 : 0;
    lapse_status status = lapse_simulate(&options, &made, error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(made, small_path("saved"), error);
    if (status == LAPSE_OK && options.items)
        status = lapse_simulation_save_catalogue(made, small_path("saved"), error);
    else if (status == LAPSE_OK)
        status = lapse_simulation_save_law(made, small_path("saved"), error);
    lapse_simulation_free(made);
    return status;
}

static lapse_status simulate_shop(lapse_error *error)
{
    return simulate("shop", error);
}

static lapse_status simulate_catalogue(lapse_error *error)
{
    return simulate("catalogue", error);
}

static const struct {
    const char *name;
    lapse_status (*call)(lapse_error *error);
} calls[] = {
    {"lapse_dataset_read", read_events},
    {"lapse_dataset_save", save_dataset},
    {"lapse_dataset_open", open_dataset},
    {"lapse_dataset_check", check_dataset},
    {"lapse_train_options_new", new_options},
    {"lapse_train, a sampled encoding", train_classifier},
    {"lapse_train, a sampled loss", train_recommender},
    {"lapse_train, lstm", train_lstm},
    {"lapse_train, markov", train_markov},
    {"lapse_train, recency", train_recency},
    {"lapse_train, item-markov", train_item_markov},
    {"lapse_pretrain", pretrain},
    {"lapse_vectors_load", load_vectors},
    {"lapse_model_save", save_model},
    {"lapse_model_load, a network", load_model},
    {"lapse_model_load, a baseline", load_baseline},
    {"lapse_evaluate, a network", evaluate_network},
    {"lapse_evaluate, a baseline", evaluate_baseline},
    {"lapse_rank_evaluate, a network", rank_network},
    {"lapse_rank_evaluate, a baseline", rank_baseline},
    {"lapse_rank_compare", rank_beside_baselines},
    {"lapse_session_predict", query_session},
    {"lapse_predict_all", predict_all},
    {"lapse_spectrum_save_svg", draw_spectrum},
    {"lapse_bound_measure", measure_bound},
    {"lapse_simulate, shop", simulate_shop},
    {"lapse_simulate, catalogue", simulate_catalogue},
};

static void every_failure_is_an_error(void **state)
{
    (void)state;
    bool good = true;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        lapse_error error = {0};
        if (calls[c].call(&error) != LAPSE_OK) /* fills tables that are made once */
            fail_msg("%s: %s", calls[c].name, error.message);
        int64_t first = lp_memory_count();
        assert_int_equal(calls[c].call(&error), LAPSE_OK);
        int64_t count = lp_memory_count() - first;
        int64_t stride = small_effort(1, 7);
        for (int64_t n = 1; n <= count; n += stride) {
            memset(&error, 0, sizeof error);
            lp_memory_fail_at(n);
            lapse_status status = calls[c].call(&error);
            lp_memory_fail_at(0);
            if (status != LAPSE_ERROR_MEMORY || error.status != status) {
                print_error("%s, allocation %lld of %lld: status %d, '%s'\n", calls[c].name, (long long)n,
                            (long long)count, (int)status, error.message);
                good = false;
            }
        }
        if (count < 1)
            fail_msg("%s allocates nothing", calls[c].name);
    }
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failure_is_an_error)};
    return cmocka_run_group_tests(tests, make, clear);
}
