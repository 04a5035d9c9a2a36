/* reference_attention.c: causal attention, one query at a time. */
#include "backend/cpu/reference/reference.h"

#define lp_lanes_sum(x) (x)

#include <string.h>

/* The matrices of one head. */
typedef struct head {
    int cols, stride; /* of query and out: columns per head, and of all heads */
    int key_from,
        key_stride; /* of key and value: the head's first column, and all columns; attention_at may share them */
    int extra, extra_stride; /* of time_query and time_out; the basis has `extra` columns, common to all heads */
    int number, heads;
} head;

static head head_of(const lp_node *node, int number)
{
    int heads = node->attributes.heads, extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    int all = node->inputs[0]->cols, cols = all / heads, keys = node->inputs[1]->cols;
    return (head){cols, all, keys == all ? number * cols : 0, keys, extra, heads * extra, number, heads};
}

static real dot(const real *a, const real *b, int count)
{
    real sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* scale * ( query_q . key_i + time_query_q . basis_i ); q: row of the queries, i: token */
static real score(const lp_node *node, const lp_run *run, const head *h, int q, int i)
{
    const real *query = INPUT(0), *key = INPUT(1), *time_query = INPUT(3), *basis = INPUT(4);
    real sum = dot(query + (size_t)q * h->stride + h->number * h->cols, key + (size_t)i * h->key_stride + h->key_from,
                   h->cols);
    if (basis)
        sum += dot(time_query + (size_t)q * h->extra_stride + h->number * h->extra, basis + (size_t)i * h->extra,
                   h->extra);
    return (real)node->attributes.scale * sum;
}

/* The dropout factor of the probability of query q and key `position` of the segment. */
static real factor(const lp_node *node, const lp_run *run, const head *h, int q, int position)
{
    uint32_t threshold = lp_dropout_threshold(node->attributes.rate);
    if (threshold == 0)
        return 1;
    uint64_t row = (run->first_token + (uint64_t)q) * (uint64_t)h->heads + (uint64_t)h->number;
    lp_random_block block = lp_philox(run->seed, lp_dropout_purpose(node->attributes.stream), run->step,
                                      row * 65536 + (uint64_t)position / 8);
    return lp_dropout_keep(&block, position, threshold) ? (real)(65536.0 / (65536.0 - threshold)) : 0;
}

/* The query of row q, of the token `last` of the segment that begins at `first`. */
static void forward_query(const lp_node *node, const lp_run *run, const head *h, int first, int last, int q)
{
    const real *value = INPUT(2), *basis = INPUT(4);
    real *out = OUTPUT(0) + (size_t)q * h->stride + h->number * h->cols;
    real *time_out = basis ? OUTPUT(2) + (size_t)q * h->extra_stride + h->number * h->extra : NULL;
    real *scores = (real *)(void *)run->scratch;
    real largest = score(node, run, h, q, first), sum = 0;
    for (int i = first; i <= last; i++) {
        scores[i - first] = score(node, run, h, q, i);
        largest = scores[i - first] > largest ? scores[i - first] : largest;
    }
    for (int i = first; i <= last; i++)
        sum += (real)exp((double)(scores[i - first] - largest));
    real log_sum = largest + (real)log((double)sum);
    if (node->outputs[1])
        OUTPUT(1)[(size_t)q * h->heads + h->number] = log_sum;
    memset(out, 0, (size_t)h->cols * sizeof *out);
    for (int c = 0; c < h->extra; c++)
        time_out[c] = 0;
    for (int i = first; i <= last; i++) {
        real p = (real)exp((double)(scores[i - first] - log_sum)) * factor(node, run, h, q, i - first);
        for (int c = 0; c < h->cols; c++)
            out[c] += p * value[(size_t)i * h->key_stride + h->key_from + c];
        for (int c = 0; c < h->extra; c++)
            time_out[c] += p * basis[(size_t)i * h->extra + c];
    }
}

void LP_REFERENCE(attention)(const lp_node *node, const lp_run *run)
{
    for (int s = 0, segments = run->segments; s < segments; s++)
        for (int number = 0; number < node->attributes.heads; number++) {
            head h = head_of(node, number);
            for (int q = run->segment[s]; q < run->segment[s + 1]; q++)
                forward_query(node, run, &h, run->segment[s], q, q);
        }
}

void LP_REFERENCE(attention_at)(const lp_node *node, const lp_run *run)
{
    const int32_t *positions = lp_run_data(run, node->inputs[5]);
    for (int a = 0, rows = lp_run_rows(run, node->inputs[0]); a < rows; a++)
        for (int number = 0; number < node->attributes.heads; number++) {
            head h = head_of(node, number);
            forward_query(node, run, &h, run->segment[lp_segment_of(run->segment, run->segments, positions[a])],
                          positions[a], a);
        }
}

/* ds(q, i) = p * (factor * dout_q . value_i + ... - delta), delta = dout_q . out_q, less the gradient of the
 * log-sum-exp: the gradient of the softmax; then that of the products. */
static void backward_query(const lp_node *node, const lp_run *run, const head *h, int first, int q)
{
    const real *query = INPUT(0), *key = INPUT(1), *value = INPUT(2), *time_query = INPUT(3), *basis = INPUT(4);
    const real *out = INPUT(6), *dout = INPUT(7), *time_out = INPUT(8), *dtime_out = INPUT(9);
    real *dquery = OUTPUT(0), *dkey = OUTPUT(1), *dvalue = OUTPUT(2), *dtime_query = OUTPUT(3), *dbasis = OUTPUT(4);
    size_t mine = (size_t)q * h->stride + h->number * h->cols,
           mine_extra = (size_t)q * h->extra_stride + h->number * h->extra;
    real log_sum = INPUT(5)[(size_t)q * h->heads + h->number];
    real delta = dot(dout + mine, out + mine, h->cols);
    if (basis)
        delta += dot(dtime_out + mine_extra, time_out + mine_extra, h->extra);
    for (int i = first; i <= q; i++) {
        size_t other = (size_t)i * h->stride + h->number * h->cols, other_extra = (size_t)i * h->extra;
        real p = (real)exp((double)(score(node, run, h, q, i) - log_sum)), f = factor(node, run, h, q, i - first);
        real dp = dot(dout + mine, value + other, h->cols);
        if (basis)
            dp += dot(dtime_out + mine_extra, basis + other_extra, h->extra);
        real ds = (real)node->attributes.scale * p * (f * dp - delta);
        for (int c = 0; c < h->cols; c++) {
            if (dquery)
                dquery[mine + c] += ds * key[other + c];
            if (dkey)
                dkey[other + c] += ds * query[mine + c];
            if (dvalue)
                dvalue[other + c] += f * p * dout[mine + c];
        }
        for (int c = 0; c < h->extra; c++) {
            if (dtime_query)
                dtime_query[mine_extra + c] += ds * basis[other_extra + c];
            if (dbasis)
                dbasis[other_extra + c] += ds * time_query[mine_extra + c] + f * p * dtime_out[mine_extra + c];
        }
    }
}

void LP_REFERENCE(attention_gradient)(const lp_node *node, const lp_run *run)
{
    for (int i = 0; i < node->op->output_count; i++)
        if (node->outputs[i] && !(node->accumulate >> i & 1))
            memset(lp_run_data(run, node->outputs[i]), 0, lp_run_size(run, node->outputs[i]) * sizeof(real));
    for (int s = 0, segments = run->segments; s < segments; s++)
        for (int number = 0; number < node->attributes.heads; number++) {
            head h = head_of(node, number);
            for (int q = run->segment[s]; q < run->segment[s + 1]; q++)
                backward_query(node, run, &h, run->segment[s], q);
        }
}
