/* ranks.c: what a process does as one of several ranks. */
#include "ranks.h"

#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int rank, size;
    int messages; /* what this rank printed on standard error, while it is silent; -1: it is not */
    int error;    /* its standard error */
    lapse_comm *comm;
} ranks = {0, 1, -1, -1, NULL};

lapse_comm *cli_ranks(void)
{
    return ranks.comm;
}

bool cli_ranks_first(void)
{
    return ranks.rank == 0;
}

int cli_ranks_divide(lapse_dataset **histories)
{
    int64_t count = lapse_dataset_sequence_count(*histories), first = count * ranks.rank / ranks.size;
    int64_t own = count * (ranks.rank + 1) / ranks.size - first;
    if (ranks.size == 1)
        return CLI_DONE;
    if (count < ranks.size)
        return cli_fail("%lld histories cannot be divided among %d ranks: start fewer", (long long)count, ranks.size);
    int64_t *chosen = calloc((size_t)own, sizeof *chosen);
    lapse_dataset *part = NULL;
    lapse_error error;
    for (int64_t i = 0; chosen && i < own; i++)
        chosen[i] = first + i;
    lapse_status status = chosen ? lapse_dataset_select(*histories, chosen, own, &part, &error) : LAPSE_ERROR_MEMORY;
    free(chosen);
    if (status != LAPSE_OK)
        return chosen ? cli_error(&error) : cli_fail("out of memory");
    lapse_dataset_close(*histories);
    *histories = part;
    return CLI_DONE;
}

void cli_ranks_begin(void)
{
    if (!lapse_comm_launched(&ranks.rank, &ranks.size))
        return;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* the launcher forwards what is written at once as a whole */
    if (ranks.rank == 0)
        return;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ranks.error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    ranks.messages = cli_process_scratch("messages");
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    if (ranks.messages >= 0)
        dup2(ranks.messages, STDERR_FILENO);
}

/* A launcher ends its processes a moment after this signal. */
static void on_terminate(void)
{
    if (ranks.comm)
        lapse_comm_hurry(ranks.comm);
}

int cli_ranks_open(const cli_verb *verb)
{
    lapse_error error;
    if (ranks.size == 1)
        return CLI_DONE;
    if (!verb->ranks)
        return cli_usage(verb, "%s runs in one process: start it without %d ranks", verb->name, ranks.size);
    if (lapse_comm_open(&ranks.comm, &error) != LAPSE_OK)
        return cli_error(&error);
    cli_on_terminate = on_terminate;
    return CLI_DONE;
}

/* The last message that this rank has printed, without "lapse: ". */
static void last_message(char *text, size_t size)
{
    char all[4096];
    fflush(stderr);
    off_t end = lseek(ranks.messages, 0, SEEK_END),
          from = end > (off_t)sizeof all - 1 ? end - (off_t)sizeof all + 1 : 0;
    ssize_t length = end > 0 ? pread(ranks.messages, all, (size_t)(end - from), from) : 0;
    all[length > 0 ? length : 0] = '\0';
    char *line = all;
    for (char *at = all; (at = strstr(at, "lapse: ")); at += 7)
        if ((at == all || at[-1] == '\n') && strncmp(at + 7, "see `", 5) != 0) /* that is about the help */
            line = at + 7;
    line[strcspn(line, "\n")] = '\0';
    snprintf(text, size, "rank %d: %.380s", ranks.rank, *line ? line : "it failed without a message");
}

/* Tells the others why, unless they know it already, and ends all. */
static void fail(void)
{
    char text[400] = "rank 0 has failed";
    bool told = lapse_comm_failure(ranks.comm) == LAPSE_EXCHANGE_TOLD;
    if (ranks.rank > 0)
        last_message(text, sizeof text);
    if (lapse_comm_failure(ranks.comm) == LAPSE_EXCHANGE_DONE)
        lapse_comm_fail(ranks.comm, text);
    else if (ranks.rank > 0 && !told)
        dprintf(ranks.error, "lapse: %s\n", text);
    if (ranks.rank > 0 && lapse_comm_failure(ranks.comm) != LAPSE_EXCHANGE_LATE)
        sleep(10); /* rank 0 says why and ends all, unless it works by itself */
    if (ranks.rank > 0 && lapse_comm_failure(ranks.comm) == LAPSE_EXCHANGE_DONE)
        dprintf(ranks.error, "lapse: %s\n", text);
    fflush(stdout);
    signal(SIGALRM, SIG_DFL);
    fflush(stderr);
    usleep(300000); /* the launcher forwards what was printed, before it ends all */
    alarm(5);       /* the engine may wait for a rank that is gone */
    lapse_comm_abort(ranks.comm);
}

int cli_ranks_end(int status)
{
    bool failed = status != CLI_DONE && status != CLI_INTERRUPTED;
    if (failed && ranks.comm)
        fail();
    else if (failed &&
             ranks.size >
                 1) /* the launcher ends all when the first fails: rank 0 says why, and what it said is forwarded */
        usleep(ranks.rank > 0 ? 2000000 : 300000);
    lapse_comm_free(ranks.comm);
    ranks.comm = NULL;
    return status;
}
