/* bg_nbd.c: the BG/NBD model of returning customers, fitted by maximum likelihood (Fader, Hardie and Lee 2005, "Counting your
 * customers" the easy way). */
#include "evaluate/returns.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { PARAMETERS = 4, CORNERS = PARAMETERS + 1, STEPS = 600 };

/* Histories that are fitted, at most: evenly spaced. */
enum { SAMPLE = 20000 };

/* log(exp a + exp b) */
static double log_add(double a, double b)
{
    double most = fmax(a, b);
    return most + log1p(exp(-fabs(a - b)));
}

/* The logarithm of the odds that the customer has left, as the last event was the last one. */
static double log_odds_left(const lp_bg_nbd *m, double x, double recency, double age)
{
    return log(m->a) - log(m->b + x - 1) + (m->r + x) * (log(m->alpha + age) - log(m->alpha + recency));
}

double lp_bg_nbd_log_likelihood(const lp_bg_nbd *m, const lp_return_case *one)
{
    double x = one->frequency, age = one->age / m->unit, recency = one->recency / m->unit;
    double common = lgamma(m->r + x) - lgamma(m->r) + m->r * log(m->alpha) + lgamma(m->a + m->b) + lgamma(m->b + x) -
                    lgamma(m->b) - lgamma(m->a + m->b + x);
    double stays = -(m->r + x) * log(m->alpha + age);
    return common + (x > 0 ? log_add(stays, stays + log_odds_left(m, x, recency, age)) : stays);
}

double lp_bg_nbd_alive(const lp_bg_nbd *m, const lp_return_case *one)
{
    if (!(one->frequency > 0))
        return 1;
    return 1 / (1 + exp(log_odds_left(m, one->frequency, one->recency / m->unit, one->age / m->unit)));
}

double lp_bg_nbd_chance(const lp_bg_nbd *m, const lp_return_case *one, double horizon)
{
    double from = m->alpha + one->age / m->unit;
    return lp_bg_nbd_alive(m, one) * -expm1((m->r + one->frequency) * log(from / (from + horizon / m->unit)));
}

/* Gauss's hypergeometric function by its series, for 0 <= z < 1. */
static double hypergeometric(double a, double b, double c, double z)
{
    double term = 1, sum = 1;
    for (int k = 0; k < 100000 && fabs(term) > 1e-13 * fabs(sum); k++) {
        term *= (a + k) * (b + k) / ((c + k) * (k + 1)) * z;
        sum += term;
    }
    return sum;
}

double lp_bg_nbd_events(const lp_bg_nbd *m, const lp_return_case *one, double horizon)
{
    double x = one->frequency, from = m->alpha + one->age / m->unit, t = horizon / m->unit;
    double a = fabs(m->a - 1) < 1e-6 ? 1 + 1e-6 : m->a; /* the limit is finite */
    double rest =
        pow(from / (from + t), m->r + x) * hypergeometric(m->r + x, m->b + x, a + m->b + x - 1, t / (from + t));
    return lp_bg_nbd_alive(m, one) * (a + m->b + x - 1) / (a - 1) * (1 - rest);
}

/* ---------------------------------------------------------------------------------------------------- fit ----- */

typedef struct fitting {
    const lp_return_case *cases;
    int64_t count, step;
    double unit;
} fitting;

static lp_bg_nbd model_at(const fitting *f, const double at[PARAMETERS])
{
    return (lp_bg_nbd){exp(at[0]), exp(at[1]), exp(at[2]), exp(at[3]), f->unit};
}

/* Minus the log likelihood per history; parameters beyond exp(-12) .. exp(12) are refused. */
static double loss_at(const fitting *f, const double at[PARAMETERS])
{
    lp_bg_nbd model = model_at(f, at);
    double sum = 0, count = 0;
    for (int p = 0; p < PARAMETERS; p++)
        if (!(fabs(at[p]) < 12))
            return DBL_MAX;
    for (int64_t i = 0; i < f->count; i += f->step) {
        sum -= lp_bg_nbd_log_likelihood(&model, &f->cases[i]);
        count++;
    }
    return isfinite(sum) ? sum / count : DBL_MAX;
}

/* A point on the line from the worst corner through the center of the others. */
static double reflect(const fitting *f, const double center[PARAMETERS], const double worst[PARAMETERS], double factor,
                      double point[PARAMETERS])
{
    for (int p = 0; p < PARAMETERS; p++)
        point[p] = center[p] + factor * (worst[p] - center[p]);
    return loss_at(f, point);
}

/* Nelder and Mead's simplex, in the logarithms of the parameters. */
lp_bg_nbd lp_bg_nbd_fit(const lp_return_case *cases, int64_t count)
{
    fitting f = {.cases = cases, .count = count, .step = count / SAMPLE + 1};
    double at[CORNERS][PARAMETERS] = {{0}}, loss[CORNERS], age = 0;
    for (int64_t i = 0; i < count; i++)
        age += cases[i].age / (double)count;
    f.unit = fmax(age / 10, 1e-9);
    for (int c = 0; c < CORNERS; c++) {
        if (c > 0)
            at[c][c - 1] = 1;
        loss[c] = loss_at(&f, at[c]);
    }
    int best = 0;
    for (int step = 0; step < STEPS; step++) {
        double center[PARAMETERS] = {0}, point[PARAMETERS], further[PARAMETERS];
        int worst = 0, second = -1;
        best = 0;
        for (int c = 1; c < CORNERS; c++) {
            best = loss[c] < loss[best] ? c : best;
            worst = loss[c] > loss[worst] ? c : worst;
        }
        for (int c = 0; c < CORNERS; c++)
            second = c != worst && (second < 0 || loss[c] > loss[second]) ? c : second;
        if (loss[worst] - loss[best] < 1e-10)
            break;
        for (int c = 0; c < CORNERS; c++)
            for (int p = 0; p < PARAMETERS && c != worst; p++)
                center[p] += at[c][p] / PARAMETERS;
        double value = reflect(&f, center, at[worst], -1, point), other = DBL_MAX;
        if (value < loss[best])
            other = reflect(&f, center, at[worst], -2, further);
        else if (!(value < loss[second]))
            other = reflect(&f, center, at[worst], 0.5, further);
        bool moved = value < loss[second] || other < loss[worst];
        memcpy(at[worst], other < value ? further : point, moved ? sizeof point : 0);
        loss[worst] = moved ? fmin(value, other) : loss[worst];
        for (int c = 0; c < CORNERS && !moved; c++)
            if (c != best)
                loss[c] = reflect(&f, at[best], at[c], 0.5, at[c]);
    }
    return model_at(&f, at[best]);
}
