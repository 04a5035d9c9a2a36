/* recommender.h: a recommender with random parameters for benchmarks of queries: latency does not depend on their values. */
#ifndef BENCH_RECOMMENDER_H
#define BENCH_RECOMMENDER_H

#include "model/model.h"
#include "train/train_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static void need(lapse_status status, const lapse_error *error)
{
    if (status != LAPSE_OK)
        stop(error->message);
}

typedef struct recommender_shape {
    const char *encoding;
    int items, dims, blocks, heads, context;
    bool gap_input;
} recommender_shape;

static lp_model_config recommender_config(const recommender_shape *shape)
{
    const lp_encoding *encoding = lp_encoding_find(shape->encoding);
    if (!encoding)
        stop("no such encoding");
    lapse_train_options options;
    char blocks[8], dims[8], context[8], heads[8];
    const char *const set[][2] = {{"encoding", shape->encoding},
                                  {"task", "recommend"},
                                  {"period-min", "600"},
                                  {"period-max", "3e8"},
                                  {"inverse-cdf", "maf"},
                                  {"hidden", "16"},
                                  {"blocks", blocks},
                                  {"dims", dims},
                                  {"context", context},
                                  {"gap-input", shape->gap_input ? "on" : "off"},
                                  {"heads", heads}};
    snprintf(blocks, sizeof blocks, "%d", shape->blocks);
    snprintf(dims, sizeof dims, "%d", shape->dims);
    snprintf(context, sizeof context, "%d", shape->context);
    snprintf(heads, sizeof heads, "%d", shape->heads);
    lp_train_options_default(&options);
    lapse_error error;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        need(lapse_train_options_set(&options, set[i][0], set[i][1], &error), &error);
    lp_model_config config = options.model;
    config.row = lp_model_row_find("attention");
    config.settings = options.own[0];
    config.loss = LP_LOSS_SOFTMAX;
    config.event_types = shape->items;
    config.dropout = 0;
    if (shape->gap_input)
        config.gap = (lp_gap_scale){.offset = 1, .mean = 8, .deviation = 3};
    lp_encoding_config *time = (void *)config.settings.bytes;
    time->periods = encoding->default_periods;
    time->harmonics = encoding->default_harmonics ? encoding->default_harmonics : 1;
    return config;
}

/* The items are named i0, i1, .. */
static lapse_model *recommender_new(const recommender_shape *shape)
{
    lp_model_config config = recommender_config(shape);
    uint64_t *offset = calloc((size_t)shape->items + 1, sizeof *offset);
    char *bytes = malloc((size_t)shape->items * 8);
    if (!offset || !bytes)
        stop("out of memory");
    for (int i = 0; i < shape->items; i++)
        offset[i + 1] = offset[i] + (uint64_t)snprintf(bytes + offset[i], 8, "i%d", i) + 1;
    lapse_model *model = NULL;
    lapse_error error;
    need(lp_model_new(&config, &(lp_names){.count = shape->items, .offset = offset, .bytes = bytes}, &model, &error),
         &error);
    free(offset);
    free(bytes);
    lp_network_init_parameters(&model->network.graph, 1, model->parameters);
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 1);
    for (size_t i = 0; i < model->network.graph.parameter_size; i++)
        model->parameters[i] += (float)(0.05 * lp_random_normal(&random));
    return model;
}

static int item_of(const recommender_shape *shape, int event)
{
    return (int)((uint32_t)event * 2654435761u % (uint32_t)shape->items);
}

#endif
