/* simulate.h: events drawn from a known law, and the law itself.
 *
 * A law is a multivariate self-exciting (Hawkes) process. Event type k happens to a user at time t with intensity
 *
 *     lambda_k(t) = rate_k * rhythm(t) + sum over earlier events i, sum over rules r from kind_i to k
 *                                        of weight_r * density_r(t - t_i)
 *
 * Given that something happens at t, it is event type k with probability lambda_k(t) / sum of all lambda(t): no predictor
 * that knows the history and t can do better. That is what makes a simulation a yardstick.
 *
 * A preset is a function that fills a law, and one row of the table in simulate.c. The preset "catalogue" is of another
 * event type: it draws from goods (simulate_goods.h) by rules of its own, and its law is empty.
 */
#ifndef LP_SIMULATE_H
#define LP_SIMULATE_H

#include "base/error.h"
#include "base/memory.h"

/* 2026-01-01T00:00:00Z, a Thursday: where every history begins. */
#define LP_SIMULATE_EPOCH 1767225600
#define LP_SECONDS_A_DAY 86400.0

/* How the influence of an event depends on the time since. Unimodal: rises up to mode, falls after it; 0 beyond reach,
 * which cuts off next to nothing of its integral of 1. The parameters are scale (seconds) and width (of the scale). */
typedef struct lp_law_shape {
    double (*density)(double lag, double scale, double width); /* a second, for 0 <= lag <= reach */
    double (*mode)(double scale, double width);
    double (*reach)(double scale, double width);
} lp_law_shape;

/* exp(-lag / scale) / scale, up to 20 scales: what fades. */
extern const lp_law_shape lp_law_decay;
/* A normal density around scale with deviation width * scale, up to 4 deviations past it: what comes back after its
 * time. */
extern const lp_law_shape lp_law_bump;

typedef struct lp_law_type {
    const char *action, *item, *category; /* constants, or in the law's arena */
    const char *name;                     /* "action item" */
    double rate;                          /* spontaneous events a second, mean over the rhythm */
    int32_t first_rule;                   /* that this event type is the source of; -1: none */
} lp_law_type;

typedef struct lp_law_rule {
    int32_t source, target; /* event types */
    int32_t next_rule;      /* with the same source; -1: none */
    const lp_law_shape *shape;
    double weight; /* events of event type target that one event of event type source brings about, in the mean */
    double scale, width;
    double mode, reach; /* of the shape with this scale and width */
} lp_law_rule;

/* Spontaneous events follow the clock: rhythm(t) = (1 + weekly cos(2 pi (t - weekly_peak) / 7 days))
 *                                                * (1 + daily  cos(2 pi (t - daily_peak) / 1 day)), t from the epoch.
 */
typedef struct lp_law_rhythm {
    double weekly, weekly_peak, daily, daily_peak; /* amplitudes in 0 .. 1; peaks in seconds */
} lp_law_rhythm;

typedef struct lp_law {
    int32_t type_count, rule_count;
    lp_law_type *types; /* owned */
    lp_law_rule *rules; /* owned */
    lp_law_rhythm rhythm;
    int64_t sequences; /* drawn where the caller asks for none in particular */
    double days;       /* likewise */
    lp_arena arena;
} lp_law;

/* For presets: adds an event type (rate in events a day) and returns its number, or -1 when out of memory. The texts must
 * outlive the law. */
int32_t lp_law_add_type(lp_law *law, const char *action, const char *item, const char *category, double rate);

/* For presets: every event of event type source brings about `weight` events of event type target; false when out of memory. */
bool lp_law_add_rule(lp_law *law, int32_t source, int32_t target, double weight, const lp_law_shape *shape,
                     double scale, double width);

void lp_law_clear(lp_law *law);

/* A rule's part of the intensity of its target, a second, at this lag after its source. */
double lp_law_rule_intensity(const lp_law_rule *rule, double lag);

/* The rhythm, this many seconds after the epoch. */
double lp_law_rhythm_at(const lp_law_rhythm *rhythm, double since);

/* The presets; each is defined in its own file simulate_<name>.c. */
lapse_status lp_preset_shop(lp_law *law, lapse_error *error);

/* The preset "catalogue": makes the goods and draws all users' events. */
lapse_status lp_catalogue_draw(lapse_simulation *simulation, const lapse_simulate_options *options, lapse_error *error);

/* Invariants: start[0] == 0, start[sequence_count] == event_count; within a sequence time strictly increases; every
 * time is a whole number of milliseconds divided by 1000, so its text with three decimals reads back as the same
 * double. A user may have no events. */
struct lapse_simulation {
    lp_law law;
    struct lp_goods *goods; /* owned; what event types are the items of, with the preset "catalogue"; otherwise NULL */
    int64_t sequence_count, event_count, event_capacity;
    int64_t *start; /* owned; sequence_count + 1: first event of each user */
    double *time;   /* owned; event_count, unix seconds */
    int32_t *type;  /* owned; event_count */
};

/* Adds an event, so many milliseconds after the epoch, of the last user. False when out of memory. */
bool lp_simulation_append(lapse_simulation *simulation, int64_t milliseconds, int32_t type);

/* A failure where the simulation has no law that `what` could be told from. */
lapse_status lp_simulation_need_law(const lapse_simulation *simulation, const char *what, lapse_error *error);

/* The intensity of every event type (a second) at any time for one user, given the user's first `known` events, all of
 * which must lie before time. intensities has law.type_count elements. */
void lp_simulation_intensities(const lapse_simulation *simulation, int64_t user, int64_t known, double time,
                               double *intensities);

/* What the law knows just before event `event` (0 .. event_count-1, of this user) about its event type, given its time:
 * probabilities[law.type_count], which sum to 1. */
void lp_simulation_probabilities(const lapse_simulation *simulation, int64_t user, int64_t event,
                                 double *probabilities);

enum { LP_SIMULATE_NAME_SIZE = 24 };

/* Writes the name of a user ("u17") and returns out; and the number of a user by name, or -1. */
const char *lp_simulation_user_name(int64_t user, char out[LP_SIMULATE_NAME_SIZE]);
int64_t lp_simulation_user_find(const lapse_simulation *simulation, const char *name);

#endif
