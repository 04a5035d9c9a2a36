/* fast_recurrent.c: shifts of rows, and recurrent scans.
 *
 * Segments advance together, longest first, so that a time step is one product [active x H] x [H x gates] and one loop
 * over the gates; the active segments are always the first ones of a group. A group has at most LP_RECURRENT_SEGMENTS of
 * them, which bounds the scratch and keeps the states in the cache.
 */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------- shift_rows ------ */

/* y[t] = x[t - k] within each segment and zeros elsewhere, or with `added` y += that. */
static void shift_rows(const lp_run *run, int segments, const float *x, int cols, int k, bool added, float *y)
{
    for (int s = 0; s < segments; s++) {
        int begin = run->segment[s], end = run->segment[s + 1], length = end - begin;
        int from = k < -length ? -length : k > length ? length : k;
        int first = begin + (from > 0 ? from : 0),
            last = end + (from < 0 ? from : 0); /* rows that receive a row of x */
        size_t count = (size_t)(last - first) * (size_t)cols;
        float *to = y + (size_t)first * cols;
        const float *source = x + (size_t)(first - from) * cols;
        if (added) {
#pragma omp simd
            for (size_t i = 0; i < count; i++)
                to[i] += source[i];
            continue;
        }
        memset(y + (size_t)begin * cols, 0, (size_t)(first - begin) * (size_t)cols * sizeof *y);
        memcpy(to, source, count * sizeof *y);
        memset(y + (size_t)last * cols, 0, (size_t)(end - last) * (size_t)cols * sizeof *y);
    }
}

void LP_FAST(shift_rows)(const lp_node *node, const lp_run *run)
{
    shift_rows(run, run->segments, INPUT(0), node->outputs[0]->cols,
               (int)node->attributes.shift, ADDED(0), OUTPUT(0));
}

/* ------------------------------------------------------------------------------------------------- scan ------ */

/* Segments that advance together, longest first. */
typedef struct segment_group {
    int count, active; /* active: how many have a token at the step at hand */
    int first[LP_RECURRENT_SEGMENTS], length[LP_RECURRENT_SEGMENTS]; /* tokens */
} segment_group;

/* The segments of a shard that have tokens, longest first and in their order where lengths are equal. */
typedef struct segment_scan {
    const int32_t *segment, *order;
    int count, done;
    int each; /* segments of a group: groups are of like size */
} segment_scan;

/* Takes what it needs from the front of *scratch. */
static segment_scan scan_begin(const lp_run *run, float **scratch)
{
    int32_t *order = (int32_t *)(void *)*scratch, *at = order + run->rows[LP_ROWS_TOKENS];
    const int32_t *segment = run->segment;
    int longest = 0, count = 0;
    for (int s = 0; s < run->segments; s++)
        longest = segment[s + 1] - segment[s] > longest ? segment[s + 1] - segment[s] : longest;
    /* Counting sort: at[l] is where the next segment of length l goes. */
    memset(at, 0, ((size_t)longest + 1) * sizeof *at);
    for (int s = 0; s < run->segments; s++)
        at[segment[s + 1] - segment[s]]++;
    for (int length = longest; length > 0; length--) {
        int here = at[length];
        at[length] = count;
        count += here;
    }
    for (int s = 0; s < run->segments; s++)
        if (segment[s + 1] > segment[s])
            order[at[segment[s + 1] - segment[s]]++] = s;
    *scratch = (float *)(void *)(at + longest + 1);
    int groups = (count + LP_RECURRENT_SEGMENTS - 1) / LP_RECURRENT_SEGMENTS;
    return (segment_scan){segment, order, count, 0, groups ? (count + groups - 1) / groups : 0};
}

/* False: there are no more. */
static bool next_group(segment_scan *scan, segment_group *group)
{
    int left = scan->count - scan->done;
    group->count = left < scan->each ? left : scan->each;
    group->active = 0;
    for (int r = 0; r < group->count; r++) {
        int s = scan->order[scan->done + r];
        group->first[r] = scan->segment[s];
        group->length[r] = scan->segment[s + 1] - scan->segment[s];
    }
    scan->done += group->count;
    return group->count > 0;
}

/* Sets and returns how many segments of the group have a token at step t. */
static int active_at(segment_group *group, int t)
{
    int active = group->active;
    while (active > 0 && group->length[active - 1] <= t)
        active--;
    while (active < group->count && group->length[active] > t)
        active++;
    return group->active = active;
}

/* ------------------------------------------------------------------------------------------- activations ------ */

/* Beyond this a sigmoid is 0 or 1 to within 3e-9; and the product of four denominators 1 + e^20 is within a float. */
static const float SATURATED = 20.0f;

static inline float within(float x, float bound)
{
    return x < -bound ? -bound : x > bound ? bound : x;
}

/* 1 / sigmoid(x) */
static inline float sigmoid_denominator(float x)
{
    return 1.0f + fast_exp_within(within(-x, SATURATED));
}

/* Within 2e-7. */
static inline float tanh_of(float x)
{
    return 2.0f / sigmoid_denominator(2.0f * x) - 1.0f;
}

/* ------------------------------------------------------------------------------------------------- lstm ------ */

/* One token: recurrent [4H] + x [4H] -> activated gates [4H], and the states; c becomes the cell state. The four denominators
 * share a division, which costs more than an exponential. */
static void lstm_cell(int hidden, const float *restrict recurrent, const float *restrict x, float *restrict gates,
                      float *restrict c, float *restrict c_out, float *restrict h, float *restrict h_out)
{
#pragma omp simd
    for (int j = 0; j < hidden; j++) {
        float i = sigmoid_denominator(recurrent[j] + x[j]);
        float f = sigmoid_denominator(recurrent[hidden + j] + x[hidden + j]);
        float g = sigmoid_denominator(2.0f * (recurrent[2 * hidden + j] + x[2 * hidden + j]));
        float o = sigmoid_denominator(recurrent[3 * hidden + j] + x[3 * hidden + j]);
        float i_f = i * f, g_o = g * o, all = 1.0f / (i_f * g_o);
        float input = all * g_o * f, forget = all * g_o * i, cell = 2.0f * (all * i_f * o) - 1.0f,
              output = all * i_f * g;
        float state = forget * c[j] + input * cell, hidden_state = output * tanh_of(state);
        gates[j] = input;
        gates[hidden + j] = forget;
        gates[2 * hidden + j] = cell;
        gates[3 * hidden + j] = output;
        c[j] = c_out[j] = state;
        h[j] = h_out[j] = hidden_state;
    }
}

void LP_FAST(lstm)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *weight = INPUT(1);                    /* [T x 4H], [4H x H] */
    float *h_out = OUTPUT(0), *gates = OUTPUT(1), *c_out = OUTPUT(2); /* [T x H], [T x 4H], [T x H] */
    int hidden = node->inputs[1]->cols, wide = 4 * hidden;
    float *scratch = (float *)(void *)run->scratch;
    segment_scan scan = scan_begin(run, &scratch);
    segment_group group = {0};
    float *transposed = scratch, *recurrent = transposed + (size_t)wide * hidden;         /* [H x 4H], [each x 4H] */
    float *h = recurrent + (size_t)scan.each * wide, *c = h + (size_t)scan.each * hidden; /* [each x H] */
    fast_transpose(wide, hidden, weight, hidden, transposed, wide);
    while (next_group(&scan, &group)) {
        memset(recurrent, 0, (size_t)group.count * (size_t)wide * sizeof *recurrent);
        memset(c, 0, (size_t)group.count * (size_t)hidden * sizeof *c);
        for (int t = 0; active_at(&group, t); t++) {
            if (t > 0)
                fast_product(group.active, wide, hidden, 1, (matrix){h, hidden, false},
                             (matrix){transposed, wide, false}, false, recurrent, wide);
            for (int r = 0; r < group.active; r++) {
                size_t token = (size_t)(group.first[r] + t);
                lstm_cell(hidden, recurrent + (size_t)r * wide, x + token * wide, gates + token * wide,
                          c + (size_t)r * hidden, c_out + token * hidden, h + (size_t)r * hidden,
                          h_out + token * hidden);
            }
        }
    }
}

/* One token, against time: dh is that of the hidden state, by way of the outputs, and carried by way of later tokens; dc that of
 * the cell state, carried on. The gradients of the gates before their activation go to two places. */
static void lstm_cell_gradient(int hidden, const float *restrict gates, const float *restrict c,
                               const float *restrict previous, const float *restrict dh, const float *restrict carried,
                               float *restrict dc, float *restrict dgates, float *restrict dgates_out)
{
#pragma omp simd
    for (int j = 0; j < hidden; j++) {
        float i = gates[j], f = gates[hidden + j], g = gates[2 * hidden + j], o = gates[3 * hidden + j];
        float state = tanh_of(c[j]), d = dh[j] + carried[j];
        float cell = dc[j] + d * o * (1.0f - state * state);
        float di = cell * g * i * (1.0f - i), df = cell * previous[j] * f * (1.0f - f);
        float dg = cell * i * (1.0f - g * g), output = d * state * o * (1.0f - o);
        dgates[j] = dgates_out[j] = di;
        dgates[hidden + j] = dgates_out[hidden + j] = df;
        dgates[2 * hidden + j] = dgates_out[2 * hidden + j] = dg;
        dgates[3 * hidden + j] = dgates_out[3 * hidden + j] = output;
        dc[j] = cell * f;
    }
}

void LP_FAST(lstm_gradient)(const lp_node *node, const lp_run *run)
{
    const float *gates = INPUT(0), *c = INPUT(1), *h = INPUT(2), *weight = INPUT(3), *dh = INPUT(4);
    float *dx = OUTPUT(0), *dweight = OUTPUT(1); /* [T x 4H], [4H x H] */
    int hidden = node->inputs[3]->cols, wide = 4 * hidden, tokens = run->rows[LP_ROWS_TOKENS];
    float *scratch = (float *)(void *)run->scratch;
    segment_scan scan = scan_begin(run, &scratch);
    segment_group group = {0};
    float *dgates = scratch, *carried = dgates + (size_t)scan.each * wide; /* [each x 4H], [each x H] */
    float *dc = carried + (size_t)scan.each * hidden, *zeros = dc + (size_t)scan.each * hidden; /* [each x H], [H] */
    float *previous_h = zeros + hidden;                                                         /* [T x H] */
    float *dgates_out = dx && !ADDED(0) ? dx : previous_h + (size_t)tokens * hidden;            /* [T x 4H] */
    memset(zeros, 0, (size_t)hidden * sizeof *zeros);
    while (next_group(&scan, &group)) {
        memset(carried, 0, 2 * (size_t)scan.each * (size_t)hidden * sizeof *carried); /* and dc */
        for (int t = group.length[0] - 1; t >= 0; t--) {
            for (int r = 0; r < active_at(&group, t); r++) {
                size_t token = (size_t)(group.first[r] + t);
                lstm_cell_gradient(hidden, gates + token * wide, c + token * hidden,
                                   t > 0 ? c + (token - 1) * hidden : zeros, dh + token * hidden,
                                   carried + (size_t)r * hidden, dc + (size_t)r * hidden, dgates + (size_t)r * wide,
                                   dgates_out + token * wide);
            }
            if (t > 0)
                fast_product(group.active, hidden, wide, 1, (matrix){dgates, wide, false},
                             (matrix){weight, hidden, false}, false, carried, hidden);
        }
    }
    if (dweight) {
        shift_rows(run, run->segments, h, hidden, 1, false, previous_h);
        fast_product(wide, hidden, tokens, 1, (matrix){dgates_out, wide, true}, (matrix){previous_h, hidden, false},
                     ADDED(1), dweight, hidden);
    }
    for (size_t i = 0; dx && dx != dgates_out && i < (size_t)tokens * (size_t)wide; i++)
        dx[i] += dgates_out[i];
}

/* -------------------------------------------------------------------------------------------------- gru ------ */

/* One token: recurrent [3H] without bias, x [3H] -> gates r, z, n and the recurrent part of n [4H], and the hidden state. r and z
 * share a division. */
static void gru_cell(int hidden, const float *restrict recurrent, const float *restrict bias, const float *restrict x,
                     float *restrict gates, float *restrict h, float *restrict h_out)
{
#pragma omp simd
    for (int j = 0; j < hidden; j++) {
        float r = sigmoid_denominator(x[j] + (recurrent[j] + bias[j]));
        float z = sigmoid_denominator(x[hidden + j] + (recurrent[hidden + j] + bias[hidden + j]));
        float both = 1.0f / (r * z), reset = both * z, update = both * r;
        float q = recurrent[2 * hidden + j] + bias[2 * hidden + j];
        float n = tanh_of(x[2 * hidden + j] + reset * q), state = n + update * (h[j] - n);
        gates[j] = reset;
        gates[hidden + j] = update;
        gates[2 * hidden + j] = n;
        gates[3 * hidden + j] = q;
        h[j] = h_out[j] = state;
    }
}

void LP_FAST(gru)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0), *weight = INPUT(1), *bias = INPUT(2); /* [T x 3H], [3H x H], [1 x 3H] */
    float *h_out = OUTPUT(0), *gates = OUTPUT(1);                    /* [T x H], [T x 4H] */
    int hidden = node->inputs[1]->cols, wide = 3 * hidden;
    float *scratch = (float *)(void *)run->scratch;
    segment_scan scan = scan_begin(run, &scratch);
    segment_group group = {0};
    float *transposed = scratch, *recurrent = transposed + (size_t)wide * hidden; /* [H x 3H], [each x 3H] */
    float *h = recurrent + (size_t)scan.each * wide;                              /* [each x H] */
    fast_transpose(wide, hidden, weight, hidden, transposed, wide);
    while (next_group(&scan, &group)) {
        memset(recurrent, 0, (size_t)group.count * (size_t)wide * sizeof *recurrent);
        memset(h, 0, (size_t)group.count * (size_t)hidden * sizeof *h);
        for (int t = 0; active_at(&group, t); t++) {
            if (t > 0)
                fast_product(group.active, wide, hidden, 1, (matrix){h, hidden, false},
                             (matrix){transposed, wide, false}, false, recurrent, wide);
            for (int r = 0; r < group.active; r++) {
                size_t token = (size_t)(group.first[r] + t);
                gru_cell(hidden, recurrent + (size_t)r * wide, bias, x + token * wide, gates + token * 4 * hidden,
                         h + (size_t)r * hidden, h_out + token * hidden);
            }
        }
    }
}

/* One token, against time: dh by way of the outputs, carried by way of the later token's gates and direct by way of its z;
 * direct becomes that of this token. da [3H], and da_out, get the gradients of the gates' recurrent parts, and dn [H] that of n's
 * input part: those of the other two are equal to da. */
static void gru_cell_gradient(int hidden, const float *restrict gates, const float *restrict previous,
                              const float *restrict dh, const float *restrict carried, float *restrict direct,
                              float *restrict da, float *restrict da_out, float *restrict dn)
{
#pragma omp simd
    for (int j = 0; j < hidden; j++) {
        float r = gates[j], z = gates[hidden + j], n = gates[2 * hidden + j], q = gates[3 * hidden + j];
        float d = dh[j] + (carried[j] + direct[j]), tangent = d * (1.0f - z) * (1.0f - n * n);
        dn[j] = tangent;
        da[j] = da_out[j] = tangent * q * r * (1.0f - r);
        da[hidden + j] = da_out[hidden + j] = d * (previous[j] - n) * z * (1.0f - z);
        da[2 * hidden + j] = da_out[2 * hidden + j] = tangent * r;
        direct[j] = d * z;
    }
}

static void store_row(int count, const float *restrict from, bool added, float *restrict to)
{
    if (!added) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
#pragma omp simd
    for (int j = 0; j < count; j++)
        to[j] += from[j];
}

void LP_FAST(gru_gradient)(const lp_node *node, const lp_run *run)
{
    const float *gates = INPUT(0), *h = INPUT(1), *weight = INPUT(2), *dh = INPUT(3);
    float *dx = OUTPUT(0), *dweight = OUTPUT(1), *dbias = OUTPUT(2); /* [T x 3H], [3H x H], [1 x 3H] */
    int hidden = node->inputs[2]->cols, wide = 3 * hidden, tokens = run->rows[LP_ROWS_TOKENS];
    float *scratch = (float *)(void *)run->scratch;
    segment_scan scan = scan_begin(run, &scratch);
    segment_group group = {0};
    float *da = scratch, *carried = da + (size_t)scan.each * wide;                   /* [each x 3H], [each x H] */
    float *direct = carried + (size_t)scan.each * hidden;                            /* [each x H] */
    float *zeros = direct + (size_t)scan.each * hidden, *dn = zeros + hidden;        /* [H], [H] */
    float *previous_h = dn + hidden, *da_out = previous_h + (size_t)tokens * hidden; /* [T x H], [T x 3H] */
    memset(zeros, 0, (size_t)hidden * sizeof *zeros);
    while (next_group(&scan, &group)) {
        memset(carried, 0, 2 * (size_t)scan.each * (size_t)hidden * sizeof *carried); /* and direct */
        for (int t = group.length[0] - 1; t >= 0; t--) {
            for (int r = 0; r < active_at(&group, t); r++) {
                size_t token = (size_t)(group.first[r] + t);
                float *da_r = da + (size_t)r * wide;
                gru_cell_gradient(hidden, gates + token * 4 * hidden, t > 0 ? h + (token - 1) * hidden : zeros,
                                  dh + token * hidden, carried + (size_t)r * hidden, direct + (size_t)r * hidden, da_r,
                                  da_out + token * wide, dn);
                if (dx) {
                    store_row(2 * hidden, da_r, ADDED(0), dx + token * wide);
                    store_row(hidden, dn, ADDED(0), dx + token * wide + 2 * hidden);
                }
            }
            if (t > 0)
                fast_product(group.active, hidden, wide, 1, (matrix){da, wide, false}, (matrix){weight, hidden, false},
                             false, carried, hidden);
        }
    }
    if (dweight) {
        shift_rows(run, run->segments, h, hidden, 1, false, previous_h);
        fast_product(wide, hidden, tokens, 1, (matrix){da_out, wide, true}, (matrix){previous_h, hidden, false},
                     ADDED(1), dweight, hidden);
    }
    if (dbias && !ADDED(2))
        memset(dbias, 0, (size_t)wide * sizeof *dbias);
    for (int token = 0; dbias && token < tokens; token++)
        store_row(wide, da_out + (size_t)token * wide, true, dbias);
}
