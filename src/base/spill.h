/* spill.h: a bound on the memory of a phase that makes large blocks: an import.
 *
 * While it holds, blocks of at least LP_SPILL_SIZE bytes are parts of one unlinked file, which the process maps. A thread watches the resident
 * memory: near the bound it unmaps the pages of these blocks, whose contents stay in the file and come back when they are used. An import
 * appends to its columns and reads them in order, so few pages come back, and its algorithm and its result are those without a bound.
 */
#ifndef LP_SPILL_H
#define LP_SPILL_H

#include "base/error.h"

enum { LP_SPILL_SIZE = 1 << 20 };

/* lapse_memory_bound_begin and lapse_memory_bound_end (lapse_lab.h) set and lift it. */

/* For memory.c. A zeroed block in the file; NULL: no bound holds, or it cannot be made. */
void *lp_spill_alloc(size_t size);
/* A zeroed block outside the file, for which no memory is reserved: a page takes memory when it is first written. NULL: it cannot be made. */
void *lp_spill_sparse(size_t size);
/* The size of a block of either sort; 0: it is of neither. */
size_t lp_spill_size(const void *block);
/* False: the block is of neither sort. */
bool lp_spill_free(void *block);

#endif
