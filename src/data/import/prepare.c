/* prepare.c: four steps over events that are sorted by sequence and time:
 *   1. cut: a sequence ends wherever the next event is too far away; what follows is a sequence of its own
 *   2. duplicates are marked, within each sequence
 *   3. event types that are too rare are marked, then sequences that are now too short; once, or in rounds until both minimums
 *      hold
 *   4. what is marked is squeezed out of every column
 * Cutting comes first, because the silence between two sessions is a fact of the source, whatever is left out of them.
 *
 * The rounds after the first look only at what the last one took below a minimum, so that even a chain in which every
 * event hangs on the one before is done in linear time.
 */
#include "data/import/prepare.h"

#include "base/memory.h"

#include <string.h>

const char *const lp_deduplicate_names[] = {"none", "exact", "consecutive", NULL};
const char *const lp_min_rounds_names[] = {"once", "iterated", NULL};

typedef struct work {
    lp_preparation *preparation;
    lp_event_columns *columns;
    int64_t *type_count;
    int64_t types, events;
    int64_t least;      /* events that a sequence must have: at least one */
    uint8_t *dropped;   /* owned; of each event */
    int64_t *left;      /* owned; events of each sequence that are not dropped */
    lp_origin *origins; /* owned until it is the caller's */

    /* What fell below its minimum and is not yet dropped. */
    int64_t *rare, *brief; /* owned; event types and sequences */
    int64_t rare_count, brief_count;
    uint64_t *type_start, *type_events; /* owned; events of each event type: those of k from type_start[k] on */
} work;

/* ------------------------------------------------------------------------------------------------ 1. cut ------ */

static bool cut_sequences(work *w)
{
    lp_event_columns *columns = w->columns;
    double gap = w->preparation->session_gap;
    int64_t sequences = columns->sequence_count, sessions = sequences;
    const double *time = columns->time;
    for (int64_t s = 0; gap > 0 && s < sequences; s++) {
        int64_t before = sessions;
        for (uint64_t i = columns->start[s] + 1; i < columns->start[s + 1]; i++)
            sessions += time[i] - time[i - 1] > gap;
        w->preparation->cut_sequences += sessions > before;
    }
    w->preparation->sessions = gap > 0 ? sessions : 0;
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

/* ----------------------------------------------------------------------------------------- 2. duplicates ------ */

static void drop(work *w, int64_t sequence, uint64_t event)
{
    w->dropped[event] = 1;
    w->type_count[w->columns->type[event]]--;
    w->left[sequence]--;
}

static void drop_repeats(work *w)
{
    const lp_event_columns *columns = w->columns;
    for (int64_t s = 0; s < columns->sequence_count; s++)
        for (uint64_t i = columns->start[s] + 1; i < columns->start[s + 1]; i++)
            if (columns->type[i] == columns->type[i - 1])
                drop(w, s, i);
}

/* met[event type] is where the group of equal times began that had the event type last. A group may be as long as the data, so its
 * events are not compared with one another. */
static void drop_equals(work *w, uint64_t *met)
{
    const lp_event_columns *columns = w->columns;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        uint64_t end = columns->start[s + 1], last;
        for (uint64_t first = columns->start[s]; first < end; first = last) {
            for (last = first + 1; last < end && columns->time[last] == columns->time[first]; last++)
                ;
            for (uint64_t i = first; last - first > 1 && i < last; i++) {
                if (met[columns->type[i]] == first)
                    drop(w, s, i);
                met[columns->type[i]] = first;
            }
        }
    }
}

static bool drop_duplicates(work *w)
{
    if (w->preparation->deduplicate == LP_DEDUPLICATE_CONSECUTIVE)
        drop_repeats(w);
    if (w->preparation->deduplicate == LP_DEDUPLICATE_EXACT) {
        uint64_t *met = lp_grow(NULL, (size_t)w->types, sizeof *met);
        if (!met)
            return false;
        memset(met, 0xFF, (size_t)w->types * sizeof *met);
        drop_equals(w, met);
        lp_free(met);
    }
    for (int64_t i = 0; i < w->events; i++)
        w->preparation->duplicate_rows += w->dropped[i];
    return true;
}

/* ------------------------------------------------------------------------------------------- 3. minimums ------ */

static void drop_sequence(work *w, int64_t sequence)
{
    const lp_event_columns *columns = w->columns;
    w->preparation->short_sequences++;
    w->preparation->short_rows += w->left[sequence];
    for (uint64_t i = columns->start[sequence]; i < columns->start[sequence + 1]; i++) {
        if (w->dropped[i])
            continue;
        drop(w, sequence, i);
        int64_t count = w->type_count[columns->type[i]];
        if (count > 0 && count == w->preparation->min_count - 1)
            w->rare[w->rare_count++] = columns->type[i];
    }
}

/* An event type that is too rare stays so while its events are dropped, and the others keep their count. */
static void first_round(work *w)
{
    const lp_event_columns *columns = w->columns;
    lp_preparation *preparation = w->preparation;
    for (int64_t k = 0; k < w->types; k++) {
        if (w->type_count[k] == 0 || w->type_count[k] >= preparation->min_count)
            continue;
        preparation->rare_event_types++;
        preparation->rare_rows += w->type_count[k];
    }
    for (int64_t s = 0; preparation->rare_rows > 0 && s < columns->sequence_count; s++)
        for (uint64_t i = columns->start[s]; i < columns->start[s + 1]; i++)
            if (!w->dropped[i] && w->type_count[columns->type[i]] < preparation->min_count)
                drop(w, s, i);
    for (int64_t s = 0; s < columns->sequence_count; s++)
        if (w->left[s] < w->least)
            drop_sequence(w, s);
    preparation->rounds = preparation->rare_rows + preparation->short_rows > 0;
}

static int64_t sequence_of(const lp_event_columns *columns, uint64_t event)
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

/* Lists the events of every event type that are left. */
static bool list_types(work *w)
{
    w->type_start = lp_grow(NULL, (size_t)w->types + 1, sizeof *w->type_start);
    if (!w->type_start)
        return false;
    uint64_t place = 0;
    for (int64_t k = 0; k < w->types; k++) {
        w->type_start[k] = place;
        place += (uint64_t)w->type_count[k];
    }
    w->type_start[w->types] = place;
    w->type_events = lp_grow(NULL, place, sizeof *w->type_events);
    if (!w->type_events)
        return false;
    for (int64_t i = w->events - 1; i >= 0; i--)
        if (!w->dropped[i])
            w->type_events[--w->type_start[w->columns->type[i] + 1]] = (uint64_t)i;
    memmove(w->type_start, w->type_start + 1, (size_t)w->types * sizeof *w->type_start);
    w->type_start[w->types] = place;
    return true;
}

static void drop_type(work *w, int64_t type)
{
    w->preparation->rare_event_types += w->type_count[type] > 0;
    w->preparation->rare_rows += w->type_count[type];
    for (uint64_t i = w->type_start[type]; i < w->type_start[type + 1]; i++) {
        uint64_t event = w->type_events[i];
        if (w->dropped[event])
            continue;
        int64_t sequence = sequence_of(w->columns, event);
        drop(w, sequence, event);
        if (w->left[sequence] == w->least - 1)
            w->brief[w->brief_count++] = sequence;
    }
}

static bool further_rounds(work *w)
{
    lp_preparation *preparation = w->preparation;
    if (w->rare_count > 0 && !list_types(w))
        return false;
    while (w->rare_count > 0) {
        int64_t before = preparation->rare_rows;
        for (int64_t i = 0; i < w->rare_count; i++)
            drop_type(w, w->rare[i]);
        w->rare_count = 0;
        for (int64_t i = 0; i < w->brief_count; i++)
            drop_sequence(w, w->brief[i]);
        w->brief_count = 0;
        preparation->rounds += preparation->rare_rows > before;
    }
    return true;
}

static bool hold_minimums(work *w)
{
    w->rare = lp_grow(NULL, (size_t)w->types, sizeof *w->rare);
    w->brief = lp_grow(NULL, (size_t)w->columns->sequence_count, sizeof *w->brief);
    if (!w->rare || !w->brief)
        return false;
    first_round(w);
    return !w->preparation->iterated || further_rounds(w);
}

/* -------------------------------------------------------------------------------------------- 4. squeeze ------ */

static void squeeze_column(void *column, size_t size, const uint8_t *dropped, int64_t count)
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

static void squeeze(work *w)
{
    lp_event_columns *columns = w->columns;
    squeeze_column(columns->time, sizeof *columns->time, w->dropped, w->events);
    squeeze_column(columns->type, sizeof *columns->type, w->dropped, w->events);
    if (columns->split)
        squeeze_column(columns->split, sizeof *columns->split, w->dropped, w->events);
    for (int f = 0; f < columns->further_count; f++)
        squeeze_column(columns->further[f], columns->further_size[f], w->dropped, w->events);
    int64_t kept = 0;
    uint64_t place = 0;
    for (int64_t s = 0; s < columns->sequence_count; s++) {
        if (w->left[s] == 0)
            continue;
        w->origins[kept] = w->origins[s];
        columns->start[kept++] = place;
        place += (uint64_t)w->left[s];
    }
    columns->start[kept] = place;
    columns->sequence_count = kept;
}

static bool prepare(work *w)
{
    if (!cut_sequences(w))
        return false;
    const lp_event_columns *columns = w->columns;
    w->dropped = lp_alloc((size_t)w->events, 1);
    w->left = lp_grow(NULL, (size_t)columns->sequence_count, sizeof *w->left);
    if (!w->dropped || !w->left)
        return false;
    for (int64_t s = 0; s < columns->sequence_count; s++)
        w->left[s] = (int64_t)(columns->start[s + 1] - columns->start[s]);
    if (!drop_duplicates(w) || !hold_minimums(w))
        return false;
    squeeze(w);
    return true;
}

bool lp_prepare(lp_preparation *preparation, lp_event_columns *columns, int64_t *type_count, int64_t types,
                lp_origin **origins)
{
    *origins = NULL;
    if (preparation->session_gap == 0 && preparation->deduplicate == LP_DEDUPLICATE_NONE &&
        preparation->min_count <= 1 && preparation->min_events <= 1)
        return true;
    work w = {
        .preparation = preparation,
        .columns = columns,
        .type_count = type_count,
        .types = types,
        .events = (int64_t)columns->start[columns->sequence_count],
        .least = preparation->min_events > 1 ? preparation->min_events : 1,
    };
    bool good = prepare(&w);
    lp_free(w.dropped);
    lp_free(w.left);
    lp_free(w.rare);
    lp_free(w.brief);
    lp_free(w.type_start);
    lp_free(w.type_events);
    if (good)
        *origins = w.origins;
    else
        lp_free(w.origins);
    return good;
}
