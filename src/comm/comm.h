/* comm.h: the communicator: the processes (ranks) that train one model or evaluate one together.
 *
 * Engines move bytes, the library adds numbers: a sum by MPI or NCCL depends on the number of ranks, their topology and the size of the
 * message. Every collective is one exchange: a message to some ranks and one from some, both of known sizes, with a tag and a deadline.
 * The first failure of a communicator stays: later exchanges do nothing, and lp_comm_check reports it.
 *
 * NULL is the communicator of a process alone.
 */
#ifndef LP_COMM_H
#define LP_COMM_H

#include "base/error.h"
#include "lapse_lab.h"

struct lapse_comm {
    lapse_comm_functions functions;
    uint32_t collectives;          /* so far: their tags */
    double seconds;                /* deadline of a collective */
    char phase[96];                /* what the run is doing, such as "epoch 2, step 31" */
    char failure[512];             /* the first one; "": none */
    lapse_exchange_status failed;  /* its kind */
    lapse_message *send, *receive; /* [size]: of the next exchange, filled by its caller; owned */
    bool *missing, *flags;         /* [size]; owned */
    int64_t *numbers;              /* [size + 1]: for callers; owned */
    volatile int hurry;            /* lapse_comm_hurry */
};

static inline int lp_comm_size(const lapse_comm *comm)
{
    return comm ? comm->functions.size : 1;
}

static inline int lp_comm_rank(const lapse_comm *comm)
{
    return comm ? comm->functions.rank : 0;
}

/* The first of `count` things that rank `rank` has, when they are divided evenly and in order; of rank `size`: their end. */
static inline int64_t lp_comm_begin(const lapse_comm *comm, int64_t count, int rank)
{
    return count / lp_comm_size(comm) * rank + count % lp_comm_size(comm) * rank / lp_comm_size(comm);
}

/* The most that a rank has of `count` things that are divided so. */
static inline int64_t lp_comm_most(const lapse_comm *comm, int64_t count)
{
    return (count + lp_comm_size(comm) - 1) / lp_comm_size(comm);
}

/* Sends and receives the messages in comm->send and comm->receive, and clears them. `what` is for the sentence of a failure: "adding
 * gradients". False after a failure. */
bool lp_comm_exchange(lapse_comm *comm, const char *what);

/* Every rank has its part of an array, which begins at byte begin[rank] and ends at begin[rank + 1]; afterwards all have all of it. */
bool lp_comm_gather(lapse_comm *comm, const char *what, void *all, const size_t *begin);

/* The same with parts of `size` bytes. */
bool lp_comm_gather_equal(lapse_comm *comm, const char *what, void *all, size_t size);

/* The failure of a rank that is out of memory. Returns false. */
bool lp_comm_fail_memory(lapse_comm *comm);

/* Whether a flag is set on any rank. */
bool lp_comm_any(lapse_comm *comm, const char *what, bool flag);

/* Fails after a failed exchange. */
lapse_status lp_comm_check(const lapse_comm *comm, lapse_error *error);

/* Fails unless `text`, lines of "name value", is that of rank 0 on every rank: the sentence has the first line that differs. */
lapse_status lp_comm_same(lapse_comm *comm, const char *what, const char *text, lapse_error *error);

#endif
