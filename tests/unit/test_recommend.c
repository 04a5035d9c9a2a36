/* test_recommend.c: recommenders: the gradients of every loss, rows of tables against whole tables, the same bits whatever the
 * threads, and what is learned. */
#include "backend/cpu/cpu.h"
#include "support/graph_slope.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Every loss with every event type of negatives that it takes. */
static const struct loss {
    const char *loss, *negatives;
    int count;
} losses[] = {
    {"softmax", "uniform", 0},
    {"bce", "uniform", 1},
    {"bce", "popularity", 3},
    {"sampled-softmax", "uniform", 4},
    {"sampled-softmax", "popularity", 4},
    {"sampled-softmax", "in-batch", 0},
    {"bpr", "uniform", 1},
    {"top1", "uniform", 3},
    {"bpr-max", "popularity", 5},
    {"top1-max", "popularity", 5},
};
enum { LOSSES = sizeof losses / sizeof *losses };

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

static lp_model_config recommender(const struct loss *loss, lp_output output)
{
    lp_model_config config = small_config(lp_encodings[0], 4, 2, 2);
    config.task = LP_TASK_RECOMMEND;
    config.output = output;
    config.negative_count = loss->count;
    config.score_regularization = 0.5;
    config.loss = config.negatives = 0;
    while (strcmp(lp_loss_names[config.loss], loss->loss) != 0)
        config.loss++;
    while (strcmp(lp_negative_names[config.negatives], loss->negatives) != 0)
        config.negatives++;
    return config;
}

static void gradients(void **state)
{
    (void)state;
    for (int i = 0; i < LOSSES; i++)
        for (int output = 0; output < 2; output++) {
            lp_model_config config = recommender(&losses[i], (lp_output)output);
            char what[100];
            lp_network network;
            lapse_error error = {0};
            graph_case this = {.gap = 1};
            snprintf(what, sizeof what, "%s, %s, output %s", losses[i].loss, losses[i].negatives,
                     lp_output_names[output]);
            if (lp_network_build(&network, &config, true, &error) != LAPSE_OK)
                fail_msg("%s: %s", what, error.message);
            assert_int_equal(network.graph.table_cols, i == 0 ? 0 : output ? 9 : 5);
            this.graph = network.graph;
            this.output_count = 1;
            this.outputs[0] = network.loss;
            for (int v = 0; v < this.graph.value_count; v++)
                if (strcmp(this.graph.values[v]->name, "seed") == 0)
                    this.seeds[0] = this.graph.values[v];
            lp_random random = lp_random_start((uint64_t)i, LP_PURPOSE_TEST, 600);
            graph_case_segments(&this, (int[]){1, 4, 3}, 3);
            graph_case_fill(&this, &random);
            graph_slope_check(&this, what, small_effort(1, 17));
            graph_case_clear(&this);
        }
}

/* The parameters of a network that answers stand where those of the one that learns do. */
static void same_places(void **state)
{
    (void)state;
    for (int i = 0; i < LOSSES; i++)
        for (int output = 0; output < 2; output++) {
            lp_model_config config = recommender(&losses[i], (lp_output)output);
            lp_network learns, answers;
            assert_int_equal(lp_network_build(&learns, &config, true, NULL), LAPSE_OK);
            assert_int_equal(lp_network_build(&answers, &config, false, NULL), LAPSE_OK);
            assert_int_equal(learns.graph.parameter_count, answers.graph.parameter_count);
            assert_int_equal(learns.graph.parameter_size, answers.graph.parameter_size);
            for (int p = 0; p < learns.graph.parameter_count; p++) {
                const lp_value *a = learns.graph.parameters[p].value, *b = answers.graph.parameters[p].value;
                assert_string_equal(a->name, b->name);
                assert_true(a->offset == b->offset && a->rows == b->rows && a->cols == b->cols);
            }
            assert_non_null(answers.state);
            assert_null(answers.loss);
            lp_graph_clear(&learns.graph);
            lp_graph_clear(&answers.graph);
        }
}

/* What is chosen where the options are not given: by the loss, and the loss by the model. */
static void defaults_follow_the_loss(void **state)
{
    (void)state;
    static const struct {
        const char *model, *loss, *chosen, *negatives, *count; /* loss NULL: not given; negatives NULL: it has none */
        const char *preset, *output;
    } cases[] = {
        {"attention", NULL, "softmax", NULL, NULL, NULL, "shared"},
        {"attention", "bce", "bce", "uniform", "1", NULL, "shared"},
        {"attention", "sampled-softmax", "sampled-softmax", "uniform", "1000", NULL, "shared"},
        {"gru4rec", "bpr", "bpr", "uniform", "1", NULL, "shared"},
        {"gru4rec", "bpr-max", "bpr-max", "popularity", "100", NULL, "shared"},
        {"sasrec", "top1-max", "top1-max", "popularity", "100", NULL, "shared"},
        {"sasrec", NULL, "bce", "uniform", "1", NULL, "shared"},
        {"caser", NULL, "bce", "uniform", "3", NULL, "separate"},
        {"caser", "bpr", "bpr", "uniform", "1", NULL, "separate"},
        {"caser", "softmax", "softmax", NULL, NULL, NULL, "separate"},
        {"transrec", NULL, "bpr", "uniform", "1", NULL, "shared"},
        {"gru4rec", NULL, "softmax", NULL, NULL, NULL, "shared"},
        {"gru4rec", NULL, "top1", "in-batch", "49", "2016", "separate"},
        {"gru4rec", "softmax", "softmax", NULL, NULL, "2016", "separate"},
        {"gru4rec", NULL, "bpr-max", "popularity", "100", "2018", "shared"},
    };
    lapse_dataset *dataset = small_train_data(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[LP_OPTION_TEXT_SIZE];
        lapse_train_options options = small_train_options();
        small_set(&options, "task", "recommend");
        small_set(&options, "model", cases[i].model);
        if (cases[i].loss)
            small_set(&options, "loss", cases[i].loss);
        if (cases[i].preset)
            small_set(&options, "preset", cases[i].preset);
        assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
        assert_string_equal(lapse_train_options_get(&options, "loss", text, sizeof text), cases[i].chosen);
        assert_string_equal(lapse_train_options_get(&options, "item-output", text, sizeof text),
                            cases[i].output);
        assert_int_equal(lapse_train_options_apply(&options, "negatives"), cases[i].negatives != NULL);
        assert_int_equal(lapse_train_options_apply(&options, "score-regularization"),
                         strcmp(cases[i].chosen, "bpr-max") == 0);
        if (!cases[i].negatives)
            continue;
        assert_string_equal(lapse_train_options_get(&options, "negatives", text, sizeof text), cases[i].negatives);
        assert_string_equal(lapse_train_options_get(&options, "negative-count", text, sizeof text), cases[i].count);
    }
    lapse_dataset_close(dataset);
}

/* The points of transrec leave the surface of the unit ball inwards alone, and its own items are never negatives. */
static void points_stay_in_the_unit_ball(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    for (int distance = 0; distance < 2; distance++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "model", "transrec");
        small_set(&options, "distance", distance ? "l1" : "l2");
        options.run.learning_rate = 0.1;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        const lp_value *items = model->network.items;
        double least = 1;
        assert_string_equal(lp_model_property_find(model, "train.negatives_unseen"), "true");
        for (int r = 0; r < items->rows; r++) {
            double squares = 0;
            for (int c = 0; c < items->cols; c++) {
                double x = (double)model->parameters[items->offset + (size_t)(r * items->cols + c)];
                squares += x * x;
            }
            assert_true(squares < 1 + 1e-5);
            least = fmin(least, squares);
        }
        assert_true(least < 0.999);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------------- optimizer ---- */

/* A graph of one table [6 x 3] and one other parameter. */
static void table_graph(lp_graph *graph)
{
    lp_graph_table(graph, "table", 6, 3, LP_INIT_ZEROS, 0);
    lp_graph_parameter(graph, "other", 1, 5, LP_INIT_ZEROS, 0);
}

/* Three steps on a table of which all rows occur in one of two shards or in both, against the plain formula on the whole
 * table; then a step that leaves rows alone. */
static void rows_as_a_whole_table(void **state)
{
    (void)state;
    enum { ROWS = 6, COLS = 3, CAPACITY = 6, SIZE = 32 + 16 };
    const lp_backend *cpu = lp_backend_find("cpu");
    lp_graph graph = {0};
    table_graph(&graph);
    lp_adam adam = {.shards = 2,
                    .threads = 2,
                    .item_capacity = CAPACITY,
                    .learning_rate = 0.1,
                    .beta1 = 0.9,
                    .beta2 = 0.98,
                    .epsilon = 1e-8,
                    .l2 = 0.01,
                    .clip = 0.5};
    assert_int_equal(lp_adam_init(&adam, cpu, &graph, NULL), LAPSE_OK);
    assert_int_equal(adam.size, SIZE);
    assert_int_equal(adam.table_size, 32);
    /* shard 0 lists rows 5 2 0, shard 1 lists 1 2 3 4 */
    static const int32_t row[] = {5, 2, 0, 1, 3, 4}, first[] = {0, 1, 3, 4, 5, 6, 7};
    static const int32_t place[] = {0, 1, CAPACITY + 1, 2, CAPACITY, CAPACITY + 2, CAPACITY + 3};
    lp_row_union rows = {6, (int32_t *)(uintptr_t)row, (int32_t *)(uintptr_t)first, (int32_t *)(uintptr_t)place};
    float parameters[SIZE];
    double expected[SIZE], moment1[SIZE] = {0}, moment2[SIZE] = {0};
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 601);
    for (int i = 0; i < SIZE; i++)
        expected[i] = parameters[i] = (float)lp_random_normal(&random);
    for (uint64_t step = 1; step <= 3; step++) {
        double gradient[SIZE] = {0}, norm = 0;
        for (int i = 0; i < 2 * 16; i++)
            gradient[32 + i % 16] += adam.gradients[i] = i % 16 < 5 ? (float)lp_random_normal(&random) : 0;
        for (int r = 0; r < 6; r++)
            for (int p = first[r]; p < first[r + 1]; p++)
                for (int c = 0; c < COLS; c++)
                    gradient[row[r] * COLS + c] += adam.row_gradients[place[p] * COLS + c] =
                        (float)lp_random_normal(&random);
        for (int i = 0; i < SIZE; i++) {
            bool padding = i >= ROWS * COLS && (i < 32 || i >= 37);
            gradient[i] = padding ? 0 : gradient[i] + 0.01 * expected[i];
            norm += gradient[i] * gradient[i];
        }
        double scale = sqrt(norm) > 0.5 ? 0.5 / sqrt(norm) : 1;
        for (int i = 0; i < SIZE; i++) {
            double g = gradient[i] * scale;
            moment1[i] = 0.9 * moment1[i] + 0.1 * g;
            moment2[i] = 0.98 * moment2[i] + 0.02 * g * g;
            double second = sqrt(moment2[i] / (1 - pow(0.98, (double)step)));
            expected[i] -= 0.1 * (moment1[i] / (1 - pow(0.9, (double)step))) / (second + 1e-8);
        }
        for (int i = 37; i < SIZE; i++) /* what no parameter has */
            parameters[i] = 0;
        cpu->reduce(cpu->context, &adam, &rows);
        cpu->adam_step(cpu->context, &adam, step, &rows, parameters);
        for (int i = 0; i < ROWS * COLS; i++)
            assert_float_equal(parameters[i], expected[i], 1e-5);
        for (int i = 32; i < 37; i++)
            assert_float_equal(parameters[i], expected[i], 1e-5);
    }
    float before[SIZE], moment[32];
    memcpy(before, parameters, sizeof before);
    memcpy(moment, adam.moment1, sizeof moment);
    lp_row_union none = {0, (int32_t *)(uintptr_t)row, (int32_t *)(uintptr_t)first, (int32_t *)(uintptr_t)place};
    cpu->adam_step(cpu->context, &adam, 4, &none, parameters);
    assert_memory_equal(parameters, before, 32 * sizeof *before);
    assert_memory_equal(adam.moment1, moment, sizeof moment);
    lp_adam_clear(&adam);
    lp_graph_clear(&graph);
}

/* ------------------------------------------------------------------------------------------------ training ---- */

static lapse_train_options options_of(const struct loss *loss)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "task", "recommend");
    small_set(&options, "loss", loss->loss);
    small_set(&options, "negatives", loss->negatives);
    options.model.negative_count = loss->count;
    return options;
}

static void save_and_free(lapse_model *model, const char *name)
{
    lapse_error error = {0};
    if (lapse_model_save(model, small_path(name), &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_model_free(model);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    for (int i = 0; i < LOSSES; i++) {
        lapse_train_options options = options_of(&losses[i]);
        options.model.negatives_unseen = i % 2 && strncmp(losses[i].loss, "sampled", 7) != 0;
        small_set(&options, "item-output", lp_output_names[i % 2]);
        small_set(&options, "windows", i % 2 ? "last" : "all");
        save_and_free(small_train(dataset, &options, NULL, NULL), "one");
        for (options.run.threads = 2; options.run.threads <= 4; options.run.threads++) {
            save_and_free(small_train(dataset, &options, NULL, NULL), "other");
            small_files_same(small_path("one"), small_path("other"));
        }
    }
    lapse_dataset_close(dataset);
}

/* Stops after so many steps. */
static bool stop_at(const lapse_progress *progress, void *context)
{
    int *left = context;
    (void)progress;
    return --*left > 0;
}

static void resumes_as_if_never_stopped(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    for (int i = 0; i < LOSSES; i++) {
        lapse_train_options options = options_of(&losses[i]);
        save_and_free(small_train(dataset, &options, NULL, NULL), "one");
        small_set(&options, "checkpoint", small_path("checkpoint"));
        int left = 4 + i;
        lapse_model_free(small_train(dataset, &options, stop_at, &left));
        options.run.resume = true;
        save_and_free(small_train(dataset, &options, NULL, NULL), "other");
        small_files_same(small_path("one"), small_path("other"));
        remove(options.run.checkpoint);
    }
    lapse_dataset_close(dataset);
}

/* Sixty sequences that count: after item k comes k + 1. A recommender finds that out by any loss. */
static lapse_dataset *counting_data(void)
{
    enum { SEQUENCES = 60, LENGTH = 10, TYPES = 20 };
    static double time[SEQUENCES * LENGTH];
    static int32_t type[SEQUENCES * LENGTH];
    int lengths[SEQUENCES];
    for (int s = 0; s < SEQUENCES; s++) {
        lengths[s] = LENGTH;
        for (int i = 0; i < LENGTH; i++) {
            time[s * LENGTH + i] = 100.0 * i;
            type[s * LENGTH + i] = (7 * s + i) % TYPES;
        }
    }
    return small_dataset(SEQUENCES, lengths, time, type, TYPES, NULL);
}

static bool keep_progress(const lapse_progress *progress, void *context)
{
    *(lapse_progress *)context = *progress;
    return true;
}

static void every_loss_learns(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = counting_data();
    for (int i = 0; i < LOSSES; i++) {
        lapse_train_options options = options_of(&losses[i]);
        lapse_progress last = {0};
        options.model.dims = 16;
        options.run.epochs = 60;
        options.run.patience = 60;
        options.model.dropout = 0;
        options.run.threads = 2;
        lapse_model_free(small_train(dataset, &options, keep_progress, &last));
        if (!(last.best_score > 0.9))
            fail_msg("%s with %s negatives: NDCG@10 of %.3f", losses[i].loss, losses[i].negatives, last.best_score);
    }
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(same_places),
        cmocka_unit_test(defaults_follow_the_loss),
        cmocka_unit_test(points_stay_in_the_unit_ball),
        cmocka_unit_test(rows_as_a_whole_table),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(resumes_as_if_never_stopped),
        cmocka_unit_test(every_loss_learns),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
