/* cuda_adam.h: the optimizer's step on the device. */
#ifndef LP_CUDA_ADAM_H
#define LP_CUDA_ADAM_H

#include "backend/cuda/cuda_device.h"

/* What changes from step to step comes from the host: these numbers, and behind them the rows of tables that occurred. So the launches
 * are the same for every step. */
typedef struct lp_cuda_adam_now {
    int32_t rows;
    float rate, correction2; /* the learning rate and the second moment, corrected for the number of the step */
    const float *loss;       /* *loss_to = *loss, if there is one */
    float *loss_to;
} lp_cuda_adam_now;

/* Bytes for as many rows as the optimizer may meet. */
size_t lp_cuda_adam_size(int64_t most_rows);
/* Fills them; loss: where it lies on the device. */
void lp_cuda_adam_fill(const lp_train_step *learning, const float *loss, lp_cuda_adam_now *now);
/* now: on the device, and filled by the time that the launches run. */
void lp_cuda_adam_launch(const lp_train_step *learning, const lp_cuda_adam_now *now);

/* lp_backend.adam_step */
void lp_cuda_adam_step(const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters);

#endif
