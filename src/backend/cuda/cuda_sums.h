#ifndef LP_CUDA_SUMS_H
#define LP_CUDA_SUMS_H
#include "backend/cuda/cuda_stage.h"
enum { LP_SUMS_PIECES = 32 };
unsigned lp_cuda_sums_takes(const lp_node *node);
void lp_cuda_sums(const lp_stage_piece *pieces, int count, const lp_cuda_run *run);
#endif
