/* provenance.c: what a model file records of the run that made it. */
#include "train/provenance.h"

#include "train/build_commit.h"
#include "model/model_file.h"

#include <stdio.h>

/* Sequences and events of the dataset, and the events of each split. */
static lapse_status record_counts(lapse_model *model, const lapse_dataset *dataset, const uint8_t *split,
                                  lapse_error *error)
{
    int64_t counts[LP_SPLIT_COUNT] = {0};
    for (int64_t event = 0; event < dataset->event_count; event++)
        counts[split[event]]++;
    LP_TRY(lp_model_property_number(model, error, "dataset.sequences", (double)dataset->sequence_count));
    LP_TRY(lp_model_property_number(model, error, "dataset.events", (double)dataset->event_count));
    for (int i = 0; i < LP_SPLIT_COUNT; i++) {
        char key[32];
        snprintf(key, sizeof key, "dataset.events.%s", lp_split_name((lp_split)i));
        LP_TRY(lp_model_property_number(model, error, key, (double)counts[i]));
    }
    return LAPSE_OK;
}

lapse_status lp_provenance_record(lapse_model *model, const lapse_dataset *dataset, const uint8_t *split,
                                  const lapse_train_options *options, lapse_error *error)
{
    static const char *const columns[] = {"source",       "column.sequence", "column.time", "column.event",
                                          "column.split", "type.sequence",   "type.event",  "time.unit",
                                          "time.zone",    "delimiter",       "basket"};
    LP_TRY(lp_model_describe(model, error));
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const char *value = lp_dataset_property_find(dataset, columns[i]);
        if (value)
            LP_TRY(lp_model_property_set(model, error, columns[i], "%s", value));
    }
    const char *encoding = lp_dataset_property_find(dataset, "encoding"); /* a model's own is that of time */
    if (encoding)
        LP_TRY(lp_model_property_set(model, error, "text.encoding", "%s", encoding));
    for (const lp_option *option = lp_run_options; option->name; option++)
        LP_TRY(lp_model_property_option(model, option, &options->run, error));
    return record_counts(model, dataset, split, error);
}

lapse_status lp_provenance_build(lapse_model *model, lapse_error *error)
{
    LP_TRY(lp_model_property_set(model, error, "version", "%s", LAPSE_VERSION));
    return lp_model_property_set(model, error, "commit", "%s", LP_COMMIT);
}

const char *lp_build_commit(void)
{
    return LP_COMMIT;
}

static void replace(char *text, char from, char to)
{
    for (; *text; text++)
        *text = *text == from ? to : *text;
}

/* "<name>.log_loss", with "_low" and "_high" for the interval. */
static lapse_status record_mean(lapse_model *model, const char *name, const char *metric, lapse_mean mean,
                                lapse_error *error)
{
    static const char *const suffixes[] = {"", "_low", "_high"};
    const double values[] = {mean.mean, mean.low, mean.high};
    for (int i = 0; i < 3; i++) {
        char part[32], key[160];
        snprintf(part, sizeof part, "%s%s", metric, suffixes[i]);
        replace(part, '-', '_');
        snprintf(key, sizeof key, "%s.%s", name, part);
        LP_TRY(lp_model_property_number(model, error, key, values[i]));
    }
    return LAPSE_OK;
}

lapse_status lapse_model_record(lapse_model *model, const lapse_comparison *comparison, lapse_error *error)
{
    LP_REQUIRE(error, model, comparison);
    char name[96];
    bool both = model->config.predict == LP_PREDICT_BOTH;
    snprintf(name, sizeof name, "score.%s.cases", comparison->split);
    LP_TRY(lp_model_property_number(model, error, name, (double)comparison->cases));
    snprintf(name, sizeof name, "score.%s.sequences", comparison->split);
    LP_TRY(lp_model_property_number(model, error, name, (double)comparison->sequences));
    for (int r = 0; r < comparison->row_count; r++) {
        const lapse_compared *row = &comparison->rows[r];
        snprintf(name, sizeof name, "%s%s.%s%s%s", r > 0 ? "baseline." : "score", r > 0 ? row->name : "",
                 comparison->split, both ? "." : "", both ? comparison->target : "");
        replace(name, ' ', '-');
        for (int m = 0; m < comparison->metric_count; m++)
            LP_TRY(record_mean(model, name, comparison->metric_names[m], row->metrics[m], error));
    }
    return LAPSE_OK;
}
