/* predictions.c: see predictions.h. A sequence without a prediction has no row in tables and CSV, and an empty list in JSON. */
#include "predictions.h"

#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "csv_cell.h"
#include "json.h"
#include "table.h"

/* The number of predictions at a query time. */
static int64_t count_at(const cli_predictions *p, const cli_target_predictions *t, int64_t sequence, int when)
{
    int64_t query = p->query_of[sequence * p->when.count + when];
    return query < 0 || t->counts[query] < 0 ? 0 : t->counts[query];
}

static const lapse_recommendation *choice_at(const cli_predictions *p, const cli_target_predictions *t,
                                             int64_t sequence, int when, int64_t rank)
{
    return &t->choices[p->query_of[sequence * p->when.count + when] * t->top + rank];
}

static double time_at(const cli_predictions *p, int64_t sequence, int when)
{
    return p->queries[p->query_of[sequence * p->when.count + when]].time;
}

/* The largest number of predictions of a sequence at any query time. */
static int64_t most_at(const cli_predictions *p, const cli_target_predictions *t, int64_t sequence)
{
    int64_t most = 0;
    for (int j = 0; j < p->when.count; j++)
        most = count_at(p, t, sequence, j) > most ? count_at(p, t, sequence, j) : most;
    return most;
}

static const char *name_of(const cli_predictions *p, const cli_target_predictions *t,
                           const lapse_recommendation *choice)
{
    return lapse_model_target_name(p->model, t->target, choice->item);
}

/* Whether the event is the only target. */
static bool events_only(const cli_predictions *p)
{
    return p->target_count == 1 && strcmp(p->targets[0].target, "event") == 0;
}

/* ---- tables ---- */

/* Adds the cells of one prediction: empty where there are fewer. */
static void add_choice(cli_table *table, const cli_predictions *p, const cli_target_predictions *t, int64_t sequence,
                       int when, int64_t rank)
{
    bool there = rank < count_at(p, t, sequence, when);
    const lapse_recommendation *choice = there ? choice_at(p, t, sequence, when, rank) : NULL;
    cli_table_add(table, "%s", there ? name_of(p, t, choice) : "");
    cli_table_add(table, "%s", there ? cli_percent(choice->probability, 1).text : "");
}

/* A row for each rank, a pair of columns for each query time. */
static void fill_by_rank(cli_table *table, const cli_predictions *p, const cli_target_predictions *t)
{
    cli_table_add(table, "sequence");
    cli_table_add(table, "rank");
    for (int i = 0; i < p->when.count; i++) {
        cli_table_add(table, "at %s", p->when.items[i].text);
        cli_table_add(table, "%s", "");
    }
    for (int64_t i = 0; i < p->shown; i++)
        for (int64_t rank = 0; rank < most_at(p, t, i); rank++) {
            cli_table_add(table, "%s", rank == 0 ? lapse_dataset_sequence_name(p->history, i) : "");
            cli_table_add(table, "%lld", (long long)rank + 1);
            for (int j = 0; j < p->when.count; j++)
                add_choice(table, p, t, i, j, rank);
        }
}

/* A row for each query time, a pair of columns for each rank. */
static void fill_by_time(cli_table *table, const cli_predictions *p, const cli_target_predictions *t, int64_t ranks)
{
    cli_table_add(table, "sequence");
    cli_table_add(table, "at");
    for (int64_t rank = 0; rank < ranks; rank++) {
        cli_table_add(table, "rank %lld", (long long)rank + 1);
        cli_table_add(table, "%s", "");
    }
    for (int64_t i = 0; i < p->shown; i++) {
        bool first = true;
        for (int j = 0; j < p->when.count; j++) {
            if (count_at(p, t, i, j) == 0)
                continue;
            cli_table_add(table, "%s", first ? lapse_dataset_sequence_name(p->history, i) : "");
            cli_table_add(table, "%s", p->when.items[j].text);
            for (int64_t rank = 0; rank < ranks; rank++)
                add_choice(table, p, t, i, j, rank);
            first = false;
        }
    }
}

static bool print_table(const cli_predictions *p, const cli_target_predictions *t, FILE *file)
{
    int64_t ranks = 0;
    for (int64_t i = 0; i < p->shown; i++)
        ranks = most_at(p, t, i) > ranks ? most_at(p, t, i) : ranks;
    size_t columns = 2 + 2 * (p->when.sweep ? (size_t)ranks : (size_t)p->when.count);
    char *align = malloc(columns + 1);
    if (!align)
        return false;
    for (size_t i = 0; i < columns; i++)
        align[i] = i % 2 == 0 ? 'l' : 'r';
    align[columns] = 0;
    cli_table table = {.align = align};
    if (p->when.sweep)
        fill_by_time(&table, p, t, ranks);
    else
        fill_by_rank(&table, p, t);
    bool whole = cli_table_print(&table, file, 0);
    free(align);
    return whole;
}

bool cli_predictions_table(const cli_predictions *p, FILE *file)
{
    bool whole = true;
    for (int i = 0; i < p->target_count && whole; i++) {
        if (!events_only(p))
            fprintf(file, "%starget: %s\n", i ? "\n" : "", p->targets[i].target);
        whole = print_table(p, &p->targets[i], file);
    }
    return whole;
}

/* ---- CSV ---- */

static void print_csv_rows(const cli_predictions *p, const cli_target_predictions *t, int64_t sequence, int when,
                           FILE *file)
{
    for (int64_t rank = 0; rank < count_at(p, t, sequence, when); rank++) {
        const lapse_recommendation *choice = choice_at(p, t, sequence, when, rank);
        cli_csv_field(file, lapse_dataset_sequence_name(p->history, sequence), p->csv_safe);
        fputc(',', file);
        cli_csv_field(file, p->when.items[when].text, p->csv_safe);
        fprintf(file, ",%.15g,%s,", time_at(p, sequence, when), cli_timestamp(time_at(p, sequence, when)).text);
        if (!events_only(p))
            fprintf(file, "%s,", t->target);
        fprintf(file, "%lld,", (long long)rank + 1);
        cli_csv_field(file, name_of(p, t, choice), p->csv_safe);
        if (p->recommends)
            fprintf(file, ",%.9g", choice->score);
        fprintf(file, ",%.9g\n", choice->probability);
    }
}

bool cli_predictions_csv(const cli_predictions *p, FILE *file)
{
    fputs(p->recommends    ? "sequence,at,time,timestamp,rank,item,score,probability\n"
          : events_only(p) ? "sequence,at,time,timestamp,rank,event,probability\n"
                           : "sequence,at,time,timestamp,target,rank,name,probability\n",
          file);
    for (int64_t i = 0; i < p->shown; i++)
        for (int j = 0; j < p->when.count; j++)
            for (int t = 0; t < p->target_count; t++)
                print_csv_rows(p, &p->targets[t], i, j, file);
    return true;
}

/* ---- JSON ---- */

/* "top" is the list of events or items, "top_actions" that of actions. */
static void json_top(const cli_predictions *p, cli_json *json, const cli_target_predictions *t, int64_t sequence,
                     int when)
{
    bool event = strcmp(t->target, "event") == 0;
    cli_json_array(json, event ? "top" : "top_actions");
    for (int64_t rank = 0; rank < count_at(p, t, sequence, when); rank++) {
        const lapse_recommendation *choice = choice_at(p, t, sequence, when, rank);
        cli_json_object(json, NULL);
        cli_json_text(json, p->recommends ? "item" : t->target, name_of(p, t, choice));
        if (p->recommends)
            cli_json_number(json, "score", choice->score, 9);
        cli_json_number(json, "probability", choice->probability, 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void json_prediction(const cli_predictions *p, cli_json *json, int64_t sequence, int when)
{
    double time = time_at(p, sequence, when);
    cli_json_object(json, NULL);
    cli_json_text(json, "at", p->when.items[when].text);
    cli_json_number(json, "time", time, 15);
    cli_json_text(json, "timestamp", cli_timestamp(time).text);
    for (int t = 0; t < p->target_count; t++)
        json_top(p, json, &p->targets[t], sequence, when);
    cli_json_end(json, '}');
}

/* The query times that histories were skipped at. */
static void json_skipped(const cli_predictions *p, cli_json *json)
{
    cli_json_array(json, "skipped");
    for (int j = 0; j < p->when.count; j++) {
        if (p->late[j].count == 0)
            continue;
        cli_json_object(json, NULL);
        cli_json_text(json, "at", p->when.items[j].text);
        cli_json_text(json, "reason", "the history ends after this time");
        cli_json_whole(json, "histories", p->late[j].count);
        cli_json_text(json, "first", lapse_dataset_sequence_name(p->history, p->late[j].first));
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

bool cli_predictions_json(const cli_predictions *p, FILE *file)
{
    cli_json json = {.file = file};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", p->model_file);
    cli_json_text(&json, "history", p->history_file);
    cli_json_array(&json, "sequences");
    for (int64_t i = 0; i < p->shown; i++) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "sequence", lapse_dataset_sequence_name(p->history, i));
        cli_json_number(&json, "last_time", p->last[i], 15);
        cli_json_array(&json, "predictions");
        for (int j = 0; j < p->when.count; j++) {
            int64_t query = p->query_of[i * p->when.count + j];
            if (query >= 0 && p->targets[0].counts[query] >= 0)
                json_prediction(p, &json, i, j);
        }
        cli_json_end(&json, ']');
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    json_skipped(p, &json);
    cli_json_end(&json, '}');
    return true;
}
