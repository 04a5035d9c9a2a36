/* cuda_outer.cu: outer products over rows as products whose depth, the rows, is divided into chunks: gradients of weights that are no part
 * of a group of reductions, which adds the chunks (cuda_reduction.cu). Copies in bf16 are multiplied by warpgroups (wgmma,
 * cuda_product_wide.h), all products of the group in few launches; each product of floats is a launch of cuda_product.h. */
#include "backend/cuda/cuda_product_wide.h"
#include "backend/cuda/cuda_reduction_task.h"

bool lp_cuda_outer_wide(const lp_node *node)
{
    int heads = node->attributes.heads, a = node->inputs[0]->cols / heads, b = node->inputs[1]->cols / heads;
    int least = heads > 1 ? 32 : 65; /* of one head, fused kernels take fewer columns */
    bool q_summed =
        node->attributes.transpose && node->outputs[1]; /* of weights that are not transposed, with a bias: rare */
    return a >= least && b >= least && !q_summed;
}

namespace
{

/* ---- by warpgroups ------------------------------------------------------------------------------------------- */

enum { OUTER_THREADS = 256, OUTER_ROWS = 2 * WIDE_BLOCK };
enum { OUTER_ONES = 256 };                   /* floats of shared memory before the slabs; the first numbers are ones */
enum { OUTER_SLAB = wide_size(WIDE_BLOCK) }; /* floats of a block of 64 rows by 64 columns */

/* Blocks of a launch; and slabs of a chunk, at least. A block has partial sums to write and to be read again, and keeps a
 * multiprocessor from the launches of the critical path. */
enum { OUTER_BLOCKS = LP_SIZE(66, 4), OUTER_SLABS = LP_SIZE(4, 1) };

/* C [heads * a x b] = p^T q, by head. A tile has 128 rows of C in one head, or all rows of two heads where they have up to 64: 64 for
 * each of the two warpgroups. */
__host__ __device__ inline bool is_by_head(const reduction_task &task)
{
    return task.heads > 1 && task.a <= WIDE_BLOCK;
}

/* Tiles of rows of C in a head, and of all heads. */
__host__ __device__ inline int tiles_down(const reduction_task &task)
{
    return (task.a + OUTER_ROWS - 1) / OUTER_ROWS;
}

__host__ __device__ inline int row_tiles(const reduction_task &task)
{
    return is_by_head(task) ? (task.heads + 1) / 2 : task.heads * tiles_down(task);
}

/* What a warpgroup computes: rows of C in a head, and their number. */
typedef struct outer_part {
    int head, row, rows;
} outer_part;

__device__ inline outer_part part_of(const reduction_task &task, int tile, int warpgroup)
{
    outer_part part = {2 * tile + warpgroup, 0, 0};
    if (!is_by_head(task))
        part = {tile / tiles_down(task), tile % tiles_down(task) * OUTER_ROWS + warpgroup * WIDE_BLOCK, 0};
    part.rows = part.head < task.heads ? task.a - part.row : 0;
    return part;
}

/* Floats of a slab: blocks of p for both warpgroups, then of q. */
template <int cols> __host__ __device__ constexpr int outer_slab(bool by_head)
{
    return (2 + (by_head ? 2 : 1) * (cols / WIDE_BLOCK)) * OUTER_SLAB;
}

template <int cols> constexpr int outer_stages = cols == 192 ? 3 : 4;

/* Column sums of p are products with ones. */
template <int cols>
__global__ void __launch_bounds__(OUTER_THREADS, 1) outer_kernel(const __grid_constant__ reduction_group group)
{
    constexpr int blocks = cols / WIDE_BLOCK;
    LP_SHARED(float, shared);
    float *memory = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4, *ring = memory + OUTER_ONES;
    uint16_t *ones = (uint16_t *)memory;
    int index = reduction_index(group.first), warpgroup = (int)threadIdx.x / 128;
    const reduction_task &task = group.task[index];
    int number = (int)blockIdx.x - group.first[index], across = (task.b + cols - 1) / cols;
    int tiles = row_tiles(task) * across, chunk = number / tiles;
    int tile = number % tiles / across, col = number % across * cols, begin, end;
    bool by_head = is_by_head(task);
    int present = task.b - col, size = outer_slab<cols>(by_head);
    const uint16_t *p = (const uint16_t *)task.p, *q = (const uint16_t *)task.q;
    int p_head = task.p_stride / task.heads, q_head = task.q_stride / task.heads;
    outer_part parts[2] = {part_of(task, tile, 0), part_of(task, tile, 1)};
    ones[threadIdx.x] = 0x3F80;
    lp_pdl_wait();
    product_chunk<WIDE_BLOCK>(lp_rows_now(task.rows, group.shard), task.chunks, chunk, &begin, &end);

    int next_k = begin;
    auto copy_next = [&](int stage) {
        float *to = ring + stage * size;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            if (next_k >= end || parts[w].rows <= 0)
                continue;
            wide_copy_rows<false, WIDE_BLOCK, OUTER_THREADS>(
                to + w * OUTER_SLAB, p + parts[w].head * p_head + parts[w].row + (int64_t)next_k * task.p_stride,
                task.p_stride, parts[w].rows, end - next_k);
            if (w == 0 || by_head)
                wide_copy_rows<false, cols, OUTER_THREADS>(to + (2 + w * blocks) * OUTER_SLAB,
                                                           q + parts[w].head * q_head + col +
                                                               (int64_t)next_k * task.q_stride,
                                                           task.q_stride, present, end - next_k);
        }
        next_k += WIDE_BLOCK;
    };
    product_sums<product_shape<OUTER_ROWS, cols, 16, cols>> sums = {};
    float column[4] = {};
    wide_slabs<outer_stages<cols>, 0>((end - begin + WIDE_BLOCK - 1) / WIDE_BLOCK, copy_next, [&](int stage) {
        const float *left = ring + stage * size + warpgroup * OUTER_SLAB;
        const float *right = ring + stage * size + (2 + (by_head ? warpgroup * blocks : 0)) * OUTER_SLAB;
        wide_multiply<false, false>((float(&)[cols / 2]) sums, left, right);
        wide_weigh<false>(column, left, ones);
    });
    lp_pdl_trigger();

    outer_part part = warpgroup ? parts[1] : parts[0];
    if (part.rows <= 0)
        return;
    product_store store = {};
    store.to = (float *)task.out[0];
    store.stride = task.b;
    store.head = (int64_t)task.a * task.b;
    store.chunk_step = task.step[0];
    store.run({part.row - warpgroup * WIDE_BLOCK, col, part.head, chunk, task.a, task.b}, sums);
    tile_lane me = tile_lane_now();
    float *to = (float *)task.out[1] + (int64_t)chunk * task.step[1] + part.head * task.a + part.row;
    int row = me.warp % 4 * 16 + me.group;
#pragma unroll
    for (int i = 0; i < 2; i++, row += 8)
        if (task.out[1] && me.member == 0 && col == 0 && row < part.rows)
            to[row] = column[2 * i];
}

int outer_tiles(const reduction_task &task)
{
    return row_tiles(task) * (int)lp_blocks(task.b, task.tile);
}

/* What a block of the task reads of a row. */
int outer_cost(const reduction_task &task)
{
    int cols = task.b < task.tile ? task.b : task.tile;
    return is_by_head(task) ? 2 * (WIDE_BLOCK + cols) : OUTER_ROWS + cols;
}

/* The tasks whose tiles have this many columns. */
template <int cols> void launch_wide(const lp_cuda_run *run, const reduction_task *tasks, int count)
{
    reduction_group group = {};
    int found = 0, blocks = 0;
    size_t size = 0;
    group.shard = run->shard;
    for (int i = 0; i < count; i++)
        if (tasks[i].launch == REDUCTION_WIDE_PRODUCT && tasks[i].tile == cols) {
            size_t slab = (size_t)outer_slab<cols>(is_by_head(tasks[i]));
            size = slab > size ? slab : size;
            group.first[found] = blocks;
            group.task[found++] = tasks[i];
            blocks += tasks[i].chunks * outer_tiles(tasks[i]);
        }
    for (int i = found; i < LP_CUDA_REDUCTION_MAX; i++)
        group.first[i] = INT32_MAX;
    LP_LAUNCH_PDL(run, outer_kernel<cols>, (unsigned)blocks, OUTER_THREADS,
                  1024 + sizeof(float) * (OUTER_ONES + outer_stages<cols> * size), group);
}

/* ---- of floats ----------------------------------------------------------------------------------------------- */

void launch_product(const lp_cuda_run *run, const reduction_task &given)
{
    int a = given.a, b = given.b;
    product_task task = {run->shard,
                         product_fixed(a),
                         product_fixed(b),
                         given.rows,
                         given.chunks,
                         {given.p, given.p_stride, a},
                         {given.q, given.q_stride, b}};
    product_store store = {};
    store.to = (float *)given.out[0];
    store.stride = b;
    store.head = (int64_t)a * b;
    store.chunk_step = given.step[0];
    product_launch<false, false>(run, task, store, given.heads, a, b);
}

} // namespace

/* The tasks of a launch by warpgroups have the same tile. Each gets blocks in proportion to what it reads. Tiles of floats fill the device
 * where a chunk has at least 256 rows. */
void lp_cuda_outer_divide(reduction_task *tasks, int count)
{
    int most[2] = {}, cost[2] = {}; /* of tiles within a head, and of two heads */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++)
            if (tasks[i].launch == REDUCTION_WIDE_PRODUCT) {
                int launch = is_by_head(tasks[i]), cols = tile_width(tasks[i].b, launch ? 192 : 256, WIDE_BLOCK);
                most[launch] = cols > most[launch] ? cols : most[launch];
                tasks[i].tile = most[launch];
                cost[launch] += pass ? outer_tiles(tasks[i]) * outer_cost(tasks[i]) : 0;
            }
    for (int i = 0; i < count; i++) {
        reduction_task *task = &tasks[i];
        if (task->launch == REDUCTION_GROUP)
            continue;
        bool wide = task->launch == REDUCTION_WIDE_PRODUCT;
        int tiles =
            task->heads * (int)(lp_blocks(task->a, product_tile::rows) * lp_blocks(task->b, product_tile::cols));
        int chunks =
            wide ? OUTER_BLOCKS * outer_cost(*task) / cost[is_by_head(*task)] : (int)lp_blocks(PACKED_BLOCKS, tiles);
        int longest = (int)lp_blocks(task->largest, wide ? OUTER_SLABS * WIDE_BLOCK : 256);
        chunks = chunks > longest ? longest : chunks;
        task->chunks = chunks < 1 ? 1 : chunks;
    }
}

void lp_cuda_outer_launch(const lp_cuda_run *run, const reduction_task *tasks, int count)
{
    for (int i = 0; i < count; i++)
        if (tasks[i].launch == REDUCTION_PRODUCT)
            launch_product(run, tasks[i]);
    launch_wide<64>(run, tasks, count);
    launch_wide<128>(run, tasks, count);
    launch_wide<192>(run, tasks, count);
    launch_wide<256>(run, tasks, count);
}
