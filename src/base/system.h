/* system.h: what differs between systems. system_linux.c and system_darwin.c (macOS, which is compiled, but has not been run) implement
 * it; the build takes one of them. */
#ifndef LP_SYSTEM_H
#define LP_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The number of cores that this process may use. */
int lp_system_cores(void);

/* Bytes of this process that are in memory; 0 if the system does not say. */
int64_t lp_system_resident(void);

/* A random number for names of files and seeds of hash tables: no key may depend on it. */
uint64_t lp_system_random(void);

/* The time at which a file was modified. */
struct timespec lp_system_modified(const struct stat *file);

/* The absolute path of the file that this code was loaded from, the shared library or a program that is linked with the static one: what
 * dladdr knows of it may be relative, and to a folder that is no longer the current one. */
bool lp_system_own_path(char *path, size_t size);

/* A file without a name, for reading and writing, which vanishes if the process is killed; -1 with errno set, which is EOPNOTSUPP where the
 * system or the file system has no such files. */
int lp_system_open_unnamed(const char *folder, mode_t mode);
/* Gives such a file a name. False with errno set. */
bool lp_system_link(int handle, const char *path);

/* Gives the space of a part of a file back, if the file system can. */
void lp_system_punch(int handle, off_t offset, off_t size);

/* The last `byte` of a text; NULL if it has none. */
const void *lp_system_find_last(const void *text, int byte, size_t size);

static inline uint64_t lp_little_endian(uint64_t word)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

#endif
