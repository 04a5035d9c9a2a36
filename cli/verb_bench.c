/* verb_bench.c: `lapse bench`: speed of training and scoring on this machine, with a profile by op. */
#include <string.h>

#include "table.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct bench_settings {
    lapse_bench_options bench;
    cli_train train;
    bool json;
} bench_settings;

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void add_rate(cli_table *table, double amount, double seconds)
{
    if (amount > 0 && seconds > 0)
        cli_table_add(table, "%.1f", 1e-9 * amount / seconds);
    else
        cli_table_add(table, "%s", "-");
}

static int print_rows(const lapse_bench_report *report)
{
    static const char *const heads[] = {"op",      "calls", "ms",           "fraction",
                                        "GFLOP/s", "GB/s",  "roofline, ms", "x roofline"};
    cli_table table = {.align = "lrrrrrrr"};
    double all = report->step_minimum * report->threads; /* thread-seconds */
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        cli_table_add(&table, "%s", heads[i]);
    for (int i = 0; i < report->row_count; i++) {
        const lapse_bench_row *row = &report->rows[i];
        cli_table_add(&table, "%s", row->name);
        cli_table_add(&table, "%s", cli_count(row->calls).text);
        cli_table_add(&table, "%.3f", 1e3 * row->seconds);
        cli_table_add(&table, "%s", cli_percent(ratio(row->seconds, all), 1).text);
        add_rate(&table, row->flop, row->seconds);
        add_rate(&table, row->bytes, row->seconds);
        cli_table_add(&table, row->roofline > 0 ? "%.3f" : "-", 1e3 * row->roofline);
        cli_table_add(&table, row->roofline > 0 ? "%.1f" : "-", ratio(row->seconds, row->roofline));
    }
    return cli_table_print(&table, stdout, 0) ? CLI_DONE : cli_fail("out of memory");
}

/* One line per kernel launch; parts of a step that are not launches have no number. */
static int print_launches(const lapse_bench_report *report)
{
    static const char *const heads[] = {"launch",   "op",      "type", "nodes",        "us",
                                        "fraction", "GFLOP/s", "GB/s", "roofline, us", "x roofline"};
    cli_table table = {.align = "rllrrrrrrr"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        cli_table_add(&table, "%s", heads[i]);
    for (int i = 0; i < report->row_count; i++) {
        const lapse_bench_row *row = &report->rows[i];
        cli_table_add(&table, row->launch ? "%d" : "-", row->launch);
        cli_table_add(&table, "%s", row->name);
        cli_table_add(&table, "%s", row->launch ? row->type : "-");
        cli_table_add(&table, row->launch ? "%d" : "-", row->nodes);
        cli_table_add(&table, "%.1f", 1e6 * row->seconds);
        cli_table_add(&table, "%s", cli_percent(ratio(row->seconds, report->step_minimum), 1).text);
        add_rate(&table, row->flop, row->seconds);
        add_rate(&table, row->bytes, row->seconds);
        cli_table_add(&table, row->roofline > 0 ? "%.1f" : "-", 1e6 * row->roofline);
        cli_table_add(&table, row->roofline > 0 ? "%.1f" : "-", ratio(row->seconds, row->roofline));
    }
    return cli_table_print(&table, stdout, 0) ? CLI_DONE : cli_fail("out of memory");
}

static void print_speed(const char *label, const lapse_bench_report *report, double seconds)
{
    double rate = ratio(report->flop, seconds);
    printf("%-10s %s events/s, %.1f GFLOP/s", label, cli_rate(ratio(report->events, seconds)).text, 1e-9 * rate);
    if (report->peak > 0)
        printf(", %s of peak", cli_percent(ratio(rate, report->peak), 1).text);
    printf("\n");
}

static int print_text(const lapse_bench_report *report)
{
    bool train = strcmp(report->what, "train") == 0;
    printf("preset     %s, %s: %s items, %s parameters\n", report->preset, report->what, cli_count(report->items).text,
           cli_count(report->parameters).text);
    bool host = strcmp(report->device, "cpu") == 0;
    printf("machine    %s, %s", host ? cli_plural(report->threads, "thread", "threads").text : report->device,
           host ? report->level : report->precision);
    if (report->peak > 0)
        printf(": peak %.1f GFLOP/s, copy bandwidth %.1f GB/s", 1e-9 * report->peak, 1e-9 * report->bandwidth);
    printf("\n");
    if (!host)
        printf("GPU        %s\n", lapse_device_found());
    printf("checked    one step against the reference kernels in double: largest gradient error %.1e\n", report->error);
    printf("%-10s %.0f histories, %.0f input events, %.0f target events, %.2f GFLOP\n", train ? "step" : "split",
           report->windows, report->tokens, report->events, 1e-9 * report->flop);
    printf("time       median %.2f ms, minimum %.2f, 90th percentile %.2f, of %d\n", 1e3 * report->step_median,
           1e3 * report->step_best, 1e3 * report->step_p90, report->rounds);
    if (train)
        printf("epoch      %.1f ms, %s\n", 1e3 * report->epoch, cli_plural(report->steps, "step", "steps").text);
    print_speed("speed", report, report->step_median);
    if (report->row_count == 0)
        return CLI_DONE;
    if (!host) {
        printf(
            "\nLaunches timed one by one, minimum of all rounds: %.1f us in total. In a step independent launches run\n"
            "concurrently. A launch of several nodes has the name of the first node and the roofline of all.\n\n",
            1e6 * report->step_minimum);
        return print_launches(report);
    }
    printf("\nMinimum time of each op over all rounds, summed over threads: an undisturbed step of %.2f ms.\n",
           1e3 * report->step_minimum);
    print_speed("minimum", report, report->step_minimum);
    printf("\n");
    return print_rows(report);
}

static void json_row(cli_json *json, const lapse_bench_row *row)
{
    cli_json_object(json, NULL);
    if (row->launch) {
        cli_json_whole(json, "launch", row->launch);
        cli_json_text(json, "type", row->type);
        cli_json_whole(json, "nodes", row->nodes);
    }
    cli_json_text(json, "op", row->name);
    cli_json_whole(json, "calls", row->calls);
    cli_json_number(json, "seconds", row->seconds, 6);
    cli_json_number(json, "flop", row->flop, 6);
    cli_json_number(json, "bytes", row->bytes, 6);
    cli_json_number(json, "roofline", row->roofline, 6);
    cli_json_end(json, '}');
}

static int print_json(const lapse_bench_report *report)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "version", lapse_version());
    cli_json_text(&json, "preset", report->preset);
    cli_json_text(&json, "what", report->what);
    cli_json_text(&json, "device", report->device);
    if (strcmp(report->device, "cpu") != 0)
        cli_json_text(&json, "gpu", lapse_device_found());
    cli_json_text(&json, "precision", report->precision);
    cli_json_text(&json, "level", report->level);
    cli_json_whole(&json, "threads", report->threads);
    cli_json_whole(&json, "rounds", report->rounds);
    cli_json_whole(&json, "items", report->items);
    cli_json_whole(&json, "parameters", report->parameters);
    cli_json_number(&json, "error", report->error, 3);
    cli_json_number(&json, "peak_flop_per_second", report->peak, 6);
    cli_json_number(&json, "bandwidth_bytes_per_second", report->bandwidth, 6);
    cli_json_number(&json, "histories", report->windows, 9);
    cli_json_number(&json, "input_events", report->tokens, 9);
    cli_json_number(&json, "target_events", report->events, 9);
    cli_json_number(&json, "flop", report->flop, 6);
    cli_json_number(&json, "step_seconds", report->step_median, 6);
    cli_json_number(&json, "step_best_seconds", report->step_best, 6);
    cli_json_number(&json, "step_p90_seconds", report->step_p90, 6);
    cli_json_number(&json, "step_minimum_seconds", report->step_minimum, 6);
    cli_json_whole(&json, "steps", report->steps);
    cli_json_number(&json, "epoch_seconds", report->epoch, 6);
    cli_json_number(&json, "events_per_second", ratio(report->events, report->step_median), 6);
    cli_json_number(&json, "fraction_of_peak", ratio(ratio(report->flop, report->step_median), report->peak), 4);
    cli_json_number(&json, "step_minimum_fraction_of_peak",
                    ratio(ratio(report->flop, report->step_minimum), report->peak), 4);
    cli_json_array(&json, strcmp(report->device, "cpu") == 0 ? "ops" : "launches");
    for (int i = 0; i < report->row_count; i++)
        json_row(&json, &report->rows[i]);
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    bench_settings *s = settings;
    lapse_bench_report report = {0};
    lapse_error error;
    (void)call;
    s->bench.training = s->train.given;
    if (lapse_bench(&s->bench, &report, &error) != LAPSE_OK)
        return cli_error(&error);
    int status = s->json ? print_json(&report) : print_text(&report);
    lapse_bench_report_clear(&report);
    return status;
}

static void defaults(void *settings)
{
    bench_settings *s = settings;
    lapse_bench_options_default(&s->bench);
    s->train.unset = "that of the preset";
    lapse_train_options_new(&s->train.given, NULL);
}

static void clear(void *settings)
{
    lapse_train_options_free(((bench_settings *)settings)->train.given);
}

static const cli_argument arguments[] = {{0}};

/* clang-format off */
static const cli_option options[] = {
    {.name = "preset", .type = CLI_CHOICE, .offset = offsetof(bench_settings, bench.preset), .placeholder = "NAME",
     .choices = lapse_bench_preset_names, .help = "workload: sizes of a known task"},
    {.name = "what", .type = CLI_CHOICE, .offset = offsetof(bench_settings, bench.what), .placeholder = "NAME",
     .choices = lapse_bench_what_names, .help = "train: training steps; predict: scoring of the validation split"},
    {.name = "items", .type = CLI_COUNT, .offset = offsetof(bench_settings, bench.items), .placeholder = "N",
     .help = "catalogue size, in items", .unset = "that of the preset"},
    {.name = "batch", .type = CLI_WHOLE, .offset = offsetof(bench_settings, bench.batch), .placeholder = "N",
     .help = "batch size, in sequences per step", .unset = "that of the preset"},
    {.name = "shards", .type = CLI_WHOLE, .offset = offsetof(bench_settings, bench.shards), .placeholder = "N",
     .help = "data-parallel shards per batch", .unset = "as in training"},
    {.name = "rounds", .type = CLI_WHOLE, .offset = offsetof(bench_settings, bench.rounds), .placeholder = "N",
     .help = "timed repetitions"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(bench_settings, bench.seed), .placeholder = "N",
     .help = "random seed of the simulated events"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(bench_settings, bench.threads), .placeholder = "N",
     .help = "CPU threads", .unset = "all cores"},
    {.name = "device", .type = CLI_CHOICE, .offset = offsetof(bench_settings, bench.device), .placeholder = "DEVICE",
     .choices = lapse_device_names, .help = "compute device: cpu, cuda (NVIDIA GPU), or auto (cuda if available)"},
    {.name = "precision", .type = CLI_CHOICE, .offset = offsetof(bench_settings, bench.precision), .placeholder = "NAME",
     .choices = lapse_precision_names, .help = "precision of matrix products on a GPU",
     .unset = "bf16 on a GPU, fp32 on the CPU"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(bench_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const size_t train_offset = offsetof(bench_settings, train);
/* The training options that change the work of a step. */
static const char *const train_names[] = {"model",
                                          "task",
                                          "context",
                                          "dims",
                                          "blocks",
                                          "heads",
                                          "projection",
                                          "combine",
                                          "layers",
                                          "encoding",
                                          "periods",
                                          "harmonics",
                                          "frequency-samples",
                                          "dropout",
                                          "gap-input",
                                          "item-output",
                                          "loss",
                                          "negatives",
                                          "windows",
                                          "when",
                                          "when-components",
                                          "when-background",
                                          NULL};

static const char *const examples[] = {
    "lapse bench", "lapse bench --preset so --threads 1", "lapse bench --preset catalogue --items 3416 --json",
    "lapse bench --dims 128 --heads 2 --encoding bochner --periods 64 --loss softmax", NULL};

const cli_verb cli_verb_bench = {
    .name = "bench",
    .summary = "benchmark training and scoring on this machine",
    .description =
        "Trains or scores on simulated events, with the sizes of a known task or sizes of your own. Prints the time of "
        "a step, the fraction "
        "of "
        "the machine's peak FLOP/s, and a profile by op with the roofline time of each op. Op times are summed over "
        "threads and are the minimum of all rounds. On a GPU the profile has one line per kernel launch, which may "
        "compute several ops; launches are timed one by one, although in a step some run concurrently. Before timing, "
        "the gradients of a small step are compared with those of the reference kernels in double precision; a "
        "mismatch "
        "is an error. docs/performance.md explains the tables.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .train = &train_offset,
    .train_names = train_names,
    .size = sizeof(bench_settings),
    .defaults = defaults,
    .clear = clear,
    .run = run,
};
