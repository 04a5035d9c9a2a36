/* test_batch_vocabulary.c: negative sampling and batch vocabularies: sampling frequencies, and that indices denote
 * the same items as the ids before. */
#include "data/batch/batch_vocabulary.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES = 26 };

/* ------------------------------------------------------------------------------------------------- sampling -- */

/* The frequency of every item in many samples is within five standard deviations of its probability. */
static void check_frequencies(const lp_negatives *negatives, const double *probability)
{
    enum { SAMPLES = 200000 };
    int count[TYPES] = {0};
    for (int i = 0; i < SAMPLES; i++)
        count[lp_negatives_sample(negatives, 3, (uint64_t)i, 0, 0)]++;
    for (int k = 0; k < negatives->items; k++) {
        double wanted = SAMPLES * probability[k];
        if (fabs(count[k] - wanted) > 5 * sqrt(wanted) + 1e-9)
            fail_msg("item %d was sampled %d times, expected about %.0f", k, count[k], wanted);
    }
}

static void sampling_frequencies(void **state)
{
    (void)state;
    /* a has 6 training events, b 3, c 1, d none (but a test event) */
    lapse_dataset *dataset = small_dataset_spelled("aaabbcd aaab", "tttttte tttt");
    for (int sampling = LP_NEGATIVES_UNIFORM; sampling <= LP_NEGATIVES_POPULARITY; sampling++)
        for (int p = 0; p < 3; p++) {
            static const double occurrences[] = {6, 3, 1, 0};
            double power = 0.5 * p, probability[4], sum = 0;
            lp_negatives negatives = {.sampling = (lp_negative_sampling)sampling,
                                      .count = 1,
                                      .shared = 50,
                                      .corrected = true,
                                      .items = 4,
                                      .seed = 9};
            assert_int_equal(lp_negatives_init(&negatives, dataset, dataset->split, dataset->type, power, NULL),
                             LAPSE_OK);
            for (int k = 0; k < 4; k++) {
                bool never = sampling == LP_NEGATIVES_POPULARITY && occurrences[k] == 0;
                sum += probability[k] = never                                 ? 0
                                        : sampling == LP_NEGATIVES_POPULARITY ? pow(occurrences[k], power)
                                                                              : 1;
            }
            for (int k = 0; k < 4; k++)
                probability[k] /= sum;
            check_frequencies(&negatives, probability);
            /* the correction is -log of the probability of being sampled, or of being in the batch */
            for (int k = 0; k < 4; k++) {
                double expected = 50 * probability[k] + 7 * occurrences[k] / 10;
                if (expected > 0)
                    assert_float_equal(lp_negatives_logq(&negatives, k, 7), -log(1 - exp(-expected)), 1e-5);
            }
            lp_negatives_clear(&negatives);
        }
    lapse_dataset_close(dataset);
}

static void samples_are_functions_of_their_counter(void **state)
{
    (void)state;
    lp_negatives negatives = {.sampling = LP_NEGATIVES_UNIFORM, .count = 3, .items = 1 << 20, .seed = 5};
    int32_t a = lp_negatives_sample(&negatives, 7, 11, 2, 0);
    assert_int_equal(a, lp_negatives_sample(&negatives, 7, 11, 2, 0));
    assert_int_not_equal(a, lp_negatives_sample(&negatives, 8, 11, 2, 0));
    assert_int_not_equal(a, lp_negatives_sample(&negatives, 7, 12, 2, 0));
    assert_int_not_equal(a, lp_negatives_sample(&negatives, 7, 11, 1, 0));
    assert_int_not_equal(a, lp_negatives_sample(&negatives, 7, 11, 2, 1));
    negatives.seed = 6;
    assert_int_not_equal(a, lp_negatives_sample(&negatives, 7, 11, 2, 0));
}

/* ------------------------------------------------------------------------------------------------- lists ----- */

typedef struct list_case {
    lapse_dataset *dataset;
    lp_targets targets;
    lp_windows windows;
    lp_batch plain, listed;
    lp_negatives negatives;
    lp_batch_vocabulary lists;
    lp_row_union rows;
} list_case;

static void open_case(list_case *this, int seed)
{
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 500);
    *this = (list_case){.dataset = small_dataset_random(&random, 12, 20, TYPES, 10, false)};
    int shards = 1 + seed % 4, count = seed % 3;
    this->targets = (lp_targets){.dataset = this->dataset, .wanted = LP_SPLIT_COUNT, .context = 7};
    assert_int_equal(lp_windows_training(&this->windows, &this->targets, 1, 0, NULL), LAPSE_OK);
    assert_int_equal(lp_batch_init(&this->plain, 16, 7, shards, 0, NULL), LAPSE_OK);
    assert_int_equal(lp_batch_init(&this->listed, 16, 7, shards, 0, NULL), LAPSE_OK);
    this->negatives = (lp_negatives){.sampling = count && seed % 7 ? LP_NEGATIVES_UNIFORM : LP_NEGATIVES_IN_BATCH,
                                     .count = count,
                                     .shared = seed % 5 * 3,
                                     .corrected = true,
                                     .unseen = seed % 2,
                                     .items = this->dataset->types.count,
                                     .seed = (uint64_t)seed};
    uint8_t *split = calloc((size_t)this->dataset->event_count, 1);
    assert_int_equal(lp_negatives_init(&this->negatives, this->dataset, split, this->dataset->type, 1, NULL), LAPSE_OK);
    free(split);
    assert_int_equal(
        lp_batch_init_vocabulary(&this->listed, count, this->negatives.shared, this->dataset->types.count, NULL),
        LAPSE_OK);
    this->lists = (lp_batch_vocabulary){.negatives = &this->negatives,
                                        .dataset = this->dataset,
                                        .type = this->dataset->type,
                                        .items = this->dataset->types.count,
                                        .threads = 2};
    assert_int_equal(lp_batch_vocabulary_init(&this->lists, NULL), LAPSE_OK);
    assert_int_equal(lp_row_union_init(&this->rows, &this->listed, NULL), LAPSE_OK);
}

static void close_case(list_case *this)
{
    lp_row_union_clear(&this->rows);
    lp_batch_vocabulary_clear(&this->lists);
    lp_negatives_clear(&this->negatives);
    lp_batch_clear(&this->plain);
    lp_batch_clear(&this->listed);
    lp_windows_clear(&this->windows);
    lapse_dataset_close(this->dataset);
}

static bool sequence_has(const lapse_dataset *dataset, int64_t sequence, int32_t item)
{
    bool has = false;
    for (uint64_t i = dataset->start[sequence]; i < dataset->start[sequence + 1]; i++)
        has = has || dataset->type[i] == item;
    return has;
}

static bool is_target(const lp_batch *plain, int shard, int32_t item)
{
    bool found = false;
    for (int a = plain->shard_targets[shard]; a < plain->shard_targets[shard + 1]; a++)
        found = found || plain->target[a] == item;
    return found;
}

/* A shard's list has no duplicates, and its indices denote the ids of the plain batch. */
static void check_shard(const list_case *this, int shard)
{
    const lp_batch *plain = &this->plain, *listed = &this->listed;
    const int32_t *items = listed->item + (ptrdiff_t)shard * listed->item_capacity;
    int count = listed->shard_items[shard], negatives = this->negatives.count, used[TYPES] = {0};
    assert_true(count <= listed->item_capacity);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(items[i], items[j]);
    for (int t = plain->shard_token[shard]; t < plain->shard_token[shard + 1]; t++) {
        assert_int_equal(items[listed->type[t]], plain->type[t]);
        used[plain->type[t]] = 1;
    }
    const int32_t *segment = lp_batch_segments(plain, shard);
    for (int a = plain->shard_targets[shard]; a < plain->shard_targets[shard + 1]; a++) {
        int s = 0;
        while (plain->target_position[a] >= segment[s + 1])
            s++;
        int64_t sequence = plain->sequence[plain->shard_window[shard] + s];
        assert_int_equal(items[listed->target[a]], plain->target[a]);
        used[plain->target[a]] = 1;
        for (int n = 0; n < negatives; n++) {
            int32_t item = items[listed->negative[a * negatives + n]];
            used[item] = 1;
            if (this->negatives.sampling == LP_NEGATIVES_IN_BATCH)
                assert_true(is_target(plain, shard, item));
            else if (this->negatives.unseen)
                assert_false(sequence_has(this->dataset, sequence, item));
            else
                assert_int_equal(item, lp_negatives_sample(&this->negatives, 4, (uint64_t)a, n, 0));
        }
    }
    for (int n = 0; n < this->negatives.shared; n++) {
        int32_t item;
        lp_negatives_shared(&this->negatives, 4, n, 1, &item);
        used[item] = 1;
        bool listed_too = false;
        for (int i = 0; i < count; i++)
            listed_too = listed_too || items[i] == item;
        assert_true(listed_too);
    }
    for (int i = 0; i < count; i++) {
        assert_true(used[items[i]]);
        int events = listed->shard_token[shard + 1] - listed->shard_token[shard];
        assert_true(listed->logq[(ptrdiff_t)shard * listed->item_capacity + i] ==
                    lp_negatives_logq(&this->negatives, items[i], events));
    }
}

/* The union has every listed item once, with all its entries in the order of shards. */
static void check_union(const list_case *this)
{
    const lp_row_union *rows = &this->rows;
    const lp_batch *batch = &this->listed;
    int entries = 0;
    for (int shard = 0; shard < batch->shard_count; shard++)
        entries += batch->shard_items[shard];
    assert_int_equal(rows->first[0], 0);
    assert_int_equal(rows->first[rows->count], entries);
    for (int i = 0; i < rows->count; i++) {
        assert_true(rows->first[i] < rows->first[i + 1]);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(rows->row[i], rows->row[j]);
        for (int32_t p = rows->first[i]; p < rows->first[i + 1]; p++) {
            assert_int_equal(batch->item[rows->item_index[p]], rows->row[i]);
            assert_true(p == rows->first[i] || rows->item_index[p] > rows->item_index[p - 1]);
        }
    }
}

static void lists_say_what_the_batch_said(void **state)
{
    (void)state;
    for (int seed = 0; seed < 24; seed++) {
        list_case this;
        open_case(&this, seed);
        int count = this.windows.count < 16 ? (int)this.windows.count : 16;
        lp_event_columns columns = {.type = this.dataset->type};
        for (int round = 0; round < 2; round++) { /* stale contents have no effect */
            lp_batch_fill(&this.plain, &this.windows, 0, count, &this.targets, true, &columns);
            lp_batch_fill(&this.listed, &this.windows, 0, count, &this.targets, true, &columns);
            for (int shard = 0; shard < this.listed.shard_count; shard++)
                lp_batch_vocabulary_make(&this.lists, &this.listed, shard, shard % 2, 4);
            for (int shard = 0; shard < this.listed.shard_count; shard++)
                check_shard(&this, shard);
            lp_row_union_make(&this.rows, &this.lists, &this.listed);
            check_union(&this);
        }
        close_case(&this);
    }
}

/* Stamps wrap around without confusing old and new ones. */
static void stamps_wrap_around(void **state)
{
    (void)state;
    list_case this;
    open_case(&this, 3);
    lp_event_columns columns = {.type = this.dataset->type};
    this.lists.lists[0] = this.lists.sequences[0] = UINT32_MAX - 1;
    for (int round = 0; round < 4; round++) {
        lp_batch_fill(&this.plain, &this.windows, 0, 9, &this.targets, true, &columns);
        lp_batch_fill(&this.listed, &this.windows, 0, 9, &this.targets, true, &columns);
        for (int shard = 0; shard < this.listed.shard_count; shard++) {
            lp_batch_vocabulary_make(&this.lists, &this.listed, shard, 0, 4);
            check_shard(&this, shard);
        }
    }
    close_case(&this);
}

static void out_of_memory(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abc abcd", NULL);
    uint8_t split[7] = {0};
    lapse_error error;
    lapse_status status = LAPSE_ERROR_MEMORY;
    int n = 0;
    while (status != LAPSE_OK) {
        lp_negatives negatives = {.sampling = LP_NEGATIVES_POPULARITY, .count = 1, .items = 4};
        lp_batch_vocabulary lists = {.negatives = &negatives, .dataset = dataset, .items = 4, .threads = 2};
        lp_memory_fail_at(++n);
        status = lp_negatives_init(&negatives, dataset, split, dataset->type, 1, &error);
        if (status == LAPSE_OK)
            status = lp_batch_vocabulary_init(&lists, &error);
        lp_memory_fail_at(0);
        lp_batch_vocabulary_clear(&lists);
        lp_negatives_clear(&negatives);
        assert_true(status == LAPSE_OK || status == LAPSE_ERROR_MEMORY);
    }
    assert_int_equal(n, 11); /* ten allocations */
    lapse_dataset_close(dataset);
}

/* Negatives that all targets of a step share, or of each target: as the loss needs, and as many as the option says. */
static void losses_have_their_negatives(void **state)
{
    (void)state;
    static const struct {
        const char *loss;
        int count, shared;
    } cases[] = {{"sampled-softmax", 0, 3}, {"bce", 3, 0}, {"bpr", 3, 0}, {"bpr-max", 3, 0}, {"top1-max", 3, 0}};
    lapse_dataset *dataset = small_train_data(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = small_train_options();
        lp_trainer trainer;
        small_set(&options, "task", "recommend");
        small_set(&options, "loss", cases[i].loss);
        small_set(&options, "negative-count", "3");
        assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
        assert_int_equal(trainer.negatives.count, cases[i].count);
        assert_int_equal(trainer.negatives.shared, cases[i].shared);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_have_their_negatives),
        cmocka_unit_test(sampling_frequencies),
        cmocka_unit_test(samples_are_functions_of_their_counter),
        cmocka_unit_test(lists_say_what_the_batch_said),
        cmocka_unit_test(stamps_wrap_around),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
