/* batch.c: copies windows of a dataset into a batch's arrays and lists the target positions of each. */
#include "data/batch/batch.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

/* Bytes of a field's value: int32_t for a category, float for a number. */
enum { FIELD_SIZE = sizeof(int32_t) };
_Static_assert(sizeof(float) == FIELD_SIZE, "categories and numbers have the same size");

static void *array_new(lp_batch *batch, size_t count, size_t size)
{
    LP_ASSERT(batch->block_count < (int)(sizeof batch->blocks / sizeof *batch->blocks));
    void *block = batch->blocks[batch->block_count++] = lp_alloc(count, size);
    batch->failed = batch->failed || !block;
    return block;
}

lapse_status lp_batch_init(lp_batch *batch, int windows, int context, int shards, int fields, lapse_error *error)
{
    *batch = (lp_batch){.capacity_windows = windows,
                        .context = context,
                        .shard_count = shards,
                        .field_count = fields,
                        .window_targets = context};
    size_t tokens = (size_t)windows * (size_t)context;
    batch->type = array_new(batch, tokens, sizeof *batch->type);
    batch->position = array_new(batch, tokens, sizeof *batch->position);
    batch->time = array_new(batch, tokens, sizeof *batch->time);
    batch->query_time = array_new(batch, tokens, sizeof *batch->query_time);
    batch->lag = array_new(batch, tokens, sizeof *batch->lag);
    batch->label_row = array_new(batch, tokens, sizeof *batch->label_row);
    batch->target = array_new(batch, tokens, sizeof *batch->target);
    batch->action = array_new(batch, tokens, sizeof *batch->action);
    for (int f = 0; f < fields; f++)
        batch->field[f] = array_new(batch, tokens, FIELD_SIZE);
    batch->target_position = array_new(batch, tokens, sizeof *batch->target_position);
    batch->event = array_new(batch, (size_t)windows, sizeof *batch->event);
    batch->sequence = array_new(batch, (size_t)windows, sizeof *batch->sequence);
    batch->segment = array_new(batch, (size_t)windows + (size_t)shards, sizeof *batch->segment);
    batch->shard_window = array_new(batch, (size_t)shards + 1, sizeof *batch->shard_window);
    batch->shard_token = array_new(batch, (size_t)shards + 1, sizeof *batch->shard_token);
    batch->shard_targets = array_new(batch, (size_t)shards + 1, sizeof *batch->shard_targets);
    batch->shard_labels = array_new(batch, (size_t)shards + 1, sizeof *batch->shard_labels);
    if (!batch->failed)
        return LAPSE_OK;
    lp_batch_clear(batch);
    return lp_fail_memory(error, "a batch", tokens * (48 + (size_t)fields * FIELD_SIZE));
}

void lp_batch_clear(lp_batch *batch)
{
    for (int i = 0; i < batch->block_count; i++)
        lp_free(batch->blocks[i]);
    *batch = (lp_batch){0};
}

lapse_status lp_batch_init_vocabulary(lp_batch *batch, int negatives, int shared, int64_t types, lapse_error *error)
{
    size_t tokens = (size_t)batch->capacity_windows * (size_t)batch->context, shards = (size_t)batch->shard_count;
    int64_t most = (int64_t)lp_batch_shard_tokens(batch) * (2 + negatives) + shared;
    batch->negative_count = negatives;
    batch->item_capacity = (int)(most < types ? most : types);
    batch->negative = array_new(batch, tokens * (size_t)negatives, sizeof *batch->negative);
    batch->item = array_new(batch, shards * (size_t)batch->item_capacity, sizeof *batch->item);
    batch->logq = array_new(batch, shards * (size_t)batch->item_capacity, sizeof *batch->logq);
    batch->shard_items = array_new(batch, shards, sizeof *batch->shard_items);
    if (!batch->failed)
        return LAPSE_OK;
    return lp_fail_memory(error, "a batch", tokens * (size_t)(negatives + 4) * sizeof *batch->item);
}

lapse_status lp_batch_init_inputs(lp_batch *batch, lp_batch_inputs inputs, lapse_error *error)
{
    size_t tokens = (size_t)batch->capacity_windows * (size_t)batch->context;
    if (inputs.target_gap)
        batch->target_gap = array_new(batch, tokens, sizeof *batch->target_gap);
    batch->season = inputs.season;
    batch->season_floor = inputs.season_floor;
    if (inputs.season)
        batch->target_season = array_new(batch, 2 * tokens, sizeof *batch->target_season);
    if (inputs.sequence_id)
        batch->sequence_id = array_new(batch, tokens, sizeof *batch->sequence_id);
    if (inputs.gap)
        batch->gap = array_new(batch, tokens * LP_GAP_COLUMNS, sizeof *batch->gap);
    if (inputs.position_from_end)
        batch->position_from_end = array_new(batch, tokens, sizeof *batch->position_from_end);
    if (inputs.target_gap_input)
        batch->target_gap_input = array_new(batch, tokens * LP_GAP_COLUMNS, sizeof *batch->target_gap_input);
    if (batch->failed)
        return lp_fail_memory(error, "a batch", tokens * sizeof(double));
    return LAPSE_OK;
}

/* Shard s has windows [count * s / shards, count * (s + 1) / shards). */
static int shard_begin(int count, int shard, int shards)
{
    return (int)((int64_t)count * shard / shards);
}

static int largest_shard(const lp_batch *batch)
{
    return (batch->capacity_windows + batch->shard_count - 1) / batch->shard_count;
}

int lp_batch_shard_tokens(const lp_batch *batch)
{
    return largest_shard(batch) * batch->context;
}

int lp_batch_shard_targets(const lp_batch *batch)
{
    return largest_shard(batch) * batch->window_targets;
}

static void shift_times(const double *time, double last, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = time[i] - last;
}

/* Whether the `count` events from `first` on are all targets. */
static bool all_targets(const lp_targets *targets, int64_t first, int count)
{
    int others = 0; /* no early exit, so that the compiler vectorizes the loop */
    if (!targets->split)
        return true;
    if (targets->wanted == LP_SPLIT_COUNT)
        for (int i = 0; i < count; i++)
            others |= targets->split[first + i] == LP_SPLIT_NONE;
    else
        for (int i = 0; i < count; i++)
            others |= targets->split[first + i] != (uint8_t)targets->wanted;
    return !others;
}

/* The first token and the first target of a shard. */
typedef struct shard_start {
    int token, target;
} shard_start;

/* Appends the labels after positions from .. to - 1 of a window. `token` is the index of its first token within the shard. */
static void add_labels(lp_batch *batch, const lp_window *window, int from, int to, int token, shard_start shard,
                       const lp_targets *targets, const lp_event_columns *columns)
{
    int positions = to - from, first_row = batch->targets - shard.target;
    int64_t first = window->first + from + 1; /* the first candidate target */
    int32_t *target_position = batch->target_position + batch->targets, *label_row = batch->label_row + batch->labels;
    int32_t *target = batch->target + batch->labels, *action = batch->action + batch->labels;
    int count = 0;
    if (all_targets(targets, first, positions)) {
        for (int i = 0; i < positions; i++)
            target_position[i] = token + from + i;
        memcpy(target, columns->type + first, (size_t)positions * sizeof *target);
        if (columns->action)
            memcpy(action, columns->action + first, (size_t)positions * sizeof *action);
        count = positions;
    } else
        for (int i = from; i < to; i++) {
            int64_t next = window->first + i + 1;
            if (!lp_targets_include(targets, next))
                continue;
            target_position[count] = token + i;
            target[count] = columns->type[next];
            if (columns->action)
                action[count] = columns->action[next];
            count++;
        }
    for (int i = 0; i < count; i++)
        label_row[i] = first_row + i;
    batch->targets += count;
    batch->labels += count;
}

/* Windows are scattered over the dataset, so the columns of window w + AHEAD are prefetched while window w is copied. */
enum { AHEAD = 2, LINE = 64 };

static void prefetch(const void *data, size_t size)
{
    for (size_t i = 0; i < size; i += LINE)
        __builtin_prefetch((const char *)data + i);
}

static void prefetch_window(const lp_window *window, const lp_targets *targets, const lp_event_columns *columns)
{
    size_t first = (size_t)window->first, count = (size_t)window->count;
    prefetch(targets->dataset->time + first, (count + 1) * sizeof *targets->dataset->time);
    prefetch(columns->type + first, (count + 1) * sizeof *columns->type);
    if (columns->gap)
        prefetch(columns->gap + first, count * sizeof *columns->gap);
    if (targets->split)
        prefetch(targets->split + first, count + 1);
}

static void add_season(lp_batch *batch, int target, double from, double gap)
{
    if (!batch->target_season)
        return;
    batch->target_season[2 * target] = lp_season_integral(batch->season, from, gap);
    batch->target_season[2 * target + 1] = lp_season_level(batch->season, from + gap);
}

/* Appends a target that has not come for `gap` seconds since the event before it. */
static void add_open_target(lp_batch *batch, int position, double from, double gap)
{
    int target = batch->targets++;
    batch->target_position[target] = position;
    if (batch->target_gap)
        batch->target_gap[target] = -gap;
    add_season(batch, target, from, gap);
    if (batch->target_gap_input)
        lp_gap_row(NAN, batch->target_gap_input + (ptrdiff_t)target * LP_GAP_COLUMNS);
}

static void add_window(lp_batch *batch, const lp_window *window, shard_start shard, const lp_targets *targets,
                       bool target_known, const lp_event_columns *columns)
{
    const double *time = targets->dataset->time + window->first;
    const int32_t *type = columns->type + window->first;
    bool open = lp_target_is_open(targets, window->sequence, window->first + window->count);
    double last = target_known && !open ? time[window->count] : time[window->count - 1];
    size_t token = (size_t)batch->tokens, count = (size_t)window->count;
    for (int f = 0; f < columns->field_count; f++)
        memcpy((char *)batch->field[f] + token * FIELD_SIZE,
               (const char *)columns->field[f] + (size_t)window->first * FIELD_SIZE, count * FIELD_SIZE);
    memcpy(batch->type + token, type, count * sizeof *type);
    shift_times(time, last, count, batch->time + token);
    shift_times(target_known ? time + 1 : time, last, count - open, batch->query_time + token);
    if (open) /* its query time is not known */
        batch->query_time[token + count - 1] = time[count - 1] - last;
    for (size_t i = token; i < token + count; i++)
        batch->lag[i] = batch->query_time[i] - batch->time[i];
    int32_t *position = batch->position + token;
    for (int32_t i = 0; i < (int32_t)count; i++)
        position[i] = i;
    int first_target = batch->targets, first_token = batch->tokens - shard.token;
    add_labels(batch, window, window->from, window->count - open, first_token, shard, targets, columns);
    for (int i = first_target; batch->target_gap && i < batch->targets; i++) {
        int at = batch->target_position[i] - first_token;
        batch->target_gap[i] = time[at + 1] - time[at];
        add_season(batch, i, time[at], fmax(batch->target_gap[i], batch->season_floor));
    }
    for (int i = first_target; batch->target_gap_input && i < batch->targets; i++) {
        int at = batch->target_position[i] - first_token;
        lp_gap_row(columns->gap[window->first + at + 1], batch->target_gap_input + (ptrdiff_t)i * LP_GAP_COLUMNS);
    }
    if (open)
        add_open_target(batch, first_token + window->count - 1, time[count - 1], targets->end - time[count - 1]);
    for (size_t i = 0; batch->sequence_id && i < count; i++)
        batch->sequence_id[token + i] = columns->sequences_known ? (int32_t)window->sequence + 1 : 0;
    for (size_t i = 0; batch->gap && i < count; i++)
        lp_gap_row(columns->gap[(size_t)window->first + i], batch->gap + (token + i) * LP_GAP_COLUMNS);
    for (size_t i = 0; batch->position_from_end && i < count; i++)
        batch->position_from_end[token + i] = (int32_t)(count - 1 - i);
    batch->tokens += window->count;
    LP_ASSERT(batch->tokens <= batch->capacity_windows * batch->context);
    LP_ASSERT(batch->targets - first_target <= batch->window_targets);
    batch->event[batch->windows] = window->first;
    batch->sequence[batch->windows++] = window->sequence;
}

static bool ascends(const int32_t *numbers, int count, int end)
{
    bool good = count == 0 || (numbers[0] >= 0 && numbers[count - 1] < end);
    for (int i = 1; i < count; i++)
        good = good && numbers[i - 1] < numbers[i];
    return good;
}

/* Whether the events of a shard's windows are in the order of time. */
static bool times_ascend(const lp_batch *batch, int shard)
{
    const int32_t *segment = lp_batch_segments(batch, shard);
    bool good = true;
    for (int s = 0; s < batch->shard_window[shard + 1] - batch->shard_window[shard]; s++)
        for (int i = segment[s] + 1; i < segment[s + 1]; i++)
            good = good && batch->time[batch->shard_token[shard] + i - 1] <= batch->time[batch->shard_token[shard] + i];
    return good;
}

/* Checks shard `shard` of a filled batch. */
static void check_shard(const lp_batch *batch, int shard)
{
    int windows = batch->shard_window[shard + 1] - batch->shard_window[shard];
    int tokens = batch->shard_token[shard + 1] - batch->shard_token[shard];
    int target = batch->shard_targets[shard], targets = batch->shard_targets[shard + 1] - target;
    int label = batch->shard_labels[shard], labels = batch->shard_labels[shard + 1] - label;
    LP_ASSERT(ascends(lp_batch_segments(batch, shard), windows + 1, tokens + 1));
    LP_ASSERT(lp_batch_segments(batch, shard)[windows] == tokens);
    LP_ASSERT(tokens <= lp_batch_shard_tokens(batch) && targets <= lp_batch_shard_targets(batch));
    LP_ASSERT(ascends(batch->target_position + target, targets, tokens));
    LP_ASSERT(ascends(batch->label_row + label, labels, targets));
    LP_ASSERT(times_ascend(batch, shard));
}

void lp_batch_fill(lp_batch *batch, const lp_windows *list, int64_t first, int count, const lp_targets *targets,
                   bool target_known, const lp_event_columns *columns)
{
    batch->tokens = batch->windows = batch->targets = batch->labels = 0;
    int shards = batch->shard_count;
    for (int shard = 0; shard < shards; shard++) {
        int begin = shard_begin(count, shard, shards), end = shard_begin(count, shard + 1, shards);
        batch->shard_window[shard] = begin;
        batch->shard_token[shard] = batch->tokens;
        batch->shard_targets[shard] = batch->targets;
        batch->shard_labels[shard] = batch->labels;
        shard_start start = {batch->tokens, batch->targets};
        int32_t *segment = batch->segment + begin + shard;
        *segment++ = 0;
        for (int w = begin; w < end; w++) {
            if (w + AHEAD < count)
                prefetch_window(&list->windows[first + w + AHEAD], targets, columns);
            add_window(batch, &list->windows[first + w], start, targets, target_known, columns);
            *segment++ = batch->tokens - start.token;
        }
    }
    batch->shard_window[shards] = count;
    batch->shard_token[shards] = batch->tokens;
    batch->shard_targets[shards] = batch->targets;
    batch->shard_labels[shards] = batch->labels;
    for (int shard = 0; shard < shards; shard++)
        check_shard(batch, shard);
}
