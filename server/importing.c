/* importing.c: see importing.h. */
#include "importing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 20000 };

typedef struct import {
    srv_server *server;
    srv_new_event *events;
    int64_t count, stored, duplicates;
} import;

static bool flush(import *m)
{
    int64_t position = 0;
    bool good = srv_store_write(&m->server->store, m->events, m->count, srv_now(), &position);
    for (int64_t i = 0; i < m->count; i++) {
        (*(m->events[i].duplicate ? &m->duplicates : &m->stored))++;
        free((char *)m->events[i].id);
        free((char *)m->events[i].fields);
        free(m->events[i].root);
    }
    m->count = 0;
    if (good)
        m->server->cache.position = position; /* before the first request */
    else
        fprintf(stderr, "lapse: --import: %s\n", m->server->store.message);
    return good;
}

/* The fields of event `index` of a sequence, as JSON; NULL: it has none. */
static char *read_fields(const lapse_dataset *data, int64_t sequence, int64_t index)
{
    lapse_field field;
    json_t *all = json_object();
    for (int i = 0; lapse_dataset_field(data, i, &field); i++) {
        const int32_t *categories;
        const double *numbers;
        lapse_dataset_field_values(data, i, sequence, &categories, &numbers);
        if (categories)
            json_object_set_new(all, field.name, json_string(lapse_dataset_category_name(data, i, categories[index])));
        else if (isfinite(numbers[index]))
            json_object_set_new(all, field.name, json_real(numbers[index]));
    }
    char *text = json_object_size(all) ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    return text;
}

/* Of an event among those of its history. */
static uint64_t hash_event(double time, const char *name, int64_t same)
{
    uint64_t hash = 1469598103934665603u, bits;
    memcpy(&bits, &time, sizeof bits);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    hash = (hash ^ bits ^ (uint64_t)same << 56) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static bool add_sequence(import *m, const lapse_dataset *data, int64_t s)
{
    const double *times;
    const int32_t *types;
    int64_t count;
    lapse_dataset_sequence(data, s, &times, &types, &count);
    for (int64_t i = 0; i < count; i++) {
        char id[24];
        int64_t same = 0; /* events of the same time and type before it */
        while (same < i && times[i - same - 1] == times[i] && types[i - same - 1] == types[i])
            same++;
        snprintf(id, sizeof id, "i%llx",
                 (unsigned long long)hash_event(times[i], lapse_dataset_event_type_name(data, types[i]), same));
        m->events[m->count++] = (srv_new_event){.history = lapse_dataset_sequence_name(data, s),
                                                .id = strdup(id),
                                                .event = lapse_dataset_event_type_name(data, types[i]),
                                                .fields = read_fields(data, s, i),
                                                .time = times[i]};
        if (!m->events[m->count - 1].id || (m->count == BATCH && !flush(m)))
            return false;
    }
    return true;
}

bool srv_import(srv_server *server, const char *path)
{
import m = {.server = server, .events = calloc(BATCH, sizeof * m.events) };
    lapse_dataset *data = NULL;
    lapse_import_options options;
    lapse_error error;
    lapse_import_options_default(&options);
    options.input = path;
    bool good = m.events && (lapse_dataset_open(path, &data, &error) == LAPSE_OK ||
                             lapse_dataset_read(&options, &data, NULL, &error) == LAPSE_OK);
    if (!good)
        fprintf(stderr, "lapse: --import %s: %s\n", path, m.events ? error.message : "out of memory");
    for (int64_t s = 0; good && s < lapse_dataset_sequence_count(data); s++)
        good = add_sequence(&m, data, s);
    good = good && flush(&m);
    if (good)
        fprintf(stderr, "lapse: imported %lld events; %lld were there already\n", (long long)m.stored,
                (long long)m.duplicates);
    lapse_dataset_close(data);
    free(m.events);
    return good;
}
