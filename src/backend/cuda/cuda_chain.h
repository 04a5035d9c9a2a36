/* cuda_chain.h: nodes that go from row to row, as one launch.
 *
 * A block takes 64 rows through all pieces of a chain, one after the other, and waits for no other block: an interpreter of a short program
 * of steps. What a step makes stays in registers, in the layout of a tensor core's result (cuda_tile.h), or in shared memory, and the next step
 * goes on from there. It goes to memory if somebody outside the chain reads it, or a later step that does not follow at once.
 *
 * Weights are packed before, in the order in which lanes read them, and rounded. They are most of what a product reads: so a block has
 * many rows, and the weights come to shared memory once, while the product before is computed.
 *
 * A value is narrow, up to 64 columns, or wide: two halves of as many, such as cosines and sines. The values of a chain have all the same number of
 * columns, or twice as many. Whatever is wider, has several heads, or is to be computed in float goes node by node.
 *
 * The host makes the program (cuda_chain.cu): which steps there are, in which order, and what goes where. The kernel (cuda_chain_kernel.cu)
 * runs it.
 */
#ifndef LP_CUDA_CHAIN_H
#define LP_CUDA_CHAIN_H

#include "backend/cuda/cuda_stage.h"

enum {
    LP_CHAIN_ROWS = 64, /* of a block */
    LP_CHAIN_TILES = 8, /* of 8 columns, in half a value */
    LP_CHAIN_COLS = 8 * LP_CHAIN_TILES,
    LP_CHAIN_STEPS = 32
};

/* The rows of a value in memory; NULL: not there. */
typedef struct chain_rows {
    float *data;
    int stride;
} chain_rows;

/* What there is of a step. */
enum {
    LP_STEP_FOLLOWS =
        1,             /* its main input is what the registers hold; a wide one what the step before left in its room */
    LP_STEP_MAIN = 2,  /* it comes from memory */
    LP_STEP_TABLE = 4, /* it is a table, of which ids name rows */
    LP_STEP_OTHER = 8,
    LP_STEP_OLD = 16,
    LP_STEP_OLD_SECOND = 32,
    LP_STEP_RESULT = 64,
    LP_STEP_RESULT_SECOND = 128,
    LP_STEP_FACTORS = 256,
    LP_STEP_ON_TOP = 512 /* linear: it comes on top of what the registers hold */
};

/* Whatever a warp has to decide on, read at once. */
typedef struct __align__(16) chain_head
{
    int op;       /* lp_op_id */
    int parts;    /* halves of the result */
    int in_parts; /* linear: halves of x */
    unsigned has; /* LP_STEP_... */
}
chain_head;

typedef struct chain_step {
    chain_head head;
    chain_rows main;     /* its main input, where it does not follow */
    chain_rows other[2]; /* what else it reads: an addend, a turn, the x of a gradient; its moments */
    chain_rows old[2];   /* what results are added to */
    chain_rows result[2];
    const float *weight;      /* linear: packed */
    const float *next_weight; /* linear: that of the next product in the chain; NULL: there is none */
    const void *factors;      /* of columns: bias, scale, gain, frequencies; NULL: none */
    const float *shifts;      /* layer norm */
    const double *time;       /* basis */
    const int32_t *ids;       /* embed: of the rows of main */
    float scale, shift;
    uint32_t threshold, purpose; /* dropout */
} chain_step;

/* A weight to be packed, [in x out], or transposed [out x in], half by half: block (to, from) of its halves has, for every tile of 8 terms and
 * two tiles of 8 columns, a float4 for each lane 4 g + t: terms t and t + 4 of column g in the one tile and in the other. */
enum { LP_PACK_ALONG = 4 };                                    /* nodes that a pack takes along at the most */
enum { LP_PACK_BLOCK = LP_CHAIN_TILES * LP_CHAIN_TILES * 64 }; /* floats */
typedef struct chain_pack {
    const float *weight, *scale; /* scale: of the columns of the weight; NULL: 1 */
    float *to;
    int in, out, in_parts, out_parts; /* columns of a half */
    int stride;                       /* from row to row */
    bool transpose;
} chain_pack;

/* A chain, or the weights of a pack, ready to be launched. */
typedef struct lp_cuda_chain {
    const char *program; /* on the device: its chain_steps, or chain_packs */
    size_t place;        /* of it among the programs of all */
    int count;
    int cols;                  /* of half a value */
    const float *first_weight; /* of its first product; NULL: it has none */
    lp_cuda_rows rows;
    unsigned blocks;
} lp_cuda_chain;

/* Which outputs of a node a chain can make, and of which inputs it reads its own row alone. 0: none. */
unsigned lp_cuda_chain_takes(const lp_node *node, unsigned *by_row);

/* The columns of half a value in a chain with this node. */
int lp_cuda_chain_cols(const lp_node *node);

/* Makes the program of a chain for these runs, of up to LP_CHAIN_STEPS pieces; the caller brings it to the device and says where it is.
 * packed: where the weights of all products are. */
void lp_cuda_chain_make(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run, float *packed,
                        lp_cuda_chain *chain, chain_step *steps);

/* The same of a pack: a chain_pack for each of its products. */
void lp_cuda_pack_make(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run, float *packed,
                       lp_cuda_chain *chain, chain_pack *packs);

/* Floats of a product's packed weight. */
size_t lp_cuda_packed_size(const lp_node *node);

/* Whether this run's products may go to the tensor cores, which all of a chain is made for. */
bool lp_cuda_chain_runs(const lp_cuda_run *run);

void lp_cuda_chain_launch(const lp_cuda_chain *chain, const lp_cuda_run *run);
void lp_cuda_pack_launch(const lp_cuda_stage *stage, const lp_cuda_chain *pack, const lp_cuda_run *run);

#endif
