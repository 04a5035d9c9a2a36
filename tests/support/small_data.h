/* small_data.h: small datasets in memory, temporary files and the amount of work of a test. Every function fails the
 * test on an error. */
#ifndef LP_SMALL_DATA_H
#define LP_SMALL_DATA_H

#include "base/random.h"
#include "data/dataset/dataset.h"

/* A dataset: sequence s has lengths[s] of the events. Event types are named "a", "b", ... ("k26" after "z"),
 * sequences "s0", "s1", .... split may be NULL. Free with lapse_dataset_close. */
lapse_dataset *small_dataset(int sequences, const int *lengths, const double *time, const int32_t *type, int types,
                             const uint8_t *split);

/* A dataset from words of letters ("abca bca"): one sequence per word, one event per letter, one second apart. split
 * has a letter per event, t, v or e (test), spaced alike; NULL: none. */
lapse_dataset *small_dataset_spelled(const char *events, const char *split);

/* A random dataset: sequences of 1 .. longest events, some at equal times, optionally with a split column. The next
 * event type depends on the last one and on the gap, so that a model can learn it. */
lapse_dataset *small_dataset_random(lp_random *random, int sequences, int longest, int types, double gap,
                                    bool by_event);

/* The simulated shop, imported like the tool does. */
lapse_dataset *small_dataset_shop(int64_t sequences, double days, uint64_t seed);

/* A path in a temporary folder, constant per name; the folder is created on first use. At most 8 paths are valid at a
 * time. */
const char *small_path(const char *name);
/* Deletes every file that small_path has named, and the folder. */
void small_paths_remove(void);

/* Reads a file; writes a new file. */
lp_buffer small_file_read(const char *path);
void small_file_write(const char *path, const void *data, size_t size);
void small_files_same(const char *a, const char *b);

/* Number of repetitions: `plain`, or `few` in the quick tier and under valgrind or sanitizers. */
int small_effort(int plain, int few);

/* Whether the program runs under valgrind, which is several times slower than the sanitizers. */
bool small_under_valgrind(void);

/* Skips the test under valgrind and sanitizers: it would take minutes, or it runs fibers, which they do not support. */
void small_skip_under_tools(void);

#endif
