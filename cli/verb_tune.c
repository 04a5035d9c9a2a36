/* verb_tune.c: `lapse tune`: searches training options within a budget of time and saves the best model. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bar.h"
#include "events.h"
#include "helpers.h"
#include "process.h"
#include "ranks.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct tune_settings {
    cli_train train;
    cli_columns columns;
    lapse_tune_options tune;
    const char *data, *output;
    bool helper, json;
} tune_settings;

typedef struct watch {
    bool terminal, open, silent;
    double drawn;
    int ended;
    lapse_tune_progress last;
} watch;

static void draw(const watch *w, const lapse_tune_progress *p)
{
    if (w->terminal)
        fputs("\r\033[K", stderr);
    fprintf(stderr, "%s finished, %d stopped, %d running", cli_plural(p->finished, "trial", "trials").text, p->stopped,
            p->running);
    if (p->seconds < p->budget)
        fprintf(stderr, ", %s left", cli_seconds(p->budget - p->seconds).text);
    if (p->best_trial > 0) {
        fprintf(stderr, "; best %s", cli_metric(p->metric, p->best).text);
        if (*p->change) {
            fputs(" with ", stderr);
            cli_text_print(stderr, p->change);
        }
    }
    if (!w->terminal)
        fputc('\n', stderr);
    fflush(stderr);
}

static bool on_progress(const lapse_tune_progress *p, void *context)
{
    watch *w = context;
    bool changed = p->finished + p->stopped != w->ended;
    w->last = *p;
    w->last.change = NULL;
    if (!w->silent && (changed || (w->terminal && cli_clock() - w->drawn > 0.2))) {
        draw(w, p);
        w->drawn = cli_clock();
        w->ended = p->finished + p->stopped;
        w->open = w->terminal;
    }
    return !cli_interrupted();
}

static const char *property(const lapse_model *model, const char *wanted)
{
    const char *name, *value;
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        if (strcmp(name, wanted) == 0)
            return value;
    return "";
}

static void print_text(const tune_settings *s, const lapse_model *model, const lapse_tune_progress *last)
{
    char name[64];
    fputs("saved        ", stdout);
    cli_text_print(stdout, s->output);
    printf(" after %s: trial %s of %s\n", cli_seconds(last->seconds).text, property(model, "tune.best"),
           property(model, "tune.trials"));
    snprintf(name, sizeof name, "tune.trial.%s", property(model, "tune.best"));
    printf("best         %s\n", property(model, name));
    printf("first        %s\n", property(model, "tune.trial.1"));
}

static void print_json(const tune_settings *s, const lapse_model *model, const lapse_tune_progress *last)
{
    cli_json json = {.file = stdout};
    const char *name, *value;
    cli_json_object(&json, NULL);
    cli_json_text(&json, "data", s->data);
    cli_json_text(&json, "output", s->output);
    cli_json_number(&json, "seconds", last->seconds, 4);
    cli_json_text(&json, "metric", last->metric);
    cli_json_number(&json, "first", last->first, 9);
    cli_json_number(&json, "best", last->best, 9);
    cli_json_whole(&json, "best_trial", strtol(property(model, "tune.best"), NULL, 10));
    cli_json_array(&json, "trials");
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        if (strncmp(name, "tune.trial.", 11) == 0)
            cli_json_text(&json, NULL, value);
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
}

/* On a GPU, more processes search at the same time, in a folder beside the output. */
static cli_helpers start_helpers(tune_settings *s, const cli_call *call, char *folder, size_t size)
{
    char device[16] = "";
    lapse_train_options_get(s->train.given, "device", device, sizeof device);
    int count = s->tune.parallel > 0 ? s->tune.parallel : cli_helpers_default(1 << 10);
    if (s->helper || cli_ranks() || strcmp(device, "cuda") != 0 || strcmp(s->data, "-") == 0 || count < 2)
        return (cli_helpers){0};
    if (!s->tune.folder) {
        snprintf(folder, size, "%s.trials", s->output);
        s->tune.folder = folder;
    }
    return cli_helpers_start(call, count - 1, s->tune.folder, 2);
}

/* Deletes the folder that this command made for its processes. */
static void delete_trials(const char *folder)
{
    DIR *opened = opendir(folder);
    for (struct dirent *entry; opened && (entry = readdir(opened));)
        if (strncmp(entry->d_name, "trial-", 6) == 0 || strcmp(entry->d_name, "lock") == 0)
            unlinkat(dirfd(opened), entry->d_name, 0);
    if (opened)
        closedir(opened);
    rmdir(folder);
}

static int finish(const tune_settings *s, const lapse_model *model, const lapse_tune_progress *last)
{
    lapse_error error;
    if (s->helper)
        return CLI_DONE;
    if (lapse_model_save(model, s->output, &error) != LAPSE_OK)
        return cli_error(&error);
    if (s->json)
        print_json(s, model, last);
    else
        print_text(s, model, last);
    return CLI_DONE;
}

static int check_output(const tune_settings *s, const cli_verb *verb)
{
    struct stat there;
    if (strcmp(s->output, "-") == 0)
        return cli_usage(verb, "a model goes to a file, not to standard output");
    if (stat(s->output, &there) == 0 && S_ISDIR(there.st_mode))
        return cli_fail("%s: this is a folder; give the name of a file", s->output);
    return CLI_DONE;
}

/* On several ranks, rank 0 ends the search and prints, and the others run trials beside it: all share a folder. */
static void share_trials(tune_settings *s, char *folder, size_t size)
{
    s->helper = !cli_ranks_first();
    if (s->tune.parallel == 0)
        s->tune.parallel = lapse_comm_threads(cli_ranks());
    if (s->tune.folder)
        return;
    snprintf(folder, size, "%s.trials", s->output);
    s->tune.folder = folder;
}

static int run(void *settings, const cli_call *call)
{
    tune_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_model *model = NULL;
    lapse_error error;
    char folder[4096] = "";
    if (s->helper)
        cli_process_follow_parent();
    int result = check_output(s, call->verb);
    if (cli_ranks())
        share_trials(s, folder, sizeof folder);
    if (result == CLI_DONE)
        result = cli_events_open(s->data, &s->columns, NULL, &dataset);
    if (result != CLI_DONE)
        return result;
    cli_helpers helpers = start_helpers(s, call, folder, sizeof folder);
    watch w = {.terminal = isatty(STDERR_FILENO) == 1, .silent = s->helper};
    cli_interrupt_watch();
    lapse_status status = lapse_tune(dataset, s->train.given, &s->tune, on_progress, &w, &model, &error);
    if (w.open)
        fputc('\n', stderr);
    cli_interrupt_unwatch();
    cli_helpers_stop(&helpers);
    if (status == LAPSE_OK)
        status = lapse_comm_barrier(cli_ranks(), &error);
    result = status == LAPSE_OK ? finish(s, model, &w.last) : cli_error(&error);
    if (result == CLI_DONE && cli_interrupted() && !s->helper)
        cli_note("stopped; the best model so far is saved in %s", s->output);
    else if (result == CLI_DONE && *folder && !s->helper)
        delete_trials(folder);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    return result;
}

static void defaults(void *settings)
{
    tune_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_tune_options_default(&s->tune);
    lapse_train_options_new(&s->train.given, NULL);
}

static void clear(void *settings)
{
    lapse_train_options_free(((tune_settings *)settings)->train.given);
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(tune_settings, data), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

/* The training options of the library follow these. */
/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(tune_settings, output), .placeholder = "MODEL",
     .help = "model file to write", .file = CLI_OUTPUT_FILE, .required = true},
    {.name = "budget", .type = CLI_DURATION, .offset = offsetof(tune_settings, tune.seconds), .placeholder = "DURATION",
     .help = "time of the search, such as 10m", .group = "Search"},
    {.name = "trials", .type = CLI_WHOLE, .offset = offsetof(tune_settings, tune.trials), .placeholder = "N",
     .help = "maximum number of trials", .unset = "as many as the budget allows", .group = "Search"},
    {.name = "parallel", .type = CLI_WHOLE, .offset = offsetof(tune_settings, tune.parallel), .placeholder = "N",
     .help = "trials at the same time", .unset = "one per core; up to 5 processes on a GPU", .group = "Search"},
    {.name = "keep", .type = CLI_TEXT, .offset = offsetof(tune_settings, tune.folder), .placeholder = "DIR",
     .help = "folder of finished trials: the same command continues the search", .advanced = true,
     .unset = "none; on a GPU MODEL.trials, deleted at the end", .group = "Search"},
    {.name = "helper", .type = CLI_FLAG, .offset = offsetof(tune_settings, helper), .group = "Search",
     .help = "run trials of a search that another process ends; share its --keep", .advanced = true},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(tune_settings, json), .help = "print the trials as one JSON object"},
    {0},
};
/* clang-format on */

static const size_t train_offset = offsetof(tune_settings, train);
static const cli_text_options text = {.offset = offsetof(tune_settings, columns)};

static const char *const examples[] = {
    "lapse tune events.lapse -o model.safetensors --budget 30m",
    "lapse tune events.lapse -o model.safetensors --task recommend --device cuda --budget 10m",
    "lapse tune events.lapse -o model.safetensors --model lstm --dropout 0.2 --trials 20",
    NULL,
};

const cli_verb cli_verb_tune = {
    .name = "tune",
    .summary = "search training options within a time budget",
    .description =
        "Trains a model with the options as given, then with changes of the options that were not given, and saves the "
        "model with the best validation score. So the result is never worse on the validation split than `lapse train` "
        "with "
        "the same options. The test split is not used: evaluate with `lapse eval`. Trials that are worse than the "
        "median of "
        "the others at the same epoch are stopped. `lapse info` lists what was tried. Ctrl-C ends the search and saves "
        "the "
        "best model so far.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .train = &train_offset,
    .train_many = true,
    .text = &text,
    .size = sizeof(tune_settings),
    .defaults = defaults,
    .clear = clear,
    .ranks = true,
    .run = run,
};
