/* trials.c: see trials.h. */
#include "search/trials.h"

#include "base/memory.h"
#include "data/dataset/fingerprint.h"
#include "model/model_file.h"
#include "evaluate/bootstrap.h"
#include "train/provenance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- scores ----- */

enum { MEDIAN_OF = 3 };

static bool better(const lp_trials *t, double value, double than)
{
    return lp_metric_better(t->select, value, than);
}

int lp_trials_best(const lp_trials *t)
{
    int best = -1;
    for (int i = 0; i < t->count; i++) {
        const lp_trial *trial = &t->list[i];
        if (trial->state == LP_TRIAL_DONE && !trial->record.diverged && !isnan(trial->record.score) &&
            (best < 0 || better(t, trial->record.score, t->list[best].record.score)))
            best = i;
    }
    return best;
}

/* The best score of the first `epochs` epochs. */
static double best_until(const lp_trials *t, const lp_run_record *record, int epochs)
{
    double best = NAN;
    for (int e = 0; e < epochs && e < record->epochs; e++)
        if (better(t, record->curve[e].score, best))
            best = record->curve[e].score;
    return best;
}

bool lp_trials_hopeless(const lp_trials *t, const lp_trial *mine)
{
    const lp_run_record *first = &t->list[0].record;
    double scores[LP_MAX_TRIALS];
    int count = 0, epoch = mine->record.epochs;
    if (mine == &t->list[0] || t->list[0].state != LP_TRIAL_DONE || 3 * epoch < first->best_epoch)
        return false;
    for (int i = 0; i < t->count; i++) {
        const lp_trial *other = &t->list[i];
        if (other == mine || other->state != LP_TRIAL_DONE || other->record.diverged || other->record.epochs < epoch)
            continue;
        double score = best_until(t, &other->record, epoch);
        if (!isnan(score))
            scores[count++] = score;
    }
    if (count < MEDIAN_OF)
        return false;
    lp_sort_numbers(scores, count);
    double median = lp_quantile(scores, count, 0.5), best = best_until(t, &mine->record, epoch);
    return best != median && !better(t, best, median);
}

/* ---------------------------------------------------------------------------------------------- changes ----- */

/* "name=value" lines of the options that differ from the base, and their text for people. */
static bool describe(const lp_trials *t, const lapse_train_options *options, lp_buffer *lines,
                     char text[LP_TRIAL_CHANGE])
{
    lapse_option option;
    char value[LP_OPTION_TEXT_SIZE], before[LP_OPTION_TEXT_SIZE];
    size_t used = 0;
    bool good = lp_buffer_print(lines, "%s", t->header);
    text[0] = 0;
    for (int i = 0; good && lapse_train_option(i, &option); i++) {
        if (!options->given[i] || lp_train_option_given(&t->base, option.name))
            continue;
        lapse_train_options_get(options, option.name, value, sizeof value);
        lapse_train_options_get(&t->base, option.name, before, sizeof before);
        if (option.initial &&
            strcmp(value, before) == 0) /* a default that a rule chooses may depend on other changes */
            continue;
        good = lp_buffer_print(lines, "%s=%s\n", option.name, value);
        int size = snprintf(text + used, LP_TRIAL_CHANGE - used, "%s%s %s", used ? ", " : "", option.name, value);
        used = size > 0 && used + (size_t)size < LP_TRIAL_CHANGE ? used + (size_t)size : used;
    }
    return good;
}

bool lp_trials_describe(const lp_trials *t, const lapse_train_options *options, char text[LP_TRIAL_CHANGE])
{
    lp_buffer lines = {0};
    bool good = describe(t, options, &lines, text);
    lp_buffer_clear(&lines);
    return good;
}

bool lp_trials_have(const lp_trials *t, const char *change)
{
    for (int i = 0; i < t->count; i++)
        if (t->list[i].state != LP_TRIAL_NONE && t->list[i].options && strcmp(t->list[i].change, change) == 0)
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------ files ----- */

enum { TRIAL_PATH = LP_PATH_SIZE + 32 };

static const char *trial_path(const lp_trials *t, int index, const char *suffix, char path[TRIAL_PATH])
{
    snprintf(path, TRIAL_PATH, "%s/trial-%04d.%s", t->folder.path, index + 1, suffix);
    return path;
}

/* The number that a claim of this trial has: claims drop the two lowest bits. */
static uint64_t number_of(int index)
{
    return (uint64_t)(index + 1) << 2;
}

bool lp_trials_claim(lp_trials *t, int index)
{
    return lp_run_folder_claim(&t->folder, number_of(index));
}

void lp_trials_release(const lp_trials *t, int index)
{
    lp_run_folder_release(&t->folder, number_of(index));
}

/* The options of a trial that another process has finished, from the lines of its key. */
static lapse_status read_options(lp_trials *t, lp_trial *trial, lapse_error *error)
{
    trial->options = lp_alloc(1, sizeof *trial->options);
    if (!trial->options)
        return lp_fail_memory(error, "a trial", sizeof *trial->options);
    *trial->options = t->base;
    for (char *line = trial->record.key + strlen(t->header), *end; *line; line = end + 1) {
        char *equals = strchr(line, '=');
        end = strchr(line, '\n');
        if (!end || !equals || equals > end)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "a trial's file is damaged; delete the folder");
        *equals = *end = 0;
        LP_TRY(lapse_train_options_set(trial->options, line, equals + 1, error));
    }
    return lp_trials_describe(t, trial->options, trial->change) ? LAPSE_OK
                                                                : lp_fail_memory(error, "a trial", LP_TRIAL_CHANGE);
}

lapse_status lp_trials_read(lp_trials *t, int index, bool *found, lapse_error *error)
{
    char path[TRIAL_PATH];
    lp_trial *trial = &t->list[index];
    *found = false;
    if (!*t->folder.path)
        return LAPSE_OK;
    LP_TRY(lp_run_record_load(&trial->record, t->header, trial_path(t, index, "json", path), found, error));
    if (!*found)
        return LAPSE_OK;
    LP_TRY(read_options(t, trial, error));
    trial->state = LP_TRIAL_DONE;
    if (index >= t->count)
        t->count = index + 1;
    return LAPSE_OK;
}

lapse_status lp_trials_look(lp_trials *t, int *others, lapse_error *error)
{
    *others = 0;
    for (int i = 0; *t->folder.path && i < LP_MAX_TRIALS; i++) {
        bool found = false;
        lp_trial *trial = &t->list[i];
        if (trial->state == LP_TRIAL_RUNNING || trial->state == LP_TRIAL_DONE)
            continue;
        /* In this order: a trial is saved, then released. */
        bool elsewhere = lp_run_folder_is_elsewhere(&t->folder, number_of(i));
        LP_TRY(lp_trials_read(t, i, &found, error));
        if (!found)
            trial->state = elsewhere ? LP_TRIAL_ELSEWHERE : LP_TRIAL_NONE;
        *others += !found && elsewhere;
        if (!found && !elsewhere && i >= t->count)
            break;
        if (i >= t->count)
            t->count = i + 1;
    }
    return LAPSE_OK;
}

lapse_status lp_trials_save(const lp_trials *t, int index, const lapse_model *model, lapse_error *error)
{
    char path[TRIAL_PATH], change[LP_TRIAL_CHANGE];
    const lp_trial *trial = &t->list[index];
    lp_buffer key = {0};
    if (!*t->folder.path)
        return LAPSE_OK;
    if (model)
        LP_TRY(lapse_model_save(model, trial_path(t, index, "safetensors", path), error));
    lapse_status status =
        describe(t, trial->options, &key, change)
            ? lp_run_record_save(&trial->record, key.data, change, trial_path(t, index, "json", path), error)
            : lp_fail_memory(error, "a trial", LP_TRIAL_CHANGE);
    lp_buffer_clear(&key);
    return status;
}

lapse_status lp_trials_load_model(const lp_trials *t, int index, lapse_model **model, lapse_error *error)
{
    char path[TRIAL_PATH];
    return lapse_model_load(trial_path(t, index, "safetensors", path), model, error);
}

/* ------------------------------------------------------------------------------------------ model's card ----- */

static lapse_status record_trial(const lp_trials *t, int index, lapse_model *model, lapse_error *error)
{
    const lp_trial *trial = &t->list[index];
    const lp_run_record *record = &trial->record;
    char name[64], number[LP_NUMBER_SIZE];
    const char *what = *trial->change ? trial->change : "options as given";
    snprintf(name, sizeof name, "tune.trial.%d", index + 1);
    if (record->diverged || isnan(record->score))
        return lp_model_property_set(model, error, name, "%s: %s", what, record->diverged ? "diverged" : "no epoch");
    snprintf(number, sizeof number, "%.6g", record->score);
    if (record->epochs == 0)
        return lp_model_property_set(model, error, name, "%s: %s %s", what, lp_metric_names[t->select], number);
    return lp_model_property_set(model, error, name, "%s: %s %s in epoch %d of %d%s", what, lp_metric_names[t->select],
                                 number, record->best_epoch, record->epochs, record->stopped ? ", stopped" : "");
}

lapse_status lp_trials_record(const lp_trials *t, double budget, int best, lapse_model *model, lapse_error *error)
{
    int trials = 0;
    for (int i = 0; i < t->count; i++)
        trials += t->list[i].state == LP_TRIAL_DONE;
    LP_TRY(lp_model_property_number(model, error, "tune.trials", trials));
    LP_TRY(lp_model_property_number(model, error, "tune.budget", budget));
    LP_TRY(lp_model_property_number(model, error, "tune.best", best + 1));
    for (int i = 0; i < t->count; i++)
        if (t->list[i].state == LP_TRIAL_DONE)
            LP_TRY(record_trial(t, i, model, error));
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------ open, close ----- */

static lapse_status make_header(lp_trials *t, const lapse_dataset *dataset, lapse_error *error)
{
    lp_buffer out = {0};
    lapse_option option;
    char text[LP_OPTION_TEXT_SIZE];
    bool good =
        lp_buffer_print(&out, "lapse=%s\ncommit=%s\ndata=%016llx\nseed=%llu\n", LAPSE_VERSION, lp_build_commit(),
                        (unsigned long long)lp_dataset_fingerprint(dataset), (unsigned long long)t->base.run.seed);
    for (int i = 0; good && lapse_train_option(i, &option); i++)
        if (t->base.given[i] && strcmp(option.name, "threads") != 0 && strcmp(option.name, "seed") != 0)
            good = lp_buffer_print(&out, "%s=%s\n", option.name,
                                   lapse_train_options_get(&t->base, option.name, text, sizeof text));
    good = good && lp_buffer_print(&out, "--\n");
    if (good)
        t->header = out.data;
    else
        lp_buffer_clear(&out);
    return good ? LAPSE_OK : lp_fail_memory(error, "a search", out.size);
}

lapse_status lp_trials_open(lp_trials *t, const lapse_dataset *dataset, const char *folder, lapse_error *error)
{
    LP_TRY(make_header(t, dataset, error));
    LP_TRY(lp_run_folder_open(&t->folder, folder, error));
    t->list = lp_alloc(LP_MAX_TRIALS, sizeof *t->list);
    return t->list ? LAPSE_OK : lp_fail_memory(error, "a search", LP_MAX_TRIALS * sizeof *t->list);
}

void lp_trials_close(lp_trials *t)
{
    for (int i = 0; t->list && i < LP_MAX_TRIALS; i++) {
        lp_run_record_clear(&t->list[i].record);
        lp_free(t->list[i].options);
    }
    lp_free(t->list);
    lp_buffer_clear(&(lp_buffer){.data = t->header});
    lp_run_folder_close(&t->folder);
}
