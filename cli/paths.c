/* paths.c: refuses a command line on which an output is the same file as an input or another output. */
#include "paths.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "console.h"

enum { MAX_FILES = 16, PATH_SIZE = 4096, LABEL_SIZE = 64 };

/* A file on the command line. */
typedef struct named_file {
    char label[LABEL_SIZE]; /* "--output" or "DATA" */
    char path[PATH_SIZE];   /* cut off at a length that no file system accepts */
    cli_file direction;
} named_file;

typedef struct file_list {
    named_file files[MAX_FILES];
    int count;
} file_list;

static void add(file_list *list, const char *dashes, const char *name, const char *path, cli_file direction)
{
    if (direction == CLI_NO_FILE || !path || !*path)
        return;
    if (direction == CLI_INPUT_FILE && strcmp(path, "-") == 0)
        path = "/dev/stdin";
    assert(list->count < MAX_FILES);
    named_file *file = &list->files[list->count++];
    file->direction = direction;
    snprintf(file->label, sizeof file->label, "%s%s", dashes, name);
    snprintf(file->path, sizeof file->path, "%s", path);
}

static void collect(const cli_verb *verb, const void *settings, file_list *list)
{
    list->count = 0;
    for (const cli_argument *argument = verb->arguments; argument->name; argument++)
        add(list, "", argument->name, *(const char *const *)((const char *)settings + argument->offset),
            argument->file);
    for (const cli_option *option = cli_verb_options(verb); option->name; option++) {
        const void *value = (const char *)settings + option->offset;
        char text[PATH_SIZE];
        if (option->file == CLI_NO_FILE)
            continue;
        if (option->type != CLI_TRAIN) {
            add(list, "--", option->name, *(const char *const *)value, option->file);
            continue;
        }
        lapse_train_options_get(((const cli_train *)value)->given, option->name, text, sizeof text);
        if (option->file == CLI_INPUT_FILE || strcmp(text, "none") != 0)
            add(list, "--", option->name, text, option->file);
    }
}

/* Whether two paths that do not exist yet have the same name in the same folder. */
static bool same_new_file(const char *a, const char *b)
{
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    char folder_a[PATH_SIZE + 1], folder_b[PATH_SIZE + 1];
    struct stat at_a, at_b;
    if (strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) != 0)
        return false;
    snprintf(folder_a, sizeof folder_a, "%.*s.", slash_a ? (int)(slash_a + 1 - a) : 0, a);
    snprintf(folder_b, sizeof folder_b, "%.*s.", slash_b ? (int)(slash_b + 1 - b) : 0, b);
    return stat(folder_a, &at_a) == 0 && stat(folder_b, &at_b) == 0 && at_a.st_dev == at_b.st_dev &&
           at_a.st_ino == at_b.st_ino;
}

static bool same_file(const char *a, const char *b)
{
    struct stat at_a, at_b;
    if (strcmp(a, b) == 0)
        return true;
    bool exists_a = stat(a, &at_a) == 0, exists_b = stat(b, &at_b) == 0;
    if (!exists_a && !exists_b)
        return same_new_file(a, b);
    /* Devices and pipes are not replaced. */
    return exists_a && exists_b && S_ISREG(at_a.st_mode) && at_a.st_dev == at_b.st_dev && at_a.st_ino == at_b.st_ino;
}

int cli_paths_check(const cli_call *call, const void *settings)
{
    static file_list list;
    collect(call->verb, settings, &list);
    for (int i = 0; i < list.count; i++)
        for (int j = 0; j < list.count; j++) {
            const named_file *output = &list.files[i], *other = &list.files[j];
            bool pair = output->direction == CLI_OUTPUT_FILE && (other->direction == CLI_INPUT_FILE || i < j);
            if (!pair || !same_file(output->path, other->path))
                continue;
            if (other->direction == CLI_INPUT_FILE)
                return cli_usage(call->verb, "%s %s would overwrite %s %s", output->label, output->path, other->label,
                                 other->path);
            return cli_usage(call->verb, "%s %s and %s %s are the same file", output->label, output->path, other->label,
                             other->path);
        }
    return CLI_DONE;
}
