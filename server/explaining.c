/* explaining.c: see explaining.h. Attention says what the model reads; influence, what the event changes: the history is asked
 * about again without it. */
#include "explaining.h"

#include <lapse_lab.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS = 10 };

/* The index in the history of the event that is `back` events before the newest that the model knows; -1: none. */
static int64_t known_event(const srv_subject *s, int64_t back)
{
    for (int64_t i = s->events->count - 1; i >= 0; i--)
        if (lapse_model_event_type_find(s->model->model, s->events->items[i].text + s->events->items[i].name) >= 0 &&
            back-- == 0)
            return i;
    return -1;
}

static double score_without(srv_worker *w, const srv_question *q, int64_t event, lapse_error *error)
{
    const srv_subject *s = q->subject;
    srv_events rest = {.count = s->events->count - 1, .items = malloc((size_t)s->events->count * sizeof *rest.items)};
    lapse_session *session = rest.items ? srv_scratch_take(w, s->model, error) : NULL;
    int64_t known = 0;
    double last;
    lapse_recommendation best;
    lapse_item_filter filter = {.only = &q->best[0].item, .only_count = 1};
    lapse_recommend_query query = {session, q->at, &filter, 1, &best, 0};
    for (int64_t i = 0, j = 0; session && i < s->events->count; i++)
        if (i != event)
            rest.items[j++] = s->events->items[i];
    bool good = session && srv_events_sync(&rest, s->model->model, session, &known, &last, error) == LAPSE_OK &&
                known > 0 && lapse_session_recommend_many(&query, 1, "event", error) == LAPSE_OK && query.count == 1;
    free(rest.items);
    return good ? best.score : NAN;
}

static int by_attention(const void *a, const void *b)
{
    const srv_reason *x = a, *y = b;
    return (y->attention > x->attention) - (y->attention < x->attention);
}

static bool explain(srv_worker *w, srv_question *q, bool influence, lapse_error *error)
{
    const srv_subject *s = q->subject;
    int64_t window = lapse_session_window(s->session);
    double *weights = malloc((size_t)(window + 1) * sizeof *weights);
    int blocks = lapse_model_attention_blocks(s->model->model);
    bool good =
        weights && blocks > 0 && lapse_session_attention(s->session, q->at, blocks - 1, -1, weights, error) == LAPSE_OK;
    q->reasons = calloc((size_t)window + 1, sizeof *q->reasons);
    for (int64_t i = 0; q->reasons && i < window; i++) {
        int64_t index = known_event(s, window - 1 - i);
        if (index < 0)
            continue;
        const srv_event *e = &s->events->items[index];
        srv_reason *r = &q->reasons[q->reason_count++];
        *r = (srv_reason){.time = e->time, .attention = good ? weights[i] : NAN, .influence = (double)index};
        snprintf(r->event, sizeof r->event, "%s", e->text + e->name);
    }
    if (q->reasons)
        qsort(q->reasons, (size_t)q->reason_count, sizeof *q->reasons, by_attention);
    q->reason_count = q->reason_count < REASONS ? q->reason_count : REASONS;
    for (int i = 0; i < q->reason_count; i++) /* influence has the index of the event so far */
        q->reasons[i].influence =
            influence ? q->best[0].score - score_without(w, q, (int64_t)q->reasons[i].influence, error) : NAN;
    free(weights);
    return q->reasons != NULL;
}

void srv_explain(srv_worker *w, srv_asked *a)
{
    lapse_error error;
    for (int i = 0; i < a->question_count; i++) {
        srv_question *q = &a->questions[i];
        bool event = strcmp(srv_ask_view(a, q->subject->model)->target, "event") == 0;
        if (q->count > 0 && !explain(w, q, event, &error)) {
            srv_fail(a->request, 503, NULL, "out of memory");
            return;
        }
    }
}
