#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_sums.h"
#include "emulate/emulate_sums.h"

#include <stdlib.h>

/* Groups are made as for a device that copies in bulk. */
int lp_device_level(void)
{
    return 90;
}

namespace
{

enum { GUARD = 64 };

char *scratch;
size_t scratch_size;

} // namespace

/* In place of that of a program: NaN, with a guard behind it. */
void *lp_cuda_scratch(const lp_cuda_run *run, size_t size)
{
    (void)run;
    scratch_size = size;
    scratch = (char *)malloc(size + GUARD);
    return scratch ? memset(scratch, 0xFF, size + GUARD) : NULL;
}

int lp_emulate_sums_most(void)
{
    return LP_CUDA_SUMS_MOST;
}

bool lp_emulate_sums_takes(const lp_node *node, unsigned *outputs)
{
    return lp_cuda_sums_takes(node, outputs);
}

bool lp_emulate_sums(const lp_node *const *nodes, const unsigned *outputs, int count, const lp_run *run)
{
    lp_stage_piece pieces[LP_CUDA_SUMS_MOST];
    lp_cuda_shard shard = {};
    for (int i = 0; i < count; i++)
        pieces[i] = {nodes[i], i, outputs[i]};
    for (int type = 0; type < LP_ROWS_COUNT; type++)
        shard.rows[type] = run->rows[type];
    shard.rows[LP_ROWS_FIXED] = -1;
    lp_cuda_run launched = {run, &shard, NULL, 0, 0, NULL, NULL};
    lp_cuda_sums(pieces, count, &launched);
    bool good = true;
    for (int i = 0; scratch && i < GUARD; i++)
        good = good && scratch[scratch_size + (size_t)i] == (char)0xFF;
    free(scratch);
    scratch = NULL;
    return good;
}
