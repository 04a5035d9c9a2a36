/* verb_help.c: `lapse help`: prints the list of verbs, the help of one verb, or the man page that the build installs. */
#include <string.h>

#include "verb.h"

typedef struct help_settings {
    const char *verb, *extent;
    bool man, completion;
} help_settings;

static int run(void *settings, const cli_call *call)
{
    const help_settings *s = settings;
    if (s->man)
        return cli_help_man(stdout) ? CLI_DONE : cli_fail("out of memory");
    if (s->completion) {
        cli_help_completion(stdout);
        return CLI_DONE;
    }
    if (!s->verb) {
        cli_help_verbs(stdout);
        return CLI_DONE;
    }
    const cli_verb *verb = cli_verb_find(s->verb);
    if (!verb)
        return CLI_USAGE;
    if (s->extent && strcmp(s->extent, "all") != 0)
        return cli_usage(call->verb, "help: unexpected argument '%s'; only 'all' may follow the verb", s->extent);
    return cli_help_verb(stdout, verb, s->extent != NULL) ? CLI_DONE : cli_fail("out of memory");
}

static const cli_argument arguments[] = {
    {"VERB", offsetof(help_settings, verb), "verb to explain (default: list all verbs)", true, CLI_NO_FILE},
    {"all", offsetof(help_settings, extent), "include the advanced options", true, CLI_NO_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "man", .type = CLI_FLAG, .offset = offsetof(help_settings, man), .help = "man page in troff format, instead of help"},
    {.name = "completion", .type = CLI_FLAG, .offset = offsetof(help_settings, completion),
     .help = "completion for bash (and zsh, after bashcompinit), instead of help"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse help train", "lapse help train all", "lapse help --man | man -l -",
                                       "source <(lapse help --completion)", NULL};

const cli_verb cli_verb_help = {
    .name = "help",
    .summary = "explain a verb, or print the man page",
    .description = "Explains a verb: its arguments, its options and their defaults. `lapse help VERB` is the same as "
                   "`lapse VERB --help`, and `lapse help VERB all` the same as `lapse VERB --help all`.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(help_settings),
    .run = run,
};
