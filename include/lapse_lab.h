/* lapse_lab.h: what a study or a tool needs beyond lapse.h: tables of options, checks of data, item vectors, scores of rankings and of
 * times, comparisons with baselines and over models and seeds, the search of options, attention weights, the spectrum and kernel of a
 * model, sampling bounds, the report page, simulated events with a known law, and benchmarks. The contracts at the top of lapse.h hold
 * for every call. */
#ifndef LAPSE_LAB_H
#define LAPSE_LAB_H

#include "lapse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------- tools ----- */

/* The number of bytes of the UTF-8 character at text, which is NUL-terminated; 0 where it is not well-formed. */
int lapse_utf8_size(const char *text);

/* The values of some options, NULL-terminated. Those of training options are in lapse_option.choices. */
const char *const *lapse_task_names(void);
const char *const *lapse_split_by_names(void);
const char *const *lapse_deduplicate_names(void);
const char *const *lapse_min_rounds_names(void);
const char *const *lapse_device_names(void);
const char *const *lapse_precision_names(void);

/* What the first use of a GPU found: the GPU and what of it is used, or why none can be; "" before. */
const char *lapse_device_found(void);

/* Writes a file as the library writes its own: to a temporary file, synced, then renamed to path. "-" is standard
 * output; an existing device or pipe is written directly. */
lapse_status lapse_file_write(const char *path, const void *data, size_t size, lapse_error *error);

/* Bounds the memory of what the process reads and writes until lapse_memory_bound_end, such as an import and the dataset's file: its
 * large blocks are in an unlinked file in `folder`, and leave the memory when it comes near the bound of `memory` bytes, at least 64 MB.
 * Results do not change. Names of sequences and event types count, but stay in memory. A second call waits for the end of the first. */
lapse_status lapse_memory_bound_begin(const char *folder, int64_t memory, lapse_error *error);
void lapse_memory_bound_end(void);

/* The usual names by which a column of this role is found, for index 0, 1, ... until it returns NULL. Case, blanks and
 * separators do not matter: "userId" is "user_id". */
const char *lapse_column_name(lapse_column_role role, int index);

/* How sentences of the library (errors, findings of lapse_check) write options: --event item, as on a command line, or
 * event="item", as in Python. One setting for the whole process; command by default. */
typedef enum lapse_wording { LAPSE_WORDING_COMMAND = 0, LAPSE_WORDING_PYTHON = 1 } lapse_wording;

void lapse_wording_set(lapse_wording wording);

/* The names of all sequences, or event types, at once: name i is the text at bytes + offsets[i], inside the dataset; the
 * texts are consecutive, in order, and each ends with a NUL. */
void lapse_dataset_sequence_names(const lapse_dataset *dataset, const char **bytes, const uint64_t **offsets);
void lapse_dataset_event_type_names(const lapse_dataset *dataset, const char **bytes, const uint64_t **offsets);

/* As lapse_predict_all, but query q is about the first events[q] events of its sequence. events NULL: about all of them. Queries of one
 * sequence should be consecutive, with more and more events; otherwise its events are computed again. */
lapse_status lapse_predict_prefixes(const lapse_model *model, const lapse_dataset *histories,
                                    const lapse_query *queries, const int64_t *events, int64_t query_count,
                                    const lapse_predict_options *options, lapse_recommendation *best, int64_t *counts,
                                    lapse_error *error);

/* ------------------------------------------------------------------------------------------- training options --- */

/* The table of training options: what a program needs that offers all of them. */
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

/* Whether the option has an effect, given the others: "heads" has none on a Markov chain. */
bool lapse_train_options_apply(const lapse_train_options *options, const char *name);

/* Why the rule of a resolved option chose its value: of "censoring"; of "size": what the next one costs. "": there is nothing to say.
 * Valid as long as the options. */
const char *lapse_train_options_reason(const lapse_train_options *options, const char *name);

/* ------------------------------------------------------------------------------------------------- ranks ----- */

/* Several processes (ranks) can train one model, or evaluate one. Each computes a part of the work, and the results are the bytes that one
 * process computes. A communicator is a table of functions: that of MPI, which lapse_comm_open loads, or a program's own, such as one over
 * sockets or between threads. All ranks make the same calls of the library with this communicator, in the same order. */
typedef struct lapse_message {
    void *data;
    size_t size; /* bytes; 0: no message */
} lapse_message;

/* A collective: a message to some ranks and one from some. Send, receive, broadcast, all-to-all and barrier are cases of it. */
typedef struct lapse_exchange {
    uint32_t tag;                 /* numbers the collectives of a communicator: the same on all ranks */
    const lapse_message *send;    /* [size], by receiving rank; none to itself */
    const lapse_message *receive; /* [size], by sending rank; both ranks give the same size */
    double seconds;               /* deadline */
    const volatile int *hurry;    /* once it is not 0, the deadline is 0.3 s away */
    bool *missing;                /* [size]: after the deadline, true for ranks whose message is missing */
    char *why;                    /* after another failure: a sentence */
    size_t why_size;
} lapse_exchange;

typedef enum lapse_exchange_status {
    LAPSE_EXCHANGE_DONE = 0,
    LAPSE_EXCHANGE_LATE = 1,  /* the deadline has passed */
    LAPSE_EXCHANGE_TOLD = 2,  /* another rank has called `fail`; `why` has its sentence */
    LAPSE_EXCHANGE_FAILED = 3 /* the engine failed, as `why` says */
} lapse_exchange_status;

typedef struct lapse_comm_functions {
    void *context; /* first argument of every function */
    int rank, size;
    int local_rank, local_size; /* among the ranks of this machine */
    lapse_exchange_status (*exchange)(void *context, const lapse_exchange *exchange);
    void (*fail)(void *context, const char *sentence); /* tells all other ranks; NULL: cannot */
    void (*abort)(void *context);                      /* ends all ranks at once; NULL: cannot */
    void (*close)(void *context);                      /* by lapse_comm_free; NULL: nothing to do */
} lapse_comm_functions;

/* Copies the table. The deadline of a collective is 30 s, or LAPSE_COMM_TIMEOUT of the environment. */
lapse_status lapse_comm_new(const lapse_comm_functions *functions, lapse_comm **comm, lapse_error *error);
/* NULL is allowed. */
void lapse_comm_free(lapse_comm *comm);

/* Whether a launcher (mpirun, mpiexec, srun) started this process as one of several; fills its rank and their number. */
bool lapse_comm_launched(int *rank, int *size);

/* The communicator of all processes that the launcher started, by MPI: through the plugin liblapse_mpi.so, which is the file in
 * LAPSE_MPI_PLUGIN, or else the one beside the library. *comm is NULL for a process alone. */
lapse_status lapse_comm_open(lapse_comm **comm, lapse_error *error);

/* Returns when all ranks have called it. */
lapse_status lapse_comm_barrier(lapse_comm *comm, lapse_error *error);

int lapse_comm_rank(const lapse_comm *comm); /* NULL: 0 */
int lapse_comm_size(const lapse_comm *comm); /* NULL: 1 */
/* The cores that this process may use, but at most its share among the ranks of the machine. NULL: all of them. */
int lapse_comm_threads(const lapse_comm *comm);

/* How the first collective that failed did: LAPSE_EXCHANGE_DONE if none has. After a failure all calls fail. */
lapse_exchange_status lapse_comm_failure(const lapse_comm *comm);

/* Tells the other ranks that this one has failed: their calls fail with this sentence. */
void lapse_comm_fail(lapse_comm *comm, const char *sentence);
/* Ends the processes of all ranks, as far as the engine can. */
void lapse_comm_abort(lapse_comm *comm);
/* Shortens the wait for other ranks, because this process is about to be ended. May be called from a signal handler. */
void lapse_comm_hurry(lapse_comm *comm);

/* Loads a recommender with the rows of its item tables divided among the ranks of a communicator, which must outlive the model: each rank
 * has memory for its part. lapse_train returns such a model with the option "shard-items". All ranks then evaluate it and save it together.
 * comm NULL, or a model without item tables: as lapse_model_load. */
lapse_status lapse_model_load_divided(const char *path, lapse_comm *comm, lapse_model **model, lapse_error *error);
bool lapse_model_divided(const lapse_model *model);

/* Trains on the ranks of a communicator, which must outlive the training run. NULL: in this process alone. */
void lapse_train_options_set_comm(lapse_train_options *options, lapse_comm *comm);

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
    char advice[320];     /* one sentence: how to fix it; "" for LAPSE_SEVERITY_OK */
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

/* Some sequences as a dataset of its own, in this order, without properties and split column. Ids stay the same. */
lapse_status lapse_dataset_select(const lapse_dataset *dataset, const int64_t *sequences, int64_t count,
                                  lapse_dataset **selected, lapse_error *error);

/* ------------------------------------------------------------------------------------------- scores of times ---- */

/* Coverage of the central intervals of 50 %, 80 % and 95 %. */
#define LAPSE_COVERAGE_COUNT 3

/* Scores of predicted times of the next event, in units of lapse_time_scores.unit. docs/evaluation.md defines them. */
typedef struct lapse_time_score {
    const char *name;              /* of the model, or of a baseline: "exponential", "log-normal", "log-normal-type",
                                            * "gap-histogram"; or "law" */
    double nll, nll_low, nll_high; /* negative log-likelihood in nats per event, and its 95 % interval */
    double mae;                    /* mean absolute error of the median */
    double rmse;                   /* root of the mean square error of the mean */
    double crps;                   /* mean continuous ranked probability score */
    double coverage[LAPSE_COVERAGE_COUNT]; /* fraction of events in the central intervals */
    double pit_distance; /* largest distance of the distribution of the probability integral transform from uniform */
} lapse_time_score;

#define LAPSE_TIME_SCORE_LIMIT 5

typedef struct lapse_time_scores {
    const char *split; /* as in lapse_scores */
    int64_t cases, sequences;
    double unit;           /* seconds: the longest of second, minute, hour, day up to the geometric mean of the gaps */
    const char *unit_name; /* "second", "minute", "hour" or "day" */
    double floor;          /* seconds: a shorter gap, or none, counts as this */
    int count;
    lapse_time_score scores[LAPSE_TIME_SCORE_LIMIT]; /* the model; then, unless the split is "all", baselines that are
                                                      * fitted to the training split */
} lapse_time_scores;

/* Evaluates the predicted times of a model that has them on every event of the split except each sequence's first. */
lapse_status lapse_time_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                 const lapse_evaluate_options *options, lapse_time_scores *scores, lapse_error *error);

/* ------------------------------------------------------------------------------------------- scores of returns ---- */

#define LAPSE_RETURN_HORIZONS 8
#define LAPSE_RETURN_GROUPS 5
#define LAPSE_RETURN_STEPS 10

/* Scores of the chances that histories go on within a horizon. */
typedef struct lapse_return_score {
    const char *name;                    /* of the model, or "constant", "logistic", "bg/nbd" */
    double brier, brier_low, brier_high; /* mean square of chance - outcome, and its 95 % interval over histories */
    double log_loss;                     /* nats */
    double mean;                         /* of the chances */
} lapse_return_score;

/* Histories of similar chances. */
typedef struct lapse_return_group {
    int64_t cases;
    double predicted, observed; /* mean chance, and the fraction that came back */
} lapse_return_group;

typedef struct lapse_return_horizon {
    double seconds;
    int64_t returned;                               /* histories with an event within it */
    lapse_return_score scores[4];                   /* the model, then baselines */
    lapse_return_group groups[LAPSE_RETURN_GROUPS]; /* of equal size, by the model's chance */
} lapse_return_horizon;

/* Numbers of events of all histories up to a time after the origin. */
typedef struct lapse_return_step {
    double seconds, observed;
    double expected; /* by the model's forecast */
    double bg_nbd;
} lapse_return_step;

typedef struct lapse_return_scores {
    const char *split;
    double now; /* the origin: histories are known up to it, and what comes after it is held out */
    int64_t cases;
    int horizon_count, step_count; /* step_count: 0 if the model does not forecast */
    lapse_return_horizon horizons[LAPSE_RETURN_HORIZONS];
    lapse_return_step steps[LAPSE_RETURN_STEPS]; /* up to the longest horizon */
} lapse_return_scores;

typedef struct lapse_return_options {
    const char *split;
    double now; /* NaN: where the split divides sequences at a time, that time; otherwise the longest horizon before the
                 * end of the data */
    const double *horizons; /* [horizon_count]: seconds after now, above 0 */
    int horizon_count;      /* at most LAPSE_RETURN_HORIZONS */
    int64_t samples;        /* futures of each history, for the expected numbers of events; 0: without them */
    int bootstrap, threads; /* as in lapse_evaluate_options */
} lapse_return_options;

void lapse_return_options_default(lapse_return_options *options);

/* Scores chances of at least one event within each horizon, of the histories of a split as they were at the origin, and expected
 * numbers of events, beside baselines that know recency, frequency and age alone. These are fitted to the training sequences at the
 * same origin or, where the split divides sequences at a time or is "all", to the same sequences one horizon earlier. */
lapse_status lapse_return_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                                   const lapse_return_options *options, lapse_return_scores *scores,
                                   lapse_error *error);

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
    const char *target_time; /* "known", "unknown", or "not used": the model does not read it */
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
    lapse_comm *comm;       /* as in lapse_evaluate_options */
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

/* ---------------------------------------------------------------------------------------- inside a model ----- */

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

/* ----------------------------------------------------------------------------------------------- sweeps ----- */

/* A sweep trains models over encodings, a grid of option values and seeds, and compares them in one table: `lapse compare`.
 *
 * A cell is a set of training options, and a run is a cell with a seed. A row of the table is a cell, or where it has a grid, the
 * one of its cells with the best validation score. docs/compare.md has the definitions. */
typedef struct lapse_sweep_plan lapse_sweep_plan;
typedef struct lapse_sweep lapse_sweep;

/* The ranking protocols, NULL-terminated, in the order of lapse_rank_scores. */
const char *const *lapse_rank_protocol_names(void);

lapse_status lapse_sweep_plan_new(lapse_sweep_plan **plan, lapse_error *error);
void lapse_sweep_plan_free(lapse_sweep_plan *plan);

/* Sets a part of the plan from text, if it is not set yet: "models" and "encodings" (names separated by commas), "seeds" ("10": 1
 * to 10; "3..7"; "1,5,9"), "grid" ("OPTION=VALUE,VALUE", once for each option), "title", a setting of lapse_sweep_option, or any
 * training option, for the rows whose model has it. */
lapse_status lapse_sweep_plan_set(lapse_sweep_plan *plan, const char *name, const char *value, lapse_error *error);

/* Sets from JSON what is not set yet. */
lapse_status lapse_sweep_plan_parse(lapse_sweep_plan *plan, const char *text, size_t size, lapse_error *error);
lapse_status lapse_sweep_plan_load(lapse_sweep_plan *plan, const char *path, lapse_error *error);

/* The settings of a plan, for index 0, 1, ... until it returns false. */
bool lapse_sweep_option(int index, lapse_option *option);

/* Formats a setting or a training option into out and returns out; "" if it is chosen later, NULL for an unknown name. */
const char *lapse_sweep_plan_get(const lapse_sweep_plan *plan, const char *name, char *out, size_t out_size);

/* The training options of all rows, inside the plan; and the title, NULL: none. */
lapse_train_options *lapse_sweep_plan_train_options(lapse_sweep_plan *plan);
const char *lapse_sweep_plan_title(const lapse_sweep_plan *plan);

/* Lists the cells, checks the options of each against the dataset, and reads the runs that the setting "keep" holds already. The
 * folder is created if it is missing; without one, runs are kept in memory only. The plan may be freed. */
lapse_status lapse_sweep_new(const lapse_dataset *dataset, const lapse_sweep_plan *plan, lapse_sweep **sweep,
                             lapse_error *error);
void lapse_sweep_free(lapse_sweep *sweep);

typedef struct lapse_sweep_progress {
    int total;           /* runs of the sweep as known now: a grid with "grid-seeds" adds runs later */
    int done;            /* finished, including those that were kept from before */
    int running, left;   /* in all processes; not begun */
    double seconds;      /* since the start of the call */
    double seconds_left; /* estimate; NaN: no run has ended yet */
    const char *newest;  /* the run that ended last, such as "attention, mercer, seed 3"; NULL: none in this call */
    double score;        /* its validation score */
} lapse_sweep_progress;

/* Called several times per second on the thread of lapse_sweep_run. Return false to stop. */
typedef bool (*lapse_on_sweep_progress)(const lapse_sweep_progress *progress, void *context);

/* Trains all runs that are not finished. Each finished run is saved in the folder at once, so a sweep that was stopped or killed
 * continues. Several processes may run one sweep: they share the folder, and no run is trained twice. A run that diverges is a
 * result. Returns LAPSE_OK with runs missing if on_progress stops it. on_progress and context may be NULL. */
lapse_status lapse_sweep_run(lapse_sweep *sweep, lapse_on_sweep_progress on_progress, void *context,
                             lapse_error *error);

typedef struct lapse_sweep_info {
    const char *split;       /* of the scores */
    const char *target;      /* "event" or "action" */
    const char *protocol;    /* of a recommender; NULL for classifiers */
    const char *select;      /* the validation metric */
    double reach;            /* of the setting; NaN: none */
    int metric_count, shown; /* metrics of a cell; of these, columns of the table, the first ones */
    const char *metric_names[LAPSE_METRIC_LIMIT]; /* of the table */
    int metric;                                   /* the one of the paired test */
    int rows, cells, seeds;
    int runs, finished; /* that the table needs; of these, finished */
    int parallel;       /* runs at the same time in this process */
    const char *device; /* of networks: "cpu" or "cuda" */
} lapse_sweep_info;

lapse_sweep_info lapse_sweep_describe(const lapse_sweep *sweep);

/* Mean and standard deviation (n - 1) over runs; the deviation of one run is 0. */
typedef struct lapse_spread {
    double mean, std;
    int count;
} lapse_spread;

/* A cell with its scores over all seeds. Numbers of no run are NaN. */
typedef struct lapse_sweep_cell {
    const char *row;                          /* name of its row */
    int row_index;                            /* from 0 */
    const char *config;                       /* its values of the grid: "dropout 0.3, dims 64"; "" without a grid */
    bool chosen;                              /* it represents its row */
    bool best;                                /* among the rows */
    int runs, diverged;                       /* finished runs; of these, without scores */
    lapse_spread valid;                       /* validation score */
    lapse_spread metrics[LAPSE_METRIC_LIMIT]; /* on the table's split */
    int64_t cases;                            /* of the first seed */
    int64_t parameters;
    lapse_spread epochs;        /* until the end of training */
    lapse_spread epoch_seconds; /* an epoch with its validation */
    lapse_spread seconds;       /* of training */
    lapse_spread reach;    /* seconds until the validation score of the setting "reach"; count: runs that reached it */
    lapse_mean difference; /* of a row: its mean minus the best row's, with a 95 % interval; NaN: too few sequences */
    double p;              /* of a row: two-sided p-value of no difference; NaN for the best row */
} lapse_sweep_cell;

/* The rows of the table in the order of the plan; all cells, of which only the chosen ones have differences. Index 0, 1, ... until
 * it returns false. */
bool lapse_sweep_row(const lapse_sweep *sweep, int index, lapse_sweep_cell *row);
bool lapse_sweep_cell_at(const lapse_sweep *sweep, int index, lapse_sweep_cell *cell);

/* The paired test of two rows in one of the metrics: the first minus the other, and a two-sided p-value; NaN without enough sequences. */
lapse_status lapse_sweep_test(const lapse_sweep *sweep, int row, int other, int metric, lapse_mean *difference,
                              double *p, lapse_error *error);

/* The run of a row with a seed, given as index 0, 1, ... of the plan's seeds; false: there is no such run, or it is not finished. */
typedef struct lapse_sweep_result {
    uint64_t seed;
    bool diverged;                      /* there are no scores */
    double valid;                       /* validation score */
    double metrics[LAPSE_METRIC_LIMIT]; /* on the table's split */
    double seconds;                     /* of training */
    int epochs, best_epoch;
    const double *curve; /* 2 * epochs numbers: for each epoch, seconds since the start and the validation score */
} lapse_sweep_result;

bool lapse_sweep_result_at(const lapse_sweep *sweep, int row, int seed, lapse_sweep_result *result);

/* Draws the validation score of every run of the rows against the seconds of its training, as an SVG file; "-" is standard output.
 * The title may be NULL. */
lapse_status lapse_sweep_save_svg(const lapse_sweep *sweep, const char *title, const char *path, lapse_error *error);

/* ----------------------------------------------------------------------------------------------- tuning ----- */

/* Searches training options within a budget of time, on the validation split alone: `lapse tune`. The first trial has the options as
 * given and is trained to its end, so the result is never worse on the validation split. Later trials change a few options that were
 * not given, starting from the best trial so far; those that are worse than the median of the others at the same epoch are stopped
 * (docs/tune.md). */
typedef struct lapse_tune_options {
    double seconds; /* budget: running trials are stopped at its end, and their best epochs count */
    int trials;     /* maximum; 0: as many as the budget allows */
    int parallel;   /* trials at the same time in this process; 0: all cores on the CPU, 1 on a GPU */
    const char *
        folder; /* where several processes share the trials of one search, created if missing; NULL: this process alone */
} lapse_tune_options;

void lapse_tune_options_default(lapse_tune_options *options);

typedef struct lapse_tune_progress {
    int finished, stopped, running; /* trials: trained to their end; stopped early or diverged; now */
    double seconds, budget;
    const char *metric; /* the option "select" */
    double first;       /* validation score of the first trial; NaN: it has none yet */
    double best;        /* of the best trial; NaN likewise */
    int best_trial;     /* from 1; 0: none yet */
    const char *change; /* options that the best trial changed: "dropout 0.2, heads 4"; "": none */
} lapse_tune_progress;

/* Called several times per second on the thread of lapse_tune. Return false to end the search. */
typedef bool (*lapse_on_tune_progress)(const lapse_tune_progress *progress, void *context);

/* Returns the model of the best trial. Its properties "tune.trials", "tune.trial.1", ... tell what was tried. on_progress and
 * context may be NULL. */
lapse_status lapse_tune(const lapse_dataset *dataset, const lapse_train_options *options,
                        const lapse_tune_options *tune, lapse_on_tune_progress on_progress, void *context,
                        lapse_model **model, lapse_error *error);

/* ------------------------------------------------------------------------------------- spectrum and kernel ----- */

/* The learned time encoding of a model: its frequencies w and the amplitudes of their two features,
 *
 *     Phi(lag) = ( cosine[i] cos(w_i lag), for all i; then sine[i] sin(w_i lag), for all i )
 *
 * in the order of the model. docs/theory.md has the formulas. */
typedef struct lapse_spectrum {
    int count;         /* frequencies; Phi has 2 * count elements */
    double *frequency; /* radians per second; may be negative or 0 if it was sampled */
    double *period;    /* seconds: 2 pi / |frequency|; infinite where that is below 1e-15 */
    int *harmonic;     /* multiple of the fundamental frequency; 1: the fundamental */
    double *cosine;    /* amplitude of its cosine */
    double *sine;      /* amplitude of its sine */
    double *weight;    /* coefficient in the kernel: (cosine^2 + sine^2) / 2; cosine^2 at frequency 0 */
    int *order;        /* indices by descending weight; ties by descending period */
} lapse_spectrum;

/* Fills an uninitialized *spectrum. A model without lags (a baseline, or position encodings) has none:
 * LAPSE_ERROR_USAGE. */
lapse_status lapse_model_spectrum(const lapse_model *model, lapse_spectrum *spectrum, lapse_error *error);
void lapse_spectrum_clear(lapse_spectrum *spectrum);

/* K(lag) = sum of weight cos(frequency lag): the mean over all t of <Phi(t), Phi(t - lag)>. Where the amplitudes of
 * cosine and sine are equal, every t gives the mean. */
double lapse_spectrum_kernel(const lapse_spectrum *spectrum, double lag);

/* Fills features[0 .. 2 count - 1] with Phi(lag). */
void lapse_spectrum_features(const lapse_spectrum *spectrum, double lag, double *features);

/* A range of lags. */
typedef struct lapse_lags {
    const char *axis; /* spacing: "log" or "linear" */
    double from, to;  /* seconds, both included; 0: chosen from the periods (a linear axis begins at 0) */
    int points;       /* 2 to 100,000 */
} lapse_lags;

void lapse_lags_default(lapse_lags *lags);
const char *const *lapse_axis_names(void);

/* Chooses unset values from the spectrum, and validates all values. */
lapse_status lapse_lags_resolve(const lapse_spectrum *spectrum, lapse_lags *lags, lapse_error *error);

/* The lag of an index from 0 to points - 1, in seconds. The lags must be resolved. */
double lapse_lags_at(const lapse_lags *lags, int index);

/* Draws spectrum, kernel and Phi over resolved lags as an SVG file; "-" is standard output. The title may be NULL. */
lapse_status lapse_spectrum_save_svg(const lapse_spectrum *spectrum, const lapse_lags *lags, const char *title,
                                     const char *path, lapse_error *error);

/* The number of frequency samples whose mean cosine approximates a kernel within epsilon at every lag up to span, with
 * probability 1 - delta: Claim 1 of the paper, and the corrected result of its proof (docs/theory.md). */
typedef struct lapse_bound_options {
    double epsilon; /* maximum error of a kernel that is 1 at lag 0: 0.0001 to 2 */
    double span;    /* seconds: maximum lag */
    double sigma;   /* radians per second: root mean square of the frequencies */
    double delta;   /* probability of a larger error: above 0, below 1 */
    int repeats;    /* independent samples of a measurement */
    uint64_t seed;  /* of the samples */
    int threads;    /* 0: all cores; at most 4096; never changes the result */
} lapse_bound_options;

typedef struct lapse_bound_error {
    int64_t samples;     /* frequencies per repeat */
    int repeats, within; /* repeats, and those with an error below epsilon */
    double mean, worst;  /* maximum error over all lags: its mean and maximum over the repeats */
    int points;          /* grid of lags from 0 to span */
    double step;         /* seconds between grid points; above 0.1 / sigma the errors may be underestimated */
} lapse_bound_error;

void lapse_bound_options_default(lapse_bound_options *options);

/* The number of samples by the claim as printed, with times in units of `unit` seconds, on which its result depends; or
 * with unit 0, by the corrected proof, which does not depend on the unit. */
lapse_status lapse_bound_samples(const lapse_bound_options *options, double unit, int64_t *samples, lapse_error *error);

/* Measures the error of this number of samples on the kernel exp(-(sigma lag)^2 / 2), whose frequencies are normal with
 * standard deviation sigma. Takes about repeats * points * samples nanoseconds. */
lapse_status lapse_bound_measure(const lapse_bound_options *options, int64_t samples, lapse_bound_error *measured,
                                 lapse_error *error);

/* ------------------------------------------------------------------------------------------------- report ----- */

/* A report on a model: figures of its run, its time encoding, its attention and its errors (docs/inspect.md). */
typedef struct lapse_inspect_options {
    const char *title;  /* of the report; NULL: the name of the model type */
    const char *split;  /* whose target events are shown; NULL: "test", of other data than that of the training "all" */
    int64_t cases;      /* about so many target events; a sample of whole sequences if there are more */
    const char *action; /* attention to events with this action only; NULL: all */
    int block;          /* whose attention weights are shown, from 0; -1: the last */
    int case_studies;   /* number of case studies, 0 to 20, if sequences are not named */
    const char *const *sequences; /* sequence_count names of sequences for case studies; NULL: chosen */
    int sequence_count;
    const char *log;     /* log file of the training run (lapse train --log), for clock times; NULL: none */
    const char *figures; /* folder where each figure is written as SVG, created if it is missing; NULL: none */
    bool csv_safe;       /* text cells of CSV get an apostrophe where a spreadsheet would run them as formulas */
    int bootstrap;       /* resamples for the intervals of the scores; 0: none */
    int threads;         /* 0: all cores; never changes the result */
} lapse_inspect_options;

typedef struct lapse_inspection {
    int figures; /* drawn */
    int missing; /* not possible with this model and data; the report says why */
} lapse_inspection;

void lapse_inspect_options_default(lapse_inspect_options *options);

/* Writes the report as one HTML page that needs no other file; "-" is standard output, NULL: no page. Equal inputs give
 * equal bytes. dataset may be NULL: the report shows what the model alone can tell. A dataset whose columns do not suit the
 * model is explained in the report. inspection may be NULL. */
lapse_status lapse_inspect(const lapse_model *model, const lapse_dataset *dataset, const lapse_inspect_options *options,
                           const char *path, lapse_inspection *inspection, lapse_error *error);

/* -------------------------------------------------------------------------------------------- simulation ----- */

/* Events simulated from a known distribution (the law), so that the best possible scores are known. */
typedef struct lapse_simulation lapse_simulation;

typedef struct lapse_simulate_options {
    const char *preset; /* "shop", "cycle", "catalogue" or "sessions" */
    int64_t sequences;  /* 0: the preset's */
    int64_t items;      /* of the presets "catalogue" (100 to 20,000,000) and "sessions" (500 to 20,000,000); 0: the
                         * preset's. Fixed in other presets */
    double days;        /* length of each history; 0: the preset's */
    uint64_t seed;
} lapse_simulate_options;

void lapse_simulate_options_default(lapse_simulate_options *options);
lapse_status lapse_simulate(const lapse_simulate_options *options, lapse_simulation **simulation, lapse_error *error);
void lapse_simulation_free(lapse_simulation *simulation);
int64_t lapse_simulation_event_count(const lapse_simulation *simulation);

/* Writes the events as CSV; "-" is standard output. */
lapse_status lapse_simulation_save(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* Writes the items of the presets "catalogue" and "sessions" as CSV: item,name,brand,category, of "sessions" also
 * department. Fails for other presets. */
lapse_status lapse_simulation_save_catalogue(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* Writes the true probability of every event type at every event, as CSV. Fails for the preset "catalogue", and for more
 * than 10,000 event types. */
lapse_status lapse_simulation_save_law(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* The best possible scores: those of the true probabilities, on the events that lapse_evaluate scores for this model,
 * dataset (imported from the simulation, possibly in sessions or filtered) and split. The law knows the user's whole
 * history. */
lapse_status lapse_simulation_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                       const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                       lapse_scores *scores, lapse_error *error);

/* The same for the time of the next event: the scores of the law of time, given the user's whole history and the clock, on the
 * events that lapse_time_evaluate scores for this model, dataset and split, which leave out no event of the simulation. No model
 * has a lower expected NLL. *scores has one row, "law". Fails for the preset "catalogue". */
lapse_status lapse_simulation_time_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                            const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                            lapse_time_scores *scores, lapse_error *error);

/* Fills count[sequences]: the expected number of events of each sequence of a dataset within the horizon, from futures drawn from
 * the law given the user's whole history up to its last event. It is what lapse_forecasts.count estimates. Only for the preset
 * "shop". skip_unknown is ignored: every event is known. */
lapse_status lapse_simulation_forecast(const lapse_simulation *simulation, const lapse_dataset *histories,
                                       const lapse_forecast_options *options, double *count, lapse_error *error);

/* The same for ranking metrics: items ranked by their true probabilities, on the events that lapse_rank_evaluate ranks.
 * Runs on one thread. */
lapse_status lapse_simulation_rank(const lapse_simulation *simulation, const lapse_model *model,
                                   const lapse_dataset *dataset, const lapse_rank_options *options,
                                   lapse_rank_scores *scores, lapse_error *error);

/* ----------------------------------------------------------------------------------------------- benchmark ----- */

/* Training and evaluation speed on this machine, with events simulated in memory. */
typedef struct lapse_bench_options {
    const char *preset;    /* sizes of a known task: "ml-1m", "ml-1m-softmax", "so", "catalogue" */
    const char *what;      /* "train": training steps; "predict": evaluation of the validation split */
    int64_t items;         /* size of the catalogue; 0: the preset's */
    int batch;             /* windows per step; 0: the preset's */
    int shards;            /* parts of a batch; 0: as in training */
    int rounds;            /* timed steps, after a warm-up */
    int threads;           /* 0: all cores */
    const char *device;    /* as in training */
    const char *precision; /* as in training; NULL: chosen by the device */
    uint64_t seed;
    const lapse_train_options *training; /* options set here replace those of the preset, such as dims; NULL: none */
} lapse_bench_options;

/* One op of the network, or another part of a step; totals over a step. Seconds are summed over threads: a step on two
 * threads has twice its wall time. On a GPU a row is a kernel launch, which may compute several nodes of the graph; its
 * name is the op of the first node. Launches are timed one by one, but some run concurrently in a step. */
typedef struct lapse_bench_row {
    const char *name;
    const char *type; /* of a launch: "node", "fused" kernel, chain of "rows", "reduction" over rows, "pack" of weights,
                       * or the name of a sampled loss with its gradient, such as "bce"; otherwise NULL */
    int launch;       /* index in a step, from 1; 0: not a launch */
    int nodes;        /* that a launch computes, wholly or in part */
    int64_t calls;
    double seconds;     /* minimum over the rounds */
    double flop, bytes; /* operations, and the minimum of bytes moved; 0: not known */
    double roofline;    /* seconds at the roofline: the larger of flop / peak and bytes / bandwidth */
} lapse_bench_row;

typedef struct lapse_bench_report {
    const char *preset, *what;
    const char *device, *precision;
    const char *level; /* instruction-set level of the CPU kernels, such as "x86-64-v4" */
    int threads, rounds;
    int64_t items, parameters;
    double error;     /* the largest of a gradient, against the reference kernels in double: see lapse_bench */
    double peak;      /* flop/s of fused multiply-adds on these threads, or of a GPU in this precision */
    double bandwidth; /* bytes/s of copies within buffers of the size of a thread's work buffer */
    double step_best, step_median, step_p90; /* seconds */
    double step_minimum;                     /* sum of the rows: a step without interference */
    int64_t steps;                           /* per epoch; 1 for predict */
    double epoch;                            /* seconds: steps * median; on a GPU, of steps without a sync in between */
    double windows, events;                  /* per step, on average: windows and target events */
    double tokens;                           /* input events per step, on average */
    double flop;                             /* per step, on average */
    int row_count;                           /* 0 if the device has no profiler */
    lapse_bench_row *rows;                   /* by descending seconds; freed by lapse_bench_report_clear */
} lapse_bench_report;

const char *const *lapse_bench_preset_names(void);
const char *const *lapse_bench_what_names(void);
void lapse_bench_options_default(lapse_bench_options *options);

/* Runs a benchmark. First compares the gradients of one step on a small batch with the reference kernels in double. If
 * the root mean square error of a parameter's gradient exceeds 1e-4 (tf32: 5e-2, bf16: 2e-1) of the gradient's root mean
 * square, or of a tenth of the median parameter's, and eight times the change that rounding every result makes, the call
 * returns LAPSE_ERROR_INTERNAL without timing. */
lapse_status lapse_bench(const lapse_bench_options *options, lapse_bench_report *report, lapse_error *error);
void lapse_bench_report_clear(lapse_bench_report *report);

#ifdef __cplusplus
}
#endif

#endif
