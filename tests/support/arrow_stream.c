/* arrow_stream.c: makes Arrow streams from CSV text. */
#include "support/arrow_stream.h"

#include <lapse.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 8, MOST_CELL = 48, MOST_BUFFERS = 4 };

typedef struct table {
    char name[MOST_COLUMNS][MOST_CELL], (*cell)[MOST_COLUMNS][MOST_CELL];
    const char *formats[MOST_COLUMNS];
    int columns, rows, at, step, slack;
    arrow_spoil spoil;
} table;

static int blocks;

int arrow_stream_blocks(void)
{
    return blocks;
}

static void *block(size_t size)
{
    blocks++;
    void *made = calloc(size ? size : 1, 1);
    if (!made)
        exit(3);
    return made;
}

static void drop(const void *made)
{
    blocks -= made != NULL;
    free((void *)made);
}

/* ------------------------------------------------------------------------------------------------- release --- */

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children && schema->children; i++) {
        if (schema->children[i] && schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        drop(schema->children[i]);
    }
    if (schema->dictionary && schema->dictionary->release)
        schema->dictionary->release(schema->dictionary);
    drop(schema->dictionary);
    drop(schema->children);
    drop(schema->format);
    drop(schema->name);
    schema->release = NULL;
}

/* private_data has what was allocated, whatever a test has changed since. */
typedef struct owned {
    void *buffer[MOST_BUFFERS], **buffers;
    struct ArrowArray *child[MOST_COLUMNS], **children, *dictionary;
} owned;

static void release_array(struct ArrowArray *array)
{
    owned *own = array->private_data;
    array->release = NULL;
    for (int i = 0; i < MOST_BUFFERS; i++)
        drop(own->buffer[i]);
    for (int i = 0; i < MOST_COLUMNS; i++) {
        if (own->child[i] && own->child[i]->release)
            own->child[i]->release(own->child[i]);
        drop(own->child[i]);
    }
    if (own->dictionary && own->dictionary->release)
        own->dictionary->release(own->dictionary);
    drop(own->dictionary);
    drop(own->buffers);
    drop(own->children);
    drop(own);
}

static owned *start_array(struct ArrowArray *array, int64_t length, int64_t offset, int buffers)
{
    owned *own = block(sizeof *own);
    own->buffers = block(MOST_BUFFERS * sizeof *own->buffers);
    *array = (struct ArrowArray){.length = length,
                                 .offset = offset,
                                 .n_buffers = buffers,
                                 .buffers = (const void **)own->buffers,
                                 .release = release_array,
                                 .private_data = own};
    return own;
}

static void add_buffer(owned *own, int index, size_t size)
{
    own->buffers[index] = own->buffer[index] = block(size);
}

/* ------------------------------------------------------------------------------------------------- columns --- */

/* The cells of a column. */
typedef struct cells {
    const char **text;
    int count;
} cell_list;

static void put(void *buffer, int64_t i, int size, int64_t value)
{
    memcpy((char *)buffer + i * size, &value, (size_t)size); /* little-endian */
}

static void fill_texts(owned *own, const cell_list *cells, int slack, int size)
{
    size_t bytes = 0, used = 0;
    for (int i = 0; i < cells->count; i++)
        bytes += strlen(cells->text[i]);
    add_buffer(own, 1, (size_t)(slack + cells->count + 1) * (size_t)size);
    add_buffer(own, 2, bytes);
    for (int i = 0; i < cells->count; i++) {
        memcpy((char *)own->buffer[2] + used, cells->text[i], strlen(cells->text[i]));
        used += strlen(cells->text[i]);
        put(own->buffer[1], slack + i + 1, size, (int64_t)used);
    }
}

static void fill_views(owned *own, const cell_list *cells, int slack)
{
    size_t used = 0;
    add_buffer(own, 1, (size_t)(slack + cells->count) * 16);
    add_buffer(own, 2, (size_t)cells->count * MOST_CELL);
    add_buffer(own, 3, 8);
    for (int i = 0; i < cells->count; i++) {
        int32_t view[4] = {(int32_t)strlen(cells->text[i])};
        char *out = (char *)own->buffer[1] + (slack + i) * 16;
        if (view[0] > 12) {
            memcpy((char *)own->buffer[2] + used, cells->text[i], (size_t)view[0]);
            memcpy(&view[1], cells->text[i], 4);
            view[3] = (int32_t)used;
            used += (size_t)view[0];
        }
        memcpy(out, view, sizeof view);
        if (view[0] <= 12)
            memcpy(out + 4, cells->text[i], (size_t)view[0]);
    }
    put(own->buffer[3], 0, 8, (int64_t)used);
}

/* An integer, a time or a decimal as an integer of the column's unit. */
static int64_t integer_of(const char *format, const char *text)
{
    double time, units = format[0] == 't' ? strchr("s", format[2])   ? 1
                                            : strchr("m", format[2]) ? 1e3
                                            : strchr("u", format[2]) ? 1e6
                                            : strchr("n", format[2]) ? 1e9
                                                                     : 1.0 / 86400
                                          : 1;
    if (format[0] == 'd')
        return llround(strtod(text, NULL) * 100); /* scale 2 */
    if (format[0] != 't')
        return (int64_t)(strchr(text, '-') ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10));
    if (lapse_time_parse(text, &time, NULL) != LAPSE_OK)
        exit(4);
    return (int64_t)llroundl((long double)time * (long double)units);
}

/* The half-precision number of a text that has one. */
static uint16_t half_of(const char *text)
{
    double value = strtod(text, NULL);
    for (uint16_t half = 0; half < 0x7c00; half++) {
        int exponent = half >> 10, fraction = half & 1023;
        if (ldexp(exponent ? 1024 + fraction : fraction, exponent ? exponent - 25 : -24) == fabs(value))
            return (uint16_t)(half | (value < 0) << 15);
    }
    exit(5);
}

static void fill_numbers(owned *own, const char *format, const cell_list *cells, int slack)
{
    static const char small[] = "cCbsSeiIf";
    static const int sizes[] = {1, 1, 1, 2, 2, 2, 4, 4, 4};
    const char *found = strchr(small, format[0]);
    int size = format[0] == 'd' ? 16 : strcmp(format, "tdD") == 0 ? 4 : found ? sizes[found - small] : 8;
    add_buffer(own, 1, (size_t)(slack + cells->count) * (size_t)size);
    for (int i = 0; i < cells->count; i++) {
        float single = strtof(cells->text[i], NULL);
        double number = strtod(cells->text[i], NULL);
        int64_t value = cells->text[i][0] && !strchr("efgb", format[0]) ? integer_of(format, cells->text[i]) : 0;
        if (format[0] == 'e')
            put(own->buffer[1], slack + i, 2, cells->text[i][0] ? half_of(cells->text[i]) : 0);
        else if (format[0] == 'f')
            memcpy((char *)own->buffer[1] + (slack + i) * 4, &single, 4);
        else if (format[0] == 'g')
            memcpy((char *)own->buffer[1] + (slack + i) * 8, &number, 8);
        else if (format[0] == 'b')
            ((uint8_t *)own->buffer[1])[(slack + i) / 8] |=
                (uint8_t)((strcmp(cells->text[i], "true") == 0) << (slack + i) % 8);
        else if (size == 16)
            memcpy((char *)own->buffer[1] + (slack + i) * 16, (int64_t[]){value, value < 0 ? -1 : 0}, 16);
        else
            put(own->buffer[1], slack + i, size, value);
    }
}

static void fill(struct ArrowArray *array, const char *format, const cell_list *cells, int slack);

/* The dictionary has every other cell twice, so that indices are not those of the rows. */
static void fill_dictionary(struct ArrowArray *array, const char *format, const cell_list *all, int slack)
{
    size_t rows = (size_t)all->count;
    cell_list terms = {block(rows * sizeof *terms.text), 0}, indices = {block(rows * sizeof *indices.text), 0};
    char(*numbers)[12] = block(rows * sizeof *numbers);
    for (int i = all->count - 1; i >= 0; i--)
        terms.text[terms.count++] = all->text[i];
    for (int i = 0; i < all->count; i++) {
        int index = 0;
        while (strcmp(terms.text[index], all->text[i]) != 0)
            index++;
        snprintf(numbers[i], sizeof numbers[i], "%d", index);
        indices.text[indices.count++] = all->text[i][0] ? numbers[i] : "";
    }
    fill(array, (char[]){format[0], 0}, &indices, slack);
    owned *own = array->private_data;
    array->dictionary = own->dictionary = block(sizeof *own->dictionary);
    fill(array->dictionary, format + 2, &terms, slack);
    drop(terms.text);
    drop(indices.text);
    drop(numbers);
}

static void fill(struct ArrowArray *array, const char *format, const cell_list *cells, int slack)
{
    if (format[1] == '>') {
        fill_dictionary(array, format, cells, slack);
        return;
    }
    bool text = strchr("uUzZ", format[0]), view = format[0] == 'v', null = strcmp(format, "n") == 0;
    owned *own = start_array(array, cells->count, slack, null ? 0 : text ? 3 : view ? 4 : 2);
    for (int i = 0; i < cells->count && !null; i++)
        array->null_count += !cells->text[i][0];
    if (null)
        return;
    if (array->null_count > 0) {
        add_buffer(own, 0, (size_t)(slack + cells->count + 7) / 8);
        for (int i = 0; i < cells->count; i++)
            ((uint8_t *)own->buffer[0])[(slack + i) / 8] |= (uint8_t)(!!cells->text[i][0] << (slack + i) % 8);
    }
    if (text)
        fill_texts(own, cells, slack, format[0] == 'u' || format[0] == 'z' ? 4 : 8);
    else if (view)
        fill_views(own, cells, slack);
    else
        fill_numbers(own, format, cells, slack);
}

/* -------------------------------------------------------------------------------------------------- stream --- */

static char *copy(const char *text, size_t size)
{
    char *made = block(size + 1);
    memcpy(made, text, size);
    return made;
}

static struct ArrowSchema schema_of(const char *format, const char *name)
{
    bool encoded = format[1] == '>';
    struct ArrowSchema schema = {.format = copy(format, encoded ? 1 : strlen(format)),
                                 .name = copy(name, strlen(name)),
                                 .flags = ARROW_FLAG_NULLABLE,
                                 .release = release_schema};
    if (encoded) {
        schema.dictionary = block(sizeof *schema.dictionary);
        *schema.dictionary = schema_of(format + 2, "");
    }
    return schema;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    const table *t = stream->private_data;
    *out = schema_of("+s", "");
    out->n_children = t->columns;
    out->children = block((size_t)t->columns * sizeof *out->children);
    for (int c = 0; c < t->columns; c++) {
        out->children[c] = block(sizeof *out->children[c]);
        *out->children[c] = schema_of(t->formats[c], t->name[c]);
    }
    if (t->spoil)
        t->spoil(out, NULL);
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    table *t = stream->private_data;
    *out = (struct ArrowArray){0};
    if (t->at == t->rows)
        return 0;
    int count = t->rows - t->at < t->step ? t->rows - t->at : t->step;
    owned *own = start_array(out, count, 0, 1);
    out->n_children = t->columns;
    out->children = own->children = block(MOST_COLUMNS * sizeof *own->children);
    for (int c = 0; c < t->columns; c++) {
        cell_list column = {block((size_t)count * sizeof *column.text), 0};
        for (; column.count < count; column.count++)
            column.text[column.count] = t->cell[t->at + column.count][c];
        out->children[c] = own->child[c] = block(sizeof *own->child[c]);
        fill(out->children[c], t->formats[c], &column, t->slack);
        drop(column.text);
    }
    t->at += count;
    if (t->spoil)
        t->spoil(NULL, out);
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    table *t = stream->private_data;
    drop(t->cell);
    drop(t);
    stream->release = NULL;
}

static const char *next_cell(const char *at, char out[MOST_CELL])
{
    size_t size = strcspn(at, ",\n");
    snprintf(out, MOST_CELL, "%.*s", (int)size, at);
    return at + size;
}

void arrow_stream_init(struct ArrowArrayStream *stream, const char *text, const char *const *formats, int rows,
                       int slack, arrow_spoil spoil)
{
    table *t = block(sizeof *t);
    t->step = rows;
    t->slack = slack;
    t->spoil = spoil;
    const char *at = text;
    for (bool more = true; more; at++) {
        at = next_cell(at, t->name[t->columns]);
        t->formats[t->columns] = formats[t->columns];
        t->columns++;
        more = *at == ',';
    }
    size_t lines = 0;
    for (const char *line = at; (line = strchr(line, '\n')); line++)
        lines++;
    t->cell = block((lines + 1) * sizeof *t->cell);
    while (*at) {
        for (int c = 0; c < t->columns; c++, at++)
            at = next_cell(at, t->cell[t->rows][c]);
        t->rows++;
    }
    *stream = (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_stream, t};
}
