/* cuda_attention_order.cu: the order of attention's tiles by cost, and the bounds of segments, on the host
 * (cuda_attention_order.h). */
#include "backend/cuda/cuda_attention_order.h"

#include <algorithm>

namespace
{

/* A tile costs a fixed amount and one unit for every 16 rows of the other side; a unit of a key tile takes longer than
 * one of a query tile. TILE_BITS: of an entry, below its cost. */
enum { UNIT = 16, FIXED_COST = 3, KEY_TILE_COST = 4, QUERY_TILE_COST = 3, MAX_COST = 1023, TILE_BITS = 21 };

} // namespace

void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *order)
{
    int tokens = segment[segments], tiles = (int)lp_cuda_attention_order_tiles(max_tokens);
    int32_t *start = order + tiles, *end = start + max_tokens;
    for (int s = 0; s < segments; s++) {
        std::fill(start + segment[s], start + segment[s + 1], segment[s]);
        std::fill(end + segment[s], end + segment[s + 1], segment[s + 1]);
    }
    for (int i = 0; i < tiles; i++) {
        int first = i / 2 * ATTENTION_ROWS, last = std::min(first + ATTENTION_ROWS, tokens) - 1, cost = 0;
        if (first < tokens) {
            int rows = i % 2 ? last + 1 - start[first] : end[last] - first;
            cost = (FIXED_COST + (rows + UNIT - 1) / UNIT) * (i % 2 ? QUERY_TILE_COST : KEY_TILE_COST);
        }
        order[i] = (MAX_COST - std::min<int>(cost, MAX_COST)) << TILE_BITS | i;
    }
    std::sort(order, order + tiles);
    for (int i = 0; i < tiles; i++)
        order[i] &= (1 << TILE_BITS) - 1;
}
