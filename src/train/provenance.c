/* provenance.c: what a model file records of the run that made it. */
#include "train/provenance.h"

#include "model/model_file.h"

lapse_status lp_provenance_record(lapse_model *model, const lapse_dataset *dataset, const lapse_train_options *options,
                                  lapse_error *error)
{
    static const char *const columns[] = {"source", "column.sequence", "column.time", "column.event", "column.split"};
    LP_TRY(lp_model_describe(model, error));
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const char *value = lp_dataset_property_find(dataset, columns[i]);
        if (value)
            LP_TRY(lp_model_property_set(model, error, columns[i], "%s", value));
    }
    for (const lp_option *option = lp_run_options; option->name; option++)
        LP_TRY(lp_model_property_option(model, option, &options->run, error));
    return LAPSE_OK;
}
