/* simulate.c: samples events from a law by Ogata's thinning algorithm.
 *
 * Thinning proposes times from a Poisson process whose rate is an upper bound of the total intensity, and accepts
 * each with probability intensity / bound. A bound is valid for a window of six hours: within it every kernel, being
 * unimodal, has its exact maximum at the point of the window nearest to its mode. So nothing is approximated, and a
 * purchase that matters in a month costs no proposals today.
 *
 * Each user has their own random stream and windows do not depend on the end of the history: a user's events do not
 * depend on the number of users, and a longer history extends a shorter one.
 *
 * Times are rounded up to milliseconds before they become history, so that the law of the written events is exact.
 */
#include "simulate/simulate.h"

#include "base/random.h"
#include "simulate/simulate_goods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------- presets ------ */

typedef struct preset {
    const char *name;
    lapse_status (*fill)(lp_law *law, lapse_error *error);
    /* Instead of fill, for a preset that is not a Hawkes process. */
    lapse_status (*simulate)(lapse_simulation *simulation, const lapse_simulate_options *options, lapse_error *error);
    bool items; /* has a chosen number of items */
} preset;

static const preset presets[] = {
    {"shop", lp_preset_shop, NULL, false},
    {"cycle", NULL, lp_cycle_simulate, false},
    {"catalogue", NULL, lp_catalogue_simulate, true},
    {"sessions", NULL, lp_sessions_simulate, true},
};

enum { PRESET_COUNT = sizeof presets / sizeof presets[0] };

static lapse_status find_preset(const char *name, const preset **found, lapse_error *error)
{
    char names[256];
    size_t used = 0;
    for (int i = 0; i < PRESET_COUNT; i++) {
        if (name && strcmp(name, presets[i].name) == 0) {
            *found = &presets[i];
            return LAPSE_OK;
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", presets[i].name);
    }
    return lp_fail(error, LAPSE_ERROR_USAGE, "there is no preset '%.100s' to simulate; the presets are: %s",
                   name ? name : "", names);
}

/* -------------------------------------------------------------------------------------------------- law ------ */

#define TWO_PI 6.283185307179586
#define ROOT_2 1.4142135623730951

static double exponential_density(double lag, double scale, double width)
{
    (void)width;
    return exp(-lag / scale) / scale;
}

static double exponential_cumulative(double lag, double scale, double width)
{
    (void)width;
    return -exp(-lag / scale);
}

static double gaussian_density(double lag, double scale, double width)
{
    double deviation = width * scale, distance = (lag - scale) / deviation;
    return exp(-0.5 * distance * distance) / (deviation * sqrt(TWO_PI));
}

static double gaussian_cumulative(double lag, double scale, double width)
{
    return 0.5 * erf((lag - scale) / (width * scale * ROOT_2));
}

const lp_law_kernel lp_law_exponential = {exponential_density, exponential_cumulative, .mode = 0, .support = 20};
const lp_law_kernel lp_law_gaussian = {gaussian_density, gaussian_cumulative, .mode = 1, .support = 1,
                                       .support_widths = 4};

int32_t lp_law_add_type(lp_law *law, const char *action, const char *item, const char *category, double base_rate)
{
    lp_law_type *types = lp_grow(law->types, (size_t)law->type_count + 1, sizeof *types);
    if (!types)
        return -1;
    law->types = types;
    size_t size = (action ? strlen(action) : 0) + strlen(item) + 2;
    char *name = lp_arena_alloc(&law->arena, size);
    if (!name)
        return -1;
    snprintf(name, size, "%s%s%s", action ? action : "", action ? " " : "", item);
    types[law->type_count] = (lp_law_type){action, item, category, name, base_rate / LP_SECONDS_A_DAY, -1};
    return law->type_count++;
}

bool lp_law_add_excitation(lp_law *law, int32_t source, int32_t target, double weight, const lp_law_kernel *kernel,
                           double scale, double width)
{
    lp_law_excitation *excitations = lp_grow(law->excitations, (size_t)law->excitation_count + 1, sizeof *excitations);
    if (!excitations)
        return false;
    law->excitations = excitations;
    excitations[law->excitation_count] =
        (lp_law_excitation){.source = source,
                            .target = target,
                            .next = law->types[source].first_excitation,
                            .kernel = kernel,
                            .weight = weight,
                            .scale = scale,
                            .width = width,
                            .mode = kernel->mode * scale,
                            .support = scale * (kernel->support + kernel->support_widths * width)};
    law->types[source].first_excitation = law->excitation_count++;
    return true;
}

void lp_law_clear(lp_law *law)
{
    lp_free(law->types);
    lp_free(law->excitations);
    lp_arena_clear(&law->arena);
    *law = (lp_law){0};
}

double lp_law_excitation_intensity(const lp_law_excitation *excitation, double lag)
{
    if (lag > excitation->support)
        return 0;
    return excitation->weight * excitation->kernel->density(lag, excitation->scale, excitation->width);
}

double lp_law_excitation_integral(const lp_law_excitation *excitation, double from, double to)
{
    const lp_law_kernel *kernel = excitation->kernel;
    from = fmin(from, excitation->support);
    to = fmin(to, excitation->support);
    return excitation->weight * (kernel->cumulative(to, excitation->scale, excitation->width) -
                                 kernel->cumulative(from, excitation->scale, excitation->width));
}

double lp_law_seasonality_at(const lp_law_seasonality *seasonality, double since)
{
    return (1 + seasonality->weekly * cos(TWO_PI * (since - seasonality->weekly_phase) / (7 * LP_SECONDS_A_DAY))) *
           (1 + seasonality->daily * cos(TWO_PI * (since - seasonality->daily_phase) / LP_SECONDS_A_DAY));
}

/* Of the product of the two waves, which is half of the waves of the sum and of the difference of their angles. */
double lp_law_seasonality_integral(const lp_law_seasonality *seasonality, double from, double to)
{
    double week = TWO_PI / (7 * LP_SECONDS_A_DAY), day = TWO_PI / LP_SECONDS_A_DAY;
    double weekly = week * seasonality->weekly_phase, daily = day * seasonality->daily_phase;
    double both = seasonality->weekly * seasonality->daily / 2;
    const struct {
        double amplitude, frequency, phase;
    } waves[] = {{seasonality->weekly, week, weekly},
                 {seasonality->daily, day, daily},
                 {both, day + week, daily + weekly},
                 {both, day - week, daily - weekly}};
    double sum = to - from;
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++)
        sum += waves[i].amplitude / waves[i].frequency *
               (sin(waves[i].frequency * to - waves[i].phase) - sin(waves[i].frequency * from - waves[i].phase));
    return sum;
}

/* ---------------------------------------------------------------------------------------------- thinning ----- */

enum { WINDOW = 6 * 3600 }; /* seconds for which one upper bound is valid */

/* An excitation that an event started, within the support of its kernel. */
typedef struct active_excitation {
    const lp_law_excitation *excitation;
    double since; /* time of the event, in seconds from the epoch */
} active_excitation;

typedef struct process {
    const lp_law *law;
    lp_random random;
    active_excitation *active; /* owned */
    int64_t active_count;
    size_t active_capacity;
    double base_rate; /* sum of the event types' base rates */
} process;

/* An upper bound of the total intensity in time .. time + WINDOW. Removes the excitations beyond their support. */
static double upper_bound(process *s, double time)
{
    double bound = s->base_rate * (1 + s->law->seasonality.weekly) * (1 + s->law->seasonality.daily);
    int64_t count = 0;
    for (int64_t i = 0; i < s->active_count; i++) {
        active_excitation *a = &s->active[i];
        double first = time - a->since, last = first + WINDOW;
        if (first > a->excitation->support)
            continue;
        double nearest = fmin(fmax(a->excitation->mode, first), fmin(last, a->excitation->support));
        bound += lp_law_excitation_intensity(a->excitation, nearest);
        s->active[count++] = *a;
    }
    s->active_count = count;
    return bound;
}

/* The event type of a proposal at this time, where `level` is uniform below the upper bound; -1: rejected. */
static int32_t choose_type(process *s, double time, double level)
{
    double season = lp_law_seasonality_at(&s->law->seasonality, time), sum = 0;
    for (int32_t k = 0; k < s->law->type_count; k++) {
        sum += s->law->types[k].base_rate * season;
        if (level < sum)
            return k;
    }
    for (int64_t i = 0; i < s->active_count; i++) {
        sum += lp_law_excitation_intensity(s->active[i].excitation, time - s->active[i].since);
        if (level < sum)
            return s->active[i].excitation->target;
    }
    return -1;
}

static bool excite(process *s, int32_t type, double time)
{
    for (int32_t r = s->law->types[type].first_excitation; r >= 0; r = s->law->excitations[r].next) {
        if (!lp_reserve(&s->active, &s->active_capacity, (size_t)s->active_count + 1, sizeof *s->active))
            return false;
        s->active[s->active_count++] = (active_excitation){&s->law->excitations[r], time};
    }
    return true;
}

bool lp_simulation_append(lapse_simulation *simulation, int64_t milliseconds, int32_t type)
{
    if (simulation->event_count == simulation->event_capacity) {
        int64_t capacity = simulation->event_capacity ? 2 * simulation->event_capacity : 4096;
        double *time = lp_grow(simulation->time, (size_t)capacity, sizeof *time);
        if (!time)
            return false;
        simulation->time = time;
        int32_t *types = lp_grow(simulation->type, (size_t)capacity, sizeof *types);
        if (!types)
            return false;
        simulation->type = types;
        simulation->event_capacity = capacity;
    }
    simulation->time[simulation->event_count] = (double)(LP_SIMULATE_EPOCH * INT64_C(1000) + milliseconds) / 1000;
    simulation->type[simulation->event_count++] = type;
    return true;
}

/* Moves *time to the next event and returns its type; -1: *time has passed the end. */
static int32_t next_event(process *s, double *time, double end)
{
    while (*time < end) {
        double bound = upper_bound(s, *time);
        double window_end = *time + WINDOW;
        double next = bound > 0 ? *time + lp_random_exponential(&s->random) / bound : INFINITY;
        *time = fmin(next, window_end);
        if (next > window_end)
            continue;
        int32_t type = choose_type(s, *time, lp_random_uniform(&s->random) * bound);
        if (type >= 0)
            return type;
    }
    return -1;
}

/* Appends one user's history of `length` seconds. False when out of memory. */
static bool simulate_user(lapse_simulation *simulation, process *s, double length)
{
    s->active_count = 0;
    double time = 0;
    int64_t last = -1;
    for (int32_t type; (type = next_event(s, &time, length)) >= 0;) {
        int64_t milliseconds = (int64_t)ceil(time * 1000);
        last = milliseconds > last ? milliseconds : last + 1;
        time = (double)last / 1000;
        if (time >= length)
            break;
        if (!lp_simulation_append(simulation, last, type) || !excite(s, type, time))
            return false;
    }
    return true;
}

static process process_of(const lp_law *law)
{
    process s = {.law = law};
    for (int32_t k = 0; k < law->type_count; k++)
        s.base_rate += law->types[k].base_rate;
    return s;
}

bool lp_hawkes_future(const lapse_simulation *simulation, int64_t user, int64_t known, double from, double until,
                      lp_random *random, lp_future *future)
{
    process s = process_of(&simulation->law);
    s.random = *random;
    s.active = future->scratch;
    s.active_capacity = future->scratch_capacity;
    future->count = 0;
    double time = from - LP_SIMULATE_EPOCH, end = until - LP_SIMULATE_EPOCH;
    int64_t first = simulation->start[user];
    bool good = true;
    for (int64_t i = first; good && i < first + known; i++)
        good = excite(&s, simulation->type[i], simulation->time[i] - LP_SIMULATE_EPOCH);
    for (int32_t type; good && (type = next_event(&s, &time, end)) >= 0 && time <= end;)
        good = lp_future_append(future, LP_SIMULATE_EPOCH + time, type) && excite(&s, type, time);
    *random = s.random;
    future->scratch = s.active;
    future->scratch_capacity = s.active_capacity;
    return good;
}

/* -------------------------------------------------------------------------------- the public simulation ------ */

void lapse_simulate_options_default(lapse_simulate_options *options)
{
    *options = (lapse_simulate_options){.preset = presets[0].name, .seed = 1};
}

enum { MOST_SEQUENCES = 10 * 1000 * 1000, MOST_DAYS = 3660 };

static lapse_status check_options(const preset *chosen, const lapse_simulate_options *options, lapse_error *error)
{
    if (options->items != 0 && !chosen->items)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the preset '%s' has a fixed set of items; 'catalogue' and 'sessions' accept a number of items",
                       chosen->name);
    if (options->sequences < 0 || options->sequences > MOST_SEQUENCES)
        return lp_fail(error, LAPSE_ERROR_USAGE, "sequences is %lld; it must be 1 to %d, or 0 for the preset's default",
                       (long long)options->sequences, MOST_SEQUENCES);
    if (!(options->days >= 0 && options->days <= MOST_DAYS))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "days is %g; it must be above 0, up to %d, or 0 for the preset's default", options->days,
                       MOST_DAYS);
    return LAPSE_OK;
}

static bool simulate_users(lapse_simulation *simulation, uint64_t seed, double length)
{
    process s = process_of(&simulation->law);
    bool good = true;
    for (int64_t user = 0; good && user < simulation->sequence_count; user++) {
        s.random = lp_random_start(seed, LP_PURPOSE_SIMULATE, (uint32_t)user);
        good = simulate_user(simulation, &s, length);
        simulation->start[user + 1] = simulation->event_count;
    }
    lp_free(s.active);
    return good;
}

static lapse_status simulate_law(lapse_simulation *made, lapse_status (*fill)(lp_law *, lapse_error *),
                                 const lapse_simulate_options *options, lapse_error *error)
{
    LP_TRY(fill(&made->law, error));
    made->law.probabilities = lp_hawkes_probabilities;
    made->law.next_time = lp_hawkes_next_time;
    made->law.future = lp_hawkes_future;
    made->sequence_count = options->sequences ? options->sequences : made->law.sequences;
    double days = options->days > 0 ? options->days : made->law.days;
    made->start = lp_alloc((size_t)made->sequence_count + 1, sizeof *made->start);
    if (!made->start || !simulate_users(made, options->seed, days * LP_SECONDS_A_DAY))
        return lp_fail_memory(error, "simulated events", (size_t)made->event_capacity * 2 * sizeof *made->time);
    return LAPSE_OK;
}

lapse_status lapse_simulate(const lapse_simulate_options *options, lapse_simulation **simulation, lapse_error *error)
{
    LP_REQUIRE(error, options, simulation);
    *simulation = NULL;
    const preset *chosen = NULL;
    LP_TRY(find_preset(options->preset, &chosen, error));
    LP_TRY(check_options(chosen, options, error));
    lapse_simulation *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a simulation", sizeof *made);
    lapse_status status =
        chosen->simulate ? chosen->simulate(made, options, error) : simulate_law(made, chosen->fill, options, error);
    if (status != LAPSE_OK) {
        lapse_simulation_free(made);
        return status;
    }
    *simulation = made;
    return LAPSE_OK;
}

void lapse_simulation_free(lapse_simulation *simulation)
{
    if (!simulation)
        return;
    lp_law_clear(&simulation->law);
    lp_goods_free(simulation->goods);
    lp_free(simulation->series_popularity);
    lp_free(simulation->start);
    lp_free(simulation->time);
    lp_free(simulation->type);
    lp_free(simulation);
}

int64_t lapse_simulation_event_count(const lapse_simulation *simulation)
{
    return simulation->event_count;
}
