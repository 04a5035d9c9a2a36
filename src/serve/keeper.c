#include "serve/keeper.h"

#include "graph/hoist.h"

#include <string.h>

/* Of either type of field. */
enum { FIELD_SIZE = sizeof(float) };

/* Elements of the tables that stand for products with parameters, at most. */
enum { HOISTED = 1 << 20 };

/* --------------------------------------------------------------------------------------- what is kept -------- */

/* Whether a part is kept on its side, an event a column, rather than as rows. */
static bool is_turned(const lp_value *part)
{
    return part->rows_of == LP_ROWS_FIXED;
}

/* Elements of a part, with those behind a turned one that are read and never used. */
static size_t part_size(const lp_keeper *keeper, const lp_value *part)
{
    size_t rows = is_turned(part) ? (size_t)part->rows : (size_t)keeper->capacity;
    size_t size = rows * (size_t)part->cols + LP_REMEMBER_LANES;
    return (size + LP_REMEMBER_LANES - 1) / LP_REMEMBER_LANES * LP_REMEMBER_LANES;
}

/* Moves the events from `count` on to the front. */
static void drop_events(const lp_value *part, float *kept, int64_t count, int64_t events)
{
    size_t width = is_turned(part) ? 1 : (size_t)part->cols; /* elements of an event that lie together */
    size_t stride = (size_t)part->cols;
    for (int row = 0; row < (is_turned(part) ? part->rows : 1); row++)
        memmove(kept + (size_t)row * stride, kept + (size_t)row * stride + (size_t)count * width,
                (size_t)events * width * sizeof *kept);
}

static void add_part(lp_keeper *keeper, lp_value *value)
{
    bool listed = !value;
    for (int i = 0; i < keeper->part_count; i++)
        listed |= keeper->parts[i] == value;
    if (listed)
        return;
    value->kept = true;
    keeper->parts[keeper->part_count++] = value;
}

/* Room for all values that there are. */
static lapse_status reserve_parts(lp_keeper *keeper, lapse_error *error)
{
    size_t count = (size_t)keeper->network.graph.value_count;
    lp_value **parts = lp_grow(keeper->parts, count, sizeof *parts);
    if (!parts)
        return lp_fail_memory(error, "a session", count * sizeof *parts);
    keeper->parts = parts;
    return LAPSE_OK;
}

/* What the blocks of the network look back at. */
static void list_parts(lp_keeper *keeper)
{
    for (int i = 0; i < keeper->model->config.blocks; i++) {
        const lp_memory *memory = &keeper->network.live->blocks[i];
        add_part(keeper, memory->basis_turned);
        add_part(keeper, memory->basis);
        add_part(keeper, memory->key);
        add_part(keeper, memory->value);
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
        needs[i] = node->outputs[0] && lp_value_is_fixed(node->outputs[0]) ? NEED_ONCE : NEED_ANSWER;
        for (int k = 0; needs[i] != NEED_ONCE && k < node->op->input_count; k++)
            if (node->inputs[k] && node->inputs[k]->maker && lp_value_is_fixed(node->inputs[k]))
                node->inputs[k]->kept = true;
    }
}

static void mark_maker(const lp_graph *graph, const lp_value *value, need *needs)
{
    int maker = value && value->maker ? node_index(graph, value->maker) : graph->node_count;
    if (maker < graph->node_count && needs[maker] == NEED_ANSWER)
        needs[maker] = NEED_ROWS;
}

/* Nodes that what is kept is made by. */
static void find_settling(const lp_keeper *keeper, need *needs)
{
    const lp_graph *graph = &keeper->network.graph;
    for (int i = 0; i < keeper->part_count; i++)
        mark_maker(graph, keeper->parts[i], needs);
    for (int i = graph->node_count - 1; i >= 0; i--)
        for (int k = 0; needs[i] == NEED_ROWS && k < graph->nodes[i]->op->input_count; k++)
            mark_maker(graph, graph->nodes[i]->inputs[k], needs);
}

/* Of these, nodes that see an event by itself, and not what attention has made of it. */
static void find_events(const lp_graph *graph, need *needs)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        bool alone = needs[i] == NEED_ROWS && node->op->id != LP_OP_RECALL;
        for (int k = 0; alone && k < node->op->input_count; k++) {
            const lp_node *maker = node->inputs[k] ? node->inputs[k]->maker : NULL;
            alone = !maker || needs[node_index(graph, maker)] >= NEED_EVENTS;
        }
        if (alone)
            needs[i] = NEED_EVENTS;
    }
}

/* What attention wants of events by themselves is kept, so that it can be made again without them. */
static void keep_events(lp_keeper *keeper, const need *needs)
{
    lp_graph *graph = &keeper->network.graph;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; needs[i] == NEED_ROWS && k < graph->nodes[i]->op->input_count; k++) {
            lp_value *value = graph->nodes[i]->inputs[k];
            if (value && value->maker && needs[node_index(graph, value->maker)] == NEED_EVENTS)
                add_part(keeper, lp_keep(graph, value));
        }
}

/* Brings nodes into the order in which a question may leave them out. */
static lapse_status order_nodes(lp_keeper *keeper, lapse_error *error)
{
    lp_graph *graph = &keeper->network.graph;
    size_t count = (size_t)graph->node_count;
    need *needs = lp_alloc(count, sizeof *needs);
    lp_node **old = lp_alloc(count, sizeof *old);
    if (needs && old) {
        int done = 0, ends[NEED_COUNT];
        find_fixed(graph, needs);
        find_settling(keeper, needs);
        find_events(graph, needs);
        if (keeper->renews)
            keep_events(keeper, needs);
        memcpy(old, graph->nodes, count * sizeof *old);
        for (int wanted = NEED_ONCE; wanted >= NEED_ANSWER; wanted--) {
            for (size_t i = 0; i < count; i++)
                if ((int)needs[i] == wanted)
                    graph->nodes[done++] = old[i];
            ends[wanted] = done;
        }
        keeper->fixed = ends[NEED_ONCE];
        keeper->alone = ends[NEED_EVENTS];
        keeper->settling = ends[NEED_ROWS];
    }
    lapse_status status = needs && old ? LAPSE_OK : lp_fail_memory(error, "a session", count * sizeof *old);
    lp_free(needs);
    lp_free(old);
    return status;
}

static lapse_status make_rows(lp_keeper *keeper, lapse_error *error)
{
    const lp_model_config *config = &keeper->model->config;
    size_t context = (size_t)config->context;
    for (int i = 0; i < keeper->part_count; i++)
        keeper->draw_size += part_size(keeper, keeper->parts[i]);
    keeper->rows = lp_alloc((size_t)config->draws * keeper->draw_size, sizeof *keeper->rows);
    keeper->inputs = lp_alloc((size_t)keeper->network.graph.input_count, sizeof *keeper->inputs);
    keeper->position = lp_alloc(context, sizeof *keeper->position);
    keeper->time = lp_alloc(context, sizeof *keeper->time);
    keeper->until = lp_alloc(context, sizeof *keeper->until);
    if (keeper->rows && keeper->inputs && keeper->position && keeper->time && keeper->until)
        return LAPSE_OK;
    return lp_fail_memory(error, "a session", (size_t)config->draws * keeper->draw_size * sizeof *keeper->rows);
}

/* Runs the nodes that see parameters alone, once and for all. */
static void run_fixed(lp_keeper *keeper)
{
    lp_run run = {.plan = &keeper->plan,
                  .work = keeper->work,
                  .scratch = keeper->scratch,
                  .inputs = keeper->inputs,
                  .parameters = keeper->model->parameters,
                  .stop = keeper->fixed};
    if (keeper->fixed > 0)
        keeper->backend->run(&run);
}

static lapse_status make(lp_keeper *keeper, lapse_error *error)
{
    const lp_model_config *config = &keeper->model->config;
    LP_TRY(lp_network_build_live(&keeper->network, config, (int)keeper->capacity, error));
    keeper->keeps = !lp_model_config_anchored(config);
    keeper->slides = config->blocks == 1 && !keeper->network.live->placed;
    keeper->renews = config->blocks > 1 && !keeper->network.live->placed && keeper->keeps;
    LP_TRY(reserve_parts(keeper, error));
    list_parts(keeper);
    LP_TRY(lp_graph_hoist(&keeper->network.graph, HOISTED, error));
    LP_TRY(reserve_parts(keeper, error));
    LP_TRY(order_nodes(keeper, error));
    LP_TRY(make_rows(keeper, error));
    int64_t context = config->context;
    lp_extent largest = {.pairs = context * (context + 1) / 2, .longest = config->context};
    largest.rows[LP_ROWS_TOKENS] = largest.rows[LP_ROWS_PAST] = context;
    largest.rows[LP_ROWS_ASKED] = 1;
    LP_TRY(lp_plan_make(&keeper->plan, &keeper->network.graph, &largest, keeper->backend->real_size, error));
    keeper->work = keeper->backend->buffer_new(keeper->plan.work_size);
    keeper->scratch = keeper->backend->buffer_new(keeper->plan.scratch_size);
    if (!keeper->work || !keeper->scratch)
        return lp_fail_memory(error, "a session", keeper->plan.work_size + keeper->plan.scratch_size);
    run_fixed(keeper);
    return LAPSE_OK;
}

void lp_keeper_clear(lp_keeper *keeper)
{
    if (!keeper->backend)
        return;
    keeper->backend->buffer_free(keeper->work);
    keeper->backend->buffer_free(keeper->scratch);
    lp_free(keeper->inputs);
    lp_free(keeper->position);
    lp_free(keeper->time);
    lp_free(keeper->until);
    lp_free(keeper->rows);
    lp_free(keeper->parts);
    lp_graph_clear(&keeper->network.graph);
    *keeper = (lp_keeper){0};
}

lapse_status lp_keeper_init(lp_keeper *keeper, const lapse_model *model, int64_t capacity, lapse_error *error)
{
    *keeper = (lp_keeper){.model = model, .capacity = capacity, .backend = lp_backend_find("cpu")};
    lapse_status status = make(keeper, error);
    if (status != LAPSE_OK)
        lp_keeper_clear(keeper);
    return status;
}

void lp_keeper_forget(lp_keeper *keeper)
{
    keeper->first = keeper->known = keeper->settled = 0;
}

void lp_keeper_drop(lp_keeper *keeper, int64_t count)
{
    int64_t kept = keeper->known - count;
    if (!(keeper->slides || keeper->renews) || kept <= 0) {
        lp_keeper_forget(keeper);
        return;
    }
    float *rows = keeper->rows;
    for (int draw = 0; draw < keeper->model->config.draws; draw++)
        for (int i = 0; i < keeper->part_count; i++) {
            drop_events(keeper->parts[i], rows, count, kept);
            rows += part_size(keeper, keeper->parts[i]);
        }
    keeper->first = keeper->first > count ? keeper->first - count : 0;
    keeper->known = kept;
    keeper->settled = keeper->settled > count ? keeper->settled - count : 0;
}

/* ------------------------------------------------------------------------------------------------ asking ----- */

/* Says from which event on the network has to run. */
static void find_settled(lp_keeper *keeper, const lp_history *history, double time)
{
    const lp_model_config *config = &keeper->model->config;
    int64_t first = history->count > config->context ? history->count - config->context : 0;
    bool moved = first != keeper->first;
    if (!keeper->keeps || (moved && !keeper->slides) || keeper->settled < first)
        keeper->settled = first;
    if (!keeper->keeps || (moved && !keeper->slides && !keeper->renews) || keeper->known < keeper->settled)
        keeper->known = keeper->settled;
    keeper->first = first;
    if (keeper->known > first)
        return;
    double last = config->target_known ? time : history->times[history->count - 1];
    keeper->origin = keeper->keeps ? history->times[first] : last;
}

/* What the network sees of `tokens` events from `first` on, the last of them asked about or before another. */
static void fill(lp_keeper *keeper, const lp_history *history, int64_t first, int tokens, double time)
{
    const lp_model_config *config = &keeper->model->config;
    void **inputs = keeper->inputs;
    for (int t = 0; t < tokens; t++) {
        int64_t event = first + t;
        double next = event + 1 < history->count ? history->times[event + 1] : time;
        keeper->position[t] = (int32_t)(event - keeper->first);
        keeper->time[t] = history->times[event] - keeper->origin;
        keeper->until[t] = (config->target_known ? next : history->times[event]) - keeper->origin;
    }
    inputs[LP_FEED_KIND] = (void *)(uintptr_t)(history->kinds + first);
    inputs[LP_FEED_POSITION] = keeper->position;
    inputs[LP_FEED_TIME] = keeper->time;
    inputs[LP_FEED_UNTIL] = keeper->until;
    for (int f = 0; f < config->field_count; f++)
        inputs[LP_FEED_COUNT + f] = (char *)history->fields[f] + first * FIELD_SIZE;
}

/* Takes `tokens` events from `from` on through nodes up to `stop` (0: to the end), beginning behind those that need not run
 * again. */
static void run_network(lp_keeper *keeper, lp_run *run, int draw, int skip, int stop)
{
    int32_t number = draw, asked = run->rows[LP_ROWS_TOKENS] - 1;
    float *rows = keeper->rows + (size_t)draw * keeper->draw_size;
    keeper->inputs[LP_FEED_DRAW] = &number;
    keeper->inputs[LP_FEED_ASKED] = &asked;
    for (int i = 0; i < keeper->part_count; i++) {
        const lp_value *part = keeper->parts[i];
        keeper->inputs[part->slot] =
            is_turned(part) ? rows + keeper->first : rows + (keeper->first + run->rows[LP_ROWS_PAST]) * part->cols;
        rows += part_size(keeper, part);
    }
    run->skip = skip;
    run->stop = stop;
    keeper->backend->run(run);
}

/* Takes the events before the last one, from `from` on, through some of the nodes. */
static void settle(lp_keeper *keeper, const lp_history *history, lp_run *run, int64_t from, int skip, int stop)
{
    int tokens = (int)(history->count - 1 - from);
    int32_t segment[] = {0, tokens};
    if (tokens < 1 || skip == stop)
        return;
    run->segment = segment;
    run->rows[LP_ROWS_TOKENS] = tokens;
    run->rows[LP_ROWS_PAST] = (int)(from - keeper->first);
    fill(keeper, history, from, tokens, 0);
    for (int draw = 0; draw < keeper->model->config.draws; draw++)
        run_network(keeper, run, draw, skip, stop);
    run->segment = NULL;
}

static void answer(lp_keeper *keeper, lp_run *run, int draw, lp_on_answer on_answer, void *context)
{
    const lp_network *network = &keeper->network;
    run_network(keeper, run, draw, keeper->fixed, 0);
    lp_outcome outcome = {.state = network->state ? lp_run_data(run, network->state) : NULL};
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        outcome.logits[t] = network->logits[t] ? lp_run_data(run, network->logits[t]) : NULL;
    on_answer(context, &outcome);
}

void lp_keeper_ask(lp_keeper *keeper, const lp_history *history, double time, lp_on_answer on_answer, void *context)
{
    find_settled(keeper, history, time);
    lp_run run = {.plan = &keeper->plan,
                  .work = keeper->work,
                  .scratch = keeper->scratch,
                  .inputs = keeper->inputs,
                  .parameters = keeper->model->parameters,
                  .rows = {[LP_ROWS_ASKED] = 1},
                  .segments = 1};
    if (keeper->keeps) {
        bool together = keeper->known == keeper->settled;
        settle(keeper, history, &run, keeper->known, keeper->fixed, together ? keeper->settling : keeper->alone);
        if (!together)
            settle(keeper, history, &run, keeper->settled, keeper->alone, keeper->settling);
        keeper->known = keeper->settled = history->count - 1;
    }
    int tokens = (int)(history->count - keeper->settled);
    int32_t segment[] = {0, tokens};
    run.segment = segment;
    run.rows[LP_ROWS_TOKENS] = tokens;
    run.rows[LP_ROWS_PAST] = (int)(keeper->settled - keeper->first);
    fill(keeper, history, keeper->settled, tokens, time);
    for (int draw = 0; draw < keeper->model->config.draws; draw++)
        answer(keeper, &run, draw, on_answer, context);
}
