/* file.h: memory-mapped reading and atomic writing of files. */
#ifndef LP_FILE_H
#define LP_FILE_H

#include "base/error.h"

/* A file mapped read-only; data is NULL if size is 0. */
typedef struct lp_map {
    const char *data;
    size_t size;
} lp_map;

lapse_status lp_map_open(lp_map *map, const char *path, lapse_error *error);
void lp_map_close(lp_map *map);

/* Identifies one version of a file: a replaced or changed file has another one. {0}: no file. */
typedef struct lp_file_version {
    uint64_t device, inode;
    int64_t seconds, nanoseconds; /* last modification */
} lp_file_version;

lp_file_version lp_file_version_of(const char *path);
bool lp_file_version_equal(lp_file_version a, lp_file_version b);

/* An atomic file writer: data goes to a new temporary file in the same folder; commit syncs it and renames it to path. The
 * temporary file has no name until commit where the file system supports that, otherwise it is PATH.<random>.tmp.
 * Several writers of one path may run at once: each file is whole, and the last commit remains. Standard output ("-") and an
 * existing device or pipe at path are written directly. A symbolic link stays, and its target is replaced; a link to a missing file
 * is an error. */
typedef struct lp_writer {
    int handle;
    char *path, *temporary; /* owned; temporary is NULL if path is written directly, "" while it has no name */
    char *data;             /* owned; write buffer */
    size_t used;
    uint64_t written; /* bytes added so far */
} lp_writer;

lapse_status lp_writer_open(lp_writer *writer, const char *path, lapse_error *error);
lapse_status lp_writer_add(lp_writer *writer, const void *data, size_t size, lapse_error *error);
lapse_status lp_writer_print(lp_writer *writer, lapse_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds zero bytes until the offset is a multiple of `alignment`. */
lapse_status lp_writer_pad(lp_writer *writer, size_t alignment, lapse_error *error);
/* Syncs and renames. Closes the writer in any case; on failure the file at path is unchanged. */
lapse_status lp_writer_commit(lp_writer *writer, lapse_error *error);
/* Discards the temporary file and closes the writer. No effect after commit and on {0}. */
void lp_writer_abandon(lp_writer *writer);

/* For tests: gives every temporary file a name, as on a file system without unnamed files. */
void lp_writer_name_always(bool always);

#endif
