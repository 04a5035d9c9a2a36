#include "backend/backend.h"

lapse_status lp_backend_plan(const lp_backend *backend, lp_plan *plan, lp_graph *graph, const lp_extent *largest,
                             lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    if (!backend->arrange)
        return lp_plan_make_at(plan, graph, largest, backend->real_size, NULL, backend->reuse_delay, error);
    size_t count = (size_t)graph->node_count + 1;
    lp_schedule_level *moments = lp_alloc(count, sizeof *moments);
    if (!moments || !backend->arrange(backend->context, graph, moments)) {
        lp_free(moments);
        return lp_fail_memory(error, "arranging a graph", count * sizeof *moments);
    }
    lapse_status status = lp_plan_make_at(plan, graph, largest, backend->real_size, moments, backend->reuse_delay, error);
    lp_free(moments);
    return status;
}
