/* test_wording.c: options within sentences: as a command line and as Python write them, and which one a sentence is about. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct {
    const char *sentence, *command, *python, *subject;
} sentences[] = {
    {"nothing", "nothing", "nothing", ""},
    {"one with " LP_OPTION("--event item") " or both with " LP_OPTION("--event item,action"),
     "one with --event item or both with --event item,action", "one with event=\"item\" or both with event=[\"item\", \"action\"]", ""},
    {LP_OPTION("--learning-rate 1e-3") ".", "--learning-rate 1e-3.", "learning_rate=1e-3.", "learning-rate"},
    {"a smaller " LP_OPTION("--learning-rate") " than 0.1", "a smaller --learning-rate than 0.1", "a smaller learning_rate than 0.1", ""},
    {LP_FLAG("--when") " needs a network", "--when needs a network", "when=True needs a network", "when"},
    {LP_FLAG("--no-header") ".", "--no-header.", "header=False.", "no-header"},
    {LP_OPTION("--split-column COLUMN"), "--split-column COLUMN", "split=COLUMN", "split-column"},
    {LP_OPTION("--field 'a b'"), "--field 'a b'", "fields=[\"a b\"]", "field"},
    {LP_OPTION("--number price,size"), "--number price,size", "numbers=[\"price\", \"size\"]", "number"},
    {LP_OPTION("--sequence 3"), "--sequence 3", "sequence=3", "sequence"},
    {"cut \1--session-ga", "cut --session-ga", "cut session_ga", ""},
    {"\1", "", "", ""},
};

static void test_options_are_written_as_the_caller_types_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        char out[128], subject[48];
        assert_string_equal(lp_wording_write(LAPSE_WORDING_COMMAND, sentences[i].sentence, out, sizeof out), sentences[i].command);
        assert_string_equal(lp_wording_write(LAPSE_WORDING_PYTHON, sentences[i].sentence, out, sizeof out), sentences[i].python);
        assert_string_equal(lp_wording_subject(sentences[i].sentence, subject, sizeof subject), sentences[i].subject);
        for (size_t size = 1; size < strlen(sentences[i].python) + 1; size++) {
            lp_wording_write(LAPSE_WORDING_PYTHON, sentences[i].sentence, out, size);
            assert_true(strlen(out) < size && strncmp(out, sentences[i].python, strlen(out)) == 0);
        }
    }
}

static void test_errors_say_which_option_cannot_have_which_value(void **state)
{
    (void)state;
    lapse_error error;
    lapse_train_options *options = NULL;
    assert_int_equal(lapse_train_options_new(&options, &error), LAPSE_OK);
    assert_int_equal(lapse_train_options_set(options, "learning-rate", "fast", &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.option, "learning-rate");
    assert_string_equal(error.value, "fast");
    assert_non_null(strstr(error.message, "--learning-rate takes a number"));
    lapse_wording_set(LAPSE_WORDING_PYTHON);
    assert_int_equal(lapse_train_options_set(options, "learning-rate", "fast", &error), LAPSE_ERROR_USAGE);
    lapse_wording_set(LAPSE_WORDING_COMMAND);
    assert_non_null(strstr(error.message, "learning_rate takes a number"));
    assert_null(strstr(error.message, "--"));
    assert_int_equal(lapse_train_options_set(options, "nothing", "1", &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.option, "");
    assert_string_equal(error.value, "");
    lapse_train_options_free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_are_written_as_the_caller_types_them),
        cmocka_unit_test(test_errors_say_which_option_cannot_have_which_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
