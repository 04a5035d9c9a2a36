/* options.c: parses a command line by a verb's table, and prints the values. The behaviour of each option type is a row of
 * `types`, so no other function switches on the type. */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "column_options.h"
#include "console.h"
#include "lookup.h"
#include "lapse_lab.h"

/* A description of the valid values, to follow "takes": the error for an invalid value. */
typedef struct reason {
    char text[512];
    bool complete; /* text is the whole message */
    bool memory;   /* there is not enough of it, and no text */
} reason;

typedef struct type_row {
    /* Stores text at value; false with *why if it is invalid. NULL: the option takes no value. */
    bool (*read)(const cli_option *option, const char *text, void *value, reason *why);
    void (*show)(const cli_option *option, const void *value, char *out, size_t out_size);
    void (*json)(const cli_option *option, const void *value, cli_json *json);
} type_row;

/* ---- texts and choices ---- */

static bool read_text(const cli_option *option, const char *text, void *value, reason *why)
{
    if (!*text) {
        snprintf(why->text, sizeof why->text, "a %s", option->placeholder);
        return false;
    }
    *(const char **)value = text;
    return true;
}

static bool read_choice(const cli_option *option, const char *text, void *value, reason *why)
{
    const char *const *names = option->choices();
    int found = cli_name_find(names, text, strlen(text));
    if (found >= 0) {
        *(const char **)value = names[found];
        return true;
    }
    size_t used = (size_t)snprintf(why->text, sizeof why->text, "%s", names[1] ? "one of " : "only ");
    for (int i = 0; names[i] && used < sizeof why->text; i++)
        used += (size_t)snprintf(why->text + used, sizeof why->text - used, "%s%s", i ? ", " : "", names[i]);
    return false;
}

static void show_text(const cli_option *option, const void *value, char *out, size_t out_size)
{
    const char *text = *(const char *const *)value;
    snprintf(out, out_size, "%s", text ? text : option->unset ? option->unset : "");
}

static void json_text(const cli_option *option, const void *value, cli_json *json)
{
    cli_json_text(json, option->name, *(const char *const *)value);
}

/* ---- numbers ---- */

/* An integer from 0 to limit, digits only. */
static bool read_digits(const char *text, uint64_t limit, uint64_t *value, reason *why)
{
    size_t digits = strspn(text, "0123456789");
    snprintf(why->text, sizeof why->text, "an integer, 0 or more");
    if (digits == 0 || text[digits])
        return false;
    snprintf(why->text, sizeof why->text, "an integer up to %llu", (unsigned long long)limit);
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0 && *value <= limit;
}

static bool read_whole(const cli_option *option, const char *text, void *value, reason *why)
{
    uint64_t number;
    (void)option;
    if (!read_digits(text, INT32_MAX, &number, why))
        return false;
    *(int *)value = (int)number;
    return true;
}

/* One bound for every verb: that of the training option. */
static bool read_threads(const cli_option *option, const char *text, void *value, reason *why)
{
    uint64_t number;
    lapse_option row;
    lapse_train_option_find("threads", &row);
    bool good = read_digits(text, (uint64_t)row.maximum, &number, why) && number >= (uint64_t)row.minimum;
    snprintf(why->text, sizeof why->text, "an integer from %g to %g", row.minimum, row.maximum);
    (void)option;
    if (good)
        *(int *)value = (int)number;
    return good;
}

static bool read_count(const cli_option *option, const char *text, void *value, reason *why)
{
    uint64_t number;
    (void)option;
    if (!read_digits(text, INT64_MAX, &number, why))
        return false;
    *(int64_t *)value = (int64_t)number;
    return true;
}

static bool read_seed(const cli_option *option, const char *text, void *value, reason *why)
{
    (void)option;
    return read_digits(text, UINT64_MAX, value, why);
}

static bool read_number(const cli_option *option, const char *text, void *value, reason *why)
{
    char *end;
    double number = strtod(text, &end);
    (void)option;
    snprintf(why->text, sizeof why->text, "a number such as 0.001");
    if (end == text || *end || !isfinite(number) || number < 0 || strpbrk(text, "xX \t"))
        return false;
    *(double *)value = number;
    return true;
}

static bool read_duration(const cli_option *option, const char *text, void *value, reason *why)
{
    lapse_error error;
    (void)option;
    snprintf(why->text, sizeof why->text, "a duration with its unit, such as 90s, 15m, 3h, 2d, 1w or 2y");
    double seconds;
    if (lapse_duration_parse(text, &seconds, &error) != LAPSE_OK || seconds < 0)
        return false;
    *(double *)value = seconds;
    return true;
}

static const char *unit_of(const cli_option *option)
{
    return option->unit ? option->unit : "";
}

static void show_whole(const cli_option *option, const void *value, char *out, size_t out_size)
{
    int number = *(const int *)value;
    if (number == 0 && option->unset)
        snprintf(out, out_size, "%s", option->unset);
    else
        snprintf(out, out_size, "%d%s%s", number, option->unit ? " " : "", unit_of(option));
}

static void show_count(const cli_option *option, const void *value, char *out, size_t out_size)
{
    int64_t number = *(const int64_t *)value;
    if (number == 0 && option->unset)
        snprintf(out, out_size, "%s", option->unset);
    else
        snprintf(out, out_size, "%lld%s%s", (long long)number, option->unit ? " " : "", unit_of(option));
}

static void show_seed(const cli_option *option, const void *value, char *out, size_t out_size)
{
    (void)option;
    snprintf(out, out_size, "%llu", (unsigned long long)*(const uint64_t *)value);
}

static void show_number(const cli_option *option, const void *value, char *out, size_t out_size)
{
    double number = *(const double *)value;
    if (option->unset && number < 0)
        snprintf(out, out_size, "%s", option->unset);
    else
        snprintf(out, out_size, "%.6g%s%s", number, option->unit ? " " : "", unit_of(option));
}

static void show_duration(const cli_option *option, const void *value, char *out, size_t out_size)
{
    double seconds = *(const double *)value;
    if (option->unset && seconds <= 0)
        snprintf(out, out_size, "%s", option->unset);
    else
        lapse_duration_format(seconds, out, out_size);
}

static void json_whole(const cli_option *option, const void *value, cli_json *json)
{
    cli_json_whole(json, option->name, *(const int *)value);
}

static void json_count(const cli_option *option, const void *value, cli_json *json)
{
    cli_json_whole(json, option->name, *(const int64_t *)value);
}

static void json_seed(const cli_option *option, const void *value, cli_json *json)
{
    cli_json_seed(json, option->name, *(const uint64_t *)value);
}

static void json_number(const cli_option *option, const void *value, cli_json *json)
{
    cli_json_number(json, option->name, *(const double *)value, 15);
}

/* ---- flags and lists ---- */

static void show_flag(const cli_option *option, const void *value, char *out, size_t out_size)
{
    bool set = *(const bool *)value == (option->type == CLI_FLAG);
    snprintf(out, out_size, "%s", set ? "yes" : "no");
}

static void json_flag(const cli_option *option, const void *value, cli_json *json)
{
    cli_json_bool(json, option->name, *(const bool *)value == (option->type == CLI_FLAG));
}

static bool read_list(const cli_option *option, const char *text, void *value, reason *why)
{
    cli_list *list = value;
    const char **items = realloc(list->items, sizeof *items * (size_t)(list->count + 1));
    if (!items) {
        why->memory = true;
        return false;
    }
    list->items = items;
    return read_text(option, text, &list->items[list->count], why) && ++list->count;
}

static void show_list(const cli_option *option, const void *value, char *out, size_t out_size)
{
    const cli_list *list = value;
    size_t used = 0;
    snprintf(out, out_size, "%s", option->unset ? option->unset : "");
    for (int i = 0; i < list->count && used < out_size; i++)
        used += (size_t)snprintf(out + used, out_size - used, "%s%s", i ? "," : "", list->items[i]);
}

static void json_list(const cli_option *option, const void *value, cli_json *json)
{
    const cli_list *list = value;
    cli_json_array(json, option->name);
    for (int i = 0; i < list->count; i++)
        cli_json_text(json, NULL, list->items[i]);
    cli_json_end(json, ']');
}

/* ---- training options of the library ---- */

static bool read_train(const cli_option *option, const char *text, void *value, reason *why)
{
    lapse_error error;
    if (lapse_train_options_set(((cli_train *)value)->given, option->name, text, &error) == LAPSE_OK)
        return true;
    snprintf(why->text, sizeof why->text, "%s", error.message);
    why->memory = error.status == LAPSE_ERROR_MEMORY;
    why->complete = true;
    return false;
}

/* The value as the library writes it, and the type of the option. */
static lapse_option_type train_text(const cli_option *option, const void *value, char *out, size_t out_size)
{
    const cli_train *train = value;
    lapse_option row;
    lapse_train_option_find(option->name, &row);
    lapse_train_options_get(train->resolved ? train->resolved : train->given, option->name, out, out_size);
    return row.type;
}

static void show_train(const cli_option *option, const void *value, char *out, size_t out_size)
{
    char text[4096];
    const cli_train *train = value;
    lapse_option_type type = train_text(option, value, text, sizeof text);
    if (train->unset)
        snprintf(out, out_size, "%s", train->unset);
    else if (!*text)
        snprintf(out, out_size, "%s", option->unset ? option->unset : "none");
    else if (type == LAPSE_OPTION_DURATION)
        lapse_duration_format(strtod(text, NULL), out, out_size);
    else if (type == LAPSE_OPTION_FLAG)
        snprintf(out, out_size, "%s", strcmp(text, "true") == 0 ? "yes" : "no");
    else if (type == LAPSE_OPTION_NUMBER)
        snprintf(out, out_size, "%.6g", strtod(text, NULL));
    else
        snprintf(out, out_size, "%.*s", (int)out_size - 1, text);
}

static void json_train(const cli_option *option, const void *value, cli_json *json)
{
    char text[4096];
    lapse_option_type type = train_text(option, value, text, sizeof text);
    if (type == LAPSE_OPTION_FLAG)
        cli_json_bool(json, option->name, strcmp(text, "true") == 0);
    else if (type == LAPSE_OPTION_INTEGER)
        cli_json_whole(json, option->name, strtol(text, NULL, 10));
    else if (type == LAPSE_OPTION_SEED)
        cli_json_seed(json, option->name, strtoull(text, NULL, 10));
    else if (type == LAPSE_OPTION_NUMBER || type == LAPSE_OPTION_DURATION)
        cli_json_number(json, option->name, strtod(text, NULL), 15);
    else
        cli_json_text(json, option->name, *text ? text : NULL);
}

static const type_row types[] = {
    [CLI_TEXT] = {read_text, show_text, json_text},
    [CLI_CHOICE] = {read_choice, show_text, json_text},
    [CLI_WHOLE] = {read_whole, show_whole, json_whole},
    [CLI_THREADS] = {read_threads, show_whole, json_whole},
    [CLI_COUNT] = {read_count, show_count, json_count},
    [CLI_SEED] = {read_seed, show_seed, json_seed},
    [CLI_NUMBER] = {read_number, show_number, json_number},
    [CLI_DURATION] = {read_duration, show_duration, json_number},
    [CLI_FLAG] = {NULL, show_flag, json_flag},
    [CLI_UNFLAG] = {NULL, show_flag, json_flag},
    [CLI_LIST] = {read_list, show_list, json_list},
    [CLI_TRAIN] = {read_train, show_train, json_train},
};

/* ---- tables ---- */

/* The direction of a training option's file. */
static cli_file train_file(const lapse_option *option)
{
    if (option->type != LAPSE_OPTION_FILE)
        return CLI_NO_FILE;
    return option->output ? CLI_OUTPUT_FILE : CLI_INPUT_FILE;
}

/* The rows of a verb while they are collected. */
typedef struct row_list {
    cli_option rows[CLI_OPTIONS_MAX + 1];
    int count;
} row_list;

static void add_row(row_list *list, cli_option row)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].name, row.name) == 0)
            return;
    assert(list->count < CLI_OPTIONS_MAX);
    list->rows[list->count++] = row;
}

static bool takes_option(const cli_verb *verb, const char *name)
{
    bool found = !verb->train_names;
    if (verb->train_many && (strncmp(name, "checkpoint", 10) == 0 || strcmp(name, "resume") == 0))
        return false;
    for (int i = 0; !found && verb->train_names[i]; i++)
        found = strcmp(verb->train_names[i], name) == 0;
    return found;
}

static void add_train_rows(row_list *list, const cli_verb *verb)
{
    lapse_option option;
    for (int i = 0; lapse_train_option(i, &option); i++)
        if (takes_option(verb, option.name))
            add_row(list, (cli_option){.name = option.name,
                                       .type = CLI_TRAIN,
                                       .offset = *verb->train,
                                       .placeholder = option.placeholder,
                                       .help = option.help,
                                       .unset = option.rule,
                                       .names = option.choices,
                                       .group = option.group,
                                       .file = train_file(&option),
                                       .advanced = option.advanced && !verb->train_names});
}

static void add_text_rows(row_list *list, const cli_text_options *text)
{
    const cli_option *rows = cli_column_options();
    for (int i = 0; rows[i].name; i++) {
        cli_option row = rows[i];
        row.offset += text->offset;
        row.advanced = row.advanced && !text->all;
        if (text->model && i < CLI_COLUMN_COUNT)
            row.unset = "that of the training data";
        add_row(list, row);
    }
}

const cli_option *cli_verb_options(const cli_verb *verb)
{
    static row_list list;
    if (!verb->train && !verb->text)
        return verb->options;
    list.count = 0;
    for (int i = 0; verb->options[i].name; i++)
        add_row(&list, verb->options[i]);
    if (verb->train)
        add_train_rows(&list, verb);
    if (verb->text)
        add_text_rows(&list, verb->text);
    list.rows[list.count] = (cli_option){0};
    return list.rows;
}

bool cli_settings_whole(const cli_verb *verb, const void *settings)
{
    return !verb->train || ((const cli_train *)(const void *)((const char *)settings + *verb->train))->given;
}

/* ---- command line ---- */

int cli_usage(const cli_verb *verb, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_note("%s", text);
    cli_note("see `lapse %s%s--help`", verb ? verb->name : "", verb ? " " : "");
    return CLI_USAGE;
}

static void *value_at(const cli_option *option, void *settings)
{
    return (char *)settings + option->offset;
}

/* The names of a verb's options, NULL-terminated. */
typedef struct option_names {
    const char *names[CLI_OPTIONS_MAX + 1];
} option_names;

static option_names names_of(const cli_verb *verb)
{
    option_names out;
    int count = 0;
    for (const cli_option *option = cli_verb_options(verb); option->name; option++) {
        assert(count < CLI_OPTIONS_MAX);
        out.names[count++] = option->name;
    }
    out.names[count] = NULL;
    return out;
}

/* Names that people know from other tools, for verbs that have no such option: another name of an option, or a hint. */
static const struct {
    const char *name, *option, *hint;
} other_names[] = {
    {"user", "sequence", NULL},
    {"within", "horizon", NULL},
    {"horizon", "within", NULL},
    {"item", "event", NULL},
    {"lr", "learning-rate", NULL},
    {"batch-size", "batch", NULL},
    {"tz", "timezone", NULL},
    {"encoding", "text-encoding", NULL},
    {"k", "top", NULL},
    {"format", "json", "the formats are the table, --json, and --csv where there is one"},
    {"limit", "top", "pass the output through head -n N"},
    {"only", NULL, "lapse predict and lapse forecast have it; elsewhere filter the input: grep -E '^time|USER' FILE | lapse VERB ... -"},
    {"quiet", NULL, "progress and notes go to standard error: add 2>/dev/null"},
};

enum { OTHER_NAMES = sizeof other_names / sizeof *other_names };

static int other_name(const char *name, size_t length)
{
    for (int i = 0; i < OTHER_NAMES; i++)
        if (strlen(other_names[i].name) == length && strncmp(other_names[i].name, name, length) == 0)
            return i;
    return -1;
}

/* The option of an argument such as --dims=32 or -o, or NULL. *text is the part after '=', or NULL. */
static const cli_option *option_find(const cli_verb *verb, const char *argument, const char **text)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    *text = NULL;
    if (argument[1] == '-') {
        int found = cli_name_find(names_of(verb).names, name, length), other = other_name(name, length);
        if (found < 0 && other >= 0 && !other_names[other].hint)
            found = cli_name_find(names_of(verb).names, other_names[other].option, strlen(other_names[other].option));
        *text = name[length] ? name + length + 1 : NULL;
        return found >= 0 ? &cli_verb_options(verb)[found] : NULL;
    }
    for (const cli_option *option = cli_verb_options(verb); option->name; option++)
        if (option->letter && argument[1] == option->letter && !argument[2])
            return option;
    return NULL;
}

static int unknown_option(const cli_verb *verb, const char *argument)
{
    char typed[64];
    const char *letters = argument[1] == '-' ? argument + 2 : argument + 1;
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(letters, "="), letters);
    int length = (int)strcspn(argument, "="), other = other_name(typed, strlen(typed));
    if (other >= 0 && other_names[other].hint)
        return cli_usage(verb, "%s has no option %.*s; %s", verb->name, length, argument, other_names[other].hint);
    const char *near = cli_name_nearest(typed, names_of(verb).names);
    if (near)
        return cli_usage(verb, "%s has no option %.*s; did you mean --%s?", verb->name, length, argument, near);
    return cli_usage(verb, "%s has no option %.*s", verb->name, length, argument);
}

/* Parses the option argv[*at]. If its value is the next argument, advances *at to it. */
static int take_option(const cli_call *call, void *settings, int *at, unsigned char *seen)
{
    const cli_verb *verb = call->verb;
    const char *argument = call->argv[*at], *text;
    const cli_option *option = option_find(verb, argument, &text);
    if (!option)
        return unknown_option(verb, argument);
    seen[option - cli_verb_options(verb)] = 1;
    if (!types[option->type].read) {
        if (text)
            return cli_usage(verb, "--%s takes no value", option->name);
        *(bool *)value_at(option, settings) = option->type == CLI_FLAG;
        return CLI_DONE;
    }
    if (!option->placeholder && !text)
        text = "true";
    if (!text && *at + 1 < call->argc && strncmp(call->argv[*at + 1], "--", 2) != 0)
        text = call->argv[++*at];
    if (!text)
        return cli_usage(verb, "--%s needs a value: --%s %s", option->name, option->name, option->placeholder);
    reason why = {.complete = false};
    if (!types[option->type].read(option, text, value_at(option, settings), &why))
        return why.memory     ? cli_fail("out of memory")
               : why.complete ? cli_usage(verb, "%s", why.text)
                              : cli_usage(verb, "--%s takes %s, not '%s'", option->name, why.text, text);
    return CLI_DONE;
}

static int check_complete(const cli_verb *verb, const cli_argument *next, const unsigned char *seen)
{
    if (next->name && !next->optional)
        return cli_usage(verb, "%s needs %s: %s", verb->name, next->name, next->help);
    for (const cli_option *option = cli_verb_options(verb); option->name; option++)
        if (option->required && !seen[option - cli_verb_options(verb)])
            return cli_usage(verb, "%s needs --%s %s: %s", verb->name, option->name, option->placeholder, option->help);
    return CLI_DONE;
}

/* Whether argv[at] requests help, and which. */
static cli_help help_at(const cli_call *call, int at)
{
    const char *argument = call->argv[at], *next = at + 1 < call->argc ? call->argv[at + 1] : "";
    if (strcmp(argument, "--help=all") == 0)
        return CLI_HELP_ALL;
    if (strcmp(argument, "--help") != 0 && strcmp(argument, "-h") != 0)
        return CLI_HELP_NONE;
    return strcmp(next, "all") == 0 ? CLI_HELP_ALL : CLI_HELP_COMMON;
}

int cli_options_parse(const cli_call *call, void *settings, cli_help *help)
{
    const cli_verb *verb = call->verb;
    const cli_argument *next = verb->arguments;
    unsigned char seen[CLI_OPTIONS_MAX + 1] = {0};
    bool options_over = false;
    for (int at = 2; at < call->argc; at++) {
        const char *argument = call->argv[at];
        if (!options_over && strcmp(argument, "--") == 0) {
            options_over = true;
        } else if (!options_over && (*help = help_at(call, at)) != CLI_HELP_NONE) {
            return CLI_DONE;
        } else if (!options_over && argument[0] == '-' && argument[1]) {
            int status = take_option(call, settings, &at, seen);
            if (status != CLI_DONE)
                return status;
        } else if (!next->name) {
            return cli_usage(verb, "%s: unexpected argument '%s'", verb->name, argument);
        } else {
            *(const char **)((char *)settings + next->offset) = argument;
            next++;
        }
    }
    return check_complete(verb, next, seen);
}

void cli_options_clear(const cli_verb *verb, void *settings)
{
    for (const cli_option *option = cli_verb_options(verb); option->name; option++)
        if (option->type == CLI_LIST)
            free(((cli_list *)value_at(option, settings))->items);
}

/* ---- printing the values ---- */

void cli_option_show(const cli_option *option, const void *settings, char *out, size_t out_size)
{
    types[option->type].show(option, (const char *)settings + option->offset, out, out_size);
}

bool cli_option_applies(const cli_option *option, const void *settings)
{
    if (option->type != CLI_TRAIN)
        return true;
    const cli_train *train = (const void *)((const char *)settings + option->offset);
    return lapse_train_options_apply(train->resolved ? train->resolved : train->given, option->name);
}

bool cli_option_same_group(const cli_option *a, const cli_option *b)
{
    return a->group && b->group ? strcmp(a->group, b->group) == 0 : a->group == b->group;
}

bool cli_option_opens_group(const cli_verb *verb, const cli_option *option)
{
    const cli_option *first = cli_verb_options(verb);
    while (!cli_option_same_group(first, option))
        first++;
    return first == option;
}

void cli_options_banner(const cli_verb *verb, const void *settings)
{
    for (const cli_option *first = cli_verb_options(verb); first->name; first++) {
        char line[2048] = "", value[512];
        size_t used = 0;
        if (first->type != CLI_TRAIN || !cli_option_opens_group(verb, first))
            continue;
        for (const cli_option *option = first; option->name && used < sizeof line; option++) {
            if (!cli_option_same_group(option, first) || !cli_option_applies(option, settings))
                continue;
            cli_option_show(option, settings, value, sizeof value);
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %s", used ? ", " : "", option->name, value);
        }
        if (used == 0)
            continue;
        fprintf(stderr, "%-10s", first->group);
        cli_paragraph(stderr, line, 10, 10, cli_width(stderr));
    }
}

void cli_options_json(const cli_verb *verb, const void *settings, cli_json *json)
{
    for (const cli_option *option = cli_verb_options(verb); option->name; option++)
        if (option->type == CLI_TRAIN && cli_option_applies(option, settings))
            types[option->type].json(option, (const char *)settings + option->offset, json);
}
