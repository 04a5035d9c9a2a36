/* process.h: what differs between systems in starting processes. process_linux.c and process_darwin.c implement it; the build takes one. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* The path of this program, which may be started again. */
bool cli_process_path(char *path, size_t size);

/* From now on this process ends when its parent ends. */
void cli_process_follow_parent(void);

/* A file in memory or without a name; -1 if there is none. */
int cli_process_scratch(const char *name);

#endif
