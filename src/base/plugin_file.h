/* plugin_file.h: plugins: shared libraries that are loaded at their first use, so that the library depends on none of what they need. */
#ifndef LP_PLUGIN_FILE_H
#define LP_PLUGIN_FILE_H

#include <stddef.h>

/* Opens a plugin: the file at the path in the environment variable, or else the one of this name beside the library (or the program that
 * contains it, or in the library folder of its installed tree). The path is absolute, so that the dynamic linker searches nothing, least of
 * all the current folder. NULL: it cannot be opened, and `why` says so; `built` is the sentence about what builds it. */
void *lp_plugin_open(const char *file, const char *variable, const char *built, char *why, size_t size);

#endif
