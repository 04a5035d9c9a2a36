/* test_prefetch.c: prefetched batches equal those created on demand: in order, out of order, and across epochs. */
#include "support/small_data.h"
#include "data/batch/prefetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { WINDOWS = 7, CONTEXT = 5, NEGATIVES = 3, SHARDS = 2 };

typedef struct ahead_case {
    lapse_dataset *dataset;
    lp_targets targets;
    lp_windows windows;
    lp_event_columns columns;
    lp_negatives negatives;
    lp_batch_vocabulary lists, own_lists; /* of the prefetched batches, and of those created on demand */
    lp_prefetch prefetch;
    lp_batch taken, spot;
    lp_row_union taken_rows, spot_rows;
} ahead_case;

static void open_lists(ahead_case *this, lp_batch_vocabulary *lists)
{
    *lists = (lp_batch_vocabulary){.negatives = &this->negatives,
                                   .dataset = this->dataset,
                                   .type = this->dataset->type,
                                   .items = this->dataset->types.count,
                                   .threads = 1};
    assert_int_equal(lp_batch_vocabulary_init(lists, NULL), LAPSE_OK);
}

static void open_case(ahead_case *this, uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 950);
    memset(this, 0, sizeof *this);
    this->dataset = small_dataset_random(&random, 60, 17, 20, 10, false);
    this->targets = (lp_targets){.dataset = this->dataset, .wanted = LP_SPLIT_COUNT, .context = CONTEXT};
    this->columns = (lp_event_columns){.type = this->dataset->type};
    this->negatives = (lp_negatives){.count = NEGATIVES, .items = this->dataset->types.count, .seed = seed};
    assert_int_equal(lp_windows_training(&this->windows, &this->targets, seed, 0, NULL), LAPSE_OK);
    lp_windows_shuffle(&this->windows, seed, 0);
    open_lists(this, &this->lists);
    open_lists(this, &this->own_lists);
    lp_batch *batches[] = {&this->taken, &this->spot};
    lp_row_union *rows[] = {&this->taken_rows, &this->spot_rows};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lp_batch_init(batches[i], WINDOWS, CONTEXT, SHARDS, 0, NULL), LAPSE_OK);
        assert_int_equal(lp_batch_init_vocabulary(batches[i], NEGATIVES, 0, this->dataset->types.count, NULL),
                         LAPSE_OK);
        assert_int_equal(lp_row_union_init(rows[i], batches[i], NULL), LAPSE_OK);
    }
    lp_batch_source source = {&this->windows, &this->targets, &this->columns, &this->lists, 0, true, seed};
    assert_int_equal(lp_prefetch_init(&this->prefetch, &source, &this->taken, NULL), LAPSE_OK);
    assert_non_null(this->prefetch.worker);
}

static void close_case(ahead_case *this)
{
    lp_prefetch_clear(&this->prefetch);
    lp_batch_clear(&this->taken);
    lp_batch_clear(&this->spot);
    lp_row_union_clear(&this->taken_rows);
    lp_row_union_clear(&this->spot_rows);
    lp_batch_vocabulary_clear(&this->lists);
    lp_batch_vocabulary_clear(&this->own_lists);
    lp_windows_clear(&this->windows);
    lapse_dataset_close(this->dataset);
}

static lp_batch_position place_at(const ahead_case *this, int64_t window, uint32_t step)
{
    int64_t left = this->windows.count - window;
    return (lp_batch_position){step, window, left < WINDOWS ? (int)left : WINDOWS};
}

/* Takes a prefetched batch, and compares it with one created now. */
static void check_taken(ahead_case *this, lp_batch_position place)
{
    lp_batch *taken = &this->taken, *spot = &this->spot;
    lp_prefetch_take(&this->prefetch, place, taken, &this->taken_rows);
    lp_batch_fill(spot, &this->windows, place.window, place.count, &this->targets, true, &this->columns);
    for (int shard = 0; shard < SHARDS; shard++)
        lp_batch_vocabulary_make(&this->own_lists, spot, shard, 0, place.step);
    lp_row_union_make(&this->spot_rows, &this->own_lists, spot);
    assert_int_equal(taken->windows, place.count);
    assert_int_equal(taken->tokens, spot->tokens);
    assert_int_equal(taken->targets, spot->targets);
    size_t tokens = (size_t)spot->tokens, target_position = (size_t)spot->targets;
    assert_memory_equal(taken->type, spot->type, tokens * sizeof *spot->type);
    assert_memory_equal(taken->query_time, spot->query_time, tokens * sizeof *spot->query_time);
    assert_memory_equal(taken->lag, spot->lag, tokens * sizeof *spot->lag);
    assert_memory_equal(taken->target_position, spot->target_position, target_position * sizeof *spot->target_position);
    assert_memory_equal(taken->target, spot->target, target_position * sizeof *spot->target);
    assert_memory_equal(taken->negative, spot->negative, target_position * NEGATIVES * sizeof *spot->negative);
    assert_int_equal(this->taken_rows.count, this->spot_rows.count);
    assert_memory_equal(this->taken_rows.row, this->spot_rows.row, (size_t)this->spot_rows.count * sizeof(int32_t));
}

static void in_order(void **state)
{
    (void)state;
    ahead_case this;
    open_case(&this, 1);
    uint32_t step = 0;
    assert_true(this.windows.count > 3 * WINDOWS);
    for (int64_t window = 0; window < this.windows.count; window += WINDOWS, step++) {
        check_taken(&this, place_at(&this, window, step));
        lp_prefetch_start(&this.prefetch, place_at(&this, window + WINDOWS, step + 1));
    }
    close_case(&this);
}

/* A mismatch with the prefetched batch: another position, another step's negatives, another epoch. */
static void out_of_order(void **state)
{
    (void)state;
    ahead_case this;
    open_case(&this, 2);
    lp_prefetch_start(&this.prefetch, place_at(&this, WINDOWS, 5));
    check_taken(&this, place_at(&this, 0, 5));
    lp_prefetch_start(&this.prefetch, place_at(&this, WINDOWS, 6));
    lp_prefetch_start(&this.prefetch, place_at(&this, WINDOWS, 6)); /* already started */
    lp_prefetch_start(&this.prefetch, place_at(&this, 0, 6));       /* replaced by another */
    check_taken(&this, place_at(&this, 0, 6));
    lp_prefetch_start(&this.prefetch, place_at(&this, WINDOWS, 6));
    check_taken(&this, place_at(&this, WINDOWS, 7));
    check_taken(&this, place_at(&this, WINDOWS, 7)); /* a batch can be taken once */
    lp_prefetch_start(&this.prefetch, place_at(&this, 0, 8));
    lp_prefetch_cancel(&this.prefetch);
    assert_int_equal(lp_windows_training(&this.windows, &this.targets, 2, 1, NULL), LAPSE_OK);
    lp_windows_shuffle(&this.windows, 2, 1);
    check_taken(&this, place_at(&this, 0, 8));
    lp_prefetch_start(&this.prefetch, place_at(&this, 0, 9)); /* cleared while running */
    close_case(&this);
}

/* At the end of an epoch the next one is prefetched with its first batch; it need not be taken. */
static void epochs_ahead(void **state)
{
    (void)state;
    ahead_case this;
    lp_windows wanted = {0};
    open_case(&this, 4);
    for (uint32_t epoch = 1; epoch < 6; epoch++) {
        lp_prefetch_start_epoch(&this.prefetch, epoch, 10 * epoch);
        assert_false(lp_prefetch_take_epoch(&this.prefetch, epoch + 1, &this.windows));
        if (epoch == 3) /* the run stays in its epoch: this batch is from its current windows */
            check_taken(&this, place_at(&this, 0, 10 * epoch));
        assert_int_equal(lp_prefetch_take_epoch(&this.prefetch, epoch, &this.windows), epoch != 3);
        assert_false(lp_prefetch_take_epoch(&this.prefetch, epoch, &this.windows));
        assert_int_equal(lp_windows_training(&wanted, &this.targets, 4, epoch == 3 ? 2 : epoch, NULL), LAPSE_OK);
        lp_windows_shuffle(&wanted, 4, epoch == 3 ? 2 : epoch);
        assert_int_equal(this.windows.count, wanted.count);
        assert_memory_equal(this.windows.windows, wanted.windows, (size_t)wanted.count * sizeof *wanted.windows);
        assert_int_equal(this.prefetch.position.count > 0, epoch != 3); /* prefetched */
        check_taken(&this, place_at(&this, 0, 10 * epoch));
    }
    lp_prefetch_start_epoch(&this.prefetch, 6, 60);
    lp_prefetch_cancel(&this.prefetch);
    assert_false(lp_prefetch_take_epoch(&this.prefetch, 6, &this.windows));
    lp_windows_clear(&wanted);
    close_case(&this);
}

static void without_a_thread(void **state)
{
    (void)state;
    ahead_case this;
    open_case(&this, 3);
    lp_worker_free(this.prefetch.worker);
    this.prefetch.worker = NULL;
    check_taken(&this, place_at(&this, 0, 0));
    lp_prefetch_start(&this.prefetch, place_at(&this, WINDOWS, 1));
    check_taken(&this, place_at(&this, WINDOWS, 1));
    close_case(&this);
}

static void count_up(void *context)
{
    ++*(int *)context;
}

static void helpers_work_one_thing_at_a_time(void **state)
{
    (void)state;
    int count = 0;
    lp_worker *helper = lp_worker_new();
    assert_non_null(helper);
    lp_worker_wait(helper);
    for (int i = 1; i <= 1000; i++) {
        lp_worker_start(helper, count_up, &count);
        lp_worker_wait(helper);
        assert_int_equal(count, i);
    }
    lp_worker_start(helper, count_up, &count);
    lp_worker_free(helper); /* submitted work completes first */
    assert_int_equal(count, 1001);
    lp_worker_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(out_of_order),
        cmocka_unit_test(epochs_ahead),
        cmocka_unit_test(without_a_thread),
        cmocka_unit_test(helpers_work_one_thing_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
