/* encoding.h: time encodings. An encoding is a row of lp_encodings and a file of its own.
 *
 * An encoding computes features of a batch's times and positions:
 *   token features   [T x a], concatenated to each event's vector (positions)
 *   lag features     Phi(s) = amplitude * (cos w s, sin w s), given by the basis u at the event times and at the query
 *                    times; the attention block computes Phi(t' - t_i) for every pair from them, exactly
 * The attention block accepts both, either or neither and does not depend on the encoding.
 *
 * A sampled encoding samples its frequencies from a learned distribution at every training step. One sample serves the
 * whole batch, so a small graph of its own computes it once per step (model/sampler.h), not the graph that runs per
 * shard. The main graph reads the sample as the parameter LP_LOG_PERIOD, which is frozen for the optimizer; its
 * gradient, summed over the shards, is the output gradient of the small graph. In a trained model the parameter holds
 * the frequency samples that predictions are averaged over.
 */
#ifndef LP_ENCODING_H
#define LP_ENCODING_H

#include "base/option.h"
#include "nn/feeds.h"
#include "nn/inverse_cdf.h"
#include "nn/period_init.h"

/* What the distribution of a sampled encoding is over. */
typedef enum lp_frequency_scale { LP_SCALE_LOG, LP_SCALE_LINEAR } lp_frequency_scale;

/* The options of an encoding (lp_encoding_options), and the sizes of the model that uses it. */
typedef struct lp_encoding_config {
    int encoding;                  /* index in lp_encodings */
    int periods, harmonics;        /* periods: frequencies, where there are no harmonics */
    double period_min, period_max; /* seconds: range of the initial periods */
    int period_init;               /* index in lp_period_inits */
    bool periods_fixed;            /* the periods are not learned */
    int inverse_cdf;               /* index in lp_inverse_cdfs */
    int hidden;                    /* width of the hidden layers of the inverse CDF */
    int frequency_samples;         /* stored by a model; its predictions are their mean */
    int frequency_scale;           /* lp_frequency_scale */
    bool independent_draws;        /* frequencies are sampled independently, not stratified */
    int dims, context;             /* of the model; no options */
} lp_encoding_config;

/* Rows for a model whose settings begin with an lp_encoding_config: the choice of the encoding, and the options of encodings. A
 * model with another default has its own row for the choice. */
extern const lp_option lp_encoding_choice[], lp_encoding_options[];

/* The choices of an encoding. */
const char *const *lp_encoding_names(void);

typedef struct lp_features {
    lp_value *token;       /* [T x a], or NULL */
    lp_value *frequency;   /* [1 x F] double: of the basis, or NULL */
    lp_value *basis;       /* [T x 2F]: u(time), or NULL */
    lp_value *query_basis; /* [T x 2F]: u(query time) */
    lp_value *lag;         /* [T x 2F]: u(query time - time); by the model in training, otherwise by the first block */
    lp_value *amplitude;   /* [1 x 2F]; NULL: all ones */
} lp_features;

/* Random-number stream of a sampled encoding. */
typedef enum lp_sample_stream {
    LP_SAMPLE_STEP,  /* samples of training steps */
    LP_SAMPLE_STORED /* samples that a model stores; the run's step is the index of the sample */
} lp_sample_stream;

typedef struct lp_encoding {
    const char *name;
    const char *summary;   /* one line for help texts */
    bool sees_time;        /* otherwise it sees the order at most */
    int default_periods;   /* 0: it has none */
    int default_harmonics; /* 0: no harmonics beyond the period itself */
    bool learns_periods;   /* reads period_init and periods_fixed */
    bool maps_noise;       /* reads inverse_cdf and hidden */
    void (*build)(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features);
    /* Sampled encodings only, otherwise NULL. Declares the learned parameters and computes `periods` log periods from
     * noise, in one value of any shape. */
    lp_value *(*sample)(lp_graph *graph, const lp_encoding_config *config, lp_sample_stream stream);
} lp_encoding;

/* Largest number of frequencies: periods x harmonics. */
enum { LP_FREQUENCY_LIMIT = 65536 };

/* In the order of preference, NULL-terminated. */
extern const lp_encoding *const lp_encodings[];
const lp_encoding *lp_encoding_find(const char *name);

/* Chooses unset options from the training split: initial periods lie between the 5 % quantile of the gaps and twice the
 * 95 % quantile of the time that a context spans, so that the longest period does not repeat within the context. */
lapse_status lp_encoding_resolve(lp_encoding_config *config, const lapse_dataset *dataset, const uint8_t *split,
                                 lapse_error *error);

/* Checks options against each other. */
lapse_status lp_encoding_validate(const lp_encoding_config *config, lapse_error *error);

/* Name of the parameter that holds log periods, in seconds: learned, frozen or sampled. */
extern const char LP_LOG_PERIOD[];

/* Builds lag features from log periods [1 x periods]: `harmonics` frequencies each, and the basis at event and query
 * times. */
void lp_encoding_lags(lp_graph *graph, lp_value *log_period, int harmonics, lp_value *const feeds[LP_FEED_COUNT],
                      lp_features *features);

/* Declares the parameter LP_LOG_PERIOD [1 x periods], initialized by period_init and frozen if periods_fixed. */
lp_value *lp_encoding_periods(lp_graph *graph, const lp_encoding_config *config);

/* For sampled encodings: declares the parameters of `sample` and the frequency samples, LP_LOG_PERIOD [samples x
 * periods], and builds the features of the sample that LP_FEED_FREQUENCY_SAMPLE selects. */
void lp_encoding_samples(lp_graph *graph, const lp_encoding *encoding, const lp_encoding_config *config,
                         lp_value *const feeds[LP_FEED_COUNT], lp_features *features);

/* For sampled encodings: maps values x of about a standard normal distribution to log periods.
 * log     x is the logarithm of a frequency: two standard deviations on each side reach about from period_min to period_max,
 *         centered at their geometric mean; large values are short periods. tanh bounds the result: far outside this range a
 *         frequency is noise, or overflows.
 * linear  x is the frequency itself, in cycles per geometric mean of period_min and period_max. The sign of a frequency changes
 *         only that of its sine: |x| is stored. */
lp_value *lp_encoding_spread(lp_graph *graph, const lp_encoding_config *config, lp_value *x);

#endif
