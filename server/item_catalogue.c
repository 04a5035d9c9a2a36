/* item_catalogue.c: see item_catalogue.h. */
#include "item_catalogue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"
#include "server.h"

enum { POPULAR = 100 };

typedef struct reading {
    srv_catalogue *catalogue;
    bool failed;
} reading;

static void read_item(void *context, const srv_value *columns)
{
    reading *r = context;
    json_t *item = columns[1].text ? json_loads(columns[1].text, 0, NULL) : NULL;
    if (!item || json_object_set_new(r->catalogue->items, columns[0].text, item) != 0)
        r->failed = true;
    if (json_is_false(json_object_get(item, "available")))
        r->catalogue->unavailable = true;
}

static void read_popular(void *context, const srv_value *columns)
{
    reading *r = context;
    json_t *names = json_loads(columns[0].text, 0, NULL);
    srv_catalogue *c = r->catalogue;
    c->popular = calloc(json_array_size(names) + 1, sizeof *c->popular);
    for (size_t i = 0; c->popular && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && (c->popular[c->popular_count] = strdup(name)))
            c->popular_count++;
    }
    json_decref(names);
}

static void read_position(void *context, const srv_value *columns)
{
    *(int64_t *)context = columns[0].whole;
}

bool srv_catalogue_read(srv_store *store, int64_t position, srv_catalogue **out)
{
    srv_catalogue *c = calloc(1, sizeof *c);
    reading r = {.catalogue = c};
    if (!c)
        return false;
    atomic_init(&c->references, 1);
    pthread_mutex_init(&c->mutex, NULL);
    c->items = json_object();
    bool good =
        c->items &&
        srv_store_run(store,
                      "SELECT name, fields FROM items i WHERE position = (SELECT max(position) FROM items j WHERE "
                      "j.name = i.name AND j.position <= $1)",
                      (srv_value[]){SRV_W(position)}, 1, read_item, &r) &&
        srv_store_run(store, "SELECT names FROM popular WHERE position <= $1 ORDER BY position DESC LIMIT 1",
                      (srv_value[]){SRV_W(position)}, 1, read_popular, &r);
    good = good &&
           srv_store_run(store,
                         "SELECT coalesce(max(position), 0) FROM changes WHERE kind = 'catalogue' AND position <= $1",
                         (srv_value[]){SRV_W(position)}, 1, read_position, &c->position);
    if (good && !r.failed) {
        *out = c;
        return true;
    }
    srv_catalogue_drop(c);
    return false;
}

srv_catalogue *srv_catalogue_take(srv_catalogue *c)
{
    atomic_fetch_add(&c->references, 1);
    return c;
}

void srv_selection_drop(srv_selection *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) != 1)
        return;
    free(s->filter);
    free(s->boost);
    free(s->only);
    free(s->offset);
    free(s);
}

void srv_catalogue_drop(srv_catalogue *c)
{
    if (!c || atomic_fetch_sub(&c->references, 1) != 1)
        return;
    for (int i = 0; i < SRV_SELECTIONS; i++)
        srv_selection_drop(c->selections[i]);
    for (int i = 0; i < c->popular_count; i++)
        free(c->popular[i]);
    free(c->popular);
    json_decref(c->items);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

/* -------------------------------------------------------------------------------------------- selections ----- */

static bool fill(const srv_catalogue *c, const srv_model *m, srv_selection *s, srv_problem *problem)
{
    srv_expression *filter = NULL, *boost = NULL;
    int64_t types = lapse_model_event_type_count(m->model);
    bool good = (!*s->filter || srv_expression_new(s->filter, "filter", &filter, problem)) &&
                (!*s->boost || srv_expression_new(s->boost, "boost", &boost, problem));
    s->only = calloc((size_t)(types + 63) / 64, sizeof *s->only);
    s->offset = boost ? calloc((size_t)types, sizeof *s->offset) : NULL;
    if (good && (!s->only || (boost && !s->offset)))
        good = srv_refuse(problem, 503, NULL, "out of memory");
    for (int64_t i = 0; good && i < types; i++) {
        const char *name = lapse_model_event_type_name(m->model, i);
        const json_t *item = json_object_get(c->items, name), *fields = json_object_get(item, "fields");
        if (!json_is_false(json_object_get(item, "available")) &&
            (!filter || srv_expression_true(filter, fields, name)))
            s->only[i / 64] |= (uint64_t)1 << (i % 64);
        double added = boost ? srv_expression_number(boost, fields, name) : 0;
        if (s->offset && isfinite((float)added)) /* an item without the field has no boost */
            s->offset[i] = (float)added;
    }
    srv_expression_free(filter);
    srv_expression_free(boost);
    return good;
}

bool srv_catalogue_select(srv_catalogue *c, const srv_model *m, const char *filter, const char *boost,
                          srv_selection **selection, srv_problem *problem)
{
    *selection = NULL;
    if (!filter && !boost && !c->unavailable)
        return true;
    filter = filter ? filter : "";
    boost = boost ? boost : "";
    pthread_mutex_lock(&c->mutex);
    for (int i = 0; i < SRV_SELECTIONS && !*selection; i++) {
        srv_selection *s = c->selections[i];
        if (s && s->fingerprint == m->fingerprint && strcmp(s->filter, filter) == 0 && strcmp(s->boost, boost) == 0)
            *selection = s;
    }
    bool good = *selection != NULL;
    srv_selection *made = good ? NULL : calloc(1, sizeof *made);
    if (made) {
        atomic_init(&made->references, 1);
        made->fingerprint = m->fingerprint;
        made->filter = strdup(filter);
        made->boost = strdup(boost);
        good =
            made->filter && made->boost ? fill(c, m, made, problem) : srv_refuse(problem, 503, NULL, "out of memory");
        if (good) {
            srv_selection **slot = &c->selections[c->selection_next++ % SRV_SELECTIONS];
            srv_selection_drop(*slot);
            *slot = *selection = made;
        } else {
            srv_selection_drop(made);
        }
    } else if (!good) {
        srv_refuse(problem, 503, NULL, "out of memory");
    }
    if (good)
        atomic_fetch_add(&(*selection)->references, 1);
    pthread_mutex_unlock(&c->mutex);
    return good;
}

/* ---------------------------------------------------------------------------------------- popular events ----- */

static void append_name(void *context, const srv_value *columns)
{
    json_array_append_new(context, json_string(columns[0].text));
}

static void read_text(void *context, const srv_value *columns)
{
    *(char **)context = strdup(columns[0].text);
}

bool srv_popular_update(srv_store *store, bool *written, int64_t *position)
{
    json_t *names = json_array();
    char *before = NULL;
    *written = false;
    bool good =
        (!store->engine->count || srv_store_run(store, store->engine->count, NULL, 0, NULL, NULL)) &&
        srv_store_run(store, "SELECT name FROM names WHERE uses > 0 ORDER BY uses DESC, name LIMIT $1",
                      (srv_value[]){SRV_W(POPULAR)}, 1, append_name, names) &&
        srv_store_run(store, "SELECT names FROM popular ORDER BY position DESC LIMIT 1", NULL, 0, read_text, &before);
    char *text = json_dumps(names, JSON_COMPACT);
    if (good && text && json_array_size(names) && (!before || strcmp(before, text) != 0)) {
        good = srv_store_begin(store, position) &&
               (srv_store_run(store, "INSERT INTO popular(position, names) VALUES($1, $2)",
                              (srv_value[]){SRV_W(*position), SRV_T(text)}, 2, NULL, NULL) ||
                (srv_store_rollback(store), false)) &&
               srv_store_commit(store, *position, srv_now(), "catalogue", NULL);
        *written = good;
    }
    free(before);
    free(text);
    json_decref(names);
    return good;
}
