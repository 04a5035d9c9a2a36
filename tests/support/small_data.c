/* small_data.c: creates small datasets and temporary files for tests. */
#include "support/small_data.h"
#include "lapse_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------- datasets ----- */

static void *copy(const void *from, size_t size)
{
    void *to = lp_alloc(size, 1);
    assert_non_null(to);
    return size ? memcpy(to, from, size) : to;
}

/* Names "a" .. "z", then "k26", ...; or prefix and number. */
static lp_names make_names(int count, const char *prefix, void **offsets, void **bytes)
{
    lp_buffer text = {0};
    uint64_t *offset = lp_alloc((size_t)count + 1, sizeof *offset);
    assert_non_null(offset);
    for (int i = 0; i < count; i++) {
        offset[i] = text.size;
        if (!prefix && i < 26)
            assert_true(lp_buffer_print(&text, "%c", 'a' + i));
        else
            assert_true(lp_buffer_print(&text, "%s%d", prefix ? prefix : "k", i));
        assert_true(lp_buffer_add(&text, "", 1));
    }
    offset[count] = text.size;
    *offsets = offset;
    *bytes = copy(text.data, text.size);
    lp_buffer_clear(&text);
    return (lp_names){.count = count, .offset = offset, .bytes = *bytes};
}

lapse_dataset *small_dataset(int sequences, const int *lengths, const double *time, const int32_t *type, int types,
                             const uint8_t *split)
{
    lapse_dataset *dataset = lp_alloc(1, sizeof *dataset);
    uint64_t *start = lp_alloc((size_t)sequences + 1, sizeof *start);
    assert_true(dataset && start);
    for (int s = 0; s < sequences; s++)
        start[s + 1] = start[s] + (uint64_t)lengths[s];
    size_t events = start[sequences];
    dataset->sequence_count = sequences;
    dataset->event_count = (int64_t)events;
    dataset->start = dataset->buffers[0] = start;
    dataset->time = dataset->buffers[1] = copy(time, events * sizeof *time);
    dataset->type = dataset->buffers[2] = copy(type, events * sizeof *type);
    if (split)
        dataset->split = dataset->buffers[3] = copy(split, events);
    dataset->types = make_names(types, NULL, &dataset->buffers[4], &dataset->buffers[5]);
    dataset->sequences = make_names(sequences, "s", &dataset->buffers[6], &dataset->buffers[7]);
    return dataset;
}

enum { SPELLED = 4096 };

lapse_dataset *small_dataset_spelled(const char *events, const char *split)
{
    int lengths[SPELLED] = {0}, sequences = 0, types = 0;
    double time[SPELLED];
    int32_t type[SPELLED];
    uint8_t parts[SPELLED];
    size_t count = 0;
    assert_true(strlen(events) < SPELLED);
    for (size_t i = 0; events[i]; i++) {
        if (events[i] == ' ') {
            sequences++;
            continue;
        }
        time[count] = lengths[sequences]++;
        type[count] = events[i] - 'a';
        types = type[count] >= types ? type[count] + 1 : types;
        parts[count++] = !split || split[i] == 't' ? LP_SPLIT_TRAIN : split[i] == 'v' ? LP_SPLIT_VALID : LP_SPLIT_TEST;
    }
    return small_dataset(sequences + 1, lengths, time, type, types, split ? parts : NULL);
}

lapse_dataset *small_dataset_random(lp_random *random, int sequences, int longest, int types, double gap, bool by_event)
{
    size_t most = (size_t)sequences * (size_t)longest, count = 0;
    int *lengths = calloc((size_t)sequences, sizeof *lengths);
    double *time = calloc(most, sizeof *time);
    int32_t *type = calloc(most, sizeof *type);
    uint8_t *split = calloc(most, 1);
    assert_true(lengths && time && type && split);
    for (int s = 0; s < sequences; s++) {
        lengths[s] = 1 + (int)lp_random_below(random, (uint32_t)longest);
        double now = 1.6e9 + 1e6 * lp_random_uniform(random);
        for (int i = 0; i < lengths[s]; i++, count++) {
            double wait = lp_random_below(random, 10) == 0 ? 0 : gap * lp_random_exponential(random);
            now += wait;
            time[count] = now;
            uint32_t drawn = lp_random_below(random, (uint32_t)types);
            bool by_rule = i > 0 && lp_random_below(random, 4) > 0;
            type[count] = by_rule ? (type[count - 1] + (wait > gap ? 1 : 2)) % types : (int32_t)drawn;
            split[count] = (uint8_t)lp_random_below(random, LP_SPLIT_COUNT);
        }
    }
    lapse_dataset *dataset = small_dataset(sequences, lengths, time, type, types, by_event ? split : NULL);
    free(lengths);
    free(time);
    free(type);
    free(split);
    return dataset;
}

lapse_dataset *small_dataset_shop(int64_t sequences, double days, uint64_t seed)
{
    lapse_simulate_options simulate;
    lapse_simulate_options_default(&simulate);
    simulate.sequences = sequences;
    simulate.days = days;
    simulate.seed = seed;
    lapse_simulation *simulation = NULL;
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    const char *path = small_path("shop.csv");
    if (lapse_simulate(&simulate, &simulation, &error) != LAPSE_OK ||
        lapse_simulation_save(simulation, path, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_simulation_free(simulation);
    lapse_import_options import;
    lapse_import_options_default(&import);
    import.input = path;
    import.event = "action,item";
    if (lapse_dataset_read(&import, &dataset, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return dataset;
}

/* ------------------------------------------------------------------------------------------------- files ----- */

enum { PATHS = 8, PATH_SIZE = 300 };
static char folder[PATH_SIZE / 2], paths[PATHS][PATH_SIZE];

const char *small_path(const char *name)
{
    if (!folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/lapse_test_XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(folder))
            fail_msg("cannot make a folder in %s", base ? base : "/tmp");
    }
    char wanted[PATH_SIZE];
    snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
    for (int i = 0; i < PATHS; i++) {
        if (!paths[i][0])
            snprintf(paths[i], PATH_SIZE, "%s", wanted);
        if (strcmp(paths[i], wanted) == 0)
            return paths[i];
    }
    fail_msg("more than %d paths", PATHS);
    return NULL;
}

void small_paths_remove(void)
{
    for (int i = 0; i < PATHS && paths[i][0]; i++) {
        unlink(paths[i]);
        paths[i][0] = 0;
    }
    if (folder[0])
        rmdir(folder);
    folder[0] = 0;
}

lp_buffer small_file_read(const char *path)
{
    lp_buffer bytes = {0};
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    assert_true(lp_buffer_reserve(&bytes, size + 1));
    bytes.size = fread(bytes.data, 1, size, file);
    assert_int_equal(bytes.size, size);
    fclose(file);
    return bytes;
}

/* Creates a new file instead of truncating the old one, which some file systems sync at once. */
void small_file_write(const char *path, const void *data, size_t size)
{
    unlink(path);
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void small_files_same(const char *a, const char *b)
{
    lp_buffer first = small_file_read(a), second = small_file_read(b);
    bool same = first.size == second.size && memcmp(first.data, second.data, first.size) == 0;
    lp_buffer_clear(&first);
    lp_buffer_clear(&second);
    if (!same)
        fail_msg("%s and %s differ", a, b);
}

static bool under_tools(void)
{
    const char *under = getenv("LAPSE_TEST_UNDER");
    return under && *under;
}

bool small_under_valgrind(void)
{
    const char *under = getenv("LAPSE_TEST_UNDER");
    return under && strcmp(under, "valgrind") == 0;
}

int small_effort(int plain, int few)
{
    const char *tier = getenv("LAPSE_TEST_TIER");
    return under_tools() || (tier && strcmp(tier, "quick") == 0) ? few : plain;
}

void small_skip_under_tools(void)
{
    if (under_tools())
        skip();
}
