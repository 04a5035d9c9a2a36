/* graph.c: building graphs: values, nodes and gradients. */
#include "graph/graph.h"

#include "base/assert.h"
#include "graph/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lp_graph_clear(lp_graph *graph)
{
    lp_free(graph->values);
    lp_free(graph->nodes);
    lp_free(graph->parameters);
    lp_arena_clear(&graph->arena);
    *graph = (lp_graph){0};
}

lapse_status lp_graph_status(const lp_graph *graph, lapse_error *error)
{
    if (graph->error.status != LAPSE_OK && error)
        *error = graph->error;
    return graph->error.status;
}

void *lp_graph_fail(lp_graph *graph, const char *format, ...)
{
    if (graph->error.status == LAPSE_OK) {
        char reason[400];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(reason, sizeof reason, format, arguments);
        va_end(arguments);
        lp_fail(&graph->error, LAPSE_ERROR_INTERNAL, "graph: %s", reason);
    }
    return NULL;
}

static void *out_of_memory(lp_graph *graph)
{
    if (graph->error.status == LAPSE_OK)
        lp_fail_memory(&graph->error, "a graph", sizeof(lp_value));
    return NULL;
}

void *lp_graph_alloc(lp_graph *graph, size_t size)
{
    void *block = lp_arena_alloc(&graph->arena, size);
    return block ? block : out_of_memory(graph);
}

/* Makes space for one more element in an array whose capacity doubles. */
static bool grow(void **array, int count, size_t size)
{
    if (count & (count - 1))
        return true;
    void *larger = lp_grow(*array, count ? (size_t)count * 2 : 1, size);
    if (!larger)
        return false;
    *array = larger;
    return true;
}

static lp_value *value_new(lp_graph *graph, const char *name, lp_type type, lp_storage storage, lp_rows rows_of,
                           int rows, int cols)
{
    if (graph->error.status != LAPSE_OK)
        return NULL;
    lp_value *value = lp_arena_alloc(&graph->arena, sizeof *value);
    if (!value || !grow((void **)&graph->values, graph->value_count, sizeof *graph->values))
        return out_of_memory(graph);
    *value = (lp_value){.id = graph->value_count,
                        .name = name,
                        .type = type,
                        .storage = storage,
                        .rows_of = rows_of,
                        .rows = rows_of == LP_ROWS_FIXED ? rows : 0,
                        .cols = cols};
    graph->values[graph->value_count++] = value;
    return value;
}

lp_value *lp_graph_input(lp_graph *graph, const char *name, lp_type type, lp_rows rows_of, int rows, int cols)
{
    const char *copy = lp_arena_text(&graph->arena, name);
    lp_value *value = copy ? value_new(graph, copy, type, LP_STORAGE_INPUT, rows_of, rows, cols) : out_of_memory(graph);
    if (value)
        value->slot = graph->input_count++;
    return value;
}

/* A parameter whose initializer has `count` arguments, copied from values. */
static lp_value *parameter_new(lp_graph *graph, const char *name, int rows, int cols, lp_initializer initializer,
                               double spread, size_t count, const double *values)
{
    const char *copy = lp_arena_text(&graph->arena, name);
    lp_value *value = copy ? value_new(graph, copy, LP_TYPE_REAL, LP_STORAGE_PARAMETER, LP_ROWS_FIXED, rows, cols)
                           : out_of_memory(graph);
    double *arguments = value && count ? lp_graph_alloc(graph, count * sizeof *values) : NULL;
    if (!value || (count && !arguments))
        return NULL;
    if (!grow((void **)&graph->parameters, graph->parameter_count, sizeof *graph->parameters))
        return out_of_memory(graph);
    value->requires_grad = true;
    value->offset = graph->parameter_size;
    LP_ASSERT(value->offset % LP_PARAMETER_ALIGN == 0);
    /* Aligned, so that vector loads do not straddle cache lines. */
    size_t size = (size_t)rows * (size_t)cols, align = LP_PARAMETER_ALIGN;
    graph->parameter_size += (size + align - 1) / align * align;
    if (count)
        memcpy(arguments, values, count * sizeof *values);
    graph->parameters[graph->parameter_count++] =
        (lp_parameter){.value = value, .initializer = initializer, .spread = spread, .values = arguments, .rate = 1};
    return value;
}

lp_value *lp_graph_table(lp_graph *graph, const char *name, int rows, int cols, lp_initializer initializer,
                         double spread)
{
    if (graph->parameter_size != graph->table_size)
        return lp_graph_fail(graph, "the table '%s' must be declared before other parameters", name);
    lp_value *value = lp_graph_parameter(graph, name, rows, cols, initializer, spread);
    if (!value)
        return NULL;
    graph->parameters[graph->parameter_count - 1].table = true;
    graph->table_size = graph->parameter_size;
    value->slot = graph->table_cols;
    graph->table_cols += cols;
    return value;
}

static lp_parameter *parameter_of(lp_graph *graph, const lp_value *value)
{
    int i = 0;
    while (value && i < graph->parameter_count && graph->parameters[i].value != value)
        i++;
    return value && i < graph->parameter_count ? &graph->parameters[i] : NULL;
}

lp_value *lp_graph_table_unit_ball(lp_graph *graph, lp_value *value)
{
    lp_parameter *parameter = parameter_of(graph, value);
    if (parameter)
        parameter->unit_ball = true;
    return value;
}

lp_value *lp_graph_parameter_items(lp_graph *graph, lp_value *value)
{
    lp_parameter *parameter = parameter_of(graph, value);
    if (parameter)
        parameter->items = true;
    return value;
}

static lp_value *parameter_find(const lp_graph *graph, const char *name, int rows, int cols)
{
    for (int i = 0; i < graph->parameter_count; i++) {
        lp_value *value = graph->parameters[i].value;
        if (value->rows == rows && value->cols == cols && strcmp(value->name, name) == 0)
            return value;
    }
    return NULL;
}

lp_value *lp_graph_parameter(lp_graph *graph, const char *name, int rows, int cols, lp_initializer initializer,
                             double spread)
{
    lp_value *declared = graph->error.status == LAPSE_OK ? parameter_find(graph, name, rows, cols) : NULL;
    if (declared)
        return declared;
    return parameter_new(graph, name, rows, cols, initializer, spread, 0, NULL);
}

lp_value *lp_graph_parameter_values(lp_graph *graph, const char *name, int rows, int cols, const double *values)
{
    return parameter_new(graph, name, rows, cols, LP_INIT_VALUES, 0, (size_t)rows * (size_t)cols, values);
}

lp_value *lp_graph_parameter_log_power(lp_graph *graph, const char *name, int rows, int cols, double power, double low,
                                       double high)
{
    return parameter_new(graph, name, rows, cols, LP_INIT_LOG_POWER, power, 2, (const double[]){low, high});
}

lp_value *lp_graph_parameter_like(lp_graph *graph, const lp_parameter *other)
{
    const lp_value *like = other->value;
    size_t count = other->initializer == LP_INIT_LOG_POWER ? 2 : (size_t)like->rows * (size_t)like->cols;
    lp_value *value = parameter_new(graph, like->name, like->rows, like->cols, other->initializer, other->spread,
                                    other->values ? count : 0, other->values);
    if (!value)
        return NULL;
    graph->parameters[graph->parameter_count - 1].rate = other->rate;
    value->requires_grad = false;
    return value;
}

lp_value *lp_graph_parameter_rate(lp_graph *graph, lp_value *value, double rate)
{
    lp_parameter *parameter = parameter_of(graph, value);
    if (parameter)
        parameter->rate = rate;
    return value;
}

lp_value *lp_graph_parameter_freeze(lp_graph *graph, lp_value *value)
{
    if (value)
        value->requires_grad = false;
    return lp_graph_parameter_rate(graph, value, 0);
}

uint32_t lp_graph_stream(lp_graph *graph)
{
    return graph->stream_count++;
}

/* ------------------------------------------------------------------------------------------------ nodes ------ */

static lp_node *node_new(lp_graph *graph, const lp_op *op, lp_value *const *inputs, const lp_attributes *attributes)
{
    if (graph->error.status != LAPSE_OK)
        return NULL;
    lp_node *node = lp_arena_alloc(&graph->arena, sizeof *node);
    LP_ASSERT(op->input_count <= LP_NODE_INPUTS && op->output_count <= LP_NODE_OUTPUTS);
    if (!node || !grow((void **)&graph->nodes, graph->node_count, sizeof *graph->nodes))
        return out_of_memory(graph);
    *node = (lp_node){.op = op};
    if (attributes)
        node->attributes = *attributes;
    memcpy(node->inputs, inputs, (size_t)op->input_count * sizeof *inputs);
    return node;
}

lp_value *lp_graph_node(lp_graph *graph, const lp_op *op, lp_value *const *inputs, const lp_attributes *attributes)
{
    lp_node *node = node_new(graph, op, inputs, attributes);
    if (!node)
        return NULL;
    op->shape(graph, node);
    if (graph->error.status != LAPSE_OK)
        return NULL;
    LP_ASSERT(node->outputs[0] && node->outputs[0]->producer == node);
    graph->nodes[graph->node_count++] = node;
    return node->outputs[0];
}

void lp_graph_append(lp_graph *graph, lp_node *node)
{
    if (graph->error.status != LAPSE_OK)
        return;
    if (grow((void **)&graph->nodes, graph->node_count, sizeof *graph->nodes))
        graph->nodes[graph->node_count++] = node;
    else
        out_of_memory(graph);
}

lp_value *lp_op_output(lp_graph *graph, lp_node *node, int i, lp_type type, lp_rows rows_of, int rows, int cols)
{
    lp_value *value = value_new(graph, node->op->name, type, LP_STORAGE_WORK, rows_of, rows, cols);
    if (!value)
        return NULL;
    LP_ASSERT(i < node->op->output_count && !node->outputs[i]); /* an output is written once */
    value->producer = node;
    for (int k = 0; k < node->op->input_count; k++)
        value->requires_grad |= node->inputs[k] && node->inputs[k]->requires_grad;
    node->outputs[i] = value;
    return value;
}

lp_value *lp_op_output_like(lp_graph *graph, lp_node *node, int i, const lp_value *like)
{
    return lp_op_output(graph, node, i, like->type, like->rows_of, like->rows, like->cols);
}

/* -------------------------------------------------------------------------------------------- gradients ------ */

/* Creates the gradient of target: in the gradient buffers for a parameter, otherwise in the work buffer. */
static lp_value *gradient_value(lp_graph *graph, const lp_value *target, lp_node *producer)
{
    bool parameter = target->storage == LP_STORAGE_PARAMETER, table = parameter && target->offset < graph->table_size;
    lp_storage storage = table ? LP_STORAGE_TABLE_ROWS : parameter ? LP_STORAGE_GRADIENT : LP_STORAGE_WORK;
    lp_value *gradient = value_new(graph, target->name, target->type, storage, table ? LP_ROWS_ITEMS : target->rows_of,
                                   target->rows, target->cols);
    if (!gradient)
        return NULL;
    gradient->offset = table ? (size_t)target->slot : parameter ? target->offset - graph->table_size : 0;
    gradient->producer = producer;
    gradient->retained = target->storage == LP_STORAGE_INPUT;
    return gradient;
}

/* Replaces a seed, which the caller owns, by a copy that may be added to. */
static void copy_seed(lp_graph *graph, lp_value *target)
{
    lp_value *seed = target->gradient;
    if (!seed || seed->storage != LP_STORAGE_INPUT)
        return;
    target->gradient = NULL;
    lp_graph_gradient_node(graph, lp_op_table[LP_OP_ADD], (lp_value *[]){seed, NULL}, NULL, &target);
}

lp_node *lp_graph_gradient_node(lp_graph *graph, const lp_op *op, lp_value *const *inputs,
                                const lp_attributes *attributes, lp_value *const *targets)
{
    bool needed = false;
    for (int i = 0; i < op->output_count; i++) {
        if (!targets[i] || !targets[i]->requires_grad)
            continue;
        needed = true;
        copy_seed(graph, targets[i]);
    }
    if (!needed)
        return NULL;
    lp_node *node = node_new(graph, op, inputs, attributes);
    if (!node)
        return NULL;
    for (int i = 0; i < op->output_count; i++) {
        lp_value *target = targets[i];
        if (!target || !target->requires_grad)
            continue;
        if (target->gradient)
            node->accumulate |= 1u << i;
        else if (!(target->gradient = gradient_value(graph, target, node)))
            return NULL;
        node->outputs[i] = target->gradient;
        LP_ASSERT(target->gradient->type == target->type && target->gradient->cols == target->cols);
    }
    graph->nodes[graph->node_count++] = node;
    return node;
}

/* Aliases the gradient instead of copying it. A later rule may add to it in place, because all nodes that read it belong to
 * the rule that passes it on and are already appended. Two targets of one rule must not share it, and gradients of inputs
 * and parameters are never aliased. */
void lp_graph_gradient_pass(lp_graph *graph, lp_value *target, lp_value *gradient)
{
    if (!target || !target->requires_grad || graph->error.status != LAPSE_OK)
        return;
    LP_ASSERT(target->type == gradient->type && target->cols == gradient->cols);
    bool may_alias = target->storage == LP_STORAGE_WORK && gradient->storage == LP_STORAGE_WORK && !gradient->retained;
    if (may_alias && !target->gradient && gradient->passed_from != graph->rule) {
        gradient->passed_from = graph->rule;
        target->gradient = gradient;
        return;
    }
    lp_graph_gradient_node(graph, lp_op_table[LP_OP_ADD], (lp_value *[]){gradient, NULL}, NULL, &target);
}

static bool is_summed(const lp_graph *graph, const lp_value *value)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        for (int k = 0; k < node->op->input_count; k++)
            if (node->inputs[k] == value && node->outputs[0] && node->outputs[0]->rows_of != value->rows_of)
                return true;
    }
    return false;
}

lp_value *lp_graph_gradient_take(const lp_graph *graph, lp_value *target)
{
    lp_value *gradient = target->requires_grad ? target->gradient : NULL;
    if (!gradient || !gradient->passed_from || !is_summed(graph, gradient))
        return NULL;
    target->gradient = NULL;
    return gradient;
}

static bool writes(const lp_node *node, const lp_value *value)
{
    for (int k = 0; k < node->op->output_count; k++)
        if (node->outputs[k] == value)
            return true;
    return false;
}

/* Whether node i copies a value that does not change before the last read of the copy. */
static bool is_redundant_copy(const lp_graph *graph, int i)
{
    const lp_node *copy = graph->nodes[i];
    const lp_value *from = copy->inputs[0], *to = copy->outputs[0];
    if (copy->op->id != LP_OP_ADD || copy->inputs[1] || copy->accumulate || to->storage != LP_STORAGE_WORK ||
        to->retained)
        return false;
    bool changed = false;
    for (int n = i + 1; n < graph->node_count; n++) {
        const lp_node *node = graph->nodes[n];
        changed |= writes(node, from);
        if (writes(node, to))
            return false;
        for (int k = 0; k < node->op->input_count; k++)
            if (node->inputs[k] == to && changed)
                return false;
    }
    return true;
}

/* Copy elimination. Rules copy a gradient for a second target because either may be added to later; where neither is, all
 * nodes read the original. */
static void drop_copies(lp_graph *graph, int first)
{
    int count = first;
    for (int i = first; i < graph->node_count; i++) {
        const lp_node *copy = graph->nodes[i];
        if (!is_redundant_copy(graph, i)) {
            graph->nodes[count++] = graph->nodes[i];
            continue;
        }
        for (int n = i + 1; n < graph->node_count; n++)
            for (int k = 0; k < graph->nodes[n]->op->input_count; k++)
                if (graph->nodes[n]->inputs[k] == copy->outputs[0])
                    graph->nodes[n]->inputs[k] = copy->inputs[0];
    }
    graph->node_count = count;
}

lapse_status lp_graph_gradients(lp_graph *graph, int count, lp_value *const *outputs, lp_value *const *seeds,
                                lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    for (int i = 0; i < count; i++) {
        if (!lp_value_same_shape(outputs[i], seeds[i]))
            lp_graph_fail(graph, "the seed of '%s' has a different shape", outputs[i]->name);
        outputs[i]->gradient = seeds[i];
    }
    int forward = graph->node_count;
    for (int i = forward - 1; i >= 0 && graph->error.status == LAPSE_OK; i--) {
        lp_node *node = graph->nodes[i];
        bool reached = false;
        for (int k = 0; k < node->op->output_count; k++)
            reached |= node->outputs[k] && node->outputs[k]->requires_grad && node->outputs[k]->gradient;
        if (!reached)
            continue;
        graph->rule = node;
        if (node->op->gradient)
            node->op->gradient(graph, node);
        else
            lp_graph_fail(graph, "'%s' has no gradient", node->op->name);
    }
    LP_TRY(lp_graph_status(graph, error));
    drop_copies(graph, forward);
    return LAPSE_OK;
}
