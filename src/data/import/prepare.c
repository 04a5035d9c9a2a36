/* prepare.c: preprocesses events that are sorted by sequence and time:
 *   1. mark sequences with few events, then event types of few sequences, once each
 *   2. sessions: split a sequence wherever the gap to the next event is too long
 *   3. mark duplicates within each sequence
 *   4. mark rare event types, then short sequences; once, or iterated until both minimums hold (k-core filtering)
 *   5. compact every column: remove the marked events
 * Events are marked and not removed before the sessions are split: the gap between two sessions does not depend on which
 * events are dropped.
 *
 * Iterations after the first process only what the last one took below a minimum, so that the total cost is linear.
 */
#include "data/import/prepare.h"

#include "base/memory.h"

#include <string.h>

const char *const lp_deduplicate_names[] = {"none", "exact", "consecutive", NULL};
const char *const lp_min_rounds_names[] = {"once", "iterated", NULL};

enum { EMPTY = -1 };

typedef struct work {
    const lp_preparation *preparation;
    lp_sequence_columns *columns;
    int64_t *type_count;
    int64_t types, events;
    int64_t min_length; /* minimum length of a sequence, at min_length 1 */
    uint8_t *dropped;   /* owned; [event] */
    int64_t *left;      /* owned; [sequence]: events that are not dropped; EMPTY: step 1 has dropped all of them */
    lp_origin *origins; /* owned until the caller takes it */

    /* Queues of types and sequences that fell below their minimum and are not yet dropped. */
    int64_t *rare_queue, *short_queue; /* owned; event types and sequences */
    int64_t rare_count, short_count;
    uint64_t *type_start, *type_events; /* owned; the events of type k are type_events[type_start[k] .. type_start[k +
                                         * 1] - 1] */
} work;

/* --------------------------------------------------------------------------------- 1. minimums of the source - */

static void drop_inactive(work *w)
{
    const lp_sequence_columns *columns = w->columns;
    lapse_import_report *report = w->preparation->report;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        int64_t count = (int64_t)(columns->start[s + 1] - columns->start[s]);
        if (count >= w->preparation->min_sequence_events)
            continue;
        report->inactive_sequences++;
        report->inactive_rows += count;
        memset(w->dropped + columns->start[s], 1, (size_t)count);
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++)
            w->type_count[columns->type[i]]--;
    }
}

/* Drops the event types that too few sequences have. users, last: zeroed scratch of [types]. */
static void drop_unpopular(work *w, int64_t *users, int64_t *last)
{
    const lp_sequence_columns *columns = w->columns;
    lapse_import_report *report = w->preparation->report;
    for (int64_t s = 0; s < columns->sequence_count; s++)
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++) {
            if (w->dropped[i] || last[columns->type[i]] == s + 1)
                continue;
            users[columns->type[i]]++;
            last[columns->type[i]] = s + 1;
        }
    for (int64_t k = 0; k < w->types; k++) {
        if (users[k] == 0 || users[k] >= w->preparation->min_users)
            continue;
        report->unpopular_event_types++;
        report->unpopular_rows += w->type_count[k];
        w->type_count[k] = 0;
    }
    for (int64_t i = 0; i < w->events; i++)
        w->dropped[i] |= users[columns->type[i]] < w->preparation->min_users;
}

static bool filter_source(work *w)
{
    drop_inactive(w);
    if (w->preparation->min_users <= 1)
        return true;
    int64_t *users = lp_alloc((size_t)w->types, sizeof *users), *last = lp_alloc((size_t)w->types, sizeof *last);
    if (users && last)
        drop_unpopular(w, users, last);
    bool good = users && last;
    lp_free(users);
    lp_free(last);
    return good;
}

/* ------------------------------------------------------------------------------------------------ 2. sessions - */

static bool split_sessions(work *w)
{
    lp_sequence_columns *columns = w->columns;
    double gap = w->preparation->session_gap;
    int64_t sequences = columns->sequence_count, sessions = sequences;
    const double *time = columns->time;
    for (int64_t s = 0; gap > 0 && s < sequences; s++) {
        int64_t before = sessions;
        for (uint64_t i = columns->start[s] + 1; i < columns->start[s + 1]; i++)
            sessions += time[i] - time[i - 1] > gap;
        w->preparation->report->cut_sequences += sessions > before;
    }
    w->preparation->report->sessions = gap > 0 ? sessions : 0;
    w->origins = lp_grow(NULL, (size_t)sessions, sizeof *w->origins);
    uint64_t *start = lp_grow(NULL, (size_t)sessions + 1, sizeof *start);
    if (!w->origins || !start) {
        lp_free(start);
        return false;
    }
    int64_t made = 0;
    for (int64_t s = 0; s < sequences; s++) {
        int64_t part = gap > 0;
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++) {
            bool first = i == columns->start[s];
            if (!first && !(gap > 0 && time[i] - time[i - 1] > gap))
                continue;
            w->origins[made] = (lp_origin){s, first ? part : ++part};
            start[made++] = i;
        }
    }
    start[made] = (uint64_t)w->events;
    lp_free(columns->start);
    columns->start = start;
    columns->sequence_count = made;
    return true;
}

/* ----------------------------------------------------------------------------------------- 3. duplicates ------ */

static void drop(work *w, int64_t sequence, uint64_t event)
{
    w->dropped[event] = 1;
    w->type_count[w->columns->type[event]]--;
    w->left[sequence]--;
}

static void drop_duplicate(work *w, int64_t sequence, uint64_t event)
{
    drop(w, sequence, event);
    w->preparation->report->duplicate_rows++;
}

/* An event with the type of the event before it that is not marked yet or a duplicate itself. */
static void drop_consecutive(work *w)
{
    const lp_sequence_columns *columns = w->columns;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        int32_t last = -1;
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++) {
            if (w->dropped[i])
                continue;
            if (columns->type[i] == last)
                drop_duplicate(w, s, i);
            last = columns->type[i];
        }
    }
}

/* last_group[type] is the first event of the last group of equal times that had the type. This is linear: a group may
 * be as long as the dataset. */
static void drop_exact(work *w, uint64_t *last_group)
{
    const lp_sequence_columns *columns = w->columns;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        uint64_t end = columns->start[s + 1], last;
        for (uint64_t first = columns->start[s]; first < end; first = last) {
            for (last = first + 1; last < end && columns->time[last] == columns->time[first]; last++)
                ;
            for (uint64_t i = first; last - first > 1 && i < last; i++) {
                if (w->dropped[i])
                    continue;
                if (last_group[columns->type[i]] == first)
                    drop_duplicate(w, s, i);
                last_group[columns->type[i]] = first;
            }
        }
    }
}

static bool drop_duplicates(work *w)
{
    if (w->preparation->deduplicate == LP_DEDUPLICATE_CONSECUTIVE)
        drop_consecutive(w);
    if (w->preparation->deduplicate == LP_DEDUPLICATE_EXACT) {
        uint64_t *last_group = lp_grow(NULL, (size_t)w->types, sizeof *last_group);
        if (!last_group)
            return false;
        memset(last_group, 0xFF, (size_t)w->types * sizeof *last_group);
        drop_exact(w, last_group);
        lp_free(last_group);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- 4. minimums ------ */

static void drop_sequence(work *w, int64_t sequence)
{
    const lp_sequence_columns *columns = w->columns;
    w->preparation->report->short_sequences++;
    w->preparation->report->short_rows += w->left[sequence];
    for (uint64_t i = columns->start[sequence]; i < columns->start[sequence + 1]; i++) {
        if (w->dropped[i])
            continue;
        drop(w, sequence, i);
        int64_t count = w->type_count[columns->type[i]];
        if (count > 0 && count == w->preparation->min_count - 1)
            w->rare_queue[w->rare_count++] = columns->type[i];
    }
}

/* The first iteration. Dropping rare types does not change the counts of other types. */
static void filter_once(work *w)
{
    const lp_sequence_columns *columns = w->columns;
    lapse_import_report *report = w->preparation->report;
    for (int64_t k = 0; k < w->types; k++) {
        if (w->type_count[k] == 0 || w->type_count[k] >= w->preparation->min_count)
            continue;
        report->rare_event_types++;
        report->rare_rows += w->type_count[k];
    }
    for (int64_t s = 0; report->rare_rows > 0 && s < columns->sequence_count; s++)
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++)
            if (!w->dropped[i] && w->type_count[columns->type[i]] < w->preparation->min_count)
                drop(w, s, i);
    for (int64_t s = 0; s < columns->sequence_count; s++)
        if (w->left[s] != EMPTY && w->left[s] < w->min_length)
            drop_sequence(w, s);
    report->rounds = report->rare_rows + report->short_rows > 0;
}

static int64_t sequence_of(const lp_sequence_columns *columns, uint64_t event)
{
    int64_t low = 0, high = columns->sequence_count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (columns->start[middle] <= event)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Builds the index from event types to their remaining events. */
static bool index_types(work *w)
{
    w->type_start = lp_grow(NULL, (size_t)w->types + 1, sizeof *w->type_start);
    if (!w->type_start)
        return false;
    uint64_t total = 0;
    for (int64_t k = 0; k < w->types; k++) {
        w->type_start[k] = total;
        total += (uint64_t)w->type_count[k];
    }
    w->type_start[w->types] = total;
    w->type_events = lp_grow(NULL, total, sizeof *w->type_events);
    if (!w->type_events)
        return false;
    for (int64_t i = w->events - 1; i >= 0; i--)
        if (!w->dropped[i])
            w->type_events[--w->type_start[w->columns->type[i] + 1]] = (uint64_t)i;
    memmove(w->type_start, w->type_start + 1, (size_t)w->types * sizeof *w->type_start);
    w->type_start[w->types] = total;
    return true;
}

static void drop_type(work *w, int64_t type)
{
    w->preparation->report->rare_event_types += w->type_count[type] > 0;
    w->preparation->report->rare_rows += w->type_count[type];
    for (uint64_t i = w->type_start[type]; i < w->type_start[type + 1]; i++) {
        uint64_t event = w->type_events[i];
        if (w->dropped[event])
            continue;
        int64_t sequence = sequence_of(w->columns, event);
        drop(w, sequence, event);
        if (w->left[sequence] == w->min_length - 1)
            w->short_queue[w->short_count++] = sequence;
    }
}

static bool filter_until_stable(work *w)
{
    lapse_import_report *report = w->preparation->report;
    if (w->rare_count > 0 && !index_types(w))
        return false;
    while (w->rare_count > 0) {
        int64_t before = report->rare_rows;
        for (int64_t i = 0; i < w->rare_count; i++)
            drop_type(w, w->rare_queue[i]);
        w->rare_count = 0;
        for (int64_t i = 0; i < w->short_count; i++)
            drop_sequence(w, w->short_queue[i]);
        w->short_count = 0;
        report->rounds += report->rare_rows > before;
    }
    return true;
}

static bool filter_minimums(work *w)
{
    w->rare_queue = lp_grow(NULL, (size_t)w->types, sizeof *w->rare_queue);
    w->short_queue = lp_grow(NULL, (size_t)w->columns->sequence_count, sizeof *w->short_queue);
    if (!w->rare_queue || !w->short_queue)
        return false;
    filter_once(w);
    return !w->preparation->iterated || filter_until_stable(w);
}

/* -------------------------------------------------------------------------------------------- 5. compact ------ */

static void compact_column(void *column, size_t size, const uint8_t *dropped, int64_t count)
{
    char *bytes = column, *out = column;
    for (int64_t i = 0; i < count; i++) {
        if (dropped[i])
            continue;
        if (size == 8)
            memmove(out, bytes + i * 8, 8);
        else if (size == 4)
            memmove(out, bytes + i * 4, 4);
        else
            *out = bytes[i];
        out += size;
    }
}

static void compact(work *w)
{
    lp_sequence_columns *columns = w->columns;
    compact_column(columns->time, sizeof *columns->time, w->dropped, w->events);
    compact_column(columns->type, sizeof *columns->type, w->dropped, w->events);
    if (columns->split)
        compact_column(columns->split, sizeof *columns->split, w->dropped, w->events);
    for (int f = 0; f < columns->field_count; f++)
        compact_column(columns->field[f], columns->field_size[f], w->dropped, w->events);
    int64_t count = 0;
    uint64_t offset = 0;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        if (w->left[s] <= 0)
            continue;
        w->origins[count] = w->origins[s];
        columns->start[count++] = offset;
        offset += (uint64_t)w->left[s];
    }
    columns->start[count] = offset;
    columns->sequence_count = count;
}

static bool prepare(work *w)
{
    w->dropped = lp_alloc((size_t)w->events, 1);
    if (!w->dropped || !filter_source(w) || !split_sessions(w))
        return false;
    const lp_sequence_columns *columns = w->columns;
    w->left = lp_grow(NULL, (size_t)columns->sequence_count, sizeof *w->left);
    if (!w->left)
        return false;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        w->left[s] = 0;
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++)
            w->left[s] += !w->dropped[i];
        w->left[s] = w->left[s] ? w->left[s] : EMPTY;
    }
    if (!drop_duplicates(w) || !filter_minimums(w))
        return false;
    compact(w);
    return true;
}

bool lp_prepares(const lp_preparation *preparation)
{
    return preparation->session_gap != 0 || preparation->deduplicate != LP_DEDUPLICATE_NONE ||
           preparation->min_count > 1 || preparation->min_events > 1 || preparation->min_sequence_events > 1 ||
           preparation->min_users > 1;
}

bool lp_prepare(const lp_preparation *preparation, lp_sequence_columns *columns, int64_t *type_count, int64_t types,
                lp_origin **origins)
{
    *origins = NULL;
    if (!lp_prepares(preparation))
        return true;
    work w = {
        .preparation = preparation,
        .columns = columns,
        .type_count = type_count,
        .types = types,
        .events = (int64_t)columns->start[columns->sequence_count],
        .min_length = preparation->min_events > 1 ? preparation->min_events : 1,
    };
    bool good = prepare(&w);
    lp_free(w.dropped);
    lp_free(w.left);
    lp_free(w.rare_queue);
    lp_free(w.short_queue);
    lp_free(w.type_start);
    lp_free(w.type_events);
    if (good)
        *origins = w.origins;
    else
        lp_free(w.origins);
    return good;
}
