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
#include "model/runner.h"
#include "train/train_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 3416, DIMS = 50, BLOCKS = 2, CONTEXT = 200, TOP = 10, EVENTS = 4096 };

static double times[EVENTS];
static char names[ITEMS][8];

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "question: %s\n", why);
    exit(1);
}

static void need(lapse_status status, const lapse_error *error)
{
    if (status != LAPSE_OK)
        stop(error->message);
}

/* ------------------------------------------------------------------------------------- model and history ----- */

static lapse_model *make_model(const char *encoding_name)
{
    const lp_encoding *encoding = lp_encoding_find(encoding_name);
    if (!encoding)
        stop("no such encoding");
    lapse_train_options options;
    char blocks[8], dims[8], context[8];
    const char *const set[][2] = {{"encoding", encoding_name}, {"task", "recommend"},  {"period-min", "600"},
                                  {"period-max", "3e8"},       {"inverse-cdf", "maf"}, {"hidden", "16"},
                                  {"blocks", blocks},          {"dims", dims},         {"context", context},
                                  {"gap-input", "off"},      {"heads", "1"}};
    snprintf(blocks, sizeof blocks, "%d", BLOCKS);
    snprintf(dims, sizeof dims, "%d", DIMS);
    snprintf(context, sizeof context, "%d", CONTEXT);
    lp_train_options_default(&options);
    lapse_error error;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        need(lapse_train_options_set(&options, set[i][0], set[i][1], &error), &error);
    lp_model_config config = options.model;
    config.row = lp_model_row_find("attention");
    config.settings = options.own[0];
    config.loss = LP_LOSS_SOFTMAX;
    config.event_types = ITEMS;
    config.dropout = 0;
    lp_encoding_config *time = (void *)config.settings.bytes;
    time->periods = encoding->default_periods;
    time->harmonics = encoding->default_harmonics ? encoding->default_harmonics : 1;
    static uint64_t offset[ITEMS + 1];
    static char bytes[ITEMS * 8];
    for (int i = 0; i < ITEMS; i++) {
        int size = snprintf(names[i], sizeof names[i], "i%d", i) + 1;
        memcpy(bytes + offset[i], names[i], (size_t)size);
        offset[i + 1] = offset[i] + (uint64_t)size;
    }
    lapse_model *model = NULL;
    need(lp_model_new(&config, &(lp_names){.count = ITEMS, .offset = offset, .bytes = bytes}, &model, &error), &error);
    lp_network_init_parameters(&model->network.graph, 1, model->parameters);
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 1);
    for (size_t i = 0; i < model->network.graph.parameter_size; i++)
        model->parameters[i] += (float)(0.05 * lp_random_normal(&random));
    for (int i = 0; i < EVENTS; i++)
        times[i] = 9.5e8 + (i ? times[i - 1] - 9.5e8 : 0) + 40000 * lp_random_uniform(&random);
    return model;
}

static int item_of(int event)
{
    return (int)((uint32_t)event * 2654435761u % ITEMS);
}

static void append(lapse_session *session, int event)
{
    lapse_error error;
    need(lapse_session_append(session, times[event], names[item_of(event)], &error), &error);
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
        type[t] = item_of(first + t);
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
        listed[item_of(first + t)] = true;
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
