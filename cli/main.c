/* main.c: finds the verb, parses its options, runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lookup.h"
#include "paths.h"
#include "ranks.h"
#include "import_question.h"
#include "verb.h"

/* clang-format off */
static const cli_verb *const verbs[] = {
    &cli_verb_demo, &cli_verb_simulate, &cli_verb_import, &cli_verb_info, &cli_verb_check, &cli_verb_pretrain, &cli_verb_train,
    &cli_verb_compare, &cli_verb_tune, &cli_verb_eval, &cli_verb_predict, &cli_verb_forecast, &cli_verb_serve, &cli_verb_store, &cli_verb_inspect,
    &cli_verb_kernel, &cli_verb_bound, &cli_verb_bench, &cli_verb_help, NULL,
};
/* clang-format on */

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

/* Opens closed standard descriptors on the null device. Otherwise the next file that the process opens gets such a number, and
 * messages are written into that file. */
static void open_standard_descriptors(void)
{
    for (int handle = STDIN_FILENO; handle <= STDERR_FILENO; handle++)
        if (fcntl(handle, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", handle == STDIN_FILENO ? O_RDONLY : O_WRONLY) != handle)
            _exit(CLI_FAILED);
}

/* Reading a mapped page beyond the end of a truncated file raises SIGBUS. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static const char text[] = "lapse: a file was truncated by another process while it was being read\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL); /* the instruction runs again and ends the process */
        return;
    }
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(CLI_FAILED);
}

static void watch_bus_errors(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
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
    int status =
        cli_settings_whole(verb, settings) ? cli_options_parse(call, settings, &help) : cli_fail("out of memory");
    if (status == CLI_DONE && help != CLI_HELP_NONE)
        status = cli_help_verb(stdout, verb, help == CLI_HELP_ALL) ? CLI_DONE : cli_fail("out of memory");
    else if (status == CLI_DONE && (status = cli_paths_check(call, settings)) == CLI_DONE &&
             (status = cli_ranks_open(verb)) == CLI_DONE)
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
    open_standard_descriptors();
    cli_ranks_begin();
    watch_bus_errors();
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
    else {
        cli_question_command(&call);
        status = run_verb(&call);
    }
    status = cli_ranks_end(status);
    /* A full disk or a closed pipe is reported only by the flush; output that is lost is a failure. */
    if (fflush(stdout) != 0)
        return cli_fail("cannot write to standard output: %s", strerror(errno));
    if (ferror(stdout)) /* an earlier write failed, and its errno is gone */
        return cli_fail("cannot write to standard output");
    return status;
}
