/* test_initial.c: the parameters of every network, and of attention with every encoding, before training: names, shapes, learning-rate
 * factors and initial values, against tests/golden/initial.txt. After a change of a model, LAPSE_TEST_RECORD=1 writes that file anew. */
#include "model/model_options.h"
#include "nn/encoding.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/memory.h"
#include "support/golden_text.h"
#include "support/small_train.h"

static lp_buffer text;

/* A number of all ops with their inputs and attributes, by FNV-1a: it differs if the network is built otherwise. */
static uint32_t number_of_ops(const lp_graph *graph)
{
    uint32_t number = 2166136261u;
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        const lp_attributes *a = &node->attributes;
        char line[400];
        int used = snprintf(line, sizeof line, "%s %d %d %d %d %.5g %.5g %.5g %.5g %d %d %d", node->op->name, a->heads,
                            a->transpose, a->harmonics, a->height, a->rate, a->scale, a->epsilon, a->shift, a->first, a->cols,
                            (int)node->accumulate);
        for (int k = 0; k < LP_NODE_INPUTS && used < (int)sizeof line; k++)
            used += node->inputs[k] ? snprintf(line + used, sizeof line - (size_t)used, " %d:%dx%d@%lld", k, node->inputs[k]->rows,
                                               node->inputs[k]->cols, (long long)node->inputs[k]->offset)
                                    : 0;
        for (const char *at = line; *at; at++)
            number = (number ^ (unsigned char)*at) * 16777619u;
    }
    return number;
}

static void describe_network(const lp_trainer *trainer, const char *title)
{
    const lp_graph *graph = &trainer->network.graph;
    assert_true(
        lp_buffer_print(&text, "%s: %d parameters, %d nodes, ops %08x\n", title, graph->parameter_count, graph->node_count,
                        number_of_ops(graph)));
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_parameter *p = &graph->parameters[i];
        const float *values = trainer->trained->parameters + p->value->offset;
        double sum = 0, weighted = 0, squares = 0;
        int count = p->value->rows * p->value->cols;
        for (int k = 0; k < count; k++) {
            sum += (double)values[k];
            weighted += (double)values[k] * (k + 1) / count; /* the order of values shows, too */
            squares += (double)values[k] * (double)values[k];
        }
        /* Sums that cancel differ in their last digits. */
        double least = 1e-5 * sqrt(squares * count);
        assert_true(lp_buffer_print(&text, "  %s %dx%d rate %.6g sum %.4g weighted %.4g squares %.5g\n", p->value->name,
                                    p->value->rows, p->value->cols, p->rate, fabs(sum) < least ? 0 : sum,
                                    fabs(weighted) < least ? 0 : weighted, squares));
    }
}

static void describe(const lapse_dataset *dataset, const lapse_train_options *options, const char *title)
{
    lp_trainer trainer;
    lapse_error error = {0};
    if (lp_trainer_init(&trainer, dataset, options, &error) != LAPSE_OK) {
        assert_int_equal(error.status, LAPSE_ERROR_USAGE);
        assert_true(lp_buffer_print(&text, "%s: %s\n", title, error.message));
        return;
    }
    describe_network(&trainer, title);
    if (trainer.model->times) {
        assert_int_equal(lp_trainer_times(&trainer, NULL), LAPSE_OK);
        describe_network(&trainer, "  its network of times");
    }
    lp_trainer_clear(&trainer);
}

static void parameters_are_as_recorded(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(6);
    for (int m = 0; lp_models[m]; m++)
        for (int task = 0; lp_task_names[task]; task++)
            for (int e = 0; lp_encodings[e]; e++) {
                bool encoded = lp_model_has_option(lp_models[m], "encoding");
                if (!lp_models[m]->build || !(lp_models[m]->tasks >> task & 1) || (e > 0 && (m > 0 || task > 0)))
                    continue;
                lapse_train_options options = small_train_options();
                char title[120];
                small_set(&options, "model", lp_models[m]->name);
                small_set(&options, "task", lp_task_names[task]);
                if (encoded)
                    small_set(&options, "encoding", lp_encodings[e]->name);
                if (lp_model_has_option(lp_models[m], "layers"))
                    small_set(&options, "layers", "2");
                if (m == 0 && task > 0)
                    small_set(&options, "when", "true");
                snprintf(title, sizeof title, "%s, %s, %s", lp_models[m]->name, lp_task_names[task],
                         encoded ? lp_encodings[e]->name : "no encoding");
                describe(dataset, &options, title);
            }
    lapse_dataset_close(dataset);
    golden_text_check("tests/golden/initial.txt", text.data, text.size);
    lp_buffer_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
