/* events.c: see events.h. */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "console.h"
#include "lookup.h"
#include "import_question.h"
#include "lapse_lab.h"

/* A dataset file begins with these bytes (docs/dataset.md). A safetensors file begins with the header size (8 bytes,
 * little-endian) and the header's opening brace. */
static const unsigned char dataset_magic[8] = {0x89, 'L', 'A', 'P', 'S', 'E', '\r', '\n'};

static cli_file_form form_of(const unsigned char *first, size_t size)
{
    if (size >= sizeof dataset_magic && memcmp(first, dataset_magic, sizeof dataset_magic) == 0)
        return CLI_FORM_DATASET;
    return size >= 9 && first[8] == '{' && first[7] == 0 ? CLI_FORM_TENSORS : CLI_FORM_TEXT;
}

int cli_file_form_find(const char *path, cli_file_form *form)
{
    unsigned char first[9];
    struct stat found;
    *form = CLI_FORM_TEXT;
    if (strcmp(path, "-") == 0 || (stat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)))
        return CLI_DONE;
    /* Without O_NONBLOCK, open waits for the writer of a FIFO that has replaced the file. */
    int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0)
        return cli_fail("%s: cannot open: %s", path, strerror(errno));
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 && size < sizeof first) {
        got = read(handle, first + size, sizeof first - size);
        size += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno == EINTR)
            got = 1;
    }
    int failed = errno;
    close(handle);
    if (got < 0)
        return cli_fail("%s: cannot read: %s", path, strerror(failed));
    *form = form_of(first, size);
    return CLI_DONE;
}

/* ---- columns of a model ---- */

/* The columns of the fields to import: those given and those of the model. */
typedef struct field_columns {
    const char **categories, **numbers; /* owned; the strings belong to the command line and the model */
    int category_count, number_count;
} field_columns;

static void add_column(const char **list, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(list[i], name) == 0)
            return;
    list[(*count)++] = name;
}

/* Sets the columns of the fields in *import; false if out of memory. The caller frees the two lists. */
static bool name_fields(const lapse_model *model, lapse_import_options *import, field_columns *fields)
{
    lapse_field field;
    int count = 0;
    while (lapse_model_field(model, count, &field))
        count++;
    *fields = (field_columns){.categories = calloc((size_t)(count + import->category_count) + 1, sizeof(char *)),
                              .numbers = calloc((size_t)(count + import->number_count) + 1, sizeof(char *))};
    if (!fields->categories || !fields->numbers)
        return false;
    for (int i = 0; i < import->category_count; i++)
        add_column(fields->categories, &fields->category_count, import->categories[i]);
    for (int i = 0; i < import->number_count; i++)
        add_column(fields->numbers, &fields->number_count, import->numbers[i]);
    for (int i = 0; lapse_model_field(model, i, &field); i++) {
        if (field.type == LAPSE_FIELD_ACTION)
            import->action = import->action ? import->action : field.name;
        else if (field.type == LAPSE_FIELD_CATEGORY)
            add_column(fields->categories, &fields->category_count, field.name);
        else
            add_column(fields->numbers, &fields->number_count, field.name);
    }
    import->categories = fields->categories;
    import->category_count = fields->category_count;
    import->numbers = fields->numbers;
    import->number_count = fields->number_count;
    return true;
}

/* The option for a property "time.unit" that values may leave open; NULL: they tell. */
static const char *unit_name(const char *unit)
{
    static const char *const names[][2] = {
        {"month/day/year", "mdy"},      {"day/month/year", "dmy"}, {"relative numbers", "relative"},
        {"Excel day numbers", "excel"}, {"unix seconds", "s"},     {"unix milliseconds", "ms"},
        {"unix microseconds", "us"},    {"unix nanoseconds", "ns"}};
    for (size_t i = 0; unit && i < sizeof names / sizeof *names; i++)
        if (strcmp(unit, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* A column that is not given is the one of the training data if the file has it; otherwise it is found by its values and name. So
 * is what the values leave open about times. */
static void prefer_columns(const lapse_model *model, lapse_import_options *import)
{
    static const char *const names[] = {"column.sequence", "column.time", "column.event"};
    for (int role = 0; role < 3; role++)
        import->preferred[role] = cli_model_property(model, names[role]);
    import->preferred_split = cli_model_property(model, "column.split");
    import->preferred_unit = unit_name(cli_model_property(model, "time.unit"));
    import->preferred_encoding = cli_model_property(model, "text.encoding");
    if (!import->timezone)
        import->timezone = cli_model_property(model, "time.zone");
    const char *delimiter = cli_model_property(model, "delimiter"), *basket = cli_model_property(model, "basket");
    if (!import->delimiter && delimiter && strlen(delimiter) == 1 && !strchr(";|", *delimiter))
        import->delimiter = delimiter; /* others are found */
    import->basket = import->basket || (basket && strcmp(basket, "yes") == 0);
}

/* ---- messages ---- */

static const char *dataset_property(const lapse_dataset *dataset, const char *name)
{
    const char *each, *value;
    for (int i = 0; lapse_dataset_property(dataset, i, &each, &value); i++)
        if (strcmp(each, name) == 0)
            return value;
    return NULL;
}

/* The properties of a dataset and of a model that name columns, and what the columns contain; lapse_column_role first. */
static const struct {
    const char *property, *content;
} column_properties[] = {
    {"column.sequence", "sequence"}, {"column.time", "time"}, {"column.event", "event"}, {"column.split", "split"}};

enum { COLUMN_PROPERTIES = sizeof column_properties / sizeof *column_properties };

static bool columns_equal(const lapse_dataset *dataset, const lapse_model *model)
{
    for (int i = 0; i < COLUMN_PROPERTIES; i++) {
        const char *here = dataset_property(dataset, column_properties[i].property),
                   *there = cli_model_property(model, column_properties[i].property);
        if (here && there && strcmp(here, there) != 0)
            return false;
    }
    return true;
}

static void print_columns(const char *path, const lapse_dataset *dataset, const lapse_import_report *report)
{
    static const char *const contents[] = {"action", "category", "number"};
    char line[1024] = "";
    size_t used = 0;
    lapse_field field;
    for (int i = 0; i < COLUMN_PROPERTIES && used < sizeof line; i++) {
        const char *name = dataset_property(dataset, column_properties[i].property);
        if (name)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s '%.100s'", used ? ", " : "",
                                     column_properties[i].content, name);
        if (i <= LAPSE_COLUMN_EVENT && report->columns[i].runner_up[0] && used < sizeof line)
            used +=
                (size_t)snprintf(line + used, sizeof line - used, " (runner-up '%s')", report->columns[i].runner_up);
    }
    for (int i = 0; lapse_dataset_field(dataset, i, &field) && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, ", %s '%.100s'", contents[field.type], field.name);
    cli_note("%s: columns: %s", strcmp(path, "-") == 0 ? "standard input" : path, line);
}

static void print_bad_rows(const lapse_import_report *report)
{
    if (report->bad_rows == 0)
        return;
    cli_note("skipped %s; the first:", cli_plural(report->bad_rows, "malformed row", "malformed rows").text);
    cli_error(&report->first_bad_row);
}

/* ---- opening ---- */

static int open_text(const char *path, cli_columns *columns, const lapse_model *model, lapse_dataset **dataset)
{
    lapse_import_options import;
    lapse_import_report report = {0};
    lapse_error error;
    lapse_status status;
    field_columns fields = {NULL, NULL, 0, 0};
    cli_columns_finish(columns);
    import = columns->import;
    import.input = path;
    if (model && !name_fields(model, &import, &fields)) {
        free(fields.categories);
        free(fields.numbers);
        return cli_fail("out of memory");
    }
    if (model)
        prefer_columns(model, &import);
    status = lapse_dataset_read(&import, dataset, &report, &error);
    free(fields.categories);
    free(fields.numbers);
    if (status != LAPSE_OK) {
        int result = cli_error(&error);
        cli_question_print(&report);
        return result;
    }
    print_bad_rows(&report);
    if (columns->table)
        cli_roles_print(stderr, &report);
    else if (!model || !columns_equal(*dataset, model))
        print_columns(path, *dataset, &report);
    if (report.local_rows > 0)
        cli_note("%s without a zone, read as %s; --timezone sets another",
                 cli_plural(report.local_rows, "timestamp", "timestamps").text, report.timezone);
    return CLI_DONE;
}

int cli_columns_refuse(const char *path, const cli_columns *columns)
{
    const char *given = cli_columns_given(columns);
    if (!given)
        return CLI_DONE;
    cli_note("--%s is for events in text, which %s is not", given, path);
    return CLI_USAGE;
}

static int open_events(const char *path, cli_columns *columns, const lapse_model *model, lapse_dataset **dataset)
{
    cli_file_form form;
    lapse_error error;
    *dataset = NULL;
    int result = cli_file_form_find(path, &form);
    if (result != CLI_DONE)
        return result;
    if (form == CLI_FORM_TENSORS)
        return cli_fail("%s: this is a safetensors file (a model or item vectors), not events", path);
    if (form == CLI_FORM_TEXT)
        return open_text(path, columns, model, dataset);
    result = cli_columns_refuse(path, columns);
    if (result != CLI_DONE)
        return result;
    return lapse_dataset_open(path, dataset, &error) == LAPSE_OK ? CLI_DONE : cli_error(&error);
}

int cli_events_open(const char *path, cli_columns *columns, const lapse_model *model, lapse_dataset **dataset)
{
    int result = open_events(path, columns, model, dataset);
    if (result == CLI_DONE)
        cli_times_of(*dataset);
    return result;
}

/* The index of the sequence of this name; -1: there is none. */
static int64_t sequence_named(const lapse_dataset *dataset, const char *name)
{
    for (int64_t i = 0; i < lapse_dataset_sequence_count(dataset); i++)
        if (strcmp(lapse_dataset_sequence_name(dataset, i), name) == 0)
            return i;
    return -1;
}

int cli_events_only(const cli_list *only, const char *path, lapse_dataset **dataset)
{
    if (only->count == 0)
        return CLI_DONE;
    int64_t *sequences = calloc((size_t)only->count, sizeof *sequences);
    if (!sequences)
        return cli_fail("out of memory");
    int result = CLI_DONE;
    for (int i = 0; i < only->count && result == CLI_DONE; i++) {
        sequences[i] = sequence_named(*dataset, only->items[i]);
        if (sequences[i] < 0)
            result = cli_fail("%s has no history '%s'; the first is '%s'", path, only->items[i],
                              lapse_dataset_sequence_name(*dataset, 0));
    }
    lapse_dataset *selected;
    lapse_error error;
    if (result == CLI_DONE && lapse_dataset_select(*dataset, sequences, only->count, &selected, &error) != LAPSE_OK)
        result = cli_error(&error);
    free(sequences);
    if (result != CLI_DONE)
        return result;
    lapse_dataset_close(*dataset);
    *dataset = selected;
    return CLI_DONE;
}
