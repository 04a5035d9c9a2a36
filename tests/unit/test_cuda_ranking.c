/* test_cuda_ranking.c: a device ranks states as the host does. Elements are small integers, so that there are many ties and every order
 * of a sum gives the same score. Runs on the emulated device, or on a real one if the environment variable LAPSE_TEST_DEVICE is cuda. */
#include "support/small_data.h"
#include "support/test_device.h"
#include "evaluate/ranking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

static int find_device(void **state)
{
    (void)state;
    test_device_choose();
    return 0;
}

typedef struct shape {
    int sequences, most_events, items, dims, negatives;
    lp_score_rule rule;
    bool biased, broken; /* broken: a NaN item and a NaN state */
} shape;

static void fill(lp_random *random, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)lp_random_below(random, 5) - 2;
}

static void *copied(const lp_backend *backend, const void *data, size_t size)
{
    void *buffer = backend->buffer_new(backend->context, size);
    assert_non_null(buffer);
    backend->copy_to_device(backend->context, buffer, data, size);
    return buffer;
}

static void check_shape(const lp_backend *device, const shape *with, int seed)
{
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 961);
    lapse_dataset *dataset = small_dataset_random(&random, with->sequences, 2, with->most_events, with->items, false);
    size_t items = (size_t)with->items, dims = (size_t)with->dims;
    int64_t *counts = lp_alloc(items, sizeof *counts);
    for (size_t i = 0; i < items; i++)
        counts[i] = (int64_t)(i % 7);
    lp_ranking_setup setup = {.dataset = dataset,
                              .type = dataset->type,
                              .items = with->items,
                              .split = dataset->split,
                              .wanted = LP_SPLIT_COUNT,
                              .negatives = with->negatives,
                              .counts = counts,
                              .seed = 7,
                              .threads = 2};
    lp_ranking host, there;
    assert_int_equal(lp_ranking_init(&host, &setup, NULL), LAPSE_OK);
    setup.device = device;
    setup.dims = with->dims;
    assert_int_equal(lp_ranking_init(&there, &setup, NULL), LAPSE_OK);
    size_t cases = (size_t)host.case_count;
    float *state = lp_alloc(cases * dims, sizeof *state), *table = lp_alloc(items * dims, sizeof *table);
    float *bias = lp_alloc(items, sizeof *bias);
    fill(&random, state, cases * dims);
    fill(&random, table, items * dims);
    fill(&random, bias, items);
    if (with->broken)
        table[(items / 2) * dims] = state[dims] = NAN;
    lp_rank_states states = {with->dims, state, table, with->biased ? bias : NULL, with->rule};
    int64_t part = host.case_count / 3;
    lp_ranking_states(&host, &states, 0, host.case_count);
    void *table_there = copied(device, table, items * dims * sizeof *table);
    void *bias_there = copied(device, bias, items * sizeof *bias);
    states.table = table_there;
    states.bias = with->biased ? bias_there : NULL;
    lp_ranking_states(&there, &states, part, host.case_count);
    lp_ranking_states(&there, &states, 0, part);
    for (size_t c = 0; c < cases; c++)
        for (int p = 0; p < LP_PROTOCOL_COUNT; p++)
            if (there.results[c].rank[p] != host.results[c].rank[p] ||
                there.results[c].candidates[p] != host.results[c].candidates[p])
                fail_msg("seed %d, %d items, %d dims, case %zu, %s: rank %d of %d, should be %d of %d", seed,
                         with->items, with->dims, c, lp_protocol_name((lp_protocol)p), there.results[c].rank[p],
                         there.results[c].candidates[p], host.results[c].rank[p], host.results[c].candidates[p]);
    device->buffer_free(device->context, table_there);
    device->buffer_free(device->context, bias_there);
    lp_ranking_clear(&host);
    lp_ranking_clear(&there);
    lp_free(state);
    lp_free(table);
    lp_free(bias);
    lp_free(counts);
    lapse_dataset_close(dataset);
}

static void test_as_on_the_host(void **state)
{
    (void)state;
    small_skip_under_tools();
    static const shape shapes[] = {
        {30, 20, 230, 3, 20, LP_SCORE_PRODUCT, true, true},   {3, 4, 5, 1, 0, LP_SCORE_PRODUCT, false, false},
        {40, 12, 64, 16, 100, LP_SCORE_PRODUCT, true, false}, {9, 60, 129, 50, 7, LP_SCORE_PRODUCT, true, false},
        {12, 9, 300, 17, 5, LP_SCORE_L2, true, true},         {25, 9, 65, 33, 30, LP_SCORE_L1, false, false},
        {1, 3, 2, 130, 3, LP_SCORE_L1, true, false},
    };
    const lp_backend *device;
    assert_int_equal(lp_backend_open("cuda", &device, NULL), LAPSE_OK);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_shape(device, &shapes[i], (int)i);
    assert_null(device->device_error(device->context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_on_the_host)};
    return cmocka_run_group_tests(tests, find_device, NULL);
}
