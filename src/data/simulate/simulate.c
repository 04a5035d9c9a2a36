/* simulate.c: draws events from a law by Ogata's thinning, and says what the law itself expected.
 *
 * Thinning proposes times from a Poisson process whose rate lies above the total intensity, and keeps each with
 * probability intensity / rate. The rate holds for a window of some hours only: within it every kernel, being unimodal,
 * has its exact maximum at the point of the window nearest to its mode. So nothing is approximated, and a purchase that
 * will matter in a month costs no proposals today.
 *
 * A user draws from a random sequence of their own and windows do not depend on the end of the history: a user's events
 * are the same however many users there are, and a longer history only adds to a shorter one.
 *
 * Times are rounded up to milliseconds before they become history, so that the law of what is written is exactly the
 * law of what is read.
 */
#include "data/simulate/simulate.h"

#include "base/random.h"
#include "data/simulate/simulate_goods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------- presets ------ */

typedef struct preset {
    const char *name;
    lapse_status (*fill)(lp_law *law, lapse_error *error);
    /* Instead of fill, where events are not drawn from a law. */
    lapse_status (*draw)(lapse_simulation *simulation, const lapse_simulate_options *options, lapse_error *error);
} preset;

static const preset presets[] = {
    {"shop", lp_preset_shop, NULL},
    {"catalogue", NULL, lp_catalogue_draw},
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

/* -------------------------------------------------------------------------------------------------- laws ----- */

#define TURN 6.283185307179586

static double decay_density(double lag, double scale, double width)
{
    (void)width;
    return exp(-lag / scale) / scale;
}

static double decay_mode(double scale, double width)
{
    (void)scale;
    (void)width;
    return 0;
}

static double decay_reach(double scale, double width)
{
    (void)width;
    return 20 * scale;
}

static double bump_density(double lag, double scale, double width)
{
    double deviation = width * scale, distance = (lag - scale) / deviation;
    return exp(-0.5 * distance * distance) / (deviation * sqrt(TURN));
}

static double bump_mode(double scale, double width)
{
    (void)width;
    return scale;
}

static double bump_reach(double scale, double width)
{
    return scale * (1 + 4 * width);
}

const lp_law_shape lp_law_decay = {decay_density, decay_mode, decay_reach};
const lp_law_shape lp_law_bump = {bump_density, bump_mode, bump_reach};

int32_t lp_law_add_type(lp_law *law, const char *action, const char *item, const char *category, double rate)
{
    lp_law_type *types = lp_grow(law->types, (size_t)law->type_count + 1, sizeof *types);
    if (!types)
        return -1;
    law->types = types;
    size_t size = strlen(action) + strlen(item) + 2;
    char *name = lp_arena_alloc(&law->arena, size);
    if (!name)
        return -1;
    snprintf(name, size, "%s %s", action, item);
    types[law->type_count] = (lp_law_type){action, item, category, name, rate / LP_SECONDS_A_DAY, -1};
    return law->type_count++;
}

bool lp_law_add_rule(lp_law *law, int32_t source, int32_t target, double weight, const lp_law_shape *shape,
                     double scale, double width)
{
    lp_law_rule *rules = lp_grow(law->rules, (size_t)law->rule_count + 1, sizeof *rules);
    if (!rules)
        return false;
    law->rules = rules;
    rules[law->rule_count] = (lp_law_rule){.source = source,
                                           .target = target,
                                           .next_rule = law->types[source].first_rule,
                                           .shape = shape,
                                           .weight = weight,
                                           .scale = scale,
                                           .width = width,
                                           .mode = shape->mode(scale, width),
                                           .reach = shape->reach(scale, width)};
    law->types[source].first_rule = law->rule_count++;
    return true;
}

void lp_law_clear(lp_law *law)
{
    lp_free(law->types);
    lp_free(law->rules);
    lp_arena_clear(&law->arena);
    *law = (lp_law){0};
}

double lp_law_rule_intensity(const lp_law_rule *rule, double lag)
{
    if (lag > rule->reach)
        return 0;
    return rule->weight * rule->shape->density(lag, rule->scale, rule->width);
}

double lp_law_rhythm_at(const lp_law_rhythm *rhythm, double since)
{
    return (1 + rhythm->weekly * cos(TURN * (since - rhythm->weekly_peak) / (7 * LP_SECONDS_A_DAY))) *
           (1 + rhythm->daily * cos(TURN * (since - rhythm->daily_peak) / LP_SECONDS_A_DAY));
}

/* ---------------------------------------------------------------------------------------------- thinning ----- */

enum { WINDOW = 6 * 3600 }; /* seconds for which one upper bound serves */

/* A rule set off by an event and still within its reach. */
typedef struct influence {
    const lp_law_rule *rule;
    double since; /* time of the event, seconds from the epoch */
} influence;

typedef struct process {
    const lp_law *law;
    lp_random random;
    influence *active; /* owned */
    int64_t active_count, active_capacity;
    double spontaneous; /* sum of the event types' rates */
} process;

/* Above the total intensity everywhere in time .. time + WINDOW. Forgets the influences that are over. */
static double upper_bound(process *s, double time)
{
    double bound = s->spontaneous * (1 + s->law->rhythm.weekly) * (1 + s->law->rhythm.daily);
    int64_t kept = 0;
    for (int64_t i = 0; i < s->active_count; i++) {
        influence *a = &s->active[i];
        double first = time - a->since, last = first + WINDOW;
        if (first > a->rule->reach)
            continue;
        double nearest = fmin(fmax(a->rule->mode, first), fmin(last, a->rule->reach));
        bound += lp_law_rule_intensity(a->rule, nearest);
        s->active[kept++] = *a;
    }
    s->active_count = kept;
    return bound;
}

/* The event type in which a proposal at this time ends, where `level` is uniform below the upper bound; -1: none. */
static int32_t decide(process *s, double time, double level)
{
    double beat = lp_law_rhythm_at(&s->law->rhythm, time), sum = 0;
    for (int32_t k = 0; k < s->law->type_count; k++) {
        sum += s->law->types[k].rate * beat;
        if (level < sum)
            return k;
    }
    for (int64_t i = 0; i < s->active_count; i++) {
        sum += lp_law_rule_intensity(s->active[i].rule, time - s->active[i].since);
        if (level < sum)
            return s->active[i].rule->target;
    }
    return -1;
}

static bool excite(process *s, int32_t type, double time)
{
    for (int32_t r = s->law->types[type].first_rule; r >= 0; r = s->law->rules[r].next_rule) {
        if (s->active_count == s->active_capacity) {
            int64_t capacity = s->active_capacity ? 2 * s->active_capacity : 64;
            influence *active = lp_grow(s->active, (size_t)capacity, sizeof *active);
            if (!active)
                return false;
            s->active = active;
            s->active_capacity = capacity;
        }
        s->active[s->active_count++] = (influence){&s->law->rules[r], time};
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

/* Appends one user's history of `length` seconds. False when out of memory. */
static bool draw_user(lapse_simulation *simulation, process *s, double length)
{
    s->active_count = 0;
    double time = 0;
    int64_t last = -1;
    while (time < length) {
        double bound = upper_bound(s, time);
        double window_end = time + WINDOW;
        double next = bound > 0 ? time + lp_random_exponential(&s->random) / bound : INFINITY;
        if (next > window_end) {
            time = window_end;
            continue;
        }
        time = next;
        int32_t type = decide(s, time, lp_random_uniform(&s->random) * bound);
        if (type < 0)
            continue;
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

/* -------------------------------------------------------------------------------- the public simulation ------ */

void lapse_simulate_options_default(lapse_simulate_options *options)
{
    *options = (lapse_simulate_options){.preset = presets[0].name, .seed = 1};
}

enum { MOST_SEQUENCES = 10 * 1000 * 1000, MOST_DAYS = 3660 };

static lapse_status check_options(const preset *chosen, const lapse_simulate_options *options, lapse_error *error)
{
    if (options->items != 0 && !chosen->draw)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the preset '%s' has its own few items; only 'catalogue' has as many as are asked for",
                       chosen->name);
    if (options->sequences < 0 || options->sequences > MOST_SEQUENCES)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "%lld sequences cannot be simulated; 1 to %d can (0: as many as the preset has)",
                       (long long)options->sequences, MOST_SEQUENCES);
    if (!(options->days >= 0 && options->days <= MOST_DAYS))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "a history of %g days cannot be simulated; more than 0 and up to %d can (0: the preset's own)",
                       options->days, MOST_DAYS);
    return LAPSE_OK;
}

static bool draw(lapse_simulation *simulation, uint64_t seed, double length)
{
    process s = {.law = &simulation->law};
    for (int32_t k = 0; k < s.law->type_count; k++)
        s.spontaneous += s.law->types[k].rate;
    bool drawn = true;
    for (int64_t user = 0; drawn && user < simulation->sequence_count; user++) {
        s.random = lp_random_start(seed, LP_PURPOSE_SIMULATE, (uint32_t)user);
        drawn = draw_user(simulation, &s, length);
        simulation->start[user + 1] = simulation->event_count;
    }
    lp_free(s.active);
    return drawn;
}

static lapse_status draw_law(lapse_simulation *made, lapse_status (*fill)(lp_law *, lapse_error *),
                             const lapse_simulate_options *options, lapse_error *error)
{
    LP_TRY(fill(&made->law, error));
    made->sequence_count = options->sequences ? options->sequences : made->law.sequences;
    double days = options->days > 0 ? options->days : made->law.days;
    made->start = lp_alloc((size_t)made->sequence_count + 1, sizeof *made->start);
    if (!made->start || !draw(made, options->seed, days * LP_SECONDS_A_DAY))
        return lp_fail_memory(error, "simulated events", (size_t)made->event_capacity * 2 * sizeof *made->time);
    return LAPSE_OK;
}

lapse_status lapse_simulate(const lapse_simulate_options *options, lapse_simulation **simulation, lapse_error *error)
{
    *simulation = NULL;
    const preset *chosen = NULL;
    LP_TRY(find_preset(options->preset, &chosen, error));
    LP_TRY(check_options(chosen, options, error));
    lapse_simulation *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a simulation", sizeof *made);
    lapse_status status =
        chosen->draw ? chosen->draw(made, options, error) : draw_law(made, chosen->fill, options, error);
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
    lp_free(simulation->start);
    lp_free(simulation->time);
    lp_free(simulation->type);
    lp_free(simulation);
}

int64_t lapse_simulation_event_count(const lapse_simulation *simulation)
{
    return simulation->event_count;
}
