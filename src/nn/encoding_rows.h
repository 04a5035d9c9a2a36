/* encoding_rows.h: the rows of the encoding table, each defined in its own file. */
#ifndef LP_ENCODING_ROWS_H
#define LP_ENCODING_ROWS_H

#include "nn/encoding.h"

extern const lp_encoding lp_encoding_mercer, lp_encoding_bochner, lp_encoding_bochner_normal,
    lp_encoding_bochner_invcdf, lp_encoding_random, lp_encoding_position, lp_encoding_sinusoid, lp_encoding_none;

#endif
