/* recurrent_options.h: the settings of recurrent networks, which take a time encoding for the lag to the predicted event: lstm, gru4rec,
 * rnn-attention, rmtpp and timejoint. A model with more settings begins with these. */
#ifndef LP_RECURRENT_OPTIONS_H
#define LP_RECURRENT_OPTIONS_H

#include "model/target_lag.h"

typedef struct lp_recurrent_settings {
    lp_encoding_config time; /* first: lp_target_lag_options, lp_encoding_options */
    int layers;
} lp_recurrent_settings;

/* The option `layers`: after the tables of the encoding. */
extern const lp_option lp_recurrent_options[];

static inline const lp_recurrent_settings *lp_recurrent_settings_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

/* For the row's resolve: they see the gaps between events by default, and no other time. */
lapse_status lp_recurrent_resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error);

/* For the row's validate. */
lapse_status lp_recurrent_validate(const lp_model_config *config, lapse_error *error);

#endif
