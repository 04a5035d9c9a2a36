/* fast_attention.c: causal attention in tiles of matrix products.
 *
 * A tile of query rows is multiplied with all keys up to its last row, so that little is computed above the diagonal. The
 * scores of a tile are two products (event columns, time columns), then a softmax per row, then two products for the
 * outputs. The gradient stores the probabilities and their gradients of a whole segment, so that the products that reduce
 * over queries have many terms.
 *
 * Rows of the scratch matrices are padded to whole vectors with scores of minus infinity: computing the padding is faster
 * than a remainder loop.
 */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

/* One register tile of a product: more rows would compute more pairs above the diagonal. */
enum { ROWS = FAST_ROWS };
_Static_assert((int)ROWS <= (int)LP_ATTENTION_ROWS, "the scratch is sized for fewer rows");

/* One head of one segment. Matrices start at the first token of the segment and the first column of the head. */
typedef struct part {
    int length, stride; /* tokens of the segment; columns of the scratch matrices */
    int first;          /* the segment's first token in the shard */
    int number, heads;  /* head index, and number of heads */
    int cols, extra;    /* columns of query, key and value; of the basis (0: no time columns) */
    matrix query, key, value, time_query, basis;
    float *key_transposed, *value_transposed, *basis_transposed; /* [cols or extra x stride] */
    float scale;
    float *scores, *dscores; /* [length x stride] */
    uint16_t *bits;          /* random bits of a tile of rows; without dropout, zeros for one row */
    uint64_t *element;
} part;

/* The end of a block of keys. The last one is short: it has the fewest queries. */
static int key_block_end(const part *p, int from)
{
    return from + ROWS < p->length ? from + ROWS : p->length;
}

/* The end of a block of queries. The first one is short: it has the fewest keys. */
static int query_block_end(const part *p, int from)
{
    return from == 0 ? (p->length - 1) % ROWS + 1 : from + ROWS;
}

/* `count` columns in whole vectors of a product. */
static int whole_vectors(int count)
{
    return (count + FAST_WIDTH - 1) / FAST_WIDTH * FAST_WIDTH;
}

/* The columns of head `number`, from the first token of the segment. */
static matrix slice(const lp_node *node, const lp_run *run, int input, const part *p)
{
    const lp_value *value = node->inputs[input];
    if (!value)
        return (matrix){0};
    int column = input == 4 ? 0 : value->cols / p->heads * p->number; /* the basis is common to all heads */
    return (matrix){INPUT(input) + (size_t)p->first * value->cols + column, value->cols, false};
}

static part part_of(const lp_node *node, const lp_run *run, int segment, int number)
{
    part p = {.first = run->segment[segment], .number = number, .heads = node->attributes.heads};
    p.length = run->segment[segment + 1] - p.first;
    p.stride = fast_padded(p.length);
    p.cols = node->inputs[0]->cols / p.heads;
    p.extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    p.scale = (float)node->attributes.scale;
    p.query = slice(node, run, 0, &p);
    p.key = slice(node, run, 1, &p);
    p.value = slice(node, run, 2, &p);
    p.time_query = slice(node, run, 3, &p);
    p.basis = slice(node, run, 4, &p);
    size_t square = (size_t)p.stride * (size_t)p.stride;
    p.scores = (float *)(void *)run->scratch;
    p.dscores = p.scores + square;
    p.basis_transposed = p.dscores + square;
    p.key_transposed = p.basis_transposed + (size_t)p.extra * p.stride;
    p.value_transposed = p.key_transposed + (size_t)p.cols * p.stride;
    p.element = (uint64_t *)(void *)(p.value_transposed + (size_t)p.cols * p.stride);
    p.bits = (uint16_t *)(void *)(p.element + ROWS * p.stride / 8);
    return p;
}

/* m from `row` on; an absent matrix stays absent. */
static matrix rows_from(matrix m, int row)
{
    if (!m.data)
        return m;
    return (matrix){m.data + (size_t)row * m.stride, m.stride, m.transposed};
}

/* The address of output i of this head and segment at `row`; *stride receives its row stride. */
static float *output_at(const lp_node *node, const lp_run *run, int output, const part *p, int row, int *stride)
{
    const lp_value *value = node->outputs[output];
    *stride = value->cols;
    int column = node->op->id == LP_OP_ATTENTION_GRADIENT && output == 4 ? 0 : value->cols / p->heads * p->number;
    return OUTPUT(output) + (size_t)(p->first + row) * value->cols + column;
}

/* Fills the scratch of a head: transposed keys, and the transposed basis at the first head. */
static void prepare_scratch(const part *p)
{
    memset(p->bits, 0, (size_t)p->stride * sizeof *p->bits);
    fast_transpose(p->length, p->cols, p->key.data, p->key.stride, p->key_transposed, p->stride);
    if (p->number == 0)
        fast_transpose(p->length, p->extra, p->basis.data, p->basis.stride, p->basis_transposed, p->stride);
}

/* Random bits of rows from .. to, contiguous; row q has fast_padded(q + 1) of them. */
static void draw(const lp_node *node, const lp_run *run, const part *p, int from, int to)
{
    int count = 0;
    for (int q = from; q < to; q++) {
        uint64_t row = (run->first_token + (uint64_t)(p->first + q)) * (uint64_t)p->heads + (uint64_t)p->number;
        int wide = fast_padded(q + 1) / 8;
        for (int k = 0; k < wide; k++)
            p->element[count++] = row * 65536 + (uint64_t)k;
    }
    fast_random_bits(run->seed, lp_dropout_purpose(node->attributes.stream), run->step, p->element, count, p->bits);
}

/* Scores of rows from .. to with keys 0 .. to, rounded up to whole vectors: faster than edges, and the excess is never
 * read but by fast_fill. */
static void score_block(const part *p, int from, int to)
{
    float *scores = p->scores + (size_t)from * p->stride;
    product_terms terms[] = {
        {p->cols, rows_from(p->query, from), {p->key_transposed, p->stride, false}},
        {p->extra, rows_from(p->time_query, from), {p->basis_transposed, p->stride, false}},
    };
    fast_product_sum(to - from, whole_vectors(to), p->scale, 2, terms, false, scores, p->stride);
}

/* Softmax and dropout of a row of `count` scores, in place, with zeros from count to wide. Returns the log-sum-exp. */
static float softmax_row(float *restrict row, int count, int wide, const uint16_t *restrict bits, uint32_t threshold)
{
    int length = fast_padded(count);
    fast_fill(row, count, -INFINITY);
    float largest = fast_largest(row, length);
    float sum = fast_powers(row, row, length, largest);
    float scale = (float)(65536.0 / (65536.0 - threshold)) / sum;
#pragma omp simd
    for (int i = 0; i < length; i++)
        row[i] = bits[i] >= threshold ? row[i] * scale : 0;
    for (int i = length; i < wide; i++)
        row[i] = 0;
    return largest + (float)log((double)sum);
}

static void forward(const lp_node *node, const lp_run *run, const part *p)
{
    uint32_t threshold = lp_dropout_threshold(node->attributes.rate);
    float *log_sum = OUTPUT(1) + (size_t)p->first * p->heads + p->number;
    for (int from = 0, to; from < p->length; from = to) {
        int stride;
        to = query_block_end(p, from);
        const uint16_t *bits = p->bits;
        if (threshold)
            draw(node, run, p, from, to);
        score_block(p, from, to);
        for (int q = from; q < to; q++) {
            log_sum[(size_t)q * p->heads] = softmax_row(p->scores + (size_t)q * p->stride, q + 1, to, bits, threshold);
            bits += threshold ? fast_padded(q + 1) : 0;
        }
        matrix probabilities = {p->scores + (size_t)from * p->stride, p->stride, false};
        float *out = output_at(node, run, 0, p, from, &stride);
        fast_product(to - from, p->cols, to, 1, probabilities, p->value, false, out, stride);
        if (p->extra) {
            out = output_at(node, run, 2, p, from, &stride);
            fast_product(to - from, p->extra, to, 1, probabilities, p->basis, false, out, stride);
        }
    }
}

void LP_FAST(attention)(const lp_node *node, const lp_run *run)
{
    for (int s = 0, segments = run->segments; s < segments; s++)
        for (int number = 0; number < node->attributes.heads; number++) {
            part p = part_of(node, run, s, number);
            prepare_scratch(&p);
            forward(node, run, &p);
        }
}

/* All heads of the position `last`, row a of the queries. Its keys are read once or twice, so they are not transposed. */
static void attend_at(const lp_node *node, const lp_run *run, int a, int last)
{
    int heads = node->attributes.heads, all = node->inputs[0]->cols, cols = all / heads, width = node->inputs[1]->cols;
    int extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    int first = run->segment[lp_segment_of(run->segment, run->segments, last)], keys = last - first + 1;
    int stride = fast_padded(keys), shared = width < all ? heads : 1; /* heads with the same keys and values */
    const float *query = INPUT(0) + (size_t)a * all, *key = INPUT(1) + (size_t)first * width;
    const float *time_query = extra ? INPUT(3) + (size_t)a * heads * extra : NULL;
    matrix basis = {extra ? INPUT(4) + (size_t)first * extra : NULL, extra, false};
    float *scores = (float *)(void *)run->scratch, *out = OUTPUT(0) + (size_t)a * all;
    for (int h = 0; h < heads; h++) {
        float *row = scores + (size_t)h * stride, scale = (float)node->attributes.scale;
        fast_row_product(keys, cols, scale, query + h * cols, key + h / shared * cols, (size_t)width, false, row);
        if (extra)
            fast_row_product(keys, extra, scale, time_query + h * extra, basis.data, (size_t)extra, true, row);
        fast_softmax(row, keys, keys);
    }
    for (int h = 0; h < heads; h += shared) {
        matrix value = {INPUT(2) + (size_t)first * width + h / shared * cols, width, false};
        matrix probabilities = {scores + (size_t)h * stride, stride, false};
        fast_product(shared, cols, keys, 1, probabilities, value, false, out + h * cols, cols);
    }
    if (extra)
        fast_product(heads, extra, keys, 1, (matrix){scores, stride, false}, basis, false,
                     OUTPUT(2) + (size_t)a * heads * extra, extra);
}

void LP_FAST(attention_at)(const lp_node *node, const lp_run *run)
{
    const int32_t *positions = lp_run_data(run, node->inputs[5]);
    for (int a = 0, rows = lp_run_rows(run, node->inputs[0]); a < rows; a++)
        attend_at(node, run, a, positions[a]);
}

/* ---------------------------------------------------------------------------------------------- gradient ----- */

/* Replaces a row of scores by probabilities after dropout, and the gradients of the probabilities by those of the scores,
 * with zeros from count to wide. */
static void softmax_row_gradient(float *restrict row, float *restrict drow, int count, int wide,
                                 const uint16_t *restrict bits, uint32_t threshold, float log_sum, float scale)
{
    float survival = (float)(65536.0 / (65536.0 - threshold));
    int length = fast_padded(count);
    fast_lanes sum = {0};
    fast_fill(row, count, -INFINITY);
    fast_fill(drow, count, 0);
    for (int i = 0; i < length; i += FAST_LANES) {
#pragma omp simd
        for (int l = i; l < i + FAST_LANES; l++) {
            row[l] = fast_exp(row[l] - log_sum);
            drow[l] *= bits[l] >= threshold ? survival : 0;
        }
        fast_multiply_add(&sum, fast_load(row + i), fast_load(drow + i));
    }
    float delta = fast_lanes_sum(&sum);
#pragma omp simd
    for (int i = 0; i < length; i++) {
        drow[i] = scale * row[i] * (drow[i] - delta);
        row[i] *= bits[i] >= threshold ? survival : 0;
    }
    for (int i = length; i < wide; i++)
        row[i] = drow[i] = 0;
}

/* Rows from .. to of scores and dscores, and the gradients of the queries. */
static void backward_block(const lp_node *node, const lp_run *run, const part *p, int from, int to)
{
    uint32_t threshold = lp_dropout_threshold(node->attributes.rate);
    matrix dout = slice(node, run, 7, p), dtime_out = slice(node, run, 9, p);
    const float *log_sum = INPUT(5) + (size_t)p->first * p->heads + p->number;
    float *dscores = p->dscores + (size_t)from * p->stride;
    const uint16_t *bits = p->bits;
    int stride, count = to - from;
    if (threshold)
        draw(node, run, p, from, to);
    score_block(p, from, to);
    product_terms terms[] = {
        {p->cols, rows_from(dout, from), {p->value_transposed, p->stride, false}},
        {p->extra, rows_from(dtime_out, from), {p->basis_transposed, p->stride, false}},
    };
    fast_product_sum(count, whole_vectors(to), 1, 2, terms, false, dscores, p->stride);
    for (int q = from; q < to; q++) {
        size_t at = (size_t)q * p->heads;
        int keys_end = key_block_end(p, q / ROWS * ROWS),
            wide = to > keys_end ? to : keys_end; /* read by backward_keys */
        softmax_row_gradient(p->scores + (size_t)q * p->stride, p->dscores + (size_t)q * p->stride, q + 1, wide, bits,
                             threshold, log_sum[at], p->scale);
        bits += threshold ? fast_padded(q + 1) : 0;
    }
    matrix rows = {dscores, p->stride, false};
    if (node->outputs[0]) {
        float *dquery = output_at(node, run, 0, p, from, &stride);
        fast_product(count, p->cols, to, 1, rows, p->key, ADDED(0), dquery, stride);
    }
    if (node->outputs[3]) {
        float *dtime_query = output_at(node, run, 3, p, from, &stride);
        fast_product(count, p->extra, to, 1, rows, p->basis, ADDED(3), dtime_query, stride);
    }
}

/* The gradients of keys, values and basis from .. to: products that reduce over the queries at and after them. */
static void backward_keys(const lp_node *node, const lp_run *run, const part *p, int from, int to)
{
    size_t corner = (size_t)from * p->stride + (size_t)from;
    matrix dscores = {p->dscores + corner, p->stride, true}, probabilities = {p->scores + corner, p->stride, true};
    matrix dout = slice(node, run, 7, p), dtime_out = slice(node, run, 9, p);
    int stride, count = to - from, later = p->length - from;
    if (node->outputs[1]) {
        float *dkey = output_at(node, run, 1, p, from, &stride);
        fast_product(count, p->cols, later, 1, dscores, rows_from(p->query, from), ADDED(1), dkey, stride);
    }
    if (node->outputs[2]) {
        float *dvalue = output_at(node, run, 2, p, from, &stride);
        fast_product(count, p->cols, later, 1, probabilities, rows_from(dout, from), ADDED(2), dvalue, stride);
    }
    if (node->outputs[4]) {
        float *dbasis = output_at(node, run, 4, p, from, &stride);
        bool added = ADDED(4) || p->number > 0;
        product_terms terms[] = {{later, dscores, rows_from(p->time_query, from)},
                                 {later, probabilities, rows_from(dtime_out, from)}};
        fast_product_sum(count, p->extra, 1, 2, terms, added, dbasis, stride);
    }
}

void LP_FAST(attention_gradient)(const lp_node *node, const lp_run *run)
{
    for (int s = 0, segments = run->segments; s < segments; s++)
        for (int number = 0; number < node->attributes.heads; number++) {
            part p = part_of(node, run, s, number);
            prepare_scratch(&p);
            fast_transpose(p.length, p.cols, p.value.data, p.value.stride, p.value_transposed, p.stride);
            for (int from = 0, to; from < p.length; from = to) {
                to = query_block_end(&p, from);
                backward_block(node, run, &p, from, to);
            }
            for (int from = 0; from < p.length; from += ROWS)
                backward_keys(node, run, &p, from, key_block_end(&p, from));
        }
}
