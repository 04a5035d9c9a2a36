/* decoder.c: incremental decoding. */
#include "serve/decoder.h"

#include "base/assert.h"
#include "serve/attention_weights.h"

#include <string.h>

/* Bytes of a field's value, of either type. */
enum { FIELD_SIZE = sizeof(float) };

/* --------------------------------------------------------------------------------------------- allocation ---- */

static lapse_status fail_memory(lapse_error *error, size_t size)
{
    return lp_fail_memory(error, "a query", size);
}

/* Elements of the branches' rows of a cached matrix. */
static size_t branch_size(const lp_branch_rows *rows, const lp_value *matrix)
{
    return (size_t)rows->branches * (size_t)(rows->events + 1) * (size_t)matrix->cols;
}

lapse_status lp_branch_rows_init(lp_branch_rows *rows, const lp_program *program, int branches, int events,
                                 lapse_error *error)
{
    *rows = (lp_branch_rows){.branches = branches, .events = events};
    for (int i = 0; i < program->cached_count; i++)
        rows->sample_size += branch_size(rows, program->cached[i]);
    size_t elements = (size_t)program->samples * rows->sample_size;
    rows->data = lp_alloc(elements, sizeof *rows->data);
    return rows->data ? LAPSE_OK : fail_memory(error, elements * sizeof *rows->data);
}

void lp_branch_rows_clear(lp_branch_rows *rows)
{
    lp_free(rows->data);
    *rows = (lp_branch_rows){0};
}

/* Columns of the cached matrices that sessions do not store. */
static size_t window_cols(const lp_program *program)
{
    size_t cols = 0;
    for (int i = program->stored_count; i < program->cached_count; i++)
        cols += (size_t)program->cached[i]->cols;
    return cols;
}

/* Columns of a transposed copy for this many events: an odd number of whole vectors where there are many, so that rows do not map to
 * the same cache sets. */
static int transposed_stride(int events)
{
    enum { LANES = 16, FEW = 4 };
    int vectors = (events + LANES - 1) / LANES;
    return (vectors + (vectors > FEW && vectors % 2 == 0)) * LANES;
}

/* Rows of these: of one window, or of several where they fit a core's cache. */
static int64_t window_rows(const lp_program *program, size_t cols)
{
    enum { ELEMENTS = 1 << 17 };
    int64_t context = program->model->config.context, fit = cols ? (int64_t)(ELEMENTS / cols) : INT32_MAX;
    return cols == 0 || fit < context ? context : fit;
}

static lapse_status make_network(lp_decoder *decoder, lapse_error *error)
{
    const lp_program *program = decoder->program;
    size_t tokens = lp_program_tokens(program), rows = (size_t)program->rows, cached = 0;
    size_t slots = (size_t)program->network.graph.input_count;
    size_t together = program->incremental ? rows : 0; /* histories of a run */
    size_t window = window_cols(program);
    decoder->window_rows = window_rows(program, window);
    for (int i = 0; program->incremental && i < program->cached_count; i++)
        cached += rows * (size_t)program->cached[i]->cols;
    decoder->work = program->backend->buffer_new(program->backend->context, program->plan.work_size);
    decoder->scratch = program->backend->buffer_new(program->backend->context, program->plan.scratch_size);
    decoder->inputs = lp_alloc(slots, sizeof *decoder->inputs);
    decoder->history_rows = lp_alloc(slots, sizeof *decoder->history_rows);
    decoder->branch_slots = lp_alloc(slots, sizeof *decoder->branch_slots);
    decoder->position = lp_alloc(tokens, sizeof *decoder->position);
    decoder->position_from_end = lp_alloc(tokens, sizeof *decoder->position_from_end);
    decoder->time = lp_alloc(tokens, sizeof *decoder->time);
    decoder->query_time = lp_alloc(tokens, sizeof *decoder->query_time);
    decoder->sequence_id = lp_alloc(tokens, sizeof *decoder->sequence_id);
    decoder->gap = lp_alloc(tokens * LP_GAP_COLUMNS, sizeof *decoder->gap);
    decoder->target_position = lp_alloc(rows, sizeof *decoder->target_position);
    decoder->attention_scores = lp_alloc((size_t)program->model->config.context, sizeof *decoder->attention_scores);
    decoder->fresh = lp_alloc(cached, sizeof *decoder->fresh);
    decoder->window = lp_alloc((size_t)decoder->window_rows * window, sizeof *decoder->window);
    decoder->histories = lp_alloc(together, sizeof *decoder->histories);
    decoder->histories_slots = lp_alloc(together * slots, sizeof *decoder->histories_slots);
    decoder->type = lp_alloc(together, sizeof *decoder->type);
    decoder->fields = lp_alloc(together * (size_t)program->model->config.field_count, sizeof *decoder->fields);
    decoder->basis.stride = transposed_stride(program->model->config.context);
    decoder->basis.data = lp_alloc((size_t)decoder->basis.stride * window, sizeof *decoder->basis.data);
    if (!decoder->basis.data || !decoder->histories || !decoder->histories_slots || !decoder->type ||
        !decoder->fields || !decoder->work || !decoder->scratch || !decoder->inputs || !decoder->history_rows ||
        !decoder->branch_slots || !decoder->position || !decoder->position_from_end || !decoder->time ||
        !decoder->query_time || !decoder->sequence_id || !decoder->gap || !decoder->target_position ||
        !decoder->attention_scores || !decoder->fresh || !decoder->window)
        return fail_memory(error, program->plan.work_size + program->plan.scratch_size + cached * sizeof(float));
    memcpy(decoder->inputs, program->inputs, slots * sizeof *decoder->inputs);
    for (size_t i = 0; i < rows; i++)
        decoder->target_position[i] = (int32_t)i;
    return LAPSE_OK;
}

void lp_decoder_free(lp_decoder *decoder)
{
    const lp_backend *backend = decoder->program->backend;
    backend->buffer_free(backend->context, decoder->work);
    backend->buffer_free(backend->context, decoder->scratch);
    lp_free(decoder->inputs);
    lp_free(decoder->history_rows);
    lp_free(decoder->branch_slots);
    lp_free(decoder->position);
    lp_free(decoder->position_from_end);
    lp_free(decoder->time);
    lp_free(decoder->query_time);
    lp_free(decoder->sequence_id);
    lp_free(decoder->gap);
    lp_free(decoder->target_position);
    lp_free(decoder->attention_scores);
    lp_free(decoder->fresh);
    lp_free(decoder->window);
    lp_free(decoder->basis.data);
    lp_free(decoder->histories);
    lp_free(decoder->histories_slots);
    lp_free(decoder->type);
    lp_free(decoder->fields);
    lp_branch_rows_clear(&decoder->at_times);
    lp_answer_clear(&decoder->answer);
    lp_free(decoder);
}

/* A lock that is held for a few instructions. */
static void lock(lp_program *program)
{
    while (__atomic_test_and_set(&program->lock, __ATOMIC_ACQUIRE)) {
    }
}

static void unlock(lp_program *program)
{
    __atomic_clear(&program->lock, __ATOMIC_RELEASE);
}

static lapse_status make_decoder(lp_program *program, lp_decoder **decoder, lapse_error *error)
{
    lp_decoder *made = lp_alloc(1, sizeof *made);
    if (!made)
        return fail_memory(error, sizeof *made);
    made->program = program;
    lapse_status status = lp_answer_init(&made->answer, program, error);
    if (status == LAPSE_OK && lp_model_is_network(&program->model->config))
        status = make_network(made, error);
    if (status != LAPSE_OK) {
        lp_decoder_free(made);
        return status;
    }
    *decoder = made;
    return LAPSE_OK;
}

lapse_status lp_decoder_borrow(const lapse_model *model, lp_decoder **decoder, lapse_error *error)
{
    lp_program *program;
    LP_TRY(lp_program_of(model, &program, error));
    lock(program);
    lp_decoder *idle = program->idle;
    if (idle)
        program->idle = idle->next;
    unlock(program);
    *decoder = idle;
    return idle ? LAPSE_OK : make_decoder(program, decoder, error);
}

void lp_decoder_return(lp_decoder *decoder)
{
    lp_program *program = decoder->program;
    lock(program);
    decoder->next = program->idle;
    program->idle = decoder;
    unlock(program);
}

/* ------------------------------------------------------------------------------------------------ queries ---- */

/* Finds the first event whose rows must be computed, after the window may have moved. */
static void find_valid_rows(const lp_program *program, lp_row_cache *cache, const lp_history *history, double time)
{
    const lp_model_config *config = &program->model->config;
    int64_t first = history->count > config->context ? history->count - config->context : 0;
    double last = lp_model_target_known(config) ? time : history->times[history->count - 1];
    lp_row_cache_begin(cache, first);
    if (!program->incremental)
        cache->final = first;
    cache->origin = program->incremental ? history->times[first] : last;
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
static void feed(lp_decoder *decoder, const lp_row_cache *cache, const lp_history *history, int64_t first, int tokens,
                 double time)
{
    const lp_model_config *config = &decoder->program->model->config;
    bool known = lp_model_target_known(config);
    for (int t = 0; t < tokens; t++) {
        int64_t event = first + t;
        double next = event + 1 < history->count ? history->times[event + 1] : time;
        decoder->position[t] = (int32_t)(event - cache->first);
        decoder->position_from_end[t] = (int32_t)(history->count - 1 - event);
        decoder->time[t] = history->times[event] - cache->origin;
        decoder->query_time[t] = (known ? next : history->times[event]) - cache->origin;
        decoder->sequence_id[t] = history->sequence;
        if (history->gaps)
            lp_gap_row(history->gaps[event], decoder->gap + (size_t)t * LP_GAP_COLUMNS);
    }
    feed_arrays(decoder, history->types + first);
    for (int f = 0; f < config->field_count; f++)
        decoder->inputs[LP_FEED_COUNT + f] = (char *)history->fields[f] + first * FIELD_SIZE;
}

static void begin_run(const lp_decoder *decoder, lp_run *run)
{
    const lp_program *program = decoder->program;
    *run = (lp_run){.plan = &program->plan,
                    .work = decoder->work,
                    .scratch = decoder->scratch,
                    .inputs = decoder->inputs,
                    .parameters = program->model->parameters,
                    .rows = {[LP_ROWS_TARGETS] = 1},
                    .segments = 1,
                    .rows_alone = program->incremental};
}

/* Sets the slots of the cached matrices that sessions do not store to this row of the thread's memory. */
static void feed_window(const lp_decoder *decoder, int64_t row, void **slots)
{
    const lp_program *program = decoder->program;
    float *data = decoder->window;
    for (int i = program->stored_count; i < program->cached_count; i++) {
        const lp_value *matrix = program->cached[i];
        slots[matrix->slot] = data + row * matrix->cols;
        data += decoder->window_rows * matrix->cols;
    }
}

/* The transposed copy of the window's basis, of which the columns before `past` stay. NULL: there is not one basis. */
static lp_run_transposed *window_basis(lp_decoder *decoder, int past)
{
    const lp_program *program = decoder->program;
    decoder->basis.filled = decoder->basis.filled < past ? decoder->basis.filled : past;
    return program->cached_count == program->stored_count + 1 ? &decoder->basis : NULL;
}

/* Runs nodes skip .. stop - 1 (stop 0: to the end) with the cached rows of one parameter sample. */
static void run_nodes(lp_decoder *decoder, const lp_row_cache *cache, lp_run *run, int sample, int skip, int stop)
{
    int32_t number = sample, target_position = run->rows[LP_ROWS_TOKENS] - 1;
    decoder->inputs[LP_FEED_FREQUENCY_SAMPLE] = &number;
    decoder->inputs[LP_FEED_TARGET_POSITION] = &target_position;
    if (cache->data)
        lp_row_cache_feed(cache, decoder->program, sample, run->rows[LP_ROWS_PAST], decoder->inputs);
    feed_window(decoder, run->rows[LP_ROWS_PAST], decoder->inputs);
    run->basis = window_basis(decoder, run->rows[LP_ROWS_PAST]);
    run->first_node = skip;
    run->end_node = stop;
    decoder->program->backend->run(decoder->program->backend->context, run);
}

/* Computes the rows that the session does not store of events `from` .. final - 1, into rows from `at` on of the thread's memory. */
static void compute_window(lp_decoder *decoder, const lp_row_cache *cache, const lp_history *history, int32_t sample,
                           int64_t from, int64_t at)
{
    const lp_program *program = decoder->program;
    int tokens = (int)(cache->final - from);
    int32_t segment[] = {0, tokens};
    lp_run run;
    if (tokens < 1 || program->window_nodes == program->constant_nodes)
        return;
    LP_ASSERT(from >= cache->first && at + tokens <= decoder->window_rows);
    begin_run(decoder, &run);
    run.segment = segment;
    run.rows[LP_ROWS_TOKENS] = tokens;
    run.first_node = program->constant_nodes;
    run.end_node = program->window_nodes;
    for (int t = 0; t < tokens; t++)
        decoder->time[t] = history->times[from + t] - cache->origin;
    decoder->inputs[LP_FEED_TIME] = decoder->time;
    decoder->inputs[LP_FEED_FREQUENCY_SAMPLE] = &sample;
    feed_window(decoder, at, decoder->inputs);
    program->backend->run(program->backend->context, &run);
}

/* The same for the events of the window that are not there yet. */
static void fill_window(lp_decoder *decoder, const lp_row_cache *cache, const lp_history *history, int sample)
{
    bool same = decoder->window_stamp == cache->stamp && decoder->window_sample == sample;
    int64_t from = same && decoder->window_final > cache->first ? decoder->window_final : cache->first;
    compute_window(decoder, cache, history, sample, from, from - cache->first);
    if (!same)
        decoder->basis.filled = 0;
    decoder->window_stamp = cache->stamp;
    decoder->window_sample = sample;
    decoder->window_final = same && from > cache->final ? from : cache->final;
}

/* Computes the rows of the events before the newest. */
static void fill_cache(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, lp_run *run)
{
    const lp_program *program = decoder->program;
    int tokens = (int)(history->count - 1 - cache->final);
    int32_t segment[] = {0, tokens};
    if (tokens < 1)
        return;
    run->segment = segment;
    run->rows[LP_ROWS_TOKENS] = tokens;
    run->rows[LP_ROWS_PAST] = (int)(cache->final - cache->first);
    for (int sample = 0; sample < program->samples; sample++) {
        fill_window(decoder, cache, history, sample);
        feed(decoder, cache, history, cache->final, tokens, 0);
        run_nodes(decoder, cache, run, sample, program->constant_nodes, program->cached_nodes);
        decoder->window_final = history->count - 1;
    }
    run->segment = NULL;
    cache->final = history->count - 1;
}

/* Brings the cache up to date: what is left to compute is the newest event, or the whole window. */
static lapse_status update_cache(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, double time,
                                 lp_run *run, lapse_error *error)
{
    const lp_program *program = decoder->program;
    find_valid_rows(program, cache, history, time);
    if (program->incremental)
        LP_TRY(lp_row_cache_reserve(cache, program, history->count, error));
    begin_run(decoder, run);
    if (program->incremental)
        fill_cache(decoder, cache, history, run);
    LP_ASSERT(cache->first <= cache->final &&
              cache->final < history->count); /* the newest event has no rows that stay */
    run->rows[LP_ROWS_PAST] = (int)(cache->final - cache->first);
    return LAPSE_OK;
}

/* Brings the cache up to date. */
static lapse_status begin_query(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, double time,
                                lp_run *run, int32_t segment[2], lapse_error *error)
{
    LP_TRY(update_cache(decoder, cache, history, time, run, error));
    int tokens = (int)(history->count - cache->final);
    segment[0] = 0;
    segment[1] = tokens;
    run->segment = segment;
    run->rows[LP_ROWS_TOKENS] = tokens;
    return LAPSE_OK;
}

/* Runs the nodes up to `stop` for what begin_query has left to compute. */
static void run_query(lp_decoder *decoder, const lp_row_cache *cache, const lp_history *history, double time,
                      lp_run *run, int sample, int stop)
{
    fill_window(decoder, cache, history, sample);
    feed(decoder, cache, history, cache->final, run->rows[LP_ROWS_TOKENS], time);
    run_nodes(decoder, cache, run, sample, decoder->program->constant_nodes, stop);
}

/* Adds the outputs of a run to the answer. */
static void add_outputs(lp_decoder *decoder, const lp_run *run)
{
    const lp_network *network = &decoder->program->network;
    lp_outcome outcome;
    for (int i = 0; i < LP_NETWORK_OUTPUTS; i++)
        outcome.values[i] = network->outputs[i] ? lp_run_data(run, network->outputs[i]) : NULL;
    lp_answer_add(&decoder->answer, decoder->program, &outcome);
}

lapse_status lp_decoder_query(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, double time,
                              lapse_error *error)
{
    lp_run run;
    int32_t segment[2];
    LP_TRY(begin_query(decoder, cache, history, time, &run, segment, error));
    for (int sample = 0; sample < decoder->program->samples; sample++) {
        run_query(decoder, cache, history, time, &run, sample, 0);
        add_outputs(decoder, &run);
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ branches --- */

/* Row i has the fields of this event. */
static void feed_fields(lp_decoder *decoder, int i, const lp_history *history, int64_t event)
{
    for (int f = 0; f < decoder->program->model->config.field_count; f++)
        memcpy(&decoder->fields[(size_t)f * (size_t)decoder->program->rows + (size_t)i],
               (const char *)history->fields[f] + event * FIELD_SIZE, FIELD_SIZE);
}

static void feed_branches(lp_decoder *decoder, const lp_row_cache *cache, const lp_history *history,
                          const lp_branch_query *query)
{
    bool known = lp_model_target_known(&decoder->program->model->config);
    for (int i = 0; i < query->count; i++) {
        decoder->position[i] = (int32_t)(cache->final - cache->first) + query->length[i];
        decoder->position_from_end[i] = 0;
        decoder->time[i] = query->event_time[i] - cache->origin;
        decoder->query_time[i] = (known ? query->time[i] : query->event_time[i]) - cache->origin;
        decoder->sequence_id[i] = history->sequence;
        if (query->gap)
            lp_gap_row(query->gap[i], decoder->gap + (size_t)i * LP_GAP_COLUMNS);
        feed_fields(decoder, i, history, query->source[i]);
    }
    feed_arrays(decoder, query->type);
    for (int f = 0; f < decoder->program->model->config.field_count; f++)
        decoder->inputs[LP_FEED_COUNT + f] = decoder->fields + (size_t)f * (size_t)decoder->program->rows;
}

/* Sets the slots of the cached matrices to memory for the rows of a run that are not the next ones of one history. */
static void feed_fresh(lp_decoder *decoder)
{
    const lp_program *program = decoder->program;
    float *fresh = decoder->fresh;
    for (int i = 0; i < program->cached_count; i++) {
        decoder->inputs[program->cached[i]->slot] = fresh;
        fresh += (size_t)program->rows * (size_t)program->cached[i]->cols;
    }
}

/* Sets the slots of a run whose rows are the newest of branches: the history's rows, those of the branches, and memory for the new
 * ones. */
static void feed_branch_rows(lp_decoder *decoder, const lp_row_cache *cache, const lp_branch_rows *rows, int sample)
{
    const lp_program *program = decoder->program;
    float *data = rows->data + (size_t)sample * rows->sample_size;
    lp_row_cache_feed(cache, program, sample, 0, decoder->history_rows);
    feed_window(decoder, 0, decoder->history_rows);
    feed_fresh(decoder);
    for (int i = 0; i < program->cached_count; i++) {
        const lp_value *matrix = program->cached[i];
        decoder->branch_slots[matrix->slot] = data;
        data += branch_size(rows, matrix);
    }
}

lapse_status lp_decoder_query_branches(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history,
                                       lp_branch_rows *rows, const lp_branch_query *query, lapse_error *error)
{
    const lp_program *program = decoder->program;
    lp_run run;
    int32_t segment[] = {0, query->count};
    lp_run_branches branches = {.branch = query->branch,
                                .length = query->length,
                                .capacity = rows->events + 1,
                                .rows = decoder->branch_slots,
                                .cached = decoder->history_rows};
    LP_ASSERT(program->incremental && query->count <= rows->branches && query->count <= program->rows);
    for (int i = 0; i < query->count; i++)
        LP_ASSERT(query->branch[i] >= 0 && query->branch[i] < rows->branches && query->length[i] <= rows->events);
    LP_TRY(update_cache(decoder, cache, history, history->times[history->count - 1], &run, error));
    run.branches = &branches;
    run.segment = segment;
    run.rows[LP_ROWS_TOKENS] = run.rows[LP_ROWS_TARGETS] = query->count;
    run.first_node = program->constant_nodes;
    run.end_node = 0;
    for (int32_t sample = 0; sample < program->samples; sample++) {
        fill_window(decoder, cache, history, sample);
        feed_branches(decoder, cache, history, query);
        run.basis = window_basis(decoder, run.rows[LP_ROWS_PAST]);
        decoder->inputs[LP_FEED_FREQUENCY_SAMPLE] = &sample;
        decoder->inputs[LP_FEED_TARGET_POSITION] = decoder->target_position;
        feed_branch_rows(decoder, cache, rows, sample);
        program->backend->run(program->backend->context, &run);
        add_outputs(decoder, &run);
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------- several histories ----- */

/* Feeds the newest event of history i. */
static void feed_newest(lp_decoder *decoder, int i, const lp_row_cache *cache, const lp_history *history, double time)
{
    const lp_model_config *config = &decoder->program->model->config;
    int64_t last = history->count - 1;
    decoder->type[i] = history->types[last];
    decoder->position[i] = (int32_t)(last - cache->first);
    decoder->position_from_end[i] = 0;
    decoder->time[i] = history->times[last] - cache->origin;
    decoder->query_time[i] = (lp_model_target_known(config) ? time : history->times[last]) - cache->origin;
    decoder->sequence_id[i] = history->sequence;
    if (history->gaps)
        lp_gap_row(history->gaps[last], decoder->gap + (size_t)i * LP_GAP_COLUMNS);
    feed_fields(decoder, i, history, last);
}

static void feed_many(lp_decoder *decoder, int count, lp_row_cache *const *caches, const lp_history *histories,
                      const double *times)
{
    const lp_program *program = decoder->program;
    for (int i = 0; i < count; i++)
        feed_newest(decoder, i, caches[i], &histories[i], times[i]);
    feed_arrays(decoder, decoder->type);
    for (int f = 0; f < program->model->config.field_count; f++)
        decoder->inputs[LP_FEED_COUNT + f] = decoder->fields + (size_t)f * (size_t)program->rows;
    feed_fresh(decoder);
    decoder->inputs[LP_FEED_TARGET_POSITION] = decoder->target_position;
}

int lp_decoder_most(const lp_decoder *decoder, int count, const lp_history *histories)
{
    const lp_program *program = decoder->program;
    int64_t context = program->model->config.context, rows = 0;
    int most = 0;
    while (most < count && most < program->rows) {
        rows += histories[most].count < context ? histories[most].count : context;
        if (most > 0 && rows > decoder->window_rows)
            break;
        most++;
    }
    return most;
}

lapse_status lp_decoder_query_many(lp_decoder *decoder, int count, lp_row_cache *const *caches,
                                   const lp_history *histories, const double *times, lapse_error *error)
{
    const lp_program *program = decoder->program;
    size_t slots = (size_t)program->network.graph.input_count;
    lp_run run;
    int32_t segment[] = {0, count};
    LP_ASSERT(program->incremental && count > 0 && count <= lp_decoder_most(decoder, count, histories));
    for (int i = 0; i < count; i++)
        LP_TRY(update_cache(decoder, caches[i], &histories[i], times[i], &run, error));
    begin_run(decoder, &run);
    run.histories = decoder->histories;
    run.segment = segment;
    run.rows[LP_ROWS_TOKENS] = run.rows[LP_ROWS_TARGETS] = count;
    run.first_node = program->constant_nodes;
    for (int32_t sample = 0; sample < program->samples; sample++) {
        int64_t at = 0;
        for (int i = 0; i < count; i++) {
            void **rows = decoder->histories_slots + (size_t)i * slots;
            int64_t past = caches[i]->final - caches[i]->first;
            compute_window(decoder, caches[i], &histories[i], sample, caches[i]->first, at);
            lp_row_cache_feed(caches[i], program, sample, 0, rows);
            feed_window(decoder, at, rows);
            decoder->histories[i] = (lp_run_history){.rows = rows, .past = (int)past};
            at += past + 1;
        }
        feed_many(decoder, count, caches, histories, times);
        decoder->inputs[LP_FEED_FREQUENCY_SAMPLE] = &sample;
        program->backend->run(program->backend->context, &run);
        add_outputs(decoder, &run);
    }
    decoder->window_stamp = 0;
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ attention -- */

lapse_status lp_decoder_attention(lp_decoder *decoder, lp_row_cache *cache, const lp_history *history, double time,
                                  int block, int head, double *weights, lapse_error *error)
{
    const lp_program *program = decoder->program;
    const lp_graph *graph = &program->network.graph;
    int index = lp_attention_node(graph, block), heads = graph->nodes[index]->attributes.heads;
    int first = head < 0 ? 0 : head, end = head < 0 ? heads : head + 1;
    double factor = 1.0 / ((end - first) * program->samples);
    lp_run run;
    int32_t segment[2];
    LP_TRY(begin_query(decoder, cache, history, time, &run, segment, error));
    for (int64_t i = 0; i < history->count - cache->first; i++)
        weights[i] = 0;
    for (int sample = 0; sample < program->samples; sample++) {
        run_query(decoder, cache, history, time, &run, sample, index);
        for (int h = first; h < end; h++)
            lp_attention_add(graph->nodes[index], &run, h, factor, decoder->attention_scores, weights);
    }
    return LAPSE_OK;
}
