/* output_layer.h: how a network predicts: class logits, or the state whose products with item vectors are catalogue scores; and
 * the loss functions of both tasks. */
#ifndef LP_OUTPUT_LAYER_H
#define LP_OUTPUT_LAYER_H

#include "model/model.h"

/* The rows of z [T x a] at the target positions [targets x a]. */
lp_value *lp_at_targets(const lp_builder *builder, lp_value *z);

/* The rows of z [targets x a] whose target event is known [labels x a]: z, unless gaps are censored. */
lp_value *lp_at_labels(const lp_builder *builder, lp_value *z);

/* Turns hidden states at the target positions into the network's outputs:
 *
 *     classify    logits = z W^T + b [labels x classes], for each predicted target; z [targets x a] of any width
 *     recommend   state = z [labels x dims]; the score of item i is z . items_i + bias_i
 *
 * A network of times has neither, but the mixture of when_head.h. */
void lp_output_layer(lp_builder *builder, lp_value *z);

/* The loss of the task, summed over labels: the cross-entropy of every predicted target's class, or the recommender's --loss. */
lp_value *lp_task_loss(lp_builder *builder);

#endif
