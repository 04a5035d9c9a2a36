/* stored_changes.c: see stored_changes.h. */
#include "stored_changes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "questions.h"

enum { PAGE = 100, PAGE_MAX = 1000, ITEMS_MAX = 10000, ITEM_BYTES = 16384 };

/* clang-format off */
const srv_member srv_page_members[] = {
    {.name = "offset", .types = SRV_WHOLE, .low = 0, .high = 1e12, .help = "events to skip, the oldest first (0)"},
    {.name = "limit", .types = SRV_WHOLE, .low = 1, .high = PAGE_MAX, .help = "events of the page (100)"},
    {0},
};

const srv_member srv_names_members[] = {
    {.name = "search", .types = SRV_STRING, .help = "how the names begin"},
    {.name = "limit", .types = SRV_WHOLE, .low = 1, .high = PAGE_MAX, .help = "names (100)"},
    {0},
};

const srv_member srv_names_response[] = {
    {.name = "names", .types = SRV_ARRAY, .element = SRV_STRING, .required = true, .help = "of histories, sorted by bytes"},
    {0},
};

static const srv_member stored_members[] = {
    {.name = "time", .types = SRV_NUMBER, .required = true},
    {.name = "event", .types = SRV_STRING, .required = true},
    {.name = "id", .types = SRV_STRING},
    {.name = "fields", .types = SRV_OBJECT},
    {.name = "position", .types = SRV_WHOLE, .required = true, .help = "in the log: the order of arrival"},
    {0},
};

const srv_member srv_history_response[] = {
    {.name = "history", .types = SRV_STRING, .required = true, .help = "its name; after a merge, that of the other one"},
    {.name = "count", .types = SRV_WHOLE, .required = true, .help = "events in all"},
    {.name = "events", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = stored_members, .required = true},
    {.name = "next", .types = SRV_WHOLE, .help = "offset of the next page, if there is one"},
    {0},
};

const srv_member srv_merge_members[] = {
    {.name = "from", .types = SRV_STRING, .required = true, .help = "the history that ends, such as an anonymous visitor"},
    {.name = "into", .types = SRV_STRING, .required = true, .help = "the one that has the events of both from now on"},
    {0},
};

const srv_member srv_position_response[] = {
    {.name = "position", .types = SRV_WHOLE, .required = true, .help = "of the log, after the change"},
    {0},
};

static const srv_member item_members[] = {
    {.name = "name", .types = SRV_STRING, .required = true, .help = "the event type"},
    {.name = "fields", .types = SRV_OBJECT, .help = "what filters and boosts read: strings, numbers, booleans"},
    {.name = "available", .types = SRV_BOOL, .help = "false: not recommended (true)"},
    {0},
};

const srv_member srv_items_members[] = {
    {.name = "items", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = item_members, .most = ITEMS_MAX, .required = true},
    {0},
};

const srv_member srv_item_search_members[] = {
    {.name = "search", .types = SRV_STRING, .help = "items whose name or a field has this text, in any case"},
    {.name = "after", .types = SRV_STRING, .help = "the name that the page begins after"},
    {.name = "limit", .types = SRV_WHOLE, .low = 1, .high = PAGE_MAX, .help = "items of the page (100)"},
    {0},
};

const srv_member srv_items_response[] = {
    {.name = "items", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = item_members, .required = true},
    {.name = "next", .types = SRV_STRING, .help = "after: of the next page, if there is one"},
    {0},
};
/* clang-format on */

static void fail_store(srv_request *r)
{
    srv_fail(r, 503, NULL, "%s", r->server->store.message);
}

static int64_t whole(const srv_request *r, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(r->json, name);
    return value ? (int64_t)json_number_value(value) : otherwise;
}

static void respond_position(srv_request *r, int64_t position)
{
    r->status = 200;
    srv_text_open(&r->out, '{');
    srv_text_member_whole(&r->out, "position", position);
    srv_text_close(&r->out, '}');
}

/* --------------------------------------------------------------------------------------------- histories ----- */

static void write_event(srv_text *out, const srv_event *e)
{
    srv_text_open(out, '{');
    srv_text_member_number(out, "time", e->time);
    srv_text_member(out, "event", e->text + e->name);
    if (*e->text)
        srv_text_member(out, "id", e->text);
    if (e->text[e->fields]) {
        srv_text_name(out, "fields");
        srv_text_add(out, e->text + e->fields);
    }
    srv_text_member_whole(out, "position", e->position);
    srv_text_close(out, '}');
}

static void write_name(void *context, const srv_value *columns)
{
    srv_text_comma(context);
    srv_text_quote(context, columns[0].text);
}

void srv_handle_names(srv_request *r)
{
    static const char sql[] =
        "SELECT name FROM histories WHERE name >= $1 AND name <= $2 AND into_history IS NULL ORDER BY name LIMIT $3";
    const char *search = json_string_value(json_object_get(r->json, "search"));
    srv_text last = {0};
    srv_text_add(&last, search ? search : "");
    srv_text_add(&last, "\xF4\x8F\xBF\xBF"); /* after all characters */
    srv_value values[] = {SRV_T(search ? search : ""), SRV_T(srv_text_string(&last)), SRV_W(whole(r, "limit", PAGE))};
    r->status = 200;
    srv_text_add(&r->out, "{\"names\":[");
    if (!srv_store_run(&r->server->store, sql, values, 3, write_name, &r->out))
        fail_store(r);
    else
        srv_text_add(&r->out, "]}");
    srv_text_clear(&last);
}

void srv_handle_history(srv_request *r)
{
    srv_events events = {0};
    srv_stored stored;
    int64_t offset = whole(r, "offset", 0), end = offset + whole(r, "limit", PAGE);
    if (!srv_store_read(&r->server->store, r->names[0], SRV_NEWEST, &events, &stored)) {
        fail_store(r);
    } else if (!stored.found) {
        srv_fail(r, 404, "name", "there is no history of this name");
    } else {
        r->status = 200;
        srv_text_open(&r->out, '{');
        srv_text_member(&r->out, "history", stored.root);
        srv_text_member_whole(&r->out, "count", events.count);
        srv_text_name(&r->out, "events");
        srv_text_open(&r->out, '[');
        for (int64_t i = offset; i < end && i < events.count; i++)
            write_event(&r->out, &events.items[i]);
        srv_text_close(&r->out, ']');
        if (end < events.count)
            srv_text_member_whole(&r->out, "next", end);
        srv_text_close(&r->out, '}');
    }
    free(stored.root);
    srv_events_clear(&events);
}

/* Where other servers write too, the next query polls. */
static void drop_cache(srv_request *r, int64_t position)
{
    if (!r->server->store.engine->shared)
        srv_cache_drop(&r->server->cache, NULL, position);
}

/* The backups that the server has made lose the history too. */
static void read_path(void *context, const srv_value *columns)
{
    json_array_append_new(context, json_string(columns[0].text));
}

static bool erase_backups(srv_request *r)
{
    json_t *paths = json_array();
    bool good = srv_store_run(&r->server->store, "SELECT path FROM backups", NULL, 0, read_path, paths);
    for (size_t i = 0; good && i < json_array_size(paths); i++) {
        const char *path = json_string_value(json_array_get(paths, i));
        srv_store copy = {0};
        bool found;
        int64_t position;
        FILE *file = fopen(path, "rb");
        if (!file)
            continue; /* it has been deleted or moved */
        fclose(file);
        good = srv_store_open(&copy, path, false) && srv_store_erase(&copy, r->names[0], &found, &position);
        if (!good)
            srv_fail(r, 503, NULL, "the backup %.200s still has the history: %.200s", path, copy.message);
        srv_store_close(&copy);
    }
    json_decref(paths);
    return good;
}

void srv_handle_erase(srv_request *r)
{
    bool found;
    int64_t position;
    if (!srv_store_erase(&r->server->store, r->names[0], &found, &position)) {
        fail_store(r);
        return;
    }
    drop_cache(r, found ? position : 0);
    if (!erase_backups(r))
        return;
    if (found)
        respond_position(r, position);
    else
        srv_fail(r, 404, "name", "there is no history of this name");
}

void srv_handle_merge(srv_request *r)
{
    const char *from = json_string_value(json_object_get(r->json, "from")),
               *into = json_string_value(json_object_get(r->json, "into"));
    int64_t position;
    if (!srv_name_check(from, "from", &r->problem) || !srv_name_check(into, "into", &r->problem)) {
        srv_fail_problem(r);
    } else if (!srv_store_merge(&r->server->store, from, into, &position)) {
        fail_store(r);
    } else {
        drop_cache(r, position);
        respond_position(r, position);
    }
}

/* --------------------------------------------------------------------------------------------- catalogue ----- */

static bool contains(const char *text, const char *words)
{
    size_t size = strlen(words);
    for (; *text; text++)
        if (strncasecmp(text, words, size) == 0)
            return true;
    return size == 0;
}

static bool matches(const char *name, const json_t *item, const char *words)
{
    const char *field;
    json_t *value;
    if (!words || contains(name, words))
        return true;
    json_object_foreach(json_object_get(item, "fields"), field,
                        value) if (json_is_string(value) && contains(json_string_value(value), words)) return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void srv_handle_items(srv_request *r)
{
    srv_catalogue *catalogue = srv_cache_catalogue(&r->server->cache);
    json_t *items = catalogue->items, *item;
    const char *words = json_string_value(json_object_get(r->json, "search")),
               *after = json_string_value(json_object_get(r->json, "after")), *name;
    const char **names = calloc(json_object_size(items) + 1, sizeof *names);
    size_t count = 0, limit = (size_t)whole(r, "limit", PAGE);
    if (!names) {
        srv_catalogue_drop(catalogue);
        srv_fail(r, 503, NULL, "out of memory");
        return;
    }
    json_object_foreach(items, name, item) if ((!after || strcmp(name, after) > 0) && matches(name, item, words))
        names[count++] = name;
    qsort(names, count, sizeof *names, compare_names);
    r->status = 200;
    srv_text_add(&r->out, "{\"items\":[");
    for (size_t i = 0; i < count && i < limit; i++) {
        item = json_object_get(items, names[i]);
        char *fields = json_dumps(json_object_get(item, "fields"), JSON_COMPACT);
        srv_text_open(&r->out, '{');
        srv_text_member(&r->out, "name", names[i]);
        srv_text_name(&r->out, "fields");
        srv_text_add(&r->out, fields ? fields : "{}");
        srv_text_member_bool(&r->out, "available", !json_is_false(json_object_get(item, "available")));
        srv_text_close(&r->out, '}');
        free(fields);
    }
    srv_text_close(&r->out, ']');
    if (count > limit)
        srv_text_member(&r->out, "next", names[limit - 1]);
    srv_text_close(&r->out, '}');
    free(names);
    srv_catalogue_drop(catalogue);
}

/* The new form of an item; NULL: a field has a wrong type. */
static json_t *new_item(const json_t *before, const json_t *change, bool patch)
{
    json_t *fields = json_object_get(change, "fields"), *available = json_object_get(change, "available"), *value;
    json_t *all = patch && before ? json_copy(json_object_get(before, "fields")) : json_object();
    const char *field;
    bool good = all != NULL;
    json_object_foreach(fields, field, value)
    {
        good = good && !json_is_array(value) && !json_is_object(value);
        if (json_is_null(value))
            json_object_del(all, field);
        else
            json_object_set(all, field, value);
    }
    if (!available && patch)
        available = json_object_get(before, "available");
    json_t *item = good ? json_pack("{s:O,s:b}", "fields", all, "available", !json_is_false(available)) : NULL;
    json_decref(all);
    return item;
}

static bool write_items(srv_request *r, json_t *known, const json_t *changes, int64_t position)
{
    static const char sql[] = "INSERT INTO items(name, position, fields) VALUES($1, $2, $3) "
                              "ON CONFLICT(name, position) DO UPDATE SET fields = excluded.fields";
    json_t *change;
    size_t i;
    bool good = true, patch = strcmp(r->route->method, "PATCH") == 0;
    json_array_foreach(changes, i, change)
    {
        const char *name = json_string_value(json_object_get(change, "name"));
        char field[64];
        snprintf(field, sizeof field, "items[%zu]", i);
        if (!srv_name_check(name, field, &r->problem))
            return srv_fail_problem(r), false;
        json_t *item = new_item(json_object_get(known, name), change, patch);
        char *text = item ? json_dumps(item, JSON_COMPACT) : NULL;
        if (!text || strlen(text) > ITEM_BYTES) {
            srv_fail(r, 400, field, "%s: fields are strings, numbers and booleans, in all at most %d bytes", field,
                     ITEM_BYTES);
            good = false;
        } else if (!srv_store_run(&r->server->store, sql, (srv_value[]){SRV_T(name), SRV_W(position), SRV_T(text)}, 3,
                                  NULL, NULL)) {
            fail_store(r);
            good = false;
        }
        free(text);
        json_decref(item);
        if (!good)
            return false;
    }
    return true;
}

void srv_handle_put_items(srv_request *r)
{
    srv_store *store = &r->server->store;
    srv_catalogue *catalogue = NULL, *before = srv_cache_catalogue(&r->server->cache);
    int64_t position;
    if (!srv_store_begin(store, &position)) {
        fail_store(r);
    } else if (!write_items(r, before->items, json_object_get(r->json, "items"), position)) {
        srv_store_rollback(store);
    } else if (!srv_store_commit(store, position, srv_now(), "catalogue", NULL) ||
               (!store->engine->shared && !srv_catalogue_read(store, position, &catalogue))) {
        fail_store(r);
    } else {
        if (catalogue)
            srv_cache_renew(&r->server->cache, catalogue, position);
        respond_position(r, position);
    }
    srv_catalogue_drop(before);
}
