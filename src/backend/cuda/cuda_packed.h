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
    int gap;        /* zeros after the columns of each head */
} lp_cuda_copy;

/* A copy of a value. A launch that reads the columns of heads needs them to begin at multiples of 8 numbers: where their number is
 * none, the copy has gaps between the heads. */
typedef struct lp_copy_layout {
    lp_cuda_copy copy;
    int heads; /* 1: there are no gaps; 0: there is no such copy */
} lp_copy_layout;

typedef struct lp_value_copy {
    lp_copy_layout layouts[2]; /* as a whole, and with gaps; one of them, if there are no floats */
    bool floats;               /* they are stored */
    int written;               /* the latest stage that writes the value; -1: none */
    /* While the plan is made: */
    bool read;        /* if there are no floats, something reads the copy */
    bool whole;       /* such a reader reads no gaps */
    int heads;        /* of the layout in which all stages can write it */
    bool accumulated; /* a launch has added to it */
} lp_value_copy;

/* Of a program. */
typedef struct lp_cuda_copies {
    lp_value_copy *of; /* by value */
    void *memory;
} lp_cuda_copies;

/* Four neighbours, of which `present` exist; zeros for the others. width: lp_vector_width of rows of them. */
__device__ static inline float4 lp_load_four(const float *from, int present, int width)
{
    if (width == 4 && present >= 4)
        return *(const float4 *)from;
    float x[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = i < present ? from[i] : 0;
    return make_float4(x[0], x[1], x[2], x[3]);
}

typedef enum lp_copy_use { LP_READS_FLOATS, LP_READS_COPY, LP_READS_EITHER } lp_copy_use;

/* What the node reads of input i in bf16. */
static inline lp_copy_use lp_cuda_copy_use(const lp_node *node, int i)
{
    const lp_cuda_rule *rule = lp_cuda_rule_of(node);
    bool good = node->inputs[i] && ((rule->copies | rule->either) >> i & 1);
    if (rule->reduction.type == LP_REDUCTION_OUTER)
        good = good && lp_cuda_outer_wide(node);
    return !good ? LP_READS_FLOATS : rule->either >> i & 1 ? LP_READS_EITHER : LP_READS_COPY;
}

/* Number of heads in the layout of the value; a launch reads or writes `heads` of them. */
static inline int lp_cuda_copy_heads(const lp_value *value, int heads)
{
    return heads > 1 && value->cols / heads % 8 ? heads : 1;
}

/* Heads of input i, of which the node reads a copy: the basis of attention and weights have none. */
static inline int lp_cuda_copy_input_heads(const lp_node *node, int i)
{
    bool whole = i == 4 || node->inputs[i] == lp_step_input(node, LP_ROLE_WEIGHT);
    return whole ? 1 : lp_cuda_copy_heads(node->inputs[i], node->attributes.heads);
}

/* The copy of a value without floats. */
static inline lp_cuda_copy lp_cuda_copy_only(const lp_cuda_run *run, const lp_value *value)
{
    const lp_copy_layout *layouts = run->copies->of[value->id].layouts;
    return layouts[layouts[0].heads ? 0 : 1].copy;
}

/* The copy of an input that the node reads; none where it reads floats. */
static inline lp_cuda_copy lp_cuda_copy_from(const lp_cuda_run *run, const lp_node *node, int i)
{
    lp_copy_use use = run->copies ? lp_cuda_copy_use(node, i) : LP_READS_FLOATS;
    if (use == LP_READS_FLOATS || (use == LP_READS_EITHER && run->copies->of[node->inputs[i]->id].floats))
        return lp_cuda_copy();
    if (use == LP_READS_EITHER)
        return lp_cuda_copy_only(run, node->inputs[i]);
    int heads = lp_cuda_copy_input_heads(node, i);
    const lp_copy_layout *layout = &run->copies->of[node->inputs[i]->id].layouts[heads > 1];
    return layout->heads == heads ? layout->copy : lp_cuda_copy();
}

/* The copy that a stage with `heads` heads of the value writes with it; none: only the floats. */
static inline lp_cuda_copy lp_cuda_copy_to(const lp_cuda_run *run, const lp_value *value, int heads)
{
    if (!run->copies)
        return lp_cuda_copy();
    const lp_copy_layout *layouts = run->copies->of[value->id].layouts;
    bool gaps = layouts[1].heads == lp_cuda_copy_heads(value, heads);
    return layouts[0].heads || gaps ? layouts[!layouts[0].heads].copy : lp_cuda_copy();
}

static inline bool lp_cuda_stores_floats(const lp_cuda_run *run, const lp_value *value)
{
    return !run->copies || run->copies->of[value->id].floats;
}

/* For bf16; other precisions have no copies. False when out of memory. */
bool lp_cuda_copies_plan(lp_cuda_copies *copies, const lp_cuda_stages *stages, const lp_cuda_run *run, lp_arena *arena);

/* Writes the copies of parameters and inputs; those of a stage's results that its launch has not written. */
void lp_cuda_copies_begin(const lp_cuda_run *run);
void lp_cuda_copies_after(const lp_cuda_stage *stage, const lp_cuda_run *run);

#endif
