/* fast_loss.c: loss functions and softmax.
 *
 * softmax_loss processes the items in panels: a panel is transposed once, and its logits with a tile of rows are a product
 * in cache, consumed at once by an online softmax (running maximum and sum per row). Its gradient reads the scores back
 * where they are stored: that takes less time than the product.
 */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"
#include "backend/cpu/fast/fast_product.h"

typedef float real;
#include "formula/sampled.h"
#include "formula/score.h"

static const int32_t *ids(const lp_node *node, const lp_run *run, int input)
{
    return lp_run_data(run, node->inputs[input]);
}

/* ---------------------------------------------------------------------------------------- cross_entropy ------ */

/* powers = exp(row - most) of one vector; returns the sum of its lanes from `overlap` on. */
static float last_powers(const float *row, float *restrict powers, int overlap, float most)
{
    float own[FAST_LANES];
#pragma omp simd
    for (int l = 0; l < FAST_LANES; l++) {
        powers[l] = fast_exp(row[l] - most);
        own[l] = l >= overlap ? powers[l] : 0;
    }
    fast_lanes lanes = fast_load(own);
    return fast_lanes_sum(&lanes);
}

/* powers[c] = exp(row[c] - largest); returns their sum. Rows are short: instead of a remainder loop the last vector overlaps
 * the one before, or a row of less than one vector is padded. */
static float row_powers(const float *row, int cols, float *restrict powers, float *largest)
{
    int full = cols / FAST_LANES * FAST_LANES, last = cols - FAST_LANES;
    if (!full) {
        float padded[FAST_LANES];
        for (int l = 0; l < FAST_LANES; l++)
            padded[l] = l < cols ? row[l] : -INFINITY;
        *largest = fast_largest(padded, FAST_LANES);
        return fast_powers(padded, powers, FAST_LANES, *largest);
    }
    float most = fast_largest(row, full), other = fast_largest(row + last, FAST_LANES);
    *largest = most = other > most ? other : most;
    float sum = fast_powers(row, powers, full, most);
    return full < cols ? sum + last_powers(row + last, powers + last, full - last, most) : sum;
}

void LP_FAST(cross_entropy)(const lp_node *node, const lp_run *run)
{
    const float *logits = INPUT(0);                            /* [A x C] */
    const int32_t *target = lp_run_data(run, node->inputs[1]); /* [A] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    float *powers = (float *)(void *)run->scratch, largest;
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        const float *row = logits + (size_t)t * cols;
        float sum = row_powers(row, cols, powers, &largest);
        loss += log((double)sum) + (double)(largest - row[target[t]]);
    }
    *OUTPUT(0) = (float)loss;
}

void LP_FAST(cross_entropy_gradient)(const lp_node *node, const lp_run *run)
{
    const float *logits = INPUT(0), *dloss = INPUT(2);
    const int32_t *target = lp_run_data(run, node->inputs[1]);
    float *dlogits = OUTPUT(0), *powers = (float *)(void *)run->scratch, largest;
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    bool added = ADDED(0);
    for (int t = 0; t < rows; t++) {
        float *out = dlogits + (size_t)t * cols, scale = *dloss;
        float factor = scale / row_powers(logits + (size_t)t * cols, cols, powers, &largest);
#pragma omp simd
        for (int c = 0; c < cols; c++)
            out[c] = added ? out[c] + factor * powers[c] : factor * powers[c];
        out[target[t]] -= scale;
    }
}

void LP_FAST(softmax)(const lp_node *node, const lp_run *run)
{
    const float *x = INPUT(0); /* [T x C] */
    float *y = OUTPUT(0), *powers = (float *)(void *)run->scratch, largest;
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols;
    for (int t = 0; t < rows; t++) {
        float *out = y + (size_t)t * cols, factor = 1 / row_powers(x + (size_t)t * cols, cols, powers, &largest);
#pragma omp simd
        for (int c = 0; c < cols; c++)
            out[c] = factor * powers[c];
    }
}

/* ----------------------------------------------------------------------------------------- softmax_loss ------ */

enum { TILE_ROWS = LP_SOFTMAX_ROWS, TILE_ITEMS = LP_SOFTMAX_ITEMS };

/* Operands and scratch of softmax_loss and its gradient. */
typedef struct catalogue {
    const float *z, *items, *bias, *logq; /* [A x cols], [C x cols], [C], [C] or NULL */
    int rows, count, cols;
    float *tile;          /* [TILE_ROWS x TILE_ITEMS] */
    float *panel;         /* [cols x TILE_ITEMS]: transposed items */
    float *amount;        /* [TILE_ITEMS]: bias + logq; minus infinity past the last item */
    float *largest, *sum; /* [A] */
    float *scores;        /* [A x C]: all tiles; NULL: not stored */
} catalogue;

static catalogue catalogue_of(const lp_node *node, const lp_run *run, const lp_value *scores)
{
    catalogue c = {.z = INPUT(0), .items = INPUT(1), .bias = INPUT(2), .logq = INPUT(3)};
    c.scores = scores ? lp_run_data(run, scores) : NULL;
    c.rows = lp_run_rows(run, node->inputs[0]);
    c.count = lp_run_rows(run, node->inputs[1]);
    c.cols = node->inputs[0]->cols;
    c.tile = (float *)(void *)run->scratch;
    c.panel = c.tile + TILE_ROWS * TILE_ITEMS;
    c.amount = c.panel + (size_t)c.cols * TILE_ITEMS;
    c.largest = c.amount + TILE_ITEMS;
    c.sum = c.largest + c.rows;
    return c;
}

/* Items of the panel from `first` on. */
static int panel_items(const catalogue *c, int first)
{
    return c->count - first < TILE_ITEMS ? c->count - first : TILE_ITEMS;
}

/* Transposes the panel of items from `first` on; returns their number, padded. */
static int load_panel(const catalogue *c, int first)
{
    int count = panel_items(c, first), wide = fast_padded(count);
    for (int i = count; i < wide; i++)
        for (int k = 0; k < c->cols; k++)
            c->panel[(size_t)k * TILE_ITEMS + i] = 0;
    fast_transpose(count, c->cols, c->items + (size_t)first * c->cols, c->cols, c->panel, TILE_ITEMS);
    for (int i = 0; i < wide; i++)
        c->amount[i] = i < count ? c->bias[first + i] + (c->logq ? c->logq[first + i] : 0) : -INFINITY;
    return wide;
}

/* Scores of rows from .. from + rows with the panel. */
static void score_tile(const catalogue *c, int from, int rows, int wide)
{
    fast_product(rows, wide, c->cols, 1, (matrix){c->z + (size_t)from * c->cols, c->cols, false},
                 (matrix){c->panel, TILE_ITEMS, false}, false, c->tile, TILE_ITEMS);
    for (int r = 0; r < rows; r++) {
        float *row = c->tile + (size_t)r * TILE_ITEMS;
#pragma omp simd
        for (int i = 0; i < wide; i++)
            row[i] += c->amount[i];
    }
}

/* The same from the stored scores of the items from `first` on. */
static void read_tile(const catalogue *c, int from, int rows, int wide, int first)
{
    int count = panel_items(c, first);
    for (int r = 0; r < rows; r++) {
        float *row = c->tile + (size_t)r * TILE_ITEMS;
        memcpy(row, c->scores + (size_t)(from + r) * (size_t)c->count + first, (size_t)count * sizeof *row);
        for (int i = count; i < wide; i++)
            row[i] = -INFINITY;
    }
}

/* One step of the online softmax of a row. Overwrites the scores. */
static void update_sum(float *row, int wide, float *largest, float *sum)
{
    float most = fast_largest(row, wide);
    if (most > *largest) {
        *sum *= fast_exp(*largest - most);
        *largest = most;
    }
    *sum += fast_powers(row, row, wide, *largest);
}

static int tile_end(const catalogue *c, int from)
{
    return from + TILE_ROWS < c->rows ? from + TILE_ROWS : c->rows;
}

void LP_FAST(softmax_loss)(const lp_node *node, const lp_run *run)
{
    catalogue c = catalogue_of(node, run, node->outputs[2]);
    const int32_t *target = ids(node, run, 4); /* [A] */
    float *logs = OUTPUT(1);                   /* [A]: first the score of the target, then the log-sum-exp */
    double loss = 0;
    for (int t = 0; t < c.rows; t++) {
        c.largest[t] = -1e30f;
        c.sum[t] = 0;
    }
    for (int first = 0; first < c.count; first += TILE_ITEMS) {
        int wide = load_panel(&c, first), count = panel_items(&c, first);
        for (int from = 0; from < c.rows; from += TILE_ROWS) {
            int to = tile_end(&c, from);
            score_tile(&c, from, to - from, wide);
            for (int t = from; t < to; t++) {
                float *row = c.tile + (size_t)(t - from) * TILE_ITEMS;
                int column = target[t] - first;
                if (c.scores)
                    memcpy(c.scores + (size_t)t * (size_t)c.count + first, row, (size_t)count * sizeof *row);
                if (column >= 0 && column < TILE_ITEMS)
                    logs[t] = row[column];
                update_sum(row, wide, &c.largest[t], &c.sum[t]);
            }
        }
    }
    for (int t = 0; t < c.rows; t++) {
        float log_sum = c.largest[t] + (float)log((double)c.sum[t]);
        loss += (double)(log_sum - logs[t]);
        logs[t] = log_sum;
    }
    *OUTPUT(0) = (float)loss;
}

static void clear_unless_added(const lp_node *node, const lp_run *run, int output)
{
    float *data = OUTPUT(output);
    if (data && !ADDED(output))
        memset(data, 0, lp_run_size(run, node->outputs[output]) * sizeof *data);
}

/* Replaces scores by their gradients, which are 0 past the last item. */
static void score_gradients(const catalogue *c, int from, int rows, int wide, int first, const int32_t *target,
                            const float *logs, float dloss)
{
    for (int r = 0; r < rows; r++) {
        float *row = c->tile + (size_t)r * TILE_ITEMS, log_sum = logs[from + r];
        int column = target[from + r] - first;
#pragma omp simd
        for (int i = 0; i < wide; i++)
            row[i] = dloss * fast_exp(row[i] - log_sum);
        if (column >= 0 && column < TILE_ITEMS)
            row[column] -= dloss;
    }
}

void LP_FAST(softmax_loss_gradient)(const lp_node *node, const lp_run *run)
{
    catalogue c = catalogue_of(node, run, node->inputs[7]);
    const int32_t *target = ids(node, run, 4);
    const float *logs = INPUT(5), dloss = *INPUT(6);
    float *dz = OUTPUT(0), *ditems = OUTPUT(1), *dbias = OUTPUT(2);
    for (int i = 0; i < 3; i++)
        clear_unless_added(node, run, i);
    for (int first = 0; first < c.count; first += TILE_ITEMS) {
        int count = panel_items(&c, first), wide = c.scores ? fast_padded(count) : load_panel(&c, first);
        for (int from = 0; from < c.rows; from += TILE_ROWS) {
            int rows = tile_end(&c, from) - from;
            if (c.scores)
                read_tile(&c, from, rows, wide, first);
            else
                score_tile(&c, from, rows, wide);
            score_gradients(&c, from, rows, wide, first, target, logs, dloss);
            matrix tile = {c.tile, TILE_ITEMS, false}, transposed = {c.tile, TILE_ITEMS, true};
            matrix items = {c.items + (size_t)first * c.cols, c.cols, false};
            matrix z = {c.z + (size_t)from * c.cols, c.cols, false};
            if (dz)
                fast_product(rows, c.cols, count, 1, tile, items, true, dz + (size_t)from * c.cols, c.cols);
            if (ditems)
                fast_product(count, c.cols, rows, 1, transposed, z, true, ditems + (size_t)first * c.cols, c.cols);
            for (int r = 0; dbias && r < rows; r++) {
                const float *row = c.tile + (size_t)r * TILE_ITEMS;
#pragma omp simd
                for (int i = 0; i < count; i++)
                    dbias[first + i] += row[i];
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------ sampled_loss ------ */

/* Functions of a loss: replace scores by their gradients and return the loss. */
typedef double (*row_loss)(float *row, int count, float regularization);

/* Both use e = exp(-|s|): log(1 + exp(s)) is max(s, 0) + log(1 + e), and the sigmoid is 1 / (1 + e) or e / (1 + e). */
static double bce_row(float *row, int count, float regularization)
{
    (void)regularization;
    double loss = 0;
    for (int i = 0; i < count; i++) {
        double s = (double)row[i], power = exp(-fabs(s));
        double margin = i ? s : -s; /* the loss is softplus(margin) */
        loss += (margin > 0 ? margin : 0) + log1p(power);
        row[i] = (float)((s > 0 ? 1 : power) / (1 + power) - (i ? 0 : 1));
    }
    return loss;
}

static double bpr_row(float *row, int count, float regularization)
{
    float target = row[0], dtarget = 0, each = 1 / (float)(count - 1);
    double loss = 0;
    (void)regularization;
    for (int i = 1; i < count; i++) {
        double margin = (double)(row[i] - target), power = exp(-fabs(margin));
        loss += (margin > 0 ? margin : 0) + log1p(power);
        row[i] = each * (float)((margin > 0 ? 1 : power) / (1 + power));
        dtarget -= row[i];
    }
    row[0] = dtarget;
    return loss * (double)each;
}

static float sigmoid(float x)
{
    float power = fast_exp_low(x < 0 ? x : -x);
    return (x < 0 ? power : 1) / (1 + power);
}

static float largest_score(const float *scores, int count)
{
    float largest = scores[0];
#pragma omp simd reduction(max : largest)
    for (int i = 1; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    return largest;
}

/* p_j is w_j g(r - s_j), normalized: it is proportional to exp(min(s_j, r)) / (1 + exp(-|s_j - r|)), which does not underflow at all
 * negatives. */
static double bpr_max_row(float *row, int count, float regularization)
{
    float target = row[0], *s = row + 1, largest = largest_score(s, count - 1);
    float shift = largest < target ? largest : target, weights = 0, products = 0, squares = 0, dtarget = 0;
#pragma omp simd reduction(+ : weights, products, squares)
    for (int i = 0; i < count - 1; i++) {
        float weight = fast_exp_low(s[i] - largest), margin = s[i] - target;
        weights += weight;
        squares += weight * s[i] * s[i];
        products +=
            fast_exp_low((margin < 0 ? s[i] : target) - shift) / (1 + fast_exp_low(margin < 0 ? margin : -margin));
    }
    squares /= weights;
#pragma omp simd reduction(+ : dtarget)
    for (int i = 0; i < count - 1; i++) {
        float weight = fast_exp_low(s[i] - largest) / weights, margin = s[i] - target;
        float power = fast_exp_low(margin < 0 ? margin : -margin), above = (margin < 0 ? power : 1) / (1 + power);
        float product = fast_exp_low((margin < 0 ? s[i] : target) - shift) / (1 + power) / products;
        dtarget -= product * above;
        s[i] = weight - product * (1 - above) + regularization * weight * (s[i] * s[i] - squares + 2 * s[i]);
    }
    row[0] = dtarget;
    return log((double)weights) - log((double)products) + (double)(largest - shift) +
           (double)(regularization * squares);
}

static double top1_max_row(float *row, int count, float regularization)
{
    float target = row[0], *s = row + 1, largest = largest_score(s, count - 1);
    float weights = 0, loss = 0, dtarget = 0;
    (void)regularization;
#pragma omp simd reduction(+ : weights, loss)
    for (int i = 0; i < count - 1; i++) {
        float weight = fast_exp_low(s[i] - largest);
        weights += weight;
        loss += weight * (sigmoid(s[i] - target) + sigmoid(s[i] * s[i]));
    }
    loss /= weights;
#pragma omp simd reduction(+ : dtarget)
    for (int i = 0; i < count - 1; i++) {
        float weight = fast_exp_low(s[i] - largest) / weights;
        float above = sigmoid(s[i] - target), far = sigmoid(s[i] * s[i]);
        dtarget -= weight * above * (1 - above);
        s[i] = weight * (above + far - loss + above * (1 - above) + 2 * s[i] * far * (1 - far));
    }
    row[0] = dtarget;
    return (double)loss;
}

/* NULL: the formula of sampled.h is fast enough. */
static const row_loss fast_losses[LP_LOSS_COUNT] = {[LP_LOSS_BCE] = bce_row,
                                                    [LP_LOSS_BPR] = bpr_row,
                                                    [LP_LOSS_BPR_MAX] = bpr_max_row,
                                                    [LP_LOSS_TOP1_MAX] = top1_max_row};

#define ROW_LOSS(id, kernel, ...) [LP_LOSS_##id] = lp_##kernel##_row,
static double (*const row_losses[LP_LOSS_COUNT])(float *row, int count, double regularization,
                                                 int lane) = {LP_SAMPLED_LOSSES(ROW_LOSS)};

void LP_FAST(sampled_loss)(const lp_node *node, const lp_run *run)
{
    const float *z = INPUT(0), *items = INPUT(1), *bias = INPUT(2);
    const int32_t *target = ids(node, run, 4), *negative = ids(node, run, 5); /* [A], [A x N] */
    float *dscore = OUTPUT(1);                                                /* [A x (1 + N)] */
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, count = node->outputs[1]->cols;
    row_loss fast = fast_losses[node->attributes.loss];
    float regularization = (float)node->attributes.regularization;
    lp_score_rule score = node->attributes.score;
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        float *row = dscore + (size_t)t * count;
        for (int i = 0; i < count; i++) {
            int c = i ? negative[(size_t)t * (count - 1) + i - 1] : target[t];
            const float *mine = z + (size_t)t * cols, *item = items + (size_t)c * cols;
            row[i] = bias[c] + (score ? fast_distance(score, mine, item, cols) : fast_dot(mine, item, cols));
        }
        loss +=
            fast ? fast(row, count, regularization) : row_losses[node->attributes.loss](row, count, regularization, 0);
    }
    *OUTPUT(0) = (float)loss;
}

/* dz and ditem, which may be NULL, for a distance. */
static void add_slopes(lp_score_rule score, const float *restrict z, const float *restrict item, float scale, int count,
                       float *restrict dz, float *restrict ditem)
{
    for (int i = 0; i < count; i++) {
        float slope = scale * lp_distance_slope(score, z[i], item[i]);
        if (dz)
            dz[i] -= slope;
        if (ditem)
            ditem[i] += slope;
    }
}

static void add_scaled(float *restrict to, const float *restrict from, float scale, int count)
{
#pragma omp simd
    for (int i = 0; i < count; i++)
        to[i] += scale * from[i];
}

void LP_FAST(sampled_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const float *z = INPUT(0), *items = INPUT(1), *dscore = INPUT(4), dloss = *INPUT(5);
    const int32_t *target = ids(node, run, 2), *negative = ids(node, run, 3);
    float *dz = OUTPUT(0), *ditems = OUTPUT(1), *dbias = OUTPUT(2);
    int rows = lp_run_rows(run, node->inputs[0]), cols = node->inputs[0]->cols, count = node->inputs[4]->cols;
    lp_score_rule score = node->attributes.score;
    for (int i = 0; i < 3; i++)
        clear_unless_added(node, run, i);
    for (int t = 0; t < rows; t++)
        for (int i = 0; i < count; i++) {
            size_t c = (size_t)(i ? negative[(size_t)t * (count - 1) + i - 1] : target[t]);
            float amount = dloss * dscore[(size_t)t * count + i];
            if (dbias)
                dbias[c] += amount;
            if (score) {
                add_slopes(score, z + (size_t)t * cols, items + c * cols, amount, cols, dz ? dz + (size_t)t * cols : NULL,
                           ditems ? ditems + c * cols : NULL);
                continue;
            }
            if (dz)
                add_scaled(dz + (size_t)t * cols, items + c * cols, amount, cols);
            if (ditems)
                add_scaled(ditems + c * cols, z + (size_t)t * cols, amount, cols);
        }
}
