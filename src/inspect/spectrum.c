/* spectrum.c: the frequencies and amplitudes of a model's time encoding, and the kernel that they define.
 *
 * This file does not depend on the encoding. The encoding builds its features into a graph, the reference kernels
 * compute them from the model's tensors, and the values are read: so encodings that sample their frequencies or
 * compute them by a network work like those that store them as parameters.
 *
 * K(lag) is defined as the mean over t of <Phi(t), Phi(t - lag)>. With amplitudes a of the cosine and b of the sine,
 *
 *     a^2 cos(w t) cos(w (t - s)) + b^2 sin(w t) sin(w (t - s))
 *         = (a^2 + b^2) / 2 cos(w s)  +  (a^2 - b^2) / 2 cos(w (2 t - s))
 *
 * and the last term, the only one that depends on t, has mean 0. For w = 0 the sine is always 0, and a^2 remains.
 */
#include "inspect/spectrum.h"

#include "backend/backend.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double TWO_PI = 6.283185307179586476925;

/* Faster or slower waves cannot be distinguished from noise or from a constant over the times that Lapse reads. */
static const double FASTEST = 1e15, SLOWEST = 1e-15;

/* ------------------------------------------------------------------------------ from the model's own graph ----- */

static lapse_status no_kernel(const lapse_model *model, lapse_error *error)
{
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; lp_encodings[i] && used < sizeof names; i++)
        if (lp_encodings[i]->sees_time)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", lp_encodings[i]->name);
    if (!model->network.encoding)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' does not use lags, so it has no kernel; attention has one with an encoding of "
                       "time: %s",
                       model->config.row->name, names);
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the encoding '%s' does not use lags, so it has no kernel; these have one: %s",
                   model->network.encoding->name, names);
}

/* Copies the parameters of the encoding's graph from the model's tensors, by name. */
static lapse_status copy_parameters(const lapse_model *model, const lp_graph *graph, float *parameters,
                                    lapse_error *error)
{
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        const lp_tensor *tensor = lp_model_tensor_find(model, value->name);
        if (!tensor || tensor->type != LP_TENSOR_F32 || tensor->rows != value->rows || tensor->cols != value->cols)
            return lp_fail(error, LAPSE_ERROR_INTERNAL, "the model has no tensor '%s' of %d x %d numbers", value->name,
                           value->rows, value->cols);
        memcpy(parameters + value->offset, tensor->data, lp_tensor_bytes(tensor));
    }
    return LAPSE_OK;
}

static double element(const lp_run *run, const lp_value *value, int index)
{
    const void *data = lp_run_data(run, value);
    return value->type == LP_TYPE_DOUBLE ? ((const double *)data)[index] : ((const float *)data)[index];
}

/* Number of frequency samples: those of the model if the graph uses a sample index, otherwise 1. */
static int draw_count(const lapse_model *model, const lp_graph *graph, const lp_value *draw)
{
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i]->op->input_count; k++)
            if (graph->nodes[i]->inputs[k] == draw)
                return lp_network_samples(&model->network);
    return 1;
}

/* Frequencies and amplitudes of one frequency sample. A model averages over its samples, so each has weight 1 /
 * samples in K. */
static void take_draw(const lp_run *run, const lp_features *features, int draw, int draws, lapse_spectrum *spectrum)
{
    int count = features->frequency->cols;
    double share = 1 / sqrt((double)draws);
    for (int i = 0, to = draw * count; i < count; i++, to++) {
        spectrum->frequency[to] = element(run, features->frequency, i);
        spectrum->cosine[to] = share * (features->amplitude ? element(run, features->amplitude, i) : 1);
        spectrum->sine[to] = share * (features->amplitude ? element(run, features->amplitude, count + i) : 1);
    }
}

/* Runs the graph without events, which computes only what depends on parameters, and reads the features. */
static lapse_status read_features(const lp_plan *plan, const lp_backend *backend, const float *parameters,
                                  const lp_features *features, int draws, lapse_spectrum *spectrum, lapse_error *error)
{
    static const int32_t no_segment[1] = {0};
    double nothing = 0;
    int32_t draw = 0;
    void *inputs[LP_FEED_COUNT];
    for (int i = 0; i < LP_FEED_COUNT; i++)
        inputs[i] = &nothing;
    inputs[LP_FEED_FREQUENCY_SAMPLE] = &draw;
    char *work = backend->buffer_new(backend->context, plan->work_size),
         *scratch = backend->buffer_new(backend->context, plan->scratch_size);
    lapse_status status = LAPSE_OK;
    if (work && scratch) {
        lp_run run = {.plan = plan,
                      .work = work,
                      .scratch = scratch,
                      .inputs = inputs,
                      .parameters = parameters,
                      .segment = no_segment};
        for (draw = 0; draw < draws; draw++) {
            backend->run(backend->context, &run);
            take_draw(&run, features, draw, draws, spectrum);
        }
    } else {
        status = lp_fail_memory(error, "the work buffers", plan->work_size + plan->scratch_size);
    }
    backend->buffer_free(backend->context, work);
    backend->buffer_free(backend->context, scratch);
    return status;
}

static lapse_status run_encoding(const lapse_model *model, lp_graph *graph, const lp_features *features, int draws,
                                 lapse_spectrum *spectrum, lapse_error *error)
{
    const lp_backend *backend = lp_backend_find("reference");
    const lp_extent largest = {.rows = {[LP_ROWS_TOKENS] = 1}, .pairs = 1, .longest = 1};
    lp_plan plan;
    features->frequency->retained = true;
    if (features->amplitude)
        features->amplitude->retained = true;
    LP_TRY(lp_plan_make(&plan, graph, &largest, backend->real_size, error));
    LP_TRY(lp_spectrum_init(spectrum, draws * features->frequency->cols, error));
    float *parameters = lp_alloc(graph->parameter_size, sizeof *parameters);
    if (!parameters)
        return lp_fail_memory(error, "the parameters of the encoding", graph->parameter_size * sizeof *parameters);
    lapse_status status = copy_parameters(model, graph, parameters, error);
    if (status == LAPSE_OK)
        status = read_features(&plan, backend, parameters, features, draws, spectrum, error);
    lp_free(parameters);
    return status;
}

lapse_status lapse_model_spectrum(const lapse_model *model, lapse_spectrum *spectrum, lapse_error *error)
{
    LP_REQUIRE(error, model, spectrum);
    *spectrum = (lapse_spectrum){0};
    const lp_network *network = &model->network;
    if (!network->encoding)
        return no_kernel(model, error);
    lp_graph graph = {0};
    lp_value *feeds[LP_FEED_LIMIT];
    lp_features features = {0};
    lp_feeds_declare(&graph, NULL, 0, 0, false, feeds);
    network->encoding->build(&graph, &network->encoding_config, feeds, &features);
    lapse_status status = lp_graph_status(&graph, error);
    if (status == LAPSE_OK && !features.frequency)
        status = no_kernel(model, error);
    if (status == LAPSE_OK)
        status = run_encoding(model, &graph, &features, draw_count(model, &graph, feeds[LP_FEED_FREQUENCY_SAMPLE]),
                              spectrum, error);
    lp_graph_clear(&graph);
    if (status == LAPSE_OK)
        status = lp_spectrum_complete(spectrum, error);
    if (status != LAPSE_OK)
        lapse_spectrum_clear(spectrum);
    return status;
}

/* ------------------------------------------------------------------------------------------- the spectrum ----- */

/* One allocation for all arrays. */
lapse_status lp_spectrum_init(lapse_spectrum *spectrum, int count, lapse_error *error)
{
    size_t n = (size_t)count;
    double *block = lp_alloc(n, 5 * sizeof(double) + 2 * sizeof(int));
    if (!block)
        return lp_fail_memory(error, "a spectrum", n * (5 * sizeof(double) + 2 * sizeof(int)));
    int *numbers = (int *)(void *)(block + 5 * n);
    *spectrum = (lapse_spectrum){.count = count,
                                 .frequency = block,
                                 .period = block + n,
                                 .cosine = block + 2 * n,
                                 .sine = block + 3 * n,
                                 .weight = block + 4 * n,
                                 .harmonic = numbers,
                                 .order = numbers + n};
    return LAPSE_OK;
}

void lapse_spectrum_clear(lapse_spectrum *spectrum)
{
    lp_free(spectrum->frequency);
    *spectrum = (lapse_spectrum){0};
}

/* Insertion sort: a few hundred at most, and mostly sorted. */
static void sort_by_weight(lapse_spectrum *spectrum)
{
    for (int i = 0; i < spectrum->count; i++) {
        int place = i;
        for (; place > 0; place--) {
            int before = spectrum->order[place - 1];
            if (spectrum->weight[before] > spectrum->weight[i] ||
                (spectrum->weight[before] == spectrum->weight[i] && spectrum->period[before] >= spectrum->period[i]))
                break;
            spectrum->order[place] = before;
        }
        spectrum->order[place] = i;
    }
}

/* A frequency that is 2, 3, ... times the first of its series, in unbroken order, is a harmonic. This is detected
 * from the numbers, for any encoding. */
lapse_status lp_spectrum_complete(lapse_spectrum *spectrum, lapse_error *error)
{
    int first = 0;
    for (int i = 0; i < spectrum->count; i++) {
        double frequency = spectrum->frequency[i], a = spectrum->cosine[i], b = spectrum->sine[i];
        if (!(fabs(frequency) <= FASTEST && isfinite(a) && isfinite(b)))
            return lp_fail(error, LAPSE_ERROR_FORMAT,
                           "frequency %d of the model is %g per second, with amplitudes %g and %g; they must be finite",
                           i + 1, frequency, a, b);
        int multiple = i - first + 1;
        double expected = multiple * spectrum->frequency[first];
        if (frequency == 0 || fabs(frequency - expected) > 1e-12 * fabs(frequency)) {
            first = i;
            multiple = 1;
        }
        spectrum->harmonic[i] = multiple;
        spectrum->period[i] = fabs(frequency) >= SLOWEST ? TWO_PI / fabs(frequency) : INFINITY;
        spectrum->weight[i] = frequency != 0 ? (a * a + b * b) / 2 : a * a;
    }
    sort_by_weight(spectrum);
    return LAPSE_OK;
}

void lp_spectrum_periods(const lapse_spectrum *spectrum, double *shortest, double *longest)
{
    *shortest = INFINITY;
    *longest = 0;
    for (int i = 0; i < spectrum->count; i++) {
        if (!isfinite(spectrum->period[i]))
            continue;
        *shortest = fmin(*shortest, spectrum->period[i]);
        *longest = fmax(*longest, spectrum->period[i]);
    }
    if (*longest == 0)
        *shortest = *longest = 86400;
}

double lapse_spectrum_kernel(const lapse_spectrum *spectrum, double lag)
{
    double sum = 0;
    for (int i = 0; i < spectrum->count; i++)
        sum += spectrum->weight[i] * cos(spectrum->frequency[i] * lag);
    return sum;
}

void lapse_spectrum_features(const lapse_spectrum *spectrum, double lag, double *features)
{
    for (int i = 0; i < spectrum->count; i++) {
        double angle = spectrum->frequency[i] * lag;
        features[i] = spectrum->cosine[i] * cos(angle);
        features[spectrum->count + i] = spectrum->sine[i] * sin(angle);
    }
}

/* The integral of the cosine is (sin w b - sin w a) / w; the form with midpoint and half-width has no cancellation
 * for small w. */
static double blur(double frequency, double from, double to)
{
    double half = frequency * (to - from) / 2;
    return fabs(half) > 1e-8 ? sin(half) / half : 1;
}

double lp_cosine_mean(double frequency, double from, double to)
{
    return blur(frequency, from, to) * cos(frequency * (from + to) / 2);
}

double lp_sine_mean(double frequency, double from, double to)
{
    return blur(frequency, from, to) * sin(frequency * (from + to) / 2);
}
