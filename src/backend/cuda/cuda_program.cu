/* cuda_program.cu: the loop over a step's stages, recorded once and replayed.
 *
 * Inputs, segments and the numbers of a shard come from the host and change with every run, the places they go to do not:
 * all lie in one block of device memory at offsets made for the largest shard. The host lays out such a block in pinned memory
 * and sends it, in one copy, while the device may still be busy with shards before; there are several of both, used in turn.
 * When the shard's turn comes it is moved to its place, which takes the device microseconds.
 */
#include "backend/cuda/cuda_attention_order.h"
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_lists.h"
#include "backend/cuda/cuda_program.h"
#include "backend/cuda/cuda_sums.h"

enum { KEPT = 16, ALIGN = 256 };

/* An input as the device holds it. */
typedef struct input {
    const lp_value *value; /* NULL: no node reads it */
    size_t place;
    /* Where a node wants its ids sorted. */
    int64_t ids; /* the most there are; 0: nobody does */
    lp_cuda_list_layout layout;
    size_t list_place;
} input;

/* Memory beside a value. */
typedef struct kept_memory {
    struct kept_memory *next;
    const lp_value *beside;
    void *data;
} kept_memory;

typedef struct lp_cuda_program {
    struct lp_cuda_program *next;
    /* For which runs. */
    const lp_plan *plan;
    const void *work, *parameters, *gradients, *row_gradients;
    lp_precision precision;
    /* The block: shard, segments, inputs. */
    char *block;
    char *staging[LP_DEVICE_MARKS], *arrival[LP_DEVICE_MARKS]; /* on the host, and on the device */
    size_t segment_place, block_size;
    input *inputs; /* by slot */
    void **data;   /* by slot: on the device */
    int largest_segments;
    lp_cuda_stages stages;
    lp_cuda_chain *chains; /* by stage */
    char *chain_programs;  /* of all of them, on the device */
    float *packed;         /* the weights of their products */
    /* Scratch of the stages. */
    void *scratch[LP_CUDA_LANES];
    size_t scratch_size[LP_CUDA_LANES];
    kept_memory *kept;         /* what nodes leave for others */
    const lp_cuda_slot *slots; /* by stage */
    lp_launch_part *parts;     /* room for those of one launch */
    uint64_t runs;
    void *recording;
    lp_arena arena;
} lp_cuda_program;

static lp_cuda_program *programs; /* newest first */
static bool failing;              /* out of memory while nodes were launched */

static void lose(const char *what)
{
    lp_device_problem_set(what, "there is not enough memory on the GPU");
    failing = true;
}

static void release(lp_cuda_program *program)
{
    lp_device_sync();
    lp_device_record_free(program->recording);
    lp_device_free(program->block);
    lp_device_free(program->chain_programs);
    lp_device_free(program->packed);
    for (int i = 0; i < LP_CUDA_LANES; i++)
        lp_device_free(program->scratch[i]);
    for (kept_memory *mine = program->kept; mine; mine = mine->next)
        lp_device_free(mine->data);
    for (int i = 0; i < LP_DEVICE_MARKS; i++) {
        lp_device_pinned_free(program->staging[i]);
        lp_device_free(program->arrival[i]);
    }
    lp_arena arena = program->arena; /* holds the program itself */
    lp_arena_clear(&arena);
}

void lp_cuda_program_drop(const void *work)
{
    for (lp_cuda_program **link = &programs; *link;) {
        lp_cuda_program *program = *link;
        if (program->work == work) {
            *link = program->next;
            release(program);
        } else {
            link = &program->next;
        }
    }
}

/* So that buffers which come and go do not leave a program each. */
static void drop_oldest(void)
{
    int count = 0;
    for (lp_cuda_program **link = &programs; *link; link = &(*link)->next)
        if (++count > KEPT) {
            lp_cuda_program *program = *link;
            *link = program->next;
            release(program);
            return;
        }
}

static size_t round_up(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t row_size(const lp_value *value)
{
    return (size_t)value->cols * lp_type_size(value->type, sizeof(float));
}

/* The inputs that nodes read, and the ids they want sorted. */
static void find_inputs(lp_cuda_program *program, const lp_cuda_run *sizes)
{
    const lp_graph *graph = program->plan->graph;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i]->op->input_count; k++) {
            const lp_node *node = graph->nodes[i];
            const lp_value *value = node->inputs[k];
            if (!value || value->place != LP_PLACE_INPUT)
                continue;
            input *mine = &program->inputs[value->slot];
            mine->value = value;
            const lp_value *sorted_by = lp_cuda_sorted_by(node, k);
            int64_t ids = sorted_by ? lp_cuda_largest(sizes, sorted_by) : 0;
            mine->ids = ids > mine->ids ? ids : mine->ids;
        }
}

static size_t lay_out_input(input *mine, const lp_cuda_run *sizes, size_t place)
{
    int64_t rows = lp_cuda_largest(sizes, mine->value);
    mine->place = place;
    place += round_up((size_t)rows * row_size(mine->value));
    if (mine->ids) {
        mine->layout = lp_cuda_list_plan(rows * mine->value->cols, mine->ids);
        mine->list_place = place;
        place += mine->layout.size;
    }
    return place;
}

static void lay_out(lp_cuda_program *program, const lp_cuda_run *sizes)
{
    program->segment_place = round_up(sizeof(lp_cuda_shard));
    size_t order = lp_cuda_attention_order_count(program->plan->largest.rows[LP_ROWS_TOKENS]);
    size_t size = program->segment_place + round_up(((size_t)program->largest_segments + 1 + order) * sizeof(int32_t));
    for (int slot = 0; slot < program->plan->graph->input_count; slot++)
        if (program->inputs[slot].value)
            size = lay_out_input(&program->inputs[slot], sizes, size);
    program->block_size = size;
}

/* The program of a stage, at the end of all; false when out of memory. */
static bool add_chain(lp_cuda_program *program, int i, const lp_cuda_run *run, lp_buffer *all)
{
    const lp_cuda_stage *stage = &program->stages.all[i];
    lp_cuda_chain *chain = &program->chains[i];
    if (stage->kind == LP_STAGE_CHAIN) {
        chain_step steps[LP_CHAIN_STEPS];
        lp_cuda_chain_make(&program->stages, stage, run, program->packed, chain, steps);
        chain->place = all->size;
        return lp_buffer_add(all, steps, (size_t)stage->count * sizeof *steps);
    }
    chain_pack *packs = (chain_pack *)lp_alloc((size_t)stage->count, sizeof *packs);
    if (packs)
        lp_cuda_pack_make(&program->stages, stage, run, program->packed, chain, packs);
    chain->place = all->size;
    bool good = packs && lp_buffer_add(all, packs, (size_t)stage->count * sizeof *packs);
    lp_free(packs);
    return good;
}

/* Programs of chains and packs, end to end, go to the device in one copy. */
static bool make_chains(lp_cuda_program *program, const lp_cuda_run *run)
{
    const lp_cuda_stages *stages = &program->stages;
    lp_buffer all = {};
    program->chains =
        (lp_cuda_chain *)lp_arena_alloc(&program->arena, ((size_t)stages->count + 1) * sizeof *program->chains);
    program->packed = (float *)lp_device_alloc((stages->packed_size + 1) * sizeof(float));
    bool good = program->chains && program->packed;
    for (int i = 0; good && i < stages->count; i++)
        if (stages->all[i].kind == LP_STAGE_CHAIN || stages->all[i].kind == LP_STAGE_PACK)
            good = add_chain(program, i, run, &all);
    program->chain_programs = good ? (char *)lp_device_alloc(all.size + 1) : NULL;
    good = program->chain_programs != NULL;
    for (int i = 0; good && i < stages->count; i++)
        program->chains[i].program = program->chain_programs + program->chains[i].place;
    if (good && all.size)
        lp_device_upload(program->chain_programs, all.data, all.size);
    lp_buffer_clear(&all);
    return good;
}

static bool fill(lp_cuda_program *program, const lp_run *run)
{
    const lp_graph *graph = run->plan->graph;
    size_t slots = (size_t)graph->input_count + 1;
    program->inputs = (input *)lp_arena_alloc(&program->arena, slots * sizeof *program->inputs);
    program->data = (void **)lp_arena_alloc(&program->arena, slots * sizeof *program->data);
    program->parts =
        (lp_launch_part *)lp_arena_alloc(&program->arena, ((size_t)graph->node_count + 1) * sizeof *program->parts);
    if (!program->inputs || !program->data || !program->parts)
        return false;
    lp_cuda_run sizes = {run, NULL, NULL, 0, 0, NULL};
    /* A plan for nodes in their order lets values share bytes that would meet if they ran in another. */
    if (!lp_cuda_stages_make(graph, !run->plan->arranged, &program->arena, &program->stages))
        return false;
    program->slots = lp_cuda_schedule(run->plan, &program->stages, &program->arena);
    if (!program->slots)
        return false;
    find_inputs(program, &sizes);
    lay_out(program, &sizes);
    program->block = (char *)lp_device_alloc(program->block_size);
    bool good = program->block != NULL;
    for (int i = 0; good && i < LP_DEVICE_MARKS; i++) {
        program->staging[i] = (char *)lp_device_pinned(program->block_size);
        program->arrival[i] = (char *)lp_device_alloc(program->block_size);
        good = program->staging[i] && program->arrival[i];
    }
    lp_device_sync(); /* what is delivered does not wait for the stream to have cleared it */
    for (int slot = 0; good && slot < graph->input_count; slot++) {
        input *mine = &program->inputs[slot];
        if (mine->value)
            program->data[slot] = program->block + mine->place;
    }
    lp_run there = *run;
    there.inputs = program->data;
    sizes.run = &there;
    return good && make_chains(program, &sizes);
}

/* What no kernel exists for. */
static const char *missing(const lp_graph *graph)
{
    for (int i = 0; i < graph->node_count; i++)
        if (!lp_cuda_kernel_of(graph->nodes[i]->op->id))
            return graph->nodes[i]->op->name;
    return NULL;
}

/* For runs like this one, with some room for more segments. */
static lp_cuda_program *make(const lp_run *run)
{
    const char *op = missing(run->plan->graph);
    if (op)
        lp_device_problem_set(op, "this op has no kernel for the GPU");
    if (op)
        return NULL;
    lp_arena arena = {};
    lp_cuda_program *program = (lp_cuda_program *)lp_arena_alloc(&arena, sizeof *program);
    if (!program)
        return NULL;
    program->arena = arena;
    program->plan = run->plan;
    program->work = run->work;
    program->parameters = run->parameters;
    program->gradients = run->gradients;
    program->row_gradients = run->row_gradients;
    program->precision = run->precision;
    program->largest_segments = (run->segments + 31) / 32 * 32;
    if (!fill(program, run)) {
        release(program);
        return NULL;
    }
    program->next = programs;
    programs = program;
    drop_oldest();
    return program;
}

static bool serves(const lp_cuda_program *program, const lp_run *run)
{
    return program->plan == run->plan && program->work == run->work && program->parameters == run->parameters &&
           program->gradients == run->gradients && program->row_gradients == run->row_gradients &&
           program->precision == run->precision && program->largest_segments >= run->segments;
}

static lp_cuda_program *find(const lp_run *run)
{
    for (lp_cuda_program *program = programs; program; program = program->next)
        if (serves(program, run))
            return program;
    return make(run);
}

static void stage_input(const input *mine, char *staging, const lp_run *run)
{
    int64_t rows = lp_run_rows(run, mine->value);
    size_t size = (size_t)rows * row_size(mine->value);
    const void *from = run->inputs[mine->value->slot];
    if (size)
        memcpy(staging + mine->place, from, size);
    if (mine->ids)
        lp_cuda_list_fill(&mine->layout, staging + mine->list_place, (const int32_t *)from, rows * mine->value->cols);
}

static void upload(lp_cuda_program *program, const lp_run *run)
{
    int mark = (int)(program->runs % LP_DEVICE_MARKS);
    char *staging = program->staging[mark];
    lp_device_wait(LP_DEVICE_RUN, mark);
    lp_cuda_shard *shard = (lp_cuda_shard *)staging;
    *shard = lp_cuda_shard();
    for (int kind = 0; kind < LP_ROWS_COUNT; kind++)
        shard->rows[kind] = run->rows[kind];
    shard->segments = run->segments;
    shard->step = run->step;
    shard->seed = run->seed;
    shard->first_token = run->first_token;
    int32_t *segment = (int32_t *)(staging + program->segment_place);
    memcpy(segment, run->segment, ((size_t)run->segments + 1) * sizeof(int32_t));
    lp_cuda_attention_order(run->segment, run->segments, run->plan->largest.rows[LP_ROWS_TOKENS],
                            segment + program->largest_segments + 1);
    for (int slot = 0; slot < run->plan->graph->input_count; slot++)
        if (program->inputs[slot].value)
            stage_input(&program->inputs[slot], staging, run);
    lp_device_deliver(LP_DEVICE_RUN, mark, program->arrival[mark], staging, program->block_size);
    lp_device_move(program->block, program->arrival[mark], program->block_size);
    lp_device_mark(LP_DEVICE_RUN, mark);
}

/* A piece by itself, by the kernel of its node. */
static void launch_piece(const lp_stage_piece *piece, const lp_cuda_run *run)
{
    lp_node node = *piece->node;
    for (int i = 0; i < node.op->output_count; i++)
        if (!lp_piece_makes(piece, i))
            node.outputs[i] = NULL;
    lp_cuda_kernel_of(node.op->id)(&node, run);
}

static void launch_stage(const lp_cuda_run *run, int i)
{
    const lp_cuda_stage *stage = &run->program->stages.all[i];
    lp_cuda_run mine = *run;
    mine.lane = run->program->slots[i].lane;
    if (failing)
        return;
    if (stage->kind == LP_STAGE_PACK) {
        if (lp_cuda_chain_runs(run))
            lp_cuda_pack_launch(&run->program->chains[i], &mine);
    } else if (stage->kind == LP_STAGE_CHAIN && lp_cuda_chain_runs(run))
        lp_cuda_chain_launch(&run->program->chains[i], &mine);
    else if (stage->kind == LP_STAGE_SUMS)
        lp_cuda_sums(stage->pieces, stage->count, &mine);
    else
        for (int p = 0; p < stage->count; p++)
            launch_piece(&stage->pieces[p], &mine);
}

/* All in one lane. */
static void launch_in_order(const lp_cuda_run *run)
{
    failing = false;
    for (int i = 0; i < run->program->stages.count; i++)
        launch_stage(run, i);
}

/* ---- launches that are timed --------------------------------------------------------------------------------- */

static bool makes_first_output(const lp_stage_piece *piece)
{
    for (int i = 0; i < piece->node->op->output_count; i++)
        if (piece->node->outputs[i])
            return lp_piece_makes(piece, i);
    return true;
}

/* What is packed is work of no node. */
static void show_launch(const lp_cuda_run *run, const lp_cuda_stage *stage, double seconds, int *number,
                        const lp_watch *watch)
{
    static const char *const kinds[] = {"node", "chain", "pack", "sums"};
    lp_launch_part *parts = run->program->parts;
    for (int p = 0; p < stage->count; p++) {
        parts[p].node = stage->pieces[p].number;
        parts[p].counts = stage->kind != LP_STAGE_PACK && makes_first_output(&stage->pieces[p]);
    }
    lp_launch launch = {(*number)++, kinds[stage->kind], parts, stage->count, seconds};
    watch->on_launch(watch->context, &launch);
}

/* One by one. In float there are no chains: their nodes are launched by themselves, and nothing is packed. */
static void launch_timed(const lp_cuda_run *run, const lp_watch *watch)
{
    const lp_cuda_stages *stages = &run->program->stages;
    bool chains = lp_cuda_chain_runs(run);
    int number = 0;
    failing = false;
    for (int i = 0; i < stages->count; i++) {
        const lp_cuda_stage *stage = &stages->all[i];
        bool apart = stage->kind == LP_STAGE_CHAIN && !chains;
        if (stage->kind == LP_STAGE_PACK && !chains)
            continue;
        for (int p = 0; apart && !failing && p < stage->count; p++) {
            lp_cuda_stage alone = {LP_STAGE_NODE, stage->moment, &stage->pieces[p], 1};
            lp_cuda_run mine = *run;
            mine.lane = run->program->slots[i].lane;
            lp_device_watch_start();
            launch_piece(alone.pieces, &mine);
            show_launch(run, &alone, lp_device_watch_stop(), &number, watch);
        }
        if (apart)
            continue;
        lp_device_watch_start();
        launch_stage(run, i);
        show_launch(run, stage, lp_device_watch_stop(), &number, watch);
    }
}

/* Every stage in its lane, and after those it waits for. */
static void launch_in_lanes(const lp_cuda_run *run)
{
    const lp_cuda_slot *slots = run->program->slots;
    failing = false;
    for (int i = 0; i < run->program->stages.count; i++) {
        lp_device_use(slots[i].lane);
        for (int k = 0; k < slots[i].wait_count; k++)
            lp_device_wait_for(slots[i].waits[k]);
        launch_stage(run, i);
        if (slots[i].awaited)
            lp_device_signal(i);
    }
    lp_device_use(0);
}

#ifdef LP_CUDA_EMULATED

/* What cannot be recorded runs in an order as far from that of the stages as the schedule allows: what the schedule forgot to
 * wait for, gives wrong results. Every lane has come as far as `done` says; each goes on as long as it may. */
static bool advance_lane(const lp_cuda_run *run, int lane, int done[LP_CUDA_LANES])
{
    const lp_cuda_slot *slots = run->program->slots;
    bool moved = false;
    for (int i = done[lane]; i < run->program->stages.count; i++) {
        for (int k = 0; slots[i].lane == lane && k < slots[i].wait_count; k++)
            if (slots[i].waits[k] >= done[slots[slots[i].waits[k]].lane])
                return moved;
        if (slots[i].lane == lane)
            launch_stage(run, i);
        moved = true;
        done[lane] = i + 1;
    }
    return moved;
}

static void launch_unrecorded(const lp_cuda_run *run)
{
    int done[LP_CUDA_LANES] = {};
    failing = false;
    for (bool moved = true; moved;) {
        moved = false;
        for (int lane = LP_CUDA_LANES - 1; lane >= 0; lane--)
            moved = advance_lane(run, lane, done) || moved;
    }
}

#else

static void launch_unrecorded(const lp_cuda_run *run)
{
    launch_in_order(run);
}

#endif

/* watch: NULL where nobody wants to know. */
static void run_program(const lp_run *run, const lp_watch *watch)
{
    if (lp_device_problem())
        return;
    lp_cuda_program *program = find(run);
    if (!program) {
        lose("a step's inputs");
        return;
    }
    upload(program, run);
    lp_run there = *run;
    there.inputs = program->data;
    lp_cuda_run launched = {&there,
                            (const lp_cuda_shard *)program->block,
                            (const int32_t *)(program->block + program->segment_place),
                            program->largest_segments,
                            0,
                            program};
    /* The first run finds out how much scratch there must be; the second records. */
    bool first = program->runs == 0;
    if (!first && !watch && !program->recording && lp_device_record_begin()) {
        launch_in_lanes(&launched);
        program->recording = lp_device_record_end();
    }
    if (watch)
        launch_timed(&launched, watch);
    else if (first)
        launch_in_order(&launched);
    else if (program->recording)
        lp_device_replay(program->recording);
    else
        launch_unrecorded(&launched);
    program->runs++;
}

void lp_cuda_program_run(const lp_run *run)
{
    run_program(run, NULL);
}

void lp_cuda_program_time(const lp_run *run, const lp_watch *watch)
{
    run_program(run, watch);
}

lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids)
{
    const input *mine = &run->program->inputs[ids->slot];
    return lp_cuda_list_view(&mine->layout, run->program->block + mine->list_place);
}

void *lp_cuda_scratch(const lp_cuda_run *run, size_t size)
{
    lp_cuda_program *program = run->program;
    void **scratch = &program->scratch[run->lane];
    size_t *room = &program->scratch_size[run->lane];
    if (size <= *room && *scratch)
        return *scratch;
    lp_device_sync(); /* nodes before this one may still use it */
    lp_device_free(*scratch);
    *scratch = lp_device_alloc(size);
    *room = *scratch ? size : 0;
    if (!*scratch)
        lose("the scratch of a step");
    return *scratch;
}

void *lp_cuda_kept(const lp_cuda_run *run, const lp_value *beside, size_t size)
{
    lp_cuda_program *program = run->program;
    for (const kept_memory *mine = program->kept; mine; mine = mine->next)
        if (mine->beside == beside)
            return mine->data;
    kept_memory *mine = size ? (kept_memory *)lp_arena_alloc(&program->arena, sizeof *mine) : NULL;
    void *data = mine ? lp_device_alloc(size) : NULL;
    if (!data)
        return NULL;
    mine->beside = beside;
    mine->data = data;
    mine->next = program->kept;
    program->kept = mine;
    return data;
}

void lp_cuda_clear(const lp_cuda_run *run, void *data, size_t size)
{
    (void)run;
    lp_device_clear(data, size);
}
