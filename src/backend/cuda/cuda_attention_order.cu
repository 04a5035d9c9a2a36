/* cuda_attention_order.cu: the list of cuda_attention_order.h, made on the host: some microseconds for 240 tiles. */
#include "backend/cuda/cuda_attention_order.h"

namespace
{

/* Costs are counted in units of so many tokens on the other side, with some for beginning and end; a unit takes longer as keys. */
enum { UNIT = 16, BEGINNING = 3, BY_KEYS = 4, BY_QUERIES = 3, COSTS = 1024 };

int cost_of(int others, int unit)
{
    int cost = (BEGINNING + (others + UNIT - 1) / UNIT) * unit;
    return cost < COSTS ? cost : COSTS - 1;
}

/* Calls act(tile, cost as keys, cost as queries) for all tiles that hold tokens. */
template <typename action> void each_tile(const int32_t *segment, int segments, const action &act)
{
    int tokens = segment[segments], at_first = 0, at_last = 0;
    for (int tile = 0, first = 0; first < tokens; tile++, first += ATTENTION_ROWS) {
        int end = first + ATTENTION_ROWS < tokens ? first + ATTENTION_ROWS : tokens;
        while (segment[at_first + 1] <= first)
            at_first++;
        while (segment[at_last + 1] < end)
            at_last++;
        act(tile, cost_of(segment[at_last + 1] - first, BY_KEYS), cost_of(end - segment[at_first], BY_QUERIES));
    }
}

} // namespace

void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t most_tokens, int32_t *order)
{
    int all = (int)lp_cuda_attention_order_count(most_tokens), used = 0;
    int place[COSTS] = {};
    each_tile(segment, segments, [&](int, int as_keys, int as_queries) {
        place[as_keys]++;
        place[as_queries]++;
    });
    for (int cost = COSTS - 1; cost >= 0; cost--) {
        int here = place[cost];
        place[cost] = used;
        used += here;
    }
    each_tile(segment, segments, [&](int tile, int as_keys, int as_queries) {
        order[place[as_keys]++] = 2 * tile;
        order[place[as_queries]++] = 2 * tile + 1;
    });
    for (int i = used; i < all; i++)
        order[i] = i; /* beyond the last token */
}
