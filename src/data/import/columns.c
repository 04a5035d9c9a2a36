/* columns.c: selects the columns of a table by name or number, or by usual names and values (column_guess.c). Every error
 * lists the columns that exist. */
#include "data/import/columns.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The role of a column in messages. */
struct role {
    const char *noun;
    const char *option;
};

static const struct role guessed_roles[] = {[LAPSE_COLUMN_SEQUENCE] = {"sequence", "--sequence"},
                                            [LAPSE_COLUMN_TIME] = {"time", "--time"},
                                            [LAPSE_COLUMN_EVENT] = {"event", "--event"}};
static const struct role split_role = {"split", "--split-column"};
static const struct role field_roles[] = {[LAPSE_FIELD_ACTION] = {"action", "--action"},
                                          [LAPSE_FIELD_CATEGORY] = {"field", "--field"},
                                          [LAPSE_FIELD_NUMBER] = {"number", "--number"}};

enum { EXTRA_COLUMNS = LP_FIELD_LIMIT + 1 }; /* fields and a split that the sample does not have */

struct chooser {
    lp_columns *columns;
    lp_arena *arena;
    const lapse_import_options *options;
    const lp_sample *sample;
    bool header, json;
    bool *taken, *used; /* [column]: by another role; as a field or split. Owned */
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

/* The end of a name without the type that RecBole appends, such as "user_id:token". */
static const char *without_type(const char *begin, const char *end)
{
    static const char *const types[] = {":token", ":float", ":token_seq", ":float_seq", NULL};
    for (int i = 0; types[i]; i++) {
        size_t size = strlen(types[i]);
        if ((size_t)(end - begin) > size && memcmp(end - size, types[i], size) == 0)
            return end - size;
    }
    return end;
}

static int64_t find_name(const lp_columns *columns, const char *begin, const char *end)
{
    size_t size = (size_t)(end - begin);
    for (int64_t i = 0; i < columns->count; i++)
        if (strlen(columns->name[i]) == size && memcmp(columns->name[i], begin, size) == 0)
            return i;
    return -1;
}

/* Index of the column with this name or 1-based number, or -1. Names take precedence over numbers. */
static int64_t find(const struct chooser *chooser, const char *begin, const char *end)
{
    const lp_columns *columns = chooser->columns;
    int64_t found = chooser->header ? find_name(columns, begin, end) : -1;
    if (found < 0 && chooser->header)
        found = find_name(columns, begin, without_type(begin, end));
    if (found >= 0 || chooser->json)
        return found;
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

/* The first line of a file without a header: names that are numbers. */
static bool looks_like_data(const lp_columns *columns)
{
    double number;
    for (int64_t i = 0; i < columns->count; i++)
        if (lp_number_parse(columns->name[i], columns->name[i] + strlen(columns->name[i]), &number))
            return true;
    return false;
}

static lapse_status fail_unrecognized(const struct chooser *chooser, const struct role *role, int64_t rejected)
{
    const lp_columns *columns = chooser->columns;
    char names[240], shown[LP_EXCERPT_SIZE], why[160] = "";
    if (rejected >= 0) {
        const char *name = columns->name[rejected];
        snprintf(why, sizeof why, " ('%s' %s)", lp_text_excerpt(name, name + strlen(name), shown),
                 role == &guessed_roles[LAPSE_COLUMN_TIME] ? "has no times" : "has a different value in every row");
    }
    return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                      "no column was recognized as the %s%s: select it with %s%s; the columns are: %s", role->noun, why,
                      role->option,
                      chooser->line > 0 && !chooser->json && looks_like_data(columns)
                          ? ", or use --no-header if the first line is data"
                          : "",
                      list(columns, names, sizeof names));
}

static lapse_status fail_tied(const struct chooser *chooser, const struct role *role, int64_t first, int64_t second)
{
    char a[LP_EXCERPT_SIZE], b[LP_EXCERPT_SIZE];
    int64_t low = first < second ? first : second, high = first < second ? second : first;
    const char *left = chooser->columns->name[low], *right = chooser->columns->name[high];
    lp_text_excerpt(left, left + strlen(left), a);
    lp_text_excerpt(right, right + strlen(right), b);
    if (role == &guessed_roles[LAPSE_COLUMN_EVENT])
        return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                          "the columns '%s' and '%s' are equally good for the event: select one with --event %s or "
                          "--event %s, or both with --event %s,%s",
                          a, b, a, b, a, b);
    return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                      "the columns '%s' and '%s' are equally good for the %s: select one with %s", a, b, role->noun,
                      role->option);
}

/* Default column: by usual names and values, or by position if there is no header. */
static lapse_status find_default(const struct chooser *chooser, lapse_column_role number, int64_t *column)
{
    lp_columns *columns = chooser->columns;
    const struct role *role = &guessed_roles[number];
    lapse_column_choice *choice = &columns->choice[number];
    if (!chooser->header && (int64_t)number < columns->count) {
        *column = (int64_t)number;
        choice->given = true;
        return LAPSE_OK;
    }
    if (!chooser->header)
        return lp_fail_at(chooser->error, LAPSE_ERROR_INPUT, chooser->file, chooser->line, 0,
                          "the first row has only %" PRId64 " field%s, and no column is selected for the %s (%s)",
                          columns->count, columns->count == 1 ? "" : "s", role->noun, role->option);
    int64_t runner_up, tied, rejected;
    if (!lp_column_guess(columns, chooser->sample, number, chooser->taken, chooser->used, column, &runner_up, &tied,
                         &rejected))
        return lp_fail_memory(chooser->error, "the columns", (size_t)columns->count);
    if (*column < 0)
        return fail_unrecognized(chooser, role, rejected);
    if (tied >= 0)
        return fail_tied(chooser, role, *column, tied);
    char shown[LP_EXCERPT_SIZE];
    if (runner_up >= 0)
        snprintf(choice->runner_up, sizeof choice->runner_up, "%s",
                 lp_text_excerpt(columns->name[runner_up], columns->name[runner_up] + strlen(columns->name[runner_up]),
                                 shown));
    return LAPSE_OK;
}

/* A column that the options name. An optional one may be a key that the sample of a JSON Lines file does not have. */
static lapse_status find_given(const struct chooser *chooser, const struct role *role, const char *wanted,
                               bool optional, int64_t *column)
{
    lp_columns *columns = chooser->columns;
    *column = find(chooser, wanted, wanted + strlen(wanted));
    if (*column >= 0)
        return LAPSE_OK;
    if (!optional || !chooser->json || !*wanted)
        return fail_missing(chooser, role, wanted, wanted + strlen(wanted));
    char *name = lp_arena_text(chooser->arena, wanted);
    if (!name)
        return lp_fail_memory(chooser->error, "the columns", strlen(wanted));
    *column = columns->count;
    columns->name[columns->count++] = name; /* read_names has reserved space */
    return LAPSE_OK;
}

static lapse_status choose(const struct chooser *chooser, lapse_column_role number, const char *wanted, int64_t *column)
{
    chooser->columns->choice[number].given = wanted != NULL;
    if (wanted)
        LP_TRY(find_given(chooser, &guessed_roles[number], wanted, false, column));
    else
        LP_TRY(find_default(chooser, number, column));
    chooser->taken[*column] = true;
    return LAPSE_OK;
}

/* One column, or several separated by commas. A name that contains a comma is tried first. */
static lapse_status choose_events(const struct chooser *chooser, const char *wanted)
{
    lp_columns *columns = chooser->columns;
    int64_t parts = 1;
    for (const char *at = wanted; at && *at; at++)
        parts += *at == ',';
    columns->event = lp_arena_alloc(chooser->arena, (size_t)parts * sizeof *columns->event);
    if (!columns->event)
        return lp_fail_memory(chooser->error, "the columns", (size_t)parts * sizeof *columns->event);
    columns->event_count = 1;
    if (!wanted || find(chooser, wanted, wanted + strlen(wanted)) >= 0)
        return choose(chooser, LAPSE_COLUMN_EVENT, wanted, columns->event);
    columns->event_count = 0;
    columns->choice[LAPSE_COLUMN_EVENT].given = true;
    for (const char *begin = wanted;;) {
        const char *end = strchr(begin, ',');
        const char *stop = end ? end : begin + strlen(begin), *first = begin, *last = stop;
        lp_text_trim(&first, &last);
        int64_t column = find(chooser, first, last);
        if (column < 0)
            return fail_missing(chooser, &guessed_roles[LAPSE_COLUMN_EVENT], first, last);
        columns->event[columns->event_count++] = column;
        if (!end)
            return LAPSE_OK;
        begin = end + 1;
    }
}

/* ------------------------------------------------------------------------------------------------ header ----- */

/* Cuts the types off the names of a RecBole file, where every name has one. */
static void cut_types(const struct chooser *chooser)
{
    lp_columns *columns = chooser->columns;
    for (int64_t i = 0; i < columns->count; i++)
        if (!*without_type(columns->name[i], columns->name[i] + strlen(columns->name[i])))
            return;
    for (int64_t i = 0; i < columns->count; i++) {
        char *name = lp_arena_text(chooser->arena, columns->name[i]);
        if (!name)
            return; /* the names stay whole */
        name[without_type(name, name + strlen(name)) - name] = 0;
        columns->name[i] = name;
    }
}

static lapse_status read_names(const struct chooser *chooser, const lp_csv_record *first)
{
    lp_columns *columns = chooser->columns;
    lp_arena *arena = chooser->arena;
    columns->count = first->count;
    size_t size = ((size_t)first->count + EXTRA_COLUMNS) * sizeof *columns->name;
    columns->name = lp_arena_alloc(arena, size);
    if (!columns->name)
        return lp_fail_memory(chooser->error, "the header", size);
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
    LP_TRY(find_given(chooser, &field_roles[type], wanted ? wanted : "", true, &column));
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

/* Marks the columns that the options name as split or fields, so that others are preferred for the three roles. */
static void mark_used(const struct chooser *chooser)
{
    const lapse_import_options *options = chooser->options;
    for (int i = -2; i < options->category_count + options->number_count; i++) {
        const char *wanted = i == -2                       ? options->split
                             : i == -1                     ? options->action
                             : i < options->category_count ? options->categories[i]
                                                           : options->numbers[i - options->category_count];
        int64_t column = wanted ? find(chooser, wanted, wanted + strlen(wanted)) : -1;
        if (column >= 0)
            chooser->used[column] = true;
    }
}

/* Columns that are given for one role are not found for another. */
static void mark_given(const struct chooser *chooser)
{
    const char *const given[] = {chooser->options->sequence, chooser->options->time, chooser->options->event};
    for (int i = 0; i < 3; i++) {
        int64_t column = given[i] ? find(chooser, given[i], given[i] + strlen(given[i])) : -1;
        const char *part = column < 0 && i == LAPSE_COLUMN_EVENT ? given[i] : NULL;
        while (part) {
            const char *first = part, *last = part + strcspn(part, ",");
            part = *last ? last + 1 : NULL;
            lp_text_trim(&first, &last);
            int64_t one = find(chooser, first, last);
            if (one >= 0)
                chooser->taken[one] = true;
        }
        if (column >= 0)
            chooser->taken[column] = true;
    }
}

static lapse_status choose_all(const struct chooser *chooser)
{
    lp_columns *columns = chooser->columns;
    const lapse_import_options *options = chooser->options;
    mark_used(chooser);
    mark_given(chooser);
    LP_TRY(choose(chooser, LAPSE_COLUMN_SEQUENCE, options->sequence, &columns->sequence));
    LP_TRY(choose(chooser, LAPSE_COLUMN_TIME, options->time, &columns->time));
    LP_TRY(choose_events(chooser, options->event));
    if (options->split)
        LP_TRY(find_given(chooser, &split_role, options->split, true, &columns->split));
    LP_TRY(check_distinct(chooser));
    return choose_fields(chooser, options);
}

static void name_choices(lp_columns *columns)
{
    char shown[LP_EXCERPT_SIZE];
    const int64_t one[] = {columns->sequence, columns->time};
    for (int role = 0; role < 3; role++) {
        int64_t count = role == LAPSE_COLUMN_EVENT ? columns->event_count : 1;
        const int64_t *column = role == LAPSE_COLUMN_EVENT ? columns->event : &one[role];
        char *out = columns->choice[role].column;
        size_t size = sizeof columns->choice[role].column, used = 0;
        for (int64_t i = 0; i < count && used + LP_EXCERPT_SIZE + 2 < size; i++) {
            const char *name = columns->name[column[i]];
            used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "",
                                     lp_text_excerpt(name, name + strlen(name), shown));
        }
    }
}

lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lp_columns_input *input, lapse_error *error)
{
    *columns = (lp_columns){.split = -1};
    const lapse_import_options *options = input->options;
    size_t count = (size_t)input->first->count + EXTRA_COLUMNS;
    struct chooser chooser = {.columns = columns,
                              .arena = arena,
                              .options = options,
                              .sample = input->sample,
                              .header = options->header,
                              .json = input->json,
                              .taken = lp_alloc(count, sizeof *chooser.taken),
                              .used = lp_alloc(count, sizeof *chooser.used),
                              .file = input->file,
                              .line = input->line,
                              .error = error};
    lapse_status status =
        chooser.taken && chooser.used ? read_names(&chooser, input->first) : lp_fail_memory(error, "the header", count);
    if (status == LAPSE_OK && options->header) {
        cut_types(&chooser);
        status = check_duplicates(&chooser);
    }
    if (status == LAPSE_OK)
        status = choose_all(&chooser);
    if (status == LAPSE_OK)
        name_choices(columns);
    lp_free(chooser.taken);
    lp_free(chooser.used);
    return status;
}

static bool has_role(const lp_columns *columns, int64_t column)
{
    bool found = column == columns->sequence || column == columns->time || column == columns->split;
    for (int64_t i = 0; i < columns->event_count; i++)
        found = found || columns->event[i] == column;
    for (int i = 0; i < columns->field_count; i++)
        found = found || columns->field[i] == column;
    return found;
}

int64_t lp_columns_ignored(const lp_columns *columns, char *out, size_t size)
{
    int64_t count = 0;
    size_t used = 0;
    bool full = false;
    out[0] = 0;
    for (int64_t i = 0; i < columns->count; i++) {
        char shown[LP_EXCERPT_SIZE];
        if (has_role(columns, i))
            continue;
        lp_text_excerpt(columns->name[i], columns->name[i] + strlen(columns->name[i]), shown);
        const char *name = *shown ? shown : "(without a name)";
        if (!full && used + strlen(name) + 8 > size) {
            full = true;
            used += (size_t)snprintf(out + used, size - used, ", ...");
        }
        if (!full)
            used += (size_t)snprintf(out + used, size - used, "%s%s", count ? ", " : "", name);
        count++;
    }
    return count;
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
