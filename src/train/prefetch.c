#include "train/prefetch.h"

/* Makes the batch of a slot, on its thread. */
static void prepare(void *context)
{
    lp_prefetched *slot = context;
    const lp_prefetch_source *source = &slot->owner->source;
    int64_t left = source->windows->count - slot->window;
    int count = left < source->windows_each ? (int)left : source->windows_each;
    lp_batch_fill(&slot->batch, source->windows, slot->window, count, source->targets, source->target_known,
                  source->columns);
    if (!source->lists)
        return;
    lp_shortlists_make(&slot->lists, &slot->batch, 0, 0, slot->step);
    lp_union_make(&slot->rows, &slot->lists, &slot->batch);
}

static lapse_status make_slot(lp_prefetch *prefetch, lp_prefetched *slot, lapse_error *error)
{
    const lp_prefetch_source *source = &prefetch->source;
    slot->owner = prefetch;
    slot->window = -1;
    LP_TRY(lp_batch_init(&slot->batch, source->windows_each, source->context, 1, source->fields, error));
    if (source->lists) {
        LP_TRY(lp_batch_list_items(&slot->batch, source->negatives, source->lists->items, error));
        slot->lists = (lp_shortlists){.negatives = source->lists->negatives,
                                      .dataset = source->lists->dataset,
                                      .kind = source->lists->kind,
                                      .items = source->lists->items,
                                      .threads = 1};
        LP_TRY(lp_shortlists_init(&slot->lists, error));
        LP_TRY(lp_union_init(&slot->rows, &slot->batch, error));
    }
    slot->thread = lp_background_new(prepare, slot);
    return slot->thread ? LAPSE_OK : lp_fail_memory(error, "a thread for batches", sizeof *slot);
}

lapse_status lp_prefetch_init(lp_prefetch *prefetch, const lp_prefetch_source *source, int depth, lapse_error *error)
{
    *prefetch = (lp_prefetch){.source = *source, .slots = lp_alloc((size_t)depth, sizeof *prefetch->slots)};
    lapse_status status =
        prefetch->slots ? LAPSE_OK : lp_fail_memory(error, "batches", (size_t)depth * sizeof *prefetch->slots);
    for (; status == LAPSE_OK && prefetch->depth < depth; prefetch->depth++)
        status = make_slot(prefetch, &prefetch->slots[prefetch->depth], error);
    if (status != LAPSE_OK)
        lp_prefetch_clear(prefetch);
    return status;
}

void lp_prefetch_clear(lp_prefetch *prefetch)
{
    for (int i = 0; i < prefetch->depth; i++) {
        lp_prefetched *slot = &prefetch->slots[i];
        lp_background_free(slot->thread);
        lp_batch_clear(&slot->batch);
        lp_shortlists_clear(&slot->lists);
        lp_union_clear(&slot->rows);
    }
    lp_free(prefetch->slots);
    *prefetch = (lp_prefetch){0};
}

void lp_prefetch_stop(lp_prefetch *prefetch)
{
    for (int i = 0; i < prefetch->depth; i++) {
        lp_background_wait(prefetch->slots[i].thread);
        prefetch->slots[i].window = -1;
    }
}

/* Asks a slot for the batch that begins at `window`, if there is one. */
static void ask(lp_prefetch *prefetch, lp_prefetched *slot, int64_t window, uint32_t step)
{
    slot->window = window < prefetch->source.windows->count ? window : -1;
    slot->step = step;
    if (slot->window >= 0)
        lp_background_ask(slot->thread);
}

void lp_prefetch_take(lp_prefetch *prefetch, int64_t window, uint32_t step, lp_batch *batch, lp_union *rows)
{
    lp_prefetched *slot = &prefetch->slots[prefetch->next];
    int64_t each = prefetch->source.windows_each;
    if (slot->window != window || slot->step != step) { /* an epoch's first step, or a resumed run's */
        lp_prefetch_stop(prefetch);
        for (int i = 0; i < prefetch->depth; i++)
            ask(prefetch, &prefetch->slots[(prefetch->next + i) % prefetch->depth], window + i * each,
                step + (uint32_t)i);
    }
    lp_background_wait(slot->thread);
    lp_batch other_batch = *batch;
    *batch = slot->batch;
    slot->batch = other_batch;
    lp_union other_rows = *rows;
    *rows = slot->rows;
    slot->rows = other_rows;
    ask(prefetch, slot, window + prefetch->depth * each, step + (uint32_t)prefetch->depth);
    prefetch->next = (prefetch->next + 1) % prefetch->depth;
}
