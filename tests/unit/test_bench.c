/* test_bench.c: profiling does not change results, wrong kernels are not timed, and reports add up. */
#include "bench/bench_check.h"
#include "bench/bench_launches.h"
#include "bench/bench_machine.h"
#include "support/small_train.h"
#include "train/trainer.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------- check ----- */

static const lp_backend *right;
static int spoiled; /* index of the wrong gradient element */

static void run_wrong(void *context, const lp_run *run)
{
    right->run(context, run);
    float *gradient = (float *)run->gradients + spoiled;
    *gradient += 0.5f;
}

static void run_nan(void *context, const lp_run *run)
{
    right->run(context, run);
    ((float *)run->gradients)[spoiled] = NAN;
}

static void run_wrong_row(void *context, const lp_run *run)
{
    right->run(context, run);
    ((float *)run->row_gradients)[3] += 0.5f;
}

static lapse_status check_with(const char *preset, void (*run)(void *, const lp_run *), double *worst,
                               lapse_error *error)
{
    right = lp_backend_find("cpu");
    lp_backend wrong = *right;
    wrong.run = run;
    lapse_bench_options options;
    lapse_bench_options_default(&options);
    return lp_bench_check(lp_bench_preset_find(preset), &options, run ? &wrong : NULL, worst, error);
}

static void right_kernels_pass(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int i = 0; lapse_bench_preset_names()[i]; i++) {
        double worst = -1;
        lapse_error error;
        assert_non_null(lp_bench_preset_find(lapse_bench_preset_names()[i]));
        assert_int_equal(check_with(lapse_bench_preset_names()[i], NULL, &worst, &error), LAPSE_OK);
        assert_true(worst > 0 && worst < lp_bench_tolerance(LP_PRECISION_FP32));
    }
}

static void wrong_kernels_fail(void **state)
{
    (void)state;
    small_skip_under_tools();
    static void (*const wrongs[])(void *, const lp_run *) = {run_wrong, run_nan, run_wrong_row};
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        double worst = -1;
        lapse_error error;
        spoiled = 1;
        assert_int_equal(check_with("ml-1m", wrongs[i], &worst, &error), LAPSE_ERROR_INTERNAL);
        assert_non_null(strstr(error.message, "the kernels are wrong, so nothing was timed: the gradient of "));
        assert_non_null(strstr(error.message, i < 2 ? "time.log_period" : "event.embedding"));
        assert_true(worst > lp_bench_tolerance(LP_PRECISION_FP32));
    }
}

/* -------------------------------------------------------------------------------------------------- timing ----- */

/* Runs two steps, timed or not; returns a hash of the parameters. */
static uint64_t two_steps(const lapse_dataset *dataset, int threads, bool timed, lp_step_times *times, int *nodes)
{
    lapse_train_options options = small_train_options();
    options.run.threads = threads;
    options.run.shards = 3;
    lp_trainer trainer;
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    *nodes = trainer.network.graph.node_count;
    if (timed) {
        times->run = calloc((size_t)3 * (size_t)(*nodes + 1), sizeof *times->run);
        assert_non_null(times->run);
        trainer.times = times;
    }
    assert_int_equal(lp_trainer_epoch(&trainer, NULL), LAPSE_OK);
    lp_trainer_step(&trainer);
    lp_trainer_step(&trainer);
    uint64_t sum = 0;
    for (size_t i = 0; i < trainer.adam.size; i++) {
        uint32_t bits;
        memcpy(&bits, &trainer.parameters[i], sizeof bits);
        sum = sum * 31 + bits;
    }
    lp_trainer_clear(&trainer);
    return sum;
}

static void timing_changes_nothing(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = small_train_data(3);
    lp_step_times times = {0};
    int nodes;
    uint64_t without = two_steps(dataset, 1, false, &times, &nodes);
    assert_null(times.run);
    for (int threads = 1; threads <= 2; threads++) {
        assert_true(two_steps(dataset, threads, true, &times, &nodes) == without);
        int64_t sum = 0;
        for (int shard = 0; shard < 3; shard++)
            for (int i = 0; i < nodes; i++) {
                int64_t took = times.run[shard * (nodes + 1) + i];
                assert_true(took >= 0);
                sum += took;
            }
        assert_true(sum > 0);
        assert_true(times.total > 0 && times.fill > 0 && times.adam > 0);
        assert_true(times.fill + times.join + times.adam <= times.total);
        /* The nodes' times cover two steps; times.total covers the newest. */
        assert_true(threads > 1 || sum > times.total - times.fill - times.adam - times.total / 2);
        free(times.run);
        times.run = NULL;
    }
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------ launches ----- */

/* A graph of three nodes with two launches: the first node and a part of the last; the second node and the rest of the
 * last. */
static void launches_are_added(void **state)
{
    (void)state;
    static const lp_launch_part first[] = {{0, true}, {2, false}}, second[] = {{1, true}, {2, true}};
    static const double seconds[3][2][2] = {{{4, 1}, {2, 8}}, {{1, 1}, {3, 4}}, {{2, 5}, {5, 2}}};
    lp_graph graph = {0};
    lp_value *x = lp_graph_input(&graph, "x", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, 3);
    lp_relu(&graph, lp_add(&graph, lp_affine(&graph, x, 2, 1), x));
    assert_int_equal(graph.node_count, 3);
    lp_bench_launches launches;
    lapse_bench_row rows[2];
    assert_int_equal(lp_bench_launches_init(&launches, 3, NULL), LAPSE_OK);
    for (int round = 0; round < 3; round++) {
        for (int run = 0; run < 2; run++) {
            lp_launch one = {0, "fused", first, 2, seconds[round][run][0]};
            lp_launch two = {1, "reduction", second, 2, seconds[round][run][1]};
            lp_bench_launches_record(&launches, &one);
            lp_bench_launches_record(&launches, &two);
        }
        lp_bench_launches_end_round(&launches, round == 0);
    }
    const lp_cost costs[] = {{.flop = 1, .bytes = 10}, {.flop = 2, .bytes = 20}, {.flop = 4, .bytes = 40}};
    lp_bench_launches_rows(&launches, &graph, costs, rows);
    assert_int_equal(launches.count, 2);
    assert_string_equal(rows[0].name, "affine");
    assert_string_equal(rows[1].name, "add");
    assert_string_equal(rows[0].type, "fused");
    assert_string_equal(rows[1].type, "reduction");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rows[i].launch, i + 1);
        assert_int_equal(rows[i].nodes, 2);
        assert_int_equal(rows[i].calls, 2);
    }
    assert_true(rows[0].seconds == 4 && rows[1].seconds == 5); /* 6, 4 and 7; 9, 5 and 7 */
    assert_true(rows[0].flop == 1 && rows[0].bytes == 10);
    assert_true(rows[1].flop == 6 && rows[1].bytes == 60);
    lp_bench_launches_clear(&launches);
    lp_graph_clear(&graph);
}

/* --------------------------------------------------------------------------------------------- lapse_bench ----- */

static void machine_is_measured(void **state)
{
    (void)state;
    small_skip_under_tools();
    double bandwidth = 0;
    assert_true(lp_bench_peak(1) > 1e8);
    assert_int_equal(lp_bench_bandwidth(2, 5000, &bandwidth, NULL), LAPSE_OK);
    assert_true(bandwidth > 1e8);
}

static void report_adds_up(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_bench_options options;
    lapse_bench_report report;
    lapse_error error;
    for (int what = 0; what < 2; what++) {
        lapse_bench_options_default(&options);
        options.preset = "so";
        options.what = lapse_bench_what_names()[what];
        options.rounds = 2;
        options.batch = 8;
        options.threads = 2;
        assert_int_equal(lapse_bench(&options, &report, &error), LAPSE_OK);
        assert_string_equal(report.what, options.what);
        assert_true(report.step_best <= report.step_median && report.step_median <= report.step_p90);
        assert_true(report.flop > 0 && report.peak > 0 && report.bandwidth > 0 && report.events > 0);
        assert_true(report.tokens >= report.events);
        assert_true(what == 1 || report.windows == 8);
        double seconds = 0;
        bool attention = false, gradient = false;
        for (int i = 0; i < report.row_count; i++) {
            const lapse_bench_row *row = &report.rows[i];
            seconds += row->seconds;
            attention = attention || strcmp(row->name, "attention") == 0;
            gradient = gradient || strcmp(row->name, "attention_gradient") == 0;
            assert_true(i == 0 || row->seconds <= report.rows[i - 1].seconds);
            assert_true(row->roofline * (1 + 1e-9) >= row->flop * report.threads / report.peak);
        }
        assert_true(attention && gradient == (what == 0));
        assert_true(fabs(seconds / report.threads - report.step_minimum) < 1e-9);
        lapse_bench_report_clear(&report);
        assert_null(report.rows);
    }
}

static void options_are_refused(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        const char *preset, *what, *message;
        int rounds, batch;
        int64_t items;
    } cases[] = {
        {"nothing", "train", "there is no preset 'nothing'; there are ml-1m, ml-1m-softmax, so and catalogue", 1, 0, 0},
        {"so", "sleep", "a benchmark is train or predict, not 'sleep'", 1, 0, 0},
        {"so", "train", "rounds cannot be 0; it can be from 1 to 100000", 0, 0, 0},
        {"so", "train", "items cannot be 1; it can be from 2 to 2147483647", 1, 0, 1},
        {"so", "train", "batch cannot be 100000: the preset has ", 1, 100000, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_bench_options options;
        lapse_bench_report report;
        lapse_error error;
        lapse_bench_options_default(&options);
        options.preset = cases[i].preset;
        options.what = cases[i].what;
        options.rounds = cases[i].rounds;
        options.batch = cases[i].batch;
        options.items = cases[i].items;
        assert_int_equal(lapse_bench(&options, &report, &error), LAPSE_ERROR_USAGE);
        assert_memory_equal(error.message, cases[i].message, strlen(cases[i].message));
    }
}

/* Training options replace those of the preset: in the check, in the timed steps and in the report. */
static void sizes_are_changed(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const struct {
        const char *set[8][2];
        const char *message; /* NULL: it runs */
    } cases[] = {
        {{{"dims", "24"}, {"heads", "8"}, {"blocks", "8"}, {"context", "20"}, {"periods", "3"}}, NULL},
        {{{"dims", "18"}, {"heads", "6"}, {"encoding", "bochner"}, {"periods", "7"}, {"task", "recommend"}}, NULL},
        {{{"model", "lstm"}, {"dims", "24"}}, NULL}, /* it has no heads, blocks or harmonics */
        {{{"model", "lstm"}, {"heads", "2"}}, "has no option --heads"},
        {{{"dims", "24"}, {"heads", "5"}}, "must divide dims"},
    };
    int64_t before = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_bench_options options;
        lapse_bench_report report;
        lapse_error error;
        lapse_train_options *training;
        assert_int_equal(lapse_train_options_new(&training, &error), LAPSE_OK);
        for (int k = 0; k < 8 && cases[i].set[k][0]; k++)
            assert_int_equal(lapse_train_options_set(training, cases[i].set[k][0], cases[i].set[k][1], &error),
                             LAPSE_OK);
        lapse_bench_options_default(&options);
        options.preset = "so";
        options.rounds = options.threads = 1;
        options.batch = 4;
        options.training = training;
        if (cases[i].message) {
            assert_int_equal(lapse_bench(&options, &report, &error), LAPSE_ERROR_USAGE);
            assert_non_null(strstr(error.message, cases[i].message));
        } else {
            assert_int_equal(lapse_bench(&options, &report, &error), LAPSE_OK);
            assert_true(report.parameters != before && report.error < 1e-4);
            before = report.parameters;
            lapse_bench_report_clear(&report);
        }
        lapse_train_options_free(training);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_kernels_pass),     cmocka_unit_test(wrong_kernels_fail),
        cmocka_unit_test(timing_changes_nothing), cmocka_unit_test(machine_is_measured),
        cmocka_unit_test(report_adds_up),         cmocka_unit_test(options_are_refused),
        cmocka_unit_test(launches_are_added),     cmocka_unit_test(sizes_are_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
