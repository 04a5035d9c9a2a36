/* cuda_by_id.h: reduction of rows by id, for gradients of embeddings and of sampled items (cuda_embed.cu):
 *
 *     out[id] = sum of weight * source[row] over the elements of id     weights[id] = sum of the weights
 */
#ifndef LP_CUDA_BY_ID_H
#define LP_CUDA_BY_ID_H

#include "backend/cuda/cuda_upload.h"

/* The elements of an id are those of one list, or of two: an element of the first is a row; the second has count - 1 elements for each
 * row. An element weighs 1, or *dloss times its column of dscores [rows x count], of which the first list has column 0. */
typedef struct lp_by_id {
    lp_cuda_lists lists[2]; /* the second may be empty: {} */
    const float *dscores, *dloss;
    int count;
    const float *source;         /* [rows x cols] */
    const float *points;         /* [ids x cols], of a distance: a row counts as the slope of the score by the id's point (score.h) */
    lp_score_rule score;
    float *out, *weights;        /* [ids x cols], [ids]; either may be NULL */
    int cols, adds, weights_add; /* adds: to what out has */
} lp_by_id;

/* The ids are the rows of `table`. An id without elements gets zeros, so outputs need no clearing. */
void lp_cuda_by_id(const lp_cuda_run *run, const lp_value *table, const lp_by_id &task);

#endif
