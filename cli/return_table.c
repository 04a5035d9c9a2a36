/* return_table.c: see return_table.h. */
#include "return_table.h"

#include "console.h"
#include "table.h"

/* "7 days" */
static cli_words duration(double seconds)
{
    cli_words words;
    lapse_duration_format(seconds, words.text, sizeof words.text);
    return words;
}

static void add_score(cli_table *table, const lapse_return_score *score)
{
    cli_table_add(table, "%s", score->name);
    cli_table_add(table, "%.4f", score->brier);
    if (score->brier_low < score->brier_high)
        cli_table_add(table, "%.4f to %.4f", score->brier_low, score->brier_high);
    else
        cli_table_add(table, "%s", "");
    cli_table_add(table, "%.4f", score->log_loss);
    cli_table_add(table, "%s", cli_percent(score->mean, 1).text);
}

static bool print_horizon(FILE *file, const lapse_return_scores *scores, const lapse_return_horizon *horizon)
{
    cli_table table = {.align = "lrlrr"}, groups = {.align = "lrrr"};
    static const char *const headings[] = {"", "Brier", "95 % interval", "log-loss", "mean chance"};
    static const char *const columns[] = {"chances", "histories", "predicted", "observed"};
    fprintf(file, "\nwithin %s: %s of %s came back, %s\n", duration(horizon->seconds).text,
            cli_count(horizon->returned).text, cli_count(scores->cases).text,
            cli_percent((double)horizon->returned / (double)scores->cases, 1).text);
    for (int i = 0; i < 5; i++)
        cli_table_add(&table, "%s", headings[i]);
    for (int i = 0; i < 4; i++) {
        add_score(&table, &horizon->scores[i]);
        cli_table_add(&groups, "%s", columns[i]);
    }
    for (int g = 0; g < LAPSE_RETURN_GROUPS; g++) {
        const lapse_return_group *group = &horizon->groups[g];
        cli_table_add(&groups, "%s", g == 0 ? "lowest fifth" : g == LAPSE_RETURN_GROUPS - 1 ? "highest fifth" : "");
        cli_table_add(&groups, "%s", cli_count(group->cases).text);
        cli_table_add(&groups, "%s", cli_percent(group->predicted, 1).text);
        cli_table_add(&groups, "%s", cli_percent(group->observed, 1).text);
    }
    bool whole = cli_table_print(&table, file, 0);
    fputc('\n', file);
    return cli_table_print(&groups, file, 0) && whole;
}

bool cli_returns_print(FILE *file, const lapse_return_scores *scores)
{
    bool whole = true;
    fprintf(file, "returns      %s: %s as of %s; what they did later is held out\n", scores->split,
            cli_plural(scores->cases, "history", "histories").text, cli_timestamp(scores->now).text);
    for (int h = 0; h < scores->horizon_count; h++)
        whole = print_horizon(file, scores, &scores->horizons[h]) && whole;
    if (scores->step_count == 0)
        return whole;
    cli_table table = {.align = "lrrr"};
    static const char *const headings[] = {"events until", "observed", NULL, "bg/nbd"};
    for (int i = 0; i < 4; i++)
        cli_table_add(&table, "%s", headings[i] ? headings[i] : scores->horizons[0].scores[0].name);
    for (int k = 0; k < scores->step_count; k++) {
        const lapse_return_step *step = &scores->steps[k];
        cli_table_add(&table, "%s", duration(step->seconds).text);
        cli_table_add(&table, "%s", cli_count((int64_t)step->observed).text);
        cli_table_add(&table, "%s", cli_count((int64_t)(step->expected + 0.5)).text);
        cli_table_add(&table, "%s", cli_count((int64_t)(step->bg_nbd + 0.5)).text);
    }
    fputc('\n', file);
    return cli_table_print(&table, file, 0) && whole;
}

static void horizon_json(cli_json *json, const lapse_return_horizon *horizon)
{
    cli_json_object(json, NULL);
    cli_json_number(json, "seconds", horizon->seconds, 15);
    cli_json_whole(json, "returned", horizon->returned);
    cli_json_array(json, "scores");
    for (int i = 0; i < 4; i++) {
        const lapse_return_score *score = &horizon->scores[i];
        cli_json_object(json, NULL);
        cli_json_text(json, "name", score->name);
        cli_json_number(json, "brier", score->brier, 9);
        cli_json_number(json, "brier_low", score->brier_low, 9);
        cli_json_number(json, "brier_high", score->brier_high, 9);
        cli_json_number(json, "log_loss", score->log_loss, 9);
        cli_json_number(json, "mean", score->mean, 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    cli_json_array(json, "groups");
    for (int g = 0; g < LAPSE_RETURN_GROUPS; g++) {
        cli_json_object(json, NULL);
        cli_json_whole(json, "cases", horizon->groups[g].cases);
        cli_json_number(json, "predicted", horizon->groups[g].predicted, 9);
        cli_json_number(json, "observed", horizon->groups[g].observed, 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
    cli_json_end(json, '}');
}

void cli_returns_json(cli_json *json, const lapse_return_scores *scores)
{
    cli_json_text(json, "split", scores->split);
    cli_json_text(json, "now", cli_timestamp(scores->now).text);
    cli_json_whole(json, "cases", scores->cases);
    cli_json_array(json, "within");
    for (int h = 0; h < scores->horizon_count; h++)
        horizon_json(json, &scores->horizons[h]);
    cli_json_end(json, ']');
    cli_json_array(json, "events");
    for (int k = 0; k < scores->step_count; k++) {
        cli_json_object(json, NULL);
        cli_json_number(json, "seconds", scores->steps[k].seconds, 15);
        cli_json_number(json, "observed", scores->steps[k].observed, 15);
        cli_json_number(json, "expected", scores->steps[k].expected, 9);
        cli_json_number(json, "bg_nbd", scores->steps[k].bg_nbd, 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}
