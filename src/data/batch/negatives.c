#include "data/batch/negatives.h"

#include "base/random.h"

#include <math.h>

const char *const lp_negative_names[] = {[LP_NEGATIVES_UNIFORM] = "uniform",
                                         [LP_NEGATIVES_POPULARITY] = "popularity",
                                         [LP_NEGATIVES_IN_BATCH] = "in-batch",
                                         NULL};

/* Walker's table, in Vose's way: a cell is filled up by a share of one that has too much. */
static void fill_alias(lp_negatives *negatives, double *share, int32_t *queue)
{
    int64_t items = negatives->items, small = 0, large = items;
    for (int64_t i = 0; i < items; i++) {
        if (share[i] < 1)
            queue[small++] = (int32_t)i;
        else
            queue[--large] = (int32_t)i;
    }
    for (int64_t i = 0; i < items; i++) {
        negatives->chance[i] = 1;
        negatives->alias[i] = (int32_t)i;
    }
    for (int64_t done = 0; done < small && large < items; done++) {
        int32_t poor = queue[done], rich = queue[large];
        negatives->chance[poor] = (float)share[poor];
        negatives->alias[poor] = rich;
        share[rich] -= 1 - share[poor];
        if (share[rich] < 1) { /* its turn to be filled up; the place it leaves is free, since large > small */
            queue[small++] = rich;
            large++;
        }
    }
}

/* share[i] = occurrences of item i in the training split; returns their number. */
static double count_occurrences(const lapse_dataset *dataset, const uint8_t *split, const int32_t *type, double *share)
{
    double sum = 0;
    for (int64_t i = 0; i < dataset->event_count; i++)
        if (split[i] == LP_SPLIT_TRAIN) {
            share[type[i]]++;
            sum++;
        }
    return sum;
}

/* Fills what draws by popularity need; share holds occurrences. */
static void weigh(lp_negatives *negatives, double power, double *share, int32_t *queue)
{
    int64_t items = negatives->items;
    double sum = 0;
    for (int64_t i = 0; i < items; i++)
        sum += share[i] = share[i] > 0 ? pow(share[i], power) : 0;
    for (int64_t i = 0; i < items; i++) {
        negatives->share[i] = (float)(share[i] / sum);
        share[i] *= (double)items / sum;
    }
    fill_alias(negatives, share, queue);
}

lapse_status lp_negatives_init(lp_negatives *negatives, const lapse_dataset *dataset, const uint8_t *split,
                               const int32_t *type, double power, lapse_error *error)
{
    size_t items = (size_t)negatives->items;
    bool weighted = negatives->how == LP_NEGATIVES_POPULARITY, corrected = negatives->corrected;
    if (!weighted && !corrected)
        return LAPSE_OK;
    double *share = lp_alloc(items, sizeof *share);
    int32_t *queue = weighted ? lp_alloc(items, sizeof *queue) : NULL;
    negatives->frequency = corrected ? lp_alloc(items, sizeof *negatives->frequency) : NULL;
    negatives->share = weighted ? lp_alloc(items, sizeof *negatives->share) : NULL;
    negatives->chance = weighted ? lp_alloc(items, sizeof *negatives->chance) : NULL;
    negatives->alias = weighted ? lp_alloc(items, sizeof *negatives->alias) : NULL;
    bool good = share && (!corrected || negatives->frequency) &&
                (!weighted || (queue && negatives->share && negatives->chance && negatives->alias));
    if (good) {
        double events = count_occurrences(dataset, split, type, share);
        for (size_t i = 0; corrected && i < items; i++)
            negatives->frequency[i] = (float)(share[i] / events);
        if (weighted)
            weigh(negatives, power, share, queue);
    }
    lp_free(share);
    lp_free(queue);
    if (good)
        return LAPSE_OK;
    lp_negatives_clear(negatives);
    return lp_fail_memory(error, "drawing negatives", items * 24);
}

void lp_negatives_clear(lp_negatives *negatives)
{
    lp_free(negatives->chance);
    lp_free(negatives->alias);
    lp_free(negatives->share);
    lp_free(negatives->frequency);
    *negatives = (lp_negatives){0};
}

/* Draws that share a block of random words: an even one takes a word, one by popularity a second for the alias. */
static int draws_of_block(const lp_negatives *negatives)
{
    return negatives->chance ? 2 : 4;
}

static int32_t item_of(const lp_negatives *negatives, const lp_random_block *block, int draw)
{
    if (!negatives->chance)
        return (int32_t)(((uint64_t)block->word[draw] * (uint64_t)negatives->items) >> 32);
    int64_t item = (int64_t)(((uint64_t)block->word[2 * draw] * (uint64_t)negatives->items) >> 32);
    bool stays = (float)block->word[2 * draw + 1] * 0x1p-32f < negatives->chance[item];
    return stays ? (int32_t)item : negatives->alias[item];
}

static lp_random_block block_of(const lp_negatives *negatives, uint32_t step, uint64_t number, uint32_t attempt)
{
    return lp_philox(negatives->seed, LP_PURPOSE_NEGATIVE | attempt << 8, step, number);
}

int32_t lp_negatives_draw(const lp_negatives *negatives, uint32_t step, uint64_t place, int number, uint32_t attempt)
{
    uint64_t element = place * (uint64_t)negatives->count + (uint64_t)number;
    uint64_t each = (uint64_t)draws_of_block(negatives);
    lp_random_block block = block_of(negatives, step, element / each, attempt);
    return item_of(negatives, &block, (int)(element % each));
}

/* Draws number element .. end - 1 of a step. */
static void fill(const lp_negatives *negatives, uint32_t step, uint64_t element, uint64_t end, int32_t *items)
{
    int each = draws_of_block(negatives), draw = (int)(element % (uint64_t)each);
    for (uint64_t number = element / (uint64_t)each; element < end; number++, draw = 0) {
        lp_random_block block = block_of(negatives, step, number, 0);
        for (; draw < each && element < end; draw++, element++)
            *items++ = item_of(negatives, &block, draw);
    }
}

void lp_negatives_fill(const lp_negatives *negatives, uint32_t step, uint64_t place, int places, int32_t *items)
{
    uint64_t element = place * (uint64_t)negatives->count;
    fill(negatives, step, element, element + (uint64_t)places * (uint64_t)negatives->count, items);
}

void lp_negatives_shared(const lp_negatives *negatives, uint32_t step, int first, int count, int32_t *items)
{
    fill(negatives, step, (uint64_t)first, (uint64_t)(first + count), items);
}

float lp_negatives_logq(const lp_negatives *negatives, int32_t item, int events)
{
    const float least = 1e-9f; /* of what training does not have and nobody draws */
    float share = negatives->share ? negatives->share[item] : 1 / (float)negatives->items;
    float expected = (float)negatives->shared * share + (float)events * negatives->frequency[item];
    return -logf(-expm1f(-(expected > least ? expected : least)));
}
