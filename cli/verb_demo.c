/* verb_demo.c: `lapse demo`: a simulated shop, the baselines, attention with three ways to see time, and the best possible
 * score, in one table. Everything goes the way a user's own data would go: CSV, dataset file, training, model file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bar.h"
#include "demo_next.h"
#include "table.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct demo_settings {
    uint64_t seed;
    int threads;
    const char *keep;
    bool json;
} demo_settings;

enum { CONTENDER_OPTIONS = 3 };

/* A model in the comparison. The attention models differ in nothing but the encoding, and see time through equally many
 * frequencies: 80, or 16 periods with 5 harmonics each. */
typedef struct contender {
    const char *name, *file;
    const char *model;
    const char *options[CONTENDER_OPTIONS][2]; /* of training, with their values */
    const char *explanation;
} contender;

static const contender contenders[] = {
    {"majority", "majority.safetensors", "majority", {{0}}, "always the most frequent event"},
    {"markov 1", "markov1.safetensors", "markov", {{"order", "1"}}, "sees the last event"},
    {"markov 2", "markov2.safetensors", "markov", {{"order", "2"}}, "sees the last two"},
    {"markov 3", "markov3.safetensors", "markov", {{"order", "3"}}, "sees the last three"},
    {"position", "position.safetensors", "attention", {{"encoding", "position"}}, "attention over the order of events"},
    {"bochner",
     "bochner.safetensors",
     "attention",
     {{"encoding", "bochner"}, {"periods", "80"}},
     "attention over lags: 80 learned frequencies"},
    {"mercer",
     "mercer.safetensors",
     "attention",
     {{"encoding", "mercer"}, {"periods", "16"}, {"harmonics", "5"}},
     "attention over lags: 16 periods x 5 harmonics"},
};

enum { CONTENDERS = sizeof contenders / sizeof *contenders, BASELINES = 4 };

/* The same for all attention models, so that the demo takes less than a minute on two cores: few epochs with a large learning
 * rate. Chosen by the score on the validation split. */
static const char *const attention[][2] = {{"dims", "32"},     {"blocks", "1"},     {"heads", "1"},
                                           {"context", "64"},  {"epochs", "10"},    {"learning-rate", "0.006"},
                                           {"dropout", "0.1"}, {"gap-input", "off"}};

typedef struct result {
    double accuracy, log_loss, seconds;
} result;

/* The state of the demo. */
typedef struct demo {
    const demo_settings *settings;
    char folder[512];
    lapse_simulate_options shop;
    lapse_simulation *simulation;
    lapse_dataset *dataset;
    lapse_model *model; /* the newest */
    result results[CONTENDERS], best;
    int64_t cases;
    bool reported; /* the page is there, and stays */
    cli_bar bar;
    lapse_error error;
} demo;

static bool on_progress(const lapse_progress *progress, void *context)
{
    demo *d = context;
    if (d->bar.terminal)
        cli_bar_update(&d->bar, progress);
    return !cli_interrupted();
}

/* The path of a file in the demo's folder. */
typedef struct path {
    char text[768];
} path;

static path in_folder(const demo *d, const char *file)
{
    path out;
    snprintf(out.text, sizeof out.text, "%s/%s", d->folder, file);
    return out;
}

static int make_folder(demo *d)
{
    const char *keep = d->settings->keep, *parent = getenv("TMPDIR");
    if (keep) {
        snprintf(d->folder, sizeof d->folder, "%s", keep);
        if (strlen(keep) >= sizeof d->folder)
            return cli_fail("%.40s...: the path is too long", keep);
        if (mkdir(keep, 0777) != 0 && errno != EEXIST)
            return cli_fail("%s: cannot make the folder: %s", keep, strerror(errno));
        return CLI_DONE;
    }
    snprintf(d->folder, sizeof d->folder, "%s/lapse-demo-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(d->folder))
        return cli_fail("%s: cannot make a temporary folder: %s", d->folder, strerror(errno));
    return CLI_DONE;
}

static void remove_folder(const demo *d)
{
    static const char *const files[] = {"shop.csv", "shop.lapse", "next.csv"};
    if (d->settings->keep)
        return;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        remove(in_folder(d, files[i]).text);
    for (int i = 0; i < CONTENDERS; i++)
        remove(in_folder(d, contenders[i].file).text);
    if (!d->reported)
        rmdir(d->folder);
}

static lapse_status make_data(demo *d)
{
    path csv = in_folder(d, "shop.csv"), file = in_folder(d, "shop.lapse");
    lapse_import_options import;
    lapse_dataset *read = NULL;
    double start = cli_clock();
    lapse_status status = lapse_simulate(&d->shop, &d->simulation, &d->error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(d->simulation, csv.text, &d->error);
    lapse_import_options_default(&import);
    import.input = csv.text;
    import.sequence = "user";
    import.time = "time";
    import.event = "action,item";
    import.threads = d->settings->threads;
    if (status == LAPSE_OK)
        status = lapse_dataset_read(&import, &read, NULL, &d->error);
    if (status == LAPSE_OK)
        status = lapse_dataset_save(read, file.text, &d->error);
    lapse_dataset_close(read);
    if (status == LAPSE_OK)
        status = lapse_dataset_open(file.text, &d->dataset, &d->error);
    if (status == LAPSE_OK)
        fprintf(stderr, "shop: %s of %s, %s, simulated and imported in %s\n",
                cli_plural(lapse_dataset_event_count(d->dataset), "event", "events").text,
                cli_plural(lapse_dataset_sequence_count(d->dataset), "shopper", "shoppers").text,
                cli_plural(lapse_dataset_event_type_count(d->dataset), "event type", "event types").text,
                cli_seconds(cli_clock() - start).text);
    return status;
}

/* Sets options by name until one of them is refused. */
static lapse_status set_options(lapse_train_options *options, const char *const (*list)[2], int count,
                                lapse_error *error)
{
    lapse_status status = LAPSE_OK;
    for (int i = 0; status == LAPSE_OK && i < count && list[i][0]; i++)
        status = lapse_train_options_set(options, list[i][0], list[i][1], error);
    return status;
}

static lapse_status train_one(demo *d, const contender *one)
{
    lapse_train_options *options = NULL;
    char seed[24], threads[16];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)d->settings->seed);
    snprintf(threads, sizeof threads, "%d", d->settings->threads);
    const char *const run[][2] = {
        {"model", one->model}, {"seed", seed}, {d->settings->threads ? "threads" : NULL, threads}};
    lapse_status status = lapse_train_options_new(&options, &d->error);
    if (status == LAPSE_OK)
        status = set_options(options, run, 3, &d->error);
    if (status == LAPSE_OK)
        status = set_options(options, one->options, CONTENDER_OPTIONS, &d->error);
    if (status == LAPSE_OK && strcmp(one->model, "attention") == 0)
        status = set_options(options, attention, sizeof attention / sizeof *attention, &d->error);
    if (status == LAPSE_OK)
        status = lapse_train(d->dataset, options, on_progress, d, &d->model, &d->error);
    lapse_train_options_free(options);
    return status;
}

static lapse_status compete(demo *d, int number)
{
    const contender *one = &contenders[number];
    lapse_evaluate_options evaluate;
    lapse_scores scores;
    double start = cli_clock();
    lapse_evaluate_options_default(&evaluate);
    evaluate.threads = d->settings->threads;
    evaluate.bootstrap = 0;
    lapse_model_free(d->model);
    d->model = NULL;
    d->bar = cli_bar_new(one->name);
    lapse_status status = train_one(d, one);
    cli_bar_wipe(&d->bar);
    if (status == LAPSE_OK && !cli_interrupted())
        status = lapse_model_save(d->model, in_folder(d, one->file).text, &d->error);
    if (status != LAPSE_OK || cli_interrupted())
        return status;
    status = lapse_evaluate(d->model, d->dataset, &evaluate, &scores, &d->error);
    if (status != LAPSE_OK)
        return status;
    d->cases = scores.cases;
    d->results[number] = (result){scores.accuracy, scores.log_loss, cli_clock() - start};
    lapse_scores_clear(&scores);
    fprintf(stderr, "%s: accuracy %s, log-loss %.3f, in %s\n", one->name,
            cli_percent(d->results[number].accuracy, 1).text, d->results[number].log_loss,
            cli_seconds(d->results[number].seconds).text);
    if (number + 1 < CONTENDERS)
        return LAPSE_OK;
    status = lapse_simulation_evaluate(d->simulation, d->model, d->dataset, &evaluate, &scores, &d->error);
    if (status == LAPSE_OK) {
        d->best = (result){scores.accuracy, scores.log_loss, 0};
        lapse_scores_clear(&scores);
    }
    return status;
}

/* The best baseline: the highest accuracy and the lowest log-loss of any of them. */
static result best_baseline(const demo *d)
{
    result baseline = d->results[0];
    for (int i = 1; i < BASELINES; i++) {
        baseline.accuracy = fmax(baseline.accuracy, d->results[i].accuracy);
        baseline.log_loss = fmin(baseline.log_loss, d->results[i].log_loss);
    }
    return baseline;
}

/* The fraction of the possible gain over the baseline. */
static double gain(double baseline, double reached, double best)
{
    return (reached - baseline) / (best - baseline);
}

static bool print_text(const demo *d)
{
    static const char *const headings[] = {"", "accuracy", "gain", "log-loss", "gain", ""};
    cli_table table = {.align = "lrrrrl"};
    result baseline = best_baseline(d);
    printf("\nWhich event comes next? %s of shoppers held back for the test, the time of the event given.\n\n",
           cli_plural(d->cases, "event", "events").text);
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        cli_table_add(&table, "%s", headings[i]);
    for (int i = 0; i <= CONTENDERS; i++) {
        const result *one = i < CONTENDERS ? &d->results[i] : &d->best;
        bool gains = i >= BASELINES;
        cli_table_add(&table, "%s", i < CONTENDERS ? contenders[i].name : "best possible");
        cli_table_add(&table, "%s", cli_percent(one->accuracy, 1).text);
        cli_table_add(&table, "%s",
                      gains ? cli_percent(gain(baseline.accuracy, one->accuracy, d->best.accuracy), 0).text : "");
        cli_table_add(&table, "%.3f", one->log_loss);
        cli_table_add(&table, "%s",
                      gains ? cli_percent(gain(baseline.log_loss, one->log_loss, d->best.log_loss), 0).text : "");
        cli_table_add(&table, "%s",
                      i < CONTENDERS ? contenders[i].explanation : "the law that the events are drawn from");
    }
    bool whole = cli_table_print(&table, stdout, 2);
    puts(
        "\nGain: how far a model gets from the best baseline (0 %) to perfect knowledge (100 %). The first four rows "
        "are\n"
        "baselines.\n"
        "Log-loss is in nats per event; lower is better.\n"
        "bochner and mercer encode the lag of each past event, so that attention sees how long ago it was: bochner by\n"
        "cosines and sines of learned frequencies (Bochner's theorem: a kernel of lags is a mixture of cosines),\n"
        "mercer by Fourier series of learned periods (Mercer's theorem: a kernel is a series of basis functions).");
    return whole;
}

static void print_json(const demo *d, double seconds)
{
    cli_json json = {.file = stdout};
    result baseline = best_baseline(d);
    cli_json_object(&json, NULL);
    cli_json_seed(&json, "seed", d->settings->seed);
    cli_json_whole(&json, "cases", d->cases);
    cli_json_array(&json, "models");
    for (int i = 0; i <= CONTENDERS; i++) {
        const result *one = i < CONTENDERS ? &d->results[i] : &d->best;
        cli_json_object(&json, NULL);
        cli_json_text(&json, "name", i < CONTENDERS ? contenders[i].name : "best possible");
        cli_json_number(&json, "accuracy", one->accuracy, 9);
        cli_json_number(&json, "log_loss", one->log_loss, 9);
        if (i >= BASELINES) {
            cli_json_number(&json, "accuracy_gain", gain(baseline.accuracy, one->accuracy, d->best.accuracy), 6);
            cli_json_number(&json, "log_loss_gain", gain(baseline.log_loss, one->log_loss, d->best.log_loss), 6);
        }
        cli_json_number(&json, "seconds", one->seconds, 4);
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_number(&json, "seconds", seconds, 4);
    cli_json_end(&json, '}');
}

/* The page of `lapse inspect` about the last model. */
static lapse_status report(demo *d)
{
    lapse_inspect_options options;
    path page = in_folder(d, "report.html");
    lapse_inspect_options_default(&options);
    options.title = contenders[CONTENDERS - 1].name;
    options.threads = d->settings->threads;
    lapse_status status = lapse_inspect(d->model, d->dataset, &options, page.text, NULL, &d->error);
    if (status != LAPSE_OK)
        return status;
    d->reported = true;
    fputs("\nThe report on mercer shows this in figures. Open it in a browser:\n  ", stdout);
    cli_text_print(stdout, page.text);
    fputc('\n', stdout);
    return LAPSE_OK;
}

/* The first commands for data of one's own, by the name that this program was called by. */
static void print_commands(const char *program)
{
    puts("\nTo try it on a CSV of your own, with columns such as user, time and item (--sequence, --time and --event "
         "name "
         "others):");
    printf("  %s check events.csv\n", program);
    printf("  %s train events.csv -o model.safetensors\n", program);
    printf("  %s predict model.safetensors events.csv --at +1h --at +7d\n", program);
}

static int work_through(demo *d, const char *program, double start)
{
    lapse_status status = make_data(d);
    for (int i = 0; i < CONTENDERS && status == LAPSE_OK && !cli_interrupted(); i++)
        status = compete(d, i);
    if (status != LAPSE_OK)
        return cli_error(&d->error);
    if (cli_interrupted()) {
        cli_note("interrupted");
        return CLI_INTERRUPTED;
    }
    if (d->settings->json) {
        print_json(d, cli_clock() - start);
        return CLI_DONE;
    }
    if (!print_text(d))
        return cli_fail("out of memory");
    status = cli_demo_next(d->model, &d->shop, in_folder(d, "next.csv").text, &d->error);
    if (status == LAPSE_OK)
        status = report(d);
    if (status != LAPSE_OK)
        return cli_error(&d->error);
    printf("\n%s in all.", cli_seconds(cli_clock() - start).text);
    if (d->settings->keep) {
        fputs(" The files are in ", stdout);
        cli_text_print(stdout, d->folder);
        fputs("; `lapse info` tells what each holds.", stdout);
    }
    fputc('\n', stdout);
    print_commands(program);
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    demo d;
    double start = cli_clock();
    memset(&d, 0, sizeof d);
    d.settings = settings;
    lapse_simulate_options_default(&d.shop);
    d.shop.seed = d.settings->seed;
    int status = make_folder(&d);
    if (status != CLI_DONE)
        return status;
    cli_interrupt_watch();
    status = work_through(&d, call->argv[0], start);
    lapse_model_free(d.model);
    lapse_dataset_close(d.dataset);
    lapse_simulation_free(d.simulation);
    remove_folder(&d);
    return status;
}

static void defaults(void *settings)
{
    demo_settings *s = settings;
    lapse_simulate_options shop;
    lapse_simulate_options_default(&shop);
    s->seed = shop.seed;
}

static const cli_argument arguments[] = {{0}};

/* clang-format off */
static const cli_option options[] = {
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(demo_settings, seed), .placeholder = "N",
     .help = "another seed is another shop and another training"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(demo_settings, threads), .placeholder = "N",
     .help = "threads to use; never changes the result", .unset = "all cores"},
    {.name = "keep", .type = CLI_TEXT, .offset = offsetof(demo_settings, keep), .placeholder = "FOLDER",
     .help = "keep events, dataset, models and report in this folder", .unset = "only the report is kept, in a temporary folder"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(demo_settings, json),
     .help = "print the table as one JSON object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse demo", "lapse demo --keep shop", NULL};

const cli_verb cli_verb_demo = {
    .name = "demo",
    .summary = "simulate a shop, train models, and show what the elapsed time adds",
    .description =
        "Simulates a shop whose law is known, trains the baselines (majority, Markov chains) and attention with three "
        "ways to see time at equal size, and shows in one table what each reached of what is possible. Then "
        "tells what happens next to one shopper, writes the report of `lapse inspect`, and prints the commands that do "
        "the same "
        "with data of your own. Takes under a minute.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(demo_settings),
    .defaults = defaults,
    .run = run,
};
