/* recurrent_options.c: the settings that recurrent networks share. */
#include "model/recurrent_options.h"

#include "nn/recurrent.h"

#include <stddef.h>

_Static_assert(sizeof(lp_recurrent_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

const lp_option lp_recurrent_options[] = {
    {.name = "layers",
     .type = LAPSE_OPTION_INTEGER,
     .offset = offsetof(lp_recurrent_settings, layers),
     .group = "Model",
     .stored = LP_STORED_FORWARD,
     .placeholder = "N",
     .least = 1,
     .most = 3,
     .initial = "1",
     .advanced = true,
     .help = "number of recurrent layers, 1 to 3"},
    {0},
};

lapse_status lp_recurrent_resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error)
{
    if (config->gap_input == LP_UNSET)
        config->gap_input = 1;
    return lp_target_lag_resolve(config, data, error);
}

lapse_status lp_recurrent_validate(const lp_model_config *config, lapse_error *error)
{
    LP_TRY(lp_recurrent_check(config->dims, "dims", error));
    return lp_target_lag_validate(config, error);
}
