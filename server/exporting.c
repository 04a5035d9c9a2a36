/* exporting.c: the histories of a store as JSON Lines, for `lapse import --store`: the dataset of the next training. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve.h"
#include "store.h"

enum { PAGE = 1000 };

static void add_name(void *context, const srv_value *columns)
{
    json_array_append_new(context, json_string(columns[0].text));
}

/* One line for each event. The fields of an event are members beside history, time and event. */
static bool write_history(srv_store *store, const char *name, int64_t position, FILE *out)
{
    srv_events events = {0};
    srv_stored stored;
    srv_text line = {0};
    bool good = srv_store_read(store, name, position, &events, &stored);
    for (int64_t i = 0; i < events.count && good; i++) {
        const srv_event *e = &events.items[i];
        const char *fields = e->text + e->fields;
        line.size = 0;
        srv_text_open(&line, '{');
        srv_text_member(&line, "history", name);
        srv_text_member_number(&line, "time", e->time);
        srv_text_member(&line, "event", e->text + e->name);
        if (strlen(fields) > 2) { /* {"a":1} */
            srv_text_add(&line, ",");
            srv_text_add(&line, fields + 1);
        } else {
            srv_text_close(&line, '}');
        }
        srv_text_add(&line, "\n");
        if (line.failed || fwrite(line.data, 1, line.size, out) != line.size) {
            snprintf(store->message, sizeof store->message, "cannot write a temporary file");
            good = false;
        }
    }
    free(stored.root);
    srv_events_clear(&events);
    srv_text_clear(&line);
    return good;
}

bool srv_export(const char *place, FILE *out, char message[512])
{
    static const char sql[] =
        "SELECT name FROM histories WHERE name > $1 AND into_history IS NULL ORDER BY name LIMIT $2";
    srv_store store;
    int64_t position = 0;
    char last[SRV_STRING_MAX + 1] = "";
    const srv_engine *engine = srv_engine_find(place, message);
    if (!engine)
        return false;
    if (!engine->shared && access(place, R_OK) != 0) {
        snprintf(message, 512, "%s", strerror(errno));
        return false;
    }
    bool good = srv_store_open(&store, place, false) && srv_store_position(&store, &position), more = good;
    while (more) {
        json_t *names = json_array(), *name;
        size_t i;
        good = srv_store_run(&store, sql, (srv_value[]){SRV_T(last), SRV_W(PAGE)}, 2, add_name, names);
        json_array_foreach(names, i, name) good = good && write_history(&store, json_string_value(name), position, out);
        more = good && json_array_size(names) == PAGE;
        if (more)
            snprintf(last, sizeof last, "%s", json_string_value(json_array_get(names, PAGE - 1)));
        json_decref(names);
    }
    snprintf(message, 512, "%s", store.message);
    srv_store_close(&store);
    return good;
}
