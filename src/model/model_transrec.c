/* model_transrec.c: translation-based recommendation (TransRec, He, Kang and McAuley 2017). It sees the last event alone, and no times
 * except the lag to the predicted event with an encoding (target_lag.h).
 *
 *     X = input layer                                             [T x dims]      input_layer.h: gamma of the last item
 *     S = dropout(X + t + t_u)                                    [T x dims]      t_u: the vector of the user (user_vector.h)
 *     score of item i = beta_i - |S - gamma_i|^2
 *
 * gamma_i is sqrt(dims) times the item's vector. A ranking is the same without |S|^2, which all items have in common: the score is
 * 2 sqrt(dims) S . items_i + bias_i with bias_i = beta_i - |gamma_i|^2. The bias is what is learned and stored, so that scores are those
 * of every recommender (output_layer.h).
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/target_lag.h"
#include "model/user_vector.h"

#include <math.h>

static void build(lp_builder *b)
{
    lp_value *x = lp_input_layer(b);
    lp_value *translation = lp_graph_parameter(b->graph, "translation", 1, b->config->dims, LP_INIT_ZEROS, 0);
    lp_value *sum = lp_fold(b->graph, lp_add(b->graph, x, lp_user_vector(b)), translation, 1);
    lp_value *state = lp_target_lag(b, lp_at_targets(b, lp_dropout(b->graph, sum, b->dropout)));
    lp_output_layer(b, lp_affine(b->graph, state, 2 * sqrt((double)b->config->dims), 0));
}

const lp_model_row lp_model_transrec = {.name = "transrec",
                                        .summary = "translation from the last item by the user towards the next item",
                                        .sequence_input = true,
                                        .default_loss = LP_LOSS_BPR,
                                        .tasks = 1 << LP_TASK_RECOMMEND,
                                        .options = {lp_target_lag_options, lp_encoding_options},
                                        .resolve = lp_target_lag_resolve,
                                        .validate = lp_target_lag_validate,
                                        .build = build};
