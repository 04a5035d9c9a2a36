/* cuda_outer.cu: outer products over rows that are wide enough for whole tiles: gradients of weights as products whose depth, the
 * rows, is divided into chunks. The group of reductions adds them (cuda_reduction.cu). Copies in bf16 are multiplied by warpgroups
 * (wgmma, cuda_product_wide.h), all products of the group in one launch; each product of floats is a launch of cuda_product.h. */
#include "backend/cuda/cuda_product_wide.h"
#include "backend/cuda/cuda_reduction_task.h"

enum { LEAST = 64, LEAST_AREA = 96 * 128, LEAST_COPY = 32 };

bool lp_cuda_outer_wide(const lp_node *node, bool copies)
{
    if (lp_cuda_rule_of(node)->reduction.type != LP_REDUCTION_OUTER)
        return false;
    int a = node->inputs[0]->cols / node->attributes.heads, b = node->inputs[1]->cols / node->attributes.heads;
    int least = node->attributes.heads > 1 ? LEAST_COPY : LEAST + 1; /* of one head, fused kernels take fewer columns */
    return copies ? a >= least && b >= least : a >= LEAST && b >= LEAST && a * b >= LEAST_AREA;
}

namespace
{

/* C = A^T B for a chunk of the depth, with the sums of A's or B's columns. Rows and columns of C are both contiguous in
 * memory, so a thread loads the same four columns of every slab. */
struct product_outer : product_finish {
    product_store store;
    float *sums; /* of the first chunk; NULL: none */
    int64_t sums_step;
    int sums_b;   /* of B's columns, not of A's */
    float4 total; /* of a thread */

    __device__ bool wanted(const product_place &place) const
    {
        return sums && (sums_b ? place.row : place.col) == 0;
    }

    template <typename shape, typename slab_a, typename slab_b>
    __device__ void copied(const product_place &place, const float *a, const float *b)
    {
        if (wanted(place) && sums_b)
            add_slab<shape::threads, slab_b>(b);
        else if (wanted(place))
            add_slab<shape::threads, slab_a>(a);
    }

    /* The thread's four columns of a slab in shared memory, whose lines are depths. */
    template <int threads, typename layout> __device__ void add_slab(const float *slab)
    {
        constexpr int per_line = layout::count / 4;
#pragma unroll
        for (int line = (int)threadIdx.x / per_line; line < layout::depth; line += threads / per_line) {
            float4 four = *(const float4 *)(slab + line * layout::stride + 4 * ((int)threadIdx.x % per_line));
            total.x += four.x;
            total.y += four.y;
            total.z += four.z;
            total.w += four.w;
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums_of,
                        float *memory) const
    {
        store.run<precision, a_deep, shape>(task, place, sums_of, memory);
        if (!wanted(place))
            return;
        __syncthreads();
        float4 *all = (float4 *)memory;
        all[threadIdx.x] = total;
        __syncthreads();
        static_assert(4 * shape::threads % shape::rows == 0 && 4 * shape::threads % shape::cols == 0 &&
                          shape::rows <= shape::threads && shape::cols <= shape::threads,
                      "columns of a thread");
        int each = (sums_b ? shape::cols : shape::rows) / 4;
        int col = (int)threadIdx.x, count = sums_b ? place.cols : place.rows, first = sums_b ? place.col : place.row;
        if (col >= 4 * each || first + col >= count)
            return;
        float sum = 0;
        for (int i = col / 4; i < shape::threads; i += each)
            sum += memory[4 * i + col % 4];
        sums[place.chunk * sums_step + place.head * count + first + col] = sum;
    }
};

/* Chunks of the depth such that the tiles fill the device; a chunk has at least 256 rows. */
int product_chunks(int heads, int rows, int cols, int depth)
{
    int tiles = heads * (int)(lp_blocks(rows, product_large::rows) * lp_blocks(cols, product_large::cols));
    int most = (int)lp_blocks(depth, 256), chunks = tiles > 0 ? (int)lp_blocks(PRODUCT_BLOCKS, tiles) : 1;
    return chunks > most ? (most < 1 ? 1 : most) : chunks;
}

/* ---- by warpgroups ------------------------------------------------------------------------------------------- */

enum { OUTER_THREADS = 256, OUTER_ROWS = 2 * WIDE_BLOCK };
enum { OUTER_ONES = 256 };                   /* floats of shared memory before the slabs; the first numbers are ones */
enum { OUTER_SLAB = wide_size(WIDE_BLOCK) }; /* floats of a block of 64 rows by 64 columns */

/* Blocks of a launch; and slabs of a chunk, at least. A block has partial sums to write and to be read again, and keeps a
 * multiprocessor from the launches of the critical path. */
#ifdef LP_CUDA_EMULATED
enum { OUTER_BLOCKS = 4, OUTER_SLABS = 1 };
#else
enum { OUTER_BLOCKS = 66, OUTER_SLABS = 4 };
#endif

/* One product: C [heads * a x b] = p^T q, by head. A tile has 128 rows of C in one head, or all rows of two heads where they have up
 * to 64 (by_head): 64 for each of the two warpgroups. */
typedef struct outer_task {
    const uint16_t *p, *q;
    int p_stride, q_stride, p_head, q_head; /* numbers from row to row, and from head to head */
    float *out, *sums;                      /* of the first chunk; sums: NULL: none */
    int step, sums_step;
    lp_cuda_rows rows;
    int chunks, heads, a, b;
    short down, across; /* tiles: of a head, or of two; in all columns */
    bool by_head, pairs;
} outer_task;

typedef struct outer_group {
    const lp_cuda_shard *shard;
    int first[LP_CUDA_REDUCTION_MAX]; /* block of each task, ascending; INT_MAX beyond the tasks */
    outer_task task[LP_CUDA_REDUCTION_MAX];
} outer_group;

static_assert(sizeof(outer_group) <= 4096, "arguments of a launch");

/* What a warpgroup computes: rows of C in a head, and their number. */
typedef struct outer_part {
    int head, row, rows;
} outer_part;

__device__ inline outer_part part_of(const outer_task &task, int tile, int warpgroup)
{
    outer_part part = {2 * tile + warpgroup, 0, task.a};
    if (!task.by_head)
        part = {tile / task.down, tile % task.down * OUTER_ROWS + warpgroup * WIDE_BLOCK, 0};
    part.rows = part.head < task.heads ? task.a - part.row : 0;
    return part;
}

/* Starts to copy 64 rows from k on, up to `end`, of a block of columns of which `present` exist. */
__device__ inline void copy_block(float *to, const uint16_t *from, int stride, int k, int end, int present)
{
    int line = (int)threadIdx.x / 8, v = (int)threadIdx.x % 8;
    from += (int64_t)(k + line) * stride + 8 * v;
    to += WIDE_LINE * line + 4 * (v ^ (line & 7));
#pragma unroll
    for (int i = 0; i < WIDE_BLOCK; i += OUTER_THREADS / 8)
        tile_cp_async<4>(to + WIDE_LINE * i, (const float *)(from + (int64_t)i * stride),
                         8 * v < present && k + line + i < end);
}

/* Floats of a slab: blocks of p for both warpgroups, then of q. */
template <int cols> __host__ __device__ constexpr int outer_slab(bool by_head)
{
    return (2 + (by_head ? 2 : 1) * (cols / WIDE_BLOCK)) * OUTER_SLAB;
}

template <int cols> constexpr int outer_stages = cols == 192 ? 3 : 4;

template <bool two, int cols>
__device__ inline void store_part(const outer_task &task, const outer_part &part, const float (&sums)[cols / 2],
                                  float *out, int present)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = me.warp % 4 * 16 + 8 * i + me.group;
        float *to = out + (int64_t)(part.row + row) * task.b + 2 * me.member;
        if (row < part.rows)
#pragma unroll
            for (int j = 0; j < cols / 8; j++)
                if (8 * j + 2 * me.member < present)
                    tile_store_two<two>(to + 8 * j, sums[4 * j + 2 * i], sums[4 * j + 2 * i + 1],
                                        8 * j + 2 * me.member + 1 < present);
    }
}

/* Column sums of p or q are products with ones. */
template <int cols, bool q_summed>
__global__ void __launch_bounds__(OUTER_THREADS, 1) outer_kernel(const __grid_constant__ outer_group group)
{
    constexpr int blocks = cols / WIDE_BLOCK, summed = q_summed ? blocks : 1, stages = outer_stages<cols>;
    LP_SHARED(float, shared);
    float *memory = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4, *ring = memory + OUTER_ONES;
    uint16_t *ones = (uint16_t *)memory;
    int index = 0, warpgroup = (int)threadIdx.x / 128;
    while (index + 1 < LP_CUDA_REDUCTION_MAX && group.first[index + 1] <= (int)blockIdx.x)
        index++;
    const outer_task &task = group.task[index];
    int number = (int)blockIdx.x - group.first[index];
    int tiles = (task.by_head ? (task.heads + 1) / 2 : task.heads * task.down) * task.across;
    int chunk = number / tiles, tile = number % tiles / task.across, col = number % task.across * cols;
    int present = task.b - col, size = outer_slab<cols>(task.by_head), begin, end;
    bool by_head = task.by_head;
    outer_part parts[2] = {part_of(task, tile, 0), part_of(task, tile, 1)};
    ones[threadIdx.x] = 0x3F80;
    lp_pdl_wait();
    product_chunk<WIDE_BLOCK>(lp_rows_now(task.rows, group.shard), task.chunks, chunk, &begin, &end);

    auto copy = [&](int k, int stage) {
        float *to = ring + stage * size;
#pragma unroll
        for (int w = 0; w < 2; w++) {
            if (k < end && parts[w].rows > 0)
                copy_block(to + w * OUTER_SLAB, task.p + parts[w].head * task.p_head + parts[w].row, task.p_stride, k,
                           end, parts[w].rows);
            if (k < end && (w == 0 || (by_head && parts[1].rows > 0)))
#pragma unroll
                for (int j = 0; j < blocks; j++)
                    if (WIDE_BLOCK * j < present)
                        copy_block(to + (2 + w * blocks + j) * OUTER_SLAB,
                                   task.q + parts[w].head * task.q_head + col + WIDE_BLOCK * j, task.q_stride, k, end,
                                   present - WIDE_BLOCK * j);
        }
        product_copies_end();
    };
#pragma unroll 1
    for (int i = 0; i < stages - 1; i++)
        copy(begin + i * WIDE_BLOCK, i);
    float sums[cols / 2] = {}, column[summed][4] = {};
    int stage = 0;
#pragma unroll 1
    for (int k = begin; k < end; k += WIDE_BLOCK) {
        const float *left = ring + stage * size + warpgroup * OUTER_SLAB;
        const float *right = ring + stage * size + (2 + (by_head ? warpgroup * blocks : 0)) * OUTER_SLAB;
        product_copies_wait<stages - 2>();
        wide_fence();
        __syncthreads();
        wide_begin();
        wide_multiply<false, false>(sums, left, right);
#pragma unroll
        for (int j = 0; j < summed; j++)
            wide_weigh<false>(column[j], q_summed ? right + j * OUTER_SLAB : left, ones);
        wide_end();
        copy(k + (stages - 1) * WIDE_BLOCK, stage == 0 ? stages - 1 : stage - 1); /* that of the slab before */
        wide_wait<0>();
        stage = stage + 1 == stages ? 0 : stage + 1;
    }
    lp_pdl_trigger();

    outer_part part = warpgroup ? parts[1] : parts[0];
    if (part.rows <= 0)
        return;
    float *out = task.out + (int64_t)chunk * task.step + (int64_t)part.head * task.a * task.b + col;
    if (task.out && task.pairs)
        store_part<true, cols>(task, part, sums, out, present);
    else if (task.out)
        store_part<false, cols>(task, part, sums, out, present);
    tile_lane me = tile_lane_now();
    float *to = task.sums + (int64_t)chunk * task.sums_step + part.head * (q_summed ? task.b : task.a);
    int row = me.warp % 4 * 16 + me.group;
#pragma unroll
    for (int i = 0; i < 2; i++, row += 8) {
        if (!task.sums || me.member)
            continue;
        if (!q_summed && col == 0 && row < part.rows)
            to[part.row + row] = column[0][2 * i];
#pragma unroll
        for (int j = 0; q_summed && j < blocks; j++)
            if (part.row == 0 && WIDE_BLOCK * j + row < present)
                to[col + WIDE_BLOCK * j + row] = column[j][2 * i];
    }
}

bool is_by_head(const reduction_task &task)
{
    return task.heads > 1 && task.a <= WIDE_BLOCK;
}

/* Columns of a tile that the task needs: equal ones, in whole blocks. */
int outer_cols(const reduction_task &task)
{
    int most = task.q_summed ? 128 : is_by_head(task) ? 192 : 256;
    return (int)lp_blocks(lp_blocks(task.b, lp_blocks(task.b, most)), WIDE_BLOCK) * WIDE_BLOCK;
}

int outer_tiles(const reduction_task &task)
{
    int down = is_by_head(task) ? (task.heads + 1) / 2 : task.heads * (int)lp_blocks(task.a, OUTER_ROWS);
    return down * (int)lp_blocks(task.b, task.b_wide);
}

/* What a block of the task reads of a row. */
int outer_cost(const reduction_task &task)
{
    int cols = task.b < task.b_wide ? task.b : task.b_wide;
    return is_by_head(task) ? 2 * (WIDE_BLOCK + cols) : OUTER_ROWS + cols;
}

outer_task outer_task_of(const lp_node *node, const lp_cuda_run *run, const reduction_task &given)
{
    lp_cuda_copy p = lp_cuda_copy_from(run, node, 0), q = lp_cuda_copy_from(run, node, 1);
    return {p.data,
            q.data,
            p.stride,
            q.stride,
            given.a + p.gap,
            given.b + q.gap,
            (float *)given.out[0],
            (float *)given.out[1],
            given.step[0],
            given.step[1],
            given.rows,
            given.chunks,
            given.heads,
            given.a,
            given.b,
            (short)lp_blocks(given.a, OUTER_ROWS),
            (short)lp_blocks(given.b, given.b_wide),
            is_by_head(given),
            given.pairs};
}

/* The tasks whose tiles have this many columns. q_summed: those with sums of q's columns, or those without. */
template <int cols, bool q_summed>
void launch_wide(const lp_stage_part *parts, const reduction_task *tasks, int count, const lp_cuda_run *run)
{
    outer_group group = {};
    int found = 0, blocks = 0;
    size_t size = 0;
    group.shard = run->shard;
    for (int i = 0; i < count; i++)
        if (tasks[i].b_wide == cols && tasks[i].q_summed == q_summed) {
            size_t slab = (size_t)outer_slab<cols>(is_by_head(tasks[i]));
            size = slab > size ? slab : size;
            group.first[found] = blocks;
            group.task[found++] = outer_task_of(parts[i].node, run, tasks[i]);
            blocks += tasks[i].chunks * outer_tiles(tasks[i]);
        }
    for (int i = found; i < LP_CUDA_REDUCTION_MAX; i++)
        group.first[i] = INT32_MAX;
    LP_LAUNCH_PDL(run, (outer_kernel<cols, q_summed>), (unsigned)blocks, OUTER_THREADS,
                  1024 + sizeof(float) * (OUTER_ONES + outer_stages<cols> * size), group);
}

/* Of floats. */
void launch_product(const lp_cuda_run *run, const reduction_task &given)
{
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_fixed(given.a);
    task.cols = product_fixed(given.b);
    task.depth = {given.rows, 0, INT32_MAX};
    task.chunks = given.chunks;
    product_outer outer = {};
    outer.store.to = (float *)given.out[0];
    outer.store.stride = given.b;
    outer.store.head = (int64_t)given.a * given.b;
    outer.store.chunk_step = given.step[0];
    outer.store.pairs = lp_vector_width((uintptr_t)given.out[0], given.b) > 1;
    outer.sums = (float *)given.out[1];
    outer.sums_step = given.step[1];
    outer.sums_b = given.q_summed;
    task.a = {given.p, given.heads * given.a, given.a, lp_vector_width((uintptr_t)given.p, given.a)};
    task.b = {given.q, given.heads * given.b, given.b, lp_vector_width((uintptr_t)given.q, given.b)};
    product_launch<false, false>(run, task, outer, given.heads, given.a, given.b);
}

bool is_wide_task(const lp_stage_part &part, const lp_cuda_run *run)
{
    return lp_cuda_copy_from(run, part.node, 0).data;
}

} // namespace

/* The tasks of a launch have the same tile. Each gets blocks in proportion to what it reads. */
void lp_cuda_outer_chunks(const lp_stage_part *parts, reduction_task *tasks, const int *rows, int count,
                          const lp_cuda_run *run)
{
    int most[4] = {}, cost[4] = {};
    auto launch_of = [](const reduction_task &task) { return 2 * task.q_summed + is_by_head(task); };
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++)
            if (is_wide_task(parts[i], run)) {
                int cols = outer_cols(tasks[i]), launch = launch_of(tasks[i]);
                most[launch] = cols > most[launch] ? cols : most[launch];
                tasks[i].b_wide = (short)most[launch];
                cost[launch] += pass ? outer_tiles(tasks[i]) * outer_cost(tasks[i]) : 0;
            }
    for (int i = 0; i < count; i++) {
        int chunks = product_chunks(tasks[i].heads, tasks[i].a, tasks[i].b, rows[i]);
        if (is_wide_task(parts[i], run)) {
            int slabs = (int)lp_blocks(rows[i], OUTER_SLABS * WIDE_BLOCK);
            chunks = OUTER_BLOCKS * outer_cost(tasks[i]) / cost[launch_of(tasks[i])];
            chunks = chunks > slabs ? slabs : chunks < 1 ? 1 : chunks;
        }
        tasks[i].chunks = chunks;
    }
}

void lp_cuda_outer_launch(const lp_stage_part *parts, const reduction_task *tasks, int count, const lp_cuda_run *run)
{
    reduction_task wide[LP_CUDA_REDUCTION_MAX];
    lp_stage_part wide_parts[LP_CUDA_REDUCTION_MAX];
    int found = 0;
    for (int i = 0; i < count; i++)
        if (is_wide_task(parts[i], run)) {
            wide_parts[found] = parts[i];
            wide[found++] = tasks[i];
        } else {
            launch_product(run, tasks[i]);
        }
    launch_wide<64, false>(wide_parts, wide, found, run);
    launch_wide<128, false>(wide_parts, wide, found, run);
    launch_wide<192, false>(wide_parts, wide, found, run);
    launch_wide<256, false>(wide_parts, wide, found, run);
    launch_wide<64, true>(wide_parts, wide, found, run);
    launch_wide<128, true>(wide_parts, wide, found, run);
}
