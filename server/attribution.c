/* attribution.c: see attribution.h. An event has the token of the answer that led to it. The answer is made again, and the rank
 * of the event in it counted: so nothing is stored for every answer. */
#include "attribution.h"

#include <stdio.h>
#include <string.h>

#include "answering.h"

enum { RANKS = 10, MODELS = 8, LIMIT = 10000, LIMIT_DEFAULT = 1000 };

/* clang-format off */
const srv_member srv_attribution_members[] = {
    {.name = "limit", .types = SRV_WHOLE, .low = 1, .high = LIMIT, .help = "newest events that have a token (1,000)"},
    {0},
};

static const srv_member hits_members[] = {
    {.name = "model", .types = SRV_STRING, .required = true, .help = "fingerprint"},
    {.name = "events", .types = SRV_WHOLE, .required = true, .help = "that name an answer of this model"},
    {.name = "ranks", .types = SRV_ARRAY, .element = SRV_WHOLE, .required = true, .help = "events that were at rank 1, 2, ... 10"},
    {.name = "later", .types = SRV_WHOLE, .required = true, .help = "events at a later rank, or not in the answer"},
    {0},
};

const srv_member srv_attribution_response[] = {
    {.name = "models", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = hits_members, .required = true},
    {.name = "refused", .types = SRV_WHOLE, .required = true, .help = "tokens that are damaged, or whose answer is gone"},
    {0},
};
/* clang-format on */

typedef struct hits {
    char model[17];
    int64_t ranks[RANKS], later;
} hits;

typedef struct count {
    srv_worker *worker;
    json_t *events; /* [[event, token], ...]; owned */
    hits models[MODELS];
    int model_count;
    int64_t refused;
} count;

static void read_event(void *context, const srv_value *columns)
{
    json_array_append_new(((count *)context)->events, json_pack("[s,s]", columns[0].text, columns[1].text));
}

static hits *find_model(count *c, const char *model)
{
    for (int i = 0; i < c->model_count; i++)
        if (strcmp(c->models[i].model, model) == 0)
            return &c->models[i];
    if (c->model_count == MODELS)
        return NULL;
    snprintf(c->models[c->model_count].model, sizeof c->models->model, "%s", model);
    return &c->models[c->model_count++];
}

/* Finds an event in the answer; of several histories and times, its best rank. */
static void find_rank(void *context, const srv_asked *a, const char *event)
{
    count *c = context;
    int64_t best = -1;
    hits *found = a ? find_model(c, a->views[0].model->fingerprint_text) : NULL;
    if (!found) {
        c->refused++;
        return;
    }
    for (int i = 0; i < a->question_count; i++) {
        const srv_question *q = &a->questions[i];
        int64_t id = lapse_model_event_type_find(q->subject->model->model, event);
        for (int64_t k = 0; k < q->count; k++)
            if (q->best[k].item == id && (best < 0 || k < best))
                best = k;
    }
    if (best >= 0 && best < RANKS)
        found->ranks[best]++;
    else
        found->later++;
}

static void write_hits(srv_text *out, const count *c)
{
    srv_text_add(out, "{\"models\":[");
    for (int i = 0; i < c->model_count; i++) {
        int64_t total = c->models[i].later;
        srv_text_open(out, '{');
        srv_text_member(out, "model", c->models[i].model);
        srv_text_name(out, "ranks");
        srv_text_open(out, '[');
        for (int k = 0; k < RANKS; k++) {
            srv_text_comma(out);
            srv_text_whole(out, c->models[i].ranks[k]);
            total += c->models[i].ranks[k];
        }
        srv_text_close(out, ']');
        srv_text_member_whole(out, "later", c->models[i].later);
        srv_text_member_whole(out, "events", total);
        srv_text_close(out, '}');
    }
    srv_text_close(out, ']');
    srv_text_member_whole(out, "refused", c->refused);
    srv_text_close(out, '}');
}

void srv_attribute(srv_worker *w, srv_request *r)
{
    count c = {.worker = w, .events = json_array()};
    const json_t *limit = json_object_get(r->json, "limit");
    srv_value most = SRV_W(limit ? json_integer_value(limit) : LIMIT_DEFAULT);
    if (!srv_store_run(
            &w->store,
            "SELECT n.name, e.answer FROM events e JOIN names n ON n.name_id = e.event WHERE e.answer IS NOT "
            "NULL ORDER BY e.position DESC LIMIT $1",
            &most, 1, read_event, &c)) {
        srv_fail(r, 503, NULL, "%s", w->store.message);
    } else {
        for (size_t i = 0; i < json_array_size(c.events); i++) {
            const json_t *event = json_array_get(c.events, i);
            srv_answer_again(w, json_string_value(json_array_get(event, 1)), find_rank, &c,
                             json_string_value(json_array_get(event, 0)));
        }
        r->status = 200;
        write_hits(&r->out, &c);
    }
    json_decref(c.events);
}
