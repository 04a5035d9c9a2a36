/* registry.c: see registry.h. Every change is recorded in the store with its time, so that an answer can be asked for as of a
 * time. */
#include "registry.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static const char ending[] = ".safetensors";

static bool name_good(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return size > 0 && size < 100 && !name[size] && name[0] != '.';
}

static srv_named_model *find(srv_registry *g, const char *name)
{
    for (int i = 0; i < g->count; i++)
        if (strcmp(g->models[i].name, name) == 0)
            return &g->models[i];
    return NULL;
}

static int hash_percent(const char *history)
{
    uint64_t hash = 1469598103934665603u;
    for (; *history; history++)
        hash = (hash ^ (unsigned char)*history) * 1099511628211u;
    return (int)((hash ^ hash >> 29) % 100);
}

/* [["live", fingerprint, percent], ...] */
static bool record(srv_registry *g)
{
    json_t *state = json_array();
    for (int i = 0; i < g->alias_count; i++)
        json_array_append_new(state, json_pack("[s,s,i]", g->aliases[i].alias, g->aliases[i].model->fingerprint_text,
                                               g->aliases[i].percent));
    char *text = json_dumps(state, JSON_COMPACT);
    json_decref(state);
    bool good = text && srv_store_run(&g->store,
                                      "INSERT INTO model_states(time, state) VALUES($1, $2) ON CONFLICT(time) "
                                      "DO UPDATE SET state = excluded.state",
                                      (srv_value[]){SRV_W((int64_t)(srv_now() * 1e6)), SRV_T(text)}, 2, NULL, NULL);
    for (int i = 0; good && i < g->count; i++)
        good = srv_store_run(
            &g->store,
            "INSERT INTO model_files(fingerprint, path) VALUES($1, $2) ON CONFLICT"
            "(fingerprint) DO UPDATE SET path = excluded.path",
            (srv_value[]){SRV_T(g->models[i].model->fingerprint_text), SRV_T(g->models[i].model->path)}, 2, NULL, NULL);
    free(text);
    return good;
}

static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t size = strlen(name), cut = sizeof ending - 1;
    return strndup(name, size > cut && strcmp(name + size - cut, ending) == 0 ? size - cut : size);
}

bool srv_registry_new(srv_registry *g, const char *path, const char *store, lapse_error *error)
{
    const char *slash = strrchr(path, '/');
    pthread_mutex_init(&g->mutex, NULL);
    g->folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup("");
    g->models[0].name = stem_of(path);
    if (!srv_model_load(path, &g->models[0].model, error))
        return false;
    g->count = g->alias_count = 1;
    g->aliases[0] = (srv_split){"live", g->models[0].model, 100};
    if (srv_store_open(&g->store, store, false) && record(g))
        return true;
    *error = (lapse_error){.status = LAPSE_ERROR_FILE};
    snprintf(error->message, sizeof error->message, "%s", g->store.message);
    return false;
}

void srv_registry_clear(srv_registry *g)
{
    for (int i = 0; i < SRV_MODELS_MAX; i++) {
        srv_model_drop(g->models[i].model);
        free(g->models[i].name);
    }
    for (int i = 0; i < SRV_OLD_MODELS; i++)
        srv_model_drop(g->old[i]);
    free(g->folder);
    if (g->store.engine)
        srv_store_close(&g->store);
}

srv_lineup srv_registry_lineup(srv_registry *g)
{
    srv_lineup lineup = {.count = 0};
    pthread_mutex_lock(&g->mutex);
    for (; lineup.count < g->alias_count; lineup.count++) {
        lineup.models[lineup.count] = srv_model_take(g->aliases[lineup.count].model);
        lineup.percents[lineup.count] = g->aliases[lineup.count].percent;
    }
    pthread_mutex_unlock(&g->mutex);
    return lineup;
}

void srv_lineup_drop(srv_lineup *lineup)
{
    for (int i = 0; i < lineup->count; i++)
        srv_model_drop(lineup->models[i]);
}

srv_model *srv_lineup_pick(const srv_lineup *lineup, const char *history)
{
    int percent = history && lineup->count > 1 ? hash_percent(history) : 0, i = 0;
    while (i + 1 < lineup->count && percent >= lineup->percents[i])
        percent -= lineup->percents[i++];
    return srv_model_take(lineup->models[i]);
}

static void read_text(void *context, const srv_value *columns)
{
    free(*(char **)context);
    *(char **)context = strdup(columns[0].text);
}

uint64_t srv_registry_at(srv_registry *g, const char *history, double time)
{
    char *text = NULL;
    const char *fingerprint = NULL;
    pthread_mutex_lock(&g->mutex);
    srv_store_run(&g->store, "SELECT state FROM model_states WHERE time <= $1 ORDER BY time DESC LIMIT 1",
                  (srv_value[]){SRV_W((int64_t)(time * 1e6))}, 1, read_text, &text);
    pthread_mutex_unlock(&g->mutex);
    json_t *state = text ? json_loads(text, 0, NULL) : NULL;
    int percent = history && json_array_size(state) > 1 ? hash_percent(history) : 0;
    for (size_t i = 0; i < json_array_size(state); i++) {
        const json_t *alias = json_array_get(state, i);
        int part = (int)json_integer_value(json_array_get(alias, 2));
        fingerprint = json_string_value(json_array_get(alias, 1));
        if (percent < part)
            break;
        percent -= part;
    }
    uint64_t found = fingerprint ? strtoull(fingerprint, NULL, 16) : 0;
    json_decref(state);
    free(text);
    return found;
}

static srv_model *find_loaded(srv_registry *g, uint64_t fingerprint)
{
    for (int i = 0; i < g->count; i++)
        if (g->models[i].model->fingerprint == fingerprint)
            return srv_model_take(g->models[i].model);
    for (int i = 0; i < SRV_OLD_MODELS; i++)
        if (g->old[i] && g->old[i]->fingerprint == fingerprint)
            return srv_model_take(g->old[i]);
    return NULL;
}

srv_model *srv_registry_find(srv_registry *g, uint64_t fingerprint)
{
    char *path = NULL, text[17];
    lapse_error error;
    srv_model *loaded = NULL;
    snprintf(text, sizeof text, "%016llx", (unsigned long long)fingerprint);
    pthread_mutex_lock(&g->mutex);
    srv_model *model = find_loaded(g, fingerprint);
    if (!model)
        srv_store_run(&g->store, "SELECT path FROM model_files WHERE fingerprint = $1", (srv_value[]){SRV_T(text)}, 1,
                      read_text, &path);
    if (path && srv_model_load(path, &loaded, &error) && loaded->fingerprint == fingerprint) {
        srv_model **slot = &g->old[g->old_next++ % SRV_OLD_MODELS];
        srv_model_drop(*slot);
        *slot = srv_model_take(loaded);
        model = loaded;
    } else {
        srv_model_drop(loaded);
    }
    pthread_mutex_unlock(&g->mutex);
    free(path);
    return model;
}

/* Puts a model in the place of one, or adds it. */
static bool place(srv_registry *g, const char *name, srv_model *model, srv_model **before, srv_problem *problem)
{
    pthread_mutex_lock(&g->mutex);
    srv_named_model *named = find(g, name);
    bool good = named || g->count < SRV_MODELS_MAX ||
                srv_refuse(problem, 409, "name", "the server has %d models already", SRV_MODELS_MAX);
    if (good && !named) {
        named = &g->models[g->count++];
        named->name = strdup(name);
    }
    if (good) {
        *before = named->model;
        named->model = model;
        for (int i = 0; i < g->alias_count; i++)
            if (g->aliases[i].model == *before)
                g->aliases[i].model = model;
        if (!record(g))
            good = srv_refuse(problem, 503, NULL, "the model is loaded, but not recorded: %s", g->store.message);
    }
    pthread_mutex_unlock(&g->mutex);
    return good;
}

bool srv_registry_load(srv_registry *g, const char *name, srv_model **before, srv_problem *problem)
{
    char path[4096];
    lapse_error error;
    srv_model *model;
    *before = NULL;
    if (!name_good(name))
        return srv_refuse(problem, 400, "name",
                          "the name of a model has letters, digits, . _ - and does not begin with .");
    snprintf(path, sizeof path, "%s%s%s", g->folder, name, ending);
    if (!srv_model_load(path, &model, &error))
        return srv_refuse(problem, 400, "name", "%s%s: %s", name, ending, error.message);
    pthread_mutex_lock(&g->mutex);
    const char *task = lapse_model_target(g->aliases[0].model->model, 0), *own = lapse_model_target(model->model, 0);
    bool fits = task && own && strcmp(task, own) == 0;
    pthread_mutex_unlock(&g->mutex);
    if (!fits) {
        srv_model_drop(model);
        return srv_refuse(problem, 409, "name", "%s%s predicts another target than the live model", name, ending);
    }
    return place(g, name, model, before, problem);
}

bool srv_registry_unload(srv_registry *g, const char *name, srv_model **before, srv_problem *problem)
{
    bool good = true;
    *before = NULL;
    pthread_mutex_lock(&g->mutex);
    srv_named_model *named = find(g, name);
    if (!named)
        good = srv_refuse(problem, 404, "name", "there is no model of this name");
    for (int i = 0; good && i < g->alias_count; i++)
        if (g->aliases[i].model == named->model)
            good = srv_refuse(problem, 409, "name", "the model has the alias %s", g->aliases[i].alias);
    if (good) {
        *before = named->model;
        free(named->name);
        *named = g->models[--g->count];
        g->models[g->count] = (srv_named_model){0};
    }
    pthread_mutex_unlock(&g->mutex);
    return good;
}

bool srv_registry_alias(srv_registry *g, const json_t *aliases, const json_t *split, srv_problem *problem)
{
    static const char *const names[] = {"live", "canary"};
    srv_split made[2] = {0};
    int count = 0, total = 0;
    const char *key;
    json_t *value;
    bool good = true;
    json_object_foreach((json_t *)aliases, key, value) if (strcmp(key, "live") != 0 && strcmp(key, "canary") != 0)
        good = srv_refuse(problem, 400, "aliases", "aliases are live and canary");
    pthread_mutex_lock(&g->mutex);
    for (int i = 0; good && i < 2; i++) {
        const char *name = json_string_value(json_object_get(aliases, names[i]));
        srv_named_model *named = name ? find(g, name) : NULL;
        if (name && !named)
            good = srv_refuse(problem, 404, "aliases", "there is no model '%.100s'", name);
        if (!named)
            continue;
        const json_t *part = json_object_get(split, names[i]);
        made[count] = (srv_split){"", named->model, part ? (int)json_integer_value(part) : i == 0 ? 100 - total : 0};
        snprintf(made[count].alias, sizeof made[count].alias, "%s", names[i]);
        total += made[count++].percent;
        if (part && (!json_is_integer(part) || json_integer_value(part) < 0 || json_integer_value(part) > 100))
            good = srv_refuse(problem, 400, "split", "parts are whole numbers from 0 to 100");
    }
    if (good && (count == 0 || strcmp(made[0].alias, "live") != 0))
        good = srv_refuse(problem, 400, "aliases", "the alias live is missing");
    if (good && total != 100)
        good = srv_refuse(problem, 400, "split", "the parts add up to %d, not to 100", total);
    if (good) {
        memcpy(g->aliases, made, sizeof made);
        g->alias_count = count;
        good = record(g) || srv_refuse(problem, 503, NULL, "%s", g->store.message);
    }
    pthread_mutex_unlock(&g->mutex);
    return good;
}

void srv_registry_reload(srv_registry *g, void (*drop)(void *context, srv_model *before), void *context)
{
    char names[SRV_MODELS_MAX][128];
    srv_problem problem;
    int count = 0;
    pthread_mutex_lock(&g->mutex);
    for (; count < g->count; count++)
        snprintf(names[count], sizeof names[count], "%s", g->models[count].name);
    pthread_mutex_unlock(&g->mutex);
    for (int i = 0; i < count; i++) {
        srv_model *before = NULL;
        if (srv_registry_load(g, names[i], &before, &problem))
            fprintf(stderr, "lapse: reloaded %s\n", names[i]);
        else
            fprintf(stderr, "lapse: %s stays as it is: %s\n", names[i], problem.detail);
        drop(context, before);
    }
}

void srv_registry_write(srv_registry *g, srv_text *out)
{
    pthread_mutex_lock(&g->mutex);
    srv_text_add(out, "{\"models\":[");
    for (int i = 0; i < g->count; i++) {
        const srv_model *m = g->models[i].model;
        const char *name, *value;
        srv_text_open(out, '{');
        srv_text_member(out, "name", g->models[i].name);
        srv_text_member(out, "fingerprint", m->fingerprint_text);
        srv_text_member_whole(out, "events", lapse_model_event_type_count(m->model));
        srv_text_member_bool(out, "when", lapse_model_predicts_time(m->model));
        srv_text_name(out, "properties");
        srv_text_open(out, '{');
        for (int j = 0; lapse_model_property(m->model, j, &name, &value); j++)
            srv_text_member(out, name, value);
        srv_text_close(out, '}');
        srv_text_close(out, '}');
    }
    srv_text_add(out, "],\"aliases\":{");
    for (int i = 0; i < g->alias_count; i++)
        for (int j = 0; j < g->count; j++)
            if (g->models[j].model == g->aliases[i].model)
                srv_text_member(out, g->aliases[i].alias, g->models[j].name);
    srv_text_add(out, "},\"split\":{");
    for (int i = 0; i < g->alias_count; i++)
        srv_text_member_whole(out, g->aliases[i].alias, g->aliases[i].percent);
    srv_text_add(out, "}}");
    pthread_mutex_unlock(&g->mutex);
}
