/* fast_basic.c: element-wise kernels: add, embed, affine, relu, dropout. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "base/assert.h"

/* y may alias a or b: gradients accumulate in place. */
void LP_FAST(add)(const lp_node *node, const lp_run *run)
{
    const float *a = INPUT(0), *b = INPUT(1);
    float *y = OUTPUT(0);
    size_t size = lp_run_size(run, node->outputs[0]);
    LP_ASSERT(!b || !ADDED(0)); /* only gradients accumulate, and they have one input */
    if (!b && !ADDED(0)) {
        memcpy(y, a, size * sizeof *y);
        return;
    }
    const float *other = b ? b : y;
#pragma omp simd
    for (size_t i = 0; i < size; i++)
        y[i] = other[i] + a[i];
}

/* Copies a row as whole vectors, the last of which ends with the row: rows are short, so a memcpy call would dominate. */
static inline void copy_row(float *restrict to, const float *restrict from, int cols)
{
    if (cols < FAST_LANES) {
        memcpy(to, from, (size_t)cols * sizeof *to);
        return;
    }
    for (int c = 0; c < cols - FAST_LANES; c += FAST_LANES)
        fast_store(to + c, fast_load(from + c));
    fast_store(to + cols - FAST_LANES, fast_load(from + cols - FAST_LANES));
}

void LP_FAST(embed)(const lp_node *node, const lp_run *run)
{
    const float *table = INPUT(0);                          /* [V x cols] */
    const int32_t *ids = lp_run_data(run, node->inputs[1]); /* [T] */
    float *y = OUTPUT(0);                                   /* [T x cols] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++)
        copy_row(y + (size_t)t * cols, table + (size_t)ids[t] * cols, cols);
}

/* to = a + b in the same way */
static inline void add_row(float *restrict to, const float *restrict a, const float *restrict b, int cols)
{
    int last = cols - FAST_LANES;
    for (int c = 0; c < last; c += FAST_LANES) {
        fast_lanes sum = fast_load(a + c);
        fast_add(&sum, fast_load(b + c));
        fast_store(to + c, sum);
    }
    if (last >= 0) {
        fast_lanes sum = fast_load(a + last);
        fast_add(&sum, fast_load(b + last));
        fast_store(to + last, sum);
    }
    for (int c = 0; c < cols && last < 0; c++)
        to[c] = a[c] + b[c];
}

void LP_FAST(embed_pair)(const lp_node *node, const lp_run *run)
{
    const float *a = INPUT(0), *b = INPUT(2); /* [V x cols], [W x cols] */
    const int32_t *i = lp_run_data(run, node->inputs[1]), *j = lp_run_data(run, node->inputs[3]); /* [T] */
    float *y = OUTPUT(0);                                                                         /* [T x cols] */
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    for (int t = 0; t < rows; t++)
        add_row(y + (size_t)t * cols, a + (size_t)i[t] * cols, b + (size_t)j[t] * cols, cols);
}

void LP_FAST(embed_gradient)(const lp_node *node, const lp_run *run)
{
    const float *dy = INPUT(0);                             /* [T x cols] */
    const int32_t *ids = lp_run_data(run, node->inputs[1]); /* [T] */
    float *dtable = OUTPUT(0);                              /* [V x cols] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    if (!ADDED(0))
        memset(dtable, 0, lp_run_size(run, node->outputs[0]) * sizeof *dtable);
    for (int t = 0; t < rows; t++) {
        float *row = dtable + (size_t)ids[t] * cols;
        const float *drow = dy + (size_t)t * cols;
#pragma omp simd
        for (int c = 0; c < cols; c++)
            row[c] += drow[c];
    }
}

void LP_FAST(gather)(const lp_node *node, const lp_run *run)
{
    LP_FAST(embed)(node, run); /* same kernel, different gradient */
}

void LP_FAST(affine)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0);
    float *y = OUTPUT(0), scale = (float)node->attributes.scale, shift = (float)node->attributes.shift;
    size_t size = lp_run_size(run, node->outputs[0]);
    bool added = ADDED(0);
#pragma omp simd
    for (size_t i = 0; i < size; i++)
        y[i] = added ? y[i] + (scale * x[i] + shift) : scale * x[i] + shift;
}

void LP_FAST(relu)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0);
    float *y = OUTPUT(0);
    size_t size = lp_run_size(run, node->outputs[0]);
#pragma omp simd
    for (size_t i = 0; i < size; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
}

void LP_FAST(relu_gradient)(const lp_node *node, const lp_run *run)
{
    const float *y = INPUT(0), *dy = INPUT(1);
    float *dx = OUTPUT(0);
    size_t size = lp_run_size(run, node->outputs[0]);
    bool added = ADDED(0);
#pragma omp simd
    for (size_t i = 0; i < size; i++) {
        float amount = y[i] > 0 ? dy[i] : 0;
        dx[i] = added ? dx[i] + amount : amount;
    }
}

/* Elements whose random bits are generated at once: enough Philox blocks to fill the vectors. */
enum { PIECE = 1024 };

static void drop_piece(const float *x, float *y, const uint16_t *bits, int count, uint32_t threshold, bool added)
{
    float scale = (float)(65536.0 / (65536.0 - threshold));
#pragma omp simd
    for (int c = 0; c < count; c++) {
        float amount = bits[c] >= threshold ? x[c] * scale : 0;
        y[c] = added ? y[c] + amount : amount;
    }
}

/* Processes several whole rows per piece, or long rows in pieces. */
void LP_FAST(dropout)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0);
    float *y = OUTPUT(0);
    int rows = lp_run_rows(run, node->outputs[0]), cols = node->outputs[0]->cols;
    uint32_t threshold = lp_dropout_threshold(node->attributes.rate),
             purpose = lp_dropout_purpose(node->attributes.stream);
    int width = (cols + 7) / 8, together = PIECE / 8 / width > 1 ? PIECE / 8 / width : 1;
    uint64_t element[PIECE / 8];
    uint16_t bits[PIECE];
    for (int t = 0; t < rows; t += together) {
        int height = rows - t < together ? rows - t : together;
        for (int first = 0; first < width; first += PIECE / 8) {
            int wide = width - first < PIECE / 8 ? width - first : PIECE / 8;
            for (int r = 0; r < height; r++)
                for (int k = 0; k < wide; k++)
                    element[r * wide + k] = (run->first_token + (uint64_t)(t + r)) * 65536 + (uint64_t)(first + k);
            fast_random_bits(run->seed, purpose, run->step, element, height * wide, bits);
            for (int r = 0; r < height; r++) {
                size_t offset = (size_t)(t + r) * cols + (size_t)first * 8;
                int count = cols - first * 8 < wide * 8 ? cols - first * 8 : wide * 8;
                drop_piece(x + offset, y + offset, bits + r * wide * 8, count, threshold, ADDED(0));
            }
        }
    }
}
