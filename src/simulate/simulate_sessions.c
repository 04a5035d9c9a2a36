/* simulate_sessions.c: the preset "sessions": customers who come back to a shop in sessions. docs/simulate.md defines it in
 * formulas.
 *
 * The times and the actions of a user do not depend on the items. Given an action and its time, the item comes from a
 * mixture over the series of the user's earlier events, whose weights are functions of action, department and lag, and of
 * popularity. So the law is known exactly, and costs one pass over the catalogue for an event.
 *
 * An event type is a pair: action * items + item. Each user has their own random stream: their events do not depend on
 * the number of users.
 */
#include "simulate/simulate_goods.h"

#include <inttypes.h>
#include <math.h>

#define MINUTE 60.0
#define DAY LP_SECONDS_A_DAY

enum { SEARCH, VIEW, CART, TRANSACTION, ACTIONS };
enum { DEFAULT_ITEMS = 2000, DEFAULT_SEQUENCES = 3000, DEFAULT_DAYS = 60, MOST_IN_SESSION = 24 };
/* A user has fewer events than the catalogue has items, so that some are always unseen. */
enum { LEAST_ITEMS = 500, MOST_EVENTS = 400, ATTEMPTS = 64 };

static const char *const action_names[ACTIONS] = {"search", "view", "add-to-cart", "transaction"};

/* ------------------------------------------------------------------------------------------------- the law ---- */

typedef struct department {
    double fade;   /* days: mean of the exponential fade of searches and of what is in the cart */
    double period; /* days after which a purchase is repeated; 0: never */
} department;

static const char *const department_names[] = {"electronics", "accessories", "clothing", "home", "grocery", "baby"};
static const department departments[] = {{0.05, 0}, {0.2, 0}, {1, 0}, {3, 0}, {2, 7}, {10, 14}};

enum { DEPARTMENTS = sizeof departments / sizeof *departments };

/* Weight of popularity beside the weights of earlier events, in the choice of a search and of a view. */
static const double POPULARITY[] = {[SEARCH] = 0.5, [VIEW] = 0.1};

/* Probability of each action after an action, within a session; and of the first action of a session. */
static const double next_action[ACTIONS][ACTIONS] = {
    [SEARCH] = {0.2, 0.8, 0, 0},
    [VIEW] = {0.2, 0.55, 0.25, 0},
    [CART] = {0.1, 0.3, 0, 0.6},
    [TRANSACTION] = {0.4, 0.6, 0, 0},
};
static const double first_action[ACTIONS] = {0.5, 0.5, 0, 0};
static const double first_action_ever[ACTIONS] = {1, 0, 0, 0};

static const double SESSION_GAP = 30 * MINUTE; /* gaps within a session are shorter, those between sessions longer */

/* A purchase is repeated after about its period. */
static double repeats(const department *d, double lag)
{
    double distance = (lag / DAY - d->period) / (0.12 * d->period);
    return d->period > 0 ? 8 * exp(-0.5 * distance * distance) : 0;
}

/* Weight of an earlier event of this action for the choice of its own series at this lag, in seconds. */
static double own_weight(int target, int action, const department *d, double lag)
{
    if (action == TRANSACTION)
        return repeats(d, lag);
    if (target == SEARCH || action == VIEW)
        return 0;
    double rise = action == SEARCH ? 10 * MINUTE : 20 * MINUTE;
    return 2 * (1 - exp(-lag / rise)) * exp(-lag / (d->fade * DAY));
}

/* Weight of an earlier event for the choice of the complement of its series. */
static double complement_weight(int target, int action, const department *d, double lag)
{
    if (target == VIEW && action == VIEW)
        return 12 * exp(-lag / MINUTE);
    return target == VIEW && action == TRANSACTION && d->period == 0 ? 2 * exp(-lag / (10 * MINUTE)) : 0;
}

/* --------------------------------------------------------------------------------------- a user's interests --- */

/* A series that the user has an event of, or whose complement is. */
typedef struct interest {
    int32_t series;
    uint32_t seen;     /* bit of each item that the user has an event of */
    int32_t purchased; /* the last transaction of the series, among the user's events; -1: none */
    double weight;     /* of the series in the choice of the next item */
} interest;

/* A user's history: the events of a simulation from `first` on. */
typedef struct shopper {
    const lapse_simulation *simulation;
    int64_t first;
    int32_t count, interest_count;
    int32_t own[MOST_EVENTS], complement[MOST_EVENTS]; /* interest of each event */
    interest interests[2 * MOST_EVENTS];
    int target;     /* action that the weights below and those of the interests are for */
    double popular; /* weight of popularity, of all series that are not interests */
    double total;   /* of all weights */
} shopper;

static int32_t interest_in(shopper *s, int32_t series)
{
    for (int32_t i = 0; i < s->interest_count; i++)
        if (s->interests[i].series == series)
            return i;
    s->interests[s->interest_count] = (interest){.series = series, .purchased = -1};
    return s->interest_count++;
}

static int action_of(const lapse_simulation *simulation, int64_t event)
{
    return simulation->type[event] / simulation->goods->item_count;
}

/* Adds the next event of the user to the history. */
static void remember(shopper *s)
{
    const lp_goods *goods = s->simulation->goods;
    int32_t item = s->simulation->type[s->first + s->count] % goods->item_count, first;
    int32_t series = lp_goods_series_of(goods, item);
    lp_goods_series_items(goods, series, &first);
    interest *own = &s->interests[s->own[s->count] = interest_in(s, series)];
    own->seen |= 1u << (item - first);
    if (action_of(s->simulation, s->first + s->count) == TRANSACTION)
        own->purchased = s->count;
    s->complement[s->count] = interest_in(s, lp_goods_series_complement(goods, series));
    s->count++;
}

static double unseen_popularity(const shopper *s, const interest *i)
{
    double popularity[LP_GOODS_SERIES], sum = 0;
    int32_t count = lp_goods_item_popularity(s->simulation->goods, i->series, popularity);
    for (int32_t k = 0; k < count; k++)
        sum += i->seen >> k & 1 ? 0 : popularity[k];
    return sum;
}

/* Sets the weights of all series in the choice of a search or a view at this time. A series of which the user has seen
 * every item has none. */
static void weigh(shopper *s, int target, double time)
{
    const lapse_simulation *simulation = s->simulation;
    for (int32_t i = 0; i < s->interest_count; i++)
        s->interests[i].weight = 0;
    for (int32_t e = 0; e < s->count; e++) {
        interest *own = &s->interests[s->own[e]];
        if (own->purchased > e) /* a purchase ends the interest in its series */
            continue;
        int32_t category = lp_goods_series_category(simulation->goods, own->series);
        const department *d = &departments[simulation->goods->categories[category].department];
        int action = action_of(simulation, s->first + e);
        double lag = time - simulation->time[s->first + e];
        own->weight += own_weight(target, action, d, lag);
        s->interests[s->complement[e]].weight += complement_weight(target, action, d, lag);
    }
    s->target = target;
    s->popular = POPULARITY[target];
    s->total = 0;
    for (int32_t i = 0; i < s->interest_count; i++) {
        interest *one = &s->interests[i];
        double popularity = simulation->series_popularity[one->series];
        s->popular -= POPULARITY[target] * popularity;
        one->weight = unseen_popularity(s, one) > 0 ? one->weight + POPULARITY[target] * popularity : 0;
        s->total += one->weight;
    }
    s->popular = fmax(s->popular, 0);
    s->total += s->popular;
}

/* An item of a series by popularity among those that `seen` leaves. */
static int32_t sample_item(const lp_goods *goods, int32_t series, uint32_t seen, double unseen, lp_random *random)
{
    double popularity[LP_GOODS_SERIES], level = lp_random_uniform(random) * unseen;
    int32_t first, count = lp_goods_series_items(goods, series, &first), chosen = -1;
    lp_goods_item_popularity(goods, series, popularity);
    for (int32_t k = 0; k < count && level >= 0; k++) {
        if (seen >> k & 1)
            continue;
        level -= popularity[k];
        chosen = k;
    }
    return first + chosen;
}

static bool is_interest(const shopper *s, int32_t series)
{
    for (int32_t i = 0; i < s->interest_count; i++)
        if (s->interests[i].series == series)
            return true;
    return false;
}

/* An item by popularity among the series that are not interests, when rejection sampling would reject most draws. Where
 * rounding alone left a weight for them, an item of an interest. */
static int32_t sample_other(shopper *s, lp_random *random)
{
    const lp_goods *goods = s->simulation->goods;
    double level = lp_random_uniform(random) * s->popular;
    int32_t chosen = -1;
    for (int32_t series = 0; series < goods->series_count && level >= 0; series++) {
        if (is_interest(s, series))
            continue;
        level -= POPULARITY[s->target] * s->simulation->series_popularity[series];
        chosen = series;
    }
    if (chosen >= 0)
        return sample_item(goods, chosen, 0, 1, random);
    const interest *best = s->interests;
    for (int32_t i = 1; i < s->interest_count; i++)
        best = s->interests[i].weight > best->weight ? &s->interests[i] : best;
    return sample_item(goods, best->series, best->seen, unseen_popularity(s, best), random);
}

/* The item of a search or a view at this time. */
static int32_t sample_interest(shopper *s, int target, double time, lp_random *random)
{
    const lp_goods *goods = s->simulation->goods;
    weigh(s, target, time);
    double level = lp_random_uniform(random) * s->total;
    for (int32_t i = 0; i < s->interest_count; i++) {
        interest *one = &s->interests[i];
        level -= one->weight;
        if (level < 0 && one->weight > 0)
            return sample_item(goods, one->series, one->seen, unseen_popularity(s, one), random);
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int32_t series = lp_goods_sample_popular(goods, random);
        if (!is_interest(s, series))
            return sample_item(goods, series, 0, 1, random);
    }
    return sample_other(s, random);
}

/* ------------------------------------------------------------------------------------------- probabilities ---- */

static const double *action_probabilities(const lapse_simulation *simulation, int64_t user, int64_t event)
{
    if (event == simulation->start[user])
        return first_action_ever;
    if (simulation->time[event] - simulation->time[event - 1] > SESSION_GAP)
        return first_action;
    return next_action[action_of(simulation, event - 1)];
}

/* Adds the items of a search or a view to probabilities [items]. */
static void add_interests(shopper *s, int target, double time, double share, double *probabilities)
{
    const lp_goods *goods = s->simulation->goods;
    double popularity[LP_GOODS_SERIES];
    weigh(s, target, time);
    for (int32_t series = 0, item = 0; series < goods->series_count; series++) {
        int32_t count = lp_goods_item_popularity(goods, series, popularity);
        double weight = share * POPULARITY[target] * s->simulation->series_popularity[series] / s->total;
        for (int32_t k = 0; k < count; k++)
            probabilities[item + k] = weight * popularity[k];
        item += count;
    }
    for (int32_t i = 0; i < s->interest_count; i++) {
        const interest *one = &s->interests[i];
        int32_t first, count = lp_goods_series_items(goods, one->series, &first);
        double unseen = unseen_popularity(s, one), weight = unseen > 0 ? share * one->weight / s->total / unseen : 0;
        lp_goods_item_popularity(goods, one->series, popularity);
        for (int32_t k = 0; k < count; k++)
            probabilities[first + k] = one->seen >> k & 1 ? 0 : weight * popularity[k];
    }
}

static void probabilities_of(const lapse_simulation *simulation, int64_t user, int64_t event, double *probabilities)
{
    const double *actions = action_probabilities(simulation, user, event);
    int32_t items = simulation->goods->item_count;
    shopper s = {.simulation = simulation, .first = simulation->start[user]};
    while (s.first + s.count < event)
        remember(&s);
    for (int32_t k = 0; k < ACTIONS * items; k++)
        probabilities[k] = 0;
    for (int target = SEARCH; target <= VIEW; target++)
        if (actions[target] > 0)
            add_interests(&s, target, simulation->time[event], actions[target],
                          probabilities + (size_t)target * (size_t)items);
    for (int target = CART; target <= TRANSACTION; target++)
        if (actions[target] > 0) /* of the last event's item */
            probabilities[(size_t)target * (size_t)items + (size_t)(simulation->type[event - 1] % items)] =
                actions[target];
}

/* --------------------------------------------------------------------------------------------- law of time ---- */

/* The gap within a session: with probability PAUSE uniform from PAUSE_LEAST to PAUSE_MOST, otherwise exponential with the
 * mean STEP and at most STEP_MOST. Between the last gap of a session and the next session are REST and an exponential time
 * with the mean AWAY. A session has LEAST_IN_SESSION events and an exponential number with the mean MORE, rounded down. */
static const double STEP = MINUTE, STEP_MOST = 20 * MINUTE;
static const double PAUSE = 0.4, PAUSE_LEAST = 6 * MINUTE, PAUSE_MOST = 26 * MINUTE;
static const double REST = 0.3 * DAY, AWAY = 3.5 * DAY, MORE = 3;
enum { LEAST_IN_SESSION = 3 };

/* Number of the user's last known events that are of one session: no gap within a session is as long as one between. */
static int64_t events_in_session(const lapse_simulation *simulation, int64_t user, int64_t known)
{
    int64_t first = simulation->start[user], last = first + known - 1, i = last;
    while (i > first && simulation->time[i] - simulation->time[i - 1] <= SESSION_GAP)
        i--;
    return last - i + 1;
}

/* Probability that the session goes on after so many events. */
static double continues(int64_t events)
{
    return events < LEAST_IN_SESSION ? 1 : events < MOST_IN_SESSION ? exp(-1 / MORE) : 0;
}

static double gap_density(double t)
{
    return (t < STEP_MOST ? (1 - PAUSE) * exp(-t / STEP) / STEP : 0) +
           (t >= PAUSE_LEAST && t < PAUSE_MOST ? PAUSE / (PAUSE_MOST - PAUSE_LEAST) : 0);
}

static double gap_survival(double t)
{
    return (t < STEP_MOST ? (1 - PAUSE) * exp(-t / STEP) : 0) +
           PAUSE * fmin(fmax((PAUSE_MOST - t) / (PAUSE_MOST - PAUSE_LEAST), 0), 1);
}

/* The integral of exp(s / AWAY) over the gap s within a session, up to x. */
static double gap_weight(double x)
{
    double fall = 1 / STEP - 1 / AWAY, exponential = fmin(x, STEP_MOST), pause = fmin(x, PAUSE_MOST);
    double sum = (1 - PAUSE) / STEP * -expm1(-fall * exponential) / fall;
    if (x >= STEP_MOST) /* those that were cut */
        sum += (1 - PAUSE) * exp(-STEP_MOST / STEP + STEP_MOST / AWAY);
    if (pause > PAUSE_LEAST)
        sum += PAUSE / (PAUSE_MOST - PAUSE_LEAST) * AWAY * (exp(pause / AWAY) - exp(PAUSE_LEAST / AWAY));
    return sum;
}

static lp_law_time next_time(const lapse_simulation *simulation, int64_t user, int64_t known, double t)
{
    double stay = continues(events_in_session(simulation, user, known)), x = t - REST;
    /* Away: a gap s, then REST and an exponential time. */
    double later = x > 0 ? gap_survival(x) + exp(-x / AWAY) * gap_weight(x) : 1;
    double density = x > 0 ? exp(-x / AWAY) * gap_weight(x) / AWAY : 0;
    return (lp_law_time){.log_density = log(stay * gap_density(t) + (1 - stay) * density),
                         .log_survival = log(stay * gap_survival(t) + (1 - stay) * later)};
}

/* ------------------------------------------------------------------------------------------------ simulation -- */

static int sample_action(const double *probabilities, lp_random *random)
{
    double level = lp_random_uniform(random);
    int chosen = SEARCH;
    for (int a = 0; a < ACTIONS && level >= 0; a++) {
        if (probabilities[a] == 0)
            continue;
        level -= probabilities[a];
        chosen = a;
    }
    return chosen;
}

/* Seconds until the next event of a session: mostly a minute or two, sometimes a pause. */
static double sample_gap(lp_random *random)
{
    if (lp_random_uniform(random) < PAUSE)
        return PAUSE_LEAST + (PAUSE_MOST - PAUSE_LEAST) * lp_random_uniform(random);
    return fmin(STEP * lp_random_exponential(random), STEP_MOST);
}

/* Appends one user's sessions. False when out of memory. */
static bool simulate_user(lapse_simulation *simulation, shopper *s, lp_random random, double length)
{
    double time = 0.3 * length * lp_random_uniform(&random);
    int64_t last = -1;
    *s = (shopper){.simulation = simulation, .first = simulation->event_count};
    while (time < length && s->count < MOST_EVENTS) {
        int events = LEAST_IN_SESSION + (int)(MORE * lp_random_exponential(&random));
        const double *actions = s->count ? first_action : first_action_ever;
        for (int i = 0; i < events && i < MOST_IN_SESSION && s->count < MOST_EVENTS; i++) {
            int64_t milliseconds = (int64_t)ceil(time * 1000);
            last = milliseconds > last ? milliseconds : last + 1;
            time = (double)last / 1000;
            if (time >= length)
                return true;
            int action = sample_action(actions, &random);
            /* As it will be read: the law is that of the written time. */
            double written = (double)(LP_SIMULATE_EPOCH * INT64_C(1000) + last) / 1000;
            int32_t items = simulation->goods->item_count;
            int32_t item = action <= VIEW ? sample_interest(s, action, written, &random)
                                          : simulation->type[simulation->event_count - 1] % items;
            if (!lp_simulation_append(simulation, last, action * items + item))
                return false;
            remember(s);
            actions = next_action[action];
            time += sample_gap(&random);
        }
        time += REST + AWAY * lp_random_exponential(&random);
    }
    return true;
}

lapse_status lp_sessions_simulate(lapse_simulation *simulation, const lapse_simulate_options *options,
                                  lapse_error *error)
{
    int64_t items = options->items ? options->items : DEFAULT_ITEMS;
    double days = options->days > 0 ? options->days : DEFAULT_DAYS;
    if (items < LEAST_ITEMS || items > LP_GOODS_MOST)
        return lp_fail(error, LAPSE_ERROR_USAGE, "items is %" PRId64 "; it must be %d to %d, or 0 for %d", items,
                       LEAST_ITEMS, LP_GOODS_MOST, DEFAULT_ITEMS);
    simulation->sequence_count = options->sequences ? options->sequences : DEFAULT_SEQUENCES;
    simulation->goods = lp_goods_new(items, DEPARTMENTS, days, options->seed);
    simulation->start = lp_alloc((size_t)simulation->sequence_count + 1, sizeof *simulation->start);
    shopper *s = lp_alloc(1, sizeof *s);
    bool good = simulation->goods && simulation->start && s;
    if (good) {
        simulation->series_popularity =
            lp_alloc((size_t)simulation->goods->series_count, sizeof *simulation->series_popularity);
        good = simulation->series_popularity != NULL;
    }
    if (good) {
        simulation->goods->department_names = department_names;
        lp_goods_series_popularity(simulation->goods, simulation->series_popularity);
        simulation->law.probabilities = probabilities_of;
        simulation->law.next_time = next_time;
        simulation->law.actions = action_names;
        simulation->law.type_count = ACTIONS * (int32_t)items;
    }
    for (int64_t user = 0; good && user < simulation->sequence_count; user++) {
        good = simulate_user(simulation, s, lp_random_start(options->seed, LP_PURPOSE_CUSTOMERS, (uint32_t)user),
                             days * DAY);
        simulation->start[user + 1] = simulation->event_count;
    }
    lp_free(s);
    return good ? LAPSE_OK
                : lp_fail_memory(error, "simulated sessions",
                                 (size_t)simulation->event_capacity * 2 * sizeof *simulation->time);
}

lapse_status lp_sessions_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error)
{
    const lp_goods *goods = simulation->goods;
    char name[LP_SIMULATE_NAME_SIZE], text[LP_GOODS_NAME_SIZE];
    LP_TRY(lp_writer_print(writer, error, "user,time,item,action,category,department\n"));
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        lp_simulation_user_name(user, name);
        for (int64_t i = simulation->start[user]; i < simulation->start[user + 1]; i++) {
            int32_t item = simulation->type[i] % goods->item_count, category = lp_goods_category_of(goods, item);
            LP_TRY(lp_writer_print(writer, error, "%s,%.3f,i%d,%s,%s,%s\n", name, simulation->time[i], (int)item + 1,
                                   action_names[action_of(simulation, i)], lp_goods_category_name(category, text),
                                   department_names[goods->categories[category].department]));
        }
    }
    return LAPSE_OK;
}
