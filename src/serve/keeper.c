#include "serve/keeper.h"

#include "graph/hoist.h"

#include <string.h>

/* Of either type of field. */
enum { FIELD_SIZE = sizeof(float) };

/* Elements of the tables that stand for products with parameters, at most. */
enum { HOISTED = 1 << 20 };

/* --------------------------------------------------------------------------------------- what is kept -------- */

enum { BASIS, BASIS_TURNED, KEY, VALUE };

/* What the network remembers: part 0 and 1 are the basis, the others key and value of one block after the other. NULL: it
 * has no such part. */
static lp_value *kept_part(const lp_keeper *keeper, int part)
{
    const lp_memory *blocks = keeper->network.live->blocks;
    if (part < KEY)
        return part == BASIS ? blocks[0].basis : blocks[0].basis_turned;
    return part % 2 ? blocks[(part - KEY) / 2].value : blocks[(part - KEY) / 2].key;
}

static int part_count(const lp_keeper *keeper)
{
    return KEY + 2 * keeper->model->config.blocks;
}

static bool is_turned(const lp_value *part)
{
    return part->maker->with.transpose;
}

/* Elements of a part, with those behind a turned one that are read and never used. */
static size_t part_size(const lp_value *part)
{
    size_t size = (size_t)part->rows * (size_t)part->cols;
    return (size + (is_turned(part) ? LP_REMEMBER_LANES : 0) + LP_REMEMBER_LANES - 1) / LP_REMEMBER_LANES *
           LP_REMEMBER_LANES;
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

/* ---------------------------------------------------------------------------------------------- making it ---- */

/* When a node has to run. */
typedef enum need { NEED_ANSWER, NEED_ROWS, NEED_ONCE } need;

/* Nodes that see nothing but parameters, such as frequencies and turned weights. */
static void find_fixed(const lp_graph *graph, need *needs)
{
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        bool fixed = false;
        for (int k = 0; k < node->op->output_count; k++) {
            lp_value *value = node->outputs[k];
            if (!value || !lp_value_is_fixed(value))
                continue;
            value->kept = fixed = true;
        }
        needs[i] = fixed ? NEED_ONCE : NEED_ANSWER;
    }
}

static void mark_maker(const lp_graph *graph, const lp_value *value, need *needs)
{
    for (int j = 0; value && value->maker && j < graph->node_count; j++)
        if (graph->nodes[j] == value->maker && needs[j] == NEED_ANSWER)
            needs[j] = NEED_ROWS;
}

/* Nodes that the kept rows are made by. */
static void find_settling(const lp_keeper *keeper, need *needs)
{
    const lp_graph *graph = &keeper->network.graph;
    for (int part = 0; part < part_count(keeper); part++)
        mark_maker(graph, kept_part(keeper, part), needs);
    for (int i = graph->node_count - 1; i >= 0; i--)
        for (int k = 0; needs[i] == NEED_ROWS && k < graph->nodes[i]->op->input_count; k++)
            mark_maker(graph, graph->nodes[i]->inputs[k], needs);
}

/* Brings nodes into the order in which a question may leave them out. */
static lapse_status order_nodes(lp_keeper *keeper, lapse_error *error)
{
    lp_graph *graph = &keeper->network.graph;
    size_t count = (size_t)graph->node_count;
    need *needs = lp_alloc(count, sizeof *needs);
    lp_node **old = lp_alloc(count, sizeof *old);
    if (needs && old) {
        int done = 0;
        find_fixed(graph, needs);
        find_settling(keeper, needs);
        memcpy(old, graph->nodes, count * sizeof *old);
        for (int wanted = NEED_ONCE; wanted >= NEED_ANSWER; wanted--) {
            for (size_t i = 0; i < count; i++)
                if ((int)needs[i] == wanted)
                    graph->nodes[done++] = old[i];
            if (wanted == NEED_ONCE)
                keeper->fixed = done;
            else if (wanted == NEED_ROWS)
                keeper->settling = done;
        }
    }
    lapse_status status = needs && old ? LAPSE_OK : lp_fail_memory(error, "a session", count * sizeof *old);
    lp_free(needs);
    lp_free(old);
    return status;
}

/* What is kept of events is read after the run; then whatever is the same for all of them is made beforehand. */
static lapse_status simplify(lp_keeper *keeper, lapse_error *error)
{
    for (int part = 0; part < part_count(keeper); part++) {
        lp_value *value = kept_part(keeper, part);
        if (value)
            value->kept = true;
    }
    return lp_graph_hoist(&keeper->network.graph, HOISTED, error);
}

static lapse_status make_rows(lp_keeper *keeper, lapse_error *error)
{
    const lp_model_config *config = &keeper->model->config;
    size_t context = (size_t)config->context;
    keeper->keeps = !lp_model_config_anchored(config);
    keeper->slides = config->blocks == 1 && !keeper->network.live->placed;
    for (int part = 0; part < part_count(keeper); part++)
        keeper->draw_size += kept_part(keeper, part) ? part_size(kept_part(keeper, part)) : 0;
    keeper->rows = lp_alloc((size_t)config->draws * keeper->draw_size, sizeof *keeper->rows);
    keeper->inputs = lp_alloc((size_t)keeper->network.graph.input_count, sizeof *keeper->inputs);
    keeper->position = lp_alloc(context, sizeof *keeper->position);
    keeper->time = lp_alloc(context, sizeof *keeper->time);
    keeper->until = lp_alloc(context, sizeof *keeper->until);
    if (keeper->rows && keeper->inputs && keeper->position && keeper->time && keeper->until)
        return LAPSE_OK;
    return lp_fail_memory(error, "a session", (size_t)config->draws * keeper->draw_size * sizeof *keeper->rows);
}

static lapse_status make(lp_keeper *keeper, lapse_error *error)
{
    const lp_model_config *config = &keeper->model->config;
    LP_TRY(lp_network_build_live(&keeper->network, config, (int)keeper->capacity, error));
    LP_TRY(make_rows(keeper, error));
    LP_TRY(simplify(keeper, error));
    LP_TRY(order_nodes(keeper, error));
    int64_t context = config->context;
    lp_extent largest = {.pairs = context * (context + 1) / 2, .longest = config->context};
    largest.rows[LP_ROWS_TOKENS] = largest.rows[LP_ROWS_PAST] = context;
    largest.rows[LP_ROWS_ASKED] = 1;
    LP_TRY(lp_plan_make(&keeper->plan, &keeper->network.graph, &largest, keeper->backend->real_size, error));
    keeper->work = keeper->backend->buffer_new(keeper->plan.work_size);
    keeper->scratch = keeper->backend->buffer_new(keeper->plan.scratch_size);
    if (keeper->work && keeper->scratch)
        return LAPSE_OK;
    return lp_fail_memory(error, "a session", keeper->plan.work_size + keeper->plan.scratch_size);
}

lapse_status lp_keeper_init(lp_keeper *keeper, const lapse_model *model, int64_t capacity, lapse_error *error)
{
    *keeper = (lp_keeper){.model = model, .capacity = capacity, .backend = lp_backend_find("cpu")};
    lapse_status status = make(keeper, error);
    if (status != LAPSE_OK)
        lp_keeper_clear(keeper);
    return status;
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
    lp_graph_clear(&keeper->network.graph);
    *keeper = (lp_keeper){0};
}

void lp_keeper_forget(lp_keeper *keeper)
{
    keeper->first = keeper->settled = 0;
}

void lp_keeper_drop(lp_keeper *keeper, int64_t count)
{
    int64_t kept = keeper->settled - count;
    if (!keeper->slides || kept <= 0) {
        lp_keeper_forget(keeper);
        return;
    }
    float *rows = keeper->rows;
    for (int draw = 0; draw < keeper->model->config.draws; draw++)
        for (int part = 0; part < part_count(keeper); part++) {
            const lp_value *value = kept_part(keeper, part);
            if (!value)
                continue;
            drop_events(value, rows, count, kept);
            rows += part_size(value);
        }
    keeper->first = keeper->first > count ? keeper->first - count : 0;
    keeper->settled = kept;
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
    keeper->first = first;
    if (keeper->settled > first)
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

/* One draw's way through the network, as far as node `stop` (0: to its end). */
static void run_network(lp_keeper *keeper, lp_run *run, int draw, int stop)
{
    int32_t number = draw, asked = run->rows[LP_ROWS_TOKENS] - 1;
    float *rows = keeper->rows + (size_t)draw * keeper->draw_size;
    keeper->inputs[LP_FEED_DRAW] = &number;
    keeper->inputs[LP_FEED_ASKED] = &asked;
    for (int part = 0; part < part_count(keeper); part++) {
        const lp_value *value = kept_part(keeper, part);
        if (!value)
            continue;
        keeper->inputs[value->slot] = rows + keeper->first * (is_turned(value) ? 1 : value->cols);
        rows += part_size(value);
    }
    run->skip = keeper->started ? keeper->fixed : 0;
    run->stop = stop;
    keeper->backend->run(run);
    keeper->started = true;
}

static void settle(lp_keeper *keeper, const lp_history *history, lp_run *run, int tokens)
{
    run->rows[LP_ROWS_TOKENS] = tokens;
    run->rows[LP_ROWS_PAST] = (int)(keeper->settled - keeper->first);
    fill(keeper, history, keeper->settled, tokens, 0);
    for (int draw = 0; draw < keeper->model->config.draws; draw++)
        run_network(keeper, run, draw, keeper->settling);
    keeper->settled += tokens;
}

static void answer(lp_keeper *keeper, lp_run *run, int draw, lp_on_answer on_answer, void *context)
{
    const lp_network *network = &keeper->network;
    run_network(keeper, run, draw, 0);
    lp_outcome outcome = {.state = network->state ? lp_run_data(run, network->state) : NULL};
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        outcome.logits[t] = network->logits[t] ? lp_run_data(run, network->logits[t]) : NULL;
    on_answer(context, &outcome);
}

void lp_keeper_ask(lp_keeper *keeper, const lp_history *history, double time, lp_on_answer on_answer, void *context)
{
    find_settled(keeper, history, time);
    int tokens = (int)(history->count - keeper->settled);
    int32_t segment[] = {0, tokens};
    lp_run run = {.plan = &keeper->plan,
                  .work = keeper->work,
                  .scratch = keeper->scratch,
                  .inputs = keeper->inputs,
                  .parameters = keeper->model->parameters,
                  .rows = {[LP_ROWS_ASKED] = 1},
                  .segments = 1,
                  .segment = segment};
    if (keeper->keeps && tokens > 1) {
        settle(keeper, history, &run, tokens - 1);
        tokens = 1;
    }
    run.rows[LP_ROWS_TOKENS] = segment[1] = tokens;
    run.rows[LP_ROWS_PAST] = (int)(keeper->settled - keeper->first);
    fill(keeper, history, keeper->settled, tokens, time);
    for (int draw = 0; draw < keeper->model->config.draws; draw++)
        answer(keeper, &run, draw, on_answer, context);
}
