/* row_cache.c: memory of the cached rows of a history. */
#include "serve/row_cache.h"

#include "base/assert.h"

#include <string.h>

/* Elements of a cache line: matrices begin with one. */
enum { LINE = 16 };

static size_t matrix_size(const lp_value *matrix, int64_t capacity)
{
    size_t size = (size_t)matrix->cols * (size_t)capacity;
    return (size + LINE - 1) / LINE * LINE;
}

static size_t sample_size(const lp_program *program, int64_t capacity)
{
    size_t size = 0;
    for (int i = 0; i < program->stored_count; i++)
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
    cache->first = cache->final = 0;
    cache->stamp = 0;
}

void lp_row_cache_begin(lp_row_cache *cache, int64_t first)
{
    static uint64_t stamps;
    if (cache->first != first || cache->stamp == 0)
        cache->stamp = __atomic_add_fetch(&stamps, 1, __ATOMIC_RELAXED);
    if (cache->first != first)
        cache->first = cache->final = first;
}

void lp_row_cache_drop(lp_row_cache *cache, int64_t count)
{
    if (cache->first < count) { /* the window has lost events */
        lp_row_cache_reset(cache);
        return;
    }
    cache->first -= count;
    cache->final -= count;
    cache->stamp = 0;
}

lapse_status lp_row_cache_reserve(lp_row_cache *cache, const lp_program *program, int64_t end, lapse_error *error)
{
    int64_t context = program->model->config.context, need = end - cache->first, events = cache->final - cache->first;
    LP_ASSERT(need <= context);
    if (need <= cache->capacity)
        return LAPSE_OK;
    int64_t more = cache->capacity + cache->capacity / 8 + 1, capacity = need > more      ? need
                                                                         : more < context ? more
                                                                                          : context;
    lp_row_cache grown = {.data = lp_alloc_raw(lp_row_cache_bytes(program, capacity), 1), .capacity = capacity};
    if (!grown.data)
        return lp_fail_memory(error, "cached rows", lp_row_cache_bytes(program, capacity));
    for (int sample = 0; events > 0 && sample < program->samples; sample++)
        for (int i = 0; i < program->stored_count; i++)
            memcpy(lp_row_cache_matrix(&grown, program, sample, i), lp_row_cache_matrix(cache, program, sample, i),
                   (size_t)events * (size_t)program->cached[i]->cols * sizeof(float));
    lp_free(cache->data);
    cache->data = grown.data;
    cache->capacity = capacity;
    return LAPSE_OK;
}

float *lp_row_cache_matrix(const lp_row_cache *cache, const lp_program *program, int sample, int matrix)
{
    float *data = cache->data + (size_t)sample * sample_size(program, cache->capacity);
    for (int i = 0; i < matrix; i++)
        data += matrix_size(program->cached[i], cache->capacity);
    return data;
}

void lp_row_cache_feed(const lp_row_cache *cache, const lp_program *program, int sample, int64_t past, void **slots)
{
    float *data = lp_row_cache_matrix(cache, program, sample, 0);
    for (int i = 0; i < program->stored_count; i++) {
        const lp_value *matrix = program->cached[i];
        slots[matrix->slot] = data + past * matrix->cols;
        data += matrix_size(matrix, cache->capacity);
    }
}

lp_row_mark lp_row_cache_mark(const lp_row_cache *cache)
{
    return (lp_row_mark){cache->first, cache->final};
}

void lp_row_cache_return(lp_row_cache *cache, lp_row_mark mark)
{
    if (cache->first != mark.first) /* its rows are lost */
        cache->first = cache->final = mark.first;
    cache->stamp = 0;
    cache->final = cache->final < mark.final ? cache->final : mark.final;
}
