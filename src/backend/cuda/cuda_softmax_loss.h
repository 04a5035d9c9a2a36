/* cuda_softmax_loss.h: what the softmax loss (cuda_softmax_loss.cu) and its gradient (cuda_softmax_loss_gradient.cu) share. */
#ifndef LP_CUDA_SOFTMAX_LOSS_H
#define LP_CUDA_SOFTMAX_LOSS_H

#include "backend/cuda/cuda_product_wide.h"

/* Bytes of d that are kept at most, or those of a chunk. The emulation takes several chunks of small catalogues. */
#ifdef LP_CUDA_EMULATED
enum { LOSS_D_SIZE = 1 << 16 };
#else
enum { LOSS_D_SIZE = 512 << 20 };
#endif

enum { LOSS_SLAB = 64 }; /* the largest depth of a slab */

/* What the gradient reads of the forward pass, too. */
typedef struct loss_factors {
    void *z;       /* times log2 e */
    void *scaled;  /* z_t / sum_t */
    void *items;   /* in their order */
    void *columns; /* items in the order of columns of scores (column_of) */
    float *terms;  /* of columns; LEAST_SCORE where there is no item */
    float *target; /* scores of the targets, by the rounded factors */
    float *origin; /* the score that exponentials are relative to: the target's, or the row's maximum */
    float *sum;
    void *inverse; /* 1 / sum_t, in the precision; zeros up to a whole slab */
    void *d;       /* [rows x item_rows] if it is kept; otherwise NULL */
    int stride;    /* numbers from row to row */
    int rows, item_rows;
    bool blocked; /* packed matrices, and d, are in blocks (cuda_product_wide.h) */
} loss_factors;

/* Offset of an element of a packed matrix, or of d. */
__device__ static inline int64_t loss_at(const loss_factors &factors, int64_t stride, int row, int col)
{
    return factors.blocked ? wide_at(stride, row, col) : row * stride + col;
}

/* Element of a packed matrix. */
template <int precision> __device__ static inline float packed_at(const void *from, int64_t at)
{
    return precision == LP_PRECISION_BF16 ? __uint_as_float((uint32_t)((const uint16_t *)from)[at] << 16)
                                          : ((const float *)from)[at];
}

static inline size_t loss_element_size(const lp_cuda_run *run)
{
    return tile_bf16(run) ? 2 : 4;
}

/* A packed matrix, from row `first` on. */
static inline product_operand loss_operand(const lp_cuda_run *run, const void *factor, int64_t stride, int first)
{
    return {(const char *)factor + (size_t)first * (size_t)stride * loss_element_size(run), stride, 0, 4};
}

/* Hands out parts of memory, or only adds up their sizes as long as there is none. */
typedef struct loss_memory {
    char *at;
    size_t size;

    template <typename type> void take(type **to, size_t count, size_t element = sizeof(type))
    {
        *to = at ? (type *)(at + size) : NULL;
        size += (count * element + 255) / 256 * 256;
    }
} loss_memory;

/* node: the loss or its gradient. gradient: whether there is one. */
void loss_take_factors(const lp_node *node, const lp_cuda_run *run, bool gradient, loss_memory *memory,
                       loss_factors *to);

/* Stores d [rows x stride] for `count` items from `first` on, of the gradient's chunk. */
void loss_compute_d(const lp_node *node, const lp_cuda_run *run, const loss_factors &factors, int first, int count,
                    void *d, int stride);

#endif
