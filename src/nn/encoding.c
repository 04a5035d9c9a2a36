/* encoding.c: the table of time encodings, and what the learned spectra share. */
#include "nn/encoding.h"

#include "nn/encoding_rows.h"

#include <string.h>

const lp_encoding *const lp_encodings[] = {&lp_encoding_mercer, &lp_encoding_bochner, &lp_encoding_position, NULL};

const lp_encoding *lp_encoding_find(const char *name)
{
    for (int i = 0; lp_encodings[i]; i++)
        if (strcmp(lp_encodings[i]->name, name) == 0)
            return lp_encodings[i];
    return NULL;
}

void lp_encoding_lags(lp_graph *graph, const lp_encoding_config *config, int harmonics,
                      lp_value *const feeds[LP_FEED_COUNT], lp_features *features)
{
    int count = config->periods;
    double *log_period = lp_graph_alloc(graph, (size_t)count * sizeof *log_period);
    if (!log_period)
        return;
    /* tau_i = tau_min (tau_max / tau_min)^((i - 1) / (n - 1)): even steps of log tau */
    double low = log(config->period_min), high = log(config->period_max);
    for (int i = 0; i < count; i++)
        log_period[i] = count > 1 ? low + (high - low) * i / (count - 1) : (low + high) / 2;
    lp_value *learned = lp_graph_parameter_values(graph, "time.log_period", 1, count, log_period);
    features->frequency = lp_harmonics(graph, learned, harmonics);
    features->basis = lp_basis(graph, feeds[LP_FEED_TIME], features->frequency);
    features->until = lp_basis(graph, feeds[LP_FEED_UNTIL], features->frequency);
}
