/* test_simulate_law.c: the simulator samples from its law, and the law is that of docs/simulate.md.
 *
 * The law is checked against a second implementation of the document (below, by names). Ogata's thinning is checked
 * against the law by the time-rescaling theorem: in units of the integrated total intensity, the waits between events
 * are exponential with mean 1.
 */
#include "simulate/simulate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/simulated.h"
#include "support/small_data.h"

#define DAY 86400.0

/* ---------------------------------------------------------------- the law once more, as docs/simulate.md says -- */

typedef struct cause {
    const char *source, *target;
    double weight, days; /* days: mean of the Gaussian kernel */
    double width;
} cause;

static const cause returns[] = {
    {"buy coffee", "view coffee", 0.82, 7, 0.15},
    {"buy vegetables", "view vegetables", 0.74, 7, 0.15},
    {"buy vegetables", "view vegetables", 0.08, 14, 0.15},
    {"buy kibble", "view kibble", 0.85, 14, 0.15},
    {"buy detergent", "view detergent", 0.85, 30, 0.15},
    {"buy camera", "view tripod", 0.9, 3, 0.2},
    {"buy tent", "view stove", 0.9, 5, 0.2},
};

static const char *const shelves[][2] = {
    {"coffee", "vegetables"}, {"kibble", "detergent"}, {"camera", "tripod"}, {"tent", "stove"}};
static const double spontaneous[][2] = {{0.008, 0.008}, {0.004, 0.004}, {0.008, 0.001}, {0.008, 0.001}};

static double gaussian(double lag, double centre, double width)
{
    double d = width * centre, x = (lag - centre) / d;
    return x > 4 ? 0 : exp(-x * x / 2) / (d * sqrt(2 * acos(-1)));
}

static double fade(double lag)
{
    return lag > 2400 ? 0 : exp(-lag / 120) / 120;
}

/* Contribution of one event of type `source` to the intensity of `target` after `lag` seconds. */
static double added(const char *source, const char *target, double lag)
{
    double sum = 0;
    for (size_t i = 0; i < sizeof returns / sizeof *returns; i++) {
        if (strcmp(source, returns[i].source) == 0 && strcmp(target, returns[i].target) == 0)
            sum += returns[i].weight * gaussian(lag, returns[i].days * DAY, returns[i].width);
    }
    for (int shelf = 0; shelf < 4; shelf++) {
        for (int side = 0; side < 2; side++) {
            char look[32], neighbour[32], purchase[32];
            snprintf(look, sizeof look, "view %s", shelves[shelf][side]);
            snprintf(neighbour, sizeof neighbour, "view %s", shelves[shelf][1 - side]);
            snprintf(purchase, sizeof purchase, "buy %s", shelves[shelf][side]);
            if (strcmp(source, look) != 0)
                continue;
            sum += strcmp(target, look) == 0 ? 0.1 * fade(lag) : 0;
            sum += strcmp(target, neighbour) == 0 ? 0.2 * fade(lag) : 0;
            sum += strcmp(target, purchase) == 0 ? 0.6 * gaussian(lag, 1200, 0.25) : 0;
        }
    }
    return sum;
}

static double by_itself(const char *target, double time)
{
    double pi = acos(-1), since = time - LP_SIMULATE_EPOCH, rate = 0;
    for (int shelf = 0; shelf < 4; shelf++) {
        for (int side = 0; side < 2; side++) {
            char look[32];
            snprintf(look, sizeof look, "view %s", shelves[shelf][side]);
            rate += strcmp(target, look) == 0 ? spontaneous[shelf][side] / DAY : 0;
        }
    }
    return rate * (1 + 0.6 * cos(2 * pi * (since / DAY - 2.5) / 7)) *
           (1 + 0.8 * cos(2 * pi * (since / 3600 - 20) / 24));
}

static void test_probabilities_are_those_of_the_document(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(12, 0, 5);
    double given[16], expected[16];
    assert_int_equal(s->law.type_count, 16);
    assert_true(s->event_count > 300);
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            lp_simulation_probabilities(s, user, i, given);
            double sum = 0, total = 0;
            for (int k = 0; k < 16; k++) {
                const char *target = s->law.types[k].name;
                expected[k] = by_itself(target, s->time[i]);
                for (int64_t j = s->start[user]; j < i; j++)
                    expected[k] += added(s->law.types[s->type[j]].name, target, s->time[i] - s->time[j]);
                total += expected[k];
                sum += given[k];
            }
            assert_true(fabs(sum - 1) < 1e-12);
            for (int k = 0; k < 16; k++)
                assert_true(fabs(given[k] - expected[k] / total) < 1e-9);
        }
    }
    lapse_simulation_free(s);
}

/* ------------------------------------------------------------------------------------------ goodness of fit -- */

static double total_intensity(const lapse_simulation *s, int64_t user, int64_t known, double time)
{
    double each[16], sum = 0;
    lp_simulation_intensities(s, user, known, time, each);
    for (int k = 0; k < 16; k++)
        sum += each[k];
    return sum;
}

/* Integral over from .. to by Simpson's rule: fine steps in the hour after the last event, coarse ones beyond. */
static double compensator(const lapse_simulation *s, int64_t user, int64_t known, double from, double to)
{
    double sum = 0;
    for (double at = from; at < to;) {
        double step = fmin(at < from + 3600 ? 20 : 3600, to - at);
        sum += step / 6 *
               (total_intensity(s, user, known, at) + 4 * total_intensity(s, user, known, at + step / 2) +
                total_intensity(s, user, known, at + step));
        if (at + step <= at)
            break;
        at += step;
    }
    return sum;
}

/* The law of the time of the next event is that of the intensities: density, and survival in closed form. */
static void test_next_time_is_that_of_the_intensities(void **state)
{
    (void)state;
    static const double times[] = {3, 200, 1500, 40000, 86400, 7 * DAY, 40 * DAY};
    lapse_simulation *s = simulate(6, 90, 5);
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t known = 1; known <= s->start[user + 1] - s->start[user]; known += small_effort(3, 9)) {
            double last = s->time[s->start[user] + known - 1], integral = 0, from = 0;
            for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
                /* in parts, so that steps are fine where kernels end and begin */
                integral += compensator(s, user, known, last + from, last + times[i]);
                from = times[i];
                lp_law_time law = lp_simulation_next_time(s, user, known, times[i]);
                double density = log(total_intensity(s, user, known, last + times[i])) - integral;
                if (fabs(law.log_survival + integral) > 1e-4 * (1 + integral) ||
                    fabs(law.log_density - density) > 1e-4 * (1 + integral))
                    fail_msg("user %lld, %lld events, %g s: %.9g and %.9g, should be %.9g and %.9g", (long long)user,
                             (long long)known, times[i], law.log_survival, law.log_density, -integral, density);
            }
        }
    }
    lapse_simulation_free(s);
}

/* Futures are drawn from it: the chance of an event within a week, from a later moment on; and the numbers are a function of the
 * generator. */
static void test_futures_are_drawn_from_the_law(void **state)
{
    (void)state;
    enum { FUTURES = 2000 };
    lapse_simulation *s = simulate(8, 90, 6);
    lp_future future = {0};
    double any = 0, expected = 0, variance = 0, events = 0;
    for (int64_t user = 0; user < s->sequence_count; user++) {
        int64_t known = s->start[user + 1] - s->start[user];
        double now = LP_SIMULATE_EPOCH + 90 * DAY, elapsed = known ? now - s->time[s->start[user + 1] - 1] : 0;
        if (known == 0)
            continue;
        double p = -expm1(lp_simulation_next_time(s, user, known, elapsed + 7 * DAY).log_survival -
                          lp_simulation_next_time(s, user, known, elapsed).log_survival);
        for (int i = 0; i < small_effort(FUTURES, FUTURES / 20); i++) {
            lp_random random = lp_random_start(6, LP_PURPOSE_TEST, (uint32_t)(user * FUTURES + i));
            assert_true(lp_simulation_future(s, user, known, now, now + 7 * DAY, &random, &future));
            for (int64_t k = 0; k < future.count; k++)
                assert_true(future.time[k] > (k ? future.time[k - 1] : now) && future.time[k] <= now + 7 * DAY);
            any += future.count > 0;
            events += (double)future.count;
            expected += p;
            variance += p * (1 - p);
        }
    }
    print_message("seed 6: %.0f futures with events, expected %.1f; %.0f events\n", any, expected, events);
    assert_true(fabs(any - expected) < 3.5 * sqrt(variance));
    lp_future_clear(&future);
    lapse_simulation_free(s);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Waits in rescaled time. Users are concatenated, so that the time after a user's last event counts (dropping it
 * would favour short waits). Returns the total rescaled time. */
static double rescaled_waits(const lapse_simulation *s, double days, double *waits)
{
    double carried = 0, whole = 0;
    for (int64_t user = 0; user < s->sequence_count; user++) {
        double from = LP_SIMULATE_EPOCH;
        int64_t first = s->start[user], last = s->start[user + 1];
        for (int64_t i = first; i <= last; i++) {
            double to = i < last ? s->time[i] : LP_SIMULATE_EPOCH + days * DAY;
            double part = compensator(s, user, i - first, from, to);
            whole += part;
            carried += part;
            from = to;
            if (i < last) {
                waits[i] = carried;
                carried = 0;
            }
        }
    }
    return whole;
}

static void test_rescaled_waits_are_exponential(void **state)
{
    (void)state;
    small_skip_under_tools(); /* it is about numbers, and reads memory like the others */
    lapse_simulation *s = simulate(120, 180, 11);
    size_t count = (size_t)s->event_count;
    assert_true(count > 3000);
    double *waits = malloc(count * sizeof *waits);
    assert_non_null(waits);
    double whole = rescaled_waits(s, 180, waits);
    double score = ((double)count - whole) / sqrt(whole);
    qsort(waits, count, sizeof *waits, ascending);
    double distance = 0;
    for (size_t i = 0; i < count; i++) {
        double level = 1 - exp(-waits[i]);
        distance = fmax(distance, fmax(level - (double)i / (double)count, (double)(i + 1) / (double)count - level));
    }
    print_message("seed 11: %zu events, expected %.1f (z %.2f); Kolmogorov-Smirnov %.3f\n", count, whole, score,
                  distance * sqrt((double)count));
    assert_true(fabs(score) < 2.58);                     /* two-sided 1 % */
    assert_true(distance * sqrt((double)count) < 1.628); /* 1 % */
    free(waits);
    lapse_simulation_free(s);
}

static void test_event_types_happen_as_often_as_the_law_expects(void **state)
{
    (void)state;
    small_skip_under_tools(); /* it is about numbers, and reads memory like the others */
    lapse_simulation *s = simulate(1000, 0, 13);
    double p[16], expected[16] = {0}, variance[16] = {0}, count[16] = {0};
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            lp_simulation_probabilities(s, user, i, p);
            count[s->type[i]]++;
            for (int k = 0; k < 16; k++) {
                expected[k] += p[k];
                variance[k] += p[k] * (1 - p[k]);
            }
        }
    }
    for (int k = 0; k < 16; k++) {
        double z = (count[k] - expected[k]) / sqrt(variance[k]);
        if (fabs(z) > 3.5)
            fail_msg("seed 13: %s happened %g times, expected %.1f (z %.2f)", s->law.types[k].name, count[k],
                     expected[k], z);
    }
    lapse_simulation_free(s);
}

/* The purpose of the preset: the order of events says little, their times say much. */
static void test_law_is_far_above_order(void **state)
{
    (void)state;
    small_skip_under_tools(); /* it is about numbers, and reads memory like the others */
    lapse_simulation *s = simulate(1000, 0, 1);
    double p[16], before[16], follows[16][16] = {{0}};
    double law_loss = 0, shifted_loss = 0, law_hits = 0, chain_hits = 0, cases = 0;
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user] + 1; i < s->start[user + 1]; i++) {
            lp_simulation_probabilities(s, user, i, p);
            lp_simulation_probabilities(s, user, i - 1, before);
            law_loss -= log(p[s->type[i]]);
            shifted_loss -= log(fmax(before[s->type[i]], 1e-12));
            int best = 0;
            for (int k = 1; k < 16; k++)
                best = p[k] > p[best] ? k : best;
            law_hits += best == s->type[i];
            follows[s->type[i - 1]][s->type[i]]++;
            cases++;
        }
    }
    for (int a = 0; a < 16; a++) {
        double most = 0;
        for (int b = 0; b < 16; b++)
            most = fmax(most, follows[a][b]);
        chain_hits += most;
    }
    print_message("law: accuracy %.3f, log-loss %.3f; first-order chain fitted to the same events: %.3f\n",
                  law_hits / cases, law_loss / cases, chain_hits / cases);
    assert_true(law_loss < shifted_loss);
    assert_true(law_hits / cases > 0.66 && law_hits / cases < 0.74);
    assert_true(law_loss / cases > 0.6 && law_loss / cases < 0.8);
    assert_true(chain_hits / cases < 0.40);
    lapse_simulation_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probabilities_are_those_of_the_document),
        cmocka_unit_test(test_next_time_is_that_of_the_intensities),
        cmocka_unit_test(test_futures_are_drawn_from_the_law),
        cmocka_unit_test(test_rescaled_waits_are_exponential),
        cmocka_unit_test(test_event_types_happen_as_often_as_the_law_expects),
        cmocka_unit_test(test_law_is_far_above_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
