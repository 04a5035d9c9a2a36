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

/* Cases whose counts travel at once. */
enum { PARTIALS = 4096 };

lapse_status lp_evaluator_on_ranks(lp_evaluator *evaluator, lapse_comm *comm, lapse_error *error)
{
    evaluator->comm = comm;
    LP_TRY(lp_model_check_whole(evaluator->model, comm, error));
    if (!evaluator->model->divided)
        return LAPSE_OK;
    size_t cases = (size_t)evaluator->windows.targets, ranks = (size_t)lp_comm_size(comm);
    size_t tokens = (size_t)evaluator->batch.capacity_windows * (size_t)evaluator->targets.context;
    LP_TRY(lp_item_rows_init(&evaluator->item_rows, comm, &evaluator->network.graph,
                             evaluator->model->config.event_types, 1, error));
    evaluator->target_scores = lp_alloc(cases, sizeof *evaluator->target_scores);
    evaluator->partials = lp_alloc(ranks * PARTIALS, sizeof *evaluator->partials);
    evaluator->types = lp_alloc(tokens, sizeof *evaluator->types);
    return evaluator->target_scores && evaluator->partials && evaluator->types
               ? LAPSE_OK
               : lp_fail_memory(error, "evaluation", ranks * PARTIALS * sizeof *evaluator->partials);
}

/* The score of each case's target comes from the rank that has its row. */
static void share_target_scores(lp_evaluator *evaluator, const lp_rank_states *states)
{
    lapse_comm *comm = evaluator->comm;
    float *all = (float *)(void *)evaluator->partials;
    int64_t count = evaluator->case_count;
    for (int64_t first = 0; first < count; first += PARTIALS) {
        int64_t end = first + PARTIALS < count ? first + PARTIALS : count;
        size_t size = (size_t)(end - first);
        lp_ranking_target_scores(&evaluator->ranking, states, first, end, all + (size_t)lp_comm_rank(comm) * size);
        if (!lp_comm_gather_equal(comm, "ranking", all, size * sizeof *all))
            return;
        for (int64_t c = first; c < end; c++) {
            int32_t target = evaluator->ranking.setup.type[evaluator->ranking.cases[c].event];
            evaluator->target_scores[c] =
                all[(size_t)lp_item_rank(comm, evaluator->item_rows.items, target) * size + (size_t)(c - first)];
        }
    }
}

void lp_evaluator_rank_divided(lp_evaluator *evaluator, const lp_rank_states *states)
{
    lapse_comm *comm = evaluator->comm;
    lp_ranking *ranking = &evaluator->ranking;
    int ranks = lp_comm_size(comm), rank = lp_comm_rank(comm);
    lp_rank_part part = {.first_item = lp_item_begin(comm, ranking->setup.items, rank),
                         .end_item = lp_item_begin(comm, ranking->setup.items, rank + 1),
                         .target_scores = evaluator->target_scores};
    ranking->part = &part;
    move_and_gather(evaluator, evaluator->states, (size_t)states->dims * sizeof *evaluator->states);
    share_target_scores(evaluator, states);
    for (int64_t first = 0; first < evaluator->case_count && !*comm->failure; first += PARTIALS) {
        int64_t end = first + PARTIALS < evaluator->case_count ? first + PARTIALS : evaluator->case_count;
        size_t count = (size_t)(end - first);
        part.partials = evaluator->partials + (size_t)rank * count - first;
        lp_ranking_states(ranking, states, first, end);
        if (!lp_comm_gather_equal(comm, "ranking", evaluator->partials, count * sizeof *evaluator->partials))
            break;
        for (int64_t c = first; c < end; c++)
            lp_ranking_finish(ranking, c, evaluator->partials + (c - first), ranks, count);
    }
    ranking->part = NULL;
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
