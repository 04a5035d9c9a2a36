/* fuzz_container.c: mutation of safetensors files. An edit of any byte is refused by the checksum, and most edits of the header
 * by the JSON parser, so that little would be tested. These edits keep the file's structure. */
#include "fuzz/support/fuzz.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <string.h>

static const char BEGINNING[] = "{\"__metadata__\":{\"checksum\":\"";
enum { LENGTH_SIZE = 8, CHECKSUM_AT = LENGTH_SIZE + sizeof BEGINNING - 1, DIGITS = 16, TOKENS = 512 };

/* A text in quotes (without them) or a number of the header. */
typedef struct token {
    size_t at, size;
    bool value; /* of a name */
} token;

static uint64_t header_size(const uint8_t *bytes, size_t size)
{
    uint64_t length = 0;
    for (int i = 0; size >= LENGTH_SIZE && i < LENGTH_SIZE; i++)
        length |= (uint64_t)bytes[i] << (8 * i);
    return size >= LENGTH_SIZE && length <= size - LENGTH_SIZE ? length : 0;
}

static void set_header_size(uint8_t *bytes, uint64_t length)
{
    for (int i = 0; i < LENGTH_SIZE; i++)
        bytes[i] = (uint8_t)(length >> (8 * i));
}

static void seal(uint8_t *bytes, size_t size)
{
    if (size < CHECKSUM_AT + DIGITS || memcmp(bytes + LENGTH_SIZE, BEGINNING, sizeof BEGINNING - 1) != 0)
        return;
    char digits[DIGITS + 1];
    memset(bytes + CHECKSUM_AT, '0', DIGITS);
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)XXH3_64bits(bytes + LENGTH_SIZE, size - LENGTH_SIZE));
    memcpy(bytes + CHECKSUM_AT, digits, DIGITS);
}

static bool in_number(uint8_t c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

/* Lists the tokens after the checksum. */
static int list_tokens(const uint8_t *bytes, size_t end, token tokens[TOKENS])
{
    int count = 0;
    for (size_t at = CHECKSUM_AT + DIGITS + 1; at < end && count < TOKENS; at++) {
        token found = {at, 0, bytes[at - 1] == ':'};
        if (bytes[at] == '"') {
            found.at++;
            for (at++; at < end && bytes[at] != '"'; at++)
                at += bytes[at] == '\\';
        } else if (in_number(bytes[at])) {
            found.value = true;
            while (at < end && in_number(bytes[at]))
                at++;
        } else {
            continue;
        }
        found.size = (at < end ? at : end) - found.at;
        tokens[count++] = found;
    }
    return count;
}

/* Replaces one token by a limit, another token, or a mutation of it. */
static size_t edit_token(uint8_t *bytes, size_t size, size_t max_size, size_t length, fuzz_random *random)
{
    token tokens[TOKENS];
    int count = list_tokens(bytes, LENGTH_SIZE + length, tokens);
    if (count == 0)
        return size;
    token chosen = tokens[fuzz_random_below(random, (uint64_t)count)];
    for (int i = 0; i < 3 && !chosen.value; i++) /* names are rarely worth an edit */
        chosen = tokens[fuzz_random_below(random, (uint64_t)count)];
    size_t made = size;
    uint64_t way = fuzz_random_below(random, 8);
    if (way < 4) {
        const char *number = fuzz_number(random);
        made = fuzz_splice(bytes, size, max_size, chosen.at, chosen.size, number, strlen(number));
    } else if (way < 6) {
        uint8_t copy[256];
        token other = tokens[fuzz_random_below(random, (uint64_t)count)];
        size_t part = other.size < sizeof copy ? other.size : sizeof copy;
        memcpy(copy, bytes + other.at, part);
        made = fuzz_splice(bytes, size, max_size, chosen.at, chosen.size, copy, part);
    } else {
        made = fuzz_mutate_part(bytes, size, max_size, chosen.at, chosen.size);
    }
    set_header_size(bytes, length + made - size);
    return made;
}

/* Sets one weight, a run of them, or all. The data has tensors of other types too. */
static void edit_weights(uint8_t *bytes, size_t size, size_t length, fuzz_random *random)
{
    size_t begin = LENGTH_SIZE + length, count = (size - begin) / sizeof(float);
    if (count == 0)
        return;
    size_t first = fuzz_random_below(random, count), run = 1 + fuzz_random_below(random, 64);
    float value = fuzz_float(random);
    for (size_t i = first; i < count && i < first + run; i++)
        memcpy(bytes + begin + i * sizeof value, &value, sizeof value);
}

size_t fuzz_container_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    fuzz_random random = fuzz_random_start(seed);
    size_t length = header_size(data, size);
    bool whole = length > CHECKSUM_AT + DIGITS - LENGTH_SIZE;
    uint64_t way = fuzz_random_below(&random, 16);
    if (!whole || way == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (way < 10) {
        size = edit_token(data, size, max_size, length, &random);
    } else if (way < 14) {
        edit_weights(data, size, length, &random);
    } else if (way < 15) { /* the data: vocabularies, counts, weights */
        size = fuzz_mutate_part(data, size, max_size, LENGTH_SIZE + length, size - LENGTH_SIZE - length);
    } else { /* the text of the header */
        size_t part = length - (CHECKSUM_AT + DIGITS - LENGTH_SIZE);
        size_t made = fuzz_mutate_part(data, size, max_size, CHECKSUM_AT + DIGITS, part);
        set_header_size(data, length + made - size);
        size = made;
    }
    if (fuzz_random_below(&random, 32) > 0)
        seal(data, size);
    return size;
}
