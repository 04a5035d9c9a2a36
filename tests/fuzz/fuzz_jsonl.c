/* fuzz_jsonl.c: fuzzes the import of JSON Lines. The first two bytes choose options; the rest is the text, plain or gzip.
 * Two chunk sizes for the same text, one of them with several threads, must give the same result; and so must a second
 * import of the dataset's events, written as JSON Lines.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/fuzz_jsonl.c LIBRARY -o fuzz_jsonl
 */
#include "base/memory.h"
#include "data/dataset/dataset.h"
#include "data/import/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static lapse_status import(const void *data, size_t size, const lapse_import_options *options, int64_t chunk_size,
                           lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    lp_source source;
    lp_import_tuning tuning = {chunk_size, 64};
    lapse_status status = lp_source_open_memory(&source, "fuzz", data, size, error);
    if (status == LAPSE_OK)
        status = lp_import(&source, options, &tuning, dataset, report, error);
    lp_source_close(&source);
    return status;
}

static bool same_names(const lp_names *a, const lp_names *b)
{
    return a->count == b->count && a->offset[a->count] == b->offset[b->count] &&
           memcmp(a->bytes, b->bytes, a->offset[a->count]) == 0;
}

static void compare(const lapse_dataset *a, const lapse_dataset *b)
{
    size_t events = (size_t)a->event_count;
    bool same = a->event_count == b->event_count && a->sequence_count == b->sequence_count &&
                memcmp(a->time, b->time, events * sizeof *a->time) == 0 &&
                memcmp(a->type, b->type, events * sizeof *a->type) == 0 &&
                memcmp(a->start, b->start, ((size_t)a->sequence_count + 1) * sizeof *a->start) == 0 &&
                same_names(&a->types, &b->types) && same_names(&a->sequences, &b->sequences) &&
                a->field_count == b->field_count;
    for (int f = 0; same && f < a->field_count; f++)
        for (size_t i = 0; same && i < events; i++)
            same = a->fields[f].type == LAPSE_FIELD_NUMBER
                       ? a->fields[f].number[i] == b->fields[f].number[i] ||
                             (isnan(a->fields[f].number[i]) && isnan(b->fields[f].number[i]))
                       : a->fields[f].category[i] == b->fields[f].category[i];
    if (!same)
        abort();
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
    if (import(text.data, text.size, &options, 1 << 20, &again, NULL, &error) != LAPSE_OK ||
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
    int64_t chunk_size = 1 + data[1];
    data += 2;
    size -= 2;
    lapse_dataset *whole = NULL, *cut = NULL;
    lapse_import_report whole_report, cut_report;
    lapse_error whole_error = {0}, cut_error = {0};
    options.threads = 1;
    lapse_status whole_status = import(data, size, &options, 1 << 20, &whole, &whole_report, &whole_error);
    options.threads = chunk_size % 4 ? 1 : 2; /* threads take most of the time of a run */
    lapse_status cut_status = import(data, size, &options, chunk_size, &cut, &cut_report, &cut_error);
    bool plain = size < 2 || data[0] != 0x1F || data[1] != 0x8B; /* corrupt gzip may end a chunk early */
    if (plain && (whole_status != cut_status || whole_error.line != cut_error.line ||
                  whole_error.column != cut_error.column || strcmp(whole_error.message, cut_error.message) != 0))
        abort();
    if (whole && cut) {
        compare(whole, cut);
        round_trip(whole);
    }
    lapse_dataset_close(whole);
    lapse_dataset_close(cut);
    return 0;
}
