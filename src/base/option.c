/* option.c: parsing, printing and checking option values by their row. One row of `types` per option type holds what differs. */
#include "base/option.h"

#include "base/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lp_number_text(double value, char text[LP_NUMBER_SIZE])
{
    bool whole = fabs(value) < 1e15 && value == (double)(int64_t)value;
    int digits = whole ? 17 : 1;
    do
        snprintf(text, LP_NUMBER_SIZE, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    const char *point = localeconv()->decimal_point;
    char *found = strstr(text, point);
    if (found) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    }
    return text;
}

const char *const *lp_row_names(const void *const *rows, const char *names[LP_ROW_NAMES])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!names[0])
        for (int i = 0; i < LP_ROW_NAMES - 1 && rows[i]; i++)
            names[i] = *(const char *const *)rows[i];
    pthread_mutex_unlock(&lock);
    return names;
}

/* What the functions of an option type do. */
typedef struct type_row {
    bool (*parse)(const lp_option *option, const char *text, void *value); /* false: the text is no such value */
    bool (*is_set)(const void *value);                                     /* NULL: always */
    double (*number)(const void *value);                                   /* for the range; NULL: it has none */
    void (*print)(const lp_option *option, const void *value, char *out);
    void (*unset)(void *value); /* NULL: the type cannot be unset */
} type_row;

/* ---- choices ---- */

static bool parse_choice(const lp_option *option, const char *text, void *value)
{
    int index = lp_name_index(text, option->choices());
    if (index >= 0)
        *(int *)value = index;
    return index >= 0;
}

static bool int_is_set(const void *value)
{
    return *(const int *)value != LP_UNSET;
}

static void unset_int(void *value)
{
    *(int *)value = LP_UNSET;
}

static void print_choice(const lp_option *option, const void *value, char *out)
{
    snprintf(out, LP_OPTION_TEXT_SIZE, "%s", option->choices()[*(const int *)value]);
}

/* ---- numbers ---- */

static bool parse_integer(const lp_option *option, const char *text, void *value)
{
    double number;
    (void)option;
    if (!lp_number_parse(text, text + strlen(text), &number) || number != floor(number) || fabs(number) > INT_MAX)
        return false;
    *(int *)value = (int)number;
    return true;
}

static double integer_number(const void *value)
{
    return *(const int *)value;
}

static void print_integer(const lp_option *option, const void *value, char *out)
{
    (void)option;
    snprintf(out, LP_OPTION_TEXT_SIZE, "%d", *(const int *)value);
}

static bool parse_number(const lp_option *option, const char *text, void *value)
{
    (void)option;
    return lp_number_parse(text, text + strlen(text), value);
}

static bool double_is_set(const void *value)
{
    return !isnan(*(const double *)value);
}

static void unset_double(void *value)
{
    *(double *)value = NAN;
}

static double double_number(const void *value)
{
    return *(const double *)value;
}

static void print_number(const lp_option *option, const void *value, char *out)
{
    (void)option;
    lp_number_text(*(const double *)value, out);
}

/* With a unit, or as a plain number of seconds, which is what files and print_number hold. */
static bool parse_duration(const lp_option *option, const char *text, void *value)
{
    return parse_number(option, text, value) || lapse_duration_parse(text, value, NULL) == LAPSE_OK;
}

static bool parse_seed(const lp_option *option, const char *text, void *value)
{
    (void)option;
    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    *(uint64_t *)value = strtoull(text, NULL, 10);
    return errno == 0;
}

static void print_seed(const lp_option *option, const void *value, char *out)
{
    (void)option;
    snprintf(out, LP_OPTION_TEXT_SIZE, "%llu", (unsigned long long)*(const uint64_t *)value);
}

/* ---- flags and texts ---- */

static bool parse_flag(const lp_option *option, const char *text, void *value)
{
    static const char *const names[] = {"false", "true", "0", "1", "no", "yes", NULL};
    int index = lp_name_index(text, names);
    (void)option;
    if (index >= 0)
        *(bool *)value = index % 2;
    return index >= 0;
}

static void print_flag(const lp_option *option, const void *value, char *out)
{
    (void)option;
    snprintf(out, LP_OPTION_TEXT_SIZE, "%s", *(const bool *)value ? "true" : "false");
}

static bool parse_text(const lp_option *option, const char *text, void *value)
{
    if (strlen(text) >= (option->type == LAPSE_OPTION_FILE ? (size_t)LP_PATH_SIZE : (size_t)LP_TEXT_SIZE))
        return false;
    memcpy(value, text, strlen(text) + 1);
    return true;
}

static void print_text(const lp_option *option, const void *value, char *out)
{
    (void)option;
    memcpy(out, value, strlen(value) + 1);
}

static const type_row types[] = {
    [LAPSE_OPTION_CHOICE] = {parse_choice, int_is_set, NULL, print_choice, unset_int},
    [LAPSE_OPTION_INTEGER] = {parse_integer, int_is_set, integer_number, print_integer, unset_int},
    [LAPSE_OPTION_NUMBER] = {parse_number, double_is_set, double_number, print_number, unset_double},
    [LAPSE_OPTION_DURATION] = {parse_duration, double_is_set, double_number, print_number, unset_double},
    [LAPSE_OPTION_FLAG] = {parse_flag, NULL, NULL, print_flag, NULL},
    [LAPSE_OPTION_SEED] = {parse_seed, NULL, NULL, print_seed, NULL},
    [LAPSE_OPTION_FILE] = {parse_text, NULL, NULL, print_text, NULL},
    [LAPSE_OPTION_TEXT] = {parse_text, NULL, NULL, print_text, NULL},
};

/* ---- tables ---- */

static void *value_in(const lp_option *option, const void *settings)
{
    return (char *)(uintptr_t)settings + option->offset;
}

const lp_option *lp_options_find(const lp_option *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

void lp_options_default(const lp_option *table, void *settings)
{
    for (; table && table->name; table++) {
        if (table->initial)
            types[table->type].parse(table, table->initial, value_in(table, settings));
        else if (types[table->type].unset)
            types[table->type].unset(value_in(table, settings));
    }
}

/* What the option takes, to follow "takes". */
static void describe_values(const lp_option *option, char *out, size_t size)
{
    static const char *const what[] = {[LAPSE_OPTION_INTEGER] = "a whole number",
                                       [LAPSE_OPTION_NUMBER] = "a number",
                                       [LAPSE_OPTION_DURATION] = "a duration such as 90s, 15m, 3h, 2d, 1w or 2y",
                                       [LAPSE_OPTION_FLAG] = "true or false",
                                       [LAPSE_OPTION_SEED] = "a whole number from 0 to 18446744073709551615",
                                       [LAPSE_OPTION_FILE] = "a path of at most 4095 bytes",
                                       [LAPSE_OPTION_TEXT] = "a text of at most 255 bytes"};
    if (option->type == LAPSE_OPTION_CHOICE) {
        const char *const *names = option->choices();
        size_t used = (size_t)snprintf(out, size, "one of");
        for (int i = 0; names[i] && used < size; i++)
            used += (size_t)snprintf(out + used, size - used, "%s %s", i ? "," : "", names[i]);
    } else if (types[option->type].number && option->type != LAPSE_OPTION_DURATION) {
        snprintf(out, size, "%s from %g to %g", what[option->type], option->least, option->most);
    } else {
        snprintf(out, size, "%s", what[option->type]);
    }
}

static lapse_status refuse(const lp_option *option, const char *text, lapse_error *error)
{
    char values[300];
    describe_values(option, values, sizeof values);
    lp_fail(error, LAPSE_ERROR_USAGE, LP_OPTION("--%s") " takes %s, not '%.80s'", option->name, values, text);
    if (error)
        snprintf(error->value, sizeof error->value, "%s", text);
    return LAPSE_ERROR_USAGE;
}

static bool in_range(const lp_option *option, const void *value)
{
    if (!types[option->type].number)
        return true;
    double number = types[option->type].number(value);
    return number >= option->least && number <= option->most;
}

lapse_status lp_option_set(const lp_option *option, void *settings, const char *text, lapse_error *error)
{
    union {
        int integer;
        double number;
        uint64_t seed;
        bool flag;
        char path[LP_PATH_SIZE];
    } before;
    void *value = value_in(option, settings);
    bool text_value = option->type == LAPSE_OPTION_FILE || option->type == LAPSE_OPTION_TEXT;
    size_t size = text_value ? strlen(value) + 1 : sizeof before.number;
    if (option->type == LAPSE_OPTION_CHOICE || option->type == LAPSE_OPTION_INTEGER)
        size = sizeof before.integer;
    else if (option->type == LAPSE_OPTION_FLAG)
        size = sizeof before.flag;
    memcpy(&before, value, size);
    if (types[option->type].parse(option, text, value) && in_range(option, value))
        return LAPSE_OK;
    memcpy(value, &before, size);
    return refuse(option, text, error);
}

bool lp_option_is_set(const lp_option *option, const void *settings)
{
    return !types[option->type].is_set || types[option->type].is_set(value_in(option, settings));
}

const char *lp_option_text(const lp_option *option, const void *settings, char out[LP_OPTION_TEXT_SIZE])
{
    out[0] = 0;
    if (lp_option_is_set(option, settings))
        types[option->type].print(option, value_in(option, settings), out);
    return out;
}

lapse_status lp_options_check(const lp_option *table, const void *settings, lapse_error *error)
{
    char text[LP_OPTION_TEXT_SIZE];
    for (; table && table->name; table++) {
        if (!lp_option_applies(table, settings))
            continue;
        if (!lp_option_is_set(table, settings) || !in_range(table, value_in(table, settings)))
            return refuse(table, lp_option_text(table, settings, text), error);
    }
    return LAPSE_OK;
}

lapse_option lp_option_describe(const lp_option *option)
{
    return (lapse_option){.name = option->name,
                          .type = option->type,
                          .minimum = option->least,
                          .maximum = option->most,
                          .choices = option->choices ? option->choices() : NULL,
                          .initial = option->initial,
                          .rule = option->rule,
                          .placeholder = option->placeholder,
                          .help = option->help,
                          .group = option->group,
                          .advanced = option->advanced,
                          .output = option->output};
}
