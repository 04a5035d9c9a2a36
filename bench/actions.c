/* actions.c: what the action of past events is worth. The simulated shop's law is about pairs (view coffee, buy coffee);
 * the question is always which item comes next, at a given time.
 *
 *   actions [SEQUENCES [SEEDS]]      2000 shoppers and seeds 1 to 3 unless said otherwise
 *
 *   item                 events are items: the model cannot tell a view from a purchase
 *   item, action field   events are items, and past events have their action as a field
 *   both predicted       the same, and the action is predicted beside the item
 *   pairs                events are pairs; the chances of an item's pairs are added
 *   the law              the best possible: the law's own chances, likewise added
 *
 * All see the same histories, the same test split and the same settings. Scores are of one pass over the test split
 * through sessions, which is first compared with lapse_evaluate where that scores items too. "of the possible" is the
 * share of the way from the first row to the law, mean over the seeds.
 */
#include "evaluate/evaluator.h"
#include "lapse_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 5, LAW = ROWS - 1, MOST_SEEDS = 20 };

static const struct {
    const char *name, *event, *action, *predict;
} rows[ROWS] = {
    {"item", "item", NULL, "event"},
    {"item, action field", "item", "action", "event"},
    {"item and action both predicted", "item", "action", "both"},
    {"pairs of action and item", "action,item", NULL, "event"},
    {"the law", "", NULL, ""},
};

typedef struct result {
    double accuracy, log_loss, seconds;
} result;

static lapse_error error;

static void need(lapse_status status)
{
    if (status == LAPSE_OK)
        return;
    fprintf(stderr, "actions: %s\n", error.message);
    exit(1);
}

static lapse_dataset *import(const char *path, int row)
{
    lapse_import_options options;
    lapse_dataset *dataset;
    lapse_import_options_default(&options);
    options.input = path;
    options.event = rows[row].event;
    options.action = rows[row].action;
    need(lapse_dataset_read(&options, &dataset, NULL, &error));
    return dataset;
}

static lapse_model *train(const lapse_dataset *dataset, int row, uint64_t seed)
{
    static const char *const set[][2] = {
        {"dims", "32"},      {"blocks", "2"},   {"heads", "2"},     {"context", "64"},
        {"epochs", "30"},    {"patience", "6"}, {"dropout", "0.1"}, {"learning-rate", "0.003"},
        {"gap-input", "off"}};
    lapse_train_options *options;
    lapse_model *model;
    char text[24];
    need(lapse_train_options_new(&options, &error));
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        need(lapse_train_options_set(options, set[i][0], set[i][1], &error));
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    need(lapse_train_options_set(options, "seed", text, &error));
    need(lapse_train_options_set(options, "predict", rows[row].predict, &error));
    need(lapse_train(dataset, options, NULL, NULL, &model, &error));
    lapse_train_options_free(options);
    return model;
}

/* "buy coffee" and "coffee" are the item "coffee". */
static const char *item_of(const char *type)
{
    const char *space = strchr(type, ' ');
    return space ? space + 1 : type;
}

static void append(lapse_session *session, const lapse_dataset *dataset, int64_t event, bool action)
{
    lapse_value value = {.text = action ? lapse_dataset_category_name(dataset, 0, dataset->fields[0].category[event])
                                        : NULL};
    lapse_event next = {dataset->time[event], lapse_dataset_event_type_name(dataset, dataset->type[event]), &value,
                        action};
    need(lapse_session_append_event(session, &next, &error));
}

/* Every event of the test split but each sequence's first, asked for with all events before it. */
static result score(const lapse_model *model, const lapse_dataset *dataset, bool action)
{
    uint8_t *split;
    lp_split wanted;
    lapse_session *session;
    double *chances = lp_alloc((size_t)dataset->types.count, sizeof *chances), right = 0, loss = 0, cases = 0;
    need(lp_evaluator_split(model, dataset, "test", NULL, &split, &wanted, &error));
    need(lapse_session_new(model, &session, &error));
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        lapse_session_clear(session);
        for (int64_t i = (int64_t)dataset->start[s]; i < (int64_t)dataset->start[s + 1]; i++) {
            if (split[i] == wanted && i > (int64_t)dataset->start[s]) {
                const char *truth = item_of(lapse_dataset_event_type_name(dataset, dataset->type[i])), *best = NULL;
                double highest = -1, of_truth = 0;
                need(lapse_session_predict(session, dataset->time[i], chances, &error));
                for (int64_t k = 0; k < dataset->types.count; k++) {
                    const char *item = item_of(lapse_model_event_type_name(model, k));
                    double sum = 0;
                    for (int64_t j = 0; j < dataset->types.count; j++)
                        sum += strcmp(item_of(lapse_model_event_type_name(model, j)), item) == 0 ? chances[j] : 0;
                    best = sum > highest ? item : best;
                    highest = fmax(highest, sum);
                    of_truth = strcmp(item, truth) == 0 ? sum : of_truth;
                }
                right += strcmp(best, truth) == 0;
                loss -= log(of_truth);
                cases++;
            }
            if (split[i] == wanted)
                append(session, dataset, i, action);
        }
    }
    lapse_session_free(session);
    lp_free(split);
    lp_free(chances);
    return (result){right / cases, loss / cases, 0};
}

/* The session's scores are the evaluation's, but for windows longer than the context, which begin elsewhere. */
static void check(const lapse_model *model, const lapse_dataset *dataset, result scored)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_evaluate_options_default(&options);
    options.bootstrap = 0;
    need(lapse_evaluate(model, dataset, &options, &scores, &error));
    if (fabs(scores.accuracy - scored.accuracy) > 0.01 || fabs(scores.log_loss - scored.log_loss) > 0.02) {
        fprintf(stderr, "actions: sessions give %.4f and %.4f, evaluation %.4f and %.4f\n", scored.accuracy,
                scored.log_loss, scores.accuracy, scores.log_loss);
        exit(1);
    }
    lapse_scores_clear(&scores);
}

static void run_seed(int64_t sequences, uint64_t seed, result results[ROWS])
{
    static const char path[] = "actions_shop.csv";
    lapse_simulate_options options;
    lapse_simulation *simulation;
    lapse_simulate_options_default(&options);
    options.sequences = sequences;
    options.seed = seed;
    need(lapse_simulate(&options, &simulation, &error));
    need(lapse_simulation_save(simulation, path, &error));
    for (int row = 0; row < LAW; row++) {
        time_t start = time(NULL);
        lapse_dataset *dataset = import(path, row);
        lapse_model *model = train(dataset, row, seed);
        results[row] = score(model, dataset, rows[row].action != NULL);
        results[row].seconds = difftime(time(NULL), start);
        if (strcmp(rows[row].event, "item") == 0)
            check(model, dataset, results[row]);
        if (row == 0) {
            lapse_evaluate_options evaluate;
            lapse_scores best;
            lapse_evaluate_options_default(&evaluate);
            evaluate.bootstrap = 0;
            need(lapse_simulation_evaluate(simulation, model, dataset, &evaluate, &best, &error));
            results[LAW] = (result){best.accuracy, best.log_loss, 0};
            lapse_scores_clear(&best);
        }
        fprintf(stderr, "seed %d, %s: %.2f %%, %.4f\n", (int)seed, rows[row].name, 100 * results[row].accuracy,
                results[row].log_loss);
        lapse_model_free(model);
        lapse_dataset_close(dataset);
    }
    lapse_simulation_free(simulation);
    remove(path);
}

int main(int argc, char **argv)
{
    int64_t sequences = argc > 1 ? atoll(argv[1]) : 2000;
    int seeds = argc > 2 ? atoi(argv[2]) : 3;
    static result results[MOST_SEEDS][ROWS];
    if (sequences < 20 || seeds < 1 || seeds > MOST_SEEDS) {
        fprintf(stderr, "usage: actions [SEQUENCES [SEEDS]]\n");
        return 2;
    }
    for (int s = 0; s < seeds; s++)
        run_seed(sequences, (uint64_t)s + 1, results[s]);
    printf("| which item comes next          | accuracy, %%  | of the possible | log-loss | of the possible |\n");
    printf("|--------------------------------|--------------|-----------------|----------|-----------------|\n");
    for (int row = 0; row < ROWS; row++) {
        double sum = 0, squares = 0, loss = 0, gain = 0, loss_gain = 0;
        for (int s = 0; s < seeds; s++) {
            const result *own = &results[s][row], *least = &results[s][0], *most = &results[s][LAW];
            sum += 100 * own->accuracy;
            squares += 1e4 * own->accuracy * own->accuracy;
            loss += own->log_loss;
            gain += (own->accuracy - least->accuracy) / (most->accuracy - least->accuracy);
            loss_gain += (own->log_loss - least->log_loss) / (most->log_loss - least->log_loss);
        }
        double mean = sum / seeds,
               deviation = seeds > 1 ? sqrt(fmax(0, squares - seeds * mean * mean) / (seeds - 1)) : 0;
        printf("| %-30s | %.2f (%.2f) | %13.1f %% | %8.4f | %13.1f %% |\n", rows[row].name, mean, deviation,
               100 * gain / seeds, loss / seeds, 100 * loss_gain / seeds);
    }
    return 0;
}
