#include "serve/decoder.h"

#include "graph/hoist.h"

#include <string.h>

/* Of either type of field. */
enum { FIELD_SIZE = sizeof(float) };

/* Elements of the tables that stand for products with parameters, at most. */
enum { HOISTED = 1 << 20 };

/* --------------------------------------------------------------------------------------- what is kept -------- */

/* Whether a part is kept on its side, an event a column, rather than as rows. */
static bool is_transposed(const lp_value *part)
{
    return part->rows_of == LP_ROWS_FIXED;
}

/* Elements of a part, with those behind a turned one that are read and never used. */
static size_t part_size(const lp_decoder *decoder, const lp_value *part)
{
    size_t rows = is_transposed(part) ? (size_t)part->rows : (size_t)decoder->capacity;
    size_t size = rows * (size_t)part->cols + LP_CACHE_PADDING;
    return (size + LP_CACHE_PADDING - 1) / LP_CACHE_PADDING * LP_CACHE_PADDING;
}

/* Moves the events from `count` on to the front. */
static void drop_events(const lp_value *part, float *kept, int64_t count, int64_t events)
{
    size_t width = is_transposed(part) ? 1 : (size_t)part->cols; /* elements of an event that lie together */
    size_t stride = (size_t)part->cols;
    for (int row = 0; row < (is_transposed(part) ? part->rows : 1); row++)
        memmove(kept + (size_t)row * stride, kept + (size_t)row * stride + (size_t)count * width,
                (size_t)events * width * sizeof *kept);
}

static void add_part(lp_decoder *decoder, lp_value *value)
{
    bool listed = !value;
    for (int i = 0; i < decoder->part_count; i++)
        listed |= decoder->parts[i] == value;
    if (listed)
        return;
    value->retained = true;
    decoder->parts[decoder->part_count++] = value;
}

/* Room for all values that there are. */
static lapse_status reserve_parts(lp_decoder *decoder, lapse_error *error)
{
    size_t count = (size_t)decoder->network.graph.value_count;
    lp_value **parts = lp_grow(decoder->parts, count, sizeof *parts);
    if (!parts)
        return lp_fail_memory(error, "a session", count * sizeof *parts);
    decoder->parts = parts;
    return LAPSE_OK;
}

/* What the blocks of the network look back at. */
static void list_parts(lp_decoder *decoder)
{
    for (int i = 0; i < decoder->model->config.blocks; i++) {
        const lp_kv_cache *memory = &decoder->network.live->blocks[i];
        add_part(decoder, memory->basis_transposed);
        add_part(decoder, memory->basis);
        add_part(decoder, memory->key);
        add_part(decoder, memory->value);
    }
}

/* ---------------------------------------------------------------------------------------------- making it ---- */

/* When a node has to run: once; for each event, by itself; for each event, after others; for a question. */
typedef enum need { NEED_ANSWER, NEED_ROWS, NEED_EVENTS, NEED_ONCE, NEED_COUNT } need;

static int node_index(const lp_graph *graph, const lp_node *node)
{
    int i = 0;
    while (i < graph->node_count && graph->nodes[i] != node)
        i++;
    return i;
}

/* Nodes that see nothing but parameters, such as frequencies and turned weights. What others read of them must last. */
static void find_fixed(const lp_graph *graph, need *needs)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        needs[i] = node->outputs[0] && lp_value_is_constant(node->outputs[0]) ? NEED_ONCE : NEED_ANSWER;
        for (int k = 0; needs[i] != NEED_ONCE && k < node->op->input_count; k++)
            if (node->inputs[k] && node->inputs[k]->producer && lp_value_is_constant(node->inputs[k]))
                node->inputs[k]->retained = true;
    }
}

static void mark_maker(const lp_graph *graph, const lp_value *value, need *needs)
{
    int producer = value && value->producer ? node_index(graph, value->producer) : graph->node_count;
    if (producer < graph->node_count && needs[producer] == NEED_ANSWER)
        needs[producer] = NEED_ROWS;
}

/* Nodes that what is kept is made by. */
static void find_settling(const lp_decoder *decoder, need *needs)
{
    const lp_graph *graph = &decoder->network.graph;
    for (int i = 0; i < decoder->part_count; i++)
        mark_maker(graph, decoder->parts[i], needs);
    for (int i = graph->node_count - 1; i >= 0; i--)
        for (int k = 0; needs[i] == NEED_ROWS && k < graph->nodes[i]->op->input_count; k++)
            mark_maker(graph, graph->nodes[i]->inputs[k], needs);
}

/* Of these, nodes that see an event by itself, and not what attention has made of it. */
static void find_events(const lp_graph *graph, need *needs)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        bool alone = needs[i] == NEED_ROWS && node->op->id != LP_OP_ATTENTION_CACHED;
        for (int k = 0; alone && k < node->op->input_count; k++) {
            const lp_node *producer = node->inputs[k] ? node->inputs[k]->producer : NULL;
            alone = !producer || needs[node_index(graph, producer)] >= NEED_EVENTS;
        }
        if (alone)
            needs[i] = NEED_EVENTS;
    }
}

/* What attention wants of events by themselves is kept, so that it can be made again without them. */
static void keep_events(lp_decoder *decoder, const need *needs)
{
    lp_graph *graph = &decoder->network.graph;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; needs[i] == NEED_ROWS && k < graph->nodes[i]->op->input_count; k++) {
            lp_value *value = graph->nodes[i]->inputs[k];
            if (value && value->producer && needs[node_index(graph, value->producer)] == NEED_EVENTS)
                add_part(decoder, lp_cache_rows(graph, value));
        }
}

/* Brings nodes into the order in which a question may leave them out. */
static lapse_status order_nodes(lp_decoder *decoder, lapse_error *error)
{
    lp_graph *graph = &decoder->network.graph;
    size_t count = (size_t)graph->node_count;
    need *needs = lp_alloc(count, sizeof *needs);
    lp_node **old = lp_alloc(count, sizeof *old);
    if (needs && old) {
        int done = 0, ends[NEED_COUNT];
        find_fixed(graph, needs);
        find_settling(decoder, needs);
        find_events(graph, needs);
        if (decoder->renews)
            keep_events(decoder, needs);
        memcpy(old, graph->nodes, count * sizeof *old);
        for (int wanted = NEED_ONCE; wanted >= NEED_ANSWER; wanted--) {
            for (size_t i = 0; i < count; i++)
                if ((int)needs[i] == wanted)
                    graph->nodes[done++] = old[i];
            ends[wanted] = done;
        }
        decoder->fixed = ends[NEED_ONCE];
        decoder->alone = ends[NEED_EVENTS];
        decoder->settling = ends[NEED_ROWS];
    }
    lapse_status status = needs && old ? LAPSE_OK : lp_fail_memory(error, "a session", count * sizeof *old);
    lp_free(needs);
    lp_free(old);
    return status;
}

static lapse_status make_rows(lp_decoder *decoder, lapse_error *error)
{
    const lp_model_config *config = &decoder->model->config;
    size_t context = (size_t)config->context;
    for (int i = 0; i < decoder->part_count; i++)
        decoder->draw_size += part_size(decoder, decoder->parts[i]);
    decoder->rows = lp_alloc((size_t)config->draws * decoder->draw_size, sizeof *decoder->rows);
    decoder->inputs = lp_alloc((size_t)decoder->network.graph.input_count, sizeof *decoder->inputs);
    decoder->position = lp_alloc(context, sizeof *decoder->position);
    decoder->time = lp_alloc(context, sizeof *decoder->time);
    decoder->query_time = lp_alloc(context, sizeof *decoder->query_time);
    if (decoder->rows && decoder->inputs && decoder->position && decoder->time && decoder->query_time)
        return LAPSE_OK;
    return lp_fail_memory(error, "a session", (size_t)config->draws * decoder->draw_size * sizeof *decoder->rows);
}

/* Runs the nodes that see parameters alone, once and for all. */
static void run_fixed(lp_decoder *decoder)
{
    lp_run run = {.plan = &decoder->plan,
                  .work = decoder->work,
                  .scratch = decoder->scratch,
                  .inputs = decoder->inputs,
                  .parameters = decoder->model->parameters,
                  .end_node = decoder->fixed};
    if (decoder->fixed > 0)
        decoder->backend->run(decoder->backend->context, &run);
}

static lapse_status make(lp_decoder *decoder, lapse_error *error)
{
    const lp_model_config *config = &decoder->model->config;
    LP_TRY(lp_network_build_decoder(&decoder->network, config, (int)decoder->capacity, error));
    decoder->keeps = !lp_model_config_anchored(config);
    decoder->slides = config->blocks == 1 && !decoder->network.live->placed;
    decoder->renews = config->blocks > 1 && !decoder->network.live->placed && decoder->keeps;
    LP_TRY(reserve_parts(decoder, error));
    list_parts(decoder);
    LP_TRY(lp_graph_hoist(&decoder->network.graph, HOISTED, error));
    LP_TRY(reserve_parts(decoder, error));
    LP_TRY(order_nodes(decoder, error));
    LP_TRY(make_rows(decoder, error));
    int64_t context = config->context;
    lp_extent largest = {.pairs = context * (context + 1) / 2, .longest = config->context};
    largest.rows[LP_ROWS_TOKENS] = largest.rows[LP_ROWS_PAST] = context;
    largest.rows[LP_ROWS_TARGETS] = 1;
    LP_TRY(lp_plan_make(&decoder->plan, &decoder->network.graph, &largest, decoder->backend->real_size, error));
    decoder->work = decoder->backend->buffer_new(decoder->backend->context, decoder->plan.work_size);
    decoder->scratch = decoder->backend->buffer_new(decoder->backend->context, decoder->plan.scratch_size);
    if (!decoder->work || !decoder->scratch)
        return lp_fail_memory(error, "a session", decoder->plan.work_size + decoder->plan.scratch_size);
    run_fixed(decoder);
    return LAPSE_OK;
}

void lp_decoder_clear(lp_decoder *decoder)
{
    if (!decoder->backend)
        return;
    decoder->backend->buffer_free(decoder->backend->context, decoder->work);
    decoder->backend->buffer_free(decoder->backend->context, decoder->scratch);
    lp_free(decoder->inputs);
    lp_free(decoder->position);
    lp_free(decoder->time);
    lp_free(decoder->query_time);
    lp_free(decoder->rows);
    lp_free(decoder->parts);
    lp_graph_clear(&decoder->network.graph);
    *decoder = (lp_decoder){0};
}

lapse_status lp_decoder_init(lp_decoder *decoder, const lapse_model *model, int64_t capacity, lapse_error *error)
{
    *decoder = (lp_decoder){.model = model, .capacity = capacity, .backend = lp_backend_find("cpu")};
    lapse_status status = make(decoder, error);
    if (status != LAPSE_OK)
        lp_decoder_clear(decoder);
    return status;
}

void lp_decoder_reset(lp_decoder *decoder)
{
    decoder->first = decoder->known = decoder->settled = 0;
}

void lp_decoder_drop(lp_decoder *decoder, int64_t count)
{
    int64_t kept = decoder->known - count;
    if (!(decoder->slides || decoder->renews) || kept <= 0) {
        lp_decoder_reset(decoder);
        return;
    }
    float *rows = decoder->rows;
    for (int draw = 0; draw < decoder->model->config.draws; draw++)
        for (int i = 0; i < decoder->part_count; i++) {
            drop_events(decoder->parts[i], rows, count, kept);
            rows += part_size(decoder, decoder->parts[i]);
        }
    decoder->first = decoder->first > count ? decoder->first - count : 0;
    decoder->known = kept;
    decoder->settled = decoder->settled > count ? decoder->settled - count : 0;
}

/* ------------------------------------------------------------------------------------------------ asking ----- */

/* Says from which event on the network has to run. */
static void find_settled(lp_decoder *decoder, const lp_history *history, double time)
{
    const lp_model_config *config = &decoder->model->config;
    int64_t first = history->count > config->context ? history->count - config->context : 0;
    bool moved = first != decoder->first;
    if (!decoder->keeps || (moved && !decoder->slides) || decoder->settled < first)
        decoder->settled = first;
    if (!decoder->keeps || (moved && !decoder->slides && !decoder->renews) || decoder->known < decoder->settled)
        decoder->known = decoder->settled;
    decoder->first = first;
    if (decoder->known > first)
        return;
    double last = config->target_known ? time : history->times[history->count - 1];
    decoder->origin = decoder->keeps ? history->times[first] : last;
}

/* What the network sees of `tokens` events from `first` on, the last of them asked about or before another. */
static void fill(lp_decoder *decoder, const lp_history *history, int64_t first, int tokens, double time)
{
    const lp_model_config *config = &decoder->model->config;
    void **inputs = decoder->inputs;
    for (int t = 0; t < tokens; t++) {
        int64_t event = first + t;
        double next = event + 1 < history->count ? history->times[event + 1] : time;
        decoder->position[t] = (int32_t)(event - decoder->first);
        decoder->time[t] = history->times[event] - decoder->origin;
        decoder->query_time[t] = (config->target_known ? next : history->times[event]) - decoder->origin;
    }
    inputs[LP_FEED_EVENT] = (void *)(uintptr_t)(history->types + first);
    inputs[LP_FEED_POSITION] = decoder->position;
    inputs[LP_FEED_TIME] = decoder->time;
    inputs[LP_FEED_QUERY_TIME] = decoder->query_time;
    for (int f = 0; f < config->field_count; f++)
        inputs[LP_FEED_COUNT + f] = (char *)history->fields[f] + first * FIELD_SIZE;
}

/* Takes `tokens` events from `from` on through nodes up to `stop` (0: to the end), beginning behind those that need not run
 * again. */
static void run_network(lp_decoder *decoder, lp_run *run, int draw, int skip, int stop)
{
    int32_t number = draw, target_position = run->rows[LP_ROWS_TOKENS] - 1;
    float *rows = decoder->rows + (size_t)draw * decoder->draw_size;
    decoder->inputs[LP_FEED_FREQUENCY_SAMPLE] = &number;
    decoder->inputs[LP_FEED_TARGET_POSITION] = &target_position;
    for (int i = 0; i < decoder->part_count; i++) {
        const lp_value *part = decoder->parts[i];
        decoder->inputs[part->slot] = is_transposed(part)
                                          ? rows + decoder->first
                                          : rows + (decoder->first + run->rows[LP_ROWS_PAST]) * part->cols;
        rows += part_size(decoder, part);
    }
    run->first_node = skip;
    run->end_node = stop;
    decoder->backend->run(decoder->backend->context, run);
}

/* Takes the events before the last one, from `from` on, through some of the nodes. */
static void settle(lp_decoder *decoder, const lp_history *history, lp_run *run, int64_t from, int skip, int stop)
{
    int tokens = (int)(history->count - 1 - from);
    int32_t segment[] = {0, tokens};
    if (tokens < 1 || skip == stop)
        return;
    run->segment = segment;
    run->rows[LP_ROWS_TOKENS] = tokens;
    run->rows[LP_ROWS_PAST] = (int)(from - decoder->first);
    fill(decoder, history, from, tokens, 0);
    for (int draw = 0; draw < decoder->model->config.draws; draw++)
        run_network(decoder, run, draw, skip, stop);
    run->segment = NULL;
}

static void answer(lp_decoder *decoder, lp_run *run, int draw, lp_on_answer on_answer, void *context)
{
    const lp_network *network = &decoder->network;
    run_network(decoder, run, draw, decoder->fixed, 0);
    lp_outcome outcome = {.state = network->state ? lp_run_data(run, network->state) : NULL};
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        outcome.logits[t] = network->logits[t] ? lp_run_data(run, network->logits[t]) : NULL;
    on_answer(context, &outcome);
}

void lp_decoder_query(lp_decoder *decoder, const lp_history *history, double time, lp_on_answer on_answer,
                      void *context)
{
    find_settled(decoder, history, time);
    lp_run run = {.plan = &decoder->plan,
                  .work = decoder->work,
                  .scratch = decoder->scratch,
                  .inputs = decoder->inputs,
                  .parameters = decoder->model->parameters,
                  .rows = {[LP_ROWS_TARGETS] = 1},
                  .segments = 1};
    if (decoder->keeps) {
        bool together = decoder->known == decoder->settled;
        settle(decoder, history, &run, decoder->known, decoder->fixed, together ? decoder->settling : decoder->alone);
        if (!together)
            settle(decoder, history, &run, decoder->settled, decoder->alone, decoder->settling);
        decoder->known = decoder->settled = history->count - 1;
    }
    int tokens = (int)(history->count - decoder->settled);
    int32_t segment[] = {0, tokens};
    run.segment = segment;
    run.rows[LP_ROWS_TOKENS] = tokens;
    run.rows[LP_ROWS_PAST] = (int)(decoder->settled - decoder->first);
    fill(decoder, history, decoder->settled, tokens, time);
    for (int draw = 0; draw < decoder->model->config.draws; draw++)
        answer(decoder, &run, draw, on_answer, context);
}
