/* options.h: the arguments and options of a verb, as one table.
 *
 * A row names an option, its type, and the offset of its value in the verb's settings. The same row drives parsing,
 * `lapse VERB --help`, the man page, the banner of a run and the settings in its JSON output. The help reads the default
 * from the settings themselves. Adding an option means adding a row.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"
#include "lapse.h"

typedef enum cli_type {
    CLI_TEXT,     /* const char * */
    CLI_CHOICE,   /* const char *: one of the names in choices() */
    CLI_WHOLE,    /* int, not negative */
    CLI_COUNT,    /* int64_t, not negative */
    CLI_SEED,     /* uint64_t */
    CLI_NUMBER,   /* double */
    CLI_DURATION, /* double, seconds; written with a unit */
    CLI_FLAG,     /* bool, set to true; takes no value */
    CLI_UNFLAG,   /* bool, set to false; takes no value */
    CLI_THREADS,  /* int: a number of threads, in the range of the training option; 0, the default, is all cores */
    CLI_LIST,     /* cli_list: each occurrence appends one item */
    CLI_TRAIN     /* cli_train: a training option of the library; without a placeholder it takes no value */
} cli_type;

/* Whether a value names a file. paths.c compares the files of a command line. */
typedef enum cli_file { CLI_NO_FILE, CLI_INPUT_FILE, CLI_OUTPUT_FILE } cli_file;

typedef struct cli_list {
    const char **items; /* the array belongs to the parser, the strings to the command line */
    int count;
} cli_list;

/* Training options, whose table is the library's (lapse_train_option). */
typedef struct cli_train {
    lapse_train_options *given;          /* as set on the command line; owned by the verb's settings */
    const lapse_train_options *resolved; /* of the run, all of them chosen; NULL before there is one */
    const char *unset;                   /* the default of all, such as "that of the preset"; NULL: each has its own */
} cli_train;

/* One option. A table of options ends with a row whose name is NULL and has at most CLI_OPTIONS_MAX rows before it.
 * Rows of one group need not be adjacent. All strings outlive the run. A member without an initializer is NULL, 0 or
 * false. */
typedef struct cli_option {
    const char *name;        /* without the two dashes */
    char letter;             /* short form, such as 'o' for -o; 0: none */
    cli_type type;           /* how the value is parsed and shown */
    size_t offset;           /* of the value in the verb's settings */
    const char *placeholder; /* stands for the value in the help, such as FILE; NULL for flags */
    const char *help;        /* standard term, then unit or choices; no period. The help appends the default, and the
                              * names of choices() unless `help` contains all of them. */
    const char *unset; /* text for the value NULL, 0 (integers, durations) or negative (numbers); NULL: no such value */
    const char *unit;  /* shown after a number; may be NULL */
    const char *const *(*choices)(void); /* CLI_CHOICE: the allowed names, NULL-terminated; otherwise NULL */
    const char *const *names;            /* CLI_TRAIN: likewise */
    const char *group;                   /* heading in the help, and of the banner's paragraph; NULL: "Options" */
    cli_file file;                       /* CLI_TEXT and CLI_TRAIN only */
    bool required;
    bool advanced; /* left out of `lapse VERB --help`; `--help all` and the man page have it */
} cli_option;

enum { CLI_OPTIONS_MAX = 255 };

/* A positional argument. */
typedef struct cli_argument {
    const char *name; /* such as DATA; NULL ends the table */
    size_t offset;    /* of a const char * */
    const char *help;
    bool optional;
    cli_file file;
} cli_argument;

struct cli_verb;

/* The options for events in text (column_options.h) of a verb. An option that the verb has by itself under the same name
 * comes first. */
typedef struct cli_text_options {
    size_t offset; /* of a cli_columns in the settings */
    bool model; /* by default, the columns are those of a model's training data; otherwise they are detected by name */
    bool all;   /* the short help has all of them, not only the columns of sequence, time and event */
} cli_text_options;

/* The command line of a call. */
typedef struct cli_call {
    const struct cli_verb *verb;
    int argc;
    char **argv; /* argv[0] is "lapse", argv[1] the verb */
} cli_call;

/* A verb: one file and one row of the table in main.c. */
typedef struct cli_verb {
    const char *name;
    const char *summary;         /* at most half a line */
    const char *description;     /* one paragraph */
    const char *const *examples; /* NULL-terminated */
    const char *note_title;      /* heading of notes in the help; NULL: none */
    /* The name of a note, and its text in `text`; NULL: there are no more. */
    const char *(*note)(int index, char *text, size_t size);
    const cli_argument *arguments;
    const cli_option *options; /* ends with a row without a name; cli_verb_options adds the library's */
    const size_t *train;       /* offset of a cli_train in the settings, for all training options; NULL: has none */
    const char *const *train_names; /* of these training options alone, NULL-terminated; NULL: of all */
    bool ranks;                     /* it can run on several ranks (ranks.h) */
    bool train_many;                /* it trains many models, so not of those that are about one run's checkpoint */
    const cli_text_options *text;   /* NULL: has none */
    size_t size;                    /* of the settings */
    void (*defaults)(void *settings);
    void (*clear)(void *settings);                    /* frees what defaults allocated; NULL: nothing */
    int (*run)(void *settings, const cli_call *call); /* returns the exit status */
} cli_verb;

/* The options of a verb, training options and those for text included. Ends with a row without a name; valid until the next call. */
const cli_option *cli_verb_options(const cli_verb *verb);

/* All verbs, NULL-terminated. */
const cli_verb *const *cli_verbs(void);
/* The verb with this name. If there is none: prints an error with the nearest name, returns NULL. */
const cli_verb *cli_verb_find(const char *name);

/* Which help the command line requests: --help or -h, or one of them followed by "all". */
typedef enum cli_help { CLI_HELP_NONE, CLI_HELP_COMMON, CLI_HELP_ALL } cli_help;

/* Fills settings, which hold the defaults, from the command line. Returns CLI_DONE, or CLI_USAGE after printing the error.
 * Parsing ends at --help. cli_options_clear frees the lists in settings. */
int cli_options_parse(const cli_call *call, void *settings, cli_help *help);
void cli_options_clear(const cli_verb *verb, void *settings);

/* Prints an error about the command line and how to get help; returns CLI_USAGE. */
int cli_usage(const cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether `defaults` of the verb has allocated the training options; false if out of memory. */
bool cli_settings_whole(const cli_verb *verb, const void *settings);

/* Writes the value of an option as text ("32", "30 seconds", "all cores") into out. */
void cli_option_show(const cli_option *option, const void *settings, char *out, size_t out_size);

/* Whether an option has an effect, given the others. */
bool cli_option_applies(const cli_option *option, const void *settings);

/* Whether two options have the same heading; whether an option is the first row of its group. */
bool cli_option_same_group(const cli_option *a, const cli_option *b);
bool cli_option_opens_group(const cli_verb *verb, const cli_option *option);

/* Print the training options: on standard error, one paragraph per group; as members of an open JSON object. */
void cli_options_banner(const cli_verb *verb, const void *settings);
void cli_options_json(const cli_verb *verb, const void *settings, cli_json *json);

/* help_text.c: the help of one verb (advanced options only if `all`), the list of verbs, and the man page;
 * false if out of memory. */
bool cli_help_verb(FILE *file, const cli_verb *verb, bool all);
void cli_help_verbs(FILE *file);
bool cli_help_man(FILE *file);
/* Prints completion for bash. */
void cli_help_completion(FILE *file);

#endif
