/* test_cache_ops.c: attention_cached agrees with attention over all events, at every instruction-set level, on shapes that
 * vectors do not divide. */
#include "backend/cpu/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

/* Shapes and data of one case. */
typedef struct shape {
    int past, now, heads, cols, extra;
    bool shared;    /* keys and values are common to all heads */
    bool reflected; /* with query times */
} shape;

enum { QUERY, KEY, VALUE, TIME_QUERY, BASIS, UNTIL, PARTS };

static int width(const shape *s, int part)
{
    if (part == BASIS || part == UNTIL)
        return part == UNTIL && !s->reflected ? 0 : s->extra;
    return part == TIME_QUERY ? s->heads * s->extra : part != QUERY && s->shared ? s->cols : s->heads * s->cols;
}

typedef struct graph_run {
    lp_graph graph;
    lp_value *out, *time_out;
    void *inputs[2 * PARTS]; /* first rows of the new events */
    void *blocks[2 * PARTS]; /* their allocations */
} graph_run;

static lp_value *input(lp_graph *graph, lp_rows rows, int cols)
{
    return cols ? lp_graph_input(graph, "x", LP_TYPE_REAL, rows, 0, cols) : NULL;
}

static void run_graph(graph_run *r, int tokens, int past, size_t real_size, const lp_kernel *kernels,
                      const lp_run_branches *branches, double *out, double *time_out)
{
    lp_extent extent = {.pairs = (int64_t)tokens * (tokens + past), .longest = tokens + past};
    extent.rows[LP_ROWS_TOKENS] = tokens;
    extent.rows[LP_ROWS_PAST] = past;
    lp_plan plan;
    int32_t segment[] = {0, tokens};
    lapse_error error = {0};
    r->out->retained = true;
    if (r->time_out)
        r->time_out->retained = true;
    if (lp_plan_make(&plan, &r->graph, &extent, real_size, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lp_run run = {.plan = &plan,
                  .work = lp_alloc(plan.work_size, 1),
                  .scratch = lp_alloc(plan.scratch_size, 1),
                  .inputs = r->inputs,
                  .rows = {[LP_ROWS_TOKENS] = tokens, [LP_ROWS_PAST] = past},
                  .segments = 1,
                  .segment = segment,
                  .branches = branches};
    assert_true(run.work && run.scratch);
    for (int i = 0; i < r->graph.node_count; i++)
        kernels[r->graph.nodes[i]->op->id](r->graph.nodes[i], &run);
    for (int part = 0; part < 2; part++) {
        const lp_value *value = part ? r->time_out : r->out;
        double *to = part ? time_out : out;
        for (int i = 0; value && i < tokens * value->cols; i++)
            to[i] = real_size == sizeof(double) ? ((double *)lp_run_data(&run, value))[i]
                                                : (double)((float *)lp_run_data(&run, value))[i];
    }
    lp_free(run.work);
    lp_free(run.scratch);
}

/* Rows from .. from + count as reals of the given size. */
static void *rows_of(const double *numbers, int cols, int from, int count, size_t real_size)
{
    void *rows = lp_alloc((size_t)count * (size_t)cols, real_size);
    assert_non_null(rows);
    for (int i = 0; i < count * cols; i++) {
        if (real_size == sizeof(double))
            ((double *)rows)[i] = numbers[from * cols + i];
        else
            ((float *)rows)[i] = (float)numbers[from * cols + i];
    }
    return rows;
}

/* Repeated per head, because attention does not share keys and values. */
static double *repeated(const double *numbers, int rows, int cols, int heads)
{
    double *all = lp_alloc((size_t)(rows * cols * heads), sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < rows * cols * heads; i++)
        all[i] = numbers[i / (cols * heads) * cols + i % cols];
    return all;
}

static void build(graph_run *r, const shape *s, double *const numbers[PARTS], bool whole, size_t real_size)
{
    lp_value *now[PARTS];
    int past = whole ? 0 : s->past, all = s->past + s->now;
    *r = (graph_run){.graph = {.value_count = 0}};
    for (int part = 0; part < PARTS; part++) {
        bool repeat = whole && s->shared && (part == KEY || part == VALUE);
        int cols = repeat ? s->heads * s->cols : width(s, part);
        now[part] = input(&r->graph, LP_ROWS_TOKENS, cols);
        if (!now[part])
            continue;
        double *own = repeat ? repeated(numbers[part], all, s->cols, s->heads) : NULL;
        r->blocks[now[part]->slot] = rows_of(own ? own : numbers[part], cols, 0, all, real_size);
        lp_free(own);
        r->inputs[now[part]->slot] = (char *)r->blocks[now[part]->slot] + (size_t)(past * cols) * real_size;
    }
    lp_value **time_out = s->extra ? &r->time_out : NULL;
    if (whole) {
        lp_value *reflected_query = s->reflected ? lp_reflect(&r->graph, now[TIME_QUERY], now[UNTIL]) : now[TIME_QUERY];
        r->out = lp_attention(&r->graph, now[QUERY], now[KEY], now[VALUE], reflected_query, now[BASIS], s->heads, 0.6,
                              0, time_out);
        if (s->reflected)
            r->time_out = lp_reflect(&r->graph, r->time_out, now[UNTIL]);
    } else {
        lp_kv_cache memory = {.key = now[KEY], .value = now[VALUE], .basis = now[BASIS]};
        r->out =
            lp_attention_cached(&r->graph, now[QUERY], now[TIME_QUERY], now[UNTIL], &memory, s->heads, 0.6, time_out);
    }
    lapse_error error = {0};
    if (lp_graph_status(&r->graph, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
}

static void clear(graph_run *r)
{
    for (int i = 0; i < 2 * PARTS; i++)
        lp_free(r->blocks[i]);
    lp_graph_clear(&r->graph);
}

static void check_level(const shape *s, double *const numbers[PARTS], size_t real_size, const lp_kernel *kernels,
                        const double *wanted, const double *wanted_time, double bound, const char *level)
{
    static double out[20000], time_out[40000];
    graph_run r;
    build(&r, s, numbers, false, real_size);
    run_graph(&r, s->now, s->past, real_size, kernels, NULL, out, time_out);
    for (int part = 0; part < 2; part++) {
        int cols = part ? s->heads * s->extra : s->heads * s->cols;
        for (int i = 0; i < s->now * cols; i++) {
            double got = part ? time_out[i] : out[i], should = (part ? wanted_time : wanted)[s->past * cols + i];
            if (!(fabs(got - should) <= bound))
                fail_msg("%s: %d past, %d now, %d heads%s, %d columns, %d extra%s: element %d of output %d is %.9g, "
                         "attention says %.9g",
                         level, s->past, s->now, s->heads, s->shared ? " that share" : "", s->cols, s->extra,
                         s->reflected ? ", reflected" : "", i, part, got, should);
        }
    }
    clear(&r);
}

static void attention_says_the_same(void **state)
{
    (void)state;
    static double wanted[30000], wanted_time[60000];
    for (uint64_t seed = 0; seed < 120; seed++) {
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 730);
        shape s = {.past = (int)lp_random_below(&random, 5) ? (int)lp_random_below(&random, 70) : 0,
                   .now = lp_random_below(&random, 2) ? 1 : 1 + (int)lp_random_below(&random, 40),
                   .heads = 1 + (int)lp_random_below(&random, 4),
                   .cols = 1 + (int)lp_random_below(&random, 40),
                   .extra = lp_random_below(&random, 3) ? 2 * (1 + (int)lp_random_below(&random, 40)) : 0,
                   .shared = lp_random_below(&random, 3) == 0};
        s.reflected = s.extra && lp_random_below(&random, 2);
        double *numbers[PARTS];
        for (int part = 0; part < PARTS; part++) {
            size_t count = (size_t)(s.past + s.now) * (size_t)width(&s, part);
            numbers[part] = lp_alloc(count, sizeof **numbers);
            assert_non_null(numbers[part]);
            for (size_t i = 0; i < count; i++)
                numbers[part][i] = (double)(float)((part == UNTIL ? 0.7 : 1) * lp_random_normal(&random));
        }
        graph_run whole;
        build(&whole, &s, numbers, true, sizeof(double));
        run_graph(&whole, s.past + s.now, 0, sizeof(double), lp_reference_kernels_double, NULL, wanted, wanted_time);
        clear(&whole);
        check_level(&s, numbers, sizeof(double), lp_reference_kernels_double, wanted, wanted_time, 1e-12, "double");
        check_level(&s, numbers, sizeof(float), lp_reference_kernels_float, wanted, wanted_time, 2e-5, "reference");
        for (int level = 0; lp_cpu_level_name(level); level++)
            check_level(&s, numbers, sizeof(float), lp_cpu_level_kernels(level), wanted, wanted_time, 2e-5,
                        lp_cpu_level_name(level));
        for (int part = 0; part < PARTS; part++)
            lp_free(numbers[part]);
    }
}

/* ----------------------------------------------------------------------------------------------- branches ---- */

enum { BRANCHES = 17, ROWS = 6, NOW = 14 }; /* rows of a branch; tokens of the run, at most */

/* Numbers of the past, and of each branch's rows. */
typedef struct branched {
    shape s;
    int32_t branch[NOW], length[NOW];
    double *past[PARTS];          /* [past x width] */
    double *own[PARTS][BRANCHES]; /* [ROWS x width] */
} branched;

static double *random_numbers(lp_random *random, int count, double scale)
{
    double *numbers = lp_alloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    for (int i = 0; i < count; i++)
        numbers[i] = (double)(float)(scale * lp_random_normal(random));
    return numbers;
}

/* The last row of attention over the past and the rows of token t's branch. */
static void whole_branch(const branched *b, int t, double *out, double *time_out)
{
    static double all_out[20000], all_time_out[40000];
    shape s = b->s;
    double *numbers[PARTS];
    s.now = b->length[t] + 1;
    for (int part = 0; part < PARTS; part++) {
        int cols = width(&s, part);
        numbers[part] = lp_alloc((size_t)((s.past + s.now) * cols), sizeof **numbers);
        assert_non_null(numbers[part]);
        memcpy(numbers[part], b->past[part], (size_t)(s.past * cols) * sizeof **numbers);
        memcpy(numbers[part] + s.past * cols, b->own[part][b->branch[t]], (size_t)(s.now * cols) * sizeof **numbers);
    }
    graph_run whole;
    build(&whole, &s, numbers, true, sizeof(double));
    run_graph(&whole, s.past + s.now, 0, sizeof(double), lp_reference_kernels_double, NULL, all_out, all_time_out);
    clear(&whole);
    int last = s.past + s.now - 1, cols = s.heads * s.cols, extra = s.heads * s.extra;
    memcpy(out, all_out + last * cols, (size_t)cols * sizeof *out);
    memcpy(time_out, all_time_out + last * extra, (size_t)extra * sizeof *time_out);
    for (int part = 0; part < PARTS; part++)
        lp_free(numbers[part]);
}

/* The branches' earlier rows of a part, as reals, with stale numbers after them. */
static void *branch_rows(const branched *b, int part, size_t real_size)
{
    int cols = width(&b->s, part);
    char *rows = lp_alloc((size_t)(BRANCHES * ROWS * cols), real_size);
    assert_non_null(rows);
    for (int i = 0; i < BRANCHES * ROWS * cols; i++) {
        int branch = i / (ROWS * cols), row = i / cols % ROWS, t = 0;
        while (t < b->s.now && b->branch[t] != branch)
            t++;
        bool known = t < b->s.now && row < b->length[t];
        double number = known ? b->own[part][branch][i % (ROWS * cols)] : 1e3;
        if (real_size == sizeof(double))
            ((double *)(void *)rows)[i] = number;
        else
            ((float *)(void *)rows)[i] = (float)number;
    }
    return rows;
}

static void check_branches(const branched *b, size_t real_size, const lp_kernel *kernels, const double *wanted,
                           const double *wanted_time, double bound, const char *level)
{
    static double out[20000], time_out[40000];
    const shape *s = &b->s;
    double *numbers[PARTS];
    for (int part = 0; part < PARTS; part++) {
        int cols = width(s, part);
        numbers[part] = lp_alloc((size_t)((s->past + s->now) * cols), sizeof **numbers);
        assert_non_null(numbers[part]);
        memcpy(numbers[part], b->past[part], (size_t)(s->past * cols) * sizeof **numbers);
        for (int t = 0; t < s->now; t++)
            memcpy(numbers[part] + (s->past + t) * cols, b->own[part][b->branch[t]] + b->length[t] * cols,
                   (size_t)cols * sizeof **numbers);
    }
    graph_run r;
    void *rows[2 * PARTS] = {0};
    build(&r, s, numbers, false, real_size);
    const lp_node *node = r.out->producer;
    static const struct {
        int input, part;
    } cached[] = {{1, KEY}, {2, VALUE}, {4, BASIS}};
    for (int i = 0; i < 3; i++)
        if (node->inputs[cached[i].input])
            rows[node->inputs[cached[i].input]->slot] = branch_rows(b, cached[i].part, real_size);
    lp_run_branches branches = {
        .branch = b->branch, .length = b->length, .capacity = ROWS, .rows = rows, .cached = r.blocks};
    run_graph(&r, s->now, s->past, real_size, kernels, &branches, out, time_out);
    for (int part = 0; part < 2; part++) {
        int cols = part ? s->heads * s->extra : s->heads * s->cols;
        for (int i = 0; i < s->now * cols; i++) {
            double got = part ? time_out[i] : out[i], should = (part ? wanted_time : wanted)[i];
            if (!(fabs(got - should) <= bound))
                fail_msg("%s: %d past, %d heads%s, %d columns, %d extra%s: element %d of token %d (%d rows before), "
                         "output %d, is %.9g, attention says %.9g",
                         level, s->past, s->heads, s->shared ? " that share" : "", s->cols, s->extra,
                         s->reflected ? ", reflected" : "", i % cols, i / cols, b->length[i / cols], part, got, should);
        }
    }
    for (int i = 0; i < 2 * PARTS; i++)
        lp_free(rows[i]);
    for (int part = 0; part < PARTS; part++)
        lp_free(numbers[part]);
    clear(&r);
}

/* Each token of a run with branches sees the past and the rows of its own branch. */
static void branches_say_the_same(void **state)
{
    (void)state;
    static double wanted[20000], wanted_time[40000];
    for (uint64_t seed = 0; seed < 40; seed++) {
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 732);
        branched b = {.s = {.past = (int)lp_random_below(&random, 5) ? (int)lp_random_below(&random, 50) : 0,
                            .now = seed % 3 ? NOW : 1 + (int)(seed % 2),
                            .heads = 1 + (int)lp_random_below(&random, 4),
                            .cols = 1 + (int)lp_random_below(&random, 40),
                            .extra = lp_random_below(&random, 3) ? 2 * (1 + (int)lp_random_below(&random, 40)) : 0,
                            .shared = lp_random_below(&random, 3) == 0}};
        b.s.reflected = b.s.extra && lp_random_below(&random, 2);
        for (int t = 0; t < b.s.now; t++) {
            b.branch[t] = (int32_t)(t * 5 % BRANCHES);
            b.length[t] = (int32_t)lp_random_below(&random, ROWS);
        }
        for (int part = 0; part < PARTS; part++) {
            double scale = part == UNTIL ? 0.7 : 1;
            b.past[part] = random_numbers(&random, b.s.past * width(&b.s, part), scale);
            for (int k = 0; k < BRANCHES; k++)
                b.own[part][k] = random_numbers(&random, ROWS * width(&b.s, part), scale);
        }
        for (int t = 0; t < b.s.now; t++)
            whole_branch(&b, t, wanted + t * b.s.heads * b.s.cols, wanted_time + t * b.s.heads * b.s.extra);
        check_branches(&b, sizeof(double), lp_reference_kernels_double, wanted, wanted_time, 1e-12, "double");
        check_branches(&b, sizeof(float), lp_reference_kernels_float, wanted, wanted_time, 2e-5, "reference");
        for (int level = 0; lp_cpu_level_name(level); level++)
            check_branches(&b, sizeof(float), lp_cpu_level_kernels(level), wanted, wanted_time, 2e-5,
                           lp_cpu_level_name(level));
        for (int part = 0; part < PARTS; part++) {
            lp_free(b.past[part]);
            for (int k = 0; k < BRANCHES; k++)
                lp_free(b.own[part][k]);
        }
    }
}

static void check_mistake(lp_graph *graph, const char *message)
{
    lapse_error error = {0};
    assert_int_equal(lp_graph_status(graph, &error), LAPSE_ERROR_INTERNAL);
    assert_string_equal(error.message, message);
    lp_graph_clear(graph);
}

static void wrong_shapes(void **state)
{
    (void)state;
    static const char wide[] = "graph: attention_cached needs cached keys and values with the columns of the query, "
                               "divisible by the heads, or of one head";
    static const char query_times[] = "graph: attention_cached needs the query times as a basis";
    static const char timed[] = "graph: attention_cached needs a time query per head and column of the cached basis";
    lp_graph graph = {0};
    for (int i = 0; i < 6; i++) {
        lp_value *x = input(&graph, LP_ROWS_TOKENS, 4), *wider = input(&graph, LP_ROWS_TOKENS, 6);
        lp_value *made = lp_relu(&graph, x);
        lp_kv_cache memories[] = {
            {x, x, NULL},     /* three heads do not divide four columns */
            {made, x, NULL},  /* keys that are not cached */
            {wider, x, NULL}, /* wider than the query */
            {x, made, NULL},  /* values that are not cached */
            {x, x, NULL},     /* a time query without a basis */
            {x, x, x},        /* a basis as wide as both heads together */
        };
        assert_null(lp_attention_cached(&graph, x, i > 3 ? x : NULL, NULL, &memories[i], i == 0 ? 3 : 2, 1, NULL));
        check_mistake(&graph, i > 3 ? timed : wide);
    }
    for (int i = 0; i < 2; i++) { /* query times of another width; odd width */
        lp_value *x = input(&graph, LP_ROWS_TOKENS, 4), *odd = input(&graph, LP_ROWS_TOKENS, 3);
        lp_value *basis = i ? odd : x;
        lp_kv_cache memory = {x, x, basis};
        assert_null(lp_attention_cached(&graph, x, basis, odd, &memory, 1, 1, NULL));
        check_mistake(&graph, query_times);
    }
}

/* Ranking kernels on sizes that vectors do not divide. log_sum is as exact as a sum in double. */
static void scores_and_sums(void **state)
{
    (void)state;
    static const int items[] = {1, 3, 4, 15, 16, 17, 1023, 1024, 1041, 5000};
    static const int dims[] = {1, 15, 16, 33, 50, 64};
    static float table[5000 * 64], transposed[5001 * 64], bias[5000], scores[5000], others[5000], vector[64];
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 731);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i] = (float)lp_random_normal(&random);
    for (int i = 0; i < 5000; i++)
        bias[i] = (float)lp_random_normal(&random);
    for (int i = 0; i < 64; i++)
        vector[i] = (float)lp_random_normal(&random);
    for (int level = 0; lp_cpu_level_name(level); level++)
        for (int c = 0; c < 60; c++) {
            int n = items[c / 6], d = dims[c % 6];
            const lp_ranking_kernels *kernels = lp_cpu_level_ranking(level);
            double sum = 0;
            kernels->row_scores(n, d, vector, table, c % 2 ? bias : NULL, scores);
            for (int i = 0; i < n; i++)
                for (int k = 0; k < d; k++)
                    transposed[k * 5001 + i] = table[i * d + k];
            kernels->transposed_scores(n, d, vector, transposed, 5001, c % 2 ? bias : NULL, others);
            for (int i = 0; i < n; i++) {
                double wanted = c % 2 ? (double)bias[i] : 0;
                for (int k = 0; k < d; k++)
                    wanted += (double)vector[k] * (double)table[i * d + k];
                if (!(fabs((double)scores[i] - wanted) < 1e-4 && fabs((double)others[i] - wanted) < 1e-4))
                    fail_msg("%s: score %d of %d items, %d dims", lp_cpu_level_name(level), i, n, d);
                sum += exp((double)scores[i]);
            }
            assert_true(fabs(kernels->log_sum(n, scores) - log(sum)) < 1e-12);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_says_the_same),
                                       cmocka_unit_test(branches_say_the_same), cmocka_unit_test(wrong_shapes),
                                       cmocka_unit_test(scores_and_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
