/* test_target_events.c: training and evaluation with --target action=NAME: only these events are targets, the others are
 * context; the model file stores it. */
#include "data/dataset/target_events.h"

#include "simulate/simulate.h"
#include "model/model.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "evaluate/evaluator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct shop {
    lapse_simulation *simulation;
    lapse_dataset *dataset;
} shop;

/* The preset, imported by item, with the action as a field or without it. */
static shop make_shop(const char *preset, int64_t sequences, double days, bool action)
{
    shop made = {0};
    lapse_simulate_options options;
    lapse_import_options import;
    lapse_simulate_options_default(&options);
    options.preset = preset;
    options.sequences = sequences;
    options.days = days;
    assert_int_equal(lapse_simulate(&options, &made.simulation, NULL), LAPSE_OK);
    assert_int_equal(lapse_simulation_save(made.simulation, small_path("shop.csv"), NULL), LAPSE_OK);
    lapse_import_options_default(&import);
    import.input = small_path("shop.csv");
    import.event = "item";
    import.action = action ? "action" : NULL;
    import.threads = 1;
    assert_int_equal(lapse_dataset_read(&import, &made.dataset, NULL, NULL), LAPSE_OK);
    return made;
}

static void free_shop(shop *s)
{
    lapse_dataset_close(s->dataset);
    lapse_simulation_free(s->simulation);
}

static int64_t count_action(const lapse_dataset *dataset, const char *action, const uint8_t *split, int part)
{
    int64_t count = 0, id = lp_names_find(&dataset->fields[0].categories, action);
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t e = dataset->start[s] + 1; e < dataset->start[s + 1]; e++)
            count += (!split || split[e] == part) && (id < 0 || dataset->fields[0].category[e] == id);
    return count;
}

static int64_t cases_of(const lapse_model *model, const lapse_dataset *dataset, const char *split, const char *target)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_error error;
    lapse_evaluate_options_default(&options);
    options.split = split;
    options.target = target;
    options.bootstrap = 0;
    if (lapse_evaluate(model, dataset, &options, &scores, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    int64_t cases = scores.cases;
    assert_string_equal(scores.split, split);
    lapse_scores_clear(&scores);
    return cases;
}

static void only_targets_are_scored(void **state)
{
    (void)state;
    shop s = make_shop("shop", 30, 60, true);
    for (int network = 0; network < 2; network++) {
        lapse_train_options options = small_train_options();
        lapse_model *model, *loaded = NULL;
        uint8_t *split = NULL;
        small_set(&options, "model", network ? "attention" : "majority");
        small_set(&options, "target", "action=view");
        model = small_train(s.dataset, &options, NULL, NULL);
        assert_int_equal(lapse_model_save(model, small_path("model"), NULL), LAPSE_OK);
        assert_int_equal(lapse_model_load(small_path("model"), &loaded, NULL), LAPSE_OK);
        assert_string_equal(loaded->config.target, "action=view");
        assert_int_equal(lp_split_make(s.dataset, model->split_by, model->seed, &split, NULL), LAPSE_OK);
        int64_t views = count_action(s.dataset, "view", split, LP_SPLIT_TEST);
        assert_true(views > 0 && views < count_action(s.dataset, "", split, LP_SPLIT_TEST));
        const lapse_model *both[] = {model, loaded};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(cases_of(both[i], s.dataset, "test", NULL), views);
            assert_int_equal(cases_of(both[i], s.dataset, "test", "event"), views);
            assert_int_equal(cases_of(both[i], s.dataset, "test", "action=buy"),
                             count_action(s.dataset, "buy", split, LP_SPLIT_TEST));
            assert_int_equal(cases_of(both[i], s.dataset, "test", "event,all"),
                             count_action(s.dataset, "", split, LP_SPLIT_TEST));
            assert_int_equal(cases_of(both[i], s.dataset, "all", NULL), count_action(s.dataset, "view", NULL, 0));
            assert_int_equal(cases_of(both[i], s.dataset, "all", "all"), count_action(s.dataset, "", NULL, 0));
        }
        lp_free(split);
        lapse_model_free(model);
        lapse_model_free(loaded);
    }
    free_shop(&s);
}

/* Events that are not targets have no influence as targets: a loss of views alone does not depend on what was bought last in a
 * sequence. */
static void other_events_are_no_targets_of_training(void **state)
{
    (void)state;
    shop s = make_shop("shop", 25, 60, true);
    lapse_train_options options = small_train_options();
    const int32_t *action = s.dataset->fields[0].category;
    int32_t *type = (int32_t *)(uintptr_t)s.dataset->type;
    int32_t buy = (int32_t)lp_names_find(&s.dataset->fields[0].categories, "buy");
    int64_t changed = 0;
    small_set(&options, "target", "action=view");
    small_set(&options, "windows", "all");
    options.model.context = 500; /* one window for each sequence: its last event is only a target */
    lapse_model *before = small_train(s.dataset, &options, NULL, NULL);
    for (int64_t q = 0; q < s.dataset->sequence_count; q++) {
        uint64_t last = s.dataset->start[q + 1] - 1;
        if (action[last] != buy)
            continue;
        type[last] = (type[last] + 1) % (int32_t)s.dataset->types.count;
        changed++;
    }
    assert_true(changed > 0);
    lapse_model *after = small_train(s.dataset, &options, NULL, NULL);
    assert_memory_equal(before->parameters, after->parameters,
                        before->network.graph.parameter_size * sizeof *before->parameters);
    small_set(&options, "target", "all"); /* the test can fail */
    lapse_model *all = small_train(s.dataset, &options, NULL, NULL);
    assert_memory_not_equal(before->parameters, all->parameters,
                            before->network.graph.parameter_size * sizeof *before->parameters);
    lapse_model_free(before);
    lapse_model_free(after);
    lapse_model_free(all);
    free_shop(&s);
}

/* The law of a view is conditioned on the action. */
static void the_law_is_conditioned(void **state)
{
    (void)state;
    shop s = make_shop("shop", 20, 60, true);
    lapse_train_options options = small_train_options();
    small_set(&options, "model", "majority");
    small_set(&options, "target", "action=view");
    lapse_model *model = small_train(s.dataset, &options, NULL, NULL);
    const lp_law *law = &s.simulation->law;
    double *p = lp_alloc((size_t)law->type_count, sizeof *p), loss = 0, cases = 0;
    for (int64_t user = 0; user < s.simulation->sequence_count; user++)
        for (int64_t i = s.simulation->start[user] + 1; i < s.simulation->start[user + 1]; i++) {
            double views = 0;
            if (strcmp(law->types[s.simulation->type[i]].action, "view") != 0)
                continue;
            lp_simulation_probabilities(s.simulation, user, i, p);
            for (int32_t k = 0; k < law->type_count; k++)
                views += strcmp(law->types[k].action, "view") == 0 ? p[k] : 0;
            loss -= log(p[s.simulation->type[i]] / views);
            cases++;
        }
    lapse_evaluate_options evaluate;
    lapse_scores scores;
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = "all";
    assert_int_equal(lapse_simulation_evaluate(s.simulation, model, s.dataset, &evaluate, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.cases, cases);
    assert_true(fabs(scores.log_loss - loss / cases) < 1e-9);
    lapse_scores_clear(&scores);
    lp_free(p);
    lapse_model_free(model);
    free_shop(&s);
}

/* The law of "sessions" ranks better than popularity, which counts views alone, by every metric. */
static void the_law_ranks_best(void **state)
{
    (void)state;
    static const int cutoffs[] = {5, 10};
    shop s = make_shop("sessions", 60, 0, true);
    lapse_train_options options = small_train_options();
    lapse_rank_options rank;
    lapse_rank_scores law, popularity;
    uint8_t *split = NULL;
    small_set(&options, "model", "popularity");
    small_set(&options, "task", "recommend");
    small_set(&options, "split-by", "session");
    small_set(&options, "target", "action=view");
    lapse_model *model = small_train(s.dataset, &options, NULL, NULL);
    lapse_rank_options_default(&rank);
    rank.cutoffs = cutoffs;
    rank.bootstrap = 0;
    rank.negatives = 0;
    assert_int_equal(lapse_simulation_rank(s.simulation, model, s.dataset, &rank, &law, NULL), LAPSE_OK);
    assert_int_equal(lapse_rank_evaluate(model, s.dataset, &rank, &popularity, NULL), LAPSE_OK);
    assert_int_equal(lp_split_make(s.dataset, model->split_by, model->seed, &split, NULL), LAPSE_OK);
    assert_int_equal(law.whole.cases, count_action(s.dataset, "view", split, LP_SPLIT_TEST));
    assert_int_equal(law.whole.cases, popularity.whole.cases);
    for (int protocol = 0; protocol < 2; protocol++)
        for (int k = 0; k < 2; k++) {
            assert_true(law.whole.scores[protocol].hit[k].mean > popularity.whole.scores[protocol].hit[k].mean + 0.2);
            assert_true(law.whole.scores[protocol].ndcg[k].mean > popularity.whole.scores[protocol].ndcg[k].mean + 0.1);
        }
    const uint64_t *count = model->tensors[0].data;
    uint64_t total = 0, views = 0;
    for (int64_t i = 0; i < model->types.count; i++)
        total += count[i];
    int32_t view = (int32_t)lp_names_find(&s.dataset->fields[0].categories, "view");
    for (int64_t e = 0; e < s.dataset->event_count; e++)
        views += split[e] == LP_SPLIT_TRAIN && s.dataset->fields[0].category[e] == view;
    assert_int_equal(total, views);
    rank.target = "action";
    assert_int_equal(lapse_rank_evaluate(model, s.dataset, &rank, &law, NULL), LAPSE_ERROR_USAGE);
    lp_free(split);
    lapse_rank_scores_clear(&law);
    lapse_rank_scores_clear(&popularity);
    lapse_model_free(model);
    free_shop(&s);
}

static void wrong_targets_are_refused(void **state)
{
    (void)state;
    shop with = make_shop("shop", 12, 60, true), without = make_shop("shop", 12, 60, false);
    static const struct {
        const char *target;
        bool action;
        lapse_status status;
        const char *message;
    } cases[] = {
        {"action=vew", true, LAPSE_ERROR_UNKNOWN, "the dataset has no action 'vew'; its actions are: view, buy"},
        {"action=", true, LAPSE_ERROR_UNKNOWN, "the dataset has no action ''"},
        {"view", true, LAPSE_ERROR_USAGE, "the target events are 'view'; they must be action=NAME or all"},
        {"action=view", false, LAPSE_ERROR_INPUT, "import it with --action COLUMN"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = small_train_options();
        lapse_error error = {0};
        small_set(&options, "target", cases[i].target);
        assert_int_equal(small_resolve(&options, (cases[i].action ? &with : &without)->dataset, &error),
                         cases[i].status);
        if (!strstr(error.message, cases[i].message))
            fail_msg("'%s' is not in '%s'", cases[i].message, error.message);
    }
    lapse_train_options options = small_train_options();
    small_set(&options, "model", "majority");
    lapse_model *model = small_train(with.dataset, &options, NULL, NULL);
    static const char *const wrong[] = {"view", "event,view", "events", "action=vew", "event,action=vew", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lapse_evaluate_options evaluate;
        lapse_scores scores;
        lapse_error error;
        lapse_evaluate_options_default(&evaluate);
        evaluate.target = wrong[i];
        lapse_status status = lapse_evaluate(model, with.dataset, &evaluate, &scores, &error);
        if (!*wrong[i]) { /* as NULL */
            assert_int_equal(status, LAPSE_OK);
            lapse_scores_clear(&scores);
        } else {
            assert_true(status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_UNKNOWN);
        }
    }
    lapse_model_free(model);
    free_shop(&with);
    free_shop(&without);
}

/* A mask works for every split, and for none. */
static void masks_leave_the_targets(void **state)
{
    (void)state;
    shop s = make_shop("shop", 12, 60, true);
    uint8_t *made = NULL, *split = NULL;
    assert_int_equal(lp_target_events_mask(s.dataset, "all", &made, NULL), LAPSE_OK);
    assert_null(made);
    assert_int_equal(lp_target_events_mask(s.dataset, "action=buy", &made, NULL), LAPSE_OK);
    assert_int_equal(lp_split_make(s.dataset, lp_split_rule_find("sequence"), 1, &split, NULL), LAPSE_OK);
    int32_t buy = (int32_t)lp_names_find(&s.dataset->fields[0].categories, "buy");
    lp_targets targets = {.dataset = s.dataset, .split = made, .wanted = LP_SPLIT_COUNT, .context = 16};
    lp_windows windows = {0};
    int64_t expected = 0;
    for (int64_t e = 0; e < s.dataset->event_count; e++) {
        assert_int_equal(made[e], s.dataset->fields[0].category[e] == buy ? LP_SPLIT_TEST : LP_SPLIT_NONE);
        assert_int_equal(lp_targets_include(&targets, e), s.dataset->fields[0].category[e] == buy);
    }
    for (int64_t q = 0; q < s.dataset->sequence_count; q++)
        for (uint64_t e = s.dataset->start[q] + 1; e < s.dataset->start[q + 1]; e++)
            expected += s.dataset->fields[0].category[e] == buy;
    assert_int_equal(lp_windows_evaluation(&windows, &targets, NULL), LAPSE_OK);
    assert_int_equal(windows.targets, expected);
    lp_windows_clear(&windows);
    lp_free(made);
    lp_free(split);
    free_shop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_targets_are_scored),   cmocka_unit_test(other_events_are_no_targets_of_training),
        cmocka_unit_test(the_law_is_conditioned),    cmocka_unit_test(the_law_ranks_best),
        cmocka_unit_test(wrong_targets_are_refused), cmocka_unit_test(masks_leave_the_targets),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_paths_remove();
    return failed;
}
