/* negatives.c: negative sampling with counter-based random numbers; the alias method for sampling by popularity. */
#include "data/batch/negatives.h"

#include "base/assert.h"
#include "base/random.h"

#include <math.h>

const char *const lp_negative_names[] = {[LP_NEGATIVES_UNIFORM] = "uniform",
                                         [LP_NEGATIVES_POPULARITY] = "popularity",
                                         [LP_NEGATIVES_IN_BATCH] = "in-batch",
                                         NULL};

/* Vose's construction of Walker's alias table. weight[i] is items * probability of item i, and is overwritten. */
static void fill_alias(lp_negatives *negatives, double *weight, int32_t *queue)
{
    int64_t items = negatives->items, small = 0, large = items;
    for (int64_t i = 0; i < items; i++) {
        if (weight[i] < 1)
            queue[small++] = (int32_t)i;
        else
            queue[--large] = (int32_t)i;
    }
    for (int64_t i = 0; i < items; i++) {
        negatives->acceptance[i] = 1;
        negatives->alias[i] = (int32_t)i;
    }
    for (int64_t done = 0; done < small && large < items; done++) {
        int32_t below = queue[done], above = queue[large];
        LP_ASSERT(weight[below] < 1 && weight[above] >= 1);
        negatives->acceptance[below] = (float)weight[below];
        negatives->alias[below] = above;
        weight[above] -= 1 - weight[below];
        LP_ASSERT(negatives->acceptance[below] >= 0);
        if (weight[above] < 1) { /* now below 1 itself; its old slot is free, since large > small */
            queue[small++] = above;
            large++;
        }
    }
}

/* Counts the occurrences of every item in the training split into weight; returns their sum. */
static double count_occurrences(const lapse_dataset *dataset, const uint8_t *split, const int32_t *type, double *weight)
{
    double sum = 0;
    for (int64_t i = 0; i < dataset->event_count; i++)
        if (split[i] == LP_SPLIT_TRAIN) {
            weight[type[i]]++;
            sum++;
        }
    return sum;
}

/* Builds the tables for sampling by popularity. weight holds the occurrences, and is overwritten. */
static void init_popularity(lp_negatives *negatives, double power, double *weight, int32_t *queue)
{
    int64_t items = negatives->items;
    double sum = 0;
    for (int64_t i = 0; i < items; i++)
        sum += weight[i] = weight[i] > 0 ? pow(weight[i], power) : 0;
    for (int64_t i = 0; i < items; i++) {
        negatives->probability[i] = (float)(weight[i] / sum);
        weight[i] *= (double)items / sum;
    }
    fill_alias(negatives, weight, queue);
}

lapse_status lp_negatives_init(lp_negatives *negatives, const lapse_dataset *dataset, const uint8_t *split,
                               const int32_t *type, double power, lapse_error *error)
{
    size_t items = (size_t)negatives->items;
    bool weighted = negatives->sampling == LP_NEGATIVES_POPULARITY, corrected = negatives->corrected;
    if (!weighted && !corrected)
        return LAPSE_OK;
    double *weight = lp_alloc(items, sizeof *weight);
    int32_t *queue = weighted ? lp_alloc(items, sizeof *queue) : NULL;
    negatives->frequency = corrected ? lp_alloc(items, sizeof *negatives->frequency) : NULL;
    negatives->probability = weighted ? lp_alloc(items, sizeof *negatives->probability) : NULL;
    negatives->acceptance = weighted ? lp_alloc(items, sizeof *negatives->acceptance) : NULL;
    negatives->alias = weighted ? lp_alloc(items, sizeof *negatives->alias) : NULL;
    bool good = weight && (!corrected || negatives->frequency) &&
                (!weighted || (queue && negatives->probability && negatives->acceptance && negatives->alias));
    if (good) {
        double events = count_occurrences(dataset, split, type, weight);
        for (size_t i = 0; corrected && i < items; i++)
            negatives->frequency[i] = (float)(weight[i] / events);
        if (weighted)
            init_popularity(negatives, power, weight, queue);
    }
    lp_free(weight);
    lp_free(queue);
    if (good)
        return LAPSE_OK;
    lp_negatives_clear(negatives);
    return lp_fail_memory(error, "negative sampling", items * 24);
}

void lp_negatives_clear(lp_negatives *negatives)
{
    lp_free(negatives->acceptance);
    lp_free(negatives->alias);
    lp_free(negatives->probability);
    lp_free(negatives->frequency);
    *negatives = (lp_negatives){0};
}

/* Samples per block of four random words: uniform sampling takes one word, popularity a second one for the alias. */
static int samples_per_block(const lp_negatives *negatives)
{
    return negatives->acceptance ? 2 : 4;
}

static int32_t item_of(const lp_negatives *negatives, const lp_random_block *block, int index)
{
    if (!negatives->acceptance)
        return (int32_t)(((uint64_t)block->word[index] * (uint64_t)negatives->items) >> 32);
    int64_t item = (int64_t)(((uint64_t)block->word[2 * index] * (uint64_t)negatives->items) >> 32);
    LP_ASSERT(item < negatives->items && negatives->alias[item] >= 0 && negatives->alias[item] < negatives->items);
    bool stays = (float)block->word[2 * index + 1] * 0x1p-32f < negatives->acceptance[item];
    return stays ? (int32_t)item : negatives->alias[item];
}

static lp_random_block block_of(const lp_negatives *negatives, uint32_t step, uint64_t number, uint32_t attempt)
{
    return lp_philox(negatives->seed, LP_PURPOSE_NEGATIVE | attempt << 8, step, number);
}

int32_t lp_negatives_sample(const lp_negatives *negatives, uint32_t step, uint64_t target, int number, uint32_t attempt)
{
    uint64_t element = target * (uint64_t)negatives->count + (uint64_t)number;
    uint64_t each = (uint64_t)samples_per_block(negatives);
    lp_random_block block = block_of(negatives, step, element / each, attempt);
    return item_of(negatives, &block, (int)(element % each));
}

/* Samples element .. end - 1 of a step. */
static void fill(const lp_negatives *negatives, uint32_t step, uint64_t element, uint64_t end, int32_t *items)
{
    int each = samples_per_block(negatives), sample = (int)(element % (uint64_t)each);
    for (uint64_t number = element / (uint64_t)each; element < end; number++, sample = 0) {
        lp_random_block block = block_of(negatives, step, number, 0);
        for (; sample < each && element < end; sample++, element++)
            *items++ = item_of(negatives, &block, sample);
    }
}

void lp_negatives_fill(const lp_negatives *negatives, uint32_t step, uint64_t target, int targets, int32_t *items)
{
    uint64_t element = target * (uint64_t)negatives->count;
    fill(negatives, step, element, element + (uint64_t)targets * (uint64_t)negatives->count, items);
}

void lp_negatives_shared(const lp_negatives *negatives, uint32_t step, int first, int count, int32_t *items)
{
    fill(negatives, step, (uint64_t)first, (uint64_t)(first + count), items);
}

float lp_negatives_logq(const lp_negatives *negatives, int32_t item, int events)
{
    const float smallest = 1e-9f; /* for items that neither occur in training nor are sampled */
    float probability = negatives->probability ? negatives->probability[item] : 1 / (float)negatives->items;
    float expected = (float)negatives->shared * probability + (float)events * negatives->frequency[item];
    return -logf(-expm1f(-(expected > smallest ? expected : smallest)));
}
