/* rank_sums.h: the gradients of a step whose shards are divided among ranks, added along the tree of reduce.h.
 *
 * A rank computes a run of shards and adds their gradients to one vector for each maximal node of the tree inside the run: one, where the
 * number of ranks is a power of two that divides that of shards. Elements are divided among the ranks too: each gets its elements of
 * all nodes, adds them in the order of the tree and sends the sums to all. So a rank sends and receives twice the gradient, whatever the
 * number of ranks, and the sums have the bits of one process.
 *
 * Of tables only the rows travel that the batch uses: their ids, and the vectors of the nodes that use them.
 */
#ifndef LP_RANK_SUMS_H
#define LP_RANK_SUMS_H

#include "backend/backend.h"
#include "comm/comm.h"

typedef struct lp_rank_sums {
    lapse_comm *comm; /* NULL: one process, and the rest is empty */
    int shards, stride;
    int tables; /* of the optimizer, where they are divided */
    int nodes;
    uint32_t *node;  /* [nodes + 1]: the first shard of each node; owned */
    int *first_node; /* [ranks + 1]: nodes of each rank; owned */
    char *headers;   /* [ranks x header_size]; owned */
    size_t header_size;
    int32_t *
        lists; /* [ranks x 2 stride]: the items of a rank, then for each the nodes of the rank that use it, as bits; owned */
    int *counts; /* [ranks]: items; owned */
    int64_t
        items; /* of divided item tables: a row is added up by the rank that has it, and nobody else gets the sum; 0: not divided */
    int32_t *order; /* [joined.count]: the joined rows by the rank that adds them up; owned */
    int *first_row; /* [ranks + 1]: where the rows of each rank begin in `order`; owned */
    double *norms;  /* [entries x LP_TABLE_LIMIT]: lp_adam.row_norms; owned. Those on the way follow */
    lp_row_union
        joined; /* of the items of all ranks: its rows are the gradients of the first entries of row_gradients */
    float *sent, *received, *sums; /* owned */
    size_t sent_size, received_size, sums_size;
    size_t *begin; /* [ranks + 1]; owned */
    const float **leaf;
    uint32_t *leaf_shard; /* [nodes]; owned, as is leaf */
    bool stopped;         /* in the newest step a rank wanted to stop */
} lp_rank_sums;

/* item_capacity: of a shard; 0: there are no tables. items: of tables that are divided among the ranks (model/item_rows.h); 0: all ranks have
 * all of them. */
lapse_status lp_rank_sums_init(lp_rank_sums *sums, lapse_comm *comm, int shards, int item_capacity, int64_t items,
                               lapse_error *error);
void lp_rank_sums_clear(lp_rank_sums *sums);

/* The shards of this rank. */
static inline int lp_rank_sums_first(const lp_rank_sums *sums)
{
    return (int)lp_comm_begin(sums->comm, sums->shards, lp_comm_rank(sums->comm));
}

static inline int lp_rank_sums_end(const lp_rank_sums *sums)
{
    return (int)lp_comm_begin(sums->comm, sums->shards, lp_comm_rank(sums->comm) + 1);
}

/* Adds the gradients of all shards, of which those of this rank are in `adam`, with the rows of their tables (NULL: none). Afterwards the sums
 * are where lp_backend.reduce puts them, for the rows that it returns; `losses` [shards] has those of all ranks, and `stopped` tells
 * whether `stop` was set on any. After a failure of the communicator the result is undefined (lp_comm_check). */
const lp_row_union *lp_rank_sums_add(lp_rank_sums *sums, lp_adam *adam, const lp_row_union *rows,
                                     lp_batch_vocabulary *lists, float *losses, bool stop);

/* Lets the optimizer update the rows of divided tables that this rank has, after lp_adam_init. */
void lp_rank_sums_divide(lp_rank_sums *sums, lp_adam *adam);

#endif
