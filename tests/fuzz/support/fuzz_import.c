/* fuzz_import.c: imports a text twice and compares the results. */
#include "fuzz/support/fuzz_import.h"

#include "data/import/chunks.h"
#include "data/import/import.h"

#include <string.h>

lapse_status fuzz_import(const void *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                         lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    lp_source source;
    lp_import_tuning tuning = {chunk_size, 64};
    lapse_status status = lp_source_open_memory(&source, "fuzz", data, size, error);
    if (status == LAPSE_OK)
        status = lp_import(&source, options, &tuning, dataset, report, error);
    lp_source_close(&source);
    return status;
}

/* Checks the invariants of dataset.h and the counts of the report. */
static void check(const lapse_dataset *dataset, const lapse_import_report *report)
{
    bool good = dataset->start[0] == 0 && dataset->start[dataset->sequence_count] == (uint64_t)dataset->event_count;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        good = good && dataset->start[s + 1] > dataset->start[s];
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            good = good && dataset->time[i - 1] <= dataset->time[i];
    }
    for (int64_t i = 0; i < dataset->event_count; i++)
        good = good && dataset->type[i] >= 0 && dataset->type[i] < dataset->types.count;
    good = good && report->rows == report->bad_rows + report->inactive_rows + report->unpopular_rows +
                                       report->duplicate_rows + report->rare_rows + report->short_rows +
                                       dataset->event_count;
    if (!good)
        abort();
}

static void compare(const lapse_dataset *a, const lapse_dataset *b)
{
    size_t events = (size_t)a->event_count;
    if (a->event_count != b->event_count || a->sequence_count != b->sequence_count ||
        a->types.count != b->types.count || memcmp(a->time, b->time, events * sizeof *a->time) != 0 ||
        memcmp(a->type, b->type, events * sizeof *a->type) != 0 ||
        memcmp(a->start, b->start, ((size_t)a->sequence_count + 1) * sizeof *a->start) != 0 ||
        memcmp(a->types.bytes, b->types.bytes, a->types.offset[a->types.count]) != 0 ||
        memcmp(a->sequences.bytes, b->sequences.bytes, a->sequences.offset[a->sequences.count]) != 0 ||
        a->field_count != b->field_count)
        abort();
    for (int f = 0; f < a->field_count; f++) {
        const lp_field *x = &a->fields[f], *y = &b->fields[f];
        if (x->type == LAPSE_FIELD_NUMBER ? memcmp(x->number, y->number, events * sizeof *x->number) != 0
                                          : memcmp(x->category, y->category, events * sizeof *x->category) != 0)
            abort();
    }
}

void fuzz_import_twice(const uint8_t *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                       int threads, void (*also)(const lapse_dataset *dataset))
{
    lapse_import_options one = *options, several = *options;
    one.threads = 1;
    several.threads = threads;
    lp_chunks_set_limit(FUZZ_LINE_LIMIT);
    lapse_dataset *whole = NULL, *cut = NULL;
    lapse_import_report whole_report, cut_report;
    lapse_error whole_error = {0}, cut_error = {0};
    lapse_status whole_status = fuzz_import(data, size, &one, FUZZ_LINE_LIMIT, &whole, &whole_report, &whole_error);
    lapse_status cut_status = fuzz_import(data, size, &several, chunk_size, &cut, &cut_report, &cut_error);
    bool plain = size < 2 || data[0] != 0x1F || data[1] != 0x8B; /* corrupt gzip may end a chunk early */
    if (plain && (whole_status != cut_status || whole_error.line != cut_error.line ||
                  whole_error.column != cut_error.column || strcmp(whole_error.message, cut_error.message) != 0))
        abort();
    if (whole && cut) {
        check(whole, &whole_report);
        check(cut, &cut_report);
        compare(whole, cut);
        if (also)
            also(whole);
    }
    lapse_dataset_close(whole);
    lapse_dataset_close(cut);
}
