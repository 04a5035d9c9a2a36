/* user_vector.c: the table of user vectors. */
#include "model/user_vector.h"

lp_value *lp_user_vector(lp_builder *b)
{
    /* Row 0 is the unknown user: no token of the training data reads it. */
    lp_value *table =
        lp_graph_parameter(b->graph, "user.embedding", b->config->sequences + 1, b->config->dims, LP_INIT_ZEROS, 0);
    return lp_embed(b->graph, table, b->feeds[LP_FEED_SEQUENCE]);
}
