/* process_linux.c: see process.h. */
#define _GNU_SOURCE /* memfd_create */
#include "process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

bool cli_process_path(char *path, size_t size)
{
    return (size_t)snprintf(path, size, "/proc/self/exe") < size;
}

void cli_process_follow_parent(void)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
}

int cli_process_scratch(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}
