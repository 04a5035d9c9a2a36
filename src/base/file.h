/* file.h: files as the rest of Lapse wants them: mapped whole, or written aside, synced and renamed. */
#ifndef LP_FILE_H
#define LP_FILE_H

#include "base/error.h"

/* A file mapped read-only. size 0 has data == NULL. */
typedef struct lp_map {
    const char *data;
    size_t size;
} lp_map;

lapse_status lp_map_open(lp_map *map, const char *path, lapse_error *error);
void lp_map_close(lp_map *map);

/* A file being written beside its final place: path appears, whole, at commit, or not at all. Standard output ("-"), and
 * a device or a pipe that exists at path, are written as it comes. A link is followed, and stays. */
typedef struct lp_writer {
    int handle;
    char *path, *aside; /* owned; aside is NULL where it is written as it comes */
    char *data;         /* owned; bytes not yet handed to the system */
    size_t used;
    uint64_t written; /* bytes so far: the offset of the next one */
} lp_writer;

lapse_status lp_writer_open(lp_writer *writer, const char *path, lapse_error *error);
lapse_status lp_writer_add(lp_writer *writer, const void *data, size_t size, lapse_error *error);
lapse_status lp_writer_print(lp_writer *writer, lapse_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Zero bytes until the offset is a multiple of `alignment`. */
lapse_status lp_writer_pad(lp_writer *writer, size_t alignment, lapse_error *error);
/* Syncs and renames. The writer is closed either way; on failure nothing has changed at path. */
lapse_status lp_writer_commit(lp_writer *writer, lapse_error *error);
/* Gives the file up. Harmless after commit and on {0}. */
void lp_writer_abandon(lp_writer *writer);

#endif
