/* test_cuda_bench.c: `lapse bench` on a GPU. Profiled runs compute the same as others, the work of every node counts in exactly one
 * launch, and the report adds up. Runs on the emulated device, or on a real one if the environment variable LAPSE_TEST_DEVICE is cuda. */
#include "bench/bench_launches.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "support/test_device.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int find_device(void **state)
{
    (void)state;
    test_device_choose();
    return 0;
}

/* ---------------------------------------------------------------------------------------------- the launches ----- */

/* What the profiler reports of a run. */
typedef struct notes {
    lp_bench_launches launches;
    const lp_graph *graph;
    int next;     /* expected number of the next launch */
    int *counted; /* [nodes]: how often its work was counted */
    int *seen;    /* [nodes]: in how many launches it is */
    int fused, reductions;
} notes;

static void note(void *context, const lp_launch *launch)
{
    notes *n = context;
    assert_int_equal(launch->number, n->next++);
    assert_true(launch->count > 0 && launch->seconds >= 0);
    assert_true(launch->count == 1 || strcmp(launch->type, "node") != 0);
    n->fused += strcmp(launch->type, "fused") == 0;
    n->reductions += strcmp(launch->type, "reduction") == 0;
    for (int i = 0; i < launch->count; i++) {
        int node = launch->parts[i].node;
        assert_in_range(node, 0, n->graph->node_count - 1);
        assert_true(i == 0 || node > launch->parts[i - 1].node);
        n->counted[node] += launch->parts[i].counts;
        n->seen[node]++;
    }
    lp_bench_launches_record(&n->launches, launch);
}

/* The parameters after two steps. With notes the second is profiled. */
static float *two_steps(const lapse_dataset *dataset, const char *precision, notes *n, size_t *size,
                        lapse_bench_row **rows, lp_cost *sum)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "device", "cuda");
    small_set(&options, "precision", precision);
    options.model.dropout = 0.2;
    small_set_number(&options, "blocks", 2);
    lp_trainer trainer;
    lapse_error error = {0};
    if (lp_trainer_init(&trainer, dataset, &options, &error) != LAPSE_OK ||
        lp_trainer_epoch(&trainer, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    const lp_graph *graph = &trainer.network.graph;
    size_t nodes = (size_t)graph->node_count;
    lp_profiler profiler = {note, n};
    lp_step_times times = {.profiler = &profiler};
    lp_trainer_step(&trainer);
    if (n) {
        *n = (notes){.graph = graph, .counted = calloc(nodes, sizeof(int)), .seen = calloc(nodes, sizeof(int))};
        assert_int_equal(lp_bench_launches_init(&n->launches, graph->node_count, NULL), LAPSE_OK);
        trainer.times = &times;
    }
    lp_trainer_step(&trainer);
    if (n) {
        /* Different integer costs for all nodes: their sums are exact. */
        lp_cost *costs = calloc(nodes, sizeof *costs);
        for (int i = 0; i < graph->node_count; i++) {
            costs[i] = (lp_cost){.flop = i + 1, .bytes = 1000 * i};
            *sum = (lp_cost){.flop = sum->flop + costs[i].flop, .bytes = sum->bytes + costs[i].bytes};
            assert_int_equal(n->counted[i], 1);
            assert_in_range(n->seen[i], 1, 2);
        }
        lp_bench_launches_end_round(&n->launches, true);
        *rows = calloc((size_t)n->launches.count, sizeof **rows);
        lp_bench_launches_rows(&n->launches, graph, costs, *rows);
        free(costs);
    }
    *size = trainer.adam.size * sizeof(float);
    float *parameters = malloc(*size);
    trainer.backend->copy_to_host(trainer.backend->context, parameters, trainer.parameters, *size);
    assert_null(trainer.backend->device_error(trainer.backend->context));
    lp_trainer_clear(&trainer);
    return parameters;
}

static void launches_are_whole(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(3);
    for (int i = 0; i < 2; i++) {
        const char *precision = i ? "tf32" : "fp32";
        notes n;
        size_t size;
        lapse_bench_row *rows = NULL;
        lp_cost sum = {0}, got = {0};
        float *plain = two_steps(dataset, precision, NULL, &size, NULL, NULL);
        float *watched = two_steps(dataset, precision, &n, &size, &rows, &sum);
        assert_memory_equal(watched, plain, size);
        /* In fp32 there are no fused kernels. */
        assert_true(n.reductions > 0);
        assert_true(i ? n.fused > 1 : n.fused == 0);
        assert_int_equal(n.launches.count, n.next);
        for (int k = 0; k < n.launches.count; k++) {
            assert_int_equal(rows[k].launch, k + 1);
            assert_int_equal(rows[k].calls, 1);
            assert_true(strcmp(rows[k].type, "node") != 0 || rows[k].nodes == 1);
            got = (lp_cost){.flop = got.flop + rows[k].flop, .bytes = got.bytes + rows[k].bytes};
        }
        assert_true(got.flop == sum.flop && got.bytes == sum.bytes);
        lp_bench_launches_clear(&n.launches);
        free(n.counted);
        free(n.seen);
        free(rows);
        free(plain);
        free(watched);
    }
    lapse_dataset_close(dataset);
}

/* How many launches have this type. */
typedef struct launch_count {
    const char *type;
    int count;
} launch_count;

static void count_launch(void *context, const lp_launch *launch)
{
    launch_count *c = context;
    c->count += strcmp(launch->type, c->type) == 0;
}

/* The launch of a sampled loss has the name of the loss. */
static void losses_have_names(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(3);
    for (int i = LP_LOSS_BCE; i < LP_LOSS_COUNT; i++) {
        const char *name = lp_losses[i].name;
        lapse_train_options options = small_train_options();
        small_set(&options, "task", "recommend");
        small_set(&options, "device", "cuda");
        small_set(&options, "loss", name);
        options.model.negative_count = 2;
        lp_trainer trainer;
        lapse_error error = {0};
        if (lp_trainer_init(&trainer, dataset, &options, &error) != LAPSE_OK ||
            lp_trainer_epoch(&trainer, &error) != LAPSE_OK)
            fail_msg("%s", error.message);
        launch_count found = {name, 0};
        lp_profiler profiler = {count_launch, &found};
        lp_step_times times = {.profiler = &profiler};
        trainer.times = &times;
        lp_trainer_step(&trainer);
        if (found.count != 1)
            fail_msg("%s: %d launches have its name", name, found.count);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------ the report ----- */

static void check_row(const lapse_bench_report *report, int i, bool *seen)
{
    const lapse_bench_row *row = &report->rows[i];
    assert_true(i == 0 || row->seconds <= report->rows[i - 1].seconds);
    assert_true(row->roofline == fmax(row->flop / report->peak, row->bytes / report->bandwidth));
    if (!row->launch) {
        assert_string_equal(row->name, "(adam)");
        assert_null(row->type);
        assert_int_equal(row->nodes, 0);
        return;
    }
    assert_non_null(row->type);
    assert_in_range(row->launch, 1, report->row_count - 1);
    assert_false(seen[row->launch]);
    seen[row->launch] = true;
}

static void report_adds_up(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int i = small_effort(0, 1); i < 2; i++) {
        lapse_bench_options options;
        lapse_bench_report report;
        lapse_error error;
        lapse_bench_options_default(&options);
        options.preset = "so";
        options.device = "cuda";
        options.precision = i ? "tf32" : "fp32";
        options.rounds = 2;
        options.batch = 1;
        if (lapse_bench(&options, &report, &error) != LAPSE_OK)
            fail_msg("%s", error.message);
        assert_string_equal(report.device, "cuda");
        assert_true(report.peak > 0 && report.bandwidth > 0 && report.row_count > 10);
        bool *seen = calloc((size_t)report.row_count + 1, sizeof *seen);
        double seconds = 0, flop = 0;
        int several = 0;
        for (int k = 0; k < report.row_count; k++) {
            check_row(&report, k, seen);
            seconds += report.rows[k].seconds;
            flop += report.rows[k].flop;
            several += report.rows[k].nodes > 1;
        }
        assert_true(several > 1 && flop > 0);
        assert_true(fabs(seconds - report.step_minimum) < 1e-9);
        free(seen);
        lapse_bench_report_clear(&report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_are_whole),
        cmocka_unit_test(losses_have_names),
        cmocka_unit_test(report_adds_up),
    };
    return cmocka_run_group_tests(tests, find_device, NULL);
}
