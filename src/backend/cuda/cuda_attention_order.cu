/* cuda_attention_order.cu: counting sort of attention's gradient tiles by cost, on the host (cuda_attention_order.h).
 * It takes microseconds for 240 tiles. */
#include "backend/cuda/cuda_attention_order.h"

namespace
{

/* A tile costs a fixed amount and one unit for every 16 rows of the other side; a unit of a key tile takes longer than
 * one of a query tile. */
enum { UNIT = 16, FIXED_COST = 3, KEY_TILE_COST = 4, QUERY_TILE_COST = 3, COSTS = 1024 };

int cost_of(int rows, int unit)
{
    int cost = (FIXED_COST + (rows + UNIT - 1) / UNIT) * unit;
    return cost < COSTS ? cost : COSTS - 1;
}

/* Calls act(tile, cost as keys, cost as queries) for all tiles that contain tokens. */
template <typename action> void each_tile(const int32_t *segment, int segments, const action &act)
{
    int tokens = segment[segments], at_first = 0, at_last = 0;
    for (int tile = 0, first = 0; first < tokens; tile++, first += ATTENTION_ROWS) {
        int end = first + ATTENTION_ROWS < tokens ? first + ATTENTION_ROWS : tokens;
        while (segment[at_first + 1] <= first)
            at_first++;
        while (segment[at_last + 1] < end)
            at_last++;
        act(tile, cost_of(segment[at_last + 1] - first, KEY_TILE_COST),
            cost_of(end - segment[at_first], QUERY_TILE_COST));
    }
}

} // namespace

void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *order)
{
    int all = (int)lp_cuda_attention_order_count(max_tokens), used = 0;
    int next[COSTS] = {};
    each_tile(segment, segments, [&](int, int as_keys, int as_queries) {
        next[as_keys]++;
        next[as_queries]++;
    });
    for (int cost = COSTS - 1; cost >= 0; cost--) {
        int here = next[cost];
        next[cost] = used;
        used += here;
    }
    each_tile(segment, segments, [&](int tile, int as_keys, int as_queries) {
        order[next[as_keys]++] = 2 * tile;
        order[next[as_queries]++] = 2 * tile + 1;
    });
    for (int i = used; i < all; i++)
        order[i] = i; /* beyond the last token */
}
