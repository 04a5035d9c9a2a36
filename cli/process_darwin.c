/* process_darwin.c: see process.h. Compiled, but not run. */
#include "process.h"

#include <fcntl.h>
#include <mach-o/dyld.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool cli_process_path(char *path, size_t size)
{
    uint32_t space = (uint32_t)size;
    return _NSGetExecutablePath(path, &space) == 0;
}

static void *follow(void *parent)
{
    while (getppid() == (pid_t)(intptr_t)parent)
        usleep(100000);
    _exit(EXIT_FAILURE);
}

void cli_process_follow_parent(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, follow, (void *)(intptr_t)getppid()) == 0)
        pthread_detach(thread);
}

int cli_process_scratch(const char *name)
{
    (void)name;
    FILE *file = tmpfile();
    return file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
}
