/* program.c: builds the decoding program of a model. */
#include "serve/program.h"

#include "base/assert.h"
#include "graph/hoist.h"
#include "serve/decoder.h"

#include <pthread.h>
#include <string.h>

/* Elements of all tables that replace products with parameters (graph/hoist.h), at most. */
enum { HOISTED_ELEMENTS = 1 << 20 };

/* Elements of the item vectors that are transposed, at most: what fits a core's cache. */
enum { TRANSPOSED_ELEMENTS = 1 << 19 };

/* Rows of a run, at most: enough for products of matrices; and elements of its logits. */
enum { MOST_ROWS = 128, OUTPUT_ELEMENTS = 1 << 18 };

static lapse_status fail_memory(lapse_error *error, size_t size)
{
    return lp_fail_memory(error, "the decoding program of a model", size);
}

/* --------------------------------------------------------------------------------------- cached matrices ----- */

static void add_cached(lp_program *program, lp_value *value)
{
    bool listed = !value;
    for (int i = 0; i < program->cached_count; i++)
        listed |= program->cached[i] == value;
    if (listed)
        return;
    value->retained = true;
    program->cached[program->cached_count++] = value;
}

/* Grows the list to hold every value of the graph. */
static lapse_status reserve_cached(lp_program *program, lapse_error *error)
{
    size_t count = (size_t)program->network.graph.value_count;
    lp_value **cached = lp_grow(program->cached, count, sizeof *cached);
    if (!cached)
        return fail_memory(error, count * sizeof *cached);
    program->cached = cached;
    return LAPSE_OK;
}

/* Whether a value depends on the time of an event alone. A basis has as many columns as keys and values, and computing it takes less
 * time than reading it from memory that is not in a cache. */
static bool is_basis(const lp_value *value)
{
    return value && value->producer && value->producer->op->id == LP_OP_BASIS;
}

static void list_cached(lp_program *program)
{
    const lp_decode_state *decode = program->network.decode;
    for (int i = 0; decode && i < decode->cache_count; i++) {
        const lp_kv_cache *cache = &decode->caches[i];
        add_cached(program, cache->key);
        add_cached(program, cache->value);
        if (!is_basis(cache->basis))
            add_cached(program, cache->basis);
    }
    program->stored_count = program->cached_count;
    for (int i = 0; decode && i < decode->cache_count; i++)
        add_cached(program, decode->caches[i].basis);
}

/* ------------------------------------------------------------------------------------- order of the nodes ---- */

/* When a node runs: for a query; once for each event; for each event of the window, where its thread has had another; once. */
typedef enum stage { STAGE_QUERY, STAGE_ROWS, STAGE_WINDOW, STAGE_ONCE, STAGE_COUNT } stage;

static int node_index(const lp_graph *graph, const lp_node *node)
{
    int i = 0;
    while (i < graph->node_count && graph->nodes[i] != node)
        i++;
    return i;
}

static bool is_cached(const lp_program *program, const lp_value *value)
{
    for (int i = 0; i < program->cached_count; i++)
        if (program->cached[i] == value)
            return true;
    return false;
}

/* Marks the nodes that depend on parameters alone. Their outputs that other nodes read become inputs. */
static void mark_constant(lp_program *program, stage *stages)
{
    lp_graph *graph = &program->network.graph;
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        stages[i] = node->outputs[0] && lp_value_is_constant(node->outputs[0]) ? STAGE_ONCE : STAGE_QUERY;
    }
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; stages[i] != STAGE_ONCE && k < graph->nodes[i]->op->input_count; k++) {
            lp_value *value = graph->nodes[i]->inputs[k];
            if (value && value->producer && lp_value_is_constant(value))
                lp_cache_rows(graph, value);
        }
}

static void mark_producer(const lp_graph *graph, const lp_value *value, stage *stages, stage when)
{
    int producer = value && value->producer ? node_index(graph, value->producer) : graph->node_count;
    if (producer < graph->node_count && stages[producer] == STAGE_QUERY)
        stages[producer] = when;
}

/* Marks the nodes whose outputs are these cached matrices, and those that they depend on. */
static void mark_rows(const lp_program *program, int first, int end, stage *stages, stage when)
{
    const lp_graph *graph = &program->network.graph;
    for (int i = first; i < end; i++)
        mark_producer(graph, program->cached[i], stages, when);
    for (int i = graph->node_count - 1; i >= 0; i--)
        for (int k = 0; stages[i] == when && k < graph->nodes[i]->op->input_count; k++)
            mark_producer(graph, graph->nodes[i]->inputs[k], stages, when);
}

/* Sorts the nodes by stage, stably. */
static lapse_status order_nodes(lp_program *program, lapse_error *error)
{
    lp_graph *graph = &program->network.graph;
    size_t count = (size_t)graph->node_count;
    stage *stages = lp_alloc(count, sizeof *stages);
    lp_node **old = lp_alloc(count, sizeof *old);
    if (stages && old) {
        int done = 0, ends[STAGE_COUNT];
        mark_constant(program, stages);
        mark_rows(program, program->stored_count, program->cached_count, stages, STAGE_WINDOW);
        mark_rows(program, 0, program->stored_count, stages, STAGE_ROWS);
        memcpy(old, graph->nodes, count * sizeof *old);
        for (int wanted = STAGE_ONCE; wanted >= STAGE_QUERY; wanted--) {
            for (size_t i = 0; i < count; i++)
                if ((int)stages[i] == wanted)
                    graph->nodes[done++] = old[i];
            ends[wanted] = done;
        }
        program->constant_nodes = ends[STAGE_ONCE];
        program->window_nodes = ends[STAGE_WINDOW];
        program->cached_nodes = ends[STAGE_ROWS];
        LP_ASSERT(done == graph->node_count);
    }
    lapse_status status = stages && old ? LAPSE_OK : fail_memory(error, count * sizeof *old);
    lp_free(stages);
    lp_free(old);
    return status;
}

/* --------------------------------------------------------------------------------------------- constants ----- */

/* A value that a constant node computes for other nodes. */
static bool is_constant_output(const lp_program *program, const lp_value *value)
{
    return value && value->storage == LP_STORAGE_INPUT && value->producer && !is_cached(program, value);
}

static size_t constant_size(const lp_value *value)
{
    size_t size = (size_t)value->rows * (size_t)value->cols * lp_type_size(value->type, sizeof(float));
    LP_ASSERT(value->rows_of == LP_ROWS_FIXED);
    return (size + LP_ALIGN - 1) / LP_ALIGN * LP_ALIGN;
}

/* Runs the constant nodes, in memory of their own. */
static lapse_status run_constant(lp_program *program, lapse_error *error)
{
    const lp_backend *backend = program->backend;
    const lp_graph *graph = &program->network.graph;
    size_t size = 0, at = 0;
    for (int i = 0; i < program->constant_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->op->output_count; k++)
            if (is_constant_output(program, graph->nodes[i]->outputs[k]))
                size += constant_size(graph->nodes[i]->outputs[k]);
    program->inputs = lp_alloc((size_t)graph->input_count, sizeof *program->inputs);
    program->constants = lp_alloc(size, 1);
    char *work = backend->buffer_new(backend->context, program->plan.work_size),
         *scratch = backend->buffer_new(backend->context, program->plan.scratch_size);
    bool good = program->inputs && program->constants && work && scratch;
    for (int i = 0; good && i < program->constant_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->op->output_count; k++) {
            const lp_value *value = graph->nodes[i]->outputs[k];
            if (!is_constant_output(program, value))
                continue;
            program->inputs[value->slot] = program->constants + at;
            at += constant_size(value);
        }
    lp_run run = {.plan = &program->plan,
                  .work = work,
                  .scratch = scratch,
                  .inputs = program->inputs,
                  .parameters = program->model->parameters,
                  .end_node = program->constant_nodes};
    if (good && program->constant_nodes > 0)
        backend->run(backend->context, &run);
    backend->buffer_free(backend->context, work);
    backend->buffer_free(backend->context, scratch);
    return good ? LAPSE_OK : fail_memory(error, size + program->plan.work_size + program->plan.scratch_size);
}

/* Transposes the item vectors, which makes the scores of one state fastest. The stride is an odd number of 16-float vectors, so
 * that rows do not map to the same cache sets. */
static lapse_status transpose_items(lp_program *program, lapse_error *error)
{
    const lapse_model *model = program->model;
    size_t items = (size_t)model->config.event_types, dims = (size_t)lp_model_state_dims(&model->config);
    if (!lp_model_ranks(&model->config) || lp_model_score_rule(&model->config) || items * dims > TRANSPOSED_ELEMENTS)
        return LAPSE_OK;
    const float *table = model->parameters + program->network.items->offset;
    program->stride = ((items + 15) / 16 | 1) * 16;
    program->items = lp_alloc(dims * program->stride, sizeof *program->items);
    if (!program->items)
        return fail_memory(error, dims * program->stride * sizeof *program->items);
    for (size_t i = 0; i < items; i++)
        for (size_t c = 0; c < dims; c++)
            program->items[c * program->stride + i] = table[i * dims + c];
    return LAPSE_OK;
}

/* ----------------------------------------------------------------------------------------------- program ----- */

static lapse_status make_plan(lp_program *program, lapse_error *error)
{
    int64_t context = program->model->config.context;
    lp_extent largest = {.pairs = context * (context + 1) / 2, .longest = (int)context};
    largest.rows[LP_ROWS_TOKENS] = (int64_t)lp_program_tokens(program);
    largest.rows[LP_ROWS_PAST] = context;
    largest.rows[LP_ROWS_TARGETS] = program->rows;
    return lp_plan_make(&program->plan, &program->network.graph, &largest, program->backend->real_size, error);
}

static lapse_status make_network(lp_program *program, lapse_error *error)
{
    const lp_model_config *config = &program->model->config;
    program->incremental = config->row->incremental && config->row->incremental(config);
    if (program->incremental)
        LP_TRY(lp_network_build_decoder(&program->network, config, error));
    else
        LP_TRY(lp_network_build_evaluation(&program->network, config, true, error));
    program->samples = lp_network_samples(&program->network);
    LP_TRY(reserve_cached(program, error));
    list_cached(program);
    LP_TRY(lp_graph_hoist(&program->network.graph, HOISTED_ELEMENTS, error));
    LP_TRY(order_nodes(program, error));
    LP_TRY(make_plan(program, error));
    LP_TRY(run_constant(program, error));
    return transpose_items(program, error);
}

/* Mixes bytes into a hash, eight at a time. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, (const char *)data + i, size - i < sizeof word ? size - i : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

static uint64_t identity_of(const lapse_model *model)
{
    uint64_t hash = mix(1, model->config.row->name, strlen(model->config.row->name));
    hash = mix(hash, &model->config.context, sizeof model->config.context);
    for (int64_t i = 0; i < model->types.count; i++) {
        const char *name = lapse_model_event_type_name(model, i);
        hash = mix(hash, name, strlen(name) + 1);
    }
    for (int i = 0; i < model->tensor_count; i++)
        hash = mix(hash, model->tensors[i].data, lp_tensor_bytes(&model->tensors[i]));
    return hash;
}

static void free_program(void *data)
{
    lp_program *program = data;
    while (program->idle) {
        lp_decoder *decoder = program->idle;
        program->idle = decoder->next;
        lp_decoder_free(decoder);
    }
    lp_free(program->cached);
    lp_free(program->inputs);
    lp_free(program->constants);
    lp_free(program->items);
    lp_graph_clear(&program->network.graph);
    lp_free(program);
}

static lapse_status make_program(const lapse_model *model, lp_program **program, lapse_error *error)
{
    lp_program *made = lp_alloc(1, sizeof *made);
    if (!made)
        return fail_memory(error, sizeof *made);
    int most = 1 + OUTPUT_ELEMENTS / (model->config.event_types + 1);
    *made = (lp_program){.model = model, .backend = lp_backend_find("cpu"), .samples = 1};
    made->identity = identity_of(model);
    bool small = lp_model_ranks(&model->config) || model->config.of_times; /* outputs of a row */
    made->rows = most < MOST_ROWS && !small ? most : MOST_ROWS;
    lapse_status status = lp_model_is_network(&model->config) ? make_network(made, error) : LAPSE_OK;
    if (status != LAPSE_OK) {
        free_program(made);
        return status;
    }
    *program = made;
    return LAPSE_OK;
}

lapse_status lp_program_of(const lapse_model *model, lp_program **program, lapse_error *error)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    lapse_model *owner = (lapse_model *)(uintptr_t)model;
    *program = __atomic_load_n(&owner->program, __ATOMIC_ACQUIRE);
    if (*program)
        return LAPSE_OK;
    pthread_mutex_lock(&making);
    lapse_status status = LAPSE_OK;
    *program = owner->program;
    if (!*program && (status = make_program(model, program, error)) == LAPSE_OK) {
        owner->program_free = free_program;
        __atomic_store_n(&owner->program, *program, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&making);
    return status;
}
