/* helpers.c: see helpers.h. */
#include "helpers.h"

#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST = 5, ADDED = 6 }; /* processes; arguments of a helper, with the NULL at the end */

int cli_helpers_default(int runs)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int fitting = cores >= 4 ? (int)(cores / 2) : 1;
    fitting = fitting < MOST ? fitting : MOST;
    return fitting < runs ? fitting : runs > 1 ? runs : 1;
}

/* Results and messages are those of the process that started it. */
static bool spawn(char *const *arguments, pid_t *process)
{
    char path[4096];
    posix_spawn_file_actions_t actions;
    if (!cli_process_path(path, sizeof path) || posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool good = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
                posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawn(process, path, &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return good;
}

cli_helpers cli_helpers_start(const cli_call *call, int count, const char *folder, int threads)
{
    cli_helpers helpers = {0};
    char number[16];
    char **arguments = calloc((size_t)call->argc + ADDED, sizeof *arguments);
    helpers.processes = count > 0 ? calloc((size_t)count, sizeof *helpers.processes) : NULL;
    if (arguments && helpers.processes) {
        memcpy(arguments, call->argv, (size_t)call->argc * sizeof *arguments);
        snprintf(number, sizeof number, "%d", threads);
        char *const added[] = {"--helper", "--keep", (char *)(uintptr_t)folder, "--threads", number};
        memcpy(arguments + call->argc, added, sizeof added);
        pid_t process;
        while (helpers.count < count && spawn(arguments, &process))
            helpers.processes[helpers.count++] = process;
    }
    free(arguments);
    return helpers;
}

void cli_helpers_stop(cli_helpers *helpers)
{
    for (int i = 0; i < helpers->count; i++)
        kill(helpers->processes[i], SIGKILL);
    for (int i = 0; i < helpers->count; i++)
        waitpid(helpers->processes[i], NULL, 0);
    free(helpers->processes);
    *helpers = (cli_helpers){0};
}
