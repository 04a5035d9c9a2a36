/* source.h: a source of text: a file, standard input or memory, plain or gzip. */
#ifndef LP_SOURCE_H
#define LP_SOURCE_H

#include "base/error.h"

#include <zlib.h>

typedef struct lp_source {
    const char *name; /* for messages; the caller owns it */
    int handle;       /* -1 for memory */
    char *raw;        /* owned; bytes read from the file; NULL for memory */
    const char *next; /* unused raw bytes: next .. next + left */
    size_t left;
    bool ended; /* end of the file */
    bool gzip;
    bool member_open; /* inside a gzip member: the end of the file here means truncation */
    bool stream_open; /* stream needs inflateEnd */
    z_stream stream;
} lp_source;

/* path "-" is standard input. Gzip is detected by its magic number. */
lapse_status lp_source_open(lp_source *source, const char *path, lapse_error *error);

/* Reads from memory, which must outlive the source. */
lapse_status lp_source_open_memory(lp_source *source, const char *name, const void *data, size_t size,
                                   lapse_error *error);

/* Reads up to `size` bytes of text; *count is smaller only at the end. */
lapse_status lp_source_read(lp_source *source, char *into, size_t size, size_t *count, lapse_error *error);

/* Safe on {0} and when called twice. */
void lp_source_close(lp_source *source);

#endif
