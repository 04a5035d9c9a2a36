/* columns.c: selects the columns of a table by name or number, or by usual names. Every error lists the columns that
 * exist. */
#include "data/import/columns.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The role of a column, and its usual names in the order of preference. */
struct role {
    const char *noun; /* in messages */
    const char *option;
    const char *const *names;
};

static const char *const sequence_names[] = {
    "sequence",   "sequence_id", "user",       "user_id",    "userid",  "customer",   "customer_id",
    "customerid", "session",     "session_id", "sessionid",  "visitor", "visitor_id", "visitorid",
    "account",    "account_id",  "patient",    "patient_id", "device",  "device_id",  "client_id",
    "member_id",  "subject_id",  "case_id",    "case",       "uid",     "id",         NULL};
static const char *const time_names[] = {"time",        "timestamp", "unix_time", "unixtime", "event_time",
                                         "datetime",    "date_time", "ts",        "date",     "created_at",
                                         "occurred_at", "created",   "when",      NULL};
static const char *const event_names[] = {"event",  "event_type", "event_name", "item", "item_id", "itemid",
                                          "action", "activity",   "type",       "kind", "product", "product_id",
                                          "code",   "label",      "category",   NULL};
static const struct role sequence_role = {"sequence", "--sequence", sequence_names};
static const struct role time_role = {"time", "--time", time_names};
static const struct role event_role = {"event", "--event", event_names};
static const struct role split_role = {"split", "--split-column", NULL};
static const struct role field_roles[] = {[LAPSE_FIELD_ACTION] = {"action", "--action", NULL},
                                          [LAPSE_FIELD_CATEGORY] = {"field", "--field", NULL},
                                          [LAPSE_FIELD_NUMBER] = {"number", "--number", NULL}};

struct chooser {
    lp_columns *columns;
    bool header;
    const char *file;
    int64_t line;
    lapse_error *error;
};

/* "user, time, event", truncated to fit a message. */
static const char *list(const lp_columns *columns, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int64_t i = 0; i < columns->count; i++) {
        char shown[LP_EXCERPT_SIZE];
        lp_text_excerpt(columns->name[i], columns->name[i] + strlen(columns->name[i]), shown);
        if (used + strlen(shown) + 8 > size) {
            snprintf(out + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", shown);
    }
    return out;
}

/* Index of the column with this name or 1-based number, or -1. Names take precedence over numbers. */
static int64_t find(const lp_columns *columns, bool header, const char *begin, const char *end)
{
    size_t size = (size_t)(end - begin);
    for (int64_t i = 0; header && i < columns->count; i++)
        if (strlen(columns->name[i]) == size && memcmp(columns->name[i], begin, size) == 0)
            return i;
    int64_t number = 0;
    for (const char *at = begin; at < end; at++) {
        if (*at < '0' || *at > '9' || number > columns->count)
            return -1;
        number = number * 10 + (*at - '0');
    }
    return number >= 1 && number <= columns->count ? number - 1 : -1;
}

static lapse_status fail_missing(const struct chooser *chooser, const struct role *role, const char *begin,
                                 const char *end)
{
    char names[300], shown[LP_EXCERPT_SIZE];
    lp_text_excerpt(begin, end, shown);
    if (!chooser->header)
        return lp_fail_at(
            chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
            "there is no column '%s' for the %s: without a header, columns are numbers from 1 to %" PRId64, shown,
            role->noun, chooser->columns->count);
    return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                      "there is no column '%s' for the %s; the columns are: %s", shown, role->noun,
                      list(chooser->columns, names, sizeof names));
}

/* Default column: by usual names, or by position if there is no header. */
static lapse_status find_default(const struct chooser *chooser, const struct role *role, int64_t position,
                                 int64_t *column)
{
    const lp_columns *columns = chooser->columns;
    if (!chooser->header && position < columns->count) {
        *column = position;
        return LAPSE_OK;
    }
    for (const char *const *name = role->names; chooser->header && *name; name++) {
        for (int64_t i = 0; i < columns->count; i++) {
            if (lp_text_is(columns->name[i], columns->name[i] + strlen(columns->name[i]), *name)) {
                *column = i;
                return LAPSE_OK;
            }
        }
    }
    char names[300];
    if (!chooser->header)
        return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                          "the first row has only %" PRId64 " field%s, and no column is selected for the %s (%s)",
                          columns->count, columns->count == 1 ? "" : "s", role->noun, role->option);
    return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                      "no column was recognized as the %s: select it with %s; the columns are: %s", role->noun,
                      role->option, list(columns, names, sizeof names));
}

static lapse_status choose(const struct chooser *chooser, const struct role *role, const char *wanted, int64_t position,
                           int64_t *column)
{
    if (!wanted)
        return find_default(chooser, role, position, column);
    *column = find(chooser->columns, chooser->header, wanted, wanted + strlen(wanted));
    return *column < 0 ? fail_missing(chooser, role, wanted, wanted + strlen(wanted)) : LAPSE_OK;
}

/* One column, or several separated by commas. A name that contains a comma is tried first. */
static lapse_status choose_events(const struct chooser *chooser, lp_arena *arena, const char *wanted)
{
    lp_columns *columns = chooser->columns;
    int64_t parts = 1;
    for (const char *at = wanted; at && *at; at++)
        parts += *at == ',';
    columns->event = lp_arena_alloc(arena, (size_t)parts * sizeof *columns->event);
    if (!columns->event)
        return lp_fail_memory(chooser->error, "the columns", (size_t)parts * sizeof *columns->event);
    columns->event_count = 1;
    if (!wanted || find(columns, chooser->header, wanted, wanted + strlen(wanted)) >= 0)
        return choose(chooser, &event_role, wanted, 2, columns->event);
    columns->event_count = 0;
    for (const char *begin = wanted;;) {
        const char *end = strchr(begin, ',');
        const char *stop = end ? end : begin + strlen(begin), *first = begin, *last = stop;
        lp_text_trim(&first, &last);
        int64_t column = find(columns, chooser->header, first, last);
        if (column < 0)
            return fail_missing(chooser, &event_role, first, last);
        columns->event[columns->event_count++] = column;
        if (!end)
            return LAPSE_OK;
        begin = end + 1;
    }
}

/* ------------------------------------------------------------------------------------------------ header ----- */

static lapse_status read_names(const struct chooser *chooser, lp_arena *arena, const lp_csv_record *first)
{
    lp_columns *columns = chooser->columns;
    columns->count = first->count;
    columns->name = lp_arena_alloc(arena, (size_t)first->count * sizeof *columns->name);
    if (!columns->name)
        return lp_fail_memory(chooser->error, "the header", (size_t)first->count * sizeof *columns->name);
    for (int64_t i = 0; i < first->count; i++) {
        const char *begin = first->begin[i], *end = first->end[i];
        char number[24];
        if (!chooser->header) {
            begin = number;
            end = number + snprintf(number, sizeof number, "%" PRId64, i + 1);
        }
        lp_text_trim(&begin, &end);
        if (!lp_text_is_utf8(begin, end))
            return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, i + 1,
                              "the header is not valid UTF-8 text");
        char *name = lp_arena_alloc(arena, (size_t)(end - begin) + 1);
        if (!name)
            return lp_fail_memory(chooser->error, "the header", (size_t)(end - begin) + 1);
        memcpy(name, begin, (size_t)(end - begin));
        columns->name[i] = name;
    }
    return LAPSE_OK;
}

static int by_name(const void *left, const void *right)
{
    const char *const *a = *(const char *const *const *)left, *const *b = *(const char *const *const *)right;
    int order = strcmp(*a, *b);
    return order ? order : (a > b) - (a < b);
}

/* Sorts the names, because a hostile header may have hundreds of thousands. Empty names may repeat. */
static lapse_status check_duplicates(const struct chooser *chooser)
{
    const lp_columns *columns = chooser->columns;
    const char ***order = lp_alloc((size_t)columns->count, sizeof *order);
    if (!order)
        return lp_fail_memory(chooser->error, "the header", (size_t)columns->count * sizeof *order);
    for (int64_t i = 0; i < columns->count; i++)
        order[i] = &columns->name[i];
    qsort(order, (size_t)columns->count, sizeof *order, by_name);
    int64_t first = -1, second = -1;
    for (int64_t i = 1; i < columns->count; i++) {
        int64_t index = order[i] - columns->name;
        if (**order[i] && strcmp(*order[i - 1], *order[i]) == 0 && (second < 0 || index < second)) {
            first = order[i - 1] - columns->name;
            second = index;
        }
    }
    lp_free(order);
    if (second < 0)
        return LAPSE_OK;
    char shown[LP_EXCERPT_SIZE];
    const char *name = columns->name[first];
    return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, second + 1,
                      "the header names two columns '%s': columns %" PRId64 " and %" PRId64,
                      lp_text_excerpt(name, name + strlen(name), shown), first + 1, second + 1);
}

static lapse_status check_distinct(const struct chooser *chooser)
{
    const lp_columns *columns = chooser->columns;
    bool same =
        columns->sequence == columns->time || columns->split == columns->time || columns->split == columns->sequence;
    for (int64_t i = 0; i < columns->event_count; i++)
        same = same || columns->event[i] == columns->time || columns->event[i] == columns->split ||
               columns->event[i] == columns->sequence;
    if (!same)
        return LAPSE_OK;
    return lp_fail_at(chooser->error, LAPSE_ERROR_USAGE, chooser->file, chooser->line, 0,
                      "a column is selected twice: time, sequence, event and split must be different columns");
}

static lapse_status choose_field(const struct chooser *chooser, lapse_field_type type, const char *wanted)
{
    lp_columns *columns = chooser->columns;
    if (columns->field_count == LP_FIELD_LIMIT)
        return lp_fail_at(chooser->error, LAPSE_ERROR_USAGE, chooser->file, chooser->line, 0,
                          "too many fields: the limit is %d", (int)LP_FIELD_LIMIT);
    int64_t column;
    LP_TRY(choose(chooser, &field_roles[type], wanted ? wanted : "", 0, &column));
    bool taken = column == columns->time || column == columns->sequence || column == columns->split;
    for (int i = 0; i < columns->field_count; i++)
        taken = taken || columns->field[i] == column;
    if (taken) {
        char shown[LP_EXCERPT_SIZE];
        const char *name = columns->name[column];
        return lp_fail_at(chooser->error, LAPSE_ERROR_USAGE, chooser->file, chooser->line, column + 1,
                          "the column '%s' cannot be the %s: it already has another role",
                          lp_text_excerpt(name, name + strlen(name), shown), field_roles[type].noun);
    }
    columns->field[columns->field_count] = column;
    columns->field_type[columns->field_count++] = type;
    return LAPSE_OK;
}

static lapse_status choose_fields(const struct chooser *chooser, const lapse_import_options *options)
{
    if (options->action)
        LP_TRY(choose_field(chooser, LAPSE_FIELD_ACTION, options->action));
    for (int i = 0; i < options->category_count; i++)
        LP_TRY(choose_field(chooser, LAPSE_FIELD_CATEGORY, options->categories[i]));
    for (int i = 0; i < options->number_count; i++)
        LP_TRY(choose_field(chooser, LAPSE_FIELD_NUMBER, options->numbers[i]));
    return LAPSE_OK;
}

lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lapse_import_options *options,
                               const lp_csv_record *first, const char *file, int64_t line, lapse_error *error)
{
    *columns = (lp_columns){.split = -1};
    struct chooser chooser = {columns, options->header, file, line, error};
    LP_TRY(read_names(&chooser, arena, first));
    if (options->header)
        LP_TRY(check_duplicates(&chooser));
    LP_TRY(choose(&chooser, &sequence_role, options->sequence, 0, &columns->sequence));
    LP_TRY(choose(&chooser, &time_role, options->time, 1, &columns->time));
    LP_TRY(choose_events(&chooser, arena, options->event));
    if (options->split)
        LP_TRY(choose(&chooser, &split_role, options->split, 0, &columns->split));
    LP_TRY(check_distinct(&chooser));
    return choose_fields(&chooser, options);
}

const char *lp_columns_event_text(const lp_columns *columns, lp_arena *arena)
{
    size_t size = 1;
    for (int64_t i = 0; i < columns->event_count; i++)
        size += strlen(columns->name[columns->event[i]]) + 1;
    char *text = lp_arena_alloc(arena, size), *at = text;
    for (int64_t i = 0; text && i < columns->event_count; i++)
        at += snprintf(at, size - (size_t)(at - text), "%s%s", i ? "," : "", columns->name[columns->event[i]]);
    return text;
}
