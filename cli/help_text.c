/* help_text.c: the tables of the verbs as text: for the terminal, and as a man page in troff. Defaults are those that
 * the verb's own settings hold before the command line is read, so the help cannot drift from the program. */
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "options.h"

#define LEFT 28    /* where the sentences begin */
#define WIDEST 100 /* lines longer than this are hard to read */

typedef struct sentence {
    char text[1024];
} sentence;

/* The settings of a verb with their defaults, or NULL. Freed by the caller. */
static void *settings_new(const cli_verb *verb)
{
    void *settings = calloc(1, verb->size ? verb->size : 1);
    if (settings && verb->defaults)
        verb->defaults(settings);
    return settings;
}

static void append(sentence *to, const char *before, const char *text, const char *after)
{
    size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof to->text - used, "%s%s%s", before, text, after);
}

/* What an option means, its choices and its default. */
static sentence explain(const cli_option *option, const void *settings)
{
    sentence out = {""};
    char value[512] = "";
    append(&out, "", option->help, "");
    if (option->choices) {
        const char *const *names = option->choices();
        for (int i = 0; names[i]; i++)
            append(&out, i ? ", " : ": ", names[i], "");
    }
    if (option->required || option->type == CLI_FLAG || option->type == CLI_UNFLAG)
        return out;
    cli_option_show(option, settings, value, sizeof value);
    if (*value)
        append(&out, " (default: ", value, ")");
    return out;
}

static void synopsis(FILE *file, const cli_verb *verb)
{
    fprintf(file, "lapse %s", verb->name);
    for (const cli_argument *argument = verb->arguments; argument->name; argument++)
        fprintf(file, argument->optional ? " [%s]" : " %s", argument->name);
    for (const cli_option *option = verb->options; option->name; option++) {
        if (option->required && option->letter)
            fprintf(file, " -%c %s", option->letter, option->placeholder);
        else if (option->required)
            fprintf(file, " --%s %s", option->name, option->placeholder);
    }
    if (verb->options->name)
        fputs(" [options]", file);
}

static int text_width(FILE *file)
{
    int width = cli_width(file);
    return width > WIDEST ? WIDEST : width;
}

static void print_item(FILE *file, const char *left, const char *text)
{
    int used = fprintf(file, "  %s", left);
    if (used > LEFT - 2) {
        fputc('\n', file);
        used = 0;
    }
    fprintf(file, "%*s", LEFT - used, "");
    int width = text_width(file);
    cli_paragraph(file, text, LEFT, LEFT, width > LEFT + 20 ? width : LEFT + 20);
}

static void print_options(FILE *file, const cli_verb *verb, const void *settings)
{
    const char *group = "";
    for (const cli_option *option = verb->options; option->name; option++) {
        if (option->group != group)
            fprintf(file, "\n%s:\n", option->group ? option->group : "Options");
        group = option->group;
        sentence left = {""};
        if (option->letter)
            snprintf(left.text, sizeof left.text, "-%c, ", option->letter);
        append(&left, "--", option->name, "");
        if (option->placeholder)
            append(&left, " ", option->placeholder, "");
        print_item(file, left.text, explain(option, settings).text);
    }
}

void cli_help_verb(FILE *file, const cli_verb *verb)
{
    void *settings = settings_new(verb);
    if (!settings)
        return;
    fputs("usage: ", file);
    synopsis(file, verb);
    fputs("\n\n", file);
    cli_paragraph(file, verb->description, 0, 0, text_width(file));
    if (verb->arguments->name)
        fputc('\n', file);
    for (const cli_argument *argument = verb->arguments; argument->name; argument++)
        print_item(file, argument->name, argument->help);
    print_options(file, verb, settings);
    if (verb->examples[0])
        fputs("\nExamples:\n", file);
    for (int i = 0; verb->examples[i]; i++)
        fprintf(file, "  %s\n", verb->examples[i]);
    free(settings);
}

void cli_help_all(FILE *file)
{
    fputs("usage: lapse VERB [arguments] [options]\n\n"
          "Learns from timestamped events and answers: given this history, what happens at time t?\n\n",
          file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        fprintf(file, "  %-12s%s\n", (*verb)->name, (*verb)->summary);
    fputs("\n`lapse VERB --help` tells what a verb takes. `lapse --version` tells the version.\n"
          "Try `lapse demo` first: it needs no data.\n",
          file);
}

/* ---- the man page ---- */

/* Text with what troff would read as its own made plain. */
static void troff(FILE *file, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", file);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", file);
        else if (*text == '-')
            fputs("\\-", file);
        else if (*text == '\'')
            fputs("\\(aq", file);
        else if (*text == '`')
            fputs("\\(ga", file);
        else
            fputc(*text, file);
    }
}

static void man_options(FILE *file, const cli_verb *verb, const void *settings)
{
    for (const cli_option *option = verb->options; option->name; option++) {
        fputs(".TP\n", file);
        if (option->letter)
            fprintf(file, "\\fB\\-%c\\fR, ", option->letter);
        fputs("\\fB\\-\\-", file);
        troff(file, option->name);
        fputs("\\fR", file);
        if (option->placeholder) {
            fputs(" \\fI", file);
            troff(file, option->placeholder);
            fputs("\\fR", file);
        }
        fputc('\n', file);
        troff(file, explain(option, settings).text);
        fputs(".\n", file);
    }
}

static void man_synopsis(FILE *file, const cli_verb *verb)
{
    fprintf(file, ".B lapse %s\n", verb->name);
    for (const cli_argument *argument = verb->arguments; argument->name; argument++)
        fprintf(file, argument->optional ? "[\\fI%s\\fR]\n" : "\\fI%s\\fR\n", argument->name);
    for (const cli_option *option = verb->options; option->name; option++)
        if (option->required)
            fprintf(file, "\\fB\\-\\-%s\\fR \\fI%s\\fR\n", option->name, option->placeholder);
    if (verb->options->name)
        fputs("[options]\n", file);
}

static void man_verb(FILE *file, const cli_verb *verb)
{
    void *settings = settings_new(verb);
    if (!settings)
        return;
    fprintf(file, ".SS %s\n", verb->name);
    man_synopsis(file, verb);
    fputs(".PP\n", file);
    troff(file, verb->description);
    fputc('\n', file);
    for (const cli_argument *argument = verb->arguments; argument->name; argument++) {
        fprintf(file, ".TP\n\\fI%s\\fR\n", argument->name);
        troff(file, argument->help);
        fputs(".\n", file);
    }
    man_options(file, verb, settings);
    free(settings);
}

void cli_help_man(FILE *file)
{
    fprintf(file,
            ".TH LAPSE 1 \"\" \"Lapse %s\" \"User Commands\"\n"
            ".SH NAME\n"
            "lapse \\- learn from timestamped events, and ask what happens at a time\n"
            ".SH SYNOPSIS\n",
            lapse_version());
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        fputs(verb == cli_verbs() ? "" : ".br\n", file);
        man_synopsis(file, *verb);
    }
    fputs(
        ".SH DESCRIPTION\n"
        "Lapse reads histories of events with their times, learns from them by self\\-attention with functional time\n"
        "encodings, and answers: given this history, what happens at time t?\n"
        "Results go to standard output as text, or as one JSON object with \\fB\\-\\-json\\fR; progress and notes go "
        "to\n"
        "standard error. Options may stand anywhere, as \\fB\\-\\-name value\\fR or \\fB\\-\\-name=value\\fR, and are "
        "never\n"
        "abbreviated; \\fB\\-\\-\\fR ends them. As a file, \\fB\\-\\fR is standard input or output.\n"
        ".SH VERBS\n",
        file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        man_verb(file, *verb);
    fputs(".SH EXIT STATUS\n"
          ".TP\n0\nDone.\n.TP\n1\nFailed: a file could not be read or written, or holds something else.\n"
          ".TP\n2\nThe command was written wrongly.\n"
          ".TP\n130\nInterrupted; what was learned so far has been saved.\n"
          ".SH EXAMPLES\n.nf\n",
          file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        for (int i = 0; (*verb)->examples[i]; i++) {
            troff(file, (*verb)->examples[i]);
            fputc('\n', file);
        }
    }
    fputs(".fi\n", file);
}
