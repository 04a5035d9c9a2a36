/* cuda_schedule.cu: dependencies between stages from the bytes they use, and the assignment of stages to streams. */
#include "backend/cuda/cuda_schedule.h"

#include "backend/cuda/cuda_fused.h"

/* A range of bytes that nodes write. */
typedef struct byte_range {
    int memory; /* lp_storage, or PACKED */
    size_t begin, end;
} byte_range;

/* The ranges that a stage uses. */
typedef struct stage_bytes {
    byte_range *reads, *writes;
    int read_count, write_count;
} stage_bytes;

/* The bytes of a value; false where no node writes them. */
static bool bytes_of(const lp_plan *plan, const lp_value *value, byte_range *out)
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

/* The packed weight of a product: a pack writes it, a fused kernel reads it. */
static void add_packed(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_stage_part *part,
                       stage_bytes *all)
{
    if (!lp_part_is_packed(part) || (stage->type != LP_STAGE_PACK && stage->type != LP_STAGE_FUSED))
        return;
    size_t begin = stages->packed[part->number];
    byte_range packed = {PACKED, begin, begin + lp_cuda_packed_size(part->node)};
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
    all->reads = (byte_range *)lp_arena_alloc(arena, most * sizeof *all->reads);
    all->writes = (byte_range *)lp_arena_alloc(arena, most * sizeof *all->writes);
    if (!all->reads || !all->writes)
        return false;
    for (int p = 0; p < stage->count; p++) {
        const lp_stage_part *part = &stage->parts[p];
        byte_range one;
        /* A packed part reads only its weight, or parameters. */
        bool packs = stage->type == LP_STAGE_PACK && lp_part_is_packed(part);
        add_packed(stages, stage, part, all);
        if (packs && lp_cuda_packed_producer(part->node))
            continue;
        for (int i = packs; !part->follows && i < (packs ? 2 : part->node->op->input_count); i++)
            if (bytes_of(plan, part->node->inputs[i], &one))
                all->reads[all->read_count++] = one;
        const lp_cuda_rule *rule = lp_cuda_rule_of(part->node);
        for (int i = 0; i < part->node->op->output_count; i++) {
            /* A side buffer is written together with this output (lp_cuda_side_buffer). */
            if (rule->ordered && rule->together >> i & 1 && bytes_of(plan, part->node->outputs[i], &one))
                all->reads[all->read_count++] = one;
            if (!packs && lp_part_computes(part, i) && bytes_of(plan, part->node->outputs[i], &one)) {
                all->writes[all->write_count++] = one;
                all->reads[all->read_count++] = one; /* it may accumulate */
            }
        }
    }
    return true;
}

static bool overlap(const byte_range *a, int a_count, const byte_range *b, int b_count)
{
    for (int i = 0; i < a_count; i++)
        for (int k = 0; k < b_count; k++)
            if (a[i].memory == b[k].memory && a[i].begin < b[k].end && b[k].begin < a[i].end)
                return true;
    return false;
}

/* Outputs are among the reads too, so this includes write-after-write. */
static bool conflict(const stage_bytes *a, const stage_bytes *b)
{
    return overlap(a->writes, a->write_count, b->reads, b->read_count) ||
           overlap(a->reads, a->read_count, b->writes, b->write_count);
}

/* A low-priority stage starts only after the earlier levels: its running blocks are not preempted and would delay them. */
static bool waits_for_level(const lp_cuda_stage *earlier, const lp_cuda_stage *later)
{
    return earlier->level < later->level && lp_part_low_priority(later->type, later->parts) &&
           !lp_part_low_priority(earlier->type, earlier->parts);
}

/* Whether a part of the later stage adds what one of the earlier stage leaves in a side buffer. */
static bool follows(const lp_cuda_stage *earlier, const lp_cuda_stage *later)
{
    for (int i = 0; i < later->count; i++)
        for (int k = 0; later->parts[i].follows && k < earlier->count; k++)
            if (earlier->parts[k].node == later->parts[i].node)
                return true;
    return false;
}

typedef struct schedule_state {
    int count;
    lp_cuda_dispatch *dispatch;
    bool *before; /* [count x count]: row j, column i: stage j runs after stage i, directly or indirectly */
    int last[LP_CUDA_STREAMS]; /* latest stage of each stream; -1: none */
} schedule_state;

/* Of the streams whose latest stage is a dependency, the one with the latest; otherwise the stream idle for longest. */
static int choose_stream(const schedule_state *state, const bool *direct, bool low_priority)
{
    int begin = low_priority ? LP_CUDA_FIRST_LOW_PRIORITY : 0,
        end = low_priority ? LP_CUDA_STREAMS : LP_CUDA_FIRST_LOW_PRIORITY, best = -1, oldest = begin;
    for (int stream = begin; stream < end; stream++) {
        int last = state->last[stream];
        if (last >= 0 && direct[last] && (best < 0 || last > state->last[best]))
            best = stream;
        if (last < state->last[oldest])
            oldest = stream;
    }
    return best >= 0 ? best : oldest;
}

/* Adds waits only for dependencies that other waits, or the order of the stream, do not imply. */
static void dispatch_stage(schedule_state *state, int j, bool *direct, bool low_priority)
{
    bool *mine = state->before + (size_t)j * state->count;
    lp_cuda_dispatch *own = &state->dispatch[j];
    own->stream = choose_stream(state, direct, low_priority);
    int same = state->last[own->stream];
    if (same >= 0)
        direct[same] = true;
    for (int i = j - 1; i >= 0; i--) {
        if (!direct[i] || mine[i])
            continue;
        mine[i] = true;
        for (int k = 0; k < i; k++)
            mine[k] = mine[k] || state->before[(size_t)i * state->count + k];
        if (state->dispatch[i].stream == own->stream)
            continue;
        own->waits[own->wait_count++] = i;
        state->dispatch[i].signals = true;
    }
    state->last[own->stream] = j;
}

lp_cuda_dispatch *lp_cuda_schedule(const lp_plan *plan, const lp_cuda_stages *stages, bool fused, lp_arena *arena)
{
    int count = stages->count;
    lp_arena own = {};
    lp_cuda_dispatch *dispatch = (lp_cuda_dispatch *)lp_arena_alloc(arena, ((size_t)count + 1) * sizeof *dispatch);
    stage_bytes *all = (stage_bytes *)lp_arena_alloc(&own, ((size_t)count + 1) * sizeof *all);
    bool *before = (bool *)lp_arena_alloc(&own, (size_t)count * (size_t)count + 1);
    bool *direct = (bool *)lp_arena_alloc(&own, (size_t)count + 1);
    bool good = dispatch && all && before && direct;
    schedule_state state = {count, dispatch, before, {}};
    for (int stream = 0; stream < LP_CUDA_STREAMS; stream++)
        state.last[stream] = -1;
    for (int j = 0; good && j < count; j++) {
        if (lp_stage_skipped(&stages->all[j], fused))
            continue;
        good = bytes_of_stage(plan, stages, &stages->all[j], &own, &all[j]);
        for (int i = 0; good && i < count; i++)
            direct[i] = i < j && (conflict(&all[i], &all[j]) || waits_for_level(&stages->all[i], &stages->all[j]) ||
                                  follows(&stages->all[i], &stages->all[j]));
        if (good)
            dispatch_stage(&state, j, direct, lp_part_low_priority(stages->all[j].type, stages->all[j].parts));
    }
    lp_arena_clear(&own);
    return good ? dispatch : NULL;
}
