/* item_rows.c: which rows of item tables a rank has, and how it fetches others. */
#include "model/item_rows.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Fetched rows keep their pages until they may take so many bytes. */
enum { MOST_TOUCHED = 1 << 24, PAGE = 4096 };

int lp_item_rank(const lapse_comm *comm, int64_t items, int64_t item)
{
    int low = 0, high = lp_comm_size(comm) - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (lp_item_begin(comm, items, middle) <= item)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

lp_elements lp_item_elements(const lp_graph *graph, const lapse_comm *comm, int p, int rank)
{
    const lp_value *value = graph->parameters[p].value;
    size_t cols = (size_t)value->cols, begin = 0, end = (size_t)value->rows;
    if (comm && graph->parameters[p].items) {
        begin = (size_t)lp_item_begin(comm, value->rows, rank);
        end = (size_t)lp_item_begin(comm, value->rows, rank + 1);
    }
    return (lp_elements){value->offset + begin * cols, value->offset + end * cols};
}

size_t lp_item_piece(const lp_graph *graph, const lapse_comm *comm, size_t at, size_t end, int *rank)
{
    *rank = -1;
    for (int p = 0; comm && p < graph->parameter_count; p++) {
        lp_elements all = lp_item_elements(graph, NULL, p, 0);
        const lp_value *value = graph->parameters[p].value;
        if (!graph->parameters[p].items || at >= all.end)
            continue;
        if (at < all.begin)
            return all.begin < end ? all.begin : end;
        *rank = lp_item_rank(comm, value->rows, (int64_t)((at - all.begin) / (size_t)value->cols));
        size_t last = lp_item_elements(graph, comm, p, *rank).end;
        return last < end ? last : end;
    }
    return end;
}

void lp_item_rows_copy(const lp_graph *graph, const lapse_comm *comm, float *to, const float *from)
{
    for (int p = 0; comm && p < graph->parameter_count; p++) {
        lp_elements own = lp_item_elements(graph, comm, p, lp_comm_rank(comm));
        memcpy(to + own.begin, from + own.begin, (own.end - own.begin) * sizeof *to);
    }
    if (!comm)
        memcpy(to, from, graph->parameter_size * sizeof *to);
}

/* Of a table: the rows of other ranks, which are before the own ones and after them. */
typedef struct others {
    lp_elements part[2];
} others;

static others others_of(const lp_graph *graph, const lapse_comm *comm, int p)
{
    lp_elements own = lp_item_elements(graph, comm, p, lp_comm_rank(comm)), all = lp_item_elements(graph, NULL, p, 0);
    return (others){{{all.begin, own.begin}, {own.end, all.end}}};
}

static bool is_sparse(const lp_graph *graph)
{
    return graph->parameter_size * sizeof(float) >= LP_SPARSE_SIZE;
}

void lp_item_rows_place(const lp_graph *graph, const lapse_comm *comm, float *array)
{
    for (int p = 0; comm && array && is_sparse(graph) && p < graph->parameter_count; p++) {
        lp_elements own = lp_item_elements(graph, comm, p, lp_comm_rank(comm)),
                    all = lp_item_elements(graph, NULL, p, 0);
        lp_memory_huge(array + all.begin, (all.end - all.begin) * sizeof *array, false);
        lp_memory_huge(array + own.begin, (own.end - own.begin) * sizeof *array, true);
    }
}

lapse_status lp_item_rows_init(lp_item_rows *rows, lapse_comm *comm, const lp_graph *graph, int64_t items, int tables,
                               lapse_error *error)
{
    size_t ranks = (size_t)lp_comm_size(comm);
    *rows = (lp_item_rows){
        .comm = comm, .graph = graph, .items = items, .tables = tables ? tables : graph->parameter_count};
    if (!comm)
        return LAPSE_OK;
    rows->counts = lp_alloc(ranks * ranks, sizeof *rows->counts);
    return rows->counts ? LAPSE_OK : lp_fail_memory(error, "divided item tables", ranks * ranks * sizeof *rows->counts);
}

void lp_item_rows_clear(lp_item_rows *rows)
{
    lp_free(rows->counts);
    lp_free(rows->ids);
    lp_free(rows->rows);
    *rows = (lp_item_rows){0};
}

/* The next item table that is fetched, from parameter p on; the number of parameters: none. `fetched`: how many were. */
static int next_table(const lp_item_rows *rows, int p, int fetched)
{
    while (p < rows->graph->parameter_count && (!rows->graph->parameters[p].items || fetched >= rows->tables))
        p++;
    return p;
}

static size_t row_size(const lp_item_rows *rows)
{
    size_t size = 0;
    for (int p = next_table(rows, 0, 0), n = 1; p < rows->graph->parameter_count; p = next_table(rows, p + 1, n++))
        size += (size_t)rows->graph->parameters[p].value->cols;
    return size;
}

/* Copies rows from their places in the parameters to a message, or back. Returns the end of the message. */
static float *move_rows(const lp_item_rows *rows, const int32_t *ids, int64_t count, float *parameters, float *message,
                        bool back)
{
    for (int p = next_table(rows, 0, 0), n = 1; p < rows->graph->parameter_count; p = next_table(rows, p + 1, n++)) {
        const lp_value *value = rows->graph->parameters[p].value;
        size_t cols = (size_t)value->cols;
        for (int64_t i = 0; i < count; i++, message += cols) {
            float *place = parameters + value->offset + (size_t)ids[i] * cols;
            LP_ASSERT(ids[i] >= 0 && ids[i] < value->rows);
            memcpy(back ? place : message, back ? message : place, cols * sizeof *place);
        }
    }
    return message;
}

/* Gives the pages of rows of others back. */
static void drop(lp_item_rows *rows, float *parameters)
{
    const lp_graph *graph = rows->graph;
    for (int p = next_table(rows, 0, 0), n = 1; p < graph->parameter_count; p = next_table(rows, p + 1, n++)) {
        others rest = others_of(graph, rows->comm, p);
        for (int i = 0; i < 2; i++)
            lp_memory_drop(parameters + rest.part[i].begin,
                           (rest.part[i].end - rest.part[i].begin) * sizeof *parameters);
    }
    rows->touched = 0;
}

/* Sorts the items by their rank, without those of this one, and tells all ranks how many they are. */
static bool exchange_counts(lp_item_rows *rows, const int32_t *items, int count)
{
    int ranks = lp_comm_size(rows->comm), rank = lp_comm_rank(rows->comm);
    int64_t *mine = rows->counts + (size_t)rank * (size_t)ranks;
    memset(mine, 0, (size_t)ranks * sizeof *mine);
    for (int pass = 0; pass < 2; pass++) {
        int64_t at = 0;
        for (int r = 0; pass && r < ranks; r++) { /* counts become the beginnings, and then the ends */
            int64_t next = at + mine[r];
            mine[r] = at;
            at = next;
        }
        for (int i = 0, of = 0; i < count; i++) {
            if (items[i] < lp_item_begin(rows->comm, rows->items, of) ||
                items[i] >= lp_item_begin(rows->comm, rows->items, of + 1))
                of = lp_item_rank(rows->comm, rows->items, items[i]);
            if (of != rank && pass)
                rows->ids[mine[of]] = items[i];
            mine[of] += of != rank;
        }
    }
    for (int r = ranks - 1; r > 0; r--)
        mine[r] -= mine[r - 1];
    return lp_comm_gather_equal(rows->comm, "counting rows", rows->counts, (size_t)ranks * sizeof *mine);
}

bool lp_item_rows_fetch(lp_item_rows *rows, const int32_t *items, int count, float *parameters)
{
    lapse_comm *comm = rows->comm;
    int ranks = lp_comm_size(comm), rank = lp_comm_rank(comm);
    size_t most = (size_t)count, size = row_size(rows);
    if (!lp_reserve(&rows->ids, &rows->ids_size, most + 1, sizeof *rows->ids))
        return lp_comm_fail_memory(comm);
    if (!exchange_counts(rows, items, count))
        return false;
    int64_t wanted = 0, asked = 0;
    for (int r = 0; r < ranks; r++) {
        wanted += rows->counts[rank * ranks + r];
        asked += rows->counts[r * ranks + rank];
    }
    if (!lp_reserve(&rows->ids, &rows->ids_size, (size_t)(wanted + asked) + 1, sizeof *rows->ids) ||
        !lp_reserve(&rows->rows, &rows->rows_size, (size_t)(wanted + asked) * size + 1, sizeof *rows->rows))
        return lp_comm_fail_memory(comm);
    int32_t *mine = rows->ids, *theirs = rows->ids + wanted;
    for (int r = 0; r < ranks; r++) {
        int64_t to = rows->counts[rank * ranks + r], from = rows->counts[r * ranks + rank];
        comm->send[r] = (lapse_message){mine, (size_t)to * sizeof *mine};
        comm->receive[r] = (lapse_message){theirs, (size_t)from * sizeof *theirs};
        mine += to;
        theirs += from;
    }
    if (!lp_comm_exchange(comm, "asking for rows"))
        return false;
    float *sent = rows->rows, *received = rows->rows + (size_t)asked * size;
    theirs = rows->ids + wanted;
    for (int r = 0; r < ranks; r++) {
        int64_t to = rows->counts[r * ranks + rank], from = rows->counts[rank * ranks + r];
        float *end = move_rows(rows, theirs, to, parameters, sent, false);
        comm->send[r] = (lapse_message){sent, (size_t)to * size * sizeof *sent};
        comm->receive[r] = (lapse_message){received, (size_t)from * size * sizeof *received};
        sent = end;
        received += (size_t)from * size;
        theirs += to;
    }
    if (!lp_comm_exchange(comm, "fetching rows"))
        return false;
    rows->touched += (size_t)wanted * (size + PAGE);
    if (rows->touched > MOST_TOUCHED && is_sparse(rows->graph)) {
        drop(rows, parameters);
        rows->touched = (size_t)wanted * (size + PAGE);
    }
    received = rows->rows + (size_t)asked * size;
    mine = rows->ids;
    for (int r = 0; r < ranks; r++) {
        int64_t from = rows->counts[rank * ranks + r];
        received = move_rows(rows, mine, from, parameters, received, true);
        mine += from;
    }
    return true;
}

static int by_value(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

bool lp_item_rows_fetch_types(lp_item_rows *rows, int32_t *types, int count, float *parameters)
{
    int distinct = 0;
    qsort(types, (size_t)count, sizeof *types, by_value);
    for (int i = 0; i < count; i++)
        if (i == 0 || types[i] != types[i - 1])
            types[distinct++] = types[i];
    return lp_item_rows_fetch(rows, types, distinct, parameters);
}
