/* help_text.c: prints the tables of the verbs, as help for the terminal and as a man page in troff. The defaults come from
 * the verb's own settings before the command line is parsed, so the help always matches the program. */
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "options.h"

#define LEFT 28 /* column where the descriptions begin */
#define NOTE_SIZE 2048
#define MAX_WIDTH 100 /* longer lines are hard to read */

typedef struct sentence {
    char text[1024];
} sentence;

static void settings_free(const cli_verb *verb, void *settings)
{
    if (verb->clear)
        verb->clear(settings);
    free(settings);
}

/* The default settings of a verb, or NULL if out of memory. settings_free frees them. */
static void *settings_new(const cli_verb *verb)
{
    void *settings = calloc(1, verb->size ? verb->size : 1);
    if (settings && verb->defaults)
        verb->defaults(settings);
    if (!settings || cli_settings_whole(verb, settings))
        return settings;
    settings_free(verb, settings);
    return NULL;
}

static void append(sentence *to, const char *before, const char *text, const char *after)
{
    size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof to->text - used, "%s%s%s", before, text, after);
}

/* Whether text contains name as a whole word. */
static bool mentions(const char *text, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        bool begins = at == text || !strchr(letters, at[-1]);
        bool ends = !at[length] || !strchr(letters, at[length]);
        if (begins && ends)
            return true;
    }
    return false;
}

static bool mentions_all(const char *text, const char *const *names)
{
    while (*names && mentions(text, *names))
        names++;
    return !*names;
}

/* Description of an option, its choices and its default. */
static sentence explain(const cli_option *option, const void *settings)
{
    sentence out = {""};
    char value[512] = "";
    append(&out, "", option->help, "");
    const char *const *names = option->choices ? option->choices() : option->names;
    if (names && !mentions_all(option->help, names))
        for (int i = 0; names[i]; i++)
            append(&out, i ? ", " : ": ", names[i], "");
    if (option->required || !option->placeholder)
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
    for (const cli_option *option = cli_verb_options(verb); option->name; option++) {
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
    return width > MAX_WIDTH ? MAX_WIDTH : width;
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

static void print_option(FILE *file, const cli_option *option, const void *settings)
{
    sentence left = {""};
    if (option->letter)
        snprintf(left.text, sizeof left.text, "-%c, ", option->letter);
    append(&left, "--", option->name, "");
    if (option->placeholder)
        append(&left, " ", option->placeholder, "");
    print_item(file, left.text, explain(option, settings).text);
}

/* Prints the options by group, without the advanced ones unless `all`. Returns the number of options left out. */
static int print_options(FILE *file, const cli_verb *verb, const void *settings, bool all)
{
    int hidden = 0;
    for (const cli_option *first = cli_verb_options(verb); first->name; first++) {
        bool heading = false;
        if (!cli_option_opens_group(verb, first))
            continue;
        for (const cli_option *option = first; option->name; option++) {
            if (!cli_option_same_group(option, first))
                continue;
            if (option->advanced && !all) {
                hidden++;
                continue;
            }
            if (!heading)
                fprintf(file, "\n%s:\n", first->group ? first->group : "Options");
            heading = true;
            print_option(file, option, settings);
        }
    }
    return hidden;
}

bool cli_help_verb(FILE *file, const cli_verb *verb, bool all)
{
    void *settings = settings_new(verb);
    if (!settings)
        return false;
    fputs("usage: ", file);
    synopsis(file, verb);
    fputs("\n\n", file);
    cli_paragraph(file, verb->description, 0, 0, text_width(file));
    if (verb->arguments->name)
        fputc('\n', file);
    for (const cli_argument *argument = verb->arguments; argument->name; argument++)
        print_item(file, argument->name, argument->help);
    int hidden = print_options(file, verb, settings, all);
    if (verb->note_title)
        fprintf(file, "\n%s:\n", verb->note_title);
    char note[NOTE_SIZE];
    const char *name;
    for (int i = 0; verb->note_title && (name = verb->note(i, note, sizeof note)); i++)
        print_item(file, name, note);
    if (verb->examples[0])
        fputs("\nExamples:\n", file);
    for (int i = 0; verb->examples[i]; i++)
        fprintf(file, "  %s\n", verb->examples[i]);
    if (hidden > 0)
        fprintf(file, "\n`lapse %s --help all` shows every option, %d more.\n", verb->name, hidden);
    settings_free(verb, settings);
    return true;
}

void cli_help_verbs(FILE *file)
{
    fputs("usage: lapse VERB [arguments] [options]\n\n"
          "Trains models on timestamped events and predicts: given this history, what happens at time t?\n\n",
          file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        fprintf(file, "  %-12s%s\n", (*verb)->name, (*verb)->summary);
    fputs("\n`lapse VERB --help` shows the arguments and common options of a verb, `lapse VERB --help all` every "
          "option.\n"
          "`lapse --version` prints the version. `lapse demo` is a first example: it needs no data.\n",
          file);
}

/* ---- the man page ---- */

/* Escapes the characters that troff interprets. */
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
    for (const cli_option *option = cli_verb_options(verb); option->name; option++) {
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
    for (const cli_option *option = cli_verb_options(verb); option->name; option++)
        if (option->required)
            fprintf(file, "\\fB\\-\\-%s\\fR \\fI%s\\fR\n", option->name, option->placeholder);
    if (verb->options->name)
        fputs("[options]\n", file);
}

static bool man_verb(FILE *file, const cli_verb *verb)
{
    void *settings = settings_new(verb);
    if (!settings)
        return false;
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
    if (verb->note_title)
        fprintf(file, ".PP\n%s:\n", verb->note_title);
    char note[NOTE_SIZE];
    const char *name;
    for (int i = 0; verb->note_title && (name = verb->note(i, note, sizeof note)); i++) {
        fprintf(file, ".TP\n%s\n", name);
        troff(file, note);
        fputs(".\n", file);
    }
    settings_free(verb, settings);
    return true;
}

bool cli_help_man(FILE *file)
{
    fprintf(file,
            ".TH LAPSE 1 \"\" \"Lapse %s\" \"User Commands\"\n"
            ".SH NAME\n"
            "lapse \\- train models on timestamped events, and predict what happens at a time\n"
            ".SH SYNOPSIS\n",
            lapse_version());
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        fputs(verb == cli_verbs() ? "" : ".br\n", file);
        man_synopsis(file, *verb);
    }
    fputs(
        ".SH DESCRIPTION\n"
        "Lapse trains models on sequences of timestamped events, by self\\-attention with functional time encodings,\n"
        "and predicts: given this history, what happens at time t?\n"
        "Results go to standard output as text, or as one JSON object with \\fB\\-\\-json\\fR; progress and notes go "
        "to\n"
        "standard error. Options are accepted in any position, as \\fB\\-\\-name value\\fR or\n"
        "\\fB\\-\\-name=value\\fR, and cannot be abbreviated; \\fB\\-\\-\\fR ends them. As a file, \\fB\\-\\fR is "
        "standard\n"
        "input or output.\n"
        ".SH VERBS\n",
        file);
    bool whole = true;
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        whole = man_verb(file, *verb) && whole;
    fputs(".SH EXIT STATUS\n"
          ".TP\n0\nSuccess.\n.TP\n1\nFailure: a file could not be read or written, or has the wrong format.\n"
          ".TP\n2\nThe command line is invalid.\n"
          ".TP\n130\nInterrupted; the best model so far has been saved.\n"
          ".SH EXAMPLES\n.nf\n",
          file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        for (int i = 0; (*verb)->examples[i]; i++) {
            troff(file, (*verb)->examples[i]);
            fputc('\n', file);
        }
    }
    fputs(".fi\n", file);
    return whole;
}
