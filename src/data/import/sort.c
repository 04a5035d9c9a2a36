/* sort.c: sorts a sequence by time. Most sources are already sorted, which one pass over a sequence detects. The
 * others are merge-sorted, because that is stable; the scratch buffer is half a sequence. */
#include "data/import/sort.h"

#include "base/memory.h"

#include <string.h>

typedef struct lp_sort_event {
    double time;
    int32_t type;
    uint8_t split;
} event;

/* Stable merge sort; spare has count / 2 events. */
static void sort_events(event *events, size_t count, event *spare)
{
    enum { FEW = 24 };
    if (count <= FEW) {
        for (size_t i = 1; i < count; i++) {
            event moving = events[i];
            size_t j = i;
            for (; j > 0 && events[j - 1].time > moving.time; j--)
                events[j] = events[j - 1];
            events[j] = moving;
        }
        return;
    }
    size_t half = count / 2;
    sort_events(events, half, spare);
    sort_events(events + half, count - half, spare);
    if (events[half - 1].time <= events[half].time)
        return;
    memcpy(spare, events, half * sizeof *events);
    size_t left = 0, right = half, out = 0;
    while (left < half && right < count)
        events[out++] = events[right].time < spare[left].time ? events[right++] : spare[left++];
    memcpy(events + out, spare + left, (half - left) * sizeof *events);
}

/* Permutes a column: events[i].type is the index before sorting. spare must hold the column. */
static void reorder(void *column, size_t size, size_t count, const event *events, void *spare)
{
    memcpy(spare, column, count * size);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)column + i * size, (const char *)spare + (uint32_t)events[i].type * size, size);
}

/* With fields, sorts only times and indices, then permutes every column. An index is 32 bits: a sequence of 2^32
 * events would need more than 24 GB of text. */
static void sort_with_fields(const lp_sequence_columns *columns, size_t first, size_t count, event *events)
{
    for (size_t i = 0; i < count; i++)
        events[i] = (event){columns->time[first + i], (int32_t)(uint32_t)i, 0};
    sort_events(events, count, events + count);
    for (size_t i = 0; i < count; i++)
        columns->time[first + i] = events[i].time;
    reorder(columns->type + first, sizeof *columns->type, count, events, events + count);
    if (columns->split)
        reorder(columns->split + first, sizeof *columns->split, count, events, events + count);
    for (int f = 0; f < columns->field_count; f++) {
        size_t size = columns->field_size[f];
        reorder((char *)columns->field[f] + first * size, size, count, events, events + count);
    }
}

static void sort_plain(const lp_sequence_columns *columns, size_t first, size_t count, event *events)
{
    for (size_t i = 0; i < count; i++)
        events[i] =
            (event){columns->time[first + i], columns->type[first + i], columns->split ? columns->split[first + i] : 0};
    sort_events(events, count, events + count);
    for (size_t i = 0; i < count; i++) {
        columns->time[first + i] = events[i].time;
        columns->type[first + i] = events[i].type;
        if (columns->split)
            columns->split[first + i] = events[i].split;
    }
}

/* A loop without branches, which the compiler vectorizes. */
static bool is_sorted(const double *time, size_t count)
{
    int falls = 0;
    for (size_t i = 1; i < count; i++)
        falls |= time[i] < time[i - 1];
    return !falls;
}

static int64_t count_late(const double *time, size_t count)
{
    double latest = count ? time[0] : 0;
    int64_t late = 0;
    for (size_t i = 1; i < count; i++) {
        late += time[i] < latest;
        latest = time[i] > latest ? time[i] : latest;
    }
    return late;
}

bool lp_sort_sequence(const lp_sequence_columns *columns, size_t first, size_t count, lp_sort_space *space,
                      int64_t *late)
{
    size_t needed = count + count / 2 + 1;
    if (is_sorted(columns->time + first, count))
        return true;
    int64_t found = count_late(columns->time + first, count);
    if (needed > space->capacity) {
        lp_free(space->events);
        space->events = lp_grow(NULL, needed, sizeof *space->events);
        space->capacity = space->events ? needed : 0;
        if (!space->events)
            return false;
    }
    if (columns->field_count > 0)
        sort_with_fields(columns, first, count, space->events);
    else
        sort_plain(columns, first, count, space->events);
    *late += found;
    return true;
}

static void swap_bytes(void *column, size_t size, size_t a, size_t b)
{
    char spare[8], *base = column;
    memcpy(spare, base + a * size, size);
    memcpy(base + a * size, base + b * size, size);
    memcpy(base + b * size, spare, size);
}

static void swap_events(const lp_sequence_columns *columns, size_t a, size_t b)
{
    swap_bytes(columns->type, sizeof *columns->type, a, b);
    if (columns->split)
        swap_bytes(columns->split, sizeof *columns->split, a, b);
    for (int f = 0; f < columns->field_count; f++)
        swap_bytes(columns->field[f], columns->field_size[f], a, b);
}

/* A random number for a position (the finalizer of SplitMix64). */
static uint64_t mixed(uint64_t value)
{
    value = (value + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 30) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

void lp_shuffle_ties(const lp_sequence_columns *columns, size_t first, size_t count)
{
    size_t end = first + count, last;
    for (size_t begin = first; begin < end; begin = last) {
        for (last = begin + 1; last < end && columns->time[last] == columns->time[begin]; last++)
            ;
        for (size_t left = last - begin; left > 1; left--)
            swap_events(columns, begin + left - 1, begin + (size_t)(mixed(begin + left) % left));
    }
}
