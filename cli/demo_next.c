/* demo_next.c: see demo_next.h. The shoppers are simulated with another seed, so they are in no split. The demo selects the
 * purchase for which the prediction depends most on the query time, and says so. */
#include "demo_next.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "console.h"

enum { SHOPPERS = 40, EVENTS_BEFORE = 16, EVENTS_SHOWN = 4, TOP = 3 };

static const struct {
    const char *words;
    double seconds;
} query_times[] = {{"in 1 hour", 3600}, {"in 3 days", 3 * 86400.0}, {"in 2 weeks", 14 * 86400.0}};

enum { QUERY_TIMES = sizeof query_times / sizeof *query_times };

/* "view coffee" as "views coffee". */
static void print_action(const char *type)
{
    int verb = (int)strcspn(type, " ");
    printf("%.*ss%s", verb, type, type + verb);
}

/* How much the prediction after the last event depends on the query time: 0 if two query times have the same most probable
 * event type, otherwise the smallest probability of a most probable event type. */
static lapse_status time_dependence(const lapse_model *model, lapse_session *session, double last,
                                    double *probabilities, double *score, lapse_error *error)
{
    cli_choice top[QUERY_TIMES];
    *score = 1;
    for (int i = 0; i < QUERY_TIMES; i++) {
        lapse_status status = lapse_session_predict(session, last + query_times[i].seconds, probabilities, error);
        if (status != LAPSE_OK)
            return status;
        cli_choices_top(probabilities, lapse_model_event_type_count(model), &top[i], 1);
        *score = fmin(*score, top[i].probability);
        for (int j = 0; j < i; j++)
            if (top[i].type == top[j].type)
                *score = 0;
    }
    return LAPSE_OK;
}

/* A purchase in the history of a shopper, with its time_dependence. */
typedef struct purchase {
    int64_t sequence, event;
    double score;
} purchase;

/* Scores the purchases of one shopper and updates *best. */
static lapse_status score_purchases(const lapse_model *model, const lapse_dataset *dataset, int64_t sequence,
                                    lapse_session *session, double *probabilities, purchase *best, lapse_error *error)
{
    const double *times;
    const int32_t *types;
    int64_t count;
    lapse_session_clear(session);
    lapse_dataset_sequence(dataset, sequence, &times, &types, &count);
    for (int64_t i = 0; i < count; i++) {
        const char *name = lapse_dataset_event_type_name(dataset, types[i]);
        double score = 0;
        lapse_status status = lapse_session_append(session, times[i], name, error);
        if (status == LAPSE_OK && i >= EVENTS_BEFORE && strncmp(name, "buy ", 4) == 0)
            status = time_dependence(model, session, times[i], probabilities, &score, error);
        if (status != LAPSE_OK)
            return status;
        if (score > best->score)
            *best = (purchase){sequence, i, score};
    }
    return LAPSE_OK;
}

static void print_history(const lapse_dataset *dataset, const double *times, const int32_t *types, int64_t event)
{
    int64_t first = event >= EVENTS_SHOWN ? event - EVENTS_SHOWN + 1 : 0;
    printf(
        "\nWhat happens next? Of %d shoppers that mercer has never seen, the one whose prediction depends most on the\n"
        "time. The last of %s so far:\n",
        SHOPPERS, cli_plural(event + 1, "event", "events").text);
    for (int64_t i = first; i <= event; i++) {
        fputs("  ", stdout);
        print_action(lapse_dataset_event_type_name(dataset, types[i]));
        if (i > first)
            printf(", %s later", cli_duration(times[i] - times[i - 1]).text);
        fputc('\n', stdout);
    }
    puts("If the next event comes");
}

static void print_prediction(const lapse_model *model, const char *words, const double *probabilities)
{
    cli_choice top[TOP];
    int64_t types = lapse_model_event_type_count(model);
    int64_t count = types < TOP ? types : TOP;
    cli_choices_top(probabilities, types, top, count);
    printf("  %-11s most likely ", words);
    for (int64_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : i + 1 < count ? ", " : " or ", stdout);
        print_action(lapse_model_event_type_name(model, top[i].type));
        printf(" (%s)", cli_percent(top[i].probability, 0).text);
    }
    fputc('\n', stdout);
}

static lapse_status show_predictions(const lapse_model *model, const lapse_dataset *dataset, lapse_session *session,
                                     double *probabilities, lapse_error *error)
{
    const double *times;
    const int32_t *types;
    int64_t count;
    purchase best = {0, 0, 0};
    lapse_status status = LAPSE_OK;
    for (int64_t i = 0; i < lapse_dataset_sequence_count(dataset) && status == LAPSE_OK; i++)
        status = score_purchases(model, dataset, i, session, probabilities, &best, error);
    lapse_session_clear(session);
    lapse_dataset_sequence(dataset, best.sequence, &times, &types, &count);
    for (int64_t i = 0; i <= best.event && status == LAPSE_OK; i++)
        status = lapse_session_append(session, times[i], lapse_dataset_event_type_name(dataset, types[i]), error);
    if (status == LAPSE_OK)
        print_history(dataset, times, types, best.event);
    for (int i = 0; i < QUERY_TIMES && status == LAPSE_OK; i++) {
        status = lapse_session_predict(session, times[best.event] + query_times[i].seconds, probabilities, error);
        if (status == LAPSE_OK)
            print_prediction(model, query_times[i].words, probabilities);
    }
    return status;
}

static lapse_status simulate(const lapse_simulate_options *shop, const char *path, lapse_dataset **dataset,
                             lapse_error *error)
{
    lapse_simulate_options options = *shop;
    lapse_import_options import;
    lapse_simulation *simulation = NULL;
    options.seed = shop->seed + 1;
    options.sequences = SHOPPERS;
    lapse_import_options_default(&import);
    import.input = path;
    import.sequence = "user";
    import.time = "time";
    import.event = "action,item";
    lapse_status status = lapse_simulate(&options, &simulation, error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(simulation, path, error);
    if (status == LAPSE_OK)
        status = lapse_dataset_read(&import, dataset, NULL, error);
    lapse_simulation_free(simulation);
    return status;
}

lapse_status cli_demo_next(const lapse_model *model, const lapse_simulate_options *shop, const char *path,
                           lapse_error *error)
{
    lapse_dataset *dataset = NULL;
    lapse_session *session = NULL;
    double *probabilities = calloc((size_t)lapse_model_event_type_count(model) + 1, sizeof *probabilities);
    if (!probabilities) {
        memset(error, 0, sizeof *error);
        error->status = LAPSE_ERROR_MEMORY;
        snprintf(error->message, sizeof error->message, "out of memory");
        return LAPSE_ERROR_MEMORY;
    }
    lapse_status status = simulate(shop, path, &dataset, error);
    if (status == LAPSE_OK)
        status = lapse_session_new(model, &session, error);
    if (status == LAPSE_OK)
        status = show_predictions(model, dataset, session, probabilities, error);
    lapse_session_free(session);
    lapse_dataset_close(dataset);
    free(probabilities);
    return status;
}
