/* network.c: builds the graph of a model's configuration, and initializes its parameters. */
#include "base/assert.h"
#include "base/random.h"
#include "model/item_rows.h"
#include "model/model.h"
#include "model/output_layer.h"
#include "model/when_head.h"

#include <math.h>
#include <stddef.h>

_Static_assert(sizeof(((lp_network *)0)->outputs) ==
                   offsetof(lp_network, duration) + sizeof(lp_value *) - offsetof(lp_network, logits),
               "every output has a name");

/* Builds into a network that may have its decode state already. */
static lapse_status build_network(lp_network *network, const lp_model_config *config, bool training, bool few_targets,
                                  lapse_error *error)
{
    lp_graph *graph = &network->graph;
    lapse_field_type types[LP_FIELD_LIMIT];
    lp_value *feeds[LP_FEED_LIMIT];
    for (int f = 0; f < config->field_count; f++)
        types[f] = config->fields[f].type;
    bool censored = training && lp_model_censors(config);
    lp_feeds_declare(graph, types, config->field_count, lp_model_samples_by_target(config) ? config->negative_count : 0,
                     censored, feeds);
    lp_builder builder = {.network = network,
                          .graph = graph,
                          .config = config,
                          .feeds = feeds,
                          .training = training,
                          .few_targets = few_targets,
                          .censored = censored,
                          .dropout = training ? config->dropout : 0};
    config->row->build(&builder);
    if (training) {
        network->loss = config->of_times    ? lp_when_loss(&builder)
                        : config->row->loss ? config->row->loss(&builder)
                                            : lp_task_loss(&builder);
        if (network->loss)
            network->loss->retained = true;
        if (lp_graph_status(graph, NULL) == LAPSE_OK)
            lp_graph_gradients(graph, 1, &network->loss, &feeds[LP_FEED_SEED], NULL);
    }
    for (int i = 0; !training && i < LP_NETWORK_OUTPUTS; i++)
        if (network->outputs[i])
            network->outputs[i]->retained = true;
    lapse_status status = lp_graph_status(graph, error);
    if (status != LAPSE_OK)
        lp_graph_clear(graph);
    return status;
}

lapse_status lp_network_build(lp_network *network, const lp_model_config *config, bool training, lapse_error *error)
{
    *network = (lp_network){0};
    return build_network(network, config, training, false, error);
}

lapse_status lp_network_build_evaluation(lp_network *network, const lp_model_config *config, bool few_targets,
                                         lapse_error *error)
{
    *network = (lp_network){0};
    return build_network(network, config, false, few_targets, error);
}

lapse_status lp_network_build_decoder(lp_network *network, const lp_model_config *config, lapse_error *error)
{
    *network = (lp_network){0};
    network->decode = lp_graph_alloc(&network->graph, sizeof *network->decode);
    return build_network(network, config, false, false, error);
}

bool lp_network_reads(const lp_network *network, lp_feed feed)
{
    for (int i = 0; i < network->graph.node_count; i++) {
        const lp_node *node = network->graph.nodes[i];
        for (int k = 0; k < node->op->input_count; k++)
            if (node->inputs[k] && node->inputs[k]->storage == LP_STORAGE_INPUT && node->inputs[k]->slot == (int)feed)
                return true;
    }
    return false;
}

lp_batch_inputs lp_network_inputs(const lp_network *network, const lp_model_config *config)
{
    bool season = lp_network_reads(network, LP_FEED_TARGET_SEASON);
    return (lp_batch_inputs){.season = season ? &config->season : NULL,
                             .season_floor = config->when_floor,
                             .target_gap = lp_network_reads(network, LP_FEED_TARGET_GAP),
                             .sequence_id = lp_network_reads(network, LP_FEED_SEQUENCE),
                             .gap = lp_network_reads(network, LP_FEED_GAP),
                             .position_from_end = lp_network_reads(network, LP_FEED_POSITION_FROM_END),
                             .target_gap_input = lp_network_reads(network, LP_FEED_TARGET_GAP_INPUT)};
}

/* ------------------------------------------------------------------------------------- initial values -------- */

static double sinusoid(int row, int col, int cols)
{
    double angle = row * pow(10000, -(double)(col - col % 2) / cols);
    return col % 2 ? cos(angle) : sin(angle);
}

/* The logarithm of a number x whose power x^power is uniform between low^power and high^power. */
static double log_of_power(lp_random *random, double power, double low, double high)
{
    double a = pow(low, power), b = pow(high, power);
    return log(a + (b - a) * lp_random_uniform(random)) / power;
}

static void init_unit_rows(int rows, int cols, lp_random *random, float *data)
{
    for (int r = 0; r < rows; r++, data += cols) {
        double squares = 0;
        for (int c = 0; c < cols; c++) {
            data[c] = (float)lp_random_normal(random);
            squares += (double)data[c] * (double)data[c];
        }
        for (int c = 0; c < cols; c++)
            data[c] = (float)((double)data[c] / sqrt(fmax(squares, 1e-12)));
    }
}

void lp_network_init_parameters(const lp_graph *graph, uint64_t seed, float *parameters)
{
    lp_network_init_rows(graph, NULL, seed, parameters);
}

void lp_network_init_rows(const lp_graph *graph, const lapse_comm *comm, uint64_t seed, float *parameters)
{
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_parameter *parameter = &graph->parameters[i];
        const lp_value *value = parameter->value;
        float *data = parameters + value->offset;
        lp_random random = lp_random_start(seed, LP_PURPOSE_INIT, (uint32_t)i);
        lp_elements own = lp_item_elements(graph, comm, i, lp_comm_rank(comm));
        size_t first = own.begin - value->offset;
        LP_ASSERT(first == 0 || parameter->initializer == LP_INIT_NORMAL || parameter->initializer == LP_INIT_UNIT ||
                  parameter->initializer == LP_INIT_ZEROS);
        random.element = first; /* a normal number takes a block */
        if (parameter->initializer == LP_INIT_UNIT)
            init_unit_rows((int)((own.end - own.begin) / (size_t)value->cols), value->cols, &random, data + first);
        for (int64_t k = (int64_t)first; k < (int64_t)(own.end - value->offset); k++) {
            switch (parameter->initializer) {
            case LP_INIT_ZEROS:
                data[k] = 0;
                break;
            case LP_INIT_ONES:
                data[k] = 1;
                break;
            case LP_INIT_UNIFORM:
                data[k] = (float)(parameter->spread * (2 * lp_random_uniform(&random) - 1));
                break;
            case LP_INIT_UNIT:
                break;
            case LP_INIT_NORMAL:
                data[k] = (float)(parameter->spread * lp_random_normal(&random));
                break;
            case LP_INIT_VALUES:
                data[k] = (float)parameter->values[k];
                break;
            case LP_INIT_SINUSOID:
                data[k] = (float)sinusoid((int)(k / value->cols), (int)(k % value->cols), value->cols);
                break;
            case LP_INIT_LOG_POWER:
                data[k] = (float)log_of_power(&random, parameter->spread, parameter->values[0], parameter->values[1]);
                break;
            }
        }
    }
}
