/* attention_block.h: one block of self-attention with exact lags, and its feed-forward half. */
#ifndef LP_ATTENTION_BLOCK_H
#define LP_ATTENTION_BLOCK_H

#include "nn/encoding.h"

/* Which of query, key and value are multilayer perceptrons of event and time rather than linear in them. */
typedef enum lp_projection {
    LP_PROJECTION_LINEAR,
    LP_PROJECTION_MLP_QUERY, /* the query; lags stay exact */
    LP_PROJECTION_MLP,       /* all three; times are measured from one anchor a window */
    LP_PROJECTION_COUNT
} lp_projection;

extern const char *const lp_projection_names[LP_PROJECTION_COUNT + 1]; /* NULL-terminated */

/* How the time's features join the event's vector. */
typedef enum lp_combine { LP_COMBINE_CONCATENATE, LP_COMBINE_ADD, LP_COMBINE_COUNT } lp_combine;

extern const char *const lp_combine_names[LP_COMBINE_COUNT + 1]; /* NULL-terminated */

typedef struct lp_block_config {
    int dims, heads;
    double dropout;
    lp_projection projection;
    lp_combine combine;
    int capacity; /* events that a live network remembers */
    bool newest;  /* in a live network: what comes out is wanted of the newest event alone */
} lp_block_config;

/* z [T x dims] -> [T x dims]. Parameters are named block.<index>.… memory: in a live network, whose events so far it holds;
 * the basis, which all blocks share, is given, key and value are filled in. Otherwise NULL. */
lp_value *lp_attention_block(lp_graph *graph, const lp_block_config *config, int index, lp_value *z,
                             lp_features *features, lp_kv_cache *memory);

/* A layer norm with parameters <name>.gain and <name>.shift. */
lp_value *lp_norm(lp_graph *graph, const char *name, lp_value *x);

/* A linear layer with parameters <name>.weight [out x in] and <name>.bias. add may be NULL. */
lp_value *lp_layer(lp_graph *graph, const char *name, lp_value *x, int out, lp_value *add);

#endif
