/* replay.c: runs a fuzz target on files, without the fuzzer: every build tests the known inputs again.
 *
 *   fuzz_model FILE ...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    /* Exactly the size of the file, so that the address sanitizer detects a read of one byte past its end. */
    uint8_t *data = size >= 0 ? malloc(size > 0 ? (size_t)size : 1) : NULL;
    int good = data && fseek(file, 0, SEEK_SET) == 0 && fread(data, 1, (size_t)size, file) == (size_t)size;
    if (good)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    else
        fprintf(stderr, "%s: cannot read the file\n", path);
    free(data);
    if (file)
        fclose(file);
    return good ? 0 : 1;
}

int main(int count, char **arguments)
{
    static const uint8_t empty[1];
    int failed = 0;
    LLVMFuzzerTestOneInput(empty, 0);
    for (int i = 1; i < count; i++)
        failed += replay(arguments[i]);
    return failed ? 1 : 0;
}
