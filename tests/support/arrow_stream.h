/* arrow_stream.h: Arrow streams made by hand from CSV text. Buffers have exactly the size that they need, so that the
 * address sanitizer detects a read past their end. */
#ifndef LP_TEST_ARROW_STREAM_H
#define LP_TEST_ARROW_STREAM_H

#include "data/import/arrow_abi.h"

/* Changes an array of the stream before it is handed out. */
typedef void (*arrow_spoil)(struct ArrowSchema *schema, struct ArrowArray *array);

/* A stream of the rows of a text without quotes, in arrays of `rows` rows. formats has the type of each column: a format
 * of the C data interface, or "X>Y" for a dictionary of type Y with indices of type X. An empty cell is null. Every
 * array begins with `slack` further elements, and has that offset. */
void arrow_stream_init(struct ArrowArrayStream *stream, const char *text, const char *const *formats, int rows,
                       int slack, arrow_spoil spoil);

/* Blocks that streams have allocated and not freed yet. */
int arrow_stream_blocks(void);

#endif
