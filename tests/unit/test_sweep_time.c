/* test_sweep_time.c: the estimate of the time that a sweep takes, from runs whose times are known. */
#include "search/sweep.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/small_train.h"

/* Known run times: of finished runs of the same row, else of all; half of it for a run of another process; divided by the runs that are
 * trained at once. */
static void the_remaining_time_is_estimated(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(4);
    lapse_sweep_plan *plan = NULL;
    lapse_sweep *sweep = NULL;
    assert_int_equal(lapse_sweep_plan_new(&plan, NULL), LAPSE_OK);
    assert_int_equal(lapse_sweep_plan_set(plan, "models", "attention,lstm", NULL), LAPSE_OK);
    assert_int_equal(lapse_sweep_plan_set(plan, "seeds", "3", NULL), LAPSE_OK);
    assert_int_equal(lapse_sweep_plan_set(plan, "parallel", "1", NULL), LAPSE_OK);
    assert_int_equal(lapse_sweep_new(dataset, plan, &sweep, NULL), LAPSE_OK);
    lapse_sweep_plan_free(plan);
    assert_int_equal(sweep->cell_count, 2);
    assert_true(isnan(lp_sweep_seconds_left(sweep)));
    lp_sweep_run *a = lp_sweep_run_of(sweep, 0, 0), *b = lp_sweep_run_of(sweep, 1, 0);
    a->state = LP_RUN_DONE;
    a->record.seconds = 10;
    assert_true(lp_sweep_seconds_left(sweep) == 2 * 10 + 3 * 10); /* both rows as the one that is known */
    b->state = LP_RUN_DONE;
    b->record.seconds = 100;
    assert_true(lp_sweep_seconds_left(sweep) == 2 * 10 + 2 * 100);
    lp_sweep_run_of(sweep, 1, 1)->state = LP_RUN_RUNNING;
    lp_sweep_run_of(sweep, 1, 1)->left = NAN; /* no estimate of its own yet */
    assert_true(lp_sweep_seconds_left(sweep) == 2 * 10 + 2 * 100);
    lp_sweep_run_of(sweep, 1, 1)->left = 7;
    assert_true(lp_sweep_seconds_left(sweep) == 2 * 10 + 100 + 7);
    lp_sweep_run_of(sweep, 1, 2)->state = LP_RUN_ELSEWHERE;
    assert_true(lp_sweep_seconds_left(sweep) == (2 * 10 + 50 + 7) / 2.0); /* two at once */
    lapse_sweep_free(sweep);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_remaining_time_is_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
