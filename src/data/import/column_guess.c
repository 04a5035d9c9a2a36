/* column_guess.c: see column_guess.h. Each column gets points for each role, from its name and from its values; the user and the
 * event are chosen as the pair that fits best together: an event varies within a user and repeats across users. A lead of less than
 * LEAD points, or a column with too few points, makes a question. With few rows the values say little. */
#include "data/import/column_guess.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/import/column_names.h"
#include "data/import/column_values.h"
#include "data/import/column_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENOUGH_ROWS = 20, BEST_COUNT = 8 };
static const double lead = 1.0;
static const double enough[3] = {4, 4, 3}; /* [lapse_column_role]: points of a column that is certain */
static const double out = -100;            /* points of a column that cannot have a role */

typedef struct candidate {
    int64_t column;
    double points, name;
} candidate;

/* The best columns of a role, best first. */
typedef struct candidates {
    candidate best[BEST_COUNT];
    int count;
} candidates;

typedef struct guesser {
    const lp_guess_input *input;
    lp_table_values table;
    double sure; /* 0 to 1: how much values mean */
    candidates role[3];
} guesser;

static double part(int64_t of, int64_t all)
{
    return all > 0 ? (double)of / (double)all : 0;
}

/* ------------------------------------------------------------------------------------------------- points ---- */

static bool is_time(const lp_column_values *v)
{
    return v->time && v->look.unit != LP_TIME_RELATIVE;
}

/* Numbers that are seconds, milliseconds, ... of the years 1990 to 2050. */
static bool is_recent(const lp_column_values *v)
{
    return v->first >= 631152000.0 && v->last <= 2524608000.0;
}

static double sequence_values(const guesser *g, const lp_column_values *v, double name)
{
    double rows_each = part(v->filled, v->distinct), points = 0;
    bool few = g->table.rows < ENOUGH_ROWS;
    if (v->filled == v->distinct && v->filled > 1)
        points -= few ? 0.5 : g->table.rows < 100 ? 5 : 9; /* the id of a row */
    else
        points += rows_each >= 3 ? 3 : rows_each >= 1.5 ? 2 : -1;
    if (v->distinct == 1)
        points -= 3;
    else if (v->distinct < 10 && rows_each > 30)
        points -= 3;
    points -= (name >= 5 ? 1 : 8) * part(v->fractions, v->filled);
    points -= part(v->words, v->filled) > 3 ? 4 : 0;
    points += v->distinct >= 5 ? 1 : 0;
    bool coded = v->codes * 10 >= v->filled * 9;
    points += coded ? 1.5 : 0;
    if (!coded && v->distinct < 15 && g->table.rows >= 100)
        points -= 1.5;
    return points;
}

static double sequence_points(const guesser *g, const lp_column_values *v, double name)
{
    if (g->table.rows > 0 && v->filled == 0)
        return name >= LP_NAME_USUAL ? name - 4 : out;
    double points =
        name + g->sure * sequence_values(g, v, name) - 6 * (1 - part(v->filled, g->table.rows)) * (g->table.rows > 0);
    bool epoch = is_time(v) && (v->look.unit < LP_TIME_COMPACT || v->look.unit == LP_TIME_UNCERTAIN) &&
                 (v->numbers == 0 || (is_recent(v) && v->look.unit != LP_TIME_EXCEL && v->rising > 0.8));
    return epoch ? points - 9 : points;
}

static double event_values(const lp_column_values *v, double name)
{
    double points = 0, different = part(v->distinct, v->filled);
    if (v->distinct == 1 && v->filled > 1)
        points -= 9;
    else if (different >= 1)
        points -= name >= LP_NAME_USUAL ? 2 : 6;
    else
        points += v->distinct == 2                      ? -0.5
                  : different > 0.6                     ? -1
                  : different > 0.3                     ? 1
                  : v->distinct < 5 && v->filled >= 100 ? 2
                                                        : 3;
    if (name >= LP_NAME_USUAL && v->distinct > 1 && different < 1)
        points += 5; /* the items of a large catalogue repeat less than their categories do */
    points -= 7 * part(v->fractions, v->filled);
    points -= part(v->numbers - v->fractions, v->filled) * (name >= 3 ? 0 : 1.5);
    points -= part(v->words, v->filled) > 5 && different > 0.5 ? 5 : 0;
    points += part(v->texts, v->filled) >= 0.5 ? 1 : 0;
    points += part(v->paths, v->filled) >= 0.5 ? 1 : 0;
    points -= v->replies == v->filled && v->distinct <= 20 ? 4 : 0;
    points += part(v->filled - v->codes, v->filled) >= 0.5 && v->fractions == 0 ? 1 : 0;
    return points;
}

static double event_points(const guesser *g, const lp_column_values *v, double name)
{
    if (g->table.rows > 0 && v->filled == 0)
        return name >= LP_NAME_USUAL ? name - 4 : out;
    double points =
        name + g->sure * event_values(v, name) - 3 * (1 - part(v->filled, g->table.rows)) * (g->table.rows > 0);
    bool epoch = is_time(v) && (v->numbers == 0 || (is_recent(v) && v->look.unit != LP_TIME_EXCEL));
    return points - (epoch ? 8 : 0) - (v->look.clock_only * 2 > v->filled ? 8 : 0);
}

static double time_values(const guesser *g, const lp_column_values *v, double name)
{
    double points = 0;
    bool number = v->numbers * 2 > v->filled;
    if (!number)
        points += 3;
    else if (v->look.unit == LP_TIME_RELATIVE)
        points -= name <= 0 || (g->input->named && g->table.rows >= ENOUGH_ROWS && v->distinct == v->filled &&
                                v->last - v->first == (double)(v->filled - 1))
                      ? 5
                      : 0.5; /* or 1, 2, 3 */
    else if (v->look.unit == LP_TIME_EXCEL)
        points += 2;
    else
        points += is_recent(v) || v->look.unit == LP_TIME_COMPACT ? 3 : -3;
    if (v->distinct == 1 && v->filled > 1)
        points -= 4 * g->sure;
    double sorted = v->rising > v->falling ? v->rising : v->falling;
    points += g->sure * (sorted >= 0.95 ? 2 : sorted >= 0.8 ? 1 : 0);
    points += v->look.clocks * 2 > v->filled ? 0.5 : -0.5;
    return points;
}

static double time_points(const guesser *g, const lp_column_values *v, double name)
{
    if (g->table.rows == 0)
        return name > 0 ? name : out;
    if (!v->time) /* a usual name whose values are not times is an error at its first row */
        return name >= LP_NAME_USUAL && v->look.clock_only * 2 < v->filled + 1 ? name - 6 : out;
    double points = name + time_values(g, v, name) - 3 * (1 - part(v->filled, g->table.rows));
    return v->look.unit == LP_TIME_RELATIVE && v->clock_digits ? points - 8 : points; /* 0815: a time of day */
}

static void keep(candidates *list, candidate next)
{
    if (list->count == BEST_COUNT && list->best[BEST_COUNT - 1].points >= next.points)
        return;
    int at = list->count < BEST_COUNT ? list->count++ : BEST_COUNT - 1;
    for (; at > 0 && list->best[at - 1].points < next.points; at--)
        list->best[at] = list->best[at - 1];
    list->best[at] = next;
}

static void rate_columns(guesser *g, lapse_column_role role)
{
    const lp_guess_input *input = g->input;
    double (*const points[])(const guesser *, const lp_column_values *,
                             double) = {[LAPSE_COLUMN_SEQUENCE] = sequence_points,
                                        [LAPSE_COLUMN_TIME] = time_points,
                                        [LAPSE_COLUMN_EVENT] = event_points};
    if (input->given[role] >= 0) {
        keep(&g->role[role], (candidate){input->given[role], 100, 10});
        return;
    }
    for (int64_t i = 0; i < input->columns->count; i++) {
        double name = input->named         ? lp_column_words(input->columns->name[i], role)
                      : i == (int64_t)role ? (i == 0 ? 2 : 1)
                                           : 0;
        if (input->taken[i])
            continue;
        double found = points[role](g, &g->table.columns[i], name) - 6 * input->used[i];
        /* With values that say nothing, a column needs a name. */
        if (found > out / 2 && (g->table.rows >= ENOUGH_ROWS || name > 0 || !input->named ||
                                (role == LAPSE_COLUMN_TIME && is_time(&g->table.columns[i]))))
            keep(&g->role[role], (candidate){i, found, name});
    }
}

/* -------------------------------------------------------------------------------------------------- times ---- */

/* Whether the times of `a` are those of `b` or a little before, in nearly all rows: `b` is the end, or the processing. */
static bool comes_before(const guesser *g, int64_t a, int64_t b)
{
    const lp_column_values *va = &g->table.columns[a], *vb = &g->table.columns[b];
    int64_t both = 0, before = 0, same = 0;
    if (!is_time(va) || !is_time(vb))
        return false;
    for (int64_t row = 0; va->time && vb->time && row < g->table.rows; row++) {
        if (isnan(va->time[row]) || isnan(vb->time[row]))
            continue;
        both++;
        before += va->time[row] <= vb->time[row] && vb->time[row] - va->time[row] < 3e7; /* a year */
        same += va->time[row] == vb->time[row];
    }
    return both >= ENOUGH_ROWS && before * 20 >= both * 19 && same * 2 < both;
}

/* Whether the dates of `date` are the days of the times in `full`. */
static bool is_day_of(const guesser *g, int64_t date, int64_t full)
{
    const lp_column_values *vd = &g->table.columns[date], *vf = &g->table.columns[full];
    if (!vd->time || !vf->time || vd->look.clocks > 0 || vf->look.clocks * 2 < vf->filled)
        return false;
    int64_t both = 0, near = 0;
    for (int64_t row = 0; row < g->table.rows; row++) {
        both += !isnan(vd->time[row]) && !isnan(vf->time[row]);
        near += fabs(vf->time[row] - vd->time[row]) <= 129600;
    }
    return both > 0 && near * 20 >= both * 19;
}

static void prefer_times(guesser *g)
{
    candidates *times = &g->role[LAPSE_COLUMN_TIME];
    for (int a = 0; a < times->count; a++)
        for (int b = 0; b < times->count; b++) {
            if (a == b)
                continue;
            int64_t first = times->best[a].column, second = times->best[b].column;
            bool day = is_day_of(g, first, second);
            if (day)
                times->best[a].points -= 3;
            else if (comes_before(g, first, second) && !is_day_of(g, second, first))
                times->best[b].points -= 2.5;
        }
    for (int a = 1; a < times->count; a++)
        for (int b = a; b > 0 && times->best[b].points > times->best[b - 1].points; b--) {
            candidate swap = times->best[b];
            times->best[b] = times->best[b - 1];
            times->best[b - 1] = swap;
        }
}

/* A column with times of day, if the times that were chosen are dates alone: the next to them, or the best named. */
static int64_t find_clock(const guesser *g, int64_t time)
{
    const lp_guess_input *input = g->input;
    int64_t found = -1;
    if (!input->clocks || time < 0 || g->table.rows == 0 || !g->table.columns[time].time)
        return -1;
    const lp_column_values *date = &g->table.columns[time];
    bool digits = date->look.unit == LP_TIME_COMPACT && date->example_end - date->example == 8; /* 20261115 */
    if (date->look.clocks > 0 || (date->numbers > 0 && !digits))
        return -1;
    for (int64_t i = 0; i < input->columns->count; i++) {
        const lp_column_values *v = &g->table.columns[i];
        bool near = found < 0 || (i > time && found < time);
        bool named = input->named && lp_column_words(input->columns->name[i], LAPSE_COLUMN_TIME) > 0;
        bool clock = v->look.clock_only * 10 >= v->filled * 9 && (v->texts > 0 || v->numbers < v->filled || named);
        if (!input->taken[i] && v->filled > 0 && near && (clock || (named && v->clock_digits)))
            found = i;
    }
    return found;
}

/* -------------------------------------------------------------------------------------------------- pairs ---- */

static bool pair_points(const guesser *g, int64_t user, int64_t event, double *points)
{
    lp_column_pair pair;
    const lp_column_values *u = &g->table.columns[user], *e = &g->table.columns[event];
    *points = 0;
    if (g->table.rows < ENOUGH_ROWS)
        return true;
    if (!lp_column_pair_of(u, e, g->table.rows, &pair))
        return false;
    if (u->distinct < u->filled)
        *points += pair.varies < 0.1 ? -6 : pair.varies > 0.5 ? 1 : 0;
    *points += u->distinct > 1 ? 2 * pair.shared : 0;
    return true;
}

static bool usual(const guesser *g, int64_t column, lp_name_match *match)
{
    *match = g->input->named ? lp_column_name_match(g->input->columns->name[column], LAPSE_COLUMN_EVENT)
                             : (lp_name_match){.rank = -1};
    return match->rank >= 0 && !match->weak;
}

/* Whether two columns of a role are an action and an item, both by usual names: neither is better. */
static bool tied_events(const guesser *g, const candidate *a, const candidate *b)
{
    lp_name_match first, second;
    if (!usual(g, a->column, &first) || !usual(g, b->column, &second) || first.group == second.group)
        return false;
    const lp_column_values *va = &g->table.columns[a->column], *vb = &g->table.columns[b->column];
    return (va->distinct > 1 || va->filled < 2) == (vb->distinct > 1 || vb->filled < 2) && !g->input->used[a->column] &&
           !g->input->used[b->column];
}

static bool equivalent(const guesser *g, int64_t a, int64_t b, bool *same)
{
    lp_column_pair pair;
    *same = false;
    if (!lp_column_pair_of(&g->table.columns[a], &g->table.columns[b], g->table.rows, &pair))
        return false;
    *same = pair.one_to_one && g->table.columns[a].filled > 0 && g->table.columns[b].filled > 0;
    return true;
}

/* Whether the values alone say that a column names users: many codes, each in several rows. */
static bool looks_like_ids(const guesser *g, int64_t column)
{
    const lp_column_values *v = &g->table.columns[column];
    return g->input->named && g->table.rows >= 100 && v->distinct >= 10 && v->codes * 10 >= v->filled * 9 &&
           v->fractions == 0 && v->filled >= 3 * (int64_t)v->distinct;
}

/* Chooses the user and the event together, and the runner-up of each. */
static bool choose_pair(const guesser *g, lp_column_guess *guess)
{
    const candidates *users = &g->role[LAPSE_COLUMN_SEQUENCE], *events = &g->role[LAPSE_COLUMN_EVENT];
    double total[BEST_COUNT + 1][BEST_COUNT + 1], best = 2 * out;
    int u_best = -1, e_best = -1;
    for (int u = 0; u < users->count; u++)
        for (int e = 0; e < events->count; e++) {
            double pair = out;
            if (users->best[u].column != events->best[e].column &&
                !pair_points(g, users->best[u].column, events->best[e].column, &pair))
                return false;
            total[u][e] = users->best[u].points + events->best[e].points + pair;
            if (total[u][e] > best) {
                best = total[u][e];
                u_best = u;
                e_best = e;
            }
        }
    lp_role_guess *user = &guess->role[LAPSE_COLUMN_SEQUENCE], *event = &guess->role[LAPSE_COLUMN_EVENT];
    if (u_best < 0 || best < out / 2) { /* no two columns */
        user->column = users->count ? users->best[0].column : -1;
        event->column = events->count && events->best[0].column != user->column ? events->best[0].column : -1;
        return true;
    }
    user->column = users->best[u_best].column;
    event->column = events->best[e_best].column;
    bool user_named = users->best[u_best].name >= LP_NAME_USUAL,
         event_named = events->best[e_best].name >= LP_NAME_USUAL;
    bool few = g->table.rows < ENOUGH_ROWS; /* then a name must do */
    user->close = !user_named && ((users->best[u_best].name <= 0 && !looks_like_ids(g, user->column)) ||
                                  (!few && users->best[u_best].points < enough[LAPSE_COLUMN_SEQUENCE]));
    event->close = !event_named && !(few && events->best[e_best].name >= 2) &&
                   events->best[e_best].points < enough[LAPSE_COLUMN_EVENT];
    double second = 2 * out;
    for (int u = 0; u < users->count; u++)
        for (int e = 0; e < events->count; e++) {
            bool same;
            if (u == u_best || total[u][e] <= second || total[u][e] < -20)
                continue;
            if (!equivalent(g, users->best[u].column, user->column, &same))
                return false;
            second = total[u][e];
            bool rival = users->best[u].name > 0 && users->best[u].column != event->column;
            user->runner_up =
                rival || user->close || best - second < 2 * lead ? users->best[u].column : user->runner_up;
            double needed = users->best[u_best].name > 0 ? lead : 2 * lead;
            user->close = user->close || (!same && best - second < needed && (!user_named || users->best[u].name > 0));
        }
    second = 2 * out;
    for (int e = 0; e < events->count; e++)
        for (int u = 0; u < users->count; u++) {
            bool same, tied = e != e_best && tied_events(g, &events->best[e], &events->best[e_best]);
            if (e == e_best || total[u][e] < -20 || (total[u][e] <= second && !tied) || event->tied)
                continue;
            if (!equivalent(g, events->best[e].column, event->column, &same))
                return false;
            second = total[u][e];
            bool rival = events->best[e].name > 0 && events->best[e].column != user->column;
            /* buy and sell: of what may be the event */
            bool both = g->table.columns[event->column].distinct == 2 &&
                        events->best[e].points > enough[LAPSE_COLUMN_EVENT] + lead;
            double needed = both ? HUGE_VAL : lead;
            event->runner_up =
                tied || rival || event->close || best - second < needed ? events->best[e].column : event->runner_up;
            event->tied = tied;
            event->close = event->close || event->tied ||
                           (!same && best - second < needed && (!event_named || both || events->best[e].name > 0));
        }
    return true;
}

/* ------------------------------------------------------------------------------------------------ reasons ---- */

static void explain(const guesser *g, lapse_column_role role, lp_role_guess *guess)
{
    static const char *const nouns[] = {"a user", "a time", "an event"};
    if (guess->column < 0)
        return;
    const lp_column_values *v = &g->table.columns[guess->column];
    bool given = g->input->given[role] >= 0;
    double name = g->input->named ? lp_column_words(g->input->columns->name[guess->column], role) : 0;
    char values[80] = "no values";
    if (v->filled > 0 && role == LAPSE_COLUMN_TIME && v->time)
        snprintf(values, sizeof values, "%s%s", lp_time_unit_text(v->look.unit),
                 v->rising >= 0.95 || v->falling >= 0.95 ? ", sorted" : "");
    else if (v->filled > 0)
        snprintf(values, sizeof values, "%" PRId32 " value%s in %" PRId64 " row%s", v->distinct,
                 v->distinct == 1 ? "" : "s", v->filled, v->filled == 1 ? "" : "s");
    snprintf(guess->reason, sizeof guess->reason, "%s%s%s%s", given ? "given; " : "",
             !given && name > 0 ? "named like " : "", !given && name > 0 ? nouns[role] : "",
             !given && name > 0 ? "; " : "");
    size_t used = strlen(guess->reason);
    snprintf(guess->reason + used, sizeof guess->reason - used, "%s", values);
    char shown[LP_EXCERPT_SIZE];
    if (v->example)
        snprintf(guess->sample, sizeof guess->sample, "%s", lp_text_excerpt(v->example, v->example_end, shown));
}

static void choose_time(guesser *g, lp_column_guess *guess)
{
    const candidates *times = &g->role[LAPSE_COLUMN_TIME];
    lp_role_guess *time = &guess->role[LAPSE_COLUMN_TIME];
    if (times->count == 0)
        return;
    time->column = times->best[0].column;
    time->runner_up = times->count > 1 && times->best[1].points > 0 ? times->best[1].column : -1;
    bool given = g->input->given[LAPSE_COLUMN_TIME] >= 0;
    bool named = times->best[0].name >= LP_NAME_USUAL,
         alone = times->count == 1 || times->best[1].points < enough[LAPSE_COLUMN_TIME];
    bool near = times->count > 1 && times->best[0].points - times->best[1].points < lead;
    time->close =
        !given &&
        (named ? near && times->best[1].points > times->best[1].name && times->best[0].points < times->best[0].name
               : near || (times->best[0].points < enough[LAPSE_COLUMN_TIME] && !(alone && times->best[0].name > 0)));
    if (g->input->clocks)
        guess->clock = given ? -1 : find_clock(g, time->column);
}

bool lp_column_guess_roles(const lp_guess_input *input, lp_column_guess *guess)
{
    guesser g = {.input = input};
    *guess = (lp_column_guess){.role = {{-1, -1, .close = false}, {-1, -1, .close = false}, {-1, -1, .close = false}},
                               .clock = -1};
    bool good = lp_table_values_init(&g.table, input->sample, input->columns->count);
    if (good) {
        g.sure = g.table.rows < ENOUGH_ROWS ? (double)g.table.rows / ENOUGH_ROWS * 0.5 : 1;
        rate_columns(&g, LAPSE_COLUMN_TIME);
        prefer_times(&g);
        choose_time(&g, guess);
        for (int role = 0; role < 3; role++)
            if (role != LAPSE_COLUMN_TIME)
                rate_columns(&g, (lapse_column_role)role);
        /* A column is the time, or another role, but not both. */
        for (int role = 0; role < 3; role++) {
            candidates *list = &g.role[role];
            for (int i = 0; role != LAPSE_COLUMN_TIME && i < list->count; i++)
                if (list->best[i].column == guess->role[LAPSE_COLUMN_TIME].column ||
                    list->best[i].column == guess->clock) {
                    memmove(&list->best[i], &list->best[i + 1], (size_t)(list->count - i - 1) * sizeof *list->best);
                    list->count--;
                    i--;
                }
        }
        good = choose_pair(&g, guess);
    }
    for (int role = 0; good && role < 3; role++)
        explain(&g, (lapse_column_role)role, &guess->role[role]);
    lp_table_values_clear(&g.table);
    return good;
}
