/* field_statistics.c: statistics of fields over the training split. */
#include "train/field_statistics.h"

#include <math.h>

/* Default embedding width for a categorical field: 2 + n / 2, at most 50. */
static int default_dims(int64_t categories)
{
    return categories < 96 ? 2 + (int)categories / 2 : 50;
}

/* Mean and deviation of a number in the training split, by Welford's algorithm; 0 and 1 where they are undefined. */
static void measure(const lapse_dataset *dataset, const uint8_t *split, const lp_field *field, lp_model_field *out)
{
    double mean = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < dataset->event_count; i++) {
        if (split[i] != LP_SPLIT_TRAIN || isnan(field->number[i]))
            continue;
        double distance = field->number[i] - mean;
        mean += distance / (double)++count;
        squares += distance * (field->number[i] - mean);
    }
    double deviation = count ? sqrt(squares / (double)count) : 0;
    out->mean = isfinite(mean) ? mean : 0;
    out->deviation = isfinite(deviation) && deviation > 0 ? deviation : 1;
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
