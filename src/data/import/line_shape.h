/* line_shape.h: texts whose lines are rows without being CSV or JSON: access logs, logs with blanks between their parts, key=value
 * pairs, and tables that were printed with bars and rules. Each of their lines becomes a line with tabs, or a JSON object. */
#ifndef LP_LINE_SHAPE_H
#define LP_LINE_SHAPE_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum lp_line_form {
    LP_LINES_PLAIN,  /* as they are */
    LP_LINES_BLANKS, /* blanks between parts, which may be in quotes or brackets */
    LP_LINES_PAIRS,  /* key=value */
    LP_LINES_RULED   /* bars between cells, rules of dashes between lines */
} lp_line_form;

typedef struct lp_line_shape {
    lp_line_form form;
    int parts;         /* of LP_LINES_BLANKS: the last part takes the rest of the line */
    const char *names; /* a header that the text does not have, with its line end; NULL: none */
    bool fields;       /* a line "#Fields: a b c" is the header, and other lines with # are comments */
} lp_line_shape;

/* Finds the shape of a text by its beginning. */
lp_line_shape lp_line_shape_find(const char *text, size_t size);

/* Appends a line (begin .. end, without its line end) in its new form, with a line end. False when out of memory. */
bool lp_line_shape_write(const lp_line_shape *shape, const char *begin, const char *end, lp_buffer *out);

#endif
