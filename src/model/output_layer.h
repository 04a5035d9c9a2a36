/* output_layer.h: how a network predicts: class logits, or the state whose products with item vectors are catalogue scores; and
 * the loss functions of both tasks. */
#ifndef LP_OUTPUT_LAYER_H
#define LP_OUTPUT_LAYER_H

#include "model/model.h"

/* The rows of z [T x a] at the target positions [targets x a]. */
lp_value *lp_at_targets(const lp_builder *builder, lp_value *z);

/* Turns hidden states at the target positions into the network's outputs:
 *
 *     classify    logits = z W^T + b [targets x classes], for each predicted target; z [targets x a] of any width
 *     recommend   state = z [targets x dims]; the score of item i is z . items_i + bias_i
 *
 * A network that learns when predicts the time from z too, unless its builder has set network->time_state: it must, where z
 * depends on the target time. */
void lp_output_layer(lp_builder *builder, lp_value *z);

/* The loss of the task, summed over targets: the cross-entropy of every predicted target's class, or the recommender's --loss. */
lp_value *lp_task_loss(lp_builder *builder);

#endif
