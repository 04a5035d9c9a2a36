/* fuzz_jsonl.c: fuzzes the import of JSON Lines. The first two bytes choose options; the rest is the text, plain or gzip.
 * Two chunk sizes for the same text, one of them with several threads, must give the same result; and so must a second
 * import of the dataset's events, written as JSON Lines. */
#include "base/memory.h"
#include "data/dataset/dataset.h"
#include "data/import/chunks.h"
#include "fuzz/support/fuzz_import.h"

#include <string.h>

/* One of so many inputs uses threads, which take most of the time of a run, and one is imported again. */
enum { THREADED = 64, AGAIN = 4 };

static bool same_names(const lp_names *a, const lp_names *b)
{
    return a->count == b->count && a->offset[a->count] == b->offset[b->count] &&
           memcmp(a->bytes, b->bytes, a->offset[a->count]) == 0;
}

static void write_string(lp_buffer *out, const char *text)
{
    lp_buffer_add(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            lp_buffer_print(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            lp_buffer_print(out, "\\u%04x", (unsigned)*text);
        else
            lp_buffer_add(out, text, 1);
    }
    lp_buffer_add(out, "\"", 1);
}

/* The events of a dataset, in its order, are imported again: the names survive escaping. */
static void round_trip(const lapse_dataset *dataset)
{
    lp_buffer text = {0};
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            lp_buffer_print(&text, "{\"e\":");
            write_string(&text, lapse_dataset_event_type_name(dataset, dataset->type[i]));
            lp_buffer_print(&text, ",\"t\":%.17g,\"s\":", dataset->time[i]);
            write_string(&text, lapse_dataset_sequence_name(dataset, s));
            lp_buffer_print(&text, "}\n");
        }
    }
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.sequence = "s";
    options.time = "t";
    options.event = "e";
    options.time_unit = "s";
    options.threads = 1;
    lapse_dataset *again = NULL;
    lapse_error error;
    lp_chunks_set_limit(0); /* escaped names are longer than the line they came from */
    if (fuzz_import(text.data, text.size, &options, 1 << 20, &again, NULL, &error) != LAPSE_OK ||
        again->event_count != dataset->event_count || !same_names(&again->sequences, &dataset->sequences) ||
        memcmp(again->time, dataset->time, (size_t)again->event_count * sizeof *again->time) != 0 ||
        again->types.offset[again->types.count] != dataset->types.offset[dataset->types.count])
        abort();
    lapse_dataset_close(again);
    lp_buffer_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    static const char *const units[] = {"auto", "s", "ns", "iso"};
    static const char *const categories[] = {"device", "a.b"}, *const numbers[] = {"price"};
    lapse_import_options options;
    lapse_import_options_default(&options);
    options.skip_bad_rows = data[0] & 1;
    options.event = data[0] & 2 ? "event,item" : NULL;
    options.categories = categories;
    options.category_count = data[0] & 4 ? 2 : 0;
    options.numbers = numbers;
    options.number_count = data[0] >> 3 & 1;
    options.time_unit = units[data[0] >> 4 & 3];
    options.timezone = data[0] & 64 ? "-03:30" : NULL;
    fuzz_import_twice(data + 2, size - 2, &options, 1 + data[1], fuzz_takes(data, size, THREADED) ? 2 : 1,
                      fuzz_takes(data, size, AGAIN) ? round_trip : NULL);
    return 0;
}
