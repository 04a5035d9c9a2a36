/* sample.c: see sample.h. */
#include "data/import/sample.h"

#include "base/memory.h"
#include "data/import/csv.h"

#include <string.h>

void lp_sample_clear(lp_sample *sample)
{
    lp_free(sample->text);
    lp_free(sample->begin);
    lp_free(sample->end);
    *sample = (lp_sample){0};
}

bool lp_sample_reserve(lp_sample *sample, int64_t column_count, int64_t *row_limit)
{
    int64_t most = LP_SAMPLE_FIELDS / (column_count > 0 ? column_count : 1);
    *row_limit = *row_limit < most ? *row_limit : most;
    size_t count = (size_t)(*row_limit * column_count);
    sample->column_count = column_count;
    sample->begin = lp_alloc(count, sizeof *sample->begin);
    sample->end = lp_alloc(count, sizeof *sample->end);
    return sample->begin && sample->end;
}

static void add_row(lp_sample *sample, const lp_csv_record *record)
{
    if (record->count != sample->column_count || record->after_quote || lp_csv_is_blank(record))
        return;
    int64_t first = sample->row_count++ * sample->column_count;
    memcpy(sample->begin + first, record->begin, (size_t)record->count * sizeof *record->begin);
    memcpy(sample->end + first, record->end, (size_t)record->count * sizeof *record->end);
}

/* Number of delimiters in the first line that is not empty: an upper bound of the fields of its record, unless a quoted
 * field has a line end. */
static int64_t count_delimiters(const char *text, const char *end, char delimiter)
{
    int64_t count = 0;
    bool any = false;
    for (; text < end && !(any && *text == '\n'); text++) {
        any = any || (*text != '\n' && *text != '\r');
        count += *text == delimiter;
    }
    return count;
}

bool lp_sample_csv(lp_sample *sample, const char *text, size_t size, char delimiter, bool header)
{
    size_t whole = lp_csv_cut_text(text, size, delimiter).size;
    if (whole == 0)
        return true;
    sample->text = lp_alloc(whole + LP_CSV_PADDING, 1);
    if (!sample->text)
        return false;
    memcpy(sample->text, text, whole);
    int64_t columns = 1 + count_delimiters(sample->text, sample->text + whole, delimiter);
    int64_t rows = lp_csv_line_ends(sample->text, sample->text + whole);
    lp_csv_record record;
    lp_csv_scanner scanner;
    bool good = lp_csv_record_init(&record, columns), found = false;
    if (good)
        lp_csv_start(&scanner, sample->text, whole, delimiter);
    while (good && !found && lp_csv_next(&scanner, &record))
        found = !lp_csv_is_blank(&record);
    if (good && found && record.count <= columns) {
        good = lp_sample_reserve(sample, record.count, &rows);
        if (good && !header && rows > 0)
            add_row(sample, &record);
        while (good && sample->row_count < rows && lp_csv_next(&scanner, &record))
            add_row(sample, &record);
    }
    lp_csv_record_clear(&record);
    return good;
}
