/* model_transrec.c: translation-based recommendation (TransRec, He, Kang and McAuley 2017). It sees the last event alone, and no times
 * except the lag to the predicted event with an encoding (target_lag.h).
 *
 *     X = input layer                                             [T x dims]      input_layer.h: the point of the last item
 *     S = X + t + t_u                                             [T x dims]      t_u: the vector of the user (user_vector.h)
 *     score of item i = bias_i - distance(S, items_i)                             formula/loss.h
 *
 * Items are points in the unit ball, which start on its surface and are scaled back into it after each step. Its loss takes negatives
 * that the sequence does not have (sequential BPR).
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/target_lag.h"
#include "model/user_vector.h"

#include <stddef.h>

typedef struct transrec_settings {
    lp_encoding_config time; /* first: lp_target_lag_options, lp_encoding_options */
    int distance;            /* 0: LP_SCORE_L2; 1: LP_SCORE_L1 */
} transrec_settings;

_Static_assert(sizeof(transrec_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

static const char *const distance_list[] = {"l2", "l1", NULL};

static const char *const *distance_names(void)
{
    return distance_list;
}

static const lp_option options[] = {
    {.name = "distance",
     .type = LAPSE_OPTION_CHOICE,
     .offset = offsetof(transrec_settings, distance),
     .group = "Model",
     .stored = LP_STORED_FORWARD,
     .placeholder = "NAME",
     .choices = distance_names,
     .initial = "l2",
     .advanced = true,
     .help = "distance between the translated last item and the next: l2 (the squared Euclidean distance) or l1"},
    {0},
};

static lp_score_rule score(const lp_model_config *config)
{
    const transrec_settings *settings = (const void *)config->settings.bytes;
    return settings->distance ? LP_SCORE_L1 : LP_SCORE_L2;
}

static void defaults(lp_model_config *config)
{
    if (config->loss == LP_UNSET)
        config->loss = LP_LOSS_BPR;
    config->negatives_unseen = lp_model_samples_by_target(config);
}

static lapse_status validate(const lp_model_config *config, lapse_error *error)
{
    if (!lp_model_samples_by_target(config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the scores of transrec are distances, which the loss '%s' cannot compute: use bpr, bce, top1, bpr-max or "
                       "top1-max",
                       lp_loss_names[config->loss]);
    if (config->output != LP_OUTPUT_SHARED)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the items of transrec are points, the same before and after a translation: leave out " LP_OPTION("--item-output separate"));
    return lp_target_lag_validate(config, error);
}

static void build(lp_builder *b)
{
    lp_value *x = lp_input_layer(b);
    lp_value *translation = lp_graph_parameter(b->graph, "translation", 1, b->config->dims, LP_INIT_UNIT, 0);
    lp_value *sum = lp_fold(b->graph, lp_add(b->graph, x, lp_user_vector(b)), translation, 1);
    lp_output_layer(b, lp_target_lag(b, lp_at_targets(b, sum)));
}

const lp_model_row lp_model_transrec = {.name = "transrec",
                                        .summary = "translation from the last item by the user towards the next item",
                                        .sequence_input = true,
                                        .points = true,
                                        .tasks = 1 << LP_TASK_RECOMMEND,
                                        .options = {lp_target_lag_options, lp_encoding_options, options},
                                        .defaults = defaults,
                                        .score = score,
                                        .resolve = lp_target_lag_resolve,
                                        .validate = validate,
                                        .build = build};
