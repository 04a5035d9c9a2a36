/* test_rank_rounding.c: ranks do not depend on a score by itself having the same bits as in a tile. The ranking is compiled here with
 * kernels whose scores by themselves are an ulp higher or lower. */
#include "backend/cpu/cpu.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

static const lp_ranking_kernels *rounding_kernels(void);
#define lp_backend_ranking(backend) rounding_kernels()
#include "../src/evaluate/ranking.c"

static float toward;

static void rounded_scores(int cases, int items, int dims, const float *z, const float *table, const float *bias,
                           float *out)
{
    lp_cpu_level_ranking(0)->scores(cases, items, dims, z, table, bias, out);
    if (cases == 1 && items == 1)
        *out = nextafterf(*out, toward);
}

static const lp_ranking_kernels *rounding_kernels(void)
{
    static lp_ranking_kernels kernels;
    kernels = *lp_cpu_level_ranking(0);
    kernels.scores = rounded_scores;
    return &kernels;
}

static void ranks_do_not_depend_on_rounding(void **state)
{
    (void)state;
    enum { ITEMS = 250, DIMS = 5 };
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 903);
    lapse_dataset *dataset = small_dataset_random(&random, 30, 20, ITEMS, 10, false);
    lp_ranking_setup setup = {.dataset = dataset,
                              .type = dataset->type,
                              .items = ITEMS,
                              .split = dataset->split,
                              .wanted = LP_SPLIT_COUNT,
                              .seed = 7,
                              .threads = 1};
    lapse_error error = {0};
    lp_rank_result *wanted = NULL;
    static const float direction[] = {0, -INFINITY, INFINITY};
    for (int i = 0; i < 3; i++) {
        lp_ranking ranking;
        assert_int_equal(lp_ranking_init(&ranking, &setup, &error), LAPSE_OK);
        lp_random numbers = lp_random_start(12, LP_PURPOSE_TEST, 904);
        float *z = lp_alloc((size_t)ranking.case_count, DIMS * sizeof *z), table[ITEMS * DIMS];
        for (int64_t n = 0; n < ranking.case_count * DIMS; n++)
            z[n] = (float)lp_random_normal(&numbers);
        for (int n = 0; n < ITEMS * DIMS; n++)
            table[n] = (float)lp_random_normal(&numbers);
        lp_rank_states states = {DIMS, z, table, NULL, LP_SCORE_PRODUCT};
        toward = direction[i];
        if (i > 0)
            lp_ranking_states(&ranking, &states, 0, ranking.case_count);
        else
            for (int64_t c = 0; c < ranking.case_count; c++) { /* by sorting in double */
                int32_t target = dataset->type[ranking.cases[c].event];
                double scores[ITEMS];
                for (int item = 0; item < ITEMS; item++) {
                    scores[item] = 0;
                    for (int d = 0; d < DIMS; d++)
                        scores[item] += (double)z[c * DIMS + d] * (double)table[item * DIMS + d];
                }
                ranking.results[c].rank[LP_PROTOCOL_FULL] = 1;
                for (int item = 0; item < ITEMS; item++)
                    ranking.results[c].rank[LP_PROTOCOL_FULL] += scores[item] > scores[target];
            }
        if (!wanted) {
            wanted = lp_alloc((size_t)ranking.case_count, sizeof *wanted);
            memcpy(wanted, ranking.results, (size_t)ranking.case_count * sizeof *wanted);
        }
        for (int64_t c = 0; c < ranking.case_count; c++)
            assert_int_equal(ranking.results[c].rank[LP_PROTOCOL_FULL], wanted[c].rank[LP_PROTOCOL_FULL]);
        lp_free(z);
        lp_ranking_clear(&ranking);
    }
    lp_free(wanted);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_do_not_depend_on_rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
