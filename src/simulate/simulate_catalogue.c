/* simulate_catalogue.c: the preset "catalogue": customers of a large shop, simulated event by event.
 *
 * The next item depends on the last items and on the lag, so a predictor needs items, their features and time: within
 * minutes comes the same series, brand or category; somewhat later a complement; after days a repeat purchase or a
 * new interest. docs/simulate.md has all numbers.
 *
 * Each user has their own random stream: their events do not depend on the number of users.
 */
#include "simulate/simulate_goods.h"

#include <inttypes.h>
#include <math.h>

#define MINUTE 60.0
#define DAY LP_SECONDS_A_DAY

enum { DEFAULT_ITEMS = 20000, DEFAULT_SEQUENCES = 10000, DEFAULT_DAYS = 180, MOST_EVENTS = 60, MEMORY = 8 };

/* A purchase that is repeated. */
typedef struct staple {
    int32_t item;
    double time, period; /* seconds */
} staple;

typedef struct customer {
    const lp_goods *goods;
    lp_random random;
    int32_t home; /* preferred department */
    int32_t item; /* last item */
    double time;  /* of the last event, seconds from the epoch */
    staple staples[MEMORY];
    int staple_count; /* total; the last MEMORY are stored */
} customer;

static bool bernoulli(customer *c, double probability)
{
    return lp_random_uniform(&c->random) < probability;
}

static int32_t in_category(customer *c, int32_t category, int32_t brand)
{
    return lp_goods_sample(c->goods, category, brand, c->time / DAY, &c->random);
}

/* The same series, brand or category, after 1.5 minutes on average. */
static int32_t view_similar(customer *c)
{
    c->time += MINUTE * 1.5 * lp_random_exponential(&c->random);
    int32_t category = lp_goods_category_of(c->goods, c->item);
    double u = lp_random_uniform(&c->random);
    if (u < 0.5)
        return lp_goods_sample_series(c->goods, c->item, c->time / DAY, &c->random);
    return in_category(c, category, u < 0.8 ? lp_goods_brand(c->goods, category, c->item) : -1);
}

/* A complement, mostly of the same brand, after 10 minutes and more. */
static int32_t view_complement(customer *c)
{
    c->time += MINUTE * (10 + 10 * lp_random_exponential(&c->random));
    int32_t category = lp_goods_category_of(c->goods, c->item);
    int32_t brand = bernoulli(c, 0.7) ? lp_goods_brand(c->goods, category, c->item) : -1;
    return in_category(c, c->goods->categories[category].complement, brand);
}

/* Another category, of the same department or any, after 5 minutes on average. */
static int32_t view_other(customer *c)
{
    c->time += MINUTE * 5 * lp_random_exponential(&c->random);
    int32_t department = c->goods->categories[lp_goods_category_of(c->goods, c->item)].department;
    return in_category(c, lp_goods_sample_category(c->goods, bernoulli(c, 0.5) ? department : -1, &c->random), -1);
}

/* A repeat purchase of the item or its series, days later; -1: none is due in the future. */
static int32_t buy_again(customer *c)
{
    int known = c->staple_count < MEMORY ? c->staple_count : MEMORY;
    if (known == 0)
        return -1;
    const staple *due = &c->staples[lp_random_below(&c->random, (uint32_t)known)];
    double time = due->time + due->period * (1 + 0.1 * lp_random_normal(&c->random));
    if (time < c->time + 0.25 * DAY)
        return -1;
    c->time = time;
    return bernoulli(c, 0.6) ? due->item : lp_goods_sample_series(c->goods, due->item, time / DAY, &c->random);
}

/* A new interest, in the preferred department or any, days later. */
static int32_t view_new(customer *c)
{
    c->time += DAY * (0.25 + 5 * lp_random_exponential(&c->random));
    return in_category(c, lp_goods_sample_category(c->goods, bernoulli(c, 0.6) ? c->home : -1, &c->random), -1);
}

static int32_t next_item(customer *c)
{
    double u = lp_random_uniform(&c->random);
    if (u < 0.38)
        return view_similar(c);
    if (u < 0.60)
        return view_complement(c);
    if (u < 0.68)
        return view_other(c);
    int32_t again = u < 0.88 ? buy_again(c) : -1;
    return again >= 0 ? again : view_new(c);
}

static void record_purchase(customer *c)
{
    double period = c->goods->categories[lp_goods_category_of(c->goods, c->item)].period;
    if (period > 0)
        c->staples[c->staple_count++ % MEMORY] = (staple){c->item, c->time, period * DAY};
}

/* One user's history. False when out of memory. */
static bool simulate_customer(lapse_simulation *simulation, uint64_t seed, int64_t user)
{
    customer c = {.goods = simulation->goods, .random = lp_random_start(seed, LP_PURPOSE_CUSTOMERS, (uint32_t)user)};
    int64_t count = 8 + (int64_t)(8 * lp_random_exponential(&c.random)), last = 0;
    double end = c.goods->days * DAY;
    c.home = (int32_t)lp_random_below(&c.random, (uint32_t)c.goods->department_count);
    c.time = 0.7 * end * lp_random_uniform(&c.random);
    c.item = view_new(&c);
    for (int64_t i = 0; i < count && i < MOST_EVENTS && c.time < end; i++) {
        int64_t milliseconds = (int64_t)ceil(c.time * 1000);
        last = milliseconds > last ? milliseconds : last + 1;
        if (!lp_simulation_append(simulation, last, c.item))
            return false;
        record_purchase(&c);
        c.item = next_item(&c);
    }
    return true;
}

lapse_status lp_catalogue_simulate(lapse_simulation *simulation, const lapse_simulate_options *options,
                                   lapse_error *error)
{
    int64_t items = options->items ? options->items : DEFAULT_ITEMS;
    if (items < LP_GOODS_LEAST || items > LP_GOODS_MOST)
        return lp_fail(error, LAPSE_ERROR_USAGE, "items is %" PRId64 "; it must be %d to %d, or 0 for %d", items,
                       LP_GOODS_LEAST, LP_GOODS_MOST, DEFAULT_ITEMS);
    simulation->sequence_count = options->sequences ? options->sequences : DEFAULT_SEQUENCES;
    simulation->goods = lp_goods_new(items, 0, options->days > 0 ? options->days : DEFAULT_DAYS, options->seed);
    simulation->start = lp_alloc((size_t)simulation->sequence_count + 1, sizeof *simulation->start);
    if (!simulation->goods || !simulation->start)
        return lp_fail_memory(error, "a catalogue", (size_t)simulation->sequence_count * sizeof *simulation->start);
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        if (!simulate_customer(simulation, options->seed, user))
            return lp_fail_memory(error, "simulated events",
                                  (size_t)simulation->event_capacity * 2 * sizeof *simulation->time);
        simulation->start[user + 1] = simulation->event_count;
    }
    return LAPSE_OK;
}
