/* score_table.c: see score_table.h. Intervals are shown only if the bootstrap computed them: otherwise low and high equal
 * the score or are NaN. */
#include "score_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "table.h"

static bool has_interval(double low, double high)
{
    return !isnan(low) && !isnan(high) && low < high;
}

void cli_target_time_print(FILE *file, const char *rule)
{
    const char *meaning = strcmp(rule, "known") == 0     ? "the model is told when the next event happens, and predicts which"
                          : strcmp(rule, "unknown") == 0 ? "the model is not told when the next event happens"
                                                         : "the model does not read the time of the next event";
    fprintf(file, "target time  %s: %s\n", rule, meaning);
}

void cli_scores_print(FILE *file, const lapse_scores *scores)
{
    if (strcmp(scores->target, "event") != 0)
        fprintf(file, "target       %s\n", scores->target);
    fprintf(file, "split        %s: %s in %s\n", scores->split, cli_plural(scores->cases, "event", "events").text,
            cli_plural(scores->sequences, "sequence", "sequences").text);
    cli_target_time_print(file, scores->target_time);
    fprintf(file, "accuracy     %s", cli_percent(scores->accuracy, 2).text);
    if (has_interval(scores->accuracy_low, scores->accuracy_high))
        fprintf(file, " (95 %% interval %.2f to %.2f)", 100 * scores->accuracy_low, 100 * scores->accuracy_high);
    fprintf(file, "\nlog-loss     %.4f nats per event", scores->log_loss);
    if (has_interval(scores->log_loss_low, scores->log_loss_high))
        fprintf(file, " (95 %% interval %.4f to %.4f)", scores->log_loss_low, scores->log_loss_high);
    fprintf(file, "\nmacro-F1     %.4f\n", scores->macro_f1);
}

static int by_cases(const void *a, const void *b)
{
    const lapse_class_score *x = *(const lapse_class_score *const *)a, *y = *(const lapse_class_score *const *)b;
    if (x->cases != y->cases)
        return x->cases < y->cases ? 1 : -1;
    return x < y ? -1 : x > y;
}

/* The classes in the order shown, or NULL. The caller frees the array. */
static const lapse_class_score **sorted(const lapse_scores *scores)
{
    const lapse_class_score **classes = calloc((size_t)scores->class_count + 1, sizeof *classes);
    if (!classes)
        return NULL;
    for (int64_t i = 0; i < scores->class_count; i++)
        classes[i] = &scores->classes[i];
    qsort(classes, (size_t)scores->class_count, sizeof *classes, by_cases);
    return classes;
}

bool cli_scores_print_classes(FILE *file, const lapse_scores *scores)
{
    static const char *const headings[] = {"class", "cases", "predicted", "correct", "precision", "recall", "F1"};
    const lapse_class_score **classes = sorted(scores);
    cli_table table = {.align = "lrrrrrr"};
    if (!classes)
        return false;
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        cli_table_add(&table, "%s", headings[i]);
    for (int64_t i = 0; i < scores->class_count; i++) {
        cli_table_add(&table, "%s", classes[i]->name);
        cli_table_add(&table, "%s", cli_count(classes[i]->cases).text);
        cli_table_add(&table, "%s", cli_count(classes[i]->predicted).text);
        cli_table_add(&table, "%s", cli_count(classes[i]->correct).text);
        cli_table_add(&table, "%s", cli_percent(classes[i]->precision, 1).text);
        cli_table_add(&table, "%s", cli_percent(classes[i]->recall, 1).text);
        cli_table_add(&table, "%.3f", classes[i]->f1);
    }
    free(classes);
    return cli_table_print(&table, file, 0);
}

static bool classes_json(cli_json *json, const lapse_scores *scores)
{
    const lapse_class_score **classes = sorted(scores);
    cli_json_array(json, "classes");
    for (int64_t i = 0; classes && i < scores->class_count; i++) {
        cli_json_object(json, NULL);
        cli_json_text(json, "name", classes[i]->name);
        cli_json_whole(json, "cases", classes[i]->cases);
        cli_json_whole(json, "predicted", classes[i]->predicted);
        cli_json_whole(json, "correct", classes[i]->correct);
        cli_json_number(json, "precision", classes[i]->precision, 9);
        cli_json_number(json, "recall", classes[i]->recall, 9);
        cli_json_number(json, "f1", classes[i]->f1, 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    free(classes);
    return classes != NULL;
}

bool cli_scores_json(cli_json *json, const lapse_scores *scores, bool classes)
{
    cli_json_text(json, "target", scores->target);
    cli_json_text(json, "split", scores->split);
    cli_json_text(json, "target_time", scores->target_time);
    cli_json_whole(json, "cases", scores->cases);
    cli_json_whole(json, "sequences", scores->sequences);
    cli_json_number(json, "accuracy", scores->accuracy, 9);
    cli_json_number(json, "log_loss", scores->log_loss, 9);
    cli_json_number(json, "macro_f1", scores->macro_f1, 9);
    if (has_interval(scores->accuracy_low, scores->accuracy_high)) {
        cli_json_number(json, "accuracy_low", scores->accuracy_low, 9);
        cli_json_number(json, "accuracy_high", scores->accuracy_high, 9);
        cli_json_number(json, "log_loss_low", scores->log_loss_low, 9);
        cli_json_number(json, "log_loss_high", scores->log_loss_high, 9);
    }
    return !classes || classes_json(json, scores);
}

/* -------------------------------------------------------------------------------------------- all targets ---- */

lapse_status cli_targets_evaluate(cli_targets *targets, const lapse_simulation *law, const lapse_model *model,
                                  const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                  lapse_error *error)
{
    lapse_evaluate_options each = *options;
    lapse_status status = LAPSE_OK;
    const char *predicted;
    while (status == LAPSE_OK && targets->count < 2 && (predicted = lapse_model_target(model, targets->count))) {
        char target[512]; /* options->target says which events are targets */
        snprintf(target, sizeof target, "%s%s%.400s", predicted, options->target ? "," : "",
                 options->target ? options->target : "");
        each.target = target;
        lapse_scores *scores = &targets->scores[targets->count];
        status = law ? lapse_simulation_evaluate(law, model, dataset, &each, scores, error)
                     : lapse_evaluate(model, dataset, &each, scores, error);
        targets->count += status == LAPSE_OK;
    }
    if (status != LAPSE_OK)
        cli_targets_clear(targets);
    return status;
}

void cli_targets_clear(cli_targets *targets)
{
    for (int i = 0; i < targets->count; i++)
        lapse_scores_clear(&targets->scores[i]);
    targets->count = 0;
}

bool cli_targets_print(FILE *file, const cli_targets *targets, bool classes)
{
    bool whole = true;
    for (int i = 0; i < targets->count; i++) {
        if (i > 0)
            fputc('\n', file);
        cli_scores_print(file, &targets->scores[i]);
        if (classes)
            fputc('\n', file);
        whole = (!classes || cli_scores_print_classes(file, &targets->scores[i])) && whole;
    }
    return whole;
}

bool cli_targets_json(cli_json *json, const cli_targets *targets, bool classes)
{
    bool whole = true;
    for (int i = 0; i < targets->count; i++) {
        if (i > 0)
            cli_json_object(json, targets->scores[i].target);
        whole = cli_scores_json(json, &targets->scores[i], classes) && whole;
        if (i > 0)
            cli_json_end(json, '}');
    }
    return whole;
}
