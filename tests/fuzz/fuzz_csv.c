/* fuzz_csv.c: fuzzes the CSV import. The first three bytes choose options; the rest is the text, plain or gzip. Two
 * chunk sizes for the same text, one of them with several threads, must give the same result. */
#include "fuzz/support/fuzz_import.h"
#include "lapse_lab.h"

/* One of so many inputs uses threads, which take most of the time of a run. */
enum { THREADED = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    static const char *const units[] = {"auto", "s", "ms", "iso"};
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.header = data[0] & 1;
    options.skip_bad_rows = data[0] & 2;
    options.split = data[0] & 4 ? "4" : NULL;
    options.event = data[0] & 8 ? "3,1" : NULL;
    options.sequence = data[0] & 8 ? "2" : NULL;
    options.time = data[0] & 8 ? "4" : NULL;
    static const char *const categories[] = {"3", "5"}, *const numbers[] = {"2"};
    options.action = data[0] & 16 ? "4" : NULL;
    options.categories = categories;
    options.category_count = data[0] >> 5 & 1 ? 2 : 0;
    options.numbers = numbers;
    options.number_count = data[0] >> 6 & 1;
    options.time_unit = units[data[1] & 3];
    options.min_events = data[1] >> 2 & 3;
    options.min_count = data[1] >> 4 & 3;
    options.min_users = options.min_sequence_events = data[1] >> 6;
    options.deduplicate = lapse_deduplicate_names()[(data[1] >> 6 & 3) % 3];
    options.min_rounds = lapse_min_rounds_names()[data[0] >> 7];
    options.session_gap = data[0] >> 7 ? 10 : 0;
    int64_t chunk_size = 1 + data[2];
    bool threaded = fuzz_takes(data, size, THREADED);
    fuzz_import_twice(data + 3, size - 3, &options, chunk_size, threaded ? 2 : 1, NULL);
    return 0;
}
