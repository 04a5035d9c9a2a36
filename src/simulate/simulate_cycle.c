/* simulate_cycle.c: the preset "cycle": ten event types in a cycle whose order holds only after short gaps.
 *
 * The time decides how certain the next event is, not which one is the most probable. So accuracy cannot tell a model
 * of the times from a Markov chain, and log-loss can. docs/simulate.md defines it in formulas.
 */
#include "simulate/simulate.h"

#include "base/random.h"

#include <math.h>

enum { TYPES = 10, SEQUENCES = 1000, DAYS = 240 };

static const double MEAN_GAP = 6 * LP_SECONDS_A_DAY; /* of exponential gaps */
static const double SHORT_GAP = 2.5 * LP_SECONDS_A_DAY;
static const double FOLLOWS =
    0.8; /* probability of the next type of the cycle after a shorter gap; otherwise any type */

static double follows(double gap)
{
    return gap < SHORT_GAP ? FOLLOWS : 0;
}

static void probabilities_of(const lapse_simulation *simulation, int64_t user, int64_t event, double *probabilities)
{
    bool first = event == simulation->start[user];
    double share = first ? 0 : follows(simulation->time[event] - simulation->time[event - 1]);
    for (int k = 0; k < TYPES; k++)
        probabilities[k] = (1 - share) / TYPES;
    if (!first)
        probabilities[(simulation->type[event - 1] + 1) % TYPES] += share;
}

static lp_law_time next_time(const lapse_simulation *simulation, int64_t user, int64_t known, double t)
{
    (void)simulation, (void)user, (void)known;
    return (lp_law_time){.log_density = -t / MEAN_GAP - log(MEAN_GAP), .log_survival = -t / MEAN_GAP};
}

/* Appends one user's history of `length` milliseconds. False when out of memory. */
static bool simulate_user(lapse_simulation *simulation, lp_random random, int64_t length)
{
    int64_t last = 0;
    for (int32_t type = -1;;) {
        int64_t gap = (int64_t)ceil(MEAN_GAP * 1000 * lp_random_exponential(&random));
        double choice = lp_random_uniform(&random);
        int32_t any = (int32_t)lp_random_below(&random, TYPES);
        last += gap > 0 ? gap : 1;
        if (last >= length)
            return true;
        type = type >= 0 && choice < follows((double)gap / 1000) ? (type + 1) % TYPES : any;
        if (!lp_simulation_append(simulation, last, type))
            return false;
    }
}

lapse_status lp_cycle_simulate(lapse_simulation *simulation, const lapse_simulate_options *options, lapse_error *error)
{
    static const char *const names[TYPES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    double days = options->days > 0 ? options->days : DAYS;
    bool good = true;
    for (int k = 0; good && k < TYPES; k++)
        good = lp_law_add_type(&simulation->law, NULL, names[k], NULL, 0) >= 0;
    simulation->law.probabilities = probabilities_of;
    simulation->law.next_time = next_time;
    simulation->sequence_count = options->sequences ? options->sequences : SEQUENCES;
    simulation->start = lp_alloc((size_t)simulation->sequence_count + 1, sizeof *simulation->start);
    good = good && simulation->start;
    for (int64_t user = 0; good && user < simulation->sequence_count; user++) {
        lp_random random = lp_random_start(options->seed, LP_PURPOSE_SIMULATE, (uint32_t)user);
        good = simulate_user(simulation, random, (int64_t)(days * LP_SECONDS_A_DAY * 1000));
        simulation->start[user + 1] = simulation->event_count;
    }
    return good ? LAPSE_OK
                : lp_fail_memory(error, "simulated events",
                                 (size_t)simulation->event_capacity * 2 * sizeof *simulation->time);
}
