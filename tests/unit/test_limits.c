/* test_limits.c: limits that users meet. Each is written here a second time, so that none changes unnoticed. */
#include <lapse_lab.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

/* Training options; test_train_limits.c shows that values beyond are refused. */
static void training_options(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double least, most;
    } limits[] = {
        {"context", 1, 4096},
        {"dims", 1, 4096},
        {"dropout", 0, 0.9},
        {"when-components", 1, 64},
        {"when-floor", 1e-30, 1e30},
        {"field-dims", 0, 4096},
        {"periods", 1, 4096},
        {"harmonics", 1, 256},
        {"period-min", 1e-30, 1e30},
        {"period-max", 1e-30, 1e30},
        {"hidden", 1, 4096},
        {"frequency-samples", 1, 1000},
        {"blocks", 1, 8},
        {"heads", 1, 8},
        {"layers", 1, 3},
        {"conv-length", 1, 64},
        {"conv-filters", 1, 1024},
        {"conv-vertical", 0, 64},
        {"time-unit", 1e-30, 1e30},
        {"buckets", 2, 256},
        {"order", 1, 3},
        {"learning-rate", 1e-12, 10},
        {"beta1", 0, 0.999999},
        {"beta2", 0, 0.999999},
        {"l2", 0, 1e6},
        {"clip", 0, 1e12},
        {"ema-decay", 0, 0.999},
        {"batch", 1, 1048576},
        {"epochs", 1, 1e6},
        {"patience", 1, 1e6},
        {"negative-count", 0, 10000},
        {"popularity-power", 0, 10},
        {"score-regularization", 0, 1000},
        {"conv-targets", 1, 16},
        {"time-weight", 0, 1000},
        {"duration-weight", 0, 1000},
        {"threads", 1, 4096},
        {"shards", 1, 4096},
        {"checkpoint-every", 0, 1e9},
    };
    lapse_option option;
    size_t checked = 0;
    for (int i = 0; lapse_train_option(i, &option); i++) {
        if (option.type != LAPSE_OPTION_INTEGER && option.type != LAPSE_OPTION_NUMBER &&
            option.type != LAPSE_OPTION_DURATION)
            continue;
        size_t k = 0;
        while (k < sizeof limits / sizeof *limits && strcmp(limits[k].name, option.name) != 0)
            k++;
        if (k == sizeof limits / sizeof *limits)
            fail_msg("the limits of --%s, %.17g and %.17g, are not in this table", option.name, option.minimum, option.maximum);
        if (option.minimum != limits[k].least || option.maximum != limits[k].most)
            fail_msg("--%s takes %.17g to %.17g", option.name, option.minimum, option.maximum);
        checked++;
    }
    assert_int_equal(checked, sizeof limits / sizeof *limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
