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
    *upcoming = (lp_upcoming){0};
}

static void make(void *context)
{
    lp_upcoming *upcoming = context;
    const lp_batch_source *source = &upcoming->source;
    lp_batch *batch = &upcoming->batch;
    lp_batch_fill(batch, source->windows, upcoming->place.window, upcoming->place.count, source->targets,
                  source->target_known, source->columns);
    for (int shard = 0; source->shortlists && shard < batch->shard_count; shard++)
        lp_shortlists_make(source->shortlists, batch, shard, 0, upcoming->place.step);
    if (source->shortlists)
        lp_union_make(&upcoming->rows, source->shortlists, batch);
}

void lp_upcoming_start(lp_upcoming *upcoming, lp_batch_place place)
{
    if (!upcoming->helper || place.count <= 0)
        return;
    upcoming->place = place;
    lp_helper_start(upcoming->helper, make, upcoming);
}

void lp_upcoming_take(lp_upcoming *upcoming, lp_batch_place place, lp_batch *batch, lp_union *rows)
{
    if (upcoming->helper)
        lp_helper_wait(upcoming->helper);
    lp_batch_place made = upcoming->place;
    upcoming->place = place;
    if (made.step != place.step || made.window != place.window || made.count != place.count)
        make(upcoming);
    lp_batch other = *batch;
    lp_union other_rows = *rows;
    *batch = upcoming->batch;
    *rows = upcoming->rows;
    upcoming->batch = other;
    upcoming->rows = other_rows;
    upcoming->place.count = 0;
}

void lp_upcoming_forget(lp_upcoming *upcoming)
{
    if (upcoming->helper)
        lp_helper_wait(upcoming->helper);
    upcoming->place.count = 0;
}
