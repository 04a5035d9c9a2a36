/* evaluator_ranks.c: the parts of an evaluation that is divided among ranks, put together. */
#include "evaluate/evaluator.h"

#include <string.h>

void lp_evaluator_gather(lp_evaluator *evaluator, void *cases, size_t size)
{
    lapse_comm *comm = evaluator->comm;
    const int64_t *first = comm->numbers;
    for (int r = 0; r < lp_comm_size(comm); r++)
        if (r != lp_comm_rank(comm)) {
            comm->send[r] = (lapse_message){(char *)cases + (size_t)evaluator->own_first * size,
                                            (size_t)(evaluator->own_end - evaluator->own_first) * size};
            comm->receive[r] =
                (lapse_message){(char *)cases + (size_t)first[r] * size, (size_t)(first[r + 1] - first[r]) * size};
        }
    lp_comm_exchange(comm, "evaluating");
}

/* The same for an array whose part of this rank begins at 0. */
static void move_and_gather(lp_evaluator *evaluator, void *cases, size_t size)
{
    memmove((char *)cases + (size_t)evaluator->own_first * size, cases,
            (size_t)(evaluator->own_end - evaluator->own_first) * size);
    lp_evaluator_gather(evaluator, cases, size);
}

static void join(lp_evaluator *evaluator)
{
    lapse_comm *comm = evaluator->comm;
    int ranks = lp_comm_size(comm), rank = lp_comm_rank(comm);
    int64_t count = evaluator->case_count, *first = comm->numbers;
    first[rank + 1] = count;
    if (!lp_comm_gather_equal(comm, "evaluating", first + 1, sizeof *first))
        return;
    first[0] = 0;
    for (int r = 0; r < ranks; r++)
        first[r + 1] += first[r];
    evaluator->own_first = first[rank];
    evaluator->own_end = first[rank] + count;
    evaluator->case_count = first[ranks];
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        if (evaluator->predictions[t].cases)
            move_and_gather(evaluator, evaluator->predictions[t].cases, sizeof *evaluator->predictions[t].cases);
    if (evaluator->time.width)
        move_and_gather(evaluator, evaluator->time.cases, sizeof *evaluator->time.cases);
    int64_t batches = lp_evaluator_batches(evaluator);
    for (int r = 0; r < ranks; r++)
        if (r != rank) {
            int64_t mine = lp_comm_begin(comm, batches, rank), theirs = lp_comm_begin(comm, batches, r);
            size_t size = sizeof *evaluator->batch_open_nll;
            comm->send[r] = (lapse_message){evaluator->batch_open_nll + mine,
                                            (size_t)(lp_comm_begin(comm, batches, rank + 1) - mine) * size};
            comm->receive[r] = (lapse_message){evaluator->batch_open_nll + theirs,
                                               (size_t)(lp_comm_begin(comm, batches, r + 1) - theirs) * size};
        }
    lp_comm_exchange(comm, "evaluating");
}

void lp_evaluator_join(lp_evaluator *evaluator)
{
    evaluator->own_first = 0;
    evaluator->own_end = evaluator->case_count;
    if (evaluator->comm)
        join(evaluator);
    evaluator->open_nll = 0;
    for (int64_t i = 0; i < lp_evaluator_batches(evaluator); i++)
        evaluator->open_nll += evaluator->batch_open_nll[i];
}
