/* loss.c: the table of loss functions. */
#include "formula/loss.h"

#include <stddef.h>

#define ROW(id, kernel, title, by_popularity, count, with_regularization, help) \
    [LP_LOSS_##id] = {.name = title,                                            \
                      .samples_items = true,                                    \
                      .by_target = true,                                        \
                      .popular = by_popularity,                                 \
                      .negatives = count,                                       \
                      .regularized = with_regularization},

const lp_loss_row lp_losses[LP_LOSS_COUNT] = {[LP_LOSS_SOFTMAX] = {.name = "softmax"},
                                              [LP_LOSS_SAMPLED_SOFTMAX] = {.name = "sampled-softmax",
                                                                           .samples_items = true,
                                                                           .corrected = true,
                                                                           .negatives = 1000},
                                              LP_SAMPLED_LOSSES(ROW)};

#define NAME(id, kernel, name, ...) name,

const char *const lp_loss_names[] = {"softmax", "sampled-softmax", LP_SAMPLED_LOSSES(NAME) NULL};
