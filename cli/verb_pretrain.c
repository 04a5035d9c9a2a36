/* verb_pretrain.c: `lapse pretrain`: vectors of items that a model can start from. */
#include <string.h>

#include "bar.h"
#include "verb.h"

typedef struct pretrain_settings {
    lapse_pretrain_options pretrain;
    const char *data, *output;
    bool json;
} pretrain_settings;

/* What the vectors are made of. */
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
        bool told = false;
        for (int d = 0; d < lapse_vectors_dims(vectors) && !told; d++)
            told = vector[d] != 0;
        if (lapse_vectors_occurrences(vectors, i) > 0)
            t.occur++;
        else if (told)
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
    printf("wrote      %s of %d numbers to ",
           cli_plural(lapse_vectors_count(vectors), "item vector", "item vectors").text, lapse_vectors_dims(vectors));
    cli_text_print(stdout, s->output);
    printf(" in %s\n", cli_seconds(seconds).text);
    printf("items      %s learned from events", cli_count(t.occur).text);
    if (s->pretrain.catalogue)
        printf(", %s known from their description alone", cli_count(t.described).text);
    if (t.unknown > 0)
        printf(", %s of which nothing is known", cli_count(t.unknown).text);
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
    if (strcmp(s->output, s->data) == 0 || (s->pretrain.catalogue && strcmp(s->output, s->pretrain.catalogue) == 0))
        return cli_usage(call->verb, "the vectors would overwrite %s", s->output);
    if (strcmp(s->output, "-") == 0)
        return cli_usage(call->verb, "item vectors go to a file, not to standard output");
    lapse_status status = lapse_dataset_open(s->data, &dataset, &error);
    cli_interrupt_watch();
    if (status == LAPSE_OK)
        status = lapse_pretrain(dataset, &s->pretrain, on_progress, &bar, &vectors, &error);
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
    lapse_pretrain_options_default(&s->pretrain);
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(pretrain_settings, data), "a dataset file from `lapse import`", false},
    {0},
};

#define AT(member) .offset = offsetof(pretrain_settings, member)

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, AT(output), .placeholder = "FILE",
     .help = "the file of vectors to write, a safetensors file", .required = true},
    {.name = "catalogue", .type = CLI_TEXT, AT(pretrain.catalogue), .placeholder = "FILE",
     .help = "CSV or TSV with a row for each item: what its columns say of an item becomes part of its vector",
     .unset = "none"},
    {.name = "item", .type = CLI_TEXT, AT(pretrain.item), .placeholder = "COLUMN",
     .help = "the catalogue's column with the item's name", .unset = "found by name"},
    {.name = "words", .type = CLI_TEXT, AT(pretrain.words), .placeholder = "COLUMNS",
     .help = "its columns that are read as words, joined by commas; all others are taken whole",
     .unset = "name, title, description"},
    {.name = "dims", .type = CLI_WHOLE, AT(pretrain.dims), .placeholder = "N", .help = "numbers of a vector"},
    {.name = "window", .type = CLI_WHOLE, AT(pretrain.window), .placeholder = "N",
     .help = "events before and after that count as near"},
    {.name = "session-gap", .type = CLI_DURATION, AT(pretrain.session_gap), .placeholder = "TIME",
     .help = "events further apart are never near", .unset = "no matter how far"},
    {.name = "negative-count", .type = CLI_WHOLE, AT(pretrain.negative_count), .placeholder = "N",
     .help = "items drawn for each near one, to be told from it"},
    {.name = "popularity-power", .type = CLI_NUMBER, AT(pretrain.popularity_power), .placeholder = "X",
     .help = "they are drawn by this power of how often they occur"},
    {.name = "learning-rate", .type = CLI_NUMBER, AT(pretrain.learning_rate), .placeholder = "X",
     .help = "of the first step; it falls to nothing"},
    {.name = "epochs", .type = CLI_WHOLE, AT(pretrain.epochs), .placeholder = "N", .help = "times the data is read"},
    {.name = "split-by", .type = CLI_CHOICE, AT(pretrain.split_by), .placeholder = "RULE",
     .help = "how events come to train, valid and test, as in `lapse train`; only those of train are read",
     .choices = lapse_split_by_names, .unset = "the column where there is one, otherwise leave-one-out"},
    {.name = "seed", .type = CLI_SEED, AT(pretrain.seed), .placeholder = "N",
     .help = "sets the split, starting values, order and negatives"},
    {.name = "json", .type = CLI_FLAG, AT(json), .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse pretrain d.lapse -o items.safetensors --catalogue items.csv --dims 64",
    "lapse train d.lapse -o m.safetensors --task recommend --item-vectors items.safetensors", NULL};

const cli_verb cli_verb_pretrain = {
    .name = "pretrain",
    .summary = "learn vectors of items that a model can start from",
    .description = "Learns a vector for each item from what occurs near it in the training split, and from what a "
                   "catalogue says of "
                   "it: words of its name, brand, category. Items that never occurred but are described get a vector "
                   "too, so that a "
                   "model that starts from these vectors can recommend them.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(pretrain_settings),
    .defaults = defaults,
    .run = run,
};
