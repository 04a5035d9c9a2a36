/* adam.c: the optimizer's buffers and per-parameter settings; its step is each backend's. */
#include "backend/adam.h"

#include "backend/backend.h"

/* Upper bound on the partial norms of any backend: one per alignment group, per row and per table. */
static size_t norm_count(const lp_adam *adam)
{
    size_t rows = (size_t)adam->shards * (size_t)adam->item_capacity;
    return (adam->size - adam->table_size) / LP_PARAMETER_ALIGN + rows + LP_TABLE_LIMIT + 2;
}

static lapse_status copy_tables(lp_adam *adam, const lp_graph *graph, lapse_error *error)
{
    adam->size = graph->parameter_size;
    adam->table_size = graph->table_size;
    adam->table_cols = graph->table_cols;
    adam->table_count = 0;
    for (int i = 0; i < graph->parameter_count && graph->parameters[i].table; i++) {
        const lp_value *value = graph->parameters[i].value;
        if (adam->table_count == LP_TABLE_LIMIT)
            return lp_fail(error, LAPSE_ERROR_INTERNAL, "a network has more than %d tables", (int)LP_TABLE_LIMIT);
        adam->tables[adam->table_count++] =
            (lp_table){value->offset, value->cols, value->slot, (float)graph->parameters[i].rate,
                       graph->parameters[i].unit_ball};
    }
    return LAPSE_OK;
}

/* Learning-rate multipliers of the dense parameters. */
static bool set_rates(lp_adam *adam, const lp_graph *graph)
{
    size_t groups = (adam->size - adam->table_size) / LP_PARAMETER_ALIGN;
    float *rates = lp_alloc(groups, sizeof *rates);
    for (size_t i = 0; rates && i < groups; i++)
        rates[i] = 1;
    for (int i = adam->table_count; rates && i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        size_t begin = value->offset - adam->table_size, end = begin + (size_t)value->rows * (size_t)value->cols;
        for (size_t k = begin; k < end; k += LP_PARAMETER_ALIGN)
            rates[k / LP_PARAMETER_ALIGN] = (float)graph->parameters[i].rate;
    }
    if (rates)
        adam->backend->copy_to_device(adam->backend->context, adam->rates, rates, groups * sizeof *rates);
    lp_free(rates);
    return rates != NULL;
}

lapse_status lp_adam_init(lp_adam *adam, const lp_backend *backend, const lp_graph *graph, lapse_error *error)
{
    adam->backend = backend;
    LP_TRY(copy_tables(adam, graph, error));
    size_t dense = adam->size - adam->table_size, shards = (size_t)adam->shards;
    size_t rows = shards * (size_t)adam->item_capacity * (size_t)adam->table_cols;
    adam->gradients = backend->buffer_new(backend->context, shards * dense * sizeof(float));
    adam->row_gradients = backend->buffer_new(backend->context, rows * sizeof(float));
    adam->moment1 = backend->buffer_new(backend->context, adam->size * sizeof(float));
    adam->moment2 = backend->buffer_new(backend->context, adam->size * sizeof(float));
    adam->rates = backend->buffer_new(backend->context, dense / LP_PARAMETER_ALIGN * sizeof(float));
    adam->norms = backend->buffer_new(backend->context, norm_count(adam) * sizeof(double));
    bool good = adam->gradients && adam->row_gradients && adam->moment1 && adam->moment2 && adam->rates && adam->norms;
    if (good && set_rates(adam, graph))
        return LAPSE_OK;
    lp_adam_clear(adam);
    return lp_fail_memory(error, "the optimizer", (shards * dense + rows + 2 * adam->size) * sizeof(float));
}

void lp_adam_clear(lp_adam *adam)
{
    void *buffers[] = {adam->gradients, adam->row_gradients, adam->moment1, adam->moment2, adam->rates, adam->norms};
    for (size_t i = 0; adam->backend && i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            adam->backend->buffer_free(adam->backend->context, buffers[i]);
    *adam = (lp_adam){0};
}
