/* item_rows.h: item tables (parameters with a row per item) whose rows are divided among ranks.
 *
 * Every rank reserves addresses for whole tables, in parameters, moments and averages alike, and each number has its usual place there. But
 * a page takes memory only when it is written (lp_alloc_sparse), and a rank writes its own rows: the rows of others it fetches for a run,
 * to their places, and gives their pages back. So graphs, kernels, ranking and files work as they do without division, and so do the bits.
 *
 * Own rows begin at multiples of LP_ITEM_TILE, so that what is added up by tiles of the catalogue is added up alike.
 */
#ifndef LP_ITEM_ROWS_H
#define LP_ITEM_ROWS_H

#include "comm/comm.h"
#include "graph/graph.h"

enum { LP_ITEM_TILE = 512 };

/* The first item of a rank; of rank `size`: the end. comm NULL: not divided. */
static inline int64_t lp_item_begin(const lapse_comm *comm, int64_t items, int rank)
{
    int64_t begin = lp_comm_begin(comm, (items + LP_ITEM_TILE - 1) / LP_ITEM_TILE, rank) * LP_ITEM_TILE;
    return begin < items ? begin : items;
}

/* The rank of an item. */
int lp_item_rank(const lapse_comm *comm, int64_t items, int64_t item);

/* Elements begin .. end - 1 of parameter p, by their offsets in the parameters, that a rank has. Parameters that are no item tables are on
 * all of them. */
typedef struct lp_elements {
    size_t begin, end;
} lp_elements;
lp_elements lp_item_elements(const lp_graph *graph, const lapse_comm *comm, int p, int rank);

/* Of an array of parameters, the end of the elements from `at` on, up to `end`, that one rank has; -1: all have them. */
size_t lp_item_piece(const lp_graph *graph, const lapse_comm *comm, size_t at, size_t end, int *rank);

/* Copies what this rank has of an array of parameters. */
void lp_item_rows_copy(const lp_graph *graph, const lapse_comm *comm, float *to, const float *from);

/* Before an array is first written: huge pages where this rank has rows, and nowhere else. */
void lp_item_rows_place(const lp_graph *graph, const lapse_comm *comm, float *array);

/* Fetches rows of other ranks. */
typedef struct lp_item_rows {
    lapse_comm *comm; /* NULL: not divided, and the rest is empty. Not owned */
    const lp_graph *graph;
    int64_t items;
    int tables;      /* item tables whose rows are fetched: the first of the graph */
    size_t touched;  /* bytes of pages that fetched rows may have taken */
    int64_t *counts; /* [ranks x ranks]: ids that rank i wants of rank j; owned */
    int32_t *ids;    /* wanted by this rank, by their rank, then those that others want of it; owned */
    float *rows;     /* rows that are sent, then those received; owned */
    size_t ids_size, rows_size;
    bool no_memory;
} lp_item_rows;

/* tables 0: all of the graph. */
lapse_status lp_item_rows_init(lp_item_rows *rows, lapse_comm *comm, const lp_graph *graph, int64_t items, int tables,
                               lapse_error *error);
void lp_item_rows_clear(lp_item_rows *rows);

/* Called by all ranks, for the items (distinct, best in ascending order) that this one reads next: puts the rows of others into `parameters`.
 * Rows of earlier fetches are lost. False: the communicator has failed. */
bool lp_item_rows_fetch(lp_item_rows *rows, const int32_t *items, int count, float *parameters);

/* The same for the types of events, which may repeat. `types` is sorted and its repetitions removed. */
bool lp_item_rows_fetch_types(lp_item_rows *rows, int32_t *types, int count, float *parameters);

#endif
