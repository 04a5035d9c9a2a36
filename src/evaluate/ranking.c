/* ranking.c: computes ranks. A thread scores a block of cases against the catalogue, a tile of items at a time. Lists
 * of items (seen items, negatives) are sorted by item, so that one pass over each list beside the tiles finds its
 * scores in the current tile: no score is computed twice, and ties are exact. */
#include "evaluate/ranking.h"

#include "base/assert.h"
#include "base/random.h"
#include "base/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCK = 256, MIN_BLOCK = 16, TILE = 192 };

/* Counts of a case over the tiles so far. */
typedef struct tally {
    const lp_rank_case *rank_case;
    int32_t target;
    float target_score;
    const lp_sequence_item *item, *end; /* next item of the sequence's list, and the list's end */
    const int32_t *negatives[LP_RANK_POOLS];
    int negative_count[LP_RANK_POOLS], next[LP_RANK_POOLS];
    lp_rank_counts counts;
} tally;

typedef struct lp_rank_worker {
    tally *tallies;     /* [block] */
    uint64_t *excluded; /* bitset of items */
    int32_t *negatives; /* [block x LP_RANK_POOLS x negatives] */
    float *scores;      /* [block x TILE], or [items] for rows */
    double *row;        /* [items]: scores of a row */
} lp_rank_worker;

const char *lp_protocol_name(lp_protocol protocol)
{
    static const char *const names[] = {"full-unseen", "full", "uniform", "popularity"};
    return names[protocol];
}

/* ------------------------------------------------------------------------------------------------- cases ----- */

/* Cases are sampled by random keys: those with the smallest keys. */
typedef struct case_key {
    uint64_t key;
    int64_t event;
} case_key;

static int by_key(const void *left, const void *right)
{
    const case_key *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

static uint64_t key_of(const lp_ranking_setup *setup, int64_t event)
{
    lp_random_block block = lp_philox(setup->seed, LP_PURPOSE_RANK_CASES, 0, (uint64_t)event);
    return (uint64_t)block.word[0] << 32 | block.word[1];
}

static bool is_target(const lp_ranking_setup *setup, int64_t event)
{
    return lp_split_includes(setup->split, setup->wanted, event);
}

static lapse_status find_last_key(const lp_ranking *ranking, case_key *last, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    case_key *keys = lp_alloc((size_t)ranking->case_total, sizeof *keys);
    if (!keys)
        return lp_fail_memory(error, "sampling cases", (size_t)ranking->case_total * sizeof *keys);
    int64_t count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++)
            if (is_target(setup, event))
                keys[count++] = (case_key){key_of(setup, event), event};
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    *last = keys[setup->max_cases - 1];
    lp_free(keys);
    return LAPSE_OK;
}

/* Lists the cases and numbers the sequences that have one in `list`. */
static lapse_status list_cases(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++)
            ranking->case_total += is_target(setup, event);
    case_key last = {UINT64_MAX, INT64_MAX};
    bool sampled = setup->max_cases > 0 && setup->max_cases < ranking->case_total;
    if (sampled)
        LP_TRY(find_last_key(ranking, &last, error));
    size_t count = (size_t)(sampled ? setup->max_cases : ranking->case_total);
    ranking->cases = lp_alloc(count, sizeof *ranking->cases);
    ranking->results = lp_alloc(count, sizeof *ranking->results);
    if (!ranking->cases || !ranking->results)
        return lp_fail_memory(error, "the cases of a ranking",
                              count * (sizeof *ranking->cases + sizeof *ranking->results));
    int64_t list = -1;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++) {
            if (!is_target(setup, event))
                continue;
            case_key key = {sampled ? key_of(setup, event) : 0, event};
            if (sampled && by_key(&key, &last) > 0)
                continue;
            lp_rank_case *before = ranking->case_count ? &ranking->cases[ranking->case_count - 1] : NULL;
            list += !before || before->sequence != s;
            ranking->cases[ranking->case_count++] = (lp_rank_case){s, event, list};
        }
    return LAPSE_OK;
}

/* ----------------------------------------------------------------------------------------------- workers ----- */

static lapse_status make_workers(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    int64_t block_size = ranking->case_count / (4 * setup->threads); /* four tasks per thread */
    ranking->block = block_size < MIN_BLOCK ? MIN_BLOCK : block_size > MAX_BLOCK ? MAX_BLOCK : (int)block_size;
    size_t block = (size_t)ranking->block, items = (size_t)setup->items;
    size_t scores = block * TILE > items ? block * TILE : items;
    ranking->workers = lp_alloc((size_t)setup->threads, sizeof *ranking->workers);
    bool good = ranking->workers != NULL;
    for (int w = 0; good && w < setup->threads; w++) {
        lp_rank_worker *worker = &ranking->workers[w];
        worker->tallies = lp_alloc(block, sizeof *worker->tallies);
        worker->excluded = lp_alloc(items / 64 + 1, sizeof *worker->excluded);
        worker->negatives = lp_alloc(block * LP_RANK_POOLS * (size_t)setup->negatives, sizeof *worker->negatives);
        worker->scores = lp_alloc(scores, sizeof *worker->scores);
        worker->row = lp_alloc(items, sizeof *worker->row);
        good = worker->tallies && worker->excluded && worker->negatives && worker->scores && worker->row;
    }
    return good ? LAPSE_OK : lp_fail_memory(error, "a ranking", scores * sizeof(float) + items * sizeof(double));
}

/* ------------------------------------------------------------------------------------------------- lists ----- */

/* Makes the sorted list of distinct items of each sequence that has a case. The space of a list is as long as the sequence, so repeated
 * items leave gaps between lists, which join_lists closes. */
typedef struct list_maker {
    lp_ranking *ranking;
    int64_t *sequence; /* [lists] */
    int64_t *length;   /* [lists]: distinct items */
    int64_t *first;    /* [threads x items]: first event of each item of a list */
} list_maker;

/* Marks the items of a sequence, then lists those that are marked. */
static void make_list(void *context, int list, int worker)
{
    const list_maker *maker = context;
    const lp_ranking *ranking = maker->ranking;
    const lp_ranking_setup *setup = &ranking->setup;
    const int64_t sequence = maker->sequence[list], start = (int64_t)setup->dataset->start[sequence];
    uint64_t *marked = ranking->workers[worker].excluded;
    int64_t *first = maker->first + worker * setup->items, length = 0;
    for (int64_t e = (int64_t)setup->dataset->start[sequence + 1] - 1; e >= start; e--) {
        lp_bitset_set(marked, setup->type[e]);
        first[setup->type[e]] = e;
    }
    for (int64_t word = 0; word <= setup->items / 64; word++)
        for (; marked[word]; marked[word] &= marked[word] - 1) {
            int64_t item = 64 * word + __builtin_ctzll(marked[word]);
            ranking->list_items[ranking->list_start[list] + length++] = (lp_sequence_item){(int32_t)item, first[item]};
        }
    LP_ASSERT(length > 0 && length <= (int64_t)setup->dataset->start[sequence + 1] - start);
    maker->length[list] = length;
}

static void join_lists(lp_ranking *ranking, const int64_t *length, int64_t lists)
{
    int64_t end = 0;
    for (int64_t l = 0; l < lists; l++) {
        LP_ASSERT(end <= ranking->list_start[l]); /* lists move down */
        if (end < ranking->list_start[l])
            memmove(ranking->list_items + end, ranking->list_items + ranking->list_start[l],
                    (size_t)length[l] * sizeof *ranking->list_items);
        ranking->list_start[l] = end;
        end += length[l];
    }
    ranking->list_start[lists] = end;
}

static lapse_status list_items(lp_ranking *ranking, lapse_error *error)
{
    const uint64_t *start = ranking->setup.dataset->start;
    int64_t lists = ranking->case_count ? ranking->cases[ranking->case_count - 1].list + 1 : 0, total = 0;
    list_maker maker = {
        .ranking = ranking,
        .sequence = lp_alloc((size_t)lists, sizeof *maker.sequence),
        .length = lp_alloc((size_t)lists, sizeof *maker.length),
        .first = lp_alloc_raw((size_t)ranking->setup.threads * (size_t)ranking->setup.items, sizeof *maker.first)};
    ranking->list_start = lp_alloc((size_t)lists + 1, sizeof *ranking->list_start);
    bool good = maker.sequence && maker.length && maker.first && ranking->list_start;
    for (int64_t c = 0; good && c < ranking->case_count; c++)
        maker.sequence[ranking->cases[c].list] = ranking->cases[c].sequence;
    for (int64_t l = 0; good && l < lists; l++) {
        ranking->list_start[l] = total;
        total += (int64_t)(start[maker.sequence[l] + 1] - start[maker.sequence[l]]);
    }
    good = good && (ranking->list_items = lp_alloc_raw((size_t)total, sizeof *ranking->list_items));
    if (good) {
        lp_threads_run(ranking->setup.threads, (int)lists, make_list, &maker);
        join_lists(ranking, maker.length, lists);
    }
    lp_free(maker.sequence);
    lp_free(maker.length);
    lp_free(maker.first);
    return good ? LAPSE_OK : lp_fail_memory(error, "the items of sequences", (size_t)total * sizeof(lp_sequence_item));
}

/* ------------------------------------------------------------------------------------------------- device ---- */

enum { DEVICE_CASES = 1 << 16 }; /* of one job */

/* What a device knows of the cases (rank_counts.h). Arrays by case of a job are in its memory, and those that it has no use for between
 * jobs in host memory too. */
typedef struct lp_rank_device {
    int capacity; /* cases of a job */
    float *state, *target_score;
    lp_rank_case *cases; /* all */
    int32_t *target;     /* all */
    int64_t *list_start;
    lp_sequence_item *list_items;
    int32_t *negative, *host_negative;
    lp_rank_counts *counts, *host_counts;
} lp_rank_device;

static void device_clear(lp_ranking *ranking)
{
    const lp_backend *backend = ranking->setup.device;
    lp_rank_device *device = ranking->device;
    if (!device)
        return;
    void *const buffers[] = {device->state,      device->target_score, device->cases,    device->target,
                             device->list_start, device->list_items,   device->negative, device->counts};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            backend->buffer_free(backend->context, buffers[i]);
    lp_free(device->host_negative);
    lp_free(device->host_counts);
    lp_free(device);
}

/* A buffer of the device with these bytes; NULL: zeros. */
static void *device_copy(const lp_backend *backend, const void *data, size_t size)
{
    void *buffer = backend->buffer_new(backend->context, size);
    if (buffer && data)
        backend->copy_to_device(backend->context, buffer, data, size);
    return buffer;
}

static lapse_status device_init(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lp_backend *backend = setup->device;
    size_t cases = (size_t)ranking->case_count, capacity = cases < DEVICE_CASES ? cases : DEVICE_CASES;
    size_t lists = cases ? (size_t)ranking->cases[cases - 1].list + 1 : 0;
    size_t items = (size_t)ranking->list_start[lists], negatives = capacity * LP_RANK_POOLS * (size_t)setup->negatives;
    size_t states = capacity * (size_t)setup->dims * sizeof(float);
    lp_rank_device *device = ranking->device = lp_alloc(1, sizeof *device);
    int32_t *target = lp_alloc(cases, sizeof *target);
    bool good = device && target;
    for (size_t c = 0; good && c < cases; c++)
        target[c] = setup->type[ranking->cases[c].event];
    if (good) {
        *device = (lp_rank_device){
            .capacity = (int)capacity,
            .state = device_copy(backend, NULL, states),
            .target_score = device_copy(backend, NULL, capacity * sizeof *device->target_score),
            .cases = device_copy(backend, ranking->cases, cases * sizeof *device->cases),
            .target = device_copy(backend, target, cases * sizeof *target),
            .list_start = device_copy(backend, ranking->list_start, (lists + 1) * sizeof *device->list_start),
            .list_items = device_copy(backend, ranking->list_items, items * sizeof *device->list_items),
            .negative = device_copy(backend, NULL, negatives * sizeof *device->negative),
            .counts = device_copy(backend, NULL, capacity * sizeof *device->counts),
            .host_negative = lp_alloc(negatives, sizeof *device->host_negative),
            .host_counts = lp_alloc(capacity, sizeof *device->host_counts)};
        good = device->state && device->target_score && device->cases && device->target && device->list_start &&
               device->list_items && device->negative && device->counts && device->host_negative && device->host_counts;
        backend->sync(backend->context); /* the copies have been read */
    }
    lp_free(target);
    return good ? LAPSE_OK : lp_fail_memory(error, "ranking on the device", states + items * sizeof(lp_sequence_item));
}

lapse_status lp_ranking_init(lp_ranking *ranking, const lp_ranking_setup *setup, lapse_error *error)
{
    *ranking = (lp_ranking){.setup = *setup};
    lapse_status status = list_cases(ranking, error);
    if (status == LAPSE_OK)
        status = make_workers(ranking, error);
    if (status == LAPSE_OK)
        status = list_items(ranking, error);
    if (status == LAPSE_OK && setup->negatives > 0)
        status = lp_rank_pool_init(&ranking->pools[0], setup->items, NULL, setup->seed, error);
    if (status == LAPSE_OK && setup->negatives > 0)
        status = lp_rank_pool_init(&ranking->pools[1], setup->items, setup->counts, setup->seed, error);
    if (status == LAPSE_OK && setup->device)
        status = device_init(ranking, error);
    if (status != LAPSE_OK)
        lp_ranking_clear(ranking);
    return status;
}

void lp_ranking_clear(lp_ranking *ranking)
{
    device_clear(ranking);
    for (int w = 0; ranking->workers && w < ranking->setup.threads; w++) {
        lp_free(ranking->workers[w].tallies);
        lp_free(ranking->workers[w].excluded);
        lp_free(ranking->workers[w].negatives);
        lp_free(ranking->workers[w].scores);
        lp_free(ranking->workers[w].row);
    }
    lp_free(ranking->workers);
    for (int p = 0; p < LP_RANK_POOLS; p++)
        lp_rank_pool_clear(&ranking->pools[p]);
    lp_free(ranking->cases);
    lp_free(ranking->results);
    lp_free(ranking->list_start);
    lp_free(ranking->list_items);
    *ranking = (lp_ranking){0};
}

/* -------------------------------------------------------------------------------------------------- tallies -- */

static void sample_negatives(const lp_ranking *ranking, lp_rank_worker *worker, int i)
{
    int wanted = ranking->setup.negatives;
    tally *t = &worker->tallies[i];
    const lp_sequence_item *end = t->end;
    for (const lp_sequence_item *item = t->item; item < end; item++)
        lp_bitset_set(worker->excluded, item->item);
    for (int p = 0; p < LP_RANK_POOLS; p++) {
        const lp_rank_pool *pool = &ranking->pools[p];
        int32_t *out = worker->negatives + ((size_t)i * LP_RANK_POOLS + (size_t)p) * (size_t)wanted;
        int64_t left = pool->usable;
        for (const lp_sequence_item *item = t->item; item < end; item++)
            left -= lp_rank_pool_usable(pool, item->item);
        t->negative_count[p] = lp_rank_negatives_sample(pool, t->rank_case->event, wanted, left, worker->excluded, out);
        t->negatives[p] = out;
        LP_ASSERT(t->negative_count[p] <= wanted);
    }
    for (const lp_sequence_item *item = t->item; item < end; item++)
        lp_bitset_clear(worker->excluded, item->item);
}

static void tally_start(const lp_ranking *ranking, lp_rank_worker *worker, int i, const lp_rank_case *rank_case)
{
    const int64_t *start = &ranking->list_start[rank_case->list];
    worker->tallies[i] = (tally){.rank_case = rank_case,
                                 .target = ranking->setup.type[rank_case->event],
                                 .item = ranking->list_items + start[0],
                                 .end = ranking->list_items + start[1]};
    if (ranking->setup.negatives > 0)
        sample_negatives(ranking, worker, i);
}

/* Counts the items first .. first + count - 1, which have these scores. The target counts once, also where its score in a tile rounds to
 * another float than the score by itself. */
static void tally_add(tally *t, int64_t first, int count, const float *scores, lp_count_kernel count_at_least)
{
    int64_t end = first + count;
    if (t->target >= first && t->target < end)
        t->counts.at_least += scores[t->target - first] < t->target_score;
    t->counts.at_least += count_at_least(count, scores, t->target_score);
    for (; t->item < t->end && t->item->item < end; t->item++) {
        bool seen = t->item->first < t->rank_case->event && t->item->item != t->target;
        t->counts.seen += seen;
        t->counts.seen_at_least += seen && !(scores[t->item->item - first] < t->target_score);
    }
    for (int p = 0; p < LP_RANK_POOLS; p++)
        for (; t->next[p] < t->negative_count[p] && t->negatives[p][t->next[p]] < end; t->next[p]++)
            t->counts.negatives_at_least[p] += !(scores[t->negatives[p][t->next[p]] - first] < t->target_score);
}

/* Stores the ranks. Counts over the whole catalogue include the target itself, so they are ranks already. */
static void store_ranks(const lp_ranking *ranking, int64_t number, const lp_rank_counts *counts,
                        const int negative_count[LP_RANK_POOLS])
{
    int32_t items = (int32_t)ranking->setup.items, full = counts->at_least;
    lp_rank_result *result = &ranking->results[number];
    *result =
        (lp_rank_result){.rank = {full - counts->seen_at_least, full}, .candidates = {items - counts->seen, items}};
    for (int p = 0; p < LP_RANK_POOLS && ranking->setup.negatives > 0; p++) {
        result->rank[LP_PROTOCOL_UNIFORM + p] = 1 + counts->negatives_at_least[p];
        result->candidates[LP_PROTOCOL_UNIFORM + p] = 1 + negative_count[p];
    }
    for (int p = 0; p < LP_PROTOCOL_COUNT; p++)
        LP_ASSERT(result->rank[p] <= result->candidates[p] && (result->rank[p] >= 1 || !result->candidates[p]));
}

void lp_ranking_finish(lp_ranking *ranking, int64_t number, const lp_rank_partial *partials, int parts, size_t stride)
{
    lp_rank_counts sum = partials->counts;
    for (int r = 1; r < parts; r++) {
        const lp_rank_counts *counts = &partials[(size_t)r * stride].counts;
        sum.at_least += counts->at_least;
        sum.seen += counts->seen;
        sum.seen_at_least += counts->seen_at_least;
        for (int p = 0; p < LP_RANK_POOLS; p++)
            sum.negatives_at_least[p] += counts->negatives_at_least[p];
    }
    store_ranks(ranking, number, &sum, partials->negatives);
}

static void tally_end(const lp_ranking *ranking, const tally *t)
{
    if (ranking->part) {
        lp_rank_partial *partial = &ranking->part->partials[t->rank_case - ranking->cases];
        partial->counts = t->counts;
        memcpy(partial->negatives, t->negative_count, sizeof partial->negatives);
        return;
    }
    LP_ASSERT(t->item == t->end); /* the tiles have passed all items of the sequence and all negatives */
    LP_ASSERT(t->next[0] == t->negative_count[0] && t->next[1] == t->negative_count[1]);
    store_ranks(ranking, t->rank_case - ranking->cases, &t->counts, t->negative_count);
}

/* ------------------------------------------------------------------------------------------------- states ---- */

typedef struct states_task {
    lp_ranking *ranking;
    const lp_ranking_kernels *kernels;
    const lp_rank_states *states;
    int64_t first, end; /* cases */
    int64_t block;      /* cases of a task */
} states_task;

static float target_score(const lp_rank_states *states, int64_t number, int32_t target)
{
    size_t dims = (size_t)states->dims;
    float score;
    lp_item_scores(lp_backend_ranking(lp_backend_find("cpu")), states->rule, 1, 1, states->dims,
                   states->state + (size_t)number * dims, states->table + (size_t)target * dims,
                   states->bias ? states->bias + target : NULL, &score);
    return score;
}

void lp_ranking_target_scores(const lp_ranking *ranking, const lp_rank_states *states, int64_t first, int64_t end,
                              float *scores)
{
    for (int64_t c = first; c < end; c++) {
        int32_t target = ranking->setup.type[ranking->cases[c].event];
        bool own = target >= ranking->part->first_item && target < ranking->part->end_item;
        scores[c - first] = own ? target_score(states, c, target) : 0;
    }
}

/* Leaves out what lists have before the first item. */
static void tally_skip(tally *t, int64_t first_item)
{
    while (t->item < t->end && t->item->item < first_item)
        t->item++;
    for (int p = 0; p < LP_RANK_POOLS; p++)
        while (t->next[p] < t->negative_count[p] && t->negatives[p][t->next[p]] < first_item)
            t->next[p]++;
}

static void rank_states(void *context, int task, int number)
{
    const states_task *job = context;
    LP_ASSERT(number < job->ranking->setup.threads);
    const lp_ranking *ranking = job->ranking;
    const lp_rank_states *states = job->states;
    lp_rank_worker *worker = &ranking->workers[number];
    int64_t first_case = job->first + task * job->block, left = job->end - first_case;
    int cases = (int)(left < job->block ? left : job->block);
    size_t dims = (size_t)states->dims;
    const float *state = states->state + (size_t)first_case * dims;
    const lp_rank_part part = ranking->part ? *ranking->part : (lp_rank_part){.end_item = ranking->setup.items};
    for (int i = 0; i < cases; i++) {
        tally_start(ranking, worker, i, &ranking->cases[first_case + i]);
        tally *t = &worker->tallies[i];
        tally_skip(t, part.first_item);
        t->target_score = part.target_scores ? part.target_scores[first_case + i]
                                             : target_score(states, first_case + i, t->target);
    }
    for (int64_t first = part.first_item; first < part.end_item; first += TILE) {
        int items = part.end_item - first < TILE ? (int)(part.end_item - first) : TILE;
        lp_item_scores(job->kernels, states->rule, cases, items, states->dims, state,
                       states->table + (size_t)first * dims, states->bias ? states->bias + first : NULL,
                       worker->scores);
        for (int i = 0; i < cases; i++)
            tally_add(&worker->tallies[i], first, items, worker->scores + (size_t)i * (size_t)items,
                      job->kernels->count_at_least);
    }
    for (int i = 0; i < cases; i++)
        tally_end(ranking, &worker->tallies[i]);
}

/* Samples the negatives of a job's cases for the device. */
static void list_negatives(void *context, int task, int number)
{
    const states_task *job = context;
    const lp_ranking *ranking = job->ranking;
    lp_rank_worker *worker = &ranking->workers[number];
    size_t wanted = (size_t)ranking->setup.negatives;
    int64_t end = job->first + (task + 1) * job->block;
    for (int64_t c = job->first + task * job->block; c < end && c < job->end; c++) {
        tally_start(ranking, worker, 0, &ranking->cases[c]);
        for (size_t p = 0; p < LP_RANK_POOLS; p++) {
            int32_t *to = ranking->device->host_negative + ((size_t)(c - job->first) * LP_RANK_POOLS + p) * wanted;
            size_t count = (size_t)worker->tallies[0].negative_count[p];
            memcpy(to, worker->tallies[0].negatives[p], count * sizeof *to);
            memset(to + count, -1, (wanted - count) * sizeof *to);
        }
    }
}

static void store_counts(void *context, int task, int number)
{
    (void)number;
    const states_task *job = context;
    const lp_ranking *ranking = job->ranking;
    size_t wanted = (size_t)ranking->setup.negatives;
    int64_t end = job->first + (task + 1) * job->block;
    for (int64_t c = job->first + task * job->block; c < end && c < job->end; c++) {
        int count[LP_RANK_POOLS] = {0};
        const int32_t *listed = ranking->device->host_negative + (size_t)(c - job->first) * LP_RANK_POOLS * wanted;
        for (size_t i = 0; i < LP_RANK_POOLS * wanted; i++)
            count[i / wanted] += listed[i] >= 0;
        store_ranks(ranking, c, &ranking->device->host_counts[c - job->first], count);
    }
}

static void rank_on_device(states_task *task)
{
    const lp_ranking *ranking = task->ranking;
    const lp_rank_device *device = ranking->device;
    const lp_backend *backend = ranking->setup.device;
    const lp_rank_states *states = task->states;
    size_t cases = (size_t)(task->end - task->first), dims = (size_t)states->dims;
    int tasks = (int)((task->end - task->first + task->block - 1) / task->block), wanted = ranking->setup.negatives;
    LP_ASSERT(states->dims == ranking->setup.dims && cases <= (size_t)device->capacity);
    lp_rank_job job = {.count = (int)cases,
                       .dims = states->dims,
                       .negatives = wanted,
                       .items = ranking->setup.items,
                       .rule = states->rule,
                       .state = device->state,
                       .table = states->table,
                       .bias = states->bias,
                       .cases = device->cases + task->first,
                       .target = device->target + task->first,
                       .list_start = device->list_start,
                       .list_items = device->list_items,
                       .negative = device->negative,
                       .target_score = device->target_score,
                       .counts = device->counts};
    backend->copy_to_device(backend->context, device->state, states->state + (size_t)task->first * dims,
                            cases * dims * sizeof(float));
    if (wanted > 0) {
        lp_threads_run(ranking->setup.threads, tasks, list_negatives, task);
        backend->copy_to_device(backend->context, device->negative, device->host_negative,
                                cases * LP_RANK_POOLS * (size_t)wanted * sizeof *device->negative);
    }
    backend->count_ranks(backend->context, &job);
    backend->copy_to_host(backend->context, device->host_counts, device->counts, cases * sizeof *device->counts);
    if (!backend->device_error || !backend->device_error(backend->context)) /* otherwise the caller reports it */
        lp_threads_run(ranking->setup.threads, tasks, store_counts, task);
}

/* A few cases have a task per thread. */
void lp_ranking_states(lp_ranking *ranking, const lp_rank_states *states, int64_t first, int64_t end)
{
    int threads = ranking->setup.threads;
    int64_t most = ranking->device ? ranking->device->capacity : end - first;
    for (; first < end; first += most) {
        states_task task = {ranking, lp_backend_ranking(lp_backend_find("cpu")), states, first, end, 0};
        task.end = end - first < most ? end : first + most;
        int64_t count = task.end - first, each = (count + threads - 1) / threads;
        task.block = each < MIN_BLOCK ? MIN_BLOCK : each < ranking->block ? each : ranking->block;
        if (ranking->device)
            rank_on_device(&task);
        else
            lp_threads_run(threads, (int)((count + task.block - 1) / task.block), rank_states, &task);
    }
}

/* --------------------------------------------------------------------------------------------------- rows ---- */

typedef struct rows_task {
    lp_ranking *ranking;
    const lp_ranking_kernels *kernels;
    lp_rank_row score;
    void *context;
} rows_task;

static void rank_rows(void *context, int task, int number)
{
    const rows_task *job = context;
    const lp_ranking *ranking = job->ranking;
    lp_rank_worker *worker = &ranking->workers[number];
    int64_t first = (int64_t)task * ranking->block, items = ranking->setup.items;
    for (int64_t c = first; c < first + ranking->block && c < ranking->case_count; c++) {
        tally *t = worker->tallies;
        tally_start(ranking, worker, 0, &ranking->cases[c]);
        job->score(job->context, t->rank_case, worker->row);
        /* Different doubles may round to equal floats, so scores become -1 (below the target) or 0. */
        double target_score = worker->row[t->target];
        t->target_score = 0;
        for (int64_t i = 0; i < items; i++)
            worker->scores[i] = worker->row[i] < target_score ? -1 : 0;
        tally_add(t, 0, (int)items, worker->scores, job->kernels->count_at_least);
        tally_end(ranking, t);
    }
}

void lp_ranking_rows(lp_ranking *ranking, lp_rank_row score, void *context)
{
    rows_task task = {ranking, lp_backend_ranking(lp_backend_find("cpu")), score, context};
    int64_t blocks = (ranking->case_count + ranking->block - 1) / ranking->block;
    lp_threads_run(ranking->setup.threads, (int)blocks, rank_rows, &task);
}

/* -------------------------------------------------------------------------------------------------- means ---- */

double lp_rank_gain(int32_t rank, int cutoff)
{
    return rank <= cutoff ? 1 / log2(1.0 + rank) : 0;
}

double lp_ranking_ndcg(const lp_ranking *ranking, lp_protocol protocol, int cutoff)
{
    double sum = 0;
    for (int64_t i = 0; i < ranking->case_count; i++)
        sum += lp_rank_gain(ranking->results[i].rank[protocol], cutoff);
    return sum / (double)ranking->case_count;
}

double lp_ranking_hit(const lp_ranking *ranking, lp_protocol protocol, int cutoff)
{
    int64_t hits = 0;
    for (int64_t i = 0; i < ranking->case_count; i++)
        hits += ranking->results[i].rank[protocol] <= cutoff;
    return (double)hits / (double)ranking->case_count;
}

double lp_ranking_mrr(const lp_ranking *ranking, lp_protocol protocol)
{
    double sum = 0;
    for (int64_t i = 0; i < ranking->case_count; i++)
        sum += 1.0 / ranking->results[i].rank[protocol];
    return sum / (double)ranking->case_count;
}
