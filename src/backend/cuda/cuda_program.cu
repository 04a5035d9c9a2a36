/* cuda_program.cu: launches the stages of a step, and captures them once into CUDA graphs that later steps replay.
 *
 * One upload (cuda_upload.h) brings all host data of a run: the host fills it in pinned memory and copies it while the device may still
 * work on earlier shards. The uploads form a ring. Each ring entry has a captured graph of its own that reads the upload in place:
 * copying it to a common address would delay the start of every step.
 */
#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_attention_wide.h"
#include "backend/cuda/cuda_upload.h"
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_linear.h"
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_steps.h"

enum { MAX_PROGRAMS = 16 };

/* Uploads, so that the host may run some steps ahead. */
enum { RING = 4 };
typedef struct ring_entry {
    char *staging, *uploaded; /* the upload in pinned host memory, and in device memory */
    cudaEvent_t released;     /* after the last launch that reads it */
    void **inputs;            /* by slot, on the device */
    cudaGraphExec_t captured; /* graph that reads this upload; NULL: not captured yet */
    const lp_adam *adam;      /* whose step the graph contains; NULL: none */
} ring_entry;

/* Device memory of a program. key: the value that it is attached to, or the stream whose scratch it is; NULL: neither. */
typedef struct device_block {
    struct device_block *next;
    void *data;
    size_t size;
    const void *key;
} device_block;

typedef struct lp_cuda_program {
    struct lp_cuda_program *next;
    lp_cuda_device *device;
    lp_run key;        /* the first run; the program serves runs with the same plan, buffers and precision */
    lp_cuda_run sizes; /* of all runs: without the data of one */
    lp_cuda_upload upload;
    ring_entry ring[RING];
    uint64_t runs;
    lp_cuda_stages stages;
    lp_cuda_dispatch *dispatch; /* cuda_schedule.h */
    lp_cuda_copies copies;
    device_block *blocks;
    bool capturing; /* launches go to a CUDA graph */
    lp_arena arena; /* owns the program itself */
} lp_cuda_program;

/* NULL when out of memory. */
static device_block *add_block(lp_cuda_program *program, const void *key, size_t size)
{
    device_block *block = (device_block *)lp_arena_alloc(&program->arena, sizeof *block);
    void *data = block ? lp_device_alloc(program->device, size) : NULL;
    if (!data)
        return NULL;
    *block = {program->blocks, data, size, key};
    return program->blocks = block;
}

static void free_event(lp_cuda_device *device, cudaEvent_t event)
{
    if (event)
        lp_cuda_check(device, cudaEventDestroy(event), "freeing an event");
}

static void free_captured(lp_cuda_device *device, ring_entry *entry)
{
    if (entry->captured)
        lp_cuda_check(device, cudaGraphExecDestroy(entry->captured), "freeing a captured step");
    entry->captured = NULL;
}

static void release(lp_cuda_program *program)
{
    lp_cuda_device *device = program->device;
    lp_device_sync(device);
    lp_device_pinned_free(device, program->ring[0].staging);
    for (int i = 0; i < RING; i++) {
        free_captured(device, &program->ring[i]);
        free_event(device, program->ring[i].released);
    }
    for (int i = 0; program->dispatch && i < program->stages.count + 2; i++)
        free_event(device, program->dispatch[i].event);
    lp_device_free(device, program->copies.memory);
    for (device_block *block = program->blocks; block; block = block->next)
        lp_device_free(device, block->data);
    lp_arena arena = program->arena;
    lp_arena_clear(&arena);
}

/* Keeps at most MAX_PROGRAMS: the other buffers of runs may change while the work buffer stays. */
void lp_cuda_program_drop(lp_cuda_device *device, const void *work)
{
    int kept = 0;
    for (lp_cuda_program **link = &device->programs; *link;) {
        lp_cuda_program *program = *link;
        if (program->key.work != work && kept++ < MAX_PROGRAMS) {
            link = &program->next;
        } else {
            *link = program->next;
            release(program);
        }
    }
}

/* ---- building a program -------------------------------------------------------------------------------------- */

static lp_cuda_run run_at(lp_cuda_program *program, const ring_entry *entry, lp_run *run)
{
    lp_cuda_run mine = program->sizes;
    run->inputs = entry->inputs;
    mine.run = run;
    mine.shard = (const lp_cuda_shard *)entry->uploaded;
    mine.segment = (const int32_t *)(entry->uploaded + program->upload.segment_offset);
    mine.copies = program->copies.of ? &program->copies : NULL;
    return mine;
}

/* The steps of fused kernels, which are the same in every run with this ring entry. */
static void build_steps(lp_cuda_program *program, const ring_entry *entry, const lp_run *run)
{
    const lp_cuda_stages *stages = &program->stages;
    lp_step *steps = (lp_step *)(entry->staging + program->upload.steps_offset);
    lp_run on_device = *run;
    lp_cuda_run sizes = run_at(program, entry, &on_device);
    for (const lp_cuda_stage *stage = stages->all; stage < stages->all + stages->count; stage++)
        if (stage->type == LP_STAGE_FUSED)
            lp_cuda_steps_build(stages, stage->parts, stage->count, true, &sizes, steps + stage->first_step);
}

/* False when out of memory. */
static bool build_ring(lp_cuda_program *program, const lp_run *run)
{
    lp_cuda_device *device = program->device;
    size_t size = program->upload.size, slots = (size_t)program->upload.input_count + 1;
    char *staging = (char *)lp_device_pinned(device, RING * size);
    device_block *uploaded = add_block(program, NULL, RING * size);
    device_block *weights = add_block(program, NULL, program->stages.packed_size * sizeof(float));
    program->ring[0].staging = staging;
    bool good = staging && uploaded && weights;
    lp_device_sync(device); /* the copy stream does not wait for the zeroing of new memory */
    for (int i = 0; good && i < RING; i++) {
        ring_entry *entry = &program->ring[i];
        entry->staging = staging + i * size;
        entry->uploaded = (char *)uploaded->data + i * size;
        entry->inputs = (void **)lp_arena_alloc(&program->arena, slots * sizeof *entry->inputs);
        good = entry->inputs && cudaEventCreateWithFlags(&entry->released, cudaEventDisableTiming) == cudaSuccess;
        for (int slot = 0; good && slot < program->upload.input_count; slot++)
            entry->inputs[slot] = entry->uploaded + program->upload.inputs[slot].offset;
        program->stages.weights = (float *)weights->data;
        if (good)
            build_steps(program, entry, run);
    }
    return good;
}

static bool build(lp_cuda_program *program, const lp_run *run)
{
    const lp_graph *graph = run->plan->graph;
    lp_arena *arena = &program->arena;
    lp_cuda_stages *stages = &program->stages;
    lp_cuda_run sizes = program->sizes;
    sizes.run = run;
    /* An unscheduled plan reuses bytes in node order, so its nodes must run in that order. */
    return lp_cuda_stages_build(graph, !run->plan->scheduled, run->precision != LP_PRECISION_FP32,
                                run->precision == LP_PRECISION_BF16, arena, stages) &&
           (program->dispatch = lp_cuda_schedule(run->plan, stages, arena)) &&
           lp_cuda_copies_plan(&program->copies, stages, &sizes, arena) &&
           lp_cuda_upload_plan(&program->upload, &sizes, (size_t)stages->step_count * sizeof(lp_step), arena) &&
           build_ring(program, run);
}

/* NULL when out of memory. */
static lp_cuda_program *create(lp_cuda_device *device, const lp_run *run)
{
    lp_arena arena = {};
    lp_cuda_program *program = (lp_cuda_program *)lp_arena_alloc(&arena, sizeof *program);
    if (!program)
        return NULL;
    program->arena = arena;
    program->device = device;
    program->key = *run;
    program->sizes = {device, NULL, NULL, NULL, 0, 0, program, &program->upload, NULL, 0};
    program->sizes.largest_segments = (run->segments + 31) / 32 * 32; /* serves later runs with a few more */
    if (!build(program, run)) {
        release(program);
        return NULL;
    }
    lp_cuda_program_drop(device, NULL);
    program->next = device->programs;
    return device->programs = program;
}

static bool matches(const lp_cuda_program *program, const lp_run *run)
{
    const lp_run *key = &program->key;
    return key->plan == run->plan && key->work == run->work && key->parameters == run->parameters &&
           key->gradients == run->gradients && key->row_gradients == run->row_gradients &&
           key->precision == run->precision && program->sizes.largest_segments >= run->segments;
}

/* The program of a run; NULL after an error of the device. */
static lp_cuda_program *find(lp_cuda_device *device, const lp_run *run)
{
    const lp_graph *graph = run->plan->graph;
    lp_cuda_program *program = device->programs;
    while (program && !matches(program, run))
        program = program->next;
    for (int i = 0; !program && i < graph->node_count; i++)
        if (!lp_cuda_kernel_of(graph->nodes[i]))
            lp_device_problem_set(device, graph->nodes[i]->op->name, "this op has no kernel for the GPU");
    if (lp_device_problem(device))
        return NULL;
    if (!program && !(program = create(device, run)))
        lp_device_problem_set(device, "a step's inputs");
    return program;
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

lp_cuda_kernel lp_cuda_kernel_of(const lp_node *node)
{
#define LP_CUDA_ADDRESS(id, name, cpu) lp_cuda_##name,
    static const lp_cuda_kernel own[LP_OP_COUNT] = {LP_OPS(LP_CUDA_ADDRESS)};
    const lp_cuda_rule *rule = lp_cuda_rule_of(node);
    bool by_row = rule->step.role[0] != LP_ROLE_NONE && !lp_step_input(node, LP_ROLE_WEIGHT);
    return by_row                                      ? lp_cuda_row_node
           : rule->reduction.type != LP_REDUCTION_NONE ? lp_cuda_reduce_node
                                                       : own[node->op->id];
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

static void launch_stage(const lp_cuda_run *run, const lp_cuda_stage *stage)
{
    if (stage->type == LP_STAGE_FUSED)
        lp_cuda_fused_launch(stage, run);
    else if (stage->type == LP_STAGE_REDUCTION)
        lp_cuda_reduce(stage->parts, stage->count, run);
    else if (stage->type == LP_STAGE_ROWS)
        lp_cuda_row_chain(&run->program->stages, stage->parts, stage->count, run);
    else if (stage->type == LP_STAGE_PRODUCT)
        lp_cuda_products(stage->parts, stage->count, run);
    else if (stage->type == LP_STAGE_LOSS && stage->count == 2) {
        lp_node loss = node_of(&stage->parts[0]), gradient = node_of(&stage->parts[1]);
        lp_cuda_sampled_loss_fused(&loss, &gradient, run);
    } else {
        for (int p = 0; p < stage->count; p++) {
            lp_node node = node_of(&stage->parts[p]);
            lp_cuda_kernel wide = lp_cuda_attention_wide_of(&node, run->run->precision == LP_PRECISION_BF16,
                                                            run->device->shared);
            (wide ? wide : lp_cuda_kernel_of(&node))(&node, run);
        }
    }
    lp_cuda_copies_after(stage, run);
    lp_cuda_pack(&run->program->stages, run->stage, run);
}

static void report_launch(const lp_cuda_run *run, const lp_cuda_stage *stage, const lp_profiler *profiler)
{
    static const char *const types[] = {"node", "fused", "reduction", "rows", "product", NULL};
#define LOSS_NAME(id, kernel, name, ...) name,
    static const char *const losses[] = {LP_SAMPLED_LOSSES(LOSS_NAME)};
    int loss = stage->parts[0].node->attributes.loss - LP_LOSS_BCE;
    const char *type = types[stage->type] ? types[stage->type] : losses[loss];
    lp_launch_part parts[LP_STAGE_PARTS];
    lp_launch launch = {run->stage, type, parts, stage->count, lp_device_timer_stop(run->device)};
    for (int p = 0; p < stage->count; p++) {
        parts[p].node = stage->parts[p].number;
        unsigned present = lp_outputs_of(stage->parts[p].node), first = present & (~present + 1);
        parts[p].counts = !first || first & stage->parts[p].outputs;
    }
    profiler->on_launch(profiler->context, &launch);
}

/* While capturing, stages run on their streams, after those that they wait for; otherwise in their order, on stream 0. With a profiler
 * each is timed. */
static void launch_all(lp_cuda_run run, const lp_train_step *train_step, const lp_profiler *profiler)
{
    lp_cuda_program *program = run.program;
    const char *what = "capturing a step";
    int count = program->stages.count;
    for (int i = 0; i < count + 2; i++) {
        lp_cuda_dispatch *own = &program->dispatch[i];
        const lp_cuda_stage *stage = i > 0 && i <= count ? &program->stages.all[i - 1] : NULL;
        run.stage = i - 1;
        run.stream = own->stream;
        run.device->current = program->capturing ? own->stream : 0;
        cudaStream_t stream = run.device->streams[run.device->current];
        for (int k = 0; program->capturing && k < own->wait_count; k++)
            lp_cuda_check(run.device, cudaStreamWaitEvent(stream, program->dispatch[own->waits[k]].event, 0), what);
        if (profiler && stage)
            lp_device_timer_start(run.device);
        if (lp_device_problem(run.device)) /* such as scratch memory that is too large */
            stage = NULL;
        else if (stage)
            launch_stage(&run, stage);
        else if (i == 0) {
            lp_cuda_copies_begin(&run);
            lp_cuda_pack(&program->stages, -1, &run);
        } else if (train_step)
            lp_cuda_adam_launch(&run, train_step,
                                (const lp_cuda_adam_args *)((const char *)run.shard + program->upload.adam_offset));
        if (profiler && stage)
            report_launch(&run, stage, profiler);
        if (program->capturing && own->signals && !own->event)
            lp_cuda_check(run.device, cudaEventCreateWithFlags(&own->event, cudaEventDisableTiming), what);
        if (program->capturing && own->signals)
            lp_cuda_check(run.device, cudaEventRecord(own->event, stream), what);
    }
    run.device->current = 0;
}

/* Captures the step for this ring entry, unless that is done. False where it cannot be captured. */
static bool capture(const lp_cuda_run *run, ring_entry *entry, const lp_train_step *train_step)
{
    const lp_adam *adam = train_step ? train_step->adam : NULL;
    cudaStream_t stream = run->device->streams[0];
    cudaGraph_t graph = NULL;
    if (entry->captured && entry->adam == adam)
        return true;
    free_captured(run->device, entry);
    entry->adam = adam;
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return false;
    run->program->capturing = true;
    launch_all(*run, train_step, NULL);
    run->program->capturing = false;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&entry->captured, graph, cudaGraphInstantiateFlagUseNodePriority);
    lp_cuda_check(run->device, error, "capturing a step");
    if (graph)
        lp_cuda_check(run->device, cudaGraphDestroy(graph), "capturing a step");
    return entry->captured != NULL;
}

void lp_cuda_program_run(lp_cuda_device *device, const lp_run *given, const lp_train_step *train_step,
                         const lp_profiler *profiler)
{
    lp_run resolved = *given, *run = &resolved;
    if (run->precision == LP_PRECISION_BF16 && !lp_cuda_bf16_supported(device))
        run->precision = LP_PRECISION_TF32;
    lp_cuda_program *program = find(device, run);
    if (!program)
        return;
    ring_entry *entry = &program->ring[program->runs++ % RING];
    lp_cuda_check(device, cudaEventSynchronize(entry->released), "running on the GPU");
    lp_cuda_upload_fill(&program->upload, run, train_step, entry->staging);
    lp_device_upload(device, entry->uploaded, entry->staging, program->upload.size);
    lp_run on_device = *run;
    lp_cuda_run launched = run_at(program, entry, &on_device);
    /* The first run allocates scratch memory, which a capture cannot. */
    if (!profiler && program->runs > 1 && capture(&launched, entry, train_step))
        lp_cuda_check(device, cudaGraphLaunch(entry->captured, device->streams[0]), "replaying a step");
    else
        launch_all(launched, train_step, profiler);
    lp_cuda_check(device, cudaEventRecord(entry->released, device->streams[0]), "recording an event");
}

/* ---- memory for launchers ------------------------------------------------------------------------------------ */

/* The memory of the key, which grows where it is too small; NULL when out of memory, or when size is 0 and there is none yet. */
static void *memory_of(const lp_cuda_run *run, const void *key, size_t size)
{
    device_block *block = run->program->blocks;
    while (block && block->key != key)
        block = block->next;
    if (!block && size)
        block = add_block(run->program, key, size);
    if (block && block->size < size) {
        lp_device_sync(run->device); /* earlier nodes may still use it */
        lp_device_free(run->device, block->data);
        block->data = lp_device_alloc(run->device, size);
        block->size = block->data ? size : 0;
    }
    if (size && !(block && block->data))
        lp_device_problem_set(run->device, "the memory of a step");
    return block ? block->data : NULL;
}

void *lp_cuda_scratch(const lp_cuda_run *run, size_t size)
{
    return memory_of(run, &run->device->streams[run->stream], size ? size : 1);
}

void *lp_cuda_side_buffer(const lp_cuda_run *run, const lp_value *value, size_t size)
{
    return memory_of(run, value, size);
}
