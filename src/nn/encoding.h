/* encoding.h: how attention sees time. An encoding is a row of lp_encodings and a file of its own.
 *
 * An encoding turns a batch's times and places into features, of either event type:
 *   token features   [T x a], joined to each event's vector (positions)
 *   lag features     Phi(s) = amplitude * (cos w s, sin w s), given by the basis u at each event's time and at the moment
 *                    asked about; the attention block makes of them Phi(t' - t_i) for every pair, exactly
 * The block handles both, or neither; it does not know which encoding it has.
 *
 * A sampled encoding draws its frequencies from a learned distribution, anew in every step of training. What it draws
 * is one row of numbers for the whole batch, so it is not drawn within the graph that each shard goes through, but by a
 * small graph of its own, once a step (model/sampler.h). The large graph reads the draw as a parameter, LP_LOG_PERIOD,
 * that is fixed for the optimizer; its gradient, summed over the shards, is what the small graph learns from. A model
 * keeps the draws that it answers by in the same place.
 */
#ifndef LP_ENCODING_H
#define LP_ENCODING_H

#include "base/option.h"
#include "nn/feeds.h"
#include "nn/inverse_cdf.h"
#include "nn/period_init.h"

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
    int dims, context;             /* of the model; no options */
} lp_encoding_config;

/* Rows for a model whose settings begin with an lp_encoding_config. */
extern const lp_option lp_encoding_options[];

typedef struct lp_features {
    lp_value *token;       /* [T x a], or NULL */
    lp_value *frequency;   /* [1 x F] double: of the basis, or NULL */
    lp_value *basis;       /* [T x 2F]: u(time), or NULL */
    lp_value *query_basis; /* [T x 2F]: u(query time) */
    lp_value *lag;         /* [T x 2F]: u(query time - time), made by the first block that wants it */
    lp_value *amplitude;   /* [1 x 2F], or NULL for all ones */
} lp_features;

/* Which numbers a sampled encoding draws. */
typedef enum lp_draw_stream {
    LP_DRAW_STEP,  /* those of a step of training */
    LP_DRAW_STORED /* those a model answers by; the run's step is the number of the draw */
} lp_draw_stream;

typedef struct lp_encoding {
    const char *name;
    const char *summary;   /* for people */
    bool sees_time;        /* otherwise at most the order */
    int default_periods;   /* 0: it has none */
    int default_harmonics; /* 0: it has none but the period itself */
    bool learns_periods;   /* reads period_init and periods_fixed */
    bool maps_noise;       /* reads inverse_cdf and hidden */
    void (*build)(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features);
    /* Sampled encodings, otherwise NULL: declares what is learned and builds, from noise alone, `periods` log periods
     * in one value of any shape. */
    lp_value *(*sample)(lp_graph *graph, const lp_encoding_config *config, lp_draw_stream stream);
} lp_encoding;

/* Limits of periods x harmonics, which is the number of frequencies. */
enum { LP_FREQUENCY_LIMIT = 65536 };

/* In the order of preference, NULL-terminated. */
extern const lp_encoding *const lp_encodings[];
const lp_encoding *lp_encoding_find(const char *name);

/* Chooses unset options from the training split: periods start between the 5 % quantile of the gaps and twice the 95 % quantile
 * of the time that a context spans, so that the slowest wave does not repeat within the context. */
lapse_status lp_encoding_resolve(lp_encoding_config *config, const lapse_dataset *dataset, const uint8_t *split,
                                 lapse_error *error);

/* Checks options against each other. */
lapse_status lp_encoding_validate(const lp_encoding_config *config, lapse_error *error);

/* The name of the parameter that holds log periods in seconds, of whatever origin. */
extern const char LP_LOG_PERIOD[];

/* Features from a row of log periods: `harmonics` frequencies each, and the basis at both times. */
void lp_encoding_lags(lp_graph *graph, lp_value *log_period, int harmonics, lp_value *const feeds[LP_FEED_COUNT],
                      lp_features *features);

/* The parameter LP_LOG_PERIOD [1 x periods], begun as period_init says, learned unless periods_fixed. */
lp_value *lp_encoding_periods(lp_graph *graph, const lp_encoding_config *config);

/* For sampled encodings: declares the parameters of `sample` and the draws, LP_LOG_PERIOD [draws x periods], and builds
 * the features of the draw that LP_FEED_FREQUENCY_SAMPLE says. */
void lp_encoding_draws(lp_graph *graph, const lp_encoding *encoding, const lp_encoding_config *config,
                       lp_value *const feeds[LP_FEED_COUNT], lp_features *features);

/* For sampled encodings: log periods from values that are spread like a standard normal. Two deviations to each side
 * reach about from period_min to period_max, with their geometric mean in the middle; large values are short periods.
 * None goes far beyond the two, where a frequency would be noise, or a number too large. */
lp_value *lp_encoding_spread(lp_graph *graph, const lp_encoding_config *config, lp_value *x);

#endif
