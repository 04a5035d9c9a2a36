/* table_text.c: imports tables from strings and prints datasets as text. */
#include "support/table_text.h"

#include "base/memory.h"
#include "data/import/chunks.h"
#include "data/dataset/dataset.h"
#include "data/import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

lapse_status import_bytes(const void *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                          lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    lp_source source;
    lp_import_tuning tuning = {chunk_size, 1000};
    lapse_status status = lp_source_open_memory(&source, "t.csv", data, size, error);
    if (status == LAPSE_OK)
        status = lp_import(&source, options, &tuning, dataset, report, error);
    lp_source_close(&source);
    return status;
}

lapse_import_options defaults(void)
{
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.threads = 1;
    options.encoding = "utf-8"; /* so that other bytes are errors */
    return options;
}

char *show(const lapse_dataset *dataset)
{
    lp_buffer text = {0};
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        lp_buffer_print(&text, "%s:", lapse_dataset_sequence_name(dataset, s));
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            lp_buffer_print(&text, " %.17g %s", dataset->time[i],
                            lapse_dataset_event_type_name(dataset, dataset->type[i]));
            if (dataset->split)
                lp_buffer_print(&text, " (%s)", lp_split_name((lp_split)dataset->split[i]));
            for (int f = 0; f < dataset->field_count; f++) {
                const lp_field *field = &dataset->fields[f];
                if (field->type == LAPSE_FIELD_NUMBER)
                    lp_buffer_print(&text, " <%.17g>", field->number[i]);
                else
                    lp_buffer_print(&text, " [%s]", lapse_dataset_category_name(dataset, f, field->category[i]));
            }
            lp_buffer_print(&text, "%s", i + 1 < dataset->start[s + 1] ? "," : ";");
        }
    }
    lp_buffer_add(&text, "", 1);
    return text.data;
}

void expect_with(const char *text, size_t size, const lapse_import_options *options, const char *expected)
{
    static const int64_t blocks[] = {1, 7, 64, LP_CHUNK_SIZE};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        if (import_bytes(text, size, options, blocks[b], &dataset, NULL, &error) != LAPSE_OK)
            fail_msg("%s:%ld:%ld: %s", error.file, (long)error.line, (long)error.column, error.message);
        char *shown = show(dataset);
        assert_string_equal(shown, expected);
        lp_free(shown);
        lapse_dataset_close(dataset);
    }
}

void refuse_with(const char *text, size_t size, const lapse_import_options *options, lapse_status status, int64_t line,
                 int64_t column, const char *message)
{
    static const int64_t blocks[] = {1, 7, 64, LP_CHUNK_SIZE};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        assert_int_equal(import_bytes(text, size, options, blocks[b], &dataset, NULL, &error), status);
        assert_null(dataset);
        assert_string_equal(error.message, message);
        assert_int_equal(error.line, line);
        assert_int_equal(error.column, column);
        if (status == LAPSE_ERROR_INPUT)
            assert_string_equal(error.file, "t.csv");
    }
}
