/* encoding_rows.h: the rows of the encoding table, each in the file of its family. */
#ifndef LP_ENCODING_ROWS_H
#define LP_ENCODING_ROWS_H

#include "nn/encoding.h"

extern const lp_encoding lp_encoding_position, lp_encoding_bochner, lp_encoding_mercer;

#endif
