/* blocks.c: only taking a block is done one worker at a time: copying bytes in (or unpacking gzip) and finding the last
 * whole record, which costs a small part of reading the rows. */
#include "data/import/blocks.h"

#include "base/memory.h"
#include "data/import/csv.h"

#include <string.h>

enum { PEEK = 4096 };

static lapse_status fill(lp_blocks *blocks, char *into, size_t size, size_t *count, lapse_error *error)
{
    LP_TRY(lp_source_read(blocks->source, into, size, count, error));
    blocks->ended = *count < size;
    blocks->bytes += (int64_t)*count;
    return LAPSE_OK;
}

lapse_status lp_blocks_open(lp_blocks *blocks, lp_source *source, size_t block_size, lapse_error *error)
{
    *blocks = (lp_blocks){.source = source, .block_size = block_size, .stop = INT64_MAX, .delimiter = ','};
    pthread_mutex_init(&blocks->lock, NULL);
    blocks->carry = lp_grow(NULL, LP_BLOCK_ROOM, 1);
    if (!blocks->carry)
        return lp_fail_memory(error, "reading blocks", LP_BLOCK_ROOM);
    for (size_t goal = PEEK; !blocks->ended && goal <= LP_BLOCK_LIMIT; goal *= 2) {
        size_t count;
        LP_TRY(fill(blocks, blocks->carry + blocks->left, goal - blocks->left, &count, error));
        blocks->left += count;
        if (memchr(blocks->carry, '\n', blocks->left))
            break;
    }
    if (blocks->left >= 3 && memcmp(blocks->carry, "\xEF\xBB\xBF", 3) == 0) {
        blocks->at = 3;
        blocks->left -= 3;
    }
    return LAPSE_OK;
}

lapse_status lp_blocks_check(const lp_blocks *blocks, const char *file, lapse_error *error)
{
    const char *text = blocks->carry + blocks->at;
    if (blocks->left == 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0, "the file is empty: a header and rows were expected");
    if (blocks->left >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0))
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 1, 0, "this is UTF-16 text: save it as UTF-8");
    const char *bare_return = memchr(text, '\n', blocks->left) ? NULL : memchr(text, '\r', blocks->left - 1);
    if (bare_return)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 1, 0,
                          "the lines end with a carriage return alone: save the file with line feeds");
    size_t looked_at = blocks->left < 4096 ? blocks->left : 4096;
    const char *nul = memchr(text, 0, looked_at);
    if (!nul)
        return LAPSE_OK;
    int64_t line = 1;
    for (const char *at = text; at < nul; at++)
        line += *at == '\n';
    return lp_fail_at(error, LAPSE_ERROR_INPUT, file, line, 0,
                      "this looks like a binary file, not text: it has a NUL byte");
}

const char *lp_block_fault_text(lp_block_fault fault)
{
    return fault == LP_BLOCK_OPEN ? "a quoted field begins in this line and does not end: its closing quote is missing"
                                  : "this line is longer than 1 MiB, the most a line may have";
}

void lp_blocks_close(lp_blocks *blocks)
{
    if (blocks->source)
        pthread_mutex_destroy(&blocks->lock);
    lp_free(blocks->carry);
    *blocks = (lp_blocks){0};
}

static void keep(lp_blocks *blocks, const char *data, size_t size)
{
    if (size)
        memcpy(blocks->carry, data, size);
    blocks->at = 0;
    blocks->left = size;
}

/* Drops the rest of a line that was too long. */
static lapse_status skip_line(lp_blocks *blocks, char *buffer, lapse_error *error)
{
    while (blocks->skipping) {
        const char *found = blocks->left ? memchr(blocks->carry + blocks->at, '\n', blocks->left) : NULL;
        size_t size = found ? (size_t)(found - (blocks->carry + blocks->at)) + 1 : blocks->left;
        blocks->at += size;
        blocks->left -= size;
        blocks->skipping = !found && !blocks->ended;
        if (blocks->skipping) {
            size_t count;
            LP_TRY(fill(blocks, buffer, LP_BLOCK_LIMIT, &count, error));
            keep(blocks, buffer, count);
        }
    }
    return LAPSE_OK;
}

/* A record that does not end where it should becomes a block of its own; reading goes on at the next line. */
static void take_faulty(lp_blocks *blocks, char *buffer, size_t size, lp_csv_cut cut, lp_block *block)
{
    const char *line_end = memchr(buffer, '\n', size);
    bool open = cut.quote != SIZE_MAX && (line_end || blocks->ended);
    block->fault = open ? LP_BLOCK_OPEN : LP_BLOCK_LONG;
    block->quote = cut.quote;
    block->size = line_end ? (size_t)(line_end - buffer) + 1 : size;
    keep(blocks, buffer + block->size, size - block->size);
    blocks->skipping = !line_end;
    block->size = size; /* the quote may lie beyond the line */
}

/* Fills buffer until it holds a whole record, and hands out all that are whole. */
static lapse_status take(lp_blocks *blocks, char *buffer, lp_block *block, lapse_error *error)
{
    LP_TRY(skip_line(blocks, buffer, error));
    size_t size = 0;
    lp_csv_cut cut = {0, SIZE_MAX};
    bool all = false; /* nothing is left in carry or source */
    for (size_t goal = blocks->block_size; cut.size == 0 && !all && size < LP_BLOCK_LIMIT; goal *= 2) {
        goal = goal < LP_BLOCK_LIMIT ? goal : LP_BLOCK_LIMIT;
        size_t part = goal - size < blocks->left ? goal - size : blocks->left;
        memcpy(buffer + size, blocks->carry + blocks->at, part);
        blocks->at += part;
        blocks->left -= part;
        size += part;
        if (size < goal && !blocks->ended) {
            LP_TRY(fill(blocks, buffer + size, goal - size, &part, error));
            size += part;
        }
        all = blocks->ended && blocks->left == 0;
        cut = lp_csv_cut_text(buffer, size, blocks->delimiter);
    }
    block->size = cut.size;
    if (cut.size < size && all && cut.quote == SIZE_MAX && size < LP_BLOCK_LIMIT) {
        buffer[size++] = '\n';
        block->size = size;
    } else if (cut.size == 0 && size > 0) {
        take_faulty(blocks, buffer, size, cut, block);
    } else if (blocks->left > 0) {
        /* Nothing was read behind the carried bytes, so what was not handed out is still in its place there. */
        blocks->at -= size - cut.size;
        blocks->left += size - cut.size;
    } else {
        keep(blocks, buffer + cut.size, size - cut.size);
    }
    memset(buffer + block->size, 0, LP_CSV_PADDING);
    return LAPSE_OK;
}

bool lp_blocks_take(lp_blocks *blocks, char *buffer, lp_block *block)
{
    *block = (lp_block){0};
    pthread_mutex_lock(&blocks->lock);
    if (blocks->next < blocks->stop && blocks->status == LAPSE_OK) {
        blocks->status = take(blocks, buffer, block, &blocks->error);
        if (blocks->status != LAPSE_OK)
            block->size = 0;
        if (block->size > 0)
            block->index = blocks->next++;
    }
    pthread_mutex_unlock(&blocks->lock);
    return block->size > 0;
}

void lp_blocks_stop(lp_blocks *blocks, int64_t index)
{
    pthread_mutex_lock(&blocks->lock);
    if (index < blocks->stop)
        blocks->stop = index;
    pthread_mutex_unlock(&blocks->lock);
}
