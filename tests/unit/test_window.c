/* test_window.c: contracts of windows and batches on random datasets: every target is predicted once, with enough
 * history, and a batch has exactly the contents of its windows. Failures print the seed. */
#include "data/batch/batch.h"
#include "data/dataset/split.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Description of the case, printed with failures. */
static char what[160];

#define CHECK(condition)                                        \
    do {                                                        \
        if (!(condition))                                       \
            fail_msg("%s: %s does not hold", what, #condition); \
    } while (0)

typedef struct window_case {
    lapse_dataset *dataset;
    uint8_t *split;
    lp_targets targets;
    lp_random random;
} window_case;

static double last_time(const lapse_dataset *dataset)
{
    double last = -INFINITY;
    for (int64_t i = 0; i < dataset->event_count; i++)
        last = fmax(last, dataset->time[i]);
    return last;
}

/* The last event of a sequence in the split, if the observation ends after it; -1: the sequence has no open target. */
static int64_t open_event(const window_case *this, int64_t sequence)
{
    int64_t found = -1;
    for (uint64_t i = this->dataset->start[sequence]; i < this->dataset->start[sequence + 1]; i++)
        found = lp_targets_include(&this->targets, (int64_t)i) ? (int64_t)i : found;
    return this->targets.censored && found >= 0 && this->dataset->time[found] < this->targets.end ? found : -1;
}

/* Varies with the seed: split by sequence or by event, the target split, contexts around the lengths of sequences, and whether gaps are
 * censored, at the end of the data or before. */
static void start_case(window_case *this, int seed)
{
    static const int contexts[] = {1, 2, 3, 5, 8, 12, 40};
    this->random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 300);
    int sequences = 3 + (int)lp_random_below(&this->random, 12);
    this->dataset = small_dataset_random(&this->random, sequences, 1 + seed % 50, 4, 1000, seed % 2);
    this->split = NULL;
    lapse_error error = {0};
    if (seed % 2) {
        this->split = lp_alloc((size_t)this->dataset->event_count, 1);
        memcpy(this->split, this->dataset->split, (size_t)this->dataset->event_count);
    } else {
        assert_int_equal(
            lp_split_make(this->dataset, lp_split_rule_find("sequence"), (uint64_t)seed, &this->split, &error),
            LAPSE_OK);
    }
    this->targets = (lp_targets){.dataset = this->dataset,
                                 .split = this->split,
                                 .wanted = (lp_split)(seed / 2 % 4),
                                 .context = contexts[seed % 7],
                                 .censored = seed % 3 == 0,
                                 .end = seed % 3 == 0 ? last_time(this->dataset) - seed / 3 % 5 * 50 : 0};
    snprintf(what, sizeof what, "seed %d, context %d, part %d, split by %s, %scensored", seed, this->targets.context,
             (int)this->targets.wanted, seed % 2 ? "event" : "sequence", this->targets.censored ? "" : "not ");
}

static void end_case(window_case *this)
{
    lapse_dataset_close(this->dataset);
    lp_free(this->split);
}

/* How often each event is predicted, and after which events the open target is: predictions[event_count + event]. */
static int *count_predictions(const window_case *this, const lp_windows *list)
{
    int64_t events = this->dataset->event_count;
    int *predictions = calloc(2 * (size_t)events, sizeof *predictions);
    for (int64_t w = 0; w < list->count; w++) {
        const lp_window *window = &list->windows[w];
        bool open = lp_target_is_open(&this->targets, window->sequence, window->first + window->count);
        for (int i = window->from; i < window->count - open; i++)
            predictions[window->first + i + 1] += lp_targets_include(&this->targets, window->first + i + 1);
        predictions[events + window->first + window->count - 1] += open;
    }
    return predictions;
}

static void check_windows(const window_case *this, const lp_windows *list)
{
    const lapse_dataset *dataset = this->dataset;
    int64_t total = 0;
    int *predictions = count_predictions(this, list);
    CHECK(list->count <= list->capacity);
    for (int64_t w = 0; w < list->count; w++) {
        const lp_window *window = &list->windows[w];
        int64_t end = window->first + window->count; /* the last target */
        CHECK(window->count >= 1 && window->count <= this->targets.context);
        CHECK(window->from >= 0 && window->from < window->count);
        CHECK((uint64_t)window->first >= dataset->start[window->sequence]);
        bool open = end - 1 == open_event(this, window->sequence);
        CHECK(open || (uint64_t)end < dataset->start[window->sequence + 1]);
        CHECK(open || lp_targets_include(&this->targets, end));
        CHECK((open && window->from == window->count - 1) ||
              lp_targets_include(&this->targets, window->first + window->from + 1));
    }
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s]; event < dataset->start[s + 1]; event++) {
            bool wanted = event > dataset->start[s] && lp_targets_include(&this->targets, (int64_t)event),
                 open = (int64_t)event == open_event(this, s);
            CHECK(predictions[event] == wanted);
            CHECK(predictions[(uint64_t)dataset->event_count + event] == open);
            total += wanted + open;
        }
    CHECK(list->targets == total);
    free(predictions);
}

static void evaluation_windows(void **state)
{
    (void)state;
    for (int seed = 0; seed < small_effort(400, 60); seed++) {
        window_case this;
        lp_windows list = {0};
        start_case(&this, seed);
        assert_int_equal(lp_windows_evaluation(&list, &this.targets, NULL), LAPSE_OK);
        check_windows(&this, &list);
        for (int64_t w = 0; w < list.count; w++) {
            const lp_window *window = &list.windows[w];
            int64_t start = (int64_t)this.dataset->start[window->sequence];
            int64_t length = (int64_t)this.dataset->start[window->sequence + 1] - start;
            for (int i = window->from; i < window->count; i++) {
                int64_t index = window->first + i + 1 - start, least = (this.targets.context + 1) / 2;
                CHECK(i + 1 >= (index < least ? index : least));
                CHECK(length - !this.targets.censored > this.targets.context || i + 1 == index);
            }
        }
        lp_windows_clear(&list);
        end_case(&this);
    }
}

static void training_windows(void **state)
{
    (void)state;
    for (int seed = 0; seed < small_effort(400, 60); seed++) {
        window_case this;
        lp_windows list = {0};
        start_case(&this, seed);
        assert_int_equal(lp_windows_training(&list, &this.targets, (uint64_t)seed, 0, NULL), LAPSE_OK);
        const lp_window *buffer = list.windows;
        for (uint32_t epoch = 0; epoch < 8; epoch++) {
            int64_t before = lp_memory_count();
            assert_int_equal(lp_windows_training(&list, &this.targets, (uint64_t)seed, epoch, NULL), LAPSE_OK);
            CHECK(lp_memory_count() == before && list.windows == buffer);
            check_windows(&this, &list);
            lp_windows_shuffle(&list, (uint64_t)seed, epoch);
            check_windows(&this, &list);
            CHECK(lp_memory_count() == before);
        }
        lp_windows_clear(&list);
        end_case(&this);
    }
}

/* With last_only every target has a window of its own, in training too, with all the history that the context allows. */
static void windows_of_one_target(void **state)
{
    (void)state;
    for (int seed = 0; seed < small_effort(100, 20); seed++) {
        window_case this;
        lp_windows list = {0};
        start_case(&this, seed);
        this.targets.last_only = true;
        for (uint32_t epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(lp_windows_training(&list, &this.targets, 1, epoch, NULL), LAPSE_OK);
            check_windows(&this, &list);
            CHECK(list.count == list.targets);
            for (int64_t w = 0; w < list.count; w++) {
                const lp_window *window = &list.windows[w];
                int64_t index = window->first + window->count - (int64_t)this.dataset->start[window->sequence];
                CHECK(window->from == window->count - 1);
                CHECK(window->count == (index < this.targets.context ? index : this.targets.context));
            }
        }
        lp_windows_clear(&list);
        end_case(&this);
    }
}

/* Training windows of one long sequence lie end to end, with another offset in another epoch. */
static void training_offsets(void **state)
{
    (void)state;
    static const int lengths[] = {100};
    double time[100] = {0};
    int32_t type[100] = {0};
    lapse_dataset *dataset = small_dataset(1, lengths, time, type, 1, NULL);
    lp_targets targets = {.dataset = dataset, .split = NULL, .wanted = LP_SPLIT_COUNT, .context = 10};
    lp_windows list = {0};
    int seen[11] = {0}, different = 0;
    snprintf(what, sizeof what, "one sequence of 100");
    for (uint32_t epoch = 0; epoch < 200; epoch++) {
        assert_int_equal(lp_windows_training(&list, &targets, 1, epoch, NULL), LAPSE_OK);
        CHECK(list.targets == 99 && list.windows[0].first == 0 && list.windows[0].from == 0);
        for (int64_t w = 1; w < list.count; w++)
            CHECK(list.windows[w].first == list.windows[w - 1].first + list.windows[w - 1].count);
        seen[list.windows[0].count]++;
    }
    for (int i = 1; i <= 10; i++)
        different += seen[i] > 0;
    CHECK(different == 10);
    lp_windows_clear(&list);
    lapse_dataset_close(dataset);
}

static int by_first(const void *a, const void *b)
{
    const lp_window *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static bool same_windows(const lp_windows *a, const lp_windows *b)
{
    return a->count == b->count && memcmp(a->windows, b->windows, (size_t)a->count * sizeof *a->windows) == 0;
}

static void shuffles(void **state)
{
    (void)state;
    lp_random random = lp_random_start(5, LP_PURPOSE_TEST, 301);
    lapse_dataset *dataset = small_dataset_random(&random, 40, 30, 3, 10, false);
    lp_targets targets = {.dataset = dataset, .split = NULL, .wanted = LP_SPLIT_COUNT, .context = 4};
    lp_windows plain = {0}, one = {0}, again = {0}, other = {0}, seeded = {0};
    lp_windows *lists[] = {&plain, &one, &again, &other, &seeded};
    for (int i = 0; i < 5; i++)
        assert_int_equal(lp_windows_evaluation(lists[i], &targets, NULL), LAPSE_OK);
    lp_windows_shuffle(&one, 7, 3);
    lp_windows_shuffle(&again, 7, 3);
    lp_windows_shuffle(&other, 7, 4);
    lp_windows_shuffle(&seeded, 8, 3);
    assert_true(same_windows(&one, &again));
    assert_false(same_windows(&one, &other));
    assert_false(same_windows(&one, &seeded));
    assert_false(same_windows(&one, &plain));
    for (int i = 1; i < 5; i++) {
        qsort(lists[i]->windows, (size_t)lists[i]->count, sizeof *lists[i]->windows, by_first);
        assert_true(same_windows(lists[i], &plain));
    }
    for (int i = 0; i < 5; i++)
        lp_windows_clear(lists[i]);
    lapse_dataset_close(dataset);
}

/* Shuffling empty lists and lists of one window. */
static void nothing_to_shuffle(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("a b abc", NULL);
    static const uint8_t split[] = {0, 0, 0, 0, 0};
    lp_targets none = {.dataset = dataset, .split = split, .wanted = LP_SPLIT_TEST, .context = 4},
               all = {.dataset = dataset, .split = split, .wanted = LP_SPLIT_COUNT, .context = 4};
    lp_windows list = {0};
    assert_int_equal(lp_windows_evaluation(&list, &none, NULL), LAPSE_OK);
    lp_windows_shuffle(&list, 1, 1);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.targets, 0);
    assert_int_equal(lp_windows_evaluation(&list, &all, NULL), LAPSE_OK);
    lp_windows_shuffle(&list, 1, 1);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.targets, 2);
    lp_windows_clear(&list);
    lapse_dataset_close(dataset);
}

/* ----------------------------------------------------------------------------------------------- batches ----- */

typedef struct row_counts {
    int targets, labels;
} row_counts;

/* Compares the tokens of one window with the dataset. */
static void check_window(const window_case *this, const lp_batch *batch, const lp_window *window, int shard, int token,
                         bool known, row_counts *counts)
{
    const lapse_dataset *dataset = this->dataset;
    const double *time = dataset->time + window->first;
    bool open = window->first + window->count - 1 == open_event(this, window->sequence);
    double last = known && !open ? time[window->count] : time[window->count - 1];
    for (int i = 0; i < window->count; i++, token++) {
        int64_t next = window->first + i + 1;
        CHECK(batch->type[token] == dataset->type[next - 1]);
        CHECK(batch->position[token] == i);
        CHECK(batch->time[token] == time[i] - last && batch->time[token] <= 0);
        bool here = open && i == window->count - 1;
        CHECK(batch->query_time[token] == (known && !here ? time[i + 1] : time[i]) - last);
        CHECK(batch->query_time[token] >= batch->time[token] && batch->query_time[token] <= 0);
        CHECK(known || batch->query_time[token] == batch->time[token]);
        CHECK(batch->lag[token] == batch->query_time[token] - batch->time[token]);
        bool is_label = !here && i >= window->from && lp_targets_include(&this->targets, next);
        if (!is_label && !here)
            continue;
        CHECK(batch->target_position[counts->targets] == token - batch->shard_token[shard]);
        CHECK(batch->target_gap[counts->targets] == (here ? time[i] - this->targets.end : time[i + 1] - time[i]));
        CHECK(here == (batch->target_gap[counts->targets] < 0));
        double span = here ? this->targets.end - time[i] : fmax(time[i + 1] - time[i], batch->season_floor);
        const double *season = batch->target_season + 2 * (size_t)counts->targets;
        CHECK(season[0] == lp_season_integral(batch->season, time[i], span));
        CHECK(season[1] == lp_season_level(batch->season, time[i] + span));
        if (is_label) {
            CHECK(batch->label_row[counts->labels] == counts->targets - batch->shard_targets[shard]);
            CHECK(batch->target[counts->labels++] == dataset->type[next]);
        }
        counts->targets++;
    }
    CHECK(batch->query_time[token - 1] == 0);
}

static void check_batch(const window_case *this, const lp_batch *batch, const lp_windows *list, int64_t first,
                        int count, bool known)
{
    int window = 0, token = 0;
    row_counts counts = {0};
    CHECK(batch->windows == count && batch->shard_window[0] == 0 && batch->shard_token[0] == 0);
    for (int shard = 0; shard < batch->shard_count; shard++) {
        const int32_t *segment = lp_batch_segments(batch, shard);
        CHECK(batch->shard_window[shard] == window && batch->shard_token[shard] == token && segment[0] == 0);
        CHECK(batch->shard_targets[shard] == counts.targets && batch->shard_labels[shard] == counts.labels);
        for (int s = 0; window < batch->shard_window[shard + 1]; s++, window++) {
            const lp_window *wanted = &list->windows[first + window];
            CHECK(segment[s + 1] - segment[s] == wanted->count);
            CHECK(batch->event[window] == wanted->first && batch->sequence[window] == wanted->sequence);
            check_window(this, batch, wanted, shard, token, known, &counts);
            token += wanted->count;
        }
        int tokens = batch->shard_token[shard + 1] - batch->shard_token[shard];
        CHECK(tokens >= 0 && tokens <= lp_batch_shard_tokens(batch));
    }
    CHECK(window == count && token == batch->tokens && counts.targets == batch->targets);
    CHECK(counts.labels == batch->labels && batch->shard_labels[batch->shard_count] == counts.labels);
    CHECK(batch->shard_window[batch->shard_count] == count && batch->shard_token[batch->shard_count] == token);
}

static void batches(void **state)
{
    (void)state;
    lp_season season;
    double level[LP_SEASON_HOURS];
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = 1 + h % 7;
    lp_season_set(&season, level);
    for (int seed = 0; seed < small_effort(300, 50); seed++) {
        window_case this;
        lp_windows list = {0};
        lp_batch batch;
        start_case(&this, seed);
        int windows = 1 + (int)lp_random_below(&this.random, 9), shards = 1 + (int)lp_random_below(&this.random, 5);
        assert_int_equal(lp_windows_training(&list, &this.targets, 1, 0, NULL), LAPSE_OK);
        lp_windows_shuffle(&list, 1, 0);
        assert_int_equal(lp_batch_init(&batch, windows, this.targets.context, shards, 0, NULL), LAPSE_OK);
        lp_batch_inputs inputs = {.target_gap = true, .season = &season, .season_floor = 0.5};
        assert_int_equal(lp_batch_init_inputs(&batch, inputs, NULL), LAPSE_OK);
        int64_t before = lp_memory_count();
        for (int64_t first = 0; first < list.count; first += windows) {
            int64_t left = list.count - first;
            int count = left < windows ? (int)left : windows;
            bool known = (seed + first) % 2;
            lp_batch_fill(&batch, &list, first, count, &this.targets, known,
                          &(lp_event_columns){.type = this.dataset->type});
            check_batch(&this, &batch, &list, first, count, known);
        }
        CHECK(lp_memory_count() == before);
        lp_batch_clear(&batch);
        lp_windows_clear(&list);
        end_case(&this);
    }
}

/* Event types come from the given column, not from the dataset: a model may have other ids. */
static void batch_takes_the_models_kinds(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abc", NULL);
    static const int32_t types[] = {2, 1, 0};
    lp_targets targets = {.dataset = dataset, .split = NULL, .wanted = LP_SPLIT_COUNT, .context = 4};
    lp_windows list = {0};
    lp_batch batch;
    assert_int_equal(lp_windows_evaluation(&list, &targets, NULL), LAPSE_OK);
    assert_int_equal(lp_batch_init(&batch, 3, 4, 2, 0, NULL), LAPSE_OK);
    lp_batch_fill(&batch, &list, 0, 1, &targets, true, &(lp_event_columns){.type = types});
    assert_int_equal(batch.tokens, 2);
    assert_memory_equal(batch.type, types, sizeof(int32_t[2]));
    assert_memory_equal(batch.target, types + 1, sizeof(int32_t[2]));
    lp_batch_clear(&batch);
    lp_windows_clear(&list);
    lapse_dataset_close(dataset);
}

static void out_of_memory(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abc abcd", NULL);
    lp_targets targets = {.dataset = dataset, .split = NULL, .wanted = LP_SPLIT_COUNT, .context = 2};
    lp_windows list = {0};
    lp_batch batch;
    lapse_error error;
    lp_memory_fail_at(1);
    assert_int_equal(lp_windows_evaluation(&list, &targets, &error), LAPSE_ERROR_MEMORY);
    lp_memory_fail_at(1);
    assert_int_equal(lp_windows_training(&list, &targets, 1, 0, &error), LAPSE_ERROR_MEMORY);
    assert_string_equal(error.message, "out of memory: the list of windows needs 0.0 MB");
    int n = 1;
    for (lapse_status status = LAPSE_ERROR_MEMORY; status != LAPSE_OK; n++) {
        lp_memory_fail_at(n);
        status = lp_batch_init(&batch, 100, 100, 2, 3, &error);
        if (status != LAPSE_OK)
            assert_string_equal(error.message, "out of memory: a batch needs 0.6 MB");
    }
    lp_memory_fail_at(0);
    assert_int_equal(n, 21); /* sixteen arrays and three fields */
    lp_batch_clear(&batch);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_windows),
        cmocka_unit_test(training_windows),
        cmocka_unit_test(windows_of_one_target),
        cmocka_unit_test(training_offsets),
        cmocka_unit_test(shuffles),
        cmocka_unit_test(nothing_to_shuffle),
        cmocka_unit_test(batches),
        cmocka_unit_test(batch_takes_the_models_kinds),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
