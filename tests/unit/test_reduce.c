/* test_reduce.c: the sum of gradients over shards is that of one binary tree over the shard index, to the bit. */
#include "backend/backend.h"
#include "backend/reduce.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 3, CAPACITY = 4, ITEMS = 9, SHARDS_MOST = 37, WIDTH = 700 };

/* The definition: a node's value is left + right, or that of the only child with a value. Returns whether there is one. */
static bool tree_value(const float *leaf, const bool *has, int first, int height, int shards, float *value)
{
    float right;
    if (first >= shards)
        return false;
    if (height == 0) {
        *value = leaf[first];
        return has[first];
    }
    bool left_has = tree_value(leaf, has, first, height - 1, shards, value);
    if (!tree_value(leaf, has, first + (1 << (height - 1)), height - 1, shards, &right))
        return left_has;
    *value = left_has ? *value + right : right;
    return true;
}

typedef struct reduce_case {
    lp_graph graph;
    lp_adam adam;
    lp_row_union rows;
    float *dense, *listed; /* copies of the gradients before they are added */
    size_t dense_size, row_size;
} reduce_case;

static float *copy_of(const float *values, size_t count)
{
    float *copy = malloc((count + 1) * sizeof *copy);
    memcpy(copy, values, count * sizeof *copy);
    return copy;
}

/* Every shard lists some of the items; the union lists them in the order of shards. */
static void list_rows(reduce_case *this, lp_random *random)
{
    int shards = this->adam.shards, entries = 0;
    bool lists[SHARDS_MOST][ITEMS] = {{false}};
    for (int s = 0; s < shards; s++)
        for (int k = 0; k < CAPACITY; k++)
            lists[s][lp_random_below(random, ITEMS)] = true;
    this->rows = (lp_row_union){.row = calloc(ITEMS, sizeof(int32_t)),
                                .first = calloc(ITEMS + 1, sizeof(int32_t)),
                                .item_index = calloc((size_t)shards * CAPACITY + 1, sizeof(int32_t))};
    for (int item = 0; item < ITEMS; item++) {
        int before = entries;
        for (int s = 0; s < shards; s++) {
            int index = 0;
            for (int other = 0; other < item; other++)
                index += lists[s][other];
            if (lists[s][item])
                this->rows.item_index[entries++] = s * CAPACITY + index;
        }
        if (entries > before)
            this->rows.row[this->rows.count++] = item;
        this->rows.first[this->rows.count] = entries;
    }
}

static void open_case(reduce_case *this, int shards, uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 905);
    *this = (reduce_case){.adam = {.shards = shards, .threads = 1, .item_capacity = CAPACITY}};
    lp_graph_table(&this->graph, "table", ITEMS, COLS, LP_INIT_ZEROS, 0);
    lp_graph_table(&this->graph, "bias", ITEMS, 1, LP_INIT_ZEROS, 0);
    lp_graph_parameter(&this->graph, "other", 13, WIDTH, LP_INIT_ZEROS, 0);
    assert_int_equal(lp_adam_init(&this->adam, lp_backend_find("cpu"), &this->graph, NULL), LAPSE_OK);
    this->dense_size = this->adam.size - this->adam.table_size;
    this->row_size = (size_t)CAPACITY * (size_t)this->adam.table_cols;
    for (size_t i = 0; i < (size_t)shards * this->dense_size; i++)
        this->adam.gradients[i] = (float)lp_random_normal(&random);
    for (size_t i = 0; i < (size_t)shards * this->row_size; i++)
        this->adam.row_gradients[i] = (float)lp_random_normal(&random);
    list_rows(this, &random);
    this->dense = copy_of(this->adam.gradients, (size_t)shards * this->dense_size);
    this->listed = copy_of(this->adam.row_gradients, (size_t)shards * this->row_size);
}

static void close_case(reduce_case *this)
{
    free(this->dense);
    free(this->listed);
    free(this->rows.row);
    free(this->rows.first);
    free(this->rows.item_index);
    lp_adam_clear(&this->adam);
    lp_graph_clear(&this->graph);
}

/* Element c of an entry's gradient of a table. */
static size_t entry_at(const reduce_case *this, const lp_table *table, int32_t index, int c)
{
    size_t shard = (size_t)(index / CAPACITY), row = (size_t)(index % CAPACITY);
    return (shard * (size_t)this->adam.table_cols + (size_t)table->before) * CAPACITY + row * (size_t)table->cols +
           (size_t)c;
}

static int tree_top(int shards)
{
    return lp_tree_height(0, (uint32_t)shards - 1);
}

static void check_dense(const reduce_case *this)
{
    int shards = this->adam.shards;
    bool all[SHARDS_MOST];
    float leaf[SHARDS_MOST], wanted;
    memset(all, true, sizeof all);
    for (size_t i = 0; i < this->dense_size; i++) {
        for (int s = 0; s < shards; s++)
            leaf[s] = this->dense[(size_t)s * this->dense_size + i];
        assert_true(tree_value(leaf, all, 0, tree_top(shards), shards, &wanted));
        assert_memory_equal(&this->adam.gradients[i], &wanted, sizeof wanted);
    }
    assert_memory_equal(this->adam.gradients + this->dense_size, this->dense + this->dense_size,
                        (size_t)(shards - 1) * this->dense_size * sizeof(float));
}

static void check_rows(const reduce_case *this)
{
    int shards = this->adam.shards;
    for (int t = 0; t < this->adam.table_count; t++)
        for (int row = 0; row < this->rows.count; row++)
            for (int c = 0; c < this->adam.tables[t].cols; c++) {
                const int32_t *index = this->rows.item_index + this->rows.first[row];
                bool has[SHARDS_MOST] = {false};
                float leaf[SHARDS_MOST] = {0}, wanted;
                for (int e = 0; e < this->rows.first[row + 1] - this->rows.first[row]; e++) {
                    has[index[e] / CAPACITY] = true;
                    leaf[index[e] / CAPACITY] = this->listed[entry_at(this, &this->adam.tables[t], index[e], c)];
                }
                assert_true(tree_value(leaf, has, 0, tree_top(shards), shards, &wanted));
                assert_memory_equal(&this->adam.row_gradients[entry_at(this, &this->adam.tables[t], index[0], c)],
                                    &wanted, sizeof wanted);
            }
}

static void gradients_are_added_along_the_tree(void **state)
{
    (void)state;
    static const int shards[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, SHARDS_MOST}, threads[] = {1, 2, 3, 4, 7};
    const lp_backend *cpu = lp_backend_find("cpu");
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
        for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
            reduce_case this;
            open_case(&this, shards[i], i);
            this.adam.threads = threads[k];
            cpu->reduce(cpu->context, &this.adam, &this.rows);
            check_dense(&this);
            check_rows(&this);
            close_case(&this);
        }
}

/* Sums of aligned runs of shards, computed apart and then added as if each were its first shard, are the sum of all shards: what ranks
 * rely on. */
static void parts_of_the_tree_can_be_added_apart(void **state)
{
    (void)state;
    enum { SHARDS = 14, PART = 4 };
    const lp_backend *cpu = lp_backend_find("cpu");
    reduce_case whole, part;
    open_case(&whole, SHARDS, 3);
    open_case(&part, SHARDS, 3);
    cpu->reduce(cpu->context, &whole.adam, NULL);
    float *base = part.adam.gradients;
    int parts = 0;
    for (int first = 0; first < SHARDS; first += PART, parts++) {
        part.adam.shards = SHARDS - first < PART ? SHARDS - first : PART;
        part.adam.gradients = base + (size_t)first * part.dense_size;
        cpu->reduce(cpu->context, &part.adam, NULL);
        memmove(base + (size_t)parts * part.dense_size, part.adam.gradients, part.dense_size * sizeof *base);
    }
    part.adam.gradients = base;
    part.adam.shards = parts; /* heights are those of the runs' first shards less that of a run */
    cpu->reduce(cpu->context, &part.adam, NULL);
    assert_memory_equal(part.adam.gradients, whole.adam.gradients, whole.dense_size * sizeof *base);
    close_case(&whole);
    close_case(&part);
}

static void losses_are_added_along_the_tree(void **state)
{
    (void)state;
    static const float losses[] = {9, 1e8F, 1, -1e8F, 0.25F, 3, 1e-3F};
    const double wanted = ((1e8 + 1) + ((double)-1e8F + 0.25)) + (3 + (double)1e-3F);
    assert_true(lp_tree_sum(losses, 1, 6) == wanted);
    assert_true(lp_tree_sum(losses, 0, 1) == 9);
    assert_true(lp_tree_sum(losses, 0, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_added_along_the_tree),
                                       cmocka_unit_test(parts_of_the_tree_can_be_added_apart),
                                       cmocka_unit_test(losses_are_added_along_the_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
