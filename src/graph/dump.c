/* dump.c: prints a graph as text. */
#include "graph/graph.h"

#include "graph/op.h"

static bool print_value(const lp_value *value, lp_buffer *out)
{
    static const char *const storages[] = {"input", "parameter", "gradient", "rows", "work"};
    static const char letters[LP_ROWS_COUNT] = {
        [LP_ROWS_TOKENS] = 'T', [LP_ROWS_TARGETS] = 'A', [LP_ROWS_LABELS] = 'L', [LP_ROWS_ITEMS] = 'I', [LP_ROWS_PAST] = 'P'};
    static const char *const types[] = {"", " int32", " double"};
    if (!value)
        return lp_buffer_print(out, " -");
    if (!lp_buffer_print(out, " %%%d:%s %s[", value->id, value->name, storages[value->storage]))
        return false;
    bool good = value->rows_of == LP_ROWS_FIXED ? lp_buffer_print(out, "%d", value->rows)
                                                : lp_buffer_print(out, "%c", letters[value->rows_of]);
    return good && lp_buffer_print(out, " x %d%s]", value->cols, types[value->type]);
}

bool lp_graph_dump(const lp_graph *graph, lp_buffer *out)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        bool good = lp_buffer_print(out, "%3d %s", i, node->op->name);
        for (int k = 0; good && k < node->op->input_count; k++)
            good = print_value(node->inputs[k], out);
        good = good && lp_buffer_print(out, " ->");
        for (int k = 0; good && k < node->op->output_count; k++) {
            good = print_value(node->outputs[k], out);
            if (good && (node->accumulate >> k & 1))
                good = lp_buffer_print(out, " (added)");
        }
        if (!good || !lp_buffer_print(out, "\n"))
            return false;
    }
    return true;
}
