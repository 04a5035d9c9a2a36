/* cuda_program.cu: launches the stages of a step, and captures them once into CUDA graphs that later steps replay.
 *
 * One upload (cuda_upload.h) brings all host data of a run: the host fills it in pinned memory and copies it while the device may still
 * work on earlier shards. The uploads form a ring. Each ring entry has a captured graph of its own that reads the upload in place:
 * copying it to a common address would delay the start of every step.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_upload.h"
#include "backend/cuda/cuda_sampled_loss.h"
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_linear.h"
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_program.h"
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_row_chain.h"

#include <stdlib.h>

enum { MAX_PROGRAMS = 16, RELEASE_EVENT = LP_DEVICE_EVENTS - 1 };

/* An entry of the ring of uploads. */
typedef struct ring_entry {
    char *staging, *uploaded; /* pinned host memory, and device memory */
    void **data;              /* inputs by slot, on the device */
    lp_cuda_fused *fused;     /* by stage */
    void *captured;           /* CUDA graph that reads this upload; NULL: not captured yet */
    const lp_adam *adam;      /* whose step the graph contains; NULL: none */
} ring_entry;

/* Device memory attached to a value (lp_cuda_side_buffer). */
typedef struct side_buffer {
    struct side_buffer *next;
    int note;
    const lp_value *value;
    void *data;
} side_buffer;

typedef struct lp_cuda_program {
    struct lp_cuda_program *next;
    lp_cuda_device *device;
    /* Key: the runs that this program serves. */
    const lp_plan *plan;
    const void *work, *parameters, *gradients, *row_gradients;
    lp_precision precision;
    int largest_segments;
    lp_cuda_upload upload;
    ring_entry ring[LP_DEVICE_RING];
    char *staging, *uploads; /* of all ring entries */
    lp_cuda_stages stages;
    const lp_cuda_dispatch *dispatch; /* by stage */
    char *fused_steps;                /* steps and packed weights of all ring entries, on the device */
    float *packed;                    /* packed weights of the fused products */
    lp_cuda_copies copies;
    void *scratch[LP_CUDA_STREAMS];
    size_t scratch_size[LP_CUDA_STREAMS];
    side_buffer *side_buffers;
    bool out_of_memory;    /* during the current launches: later stages are not launched */
    bool capturing;        /* launches go to a CUDA graph */
    bool released;         /* RELEASE_EVENT was recorded in the current level */
    lp_launch_part *parts; /* scratch of report_launch */
    uint64_t runs;
    lp_arena arena; /* owns the program itself */
} lp_cuda_program;

static void fail_memory(lp_cuda_program *program, const char *what)
{
    lp_device_problem_set(program->device, what, "there is not enough memory on the GPU");
    program->out_of_memory = true;
}

static void release(lp_cuda_program *program)
{
    lp_cuda_device *device = program->device;
    lp_device_sync(device);
    for (int i = 0; i < LP_DEVICE_RING; i++)
        lp_device_graph_free(device, program->ring[i].captured);
    lp_device_pinned_free(device, program->staging);
    lp_device_free(device, program->uploads);
    lp_device_free(device, program->fused_steps);
    lp_device_free(device, program->packed);
    lp_device_free(device, program->copies.memory);
    for (int i = 0; i < LP_CUDA_STREAMS; i++)
        lp_device_free(device, program->scratch[i]);
    for (side_buffer *mine = program->side_buffers; mine; mine = mine->next)
        lp_device_free(device, mine->data);
    lp_arena arena = program->arena;
    lp_arena_clear(&arena);
}

void lp_cuda_program_drop(lp_cuda_programs *programs, const void *work)
{
    for (lp_cuda_program **link = &programs->newest; *link;) {
        lp_cuda_program *program = *link;
        if (program->work == work) {
            *link = program->next;
            release(program);
        } else {
            link = &program->next;
        }
    }
}

/* Bounds the memory of programs whose other buffers change while the work buffer stays. */
static void drop_oldest(lp_cuda_programs *programs)
{
    int count = 0;
    for (lp_cuda_program **link = &programs->newest; *link; link = &(*link)->next)
        if (++count > MAX_PROGRAMS) {
            lp_cuda_program *program = *link;
            *link = program->next;
            release(program);
            return;
        }
}

/* ---- building a program -------------------------------------------------------------------------------------- */

/* Appends the steps of a fused kernel, or the weights of a pack, to `all`. False when out of memory. */
static bool add_fused(const lp_cuda_program *program, int i, const lp_cuda_run *run, lp_cuda_fused *one, lp_buffer *all)
{
    const lp_cuda_stage *stage = &program->stages.all[i];
    if (stage->type == LP_STAGE_FUSED) {
        fused_step steps[LP_FUSED_STEPS];
        lp_cuda_fused_build(&program->stages, stage, run, program->packed, one, steps);
        one->offset = all->size;
        return lp_buffer_add(all, steps, (size_t)stage->count * sizeof *steps);
    }
    packed_weight *packs = (packed_weight *)lp_alloc((size_t)stage->count, sizeof *packs);
    if (packs)
        lp_cuda_pack_build(&program->stages, stage, run, program->packed, one, packs);
    one->offset = all->size;
    bool good = packs && lp_buffer_add(all, packs, (size_t)one->count * sizeof *packs);
    lp_free(packs);
    return good;
}

static lp_cuda_run run_at(lp_cuda_program *program, const ring_entry *entry, const lp_run *on_device)
{
    lp_cuda_run run = {program->device,
                       on_device,
                       (const lp_cuda_shard *)entry->uploaded,
                       (const int32_t *)(entry->uploaded + program->upload.segment_offset),
                       program->largest_segments,
                       0,
                       program,
                       entry->fused,
                       program->copies.of ? &program->copies : NULL,
                       0};
    return run;
}

/* All of one ring entry. False when out of memory. */
static bool add_fused_of_entry(lp_cuda_program *program, ring_entry *entry, const lp_run *run, lp_buffer *all)
{
    const lp_cuda_stages *stages = &program->stages;
    lp_run on_device = *run;
    on_device.inputs = entry->data;
    lp_cuda_run launched = run_at(program, entry, &on_device);
    bool good = true;
    for (int i = 0; good && i < stages->count; i++)
        if (stages->all[i].type == LP_STAGE_FUSED || stages->all[i].type == LP_STAGE_PACK) {
            launched.stage = i;
            good = add_fused(program, i, &launched, &entry->fused[i], all);
        }
    return good;
}

/* Uploads the steps of all fused kernels and packs in one copy. */
static bool build_fused(lp_cuda_program *program, const lp_run *run)
{
    const lp_cuda_stages *stages = &program->stages;
    lp_buffer all = {};
    program->packed = (float *)lp_device_alloc(program->device, (stages->packed_size + 1) * sizeof(float));
    bool good = program->packed != NULL;
    for (int i = 0; good && i < LP_DEVICE_RING; i++)
        good = add_fused_of_entry(program, &program->ring[i], run, &all);
    program->fused_steps = good ? (char *)lp_device_alloc(program->device, all.size + 1) : NULL;
    good = program->fused_steps != NULL;
    for (int i = 0; good && i < LP_DEVICE_RING * stages->count; i++) {
        lp_cuda_fused *one = &program->ring[i / stages->count].fused[i % stages->count];
        one->steps = program->fused_steps + one->offset;
    }
    if (good && all.size)
        lp_device_upload(program->device, program->fused_steps, all.data, all.size);
    lp_buffer_clear(&all);
    return good;
}

/* False when out of memory. */
static bool build_ring(lp_cuda_program *program)
{
    int slots = program->plan->graph->input_count;
    program->staging = (char *)lp_device_pinned(program->device, LP_DEVICE_RING * program->upload.size);
    program->uploads = (char *)lp_device_alloc(program->device, LP_DEVICE_RING * program->upload.size);
    lp_device_sync(program->device); /* the copy stream does not wait for the zeroing of new memory */
    bool good = program->staging && program->uploads;
    for (int i = 0; good && i < LP_DEVICE_RING; i++) {
        ring_entry *entry = &program->ring[i];
        size_t stages = (size_t)program->stages.count + 1;
        entry->staging = program->staging + (size_t)i * program->upload.size;
        entry->uploaded = program->uploads + (size_t)i * program->upload.size;
        entry->data = (void **)lp_arena_alloc(&program->arena, ((size_t)slots + 1) * sizeof *entry->data);
        entry->fused = (lp_cuda_fused *)lp_arena_alloc(&program->arena, stages * sizeof *entry->fused);
        good = entry->data && entry->fused;
        for (int slot = 0; good && slot < slots; slot++)
            if (program->upload.inputs[slot].value)
                entry->data[slot] = entry->uploaded + program->upload.inputs[slot].offset;
    }
    return good;
}

static bool build(lp_cuda_program *program, const lp_run *run)
{
    const lp_graph *graph = run->plan->graph;
    program->parts =
        (lp_launch_part *)lp_arena_alloc(&program->arena, ((size_t)graph->node_count + 1) * sizeof *program->parts);
    if (!program->parts)
        return false;
    lp_cuda_run sizes = {program->device, run, NULL, NULL, program->largest_segments, 0, NULL, NULL, NULL, 0};
    /* An unscheduled plan reuses bytes in node order, so its nodes must run in that order. */
    if (!lp_cuda_stages_build(graph, !run->plan->scheduled, &program->arena, &program->stages))
        return false;
    if (!lp_cuda_products_join(&sizes))
        lp_cuda_stages_split(&program->stages);
    program->dispatch = lp_cuda_schedule(run->plan, &program->stages, lp_cuda_fused_enabled(&sizes), &program->arena);
    if (!program->dispatch || !lp_cuda_copies_plan(&program->copies, &program->stages, lp_cuda_fused_enabled(&sizes),
                                                   &sizes, &program->arena))
        return false;
    return lp_cuda_upload_plan(&program->upload, &sizes, &program->arena) && build_ring(program) &&
           build_fused(program, run);
}

/* The name of an op of the graph that has no kernel; NULL: all have one. */
static const char *missing(const lp_graph *graph)
{
    for (int i = 0; i < graph->node_count; i++)
        if (!lp_cuda_kernel_of(graph->nodes[i]->op->id))
            return graph->nodes[i]->op->name;
    return NULL;
}

static lp_cuda_program *create(lp_cuda_programs *programs, const lp_run *run)
{
    const char *op = missing(run->plan->graph);
    if (op) {
        lp_device_problem_set(programs->device, op, "this op has no kernel for the GPU");
        return NULL;
    }
    lp_arena arena = {};
    lp_cuda_program *program = (lp_cuda_program *)lp_arena_alloc(&arena, sizeof *program);
    if (!program)
        return NULL;
    program->arena = arena;
    program->device = programs->device;
    program->plan = run->plan;
    program->work = run->work;
    program->parameters = run->parameters;
    program->gradients = run->gradients;
    program->row_gradients = run->row_gradients;
    program->precision = run->precision;
    program->largest_segments = (run->segments + 31) / 32 * 32; /* serves later runs with a few more */
    if (!build(program, run)) {
        release(program);
        return NULL;
    }
    program->next = programs->newest;
    programs->newest = program;
    drop_oldest(programs);
    return program;
}

static bool matches(const lp_cuda_program *program, const lp_run *run)
{
    return program->plan == run->plan && program->work == run->work && program->parameters == run->parameters &&
           program->gradients == run->gradients && program->row_gradients == run->row_gradients &&
           program->precision == run->precision && program->largest_segments >= run->segments;
}

static lp_cuda_program *find(lp_cuda_programs *programs, const lp_run *run)
{
    for (lp_cuda_program *program = programs->newest; program; program = program->next)
        if (matches(program, run))
            return program;
    return create(programs, run);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Fills and sends the upload of a run, once its ring entry is free. */
static void send(lp_cuda_program *program, int index, const lp_run *run, const lp_train_step *train_step)
{
    const ring_entry *entry = &program->ring[index];
    lp_device_ring_acquire(program->device, LP_DEVICE_RUN, index);
    lp_cuda_upload_fill(&program->upload, run, train_step, entry->staging);
    lp_device_upload_ahead(program->device, LP_DEVICE_RUN, index, entry->uploaded, entry->staging,
                           program->upload.size);
}

/* The node, without the outputs that other parts compute. */
static lp_node node_of(const lp_stage_part *part)
{
    lp_node node = *part->node;
    for (int i = 0; i < node.op->output_count; i++)
        if (!lp_part_computes(part, i))
            node.outputs[i] = NULL;
    return node;
}

static void launch_part(const lp_stage_part *part, const lp_cuda_run *run)
{
    lp_node node = node_of(part);
    lp_cuda_kernel_of(node.op->id)(&node, run);
}

static void launch_loss(const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    lp_node loss = node_of(&stage->parts[0]), gradient = node_of(&stage->parts[1]);
    lp_cuda_sampled_loss_fused(&loss, &gradient, run);
}

static void launch_stage(const lp_cuda_run *run, int i)
{
    const lp_cuda_stage *stage = &run->program->stages.all[i];
    lp_cuda_run mine = *run;
    mine.stream = run->program->dispatch[i].stream;
    mine.stage = i;
    if (run->program->out_of_memory || lp_stage_skipped(stage, lp_cuda_fused_enabled(run)))
        return;
    if (stage->type == LP_STAGE_PACK)
        lp_cuda_pack_launch(stage, &run->fused[i], &mine);
    else if (stage->type == LP_STAGE_FUSED && lp_cuda_fused_enabled(run))
        lp_cuda_fused_launch(&run->fused[i], &mine);
    else if (stage->type == LP_STAGE_REDUCTION)
        lp_cuda_reduce(stage->parts, stage->count, &mine);
    else if (stage->type == LP_STAGE_ROWS)
        lp_cuda_row_chain_launch(&run->program->stages, stage, &mine);
    else if (stage->type == LP_STAGE_PRODUCT)
        lp_cuda_products(stage->parts, stage->count, &mine);
    else if (stage->type == LP_STAGE_LOSS && stage->count == 2)
        launch_loss(stage, &mine);
    else
        for (int p = 0; p < stage->count; p++)
            launch_part(&stage->parts[p], &mine);
    lp_cuda_copies_after(stage, &mine);
}

/* After all stages; train_step may be NULL. */
static void launch_adam(const lp_cuda_run *run, const lp_train_step *train_step)
{
    if (train_step && !run->program->out_of_memory)
        lp_cuda_adam_launch(run, train_step,
                            (const lp_cuda_adam_args *)((const char *)run->shard + run->program->upload.adam_offset));
}

/* On the current stream, one after another. */
static void launch_in_order(const lp_cuda_run *run)
{
    run->program->out_of_memory = false;
    lp_cuda_copies_begin(run);
    for (int i = 0; i < run->program->stages.count; i++)
        launch_stage(run, i);
}

/* ---- profiling ----------------------------------------------------------------------------------------------- */

static bool computes_first_output(const lp_stage_part *part)
{
    for (int i = 0; i < part->node->op->output_count; i++)
        if (part->node->outputs[i])
            return lp_part_computes(part, i);
    return true;
}

static int by_node(const void *a, const void *b)
{
    return ((const lp_launch_part *)a)->node - ((const lp_launch_part *)b)->node;
}

/* Packing a weight counts as work of no node. */
static void report_launch(const lp_cuda_run *run, const lp_cuda_stage *stage, double seconds, int *number,
                          const lp_profiler *profiler)
{
    static const char *const types[] = {"node", "fused", "pack", "reduction", "rows", "product", NULL};
    static const char *const losses[] = {"bce", "bpr", "bpr-max", "top1-max"}; /* by lp_sampled_type */
    const char *type = types[stage->type] ? types[stage->type] : losses[stage->parts[0].node->attributes.sampled];
    lp_launch_part *parts = run->program->parts;
    for (int p = 0; p < stage->count; p++) {
        bool packed = stage->type == LP_STAGE_PACK && lp_part_is_packed(&stage->parts[p]);
        parts[p].node = stage->parts[p].number;
        parts[p].counts = !packed && computes_first_output(&stage->parts[p]);
    }
    qsort(parts, (size_t)stage->count, sizeof *parts, by_node);
    lp_launch launch = {(*number)++, type, parts, stage->count, seconds};
    profiler->on_launch(profiler->context, &launch);
}

/* Launches and times the stages one by one. In fp32 the nodes of a fused kernel are launched separately. */
static void launch_profiled(const lp_cuda_run *run, const lp_profiler *profiler)
{
    const lp_cuda_stages *stages = &run->program->stages;
    bool fused = lp_cuda_fused_enabled(run);
    int number = 0;
    run->program->out_of_memory = false;
    lp_cuda_copies_begin(run);
    for (int i = 0; i < stages->count; i++) {
        const lp_cuda_stage *stage = &stages->all[i];
        bool apart = stage->type == LP_STAGE_FUSED && !fused;
        if (lp_stage_skipped(stage, fused))
            continue;
        for (int p = 0; apart && !run->program->out_of_memory && p < stage->count; p++) {
            lp_cuda_stage alone = {LP_STAGE_NODE, stage->level, &stage->parts[p], 1, false};
            lp_cuda_run mine = *run;
            mine.stream = run->program->dispatch[i].stream;
            lp_device_timer_start(run->device);
            launch_part(alone.parts, &mine);
            report_launch(run, &alone, lp_device_timer_stop(run->device), &number, profiler);
        }
        if (apart)
            continue;
        lp_device_timer_start(run->device);
        launch_stage(run, i);
        report_launch(run, stage, lp_device_timer_stop(run->device), &number, profiler);
    }
}

/* ---- captured launches --------------------------------------------------------------------------------------- */

/* Launches every stage on its stream, after the stages it waits for. Stream 0 finally waits for all others. */
static void launch_on_streams(const lp_cuda_run *run)
{
    const lp_cuda_dispatch *dispatch = run->program->dispatch;
    bool *released = &run->program->released;
    run->program->out_of_memory = *released = false;
    run->program->capturing = true;
    lp_cuda_copies_begin(run);
    lp_device_fork_streams(run->device);
    for (int i = 0; i < run->program->stages.count; i++) {
        const lp_cuda_stage *stage = &run->program->stages.all[i];
        *released = *released && stage->level == stage[-1].level;
        lp_device_set_stream(run->device, dispatch[i].stream);
        for (int k = 0; k < dispatch[i].wait_count; k++)
            lp_device_wait_event(run->device, dispatch[i].waits[k]);
        if (*released && lp_part_low_priority(stage->type, stage->parts))
            lp_device_wait_event(run->device, RELEASE_EVENT);
        launch_stage(run, i);
        if (dispatch[i].signals)
            lp_device_record_event(run->device, i);
    }
    run->program->capturing = false;
    lp_device_join_streams(run->device);
}

#ifdef LP_CUDA_EMULATED

/* The emulation cannot capture. It runs the stages in an order as far from theirs as the schedule allows, so that a missing
 * dependency gives wrong results. done[s]: stages that stream s has passed; advances one stream as far as possible. */
static bool advance_stream(const lp_cuda_run *run, int stream, int done[LP_CUDA_STREAMS])
{
    const lp_cuda_dispatch *dispatch = run->program->dispatch;
    bool moved = false;
    for (int i = done[stream]; i < run->program->stages.count; i++) {
        for (int k = 0; dispatch[i].stream == stream && k < dispatch[i].wait_count; k++)
            if (dispatch[i].waits[k] >= done[dispatch[dispatch[i].waits[k]].stream])
                return moved;
        if (dispatch[i].stream == stream)
            launch_stage(run, i);
        moved = true;
        done[stream] = i + 1;
    }
    return moved;
}

static void launch_uncaptured(const lp_cuda_run *run)
{
    int done[LP_CUDA_STREAMS] = {};
    run->program->out_of_memory = false;
    lp_cuda_copies_begin(run);
    for (bool moved = true; moved;) {
        moved = false;
        for (int stream = LP_CUDA_STREAMS - 1; stream >= 0; stream--)
            moved = advance_stream(run, stream, done) || moved;
    }
}

#else

static void launch_uncaptured(const lp_cuda_run *run)
{
    launch_in_order(run);
}

#endif

/* Captures the step for this ring entry, unless that is done. False where it cannot be captured. */
static bool capture(const lp_cuda_run *run, ring_entry *entry, const lp_train_step *train_step)
{
    const lp_adam *adam = train_step ? train_step->adam : NULL;
    if (entry->captured && entry->adam == adam)
        return true;
    lp_device_graph_free(run->device, entry->captured);
    entry->captured = NULL;
    entry->adam = adam;
    if (run->program->stages.count < RELEASE_EVENT && lp_device_capture_begin(run->device)) {
        launch_on_streams(run);
        launch_adam(run, train_step);
        entry->captured = lp_device_capture_end(run->device);
    }
    return entry->captured != NULL;
}

void lp_cuda_program_run(lp_cuda_programs *programs, const lp_run *run, const lp_train_step *train_step,
                         const lp_profiler *profiler)
{
    lp_cuda_device *device = programs->device;
    if (train_step && train_step->adam->shards != 1)
        lp_device_problem_set(device, "the optimizer", "a batch must be one shard on a GPU");
    if (lp_device_problem(device))
        return;
    lp_cuda_program *program = find(programs, run);
    if (!program) {
        lp_device_problem_set(device, "a step's inputs", "there is not enough memory on the GPU");
        return;
    }
    int index = (int)(program->runs % LP_DEVICE_RING);
    ring_entry *entry = &program->ring[index];
    send(program, index, run, train_step);
    lp_run on_device = *run;
    on_device.inputs = entry->data;
    lp_cuda_run launched = run_at(program, entry, &on_device);
    if (profiler) {
        launch_profiled(&launched, profiler);
    } else if (program->runs == 0) { /* allocates scratch memory, which a capture cannot */
        launch_in_order(&launched);
        launch_adam(&launched, train_step);
    } else if (capture(&launched, entry, train_step)) {
        lp_device_graph_launch(device, entry->captured);
    } else {
        launch_uncaptured(&launched);
        launch_adam(&launched, train_step);
    }
    lp_device_ring_release(device, LP_DEVICE_RUN, index);
    program->runs++;
}

/* ---- memory for launchers ------------------------------------------------------------------------------------ */

lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids)
{
    const lp_cuda_input *mine = &run->program->upload.inputs[ids->slot];
    return lp_cuda_list_view(&mine->layout, (const char *)run->shard + mine->list_offset);
}

void *lp_cuda_scratch(const lp_cuda_run *run, size_t size)
{
    lp_cuda_program *program = run->program;
    void **scratch = &program->scratch[run->stream];
    size_t *capacity = &program->scratch_size[run->stream];
    if (size <= *capacity && *scratch)
        return *scratch;
    lp_device_sync(run->device); /* earlier nodes may still use it */
    lp_device_free(run->device, *scratch);
    *scratch = lp_device_alloc(run->device, size);
    *capacity = *scratch ? size : 0;
    if (!*scratch)
        fail_memory(program, "the scratch of a step");
    return *scratch;
}

void lp_cuda_release_low_priority(const lp_cuda_run *run)
{
    if (run->program->capturing)
        lp_device_record_event(run->device, RELEASE_EVENT);
    run->program->released = true;
}

void *lp_cuda_side_buffer(const lp_cuda_run *run, const lp_value *value, size_t size, int **note)
{
    lp_cuda_program *program = run->program;
    for (side_buffer *mine = program->side_buffers; mine; mine = mine->next)
        if (mine->value == value) {
            if (note)
                *note = &mine->note;
            return mine->data;
        }
    if (!size)
        return NULL;
    side_buffer *mine = (side_buffer *)lp_arena_alloc(&program->arena, sizeof *mine);
    void *data = mine ? lp_device_alloc(run->device, size) : NULL;
    if (!data) {
        fail_memory(program, "the side buffers of a step");
        return NULL;
    }
    mine->value = value;
    mine->data = data;
    mine->next = program->side_buffers;
    program->side_buffers = mine;
    if (note)
        *note = &mine->note;
    return data;
}
