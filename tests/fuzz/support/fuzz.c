/* fuzz.c: files in memory, shares of inputs, a small dataset, and the edits that mutators share. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "fuzz/support/fuzz.h"

#include "base/file.h"
#include "data/import/import.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool fuzz_replays;

uint64_t fuzz_hash(const uint8_t *data, size_t size)
{
    return XXH3_64bits(data, size);
}

bool fuzz_takes(const uint8_t *data, size_t size, unsigned share)
{
    static int all = -1;
    if (all < 0)
        all = getenv("FUZZ_ALL") != NULL;
    return fuzz_replays || all || fuzz_hash(data, size) % share == 0;
}

const char *fuzz_file(const void *data, size_t size)
{
    static int handle = -1;
    static size_t last;
    static char path[64];
    if (handle < 0) {
        handle = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    }
    FUZZ_CHECK(handle >= 0 && (size == last || ftruncate(handle, (off_t)size) == 0));
    last = size;
    FUZZ_CHECK(size == 0 || pwrite(handle, data, size, 0) == (ssize_t)size);
    return path;
}

static const char *mapped_path;
static lp_map mapped;

const char *fuzz_mapped(const void *data, size_t size)
{
    if (!mapped_path)
        mapped_path = fuzz_file("", 0);
    mapped = (lp_map){size ? data : NULL, size};
    return mapped_path;
}

/* The linker calls these in place of lp_map_open and lp_map_close: mapping took more time than reading. */
lapse_status __real_lp_map_open(lp_map *map, const char *path, lapse_error *error);
lapse_status __wrap_lp_map_open(lp_map *map, const char *path, lapse_error *error);
void __real_lp_map_close(lp_map *map);
void __wrap_lp_map_close(lp_map *map);

lapse_status __wrap_lp_map_open(lp_map *map, const char *path, lapse_error *error)
{
    if (!mapped_path || strcmp(path, mapped_path) != 0)
        return __real_lp_map_open(map, path, error);
    *map = mapped;
    return LAPSE_OK;
}

void __wrap_lp_map_close(lp_map *map)
{
    if (map->data && map->data == mapped.data)
        *map = (lp_map){0};
    else
        __real_lp_map_close(map);
}

static _Alignas(16) char json_memory[1 << 18];
static size_t json_used;

static void *json_alloc(size_t size)
{
    if (size > sizeof json_memory - json_used)
        return malloc(size);
    void *block = json_memory + json_used;
    json_used += (size + 15) / 16 * 16;
    return block;
}

static void json_free(void *block)
{
    if ((char *)block < json_memory || (char *)block >= json_memory + sizeof json_memory)
        free(block);
}

void fuzz_json_start(void)
{
    json_used = 0;
    if (!fuzz_replays)
        json_set_alloc_funcs(json_alloc, json_free);
}

const lapse_dataset *fuzz_events(void)
{
    static const char text[] = "user,time,item,action,price\n"
                               "u,100,a,view,1\nu,160,b,view,2\nu,300,a,buy,\nu,400,c,view,4\n"
                               "v,100,b,view,1\nv,220,c,buy,2\nv,500,d,view,3\n"
                               "w,100,d,buy,1\nw,150,a,view,-2\nw,700,b,buy,3\n"
                               "z,100,c,view,1e9\nz,130,a,buy,2\n";
    static const char *const numbers[] = {"price"};
    static lapse_dataset *dataset;
    if (dataset)
        return dataset;
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.event = "item";
    options.action = "action";
    options.numbers = numbers;
    options.number_count = 1;
    options.threads = 1;
    lp_source source;
    FUZZ_CHECK(lp_source_open_memory(&source, "events", text, sizeof text - 1, NULL) == LAPSE_OK);
    FUZZ_CHECK(lp_import(&source, &options, NULL, &dataset, NULL, NULL) == LAPSE_OK);
    lp_source_close(&source);
    return dataset;
}

/* ---------------------------------------------------------------------------------------------- mutation ----- */

fuzz_random fuzz_random_start(unsigned seed)
{
    return (fuzz_random){seed};
}

uint64_t fuzz_random_below(fuzz_random *random, uint64_t limit)
{
    random->state++;
    return XXH3_64bits(random, sizeof *random) % limit;
}

size_t fuzz_splice(uint8_t *bytes, size_t size, size_t max_size, size_t at, size_t old, const void *by, size_t new)
{
    if (size - old + new > max_size)
        return size;
    memmove(bytes + at + new, bytes + at + old, size - at - old);
    memcpy(bytes + at, by, new);
    return size - old + new;
}

size_t fuzz_mutate_part(uint8_t *bytes, size_t size, size_t max_size, size_t at, size_t part)
{
    enum { SPACE = 4096, GROWTH = 64 };
    uint8_t copy[SPACE];
    if (part > SPACE - GROWTH)
        part = SPACE - GROWTH;
    memcpy(copy, bytes + at, part);
    size_t made = LLVMFuzzerMutate(copy, part, part + GROWTH);
    return fuzz_splice(bytes, size, max_size, at, part, copy, made);
}

const char *fuzz_number(fuzz_random *random)
{
    static const char *const numbers[] = {
        "0",          "1",           "2",
        "3",          "4",           "8",
        "63",         "64",          "65",
        "100",        "1000",        "4095",
        "4096",       "4097",        "65535",
        "65536",      "1000000",     "2147483647",
        "2e9",        "1e18",        "1e308",
        "1e-308",     "1e-12",       "0.5",
        "0.9",        "1e309",       "9223372036854775807",
        "-1",         "-0",          "-1e9",
        "nan",        "inf",         "",
        " 1",         "1.5",         "4294967296",
        "true",       "false",       "none",
        "1d",         "86400000000", "-2147483649",
        "2147483648", "2000000001",  "18446744073709551615",
    };
    return numbers[fuzz_random_below(random, sizeof numbers / sizeof *numbers)];
}

float fuzz_float(fuzz_random *random)
{
    const float numbers[] = {0,     -0.0f, FLT_MAX, -FLT_MAX, FLT_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN, 1,   -1,    1e4f,
                             -1e4f, 1e19f, -1e19f,  1e30f,    1e-30f,  INFINITY,     -INFINITY,     NAN, 88.8f, -104};
    return numbers[fuzz_random_below(random, sizeof numbers / sizeof *numbers)];
}
