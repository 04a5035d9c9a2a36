/* blocks.h: a text cut into blocks of whole records, which several workers take and read side by side.
 *
 * Blocks are numbered in the order of the text. What a worker makes of its block depends on the block alone, and
 * results are put together by number, so neither the number of workers nor the size of blocks shows in the result.
 */
#ifndef LP_BLOCKS_H
#define LP_BLOCKS_H

#include "data/import/source.h"

#include <pthread.h>

enum {
    LP_BLOCK_LIMIT = 1 << 20,                /* the longest record, and so the largest block */
    LP_BLOCK_ROOM = LP_BLOCK_LIMIT + 1 + 64, /* bytes a worker's buffer needs: a line end and LP_CSV_PADDING more */
    LP_BLOCK_SIZE = LP_BLOCK_LIMIT           /* the size that is usual */
};

/* A record that cannot be read is a block of its own. */
typedef enum lp_block_fault {
    LP_BLOCK_WHOLE = 0,
    LP_BLOCK_LONG = 1, /* a line longer than LP_BLOCK_LIMIT */
    LP_BLOCK_OPEN = 2  /* a quoted field that does not end within LP_BLOCK_LIMIT, or before the end of the text */
} lp_block_fault;

typedef struct lp_block {
    int64_t index;
    size_t size; /* bytes in the worker's buffer: whole records, or the one faulty record */
    lp_block_fault fault;
    size_t quote; /* LP_BLOCK_OPEN: where in the buffer the quoted field begins */
} lp_block;

typedef struct lp_blocks {
    lp_source *source; /* the caller's */
    char delimiter;
    size_t block_size;
    pthread_mutex_t lock; /* guards all that follows */
    char *carry;          /* owned; bytes read but not yet handed out: carry + at .. carry + at + left */
    size_t at, left;
    bool ended;    /* the source is */
    bool skipping; /* the rest of a line that was too long is still to be dropped */
    int64_t next;  /* number of the next block */
    int64_t stop;  /* blocks of this number and above are no longer wanted */
    int64_t bytes; /* of text read */
    lapse_status status;
    lapse_error error; /* of the source, where it failed */
} lp_blocks;

/* Reads the beginning of the text: blocks->carry then holds at least its first 4096 bytes and its first line (unless
 * that is too long), without a byte-order mark. The delimiter is to be set by the caller before the first block is
 * taken. */
lapse_status lp_blocks_open(lp_blocks *blocks, lp_source *source, size_t block_size, lapse_error *error);

/* Refuses at first sight what is no text, before its bytes are taken for a header. `file` is for messages. */
lapse_status lp_blocks_check(const lp_blocks *blocks, const char *file, lapse_error *error);

/* What is wrong with a faulty record. */
const char *lp_block_fault_text(lp_block_fault fault);

/* Copies the next block into buffer (LP_BLOCK_ROOM bytes), followed by LP_CSV_PADDING zero bytes. False at the end,
 * after a failure of the source (see blocks->status) or at the stop. Safe to call from several threads. */
bool lp_blocks_take(lp_blocks *blocks, char *buffer, lp_block *block);

/* Blocks from this number on need not be read. */
void lp_blocks_stop(lp_blocks *blocks, int64_t index);

void lp_blocks_close(lp_blocks *blocks);

#endif
