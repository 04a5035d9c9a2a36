/* test_op_costs.c: the operations, bytes, scratch memory and output sizes of every op, with those of its gradient, on its examples:
 * against tests/golden/op_costs.txt. `lapse bench` divides by them, and memory is planned with them. After a change of an op or its
 * example, LAPSE_TEST_RECORD=1 writes that file anew. */
#include "graph/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "support/golden_text.h"
#include "support/graph_case.h"

/* Different numbers, so that one in the place of another shows. */
static const lp_extent extent = {.rows = {[LP_ROWS_TOKENS] = 101,
                                          [LP_ROWS_TARGETS] = 67,
                                          [LP_ROWS_LABELS] = 61,
                                          [LP_ROWS_ITEMS] = 41,
                                          [LP_ROWS_PAST] = 37},
                                 .pairs = 1009,
                                 .longest = 31};

static void add_node(lp_buffer *text, const lp_node *node)
{
    const lp_op *op = node->op;
    lp_cost cost = op->cost ? op->cost(node, &extent) : (lp_cost){0};
    assert_true(cost.flop >= 0 && cost.bytes >= 0);
    assert_true(lp_buffer_print(text, "  %s: %.17g flop, %.17g bytes, %zu and %zu scratch;", op->name, cost.flop,
                                cost.bytes, op->scratch ? op->scratch(node, &extent, 4) : 0,
                                op->scratch ? op->scratch(node, &extent, 8) : 0));
    for (int i = 0; i < op->output_count; i++)
        if (node->outputs[i])
            assert_true(lp_buffer_print(text, " %dx%d", node->outputs[i]->rows, node->outputs[i]->cols));
    assert_true(lp_buffer_print(text, "\n"));
}

static void costs_are_as_recorded(void **state)
{
    (void)state;
    lp_buffer text = {0};
    for (int id = 0; id < LP_OP_COUNT; id++)
        for (int seed = 0; seed < 4 && lp_op_table[id]->example; seed++) {
            lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, (uint32_t)id);
            graph_case this = {0};
            graph_case_gradients(&this, lp_op_table[id]->example(&this.graph, &random)->producer);
            assert_int_equal(this.graph.error.status, LAPSE_OK);
            assert_true(lp_buffer_print(&text, "%s, example %d\n", lp_op_table[id]->name, seed));
            for (int n = 0; n < this.graph.node_count; n++)
                add_node(&text, this.graph.nodes[n]);
            graph_case_clear(&this);
        }
    golden_text_check("tests/golden/op_costs.txt", text.data, text.size);
    lp_buffer_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
