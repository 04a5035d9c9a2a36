/* sweep_plan_file.c: a plan from JSON.
 *
 *   {"data": "events.lapse", "seeds": 10, "models": ["attention", "lstm"], "encodings": ["mercer", "bochner"],
 *    "grid": {"dropout": [0.1, 0.3]}, "options": {"epochs": 50},
 *    "rows": [{"name": "mercer, 10 x 5", "options": {"periods": 10}, "grid": {}}]}
 */
#include "search/sweep_plan.h"

#include "base/file.h"
#include "base/json_reader.h"

#include <string.h>

enum { MAX_ROWS = 1000, MAX_BYTES = 1 << 24 };

typedef struct reading {
    lapse_sweep_plan *plan;
    const char *path;
    lp_json json;
    const char *begin;
} reading;

/* An error at the cursor. */
static lapse_status fail(const reading *r, const char *at, lapse_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static lapse_status fail(const reading *r, const char *at, lapse_error *error, const char *format, ...)
{
    int64_t line = 1;
    va_list arguments;
    for (const char *c = r->begin; c < at; c++)
        line += *c == '\n';
    va_start(arguments, format);
    lapse_status status = lp_fail_list(error, LAPSE_ERROR_INPUT, r->path, line, 0, format, arguments);
    va_end(arguments);
    return status;
}

/* Adds file and line to an error of setting an option. */
static lapse_status locate(const reading *r, const char *at, lapse_status status, lapse_error *error)
{
    char message[sizeof error->message];
    if (status == LAPSE_OK || status == LAPSE_ERROR_MEMORY || !error)
        return status;
    memcpy(message, error->message, sizeof message);
    return fail(r, at, error, "%s", message);
}

static lapse_status out_of_memory(const reading *r, lapse_error *error)
{
    return lp_fail_memory(error, "a comparison", (size_t)(r->json.end - r->begin));
}

/* The name of a member and its colon. */
static lapse_status read_name(reading *r, char **name, lapse_error *error)
{
    lp_json_text text;
    lp_json_string(&r->json, &text);
    lp_json_take(&r->json, ':');
    *name = lp_arena_alloc(&r->plan->arena, (size_t)(text.end - text.begin) + 1);
    if (!*name)
        return out_of_memory(r, error);
    lp_json_decode(text, *name);
    return LAPSE_OK;
}

/* A string, a number, true or false, as the text of an option. */
static lapse_status read_scalar(reading *r, const char *name, char **value, lapse_error *error)
{
    lp_json_text text;
    const char *at = r->json.at;
    lp_json_any(&r->json, &text);
    size_t size = (size_t)(text.end - text.begin);
    if (*text.begin == '{' || *text.begin == '[' || *text.begin == 'n')
        return fail(r, at, error, "the value of '%.80s' must be a string, a number, true or false", name);
    *value = lp_arena_alloc(&r->plan->arena, size + 1);
    if (!*value)
        return out_of_memory(r, error);
    if (*text.begin == '"')
        lp_json_decode((lp_json_text){text.begin + 1, text.end - 1}, *value);
    else
        memcpy(*value, text.begin, size);
    return LAPSE_OK;
}

/* A scalar, or an array of scalars. */
static lapse_status read_values(reading *r, const char *name, lp_sweep_grid *out, lapse_error *error)
{
    const char *at = r->json.at;
    int count = lp_json_count(r->json);
    bool array = lp_json_take(&r->json, '[');
    out->count = array ? count : 1;
    out->values = lp_arena_alloc(&r->plan->arena, (size_t)(out->count + 1) * sizeof *out->values);
    if (!out->values)
        return out_of_memory(r, error);
    if (out->count == 0)
        return fail(r, at, error, "'%.80s' has an empty list", name);
    for (int i = 0; i < out->count; i++) {
        char *value = NULL;
        if (i > 0)
            lp_json_take(&r->json, ',');
        LP_TRY(read_scalar(r, name, &value, error));
        out->values[i] = value;
    }
    if (array)
        lp_json_take(&r->json, ']');
    return LAPSE_OK;
}

/* Calls `member` for each member of the object at the cursor. */
static lapse_status read_object(reading *r, const char *what,
                                lapse_status (*member)(reading *, const char *, void *, lapse_error *), void *context,
                                lapse_error *error)
{
    if (!lp_json_take(&r->json, '{'))
        return fail(r, r->json.at, error, "%s must be an object of names and values", what);
    if (lp_json_take(&r->json, '}'))
        return LAPSE_OK;
    do {
        char *name;
        LP_TRY(read_name(r, &name, error));
        LP_TRY(member(r, name, context, error));
    } while (lp_json_take(&r->json, ','));
    lp_json_take(&r->json, '}');
    return LAPSE_OK;
}

/* ----------------------------------------------------------------------------------------------- members ----- */

static lapse_status plan_option(reading *r, const char *name, void *context, lapse_error *error)
{
    (void)context;
    char *value = NULL;
    const char *at = r->json.at;
    lapse_option option;
    LP_TRY(read_scalar(r, name, &value, error));
    if (!lapse_train_option_find(name, &option))
        return fail(r, at, error, "there is no training option '%.80s'", name);
    return locate(r, at, lapse_sweep_plan_set(r->plan, name, value, error), error);
}

static lapse_status plan_grid(reading *r, const char *name, void *context, lapse_error *error)
{
    lp_sweep_grid values = {0};
    lp_sweep_row *row = context; /* NULL: of all rows */
    const char *at = r->json.at;
    LP_TRY(read_values(r, name, &values, error));
    return locate(r, at,
                  lp_sweep_plan_grid(r->plan, row ? row->grid : r->plan->grid,
                                     row ? &row->grid_count : &r->plan->grid_count, name, &values, error),
                  error);
}

static lapse_status row_option(reading *r, const char *name, void *context, lapse_error *error)
{
    lp_sweep_row *row = context;
    char *value = NULL;
    const char *at = r->json.at;
    LP_TRY(read_scalar(r, name, &value, error));
    if (row->option_count == LP_SWEEP_PAIRS)
        return fail(r, at, error, "a row has more than %d options", LP_SWEEP_PAIRS);
    lapse_train_options trial = r->plan->train;
    LP_TRY(locate(r, at, lapse_train_options_set(&trial, name, value, error), error));
    row->options[row->option_count++] = (lp_sweep_pair){name, value};
    return LAPSE_OK;
}

static lapse_status row_member(reading *r, const char *name, void *context, lapse_error *error)
{
    lp_sweep_row *row = context;
    if (strcmp(name, "options") == 0)
        return read_object(r, "the options of a row", row_option, row, error);
    if (strcmp(name, "grid") == 0)
        return read_object(r, "the grid of a row", plan_grid, row, error);
    if (strcmp(name, "name") != 0)
        return fail(r, r->json.at, error, "a row has name, options and grid, not '%.80s'", name);
    char *value = NULL;
    LP_TRY(read_scalar(r, name, &value, error));
    row->name = value;
    return LAPSE_OK;
}

static lapse_status plan_rows(reading *r, lapse_error *error)
{
    lapse_sweep_plan *plan = r->plan;
    int count = lp_json_count(r->json);
    if (plan->rows || count == 0 || count > MAX_ROWS || !lp_json_take(&r->json, '['))
        return fail(r, r->json.at, error, "'rows' must be there once, as a list of 1 to %d objects", MAX_ROWS);
    plan->rows = lp_alloc((size_t)count, sizeof *plan->rows);
    if (!plan->rows)
        return out_of_memory(r, error);
    for (plan->row_count = 0; plan->row_count < count;) {
        if (plan->row_count > 0)
            lp_json_take(&r->json, ',');
        LP_TRY(read_object(r, "a row", row_member, &plan->rows[plan->row_count++], error));
    }
    lp_json_take(&r->json, ']');
    return LAPSE_OK;
}

/* A list is joined by commas, as on a command line. */
static lapse_status plan_setting(reading *r, const char *name, lapse_error *error)
{
    lp_sweep_grid values = {0};
    lp_buffer joined = {0};
    const char *at = r->json.at;
    lapse_option option;
    if (lapse_train_option_find(name, &option))
        return fail(r, at, error, "'%.80s' is a training option; these are members of \"options\"", name);
    LP_TRY(read_values(r, name, &values, error));
    bool made = true;
    for (int i = 0; made && i < values.count; i++)
        made = lp_buffer_print(&joined, "%s%s", i ? "," : "", values.values[i]);
    /* A list of one seed is that seed; a number alone is how many. */
    if (made && values.count == 1 && strcmp(name, "seeds") == 0 && *at && memchr(at, '[', (size_t)(r->json.at - at)))
        made = lp_buffer_print(&joined, "..%s", values.values[0]);
    lapse_status status =
        made ? locate(r, at, lapse_sweep_plan_set(r->plan, name, joined.data, error), error) : out_of_memory(r, error);
    lp_buffer_clear(&joined);
    return status;
}

static lapse_status plan_member(reading *r, const char *name, void *context, lapse_error *error)
{
    if (strcmp(name, "options") == 0)
        return read_object(r, "'options'", plan_option, NULL, error);
    if (strcmp(name, "grid") == 0)
        return read_object(r, "'grid'", plan_grid, context, error);
    if (strcmp(name, "rows") == 0)
        return plan_rows(r, error);
    return plan_setting(r, name, error);
}

/* ------------------------------------------------------------------------------------------------ public ----- */

static lapse_status parse(lapse_sweep_plan *plan, const char *path, const char *text, size_t size, lapse_error *error)
{
    text = size ? text : "";
    reading r = {.plan = plan, .path = path, .json = {text, text + size}, .begin = text};
    size_t where;
    if (size > MAX_BYTES)
        return fail(&r, text, error, "a comparison has at most %d bytes", MAX_BYTES);
    if (!lp_json_check(text, size, &where))
        return fail(&r, text + where, error,
                    size ? "the text is not valid JSON" : "the text is empty; it must be a JSON object");
    return read_object(&r, "a comparison", plan_member, NULL, error);
}

lapse_status lapse_sweep_plan_parse(lapse_sweep_plan *plan, const char *text, size_t size, lapse_error *error)
{
    LP_REQUIRE(error, plan, text);
    return parse(plan, "", text, size, error);
}

lapse_status lapse_sweep_plan_load(lapse_sweep_plan *plan, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, plan, path);
    lp_map map;
    LP_TRY(lp_map_open(&map, path, error));
    lapse_status status = parse(plan, path, map.data, map.size, error);
    lp_map_close(&map);
    return status;
}
