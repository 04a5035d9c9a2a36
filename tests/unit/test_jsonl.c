/* test_jsonl.c: JSON Lines: values, keys, nesting, escapes, malformed lines; and files of other kinds. */
#include "support/table_text.h"

#include "base/memory.h"
#include "base/random.h"
#include "data/import/chunks.h"
#include "data/import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static void expect(const char *text, const char *expected)
{
    lapse_import_options options = defaults();
    expect_with(text, strlen(text), &options, expected);
}

static void objects_are_rows(void **state)
{
    (void)state;
    expect("{\"user\":\"a\",\"time\":1,\"event\":\"x\"}\n{\"user\":\"b\",\"time\":2.5,\"event\":\"y\"}\n",
           "a: 1 x;b: 2.5 y;");
    expect("{\"user\":\"a\",\"time\":1,\"event\":\"x\"}", "a: 1 x;");
    expect("\n  \r\n { \"user\" : \"a\" ,\t\"time\" : 1 , \"event\" : \"x\" } \r\n\n", "a: 1 x;");
    expect("\xEF\xBB\xBF{\"user\":\"a\",\"time\":1,\"event\":\"x\"}\n", "a: 1 x;");
    /* Numbers and booleans as names; times as text. */
    expect("{\"user\":17,\"time\":\"2012-01-14T02:05:23Z\",\"event\":true}\n{\"user\":-1.5e3,\"time\":\"2012-01-14 "
           "02:05:24\",\"event\":false}\n",
           "17: 1326506723 true;-1.5e3: 1326506724 false;");
    /* Keys in any order, some absent, others in between; values of other keys are skipped. */
    expect("{\"event\":\"x\",\"user\":\"a\",\"time\":1}\n"
           "{\"time\":2,\"more\":[1,[2,{\"user\":\"no\"}],\"]\"],\"user\":\"a\",\"event\":\"y\",\"deep\":{\"user\":"
           "\"no\"}}\n"
           "{\"user\":\"b\",\"null\":null,\"event\":\"x\",\"time\":3,\"empty\":{},\"none\":[]}\n",
           "a: 1 x, 2 y;b: 3 x;");
    /* Two keys with the same beginning, and one that needs escapes. */
    expect("{\"use\":0,\"user\":\"a\",\"users\":1,\"time\":1,\"event\":\"x\"}\n"
           "{\"us\\u0065r\":\"b\",\"time\":2,\"event\":\"x\"}\n",
           "a: 1 x;b: 2 x;");
}

static void strings_are_unescaped(void **state)
{
    (void)state;
    static const struct {
        const char *written, *read;
    } cases[] = {
        {"plain", "plain"},
        {"\\\"\\\\\\/", "\"\\/"},
        {"a\\tb\\nc\\rd\\be\\ff", "a\tb\nc\rd\be\ff"},
        {"caf\\u00e9", "caf\xC3\xA9"},
        {"caf\xC3\xA9", "caf\xC3\xA9"},
        {"\\u20AC", "\xE2\x82\xAC"},
        {"\\ud83d\\ude00!", "\xF0\x9F\x98\x80!"},
        {"\\uFFFF\\u007f", "\xEF\xBF\xBF\x7F"},
        {"{}[],:", "{}[],:"},
        {"a long name without an escape and then one \\u0041 and more",
         "a long name without an escape and then one A and "
         "more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300], expected[300];
        snprintf(text, sizeof text,
                 "{\"user\":\"a\",\"event\":\"%s\",\"time\":1}\n{\"user\":\"%s\",\"event\":\"x\",\"time\":2}\n",
                 cases[i].written, cases[i].written);
        snprintf(expected, sizeof expected, "a: 1 %s;%s: 2 x;", cases[i].read, cases[i].read);
        expect(text, expected);
    }
}

static void nested_keys_are_paths(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.sequence = "user.id";
    options.event = "what.action,what.item.name";
    const char *text =
        "{\"user\":{\"id\":1,\"name\":\"n\"},\"time\":1,\"what\":{\"action\":\"buy\",\"item\":{\"name\":\"tea\"}}}\n"
        "{\"time\":2,\"what\":{\"item\":{\"name\":\"mug\"},\"action\":\"view\"},\"user\":{\"name\":null,\"id\":1}}\n"
        "{\"time\":3,\"what\":{\"action\":\"leave\"},\"user.id\":2}\n";
    expect_with(text, strlen(text), &options, "1: 1 buy tea, 2 view mug;2: 3 leave;");
    /* Found by name: "user.id" is as good as "user_id". */
    expect("{\"user\":{\"id\":1},\"ts\":1,\"action\":\"x\"}\n", "1: 1 x;");
}

static void fields_may_be_missing(void **state)
{
    (void)state;
    static const char *const categories[] = {"device"}, *const numbers[] = {"price", "late.n"};
    lapse_import_options options = defaults();
    options.event = "event";
    options.categories = categories;
    options.category_count = 1;
    options.numbers = numbers;
    options.number_count = 2;
    /* late.n first occurs after the sample, which has 256 KiB. */
    lp_buffer text = {0}, expected = {0};
    lp_buffer_print(&text, "{\"user\":\"a\",\"time\":0,\"event\":\"x\",\"device\":\"phone\",\"price\":2.5}\n"
                           "{\"user\":\"a\",\"time\":1,\"event\":\"x\",\"device\":null,\"price\":null}\n"
                           "{\"user\":\"a\",\"time\":2,\"event\":\"x\",\"price\":\"7\"}\n"
                           "{\"user\":\"a\",\"time\":3,\"event\":\"x\",\"price\":NaN}\n");
    lp_buffer_print(&expected, "a: 0 x [phone] <2.5> <nan>, 1 x [] <nan> <nan>, 2 x [] <7> <nan>, 3 x [] <nan> <nan>");
    for (int i = 4; i < 10000; i++) {
        lp_buffer_print(&text, "{\"user\":\"a\",\"time\":%d,\"event\":\"x\"}\n", i);
        lp_buffer_print(&expected, ", %d x [] <nan> <nan>", i);
    }
    lp_buffer_print(&text, "{\"user\":\"a\",\"time\":10000,\"event\":\"x\",\"late\":{\"n\":9}}\n");
    lp_buffer_print(&expected, ", 10000 x [] <nan> <9>;");
    lp_buffer_add(&expected, "", 1);
    expect_with(text.data, text.size, &options, expected.data);
    options.numbers = (const char *const[]){"price", "never"};
    refuse_with(text.data, text.size, &options, LAPSE_ERROR_INPUT, 0, 0, "no object has a value for the key 'never'");
    lp_buffer_clear(&text);
    lp_buffer_clear(&expected);
}

#define FIRST "{\"user\":\"a\",\"time\":1,\"event\":\"x\",\"price\":1}\n"
#define ONE_LINE "the object does not end in its line: JSON Lines has one object per line (jq -c . FILE writes it so)"
#define NO_VALUE                                                                                                 \
    "a value is missing or malformed here: expected a string in double quotes, a number, true, false, null, an " \
    "object or an array"
#define ESCAPE "this escape is not one of JSON: \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits"
#define NUMBER "this is not a number of JSON, such as -12.5e3"

typedef struct refusal {
    const char *line; /* the second line */
    int64_t column;
    const char *message;
} refusal;

static const refusal malformed[] = {
    {"{\"user\":\"b\",\"time\":2,\"event\":\"y\"", 33, ONE_LINE},
    {"{", 2, ONE_LINE},
    {"{\"user\":\"b\",", 13, ONE_LINE},
    {"[1,2]", 1, "this line is not a JSON object: it must begin with {"},
    {"a,1,x", 1, "this line is not a JSON object: it must begin with {"},
    {"{} {}", 4, "text follows the object: JSON Lines has one object per line"},
    {"{user:1}", 2, "expected a key in double quotes"},
    {"{'user':1}", 2, "expected a key in double quotes"},
    {"{\"user\" 1}", 9, "expected : after a key"},
    {"{\"user\":}", 9, NO_VALUE},
    {"{\"user\":'b'}", 9, NO_VALUE},
    {"{\"user\":tru}", 9, NO_VALUE},
    {"{\"user\":1 2}", 11, "expected , or } in an object"},
    {"{\"x\":[1 2]}", 9, "expected , or ] in an array"},
    {"{\"x\":[1", 8, "expected , or ] in an array"},
    {"{\"x\":[1,]}", 9, NO_VALUE},
    {"{\"user\":\"b}", 9, "a string that begins here has no closing quote"},
    {"{\"user\":\"b\tc\"}", 11, "a control character in a string must be escaped"},
    {"{\"user\":\"\\x\"}", 10, ESCAPE},
    {"{\"user\":\"\\u12g4\"}", 10, ESCAPE},
    {"{\"user\":\"\\ud83d\"}", 10, "this escape is half of a surrogate pair: the other half is missing"},
    {"{\"user\":\"\\ude00\\ud83d\"}", 10, "this escape is half of a surrogate pair: the other half is missing"},
    {"{\"user\":\"\\u0000\"}", 10, "a string contains the character \\u0000"},
    {"{\"user\":01}", 9, NUMBER},
    {"{\"user\":-}", 9, NUMBER},
    {"{\"user\":1.}", 9, NUMBER},
    {"{\"user\":1e}", 9, NUMBER},
    {"{\"user\":.5}", 9, NO_VALUE},
    {"{\"user\":\"b\",\"user\":\"c\",\"time\":2,\"event\":\"y\"}", 13, "the key 'user' occurs twice in this object"},
    {"{\"new\":1,\"other\":2,\"new\":3,\"user\":\"b\"}", 20, "the key 'new' occurs twice in this object"},
    {"{\"x\":[{\"y\":1,\"y\":2}]}", 14, "this key occurs twice in its object"},
    {"{\"user\":[1],\"time\":2,\"event\":\"y\"}", 9,
     "the key 'user' is an array: a column must have strings, numbers, booleans or null"},
    {"{\"user\":{\"id\":1},\"time\":2,\"event\":\"y\"}", 9, "the key 'user' is an object: select one of its keys"},
    {"{\"time\":2,\"event\":\"y\"}", 0, "the sequence is missing: the object has no value for the key 'user'"},
    {"{\"user\":null,\"time\":2,\"event\":\"y\"}", 0,
     "the sequence is missing: the object has no value for the key 'user'"},
    {"{\"user\":\"\",\"time\":2,\"event\":\"y\"}", 10,
     "the sequence is missing: the object has no value for the key 'user'"},
    {"{\"user\":\"b\",\"time\":2}", 0, "the event is missing: the object has no value for the key 'event'"},
    {"{\"user\":\"b\",\"event\":\"y\"}", 0, "'' is not a time: it is empty"},
    {"{\"user\":\"b\",\"time\":\"soon\",\"event\":\"y\"}", 21, "'soon' is not a number, as the other times are"},
    {"{\"user\":\"b\",\"time\":true,\"event\":\"y\"}", 20, "'true' is not a number, as the other times are"},
    {"{\"user\":\"b\",\"time\":2,\"event\":\"y\",\"price\":\"cheap\"}", 43,
     "'cheap' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null"},
    {"{\"user\":\"b\",\"time\":2,\"event\":\"y\",\"price\":-Infinity}", 42,
     "'-Infinity' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null"},
    {"{\"user\":\"b\xFF\",\"time\":2,\"event\":\"y\"}", 10, "the name of the sequence is not valid UTF-8 text"},
    /* An escaped line end before the error does not end the line. */
    {"{\"user\":\"b\\nc\",\"time\":2,\"event\":\"y\"", 36, ONE_LINE},
};

static void malformed_lines(void **state)
{
    (void)state;
    static const char *const numbers[] = {"price"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        lapse_import_options options = defaults();
        options.numbers = numbers;
        options.number_count = 1;
        options.sequence = "user"; /* malformed lines may have other keys */
        lp_buffer text = {0};
        lp_buffer_print(&text, FIRST "%s\n{\"user\":\"c\",\"time\":3,\"event\":\"z\"}\n", malformed[i].line);
        refuse_with(text.data, text.size, &options, LAPSE_ERROR_INPUT, 2, malformed[i].column, malformed[i].message);
        options.skip_bad_rows = true;
        expect_with(text.data, text.size, &options, "a: 1 x <1>;c: 3 z <nan>;");
        lp_buffer_clear(&text);
    }
}

static void deep_values(void **state)
{
    (void)state;
    for (int depth = 63; depth <= 64; depth++) {
        lp_buffer text = {0};
        lp_buffer_print(&text, "{\"user\":\"a\",\"time\":1,\"event\":\"x\",\"deep\":");
        for (int i = 0; i < depth; i++)
            lp_buffer_print(&text, i % 2 ? "[" : "{\"k\":");
        lp_buffer_print(&text, "0");
        for (int i = depth - 1; i >= 0; i--)
            lp_buffer_print(&text, i % 2 ? "]" : "}");
        lp_buffer_print(&text, "}\n");
        lapse_import_options options = defaults();
        options.sequence = "user", options.time = "time", options.event = "event";
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        lapse_status status = import_bytes(text.data, text.size, &options, 64, &dataset, NULL, &error);
        assert_int_equal(status, depth == 63 ? LAPSE_OK : LAPSE_ERROR_INPUT);
        if (depth == 64)
            assert_string_equal(error.message, "values are nested deeper than 64 levels");
        lapse_dataset_close(dataset);
        lp_buffer_clear(&text);
    }
}

static void other_faults(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t line, column;
        const char *message;
    } cases[] = {
        {"{\"who\":1,\"time\":2,\"event\":3}\n", 1, 0,
         "no column was recognized as the sequence: select it with --sequence; the columns are: who, time, event"},
        {"{\"user\":1,\"time\":2,\"event\":\"\\ud83d\"}\n", 1, 29,
         "this escape is half of a surrogate pair: the other half is missing"},
        {"{}\n", 1, 0, "no column was recognized as the sequence: select it with --sequence; the columns are: "},
        {"{\n  \"user\": 1\n}\n", 1, 0,
         "no column was recognized as the time: select it with --time; the columns are: user"},
        {"{\"user\":1,\"time\":2,\"action\":3,\"item\":4}\n", 1, 0,
         "the columns are not certain: the event ('action' or 'item'); set --sequence user --time time --event action"},
        {"[{\"user\":1}]", 1, 0, "no column was recognized as the time: select it with --time; the columns are: user"},
        {"[]", 0, 0,
         "this is a JSON array without objects, not CSV or JSON Lines: its elements must be objects, one for each "
         "event"},
    };
    lapse_import_options options = defaults();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_with(cases[i].text, strlen(cases[i].text), &options, LAPSE_ERROR_INPUT, cases[i].line, cases[i].column,
                    cases[i].message);
    const char *text = "{\"user\":1,\"time\":2,\"event\":3}\n";
    options.sequence = "usr";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_INPUT, 1, 0,
                "there is no column 'usr' for the sequence; the columns are: user, time, event");
    options = defaults();
    options.header = false;
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "this is JSON Lines, whose columns have names: --no-header is for CSV");
    /* With a delimiter, it is delimited text. */
    options = defaults();
    options.delimiter = ",";
    expect_with(
        "{user,time,event\na,1,x\n", 23,
        &(lapse_import_options){
            .delimiter = ",", .header = true, .sequence = "{user", .min_events = 1, .min_count = 1, .threads = 1},
        "a: 1 x;");
    options = defaults();
    refuse_with("{\"user\":1,\"time\":2,\"event\":3}\n{\"user\":\"\0\"}\n", 44, &options, LAPSE_ERROR_INPUT, 2, 0,
                "this is a binary file, not text: it has a NUL byte");
}

/* Random objects, as JSON Lines and as CSV, with any number of threads. */
static void json_and_csv_agree(void **state)
{
    (void)state;
    printf("seed 11\n");
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 0);
    lp_buffer json = {0}, csv = {0};
    lp_buffer_print(&csv, "user,time,event,n\n");
    for (int row = 0; row < 20000; row++) {
        unsigned user = lp_random_below(&random, 300), time = lp_random_below(&random, 1000000),
                 event = lp_random_below(&random, 50);
        bool number = lp_random_below(&random, 2);
        lp_buffer_print(&csv, "u%u,%u,e%u,", user, time, event);
        lp_buffer_print(&csv, number ? "%u\n" : "\n", time % 7);
        char extra[40] = "";
        if (lp_random_below(&random, 4) == 0)
            snprintf(extra, sizeof extra, "\"k%u\":[%u],", lp_random_below(&random, 50), user);
        if (lp_random_below(&random, 3) == 0)
            lp_buffer_print(&json, "{%s\"event\":\"\\u0065%u\",\"user\":\"u%u\",\"time\":%u", extra, event, user, time);
        else
            lp_buffer_print(&json, "{\"user\":\"u%u\",%s\"time\":%u,\"event\":\"e%u\"", user, extra, time, event);
        if (number)
            lp_buffer_print(&json, ",\"n\":%u", time % 7);
        lp_buffer_print(&json, "}\n");
    }
    static const char *const numbers[] = {"n"};
    lapse_import_options options = defaults();
    options.numbers = numbers;
    options.number_count = 1;
    lapse_dataset *from_csv = NULL, *from_json = NULL;
    assert_int_equal(import_bytes(csv.data, csv.size, &options, LP_CHUNK_SIZE, &from_csv, NULL, NULL), LAPSE_OK);
    char *expected = show(from_csv);
    for (int threads = 1; threads <= 3; threads++) {
        options.threads = threads;
        lapse_error error = {0};
        if (import_bytes(json.data, json.size, &options, 5000 * threads, &from_json, NULL, &error) != LAPSE_OK)
            fail_msg("%ld:%ld: %s", (long)error.line, (long)error.column, error.message);
        char *shown = show(from_json);
        assert_string_equal(shown, expected);
        lp_free(shown);
        lapse_dataset_close(from_json);
        from_json = NULL;
    }
    lp_free(expected);
    lapse_dataset_close(from_csv);
    lp_buffer_clear(&json);
    lp_buffer_clear(&csv);
}

static void gzip_is_read(void **state)
{
    (void)state;
    const char *text = "{\"user\":\"a\",\"time\":1,\"event\":\"x\"}\n";
    unsigned char packed[200];
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (z_const Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)strlen(text);
    stream.next_out = packed;
    stream.avail_out = sizeof packed;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    lapse_import_options options = defaults();
    expect_with((const char *)packed, sizeof packed - stream.avail_out, &options, "a: 1 x;");
    deflateEnd(&stream);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *text = "{\"user\":\"a\",\"time\":1,\"event\":\"x\",\"n\":1,\"o\":{\"p\":2}}\n"
                       "{\"time\":2,\"event\":\"y\",\"user\":\"a\",\"new\":1}\n";
    static const char *const numbers[] = {"n", "o.p"};
    lapse_import_options options = defaults();
    options.numbers = numbers;
    options.number_count = 2;
    options.timezone = "Europe/Berlin";
    for (int64_t n = 1;; n++) {
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = import_bytes(text, strlen(text), &options, 64, &dataset, NULL, &error);
        lp_memory_fail_at(0);
        lapse_dataset_close(dataset);
        if (status == LAPSE_OK) {
            printf("%d allocations\n", (int)n);
            assert_true(n > 60);
            break;
        }
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_memory_equal(error.message, "out of memory", 13);
    }
}

/* ------------------------------------------------------------------------------------------ other files ------ */

#define PYTHON "read it in Python (pandas or pyarrow) and import it with lapse.Dataset.from_arrow, or save it as CSV"
#define PARQUET                                                                                                      \
    "pipe it through DuckDB: duckdb -csv -c \"FROM 'FILE'\" | lapse import - -o DATASET; or in Python: "               \
    "lapse.Dataset.from_arrow(pyarrow.parquet.read_table('FILE'), sequence=..., time=..., event=...).save(DATASET)"
#define PIPE(command) "decompress it into a pipe: " command " FILE | lapse import - -o DATASET"

static void other_files_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *kind, *advice;
    } cases[] = {
        {"PAR1\x15\0\x15", 7, "a Parquet file", PARQUET},
        {"ARROW1\0\0", 8, "an Arrow (Feather) file", PYTHON},
        {"FEA1\0\0\0\0", 8, "a Feather file", PYTHON},
        {"\xFF\xFF\xFF\xFF\x10\0\0\0", 8, "an Arrow stream", PYTHON},
        {"ORC\x08\0", 5, "an ORC file", PYTHON},
        {"Obj\x01\x04", 5, "an Avro file", PYTHON},
        {"\x89HDF\r\n\x1A\n", 8, "an HDF5 file", PYTHON},
        {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8, "an Excel workbook (xls)", PYTHON},
        {"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml", 49,
         "an Excel workbook (xlsx)", PYTHON},
        {"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x0A\0\0\0events.csv", 40, "a zip file",
         PIPE("unzip -p")},
        {"\x80\x04\x95\x10\0", 5, "a Python pickle", PYTHON},
        {"\x93NUMPY\x01\0", 8, "a NumPy file", PYTHON},
        {"\x28\xB5\x2F\xFD\x04", 5, "a file compressed with zstd", PIPE("zstd -dc")},
        {"BZh91AY&SY", 10, "a file compressed with bzip2", PIPE("bzip2 -dc")},
        {"\xFD"
         "7zXZ\0\0",
         7, "a file compressed with xz", PIPE("xz -dc")},
        {"SQLite format 3\0\x10\0", 18, "an SQLite database",
         "export a query into a pipe: sqlite3 -header -csv FILE 'SELECT ...' | lapse import - -o DATASET"},
        {"\x89LAPSE\r\n\x02\0\0\0", 12, "a dataset of Lapse", "use it as it is: it needs no import"},
    };
    lapse_import_options options = defaults();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[400];
        snprintf(message, sizeof message, "this is %s, not CSV or JSON Lines: %s", cases[i].kind, cases[i].advice);
        refuse_with(cases[i].bytes, cases[i].size, &options, LAPSE_ERROR_INPUT, 0, 0, message);
    }
    /* Text that begins like one of them. */
    options.sequence = "1";
    expect_with("ORC,time,event\na,1,x\n", 21, &options, "a: 1 x;");
    expect_with("PAR1,time,event\na,1,x\n", 22, &options, "a: 1 x;");
    expect_with("[user],time,event\na,1,x\n", 24, &options, "a: 1 x;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_rows),      cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(nested_keys_are_paths), cmocka_unit_test(fields_may_be_missing),
        cmocka_unit_test(malformed_lines),       cmocka_unit_test(deep_values),
        cmocka_unit_test(other_faults),          cmocka_unit_test(json_and_csv_agree),
        cmocka_unit_test(gzip_is_read),          cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(other_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
