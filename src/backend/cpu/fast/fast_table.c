/* fast_table.c: the functions of this folder at one level. */
#include "backend/cpu/fast/fast.h"

#define LP_FAST_ENTRY_FAST(id, row) [LP_OP_##id] = LP_FAST(row),
#define LP_FAST_ENTRY_PLAIN(id, row)
#define LP_FAST_ENTRY(id, row, cpu) LP_FAST_ENTRY_##cpu(id, row)

extern const lp_cpu_functions LP_FAST(functions);
const lp_cpu_functions LP_FAST(functions) = {
    .kernels = {LP_OPS(LP_FAST_ENTRY)},
    .ranking = {LP_FAST(scores), LP_FAST(count_at_least), LP_FAST(row_scores), LP_FAST(transposed_scores), LP_FAST(many_scores),
                LP_FAST(log_sum), LP_FAST(distances), LP_FAST(largest), LP_FAST(find_at_least)},
    .adam = {LP_FAST(adam_norm), LP_FAST(adam_add), LP_FAST(adam_step)},
    .fma_loop = LP_FAST(fma_loop),
};
