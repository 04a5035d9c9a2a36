/* verb_compare.c: `lapse compare`: trains models over encodings, grids and seeds, and prints one table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bar.h"
#include "csv_cell.h"
#include "events.h"
#include "helpers.h"
#include "process.h"
#include "ranks.h"
#include "compare_table.h"
#include "verb.h"

typedef struct compare_settings {
    lapse_sweep_plan *plan; /* owned */
    cli_train train;        /* the plan's */
    cli_columns columns;
    const char *source; /* DATA, or a plan in JSON */
    const char *models, *encodings, *seeds, *data, *keep, *output, *curves;
    const char *split, *metric, *protocol, *negatives, *cases, *reach, *grid_seeds, *bootstrap, *parallel;
    cli_list grid;
    cli_sweep_format format;
    bool helper;
} compare_settings;

/* The plan's settings that the command line has under the same name. */
static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    {"models", offsetof(compare_settings, models)},
    {"encodings", offsetof(compare_settings, encodings)},
    {"seeds", offsetof(compare_settings, seeds)},
    {"data", offsetof(compare_settings, data)},
    {"keep", offsetof(compare_settings, keep)},
    {"split", offsetof(compare_settings, split)},
    {"metric", offsetof(compare_settings, metric)},
    {"protocol", offsetof(compare_settings, protocol)},
    {"negatives-per-case", offsetof(compare_settings, negatives)},
    {"cases", offsetof(compare_settings, cases)},
    {"reach", offsetof(compare_settings, reach)},
    {"grid-seeds", offsetof(compare_settings, grid_seeds)},
    {"bootstrap", offsetof(compare_settings, bootstrap)},
    {"parallel", offsetof(compare_settings, parallel)},
};

static bool is_plan(const char *path)
{
    size_t size = strlen(path);
    return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* The name of a file without its folders. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The command line, then the plan's file, then what both leave open. */
static lapse_status fill_plan(compare_settings *s, lapse_error *error)
{
    char keep[4096];
    lapse_status status = LAPSE_OK;
    for (size_t i = 0; status == LAPSE_OK && i < sizeof texts / sizeof *texts; i++) {
        const char *value = *(const char *const *)((const char *)s + texts[i].offset);
        if (value)
            status = lapse_sweep_plan_set(s->plan, texts[i].name, value, error);
    }
    for (int i = 0; status == LAPSE_OK && i < s->grid.count; i++)
        status = lapse_sweep_plan_set(s->plan, "grid", s->grid.items[i], error);
    if (status == LAPSE_OK)
        status = is_plan(s->source) ? lapse_sweep_plan_load(s->plan, s->source, error)
                                    : lapse_sweep_plan_set(s->plan, "data", s->source, error);
    const char *base = s->output ? s->output : strcmp(s->source, "-") == 0 ? "stdin" : file_name(s->source);
    snprintf(keep, sizeof keep, "%s.runs", base);
    if (status == LAPSE_OK)
        status = lapse_sweep_plan_set(s->plan, "keep", keep, error);
    return status;
}

static const char *setting(const compare_settings *s, const char *name, char *out, size_t size)
{
    return lapse_sweep_plan_get(s->plan, name, out, size);
}

static bool on_progress(const lapse_sweep_progress *progress, void *context)
{
    if (context)
        cli_sweep_bar_update(context, progress);
    return !cli_interrupted();
}

static int write_table(const compare_settings *s, const lapse_sweep *sweep)
{
    char *text = NULL;
    size_t size = 0;
    lapse_error error;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return cli_fail("out of memory");
    bool whole = cli_sweep_print(memory, sweep, &s->format) && fflush(memory) == 0 && !ferror(memory);
    if (fclose(memory) != 0 || !whole || !text) {
        free(text);
        return cli_fail("out of memory");
    }
    int result = CLI_DONE;
    if (!s->output)
        fwrite(text, 1, size, stdout);
    else if (lapse_file_write(s->output, text, size, &error) != LAPSE_OK)
        result = cli_error(&error);
    free(text);
    return result;
}

static int report(const compare_settings *s, const lapse_sweep *sweep, const char *folder)
{
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    if (s->helper)
        return CLI_DONE;
    if (info.finished < info.runs) {
        if (*folder)
            cli_note("stopped: %d of %d runs are finished and kept in %s; the same command continues", info.finished,
                     info.runs, folder);
        else
            cli_note("stopped: %d of %d runs were finished, and none is kept (--keep none)", info.finished, info.runs);
        return CLI_INTERRUPTED;
    }
    lapse_error error;
    int result = write_table(s, sweep);
    if (result == CLI_DONE && s->curves && lapse_sweep_save_svg(sweep, s->format.title, s->curves, &error) != LAPSE_OK)
        result = cli_error(&error);
    return result;
}

/* On a GPU, more processes train at the same time. */
static cli_helpers start_helpers(const compare_settings *s, const cli_call *call, const lapse_sweep_info *info,
                                 const char *folder)
{
    char text[64];
    const char *given = setting(s, "parallel", text, sizeof text);
    int left = info->runs - info->finished, count = *given ? (int)strtol(given, NULL, 10) : cli_helpers_default(left);
    if (s->helper || strcmp(info->device, "cuda") != 0 || !*folder || strcmp(s->source, "-") == 0 || count < 2)
        return (cli_helpers){0};
    return cli_helpers_start(call, (count < left ? count : left) - 1, folder, 2);
}

static int compare(compare_settings *s, const cli_call *call, const lapse_dataset *dataset)
{
    lapse_sweep *sweep = NULL;
    lapse_error error;
    char folder[4096];
    if (lapse_sweep_new(dataset, s->plan, &sweep, &error) != LAPSE_OK)
        return cli_error(&error);
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    if (strcmp(setting(s, "keep", folder, sizeof folder), "none") == 0)
        *folder = 0;
    if (!s->helper && info.finished > 0 && info.finished < info.runs)
        cli_note("%d of %d runs are finished already, in %s", info.finished, info.runs, folder);
    cli_helpers helpers = start_helpers(s, call, &info, folder);
    cli_sweep_bar bar = cli_sweep_bar_new(info.select);
    cli_interrupt_watch();
    lapse_status status = lapse_sweep_run(sweep, on_progress, s->helper ? NULL : &bar, &error);
    cli_sweep_bar_end(&bar);
    cli_interrupt_unwatch();
    cli_helpers_stop(&helpers);
    int result = status == LAPSE_OK ? report(s, sweep, folder) : cli_error(&error);
    lapse_sweep_free(sweep);
    return result;
}

/* On several ranks, rank 0 prints, and the others train runs beside it: all take them from the folder. */
static int share_runs(compare_settings *s, const cli_call *call)
{
    lapse_error error;
    char text[32];
    s->helper = !cli_ranks_first();
    if (s->keep && strcmp(s->keep, "none") == 0)
        return cli_usage(call->verb, "several ranks share runs in a folder, and --keep is none");
    snprintf(text, sizeof text, "%d", lapse_comm_threads(cli_ranks()));
    if (!s->parallel && lapse_sweep_plan_set(s->plan, "parallel", text, &error) != LAPSE_OK)
        return cli_error(&error);
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    compare_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_error error;
    char data[4096];
    if (s->helper)
        cli_process_follow_parent();
    int result = cli_ranks() ? share_runs(s, call) : CLI_DONE;
    if (result != CLI_DONE)
        return result;
    if (fill_plan(s, &error) != LAPSE_OK)
        return cli_error(&error);
    setting(s, "data", data, sizeof data);
    if (!*data)
        return cli_fail("%s: the comparison names no data; add \"data\": \"FILE\", or use --data FILE", s->source);
    result = cli_events_open(data, &s->columns, NULL, &dataset);
    s->format.data = data;
    s->format.title = lapse_sweep_plan_title(s->plan);
    s->format.cells = s->format.cells || s->format.test_scores;
    if (result == CLI_DONE)
        result = compare(s, call, dataset);
    lapse_dataset_close(dataset);
    return result;
}

static void defaults(void *settings)
{
    compare_settings *s = settings;
    cli_columns_default(&s->columns);
    s->format.name = "text";
    if (lapse_sweep_plan_new(&s->plan, NULL) == LAPSE_OK)
        s->train.given = lapse_sweep_plan_train_options(s->plan);
}

static void clear(void *settings)
{
    lapse_sweep_plan_free(((compare_settings *)settings)->plan);
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(compare_settings, source),
     "events, as for `lapse train`; or FILE.json, a file with the whole comparison", false, CLI_INPUT_FILE},
    {0},
};

#define TEXT(member) .type = CLI_TEXT, .offset = offsetof(compare_settings, member), .group = "Comparison"

/* The training options of the library follow these. */
/* clang-format off */
static const cli_option options[] = {
    {.name = "models", TEXT(models), .placeholder = "NAME,NAME",
     .help = "models and baselines, one row each; a model with encodings has a row for each of them", .unset = "--model"},
    {.name = "encodings", TEXT(encodings), .placeholder = "NAME,NAME", .help = "time encodings of the models that have one",
     .unset = "--encoding"},
    {.name = "seeds", TEXT(seeds), .placeholder = "N", .unset = "5",
     .help = "random seeds of each row: N for 1 to N, a range such as 3..7, or a list such as 1,5,9"},
    {.name = "grid", .type = CLI_LIST, .offset = offsetof(compare_settings, grid), .group = "Comparison",
     .placeholder = "OPTION=V,V",
     .help = "values of a training option to try; the cell with the best mean validation score represents its row; repeatable"},
    {.name = "grid-seeds", TEXT(grid_seeds), .placeholder = "N", .unset = "all", .advanced = true,
     .help = "seeds that choose the cell of a row; only the chosen one is trained with the other seeds"},
    {.name = "metric", TEXT(metric), .placeholder = "METRIC", .unset = "the one that selects epochs", .advanced = true,
     .help = "metric of the best row and of the paired test: log-loss, accuracy; recommend: ndcg@10, hit@10, mrr"},
    {.name = "reach", TEXT(reach), .placeholder = "X", .unset = "none",
     .help = "validation score (of --select) whose time is a column: seconds until the first epoch that reaches it"},
    {.name = "split", TEXT(split), .placeholder = "SPLIT", .unset = "test", .advanced = true,
     .help = "split of the scores: train, valid or test"},
    {.name = "protocol", TEXT(protocol), .placeholder = "NAME", .unset = "full-unseen",
     .help = "recommend: ranking protocol of the scores: full-unseen, full, uniform or popularity"},
    {.name = "negatives-per-case", TEXT(negatives), .placeholder = "N", .unset = "100", .advanced = true,
     .help = "recommend: negative samples per event of the protocols uniform and popularity"},
    {.name = "cases", TEXT(cases), .placeholder = "N", .unset = "all", .advanced = true,
     .help = "recommend: maximum number of events to rank, sampled at random"},
    {.name = "bootstrap", TEXT(bootstrap), .placeholder = "N", .unset = "2000", .advanced = true,
     .help = "bootstrap resamples of the paired test; 0 leaves it out"},
    {.name = "parallel", TEXT(parallel), .placeholder = "N", .unset = "one per core; up to 5 processes on a GPU",
     .help = "runs at the same time; does not change the scores"},
    {.name = "keep", TEXT(keep), .placeholder = "DIR", .unset = "OUTPUT.runs, or DATA.runs in the current folder",
     .help = "folder of finished runs: the same command continues from them; none keeps nothing"},
    {.name = "data", TEXT(data), .placeholder = "FILE", .unset = "that of the file", .file = CLI_INPUT_FILE, .advanced = true,
     .help = "events of a comparison in a file"},
    {.name = "helper", .type = CLI_FLAG, .offset = offsetof(compare_settings, helper), .group = "Comparison",
     .help = "train runs of a comparison that another process prints; share its --keep", .advanced = true},
    {.name = "format", .type = CLI_CHOICE, .offset = offsetof(compare_settings, format.name), .placeholder = "NAME",
     .help = "format of the table", .choices = cli_sweep_format_names},
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(compare_settings, output),
     .placeholder = "FILE", .help = "file of the table", .unset = "standard output", .file = CLI_OUTPUT_FILE},
    {.name = "curves", .type = CLI_TEXT, .offset = offsetof(compare_settings, curves), .placeholder = "FILE",
     .help = "SVG figure of the validation scores against time", .unset = "none", .file = CLI_OUTPUT_FILE},
    {.name = "cells", .type = CLI_FLAG, .offset = offsetof(compare_settings, format.cells),
     .help = "all cells of the grid with their validation scores"},
    {.name = "test-scores", .type = CLI_FLAG, .offset = offsetof(compare_settings, format.test_scores),
     .help = "the same with their test scores, on which nothing should be chosen", .advanced = true},
    {.name = "pairs", .type = CLI_FLAG, .offset = offsetof(compare_settings, format.pairs),
     .help = "paired tests of all pairs of rows, in JSON", .advanced = true},
    {.name = "csv-safe", .type = CLI_FLAG, .offset = offsetof(compare_settings, format.csv_safe),
     .help = CLI_CSV_SAFE_HELP},
    {.name = "no-times", .type = CLI_FLAG, .offset = offsetof(compare_settings, format.no_times),
     .help = "leave out times, which differ between equal runs", .advanced = true},
    {0},
};
/* clang-format on */

static const size_t train_offset = offsetof(compare_settings, train);
static const cli_text_options text = {.offset = offsetof(compare_settings, columns)};

static const char *const examples[] = {
    "lapse compare events.lapse --models attention,lstm,markov --encodings mercer,bochner,position --seeds 10",
    "lapse compare events.lapse --grid dropout=0.1,0.3 --grid dims=32,64 --cells",
    ("lapse compare events.lapse --task recommend --models attention,sasrec --protocol uniform --format markdown -o "
     "table.md"),
    "lapse compare table.json",
    NULL,
};

const cli_verb cli_verb_compare = {
    .name = "compare",
    .summary = "train models and compare them in one table",
    .description =
        "Trains every model with every encoding, with each value of a grid, and with several seeds, and prints one row "
        "for "
        "each model and encoding: mean and standard deviation over seeds of the scores on the test split, times, and a "
        "paired test against the best row. In a grid, the validation split chooses the cell of a row. Runs are trained "
        "in "
        "parallel. Finished runs are kept in a folder, so a comparison that was stopped or killed continues, and "
        "several "
        "processes can share one. docs/compare.md describes the table, the test and the file of a comparison.",
    .examples = examples,
    .arguments = arguments,
    .ranks = true,
    .options = options,
    .train = &train_offset,
    .train_many = true,
    .text = &text,
    .size = sizeof(compare_settings),
    .defaults = defaults,
    .clear = clear,
    .run = run,
};
