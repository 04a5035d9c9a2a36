/* attention_block.h: one block of self-attention with exact lags, and its feed-forward layer. */
#ifndef LP_ATTENTION_BLOCK_H
#define LP_ATTENTION_BLOCK_H

#include "nn/encoding.h"

/* Which of query, key and value are multilayer perceptrons of event and time rather than linear in them. */
typedef enum lp_projection {
    LP_PROJECTION_LINEAR,
    LP_PROJECTION_MLP_QUERY, /* the query; lags stay exact */
    LP_PROJECTION_MLP,       /* all three; times are measured from one anchor per window */
    LP_PROJECTION_COUNT
} lp_projection;

extern const char *const lp_projection_names[LP_PROJECTION_COUNT + 1]; /* NULL-terminated */

/* How time features are combined with the event's vector. */
typedef enum lp_combine { LP_COMBINE_CONCATENATE, LP_COMBINE_ADD, LP_COMBINE_COUNT } lp_combine;

extern const char *const lp_combine_names[LP_COMBINE_COUNT + 1]; /* NULL-terminated */

typedef struct lp_block_config {
    int dims, heads;
    double dropout;
    lp_projection projection;
    lp_combine combine;
    bool last_row_only; /* of a decoding graph: only the output of the newest event is used */
    lp_value *targets;  /* [A x 1] int32: positions whose output is used; NULL: all */
    bool few_targets;   /* they are few among the tokens: others have no query */
} lp_block_config;

/* Checks that heads divide dims. */
lapse_status lp_heads_check(int heads, int dims, lapse_error *error);

/* z [T x dims] -> [T x dims], or [A x dims] at the targets alone. Parameters are named block.<index>.… cache: of a decoding graph; the caller sets its
 * basis, which all blocks share, and the block sets key and value. Otherwise NULL. */
lp_value *lp_attention_block(lp_graph *graph, const lp_block_config *config, int index, lp_value *z,
                             lp_features *features, lp_kv_cache *cache);

#endif
