/* options.h: what a verb takes, as one table.
 *
 * A row of the table names an option, its event type, and where its value lies in the verb's settings. The same row drives
 * parsing, `lapse VERB --help` (with the default read from the settings themselves), the man page, the banner of a run
 * and the settings in its JSON. Adding an option is adding a row.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"

typedef enum cli_type {
    CLI_TEXT,     /* const char * */
    CLI_CHOICE,   /* const char *: one of the names that choices() lists */
    CLI_WHOLE,    /* int, not negative */
    CLI_COUNT,    /* int64_t, not negative */
    CLI_SEED,     /* uint64_t */
    CLI_NUMBER,   /* double */
    CLI_DURATION, /* double, seconds; written with a unit */
    CLI_FLAG,     /* bool, made true */
    CLI_UNFLAG,   /* bool, made false */
    CLI_LIST      /* cli_list: every occurrence adds one */
} cli_type;

typedef struct cli_list {
    const char **items; /* owned by the parser; the texts are the command line's */
    int count;
} cli_list;

typedef struct cli_option {
    const char *name; /* without the two dashes */
    char letter;      /* of the short form, or 0 */
    cli_type type;
    size_t offset;           /* of the value in the verb's settings */
    const char *placeholder; /* such as FILE; NULL for flags */
    const char *help;        /* one sentence, without its period */
    const char *unset;       /* what NULL, 0 (whole numbers, durations) or a negative stands for; NULL: it is a value */
    const char *unit;        /* of a number, for help and banner; may be NULL */
    const char *const *(*choices)(void);
    const char *group; /* heading in the help and paragraph of the banner; NULL: not in the banner */
    const char *only;  /* names of the models or encodings it matters to, joined by spaces; NULL: all */
    bool required;
} cli_option;

/* An argument without dashes, taken in order. */
typedef struct cli_argument {
    const char *name; /* such as DATA; NULL ends the table */
    size_t offset;    /* of a const char * */
    const char *help;
    bool optional;
} cli_argument;

struct cli_verb;

/* How a verb was called: what a message about the command itself needs. */
typedef struct cli_call {
    const struct cli_verb *verb;
    int argc;
    char **argv; /* argv[0] is "lapse", argv[1] the verb */
} cli_call;

/* A verb: one file and one row of the table in main.c. */
typedef struct cli_verb {
    const char *name;
    const char *summary;         /* half a line */
    const char *description;     /* a paragraph */
    const char *const *examples; /* NULL-terminated */
    const cli_argument *arguments;
    const cli_option *options; /* ended by a row without a name */
    size_t size;               /* of the settings */
    void (*defaults)(void *settings);
    int (*run)(void *settings, const cli_call *call); /* returns the exit status */
} cli_verb;

/* All verbs, NULL-terminated. */
const cli_verb *const *cli_verbs(void);
const cli_verb *cli_verb_find(const char *name);
/* The name in a NULL-terminated list that a mistyped one most likely meant, or NULL. */
const char *cli_nearest(const char *typed, const char *const *names);

/* Fills settings (already holding the defaults) from the command line. Returns CLI_DONE or CLI_USAGE, having said why;
 * *help is set where --help was met. The lists in settings are freed by cli_options_clear. */
int cli_options_parse(const cli_call *call, void *settings, bool *help);
void cli_options_clear(const cli_verb *verb, void *settings);

/* A mistake in how the verb was called: says it, names the help, returns CLI_USAGE. */
int cli_usage(const cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The value of an option as text ("32", "30 seconds", "all cores") into out. */
void cli_option_show(const cli_option *option, const void *settings, char *out, size_t out_size);

/* Whether an option matters to a run with these names (model, encoding), NULL-terminated. */
bool cli_option_matters(const cli_option *option, const char *const *names);

/* The settings of every option with a group, by paragraph, on standard error; and as members of a JSON object. */
void cli_options_banner(const cli_verb *verb, const void *settings, const char *const *names);
void cli_options_json(const cli_verb *verb, const void *settings, const char *const *names, cli_json *json);

/* help_text.c: the help of one verb, of the whole tool, and the man page. */
void cli_help_verb(FILE *file, const cli_verb *verb);
void cli_help_all(FILE *file);
void cli_help_man(FILE *file);

#endif
