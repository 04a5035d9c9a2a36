/* hoist.c: constant folding by rewrite rules, applied node by node while the node list is rebuilt. A rule that replaces a
 * node makes the new node produce the old output value, so pointers to that value stay valid. */
#include "graph/hoist.h"

#include "base/assert.h"
#include "graph/op_rows.h"

#include <string.h>

bool lp_value_is_constant(const lp_value *value)
{
    const lp_node *producer = value->producer;
    if (!producer)
        return value->storage == LP_STORAGE_PARAMETER || value->constant;
    bool constant = producer->inputs[0] != NULL;
    for (int k = 0; constant && k < producer->op->input_count; k++)
        constant = !producer->inputs[k] || lp_value_is_constant(producer->inputs[k]);
    return constant;
}

typedef struct hoist {
    lp_graph *graph; /* with the rebuilt nodes so far */
    lp_node **old;   /* the original nodes */
    int old_count;
    size_t elements_left;
} hoist;

/* The node that produces this value by a lookup in a constant table, or NULL. */
static const lp_node *lookup_of(const lp_value *value)
{
    const lp_node *producer = value ? value->producer : NULL;
    return producer && producer->op == &lp_op_embed && lp_value_is_constant(producer->inputs[0]) ? producer : NULL;
}

/* Makes the producer of `by` produce the output of `node` instead. False if `by` is NULL. */
static bool replace_producer(lp_node *node, lp_value *by)
{
    if (!by)
        return false;
    LP_ASSERT(by->producer && by->producer->outputs[0] == by);
    LP_ASSERT(by->type == node->outputs[0]->type && lp_value_same_shape(by, node->outputs[0]));
    by->producer->outputs[0] = node->outputs[0];
    node->outputs[0]->producer = by->producer;
    return true;
}

/* ------------------------------------------------------------------------------------------- the rules ------- */

/* f(table)[ids] for the node f(table[ids]) with these other inputs; NULL if the table is too large. */
static lp_value *look_up(hoist *h, const lp_node *node, const lp_node *lookup, lp_value *const *inputs)
{
    lp_value *table = lookup->inputs[0], *with_table[LP_NODE_INPUTS];
    size_t size = (size_t)table->rows * (size_t)node->outputs[0]->cols;
    if (table->rows_of != LP_ROWS_FIXED || size > h->elements_left)
        return NULL;
    h->elements_left -= size;
    memcpy(with_table, inputs, sizeof with_table);
    with_table[0] = table;
    lp_value *once = lp_graph_node(h->graph, node->op, with_table, &node->attributes);
    return once ? lp_embed(h->graph, once, lookup->inputs[1]) : NULL;
}

static bool is_row_wise(const lp_op *op)
{
    return op == &lp_op_linear || op == &lp_op_affine || op == &lp_op_relu || op == &lp_op_layer_norm;
}

/* A row-wise node on looked-up rows and constants. */
static bool replace_by_lookup(hoist *h, lp_node *node)
{
    const lp_node *lookup = is_row_wise(node->op) ? lookup_of(node->inputs[0]) : NULL;
    for (int k = 1; lookup && k < node->op->input_count; k++)
        if (node->inputs[k] && !lp_value_is_constant(node->inputs[k]))
            return false;
    return replace_producer(node, lookup ? look_up(h, node, lookup, node->inputs) : NULL);
}

static int uses(const hoist *h, const lp_value *value)
{
    int count = value->retained ? 1 : 0;
    for (int i = 0; i < h->old_count; i++)
        for (int k = 0; k < h->old[i]->op->input_count; k++)
            count += h->old[i]->inputs[k] == value;
    return count;
}

/* value + lookup, fused where value has no other use: the lookup becomes the addend of a product (whose bias is already
 * in the table if bias_folded), or two lookups become one node; otherwise an add. */
static lp_value *sum_of(hoist *h, lp_value *value, lp_value *found, bool bias_folded)
{
    const lp_node *producer = value->producer;
    bool alone = producer && uses(h, value) == 1;
    if (alone && producer->op == &lp_op_linear && !producer->inputs[3]) {
        lp_value *product[] = {producer->inputs[0], producer->inputs[1], bias_folded ? NULL : producer->inputs[2],
                               found};
        return lp_graph_node(h->graph, &lp_op_linear, product, &producer->attributes);
    }
    lp_value *const *lookup = found->producer->inputs;
    if (alone && producer->op == &lp_op_embed)
        return lp_embed_pair(h->graph, producer->inputs[0], producer->inputs[1], lookup[0], lookup[1]);
    return lp_add(h->graph, value, found);
}

/* A product of looked-up rows plus an addend. */
static bool replace_by_addend(hoist *h, lp_node *node)
{
    const lp_node *lookup = node->op == &lp_op_linear ? lookup_of(node->inputs[0]) : NULL;
    lp_value *add = lookup ? node->inputs[3] : NULL, *inputs[LP_NODE_INPUTS];
    if (!add || !lp_value_is_constant(node->inputs[1]) || (node->inputs[2] && !lp_value_is_constant(node->inputs[2])))
        return false;
    const lp_node *first = add->producer;
    bool fold_bias = first && first->op == &lp_op_linear && !first->inputs[3] && uses(h, add) == 1 && !node->inputs[2];
    memcpy(inputs, node->inputs, sizeof inputs);
    if (fold_bias)
        inputs[2] = first->inputs[2];
    inputs[3] = NULL;
    lp_value *found = look_up(h, node, lookup, inputs);
    return replace_producer(node, found ? sum_of(h, add, found, fold_bias) : NULL);
}

/* The transposed weight, computed once for all its uses. */
static lp_value *transposed(hoist *h, lp_value *weight, int heads)
{
    for (int i = 0; i < h->graph->node_count; i++) {
        const lp_node *node = h->graph->nodes[i];
        if (node->op == &lp_op_transpose && node->inputs[0] == weight && node->attributes.heads == heads)
            return node->outputs[0];
    }
    return lp_transpose(h->graph, weight, heads);
}

static void transpose_weight(hoist *h, lp_node *node)
{
    bool foldable = node->op == &lp_op_linear && node->attributes.transpose && lp_value_is_constant(node->inputs[1]) &&
                    !lp_value_is_constant(node->inputs[0]);
    lp_value *weight = foldable ? transposed(h, node->inputs[1], node->attributes.heads) : NULL;
    if (!weight)
        return;
    node->inputs[1] = weight;
    node->attributes.transpose = false;
}

/* -------------------------------------------------------------------------------------------- the passes ----- */

/* Dead code elimination. */
static lapse_status prune(lp_graph *graph, lapse_error *error)
{
    int first = graph->node_count;
    bool *used = lp_alloc((size_t)graph->value_count, sizeof *used);
    if (!used)
        return lp_fail_memory(error, "a graph", (size_t)graph->value_count);
    for (int i = graph->node_count - 1; i >= 0; i--) {
        lp_node *node = graph->nodes[i];
        bool needed = false;
        for (int k = 0; k < node->op->output_count; k++)
            needed |= node->outputs[k] && (node->outputs[k]->retained || used[node->outputs[k]->id]);
        for (int k = 0; needed && k < node->op->input_count; k++)
            if (node->inputs[k])
                used[node->inputs[k]->id] = true;
        LP_ASSERT(first > i); /* a kept node moves up, never onto one that is still to be looked at */
        if (needed)
            graph->nodes[--first] = node;
    }
    graph->node_count -= first;
    memmove(graph->nodes, graph->nodes + first, (size_t)graph->node_count * sizeof *graph->nodes);
    lp_free(used);
    return LAPSE_OK;
}

lapse_status lp_graph_hoist(lp_graph *graph, size_t max_elements, lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    hoist h = {.graph = graph, .old = graph->nodes, .old_count = graph->node_count, .elements_left = max_elements};
    graph->nodes = NULL;
    graph->node_count = 0;
    for (int i = 0; i < h.old_count; i++) {
        if (replace_by_lookup(&h, h.old[i]) || replace_by_addend(&h, h.old[i]))
            continue;
        transpose_weight(&h, h.old[i]);
        lp_graph_append(graph, h.old[i]);
    }
    lp_free(h.old);
    LP_TRY(lp_graph_status(graph, error));
    return prune(graph, error);
}
