/* comm.c: collectives over a communicator's table of functions. */
#include "comm/comm.h"

#include "base/memory.h"
#include "base/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEADLINE = 30, LONGEST = 86400 }; /* seconds */

/* The deadline in LAPSE_COMM_TIMEOUT. */
static lapse_status deadline(double *seconds, lapse_error *error)
{
    const char *text = getenv("LAPSE_COMM_TIMEOUT");
    char *end = NULL;
    *seconds = text && *text ? strtod(text, &end) : DEADLINE;
    if ((end && *end) || !(*seconds > 0 && *seconds <= LONGEST))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "LAPSE_COMM_TIMEOUT is '%.40s'; it must be a number of seconds up to %d", text, (int)LONGEST);
    return LAPSE_OK;
}

lapse_status lapse_comm_new(const lapse_comm_functions *functions, lapse_comm **comm, lapse_error *error)
{
    LP_REQUIRE(error, functions, comm);
    LP_REQUIRE(error, functions->exchange);
    if (functions->size < 1 || functions->rank < 0 || functions->rank >= functions->size)
        return lp_fail(error, LAPSE_ERROR_USAGE, "rank %d of %d: a rank is a number from 0 to the size - 1",
                       functions->rank, functions->size);
    double seconds;
    LP_TRY(deadline(&seconds, error));
    size_t size = (size_t)functions->size;
    lapse_comm *made = lp_alloc(1, sizeof *made);
    if (made) {
        *made = (lapse_comm){.functions = *functions, .seconds = seconds, .phase = "the start"};
        made->send = lp_alloc(size, sizeof *made->send);
        made->receive = lp_alloc(size, sizeof *made->receive);
        made->missing = lp_alloc(size, sizeof *made->missing);
        made->flags = lp_alloc(size, sizeof *made->flags);
        made->numbers = lp_alloc(size + 1, sizeof *made->numbers);
    }
    if (made && made->send && made->receive && made->missing && made->flags && made->numbers) {
        *comm = made;
        return LAPSE_OK;
    }
    if (made)
        made->functions.close = NULL;
    lapse_comm_free(made);
    return lp_fail_memory(error, "a communicator", sizeof *made + size * sizeof *made->send);
}

void lapse_comm_free(lapse_comm *comm)
{
    if (!comm)
        return;
    if (comm->functions.close)
        comm->functions.close(comm->functions.context);
    lp_free(comm->send);
    lp_free(comm->receive);
    lp_free(comm->missing);
    lp_free(comm->flags);
    lp_free(comm->numbers);
    lp_free(comm);
}

int lapse_comm_rank(const lapse_comm *comm)
{
    return lp_comm_rank(comm);
}

int lapse_comm_size(const lapse_comm *comm)
{
    return lp_comm_size(comm);
}

void lapse_comm_hurry(lapse_comm *comm)
{
    comm->hurry = 1;
}

lapse_exchange_status lapse_comm_failure(const lapse_comm *comm)
{
    return comm ? comm->failed : LAPSE_EXCHANGE_DONE;
}

void lapse_comm_fail(lapse_comm *comm, const char *sentence)
{
    if (comm && comm->functions.fail)
        comm->functions.fail(comm->functions.context, sentence);
}

void lapse_comm_abort(lapse_comm *comm)
{
    if (comm && comm->functions.abort)
        comm->functions.abort(comm->functions.context);
}

int lapse_comm_threads(const lapse_comm *comm)
{
    int own = lp_threads_available(), all = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int share = all / (comm && comm->functions.local_size > 1 ? comm->functions.local_size : 1);
    return share < 1 ? 1 : share < own ? share : own;
}

/* "rank 2", "ranks 2 and 3", "ranks 1, 2, 5 and 60 others". */
static void name_missing(const lapse_comm *comm, char *text, size_t size)
{
    enum { NAMED = 8 };
    int count = 0, named = 0;
    for (int r = 0; r < comm->functions.size; r++)
        count += comm->missing[r];
    size_t at = (size_t)snprintf(text, size, count == 1 ? "rank" : "ranks");
    for (int r = 0; r < comm->functions.size && named < NAMED; r++)
        if (comm->missing[r]) {
            const char *between = named == 0 ? " " : named + 1 == count ? " and " : ", ";
            at += (size_t)snprintf(text + at, size - at, "%s%d", between, r);
            named++;
        }
    if (count > named)
        snprintf(text + at, size - at, " and %d others", count - named);
}

static void note_late(lapse_comm *comm, const char *what)
{
    char who[128];
    name_missing(comm, who, sizeof who);
    snprintf(comm->failure, sizeof comm->failure,
             "%s did not answer within %g s (%s, %s, collective %u): killed, stopped, out of memory or cut off from "
             "rank %d%s",
             who, comm->hurry ? 0.3 : comm->seconds, comm->phase, what, (unsigned)comm->collectives,
             comm->functions.rank,
             comm->hurry ? "" : "; if a step of this run may take longer, set LAPSE_COMM_TIMEOUT to more seconds");
}

bool lp_comm_exchange(lapse_comm *comm, const char *what)
{
    size_t size = (size_t)comm->functions.size;
    char why[400] = "";
    if (!*comm->failure) {
        memset(comm->missing, 0, size * sizeof *comm->missing);
        lapse_exchange exchange = {.tag = comm->collectives++,
                                   .send = comm->send,
                                   .receive = comm->receive,
                                   .seconds = comm->seconds,
                                   .hurry = &comm->hurry,
                                   .missing = comm->missing,
                                   .why = why,
                                   .why_size = sizeof why};
        comm->failed = comm->functions.exchange(comm->functions.context, &exchange);
        if (comm->failed == LAPSE_EXCHANGE_LATE)
            note_late(comm, what);
        else if (comm->failed == LAPSE_EXCHANGE_TOLD)
            snprintf(comm->failure, sizeof comm->failure, "%s", *why ? why : "another rank has failed");
        else if (comm->failed != LAPSE_EXCHANGE_DONE)
            snprintf(comm->failure, sizeof comm->failure,
                     "the ranks could not exchange data (%s, %s, collective %u): %s", comm->phase, what,
                     (unsigned)comm->collectives, *why ? why : "no reason is known");
    }
    memset(comm->send, 0, size * sizeof *comm->send);
    memset(comm->receive, 0, size * sizeof *comm->receive);
    return !*comm->failure;
}

bool lp_comm_gather(lapse_comm *comm, const char *what, void *all, const size_t *begin)
{
    int rank = lp_comm_rank(comm);
    for (int r = 0; r < lp_comm_size(comm); r++) {
        if (r == rank)
            continue;
        comm->send[r] = (lapse_message){(char *)all + begin[rank], begin[rank + 1] - begin[rank]};
        comm->receive[r] = (lapse_message){(char *)all + begin[r], begin[r + 1] - begin[r]};
    }
    return lp_comm_size(comm) == 1 || lp_comm_exchange(comm, what);
}

bool lp_comm_gather_equal(lapse_comm *comm, const char *what, void *all, size_t size)
{
    int rank = lp_comm_rank(comm);
    for (int r = 0; r < lp_comm_size(comm); r++) {
        if (r == rank)
            continue;
        comm->send[r] = (lapse_message){(char *)all + (size_t)rank * size, size};
        comm->receive[r] = (lapse_message){(char *)all + (size_t)r * size, size};
    }
    return lp_comm_size(comm) == 1 || lp_comm_exchange(comm, what);
}

bool lp_comm_fail_memory(lapse_comm *comm)
{
    if (!*comm->failure)
        snprintf(comm->failure, sizeof comm->failure, "out of memory");
    return false;
}

bool lp_comm_any(lapse_comm *comm, const char *what, bool flag)
{
    if (lp_comm_size(comm) == 1)
        return flag;
    comm->flags[lp_comm_rank(comm)] = flag;
    bool any = flag;
    if (lp_comm_gather_equal(comm, what, comm->flags, sizeof *comm->flags))
        for (int r = 0; r < lp_comm_size(comm); r++)
            any = any || comm->flags[r];
    return any;
}

lapse_status lapse_comm_barrier(lapse_comm *comm, lapse_error *error)
{
    lp_comm_any(comm, "waiting for all ranks", false);
    return lp_comm_check(comm, error);
}

lapse_status lp_comm_check(const lapse_comm *comm, lapse_error *error)
{
    return comm && *comm->failure ? lp_fail(error, LAPSE_ERROR_COMM, "%s", comm->failure) : LAPSE_OK;
}

/* The first line in which two texts differ: its name, and both values. */
static void first_difference(const char *a, const char *b, char name[40], char values[2][80])
{
    while (*a && *b) {
        size_t left = strcspn(a, "\n"), right = strcspn(b, "\n");
        if (left != right || strncmp(a, b, left) != 0)
            break;
        a += left + (a[left] == '\n');
        b += right + (b[right] == '\n');
    }
    const char *line = *a ? a : b;
    snprintf(name, 40, "%.*s", (int)strcspn(line, " \n"), line);
    const char *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const char *value = both[i] + strcspn(both[i], " \n");
        value += *value == ' ';
        snprintf(values[i], 80, "%.*s", (int)strcspn(value, "\n"), value);
    }
}

lapse_status lp_comm_same(lapse_comm *comm, const char *what, const char *text, lapse_error *error)
{
    size_t ranks = (size_t)lp_comm_size(comm), rank = (size_t)lp_comm_rank(comm);
    if (ranks == 1)
        return LAPSE_OK;
    size_t *begin = lp_alloc(2 * ranks + 1, sizeof *begin), *sizes = begin ? begin + ranks + 1 : NULL;
    if (!begin)
        return lp_fail_memory(error, "a communicator", (2 * ranks + 1) * sizeof *begin);
    sizes[rank] = strlen(text) + 1;
    lp_comm_gather_equal(comm, what, sizes, sizeof *sizes);
    for (size_t r = 0; r < ranks; r++)
        begin[r + 1] = begin[r] + sizes[r];
    char *all = lp_alloc_raw(begin[ranks], 1);
    lapse_status status = all ? LAPSE_OK : lp_fail_memory(error, "a communicator", begin[ranks]);
    if (all) {
        memcpy(all + begin[rank], text, sizes[rank]);
        lp_comm_gather(comm, what, all, begin);
        status = lp_comm_check(comm, error);
    }
    for (size_t r = 1; status == LAPSE_OK && r < ranks; r++) {
        if (strcmp(all, all + begin[r]) == 0)
            continue;
        char name[40], values[2][80];
        first_difference(all, all + begin[r], name, values);
        status = lp_fail(error, LAPSE_ERROR_USAGE,
                         "ranks 0 and %d disagree: %s is '%s' on rank 0 and '%s' on rank %d; all ranks must have the "
                         "same%s",
                         (int)r, name, values[0], values[1], (int)r,
                         strcmp(name, "cpu-level") == 0 ? " (set LAPSE_CPU_LEVEL to the lower level)" : "");
    }
    lp_free(all);
    lp_free(begin);
    return status;
}
