/* bench_launches.c: records the launches of a device and makes report rows of them. */
#include "bench/bench_launches.h"

lapse_status lp_bench_launches_init(lp_bench_launches *launches, int nodes, lapse_error *error)
{
    *launches = (lp_bench_launches){.counted_in = lp_alloc((size_t)nodes, sizeof *launches->counted_in)};
    if (!launches->counted_in)
        return lp_fail_memory(error, "launches", (size_t)nodes * sizeof *launches->counted_in);
    for (int i = 0; i < nodes; i++)
        launches->counted_in[i] = -1;
    return LAPSE_OK;
}

void lp_bench_launches_clear(lp_bench_launches *launches)
{
    lp_free(launches->all);
    lp_free(launches->counted_in);
    *launches = (lp_bench_launches){0};
}

static bool reserve(lp_bench_launches *launches, int count)
{
    if (count <= launches->capacity)
        return true;
    int capacity = 2 * launches->capacity > count ? 2 * launches->capacity : count + 62;
    lp_bench_launch *all = lp_grow(launches->all, (size_t)capacity, sizeof *all);
    launches->out_of_memory = launches->out_of_memory || !all;
    if (!all)
        return false;
    launches->all = all;
    launches->capacity = capacity;
    return true;
}

void lp_bench_launches_record(void *context, const lp_launch *launch)
{
    lp_bench_launches *launches = context;
    if (!reserve(launches, launch->number + 1))
        return;
    while (launches->count <= launch->number)
        launches->all[launches->count++] = (lp_bench_launch){0};
    lp_bench_launch *one = &launches->all[launch->number];
    one->type = launch->type;
    one->first = launch->parts[0].node;
    one->count = launch->count;
    one->new_calls++;
    one->seconds += launch->seconds;
    for (int i = 0; i < launch->count; i++)
        if (launch->parts[i].counts)
            launches->counted_in[launch->parts[i].node] = launch->number;
}

void lp_bench_launches_end_round(lp_bench_launches *launches, bool first)
{
    for (int i = 0; i < launches->count; i++) {
        lp_bench_launch *launch = &launches->all[i];
        if (first || launch->seconds < launch->min_seconds)
            launch->min_seconds = launch->seconds;
        launch->calls = launch->new_calls;
        launch->new_calls = 0;
        launch->seconds = 0;
    }
}

void lp_bench_launches_rows(const lp_bench_launches *launches, const lp_graph *graph, const lp_cost *costs,
                            lapse_bench_row *rows)
{
    for (int i = 0; i < launches->count; i++) {
        const lp_bench_launch *launch = &launches->all[i];
        rows[i] = (lapse_bench_row){.name = graph->nodes[launch->first]->op->name,
                                    .type = launch->type,
                                    .launch = i + 1,
                                    .nodes = launch->count,
                                    .calls = launch->calls,
                                    .seconds = launch->min_seconds};
    }
    for (int node = 0; node < graph->node_count; node++) {
        int number = launches->counted_in[node];
        if (number < 0)
            continue;
        rows[number].flop += costs[node].flop;
        rows[number].bytes += costs[node].bytes;
    }
}
