/* cuda_attention_order.cu: the list of cuda_attention_order.h, made on the host: some 10 us for 240 tiles, beside the device's work. */
#include "backend/cuda/cuda_attention_order.h"

namespace
{

/* Costs are counted in units of so many tokens on the other side, with some for beginning and end; a unit takes longer as keys. */
enum { UNIT = 16, BEGINNING = 3, BY_KEYS = 4, BY_QUERIES = 3, COSTS = 1024 };

/* Multiprocessors of an H200. On another device the list is as right, and not as good. */
enum { PROCESSORS = 132 };

int limit(int cost)
{
    return cost < COSTS ? cost : COSTS - 1;
}

/* How many of each cost there are, then where they begin: the largest first. */
void begin_of(int *count)
{
    int begin = 0;
    for (int cost = COSTS - 1; cost >= 0; cost--) {
        int here = count[cost];
        count[cost] = begin;
        begin += here;
    }
}

/* Calls act(tile, cost as queries, cost as keys) for all tiles that hold tokens. */
template <typename action> void each_tile(const int32_t *segment, int segments, const action &act)
{
    int tokens = segment[segments], at_first = 0, at_last = 0;
    for (int tile = 0; tile * ATTENTION_ROWS < tokens; tile++) {
        int first = tile * ATTENTION_ROWS,
            last = (first + ATTENTION_ROWS < tokens ? first + ATTENTION_ROWS : tokens) - 1;
        while (at_first + 1 < segments && segment[at_first + 1] <= first)
            at_first++;
        while (at_last + 1 < segments && segment[at_last + 1] <= last)
            at_last++;
        int keys = last + 1 - segment[at_first], queries = segment[at_last + 1] - first;
        act(tile, limit((BEGINNING + (keys + UNIT - 1) / UNIT) * BY_QUERIES),
            limit((BEGINNING + (queries + UNIT - 1) / UNIT) * BY_KEYS));
    }
}

/* [from, to) the other way round. */
void turn(int32_t *order, int from, int to)
{
    for (to--; from < to; from++, to--) {
        int32_t other = order[from];
        order[from] = order[to];
        order[to] = other;
    }
}

} // namespace

void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t most_tokens, int32_t *order)
{
    int all = (int)lp_blocks(most_tokens, ATTENTION_ROWS), used = (int)lp_blocks(segment[segments], ATTENTION_ROWS);
    int ahead[COSTS] = {}, back[COSTS] = {};
    each_tile(segment, segments, [&](int, int as_queries, int as_keys) {
        ahead[as_queries]++;
        back[as_queries]++;
        back[as_keys]++;
    });
    begin_of(ahead);
    begin_of(back);
    each_tile(segment, segments, [&](int tile, int as_queries, int as_keys) {
        order[ahead[as_queries]++] = tile;
        order[all + back[as_keys]++] = 2 * tile;
        order[all + back[as_queries]++] = 2 * tile + 1;
    });
    for (int tile = used; tile < all; tile++) {
        order[tile] = tile;
        order[all + 2 * tile] = 2 * tile;
        order[all + 2 * tile + 1] = 2 * tile + 1;
    }
    /* Every multiprocessor gets one before it gets a second. */
    if (used > PROCESSORS && used <= 2 * PROCESSORS)
        turn(order, PROCESSORS, used);
}
