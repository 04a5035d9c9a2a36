/* verb_pretrain.c: `lapse pretrain`: item vectors (skip-gram with negative sampling) that initialize a model. */
#include <string.h>

#include "bar.h"
#include "events.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct pretrain_settings {
    lapse_pretrain_options pretrain;
    cli_columns columns;
    const char *data, *output;
    bool json;
} pretrain_settings;

/* Number of items whose vector comes from events, from the catalogue alone, or from neither. */
typedef struct tally {
    int64_t occur, described, unknown;
} tally;

static bool on_progress(const lapse_progress *progress, void *context)
{
    cli_bar_update(context, progress);
    return !cli_interrupted();
}

static tally count(const lapse_vectors *vectors)
{
    tally t = {0};
    for (int64_t i = 0; i < lapse_vectors_count(vectors); i++) {
        const float *vector = lapse_vectors_get(vectors, i);
        bool nonzero = false;
        for (int d = 0; d < lapse_vectors_dims(vectors) && !nonzero; d++)
            nonzero = vector[d] != 0;
        if (lapse_vectors_occurrences(vectors, i) > 0)
            t.occur++;
        else if (nonzero)
            t.described++;
        else
            t.unknown++;
    }
    return t;
}

static void report(const pretrain_settings *s, const lapse_vectors *vectors, double seconds)
{
    tally t = count(vectors);
    if (s->json) {
        cli_json json = {.file = stdout};
        cli_json_object(&json, NULL);
        cli_json_text(&json, "output", s->output);
        cli_json_whole(&json, "items", lapse_vectors_count(vectors));
        cli_json_whole(&json, "occur", t.occur);
        cli_json_whole(&json, "described", t.described);
        cli_json_whole(&json, "unknown", t.unknown);
        cli_json_number(&json, "seconds", seconds, 4);
        cli_json_end(&json, '}');
        return;
    }
    printf("wrote      %s of %d dimensions to ",
           cli_plural(lapse_vectors_count(vectors), "item vector", "item vectors").text, lapse_vectors_dims(vectors));
    cli_text_print(stdout, s->output);
    printf(" in %s\n", cli_seconds(seconds).text);
    printf("items      %s trained on events", cli_count(t.occur).text);
    if (s->pretrain.catalogue)
        printf(", %s initialized from the catalogue", cli_count(t.described).text);
    if (t.unknown > 0)
        printf(", %s without a vector", cli_count(t.unknown).text);
    putchar('\n');
}

static int run(void *settings, const cli_call *call)
{
    pretrain_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_vectors *vectors = NULL;
    lapse_error error;
    cli_bar bar = cli_bar_new(NULL);
    double start = cli_clock();
    if (strcmp(s->output, "-") == 0)
        return cli_usage(call->verb, "item vectors cannot be written to standard output");
    int result = cli_events_open(s->data, &s->columns, NULL, &dataset);
    if (result != CLI_DONE)
        return result;
    cli_interrupt_watch();
    lapse_status status = lapse_pretrain(dataset, &s->pretrain, on_progress, &bar, &vectors, &error);
    cli_bar_end(&bar);
    bool interrupted = cli_interrupted();
    cli_interrupt_unwatch();
    if (status == LAPSE_OK)
        status = lapse_vectors_save(vectors, s->output, &error);
    if (status == LAPSE_OK && interrupted)
        cli_note("stopped early; the vectors so far are saved in %s", s->output);
    if (status == LAPSE_OK)
        report(s, vectors, cli_clock() - start);
    lapse_vectors_free(vectors);
    lapse_dataset_close(dataset);
    if (status != LAPSE_OK)
        return cli_error(&error);
    return interrupted ? CLI_INTERRUPTED : CLI_DONE;
}

static void defaults(void *settings)
{
    pretrain_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_pretrain_options_default(&s->pretrain);
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(pretrain_settings, data), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

#define AT(member) .offset = offsetof(pretrain_settings, member)

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, AT(output), .placeholder = "FILE", .file = CLI_OUTPUT_FILE,
     .help = "item-vector file to write (safetensors)", .required = true},
    {.name = "catalogue", .type = CLI_TEXT, AT(pretrain.catalogue), .placeholder = "FILE", .file = CLI_INPUT_FILE,
     .help = "item metadata, CSV or TSV with one row per item; its columns become features of the item vectors",
     .unset = "none"},
    {.name = "item", .type = CLI_TEXT, AT(pretrain.item), .placeholder = "COLUMN",
     .help = "item column of the catalogue", .unset = "detected by name"},
    {.name = "words", .type = CLI_TEXT, AT(pretrain.words), .placeholder = "COLUMNS",
     .help = "text columns of the catalogue, separated by commas, split into words; other columns are categorical",
     .unset = "name, title, description"},
    {.name = "dims", .type = CLI_WHOLE, AT(pretrain.dims), .placeholder = "N", .help = "vector dimensions"},
    {.name = "window", .type = CLI_WHOLE, AT(pretrain.window), .placeholder = "N",
     .help = "context window, in events before and after"},
    {.name = "session-gap", .type = CLI_DURATION, AT(pretrain.session_gap), .placeholder = "DURATION",
     .help = "session gap: events further apart are not in one context window", .unset = "no limit"},
    {.name = "negative-count", .type = CLI_WHOLE, AT(pretrain.negative_count), .placeholder = "N",
     .help = "negative samples per positive"},
    {.name = "popularity-power", .type = CLI_NUMBER, AT(pretrain.popularity_power), .placeholder = "X",
     .help = "exponent of the item frequency in the negative-sampling distribution"},
    {.name = "learning-rate", .type = CLI_NUMBER, AT(pretrain.learning_rate), .placeholder = "X",
     .help = "initial learning rate; decays linearly to 0"},
    {.name = "epochs", .type = CLI_WHOLE, AT(pretrain.epochs), .placeholder = "N", .help = "training epochs"},
    {.name = "split-by", .type = CLI_CHOICE, AT(pretrain.split_by), .placeholder = "RULE",
     .help = "split of events into train, valid and test, as in `lapse train`; only train is used",
     .choices = lapse_split_by_names, .unset = "column if the dataset has one, otherwise leave-one-out"},
    {.name = "seed", .type = CLI_SEED, AT(pretrain.seed), .placeholder = "N",
     .help = "random seed of the split, initial values, order and negative samples"},
    {.name = "json", .type = CLI_FLAG, AT(json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(pretrain_settings, columns)};

static const char *const examples[] = {
    "lapse pretrain d.lapse -o items.safetensors --catalogue items.csv --dims 64",
    "lapse train d.lapse -o m.safetensors --task recommend --item-vectors items.safetensors", NULL};

const cli_verb cli_verb_pretrain = {
    .name = "pretrain",
    .summary = "pretrain item vectors that initialize a model",
    .description =
        "Trains a vector for each item by skip-gram with negative sampling on the training split, with catalogue "
        "features: "
        "words of the name, brand, category. Items that are only in the catalogue get a vector too, so a model that is "
        "initialized with these vectors can recommend them (cold start).",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(pretrain_settings),
    .defaults = defaults,
    .run = run,
};
