/* main.c: finds the verb, parses its options, runs it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lookup.h"
#include "verb.h"

static const cli_verb *const verbs[] = {
    &cli_verb_demo,    &cli_verb_simulate,
    &cli_verb_import,  &cli_verb_info,
    &cli_verb_check,   &cli_verb_pretrain,
    &cli_verb_train,   &cli_verb_eval,
    &cli_verb_predict, &cli_verb_kernel,
    &cli_verb_bound,   &cli_verb_bench,
    &cli_verb_help,    NULL,
};

const cli_verb *const *cli_verbs(void)
{
    return verbs;
}

const cli_verb *cli_verb_find(const char *name)
{
    const char *names[sizeof verbs / sizeof *verbs] = {NULL};
    for (int i = 0; verbs[i]; i++)
        names[i] = verbs[i]->name;
    int found = cli_name_find(names, name, strlen(name));
    if (found >= 0)
        return verbs[found];
    const char *near = cli_name_nearest(name, names);
    if (near)
        cli_usage(NULL, "unknown verb '%s'; did you mean %s?", name, near);
    else
        cli_usage(NULL, "unknown verb '%s'", name);
    return NULL;
}

static int run_verb(const cli_call *call)
{
    const cli_verb *verb = call->verb;
    cli_help help = CLI_HELP_NONE;
    void *settings = calloc(1, verb->size ? verb->size : 1);
    if (!settings)
        return cli_fail("out of memory");
    if (verb->defaults)
        verb->defaults(settings);
    int status = cli_options_parse(call, settings, &help);
    if (status == CLI_DONE && help != CLI_HELP_NONE)
        cli_help_verb(stdout, verb, help == CLI_HELP_ALL);
    else if (status == CLI_DONE)
        status = verb->run(settings, call);
    cli_options_clear(verb, settings);
    if (verb->clear)
        verb->clear(settings);
    free(settings);
    return status;
}

int main(int argc, char **argv)
{
    cli_call call = {NULL, argc, argv};
    int status = CLI_DONE;
    if (argc < 2) {
        cli_help_verbs(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        cli_help_verbs(stdout);
    else if (strcmp(argv[1], "--version") == 0)
        printf("lapse %s\n", lapse_version());
    else if (argv[1][0] == '-')
        status = cli_usage(NULL, "the first argument must be a verb, not '%s'", argv[1]);
    else if ((call.verb = cli_verb_find(argv[1])) == NULL)
        status = CLI_USAGE;
    else
        status = run_verb(&call);
    /* A full disk or a closed pipe is reported only by the flush; output that is lost is a failure. */
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail("cannot write to standard output: %s", strerror(errno));
    return status;
}
