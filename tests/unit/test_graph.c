/* test_graph.c: building, gradients, planning and dumping of graphs; every error message; failing allocations. */
#include "graph/plan.h"
#include "support/graph_samples.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- mistakes ----- */

static lp_value *tokens(lp_graph *graph, int cols)
{
    return lp_graph_input(graph, "x", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, cols);
}

static lp_value *typed(lp_graph *graph, lp_type type, lp_rows rows_of, int rows, int cols)
{
    return lp_graph_input(graph, "y", type, rows_of, rows, cols);
}

static lp_value *fixed(lp_graph *graph, int rows, int cols)
{
    return lp_graph_parameter(graph, "w", rows, cols, LP_INIT_ZEROS, 0);
}

static void check_message(lp_graph *graph, const lp_value *made, const char *message)
{
    lapse_error error = {0};
    assert_null(made);
    assert_int_equal(lp_graph_status(graph, &error), LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, message);
    /* Errors are sticky: nothing is built any more, and the first error stays. */
    int values = graph->value_count, nodes = graph->node_count;
    assert_null(tokens(graph, 3));
    assert_null(lp_add(graph, NULL, NULL));
    assert_null(lp_dropout(graph, NULL, 0.5));
    assert_int_equal(graph->value_count, values);
    assert_int_equal(graph->node_count, nodes);
    lp_graph_status(graph, &error);
    assert_string_equal(error.message, message);
    lp_graph_clear(graph);
}

static void test_mistakes_of_rows(void **state)
{
    (void)state;
    lp_graph g = {0};
    check_message(&g, lp_add(&g, tokens(&g, 2), tokens(&g, 3)), "graph: add needs two values of the same shape");
    check_message(&g, lp_add(&g, tokens(&g, 2), NULL), "graph: add needs two values of the same shape");
    check_message(&g, lp_add(&g, fixed(&g, 4, 2), fixed(&g, 5, 2)), "graph: add needs two values of the same shape");
    check_message(&g, lp_embed(&g, fixed(&g, 4, 2), tokens(&g, 1)), "graph: embed needs a table and one id per row");
    check_message(&g, lp_embed(&g, fixed(&g, 4, 2), typed(&g, LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 2)),
                  "graph: embed needs a table and one id per row");
    check_message(&g, lp_gather(&g, fixed(&g, 4, 2), typed(&g, LP_TYPE_INT32, LP_ROWS_ITEMS, 0, 1)),
                  "graph: gather needs a table and the rows of the shard's items");
    check_message(&g, lp_softmax_loss(&g, tokens(&g, 3), fixed(&g, 4, 2), fixed(&g, 4, 1), NULL, tokens(&g, 1)),
                  "graph: softmax_loss needs a vector and a target per row, and a vector and a bias per item");
    check_message(&g, lp_relu(&g, typed(&g, LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1)), "graph: relu needs a real value");
    check_message(&g, lp_dropout(&g, typed(&g, LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1), 0.1),
                  "graph: dropout needs a real value");
    check_message(&g, lp_layer_norm(&g, tokens(&g, 3), fixed(&g, 1, 2), fixed(&g, 1, 3), 1e-5),
                  "graph: layer_norm needs a weight and a bias per column");
    check_message(&g, lp_scale_columns(&g, tokens(&g, 3), fixed(&g, 1, 2)),
                  "graph: scale_columns needs one factor per column");
    check_message(&g, lp_cross_entropy(&g, tokens(&g, 3), tokens(&g, 1)),
                  "graph: cross_entropy needs one target per row");
    check_message(&g, lp_time_loss(&g, tokens(&g, 1), fixed(&g, 1, 1), tokens(&g, 1), 1),
                  "graph: time_loss needs a score and a gap per row, and one slope");
    check_message(&g, lp_soft_loss(&g, tokens(&g, 3), tokens(&g, 2)),
                  "graph: soft_loss needs logits and targets of the same shape");
}

static void test_mistakes_of_products(void **state)
{
    (void)state;
    lp_graph g = {0};
    check_message(&g, lp_linear(&g, tokens(&g, 3), fixed(&g, 3, 2), NULL, NULL, 2, false),
                  "graph: linear needs a value, and a weight whose rows the heads divide");
    check_message(&g, lp_linear(&g, tokens(&g, 3), fixed(&g, 4, 2), NULL, NULL, 1, false),
                  "graph: linear: 'x' has 3 columns, the weight 'w' needs 4");
    check_message(&g, lp_linear(&g, tokens(&g, 3), fixed(&g, 4, 2), NULL, NULL, 2, true),
                  "graph: linear: 'x' has 3 columns, the weight 'w' needs 4");
    check_message(&g, lp_linear(&g, tokens(&g, 3), fixed(&g, 3, 2), fixed(&g, 1, 3), NULL, 1, false),
                  "graph: linear: bias or addend of 'w' has the wrong shape");
    check_message(&g, lp_linear(&g, tokens(&g, 3), fixed(&g, 3, 2), NULL, tokens(&g, 3), 1, false),
                  "graph: linear: bias or addend of 'w' has the wrong shape");
    check_message(&g, lp_attention(&g, tokens(&g, 4), tokens(&g, 4), tokens(&g, 5), NULL, NULL, 1, 1, 0, NULL),
                  "graph: attention needs query, key and value of the same shape, divided by the heads");
    check_message(&g, lp_attention(&g, tokens(&g, 4), tokens(&g, 4), tokens(&g, 4), NULL, NULL, 3, 1, 0, NULL),
                  "graph: attention needs query, key and value of the same shape, divided by the heads");
    check_message(
        &g, lp_attention(&g, tokens(&g, 4), tokens(&g, 4), tokens(&g, 4), tokens(&g, 5), tokens(&g, 3), 2, 1, 0, NULL),
        "graph: attention needs a time query for each head and column of the basis");
    check_message(&g, lp_attention(&g, tokens(&g, 4), tokens(&g, 4), tokens(&g, 4), tokens(&g, 5), NULL, 1, 1, 0, NULL),
                  "graph: attention needs a time query for each head and column of the basis");
}

static void test_mistakes_of_time(void **state)
{
    (void)state;
    lp_graph g = {0};
    check_message(&g, lp_harmonics(&g, fixed(&g, 2, 3), 1),
                  "graph: harmonics needs one row of log periods and at least one harmonic");
    check_message(&g, lp_harmonics(&g, fixed(&g, 1, 3), 0),
                  "graph: harmonics needs one row of log periods and at least one harmonic");
    check_message(&g, lp_basis(&g, tokens(&g, 1), lp_harmonics(&g, fixed(&g, 1, 3), 2)),
                  "graph: basis needs times and one row of frequencies, both double");
    check_message(&g, lp_basis(&g, typed(&g, LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1), fixed(&g, 1, 3)),
                  "graph: basis needs times and one row of frequencies, both double");
    check_message(&g, lp_reflect(&g, tokens(&g, 6), tokens(&g, 3)),
                  "graph: reflect needs features of each head and one u(t') per row");
    check_message(&g, lp_reflect(&g, tokens(&g, 6), tokens(&g, 4)),
                  "graph: reflect needs features of each head and one u(t') per row");
}

static void test_mistakes_of_gradients(void **state)
{
    (void)state;
    lp_graph g = {0};
    lapse_error error;
    lp_value *y = lp_add(&g, lp_example_tokens(&g, "a", 2), lp_example_tokens(&g, "b", 2)), *seed = tokens(&g, 3);
    assert_int_equal(lp_graph_gradients(&g, 1, &y, &seed, &error), LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, "graph: the seed of 'add' has a different shape");
    lp_graph_clear(&g);

    lp_value *x = lp_example_tokens(&g, "a", 2), *time_out;
    y = lp_attention(&g, x, x, x, lp_example_tokens(&g, "t", 4), lp_example_tokens(&g, "u", 4), 1, 1, 0, &time_out);
    seed = tokens(&g, 2);
    assert_int_equal(lp_graph_gradients(&g, 1, &y, &seed, &error), LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, "graph: attention: both outputs must be used");
    lp_graph_clear(&g);

    x = lp_example_tokens(&g, "a", 2);
    lp_node node = {.op = lp_op_table[LP_OP_COLUMN_SUM], .inputs = {x}}, *nodes[] = {&node};
    y = lp_op_output(&g, &node, 0, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 2);
    seed = typed(&g, LP_TYPE_REAL, LP_ROWS_FIXED, 1, 2);
    lp_node **own = g.nodes;
    g.nodes = nodes;
    g.node_count = 1;
    assert_int_equal(lp_graph_gradients(&g, 1, &y, &seed, &error), LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, "graph: 'column_sum' has no gradient");
    g.nodes = own;
    lp_graph_clear(&g);
}

/* A copy is eliminated unless it or its source is added to before the last read of the copy. */
static void test_copies(void **state)
{
    (void)state;
    lapse_error error;
    for (int twice = 0; twice < 2; twice++) {
        lp_graph g = {0};
        lp_value *x = lp_relu(&g, lp_example_tokens(&g, "a", 2)), *y = lp_affine(&g, x, 2, 0), *again = lp_relu(&g, y);
        lp_value *z = lp_add(&g, x, y), *seed = tokens(&g, 2);
        if (twice) /* the gradient of y accumulates, too */
            z = lp_add(&g, z, again);
        int forward = g.node_count;
        assert_int_equal(lp_graph_gradients(&g, 1, &z, &seed, &error), LAPSE_OK);
        int copies = 0;
        for (int i = forward; i < g.node_count; i++)
            copies += g.nodes[i]->op->id == LP_OP_ADD && !g.nodes[i]->inputs[1] && !g.nodes[i]->accumulate;
        assert_int_equal(copies, 1 + twice);
        lp_graph_clear(&g);
    }
}

/* x + a product of a product of x: the gradient of x begins as that of the sum, and the product's is added to it, in place unless the
 * gradient of the weight is summed from it. */
static void test_summed_gradients(void **state)
{
    (void)state;
    lapse_error error;
    for (int trained = 0; trained < 2; trained++) {
        lp_graph g = {0};
        lp_value *x = lp_relu(&g, lp_example_tokens(&g, "a", 2)), *first = lp_example_fixed(&g, "first", 2, 2);
        lp_value *second = trained ? lp_example_fixed(&g, "second", 2, 2)
                                   : lp_graph_input(&g, "second", LP_TYPE_REAL, LP_ROWS_FIXED, 2, 2);
        lp_value *inner = lp_linear(&g, x, first, NULL, NULL, 1, true);
        lp_value *sum = lp_linear(&g, inner, second, NULL, x, 1, true), *y = lp_relu(&g, sum), *seed = tokens(&g, 2);
        assert_int_equal(lp_graph_gradients(&g, 1, &y, &seed, &error), LAPSE_OK);
        const lp_node *last = NULL;
        for (int i = 0; i < g.node_count; i++)
            if (g.nodes[i]->op->id == LP_OP_LINEAR && g.nodes[i]->inputs[0] == inner->gradient)
                last = g.nodes[i];
        assert_non_null(last);
        assert_int_equal(last->accumulate, !trained);
        assert_ptr_equal(last->inputs[3], trained ? sum->gradient : NULL);
        assert_ptr_equal(last->outputs[0], x->gradient);
        assert_int_equal(x->gradient == sum->gradient, !trained);
        lp_graph_clear(&g);
    }
}

/* -------------------------------------------------------------------------------------------------- dump ------ */

static void test_dump(void **state)
{
    (void)state;
    lp_graph g = {0};
    lapse_error error;
    lp_value *ids = lp_graph_input(&g, "event", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *z = lp_embed(&g, lp_graph_parameter(&g, "event.weight", 5, 3, LP_INIT_NORMAL, 1), ids);
    lp_value *y = lp_linear(&g, z, lp_graph_parameter(&g, "out.weight", 3, 3, LP_INIT_NORMAL, 1), NULL, z, 1, true);
    lp_value *seed = tokens(&g, 3);
    assert_int_equal(lp_graph_gradients(&g, 1, &y, &seed, &error), LAPSE_OK);
    lp_buffer out = {0};
    assert_true(lp_graph_dump(&g, &out));
    assert_true(lp_buffer_add(&out, "", 1));
    assert_string_equal(
        out.data,
        "  0 embed %1:event.weight parameter[5 x 3] %0:event input[T x 1 int32] -> %2:embed work[T x 3]\n"
        "  1 linear %2:embed work[T x 3] %3:out.weight parameter[3 x 3] - %2:embed work[T x 3] -> %4:linear work[T x "
        "3]\n"
        "  2 linear_outer %5:x input[T x 3] %2:embed work[T x 3] -> %6:out.weight gradient[3 x 3] -\n"
        "  3 linear %5:x input[T x 3] %3:out.weight parameter[3 x 3] - - -> %7:embed work[T x 3]\n"
        "  4 add %5:x input[T x 3] - -> %7:embed work[T x 3] (added)\n"
        "  5 embed_gradient %7:embed work[T x 3] %0:event input[T x 1 int32] -> %8:event.weight gradient[5 x "
        "3]\n");
    lp_buffer_clear(&out);
    lp_graph_clear(&g);
}

/* ------------------------------------------------------------------------------------------------ planner ----- */

typedef struct span {
    int first, last;
} span;

static void live(span *spans, const lp_value *value, int node)
{
    if (!value)
        return;
    if (spans[value->id].first < 0)
        spans[value->id].first = node;
    spans[value->id].last = node;
}

static size_t size_of(const lp_value *value, const lp_plan *plan)
{
    return (size_t)lp_value_rows(value, &plan->largest) * (size_t)value->cols *
           lp_type_size(value->type, plan->real_size);
}

/* Live values must not overlap, nor exceed the buffer. */
static void check_plan(const lp_plan *plan, int reuse_delay)
{
    enum { MOST = 256 };
    const lp_graph *graph = plan->graph;
    span spans[MOST];
    assert_true(graph->value_count <= MOST);
    for (int i = 0; i < graph->value_count; i++)
        spans[i] = (span){-1, -1};
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < LP_NODE_INPUTS + LP_NODE_OUTPUTS; k++)
            live(spans, k < LP_NODE_INPUTS ? graph->nodes[i]->inputs[k] : graph->nodes[i]->outputs[k - LP_NODE_INPUTS],
                 i);
    for (int i = 0; i < graph->value_count; i++) {
        const lp_value *a = graph->values[i];
        if (a->storage != LP_STORAGE_WORK || spans[i].first < 0)
            continue;
        assert_int_equal(a->offset % LP_ALIGN, 0);
        assert_true(a->offset + size_of(a, plan) <= plan->work_size);
        for (int k = 0; k < i; k++) {
            const lp_value *b = graph->values[k];
            if (b->storage != LP_STORAGE_WORK || spans[k].first < 0)
                continue;
            bool together = (a->retained || spans[i].last + reuse_delay >= spans[k].first) &&
                            (b->retained || spans[k].last + reuse_delay >= spans[i].first);
            bool apart = a->offset + size_of(a, plan) <= b->offset || b->offset + size_of(b, plan) <= a->offset;
            if (together && !apart)
                fail_msg("values %d and %d overlap in memory and in time", k, i);
        }
    }
}

/* Adds seeds and gradients to a sample; false on error. */
static bool differentiate(lp_graph *graph, lp_node *node, lapse_error *error)
{
    lp_value *outputs[LP_NODE_OUTPUTS], *seeds[LP_NODE_OUTPUTS];
    int count = 0;
    for (int i = 0; node && i < node->op->output_count; i++)
        if (node->outputs[i] && i != 1) {
            const lp_value *y = node->outputs[i];
            seeds[count] = lp_graph_input(graph, "seed", y->type, y->rows_of, y->rows, y->cols);
            outputs[count++] = node->outputs[i];
        }
    return lp_graph_gradients(graph, count, outputs, seeds, error) == LAPSE_OK;
}

static void test_plan(void **state)
{
    (void)state;
    static const lp_extent extents[] = {{{0}, 0, 0}, {{0, 1, 1, 1}, 1, 1}, {{0, 100, 60, 30}, 700, 40}};
    for (int sample = 0; sample < graph_sample_count; sample++) {
        lp_graph graph = {0};
        lp_plan plan;
        lapse_error error;
        assert_true(differentiate(&graph, graph_samples[sample].build(&graph, 5, 2, 3), &error));
        for (int size = 0; size < 3; size++)
            for (int kept = 0; kept < 2; kept++) {
                graph.values[graph.value_count / 2]->retained |= kept;
                assert_int_equal(lp_plan_make(&plan, &graph, &extents[size], size == 1 ? 8 : 4, &error), LAPSE_OK);
                check_plan(&plan, 0);
                assert_int_equal(
                    lp_plan_make_at(&plan, &graph, &extents[size], size == 1 ? 8 : 4, NULL, 1 + sample % 4, &error),
                    LAPSE_OK);
                check_plan(&plan, 1 + sample % 4);
            }
        lp_graph_clear(&graph);
    }
}

/* A linear graph needs two buffers, one more per level of reuse delay, and one per retained value. */
static void test_plan_shares(void **state)
{
    (void)state;
    lp_graph graph = {0};
    lp_plan plan;
    lapse_error error;
    lp_value *x = tokens(&graph, 16);
    for (int i = 0; i < 9; i++)
        x = lp_relu(&graph, x);
    assert_int_equal(lp_plan_make(&plan, &graph, &(lp_extent){{0, 10, 10, 10}, 10, 10}, 4, &error), LAPSE_OK);
    assert_int_equal(plan.work_size, 2 * 10 * 16 * 4);
    assert_int_equal(lp_plan_make_at(&plan, &graph, &(lp_extent){{0, 10, 10, 10}, 10, 10}, 4, NULL, 3, &error),
                     LAPSE_OK);
    assert_int_equal(plan.work_size, 5 * 10 * 16 * 4);
    graph.values[4]->retained = true;
    assert_int_equal(lp_plan_make(&plan, &graph, &(lp_extent){{0, 10, 10, 10}, 10, 10}, 4, &error), LAPSE_OK);
    assert_int_equal(plan.work_size, 3 * 10 * 16 * 4);
    lp_graph_clear(&graph);
}

/* Values of one schedule level are live at the same time, whatever the order of the nodes; reuse follows the levels. */
static void test_plan_levels(void **state)
{
    (void)state;
    enum { LINKS = 6 };
    lp_graph graph = {0};
    lp_plan plan;
    lapse_error error;
    lp_extent extent = {{0, 10, 10, 10}, 10, 10};
    const size_t size = 10 * 16 * 4;
    lp_schedule_level together[LINKS] = {{0, 0}}, pairs[LINKS], pieces[LINKS];
    lp_value *x = tokens(&graph, 16);
    for (int i = 0; i < LINKS; i++) {
        x = lp_relu(&graph, x);
        pairs[i] = (lp_schedule_level){i / 2, i / 2};
        pieces[i] = (lp_schedule_level){i, i == 0 ? LINKS - 1 : i};
    }
    assert_int_equal(lp_plan_make_at(&plan, &graph, &extent, 4, together, 0, &error), LAPSE_OK);
    assert_true(plan.scheduled);
    assert_int_equal(plan.work_size, LINKS * size);
    assert_int_equal(lp_plan_make_at(&plan, &graph, &extent, 4, pairs, 0, &error), LAPSE_OK);
    assert_int_equal(plan.work_size, 3 * size); /* two of a level, and the last of the level before */
    /* The first node spans two levels: its input and output stay live. */
    assert_int_equal(lp_plan_make_at(&plan, &graph, &extent, 4, pieces, 0, &error), LAPSE_OK);
    assert_int_equal(plan.work_size, 3 * size);
    assert_int_equal(lp_plan_make(&plan, &graph, &extent, 4, &error), LAPSE_OK);
    assert_false(plan.scheduled);
    assert_int_equal(plan.work_size, 2 * size);
    lp_graph_clear(&graph);
}

/* An optional value has bytes if it is small and there is no schedule. */
static void test_plan_optional(void **state)
{
    (void)state;
    lp_graph graph = {0};
    lp_plan plan;
    lapse_error error;
    lp_extent small = {{0, 10, 10, 10}, 10, 10}, large = {{0, LP_OPTIONAL_BYTES / 64 + 1, 10, 10}, 10, 10};
    lp_value *x = lp_relu(&graph, tokens(&graph, 16)), *y = lp_relu(&graph, x);
    x->optional = true;
    assert_int_equal(lp_plan_make(&plan, &graph, &small, 4, &error), LAPSE_OK);
    assert_true(x->offset != LP_LEFT_OUT && x->offset != y->offset);
    assert_int_equal(lp_plan_make(&plan, &graph, &large, 4, &error), LAPSE_OK);
    assert_true(x->offset == LP_LEFT_OUT && y->offset == 0);
    assert_int_equal(lp_plan_make_at(&plan, &graph, &small, 4, (lp_schedule_level[]){{0, 0}, {1, 1}}, 0, &error),
                     LAPSE_OK);
    assert_true(x->offset == LP_LEFT_OUT);
    assert_int_equal(plan.work_size, 10 * 16 * 4);
    lp_graph_clear(&graph);
}

static void test_plan_empty(void **state)
{
    (void)state;
    lp_graph graph = {0};
    lp_plan plan;
    lapse_error error;
    assert_int_equal(lp_plan_make(&plan, &graph, &(lp_extent){{0, 10, 10, 10}, 10, 10}, 4, &error), LAPSE_OK);
    assert_int_equal(plan.work_size, 0);
    assert_int_equal(plan.scratch_size, 0);
    lp_graph_fail(&graph, "wrong on purpose");
    assert_int_equal(lp_plan_make(&plan, &graph, &(lp_extent){{0, 10, 10, 10}, 10, 10}, 4, &error),
                     LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, "graph: wrong on purpose");
    lp_graph_clear(&graph);
}

/* ----------------------------------------------------------------------------------------- out of memory ------ */

/* Builds, differentiates, plans and dumps. */
static lapse_status everything(const graph_sample *sample, lapse_error *error)
{
    lp_graph graph = {0};
    lp_plan plan;
    lp_buffer out = {0};
    lapse_status status = LAPSE_OK;
    const double values[] = {1, 2, 3};
    lp_graph_parameter_values(&graph, "values", 1, 3, values);
    if (!differentiate(&graph, sample->build(&graph, 5, 2, 3), error) ||
        lp_plan_make(&plan, &graph, &(lp_extent){{0, 10, 10, 10}, 30, 5}, 4, error) != LAPSE_OK)
        status = error->status;
    else if (!lp_graph_dump(&graph, &out))
        status = LAPSE_ERROR_MEMORY;
    lp_buffer_clear(&out);
    lp_graph_clear(&graph);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    for (int sample = 0; sample < graph_sample_count; sample++) {
        lapse_error error = {0};
        int64_t before = lp_memory_count();
        assert_int_equal(everything(&graph_samples[sample], &error), LAPSE_OK);
        int64_t count = lp_memory_count() - before;
        assert_true(count > 5);
        for (int64_t n = 1; n <= count; n++) {
            error = (lapse_error){0};
            lp_memory_fail_at(n);
            assert_int_equal(everything(&graph_samples[sample], &error), LAPSE_ERROR_MEMORY);
            lp_memory_fail_at(0);
            if (error.status != LAPSE_OK)
                assert_memory_equal(error.message, "out of memory: ", 15);
        }
        assert_int_equal(everything(&graph_samples[sample], &error), LAPSE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes_of_rows),
        cmocka_unit_test(test_mistakes_of_products),
        cmocka_unit_test(test_mistakes_of_time),
        cmocka_unit_test(test_mistakes_of_gradients),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_summed_gradients),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_shares),
        cmocka_unit_test(test_plan_levels),
        cmocka_unit_test(test_plan_optional),
        cmocka_unit_test(test_plan_empty),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
