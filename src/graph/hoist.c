/* hoist.c: the rules, applied to one node after the other while the list of nodes is written anew. A rule that replaces a
 * node lets the new one make the old one's value: whoever holds on to that value still does. */
#include "graph/hoist.h"

#include "graph/op_rows.h"

#include <string.h>

bool lp_value_is_fixed(const lp_value *value)
{
    const lp_node *producer = value->producer;
    if (!producer)
        return value->storage == LP_STORAGE_PARAMETER || value->constant;
    bool fixed = producer->inputs[0] != NULL;
    for (int k = 0; fixed && k < producer->op->input_count; k++)
        fixed = !producer->inputs[k] || lp_value_is_fixed(producer->inputs[k]);
    return fixed;
}

typedef struct hoist {
    lp_graph *graph; /* with the nodes written so far */
    lp_node **old;   /* those there were */
    int old_count;
    size_t room;
} hoist;

/* The node that looks a value up in a table that never changes; NULL: another one made it. */
static const lp_node *lookup_of(const lp_value *value)
{
    const lp_node *producer = value ? value->producer : NULL;
    return producer && producer->op == &lp_op_embed && lp_value_is_fixed(producer->inputs[0]) ? producer : NULL;
}

/* The value of a node is made by another one from now on. */
static void hand_over(lp_node *from, lp_node *to)
{
    to->outputs[0] = from->outputs[0];
    to->outputs[0]->producer = to;
}

/* ------------------------------------------------------------------------------------------- the rules ------- */

/* f(table)[ids], where the node is f(table[ids]) and f sees these inputs besides. */
static lp_node *look_up(hoist *h, const lp_node *node, const lp_node *lookup, lp_value *const *inputs)
{
    lp_value *table = lookup->inputs[0], *with_table[LP_NODE_INPUTS];
    size_t size = (size_t)table->rows * (size_t)node->outputs[0]->cols;
    if (table->rows_of != LP_ROWS_FIXED || size > h->room)
        return NULL;
    h->room -= size;
    memcpy(with_table, inputs, sizeof with_table);
    with_table[0] = table;
    lp_node *once = lp_graph_node(h->graph, node->op, with_table, &node->with);
    lp_value *found[] = {once ? once->outputs[0] : NULL, lookup->inputs[1]};
    return once ? lp_graph_node(h->graph, &lp_op_embed, found, NULL) : NULL;
}

static bool works_by_row(const lp_op *op)
{
    return op == &lp_op_linear || op == &lp_op_affine || op == &lp_op_relu || op == &lp_op_layer_norm;
}

/* A node that sees looked up rows and parameters. */
static bool replace_by_lookup(hoist *h, lp_node *node)
{
    const lp_node *lookup = works_by_row(node->op) ? lookup_of(node->inputs[0]) : NULL;
    for (int k = 1; lookup && k < node->op->input_count; k++)
        if (node->inputs[k] && !lp_value_is_fixed(node->inputs[k]))
            return false;
    lp_node *found = lookup ? look_up(h, node, lookup, node->inputs) : NULL;
    if (found)
        hand_over(node, found);
    return found != NULL;
}

static int uses(const hoist *h, const lp_value *value)
{
    int count = value->kept ? 1 : 0;
    for (int i = 0; i < h->old_count; i++)
        for (int k = 0; k < h->old[i]->op->input_count; k++)
            count += h->old[i]->inputs[k] == value;
    return count;
}

/* The sum of a value that is used here alone and of what was looked up: the look-up becomes the addend of a product, and
 * has its bias where it has `taken` it; two look-ups become one; otherwise they are added. */
static lp_node *sum_of(hoist *h, lp_value *value, const lp_node *found, bool taken)
{
    const lp_node *producer = value->producer;
    bool alone = producer && uses(h, value) == 1;
    if (alone && producer->op == &lp_op_linear && !producer->inputs[3]) {
        lp_value *product[] = {producer->inputs[0], producer->inputs[1], taken ? NULL : producer->inputs[2],
                               found->outputs[0]};
        return lp_graph_node(h->graph, &lp_op_linear, product, &producer->with);
    }
    if (alone && producer->op == &lp_op_embed) {
        lp_value *pair[] = {producer->inputs[0], producer->inputs[1], found->inputs[0], found->inputs[1]};
        return lp_graph_node(h->graph, &lp_op_embed_pair, pair, NULL);
    }
    lp_value *both[] = {value, found->outputs[0]};
    return lp_graph_node(h->graph, &lp_op_add, both, NULL);
}

/* A product of looked up rows that is added to something. */
static bool replace_by_addend(hoist *h, lp_node *node)
{
    const lp_node *lookup = node->op == &lp_op_linear ? lookup_of(node->inputs[0]) : NULL;
    lp_value *add = lookup ? node->inputs[3] : NULL, *inputs[LP_NODE_INPUTS];
    if (!add || !lp_value_is_fixed(node->inputs[1]) || (node->inputs[2] && !lp_value_is_fixed(node->inputs[2])))
        return false;
    const lp_node *first = add->producer;
    bool takes = first && first->op == &lp_op_linear && !first->inputs[3] && uses(h, add) == 1 && !node->inputs[2];
    memcpy(inputs, node->inputs, sizeof inputs);
    if (takes)
        inputs[2] = first->inputs[2];
    inputs[3] = NULL;
    lp_node *found = look_up(h, node, lookup, inputs), *sum = found ? sum_of(h, add, found, takes) : NULL;
    if (sum)
        hand_over(node, sum);
    return sum != NULL;
}

/* The weight on its side, made once however many nodes want it. */
static lp_value *transposed(hoist *h, lp_value *weight, int heads)
{
    for (int i = 0; i < h->graph->node_count; i++) {
        const lp_node *node = h->graph->nodes[i];
        if (node->op == &lp_op_transpose && node->inputs[0] == weight && node->with.heads == heads)
            return node->outputs[0];
    }
    return lp_transpose(h->graph, weight, heads);
}

static void transpose_weight(hoist *h, lp_node *node)
{
    bool wanted = node->op == &lp_op_linear && node->with.transpose && lp_value_is_fixed(node->inputs[1]) &&
                  !lp_value_is_fixed(node->inputs[0]);
    lp_value *weight = wanted ? transposed(h, node->inputs[1], node->with.heads) : NULL;
    if (!weight)
        return;
    node->inputs[1] = weight;
    node->with.transpose = false;
}

/* -------------------------------------------------------------------------------------------- the passes ----- */

/* Leaves out what nobody wants. */
static lapse_status prune(lp_graph *graph, lapse_error *error)
{
    int kept = graph->node_count;
    bool *wanted = lp_alloc((size_t)graph->value_count, sizeof *wanted);
    if (!wanted)
        return lp_fail_memory(error, "a graph", (size_t)graph->value_count);
    for (int i = graph->node_count - 1; i >= 0; i--) {
        lp_node *node = graph->nodes[i];
        bool needed = false;
        for (int k = 0; k < node->op->output_count; k++)
            needed |= node->outputs[k] && (node->outputs[k]->kept || wanted[node->outputs[k]->id]);
        for (int k = 0; needed && k < node->op->input_count; k++)
            if (node->inputs[k])
                wanted[node->inputs[k]->id] = true;
        if (needed)
            graph->nodes[--kept] = node;
    }
    graph->node_count -= kept;
    memmove(graph->nodes, graph->nodes + kept, (size_t)graph->node_count * sizeof *graph->nodes);
    lp_free(wanted);
    return LAPSE_OK;
}

lapse_status lp_graph_hoist(lp_graph *graph, size_t room, lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    hoist h = {.graph = graph, .old = graph->nodes, .old_count = graph->node_count, .room = room};
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
