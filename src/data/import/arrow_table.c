/* arrow_table.c: reads an Arrow stream into memory and validates what can be validated. */
#include "data/import/arrow_table.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static lapse_status fail_stream(struct ArrowArrayStream *stream, const char *what, int code, lapse_error *error)
{
    const char *message = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow stream gave no %s: %.300s", what,
                   message ? message : strerror(code));
}

lapse_status lp_arrow_table_open(lp_arrow_table *table, struct ArrowArrayStream *stream, lapse_error *error)
{
    if (!stream->get_schema || !stream->get_next)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow stream has no functions get_schema and get_next");
    int code = stream->get_schema(stream, &table->schema);
    if (code != 0) {
        table->schema.release = NULL;
        return fail_stream(stream, "schema", code, error);
    }
    const struct ArrowSchema *schema = &table->schema;
    if (!schema->release || !schema->format || strcmp(schema->format, "+s") != 0)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow stream is not a table: its type must be a struct of columns");
    if (schema->n_children < 1 || schema->n_children > INT32_MAX || !schema->children)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow table has no columns");
    for (int64_t i = 0; i < schema->n_children; i++)
        if (!schema->children[i] || !schema->children[i]->release || !schema->children[i]->format)
            return lp_fail_at(error, LAPSE_ERROR_INPUT, NULL, 0, i + 1,
                              "column %" PRId64 " of the Arrow schema is missing or already released", i + 1);
    return LAPSE_OK;
}

int64_t lp_arrow_table_width(const lp_arrow_table *table)
{
    return table->schema.n_children;
}

const char *lp_arrow_table_name(const lp_arrow_table *table, int64_t column)
{
    const char *name = table->schema.children[column]->name;
    return name ? name : "";
}

static bool column_type(const struct ArrowSchema *schema, lp_arrow_used *used)
{
    used->encoded = schema->dictionary != NULL;
    if (!used->encoded)
        return lp_arrow_type_parse(schema->format, &used->type);
    const struct ArrowSchema *terms = schema->dictionary;
    return lp_arrow_type_parse(schema->format, &used->index) &&
           (used->index.kind == LP_ARROW_INTEGER || used->index.kind == LP_ARROW_UNSIGNED) && terms->release &&
           !terms->dictionary && lp_arrow_type_parse(terms->format, &used->type);
}

lapse_status lp_arrow_table_use(lp_arrow_table *table, int64_t column, unsigned kinds, const char *role,
                                lapse_error *error)
{
    const struct ArrowSchema *schema = table->schema.children[column];
    char shown[LP_EXCERPT_SIZE], format[LP_EXCERPT_SIZE];
    lp_arrow_used used = {.column = column};
    if (!column_type(schema, &used) || !(kinds >> used.type.kind & 1)) {
        const char *name = lp_arrow_table_name(table, column), *text = schema->format;
        return lp_fail_at(
            error, LAPSE_ERROR_INPUT, NULL, 0, column + 1,
            "the column '%s' has the Arrow type '%s', which cannot be the %s: cast it to strings, numbers "
            "or timestamps",
            lp_text_excerpt(name, name + strlen(name), shown), lp_text_excerpt(text, text + strlen(text), format),
            role);
    }
    lp_arrow_used *grown = lp_grow(table->used, (size_t)table->used_count + 1, sizeof *grown);
    if (!grown)
        return lp_fail_memory(error, "the columns", sizeof used);
    table->used = grown;
    table->used[table->used_count++] = used;
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ arrays ----- */

static const char *open_column(const lp_arrow_used *used, const struct ArrowArray *array, int64_t first, int64_t length,
                               lp_arrow_values *values)
{
    const char *reason = lp_arrow_open(values, array, used->encoded ? used->index : used->type, first, length);
    if (reason || !used->encoded)
        return reason;
    const struct ArrowArray *terms = array->dictionary;
    if (!terms)
        return "the array has no dictionary";
    values->terms = values + 1;
    return lp_arrow_open(values + 1, terms, used->type, 0, terms->length);
}

static lapse_status check_array(const lp_arrow_table *table, lp_arrow_array *open, lapse_error *error)
{
    const struct ArrowArray *array = &open->array;
    int64_t end;
    if (array->length < 0 || array->offset < 0 || __builtin_add_overflow(array->length, array->offset, &end) ||
        array->n_children != table->schema.n_children || !array->children)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, NULL, open->first + 1, 0,
                          "an array of the Arrow stream is invalid: wrong length, offset or number of columns");
    open->valid = array->null_count != 0 && array->n_buffers > 0 && array->buffers ? array->buffers[0] : NULL;
    return LAPSE_OK;
}

static lapse_status open_array(const lp_arrow_table *table, lp_arrow_array *open, lapse_error *error)
{
    const struct ArrowArray *array = &open->array;
    open->values = lp_alloc((size_t)table->used_count * 2, sizeof *open->values);
    if (!open->values)
        return lp_fail_memory(error, "the columns", (size_t)table->used_count * 2 * sizeof *open->values);
    for (int u = 0; u < table->used_count; u++) {
        const lp_arrow_used *used = &table->used[u];
        const char *reason =
            open_column(used, array->children[used->column], array->offset, array->length, &open->values[2 * u]);
        if (reason)
            return lp_fail_at(error, LAPSE_ERROR_INPUT, NULL, open->first + 1, used->column + 1,
                              "the Arrow stream is invalid: %s", reason);
    }
    return LAPSE_OK;
}

bool lp_arrow_table_peek(const lp_arrow_table *table, int64_t array, int64_t column, lp_arrow_values values[2])
{
    const struct ArrowArray *rows = &table->arrays[array].array;
    lp_arrow_used used = {.column = column};
    return column_type(table->schema.children[column], &used) &&
           !open_column(&used, rows->children[column], rows->offset, rows->length, values);
}

/* Takes the next array. */
static lapse_status take_array(lp_arrow_table *table, struct ArrowArrayStream *stream, lapse_error *error)
{
    size_t need = (size_t)table->array_count + 1;
    if (!lp_reserve(&table->arrays, &table->array_capacity, need, sizeof *table->arrays))
        return lp_fail_memory(error, "the arrays", need * sizeof *table->arrays);
    lp_arrow_array *next = &table->arrays[table->array_count];
    *next = (lp_arrow_array){.first = table->row_count};
    int code = stream->get_next(stream, &next->array);
    if (code != 0)
        return fail_stream(stream, "rows", code, error);
    table->ended = !next->array.release;
    if (table->ended)
        return LAPSE_OK;
    table->array_count++;
    LP_TRY(check_array(table, next, error));
    if (__builtin_add_overflow(table->row_count, next->array.length, &table->row_count) ||
        table->row_count > INT64_MAX / 64)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the Arrow stream is invalid: it has too many rows");
    return LAPSE_OK;
}

lapse_status lp_arrow_table_begin(lp_arrow_table *table, struct ArrowArrayStream *stream, int64_t rows,
                                  lapse_error *error)
{
    while (!table->ended && table->row_count < rows)
        LP_TRY(take_array(table, stream, error));
    return LAPSE_OK;
}

lapse_status lp_arrow_table_read(lp_arrow_table *table, struct ArrowArrayStream *stream, lapse_error *error)
{
    for (int64_t i = 0;; i++) {
        if (i == table->array_count && !table->ended)
            LP_TRY(take_array(table, stream, error));
        if (i == table->array_count)
            return LAPSE_OK;
        LP_TRY(open_array(table, &table->arrays[i], error));
    }
}

void lp_arrow_table_clear(lp_arrow_table *table)
{
    for (int64_t i = 0; i < table->array_count; i++) {
        lp_free(table->arrays[i].values);
        if (table->arrays[i].array.release)
            table->arrays[i].array.release(&table->arrays[i].array);
    }
    if (table->schema.release)
        table->schema.release(&table->schema);
    lp_free(table->arrays);
    lp_free(table->used);
    *table = (lp_arrow_table){0};
}
