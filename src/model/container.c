/* container.c: writes and reads safetensors files with a checksum. */
#include "model/container.h"

#include "base/assert.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "data/dataset/names.h"
#include "model/item_rows.h"

#include <math.h>
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

void lp_container_divide(lp_container *container, const float *data, const lp_graph *graph)
{
    int i = container->divided_count;
    LP_ASSERT(i < (int)(sizeof container->divided / sizeof *container->divided));
    container->divided[i].data = data;
    container->divided[i].graph = graph;
    container->divided_count += data != NULL;
}

/* The graph whose parameters a tensor is a part of, from *begin on; NULL: it is not divided. */
static const lp_graph *divided_by(const lp_container *container, const lp_tensor *tensor, size_t *begin)
{
    for (int i = 0; container->comm && i < container->divided_count; i++) {
        const lp_graph *graph = container->divided[i].graph;
        uintptr_t from = (uintptr_t)container->divided[i].data, at = (uintptr_t)tensor->data;
        *begin = (at - from) / sizeof(float);
        if (at >= from && *begin < graph->parameter_size)
            return graph;
    }
    return NULL;
}

/* Takes bytes of tensors, in their order. */
typedef struct sink {
    lapse_status (*take)(void *context, const void *data, size_t size, lapse_error *error);
    void *context;
} sink;

/* Sends elements of a tensor from their rank to rank 0, a chunk at a time, into the sink. */
static lapse_status pass_chunks(lapse_comm *comm, int from, const float *data, size_t count, sink to,
                                lapse_error *error)
{
    enum { CHUNK = 1 << 20 };
    int rank = lp_comm_rank(comm);
    float *chunk = rank == 0 ? lp_alloc_raw(CHUNK, sizeof *chunk) : NULL;
    lapse_status status =
        rank > 0 || chunk ? LAPSE_OK : lp_fail_memory(error, "a chunk of a tensor", CHUNK * sizeof *chunk);
    for (size_t size; status == LAPSE_OK && count > 0; data += size, count -= size) {
        size = count < CHUNK ? count : CHUNK;
        if (rank == from)
            comm->send[0] = (lapse_message){(float *)(uintptr_t)data, size * sizeof *data};
        else if (rank == 0)
            comm->receive[from] = (lapse_message){chunk, size * sizeof *chunk};
        lp_comm_exchange(comm, "saving rows");
        status = lp_comm_check(comm, error);
        if (status == LAPSE_OK && rank == 0)
            status = to.take(to.context, chunk, size * sizeof *chunk, error);
    }
    lp_free(chunk);
    return status;
}

/* Passes the data of all tensors. Where they are divided, all ranks call this, and the sink of rank 0 gets them. */
static lapse_status pass_data(const lp_container *container, sink to, lapse_error *error)
{
    bool first = lp_comm_rank(container->comm) == 0;
    for (int i = 0; i < container->tensor_count; i++) {
        const lp_tensor *tensor = &container->tensors[i];
        size_t begin = 0;
        const lp_graph *graph = divided_by(container, tensor, &begin);
        size_t size = lp_tensor_bytes(tensor), end = begin + size / sizeof(float);
        if (!graph && first)
            LP_TRY(to.take(to.context, tensor->data, size, error));
        for (size_t at = begin, next; graph && at < end; at = next) {
            int rank;
            const float *data = (const float *)tensor->data + (at - begin);
            next = lp_item_piece(graph, container->comm, at, end, &rank);
            if (rank > 0)
                LP_TRY(pass_chunks(container->comm, rank, data, next - at, to, error));
            else if (first)
                LP_TRY(to.take(to.context, data, (next - at) * sizeof *data, error));
        }
    }
    return LAPSE_OK;
}

static lapse_status hash_bytes(void *context, const void *data, size_t size, lapse_error *error)
{
    (void)error;
    XXH3_64bits_update(context, data, size);
    return LAPSE_OK;
}

static lapse_status checksum(const char *header, size_t header_size, const lp_container *container, uint64_t *sum,
                             lapse_error *error)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, header, header_size);
    LP_TRY(pass_data(container, (sink){hash_bytes, &state}, error));
    *sum = XXH3_64bits_digest(&state);
    return LAPSE_OK;
}

static lapse_status write_bytes(void *context, const void *data, size_t size, lapse_error *error)
{
    return lp_writer_add(context, data, size, error);
}

static lapse_status write_all(lp_writer *writer, const lp_buffer *header, const lp_container *container,
                              lapse_error *error)
{
    unsigned char size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)(header->size >> (8 * i));
    LP_TRY(lp_writer_add(writer, size, sizeof size, error));
    LP_TRY(lp_writer_add(writer, header->data, header->size, error));
    LP_TRY(pass_data(container, (sink){write_bytes, writer}, error));
    return lp_writer_commit(writer, error);
}

lapse_status lp_container_check_finite(const lp_container *container, const char *path, lapse_error *error)
{
    int wrong = 0;
    while (wrong < container->tensor_count && !isinf(lp_tensor_largest(&container->tensors[wrong])))
        wrong++;
    bool any = lp_comm_any(container->comm, "saving", wrong < container->tensor_count);
    LP_TRY(lp_comm_check(container->comm, error));
    if (!any)
        return LAPSE_OK;
    return lp_fail_at(error, LAPSE_ERROR_USAGE, path, 0, 0,
                      "not saved: tensor '%s' has a number that is not finite; was the learning rate too high?",
                      wrong < container->tensor_count ? container->tensors[wrong].name : "of another rank");
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
    uint64_t sum = 0;
    lp_writer writer = {.handle = -1};
    lapse_status status = checksum(header.data, header.size, container, &sum, error);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sum);
    memcpy(header.data + CHECKSUM_OFFSET, digits, CHECKSUM_DIGITS);
    if (status == LAPSE_OK && lp_comm_rank(container->comm) > 0)
        status = pass_data(container, (sink){0}, error);
    else if (status == LAPSE_OK && (status = lp_writer_open(&writer, path, error)) == LAPSE_OK) {
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

/* A copy of a string in the arena; NULL: out of memory. */
static const char *keep_text(lp_container *container, lp_json_text text)
{
    char *copy = lp_arena_alloc(&container->arena, (size_t)(text.end - text.begin) + 1);
    if (copy)
        lp_json_decode(text, copy);
    return copy;
}

/* Takes the name of a member and the colon after it. */
static bool take_name(lp_json *json, lp_json_text *name)
{
    return lp_json_string(json, name) && lp_json_take(json, ':');
}

static bool text_is(lp_json_text text, const char *word)
{
    return (size_t)(text.end - text.begin) == strlen(word) && memcmp(text.begin, word, strlen(word)) == 0;
}

/* Checks that no name of an object occurs twice, in linear time. */
static lapse_status check_distinct(const char *const *list, size_t count, const char *path, lapse_error *error)
{
    lp_buffer bytes = {0};
    uint64_t *offset = lp_alloc(count + 1, sizeof *offset);
    bool good = offset != NULL;
    for (size_t i = 0; good && i < count; i++) {
        good = lp_buffer_add(&bytes, list[i], strlen(list[i]) + 1);
        offset[i + 1] = bytes.size;
    }
    int64_t first, second;
    lapse_status status = LAPSE_ERROR_MEMORY;
    if (good)
        status = lp_names_unique(&(lp_names){.count = (int64_t)count, .offset = offset, .bytes = bytes.data}, &first,
                                 &second);
    lp_free(offset);
    lp_buffer_clear(&bytes);
    return status == LAPSE_OK             ? LAPSE_OK
           : status == LAPSE_ERROR_MEMORY ? lp_fail_memory(error, "the header of a model file", count * 64)
                                          : damaged(error, path, "its header has a name twice");
}

/* Reads the metadata, whose first member is the checksum. */
static lapse_status read_properties(lp_container *container, lp_json *json, const char *path, lapse_error *error)
{
    size_t count = lp_json_members(json);
    lp_json_text name, value;
    container->property_name = lp_arena_alloc(&container->arena, (count + 1) * sizeof(char *));
    container->property_value = lp_arena_alloc(&container->arena, (count + 1) * sizeof(char *));
    if (!container->property_name || !container->property_value)
        return lp_fail_memory(error, "the metadata of a model file", count * sizeof(char *));
    if (!lp_json_take(json, '{') || !take_name(json, &name) || !text_is(name, "checksum"))
        return damaged(error, path, "its header has no Lapse metadata");
    for (int i = 0; i < (int)count; i++) {
        if (i > 0 && !(lp_json_take(json, ',') && take_name(json, &name)))
            return damaged(error, path, "its header is not JSON");
        if (!lp_json_string(json, &value))
            return damaged(error, path, "its metadata holds something that is not text");
        container->property_name[i] = keep_text(container, name);
        container->property_value[i] = keep_text(container, value);
        if (!container->property_name[i] || !container->property_value[i])
            return lp_fail_memory(error, "the metadata of a model file", count * sizeof(char *));
    }
    lp_json_take(json, '}');
    LP_TRY(check_distinct(container->property_name, count, path, error));
    container->property_name++; /* without the checksum */
    container->property_value++;
    container->property_count = (int)count - 1;
    return LAPSE_OK;
}

/* An array of two integers. */
static bool take_pair(lp_json *json, int64_t pair[2])
{
    return lp_json_take(json, '[') && lp_json_integer(json, &pair[0]) && lp_json_take(json, ',') &&
           lp_json_integer(json, &pair[1]) && lp_json_take(json, ']');
}

/* The value of a tensor: each of the three members once, in any order. */
static bool take_entry(lp_json *json, lp_json_text *type, int64_t shape[2], int64_t range[2])
{
    bool good = lp_json_members(json) == 3 && lp_json_take(json, '{');
    unsigned seen = 0;
    for (int i = 0; good && i < 3; i++) {
        lp_json_text name;
        good = (i == 0 || lp_json_take(json, ',')) && take_name(json, &name);
        if (good && text_is(name, "dtype"))
            seen |= lp_json_string(json, type) ? 1u : 0;
        else if (good && text_is(name, "shape"))
            seen |= take_pair(json, shape) ? 2u : 0;
        else if (good && text_is(name, "data_offsets"))
            seen |= take_pair(json, range) ? 4u : 0;
    }
    return good && lp_json_take(json, '}') && seen == 7;
}

/* Reads one tensor, whose data must begin at *offset; advances *offset to its end. */
static lapse_status read_tensor(lp_container *container, lp_json_text name, lp_json *json, const char *data,
                                size_t data_size, size_t *offset, const char *path, lapse_error *error)
{
    lp_json_text type_name = {0};
    int64_t shape[2], range[2];
    if (!take_entry(json, &type_name, shape, range))
        return damaged(error, path, "a tensor's entry is not understood");
    lp_tensor tensor = {keep_text(container, name), LP_TENSOR_F32, shape[0], shape[1], NULL};
    if (!tensor.name)
        return lp_fail_memory(error, "the tensors of a model file", (size_t)(name.end - name.begin));
    size_t type = 0, types = sizeof type_names / sizeof *type_names;
    while (type < types && !text_is(type_name, type_names[type]))
        type++;
    if (type == types || shape[0] < 0 || shape[1] < 0 ||
        (shape[1] > 0 && shape[0] > (int64_t)(data_size / (size_t)shape[1])))
        return damaged(error, path, "a tensor has a type or shape that cannot be");
    tensor.type = (lp_tensor_type)type;
    if (range[0] < 0 || (size_t)range[0] != *offset || range[1] < range[0] || (size_t)range[1] > data_size ||
        (size_t)(range[1] - range[0]) != lp_tensor_bytes(&tensor))
        return damaged(error, path, "a tensor lies outside the file; was it cut off?");
    tensor.data = (char *)(uintptr_t)data + range[0];
    *offset = (size_t)range[1];
    container->tensors[container->tensor_count++] = tensor;
    return LAPSE_OK;
}

/* Reads the tensors, which follow the metadata. */
static lapse_status read_tensors(lp_container *container, size_t count, lp_json *json, const char *data,
                                 size_t data_size, const char *path, lapse_error *error)
{
    size_t offset = 0;
    const char **names = lp_arena_alloc(&container->arena, (count + 1) * sizeof *names);
    container->tensors = lp_arena_alloc(&container->arena, (count + 1) * sizeof(lp_tensor));
    if (!names || !container->tensors)
        return lp_fail_memory(error, "the tensors of a model file", count * sizeof(lp_tensor));
    for (size_t i = 0; i < count; i++) {
        lp_json_text name;
        if (!lp_json_take(json, ',') || !take_name(json, &name))
            return damaged(error, path, "its header is not JSON");
        LP_TRY(read_tensor(container, name, json, data, data_size, &offset, path, error));
        names[i] = container->tensors[i].name;
    }
    LP_TRY(check_distinct(names, count, path, error));
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
        uint64_t sum = 0;
        memcpy(stored, digits, CHECKSUM_DIGITS);
        memset(digits, '0', CHECKSUM_DIGITS);
        good = checksum(copy.data, copy.size, container, &sum, error) == LAPSE_OK;
        snprintf(found, sizeof found, "%016llx", (unsigned long long)sum);
        good = good && strcmp(stored, found) == 0;
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
    lp_json json = {bytes + 8, bytes + 8 + header_size};
    lp_json_text name;
    if (!lp_json_valid(json.at, header_size))
        return damaged(error, path, "its header is not JSON");
    size_t members = lp_json_members(&json);
    if (!lp_json_take(&json, '{') || !take_name(&json, &name) || !text_is(name, "__metadata__"))
        return damaged(error, path, "its header has no Lapse metadata");
    LP_TRY(read_properties(container, &json, path, error));
    LP_TRY(read_tensors(container, members - 1, &json, bytes + 8 + header_size, container->map.size - 8 - header_size,
                        path, error));
    return verify_checksum(container, bytes + 8, header_size, path, error);
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

lapse_status lp_container_check_names(const lp_names *names, const char *path, const char *tensor, lapse_error *error)
{
    int64_t first = 0, second = 0;
    lapse_status status = lp_names_unique(names, &first, &second);
    if (status == LAPSE_ERROR_MEMORY)
        return lp_fail_memory(error, "a check of names", (size_t)names->count * 11);
    return status == LAPSE_OK ? LAPSE_OK
                              : lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                                           "names %lld and %lld of tensor '%s' are both '%.60s'", (long long)first + 1,
                                           (long long)second + 1, tensor, lp_names_get(names, first));
}
