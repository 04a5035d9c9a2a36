/* simulate_catalogue.c: the preset "catalogue": people who go through a large shop, drawn event by event.
 *
 * What comes next depends on what came before and on the lag, in ways that need items, descriptions and time to be
 * understood: within minutes more of the same series, brand or category; somewhat later what goes with it; after days
 * what has run out and is due again, or a new interest. docs/simulate.md has all the numbers.
 *
 * A user draws from a random sequence of their own: their events do not depend on how many users there are.
 */
#include "data/simulate/simulate_goods.h"

#include <inttypes.h>
#include <math.h>

#define MINUTE 60.0
#define DAY LP_SECONDS_A_DAY

enum { USUAL_ITEMS = 20000, USUAL_SEQUENCES = 10000, USUAL_DAYS = 180, MOST_EVENTS = 60, MEMORY = 8 };

/* Something bought that will run out. */
typedef struct staple {
    int32_t item;
    double time, period; /* seconds */
} staple;

typedef struct customer {
    const lp_goods *goods;
    lp_random random;
    int32_t home; /* department of old interests */
    int32_t item; /* the last one */
    double time;  /* of the last event, seconds from the epoch */
    staple staples[MEMORY];
    int staple_count; /* ever; the last MEMORY are remembered */
} customer;

static bool chance(customer *c, double share)
{
    return lp_random_uniform(&c->random) < share;
}

static int32_t in_category(customer *c, int32_t category, int32_t brand)
{
    return lp_goods_draw(c->goods, category, brand, c->time / DAY, &c->random);
}

/* More of the same: after about a minute and a half. */
static int32_t look_on(customer *c)
{
    c->time += MINUTE * 1.5 * lp_random_exponential(&c->random);
    int32_t category = lp_goods_category_of(c->goods, c->item);
    double what = lp_random_uniform(&c->random);
    if (what < 0.5)
        return lp_goods_draw_series(c->goods, c->item, c->time / DAY, &c->random);
    return in_category(c, category, what < 0.8 ? lp_goods_brand(c->goods, category, c->item) : -1);
}

/* What goes with it, mostly of the same brand: after ten minutes and more. */
static int32_t look_beside(customer *c)
{
    c->time += MINUTE * (10 + 10 * lp_random_exponential(&c->random));
    int32_t category = lp_goods_category_of(c->goods, c->item);
    int32_t brand = chance(c, 0.7) ? lp_goods_brand(c->goods, category, c->item) : -1;
    return in_category(c, c->goods->categories[category].complement, brand);
}

/* Another shelf, of the same department or anywhere: after some minutes. */
static int32_t look_elsewhere(customer *c)
{
    c->time += MINUTE * 5 * lp_random_exponential(&c->random);
    int32_t department = c->goods->categories[lp_goods_category_of(c->goods, c->item)].department;
    return in_category(c, lp_goods_draw_category(c->goods, chance(c, 0.5) ? department : -1, &c->random), -1);
}

/* Days later: what runs out about then, the same or of its series; -1: nothing that is still to come. */
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
    return chance(c, 0.6) ? due->item : lp_goods_draw_series(c->goods, due->item, time / DAY, &c->random);
}

/* Days later: something new, in the department they know or anywhere. */
static int32_t begin_anew(customer *c)
{
    c->time += DAY * (0.25 + 5 * lp_random_exponential(&c->random));
    return in_category(c, lp_goods_draw_category(c->goods, chance(c, 0.6) ? c->home : -1, &c->random), -1);
}

static int32_t next_item(customer *c)
{
    double what = lp_random_uniform(&c->random);
    if (what < 0.38)
        return look_on(c);
    if (what < 0.60)
        return look_beside(c);
    if (what < 0.68)
        return look_elsewhere(c);
    int32_t again = what < 0.88 ? buy_again(c) : -1;
    return again >= 0 ? again : begin_anew(c);
}

static void cache_append(customer *c)
{
    double period = c->goods->categories[lp_goods_category_of(c->goods, c->item)].period;
    if (period > 0)
        c->staples[c->staple_count++ % MEMORY] = (staple){c->item, c->time, period * DAY};
}

/* One user's history. False when out of memory. */
static bool draw_customer(lapse_simulation *simulation, uint64_t seed, int64_t user)
{
    customer c = {.goods = simulation->goods, .random = lp_random_start(seed, LP_PURPOSE_CUSTOMERS, (uint32_t)user)};
    int64_t count = 8 + (int64_t)(8 * lp_random_exponential(&c.random)), last = 0;
    double end = c.goods->days * DAY;
    c.home = (int32_t)lp_random_below(&c.random, (uint32_t)c.goods->department_count);
    c.time = 0.7 * end * lp_random_uniform(&c.random);
    c.item = begin_anew(&c);
    for (int64_t i = 0; i < count && i < MOST_EVENTS && c.time < end; i++) {
        int64_t milliseconds = (int64_t)ceil(c.time * 1000);
        last = milliseconds > last ? milliseconds : last + 1;
        if (!lp_simulation_append(simulation, last, c.item))
            return false;
        cache_append(&c);
        c.item = next_item(&c);
    }
    return true;
}

lapse_status lp_catalogue_draw(lapse_simulation *simulation, const lapse_simulate_options *options, lapse_error *error)
{
    int64_t items = options->items ? options->items : USUAL_ITEMS;
    if (items < LP_GOODS_LEAST || items > LP_GOODS_MOST)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "a catalogue of %" PRId64 " items cannot be simulated; %d to %d can (0: %d)", items,
                       LP_GOODS_LEAST, LP_GOODS_MOST, USUAL_ITEMS);
    simulation->sequence_count = options->sequences ? options->sequences : USUAL_SEQUENCES;
    simulation->goods = lp_goods_new(items, options->days > 0 ? options->days : USUAL_DAYS, options->seed);
    simulation->start = lp_alloc((size_t)simulation->sequence_count + 1, sizeof *simulation->start);
    if (!simulation->goods || !simulation->start)
        return lp_fail_memory(error, "a catalogue", (size_t)simulation->sequence_count * sizeof *simulation->start);
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        if (!draw_customer(simulation, options->seed, user))
            return lp_fail_memory(error, "simulated events",
                                  (size_t)simulation->event_capacity * 2 * sizeof *simulation->time);
        simulation->start[user + 1] = simulation->event_count;
    }
    return LAPSE_OK;
}
