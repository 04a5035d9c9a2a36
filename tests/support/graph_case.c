/* graph_case.c: random leaves, runs on kernels or backends, and the collection of results. */
#include "support/graph_case.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int graph_case_elements(const graph_case *this, const lp_value *value)
{
    return (value->rows_of == LP_ROWS_FIXED ? value->rows : this->rows[value->rows_of]) * value->cols;
}

void graph_case_gradients(graph_case *this, lp_node *node)
{
    lapse_error error;
    assert_non_null(node);
    for (int i = 0; i < node->op->output_count; i++) {
        lp_value *output = node->outputs[i];
        if (!output || i == 1)
            continue;
        output->retained = true;
        this->outputs[this->output_count] = output;
        this->seeds[this->output_count++] =
            lp_graph_input(&this->graph, "seed", output->type, output->rows_of, output->rows, output->cols);
    }
    assert_int_equal(lp_graph_gradients(&this->graph, this->output_count, this->outputs, this->seeds, &error),
                     LAPSE_OK);
    for (int i = 0; i < this->graph.value_count; i++) {
        lp_value *value = this->graph.values[i];
        if (value->storage == LP_STORAGE_INPUT && value->gradient && value->gradient->storage == LP_STORAGE_WORK)
            assert_true(value->gradient->retained);
    }
    assert_true(this->graph.value_count <= CASE_VALUES);
}

void graph_case_segments(graph_case *this, const int *lengths, int count)
{
    this->segments = count;
    int tokens = 0;
    for (int i = 0; i < count; i++)
        this->segment[i + 1] = tokens += lengths[i];
    this->rows[LP_ROWS_TOKENS] = tokens;
    this->rows[LP_ROWS_TARGETS] = tokens * 2 / 3;
    this->rows[LP_ROWS_ITEMS] = tokens + 3;
}

/* Normal, at least 0.1 away from the kink of relu at 0, and exact in float. */
static double draw(lp_random *random)
{
    double x = lp_random_normal(random);
    return (float)(x + (x < 0 ? -0.1 : 0.1));
}

/* Sorted within each segment, the last of each at 0. */
static void fill_times(const graph_case *this, double *time, lp_random *random)
{
    for (int s = 0; s < this->segments; s++) {
        double now = 0;
        for (int t = this->segment[s + 1] - 1; t >= this->segment[s]; t--) {
            time[t] = now;
            now -= this->gap * lp_random_exponential(random);
        }
    }
}

void graph_case_fill(graph_case *this, lp_random *random)
{
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (value->storage != LP_STORAGE_INPUT)
            continue;
        int count = graph_case_elements(this, value);
        double *data = this->inputs[value->slot] = calloc((size_t)count + 1, sizeof *data);
        bool times = value->type == LP_TYPE_DOUBLE && value->rows_of == LP_ROWS_TOKENS;
        if (times)
            fill_times(this, data, random);
        int limit = value->limit_of == LP_ROWS_FIXED ? value->limit : this->rows[value->limit_of];
        for (int k = 0; k < count && !times; k++)
            data[k] = value->type == LP_TYPE_INT32 ? lp_random_below(random, (uint32_t)limit) : draw(random);
    }
    this->parameters = calloc(this->graph.parameter_size + 1, sizeof(double));
    for (size_t i = 0; i < this->graph.parameter_size; i++)
        this->parameters[i] = draw(random);
}

static void to_type(void *out, const double *in, int count, lp_type type, size_t real_size)
{
    bool is_float = type == LP_TYPE_REAL && real_size == sizeof(float);
    for (int i = 0; i < count; i++) {
        if (type == LP_TYPE_INT32)
            ((int32_t *)out)[i] = (int32_t)in[i];
        else if (is_float)
            ((float *)out)[i] = (float)in[i];
        else
            ((double *)out)[i] = in[i];
    }
}

static double *from_type(const void *in, int count, lp_type type, size_t real_size)
{
    double *out = calloc((size_t)count + 1, sizeof *out);
    bool is_float = type == LP_TYPE_REAL && real_size == sizeof(float);
    for (int i = 0; i < count; i++)
        out[i] = is_float ? (double)((const float *)in)[i] : ((const double *)in)[i];
    return out;
}

static lp_extent extent_of(const graph_case *this)
{
    lp_extent extent = {0};
    for (int i = 0; i < LP_ROWS_COUNT; i++)
        extent.rows[i] = this->rows[i];
    for (int s = 0; s < this->segments; s++) {
        int length = this->segment[s + 1] - this->segment[s];
        extent.pairs += (int64_t)length * (length + 1) / 2;
        extent.longest = length > extent.longest ? length : extent.longest;
    }
    return extent;
}

static void *poisoned(size_t size)
{
    void *block = lp_alloc(size, 1);
    assert_non_null(block);
    return memset(block, 0xFF, size);
}

/* Scatters row gradients into the gradient of a table. */
static void add_rows(const graph_case *this, const lp_run *run, const lp_node *gather, double *gradients)
{
    const lp_value *table = gather->inputs[0];
    const double *rows = this->inputs[gather->inputs[1]->slot];
    double *given = from_type(lp_run_data(run, table->gradient), graph_case_elements(this, gather->outputs[0]),
                              LP_TYPE_REAL, run->plan->real_size);
    for (int i = 0; i < this->rows[LP_ROWS_ITEMS]; i++)
        for (int c = 0; c < table->cols; c++)
            gradients[table->offset + (size_t)rows[i] * (size_t)table->cols + (size_t)c] += given[i * table->cols + c];
    free(given);
}

static void collect(const graph_case *this, const lp_run *run, graph_result *result)
{
    size_t real_size = run->plan->real_size;
    *result = (graph_result){0};
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (value->storage == LP_STORAGE_WORK && value->retained)
            result->values[i] =
                from_type(lp_run_data(run, value), graph_case_elements(this, value), value->type, real_size);
    }
    const lp_graph *graph = &this->graph;
    int dense = (int)(graph->parameter_size - graph->table_size);
    double *behind = from_type(run->gradients, dense, LP_TYPE_REAL, real_size);
    result->gradients = calloc(graph->parameter_size + 1, sizeof(double));
    memcpy(result->gradients + graph->table_size, behind, (size_t)dense * sizeof(double));
    free(behind);
    for (int i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->op->id == LP_OP_GATHER)
            add_rows(this, run, graph->nodes[i], result->gradients);
}

void graph_case_run(graph_case *this, size_t real_size, const lp_kernel *kernels, graph_result *result)
{
    lapse_error error;
    lp_extent extent = extent_of(this);
    assert_int_equal(lp_plan_make(&this->plan, &this->graph, &extent, real_size, &error), LAPSE_OK);
    void *inputs[CASE_VALUES], *blocks[CASE_VALUES];
    int count = this->graph.input_count;
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (value->storage != LP_STORAGE_INPUT)
            continue;
        int size = graph_case_elements(this, value);
        blocks[value->slot] = lp_alloc((size_t)size * 8 + (size_t)this->misalign, 1);
        inputs[value->slot] = (char *)blocks[value->slot] + (value->type == LP_TYPE_DOUBLE ? 0 : this->misalign);
        to_type(inputs[value->slot], this->inputs[value->slot], size, value->type, real_size);
    }
    void *parameters = lp_alloc(this->graph.parameter_size, real_size);
    to_type(parameters, this->parameters, (int)this->graph.parameter_size, LP_TYPE_REAL, real_size);
    lp_run run = {.plan = &this->plan,
                  .work = poisoned(this->plan.work_size),
                  .inputs = inputs,
                  .scratch = poisoned(this->plan.scratch_size),
                  .parameters = parameters,
                  .gradients = poisoned(this->graph.parameter_size * real_size),
                  .row_gradients = poisoned((size_t)(this->rows[LP_ROWS_ITEMS] * this->graph.table_cols) * real_size),
                  .segments = this->segments,
                  .segment = this->segment,
                  .seed = 77,
                  .step = 5,
                  .first_token = this->first_token};
    memcpy(run.rows, this->rows, sizeof run.rows);
    for (int i = 0; i < this->graph.node_count; i++)
        kernels[this->graph.nodes[i]->op->id](this->graph.nodes[i], &run);
    collect(this, &run, result);
    for (int i = 0; i < count; i++)
        lp_free(blocks[i]);
    lp_free(parameters);
    lp_free(run.work);
    lp_free(run.scratch);
    lp_free(run.gradients);
    lp_free(run.row_gradients);
}

/* ---- through a backend --------------------------------------------------------------------------------------- */

/* A buffer of a backend, filled with NaN. */
static void *poisoned_on(const lp_backend *backend, size_t size)
{
    void *block = backend->buffer_new(backend->context, size), *host = poisoned(size);
    assert_non_null(block);
    backend->copy_to_device(backend->context, block, host, size);
    lp_free(host);
    return block;
}

/* A host copy of a buffer. */
static void *fetched(const lp_backend *backend, const void *data, size_t size)
{
    void *host = lp_alloc(size, 1);
    assert_non_null(host);
    backend->copy_to_host(backend->context, host, data, size);
    return host;
}

/* The leaves as float, int32 or double. */
static void make_inputs(const graph_case *this, void *inputs[CASE_VALUES])
{
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (value->storage != LP_STORAGE_INPUT)
            continue;
        int size = graph_case_elements(this, value);
        inputs[value->slot] = lp_alloc((size_t)size + 1, 8);
        assert_non_null(inputs[value->slot]);
        to_type(inputs[value->slot], this->inputs[value->slot], size, value->type, sizeof(float));
    }
}

/* Collects the results from host copies of the buffers. */
static void collect_from(const graph_case *this, const lp_backend *backend, const lp_run *run, size_t sizes[3],
                         graph_result *result)
{
    lp_run copy = *run;
    copy.work = fetched(backend, run->work, sizes[0]);
    copy.gradients = fetched(backend, run->gradients, sizes[1]);
    copy.row_gradients = fetched(backend, run->row_gradients, sizes[2]);
    collect(this, &copy, result);
    lp_free(copy.work);
    lp_free(copy.gradients);
    lp_free(copy.row_gradients);
}

void graph_case_run_on(graph_case *this, const lp_backend *backend, int extra_tokens, int times, graph_result *result)
{
    lapse_error error;
    lp_extent extent = extent_of(this);
    for (int i = 1; i < LP_ROWS_COUNT; i++)
        extent.rows[i] += extra_tokens;
    lapse_status planned = this->in_order ? lp_plan_make(&this->plan, &this->graph, &extent, backend->real_size, &error)
                                          : lp_backend_plan(backend, &this->plan, &this->graph, &extent, &error);
    assert_int_equal(planned, LAPSE_OK);
    size_t parameter_size = this->graph.parameter_size * backend->real_size;
    size_t sizes[] = {this->plan.work_size, parameter_size,
                      (size_t)extent.rows[LP_ROWS_ITEMS] * (size_t)this->graph.table_cols * backend->real_size};
    void *inputs[CASE_VALUES] = {NULL}, *host = lp_alloc(parameter_size, 1), *zeros = lp_alloc(parameter_size, 1);
    make_inputs(this, inputs);
    to_type(host, this->parameters, (int)this->graph.parameter_size, LP_TYPE_REAL, backend->real_size);
    void *parameters = backend->buffer_new(backend->context, parameter_size);
    lp_run run = {.plan = &this->plan,
                  .work = poisoned_on(backend, sizes[0]),
                  .inputs = inputs,
                  .scratch = poisoned_on(backend, this->plan.scratch_size),
                  .parameters = parameters,
                  .gradients = poisoned_on(backend, sizes[1]),
                  .row_gradients = poisoned_on(backend, sizes[2]),
                  .segments = this->segments,
                  .segment = this->segment,
                  .seed = 77,
                  .step = 5,
                  .first_token = this->first_token,
                  .precision = this->precision};
    memcpy(run.rows, this->rows, sizeof run.rows);
    for (int i = 0; i < times; i++) {
        backend->copy_to_device(backend->context, parameters, i + 1 < times ? zeros : host, parameter_size);
        backend->run(backend->context, &run);
    }
    backend->sync(backend->context);
    if (backend->device_error && backend->device_error(backend->context))
        fail_msg("%s", backend->device_error(backend->context));
    collect_from(this, backend, &run, sizes, result);
    for (int i = 0; i < this->graph.input_count; i++)
        lp_free(inputs[i]);
    lp_free(host);
    lp_free(zeros);
    backend->buffer_free(backend->context, parameters);
    backend->buffer_free(backend->context, run.work);
    backend->buffer_free(backend->context, run.scratch);
    backend->buffer_free(backend->context, run.gradients);
    backend->buffer_free(backend->context, run.row_gradients);
}

double graph_case_loss(const graph_case *this, const graph_result *result)
{
    double loss = 0;
    for (int i = 0; i < this->output_count; i++)
        for (int k = 0; k < graph_case_elements(this, this->outputs[i]); k++)
            loss += result->values[this->outputs[i]->id][k] * this->inputs[this->seeds[i]->slot][k];
    return loss;
}

void graph_result_clear(graph_result *result)
{
    for (int i = 0; i < CASE_VALUES; i++)
        free(result->values[i]);
    free(result->gradients);
    *result = (graph_result){0};
}

void graph_case_clear(graph_case *this)
{
    for (int i = 0; i < CASE_VALUES; i++)
        free(this->inputs[i]);
    free(this->parameters);
    lp_graph_clear(&this->graph);
    *this = (graph_case){0};
}
