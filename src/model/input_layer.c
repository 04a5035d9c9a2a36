/* input_layer.c: embeddings of events and fields, gaps, and the item vectors of a recommender. Only fields of past events are read, never
 * those of a target. A gap belongs to its event and not to the window, so a decoder computes its part once per event. */
#include "model/input_layer.h"

#include "nn/layer.h"

#include <math.h>
#include <stdio.h>

enum { NAME_SIZE = 40 };

static lp_value *add_field(const lp_builder *b, int f, double bound, lp_value *sum)
{
    const lp_model_field *field = &b->config->fields[f];
    char name[NAME_SIZE];
    lp_value *x = b->feeds[LP_FEED_COUNT + f];
    if (field->type != LAPSE_FIELD_NUMBER) {
        snprintf(name, sizeof name, "field.%d.embedding", f);
        lp_value *table = lp_graph_parameter(b->graph, name, (int)field->categories.count, field->dims, LP_INIT_NORMAL,
                                             1 / sqrt((double)field->dims));
        x = lp_embed(b->graph, table, x);
    }
    snprintf(name, sizeof name, "field.%d.weight", f);
    lp_value *weight = lp_graph_parameter(b->graph, name, b->config->dims, field->dims, LP_INIT_UNIFORM, bound);
    return lp_linear(b->graph, x, weight, NULL, sum, 1, true);
}

/* Adds the perceptron of the gap. It has no output bias: the event's embedding has one. */
static lp_value *add_gap(const lp_builder *b, lp_value *sum)
{
    int dims = b->config->dims;
    lp_value *hidden = lp_relu(b->graph, lp_layer(b->graph, "gap.hidden", b->feeds[LP_FEED_GAP], dims, NULL));
    lp_value *weight =
        lp_graph_parameter(b->graph, "gap.output.weight", dims, dims, LP_INIT_UNIFORM, lp_uniform_bound(dims));
    return lp_linear(b->graph, hidden, weight, NULL, sum, 1, true);
}

/* A parameter with one row per item. With a sampled loss, training gathers the rows of the batch vocabulary alone. */
static lp_value *item_rows(const lp_builder *b, const char *name, int cols, lp_initializer init)
{
    const double deviation = 0.02;
    int items = b->config->event_types;
    lp_value *table;
    if (!b->training || !lp_model_samples_items(b->config))
        return lp_graph_parameter_items(b->graph, lp_graph_parameter(b->graph, name, items, cols, init, deviation));
    table = lp_graph_parameter_items(b->graph, lp_graph_table(b->graph, name, items, cols, init, deviation));
    if (init == LP_INIT_UNIT)
        table = lp_graph_table_unit_ball(b->graph, table);
    return lp_gather(b->graph, table, b->feeds[LP_FEED_ITEM]);
}

/* The input embedding, output vectors and bias of a recommender's items. */
static lp_value *declare_items(const lp_builder *b)
{
    int dims = b->config->dims;
    lp_value *events = item_rows(b, "event.embedding", dims, b->config->row->points ? LP_INIT_UNIT : LP_INIT_NORMAL);
    b->network->items = events;
    if (b->config->of_times)
        return events;
    if (b->config->output == LP_OUTPUT_SEPARATE)
        b->network->items = item_rows(b, "output.weight", lp_model_state_dims(b->config), LP_INIT_NORMAL);
    b->network->bias = item_rows(b, "output.bias", 1, LP_INIT_ZEROS);
    return events;
}

lp_value *lp_input_layer(lp_builder *b)
{
    const lp_model_config *config = b->config;
    double root = sqrt((double)config->dims);
    bool recommend = config->task == LP_TASK_RECOMMEND;
    lp_value *table = recommend ? declare_items(b)
                                : lp_graph_parameter(b->graph, "event.embedding", config->event_types, config->dims,
                                                     LP_INIT_NORMAL, 1 / root);
    lp_value *sum = lp_embed(b->graph, table, b->feeds[LP_FEED_EVENT]);
    if (recommend && !config->row->points)
        sum = lp_affine(b->graph, sum, root, 0);
    int width = config->dims;
    for (int f = 0; f < config->field_count; f++)
        width += config->fields[f].dims;
    for (int f = 0; f < config->field_count; f++)
        sum = add_field(b, f, 1 / sqrt((double)width), sum);
    if (config->gap_input == 1)
        sum = add_gap(b, sum);
    return sum;
}
