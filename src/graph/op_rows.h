/* op_rows.h: the rows of the op table, defined in the op_*.c of each family. */
#ifndef LP_OP_ROWS_H
#define LP_OP_ROWS_H

#include "graph/op.h"

#define LP_OP_ROW(id, row, cpu) extern const lp_op lp_op_##row;
LP_OPS(LP_OP_ROW)
#undef LP_OP_ROW

#endif
