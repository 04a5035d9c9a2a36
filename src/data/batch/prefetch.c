/* prefetch.c: makes the next batch on a worker thread. */
#include "data/batch/prefetch.h"

#include "base/assert.h"

lapse_status lp_prefetch_init(lp_prefetch *prefetch, const lp_batch_source *source, const lp_batch *like,
                              lapse_error *error)
{
    *prefetch = (lp_prefetch){.source = *source};
    LP_TRY(lp_batch_init(&prefetch->batch, like->capacity_windows, like->context, like->shard_count, like->field_count,
                         error));
    LP_TRY(lp_batch_init_inputs(&prefetch->batch, lp_batch_inputs_of(like), error));
    if (source->vocabulary) {
        LP_TRY(lp_batch_init_vocabulary(&prefetch->batch, like->negative_count, source->vocabulary->negatives->shared,
                                        source->vocabulary->items, error));
        LP_TRY(lp_row_union_init(&prefetch->rows, &prefetch->batch, error));
    }
    prefetch->worker = lp_worker_new();
    return LAPSE_OK;
}

void lp_prefetch_clear(lp_prefetch *prefetch)
{
    lp_worker_free(prefetch->worker);
    lp_batch_clear(&prefetch->batch);
    lp_row_union_clear(&prefetch->rows);
    lp_windows_clear(&prefetch->windows);
    *prefetch = (lp_prefetch){0};
}

static void make_batch(lp_prefetch *prefetch, const lp_windows *windows)
{
    const lp_batch_source *source = &prefetch->source;
    lp_batch *batch = &prefetch->batch;
    LP_ASSERT(prefetch->position.count <= batch->capacity_windows);
    LP_ASSERT(prefetch->position.window + prefetch->position.count <= windows->count);
    lp_batch_fill(batch, windows, prefetch->position.window, prefetch->position.count, source->targets,
                  source->target_known, source->columns);
    for (int shard = 0; source->vocabulary && shard < batch->shard_count; shard++)
        lp_batch_vocabulary_make(source->vocabulary, batch, shard, source->worker, prefetch->position.step);
    if (source->vocabulary)
        lp_row_union_make(&prefetch->rows, source->vocabulary, batch);
}

static void make(void *context)
{
    lp_prefetch *prefetch = context;
    make_batch(prefetch, prefetch->source.windows);
}

/* On failure epoch_ready stays false: the caller makes the windows itself and reports the error. */
static void make_epoch(void *context)
{
    lp_prefetch *prefetch = context;
    const lp_batch_source *source = &prefetch->source;
    lp_windows *windows = &prefetch->windows;
    lapse_error error;
    if (lp_windows_training(windows, source->targets, source->seed, prefetch->epoch, &error) != LAPSE_OK)
        return;
    lp_windows_shuffle(windows, source->seed, prefetch->epoch);
    int64_t capacity = prefetch->batch.capacity_windows;
    prefetch->position.window = 0;
    prefetch->position.count = (int)(windows->count < capacity ? windows->count : capacity);
    make_batch(prefetch, windows);
    prefetch->epoch_ready = true;
}

void lp_prefetch_start_epoch(lp_prefetch *prefetch, uint32_t epoch, uint32_t step)
{
    if (!prefetch->worker)
        return;
    lp_worker_wait(prefetch->worker);
    prefetch->started.count = 0;
    prefetch->epoch = epoch;
    prefetch->epoch_ready = false;
    prefetch->position = (lp_batch_position){.step = step};
    lp_worker_start(prefetch->worker, make_epoch, prefetch);
}

bool lp_prefetch_take_epoch(lp_prefetch *prefetch, uint32_t epoch, lp_windows *windows)
{
    if (prefetch->worker)
        lp_worker_wait(prefetch->worker);
    if (!prefetch->epoch_ready || prefetch->epoch != epoch)
        return false;
    lp_windows other = *windows;
    *windows = prefetch->windows;
    prefetch->windows = other;
    prefetch->epoch_ready = false;
    return true;
}

static bool same(lp_batch_position a, lp_batch_position b)
{
    return a.step == b.step && a.window == b.window && a.count == b.count;
}

void lp_prefetch_start(lp_prefetch *prefetch, lp_batch_position position)
{
    if (!prefetch->worker || position.count <= 0)
        return;
    if (same(prefetch->started, position))
        return;
    lp_worker_wait(prefetch->worker);
    prefetch->epoch_ready = false;
    prefetch->started = prefetch->position = position;
    lp_worker_start(prefetch->worker, make, prefetch);
}

void lp_prefetch_take(lp_prefetch *prefetch, lp_batch_position position, lp_batch *batch, lp_row_union *rows)
{
    if (prefetch->worker)
        lp_worker_wait(prefetch->worker);
    lp_batch_position made = prefetch->position;
    prefetch->position = position;
    if (prefetch->epoch_ready || !same(made, position))
        make(prefetch); /* a batch of prefetched windows that were not taken belongs to another epoch */
    prefetch->epoch_ready = false;
    LP_ASSERT(prefetch->batch.windows == position.count);
    lp_batch other = *batch;
    lp_row_union other_rows = *rows;
    *batch = prefetch->batch;
    *rows = prefetch->rows;
    prefetch->batch = other;
    prefetch->rows = other_rows;
    prefetch->position.count = prefetch->started.count = 0;
}

void lp_prefetch_cancel(lp_prefetch *prefetch)
{
    if (prefetch->worker)
        lp_worker_wait(prefetch->worker);
    prefetch->position.count = prefetch->started.count = 0;
    prefetch->epoch_ready = false;
}
