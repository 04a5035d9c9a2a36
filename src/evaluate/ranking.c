/* ranking.c: computes ranks. A thread scores a block of cases against the catalogue, a tile of items at a time. Lists
 * of items (seen items, negatives) are sorted by item, so that one pass over each list beside the tiles finds its
 * scores in the current tile: no score is computed twice, and ties are exact. */
#include "evaluate/ranking.h"

#include "backend/backend.h"
#include "base/assert.h"
#include "base/random.h"
#include "base/threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCK = 256, MIN_BLOCK = 16, TILE = 192 };

/* Counts of a case over the tiles so far. "At least": the score is not below the target's. */
typedef struct tally {
    const lp_rank_case *rank_case;
    int32_t target;
    float target_score;
    const lp_sequence_item *item, *end; /* next item of the sequence's list, and the list's end */
    int32_t seen;                       /* items of the sequence before the event, except the target */
    int32_t seen_at_least;
    const int32_t *negatives[2]; /* uniform, popularity */
    int negative_count[2], next[2];
    int32_t at_least[LP_PROTOCOL_COUNT];
} tally;

typedef struct lp_rank_worker {
    tally *tallies;     /* [block] */
    uint64_t *excluded; /* bitset of items */
    int32_t *negatives; /* [block x 2 x negatives] */
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
        worker->negatives = lp_alloc(block * 2 * (size_t)setup->negatives, sizeof *worker->negatives);
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
    if (status != LAPSE_OK)
        lp_ranking_clear(ranking);
    return status;
}

void lp_ranking_clear(lp_ranking *ranking)
{
    for (int w = 0; ranking->workers && w < ranking->setup.threads; w++) {
        lp_free(ranking->workers[w].tallies);
        lp_free(ranking->workers[w].excluded);
        lp_free(ranking->workers[w].negatives);
        lp_free(ranking->workers[w].scores);
        lp_free(ranking->workers[w].row);
    }
    lp_free(ranking->workers);
    lp_rank_pool_clear(&ranking->pools[0]);
    lp_rank_pool_clear(&ranking->pools[1]);
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
    for (int p = 0; p < 2; p++) {
        const lp_rank_pool *pool = &ranking->pools[p];
        int32_t *out = worker->negatives + ((size_t)i * 2 + (size_t)p) * (size_t)wanted;
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
        t->at_least[LP_PROTOCOL_FULL] += scores[t->target - first] < t->target_score;
    t->at_least[LP_PROTOCOL_FULL] += count_at_least(count, scores, t->target_score);
    for (; t->item < t->end && t->item->item < end; t->item++) {
        bool seen = t->item->first < t->rank_case->event && t->item->item != t->target;
        t->seen += seen;
        t->seen_at_least += seen && !(scores[t->item->item - first] < t->target_score);
    }
    for (int p = 0; p < 2; p++)
        for (; t->next[p] < t->negative_count[p] && t->negatives[p][t->next[p]] < end; t->next[p]++)
            t->at_least[LP_PROTOCOL_UNIFORM + p] += !(scores[t->negatives[p][t->next[p]] - first] < t->target_score);
}

/* Stores the ranks. Counts over the whole catalogue include the target itself, so they are ranks already. */
static void tally_end(const lp_ranking *ranking, const tally *t)
{
    LP_ASSERT(t->item == t->end); /* the tiles have passed all items of the sequence and all negatives */
    LP_ASSERT(t->next[0] == t->negative_count[0] && t->next[1] == t->negative_count[1]);
    int32_t items = (int32_t)ranking->setup.items, full = t->at_least[LP_PROTOCOL_FULL];
    lp_rank_result *result = &ranking->results[t->rank_case - ranking->cases];
    *result = (lp_rank_result){.rank = {full - t->seen_at_least, full}, .candidates = {items - t->seen, items}};
    for (int p = 0; p < 2 && ranking->setup.negatives > 0; p++) {
        result->rank[LP_PROTOCOL_UNIFORM + p] = 1 + t->at_least[LP_PROTOCOL_UNIFORM + p];
        result->candidates[LP_PROTOCOL_UNIFORM + p] = 1 + t->negative_count[p];
    }
    for (int p = 0; p < LP_PROTOCOL_COUNT; p++)
        LP_ASSERT(result->rank[p] <= result->candidates[p] && (result->rank[p] >= 1 || !result->candidates[p]));
}

/* ------------------------------------------------------------------------------------------------- states ---- */

typedef struct states_task {
    lp_ranking *ranking;
    const lp_ranking_kernels *kernels;
    const lp_rank_states *states;
    int64_t first, end; /* cases */
    int64_t block;      /* cases of a task */
} states_task;

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
    for (int i = 0; i < cases; i++) {
        tally_start(ranking, worker, i, &ranking->cases[first_case + i]);
        tally *t = &worker->tallies[i];
        lp_item_scores(job->kernels, states->rule, 1, 1, states->dims, state + (size_t)i * dims,
                       states->table + (size_t)t->target * dims, states->bias ? states->bias + t->target : NULL,
                       &t->target_score);
    }
    for (int64_t first = 0; first < ranking->setup.items; first += TILE) {
        int items = ranking->setup.items - first < TILE ? (int)(ranking->setup.items - first) : TILE;
        lp_item_scores(job->kernels, states->rule, cases, items, states->dims, state,
                       states->table + (size_t)first * dims, states->bias ? states->bias + first : NULL, worker->scores);
        for (int i = 0; i < cases; i++)
            tally_add(&worker->tallies[i], first, items, worker->scores + (size_t)i * (size_t)items,
                      job->kernels->count_at_least);
    }
    for (int i = 0; i < cases; i++)
        tally_end(ranking, &worker->tallies[i]);
}

/* A few cases have a task per thread. */
void lp_ranking_states(lp_ranking *ranking, const lp_rank_states *states, int64_t first, int64_t end)
{
    states_task task = {ranking, lp_backend_ranking(lp_backend_find("cpu")), states, first, end, 0};
    int64_t each = (end - first + states->threads - 1) / states->threads;
    task.block = each < MIN_BLOCK ? MIN_BLOCK : each < ranking->block ? each : ranking->block;
    lp_threads_run(states->threads, (int)((end - first + task.block - 1) / task.block), rank_states, &task);
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
