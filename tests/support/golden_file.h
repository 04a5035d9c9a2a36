/* golden_file.h: reads a file of expected numbers in safetensors format that scripts in tests/golden wrote. It has no checksum, so
 * lp_container_open does not open it. */
#ifndef GOLDEN_FILE_H
#define GOLDEN_FILE_H

#include "base/file.h"

#include <jansson.h>

enum { GOLDEN_NAME_SIZE = 128 };

typedef struct golden_file {
    const char *path;
    lp_map map;
    json_t *header;
    const char *data;
} golden_file;

/* For the setup of a test group: 0, or -1 after a message. Tests run in the root of the repository. */
int golden_open(golden_file *file, const char *path);
void golden_close(golden_file *file);

/* A number of the metadata, <case_name>.<name>; without a case the name alone. The test fails where it is missing. */
double golden_setting(const golden_file *file, const char *case_name, const char *name);

/* Tensor <case_name>.<part> as doubles, in *count elements; the caller frees it. The test fails where it is missing, or has another
 * shape; rows -1 accepts any number. */
double *golden_tensor(const golden_file *file, const char *case_name, const char *part, int64_t rows, int64_t cols,
                      size_t *count);

#endif
