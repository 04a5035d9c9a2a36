/* model_card.c: see model_card.h. A model file of another version may lack any property: what is not there is left out. */
#include "model_card.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "lookup.h"
#include "rank_table.h"
#include "table.h"

/* A line that grows, with a comma before every part but the first. */
typedef struct line {
    char text[1024];
    size_t used;
} line;

static void add(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(line *l, const char *format, ...)
{
    va_list arguments;
    if (l->used > 0 && l->used < sizeof l->text)
        l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, ", ");
    va_start(arguments, format);
    if (l->used < sizeof l->text)
        l->used += (size_t)vsnprintf(l->text + l->used, sizeof l->text - l->used, format, arguments);
    va_end(arguments);
}

static void put(cli_table *table, const char *name, const line *l)
{
    if (l->used == 0)
        return;
    cli_table_add(table, "%s", name);
    cli_table_add(table, "%s", l->text);
}

static const char *get(const lapse_model *model, const char *name)
{
    return cli_model_property(model, name);
}

static bool is(const lapse_model *model, const char *name, const char *value)
{
    const char *found = get(model, name);
    return found && strcmp(found, value) == 0;
}

/* "2 blocks": a whole number of things. */
static void add_count(line *l, const lapse_model *model, const char *name, const char *one, const char *many)
{
    const char *value = get(model, name);
    if (value)
        add(l, "%s", cli_plural(strtoll(value, NULL, 10), one, many).text);
}

static void network_line(line *l, const lapse_model *model)
{
    if (get(model, "model"))
        add(l, "%.64s", get(model, "model"));
    add_count(l, model, "blocks", "block", "blocks");
    add_count(l, model, "layers", "layer", "layers");
    add_count(l, model, "heads", "head", "heads");
    if (get(model, "dims"))
        add(l, "%.32s dims", get(model, "dims"));
    add_count(l, model, "order", "event before", "events before");
    if (get(model, "context") && get(model, "dims")) /* of a network: baselines have their own ways */
        add(l, "sees the last %s", cli_plural(strtoll(get(model, "context"), NULL, 10), "event", "events").text);
}

static void time_line(line *l, const lapse_model *model)
{
    const char *shortest = get(model, "period_min"), *longest = get(model, "period_max");
    if (get(model, "encoding"))
        add(l, "%.64s", get(model, "encoding"));
    add_count(l, model, "periods", "period", "periods");
    if (shortest && longest)
        add(l, "from %s to %s", cli_duration(strtod(shortest, NULL)).text, cli_duration(strtod(longest, NULL)).text);
    add_count(l, model, "harmonics", "harmonic", "harmonics");
    if (is(model, "gap_input", "on"))
        add(l, "gaps as an input");
}

static void target_line(line *l, const lapse_model *model)
{
    int64_t types = lapse_model_event_type_count(model);
    if (cli_is_recommender(model))
        add(l, "which of %s comes next", cli_plural(types, "item", "items").text);
    else
        add(l, "which of %s comes next", cli_plural(types, "event type", "event types").text);
    if (is(model, "predict", "both") || is(model, "predict", "action"))
        add(l, is(model, "predict", "both") ? "and which action" : "by its action");
    if (lapse_model_predicts_time(model))
        add(l, "and when");
    if (get(model, "target") && *get(model, "target"))
        add(l, "at events with %.100s", get(model, "target"));
    if (is(model, "target_time", "unknown"))
        add(l, "without the time of the event");
}

static void data_line(line *l, const lapse_model *model)
{
    static const char *const splits[] = {"train", "valid", "test"};
    if (get(model, "source"))
        add(l, "%.200s", get(model, "source"));
    add_count(l, model, "dataset.sequences", "sequence", "sequences");
    add_count(l, model, "dataset.events", "event", "events");
    for (int i = 0; i < 3; i++) {
        char key[32];
        snprintf(key, sizeof key, "dataset.events.%s", splits[i]);
        if (get(model, key))
            add(l, "%s %s", cli_count(strtoll(get(model, key), NULL, 10)).text, splits[i]);
    }
    if (get(model, "split"))
        add(l, "split by %.32s", get(model, "split"));
}

static void run_line(line *l, const lapse_model *model)
{
    const char *epoch = get(model, "score.epoch"), *status = get(model, "run.status");
    if (status)
        add(l, "%.32s", status);
    if (epoch && strcmp(epoch, "0") == 0)
        add(l, "stopped in its first epoch: it has hardly learned");
    else if (epoch)
        add(l, "parameters of epoch %.16s", epoch);
    if (get(model, "train.learning_rate"))
        add(l, "learning rate %.32s", get(model, "train.learning_rate"));
    if (get(model, "train.batch"))
        add(l, "batches of %s", cli_plural(strtoll(get(model, "train.batch"), NULL, 10), "sequence", "sequences").text);
    if (get(model, "seed"))
        add(l, "seed %.24s", get(model, "seed"));
}

bool cli_model_card_print(FILE *file, const char *path, const lapse_model *model)
{
    static const struct {
        const char *name;
        void (*fill)(line *l, const lapse_model *model);
    } rows[] = {{"model", network_line},
                {"time", time_line},
                {"predicts", target_line},
                {"data", data_line},
                {"training", run_line}};
    cli_table table = {.align = "ll"};
    const char *name, *value;
    cli_table_add(&table, "file");
    cli_table_add(&table, "%s (model)", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        line l = {.used = 0};
        rows[i].fill(&l, model);
        put(&table, rows[i].name, &l);
    }
    if (get(model, "version") && get(model, "commit")) {
        cli_table_add(&table, "made by");
        cli_table_add(&table, "lapse %s, commit %s", get(model, "version"), get(model, "commit"));
    }
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        if (strncmp(name, "tune.", 5) == 0) { /* what `lapse tune` tried has no shorter form */
            cli_table_add(&table, "%s", name);
            cli_table_add(&table, "%s", value);
        }
    cli_table_add(&table, "settings");
    cli_table_add(&table, "--all lists every one by its key");
    return cli_table_print(&table, file, 0);
}
