/* test_model_file.c: models in files: what is saved is loaded to the bit; what was cut, edited or made up is refused with the
 * reason, even where its checksum is right. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "model/model_file.h"
#include "model/model_options.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char NOT_WHOLE[] = "this is not a whole Lapse model: ";
static const char NOT_USABLE[] = "this is not a Lapse model that can be used: ";

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

static lapse_model *described(const lp_model_config *config)
{
    lapse_model *model = small_model(config, 3);
    model->seed = 18446744073709551615u;
    model->fingerprint = 0x00ab12cd34ef5678;
    assert_int_equal(lp_model_describe(model, NULL), LAPSE_OK);
    return model;
}

static void save(const lapse_model *model, const char *name)
{
    lapse_error error = {0};
    if (lapse_model_save(model, small_path(name), &error) != LAPSE_OK)
        fail_msg("%s", error.message);
}

static lapse_model *load(const char *name)
{
    lapse_error error = {0};
    lapse_model *model = NULL;
    if (lapse_model_load(small_path(name), &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

static lapse_model *fit_baseline(const char *name, int order)
{
    lapse_dataset *dataset = small_dataset_spelled("abca abca abc caab bacb", NULL);
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "model", name);
    small_set_number(&options, "order", order);
    lapse_model *model = NULL;
    assert_int_equal(lapse_train(dataset, &options, NULL, NULL, &model, NULL), LAPSE_OK);
    lapse_dataset_close(dataset);
    return model;
}

/* Options that fix the forward pass have the same text in both configs; y is the context. */
static void compare_option(void *context, const lp_option *option, const void *settings)
{
    const lp_model_config *y = context;
    bool shared = lp_options_find(lp_model_options, option->name) == option;
    char one[LP_OPTION_TEXT_SIZE], two[LP_OPTION_TEXT_SIZE];
    if (option->stored == LP_STORED_FORWARD && lp_option_applies(option, settings))
        assert_string_equal(lp_option_text(option, settings, one),
                            lp_option_text(option, shared ? (const void *)y : y->settings.bytes, two));
}

/* ---------------------------------------------------------------------------------------------- round trip --- */

static void check_same(const lapse_model *a, const lapse_model *b)
{
    assert_int_equal(a->tensor_count, b->tensor_count);
    for (int i = 0; i < a->tensor_count; i++) {
        assert_string_equal(a->tensors[i].name, b->tensors[i].name);
        assert_int_equal(lp_tensor_bytes(&a->tensors[i]), lp_tensor_bytes(&b->tensors[i]));
        assert_memory_equal(a->tensors[i].data, b->tensors[i].data, lp_tensor_bytes(&a->tensors[i]));
    }
    assert_int_equal(a->property_count, b->property_count);
    for (int i = 0; i < a->property_count; i++) {
        assert_string_equal(a->property_name[i], b->property_name[i]);
        assert_string_equal(a->property_value[i], b->property_value[i]);
    }
    assert_int_equal(lapse_model_event_type_count(a), lapse_model_event_type_count(b));
    for (int64_t i = 0; i < lapse_model_event_type_count(a); i++)
        assert_string_equal(lapse_model_event_type_name(a, i), lapse_model_event_type_name(b, i));
    assert_true(a->seed == b->seed && a->fingerprint == b->fingerprint && a->split_by == b->split_by);
    const lp_model_config *x = &a->config, *y = &b->config;
    assert_true(x->row == y->row && x->event_types == y->event_types);
    lp_model_options_walk(x, compare_option, (void *)(uintptr_t)y);
}

static void what_is_saved_is_loaded(void **state)
{
    (void)state;
    for (int i = -3; i < 0 || lp_encodings[i]; i++) {
        lapse_model *model;
        if (i >= 0) {
            lp_model_config config = small_config(lp_encodings[i], 4, 1 + i % 3, 2);
            small_config_number(&config, "period-min", 1.0 / 3);
            small_config_set(&config, "period-init", lp_period_inits[i % 4]->name);
            small_config_set(&config, "inverse-cdf", lp_inverse_cdfs[i % 5]->name);
            small_config_number(&config, "frequency-samples", small_encoding(&config)->sample ? 3 : 1);
            small_config_number(&config, "periods-fixed", i % 2);
            config.target_time = !(i % 2);
            model = described(&config);
        } else {
            model = fit_baseline(i == -3 ? "majority" : "markov", i + 4);
        }
        save(model, "m");
        lapse_model *loaded = load("m");
        check_same(model, loaded);
        save(loaded, "again");
        small_files_same(small_path("m"), small_path("again"));
        lapse_model_free(model);
        lapse_model_free(loaded);
    }
}

static void lookups(void **state)
{
    (void)state;
    lapse_model *model = fit_baseline("majority", 1);
    const char *name, *value;
    assert_int_equal(lapse_model_event_type_find(model, "b"), 1);
    assert_int_equal(lapse_model_event_type_find(model, "d"), -1);
    assert_null(lapse_model_event_type_name(model, -1));
    assert_null(lapse_model_event_type_name(model, 3));
    assert_false(lapse_model_property(model, -1, &name, &value));
    assert_false(lapse_model_property(model, model->property_count, &name, &value));
    assert_null(lp_model_property_find(model, "nothing"));
    lapse_model_free(model);
    lapse_model_free(NULL);
}

/* Text of a property comes back as it was; bytes that are no UTF-8 become the replacement character. */
static void texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", ""},
        {"a \"quoted\" \\ path\n\t\x01\x7f", "a \"quoted\" \\ path\n\t\x01\x7f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"caf\xe9", "caf\xef\xbf\xbd"},
        {"\xff|\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82",
         "\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|"
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
         "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe0\x80\x80|\xf0\x80\x80\x80",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_model *model = fit_baseline("majority", 1);
        assert_int_equal(lp_model_property_set(model, NULL, "source", "%s", cases[i].text), LAPSE_OK);
        save(model, "m");
        lapse_model *loaded = load("m");
        assert_string_equal(lp_model_property_find(loaded, "source"), cases[i].wanted);
        lapse_model_free(model);
        lapse_model_free(loaded);
    }
}

/* Numbers in a file have a point where the user's language has a comma. */
static void locales(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *found = NULL;
    for (int i = 0; i < 4 && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]);
    if (!found)
        skip();
    lp_model_config config = small_config(lp_encoding_find("mercer"), 4, 1, 1);
    lapse_model *model = described(&config);
    assert_string_equal(lp_model_property_find(model, "period_min"), "0.5");
    save(model, "m");
    lapse_model *loaded = load("m");
    check_same(model, loaded);
    setlocale(LC_NUMERIC, "C");
    lapse_model_free(model);
    lapse_model_free(loaded);
}

/* ------------------------------------------------------------------------------------------------- damage ---- */

static void check_refused(const char *path, const char *what)
{
    lapse_error error = {0};
    lapse_model *model = NULL;
    if (lapse_model_load(path, &model, &error) != LAPSE_ERROR_FORMAT)
        fail_msg("%s was not refused: %s", what, error.message);
    assert_null(model);
    assert_string_equal(error.file, path);
    assert_true(strncmp(error.message, NOT_WHOLE, strlen(NOT_WHOLE)) == 0);
}

static void save_config(const lp_model_config *config, const char *name)
{
    lapse_model *model = described(config);
    save(model, name);
    lapse_model_free(model);
}

static void save_small(const char *name)
{
    lp_model_config config = small_config(lp_encoding_find("mercer"), 2, 1, 1);
    save_config(&config, name);
}

static void every_truncation(void **state)
{
    (void)state;
    save_small("m");
    lp_buffer bytes = small_file_read(small_path("m"));
    const char *path = small_path("cut");
    small_file_write(path, bytes.data, bytes.size);
    char what[40];
    for (size_t left = bytes.size; left > 0;) {
        left -= left > 20 ? (size_t)small_effort(1, 61) % left : 1;
        assert_int_equal(truncate(path, (off_t)left), 0);
        snprintf(what, sizeof what, "a file of %zu bytes", left);
        check_refused(path, what);
    }
    /* More than all is as bad. */
    lp_buffer_add(&bytes, "x", 1);
    small_file_write(path, bytes.data, bytes.size);
    check_refused(path, "a longer file");
    lp_buffer_clear(&bytes);
}

static void every_flipped_byte(void **state)
{
    (void)state;
    save_small("m");
    const char *path = small_path("m");
    lp_buffer bytes = small_file_read(path);
    int file = open(path, O_WRONLY);
    assert_true(file >= 0);
    char what[40];
    for (size_t i = 0; i < bytes.size; i += (size_t)small_effort(1, 61)) {
        char flipped = (char)(bytes.data[i] ^ (1 << i % 8));
        assert_int_equal(pwrite(file, &flipped, 1, (off_t)i), 1);
        snprintf(what, sizeof what, "byte %zu flipped", i);
        check_refused(path, what);
        assert_int_equal(pwrite(file, bytes.data + i, 1, (off_t)i), 1);
    }
    close(file);
    lapse_model_free(load("m"));
    bytes.data[bytes.size - 20] ^= 1;
    small_file_write(small_path("edited"), bytes.data, bytes.size);
    lapse_model *model = NULL;
    lapse_error error;
    assert_int_equal(lapse_model_load(small_path("edited"), &model, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message,
                        "this is not a whole Lapse model: its checksum does not match; it was edited or damaged");
    lp_buffer_clear(&bytes);
}

/* ------------------------------------------------------------------------ made up, with a right checksum ----- */

enum { CHECKSUM_AT = 8 + sizeof "{\"__metadata__\":{\"checksum\":\"" - 1, DIGITS = 16 };

/* Writes header and data with the sizes and the checksum corrected. */
static void seal(const char *path, const char *header, size_t size, const char *data, size_t data_size)
{
    lp_buffer file = {0};
    uint64_t padded = (size + 7) / 8 * 8;
    lp_buffer_add(&file, &padded, sizeof padded);
    lp_buffer_add(&file, header, size);
    while (file.size < 8 + padded)
        lp_buffer_add(&file, " ", 1);
    lp_buffer_add(&file, data, data_size);
    if (size > CHECKSUM_AT + DIGITS - 8) {
        char digits[DIGITS + 1];
        memset(file.data + CHECKSUM_AT, '0', DIGITS);
        snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(file.data + 8, file.size - 8));
        memcpy(file.data + CHECKSUM_AT, digits, DIGITS);
    }
    small_file_write(path, file.data, file.size);
    lp_buffer_clear(&file);
}

/* The saved file "m" with `from` replaced in its header. */
static void edit(const char *from, const char *to)
{
    lp_buffer bytes = small_file_read(small_path("m")), header = {0};
    uint64_t size;
    memcpy(&size, bytes.data, sizeof size);
    const char *text = bytes.data + 8, *place = memmem(text, size, from, strlen(from));
    if (!place)
        fail_msg("there is no %s in %.*s", from, (int)size, text);
    lp_buffer_add(&header, text, (size_t)(place - text));
    lp_buffer_add(&header, to, strlen(to));
    place += strlen(from);
    lp_buffer_add(&header, place, (size_t)(text + size - place));
    seal(small_path("edited"), header.data, header.size, text + size, bytes.size - 8 - size);
    lp_buffer_clear(&bytes);
    lp_buffer_clear(&header);
}

static void check_message(const char *what, const char *beginning, const char *wanted)
{
    lapse_error error = {0};
    lapse_model *model = NULL;
    char message[300];
    lapse_status status = lapse_model_load(small_path("edited"), &model, &error);
    if (!wanted) {
        if (status != LAPSE_OK)
            fail_msg("%s: %s", what, error.message);
        lapse_model_free(model);
        return;
    }
    snprintf(message, sizeof message, "%s%s", beginning, wanted);
    if (status != LAPSE_ERROR_FORMAT || strcmp(error.message, message) != 0)
        fail_msg("%s: '%s', should be '%s'", what, error.message, message);
    assert_string_equal(error.file, small_path("edited"));
}

typedef struct edit_case {
    const char *from, *to, *wanted; /* NULL: is loaded */
} edit_case;

static void check_edits(const edit_case *cases, size_t count, const char *beginning)
{
    for (size_t i = 0; i < count; i++) {
        edit(cases[i].from, cases[i].to);
        check_message(cases[i].to, beginning, cases[i].wanted);
    }
}

static void made_up_headers(void **state)
{
    (void)state;
    save_small("m");
    static const edit_case cases[] = {
        {"\"dims\"", "\"dims\"", NULL},
        {"\"dims\":\"2\"", "\"dims\":2", "its metadata holds something that is not text"},
        {"\"dims\":\"2\"", "\"dims\"", "its header is not JSON"},
        {"\"dims\":\"2\"", "\"dims\":\"2\",\"dims\":\"2\"", "its header has a name twice"},
        {"\"dims\":\"2\"", "\"dims\":\"2\",\"d\\u0069ms\":\"2\"", "its header has a name twice"},
        {"\"dims\":\"2\"", "\"dims\":\"2\",\"checksum\":\"2\"", "its header has a name twice"},
        {"\"dims\":\"2\"", "\"dims\":\"2\\u0000\"", "its header is not JSON"},
        {"\"vocabulary.event.bytes\"", "\"vocabulary.event.offset\"", "its header has a name twice"},
        {"\"F32\",\"shape\"", "\"F32\",\"dtype\":\"F32\",\"shape\"", "a tensor's entry is not understood"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"dtype\":\"F32\"", "a tensor's entry is not understood"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[5,99999999999999999999]", "a tensor's entry is not understood"},
        {"__metadata__", "__metadatA__", "its header has no Lapse metadata"},
        {"\"checksum\":", "\"checksun\":", "its header has no Lapse metadata"},
        {"\"F32\"", "\"F16\"", "a tensor has a type or shape that cannot be"},
        {"\"F32\",\"shape\":[5,", "\"F32\",\"shape\":[-5,", "a tensor has a type or shape that cannot be"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[5,-2]", "a tensor has a type or shape that cannot be"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[5,0]", "a tensor lies outside the file; was it cut off?"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[0,2]", "a tensor lies outside the file; was it cut off?"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[9000000000,9000000000]",
         "a tensor has a type or shape that cannot be"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[5]", "a tensor's entry is not understood"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[5,2,1]", "a tensor's entry is not understood"},
        {"\"F32\",\"shape\":[5,2]", "\"F32\",\"shape\":[5,2.0]", "a tensor's entry is not understood"},
        {"\"F32\",\"shape\"", "\"F32\",\"more\":1,\"shape\"", "a tensor's entry is not understood"},
        {"\"data_offsets\":[0,40]", "\"data_offsets\":[4,40]", "a tensor lies outside the file; was it cut off?"},
        {"\"data_offsets\":[0,40]", "\"data_offsets\":[0,44]", "a tensor lies outside the file; was it cut off?"},
        {"\"data_offsets\":[0,40]", "\"data_offsets\":[-40,0]", "a tensor lies outside the file; was it cut off?"},
        {"\"data_offsets\":[0,40]", "\"data_offsets\":[40,0]", "a tensor lies outside the file; was it cut off?"},
        {"\"F32\",\"shape\":[5,2]", "\"F64\",\"shape\":[5,2]", "a tensor lies outside the file; was it cut off?"},
        {"{\"__metadata__\"", " \"__metadata__\"", "it does not begin with a safetensors header"},
    };
    check_edits(cases, sizeof cases / sizeof *cases, NOT_WHOLE);
}

static void made_up_beginnings(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *wanted;
    } cases[] = {
        {"", 0, "it is shorter than 8 bytes"},
        {"\x10\0\0\0\0\0\0", 7, "it is shorter than 8 bytes"},
        {"\x10\0\0\0\0\0\0\0", 8, "it does not begin with a safetensors header"},
        {"\x01\0\0\0\0\0\0\0{", 9, "it does not begin with a safetensors header"},
        {"\x10\0\0\0\0\0\0\0[]", 10, "it does not begin with a safetensors header"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "it does not begin with a safetensors header"},
        {"user,time,event\n1,2,3\n", 22, "it does not begin with a safetensors header"},
        {"\x10\0\0\0\0\0\0\0{}", 10, "its header is cut off"},
        {"\x02\0\0\0\0\0\0\0{{", 10, "its header is not JSON"},
        {"\x02\0\0\0\0\0\0\0{}", 10, "its header has no Lapse metadata"},
        {"\x16\0\0\0\0\0\0\0{\"__metadata__\":\"...\"}", 30, "its header has no Lapse metadata"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_file_write(small_path("edited"), cases[i].bytes, cases[i].size);
        check_message("a made-up file", NOT_WHOLE, cases[i].wanted);
    }
    lapse_model *model = NULL;
    lapse_error error;
    assert_int_equal(lapse_model_load(small_path("missing"), &model, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot open: No such file or directory");
}

static void bytes_after_the_last_tensor(void **state)
{
    (void)state;
    save_small("m");
    lp_buffer bytes = small_file_read(small_path("m"));
    uint64_t size;
    memcpy(&size, bytes.data, sizeof size);
    lp_buffer_add(&bytes, "more", 4);
    seal(small_path("edited"), bytes.data + 8, size, bytes.data + 8 + size, bytes.size - 8 - size);
    check_message("four bytes more", NOT_WHOLE, "there are bytes after its last tensor");
    lp_buffer_clear(&bytes);
}

static void made_up_configurations(void **state)
{
    (void)state;
    save_small("m");
#define WRONG(name) "'" name "' is missing or wrong"
    static const edit_case cases[] = {
        {"\"format\":\"lapse-model\"", "\"format\":\"pickle\"", WRONG("format")},
        {"\"format\":", "\"formal\":", WRONG("format")},
        {"\"model\":\"attention\"", "\"model\":\"oracle\"", WRONG("model")},
        {"\"model\":", "\"muddle\":", WRONG("model")},
        {"\"encoding\":\"mercer\"", "\"encoding\":\"sundial\"", WRONG("encoding")},
        {"\"encoding\":\"mercer\"", "\"encoding\":\"bochner\",\"x\":\"\"", WRONG("block.0.query.time.weight")},
        {"\"encoding\":\"mercer\"", "\"encoding\":\"bochner-invcdf\"", WRONG("inverse_cdf")},
        {"\"period_init\":\"geometric\"", "\"period_init\":\"wild\"", WRONG("period_init")},
        {"\"target_time\":\"known\"", "\"target_time\":\"guessed\"", WRONG("target_time")},
        {"\"target_time\"", "\"target_tim\"", WRONG("target_time")},
        {"\"event_types\":\"5\"", "\"event_types\":\"0\"", WRONG("event_types")},
        {"\"event_types\":\"5\"", "\"event_types\":\"4\"", WRONG("vocabulary.event.offset")},
        {"\"event_types\":\"5\"", "\"event_types\":\"2000000000\"", WRONG("vocabulary.event.offset")},
        {"\"dims\":\"2\"", "\"dims\":\"two\"", WRONG("dims")},
        {"\"dims\":\"2\"", "\"dims\":\"\"", WRONG("dims")},
        {"\"dims\":\"2\"", "\"dims\":\"2.5\"", WRONG("dims")},
        {"\"dims\":\"2\"", "\"dims\":\"nan\"", WRONG("dims")},
        {"\"dims\":\"2\"", "\"dims\":\"4\"", WRONG("event.embedding")},
        {"\"dims\":\"2\"", "\"dims\":\"4096\"", WRONG("event.embedding")},
        {"\"blocks\":\"1\"", "\"blocks\":\"0\"", WRONG("blocks")},
        {"\"blocks\":\"1\"", "\"blocks\":\"2\"", WRONG("block.1.norm.weight")},
        {"\"heads\":\"1\"", "\"heads\":\"3\"", "heads (3) must divide dims (2)"},
        {"\"heads\":\"1\"", "\"heads\":\"65\"", WRONG("heads")},
        {"\"context\":\"12\"", "\"context\":\"1e7\"", WRONG("context")},
        {"\"periods\":\"3\"", "\"periods\":\"0\"", WRONG("periods")},
        {"\"periods\":\"3\"", "\"periods\":\"-3\"", WRONG("periods")},
        {"\"periods\":\"3\"", "\"periods\":\"1000000\"", WRONG("periods")},
        {"\"harmonics\":\"2\"", "\"harmonics\":\"0\"", WRONG("harmonics")},
        {"\"harmonics\":\"2\"", "\"harmonics\":\"1000000\"", WRONG("harmonics")},
        {"\"harmonics\":\"2\"", "\"harmonics\":\"3\"", WRONG("time.amplitude")},
        {"\"period_min\":\"0.5\"", "\"period_min\":\"0\"", WRONG("period_min")},
        {"\"period_min\":\"0.5\"", "\"period_min\":\"50\"", "period-max (40 s) is shorter than period-min (50 s)"},
        {"\"period_max\":\"40\"", "\"period_max\":\"inf\"", WRONG("period_max")},
        {"\"dropout\":\"0\"", "\"dropout\":\"-1\"", WRONG("dropout")},
        {"\"task\":\"classify\"", "\"task\":\"guess\"", WRONG("task")},
        {"\"projection\":\"linear\"", "\"projection\":\"round\"", WRONG("projection")},
        {"\"combine\":\"concatenate\"", "\"combine\":\"mix\"", WRONG("combine")},
        {"\"seed\":\"18446744073709551615\"", "\"seed\":\"18446744073709551616\"", WRONG("seed")},
        {"\"seed\":\"18446744073709551615\"", "\"seed\":\"-1\"", WRONG("seed")},
        {"\"seed\":", "\"need\":", WRONG("seed")},
        {"\"split\":\"sequence\"", "\"split\":\"coin\"", WRONG("split")},
        {"\"split\":", "\"splat\":", WRONG("split")},
        {"\"dataset.fingerprint\":\"00ab", "\"dataset.fingerprint\":\"xyab", WRONG("dataset.fingerprint")},
        {"\"dataset.fingerprint\"", "\"dataset.footprint\"", WRONG("dataset.fingerprint")},
        {"\"vocabulary.event.offset\"", "\"vocabulary.event.onset\"", WRONG("vocabulary.event.offset")},
        {"\"vocabulary.event.bytes\"", "\"vocabulary.event.bites\"", WRONG("vocabulary.event.bytes")},
        {"\"U64\",\"shape\":[1,6]", "\"U64\",\"shape\":[6,1]", WRONG("vocabulary.event.offset")},
        {"\"output.weight\"", "\"output.wait\"", WRONG("output.weight")},
    };
    check_edits(cases, sizeof cases / sizeof *cases, NOT_USABLE);
    static const edit_case versions[] = {
        {"\"format.version\":\"2\"", "\"format.version\":\"1\"",
         "this model file has version 1, and this Lapse reads version 2: train the model again"},
        {"\"format.version\"", "\"format.vision\"",
         "this model file has version ?, and this Lapse reads version 2: train the model again"},
    };
    check_edits(versions, 2, "");
}

/* What a sampled encoding has besides; a made-up size must not make it draw for ever. */
static void made_up_samplers(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("bochner-invcdf"), 2, 1, 1);
    small_config_number(&config, "frequency-samples", 2);
    save_config(&config, "m");
    static const edit_case cases[] = {
        {"\"inverse_cdf\":\"maf\"", "\"inverse_cdf\":\"glow\"", WRONG("inverse_cdf")},
        {"\"hidden\":\"4\"", "\"hidden\":\"1000000\"", WRONG("hidden")},
        {"\"frequency_samples\":\"2\"", "\"frequency_samples\":\"3\"", WRONG("time.log_period")},
        {"\"periods\":\"3\"", "\"periods\":\"5000\"", WRONG("periods")},
    };
    check_edits(cases, sizeof cases / sizeof *cases, NOT_USABLE);
}

static void parameters_that_are_no_numbers(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        lp_model_config config = small_config(lp_encoding_find("mercer"), 2, 1, 1);
        lapse_model *model = described(&config);
        ((float *)lp_model_tensor_find(model, "output.weight")->data)[3] = values[i];
        small_model_save(model, small_path("edited"));
        check_message("a parameter", NOT_USABLE, WRONG("output.weight"));
        lapse_model_free(model);
    }
}

/* The table of names has to be one: each name ends in a zero byte, where the next begins. */
static void made_up_names(void **state)
{
    (void)state;
    save_small("m");
    static const uint64_t wrong[][6] = {{1, 2, 4, 6, 8, 10},        {0, 0, 4, 6, 8, 10}, {0, 4, 2, 6, 8, 10},
                                        {0, 1, 4, 6, 8, 10},        {0, 2, 4, 6, 8, 8},  {0, 2, 4, 6, 8, 11},
                                        {0, 2, 4, 6, 8, UINT64_MAX}};
    lp_buffer bytes = small_file_read(small_path("m"));
    uint64_t size;
    memcpy(&size, bytes.data, sizeof size);
    char *offsets = bytes.data + bytes.size - 10 - 48;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(offsets, wrong[i], sizeof wrong[i]);
        seal(small_path("edited"), bytes.data + 8, size, bytes.data + 8 + size, bytes.size - 8 - size);
        check_message("names", NOT_USABLE, WRONG("vocabulary.event.offset"));
    }
    /* A zero byte within a name, and two equal names. */
    static const uint64_t right[] = {0, 2, 4, 6, 8, 10};
    char *names = bytes.data + bytes.size - 10;
    memcpy(offsets, right, sizeof right);
    names[2] = 0;
    seal(small_path("edited"), bytes.data + 8, size, bytes.data + 8 + size, bytes.size - 8 - size);
    check_message("a zero byte", NOT_USABLE, WRONG("vocabulary.event.offset"));
    names[2] = 'b';
    names[8] = 'b';
    seal(small_path("edited"), bytes.data + 8, size, bytes.data + 8 + size, bytes.size - 8 - size);
    check_message("equal names", "", "names 2 and 5 of tensor 'vocabulary.event.bytes' are both 'b'");
    lp_buffer_clear(&bytes);
}

/* The cost of metadata is linear: 80,000 keys took 11 s when it was quadratic. */
static void many_properties(void **state)
{
    (void)state;
    enum { KEYS = 80000 };
    save_small("m");
    lp_buffer keys = {0};
    assert_true(lp_buffer_print(&keys, "\"format\":"));
    lp_buffer text = {0};
    for (int i = 0; i < KEYS; i++)
        assert_true(lp_buffer_print(&text, "\"k%d\":\"\",", i));
    assert_true(lp_buffer_add(&text, keys.data, keys.size + 1)); /* with the final zero byte */
    edit(keys.data, text.data);
    clock_t start = clock();
    lapse_model *model = load("edited");
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_true(model->property_count > KEYS);
    assert_string_equal(lp_model_property_find(model, "k79999"), "");
    if (seconds > 3)
        fail_msg("%d keys took %.1f s", KEYS, seconds);
    lapse_model_free(model);
    lp_buffer_clear(&keys);
    lp_buffer_clear(&text);
}

/* ------------------------------------------------------------------------------------------ made-up baselines --- */

/* Saves a baseline after its tensor was changed, and loads it. */
static void check_baseline(lapse_model *model, const char *wanted)
{
    lapse_error error = {0};
    lapse_model *loaded = NULL;
    small_model_save(model, small_path("edited"));
    lapse_status status = lapse_model_load(small_path("edited"), &loaded, &error);
    if (status != LAPSE_ERROR_FORMAT || strcmp(error.message, wanted) != 0)
        fail_msg("'%s', should be '%s'", error.message, wanted);
    assert_string_equal(error.file, small_path("edited"));
    lapse_model_free(model);
}

static void made_up_majority(void **state)
{
    (void)state;
    static const char shape[] = "tensor 'majority.probability' is missing or has the wrong shape";
    static const double values[] = {0, -0.5, 1.5, 0.0 / 1e-300, 1e300 * 1e300};
    for (size_t i = 0; i < 5; i++) {
        lapse_model *model = fit_baseline("majority", 1);
        ((double *)model->tensors[0].data)[1] = values[i];
        check_baseline(model, "tensor 'majority.probability' holds a number that is not a probability");
    }
    lapse_model *model = fit_baseline("majority", 1);
    model->tensors[0].cols = 2;
    check_baseline(model, shape);
    model = fit_baseline("majority", 1);
    model->tensors[0].name = "majority.care";
    check_baseline(model, shape);
    model = fit_baseline("majority", 1);
    assert_non_null(lp_model_tensor_add(model, "first", LP_TENSOR_U8, 1, 1));
    lp_tensor first = model->tensors[0];
    model->tensors[0] = model->tensors[1];
    model->tensors[1] = first;
    check_baseline(model, shape);
    model = fit_baseline("majority", 1);
    for (int i = 1; i < LP_BASELINE_TENSORS; i++) {
        char name[] = {(char)('A' + i), 0};
        assert_non_null(lp_model_tensor_add(model, name, LP_TENSOR_U8, 1, 1));
    }
    assert_null(lp_model_tensor_add(model, "one too many", LP_TENSOR_U8, 1, 1));
    save(model, "m");
    lapse_model_free(load("m")); /* as many as may be */
    edit("\"P\":", "\"Q\":{\"dtype\":\"U8\",\"shape\":[0,1],\"data_offsets\":[38,38]},\"P\":");
    check_message("one tensor too many", NOT_USABLE, WRONG("P"));
    lapse_model_free(model);
}

static void made_up_markov(void **state)
{
    (void)state;
    static const char shape[] = "tensors 'markov.1.gram' and 'markov.1.count' are missing or have the wrong shape";
    lapse_model *model = fit_baseline("markov", 2);
    ((int32_t *)model->tensors[2].data)[0] = 3;
    check_baseline(model, "tensor 'markov.1.gram' names an event type that does not exist");
    model = fit_baseline("markov", 2);
    ((int32_t *)model->tensors[4].data)[1] = -1;
    check_baseline(model, "tensor 'markov.2.gram' names an event type that does not exist");
    model = fit_baseline("markov", 2);
    memcpy(model->tensors[2].data, (int32_t *)model->tensors[2].data + 2, 8);
    check_baseline(model, "tensor 'markov.1.gram' is not in order");
    model = fit_baseline("markov", 2);
    ((int32_t *)model->tensors[3].data)[0] = 0;
    check_baseline(model, "tensor 'markov.1.count' counts less than once");
    model = fit_baseline("markov", 2);
    model->tensors[3].rows--;
    check_baseline(model, shape);
    model = fit_baseline("markov", 2);
    model->tensors[2].name = "markov.7.gram";
    check_baseline(model, shape);
    static const double strengths[] = {0, -1, 1e300 * 1e300};
    for (int i = 0; i < 3; i++) {
        model = fit_baseline("markov", 1);
        *(double *)lp_model_tensor_find(model, "markov.strength")->data = strengths[i];
        check_baseline(model, "tensor 'markov.strength' is missing or is not one positive number");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(lookups),
        cmocka_unit_test(texts),
        cmocka_unit_test(locales),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_flipped_byte),
        cmocka_unit_test(made_up_headers),
        cmocka_unit_test(made_up_beginnings),
        cmocka_unit_test(bytes_after_the_last_tensor),
        cmocka_unit_test(made_up_configurations),
        cmocka_unit_test(made_up_samplers),
        cmocka_unit_test(made_up_names),
        cmocka_unit_test(many_properties),
        cmocka_unit_test(parameters_that_are_no_numbers),
        cmocka_unit_test(made_up_majority),
        cmocka_unit_test(made_up_markov),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
