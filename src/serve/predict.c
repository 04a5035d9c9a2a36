/* predict.c: many questions to the sequences of a dataset, on several threads.
 *
 * A thread has a session of its own and takes one sequence after another: its events go in as one run, then each question
 * costs a row. Nothing a thread does depends on the others, so the answers do not depend on their number.
 */
#include "base/threads.h"
#include "model/translate.h"
#include "serve/session.h"

#include <string.h>

/* Tasks a thread takes: enough that the last ones end together. */
enum { TASKS_PER_THREAD = 16 };

typedef struct job {
    const lapse_model *model;
    const lapse_dataset *dataset;
    lp_translation translation;
    const lapse_question *questions;
    int64_t question_count;
    const lapse_predict_options *options;
    const char *target;
    lapse_recommendation *best;
    int64_t *counts;
    int task_count;
    lapse_session **sessions; /* [threads] */
    lapse_error *errors;      /* [task_count]: the first of each task */
} job;

void lapse_predict_options_default(lapse_predict_options *options)
{
    *options = (lapse_predict_options){.top = 10};
}

/* Whether the model knows all of an event; its fields go to *fields. */
static bool read_event(const job *j, uint64_t event, lp_field_number *fields)
{
    const lp_event_columns *columns = &j->translation.columns;
    bool known = columns->kind[event] >= 0;
    for (int f = 0; f < columns->field_count; f++) {
        memcpy(&fields[f], (const char *)columns->field[f] + event * sizeof *fields, sizeof *fields);
        known = known && (j->model->config.fields[f].type == LAPSE_FIELD_NUMBER || fields[f].category >= 0);
    }
    return known;
}

static void read_sequence(const job *j, lapse_session *session, int64_t sequence)
{
    lp_field_number fields[LP_FIELD_LIMIT];
    lapse_session_clear(session);
    for (uint64_t i = j->dataset->start[sequence]; i < j->dataset->start[sequence + 1]; i++)
        if (read_event(j, i, fields))
            lp_session_add(session, j->dataset->time[i], j->translation.columns.kind[i], fields);
}

static int64_t task_begin(const job *j, int task)
{
    /* Questions to one sequence stay in one task. */
    int64_t at = (int64_t)((double)j->question_count * task / j->task_count);
    while (at > 0 && at < j->question_count && j->questions[at].sequence == j->questions[at - 1].sequence)
        at++;
    return at;
}

static void answer_task(void *context, int task, int worker)
{
    job *j = context;
    lapse_session *session = j->sessions[worker];
    const lapse_predict_options *options = j->options;
    int64_t first = task_begin(j, task), end = task + 1 < j->task_count ? task_begin(j, task + 1) : j->question_count;
    bool unseen = options->unseen && strcmp(j->target, lp_predict_names[LP_TARGET_EVENT]) == 0;
    lapse_status status = LAPSE_OK;
    for (int64_t q = first; q < end && status == LAPSE_OK; q++) {
        const lapse_question *question = &j->questions[q];
        if (q == first || question->sequence != question[-1].sequence)
            read_sequence(j, session, question->sequence);
        j->counts[q] = -1;
        if (session->count > 0)
            status = lp_session_best(session, question->time, j->target, options->top, unseen,
                                     j->best + q * options->top, &j->counts[q], &j->errors[task]);
    }
}

static lapse_status check(job *j, lapse_error *error)
{
    const lapse_predict_options *options = j->options;
    lp_target target = lp_model_target_find(j->model, options->target);
    if (target == LP_TARGET_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", options->target,
                       lapse_model_target(j->model, 0));
    j->target = lp_predict_names[target];
    if (options->top < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%lld answers were asked for; at least 1 is wanted",
                       (long long)options->top);
    for (int64_t q = 0; q < j->question_count; q++)
        if (j->questions[q].sequence < 0 || j->questions[q].sequence >= j->dataset->sequence_count)
            return lp_fail(error, LAPSE_ERROR_USAGE, "question %lld is about sequence %lld; there are 0 to %lld",
                           (long long)q, (long long)j->questions[q].sequence,
                           (long long)j->dataset->sequence_count - 1);
    return LAPSE_OK;
}

/* Sessions for all threads, then all tasks; the first error is that of the first task that has one. */
static lapse_status answer_all(job *j, int threads, lapse_error *error)
{
    j->task_count =
        (int)(j->question_count < (int64_t)threads * TASKS_PER_THREAD ? j->question_count : threads * TASKS_PER_THREAD);
    j->sessions = lp_alloc((size_t)threads, sizeof(lapse_session *));
    j->errors = lp_alloc((size_t)j->task_count, sizeof *j->errors);
    lapse_status status = j->sessions && j->errors
                              ? LAPSE_OK
                              : lp_fail_memory(error, "answers", (size_t)j->task_count * sizeof *j->errors);
    for (int i = 0; status == LAPSE_OK && i < threads; i++)
        status = lapse_session_new(j->model, &j->sessions[i], error);
    if (status == LAPSE_OK)
        lp_threads_run(threads, j->task_count, answer_task, j);
    for (int task = 0; status == LAPSE_OK && task < j->task_count; task++) {
        status = j->errors[task].status;
        if (status != LAPSE_OK && error)
            *error = j->errors[task];
    }
    for (int i = 0; j->sessions && i < threads; i++)
        lapse_session_free(j->sessions[i]);
    lp_free(j->sessions);
    lp_free(j->errors);
    return status;
}

lapse_status lapse_predict_all(const lapse_model *model, const lapse_dataset *histories,
                               const lapse_question *questions, int64_t question_count,
                               const lapse_predict_options *options, lapse_recommendation *best, int64_t *counts,
                               lapse_error *error)
{
    job j = {.model = model,
             .dataset = histories,
             .questions = questions,
             .question_count = question_count,
             .options = options,
             .best = best,
             .counts = counts};
    LP_TRY(check(&j, error));
    if (options->skip_unknown)
        LP_TRY(lp_translation_init_known(&j.translation, model, histories, error));
    else
        LP_TRY(lp_translation_init(&j.translation, model, histories, error));
    int threads = options->threads > 0 ? options->threads : lp_threads_available();
    threads = lp_backend_find("cpu")->threads(threads);
    lapse_status status = answer_all(&j, threads, error);
    lp_translation_clear(&j.translation);
    return status;
}
