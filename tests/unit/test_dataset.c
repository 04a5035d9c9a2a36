/* test_dataset.c: saves and opens dataset files; truncated, edited, forged and old files are rejected. */
#include "data/dataset/dataset.h"
#include "data/import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[] = "/tmp/lapse_dataset_XXXXXX";
static char path[100], other[100];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/d.lapse", folder);
    snprintf(other, sizeof other, "%s/other.lapse", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static lapse_dataset *make(bool split, int threads)
{
    static const char text[] = "user,time,event,part\nanna,5.5,buy,train\nbert,2,view,valid\nanna,1,view,train\na long "
                               "name of a user,7,view,test\nbert,2,a long name of an event,valid\n";
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.split = split ? "part" : NULL;
    options.threads = threads;
    lp_source source;
    lp_import_tuning tuning = {30, 10};
    lapse_dataset *dataset = NULL;
    assert_int_equal(lp_source_open_memory(&source, "some/folder/events.csv", text, sizeof text - 1, NULL), LAPSE_OK);
    assert_int_equal(lp_import(&source, &options, &tuning, &dataset, NULL, NULL), LAPSE_OK);
    lp_source_close(&source);
    return dataset;
}

static bool names_equal(const lp_names *a, const lp_names *b)
{
    return a->count == b->count && memcmp(a->offset, b->offset, ((size_t)a->count + 1) * sizeof *a->offset) == 0 &&
           memcmp(a->bytes, b->bytes, a->offset[a->count]) == 0;
}

static bool equal(const lapse_dataset *a, const lapse_dataset *b)
{
    size_t events = (size_t)a->event_count, sequences = (size_t)a->sequence_count;
    bool same = a->event_count == b->event_count && a->sequence_count == b->sequence_count && !a->split == !b->split &&
                a->property_count == b->property_count &&
                memcmp(a->start, b->start, (sequences + 1) * sizeof *a->start) == 0 &&
                memcmp(a->time, b->time, events * sizeof *a->time) == 0 &&
                memcmp(a->type, b->type, events * sizeof *a->type) == 0 &&
                (!a->split || memcmp(a->split, b->split, events) == 0) && names_equal(&a->types, &b->types) &&
                names_equal(&a->sequences, &b->sequences);
    for (int i = 0; same && i < a->property_count; i++)
        same = strcmp(a->property_name[i], b->property_name[i]) == 0 &&
               strcmp(a->property_value[i], b->property_value[i]) == 0;
    return same;
}

static lp_buffer slurp(const char *name)
{
    lp_buffer bytes = {0};
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    lp_buffer_reserve(&bytes, 1 << 16);
    memset(bytes.data, 0, bytes.capacity);
    bytes.size = fread(bytes.data, 1, bytes.capacity, file);
    fclose(file);
    return bytes;
}

/* Creates a new file instead of truncating the old one, which some file systems sync at once. */
static void spill(const char *name, const void *data, size_t size)
{
    unlink(name);
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* ---------------------------------------------------------------------------------------------- round trip --- */

static void what_is_saved_is_opened(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        lapse_dataset *dataset = make(split, 1), *opened = NULL, *again = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_dataset_save(dataset, path, &error), LAPSE_OK);
        assert_int_equal(lapse_dataset_open(path, &opened, &error), LAPSE_OK);
        assert_true(equal(dataset, opened));
        /* Saving a mapped dataset gives the same file. */
        assert_int_equal(lapse_dataset_save(opened, other, &error), LAPSE_OK);
        lp_buffer first = slurp(path), second = slurp(other);
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.data, second.data, first.size);
        assert_int_equal(lapse_dataset_open(other, &again, &error), LAPSE_OK);
        assert_true(equal(dataset, again));
        lapse_dataset_close(dataset);
        lapse_dataset_close(opened);
        lapse_dataset_close(again);
        lp_buffer_clear(&first);
        lp_buffer_clear(&second);
    }
    lapse_dataset_close(NULL);
}

static void threads_do_not_show_in_the_file(void **state)
{
    (void)state;
    lapse_dataset *one = make(true, 1), *four = make(true, 4);
    assert_int_equal(lapse_dataset_save(one, path, NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_save(four, other, NULL), LAPSE_OK);
    lp_buffer first = slurp(path), second = slurp(other);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    lp_buffer_clear(&first);
    lp_buffer_clear(&second);
    lapse_dataset_close(one);
    lapse_dataset_close(four);
}

/* Events at squares: the gaps are 1, 3, 5, ... seconds, or thousandths of one, and their median is that of many values. */
static void medians_of_many_values_are_exact(void **state)
{
    (void)state;
    static const struct {
        double unit;
        const char *median;
    } cases[] = {{1, "16.6 minutes"}, {0.001, "999 milliseconds"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lp_buffer text = {0};
        assert_true(lp_buffer_print(&text, "user,time,event\n"));
        for (int i = 0; i < 1000; i++)
            assert_true(lp_buffer_print(&text, "a,%.3f,x\n", (double)i * i * cases[c].unit));
        lapse_import_options options;
        lapse_import_options_default(&options);
        lp_source source;
        lapse_dataset *dataset = NULL;
        assert_int_equal(lp_source_open_memory(&source, "events.csv", text.data, text.size, NULL), LAPSE_OK);
        assert_int_equal(lp_import(&source, &options, NULL, &dataset, NULL, NULL), LAPSE_OK);
        const char *name, *value = NULL;
        int at = 0;
        while (lapse_dataset_property(dataset, at, &name, &value) && strcmp(name, "gap.median") != 0)
            at++;
        assert_string_equal(value, cases[c].median);
        lapse_dataset_close(dataset);
        lp_source_close(&source);
        lp_buffer_clear(&text);
    }
}

static void properties_tell_where_it_came_from(void **state)
{
    (void)state;
    static const char *const expected[][2] = {
        {"sequences", "3"},
        {"events", "5"},
        {"event_types", "3"},
        {"first.time", "1970-01-01T00:00:01Z"},
        {"last.time", "1970-01-01T00:00:07Z"},
        {"span", "6 seconds"},
        {"sequence.span", "median 0 seconds"},
        {"sequence.events", "1 to 2, median 2"},
        {"gap.median", "0 seconds"},
        {"gap.zero", "50 % of events have the timestamp of the event before"},
        {"split.events", "2 train, 2 valid, 1 test"},
        {"source", "events.csv"},
        {"column.sequence", "user"},
        {"column.time", "time"},
        {"column.event", "event"},
        {"column.split", "part"},
        {"time.unit", "relative numbers"},
        {"delimiter", "comma"},
        {"header", "yes"},
        {"order", "sequence by first appearance, then time; ties keep the order of the source"},
        {"session_gap", "none"},
        {"deduplicate", "none"},
        {"min_events", "1"},
        {"min_count", "1"},
        {"min_rounds", "once"},
        {"rows.read", "5"},
        {"rows.moved", "1 not in chronological order, sorted"},
    };
    lapse_dataset *dataset = make(true, 2);
    const char *name, *value;
    int count = 0;
    for (; lapse_dataset_property(dataset, count, &name, &value); count++) {
        assert_true((size_t)count < sizeof expected / sizeof *expected);
        assert_string_equal(name, expected[count][0]);
        assert_string_equal(value, expected[count][1]);
    }
    assert_int_equal(count, sizeof expected / sizeof *expected);
    assert_false(lapse_dataset_property(dataset, -1, &name, &value));
    assert_null(lp_dataset_property_find(dataset, "nothing"));
    lapse_dataset_close(dataset);
}

/* -------------------------------------------------------------------------------------- damage of every event type --- */

static void every_truncation_is_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(true, 1);
    assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
    lp_buffer bytes = slurp(path);
    bytes.data[bytes.size] = 0; /* for the length that is one byte too long */
    for (size_t size = 0; size <= bytes.size + 1; size++) {
        lapse_dataset *opened = NULL;
        lapse_error error = {0};
        spill(other, bytes.data, size);
        lapse_status status = lapse_dataset_open(other, &opened, &error);
        assert_int_equal(status, size == bytes.size ? LAPSE_OK : LAPSE_ERROR_FORMAT);
        char expected[200];
        snprintf(expected, sizeof expected, "the file is truncated: it has %zu of %zu bytes", size, bytes.size);
        if (size == 0)
            strcpy(expected, "this is not a Lapse dataset; create one from a CSV file with lapse import");
        else if (size < 64)
            strcpy(expected, "the file is truncated: it ends within its header");
        else if (size > bytes.size)
            snprintf(expected, sizeof expected, "the file is corrupt: it has %zu bytes instead of %zu", size,
                     bytes.size);
        if (status != LAPSE_OK) {
            assert_string_equal(error.message, expected);
            assert_string_equal(error.file, other);
            assert_null(opened);
        }
        lapse_dataset_close(opened);
    }
    lp_buffer_clear(&bytes);
    lapse_dataset_close(dataset);
}

static void every_changed_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(true, 1);
    assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
    lp_buffer bytes = slurp(path);
    int64_t harmless = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            lapse_dataset *opened = NULL;
            lapse_error error = {0};
            bytes.data[i] ^= (char)(1 << bit);
            spill(other, bytes.data, bytes.size);
            lapse_status status = lapse_dataset_open(other, &opened, &error);
            if (status == LAPSE_OK) {
                assert_true(equal(dataset, opened));
                harmless++;
            } else {
                assert_int_equal(status, LAPSE_ERROR_FORMAT);
                assert_string_equal(error.file, other);
            }
            lapse_dataset_close(opened);
            bytes.data[i] ^= (char)(1 << bit);
        }
    }
    print_message("%lld of %zu bits only fill gaps between columns\n", (long long)harmless, bytes.size * 8);
    assert_true(harmless < (int64_t)bytes.size * 4);
    lp_buffer_clear(&bytes);
    lapse_dataset_close(dataset);
}

/* The layout of docs/dataset.md, defined a second time. */
typedef struct entry {
    char name[24], type[8];
    uint64_t offset, size, checksum, reserved;
} entry;

static entry *find_entry(lp_buffer *bytes, const char *name)
{
    uint32_t count;
    memcpy(&count, bytes->data + 24, sizeof count);
    entry *table = (entry *)(void *)(bytes->data + 64);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    fail_msg("no column %s", name);
    return NULL;
}

/* Corrects all checksums, as a forger would. */
static void seal(lp_buffer *bytes)
{
    uint32_t count;
    memcpy(&count, bytes->data + 24, sizeof count);
    entry *table = (entry *)(void *)(bytes->data + 64);
    for (uint32_t i = 0; i < count; i++)
        if (table[i].offset < bytes->size && table[i].size <= bytes->size - table[i].offset)
            table[i].checksum = XXH3_64bits(bytes->data + table[i].offset, table[i].size);
    uint64_t checksum = XXH3_64bits(table, count * sizeof *table);
    memcpy(bytes->data + 48, &checksum, 8);
    checksum = XXH3_64bits(bytes->data, 56);
    memcpy(bytes->data + 56, &checksum, 8);
}

static void open_as(lp_buffer *bytes, const char *message)
{
    lapse_dataset *opened = NULL;
    lapse_error error = {0};
    spill(other, bytes->data, bytes->size);
    lapse_status status = lapse_dataset_open(other, &opened, &error);
    if (!message) {
        if (status != LAPSE_OK)
            fail_msg("%s", error.message);
    } else {
        assert_string_equal(error.message, message);
        assert_int_equal(status, LAPSE_ERROR_FORMAT);
    }
    lapse_dataset_close(opened);
}

static void edited_parts_are_named(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(true, 1);
    assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
    lapse_dataset_close(dataset);
    lp_buffer bytes = slurp(path);
    static const char *const names[] = {"start",           "time",         "event",           "split",
                                        "event.offset",    "event.text",   "sequence.offset", "sequence.text",
                                        "property.offset", "property.text"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *byte = bytes.data + find_entry(&bytes, names[i])->offset, message[200];
        snprintf(message, sizeof message, "column '%s' is corrupt: its checksum does not match", names[i]);
        *byte ^= 1;
        open_as(&bytes, message);
        *byte ^= 1;
    }
    static const struct {
        size_t place;
        const char *message;
    } cases[] = {{0, "this is not a Lapse dataset; create one from a CSV file with lapse import"},
                 {8, "the dataset has format version 3, but this version of Lapse reads version 2: import the source "
                     "again with lapse import"},
                 {12, "the header is corrupt, or has the byte order of another machine"},
                 {32, "the header is corrupt: its checksum does not match"},
                 {60, "the header is corrupt: its checksum does not match"},
                 {64, "the column table is corrupt: its checksum does not match"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes.data[cases[i].place] ^= 1;
        open_as(&bytes, cases[i].message);
        bytes.data[cases[i].place] ^= 1;
    }
    open_as(&bytes, NULL);
    lp_buffer_clear(&bytes);
}

/* Valid checksums, invalid contents. */
static void forged_contents_are_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(true, 1);
    assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
    lapse_dataset_close(dataset);
    lp_buffer good = slurp(path);
    static const double not_a_number = NAN, late = 1e9;
    static const uint64_t far = 1000, zero = 0, one = 1, huge = UINT64_MAX - 7;
    static const int32_t wrong_type = 3, negative = -1;
    static const struct {
        const char *column;
        size_t place; /* offset in the column; from 1000 on in its table entry */
        const void *value;
        size_t size;
        const char *message;
    } cases[] = {
        {"start", 0, &one, 8, "column 'start' does not cover the events"},
        {"start", 24, &far, 8, "column 'start' does not cover the events"},
        {"start", 8, &far, 8, "column 'start' does not increase at sequence 1"},
        {"start", 8, &zero, 8, "column 'start' does not increase at sequence 1"},
        {"time", 0, &late, 8, "column 'time' is not sorted in sequence 1"},
        {"time", 8, &not_a_number, 8, "column 'time' is not sorted in sequence 1"},
        {"time", 32, &not_a_number, 8, "column 'time' is not sorted in sequence 3"},
        {"event", 8, &wrong_type, 4, "column 'event' has an id that no event type has"},
        {"event", 0, &negative, 4, "column 'event' has an id that no event type has"},
        {"split", 2, "\3", 1, "column 'split' has an id that no split has"},
        {"event.offset", 0, &one, 8, "column 'event.offset' does not fit column 'event.text'"},
        {"event.offset", 24, &far, 8, "column 'event.offset' does not fit column 'event.text'"},
        {"event.offset", 8, &far, 8, "name 1 of column 'event.text' is invalid"},
        {"event.offset", 8, &zero, 8, "name 1 of column 'event.text' is invalid"},
        {"sequence.text", 4, "x", 1, "name 1 of column 'sequence.text' is invalid"},
        {"event.text", 0, "\0", 1, "name 1 of column 'event.text' is invalid"},
        {"property.text", 9, "x", 1, "name 1 of column 'property.text' is invalid"},
        {"time", 1000 + 24, "i64", 4, "column 'time' has type 'i64', but should have 'f64'"},
        {"time", 1000 + 40, &one, 8, "column 'time' has 1 bytes, but should have 40"},
        {"time", 1000 + 0, "tame", 5, "column 'time' is missing"},
        {"event.text", 1000 + 0, "event type.test", 10, "column 'event.text' is missing"},
        {"time", 1000 + 32, &one, 8, "column 'time' lies outside the file"},
        {"time", 1000 + 32, &huge, 8, "column 'time' lies outside the file"},
        {"time", 1000 + 40, &huge, 8, "column 'time' lies outside the file"},
        {"time", 1000 + 24, "12345678", 8, "column 8 has an invalid name or type"},
        {"property.offset", 1000 + 40, "\x40\0", 2, "column 'property.offset' does not fit column 'property.text'"},
        {"split", 1000 + 0, "later", 6, NULL}, /* unknown columns are ignored */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_buffer bytes = {0};
        lp_buffer_add(&bytes, good.data, good.size);
        entry *column = find_entry(&bytes, cases[i].column);
        char *place = cases[i].place < 1000 ? bytes.data + column->offset + cases[i].place
                                            : (char *)column + (cases[i].place - 1000);
        memcpy(place, cases[i].value, cases[i].size);
        seal(&bytes);
        open_as(&bytes, cases[i].message);
        lp_buffer_clear(&bytes);
    }
    /* Without the last property value a name is left over; and a table beyond the end of the file. */
    lp_buffer bytes = {0};
    lp_buffer_add(&bytes, good.data, good.size);
    entry *offsets = find_entry(&bytes, "property.offset"), *text = find_entry(&bytes, "property.text");
    offsets->size -= 8;
    memcpy(&text->size, bytes.data + offsets->offset + offsets->size - 8, 8);
    seal(&bytes);
    open_as(&bytes, "column 'property.text' has a name without a value");
    offsets = find_entry(&bytes, "sequence.offset"), text = find_entry(&bytes, "sequence.text");
    offsets->size -= 8;
    memcpy(&text->size, bytes.data + offsets->offset + offsets->size - 8, 8);
    seal(&bytes);
    open_as(&bytes, "column 'sequence.offset' does not have a name for every sequence");
    lp_buffer_clear(&bytes);
    lp_buffer_add(&bytes, good.data, good.size);
    uint32_t many = 1000;
    memcpy(bytes.data + 24, &many, sizeof many);
    uint64_t checksum = XXH3_64bits(bytes.data, 56);
    memcpy(bytes.data + 56, &checksum, 8);
    open_as(&bytes, "the column table does not fit the file");
    lp_buffer_clear(&bytes);
    uint64_t counts[2] = {4, 2};
    memcpy(good.data + 32, counts, sizeof counts);
    seal(&good);
    open_as(&good, "the header has invalid counts: 4 sequences and 2 events");
    lp_buffer_clear(&good);
}

/* A dataset in memory with two equal names, saved with valid checksums. */
static void equal_names_are_refused(void **state)
{
    (void)state;
    static const uint64_t offset[] = {0, 2, 4, 6};
    static const lp_names names = {.count = 3, .offset = offset, .bytes = "u\0v\0u"};
    static const struct {
        size_t member;
        const char *message;
    } cases[] = {
        {offsetof(lapse_dataset, types), "names 1 and 3 of column 'event.text' are both 'u'"},
        {offsetof(lapse_dataset, sequences), "names 1 and 3 of column 'sequence.text' are both 'u'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_dataset *dataset = make(true, 1), *opened = NULL;
        lapse_error error = {0};
        *(lp_names *)((char *)dataset + cases[i].member) = names;
        assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
        assert_int_equal(lapse_dataset_open(path, &opened, &error), LAPSE_ERROR_FORMAT);
        assert_string_equal(error.message, cases[i].message);
        assert_null(opened);
        lapse_dataset_close(dataset);
    }
}

static void other_files_are_refused(void **state)
{
    (void)state;
    lapse_dataset *opened = NULL;
    lapse_error error = {0};
    spill(other, "user,time,event\n", 16);
    assert_int_equal(lapse_dataset_open(other, &opened, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "this is not a Lapse dataset; create one from a CSV file with lapse import");
    assert_int_equal(lapse_dataset_open("tests/hostile/truncated.lapse", &opened, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "the file is truncated: it has 1500 of 2244 bytes");
    assert_int_equal(lapse_dataset_open("tests/hostile/edited.lapse", &opened, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "column 'time' is corrupt: its checksum does not match");
    assert_string_equal(error.file, "tests/hostile/edited.lapse");
    assert_int_equal(lapse_dataset_open("tests/hostile/old_version.lapse", &opened, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "the dataset has format version 1, but this version of Lapse reads version 2: "
                                       "import the source again with lapse import");
    assert_int_equal(lapse_dataset_open("/nonexistent/d.lapse", &opened, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot open: No such file or directory");
    assert_int_equal(lapse_dataset_open(folder, &opened, &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "this is not a regular file");
    assert_null(opened);
}

/* ------------------------------------------------------------------------------------ memory and full disks --- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(true, 1);
    int64_t saves = 0, opens = 0;
    for (lapse_status status = LAPSE_ERROR_MEMORY; status != LAPSE_OK;) {
        lp_memory_fail_at(++saves);
        status = lapse_dataset_save(dataset, path, NULL);
        lp_memory_fail_at(0);
        assert_true(status == LAPSE_OK || status == LAPSE_ERROR_MEMORY);
    }
    for (lapse_status status = LAPSE_ERROR_MEMORY; status != LAPSE_OK;) {
        lapse_dataset *opened = NULL;
        lp_memory_fail_at(++opens);
        status = lapse_dataset_open(path, &opened, NULL);
        lp_memory_fail_at(0);
        assert_true(status == LAPSE_OK || (status == LAPSE_ERROR_MEMORY && !opened));
        lapse_dataset_close(opened);
    }
    assert_true(saves > 3 && opens > 1);
    lapse_dataset_close(dataset);
}

static int files_in_folder(void)
{
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    int count = 0;
    for (struct dirent *file; (file = readdir(listing));)
        count += file->d_name[0] != '.';
    closedir(listing);
    return count;
}

/* Writing fails at every size: the old file remains, and no temporary file is left. */
static void a_failing_write_changes_nothing(void **state)
{
    (void)state;
    lapse_dataset *dataset = make(true, 1);
    assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
    lp_buffer before = slurp(path);
    int files = files_in_folder();
    struct rlimit kept;
    getrlimit(RLIMIT_FSIZE, &kept);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t limit = 0; limit < before.size; limit += 97) {
        struct rlimit small = {limit, kept.rlim_max};
        lapse_error error = {0};
        setrlimit(RLIMIT_FSIZE, &small);
        lapse_status status = lapse_dataset_save(dataset, path, &error);
        setrlimit(RLIMIT_FSIZE, &kept);
        assert_int_equal(status, LAPSE_ERROR_FILE);
        assert_string_equal(error.message, "cannot write: File too large");
        assert_string_equal(error.file, path);
        assert_int_equal(files_in_folder(), files);
    }
    signal(SIGXFSZ, SIG_DFL);
    lp_buffer after = slurp(path);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    lapse_error error = {0};
    assert_int_equal(lapse_dataset_save(dataset, "/nonexistent/d.lapse", &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message, "cannot write: No such file or directory");
    lp_buffer_clear(&before);
    lp_buffer_clear(&after);
    lapse_dataset_close(dataset);
}

/* The same for a file written in several pieces. */
static void a_full_disk_changes_nothing(void **state)
{
    (void)state;
    lp_buffer text = {0};
    lp_buffer_print(&text, "user,time,event\n");
    for (int i = 0; i < 200000; i++)
        lp_buffer_print(&text, "u%d,%d,x\n", i % 100, i);
    lapse_import_options options;
    lapse_import_options_default(&options);
    lp_source source;
    lapse_dataset *dataset = NULL, *small = make(true, 1), *opened = NULL;
    assert_int_equal(lp_source_open_memory(&source, "t.csv", text.data, text.size, NULL), LAPSE_OK);
    assert_int_equal(lp_import(&source, &options, NULL, &dataset, NULL, NULL), LAPSE_OK);
    lp_source_close(&source);
    lp_buffer_clear(&text);
    assert_int_equal(lapse_dataset_save(small, path, NULL), LAPSE_OK);
    int files = files_in_folder();
    struct rlimit kept;
    getrlimit(RLIMIT_FSIZE, &kept);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 1000; limit < 2400000; limit += 400000) {
        struct rlimit full = {limit, kept.rlim_max};
        lapse_error error = {0};
        setrlimit(RLIMIT_FSIZE, &full);
        lapse_status status = lapse_dataset_save(dataset, path, &error);
        setrlimit(RLIMIT_FSIZE, &kept);
        assert_int_equal(status, LAPSE_ERROR_FILE);
        assert_string_equal(error.message, "cannot write: File too large");
        assert_int_equal(files_in_folder(), files);
    }
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(lapse_dataset_open(path, &opened, NULL), LAPSE_OK);
    assert_true(equal(small, opened));
    lapse_dataset_close(opened);
    assert_int_equal(lapse_dataset_save(dataset, path, NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_open(path, &opened, NULL), LAPSE_OK);
    assert_true(equal(dataset, opened));
    lapse_dataset_close(opened);
    lapse_dataset_close(dataset);
    lapse_dataset_close(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_opened),          cmocka_unit_test(threads_do_not_show_in_the_file),
        cmocka_unit_test(medians_of_many_values_are_exact), cmocka_unit_test(properties_tell_where_it_came_from),
        cmocka_unit_test(every_truncation_is_refused),      cmocka_unit_test(every_changed_byte_is_refused_or_harmless),
        cmocka_unit_test(edited_parts_are_named),           cmocka_unit_test(forged_contents_are_refused),
        cmocka_unit_test(equal_names_are_refused),          cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(every_allocation_may_fail),        cmocka_unit_test(a_failing_write_changes_nothing),
        cmocka_unit_test(a_full_disk_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
