/* import.c: the import: checks the options, parses the text with several workers, groups their rows into a dataset,
 * and describes it. The format, the columns and the time unit come from the beginning of the text, or else one worker
 * reads the first chunks until they are known; from then on workers share only the queue of chunks. */
#include "data/import/import.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/import/describe.h"
#include "data/import/file_kind.h"
#include "data/import/reader.h"
#include "data/import/table_layout.h"
#include "lapse_lab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_THREADS = 64 };

void lapse_import_options_default(lapse_import_options *options)
{
    *options = (lapse_import_options){
        .time_unit = "auto",
        .header = true,
        .min_events = 1,
        .min_count = 1,
        .min_sequence_events = 1,
        .min_users = 1,
        .min_rounds = "once",
        .deduplicate = "none",
    };
}

/* Index of an option's value; NULL is the first, as in zero-initialized options. */
static int option_index(const char *text, const char *const *names)
{
    return text ? lp_name_index(text, names) : 0;
}

static lapse_status read_unit(const char *text, lp_time_unit *unit, lapse_error *error)
{
    int index = option_index(text, lp_time_unit_names);
    if (index < 0)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            LP_OPTION("--time-unit") " is '%.40s'; it must be auto, s, ms, us, ns, iso, mdy, dmy, text, compact, "
                                     "excel or relative",
            text);
    *unit = (lp_time_unit)index;
    return LAPSE_OK;
}

/* 0: detect it from the text. */
static lapse_status read_delimiter(const char *text, char *delimiter, lapse_error *error)
{
    *delimiter = 0;
    if (!text)
        return LAPSE_OK;
    if (strcmp(text, "\\t") == 0 || strcmp(text, "tab") == 0)
        text = "\t";
    if (strlen(text) != 1 || strchr("\"\r\n", *text))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "delimiter is '%.40s'; it must be one character that is neither a quote nor a line end", text);
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

lapse_status lp_import_check(const lapse_import_options *options, lp_time_unit *unit, lapse_error *error)
{
    if (option_index(options->min_rounds, lp_min_rounds_names) < 0)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            LP_OPTION("--min-rounds") " is '%.40s'; it must be once or iterated (repeat until both minimums hold)",
            options->min_rounds);
    if (option_index(options->deduplicate, lp_deduplicate_names) < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "deduplicate is '%.40s'; it must be none, exact or consecutive",
                       options->deduplicate);
    if (!(options->session_gap >= 0 && isfinite(options->session_gap)))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       LP_OPTION("--session-gap") " is %g seconds; it must be a duration, or 0 to disable it",
                       options->session_gap);
    if (options->min_events < 0 || options->min_count < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       LP_OPTION("--min-events") " is %" PRId64
                                                 " and " LP_OPTION("--min-count") " is %" PRId64
                                                                                  "; they must not be negative",
                       options->min_events, options->min_count);
    if (options->min_sequence_events < 0 || options->min_users < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       LP_OPTION("--min-sequence-events") " is %" PRId64 " and " LP_OPTION(
                           "--min-users") " is %" PRId64 "; they must not be negative",
                       options->min_sequence_events, options->min_users);
    return read_unit(options->time_unit, unit, error);
}

lapse_status lp_import_threads(const lapse_import_options *options, int *threads, lapse_error *error)
{
    LP_TRY(lp_threads_resolve(options->threads, threads, error));
    *threads = *threads < MOST_THREADS ? *threads : MOST_THREADS;
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------- workers -------- */

struct workers {
    lp_reader_shared shared;
    lp_reader *readers;   /* owned */
    lp_import_rows *rows; /* owned; the rows of all readers, once reading is done */
    int count;
};

static void read_all(void *context, int task, int worker)
{
    (void)worker;
    struct workers *workers = context;
    while (lp_reader_step(&workers->readers[task]))
        ;
}

static lapse_status start_workers(struct workers *workers, int threads, const lp_import_tuning *tuning,
                                  lapse_error *error)
{
    workers->readers = lp_alloc((size_t)threads, sizeof *workers->readers);
    workers->rows = lp_alloc((size_t)threads, sizeof *workers->rows);
    if (!workers->readers || !workers->rows)
        return lp_fail_memory(error, "the workers", (size_t)threads * sizeof *workers->readers);
    for (; workers->count < threads; workers->count++)
        LP_TRY(lp_reader_init(&workers->readers[workers->count], &workers->shared, tuning->segment_rows, error));
    return LAPSE_OK;
}

static void clear_workers(struct workers *workers)
{
    for (int i = 0; i < workers->count; i++) {
        lp_reader_clear(&workers->readers[i]);
        lp_rows_clear(&workers->rows[i]);
    }
    lp_free(workers->readers);
    lp_free(workers->rows);
    lp_chunks_close(&workers->shared.chunks);
    lp_sample_clear(&workers->shared.sample);
    lp_json_keys_clear(&workers->shared.keys);
    lp_zone_free(workers->shared.time.zone);
    lp_arena_clear(&workers->shared.arena);
}

/* Number of line ends before a chunk. */
static int64_t lines_before(const struct workers *workers, int64_t chunk)
{
    int64_t lines = workers->shared.skipped_lines;
    for (int i = 0; i < workers->count; i++) {
        const lp_import_rows *rows = &workers->readers[i].rows;
        for (int64_t b = 0; b < rows->chunk_count; b++)
            lines += rows->chunks[b].index < chunk ? rows->chunks[b].lines : 0;
    }
    return lines;
}

/* The error that comes first in the text, if any, with its line number in the whole text. */
static lapse_status first_failure(const struct workers *workers, lapse_error *error)
{
    const lp_reader *first = NULL;
    for (int i = 0; i < workers->count; i++)
        if (workers->readers[i].status != LAPSE_OK && (!first || workers->readers[i].error_chunk < first->error_chunk))
            first = &workers->readers[i];
    const lapse_error *found = first ? &first->error : &workers->shared.chunks.error;
    lapse_status status = first ? first->status : workers->shared.chunks.status;
    if (status == LAPSE_OK || !error)
        return status;
    *error = *found;
    if (first && error->line > 0)
        error->line += lines_before(workers, first->error_chunk);
    return status;
}

void lp_import_report_columns(const lp_reader_shared *shared, lapse_import_report *report)
{
    if (!shared->have_columns)
        return;
    memcpy(report->columns, shared->columns.choice, sizeof report->columns);
    report->ignored_count = lp_columns_ignored(&shared->columns, report->ignored, sizeof report->ignored);
    report->format = shared->format;
    report->time_unit = shared->time_type ? shared->time_type : lp_time_unit_text(shared->time.unit);
    report->encoding = shared->chunks.open ? lp_text_encoding_names[shared->chunks.text.encoding] : NULL;
    report->skipped_lines = shared->skipped_lines;
    snprintf(report->timezone, sizeof report->timezone, "%s",
             shared->options->timezone ? shared->options->timezone : "UTC");
}

void lp_import_report_question(const lp_reader_shared *shared, lapse_import_report *report)
{
    const lp_columns *columns = &shared->columns;
    *report = (lapse_import_report){.question = columns->question, .format = shared->format};
    if (!columns->question)
        return;
    memcpy(report->columns, columns->choice, sizeof report->columns);
    memcpy(report->paste, columns->paste, sizeof report->paste);
    memcpy(report->paste_other, columns->paste_other, sizeof report->paste_other);
    report->ignored_count = lp_columns_ignored(columns, report->ignored, sizeof report->ignored);
    report->time_unit = lp_time_unit_text(columns->unit);
}

void lp_import_report_local(const int64_t local[LP_LOCALS], lapse_import_report *report)
{
    report->ambiguous_rows += local[LP_LOCAL_AMBIGUOUS];
    report->missing_rows += local[LP_LOCAL_MISSING];
    report->local_rows += local[LP_LOCAL_UNIQUE] + local[LP_LOCAL_AMBIGUOUS] + local[LP_LOCAL_MISSING];
}

static void fill_report(const struct workers *workers, lapse_import_report *report)
{
    const lp_reader *first = NULL;
    *report = (lapse_import_report){.bytes = workers->shared.chunks.bytes};
    lp_import_report_columns(&workers->shared, report);
    for (int i = 0; i < workers->count; i++) {
        const lp_reader *reader = &workers->readers[i];
        report->rows += reader->seen;
        report->bad_rows += reader->bad;
        lp_import_report_local(reader->local, report);
        if (reader->first_bad_chunk >= 0 && (!first || reader->first_bad_chunk < first->first_bad_chunk))
            first = reader;
    }
    if (first) {
        report->first_bad_row = first->first_bad;
        report->first_bad_row.line += lines_before(workers, first->first_bad_chunk);
    }
}

/* Rows without a time and a name are a summary if they are the last ones and few; otherwise the first of them is an error. */
static lapse_status check_summaries(const struct workers *workers, lapse_import_report *report, lapse_error *error)
{
    enum { MOST = 3 };
    const lp_reader *first = NULL;
    int64_t count = 0;
    for (int i = 0; i < workers->count; i++) {
        const lp_reader *reader = &workers->readers[i];
        count += reader->summaries;
        if (reader->summaries > 0 && (!first || reader->summary_chunk < first->summary_chunk))
            first = reader;
    }
    bool last = count <= MOST && !workers->shared.options->skip_bad_rows;
    for (int i = 0; first && i < workers->count; i++) {
        const lp_reader *reader = &workers->readers[i];
        last = last && (reader->good_chunk < first->summary_chunk ||
                        (reader->good_chunk == first->summary_chunk && reader->good_line < first->summary.line));
    }
    report->summary_rows = count;
    if (!first || last || workers->shared.options->skip_bad_rows)
        return LAPSE_OK;
    if (error) {
        *error = first->summary;
        error->line += lines_before(workers, first->summary_chunk);
    }
    return LAPSE_ERROR_INPUT;
}

static lapse_status check_rows(const struct workers *workers, const lapse_import_report *report, lapse_error *error)
{
    const lapse_error *bad = &report->first_bad_row;
    const char *file = workers->shared.file;
    if (!workers->shared.have_columns)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0,
                          "the file has only empty lines: it must have a header and rows");
    if (report->rows == 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0, "the file has a header but no rows");
    if (report->rows == report->summary_rows)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, 0, 0, "the file has no rows with a time and a name");
    if (report->rows == report->bad_rows)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, file, bad->line, bad->column,
                          "all %" PRId64 " rows are malformed; the first: %s", report->bad_rows, bad->message);
    return LAPSE_OK;
}

/* Keys that the options name must occur in some object. */
static lapse_status check_keys(const struct workers *workers, lapse_error *error)
{
    const lp_reader_shared *shared = &workers->shared;
    for (int64_t c = shared->json ? (int64_t)shared->keys.names.count : INT64_MAX; c < shared->columns.count; c++) {
        bool present = c == shared->columns.split; /* rows without it are malformed */
        for (int i = 0; i < workers->count; i++)
            present = present || (workers->readers[i].present && workers->readers[i].present[c]);
        if (!present)
            return lp_fail_at(error, LAPSE_ERROR_INPUT, shared->file, 0, 0, "no object has a value for the key '%.60s'",
                              shared->columns.name[c]);
    }
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------- beginning ------ */

/* The error of the first malformed line of the sample, if there is one. */
static lapse_status find_malformed(lp_reader_shared *shared, const char *text, size_t size, lapse_error *error)
{
    lp_jsonl parser = {0};
    char *copy = lp_alloc(size + LP_CSV_PADDING, 1);
    lapse_status status = LAPSE_OK;
    if (!copy || !lp_jsonl_init(&parser, &shared->keys, NULL)) {
        status = lp_fail_memory(error, "the first rows", size);
    } else {
        memcpy(copy, text, size);
        parser.growing = &shared->keys; /* which has all keys */
        parser.lenient = true;
        lp_jsonl_start(&parser, copy, size);
        lp_jsonl_result result;
        for (int64_t line = 1; status == LAPSE_OK && (result = lp_jsonl_next(&parser)) != LP_JSONL_END; line++)
            if (result == LP_JSONL_MALFORMED)
                status = parser.message ? lp_fail_at(error, LAPSE_ERROR_INPUT, shared->file, line, parser.position,
                                                     "%s", parser.message)
                                        : lp_fail_memory(error, "the first rows", size);
    }
    lp_jsonl_clear(&parser);
    lp_free(copy);
    return status;
}

/* Chooses the columns of JSON Lines from the keys of the first lines. */
static lapse_status begin_json(lp_reader_shared *shared, const char *text, size_t size, lapse_error *error)
{
    if (!lp_json_keys_init(&shared->keys) || !lp_jsonl_discover(&shared->keys, &shared->sample, text, size))
        return lp_fail_memory(error, "the first rows", size);
    const lp_names names = lp_intern_names(&shared->keys.names);
    lp_csv_record first;
    lapse_status status =
        lp_csv_record_init(&first, names.count) ? LAPSE_OK : lp_fail_memory(error, "the columns", (size_t)names.count);
    for (int64_t i = 0; status == LAPSE_OK && i < names.count; i++) {
        first.begin[i] = lp_names_get(&names, i);
        first.end[i] = first.begin[i] + strlen(first.begin[i]);
        first.count++;
    }
    const lp_columns_input input = {.options = shared->options,
                                    .first = &first,
                                    .sample = &shared->sample,
                                    .json = true,
                                    .file = shared->file,
                                    .line = 1};
    if (status == LAPSE_OK)
        status = lp_columns_choose(&shared->columns, &shared->arena, &input, error);
    lp_csv_record_clear(&first);
    /* A column may be missing because the line that has it is malformed. */
    if (status == LAPSE_ERROR_INPUT && (!shared->options->skip_bad_rows || names.count == 0)) {
        bool question = shared->columns.question;
        shared->columns.question = false;
        LP_TRY(find_malformed(shared, text, size, error));
        shared->columns.question = question;
    }
    LP_TRY(status);
    shared->have_columns = true;
    lp_reader_set_time(shared);
    return lp_json_keys_select(&shared->keys, &shared->columns) ? LAPSE_OK : lp_fail_memory(error, "the columns", size);
}

/* Detects the format from the beginning of the text, and samples its rows. */
static lapse_status begin_text(lp_reader_shared *shared, lapse_error *error)
{
    lp_chunks *chunks = &shared->chunks;
    LP_TRY(lp_chunks_check(chunks, shared->file, error));
    char *text = chunks->carry + chunks->at;
    if (!chunks->delimiter && lp_is_json_lines(text, chunks->left)) {
        if (!shared->options->header)
            return lp_fail_at(error, LAPSE_ERROR_USAGE, shared->file, 0, 0,
                              "this is JSON Lines, whose columns have names: " LP_FLAG("--no-header") " is for CSV");
        shared->json = chunks->lines = true;
        shared->format = chunks->text.objects ? "JSON" : "JSON Lines";
        size_t whole = chunks->left;
        if (chunks->ended && text[whole - 1] != '\n' && whole < LP_CHUNK_LIMIT)
            text[whole++] = '\n'; /* carry has space for it; it is not part of the text */
        while (whole > 0 && text[whole - 1] != '\n')
            whole--;
        if (whole == 0)
            return lp_fail_at(error, LAPSE_ERROR_INPUT, shared->file, 1, 0, "%s",
                              lp_chunk_fault_text(LP_CHUNK_LONG_LINE));
        return begin_json(shared, text, whole, error);
    }
    if (chunks->text.shape.form != LP_LINES_PLAIN)
        chunks->delimiter = '\t';
    lp_table_layout layout;
    if (!lp_table_layout_find(text, chunks->left, chunks->delimiter, &layout))
        return lp_fail_memory(error, "the first rows", chunks->left);
    chunks->delimiter = layout.delimiter;
    chunks->at += layout.skip;
    chunks->left -= layout.skip;
    text += layout.skip;
    shared->skipped_lines = layout.lines - (chunks->text.shape.names != NULL); /* its header is not in the file */
    return lp_sample_csv(&shared->sample, text, chunks->left, chunks->delimiter, shared->options->header)
               ? LAPSE_OK
               : lp_fail_memory(error, "the first rows", chunks->left);
}

/* ----------------------------------------------------------------------------------------------- dataset ----- */

static lapse_status read_rows(struct workers *workers, int threads, const lp_import_tuning *tuning,
                              lapse_import_report *report, lapse_error *error)
{
    lp_reader_shared *shared = &workers->shared;
    LP_TRY(begin_text(shared, error));
    LP_TRY(start_workers(workers, threads, tuning, error));
    bool more = true;
    while (more && (!shared->have_columns || shared->time.unit == LP_TIME_AUTO))
        more = lp_reader_step(&workers->readers[0]);
    if (more)
        lp_threads_run(workers->count, workers->count, read_all, workers);
    LP_TRY(first_failure(workers, error));
    fill_report(workers, report);
    LP_TRY(check_summaries(workers, report, error));
    LP_TRY(check_rows(workers, report, error));
    return check_keys(workers, error);
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

lapse_status lp_import_finish(const lp_reader_shared *shared, lp_import_rows *rows, int worker_count, int threads,
                              lapse_import_report *report, lapse_dataset *dataset, lapse_error *error)
{
    const lapse_import_options *options = shared->options;
    LP_TRY(name_fields(&shared->columns, dataset, error));
    const lp_preparation preparation = {
        .session_gap = options->session_gap,
        .deduplicate = (lp_deduplicate)option_index(options->deduplicate, lp_deduplicate_names),
        .min_sequence_events = options->min_sequence_events,
        .min_users = options->min_users,
        .min_count = options->min_count,
        .min_events = options->min_events,
        .basket = options->basket,
        .iterated = option_index(options->min_rounds, lp_min_rounds_names) > 0,
        .report = report,
    };
    LP_TRY(lp_rows_group(rows, worker_count, threads, shared->columns.split >= 0, &preparation, dataset, error));
    if (dataset->event_count == 0 && report->inactive_rows + report->unpopular_rows > 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, shared->file, 0, 0,
                          "no event is left: %" PRId64 " are in sequences with fewer than %" PRId64
                          " events before sessions, %" PRId64 " have event types of fewer than %" PRId64
                          " sequences, and %" PRId64
                          " are dropped by " LP_OPTION("--min-count") " and " LP_OPTION("--min-events"),
                          report->inactive_rows, options->min_sequence_events, report->unpopular_rows,
                          options->min_users, report->rare_rows + report->short_rows);
    if (dataset->event_count == 0)
        return lp_fail_at(error, LAPSE_ERROR_INPUT, shared->file, 0, 0,
                          "no event is left: %" PRId64 " have event types that occur fewer than %" PRId64
                          " times, and %" PRId64 " are in sequences with fewer than %" PRId64 " events",
                          report->rare_rows, options->min_count, report->short_rows, options->min_events);
    return lp_describe(dataset, shared, report, error);
}

static lapse_status make_dataset(struct workers *workers, int threads, lapse_import_report *report,
                                 lapse_dataset *dataset, lapse_error *error)
{
    for (int i = 0; i < workers->count; i++) {
        workers->rows[i] = workers->readers[i].rows;
        workers->readers[i].rows = (lp_import_rows){0};
        lp_reader_clear(&workers->readers[i]);
        workers->readers[i] = (lp_reader){0};
    }
    return lp_import_finish(&workers->shared, workers->rows, workers->count, threads, report, dataset, error);
}

lapse_status lp_import(lp_source *source, const lapse_import_options *options, const lp_import_tuning *tuning,
                       lapse_dataset **dataset, lapse_import_report *report, lapse_error *error)
{
    static const lp_import_tuning usual = {LP_CHUNK_SIZE, LP_SEGMENT_ROWS};
    tuning = tuning ? tuning : &usual;
    struct workers workers = {.shared = {.options = options, .file = source->name, .format = "CSV"}};
    lapse_import_report made_report;
    char delimiter;
    LP_TRY(lp_import_check(options, &workers.shared.time.unit, error));
    LP_TRY(read_delimiter(options->delimiter, &delimiter, error));
    int threads;
    LP_TRY(lp_import_threads(options, &threads, error));
    if (options->timezone)
        LP_TRY(lp_zone_open(&workers.shared.time.zone, options->timezone, error));
    lapse_dataset *made = lp_alloc(1, sizeof *made);
    lapse_status status =
        made ? lp_chunks_open(&workers.shared.chunks, source, options->encoding, options->preferred_encoding,
                              !options->delimiter, (size_t)tuning->chunk_size, error)
             : lp_fail_memory(error, "a dataset", sizeof *made);
    workers.shared.chunks.delimiter = delimiter;
    if (status == LAPSE_OK)
        status = read_rows(&workers, threads, tuning, &made_report, error);
    if (status == LAPSE_OK)
        status = make_dataset(&workers, threads, &made_report, made, error);
    if (status != LAPSE_OK && report)
        lp_import_report_question(&workers.shared, report);
    clear_workers(&workers);
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
    LP_REQUIRE(error, options, dataset);
    if (!options->input)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "no input: give a CSV, TSV or JSON Lines file, or - for standard input");
    lp_source source;
    LP_TRY(lp_source_open(&source, options->input, error));
    lapse_status status = lp_import(&source, options, NULL, dataset, report, error);
    lp_source_close(&source);
    return status;
}
