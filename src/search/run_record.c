/* run_record.c: a training run of a sweep: training, evaluation and the sums over groups of sequences. */
#include "search/run_record.h"

#include "base/random.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>

void lp_run_record_clear(lp_run_record *record)
{
    lp_free(record->curve);
    lp_free(record->groups);
    lp_free(record->key);
    *record = (lp_run_record){0};
}

double lp_run_record_mean(const lp_run_record *record, int metric)
{
    double sum = 0;
    for (int g = 0; g < record->group_count; g++)
        sum += record->groups[g].sums[metric];
    return sum / (double)record->cases;
}

/* -------------------------------------------------------------------------------------------- evaluation ----- */

/* Sequences are groups by themselves where they are few. */
static int32_t group_of(int64_t sequence, int64_t sequences)
{
    if (sequences <= LP_RECORD_GROUPS)
        return (int32_t)sequence;
    lp_random_block block = lp_philox(0, LP_PURPOSE_BOOTSTRAP, 0, (uint64_t)sequence);
    return (int32_t)(block.word[0] % LP_RECORD_GROUPS);
}

static lapse_status take_groups(const lp_outcomes *outcomes, int64_t sequences, lp_run_record *record,
                                lapse_error *error)
{
    int limit = sequences <= LP_RECORD_GROUPS ? (int)sequences : LP_RECORD_GROUPS;
    record->groups = lp_alloc((size_t)limit, sizeof *record->groups);
    if (!record->groups)
        return lp_fail_memory(error, "the scores of a run", (size_t)limit * sizeof *record->groups);
    record->metrics = outcomes->metrics;
    record->cases = outcomes->count;
    for (int64_t i = 0; i < outcomes->count; i++) {
        lp_record_group *group = &record->groups[group_of(outcomes->sequence[i], sequences)];
        record->sequences += i == 0 || outcomes->sequence[i] != outcomes->sequence[i - 1];
        group->cases++;
        for (int m = 0; m < outcomes->metrics; m++)
            group->sums[m] += outcomes->values[i * outcomes->metrics + m];
    }
    for (int32_t g = 0; g < limit; g++) {
        record->groups[g].group = g;
        if (record->groups[g].cases > 0)
            record->groups[record->group_count++] = record->groups[g];
    }
    return LAPSE_OK;
}

static lp_outcome_setup setup_of(const lp_trainer *trainer, const lapse_model *model, lp_split split)
{
    return (lp_outcome_setup){.model = model,
                              .dataset = trainer->dataset,
                              .split = trainer->target_split,
                              .wanted = split,
                              .target = lp_model_target_find(model, NULL),
                              .backend = trainer->backend,
                              .threads = trainer->options.run.threads,
                              .protocol = LP_PROTOCOL_UNSEEN,
                              .seed = 1};
}

static lapse_status evaluate(const lp_trainer *trainer, const lapse_model *model, const lp_run_evaluation *evaluation,
                             lp_run_record *record, lapse_error *error)
{
    lp_outcome_setup setup = setup_of(trainer, model, evaluation->split);
    setup.protocol = evaluation->protocol;
    setup.negatives = evaluation->negatives;
    setup.max_cases = evaluation->cases;
    lp_outcomes outcomes;
    LP_TRY(lp_outcomes_make(&setup, &outcomes, error));
    lapse_status status = LAPSE_OK;
    if (outcomes.count == 0)
        status = lp_fail(error, LAPSE_ERROR_INPUT,
                         "there is nothing to evaluate: no sequence has a second event in the split '%s'",
                         lp_split_name(evaluation->split));
    else
        status = take_groups(&outcomes, trainer->dataset->sequence_count, record, error);
    lp_outcomes_clear(&outcomes);
    return status;
}

/* The validation score of a baseline, which training does not compute. */
static lapse_status validate_baseline(const lp_trainer *trainer, const lapse_model *model, double *score,
                                      lapse_error *error)
{
    int select = trainer->options.run.select;
    int column = select - (int)lp_metric_first((lp_task)model->config.task);
    lp_outcome_setup setup = setup_of(trainer, model, LP_SPLIT_VALID);
    lp_outcomes outcomes;
    LP_TRY(lp_outcomes_make(&setup, &outcomes, error));
    double sum = 0;
    for (int64_t i = 0; i < outcomes.count; i++)
        sum += outcomes.values[i * outcomes.metrics + column];
    *score = outcomes.count > 0 ? sum / (double)outcomes.count : NAN;
    lp_outcomes_clear(&outcomes);
    return LAPSE_OK;
}

/* ---------------------------------------------------------------------------------------------- training ----- */

typedef struct run_watch {
    lp_run_watch watch;
    void *context;
    lp_run_record *record;
    bool stopped;
} run_watch;

static bool on_progress(const lapse_progress *progress, void *context)
{
    run_watch *w = context;
    if (progress->epoch_end && !progress->times) {
        w->record->curve[w->record->epochs++] = (lp_epoch_point){progress->seconds, progress->score};
        w->record->seconds = progress->seconds;
    }
    if (w->watch && !w->watch(progress, w->context))
        w->stopped = true;
    return !w->stopped;
}

lapse_status lp_run_record_check(const lapse_train_options *options, lapse_error *error)
{
    static const char *const names[] = {"checkpoint", "checkpoint-every", "resume"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (lp_train_option_given(options, names[i]))
            return lp_fail(error, LAPSE_ERROR_USAGE,
                           "finished runs are kept instead of checkpoints: " LP_OPTION("--%s") " has no effect",
                           names[i]);
    return LAPSE_OK;
}

static lapse_status train(lp_trainer *trainer, run_watch *w, lapse_model **model, lapse_error *error)
{
    lp_run_record *record = w->record;
    bool network = lp_model_is_network(&trainer->model->config);
    record->curve = lp_alloc((size_t)trainer->options.run.epochs, sizeof *record->curve);
    if (!record->curve)
        return lp_fail_memory(error, "a learning curve", (size_t)trainer->options.run.epochs * sizeof *record->curve);
    record->parameters = network ? (int64_t)trainer->adam.size : 0;
    lapse_status status = lapse_trainer_run(trainer, on_progress, w, model, error);
    record->diverged = network && !isfinite(trainer->state.loss) && trainer->state.best_epoch == 0;
    if (status == LAPSE_ERROR_USAGE && record->diverged)
        return LAPSE_OK;
    LP_TRY(status);
    record->stopped = w->stopped;
    record->score = trainer->events.best_score;
    record->best_epoch = (int)trainer->events.best_epoch;
    return network ? LAPSE_OK : validate_baseline(trainer, *model, &record->score, error);
}

lapse_status lp_run_record_make(const lapse_dataset *dataset, const lapse_train_options *options,
                                const lp_run_evaluation *evaluation, lp_run_watch watch, void *context,
                                lp_run_record *record, lapse_model **model, lapse_error *error)
{
    lapse_trainer *trainer = NULL;
    lapse_model *made = NULL;
    *record = (lp_run_record){.score = NAN};
    LP_TRY(lapse_trainer_new(dataset, options, &trainer, error));
    run_watch w = {.watch = watch, .context = context, .record = record};
    lapse_status status = train(trainer, &w, &made, error);
    if (status == LAPSE_OK && made && !evaluation->none)
        status = evaluate(trainer, made, evaluation, record, error);
    lapse_trainer_free(trainer);
    if (status == LAPSE_OK && model)
        *model = made;
    else
        lapse_model_free(made);
    if (status != LAPSE_OK)
        lp_run_record_clear(record);
    return status;
}
