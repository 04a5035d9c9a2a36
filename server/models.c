/* models.c: see models.h. */
#include "models.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t hash, const unsigned char *data, size_t size)
{
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, data + i, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    for (; i < size; i++)
        hash = (hash ^ data[i]) * 0x100000001B3u;
    return hash;
}

static bool hash_file(const char *path, uint64_t *hash, lapse_error *error)
{
    static const size_t size = 1 << 20;
    unsigned char *data = malloc(size);
    FILE *file = data ? fopen(path, "rb") : NULL;
    size_t got;
    *hash = 0xCBF29CE484222325u;
    while (file && (got = fread(data, 1, size, file)) > 0)
        *hash = mix(*hash, data, got);
    bool good = file && !ferror(file);
    if (!good) {
        *error = (lapse_error){.status = LAPSE_ERROR_FILE};
        snprintf(error->message, sizeof error->message, "%s", strerror(errno));
    }
    if (file)
        fclose(file);
    free(data);
    return good;
}

/* One question: the first event type has happened, what is next? Builds what all sessions of the model share. */
static bool try_model(const lapse_model *model, lapse_error *error)
{
    lapse_session *session = NULL;
    lapse_field field;
    lapse_value values[64] = {{NULL, 0}};
    int columns = 0;
    for (; columns < 64 && lapse_model_field(model, columns, &field); columns++)
        values[columns] =
            (lapse_value){field.type == LAPSE_FIELD_NUMBER ? NULL : lapse_model_category_name(model, columns, 0), 0};
    lapse_event event = {0, lapse_model_event_type_name(model, 0), values, columns};
    lapse_recommendation best;
    lapse_recommend_query query = {.time = 60, .top = 1, .best = &best};
    bool good = lapse_session_new(model, &session, error) == LAPSE_OK &&
                lapse_session_append_event(session, &event, error) == LAPSE_OK;
    query.session = session;
    good = good && lapse_session_recommend_many(&query, 1, lapse_model_target(model, 0), error) == LAPSE_OK;
    lapse_session_free(session);
    return good;
}

int64_t srv_model_session_bytes(const srv_model *model, const lapse_session *session)
{
    int64_t bytes = 0;
    lapse_session_bytes(model->model, lapse_session_count(session), &bytes, NULL);
    return bytes;
}

bool srv_model_load(const char *path, srv_model **out, lapse_error *error)
{
    srv_model *m = calloc(1, sizeof *m);
    if (!m || !(m->path = strdup(path))) {
        *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
        free(m);
        return false;
    }
    atomic_init(&m->references, 1);
    if (lapse_model_load(path, &m->model, error) != LAPSE_OK || !hash_file(path, &m->fingerprint, error) ||
        !try_model(m->model, error)) {
        srv_model_drop(m);
        return false;
    }
    snprintf(m->fingerprint_text, sizeof m->fingerprint_text, "%016llx", (unsigned long long)m->fingerprint);
    *out = m;
    return true;
}

srv_model *srv_model_take(srv_model *model)
{
    atomic_fetch_add(&model->references, 1);
    return model;
}

void srv_model_drop(srv_model *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) != 1)
        return;
    lapse_model_free(model->model);
    free(model->popular);
    free(model->path);
    free(model);
}
