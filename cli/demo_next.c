/* demo_next.c: see demo_next.h. The shopper comes from another seed of the same law: nothing of it was in any split. */
#include "demo_next.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "console.h"

enum { SHOPPERS = 8, EVENTS_BEFORE = 24, EVENTS_SHOWN = 4, TOP = 3 };

static const struct {
    const char *words;
    double seconds;
} moments[] = {{"in 1 hour", 3600}, {"in 3 days", 3 * 86400.0}, {"in 2 weeks", 14 * 86400.0}};

/* "view coffee" as "views coffee". */
static void print_deed(const char *kind)
{
    int verb = (int)strcspn(kind, " ");
    printf("%.*ss%s", verb, kind, kind + verb);
}

/* The first purchase with enough history before it: sequence and number of its event. Falls back on the last event of
 * the first shopper. */
static void choose_event(const lapse_dataset *dataset, int64_t *sequence, int64_t *event)
{
    const double *times;
    const int32_t *kinds;
    int64_t count;
    for (int64_t i = 0; i < lapse_dataset_sequence_count(dataset); i++) {
        lapse_dataset_sequence(dataset, i, &times, &kinds, &count);
        for (int64_t j = EVENTS_BEFORE; j < count; j++) {
            if (strncmp(lapse_dataset_kind_name(dataset, kinds[j]), "buy ", 4) == 0) {
                *sequence = i;
                *event = j;
                return;
            }
        }
    }
    lapse_dataset_sequence(dataset, 0, &times, &kinds, &count);
    *sequence = 0;
    *event = count - 1;
}

static void print_history(const lapse_dataset *dataset, const double *times, const int32_t *kinds, int64_t event)
{
    int64_t first = event >= EVENTS_SHOWN ? event - EVENTS_SHOWN + 1 : 0;
    printf(
        "\nWhat happens next to a shopper whom no model has seen, by the last model. So far: %s, the last of them:\n",
        cli_plural(event + 1, "event", "events").text);
    for (int64_t i = first; i <= event; i++) {
        fputs("  ", stdout);
        print_deed(lapse_dataset_kind_name(dataset, kinds[i]));
        if (i > first)
            printf(", %s later", cli_duration(times[i] - times[i - 1]).text);
        fputc('\n', stdout);
    }
    puts("If the next event comes");
}

static void print_answer(const lapse_model *model, const char *words, const double *probabilities)
{
    cli_choice top[TOP];
    int64_t kinds = lapse_model_kind_count(model);
    int64_t count = kinds < TOP ? kinds : TOP;
    cli_choices_top(probabilities, kinds, top, count);
    printf("  %-11s most likely ", words);
    for (int64_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : i + 1 < count ? ", " : " or ", stdout);
        print_deed(lapse_model_kind_name(model, top[i].kind));
        printf(" (%s)", cli_percent(top[i].probability, 0).text);
    }
    fputc('\n', stdout);
}

static lapse_status ask(const lapse_model *model, const lapse_dataset *dataset, lapse_session *session,
                        double *probabilities, lapse_error *error)
{
    const double *times;
    const int32_t *kinds;
    int64_t sequence, event, count;
    lapse_status status = LAPSE_OK;
    choose_event(dataset, &sequence, &event);
    lapse_dataset_sequence(dataset, sequence, &times, &kinds, &count);
    for (int64_t i = 0; i <= event && status == LAPSE_OK; i++)
        status = lapse_session_append(session, times[i], lapse_dataset_kind_name(dataset, kinds[i]), error);
    if (status == LAPSE_OK)
        print_history(dataset, times, kinds, event);
    for (size_t i = 0; i < sizeof moments / sizeof *moments && status == LAPSE_OK; i++) {
        status = lapse_session_predict(session, times[event] + moments[i].seconds, probabilities, error);
        if (status == LAPSE_OK)
            print_answer(model, moments[i].words, probabilities);
    }
    return status;
}

static lapse_status draw(const lapse_simulate_options *shop, const char *path, lapse_dataset **dataset,
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
    double *probabilities = calloc((size_t)lapse_model_kind_count(model) + 1, sizeof *probabilities);
    if (!probabilities) {
        memset(error, 0, sizeof *error);
        error->status = LAPSE_ERROR_MEMORY;
        snprintf(error->message, sizeof error->message, "out of memory");
        return LAPSE_ERROR_MEMORY;
    }
    lapse_status status = draw(shop, path, &dataset, error);
    if (status == LAPSE_OK)
        status = lapse_session_new(model, &session, error);
    if (status == LAPSE_OK)
        status = ask(model, dataset, session, probabilities, error);
    lapse_session_free(session);
    lapse_dataset_close(dataset);
    free(probabilities);
    return status;
}
