#include "train/upcoming.h"

lapse_status lp_upcoming_init(lp_upcoming *upcoming, const lp_batch_source *source, const lp_batch *like,
                              lapse_error *error)
{
    *upcoming = (lp_upcoming){.source = *source};
    LP_TRY(lp_batch_init(&upcoming->batch, like->capacity_windows, like->context, like->shard_count, like->field_count,
                         error));
    if (source->shortlists) {
        LP_TRY(lp_batch_list_items(&upcoming->batch, like->negative_count, source->shortlists->negatives->shared,
                                   source->shortlists->items, error));
        LP_TRY(lp_union_init(&upcoming->rows, &upcoming->batch, error));
    }
    upcoming->helper = lp_helper_new();
    return LAPSE_OK;
}

void lp_upcoming_clear(lp_upcoming *upcoming)
{
    lp_helper_free(upcoming->helper);
    lp_batch_clear(&upcoming->batch);
    lp_union_clear(&upcoming->rows);
    lp_windows_clear(&upcoming->windows);
    *upcoming = (lp_upcoming){0};
}

static void make_of(lp_upcoming *upcoming, const lp_windows *windows)
{
    const lp_batch_source *source = &upcoming->source;
    lp_batch *batch = &upcoming->batch;
    lp_batch_fill(batch, windows, upcoming->place.window, upcoming->place.count, source->targets, source->target_known,
                  source->columns);
    for (int shard = 0; source->shortlists && shard < batch->shard_count; shard++)
        lp_shortlists_make(source->shortlists, batch, shard, source->worker, upcoming->place.step);
    if (source->shortlists)
        lp_union_make(&upcoming->rows, source->shortlists, batch);
}

static void make(void *context)
{
    lp_upcoming *upcoming = context;
    make_of(upcoming, upcoming->source.windows);
}

/* Out of memory is left to be found by who lays them out for want of these. */
static void make_epoch(void *context)
{
    lp_upcoming *upcoming = context;
    const lp_batch_source *source = &upcoming->source;
    lp_windows *windows = &upcoming->windows;
    lapse_error error;
    if (lp_windows_training(windows, source->targets, source->seed, upcoming->epoch, &error) != LAPSE_OK)
        return;
    lp_windows_shuffle(windows, source->seed, upcoming->epoch);
    int64_t most = upcoming->batch.capacity_windows;
    upcoming->place.window = 0;
    upcoming->place.count = (int)(windows->count < most ? windows->count : most);
    make_of(upcoming, windows);
    upcoming->laid_out = true;
}

void lp_upcoming_start_epoch(lp_upcoming *upcoming, uint32_t epoch, uint32_t step)
{
    if (!upcoming->helper)
        return;
    lp_helper_wait(upcoming->helper);
    upcoming->begun.count = 0;
    upcoming->epoch = epoch;
    upcoming->laid_out = false;
    upcoming->place = (lp_batch_place){.step = step};
    lp_helper_start(upcoming->helper, make_epoch, upcoming);
}

bool lp_upcoming_take_epoch(lp_upcoming *upcoming, uint32_t epoch, lp_windows *windows)
{
    if (upcoming->helper)
        lp_helper_wait(upcoming->helper);
    if (!upcoming->laid_out || upcoming->epoch != epoch)
        return false;
    lp_windows other = *windows;
    *windows = upcoming->windows;
    upcoming->windows = other;
    upcoming->laid_out = false;
    return true;
}

static bool same(lp_batch_place a, lp_batch_place b)
{
    return a.step == b.step && a.window == b.window && a.count == b.count;
}

void lp_upcoming_start(lp_upcoming *upcoming, lp_batch_place place)
{
    if (!upcoming->helper || place.count <= 0)
        return;
    if (same(upcoming->begun, place))
        return;
    lp_helper_wait(upcoming->helper);
    upcoming->laid_out = false;
    upcoming->begun = upcoming->place = place;
    lp_helper_start(upcoming->helper, make, upcoming);
}

void lp_upcoming_take(lp_upcoming *upcoming, lp_batch_place place, lp_batch *batch, lp_union *rows)
{
    if (upcoming->helper)
        lp_helper_wait(upcoming->helper);
    lp_batch_place made = upcoming->place;
    upcoming->place = place;
    if (upcoming->laid_out || !same(made, place))
        make(upcoming); /* what was laid out and not taken is another epoch's */
    upcoming->laid_out = false;
    lp_batch other = *batch;
    lp_union other_rows = *rows;
    *batch = upcoming->batch;
    *rows = upcoming->rows;
    upcoming->batch = other;
    upcoming->rows = other_rows;
    upcoming->place.count = upcoming->begun.count = 0;
}

void lp_upcoming_forget(lp_upcoming *upcoming)
{
    if (upcoming->helper)
        lp_helper_wait(upcoming->helper);
    upcoming->place.count = upcoming->begun.count = 0;
    upcoming->laid_out = false;
}
