/* lapse.h: the public interface of Lapse: what a product needs. lapse_lab.h adds what a study or a tool needs.
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
 *   - A pointer may be NULL only where its comment says so; a call that returns a lapse_status refuses it otherwise.
 *   - An index out of range is not an error: a name or a pointer is NULL then, a count 0, a bool false.
 *   - Results are finite, and exact in any amount of memory: overflow is LAPSE_ERROR_FORMAT, out of memory always
 *     LAPSE_ERROR_MEMORY. A model, item vectors or a checkpoint with a number that is not finite is not saved.
 *   - The library never prints, exits or aborts on input. It writes only to paths given by the caller.
 *   - An object returned by ..._new, ..._open, ..._load or through an out-pointer belongs to the caller, who frees it
 *     with the matching ..._free or ..._close; both accept NULL. Strings of an object are valid until it is freed.
 *   - A session keeps its model alive, and a trainer its dataset: the caller may free them in any order.
 *   - Datasets and models are immutable, except for lapse_model_record: any number of threads may use one. A session or
 *     a trainer belongs to one thread at a time. Option objects are plain values without locks.
 *   - Several threads may use one GPU: their calls are serialized, with the bits of one after another. An error of the
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
    LAPSE_ERROR_INTERNAL = 7, /* a bug in Lapse, or a failure of the device */
    LAPSE_ERROR_COMM = 8     /* another process of a run on several ranks has failed, or does not answer */
} lapse_status;

typedef struct lapse_error {
    lapse_status status;
    char message[512]; /* one sentence: what is wrong, where, and how to fix it */
    char file[256];    /* the file concerned, or "" */
    int64_t line;      /* 1-based; 0: not applicable */
    int64_t column;    /* 1-based field of the line, in JSON Lines its byte; 0: not applicable */
    char option[48];   /* the option that the sentence is about, such as "learning-rate"; "": none */
    char value[80];    /* the value that this option cannot have; "": the sentence is not about a value */
} lapse_error;

/* "memory", "usage", ...: the short name of a status. */
const char *lapse_status_name(lapse_status status);

/* ----------------------------------------------------------------------------------------------- times ------ */

/* Parses a timestamp: unix seconds ("1326506723.403") or ISO 8601 ("2026-11-15T12:00:00Z", "...+02:00", a space for the
 * T; a date alone is midnight). "15/11/2026" is read where the order of day and month is certain. A time without a zone
 * is UTC. */
lapse_status lapse_time_parse(const char *text, double *time, lapse_error *error);

/* The same, but a time without a zone is a local time: of "Europe/Berlin", "UTC", "+02:00"; NULL: UTC. A local time that
 * occurs twice is the earlier one; one that does not occur is shifted forward by the skipped time. */
lapse_status lapse_time_parse_zone(const char *text, const char *timezone, double *time, lapse_error *error);

/* Parses a duration with its unit: 90s, 15m, 3h, 2d, 1w, 2y (y = 365.25 days), 250ms. */
lapse_status lapse_duration_parse(const char *text, double *seconds, lapse_error *error);

/* Format into out and return out: "3 days", "1.5 hours"; "2026-11-15T12:00:00Z", with milliseconds if not 0. */
const char *lapse_duration_format(double seconds, char *out, size_t out_size);
const char *lapse_time_format(double time, char *out, size_t out_size);

/* ----------------------------------------------------------------------------------- datasets and import ----- */

/* The processes (ranks) that share the work of a call: lapse_lab.h. */
typedef struct lapse_comm lapse_comm;

typedef struct lapse_dataset lapse_dataset;

/* Fields: further columns of an event. A model reads the fields of past events, never those of the target event. */
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

typedef struct lapse_import_options {
    const char *input; /* path of a CSV, TSV or JSON Lines file, plain or gzip; "-" is standard input */
    /* Columns: a name, a 1-based number, in JSON Lines a key or the path of a nested one ("a.b"); NULL: found by its name
     * and the values of the first rows. */
    const char *sequence;  /* of the sequence (user) */
    const char *time;      /* of the time; "date,clock": the date and the time of day in two columns of text */
    const char *event;     /* of the event's name, or several ("action,item"), whose values are joined by a space */
    const char *split;     /* that contains train, valid or test; NULL: none */
    const char *delimiter; /* ",", "\t" or any one character; NULL: detected in the first line */
    const char *time_unit; /* "auto"; "s", "ms", "us", "ns" (unix time); "iso"; "mdy", "dmy" (11/15/2026, 15/11/2026);
                            * "text" (15 Nov 2026), "compact" (20261115), "excel" (day numbers of spreadsheets), "relative"
                            * (numbers since a start of their own) */
    const char *timezone;  /* of times without a zone, as in lapse_time_parse_zone; NULL: UTC */
    bool header;           /* the first line names the columns; otherwise columns are numbered */
    bool skip_bad_rows;    /* skip and count malformed rows, instead of failing at the first */
    int64_t min_events;    /* drop sequences with fewer events */
    int64_t min_count;     /* drop event types with fewer events in the dataset (applied before min_events) */
    const char *min_rounds;  /* "once": min_count, then min_events; "iterated": in turn until both hold (k-core) */
    double session_gap;      /* seconds: sequences are split into sessions, named "<sequence>/1", ..., where consecutive
                              * events are further apart; 0: never */
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

    /* What to take, as above, where an option is NULL (time_unit: "auto") and the file has it: as at the training of a
     * model. NULL: nothing. */
    const char *preferred[3]; /* [lapse_column_role] */
    const char *preferred_split, *preferred_unit, *preferred_encoding; /* the last: of a text that is not Unicode */

    const char *encoding; /* "utf-8", "utf-16le", "utf-16be", "windows-1250", ... "windows-1252", "latin-1"; NULL: found */
    bool basket; /* events of one sequence and time have no order (the items of an order): they are shuffled, the same way
                  * each time */
} lapse_import_options;

/* The column of a role. Names are shortened to fit. */
typedef struct lapse_column_choice {
    char column[256];   /* its name; several are separated by commas */
    char runner_up[64]; /* the column that would be the next choice; "": none, or the column was given */
    bool given;         /* by an option, or by position without a header; otherwise found by its name and values */
    bool found;         /* given by options.preferred */
    bool close;         /* found, but not certain: then the import fails with a question */
    char reason[120];   /* why: "named like a user; 24 values in 420 rows" */
    char sample[64];    /* a value */
} lapse_column_choice;

typedef struct lapse_import_report {
    int64_t bytes;                  /* of text read, after decompression; 0 for Arrow */
    int64_t rows;                   /* data rows read, including malformed ones */
    int64_t bad_rows;               /* malformed rows skipped */
    int64_t rare_rows;              /* rows dropped by min_count */
    int64_t rare_event_types;       /* event types dropped by min_count */
    int64_t short_rows;             /* rows dropped by min_events */
    int64_t short_sequences;        /* sequences dropped by min_events */
    int64_t moved_rows;             /* rows that were not in time order within their sequence */
    int64_t duplicate_rows;         /* rows dropped by deduplicate */
    int64_t cut_sequences;          /* sequences split by session_gap */
    int64_t sessions;               /* sequences after splitting, before filtering; 0 without session_gap */
    int64_t rounds;                 /* rounds of min_count and min_events that dropped something */
    int64_t local_rows;             /* rows whose time has no zone: a local time of options.timezone, or of UTC */
    int64_t ambiguous_rows;         /* of these: the local time occurs twice */
    int64_t missing_rows;           /* of these: the local time does not occur */
    lapse_error first_bad_row;      /* the first malformed row, with skip_bad_rows */
    lapse_column_choice columns[3]; /* [lapse_column_role] */
    char ignored[256];              /* columns without a role, separated by commas; shortened to fit */
    int64_t ignored_count;
    const char *format;    /* "CSV" (any delimiter), "JSON Lines" or "Arrow" */
    const char *time_unit; /* as read: "unix seconds", "ISO 8601", ..., of Arrow also "timestamp", "date"; a constant */
    char timezone[64];     /* of local_rows: "UTC", "Europe/Berlin" */
    int64_t inactive_rows, inactive_sequences;     /* dropped by min_sequence_events */
    int64_t unpopular_rows, unpopular_event_types; /* dropped by min_users */

    /* An import that fails because the columns or the order of dates are not certain sets these, `columns` and `ignored`. */
    bool question;
    const char *encoding;  /* of the text: a constant, as in the options; NULL for Arrow */
    int64_t skipped_lines; /* before the header */
    int64_t summary_rows;  /* the last rows, if they have neither a time nor a name, as totals do: left out */
    char paste[512]; /* the options that would do, quoted for a shell: "--sequence 'Ticket ID' --time at --event status"; "": the
                      * guess is not complete */
    char paste_other[512]; /* the same for the other answer, where one thing is in doubt that has two; "": none */
} lapse_import_report;

void lapse_import_options_default(lapse_import_options *options);

/* Reads events into a dataset in memory: sorted stably by sequence (in order of first appearance) and time; then filtered
 * by min_sequence_events and min_users, split into sessions, deduplicated, and filtered by min_count and min_events.
 * report may be NULL. */
lapse_status lapse_dataset_read(const lapse_import_options *options, lapse_dataset **dataset,
                                lapse_import_report *report, lapse_error *error);

/* Reads a table from an Arrow C stream with the result that lapse_dataset_read has for the same rows. options->input,
 * delimiter and header are ignored; docs/dataset.md has the types of columns. In errors, line is the number of the row.
 * report may be NULL. Releases the stream, on failure too, unless an argument is refused as NULL. The arrays are kept
 * until the call returns, and their memory must not change. */
struct ArrowArrayStream;
lapse_status lapse_dataset_from_arrow(struct ArrowArrayStream *stream, const lapse_import_options *options,
                                      lapse_dataset **dataset, lapse_import_report *report, lapse_error *error);

/* A dataset file: written atomically; mapped into memory, and all of it validated. */
lapse_status lapse_dataset_save(const lapse_dataset *dataset, const char *path, lapse_error *error);
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

/* A hash of all events and of the names of event types, fields and categories, whatever they were read from. */
uint64_t lapse_dataset_fingerprint(const lapse_dataset *dataset);

/* The fields of every event, for index 0, 1, ... until it returns false: action, categories, numbers. */
bool lapse_dataset_field(const lapse_dataset *dataset, int index, lapse_field *field);
const char *lapse_dataset_category_name(const lapse_dataset *dataset, int field, int64_t category);

/* A field of the events of one sequence, inside the dataset: *categories of an action or category, *numbers of a number
 * (NaN where missing). The other one is NULL. */
void lapse_dataset_field_values(const lapse_dataset *dataset, int field, int64_t sequence, const int32_t **categories,
                                const double **numbers);

/* The properties of the dataset, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_dataset_property(const lapse_dataset *dataset, int index, const char **name, const char **value);

/* ---------------------------------------------------------------------------------------------- training ----- */

typedef struct lapse_model lapse_model;

/* Training options are set by name, as on the command line; lapse_train_option (lapse_lab.h) lists them. */
typedef struct lapse_train_options lapse_train_options;

/* Allocates options with their defaults. */
lapse_status lapse_train_options_new(lapse_train_options **options, lapse_error *error);
void lapse_train_options_free(lapse_train_options *options);

/* Sets an option from text. An unknown name, or a value outside the option's range, is LAPSE_ERROR_USAGE. */
lapse_status lapse_train_options_set(lapse_train_options *options, const char *name, const char *value,
                                     lapse_error *error);

/* Formats an option's value into out and returns out; "" if it is chosen later, NULL for an unknown name. */
const char *lapse_train_options_get(const lapse_train_options *options, const char *name, char *out, size_t out_size);

/* Sets every option that has not been set to its value in the run that trained this model, its model type included, but
 * not those of the machine (threads, device, files of checkpoints). The dataset must have the model's fields. */
lapse_status lapse_train_options_like(lapse_train_options *options, const lapse_model *model,
                                      const lapse_dataset *dataset, lapse_error *error);

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
    double score; /* of the option "select"; over two targets the sum of their log-losses, or their mean accuracy */
    int metric_count;
    lapse_metric metrics[LAPSE_METRIC_LIMIT]; /* all metrics of the task, target by target */
} lapse_epoch;

typedef struct lapse_progress {
    bool times; /* the network of times of a model with --when is trained, whose epochs follow those of the events' network */
    int epoch, epochs;        /* current (from 1), and the maximum */
    int64_t step, steps;      /* within the epoch, from 1 */
    bool epoch_end;           /* the last call of the epoch: score is new */
    double loss;              /* mean over the epoch so far, in nats per event; NaN until a device reports one */
    double score, best_score; /* validation metric that selects the best epoch: newest and best; NaN before the first */
    const char *score_name;   /* its name: a choice of the option "select"; "time-loss" of the network of times */
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

/* A training run: resolved options, split and buffers. */
typedef struct lapse_trainer lapse_trainer;

/* Prepares a run: chooses unset options from the data, validates all options, makes the split and allocates all
 * buffers. The options are copied. */
lapse_status lapse_trainer_new(const lapse_dataset *dataset, const lapse_train_options *options,
                               lapse_trainer **trainer, lapse_error *error);
void lapse_trainer_free(lapse_trainer *trainer);

/* The resolved options of the run, valid as long as the trainer. */
const lapse_train_options *lapse_trainer_options(const lapse_trainer *trainer);

/* Trains on the training split and returns the model with the best parameters on the validation split (early stopping).
 * on_progress and context may be NULL. May be called once per trainer. */
lapse_status lapse_trainer_run(lapse_trainer *trainer, lapse_on_progress on_progress, void *context,
                               lapse_model **model, lapse_error *error);

/* Deletes the checkpoint file that this trainer wrote, or resumed from, last, and the symbolic link if its path is one;
 * not the file of another run. For a caller who has saved the model. */
lapse_status lapse_trainer_delete_checkpoint(lapse_trainer *trainer, lapse_error *error);

/* lapse_trainer_new, run and free in one call. The checkpoint is not deleted. */
lapse_status lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error);

/* ------------------------------------------------------------------------------------------------ models ----- */

/* A model file has the whole configuration; equal runs write equal files (docs/model.md). */
lapse_status lapse_model_save(const lapse_model *model, const char *path, lapse_error *error);
lapse_status lapse_model_load(const char *path, lapse_model **model, lapse_error *error);
void lapse_model_free(lapse_model *model);

int64_t lapse_model_event_type_count(const lapse_model *model);
const char *lapse_model_event_type_name(const lapse_model *model, int64_t type);
int64_t lapse_model_event_type_find(const lapse_model *model, const char *name); /* or -1 */

/* The input fields of the model, for index 0, 1, ... until it returns false; and their categories. */
bool lapse_model_field(const lapse_model *model, int index, lapse_field *field);
const char *lapse_model_category_name(const lapse_model *model, int field, int64_t category);
int64_t lapse_model_category_find(const lapse_model *model, int field, const char *name); /* or -1 */

/* The targets of the model, for index 0, 1, ... until it returns NULL: "event" (its classes are the event types),
 * "action" (its classes are the actions), or both; and the classes of a target. */
const char *lapse_model_target(const lapse_model *model, int index);
int64_t lapse_model_target_size(const lapse_model *model, const char *target); /* classes; 0: no target of the model */
const char *lapse_model_target_name(const lapse_model *model, const char *target, int64_t index);

/* Whether a model predicts the time of the next event: it was trained with the option "when", or it is the model rmtpp. */
bool lapse_model_predicts_time(const lapse_model *model);

/* The properties of the model, as name and text, for index 0, 1, ... until it returns false. */
bool lapse_model_property(const lapse_model *model, int index, const char **name, const char **value);

/* The history of the training run, for index 0 (epoch 1), 1, ... until it returns false. Baselines have none. The epoch
 * of the model's parameters is its property "score.epoch". */
bool lapse_model_history(const lapse_model *model, int index, lapse_epoch *epoch);
bool lapse_model_times_history(const lapse_model *model, int index, lapse_epoch *epoch); /* of its network of times (--when) */

/* ------------------------------------------------------------------------------------------------ scores ----- */

/* Scores of classifiers and baselines. Those of rankings and of predicted times are in lapse_lab.h. */
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
    const char *target_time;                      /* "known", "unknown", or "not used": the model does not read it */
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
                         * action) or "all"; or both, "event,action=view". What is left out, or NULL: as in training */
    int threads;        /* 0: all cores; at most 4096; never changes the result */
    int bootstrap;      /* resamples for the intervals; 0: none */
    const char *device; /* "cpu", "cuda" or "auto", as in training; NULL: "cpu". Baselines always use the CPU */
    lapse_comm *comm;   /* the ranks that share the work and then have the same scores; NULL: this process alone */
} lapse_evaluate_options;

void lapse_evaluate_options_default(lapse_evaluate_options *options);

/* Evaluates a classifier or a baseline on every target event of the split except each sequence's first. The dataset must
 * have the model's fields, and no event types or categories unknown to the model. Recommenders: lapse_rank_evaluate. */
lapse_status lapse_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                            const lapse_evaluate_options *options, lapse_scores *scores, lapse_error *error);
void lapse_scores_clear(lapse_scores *scores);

/* ---------------------------------------------------------------------------------------------- sessions ----- */

/* A session is one growing history: append events, then predict at any time. The model's keys and values of past events
 * are cached (KV cache), so a further query computes one row, whatever the length of the history. What does not depend
 * on the history is built once per model, by the first query, and shared; a session owns its events and cached rows. Any
 * number of threads may use different sessions of one model; a call about several sessions uses all of them. */
typedef struct lapse_session lapse_session;

lapse_status lapse_session_new(const lapse_model *model, lapse_session **session, lapse_error *error);
void lapse_session_free(lapse_session *session);

/* Removes all events. */
void lapse_session_clear(lapse_session *session);

/* Appends an event without fields. Times must not decrease. An unknown name is LAPSE_ERROR_UNKNOWN and appends
 * nothing. A model with the gap input reads the time since the event appended before it, so a history should begin where
 * its sequence begins, or at least one event before the last `context` events. */
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

/* Makes events[0 .. count-1], in the order of time, the whole history. The session keeps what it has computed of the
 * longest common prefix; *reused, which may be NULL, is the number of its events. So appending an event, adding one that
 * arrived late, and calling again with the same events are one call. On failure the session is unchanged. */
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
    double score; /* recommender: the score, over several frequency samples their mean. Classifier: the logit; over
                         * several samples, the log of the mean probability. Baseline: the log of the probability */
    double probability; /* as lapse_session_predict */
} lapse_recommendation;

/* Fills best[0 .. *count-1] with the `top` event types of the highest scores at this time, highest first. *count is
 * less than `top` if there are fewer. unseen: without the event types of the history; probabilities still refer to all
 * event types. */
lapse_status lapse_session_recommend(lapse_session *session, double time, int64_t top, bool unseen,
                                     lapse_recommendation *best, int64_t *count, lapse_error *error);

/* A query about one of several sessions of one model. */
typedef struct lapse_session_query {
    lapse_session *session;
    double time;
} lapse_session_query;

/* lapse_session_predict_target for many sessions at once: probabilities[q * lapse_model_target_size ..] is the answer to
 * queries[q]. One run of the network computes the rows of many histories, and each row has the bits that it has alone. A
 * session may occur several times. target: NULL is the first that the model predicts. All queries are checked before the
 * first is answered; the message has the index of the one that is wrong. */
lapse_status lapse_session_predict_many(const lapse_session_query *queries, int64_t count, const char *target,
                                        double *probabilities, lapse_error *error);

/* Which event types may be recommended, selected before the best are chosen. What is NULL does not restrict. A bit set
 * has (event types + 63) / 64 elements: event type i is bit i % 64 of element i / 64. */
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
    lapse_recommendation *best;      /* [top]: best[0 .. count-1] is filled, as by lapse_session_recommend. A score
                                      * includes its offset; the probability is the model's, without offsets */
    int64_t count;                   /* filled */
} lapse_recommend_query;

/* lapse_session_recommend for many sessions at once, as lapse_session_predict_many. Filters are of the target "event". */
lapse_status lapse_session_recommend_many(lapse_recommend_query *queries, int64_t count, const char *target,
                                          lapse_error *error);

/* *bytes: the memory of a session with a history of this many events that has been queried. One that grows event by
 * event may have an eighth more. What queries need besides is shared by all sessions (lapse_session). */
lapse_status lapse_session_bytes(const lapse_model *model, int64_t events, int64_t *bytes, lapse_error *error);

/* Writes a session to buffer[0 .. *needed-1]; if size < *needed it only sets *needed, and buffer may be NULL. rows: with
 * what has been computed of the events, so that the restored session continues from there, with the same bits. The
 * bytes are of this machine's byte order and of this version of the library. */
lapse_status lapse_session_save(const lapse_session *session, bool rows, void *buffer, int64_t size, int64_t *needed,
                                lapse_error *error);

/* Makes a session of the same model the saved one. On failure it is unchanged: a buffer of another model, or one that is
 * damaged, is LAPSE_ERROR_FORMAT. */
lapse_status lapse_session_restore(lapse_session *session, const void *buffer, int64_t size, lapse_error *error);

/* ------------------------------------------------------------------------------------------ state vectors ---- */

/* The numbers of a state and of an item vector of a network that recommends by their products; 0 for other models, and for
 * transrec, whose scores are distances. */
int lapse_model_state_dims(const lapse_model *model);

/* The vectors of all items, [event types x lapse_model_state_dims], in the order of their ids, and what is added to the
 * score of each: score = state . vector + bias, up to rounding. NULL: the model has none. Valid as long as the model. */
const float *lapse_model_item_vectors(const lapse_model *model);
const float *lapse_model_item_biases(const lapse_model *model);

/* Fills state[0 .. lapse_model_state_dims-1]: the vector of a history at this time whose products with item vectors rank
 * the items; over several frequency samples, the mean. A model without states is LAPSE_ERROR_USAGE. */
lapse_status lapse_session_state(lapse_session *session, double time, float *state, lapse_error *error);

/* The same for many sessions at once: states[q * lapse_model_state_dims ..] is that of queries[q]. */
lapse_status lapse_session_state_many(const lapse_session_query *queries, int64_t count, float *states,
                                      lapse_error *error);

/* ------------------------------------------------------------------------------ time of the next event ----- */

/* A question about the time of the next event, given that nothing has happened from the last event up to `now`. Times
 * are unix seconds. Arrays belong to the caller; what is not wanted is NULL or 0. */
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
    double *alive;      /* filled: probability that it comes within as long a time as the training data covers */
    double *mean;       /* filled: the mean of its time, given that it does */
} lapse_when;

void lapse_when_default(lapse_when *when);

/* Answers a question about the next event of a history with at least one event, exactly however long nothing has
 * happened. A model that does not predict times (lapse_model_predicts_time) is LAPSE_ERROR_USAGE. */
lapse_status lapse_session_when(lapse_session *session, const lapse_when *when, lapse_error *error);

/* Fills probabilities[0 .. event types - 1]: the probability that the next event comes by `until` and is of this type,
 * given that nothing has happened up to now (NaN: the last event). They sum to the cdf at `until`. */
lapse_status lapse_session_within(lapse_session *session, double now, double until, double *probabilities,
                                  lapse_error *error);

/* Draws the next event, given that nothing has happened up to now (NaN: the last event): its time, then its type at that
 * time. A function of history, now, seed and the number of the draw. *time is infinite and *event is -1 where it never
 * comes. */
lapse_status lapse_session_sample(lapse_session *session, double now, uint64_t seed, uint64_t draw, double *time,
                                  int64_t *event, lapse_error *error);

/* How far a forecast, or lapse_when_all, is. */
typedef struct lapse_forecast_progress {
    int64_t sequences, sequence_count; /* finished, and all */
    double events, events_expected;    /* of a forecast: drawn so far; estimated for all of it */
    double seconds, seconds_left;      /* since the start; estimated until the end */
} lapse_forecast_progress;

/* Returns false to stop. Called about ten times a second, by one thread at a time, which need not be the caller's; of a forecast also
 * as soon as something is drawn. */
typedef bool (*lapse_on_forecast)(const lapse_forecast_progress *progress, void *context);

/* The same for every sequence of a dataset. */
typedef struct lapse_when_options {
    double now; /* unix seconds, as in lapse_when; NaN, or for a sequence that ends later: its last event */
    const double *probabilities; /* [probability_count]: of quantiles */
    int64_t probability_count;
    const double *horizons; /* [horizon_count]: seconds after now, not negative */
    int64_t horizon_count;
    bool skip_unknown; /* as in lapse_predict_options */
    int threads;       /* 0: all cores; at most 4096; never changes the result */
    int64_t type_sequences;        /* type_within is computed for so many sequences, the first ones; 0: all */
    double *alive, *mean;          /* [sequences], filled as in lapse_when, NaN as below; NULL: not wanted */
    lapse_on_forecast on_progress; /* NULL: none. A stop is an error */
    void *context;                 /* of on_progress */
} lapse_when_options;

void lapse_when_options_default(lapse_when_options *options);

/* Fills, for each sequence s: start[s], the time that the answers count from; quantiles[s * probability_count ..], as
 * lapse_when.quantiles; within[s * horizon_count ..], the probability that the next event comes within each horizon;
 * type_within[(s * horizon_count + h) * event types ..], as lapse_session_within. NaN: the model knows no event of the
 * sequence. quantiles, within and type_within may be NULL: not wanted. */
lapse_status lapse_when_all(const lapse_model *model, const lapse_dataset *histories, const lapse_when_options *options,
                            double *start, double *quantiles, double *within, double *type_within, lapse_error *error);

/* Futures of the sequences of a dataset, drawn event by event: a time, then a type at this time, appended, and again. */
typedef struct lapse_forecast_options {
    double horizon;  /* seconds after now, above 0 */
    double now;      /* as in lapse_when_options */
    int64_t samples; /* futures of each sequence */
    uint64_t seed;
    bool skip_unknown; /* as in lapse_predict_options */
    int threads;       /* 0: all cores; at most 4096; never changes the result */
    /* Events of all futures, at most; 0: no limit. An estimate above it is an error; a forecast that reaches it is partial. */
    int64_t max_events;
    int steps; /* equal parts of the horizon whose events are counted; 0: none */
    lapse_on_forecast on_progress; /* NULL: none */
    void *context;                 /* of on_progress */
} lapse_forecast_options;

typedef struct lapse_forecasts {
    int64_t sequence_count, type_count;
    double now, horizon;   /* of the options */
    bool partial;          /* stopped by on_progress or max_events: some sequences have fewer futures than requested */
    int64_t cut;           /* futures that were cut at 100,000 events: their counts are lower bounds */
    int64_t *samples;      /* [sequences]: futures drawn; 0: the model knows no event of the sequence; -1: stopped before it */
    double *count;         /* [sequences]: expected number of events */
    double *low, *high;    /* [sequences]: 10 % and 90 % quantile of the number of events */
    double *any;           /* [sequences]: probability of at least one event */
    double *type_expected; /* [sequences x types]: expected number of events of each type */
    double *type_any;      /* [sequences x types]: probability of at least one of them */
    double *step_expected; /* [sequences x steps]: expected number of events in each part; NULL without steps */
} lapse_forecasts;

void lapse_forecast_options_default(lapse_forecast_options *options);

/* Fills an uninitialized *forecasts. The model predicts times and event types; a drawn event has the fields of the last event of
 * its type before it, or of the last one. Any number of threads gives the same bits, unless the forecast is partial. */
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
    float *states; /* [query_count x lapse_model_state_dims]: filled with the state of each query that has an answer, as
                    * lapse_session_state; NULL: not wanted */
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
