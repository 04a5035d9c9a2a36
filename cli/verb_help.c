/* verb_help.c: `lapse help`: the verbs, one verb, or the man page that the build installs. */
#include "verb.h"

typedef struct help_settings {
    const char *verb;
    bool man;
} help_settings;

static int run(void *settings, const cli_call *call)
{
    const help_settings *s = settings;
    if (s->man) {
        cli_help_man(stdout);
        return CLI_DONE;
    }
    if (!s->verb) {
        cli_help_all(stdout);
        return CLI_DONE;
    }
    const cli_verb *verb = cli_verb_find(s->verb);
    if (!verb)
        return cli_usage(call->verb, "there is no verb '%s'", s->verb);
    cli_help_verb(stdout, verb);
    return CLI_DONE;
}

static const cli_argument arguments[] = {
    {"VERB", offsetof(help_settings, verb), "the verb to explain; all of them where none is named", true},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "man", .type = CLI_FLAG, .offset = offsetof(help_settings, man), .help = "print the man page, in troff"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse help train", "lapse help --man | man -l -", NULL};

const cli_verb cli_verb_help = {
    .name = "help",
    .summary = "explain a verb, or print the man page",
    .description = "Explains a verb: what it takes, what it does, and the defaults in use. `lapse help VERB` is "
                   "`lapse VERB --help`.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(help_settings),
    .run = run,
};
