#include "data/batch/window.h"

#include "base/random.h"

/* Room for every window that any epoch could need: one more than full tiles, for each sequence. */
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

/* How many of `count` events from `first` on are asked for. */
static int64_t count_wanted(const lp_targets *targets, int64_t first, int64_t count)
{
    enum { TOGETHER = 255 }; /* whose number a byte can hold */
    if (targets->wanted == LP_SPLIT_COUNT)
        return count;
    const uint8_t *split = targets->split + first, wanted = (uint8_t)targets->wanted;
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i += TOGETHER) {
        int64_t end = i + TOGETHER < count ? i + TOGETHER : count;
        uint8_t some = 0;
        for (int64_t k = i; k < end; k++)
            some = (uint8_t)(some + (split[k] == wanted));
        sum += some;
    }
    return sum;
}

/* Covers one sequence. A window that has to ask for the event after place `ask` ends `stride` places later (the first
 * at `first_end`); where windows overlap it reaches back as far as the context allows. */
static void cover(lp_windows *list, const lp_targets *targets, int64_t sequence, int64_t first_end, int64_t stride,
                  bool overlap)
{
    const lapse_dataset *dataset = targets->dataset;
    int64_t start = (int64_t)dataset->start[sequence], last = (int64_t)dataset->start[sequence + 1] - 1;
    int64_t places = last - start; /* the last event is only asked for */
    int64_t end = 0;               /* places before this one are done */
    while (end < places) {
        int64_t begin = end;
        end = begin == 0 ? first_end : begin + stride;
        end = end < places ? end : places;
        int64_t ask = begin, done = end;
        while (ask < end && !lp_targets_want(targets, start + ask + 1))
            ask++;
        while (done > ask && !lp_targets_want(targets, start + done))
            done--;
        if (ask == done)
            continue;
        int64_t reach = done > targets->context ? done - targets->context : 0;
        int64_t first = overlap ? reach : begin;
        list->windows[list->count++] =
            (lp_window){sequence, start + first, (int32_t)(done - first), (int32_t)(ask - first)};
        list->targets += count_wanted(targets, start + ask + 1, done - ask);
    }
}

/* One window of a sequence: the last places that are asked after, as many as the context holds. */
static void cover_last(lp_windows *list, const lp_targets *targets, int64_t sequence)
{
    const lapse_dataset *dataset = targets->dataset;
    int64_t start = (int64_t)dataset->start[sequence], done = (int64_t)dataset->start[sequence + 1] - 1 - start;
    while (done > 0 && !lp_targets_want(targets, start + done))
        done--;
    int64_t first = done > targets->context ? done - targets->context : 0;
    int64_t wanted = count_wanted(targets, start + first + 1, done - first);
    if (wanted > 0)
        list->windows[list->count++] = (lp_window){sequence, start + first, (int32_t)(done - first), 0};
    list->targets += wanted;
}

lapse_status lp_windows_evaluation(lp_windows *list, const lp_targets *targets, lapse_error *error)
{
    int stride = targets->context > 1 && !targets->last_only ? targets->context / 2 : 1;
    LP_TRY(reserve(list, targets, stride, error));
    for (int64_t s = 0; s < targets->dataset->sequence_count; s++)
        cover(list, targets, s, targets->last_only ? 1 : targets->context, stride, true);
    return LAPSE_OK;
}

lapse_status lp_windows_training(lp_windows *list, const lp_targets *targets, uint64_t seed, uint32_t epoch,
                                 lapse_error *error)
{
    const lapse_dataset *dataset = targets->dataset;
    LP_TRY(reserve(list, targets, targets->context, error));
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t places = (int64_t)(dataset->start[s + 1] - dataset->start[s]) - 1, first_end = targets->context;
        if (targets->last_windows) {
            cover_last(list, targets, s);
            continue;
        }
        if (places > targets->context) {
            lp_random_block block = lp_philox(seed, LP_PURPOSE_OFFSET, epoch, (uint64_t)s);
            first_end = 1 + (int64_t)(((uint64_t)block.word[0] * (uint64_t)targets->context) >> 32);
        }
        cover(list, targets, s, first_end, targets->context, false);
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
