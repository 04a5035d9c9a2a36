/* question.c: latency of one query to a recommender, on one thread.
 *
 *     3,416 items, 50 dims, 2 blocks, 1 head, a history of 200 events, the top 10 of all items
 *
 * The parameters are random: latency does not depend on them. The result is first compared with that of the whole window run
 * through the ordinary network, with reference kernels in double; a wrong one is not timed. Four cases:
 *
 *     ask       the same history, another query time: one row per block
 *     grow      after one more event, while the window still grows
 *     slide     after one more event, when the window drops its oldest one: the whole window again
 *     open      a new history of 200 events, then a query
 *
 *   question [encoding] [rounds]
 */
#include "recommender.h"

#include "model/runner.h"

enum { ITEMS = 3416, DIMS = 50, BLOCKS = 2, CONTEXT = 200, TOP = 10, EVENTS = 4096 };

static double times[EVENTS];
static recommender_shape shape;
static const lapse_model *recommender;

static lapse_model *make_model(const char *encoding)
{
    shape = (recommender_shape){encoding, ITEMS, DIMS, BLOCKS, 1, CONTEXT, false};
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 1);
    for (int i = 0; i < EVENTS; i++)
        times[i] = 9.5e8 + (i ? times[i - 1] - 9.5e8 : 0) + 40000 * lp_random_uniform(&random);
    return recommender_new(&shape);
}

static void append(lapse_session *session, int event)
{
    lapse_error error;
    const char *name = lapse_model_event_type_name(recommender, item_of(&shape, event));
    need(lapse_session_append(session, times[event], name, &error), &error);
}

static void ask(lapse_session *session, double time, lapse_recommendation *best)
{
    lapse_error error;
    int64_t count;
    need(lapse_session_recommend(session, time, TOP, true, best, &count, &error), &error);
    if (count != TOP)
        stop("too few answers");
}

/* ---------------------------------------------------------------------------------------- is it right? ------- */

/* Scores of all items after events first .. first + CONTEXT - 1, by the ordinary network in double. */
static void score_all(const lapse_model *model, int first, double time, double *scores)
{
    const lp_backend *backend = lp_backend_find("reference-double");
    lp_network network;
    lp_plan plan;
    lapse_error error;
    static int32_t type[CONTEXT], position[CONTEXT];
    static double at[CONTEXT], query_time[CONTEXT];
    int32_t target_position = CONTEXT - 1, segment[] = {0, CONTEXT}, draw = 0;
    for (int t = 0; t < CONTEXT; t++) {
        type[t] = item_of(&shape, first + t);
        position[t] = t;
        at[t] = times[first + t] - time;
        query_time[t] = t + 1 < CONTEXT ? times[first + t + 1] - time : 0;
    }
    need(lp_network_build(&network, &model->config, false, &error), &error);
    lp_extent extent = {.pairs = CONTEXT * CONTEXT, .longest = CONTEXT};
    extent.rows[LP_ROWS_TOKENS] = extent.rows[LP_ROWS_TARGETS] = CONTEXT;
    need(lp_plan_make(&plan, &network.graph, &extent, sizeof(double), &error), &error);
    double *parameters = malloc(network.graph.parameter_size * sizeof *parameters);
    char *work = backend->buffer_new(backend->context, plan.work_size),
         *scratch = backend->buffer_new(backend->context, plan.scratch_size);
    if (!parameters || !work || !scratch)
        stop("out of memory");
    for (size_t i = 0; i < network.graph.parameter_size; i++)
        parameters[i] = (double)model->parameters[i];
    void *inputs[LP_FEED_LIMIT] = {[LP_FEED_EVENT] = type,
                                   [LP_FEED_POSITION] = position,
                                   [LP_FEED_TIME] = at,
                                   [LP_FEED_QUERY_TIME] = query_time,
                                   [LP_FEED_TARGET_POSITION] = &target_position,
                                   [LP_FEED_FREQUENCY_SAMPLE] = &draw};
    lp_run run = {.plan = &plan,
                  .work = work,
                  .scratch = scratch,
                  .inputs = inputs,
                  .parameters = parameters,
                  .rows = {[LP_ROWS_TOKENS] = CONTEXT, [LP_ROWS_TARGETS] = 1},
                  .segments = 1,
                  .segment = segment};
    backend->run(backend->context, &run);
    const double *state = lp_run_data(&run, network.state);
    for (int i = 0; i < ITEMS; i++) {
        scores[i] = parameters[network.bias->offset + (size_t)i];
        for (int c = 0; c < DIMS; c++)
            scores[i] += state[c] * parameters[network.items->offset + (size_t)(i * DIMS + c)];
    }
    backend->buffer_free(backend->context, work);
    backend->buffer_free(backend->context, scratch);
    free(parameters);
    lp_graph_clear(&network.graph);
}

/* The answers have their scores, and nothing unseen scores higher than the last of them. */
static void check(const lapse_model *model, int first, double time, const lapse_recommendation *best)
{
    static double scores[ITEMS];
    static bool listed[ITEMS];
    score_all(model, first, time, scores);
    memset(listed, 0, sizeof listed);
    for (int t = 0; t < CONTEXT; t++)
        listed[item_of(&shape, first + t)] = true;
    for (int i = 0; i < TOP; i++) {
        if (listed[best[i].item] || fabs(best[i].score - scores[best[i].item]) > 1e-4 * fmax(1, fabs(best[i].score)))
            stop("a wrong answer");
        listed[best[i].item] = true;
    }
    for (int i = 0; i < ITEMS; i++)
        if (!listed[i] && scores[i] > best[TOP - 1].score + 1e-4)
            stop("a better item is missing");
}

/* ---------------------------------------------------------------------------------------------- its time ----- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, by_size);
    printf("%-8s p50 %8.1f us   p99 %8.1f us   least %8.1f us   (%d)\n", what, 1e6 * seconds[count / 2],
           1e6 * seconds[count * 99 / 100], 1e6 * seconds[0], count);
}

int main(int count, char **arguments)
{
    const char *encoding = count > 1 ? arguments[1] : "mercer";
    int rounds = count > 2 ? atoi(arguments[2]) : 2000;
    rounds = rounds < 1 ? 1 : rounds > EVENTS - CONTEXT ? EVENTS - CONTEXT : rounds;
    lapse_model *model = make_model(encoding);
    recommender = model;
    lapse_session *session = NULL;
    lapse_recommendation best[TOP];
    lapse_error error;
    static double seconds[EVENTS];
    need(lapse_session_new(model, &session, &error), &error);

    for (int i = 0; i < CONTEXT; i++)
        append(session, i);
    ask(session, times[CONTEXT - 1] + 86400, best);
    check(model, 0, times[CONTEXT - 1] + 86400, best);
    printf("%s: %d items, %d dims, %d blocks, history %d, top %d\n", encoding, ITEMS, DIMS, BLOCKS, CONTEXT, TOP);
    for (int i = 0; i < rounds; i++) {
        double begun = now();
        ask(session, times[CONTEXT - 1] + 3600.0 * (i + 1), best);
        seconds[i] = now() - begun;
    }
    check(model, 0, times[CONTEXT - 1] + 3600.0 * rounds, best);
    report("ask", seconds, rounds);

    for (int i = 0; i < rounds; i++) {
        if (i % (CONTEXT / 2) == 0) {
            lapse_session_clear(session);
            for (int k = 0; k < CONTEXT / 2; k++)
                append(session, k);
            ask(session, times[CONTEXT / 2 - 1], best);
        }
        double begun = now();
        append(session, CONTEXT / 2 + i % (CONTEXT / 2));
        ask(session, times[CONTEXT / 2 + i % (CONTEXT / 2)] + 3600, best);
        seconds[i] = now() - begun;
        if (i == CONTEXT / 2 - 1)
            check(model, 0, times[CONTEXT - 1] + 3600, best);
    }
    report("grow", seconds, rounds);

    lapse_session_clear(session);
    for (int i = 0; i < CONTEXT; i++)
        append(session, i);
    for (int i = 0; i < rounds; i++) {
        double begun = now();
        append(session, CONTEXT + i);
        ask(session, times[CONTEXT + i] + 3600, best);
        seconds[i] = now() - begun;
        if (i == 0)
            check(model, 1, times[CONTEXT] + 3600, best);
    }
    report("slide", seconds, rounds);

    for (int i = 0; i < rounds; i++) {
        double begun = now();
        lapse_session_clear(session);
        for (int k = 0; k < CONTEXT; k++)
            append(session, i + k);
        ask(session, times[i + CONTEXT - 1] + 3600, best);
        seconds[i] = now() - begun;
        if (i == 0 || i == rounds - 1)
            check(model, i, times[i + CONTEXT - 1] + 3600, best);
    }
    report("open", seconds, rounds);
    lapse_session_free(session);
    lapse_model_free(model);
    return 0;
}
