/* fuzz.h: what the fuzz targets share.
 *
 * A target is one file tests/fuzz/fuzz_NAME.c that defines LLVMFuzzerTestOneInput, and LLVMFuzzerCustomMutator where its inputs
 * have a structure that random edits would only break. Its corpus is tests/fuzz/corpus/NAME. A new target needs no other entry:
 * the build, `./run fuzz` and the tests find it by its name.
 *
 * A target must make at least 5,000 executions a second, so it uses no disk and starts no threads, and does what takes longer
 * (training, predicting) for a share of its inputs: see fuzz_takes.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "data/dataset/dataset.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Stops the program, which the fuzzer reports, where a condition that must hold does not. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : abort())

/* A number that depends on the whole input, to choose by. */
uint64_t fuzz_hash(const uint8_t *data, size_t size);

/* True for one of `share` inputs, always the same ones; for all in a replay, and if the environment has FUZZ_ALL. Of inputs that are chosen, fuzz_hash / share is
 * a number to choose by. */
bool fuzz_takes(const uint8_t *data, size_t size, unsigned share);
extern bool fuzz_replays; /* set by replay.c */

/* The path of a file in memory with these bytes, valid until the next call. */
const char *fuzz_file(const void *data, size_t size);

/* A path that lp_map_open opens as these bytes, without a copy or a system call, until the next call. A target uses either this or
 * fuzz_file. */
const char *fuzz_mapped(const void *data, size_t size);

/* Gives jansson memory that costs nothing to allocate or free, until the next call: it allocates every text of a header, which took
 * half of the time. In a replay it has no effect, so that leaks are found. */
void fuzz_json_start(void);

/* A dataset of 12 events of 4 event types in 4 sequences, with an action and a number; made once. */
const lapse_dataset *fuzz_events(void);

/* ---- mutation ---- */

/* Random numbers of a mutator. Never 0. */
typedef struct fuzz_random {
    uint64_t state;
} fuzz_random;

fuzz_random fuzz_random_start(unsigned seed);
uint64_t fuzz_random_below(fuzz_random *random, uint64_t limit);

/* Replaces bytes[at .. at + old) of *size bytes by the `new` bytes at `by`. Returns the new size; the old one where the result
 * would not fit max_size. */
size_t fuzz_splice(uint8_t *bytes, size_t size, size_t max_size, size_t at, size_t old, const void *by, size_t new);

/* Applies LLVMFuzzerMutate to bytes[at .. at + part) alone; the rest moves. Returns the new size. */
size_t fuzz_mutate_part(uint8_t *bytes, size_t size, size_t max_size, size_t at, size_t part);

/* A number as text that is a limit of something: an option, an integer type, the range of floats. */
const char *fuzz_number(fuzz_random *random);

/* A float that is at a limit: 0, denormal, largest, infinite, not a number. */
float fuzz_float(fuzz_random *random);

/* Mutates a safetensors file (model/container.h): the text of metadata, shapes and offsets, weights, or any bytes. Corrects the
 * checksum, except in a few inputs. */
size_t fuzz_container_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#endif
