/* test_ranking.c: ranks against brute force, with ties and NaN scores; negatives are fixed by the seed, distinct, and
 * never items of the sequence. */
#include "backend/cpu/cpu.h"
#include "support/small_data.h"
#include "evaluate/ranking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ kernels ----- */

static void fill(lp_random *random, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)lp_random_normal(random);
}

/* A score has the same bits in any tile. */
static void scores_do_not_depend_on_the_tile(void **state)
{
    (void)state;
    enum { CASES = 13, ITEMS = 203 };
    static const int all_dims[] = {1, 7, 50, 256, 300};
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 900);
    for (int level = 0; lp_cpu_level_name(level); level++)
        for (size_t d = 0; d < sizeof all_dims / sizeof *all_dims; d++) {
            int dims = all_dims[d];
            static float z[CASES * 300], table[ITEMS * 300], bias[ITEMS], whole[CASES * ITEMS], part[CASES * ITEMS];
            const lp_ranking_kernels *kernels = lp_cpu_level_ranking(level);
            fill(&random, z, (size_t)(CASES * dims));
            fill(&random, table, (size_t)(ITEMS * dims));
            fill(&random, bias, ITEMS);
            kernels->scores(CASES, ITEMS, dims, z, table, bias, whole);
            for (int first = 0, width = 1; first < ITEMS; first += width, width = 1 + first % 60) {
                int count = ITEMS - first < width ? ITEMS - first : width, from = first % CASES;
                kernels->scores(CASES - from, count, dims, z + from * dims, table + first * dims, bias + first, part);
                for (int c = from; c < CASES; c++)
                    for (int i = 0; i < count; i++) {
                        double exact = bias[first + i];
                        for (int k = 0; k < dims; k++)
                            exact += (double)z[c * dims + k] * table[(first + i) * dims + k];
                        float got = part[(c - from) * count + i];
                        if (got != whole[c * ITEMS + first + i] || fabs(got - exact) > 1e-4)
                            fail_msg("%s, %d dims, item %d: %.9g in a part, %.9g in the whole, %.9g exactly",
                                     lp_cpu_level_name(level), dims, first + i, got, whole[c * ITEMS + first + i],
                                     exact);
                    }
            }
            kernels->scores(2, 3, dims, z, table, NULL, part);
            assert_true(fabs(part[0] + bias[0] - whole[0]) < 1e-4);
        }
}

static void counts_at_least(void **state)
{
    (void)state;
    float scores[67];
    for (int i = 0; i < 67; i++)
        scores[i] = (float)(i % 10);
    scores[3] = NAN;
    for (int level = 0; lp_cpu_level_name(level); level++) {
        const lp_ranking_kernels *kernels = lp_cpu_level_ranking(level);
        assert_int_equal(kernels->count_at_least(0, scores, 1), 0);
        assert_int_equal(kernels->count_at_least(67, scores, 0), 67);
        assert_int_equal(kernels->count_at_least(67, scores, 8), 13); /* 8 and 9 six times each, and the NaN */
        assert_int_equal(kernels->count_at_least(67, scores, NAN), 67);
        assert_int_equal(kernels->count_at_least(67, scores, INFINITY), 1);
    }
    assert_null(lp_cpu_level_ranking(99));
}

/* -------------------------------------------------------------------------------------------- brute force ----- */

static lp_ranking_setup setup_of(const lapse_dataset *dataset, int64_t items, const int64_t *counts)
{
    return (lp_ranking_setup){.dataset = dataset,
                              .type = dataset->type,
                              .items = items,
                              .split = dataset->split,
                              .wanted = LP_SPLIT_COUNT,
                              .negatives = 100,
                              .counts = counts,
                              .seed = 7,
                              .threads = 2};
}

static lp_ranking ranking_of(const lp_ranking_setup *setup)
{
    lp_ranking ranking;
    lapse_error error = {0};
    if (lp_ranking_init(&ranking, setup, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return ranking;
}

static bool happened(const lapse_dataset *dataset, int64_t from, int64_t to, int32_t item)
{
    for (int64_t e = from; e < to; e++)
        if (dataset->type[e] == item)
            return true;
    return false;
}

/* The full protocols as ranking.h defines them. */
static void check_full(const lp_ranking *ranking, int64_t c, const double *scores, int seed)
{
    const lapse_dataset *dataset = ranking->setup.dataset;
    const lp_rank_case *rank_case = &ranking->cases[c];
    int32_t target = dataset->type[rank_case->event];
    int32_t full = 1, unseen = 1, seen_count = 0;
    for (int32_t item = 0; item < ranking->setup.items; item++) {
        if (item == target)
            continue;
        bool above = !(scores[item] < scores[target]);
        bool seen = happened(dataset, (int64_t)dataset->start[rank_case->sequence], rank_case->event, item);
        full += above;
        unseen += above && !seen;
        seen_count += seen;
    }
    const lp_rank_result *got = &ranking->results[c];
    int32_t items = (int32_t)ranking->setup.items;
    if (got->rank[LP_PROTOCOL_FULL] != full || got->rank[LP_PROTOCOL_UNSEEN] != unseen ||
        got->candidates[LP_PROTOCOL_FULL] != items || got->candidates[LP_PROTOCOL_UNSEEN] != items - seen_count)
        fail_msg("seed %d, case %d: full %d of %d, should be %d; unseen %d of %d, should be %d of %d", seed, (int)c,
                 got->rank[LP_PROTOCOL_FULL], got->candidates[LP_PROTOCOL_FULL], full, got->rank[LP_PROTOCOL_UNSEEN],
                 got->candidates[LP_PROTOCOL_UNSEEN], unseen, items - seen_count);
}

typedef struct table_of_scores {
    const lp_ranking *ranking;
    int64_t items;
    double *scores; /* [cases x items] */
} table_of_scores;

static void give_row(void *context, const lp_rank_case *rank_case, double *scores)
{
    const table_of_scores *table = context;
    memcpy(scores, table->scores + (rank_case - table->ranking->cases) * table->items,
           (size_t)table->items * sizeof *scores);
}

/* Elements of the states are small integers, so that there are many ties and sums are exact in any order. */
static void against_brute_force(void **state)
{
    (void)state;
    enum { ITEMS = 230, DIMS = 3 };
    for (int seed = 0; seed < small_effort(6, 2); seed++) {
        lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 901);
        lapse_dataset *dataset = small_dataset_random(&random, 40, 30, seed % 2 ? 23 : ITEMS, 10, false);
        int64_t counts[ITEMS];
        for (int i = 0; i < ITEMS; i++)
            counts[i] = i % 7 ? i : 0;
        lp_ranking_setup setup = setup_of(dataset, ITEMS, counts);
        lp_ranking ranking = ranking_of(&setup);
        assert_int_equal(ranking.case_count, dataset->event_count - dataset->sequence_count);
        float *z = lp_alloc((size_t)ranking.case_count, DIMS * sizeof *z), table[ITEMS * DIMS], bias[ITEMS];
        table_of_scores rows = {&ranking, ITEMS, lp_alloc((size_t)ranking.case_count, ITEMS * sizeof(double))};
        for (int64_t i = 0; i < ranking.case_count * DIMS; i++)
            z[i] = (float)lp_random_below(&random, 3) - 1;
        for (int i = 0; i < ITEMS * DIMS; i++)
            table[i] = (float)lp_random_below(&random, 3) - 1;
        for (int i = 0; i < ITEMS; i++)
            bias[i] = (float)lp_random_below(&random, 2);
        table[4] = NAN; /* a NaN item ranks above all others */
        z[DIMS] = NAN;  /* a NaN state ranks its target last */
        for (int64_t c = 0; c < ranking.case_count; c++)
            for (int i = 0; i < ITEMS; i++) {
                double sum = bias[i];
                for (int k = 0; k < DIMS; k++)
                    sum += (double)z[c * DIMS + k] * table[i * DIMS + k];
                rows.scores[c * ITEMS + i] = sum;
            }
        lp_rank_states states = {.dims = DIMS, .state = z, .table = table, .bias = bias};
        int64_t part = ranking.case_count / 3;
        lp_ranking_states(&ranking, &states, part, ranking.case_count);
        lp_ranking_states(&ranking, &states, 0, part);
        assert_int_equal(ranking.results[1].rank[LP_PROTOCOL_FULL], ITEMS);
        for (int64_t c = 0; c < ranking.case_count; c++)
            check_full(&ranking, c, rows.scores + c * ITEMS, seed);
        /* Rows of the same scores give the same ranks, negatives included. */
        size_t size = (size_t)ranking.case_count * sizeof *ranking.results;
        lp_rank_result *first = lp_alloc(1, size);
        memcpy(first, ranking.results, size);
        memset(ranking.results, 0, size);
        lp_ranking_rows(&ranking, give_row, &rows);
        assert_memory_equal(first, ranking.results, size);
        lp_free(first);
        lp_free(z);
        lp_free(rows.scores);
        lp_ranking_clear(&ranking);
        lapse_dataset_close(dataset);
    }
}

/* The sequence a b a c, with the targets b, a and c. */
static void by_hand(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abac d", NULL);
    int64_t counts[4] = {2, 1, 1, 1};
    lp_ranking_setup setup = setup_of(dataset, 4, counts);
    lp_ranking ranking = ranking_of(&setup);
    /* The ids are a 0, b 1, c 2, d 3. */
    double scores[3 * 4] = {0, 1, 2, 3, 0, 1, 2, 3, 5, 5, 5, 5};
    table_of_scores rows = {&ranking, 4, scores};
    lp_ranking_rows(&ranking, give_row, &rows);
    static const lp_rank_result wanted[] = {
        {{3, 3, 2, 2}, {3, 4, 2, 2}}, /* b: c and d are above, a is seen; d is the only eligible negative */
        {{3, 4, 2, 2}, {3, 4, 2, 2}}, /* a: the target remains although it is seen; b is seen */
        {{2, 4, 2, 2}, {2, 4, 2, 2}}, /* c: all scores tie, so it ranks last; a and b are seen */
    };
    assert_int_equal(ranking.case_count, 3);
    assert_memory_equal(ranking.results, wanted, sizeof wanted);
    assert_true(fabs(lp_ranking_ndcg(&ranking, LP_PROTOCOL_FULL, 3) - 0.5 / 3) < 1e-12);
    for (int protocol = 0; protocol < LP_PROTOCOL_COUNT; protocol++)
        for (int cutoff = 1; cutoff <= 5; cutoff++) {
            double hits = 0, inverse = 0;
            for (int c = 0; c < 3; c++) {
                hits += wanted[c].rank[protocol] <= cutoff;
                inverse += 1.0 / wanted[c].rank[protocol];
            }
            assert_true(lp_ranking_hit(&ranking, (lp_protocol)protocol, cutoff) == hits / 3);
            assert_true(fabs(lp_ranking_mrr(&ranking, (lp_protocol)protocol) - inverse / 3) < 1e-12);
        }
    assert_true(lp_rank_gain(1, 10) == 1 && lp_rank_gain(3, 10) == 0.5 && lp_rank_gain(11, 10) == 0);
    lp_ranking_clear(&ranking);
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------------- negatives ----- */

static void negatives_are_fixed(void **state)
{
    (void)state;
    enum { ITEMS = 1000, COUNT = 5 };
    int64_t counts[ITEMS];
    uint64_t excluded[ITEMS / 64 + 1] = {0};
    for (int i = 0; i < ITEMS; i++)
        counts[i] = 1 + 10000 / (1 + i);
    static const int32_t wanted[2][2][COUNT] = {{{335, 442, 455, 829, 890}, {102, 297, 428, 493, 555}},
                                                {{6, 44, 72, 85, 745}, {0, 1, 3, 39, 45}}}; /* computed in Python */
    for (int p = 0; p < 2; p++) {
        lp_rank_pool pool;
        assert_int_equal(lp_rank_pool_init(&pool, ITEMS, p ? counts : NULL, 42, NULL), LAPSE_OK);
        for (int event = 0; event < 2; event++) {
            int32_t got[COUNT];
            assert_int_equal(lp_rank_negatives_sample(&pool, event, COUNT, ITEMS, excluded, got), COUNT);
            for (int i = 0; i < COUNT; i++)
                if (got[i] != wanted[p][event][i])
                    fail_msg("protocol %d, event %d: {%d, %d, %d, %d, %d}", p, event, got[0], got[1], got[2], got[3],
                             got[4]);
        }
        lp_rank_pool_clear(&pool);
    }
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
        assert_true(excluded[i] == 0);
}

/* Checks the sampling frequency of each item, with some excluded. */
static void check_distribution(int items, const int64_t *counts, const uint64_t *excluded, int samples, int count)
{
    lp_rank_pool pool;
    assert_int_equal(lp_rank_pool_init(&pool, items, counts, 3, NULL), LAPSE_OK);
    int64_t left = 0, total = 0, *times = lp_alloc((size_t)items, sizeof *times);
    for (int i = 0; i < items; i++)
        if (!lp_bitset_get(excluded, i) && lp_rank_pool_usable(&pool, i)) {
            left++;
            total += counts ? counts[i] : 1;
        }
    uint64_t *copy = lp_alloc((size_t)items / 64 + 1, sizeof *copy);
    memcpy(copy, excluded, ((size_t)items / 64 + 1) * sizeof *copy);
    for (int event = 0; event < samples; event++) {
        int32_t got[100];
        assert_int_equal(lp_rank_negatives_sample(&pool, event, count, left, copy, got), left < count ? left : count);
        for (int i = 0; i < count && i < left; i++) {
            assert_true(i == 0 || got[i] > got[i - 1]); /* ascending, so distinct */
            assert_false(lp_bitset_get(excluded, got[i]));
            assert_true(!counts || counts[got[i]] > 0);
            times[got[i]]++;
        }
    }
    assert_memory_equal(copy, excluded, ((size_t)items / 64 + 1) * sizeof *copy);
    for (int i = 0; i < items && count == 1; i++) { /* a single sample is proportional to the counts */
        double fraction = lp_bitset_get(excluded, i) ? 0 : (double)(counts ? counts[i] : 1) / (double)total;
        double off = (double)times[i] - samples * fraction, deviation = sqrt(samples * fraction * (1 - fraction));
        if (fabs(off) > 5 * deviation + 1e-9)
            fail_msg("item %d: %d of %d samples, expected a fraction of %g", i, (int)times[i], samples, fraction);
    }
    lp_free(copy);
    lp_free(times);
    lp_rank_pool_clear(&pool);
}

static void negatives_follow_their_distribution(void **state)
{
    (void)state;
    enum { ITEMS = 200 };
    int64_t counts[ITEMS];
    uint64_t none[4] = {0}, most[4] = {0}, popular[4] = {0};
    for (int i = 0; i < ITEMS; i++) {
        counts[i] = i == 0 ? 1000000 : i % 5;
        if (i < 193)
            lp_bitset_set(most, i);
    }
    lp_bitset_set(popular, 0);
    int samples = 20000;
    for (int p = 0; p < 2; p++) {
        check_distribution(ITEMS, p ? counts : NULL, none, samples, 1);
        check_distribution(ITEMS, p ? counts : NULL, most, samples, 1);
        check_distribution(ITEMS, p ? counts : NULL, popular, samples,
                           1); /* by popularity, rejection fails and keys are used */
        check_distribution(ITEMS, p ? counts : NULL, none, 100, 100);
        check_distribution(ITEMS, p ? counts : NULL, popular, 100, 100);
        check_distribution(ITEMS, p ? counts : NULL, most, 100, 100); /* all 7, or the 5 with a count */
    }
}

/* Negatives of a ranking are never items of the sequence, past or future, and do not depend on the number of
 * threads. */
static void sequence_items_are_never_negatives(void **state)
{
    (void)state;
    enum { ITEMS = 150 };
    lp_random random = lp_random_start(5, LP_PURPOSE_TEST, 902);
    lapse_dataset *dataset = small_dataset_random(&random, 60, 90, ITEMS, 10, false);
    int64_t counts[ITEMS] = {0};
    for (int64_t e = 0; e < dataset->event_count; e++)
        counts[dataset->type[e]]++;
    lp_ranking_setup setup = setup_of(dataset, ITEMS, counts);
    lp_ranking one = ranking_of(&setup);
    setup.threads = 1;
    lp_ranking two = ranking_of(&setup);
    /* Items of the sequence score above the target and all others below: a rank other than 1 means such a negative. */
    double *scores = lp_alloc((size_t)one.case_count, ITEMS * sizeof *scores);
    for (int64_t c = 0; c < one.case_count; c++)
        for (int32_t i = 0; i < ITEMS; i++) {
            int64_t s = one.cases[c].sequence;
            bool own = happened(dataset, (int64_t)dataset->start[s], (int64_t)dataset->start[s + 1], i);
            scores[c * ITEMS + i] = i == dataset->type[one.cases[c].event] ? 1 : own ? 2 : 0;
        }
    lp_ranking_rows(&one, give_row, &(table_of_scores){&one, ITEMS, scores});
    lp_ranking_rows(&two, give_row, &(table_of_scores){&two, ITEMS, scores});
    assert_memory_equal(one.results, two.results, (size_t)one.case_count * sizeof *one.results);
    bool fewer = false;
    for (int64_t c = 0; c < one.case_count; c++)
        for (int p = LP_PROTOCOL_UNIFORM; p <= LP_PROTOCOL_POPULARITY; p++) {
            assert_int_equal(one.results[c].rank[p], 1);
            assert_in_range(one.results[c].candidates[p], 2, 101);
            fewer = fewer || one.results[c].candidates[p] < 101;
        }
    assert_true(fewer); /* long sequences leave fewer than 100 of 150 items */
    lp_free(scores);
    lp_ranking_clear(&one);
    lp_ranking_clear(&two);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------ sampling ---- */

static void cases_are_sampled(void **state)
{
    (void)state;
    lp_random random = lp_random_start(6, LP_PURPOSE_TEST, 903);
    lapse_dataset *dataset = small_dataset_random(&random, 30, 20, 9, 10, false);
    lp_ranking_setup setup = setup_of(dataset, 9, NULL);
    setup.negatives = 0;
    lp_ranking all = ranking_of(&setup);
    setup.max_cases = 40;
    lp_ranking some = ranking_of(&setup);
    setup.seed = 8;
    lp_ranking others = ranking_of(&setup);
    setup.max_cases = all.case_count;
    lp_ranking enough = ranking_of(&setup);
    assert_int_equal(some.case_count, 40);
    assert_int_equal(some.case_total, all.case_count);
    assert_int_equal(enough.case_count, all.case_count);
    bool differ = false;
    for (int c = 0; c < 40; c++) {
        assert_true(c == 0 || some.cases[c].event > some.cases[c - 1].event);
        assert_true(some.cases[c].event > (int64_t)dataset->start[some.cases[c].sequence]);
        differ = differ || some.cases[c].event != others.cases[c].event;
    }
    assert_true(differ);
    lp_ranking_clear(&all);
    lp_ranking_clear(&some);
    lp_ranking_clear(&others);
    lp_ranking_clear(&enough);
    lapse_dataset_close(dataset);
}

static void out_of_memory(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abac bca", NULL);
    int64_t counts[3] = {1, 1, 1};
    lp_ranking_setup setup = setup_of(dataset, 3, counts);
    setup.max_cases = 2;
    lp_ranking ranking;
    lapse_error error;
    int n = 1;
    for (;; n++) {
        lp_memory_fail_at(n);
        lapse_status status = lp_ranking_init(&ranking, &setup, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_null(ranking.cases);
    }
    assert_in_range(n, 15, 25);
    int64_t before = lp_memory_count();
    double scores[6] = {0};
    lp_ranking_rows(&ranking, give_row, &(table_of_scores){&ranking, 3, scores});
    lp_ranking_rows(&ranking, give_row, &(table_of_scores){&ranking, 3, scores});
    assert_true(lp_memory_count() - before <= 1); /* of the thread pool, once */
    lp_ranking_clear(&ranking);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_do_not_depend_on_the_tile),
        cmocka_unit_test(counts_at_least),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(against_brute_force),
        cmocka_unit_test(negatives_are_fixed),
        cmocka_unit_test(negatives_follow_their_distribution),
        cmocka_unit_test(sequence_items_are_never_negatives),
        cmocka_unit_test(cases_are_sampled),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
