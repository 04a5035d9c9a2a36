/* option.h: tables of options. A row describes one option once: name, type, range, default and help. Parsing, range checks,
 * help, man page, banner, JSON and the model file are driven by the row.
 *
 * The value of an option lies in a settings struct at the row's offset:
 *
 *   CHOICE             int: index in choices(); LP_UNSET before a rule has chosen it
 *   INTEGER            int; LP_UNSET likewise
 *   NUMBER, DURATION   double (a duration in seconds); NaN likewise
 *   FLAG               bool
 *   SEED               uint64_t
 *   FILE               char[LP_PATH_SIZE]: a path; "" is none
 *   TEXT               char[LP_TEXT_SIZE]; "" is none
 *
 * Settings structs hold no pointers for their options, so they are copied by assignment.
 */
#ifndef LP_OPTION_H
#define LP_OPTION_H

#include "base/error.h"
#include "lapse_lab.h"

#include <limits.h>

enum { LP_UNSET = INT_MIN, LP_PATH_SIZE = 4096, LP_TEXT_SIZE = 256, LP_OPTION_TEXT_SIZE = LP_PATH_SIZE };

/* Whether the model file holds the option, and why. */
typedef enum lp_option_stored {
    LP_STORED_NO,      /* it changes neither the model nor how it was trained: threads, checkpoints */
    LP_STORED_FORWARD, /* the forward pass depends on it: read back when the file is loaded */
    LP_STORED_TRAINING /* a record of the run, under "train.<name>" */
} lp_option_stored;

typedef struct lp_option {
    const char *name; /* as typed after the two dashes: "learning-rate"; NULL ends a table */
    lapse_option_type type;
    size_t offset;           /* of the value in the settings */
    const char *placeholder; /* in help: N, NAME, FILE; NULL for a flag */
    const char *help;        /* starts with the standard term; no period at the end */
    const char *group;       /* heading in the help */
    double least, most;      /* INTEGER, NUMBER and DURATION: range, both ends included */
    const char *const *(*choices)(void);
    const char *initial; /* default, as it would be typed; NULL: a rule chooses it */
    const char *rule;    /* the rule, for help, where initial is NULL */
    lp_option_stored stored;
    const char
        *absent; /* of LP_STORED_FORWARD: value of a model file without the key; NULL: the file is wrong. A flag of this
                         * value is not written */
    bool advanced; /* left out of the short help */
    bool output;   /* FILE: the file is written */
    /* Whether the option has an effect beside these settings; NULL: it always has. */
    bool (*applies)(const void *settings);
} lp_option;

/* The row of this name; NULL: there is none. */
const lp_option *lp_options_find(const lp_option *table, const char *name);

/* Writes every default into *settings; options that a rule chooses become unset. */
void lp_options_default(const lp_option *table, void *settings);

/* Parses text into the option's value. A value that does not parse or lies outside the range is LAPSE_ERROR_USAGE. */
lapse_status lp_option_set(const lp_option *option, void *settings, const char *text, lapse_error *error);

/* Whether the value is set, by the caller or by a rule. */
bool lp_option_is_set(const lp_option *option, const void *settings);

/* The value as lp_option_set parses it; "" while it is unset. Returns out. */
const char *lp_option_text(const lp_option *option, const void *settings, char out[LP_OPTION_TEXT_SIZE]);

/* Whether the option has an effect beside these settings. */
static inline bool lp_option_applies(const lp_option *option, const void *settings)
{
    return !option->applies || option->applies(settings);
}

/* Checks that every option that applies is set and lies within its range: after the rules, and for settings that did not come
 * from text. */
lapse_status lp_options_check(const lp_option *table, const void *settings, lapse_error *error);

/* What the public interface shows of a row. */
lapse_option lp_option_describe(const lp_option *option);

/* For the choices of an option: the names of a NULL-terminated table of pointers to structs whose first member is
 * `const char *name`. Fills names, of LP_ROW_NAMES elements, at the first call; any number of threads may call it. */
enum { LP_ROW_NAMES = 32 };
const char *const *lp_row_names(const void *const *rows, const char *names[LP_ROW_NAMES]);

/* Decimal text of a number, with a point in every locale, in the fewest digits that restore the value. Returns text. */
enum { LP_NUMBER_SIZE = 64 };
const char *lp_number_text(double value, char text[LP_NUMBER_SIZE]);

#endif
