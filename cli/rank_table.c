/* rank_table.c: see rank_table.h. Protocols are columns and metrics are rows, each with its interval in the row below. */
#include "rank_table.h"

#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "lookup.h"
#include "score_table.h"
#include "table.h"

bool cli_is_recommender(const lapse_model *model)
{
    const char *task = cli_model_property(model, "task");
    return task && strcmp(task, "recommend") == 0;
}

int64_t cli_validation_cases(const lapse_model *model)
{
    const char *cases = cli_model_property(model, "score.valid.cases");
    return cases ? strtoll(cases, NULL, 10) : 0;
}

static void print_head(FILE *file, const lapse_rank_scores *scores)
{
    const lapse_rank_slice *whole = &scores->whole;
    fprintf(file, "split        %s: %s in %s", scores->split, cli_plural(whole->cases, "event", "events").text,
            cli_plural(whole->sequences, "sequence", "sequences").text);
    fprintf(file, ", among %s\n", cli_plural(scores->items, "item", "items").text);
    if (whole->cases < scores->case_total)
        fprintf(file, "             sampled from %s, seed %llu\n",
                cli_plural(scores->case_total, "event", "events").text, (unsigned long long)scores->negative_seed);
    cli_target_time_print(file, scores->target_time);
    if (scores->negatives == 0)
        return;
    fprintf(file, "negatives    %d per event, seed %llu, never an item of the sequence itself\n", scores->negatives,
            (unsigned long long)scores->negative_seed);
    if (strcmp(scores->popularity, "training") != 0)
        fprintf(file, "             popularity is counted in this dataset: the training split is not available\n");
    for (int p = 0; p < LAPSE_RANK_PROTOCOLS; p++)
        if (whole->scores[p].short_cases > 0)
            fprintf(file, "             %s: %s had fewer candidates, and all of them were used\n",
                    whole->scores[p].protocol, cli_plural(whole->scores[p].short_cases, "event", "events").text);
}

/* The metric of a row: Hit@K and NDCG@K by cutoff, then MRR. */
static lapse_mean mean_at(const lapse_rank_score *score, int row, int cutoffs)
{
    return row == 2 * cutoffs ? score->mrr : row % 2 ? score->ndcg[row / 2] : score->hit[row / 2];
}

static void add_name(cli_table *table, int row, const lapse_rank_scores *scores)
{
    if (row == 2 * scores->cutoff_count)
        cli_table_add(table, "MRR");
    else
        cli_table_add(table, row % 2 ? "NDCG@%d" : "Hit@%d", scores->cutoffs[row / 2]);
}

static bool has_interval(lapse_mean mean)
{
    return mean.low < mean.high;
}

static void add_interval(cli_table *table, lapse_mean mean)
{
    if (has_interval(mean))
        cli_table_add(table, "%.3f-%.3f", mean.low, mean.high);
    else
        cli_table_add(table, "%s", "");
}

static bool print_whole(FILE *file, const lapse_rank_scores *scores)
{
    int protocols = scores->negatives > 0 ? LAPSE_RANK_PROTOCOLS : 2;
    cli_table table = {.align = protocols == 2 ? "lrr" : "lrrrr"};
    const lapse_rank_score *score = scores->whole.scores;
    cli_table_add(&table, "%s", "");
    for (int p = 0; p < protocols; p++)
        cli_table_add(&table, "%s", score[p].protocol);
    cli_table_add(&table, "candidates");
    for (int p = 0; p < protocols; p++)
        cli_table_add(&table, "%.1f", score[p].candidates);
    for (int row = 0; row <= 2 * scores->cutoff_count; row++) {
        bool intervals = false;
        add_name(&table, row, scores);
        for (int p = 0; p < protocols; p++) {
            lapse_mean mean = mean_at(&score[p], row, scores->cutoff_count);
            cli_table_add(&table, "%.4f", mean.mean);
            intervals = intervals || has_interval(mean);
        }
        if (!intervals)
            continue;
        cli_table_add(&table, "  95 %%");
        for (int p = 0; p < protocols; p++)
            add_interval(&table, mean_at(&score[p], row, scores->cutoff_count));
    }
    return cli_table_print(&table, file, 0);
}

/* Prints the slices by one property, from `first` on; adds their number to *count. */
static bool print_slices(FILE *file, const lapse_rank_scores *scores, int first, int *count)
{
    static const int shown[] = {0, 2}; /* full-unseen, with its interval, and uniform */
    int last = scores->cutoff_count - 1, columns = scores->negatives > 0 ? 2 : 1;
    cli_table table = {.align = columns == 2 ? "lrrrrrr" : "lrrrr"};
    const char *by = scores->slices[first].by;
    cli_table_add(&table, "by %s", by);
    cli_table_add(&table, "events");
    for (int c = 0; c < columns; c++) {
        cli_table_add(&table, "%s Hit@%d", scores->whole.scores[shown[c]].protocol, scores->cutoffs[last]);
        cli_table_add(&table, "NDCG@%d", scores->cutoffs[last]);
        if (c == 0)
            cli_table_add(&table, "95 %%");
    }
    for (int i = first; i < scores->slice_count && strcmp(scores->slices[i].by, by) == 0; i++, ++*count) {
        const lapse_rank_slice *slice = &scores->slices[i];
        cli_table_add(&table, "%s", slice->name);
        cli_table_add(&table, "%s", cli_count(slice->cases).text);
        for (int c = 0; c < columns; c++) {
            cli_table_add(&table, "%.4f", slice->scores[shown[c]].hit[last].mean);
            cli_table_add(&table, "%.4f", slice->scores[shown[c]].ndcg[last].mean);
            if (c == 0)
                add_interval(&table, slice->scores[0].ndcg[last]);
        }
    }
    return cli_table_print(&table, file, 0);
}

/* A line for each protocol of the table, in the order of its columns. */
static void explain_protocols(FILE *file, const lapse_rank_scores *scores)
{
    fputs("full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one\n"
          "full         rank among all items, as predict: quote this one where items repeat\n",
          file);
    if (scores->negatives > 0)
        fprintf(file,
                "uniform      rank among %d random items: easier, to compare with studies that do the same\n"
                "popularity   rank among %d items drawn by their popularity: likewise\n",
                scores->negatives, scores->negatives);
}

bool cli_ranks_print(FILE *file, const lapse_rank_scores *scores)
{
    print_head(file, scores);
    fputc('\n', file);
    bool whole = print_whole(file, scores);
    explain_protocols(file, scores);
    for (int first = 0, count = 0; first < scores->slice_count; first += count, count = 0) {
        fputc('\n', file);
        whole = print_slices(file, scores, first, &count) && whole;
    }
    return whole;
}

/* --------------------------------------------------------------------------------------------------- JSON ----- */

static void mean_json(cli_json *json, const char *name, lapse_mean mean)
{
    char bound[80];
    cli_json_number(json, name, mean.mean, 9);
    if (!has_interval(mean))
        return;
    snprintf(bound, sizeof bound, "%s_low", name);
    cli_json_number(json, bound, mean.low, 9);
    snprintf(bound, sizeof bound, "%s_high", name);
    cli_json_number(json, bound, mean.high, 9);
}

static void slice_json(cli_json *json, const lapse_rank_scores *scores, const lapse_rank_slice *slice)
{
    for (int p = 0; p < LAPSE_RANK_PROTOCOLS; p++) {
        const lapse_rank_score *score = &slice->scores[p];
        if (score->candidates == 0)
            continue;
        cli_json_object(json, score->protocol);
        cli_json_number(json, "candidates", score->candidates, 9);
        if (p >= 2)
            cli_json_whole(json, "short_cases", score->short_cases);
        for (int k = 0; k < scores->cutoff_count; k++) {
            char name[64];
            snprintf(name, sizeof name, "hit@%d", scores->cutoffs[k]);
            mean_json(json, name, score->hit[k]);
            snprintf(name, sizeof name, "ndcg@%d", scores->cutoffs[k]);
            mean_json(json, name, score->ndcg[k]);
        }
        mean_json(json, "mrr", score->mrr);
        cli_json_end(json, '}');
    }
}

void cli_ranks_json(cli_json *json, const lapse_rank_scores *scores)
{
    cli_json_text(json, "split", scores->split);
    cli_json_text(json, "target_time", scores->target_time);
    cli_json_whole(json, "cases", scores->whole.cases);
    cli_json_whole(json, "cases_total", scores->case_total);
    cli_json_whole(json, "sequences", scores->whole.sequences);
    cli_json_whole(json, "items", scores->items);
    cli_json_whole(json, "negatives", scores->negatives);
    cli_json_seed(json, "negative_seed", scores->negative_seed);
    cli_json_text(json, "popularity_of", scores->popularity);
    cli_json_object(json, "protocols");
    slice_json(json, scores, &scores->whole);
    cli_json_end(json, '}');
    if (scores->slice_count == 0)
        return;
    cli_json_array(json, "slices");
    for (int i = 0; i < scores->slice_count; i++) {
        const lapse_rank_slice *slice = &scores->slices[i];
        cli_json_object(json, NULL);
        cli_json_text(json, "by", slice->by);
        cli_json_text(json, "name", slice->name);
        cli_json_whole(json, "cases", slice->cases);
        cli_json_whole(json, "sequences", slice->sequences);
        slice_json(json, scores, slice);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}
