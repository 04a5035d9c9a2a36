/* model.h: a model: what it computes, with which parameters, for which event types.
 *
 * A model is a row of lp_models. Networks build a graph and learn by gradients; baselines count. Both keep what they learned
 * in named tensors, which is all that the model file knows of them (model_file.h).
 */
#ifndef LP_MODEL_H
#define LP_MODEL_H

#include "data/dataset/dataset.h"
#include "data/dataset/names.h"
#include "data/batch/negatives.h"
#include "data/dataset/split.h"
#include "nn/attention_block.h"

typedef struct lp_model_row lp_model_row;

/* What a model may be asked for: each is a vocabulary with logits of its own. */
typedef enum lp_target { LP_TARGET_EVENT = 0, LP_TARGET_ACTION = 1, LP_TARGET_COUNT = 2 } lp_target;
typedef enum lp_predict { LP_PREDICT_EVENT = 0, LP_PREDICT_ACTION = 1, LP_PREDICT_BOTH = 2 } lp_predict;

/* "event", "action", "both", NULL: targets and predictions by number. */
extern const char *const lp_predict_names[];

/* What a model is for: naming the event that comes, one of few event types; or ranking a catalogue of items. */
typedef enum lp_task { LP_TASK_CLASSIFY = 0, LP_TASK_RECOMMEND = 1 } lp_task;
extern const char *const lp_task_names[]; /* "classify", "recommend", NULL */

/* What training of a recommender makes small. */
typedef enum lp_loss {
    LP_LOSS_SOFTMAX,        /* cross-entropy over the whole catalogue */
    LP_LOSS_BCE,            /* binary cross-entropy of the target and of negatives, one by one */
    LP_LOSS_SAMPLED_SOFTMAX /* cross-entropy over the items of the shard and negatives that a step's places share */
} lp_loss;
extern const char *const lp_loss_names[]; /* "softmax", "bce", "sampled-softmax", NULL */

/* Where a recommender's output vectors come from. */
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

/* All that fixes the function a model computes, its parameters apart. */
typedef struct lp_model_config {
    const lp_model_row *row;
    lp_task task;
    lp_loss loss;                   /* of a recommender, in training */
    lp_negative_sampling negatives; /* of a sampled loss */
    int negative_count;             /* of each place (bce), or of a step (sampled-softmax) */
    lp_output output;
    const lp_encoding *encoding;
    lp_projection projection;
    lp_combine combine;
    bool target_known; /* lags are taken to the time of the event asked for, otherwise to the last event */
    int event_types;   /* how many, which are the classes or items */
    int dims, blocks, heads, context;
    int periods, harmonics;
    double period_min, period_max;
    const lp_period_init *period_init;
    int periods_fixed; /* 1: not learned */
    const lp_inverse_cdf *inverse_cdf;
    int hidden, draws;
    double dropout;
    int order; /* of a Markov chain */
    lp_predict predict;
    int field_count;
    const lp_model_field *fields; /* the action first, then categories, then numbers; in the model's arena */
} lp_model_config;

typedef enum lp_tensor_type { LP_TENSOR_F32, LP_TENSOR_I32, LP_TENSOR_U8, LP_TENSOR_U64, LP_TENSOR_F64 } lp_tensor_type;

/* Something learned: rows x cols elements. */
typedef struct lp_tensor {
    const char *name;
    lp_tensor_type type;
    int64_t rows, cols;
    void *data;
} lp_tensor;

/* What a live network, which sees only the newest events, remembers of the others. In the graph's arena. */
typedef struct lp_decode_state {
    int capacity;        /* events that there is room for */
    bool placed;         /* events are seen at their places in the window, which change when it slides */
    lp_kv_cache *blocks; /* of each block; they share the basis */
} lp_decode_state;

/* A graph that answers, and when training also learns. */
typedef struct lp_network {
    lp_graph graph;
    lp_value *logits[LP_TARGET_COUNT]; /* classify: [A x names of the target]; NULL where it is not predicted */
    lp_value *state;                   /* recommend: [A x dims]; an item's score is state . items + bias */
    lp_value *items, *bias;            /* recommend: [items x dims] and [items x 1], or those of the shard's items */
    lp_decode_state *live;             /* of a live network, otherwise NULL */
    lp_value *loss;                    /* [1 x 1], sum over the targets; NULL in a network that only answers */
} lp_network;

struct lapse_model {
    lp_model_config config;
    lp_arena arena;     /* of names, texts and tables */
    lp_names types;     /* in the arena */
    lp_network network; /* that answers; empty for baselines */
    float *parameters;  /* owned; network.graph.parameter_size elements */
    lp_tensor *tensors; /* in the arena; data in parameters or in the arena */
    int tensor_count;
    uint64_t seed;                                /* of the run: sets the split */
    uint64_t fingerprint;                         /* of the dataset it was trained on */
    const lp_split_rule *split_by;                /* how its data was split */
    const char **property_name, **property_value; /* in the arena; what the file's metadata says */
    int property_count, property_capacity;
};

/* What a count-based model learns from: the training split, and the validation split to choose by. */
typedef struct lp_fit_data {
    const lapse_dataset *dataset;
    const uint8_t *split; /* of each event */
} lp_fit_data;

/* What a count-based model is asked: the event type of the event at `time`, after these. */
typedef struct lp_query {
    const int32_t *types; /* count of them, oldest first */
    int64_t count;
    double time; /* of the event asked for, unix seconds; of the last event where that is not known */
} lp_query;

struct lp_model_row {
    const char *name;
    const char *summary; /* for people */
    bool uses_context;
    /* Networks: declares parameters and builds logits of every predicted target, or state, items and bias, from the
     * feeds. Dropout only when training. */
    void (*build)(lp_network *network, const lp_model_config *config, bool training,
                  lp_value *const feeds[LP_FEED_LIMIT]);
    /* Baselines: learns by counting, into tensors. */
    lapse_status (*fit)(lapse_model *model, const lp_fit_data *data, lapse_error *error);
    /* Baselines: checks tensors that came from a file. */
    lapse_status (*check)(const lapse_model *model, lapse_error *error);
    /* Baselines: the probabilities of all event types. */
    void (*answer)(const lapse_model *model, const lp_query *question, double *probabilities);
};

/* Times are measured from the window's last moment instead of from each place's own: only a window's last place is then
 * asked as a session would be. */
static inline bool lp_model_config_anchored(const lp_model_config *config)
{
    return config->row->build && config->projection == LP_PROJECTION_MLP && config->encoding->sees_time;
}

/* Whether the shards of a training batch have small catalogues of their own (data/batch/batch_vocabulary.h). */
static inline bool lp_model_config_lists(const lp_model_config *config)
{
    return config->task == LP_TASK_RECOMMEND && config->loss != LP_LOSS_SOFTMAX;
}

/* In the order of preference, NULL-terminated. */
extern const lp_model_row *const lp_models[];
const lp_model_row *lp_model_row_find(const char *name);

/* An empty model for these event types: baselines get their tensors by fit; for networks the graph is built and
 * every parameter has its place. */
lapse_status lp_model_new(const lp_model_config *config, const lp_names *types, lapse_model **model,
                          lapse_error *error);

static inline bool lp_model_predicts(const lp_model_config *config, lp_target target)
{
    return config->predict == LP_PREDICT_BOTH || (int)config->predict == (int)target;
}

/* What a target may be: how many names, and which. */
int lp_model_target_size(const lp_model_config *config, lp_target target);
const lp_names *lp_model_target_names(const lapse_model *model, lp_target target);

/* The target of a name; LP_TARGET_COUNT if there is none such, or the model does not predict it. NULL: its first. */
lp_target lp_model_target_find(const lapse_model *model, const char *name);

/* A number as the network sees it: in deviations from the mean, at most 10 of them; missing is the mean. */
float lp_model_standardize(const lp_model_field *field, double number);

/* Builds the network of a config into an empty *network, with loss and gradients when training. */
lapse_status lp_network_build(lp_network *network, const lp_model_config *config, bool training, lapse_error *error);

/* The same for a network that answers, fed with the newest events of one history, which remembers `capacity` of them. */
lapse_status lp_network_build_decoder(lp_network *network, const lp_model_config *config, int capacity,
                                      lapse_error *error);

/* What an encoding sees of the configuration. */
lp_encoding_config lp_model_encoding(const lp_model_config *config);

/* Starting values of all parameters of a graph, as functions of the seed. */
void lp_network_init_parameters(const lp_graph *graph, uint64_t seed, float *parameters);

lp_tensor *lp_model_tensor_find(const lapse_model *model, const char *name);

/* Tensors that a baseline may have. */
enum { LP_BASELINE_TENSORS = 16 };

/* Room in the arena for a tensor's data, and its place in the list. NULL when out of memory. */
void *lp_model_tensor_add(lapse_model *model, const char *name, lp_tensor_type type, int64_t rows, int64_t cols);
size_t lp_tensor_bytes(const lp_tensor *tensor);

/* A number as decimal text with a point, in as few digits as restore it; returns text. */
enum { LP_NUMBER_SIZE = 64 };
const char *lp_number_text(double value, char text[LP_NUMBER_SIZE]);

/* Adds or replaces a property. */
lapse_status lp_model_property_set(lapse_model *model, lapse_error *error, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for a number: as few digits as read back to the same double, and a point whatever the locale. */
lapse_status lp_model_property_number(lapse_model *model, lapse_error *error, const char *name, double value);
const char *lp_model_property_find(const lapse_model *model, const char *name);

#endif
