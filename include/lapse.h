/* lapse.h: the public interface of Lapse, alone enough to use the library.
 *
 * Lapse learns from timestamped events and answers: given this history, what happens at time t?
 * Data flows in the order of this file:
 *
 *   events (CSV)  ->  dataset  ->  training  ->  model  ->  scores
 *                                                      \->  session  ->  prediction at any time
 *
 * Contracts that hold for every call
 *   - A call that can fail returns a lapse_status and fills *error (which may be NULL). On failure every
 *     out-pointer is NULL or untouched, and no existing file has been changed.
 *   - The library never prints, exits or aborts on input. It writes only to the files it is told to write.
 *   - An object made by ..._new, ..._open, ..._load or by an out-pointer belongs to the caller, who ends it with
 *     the matching ..._free or ..._close; both accept NULL. Strings returned by an object live as long as it does.
 *   - Datasets and models do not change after they are made: any number of threads may read one. A session belongs
 *     to one thread at a time.
 *   - Times are seconds since 1970-01-01 UTC as doubles. Durations are seconds.
 *   - An options struct is filled by its ..._default function first, then changed by the caller.
 */
#ifndef LAPSE_H
#define LAPSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAPSE_VERSION "0.1.0"

/* The version of the library in use, such as "0.1.0". */
const char *lapse_version(void);

/* ---------------------------------------------------------------------------------------------- errors ------ */

/* Numbers are append-only: they never change their meaning. */
typedef enum lapse_status {
    LAPSE_OK = 0,
    LAPSE_ERROR_MEMORY = 1,  /* out of memory */
    LAPSE_ERROR_USAGE = 2,   /* an argument or option is wrong */
    LAPSE_ERROR_INPUT = 3,   /* the data read is malformed; file, line and column say where */
    LAPSE_ERROR_FILE = 4,    /* the system refused to open, read or write a file */
    LAPSE_ERROR_FORMAT = 5,  /* a dataset, model or checkpoint file is not one, is truncated, or was edited */
    LAPSE_ERROR_UNKNOWN = 6, /* a name that the model or dataset does not know */
    LAPSE_ERROR_INTERNAL = 7 /* a mistake in Lapse itself */
} lapse_status;

typedef struct lapse_error {
    lapse_status status;
    char message[512]; /* one sentence: what is wrong, where, and what would be right */
    char file[256];    /* the file concerned, or "" */
    int64_t line;      /* 1-based; 0 where no line applies */
    int64_t column;    /* 1-based field of the line; 0 where none applies */
} lapse_error;

/* "memory", "usage", ...: the short name of a status. */
const char *lapse_status_name(lapse_status status);

/* ------------------------------------------------------------------------------------- text and choices ------ */

/* Parses a timestamp: unix seconds ("1326506723.403") or ISO 8601 with a zone ("2026-11-15T12:00:00Z", "...+02:00";
 * a date alone is midnight UTC). */
lapse_status lapse_time_parse(const char *text, double *time, lapse_error *error);

/* Parses a duration with its unit: 90s, 15m, 3h, 2d, 1w, 2y (y = 365.25 days), 250ms. */
lapse_status lapse_duration_parse(const char *text, double *seconds, lapse_error *error);

/* Formats a duration for people ("3 days", "1.5 hours") into out and returns out. */
const char *lapse_duration_format(double seconds, char *out, size_t out_size);

/* Writes a time as ISO 8601 in UTC ("2026-11-15T12:00:00Z"; with milliseconds if there are any), and returns out. */
const char *lapse_time_format(double time, char *out, size_t out_size);

/* The values of some options, NULL-terminated. Those of training options are in lapse_option.choices. */
const char *const *lapse_task_names(void);
const char *const *lapse_split_by_names(void);
const char *const *lapse_deduplicate_names(void);
const char *const *lapse_min_rounds_names(void);
const char *const *lapse_device_names(void);
const char *const *lapse_precision_names(void);

/* ----------------------------------------------------------------------------------- datasets and import ----- */

typedef struct lapse_dataset lapse_dataset;

/* Fields: further columns of an event. A model sees the fields of past events, never those of the event that it predicts. */
typedef enum lapse_field_type {
    LAPSE_FIELD_ACTION = 0,   /* the action (view, search, purchase): a category that can also be predicted */
    LAPSE_FIELD_CATEGORY = 1, /* one of a list of values */
    LAPSE_FIELD_NUMBER = 2
} lapse_field_type;

typedef struct lapse_field {
    const char *name; /* of the source's column; lives as long as the dataset or model */
    lapse_field_type type;
    int64_t category_count; /* distinct values, "" (nothing was there) included where it occurs; 0 for a number */
} lapse_field;

typedef struct lapse_import_options {
    const char *input;      /* path of a CSV or TSV file, plain or gzip; "-" is standard input */
    const char *sequence;   /* column that says whose event it is: a name, or a 1-based number; NULL: found by name */
    const char *time;       /* column with the time; NULL: found by name */
    const char *event;      /* column with the event's name, or several joined by commas ("action,item"), whose
                            * values are joined by a space; NULL: found by name */
    const char *split;      /* column with train, valid or test; NULL: none */
    const char *delimiter;  /* ",", "\t" or any one character; NULL: told from the first line */
    const char *time_unit;  /* "auto", "s", "ms" or "iso" */
    bool header;            /* the first line names the columns; otherwise columns are numbers */
    bool skip_bad_rows;     /* leave bad rows out and count them, instead of stopping at the first */
    int64_t min_events;     /* drop sequences with fewer events */
    int64_t min_count;      /* drop events that occur fewer times in all (before min_events) */
    const char *min_rounds; /* "once": min_count, then min_events, after which events may be rare again; "iterated": the
                             * two in turn until both hold */
    double session_gap; /* seconds; a sequence is cut wherever two neighbouring events are further apart, and its parts
                             * are sequences named "<sequence>/1", "<sequence>/2", ...; 0: never */
    const char *deduplicate; /* "none"; "exact": of events with the same sequence, time and name the first is kept;
                              * "consecutive": an event right after one of its name is dropped */
    int threads;             /* 0: all cores */

    /* Fields of the events, 64 at most in all. */
    const char *action;            /* column with the action; NULL: none */
    const char *const *categories; /* category_count further columns of categories; "" is a category of its own */
    int category_count;
    const char *const *numbers; /* number_count columns of numbers; empty is missing, what is no number is a bad row */
    int number_count;
} lapse_import_options;

typedef struct lapse_import_report {
    int64_t bytes;             /* of text read, after decompression */
    int64_t rows;              /* data rows read, the bad ones included */
    int64_t bad_rows;          /* rows skipped */
    int64_t rare_rows;         /* rows dropped by min_count */
    int64_t rare_event_types;  /* event types dropped by min_count */
    int64_t short_rows;        /* rows dropped by min_events */
    int64_t short_sequences;   /* sequences dropped by min_events */
    int64_t moved_rows;        /* rows that were not yet in the order of time within their sequence */
    int64_t duplicate_rows;    /* rows dropped by deduplicate */
    int64_t cut_sequences;     /* sequences cut by session_gap */
    int64_t sessions;          /* sequences there were after cutting, before any was dropped; 0 without session_gap */
    int64_t rounds;            /* rounds of min_count and min_events that dropped something */
    lapse_error first_bad_row; /* where skip_bad_rows met the first one */
} lapse_import_report;

void lapse_import_options_default(lapse_import_options *options);

/* Reads events into a dataset in memory: sorted stably by sequence (in order of first appearance) and time; then cut
 * into sessions, rid of duplicates, and filtered by the minimums. *report may be NULL. */
lapse_status lapse_dataset_read(const lapse_import_options *options, lapse_dataset **dataset,
                                lapse_import_report *report, lapse_error *error);

/* Writes a dataset file: aside, synced, then renamed to path. */
lapse_status lapse_dataset_save(const lapse_dataset *dataset, const char *path, lapse_error *error);

/* Maps a dataset file into memory and checks it whole. */
lapse_status lapse_dataset_open(const char *path, lapse_dataset **dataset, lapse_error *error);
void lapse_dataset_close(lapse_dataset *dataset);

int64_t lapse_dataset_sequence_count(const lapse_dataset *dataset);
int64_t lapse_dataset_event_count(const lapse_dataset *dataset);      /* events in all sequences */
int64_t lapse_dataset_event_type_count(const lapse_dataset *dataset); /* distinct event names */
const char *lapse_dataset_event_type_name(const lapse_dataset *dataset, int64_t type);
const char *lapse_dataset_sequence_name(const lapse_dataset *dataset, int64_t sequence);

/* The events of one sequence, oldest first: *times and *event types point to *count elements inside the dataset. */
void lapse_dataset_sequence(const lapse_dataset *dataset, int64_t sequence, const double **times, const int32_t **types,
                            int64_t *count);

/* The fields of every event, for index 0, 1, ... until it returns false: the action first, then categories, then
 * numbers. */
bool lapse_dataset_field(const lapse_dataset *dataset, int index, lapse_field *field);
const char *lapse_dataset_category_name(const lapse_dataset *dataset, int field, int64_t category);

/* A field of the events of one sequence, inside the dataset: *categories of an action or category, *numbers of a number
 * (NaN where missing). The other one is NULL. */
void lapse_dataset_field_values(const lapse_dataset *dataset, int field, int64_t sequence, const int32_t **categories,
                                const double **numbers);

/* What is known about the dataset, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_dataset_property(const lapse_dataset *dataset, int index, const char **name, const char **value);

/* ------------------------------------------------------------------------------------------------- check ----- */

/* Data-quality and leakage checks on a dataset and its train/validation/test split. */
typedef enum lapse_severity {
    LAPSE_SEVERITY_OK = 0,
    LAPSE_SEVERITY_NOTE = 1,   /* to know when reading scores */
    LAPSE_SEVERITY_WARNING = 2 /* scores are likely wrong */
} lapse_severity;

/* "ok", "note" or "warning". */
const char *lapse_severity_name(lapse_severity severity);

typedef struct lapse_finding {
    const char *name; /* such as "tied-times"; docs/dataset.md has them all */
    const char *unit; /* what is counted: "events", "event_types", "sequences", ... */
    lapse_severity severity;
    int64_t count, total; /* how many of how many */
    char text[320];       /* one sentence: what was found */
    const char *advice;   /* one sentence: what to do about it; "" where all is well */
} lapse_finding;

#define LAPSE_FINDING_LIMIT 16

typedef struct lapse_check_options {
    const char *task;     /* decides the rule where split_by is NULL */
    const char *split_by; /* as in lapse_train_options */
    uint64_t seed;        /* of the split, as in lapse_train_options */
    double now;           /* later events are future-dated; NaN: the moment of the call */
} lapse_check_options;

typedef struct lapse_check {
    const char *split_by;
    uint64_t seed;
    double now;
    int64_t train_events, valid_events, test_events;
    int finding_count;
    lapse_finding findings[LAPSE_FINDING_LIMIT]; /* always the same ones in the same order, also where all is well */
} lapse_check;

void lapse_check_options_default(lapse_check_options *options);

/* Fails only where the dataset cannot be split so, or memory runs out: what was found is no error. */
lapse_status lapse_dataset_check(const lapse_dataset *dataset, const lapse_check_options *options, lapse_check *check,
                                 lapse_error *error);

/* ---------------------------------------------------------------------------------------------- training ----- */

typedef struct lapse_model lapse_model;

/* Training options are set by name, as the command line does. A program that offers them to its users walks the table below, so
 * it needs no list of its own. */
typedef struct lapse_train_options lapse_train_options;

typedef enum lapse_option_type {
    LAPSE_OPTION_CHOICE = 0,   /* one of `choices` */
    LAPSE_OPTION_INTEGER = 1,  /* from minimum to maximum */
    LAPSE_OPTION_NUMBER = 2,   /* from minimum to maximum */
    LAPSE_OPTION_DURATION = 3, /* with a unit (90s, 15m, 3h, 2d, 1w, 2y), or a number of seconds */
    LAPSE_OPTION_FLAG = 4,     /* "true" or "false" */
    LAPSE_OPTION_SEED = 5,     /* an integer from 0 to 2^64 - 1 */
    LAPSE_OPTION_FILE = 6      /* a path; "" is none */
} lapse_option_type;

/* One option. All texts are constants of the library. */
typedef struct lapse_option {
    const char *name; /* such as "learning-rate" */
    lapse_option_type type;
    double minimum, maximum;    /* of INTEGER, NUMBER and DURATION (in seconds); both are allowed */
    const char *const *choices; /* of CHOICE: NULL-terminated, in the order of preference; otherwise NULL */
    const char *initial;        /* default value; NULL: chosen by `rule` */
    const char *rule;        /* how the default is chosen, such as "chosen from the data"; NULL where initial is set */
    const char *placeholder; /* for help: "N", "NAME"; NULL for a flag */
    const char *help;        /* one line */
    const char *group;       /* heading in the help: "Model", "Training", "Run" */
    bool advanced;           /* most users do not need it */
} lapse_option;

/* The options of training, for index 0, 1, ... until it returns false. */
bool lapse_train_option(int index, lapse_option *option);
/* The option of this name; false where there is none. */
bool lapse_train_option_find(const char *name, lapse_option *option);
/* Whether the model of this name (a choice of the option "model") has an option of this name. */
bool lapse_model_has_option(const char *model, const char *name);

/* Options with their defaults. */
lapse_status lapse_train_options_new(lapse_train_options **options, lapse_error *error);
void lapse_train_options_free(lapse_train_options *options);

/* Sets an option from text. An unknown name, or a value outside the option's range, is LAPSE_ERROR_USAGE. */
lapse_status lapse_train_options_set(lapse_train_options *options, const char *name, const char *value,
                                     lapse_error *error);

/* Writes an option's value as text into out and returns out; "" where it is not chosen yet, NULL for an unknown name. */
const char *lapse_train_options_get(const lapse_train_options *options, const char *name, char *out, size_t out_size);

/* Whether the option has an effect, given the others: heads have none on a Markov chain. */
bool lapse_train_options_apply(const lapse_train_options *options, const char *name);

typedef struct lapse_progress {
    int epoch, epochs;        /* current (from 1) and the most there will be */
    int64_t step, steps;      /* within the epoch, from 1 */
    bool epoch_end;           /* this call closes the epoch: score is new */
    double loss;              /* mean over the epoch so far, nats an event; NaN while a device has told none */
    double score, best_score; /* monitored score on the validation split: newest and best; NaN before the first.
                                     * It is the accuracy, or the mean of both where two things are predicted */
    const char *score_name;   /* "accuracy", or of the task recommend "NDCG@10": in the full ranking of unseen items */
    int best_epoch;
    double events_per_second;
    double seconds, seconds_left; /* since the start of this call; left in this epoch */
} lapse_progress;

/* Called after every step. Return true to go on; false to stop now: the best model so far is kept. */
typedef bool (*lapse_on_progress)(const lapse_progress *progress, void *context);

/* A training run: resolved options, split and buffers. */
typedef struct lapse_trainer lapse_trainer;

/* Prepares a run: chooses every option that is not set from the data, checks all of them, makes the split and allocates what
 * training needs. The dataset must outlive the run; the options need not. */
lapse_status lapse_trainer_new(const lapse_dataset *dataset, const lapse_train_options *options,
                               lapse_trainer **trainer, lapse_error *error);
void lapse_trainer_free(lapse_trainer *trainer);

/* The options of the run, all of them chosen. They live as long as the trainer. */
const lapse_train_options *lapse_trainer_options(const lapse_trainer *trainer);

/* Trains on the training split and returns the model with the parameters that were best on the validation split. Once. */
lapse_status lapse_trainer_run(lapse_trainer *trainer, lapse_on_progress on_progress, void *context,
                               lapse_model **model, lapse_error *error);

/* lapse_trainer_new, run and free in one call. */
lapse_status lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error);

/* ------------------------------------------------------------------------------------------ item vectors ----- */

/* Shallow vectors of items: what occurs near what within a sequence, and what a catalogue tells of the items. A model can
 * start from them (lapse_train_options.item_vectors). */
typedef struct lapse_vectors lapse_vectors;

typedef struct lapse_pretrain_options {
    const char *catalogue; /* CSV or TSV file with one row for each item, plain or gzip; NULL: none */
    const char *item;      /* its column with the item's name: a name, or a 1-based number; NULL: found by name */
    const char *words;     /* its columns that are read as words, joined by commas; NULL: name, title, description. All
                            * others are taken as they are: an item's brand, its category */
    int dims;              /* numbers of a vector */
    int window;            /* events before and after that count as near */
    double session_gap;    /* seconds: events further apart are never near; 0: no matter how far */
    int negative_count;    /* items drawn for each near one, to be told from it */
    double popularity_power; /* they are drawn by this power of how often they occur */
    double learning_rate;    /* at the beginning; it falls to nothing */
    int epochs;
    const char
        *split_by; /* how events come to train, valid and test; only those of train are read. NULL: the column where
                           * there is one, otherwise leave-one-out */
    uint64_t seed; /* sets the split, the starting values, order and negatives */
} lapse_pretrain_options;

void lapse_pretrain_options_default(lapse_pretrain_options *options);

/* Learns vectors of the dataset's items and of all that the catalogue describes. An item that never occurs in the training
 * split has what its description says, or zeros where nothing is known of it. *on_progress may be NULL; false from it ends
 * the learning early. The result depends on no number of threads. */
lapse_status lapse_pretrain(const lapse_dataset *dataset, const lapse_pretrain_options *options,
                            lapse_on_progress on_progress, void *context, lapse_vectors **vectors, lapse_error *error);

lapse_status lapse_vectors_save(const lapse_vectors *vectors, const char *path, lapse_error *error);
lapse_status lapse_vectors_load(const char *path, lapse_vectors **vectors, lapse_error *error);
void lapse_vectors_free(lapse_vectors *vectors);

int64_t lapse_vectors_count(const lapse_vectors *vectors);
int lapse_vectors_dims(const lapse_vectors *vectors);
const char *lapse_vectors_name(const lapse_vectors *vectors, int64_t item);
const float *lapse_vectors_get(const lapse_vectors *vectors, int64_t item);    /* dims numbers */
int64_t lapse_vectors_occurrences(const lapse_vectors *vectors, int64_t item); /* in the training split */

/* What is known about them, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_vectors_property(const lapse_vectors *vectors, int index, const char **name, const char **value);

/* ------------------------------------------------------------------------------------------------ models ----- */

/* Files hold all of the configuration, and nothing that differs between equal runs. See docs/model.md. */
lapse_status lapse_model_save(const lapse_model *model, const char *path, lapse_error *error);
lapse_status lapse_model_load(const char *path, lapse_model **model, lapse_error *error);
void lapse_model_free(lapse_model *model);

int64_t lapse_model_event_type_count(const lapse_model *model);
const char *lapse_model_event_type_name(const lapse_model *model, int64_t type);

/* The number of a event type by its name, or -1. */
int64_t lapse_model_event_type_find(const lapse_model *model, const char *name);

/* The fields that the model sees of past events, for index 0, 1, ... until it returns false; and their categories. */
bool lapse_model_field(const lapse_model *model, int index, lapse_field *field);
const char *lapse_model_category_name(const lapse_model *model, int field, int64_t category);
int64_t lapse_model_category_find(const lapse_model *model, int field, const char *name); /* or -1 */

/* What the model predicts: "event" (its names are the event types), "action" (those of the action field), or both, for index 0,
 * 1, ... until it returns NULL; and the names that can be the answer. */
const char *lapse_model_target(const lapse_model *model, int index);
int64_t lapse_model_target_size(const lapse_model *model, const char *target); /* 0 for what it does not predict */
const char *lapse_model_target_name(const lapse_model *model, const char *target, int64_t number);

/* What is known about the model, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_model_property(const lapse_model *model, int index, const char **name, const char **value);

/* ------------------------------------------------------------------------------------------------ scores ----- */

typedef struct lapse_class_score {
    const char *name;             /* lives as long as the model */
    int64_t cases;                /* how often it happened */
    int64_t predicted;            /* how often it was the first choice */
    int64_t correct;              /* how often both */
    double precision, recall, f1; /* 0 where undefined */
} lapse_class_score;

typedef struct lapse_scores {
    const char *target;      /* "event" or "action": what was predicted; its names are the event types below */
    const char *split;       /* "train", "valid", "test" or "all" */
    const char *target_time; /* "known" or "unknown" */
    int64_t cases;           /* predicted events */
    int64_t sequences;       /* that have at least one */
    double accuracy, accuracy_low, accuracy_high; /* with its 95 % bootstrap interval over sequences */
    double log_loss, log_loss_low, log_loss_high; /* nats an event, likewise */
    double macro_f1;                              /* mean over the event types that happened */
    int64_t type_count;
    lapse_class_score *types; /* by number of the event type; freed by lapse_scores_clear */
} lapse_scores;

typedef struct lapse_evaluate_options {
    const char *split;  /* "train", "valid", "test" or "all": the model knows which sequences these are */
    const char *target; /* "event" or "action"; NULL: the first that the model predicts */
    int threads;        /* 0: all cores; never changes the result */
    int bootstrap;      /* resamples for the intervals; 0: none */
    const char *device; /* "cpu", "cuda" or "auto", as in training; NULL: "cpu". Baselines always count on the CPU */
} lapse_evaluate_options;

void lapse_evaluate_options_default(lapse_evaluate_options *options);

/* Scores the model on every event but each sequence's first. The dataset must have the model's fields, and no event types or
 * categories unknown to the model. */
lapse_status lapse_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                            const lapse_evaluate_options *options, lapse_scores *scores, lapse_error *error);
void lapse_scores_clear(lapse_scores *scores);

/* ----------------------------------------------------------------------------------------------- ranking ----- */

/* Where the item that came next stands among others, best first, under four protocols: among the whole catalogue without
 * the items that the sequence had before ("full-unseen") and with them ("full"); and among a number of items that the
 * sequence never has, drawn alike ("uniform") or by how often they occur in training ("popularity"). Ties rank against
 * the item, and so does a score that is no number. docs/evaluation.md has the definitions. */
#define LAPSE_RANK_PROTOCOLS 4

/* A mean over cases, with its 95 % bootstrap interval over sequences; without a bootstrap both ends are the mean. */
typedef struct lapse_mean {
    double mean, low, high;
} lapse_mean;

typedef struct lapse_rank_score {
    const char *protocol; /* "full-unseen", "full", "uniform" or "popularity" */
    double candidates;    /* mean number of items ranked, the right one included; 0: the protocol was not asked for */
    int64_t short_cases;  /* for which fewer negatives could be drawn than wanted: all there are */
    lapse_mean *hit;      /* by cutoff: share of cases whose rank is at most that */
    lapse_mean *ndcg;     /* by cutoff: of 1 / log2(1 + rank), 0 past the cutoff */
    lapse_mean mrr;       /* of 1 / rank */
} lapse_rank_score;

/* The cases that have something in common. */
typedef struct lapse_rank_slice {
    const char *by;    /* "history": events before the asked one; "popularity": training events of the item; "lag": time
                        * since the event before; "all" */
    char name[64];     /* such as "10 to 19 events" */
    int64_t cases;     /* events asked for */
    int64_t sequences; /* that have at least one */
    lapse_rank_score scores[LAPSE_RANK_PROTOCOLS];
} lapse_rank_slice;

typedef struct lapse_rank_scores {
    const char *split;       /* "train", "valid", "test" or "all" */
    const char *target_time; /* "known" or "unknown" */
    const char *popularity;  /* whose counts they are: "training", or "dataset" where the training split is not known */
    int64_t items;           /* of the catalogue */
    int64_t case_total;      /* events that could have been asked for; more than whole.cases where some were drawn */
    int negatives;           /* wanted for each case */
    uint64_t negative_seed;
    int cutoff_count;
    int *cutoffs;
    lapse_rank_slice whole;
    int slice_count;
    lapse_rank_slice *slices; /* those that have cases, in the order of `by` */
    lapse_mean *means;        /* what the scores point into */
} lapse_rank_scores;

typedef struct lapse_rank_options {
    const char *split;  /* "train", "valid", "test" or "all": the model knows which events these are */
    const int *cutoffs; /* cutoff_count of them, each at least 1 */
    int cutoff_count;
    int negatives; /* 0: only the full protocols */
    uint64_t negative_seed;
    int64_t cases; /* at most; drawn by the seed where there are more. 0: all */
    bool slices;
    int bootstrap;      /* resamples for the intervals; 0: none */
    int threads;        /* 0: all cores; never changes the result */
    const char *device; /* that computes the states which are ranked: "cpu", "cuda" or "auto"; NULL: "cpu" */
} lapse_rank_options;

void lapse_rank_options_default(lapse_rank_options *options);

/* Ranks for every event of the split but each sequence's first, by a model of the task "recommend" or by a baseline. */
lapse_status lapse_rank_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                 const lapse_rank_options *options, lapse_rank_scores *scores, lapse_error *error);
void lapse_rank_scores_clear(lapse_rank_scores *scores);

/* ---------------------------------------------------------------------------------------------- sessions ----- */

/* A session is one live history. Events are appended once; then it can be queried about any time. What the model computes of an
 * event is cached, so that a further query costs one row, however long the history is. After the first query nothing is
 * allocated. */
typedef struct lapse_session lapse_session;

lapse_status lapse_session_new(const lapse_model *model, lapse_session **session, lapse_error *error);
void lapse_session_free(lapse_session *session);

/* Forgets the history. */
void lapse_session_clear(lapse_session *session);

/* Appends an event without fields. Times must not decrease. An unknown name is LAPSE_ERROR_UNKNOWN and appends nothing. */
lapse_status lapse_session_append(lapse_session *session, double time, const char *event, lapse_error *error);

/* The value of a field of an event. */
typedef struct lapse_value {
    const char *text; /* of an action or category; NULL is "", nothing was there */
    double number;    /* of a number; NaN: missing */
} lapse_value;

typedef struct lapse_event {
    double time;
    const char *event;
    const lapse_value *fields; /* field_count of them, in the order of lapse_model_field */
    int field_count;
} lapse_event;

/* Appends an event with its fields. A model that has fields wants all of them of every event. */
lapse_status lapse_session_append_event(lapse_session *session, const lapse_event *event, lapse_error *error);

/* Fills probabilities[0 .. event types - 1]: the probability of each event type, given that the next event happens at this time,
 * which must not lie before the last one. The history must not be empty. A model that predicts the action alone refuses. */
lapse_status lapse_session_predict(lapse_session *session, double time, double *probabilities, lapse_error *error);

/* The same for any of the model's targets: probabilities[0 .. lapse_model_target_size-1]. */
lapse_status lapse_session_predict_target(lapse_session *session, double time, const char *target,
                                          double *probabilities, lapse_error *error);

/* A event type that may come next; of a recommender, an item. */
typedef struct lapse_recommendation {
    int64_t item; /* its number: lapse_model_event_type_name says which it is */
    double score; /* the network's logit or score; the log of the probability for baselines, and for classifiers that
                         * average over several frequency samples */
    double probability; /* softmax over all items: what lapse_session_predict gives */
} lapse_recommendation;

/* Fills best[0 .. *count-1] with the `top` event types that score highest at this time, the highest first, and *count with how
 * many there are: fewer where the catalogue is smaller. unseen: without those that the history has had since it began.
 * Probabilities are still those among all. Sorts only what it returns. */
lapse_status lapse_session_recommend(lapse_session *session, double time, int64_t top, bool unseen,
                                     lapse_recommendation *best, int64_t *count, lapse_error *error);

/* ------------------------------------------------------------------------------------------ many histories ----- */

/* What follows a sequence of a dataset at this time, which must not lie before its last event. */
typedef struct lapse_query {
    int64_t sequence;
    double time;
} lapse_query;

typedef struct lapse_predict_options {
    const char *target; /* "event" or "action"; NULL: the first that the model predicts */
    int64_t top;        /* answers to each question */
    bool unseen;        /* without the event types that the sequence has (events only) */
    bool skip_unknown;  /* leave events out of which the model does not know something, instead of failing */
    int threads;        /* 0: all cores; never changes the result */
} lapse_predict_options;

void lapse_predict_options_default(lapse_predict_options *options);

/* Answers many questions on several threads: best[q * top .. q * top + counts[q] - 1] are the answers to question q, the
 * highest first. A sequence of which the model knows no event is not answered: its count is -1. Questions to one sequence
 * stand together, or its events are read again. */
lapse_status lapse_predict_all(const lapse_model *model, const lapse_dataset *histories, const lapse_query *questions,
                               int64_t query_count, const lapse_predict_options *options, lapse_recommendation *best,
                               int64_t *counts, lapse_error *error);

/* ------------------------------------------------------------------------------------- spectrum and kernel ----- */

/* What a model has learned of time: the frequencies w of its encoding and the amplitudes of their two features,
 *
 *     Phi(lag) = ( cosine[i] cos(w_i lag), for all i; then sine[i] sin(w_i lag), for all i )
 *
 * in the order of the model. docs/theory.md has the formulas. */
typedef struct lapse_spectrum {
    int count;         /* frequencies; Phi has twice as many numbers */
    double *frequency; /* radians a second; may be negative or 0 where it was drawn */
    double *period;    /* seconds: 2 pi / |frequency|; infinite where that is below 1e-15 */
    int *harmonic;     /* which multiple it is of the frequency that opens its series; 1: it opens one */
    double *cosine;    /* amplitude of its cosine */
    double *sine;      /* amplitude of its sine */
    double *weight;    /* (cosine^2 + sine^2) / 2, cosine^2 at frequency 0: its part in the kernel */
    int *order;        /* all frequencies, heaviest first; the longer period first among equals */
} lapse_spectrum;

/* Fills an empty *spectrum. A model that sees no lags (a baseline, or attention over places) has none, which is
 * LAPSE_ERROR_USAGE. */
lapse_status lapse_model_spectrum(const lapse_model *model, lapse_spectrum *spectrum, lapse_error *error);
void lapse_spectrum_clear(lapse_spectrum *spectrum);

/* K(lag) = sum of weight cos(frequency lag): the mean over all t of <Phi(t), Phi(t - lag)>. Where the amplitudes of
 * cosine and sine are equal, every t gives the mean. */
double lapse_spectrum_kernel(const lapse_spectrum *spectrum, double lag);

/* Fills features[0 .. 2 count - 1] with Phi(lag). */
void lapse_spectrum_features(const lapse_spectrum *spectrum, double lag, double *features);

/* Lags to look at. */
typedef struct lapse_lags {
    const char *axis; /* "log" or "linear": how the lags are spaced */
    double from, to;  /* seconds, both included; 0: chosen from the periods (a linear axis begins at 0 as it says) */
    int points;       /* 2 to 100,000 */
} lapse_lags;

void lapse_lags_default(lapse_lags *lags);
const char *const *lapse_axis_names(void);

/* Puts what the spectrum suggests wherever lags ask for it, and checks every value. */
lapse_status lapse_lags_resolve(const lapse_spectrum *spectrum, lapse_lags *lags, lapse_error *error);

/* Lag 0 .. points - 1 of resolved lags, in seconds. */
double lapse_lags_at(const lapse_lags *lags, int index);

/* Draws spectrum, kernel and Phi over resolved lags as an SVG file; "-" is standard output. The title may be NULL. */
lapse_status lapse_spectrum_save_svg(const lapse_spectrum *spectrum, const lapse_lags *lags, const char *title,
                                     const char *path, lapse_error *error);

/* How many frequencies must be drawn for the mean of their cosines to be a kernel to within epsilon at every lag up to
 * span, all but once in 1 / delta draws: Claim 1 of the paper, and what its proof gives (docs/theory.md). */
typedef struct lapse_bound_options {
    double epsilon; /* largest error allowed, of a kernel that is 1 at lag 0: 0.0001 to 2 */
    double span;    /* seconds: largest lag */
    double sigma;   /* radians a second: root of the second moment of the frequencies */
    double delta;   /* chance of a larger error: above 0, below 1 */
    int repeats;    /* draws that a measurement takes */
    uint64_t seed;  /* of the draws */
    int threads;    /* 0: all cores; never changes the result */
} lapse_bound_options;

typedef struct lapse_bound_error {
    int64_t samples;     /* frequencies in a draw */
    int repeats, within; /* draws, and those whose error stayed below epsilon */
    double mean, worst;  /* largest error over all lags: mean and largest over the draws */
    int points;          /* lags looked at, from 0 to span */
    double step;         /* seconds between two of them; above 0.1 / sigma the errors may be understated */
} lapse_bound_error;

void lapse_bound_options_default(lapse_bound_options *options);

/* The samples that the claim asks for as it is printed, with times counted in units of `unit` seconds, of which its
 * answer is not free; or with unit 0, those that its proof gives when it is corrected, which depend on no unit. */
lapse_status lapse_bound_samples(const lapse_bound_options *options, double unit, int64_t *samples, lapse_error *error);

/* The error that so many samples make on the kernel exp(-(sigma lag)^2 / 2), whose frequencies are normal with
 * deviation sigma. Takes repeats * points * samples steps of about a nanosecond. */
lapse_status lapse_bound_measure(const lapse_bound_options *options, int64_t samples, lapse_bound_error *measured,
                                 lapse_error *error);

/* -------------------------------------------------------------------------------------------- simulation ----- */

/* Events drawn from a known law, so that the best possible scores are known too. */
typedef struct lapse_simulation lapse_simulation;

typedef struct lapse_simulate_options {
    const char *preset; /* "shop" or "catalogue" */
    int64_t sequences;  /* 0: the preset's own */
    int64_t items;      /* in the catalogue, 100 to 20,000,000; 0: the preset's own. Other presets have fixed ones */
    double days;        /* length of each history; 0: the preset's own */
    uint64_t seed;
} lapse_simulate_options;

void lapse_simulate_options_default(lapse_simulate_options *options);
lapse_status lapse_simulate(const lapse_simulate_options *options, lapse_simulation **simulation, lapse_error *error);
void lapse_simulation_free(lapse_simulation *simulation);
int64_t lapse_simulation_event_count(const lapse_simulation *simulation);

/* Writes the events as CSV; "-" is standard output. */
lapse_status lapse_simulation_save(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* Writes the items of the preset "catalogue" as CSV: item,name,brand,category. Other presets refuse. */
lapse_status lapse_simulation_save_catalogue(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* Writes the law's own probability of every event type at every event, as CSV. The preset "catalogue" refuses. */
lapse_status lapse_simulation_save_law(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* The best possible scores: those of the law itself, on exactly the events that lapse_evaluate scores for this model,
 * dataset (imported from the simulation) and split. */
lapse_status lapse_simulation_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                       const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                       lapse_scores *scores, lapse_error *error);

/* ----------------------------------------------------------------------------------------------- measuring ----- */

/* Training and evaluation speed on this machine, with events simulated in memory. */
typedef struct lapse_bench_options {
    const char *preset; /* the sizes of a known task: "ml-1m", "ml-1m-softmax", "so", "catalogue" */
    const char *what;   /* "train": steps of training; "predict": scoring the validation split */
    int64_t items;      /* of the catalogue, where another size than the preset's is wanted; 0: the preset's */
    int batch;          /* windows in a step; 0: the preset's */
    int shards;         /* parts a batch is cut into; 0: as in training */
    int rounds;         /* steps timed, after some that are not */
    int threads;        /* 0: all cores */
    const char *device, *precision; /* as in training */
    uint64_t seed;
} lapse_bench_options;

/* One op of the network, or another part of a step: sums over a step. Seconds are those of threads, so that a step on two
 * threads has twice its own time. On a GPU a row is a launch, which may stand for several nodes of the network: its work is theirs,
 * its name that of the first one's op. Launches are timed one by one, though in a step some run side by side. */
typedef struct lapse_bench_row {
    const char *name;
    const char *
        type; /* of a launch: a "node", a "fused" of them, "reduction" over rows, or a "pack" of weights; otherwise NULL */
    int launch; /* its number in a step, from 1; 0: it is none */
    int nodes;  /* that a launch stands for, wholly or in part */
    int64_t calls;
    double seconds;     /* the least of all rounds */
    double flop, bytes; /* operations, and bytes moved at the least; 0 where nobody has counted them */
    double roofline;    /* seconds: flop at the peak or bytes at the bandwidth, whichever takes longer */
} lapse_bench_row;

typedef struct lapse_bench_report {
    const char *preset, *what;
    const char *device, *precision;
    const char *level; /* of the CPU's kernels, such as "x86-64-v4" */
    int threads, rounds;
    int64_t items, parameters;
    double error; /* of one step on a small batch against the plain kernels in double: see lapse_bench */
    double peak;  /* operations a second of multiply-adds alone, on so many threads, or on a GPU in this precision */
    double bandwidth; /* bytes a second of copying buffers of the size that a thread works in, on so many threads */
    double step_best, step_median, step_p90; /* seconds */
    double step_minimum;    /* what the least times of all parts add up to: a step that nothing else disturbs */
    int64_t steps;          /* of an epoch; 1 for predict */
    double epoch;           /* seconds: steps times the median; on a GPU of steps that do not wait for one another */
    double windows, events; /* of a step, on average: histories read and events asked for */
    double tokens;          /* events read */
    double flop;            /* of a step, on average */
    int row_count;          /* 0 where the device has no clocks for its ops */
    lapse_bench_row *rows;  /* by time, the longest first; freed by lapse_bench_report_clear */
} lapse_bench_report;

const char *const *lapse_bench_preset_names(void);
const char *const *lapse_bench_what_names(void);
void lapse_bench_options_default(lapse_bench_options *options);

/* Measures. First the gradients of one step on a small batch are compared with those of the plain kernels in double: where one
 * is off by more than 1e-4 of its largest element (tf32: 5e-2, bf16: 2e-1), or of a share of the largest of all, nothing is timed, and that is
 * LAPSE_ERROR_INTERNAL. */
lapse_status lapse_bench(const lapse_bench_options *options, lapse_bench_report *report, lapse_error *error);
void lapse_bench_report_clear(lapse_bench_report *report);

#ifdef __cplusplus
}
#endif

#endif
