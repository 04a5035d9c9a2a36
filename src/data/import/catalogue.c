/* catalogue.c: parses a catalogue in one thread, since it is read once and is small compared with the events. A row
 * is validated completely before anything of it is stored. Every error has a line and a column. */
#include "data/import/catalogue.h"

#include "base/assert.h"
#include "base/text.h"
#include "data/import/chunks.h"
#include "data/import/csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const item_names[] = {"item", "event", "item_id", "itemid", "product", "product_id", "id", NULL};
static const char *const word_names[] = {"name", "title", "description", NULL};

typedef struct column {
    const char *name; /* in the arena */
    bool words;
} column;

/* An item's features while rows are read. */
typedef struct entry {
    int64_t line;          /* line of its row; 0: none so far */
    uint64_t first, count; /* range in features */
} entry;

typedef struct reading {
    lp_catalogue *catalogue;
    const lp_catalogue_columns *wanted;
    const char *file;
    lp_chunks chunks;
    char *buffer; /* owned; lp_chunks_buffer_size bytes */
    lp_csv_record record;
    lp_arena arena;
    column *columns; /* in the arena; NULL before the header is read */
    int64_t column_count, item_column;
    int64_t line;   /* of the record being read, from 1 */
    entry *entries; /* owned; [item] */
    size_t entry_capacity;
    int32_t *features; /* owned; of all rows, concatenated */
    size_t feature_count, feature_capacity;
    int64_t *last_line; /* owned; [feature]: line of the last row that has it */
    size_t last_line_capacity;
    lp_buffer text; /* text of a feature */
    lapse_error *error;
} reading;

__attribute__((format(printf, 3, 4))) static lapse_status bad(const reading *r, int64_t field, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lp_fail_list(r->error, LAPSE_ERROR_INPUT, r->file, r->line, field, format, arguments);
    va_end(arguments);
    return LAPSE_ERROR_INPUT;
}

static lapse_status no_memory(const reading *r)
{
    return lp_fail_memory(r->error, "the catalogue", r->feature_capacity * sizeof *r->features);
}

/* ------------------------------------------------------------------------------------------------ columns ---- */

static void list_columns(const reading *r, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int64_t i = 0; i < r->column_count && used + LP_EXCERPT_SIZE + 8 < size; i++) {
        char shown[LP_EXCERPT_SIZE];
        lp_text_excerpt(r->columns[i].name, r->columns[i].name + strlen(r->columns[i].name), shown);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", shown);
    }
}

/* Index of a column by name or 1-based number; -1: none. */
static int64_t find_column(const reading *r, const char *begin, const char *end)
{
    for (int64_t i = 0; i < r->column_count; i++)
        if (lp_text_is(begin, end, r->columns[i].name))
            return i;
    double number;
    bool whole = lp_number_parse(begin, end, &number) && number >= 1 && number <= (double)r->column_count;
    return whole && number == (double)(int64_t)number ? (int64_t)number - 1 : -1;
}

static lapse_status choose_item(reading *r)
{
    const char *wanted = r->wanted->item;
    char names[300];
    list_columns(r, names, sizeof names);
    if (wanted) {
        r->item_column = find_column(r, wanted, wanted + strlen(wanted));
        return r->item_column >= 0
                   ? LAPSE_OK
                   : bad(r, 0, "there is no column '%.60s' for the item; the columns are: %s", wanted, names);
    }
    r->item_column = -1;
    for (const char *const *name = item_names; *name && r->item_column < 0; name++)
        r->item_column = find_column(r, *name, *name + strlen(*name));
    return r->item_column >= 0 ? LAPSE_OK
                               : bad(r, 0,
                                     "no column was recognized as the item: select it with " LP_OPTION(
                                         "--item") "; the columns are: %s",
                                     names);
}

static lapse_status choose_words(reading *r)
{
    const char *at = r->wanted->words;
    if (!at) {
        for (int64_t i = 0; i < r->column_count; i++)
            for (const char *const *name = word_names; *name; name++)
                r->columns[i].words |= lp_text_is(*name, *name + strlen(*name), r->columns[i].name);
        return LAPSE_OK;
    }
    while (*at) {
        const char *end = at + strcspn(at, ",");
        int64_t found = find_column(r, at, end);
        char shown[LP_EXCERPT_SIZE], names[300];
        list_columns(r, names, sizeof names);
        if (found < 0)
            return bad(r, 0, "there is no column '%s' for words; the columns are: %s", lp_text_excerpt(at, end, shown),
                       names);
        r->columns[found].words = true;
        at = *end ? end + 1 : end;
    }
    return LAPSE_OK;
}

static lapse_status read_header(reading *r, const lp_csv_record *record)
{
    r->columns = lp_arena_alloc(&r->arena, (size_t)record->count * sizeof *r->columns);
    if (!r->columns)
        return no_memory(r);
    for (r->column_count = 0; r->column_count < record->count; r->column_count++) {
        const char *begin = record->begin[r->column_count], *end = record->end[r->column_count];
        lp_text_trim(&begin, &end);
        char *name = lp_arena_alloc(&r->arena, (size_t)(end - begin) + 1);
        if (!name)
            return no_memory(r);
        memcpy(name, begin, (size_t)(end - begin));
        r->columns[r->column_count].name = name;
    }
    LP_TRY(choose_item(r));
    LP_TRY(choose_words(r));
    if (r->column_count < 2)
        return bad(r, 0, "the catalogue has no column besides the item: the items have no features");
    return lp_csv_record_init(&r->record, r->column_count) ? LAPSE_OK : no_memory(r);
}

/* --------------------------------------------------------------------------------------------------- rows ---- */

/* Adds the feature "column=value" to the current row, once. */
static bool add_feature(reading *r, const char *name, const char *begin, const char *end, entry *item)
{
    r->text.size = 0;
    bool added;
    if (!lp_buffer_add(&r->text, name, strlen(name)) || !lp_buffer_add(&r->text, "=", 1) ||
        !lp_buffer_add(&r->text, begin, (size_t)(end - begin)))
        return false;
    uint64_t key = lp_intern_key(r->text.data, r->text.size);
    uint32_t number = lp_intern_add(&r->catalogue->features, r->text.data, r->text.size, key, &added);
    if (number >= INT32_MAX ||
        !lp_reserve(&r->last_line, &r->last_line_capacity, (size_t)number + 1, sizeof *r->last_line) ||
        !lp_reserve(&r->features, &r->feature_capacity, r->feature_count + 1, sizeof *r->features))
        return false;
    if (r->last_line[number] == r->line)
        return true;
    r->last_line[number] = r->line;
    r->features[r->feature_count++] = (int32_t)number;
    item->count++;
    return true;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* Adds a feature per word: a run of letters and digits. ASCII letters are lowercased in place. */
static bool add_words(reading *r, const char *name, char *at, const char *end, entry *item)
{
    while (at < end) {
        while (at < end && !is_word(*at))
            at++;
        char *begin = at;
        for (; at < end && is_word(*at); at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        if (at > begin && !add_feature(r, name, begin, at, item))
            return false;
    }
    return true;
}

static lapse_status check_row(const reading *r)
{
    const lp_csv_record *record = &r->record;
    if (record->after_quote)
        return bad(r, record->fault_field + 1, LP_CSV_AFTER_QUOTE);
    if (record->count != r->column_count)
        return bad(r, 0, "this row has %" PRId64 " field%s, but the header has %" PRId64, record->count,
                   record->count == 1 ? "" : "s", r->column_count);
    if (record->begin[r->item_column] == record->end[r->item_column])
        return bad(r, r->item_column + 1, "the name of the item is empty");
    for (int64_t i = 0; i < record->count; i++)
        if (!lp_text_is_utf8(record->begin[i], record->end[i]))
            return bad(r, i + 1, "the field is not valid UTF-8 text");
    return LAPSE_OK;
}

static lapse_status read_row(reading *r)
{
    lp_catalogue *catalogue = r->catalogue;
    LP_TRY(check_row(r));
    const char *name = r->record.begin[r->item_column];
    size_t size = (size_t)(r->record.end[r->item_column] - name);
    bool added;
    uint32_t number = lp_intern_add(&catalogue->items, name, size, lp_intern_key(name, size), &added);
    if (number >= INT32_MAX || !lp_reserve(&r->entries, &r->entry_capacity, (size_t)number + 1, sizeof *r->entries))
        return no_memory(r);
    entry *item = &r->entries[number];
    char shown[LP_EXCERPT_SIZE];
    if (item->line)
        return bad(r, r->item_column + 1, "item '%s' has two rows: the first is line %" PRId64,
                   lp_text_excerpt(name, name + size, shown), item->line);
    *item = (entry){.line = r->line, .first = r->feature_count};
    catalogue->described++;
    catalogue->described_new += number >= catalogue->known;
    for (int64_t i = 0; i < r->column_count; i++) {
        const char *begin = r->record.begin[i], *end = r->record.end[i];
        lp_text_trim(&begin, &end);
        if (i == r->item_column || begin == end)
            continue;
        /* The record is in the reader's own buffer, so words may be lowercased in place. */
        char *text = r->buffer + (begin - r->buffer);
        if (!(r->columns[i].words ? add_words(r, r->columns[i].name, text, end, item)
                                  : add_feature(r, r->columns[i].name, begin, end, item)))
            return no_memory(r);
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------- chunks ---- */

/* Reads the header: the first record that is not an empty line. */
static lapse_status read_first(reading *r, lp_csv_scanner *scanner)
{
    int64_t delimiters = 1;
    for (const char *at = scanner->at; at < scanner->end; at++)
        delimiters += *at == scanner->delimiter;
    lp_csv_record first;
    lapse_status status = lp_csv_record_init(&first, delimiters) ? LAPSE_OK : no_memory(r);
    while (status == LAPSE_OK && !r->columns && lp_csv_next(scanner, &first)) {
        if (first.after_quote)
            status = bad(r, first.fault_field + 1, LP_CSV_AFTER_QUOTE);
        else if (!lp_csv_is_blank(&first))
            status = read_header(r, &first);
        r->line += first.lines;
    }
    lp_csv_record_clear(&first);
    return status;
}

static lapse_status read_chunk(reading *r, const lp_chunk *chunk)
{
    if (chunk->fault != LP_CHUNK_COMPLETE) {
        if (chunk->fault == LP_CHUNK_OPEN_QUOTE)
            r->line += lp_csv_line_ends(r->buffer, r->buffer + chunk->quote);
        return bad(r, 0, "%s", lp_chunk_fault_text(chunk->fault));
    }
    lp_csv_scanner scanner;
    const char *nul = memchr(r->buffer, 0, chunk->size);
    if (nul) {
        r->line += lp_csv_line_ends(r->buffer, nul);
        return bad(r, 0, LP_CSV_BINARY);
    }
    lp_csv_start(&scanner, r->buffer, chunk->size, r->chunks.delimiter);
    if (!r->columns)
        LP_TRY(read_first(r, &scanner));
    while (r->columns && lp_csv_next(&scanner, &r->record)) {
        if (!lp_csv_is_blank(&r->record))
            LP_TRY(read_row(r));
        r->line += r->record.lines;
    }
    return LAPSE_OK;
}

/* Sorts the features by item, drops those of a single item, and assigns the final feature ids. */
static lapse_status index_features(reading *r)
{
    lp_catalogue *catalogue = r->catalogue;
    size_t items = catalogue->items.count, count = catalogue->features.count;
    lp_intern shared = {0};
    int32_t *number = lp_alloc(count + 1, sizeof *number);
    bool good = number && lp_reserve(&r->entries, &r->entry_capacity, items, sizeof *r->entries);
    for (size_t i = 0; good && i < r->feature_count; i++)
        number[r->features[i]]++;
    lp_names names = lp_intern_names(&catalogue->features);
    for (size_t f = 0; good && f < count; f++) {
        const char *text = lp_names_get(&names, (int64_t)f);
        size_t size = names.offset[f + 1] - names.offset[f] - 1;
        bool added, rare = number[f] < 2;
        uint32_t id = rare ? 0 : lp_intern_add(&shared, text, size, lp_intern_key(text, size), &added);
        good = id != LP_INTERN_NONE;
        number[f] = rare ? -1 : (int32_t)id;
    }
    lp_free(catalogue->start);
    lp_free(catalogue->feature);
    catalogue->start = lp_alloc(items + 1, sizeof *catalogue->start);
    catalogue->feature = lp_alloc(r->feature_count + 1, sizeof *catalogue->feature);
    good = good && catalogue->start && catalogue->feature;
    uint64_t used = 0;
    for (size_t i = 0; good && i < items; i++) {
        for (uint64_t j = r->entries[i].first; j < r->entries[i].first + r->entries[i].count; j++)
            if (number[r->features[j]] >= 0)
                catalogue->feature[used++] = number[r->features[j]];
        catalogue->start[i + 1] = used;
    }
    lp_intern_clear(&catalogue->features);
    catalogue->features = shared;
    lp_free(number);
    return good ? LAPSE_OK : no_memory(r);
}

static lapse_status read_all(reading *r, lp_source *source)
{
    LP_TRY(lp_chunks_open(&r->chunks, source, NULL, NULL, false, LP_CHUNK_SIZE, r->error));
    LP_TRY(lp_chunks_check(&r->chunks, r->file, r->error));
    r->chunks.delimiter = lp_csv_guess(r->chunks.carry + r->chunks.at, r->chunks.left);
    r->buffer = lp_grow(NULL, lp_chunks_buffer_size(&r->chunks), 1);
    if (!r->buffer)
        return lp_fail_memory(r->error, "a chunk of text", lp_chunks_buffer_size(&r->chunks));
    lp_chunk chunk;
    while (lp_chunks_take(&r->chunks, r->buffer, &chunk))
        LP_TRY(read_chunk(r, &chunk));
    if (r->chunks.status != LAPSE_OK) {
        if (r->error)
            *r->error = r->chunks.error;
        return r->chunks.status;
    }
    if (r->catalogue->described == 0)
        return lp_fail_at(r->error, LAPSE_ERROR_INPUT, r->file, 0, 0,
                          r->columns ? "the catalogue has a header but no rows"
                                     : "the catalogue has only empty lines: it must have a header and rows");
    return index_features(r);
}

/* Reads and closes the source. */
static lapse_status read_source(lp_catalogue *catalogue, lp_source *source, const lp_catalogue_columns *columns,
                                lapse_error *error)
{
    reading r = {.catalogue = catalogue, .wanted = columns, .file = source->name, .line = 1, .error = error};
    lapse_status status = read_all(&r, source);
    lp_chunks_close(&r.chunks);
    lp_free(r.buffer);
    lp_csv_record_clear(&r.record);
    lp_free(r.entries);
    lp_free(r.features);
    lp_free(r.last_line);
    lp_buffer_clear(&r.text);
    lp_arena_clear(&r.arena);
    lp_source_close(source);
    return status;
}

lapse_status lp_catalogue_read(lp_catalogue *catalogue, const char *path, const lp_catalogue_columns *columns,
                               lapse_error *error)
{
    lp_source source;
    LP_TRY(lp_source_open(&source, path, error));
    return read_source(catalogue, &source, columns, error);
}

lapse_status lp_catalogue_read_memory(lp_catalogue *catalogue, const char *name, const void *data, size_t size,
                                      const lp_catalogue_columns *columns, lapse_error *error)
{
    lp_source source;
    LP_TRY(lp_source_open_memory(&source, name, data, size, error));
    return read_source(catalogue, &source, columns, error);
}

lapse_status lp_catalogue_start(lp_catalogue *catalogue, const lp_names *known, lapse_error *error)
{
    *catalogue = (lp_catalogue){.known = known->count};
    bool good = true, added;
    for (int64_t i = 0; good && i < known->count; i++) {
        const char *name = lp_names_get(known, i);
        size_t size = known->offset[i + 1] - known->offset[i] - 1;
        good = lp_intern_add(&catalogue->items, name, size, lp_intern_key(name, size), &added) != LP_INTERN_NONE;
        LP_ASSERT(added); /* names are unique: item i of the dataset is item i of the catalogue */
    }
    catalogue->start = lp_alloc((size_t)known->count + 1, sizeof *catalogue->start);
    if (good && catalogue->start)
        return LAPSE_OK;
    lp_catalogue_clear(catalogue);
    return lp_fail_memory(error, "the items", (size_t)known->count * sizeof *catalogue->start);
}

void lp_catalogue_clear(lp_catalogue *catalogue)
{
    lp_intern_clear(&catalogue->items);
    lp_intern_clear(&catalogue->features);
    lp_free(catalogue->start);
    lp_free(catalogue->feature);
    *catalogue = (lp_catalogue){0};
}
