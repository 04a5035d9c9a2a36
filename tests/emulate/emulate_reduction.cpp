/* emulate_reduction.cpp: runs a group of reductions without a program; scratch memory has a guard behind it. */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_reduction.h"
#include "emulate/emulate_reduction.h"

#include <stdlib.h>

namespace
{

enum { GUARD = 64 };

char *scratch;
size_t scratch_size;

} // namespace

/* Replaces that of cuda_program.cu: filled with NaN, with a guard behind it. */
void *lp_cuda_scratch(const lp_cuda_run *run, size_t size)
{
    (void)run;
    scratch_size = size;
    scratch = (char *)malloc(size + GUARD);
    return scratch ? memset(scratch, 0xFF, size + GUARD) : NULL;
}

int lp_emulate_reduction_max(void)
{
    return LP_CUDA_REDUCTION_MAX;
}

bool lp_emulate_reduction(const lp_node *const *nodes, int count, const lp_run *run)
{
    lp_stage_part parts[LP_CUDA_REDUCTION_MAX];
    lp_cuda_shard shard = {};
    for (int i = 0; i < count; i++)
        parts[i] = {nodes[i], i, lp_cuda_rule_of(nodes[i])->reduction.outputs};
    for (int type = 0; type < LP_ROWS_COUNT; type++)
        shard.rows[type] = run->rows[type];
    shard.rows[LP_ROWS_FIXED] = -1;
    lp_cuda_device device = {};
    lp_cuda_run launched = {&device, run, &shard, NULL, 0, 0, NULL, NULL, NULL, 0};
    lp_cuda_reduce(parts, count, &launched);
    bool good = true;
    for (int i = 0; scratch && i < GUARD; i++)
        good = good && scratch[scratch_size + (size_t)i] == (char)0xFF;
    free(scratch);
    scratch = NULL;
    return good;
}
