/* gap_quantile.c: quantiles over an evenly spaced sample, sorted. */
#include "data/dataset/gap_quantile.h"

#include <stdlib.h>

enum { SAMPLE = 1 << 18 };

int lp_compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A sample of `count` values, or of SAMPLE if that is less. */
static double *sample_new(int64_t count, lapse_error *error)
{
    size_t size = count < SAMPLE ? (size_t)count : SAMPLE;
    double *sample = lp_alloc(size, sizeof *sample);
    if (!sample)
        lp_fail_memory(error, "a sample of the data", size * sizeof *sample);
    return sample;
}

/* Sorts and frees the sample. */
static double take_quantile(double *sample, int64_t count, double fraction)
{
    qsort(sample, (size_t)count, sizeof *sample, lp_compare_numbers);
    double value = count ? sample[(int64_t)(fraction * (double)(count - 1))] : 0;
    lp_free(sample);
    return value;
}

lapse_status lp_gap_quantile(const lapse_dataset *dataset, const uint8_t *split, int apart, double fraction,
                             double *gap, lapse_error *error)
{
    int64_t step = dataset->event_count / SAMPLE + 1, count = 0;
    double *sample = sample_new(dataset->event_count, error);
    if (!sample)
        return LAPSE_ERROR_MEMORY;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t start = (int64_t)dataset->start[s], end = (int64_t)dataset->start[s + 1];
        for (int64_t event = start + 1 + s % step; event < end && count < SAMPLE; event += step) {
            int64_t from = event - apart > start ? event - apart : start;
            double span = dataset->time[event] - dataset->time[from];
            if (split[event] == LP_SPLIT_TRAIN && span > 0)
                sample[count++] = span;
        }
    }
    *gap = take_quantile(sample, count, fraction);
    return LAPSE_OK;
}

lapse_status lp_length_quantile(const lapse_dataset *dataset, double fraction, double *length, lapse_error *error)
{
    int64_t step = dataset->sequence_count / SAMPLE + 1, count = 0;
    double *sample = sample_new(dataset->sequence_count, error);
    if (!sample)
        return LAPSE_ERROR_MEMORY;
    for (int64_t s = 0; s < dataset->sequence_count && count < SAMPLE; s += step)
        sample[count++] = (double)(dataset->start[s + 1] - dataset->start[s] - 1);
    *length = take_quantile(sample, count, fraction);
    return LAPSE_OK;
}
