/* dataset_file.c: reads and writes the .lapse file that docs/dataset.md defines: a header, a column table, the
 * columns.
 *
 * Opening maps the file and points into it, so everything that readers rely on is checked once, at open: checksums
 * detect files that were truncated or edited, and the invariants of dataset.h are checked so that even a file with
 * valid checksums and invalid contents cannot make a reader leave the buffer.
 */
#include "data/dataset/names.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 2, BYTE_ORDER_MARK = 0x01020304, ALIGNMENT = 64, NAME_SIZE = 24, TYPE_SIZE = 8 };

static const char magic[8] = {(char)0x89, 'L', 'A', 'P', 'S', 'E', '\r', '\n'};

typedef struct file_header {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t file_size;
    uint32_t column_count, entry_size;
    uint64_t sequence_count, event_count;
    uint64_t table_checksum;
    uint64_t checksum; /* of the bytes before it */
} file_header;

typedef struct file_column {
    char name[NAME_SIZE], type[TYPE_SIZE]; /* padded with zeros */
    uint64_t offset, size, checksum, reserved;
} file_column;

_Static_assert(sizeof(file_header) == 64 && sizeof(file_column) == 64, "the layout of the file has no gaps");

/* -------------------------------------------------------------------------------------------------- saving --- */

enum { COLUMN_LIMIT = 13 + 3 * LP_FIELD_LIMIT };

typedef struct file_plan {
    file_header header;
    file_column table[COLUMN_LIMIT];
    const void *data[COLUMN_LIMIT];
    lp_buffer properties[2], fields[2]; /* owned; offsets and text of each string table */
    uint8_t types[LP_FIELD_LIMIT];
} file_plan;

static void plan_column(file_plan *plan, const char *name, const char *type, const void *data, uint64_t size)
{
    file_column *column = &plan->table[plan->header.column_count];
    plan->data[plan->header.column_count++] = data;
    memcpy(column->name, name, strlen(name));
    memcpy(column->type, type, strlen(type));
    column->size = size;
    column->checksum = XXH3_64bits(data, size);
}

/* Assigns the columns' offsets, each a multiple of 64, and completes the header. */
static void plan_offsets(file_plan *plan)
{
    file_header *header = &plan->header;
    uint64_t end = sizeof *header + header->column_count * sizeof(file_column);
    for (uint32_t i = 0; i < header->column_count; i++) {
        plan->table[i].offset = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        end = plan->table[i].offset + plan->table[i].size;
    }
    memcpy(header->magic, magic, sizeof magic);
    header->version = VERSION;
    header->byte_order = BYTE_ORDER_MARK;
    header->entry_size = sizeof(file_column);
    header->file_size = end;
    header->table_checksum = XXH3_64bits(plan->table, header->column_count * sizeof(file_column));
    header->checksum = XXH3_64bits(header, offsetof(file_header, checksum));
}

/* Appends a name to a string table: offsets and text. */
static bool pack_name(lp_buffer table[2], const char *name)
{
    uint64_t end = 0;
    if (table[0].size == 0 && !lp_buffer_add(&table[0], &end, sizeof end))
        return false;
    if (!lp_buffer_add(&table[1], name, strlen(name) + 1))
        return false;
    end = table[1].size;
    return lp_buffer_add(&table[0], &end, sizeof end);
}

/* Packs properties as one string table: name, value, name, value, ... */
static bool pack_tables(file_plan *plan, const lapse_dataset *dataset)
{
    uint64_t zero = 0;
    bool good = dataset->property_count > 0 || lp_buffer_add(&plan->properties[0], &zero, sizeof zero);
    for (int i = 0; good && i < dataset->property_count; i++)
        good = pack_name(plan->properties, dataset->property_name[i]) &&
               pack_name(plan->properties, dataset->property_value[i]);
    for (int f = 0; good && f < dataset->field_count; f++) {
        plan->types[f] = (uint8_t)dataset->fields[f].type;
        good = pack_name(plan->fields, dataset->fields[f].name);
    }
    return good;
}

static void plan_names(file_plan *plan, const char *offsets, const char *text, const lp_names *names)
{
    plan_column(plan, offsets, "u64", names->offset, ((uint64_t)names->count + 1) * sizeof *names->offset);
    plan_column(plan, text, "text", names->bytes, names->offset[names->count]);
}

/* Column names of field f: field.<f>, field.<f>.offset and field.<f>.text. */
typedef struct field_names {
    char values[NAME_SIZE], offsets[NAME_SIZE], text[NAME_SIZE];
} field_names;

static field_names names_of_field(int field)
{
    field_names names;
    snprintf(names.values, NAME_SIZE, "field.%d", field);
    snprintf(names.offsets, NAME_SIZE, "field.%d.offset", field);
    snprintf(names.text, NAME_SIZE, "field.%d.text", field);
    return names;
}

static void plan_fields(file_plan *plan, const lapse_dataset *dataset)
{
    uint64_t events = (uint64_t)dataset->event_count;
    if (dataset->field_count == 0)
        return;
    plan_column(plan, "field.type", "u8", plan->types, (uint64_t)dataset->field_count);
    plan_column(plan, "field.name.offset", "u64", plan->fields[0].data, plan->fields[0].size);
    plan_column(plan, "field.name.text", "text", plan->fields[1].data, plan->fields[1].size);
    for (int f = 0; f < dataset->field_count; f++) {
        const lp_field *field = &dataset->fields[f];
        field_names names = names_of_field(f);
        if (field->type == LAPSE_FIELD_NUMBER) {
            plan_column(plan, names.values, "f64", field->number, events * sizeof *field->number);
            continue;
        }
        plan_column(plan, names.values, "i32", field->category, events * sizeof *field->category);
        plan_names(plan, names.offsets, names.text, &field->categories);
    }
}

static lapse_status write_file(const file_plan *plan, const char *path, lapse_error *error)
{
    lp_writer writer;
    LP_TRY(lp_writer_open(&writer, path, error));
    lapse_status status = lp_writer_add(&writer, &plan->header, sizeof plan->header, error);
    if (status == LAPSE_OK)
        status = lp_writer_add(&writer, plan->table, plan->header.column_count * sizeof *plan->table, error);
    for (uint32_t i = 0; i < plan->header.column_count && status == LAPSE_OK; i++) {
        status = lp_writer_pad(&writer, ALIGNMENT, error);
        if (status == LAPSE_OK)
            status = lp_writer_add(&writer, plan->data[i], plan->table[i].size, error);
    }
    if (status == LAPSE_OK)
        return lp_writer_commit(&writer, error);
    lp_writer_abandon(&writer);
    return status;
}

lapse_status lapse_dataset_save(const lapse_dataset *dataset, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, dataset, path);
    uint64_t sequences = (uint64_t)dataset->sequence_count, events = (uint64_t)dataset->event_count;
    file_plan plan = {.header = {.sequence_count = sequences, .event_count = events}};
    lapse_status status = LAPSE_OK;
    if (pack_tables(&plan, dataset)) {
        plan_column(&plan, "property.offset", "u64", plan.properties[0].data, plan.properties[0].size);
        plan_column(&plan, "property.text", "text", plan.properties[1].data, plan.properties[1].size);
        plan_names(&plan, "event.offset", "event.text", &dataset->types);
        plan_names(&plan, "sequence.offset", "sequence.text", &dataset->sequences);
        plan_column(&plan, "start", "u64", dataset->start, (sequences + 1) * sizeof *dataset->start);
        plan_column(&plan, "time", "f64", dataset->time, events * sizeof *dataset->time);
        plan_column(&plan, "event", "i32", dataset->type, events * sizeof *dataset->type);
        if (dataset->split)
            plan_column(&plan, "split", "u8", dataset->split, events);
        plan_fields(&plan, dataset);
        plan_offsets(&plan);
        status = write_file(&plan, path, error);
    } else {
        status = lp_fail_memory(error, "the properties", 4096);
    }
    for (int i = 0; i < 2; i++) {
        lp_buffer_clear(&plan.properties[i]);
        lp_buffer_clear(&plan.fields[i]);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------- opening --- */

typedef struct file_view {
    const char *path, *data;
    uint64_t size;
    const file_header *header;
    const file_column *table;
    lapse_error *error;
} file_view;

__attribute__((format(printf, 2, 3))) static lapse_status refuse(const file_view *view, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lp_fail_list(view->error, LAPSE_ERROR_FORMAT, view->path, 0, 0, format, arguments);
    va_end(arguments);
    return LAPSE_ERROR_FORMAT;
}

static lapse_status check_header(file_view *view)
{
    const file_header *header = view->header = (const file_header *)(const void *)view->data;
    uint64_t beginning = view->size < sizeof magic ? view->size : sizeof magic;
    if (view->size == 0 || memcmp(view->data, magic, beginning) != 0)
        return refuse(view, "this is not a Lapse dataset; create one from a CSV file with lapse import");
    if (view->size < sizeof *header)
        return refuse(view, "the file is truncated: it ends within its header");
    if (header->byte_order != BYTE_ORDER_MARK)
        return refuse(view, "the header is corrupt, or has the byte order of another machine");
    if (header->version != VERSION)
        return refuse(view,
                      "the dataset has format version %" PRIu32
                      ", but this version of Lapse reads version %d: import the "
                      "source again with lapse import",
                      header->version, VERSION);
    if (header->checksum != XXH3_64bits(header, offsetof(file_header, checksum)))
        return refuse(view, "the header is corrupt: its checksum does not match");
    if (header->file_size > view->size)
        return refuse(view, "the file is truncated: it has %" PRIu64 " of %" PRIu64 " bytes", view->size,
                      header->file_size);
    if (header->file_size < view->size)
        return refuse(view, "the file is corrupt: it has %" PRIu64 " bytes instead of %" PRIu64, view->size,
                      header->file_size);
    uint64_t table_size = header->column_count * (uint64_t)sizeof(file_column);
    if (header->entry_size != sizeof(file_column) || table_size > view->size - sizeof *header)
        return refuse(view, "the column table does not fit the file");
    view->table = (const file_column *)(const void *)(view->data + sizeof *header);
    if (header->table_checksum != XXH3_64bits(view->table, table_size))
        return refuse(view, "the column table is corrupt: its checksum does not match");
    if (header->sequence_count < 1 || header->event_count < header->sequence_count ||
        header->event_count > view->size || header->sequence_count >= view->size)
        return refuse(view, "the header has invalid counts: %" PRIu64 " sequences and %" PRIu64 " events",
                      header->sequence_count, header->event_count);
    return LAPSE_OK;
}

/* Checks bounds and checksum of every column, also of those that this version does not know. */
static lapse_status check_columns(const file_view *view)
{
    for (uint32_t i = 0; i < view->header->column_count; i++) {
        const file_column *column = &view->table[i];
        if (!memchr(column->name, 0, NAME_SIZE) || !memchr(column->type, 0, TYPE_SIZE))
            return refuse(view, "column %" PRIu32 " has an invalid name or type", i + 1);
        if (column->offset % ALIGNMENT || column->offset > view->size || column->size > view->size - column->offset)
            return refuse(view, "column '%s' lies outside the file", column->name);
        if (column->checksum != XXH3_64bits(view->data + column->offset, column->size))
            return refuse(view, "column '%s' is corrupt: its checksum does not match", column->name);
    }
    return LAPSE_OK;
}

static const file_column *find_column(const file_view *view, const char *name)
{
    for (uint32_t i = 0; i < view->header->column_count; i++)
        if (strcmp(view->table[i].name, name) == 0)
            return &view->table[i];
    return NULL;
}

/* Points *data at a column of `count` elements. *data is NULL if an optional column is missing. */
static lapse_status bind(const file_view *view, const char *name, const char *type, uint64_t element, uint64_t count,
                         bool optional, const void **data)
{
    const file_column *column = find_column(view, name);
    *data = NULL;
    if (!column)
        return optional ? LAPSE_OK : refuse(view, "column '%s' is missing", name);
    if (strcmp(column->type, type) != 0)
        return refuse(view, "column '%s' has type '%s', but should have '%s'", name, column->type, type);
    if (column->size != element * count)
        return refuse(view, "column '%s' has %" PRIu64 " bytes, but should have %" PRIu64, name, column->size,
                      element * count);
    *data = view->data + column->offset;
    return LAPSE_OK;
}

static lapse_status bind_names(const file_view *view, const char *offsets, const char *text, lp_names *names)
{
    const file_column *column = find_column(view, offsets), *bytes = find_column(view, text);
    if (!column || !bytes)
        return refuse(view, "column '%s' is missing", column ? text : offsets);
    const void *data;
    uint64_t count = column->size / sizeof *names->offset;
    LP_TRY(bind(view, offsets, "u64", sizeof *names->offset, count, false, &data));
    names->offset = data;
    LP_TRY(bind(view, text, "text", 1, bytes->size, false, &data));
    names->bytes = data;
    if (count < 1 || names->offset[0] != 0 || names->offset[count - 1] != bytes->size)
        return refuse(view, "column '%s' does not fit column '%s'", offsets, text);
    names->count = (int64_t)count - 1;
    for (uint64_t i = 0; i + 1 < count; i++) {
        uint64_t begin = names->offset[i], end = names->offset[i + 1];
        if (end <= begin || end > bytes->size || memchr(names->bytes + begin, 0, end - begin) != names->bytes + end - 1)
            return refuse(view, "name %" PRIu64 " of column '%s' is invalid", i + 1, text);
    }
    return LAPSE_OK;
}

/* Binds a string table whose names must differ. */
static lapse_status bind_vocabulary(const file_view *view, const char *offsets, const char *text, lp_names *names)
{
    int64_t first = 0, second = 0;
    LP_TRY(bind_names(view, offsets, text, names));
    lapse_status status = lp_names_unique(names, &first, &second);
    if (status == LAPSE_ERROR_MEMORY)
        return lp_fail_memory(view->error, "a check of names", (size_t)names->count * 11);
    return status == LAPSE_OK ? LAPSE_OK
                              : refuse(view, "names %" PRId64 " and %" PRId64 " of column '%s' are both '%.60s'",
                                       first + 1, second + 1, text, lp_names_get(names, first));
}

/* Checks the invariants of dataset.h. */
static lapse_status check_events(const file_view *view, const lapse_dataset *dataset)
{
    if (dataset->start[0] != 0 || dataset->start[dataset->sequence_count] != (uint64_t)dataset->event_count)
        return refuse(view, "column 'start' does not cover the events");
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        if (dataset->start[s + 1] <= dataset->start[s] || dataset->start[s + 1] > (uint64_t)dataset->event_count)
            return refuse(view, "column 'start' does not increase at sequence %" PRId64, s + 1);
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        const double *time = dataset->time + dataset->start[s], *end = dataset->time + dataset->start[s + 1];
        bool good = isfinite(*time) && isfinite(end[-1]);
        for (time++; time < end; time++)
            good &= time[-1] <= time[0];
        if (!good)
            return refuse(view, "column 'time' is not sorted in sequence %" PRId64, s + 1);
    }
    uint32_t highest = 0;
    for (int64_t i = 0; i < dataset->event_count; i++)
        highest = (uint32_t)dataset->type[i] > highest ? (uint32_t)dataset->type[i] : highest;
    if (highest >= (uint64_t)dataset->types.count)
        return refuse(view, "column 'event' has an id that no event type has");
    uint8_t last = 0;
    for (int64_t i = 0; dataset->split && i < dataset->event_count; i++)
        last = dataset->split[i] > last ? dataset->split[i] : last;
    if (last >= LP_SPLIT_COUNT)
        return refuse(view, "column 'split' has an id that no split has");
    return LAPSE_OK;
}

static lapse_status bind_properties(const file_view *view, lapse_dataset *dataset)
{
    lp_names names;
    LP_TRY(bind_names(view, "property.offset", "property.text", &names));
    if (names.count % 2 || names.count / 2 > INT32_MAX)
        return refuse(view, "column 'property.text' has a name without a value");
    size_t count = (size_t)names.count / 2;
    dataset->property_name = lp_arena_alloc(&dataset->arena, count * sizeof *dataset->property_name);
    dataset->property_value = lp_arena_alloc(&dataset->arena, count * sizeof *dataset->property_value);
    if (!dataset->property_name || !dataset->property_value)
        return lp_fail_memory(view->error, "the properties", count * sizeof *dataset->property_name);
    for (size_t i = 0; i < count; i++) {
        dataset->property_name[i] = lp_names_get(&names, (int64_t)(2 * i));
        dataset->property_value[i] = lp_names_get(&names, (int64_t)(2 * i + 1));
    }
    dataset->property_count = (int)count;
    return LAPSE_OK;
}

static lapse_status bind_field(const file_view *view, int number, int64_t events, lp_field *field)
{
    field_names names = names_of_field(number);
    const void *data;
    if (field->type == LAPSE_FIELD_NUMBER) {
        LP_TRY(bind(view, names.values, "f64", sizeof *field->number, (uint64_t)events, false, &data));
        field->number = data;
        bool infinite = false;
        for (int64_t i = 0; i < events; i++)
            infinite |= isinf(field->number[i]) != 0;
        return infinite ? refuse(view, "column '%s' has an infinite number", names.values) : LAPSE_OK;
    }
    LP_TRY(bind(view, names.values, "i32", sizeof *field->category, (uint64_t)events, false, &data));
    field->category = data;
    LP_TRY(bind_vocabulary(view, names.offsets, names.text, &field->categories));
    uint32_t highest = 0;
    for (int64_t i = 0; i < events; i++)
        highest = (uint32_t)field->category[i] > highest ? (uint32_t)field->category[i] : highest;
    if (highest >= (uint64_t)field->categories.count)
        return refuse(view, "column '%s' has an id that no category has", names.values);
    return LAPSE_OK;
}

static lapse_status bind_fields(const file_view *view, lapse_dataset *dataset)
{
    lp_names names;
    const void *types;
    if (!find_column(view, "field.type"))
        return LAPSE_OK;
    LP_TRY(bind_names(view, "field.name.offset", "field.name.text", &names));
    LP_TRY(bind(view, "field.type", "u8", 1, (uint64_t)names.count, false, &types));
    if (names.count > LP_FIELD_LIMIT)
        return refuse(view, "the file has %" PRId64 " fields, but this version of Lapse reads %d", names.count,
                      (int)LP_FIELD_LIMIT);
    dataset->fields = lp_arena_alloc(&dataset->arena, (size_t)names.count * sizeof *dataset->fields);
    if (!dataset->fields)
        return lp_fail_memory(view->error, "the fields", (size_t)names.count * sizeof *dataset->fields);
    int last = -1;
    for (int f = 0; f < names.count; f++) {
        int type = ((const uint8_t *)types)[f];
        if (type > LAPSE_FIELD_NUMBER || type < last || (type == LAPSE_FIELD_ACTION && f > 0))
            return refuse(view, "column 'field.type' is not in the order action, categories, numbers");
        last = type;
        dataset->fields[f].name = lp_names_get(&names, f);
        dataset->fields[f].type = (lapse_field_type)type;
    }
    for (int f = 0; f < names.count; f++)
        LP_TRY(bind_field(view, f, dataset->event_count, &dataset->fields[f]));
    dataset->field_count = (int)names.count;
    return LAPSE_OK;
}

static lapse_status read_file(file_view *view, lapse_dataset *dataset)
{
    LP_TRY(check_header(view));
    LP_TRY(check_columns(view));
    uint64_t sequences = view->header->sequence_count, events = view->header->event_count;
    const void *data;
    LP_TRY(bind(view, "start", "u64", sizeof *dataset->start, sequences + 1, false, &data));
    dataset->start = data;
    LP_TRY(bind(view, "time", "f64", sizeof *dataset->time, events, false, &data));
    dataset->time = data;
    LP_TRY(bind(view, "event", "i32", sizeof *dataset->type, events, false, &data));
    dataset->type = data;
    LP_TRY(bind(view, "split", "u8", sizeof *dataset->split, events, true, &data));
    dataset->split = data;
    dataset->sequence_count = (int64_t)sequences;
    dataset->event_count = (int64_t)events;
    LP_TRY(bind_vocabulary(view, "event.offset", "event.text", &dataset->types));
    LP_TRY(bind_vocabulary(view, "sequence.offset", "sequence.text", &dataset->sequences));
    if (dataset->sequences.count != dataset->sequence_count)
        return refuse(view, "column 'sequence.offset' does not have a name for every sequence");
    LP_TRY(check_events(view, dataset));
    LP_TRY(bind_fields(view, dataset));
    return bind_properties(view, dataset);
}

lapse_status lapse_dataset_open(const char *path, lapse_dataset **dataset, lapse_error *error)
{
    LP_REQUIRE(error, path, dataset);
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a dataset", sizeof *made);
    lapse_status status = lp_map_open(&made->map, path, error);
    if (status == LAPSE_OK) {
        file_view view = {.path = path, .data = made->map.data, .size = made->map.size, .error = error};
        status = read_file(&view, made);
    }
    if (status == LAPSE_OK)
        *dataset = made;
    else
        lapse_dataset_close(made);
    return status;
}
