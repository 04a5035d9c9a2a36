/* decoder.c: incremental decoding. The graph's nodes are ordered by what they depend on, so that each part of the work is a range
 * of nodes: parameters alone (run once), one event alone, earlier events through attention, the query. */
#include "serve/decoder.h"

#include "base/assert.h"
#include "graph/hoist.h"
#include "serve/attention_weights.h"

#include <string.h>

/* Bytes of a field's value, of either type. */
enum { FIELD_SIZE = sizeof(float) };

/* Elements of all tables that replace products with parameters (graph/hoist.h), at most. */
enum { HOISTED_ELEMENTS = 1 << 20 };

/* --------------------------------------------------------------------------------------- cached matrices ----- */

/* Whether a cached matrix has an event per column rather than per row. */
static bool is_transposed(const lp_value *matrix)
{
    return matrix->rows_of == LP_ROWS_FIXED;
}

/* Columns of an event. */
static int event_cols(const lp_value *matrix)
{
    return is_transposed(matrix) ? matrix->rows : matrix->cols;
}

/* Elements of a cached matrix, with the padding that kernels read and do not use. The newest rows of branches are computed behind
 * those of the history. */
static size_t matrix_size(const lp_decoder *decoder, const lp_value *matrix)
{
    size_t rows = (size_t)decoder->capacity + (size_t)decoder->limits.branches;
    if (is_transposed(matrix))
        rows = (size_t)matrix->rows;
    size_t size = rows * (size_t)matrix->cols + LP_CACHE_PADDING;
    return (size + LP_CACHE_PADDING - 1) / LP_CACHE_PADDING * LP_CACHE_PADDING;
}

/* Moves `events` events, from event `count` on, to the front. */
static void drop_events(const lp_value *matrix, float *data, int64_t count, int64_t events)
{
    size_t width = is_transposed(matrix) ? 1 : (size_t)matrix->cols; /* adjacent elements of an event */
    size_t stride = (size_t)matrix->cols;
    for (int row = 0; row < (is_transposed(matrix) ? matrix->rows : 1); row++)
        memmove(data + (size_t)row * stride, data + (size_t)row * stride + (size_t)count * width,
                (size_t)events * width * sizeof *data);
}

static void add_cached(lp_decoder *decoder, lp_value *value)
{
    bool listed = !value;
    for (int i = 0; i < decoder->cached_count; i++)
        listed |= decoder->cached[i] == value;
    if (listed)
        return;
    value->retained = true;
    decoder->cached[decoder->cached_count++] = value;
}

/* Grows the list to hold every value of the graph. */
static lapse_status reserve_cached(lp_decoder *decoder, lapse_error *error)
{
    size_t count = (size_t)decoder->network.graph.value_count;
    lp_value **cached = lp_grow(decoder->cached, count, sizeof *cached);
    if (!cached)
        return lp_fail_memory(error, "a session", count * sizeof *cached);
    decoder->cached = cached;
    return LAPSE_OK;
}

static void list_cached(lp_decoder *decoder)
{
    const lp_decode_state *decode = decoder->network.decode;
    for (int i = 0; decode && i < decode->cache_count; i++) {
        const lp_kv_cache *cache = &decode->caches[i];
        add_cached(decoder, cache->basis_transposed);
        add_cached(decoder, cache->basis);
        add_cached(decoder, cache->key);
        add_cached(decoder, cache->value);
    }
}

/* ------------------------------------------------------------------------------------- order of the nodes ---- */

/* When a node runs: for a query; for each event after attention to others; for each event alone; once. */
typedef enum stage { STAGE_QUERY, STAGE_ROWS, STAGE_EVENTS, STAGE_ONCE, STAGE_COUNT } stage;

static int node_index(const lp_graph *graph, const lp_node *node)
{
    int i = 0;
    while (i < graph->node_count && graph->nodes[i] != node)
        i++;
    return i;
}

/* Marks the nodes that depend on parameters alone, and retains their outputs that other nodes read. */
static void mark_constant(const lp_graph *graph, stage *stages)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        stages[i] = node->outputs[0] && lp_value_is_constant(node->outputs[0]) ? STAGE_ONCE : STAGE_QUERY;
        for (int k = 0; stages[i] != STAGE_ONCE && k < node->op->input_count; k++)
            if (node->inputs[k] && node->inputs[k]->producer && lp_value_is_constant(node->inputs[k]))
                node->inputs[k]->retained = true;
    }
}

static void mark_producer(const lp_graph *graph, const lp_value *value, stage *stages)
{
    int producer = value && value->producer ? node_index(graph, value->producer) : graph->node_count;
    if (producer < graph->node_count && stages[producer] == STAGE_QUERY)
        stages[producer] = STAGE_ROWS;
}

/* Marks the nodes whose outputs are stored in the cache, and those that these depend on. */
static void mark_rows(const lp_decoder *decoder, stage *stages)
{
    const lp_graph *graph = &decoder->network.graph;
    for (int i = 0; i < decoder->cached_count; i++)
        mark_producer(graph, decoder->cached[i], stages);
    for (int i = graph->node_count - 1; i >= 0; i--)
        for (int k = 0; stages[i] == STAGE_ROWS && k < graph->nodes[i]->op->input_count; k++)
            mark_producer(graph, graph->nodes[i]->inputs[k], stages);
}

/* Marks the subset that depends on one event only, not on attention outputs: computed once per event. */
static void mark_events(const lp_graph *graph, stage *stages)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        bool alone = stages[i] == STAGE_ROWS && node->op->id != LP_OP_ATTENTION_CACHED;
        for (int k = 0; alone && k < node->op->input_count; k++) {
            const lp_node *producer = node->inputs[k] ? node->inputs[k]->producer : NULL;
            alone = !producer || stages[node_index(graph, producer)] >= STAGE_EVENTS;
        }
        if (alone)
            stages[i] = STAGE_EVENTS;
    }
}

/* Caches the outputs of the nodes marked by mark_events that later nodes read, so that only the later ones run again. */
static void cache_events(lp_decoder *decoder, const stage *stages)
{
    lp_graph *graph = &decoder->network.graph;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; stages[i] == STAGE_ROWS && k < graph->nodes[i]->op->input_count; k++) {
            lp_value *value = graph->nodes[i]->inputs[k];
            if (value && value->producer && stages[node_index(graph, value->producer)] == STAGE_EVENTS)
                add_cached(decoder, lp_cache_rows(graph, value));
        }
}

/* Sorts the nodes by stage, stably. */
static lapse_status order_nodes(lp_decoder *decoder, lapse_error *error)
{
    lp_graph *graph = &decoder->network.graph;
    size_t count = (size_t)graph->node_count;
    stage *stages = lp_alloc(count, sizeof *stages);
    lp_node **old = lp_alloc(count, sizeof *old);
    if (stages && old) {
        int done = 0, ends[STAGE_COUNT];
        mark_constant(graph, stages);
        mark_rows(decoder, stages);
        mark_events(graph, stages);
        if (decoder->event_rows_stay)
            cache_events(decoder, stages);
        memcpy(old, graph->nodes, count * sizeof *old);
        for (int wanted = STAGE_ONCE; wanted >= STAGE_QUERY; wanted--) {
            for (size_t i = 0; i < count; i++)
                if ((int)stages[i] == wanted)
                    graph->nodes[done++] = old[i];
            ends[wanted] = done;
        }
        decoder->constant_nodes = ends[STAGE_ONCE];
        decoder->event_nodes = ends[STAGE_EVENTS];
        decoder->cached_nodes = ends[STAGE_ROWS];
    }
    lapse_status status = stages && old ? LAPSE_OK : lp_fail_memory(error, "a session", count * sizeof *old);
    lp_free(stages);
    lp_free(old);
    return status;
}

/* --------------------------------------------------------------------------------------------- allocation ---- */

/* Tokens of a run, at most. */
static size_t most_tokens(const lp_decoder *decoder)
{
    int context = decoder->model->config.context, branches = decoder->limits.branches;
    return (size_t)(context > branches ? context : branches);
}

/* Elements of the branches' rows of a cached matrix. */
static size_t branch_size(const lp_decoder *decoder, const lp_value *matrix)
{
    return (size_t)decoder->limits.branches * (size_t)(decoder->limits.events + 1) * (size_t)event_cols(matrix);
}

static lapse_status make_branches(lp_decoder *decoder, lapse_error *error)
{
    size_t branches = (size_t)decoder->limits.branches;
    for (int i = 0; i < decoder->cached_count; i++)
        decoder->branch_sample_size += branch_size(decoder, decoder->cached[i]);
    size_t elements = (size_t)decoder->samples * decoder->branch_sample_size;
    decoder->branch_cache = lp_alloc(elements, sizeof *decoder->branch_cache);
    decoder->branch_rows = lp_alloc((size_t)decoder->network.graph.input_count, sizeof *decoder->branch_rows);
    decoder->target_position = lp_alloc(branches, sizeof *decoder->target_position);
    if (!decoder->branch_cache || !decoder->branch_rows || !decoder->target_position)
        return lp_fail_memory(error, "a session", elements * sizeof *decoder->branch_cache);
    for (size_t i = 0; i < branches; i++)
        decoder->target_position[i] = (int32_t)i;
    return LAPSE_OK;
}

static lapse_status make_buffers(lp_decoder *decoder, lapse_error *error)
{
    size_t context = (size_t)decoder->model->config.context, tokens = most_tokens(decoder);
    for (int i = 0; i < decoder->cached_count; i++)
        decoder->sample_size += matrix_size(decoder, decoder->cached[i]);
    decoder->cache = lp_alloc((size_t)decoder->samples * decoder->sample_size, sizeof *decoder->cache);
    decoder->inputs = lp_alloc((size_t)decoder->network.graph.input_count, sizeof *decoder->inputs);
    decoder->position = lp_alloc(tokens, sizeof *decoder->position);
    decoder->position_from_end = lp_alloc(tokens, sizeof *decoder->position_from_end);
    decoder->time = lp_alloc(tokens, sizeof *decoder->time);
    decoder->query_time = lp_alloc(tokens, sizeof *decoder->query_time);
    decoder->sequence_id = lp_alloc(tokens, sizeof *decoder->sequence_id);
    decoder->gap = lp_alloc(tokens * LP_GAP_COLUMNS, sizeof *decoder->gap);
    decoder->attention_scores = lp_alloc(context, sizeof *decoder->attention_scores);
    if (decoder->attention_scores && decoder->gap && decoder->sequence_id && decoder->cache && decoder->inputs &&
        decoder->position && decoder->position_from_end && decoder->time && decoder->query_time)
        return make_branches(decoder, error);
    return lp_fail_memory(error, "a session", (size_t)decoder->samples * decoder->sample_size * sizeof *decoder->cache);
}

static lapse_status make_plan(lp_decoder *decoder, lapse_error *error)
{
    int64_t context = decoder->model->config.context;
    lp_extent largest = {.pairs = context * (context + 1) / 2, .longest = (int)context};
    largest.rows[LP_ROWS_TOKENS] = (int64_t)most_tokens(decoder);
    largest.rows[LP_ROWS_PAST] = context;
    largest.rows[LP_ROWS_TARGETS] = decoder->limits.branches;
    LP_TRY(lp_plan_make(&decoder->plan, &decoder->network.graph, &largest, decoder->backend->real_size, error));
    decoder->work = decoder->backend->buffer_new(decoder->backend->context, decoder->plan.work_size);
    decoder->scratch = decoder->backend->buffer_new(decoder->backend->context, decoder->plan.scratch_size);
    if (!decoder->work || !decoder->scratch)
        return lp_fail_memory(error, "a session", decoder->plan.work_size + decoder->plan.scratch_size);
    return LAPSE_OK;
}

static void run_constant(lp_decoder *decoder)
{
    lp_run run = {.plan = &decoder->plan,
                  .work = decoder->work,
                  .scratch = decoder->scratch,
                  .inputs = decoder->inputs,
                  .parameters = decoder->model->parameters,
                  .end_node = decoder->constant_nodes};
    if (decoder->constant_nodes > 0)
        decoder->backend->run(decoder->backend->context, &run);
}

static lapse_status make(lp_decoder *decoder, lapse_error *error)
{
    const lp_model_config *config = &decoder->model->config;
    decoder->incremental = config->row->incremental && config->row->incremental(config);
    if (decoder->incremental)
        LP_TRY(lp_network_build_decoder(&decoder->network, config, (int)decoder->capacity, error));
    else
        LP_TRY(lp_network_build_evaluation(&decoder->network, config, true, error));
    const lp_decode_state *decode = decoder->network.decode;
    decoder->samples = lp_network_samples(&decoder->network);
    decoder->rows_stay = decode && decode->cache_count == 1 && !decode->positional;
    decoder->event_rows_stay = decode && decode->cache_count > 1 && !decode->positional;
    LP_TRY(reserve_cached(decoder, error));
    list_cached(decoder);
    LP_TRY(lp_graph_hoist(&decoder->network.graph, HOISTED_ELEMENTS, error));
    LP_TRY(reserve_cached(decoder, error));
    LP_TRY(order_nodes(decoder, error));
    LP_TRY(make_buffers(decoder, error));
    LP_TRY(make_plan(decoder, error));
    run_constant(decoder);
    return LAPSE_OK;
}

lapse_status lp_decoder_init(lp_decoder *decoder, const lapse_model *model, int64_t capacity, lp_branch_limits limits,
                             lapse_error *error)
{
    *decoder = (lp_decoder){.model = model, .capacity = capacity, .limits = limits, .backend = lp_backend_find("cpu")};
    lapse_status status = make(decoder, error);
    if (status != LAPSE_OK)
        lp_decoder_clear(decoder);
    return status;
}

void lp_decoder_clear(lp_decoder *decoder)
{
    if (!decoder->backend)
        return;
    decoder->backend->buffer_free(decoder->backend->context, decoder->work);
    decoder->backend->buffer_free(decoder->backend->context, decoder->scratch);
    lp_free(decoder->inputs);
    lp_free(decoder->position);
    lp_free(decoder->position_from_end);
    lp_free(decoder->time);
    lp_free(decoder->query_time);
    lp_free(decoder->sequence_id);
    lp_free(decoder->gap);
    lp_free(decoder->target_position);
    lp_free(decoder->branch_cache);
    lp_free(decoder->branch_rows);
    lp_free(decoder->attention_scores);
    lp_free(decoder->cache);
    lp_free(decoder->cached);
    lp_graph_clear(&decoder->network.graph);
    *decoder = (lp_decoder){0};
}

void lp_decoder_reset(lp_decoder *decoder)
{
    decoder->first = decoder->event_final = decoder->final = 0;
}

void lp_decoder_set_sequence(lp_decoder *decoder, int32_t sequence)
{
    if (!decoder->sequence_id || decoder->sequence_id[0] == sequence)
        return;
    for (size_t i = 0; i < most_tokens(decoder); i++)
        decoder->sequence_id[i] = sequence;
}

void lp_decoder_drop(lp_decoder *decoder, int64_t count)
{
    int64_t left = decoder->event_final - count;
    if (!(decoder->rows_stay || decoder->event_rows_stay) || left <= 0) {
        lp_decoder_reset(decoder);
        return;
    }
    float *data = decoder->cache;
    for (int sample = 0; sample < decoder->samples; sample++)
        for (int i = 0; i < decoder->cached_count; i++) {
            drop_events(decoder->cached[i], data, count, left);
            data += matrix_size(decoder, decoder->cached[i]);
        }
    bool seen = count > decoder->first && !decoder->rows_stay; /* deeper rows have attended to events that are gone */
    decoder->first = decoder->first > count ? decoder->first - count : 0;
    decoder->event_final = left;
    decoder->final = decoder->final > count && !seen ? decoder->final - count : 0;
}

lp_decoder_mark lp_decoder_mark_of(const lp_decoder *decoder)
{
    return (lp_decoder_mark){decoder->first, decoder->final, decoder->event_final};
}

void lp_decoder_return(lp_decoder *decoder, lp_decoder_mark mark)
{
    bool moved = decoder->first != mark.first;
    if (moved && !decoder->rows_stay)
        decoder->final = mark.first;
    if (moved && !decoder->rows_stay && !decoder->event_rows_stay)
        decoder->event_final = mark.first;
    decoder->final = decoder->final < mark.final ? decoder->final : mark.final;
    decoder->event_final = decoder->event_final < mark.event_final ? decoder->event_final : mark.event_final;
    decoder->first = mark.first;
}

/* ------------------------------------------------------------------------------------------------ queries ---- */

/* Finds the first event whose rows must be computed, after the window may have moved. */
static void find_valid_rows(lp_decoder *decoder, const lp_history *history, double time)
{
    const lp_model_config *config = &decoder->model->config;
    int64_t first = history->count > config->context ? history->count - config->context : 0;
    bool moved = first != decoder->first;
    if (!decoder->incremental || (moved && !decoder->rows_stay) || decoder->final < first)
        decoder->final = first;
    if (!decoder->incremental || (moved && !decoder->rows_stay && !decoder->event_rows_stay) ||
        decoder->event_final < decoder->final)
        decoder->event_final = decoder->final;
    decoder->first = first;
    if (decoder->event_final > first)
        return;
    double last = lp_model_target_known(config) ? time : history->times[history->count - 1];
    decoder->origin = decoder->incremental ? history->times[first] : last;
}

/* Feeds the arrays that feed and feed_branches fill, and the event types. */
static void feed_arrays(lp_decoder *decoder, const int32_t *types)
{
    void **inputs = decoder->inputs;
    inputs[LP_FEED_EVENT] = (void *)(uintptr_t)types;
    inputs[LP_FEED_POSITION] = decoder->position;
    inputs[LP_FEED_POSITION_FROM_END] = decoder->position_from_end;
    inputs[LP_FEED_TIME] = decoder->time;
    inputs[LP_FEED_QUERY_TIME] = decoder->query_time;
    inputs[LP_FEED_SEQUENCE] = decoder->sequence_id;
    inputs[LP_FEED_GAP] = decoder->gap;
}

/* Feeds `tokens` events from `first` on; `time` is the query time of the newest event. */
static void feed(lp_decoder *decoder, const lp_history *history, int64_t first, int tokens, double time)
{
    const lp_model_config *config = &decoder->model->config;
    bool known = lp_model_target_known(config);
    for (int t = 0; t < tokens; t++) {
        int64_t event = first + t;
        double next = event + 1 < history->count ? history->times[event + 1] : time;
        decoder->position[t] = (int32_t)(event - decoder->first);
        decoder->position_from_end[t] = (int32_t)(history->count - 1 - event);
        decoder->time[t] = history->times[event] - decoder->origin;
        decoder->query_time[t] = (known ? next : history->times[event]) - decoder->origin;
        if (history->gaps)
            lp_gap_row(history->gaps[event], decoder->gap + (size_t)t * LP_GAP_COLUMNS);
    }
    feed_arrays(decoder, history->types + first);
    for (int f = 0; f < config->field_count; f++)
        decoder->inputs[LP_FEED_COUNT + f] = (char *)history->fields[f] + first * FIELD_SIZE;
}

/* Runs nodes skip .. stop - 1 (stop 0: to the end) with the cache of one parameter sample. */
static void run_nodes(lp_decoder *decoder, lp_run *run, int sample, int skip, int stop)
{
    int32_t number = sample, target_position = run->rows[LP_ROWS_TOKENS] - 1;
    float *data = decoder->cache + (size_t)sample * decoder->sample_size;
    float *branch_data = decoder->branch_cache + (size_t)sample * decoder->branch_sample_size;
    decoder->inputs[LP_FEED_FREQUENCY_SAMPLE] = &number;
    decoder->inputs[LP_FEED_TARGET_POSITION] = run->branches ? decoder->target_position : &target_position;
    for (int i = 0; i < decoder->cached_count; i++) {
        const lp_value *matrix = decoder->cached[i];
        decoder->branch_rows[matrix->slot] = branch_data;
        branch_data += branch_size(decoder, matrix);
        decoder->inputs[matrix->slot] = is_transposed(matrix)
                                            ? data + decoder->first
                                            : data + (decoder->first + run->rows[LP_ROWS_PAST]) * matrix->cols;
        data += matrix_size(decoder, matrix);
    }
    run->first_node = skip;
    run->end_node = stop;
    decoder->backend->run(decoder->backend->context, run);
}

/* Runs some of the nodes for all events before the newest, from `from` on. */
static void fill_cache(lp_decoder *decoder, const lp_history *history, lp_run *run, int64_t from, int skip, int stop)
{
    int tokens = (int)(history->count - 1 - from);
    int32_t segment[] = {0, tokens};
    if (tokens < 1 || skip == stop)
        return;
    run->segment = segment;
    run->rows[LP_ROWS_TOKENS] = tokens;
    run->rows[LP_ROWS_PAST] = (int)(from - decoder->first);
    feed(decoder, history, from, tokens, 0);
    for (int sample = 0; sample < decoder->samples; sample++)
        run_nodes(decoder, run, sample, skip, stop);
    run->segment = NULL;
}

static void predict(lp_decoder *decoder, lp_run *run, int sample, lp_on_output on_output, void *context)
{
    const lp_network *network = &decoder->network;
    run_nodes(decoder, run, sample, decoder->constant_nodes, 0);
    const lp_value *time = lp_network_time(network);
    lp_outcome outcome = {.state = network->state ? lp_run_data(run, network->state) : NULL,
                          .time = time ? lp_run_data(run, time) : NULL};
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        outcome.logits[t] = network->logits[t] ? lp_run_data(run, network->logits[t]) : NULL;
    on_output(context, &outcome);
}

/* Brings the cache up to date: what is left to compute is the newest event, or the whole window. */
static void update_cache(lp_decoder *decoder, const lp_history *history, double time, lp_run *run)
{
    find_valid_rows(decoder, history, time);
    *run = (lp_run){.plan = &decoder->plan,
                    .work = decoder->work,
                    .scratch = decoder->scratch,
                    .inputs = decoder->inputs,
                    .parameters = decoder->model->parameters,
                    .rows = {[LP_ROWS_TARGETS] = 1},
                    .segments = 1};
    if (decoder->incremental) {
        bool together = decoder->event_final == decoder->final;
        fill_cache(decoder, history, run, decoder->event_final, decoder->constant_nodes,
                   together ? decoder->cached_nodes : decoder->event_nodes);
        if (!together)
            fill_cache(decoder, history, run, decoder->final, decoder->event_nodes, decoder->cached_nodes);
        decoder->event_final = decoder->final = history->count - 1;
    }
    LP_ASSERT(decoder->first <= decoder->final && decoder->final <= decoder->event_final);
    LP_ASSERT(decoder->event_final < history->count); /* the newest event has no rows that stay */
    run->rows[LP_ROWS_PAST] = (int)(decoder->final - decoder->first);
}

/* Brings the cache up to date and feeds what is left to compute. */
static void begin_query(lp_decoder *decoder, const lp_history *history, double time, lp_run *run, int32_t segment[2])
{
    update_cache(decoder, history, time, run);
    int tokens = (int)(history->count - decoder->final);
    segment[0] = 0;
    segment[1] = tokens;
    run->segment = segment;
    run->rows[LP_ROWS_TOKENS] = tokens;
    feed(decoder, history, decoder->final, tokens, time);
}

void lp_decoder_query(lp_decoder *decoder, const lp_history *history, double time, lp_on_output on_output,
                      void *context)
{
    lp_run run;
    int32_t segment[2];
    begin_query(decoder, history, time, &run, segment);
    for (int sample = 0; sample < decoder->samples; sample++)
        predict(decoder, &run, sample, on_output, context);
}

static void feed_branches(lp_decoder *decoder, const lp_branch_query *query)
{
    bool known = lp_model_target_known(&decoder->model->config);
    for (int i = 0; i < query->count; i++) {
        decoder->position[i] = (int32_t)(decoder->final - decoder->first) + query->length[i];
        decoder->position_from_end[i] = 0;
        decoder->time[i] = query->event_time[i] - decoder->origin;
        decoder->query_time[i] = (known ? query->time[i] : query->event_time[i]) - decoder->origin;
        if (query->gap)
            lp_gap_row(query->gap[i], decoder->gap + (size_t)i * LP_GAP_COLUMNS);
    }
    feed_arrays(decoder, query->type);
}

void lp_decoder_query_branches(lp_decoder *decoder, const lp_history *history, const lp_branch_query *query,
                               lp_on_output on_output, void *context)
{
    lp_run run;
    int32_t segment[] = {0, query->count};
    lp_run_branches branches = {.branch = query->branch,
                                .length = query->length,
                                .capacity = decoder->limits.events + 1,
                                .rows = decoder->branch_rows};
    LP_ASSERT(decoder->incremental && query->count <= decoder->limits.branches);
    update_cache(decoder, history, history->times[history->count - 1], &run);
    run.branches = &branches;
    run.segment = segment;
    run.rows[LP_ROWS_TOKENS] = run.rows[LP_ROWS_TARGETS] = query->count;
    feed_branches(decoder, query);
    for (int sample = 0; sample < decoder->samples; sample++)
        predict(decoder, &run, sample, on_output, context);
}

void lp_decoder_attention(lp_decoder *decoder, const lp_history *history, double time, int block, int head,
                          double *weights)
{
    const lp_graph *graph = &decoder->network.graph;
    int index = lp_attention_node(graph, block), heads = graph->nodes[index]->attributes.heads;
    int first = head < 0 ? 0 : head, end = head < 0 ? heads : head + 1;
    double factor = 1.0 / ((end - first) * decoder->samples);
    lp_run run;
    int32_t segment[2];
    begin_query(decoder, history, time, &run, segment);
    for (int64_t i = 0; i < history->count - decoder->first; i++)
        weights[i] = 0;
    for (int sample = 0; sample < decoder->samples; sample++) {
        run_nodes(decoder, &run, sample, decoder->constant_nodes, index);
        for (int h = first; h < end; h++)
            lp_attention_add(graph->nodes[index], &run, h, factor, decoder->attention_scores, weights);
    }
}
