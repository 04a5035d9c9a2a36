/* histories.c: many live histories of one recommender, on one thread.
 *
 *     new    lapse_session_new after the first, and the bytes of a session: 3,000 items, 128 dims, context 200
 *     live   bytes of a history that has been queried once, over `count` histories: MovieLens defaults
 *     many   queries a second about 64 histories with cached rows, top 10: one call for all against one call for each, whose
 *            answers must be the same bit for bit; at 50 dims and at MovieLens defaults, with few events and many
 *
 *     save   a saved session restored and queried, with its cached rows and without; and the bytes of both
 *
 * MovieLens defaults: 3,416 items, 128 dims, 2 blocks, 2 heads, context 200, mercer, gap input.
 *
 *   histories [count] [events]
 */
#include "recommender.h"

#include <malloc.h>

enum { HISTORIES = 64, TOP = 10, CONTEXT = 200, ROUNDS = 40 };

static const recommender_shape published = {"mercer", 3416, 50, 2, 1, CONTEXT, false},
                               defaults = {"mercer", 3416, 128, 2, 2, CONTEXT, true},
                               bar = {"mercer", 3000, 128, 2, 2, CONTEXT, true};

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* The time of an event of a history. */
static double time_of(int history, int event)
{
    return 9.5e8 + 1000.0 * history + 40000.0 * event + (event * 7919 % 1000);
}

static lapse_session *open_history(const lapse_model *model, const recommender_shape *shape, int history, int events)
{
    lapse_error error;
    lapse_session *session = NULL;
    need(lapse_session_new(model, &session, &error), &error);
    for (int i = 0; i < events; i++) {
        const char *name = lapse_model_event_type_name(model, item_of(shape, 977 * history + i));
        need(lapse_session_append(session, time_of(history, i), name, &error), &error);
    }
    return session;
}

static void ask(lapse_session *session, double time)
{
    lapse_recommendation best[TOP];
    lapse_error error;
    int64_t count;
    need(lapse_session_recommend(session, time, TOP, true, best, &count, &error), &error);
}

static void measure_new(void)
{
    enum { SESSIONS = 200 };
    lapse_model *model = recommender_new(&bar);
    lapse_session *sessions[SESSIONS], *first = open_history(model, &bar, 0, 1);
    lapse_error error;
    ask(first, time_of(0, 2));
    size_t before = allocated();
    double begun = now();
    for (int i = 0; i < SESSIONS; i++)
        need(lapse_session_new(model, &sessions[i], &error), &error);
    double seconds = now() - begun;
    printf("new      %10.2f us %12.0f bytes\n", 1e6 * seconds / SESSIONS,
           (double)(allocated() - before) / (double)SESSIONS);
    for (int i = 0; i < SESSIONS; i++)
        lapse_session_free(sessions[i]);
    lapse_session_free(first);
    lapse_model_free(model);
}

static void measure_live(int count, int events)
{
    lapse_model *model = recommender_new(&defaults);
    lapse_session *first = open_history(model, &defaults, 0, events);
    lapse_session **sessions = calloc((size_t)count, sizeof *sessions);
    if (!sessions)
        stop("out of memory");
    ask(first, time_of(0, events));
    size_t before = allocated();
    double begun = now();
    for (int i = 0; i < count; i++) {
        sessions[i] = open_history(model, &defaults, i, events);
        ask(sessions[i], time_of(i, events));
    }
    double seconds = now() - begun;
    printf("live     %10.2f us %12.0f bytes each, %d histories of %d events\n", 1e6 * seconds / count,
           (double)(allocated() - before) / count, count, events);
    for (int i = 0; i < count; i++)
        lapse_session_free(sessions[i]);
    free(sessions);
    lapse_session_free(first);
    lapse_model_free(model);
}

static void fill(lapse_recommend_query *queries, lapse_session *const *sessions, int events, int round,
                 const lapse_item_filter *unseen, lapse_recommendation *best)
{
    for (int i = 0; i < HISTORIES; i++)
        queries[i] = (lapse_recommend_query){.session = sessions[i],
                                             .time = time_of(i, events) + 3600.0 * round,
                                             .filter = unseen,
                                             .top = TOP,
                                             .best = best + i * TOP};
}

static void measure_many(const char *what, const recommender_shape *shape, int events)
{
    static lapse_recommendation one[HISTORIES * TOP], many[HISTORIES * TOP];
    lapse_recommend_query queries[HISTORIES];
    lapse_session *sessions[HISTORIES];
    lapse_item_filter unseen = {.unseen = true};
    lapse_model *model = recommender_new(shape);
    lapse_error error;
    double alone = INFINITY, together = INFINITY;
    for (int i = 0; i < HISTORIES; i++)
        sessions[i] = open_history(model, shape, i, events);
    for (int round = 0; round < ROUNDS; round++) {
        double begun = now();
        fill(queries, sessions, events, round, &unseen, one);
        for (int i = 0; i < HISTORIES; i++)
            need(lapse_session_recommend_many(&queries[i], 1, NULL, &error), &error);
        alone = fmin(alone, now() - begun);
        begun = now();
        fill(queries, sessions, events, round, &unseen, many);
        need(lapse_session_recommend_many(queries, HISTORIES, NULL, &error), &error);
        together = fmin(together, now() - begun);
        if (memcmp(one, many, sizeof one) != 0)
            stop("the answers differ");
    }
    printf("%-8s %3d events: alone %8.0f queries/s, together %8.0f queries/s: %.2f x\n", what, events,
           HISTORIES / alone, HISTORIES / together, alone / together);
    for (int i = 0; i < HISTORIES; i++)
        lapse_session_free(sessions[i]);
    lapse_model_free(model);
}

static double restore_and_ask(const lapse_model *model, const void *buffer, int64_t size, double time)
{
    lapse_error error;
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        lapse_session *session = NULL;
        double begun = now();
        need(lapse_session_new(model, &session, &error), &error);
        need(lapse_session_restore(session, buffer, size, &error), &error);
        ask(session, time);
        least = fmin(least, now() - begun);
        lapse_session_free(session);
    }
    return least;
}

static void measure_save(const char *what, const recommender_shape *shape, int events)
{
    lapse_model *model = recommender_new(shape);
    lapse_session *session = open_history(model, shape, 1, events);
    lapse_error error;
    double seconds[2];
    int64_t size[2];
    ask(session, time_of(1, events));
    for (int rows = 0; rows < 2; rows++) {
        need(lapse_session_save(session, rows, NULL, 0, &size[rows], &error), &error);
        void *buffer = malloc((size_t)size[rows]);
        if (!buffer)
            stop("out of memory");
        need(lapse_session_save(session, rows, buffer, size[rows], &size[rows], &error), &error);
        seconds[rows] = restore_and_ask(model, buffer, size[rows], time_of(1, events));
        free(buffer);
    }
    printf("%-8s %3d events: restore and query %6.1f us with rows (%7lld bytes), %6.1f us without (%5lld bytes)\n",
           what, events, 1e6 * seconds[1], (long long)size[1], 1e6 * seconds[0], (long long)size[0]);
    lapse_session_free(session);
    lapse_model_free(model);
}

int main(int count, char **arguments)
{
    int histories = count > 1 ? atoi(arguments[1]) : 100000, events = count > 2 ? atoi(arguments[2]) : 20;
    measure_new();
    measure_live(histories, events);
    static const int lengths[] = {20, 50, 199};
    for (int i = 0; i < 3; i++) {
        measure_many("50 dims", &published, lengths[i]);
        measure_many("defaults", &defaults, lengths[i]);
    }
    for (int i = 0; i < 3; i++) {
        measure_save("50 dims", &published, lengths[i]);
        measure_save("defaults", &defaults, lengths[i]);
    }
    return 0;
}
