/* chunks.c: divides a text into chunks of whole records. Only taking a chunk is serialized: copying bytes (or
 * decompressing gzip) and finding the last whole record, a small part of the cost of reading the rows. */
#include "data/import/chunks.h"

#include "base/memory.h"
#include "base/system.h"
#include "data/import/csv.h"
#include "data/import/file_kind.h"

#include <string.h>

static lapse_status fill(lp_chunks *chunks, char *into, size_t size, size_t *count, lapse_error *error)
{
    LP_TRY(lp_text_read(&chunks->text, into, size, count, error));
    chunks->ended = *count < size;
    chunks->bytes += (int64_t)*count;
    return LAPSE_OK;
}

static size_t limit_of_new = LP_CHUNK_LIMIT;

void lp_chunks_set_limit(size_t limit)
{
    limit_of_new = limit ? limit : LP_CHUNK_LIMIT;
}

size_t lp_chunks_buffer_size(const lp_chunks *chunks)
{
    return chunks->limit + 1 + LP_CSV_PADDING;
}

lapse_status lp_chunks_open(lp_chunks *chunks, lp_source *source, const char *encoding, const char *preferred,
                            bool logs, size_t chunk_size, lapse_error *error)
{
    *chunks = (lp_chunks){.open = true,
                          .chunk_size = chunk_size < limit_of_new ? chunk_size : limit_of_new,
                          .limit = limit_of_new,
                          .stop = INT64_MAX,
                          .delimiter = ','};
    pthread_mutex_init(&chunks->lock, NULL);
    chunks->carry = lp_grow(NULL, lp_chunks_buffer_size(chunks), 1);
    if (!chunks->carry)
        return lp_fail_memory(error, "a chunk of text", lp_chunks_buffer_size(chunks));
    LP_TRY(lp_text_open(&chunks->text, source, encoding, preferred, logs, error));
    for (size_t goal = LP_CHUNK_PEEK < chunks->limit ? LP_CHUNK_PEEK : chunks->limit;
         !chunks->ended && goal <= chunks->limit; goal *= 2) {
        size_t count;
        LP_TRY(fill(chunks, chunks->carry + chunks->left, goal - chunks->left, &count, error));
        chunks->left += count;
        if (memchr(chunks->carry, '\n', chunks->left))
            break;
    }
    if (chunks->left >= 3 && memcmp(chunks->carry, "\xEF\xBB\xBF", 3) == 0) {
        chunks->at = 3;
        chunks->left -= 3;
    }
    return LAPSE_OK;
}

lapse_status lp_chunks_check(const lp_chunks *chunks, const char *file, lapse_error *error)
{
    const char *text = chunks->carry + chunks->at;
    if (chunks->left == 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0, "the file is empty: it must have a header and rows");
    LP_TRY(lp_file_kind_check(text, chunks->left, file, error));
    const char *bare_return = memchr(text, '\n', chunks->left) ? NULL : memchr(text, '\r', chunks->left - 1);
    if (bare_return)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 1, 0,
                          "lines end with a bare carriage return: save the file with line feeds");
    size_t examined = chunks->left < 4096 ? chunks->left : 4096;
    const char *nul = memchr(text, 0, examined);
    if (!nul)
        return LAPSE_OK;
    return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 1 + lp_csv_line_ends(text, nul), 0, LP_CSV_BINARY);
}

const char *lp_chunk_fault_text(lp_chunk_fault fault)
{
    return fault == LP_CHUNK_OPEN_QUOTE ? "a quoted field that begins in this line has no closing quote"
                                        : "this line is longer than the limit of 1 MiB";
}

void lp_chunks_close(lp_chunks *chunks)
{
    if (chunks->open)
        pthread_mutex_destroy(&chunks->lock);
    lp_text_close(&chunks->text);
    lp_free(chunks->carry);
    *chunks = (lp_chunks){0};
}

static void set_carry(lp_chunks *chunks, const char *data, size_t size)
{
    if (size)
        memcpy(chunks->carry, data, size);
    chunks->at = 0;
    chunks->left = size;
}

/* Skips the rest of a line that is too long. */
static lapse_status skip_line(lp_chunks *chunks, char *buffer, lapse_error *error)
{
    while (chunks->skipping) {
        const char *found = chunks->left ? memchr(chunks->carry + chunks->at, '\n', chunks->left) : NULL;
        size_t size = found ? (size_t)(found - (chunks->carry + chunks->at)) + 1 : chunks->left;
        chunks->at += size;
        chunks->left -= size;
        chunks->skipping = !found && !chunks->ended;
        if (chunks->skipping) {
            size_t count;
            LP_TRY(fill(chunks, buffer, chunks->limit, &count, error));
            set_carry(chunks, buffer, count);
        }
    }
    return LAPSE_OK;
}

/* A record without a valid end becomes a chunk of its own; reading resumes at the next line. */
static void take_faulty(lp_chunks *chunks, char *buffer, size_t size, lp_csv_cut cut, lp_chunk *chunk)
{
    const char *line_end = memchr(buffer, '\n', size);
    bool open = cut.quote != SIZE_MAX && (line_end || chunks->ended);
    chunk->fault = open ? LP_CHUNK_OPEN_QUOTE : LP_CHUNK_LONG_LINE;
    chunk->quote = cut.quote;
    chunk->size = line_end ? (size_t)(line_end - buffer) + 1 : size;
    set_carry(chunks, buffer + chunk->size, size - chunk->size);
    chunks->skipping = !line_end;
    chunk->size = size; /* the quote may be after the end of the line */
}

static lp_csv_cut cut_whole(const lp_chunks *chunks, const char *text, size_t size)
{
    if (!chunks->lines)
        return lp_csv_cut_text(text, size, chunks->delimiter);
    const char *last = lp_system_find_last(text, '\n', size);
    return (lp_csv_cut){last ? (size_t)(last - text) + 1 : 0, SIZE_MAX};
}

/* Fills buffer until it has at least one whole record; the chunk is all whole records in it. */
static lapse_status take(lp_chunks *chunks, char *buffer, lp_chunk *chunk, lapse_error *error)
{
    LP_TRY(skip_line(chunks, buffer, error));
    size_t size = 0;
    lp_csv_cut cut = {0, SIZE_MAX};
    bool all = false; /* carry and source are used up */
    for (size_t goal = chunks->chunk_size; cut.size == 0 && !all && size < chunks->limit; goal *= 2) {
        goal = goal < chunks->limit ? goal : chunks->limit;
        size_t part = goal - size < chunks->left ? goal - size : chunks->left;
        memcpy(buffer + size, chunks->carry + chunks->at, part);
        chunks->at += part;
        chunks->left -= part;
        size += part;
        if (size < goal && !chunks->ended) {
            LP_TRY(fill(chunks, buffer + size, goal - size, &part, error));
            size += part;
        }
        all = chunks->ended && chunks->left == 0;
        cut = cut_whole(chunks, buffer, size);
    }
    chunk->size = cut.size;
    if (cut.size < size && all && cut.quote == SIZE_MAX && size < chunks->limit) {
        buffer[size++] = '\n';
        chunk->size = size;
    } else if (cut.size == 0 && size > 0) {
        take_faulty(chunks, buffer, size, cut, chunk);
    } else if (chunks->left > 0) {
        /* All bytes came from carry, so the unused ones are still there. */
        chunks->at -= size - cut.size;
        chunks->left += size - cut.size;
    } else {
        set_carry(chunks, buffer + cut.size, size - cut.size);
    }
    memset(buffer + chunk->size, 0, LP_CSV_PADDING);
    return LAPSE_OK;
}

bool lp_chunks_take(lp_chunks *chunks, char *buffer, lp_chunk *chunk)
{
    *chunk = (lp_chunk){0};
    pthread_mutex_lock(&chunks->lock);
    if (chunks->next < chunks->stop && chunks->status == LAPSE_OK) {
        chunks->status = take(chunks, buffer, chunk, &chunks->error);
        if (chunks->status != LAPSE_OK)
            chunk->size = 0;
        if (chunk->size > 0)
            chunk->index = chunks->next++;
    }
    pthread_mutex_unlock(&chunks->lock);
    return chunk->size > 0;
}

void lp_chunks_stop(lp_chunks *chunks, int64_t index)
{
    pthread_mutex_lock(&chunks->lock);
    if (index < chunks->stop)
        chunks->stop = index;
    pthread_mutex_unlock(&chunks->lock);
}
