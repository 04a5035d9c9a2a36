/* rank_sums.c: moves gradients between ranks and adds them. */
#include "train/rank_sums.h"

#include "backend/cpu/cpu.h"
#include "backend/reduce.h"
#include "base/assert.h"
#include "model/item_rows.h"

#include <string.h>

/* What a rank tells all others before the gradients; the losses of its shards follow. */
typedef struct header {
    int32_t rows, stop;
} header;

/* The shards of a maximal node that begins at `first` and lies in a run up to `end`. Behind the last shard a node is empty, so it may end
 * there. */
static int node_size(int first, int end, int shards)
{
    int size = 1;
    while (first % (2 * size) == 0 && (first + 2 * size <= end || end == shards) && first + size < end)
        size *= 2;
    return first + size < end ? size : end - first;
}

/* Lists the nodes of all ranks. */
static void make_nodes(lp_rank_sums *sums)
{
    for (int rank = 0; rank < lp_comm_size(sums->comm); rank++) {
        int first = (int)lp_comm_begin(sums->comm, sums->shards, rank);
        int end = (int)lp_comm_begin(sums->comm, sums->shards, rank + 1);
        sums->first_node[rank] = sums->nodes;
        for (; first < end; first += node_size(first, end, sums->shards))
            sums->node[sums->nodes++] = (uint32_t)first;
    }
    sums->first_node[lp_comm_size(sums->comm)] = sums->nodes;
    sums->node[sums->nodes] = (uint32_t)sums->shards;
}

lapse_status lp_rank_sums_init(lp_rank_sums *sums, lapse_comm *comm, int shards, int item_capacity, int64_t items,
                               lapse_error *error)
{
    *sums = (lp_rank_sums){.shards = shards, .items = items};
    if (lp_comm_size(comm) == 1)
        return LAPSE_OK;
    size_t ranks = (size_t)lp_comm_size(comm);
    int most = (shards + (int)ranks - 1) / (int)ranks;
    sums->comm = comm;
    sums->stride = most * item_capacity;
    sums->header_size = sizeof(header) + (size_t)most * sizeof(float);
    size_t entries = ranks * 2 * (size_t)sums->stride;
    sums->node = lp_alloc((size_t)shards + 1, sizeof *sums->node);
    sums->first_node = lp_alloc(ranks + 1, sizeof *sums->first_node);
    sums->headers = lp_alloc(ranks, sums->header_size);
    sums->lists = lp_alloc(entries, sizeof *sums->lists);
    sums->counts = lp_alloc(ranks, sizeof *sums->counts);
    sums->joined = (lp_row_union){.row = lp_alloc(entries, sizeof(int32_t)),
                                  .first = lp_alloc(entries + 1, sizeof(int32_t)),
                                  .item_index = lp_alloc(entries, sizeof(int32_t))};
    sums->order = lp_alloc(entries, sizeof *sums->order);
    sums->first_row = lp_alloc(ranks + 1, sizeof *sums->first_row);
    sums->norms = lp_alloc(items ? 2 * entries * LP_TABLE_LIMIT : 0, sizeof *sums->norms);
    sums->begin = lp_alloc(ranks + 1, sizeof *sums->begin);
    sums->leaf = lp_alloc((size_t)shards, sizeof *sums->leaf);
    sums->leaf_shard = lp_alloc((size_t)shards, sizeof *sums->leaf_shard);
    if (sums->node && sums->first_node && sums->headers && sums->lists && sums->counts && sums->joined.row &&
        sums->joined.first && sums->joined.item_index && sums->order && sums->first_row && sums->norms && sums->begin &&
        sums->leaf && sums->leaf_shard) {
        make_nodes(sums);
        return LAPSE_OK;
    }
    lp_rank_sums_clear(sums);
    return lp_fail_memory(error, "the sums of the ranks", entries * 5 * sizeof(int32_t));
}

void lp_rank_sums_clear(lp_rank_sums *sums)
{
    lp_row_union_clear(&sums->joined);
    void *blocks[] = {sums->node, sums->first_node, sums->headers,  sums->lists,    sums->counts,
                      sums->sent, sums->order,      sums->received, sums->sums,     sums->begin,
                      sums->leaf, sums->leaf_shard, sums->norms,    sums->first_row};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        lp_free(blocks[i]);
    *sums = (lp_rank_sums){0};
}

/* Tells all ranks the losses of this one's shards, the number of its rows and whether it wants to stop. */
static void exchange_headers(lp_rank_sums *sums, const lp_row_union *rows, float *losses, bool stop)
{
    char *mine = sums->headers + (size_t)lp_comm_rank(sums->comm) * sums->header_size;
    int first = lp_rank_sums_first(sums), count = lp_rank_sums_end(sums) - first;
    header head = {rows ? rows->count : 0, stop};
    memcpy(mine, &head, sizeof head);
    memcpy(mine + sizeof head, losses + first, (size_t)count * sizeof *losses);
    sums->stopped = stop;
    if (!lp_comm_gather_equal(sums->comm, "exchanging losses", sums->headers, sums->header_size))
        return;
    for (int r = 0; r < lp_comm_size(sums->comm); r++) {
        const char *from = sums->headers + (size_t)r * sums->header_size;
        memcpy(&head, from, sizeof head);
        sums->counts[r] = head.rows;
        sums->stopped = sums->stopped || head.stop;
        first = (int)lp_comm_begin(sums->comm, sums->shards, r);
        count = (int)lp_comm_begin(sums->comm, sums->shards, r + 1) - first;
        memcpy(losses + first, from + sizeof head, (size_t)count * sizeof *losses);
    }
}

/* The node of this rank, from 0, that has a shard. */
static int node_of(const lp_rank_sums *sums, int shard)
{
    int first = sums->first_node[lp_comm_rank(sums->comm)], node = first;
    while (sums->node[node + 1] <= (uint32_t)shard)
        node++;
    return node - first;
}

/* Orders the joined rows by the rank that adds them up. */
static void order_rows(lp_rank_sums *sums)
{
    int ranks = lp_comm_size(sums->comm), *first = sums->first_row;
    for (int r = 0; r <= ranks; r++)
        first[r] = (int)lp_comm_begin(sums->comm, sums->joined.count, r);
    for (int i = 0; i < sums->joined.count; i++)
        sums->order[i] = i;
    if (!sums->items)
        return;
    memset(first, 0, (size_t)(ranks + 1) * sizeof *first);
    for (int i = 0; i < sums->joined.count; i++)
        first[lp_item_rank(sums->comm, sums->items, sums->joined.row[i]) + 1]++;
    for (int r = 0; r < ranks; r++)
        first[r + 1] += first[r];
    for (int i = 0; i < sums->joined.count; i++)
        sums->order[first[lp_item_rank(sums->comm, sums->items, sums->joined.row[i])]++] = i;
    memmove(first + 1, first, (size_t)ranks * sizeof *first);
    first[0] = 0;
}

/* Tells all ranks the items of this one, and joins the lists. Rows are then in the order in which one process has them. */
static void exchange_rows(lp_rank_sums *sums, const lp_adam *adam, const lp_row_union *rows, lp_batch_vocabulary *lists)
{
    int ranks = lp_comm_size(sums->comm), rank = lp_comm_rank(sums->comm);
    size_t step = 2 * (size_t)sums->stride;
    int32_t *mine = sums->lists + (size_t)rank * step;
    for (int i = 0; i < rows->count; i++) {
        uint32_t bits = 0;
        for (int e = rows->first[i]; e < rows->first[i + 1]; e++)
            bits |= 1u << node_of(sums, rows->item_index[e] / adam->item_capacity);
        mine[i] = rows->row[i];
        mine[rows->count + i] = (int32_t)bits;
    }
    for (int r = 0; r < ranks; r++)
        if (r != rank) {
            sums->comm->send[r] = (lapse_message){mine, 2 * (size_t)rows->count * sizeof *mine};
            sums->comm->receive[r] =
                (lapse_message){sums->lists + (size_t)r * step, 2 * (size_t)sums->counts[r] * sizeof *mine};
        }
    if (lp_comm_exchange(sums->comm, "exchanging item rows"))
        lp_row_union_of_lists(&sums->joined, lists, ranks, (int)step, sums->lists, sums->counts);
    order_rows(sums);
}

/* The nodes, as bits, of an entry of the joined rows, and the rank that it is of. */
static uint32_t bits_of(const lp_rank_sums *sums, int32_t entry, int *rank)
{
    int step = 2 * sums->stride;
    *rank = entry / step;
    return (uint32_t)sums->lists[entry + sums->counts[*rank]];
}

/* The gradient of a table row at an index, shard * capacity + row of the batch vocabulary. */
static float *row_gradient(const lp_adam *adam, const lp_table *table, int32_t index)
{
    size_t capacity = (size_t)adam->item_capacity, shard = (size_t)index / capacity, row = (size_t)index % capacity;
    return adam->row_gradients + (shard * (size_t)adam->table_cols + (size_t)table->before) * capacity +
           row * (size_t)table->cols;
}

static float *pack_row(const lp_adam *adam, int32_t index, float *to)
{
    for (int t = 0; t < adam->table_count; t++) {
        memcpy(to, row_gradient(adam, &adam->tables[t], index), (size_t)adam->tables[t].cols * sizeof *to);
        to += adam->tables[t].cols;
    }
    return to;
}

/* A rank's part of the elements: of dense parameters, and of the joined rows in their order. */
typedef struct part {
    size_t begin, end;
    int first_row, end_row;
} part;

static part part_of(const lp_rank_sums *sums, const lp_adam *adam, int rank)
{
    int64_t groups = (int64_t)(adam->size - adam->table_size) / LP_PARAMETER_ALIGN;
    return (part){(size_t)lp_comm_begin(sums->comm, groups, rank) * LP_PARAMETER_ALIGN,
                  (size_t)lp_comm_begin(sums->comm, groups, rank + 1) * LP_PARAMETER_ALIGN,
                  sums->joined.count ? sums->first_row[rank] : 0, sums->joined.count ? sums->first_row[rank + 1] : 0};
}

static bool reserve(lp_rank_sums *sums, float **buffer, size_t *size, size_t wanted)
{
    if (wanted <= *size)
        return true;
    lp_free(*buffer);
    *size = wanted + wanted / 4;
    *buffer = lp_alloc_raw(*size, sizeof **buffer);
    *size = *buffer ? *size : 0;
    return *buffer || lp_comm_fail_memory(sums->comm);
}

/* The vectors that rank `from` has for the elements of a part, in floats. */
static size_t part_size(const lp_rank_sums *sums, const lp_adam *adam, const part *p, int from)
{
    size_t size = (p->end - p->begin) * (size_t)(sums->first_node[from + 1] - sums->first_node[from]);
    const lp_row_union *joined = &sums->joined;
    for (int k = p->first_row, rank; k < p->end_row; k++)
        for (int32_t e = joined->first[sums->order[k]]; e < joined->first[sums->order[k] + 1]; e++) {
            uint32_t bits = bits_of(sums, joined->item_index[e], &rank);
            size += rank == from ? (size_t)__builtin_popcount(bits) * (size_t)adam->table_cols : 0;
        }
    return size;
}

/* The index of the entry of this rank's own rows that holds the sum over a node: its first in the node's shards. */
static int32_t node_entry(const lp_rank_sums *sums, const lp_adam *adam, const lp_row_union *rows, int row, int node)
{
    int32_t begin = (int32_t)sums->node[sums->first_node[lp_comm_rank(sums->comm)] + node] * adam->item_capacity;
    int e = rows->first[row];
    while (rows->item_index[e] < begin)
        e++;
    LP_ASSERT(e < rows->first[row + 1]);
    return rows->item_index[e];
}

/* Packs this rank's vectors of a part. */
static void pack(const lp_rank_sums *sums, const lp_adam *adam, const lp_row_union *rows, const part *p, float *to)
{
    int rank = lp_comm_rank(sums->comm), of;
    size_t dense = adam->size - adam->table_size, count = p->end - p->begin;
    for (int n = sums->first_node[rank]; n < sums->first_node[rank + 1]; n++, to += count)
        memcpy(to, adam->gradients + sums->node[n] * dense + p->begin, count * sizeof *to);
    const lp_row_union *joined = &sums->joined;
    for (int k = p->first_row; k < p->end_row; k++)
        for (int32_t e = joined->first[sums->order[k]]; e < joined->first[sums->order[k] + 1]; e++) {
            uint32_t bits = bits_of(sums, joined->item_index[e], &of);
            int row = joined->item_index[e] - rank * 2 * sums->stride;
            for (int n = 0; of == rank && bits >> n; n++)
                if (bits >> n & 1)
                    to = pack_row(adam, node_entry(sums, adam, rows, row, n), to);
        }
}

/* Sends every rank its elements of this rank's nodes. received: those of this rank's elements, by rank at sums->begin. */
static bool exchange_nodes(lp_rank_sums *sums, const lp_adam *adam, const lp_row_union *rows)
{
    int ranks = lp_comm_size(sums->comm), rank = lp_comm_rank(sums->comm);
    size_t all = 0;
    part mine = part_of(sums, adam, rank);
    sums->begin[0] = 0;
    for (int r = 0; r < ranks; r++) {
        part theirs = part_of(sums, adam, r);
        all += r == rank ? 0 : part_size(sums, adam, &theirs, rank);
        sums->begin[r + 1] = sums->begin[r] + part_size(sums, adam, &mine, r);
    }
    if (!reserve(sums, &sums->sent, &sums->sent_size, all) ||
        !reserve(sums, &sums->received, &sums->received_size, sums->begin[ranks]))
        return false;
    pack(sums, adam, rows, &mine, sums->received + sums->begin[rank]);
    float *to = sums->sent;
    for (int r = 0; r < ranks; r++) {
        if (r == rank)
            continue;
        part theirs = part_of(sums, adam, r);
        size_t size = part_size(sums, adam, &theirs, rank);
        pack(sums, adam, rows, &theirs, to);
        sums->comm->send[r] = (lapse_message){to, size * sizeof *to};
        sums->comm->receive[r] =
            (lapse_message){sums->received + sums->begin[r], (sums->begin[r + 1] - sums->begin[r]) * sizeof *to};
        to += size;
    }
    return lp_comm_exchange(sums->comm, "sending gradients");
}

/* Adds this rank's elements of all nodes, to its part of sums->sums. sums->begin is spent: each rank's is where its rows begin, and
 * moves on with them. */
static void add_part(lp_rank_sums *sums, const lp_adam *adam, const part *p, float *to)
{
    size_t count = p->end - p->begin, cols = (size_t)adam->table_cols;
    const lp_row_union *joined = &sums->joined;
    for (int r = 0, n = 0; r < lp_comm_size(sums->comm); r++)
        for (; n < sums->first_node[r + 1]; n++, sums->begin[r] += count)
            sums->leaf[n] = sums->received + sums->begin[r];
    lp_cpu_add_nodes(adam->threads, count, sums->nodes, sums->node, sums->leaf, to);
    to += count;
    for (int k = p->first_row; k < p->end_row; k++, to += cols) {
        int leaves = 0, rank;
        for (int32_t e = joined->first[sums->order[k]]; e < joined->first[sums->order[k] + 1]; e++) {
            uint32_t bits = bits_of(sums, joined->item_index[e], &rank);
            for (int n = 0; bits >> n; n++)
                if (bits >> n & 1) {
                    sums->leaf_shard[leaves] = sums->node[sums->first_node[rank] + n];
                    sums->leaf[leaves++] = sums->received + sums->begin[rank];
                    sums->begin[rank] += cols;
                }
        }
        lp_cpu_add_nodes(1, cols, leaves, sums->leaf_shard, sums->leaf, to);
    }
}

/* Copies the sums of a part to where the optimizer reads them. */
static void take_part(const lp_rank_sums *sums, const lp_adam *adam, const part *p, const float *from)
{
    size_t count = p->end - p->begin;
    memcpy(adam->gradients + p->begin, from, count * sizeof *from);
    from += count;
    for (int k = p->first_row; k < p->end_row; k++)
        for (int t = 0; t < adam->table_count; t++) {
            memcpy(row_gradient(adam, &adam->tables[t], sums->order[k]), from,
                   (size_t)adam->tables[t].cols * sizeof *from);
            from += adam->tables[t].cols;
        }
}

/* Adds this rank's elements and sends the sums to all ranks. */
static void exchange_sums(lp_rank_sums *sums, const lp_adam *adam)
{
    int ranks = lp_comm_size(sums->comm), rank = lp_comm_rank(sums->comm);
    size_t dense = adam->size - adam->table_size, cols = (size_t)adam->table_cols;
    if (!reserve(sums, &sums->sums, &sums->sums_size, dense + (size_t)sums->joined.count * cols))
        return;
    part mine = part_of(sums, adam, rank);
    float *own = sums->sums + mine.begin + (size_t)mine.first_row * cols;
    add_part(sums, adam, &mine, own);
    if (sums->items) { /* the rows are where they belong */
        take_part(sums, adam, &mine, own);
        memmove(sums->sums + mine.begin, own, (mine.end - mine.begin) * sizeof *own);
        cols = 0;
    }
    for (int r = 0; r <= ranks; r++) {
        part p = part_of(sums, adam, r < ranks ? r : ranks - 1);
        size_t at = r < ranks ? p.begin + (size_t)p.first_row * cols : p.end + (size_t)p.end_row * cols;
        sums->begin[r] = at * sizeof *sums->sums;
    }
    if (!lp_comm_gather(sums->comm, "sending sums of gradients", sums->sums, sums->begin))
        return;
    for (int r = 0; r < ranks; r++) {
        part p = part_of(sums, adam, r);
        p.end_row = sums->items ? p.first_row : p.end_row;
        take_part(sums, adam, &p, sums->sums + sums->begin[r] / sizeof *sums->sums);
    }
}

/* Tells all ranks the norms of the rows that this one has. */
static void share_norms(void *context)
{
    lp_rank_sums *sums = context;
    size_t tables = (size_t)sums->tables, size = tables * sizeof *sums->norms;
    double *all = sums->norms + (size_t)lp_comm_size(sums->comm) * 2 * (size_t)sums->stride * LP_TABLE_LIMIT;
    int rank = lp_comm_rank(sums->comm);
    for (int k = sums->first_row[rank]; k < sums->first_row[rank + 1]; k++)
        memcpy(all + (size_t)k * tables, sums->norms + (size_t)sums->order[k] * tables, size);
    for (int r = 0; r <= lp_comm_size(sums->comm); r++)
        sums->begin[r] = (size_t)sums->first_row[r] * size;
    lp_comm_gather(sums->comm, "sharing norms", all, sums->begin);
    for (int k = 0; k < sums->joined.count; k++)
        memcpy(sums->norms + (size_t)sums->order[k] * tables, all + (size_t)k * tables, size);
}

void lp_rank_sums_divide(lp_rank_sums *sums, lp_adam *adam)
{
    int rank = lp_comm_rank(sums->comm);
    sums->tables = adam->table_count;
    adam->first_item = lp_item_begin(sums->comm, sums->items, rank);
    adam->end_item = lp_item_begin(sums->comm, sums->items, rank + 1);
    adam->row_norms = sums->norms;
    adam->share = share_norms;
    adam->share_context = sums;
}

const lp_row_union *lp_rank_sums_add(lp_rank_sums *sums, lp_adam *adam, const lp_row_union *rows,
                                     lp_batch_vocabulary *lists, float *losses, bool stop)
{
    int rank = lp_comm_rank(sums->comm);
    for (int n = sums->first_node[rank]; n < sums->first_node[rank + 1]; n++) {
        adam->first_shard = (int)sums->node[n];
        adam->end_shard = (int)sums->node[n + 1];
        adam->backend->reduce(adam->backend->context, adam, rows);
    }
    adam->first_shard = adam->end_shard = 0;
    exchange_headers(sums, rows, losses, stop);
    sums->joined.count = 0;
    if (rows && !*sums->comm->failure)
        exchange_rows(sums, adam, rows, lists);
    if (!*sums->comm->failure && exchange_nodes(sums, adam, rows))
        exchange_sums(sums, adam);
    for (int32_t i = 0; rows && i < sums->joined.count; i++)
        sums->joined.first[i] = sums->joined.item_index[i] = i;
    if (rows)
        sums->joined.first[sums->joined.count] = sums->joined.count;
    return rows ? &sums->joined : NULL;
}
