/* fuzz_plan.c: fuzzes the file of a comparison and the record of a finished run, which are JSON. A plan that is accepted lists its
 * cells for a dataset or is refused with a message. */
#include "fuzz/support/fuzz.h"
#include "search/run_record.h"
#include "search/sweep_plan.h"

#include <string.h>

enum { LISTED = 64, MAX_CELLS = 64 };

/* Files that a plan names are not for this target to open. */
static bool names_files(const lapse_sweep_plan *plan)
{
    if (*plan->settings.folder || *plan->train.run.item_vectors || plan->train.run.device != 0)
        return true;
    for (int r = 0; r < plan->row_count; r++)
        for (int i = 0; i < plan->rows[r].option_count; i++) {
            const char *name = plan->rows[r].options[i].name;
            if (strcmp(name, "item-vectors") == 0 || strcmp(name, "checkpoint") == 0 || strcmp(name, "device") == 0)
                return true;
        }
    for (int g = 0; g < plan->grid_count; g++)
        if (strcmp(plan->grid[g].option, "item-vectors") == 0)
            return true;
    return false;
}

static bool is_small(const lapse_sweep_plan *plan)
{
    int64_t cells = 1 + plan->row_count;
    for (int g = 0; g < plan->grid_count && cells <= MAX_CELLS; g++)
        cells *= plan->grid[g].count;
    for (int r = 0; r < plan->row_count; r++)
        if (plan->rows[r].grid_count > 0)
            return false;
    return cells * (1 + plan->model_count) * (1 + plan->encoding_count) * (1 + plan->seed_count) <= MAX_CELLS;
}

static void read_plan(const uint8_t *data, size_t size)
{
    lapse_sweep_plan *plan = NULL;
    lapse_sweep *sweep = NULL;
    lapse_error error = {0};
    FUZZ_CHECK(lapse_sweep_plan_new(&plan, NULL) == LAPSE_OK);
    if (lapse_sweep_plan_parse(plan, (const char *)data, size, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_INPUT && *error.message && error.line > 0);
    } else if (!names_files(plan) && is_small(plan) && fuzz_takes(data, size, LISTED)) {
        if (lapse_sweep_new(fuzz_events(), plan, &sweep, &error) != LAPSE_OK)
            FUZZ_CHECK(error.status != LAPSE_ERROR_INTERNAL && *error.message);
        else
            FUZZ_CHECK(lapse_sweep_describe(sweep).cells > 0);
    }
    lapse_sweep_free(sweep);
    lapse_sweep_plan_free(plan);
}

static void read_record(const uint8_t *data, size_t size)
{
    lp_run_record record;
    lapse_error error = {0};
    if (lp_run_record_parse(&record, "", "record", (const char *)data, size, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_FORMAT && *error.message);
        return;
    }
    FUZZ_CHECK(record.best_epoch <= record.epochs && record.group_count <= LP_RECORD_GROUPS);
    for (int m = 0; m < record.metrics; m++)
        (void)lp_run_record_mean(&record, m);
    lp_run_record_clear(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_plan(data, size);
    read_record(data, size);
    return 0;
}
