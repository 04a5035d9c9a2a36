/* model_options.h: all options of a model: those that models share and its own. */
#ifndef LP_MODEL_OPTIONS_H
#define LP_MODEL_OPTIONS_H

#include "model/model.h"

/* settings is what the option's offset is relative to. */
typedef void (*lp_on_option)(void *context, const lp_option *option, const void *settings);

/* Shows every option of the config's model, shared ones first. */
void lp_model_options_walk(const lp_model_config *config, lp_on_option on_option, void *context);

/* Whether a model has an option of this name, shared or its own. */
bool lp_model_has_option(const lp_model_row *row, const char *name);

/* Fills a model's own settings with defaults. */
void lp_model_settings_default(const lp_model_row *row, lp_model_settings *settings);

/* Checks options against each other, after resolving or after loading a file. */
lapse_status lp_model_config_validate(const lp_model_config *config, lapse_error *error);

/* Checks ranges, and options against each other. */
lapse_status lp_model_config_check(const lp_model_config *config, lapse_error *error);

#endif
