/* arrow_reader.c: checks batches of rows of an Arrow table, maps their names to ids, and loads columns for grouping. */
#include "data/import/arrow_reader.h"

#include "base/text.h"
#include "base/timestamp.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

lapse_status lp_arrow_reader_init(lp_arrow_reader *reader, lp_arrow_shared *shared, lapse_error *error)
{
    *reader = (lp_arrow_reader){.shared = shared, .next_batch = -1, .first_bad_batch = -1, .error_batch = INT64_MAX};
    reader->names = lp_alloc((size_t)shared->table.used_count, sizeof *reader->names);
    reader->ahead.ranges = lp_alloc((size_t)shared->table.used_count * LP_ARROW_RANGES, sizeof *reader->ahead.ranges);
    reader->further = lp_grow(NULL, LP_ARROW_BATCH, sizeof *reader->further);
    reader->row = lp_grow(NULL, LP_ARROW_BATCH, sizeof *reader->row);
    reader->check = lp_grow(NULL, LP_ARROW_BATCH, 1);
    reader->bad = lp_grow(NULL, LP_ARROW_BATCH, 1);
    reader->empty = lp_grow(NULL, LP_ARROW_BATCH, 1);
    reader->splits = lp_grow(NULL, LP_ARROW_BATCH, 1);
    reader->local = lp_grow(NULL, LP_ARROW_BATCH, 1);
    reader->numbers = lp_grow(NULL, LP_ARROW_BATCH, sizeof *reader->numbers);
    const lp_columns *columns = &shared->reader->columns;
    if (!reader->names || !reader->ahead.ranges || !reader->further || !reader->row || !reader->check || !reader->bad ||
        !reader->empty || !reader->splits || !reader->local || !reader->numbers ||
        !lp_rows_fields(&reader->rows, columns->field_type, columns->field_count))
        return lp_fail_memory(error, "a batch of rows", (size_t)LP_ARROW_BATCH * 16);
    return LAPSE_OK;
}

void lp_arrow_reader_clear(lp_arrow_reader *reader)
{
    for (int u = 0; reader->names && u < reader->shared->table.used_count; u++)
        lp_arrow_names_clear(&reader->names[u]);
    lp_free(reader->names);
    lp_free(reader->ahead.ranges);
    lp_free(reader->further);
    lp_free(reader->row);
    lp_free(reader->check);
    lp_free(reader->bad);
    lp_free(reader->empty);
    lp_free(reader->splits);
    lp_free(reader->local);
    lp_free(reader->numbers);
    lp_rows_clear(&reader->rows);
    *reader = (lp_arrow_reader){0};
}

/* ----------------------------------------------------------------------------------------------- failures ---- */

static bool fail(lp_arrow_reader *reader, int64_t batch, const lapse_error *error)
{
    reader->status = error->status;
    reader->error = *error;
    reader->error_batch = batch;
    int64_t stop = atomic_load(&reader->shared->stop);
    while (batch < stop && !atomic_compare_exchange_weak(&reader->shared->stop, &stop, batch))
        ;
    return false;
}

static bool fail_memory(lp_arrow_reader *reader, int64_t batch)
{
    lapse_error error = {0};
    lp_fail(&error, LAPSE_ERROR_MEMORY, "out of memory while reading rows");
    return fail(reader, batch, &error);
}

/* Marks a row as malformed. The message is kept of the first one in the order of the table, then of the columns. */
__attribute__((format(printf, 5, 6))) static void bad_row(lp_arrow_reader *reader, const lp_arrow_batch *batch, int row,
                                                          int64_t column, const char *format, ...)
{
    reader->bad[row] = 1;
    if (row >= reader->fault_row)
        return;
    va_list arguments;
    va_start(arguments, format);
    reader->fault_row = row;
    lp_fail_list(&reader->fault, LAPSE_ERROR_INPUT, NULL, batch->base + row + 1, column, format, arguments);
    va_end(arguments);
}

/* Marks a row at which an array is corrupt. */
static void broken_row(lp_arrow_reader *reader, const lp_arrow_batch *batch, int row, int64_t column)
{
    static const char reason[] = "the Arrow stream is invalid: an offset or index is outside its array";
    bad_row(reader, batch, row, column, "%s", reason);
    if (row >= reader->broken_row)
        return;
    reader->broken_row = row;
    lp_fail_at(&reader->broken, LAPSE_ERROR_INPUT, NULL, batch->base + row + 1, column, "%s", reason);
}

/* ------------------------------------------------------------------------------------------ single values ---- */

static bool is_time(lp_arrow_type type)
{
    return type.kind == LP_ARROW_DATE || type.kind == LP_ARROW_TIMESTAMP;
}

/* Element i, which is not missing, for a message. */
static const char *excerpt(const lp_arrow_values *values, int64_t i, char out[LP_EXCERPT_SIZE])
{
    char name[LP_ARROW_NAME_SIZE];
    const char *begin = name, *end = name;
    int64_t value;
    if (lp_arrow_is_text(values))
        lp_arrow_text(values, i, &begin, &end);
    else if (lp_arrow_integer(values, i, &value))
        end = name + lp_arrow_name(values->type, value, name);
    return lp_text_excerpt(begin, end, out);
}

/* The time of element i of resolved values. Returns NULL, or the end of a sentence that begins with the value. */
static const char *time_at(lp_reader_shared *shared, const lp_arrow_values *values, int64_t i, double *time,
                           lp_local *local)
{
    const char *begin, *end;
    int64_t value;
    *local = LP_LOCAL_NONE;
    if (lp_arrow_is_text(values)) {
        const char *broken = lp_arrow_text(values, i, &begin, &end);
        return broken ? broken : lp_time_read(&shared->time, begin, end, time, local);
    }
    if (!lp_arrow_integer(values, i, &value))
        return "is a decimal of more than 18 digits";
    if (is_time(values->type)) {
        *time = lp_arrow_instant(values->type, value, shared->time.zone, local);
        return lp_time_check(*time);
    }
    if (values->type.kind == LP_ARROW_INTEGER)
        return lp_time_integer(&shared->time, value, time);
    double number = lp_arrow_number(values->type, value);
    return isnan(number) ? "is not a time: it is missing" : lp_time_number(&shared->time, number, time);
}

/* The number of element i of resolved values; NaN: missing. False: it is not a finite number. */
static bool number_at(const lp_arrow_values *values, int64_t i, double *number)
{
    const char *begin, *end;
    int64_t value;
    *number = NAN;
    if (lp_arrow_is_text(values)) {
        if (lp_arrow_text(values, i, &begin, &end))
            return false;
        return lp_reader_number(begin, end, number);
    }
    if (!lp_arrow_integer(values, i, &value))
        return false;
    *number = lp_arrow_number(values->type, value);
    return !isinf(*number);
}

/* ------------------------------------------------------------------------------------------------- checks ---- */

/* Checks a column of names, which are required not to be empty, or not. False when out of memory. */
static bool check_names(lp_arrow_reader *reader, int64_t index, int used, const char *role, bool required)
{
    const lp_arrow_shared *shared = reader->shared;
    const lp_arrow_batch *batch = &shared->batches[index];
    const lp_arrow_values *values = lp_arrow_table_values(&shared->table, batch->array, used);
    int64_t column = shared->table.used[used].column + 1;
    if (!lp_arrow_names_check(&reader->names[used], values, batch->first, batch->count, reader->check))
        return fail_memory(reader, index);
    uint8_t any = 0;
    for (int i = 0; i < batch->count; i++)
        any |= reader->check[i];
    for (int i = 0; any && i < batch->count; i++) {
        if (reader->check[i] == LP_ARROW_GOOD || (reader->check[i] == LP_ARROW_EMPTY && !required))
            continue;
        if (reader->check[i] == LP_ARROW_BROKEN)
            broken_row(reader, batch, i, column);
        else if (reader->check[i] == LP_ARROW_EMPTY)
            bad_row(reader, batch, i, column, "the name of the %s is empty", role);
        else
            bad_row(reader, batch, i, column, "the %s is not UTF-8 text, or contains a NUL character", role);
    }
    return true;
}

/* The name of an event may have several columns: one of them must not be empty. */
static bool check_events(lp_arrow_reader *reader, int64_t index)
{
    const lp_arrow_shared *shared = reader->shared;
    const lp_arrow_batch *batch = &shared->batches[index];
    int parts = (int)shared->reader->columns.event_count;
    if (parts == 1)
        return check_names(reader, index, shared->first_event, "event", true);
    memset(reader->empty, 1, (size_t)batch->count);
    for (int p = 0; p < parts; p++) {
        if (!check_names(reader, index, shared->first_event + p, "event", false))
            return false;
        for (int i = 0; i < batch->count; i++)
            reader->empty[i] = reader->empty[i] && reader->check[i] == LP_ARROW_EMPTY;
    }
    for (int i = 0; i < batch->count; i++)
        if (reader->empty[i])
            bad_row(reader, batch, i, shared->table.used[shared->first_event].column + 1,
                    "the name of the event is empty");
    return true;
}

static void check_time(lp_arrow_reader *reader, const lp_arrow_batch *batch, int row)
{
    lp_arrow_shared *shared = reader->shared;
    const lp_arrow_values *values = lp_arrow_table_values(&shared->table, batch->array, shared->time);
    int64_t column = shared->table.used[shared->time].column + 1, at = batch->first + row;
    double time;
    lp_local local = LP_LOCAL_NONE;
    char shown[LP_EXCERPT_SIZE];
    const char *reason = NULL;
    if (!lp_arrow_resolve(&values, &at))
        bad_row(reader, batch, row, column, "the time is missing");
    else if ((reason = time_at(shared->reader, values, at, &time, &local)))
        bad_row(reader, batch, row, column, "'%s' %s", excerpt(values, at, shown), reason);
    reader->local[row] = (uint8_t)local;
}

/* Whether the times of these values are their numbers: typed, and not on the clock of a zone. */
static bool times_are_numbers(const lp_arrow_shared *shared, const lp_arrow_values *values)
{
    return is_time(values->type) && !(values->type.local && shared->reader->time.zone);
}

static void check_times(lp_arrow_reader *reader, const lp_arrow_batch *batch)
{
    const lp_arrow_shared *shared = reader->shared;
    const lp_arrow_values *values = lp_arrow_table_values(&shared->table, batch->array, shared->time);
    bool numbers = times_are_numbers(shared, values);
    reader->usual_local = values->type.local ? LP_LOCAL_UNIQUE : LP_LOCAL_NONE;
    reader->same_local = numbers && lp_arrow_within(values, batch->first, batch->count, LP_TIME_MIN, LP_TIME_MAX);
    if (reader->same_local)
        return;
    bool fast = numbers && lp_arrow_numbers(values, batch->first, batch->count, reader->numbers);
    memset(reader->local, reader->usual_local, (size_t)batch->count);
    for (int i = 0; i < batch->count; i++)
        if (!fast || !(reader->numbers[i] >= LP_TIME_MIN && reader->numbers[i] <= LP_TIME_MAX))
            check_time(reader, batch, i);
}

static void check_splits(lp_arrow_reader *reader, const lp_arrow_batch *batch)
{
    const lp_arrow_shared *shared = reader->shared;
    const lp_arrow_values *all = lp_arrow_table_values(&shared->table, batch->array, shared->split);
    for (int i = 0; i < batch->count; i++) {
        const lp_arrow_values *values = all;
        int64_t at = batch->first + i;
        const char *begin = "", *end = begin;
        char shown[LP_EXCERPT_SIZE];
        uint32_t split = 0;
        if (lp_arrow_resolve(&values, &at) && lp_arrow_is_text(values))
            lp_arrow_text(values, at, &begin, &end);
        if (!lp_reader_split(begin, end, &split))
            bad_row(reader, batch, i, shared->table.used[shared->split].column + 1,
                    "'%s' is not a split: expected train, valid or test", lp_text_excerpt(begin, end, shown));
        reader->splits[i] = (uint8_t)split;
    }
}

static void check_numbers(lp_arrow_reader *reader, const lp_arrow_batch *batch, int used)
{
    const lp_arrow_shared *shared = reader->shared;
    const lp_arrow_values *all = lp_arrow_table_values(&shared->table, batch->array, used);
    bool fast = lp_arrow_numbers(all, batch->first, batch->count, reader->numbers);
    for (int i = 0; i < batch->count; i++) {
        const lp_arrow_values *values = all;
        int64_t at = batch->first + i;
        double number;
        char shown[LP_EXCERPT_SIZE];
        if (fast && !isinf(reader->numbers[i]))
            continue;
        if (lp_arrow_resolve(&values, &at) && !number_at(values, at, &number))
            bad_row(reader, batch, i, shared->table.used[used].column + 1, LP_NOT_A_NUMBER, excerpt(values, at, shown));
    }
}

static bool check_batch(lp_arrow_reader *reader, int64_t index)
{
    const lp_arrow_shared *shared = reader->shared;
    const lp_arrow_batch *batch = &shared->batches[index];
    const lp_arrow_array *array = &shared->table.arrays[batch->array];
    memset(reader->bad, 0, (size_t)batch->count);
    reader->fault_row = reader->broken_row = INT_MAX;
    for (int i = 0; array->valid && i < batch->count; i++)
        if (!lp_arrow_bit(array->valid, array->array.offset + batch->first + i))
            bad_row(reader, batch, i, 0, "the row is missing");
    if (!check_names(reader, index, 0, "sequence", true) || !check_events(reader, index))
        return false;
    if (shared->split >= 0)
        check_splits(reader, batch);
    check_times(reader, batch);
    const lp_columns *columns = &shared->reader->columns;
    for (int f = 0; f < columns->field_count; f++) {
        lapse_field_type type = columns->field_type[f];
        if (type == LAPSE_FIELD_NUMBER)
            check_numbers(reader, batch, shared->first_field + f);
        else if (!check_names(reader, index, shared->first_field + f, type == LAPSE_FIELD_ACTION ? "action" : "field",
                              false))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- ids ---- */

/* The ids of the names of the good rows of one column. */
static bool name_column(lp_arrow_reader *reader, const lp_arrow_batch *batch, int64_t index, int used,
                        lp_rows_names *table, int64_t count, uint32_t *ids)
{
    const lp_arrow_values *values = lp_arrow_table_values(&reader->shared->table, batch->array, used);
    return lp_arrow_names_ids(&reader->names[used], table, values, reader->row, batch->first, count,
                              (uint64_t)index << 32, &reader->ahead, ids);
}

static bool name_events(lp_arrow_reader *reader, const lp_arrow_batch *batch, int64_t index, int64_t count,
                        uint32_t *ids)
{
    int first = reader->shared->first_event, parts = (int)reader->shared->reader->columns.event_count;
    lp_rows_names *types = &reader->rows.types, *left = parts == 1 ? types : &reader->names[first].part;
    bool good = name_column(reader, batch, index, first, left, count, ids);
    for (int p = 1; good && p < parts; p++) {
        lp_arrow_names *names = &reader->names[first + p];
        lp_rows_names *table = p == parts - 1 ? types : &names->joined;
        good = name_column(reader, batch, index, first + p, &names->part, count, reader->further) &&
               lp_arrow_names_join(names, left, table, reader->further, count, (uint64_t)index << 32, ids);
        left = table;
    }
    good = good && types->intern.count <= LP_ROW_TYPES;
    bool split = reader->shared->split >= 0;
    for (int64_t i = 0; good && i < count; i++)
        ids[i] = ids[i] << 2 | (split ? reader->splits[reader->row[i]] : 0);
    return good;
}

static bool name_batch(lp_arrow_reader *reader, int64_t index, int64_t count)
{
    const lp_arrow_shared *shared = reader->shared;
    lp_import_rows *rows = &reader->rows;
    const lp_arrow_batch *batch = &shared->batches[index];
    uint32_t *sequence = shared->ids.sequence + batch->base;
    bool good = name_column(reader, batch, index, 0, &rows->sequences, count, sequence) &&
                lp_rows_sample(rows, index, sequence, count) &&
                name_events(reader, batch, index, count, shared->ids.type + batch->base);
    for (int f = 0; good && f < rows->field_count; f++) {
        lp_rows_names *categories = &rows->categories[f];
        if (rows->field_type[f] != LAPSE_FIELD_NUMBER)
            good = name_column(reader, batch, index, shared->first_field + f, categories, count,
                               (uint32_t *)shared->ids.field[f] + batch->base) &&
                   categories->intern.count <= LP_ROW_TYPES;
    }
    return good || fail_memory(reader, index);
}

/* ------------------------------------------------------------------------------------------------ batches ---- */

/* Lists the good rows of the current batch in reader->row; -1: the import stops. */
static int64_t select_rows(lp_arrow_reader *reader, int64_t index)
{
    lp_arrow_batch *batch = &reader->shared->batches[index];
    int64_t count = 0;
    if (reader->fault_row != INT_MAX) {
        bool skip = reader->shared->reader->options->skip_bad_rows;
        if (!skip || reader->broken_row != INT_MAX) {
            fail(reader, index, skip ? &reader->broken : &reader->fault);
            return -1;
        }
        if (reader->first_bad_batch < 0) {
            reader->first_bad = reader->fault;
            reader->first_bad_batch = index;
        }
        batch->bad = batch->bad ? batch->bad : lp_grow(NULL, (size_t)batch->count, 1);
        if (!batch->bad) {
            fail_memory(reader, index);
            return -1;
        }
        memcpy(batch->bad, reader->bad, (size_t)batch->count);
    }
    if (reader->fault_row == INT_MAX) {
        count = batch->count;
        for (int i = 0; i < batch->count; i++)
            reader->row[i] = i;
    } else {
        for (int i = 0; i < batch->count; i++)
            if (!reader->bad[i])
                reader->row[count++] = i;
    }
    if (reader->same_local)
        reader->local_count[reader->usual_local] += count;
    else
        for (int64_t i = 0; i < count; i++)
            reader->local_count[reader->local[reader->row[i]]]++;
    reader->bad_count += batch->count - count;
    return count;
}

/* Lists the memory of the next batch, to be requested while the names of `count` rows are looked up. */
static void look_ahead(lp_arrow_reader *reader, int64_t count)
{
    const lp_arrow_shared *shared = reader->shared;
    lp_arrow_ahead *ahead = &reader->ahead;
    ahead->count = 0;
    if (reader->next_batch >= shared->batch_count)
        return;
    const lp_arrow_batch *batch = &shared->batches[reader->next_batch];
    int columns = 0; /* of names */
    for (int u = 0; u < shared->table.used_count; u++) {
        const lp_arrow_values *values = lp_arrow_table_values(&shared->table, batch->array, u);
        ahead->count += lp_arrow_ranges(values, batch->first, batch->count, ahead->ranges + ahead->count);
        int field = u - shared->first_field;
        columns += u < shared->first_event + shared->reader->columns.event_count ||
                   (field >= 0 && shared->reader->columns.field_type[field] != LAPSE_FIELD_NUMBER);
    }
    lp_arrow_ahead_begin(ahead, columns * count / LP_ARROW_STEP);
}

bool lp_arrow_reader_step(lp_arrow_reader *reader)
{
    lp_arrow_shared *shared = reader->shared;
    int64_t index = reader->next_batch >= 0 ? reader->next_batch : atomic_fetch_add(&shared->next, 1);
    reader->next_batch = atomic_fetch_add(&shared->next, 1);
    if (reader->status != LAPSE_OK || index >= shared->batch_count || index >= atomic_load(&shared->stop))
        return false;
    if (!check_batch(reader, index))
        return false;
    int64_t count = select_rows(reader, index);
    if (count < 0)
        return false;
    look_ahead(reader, count);
    if (!name_batch(reader, index, count))
        return false;
    lp_import_rows *rows = &reader->rows;
    if (!lp_reserve(&rows->chunks, &rows->chunk_capacity, (size_t)rows->chunk_count + 1, sizeof *rows->chunks))
        return fail_memory(reader, index);
    rows->chunks[rows->chunk_count++] =
        (lp_rows_chunk){.index = index, .first = shared->batches[index].base, .count = count};
    return true;
}

void lp_arrow_find_unit(lp_arrow_shared *shared)
{
    lp_reader_shared *reader = shared->reader;
    if (reader->time_type)
        return;
    for (int64_t a = 0; a < shared->table.array_count && reader->time.unit == LP_TIME_AUTO; a++) {
        const lp_arrow_values *all = lp_arrow_table_values(&shared->table, a, shared->time);
        for (int64_t i = 0; i < all->length && reader->time.unit == LP_TIME_AUTO; i++) {
            const lp_arrow_values *values = all;
            int64_t at = i;
            double time;
            lp_local local;
            if (lp_arrow_resolve(&values, &at))
                time_at(reader, values, at, &time, &local);
        }
    }
}

/* ------------------------------------------------------------------------------------------------ loading ---- */

static void load_numbers(const lp_arrow_shared *shared, const lp_arrow_batch *batch, int used, double *out)
{
    const lp_arrow_values *all = lp_arrow_table_values(&shared->table, batch->array, used);
    bool time = used == shared->time;
    int64_t count = 0;
    lp_local local;
    if (!batch->bad && (!time || times_are_numbers(shared, all)) &&
        lp_arrow_numbers(all, batch->first, batch->count, out))
        return;
    for (int i = 0; i < batch->count; i++) {
        const lp_arrow_values *values = all;
        int64_t at = batch->first + i;
        double number = NAN;
        if (batch->bad && batch->bad[i])
            continue;
        if (lp_arrow_resolve(&values, &at)) {
            if (time)
                time_at(shared->reader, values, at, &number, &local);
            else
                number_at(values, at, &number);
        }
        out[count++] = number;
    }
}

void lp_arrow_load(const void *context, const lp_rows_chunk *chunk, int column, double *out)
{
    const lp_arrow_shared *shared = context;
    int used = column == LP_COLUMN_TIME ? shared->time : shared->first_field + column;
    load_numbers(shared, &shared->batches[chunk->index], used, out);
}
