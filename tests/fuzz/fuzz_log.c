/* fuzz_log.c: fuzzes the reader of a training run's log. What it accepts are times that are not negative, or missing. */
#include "fuzz/support/fuzz.h"
#include "inspect/inspection.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double *seconds = NULL;
    int epochs = 0;
    lapse_status status = lp_run_log_parse((const char *)data, size, "log", &seconds, &epochs, NULL);
    FUZZ_CHECK(status == LAPSE_OK || (epochs == 0 && !seconds));
    for (int i = 0; i < epochs; i++)
        FUZZ_CHECK(isnan(seconds[i]) || (isfinite(seconds[i]) && seconds[i] >= 0));
    lp_free(seconds);
    return 0;
}
