/* verb_train.c: `lapse train`: trains a model, saves the best one, and evaluates it on the test split. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bar.h"
#include "baseline_table.h"
#include "epoch_table.h"
#include "events.h"
#include "rank_table.h"
#include "ranks.h"
#include "lookup.h"
#include "score_table.h"
#include "time_table.h"
#include "verb.h"

typedef struct train_settings {
    cli_train train;
    cli_columns columns;
    const char *data, *output, *log, *like;
    bool no_eval, json;
} train_settings;

/* The state of the progress display. */
typedef struct watch {
    cli_bar bar;
    lapse_progress last[2]; /* of the events' network, and of the network of times */
    cli_log log;
    cli_epoch_times times[2]; /* likewise */
} watch;

/* The result of a run, for the report. */
typedef struct outcome {
    lapse_progress last[2]; /* as in watch, as are times; an epoch of 0: it was not trained */
    double seconds;
    bool interrupted, log_lost;
    cli_targets targets; /* scored, or empty */
    lapse_rank_scores ranks;
    bool ranked; /* these are the scores */
    cli_comparisons comparisons;
    lapse_time_scores when; /* count 0: the model does not predict times */
    cli_epoch_times times[2];
    int64_t watched; /* validation events that were scored after each epoch, if they were a sample */
} outcome;

static bool on_progress(const lapse_progress *progress, void *context)
{
    watch *w = context;
    w->last[progress->times] = *progress;
    cli_bar_update(&w->bar, progress);
    if (progress->epoch_end) {
        cli_log_write(&w->log, progress);
        cli_epoch_times_add(&w->times[progress->times], progress->epoch, progress->seconds);
    }
    return !cli_interrupted();
}

/* The value of a training option. */
typedef struct option_words {
    char text[4096];
} option_words;

static option_words option_of(const lapse_train_options *options, const char *name)
{
    option_words words = {""};
    lapse_train_options_get(options, name, words.text, sizeof words.text);
    return words;
}

static void print_banner(const train_settings *s, const lapse_dataset *dataset, const cli_verb *verb)
{
    fputs("Data      ", stderr);
    cli_text_print(stderr, s->data);
    fprintf(stderr, ": %s in %s, %s\n", cli_plural(lapse_dataset_event_count(dataset), "event", "events").text,
            cli_plural(lapse_dataset_sequence_count(dataset), "sequence", "sequences").text,
            cli_plural(lapse_dataset_event_type_count(dataset), "event type", "event types").text);
    cli_options_banner(verb, s);
    static const char *const chosen[][2] = {{"device", "Device   "}, {"censoring", "Censoring"}, {"size", "Size     "}};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        const char *reason = lapse_train_options_reason(s->train.resolved, chosen[i][0]);
        if (*reason)
            fprintf(stderr, "%s %s: %s\n", chosen[i][1], option_of(s->train.resolved, chosen[i][0]).text, reason);
    }
}

static void print_argument(const char *text)
{
    fputc(' ', stderr);
    if (*text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%")]) {
        fputs(text, stderr);
        return;
    }
    fputc('\'', stderr);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stderr);
        else
            fputc(*text, stderr);
    }
    fputc('\'', stderr);
}

static void say_stopped(const train_settings *s, const cli_call *call, const lapse_model *model,
                        const lapse_progress networks[2])
{
    const lapse_progress *last = &networks[networks[1].epoch > 0];
    const char *what = last->times ? " of the times" : "";
    if (last->best_epoch > 0)
        cli_note("stopped in epoch %d%s; the best model so far (epoch %d, %s) is saved in %s", last->epoch, what,
                 last->best_epoch, cli_metric(last->score_name, last->best_score).text, s->output);
    else
        cli_note("stopped in epoch %d%s, before a first score; the model so far is saved in %s", last->epoch, what,
                 s->output);
    if (strcmp(option_of(s->train.resolved, "when").text, "true") == 0 && !lapse_model_predicts_time(model))
        cli_note("it does not predict times, whose network is trained after that of the events: resume the run");
    if (!*option_of(s->train.resolved, "checkpoint").text) {
        cli_note("it cannot be resumed, because checkpoints are disabled");
        return;
    }
    fputs("lapse: to resume:", stderr);
    for (int i = 0; i < call->argc; i++) {
        if (strcmp(call->argv[i], "--resume") != 0)
            print_argument(call->argv[i]);
        if (i == 1)
            print_argument("--resume");
    }
    fputc('\n', stderr);
}

/* Finds a folder that cannot be written to before training rather than after it. */
static int check_output(const train_settings *s, const cli_verb *verb)
{
    char folder[4096];
    struct stat there;
    if (strcmp(s->output, "-") == 0)
        return cli_usage(verb, "a model goes to a file, not to standard output");
    if (stat(s->output, &there) == 0 && S_ISDIR(there.st_mode))
        return cli_fail("%s: this is a folder; give the name of a file", s->output);
    snprintf(folder, sizeof folder, "%s", s->output);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    if (access(slash ? folder : ".", W_OK | X_OK) != 0)
        return cli_fail("%s: cannot write: %s", s->output, strerror(errno));
    return CLI_DONE;
}

static bool resumes(const train_settings *s)
{
    return strcmp(option_of(s->train.given, "resume").text, "true") == 0;
}

/* Of a network that the run found trained in its checkpoint. */
static void take_history(const lapse_model *model, lapse_progress *last)
{
    const char *best = cli_model_property(model, "score.epoch");
    lapse_epoch epoch;
    while (lapse_model_history(model, last->epoch, &last->newest))
        last->epoch++;
    last->best_epoch = best ? (int)strtol(best, NULL, 10) : 0;
    if (last->best_epoch < 1 || !lapse_model_history(model, last->best_epoch - 1, &epoch))
        return;
    last->best_score = epoch.score;
    last->score_name = cli_model_property(model, "train.select");
}

static lapse_status train(train_settings *s, lapse_trainer *trainer, cli_log log, lapse_model **model, outcome *out,
                          lapse_error *error)
{
    watch w = {.bar = cli_bar_new(NULL), .last = {{.best_score = NAN}, {.best_score = NAN}}, .log = log};
    double start = cli_clock();
    cli_interrupt_watch();
    lapse_status status = lapse_trainer_run(trainer, on_progress, &w, model, error);
    cli_bar_end(&w.bar);
    if (status == LAPSE_OK && (cli_ranks_first() || lapse_model_divided(*model)))
        status = lapse_model_save(*model, s->output, error);
    cli_interrupt_unwatch();
    const char *how = status == LAPSE_OK ? cli_model_property(*model, "run.status") : NULL;
    out->interrupted = cli_interrupted() || (how && strcmp(how, "stopped") == 0); /* another rank may have been */
    memcpy(out->last, w.last, sizeof out->last);
    memcpy(out->times, w.times, sizeof out->times);
    if (status == LAPSE_OK && w.last[0].epoch == 0)
        take_history(*model, &out->last[0]);
    if (!cli_log_close(&w.log))
        out->log_lost = cli_fail("%s: the log could not be written: %s", s->log, strerror(w.log.error)) != CLI_DONE;
    out->watched = status == LAPSE_OK ? cli_validation_cases(*model) : 0;
    out->seconds = cli_clock() - start;
    lapse_error left;
    if (status == LAPSE_OK && !out->interrupted && cli_ranks_first() &&
        lapse_trainer_delete_checkpoint(trainer, &left) != LAPSE_OK)
        cli_note("the model is saved, but its checkpoint %s is left: %s", left.file, left.message);
    return status;
}

static void print_best(const lapse_progress *last, int64_t drawn)
{
    printf("; the best%s was epoch %d of %d with %s", last->times ? " of the times" : "", last->best_epoch, last->epoch,
           cli_metric(last->score_name, last->best_score).text);
    bool event = false, action = false;
    for (int i = 0; i < last->newest.metric_count; i++) {
        event = event || strcmp(last->newest.metrics[i].target, "event") == 0;
        action = action || strcmp(last->newest.metrics[i].target, "action") == 0;
    }
    if (event && action)
        printf(" (%s over event and action)", strstr(last->score_name, "loss") ? "sum" : "mean");
    if (drawn > 0)
        printf(" on %s drawn from", cli_plural(drawn, "event", "events").text);
    printf(drawn > 0 ? " the validation split" : " on the validation split");
    if (last->best_epoch == last->epochs && last->epochs > 1)
        printf("; more epochs (--epochs) may give a better one");
}

/* False: out of memory. */
static bool print_text(const train_settings *s, const outcome *out)
{
    fputs("saved        ", stdout);
    cli_text_print(stdout, s->output);
    printf(" after %s", cli_seconds(out->seconds).text);
    for (int i = 0; i < 2; i++)
        if (out->last[i].best_epoch > 0)
            print_best(&out->last[i], i == 0 ? out->watched : 0);
    fputc('\n', stdout);
    bool good = out->ranked ? cli_ranks_print(stdout, &out->ranks) : cli_targets_print(stdout, &out->targets, false);
    good = cli_comparisons_print(stdout, &out->comparisons) && good;
    if (out->when.count > 0) {
        putchar('\n');
        good = cli_times_print(stdout, &out->when) && good;
    }
    fflush(stdout);
    cli_comparisons_warn(&out->comparisons);
    return good;
}

/* A run whose loss was not finite keeps the best epoch before. */
static void warn_diverged(const train_settings *s, const lapse_model *model)
{
    const char *status = cli_model_property(model, "run.status");
    if (status && strcmp(status, "diverged") == 0)
        cli_note("training diverged: the loss is not finite. The best model so far is saved in %s; try a smaller "
                 "--learning-rate or a smaller --clip",
                 s->output);
}

static void print_json(const train_settings *s, const outcome *out, const lapse_model *model, const cli_verb *verb)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "data", s->data);
    cli_json_text(&json, "output", s->output);
    cli_json_object(&json, "settings");
    cli_options_json(verb, s, &json);
    cli_json_end(&json, '}');
    cli_json_bool(&json, "interrupted", out->interrupted);
    cli_json_whole(&json, "epochs", out->last[0].epoch);
    cli_json_whole(&json, "best_epoch", out->last[0].best_epoch);
    cli_json_number(&json, "best_score", out->last[0].best_score, 9);
    if (out->last[1].epoch > 0) {
        cli_json_object(&json, "times");
        cli_json_whole(&json, "epochs", out->last[1].epoch);
        cli_json_whole(&json, "best_epoch", out->last[1].best_epoch);
        cli_json_number(&json, "best_score", out->last[1].best_score, 9);
        cli_json_end(&json, '}');
    }
    cli_json_number(&json, "seconds", out->seconds, 4);
    cli_history_json(&json, model, out->times);
    if (out->targets.count > 0) {
        cli_json_object(&json, "scores");
        cli_targets_json(&json, &out->targets, false);
        cli_json_end(&json, '}');
    }
    if (out->ranked) {
        cli_json_object(&json, "scores");
        cli_ranks_json(&json, &out->ranks);
        cli_json_end(&json, '}');
    }
    cli_comparisons_json(&json, &out->comparisons);
    if (out->when.count > 0)
        cli_times_json(&json, &out->when);
    cli_json_end(&json, '}');
}

/* The scores on the test split, beside those of baselines. The model file gets them too. */
static lapse_status evaluate(const train_settings *s, lapse_model *model, const lapse_dataset *dataset, outcome *out,
                             lapse_error *error)
{
    lapse_evaluate_options options;
    lapse_rank_options rank;
    lapse_evaluate_options_default(&options);
    lapse_rank_options_default(&rank);
    options.comm = rank.comm = cli_ranks();
    options.threads = rank.threads = (int)strtol(option_of(s->train.resolved, "threads").text, NULL, 10);
    bool ranks = cli_is_recommender(model), compared = ranks && cli_comparisons_apply(model);
    lapse_status status = compared
                              ? lapse_rank_compare(model, dataset, &rank, &out->ranks, &out->comparisons.list[0], error)
                          : ranks ? lapse_rank_evaluate(model, dataset, &rank, &out->ranks, error)
                                  : cli_targets_evaluate(&out->targets, NULL, model, dataset, &options, error);
    out->ranked = ranks && status == LAPSE_OK;
    out->comparisons.count = compared && status == LAPSE_OK; /* a recommender has one target */
    if (status == LAPSE_OK && !ranks)
        status = cli_comparisons_make(&out->comparisons, model, dataset, &options, error);
    if (status == LAPSE_OK && lapse_model_predicts_time(model))
        status = lapse_time_evaluate(model, dataset, &options, &out->when, error);
    for (int i = 0; status == LAPSE_OK && i < out->comparisons.count; i++)
        status = lapse_model_record(model, &out->comparisons.list[i], error);
    bool saves = out->comparisons.count > 0 && (cli_ranks_first() || lapse_model_divided(model));
    return status == LAPSE_OK && saves ? lapse_model_save(model, s->output, error) : status;
}

static int finish(const train_settings *s, const cli_call *call, lapse_model *model, const lapse_dataset *dataset,
                  outcome *out)
{
    lapse_error error;
    int result = CLI_DONE;
    warn_diverged(s, model);
    if (out->interrupted) {
        say_stopped(s, call, model, out->last);
        result = CLI_INTERRUPTED;
    } else if (!s->no_eval) {
        if (evaluate(s, model, dataset, out, &error) != LAPSE_OK) {
            cli_note("the model is saved in %s, but could not be scored (--no-eval skips the scores):", s->output);
            result = cli_error(&error);
        }
    }
    bool lost = s->json ? (out->times[0].lost || out->times[1].lost) : !out->interrupted && !print_text(s, out);
    if (lost)
        result = cli_fail("out of memory");
    else if (s->json)
        print_json(s, out, model, call->verb);
    cli_targets_clear(&out->targets);
    lapse_rank_scores_clear(&out->ranks);
    return result == CLI_DONE && out->log_lost ? CLI_FAILED : result;
}

/* The checkpoint is OUTPUT.checkpoint where no other file is named. */
static int choose_checkpoint(const train_settings *s)
{
    lapse_error error;
    char path[4096];
    if (*option_of(s->train.given, "checkpoint").text)
        return CLI_DONE;
    snprintf(path, sizeof path, "%s.checkpoint", s->output);
    if (lapse_train_options_set(s->train.given, "checkpoint", path, &error) != LAPSE_OK)
        return cli_error(&error);
    return CLI_DONE;
}

/* The settings of an earlier run, for options that are not set here. */
static lapse_status take_settings(const train_settings *s, const lapse_dataset *dataset, lapse_error *error)
{
    lapse_model *model = NULL;
    lapse_status status = lapse_model_load(s->like, &model, error);
    if (status == LAPSE_OK)
        status = lapse_train_options_like(s->train.given, model, dataset, error);
    lapse_model_free(model);
    return status;
}

/* lapse_trainer_new has refused a file that is not a checkpoint. */
static void note_checkpoint(const train_settings *s)
{
    option_words path = option_of(s->train.resolved, "checkpoint");
    if (*path.text && access(path.text, F_OK) == 0 && lapse_train_options_apply(s->train.resolved, "checkpoint") &&
        !resumes(s))
        cli_note("%s is the checkpoint of an earlier run; this run starts anew (--resume continues that one)",
                 path.text);
}

static int run(void *settings, const cli_call *call)
{
    train_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_trainer *trainer = NULL;
    lapse_model *model = NULL;
    lapse_error error;
    outcome out;
    memset(&out, 0, sizeof out);
    int result = cli_ranks_first() ? check_output(s, call->verb) : CLI_DONE;
    if (result == CLI_DONE)
        result = choose_checkpoint(s);
    if (result != CLI_DONE)
        return result;
    result = cli_events_open(s->data, &s->columns, NULL, &dataset);
    if (result != CLI_DONE)
        return result;
    lapse_status status = s->like ? take_settings(s, dataset, &error) : LAPSE_OK;
    lapse_train_options_set_comm(s->train.given, cli_ranks());
    if (status == LAPSE_OK)
        status = lapse_trainer_new(dataset, s->train.given, &trainer, &error);
    if (status == LAPSE_OK) {
        s->train.resolved = lapse_trainer_options(trainer);
        cli_log log = {0};
        result = cli_log_open(&log, cli_ranks_first() ? s->log : NULL,
                              resumes(s) && access(option_of(s->train.resolved, "checkpoint").text, F_OK) == 0);
        if (result == CLI_DONE) {
            note_checkpoint(s);
            print_banner(s, dataset, call->verb);
            status = train(s, trainer, log, &model, &out, &error);
        }
    }
    if (result == CLI_DONE)
        result = status == LAPSE_OK ? finish(s, call, model, dataset, &out) : cli_error(&error);
    cli_epoch_times_clear(&out.times[0]);
    cli_epoch_times_clear(&out.times[1]);
    lapse_model_free(model);
    lapse_trainer_free(trainer);
    lapse_dataset_close(dataset);
    return result;
}

static void defaults(void *settings)
{
    train_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_train_options_new(&s->train.given, NULL);
}

static void clear(void *settings)
{
    lapse_train_options_free(((train_settings *)settings)->train.given);
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(train_settings, data), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

/* The training options of the library follow these. */
static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_TEXT,
     .offset = offsetof(train_settings, output),
     .placeholder = "MODEL",
     .help = "model file to write",
     .file = CLI_OUTPUT_FILE,
     .required = true},
    {.name = "like",
     .type = CLI_TEXT,
     .offset = offsetof(train_settings, like),
     .placeholder = "MODEL",
     .help = "model file of an earlier run, whose settings are the defaults of this one; other options override them",
     .unset = "none",
     .file = CLI_INPUT_FILE,
     .advanced = true},
    {.name = "log",
     .type = CLI_TEXT,
     .offset = offsetof(train_settings, log),
     .placeholder = "FILE",
     .help = "JSON Lines file to write: one object per epoch, as it ends; --resume appends to it",
     .unset = "none",
     .file = CLI_OUTPUT_FILE,
     .advanced = true},
    {.name = "no-eval",
     .type = CLI_FLAG,
     .offset = offsetof(train_settings, no_eval),
     .help = "skip the evaluation on the test split after training",
     .advanced = true},
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(train_settings, json),
     .help = "print settings and scores as one JSON object"},
    {0},
};

static const size_t train_offset = offsetof(train_settings, train);
static const cli_text_options text = {.offset = offsetof(train_settings, columns)};

static const char *const examples[] = {
    "lapse train events.lapse -o model.safetensors --task classify",
    "lapse train events.csv -o model.safetensors --sequence user --time time --event item",
    "lapse train events.lapse -o markov.safetensors --model markov --order 2",
    "lapse train events.lapse -o model.safetensors --resume",
    "lapse train newer.lapse -o newer.safetensors --like model.safetensors",
    NULL,
};

const cli_verb cli_verb_train = {
    .name = "train",
    .summary = "train a model on events and save the best one",
    .description = "Trains on the training split, keeps the parameters that were best on the validation split, and "
                   "evaluates them on "
                   "the test split, beside baselines. Options that are not set are chosen from the data. Ctrl-C stops "
                   "after the current "
                   "step and saves "
                   "the best model so far; --resume continues from there. Under mpirun or srun, all processes train "
                   "one model, with the same "
                   "result.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .ranks = true,
    .train = &train_offset,
    .text = &text,
    .size = sizeof(train_settings),
    .defaults = defaults,
    .clear = clear,
    .run = run,
};
