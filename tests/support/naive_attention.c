/* naive_attention.c: the attention model from its formulas, in double. */
#include "support/naive_attention.h"

#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 64, DIMS = 16, FEATURES = 64 };

static const lp_tensor *tensor(const lapse_model *model, int block, const char *name)
{
    char full[96];
    if (block < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "block.%d.%s", block, name);
    const lp_tensor *found = lp_model_tensor_find(model, full);
    if (!found)
        fail_msg("there is no tensor '%s'", full);
    return found;
}

static double element(const lp_tensor *tensor, int64_t row, int64_t col)
{
    assert_true(row < tensor->rows && col < tensor->cols);
    return ((const float *)tensor->data)[row * tensor->cols + col];
}

/* out += W x */
static void multiply(const lapse_model *model, int block, const char *name, const double *x, double *out)
{
    const lp_tensor *weight = tensor(model, block, name);
    for (int64_t r = 0; r < weight->rows; r++)
        for (int64_t c = 0; c < weight->cols; c++)
            out[r] += element(weight, r, c) * x[c];
}

static void add_bias(const lapse_model *model, int block, const char *name, double *out)
{
    const lp_tensor *bias = tensor(model, block, name);
    for (int64_t c = 0; c < bias->cols; c++)
        out[c] += element(bias, 0, c);
}

static void norm(const lapse_model *model, int block, const char *name, const double *x, double *out)
{
    char full[64];
    int dims = model->config.dims;
    double mean = 0, variance = 0;
    for (int c = 0; c < dims; c++)
        mean += x[c] / dims;
    for (int c = 0; c < dims; c++)
        variance += (x[c] - mean) * (x[c] - mean) / dims;
    snprintf(full, sizeof full, "%s.weight", name);
    const lp_tensor *weight = tensor(model, block, full);
    snprintf(full, sizeof full, "%s.bias", name);
    const lp_tensor *bias = tensor(model, block, full);
    for (int c = 0; c < dims; c++)
        out[c] = (x[c] - mean) / sqrt(variance + 1e-5) * element(weight, 0, c) + element(bias, 0, c);
}

/* Whether the encoding has features. */
static bool has_features(const lapse_model *model)
{
    return small_encoding(&model->config)->sees_time || lp_model_tensor_find(model, "time.position");
}

/* The features of an event besides its embedding: Phi(query time - time), or the position embedding. */
static void event_features(const lapse_model *model, int position, double lag, double *features)
{
    const lp_model_config *config = &model->config;
    if (!has_features(model))
        return;
    if (!small_encoding(config)->sees_time) {
        for (int c = 0; c < config->dims; c++)
            features[c] = element(tensor(model, -1, "time.position"), position, c);
        return;
    }
    const lp_tensor *period = tensor(model, -1, "time.log_period");
    const lp_tensor *amplitude = lp_model_tensor_find(model, "time.amplitude");
    int harmonics = amplitude ? (int)small_config_get(config, "harmonics") : 1, count = (int)period->cols * harmonics;
    assert_true(2 * count <= FEATURES);
    for (int f = 0; f < count; f++) {
        double tau = exp(element(period, 0, f / harmonics)),
               angle = 2 * 3.141592653589793 * (f % harmonics + 1) * lag / tau;
        features[f] = cos(angle) * (amplitude ? element(amplitude, 0, f) : 1);
        features[count + f] = sin(angle) * (amplitude ? element(amplitude, 0, count + f) : 1);
    }
}

/* The lag from an event to the query time; or its time relative to the anchor 0 in anchored mode. */
static double lag_of(const lapse_model *model, double query_time, double time)
{
    return small_anchored(&model->config) ? time : query_time - time;
}

static bool is_mlp(const lapse_model *model, const char *name)
{
    lp_projection projection = (lp_projection)small_config_get(&model->config, "projection");
    return projection == LP_PROJECTION_MLP || (projection == LP_PROJECTION_MLP_QUERY && strcmp(name, "query") == 0);
}

/* relu(x) W^T + b, in position */
static void outer_layer(const lapse_model *model, int block, const char *name, double *x)
{
    char full[64];
    double inner[DIMS];
    for (int c = 0; c < DIMS; c++)
        inner[c] = fmax(x[c], 0);
    memset(x, 0, DIMS * sizeof *x);
    snprintf(full, sizeof full, "%s.outer.weight", name);
    multiply(model, block, full, inner, x);
    snprintf(full, sizeof full, "%s.outer.bias", name);
    add_bias(model, block, full, x);
}

/* Query, key or value of one pair. */
static void role(const lapse_model *model, int block, const char *name, const double *x, const double *features,
                 double *out)
{
    char full[64];
    double joined[DIMS];
    memcpy(joined, x, sizeof joined);
    memset(out, 0, DIMS * sizeof *out);
    if (has_features(model) && (int)small_config_get(&model->config, "combine") == LP_COMBINE_ADD)
        multiply(model, block, "time.weight", features, joined);
    snprintf(full, sizeof full, "%s.event.weight", name);
    multiply(model, block, full, joined, out);
    snprintf(full, sizeof full, "%s.event.bias", name);
    add_bias(model, block, full, out);
    if (has_features(model) && (int)small_config_get(&model->config, "combine") == LP_COMBINE_CONCATENATE) {
        snprintf(full, sizeof full, "%s.time.weight", name);
        multiply(model, block, full, features, out);
    }
    if (is_mlp(model, name))
        outer_layer(model, block, name, out);
}

/* out_q of the formulas: attention of position q over positions 0 .. q. */
static void attend(const lapse_model *model, int block, double z[TOKENS][DIMS], const double *normal, int q,
                   const double *time, double query_time, double *out)
{
    int dims = model->config.dims, heads = (int)small_config_get(&model->config, "heads"), head = dims / heads;
    double query[DIMS], key[DIMS], value[TOKENS][DIMS], score[TOKENS], features[FEATURES];
    event_features(model, q, lag_of(model, query_time, time[q]), features);
    role(model, block, "query", normal, features, query);
    memset(out, 0, DIMS * sizeof *out);
    for (int h = 0; h < heads; h++) {
        double sum = 0;
        for (int i = 0; i <= q; i++) {
            event_features(model, i, lag_of(model, query_time, time[i]), features);
            role(model, block, "key", z[i], features, key);
            role(model, block, "value", z[i], features, value[i]);
            score[i] = 0;
            for (int c = h * head; c < (h + 1) * head; c++)
                score[i] += query[c] * key[c] / sqrt((double)head);
            sum += score[i] = exp(score[i]);
        }
        for (int i = 0; i <= q; i++)
            for (int c = h * head; c < (h + 1) * head; c++)
                out[c] += score[i] / sum * value[i][c];
    }
}

static void run_block(const lapse_model *model, int block, int tokens, double z[TOKENS][DIMS], const double *time,
                      const double *query_time)
{
    static double next[TOKENS][DIMS];
    int dims = model->config.dims;
    for (int q = 0; q < tokens; q++) {
        double normal[DIMS] = {0}, out[DIMS], hidden[DIMS], inner[DIMS] = {0}, outer[DIMS] = {0};
        norm(model, block, "norm", z[q], normal);
        attend(model, block, z, normal, q, time, query_time[q], out);
        for (int c = 0; c < dims; c++)
            out[c] += normal[c];
        norm(model, block, "forward.norm", out, hidden);
        multiply(model, block, "forward.inner.weight", hidden, inner);
        add_bias(model, block, "forward.inner.bias", inner);
        for (int c = 0; c < dims; c++)
            inner[c] = fmax(inner[c], 0);
        multiply(model, block, "forward.outer.weight", inner, outer);
        add_bias(model, block, "forward.outer.bias", outer);
        for (int c = 0; c < dims; c++)
            next[q][c] = hidden[c] + outer[c];
    }
    memcpy(z, next, sizeof next);
}

/* The event embedding concatenated with those of its fields, and projected. */
static void joint_vector(const lapse_model *model, int32_t type, const double *fields, double *z)
{
    char full[64];
    for (int c = 0; c < model->config.dims; c++)
        z[c] = element(tensor(model, -1, "event.embedding"), type, c);
    for (int f = 0; f < model->config.field_count; f++) {
        double part[DIMS] = {fields[f]};
        const lp_model_field *field = &model->config.fields[f];
        snprintf(full, sizeof full, "field.%d.embedding", f);
        assert_true(field->dims <= DIMS);
        for (int c = 0; c < field->dims && field->type != LAPSE_FIELD_NUMBER; c++)
            part[c] = element(tensor(model, -1, full), (int64_t)fields[f], c);
        snprintf(full, sizeof full, "field.%d.weight", f);
        multiply(model, -1, full, part, z);
    }
}

void naive_answers(const lapse_model *model, int tokens, const int32_t *type, const double *time,
                   const double *query_time, double *out)
{
    naive_target_answers(model, LP_TARGET_EVENT, tokens, type, NULL, time, query_time, out);
}

void naive_target_answers(const lapse_model *model, lp_target target, int tokens, const int32_t *type,
                          const double *fields, const double *time, const double *query_time, double *out)
{
    static double z[TOKENS][DIMS];
    bool event = target == LP_TARGET_EVENT;
    int dims = model->config.dims;
    int types = event ? model->config.event_types : (int)model->config.fields[0].categories.count;
    assert_true(tokens <= TOKENS && dims <= DIMS);
    for (int t = 0; t < tokens; t++)
        joint_vector(model, type[t], fields ? fields + (ptrdiff_t)t * model->config.field_count : NULL, z[t]);
    for (int block = 0; block < (int)small_config_get(&model->config, "blocks"); block++)
        run_block(model, block, tokens, z, time, query_time);
    for (int t = 0; t < tokens; t++) {
        double normal[DIMS], sum = 0, *row = out + (ptrdiff_t)t * types;
        norm(model, -1, "output.norm", z[t], normal);
        memset(row, 0, (size_t)types * sizeof *row);
        multiply(model, -1, event ? "output.weight" : "output.action.weight", normal, row);
        add_bias(model, -1, event ? "output.bias" : "output.action.bias", row);
        for (int c = 0; c < types; c++)
            sum += exp(row[c]);
        for (int c = 0; c < types; c++)
            row[c] -= log(sum);
    }
}
