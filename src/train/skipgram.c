/* skipgram.c: skip-gram with negative sampling over items and their features. */
#include "train/skipgram.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 }; /* partial sums of a dot product: a fixed order that compilers vectorize */

/* Bounds of the update of one event. h is a sum, so each of its vectors adds the update to h once more: above MAX_VECTORS
 * the update is divided among them. The norms of the change of h and of a context vector are clipped, so that vectors grow
 * at most linearly with the events and stay finite. Items with a few features stay below all three. */
enum { MAX_VECTORS = 16 };
static const float MAX_CHANGE = 16, MAX_CONTEXT_CHANGE = 4;

static float *row(float *matrix, const lp_skipgram *s, int64_t number)
{
    return matrix + number * s->stride;
}

static float dot(const float *restrict a, const float *restrict b, int stride)
{
    float lane[LANES] = {0};
    for (int i = 0; i < stride; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += a[i + l] * b[i + l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static void add(float *restrict to, const float *restrict from, float factor, int stride)
{
    for (int i = 0; i < stride; i++)
        to[i] += factor * from[i];
}

/* ------------------------------------------------------------------------------------------------- init ------ */

static void count_items(lp_skipgram *s)
{
    for (int64_t i = 0; i < s->dataset->event_count; i++) {
        bool train = s->split[i] == LP_SPLIT_TRAIN;
        s->counts[s->dataset->type[i]] += train;
        s->events += train;
    }
}

static void init_row(const lp_skipgram *s, float *vector, uint32_t table, int64_t number)
{
    lp_random random = lp_random_start(s->seed, LP_PURPOSE_PRETRAIN, table);
    random.element = (uint64_t)number * (uint64_t)s->stride;
    for (int i = 0; i < s->dims; i++)
        vector[i] = (float)((lp_random_uniform(&random) - 0.5) / s->dims);
}

/* Small random initial vectors. The random stream is 1 for items and 2 for features. */
static void init_vectors(lp_skipgram *s)
{
    const lp_catalogue *catalogue = s->catalogue;
    for (int64_t i = 0; i < catalogue->known; i++) {
        if (s->counts[i] == 0)
            continue;
        uint64_t first = catalogue->start[i], end = catalogue->start[i + 1];
        if (first == end)
            init_row(s, row(s->own, s, i), 1, i);
        for (uint64_t f = first; f < end; f++)
            init_row(s, row(s->features, s, catalogue->feature[f]), 2, catalogue->feature[f]);
    }
}

lapse_status lp_skipgram_init(lp_skipgram *s, lapse_error *error)
{
    size_t items = s->catalogue->items.count, features = s->catalogue->features.count,
           known = (size_t)s->catalogue->known;
    s->stride = (s->dims + LANES - 1) / LANES * LANES;
    size_t stride = (size_t)s->stride;
    s->own = lp_alloc(items * stride, sizeof *s->own);
    s->features = lp_alloc(features * stride, sizeof *s->features);
    s->contexts = lp_alloc(known * stride, sizeof *s->contexts);
    s->counts = lp_alloc(items, sizeof *s->counts);
    s->order = lp_alloc((size_t)s->dataset->sequence_count, sizeof *s->order);
    s->sum = lp_alloc(stride, sizeof *s->sum);
    s->step = lp_alloc(stride, sizeof *s->step);
    s->others = lp_alloc(2 * (size_t)s->window * (1 + (size_t)s->negative_count), sizeof *s->others);
    if (!s->own || !s->features || !s->contexts || !s->counts || !s->order || !s->sum || !s->step || !s->others) {
        lp_skipgram_clear(s);
        return lp_fail_memory(error, "item vectors", (items + features + known) * stride * sizeof *s->own);
    }
    count_items(s);
    init_vectors(s);
    s->negatives = (lp_negatives){.sampling = LP_NEGATIVES_POPULARITY,
                                  .count = 2 * s->window * s->negative_count,
                                  .items = s->catalogue->known,
                                  .seed = s->seed};
    lapse_status status = lp_negatives_init(&s->negatives, s->dataset, s->split, s->dataset->type, s->power, error);
    if (status != LAPSE_OK)
        lp_skipgram_clear(s);
    return status;
}

void lp_skipgram_clear(lp_skipgram *s)
{
    lp_free(s->own);
    lp_free(s->features);
    lp_free(s->contexts);
    lp_free(s->counts);
    lp_free(s->order);
    lp_free(s->sum);
    lp_free(s->step);
    lp_free(s->others);
    lp_negatives_clear(&s->negatives);
    *s = (lp_skipgram){0};
}

void lp_skipgram_vector(const lp_skipgram *s, int64_t item, float *vector)
{
    memcpy(vector, s->own + item * s->stride, (size_t)s->dims * sizeof *vector);
    for (uint64_t f = s->catalogue->start[item]; f < s->catalogue->start[item + 1]; f++) {
        const float *feature = s->features + (int64_t)s->catalogue->feature[f] * s->stride;
        for (int i = 0; i < s->dims; i++)
            vector[i] += feature[i];
    }
}

/* ---------------------------------------------------------------------------------------------- training ----- */

void lp_skipgram_epoch(lp_skipgram *s, int epoch)
{
    int64_t count = s->dataset->sequence_count;
    s->random = lp_random_start(s->seed, LP_PURPOSE_PRETRAIN, 16 + (uint32_t)epoch);
    for (int64_t i = 0; i < count; i++)
        s->order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)(lp_random_uniform(&s->random) * (double)(i + 1));
        int64_t swap = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = swap;
    }
    s->loss = 0;
    s->pairs = 0;
}

/* One step of logistic regression on the pair of the current item h and another item. Updates the context vector, and
 * adds the update of h to `step`. */
static void train_pair(lp_skipgram *s, int32_t other, bool positive, float rate)
{
    float *context = row(s->contexts, s, other);
    float score = dot(s->sum, context, s->stride), probability = 1 / (1 + expf(-score));
    float change = rate * ((positive ? 1.0f : 0.0f) - probability);
    double likelihood = positive ? probability : 1 - (double)probability;
    s->loss -= log(likelihood < 1e-12 ? 1e-12 : likelihood); /* NaN stays NaN */
    add(s->step, context, change, s->stride);
    float norm = fabsf(change) * s->norm;
    add(context, s->sum, norm > MAX_CONTEXT_CHANGE ? change * (MAX_CONTEXT_CHANGE / norm) : change, s->stride);
}

/* Sums h from the vectors of an item and clears `step`. */
static void sum_parts(lp_skipgram *s, int32_t item)
{
    const lp_catalogue *catalogue = s->catalogue;
    memcpy(s->sum, row(s->own, s, item), (size_t)s->stride * sizeof *s->sum);
    memset(s->step, 0, (size_t)s->stride * sizeof *s->step);
    for (uint64_t f = catalogue->start[item]; f < catalogue->start[item + 1]; f++)
        add(s->sum, row(s->features, s, catalogue->feature[f]), 1, s->stride);
    s->norm = sqrtf(dot(s->sum, s->sum, s->stride));
}

static void update_parts(lp_skipgram *s, int32_t item)
{
    const lp_catalogue *catalogue = s->catalogue;
    float vectors = (float)(1 + catalogue->start[item + 1] - catalogue->start[item]);
    float factor = vectors > MAX_VECTORS ? MAX_VECTORS / vectors : 1;
    float norm = sqrtf(dot(s->step, s->step, s->stride)) * vectors * factor;
    factor *= norm > MAX_CHANGE ? MAX_CHANGE / norm : 1;
    add(row(s->own, s, item), s->step, factor, s->stride);
    for (uint64_t f = catalogue->start[item]; f < catalogue->start[item + 1]; f++)
        add(row(s->features, s, catalogue->feature[f]), s->step, factor, s->stride);
}

/* Whether an event may be in the context window of another one: by the split and the time between them. */
static bool in_context(const lp_skipgram *s, int64_t event, int64_t other)
{
    return s->split[other] == LP_SPLIT_TRAIN &&
           (s->session_gap <= 0 || fabs(s->dataset->time[event] - s->dataset->time[other]) <= s->session_gap);
}

/* A table of millions of rows is not in the CPU cache. */
static void prefetch_row(const lp_skipgram *s, int32_t other)
{
    const char *context = (const char *)(s->contexts + (int64_t)other * s->stride);
    for (size_t i = 0; i < (size_t)s->stride * sizeof *s->contexts; i += 64)
        __builtin_prefetch(context + i, 1);
}

/* Lists the items in the context window of an event, each followed by its negatives. Returns their number. */
static int list_others(lp_skipgram *s, int64_t event, int64_t first, int64_t end, int epoch)
{
    /* As in word2vec: a random window size gives near events more weight. */
    int64_t reach = 1 + lp_random_below(&s->random, (uint32_t)s->window);
    int64_t from = event - reach > first ? event - reach : first,
            to = event + reach < end - 1 ? event + reach : end - 1;
    /* The random stream of the negatives: training steps count up from 0, so these do not collide. */
    uint32_t step = UINT32_MAX - (uint32_t)epoch;
    int count = 0, number = 0;
    for (int64_t other = from; other <= to; other++) {
        if (other == event || !in_context(s, event, other))
            continue;
        s->others[count++] = s->dataset->type[other];
        for (int n = 0; n < s->negative_count; n++)
            s->others[count++] = lp_negatives_sample(&s->negatives, step, (uint64_t)event, number++, 0);
    }
    for (int i = 0; i < count; i++)
        prefetch_row(s, s->others[i]);
    return count;
}

static void train_event(lp_skipgram *s, int64_t event, int64_t first, int64_t end, int epoch)
{
    int32_t item = s->dataset->type[event];
    double left = 1 - (double)s->done++ / ((double)s->events * s->epochs);
    float rate = (float)(s->learning_rate * fmax(left, 1e-4));
    int count = list_others(s, event, first, end, epoch);
    if (count == 0)
        return;
    sum_parts(s, item);
    for (int i = 0; i < count; i += 1 + s->negative_count) {
        train_pair(s, s->others[i], true, rate);
        for (int n = 1; n <= s->negative_count; n++)
            if (s->others[i + n] != s->others[i])
                train_pair(s, s->others[i + n], false, rate);
        s->pairs++;
    }
    update_parts(s, item);
}

void lp_skipgram_train(lp_skipgram *s, int64_t first, int64_t end, int epoch)
{
    for (int64_t i = first; i < end; i++) {
        int64_t sequence = s->order[i];
        int64_t begin = (int64_t)s->dataset->start[sequence], stop = (int64_t)s->dataset->start[sequence + 1];
        for (int64_t event = begin; event < stop; event++)
            if (s->split[event] == LP_SPLIT_TRAIN)
                train_event(s, event, begin, stop, epoch);
    }
}
