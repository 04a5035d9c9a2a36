/* test_comm.c: ranks that are threads of this program, with a communicator of its own: models have the bytes of one process, whatever the
 * order in which messages arrive; ranks that disagree, fail or are missing are named. */
#include "comm/comm.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "train/rank_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 9, SLOTS = 8 };

/* Messages between the ranks: by sender, receiver and tag. */
typedef struct world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot {
        bool full;
        uint32_t tag;
        lp_buffer bytes;
    } slots[MOST][MOST][SLOTS];
    int size;
    char told[200]; /* a failure */
} world;

typedef struct member {
    world *all;
    int rank;
} member;

static void send_all(const member *m, const lapse_exchange *exchange)
{
    for (int r = m->all->size - 1; r >= 0; r--) {
        struct slot *slot = &m->all->slots[m->rank][r][exchange->tag % SLOTS];
        if (exchange->send[r].size == 0)
            continue;
        assert_false(slot->full);
        slot->full = true;
        slot->tag = exchange->tag;
        slot->bytes.size = 0;
        assert_true(lp_buffer_add(&slot->bytes, exchange->send[r].data, exchange->send[r].size));
    }
    pthread_cond_broadcast(&m->all->changed);
}

/* Takes a message if it is there. */
static bool take(const member *m, const lapse_exchange *exchange, int from)
{
    struct slot *slot = &m->all->slots[from][m->rank][exchange->tag % SLOTS];
    if (!slot->full || slot->tag != exchange->tag)
        return false;
    assert_int_equal(slot->bytes.size, exchange->receive[from].size);
    memcpy(exchange->receive[from].data, slot->bytes.data, slot->bytes.size);
    slot->full = false;
    return true;
}

static lapse_exchange_status exchange_bytes(void *context, const lapse_exchange *exchange)
{
    const member *m = context;
    lapse_exchange_status status = LAPSE_EXCHANGE_DONE;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += (long)(exchange->seconds * 1e9) % 1000000000;
    end.tv_sec += (time_t)exchange->seconds + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&m->all->lock);
    send_all(m, exchange);
    for (int r = m->all->size - 1; r >= 0 && status == LAPSE_EXCHANGE_DONE; r--) /* the last one first */
        while (exchange->receive[r].size > 0 && !take(m, exchange, r)) {
            if (*m->all->told) {
                snprintf(exchange->why, exchange->why_size, "%s", m->all->told);
                status = LAPSE_EXCHANGE_TOLD;
                break;
            }
            if (pthread_cond_timedwait(&m->all->changed, &m->all->lock, &end) != 0) {
                exchange->missing[r] = true;
                status = LAPSE_EXCHANGE_LATE;
                break;
            }
        }
    pthread_mutex_unlock(&m->all->lock);
    return status;
}

static void tell(void *context, const char *sentence)
{
    const member *m = context;
    pthread_mutex_lock(&m->all->lock);
    snprintf(m->all->told, sizeof m->all->told, "%s", sentence);
    pthread_cond_broadcast(&m->all->changed);
    pthread_mutex_unlock(&m->all->lock);
}

/* What one rank does, and its result. */
typedef struct task {
    member m;
    lapse_comm *comm;
    const lapse_dataset *dataset;
    lapse_train_options options;
    void (*run)(struct task *task);
    lapse_model *model;
    lapse_status status;
    lapse_error error;
} task;

static void *run_task(void *context)
{
    task *t = context;
    t->run(t);
    return NULL;
}

/* Runs a function on ranks that are threads. */
static void run_ranks(task *tasks, int size)
{
    world *all = calloc(1, sizeof *all);
    pthread_t threads[MOST];
    assert_non_null(all);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    all->size = size;
    for (int r = 0; r < size; r++) {
        task *t = &tasks[r];
        t->m = (member){all, r};
        lapse_comm_functions functions = {.context = &t->m, .rank = r, .size = size, .local_size = 1, .exchange = exchange_bytes,
                                          .fail = tell};
        assert_int_equal(lapse_comm_new(&functions, &t->comm, &t->error), LAPSE_OK);
        assert_int_equal(pthread_create(&threads[r], NULL, run_task, t), 0);
    }
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < size; r++)
        lapse_comm_free(tasks[r].comm);
    for (int i = 0; i < MOST; i++)
        for (int k = 0; k < MOST; k++)
            for (int s = 0; s < SLOTS; s++)
                lp_buffer_clear(&all->slots[i][k][s].bytes);
    free(all);
}

static void train(task *t)
{
    lapse_train_options_set_comm(&t->options, t->comm);
    t->status = lapse_train(t->dataset, &t->options, NULL, NULL, &t->model, &t->error);
    if (t->status != LAPSE_OK && lapse_comm_failure(t->comm) == LAPSE_EXCHANGE_DONE)
        lapse_comm_fail(t->comm, t->error.message);
}

static void models_have_the_bytes_of_one_process(void **state)
{
    (void)state;
    static const struct {
        const char *task, *loss, *encoding, *when;
        int shards;
    } cases[] = {
        {"classify", NULL, "mercer", "false", 16},      {"classify", NULL, "bochner-invcdf", "false", 7},
        {"classify", NULL, "mercer", "true", 16},       {"recommend", "bce", "mercer", "false", 5},
        {"recommend", "sampled-softmax", "mercer", "false", 16}, {"recommend", "softmax", "mercer", "false", 12},
    };
    static const int sizes[] = {2, 3, 5, 8};
    lapse_dataset *dataset = small_train_data(3);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "task", cases[c].task);
        small_set(&options, "encoding", cases[c].encoding);
        small_set(&options, "when", cases[c].when);
        small_set_number(&options, "shards", cases[c].shards);
        small_set_number(&options, "threads", 1);
        if (cases[c].loss)
            small_set(&options, "loss", cases[c].loss);
        lapse_model *alone = small_train(dataset, &options, NULL, NULL);
        assert_int_equal(lapse_model_save(alone, small_path("alone"), NULL), LAPSE_OK);
        for (int s = 0; s < small_effort(sizeof sizes / sizeof *sizes, 2); s++) {
            task tasks[MOST] = {{.dataset = NULL}};
            for (int r = 0; r < sizes[s]; r++)
                tasks[r] = (task){.dataset = dataset, .options = options, .run = train};
            run_ranks(tasks, sizes[s]);
            for (int r = 0; r < sizes[s]; r++) {
                if (tasks[r].status != LAPSE_OK)
                    fail_msg("case %zu, rank %d of %d: %s", c, r, sizes[s], tasks[r].error.message);
                assert_int_equal(lapse_model_save(tasks[r].model, small_path("rank"), NULL), LAPSE_OK);
                small_files_same(small_path("alone"), small_path("rank"));
                lapse_model_free(tasks[r].model);
            }
        }
        lapse_model_free(alone);
    }
    lapse_dataset_close(dataset);
    small_paths_remove();
}

static void ranks_that_disagree_are_named(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(3), *other = small_train_data(4);
    static const char *const sentences[] = {"ranks 0 and 2 disagree: --seed is '1' on rank 0 and '7' on rank 2",
                                            "ranks 0 and 2 disagree: data is '"};
    for (int c = 0; c < 3; c++) {
        task tasks[3] = {{.dataset = NULL}};
        for (int r = 0; r < 3; r++)
            tasks[r] = (task){.dataset = r == 2 && c == 1 ? other : dataset, .options = small_train_options(), .run = train};
        if (c == 0)
            assert_int_equal(lapse_train_options_set(&tasks[2].options, "seed", "7", NULL), LAPSE_OK);
        if (c == 2) /* fails before the first exchange */
            small_set(&tasks[2].options, "item-vectors", "none.safetensors");
        run_ranks(tasks, 3);
        for (int r = 0; r < 3; r++) {
            assert_int_not_equal(tasks[r].status, LAPSE_OK);
            assert_null(tasks[r].model);
            if (c < 2)
                assert_memory_equal(tasks[r].error.message, sentences[c], strlen(sentences[c]));
            else if (r < 2) /* they have the message of rank 2 */
                assert_string_equal(tasks[r].error.message, tasks[2].error.message);
        }
    }
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

/* Ranks 1 and 3 do not come. */
static void be_missing(task *t)
{
    bool flag = false;
    if (t->m.rank % 2 == 0)
        flag = lp_comm_any(t->comm, "testing", false);
    assert_false(flag);
    t->status = lp_comm_check(t->comm, &t->error);
}

static void missing_ranks_are_named(void **state)
{
    (void)state;
    task tasks[4] = {{.run = be_missing}, {.run = be_missing}, {.run = be_missing}, {.run = be_missing}};
    assert_int_equal(setenv("LAPSE_COMM_TIMEOUT", "0.1", 1), 0);
    run_ranks(tasks, 4);
    assert_int_equal(tasks[0].status, LAPSE_ERROR_COMM);
    assert_int_equal(tasks[1].status, LAPSE_OK);
    assert_non_null(strstr(tasks[0].error.message, "rank 3 did not answer within 0.1 s (the start, testing, collective 1)"));
    assert_int_equal(setenv("LAPSE_COMM_TIMEOUT", "soon", 1), 0);
    lapse_comm *comm;
    lapse_error error;
    lapse_comm_functions functions = {.size = 2, .exchange = exchange_bytes};
    assert_int_equal(lapse_comm_new(&functions, &comm, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "LAPSE_COMM_TIMEOUT is 'soon'; it must be a number of seconds up to 86400");
    unsetenv("LAPSE_COMM_TIMEOUT");
    functions.rank = 2;
    assert_int_equal(lapse_comm_new(&functions, &comm, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "rank 2 of 2: a rank is a number from 0 to the size - 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_the_bytes_of_one_process),
        cmocka_unit_test(ranks_that_disagree_are_named),
        cmocka_unit_test(missing_ranks_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
