/* cuda_schedule.cu: dependencies between stages from the bytes they use, and the assignment of stages to streams. */
#include "backend/cuda/cuda_schedule.h"

/* A range of bytes that a part uses, in what nodes write. */
typedef struct byte_range {
    int memory; /* lp_storage */
    size_t begin, end;
    bool writes;
} byte_range;

/* The bytes of input i, or of output i - LP_NODE_INPUTS; none where the part does not use it, or no node writes it. */
static byte_range bytes_of(const lp_plan *plan, const lp_stage_part *part, int i)
{
    int out = i - LP_NODE_INPUTS;
    const lp_value *value = out < 0 ? part->node->inputs[i] : part->node->outputs[out];
    bool writes = out >= 0 && lp_part_computes(part, out), used = out < 0 || writes;
    if (value && !used) { /* a side buffer is written together with this output (lp_cuda_side_buffer) */
        const lp_cuda_rule *rule = lp_cuda_rule_of(part->node);
        used = rule->ordered && rule->together >> out & 1;
    }
    if (!value || !used || value->storage == LP_STORAGE_INPUT || value->storage == LP_STORAGE_PARAMETER)
        return {};
    size_t element = lp_type_size(value->type, plan->real_size), begin = value->offset;
    size_t rows = value->rows_of == LP_ROWS_FIXED ? (size_t)value->rows : (size_t)plan->largest.rows[value->rows_of];
    if (value->storage == LP_STORAGE_GRADIENT)
        begin *= element;
    else if (value->storage == LP_STORAGE_TABLE_ROWS)
        begin *= (size_t)plan->largest.rows[LP_ROWS_ITEMS] * element;
    return {(int)value->storage, begin, begin + rows * (size_t)value->cols * element, writes};
}

/* Whether one writes bytes that the other uses. */
static bool conflict(const lp_plan *plan, const lp_stage_part *a, const lp_stage_part *b)
{
    enum { USES = LP_NODE_INPUTS + LP_NODE_OUTPUTS };
    bool found = false;
    for (int i = 0; i < USES; i++) {
        byte_range x = bytes_of(plan, a, i);
        for (int k = 0; x.begin < x.end && k < USES; k++) {
            byte_range y = bytes_of(plan, b, k);
            found = found || ((x.writes || y.writes) && x.memory == y.memory && x.begin < y.end && y.begin < x.end);
        }
    }
    return found;
}

static bool stages_conflict(const lp_plan *plan, const lp_cuda_stage *a, const lp_cuda_stage *b)
{
    bool found = false;
    for (int p = 0; p < a->count; p++)
        for (int q = 0; !found && q < b->count; q++)
            found = conflict(plan, &a->parts[p], &b->parts[q]);
    return found;
}

typedef struct schedule_state {
    int count;
    lp_cuda_dispatch *dispatch;
    bool *before;              /* [count x count]: row j, column i: j runs after i, directly or indirectly */
    int last[LP_CUDA_STREAMS]; /* latest of each stream; -1: none */
} schedule_state;

/* Of streams first .. end - 1 whose latest stage is a dependency, the one with the latest; otherwise the stream idle for longest. */
static int choose_stream(const schedule_state *state, const bool *direct, int first, int end)
{
    int best = -1, oldest = first;
    for (int stream = first; stream < end; stream++) {
        int last = state->last[stream];
        if (last >= 0 && direct[last] && (best < 0 || last > state->last[best]))
            best = stream;
        if (last < state->last[oldest])
            oldest = stream;
    }
    return best >= 0 ? best : oldest;
}

/* Adds waits only for dependencies that other waits, or the order of the stream, do not imply. */
static void dispatch_on(schedule_state *state, int j, bool *direct, int stream)
{
    bool *mine = state->before + (size_t)j * state->count;
    lp_cuda_dispatch *own = &state->dispatch[j];
    own->stream = stream;
    if (state->last[stream] >= 0)
        direct[state->last[stream]] = true;
    for (int i = j - 1; i >= 0; i--) {
        if (!direct[i] || mine[i])
            continue;
        mine[i] = true;
        for (int k = 0; k < i; k++)
            mine[k] = mine[k] || state->before[(size_t)i * state->count + k];
        if (state->dispatch[i].stream == stream)
            continue;
        own->waits[own->wait_count++] = i;
        state->dispatch[i].signals = true;
    }
    state->last[stream] = j;
}

lp_cuda_dispatch *lp_cuda_schedule(const lp_plan *plan, const lp_cuda_stages *stages, lp_arena *arena)
{
    size_t count = (size_t)stages->count + 2; /* with the start and the end */
    lp_arena own = {};
    lp_cuda_dispatch *dispatch = (lp_cuda_dispatch *)lp_arena_alloc(arena, count * sizeof *dispatch);
    bool *before = (bool *)lp_arena_alloc(&own, count * count), *direct = (bool *)lp_arena_alloc(&own, count);
    bool good = dispatch && before && direct;
    schedule_state state = {(int)count, dispatch, before, {}};
    for (int stream = 0; stream < LP_CUDA_STREAMS; stream++)
        state.last[stream] = -1;
    for (int j = 0; good && j < state.count; j++) {
        const lp_cuda_stage *stage = j > 0 && j <= stages->count ? &stages->all[j - 1] : NULL;
        bool low = stage && lp_stage_low_priority(stages, stage);
        for (int i = 0; i < j; i++) {
            /* A low-priority stage waits for earlier levels: its running blocks are not preempted and would delay them. */
            const lp_cuda_stage *earlier = i > 0 ? &stages->all[i - 1] : NULL;
            bool after = low && earlier && earlier->level < stage->level && !lp_stage_low_priority(stages, earlier);
            direct[i] = !stage || !earlier || after || stages_conflict(plan, earlier, stage);
        }
        int first = low ? (int)LP_CUDA_FIRST_LOW_PRIORITY : 0, end = low ? LP_CUDA_STREAMS : LP_CUDA_FIRST_LOW_PRIORITY;
        dispatch_on(&state, j, direct, choose_stream(&state, direct, first, stage ? end : 1));
    }
    lp_arena_clear(&own);
    return good ? dispatch : NULL;
}
