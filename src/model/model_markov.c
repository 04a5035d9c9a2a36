/* model_markov.c: baselines that see the order of the last events, but not their times: `markov`, and `item-markov`,
 * which sees the last event alone.
 *
 * Orders are blended: with n_k(c, e) how often event type e followed the last k events c in training,
 *
 *     p_0(e) = (n_0(e) + 1) / (n_0 + event types)
 *     p_k(e) = (n_k(c, e) + a p_{k-1}(e)) / (n_k(c) + a)
 *
 * where the strength a of the smoothing is chosen from a short list by the log-loss on the validation split. Counts are
 * stored as sorted n-grams: rows (c, e) of k + 1 event types with their counts, so their size follows the data, not
 * event types^order.
 */
#include "model/model_rows.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_ORDER = 3 };

/* Strengths of the smoothing to choose from. In a large catalogue most items have few successors, so a stronger popularity prior may
 * be best: item-markov has all of them, markov the first. */
static const double smoothing[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000};
enum { STRENGTHS = 7, MOST_STRENGTHS = sizeof smoothing / sizeof *smoothing };

typedef struct grams {
    const int32_t *gram;  /* [count x (order + 1)], sorted */
    const int32_t *times; /* [count] */
    int64_t count;
    int width; /* order + 1 */
} grams;

static int compare(const int32_t *a, const int32_t *b, int width)
{
    for (int i = 0; i < width; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Sorts rows of `width` event types: a stable counting sort by each column, the last one first. spare: as large as the rows; first:
 * [types + 1]. Returns where the sorted rows are: in `rows`, or in `spare`. */
static int32_t *sort_grams(int32_t *rows, int32_t *spare, int64_t *first, int64_t count, int width, int64_t types)
{
    for (int column = width - 1; column >= 0; column--) {
        memset(first, 0, (size_t)(types + 1) * sizeof *first);
        for (int64_t i = 0; i < count; i++)
            first[rows[width * i + column] + 1]++;
        for (int64_t type = 0; type < types; type++)
            first[type + 1] += first[type];
        for (const int32_t *row = rows; row < rows + width * count; row += width) {
            int32_t *to = spare + width * first[row[column]]++;
            for (int k = 0; k < width; k++)
                to[k] = row[k];
        }
        int32_t *sorted = spare;
        spare = rows;
        rows = sorted;
    }
    return rows;
}

static void tensor_names(int order, char *gram, char *times, size_t size)
{
    snprintf(gram, size, "markov.%d.gram", order);
    snprintf(times, size, "markov.%d.count", order);
}

/* Collects the training n-grams of one order, sorts them, and stores each distinct one with its count. */
static lapse_status count_order(lapse_model *model, const lp_fit_data *data, int order, lapse_error *error)
{
    const lapse_dataset *dataset = data->dataset;
    int width = order + 1;
    size_t row = (size_t)width * sizeof(int32_t);
    int32_t *memory = lp_alloc_raw(2 * (size_t)dataset->event_count, row), *all = memory;
    int64_t *first = lp_alloc_raw((size_t)model->types.count + 1, sizeof *first), count = 0, distinct = 0;
    if (!memory || !first) {
        lp_free(memory);
        lp_free(first);
        return lp_fail_memory(error, "counting a Markov chain", 2 * (size_t)dataset->event_count * row);
    }
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + (uint64_t)(order ? order : 1); event < dataset->start[s + 1]; event++)
            if (data->split[event] == LP_SPLIT_TRAIN)
                memcpy(all + width * count++, dataset->type + event - order, row);
    all = sort_grams(all, all + width * dataset->event_count, first, count, width, model->types.count);
    lp_free(first);
    for (int64_t i = 0; i < count; i++)
        distinct += i == 0 || compare(all + width * (i - 1), all + width * i, width) != 0;
    char gram_name[32], times_name[32];
    tensor_names(order, gram_name, times_name, sizeof gram_name);
    int32_t *gram = lp_model_tensor_add(model, gram_name, LP_TENSOR_I32, distinct, width);
    int32_t *times = lp_model_tensor_add(model, times_name, LP_TENSOR_I32, distinct, 1);
    int64_t at = -1;
    for (int64_t i = 0; gram && times && i < count; i++) {
        if (i == 0 || compare(all + width * (i - 1), all + width * i, width) != 0)
            memcpy(gram + width * ++at, all + width * i, row);
        times[at]++;
    }
    lp_free(memory);
    return gram && times ? LAPSE_OK : lp_fail_memory(error, "a Markov chain", (size_t)distinct * row);
}

typedef struct markov_settings {
    int order;
} markov_settings;

static int order_of(const lp_model_config *config)
{
    return config->row == &lp_model_item_markov ? 1 : ((const markov_settings *)(const void *)&config->settings)->order;
}

static const lp_option options[] = {
    {.name = "order",
     .type = LAPSE_OPTION_INTEGER,
     .offset = offsetof(markov_settings, order),
     .group = "Model",
     .stored = LP_STORED_FORWARD,
     .placeholder = "N",
     .least = 1,
     .most = LARGEST_ORDER,
     .initial = "1",
     .advanced = true,
     .help = "order of the Markov chain: past events that it conditions on, 1 to 3"},
    {0},
};

static grams grams_of(const lapse_model *model, int order)
{
    const lp_tensor *gram = &model->tensors[2 * order], *times = &model->tensors[2 * order + 1];
    return (grams){gram->data, times->data, gram->rows, order + 1};
}

/* The first row whose leading event types are not below the context. */
static int64_t lower_bound(const grams *g, const int32_t *context)
{
    int64_t low = 0, high = g->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (compare(g->gram + g->width * middle, context, g->width - 1) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void blend(const lapse_model *model, int order, double strength, const int32_t *types, int64_t count,
                  double *probabilities)
{
    int64_t type_count = model->types.count;
    for (int64_t type = 0; type < type_count; type++)
        probabilities[type] = 1.0 / (double)type_count;
    for (int k = 0; k <= order && k <= count; k++) {
        grams g = grams_of(model, k);
        const int32_t *context = types + count - k;
        int64_t first = lower_bound(&g, context), last = first;
        double total = 0, prior = k == 0 ? (double)type_count : strength;
        for (; last < g.count && compare(g.gram + g.width * last, context, k) == 0; last++)
            total += g.times[last];
        for (int64_t type = 0; type < type_count; type++)
            probabilities[type] *= prior / (total + prior);
        for (int64_t i = first; i < last; i++)
            probabilities[g.gram[g.width * i + k]] += g.times[i] / (total + prior);
    }
}

/* The count of an n-gram. */
static int32_t times_of(const grams *g, const int32_t *gram)
{
    int64_t low = 0, high = g->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (compare(g->gram + g->width * middle, gram, g->width) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->count && compare(g->gram + g->width * low, gram, g->width) == 0 ? g->times[low] : 0;
}

/* Adds the log-loss of types[count], given the events before it, to that of each strength. total: n_0. */
static void add_losses(const lapse_model *model, double total, const int32_t *types, int64_t count, int strengths,
                       double *losses)
{
    grams g = grams_of(model, 0);
    double popularity = (times_of(&g, types + count) + 1) / (total + (double)model->types.count);
    double probability[MOST_STRENGTHS];
    for (int i = 0; i < strengths; i++)
        probability[i] = popularity;
    for (int k = 1; k <= order_of(&model->config) && k <= count; k++) {
        g = grams_of(model, k);
        const int32_t *context = types + count - k;
        double followed = 0, times = times_of(&g, context);
        for (int64_t i = lower_bound(&g, context); i < g.count && compare(g.gram + g.width * i, context, k) == 0; i++)
            followed += g.times[i];
        for (int i = 0; i < strengths; i++)
            probability[i] = (times + smoothing[i] * probability[i]) / (followed + smoothing[i]);
    }
    for (int i = 0; i < strengths; i++)
        losses[i] -= log(probability[i]);
}

/* The one of the first `strengths` with the least log-loss on the validation split. */
static double best_strength(const lapse_model *model, const lp_fit_data *data, int strengths)
{
    const lapse_dataset *dataset = data->dataset;
    grams all = grams_of(model, 0);
    double losses[MOST_STRENGTHS] = {0}, total = 0;
    int best = 0;
    for (int64_t i = 0; i < all.count; i++)
        total += all.times[i];
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        uint64_t start = dataset->start[s];
        for (uint64_t event = start + 1; event < dataset->start[s + 1]; event++)
            if (data->split[event] == LP_SPLIT_VALID)
                add_losses(model, total, dataset->type + start, (int64_t)(event - start), strengths, losses);
    }
    for (int i = 1; i < strengths; i++)
        best = losses[i] < losses[best] ? i : best;
    return smoothing[best];
}

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    for (int order = 0; order <= order_of(&model->config); order++)
        LP_TRY(count_order(model, data, order, error));
    double *chosen = lp_model_tensor_add(model, "markov.strength", LP_TENSOR_F64, 1, 1);
    if (!chosen)
        return lp_fail_memory(error, "a Markov chain", sizeof *chosen);
    *chosen = best_strength(model, data, model->config.row == &lp_model_item_markov ? MOST_STRENGTHS : STRENGTHS);
    return LAPSE_OK;
}

/* Checks that n-grams have existing event types, are sorted, and have positive counts. */
static lapse_status check_grams(const lapse_model *model, int order, const char *gram_name, const char *times_name,
                                lapse_error *error)
{
    grams g = grams_of(model, order);
    for (int64_t i = 0; i < g.count * g.width; i++)
        if (g.gram[i] < 0 || g.gram[i] >= model->types.count)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' names an event type that does not exist", gram_name);
    for (int64_t i = 0; i < g.count; i++) {
        if (i > 0 && compare(g.gram + g.width * (i - 1), g.gram + g.width * i, g.width) >= 0)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' is not in order", gram_name);
        if (g.times[i] < 1)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' counts less than once", times_name);
    }
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    int order = order_of(&model->config);
    for (int k = 0; k <= order; k++) {
        char gram_name[32], times_name[32];
        tensor_names(k, gram_name, times_name, sizeof gram_name);
        const lp_tensor *gram = lp_model_tensor_find(model, gram_name);
        const lp_tensor *times = lp_model_tensor_find(model, times_name);
        if (!gram || !times || gram != &model->tensors[2 * k] || times != gram + 1 || gram->type != LP_TENSOR_I32 ||
            times->type != LP_TENSOR_I32 || gram->cols != k + 1 || times->cols != 1 || times->rows != gram->rows)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensors '%s' and '%s' are missing or have the wrong shape",
                           gram_name, times_name);
        LP_TRY(check_grams(model, k, gram_name, times_name, error));
    }
    const lp_tensor *strength = lp_model_tensor_find(model, "markov.strength");
    if (!strength || strength != &model->tensors[2 * order + 2] || strength->type != LP_TENSOR_F64 ||
        strength->rows != 1 || strength->cols != 1 || !(*(const double *)strength->data > 0) ||
        !isfinite(*(const double *)strength->data))
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor 'markov.strength' is missing or is not one positive number");
    return LAPSE_OK;
}

static void predict(const lapse_model *model, const lp_query *query, double *probabilities)
{
    int order = order_of(&model->config);
    const double *strength = model->tensors[2 * order + 2].data;
    blend(model, order, *strength, query->types, query->count, probabilities);
}

const lp_model_row lp_model_markov = {.name = "markov",
                                      .summary = "baseline: Markov chain of order 1 to 3, blended with lower orders",
                                      .tasks = LP_TASKS_ALL,
                                      .options = {options},
                                      .fit = fit,
                                      .check = check,
                                      .predict = predict,
                                      .lookback = order_of};

const lp_model_row lp_model_item_markov = {.name = "item-markov",
                                           .summary =
                                               "baseline: first-order Markov chain over items, blended with popularity",
                                           .tasks = LP_TASKS_ALL,
                                           .fit = fit,
                                           .check = check,
                                           .predict = predict,
                                           .lookback = order_of};
