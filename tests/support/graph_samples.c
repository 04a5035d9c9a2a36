/* graph_samples.c: graphs of several ops for tests. */
#include "support/graph_samples.h"

static lp_value *ids(lp_graph *graph, const char *name)
{
    return lp_graph_input(graph, name, LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
}

static lp_value *times(lp_graph *graph, const char *name)
{
    return lp_graph_input(graph, name, LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
}

static lp_node *producer(lp_value *value)
{
    return value ? value->producer : NULL;
}

static lp_value *weight(lp_graph *graph, const char *name, int rows, int cols)
{
    return lp_example_fixed(graph, name, rows, cols);
}

static lp_node *products(lp_graph *graph, int cols, int heads, int extra)
{
    lp_value *x = lp_example_tokens(graph, "x", heads * cols);
    lp_value *w = weight(graph, "w", heads * cols, extra), *bias = weight(graph, "bias", 1, heads * extra);
    lp_value *once = lp_linear(graph, x, w, bias, NULL, heads, false);
    lp_value *back = lp_linear(graph, once, w, NULL, x, heads, true);
    return producer(lp_linear(graph, lp_add(graph, back, x), w, bias, once, heads, false));
}

static lp_node *plain_attention(lp_graph *graph, int cols, int heads, int extra)
{
    (void)extra;
    lp_value *x = lp_example_tokens(graph, "x", heads * cols), *time_out;
    return producer(lp_attention(graph, x, x, x, NULL, NULL, heads, 0.3 / cols, 0, &time_out));
}

/* No basis; separate query, key and value. */
static lp_node *bare_attention(lp_graph *graph, int cols, int heads, int extra)
{
    (void)extra;
    lp_value *query = lp_example_tokens(graph, "query", heads * cols),
             *key = lp_example_tokens(graph, "key", heads * cols),
             *value = lp_example_tokens(graph, "value", heads * cols), *time_out;
    return producer(lp_attention(graph, query, key, value, NULL, NULL, heads, 0.3 / cols, 0.2, &time_out));
}

/* Every input has another use, so that all gradients of the attention accumulate. */
static lp_node *accumulating_attention(lp_graph *graph, int cols, int heads, int extra)
{
    lp_value *query = lp_example_tokens(graph, "query", heads * cols),
             *key = lp_example_tokens(graph, "key", heads * cols);
    lp_value *value = lp_example_tokens(graph, "value", heads * cols),
             *basis = lp_example_tokens(graph, "basis", extra);
    lp_value *transposed = lp_example_tokens(graph, "time_query", heads * extra), *time_out;
    lp_value *out =
        lp_attention(graph, query, key, value, transposed, basis, heads, 1.0 / (cols + extra), 0.2, &time_out);
    lp_value *w = weight(graph, "w", heads * extra, heads * cols), *v = weight(graph, "v", extra, heads * cols);
    lp_value *y = lp_linear(graph, time_out, w, NULL, lp_add(graph, out, query), 1, false);
    y = lp_linear(graph, transposed, w, NULL, lp_add(graph, y, key), 1, false);
    return producer(lp_linear(graph, basis, v, NULL, lp_add(graph, y, value), 1, false));
}

/* A gradient passed to two values, one of which accumulates more: the other must not change. */
static lp_node *passed_gradient(lp_graph *graph, int cols, int heads, int extra)
{
    (void)heads;
    (void)extra;
    lp_value *a = lp_relu(graph, lp_example_tokens(graph, "a", cols)),
             *b = lp_relu(graph, lp_example_tokens(graph, "b", cols));
    lp_value *first = lp_relu(graph, a), *second = lp_dropout(graph, b, 0.5), *sum = lp_add(graph, a, b);
    lp_value *left = lp_add(graph, sum, first), *right = lp_add(graph, second, sum);
    return producer(lp_add(graph, left, right));
}

static lp_node *lag_attention(lp_graph *graph, int cols, int heads, int extra)
{
    lp_value *query = lp_example_tokens(graph, "query", heads * cols),
             *key = lp_example_tokens(graph, "key", heads * cols);
    lp_value *value = lp_example_tokens(graph, "value", heads * cols),
             *basis = lp_example_tokens(graph, "basis", extra);
    lp_value *transposed = lp_example_tokens(graph, "time_query", heads * extra), *time_out;
    lp_value *out =
        lp_attention(graph, query, key, value, transposed, basis, heads, 1.0 / (cols + extra), 0.2, &time_out);
    return producer(lp_linear(graph, time_out, weight(graph, "w", heads * extra, heads * cols), NULL, out, 1, false));
}

static lp_node *rows(lp_graph *graph, int cols, int heads, int extra)
{
    lp_value *e = lp_embed(graph, lp_example_fixed(graph, "table", extra, cols), ids(graph, "ids"));
    lp_value *scale = lp_example_fixed(graph, "scale", 1, cols);
    lp_value *weight = lp_example_fixed(graph, "weight", 1, cols), *bias = lp_example_fixed(graph, "bias", 1, cols);
    lp_value *scaled = lp_scale_columns(graph, lp_add(graph, e, lp_example_tokens(graph, "x", cols)), scale);
    lp_value *y = lp_layer_norm(graph, lp_dropout(graph, scaled, 0.1 * heads), weight, bias, 1e-2);
    lp_value *z = lp_add(graph, lp_scale_columns(graph, y, scale), y);
    lp_value *normal = lp_dropout(graph, lp_layer_norm(graph, z, weight, bias, 1e-2), 0.3);
    return producer(lp_add(graph, normal, lp_add(graph, z, scaled)));
}

static lp_node *loss(lp_graph *graph, int cols, int heads, int extra)
{
    (void)heads;
    lp_value *x = lp_relu(graph, lp_example_tokens(graph, "x", extra));
    lp_value *logits = lp_linear(graph, x, weight(graph, "w", cols, extra), NULL, NULL, 1, true);
    lp_value *first = lp_cross_entropy(graph, logits, ids(graph, "target"));
    return producer(lp_add(graph, first, lp_cross_entropy(graph, logits, ids(graph, "other"))));
}

static lp_node *turns(lp_graph *graph, int cols, int heads, int extra)
{
    lp_value *frequency = lp_harmonics(graph, lp_example_fixed(graph, "log_period", 1, cols), 1 + extra % 3);
    int width = 2 * cols * (1 + extra % 3);
    lp_value *u = lp_basis(graph, times(graph, "time"), frequency),
             *v = lp_basis(graph, times(graph, "target"), frequency);
    lp_value *x = lp_example_tokens(graph, "x", heads * width), *y = lp_reflect(graph, lp_reflect(graph, x, u), v);
    return producer(lp_reflect(graph, lp_add(graph, y, x), lp_add(graph, u, v)));
}

const graph_sample graph_samples[] = {
    {"products", products},
    {"plain attention", plain_attention},
    {"bare attention", bare_attention},
    {"lag attention", lag_attention},
    {"accumulating attention", accumulating_attention},
    {"passed gradient", passed_gradient},
    {"rows", rows},
    {"loss", loss},
    {"turns", turns},
};
const int graph_sample_count = sizeof graph_samples / sizeof *graph_samples;
