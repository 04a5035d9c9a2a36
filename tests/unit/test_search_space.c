/* test_search_space.c: the changes that tuning makes, from the defaults and at the ends of their ranges. */
#include "base/memory.h"
#include "search/search_space.h"
#include "support/golden_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void changes_are_as_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *option[3], *value[3];
    } starts[] = {{{"model"}, {"attention"}},
                  {{"model", "dropout", "dims"}, {"attention", "0", "8"}},
                  {{"model", "dropout", "dims"}, {"attention", "0.7", "512"}},
                  {{"model", "learning-rate", "blocks"}, {"attention", "0.03", "4"}},
                  {{"model", "learning-rate", "harmonics"}, {"attention", "1e-05", "10"}},
                  {{"model", "layers"}, {"lstm", "1"}},
                  {{"model", "layers"}, {"lstm", "3"}},
                  {{"model", "order"}, {"markov", "3"}},
                  {{"model", "order"}, {"markov", "1"}}};
    lp_buffer text = {0};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        lapse_train_options fixed;
        lp_train_options_default(&fixed);
        lapse_train_options resolved = fixed;
        resolved.run.learning_rate = 0.001;
        for (int i = 0; i < 3 && starts[s].option[i]; i++)
            if (lapse_train_options_set(&resolved, starts[s].option[i], starts[s].value[i], NULL) != LAPSE_OK)
                fail_msg("%s %s", starts[s].option[i], starts[s].value[i]);
        lp_random random = lp_random_start(7, LP_PURPOSE_TEST, (uint32_t)s);
        for (int n = 0; n < 60; n++) {
            lapse_train_options given = fixed;
            const char *name = "none";
            char value[256] = "";
            bool good = lp_search_change(&fixed, &resolved, &random, &given, &name);
            if (good)
                lapse_train_options_get(&given, name, value, sizeof value);
            lp_buffer_print(&text, "%zu %d %s %s\n", s, good, name, value);
        }
    }
    golden_text_check("tests/golden/search_space.txt", text.data, text.size);
    lp_buffer_clear(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_are_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
