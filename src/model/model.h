/* model.h: a model: the function it computes, its parameters, and the event types it knows.
 *
 * A model is one file, model_<name>.c, and one row of lp_models. Networks build a graph and are trained by gradients;
 * baselines are fitted by counting. Both hold what they learned in named tensors, which is all that the model file knows of
 * them (model_file.h). A row has its own table of options; nothing outside the model's file reads its settings.
 */
#ifndef LP_MODEL_H
#define LP_MODEL_H

#include "base/option.h"
#include "data/batch/negatives.h"
#include "data/dataset/names.h"
#include "data/dataset/split.h"
#include "formula/season.h"
#include "model/next_time.h"
#include "nn/encoding.h"

typedef struct lp_model_row lp_model_row;

/* What a model can predict: each target has a vocabulary and logits of its own. */
typedef enum lp_target { LP_TARGET_EVENT = 0, LP_TARGET_ACTION = 1, LP_TARGET_COUNT = 2 } lp_target;
typedef enum lp_predict { LP_PREDICT_EVENT = 0, LP_PREDICT_ACTION = 1, LP_PREDICT_BOTH = 2 } lp_predict;

/* "event", "action", "both", NULL: targets and predictions by number. */
extern const char *const lp_predict_names[];

/* classify: a probability for each of a few event types. recommend: a ranking of a catalogue of items. */
typedef enum lp_task { LP_TASK_CLASSIFY = 0, LP_TASK_RECOMMEND = 1 } lp_task;
extern const char *const lp_task_names[]; /* "classify", "recommend", NULL */

/* The item vectors that a recommender's scores are products with. */
typedef enum lp_output { LP_OUTPUT_SHARED, LP_OUTPUT_SEPARATE } lp_output;
extern const char *const lp_output_names[]; /* "shared", "separate", NULL */

/* A field of past events, as a model sees it. */
typedef struct lp_model_field {
    const char *name; /* of the column */
    lapse_field_type type;
    int dims;               /* of its embedding; 1 for a number */
    double mean, deviation; /* of a number, in the training split */
    lp_names categories;    /* of an action or category */
} lp_model_field;

/* How the gap of an event becomes an input: (log(gap + offset) - mean) / deviation, clipped like a number. */
typedef struct lp_gap_scale {
    double offset;          /* seconds, > 0, so that events at the same time have a logarithm */
    double mean, deviation; /* of log(gap + offset) in the training split */
} lp_gap_scale;

/* Bytes of a model's own settings. */
enum { LP_MODEL_SETTINGS_SIZE = 256 };
typedef union lp_model_settings {
    unsigned char bytes[LP_MODEL_SETTINGS_SIZE];
    double alignment;
} lp_model_settings;

/* The Poisson process beside the mixture of the time of the next event (formula/mixture.h): none, with a constant rate, or with a rate that
 * changes with the hour of the week. */
typedef enum lp_censoring { LP_CENSORING_OFF, LP_CENSORING_ON, LP_CENSORING_AUTO } lp_censoring;
typedef enum lp_background { LP_BACKGROUND_NONE, LP_BACKGROUND_CONSTANT, LP_BACKGROUND_WEEK } lp_background;

/* The settings that fix the function a model computes, its parameters apart. Members that are options have a row in
 * lp_model_options. */
typedef struct lp_model_config {
    const lp_model_row *row;
    int event_types; /* number of classes, or of items */
    int sequences;   /* of the training data, for models with sequence_input; otherwise 0 */
    int task;        /* lp_task */
    int target_time; /* 0: lags are taken to the time of the predicted event ("known"); 1: to the last event */
    int context;     /* events before the predicted one that the model sees */
    int predict;     /* lp_predict */
    char target
        [LP_TEXT_SIZE]; /* target events: "action=NAME"; "" or "all": every event (data/dataset/target_events.h) */
    int dims;           /* width of embeddings and hidden states */
    double dropout;
    int gap_input;       /* 1: the vector of an event includes its gap, the time since the event before it */
    lp_gap_scale gap;    /* of a network that reads gaps (lp_model_reads_gap) */
    bool when;           /* a network of its own learns the time of the next event: lapse_model.times */
    bool of_times;       /* that network: it predicts the time alone (lp_model_times_config); no option */
    int when_components; /* of its mixture (when_head.h) */
    int censoring; /* lp_censoring: gaps that are open at the end of the training data are right-censored; otherwise no targets */
    double when_floor; /* seconds: a gap below counts as this */
    double
        when_span; /* seconds from the first event of the training split to its last: no silence that it shows is longer */
    double when_mean, when_deviation; /* of the logarithm of the gap, in the training split */
    int when_background;              /* lp_background */
    lp_season season;                 /* of the background */
    int output;                       /* lp_output */
    int field_dims;              /* width of the embedding of a categorical field; 0: by the number of its categories */
    int loss;                    /* lp_loss */
    int negatives;               /* lp_negative_sampling */
    int negative_count;          /* per step (sampled-softmax), or per target (other sampled losses) */
    double popularity_power;     /* exponent of an item's count when negatives are sampled by popularity */
    bool negatives_unseen;       /* negatives exclude the items of the sequence */
    double score_regularization; /* of bpr-max */
    lp_model_settings settings;  /* the model's own: only its file reads them */
    int category_count; /* categorical fields of the dataset, the action included; set when options are resolved */
    int field_count;
    const lp_model_field *fields; /* the action first, then categories, then numbers; in the model's arena */
} lp_model_config;

/* Options that all models share, by member of lp_model_config. */
extern const lp_option lp_model_options[];

typedef enum lp_tensor_type { LP_TENSOR_F32, LP_TENSOR_I32, LP_TENSOR_U8, LP_TENSOR_U64, LP_TENSOR_F64 } lp_tensor_type;

/* Something learned: rows x cols elements. */
typedef struct lp_tensor {
    const char *name;
    lp_tensor_type type;
    int64_t rows, cols;
    void *data;
} lp_tensor;

/* What a decoding graph, which is fed with the newest events of one history, caches of the earlier ones. In the graph's
 * arena. */
typedef struct lp_decode_state {
    lp_kv_cache *caches; /* of each attention layer; layers may share matrices */
    int cache_count;
} lp_decode_state;

/* Outputs of a network: the logits of each target and four others. */
enum { LP_NETWORK_OUTPUTS = LP_TARGET_COUNT + 4 };

/* A graph for inference, or for training with loss and gradients. */
typedef struct lp_network {
    lp_graph graph;
    union {
        lp_value
            *outputs[LP_NETWORK_OUTPUTS]; /* of inference: the caller of a run reads them; NULL: the network has none */
        struct {
            lp_value *logits[LP_TARGET_COUNT]; /* classify: [labels x classes]; NULL for what is not predicted */
            lp_value *
                state; /* recommend: [labels x state dims]; an item's score is state . items + bias, or by a distance */
            lp_value *mixture; /* [targets x 3 components]: the next event's time (when_head.h); of networks of times */
            lp_value *intensity; /* point processes: [targets x 1], log-intensity right after the last event */
            lp_value *duration;  /* [targets x buckets], logits of the next gap's bucket; NULL: not predicted */
        };
    };
    lp_value *token_state;     /* [T x state dims]: state at every token, for losses that read it elsewhere; or NULL */
    lp_value *items, *bias;    /* recommend: [items x state dims] and [items x 1], or those of the batch vocabulary */
    lp_value *intensity_slope; /* [1 x 1], its change per time unit; not computed, a parameter */
    lp_value *duration_target; /* of the shape of duration, its soft one-hot; NULL for inference */
    lp_value *loss;            /* [1 x 1], sum over the targets; NULL for inference */
    const lp_encoding *encoding;        /* by which the network sees time or order; NULL: it has none */
    lp_encoding_config encoding_config; /* of this encoding */
    /* Times or positions are measured from the window's end, so that only its last position is predicted as a session
     * predicts it. */
    bool anchored;
    bool
        lag_only; /* the encoding serves the lag to the target alone (target_lag.h), which is exact in anchored networks too */
    lp_decode_state *decode; /* of a decoding graph; otherwise NULL */
} lp_network;

/* A network being built: what a row's build and loss functions work with. */
typedef struct lp_builder {
    lp_network *network;
    lp_graph *graph; /* of the network */
    const lp_model_config *config;
    lp_value *const *feeds; /* LP_FEED_LIMIT of them */
    bool training;
    bool few_targets; /* evaluation: targets are few among the tokens */
    bool censored;    /* some targets have no label: those of right-censored gaps. Only when training */
    double dropout;   /* 0 unless training */
} lp_builder;

struct lapse_model {
    lp_model_config config;
    lp_arena arena;     /* of names, texts and tables */
    lp_names types;     /* in the arena */
    lp_network network; /* for inference; empty for baselines */
    float *parameters;  /* owned; network.graph.parameter_size elements */
    lp_tensor *tensors; /* in the arena; data in parameters or in the arena; those of `times` too, behind "when." */
    int tensor_count;
    lapse_model *
        times; /* with --when: the network of the time of the next event; views the names and fields; NULL: none. Owned */
    double *history;                              /* owned; [epochs x lp_history_columns]: history.h */
    int epochs;                                   /* of the run so far; 0 for baselines */
    uint64_t seed;                                /* of the run: sets the split */
    uint64_t fingerprint;                         /* of the dataset it was trained on */
    const lp_split_rule *split_by;                /* how its data was split */
    const char **property_name, **property_value; /* in the arena; what the file's metadata says */
    int property_count, property_capacity;
    lapse_comm *divided; /* item tables have the rows of this rank alone (item_rows.h); NULL: all of them. Not owned */
    int sharers; /* objects that keep the model alive besides its owner; changed atomically. Not _Atomic: C++ reads this */
    void *
        program; /* what queries need besides (serve/program.h); set once, atomically, by the first query, after which parameters do
                    * not change; owned */
    void (*program_free)(void *program);
};

/* What a baseline is fitted to, and what defaults are chosen from: the training split. Some baselines choose a hyperparameter
 * on the validation split. */
typedef struct lp_fit_data {
    const lapse_dataset *dataset;
    const uint8_t *split; /* of each event */
} lp_fit_data;

/* A history and the query time. */
typedef struct lp_query {
    const int32_t *types; /* count of them, oldest first */
    int64_t count;
    double time; /* of the target event, unix seconds; of the last event where the target time is unknown */
} lp_query;

enum { LP_TASKS_ALL = 1 << LP_TASK_CLASSIFY | 1 << LP_TASK_RECOMMEND };

/* Option tables of one model, at most, with the NULL at their end. */
enum { LP_MODEL_TABLES = 5 };

struct lp_model_row {
    const char *name;
    const char *summary; /* for help */
    bool sequence_input; /* reads LP_FEED_SEQUENCE: config->sequences is set, and stored in its files */
    bool own_time;       /* predicts the time of the next event in layers of its own, and has no --when */
    bool points;         /* item vectors are points in the unit ball, and scores are distances to them */
    int state_parts;     /* widths of item vectors that the state of a recommender has; 0: 1 */
    /* Sets options that the caller has left unset to those of the model's source. NULL: the common defaults. */
    void (*defaults)(lp_model_config *config);
    /* Of points: the distance. */
    lp_score_rule (*score)(const lp_model_config *config);
    bool gap_input;  /* reads LP_FEED_GAP in its own layers, whether or not the input layer does */
    bool reads_time; /* baselines: predict reads the query time; a network reads it where its encoding sees time */
    int tasks;       /* bit 1 << lp_task for each task it can be trained for */
    /* Tables of its own options, NULL-terminated. Their offsets are relative to its settings; where it uses lp_encoding_options,
     * the settings begin with an lp_encoding_config. */
    const lp_option *options[LP_MODEL_TABLES];
    /* Chooses its options that are unset from the training split; dims and context are set. NULL: there are none. */
    lapse_status (*resolve)(lp_model_config *config, const lp_fit_data *data, lapse_error *error);
    /* Checks its options against each other, after resolve or after loading a file. NULL: every combination is valid. */
    lapse_status (*validate)(const lp_model_config *config, lapse_error *error);

    /* Networks: declares parameters and builds, from the feeds, logits of every predicted target, or state, items and bias:
     * input_layer.h and output_layer.h have the common parts. */
    void (*build)(lp_builder *builder);
    /* Networks: the loss [1 x 1], a sum over targets. NULL: the loss of the task (output_layer.h). */
    lp_value *(*loss)(lp_builder *builder);
    /* Networks: whether the model can decode incrementally: build then fills builder->network->decode where that is not NULL.
     * NULL or false: a session runs the whole window for each query. */
    bool (*incremental)(const lp_model_config *config);
    /* Networks that set network->intensity: the law of the next event's time, from an element of that output. NULL: the model
     * does not predict times. */
    lp_next_time (*next_time)(const lapse_model *model, double intensity);

    /* Baselines: fits tensors by counting. */
    lapse_status (*fit)(lapse_model *model, const lp_fit_data *data, lapse_error *error);
    /* Baselines: checks tensors that came from a file. */
    lapse_status (*check)(const lapse_model *model, lapse_error *error);
    /* Baselines: probabilities of all event types. */
    void (*predict)(const lapse_model *model, const lp_query *query, double *probabilities);
    /* Baselines: events before the target that the prediction depends on; NULL: at most the context. */
    int (*lookback)(const lp_model_config *config);
};

/* A model that is trained by gradients, rather than fitted by counting. */
static inline bool lp_model_is_network(const lp_model_config *config)
{
    return config->row->build != NULL;
}

/* A network whose scores are ranked, rather than compared by the first choice. */
static inline bool lp_model_ranks(const lp_model_config *config)
{
    return config->task == LP_TASK_RECOMMEND && lp_model_is_network(config) && !config->of_times;
}

/* The row of the recommender's loss. Before a rule has chosen it, it counts as bce, so that the options of sampled losses apply. */
static inline const lp_loss_row *lp_model_loss(const lp_model_config *config)
{
    return &lp_losses[config->loss == LP_UNSET ? LP_LOSS_BCE : (lp_loss)config->loss];
}

/* Whether training gathers only the item rows that a shard uses (data/batch/batch_vocabulary.h). */
static inline bool lp_model_samples_items(const lp_model_config *config)
{
    return config->task == LP_TASK_RECOMMEND && lp_model_loss(config)->samples_items;
}

/* Whether training samples negatives for each target, rather than for each step. */
static inline bool lp_model_samples_by_target(const lp_model_config *config)
{
    return lp_model_samples_items(config) && lp_model_loss(config)->by_target;
}

/* Columns of a recommender's state, and of the vectors that score it. */
static inline int lp_model_state_dims(const lp_model_config *config)
{
    return config->dims * (config->row->state_parts ? config->row->state_parts : 1);
}

static inline lp_score_rule lp_model_score_rule(const lp_model_config *config)
{
    return config->row->score ? config->row->score(config) : LP_SCORE_PRODUCT;
}

/* A network whose events have their gap as an input, through the input layer or through the model's own layers. */
static inline bool lp_model_reads_gap(const lp_model_config *config)
{
    return lp_model_is_network(config) && (config->gap_input == 1 || config->row->gap_input);
}

static inline bool lp_model_target_known(const lp_model_config *config)
{
    return config->target_time == 0;
}

/* Whether training has gaps that are open at the end of the data as targets, which have no event: those that learn times. */
static inline bool lp_model_censors(const lp_model_config *config)
{
    return config->censoring == LP_CENSORING_ON && config->when == config->of_times;
}

/* "known", "unknown", or "not used" where predictions do not depend on the time of the predicted event at all. */
const char *lp_model_target_time(const lapse_model *model);

/* In the order of preference, NULL-terminated. */
extern const lp_model_row *const lp_models[];
const lp_model_row *lp_model_row_find(const char *name);

/* Before the names of the tensors of the network of times. */
#define LP_TIMES_PREFIX "when."

/* An empty model for these event types: a baseline gets its tensors by fit; for a network the inference graph is built and
 * the parameters are allocated. */
lapse_status lp_model_new(const lp_model_config *config, const lp_names *types, lapse_model **model,
                          lapse_error *error);

/* Divides the item tables of a new model of a recommender among the ranks of a communicator. NULL: nothing to do. */
void lp_model_divide(lapse_model *model, lapse_comm *comm);

/* Fails for a model with divided tables, unless all ranks of this communicator make the call. */
lapse_status lp_model_check_whole(const lapse_model *model, const lapse_comm *comm, lapse_error *error);

/* The config of the network of times of a model with --when: the same architecture, which sees no target time and has none of the
 * settings of outputs. */
lp_model_config lp_model_times_config(const lp_model_config *config);

/* Frees the network of times of a model whose run ended before it was trained. */
lapse_status lp_model_drop_times(lapse_model *model, lapse_error *error);

/* The model whose network predicts the time of the next event: with --when that of times, or the model itself; NULL: it predicts none. */
const lapse_model *lp_model_of_times(const lapse_model *model);

/* Keeps a model alive until one more lapse_model_free. Returns it; any thread may call it. */
lapse_model *lp_model_share(const lapse_model *model);

static inline bool lp_model_predicts(const lp_model_config *config, lp_target target)
{
    return !config->of_times && (config->predict == LP_PREDICT_BOTH || (int)config->predict == (int)target);
}

/* The classes of a target: how many, and their names. */
int lp_model_target_size(const lp_model_config *config, lp_target target);
const lp_names *lp_model_target_names(const lapse_model *model, lp_target target);

/* The target of a name, or with NULL the first one; LP_TARGET_COUNT for a target that the model does not predict. */
lp_target lp_model_target_find(const lapse_model *model, const char *name);

/* Standardizes a number: (number - mean) / deviation, clipped to +-10; 0 for a missing one. */
float lp_model_standardize(const lp_model_field *field, double number);

/* Standardizes a gap in seconds; NaN for an event with none before it. */
float lp_model_standardize_gap(const lp_gap_scale *scale, double gap);

/* Builds the network of a config into an empty *network, with loss and gradients when training. */
lapse_status lp_network_build(lp_network *network, const lp_model_config *config, bool training, lapse_error *error);

/* The same for evaluation. few_targets: targets are few among the tokens, and the last attention block computes these alone. */
lapse_status lp_network_build_evaluation(lp_network *network, const lp_model_config *config, bool few_targets,
                                         lapse_error *error);

/* Builds the decoding graph of a model that decodes incrementally: it is fed with the newest events of one history. */
lapse_status lp_network_build_decoder(lp_network *network, const lp_model_config *config, lapse_error *error);

/* Parameter samples that a prediction is the mean over: the stored frequency samples of a sampled encoding, otherwise 1. */
static inline int lp_network_samples(const lp_network *network)
{
    return network->encoding && network->encoding->sample ? network->encoding_config.frequency_samples : 1;
}

/* The output of a network that predicts the time of the next event: a mixture, or the intensity of a point process; NULL: it predicts
 * none. */
static inline lp_value *lp_network_time(const lp_network *network)
{
    return network->mixture ? network->mixture : network->intensity;
}

static inline bool lp_model_predicts_time(const lapse_model *model)
{
    return lp_model_of_times(model) != NULL;
}

/* Whether a node of the network reads this feed. */
bool lp_network_reads(const lp_network *network, lp_feed feed);

/* The inputs of a batch that the network reads. */
lp_batch_inputs lp_network_inputs(const lp_network *network, const lp_model_config *config);

/* Initial values of all parameters of a graph, as functions of the seed. The second leaves rows of item tables out that other ranks have. */
void lp_network_init_parameters(const lp_graph *graph, uint64_t seed, float *parameters);
void lp_network_init_rows(const lp_graph *graph, const lapse_comm *comm, uint64_t seed, float *parameters);

lp_tensor *lp_model_tensor_find(const lapse_model *model, const char *name);

/* Tensors of a baseline, at most. */
enum { LP_BASELINE_TENSORS = 16 };

/* Adds a tensor to a baseline and returns its data, in the arena. NULL when out of memory. */
void *lp_model_tensor_add(lapse_model *model, const char *name, lp_tensor_type type, int64_t rows, int64_t cols);
size_t lp_tensor_bytes(const lp_tensor *tensor);

/* The largest magnitude of a tensor; infinite if it has an element that is not finite; 0 if its elements are integers. */
double lp_tensor_largest(const lp_tensor *tensor);

/* LAPSE_ERROR_FORMAT: a prediction of the model is not finite. Names the tensor of the largest magnitude. */
lapse_status lp_model_fail_infinite(const lapse_model *model, lapse_error *error);

/* Adds or replaces a property. */
lapse_status lp_model_property_set(lapse_model *model, lapse_error *error, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a property whose name is new, without a search for it: the many properties of a file cost linear time. */
lapse_status lp_model_property_append(lapse_model *model, const char *name, const char *value, lapse_error *error);
/* lp_model_property_set of a number, by lp_number_text. */
lapse_status lp_model_property_number(lapse_model *model, lapse_error *error, const char *name, double value);
const char *lp_model_property_find(const lapse_model *model, const char *name);

#endif
