/* feeds.c: the table of the inputs of a network: their shapes, and where a batch has them. */
#include "nn/feeds.h"

#include <stddef.h>
#include <stdio.h>

typedef struct feed_row {
    const char *name;
    lp_type type;
    lp_rows rows_of;
    int cols; /* 0: negatives per label */
    size_t
        array; /* offset in lp_batch of a pointer to its rows, NULL where the network does not read it; of one row: of the number. 0: the
                   * caller of a run has it */
} feed_row;

#define BATCH(member) offsetof(lp_batch, member)

static const feed_row rows[LP_FEED_COUNT] = {
    [LP_FEED_EVENT] = {"event", LP_TYPE_INT32, LP_ROWS_TOKENS, 1, BATCH(type)},
    [LP_FEED_POSITION] = {"position", LP_TYPE_INT32, LP_ROWS_TOKENS, 1, BATCH(position)},
    [LP_FEED_TIME] = {"time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 1, BATCH(time)},
    [LP_FEED_QUERY_TIME] = {"query_time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 1, BATCH(query_time)},
    [LP_FEED_LAG] = {"lag", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 1, BATCH(lag)},
    [LP_FEED_TARGET_POSITION] = {"target_position", LP_TYPE_INT32, LP_ROWS_TARGETS, 1, BATCH(target_position)},
    [LP_FEED_TARGET] = {"target", LP_TYPE_INT32, LP_ROWS_LABELS, 1, BATCH(target)},
    [LP_FEED_ACTION] = {"action", LP_TYPE_INT32, LP_ROWS_LABELS, 1, BATCH(action)},
    [LP_FEED_NEGATIVE] = {"negative", LP_TYPE_INT32, LP_ROWS_LABELS, 0, BATCH(negative)},
    [LP_FEED_ITEM] = {"item", LP_TYPE_INT32, LP_ROWS_ITEMS, 1, BATCH(item)},
    [LP_FEED_LOGQ] = {"logq", LP_TYPE_REAL, LP_ROWS_ITEMS, 1, BATCH(logq)},
    [LP_FEED_TARGET_GAP] = {"target_gap", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 1, BATCH(target_gap)},
    [LP_FEED_TARGET_SEASON] = {"target_season", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 2, BATCH(target_season)},
    [LP_FEED_SEQUENCE] = {"sequence", LP_TYPE_INT32, LP_ROWS_TOKENS, 1, BATCH(sequence_id)},
    [LP_FEED_GAP] = {"gap", LP_TYPE_REAL, LP_ROWS_TOKENS, LP_GAP_COLUMNS, BATCH(gap)},
    [LP_FEED_TARGET_GAP_INPUT] = {"target_gap_input", LP_TYPE_REAL, LP_ROWS_TARGETS, LP_GAP_COLUMNS,
                                  BATCH(target_gap_input)},
    [LP_FEED_POSITION_FROM_END] = {"position_from_end", LP_TYPE_INT32, LP_ROWS_TOKENS, 1, BATCH(position_from_end)},
    [LP_FEED_LABEL_ROW] = {"label_row", LP_TYPE_INT32, LP_ROWS_LABELS, 1, BATCH(label_row)},
    [LP_FEED_SEED] = {"seed", LP_TYPE_REAL, LP_ROWS_FIXED, 1, 0},
    [LP_FEED_FREQUENCY_SAMPLE] = {"frequency_sample", LP_TYPE_INT32, LP_ROWS_FIXED, 1, 0},
};

void lp_feeds_declare(lp_graph *graph, const lapse_field_type *types, int field_count, int negatives, bool censored,
                      lp_value *feeds[LP_FEED_LIMIT])
{
    for (int i = 0; i < LP_FEED_COUNT; i++) {
        lp_rows rows_of = rows[i].rows_of == LP_ROWS_LABELS && !censored ? LP_ROWS_TARGETS : rows[i].rows_of;
        feeds[i] =
            lp_graph_input(graph, rows[i].name, rows[i].type, rows_of, 1, rows[i].cols ? rows[i].cols : negatives);
    }
    for (int f = 0; f < field_count; f++) {
        char name[24];
        snprintf(name, sizeof name, "field.%d", f);
        lp_type type = types[f] == LAPSE_FIELD_NUMBER ? LP_TYPE_REAL : LP_TYPE_INT32;
        feeds[LP_FEED_COUNT + f] = lp_graph_input(graph, name, type, LP_ROWS_TOKENS, 1, 1);
    }
}

void lp_feeds_of_batch(const lp_batch *batch, int shard, void *inputs[LP_FEED_LIMIT])
{
    /* reals of a batch are floats */
    static const size_t sizes[] = {
        [LP_TYPE_REAL] = sizeof(float), [LP_TYPE_INT32] = sizeof(int32_t), [LP_TYPE_DOUBLE] = sizeof(double)};
    size_t token = (size_t)batch->shard_token[shard], target = (size_t)batch->shard_targets[shard];
    size_t first[LP_ROWS_COUNT] = {[LP_ROWS_TOKENS] = token,
                                   [LP_ROWS_TARGETS] = target,
                                   [LP_ROWS_LABELS] = (size_t)batch->shard_labels[shard],
                                   [LP_ROWS_ITEMS] = (size_t)shard * (size_t)batch->item_capacity};
    for (int i = 0; i < LP_FEED_COUNT; i++) {
        char *member = (char *)(uintptr_t)batch + rows[i].array;
        if (!rows[i].array)
            continue;
        inputs[i] = member;
        if (rows[i].rows_of == LP_ROWS_FIXED)
            continue;
        char *array = *(char **)(void *)member;
        size_t cols = (size_t)(rows[i].cols ? rows[i].cols : batch->negative_count);
        inputs[i] = array ? array + first[rows[i].rows_of] * cols * sizes[rows[i].type] : NULL;
    }
    for (int f = 0; f < batch->field_count; f++) /* int32_t or float: the same size */
        inputs[LP_FEED_COUNT + f] = (char *)batch->field[f] + token * sizeof(float);
}
