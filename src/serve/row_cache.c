/* row_cache.c: memory of the cached rows of a history. */
#include "serve/row_cache.h"

#include "base/assert.h"

#include <string.h>

/* Events that a new cache has space for, and the fewest by which it grows. */
enum { FEWEST_EVENTS = LP_CACHE_PADDING };

/* An odd number of whole vectors where there are many, so that rows do not map to the same cache sets. */
int lp_row_cache_stride(int64_t capacity)
{
    enum { FEW = 4 };
    int vectors = (int)((capacity + LP_CACHE_PADDING - 1) / LP_CACHE_PADDING);
    return (vectors + (vectors > FEW && vectors % 2 == 0)) * LP_CACHE_PADDING;
}

/* Elements of a cached matrix, with the padding that kernels read and do not use. */
static size_t matrix_size(const lp_value *matrix, int64_t capacity)
{
    size_t size = (size_t)lp_cached_cols(matrix) *
                      (size_t)(lp_cached_transposed(matrix) ? lp_row_cache_stride(capacity) : capacity) +
                  LP_CACHE_PADDING;
    return (size + LP_CACHE_PADDING - 1) / LP_CACHE_PADDING * LP_CACHE_PADDING;
}

static size_t sample_size(const lp_program *program, int64_t capacity)
{
    size_t size = 0;
    for (int i = 0; i < program->cached_count; i++)
        size += matrix_size(program->cached[i], capacity);
    return size;
}

size_t lp_row_cache_bytes(const lp_program *program, int64_t events)
{
    return (size_t)program->samples * sample_size(program, events) * sizeof(float);
}

void lp_row_cache_clear(lp_row_cache *cache)
{
    lp_free(cache->data);
    *cache = (lp_row_cache){0};
}

void lp_row_cache_reset(lp_row_cache *cache)
{
    cache->base = cache->first = cache->event_final = cache->final = 0;
}

void lp_row_cache_drop(lp_row_cache *cache, const lp_program *program, int64_t count)
{
    int64_t left = cache->event_final - count;
    if (!(program->rows_stay || program->event_rows_stay) || left <= 0) {
        lp_row_cache_reset(cache);
        return;
    }
    bool seen = count > cache->first && !program->rows_stay; /* deeper rows have attended to events that are gone */
    cache->base -= count;
    cache->first = cache->first > count ? cache->first - count : 0;
    cache->event_final = left;
    cache->final = cache->final > count && !seen ? cache->final - count : 0;
}

/* Copies `events` events of a matrix, from event `skip` on. */
static void copy_events(const lp_value *matrix, const float *from, int64_t from_capacity, int64_t skip, int64_t events,
                        float *to, int64_t to_capacity)
{
    bool transposed = lp_cached_transposed(matrix);
    size_t width = transposed ? 1 : (size_t)matrix->cols; /* adjacent elements of an event */
    size_t from_stride = transposed ? (size_t)lp_row_cache_stride(from_capacity) : 0,
           to_stride = transposed ? (size_t)lp_row_cache_stride(to_capacity) : 0;
    for (int row = 0; row < (transposed ? matrix->rows : 1); row++)
        memmove(to + (size_t)row * to_stride, from + (size_t)row * from_stride + (size_t)skip * width,
                (size_t)events * width * sizeof *to);
}

/* Moves the rows of events first .. event_final - 1 to the start of `to`, which may be the cache's own memory. */
static void move_rows(lp_row_cache *cache, const lp_program *program, float *to, int64_t capacity)
{
    const float *from = cache->data;
    int64_t events = cache->event_final - cache->first;
    for (int sample = 0; sample < program->samples; sample++)
        for (int i = 0; i < program->cached_count; i++) {
            const lp_value *matrix = program->cached[i];
            if (events > 0)
                copy_events(matrix, from, cache->capacity, cache->first - cache->base, events, to, capacity);
            from += matrix_size(matrix, cache->capacity);
            to += matrix_size(matrix, capacity);
        }
    cache->base = cache->first;
}

int64_t lp_row_cache_capacity(const lp_program *program, int64_t events)
{
    int64_t most = 2 * (int64_t)program->model->config.context;
    int64_t capacity = (events + FEWEST_EVENTS - 1) / FEWEST_EVENTS * FEWEST_EVENTS;
    return capacity < most ? capacity : most;
}

lapse_status lp_row_cache_reserve(lp_row_cache *cache, const lp_program *program, int64_t end, lapse_error *error)
{
    int64_t context = program->model->config.context, need = end - cache->base;
    LP_ASSERT(cache->first >= cache->base && end - cache->first <= context);
    if (need <= cache->capacity)
        return LAPSE_OK;
    if (end - cache->first <= cache->capacity / 2) {
        move_rows(cache, program, cache->data, cache->capacity);
        return LAPSE_OK;
    }
    need = end - cache->first;
    int64_t more = cache->capacity + cache->capacity / 2;
    int64_t capacity = lp_row_cache_capacity(program, need > more ? need : more);
    float *data = lp_alloc((size_t)program->samples * sample_size(program, capacity), sizeof *data);
    if (!data)
        return lp_fail_memory(error, "cached rows", lp_row_cache_bytes(program, capacity));
    move_rows(cache, program, data, capacity);
    lp_free(cache->data);
    cache->data = data;
    cache->capacity = capacity;
    return LAPSE_OK;
}

float *lp_row_cache_matrix(const lp_row_cache *cache, const lp_program *program, int sample, int matrix)
{
    float *data = cache->data + (size_t)sample * sample_size(program, cache->capacity);
    for (int i = 0; i < matrix; i++)
        data += matrix_size(program->cached[i], cache->capacity);
    const lp_value *value = program->cached[matrix];
    return data + (cache->first - cache->base) * (lp_cached_transposed(value) ? 1 : value->cols);
}

void lp_row_cache_feed(const lp_row_cache *cache, const lp_program *program, int sample, int64_t past, void **slots)
{
    float *data = cache->data + (size_t)sample * sample_size(program, cache->capacity);
    int64_t row = cache->first - cache->base;
    for (int i = 0; i < program->cached_count; i++) {
        const lp_value *matrix = program->cached[i];
        slots[matrix->slot] = lp_cached_transposed(matrix) ? data + row : data + (row + past) * matrix->cols;
        data += matrix_size(matrix, cache->capacity);
    }
}

lp_row_mark lp_row_cache_mark(const lp_row_cache *cache)
{
    return (lp_row_mark){cache->first, cache->final, cache->event_final};
}

void lp_row_cache_return(lp_row_cache *cache, const lp_program *program, lp_row_mark mark)
{
    bool moved = cache->first != mark.first;
    if (cache->base > mark.first) { /* rows before it are lost */
        cache->base = cache->first = mark.first;
        cache->final = cache->event_final = mark.first;
        return;
    }
    if (moved && !program->rows_stay)
        cache->final = mark.first;
    if (moved && !program->rows_stay && !program->event_rows_stay)
        cache->event_final = mark.first;
    cache->final = cache->final < mark.final ? cache->final : mark.final;
    cache->event_final = cache->event_final < mark.event_final ? cache->event_final : mark.event_final;
    cache->first = mark.first;
}
