/* fuzz_options.c: fuzzes options given as text. The input is lines NAME=VALUE: training options by their table, and options of an
 * import as import.NAME. The mutator knows the table, so every option is reached. */
#include "data/import/chunks.h"
#include "data/import/import.h"
#include "fuzz/support/fuzz.h"
#include "train/train_options.h"

#include <stdio.h>
#include <string.h>

enum {
    LONGEST = 256,
    LINE_LIMIT = 1024,
    RESOLVED = 16,
    IMPORTED = 4
}; /* bytes; bytes; inputs per use of the options */

/* ------------------------------------------------------------------------------------------------ training --- */

/* What an option holds after it was set is text that sets it to the same. */
static void set(lapse_train_options *options, const char *name, const char *value)
{
    static char first[LP_OPTION_TEXT_SIZE], second[LP_OPTION_TEXT_SIZE];
    lapse_error error;
    lapse_option option;
    bool known = lapse_train_option_find(name, &option);
    if (lapse_train_options_set(options, name, value, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_USAGE && *error.message);
        return;
    }
    FUZZ_CHECK(known && lapse_train_options_get(options, name, first, sizeof first));
    FUZZ_CHECK(lapse_train_options_set(options, name, first, NULL) == LAPSE_OK);
    lapse_train_options_get(options, name, second, sizeof second);
    FUZZ_CHECK(strcmp(first, second) == 0);
}

/* Chooses the rest of the options from data, and checks them against each other. Files are not for this target to open. */
static void resolve(lapse_train_options *options)
{
    lapse_option option;
    for (int i = 0; lapse_train_option(i, &option); i++) {
        lapse_train_options_apply(options, option.name);
        if (option.type == LAPSE_OPTION_FILE)
            FUZZ_CHECK(lapse_train_options_set(options, option.name, "", NULL) == LAPSE_OK);
    }
    FUZZ_CHECK(lapse_train_options_set(options, "device", "cpu", NULL) == LAPSE_OK);
    lp_resolved resolved;
    lapse_status status = lp_train_options_resolve(options, fuzz_events(), &resolved, NULL);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_INPUT ||
               status == LAPSE_ERROR_UNKNOWN);
    lp_free(resolved.split);
    lapse_vectors_free(resolved.vectors);
}

/* -------------------------------------------------------------------------------------------------- import --- */

static const char *const import_names[] = {
    "sequence",    "time",       "event",    "split",     "delimiter", "time_unit",           "action", "number",
    "deduplicate", "min_rounds", "category", "min_count", "min_users", "min_sequence_events", NULL};

/* The text of an import option, by its place in import_names. */
static const char *import_texts[sizeof import_names / sizeof *import_names];

static void import(void)
{
    static const char text[] = "user,time,item,4,\"a,b\",price\nu,100,a,b,train,1\nu,1970-01-01T00:03Z,b,,test,\n";
    lapse_import_options options;
    lapse_import_options_default(&options);
    const char **const members[] = {&options.sequence,  &options.time, &options.event, &options.split,
                                    &options.delimiter, NULL,          &options.action};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i])
            *members[i] = import_texts[i];
    options.time_unit = import_texts[5] ? import_texts[5] : options.time_unit;
    options.numbers = &import_texts[7];
    options.number_count = import_texts[7] != NULL;
    options.deduplicate = import_texts[8] ? import_texts[8] : options.deduplicate;
    options.min_rounds = import_texts[9] ? import_texts[9] : options.min_rounds;
    options.categories = &import_texts[10];
    options.category_count = import_texts[10] != NULL;
    options.min_count = import_texts[11] ? strtoll(import_texts[11], NULL, 10) : 0;
    options.min_users = import_texts[12] ? strtoll(import_texts[12], NULL, 10) : 0;
    options.min_sequence_events = import_texts[13] ? strtoll(import_texts[13], NULL, 10) : 0;
    options.threads = 1;
    lp_source source;
    lapse_dataset *dataset = NULL;
    lp_chunks_set_limit(LINE_LIMIT);
    FUZZ_CHECK(lp_source_open_memory(&source, "fuzz", text, sizeof text - 1, NULL) == LAPSE_OK);
    lapse_status status = lp_import(&source, &options, &(lp_import_tuning){LINE_LIMIT, 4}, &dataset, NULL, NULL);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_INPUT);
    lp_source_close(&source);
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------------------- input --- */

/* A line for an option of a table, with a value that its row suggests. */
static size_t make_line(char line[256], fuzz_random *random)
{
    lapse_option option;
    uint64_t count = 0;
    if (fuzz_random_below(random, 4) == 0)
        return (size_t)snprintf(line, 256, "\nimport.%s=%d\n", import_names[fuzz_random_below(random, 12)],
                                (int)fuzz_random_below(random, 9));
    while (lapse_train_option((int)count, &option))
        count++;
    lapse_train_option((int)fuzz_random_below(random, count), &option);
    uint64_t way = fuzz_random_below(random, 4), choices = 0;
    while (option.choices && option.choices[choices])
        choices++;
    if (choices && way)
        return (size_t)snprintf(line, 256, "\n%s=%s\n", option.name,
                                option.choices[fuzz_random_below(random, choices)]);
    if (way == 1 && option.maximum > 0)
        return (size_t)snprintf(line, 256, "\n%s=%.17g\n", option.name,
                                fuzz_random_below(random, 2) ? option.minimum : option.maximum);
    return (size_t)snprintf(line, 256, "\n%s=%s\n", option.name, fuzz_number(random));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    char line[256];
    fuzz_random random = fuzz_random_start(seed);
    max_size = max_size < LONGEST ? max_size : LONGEST;
    size = size < max_size ? size : max_size;
    if (fuzz_random_below(&random, 2))
        return LLVMFuzzerMutate(data, size, max_size);
    size_t length = make_line(line, &random), at = fuzz_random_below(&random, size + 1);
    while (at < size && data[at] != '\n')
        at++;
    const uint8_t *end = at < size ? memchr(data + at + 1, '\n', size - at - 1) : NULL;
    size_t old =
        end && fuzz_random_below(&random, 2) ? (size_t)(end - data) - at : 0; /* replaces a line, or adds one */
    return fuzz_splice(data, size, max_size, at, old, line, length);
}

/* Applies a line, which is NUL-terminated. True: it is an option of the import. */
static bool apply(lapse_train_options *options, char *line)
{
    static const char prefix[] = "import.";
    char *equals = strchr(line, '=');
    if (!equals)
        return false;
    *equals = 0;
    if (strncmp(line, prefix, sizeof prefix - 1) != 0) {
        set(options, line, equals + 1);
        return false;
    }
    for (int i = 0; import_names[i]; i++)
        if (strcmp(line + sizeof prefix - 1, import_names[i]) == 0)
            import_texts[i] = equals + 1;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[LONGEST + 1];
    static lapse_train_options options;
    size = size < LONGEST ? size : LONGEST;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    lp_train_options_default(&options);
    memset(import_texts, 0, sizeof import_texts);
    bool imports = false;
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        imports |= apply(&options, line);
        line = end;
    }
    if (imports && fuzz_takes(data, size, IMPORTED))
        import();
    if (fuzz_takes(data, size, RESOLVED))
        resolve(&options);
    return 0;
}
