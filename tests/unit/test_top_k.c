/* test_top_k.c: top-k selection against a full sort, with ties, and NaN scores. */
#include "base/random.h"
#include "serve/top_k.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

enum { MOST = 9000 };

static int by_rank(const void *a, const void *b)
{
    const lapse_recommendation *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : (x->item > y->item) - (x->item < y->item);
}

static void sorting_says_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 720);
        static float scores[MOST];
        static lapse_recommendation wanted[MOST], best[MOST + 5];
        int count = (int)lp_random_below(&random, MOST), left = 0;
        int64_t top = 1 + (int64_t)lp_random_below(&random, seed % 2 ? 20 : MOST + 5);
        for (int i = 0; i < count; i++) {
            /* Few distinct values, for many ties. */
            scores[i] = (float)((int)lp_random_below(&random, seed % 3 ? 40 : 1 << 20) - 20) / 4;
            if (lp_random_below(&random, 20) == 0)
                scores[i] = lp_random_below(&random, 2) ? NAN : -INFINITY;
            if (lp_random_below(&random, 3) == 0)
                scores[i] = NAN;
            if (!isnan(scores[i]))
                wanted[left++] = (lapse_recommendation){.item = i, .score = (double)scores[i]};
        }
        qsort(wanted, (size_t)left, sizeof *wanted, by_rank);
        lp_top_k heap = {.best = best, .most = top};
        for (int from = 0, size; from < count; from += size) { /* in pieces */
            size = 1 + (int)lp_random_below(&random, MOST);
            size = from + size > count ? count - from : size;
            lp_top_k_offer(&heap, scores + from, size, from);
        }
        lp_top_k_sort(&heap);
        int64_t found = heap.size;
        if (found != (left < top ? left : top))
            fail_msg("seed %d: %d found of %d", (int)seed, (int)found, left);
        for (int i = 0; i < found; i++)
            if (best[i].item != wanted[i].item || best[i].score != wanted[i].score)
                fail_msg("seed %d, rank %d: item %d, should be %d", (int)seed, i + 1, (int)best[i].item,
                         (int)wanted[i].item);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sorting_says_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
