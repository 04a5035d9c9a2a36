/* chunks.h: divides a text into chunks of whole records, which several workers parse in parallel.
 *
 * Chunks are numbered in the order of the text. The rows of a chunk depend only on the chunk, and results are merged
 * in the order of chunks, so the result depends neither on the number of workers nor on the size of chunks.
 */
#ifndef LP_CHUNKS_H
#define LP_CHUNKS_H

#include "data/import/text_stream.h"

#include <pthread.h>

enum {
    LP_CHUNK_LIMIT = 1 << 20,       /* limit of a record, and so of a chunk */
    LP_CHUNK_SIZE = LP_CHUNK_LIMIT, /* default size of a chunk */
    LP_CHUNK_PEEK = 1 << 18         /* bytes that lp_chunks_open reads */
};

/* A malformed record is a chunk of its own. */
typedef enum lp_chunk_fault {
    LP_CHUNK_COMPLETE = 0,
    LP_CHUNK_LONG_LINE = 1, /* a line longer than LP_CHUNK_LIMIT */
    LP_CHUNK_OPEN_QUOTE = 2 /* a quoted field that does not end within LP_CHUNK_LIMIT, or before the end of the text */
} lp_chunk_fault;

typedef struct lp_chunk {
    int64_t index;
    size_t size; /* bytes in the worker's buffer: whole records, or the malformed record */
    lp_chunk_fault fault;
    size_t quote; /* LP_CHUNK_OPEN_QUOTE: offset of the quoted field in the buffer */
} lp_chunk;

typedef struct lp_chunks {
    lp_text_stream text;
    bool open;
    char delimiter;
    bool lines; /* a record is a line: quotes have no meaning */
    size_t chunk_size;
    size_t limit;         /* of a record: LP_CHUNK_LIMIT */
    pthread_mutex_t lock; /* guards all that follows */
    char *carry;          /* owned; bytes read but not yet handed out: carry + at .. carry + at + left */
    size_t at, left;
    bool ended;    /* end of the source */
    bool skipping; /* the rest of a line that is too long is still to be skipped */
    int64_t next;  /* index of the next chunk */
    int64_t stop;  /* chunks from this index on are not read */
    int64_t bytes; /* of text read */
    lapse_status status;
    lapse_error error; /* of the source */
} lp_chunks;

/* Reads the beginning of the text: chunks->carry then has at least its first LP_CHUNK_PEEK bytes and its first line
 * (unless that is too long), without a byte-order mark. encoding: its name, or NULL to find it. The caller sets delimiter and lines before it takes the first
 * chunk. */
lapse_status lp_chunks_open(lp_chunks *chunks, lp_source *source, const char *encoding, const char *preferred,
                            bool logs, size_t chunk_size, lapse_error *error);

/* Rejects files of other kinds (file_kind.h), binary files and bare carriage returns before the header is parsed.
 * `file` is for messages. */
lapse_status lp_chunks_check(const lp_chunks *chunks, const char *file, lapse_error *error);

/* Error message of a malformed record. */
const char *lp_chunk_fault_text(lp_chunk_fault fault);

/* Size of a worker's buffer: a line end and LP_CSV_PADDING more than the limit. */
size_t lp_chunks_buffer_size(const lp_chunks *chunks);

/* For tests: the limit of chunks that are opened from now on, so that small texts reach it. 0: LP_CHUNK_LIMIT. */
void lp_chunks_set_limit(size_t limit);

/* Copies the next chunk into buffer (lp_chunks_buffer_size bytes), followed by LP_CSV_PADDING zero bytes. False at the end,
 * at the stop, or after a failure of the source (see chunks->status). Thread-safe. */
bool lp_chunks_take(lp_chunks *chunks, char *buffer, lp_chunk *chunk);

/* Chunks from this index on need not be read. */
void lp_chunks_stop(lp_chunks *chunks, int64_t index);

void lp_chunks_close(lp_chunks *chunks);

#endif
