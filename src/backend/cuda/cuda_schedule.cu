#include "backend/cuda/cuda_schedule.h"

#include "backend/cuda/cuda_chain.h"

/* Bytes of one of the memories that nodes write. */
typedef struct extent_of_bytes {
    int memory; /* lp_storage */
    size_t begin, end;
} bytes;

/* What a stage touches: in the arena of the schedule. */
typedef struct stage_bytes {
    bytes *reads, *writes;
    int read_count, write_count;
} stage_bytes;

/* The bytes of a value; false where nobody writes them. */
static bool bytes_of(const lp_plan *plan, const lp_value *value, bytes *out)
{
    if (!value || value->storage == LP_STORAGE_INPUT || value->storage == LP_STORAGE_PARAMETER)
        return false;
    size_t element = lp_type_size(value->type, plan->real_size), begin = value->offset;
    size_t rows = value->rows_of == LP_ROWS_FIXED ? (size_t)value->rows : (size_t)plan->largest.rows[value->rows_of];
    if (value->storage == LP_STORAGE_GRADIENT)
        begin *= element;
    else if (value->storage == LP_STORAGE_TABLE_ROWS)
        begin *= (size_t)plan->largest.rows[LP_ROWS_ITEMS] * element;
    *out = {(int)value->storage, begin, begin + rows * (size_t)value->cols * element};
    return true;
}

enum { PACKED = LP_STORAGE_WORK + 1 };

/* The packed weight of a product: a pack writes it, a chain reads it. */
static void add_packed(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_stage_piece *piece,
                       stage_bytes *all)
{
    if (piece->node->op->id != LP_OP_LINEAR || stage->type == LP_STAGE_NODE || stage->type == LP_STAGE_SUMS)
        return;
    size_t begin = stages->packed[piece->number];
    bytes packed = {PACKED, begin, begin + lp_cuda_packed_size(piece->node)};
    if (stage->type == LP_STAGE_PACK)
        all->writes[all->write_count++] = packed;
    else
        all->reads[all->read_count++] = packed;
}

/* False when out of memory. */
static bool bytes_of_stage(const lp_plan *plan, const lp_cuda_stages *stages, const lp_cuda_stage *stage,
                           lp_arena *arena, stage_bytes *all)
{
    size_t most = (size_t)stage->count * (LP_NODE_INPUTS + LP_NODE_OUTPUTS + 1);
    all->reads = (bytes *)lp_arena_alloc(arena, most * sizeof *all->reads);
    all->writes = (bytes *)lp_arena_alloc(arena, most * sizeof *all->writes);
    if (!all->reads || !all->writes)
        return false;
    for (int p = 0; p < stage->count; p++) {
        const lp_stage_piece *piece = &stage->pieces[p];
        bytes one;
        bool packs =
            stage->type == LP_STAGE_PACK && lp_piece_is_packed(piece); /* reads the weight alone, or parameters */
        if (packs && lp_cuda_packed_maker(piece->node)) {
            add_packed(stages, stage, piece, all);
            continue;
        }
        add_packed(stages, stage, piece, all);
        for (int i = packs; i < (packs ? 2 : piece->node->op->input_count); i++)
            if (bytes_of(plan, piece->node->inputs[i], &one))
                all->reads[all->read_count++] = one;
        /* What the loss of a choice is made of comes with its slopes (lp_cuda_kept). */
        if (piece->node->op->id == LP_OP_BCE_LOSS && bytes_of(plan, piece->node->outputs[1], &one))
            all->reads[all->read_count++] = one;
        for (int i = 0; i < piece->node->op->output_count; i++)
            if (!packs && lp_piece_makes(piece, i) && bytes_of(plan, piece->node->outputs[i], &one)) {
                all->writes[all->write_count++] = one;
                all->reads[all->read_count++] = one; /* in case it adds */
            }
    }
    return true;
}

static bool overlap(const bytes *a, int a_count, const bytes *b, int b_count)
{
    for (int i = 0; i < a_count; i++)
        for (int k = 0; k < b_count; k++)
            if (a[i].memory == b[k].memory && a[i].begin < b[k].end && b[k].begin < a[i].end)
                return true;
    return false;
}

/* Outputs stand among the reads too, so two that write the same are seen. */
static bool conflict(const stage_bytes *a, const stage_bytes *b)
{
    return overlap(a->writes, a->write_count, b->reads, b->read_count) ||
           overlap(a->reads, a->read_count, b->writes, b->write_count);
}

/* What is lazy does not begin before its moment: once it has, what is more urgent waits for it to end. */
static bool waits_its_turn(const lp_cuda_stage *earlier, const lp_cuda_stage *later)
{
    return earlier->moment < later->moment && lp_piece_lazy(later->type, later->pieces) &&
           !lp_piece_lazy(earlier->type, earlier->pieces);
}

typedef struct planner {
    int count;
    lp_cuda_slot *slots;
    bool *before;            /* [count x count]: stage j comes after stage i, directly or through others */
    int last[LP_CUDA_LANES]; /* newest stage of each lane, -1: none */
} planner;

/* The lane whose newest stage this one waits for anyway, the newest of them; otherwise the one that has rested longest. */
static int choose_lane(const planner *this_one, const bool *direct, bool lazy)
{
    int begin = lazy ? LP_CUDA_FIRST_LAZY : 0, end = lazy ? LP_CUDA_LANES : LP_CUDA_FIRST_LAZY, best = -1,
        oldest = begin;
    for (int lane = begin; lane < end; lane++) {
        int last = this_one->last[lane];
        if (last >= 0 && direct[last] && (best < 0 || last > this_one->last[best]))
            best = lane;
        if (last < this_one->last[oldest])
            oldest = lane;
    }
    return best >= 0 ? best : oldest;
}

/* Waits for what is not waited for already: of each lane the newest stage that matters, since that has waited for the others. */
static void place_stage(planner *this_one, int j, bool *direct, bool lazy)
{
    bool *mine = this_one->before + (size_t)j * this_one->count;
    lp_cuda_slot *slot = &this_one->slots[j];
    slot->lane = choose_lane(this_one, direct, lazy);
    int same = this_one->last[slot->lane];
    if (same >= 0)
        direct[same] = true;
    for (int i = j - 1; i >= 0; i--) {
        if (!direct[i] || mine[i])
            continue;
        mine[i] = true;
        for (int k = 0; k < i; k++)
            mine[k] = mine[k] || this_one->before[(size_t)i * this_one->count + k];
        if (this_one->slots[i].lane == slot->lane)
            continue;
        slot->waits[slot->wait_count++] = i;
        this_one->slots[i].awaited = true;
    }
    this_one->last[slot->lane] = j;
}

lp_cuda_slot *lp_cuda_schedule(const lp_plan *plan, const lp_cuda_stages *stages, bool chains, lp_arena *arena)
{
    int count = stages->count;
    lp_arena own = {};
    lp_cuda_slot *slots = (lp_cuda_slot *)lp_arena_alloc(arena, ((size_t)count + 1) * sizeof *slots);
    stage_bytes *all = (stage_bytes *)lp_arena_alloc(&own, ((size_t)count + 1) * sizeof *all);
    bool *before = (bool *)lp_arena_alloc(&own, (size_t)count * (size_t)count + 1);
    bool *direct = (bool *)lp_arena_alloc(&own, (size_t)count + 1);
    bool good = slots && all && before && direct;
    planner this_one = {count, slots, before, {}};
    for (int lane = 0; lane < LP_CUDA_LANES; lane++)
        this_one.last[lane] = -1;
    for (int j = 0; good && j < count; j++) {
        if (lp_stage_left_out(&stages->all[j], chains))
            continue; /* touches nothing */
        good = bytes_of_stage(plan, stages, &stages->all[j], &own, &all[j]);
        for (int i = 0; good && i < count; i++)
            direct[i] = i < j && (conflict(&all[i], &all[j]) || waits_its_turn(&stages->all[i], &stages->all[j]));
        if (good)
            place_stage(&this_one, j, direct, lp_piece_lazy(stages->all[j].type, stages->all[j].pieces));
    }
    lp_arena_clear(&own);
    return good ? slots : NULL;
}
