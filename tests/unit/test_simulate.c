/* test_simulate.c: the simulator draws what its law says, and says what its law is.
 *
 * The law is checked against a second writing of docs/simulate.md (below, by names), the thinning against the law by the
 * time-rescaling theorem: measured by the integral of the total intensity, the waits between events are
 * exponential with mean 1.
 */
#include "base/memory.h"
#include "data/simulate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY 86400.0

static lapse_simulation *simulate(int64_t sequences, double days, uint64_t seed)
{
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.sequences = sequences;
    options.days = days;
    options.seed = seed;
    lapse_simulation *simulation = NULL;
    lapse_error error = {0};
    if (lapse_simulate(&options, &simulation, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return simulation;
}

/* The same events, user by user, over the users both have, up to `until`. */
static void assert_same_events(const lapse_simulation *a, const lapse_simulation *b, double until)
{
    int64_t users = a->sequence_count < b->sequence_count ? a->sequence_count : b->sequence_count;
    for (int64_t user = 0; user < users; user++) {
        int64_t i = a->start[user], j = b->start[user];
        for (; i < a->start[user + 1] && a->time[i] < until; i++, j++) {
            assert_true(j < b->start[user + 1]);
            assert_true(a->time[i] == b->time[j]);
            assert_int_equal(a->kind[i], b->kind[j]);
        }
        assert_true(j == b->start[user + 1] || b->time[j] >= until);
    }
}

static void test_same_seed_same_events(void **state)
{
    (void)state;
    lapse_simulation *a = simulate(50, 0, 7), *b = simulate(50, 0, 7), *other = simulate(50, 0, 8);
    assert_int_equal(a->event_count, b->event_count);
    assert_same_events(a, b, INFINITY);
    assert_true(a->time[0] != other->time[0]);
    lapse_simulation_free(a);
    lapse_simulation_free(b);
    lapse_simulation_free(other);
}

static void test_user_depends_on_no_other_and_on_no_end(void **state)
{
    (void)state;
    lapse_simulation *few = simulate(20, 90, 3), *many = simulate(60, 90, 3), *longer = simulate(20, 180, 3);
    assert_same_events(few, many, INFINITY);
    assert_same_events(longer, few, LP_SIMULATE_EPOCH + 90 * DAY);
    assert_true(longer->event_count > few->event_count);
    lapse_simulation_free(few);
    lapse_simulation_free(many);
    lapse_simulation_free(longer);
}

static void test_order_and_range(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(300, 0, 1);
    assert_int_equal(s->start[0], 0);
    assert_int_equal(s->start[s->sequence_count], s->event_count);
    assert_int_equal(lapse_simulation_event_count(s), s->event_count);
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            assert_true(s->time[i] > LP_SIMULATE_EPOCH && s->time[i] < LP_SIMULATE_EPOCH + 180 * DAY);
            assert_true(i == s->start[user] || s->time[i] > s->time[i - 1]);
            assert_true(s->kind[i] >= 0 && s->kind[i] < s->law.kind_count);
            char text[32];
            snprintf(text, sizeof text, "%.3f", s->time[i]);
            assert_true(strtod(text, NULL) == s->time[i]);
        }
    }
    lapse_simulation_free(s);
}

static void test_size_of_the_default_shop(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(0, 0, 1);
    assert_int_equal(s->sequence_count, 4000);
    assert_int_equal(s->law.kind_count, 16);
    assert_in_range(s->event_count, 140000, 200000);
    lapse_simulation_free(s);
}

/* ---------------------------------------------------------------- the law once more, as docs/simulate.md says -- */

typedef struct cause {
    const char *source, *target;
    double weight, days; /* days: centre of the bump */
    double width;
} cause;

static const cause returns[] = {
    {"buy coffee", "view coffee", 0.82, 7, 0.15},       {"buy vegetables", "view vegetables", 0.74, 7, 0.15},
    {"buy vegetables", "view vegetables", 0.08, 14, 0.15}, {"buy kibble", "view kibble", 0.85, 14, 0.15},
    {"buy detergent", "view detergent", 0.85, 30, 0.15}, {"buy camera", "view tripod", 0.9, 3, 0.2},
    {"buy tent", "view stove", 0.9, 5, 0.2},
};

static const char *const shelves[][2] = {
    {"coffee", "vegetables"}, {"kibble", "detergent"}, {"camera", "tripod"}, {"tent", "stove"}};
static const double spontaneous[][2] = {{0.008, 0.008}, {0.004, 0.004}, {0.008, 0.001}, {0.008, 0.001}};

static double bump(double lag, double centre, double width)
{
    double d = width * centre, x = (lag - centre) / d;
    return x > 4 ? 0 : exp(-x * x / 2) / (d * sqrt(2 * acos(-1)));
}

static double fade(double lag)
{
    return lag > 2400 ? 0 : exp(-lag / 120) / 120;
}

/* What one event of kind `source` adds to the intensity of `target` after `lag` seconds. */
static double added(const char *source, const char *target, double lag)
{
    double sum = 0;
    for (size_t i = 0; i < sizeof returns / sizeof *returns; i++) {
        if (strcmp(source, returns[i].source) == 0 && strcmp(target, returns[i].target) == 0)
            sum += returns[i].weight * bump(lag, returns[i].days * DAY, returns[i].width);
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
            sum += strcmp(target, purchase) == 0 ? 0.6 * bump(lag, 1200, 0.25) : 0;
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
    return rate * (1 + 0.6 * cos(2 * pi * (since / DAY - 2.5) / 7)) * (1 + 0.8 * cos(2 * pi * (since / 3600 - 20) / 24));
}

static void test_probabilities_are_those_of_the_document(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(12, 0, 5);
    double given[16], expected[16];
    assert_int_equal(s->law.kind_count, 16);
    assert_true(s->event_count > 300);
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            lp_simulation_probabilities(s, user, i, given);
            double sum = 0, total = 0;
            for (int k = 0; k < 16; k++) {
                const char *target = s->law.kinds[k].name;
                expected[k] = by_itself(target, s->time[i]);
                for (int64_t j = s->start[user]; j < i; j++)
                    expected[k] += added(s->law.kinds[s->kind[j]].name, target, s->time[i] - s->time[j]);
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

/* Integral over from .. to, by Simpson: fine steps in the hour after the last event, where looks fade, coarse beyond. */
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

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Waits in rescaled time. Users are laid end to end, so that what is left after a user's last event is not lost (losing
 * it would favour short waits). Returns the whole of rescaled time. */
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
    assert_true(fabs(score) < 2.58);                      /* two-sided 1 % */
    assert_true(distance * sqrt((double)count) < 1.628); /* 1 % */
    free(waits);
    lapse_simulation_free(s);
}

static void test_kinds_happen_as_often_as_the_law_expects(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(1000, 0, 13);
    double p[16], expected[16] = {0}, variance[16] = {0}, count[16] = {0};
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            lp_simulation_probabilities(s, user, i, p);
            count[s->kind[i]]++;
            for (int k = 0; k < 16; k++) {
                expected[k] += p[k];
                variance[k] += p[k] * (1 - p[k]);
            }
        }
    }
    for (int k = 0; k < 16; k++) {
        double z = (count[k] - expected[k]) / sqrt(variance[k]);
        if (fabs(z) > 3.5)
            fail_msg("seed 13: %s happened %g times, expected %.1f (z %.2f)", s->law.kinds[k].name, count[k], expected[k],
                     z);
    }
    lapse_simulation_free(s);
}

/* What the shop is for: order alone says little, time says much. */
static void test_law_is_far_above_order(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(1000, 0, 1);
    double p[16], before[16], follows[16][16] = {{0}};
    double law_loss = 0, shifted_loss = 0, law_hits = 0, chain_hits = 0, cases = 0;
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user] + 1; i < s->start[user + 1]; i++) {
            lp_simulation_probabilities(s, user, i, p);
            lp_simulation_probabilities(s, user, i - 1, before);
            law_loss -= log(p[s->kind[i]]);
            shifted_loss -= log(fmax(before[s->kind[i]], 1e-12));
            int best = 0;
            for (int k = 1; k < 16; k++)
                best = p[k] > p[best] ? k : best;
            law_hits += best == s->kind[i];
            follows[s->kind[i - 1]][s->kind[i]]++;
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

/* ----------------------------------------------------------------------------------------- files and errors -- */

static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/lapse-simulate-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void test_events_file(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(7, 60, 2);
    char path[300], line[256], name[LP_SIMULATE_NAME_SIZE];
    snprintf(path, sizeof path, "%s/shop.csv", folder);
    assert_int_equal(lapse_simulation_save(s, path, NULL), LAPSE_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "user,time,item,action,category\n");
    for (int64_t user = 0; user < s->sequence_count; user++) {
        for (int64_t i = s->start[user]; i < s->start[user + 1]; i++) {
            const lp_law_kind *kind = &s->law.kinds[s->kind[i]];
            char expected[256];
            snprintf(expected, sizeof expected, "%s,%.3f,%s,%s,%s\n", lp_simulation_user_name(user, name), s->time[i],
                     kind->item, kind->action, kind->category);
            assert_non_null(fgets(line, sizeof line, file));
            assert_string_equal(line, expected);
            assert_int_equal(lp_simulation_user_find(s, name), user);
        }
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
    lapse_simulation_free(s);
}

static void test_law_file(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(7, 60, 2);
    char path[300], line[1024], name[64];
    snprintf(path, sizeof path, "%s/law.csv", folder);
    assert_int_equal(lapse_simulation_save_law(s, path, NULL), LAPSE_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "user,time,event,view coffee,view vegetables,view kibble,view detergent,view camera,"
                              "view tripod,view tent,view stove,buy coffee,buy vegetables,buy kibble,buy detergent,"
                              "buy camera,buy tripod,buy tent,buy stove\n");
    for (int64_t user = 0, i = 0; i < s->event_count; i++) {
        while (i >= s->start[user + 1])
            user++;
        assert_non_null(fgets(line, sizeof line, file));
        double time, given, p[16];
        long long number;
        int used = 0;
        assert_int_equal(sscanf(line, "u%lld,%lf,%63[^,]%n", &number, &time, name, &used), 3);
        assert_int_equal(number, user + 1);
        assert_true(time == s->time[i]);
        assert_string_equal(name, s->law.kinds[s->kind[i]].name);
        lp_simulation_probabilities(s, user, i, p);
        const char *rest = line + used;
        for (int k = 0; k < 16; k++) {
            assert_int_equal(sscanf(rest, ",%lf%n", &given, &used), 1);
            assert_true(fabs(given - p[k]) <= 1e-5 * p[k]);
            rest += used;
        }
        assert_string_equal(rest, "\n");
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
    lapse_simulation_free(s);
}

static void test_unwritable_files(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(2, 30, 1);
    char path[300];
    snprintf(path, sizeof path, "%s/nowhere/shop.csv", folder);
    lapse_error error = {0};
    assert_int_equal(lapse_simulation_save(s, path, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No such file or directory");
    assert_string_equal(error.file, path);
    error = (lapse_error){0};
    assert_int_equal(lapse_simulation_save_law(s, path, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No such file or directory");
    lapse_simulation_free(s);
}

static void assert_refused(lapse_simulate_options options, const char *message)
{
    lapse_simulation *simulation = (lapse_simulation *)&options;
    lapse_error error = {0};
    assert_int_equal(lapse_simulate(&options, &simulation, &error), LAPSE_ERROR_USAGE);
    assert_null(simulation);
    assert_string_equal(error.message, message);
}

static void test_wrong_options(void **state)
{
    (void)state;
    lapse_simulate_options good;
    lapse_simulate_options_default(&good);
    assert_string_equal(good.preset, "shop");
    lapse_simulate_options o = good;
    o.preset = "bazaar";
    assert_refused(o, "there is no preset 'bazaar' to simulate; the presets are: shop");
    o.preset = NULL;
    assert_refused(o, "there is no preset '' to simulate; the presets are: shop");
    o = good;
    o.sequences = -1;
    assert_refused(o, "-1 sequences cannot be simulated; 1 to 10000000 can (0: as many as the preset has)");
    o.sequences = 10000001;
    assert_refused(o, "10000001 sequences cannot be simulated; 1 to 10000000 can (0: as many as the preset has)");
    o = good;
    const double bad_days[] = {-1, 3661, INFINITY};
    const char *const shown[] = {"-1", "3661", "inf"};
    for (int i = 0; i < 3; i++) {
        char message[200];
        snprintf(message, sizeof message,
                 "a history of %s days cannot be simulated; more than 0 and up to 3660 can (0: the preset's own)", shown[i]);
        o.days = bad_days[i];
        assert_refused(o, message);
    }
    o.days = NAN;
    lapse_simulation *simulation;
    assert_int_equal(lapse_simulate(&o, &simulation, NULL), LAPSE_ERROR_USAGE);
}

static void test_user_names(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(4, 1, 1);
    const char *const wrong[] = {"", "u", "u0", "u01", "u5", "u-1", "u+1", "u 1", "x1", "1", "u1x", "u99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lp_simulation_user_find(s, wrong[i]), -1);
    assert_int_equal(lp_simulation_user_find(s, "u1"), 0);
    assert_int_equal(lp_simulation_user_find(s, "u4"), 3);
    lapse_simulation_free(s);
}

/* A history so short that most users have no events, and none has much to say. */
static void test_empty_users(void **state)
{
    (void)state;
    lapse_simulation *s = simulate(50, 0.01, 1);
    assert_true(s->event_count < 50);
    char path[300];
    snprintf(path, sizeof path, "%s/short.csv", folder);
    assert_int_equal(lapse_simulation_save_law(s, path, NULL), LAPSE_OK);
    unlink(path);
    lapse_simulation_free(s);
    lapse_simulation_free(NULL);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.sequences = 120;
    char path[300];
    snprintf(path, sizeof path, "%s/memory.csv", folder);
    int failures = 0;
    for (int n = 1;; n++) {
        lapse_simulation *simulation = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = lapse_simulate(&options, &simulation, &error);
        if (status == LAPSE_OK)
            status = lapse_simulation_save(simulation, path, &error);
        if (status == LAPSE_OK)
            status = lapse_simulation_save_law(simulation, path, &error);
        lp_memory_fail_at(0);
        lapse_simulation_free(simulation);
        unlink(path);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_int_equal(strncmp(error.message, "out of memory: ", 15), 0);
        failures++;
    }
    assert_true(failures > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_events),
        cmocka_unit_test(test_user_depends_on_no_other_and_on_no_end),
        cmocka_unit_test(test_order_and_range),
        cmocka_unit_test(test_size_of_the_default_shop),
        cmocka_unit_test(test_probabilities_are_those_of_the_document),
        cmocka_unit_test(test_rescaled_waits_are_exponential),
        cmocka_unit_test(test_kinds_happen_as_often_as_the_law_expects),
        cmocka_unit_test(test_law_is_far_above_order),
        cmocka_unit_test(test_events_file),
        cmocka_unit_test(test_law_file),
        cmocka_unit_test(test_unwritable_files),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_user_names),
        cmocka_unit_test(test_empty_users),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
