/* import.c: an import from start to end: check the options, look at the beginning of the text, let the workers read,
 * put their rows together, describe the result. The first blocks are read by one worker until columns and unit of time
 * are known; from then on workers share nothing but the queue of blocks. */
#include "data/import/import.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/dataset/describe.h"
#include "data/import/reader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_THREADS = 64 };

void lapse_import_options_default(lapse_import_options *options)
{
    *options = (lapse_import_options){
        .time_unit = "auto",
        .header = true,
        .min_events = 1,
        .min_count = 1,
        .min_rounds = "once",
        .deduplicate = "none",
    };
}

static lapse_status read_unit(const char *text, lp_time_unit *unit, lapse_error *error)
{
    static const char *const names[] = {"auto", "s", "ms", "iso"};
    for (int i = 0; i < 4; i++) {
        if (!text || strcmp(text, names[i]) == 0) {
            *unit = (lp_time_unit)i;
            return LAPSE_OK;
        }
    }
    return lp_fail(error, LAPSE_ERROR_USAGE, "'%.40s' is not a unit of time: give auto, s, ms or iso", text);
}

/* 0: to be told from the text. */
static lapse_status read_delimiter(const char *text, char *delimiter, lapse_error *error)
{
    *delimiter = 0;
    if (!text)
        return LAPSE_OK;
    if (strcmp(text, "\\t") == 0 || strcmp(text, "tab") == 0)
        text = "\t";
    if (strlen(text) != 1 || strchr("\"\r\n", *text))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "'%.40s' is not a delimiter: give one character that is neither a quote nor a line end", text);
    *delimiter = *text;
    return LAPSE_OK;
}

const char *const *lapse_deduplicate_names(void)
{
    return lp_deduplicate_names;
}

const char *const *lapse_min_rounds_names(void)
{
    return lp_min_rounds_names;
}

/* NULL is the first name, as in options that no default was put into. */
static int place_of(const char *text, const char *const *names)
{
    return text ? lp_name_index(text, names) : 0;
}

static lapse_status check_options(const lapse_import_options *options, lapse_error *error)
{
    if (place_of(options->min_rounds, lp_min_rounds_names) < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the minimums cannot be held '%.40s': give once or iterated, for until nothing changes",
                       options->min_rounds);
    if (place_of(options->deduplicate, lp_deduplicate_names) < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "'%.40s' is no way to deduplicate: give none, exact or consecutive",
                       options->deduplicate);
    if (!(options->session_gap >= 0 && isfinite(options->session_gap)))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the gap between sessions cannot be %g seconds: give a length of time, or 0 for none",
                       options->session_gap);
    if (options->min_events < 0 || options->min_count < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the least number of events (%" PRId64 ") and the least count (%" PRId64
                       ") must not be negative",
                       options->min_events, options->min_count);
    if (options->threads < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "%d threads cannot be used: give 1 or more, or 0 for all cores",
                       options->threads);
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------- the workers ---- */

struct crew {
    lp_reading reading;
    lp_reader *readers; /* owned */
    lp_rows *rows;      /* owned; the readers', side by side once reading is over */
    int count;
};

static void read_all(void *context, int task, int worker)
{
    (void)worker;
    struct crew *crew = context;
    while (lp_reader_step(&crew->readers[task]))
        ;
}

static lapse_status start_crew(struct crew *crew, int threads, const lp_import_tuning *tuning, lapse_error *error)
{
    crew->readers = lp_alloc((size_t)threads, sizeof *crew->readers);
    crew->rows = lp_alloc((size_t)threads, sizeof *crew->rows);
    if (!crew->readers || !crew->rows)
        return lp_fail_memory(error, "the workers", (size_t)threads * sizeof *crew->readers);
    for (; crew->count < threads; crew->count++)
        LP_TRY(lp_reader_init(&crew->readers[crew->count], &crew->reading, tuning->segment_rows, error));
    return LAPSE_OK;
}

static void end_crew(struct crew *crew)
{
    for (int i = 0; i < crew->count; i++) {
        lp_reader_clear(&crew->readers[i]);
        lp_rows_clear(&crew->rows[i]);
    }
    lp_free(crew->readers);
    lp_free(crew->rows);
    lp_blocks_close(&crew->reading.blocks);
    lp_arena_clear(&crew->reading.arena);
}

/* Line ends in the blocks before one. */
static int64_t lines_before(const struct crew *crew, int64_t block)
{
    int64_t lines = 0;
    for (int i = 0; i < crew->count; i++) {
        const lp_rows *rows = &crew->readers[i].rows;
        for (int64_t b = 0; b < rows->block_count; b++)
            lines += rows->blocks[b].index < block ? rows->blocks[b].lines : 0;
    }
    return lines;
}

/* The failure that comes first in the text, if any, with its line counted from the start. */
static lapse_status first_failure(const struct crew *crew, lapse_error *error)
{
    const lp_reader *first = NULL;
    for (int i = 0; i < crew->count; i++)
        if (crew->readers[i].status != LAPSE_OK && (!first || crew->readers[i].error_block < first->error_block))
            first = &crew->readers[i];
    const lapse_error *found = first ? &first->error : &crew->reading.blocks.error;
    lapse_status status = first ? first->status : crew->reading.blocks.status;
    if (status == LAPSE_OK || !error)
        return status;
    *error = *found;
    if (first && error->line > 0)
        error->line += lines_before(crew, first->error_block);
    return status;
}

static void sum_up(const struct crew *crew, lapse_import_report *report)
{
    const lp_reader *first = NULL;
    *report = (lapse_import_report){.bytes = crew->reading.blocks.bytes};
    for (int i = 0; i < crew->count; i++) {
        const lp_reader *reader = &crew->readers[i];
        report->rows += reader->seen;
        report->bad_rows += reader->bad;
        if (reader->first_bad_block >= 0 && (!first || reader->first_bad_block < first->first_bad_block))
            first = reader;
    }
    if (first) {
        report->first_bad_row = first->first_bad;
        report->first_bad_row.line += lines_before(crew, first->first_bad_block);
    }
}

static lapse_status check_rows(const struct crew *crew, const lapse_import_report *report, lapse_error *error)
{
    const lapse_error *bad = &report->first_bad_row;
    const char *file = crew->reading.file;
    if (!crew->reading.have_columns)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0,
                          "the file has only empty lines: a header and rows were expected");
    if (report->rows == 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0, "the file has a header but no rows");
    if (report->rows == report->bad_rows)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, bad->line, bad->column,
                          "every row is bad (%" PRId64 "); the first: %s", report->bad_rows, bad->message);
    return LAPSE_OK;
}

/* ----------------------------------------------------------------------------------------------- together ---- */

static lapse_status read_rows(struct crew *crew, int threads, const lp_import_tuning *tuning,
                              lapse_import_report *report, lapse_error *error)
{
    lp_reading *reading = &crew->reading;
    LP_TRY(lp_blocks_check(&reading->blocks, reading->file, error));
    if (!reading->blocks.delimiter)
        reading->blocks.delimiter = lp_csv_guess(reading->blocks.carry + reading->blocks.at, reading->blocks.left);
    LP_TRY(start_crew(crew, threads, tuning, error));
    bool more = true;
    while (more && (!reading->have_columns || reading->unit == LP_TIME_AUTO))
        more = lp_reader_step(&crew->readers[0]);
    if (more)
        lp_threads_run(crew->count, crew->count, read_all, crew);
    LP_TRY(first_failure(crew, error));
    sum_up(crew, report);
    return check_rows(crew, report, error);
}

static lapse_status name_fields(const lp_columns *columns, lapse_dataset *dataset, lapse_error *error)
{
    size_t size = (size_t)columns->field_count * sizeof *dataset->fields;
    if (columns->field_count == 0)
        return LAPSE_OK;
    dataset->fields = lp_arena_alloc(&dataset->arena, size);
    for (int f = 0; dataset->fields && f < columns->field_count; f++) {
        dataset->fields[f].type = columns->field_type[f];
        dataset->fields[f].name = lp_arena_text(&dataset->arena, columns->name[columns->field[f]]);
        if (!dataset->fields[f].name)
            return lp_fail_memory(error, "the fields", size);
    }
    dataset->field_count = dataset->fields ? columns->field_count : 0;
    return dataset->fields ? LAPSE_OK : lp_fail_memory(error, "the fields", size);
}

static lapse_status make_dataset(struct crew *crew, int threads, lapse_import_report *report, lapse_dataset *dataset,
                                 lapse_error *error)
{
    const lapse_import_options *options = crew->reading.options;
    for (int i = 0; i < crew->count; i++) {
        crew->rows[i] = crew->readers[i].rows;
        crew->readers[i].rows = (lp_rows){0};
        lp_reader_clear(&crew->readers[i]);
        crew->readers[i] = (lp_reader){0};
    }
    LP_TRY(name_fields(&crew->reading.columns, dataset, error));
    lp_preparation preparation = {
        .session_gap = options->session_gap,
        .deduplicate = (lp_deduplicate)place_of(options->deduplicate, lp_deduplicate_names),
        .min_count = options->min_count,
        .min_events = options->min_events,
        .iterated = place_of(options->min_rounds, lp_min_rounds_names) > 0,
    };
    LP_TRY(lp_rows_arrange(crew->rows, crew->count, threads, crew->reading.columns.split >= 0, &preparation,
                           &report->moved_rows, dataset, error));
    report->cut_sequences = preparation.cut_sequences;
    report->sessions = preparation.sessions;
    report->duplicate_rows = preparation.duplicate_rows;
    report->rare_rows = preparation.rare_rows;
    report->rare_event_types = preparation.rare_event_types;
    report->short_rows = preparation.short_rows;
    report->short_sequences = preparation.short_sequences;
    report->rounds = preparation.rounds;
    if (dataset->event_count == 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, crew->reading.file, 0, 0,
                          "no event is left: %" PRId64 " were of event types that occur fewer than %" PRId64
                          " times, and %" PRId64 " in sequences with fewer than %" PRId64 " events",
                          report->rare_rows, options->min_count, report->short_rows, options->min_events);
    return lp_describe(dataset, &crew->reading, report, error);
}

lapse_status lp_import(lp_source *source, const lapse_import_options *options, const lp_import_tuning *tuning,
                       lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    static const lp_import_tuning usual = {LP_BLOCK_SIZE, LP_SEGMENT_ROWS};
    tuning = tuning ? tuning : &usual;
    struct crew crew = {.reading = {.options = options, .file = source->name}};
    lapse_import_report made_report;
    char delimiter;
    LP_TRY(check_options(options, error));
    LP_TRY(read_unit(options->time_unit, &crew.reading.unit, error));
    LP_TRY(read_delimiter(options->delimiter, &delimiter, error));
    int threads = options->threads ? options->threads : lp_threads_available();
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    lapse_status status = made ? lp_blocks_open(&crew.reading.blocks, source, (size_t)tuning->block_size, error)
                               : lp_fail_memory(error, "a dataset", sizeof *made);
    crew.reading.blocks.delimiter = delimiter;
    if (status == LAPSE_OK)
        status = read_rows(&crew, threads, tuning, &made_report, error);
    if (status == LAPSE_OK)
        status = make_dataset(&crew, threads, &made_report, made, error);
    end_crew(&crew);
    if (status != LAPSE_OK) {
        lapse_dataset_close(made);
        return status;
    }
    *dataset = made;
    if (report)
        *report = made_report;
    return LAPSE_OK;
}

lapse_status lapse_dataset_read(const lapse_import_options *options, lapse_dataset **dataset,
                                lapse_import_report *report, lapse_error *error)
{
    if (!options || !options->input)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no input was given: name a CSV or TSV file, or - for standard input");
    lp_source source;
    LP_TRY(lp_source_open(&source, options->input, error));
    lapse_status status = lp_import(&source, options, NULL, dataset, report, error);
    lp_source_close(&source);
    return status;
}
