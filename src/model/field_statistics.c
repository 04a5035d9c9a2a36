/* field_statistics.c: statistics of fields and gaps over the training split. */
#include "model/field_statistics.h"

#include "data/dataset/gap_quantile.h"

#include <math.h>

/* The quantile of the positive gaps that stands for the shortest one, which itself may be an outlier. */
static const double LEAST_GAP = 0.001;

/* Default embedding width for a categorical field: 2 + n / 2, at most 50. */
static int default_dims(int64_t categories)
{
    return categories < 96 ? 2 + (int)categories / 2 : 50;
}

/* Mean and deviation by Welford's algorithm. */
typedef struct moments {
    double mean, squares;
    int64_t count;
} moments;

static void add_number(moments *sum, double number)
{
    double distance = number - sum->mean;
    sum->mean += distance / (double)++sum->count;
    sum->squares += distance * (number - sum->mean);
}

/* 0 and 1 where they are undefined. */
static void take(const moments *sum, double *mean, double *deviation)
{
    double spread = sum->count ? sqrt(sum->squares / (double)sum->count) : 0;
    *mean = isfinite(sum->mean) ? sum->mean : 0;
    *deviation = isfinite(spread) && spread > 0 ? spread : 1;
}

/* Mean and deviation of a number in the training split. */
static void measure(const lapse_dataset *dataset, const uint8_t *split, const lp_field *field, lp_model_field *out)
{
    moments sum = {0};
    for (int64_t i = 0; i < dataset->event_count; i++)
        if (split[i] == LP_SPLIT_TRAIN && !isnan(field->number[i]))
            add_number(&sum, field->number[i]);
    take(&sum, &out->mean, &out->deviation);
}

void lp_field_statistics(const lapse_dataset *dataset, const uint8_t *split, int dims, lp_model_field *fields)
{
    for (int f = 0; f < dataset->field_count; f++) {
        const lp_field *field = &dataset->fields[f];
        fields[f] = (lp_model_field){.name = field->name, .type = field->type, .dims = 1};
        if (field->type == LAPSE_FIELD_NUMBER) {
            measure(dataset, split, field, &fields[f]);
            continue;
        }
        fields[f].categories = field->categories;
        fields[f].dims = dims > 0 ? dims : default_dims(field->categories.count);
    }
}

lapse_status lp_when_floor(const lapse_dataset *dataset, const uint8_t *split, double *floor, lapse_error *error)
{
    LP_TRY(lp_gap_quantile(dataset, split, 1, LEAST_GAP, floor, error));
    *floor = fmin(fmax(*floor, 1e-30), 1e30);
    return LAPSE_OK;
}

/* The profile of the rate of events after a silence above the geometric mean of the gaps: the background is what comes then, and events
 * that follow shortly on others would count its hours several times. */
static void estimate_season(const lapse_dataset *dataset, const uint8_t *split, lp_model_config *config)
{
    lp_season_counts counts = {0};
    double silence = exp(config->when_mean);
    for (int64_t s = 0; config->when_background == LP_BACKGROUND_WEEK && s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++) {
            double gap = dataset->time[i] - dataset->time[i - 1];
            if (split[i] == LP_SPLIT_TRAIN && gap > silence)
                lp_season_count(&counts, dataset->time[i - 1] + silence, gap - silence);
        }
    lp_season_estimate(&config->season, &counts);
}

lapse_status lp_when_statistics(const lapse_dataset *dataset, const uint8_t *split, lp_model_config *config,
                                lapse_error *error)
{
    moments sum = {0};
    bool positive = false;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++) {
            double gap = dataset->time[i] - dataset->time[i - 1];
            if (split[i] != LP_SPLIT_TRAIN)
                continue;
            positive |= gap > 0;
            add_number(&sum, log(fmax(gap, config->when_floor)));
        }
    if (!positive)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       LP_FLAG("--when") " needs times between events, and all events of every training sequence are "
                                         "at the same time");
    take(&sum, &config->when_mean, &config->when_deviation);
    config->when_deviation = fmax(config->when_deviation, 1e-3);
    estimate_season(dataset, split, config);
    return LAPSE_OK;
}

lapse_status lp_gap_statistics(const lapse_dataset *dataset, const uint8_t *split, lp_gap_scale *scale,
                               lapse_error *error)
{
    LP_TRY(lp_gap_quantile(dataset, split, 1, LEAST_GAP, &scale->offset, error));
    if (!(scale->offset > 0))
        scale->offset = 1;
    moments sum = {0};
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            if (split[i] == LP_SPLIT_TRAIN)
                add_number(&sum, log(dataset->time[i] - dataset->time[i - 1] + scale->offset));
    take(&sum, &scale->mean, &scale->deviation);
    return LAPSE_OK;
}
