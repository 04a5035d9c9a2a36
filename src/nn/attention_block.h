/* attention_block.h: one block of self-attention with exact lags, and its feed-forward half. */
#ifndef LP_ATTENTION_BLOCK_H
#define LP_ATTENTION_BLOCK_H

#include "nn/encoding.h"

typedef struct lp_block_config {
    int dims, heads;
    double dropout;
} lp_block_config;

/* z [T x dims] -> [T x dims]. Parameters are named block.<index>.… */
lp_value *lp_attention_block(lp_graph *graph, const lp_block_config *config, int index, lp_value *z,
                             const lp_features *features);

/* A layer norm with parameters <name>.gain and <name>.shift. */
lp_value *lp_norm(lp_graph *graph, const char *name, lp_value *x);

/* A linear layer with parameters <name>.weight [out x in] and <name>.bias. add may be NULL. */
lp_value *lp_layer(lp_graph *graph, const char *name, lp_value *x, int out, lp_value *add);

#endif
