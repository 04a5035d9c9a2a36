/* test_concurrent.c: many threads at once give the results of one: sessions of one model, batch prediction, evaluation and
 * training on one dataset. The thread sanitizer runs this program (scripts/test.sh). */
#include "support/small_data.h"
#include "support/small_train.h"

#include "lapse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 12, TRAINERS = 4, ROUNDS = 3, TYPES = 5, EVENTS = 20, TOP = 3, QUERIES = 24 };

/* What all threads share. */
typedef struct subject {
    lapse_dataset *dataset;
    lapse_model *classifier, *recommender;
    lapse_train_options options;
} subject;

typedef bool (*work)(const subject *shared, int variant, double *out);

/* One thread's work and its results. */
typedef struct job {
    pthread_t thread;
    const subject *shared;
    work run;
    int variant;
    bool good;
    double out[256];
} job;

static void *run_job(void *context)
{
    job *j = context;
    j->good = j->run(j->shared, j->variant, j->out);
    return NULL;
}

/* Runs each variant of the work alone, then all at once, some more than once; compares the results bit by bit. */
static void compare(const subject *shared, work run, int variants, int threads)
{
    static job alone[THREADS], jobs[THREADS];
    assert_true(variants <= THREADS && threads <= THREADS);
    for (int i = 0; i < variants; i++) {
        alone[i] = (job){.shared = shared, .run = run, .variant = i};
        run_job(&alone[i]);
        assert_true(alone[i].good);
    }
    for (int i = 0; i < threads; i++) {
        jobs[i] = (job){.shared = shared, .run = run, .variant = i % variants};
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_join(jobs[i].thread, NULL), 0);
    for (int i = 0; i < threads; i++) {
        assert_true(jobs[i].good);
        assert_memory_equal(jobs[i].out, alone[jobs[i].variant].out, sizeof jobs[i].out);
    }
}

static bool use_session(const subject *shared, int variant, double *out)
{
    const lapse_model *model = variant % 2 ? shared->recommender : shared->classifier;
    lapse_session *session = NULL;
    lapse_recommendation best[TOP];
    int64_t found;
    bool good = lapse_session_new(model, &session, NULL) == LAPSE_OK;
    for (int round = 0; round < ROUNDS && good; round++) {
        lapse_session_clear(session);
        for (int i = 0; i < EVENTS && good; i++) {
            const char *name = lapse_model_event_type_name(model, (i * variant + round) % TYPES);
            double time = 100.0 * i + variant;
            good =
                lapse_session_append(session, time, name, NULL) == LAPSE_OK &&
                lapse_session_predict(session, time + 50, out + (size_t)TYPES * (size_t)(i % 10), NULL) == LAPSE_OK &&
                lapse_session_recommend(session, time + 70, TOP, i % 2, best, &found, NULL) == LAPSE_OK;
            for (int64_t k = 0; good && k < found; k++)
                out[100 + k] = best[k].score + (double)best[k].item;
        }
    }
    lapse_session_free(session);
    return good;
}

/* Many sessions in one run, which other threads make at the same time. */
static bool use_many(const subject *shared, int variant, double *out)
{
    enum { SESSIONS = 9 };
    const lapse_model *model = variant % 2 ? shared->recommender : shared->classifier;
    lapse_session *sessions[SESSIONS] = {NULL};
    lapse_session_query queries[SESSIONS];
    bool good = true;
    for (int s = 0; s < SESSIONS && good; s++) {
        good = lapse_session_new(model, &sessions[s], NULL) == LAPSE_OK;
        queries[s] = (lapse_session_query){sessions[s], 5000};
    }
    for (int round = 0; round < ROUNDS && good; round++) {
        for (int s = 0; s < SESSIONS && good; s++) {
            const char *name = lapse_model_event_type_name(model, (s + variant + round) % TYPES);
            good = lapse_session_append(sessions[s], 100.0 * round + s, name, NULL) == LAPSE_OK;
        }
        good = good && lapse_session_predict_many(queries, SESSIONS, NULL, out, NULL) == LAPSE_OK;
    }
    for (int s = 0; s < SESSIONS; s++)
        lapse_session_free(sessions[s]);
    return good;
}

static bool use_batch(const subject *shared, int variant, double *out)
{
    const lapse_model *model = variant % 2 ? shared->recommender : shared->classifier;
    lapse_predict_options options;
    lapse_query queries[QUERIES];
    lapse_recommendation best[QUERIES * TOP];
    int64_t counts[QUERIES];
    lapse_predict_options_default(&options);
    options.top = TOP;
    options.threads = 1 + variant;
    for (int q = 0; q < QUERIES; q++)
        queries[q] = (lapse_query){q % lapse_dataset_sequence_count(shared->dataset), 2e9 + variant % 2};
    if (lapse_predict_all(model, shared->dataset, queries, QUERIES, &options, best, counts, NULL) != LAPSE_OK)
        return false;
    for (int q = 0; q < QUERIES; q++)
        for (int64_t k = 0; k < counts[q]; k++)
            out[q * TOP + k] = best[q * TOP + k].score + (double)best[q * TOP + k].item;
    return true;
}

static bool use_evaluation(const subject *shared, int variant, double *out)
{
    lapse_evaluate_options options;
    lapse_rank_options rank_options;
    lapse_scores scores;
    lapse_rank_scores ranks;
    lapse_evaluate_options_default(&options);
    lapse_rank_options_default(&rank_options);
    options.threads = rank_options.threads = 1 + variant;
    options.bootstrap = rank_options.bootstrap = 10;
    rank_options.negatives = 2;
    if (lapse_evaluate(shared->classifier, shared->dataset, &options, &scores, NULL) != LAPSE_OK)
        return false;
    out[0] = scores.accuracy;
    out[1] = scores.log_loss;
    lapse_scores_clear(&scores);
    if (lapse_rank_evaluate(shared->recommender, shared->dataset, &rank_options, &ranks, NULL) != LAPSE_OK)
        return false;
    out[2] = (double)ranks.whole.cases;
    out[3] = ranks.whole.scores[0].mrr.mean;
    lapse_rank_scores_clear(&ranks);
    return true;
}

/* Variants of the loss, with one thread and with several. */
static bool use_trainer(const subject *shared, int variant, double *out)
{
    static const char *const losses[] = {"softmax", "bce", "sampled-softmax"};
    lapse_train_options *options = NULL;
    lapse_model *model = NULL;
    lapse_session *session = NULL;
    char threads[16];
    snprintf(threads, sizeof threads, "%d", 1 + variant);
    const char *const list[][2] = {{"task", variant < 3 ? "recommend" : "classify"},
                                   {"loss", losses[variant % 3]},
                                   {"threads", threads},
                                   {"epochs", "2"},
                                   {"dims", "8"},
                                   {"context", "6"},
                                   {"batch", "8"},
                                   {"shards", "3"},
                                   {"checkpoint", "none"}};
    bool good = lapse_train_options_new(&options, NULL) == LAPSE_OK;
    for (size_t i = 0; good && i < sizeof list / sizeof *list; i++)
        if (variant < 3 || strcmp(list[i][0], "loss") != 0)
            good = lapse_train_options_set(options, list[i][0], list[i][1], NULL) == LAPSE_OK;
    good = good && lapse_train(shared->dataset, options, NULL, NULL, &model, NULL) == LAPSE_OK &&
           lapse_session_new(model, &session, NULL) == LAPSE_OK &&
           lapse_session_append(session, 1, lapse_model_event_type_name(model, 0), NULL) == LAPSE_OK &&
           lapse_session_predict(session, 2, out, NULL) == LAPSE_OK;
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_train_options_free(options);
    return good;
}

/* Everything at once, on one dataset and its models. */
static bool use_anything(const subject *shared, int variant, double *out)
{
    static const work all[] = {use_session, use_batch, use_evaluation, use_trainer};
    return all[variant % 4](shared, variant / 4, out);
}

static void make_subject(subject *shared)
{
    shared->dataset = small_train_data(1);
    shared->options = small_train_options();
    shared->options.run.threads = 2;
    small_set(&shared->options, "encoding", "bochner-normal");
    shared->classifier = small_train(shared->dataset, &shared->options, NULL, NULL);
    small_set(&shared->options, "task", "recommend");
    shared->recommender = small_train(shared->dataset, &shared->options, NULL, NULL);
}

static subject shared;

static void one_model_in_many_sessions(void **state)
{
    (void)state;
    compare(&shared, use_session, 4, THREADS);
}

static void many_sessions_in_one_run(void **state)
{
    (void)state;
    compare(&shared, use_many, 4, THREADS);
}

/* The first queries of a model, by all threads at once, build what all of them share once. */
static void first_queries(void **state)
{
    (void)state;
    const char *path = "concurrent.safetensors";
    static job alone[2], jobs[THREADS];
    assert_int_equal(lapse_model_save(shared.classifier, path, NULL), LAPSE_OK);
    for (int round = 0; round < 8; round++) {
        subject fresh = {.recommender = shared.recommender};
        assert_int_equal(lapse_model_load(path, &fresh.classifier, NULL), LAPSE_OK);
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (job){.shared = &fresh, .run = i % 2 ? use_many : use_session, .variant = 2};
            assert_int_equal(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(jobs[i].thread, NULL), 0);
        for (int i = 0; i < 2; i++) {
            alone[i] = (job){.shared = &shared, .run = i ? use_many : use_session, .variant = 2};
            run_job(&alone[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_true(jobs[i].good);
            assert_memory_equal(jobs[i].out, alone[i % 2].out, sizeof jobs[i].out);
        }
        lapse_model_free(fresh.classifier);
    }
    remove(path);
}

static void batch_prediction(void **state)
{
    (void)state;
    compare(&shared, use_batch, 3, 6);
}

static void evaluation(void **state)
{
    (void)state;
    compare(&shared, use_evaluation, 3, 6);
}

static void trainers(void **state)
{
    (void)state;
    compare(&shared, use_trainer, TRAINERS, 2 * TRAINERS);
}

static void everything_at_once(void **state)
{
    (void)state;
    compare(&shared, use_anything, THREADS, THREADS);
}

static int open_subject(void **state)
{
    (void)state;
    make_subject(&shared);
    return 0;
}

static int close_subject(void **state)
{
    (void)state;
    lapse_model_free(shared.classifier);
    lapse_model_free(shared.recommender);
    lapse_dataset_close(shared.dataset);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_queries),
                                       cmocka_unit_test(one_model_in_many_sessions),
                                       cmocka_unit_test(many_sessions_in_one_run),
                                       cmocka_unit_test(batch_prediction),
                                       cmocka_unit_test(evaluation),
                                       cmocka_unit_test(trainers),
                                       cmocka_unit_test(everything_at_once)};
    return cmocka_run_group_tests(tests, open_subject, close_subject);
}
