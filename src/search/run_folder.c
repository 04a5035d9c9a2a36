/* run_folder.c: see run_folder.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include "search/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

lapse_status lp_run_folder_open(lp_run_folder *folder, const char *path, lapse_error *error)
{
    char lock[LP_PATH_SIZE + 8];
    *folder = (lp_run_folder){.lock = -1};
    if (!*path || strcmp(path, "none") == 0)
        return LAPSE_OK;
    if (strlen(path) >= sizeof folder->path)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the path of the folder is too long");
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return lp_fail_errno(error, "create", path);
    snprintf(lock, sizeof lock, "%s/lock", path);
    folder->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (folder->lock < 0)
        return lp_fail_errno(error, "open", lock);
    memcpy(folder->path, path, strlen(path) + 1);
    return LAPSE_OK;
}

void lp_run_folder_close(lp_run_folder *folder)
{
    if (folder->lock >= 0)
        close(folder->lock);
    *folder = (lp_run_folder){.lock = -1};
}

static struct flock lock_of(uint64_t run, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(run >> 2), .l_len = 1};
}

static bool set_lock(const lp_run_folder *folder, uint64_t run, short type)
{
    struct flock lock = lock_of(run, type);
    return folder->lock < 0 || fcntl(folder->lock, F_OFD_SETLK, &lock) == 0;
}

bool lp_run_folder_claim(const lp_run_folder *folder, uint64_t run)
{
    return set_lock(folder, run, F_WRLCK);
}

void lp_run_folder_release(const lp_run_folder *folder, uint64_t run)
{
    set_lock(folder, run, F_UNLCK);
}

bool lp_run_folder_is_elsewhere(const lp_run_folder *folder, uint64_t run)
{
    struct flock lock = lock_of(run, F_WRLCK);
    return folder->lock >= 0 && fcntl(folder->lock, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
