/* encoding.h: how attention sees time. An encoding is a row of lp_encodings and a file of its own.
 *
 * An encoding turns a batch's times and places into features, of either kind:
 *   token features   [T x a], joined to each event's vector (positions)
 *   lag features     Phi(s) = amplitude * (cos w s, sin w s), given by the basis u at each event's time and at the moment
 *                    asked about; the attention block makes of them Phi(t' - t_i) for every pair, exactly
 * The block handles both; it does not know which encoding it has.
 */
#ifndef LP_ENCODING_H
#define LP_ENCODING_H

#include "nn/feeds.h"

typedef struct lp_encoding_config {
    int dims, context;
    int periods, harmonics;
    double period_min, period_max; /* seconds: where the periods start */
} lp_encoding_config;

typedef struct lp_features {
    lp_value *token;     /* [T x a], or NULL */
    lp_value *frequency; /* [1 x F] double: of the basis, or NULL */
    lp_value *basis;     /* [T x 2F]: u(time), or NULL */
    lp_value *until;     /* [T x 2F]: u(moment asked about) */
    lp_value *amplitude; /* [1 x 2F], or NULL for all ones */
} lp_features;

typedef struct lp_encoding {
    const char *name;
    const char *summary;   /* for people */
    bool sees_time;        /* otherwise only the order */
    int default_periods;   /* 0: it has none */
    int default_harmonics; /* 0: it has none but the period itself */
    void (*build)(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features);
} lp_encoding;

/* In the order of preference, NULL-terminated. */
extern const lp_encoding *const lp_encodings[];
const lp_encoding *lp_encoding_find(const char *name);

/* For encodings that learn periods: `periods` log periods, started geometrically from period_min to period_max, with
 * `harmonics` harmonics each, and the basis at both times. */
void lp_encoding_lags(lp_graph *graph, const lp_encoding_config *config, int harmonics,
                      lp_value *const feeds[LP_FEED_COUNT], lp_features *features);

#endif
