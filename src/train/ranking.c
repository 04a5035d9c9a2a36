/* ranking.c: see ranking.h. A thread takes a block of cases through the catalogue a tile of items at a time. Lists of items
 * (those seen, those drawn) stand in the order of items, so that each is walked once beside the tiles and the scores that it
 * needs are those of the tile at hand: no score is computed twice, and ties are exact. */
#include "train/ranking.h"

#include "backend/backend.h"
#include "base/random.h"
#include "base/threads.h"

#include <math.h>
#include <stdlib.h>

enum { LARGEST_BLOCK = 256, SMALLEST_BLOCK = 16, TILE = 192 };

/* How far a case has come. */
typedef struct walk {
    const lp_rank_case *target_position;
    int32_t target;
    float mark;                   /* the target's score */
    const lp_own_item *own, *end; /* the next of the sequence's items */
    int32_t seen;                 /* of them before the event, the target aside */
    int32_t seen_reaching;
    const int32_t *negatives[2];
    int drawn[2], next[2]; /* negatives, and the next of them */
    int32_t reaching[LP_PROTOCOL_COUNT];
} walk;

typedef struct lp_rank_worker {
    walk *walks;        /* [block] */
    uint64_t *marks;    /* a bit an item */
    int32_t *negatives; /* [block x 2 x negatives] */
    float *scores;      /* [block x TILE]; or [items] for rows */
    double *row;        /* [items], where scores come in rows */
} lp_rank_worker;

const char *lp_protocol_name(lp_protocol protocol)
{
    static const char *const names[] = {"full-unseen", "full", "uniform", "popularity"};
    return names[protocol];
}

/* ------------------------------------------------------------------------------------------------- cases ----- */

typedef struct ticket {
    uint64_t number;
    int64_t event;
} ticket;

static int by_number(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

static uint64_t number_of(const lp_ranking_setup *setup, int64_t event)
{
    lp_random_block block = lp_philox(setup->seed, LP_PURPOSE_RANK_CASES, 0, (uint64_t)event);
    return (uint64_t)block.word[0] << 32 | block.word[1];
}

static bool asked_for(const lp_ranking_setup *setup, int64_t event)
{
    return setup->wanted == LP_SPLIT_COUNT || setup->split[event] == (uint8_t)setup->wanted;
}

/* The largest ticket that is still drawn. */
static lapse_status last_ticket(const lp_ranking *ranking, ticket *last, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    ticket *tickets = lp_alloc((size_t)ranking->case_total, sizeof *tickets);
    if (!tickets)
        return lp_fail_memory(error, "drawing cases", (size_t)ranking->case_total * sizeof *tickets);
    int64_t count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++)
            if (asked_for(setup, event))
                tickets[count++] = (ticket){number_of(setup, event), event};
    qsort(tickets, (size_t)count, sizeof *tickets, by_number);
    *last = tickets[setup->most - 1];
    lp_free(tickets);
    return LAPSE_OK;
}

/* Lists the cases; the sequences that have one are numbered in `own`. */
static lapse_status list_cases(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++)
            ranking->case_total += asked_for(setup, event);
    ticket last = {UINT64_MAX, INT64_MAX};
    bool some = setup->most > 0 && setup->most < ranking->case_total;
    if (some)
        LP_TRY(last_ticket(ranking, &last, error));
    size_t count = (size_t)(some ? setup->most : ranking->case_total);
    ranking->cases = lp_alloc(count, sizeof *ranking->cases);
    ranking->standing = lp_alloc(count, sizeof *ranking->standing);
    if (!ranking->cases || !ranking->standing)
        return lp_fail_memory(error, "the cases of a ranking",
                              count * (sizeof *ranking->cases + sizeof *ranking->standing));
    int64_t own = -1;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (int64_t event = (int64_t)dataset->start[s] + 1; event < (int64_t)dataset->start[s + 1]; event++) {
            if (!asked_for(setup, event))
                continue;
            ticket mine = {some ? number_of(setup, event) : 0, event};
            if (some && by_number(&mine, &last) > 0)
                continue;
            lp_rank_case *before = ranking->case_count ? &ranking->cases[ranking->case_count - 1] : NULL;
            own += !before || before->sequence != s;
            ranking->cases[ranking->case_count++] = (lp_rank_case){s, event, own};
        }
    return LAPSE_OK;
}

/* The distinct items of every sequence that has a case. Events are put in the order of items first, so that handing them
 * out to their sequences leaves each list in that order too: no list is ever sorted. */
typedef struct own_maker {
    int64_t *sequence; /* [lists] */
    int64_t *place;    /* [items + 1]: where an item's events begin */
    int64_t *event;    /* in the order of items */
    int64_t *list;     /* the list of each of them */
} own_maker;

static void hand_out(lp_ranking *ranking, const own_maker *producer, int64_t lists)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    for (int64_t l = 0; l < lists; l++)
        for (uint64_t e = dataset->start[producer->sequence[l]]; e < dataset->start[producer->sequence[l] + 1]; e++)
            producer->place[setup->type[e] + 1]++;
    for (int64_t i = 0; i < setup->items; i++)
        producer->place[i + 1] += producer->place[i];
    for (int64_t l = 0; l < lists; l++)
        for (uint64_t e = dataset->start[producer->sequence[l]]; e < dataset->start[producer->sequence[l] + 1]; e++) {
            int64_t at = producer->place[setup->type[e]]++;
            producer->event[at] = (int64_t)e;
            producer->list[at] = l;
        }
    int64_t total = producer->place[setup->items], *filled = producer->place; /* no longer needed: [lists] fit */
    for (int64_t l = 0; l < lists; l++)
        filled[l] = ranking->own_start[l];
    for (int64_t i = 0; i < total; i++) {
        int64_t l = producer->list[i], e = producer->event[i];
        int32_t item = setup->type[e];
        if (filled[l] > ranking->own_start[l] && ranking->own[filled[l] - 1].item == item)
            continue;
        ranking->own[filled[l]++] = (lp_own_item){item, e};
    }
    /* Repeats have left gaps. */
    int64_t end = 0;
    for (int64_t l = 0; l < lists; l++) {
        int64_t first = ranking->own_start[l], last = filled[l];
        ranking->own_start[l] = end;
        for (int64_t i = first; i < last; i++)
            ranking->own[end++] = ranking->own[i];
    }
    ranking->own_start[lists] = end;
}

static lapse_status list_own(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    const lapse_dataset *dataset = setup->dataset;
    int64_t lists = ranking->case_count ? ranking->cases[ranking->case_count - 1].own + 1 : 0, total = 0;
    int64_t places = setup->items + 1 > lists ? setup->items + 1 : lists;
    own_maker producer = {.sequence = lp_alloc((size_t)lists, sizeof *producer.sequence),
                          .place = lp_alloc((size_t)places, sizeof *producer.place)};
    ranking->own_start = lp_alloc((size_t)lists + 1, sizeof *ranking->own_start);
    bool good = producer.sequence && producer.place && ranking->own_start;
    for (int64_t c = 0; good && c < ranking->case_count; c++)
        producer.sequence[ranking->cases[c].own] = ranking->cases[c].sequence;
    for (int64_t l = 0; good && l < lists; l++) {
        ranking->own_start[l] = total;
        total += (int64_t)(dataset->start[producer.sequence[l] + 1] - dataset->start[producer.sequence[l]]);
    }
    if (good) {
        producer.event = lp_alloc((size_t)total, sizeof *producer.event);
        producer.list = lp_alloc((size_t)total, sizeof *producer.list);
        ranking->own = lp_alloc((size_t)total, sizeof *ranking->own);
        good = producer.event && producer.list && ranking->own;
    }
    if (good)
        hand_out(ranking, &producer, lists);
    lp_free(producer.sequence);
    lp_free(producer.place);
    lp_free(producer.event);
    lp_free(producer.list);
    return good ? LAPSE_OK
                : lp_fail_memory(error, "the items of sequences", (size_t)total * (sizeof(lp_own_item) + 16));
}

/* ----------------------------------------------------------------------------------------------- workers ----- */

static lapse_status make_workers(lp_ranking *ranking, lapse_error *error)
{
    const lp_ranking_setup *setup = &ranking->setup;
    int64_t share = ranking->case_count / (4 * setup->threads);
    ranking->block = share < SMALLEST_BLOCK ? SMALLEST_BLOCK : share > LARGEST_BLOCK ? LARGEST_BLOCK : (int)share;
    size_t block = (size_t)ranking->block, items = (size_t)setup->items;
    size_t scores = block * TILE > items ? block * TILE : items;
    ranking->workers = lp_alloc((size_t)setup->threads, sizeof *ranking->workers);
    bool good = ranking->workers != NULL;
    for (int w = 0; good && w < setup->threads; w++) {
        lp_rank_worker *worker = &ranking->workers[w];
        worker->walks = lp_alloc(block, sizeof *worker->walks);
        worker->marks = lp_alloc(items / 64 + 1, sizeof *worker->marks);
        worker->negatives = lp_alloc(block * 2 * (size_t)setup->negatives, sizeof *worker->negatives);
        worker->scores = lp_alloc(scores, sizeof *worker->scores);
        worker->row = lp_alloc(items, sizeof *worker->row);
        good = worker->walks && worker->marks && worker->negatives && worker->scores && worker->row;
    }
    return good ? LAPSE_OK : lp_fail_memory(error, "a ranking", scores * sizeof(float) + items * sizeof(double));
}

lapse_status lp_ranking_init(lp_ranking *ranking, const lp_ranking_setup *setup, lapse_error *error)
{
    *ranking = (lp_ranking){.setup = *setup};
    lapse_status status = list_cases(ranking, error);
    if (status == LAPSE_OK)
        status = list_own(ranking, error);
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
        lp_free(ranking->workers[w].walks);
        lp_free(ranking->workers[w].marks);
        lp_free(ranking->workers[w].negatives);
        lp_free(ranking->workers[w].scores);
        lp_free(ranking->workers[w].row);
    }
    lp_free(ranking->workers);
    lp_rank_pool_clear(&ranking->pools[0]);
    lp_rank_pool_clear(&ranking->pools[1]);
    lp_free(ranking->cases);
    lp_free(ranking->standing);
    lp_free(ranking->own_start);
    lp_free(ranking->own);
    *ranking = (lp_ranking){0};
}

/* -------------------------------------------------------------------------------------------------- walks ---- */

/* The negatives of the block's case i. */
static void draw(const lp_ranking *ranking, lp_rank_worker *worker, int i)
{
    int most = ranking->setup.negatives;
    walk *at = &worker->walks[i];
    const lp_own_item *end = at->end;
    for (const lp_own_item *own = at->own; own < end; own++)
        lp_mark_set(worker->marks, own->item);
    for (int p = 0; p < 2; p++) {
        const lp_rank_pool *pool = &ranking->pools[p];
        int32_t *out = worker->negatives + ((size_t)i * 2 + (size_t)p) * (size_t)most;
        int64_t left = pool->usable;
        for (const lp_own_item *own = at->own; own < end; own++)
            left -= lp_rank_pool_usable(pool, own->item);
        at->drawn[p] = lp_rank_draw(pool, at->target_position->event, most, left, worker->marks, out);
        at->negatives[p] = out;
    }
    for (const lp_own_item *own = at->own; own < end; own++)
        lp_mark_clear(worker->marks, own->item);
}

static void begin(const lp_ranking *ranking, lp_rank_worker *worker, int i, const lp_rank_case *target_position)
{
    walk *at = &worker->walks[i];
    *at = (walk){.target_position = target_position,
                 .target = ranking->setup.type[target_position->event],
                 .own = ranking->own + ranking->own_start[target_position->own],
                 .end = ranking->own + ranking->own_start[target_position->own + 1]};
    if (ranking->setup.negatives > 0)
        draw(ranking, worker, i);
}

/* Takes a case past the items first .. first + count - 1, whose scores these are. */
static void pass(walk *at, int64_t first, int count, const float *scores, lp_count_kernel reaching)
{
    int64_t end = first + count;
    at->reaching[LP_PROTOCOL_FULL] += reaching(count, scores, at->mark);
    for (; at->own < at->end && at->own->item < end; at->own++) {
        bool seen = at->own->first < at->target_position->event && at->own->item != at->target;
        at->seen += seen;
        at->seen_reaching += seen && !(scores[at->own->item - first] < at->mark);
    }
    for (int p = 0; p < 2; p++)
        for (; at->next[p] < at->drawn[p] && at->negatives[p][at->next[p]] < end; at->next[p]++)
            at->reaching[LP_PROTOCOL_UNIFORM + p] += !(scores[at->negatives[p][at->next[p]] - first] < at->mark);
}

/* The target reaches its own mark, so counts over the whole catalogue are ranks already. */
static void end(const lp_ranking *ranking, const walk *at)
{
    int32_t items = (int32_t)ranking->setup.items, full = at->reaching[LP_PROTOCOL_FULL];
    lp_standing *standing = &ranking->standing[at->target_position - ranking->cases];
    *standing = (lp_standing){.rank = {full - at->seen_reaching, full}, .candidates = {items - at->seen, items}};
    for (int p = 0; p < 2 && ranking->setup.negatives > 0; p++) {
        standing->rank[LP_PROTOCOL_UNIFORM + p] = 1 + at->reaching[LP_PROTOCOL_UNIFORM + p];
        standing->candidates[LP_PROTOCOL_UNIFORM + p] = 1 + at->drawn[p];
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
    const states_task *t = context;
    const lp_ranking *ranking = t->ranking;
    lp_rank_worker *worker = &ranking->workers[number];
    int64_t first_case = (int64_t)task * ranking->block, left = ranking->case_count - first_case;
    int cases = left < ranking->block ? (int)left : ranking->block;
    size_t dims = (size_t)t->dims;
    const float *state = t->state + (size_t)first_case * dims;
    for (int i = 0; i < cases; i++) {
        begin(ranking, worker, i, &ranking->cases[first_case + i]);
        walk *at = &worker->walks[i];
        t->kernels->scores(1, 1, t->dims, state + (size_t)i * dims, t->table + (size_t)at->target * dims,
                           t->bias ? t->bias + at->target : NULL, &at->mark);
    }
    for (int64_t first = 0; first < ranking->setup.items; first += TILE) {
        int items = ranking->setup.items - first < TILE ? (int)(ranking->setup.items - first) : TILE;
        t->kernels->scores(cases, items, t->dims, state, t->table + (size_t)first * dims,
                           t->bias ? t->bias + first : NULL, worker->scores);
        for (int i = 0; i < cases; i++)
            pass(&worker->walks[i], first, items, worker->scores + (size_t)i * (size_t)items,
                 t->kernels->count_at_least);
    }
    for (int i = 0; i < cases; i++)
        end(ranking, &worker->walks[i]);
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
    const rows_task *t = context;
    const lp_ranking *ranking = t->ranking;
    lp_rank_worker *worker = &ranking->workers[number];
    int64_t first = (int64_t)task * ranking->block, items = ranking->setup.items;
    for (int64_t c = first; c < first + ranking->block && c < ranking->case_count; c++) {
        walk *at = worker->walks;
        begin(ranking, worker, 0, &ranking->cases[c]);
        t->score(t->context, at->target_position, worker->row);
        /* Doubles that differ may be equal as floats: what is kept is on which side of the target they are. */
        double mark = worker->row[at->target];
        at->mark = 0;
        for (int64_t i = 0; i < items; i++)
            worker->scores[i] = worker->row[i] < mark ? -1 : 0;
        pass(at, 0, (int)items, worker->scores, t->kernels->count_at_least);
        end(ranking, at);
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

double lp_ranking_hit(const lp_ranking *ranking, lp_protocol protocol, int cutoff)
{
    double sum = 0;
    for (int64_t i = 0; i < ranking->case_count; i++)
        sum += ranking->standing[i].rank[protocol] <= cutoff;
    return sum / (double)ranking->case_count;
}

double lp_ranking_ndcg(const lp_ranking *ranking, lp_protocol protocol, int cutoff)
{
    double sum = 0;
    for (int64_t i = 0; i < ranking->case_count; i++)
        sum += lp_rank_gain(ranking->standing[i].rank[protocol], cutoff);
    return sum / (double)ranking->case_count;
}
