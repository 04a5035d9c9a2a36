/* model_recency.c: baseline: popularity at the query time, with exponential decay.
 *
 * With T_e the times of the training events of event type e, and a half-life h,
 *
 *     s(e, t) = sum over times u of T_e before t of 2^(-(t - u) / h)
 *     p(e, t) = (s(e, t) + q(e)) / (sum of s + 1),       q(e) = (n(e) + 1) / (n + event types)
 *
 * so that plain popularity q is a prior with the weight of one event at t. h is chosen from the span of the training
 * events times 2, 1, 1/2, ... by the log-loss on the validation split. The times of an event type are stored sorted,
 * each with the decayed sum up to it: s at any t is the last sum before t, decayed by the time since.
 */
#include "model/model_rows.h"

#include <math.h>
#include <stdlib.h>

enum { START, TIME, SUM, HALF_LIFE, TENSORS, HALF_LIVES = 24 };

static const char *const names[TENSORS] = {"recency.start", "recency.time", "recency.sum", "recency.half_life"};

/* Sorted times, each with the decayed sum up to it. */
typedef struct past {
    const double *time, *sum;
    int64_t count;
} past;

static void sum_up(const double *time, double *sum, int64_t count, double half_life)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = 1 + (i > 0 ? sum[i - 1] * exp2((time[i - 1] - time[i]) / half_life) : 0);
}

/* s(e, t), given T_e. */
static double decayed(past p, double half_life, double t)
{
    int64_t low = 0, high = p.count; /* times before index low are before t */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (p.time[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? p.sum[low - 1] * exp2((p.time[low - 1] - t) / half_life) : 0;
}

static past past_of(const lapse_model *model, int64_t type)
{
    const uint64_t *start = model->tensors[START].data;
    const double *time = model->tensors[TIME].data, *sum = model->tensors[SUM].data;
    return (past){time + start[type], sum + start[type], (int64_t)(start[type + 1] - start[type])};
}

static double popularity(const lapse_model *model, int64_t type)
{
    const uint64_t *start = model->tensors[START].data;
    double total = (double)start[model->types.count] + (double)model->types.count;
    return ((double)(start[type + 1] - start[type]) + 1) / total;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Stores the training times by event type in the model, and all of them in `all`; both sorted. */
static void collect(lapse_model *model, const lp_fit_data *data, double *all)
{
    const lapse_dataset *dataset = data->dataset;
    uint64_t *start = model->tensors[START].data, types = (uint64_t)model->types.count, total = 0;
    double *time = model->tensors[TIME].data;
    for (int64_t event = 0; event < dataset->event_count; event++)
        if (data->split[event] == LP_SPLIT_TRAIN) {
            start[dataset->type[event]]++;
            all[total++] = dataset->time[event];
        }
    uint64_t end = 0;
    for (uint64_t type = 0; type <= types; type++) { /* counts become ends; filling backwards turns ends into starts */
        end += start[type];
        start[type] = end;
    }
    for (int64_t event = dataset->event_count - 1; event >= 0; event--)
        if (data->split[event] == LP_SPLIT_TRAIN)
            time[--start[dataset->type[event]]] = dataset->time[event];
    for (uint64_t type = 0; type < types; type++)
        qsort(time + start[type], start[type + 1] - start[type], sizeof *time, by_time);
    qsort(all, total, sizeof *all, by_time);
}

static void sum_types(lapse_model *model, double half_life)
{
    const uint64_t *start = model->tensors[START].data;
    const double *time = model->tensors[TIME].data;
    double *sum = model->tensors[SUM].data;
    for (int64_t type = 0; type < model->types.count; type++)
        sum_up(time + start[type], sum + start[type], (int64_t)(start[type + 1] - start[type]), half_life);
}

static double validation_loss(const lapse_model *model, const lp_fit_data *data, past all, double half_life)
{
    const lapse_dataset *dataset = data->dataset;
    double loss = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++) {
            if (data->split[event] != LP_SPLIT_VALID)
                continue;
            double t = dataset->time[lp_model_target_known(&model->config) ? event : event - 1];
            int32_t type = dataset->type[event];
            double weight = decayed(past_of(model, type), half_life, t) + popularity(model, type);
            loss -= log(weight / (decayed(all, half_life, t) + 1));
        }
    return loss;
}

/* Chooses the half-life. time: all training times, sorted. sum: scratch of the same size. */
static void choose(lapse_model *model, const lp_fit_data *data, int64_t count, double *time, double *sum)
{
    double span = count > 0 ? time[count - 1] - time[0] : 0, best = INFINITY;
    double *chosen = model->tensors[HALF_LIFE].data;
    double longest = 2 * (span > 0 ? span : 1);
    for (int i = 0; i < HALF_LIVES; i++) {
        double half_life = ldexp(longest, -i);
        sum_up(time, sum, count, half_life);
        sum_types(model, half_life);
        double loss = validation_loss(model, data, (past){time, sum, count}, half_life);
        if (loss < best) {
            best = loss;
            *chosen = half_life;
        }
    }
    sum_types(model, *chosen);
}

static lapse_status fit(lapse_model *model, const lp_fit_data *data, lapse_error *error)
{
    int64_t count = 0;
    for (int64_t event = 0; event < data->dataset->event_count; event++)
        count += data->split[event] == LP_SPLIT_TRAIN;
    double *time = lp_alloc((size_t)count, sizeof *time), *sum = lp_alloc((size_t)count, sizeof *sum);
    bool good = time && sum && lp_model_tensor_add(model, names[START], LP_TENSOR_U64, 1, model->types.count + 1) &&
                lp_model_tensor_add(model, names[TIME], LP_TENSOR_F64, 1, count) &&
                lp_model_tensor_add(model, names[SUM], LP_TENSOR_F64, 1, count) &&
                lp_model_tensor_add(model, names[HALF_LIFE], LP_TENSOR_F64, 1, 1);
    lapse_status status = LAPSE_OK;
    if (good) {
        collect(model, data, time);
        choose(model, data, count, time, sum);
        const double *half_life = model->tensors[HALF_LIFE].data;
        status = lp_model_property_number(model, error, "half_life", *half_life);
    } else {
        status = lp_fail_memory(error, "a recency model", (size_t)count * 4 * sizeof *time);
    }
    lp_free(time);
    lp_free(sum);
    return status;
}

static lapse_status check_shapes(const lapse_model *model, lapse_error *error)
{
    static const lp_tensor_type types[TENSORS] = {LP_TENSOR_U64, LP_TENSOR_F64, LP_TENSOR_F64, LP_TENSOR_F64};
    const lp_tensor *times = lp_model_tensor_find(model, names[TIME]);
    const int64_t cols[TENSORS] = {model->types.count + 1, times ? times->cols : 0, times ? times->cols : 0, 1};
    for (int i = 0; i < TENSORS; i++) {
        const lp_tensor *tensor = lp_model_tensor_find(model, names[i]);
        if (!tensor || tensor != &model->tensors[i] || tensor->type != types[i] || tensor->rows != 1 ||
            tensor->cols != cols[i])
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' is missing or has the wrong shape", names[i]);
    }
    return LAPSE_OK;
}

static lapse_status check(const lapse_model *model, lapse_error *error)
{
    LP_TRY(check_shapes(model, error));
    const uint64_t *start = model->tensors[START].data, total = (uint64_t)model->tensors[TIME].cols;
    const double *half_life = model->tensors[HALF_LIFE].data;
    if (start[0] != 0 || start[model->types.count] != total)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' does not divide the times", names[START]);
    for (int64_t type = 0; type < model->types.count; type++)
        if (start[type] > start[type + 1] || start[type + 1] > total)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' does not divide the times", names[START]);
    if (!(*half_life > 0) || !isfinite(*half_life))
        return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' is not a positive number", names[HALF_LIFE]);
    for (int64_t type = 0; type < model->types.count; type++) {
        past p = past_of(model, type);
        for (int64_t i = 0; i < p.count; i++) {
            if (!isfinite(p.time[i]) || (i > 0 && p.time[i] < p.time[i - 1]))
                return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' is not in order", names[TIME]);
            if (!(p.sum[i] >= 1 && p.sum[i] <= (double)(i + 1)))
                return lp_fail(error, LAPSE_ERROR_FORMAT, "tensor '%s' holds a value that is not the sum of its times", names[SUM]);
        }
    }
    return LAPSE_OK;
}

static void predict(const lapse_model *model, const lp_query *query, double *probabilities)
{
    const double *half_life = model->tensors[HALF_LIFE].data;
    double total = 1;
    for (int64_t type = 0; type < model->types.count; type++) {
        probabilities[type] = decayed(past_of(model, type), *half_life, query->time);
        total += probabilities[type];
    }
    for (int64_t type = 0; type < model->types.count; type++)
        probabilities[type] = (probabilities[type] + popularity(model, type)) / total;
}

const lp_model_row lp_model_recency = {.name = "recency",
                                       .summary = "baseline: popularity with exponential decay",
                                       .tasks = LP_TASKS_ALL,
                                       .reads_time = true,
                                       .fit = fit,
                                       .check = check,
                                       .predict = predict};
