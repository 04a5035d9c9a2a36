/* when_head.h: the head of a network that learns when: the law of the time of the next event, from a state that does not depend on it.
 *
 *     h = relu(S W1^T + b1)               [targets x dims]      S: the state at the targets
 *     mixture = h W2^T + b2               [targets x 3K], with a background [targets x 3K + 1]      formula/mixture.h
 *
 * The mixture is that of y = (log(max(gap, floor)) - mean) / deviation. So ties, events at the same time, and gaps below the floor
 * count as a gap of the floor. mean and deviation are those of the training split.
 */
#ifndef LP_WHEN_HEAD_H
#define LP_WHEN_HEAD_H

#include "model/model.h"

/* Sets network->mixture from the states z [targets x dims]. Its parameters are mixture.hidden.weight, mixture.hidden.bias,
 * mixture.output.weight, mixture.output.bias. */
void lp_when_head(lp_builder *builder, lp_value *z);

/* The law of the next event's time of a model whose network predicts it (lp_model_of_times), from the last event on, at `last`. outputs: rows of
 * lp_network_time, one for each of `samples` parameter samples, end to end; the law is their mean. memory: lp_time_law_size numbers,
 * which the law reads. */
lp_next_time lp_time_law_of(const lapse_model *model, double last, const float *outputs, int samples, double *memory);
size_t lp_time_law_size(const lapse_model *model, int samples);

/* The negative log-likelihood of the times, [1 x 1], a sum over targets. */
lp_value *lp_when_loss(lp_builder *builder);

#endif
