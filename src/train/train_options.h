/* train_options.h: the options of a training run: one table for the run, one that models share, and each model's own.
 *
 * The public type is opaque; inside the library it is a struct that is copied by assignment.
 */
#ifndef LP_TRAIN_OPTIONS_H
#define LP_TRAIN_OPTIONS_H

#include "model/model.h"
#include "model/vectors.h"

typedef enum lp_size { LP_SIZE_SMALL, LP_SIZE_BASE, LP_SIZE_LARGE } lp_size;
typedef enum lp_schedule { LP_SCHEDULE_CONSTANT, LP_SCHEDULE_COSINE } lp_schedule;
typedef enum lp_training_windows { LP_WINDOWS_ALL, LP_WINDOWS_LAST, LP_WINDOWS_EACH } lp_training_windows;

/* The options of the run itself, by member: lp_run_options. */
typedef struct lp_run_settings {
    int model; /* index in lp_models */
    int size;  /* lp_size */
    char item_vectors[LP_PATH_SIZE];
    int windows;  /* lp_training_windows */
    int split_by; /* index in lapse_split_by_names */
    double learning_rate;
    int schedule; /* lp_schedule */
    double beta1, beta2, l2, clip, ema_decay;
    int batch, epochs, patience;
    int select; /* lp_metric */
    uint64_t seed;
    int shards, threads;
    int device;    /* index in lp_device_names */
    int precision; /* lp_precision */
    char checkpoint[LP_PATH_SIZE];
    double checkpoint_seconds;
    bool resume, shard_items;
} lp_run_settings;

/* What --size has chosen: the caller has set the others. */
typedef struct lp_sized {
    bool dims, blocks, heads;
} lp_sized;

extern const lp_option lp_run_options[];

/* Options that the three sorts of tables have together, at most. */
enum { LP_TRAIN_OPTION_LIMIT = 128 };

struct lapse_train_options {
    lp_run_settings run;
    lp_model_config model;               /* row and settings are filled in when options are resolved */
    lp_model_settings own[LP_ROW_NAMES]; /* of each row of lp_models */
    lapse_comm *comm;                    /* lapse_train_options_set_comm */
    bool given[LP_TRAIN_OPTION_LIMIT];   /* by index of lapse_train_option: set by the caller */
    bool earlier[LP_TRAIN_OPTION_LIMIT]; /* likewise: set to the value of an earlier run (lapse_train_options_like) */
    char censoring_reason[400];          /* why "auto" chose so; "": it was not asked */
    char device_reason[440];             /* the same, where it is the CPU */
    lp_sized sized;
    char size_reason[200]; /* what the next size would cost; "": there is none */
};

void lp_train_options_default(lapse_train_options *options);

/* Whether the caller has set the option of this name. */
bool lp_train_option_given(const lapse_train_options *options, const char *name);
/* The same, or an earlier run has (lapse_train_options_like). */
bool lp_train_option_chosen(const lapse_train_options *options, const char *name);
/* Unsets the option, so that a model without it is not refused. */
void lp_train_option_withdraw(lapse_train_options *options, const char *name);

/* Results of resolving. The caller frees the split with lp_free and the vectors with lapse_vectors_free. */
typedef struct lp_resolved {
    uint8_t *split;         /* of each event */
    lapse_vectors *vectors; /* of run.item_vectors; NULL: none */
} lp_resolved;

/* Chooses the size, and dims, blocks and heads by it where the caller has not set them. */
void lp_size_resolve(lapse_train_options *options, const lapse_dataset *dataset);

/* After all else is resolved: fills size_reason. */
lapse_status lp_size_describe(lapse_train_options *options, const lp_fit_data *data, lapse_error *error);

/* Chooses context, batch, learning rate, averaging and patience where they are unset. */
lapse_status lp_length_resolve(lapse_train_options *options, const lapse_dataset *dataset, lapse_error *error);

/* Resolves "censoring" and its reason, and the span of the training split. */
lapse_status lp_censoring_resolve(lapse_train_options *options, const lapse_dataset *dataset, const uint8_t *split,
                                  lapse_error *error);

/* Chooses every option that is unset, from the data, and checks all of them. */
lapse_status lp_train_options_resolve(lapse_train_options *options, const lapse_dataset *dataset, lp_resolved *resolved,
                                      lapse_error *error);

#endif
