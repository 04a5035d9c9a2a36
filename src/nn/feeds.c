/* feeds.c: declares the inputs of a network. */
#include "nn/feeds.h"

#include <stdio.h>

void lp_feeds_declare(lp_graph *graph, const lapse_field_type *types, int field_count, int negatives, bool censored,
                      lp_value *feeds[LP_FEED_LIMIT])
{
    static const struct {
        const char *name;
        lp_type type;
        lp_rows rows_of;
        int cols;
    } table[LP_FEED_COUNT] = {
        [LP_FEED_EVENT] = {"event", LP_TYPE_INT32, LP_ROWS_TOKENS, 1},
        [LP_FEED_POSITION] = {"position", LP_TYPE_INT32, LP_ROWS_TOKENS, 1},
        [LP_FEED_TIME] = {"time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 1},
        [LP_FEED_QUERY_TIME] = {"query_time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 1},
        [LP_FEED_LAG] = {"lag", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 1},
        [LP_FEED_TARGET_POSITION] = {"target_position", LP_TYPE_INT32, LP_ROWS_TARGETS, 1},
        [LP_FEED_TARGET] = {"target", LP_TYPE_INT32, LP_ROWS_LABELS, 1},
        [LP_FEED_ACTION] = {"action", LP_TYPE_INT32, LP_ROWS_LABELS, 1},
        [LP_FEED_NEGATIVE] = {"negative", LP_TYPE_INT32, LP_ROWS_LABELS, 1},
        [LP_FEED_ITEM] = {"item", LP_TYPE_INT32, LP_ROWS_ITEMS, 1},
        [LP_FEED_LOGQ] = {"logq", LP_TYPE_REAL, LP_ROWS_ITEMS, 1},
        [LP_FEED_TARGET_GAP] = {"target_gap", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 1},
        [LP_FEED_TARGET_SEASON] = {"target_season", LP_TYPE_DOUBLE, LP_ROWS_TARGETS, 2},
        [LP_FEED_SEQUENCE] = {"sequence", LP_TYPE_INT32, LP_ROWS_TOKENS, 1},
        [LP_FEED_GAP] = {"gap", LP_TYPE_REAL, LP_ROWS_TOKENS, LP_GAP_COLUMNS},
        [LP_FEED_TARGET_GAP_INPUT] = {"target_gap_input", LP_TYPE_REAL, LP_ROWS_TARGETS, LP_GAP_COLUMNS},
        [LP_FEED_POSITION_FROM_END] = {"position_from_end", LP_TYPE_INT32, LP_ROWS_TOKENS, 1},
        [LP_FEED_LABEL_ROW] = {"label_row", LP_TYPE_INT32, LP_ROWS_LABELS, 1},
        [LP_FEED_TIME_TOKEN] = {"time_token", LP_TYPE_INT32, LP_ROWS_TIME_TOKENS, 1},
        [LP_FEED_TIME_TARGET_POSITION] = {"time_target_position", LP_TYPE_INT32, LP_ROWS_TIME_TARGETS, 1},
        [LP_FEED_TIME_TARGET_GAP] = {"time_target_gap", LP_TYPE_DOUBLE, LP_ROWS_TIME_TARGETS, 1},
        [LP_FEED_TIME_TARGET_SEASON] = {"time_target_season", LP_TYPE_DOUBLE, LP_ROWS_TIME_TARGETS, 2},
        [LP_FEED_TIME_SHARE] = {"time_share", LP_TYPE_REAL, LP_ROWS_FIXED, 1},
        [LP_FEED_NO_LAG] = {"no_lag", LP_TYPE_DOUBLE, LP_ROWS_FIXED, 1},
        [LP_FEED_SEED] = {"seed", LP_TYPE_REAL, LP_ROWS_FIXED, 1},
        [LP_FEED_FREQUENCY_SAMPLE] = {"frequency_sample", LP_TYPE_INT32, LP_ROWS_FIXED, 1},
    };
    for (int i = 0; i < LP_FEED_COUNT; i++) {
        lp_rows rows_of = table[i].rows_of == LP_ROWS_LABELS && !censored ? LP_ROWS_TARGETS : table[i].rows_of;
        feeds[i] = lp_graph_input(graph, table[i].name, table[i].type, rows_of, 1,
                                  i == LP_FEED_NEGATIVE ? negatives : table[i].cols);
    }
    for (int f = 0; f < field_count; f++) {
        char name[24];
        snprintf(name, sizeof name, "field.%d", f);
        lp_type type = types[f] == LAPSE_FIELD_NUMBER ? LP_TYPE_REAL : LP_TYPE_INT32;
        feeds[LP_FEED_COUNT + f] = lp_graph_input(graph, name, type, LP_ROWS_TOKENS, 1, 1);
    }
}
