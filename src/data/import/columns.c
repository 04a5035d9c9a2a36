/* columns.c: selects the columns of a table by name or number, or by usual names and values (column_guess.c). Every error
 * lists the columns that exist. */
#include "data/import/columns.h"

#include "base/text.h"
#include "data/import/column_guess.h"
#include "data/import/column_names.h"
#include "data/import/column_values.h"

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
    bool header, json, typed;
    bool *taken, *used; /* [column]: by another role; as a field or split. Owned */
    const char *file;
    int64_t line;
    lapse_error *error;
};

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
                      lp_columns_list(chooser->columns, names, sizeof names));
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

static bool is_column(const struct chooser *chooser, const char *wanted)
{
    return find(chooser, wanted, wanted + strlen(wanted)) >= 0;
}

/* The columns of a list that is separated by commas, in the arena. A name that contains a comma is tried first. */
static lapse_status find_list(const struct chooser *chooser, lapse_column_role number, const char *wanted, int64_t **list,
                              int64_t *count)
{
    int64_t parts = 1;
    for (const char *at = wanted; *at; at++)
        parts += *at == ',';
    *count = 0;
    *list = lp_arena_alloc(chooser->arena, (size_t)parts * sizeof **list);
    if (!*list)
        return lp_fail_memory(chooser->error, "the columns", (size_t)parts * sizeof **list);
    if (is_column(chooser, wanted)) {
        (*list)[(*count)++] = find(chooser, wanted, wanted + strlen(wanted));
        return LAPSE_OK;
    }
    for (const char *begin = wanted;;) {
        const char *end = strchr(begin, ',');
        const char *stop = end ? end : begin + strlen(begin), *first = begin, *last = stop;
        lp_text_trim(&first, &last);
        int64_t column = find(chooser, first, last);
        if (column < 0)
            return fail_missing(chooser, &guessed_roles[number], first, last);
        (*list)[(*count)++] = column;
        if (!end)
            return LAPSE_OK;
        begin = end + 1;
    }
}

/* The column or columns that the options name for a role, or else those that are preferred, if they exist; NULL: none. */
static const char *wanted_of(const struct chooser *chooser, lapse_column_role role, bool *given)
{
    const lapse_import_options *options = chooser->options;
    const char *const named[] = {options->sequence, options->time, options->event};
    const char *preferred = options->preferred[role];
    *given = named[role] != NULL;
    if (named[role] || !preferred)
        return named[role];
    struct chooser quiet = *chooser;
    int64_t *list, count;
    quiet.error = NULL;
    return find_list(&quiet, role, preferred, &list, &count) == LAPSE_OK ? preferred : NULL;
}

/* Chooses the columns that are given. */
static lapse_status choose_given(const struct chooser *chooser, int64_t given[3])
{
    lp_columns *columns = chooser->columns;
    for (int role = 0; role < 3; role++) {
        int64_t *list, count;
        const char *wanted = wanted_of(chooser, (lapse_column_role)role, &columns->choice[role].given);
        given[role] = -1;
        if (!wanted)
            continue;
        columns->choice[role].found = !columns->choice[role].given;
        columns->choice[role].given = true;
        LP_TRY(find_list(chooser, (lapse_column_role)role, wanted, &list, &count));
        if (count > 1 + (role == LAPSE_COLUMN_TIME) && role != LAPSE_COLUMN_EVENT)
            return fail_missing(chooser, &guessed_roles[role], wanted, wanted + strlen(wanted));
        given[role] = list[0];
        if (role == LAPSE_COLUMN_EVENT) {
            columns->event = list;
            columns->event_count = count;
        } else if (role == LAPSE_COLUMN_TIME) {
            columns->clock = count > 1 ? list[1] : -1;
        }
        for (int64_t i = 0; i < count; i++)
            chooser->taken[list[i]] = true;
    }
    return LAPSE_OK;
}

/* Whether the first line has values, not names: numbers or dates in columns that have such values below. */
static bool looks_like_data(const struct chooser *chooser)
{
    const lp_columns *columns = chooser->columns;
    bool data = false;
    for (int64_t i = 0; i < columns->count && chooser->sample->row_count > 0; i++) {
        const char *name = columns->name[i], *end = name + strlen(name);
        double number;
        bool month_first, day_first;
        for (int role = 0; role < 3; role++)
            if (lp_column_name_match(name, (lapse_column_role)role).rank >= 0)
                return false;
        data = data || (name < end && (lp_number_parse(name, end, &number) || lp_timestamp_is_date(name, end) ||
                                       lp_timestamp_is_year_last(name, end, &month_first, &day_first)));
    }
    return data;
}

/* Renames the columns by numbers, when the first line turns out to be data. */
static lapse_status number_columns(const struct chooser *chooser)
{
    for (int64_t i = 0; i < chooser->columns->count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, i + 1);
        chooser->columns->name[i] = lp_arena_text(chooser->arena, number);
        if (!chooser->columns->name[i])
            return lp_fail_memory(chooser->error, "the header", sizeof number);
    }
    return LAPSE_OK;
}

static void note_choice(const struct chooser *chooser, lapse_column_role role, const lp_role_guess *guess)
{
    lapse_column_choice *choice = &chooser->columns->choice[role];
    char shown[LP_EXCERPT_SIZE];
    const char *runner_up = guess->runner_up >= 0 ? chooser->columns->name[guess->runner_up] : NULL;
    if (runner_up && !chooser->used[guess->runner_up] && !choice->given)
        snprintf(choice->runner_up, sizeof choice->runner_up, "%s",
                 lp_text_excerpt(runner_up, runner_up + strlen(runner_up), shown));
    snprintf(choice->reason, sizeof choice->reason, "%s", guess->reason);
    snprintf(choice->sample, sizeof choice->sample, "%s", guess->sample);
    choice->close = guess->close && !choice->given;
}

/* Without a header and names, the roles are the first three columns, as far as the values agree. */
static bool in_order(const int64_t given[3], const lp_column_guess *guess, int64_t rows)
{
    bool same = true;
    for (int role = 0; role < 3; role++)
        same = same && (given[role] >= 0 || guess->role[role].column == role ||
                        (rows < 20 && role != LAPSE_COLUMN_TIME && guess->role[LAPSE_COLUMN_TIME].column == LAPSE_COLUMN_TIME));
    return same;
}

static lapse_status use_guess(const struct chooser *chooser, const int64_t given[3], lp_column_guess *guess, bool *ask)
{
    lp_columns *columns = chooser->columns;
    bool ordered = !chooser->header && in_order(given, guess, chooser->sample->row_count) && columns->count >= 3;
    for (int role = 0; role < 3; role++) {
        lp_role_guess *one = &guess->role[role];
        if (given[role] < 0 && ordered) {
            one->column = role;
            one->close = false;
            chooser->columns->choice[role].given = true;
        }
        note_choice(chooser, (lapse_column_role)role, one);
        *ask = *ask || (given[role] < 0 && (one->close || one->column < 0));
    }
    columns->sequence = guess->role[LAPSE_COLUMN_SEQUENCE].column;
    columns->time = guess->role[LAPSE_COLUMN_TIME].column;
    if (given[LAPSE_COLUMN_TIME] < 0)
        columns->clock = guess->clock;
    if (given[LAPSE_COLUMN_EVENT] < 0) {
        columns->event = lp_arena_alloc(chooser->arena, sizeof *columns->event);
        if (!columns->event)
            return lp_fail_memory(chooser->error, "the columns", sizeof *columns->event);
        columns->event[0] = guess->role[LAPSE_COLUMN_EVENT].column;
        columns->event_count = 1;
    }
    return LAPSE_OK;
}

/* The columns of the three roles: given, preferred, or found by their values and names. */
static lapse_status choose_roles(struct chooser *chooser)
{
    lp_columns *columns = chooser->columns;
    lp_column_guess guess;
    lp_question question = {.file = chooser->file, .line = chooser->line, .options = chooser->options};
    int64_t given[3];
    bool automatic = !chooser->options->time_unit || strcmp(chooser->options->time_unit, "auto") == 0, ask = false;
    columns->clock = -1;
    LP_TRY(choose_given(chooser, given));
    if (!(given[0] >= 0 && given[1] >= 0 && given[2] >= 0) && chooser->header && !chooser->json && !chooser->typed && chooser->line > 0 &&
        looks_like_data(chooser)) {
        question.no_header = ask = true;
        chooser->header = false;
        LP_TRY(number_columns(chooser));
    }
    const lp_guess_input input = {.columns = columns,
                                  .sample = chooser->sample,
                                  .given = {given[0], given[1], given[2]},
                                  .taken = chooser->taken,
                                  .used = chooser->used,
                                  .named = chooser->header,
                                  .clocks = !chooser->typed};
    if (!lp_column_guess_roles(&input, &guess))
        return lp_fail_memory(chooser->error, "the columns", (size_t)columns->count);
    LP_TRY(use_guess(chooser, given, &guess, &ask));
    question.numbered = !chooser->header;
    columns->unit = automatic && columns->time >= 0 ? lp_time_look_at(chooser->sample, columns->time, chooser->sample->row_count).unit : LP_TIME_AUTO;
    question.date_order = automatic && columns->unit == LP_TIME_UNCERTAIN && !chooser->options->preferred_unit;
    if (ask || (question.date_order && !chooser->typed))
        return lp_columns_ask(columns, &question, chooser->error);
    columns->whole_sequence = lp_sample_has_zeros(chooser->sample, columns->sequence);
    columns->whole_event = columns->event_count == 1 && lp_sample_has_zeros(chooser->sample, columns->event[0]);
    return LAPSE_OK;
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
    bool same = columns->sequence == columns->time || columns->split == columns->time || columns->split == columns->sequence ||
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
        const char *wanted = i == -2 ? (options->split ? options->split : options->preferred_split)
                             : i == -1                     ? options->action
                             : i < options->category_count ? options->categories[i]
                                                           : options->numbers[i - options->category_count];
        int64_t column = wanted ? find(chooser, wanted, wanted + strlen(wanted)) : -1;
        if (column >= 0)
            chooser->used[column] = true;
    }
}

static lapse_status choose_all(struct chooser *chooser)
{
    lp_columns *columns = chooser->columns;
    const lapse_import_options *options = chooser->options;
    mark_used(chooser);
    LP_TRY(choose_roles(chooser));
    if (options->split)
        LP_TRY(find_given(chooser, &split_role, options->split, true, &columns->split));
    else if (options->preferred_split && is_column(chooser, options->preferred_split))
        LP_TRY(find_given(chooser, &split_role, options->preferred_split, true, &columns->split));
    LP_TRY(check_distinct(chooser));
    return choose_fields(chooser, options);
}

void lp_columns_name(lp_columns *columns)
{
    char shown[LP_EXCERPT_SIZE];
    const int64_t one[] = {columns->sequence, columns->time, columns->clock};
    for (int role = 0; role < 3; role++) {
        int64_t count = role == LAPSE_COLUMN_EVENT ? columns->event_count : 1 + (role == LAPSE_COLUMN_TIME && columns->clock >= 0);
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
    bool found = column == columns->sequence || column == columns->time || column == columns->split || column == columns->clock;
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
