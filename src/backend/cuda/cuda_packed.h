/* cuda_packed.h: values that are bf16 in memory, for products and attention in that precision: half the bytes, which
 * asynchronous copies bring to shared memory as tensor cores read them.
 *
 * A program decides once who reads each value (lp_cuda_copies_plan). The launch that writes a value also writes its copy
 * in bf16 where a product reads it, and leaves out the floats where nothing reads them. Some nodes by row read the copy
 * where that leaves out the floats; sums of the residual stream and what norms read stay floats. Copies of values whose
 * kernel cannot write them follow in one more launch. Parameters and inputs are copied at the start of a run.
 */
#ifndef LP_CUDA_PACKED_H
#define LP_CUDA_PACKED_H

#include "backend/cuda/cuda_reduction.h"

/* A matrix in bf16. */
typedef struct lp_cuda_copy {
    uint16_t *data; /* NULL: there is none */
    int stride;     /* numbers from row to row, a multiple of 8; zeros beyond the columns */
} lp_cuda_copy;

typedef struct lp_value_copy {
    lp_cuda_copy copy;
    bool floats;     /* they are stored */
    bool wanted;     /* something reads the copy even if they are */
    int first, last; /* stages first to last - 1 write the copy with the value; last 0: there is none */
    int written;     /* the latest stage that writes the value, while the plan is made; -1: none */
} lp_value_copy;

/* Of a program. */
typedef struct lp_cuda_copies {
    lp_value_copy *of; /* by value */
    void *memory;
} lp_cuda_copies;

typedef enum lp_copy_use { LP_READS_FLOATS, LP_READS_COPY, LP_READS_EITHER } lp_copy_use;

/* What the node reads of input i in bf16. Parts of heads must begin at whole words, and those of attention, which pads
 * them, at whole vectors. */
static inline lp_copy_use lp_cuda_copy_use(const lp_node *node, int i)
{
    const lp_cuda_rule *rule = lp_cuda_rule_of(node);
    int heads = node->attributes.heads;
    bool good = node->inputs[i] && ((rule->copies | rule->either) >> i & 1), whole = true;
    if (rule->reduction.type == LP_REDUCTION_OUTER)
        good = good && lp_cuda_outer_wide(node, true);
    for (int k = 0; good && heads > 1 && k < 2; k++)
        whole = whole && (node->inputs[k]->cols / heads % 2 == 0 || (k == 1 && rule->pack == LP_PACK_WEIGHT));
    if (node->op->id == LP_OP_ATTENTION || node->op->id == LP_OP_ATTENTION_GRADIENT)
        whole = heads == 1 || i == 4 || (good && node->inputs[i]->cols / heads % 8 == 0);
    return !good || !whole ? LP_READS_FLOATS : rule->either >> i & 1 ? LP_READS_EITHER : LP_READS_COPY;
}

/* The copy of an input that the node reads; none where it reads floats. */
static inline lp_cuda_copy lp_cuda_copy_from(const lp_cuda_run *run, const lp_node *node, int i)
{
    lp_copy_use use = run->copies ? lp_cuda_copy_use(node, i) : LP_READS_FLOATS;
    bool reads = use != LP_READS_FLOATS && (use == LP_READS_COPY || !run->copies->of[node->inputs[i]->id].floats);
    return reads ? run->copies->of[node->inputs[i]->id].copy : lp_cuda_copy();
}

/* The copy that the current stage writes with the value; none: only the floats. */
static inline lp_cuda_copy lp_cuda_copy_to(const lp_cuda_run *run, const lp_value *value)
{
    const lp_value_copy *mine = run->copies ? &run->copies->of[value->id] : NULL;
    return mine && run->stage >= mine->first && run->stage < mine->last ? mine->copy : lp_cuda_copy();
}

static inline bool lp_cuda_stores_floats(const lp_cuda_run *run, const lp_value *value)
{
    return !run->copies || run->copies->of[value->id].floats;
}

/* For bf16; other precisions have no copies. fused: whether fused kernels run. False when out of memory. */
bool lp_cuda_copies_plan(lp_cuda_copies *copies, const lp_cuda_stages *stages, bool fused, const lp_cuda_run *run,
                         lp_arena *arena);

/* Writes the copies of parameters and inputs; those of a stage's results that its launch has not written. */
void lp_cuda_copies_begin(const lp_cuda_run *run);
void lp_cuda_copies_after(const lp_cuda_stage *stage, const lp_cuda_run *run);

/* A matrix to be copied: rows of `cols` floats to rows of `stride` numbers. */
typedef struct lp_copy_task {
    const float *from;
    uint16_t *to;
    lp_cuda_rows rows;
    int heads; /* rows of each row */
    int cols, stride;
} lp_copy_task;

enum { LP_COPY_TASKS = 64 };

typedef struct lp_copy_list {
    lp_copy_task task[LP_COPY_TASKS];
    const lp_cuda_shard *shard;
    int count;
    int64_t most; /* vectors of 8 numbers of the largest */
} lp_copy_list;

/* Adds a matrix, and launches the list when it is full. largest: rows of the largest shard. */
void lp_cuda_copy_add(const lp_cuda_run *run, lp_copy_list *list, const lp_copy_task &task, int64_t largest);
void lp_cuda_copy_launch(const lp_cuda_run *run, lp_copy_list *list);

#endif
