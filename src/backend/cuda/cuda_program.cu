/* cuda_program.cu: the loop over a step's stages, recorded once and replayed.
 *
 * What a run needs of the host comes in a block (cuda_block.h), which the host lays out in pinned memory and sends, in one copy, while the
 * device may still be busy with shards before. There are several places for blocks, used in turn, and a recording for each, which reads
 * it there: to move it to where one recording reads would take the device longer than the start of a step.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_block.h"
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_bce_loss.h"
#include "backend/cuda/cuda_program.h"
#include "backend/cuda/cuda_sums.h"

#include <stdlib.h>

enum { KEPT = 16, UNDER_WAY = LP_DEVICE_SIGNALS - 1 };

/* A place for blocks, and what is made for blocks in it. */
typedef struct block_place {
    char *staging, *block; /* on the host, and on the device */
    void **data;           /* by slot: on the device */
    lp_cuda_chain *chains; /* by stage */
    void *recording;
    const lp_adam *learns; /* whose step is recorded too */
} block_place;

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
    lp_cuda_block block;
    block_place places[LP_DEVICE_MARKS];
    char *staging, *blocks; /* of all places */
    int largest_segments;
    lp_cuda_stages stages;
    char *chain_programs; /* of all of them, on the device */
    float *packed;        /* the weights of their products */
    /* Scratch of the stages. */
    void *scratch[LP_CUDA_LANES];
    size_t scratch_size[LP_CUDA_LANES];
    kept_memory *kept;         /* what nodes leave for others */
    const lp_cuda_slot *slots; /* by stage */
    bool recording, under_way; /* under_way: a stage of the moment at hand is */
    lp_launch_part *parts;     /* room for those of one launch */
    uint64_t runs;
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
    for (int i = 0; i < LP_DEVICE_MARKS; i++)
        lp_device_record_free(program->places[i].recording);
    lp_device_pinned_free(program->staging);
    lp_device_free(program->blocks);
    lp_device_free(program->chain_programs);
    lp_device_free(program->packed);
    for (int i = 0; i < LP_CUDA_LANES; i++)
        lp_device_free(program->scratch[i]);
    for (kept_memory *mine = program->kept; mine; mine = mine->next)
        lp_device_free(mine->data);
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

/* The program of a stage, at the end of all; false when out of memory. */
static bool add_chain(const lp_cuda_program *program, int i, const lp_cuda_run *run, lp_cuda_chain *chain,
                      lp_buffer *all)
{
    const lp_cuda_stage *stage = &program->stages.all[i];
    if (stage->type == LP_STAGE_CHAIN) {
        chain_step steps[LP_CHAIN_STEPS];
        lp_cuda_chain_make(&program->stages, stage, run, program->packed, chain, steps);
        chain->place = all->size;
        return lp_buffer_add(all, steps, (size_t)stage->count * sizeof *steps);
    }
    chain_pack *packs = (chain_pack *)lp_alloc((size_t)stage->count, sizeof *packs);
    if (packs)
        lp_cuda_pack_make(&program->stages, stage, run, program->packed, chain, packs);
    chain->place = all->size;
    bool good = packs && lp_buffer_add(all, packs, (size_t)chain->count * sizeof *packs);
    lp_free(packs);
    return good;
}

static lp_cuda_run run_at(lp_cuda_program *program, const block_place *place, const lp_run *there)
{
    lp_cuda_run run = {there,
                       (const lp_cuda_shard *)place->block,
                       (const int32_t *)(place->block + program->block.segment_place),
                       program->largest_segments,
                       0,
                       program,
                       place->chains};
    return run;
}

/* Those of one place; false when out of memory. */
static bool add_chains(lp_cuda_program *program, block_place *place, const lp_run *run, lp_buffer *all)
{
    const lp_cuda_stages *stages = &program->stages;
    lp_run there = *run;
    there.inputs = place->data;
    lp_cuda_run launched = run_at(program, place, &there);
    bool good = true;
    for (int i = 0; good && i < stages->count; i++)
        if (stages->all[i].type == LP_STAGE_CHAIN || stages->all[i].type == LP_STAGE_PACK)
            good = add_chain(program, i, &launched, &place->chains[i], all);
    return good;
}

/* Programs of chains and packs, end to end, go to the device in one copy. */
static bool make_chains(lp_cuda_program *program, const lp_run *run)
{
    const lp_cuda_stages *stages = &program->stages;
    lp_buffer all = {};
    program->packed = (float *)lp_device_alloc((stages->packed_size + 1) * sizeof(float));
    bool good = program->packed != NULL;
    for (int i = 0; good && i < LP_DEVICE_MARKS; i++)
        good = add_chains(program, &program->places[i], run, &all);
    program->chain_programs = good ? (char *)lp_device_alloc(all.size + 1) : NULL;
    good = program->chain_programs != NULL;
    for (int i = 0; good && i < LP_DEVICE_MARKS * stages->count; i++) {
        lp_cuda_chain *chain = &program->places[i / stages->count].chains[i % stages->count];
        chain->program = program->chain_programs + chain->place;
    }
    if (good && all.size)
        lp_device_upload(program->chain_programs, all.data, all.size);
    lp_buffer_clear(&all);
    return good;
}

/* False when out of memory. */
static bool make_places(lp_cuda_program *program)
{
    int slots = program->plan->graph->input_count;
    program->staging = (char *)lp_device_pinned(LP_DEVICE_MARKS * program->block.size);
    program->blocks = (char *)lp_device_alloc(LP_DEVICE_MARKS * program->block.size);
    lp_device_sync(); /* what is delivered does not wait for the stream to have cleared it */
    bool good = program->staging && program->blocks;
    for (int i = 0; good && i < LP_DEVICE_MARKS; i++) {
        block_place *place = &program->places[i];
        size_t chains = (size_t)program->stages.count + 1;
        place->staging = program->staging + (size_t)i * program->block.size;
        place->block = program->blocks + (size_t)i * program->block.size;
        place->data = (void **)lp_arena_alloc(&program->arena, ((size_t)slots + 1) * sizeof *place->data);
        place->chains = (lp_cuda_chain *)lp_arena_alloc(&program->arena, chains * sizeof *place->chains);
        good = place->data && place->chains;
        for (int slot = 0; good && slot < slots; slot++)
            if (program->block.inputs[slot].value)
                place->data[slot] = place->block + program->block.inputs[slot].place;
    }
    return good;
}

static bool fill(lp_cuda_program *program, const lp_run *run)
{
    const lp_graph *graph = run->plan->graph;
    program->parts =
        (lp_launch_part *)lp_arena_alloc(&program->arena, ((size_t)graph->node_count + 1) * sizeof *program->parts);
    if (!program->parts)
        return false;
    lp_cuda_run sizes = {run, NULL, NULL, program->largest_segments, 0, NULL, NULL};
    /* A plan for nodes in their order lets values share bytes that would meet if they ran in another. */
    if (!lp_cuda_stages_make(graph, !run->plan->scheduled, &program->arena, &program->stages))
        return false;
    program->slots = lp_cuda_schedule(run->plan, &program->stages, lp_cuda_chain_runs(&sizes), &program->arena);
    if (!program->slots)
        return false;
    return lp_cuda_block_plan(&program->block, &sizes, &program->arena) && make_places(program) &&
           make_chains(program, run);
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

/* Lays out the block of a run, when its place is free, and sends it. */
static void send(lp_cuda_program *program, int mark, const lp_run *run, const lp_train_step *learning)
{
    const block_place *place = &program->places[mark];
    lp_device_wait(LP_DEVICE_RUN, mark);
    lp_cuda_block_fill(&program->block, run, learning, place->staging);
    lp_device_deliver(LP_DEVICE_RUN, mark, place->block, place->staging, program->block.size);
}

/* The node of a piece, without the outputs that others make. */
static lp_node node_of(const lp_stage_piece *piece)
{
    lp_node node = *piece->node;
    for (int i = 0; i < node.op->output_count; i++)
        if (!lp_piece_makes(piece, i))
            node.outputs[i] = NULL;
    return node;
}

/* A piece by itself, by the kernel of its node. */
static void launch_piece(const lp_stage_piece *piece, const lp_cuda_run *run)
{
    lp_node node = node_of(piece);
    lp_cuda_kernel_of(node.op->id)(&node, run);
}

static void launch_choice(const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    lp_node loss = node_of(&stage->pieces[0]), gradient = node_of(&stage->pieces[1]);
    lp_cuda_bce_loss_fused(&loss, &gradient, run);
}

static void launch_stage(const lp_cuda_run *run, int i)
{
    const lp_cuda_stage *stage = &run->program->stages.all[i];
    lp_cuda_run mine = *run;
    mine.lane = run->program->slots[i].lane;
    if (failing || lp_stage_left_out(stage, lp_cuda_chain_runs(run)))
        return;
    if (stage->type == LP_STAGE_PACK)
        lp_cuda_pack_launch(stage, &run->chains[i], &mine);
    else if (stage->type == LP_STAGE_CHAIN && lp_cuda_chain_runs(run))
        lp_cuda_chain_launch(&run->chains[i], &mine);
    else if (stage->type == LP_STAGE_SUMS)
        lp_cuda_sums(stage->pieces, stage->count, &mine);
    else if (stage->type == LP_STAGE_CHOICE && stage->count == 2)
        launch_choice(stage, &mine);
    else
        for (int p = 0; p < stage->count; p++)
            launch_piece(&stage->pieces[p], &mine);
}

/* After all stages; learning may be NULL. */
static void launch_learning(const lp_cuda_run *run, const lp_train_step *learning)
{
    if (learning && !failing)
        lp_cuda_adam_launch(learning,
                            (const lp_cuda_adam_args *)((const char *)run->shard + run->program->block.adam_place));
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

static int by_node(const void *a, const void *b)
{
    return ((const lp_launch_part *)a)->node - ((const lp_launch_part *)b)->node;
}

/* That a weight is packed is work of no node. */
static void show_launch(const lp_cuda_run *run, const lp_cuda_stage *stage, double seconds, int *number,
                        const lp_profiler *watch)
{
    static const char *const types[] = {"node", "chain", "pack", "sums", "choice"};
    lp_launch_part *parts = run->program->parts;
    for (int p = 0; p < stage->count; p++) {
        bool packed = stage->type == LP_STAGE_PACK && lp_piece_is_packed(&stage->pieces[p]);
        parts[p].node = stage->pieces[p].number;
        parts[p].counts = !packed && makes_first_output(&stage->pieces[p]);
    }
    qsort(parts, (size_t)stage->count, sizeof *parts, by_node);
    lp_launch launch = {(*number)++, types[stage->type], parts, stage->count, seconds};
    watch->on_launch(watch->context, &launch);
}

/* One by one. In float the nodes of chains are launched by themselves. */
static void launch_timed(const lp_cuda_run *run, const lp_profiler *watch)
{
    const lp_cuda_stages *stages = &run->program->stages;
    bool chains = lp_cuda_chain_runs(run);
    int number = 0;
    failing = false;
    for (int i = 0; i < stages->count; i++) {
        const lp_cuda_stage *stage = &stages->all[i];
        bool apart = stage->type == LP_STAGE_CHAIN && !chains;
        if (lp_stage_left_out(stage, chains))
            continue;
        for (int p = 0; apart && !failing && p < stage->count; p++) {
            lp_cuda_stage alone = {LP_STAGE_NODE, stage->moment, &stage->pieces[p], 1, false};
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

/* Every stage in its lane, and after those it waits for; the first lane waits for all in the end. */
static void launch_in_lanes(const lp_cuda_run *run)
{
    const lp_cuda_slot *slots = run->program->slots;
    bool *under_way = &run->program->under_way;
    failing = *under_way = false;
    run->program->recording = true;
    for (int i = 0; i < run->program->stages.count; i++) {
        const lp_cuda_stage *stage = &run->program->stages.all[i];
        *under_way = *under_way && stage->moment == stage[-1].moment;
        lp_device_use(slots[i].lane);
        for (int k = 0; k < slots[i].wait_count; k++)
            lp_device_wait_for(slots[i].waits[k]);
        if (*under_way && lp_piece_lazy(stage->type, stage->pieces))
            lp_device_wait_for(UNDER_WAY);
        launch_stage(run, i);
        if (slots[i].awaited)
            lp_device_signal(i);
    }
    run->program->recording = false;
    lp_device_join();
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

/* What a place is wanted for now may not be what it was recorded for: then it is recorded again. */
static bool recorded(const lp_cuda_run *run, block_place *place, const lp_train_step *learning)
{
    const lp_adam *learns = learning ? learning->adam : NULL;
    if (place->recording && place->learns == learns)
        return true;
    lp_device_record_free(place->recording);
    place->recording = NULL;
    place->learns = learns;
    if (run->program->stages.count < UNDER_WAY && lp_device_record_begin()) {
        launch_in_lanes(run);
        launch_learning(run, learning);
        place->recording = lp_device_record_end();
    }
    return place->recording != NULL;
}

/* learning and watch: NULL where there is none. */
static void run_program(const lp_run *run, const lp_train_step *learning, const lp_profiler *watch)
{
    if (lp_device_problem())
        return;
    lp_cuda_program *program = find(run);
    if (!program) {
        lose("a step's inputs");
        return;
    }
    int mark = (int)(program->runs % LP_DEVICE_MARKS);
    block_place *place = &program->places[mark];
    send(program, mark, run, learning);
    lp_run there = *run;
    there.inputs = place->data;
    lp_cuda_run launched = run_at(program, place, &there);
    /* The first run finds out how much scratch there must be; the ones after it are recorded. */
    bool first = program->runs == 0;
    if (watch) {
        launch_timed(&launched, watch);
    } else if (first) {
        launch_in_order(&launched);
        launch_learning(&launched, learning);
    } else if (recorded(&launched, place, learning)) {
        lp_device_replay(place->recording);
    } else {
        launch_unrecorded(&launched);
        launch_learning(&launched, learning);
    }
    lp_device_mark(LP_DEVICE_RUN, mark);
    program->runs++;
}

void lp_cuda_program_run(const lp_run *run)
{
    run_program(run, NULL, NULL);
}

void lp_cuda_program_learn(const lp_run *run, const lp_train_step *learning)
{
    if (learning->adam->shards != 1)
        lp_device_problem_set("the optimizer", "a batch must be one shard on a GPU");
    run_program(run, learning, NULL);
}

void lp_cuda_program_time(const lp_run *run, const lp_profiler *watch)
{
    run_program(run, NULL, watch);
}

lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids)
{
    const lp_cuda_input *mine = &run->program->block.inputs[ids->slot];
    return lp_cuda_list_view(&mine->layout, (const char *)run->shard + mine->list_place);
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

void lp_cuda_under_way(const lp_cuda_run *run)
{
    if (run->program->recording)
        lp_device_signal(UNDER_WAY);
    run->program->under_way = true;
}

void *lp_cuda_kept(const lp_cuda_run *run, const lp_value *beside, size_t size)
{
    lp_cuda_program *program = run->program;
    for (const kept_memory *mine = program->kept; mine; mine = mine->next)
        if (mine->beside == beside)
            return mine->data;
    if (!size)
        return NULL;
    kept_memory *mine = (kept_memory *)lp_arena_alloc(&program->arena, sizeof *mine);
    void *data = mine ? lp_device_alloc(size) : NULL;
    if (!data) {
        lose("what nodes of a step keep");
        return NULL;
    }
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
