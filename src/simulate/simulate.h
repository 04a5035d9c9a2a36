/* simulate.h: simulated events, and the law that generates them.
 *
 * The law is the ground-truth generating process. Most presets are multivariate Hawkes (self-exciting) processes: event
 * type k happens to a user at time t with intensity
 *
 *     lambda_k(t) = base_rate_k * seasonality(t) + sum over earlier events i, sum over excitations e from type_i to k,
 *                                                  of weight_e * kernel_e(t - t_i)
 *
 * Given an event at t, its type is k with probability lambda_k(t) / sum of all lambda(t). No predictor that knows the
 * history and t can do better, so the law gives the best possible score.
 *
 * A preset is a function that fills a law, and a row of the table in simulate.c. A preset that is not a Hawkes process
 * simulates all users itself. "cycle" does, with a law that is a function of the last event and the gap; "catalogue" and
 * "sessions" sample from an item catalogue (simulate_goods.h). The law of "catalogue" is empty; that of "sessions" is a
 * mixture over the user's earlier events.
 */
#ifndef LP_SIMULATE_H
#define LP_SIMULATE_H

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "lapse_lab.h"

/* 2026-01-01T00:00:00Z, a Thursday: the start of every history. */
#define LP_SIMULATE_EPOCH 1767225600
#define LP_SECONDS_A_DAY 86400.0

/* An excitation kernel: a unimodal density of the lag, which integrates to almost 1 and is 0 beyond its support. The
 * parameters are scale (seconds) and width (relative to the scale). */
typedef struct lp_law_kernel {
    double (*density)(double lag, double scale, double width);    /* per second, for 0 <= lag <= support */
    double (*cumulative)(double lag, double scale, double width); /* an antiderivative of the density */
    double mode;                                                  /* in scales */
    double support, support_widths; /* the support is scale * (support + support_widths * width) */
} lp_law_kernel;

/* exp(-lag / scale) / scale, with a support of 20 scales. */
extern const lp_law_kernel lp_law_exponential;
/* Normal density with mean scale and standard deviation width * scale, up to 4 deviations above the mean. */
extern const lp_law_kernel lp_law_gaussian;

typedef struct lp_law_type {
    const char *action, *item, *category; /* constants, or in the law's arena; action and category may be NULL */
    const char *name;                     /* "action item", or the item without an action */
    double base_rate;                     /* base rate in events per second, mean over the seasonality */
    int32_t first_excitation;             /* excitations of which this type is the source; -1: none */
} lp_law_type;

typedef struct lp_law_excitation {
    int32_t source, target; /* event types */
    int32_t next;           /* with the same source; -1: none */
    const lp_law_kernel *kernel;
    double weight; /* mean number of target events that one source event triggers directly */
    double scale, width;
    double mode, support; /* of the kernel with these parameters */
} lp_law_excitation;

/* Daily and weekly modulation of the base rates, t in seconds from the epoch:
 *   seasonality(t) = (1 + weekly cos(2 pi (t - weekly_phase) / 7 days)) * (1 + daily cos(2 pi (t - daily_phase) / 1 day)) */
typedef struct lp_law_seasonality {
    double weekly, weekly_phase, daily, daily_phase; /* amplitudes in 0 .. 1; phases in seconds */
} lp_law_seasonality;

/* The law of the time of the next event, at one time: logarithms of its density per second and of its survival. */
typedef struct lp_law_time {
    double log_density, log_survival;
} lp_law_time;

/* The events of a drawn future. The memory is used again by the next one. */
typedef struct lp_future {
    double *time;  /* owned; unix seconds */
    int32_t *type; /* owned */
    int64_t count;
    size_t time_capacity, type_capacity;
    void *scratch; /* owned; of the law */
    size_t scratch_capacity;
} lp_future;

void lp_future_clear(lp_future *future);
/* For presets. False when out of memory. */
bool lp_future_append(lp_future *future, double time, int32_t type);

typedef struct lp_law {
    /* Probabilities of the event types of an event, as lp_simulation_probabilities; NULL: there is no closed form. */
    void (*probabilities)(const lapse_simulation *simulation, int64_t user, int64_t event, double *probabilities);
    /* The time of the user's next event, as lp_simulation_next_time; NULL: there is no closed form. */
    lp_law_time (*next_time)(const lapse_simulation *simulation, int64_t user, int64_t known, double t);
    /* A drawn future, as lp_simulation_future; NULL: there is none. */
    bool (*future)(const lapse_simulation *simulation, int64_t user, int64_t known, double from, double until,
                   lp_random *random, lp_future *future);
    int32_t type_count, excitation_count;
    lp_law_type *types;             /* owned; NULL for a catalogue with actions */
    const char *const *actions;     /* of a catalogue: type = action * items + item; constants; NULL: there are none */
    lp_law_excitation *excitations; /* owned */
    lp_law_seasonality seasonality;
    int64_t sequences; /* default number of sequences */
    double days;       /* default length of a history */
    lp_arena arena;
} lp_law;

/* For presets: adds an event type (base rate in events per day) and returns its id, or -1 when out of memory. The
 * strings must outlive the law. */
int32_t lp_law_add_type(lp_law *law, const char *action, const char *item, const char *category, double base_rate);

/* For presets: every source event triggers `weight` target events on average. False when out of memory. */
bool lp_law_add_excitation(lp_law *law, int32_t source, int32_t target, double weight, const lp_law_kernel *kernel,
                           double scale, double width);

void lp_law_clear(lp_law *law);

/* Contribution of an excitation to the intensity of its target, per second, at this lag after its source. */
double lp_law_excitation_intensity(const lp_law_excitation *excitation, double lag);

/* Expected number of target events that the excitation triggers between two lags after its source. */
double lp_law_excitation_integral(const lp_law_excitation *excitation, double from, double to);

/* The integral of the seasonality between two times, in seconds from the epoch. */
double lp_law_seasonality_integral(const lp_law_seasonality *seasonality, double from, double to);

/* The seasonality `since` seconds after the epoch. */
double lp_law_seasonality_at(const lp_law_seasonality *seasonality, double since);

/* The presets; each is defined in its own file simulate_<name>.c. */
lapse_status lp_preset_shop(lp_law *law, lapse_error *error);

/* The preset "cycle": simulates all users. */
lapse_status lp_cycle_simulate(lapse_simulation *simulation, const lapse_simulate_options *options, lapse_error *error);

/* The preset "catalogue": creates the item catalogue and simulates all users. */
lapse_status lp_catalogue_simulate(lapse_simulation *simulation, const lapse_simulate_options *options,
                                   lapse_error *error);

/* The preset "sessions": creates the item catalogue and simulates all users. */
lapse_status lp_sessions_simulate(lapse_simulation *simulation, const lapse_simulate_options *options,
                                  lapse_error *error);

/* Invariants: start[0] == 0, start[sequence_count] == event_count; within a sequence time strictly increases; every
 * time is a whole number of milliseconds divided by 1000, so its text with three decimals reads back as the same
 * double. A user may have no events. */
struct lapse_simulation {
    lp_law law;
    struct lp_goods *goods;    /* owned; the item catalogue of the presets "catalogue", whose items are the event types,
                             * and "sessions"; otherwise NULL */
    double *series_popularity; /* owned; of the preset "sessions" */
    int64_t sequence_count, event_count, event_capacity;
    int64_t *start; /* owned; sequence_count + 1: first event of each user */
    double *time;   /* owned; event_count, unix seconds */
    int32_t *type;  /* owned; event_count */
};

/* Adds an event of the last user, in milliseconds after the epoch. False when out of memory. */
bool lp_simulation_append(lapse_simulation *simulation, int64_t milliseconds, int32_t type);

/* The name of an event type: of the pair ("view coffee"), of its item or of its action. In out, or a constant; NULL: it
 * has no action. */
typedef enum lp_type_part { LP_TYPE_PAIR, LP_TYPE_ITEM, LP_TYPE_ACTION, LP_TYPE_PARTS } lp_type_part;
enum { LP_SIMULATE_NAME_SIZE = 40 };
const char *lp_simulation_type_name(const lapse_simulation *simulation, int32_t type, lp_type_part part,
                                    char out[LP_SIMULATE_NAME_SIZE]);

/* Fails if the simulation has no law; `what` names the missing result. */
lapse_status lp_simulation_require_law(const lapse_simulation *simulation, const char *what, lapse_error *error);

/* Intensity of every event type (per second) at `time` for one user, given the user's first `known` events, all of
 * which must be before time. intensities has law.type_count elements. */
void lp_simulation_intensities(const lapse_simulation *simulation, int64_t user, int64_t known, double time,
                               double *intensities);

/* The same as probabilities, of a Hawkes process: lp_law.probabilities. */
void lp_hawkes_probabilities(const lapse_simulation *simulation, int64_t user, int64_t event, double *probabilities);

/* Probabilities of the event types of event `event` (0 .. event_count-1, of this user), given its time and the user's
 * earlier events: probabilities[law.type_count], which sum to 1. */
void lp_simulation_probabilities(const lapse_simulation *simulation, int64_t user, int64_t event,
                                 double *probabilities);

/* The law of the time of the user's next event, t > 0 seconds after the last of the user's first `known` events (at least
 * 1), given these events. Where the law has no density at a time, log_density is that of its continuous part. */
lp_law_time lp_simulation_next_time(const lapse_simulation *simulation, int64_t user, int64_t known, double t);

/* Fails if the simulation has no law of time, or draws no futures. */
lapse_status lp_simulation_require_next_time(const lapse_simulation *simulation, lapse_error *error);
lapse_status lp_simulation_require_future(const lapse_simulation *simulation, lapse_error *error);

/* Draws the user's events in from < time <= until, given the user's first `known` events, all of which are at or before
 * `from`, and that nothing else happened up to `from`. *future is zeroed or of an earlier call. False when out of memory. */
bool lp_simulation_future(const lapse_simulation *simulation, int64_t user, int64_t known, double from, double until,
                          lp_random *random, lp_future *future);

/* The functions of Hawkes processes: lp_law.next_time and lp_law.future. */
lp_law_time lp_hawkes_next_time(const lapse_simulation *simulation, int64_t user, int64_t known, double t);
bool lp_hawkes_future(const lapse_simulation *simulation, int64_t user, int64_t known, double from, double until,
                      lp_random *random, lp_future *future);

/* Writes the name of a user ("u17") and returns out; and the index of a user by name, or -1. The name of a session of the
 * user ("u17/3") is found too. */
const char *lp_simulation_user_name(int64_t user, char out[LP_SIMULATE_NAME_SIZE]);
int64_t lp_simulation_user_find(const lapse_simulation *simulation, const char *name);

/* The user's event at this time, or -1. */
int64_t lp_simulation_event_find(const lapse_simulation *simulation, int64_t user, double time);

#endif
