/* simulate_law.c: the probabilities of the law at each event, and the CSV files of events and probabilities.
 *
 * Probabilities are computed on demand and directly from the definition, over the user's earlier events. No code is
 * shared with the thinning algorithm, so that a mistake there is detected, and no events x types matrix has to fit
 * into memory.
 */
#include "simulate/simulate.h"

#include "base/file.h"
#include "simulate/simulate_goods.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_COLUMNS = 10000 };

void lp_simulation_intensities(const lapse_simulation *simulation, int64_t user, int64_t known, double time,
                               double *intensities)
{
    const lp_law *law = &simulation->law;
    double season = lp_law_seasonality_at(&law->seasonality, time - LP_SIMULATE_EPOCH);
    for (int32_t k = 0; k < law->type_count; k++)
        intensities[k] = law->types[k].base_rate * season;
    int64_t first = simulation->start[user];
    for (int64_t i = first; i < first + known; i++) {
        for (int32_t r = law->types[simulation->type[i]].first_excitation; r >= 0; r = law->excitations[r].next)
            intensities[law->excitations[r].target] +=
                lp_law_excitation_intensity(&law->excitations[r], time - simulation->time[i]);
    }
}

void lp_hawkes_probabilities(const lapse_simulation *simulation, int64_t user, int64_t event, double *probabilities)
{
    lp_simulation_intensities(simulation, user, event - simulation->start[user], simulation->time[event],
                              probabilities);
    double sum = 0;
    for (int32_t k = 0; k < simulation->law.type_count; k++)
        sum += probabilities[k];
    for (int32_t k = 0; k < simulation->law.type_count; k++)
        probabilities[k] /= sum;
}

void lp_simulation_probabilities(const lapse_simulation *simulation, int64_t user, int64_t event, double *probabilities)
{
    simulation->law.probabilities(simulation, user, event, probabilities);
}

/* The intensity of all types at the time, and its integral from the last event on, in closed form. */
lp_law_time lp_hawkes_next_time(const lapse_simulation *simulation, int64_t user, int64_t known, double t)
{
    const lp_law *law = &simulation->law;
    int64_t first = simulation->start[user], end = first + known;
    double from = simulation->time[end - 1], since = from - LP_SIMULATE_EPOCH, base_rate = 0;
    for (int32_t k = 0; k < law->type_count; k++)
        base_rate += law->types[k].base_rate;
    double intensity = base_rate * lp_law_seasonality_at(&law->seasonality, since + t);
    double integral = base_rate * lp_law_seasonality_integral(&law->seasonality, since, since + t);
    for (int64_t i = first; i < end; i++) {
        double lag = from - simulation->time[i];
        for (int32_t r = law->types[simulation->type[i]].first_excitation; r >= 0; r = law->excitations[r].next) {
            const lp_law_excitation *excitation = &law->excitations[r];
            if (lag > excitation->support)
                continue;
            intensity += lp_law_excitation_intensity(excitation, lag + t);
            integral += lp_law_excitation_integral(excitation, lag, lag + t);
        }
    }
    return (lp_law_time){.log_density = log(intensity) - integral, .log_survival = -integral};
}

lp_law_time lp_simulation_next_time(const lapse_simulation *simulation, int64_t user, int64_t known, double t)
{
    return simulation->law.next_time(simulation, user, known, t);
}

bool lp_simulation_future(const lapse_simulation *simulation, int64_t user, int64_t known, double from, double until,
                          lp_random *random, lp_future *future)
{
    return simulation->law.future(simulation, user, known, from, until, random, future);
}

bool lp_future_append(lp_future *future, double time, int32_t type)
{
    size_t count = (size_t)future->count + 1;
    if (!lp_reserve(&future->time, &future->time_capacity, count, sizeof *future->time) ||
        !lp_reserve(&future->type, &future->type_capacity, count, sizeof *future->type))
        return false;
    future->time[future->count] = time;
    future->type[future->count++] = type;
    return true;
}

void lp_future_clear(lp_future *future)
{
    lp_free(future->time);
    lp_free(future->type);
    lp_free(future->scratch);
    *future = (lp_future){0};
}

const char *lp_simulation_type_name(const lapse_simulation *simulation, int32_t type, lp_type_part part,
                                    char out[LP_SIMULATE_NAME_SIZE])
{
    const lp_law *law = &simulation->law;
    if (law->types)
        return part == LP_TYPE_PAIR   ? law->types[type].name
               : part == LP_TYPE_ITEM ? law->types[type].item
                                      : law->types[type].action;
    int32_t items = simulation->goods->item_count;
    const char *action = law->actions[type / items];
    if (part == LP_TYPE_ACTION)
        return action;
    snprintf(out, LP_SIMULATE_NAME_SIZE, "%s%si%d", part == LP_TYPE_PAIR ? action : "", part == LP_TYPE_PAIR ? " " : "",
             (int)(type % items) + 1);
    return out;
}

const char *lp_simulation_user_name(int64_t user, char out[LP_SIMULATE_NAME_SIZE])
{
    snprintf(out, LP_SIMULATE_NAME_SIZE, "u%lld", (long long)user + 1);
    return out;
}

int64_t lp_simulation_user_find(const lapse_simulation *simulation, const char *name)
{
    if (name[0] != 'u' || name[1] < '1' || name[1] > '9')
        return -1;
    char *end;
    long long number = strtoll(name + 1, &end, 10);
    return (*end == 0 || *end == '/') && number <= simulation->sequence_count ? number - 1 : -1;
}

int64_t lp_simulation_event_find(const lapse_simulation *simulation, int64_t user, double time)
{
    int64_t low = simulation->start[user], end = simulation->start[user + 1], high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (simulation->time[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && simulation->time[low] == time ? low : -1;
}

static lapse_status write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error)
{
    char name[LP_SIMULATE_NAME_SIZE];
    bool actions = simulation->law.types[0].action != NULL;
    LP_TRY(lp_writer_print(writer, error, actions ? "user,time,item,action,category\n" : "user,time,event\n"));
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        lp_simulation_user_name(user, name);
        for (int64_t i = simulation->start[user]; i < simulation->start[user + 1]; i++) {
            const lp_law_type *type = &simulation->law.types[simulation->type[i]];
            LP_TRY(lp_writer_print(writer, error, "%s,%.3f,%s", name, simulation->time[i], type->item));
            if (actions)
                LP_TRY(lp_writer_print(writer, error, ",%s,%s", type->action, type->category));
            LP_TRY(lp_writer_print(writer, error, "\n"));
        }
    }
    return LAPSE_OK;
}

/* probabilities: scratch of law.type_count elements. */
static lapse_status write_probabilities(lp_writer *writer, const lapse_simulation *simulation, double *probabilities,
                                        lapse_error *error)
{
    const lp_law *law = &simulation->law;
    char name[LP_SIMULATE_NAME_SIZE], type[LP_SIMULATE_NAME_SIZE];
    LP_TRY(lp_writer_print(writer, error, "user,time,event"));
    for (int32_t k = 0; k < law->type_count; k++)
        LP_TRY(lp_writer_print(writer, error, ",%s", lp_simulation_type_name(simulation, k, LP_TYPE_PAIR, type)));
    LP_TRY(lp_writer_print(writer, error, "\n"));
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        lp_simulation_user_name(user, name);
        for (int64_t i = simulation->start[user]; i < simulation->start[user + 1]; i++) {
            lp_simulation_probabilities(simulation, user, i, probabilities);
            LP_TRY(lp_writer_print(writer, error, "%s,%.3f,%s", name, simulation->time[i],
                                   lp_simulation_type_name(simulation, simulation->type[i], LP_TYPE_PAIR, type)));
            for (int32_t k = 0; k < law->type_count; k++)
                LP_TRY(lp_writer_print(writer, error, ",%.6g", probabilities[k]));
            LP_TRY(lp_writer_print(writer, error, "\n"));
        }
    }
    return LAPSE_OK;
}

static lapse_status write_law(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error)
{
    size_t types = (size_t)simulation->law.type_count;
    double *probabilities = lp_alloc(types, sizeof *probabilities);
    if (!probabilities)
        return lp_fail_memory(error, "the law's probabilities", types * sizeof *probabilities);
    lapse_status status = write_probabilities(writer, simulation, probabilities, error);
    lp_free(probabilities);
    return status;
}

static lapse_status save(const lapse_simulation *simulation, const char *path,
                         lapse_status (*write)(lp_writer *, const lapse_simulation *, lapse_error *),
                         lapse_error *error)
{
    lp_writer writer;
    LP_TRY(lp_writer_open(&writer, path, error));
    lapse_status status = write(&writer, simulation, error);
    if (status == LAPSE_OK)
        return lp_writer_commit(&writer, error);
    lp_writer_abandon(&writer);
    return status;
}

lapse_status lapse_simulation_save(const lapse_simulation *simulation, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, simulation, path);
    bool sessions = simulation->goods && simulation->law.actions;
    return save(simulation, path,
                sessions            ? lp_sessions_write_events
                : simulation->goods ? lp_goods_write_events
                                    : write_events,
                error);
}

lapse_status lapse_simulation_save_catalogue(const lapse_simulation *simulation, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, simulation, path);
    if (!simulation->goods)
        return lp_fail(error, LAPSE_ERROR_USAGE, "only the presets 'catalogue' and 'sessions' have an item catalogue");
    return save(simulation, path, lp_goods_write, error);
}

lapse_status lp_simulation_require_law(const lapse_simulation *simulation, const char *what, lapse_error *error)
{
    if (simulation->law.probabilities)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the preset 'catalogue' has no %s, because its law has no closed form; use another preset", what);
}

lapse_status lp_simulation_require_next_time(const lapse_simulation *simulation, lapse_error *error)
{
    if (simulation->law.next_time)
        return LAPSE_OK;
    return lp_fail(
        error, LAPSE_ERROR_USAGE,
        "the preset 'catalogue' has no law of the time of the next event, because it has no closed form; use "
        "another preset");
}

lapse_status lp_simulation_require_future(const lapse_simulation *simulation, lapse_error *error)
{
    if (simulation->law.future)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "only the preset 'shop' draws futures from its law");
}

lapse_status lapse_simulation_save_law(const lapse_simulation *simulation, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, simulation, path);
    LP_TRY(lp_simulation_require_law(simulation, "table of probabilities", error));
    if (simulation->law.type_count > MOST_COLUMNS)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "a table of probabilities has one column for each of the %d event types, and at most %d: simulate "
            "fewer items, or score the law instead of writing it",
            (int)simulation->law.type_count, MOST_COLUMNS);
    return save(simulation, path, write_law, error);
}
