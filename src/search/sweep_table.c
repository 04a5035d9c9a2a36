/* sweep_table.c: the table of a sweep: choosing cells on the validation split, means over seeds, the best row and paired tests. */
#include "search/sweep.h"

#include "base/threads.h"
#include "search/paired_test.h"

#include <math.h>

/* The first metric of the task is that of column 0. */
static int metric_column(const lapse_sweep *sweep, int metric)
{
    return metric - (int)lp_metric_first((lp_task)sweep->task);
}

static int metric_count(const lapse_sweep *sweep)
{
    return sweep->task == LP_TASK_CLASSIFY ? 2 : LP_OUTCOME_METRICS;
}

/* A column of a ranking after those of training: outcomes.h. */
static const char *metric_name(const lapse_sweep *sweep, int column)
{
    int metric = (int)lp_metric_first((lp_task)sweep->task) + column;
    return metric <= LP_METRIC_MRR ? lp_metric_names[metric] : column == 3 ? "ndcg@5" : "hit@5";
}

/* The record of a finished run with scores, or NULL. */
static const lp_run_record *scored(const lapse_sweep *sweep, int cell, int seed)
{
    const lp_sweep_run *run = lp_sweep_run_of(sweep, cell, seed);
    return run->state == LP_RUN_DONE && !run->record.diverged ? &run->record : NULL;
}

/* ---------------------------------------------------------------------------------------------- choosing ----- */

/* Mean validation score over the seeds that choose; NaN if a run is missing or has diverged. */
static double choice_score(const lapse_sweep *sweep, int cell)
{
    double sum = 0;
    int seeds = lp_sweep_choice_seeds(sweep);
    for (int s = 0; s < seeds; s++) {
        const lp_run_record *record = scored(sweep, cell, s);
        sum += record ? record->score : NAN;
    }
    return sum / seeds;
}

/* All runs of the cell that choose are finished. */
static bool is_complete(const lapse_sweep *sweep, int cell)
{
    for (int s = 0; s < lp_sweep_choice_seeds(sweep); s++)
        if (lp_sweep_run_of(sweep, cell, s)->state != LP_RUN_DONE)
            return false;
    return true;
}

void lp_sweep_choose(lapse_sweep *sweep)
{
    for (int r = 0; r < sweep->row_count; r++) {
        int best = -1;
        bool complete = true;
        double best_score = NAN;
        for (int c = 0; c < sweep->cell_count; c++) {
            if (sweep->cells[c].row != r)
                continue;
            double score = choice_score(sweep, c);
            sweep->cells[c].chosen = sweep->cells[c].settled = false;
            complete = complete && is_complete(sweep, c);
            if (best < 0 || lp_metric_better((lp_metric)sweep->select, score, best_score)) {
                best = c;
                best_score = score;
            }
        }
        if (best >= 0) {
            sweep->cells[best].chosen = true;
            sweep->cells[best].settled = complete;
        }
    }
}

/* ------------------------------------------------------------------------------------------------- means ----- */

typedef struct summing {
    double sum, squares;
    int count;
    double first;
} summing;

static void add(summing *s, double value)
{
    if (s->count == 0)
        s->first = value;
    double shifted = value - s->first; /* equal values have a deviation of exactly 0 */
    s->sum += shifted;
    s->squares += shifted * shifted;
    s->count++;
}

static lapse_spread spread(const summing *s)
{
    if (s->count == 0)
        return (lapse_spread){NAN, NAN, 0};
    double mean = s->sum / s->count;
    double variance = s->count > 1 ? (s->squares - s->count * mean * mean) / (s->count - 1) : 0;
    return (lapse_spread){s->first + mean, variance > 0 ? sqrt(variance) : 0, s->count};
}

/* Seconds until the first epoch with this validation score; NaN: none. */
static double reach_seconds(const lapse_sweep *sweep, const lp_run_record *record)
{
    double wanted = sweep->settings.reach;
    for (int e = 0; e < record->epochs; e++) {
        double score = record->curve[e].score;
        if (score == wanted || lp_metric_better((lp_metric)sweep->select, score, wanted))
            return record->curve[e].seconds;
    }
    return NAN;
}

static void fill_cell(const lapse_sweep *sweep, int index, lapse_sweep_cell *out)
{
    const lp_sweep_cell *cell = &sweep->cells[index];
    summing valid = {0}, metrics[LP_OUTCOME_METRICS] = {{0}}, epochs = {0}, epoch = {0}, seconds = {0}, reach = {0};
    *out = (lapse_sweep_cell){.row = sweep->row_names[cell->row],
                              .row_index = cell->row,
                              .config = cell->config,
                              .chosen = cell->chosen,
                              .best = index == sweep->best,
                              .difference = cell->difference,
                              .p = cell->p};
    for (int s = 0; s < sweep->seed_count; s++) {
        const lp_run_record *record = scored(sweep, index, s);
        bool done = lp_sweep_run_of(sweep, index, s)->state == LP_RUN_DONE;
        out->runs += done;
        out->diverged += done && !record;
        if (!record)
            continue;
        add(&valid, record->score);
        for (int m = 0; m < record->metrics; m++)
            add(&metrics[m], lp_run_record_mean(record, m));
        add(&seconds, record->seconds);
        if (out->cases == 0)
            out->cases = record->cases;
        out->parameters = record->parameters;
        if (record->epochs == 0)
            continue;
        add(&epochs, record->epochs);
        add(&epoch, record->seconds / record->epochs);
        double reached = isnan(sweep->settings.reach) ? NAN : reach_seconds(sweep, record);
        if (!isnan(reached))
            add(&reach, reached);
    }
    out->valid = spread(&valid);
    out->epochs = spread(&epochs);
    out->epoch_seconds = spread(&epoch);
    out->seconds = spread(&seconds);
    out->reach = spread(&reach);
    for (int m = 0; m < metric_count(sweep); m++)
        out->metrics[m] = spread(&metrics[m]);
}

/* ------------------------------------------------------------------------------------------------- tests ----- */

static double cell_mean(const lapse_sweep *sweep, int cell)
{
    summing sum = {0};
    for (int s = 0; s < sweep->seed_count; s++) {
        const lp_run_record *record = scored(sweep, cell, s);
        if (record && record->metrics > 0)
            add(&sum, lp_run_record_mean(record, metric_column(sweep, sweep->metric)));
    }
    return spread(&sum).mean;
}

/* records: of 2 x seeds. */
static lapse_status test_cells(const lapse_sweep *sweep, int one, int two, int metric, const lp_run_record **records,
                               lp_paired *paired, lapse_error *error)
{
    for (int s = 0; s < sweep->seed_count; s++) {
        records[s] = scored(sweep, one, s);
        records[sweep->seed_count + s] = scored(sweep, two, s);
    }
    return lp_paired_test(records, records + sweep->seed_count, sweep->seed_count, metric, sweep->settings.bootstrap,
                          lp_threads_available(), paired, error);
}

/* The chosen cell of a row; -1: there is no such row. */
static int chosen_cell(const lapse_sweep *sweep, int row)
{
    for (int c = 0; c < sweep->cell_count; c++)
        if (sweep->cells[c].row == row && sweep->cells[c].chosen)
            return c;
    return -1;
}

lapse_status lp_sweep_test(lapse_sweep *sweep, lapse_error *error)
{
    double best_mean = NAN;
    lapse_status status = LAPSE_OK;
    const lp_run_record **records = lp_alloc(2 * (size_t)sweep->seed_count, sizeof *records);
    if (!records)
        return lp_fail_memory(error, "a paired test", 2 * (size_t)sweep->seed_count * sizeof *records);
    sweep->best = -1;
    for (int c = 0; c < sweep->cell_count; c++) {
        double mean = sweep->cells[c].chosen ? cell_mean(sweep, c) : NAN;
        sweep->cells[c].difference = (lapse_mean){NAN, NAN, NAN};
        sweep->cells[c].p = NAN;
        if (!isnan(mean) && (sweep->best < 0 || lp_metric_better((lp_metric)sweep->metric, mean, best_mean))) {
            sweep->best = c;
            best_mean = mean;
        }
    }
    for (int c = 0; status == LAPSE_OK && sweep->best >= 0 && c < sweep->cell_count; c++) {
        lp_sweep_cell *cell = &sweep->cells[c];
        lp_paired paired = {{NAN, NAN, NAN}, NAN};
        if (cell->chosen && c != sweep->best)
            status = test_cells(sweep, c, sweep->best, metric_column(sweep, sweep->metric), records, &paired, error);
        cell->difference = paired.difference;
        cell->p = paired.p;
    }
    lp_free(records);
    return status;
}

lapse_status lapse_sweep_test(const lapse_sweep *sweep, int row, int other, int metric, lapse_mean *difference, double *p,
                              lapse_error *error)
{
    LP_REQUIRE(error, sweep, difference, p);
    int one = chosen_cell(sweep, row), two = chosen_cell(sweep, other);
    lp_paired paired;
    if (one < 0 || two < 0 || metric < 0 || metric >= metric_count(sweep))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the comparison has no such rows or metric");
    const lp_run_record **records = lp_alloc(2 * (size_t)sweep->seed_count, sizeof *records);
    if (!records)
        return lp_fail_memory(error, "a paired test", 2 * (size_t)sweep->seed_count * sizeof *records);
    lapse_status status = test_cells(sweep, one, two, metric, records, &paired, error);
    lp_free(records);
    *difference = paired.difference;
    *p = paired.p;
    return status;
}

/* ------------------------------------------------------------------------------------------------ public ----- */

lapse_sweep_info lapse_sweep_describe(const lapse_sweep *sweep)
{
    lapse_sweep_info info = {.split = lp_split_name(sweep->evaluation.split),
                             .target = lp_predict_names[sweep->target],
                             .protocol =
                                 sweep->task == LP_TASK_RECOMMEND ? lp_protocol_name(sweep->evaluation.protocol) : NULL,
                             .select = lp_metric_names[sweep->select],
                             .reach = sweep->settings.reach,
                             .metric_count = metric_count(sweep),
                             .shown = sweep->task == LP_TASK_CLASSIFY ? 2 : 3,
                             .metric = metric_column(sweep, sweep->metric),
                             .rows = sweep->row_count,
                             .cells = sweep->cell_count,
                             .seeds = sweep->seed_count,
                             .parallel = sweep->parallel,
                             .device = sweep->device};
    for (int m = 0; m < info.metric_count; m++)
        info.metric_names[m] = metric_name(sweep, m);
    for (int i = 0; i < sweep->run_count; i++) {
        info.runs += lp_sweep_needs(sweep, &sweep->runs[i]);
        info.finished += lp_sweep_needs(sweep, &sweep->runs[i]) && sweep->runs[i].state == LP_RUN_DONE;
    }
    return info;
}

bool lapse_sweep_row(const lapse_sweep *sweep, int index, lapse_sweep_cell *row)
{
    int cell = chosen_cell(sweep, index);
    return cell >= 0 && lapse_sweep_cell_at(sweep, cell, row);
}

bool lapse_sweep_cell_at(const lapse_sweep *sweep, int index, lapse_sweep_cell *cell)
{
    if (index < 0 || index >= sweep->cell_count)
        return false;
    fill_cell(sweep, index, cell);
    return true;
}

bool lapse_sweep_result_at(const lapse_sweep *sweep, int row, int seed, lapse_sweep_result *result)
{
    int cell = chosen_cell(sweep, row);
    if (cell < 0 || seed < 0 || seed >= sweep->seed_count || lp_sweep_run_of(sweep, cell, seed)->state != LP_RUN_DONE)
        return false;
    const lp_run_record *record = &lp_sweep_run_of(sweep, cell, seed)->record;
    *result = (lapse_sweep_result){.seed = sweep->seeds[seed],
                                   .diverged = record->diverged,
                                   .valid = record->score,
                                   .seconds = record->seconds,
                                   .epochs = record->epochs,
                                   .best_epoch = record->best_epoch,
                                   .curve = record->curve ? &record->curve[0].seconds : NULL};
    for (int m = 0; m < metric_count(sweep); m++)
        result->metrics[m] = m < record->metrics ? lp_run_record_mean(record, m) : NAN;
    return true;
}
