/* reader.c: parses and validates rows. A row is validated completely before any of its names gets an id, so that a
 * dropped row leaves no trace. */
#include "data/import/reader.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SMALLEST_ROW = 6 }; /* bytes of a valid row: three fields, two delimiters, a line end */

lapse_status lp_reader_init(lp_reader *reader, lp_reader_shared *shared, int64_t segment_rows, lapse_error *error)
{
    *reader = (lp_reader){.shared = shared, .first_bad_chunk = -1, .error_chunk = INT64_MAX, .good_chunk = -1};
    reader->rows.segment_rows = segment_rows;
    reader->buffer = lp_grow(NULL, lp_chunks_buffer_size(&shared->chunks), 1);
    if (!reader->buffer)
        return lp_fail_memory(error, "a chunk of text", lp_chunks_buffer_size(&shared->chunks));
    return LAPSE_OK;
}

void lp_reader_clear(lp_reader *reader)
{
    lp_free(reader->buffer);
    lp_csv_record_clear(&reader->record);
    lp_jsonl_clear(&reader->jsonl);
    lp_free(reader->present);
    lp_buffer_clear(&reader->joined);
    lp_buffer_clear(&reader->when);
    lp_rows_clear(&reader->rows);
}

/* A unit that was used before serves where the values do not tell: days and months, numbers that are not unix times. */
void lp_reader_set_time(lp_reader_shared *shared)
{
    lp_time_unit found = shared->columns.unit;
    if (shared->time.unit != LP_TIME_AUTO)
        return;
    int preferred =
        shared->options->preferred_unit ? lp_name_index(shared->options->preferred_unit, lp_time_unit_names) : -1;
    bool open = found == LP_TIME_UNCERTAIN || found == LP_TIME_RELATIVE || found == LP_TIME_AUTO;
    if (preferred > 0 && open) {
        shared->time.unit = (lp_time_unit)preferred;
        return;
    }
    lp_time_found(&shared->time, found);
}

/* ------------------------------------------------------------------------------------------------ failures --- */

/* Stops the import at the current record. */
__attribute__((format(printf, 4, 5))) static bool fail(lp_reader *reader, lapse_status status, int64_t column,
                                                       const char *format, ...)
{
    bool memory = status == LAPSE_ERROR_MEMORY;
    va_list arguments;
    va_start(arguments, format);
    reader->status = lp_fail_list(&reader->error, status, memory ? NULL : reader->shared->file,
                                  memory ? 0 : reader->line + 1, column, format, arguments);
    va_end(arguments);
    reader->error_chunk = reader->chunk;
    lp_chunks_stop(&reader->shared->chunks, reader->chunk);
    return false;
}

static bool fail_memory(lp_reader *reader)
{
    return fail(reader, LAPSE_ERROR_MEMORY, 0, "out of memory while reading rows");
}

/* Drops and counts a malformed row, or stops the import, according to the options. True: continue. */
__attribute__((format(printf, 4, 5))) static bool bad_row(lp_reader *reader, int64_t column, int64_t line,
                                                          const char *format, ...)
{
    lapse_error found;
    va_list arguments;
    va_start(arguments, format);
    lp_fail_list(&found, LAPSE_ERROR_INPUT, reader->shared->file, line + 1, column, format, arguments);
    va_end(arguments);
    if (!reader->shared->options->skip_bad_rows) {
        reader->line = line;
        return fail(reader, LAPSE_ERROR_INPUT, column, "%s", found.message);
    }
    reader->bad++;
    if (reader->first_bad_chunk < 0) {
        reader->first_bad = found;
        reader->first_bad_chunk = reader->chunk;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------- fields --- */

/* Position of a field in messages: its column, or in JSON Lines the byte in the line, 0 if it is absent. */
static int64_t position_of(const lp_reader *reader, const lp_csv_record *record, int64_t column)
{
    if (!reader->shared->json)
        return column + 1;
    const char *at = record->begin[column];
    return at == record->end[column] && !*at ? 0 : at - record->text + 1;
}

/* What numeric columns have where a value is missing: as written by pandas, R, SQL and spreadsheets. */
static bool is_missing(const char *begin, const char *end)
{
    static const char *const words[] = {"nan", "na", "null", "none", "n/a", "-nan", "<na>", "#n/a", "\\n", NULL};
    if (end - begin > 4)
        return false;
    for (int i = 0; words[i]; i++)
        if (lp_text_is(begin, end, words[i]))
            return true;
    return begin == end;
}

bool lp_reader_number(const char *begin, const char *end, double *number)
{
    lp_text_trim(&begin, &end);
    *number = NAN;
    return begin == end || lp_number_parse(begin, end, number) || is_missing(begin, end);
}

/* A number with a decimal comma and perhaps points between thousands: "1.234,56". Where commas may separate thousands ("1,234"),
 * three digits after one are refused. */
static bool read_comma(const char *begin, const char *end, bool thousands, double *number)
{
    char text[40];
    size_t used = 0;
    lp_text_trim(&begin, &end);
    const char *comma = begin < end ? memchr(begin, ',', (size_t)(end - begin)) : NULL;
    if (!comma || end - begin >= (int)sizeof text || (thousands && end - comma == 4))
        return false;
    for (const char *at = begin; at < end; at++)
        if (*at != '.')
            text[used++] = at == comma ? '.' : *at;
        else if (at > comma)
            return false;
    return lp_number_parse(text, text + used, number);
}

bool lp_reader_split(const char *begin, const char *end, uint32_t *split)
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

/* The event's name: one field, or the non-empty ones of several joined by a space. False when out of memory. */
static bool event_name(lp_reader *reader, const lp_csv_record *record, const char **begin, const char **end)
{
    const lp_columns *columns = &reader->shared->columns;
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
    *begin = reader->joined.size ? reader->joined.data : "";
    *end = *begin + reader->joined.size;
    return true;
}

/* Appends a time of day, with colons where it is digits alone: 815 or 81500 as 08:15 or 08:15:00. False when out of memory. */
static bool add_clock(lp_reader *reader, const char *begin, const char *end)
{
    int digits = reader->shared->columns.clock_digits;
    lp_text_trim(&begin, &end);
    if (digits == 0 || end - begin > digits || begin == end)
        return lp_buffer_add(&reader->when, begin, (size_t)(end - begin));
    bool good = true;
    for (int i = 0; good && i < digits; i++) {
        const char *at = end - digits + i;
        good = (i == 0 || i % 2 || lp_buffer_add(&reader->when, ":", 1)) &&
               lp_buffer_add(&reader->when, at < begin ? "0" : at, 1);
    }
    return good;
}

/* The time: one field, or a date and a time of day joined by a space. False when out of memory. */
static bool time_text(lp_reader *reader, const lp_csv_record *record, const char **begin, const char **end)
{
    const lp_columns *columns = &reader->shared->columns;
    *begin = record->begin[columns->time];
    *end = record->end[columns->time];
    if (columns->clock < 0)
        return true;
    const char *clock = record->begin[columns->clock], *clock_end = record->end[columns->clock];
    reader->when.size = 0;
    bool good = lp_buffer_add(&reader->when, *begin, (size_t)(*end - *begin)) && lp_buffer_add(&reader->when, " ", 1) &&
                add_clock(reader, clock, clock_end);
    *begin = reader->when.data;
    *end = *begin + reader->when.size;
    return good;
}

/* The end of a whole number without ".0" behind it. */
static const char *without_zero(const char *begin, const char *end)
{
    if (end - begin < 3 || end[-1] != '0' || end[-2] != '.')
        return end;
    for (const char *at = begin; at < end - 2; at++)
        if (*at < '0' || *at > '9')
            return end;
    return end - 2;
}

/* Validates the fields of a row and parses its numbers. False: the row is malformed; *go_on says whether to continue. */
static bool read_fields(lp_reader *reader, const lp_csv_record *record, bool *go_on)
{
    const lp_columns *columns = &reader->shared->columns;
    char shown[LP_EXCERPT_SIZE];
    for (int f = 0; f < columns->field_count; f++) {
        int64_t column = columns->field[f];
        const char *begin = record->begin[column], *end = record->end[column];
        if (columns->field_type[f] != LAPSE_FIELD_NUMBER) {
            if (lp_text_is_utf8(begin, end))
                continue;
            *go_on =
                bad_row(reader, position_of(reader, record, column), reader->line, "the %s is not valid UTF-8 text",
                        columns->field_type[f] == LAPSE_FIELD_ACTION ? "action" : "field");
            return false;
        }
        if (lp_reader_number(begin, end, &reader->number[f]) ||
            (!reader->shared->json &&
             read_comma(begin, end, reader->shared->chunks.delimiter != ';', &reader->number[f])))
            continue;
        lp_text_trim(&begin, &end);
        *go_on = bad_row(reader, position_of(reader, record, column), reader->line, LP_NOT_A_NUMBER,
                         lp_text_excerpt(begin, end, shown));
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- rows --- */

/* Stores the fields of the current record, whose position in the text is `position`. */
static bool store_fields(lp_reader *reader, const lp_csv_record *record, lp_segment *segment, uint64_t position)
{
    const lp_columns *columns = &reader->shared->columns;
    lp_import_rows *rows = &reader->rows;
    for (int f = 0; f < rows->field_count; f++) {
        if (rows->field_type[f] == LAPSE_FIELD_NUMBER) {
            ((double *)segment->field[f])[segment->used] = reader->number[f];
            continue;
        }
        const char *begin = record->begin[columns->field[f]];
        size_t size = (size_t)(record->end[columns->field[f]] - begin);
        uint32_t category = lp_rows_name(&rows->categories[f], begin, size, lp_intern_key(begin, size), position);
        if (category >= LP_ROW_TYPES)
            return false;
        ((uint32_t *)segment->field[f])[segment->used] = category;
    }
    return true;
}

/* Interns the names of the pending rows and stores the rows. With fields there is one pending row: the record. */
static bool store_rows(lp_reader *reader, const lp_csv_record *record)
{
    lp_import_rows *rows = &reader->rows;
    lp_rows_chunk *chunk = &rows->chunks[rows->chunk_count - 1];
    lp_segment *segment = rows->segments[chunk->segment];
    for (int i = 0; i < reader->pending_count; i++) {
        const lp_pending_row *row = &reader->pending[i];
        uint64_t position = (uint64_t)reader->chunk << 32 | (uint64_t)chunk->count;
        uint32_t sequence =
            lp_rows_name(&rows->sequences, row->sequence, row->sequence_size, row->sequence_key, position);
        uint32_t type = lp_rows_name(&rows->types, row->event, row->event_size, row->event_key, position);
        if (sequence == LP_INTERN_NONE || type == LP_INTERN_NONE || type >= LP_ROW_TYPES)
            return fail_memory(reader);
        if (rows->field_count > 0 && !store_fields(reader, record, segment, position))
            return fail_memory(reader);
        segment->time[segment->used] = row->time;
        segment->sequence[segment->used] = sequence;
        segment->type[segment->used++] = type << 2 | row->split;
        chunk->count++;
    }
    reader->pending_count = 0;
    return true;
}

/* Batches rows so that the prefetches of lp_intern slots have completed: a table of many sequences exceeds the cache. */
static bool queue_row(lp_reader *reader, const lp_csv_record *record, lp_pending_row row)
{
    row.sequence_key = lp_intern_key(row.sequence, row.sequence_size);
    row.event_key = lp_intern_key(row.event, row.event_size);
    lp_intern_prefetch(&reader->rows.sequences.intern, row.sequence_key);
    reader->pending[reader->pending_count++] = row;
    /* Joined names share one buffer, and fields are read from the record, so such a row is stored at once. */
    bool full = reader->pending_count == LP_PENDING_ROWS || reader->shared->columns.event_count > 1 ||
                reader->rows.field_count > 0;
    return !full || store_rows(reader, record);
}

static bool empty_name(lp_reader *reader, const lp_csv_record *record, int64_t column, const char *noun)
{
    const char *name = reader->shared->columns.name[column];
    char shown[LP_EXCERPT_SIZE];
    if (!reader->shared->json)
        return bad_row(reader, column + 1, reader->line, "the name of the %s is empty", noun);
    return bad_row(reader, position_of(reader, record, column), reader->line,
                   "the %s is missing: the object has no value for the key '%s'", noun,
                   lp_text_excerpt(name, name + strlen(name), shown));
}

/* A row without a time that has no sequence or no event either, such as the totals below a table. */
static bool is_summary(const lp_reader *reader, const lp_csv_record *record)
{
    const lp_columns *columns = &reader->shared->columns;
    if (reader->shared->json || reader->shared->options->skip_bad_rows || record->after_quote ||
        record->count != columns->count)
        return false;
    return record->begin[columns->time] == record->end[columns->time] &&
           (record->begin[columns->sequence] == record->end[columns->sequence] ||
            record->begin[columns->event[0]] == record->end[columns->event[0]]);
}

/* Counts a summary row; it is judged at the end. */
static bool add_summary(lp_reader *reader, const lp_csv_record *record)
{
    const lp_columns *columns = &reader->shared->columns;
    if (reader->summaries++ > 0)
        return true;
    reader->summary_chunk = reader->chunk;
    if (record->begin[columns->sequence] == record->end[columns->sequence])
        lp_fail_at(&reader->summary, LAPSE_ERROR_INPUT, reader->shared->file, reader->line + 1, columns->sequence + 1,
                   "the name of the sequence is empty");
    else
        lp_fail_at(&reader->summary, LAPSE_ERROR_INPUT, reader->shared->file, reader->line + 1, columns->event[0] + 1,
                   "the name of the event is empty");
    return true;
}

/* Validates a record and queues it as a row. False stops the import. */
static bool read_row(lp_reader *reader, const lp_csv_record *record)
{
    const lp_columns *columns = &reader->shared->columns;
    char shown[LP_EXCERPT_SIZE];
    reader->seen++;
    if (is_summary(reader, record))
        return add_summary(reader, record);
    reader->good_chunk = reader->chunk;
    reader->good_line = reader->line + 1;
    if (record->after_quote)
        return bad_row(reader, record->fault_field + 1, reader->line, LP_CSV_AFTER_QUOTE);
    if (record->count != columns->count)
        return bad_row(reader, 0, reader->line, "this row has %" PRId64 " field%s, but the %s has %" PRId64,
                       record->count, record->count == 1 ? "" : "s",
                       reader->shared->options->header ? "header" : "first row", columns->count);
    const char *sequence = record->begin[columns->sequence], *sequence_end = record->end[columns->sequence];
    if (sequence == sequence_end)
        return empty_name(reader, record, columns->sequence, "sequence");
    if (!lp_text_is_utf8(sequence, sequence_end))
        return bad_row(reader, position_of(reader, record, columns->sequence), reader->line,
                       "the name of the sequence is not valid UTF-8 text");
    const char *event, *event_end;
    if (!event_name(reader, record, &event, &event_end))
        return fail_memory(reader);
    if (event == event_end)
        return empty_name(reader, record, columns->event[0], "event");
    if (!lp_text_is_utf8(event, event_end))
        return bad_row(reader, position_of(reader, record, columns->event[0]), reader->line,
                       "the name of the event is not valid UTF-8 text");
    if (columns->whole_sequence)
        sequence_end = without_zero(sequence, sequence_end);
    if (columns->whole_event)
        event_end = without_zero(event, event_end);
    uint32_t split = 0;
    if (columns->split >= 0 && !lp_reader_split(record->begin[columns->split], record->end[columns->split], &split))
        return bad_row(reader, position_of(reader, record, columns->split), reader->line,
                       "'%s' is not a split: expected train, valid or test",
                       lp_text_excerpt(record->begin[columns->split], record->end[columns->split], shown));
    double time = 0;
    lp_local local;
    const char *when, *when_end;
    if (!time_text(reader, record, &when, &when_end))
        return fail_memory(reader);
    const char *reason = lp_time_read(&reader->shared->time, when, when_end, &time, &local);
    if (reason)
        return bad_row(reader, position_of(reader, record, columns->time), reader->line, "'%s' %s",
                       lp_text_excerpt(when, when_end, shown), reason);
    bool go_on;
    if (columns->field_count > 0 && !read_fields(reader, record, &go_on))
        return go_on;
    reader->local[local]++;
    return queue_row(reader, record,
                     (lp_pending_row){.sequence = sequence,
                                      .sequence_size = (uint32_t)(sequence_end - sequence),
                                      .event = event,
                                      .event_size = (uint32_t)(event_end - event),
                                      .time = time,
                                      .split = split});
}

/* Allocates what depends on the columns, once they are known. */
static bool init_columns(lp_reader *reader)
{
    const lp_columns *columns = &reader->shared->columns;
    if (reader->record.begin)
        return true;
    bool good = lp_csv_record_init(&reader->record, columns->count) &&
                lp_rows_fields(&reader->rows, columns->field_type, columns->field_count);
    if (good && reader->shared->json) {
        reader->present = lp_alloc((size_t)columns->count, sizeof *reader->present);
        good = reader->present && lp_jsonl_init(&reader->jsonl, &reader->shared->keys, &reader->record);
    }
    return good || fail_memory(reader);
}

/* Reads the first record that is not an empty line: the header, or without a header the first row. */
static bool read_first(lp_reader *reader, lp_csv_scanner *scanner, const char *nul)
{
    lp_reader_shared *shared = reader->shared;
    int64_t delimiters = 1;
    for (const char *at = scanner->at; at < scanner->end; at++)
        delimiters += *at == scanner->delimiter;
    lp_csv_record first;
    bool good = lp_csv_record_init(&first, delimiters) || fail_memory(reader);
    while (good && !shared->have_columns && lp_csv_next(scanner, &first)) {
        if (scanner->at > nul) {
            good = fail(reader, LAPSE_ERROR_INPUT, 0, LP_CSV_BINARY);
        } else if (lp_csv_is_blank(&first)) {
            reader->line += first.lines;
        } else if (first.after_quote) {
            good = fail(reader, LAPSE_ERROR_INPUT, first.fault_field + 1, LP_CSV_AFTER_QUOTE);
        } else {
            lapse_error error = {0};
            const lp_columns_input input = {.options = shared->options,
                                            .first = &first,
                                            .sample = &shared->sample,
                                            .file = shared->file,
                                            .line = reader->line + 1};
            lapse_status status = lp_columns_choose(&shared->columns, &shared->arena, &input, &error);
            if (status == LAPSE_OK)
                lp_reader_set_time(shared);
            shared->have_columns = status == LAPSE_OK;
            good = status == LAPSE_OK ? init_columns(reader) && (shared->options->header || read_row(reader, &first))
                                      : fail(reader, status, error.column, "%s", error.message);
            reader->line += first.lines;
        }
    }
    lp_csv_record_clear(&first);
    return good;
}

/* ------------------------------------------------------------------------------------------------- chunks ---- */

/* A malformed record that is a chunk of its own. */
static bool read_faulty(lp_reader *reader, const lp_chunk *chunk)
{
    bool open = chunk->fault == LP_CHUNK_OPEN_QUOTE;
    int64_t line = open ? lp_csv_line_ends(reader->buffer, reader->buffer + chunk->quote) : 0;
    const char *message = lp_chunk_fault_text(chunk->fault);
    reader->seen++;
    if (!reader->shared->have_columns) {
        reader->line = line;
        return fail(reader, LAPSE_ERROR_INPUT, 0, "%s", message);
    }
    bool good = bad_row(reader, 0, line, "%s", message);
    reader->line = 1;
    return good;
}

/* A line that is not an object, or whose object does not fit the columns. */
static bool malformed_line(lp_reader *reader)
{
    const lp_jsonl *parser = &reader->jsonl;
    char shown[LP_EXCERPT_SIZE];
    if (!parser->message)
        return fail_memory(reader);
    reader->seen++;
    if (parser->key == LP_JSON_NONE)
        return bad_row(reader, parser->position, reader->line, "%s", parser->message);
    const lp_json_key *key = &parser->keys->keys[parser->key];
    return bad_row(reader, parser->position, reader->line, "the key '%s' %s",
                   lp_text_excerpt(key->text, key->text + key->size, shown), parser->message);
}

static bool read_json(lp_reader *reader, const lp_chunk *chunk, const char *nul)
{
    const lp_columns *columns = &reader->shared->columns;
    lp_jsonl *parser = &reader->jsonl;
    lp_jsonl_result result;
    if (!init_columns(reader))
        return false;
    reader->record.count = columns->count;
    lp_jsonl_start(parser, reader->buffer, chunk->size);
    while ((result = lp_jsonl_next(parser)) != LP_JSONL_END) {
        if (parser->begin > nul)
            return fail(reader, LAPSE_ERROR_INPUT, 0, LP_CSV_BINARY);
        if (result == LP_JSONL_MALFORMED && !malformed_line(reader))
            return false;
        for (int f = 0; f < columns->field_count; f++)
            reader->present[columns->field[f]] |= *reader->record.begin[columns->field[f]] != 0;
        if (result == LP_JSONL_ROW && !read_row(reader, &reader->record))
            return false;
        reader->line++;
    }
    return store_rows(reader, &reader->record);
}

static bool read_whole(lp_reader *reader, const lp_chunk *chunk)
{
    lp_csv_scanner scanner;
    const char *nul = memchr(reader->buffer, 0, chunk->size);
    nul = nul ? nul : reader->buffer + chunk->size;
    if (reader->shared->json)
        return read_json(reader, chunk, nul);
    lp_csv_start(&scanner, reader->buffer, chunk->size, reader->shared->chunks.delimiter);
    if (!reader->shared->have_columns && !read_first(reader, &scanner, nul))
        return false;
    if (reader->shared->have_columns && !init_columns(reader))
        return false;
    while (lp_csv_next(&scanner, &reader->record)) {
        if (scanner.at > nul)
            return fail(reader, LAPSE_ERROR_INPUT, 0, LP_CSV_BINARY);
        if (!lp_csv_is_blank(&reader->record) && !read_row(reader, &reader->record))
            return false;
        reader->line += reader->record.lines;
    }
    return store_rows(reader, &reader->record);
}

bool lp_reader_step(lp_reader *reader)
{
    lp_chunk chunk;
    if (reader->status != LAPSE_OK || !lp_chunks_take(&reader->shared->chunks, reader->buffer, &chunk))
        return false;
    reader->chunk = chunk.index;
    reader->line = 0;
    if (!lp_rows_begin(&reader->rows, chunk.index, (int64_t)(chunk.size / SMALLEST_ROW) + 1))
        return fail_memory(reader);
    bool good = chunk.fault == LP_CHUNK_COMPLETE ? read_whole(reader, &chunk) : read_faulty(reader, &chunk);
    lp_rows_chunk *rows = &reader->rows.chunks[reader->rows.chunk_count - 1];
    rows->lines = reader->line;
    const uint32_t *sequence = reader->rows.segments[rows->segment]->sequence + rows->first;
    if (!lp_rows_sample(&reader->rows, rows->index, sequence, rows->count))
        return fail_memory(reader);
    return good;
}
