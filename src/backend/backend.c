/* backend.c: functions common to all backends: planning, errors of the device, and the fallback for ranking kernels. */
#include "backend/backend.h"

lapse_status lp_backend_plan(const lp_backend *backend, lp_plan *plan, lp_graph *graph, const lp_extent *largest,
                             lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    if (!backend->schedule)
        return lp_plan_make_at(plan, graph, largest, backend->real_size, NULL, backend->reuse_delay, error);
    size_t count = (size_t)graph->node_count + 1;
    lp_schedule_level *levels = lp_alloc(count, sizeof *levels);
    if (!levels || !backend->schedule(backend->context, graph, levels)) {
        lp_free(levels);
        return lp_fail_memory(error, "scheduling a graph", count * sizeof *levels);
    }
    lapse_status status =
        lp_plan_make_at(plan, graph, largest, backend->real_size, levels, backend->reuse_delay, error);
    lp_free(levels);
    return status;
}

lapse_status lp_backend_check(const lp_backend *backend, lapse_error *error)
{
    const char *problem = backend->device_error ? backend->device_error(backend->context) : NULL;
    return problem ? lp_fail(error, LAPSE_ERROR_INTERNAL, "the GPU failed: %s", problem) : LAPSE_OK;
}

const lp_ranking_kernels *lp_backend_ranking(const lp_backend *backend)
{
    backend = backend->ranking ? backend : lp_backend_find("cpu");
    return backend->ranking(backend->context);
}
