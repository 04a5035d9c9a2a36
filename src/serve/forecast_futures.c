/* forecast_futures.c: futures of one history, drawn together, event by event (forecast.h).
 *
 * Their times and types come from branches of the history (branches.h). A future with more events than its branch holds is drawn to its
 * end alone, with these events as part of the history.
 */
#include "model/when_head.h"
#include "serve/forecast.h"

/* Draws of one future: its random numbers lie in a range of their own. */
enum { DRAWS_BITS = 24 };

/* Draws the type of the next event of a future and counts it. */
static void draw_type(const lp_forecast_job *j, lp_future_worker *w, int32_t number, const double *probabilities)
{
    lp_future *f = &w->futures[number];
    f->type = lp_draw_type(probabilities, j->model->config.event_types, &f->random);
    f->events++;
    if (j->options->steps > 0) {
        int step = (int)((f->time - w->begin) / j->options->horizon * j->options->steps);
        w->steps[step < j->options->steps ? step : j->options->steps - 1]++;
    }
    if (w->drawn[f->type]++ == 0)
        w->touched[w->touched_count++] = (int32_t)f->type;
    w->seen[f->type * LP_SEEN_WORDS + number / 64] |= UINT64_C(1) << (number % 64);
}

/* Ends a group: adds its events by type to those of its sequence, unless it does not count. */
static void end_group(const lp_forecast_job *j, lp_future_worker *w, int64_t sequence, bool counts)
{
    for (int64_t i = 0; i < w->touched_count; i++) {
        int64_t type = w->touched[i], out = sequence * j->out->type_count + type;
        uint64_t *seen = w->seen + type * LP_SEEN_WORDS;
        int futures = 0;
        for (int word = 0; word < LP_SEEN_WORDS; word++) {
            futures += __builtin_popcountll(seen[word]);
            seen[word] = 0;
        }
        if (counts) {
            j->out->type_expected[out] += w->drawn[type];
            j->out->type_any[out] += futures;
        }
        w->drawn[type] = 0;
    }
    w->touched_count = 0;
    for (int i = 0; i < j->options->steps; i++) {
        if (counts)
            j->out->step_expected[sequence * j->options->steps + i] += w->steps[i];
        w->steps[i] = 0;
    }
}

/* Draws the times of the next events of w->active[0 .. count-1]. Returns how many come until `end`; they are active then. */
static lapse_status draw_times(lp_future_worker *w, double end, int *count, lapse_error *error)
{
    int rows = *count;
    *count = 0;
    LP_TRY(lp_branches_laws(&w->branches, rows, w->active, error));
    for (int i = 0; i < rows; i++) {
        lp_future *f = &w->futures[w->active[i]];
        lp_next_time law = lp_branches_law(&w->branches, i);
        f->time += lp_next_time_draw(&law, &f->random);
        if (f->time <= end)
            w->active[(*count)++] = w->active[i];
    }
    return LAPSE_OK;
}

/* Draws w->active[0 .. count-1], whose next times are known, until the horizon or until their branches have no space for an event:
 * full[0 .. *full_count-1]. */
static lapse_status draw_active(lp_forecast_job *j, lp_future_worker *w, double end, int count, int32_t *full,
                                int *full_count, lapse_error *error)
{
    int most = j->trial ? LP_TRIAL_EVENTS : LP_FUTURE_EVENTS;
    *full_count = 0;
    int64_t types = j->model->config.event_types;
    while (count > 0 && !w->stopped) {
        int rows = count;
        for (int i = 0; i < rows; i++)
            w->times[i] = w->futures[w->active[i]].time;
        LP_TRY(lp_branches_types(&w->branches, rows, w->active, w->times, w->probabilities, error));
        count = 0;
        for (int i = 0; i < rows; i++) {
            int32_t number = w->active[i];
            lp_future *f = &w->futures[number];
            draw_type(j, w, number, w->probabilities + i * types);
            if (f->events == most) {
                f->cut = true;
                continue;
            }
            if (!lp_branches_has_space(&w->branches, number)) {
                full[(*full_count)++] = number;
                continue;
            }
            lp_branches_add(&w->branches, number, (int32_t)f->type);
            w->active[count++] = number;
        }
        if (!lp_forecast_count(j, w, rows) && count > 0)
            LP_TRY(draw_times(w, end, &count, error));
    }
    return LAPSE_OK;
}

/* Draws a future to its end, alone: the events of its branch become part of the session's history. */
static lapse_status draw_alone(lp_forecast_job *j, lp_future_worker *w, double end, int32_t number, lapse_error *error)
{
    for (int full = 1; full > 0 && !w->stopped;) {
        int count = 1;
        LP_TRY(lp_branches_commit(&w->branches, number, (int32_t)w->futures[number].type, error));
        w->active[0] = number;
        LP_TRY(draw_times(w, end, &count, error));
        LP_TRY(draw_active(j, w, end, count, &number, &full, error));
    }
    return LAPSE_OK;
}

lapse_status lp_futures_draw(lp_forecast_job *j, int thread, int64_t sequence, int64_t first, int count, double now,
                             const lp_next_time *law, bool *moved, lapse_error *error)
{
    lp_future_worker *w = &j->workers[thread];
    double end = now + j->options->horizon;
    int active = 0, full;
    w->stopped = false;
    w->begin = now;
    for (int i = 0; i < count; i++) {
        lp_future *f = &w->futures[i];
        *f = (lp_future){.random = lp_random_start(j->options->seed, LP_PURPOSE_FORECAST, 1 + (uint32_t)sequence)};
        f->random.element = (uint64_t)(first + i) << DRAWS_BITS;
        f->time = now + lp_next_time_draw(law, &f->random);
        lp_branches_reset(&w->branches, i);
        if (f->time <= end)
            w->active[active++] = i;
    }
    LP_TRY(draw_active(j, w, end, active, w->full, &full, error));
    *moved = full > 0 && !j->trial;
    for (int i = 0; i < full && !w->stopped; i++) {
        if (j->trial) {
            w->futures[w->full[i]].cut = true;
            continue;
        }
        if (i > 0)
            LP_TRY(lp_forecast_read(j, thread, sequence, error));
        LP_TRY(draw_alone(j, w, end, w->full[i], error));
    }
    for (int i = 0; i < count && !j->trial && !w->stopped; i++) {
        w->counts[first + i] = w->futures[i].events;
        if (w->futures[i].cut)
            atomic_fetch_add(&j->cut, 1);
    }
    end_group(j, w, sequence, !j->trial && !w->stopped);
    return LAPSE_OK;
}
