/* when_answers.c: see when_answers.h. */
#include "when_answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HORIZONS = 64 };

/* clang-format off */
static const srv_member type_members[] = {
    {.name = "event", .types = SRV_STRING, .required = true, .help = "event type"},
    {.name = "probability", .types = SRV_NUMBER, .required = true, .help = "that the next event comes by then and is of this type"},
    {0},
};

static const srv_member within_members[] = {
    {.name = "horizon", .types = SRV_NUMBER, .required = true, .help = "seconds after at"},
    {.name = "probability", .types = SRV_NUMBER, .required = true, .help = "that an event happens by then"},
    {.name = "types", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = type_members, .help = "of top: the most probable ones"},
    {0},
};

static const srv_member answer_members[] = {
    {.name = "history", .types = SRV_STRING | SRV_NULL, .required = true},
    {.name = "events", .types = SRV_WHOLE, .required = true, .help = "of the history that the model knows"},
    {.name = "last", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "time of the last of them"},
    {.name = "at", .types = SRV_NUMBER | SRV_NULL, .required = true, .help = "nothing has happened until then"},
    {.name = "model", .types = SRV_STRING, .required = true, .help = "fingerprint of the model"},
    {.name = "median", .types = SRV_NUMBER | SRV_NULL, .help = "time of the next event; null: it may never come"},
    {.name = "low", .types = SRV_NUMBER | SRV_NULL, .help = "10 % quantile"},
    {.name = "high", .types = SRV_NUMBER | SRV_NULL, .help = "90 % quantile"},
    {.name = "mean", .types = SRV_NUMBER, .help = "mean of that time, if the history goes on"},
    {.name = "alive", .types = SRV_NUMBER, .help = "probability that the history goes on"},
    {.name = "within", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = within_members},
    {.name = "problem", .types = SRV_STRING, .help = "why there is no answer"},
    {0},
};

const srv_member srv_when_response[] = {
    {.name = "answers", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = answer_members, .required = true},
    {.name = "target", .types = SRV_STRING, .required = true, .help = "time"},
    {.name = "answer", .types = SRV_STRING | SRV_NULL, .required = true, .help = "token for POST /v1/replay"},
    {0},
};
/* clang-format on */

bool srv_when_read(srv_asked *a)
{
    srv_problem *problem = &a->request->problem;
    const json_t *within = json_object_get(a->json, "within");
    a->horizons = calloc(HORIZONS, sizeof *a->horizons);
    for (size_t i = 0; a->horizons && i < json_array_size(within); i++) {
        char field[32];
        snprintf(field, sizeof field, "within[%zu]", i);
        if (!srv_duration_read(json_array_get(within, i), field, &a->horizons[a->horizon_count++], problem))
            return false;
    }
    for (int i = 0; i < a->subject_count; i++)
        if (!lapse_model_predicts_time(a->subjects[i].model->model))
            return srv_refuse(problem, 400, NULL, "the model does not predict times: train it with --when");
    return a->horizons || srv_refuse(problem, 503, NULL, "out of memory");
}

/* The most probable types of the next event, if it comes by `until`. */
static bool write_types(const srv_question *q, double until, int64_t top, srv_text *out, lapse_error *error)
{
    const lapse_model *model = q->subject->model->model;
    int64_t count = lapse_model_event_type_count(model);
    double *probabilities = malloc((size_t)count * sizeof *probabilities);
    if (!probabilities) {
        *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
        return false;
    }
    bool good = lapse_session_within(q->subject->session, q->at, until, probabilities, error) == LAPSE_OK;
    srv_text_name(out, "types");
    srv_text_open(out, '[');
    for (int64_t k = 0; good && k < top && k < count; k++) {
        int64_t best = 0;
        for (int64_t i = 1; i < count; i++)
            if (probabilities[i] > probabilities[best])
                best = i;
        srv_text_open(out, '{');
        srv_text_member(out, "event", lapse_model_event_type_name(model, best));
        srv_text_member_number(out, "probability", probabilities[best]);
        srv_text_close(out, '}');
        probabilities[best] = -1;
    }
    srv_text_close(out, ']');
    free(probabilities);
    return good;
}

bool srv_when_write(srv_asked *a, const srv_question *q, srv_text *out)
{
    static const double probabilities[] = {0.1, 0.5, 0.9};
    const int64_t top = json_integer_value(json_object_get(a->json, "top"));
    double alive, mean, quantiles[3], times[HORIZONS], cdf[HORIZONS];
    lapse_when when;
    lapse_error error;
    if (q->problem)
        return true;
    for (int i = 0; i < a->horizon_count; i++)
        times[i] = q->at + a->horizons[i];
    lapse_when_default(&when);
    when.now = q->at;
    when.probabilities = probabilities;
    when.probability_count = 3;
    when.quantiles = quantiles;
    when.alive = &alive;
    when.mean = &mean;
    when.times = times;
    when.time_count = a->horizon_count;
    when.cdf = a->horizon_count ? cdf : NULL;
    if (lapse_session_when(q->subject->session, &when, &error) != LAPSE_OK) {
        srv_fail_error(a->request, NULL, &error);
        return false;
    }
    srv_text_member_number(out, "median", quantiles[1]);
    srv_text_member_number(out, "low", quantiles[0]);
    srv_text_member_number(out, "high", quantiles[2]);
    srv_text_member_number(out, "mean", mean);
    srv_text_member_number(out, "alive", alive);
    srv_text_name(out, "within");
    srv_text_open(out, '[');
    for (int i = 0; i < a->horizon_count; i++) {
        srv_text_open(out, '{');
        srv_text_member_number(out, "horizon", a->horizons[i]);
        srv_text_member_number(out, "probability", cdf[i]);
        if (top > 0 && !write_types(q, times[i], top, out, &error)) {
            srv_fail_error(a->request, NULL, &error);
            return false;
        }
        srv_text_close(out, '}');
    }
    srv_text_close(out, ']');
    return true;
}
