/* container.c: writes and reads safetensors files with a checksum. */
#include "model/container.h"

#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for a hashing state on the stack */
#include <xxhash.h>

static const char *const type_names[] = {[LP_TENSOR_F32] = "F32",
                                         [LP_TENSOR_I32] = "I32",
                                         [LP_TENSOR_U8] = "U8",
                                         [LP_TENSOR_U64] = "U64",
                                         [LP_TENSOR_F64] = "F64"};
/* The beginning of every header; the checksum replaces the zeros. */
static const char HEADER_PREFIX[] = "{\"__metadata__\":{\"checksum\":\"0000000000000000\"";
enum {
    CHECKSUM_DIGITS = 16,
    CHECKSUM_OFFSET = sizeof HEADER_PREFIX - 1 - 1 - CHECKSUM_DIGITS,
    HEADER_LIMIT = 100000000
};

/* ----------------------------------------------------------------------------------------------- writing ----- */

/* JSON is UTF-8: invalid bytes, such as a file name in another encoding, become U+FFFD. */
static bool add_json_text(lp_buffer *out, const char *text)
{
    bool good = lp_buffer_add(out, "\"", 1);
    for (const char *c = text; good && *c;) {
        size_t size = lp_utf8_size(c, c + 4);
        if (size == 0)
            good = lp_buffer_print(out, "\\ufffd");
        else if (*c == '"' || *c == '\\')
            good = lp_buffer_print(out, "\\%c", *c);
        else if (size == 1 && *c < 0x20)
            good = lp_buffer_print(out, "\\u%04x", (unsigned)*c);
        else
            good = lp_buffer_add(out, c, size);
        c += size ? size : 1;
    }
    return good && lp_buffer_add(out, "\"", 1);
}

static bool build_header(const lp_container *container, lp_buffer *out)
{
    bool good = lp_buffer_print(out, "%s", HEADER_PREFIX);
    for (int i = 0; good && i < container->property_count; i++)
        good = lp_buffer_add(out, ",", 1) && add_json_text(out, container->property_name[i]) &&
               lp_buffer_add(out, ":", 1) && add_json_text(out, container->property_value[i]);
    good = good && lp_buffer_add(out, "}", 1);
    size_t offset = 0;
    for (int i = 0; good && i < container->tensor_count; i++) {
        const lp_tensor *tensor = &container->tensors[i];
        size_t end = offset + lp_tensor_bytes(tensor);
        good = lp_buffer_add(out, ",", 1) && add_json_text(out, tensor->name) &&
               lp_buffer_print(out, ":{\"dtype\":\"%s\",\"shape\":[%lld,%lld],\"data_offsets\":[%zu,%zu]}",
                               type_names[tensor->type], (long long)tensor->rows, (long long)tensor->cols, offset, end);
        offset = end;
    }
    good = good && lp_buffer_add(out, "}", 1);
    while (good && out->size % 8)
        good = lp_buffer_add(out, " ", 1);
    return good;
}

static uint64_t checksum(const char *header, size_t header_size, const lp_container *container)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, header, header_size);
    for (int i = 0; i < container->tensor_count; i++)
        XXH3_64bits_update(&state, container->tensors[i].data, lp_tensor_bytes(&container->tensors[i]));
    return XXH3_64bits_digest(&state);
}

static lapse_status write_all(lp_writer *writer, const lp_buffer *header, const lp_container *container,
                              lapse_error *error)
{
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)(header->size >> (8 * i));
    LP_TRY(lp_writer_add(writer, size, sizeof size, error));
    LP_TRY(lp_writer_add(writer, header->data, header->size, error));
    for (int i = 0; i < container->tensor_count; i++)
        LP_TRY(lp_writer_add(writer, container->tensors[i].data, lp_tensor_bytes(&container->tensors[i]), error));
    return lp_writer_commit(writer, error);
}

lapse_status lp_container_save(const lp_container *container, const char *path, lapse_error *error)
{
    lp_buffer header = {0};
    if (!build_header(container, &header)) {
        lapse_status status = lp_fail_memory(error, "the header of a model file", header.size);
        lp_buffer_clear(&header);
        return status;
    }
    char digits[CHECKSUM_DIGITS + 1];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)checksum(header.data, header.size, container));
    memcpy(header.data + CHECKSUM_OFFSET, digits, CHECKSUM_DIGITS);
    lp_writer writer;
    lapse_status status = lp_writer_open(&writer, path, error);
    if (status == LAPSE_OK) {
        status = write_all(&writer, &header, container, error);
        lp_writer_abandon(&writer);
    }
    lp_buffer_clear(&header);
    return status;
}

/* ----------------------------------------------------------------------------------------------- reading ----- */

static lapse_status damaged(lapse_error *error, const char *path, const char *reason)
{
    return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0, "this is not a whole Lapse model: %s", reason);
}

static lapse_status read_properties(lp_container *container, const json_t *metadata, const char *path,
                                    lapse_error *error)
{
    size_t count = json_object_size(metadata);
    container->property_name = lp_arena_alloc(&container->arena, (count + 1) * sizeof(char *));
    container->property_value = lp_arena_alloc(&container->arena, (count + 1) * sizeof(char *));
    if (!container->property_name || !container->property_value)
        return lp_fail_memory(error, "the metadata of a model file", count * sizeof(char *));
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)metadata, name, value)
    {
        if (!json_is_string(value))
            return damaged(error, path, "its metadata holds something that is not text");
        if (strcmp(name, "checksum") == 0)
            continue;
        char *name_copy = lp_arena_text(&container->arena, name);
        char *value_copy = lp_arena_text(&container->arena, json_string_value(value));
        if (!name_copy || !value_copy)
            return lp_fail_memory(error, "the metadata of a model file", strlen(name));
        container->property_name[container->property_count] = name_copy;
        container->property_value[container->property_count++] = value_copy;
    }
    return LAPSE_OK;
}

/* Reads one tensor, whose data must begin at *offset; advances *offset to its end. */
static lapse_status read_tensor(lp_container *container, const char *name, json_t *entry, const char *data,
                                size_t data_size, size_t *offset, const char *path, lapse_error *error)
{
    const char *type_name = NULL;
    json_int_t rows, cols, begin, end;
    if (json_unpack(entry, "{s:s, s:[I,I!], s:[I,I!] !}", "dtype", &type_name, "shape", &rows, &cols, "data_offsets",
                    &begin, &end) != 0)
        return damaged(error, path, "a tensor's entry is not understood");
    lp_tensor tensor = {lp_arena_text(&container->arena, name), LP_TENSOR_F32, rows, cols, NULL};
    if (!tensor.name)
        return lp_fail_memory(error, "the tensors of a model file", strlen(name));
    size_t type = 0, types = sizeof type_names / sizeof *type_names;
    while (type < types && strcmp(type_names[type], type_name) != 0)
        type++;
    if (type == types || rows < 0 || cols < 0 || (cols > 0 && rows > (json_int_t)(data_size / (size_t)cols)))
        return damaged(error, path, "a tensor has a type or shape that cannot be");
    tensor.type = (lp_tensor_type)type;
    if (begin < 0 || (size_t)begin != *offset || end < begin || (size_t)end > data_size ||
        (size_t)(end - begin) != lp_tensor_bytes(&tensor))
        return damaged(error, path, "a tensor lies outside the file; was it cut off?");
    tensor.data = (char *)(uintptr_t)data + begin;
    *offset = (size_t)end;
    container->tensors[container->tensor_count++] = tensor;
    return LAPSE_OK;
}

static lapse_status read_tensors(lp_container *container, json_t *root, const char *data, size_t data_size,
                                 const char *path, lapse_error *error)
{
    size_t offset = 0;
    container->tensors = lp_arena_alloc(&container->arena, (json_object_size(root) + 1) * sizeof(lp_tensor));
    if (!container->tensors)
        return lp_fail_memory(error, "the tensors of a model file", json_object_size(root) * sizeof(lp_tensor));
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") != 0)
            LP_TRY(read_tensor(container, name, entry, data, data_size, &offset, path, error));
    }
    return offset == data_size ? LAPSE_OK : damaged(error, path, "there are bytes after its last tensor");
}

static lapse_status verify_checksum(const lp_container *container, const char *header, size_t header_size,
                                    const char *path, lapse_error *error)
{
    lp_buffer copy = {0};
    if (!lp_buffer_add(&copy, header, header_size))
        return lp_fail_memory(error, "the header of a model file", header_size);
    bool good = copy.size >= sizeof HEADER_PREFIX - 1 && memcmp(copy.data, HEADER_PREFIX, CHECKSUM_OFFSET) == 0;
    if (good) {
        char *digits = copy.data + CHECKSUM_OFFSET;
        char stored[CHECKSUM_DIGITS + 1] = {0}, found[CHECKSUM_DIGITS + 1];
        memcpy(stored, digits, CHECKSUM_DIGITS);
        memset(digits, '0', CHECKSUM_DIGITS);
        snprintf(found, sizeof found, "%016llx", (unsigned long long)checksum(copy.data, copy.size, container));
        good = strcmp(stored, found) == 0;
    }
    lp_buffer_clear(&copy);
    return good ? LAPSE_OK : damaged(error, path, "its checksum does not match; it was edited or damaged");
}

static lapse_status read_all(lp_container *container, const char *path, lapse_error *error)
{
    const char *bytes = container->map.data;
    if (container->map.size < 8)
        return damaged(error, path, "it is shorter than 8 bytes");
    uint64_t header_size = 0;
    for (int i = 0; i < 8; i++)
        header_size |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    bool braced = container->map.size > 8 && bytes[8] == '{';
    if (header_size < 2 || header_size > HEADER_LIMIT || !braced)
        return damaged(error, path, "it does not begin with a safetensors header");
    if (header_size > container->map.size - 8)
        return damaged(error, path, "its header is cut off");
    json_error_t json_error;
    json_t *root = json_loadb(bytes + 8, header_size, JSON_REJECT_DUPLICATES, &json_error);
    if (!root && json_error_code(&json_error) == json_error_out_of_memory)
        return lp_fail_memory(error, "the header of a model file", header_size);
    if (!root)
        return damaged(error, path, "its header is not JSON");
    json_t *metadata = json_object_get(root, "__metadata__");
    lapse_status status = LAPSE_OK;
    if (!json_is_object(metadata) || !json_object_get(metadata, "checksum"))
        status = damaged(error, path, "its header has no Lapse metadata");
    if (status == LAPSE_OK)
        status = read_properties(container, metadata, path, error);
    const char *data = bytes + 8 + header_size;
    if (status == LAPSE_OK)
        status = read_tensors(container, root, data, container->map.size - 8 - header_size, path, error);
    json_decref(root);
    return status == LAPSE_OK ? verify_checksum(container, bytes + 8, header_size, path, error) : status;
}

lapse_status lp_container_open(lp_container *container, const char *path, lapse_error *error)
{
    *container = (lp_container){0};
    LP_TRY(lp_map_open(&container->map, path, error));
    lapse_status status = read_all(container, path, error);
    if (status != LAPSE_OK)
        lp_container_close(container);
    return status;
}

void lp_container_close(lp_container *container)
{
    lp_map_close(&container->map);
    lp_arena_clear(&container->arena);
    *container = (lp_container){0};
}

const char *lp_container_property(const lp_container *container, const char *name)
{
    for (int i = 0; i < container->property_count; i++)
        if (strcmp(container->property_name[i], name) == 0)
            return container->property_value[i];
    return NULL;
}

const lp_tensor *lp_container_tensor(const lp_container *container, const char *name)
{
    for (int i = 0; i < container->tensor_count; i++)
        if (strcmp(container->tensors[i].name, name) == 0)
            return &container->tensors[i];
    return NULL;
}
