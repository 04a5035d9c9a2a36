/* fuzz_arrow.c: fuzzes the import of Arrow streams. The bytes choose the types of the columns and the lengths, offsets,
 * bitmaps, indices and texts of their arrays. Buffers are as large as the lengths say, because no consumer can detect a
 * length that lies about its buffers; everything else may be wrong. Two sizes of batches and two numbers of threads must
 * give the same result.
 */
#include "data/dataset/fingerprint.h"
#include "data/import/arrow.h"
#include "fuzz/support/fuzz.h"

#include <string.h>

/* One of so many inputs uses threads, which take most of the time of a run. */
enum { THREADED = 64 };

enum { COLUMNS = 5, MOST = 24, TEXT_BYTES = 64 };

typedef struct input {
    const uint8_t *at, *end;
} input;

static const char *const formats[] = {"u", "U", "vu",  "i",    "l",    "C",       "g",      "f",   "e",
                                      "b", "n", "tdD", "tdm",  "tsn:", "tsm:UTC", "d:18,3", "L",   "s",
                                      "c", "z", "S>u", "c>vu", "l>g",  "i>tsu:",  "tts",    "C>U", "i>n"};

static unsigned take(input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Allocates a buffer with the bytes that follow, then zeros. */
static void *buffer(input *in, size_t size)
{
    uint8_t *made = calloc(size ? size : 1, 1);
    for (size_t i = 0; made && i < size && in->at < in->end; i++)
        made[i] = (uint8_t)take(in);
    return made;
}

typedef struct owner {
    void *buffer[4], *buffers[4];
    struct ArrowArray dictionary;
} owner;

static void release_array(struct ArrowArray *array)
{
    owner *own = array->private_data;
    array->release = NULL;
    for (int i = 0; i < 4; i++)
        free(own->buffer[i]);
    if (own->dictionary.release)
        own->dictionary.release(&own->dictionary);
    free(own);
}

static size_t element_size(char format)
{
    return strchr("cCb", format) ? 1 : strchr("sSe", format) ? 2 : strchr("iIfuz", format) ? 4 : 8;
}

/* An array whose buffers fit its length and offset, if these are not negative. */
static void make_array(input *in, struct ArrowArray *array, const char *format)
{
    owner *own = calloc(1, sizeof *own);
    if (!own)
        exit(1);
    int64_t length = (int64_t)(take(in) % MOST), offset = (int64_t)(take(in) % 4);
    size_t count = (size_t)(length + offset);
    unsigned faults = take(in);
    int64_t last = 0; /* offset of a text: the size of the texts */
    bool text = strchr("uUz", format[0]), view = format[0] == 'v';
    *array = (struct ArrowArray){.length = length,
                                 .offset = offset,
                                 .null_count = (int8_t)take(in) % 8,
                                 .n_buffers = format[0] == 'n' ? 0
                                              : text           ? 3
                                              : view           ? 4
                                                               : 2,
                                 .buffers = (const void **)own->buffers,
                                 .release = release_array,
                                 .private_data = own};
    own->buffer[0] = faults & 1 ? NULL : buffer(in, count / 8 + 1);
    size_t each = view || format[0] == 'd'     ? 16
                  : strcmp(format, "tdD") == 0 ? 4
                  : format[0] == 't'           ? 8
                                               : element_size(format[0]);
    own->buffer[1] = buffer(in, (count + (text ? 1 : 0)) * each);
    if (text) {
        own->buffer[2] = buffer(in, TEXT_BYTES);
        last = (int64_t)(take(in) % (TEXT_BYTES + 1));
    }
    if (view) {
        own->buffer[2] = buffer(in, TEXT_BYTES);
        own->buffer[3] = calloc(1, 8);
        int64_t size = TEXT_BYTES;
        memcpy(own->buffer[3], &size, 8);
    }
    for (int i = 0; i < 4; i++)
        own->buffers[i] = own->buffer[i];
    if (format[1] == '>') {
        make_array(in, &own->dictionary, format + 2);
        array->dictionary = faults & 2 && take(in) % 16 == 0 ? NULL : &own->dictionary;
    }
    if (faults & 4)
        array->length = -(int64_t)take(in);
    if (faults & 8)
        array->offset = -(int64_t)take(in);
    if (faults & 16)
        array->n_buffers = (int8_t)take(in) % 4;
    if (faults & 32)
        own->buffers[take(in) % 4] = NULL;
    if (faults & 64 && array->length > 0)
        array->length = take(in) % array->length;
    if (text && array->length >= 0 && array->offset >= 0) /* the last offset is the size of the texts */
        memcpy((char *)own->buffer[1] + (size_t)(array->offset + array->length) * each, &last, each);
    if (faults & 128 && take(in) % 8 == 0)
        array->release(array);
}

/* ------------------------------------------------------------------------------------------------- streams --- */

typedef struct stream_state {
    input in;
    const char *format[COLUMNS];
    int arrays;
} stream_state;

typedef struct table_owner {
    struct ArrowArray child[COLUMNS], *children[COLUMNS];
    const void *buffers[1];
} table_owner;

static void release_table(struct ArrowArray *array)
{
    table_owner *own = array->private_data;
    array->release = NULL;
    for (int c = 0; c < COLUMNS; c++)
        if (own->child[c].release)
            own->child[c].release(&own->child[c]);
    free(own);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    stream_state *state = stream->private_data;
    *out = (struct ArrowArray){0};
    if (state->arrays-- <= 0)
        return 0;
    table_owner *own = calloc(1, sizeof *own);
    if (!own)
        exit(1);
    unsigned faults = take(&state->in);
    *out = (struct ArrowArray){.length = (int64_t)(take(&state->in) % MOST),
                               .n_buffers = 1,
                               .n_children = COLUMNS,
                               .buffers = own->buffers,
                               .children = own->children,
                               .release = release_table,
                               .private_data = own};
    for (int c = 0; c < COLUMNS; c++) {
        make_array(&state->in, &own->child[c], state->format[c]);
        own->children[c] = &own->child[c];
    }
    if (faults & 1)
        out->offset = (int8_t)take(&state->in);
    if (faults & 2)
        out->length = (int8_t)take(&state->in);
    if (faults & 4)
        out->n_children = take(&state->in) % (COLUMNS + 1);
    if (faults & 8)
        own->children[take(&state->in) % COLUMNS] = NULL;
    if (faults != 255)
        return 0;
    out->release(out);
    return 5;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_child(struct ArrowSchema *schema)
{
    free((void *)schema->format);
    free(schema->dictionary);
    schema->release = NULL;
}

typedef struct schema_state {
    struct ArrowSchema child[COLUMNS], *children[COLUMNS];
} schema_state;

static void release_schemas(struct ArrowSchema *schema)
{
    schema_state *own = schema->private_data;
    schema->release = NULL;
    for (int c = 0; c < COLUMNS; c++)
        if (own->child[c].release)
            own->child[c].release(&own->child[c]);
    free(own);
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    static const char *const names[COLUMNS] = {"user", "time", "event", "field", "number"};
    const stream_state *state = stream->private_data;
    schema_state *own = calloc(1, sizeof *own);
    if (!own)
        exit(1);
    for (int c = 0; c < COLUMNS; c++) {
        const char *format = state->format[c];
        bool encoded = format[1] == '>';
        char *text = calloc(1, 16);
        if (!text)
            exit(1);
        memcpy(text, format, encoded ? 1 : strlen(format));
        own->child[c] = (struct ArrowSchema){.format = text, .name = names[c], .release = release_child};
        if (encoded) {
            own->child[c].dictionary = calloc(1, sizeof *own->child[c].dictionary);
            if (!own->child[c].dictionary)
                exit(1);
            *own->child[c].dictionary = (struct ArrowSchema){.format = format + 2, .release = release_schema};
        }
        own->children[c] = &own->child[c];
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .n_children = COLUMNS,
                                .children = own->children,
                                .release = release_schemas,
                                .private_data = own};
    return 0;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static lapse_status import(input in, const lapse_import_options *options, int64_t batch, lapse_dataset **dataset,
                           lapse_import_report *report, lapse_error *error)
{
    stream_state state = {.in = in};
    for (int c = 0; c < COLUMNS; c++)
        state.format[c] = formats[take(&state.in) % (sizeof formats / sizeof *formats)];
    state.arrays = (int)(take(&state.in) % 4);
    struct ArrowArrayStream stream = {get_schema, get_next, NULL, release_stream, &state};
    const lp_arrow_tuning tuning = {batch};
    return lp_arrow_import(&stream, options, &tuning, dataset, report, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const categories[] = {"field"}, *const numbers[] = {"number"};
    input in = {data, data + size};
    unsigned choice = take(&in);
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.skip_bad_rows = choice & 1;
    options.categories = categories;
    options.category_count = choice >> 1 & 1;
    options.numbers = numbers;
    options.number_count = choice >> 2 & 1;
    options.event = choice & 8 ? "event,user" : NULL;
    if (choice & 8)
        options.sequence = "field";
    options.split = choice & 16 ? "number" : NULL;
    options.timezone = choice & 64 ? "-03:30" : NULL;
    options.threads = 1;
    lapse_dataset *whole = NULL, *cut = NULL;
    lapse_import_report whole_report, cut_report;
    lapse_error whole_error = {0}, cut_error = {0};
    lapse_status status = import(in, &options, 16384, &whole, &whole_report, &whole_error);
    options.threads = fuzz_takes(data, size, THREADED) ? 2 : 1;
    lapse_status again = import(in, &options, 3, &cut, &cut_report, &cut_error);
    FUZZ_CHECK(status == again);
    FUZZ_CHECK(whole_error.line == cut_error.line && whole_error.column == cut_error.column &&
               strcmp(whole_error.message, cut_error.message) == 0);
    FUZZ_CHECK(!whole ||
               (lp_dataset_fingerprint(whole) == lp_dataset_fingerprint(cut) &&
                whole_report.bad_rows == cut_report.bad_rows && whole_report.local_rows == cut_report.local_rows));
    lapse_dataset_close(whole);
    lapse_dataset_close(cut);
    return 0;
}
