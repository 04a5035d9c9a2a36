/* lapse.h: the public interface of Lapse: all that a product needs. lapse_lab.h adds what a study needs.
 *
 * Lapse trains models of timestamped events that predict, given a history, the event at a time t. Data flows in the
 * order of this file:
 *
 *   events (CSV)  ->  dataset  ->  training  ->  model  ->  scores
 *                                                      \->  session  ->  prediction at any time
 *
 * Contracts that hold for every call
 *   - A call that can fail returns a lapse_status and fills *error (which may be NULL). On failure every
 *     out-pointer is NULL or unchanged, and no existing file has been changed.
 *   - A pointer may be NULL only where its comment says so. A call that returns a lapse_status refuses NULL for any other
 *     pointer argument with LAPSE_ERROR_USAGE; other calls do not check.
 *   - An index out of range is not an error: a name or a pointer is NULL then, a count 0, a bool false.
 *   - Results are finite. A prediction or evaluation whose numbers overflow is LAPSE_ERROR_FORMAT, and a model, item
 *     vectors or a checkpoint with a number that is not finite is not saved (LAPSE_ERROR_USAGE). The message names a tensor.
 *   - Out of memory is always LAPSE_ERROR_MEMORY: no result is smaller or less exact for lack of memory.
 *   - The library never prints, exits or aborts on input. It writes only to paths given by the caller.
 *   - An object returned by ..._new, ..._open, ..._load or through an out-pointer belongs to the caller, who frees it
 *     with the matching ..._free or ..._close; both accept NULL. Strings of an object are valid until it is freed.
 *   - A session keeps its model alive, and a trainer its dataset: the caller may free them in any order. A pointer that
 *     a comment calls valid as long as an object is not counted.
 *   - Datasets and models are immutable, except for lapse_model_record: any number of threads may use one. A session or
 *     a trainer belongs to one thread at a time. Option objects are plain values without locks.
 *   - Several threads may train or evaluate on one GPU at the same time: their calls to the device are serialized, so
 *     results have the same bits as one after another, and the GPU is shared, not used in parallel. An error of the
 *     device is permanent for all of them.
 *   - Times are seconds since 1970-01-01 UTC as doubles. Durations are seconds.
 *   - Fill an options struct with its ..._default function first, then change members.
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

/* The version of the linked library, such as "0.1.0". */
const char *lapse_version(void);

/* ---------------------------------------------------------------------------------------------- errors ------ */

/* Codes are append-only: a number never changes its meaning. */
typedef enum lapse_status {
    LAPSE_OK = 0,
    LAPSE_ERROR_MEMORY = 1,  /* out of memory */
    LAPSE_ERROR_USAGE = 2,   /* an argument or option is wrong */
    LAPSE_ERROR_INPUT = 3,   /* malformed input data; file, line and column locate it */
    LAPSE_ERROR_FILE = 4,    /* the system refused to open, read or write a file */
    LAPSE_ERROR_FORMAT = 5,  /* a dataset, model or checkpoint file is invalid, truncated or corrupt */
    LAPSE_ERROR_UNKNOWN = 6, /* a name that the model or dataset does not have */
    LAPSE_ERROR_INTERNAL = 7 /* a bug in Lapse, or a failure of the device */
} lapse_status;

typedef struct lapse_error {
    lapse_status status;
    char message[512]; /* one sentence: what is wrong, where, and how to fix it */
    char file[256];    /* the file concerned, or "" */
    int64_t line;      /* 1-based; 0: not applicable */
    int64_t column;    /* 1-based field of the line, in JSON Lines its byte; 0: not applicable */
} lapse_error;

/* "memory", "usage", ...: the short name of a status. */
const char *lapse_status_name(lapse_status status);

/* ------------------------------------------------------------------------------------- text and choices ------ */

/* Parses a timestamp: unix seconds ("1326506723.403") or ISO 8601 ("2026-11-15T12:00:00Z", "...+02:00", a space for the
 * T). A time without a zone is UTC, and a date alone is midnight. "15/11/2026" and "11/15/2026" are read where the order of
 * day and month is certain. */
lapse_status lapse_time_parse(const char *text, double *time, lapse_error *error);

/* The same, but a time without a zone is a local time of this time zone: a name of the system's database such as
 * "Europe/Berlin", "UTC", or an offset such as "+02:00"; NULL: UTC. Of a local time that occurs twice, the earlier one is
 * taken; one that does not occur is shifted forward by the skipped time. */
lapse_status lapse_time_parse_zone(const char *text, const char *timezone, double *time, lapse_error *error);

/* Parses a duration with its unit: 90s, 15m, 3h, 2d, 1w, 2y (y = 365.25 days), 250ms. */
lapse_status lapse_duration_parse(const char *text, double *seconds, lapse_error *error);

/* Formats a duration in words ("3 days", "1.5 hours") into out and returns out. */
const char *lapse_duration_format(double seconds, char *out, size_t out_size);

/* Formats a time as ISO 8601 in UTC ("2026-11-15T12:00:00Z", with milliseconds if not 0) into out and returns out. */
const char *lapse_time_format(double time, char *out, size_t out_size);

/* The number of bytes of the UTF-8 character at text, which is NUL-terminated; 0 where it is not well-formed. */
int lapse_utf8_size(const char *text);

/* The values of some options, NULL-terminated. Those of training options are in lapse_option.choices. */
const char *const *lapse_task_names(void);
const char *const *lapse_split_by_names(void);
const char *const *lapse_deduplicate_names(void);
const char *const *lapse_min_rounds_names(void);
const char *const *lapse_device_names(void);
const char *const *lapse_precision_names(void);

/* Writes a file as the library writes its own: to a temporary file, synced, then renamed to path. "-" is standard
 * output; an existing device or pipe is written directly. */
lapse_status lapse_file_write(const char *path, const void *data, size_t size, lapse_error *error);

/* ----------------------------------------------------------------------------------- datasets and import ----- */

typedef struct lapse_dataset lapse_dataset;

/* Fields: further columns of an event. A model's inputs are the fields of past events, never those of the target
 * event. */
typedef enum lapse_field_type {
    LAPSE_FIELD_ACTION = 0,   /* the action (view, search, purchase): a category that can also be a target */
    LAPSE_FIELD_CATEGORY = 1, /* one of a list of values */
    LAPSE_FIELD_NUMBER = 2
} lapse_field_type;

typedef struct lapse_field {
    const char *name; /* of the source's column; valid as long as the dataset or model */
    lapse_field_type type;
    int64_t category_count; /* distinct values, including "" (empty) if it occurs; 0 for a number */
} lapse_field;

/* The roles of columns that an import finds by itself. */
typedef enum lapse_column_role {
    LAPSE_COLUMN_SEQUENCE = 0,
    LAPSE_COLUMN_TIME = 1,
    LAPSE_COLUMN_EVENT = 2
} lapse_column_role;

/* The usual names by which a column of this role is found, for index 0, 1, ... until it returns NULL. Case, blanks and
 * separators do not matter: "userId" is "user_id". */
const char *lapse_column_name(lapse_column_role role, int index);

typedef struct lapse_import_options {
    const char *input;    /* path of a CSV, TSV or JSON Lines file, plain or gzip; "-" is standard input */
    const char *sequence; /* column of the sequence (user): a name, or a 1-based number; NULL: found by its name and the
                           * values of the first rows. In JSON Lines: a key, or the path of a nested one ("a.b") */
    const char *time;     /* column of the time; NULL: found likewise */
    const char *event;    /* column of the event's name, or several separated by commas ("action,item"), whose
                           * values are joined by a space; NULL: found likewise */
    const char *split;    /* column that contains train, valid or test; NULL: none */
    const char *delimiter; /* ",", "\t" or any one character; NULL: detected in the first line */
    const char *time_unit; /* "auto"; "s", "ms", "us", "ns" (unix time); "iso"; "mdy", "dmy" (11/15/2026, 15/11/2026) */
    const char *timezone;  /* of times without a zone, as in lapse_time_parse_zone; NULL: UTC */
    bool header;           /* the first line names the columns; otherwise columns are numbered */
    bool skip_bad_rows;    /* skip and count malformed rows, instead of failing at the first */
    int64_t min_events;    /* drop sequences with fewer events */
    int64_t min_count;     /* drop event types with fewer events in the dataset (applied before min_events) */
    const char *min_rounds; /* "once": min_count, then min_events, once each, after which event types may be rare again;
                             * "iterated": iterative k-core filtering, both in turn until both hold */
    double session_gap; /* seconds: sequences are split into sessions, named "<sequence>/1", "<sequence>/2", ..., where
                         * consecutive events are further apart; 0: never */
    const char *deduplicate; /* "none"; "exact": drop repeats of sequence, time and name; "consecutive": drop an event
                              * that follows one of the same name */
    int threads;             /* 0: all cores */

    /* Fields of the events, 64 at most in all. */
    const char *action;            /* column of the action; NULL: none */
    const char *const *categories; /* category_count further categorical columns; "" is a category too */
    int category_count;
    const char *const *numbers; /* number_count numeric columns; empty, NaN, NA, null: missing; other text: malformed */
    int number_count;

    /* Filters before sessions are cut, once each: the sequences are those of the source (users). */
    int64_t min_sequence_events; /* drop sequences with fewer events */
    int64_t min_users;           /* drop event types that fewer sequences have (applied after min_sequence_events) */
} lapse_import_options;

/* The column of a role. Names are shortened to fit. */
typedef struct lapse_column_choice {
    char column[256];   /* its name; several are separated by commas */
    char runner_up[64]; /* the column that would be the next choice; "": none, or the column was given */
    bool given;         /* by an option, or by position without a header; otherwise found by its name and values */
} lapse_column_choice;

typedef struct lapse_import_report {
    int64_t bytes;             /* of text read, after decompression; 0 for Arrow */
    int64_t rows;              /* data rows read, including malformed ones */
    int64_t bad_rows;          /* malformed rows skipped */
    int64_t rare_rows;         /* rows dropped by min_count */
    int64_t rare_event_types;  /* event types dropped by min_count */
    int64_t short_rows;        /* rows dropped by min_events */
    int64_t short_sequences;   /* sequences dropped by min_events */
    int64_t moved_rows;        /* rows that were not in time order within their sequence */
    int64_t duplicate_rows;    /* rows dropped by deduplicate */
    int64_t cut_sequences;     /* sequences split by session_gap */
    int64_t sessions;          /* sequences after splitting, before filtering; 0 without session_gap */
    int64_t rounds;            /* rounds of min_count and min_events that dropped something */
    int64_t local_rows;        /* rows whose time has no zone: a local time of options.timezone, or of UTC */
    int64_t ambiguous_rows;    /* of these: the local time occurs twice; the earlier one is taken */
    int64_t missing_rows;      /* of these: the local time does not occur; it is shifted forward by the skipped time */
    lapse_error first_bad_row; /* the first malformed row, with skip_bad_rows */
    lapse_column_choice columns[3]; /* [lapse_column_role] */
    char ignored[256];              /* columns without a role, separated by commas; shortened to fit */
    int64_t ignored_count;
    const char *format;    /* "CSV" (any delimiter), "JSON Lines" or "Arrow" */
    const char *time_unit; /* as read: "unix seconds", "ISO 8601", ..., of Arrow also "timestamp", "date"; a constant */
    char timezone[64];     /* of local_rows: "UTC", "Europe/Berlin" */
    int64_t inactive_rows, inactive_sequences;     /* dropped by min_sequence_events */
    int64_t unpopular_rows, unpopular_event_types; /* dropped by min_users */
} lapse_import_report;

void lapse_import_options_default(lapse_import_options *options);

/* Reads events into a dataset in memory: sorted stably by sequence (in order of first appearance) and time; then filtered
 * by min_sequence_events and min_users, split into sessions, deduplicated, and filtered by min_count and min_events.
 * report may be NULL. */
lapse_status lapse_dataset_read(const lapse_import_options *options, lapse_dataset **dataset,
                                lapse_import_report *report, lapse_error *error);

/* Reads a table from a stream of the Arrow C stream interface, as lapse_dataset_read reads a text: with the same columns,
 * filters and report, and with the same result for the same rows. options->input, delimiter and header are ignored.
 * Columns are integers, floats, decimals of up to 18 digits, booleans, strings, string views, dates and timestamps, plain
 * or dictionary-encoded. As a name, a number is its decimal text, a float the shortest text that gives it back ("5.0"). A
 * timestamp without a zone, or a date, is a local time of options->timezone, NULL: UTC. Nulls and NaN are missing. In
 * errors, line is the number of the row.
 * report may be NULL. Releases the stream, on failure too, unless an argument is refused as NULL. The arrays are kept
 * until the call returns, and their memory must not change; besides them and the dataset, the call needs 3 to 4 bytes
 * per row. */
struct ArrowArrayStream;
lapse_status lapse_dataset_from_arrow(struct ArrowArrayStream *stream, const lapse_import_options *options,
                                      lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

/* Writes a dataset file atomically: to a temporary file, synced, then renamed to path. */
lapse_status lapse_dataset_save(const lapse_dataset *dataset, const char *path, lapse_error *error);

/* Maps a dataset file into memory and validates all of it. */
lapse_status lapse_dataset_open(const char *path, lapse_dataset **dataset, lapse_error *error);
void lapse_dataset_close(lapse_dataset *dataset);

int64_t lapse_dataset_sequence_count(const lapse_dataset *dataset);
int64_t lapse_dataset_event_count(const lapse_dataset *dataset);      /* events in all sequences */
int64_t lapse_dataset_event_type_count(const lapse_dataset *dataset); /* distinct event names */
const char *lapse_dataset_event_type_name(const lapse_dataset *dataset, int64_t type);
const char *lapse_dataset_sequence_name(const lapse_dataset *dataset, int64_t sequence);

/* The events of one sequence, oldest first: *times and *types point to *count elements inside the dataset. */
void lapse_dataset_sequence(const lapse_dataset *dataset, int64_t sequence, const double **times, const int32_t **types,
                            int64_t *count);

/* The index of the first event of each sequence among the events of all sequences, which are consecutive in memory:
 * lapse_dataset_sequence_count + 1 offsets, the last of which is lapse_dataset_event_count. */
const uint64_t *lapse_dataset_offsets(const lapse_dataset *dataset);

/* A hash of all events and of the names of event types, fields and categories: equal datasets have equal ones, whatever
 * they were read from. */
uint64_t lapse_dataset_fingerprint(const lapse_dataset *dataset);

/* The fields of every event, for index 0, 1, ... until it returns false: the action first, then categories, then
 * numbers. */
bool lapse_dataset_field(const lapse_dataset *dataset, int index, lapse_field *field);
const char *lapse_dataset_category_name(const lapse_dataset *dataset, int field, int64_t category);

/* A field of the events of one sequence, inside the dataset: *categories of an action or category, *numbers of a number
 * (NaN where missing). The other one is NULL. */
void lapse_dataset_field_values(const lapse_dataset *dataset, int field, int64_t sequence, const int32_t **categories,
                                const double **numbers);

/* The properties of the dataset, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_dataset_property(const lapse_dataset *dataset, int index, const char **name, const char **value);

/* ------------------------------------------------------------------------------------------------- check ----- */

/* Data-quality and leakage checks on a dataset and its train/validation/test split. */
typedef enum lapse_severity {
    LAPSE_SEVERITY_OK = 0,
    LAPSE_SEVERITY_NOTE = 1,   /* matters for the interpretation of scores */
    LAPSE_SEVERITY_WARNING = 2 /* scores are likely wrong */
} lapse_severity;

/* "ok", "note" or "warning". */
const char *lapse_severity_name(lapse_severity severity);

typedef struct lapse_finding {
    const char *name; /* such as "tied-times"; docs/dataset.md lists all */
    const char *unit; /* of count and total: "events", "event_types", "sequences", ... */
    lapse_severity severity;
    int64_t count, total; /* affected units, of all units */
    char text[320];       /* one sentence: the finding */
    const char *advice;   /* one sentence: how to fix it; "" for LAPSE_SEVERITY_OK */
} lapse_finding;

#define LAPSE_FINDING_LIMIT 16

typedef struct lapse_check_options {
    const char *task;     /* chooses the split rule if split_by is NULL */
    const char *split_by; /* as in lapse_train_options */
    uint64_t seed;        /* of the split, as in lapse_train_options */
    double now;           /* later events are future-dated; NaN: the time of the call */
} lapse_check_options;

typedef struct lapse_check {
    const char *split_by;
    uint64_t seed;
    double now;
    int64_t train_events, valid_events, test_events;
    int finding_count;
    lapse_finding findings[LAPSE_FINDING_LIMIT]; /* always all checks, in the same order */
} lapse_check;

void lapse_check_options_default(lapse_check_options *options);

/* Findings are not errors: the call fails only if the dataset cannot be split by this rule, or out of memory. */
lapse_status lapse_dataset_check(const lapse_dataset *dataset, const lapse_check_options *options, lapse_check *check,
                                 lapse_error *error);

/* ---------------------------------------------------------------------------------------------- training ----- */

typedef struct lapse_model lapse_model;

/* Training options are set by name, as on the command line. lapse_train_option lists them, so a program needs no list
 * of its own. */
typedef struct lapse_train_options lapse_train_options;

typedef enum lapse_option_type {
    LAPSE_OPTION_CHOICE = 0,   /* one of `choices` */
    LAPSE_OPTION_INTEGER = 1,  /* from minimum to maximum */
    LAPSE_OPTION_NUMBER = 2,   /* from minimum to maximum */
    LAPSE_OPTION_DURATION = 3, /* with a unit (90s, 15m, 3h, 2d, 1w, 2y), or a number of seconds */
    LAPSE_OPTION_FLAG = 4,     /* "true" or "false" */
    LAPSE_OPTION_SEED = 5,     /* an integer from 0 to 2^64 - 1 */
    LAPSE_OPTION_FILE = 6,     /* a path; "": none */
    LAPSE_OPTION_TEXT = 7      /* a text of at most 255 bytes; "": none */
} lapse_option_type;

/* One option. All strings are constants of the library. */
typedef struct lapse_option {
    const char *name; /* such as "learning-rate" */
    lapse_option_type type;
    double minimum, maximum;    /* of INTEGER, NUMBER and DURATION (in seconds); both included */
    const char *const *choices; /* of CHOICE: NULL-terminated; otherwise NULL */
    const char *initial;        /* default value; NULL: chosen by `rule` */
    const char *rule;           /* how the default is chosen, such as "chosen from the data"; NULL if initial is set */
    const char *placeholder;    /* for help: "N", "NAME"; NULL for a flag */
    const char *help;           /* one line */
    const char *group;          /* heading in the help: "Model", "Training", "Run" */
    bool advanced;              /* most users do not need it */
    bool output;                /* of FILE: training writes the file; otherwise it reads it */
} lapse_option;

/* The options of training, for index 0, 1, ... until it returns false. */
bool lapse_train_option(int index, lapse_option *option);
/* The option of this name; false: there is none. */
bool lapse_train_option_find(const char *name, lapse_option *option);
/* Whether the model of this name (a choice of the option "model") has an option of this name. */
bool lapse_model_has_option(const char *model, const char *name);

/* Allocates options with their defaults. */
lapse_status lapse_train_options_new(lapse_train_options **options, lapse_error *error);
void lapse_train_options_free(lapse_train_options *options);

/* Sets an option from text. An unknown name, or a value outside the option's range, is LAPSE_ERROR_USAGE. */
lapse_status lapse_train_options_set(lapse_train_options *options, const char *name, const char *value,
                                     lapse_error *error);

/* Formats an option's value into out and returns out; "" if it is chosen later, NULL for an unknown name. */
const char *lapse_train_options_get(const lapse_train_options *options, const char *name, char *out, size_t out_size);

/* Sets every option that has not been set to its value in the run that trained this model, its model type included.
 * Options of the machine (threads, device, files of checkpoints) are not taken. The dataset must have the model's
 * fields. Options that do not suit the dataset in other ways are refused by lapse_trainer_new. */
lapse_status lapse_train_options_like(lapse_train_options *options, const lapse_model *model,
                                      const lapse_dataset *dataset, lapse_error *error);

/* Whether the option has an effect, given the others: "heads" has none on a Markov chain. */
bool lapse_train_options_apply(const lapse_train_options *options, const char *name);

/* A metric on the validation split. */
typedef struct lapse_metric {
    const char *name;   /* a choice of the option "select": "log-loss" and "accuracy"; of the task recommend "ndcg@10",
                         * "hit@10" and "mrr" with the protocol full-unseen */
    const char *target; /* "event" or "action" */
    double value;
} lapse_metric;

#define LAPSE_METRIC_LIMIT 8

/* An epoch of a training run. */
typedef struct lapse_epoch {
    int epoch;    /* from 1; 0: none is complete */
    double loss;  /* mean training loss, in nats per event */
    double score; /* the metric of the option "select": its value, over two targets the sum of their log-losses or the
                   * mean of their accuracies */
    int metric_count;
    lapse_metric metrics[LAPSE_METRIC_LIMIT]; /* all metrics of the task, target by target */
} lapse_epoch;

typedef struct lapse_progress {
    int epoch, epochs;        /* current (from 1), and the maximum */
    int64_t step, steps;      /* within the epoch, from 1 */
    bool epoch_end;           /* the last call of the epoch: score is new */
    double loss;              /* mean over the epoch so far, in nats per event; NaN until a device reports one */
    double score, best_score; /* validation metric that selects the best epoch: newest and best; NaN before the first */
    const char *score_name;   /* its name: a choice of the option "select" */
    int best_epoch;
    lapse_epoch newest; /* the newest complete epoch with all its metrics */
    double events_per_second;
    double seconds;           /* since the start of the call */
    double epoch_seconds;     /* estimate of a whole epoch with its validation */
    double seconds_left;      /* estimate until the end of the run, if no later epoch is better */
    double seconds_left_most; /* the same, if all epochs run */
} lapse_progress;

/* Called after every step. Return true to continue; false stops training and returns the best model so far. */
typedef bool (*lapse_on_progress)(const lapse_progress *progress, void *context);

/* A training run: resolved options, split and buffers. It belongs to one thread at a time. */
typedef struct lapse_trainer lapse_trainer;

/* Prepares a run: chooses unset options from the data, validates all options, makes the split and allocates all
 * buffers. The trainer keeps the dataset alive; the options are copied. */
lapse_status lapse_trainer_new(const lapse_dataset *dataset, const lapse_train_options *options,
                               lapse_trainer **trainer, lapse_error *error);
void lapse_trainer_free(lapse_trainer *trainer);

/* The resolved options of the run, valid as long as the trainer. */
const lapse_train_options *lapse_trainer_options(const lapse_trainer *trainer);

/* Trains on the training split and returns the model with the best parameters on the validation split (early stopping).
 * on_progress and context may be NULL. May be called once per trainer. */
lapse_status lapse_trainer_run(lapse_trainer *trainer, lapse_on_progress on_progress, void *context,
                               lapse_model **model, lapse_error *error);

/* Deletes the checkpoint file of the run, and the symbolic link if its path is one. Does nothing if there is none, or if
 * the file is not the one that this trainer wrote, or resumed from, last. For a caller who has saved the model. */
lapse_status lapse_trainer_delete_checkpoint(lapse_trainer *trainer, lapse_error *error);

/* lapse_trainer_new, run and free in one call. The checkpoint is not deleted. */
lapse_status lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error);

/* ------------------------------------------------------------------------------------------ item vectors ----- */

/* Item vectors by skip-gram with negative sampling (word2vec), from co-occurrence in sequences and from features in a
 * catalogue. They can initialize a model's item embeddings (training option "item-vectors"). */
typedef struct lapse_vectors lapse_vectors;

typedef struct lapse_pretrain_options {
    const char *catalogue; /* CSV or TSV file with one row per item, plain or gzip; NULL: none */
    const char *item;      /* its column of the item's name: a name, or a 1-based number; NULL: found by name */
    const char *words;     /* its columns of text, separated by commas, where each word is a feature; NULL: name, title,
                            * description. In other columns, such as brand, the whole value is a feature */
    int dims;              /* of a vector */
    int window;            /* context window: events before and after */
    double session_gap;    /* seconds: events further apart are in no common window; 0: no limit */
    int negative_count;    /* negative samples per positive */
    double popularity_power; /* negatives are sampled by item frequency to this power */
    double learning_rate;    /* initial; decays linearly to 0 */
    int epochs;
    const char *split_by; /* split rule; only the training split is used. NULL: the split column if there is one,
                           * otherwise leave-one-out */
    uint64_t seed;        /* of the split, initialization, order and negatives */
} lapse_pretrain_options;

void lapse_pretrain_options_default(lapse_pretrain_options *options);

/* Trains vectors of the items of the dataset and of the catalogue. An item without training events has the sum of its
 * feature vectors, or zeros without known features. on_progress may be NULL; it stops training early by returning
 * false. Runs on one thread. */
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

/* The properties of the vectors, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_vectors_property(const lapse_vectors *vectors, int index, const char **name, const char **value);

/* ------------------------------------------------------------------------------------------------ models ----- */

/* A model file has the whole configuration; equal runs write equal files (docs/model.md). */
lapse_status lapse_model_save(const lapse_model *model, const char *path, lapse_error *error);
lapse_status lapse_model_load(const char *path, lapse_model **model, lapse_error *error);
void lapse_model_free(lapse_model *model);

int64_t lapse_model_event_type_count(const lapse_model *model);
const char *lapse_model_event_type_name(const lapse_model *model, int64_t type);

/* The id of an event type by its name, or -1. */
int64_t lapse_model_event_type_find(const lapse_model *model, const char *name);

/* The input fields of the model, for index 0, 1, ... until it returns false; and their categories. */
bool lapse_model_field(const lapse_model *model, int index, lapse_field *field);
const char *lapse_model_category_name(const lapse_model *model, int field, int64_t category);
int64_t lapse_model_category_find(const lapse_model *model, int field, const char *name); /* or -1 */

/* The targets of the model, for index 0, 1, ... until it returns NULL: "event" (its classes are the event types),
 * "action" (its classes are the actions), or both; and the classes of a target. */
const char *lapse_model_target(const lapse_model *model, int index);
int64_t lapse_model_target_size(const lapse_model *model,
                                const char *target); /* classes; 0 if it is no target of the model */
const char *lapse_model_target_name(const lapse_model *model, const char *target, int64_t index);

/* What the model has learned, as in its file (docs/model.md): a matrix. */
typedef enum lapse_tensor_type {
    LAPSE_TENSOR_F32 = 0,
    LAPSE_TENSOR_I32 = 1,
    LAPSE_TENSOR_U8 = 2,
    LAPSE_TENSOR_U64 = 3,
    LAPSE_TENSOR_F64 = 4
} lapse_tensor_type;

typedef struct lapse_tensor {
    const char *name; /* such as "event.embedding": one row per event type */
    lapse_tensor_type type;
    int64_t rows, cols;
    const void *data; /* rows * cols elements, row by row; inside the model */
} lapse_tensor;

/* The tensors of the model, for index 0, 1, ... until it returns false. */
bool lapse_model_tensor(const lapse_model *model, int index, lapse_tensor *tensor);

/* The properties of the model, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_model_property(const lapse_model *model, int index, const char **name, const char **value);

/* The history of the training run, for index 0 (epoch 1), 1, ... until it returns false. Baselines have none. The epoch
 * of the model's parameters is its property "score.epoch". */
bool lapse_model_history(const lapse_model *model, int index, lapse_epoch *epoch);

/* ------------------------------------------------------------------------------------------------ scores ----- */

typedef struct lapse_class_score {
    const char *name;             /* valid as long as the model */
    int64_t cases;                /* events of this class (support) */
    int64_t predicted;            /* predictions of this class: it was the most probable one */
    int64_t correct;              /* true positives */
    double precision, recall, f1; /* 0 where undefined */
} lapse_class_score;

typedef struct lapse_scores {
    const char *target;                           /* "event" or "action" */
    const char *split;                            /* "train", "valid", "test" or "all" */
    const char *target_time;                      /* "known" or "unknown" */
    int64_t cases;                                /* predicted events */
    int64_t sequences;                            /* with at least one case */
    double accuracy, accuracy_low, accuracy_high; /* with a 95 % bootstrap interval over sequences */
    double log_loss, log_loss_low, log_loss_high; /* in nats per event, likewise */
    double macro_f1;                              /* mean F1 over the classes that have cases */
    int64_t class_count;
    lapse_class_score *classes; /* by id of the event type or action; freed by lapse_scores_clear */
} lapse_scores;

typedef struct lapse_evaluate_options {
    const char *split;  /* "train", "valid", "test" or "all"; the model stores the split rule */
    const char *target; /* what is predicted, "event" or "action"; at which events, "action=NAME" (those with this
                         * action) or "all"; or both, "event,action=view". What is left out, or NULL: the first that
                         * the model predicts, at the model's target events (training option "target") */
    int threads;        /* 0: all cores; at most 4096; never changes the result */
    int bootstrap;      /* resamples for the intervals; 0: none */
    const char *device; /* "cpu", "cuda" or "auto", as in training; NULL: "cpu". Baselines always use the CPU */
} lapse_evaluate_options;

void lapse_evaluate_options_default(lapse_evaluate_options *options);

/* Evaluates a classifier or a baseline on every target event of the split except each sequence's first. The dataset must
 * have
 * the model's fields, and no event types or categories unknown to the model. A recommender is evaluated by
 * lapse_rank_evaluate. */
lapse_status lapse_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                            const lapse_evaluate_options *options, lapse_scores *scores, lapse_error *error);
void lapse_scores_clear(lapse_scores *scores);

/* Coverage of the central intervals of 50 %, 80 % and 95 %. */
#define LAPSE_COVERAGE_COUNT 3

/* Scores of predicted times of the next event, in units of lapse_time_scores.unit. docs/evaluation.md defines them. */
typedef struct lapse_time_score {
    const char *name;                      /* of the model, or "exponential", "log-normal", "log-normal-type", "law" */
    double nll, nll_low, nll_high;         /* negative log-likelihood in nats per event, and its 95 % interval */
    double mae;                            /* mean absolute error of the median */
    double crps;                           /* mean continuous ranked probability score */
    double coverage[LAPSE_COVERAGE_COUNT]; /* fraction of events in the central intervals */
    double pit_distance; /* largest distance of the distribution of the probability integral transform from uniform */
} lapse_time_score;

#define LAPSE_TIME_SCORE_LIMIT 4

typedef struct lapse_time_scores {
    const char *split; /* as in lapse_scores */
    int64_t cases, sequences;
    double unit;           /* seconds: the longest of second, minute, hour and day that is not longer than the geometric
                            * mean of the gaps */
    const char *unit_name; /* "second", "minute", "hour" or "day" */
    double floor;          /* seconds: a shorter gap, or none, counts as this */
    int count;
    lapse_time_score scores[LAPSE_TIME_SCORE_LIMIT]; /* the model; then, unless the split is "all", baselines that are
                                                      * fitted to the training split */
} lapse_time_scores;

/* Whether a model predicts the time of the next event: it was trained with the option "when", or it is the model rmtpp. */
bool lapse_model_predicts_time(const lapse_model *model);

/* Evaluates the predicted times of a model that has them on every event of the split except each sequence's first. */
lapse_status lapse_time_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                 const lapse_evaluate_options *options, lapse_time_scores *scores, lapse_error *error);

/* ----------------------------------------------------------------------------------------------- ranking ----- */

/* Ranking metrics: the rank of the target event's item among candidates, under four protocols. "full-unseen": the whole
 * catalogue without the items earlier in the sequence; "full": the whole catalogue; "uniform": negatives sampled
 * uniformly from the items that the sequence never has; "popularity": the same, sampled by frequency in training. Ties
 * rank against the target. docs/evaluation.md has the definitions. */
#define LAPSE_RANK_PROTOCOLS 4

/* A mean over cases with a 95 % bootstrap interval over sequences. Without bootstrap, low and high are the mean. */
typedef struct lapse_mean {
    double mean, low, high;
} lapse_mean;

typedef struct lapse_rank_score {
    const char *protocol; /* "full-unseen", "full", "uniform" or "popularity" */
    double candidates;    /* mean number of candidates, including the target; 0: the protocol is not used */
    int64_t short_cases;  /* cases with fewer eligible negatives than requested; all of them were used */
    lapse_mean *hit;      /* by cutoff: hit rate, the fraction of cases with a rank up to the cutoff */
    lapse_mean *ndcg;     /* by cutoff: NDCG, the mean of 1 / log2(1 + rank), or 0 past the cutoff */
    lapse_mean mrr;       /* mean reciprocal rank */
} lapse_rank_score;

/* A subset of the cases. */
typedef struct lapse_rank_slice {
    const char *by; /* "history": number of events before the target event; "popularity": training events of the item;
                     * "lag": time since the previous event; "all" */
    char name[64];  /* such as "10 to 19 events" */
    int64_t cases;  /* target events */
    int64_t sequences; /* with at least one case */
    lapse_rank_score scores[LAPSE_RANK_PROTOCOLS];
} lapse_rank_slice;

typedef struct lapse_rank_scores {
    const char *split;       /* "train", "valid", "test" or "all" */
    const char *target_time; /* "known" or "unknown" */
    const char *popularity;  /* counted in "training", or in "dataset" if the training split is not known */
    int64_t items;           /* of the catalogue */
    int64_t case_total;      /* all target events; more than whole.cases if cases were sampled */
    int negatives;           /* requested per case */
    uint64_t negative_seed;
    int cutoff_count;
    int *cutoffs;
    lapse_rank_slice whole;
    int slice_count;
    lapse_rank_slice *slices; /* those with cases, grouped by `by` */
    lapse_mean *means;        /* memory of the scores; freed by lapse_rank_scores_clear */
} lapse_rank_scores;

typedef struct lapse_rank_options {
    const char *split;  /* "train", "valid", "test" or "all"; the model stores the split rule */
    const int *cutoffs; /* cutoff_count of them, each at least 1 */
    int cutoff_count;
    int negatives;          /* sampled per case; 0: only the full protocols */
    uint64_t negative_seed; /* of the negatives and of the sample of cases */
    int64_t cases;          /* maximum; a sample of this size if there are more. 0: all */
    bool slices;            /* compute lapse_rank_scores.slices */
    int bootstrap;          /* resamples for the intervals; 0: none */
    int threads;            /* 0: all cores; at most 4096; never changes the result */
    const char *device;     /* that computes the states: "cpu", "cuda" or "auto"; NULL: "cpu" */
    const char *target;     /* as in lapse_evaluate_options; "action" is refused, since only events are ranked */
} lapse_rank_options;

void lapse_rank_options_default(lapse_rank_options *options);

/* Ranks every target event of the split except each sequence's first, with a model of the task "recommend" or a baseline. */
lapse_status lapse_rank_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                 const lapse_rank_options *options, lapse_rank_scores *scores, lapse_error *error);
void lapse_rank_scores_clear(lapse_rank_scores *scores);

/* ----------------------------------------------------------------------------------- comparison with baselines ----- */

#define LAPSE_COMPARED_LIMIT 8

/* A model of a comparison. */
typedef struct lapse_compared {
    char name[32];                              /* "attention", "majority", "markov 2", ... */
    lapse_mean metrics[LAPSE_METRIC_LIMIT];     /* with 95 % bootstrap intervals over sequences */
    lapse_mean differences[LAPSE_METRIC_LIMIT]; /* rows[0] minus this one, case by case, with intervals likewise */
} lapse_compared;

typedef struct lapse_comparison {
    const char *target, *split; /* as in lapse_scores */
    int64_t cases, case_total;  /* fewer cases than case_total: a sample, because the catalogue is large */
    int64_t sequences;          /* with at least one case */
    int metric_count;
    const char *metric_names[LAPSE_METRIC_LIMIT]; /* as lapse_metric.name */
    int row_count;
    lapse_compared rows[LAPSE_COMPARED_LIMIT]; /* the model, then the baselines */
    int best;                                  /* the baseline with the best first metric */
} lapse_comparison;

/* Evaluates a network beside the baselines of its task, fitted to its training split, on the same cases: classify
 * majority and Markov chains of order 1 to 3; recommend popularity and item-markov, with the protocol full-unseen. The
 * dataset must be the one that the model was trained on. */
lapse_status lapse_compare(const lapse_model *model, const lapse_dataset *dataset,
                           const lapse_evaluate_options *options, lapse_comparison *comparison, lapse_error *error);

/* lapse_rank_evaluate and lapse_compare of a recommender in less time: unless cases are sampled, the network computes its scores
 * once. */
lapse_status lapse_rank_compare(const lapse_model *model, const lapse_dataset *dataset,
                                const lapse_rank_options *options, lapse_rank_scores *scores,
                                lapse_comparison *comparison, lapse_error *error);

/* Stores the scores of a comparison in the model, so that they are saved with it (lapse_model_property). The only call
 * that changes a model: no other thread may use it at the same time. */
lapse_status lapse_model_record(lapse_model *model, const lapse_comparison *comparison, lapse_error *error);

/* ---------------------------------------------------------------------------------------------- sessions ----- */

/* A session is one growing history. Append events, then predict at any time. The model's keys and values of past events
 * are cached (KV cache), so a further query computes one row, whatever the length of the history. What does not depend on
 * the history (graph, plan, constants, transposed item vectors) is built once per model, by the first query, and shared by all
 * its sessions; a session owns its events and their cached rows.
 *
 * Threads: a session belongs to one thread at a time. Any number of threads may use different sessions of one model at the same
 * time; a call about several sessions uses all of them. */
typedef struct lapse_session lapse_session;

/* The session keeps the model alive. */
lapse_status lapse_session_new(const lapse_model *model, lapse_session **session, lapse_error *error);
void lapse_session_free(lapse_session *session);

/* Removes all events. */
void lapse_session_clear(lapse_session *session);

/* Appends an event without fields. Times must not decrease. An unknown name is LAPSE_ERROR_UNKNOWN and appends
 * nothing. A model with the gap input reads the time since the event appended before it; the first event has none. So a
 * history should begin where its sequence begins, or at least one event before the last `context` events. */
lapse_status lapse_session_append(lapse_session *session, double time, const char *event, lapse_error *error);

/* The value of a field of an event. */
typedef struct lapse_value {
    const char *text; /* of an action or category; NULL: "" (empty) */
    double number;    /* of a number; NaN: missing */
} lapse_value;

typedef struct lapse_event {
    double time;
    const char *event;
    const lapse_value *fields; /* [field_count], in the order of lapse_model_field */
    int field_count;
} lapse_event;

/* Appends an event with its fields. A model with fields requires all of them for every event. */
lapse_status lapse_session_append_event(lapse_session *session, const lapse_event *event, lapse_error *error);

/* Makes events[0 .. count-1], in the order of time, the whole history. The session keeps what it has computed of the longest common
 * prefix of its history and this one, and *reused, which may be NULL, is the number of events in it. So appending an event, adding one
 * that arrived late, and calling again with the same events are one call. On failure the session is unchanged. */
lapse_status lapse_session_sync(lapse_session *session, const lapse_event *events, int64_t count, int64_t *reused,
                                lapse_error *error);

/* The number of events appended since the history began, and the time of the last; NaN: there is none. */
int64_t lapse_session_count(const lapse_session *session);
double lapse_session_last_time(const lapse_session *session);

/* Fills probabilities[0 .. event types - 1]: the probability of each event type, given that the next event happens at
 * this time, which must not be before the last event. The history must not be empty. Fails for a model whose only
 * target is the action. */
lapse_status lapse_session_predict(lapse_session *session, double time, double *probabilities, lapse_error *error);

/* The same for any of the model's targets: probabilities[0 .. lapse_model_target_size-1]. */
lapse_status lapse_session_predict_target(lapse_session *session, double time, const char *target,
                                          double *probabilities, lapse_error *error);

/* A candidate for the next event: an event type; of a recommender, an item. */
typedef struct lapse_recommendation {
    int64_t item; /* id of lapse_model_event_type_name */
    double
        score; /* recommender: the score, over several frequency samples their mean score. Classifier: the logit; over
                * several frequency samples, the log of the mean probability. Baseline: the log of the probability */
    double probability; /* as lapse_session_predict */
} lapse_recommendation;

/* Fills best[0 .. *count-1] with the `top` event types of the highest scores at this time, highest first. *count is
 * less than `top` if there are fewer. unseen: without the event types of the history; probabilities still refer to all
 * event types. Partial sort: the other event types are not sorted. */
lapse_status lapse_session_recommend(lapse_session *session, double time, int64_t top, bool unseen,
                                     lapse_recommendation *best, int64_t *count, lapse_error *error);

/* A query about one of several sessions of one model. */
typedef struct lapse_session_query {
    lapse_session *session;
    double time;
} lapse_session_query;

/* lapse_session_predict_target for many sessions at once: probabilities[q * lapse_model_target_size ..] is the answer to queries[q].
 * One run of the network computes the rows of many histories, and each row has the bits that it has alone. A session may occur
 * several times. target: NULL is the first that the model predicts. All queries are checked before the first is answered; the message
 * has the index of the one that is wrong. */
lapse_status lapse_session_predict_many(const lapse_session_query *queries, int64_t count, const char *target,
                                        double *probabilities, lapse_error *error);

/* Which event types may be recommended. They are selected before the best are chosen, so `top` of them are found where there are so
 * many. What is NULL does not restrict. A bit set has (event types + 63) / 64 elements: event type i is bit i % 64 of element i / 64. */
typedef struct lapse_item_filter {
    bool unseen;              /* without the event types of the history */
    const uint64_t *only_set; /* bit set: no others */
    const int64_t *only;      /* [only_count] ids: no others */
    int64_t only_count;
    const uint64_t *exclude_set; /* bit set: none of these */
    const int64_t *exclude;      /* [exclude_count] ids: none of these */
    int64_t exclude_count;
    const float *offset; /* [event types]: added to the scores before the best are chosen; finite */
} lapse_item_filter;

/* A request for the best event types of one of several sessions of one model. */
typedef struct lapse_recommend_query {
    lapse_session *session;
    double time;
    const lapse_item_filter *filter; /* NULL: all event types */
    int64_t top;                     /* at least 1 */
    lapse_recommendation
        *best;     /* [top]: best[0 .. count-1] is filled, as by lapse_session_recommend. A score includes its
                                      * offset; the probability is the model's, without offsets */
    int64_t count; /* filled */
} lapse_recommend_query;

/* lapse_session_recommend for many sessions at once, as lapse_session_predict_many. target: NULL is the first that the model predicts;
 * filters are of the target "event" alone. */
lapse_status lapse_session_recommend_many(lapse_recommend_query *queries, int64_t count, const char *target,
                                          lapse_error *error);

/* ------------------------------------------------------------------------------------------ state vectors ---- */

/* The numbers of a state and of an item vector of a network that recommends; 0 for other models. */
int lapse_model_state_dims(const lapse_model *model);

/* The vectors of all items, [event types x lapse_model_state_dims], in the order of their ids, and what is added to the score of
 * each: score = state . vector + bias, up to rounding. NULL for a model that has none. Valid as long as the model. */
const float *lapse_model_item_vectors(const lapse_model *model);
const float *lapse_model_item_biases(const lapse_model *model);

/* Fills state[0 .. lapse_model_state_dims-1]: the vector of a history at this time whose products with item vectors rank the items.
 * Over several frequency samples, the mean. A model without states is LAPSE_ERROR_USAGE. */
lapse_status lapse_session_state(lapse_session *session, double time, float *state, lapse_error *error);

/* The same for many sessions at once: states[q * lapse_model_state_dims ..] is that of queries[q]. */
lapse_status lapse_session_state_many(const lapse_session_query *queries, int64_t count, float *states,
                                      lapse_error *error);

/* The number of attention blocks of the model, and of heads of each; 0 for a model without attention, or whose attention
 * weights do not add up to 1 (rnn-attention). */
int lapse_model_attention_blocks(const lapse_model *model);
int lapse_model_attention_heads(const lapse_model *model);

/* The number of events that a query reads: those appended, at most the model's context. */
int64_t lapse_session_window(const lapse_session *session);

/* Fills weights[0 .. lapse_session_window-1], oldest event first: how much the newest event attends to each event when the
 * next event happens at this time. They add up to 1. block is from 0 to lapse_model_attention_blocks-1, head from 0 to
 * lapse_model_attention_heads-1, or -1: the mean over heads. Over several frequency samples, their mean. A model without
 * attention is LAPSE_ERROR_USAGE. */
lapse_status lapse_session_attention(lapse_session *session, double time, int block, int head, double *weights,
                                     lapse_error *error);

/* ------------------------------------------------------------------------------ time of the next event ----- */

/* A question about the time of the next event, given that nothing has happened from the last event up to now. Times are unix
 * seconds. Arrays belong to the caller; what is not wanted is NULL or 0. */
typedef struct lapse_when {
    double now; /* not before the last event; NaN: the time of the last event */
    const double *probabilities;
    int64_t probability_count;
    double *quantiles; /* [probability_count], filled: the time by which the event has come with this probability;
                        * infinite where it never has */
    const double *times;
    int64_t time_count; /* times that are not before now */
    double *cdf;        /* [time_count], filled: probability that the event has come by then */
    double *density;    /* [time_count], filled: per second */
} lapse_when;

void lapse_when_default(lapse_when *when);

/* Answers a question about the next event of a history with at least one event. The model predicts times
 * (lapse_model_predicts_time); otherwise LAPSE_ERROR_USAGE. Exact however long nothing has happened. */
lapse_status lapse_session_when(lapse_session *session, const lapse_when *when, lapse_error *error);

/* Fills probabilities[0 .. event types - 1]: the probability that the next event comes by `until` and is of this type, given that
 * nothing has happened up to now (NaN: the last event). They sum to the cdf at `until`. The integral of density times
 * lapse_session_predict over time, by quadrature. */
lapse_status lapse_session_within(lapse_session *session, double now, double until, double *probabilities,
                                  lapse_error *error);

/* Draws the next event, given that nothing has happened up to now (NaN: the last event): its time, then its type at that time. A
 * function of the seed and the number of the draw, and of nothing else than the history and now. *time is infinite and *event is -1
 * where it never comes. */
lapse_status lapse_session_sample(lapse_session *session, double now, uint64_t seed, uint64_t draw, double *time,
                                  int64_t *event, lapse_error *error);

/* The same for every sequence of a dataset. */
typedef struct lapse_when_options {
    double
        now; /* unix seconds: nothing has happened from the last event up to now; NaN, or for a sequence that ends later:
                 * its last event */
    const double *probabilities; /* [probability_count]: of quantiles */
    int64_t probability_count;
    const double *horizons; /* [horizon_count]: seconds after now, not negative */
    int64_t horizon_count;
    bool skip_unknown; /* as in lapse_predict_options */
    int threads;       /* 0: all cores; at most 4096; never changes the result */
} lapse_when_options;

void lapse_when_options_default(lapse_when_options *options);

/* Fills, for each sequence s: start[s], the time that the answers count from; quantiles[s * probability_count ..], as
 * lapse_when.quantiles; within[s * horizon_count ..], the probability that the next event comes within each horizon;
 * type_within[(s * horizon_count + h) * event types ..], as lapse_session_within. NaN: the model knows no event of the sequence.
 * quantiles, within and type_within may be NULL: not wanted. */
lapse_status lapse_when_all(const lapse_model *model, const lapse_dataset *histories, const lapse_when_options *options,
                            double *start, double *quantiles, double *within, double *type_within, lapse_error *error);

/* Futures of the sequences of a dataset, drawn event by event: a time, then a type at this time, appended, and again. */
typedef struct lapse_forecast_options {
    double horizon; /* seconds after now, above 0 */
    double
        now; /* unix seconds: nothing has happened from the last event up to now; NaN, or for a sequence that ends later:
                 * its last event */
    int64_t samples; /* futures of each sequence */
    uint64_t seed;
    bool skip_unknown; /* as in lapse_predict_options */
    int threads;       /* 0: all cores; at most 4096; never changes the result */
} lapse_forecast_options;

typedef struct lapse_forecasts {
    int64_t sequence_count, type_count;
    double now, horizon;   /* of the options */
    int64_t *samples;      /* [sequences]: futures drawn; 0: the model knows no event of the sequence */
    double *count;         /* [sequences]: expected number of events */
    double *low, *high;    /* [sequences]: 10 % and 90 % quantile of the number of events */
    double *any;           /* [sequences]: probability of at least one event */
    double *type_expected; /* [sequences x types]: expected number of events of each type */
    double *type_any;      /* [sequences x types]: probability of at least one of them */
} lapse_forecasts;

void lapse_forecast_options_default(lapse_forecast_options *options);

/* Fills an uninitialized *forecasts. The model predicts times and event types, and reads no fields of events, which a drawn event
 * does not have. The same options give the same bits on any number of threads. */
lapse_status lapse_forecast(const lapse_model *model, const lapse_dataset *histories,
                            const lapse_forecast_options *options, lapse_forecasts *forecasts, lapse_error *error);
void lapse_forecasts_clear(lapse_forecasts *forecasts);

/* -------------------------------------------------------------------------------------- batch prediction ----- */

/* A prediction after a sequence of a dataset, at a time that must not be before its last event. */
typedef struct lapse_query {
    int64_t sequence;
    double time;
} lapse_query;

typedef struct lapse_predict_options {
    const char *target; /* "event" or "action"; NULL: the first that the model predicts */
    int64_t top;        /* recommendations per query */
    bool unseen;        /* without the event types of the sequence (target "event" only) */
    bool skip_unknown;  /* skip events with names unknown to the model, instead of failing */
    int threads;        /* 0: all cores; at most 4096; never changes the result */
} lapse_predict_options;

void lapse_predict_options_default(lapse_predict_options *options);

/* Predicts many queries on several threads: best[q * top .. q * top + counts[q] - 1] are the recommendations of query
 * q, highest first. counts[q] is -1 if the model knows no event of the sequence. Queries of one sequence should be
 * consecutive; otherwise its events are computed again. queries, best and counts may be NULL if query_count is 0. */
lapse_status lapse_predict_all(const lapse_model *model, const lapse_dataset *histories, const lapse_query *queries,
                               int64_t query_count, const lapse_predict_options *options, lapse_recommendation *best,
                               int64_t *counts, lapse_error *error);

#ifdef __cplusplus
}
#endif

#endif
