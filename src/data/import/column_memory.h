/* column_memory.h: memory of the columns of a dataset that is imported.
 *
 * An import writes each column once or twice, so what its pages cost at first counts as much as what it does with them. Huge
 * pages are cheap where the system has them ready. But a virtual machine may have given its free memory back to the host in
 * units of a huge page, and then one costs far more than small pages do, which stay. So columns have small pages, which
 * threads request together, many in a call. */
#ifndef LP_COLUMN_MEMORY_H
#define LP_COLUMN_MEMORY_H

#include <stddef.h>

/* A block of count * size bytes, aligned like those of lp_alloc_raw and not zeroed, or NULL. Freed by lp_free. */
void *lp_column_alloc(size_t count, size_t size, int threads);

#endif
