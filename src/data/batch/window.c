/* window.c: divides sequences into windows for training and for evaluation. */
#include "data/batch/window.h"

#include "base/assert.h"
#include "base/random.h"

/* Allocates once for any epoch: one more window per sequence than full tiles. */
static lapse_status reserve(lp_windows *list, const lp_targets *targets, int stride, lapse_error *error)
{
    list->count = list->targets = 0;
    if (list->windows)
        return LAPSE_OK;
    const lapse_dataset *dataset = targets->dataset;
    int64_t capacity = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        capacity += (int64_t)(dataset->start[s + 1] - dataset->start[s]) / stride + 2;
    list->windows = lp_alloc((size_t)capacity, sizeof *list->windows);
    if (!list->windows)
        return lp_fail_memory(error, "the list of windows", (size_t)capacity * sizeof *list->windows);
    list->capacity = capacity;
    return LAPSE_OK;
}

/* The number of targets among `count` events from `first` on. */
static int64_t count_targets(const lp_targets *targets, int64_t first, int64_t count)
{
    enum { TOGETHER = 255 }; /* counts up to 255 fit a byte, which makes the inner loop vectorizable */
    if (!targets->split)
        return count;
    bool all = targets->wanted == LP_SPLIT_COUNT; /* then it counts events that are not targets */
    const uint8_t *split = targets->split + first, wanted = (uint8_t)(all ? LP_SPLIT_NONE : targets->wanted);
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i += TOGETHER) {
        int64_t end = i + TOGETHER < count ? i + TOGETHER : count;
        uint8_t some = 0;
        for (int64_t k = i; k < end; k++)
            some = (uint8_t)(some + (split[k] == wanted));
        sum += some;
    }
    return all ? count - sum : sum;
}

/* The position of a sequence whose target is open: its last event in the split, if the observation ends later. -1: none. */
static int64_t open_position(const lp_targets *targets, int64_t start, int64_t end)
{
    int64_t event = end - 1;
    while (targets->censored && event >= start && !lp_targets_include(targets, event))
        event--;
    return targets->censored && event >= start && targets->dataset->time[event] < targets->end ? event - start : -1;
}

/* Whether the event after a position is a target. open: open_position. */
static bool has_target(const lp_targets *targets, int64_t start, int64_t position, int64_t open)
{
    return position == open || lp_targets_include(targets, start + position + 1);
}

/* Appends a window, which lies within its sequence and has a target. */
static void append(lp_windows *list, const lp_targets *targets, lp_window window)
{
    LP_ASSERT(list->count < list->capacity);
    LP_ASSERT(window.count > 0 && window.count <= targets->context);
    LP_ASSERT(window.from >= 0 && window.from < window.count);
    LP_ASSERT(window.first >= (int64_t)targets->dataset->start[window.sequence]);
    LP_ASSERT(window.first + window.count <= (int64_t)targets->dataset->start[window.sequence + 1]);
    list->windows[list->count++] = window;
}

/* Adds the windows of one sequence. A window predicts the events after `stride` positions (the first window: after
 * `first_end` positions), less those at either end that are not targets; with overlap it also has the preceding events
 * as far as the context allows. */
static void add_windows(lp_windows *list, const lp_targets *targets, int64_t sequence, int64_t first_end,
                        int64_t stride, bool overlap)
{
    const lapse_dataset *dataset = targets->dataset;
    int64_t start = (int64_t)dataset->start[sequence], stop = (int64_t)dataset->start[sequence + 1];
    int64_t open = open_position(targets, start, stop),
            positions = stop - start - 1; /* the last event is a target only */
    int64_t end = 0;                      /* positions before are done */
    positions = open == positions ? positions + 1 : positions;
    while (end < positions) {
        int64_t begin = end;
        end = begin == 0 ? first_end : begin + stride;
        end = end < positions ? end : positions;
        int64_t from = begin, done = end;
        while (from < end && !has_target(targets, start, from, open))
            from++;
        while (done > from && !has_target(targets, start, done - 1, open))
            done--;
        if (from == done)
            continue;
        int64_t earliest = done > targets->context ? done - targets->context : 0;
        int64_t first = overlap ? earliest : begin;
        append(list, targets, (lp_window){sequence, start + first, (int32_t)(done - first), (int32_t)(from - first)});
        bool ends_open = done - 1 == open;
        list->targets += count_targets(targets, start + from + 1, done - from - ends_open) + ends_open;
    }
}

/* The last window of a sequence: it ends at its last target and fills the context. */
static void add_last_window(lp_windows *list, const lp_targets *targets, int64_t sequence)
{
    const lapse_dataset *dataset = targets->dataset;
    int64_t start = (int64_t)dataset->start[sequence], stop = (int64_t)dataset->start[sequence + 1];
    int64_t open = open_position(targets, start, stop), done = open >= 0 ? open + 1 : stop - start - 1;
    while (done > 0 && !has_target(targets, start, done - 1, open))
        done--;
    int64_t first = done > targets->context ? done - targets->context : 0;
    int64_t wanted = count_targets(targets, start + first + 1, done - first - (open >= 0)) + (open >= 0);
    if (wanted > 0)
        append(list, targets, (lp_window){sequence, start + first, (int32_t)(done - first), 0});
    list->targets += wanted;
}

lapse_status lp_windows_evaluation(lp_windows *list, const lp_targets *targets, lapse_error *error)
{
    int stride = targets->context > 1 && !targets->last_only ? targets->context / 2 : 1;
    LP_TRY(reserve(list, targets, stride, error));
    for (int64_t s = 0; s < targets->dataset->sequence_count; s++)
        add_windows(list, targets, s, targets->last_only ? 1 : targets->context, stride, true);
    return LAPSE_OK;
}

lapse_status lp_windows_training(lp_windows *list, const lp_targets *targets, uint64_t seed, uint32_t epoch,
                                 lapse_error *error)
{
    const lapse_dataset *dataset = targets->dataset;
    if (targets->last_only)
        return lp_windows_evaluation(list, targets, error);
    LP_TRY(reserve(list, targets, targets->context, error));
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t positions = (int64_t)(dataset->start[s + 1] - dataset->start[s]) - !targets->censored;
        int64_t first_end = targets->context;
        if (targets->last_windows) {
            add_last_window(list, targets, s);
            continue;
        }
        if (positions > targets->context) {
            lp_random_block block = lp_philox(seed, LP_PURPOSE_OFFSET, epoch, (uint64_t)s);
            first_end = 1 + (int64_t)(((uint64_t)block.word[0] * (uint64_t)targets->context) >> 32);
        }
        add_windows(list, targets, s, first_end, targets->context, false);
    }
    return LAPSE_OK;
}

void lp_windows_clear(lp_windows *list)
{
    lp_free(list->windows);
    *list = (lp_windows){0};
}

void lp_windows_shuffle(lp_windows *list, uint64_t seed, uint32_t epoch)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_ORDER, epoch);
    for (int64_t i = list->count - 1; i > 0; i--) {
        int64_t j = lp_random_below(&random, (uint32_t)(i + 1));
        lp_window window = list->windows[i];
        list->windows[i] = list->windows[j];
        list->windows[j] = window;
    }
}
