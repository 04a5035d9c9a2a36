/* vectors.c: item vectors in memory, and their file. */
#include "model/vectors.h"

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char FORMAT[] = "lapse-item-vectors", FORMAT_VERSION[] = "1";
enum { PROPERTY_LIMIT = 64, MAX_DIMS = 65536 };

/* Allocates `count` vectors, and names of `bytes` in total. */
static lapse_vectors *make(int64_t count, size_t bytes, int dims)
{
    lapse_vectors *made = lp_alloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->count = count;
    made->dims = dims;
    made->vector = made->blocks[0] = lp_alloc((size_t)count * (size_t)dims, sizeof *made->vector);
    made->counts = made->blocks[1] = lp_alloc((size_t)count, sizeof *made->counts);
    made->blocks[2] = lp_alloc((size_t)count + 1, sizeof(uint64_t));
    made->blocks[3] = lp_alloc(bytes, 1);
    made->names = (lp_names){.count = count, .offset = made->blocks[2], .bytes = made->blocks[3]};
    made->property_name = lp_arena_alloc(&made->arena, PROPERTY_LIMIT * sizeof(char *));
    made->property_value = lp_arena_alloc(&made->arena, PROPERTY_LIMIT * sizeof(char *));
    bool good = made->property_name && made->property_value;
    for (int i = 0; i < 4; i++)
        good = good && made->blocks[i];
    if (!good)
        lapse_vectors_free(made);
    return good ? made : NULL;
}

lapse_vectors *lp_vectors_new(const lp_names *names, int dims)
{
    lapse_vectors *made = make(names->count, names->offset[names->count], dims);
    if (!made)
        return NULL;
    memcpy(made->blocks[2], names->offset, ((size_t)names->count + 1) * sizeof *names->offset);
    memcpy(made->blocks[3], names->bytes, names->offset[names->count]);
    return made;
}

void lapse_vectors_free(lapse_vectors *vectors)
{
    if (!vectors)
        return;
    for (int i = 0; i < 4; i++)
        lp_free(vectors->blocks[i]);
    lp_arena_clear(&vectors->arena);
    lp_free(vectors);
}

static lapse_status add_property(lapse_vectors *vectors, const char *name, const char *value, lapse_error *error)
{
    int index = vectors->property_count;
    if (index == PROPERTY_LIMIT)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "item vectors have at most %d properties", PROPERTY_LIMIT);
    vectors->property_name[index] = lp_arena_text(&vectors->arena, name);
    vectors->property_value[index] = lp_arena_text(&vectors->arena, value);
    if (!vectors->property_name[index] || !vectors->property_value[index])
        return lp_fail_memory(error, "the properties of item vectors", strlen(value));
    vectors->property_count++;
    return LAPSE_OK;
}

lapse_status lp_vectors_property_set(lapse_vectors *vectors, lapse_error *error, const char *name, const char *format,
                                     ...)
{
    char value[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    return add_property(vectors, name, value, error);
}

bool lp_vectors_known(const lapse_vectors *vectors, int64_t item)
{
    const float *vector = vectors->vector + item * vectors->dims;
    for (int i = 0; i < vectors->dims; i++)
        if (vector[i] != 0)
            return true;
    return false;
}

int64_t lapse_vectors_count(const lapse_vectors *vectors)
{
    return vectors->count;
}

int lapse_vectors_dims(const lapse_vectors *vectors)
{
    return vectors->dims;
}

const char *lapse_vectors_name(const lapse_vectors *vectors, int64_t item)
{
    return item >= 0 && item < vectors->count ? lp_names_get(&vectors->names, item) : NULL;
}

const float *lapse_vectors_get(const lapse_vectors *vectors, int64_t item)
{
    return item >= 0 && item < vectors->count ? vectors->vector + item * vectors->dims : NULL;
}

int64_t lapse_vectors_occurrences(const lapse_vectors *vectors, int64_t item)
{
    return item >= 0 && item < vectors->count ? vectors->counts[item] : 0;
}

bool lapse_vectors_property(const lapse_vectors *vectors, int index, const char **name, const char **value)
{
    if (index < 0 || index >= vectors->property_count)
        return false;
    *name = vectors->property_name[index];
    *value = vectors->property_value[index];
    return true;
}

/* -------------------------------------------------------------------------------------------------- files ---- */

lapse_status lapse_vectors_save(const lapse_vectors *vectors, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, vectors, path);
    const char *names[PROPERTY_LIMIT + 2] = {"format", "format.version"};
    const char *values[PROPERTY_LIMIT + 2] = {FORMAT, FORMAT_VERSION};
    size_t size = (size_t)vectors->property_count * sizeof *names;
    memcpy(names + 2, vectors->property_name, size);
    memcpy(values + 2, vectors->property_value, size);
    lp_tensor tensors[] = {
        {"item.vector", LP_TENSOR_F32, vectors->count, vectors->dims, vectors->vector},
        {"item.count", LP_TENSOR_I32, 1, vectors->count, vectors->counts},
        {"vocabulary.item.offset", LP_TENSOR_U64, 1, vectors->count + 1, vectors->blocks[2]},
        {"vocabulary.item.bytes", LP_TENSOR_U8, 1, (int64_t)vectors->names.offset[vectors->count], vectors->blocks[3]},
    };
    lp_container container = {.tensors = tensors,
                              .tensor_count = 4,
                              .property_name = names,
                              .property_value = values,
                              .property_count = vectors->property_count + 2};
    LP_TRY(lp_container_check_finite(&container, path, error));
    return lp_container_save(&container, path, error);
}

static lapse_status wrong(lapse_error *error, const char *path, const char *reason)
{
    return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0, "these are not item vectors that can be used: %s", reason);
}

/* The tensor if it has this type and shape; -1: any size. */
static const lp_tensor *find(const lp_container *container, const char *name, lp_tensor_type type, int64_t rows,
                             int64_t cols)
{
    const lp_tensor *tensor = lp_container_tensor(container, name);
    bool fits =
        tensor && tensor->type == type && (rows < 0 || tensor->rows == rows) && (cols < 0 || tensor->cols == cols);
    return fits ? tensor : NULL;
}

/* Whether the names can be looked up safely: offsets ascend and stay within the bytes, names are NUL-terminated
 * UTF-8. */
static bool names_are_good(const lp_names *names, size_t bytes)
{
    bool good = names->offset[0] == 0 && names->offset[names->count] == bytes;
    for (int64_t i = 0; good && i < names->count; i++) {
        uint64_t begin = names->offset[i], end = names->offset[i + 1];
        good = end > begin + 1 && end <= bytes && strnlen(names->bytes + begin, end - begin) == end - begin - 1 &&
               lp_text_is_utf8(names->bytes + begin, names->bytes + end - 1);
    }
    return good;
}

static bool values_are_good(const lapse_vectors *vectors)
{
    bool good = true;
    for (int64_t i = 0; good && i < vectors->count * vectors->dims; i++)
        good = isfinite(vectors->vector[i]);
    for (int64_t i = 0; good && i < vectors->count; i++)
        good = vectors->counts[i] >= 0;
    return good;
}

static lapse_status fill(lapse_vectors *made, const lp_container *container, const lp_tensor *const *tensors,
                         const char *path, lapse_error *error)
{
    for (int i = 0; i < 4; i++)
        memcpy(made->blocks[i], tensors[i]->data, lp_tensor_bytes(tensors[i]));
    if (!names_are_good(&made->names, lp_tensor_bytes(tensors[3])))
        return wrong(error, path, "their names are damaged");
    LP_TRY(lp_container_check_names(&made->names, path, tensors[3]->name, error));
    if (!values_are_good(made))
        return wrong(error, path, "a number in them is not finite, or a count is negative");
    for (int i = 0; i < container->property_count; i++)
        if (strcmp(container->property_name[i], "format") != 0 &&
            strcmp(container->property_name[i], "format.version") != 0)
            LP_TRY(add_property(made, container->property_name[i], container->property_value[i], error));
    return LAPSE_OK;
}

static lapse_status load(const lp_container *container, const char *path, lapse_vectors **vectors, lapse_error *error)
{
    const char *format = lp_container_property(container, "format");
    const char *version = lp_container_property(container, "format.version");
    if (!format || strcmp(format, FORMAT) != 0)
        return wrong(error, path, "the file holds something else; `lapse pretrain` makes item vectors");
    if (!version || strcmp(version, FORMAT_VERSION) != 0)
        return wrong(error, path, "they are of another version of the format");
    const lp_tensor *vector = find(container, "item.vector", LP_TENSOR_F32, -1, -1);
    if (!vector || vector->rows < 1 || vector->rows >= INT32_MAX || vector->cols < 1 || vector->cols > MAX_DIMS)
        return wrong(error, path, "'item.vector' is missing or wrong");
    const lp_tensor *count = find(container, "item.count", LP_TENSOR_I32, 1, vector->rows);
    const lp_tensor *offset = find(container, "vocabulary.item.offset", LP_TENSOR_U64, 1, vector->rows + 1);
    const lp_tensor *bytes = find(container, "vocabulary.item.bytes", LP_TENSOR_U8, 1, -1);
    if (!count || !offset || !bytes)
        return wrong(error, path, "their counts or names are missing or wrong");
    lapse_vectors *made = make(vector->rows, lp_tensor_bytes(bytes), (int)vector->cols);
    if (!made)
        return lp_fail_memory(error, "item vectors", lp_tensor_bytes(vector));
    const lp_tensor *const tensors[] = {vector, count, offset, bytes};
    lapse_status status = fill(made, container, tensors, path, error);
    if (status != LAPSE_OK)
        lapse_vectors_free(made);
    else
        *vectors = made;
    return status;
}

lapse_status lapse_vectors_load(const char *path, lapse_vectors **vectors, lapse_error *error)
{
    LP_REQUIRE(error, path, vectors);
    *vectors = NULL;
    lp_container container;
    LP_TRY(lp_container_open(&container, path, error));
    lapse_status status = load(&container, path, vectors, error);
    lp_container_close(&container);
    return status;
}
