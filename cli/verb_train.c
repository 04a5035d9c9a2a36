/* verb_train.c: `lapse train`: learns from a dataset, keeps the best model, scores it on the test split. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bar.h"
#include "rank_table.h"
#include "score_table.h"
#include "verb.h"

typedef struct train_settings {
    lapse_train_options train;
    const char *data, *output;
    const char *checkpoint; /* as asked for: NULL beside the model, "none" for none */
    bool no_eval, json;
    bool has_fields; /* the dataset's events have */
} train_settings;

/* What the progress calls leave behind. */
typedef struct watch {
    cli_bar bar;
    lapse_progress last;
} watch;

/* What happened, for the report. */
typedef struct outcome {
    lapse_progress last;
    double seconds;
    bool interrupted;
    cli_targets targets; /* scored, or empty */
    lapse_rank_scores ranks;
    bool ranked;     /* these are the scores */
    int64_t watched; /* events that training looked at after each epoch, where it drew some */
} outcome;

static bool on_progress(const lapse_progress *progress, void *context)
{
    watch *w = context;
    w->last = *progress;
    cli_bar_update(&w->bar, progress);
    return !cli_interrupted();
}

/* The names that decide which settings matter: the model's and, where it has them, the task's with its loss and negatives,
 * the encoding's and "fields". */
enum { NAMES = 8 };

static void names_of(const train_settings *s, const char *names[NAMES])
{
    int count = 0;
    names[count++] = s->train.model;
    if (strcmp(s->train.model, "attention") == 0) {
        if (strcmp(s->train.task, "recommend") == 0) {
            names[count++] = s->train.task;
            names[count++] = s->train.loss;
            /* "popularity" is also the name of a model. */
            if (strcmp(s->train.loss, "softmax") != 0)
                names[count++] = strcmp(s->train.negatives, "popularity") == 0 ? "by-popularity" : s->train.negatives;
        }
        names[count++] = s->train.encoding;
        if (strcmp(s->train.device, "cuda") == 0)
            names[count++] = s->train.device;
        if (s->has_fields)
            names[count++] = "fields";
    }
    names[count] = NULL;
}

static void print_banner(const train_settings *s, const lapse_dataset *dataset, const cli_verb *verb)
{
    const char *names[NAMES];
    names_of(s, names);
    fputs("Data      ", stderr);
    cli_text_print(stderr, s->data);
    fprintf(stderr, ": %s in %s, of %s\n", cli_plural(lapse_dataset_event_count(dataset), "event", "events").text,
            cli_plural(lapse_dataset_sequence_count(dataset), "sequence", "sequences").text,
            cli_plural(lapse_dataset_event_type_count(dataset), "event type", "event types").text);
    cli_options_banner(verb, s, names);
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

static void say_stopped(const train_settings *s, const cli_call *call, const lapse_progress *last)
{
    if (last->best_epoch > 0)
        cli_note("stopped in epoch %d; the best model so far (epoch %d, %s) is saved in %s", last->epoch,
                 last->best_epoch, cli_score(last, last->best_score).text, s->output);
    else
        cli_note("stopped in epoch %d, before a first score; the model so far is saved in %s", last->epoch, s->output);
    if (!s->train.checkpoint) {
        cli_note("it cannot be resumed, because checkpoints were turned off");
        return;
    }
    fputs("lapse: to go on:", stderr);
    for (int i = 0; i < call->argc; i++) {
        if (strcmp(call->argv[i], "--resume") != 0)
            print_argument(call->argv[i]);
        if (i == 1)
            print_argument("--resume");
    }
    fputc('\n', stderr);
}

/* A folder that cannot be written to is better met before the training than after it. */
static int check_output(const train_settings *s, const cli_verb *verb)
{
    char folder[4096];
    struct stat there;
    if (strcmp(s->output, s->data) == 0)
        return cli_usage(verb, "the model would overwrite the dataset %s", s->output);
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

static lapse_status learn(train_settings *s, const lapse_dataset *dataset, lapse_model **model, outcome *out,
                          lapse_error *error)
{
    watch w = {.bar = cli_bar_new(NULL), .last = {.best_score = NAN}};
    double start = cli_clock();
    cli_interrupt_watch();
    lapse_status status = lapse_train(dataset, &s->train, on_progress, &w, model, error);
    cli_bar_end(&w.bar);
    if (status == LAPSE_OK)
        status = lapse_model_save(*model, s->output, error);
    cli_interrupt_unwatch();
    out->interrupted = cli_interrupted();
    out->last = w.last;
    out->watched = status == LAPSE_OK ? cli_validation_cases(*model) : 0;
    out->seconds = cli_clock() - start;
    /* A finished run has nothing to resume. */
    if (status == LAPSE_OK && !out->interrupted && s->train.checkpoint)
        remove(s->train.checkpoint);
    return status;
}

static void print_best(const lapse_progress *last, int64_t drawn)
{
    bool share = strcmp(last->score_name, "accuracy") == 0;
    printf("; the best was epoch %d of %d with ", last->best_epoch, last->epoch);
    if (share)
        printf("%s", cli_percent(last->best_score, 2).text);
    else
        printf("%s %.4f", last->score_name, last->best_score);
    if (drawn > 0)
        printf(" on %s drawn from", cli_plural(drawn, "event", "events").text);
    printf(drawn > 0 ? " the validation split" : " on the validation split");
}

static void print_text(const train_settings *s, const outcome *out)
{
    fputs("saved        ", stdout);
    cli_text_print(stdout, s->output);
    printf(" after %s", cli_seconds(out->seconds).text);
    if (out->last.best_epoch > 0)
        print_best(&out->last, out->watched);
    fputc('\n', stdout);
    if (out->ranked)
        cli_ranks_print(stdout, &out->ranks);
    else
        cli_targets_print(stdout, &out->targets, false);
}

static void print_json(const train_settings *s, const outcome *out, const cli_verb *verb)
{
    cli_json json = {.file = stdout};
    const char *names[NAMES];
    names_of(s, names);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "data", s->data);
    cli_json_text(&json, "output", s->output);
    cli_json_object(&json, "settings");
    cli_options_json(verb, s, names, &json);
    cli_json_end(&json, '}');
    cli_json_bool(&json, "interrupted", out->interrupted);
    cli_json_whole(&json, "epochs", out->last.epoch);
    cli_json_whole(&json, "best_epoch", out->last.best_epoch);
    cli_json_number(&json, "best_score", out->last.best_score, 9);
    cli_json_number(&json, "seconds", out->seconds, 4);
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
    cli_json_end(&json, '}');
}

/* The scores on the test split. */
static lapse_status evaluate(const train_settings *s, const lapse_model *model, const lapse_dataset *dataset,
                             outcome *out, lapse_error *error)
{
    lapse_evaluate_options options;
    lapse_rank_options rank;
    lapse_evaluate_options_default(&options);
    lapse_rank_options_default(&rank);
    options.threads = rank.threads = s->train.threads;
    if (!cli_is_recommender(model))
        return cli_targets_evaluate(&out->targets, model, dataset, &options, error);
    lapse_status status = lapse_rank_evaluate(model, dataset, &rank, &out->ranks, error);
    out->ranked = status == LAPSE_OK;
    return status;
}

static int finish(const train_settings *s, const cli_call *call, const lapse_model *model, const lapse_dataset *dataset,
                  outcome *out)
{
    lapse_error error;
    int result = CLI_DONE;
    if (out->interrupted) {
        say_stopped(s, call, &out->last);
        result = CLI_INTERRUPTED;
    } else if (!s->no_eval) {
        if (evaluate(s, model, dataset, out, &error) != LAPSE_OK) {
            cli_note("the model is saved in %s, but could not be scored (--no-eval leaves that out):", s->output);
            result = cli_error(&error);
        }
    }
    if (s->json)
        print_json(s, out, call->verb);
    else if (!out->interrupted)
        print_text(s, out);
    cli_targets_clear(&out->targets);
    lapse_rank_scores_clear(&out->ranks);
    return result;
}

/* Puts the checkpoint where it was asked for; *owned is the text to free. */
static int choose_checkpoint(train_settings *s, char **owned)
{
    if (!s->checkpoint) {
        size_t size = strlen(s->output) + sizeof ".checkpoint";
        *owned = malloc(size);
        if (!*owned)
            return cli_fail("out of memory");
        snprintf(*owned, size, "%s.checkpoint", s->output);
        s->checkpoint = *owned;
    }
    s->train.checkpoint = strcmp(s->checkpoint, "none") == 0 ? NULL : s->checkpoint;
    if (s->train.checkpoint && !s->train.resume && access(s->checkpoint, F_OK) == 0)
        cli_note("%s is left from an earlier run; this one starts anew (--resume would go on)", s->checkpoint);
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    train_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_model *model = NULL;
    char *checkpoint = NULL;
    lapse_error error;
    outcome out;
    memset(&out, 0, sizeof out);
    int result = check_output(s, call->verb);
    if (result == CLI_DONE)
        result = choose_checkpoint(s, &checkpoint);
    if (result != CLI_DONE)
        return result;
    lapse_status status = lapse_dataset_open(s->data, &dataset, &error);
    if (status == LAPSE_OK)
        status = lapse_train_options_resolve(dataset, &s->train, &error);
    if (status == LAPSE_OK) {
        s->has_fields = lapse_dataset_field(dataset, 0, &(lapse_field){0});
        print_banner(s, dataset, call->verb);
        status = learn(s, dataset, &model, &out, &error);
    }
    result = status == LAPSE_OK ? finish(s, call, model, dataset, &out) : cli_error(&error);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    free(checkpoint);
    return result;
}

static void defaults(void *settings)
{
    train_settings *s = settings;
    lapse_train_options_default(&s->train);
}

static const char *const *target_time_names(void)
{
    static const char *const names[] = {"known", "unknown", NULL};
    return names;
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(train_settings, data), "a dataset made by `lapse import`", false},
    {0},
};

#define AT(field) .offset = offsetof(train_settings, field)
#define DATA_DECIDES .unset = "chosen from the data"
#define ALL_WITH_PERIODS "mercer bochner bochner-normal bochner-invcdf random"

static const char in_model[] = "Model", in_training[] = "Training", in_run[] = "Run";

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, AT(output), .placeholder = "MODEL",
     .help = "the model file to write", .required = true},
    {.name = "no-eval", .type = CLI_FLAG, AT(no_eval), .help = "do not score the model on the test split afterwards"},
    {.name = "json", .type = CLI_FLAG, AT(json), .help = "print the settings and scores as one JSON object"},

    {.name = "task", .type = CLI_CHOICE, AT(train.task), .placeholder = "TASK", .group = in_model,
     .help = "what is learned", .choices = lapse_task_names},
    {.name = "model", .type = CLI_CHOICE, AT(train.model), .placeholder = "NAME", .group = in_model,
     .help = "what learns it", .choices = lapse_model_names},
    {.name = "encoding", .type = CLI_CHOICE, AT(train.encoding), .placeholder = "NAME", .group = in_model,
     .only = "attention", .help = "how attention sees time", .choices = lapse_encoding_names},
    {.name = "projection", .type = CLI_CHOICE, AT(train.projection), .placeholder = "NAME", .group = in_model,
     .only = "attention", .help = "what makes query, key and value of event and time; mlp: without exact lags",
     .choices = lapse_projection_names},
    {.name = "combine", .type = CLI_CHOICE, AT(train.combine), .placeholder = "HOW", .group = in_model,
     .only = "attention", .help = "how time joins the event", .choices = lapse_combine_names},
    {.name = "target-time", .type = CLI_CHOICE, AT(train.target_time), .placeholder = "RULE", .group = in_model,
     .only = "attention recency", .help = "whether the time of the predicted event is given", .choices = target_time_names},
    {.name = "dims", .type = CLI_WHOLE, AT(train.dims), .placeholder = "N", .group = in_model, .only = "attention",
     .help = "width of the event embedding and of each block", DATA_DECIDES},
    {.name = "blocks", .type = CLI_WHOLE, AT(train.blocks), .placeholder = "N", .group = in_model, .only = "attention",
     .help = "attention blocks, 1 to 3", DATA_DECIDES},
    {.name = "heads", .type = CLI_WHOLE, AT(train.heads), .placeholder = "N", .group = in_model, .only = "attention",
     .help = "attention heads, 1 to 4; must divide the dims", DATA_DECIDES},
    {.name = "context", .type = CLI_WHOLE, AT(train.context), .placeholder = "N", .group = in_model,
     .only = "attention", .help = "events seen before the predicted one", DATA_DECIDES},
    {.name = "periods", .type = CLI_WHOLE, AT(train.periods), .placeholder = "N", .group = in_model,
     .only = ALL_WITH_PERIODS, .help = "base periods of the time encoding: its frequencies, where it has no harmonics",
     DATA_DECIDES},
    {.name = "harmonics", .type = CLI_WHOLE, AT(train.harmonics), .placeholder = "N", .group = in_model,
     .only = "mercer", .help = "harmonics of each period (mercer)", DATA_DECIDES},
    {.name = "period-min", .type = CLI_DURATION, AT(train.period_min), .placeholder = "TIME", .group = in_model,
     .only = ALL_WITH_PERIODS, .help = "shortest period at the start, such as 1m", DATA_DECIDES},
    {.name = "period-max", .type = CLI_DURATION, AT(train.period_max), .placeholder = "TIME", .group = in_model,
     .only = ALL_WITH_PERIODS, .help = "longest period at the start, such as 2y", DATA_DECIDES},
    {.name = "period-init", .type = CLI_CHOICE, AT(train.period_init), .placeholder = "RULE", .group = in_model,
     .only = "mercer bochner", .help = "how the periods start between the two", .choices = lapse_period_init_names},
    {.name = "periods-fixed", .type = CLI_FLAG, AT(train.periods_fixed), .group = in_model, .only = "mercer bochner",
     .help = "leave the periods where they start, instead of learning them"},
    {.name = "inverse-cdf", .type = CLI_CHOICE, AT(train.inverse_cdf), .placeholder = "MAP", .group = in_model,
     .only = "bochner-invcdf", .help = "how noise becomes frequencies", .choices = lapse_inverse_cdf_names},
    {.name = "hidden", .type = CLI_WHOLE, AT(train.hidden), .placeholder = "N", .group = in_model,
     .only = "bochner-invcdf", .help = "width of the two hidden layers of that map", .unset = "256"},
    {.name = "draws", .type = CLI_WHOLE, AT(train.draws), .placeholder = "N", .group = in_model,
     .only = "bochner-normal bochner-invcdf",
     .help = "draws of frequencies that the model keeps and averages its answers over", .unset = "1"},
    {.name = "dropout", .type = CLI_NUMBER, AT(train.dropout), .placeholder = "SHARE", .group = in_model,
     .only = "attention", .help = "share of the activations left out in training, 0 to 0.9", DATA_DECIDES},
    {.name = "predict", .type = CLI_CHOICE, AT(train.predict), .placeholder = "WHAT", .group = in_model,
     .only = "fields", .help = "what is predicted: the event, the action that came with --action at the import, or "
     "both", .choices = lapse_predict_names},
    {.name = "field-dims", .type = CLI_WHOLE, AT(train.field_dims), .placeholder = "N", .group = in_model,
     .only = "fields", .help = "width of the embedding of each field of categories",
     .unset = "by the number of its categories"},
    {.name = "item-output", .type = CLI_CHOICE, AT(train.output), .placeholder = "WHICH", .group = in_model,
     .only = "recommend", .help = "the vectors that items are scored by: those they are read with, or others",
     .choices = lapse_output_names},
    {.name = "order", .type = CLI_WHOLE, AT(train.order), .placeholder = "N", .group = in_model, .only = "markov",
     .help = "events that a Markov chain looks back, 1 to 3", DATA_DECIDES},

    {.name = "loss", .type = CLI_CHOICE, AT(train.loss), .placeholder = "NAME", .group = in_training,
     .only = "recommend", .help = "what is made small: the cross-entropy over the whole catalogue, or a loss of the item "
     "that came and of negatives, which did not", .choices = lapse_loss_names, .unset = "by the size of the catalogue"},
    {.name = "negatives", .type = CLI_CHOICE, AT(train.negatives), .placeholder = "HOW", .group = in_training,
     .only = "bce sampled-softmax", .help = "how negatives are drawn: evenly, by how often they occur, or none but the "
     "items of the batch", .choices = lapse_negative_names},
    {.name = "negative-count", .type = CLI_WHOLE, AT(train.negative_count), .placeholder = "N", .group = in_training,
     .only = "bce sampled-softmax", .help = "negatives drawn for each event (bce) or for a step (sampled-softmax)",
     .unset = "1 for bce, 1000 for sampled-softmax"},
    {.name = "popularity-power", .type = CLI_NUMBER, AT(train.popularity_power), .placeholder = "X",
     .group = in_training, .only = "by-popularity",
     .help = "negatives by popularity are drawn by this power of their occurrences", DATA_DECIDES},
    {.name = "negatives-unseen", .type = CLI_FLAG, AT(train.negatives_unseen), .group = in_training,
     .only = "bce", .help = "never draw an item that the sequence itself has"},
    {.name = "item-vectors", .type = CLI_TEXT, AT(train.item_vectors), .placeholder = "FILE", .group = in_training,
     .only = "recommend", .help = "vectors of `lapse pretrain` that the items start from; items that only it knows can be "
     "recommended too", .unset = "none"},
    {.name = "windows", .type = CLI_CHOICE, AT(train.windows), .placeholder = "WHICH", .group = in_training,
     .only = "attention", .help = "what training sees of a history longer than the context: all of it, window by window, "
     "or its last events", .choices = lapse_window_names},

    {.name = "learning-rate", .type = CLI_NUMBER, AT(train.learning_rate), .placeholder = "X", .group = in_training,
     .only = "attention", .help = "Adam's step size", DATA_DECIDES},
    {.name = "schedule", .type = CLI_CHOICE, AT(train.schedule), .placeholder = "HOW", .group = in_training,
     .only = "attention", .help = "how the learning rate goes: it stays, or falls to 0 over all epochs",
     .choices = lapse_schedule_names},
    {.name = "beta1", .type = CLI_NUMBER, AT(train.beta1), .placeholder = "X", .group = in_training,
     .only = "attention", .help = "Adam's memory of the gradient", DATA_DECIDES},
    {.name = "beta2", .type = CLI_NUMBER, AT(train.beta2), .placeholder = "X", .group = in_training,
     .only = "attention", .help = "Adam's memory of its square", DATA_DECIDES},
    {.name = "l2", .type = CLI_NUMBER, AT(train.l2), .placeholder = "X", .group = in_training, .only = "attention",
     .help = "pull of every parameter towards zero: so many times itself is added to its gradient", DATA_DECIDES},
    {.name = "clip", .type = CLI_NUMBER, AT(train.clip), .placeholder = "X", .group = in_training, .only = "attention",
     .help = "largest norm of the gradient; 0 does not clip", DATA_DECIDES},
    {.name = "batch", .type = CLI_WHOLE, AT(train.batch), .placeholder = "N", .group = in_training,
     .only = "attention", .help = "windows of events in a step", DATA_DECIDES},
    {.name = "epochs", .type = CLI_WHOLE, AT(train.epochs), .placeholder = "N", .group = in_training,
     .only = "attention", .help = "passes over the training split, at most", DATA_DECIDES},
    {.name = "patience", .type = CLI_WHOLE, AT(train.patience), .placeholder = "N", .group = in_training,
     .only = "attention", .help = "epochs without a better score before it stops", DATA_DECIDES},

    {.name = "split-by", .type = CLI_CHOICE, AT(train.split_by), .placeholder = "RULE", .group = in_run,
     .help = "how events come to train, valid and test: as a column of the source says, sequences by chance, the last "
     "events of each sequence, or sequences by their start", .choices = lapse_split_by_names,
     .unset = "column where the dataset has one, otherwise by the task"},
    {.name = "seed", .type = CLI_SEED, AT(train.seed), .placeholder = "N", .group = in_run,
     .help = "sets the split by sequence, the starting parameters, dropout and order"},
    {.name = "shards", .type = CLI_WHOLE, AT(train.shards), .placeholder = "N", .group = in_run, .only = "attention",
     .help = "parts a batch is cut into; unlike threads, changes the last bits of the result", DATA_DECIDES},
    {.name = "threads", .type = CLI_WHOLE, AT(train.threads), .placeholder = "N", .group = in_run,
     .help = "threads to use; never changes the result", .unset = "all cores"},
    {.name = "device", .type = CLI_CHOICE, AT(train.device), .placeholder = "DEVICE", .group = in_run, .only = "attention",
     .help = "what computes: the CPU, an NVIDIA GPU, or a GPU where there is one", .choices = lapse_device_names},
    {.name = "precision", .type = CLI_CHOICE, AT(train.precision), .placeholder = "TYPE", .group = in_run, .only = "cuda",
     .help = "how a GPU rounds the factors of products", .choices = lapse_precision_names},
    {.name = "checkpoint", .type = CLI_TEXT, AT(checkpoint), .placeholder = "FILE", .group = in_run,
     .only = "attention", .help = "where the run can be resumed from; removed when it is finished; none for none",
     .unset = "MODEL.checkpoint"},
    {.name = "checkpoint-every", .type = CLI_DURATION, AT(train.checkpoint_seconds), .placeholder = "TIME",
     .group = in_run, .only = "attention", .help = "at least so long between two checkpoints, such as 30s"},
    {.name = "resume", .type = CLI_FLAG, AT(train.resume), .group = in_run, .only = "attention",
     .help = "go on from the checkpoint, if there is one"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse train events.lapse -o model.safetensors --task classify",
    "lapse train events.lapse -o markov.safetensors --model markov --order 2",
    "lapse train events.lapse -o model.safetensors --resume",
    NULL,
};

const cli_verb cli_verb_train = {
    .name = "train",
    .summary = "learn from a dataset and keep the best model",
    .description = "Learns from the training split, keeps the parameters that were best on the validation split, and "
                   "scores them on the test split. What is not set is chosen from the data. Ctrl-C stops at the end of "
                   "the step and saves the best model so far; --resume goes on from there.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(train_settings),
    .defaults = defaults,
    .run = run,
};
