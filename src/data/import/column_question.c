/* column_question.c: the sentence of an import that asks instead of guessing, and the options that answer it. */
#include "data/import/columns.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct text {
    char *out;
    size_t size, used;
} text;

static void add(text *t, const char *part)
{
    size_t size = strlen(part);
    if (t->used + size + 1 > t->size)
        size = t->size - t->used - 1;
    memcpy(t->out + t->used, part, size);
    t->used += size;
    t->out[t->used] = 0;
}

/* Quotes a word for a shell. */
static void add_word(text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/@%+=";
    if (*word && strspn(word, plain) == strlen(word)) {
        add(t, word);
        return;
    }
    add(t, "'");
    for (const char *at = word; *at; at++) {
        const char one[2] = {*at, 0};
        add(t, *at == '\'' ? "'\\''" : one);
    }
    add(t, "'");
}

static bool is_printable(const char *name)
{
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            return false;
    return *name != 0 && strlen(name) < 120;
}

static void add_column(text *t, const lp_columns *columns, int64_t column)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, column + 1);
    add_word(t, is_printable(columns->name[column]) ? columns->name[column] : number);
}

/* Writes the options that would do; "" if the guess is not complete. */
static void write_options(const lp_columns *columns, const lp_question *question, bool month_first, char *out,
                          size_t size)
{
    static const char *const names[] = {"\1--sequence ", " \1--time ", " \1--event "};
    const int64_t first[] = {columns->sequence, columns->time, columns->event_count ? columns->event[0] : -1};
    text t = {out, size, 0};
    out[0] = 0;
    for (int role = 0; role < 3; role++)
        if (first[role] < 0)
            return;
    for (int role = 0; role < 3; role++) {
        add(&t, names[role]);
        for (int64_t i = 0; role == LAPSE_COLUMN_EVENT && i + 1 < columns->event_count; i++) {
            add_column(&t, columns, columns->event[i]);
            add(&t, ",");
        }
        add_column(&t, columns, role == LAPSE_COLUMN_EVENT ? columns->event[columns->event_count - 1] : first[role]);
        if (role == LAPSE_COLUMN_TIME && columns->clock >= 0) {
            add(&t, ",");
            add_column(&t, columns, columns->clock);
        }
        add(&t, "\2");
    }
    if (question->no_header || !question->options->header)
        add(&t, " " LP_FLAG("--no-header"));
    if (question->date_order)
        add(&t, month_first ? " " LP_OPTION("--time-unit mdy") : " " LP_OPTION("--time-unit dmy"));
}

/* The other answer, if one thing is in doubt: the runner-up of a role, or the order of dates. */
static void write_other(const lp_columns *columns, const lp_question *question, char *out, size_t size)
{
    lp_columns other = *columns;
    int64_t *const column[] = {&other.sequence, &other.time, &(int64_t){-1}};
    int doubts = question->date_order, doubt = -1;
    for (int role = 0; role < 3; role++)
        if (columns->choice[role].close && !(question->date_order && role == LAPSE_COLUMN_TIME)) {
            doubts++;
            doubt = role;
        }
    out[0] = 0;
    if (doubts != 1 || (doubt >= 0 && columns->runner_up[doubt] < 0) || columns->event_count > 1)
        return;
    for (int role = 0; role < 3; role++)
        if (doubt >= 0 && role != doubt && columns->runner_up[doubt] == (role < 2 ? *column[role] : columns->event[0]))
            return;
    if (doubt >= 0)
        *column[doubt] = columns->runner_up[doubt];
    if (doubt == LAPSE_COLUMN_EVENT)
        other.event = column[LAPSE_COLUMN_EVENT];
    other.clock = doubt == LAPSE_COLUMN_TIME ? -1 : other.clock;
    write_options(&other, question, true, out, size);
}

static void add_doubts(text *t, const lp_columns *columns)
{
    static const char *const nouns[] = {"sequence", "time", "event"};
    bool any = false;
    for (int role = 0; role < 3; role++) {
        const lapse_column_choice *choice = &columns->choice[role];
        if (!choice->close)
            continue;
        add(t, any ? ", the " : "the ");
        add(t, nouns[role]);
        any = true;
        add(t, " ('");
        add(t, choice->column);
        if (choice->runner_up[0]) {
            add(t, "' or '");
            add(t, choice->runner_up);
        }
        add(t, choice->runner_up[0] ? "')" : "'?)");
    }
}

lapse_status lp_columns_ask(lp_columns *columns, const lp_question *question, lapse_error *error)
{
    static const char *const nouns[] = {"sequence", "time", "event"};
    char what[320] = "", names[240], doubts[260] = "", options[sizeof columns->paste];
    text t = {what, sizeof what, 0}, d = {doubts, sizeof doubts, 0};
    lp_columns_name(columns);
    write_other(columns, question, options, sizeof options);
    lp_wording_write(LAPSE_WORDING_COMMAND, options, columns->paste_other, sizeof columns->paste_other);
    write_options(columns, question, false, options, sizeof options);
    lp_wording_write(LAPSE_WORDING_COMMAND, options, columns->paste, sizeof columns->paste);
    columns->question = true;
    for (int role = 0; role < 3; role++)
        if (!columns->choice[role].column[0])
            return lp_fail_at(
                error, LAPSE_ERROR_INPUT, question->file, question->line, 0,
                "no column was recognized as the %s: select it with " LP_OPTION("--%s") "%s; the columns are: %s",
                nouns[role], nouns[role],
                question->no_header ? ", or use " LP_FLAG("--no-header") " if the first line is data" : "",
                lp_columns_list(columns, names, sizeof names));
    if (question->no_header)
        add(&t, "the first line is data, not a header");
    if (question->date_order)
        add(&t, t.used ? "; dates may have the day or the month first" : "dates may have the day or the month first");
    add_doubts(&d, columns);
    if (doubts[0]) {
        add(&t, t.used ? "; not certain: " : "the columns are not certain: ");
        add(&t, doubts);
    }
    if (!t.used)
        add(&t, "without names the columns are not certain");
    return lp_fail_at(error, LAPSE_ERROR_INPUT, question->file, question->line, 0, "%s; set %.190s", what, options);
}
