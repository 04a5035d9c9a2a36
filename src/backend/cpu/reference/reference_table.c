/* reference_table.c: the reference kernels by op. */
#include "backend/cpu/reference/reference.h"

#define LP_REFERENCE_ENTRY(id, row, cpu) [LP_OP_##id] = LP_REFERENCE(row),
const lp_kernel LP_REFERENCE(kernels)[LP_OP_COUNT] = {LP_OPS(LP_REFERENCE_ENTRY)};
