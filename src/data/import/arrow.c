/* arrow.c: the import of an Arrow stream: selects the columns, reads the rows with several workers, and groups them into
 * a dataset as the import of text does. */
#include "data/import/arrow.h"

#include "base/threads.h"
#include "data/import/arrow_reader.h"
#include "data/import/arrow_sample.h"
#include "data/import/column_memory.h"

#include <inttypes.h>
#include <string.h>

static const char source_name[] = "Arrow stream";

enum { BATCH_ROWS = 4096 }; /* two batches fit the L2 cache */

struct import {
    lp_reader_shared reader;
    lp_arrow_shared shared;
    lp_arrow_reader *readers; /* owned */
    lp_import_rows *rows;     /* owned; the rows of all readers, once reading is done */
    int count;
};

/* ------------------------------------------------------------------------------------------------ columns ---- */

#define BIT(kind) (1u << (kind))

enum {
    TEXTS = BIT(LP_ARROW_TEXT) | BIT(LP_ARROW_VIEW) | BIT(LP_ARROW_NULL),
    NUMBERS = BIT(LP_ARROW_INTEGER) | BIT(LP_ARROW_UNSIGNED) | BIT(LP_ARROW_FLOAT) | BIT(LP_ARROW_DECIMAL),
    TIMES = BIT(LP_ARROW_DATE) | BIT(LP_ARROW_TIMESTAMP)
};

static lapse_status choose_columns(struct import *all, lapse_error *error)
{
    lp_arrow_table *table = &all->shared.table;
    lp_csv_record names;
    int64_t width = lp_arrow_table_width(table);
    lapse_status status = lp_csv_record_init(&names, width)
                              ? LAPSE_OK
                              : lp_fail_memory(error, "the columns", (size_t)width * sizeof *names.begin);
    names.count = width;
    for (int64_t i = 0; status == LAPSE_OK && i < width; i++) {
        names.begin[i] = lp_arrow_table_name(table, i);
        names.end[i] = names.begin[i] + strlen(names.begin[i]);
    }
    if (status == LAPSE_OK && !lp_arrow_sample(&all->reader.sample, table, &all->reader.arena))
        status = lp_fail_memory(error, "the first rows", (size_t)width * sizeof(lp_arrow_values));
    const lp_columns_input input = {
        .options = all->reader.options, .first = &names, .sample = &all->reader.sample, .typed = true};
    if (status == LAPSE_OK)
        status = lp_columns_choose(&all->reader.columns, &all->reader.arena, &input, error);
    lp_csv_record_clear(&names);
    all->reader.have_columns = status == LAPSE_OK;
    return status;
}

/* The order of columns is that in which the import of text checks them. */
/* What names were before they became text; NULL: text, or nothing that text could be turned back into. */
static const char *name_type(lp_arrow_kind kind)
{
    static const char *const types[] = {
        [LP_ARROW_BOOL] = "boolean", [LP_ARROW_INTEGER] = "integer", [LP_ARROW_UNSIGNED] = "integer",
        [LP_ARROW_FLOAT] = "float",  [LP_ARROW_DATE] = "date",       [LP_ARROW_TIMESTAMP] = "timestamp",
        [LP_ARROW_VIEW] = NULL};
    return types[kind];
}

static lapse_status use_columns(struct import *all, lapse_error *error)
{
    static const char *const roles[] = {"action", "field", "number"};
    lp_arrow_shared *shared = &all->shared;
    lp_arrow_table *table = &shared->table;
    const lp_columns *columns = &all->reader.columns;
    unsigned names = TEXTS | NUMBERS | TIMES | BIT(LP_ARROW_BOOL);
    LP_TRY(lp_arrow_table_use(table, columns->sequence, names, "sequence", error));
    shared->first_event = table->used_count;
    for (int64_t i = 0; i < columns->event_count; i++)
        LP_TRY(lp_arrow_table_use(table, columns->event[i], names, "event", error));
    shared->split = columns->split < 0 ? -1 : table->used_count;
    if (columns->split >= 0)
        LP_TRY(lp_arrow_table_use(table, columns->split, TEXTS, "split", error));
    shared->time = table->used_count;
    LP_TRY(lp_arrow_table_use(table, columns->time, TEXTS | NUMBERS | TIMES, "time", error));
    shared->first_field = table->used_count;
    for (int f = 0; f < columns->field_count; f++)
        LP_TRY(lp_arrow_table_use(table, columns->field[f], names, roles[columns->field_type[f]], error));
    lp_arrow_kind kind = table->used[shared->time].type.kind;
    all->reader.time_type = kind == LP_ARROW_TIMESTAMP ? "timestamp" : kind == LP_ARROW_DATE ? "date" : NULL;
    all->reader.name_types[0] = name_type(table->used[0].type.kind);
    all->reader.name_types[1] =
        columns->event_count == 1 ? name_type(table->used[shared->first_event].type.kind) : NULL;
    if (!all->reader.time_type)
        lp_reader_set_time(&all->reader);
    return LAPSE_OK;
}

/* --------------------------------------------------------------------------------------------------- rows ---- */

static lapse_status make_batches(lp_arrow_shared *shared, int64_t batch_rows, lapse_error *error)
{
    const lp_arrow_table *table = &shared->table;
    int64_t count = 0;
    for (int64_t a = 0; a < table->array_count; a++)
        count += (table->arrays[a].array.length + batch_rows - 1) / batch_rows;
    shared->batches = lp_alloc((size_t)count, sizeof *shared->batches);
    if (!shared->batches)
        return lp_fail_memory(error, "the rows", (size_t)count * sizeof *shared->batches);
    for (int64_t a = 0; a < table->array_count; a++) {
        int64_t length = table->arrays[a].array.length;
        for (int64_t first = 0; first < length; first += batch_rows)
            shared->batches[shared->batch_count++] = (lp_arrow_batch){
                .array = a,
                .first = first,
                .base = table->arrays[a].first + first,
                .count = (int32_t)(length - first < batch_rows ? length - first : batch_rows),
            };
    }
    return LAPSE_OK;
}

static lapse_status allocate_ids(struct import *all, int threads, lapse_error *error)
{
    lp_segment *ids = &all->shared.ids;
    const lp_columns *columns = &all->reader.columns;
    size_t rows = (size_t)all->shared.table.row_count;
    bool good = (ids->time = lp_column_alloc(rows, sizeof *ids->time, threads));
    ids->sequence = (uint32_t *)ids->time;
    ids->type = ids->sequence + rows;
    for (int f = 0; good && f < columns->field_count; f++)
        if (columns->field_type[f] != LAPSE_FIELD_NUMBER)
            good = (ids->field[f] = lp_column_alloc(rows, sizeof(uint32_t), threads));
    return good ? LAPSE_OK : lp_fail_memory(error, "the rows", rows * sizeof *ids->time);
}

static void clear_readers(struct import *all)
{
    for (int i = 0; i < all->count; i++)
        lp_arrow_reader_clear(&all->readers[i]);
    all->count = 0;
}

static void read_all(void *context, int task, int worker)
{
    (void)worker;
    struct import *all = context;
    while (lp_arrow_reader_step(&all->readers[task]))
        ;
}

/* The error that comes first in the table, if any. */
static lapse_status first_failure(const struct import *all, lapse_error *error)
{
    const lp_arrow_reader *first = NULL;
    for (int i = 0; i < all->count; i++)
        if (all->readers[i].status != LAPSE_OK && (!first || all->readers[i].error_batch < first->error_batch))
            first = &all->readers[i];
    if (!first)
        return LAPSE_OK;
    if (error)
        *error = first->error;
    return first->status;
}

static lapse_status fill_report(const struct import *all, lapse_import_report *report, lapse_error *error)
{
    const lp_arrow_reader *first = NULL;
    *report = (lapse_import_report){.rows = all->shared.table.row_count};
    lp_import_report_columns(&all->reader, report);
    for (int i = 0; i < all->count; i++) {
        const lp_arrow_reader *reader = &all->readers[i];
        report->bad_rows += reader->bad_count;
        lp_import_report_local(reader->local_count, report);
        if (reader->first_bad_batch >= 0 && (!first || reader->first_bad_batch < first->first_bad_batch))
            first = reader;
    }
    if (first)
        report->first_bad_row = first->first_bad;
    const lapse_error *bad = &report->first_bad_row;
    if (report->rows == report->bad_rows)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, NULL, bad->line, bad->column,
                          "all %" PRId64 " rows are malformed; the first: %s", report->bad_rows, bad->message);
    return LAPSE_OK;
}

static lapse_status read_rows(struct import *all, int threads, const lp_arrow_tuning *tuning,
                              lapse_import_report *report, lapse_error *error)
{
    lp_arrow_shared *shared = &all->shared;
    if (shared->table.row_count == 0)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow table has no rows");
    LP_TRY(make_batches(shared, tuning->batch_rows, error));
    lp_arrow_find_unit(shared);
    all->readers = lp_alloc((size_t)threads, sizeof *all->readers);
    all->rows = lp_alloc((size_t)threads, sizeof *all->rows);
    if (!all->readers || !all->rows)
        return lp_fail_memory(error, "the workers", (size_t)threads * sizeof *all->readers);
    LP_TRY(allocate_ids(all, threads, error));
    atomic_store(&shared->stop, INT64_MAX);
    while (all->count < threads) {
        all->count++; /* a reader is cleared even if its initialization fails */
        LP_TRY(lp_arrow_reader_init(&all->readers[all->count - 1], shared, error));
    }
    lp_threads_run(threads, threads, read_all, all);
    LP_TRY(first_failure(all, error));
    return fill_report(all, report, error);
}

/* ------------------------------------------------------------------------------------------------ dataset ---- */

static lapse_status make_dataset(struct import *all, int threads, lapse_import_report *report, lapse_dataset *dataset,
                                 lapse_error *error)
{
    const lp_rows_loader loader = {.context = &all->shared, .load = lp_arrow_load, .ids = &all->shared.ids};
    int count = all->count;
    for (int i = 0; i < count; i++) {
        all->rows[i] = all->readers[i].rows;
        all->rows[i].loader = &loader;
        all->readers[i].rows = (lp_import_rows){0};
    }
    clear_readers(all);
    lapse_status status = lp_import_finish(&all->reader, all->rows, count, threads, report, dataset, error);
    for (int i = 0; i < count; i++)
        lp_rows_clear(&all->rows[i]);
    return status;
}

static lapse_status import_stream(struct import *all, struct ArrowArrayStream *stream, const lp_arrow_tuning *tuning,
                                  lapse_dataset *dataset, lapse_import_report *report, lapse_error *error)
{
    int threads;
    LP_TRY(lp_import_check(all->reader.options, &all->reader.time.unit, error));
    LP_TRY(lp_import_threads(all->reader.options, &threads, error));
    if (all->reader.options->timezone)
        LP_TRY(lp_zone_open(&all->reader.time.zone, all->reader.options->timezone, error));
    LP_TRY(lp_arrow_table_open(&all->shared.table, stream, error));
    int64_t width = lp_arrow_table_width(&all->shared.table);
    LP_TRY(lp_arrow_table_begin(&all->shared.table, stream, lp_arrow_sample_rows(width), error));
    lapse_status status = choose_columns(all, error);
    if (status != LAPSE_OK)
        lp_import_report_question(&all->reader, report);
    LP_TRY(status);
    LP_TRY(use_columns(all, error));
    LP_TRY(lp_arrow_table_read(&all->shared.table, stream, error));
    LP_TRY(read_rows(all, threads, tuning, report, error));
    return make_dataset(all, threads, report, dataset, error);
}

static void clear(struct import *all)
{
    clear_readers(all);
    lp_free(all->readers);
    lp_free(all->rows);
    lp_free(all->shared.ids.time);
    for (int f = 0; f < LP_FIELD_LIMIT; f++)
        lp_free(all->shared.ids.field[f]);
    for (int64_t b = 0; b < all->shared.batch_count; b++)
        lp_free(all->shared.batches[b].bad);
    lp_free(all->shared.batches);
    lp_arrow_table_clear(&all->shared.table);
    lp_sample_clear(&all->reader.sample);
    lp_zone_free(all->reader.time.zone);
    lp_arena_clear(&all->reader.arena);
}

lapse_status lp_arrow_import(struct ArrowArrayStream *stream, const lapse_import_options *options,
                             const lp_arrow_tuning *tuning, lapse_dataset **dataset, lapse_import_report *report,
                             lapse_error *error)
{
    static const lp_arrow_tuning usual = {BATCH_ROWS};
    if (!stream->release)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow stream was already released");
    lapse_import_options with_header = *options;
    with_header.header = true; /* a schema always has names */
    struct import all = {.reader = {.options = &with_header, .file = source_name, .format = "Arrow"},
                         .shared = {.reader = &all.reader}};
    lapse_import_report made_report = {0};
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    lapse_status status = made ? import_stream(&all, stream, tuning ? tuning : &usual, made, &made_report, error)
                               : lp_fail_memory(error, "a dataset", sizeof *made);
    clear(&all);
    stream->release(stream);
    if (report)
        *report = made_report;
    if (status != LAPSE_OK) {
        lapse_dataset_close(made);
        return status;
    }
    *dataset = made;
    return LAPSE_OK;
}

lapse_status lapse_dataset_from_arrow(struct ArrowArrayStream *stream, const lapse_import_options *options,
                                      lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    LP_REQUIRE(error, stream, options, dataset);
    return lp_arrow_import(stream, options, NULL, dataset, report, error);
}
