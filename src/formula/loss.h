/* loss.h: the loss functions of recommenders. A loss over negatives that are sampled for each target is a row of LP_SAMPLED_LOSSES and its
 * kernel, lp_<kernel>_row in sampled.h. op.h has the formulas.
 */
#ifndef LP_LOSS_H
#define LP_LOSS_H

#include <stdbool.h>

/* X(id without LP_LOSS_, kernel, name, default negatives by popularity instead of uniform, their number per target, whether
 * --score-regularization applies, description for help). */
#define LP_SAMPLED_LOSSES(X)                                                          \
    X(BCE, bce, "bce", false, 1, false, "binary cross-entropy")                       \
    X(BPR, bpr, "bpr", false, 1, false, "pairwise ranking")                           \
    X(BPR_MAX, bpr_max, "bpr-max", true, 100, true, "ranking against hard negatives") \
    X(TOP1, top1, "top1", false, 1, false, "ranking, with scores near 0")             \
    X(TOP1_MAX, top1_max, "top1-max", true, 100, false, "the same, bounded")

#define LP_LOSS_ID(id, ...) LP_LOSS_##id,
typedef enum lp_loss {
    LP_LOSS_SOFTMAX,         /* cross-entropy over the whole catalogue */
    LP_LOSS_SAMPLED_SOFTMAX, /* cross-entropy over the items of the shard and negatives that a step's targets share */
    LP_SAMPLED_LOSSES(LP_LOSS_ID) LP_LOSS_COUNT
} lp_loss;
#undef LP_LOSS_ID

/* The score of an item at a state: the product of their vectors, or the negative of their distance, the square of the Euclidean one or
 * the sum of absolute differences; plus the item's bias (score.h). */
typedef enum lp_score_rule { LP_SCORE_PRODUCT, LP_SCORE_L2, LP_SCORE_L1 } lp_score_rule;

typedef struct lp_loss_row {
    const char *name;
    bool samples_items; /* the loss is over sampled items instead of the whole catalogue */
    bool by_target;     /* negatives are sampled for each target instead of once for all targets of a step */
    bool corrected;     /* scores get the logQ correction */
    bool popular;       /* negatives are sampled by popularity unless the options say otherwise */
    int negatives;      /* their default number: of a target, or of a step */
    bool regularized;   /* --score-regularization applies */
} lp_loss_row;

/* By lp_loss. */
extern const lp_loss_row lp_losses[LP_LOSS_COUNT];
extern const char *const lp_loss_names[]; /* ends with NULL */

#endif
