#include "train/prefetch.h"

lapse_status lp_prefetch_init(lp_prefetch *prefetch, const lp_batch_source *source, const lp_batch *like,
                              lapse_error *error)
{
    *prefetch = (lp_prefetch){.source = *source};
    LP_TRY(lp_batch_init(&prefetch->batch, like->capacity_windows, like->context, like->shard_count, like->field_count,
                         error));
    LP_TRY(lp_batch_init_inputs(&prefetch->batch, like->target_gap, like->sequence_id, error));
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

static void make_of(lp_prefetch *prefetch, const lp_windows *windows)
{
    const lp_batch_source *source = &prefetch->source;
    lp_batch *batch = &prefetch->batch;
    lp_batch_fill(batch, windows, prefetch->place.window, prefetch->place.count, source->targets, source->target_known,
                  source->columns);
    for (int shard = 0; source->vocabulary && shard < batch->shard_count; shard++)
        lp_batch_vocabulary_make(source->vocabulary, batch, shard, source->worker, prefetch->place.step);
    if (source->vocabulary)
        lp_row_union_make(&prefetch->rows, source->vocabulary, batch);
}

static void make(void *context)
{
    lp_prefetch *prefetch = context;
    make_of(prefetch, prefetch->source.windows);
}

/* Out of memory is left to be found by who lays them out for want of these. */
static void make_epoch(void *context)
{
    lp_prefetch *prefetch = context;
    const lp_batch_source *source = &prefetch->source;
    lp_windows *windows = &prefetch->windows;
    lapse_error error;
    if (lp_windows_training(windows, source->targets, source->seed, prefetch->epoch, &error) != LAPSE_OK)
        return;
    lp_windows_shuffle(windows, source->seed, prefetch->epoch);
    int64_t most = prefetch->batch.capacity_windows;
    prefetch->place.window = 0;
    prefetch->place.count = (int)(windows->count < most ? windows->count : most);
    make_of(prefetch, windows);
    prefetch->laid_out = true;
}

void lp_prefetch_start_epoch(lp_prefetch *prefetch, uint32_t epoch, uint32_t step)
{
    if (!prefetch->worker)
        return;
    lp_worker_wait(prefetch->worker);
    prefetch->begun.count = 0;
    prefetch->epoch = epoch;
    prefetch->laid_out = false;
    prefetch->place = (lp_batch_place){.step = step};
    lp_worker_start(prefetch->worker, make_epoch, prefetch);
}

bool lp_prefetch_take_epoch(lp_prefetch *prefetch, uint32_t epoch, lp_windows *windows)
{
    if (prefetch->worker)
        lp_worker_wait(prefetch->worker);
    if (!prefetch->laid_out || prefetch->epoch != epoch)
        return false;
    lp_windows other = *windows;
    *windows = prefetch->windows;
    prefetch->windows = other;
    prefetch->laid_out = false;
    return true;
}

static bool same(lp_batch_place a, lp_batch_place b)
{
    return a.step == b.step && a.window == b.window && a.count == b.count;
}

void lp_prefetch_start(lp_prefetch *prefetch, lp_batch_place place)
{
    if (!prefetch->worker || place.count <= 0)
        return;
    if (same(prefetch->begun, place))
        return;
    lp_worker_wait(prefetch->worker);
    prefetch->laid_out = false;
    prefetch->begun = prefetch->place = place;
    lp_worker_start(prefetch->worker, make, prefetch);
}

void lp_prefetch_take(lp_prefetch *prefetch, lp_batch_place place, lp_batch *batch, lp_row_union *rows)
{
    if (prefetch->worker)
        lp_worker_wait(prefetch->worker);
    lp_batch_place made = prefetch->place;
    prefetch->place = place;
    if (prefetch->laid_out || !same(made, place))
        make(prefetch); /* what was laid out and not taken is another epoch's */
    prefetch->laid_out = false;
    lp_batch other = *batch;
    lp_row_union other_rows = *rows;
    *batch = prefetch->batch;
    *rows = prefetch->rows;
    prefetch->batch = other;
    prefetch->rows = other_rows;
    prefetch->place.count = prefetch->begun.count = 0;
}

void lp_prefetch_cancel(lp_prefetch *prefetch)
{
    if (prefetch->worker)
        lp_worker_wait(prefetch->worker);
    prefetch->place.count = prefetch->begun.count = 0;
    prefetch->laid_out = false;
}
