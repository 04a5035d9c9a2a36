/* censoring.c: whether a run learns from the gaps that are open at the end of the data.
 *
 * Open gaps are learned wherever it is known how long they are. That is right for histories that go on, whose last gap is cut off, and
 * for those that have ended, whose last gap outlasts the data: both are told apart by the lengths of the gaps. */
#include "data/dataset/gap_quantile.h"
#include "data/dataset/target_events.h"
#include "train/train_options.h"

#include <math.h>
#include <stdio.h>

/* The last event of each sequence in the training split: the gap after it is open at `end`, if it lies before. */
typedef struct open_gaps {
    int64_t sequences, open, longer; /* longer: than `usual` */
    double usual;                    /* 95 % of the gaps that have ended are shorter */
} open_gaps;

static open_gaps count_open(const lapse_dataset *dataset, const uint8_t *split, double end, double usual)
{
    open_gaps gaps = {.usual = usual};
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t first = (int64_t)dataset->start[s], last = (int64_t)dataset->start[s + 1] - 1;
        while (last >= first && split[last] != LP_SPLIT_TRAIN)
            last--;
        if (last < first)
            continue;
        gaps.sequences++;
        gaps.open += dataset->time[last] < end;
        gaps.longer += end - dataset->time[last] > usual;
    }
    return gaps;
}

/* Seconds from the first to the last event of the training split. */
static double span_of(const lapse_dataset *dataset, const uint8_t *split)
{
    double first = INFINITY, last = -INFINITY;
    for (int64_t i = 0; i < dataset->event_count; i++)
        if (split[i] == LP_SPLIT_TRAIN) {
            first = fmin(first, dataset->time[i]);
            last = fmax(last, dataset->time[i]);
        }
    return fmax(last - first, 0);
}

lapse_status lp_censoring_resolve(lapse_train_options *options, const lapse_dataset *dataset, const uint8_t *split,
                                  lapse_error *error)
{
    lp_model_config *config = &options->model;
    const lp_split_rule *rule = lp_split_rule_find(lapse_split_by_names()[options->run.split_by]);
    char *reason = options->censoring_reason;
    size_t size = sizeof options->censoring_reason;
    double end, usual;
    lapse_error none;
    bool predicts = config->when || config->row->next_time;
    if (predicts)
        config->when_span = span_of(dataset, split);
    if (config->censoring != LP_CENSORING_AUTO)
        return LAPSE_OK;
    config->censoring = LP_CENSORING_OFF;
    if (!predicts)
        return LAPSE_OK;
    if (lp_target_events_action(config->target))
        snprintf(reason, size, "the times of the target events alone are learned, %.80s", config->target);
    else if (lp_dataset_relative(dataset))
        snprintf(reason, size, "times are relative, so sequences share no end of observation");
    else if (lp_split_end(dataset, rule, split, LP_SPLIT_TRAIN, &end, &none) != LAPSE_OK)
        snprintf(reason, size, "%.380s", none.message);
    else {
        char gap[64], time[64];
        LP_TRY(lp_gap_quantile(dataset, split, 1, 0.95, &usual, error));
        open_gaps gaps = count_open(dataset, split, end, usual);
        config->censoring = LP_CENSORING_ON;
        snprintf(reason, size,
                 "%lld of %lld sequences are silent at the end of the observation, %s, and %lld of them for longer than 95 %% of "
                 "the gaps that have ended (%s)",
                 (long long)gaps.open, (long long)gaps.sequences, lapse_time_format(end, time, sizeof time),
                 (long long)gaps.longer, lapse_duration_format(gaps.usual, gap, sizeof gap));
    }
    return LAPSE_OK;
}
