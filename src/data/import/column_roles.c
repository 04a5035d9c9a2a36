/* column_roles.c: chooses the columns of the three roles: those that are given, those of an earlier import, and for the rest those
 * that column_guess.c finds; asks where that is not certain. */
#include "base/text.h"
#include "data/import/column_chooser.h"
#include "data/import/column_guess.h"
#include "data/import/column_names.h"
#include "data/import/column_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct role guessed_roles[] = {[LAPSE_COLUMN_SEQUENCE] = {"sequence", LP_OPTION("--sequence")},
                                            [LAPSE_COLUMN_TIME] = {"time", LP_OPTION("--time")},
                                            [LAPSE_COLUMN_EVENT] = {"event", LP_OPTION("--event")}};

/* The columns of a list that is separated by commas, in the arena. A name that contains a comma is tried first. */
static lapse_status find_list(const struct chooser *chooser, lapse_column_role number, const char *wanted,
                              int64_t **list, int64_t *count)
{
    int64_t parts = 1;
    for (const char *at = wanted; *at; at++)
        parts += *at == ',';
    *count = 0;
    *list = lp_arena_alloc(chooser->arena, (size_t)parts * sizeof **list);
    if (!*list)
        return lp_fail_memory(chooser->error, "the columns", (size_t)parts * sizeof **list);
    if (lp_column_exists(chooser, wanted)) {
        (*list)[(*count)++] = lp_column_find(chooser, wanted, wanted + strlen(wanted));
        return LAPSE_OK;
    }
    for (const char *begin = wanted;;) {
        const char *end = strchr(begin, ',');
        const char *stop = end ? end : begin + strlen(begin), *first = begin, *last = stop;
        lp_text_trim(&first, &last);
        int64_t column = lp_column_find(chooser, first, last);
        if (column < 0)
            return lp_column_missing(chooser, &guessed_roles[number], first, last);
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
            return lp_column_missing(chooser, &guessed_roles[role], wanted, wanted + strlen(wanted));
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
    chooser->columns->runner_up[role] = choice->runner_up[0] ? guess->runner_up : -1;
}

/* Without a header and names, the roles are the first three columns, as far as the values agree. */
static bool in_order(const int64_t given[3], const lp_column_guess *guess, int64_t rows)
{
    bool same = true;
    for (int role = 0; role < 3; role++)
        same = same &&
               (given[role] >= 0 || guess->role[role].column == role ||
                (rows < 20 && role != LAPSE_COLUMN_TIME && guess->role[LAPSE_COLUMN_TIME].column == LAPSE_COLUMN_TIME));
    return same;
}

static lapse_status use_guess(const struct chooser *chooser, const int64_t given[3], lp_column_guess *guess, bool *ask)
{
    lp_columns *columns = chooser->columns;
    int64_t free = 0; /* columns that have no other use */
    for (int64_t i = 0; i < columns->count; i++)
        free += !chooser->used[i];
    bool ordered =
        !chooser->header && free == 3 && columns->count >= 3 && in_order(given, guess, chooser->sample->row_count);
    for (int role = 0; role < 3; role++) {
        lp_role_guess *one = &guess->role[role];
        if (given[role] < 0 && ordered) {
            one->column = role;
            one->close = false;
            chooser->columns->choice[role].given = true;
        }
        note_choice(chooser, (lapse_column_role)role, one);
        /* Without names, a rating looks like an event, and an item like a user. */
        *ask = *ask || (given[role] < 0 && (one->close || one->column < 0 || (!chooser->header && !ordered)));
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

lapse_status lp_column_roles(struct chooser *chooser)
{
    lp_columns *columns = chooser->columns;
    lp_column_guess guess;
    lp_question question = {.file = chooser->file, .line = chooser->line, .options = chooser->options};
    int64_t given[3];
    bool automatic = !chooser->options->time_unit || strcmp(chooser->options->time_unit, "auto") == 0, ask = false;
    columns->clock = -1;
    LP_TRY(choose_given(chooser, given));
    bool all_given = given[0] >= 0 && given[1] >= 0 && given[2] >= 0;
    if (!all_given && chooser->header && !chooser->json && !chooser->typed && chooser->line > 0 &&
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
    if (automatic && columns->time >= 0)
        columns->unit = lp_time_look_at(chooser->sample, columns->time, chooser->sample->row_count).unit;
    columns->clock_digits = columns->clock >= 0 ? lp_sample_clock_digits(chooser->sample, columns->clock) : 0;
    question.date_order = automatic && columns->unit == LP_TIME_UNCERTAIN && !chooser->options->preferred_unit;
    if (ask || (question.date_order && !chooser->typed))
        return lp_columns_ask(columns, &question, chooser->error);
    columns->whole_sequence = lp_sample_has_zeros(chooser->sample, columns->sequence);
    columns->whole_event = columns->event_count == 1 && lp_sample_has_zeros(chooser->sample, columns->event[0]);
    return LAPSE_OK;
}
