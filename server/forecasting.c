/* forecasting.c: see forecasting.h. The histories become a dataset, which the library forecasts as `lapse forecast` does: from
 * their last events, or from `now` on. */
#define _GNU_SOURCE /* memfd_create */
#include "forecasting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAMPLES = 100, SAMPLES_MAX = 1000, TYPES = 10, EVENTS_DRAWN = 2000000 };

/* clang-format off */
const srv_member srv_forecast_members[] = {
    {.name = "history", .types = SRV_STRING | SRV_ARRAY, .element = SRV_STRING, .most = 100, .help = "stored histories"},
    {.name = "events", .types = SRV_ARRAY, .element = SRV_OBJECT | SRV_ARRAY, .members = srv_event_members,
     .most = SRV_EVENTS_MAX, .help = "instead: the history of a new user, or an array of such histories"},
    {.name = "horizon", .types = SRV_STRING | SRV_NUMBER, .required = true, .help = "how far to look ahead, such as 30d"},
    {.name = "now", .types = SRV_STRING | SRV_NUMBER, .help = "nothing has happened until then; default: the last event"},
    {.name = "samples", .types = SRV_WHOLE, .low = 1, .high = SAMPLES_MAX, .help = "futures of each history (100)"},
    {.name = "seed", .types = SRV_WHOLE, .low = 0, .high = 9007199254740992.0, .help = "of the draws (1)"},
    {0},
};

static const srv_member type_members[] = {
    {.name = "event", .types = SRV_STRING, .required = true},
    {.name = "events", .types = SRV_NUMBER, .required = true, .help = "expected number"},
    {.name = "any", .types = SRV_NUMBER, .required = true, .help = "probability of at least one"},
    {0},
};

static const srv_member future_members[] = {
    {.name = "history", .types = SRV_STRING | SRV_NULL, .required = true},
    {.name = "samples", .types = SRV_WHOLE, .required = true, .help = "futures drawn; 0: the model knows no event"},
    {.name = "events", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "expected number of events"},
    {.name = "low", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "10 % quantile"},
    {.name = "high", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "90 % quantile"},
    {.name = "any", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "probability of at least one event"},
    {.name = "types", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = type_members, .required = true,
     .help = "the ten event types with the highest expected numbers"},
    {0},
};

const srv_member srv_forecast_response[] = {
    {.name = "answers", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = future_members, .required = true},
    {.name = "model", .types = SRV_STRING, .required = true, .help = "fingerprint"},
    {0},
};
/* clang-format on */

/* Rows "index","time","event" of the events that the model knows. */
static void write_rows(srv_text *out, const srv_subject *s, int index, const lapse_model *model)
{
    for (int64_t i = 0; i < s->own.count; i++) {
        const char *name = s->own.items[i].text + s->own.items[i].name;
        if (lapse_model_event_type_find(model, name) < 0)
            continue;
        srv_text_format(out, "%d,%.17g,\"", index, s->own.items[i].time);
        for (; *name; name++)
            srv_text_bytes(out, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
        srv_text_add(out, "\"\n");
    }
}

static bool make_dataset(const srv_text *rows, lapse_dataset **data, lapse_error *error)
{
    char path[64];
    lapse_import_options options;
    int handle = memfd_create("lapse-forecast", MFD_CLOEXEC);
    bool good = handle >= 0 && write(handle, rows->data, rows->size) == (ssize_t)rows->size;
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    lapse_import_options_default(&options);
    options.input = path;
    options.sequence = "s";
    options.time = "t";
    options.event = "e";
    options.time_unit = "s";
    options.threads = 1;
    *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
    good = good && lapse_dataset_read(&options, data, NULL, error) == LAPSE_OK;
    if (handle >= 0)
        close(handle);
    return good;
}

static void write_types(srv_text *out, const lapse_forecasts *f, int64_t row, const lapse_model *model)
{
    const double *expected = f->type_expected + row * f->type_count;
    double before = INFINITY;
    int64_t last = -1;
    for (int k = 0; k < TYPES; k++) { /* the next in the order of expected numbers, ties by index */
        int64_t best = -1;
        for (int64_t i = 0; i < f->type_count; i++)
            if ((expected[i] < before || (expected[i] == before && i > last)) &&
                (best < 0 || expected[i] > expected[best]))
                best = i;
        if (best < 0)
            break;
        srv_text_open(out, '{');
        srv_text_member(out, "event", lapse_model_event_type_name(model, best));
        srv_text_member_number(out, "events", expected[best]);
        srv_text_member_number(out, "any", f->type_any[row * f->type_count + best]);
        srv_text_close(out, '}');
        before = expected[best];
        last = best;
    }
}

/* Rows of the forecasts are the sequences of the dataset, which are named by the index of their subject. */
static void write_futures(srv_request *r, const srv_asked *a, const lapse_dataset *data, const lapse_forecasts *f,
                          const srv_model *model)
{
    srv_text *out = &r->out;
    int64_t row = 0, rows = data ? lapse_dataset_sequence_count(data) : 0;
    srv_text_add(out, "{\"answers\":[");
    for (int i = 0; i < a->subject_count; i++) {
        bool known = row < rows && strtol(lapse_dataset_sequence_name(data, row), NULL, 10) == i;
        srv_text_open(out, '{');
        srv_text_name(out, "history");
        if (a->subjects[i].name)
            srv_text_quote(out, a->subjects[i].name);
        else
            srv_text_add(out, "null");
        srv_text_member_whole(out, "samples", known ? f->samples[row] : 0);
        srv_text_member_number(out, "events", known ? f->count[row] : NAN);
        srv_text_member_number(out, "low", known ? f->low[row] : NAN);
        srv_text_member_number(out, "high", known ? f->high[row] : NAN);
        srv_text_member_number(out, "any", known ? f->any[row] : NAN);
        srv_text_name(out, "types");
        srv_text_open(out, '[');
        if (known)
            write_types(out, f, row++, model->model);
        srv_text_close(out, ']');
        srv_text_close(out, '}');
    }
    srv_text_close(out, ']');
    srv_text_member(out, "model", model->fingerprint_text);
    srv_text_close(out, '}');
    r->status = 200;
}

static bool read_options(const srv_request *r, lapse_forecast_options *o, srv_problem *problem)
{
    const json_t *now = json_object_get(r->json, "now"), *samples = json_object_get(r->json, "samples"),
                 *seed = json_object_get(r->json, "seed");
    lapse_forecast_options_default(o);
    o->samples = samples ? json_integer_value(samples) : SAMPLES;
    o->seed = seed ? (uint64_t)json_integer_value(seed) : o->seed;
    o->threads = 1;
    o->max_events = EVENTS_DRAWN;
    return srv_duration_read(json_object_get(r->json, "horizon"), "horizon", &o->horizon, problem) &&
           (!now || srv_time_read(now, "now", r->time, &o->now, problem));
}

void srv_forecast(srv_worker *w, srv_request *r)
{
    srv_asked a = {.request = r, .json = json_incref(r->json), .now = r->time};
    srv_lineup lineup = srv_registry_lineup(&w->server->registry);
    srv_text rows = {0};
    lapse_dataset *data = NULL;
    lapse_forecasts made = {0};
    lapse_forecast_options options;
    lapse_error error;
    srv_stored stored;
    srv_model *model = lineup.models[0];
    bool good = read_options(r, &options, &r->problem) && srv_ask_subjects(&a);
    srv_text_add(&rows, "s,t,e\n");
    for (int i = 0; good && i < a.subject_count; i++) {
        srv_subject *s = &a.subjects[i];
        if (s->name && !srv_store_read(&w->store, s->name, SRV_NEWEST, &s->own, &stored))
            good = srv_refuse(&r->problem, 503, NULL, "%s", w->store.message);
        else if (s->name)
            free(stored.root);
        write_rows(&rows, s, i, model->model);
    }
    if (!good)
        srv_fail_problem(r);
    else if (rows.size > 6 && (!make_dataset(&rows, &data, &error) ||
                               lapse_forecast(model->model, data, &options, &made, &error) != LAPSE_OK))
        srv_fail_error(r, NULL, &error);
    else
        write_futures(r, &a, data, &made, model);
    lapse_forecasts_clear(&made);
    lapse_dataset_close(data);
    srv_text_clear(&rows);
    srv_lineup_drop(&lineup);
    srv_ask_clear(&a);
}
