/* describe.c: computes the metadata of an imported dataset. Nothing that depends on the machine, the number of
 * threads or the folder of the source is recorded, so that equal imports give equal files. */
#include "data/import/describe.h"

#include "data/dataset/gap_quantile.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of gaps for the median; beyond it, every n-th sequence is sampled. */
enum { GAP_SAMPLE = 2000000 };

typedef struct description {
    lapse_dataset *dataset;
    bool failed;
} description;

__attribute__((format(printf, 3, 4))) static void add(description *d, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = size < 0 || d->dataset->property_count == LP_PROPERTY_LIMIT
                     ? NULL
                     : lp_arena_alloc(&d->dataset->arena, (size_t)size + 1);
    if (!text) {
        d->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    d->dataset->property_name[d->dataset->property_count] = name;
    d->dataset->property_value[d->dataset->property_count++] = text;
}

static void add_source(description *d, const lp_reader_shared *shared)
{
    const lapse_import_options *options = shared->options;
    const lp_columns *columns = &shared->columns;
    const char *slash = strrchr(shared->file, '/');
    add(d, "source", "%s", slash ? slash + 1 : shared->file);
    add(d, "column.sequence", "%s", columns->name[columns->sequence]);
    add(d, "column.time", "%s%s%s", columns->name[columns->time], columns->clock >= 0 ? "," : "",
        columns->clock >= 0 ? columns->name[columns->clock] : "");
    const char *events = lp_columns_event_text(columns, &d->dataset->arena);
    d->failed = d->failed || !events;
    if (events)
        add(d, "column.event", "%s", events);
    if (shared->name_types[0])
        add(d, "type.sequence", "%s", shared->name_types[0]);
    if (shared->name_types[1])
        add(d, "type.event", "%s", shared->name_types[1]);
    if (columns->split >= 0)
        add(d, "column.split", "%s", columns->name[columns->split]);
    add(d, "time.unit", "%s", shared->time_type ? shared->time_type : lp_time_unit_text(shared->time.unit));
    if (options->timezone)
        add(d, "time.zone", "%s", options->timezone);
    lp_text_encoding encoding = shared->chunks.text.encoding;
    if (encoding != LP_UTF_8)
        add(d, "encoding", "%s", lp_text_encoding_names[encoding]);
    char delimiter = shared->chunks.delimiter;
    if (!delimiter)
        add(d, "format", "%s", shared->format);
    else if (delimiter == '\t' || delimiter == ' ' || delimiter == ',')
        add(d, "delimiter", "%s", delimiter == '\t' ? "tab" : delimiter == ' ' ? "space" : "comma");
    else
        add(d, "delimiter", "%c", delimiter);
    if (delimiter)
        add(d, "header", "%s", options->header ? "yes" : "no");
    add(d, "order", "sequence by first appearance, then time; ties %s",
        options->basket ? "are baskets, shuffled" : "keep the order of the source");
}

static void add_basket(description *d, const lapse_import_options *options)
{
    if (options->basket)
        add(d, "basket", "yes");
}

static void add_preparation(description *d, const lapse_import_options *options)
{
    char gap[64];
    add(d, "session_gap", "%s",
        options->session_gap > 0 ? lapse_duration_format(options->session_gap, gap, sizeof gap) : "none");
    add(d, "deduplicate", "%s", options->deduplicate ? options->deduplicate : *lp_deduplicate_names);
    if (options->min_sequence_events > 1)
        add(d, "min_sequence_events", "%" PRId64, options->min_sequence_events);
    if (options->min_users > 1)
        add(d, "min_users", "%" PRId64, options->min_users);
    add(d, "min_events", "%" PRId64, options->min_events);
    add(d, "min_count", "%" PRId64, options->min_count);
    add(d, "min_rounds", "%s", options->min_rounds ? options->min_rounds : *lp_min_rounds_names);
}

static void add_rows(description *d, const lapse_import_report *report)
{
    add(d, "rows.read", "%" PRId64, report->rows);
    if (report->bad_rows)
        add(d, "rows.bad", "%" PRId64 " malformed, dropped", report->bad_rows);
    if (report->inactive_rows)
        add(d, "rows.inactive", "%" PRId64 " dropped with %" PRId64 " sequences of few events", report->inactive_rows,
            report->inactive_sequences);
    if (report->unpopular_rows)
        add(d, "rows.unpopular", "%" PRId64 " dropped with %" PRId64 " event types of few sequences",
            report->unpopular_rows, report->unpopular_event_types);
    if (report->cut_sequences)
        add(d, "sessions", "%" PRId64 " in total; %" PRId64 " sequences of the source have several", report->sessions,
            report->cut_sequences);
    if (report->duplicate_rows)
        add(d, "rows.duplicate", "%" PRId64 " duplicates, dropped", report->duplicate_rows);
    if (report->rare_rows)
        add(d, "rows.rare", "%" PRId64 " dropped with %" PRId64 " rare event types", report->rare_rows,
            report->rare_event_types);
    if (report->short_sequences)
        add(d, "rows.short", "%" PRId64 " dropped with %" PRId64 " short sequences", report->short_rows,
            report->short_sequences);
    if (report->rounds > 1)
        add(d, "rounds", "%" PRId64 " iterations until both minimums hold", report->rounds);
    if (report->moved_rows)
        add(d, "rows.moved", "%" PRId64 " not in chronological order, sorted", report->moved_rows);
}

static double *numbers_new(description *d, int64_t count)
{
    double *numbers = lp_alloc_raw((size_t)count, sizeof *numbers);
    d->failed = d->failed || !numbers;
    return numbers;
}

/* The lower median of values that are not negative; reorders them. A radix selection, because a comparison of random
 * numbers is mispredicted every other time: keeps the values that agree with the median in 11 more bits, until few are
 * left. Positive doubles are ordered as their bits are. */
static double median(double *values, int64_t count)
{
    enum { BITS = 11, FEW = 64 };
    int64_t rank = (count - 1) / 2;
    for (int shift = 64 - BITS; count > FEW && shift >= 0; shift -= BITS) {
        int64_t counts[1 << BITS] = {0}, kept = 0;
        uint64_t bits, digit = 0;
        for (int64_t i = 0; i < count; i++) {
            memcpy(&bits, &values[i], sizeof bits);
            counts[bits >> shift & ((1 << BITS) - 1)]++;
        }
        for (; rank >= counts[digit]; digit++)
            rank -= counts[digit];
        for (int64_t i = 0; i < count; i++) {
            memcpy(&bits, &values[i], sizeof bits);
            values[kept] = values[i];
            kept += (bits >> shift & ((1 << BITS) - 1)) == digit;
        }
        count = kept;
    }
    qsort(values, (size_t)count, sizeof *values, lp_compare_numbers);
    return values[rank];
}

static void add_lengths(description *d)
{
    const lapse_dataset *dataset = d->dataset;
    double *lengths = numbers_new(d, dataset->sequence_count);
    if (!lengths)
        return;
    double shortest = 1e300, longest = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        lengths[s] = (double)(dataset->start[s + 1] - dataset->start[s]);
        shortest = lengths[s] < shortest ? lengths[s] : shortest;
        longest = lengths[s] > longest ? lengths[s] : longest;
    }
    add(d, "sequence.events", "%.0f to %.0f, median %.0f", shortest, longest, median(lengths, dataset->sequence_count));
    lp_free(lengths);
}

static void add_gaps(description *d)
{
    const lapse_dataset *dataset = d->dataset;
    int64_t gaps = dataset->event_count - dataset->sequence_count, stride = gaps / GAP_SAMPLE + 1, count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s += stride)
        count += (int64_t)(dataset->start[s + 1] - dataset->start[s]) - 1;
    if (count == 0)
        return;
    double *values = numbers_new(d, count);
    if (!values)
        return;
    count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s += stride)
        for (uint64_t i = dataset->start[s] + 1; i < dataset->start[s + 1]; i++)
            values[count++] = dataset->time[i] - dataset->time[i - 1];
    int64_t ties = 0;
    for (int64_t i = 0; i < count; i++)
        ties += values[i] == 0;
    char text[64];
    add(d, "gap.median", "%s", lapse_duration_format(median(values, count), text, sizeof text));
    add(d, "gap.zero", "%.3g %% of events have the timestamp of the event before",
        100.0 * (double)ties / (double)count);
    lp_free(values);
}

static void add_times(description *d)
{
    const lapse_dataset *dataset = d->dataset;
    double first = dataset->time[0], last = first, *spans = numbers_new(d, dataset->sequence_count);
    if (!spans)
        return;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        double begin = dataset->time[dataset->start[s]], end = dataset->time[dataset->start[s + 1] - 1];
        first = begin < first ? begin : first;
        last = end > last ? end : last;
        spans[s] = end - begin;
    }
    char text[64];
    add(d, "first.time", "%s", lapse_time_format(first, text, sizeof text));
    add(d, "last.time", "%s", lapse_time_format(last, text, sizeof text));
    add(d, "span", "%s", lapse_duration_format(last - first, text, sizeof text));
    add(d, "sequence.span", "median %s",
        lapse_duration_format(median(spans, dataset->sequence_count), text, sizeof text));
    lp_free(spans);
}

static void add_splits(description *d)
{
    int64_t counts[LP_SPLIT_COUNT] = {0};
    for (int64_t i = 0; i < d->dataset->event_count; i++)
        counts[d->dataset->split[i]]++;
    add(d, "split.events", "%" PRId64 " train, %" PRId64 " valid, %" PRId64 " test", counts[LP_SPLIT_TRAIN],
        counts[LP_SPLIT_VALID], counts[LP_SPLIT_TEST]);
}

/* "price (number): mean 12.5, standard deviation 3, 4 missing" */
static void add_number(description *d, const char *name, const lp_field *field)
{
    int64_t count = 0;
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < d->dataset->event_count; i++) {
        if (isnan(field->number[i]))
            continue;
        double distance = field->number[i] - mean;
        mean += distance / (double)++count;
        squares += distance * (field->number[i] - mean);
    }
    int64_t missing = d->dataset->event_count - count;
    add(d, name, "%s (number): mean %.6g, standard deviation %.6g, %" PRId64 " missing", field->name, mean,
        count ? sqrt(squares / (double)count) : 0, missing);
}

static void add_fields(description *d)
{
    for (int f = 0; f < d->dataset->field_count; f++) {
        const lp_field *field = &d->dataset->fields[f];
        char *name = lp_arena_alloc(&d->dataset->arena, 24);
        if (!name) {
            d->failed = true;
            return;
        }
        snprintf(name, 24, "field.%d", f + 1);
        if (field->type == LAPSE_FIELD_NUMBER)
            add_number(d, name, field);
        else
            add(d, name, "%s (%s): %" PRId64 " distinct values", field->name, lp_field_type_name(field->type),
                field->categories.count);
    }
}

lapse_status lp_describe(lapse_dataset *dataset, const lp_reader_shared *shared, const lapse_import_report *report,
                         lapse_error *error)
{
    description d = {dataset, false};
    dataset->property_name = lp_arena_alloc(&dataset->arena, LP_PROPERTY_LIMIT * sizeof *dataset->property_name);
    dataset->property_value = lp_arena_alloc(&dataset->arena, LP_PROPERTY_LIMIT * sizeof *dataset->property_value);
    if (!dataset->property_name || !dataset->property_value)
        return lp_fail_memory(error, "the properties", LP_PROPERTY_LIMIT * sizeof *dataset->property_name);
    add(&d, "sequences", "%" PRId64, dataset->sequence_count);
    add(&d, "events", "%" PRId64, dataset->event_count);
    add(&d, "event_types", "%" PRId64, dataset->types.count);
    add_fields(&d);
    add_times(&d);
    add_lengths(&d);
    add_gaps(&d);
    if (dataset->split)
        add_splits(&d);
    add_source(&d, shared);
    add_basket(&d, shared->options);
    add_preparation(&d, shared->options);
    add_rows(&d, report);
    return d.failed ? lp_fail_memory(error, "the properties", 4096) : LAPSE_OK;
}
