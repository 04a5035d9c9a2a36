/* import_question.c: see import_question.h. */
#include "import_question.h"

#include <string.h>

#include "console.h"

static const cli_call *command;

void cli_question_command(const cli_call *call)
{
    command = call;
}

static void print_cell(FILE *file, const char *text, int width)
{
    cli_text_print(file, text);
    for (int used = cli_text_width(text); used < width; used++)
        fputc(' ', file);
    fputs("  ", file);
}

static int widest(const lapse_import_report *report, const char *title, size_t offset)
{
    int width = cli_text_width(title);
    for (int role = 0; role < 3; role++) {
        int next = cli_text_width((const char *)&report->columns[role] + offset);
        width = next > width ? next : width;
    }
    return width;
}

void cli_roles_print(FILE *file, const lapse_import_report *report)
{
    static const char *const roles[] = {"sequence", "time", "event"};
    static const struct {
        const char *title;
        size_t offset;
    } cells[] = {{"column", offsetof(lapse_column_choice, column)},
                 {"sample", offsetof(lapse_column_choice, sample)},
                 {"runner-up", offsetof(lapse_column_choice, runner_up)}};
    enum { CELLS = sizeof cells / sizeof *cells };
    fputs("  role      ", file);
    for (int c = 0; c < CELLS; c++)
        print_cell(file, cells[c].title, widest(report, cells[c].title, cells[c].offset));
    fputs("why\n", file);
    for (int role = 0; role < 3; role++) {
        const lapse_column_choice *choice = &report->columns[role];
        fprintf(file, "  %-8s  ", roles[role]);
        for (int c = 0; c < CELLS; c++)
            print_cell(file, (const char *)choice + cells[c].offset, widest(report, cells[c].title, cells[c].offset));
        fprintf(file, "%s%s\n", choice->close ? "not certain: " : "",
                choice->column[0] ? choice->reason : "no column looks like it");
    }
}

/* A word as a shell reads it back. */
static void print_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/@%+=";
    if (*word && strspn(word, plain) == strlen(word)) {
        fputs(word, file);
        return;
    }
    fputc('\'', file);
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            fputs("'\\''", file);
        else
            fputc((unsigned char)*at < 0x20 ? '?' : *at, file);
    }
    fputc('\'', file);
}

/* The number of words that an option which the answer replaces has on the command line; 0: it is none of these. */
static int replaced(const char *word)
{
    static const char *const names[] = {"--sequence", "--user", "--time", "--event", "--item"};
    if (strcmp(word, "--no-header") == 0)
        return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t size = strlen(names[i]);
        if (strncmp(word, names[i], size) == 0 && (word[size] == 0 || word[size] == '='))
            return word[size] == '=' ? 1 : 2;
    }
    return 0;
}

/* The command line with the options that answer. */
static void print_command(const char *options)
{
    fputs("  lapse", stderr);
    for (int i = 1; i < command->argc; i++) {
        int skip = replaced(command->argv[i]);
        if (skip) {
            i += skip - 1;
            continue;
        }
        fputc(' ', stderr);
        print_word(stderr, command->argv[i]);
    }
    fprintf(stderr, " %s\n", options);
}

void cli_question_print(const lapse_import_report *report)
{
    if (!report->question)
        return;
    fputc('\n', stderr);
    cli_roles_print(stderr, report);
    if (report->ignored_count > 0) {
        fputs("  others    ", stderr);
        cli_text_print(stderr, report->ignored);
        fputc('\n', stderr);
    }
    if (!report->paste[0] || !command)
        return;
    fputs("\nIf this is right, paste:\n\n", stderr);
    print_command(report->paste);
    if (!report->paste_other[0])
        return;
    fputs("\nOtherwise:\n\n", stderr);
    print_command(report->paste_other);
}
