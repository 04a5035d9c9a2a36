/* reader.c: a row is checked whole before any of its names gets a number, so that a row left out leaves no trace. */
#include "data/import/reader.h"

#include "base/timestamp.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Numbers from here on are taken for milliseconds: as seconds they would lie beyond the year 5138, and as milliseconds
 * those below lie before March 1973. */
#define MILLISECONDS_FROM 1e11

enum { SMALLEST_ROW = 6 }; /* bytes of a good row: three fields, two delimiters, a line end */

lapse_status lp_reader_init(lp_reader *reader, lp_reading *reading, int64_t segment_rows, lapse_error *error)
{
    *reader = (lp_reader){.reading = reading, .first_bad_block = -1, .error_block = INT64_MAX};
    reader->rows.segment_rows = segment_rows;
    reader->buffer = lp_grow(NULL, LP_BLOCK_ROOM, 1);
    if (!reader->buffer)
        return lp_fail_memory(error, "reading blocks", LP_BLOCK_ROOM);
    return LAPSE_OK;
}

void lp_reader_clear(lp_reader *reader)
{
    lp_free(reader->buffer);
    lp_free(reader->record.begin);
    lp_free(reader->record.end);
    lp_buffer_clear(&reader->joined);
    lp_rows_clear(&reader->rows);
}

/* ------------------------------------------------------------------------------------------------ failures --- */

/* Ends the whole import at the record being read. */
__attribute__((format(printf, 4, 5))) static bool fail(lp_reader *reader, lapse_status status, int64_t column,
                                                       const char *format, ...)
{
    char message[sizeof reader->error.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    bool memory = status == LAPSE_ERROR_MEMORY;
    reader->status = lp_fail_at(&reader->error, status, memory ? NULL : reader->reading->file,
                                memory ? 0 : reader->line + 1, column, "%s", message);
    reader->error_block = reader->block;
    lp_blocks_stop(&reader->reading->blocks, reader->block);
    return false;
}

static bool fail_memory(lp_reader *reader)
{
    return fail(reader, LAPSE_ERROR_MEMORY, 0, "out of memory while reading rows");
}

/* A bad row: left out and counted, or the end of the import, as the options say. True: go on. */
__attribute__((format(printf, 4, 5))) static bool bad_row(lp_reader *reader, int64_t column, int64_t line,
                                                          const char *format, ...)
{
    char message[sizeof reader->error.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!reader->reading->options->skip_bad_rows) {
        reader->line = line;
        return fail(reader, LAPSE_ERROR_INPUT, column, "%s", message);
    }
    reader->bad++;
    if (reader->first_bad_block < 0) {
        lp_fail_at(&reader->first_bad, LAPSE_ERROR_INPUT, reader->reading->file, line + 1, column, "%s", message);
        reader->first_bad_block = reader->block;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------- fields --- */

/* Decides the unit of time by the first row that has one. NULL, or what is wrong. */
static const char *find_unit(lp_reading *reading, const char *begin, const char *end, double *time)
{
    if (lp_timestamp_is_date(begin, end)) {
        const char *reason = lp_timestamp_parse(begin, end, time);
        if (!reason)
            reading->unit = LP_TIME_ISO;
        return reason;
    }
    if (!lp_number_parse(begin, end, time))
        return "is not a time: expected unix seconds, unix milliseconds, or ISO 8601 with a zone such as "
               "2026-11-15T12:00:00Z";
    bool milliseconds = *time >= MILLISECONDS_FROM;
    *time = milliseconds ? *time / 1000 : *time;
    if (*time < LP_TIME_MIN || *time > LP_TIME_MAX)
        return "lies outside the years 1 to 9999";
    reading->unit = milliseconds ? LP_TIME_MILLISECONDS : LP_TIME_SECONDS;
    reading->unit_found = true;
    return NULL;
}

static const char *read_time(lp_reading *reading, const char *begin, const char *end, double *time)
{
    lp_text_trim(&begin, &end);
    if (begin == end)
        return "is not a time: it is empty";
    if (reading->unit == LP_TIME_AUTO)
        return find_unit(reading, begin, end, time);
    if (reading->unit == LP_TIME_ISO)
        return lp_timestamp_parse(begin, end, time);
    bool milliseconds = reading->unit == LP_TIME_MILLISECONDS;
    if (!lp_number_parse(begin, end, time))
        return milliseconds ? "is not a time in unix milliseconds" : "is not a time in unix seconds";
    if (reading->unit_found && (*time >= MILLISECONDS_FROM) != milliseconds)
        return milliseconds ? "looks like seconds, but the first row has milliseconds: say which with --time-unit"
                            : "looks like milliseconds, but the first row has seconds: say which with --time-unit";
    if (milliseconds)
        *time /= 1000;
    return *time < LP_TIME_MIN || *time > LP_TIME_MAX ? "lies outside the years 1 to 9999" : NULL;
}

static bool read_split(const char *begin, const char *end, uint32_t *split)
{
    static const struct {
        const char *word;
        lp_split split;
    } words[] = {{"train", LP_SPLIT_TRAIN},      {"training", LP_SPLIT_TRAIN}, {"valid", LP_SPLIT_VALID},
                 {"validation", LP_SPLIT_VALID}, {"val", LP_SPLIT_VALID},      {"dev", LP_SPLIT_VALID},
                 {"test", LP_SPLIT_TEST},        {"testing", LP_SPLIT_TEST}};
    lp_text_trim(&begin, &end);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (lp_text_is(begin, end, words[i].word)) {
            *split = (uint32_t)words[i].split;
            return true;
        }
    }
    return false;
}

/* The event's name: one field, or the filled ones of several joined by a space. False when out of memory. */
static bool event_name(lp_reader *reader, const lp_csv_record *record, const char **begin, const char **end)
{
    const lp_columns *columns = &reader->reading->columns;
    *begin = record->begin[columns->event[0]];
    *end = record->end[columns->event[0]];
    if (columns->event_count == 1)
        return true;
    reader->joined.size = 0;
    for (int64_t i = 0; i < columns->event_count; i++) {
        const char *first = record->begin[columns->event[i]], *last = record->end[columns->event[i]];
        if (first == last)
            continue;
        if ((reader->joined.size && !lp_buffer_add(&reader->joined, " ", 1)) ||
            !lp_buffer_add(&reader->joined, first, (size_t)(last - first)))
            return false;
    }
    *begin = reader->joined.data;
    *end = reader->joined.data + reader->joined.size;
    return true;
}

/* Checks the fields of a row and reads its numbers. False: the row was bad, and *go_on says whether that was the end. */
static bool read_fields(lp_reader *reader, const lp_csv_record *record, bool *go_on)
{
    const lp_columns *columns = &reader->reading->columns;
    char shown[LP_EXCERPT_SIZE];
    for (int f = 0; f < columns->field_count; f++) {
        int64_t column = columns->field[f];
        const char *begin = record->begin[column], *end = record->end[column];
        if (columns->field_type[f] != LAPSE_FIELD_NUMBER) {
            if (lp_text_is_utf8(begin, end))
                continue;
            *go_on = bad_row(reader, column + 1, reader->line, "the %s is not valid UTF-8 text",
                             columns->field_type[f] == LAPSE_FIELD_ACTION ? "action" : "field");
            return false;
        }
        lp_text_trim(&begin, &end);
        reader->number[f] = NAN;
        if (begin == end || lp_number_parse(begin, end, &reader->number[f]))
            continue;
        *go_on = bad_row(reader, column + 1, reader->line,
                         "'%s' is not a number: expected digits such as 12.5, or nothing where it is missing",
                         lp_text_excerpt(begin, end, shown));
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- rows --- */

/* The fields of the row at `place`, which is that of the record being read. */
static bool keep_fields(lp_reader *reader, const lp_csv_record *record, lp_segment *segment, uint64_t place)
{
    const lp_columns *columns = &reader->reading->columns;
    lp_rows *rows = &reader->rows;
    for (int f = 0; f < rows->field_count; f++) {
        if (rows->field_type[f] == LAPSE_FIELD_NUMBER) {
            ((double *)segment->field[f])[segment->used] = reader->number[f];
            continue;
        }
        const char *begin = record->begin[columns->field[f]];
        size_t size = (size_t)(record->end[columns->field[f]] - begin);
        uint32_t category = lp_rows_name(&rows->categories[f], begin, size, lp_intern_key(begin, size), place);
        if (category >= LP_ROW_TYPES)
            return false;
        ((uint32_t *)segment->field[f])[segment->used] = category;
    }
    return true;
}

/* Gives the names of the checked rows their numbers and keeps them. With fields that is one row, that of the record. */
static bool keep_rows(lp_reader *reader, const lp_csv_record *record)
{
    lp_rows *rows = &reader->rows;
    lp_rows_block *block = &rows->blocks[rows->block_count - 1];
    lp_segment *segment = rows->segments[block->segment];
    for (int i = 0; i < reader->waiting_count; i++) {
        const lp_waiting_row *row = &reader->waiting[i];
        uint64_t place = (uint64_t)reader->block << 32 | (uint64_t)block->count;
        uint32_t sequence = lp_rows_name(&rows->sequences, row->sequence, row->sequence_size, row->sequence_key, place);
        uint32_t type = lp_rows_name(&rows->types, row->event, row->event_size, row->event_key, place);
        if (sequence == LP_INTERN_NONE || type == LP_INTERN_NONE || type >= LP_ROW_TYPES)
            return fail_memory(reader);
        if (rows->field_count > 0 && !keep_fields(reader, record, segment, place))
            return fail_memory(reader);
        rows->types.count[type]++;
        segment->time[segment->used] = row->time;
        segment->row[segment->used++] = (lp_row){sequence, type << 2 | row->split};
        block->count++;
    }
    reader->waiting_count = 0;
    return true;
}

/* A table of many sequences does not fit the cache: rows wait until those asked for before them have come from memory.
 */
static bool keep_row(lp_reader *reader, const lp_csv_record *record, lp_waiting_row row)
{
    row.sequence_key = lp_intern_key(row.sequence, row.sequence_size);
    row.event_key = lp_intern_key(row.event, row.event_size);
    lp_intern_prefetch(&reader->rows.sequences.intern, row.sequence_key);
    reader->waiting[reader->waiting_count++] = row;
    /* Joined names share one buffer, and fields are read from the record, so such a row cannot wait. */
    bool full = reader->waiting_count == LP_WAITING_ROWS || reader->reading->columns.event_count > 1 ||
                reader->rows.field_count > 0;
    return !full || keep_rows(reader, record);
}

/* Checks a record and keeps it as a row. False ends the import. */
static bool read_row(lp_reader *reader, const lp_csv_record *record)
{
    const lp_columns *columns = &reader->reading->columns;
    char shown[LP_EXCERPT_SIZE];
    reader->seen++;
    if (record->after_quote)
        return bad_row(reader, record->fault_field + 1, reader->line,
                       "a quoted field goes on after its closing quote; a quote inside it is written twice");
    if (record->count != columns->count)
        return bad_row(reader, 0, reader->line, "this row has %" PRId64 " field%s, but the %s has %" PRId64,
                       record->count, record->count == 1 ? "" : "s",
                       reader->reading->options->header ? "header" : "first row", columns->count);
    const char *sequence = record->begin[columns->sequence], *sequence_end = record->end[columns->sequence];
    if (sequence == sequence_end)
        return bad_row(reader, columns->sequence + 1, reader->line, "the name of the sequence is empty");
    if (!lp_text_is_utf8(sequence, sequence_end))
        return bad_row(reader, columns->sequence + 1, reader->line, "the name of the sequence is not valid UTF-8 text");
    const char *event, *event_end;
    if (!event_name(reader, record, &event, &event_end))
        return fail_memory(reader);
    if (event == event_end)
        return bad_row(reader, columns->event[0] + 1, reader->line, "the name of the event is empty");
    if (!lp_text_is_utf8(event, event_end))
        return bad_row(reader, columns->event[0] + 1, reader->line, "the name of the event is not valid UTF-8 text");
    uint32_t split = 0;
    if (columns->split >= 0 && !read_split(record->begin[columns->split], record->end[columns->split], &split))
        return bad_row(reader, columns->split + 1, reader->line, "'%s' is not a split: expected train, valid or test",
                       lp_text_excerpt(record->begin[columns->split], record->end[columns->split], shown));
    double time = 0;
    const char *time_text = record->begin[columns->time], *time_end = record->end[columns->time];
    const char *reason = read_time(reader->reading, time_text, time_end, &time);
    if (reason)
        return bad_row(reader, columns->time + 1, reader->line, "'%s' %s", lp_text_excerpt(time_text, time_end, shown),
                       reason);
    bool go_on;
    if (columns->field_count > 0 && !read_fields(reader, record, &go_on))
        return go_on;
    return keep_row(reader, record,
                    (lp_waiting_row){.sequence = sequence,
                                     .sequence_size = (uint32_t)(sequence_end - sequence),
                                     .event = event,
                                     .event_size = (uint32_t)(event_end - event),
                                     .time = time,
                                     .split = split});
}

static bool fail_binary(lp_reader *reader)
{
    return fail(reader, LAPSE_ERROR_INPUT, 0, "this looks like a binary file, not text: it has a NUL byte");
}

static bool make_record(lp_reader *reader, lp_csv_record *record, int64_t capacity)
{
    *record = (lp_csv_record){.capacity = capacity};
    record->begin = lp_alloc((size_t)capacity, sizeof *record->begin);
    record->end = lp_alloc((size_t)capacity, sizeof *record->end);
    return (record->begin && record->end) || fail_memory(reader);
}

/* What a reader can make only once the columns are known. */
static bool know_columns(lp_reader *reader)
{
    const lp_columns *columns = &reader->reading->columns;
    if (reader->record.begin)
        return true;
    return make_record(reader, &reader->record, columns->count) &&
           (lp_rows_fields(&reader->rows, columns->field_type, columns->field_count) || fail_memory(reader));
}

/* Reads the first record that is not an empty line: the header, or without one the first row. */
static bool read_first(lp_reader *reader, lp_csv_scanner *scanner, const char *nul)
{
    lp_reading *reading = reader->reading;
    int64_t delimiters = 1;
    for (const char *at = scanner->at; at < scanner->end; at++)
        delimiters += *at == scanner->delimiter;
    lp_csv_record first = {0};
    bool good = make_record(reader, &first, delimiters);
    while (good && !reading->have_columns && lp_csv_next(scanner, &first)) {
        if (scanner->at > nul) {
            good = fail_binary(reader);
        } else if (lp_csv_is_blank(&first)) {
            reader->line += first.lines;
        } else if (first.after_quote) {
            good = fail(reader, LAPSE_ERROR_INPUT, first.fault_field + 1,
                        "a quoted field goes on after its closing quote; a quote inside it is written twice");
        } else {
            lapse_error error = {0};
            lapse_status status = lp_columns_choose(&reading->columns, &reading->arena, reading->options, &first,
                                                    reading->file, reader->line + 1, &error);
            reading->have_columns = status == LAPSE_OK;
            good = status == LAPSE_OK ? know_columns(reader) && (reading->options->header || read_row(reader, &first))
                                      : fail(reader, status, error.column, "%s", error.message);
            reader->line += first.lines;
        }
    }
    lp_free(first.begin);
    lp_free(first.end);
    return good;
}

/* ------------------------------------------------------------------------------------------------- blocks ---- */

/* A record that could not be cut from the text. */
static bool read_faulty(lp_reader *reader, const lp_block *block)
{
    int64_t line = 0;
    if (block->fault == LP_BLOCK_OPEN)
        for (size_t i = 0; i < block->quote; i++)
            line += reader->buffer[i] == '\n';
    const char *message = lp_block_fault_text(block->fault);
    reader->seen++;
    if (!reader->reading->have_columns) {
        reader->line = line;
        return fail(reader, LAPSE_ERROR_INPUT, 0, "%s", message);
    }
    bool good = bad_row(reader, 0, line, "%s", message);
    reader->line = 1;
    return good;
}

static bool read_whole(lp_reader *reader, const lp_block *block)
{
    lp_csv_scanner scanner;
    const char *nul = memchr(reader->buffer, 0, block->size);
    nul = nul ? nul : reader->buffer + block->size;
    lp_csv_start(&scanner, reader->buffer, block->size, reader->reading->blocks.delimiter);
    if (!reader->reading->have_columns && !read_first(reader, &scanner, nul))
        return false;
    if (reader->reading->have_columns && !know_columns(reader))
        return false;
    while (lp_csv_next(&scanner, &reader->record)) {
        if (scanner.at > nul)
            return fail_binary(reader);
        if (!lp_csv_is_blank(&reader->record) && !read_row(reader, &reader->record))
            return false;
        reader->line += reader->record.lines;
    }
    return keep_rows(reader, &reader->record);
}

bool lp_reader_step(lp_reader *reader)
{
    lp_block block;
    if (reader->status != LAPSE_OK || !lp_blocks_take(&reader->reading->blocks, reader->buffer, &block))
        return false;
    reader->block = block.index;
    reader->line = 0;
    if (!lp_rows_begin(&reader->rows, block.index, (int64_t)(block.size / SMALLEST_ROW) + 1))
        return fail_memory(reader);
    bool good = block.fault == LP_BLOCK_WHOLE ? read_whole(reader, &block) : read_faulty(reader, &block);
    reader->rows.blocks[reader->rows.block_count - 1].lines = reader->line;
    return good;
}
