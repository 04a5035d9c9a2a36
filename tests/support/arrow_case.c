/* arrow_case.c: see arrow_case.h. */
#include "support/arrow_case.h"

#include "base/memory.h"
#include "data/import/arrow.h"
#include "support/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

lapse_status arrow_import(const char *text, const char *const *formats, const lapse_import_options *options, int rows, int slack,
                          arrow_spoil spoil, int64_t batch, lapse_dataset **dataset, lapse_import_report *report,
                          lapse_error *error)
{
    struct ArrowArrayStream stream;
    const lp_arrow_tuning tuning = {batch};
    arrow_stream_init(&stream, text, formats, rows, slack, spoil);
    lapse_status status = lp_arrow_import(&stream, options, &tuning, dataset, report, error);
    assert_null(stream.release);
    assert_int_equal(arrow_stream_blocks(), 0);
    return status;
}

static bool has_typed_times(const lapse_import_report *report)
{
    return strcmp(report->time_unit, "timestamp") == 0 || strcmp(report->time_unit, "date") == 0;
}

/* The columns are found as those of the text are. */
static void same_columns(const lapse_import_report *report, const lapse_import_report *wanted)
{
    for (int role = 0; role < 3; role++) {
        assert_string_equal(report->columns[role].column, wanted->columns[role].column);
        assert_string_equal(report->columns[role].runner_up, wanted->columns[role].runner_up);
        assert_int_equal(report->columns[role].given, wanted->columns[role].given);
    }
    assert_string_equal(report->ignored, wanted->ignored);
    assert_int_equal(report->ignored_count, wanted->ignored_count);
    assert_string_equal(report->timezone, wanted->timezone);
    assert_string_equal(report->format, "Arrow");
    if (!has_typed_times(report))
        assert_string_equal(report->time_unit, wanted->time_unit);
}

static void same_local_rows(const lapse_import_report *report, const lapse_import_report *wanted)
{
    assert_int_equal(report->local_rows, wanted->local_rows);
    assert_int_equal(report->ambiguous_rows, wanted->ambiguous_rows);
    assert_int_equal(report->missing_rows, wanted->missing_rows);
}

void arrow_same_as(const char *csv, const char *text, const char *const *formats, lapse_import_options options)
{
    static const struct {
        int rows, slack, batch, threads;
    } cases[] = {{64, 0, 16384, 1}, {3, 5, 16384, 1}, {1, 1, 1, 2}, {64, 3, 2, 2}, {4096, 0, 16384, 1}};
    lapse_dataset *wanted = NULL, *made = NULL;
    lapse_import_report wanted_report, report;
    lapse_error error = {0};
    if (import_bytes(csv, strlen(csv), &options, 1 << 20, &wanted, &wanted_report, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    char *wanted_text = show(wanted);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.threads = cases[i].threads;
        if (arrow_import(text, formats, &options, cases[i].rows, cases[i].slack, NULL, cases[i].batch, &made, &report,
                         &error) != LAPSE_OK)
            fail_msg("case %d: %s (row %d, column %d)", (int)i, error.message, (int)error.line, (int)error.column);
        char *made_text = show(made);
        assert_string_equal(made_text, wanted_text);
        assert_int_equal(lapse_dataset_fingerprint(made), lapse_dataset_fingerprint(wanted));
        assert_int_equal(report.rows, wanted_report.rows);
        assert_int_equal(report.bad_rows, wanted_report.bad_rows);
        assert_int_equal(report.moved_rows, wanted_report.moved_rows);
        assert_int_equal(report.short_rows, wanted_report.short_rows);
        assert_int_equal(*report.first_bad_row.message != 0, *wanted_report.first_bad_row.message != 0);
        assert_int_equal(report.first_bad_row.column, wanted_report.first_bad_row.column);
        assert_int_equal(report.bad_rows ? report.first_bad_row.line + 1 : 0, report.bad_rows ? wanted_report.first_bad_row.line : 0);
        same_columns(&report, &wanted_report);
        if (options.timezone || !has_typed_times(&report)) /* otherwise the text may have a zone, and the type none */
            same_local_rows(&report, &wanted_report);
        lp_free(made_text);
        lapse_dataset_close(made);
    }
    lp_free(wanted_text);
    lapse_dataset_close(wanted);
}
