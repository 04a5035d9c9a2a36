/* small_data.h: datasets made in memory, files in a folder of their own, and how much work a test may do: what the tests of
 * windows, models, training and sessions share. Each of them fails the test when it cannot do its work. */
#ifndef LP_SMALL_DATA_H
#define LP_SMALL_DATA_H

#include "base/random.h"
#include "data/dataset/dataset.h"

/* A dataset of these events: sequence s has lengths[s] of them. Event types are named "a", "b", ... ("k26" after "z"), sequences "s0",
 * "s1", .... split may be NULL. Closed by lapse_dataset_close. */
lapse_dataset *small_dataset(int sequences, const int *lengths, const double *time, const int32_t *type, int types,
                             const uint8_t *split);

/* Sequences as words of letters ("abca bca"), a second between neighbours. split has a letter for each event, t, v or e
 * (test), spaced alike; NULL: none. */
lapse_dataset *small_dataset_spelled(const char *events, const char *split);

/* `sequences` random ones of 1 .. longest events, some at equal times; with a split of each event where asked for. The
 * event types follow one another by a rule that looks at the time between them, so that there is something to learn. */
lapse_dataset *small_dataset_random(lp_random *random, int sequences, int longest, int types, double gap,
                                    bool by_event);

/* The simulated shop, imported as the tool does. */
lapse_dataset *small_dataset_shop(int64_t sequences, double days, uint64_t seed);

/* A path inside a temporary folder, the same for the same name; the folder is made on first use. At most 8 paths are
 * valid at a time. */
const char *small_path(const char *name);
/* Removes every file that small_path has named, and the folder. */
void small_paths_remove(void);

/* The bytes of a file, and a new file of these bytes. */
lp_buffer small_file_read(const char *path);
void small_file_write(const char *path, const void *data, size_t size);
void small_files_same(const char *a, const char *b);

/* `plain` repetitions, or `few`, which are some, in the quick tier and under valgrind or sanitizers. */
int small_effort(int plain, int few);

/* Skips the test under valgrind and sanitizers: it would take minutes, or runs fibers, whose stacks they do not know. */
void small_skip_under_tools(void);

#endif
