/* columns.c: selects the columns of a table by name or number, or by usual names and values (column_guess.c). Every error
 * lists the columns that exist. */
#include "data/import/column_chooser.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct role split_role = {"split", LP_OPTION("--split-column")};
static const struct role field_roles[] = {[LAPSE_FIELD_ACTION] = {"action", LP_OPTION("--action")},
                                          [LAPSE_FIELD_CATEGORY] = {"field", LP_OPTION("--field")},
                                          [LAPSE_FIELD_NUMBER] = {"number", LP_OPTION("--number")}};

enum { EXTRA_COLUMNS = LP_FIELD_LIMIT + 1 }; /* fields and a split that the sample does not have */

const char *lp_columns_list(const lp_columns *columns, char *out, size_t size)
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

int64_t lp_column_find(const struct chooser *chooser, const char *begin, const char *end)
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

lapse_status lp_column_missing(const struct chooser *chooser, const struct role *role, const char *begin,
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
                      lp_columns_list(chooser->columns, names, sizeof names));
}

/* A column that the options name. An optional one may be a key that the sample of a JSON Lines file does not have. */
static lapse_status find_given(const struct chooser *chooser, const struct role *role, const char *wanted,
                               bool optional, int64_t *column)
{
    lp_columns *columns = chooser->columns;
    *column = lp_column_find(chooser, wanted, wanted + strlen(wanted));
    if (*column >= 0)
        return LAPSE_OK;
    if (!optional || !chooser->json || !*wanted)
        return lp_column_missing(chooser, role, wanted, wanted + strlen(wanted));
    char *name = lp_arena_text(chooser->arena, wanted);
    if (!name)
        return lp_fail_memory(chooser->error, "the columns", strlen(wanted));
    *column = columns->count;
    columns->name[columns->count++] = name; /* read_names has reserved space */
    return LAPSE_OK;
}

bool lp_column_exists(const struct chooser *chooser, const char *wanted)
{
    return lp_column_find(chooser, wanted, wanted + strlen(wanted)) >= 0;
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
    bool same = columns->sequence == columns->time || columns->split == columns->time ||
                columns->split == columns->sequence ||
                (columns->clock >= 0 && (columns->clock == columns->time || columns->clock == columns->sequence));
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

/* A column, or several separated by commas: each is a field. */
static lapse_status choose_list(const struct chooser *chooser, lapse_field_type type, const char *wanted)
{
    if (!wanted || !strchr(wanted, ',') || lp_column_exists(chooser, wanted))
        return choose_field(chooser, type, wanted);
    for (const char *begin = wanted; begin;) {
        const char *end = begin + strcspn(begin, ","), *first = begin, *last = end;
        lp_text_trim(&first, &last);
        char *name = lp_arena_alloc(chooser->arena, (size_t)(last - first) + 1);
        if (!name)
            return lp_fail_memory(chooser->error, "the columns", (size_t)(last - first) + 1);
        memcpy(name, first, (size_t)(last - first));
        LP_TRY(choose_field(chooser, type, name));
        begin = *end ? end + 1 : NULL;
    }
    return LAPSE_OK;
}

static lapse_status choose_fields(const struct chooser *chooser, const lapse_import_options *options)
{
    if (options->action)
        LP_TRY(choose_field(chooser, LAPSE_FIELD_ACTION, options->action));
    for (int i = 0; i < options->category_count; i++)
        LP_TRY(choose_list(chooser, LAPSE_FIELD_CATEGORY, options->categories[i]));
    for (int i = 0; i < options->number_count; i++)
        LP_TRY(choose_list(chooser, LAPSE_FIELD_NUMBER, options->numbers[i]));
    return LAPSE_OK;
}

/* Marks the columns that the options name as split or fields, so that others are preferred for the three roles. */
static void mark_used(const struct chooser *chooser)
{
    const lapse_import_options *options = chooser->options;
    for (int i = -2; i < options->category_count + options->number_count; i++) {
        const char *wanted = i == -2   ? (options->split ? options->split : options->preferred_split)
                             : i == -1 ? options->action
                             : i < options->category_count ? options->categories[i]
                                                           : options->numbers[i - options->category_count];
        int64_t column = wanted ? lp_column_find(chooser, wanted, wanted + strlen(wanted)) : -1;
        if (column >= 0)
            chooser->used[column] = true;
    }
}

static lapse_status choose_all(struct chooser *chooser)
{
    lp_columns *columns = chooser->columns;
    const lapse_import_options *options = chooser->options;
    mark_used(chooser);
    LP_TRY(lp_column_roles(chooser));
    if (options->split)
        LP_TRY(find_given(chooser, &split_role, options->split, true, &columns->split));
    else if (options->preferred_split && lp_column_exists(chooser, options->preferred_split))
        LP_TRY(find_given(chooser, &split_role, options->preferred_split, true, &columns->split));
    LP_TRY(check_distinct(chooser));
    return choose_fields(chooser, options);
}

void lp_columns_name(lp_columns *columns)
{
    char shown[LP_EXCERPT_SIZE];
    const int64_t one[] = {columns->sequence, columns->time, columns->clock};
    for (int role = 0; role < 3; role++) {
        int64_t count =
            role == LAPSE_COLUMN_EVENT ? columns->event_count : 1 + (role == LAPSE_COLUMN_TIME && columns->clock >= 0);
        const int64_t *column = role == LAPSE_COLUMN_EVENT ? columns->event : &one[role];
        char *out = columns->choice[role].column;
        size_t size = sizeof columns->choice[role].column, used = 0;
        for (int64_t i = 0; i < count && column[i] >= 0 && used + LP_EXCERPT_SIZE + 2 < size; i++) {
            const char *name = columns->name[column[i]];
            used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "",
                                     lp_text_excerpt(name, name + strlen(name), shown));
        }
    }
}

lapse_status lp_columns_choose(lp_columns *columns, lp_arena *arena, const lp_columns_input *input, lapse_error *error)
{
    *columns = (lp_columns){.split = -1, .clock = -1};
    const lapse_import_options *options = input->options;
    size_t count = (size_t)input->first->count + EXTRA_COLUMNS;
    struct chooser chooser = {.columns = columns,
                              .arena = arena,
                              .options = options,
                              .sample = input->sample,
                              .header = options->header,
                              .json = input->json,
                              .typed = input->typed,
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
        lp_columns_name(columns);
    lp_free(chooser.taken);
    lp_free(chooser.used);
    return status;
}

static bool has_role(const lp_columns *columns, int64_t column)
{
    bool found =
        column == columns->sequence || column == columns->time || column == columns->split || column == columns->clock;
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
