/* attention_weights.c: softmax(scale * (query . key_i + time_query . basis_i)) of one row, from the inputs of `attention`,
 * `attention_at` or `attention_cached` (graph/op.h). */
#include "serve/attention_weights.h"

#include <math.h>

static bool has_probabilities(const lp_node *node)
{
    return node->op->id == LP_OP_ATTENTION || node->op->id == LP_OP_ATTENTION_AT ||
           node->op->id == LP_OP_ATTENTION_CACHED;
}

int lp_attention_node(const lp_graph *graph, int block)
{
    for (int i = 0; i < graph->node_count; i++)
        if (has_probabilities(graph->nodes[i]) && block-- == 0)
            return i;
    return graph->node_count;
}

/* Keys or basis vectors of all events of the window, `stride` elements apart. */
typedef struct keys {
    const float *data;
    size_t stride;
    int cols; /* of one head */
} keys;

static double dot(const keys *k, int column, const double *query, int count, int event)
{
    double sum = 0;
    for (int c = 0; c < count; c++)
        sum += query[c] * (double)k->data[(size_t)event * k->stride + (size_t)(column + c)];
    return sum;
}

static const float *last_row(const lp_run *run, const lp_value *value)
{
    const float *data = lp_run_data(run, value);
    return data + (size_t)(lp_run_rows(run, value) - 1) * (size_t)value->cols;
}

/* Adds query . key to the score of each event. u: the basis of the query time that reflects the query; NULL: none. */
static void add_scores(const keys *k, const float *query, const float *u, int events, double *scores)
{
    enum { CHUNK = 64 }; /* columns at a time */
    for (int from = 0; from < k->cols; from += CHUNK) {
        double part[CHUNK];
        int half = k->cols / 2, count = k->cols - from < CHUNK ? k->cols - from : CHUNK;
        for (int j = 0; j < count; j++) {
            int c = from + j, other = c < half ? c + half : c - half;
            double x = (double)query[c];
            if (u)
                x = c < half ? (double)query[c] * (double)u[c] + (double)query[other] * (double)u[other]
                             : (double)query[other] * (double)u[c] - (double)query[c] * (double)u[other];
            part[j] = x;
        }
        for (int i = 0; i < events; i++)
            scores[i] += dot(k, from, part, count, i);
    }
}

/* Keys of a head, perhaps common to all heads. */
static keys keys_of(const lp_run *run, const lp_value *value, bool cached, int cols, int column)
{
    const float *data = cached ? lp_run_cached_rows(run, value, 0) : lp_run_data(run, value);
    return (keys){data + (column < value->cols ? column : 0), (size_t)value->cols, cols};
}

void lp_attention_add(const lp_node *node, const lp_run *run, int head, double factor, double *scores, double *weights)
{
    bool cached = node->op->id == LP_OP_ATTENTION_CACHED;
    const lp_value *query = node->inputs[0], *time_query = node->inputs[3], *basis = node->inputs[4];
    const lp_value *query_time = cached ? node->inputs[5] : NULL;
    int cols = query->cols / node->attributes.heads;
    int events = run->rows[LP_ROWS_TOKENS] + (cached ? run->rows[LP_ROWS_PAST] : 0);
    for (int i = 0; i < events; i++)
        scores[i] = 0;
    keys k = keys_of(run, node->inputs[1], cached, cols, head * cols);
    add_scores(&k, last_row(run, query) + head * cols, NULL, events, scores);
    if (time_query) {
        int extra = time_query->cols / node->attributes.heads;
        k = keys_of(run, basis, cached, extra, 0);
        add_scores(&k, last_row(run, time_query) + head * extra, query_time ? last_row(run, query_time) : NULL, events,
                   scores);
    }
    double largest = -INFINITY, sum = 0;
    for (int i = 0; i < events; i++)
        largest = fmax(largest, node->attributes.scale * scores[i]);
    for (int i = 0; i < events; i++)
        sum += scores[i] = exp(node->attributes.scale * scores[i] - largest);
    for (int i = 0; i < events; i++)
        weights[i] += factor * scores[i] / sum;
}
