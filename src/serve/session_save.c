/* session_save.c: a session as bytes: its events, and its cached rows if they are wanted.
 *
 *   saved header       below
 *   times              double [count]
 *   types              int32 [count]
 *   gaps               float [count], of models that read them
 *   fields             4 bytes [fields x count]
 *   rows               float [samples][stored matrices][events x columns]; then those of the network of times
 *
 * Numbers have the byte order of the machine. What is read may come from anywhere: nothing in it is trusted.
 */
#include "base/assert.h"
#include "base/finite.h"
#include "serve/session.h"

#include <math.h>
#include <string.h>

/* The cached rows of a network. */
typedef struct saved_rows {
    int64_t first; /* as in lp_row_cache */
    int64_t count; /* events with cached rows, from `first` on; 0: none are saved */
} saved_rows;

enum { EVENTS, TIMES, NETWORKS };

typedef struct saved {
    char magic[8];
    uint64_t model;       /* lp_program.identity */
    int64_t count, total; /* events */
    saved_rows rows[NETWORKS];
    int32_t sequence, unused;
} saved;

static const char magic[8] = "lpsess3";

/* The programs of the model's networks; NULL: it has no network of times. */
typedef struct programs {
    lp_program *of[NETWORKS];
} programs;

static lapse_status programs_of(const lapse_model *model, programs *p, lapse_error *error)
{
    *p = (programs){{NULL}};
    if (model->times)
        LP_TRY(lp_program_of(model->times, &p->of[TIMES], error));
    return lp_program_of(model, &p->of[EVENTS], error);
}

/* Bytes of an event without its cached rows. */
static size_t event_size(const lapse_model *model)
{
    return sizeof(double) + sizeof(int32_t) + (lp_model_reads_gap(&model->config) ? sizeof(float) : 0) +
           (size_t)model->config.field_count * sizeof(lp_field_number);
}

lapse_status lapse_session_bytes(const lapse_model *model, int64_t events, int64_t *bytes, lapse_error *error)
{
    LP_REQUIRE(error, model, bytes);
    programs p;
    if (events < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the number of events is %lld", (long long)events);
    LP_TRY(programs_of(model, &p, error));
    int64_t window = events < model->config.context ? events : model->config.context;
    *bytes = (int64_t)(sizeof(lapse_session) + (size_t)events * event_size(model));
    for (int n = 0; n < NETWORKS && events > 0; n++)
        if (p.of[n] && p.of[n]->incremental)
            *bytes += (int64_t)lp_row_cache_bytes(p.of[n], window);
    return LAPSE_OK;
}

/* Copies `size` bytes of the session to the buffer, or back. */
typedef struct cursor {
    char *at;
    const char *from; /* restoring: the buffer; NULL: saving */
} cursor;

/* data: NULL where size is 0. */
static void copy(cursor *c, void *data, size_t size)
{
    if (size == 0)
        return;
    if (c->from) {
        memcpy(data, c->from, size);
        c->from += size;
    } else {
        memcpy(c->at, data, size);
        c->at += size;
    }
}

static void copy_events(cursor *c, lapse_session *session)
{
    size_t count = (size_t)session->count;
    const lp_model_config *config = &session->model->config;
    copy(c, session->times, count * sizeof *session->times);
    copy(c, session->types, count * sizeof *session->types);
    if (lp_model_reads_gap(config))
        copy(c, session->gaps, count * sizeof *session->gaps);
    for (int f = 0; f < config->field_count; f++)
        copy(c, session->fields[f], count * sizeof(lp_field_number));
}

/* The first rows of the cached matrices. */
static void copy_rows(cursor *c, const lp_row_cache *cache, const lp_program *program, int64_t rows)
{
    for (int sample = 0; sample < program->samples; sample++)
        for (int i = 0; i < program->stored_count; i++)
            copy(c, lp_row_cache_matrix(cache, program, sample, i),
                 (size_t)rows * (size_t)program->cached[i]->cols * sizeof(float));
}

static size_t row_size(const lp_program *program)
{
    size_t size = 0;
    for (int i = 0; i < program->stored_count; i++)
        size += (size_t)program->cached[i]->cols;
    return size * (size_t)program->samples * sizeof(float);
}

static saved_rows rows_of(const lp_row_cache *cache)
{
    if (!cache->data || cache->final <= cache->first)
        return (saved_rows){0};
    return (saved_rows){cache->first, cache->final - cache->first};
}

lapse_status lapse_session_save(const lapse_session *session, bool rows, void *buffer, int64_t size, int64_t *needed,
                                lapse_error *error)
{
    LP_REQUIRE(error, session, needed);
    programs p;
    LP_TRY(programs_of(session->model, &p, error));
    const lp_row_cache *const caches[NETWORKS] = {&session->cache, &session->times_cache};
    saved head = {
        .model = p.of[EVENTS]->identity, .count = session->count, .total = session->total, .sequence = session->sequence};
    memcpy(head.magic, magic, sizeof magic);
    *needed = (int64_t)(sizeof head + (size_t)session->count * event_size(session->model));
    for (int n = 0; n < NETWORKS && rows && p.of[n]; n++) {
        head.rows[n] = rows_of(caches[n]);
        *needed += head.rows[n].count * (int64_t)row_size(p.of[n]);
    }
    if (size < *needed)
        return LAPSE_OK;
    LP_REQUIRE(error, buffer);
    cursor c = {.at = buffer};
    copy(&c, &head, sizeof head);
    copy_events(&c, (lapse_session *)(uintptr_t)session);
    for (int n = 0; n < NETWORKS; n++)
        if (head.rows[n].count > 0)
            copy_rows(&c, caches[n], p.of[n], head.rows[n].count);
    LP_ASSERT(c.at == (char *)buffer + *needed);
    return LAPSE_OK;
}

/* --------------------------------------------------------------------------------------------- restoring ----- */

static lapse_status fail_saved(lapse_error *error, const char *what)
{
    return lp_fail(error, LAPSE_ERROR_FORMAT, "a saved session is damaged: %s", what);
}

/* Takes the rows of a network from the bytes that are left. program: NULL: it has none. */
static lapse_status check_rows(const saved *head, const saved_rows *rows, const lp_program *program, int64_t *left,
                               lapse_error *error)
{
    if (rows->count == 0)
        return LAPSE_OK;
    if (rows->count < 0 || !program || !program->incremental || rows->count > *left / (int64_t)row_size(program))
        return fail_saved(error, "its size");
    *left -= rows->count * (int64_t)row_size(program);
    if (rows->first < 0 || rows->first > head->count - 1 - rows->count ||
        rows->count >= program->model->config.context)
        return fail_saved(error, "the numbers of its cached rows");
    return LAPSE_OK;
}

static lapse_status check_head(const saved *head, const programs *p, int64_t size, lapse_error *error)
{
    const lp_program *program = p->of[EVENTS];
    int64_t event = (int64_t)event_size(program->model), left = size;
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "this is not a saved session");
    if (head->model != program->identity)
        return lp_fail(error, LAPSE_ERROR_FORMAT, "the saved session is of another model");
    const lp_model_config *config = &program->model->config;
    left -= (int64_t)sizeof *head;
    if (head->sequence < 0 || (config->row->sequence_input && head->sequence > config->sequences))
        return fail_saved(error, "its sequence");
    if (head->count < 0 || head->total < head->count || head->count > left / event)
        return fail_saved(error, "the number of its events");
    left -= head->count * event;
    for (int n = 0; n < NETWORKS; n++)
        LP_TRY(check_rows(head, &head->rows[n], p->of[n], &left, error));
    return left == 0 ? LAPSE_OK : fail_saved(error, "its size");
}

static lapse_status check_events(const lapse_session *session, lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    for (int64_t i = 0; i < session->count; i++) {
        if (!isfinite(session->times[i]) || (i > 0 && session->times[i] < session->times[i - 1]))
            return fail_saved(error, "a time");
        if (session->types[i] < 0 || session->types[i] >= config->event_types)
            return fail_saved(error, "an event type");
        if (lp_model_reads_gap(config) && isinf(session->gaps[i]))
            return fail_saved(error, "a gap");
        for (int f = 0; f < config->field_count; f++) {
            const lp_field_number *value = (const lp_field_number *)session->fields[f] + i;
            bool good = config->fields[f].type == LAPSE_FIELD_NUMBER
                            ? isfinite(value->number)
                            : value->category >= 0 && value->category < config->fields[f].categories.count;
            if (!good)
                return fail_saved(error, "a field");
        }
    }
    return LAPSE_OK;
}

static lapse_status read_rows(lp_row_cache *cache, const lp_program *program, const saved_rows *rows, cursor *c,
                              lapse_error *error)
{
    size_t numbers = (size_t)rows->count * row_size(program) / sizeof(float);
    for (size_t i = 0; i < numbers; i++) {
        float number;
        memcpy(&number, c->from + i * sizeof number, sizeof number);
        if (!isfinite(number))
            return fail_saved(error, "a cached row");
    }
    cache->first = cache->final = rows->first;
    LP_TRY(lp_row_cache_reserve(cache, program, rows->first + rows->count + 1, error));
    copy_rows(c, cache, program, rows->count);
    cache->final = rows->first + rows->count;
    return LAPSE_OK;
}

/* Fills an empty session. */
static lapse_status read_saved(lapse_session *session, const programs *p, const saved *head, const char *data,
                               lapse_error *error)
{
    cursor c = {.from = data};
    lp_row_cache *const caches[NETWORKS] = {&session->cache, &session->times_cache};
    LP_TRY(lp_session_reserve(session, head->count, error));
    session->count = head->count;
    session->total = head->total;
    session->sequence = head->sequence;
    copy_events(&c, session);
    LP_TRY(check_events(session, error));
    for (int n = 0; n < NETWORKS; n++)
        if (head->rows[n].count > 0)
            LP_TRY(read_rows(caches[n], p->of[n], &head->rows[n], &c, error));
    return LAPSE_OK;
}

lapse_status lapse_session_restore(lapse_session *session, const void *buffer, int64_t size, lapse_error *error)
{
    LP_REQUIRE(error, session, buffer);
    programs p;
    saved head;
    LP_TRY(programs_of(session->model, &p, error));
    if (size < (int64_t)sizeof head)
        return fail_saved(error, "its size");
    memcpy(&head, buffer, sizeof head);
    LP_TRY(check_head(&head, &p, size, error));
    lapse_session *made = NULL;
    LP_TRY(lapse_session_new(session->model, &made, error));
    lapse_status status = read_saved(made, &p, &head, (const char *)buffer + sizeof head, error);
    if (status == LAPSE_OK) {
        lapse_session old = *session;
        made->decoder = old.decoder; /* who holds it still does */
        made->times_decoder = old.times_decoder;
        made->holders = old.holders;
        *session = *made;
        old.decoder = old.times_decoder = NULL;
        old.holders = 0;
        *made = old;
    }
    lapse_session_free(made);
    return status;
}
