/* ranking.c: computes ranks. A thread scores a block of cases against the catalogue, a tile of items at a time. Lists
 * of items (seen items, negatives) are sorted by item, so that one pass over each list beside the tiles finds its
 * scores in the current tile: no score is computed twice, and ties are exact. */
#include "train/ranking.h"

#include "backend/backend.h"
#include "base/random.h"
#include "base/threads.h"

#include <math.h>
#include <stdlib.h>

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

/* Buffers to make the sorted lists of distinct items of every sequence that has a case: a counting sort of all events
 * by item, then a stable distribution to the lists. */
typedef struct list_maker {
    int64_t *sequence; /* [lists] */
    int64_t *offset;   /* [items + 1]: index of an item's first event in `event` */
    int64_t *event;    /* sorted by item */
    int64_t *list;     /* the list of each of them */
} list_maker;

static void make_lists(lp_ranking *ranking, const list_maker *maker, int64_t lists)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    for (int64_t l = 0; l < lists; l++)
        for (uint64_t e = dataset->start[maker->sequence[l]]; e < dataset->start[maker->sequence[l] + 1]; e++)
            maker->offset[setup->type[e] + 1]++;
    for (int64_t i = 0; i < setup->items; i++)
        maker->offset[i + 1] += maker->offset[i];
    for (int64_t l = 0; l < lists; l++)
        for (uint64_t e = dataset->start[maker->sequence[l]]; e < dataset->start[maker->sequence[l] + 1]; e++) {
            int64_t at = maker->offset[setup->type[e]]++;
            maker->event[at] = (int64_t)e;
            maker->list[at] = l;
        }
    int64_t total = maker->offset[setup->items], *filled = maker->offset; /* reused: it has at least [lists] */
    for (int64_t l = 0; l < lists; l++)
        filled[l] = ranking->list_start[l];
    for (int64_t i = 0; i < total; i++) {
        int64_t l = maker->list[i], e = maker->event[i];
        int32_t item = setup->type[e];
        if (filled[l] > ranking->list_start[l] && ranking->list_items[filled[l] - 1].item == item)
            continue;
        ranking->list_items[filled[l]++] = (lp_sequence_item){item, e};
    }
    /* Close the gaps left by repeated items. */
    int64_t end = 0;
    for (int64_t l = 0; l < lists; l++) {
        int64_t first = ranking->list_start[l], last = filled[l];
        ranking->list_start[l] = end;
        for (int64_t i = first; i < last; i++)
            ranking->list_items[end++] = ranking->list_items[i];
    }
    ranking->list_start[lists] = end;
}

static lapse_status list_items(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    int64_t lists = ranking->case_count ? ranking->cases[ranking->case_count - 1].list + 1 : 0, total = 0;
    int64_t offsets = setup->items + 1 > lists ? setup->items + 1 : lists;
    list_maker maker = {.sequence = lp_alloc((size_t)lists, sizeof *maker.sequence),
                        .offset = lp_alloc((size_t)offsets, sizeof *maker.offset)};
    ranking->list_start = lp_alloc((size_t)lists + 1, sizeof *ranking->list_start);
    bool good = maker.sequence && maker.offset && ranking->list_start;
    for (int64_t c = 0; good && c < ranking->case_count; c++)
        maker.sequence[ranking->cases[c].list] = ranking->cases[c].sequence;
    for (int64_t l = 0; good && l < lists; l++) {
        ranking->list_start[l] = total;
        total += (int64_t)(dataset->start[maker.sequence[l] + 1] - dataset->start[maker.sequence[l]]);
    }
    if (good) {
        maker.event = lp_alloc((size_t)total, sizeof *maker.event);
        maker.list = lp_alloc((size_t)total, sizeof *maker.list);
        ranking->list_items = lp_alloc((size_t)total, sizeof *ranking->list_items);
        good = maker.event && maker.list && ranking->list_items;
    }
    if (good)
        make_lists(ranking, &maker, lists);
    lp_free(maker.sequence);
    lp_free(maker.offset);
    lp_free(maker.event);
    lp_free(maker.list);
    return good ? LAPSE_OK
                : lp_fail_memory(error, "the items of sequences", (size_t)total * (sizeof(lp_sequence_item) + 16));
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

lapse_status lp_ranking_init(lp_ranking *ranking, const lp_ranking_setup *setup, lapse_error *error)
{
    *ranking = (lp_ranking){.setup = *setup};
    lapse_status status = list_cases(ranking, error);
    if (status == LAPSE_OK)
        status = list_items(ranking, error);
    if (status == LAPSE_OK && setup->negatives > 0)
        status = lp_rank_pool_init(&ranking->pools[0], setup->items, NULL, setup->seed, error);
    if (status == LAPSE_OK && setup->negatives > 0)
        status = lp_rank_pool_init(&ranking->pools[1], setup->items, setup->counts, setup->seed, error);
    if (status == LAPSE_OK)
        status = make_workers(ranking, error);
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

/* Counts the items first .. first + count - 1, which have these scores. */
static void tally_add(tally *t, int64_t first, int count, const float *scores, lp_count_kernel count_at_least)
{
    int64_t end = first + count;
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
    int32_t items = (int32_t)ranking->setup.items, full = t->at_least[LP_PROTOCOL_FULL];
    lp_rank_result *result = &ranking->results[t->rank_case - ranking->cases];
    *result = (lp_rank_result){.rank = {full - t->seen_at_least, full}, .candidates = {items - t->seen, items}};
    for (int p = 0; p < 2 && ranking->setup.negatives > 0; p++) {
        result->rank[LP_PROTOCOL_UNIFORM + p] = 1 + t->at_least[LP_PROTOCOL_UNIFORM + p];
        result->candidates[LP_PROTOCOL_UNIFORM + p] = 1 + t->negative_count[p];
    }
}

/* ------------------------------------------------------------------------------------------------- states ---- */

typedef struct states_task {
    lp_ranking *ranking;
    const lp_ranking_kernels *kernels;
    int dims;
    const float *state, *table, *bias;
} states_task;

static void rank_states(void *context, int task, int number)
{
    const states_task *job = context;
    const lp_ranking *ranking = job->ranking;
    lp_rank_worker *worker = &ranking->workers[number];
    int64_t first_case = (int64_t)task * ranking->block, left = ranking->case_count - first_case;
    int cases = left < ranking->block ? (int)left : ranking->block;
    size_t dims = (size_t)job->dims;
    const float *state = job->state + (size_t)first_case * dims;
    for (int i = 0; i < cases; i++) {
        tally_start(ranking, worker, i, &ranking->cases[first_case + i]);
        tally *t = &worker->tallies[i];
        job->kernels->scores(1, 1, job->dims, state + (size_t)i * dims, job->table + (size_t)t->target * dims,
                             job->bias ? job->bias + t->target : NULL, &t->target_score);
    }
    for (int64_t first = 0; first < ranking->setup.items; first += TILE) {
        int items = ranking->setup.items - first < TILE ? (int)(ranking->setup.items - first) : TILE;
        job->kernels->scores(cases, items, job->dims, state, job->table + (size_t)first * dims,
                             job->bias ? job->bias + first : NULL, worker->scores);
        for (int i = 0; i < cases; i++)
            tally_add(&worker->tallies[i], first, items, worker->scores + (size_t)i * (size_t)items,
                      job->kernels->count_at_least);
    }
    for (int i = 0; i < cases; i++)
        tally_end(ranking, &worker->tallies[i]);
}

static int blocks(const lp_ranking *ranking)
{
    return (int)((ranking->case_count + ranking->block - 1) / ranking->block);
}

void lp_ranking_states(lp_ranking *ranking, int dims, const float *state, const float *table, const float *bias)
{
    states_task task = {ranking, lp_backend_ranking(lp_backend_find("cpu")), dims, state, table, bias};
    lp_threads_run(ranking->setup.threads, blocks(ranking), rank_states, &task);
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
    lp_threads_run(ranking->setup.threads, blocks(ranking), rank_rows, &task);
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
