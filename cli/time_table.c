/* time_table.c: see time_table.h. */
#include "time_table.h"

#include "console.h"
#include "table.h"

static const char *const coverage_names[LAPSE_COVERAGE_COUNT] = {"50 %", "80 %", "95 %"};

bool cli_times_print(FILE *file, const lapse_time_scores *scores)
{
    cli_table table = {.align = "lrrrrrrrr"};
    fprintf(file, "next time    %s: %s; NLL in nats per event, with times in %ss\n", scores->split,
            cli_plural(scores->cases, "event", "events").text, scores->unit_name);
    cli_table_add(&table, "%s", "");
    cli_table_add(&table, "NLL");
    cli_table_add(&table, "MAE of median");
    cli_table_add(&table, "RMSE of mean");
    cli_table_add(&table, "CRPS");
    for (int c = 0; c < LAPSE_COVERAGE_COUNT; c++)
        cli_table_add(&table, "within %s", coverage_names[c]);
    cli_table_add(&table, "PIT distance");
    for (int i = 0; i < scores->count; i++) {
        const lapse_time_score *score = &scores->scores[i];
        cli_table_add(&table, "%s", score->name);
        cli_table_add(&table, "%.4f", score->nll);
        cli_table_add(&table, "%.4g", score->mae);
        cli_table_add(&table, "%.4g", score->rmse);
        cli_table_add(&table, "%.4g", score->crps);
        for (int c = 0; c < LAPSE_COVERAGE_COUNT; c++)
            cli_table_add(&table, "%s", cli_percent(score->coverage[c], 1).text);
        cli_table_add(&table, "%.4f", score->pit_distance);
    }
    return cli_table_print(&table, file, 0);
}

static void score_json(cli_json *json, const lapse_time_score *score)
{
    static const char *const keys[LAPSE_COVERAGE_COUNT] = {"coverage_50", "coverage_80", "coverage_95"};
    cli_json_text(json, "name", score->name);
    cli_json_number(json, "nll", score->nll, 9);
    if (score->nll_low < score->nll_high) {
        cli_json_number(json, "nll_low", score->nll_low, 9);
        cli_json_number(json, "nll_high", score->nll_high, 9);
    }
    cli_json_number(json, "mae", score->mae, 9);
    cli_json_number(json, "rmse", score->rmse, 9);
    cli_json_number(json, "crps", score->crps, 9);
    for (int c = 0; c < LAPSE_COVERAGE_COUNT; c++)
        cli_json_number(json, keys[c], score->coverage[c], 9);
    cli_json_number(json, "pit_distance", score->pit_distance, 9);
}

void cli_times_json(cli_json *json, const lapse_time_scores *scores)
{
    cli_json_object(json, "time");
    cli_json_text(json, "unit", scores->unit_name);
    cli_json_number(json, "unit_seconds", scores->unit, 9);
    cli_json_number(json, "floor_seconds", scores->floor, 9);
    cli_json_whole(json, "cases", scores->cases);
    cli_json_whole(json, "sequences", scores->sequences);
    cli_json_array(json, "scores");
    for (int i = 0; i < scores->count; i++) {
        cli_json_object(json, NULL);
        score_json(json, &scores->scores[i]);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    cli_json_end(json, '}');
}
