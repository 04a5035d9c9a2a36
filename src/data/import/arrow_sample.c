/* arrow_sample.c: renders the first rows of an Arrow table. */
#include "data/import/arrow_sample.h"

#include "data/import/chunks.h"

#include <string.h>

/* Bytes of a CSV file with these rows: every field has a delimiter or a line end. */
enum { LEAST_FIELD = 2 };

int64_t lp_arrow_sample_rows(int64_t width)
{
    return LP_CHUNK_PEEK / LEAST_FIELD / width + 1;
}

/* The text of an element, which lasts as long as the table and the arena. False when out of memory. */
static bool text_at(const lp_arrow_values *values, int64_t i, lp_arena *arena, const char **begin, const char **end)
{
    char text[LP_ARROW_NAME_SIZE];
    lp_arrow_value_text(values, i, text, begin, end);
    if (*begin != text)
        return true;
    size_t size = (size_t)(*end - text);
    char *kept = lp_arena_alloc(arena, size + 1);
    if (!kept)
        return false;
    memcpy(kept, text, size);
    *begin = kept;
    *end = kept + size;
    return true;
}

/* Renders rows of one array until `bytes` are used up. */
static bool sample_array(lp_sample *sample, const lp_arrow_table *table, int64_t array, lp_arrow_values *values,
                         int64_t row_limit, int64_t *bytes, lp_arena *arena)
{
    const lp_arrow_array *rows = &table->arrays[array];
    int64_t width = sample->column_count;
    for (int64_t c = 0; c < width; c++)
        if (!lp_arrow_table_peek(table, array, c, &values[2 * c]))
            values[2 * c] = (lp_arrow_values){.type = {.kind = LP_ARROW_NULL}};
    for (int64_t i = 0; i < rows->array.length && sample->row_count<row_limit && * bytes> 0; i++) {
        const char **begin = sample->begin + sample->row_count * width, **end = sample->end + sample->row_count * width;
        if (rows->valid && !lp_arrow_bit(rows->valid, rows->array.offset + i))
            continue;
        for (int64_t c = 0; c < width; c++) {
            if (!text_at(&values[2 * c], i, arena, &begin[c], &end[c]))
                return false;
            *bytes -= end[c] - begin[c] + 1;
        }
        sample->row_count += *bytes >= 0;
    }
    return true;
}

bool lp_arrow_sample(lp_sample *sample, const lp_arrow_table *table, lp_arena *arena)
{
    int64_t width = lp_arrow_table_width(table), rows = lp_arrow_sample_rows(width), bytes = LP_CHUNK_PEEK;
    rows = rows < table->row_count ? rows : table->row_count;
    lp_arrow_values *values = lp_alloc((size_t)width * 2, sizeof *values);
    bool good = values && lp_sample_reserve(sample, width, &rows);
    for (int64_t c = 0; c < width; c++)
        bytes -= (int64_t)strlen(lp_arrow_table_name(table, c)) + 1;
    for (int64_t a = 0; good && a < table->array_count && sample->row_count < rows && bytes > 0; a++)
        good = sample_array(sample, table, a, values, rows, &bytes, arena);
    lp_free(values);
    return good;
}
