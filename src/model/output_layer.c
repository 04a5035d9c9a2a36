/* output_layer.c: class logits, catalogue scores, and the losses of both tasks. */
#include "model/output_layer.h"

#include "model/when_head.h"
#include "nn/layer.h"

lp_value *lp_at_targets(const lp_builder *b, lp_value *z)
{
    if (!z || z->rows_of == LP_ROWS_TARGETS) /* the last block has selected them */
        return z;
    return lp_embed(b->graph, z, b->feeds[LP_FEED_TARGET_POSITION]);
}

lp_value *lp_at_labels(const lp_builder *b, lp_value *z)
{
    return z && b->censored ? lp_embed(b->graph, z, b->feeds[LP_FEED_LABEL_ROW]) : z;
}

void lp_output_layer(lp_builder *b, lp_value *z)
{
    static const char *const names[LP_TARGET_COUNT] = {"output", "output.action"};
    if (b->config->of_times) {
        lp_when_head(b, z);
        return;
    }
    z = lp_at_labels(b, z);
    if (b->config->task == LP_TASK_RECOMMEND) {
        b->network->state = z;
        return;
    }
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        if (lp_model_predicts(b->config, (lp_target)t))
            b->network->logits[t] =
                lp_layer(b->graph, names[t], z, lp_model_target_size(b->config, (lp_target)t), NULL);
}

/* The cross-entropies of all predicted targets, added. */
static lp_value *class_loss(const lp_builder *b)
{
    static const lp_feed truth[LP_TARGET_COUNT] = {LP_FEED_TARGET, LP_FEED_ACTION};
    lp_value *sum = NULL;
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        if (!b->network->logits[t])
            continue;
        lp_value *loss = lp_cross_entropy(b->graph, b->network->logits[t], b->feeds[truth[t]]);
        sum = sum ? lp_add(b->graph, sum, loss) : loss;
    }
    return sum;
}

lp_value *lp_task_loss(lp_builder *b)
{
    const lp_network *network = b->network;
    lp_value *target = b->feeds[LP_FEED_TARGET];
    if (b->config->task != LP_TASK_RECOMMEND)
        return class_loss(b);
    if (lp_model_samples_by_target(b->config))
        return lp_sampled_loss(b->graph, network->state, network->items, network->bias, target,
                               b->feeds[LP_FEED_NEGATIVE], (lp_loss)b->config->loss, b->config->score_regularization,
                               lp_model_score_rule(b->config));
    lp_value *logq = lp_model_loss(b->config)->corrected ? b->feeds[LP_FEED_LOGQ] : NULL;
    return lp_softmax_loss(b->graph, network->state, network->items, network->bias, logq, target);
}
