/* replay.c: runs a fuzz target on files, without the fuzzer: every build tests the known inputs again, and some mutations of
 * them, so that a target's mutator is tested too.
 *
 *   fuzz_model FILE ...
 */
#include "fuzz/support/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { MUTATIONS = 8, GROWTH = 256 };

/* Defined by targets with inputs of a structure. */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* In place of libFuzzer's: changes one byte. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    static unsigned calls;
    fuzz_random random = fuzz_random_start(calls++);
    if (size == 0 && max_size > 0)
        data[size++] = 0;
    if (size > 0)
        data[fuzz_random_below(&random, size)] = (uint8_t)fuzz_random_below(&random, 256);
    return size;
}

/* Runs the target on a copy of exactly this size, so that the address sanitizer detects a read of one byte past its end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = calloc(size > 0 ? size : 1, 1);
    FUZZ_CHECK(copy);
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_mutations(uint8_t *data, size_t size, size_t space)
{
    for (unsigned seed = 1; LLVMFuzzerCustomMutator && seed <= MUTATIONS; seed++) {
        size = LLVMFuzzerCustomMutator(data, size, space, seed);
        FUZZ_CHECK(size <= space);
        run(data, size);
    }
}

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    size_t space = size >= 0 ? (size_t)size + GROWTH : 0;
    uint8_t *data = size >= 0 ? malloc(space) : NULL;
    int good = data && fseek(file, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)size, file) == (size_t)size;
    if (good) {
        run(data, (size_t)size);
        run_mutations(data, (size_t)size, space);
    } else {
        fprintf(stderr, "%s: cannot read the file\n", path);
    }
    free(data);
    if (file)
        fclose(file);
    return good ? 0 : 1;
}

int main(int count, char **arguments)
{
    int failed = 0;
    fuzz_replays = true;
    run(NULL, 0);
    for (int i = 1; i < count; i++)
        failed += replay(arguments[i]);
    return failed ? 1 : 0;
}
