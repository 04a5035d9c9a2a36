/* kernels.c: the time every op takes, forward and backward, at the shapes of two data sets.
 *
 *   so      one shard of 8 segments of about 60 events; 32 columns, 80 frequencies, 1 head, 22 kinds (Stack Overflow)
 *   ml-1m   one shard of 8 segments of 165 events; 50 columns, 50 frequencies, 1 head, 3416 kinds (MovieLens 1M)
 *
 * The graph is one step of the exact-lag model. Results are first compared with the plain kernels in double; a wrong
 * kernel is not timed. One thread; each op's time is the least of several rounds, so that a busy machine shows less.
 *
 *   kernels [so|ml-1m] [rounds]
 */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef struct shape {
    const char *name;
    int segments, length, cols, frequencies, heads, kinds;
} shape;

static const shape shapes[] = {{"so", 8, 60, 32, 80, 1, 22}, {"ml-1m", 8, 165, 50, 50, 1, 3416}};

typedef struct bench {
    const shape *shape;
    lp_graph graph;
    lp_plan plan;
    lp_extent extent;
    int32_t *segment;
    int tokens;
} bench;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void *need(void *block)
{
    if (!block) {
        fprintf(stderr, "kernels: out of memory\n");
        exit(1);
    }
    return block;
}

/* ---------------------------------------------------------------------------------------------- the peak ----- */

/* Multiply-adds that wait for nothing: CHAINS independent sums in registers. */
enum { CHAINS = 12, TURNS = 1000000 };

#ifdef __x86_64__
__attribute__((target("avx512f"))) static float chains_512(void)
{
    __m512 sum[CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < CHAINS; i++)
            sum[i] = _mm512_fmadd_ps(sum[i], x, y);
    for (int i = 1; i < CHAINS; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) static float chains_256(void)
{
    __m256 sum[CHAINS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm256_set1_ps((float)i);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < CHAINS; i++)
            sum[i] = _mm256_fmadd_ps(sum[i], x, y);
    for (int i = 1; i < CHAINS; i++)
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    return _mm256_cvtss_f32(sum[0]);
}
#endif

/* GFLOP/s of one core at its best, or 0 where this program does not know how to ask. */
static double measure_peak(void)
{
    double best = 0;
#ifdef __x86_64__
    __builtin_cpu_init();
    bool wide = __builtin_cpu_supports("avx512f");
    if (!wide && !__builtin_cpu_supports("fma"))
        return 0;
    volatile float sink;
    for (int i = 0; i < 10; i++) {
        double start = now();
        sink = wide ? chains_512() : chains_256();
        best = fmax(best, 2e-9 * TURNS * CHAINS * (wide ? 16 : 8) / (now() - start));
    }
    (void)sink;
#endif
    return best;
}

/* ----------------------------------------------------------------------------------------------- the step ----- */

/* One step of the exact-lag model: one block, with dropout. */
static void build(bench *this)
{
    const shape *s = this->shape;
    lp_graph *g = &this->graph;
    int d = s->cols, e = 2 * s->frequencies;
    lp_value *ids = lp_graph_input(g, "ids", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *time = lp_graph_input(g, "time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *target_time = lp_graph_input(g, "target_time", LP_TYPE_DOUBLE, LP_ROWS_TOKENS, 0, 1);
    lp_value *target = lp_graph_input(g, "target", LP_TYPE_INT32, LP_ROWS_TOKENS, 0, 1);
    lp_value *seed = lp_graph_input(g, "seed", LP_TYPE_REAL, LP_ROWS_FIXED, 1, 1);
    lp_value *table = lp_graph_parameter(g, "table", s->kinds, d, LP_START_NORMAL, 0.1);
    lp_value *frequency =
        lp_harmonics(g, lp_graph_parameter(g, "log_period", 1, s->frequencies / 5, LP_START_NORMAL, 1), 5);
    lp_value *u = lp_basis(g, time, frequency), *turn = lp_basis(g, target_time, frequency);
    lp_value *z = lp_dropout(g, lp_embed(g, table, ids), 0.2), *time_out;
    lp_value *gain = lp_graph_parameter(g, "gain", 1, d, LP_START_ONES, 1);
    lp_value *shift = lp_graph_parameter(g, "shift", 1, d, LP_START_ZEROS, 0);
    lp_value *x = lp_layer_norm(g, z, gain, shift, 1e-5), *side[3];
    for (int i = 0; i < 3; i++)
        side[i] = lp_linear(g, x, lp_graph_parameter(g, "side", d, d, LP_START_NORMAL, 0.1), NULL, NULL, 1, true);
    lp_value *scale = lp_graph_parameter(g, "scale", 1, e, LP_START_ONES, 1);
    lp_value *key_time = lp_graph_parameter(g, "key_time", d, e, LP_START_NORMAL, 0.1);
    lp_value *value_time = lp_graph_parameter(g, "value_time", d, e, LP_START_NORMAL, 0.1);
    lp_value *turned =
        lp_reflect(g, lp_linear(g, side[0], lp_scale_columns(g, key_time, scale), NULL, NULL, 1, false), turn);
    lp_value *out = lp_attention(g, side[0], side[1], side[2], turned, u, s->heads, 0.17, 0.2, &time_out);
    lp_value *both =
        lp_linear(g, lp_reflect(g, time_out, turn), lp_scale_columns(g, value_time, scale), NULL, out, 1, true);
    lp_value *bias = lp_graph_parameter(g, "bias", 1, d, LP_START_ZEROS, 0);
    lp_value *inner = lp_graph_parameter(g, "inner", d, d, LP_START_NORMAL, 0.1);
    lp_value *y = lp_add(g, z, lp_dropout(g, lp_relu(g, lp_linear(g, both, inner, bias, NULL, 1, true)), 0.2));
    lp_value *last = lp_graph_parameter(g, "last", s->kinds, d, LP_START_NORMAL, 0.1);
    lp_value *output = lp_graph_parameter(g, "output", s->kinds, 1, LP_START_ZEROS, 0);
    lp_value *loss = s->kinds > 100 ? lp_softmax_loss(g, y, last, output, NULL, target)
                                    : lp_cross_entropy(g, lp_linear(g, y, last, NULL, NULL, 1, true), target);
    lapse_error error;
    if (!loss || lp_graph_gradients(g, 1, &loss, &seed, &error) != LAPSE_OK) {
        lp_graph_status(g, &error);
        fprintf(stderr, "kernels: %s\n", error.message);
        exit(1);
    }
    loss->kept = true;
}

static void cut(bench *this)
{
    const shape *s = this->shape;
    this->segment = need(lp_alloc((size_t)s->segments + 1, sizeof *this->segment));
    for (int i = 0; i < s->segments; i++) {
        int length = s->length + (2 * i - s->segments + 1) * s->length / 10;
        this->segment[i + 1] = this->segment[i] + length;
        this->extent.pairs += (int64_t)length * (length + 1) / 2;
        this->extent.longest = length > this->extent.longest ? length : this->extent.longest;
    }
    this->extent.rows[LP_ROWS_TOKENS] = this->tokens = this->segment[s->segments];
}

/* The buffers of a run in one width of reals, filled with the same numbers in either. */
static lp_run run_new(bench *this, lp_plan *plan, size_t real_size)
{
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 0);
    if (lp_plan_make(plan, &this->graph, &this->extent, real_size, NULL) != LAPSE_OK)
        need(NULL);
    void **inputs = need(lp_alloc((size_t)this->graph.input_count, sizeof *inputs));
    for (int i = 0; i < this->graph.value_count; i++) {
        const lp_value *value = this->graph.values[i];
        if (value->place != LP_PLACE_INPUT)
            continue;
        int count = (int)lp_value_rows(value, &this->extent) * value->cols;
        void *data = inputs[value->slot] = need(lp_alloc((size_t)count, 8));
        for (int k = 0; k < count; k++) {
            if (value->type == LP_TYPE_INT32)
                ((int32_t *)data)[k] = (int32_t)lp_random_below(&random, (uint32_t)value->limit);
            else if (value->type == LP_TYPE_DOUBLE)
                ((double *)data)[k] = -36000.0 * (count - k);
            else if (real_size == sizeof(float))
                ((float *)data)[k] = 1;
            else
                ((double *)data)[k] = 1;
        }
    }
    char *parameters = need(lp_alloc(this->graph.parameter_size, real_size));
    for (size_t i = 0; i < this->graph.parameter_size; i++) {
        float x = (float)(0.2 * lp_random_normal(&random));
        if (real_size == sizeof(float))
            ((float *)(void *)parameters)[i] = x;
        else
            ((double *)(void *)parameters)[i] = x;
    }
    return (lp_run){.plan = plan,
                    .work = need(lp_alloc(plan->work_size, 1)),
                    .scratch = need(lp_alloc(plan->scratch_size, 1)),
                    .inputs = inputs,
                    .parameters = parameters,
                    .gradients = need(lp_alloc(this->graph.parameter_size, real_size)),
                    .rows = {[LP_ROWS_TOKENS] = this->tokens},
                    .segments = this->shape->segments,
                    .segment = this->segment,
                    .seed = 1,
                    .step = 1};
}

static void run_free(const bench *this, lp_run *run)
{
    for (int i = 0; i < this->graph.input_count; i++)
        lp_free(run->inputs[i]);
    lp_free((void *)(uintptr_t)run->inputs);
    lp_free((void *)(uintptr_t)run->parameters);
    lp_free(run->gradients);
    lp_free(run->work);
    lp_free(run->scratch);
}

/* The largest error of a parameter's gradient, in units of that gradient's largest element. */
static double check(bench *this, const lp_kernel *kernels)
{
    lp_plan plan, plan_double;
    lp_run exact = run_new(this, &plan_double, sizeof(double));
    for (int i = 0; i < this->graph.node_count; i++)
        lp_reference_kernels_double[this->graph.nodes[i]->op->id](this->graph.nodes[i], &exact);
    /* Planning again moves the work values, but the gradients have been taken. */
    lp_run run = run_new(this, &plan, sizeof(float));
    for (int i = 0; i < this->graph.node_count; i++)
        kernels[this->graph.nodes[i]->op->id](this->graph.nodes[i], &run);
    double worst = 0;
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        const double *wanted = (const double *)exact.gradients + value->offset;
        const float *got = (const float *)run.gradients + value->offset;
        double largest = 1e-3, error = 0;
        for (int k = 0; k < value->rows * value->cols; k++) {
            largest = fmax(largest, fabs(wanted[k]));
            error = fmax(error, fabs(wanted[k] - (double)got[k]));
        }
        worst = fmax(worst, error / largest);
    }
    run_free(this, &exact);
    run_free(this, &run);
    return worst;
}

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] < y[0] ? 1 : x[0] > y[0] ? -1 : 0;
}

static double share(double rate, double peak)
{
    return peak > 0 ? 100 * rate / peak : 0;
}

static void report(const bench *this, const double *best, double peak)
{
    double sums[LP_OP_COUNT][4] = {{0}}; /* seconds, operations, bytes, op */
    double all = 0, flop = 0;
    for (int i = 0; i < this->graph.node_count; i++) {
        const lp_node *node = this->graph.nodes[i];
        lp_cost cost = node->op->cost(node, &this->extent);
        double *sum = sums[node->op->id];
        sum[0] += best[i];
        sum[1] += cost.flop;
        sum[2] += cost.bytes;
        all += best[i];
        flop += cost.flop;
    }
    for (int op = 0; op < LP_OP_COUNT; op++)
        sums[op][3] = op;
    qsort(sums, LP_OP_COUNT, sizeof *sums, by_time);
    printf("  %-24s %9s %7s %9s %8s %8s\n", "op", "us", "share", "GFLOP/s", "of peak", "GB/s");
    for (int i = 0; i < LP_OP_COUNT && sums[i][0] > 0; i++) {
        double rate = sums[i][1] / sums[i][0] * 1e-9;
        printf("  %-24s %9.1f %6.1f%% %9.2f %7.1f%% %8.2f\n", lp_op_table[(int)sums[i][3]]->name, sums[i][0] * 1e6,
               100 * sums[i][0] / all, rate, share(rate, peak), sums[i][2] / sums[i][0] * 1e-9);
    }
    printf("  %-24s %9.1f %7s %9.2f %7.1f%%   %.0f events/s\n\n", "all", all * 1e6, "", flop / all * 1e-9,
           share(flop / all * 1e-9, peak), this->tokens / all);
}

static int bench_shape(const shape *s, int rounds, const lp_kernel *kernels, double peak)
{
    bench this = {.shape = s};
    lp_plan plan;
    build(&this);
    cut(&this);
    double error = check(&this, kernels);
    printf("%s: %d segments, %d tokens, %lld pairs; largest error of a gradient %.1e\n", s->name, s->segments,
           this.tokens, (long long)this.extent.pairs, error);
    if (!(error < 1e-4)) {
        fprintf(stderr, "kernels: wrong results, not timed\n");
        return 1;
    }
    lp_run run = run_new(&this, &plan, sizeof(float));
    double *best = need(lp_alloc((size_t)this.graph.node_count, sizeof *best));
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < this.graph.node_count; i++) {
            double start = now();
            kernels[this.graph.nodes[i]->op->id](this.graph.nodes[i], &run);
            double took = now() - start;
            best[i] = round == 0 || took < best[i] ? took : best[i];
        }
    report(&this, best, peak);
    lp_free(best);
    run_free(&this, &run);
    lp_free(this.segment);
    lp_graph_clear(&this.graph);
    return 0;
}

int main(int count, char **arguments)
{
    const char *wanted = count > 1 ? arguments[1] : NULL;
    int rounds = count > 2 ? atoi(arguments[2]) : 200, failed = 0;
    const lp_kernel *kernels = lp_cpu_kernels();
    double peak = measure_peak();
    printf("level %s; multiply-adds alone: %.1f GFLOP/s on one thread\n\n", lp_cpu_level(), peak);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!wanted || strcmp(wanted, shapes[i].name) == 0)
            failed |= bench_shape(&shapes[i], rounds, kernels, peak);
    return failed;
}
