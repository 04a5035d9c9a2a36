/* model_file.h: models in files. lapse_model_save and lapse_model_load of lapse.h are built here. docs/model.md defines
 * what the file means. */
#ifndef LP_MODEL_FILE_H
#define LP_MODEL_FILE_H

#include "model/container.h"

/* Adds the configuration to the model's properties. */
lapse_status lp_model_describe(lapse_model *model, lapse_error *error);

/* Adds one option, if its row is stored in files and applies. */
lapse_status lp_model_property_option(lapse_model *model, const lp_option *option, const void *settings,
                                      lapse_error *error);

/* The value of an option in the run that trained the model, as text; NULL: the file does not have it. */
const char *lp_model_option_text(const lapse_model *model, const lp_option *option);

/* Lists a model's tensors and properties, with `extra` further tensors to be added by the caller. Lists are in the
 * container's arena. */
lapse_status lp_model_contain(const lapse_model *model, int extra, lp_container *container, lapse_error *error);

/* The model in an open container, with item tables divided among the ranks of comm, or whole if that is NULL. path is for messages. */
lapse_status lp_model_from_container(const lp_container *container, const char *path, lapse_comm *comm,
                                     lapse_model **model, lapse_error *error);

#endif
