/* cuda_adam.h: Adam's step on the device. */
#ifndef LP_CUDA_ADAM_H
#define LP_CUDA_ADAM_H

#include "backend/cuda/cuda_device.h"

/* Per-step arguments from the host, followed by the table rows that the batch uses. The launches are the same for
 * every step, so they can be replayed. */
typedef struct lp_cuda_adam_args {
    int32_t rows;
    lp_adam_factors factors; /* without clipping */
    const float *loss;       /* *loss_to = *loss, if loss_to is not NULL */
    float *loss_to;
} lp_cuda_adam_args;

/* Bytes of the arguments with at most `max_rows` rows. */
size_t lp_cuda_adam_size(int64_t max_rows);
/* loss: device address. The rows are not part of the result. */
lp_cuda_adam_args lp_cuda_adam_args_of(const lp_train_step *train, const float *loss);
/* args: device address, filled by the time the launches run. */
void lp_cuda_adam_launch(const lp_cuda_run *run, const lp_train_step *train, const lp_cuda_adam_args *args);

/* lp_backend.adam_step: a step outside a run. */
void lp_cuda_adam_step(lp_cuda_device *device, const lp_adam *adam, uint64_t step, const lp_row_union *rows,
                       float *parameters);

#endif
