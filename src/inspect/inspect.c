/* inspect.c: the table of figures, and lapse_inspect: everything that a report shows, then the page and the files. */
#include "inspect/encoding_figures.h"
#include "inspect/figure_draw.h"
#include "inspect/inspection.h"

#include "base/file.h"
#include "data/dataset/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CURVE_COLUMNS = 240, CELL_COLUMNS = 120 };

/* Limits of options. */
enum { STUDIES_MOST = 20 };
static const int64_t CASES_MOST = 100000000;

lapse_status lp_encoding_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    const lapse_spectrum *s = &about->spectrum;
    (void)error;
    if (!about->has_spectrum) {
        lp_figures_missing(figures, "encoding", "Time encoding", about->no_spectrum);
        return LAPSE_OK;
    }
    lp_spectrum_figure(figures, s, &about->lags);
    lp_kernel_figure(figures, s, &about->lags, CURVE_COLUMNS);
    lp_phi_figure(figures, s, &about->lags, CELL_COLUMNS);
    return LAPSE_OK;
}

/* In the order of the page. */
static const struct {
    const char *section; /* as in report.c */
    lp_figures_make make;
} table[] = {
    {"scores", lp_score_figures},   {"lead", lp_influence_figure},     {"cases", lp_case_figures},
    {"scores", lp_error_figures},   {"scores", lp_reliability_figure}, {"scores", lp_time_reliability_figure},
    {"scores", lp_training_figure}, {"curious", lp_encoding_figures},  {"curious", lp_attention_figures},
};
enum { TABLE = sizeof table / sizeof *table };

void lapse_inspect_options_default(lapse_inspect_options *options)
{
    *options = (lapse_inspect_options){.cases = 2000, .case_studies = 3, .block = -1, .bootstrap = 1000};
}

/* ------------------------------------------------------------------------------------------------- checks ----- */

static lapse_status check(const lapse_model *model, const lapse_dataset *dataset, const lapse_inspect_options *options,
                          lapse_error *error)
{
    int blocks = lapse_model_attention_blocks(model);
    if (options->cases < 1 || options->cases > CASES_MOST)
        return lp_fail(error, LAPSE_ERROR_USAGE, "cases is %lld; it must be 1 to %lld", (long long)options->cases,
                       (long long)CASES_MOST);
    if (options->case_studies < 0 || options->case_studies > STUDIES_MOST || options->sequence_count < 0 ||
        options->sequence_count > STUDIES_MOST)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there can be 0 to %d case studies", STUDIES_MOST);
    if (options->block < -1 || (options->block >= blocks && blocks > 0))
        return lp_fail(error, LAPSE_ERROR_USAGE, "block is %d; the model has %d, numbered from 0, and -1 is the last",
                       options->block, blocks);
    if (!dataset && (options->action || options->split || options->sequence_count > 0))
        return lp_fail(error, LAPSE_ERROR_USAGE, "an action, a split or a sequence needs data to choose from");
    return LAPSE_OK;
}

static lapse_status find_action(lp_inspection *about, lapse_error *error)
{
    const lapse_dataset *d = about->dataset;
    const char *name = about->options->action;
    about->action = -1;
    if (!name)
        return LAPSE_OK;
    if (d->field_count == 0 || d->fields[0].type != LAPSE_FIELD_ACTION)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the data has no column of actions to choose '%s' from; import it with --action COLUMN", name);
    about->action = (int32_t)lp_names_find(&d->fields[0].categories, name);
    if (about->action < 0)
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the data has no action '%s'", name);
    return LAPSE_OK;
}

/* Whether an error says that the model and the data do not suit each other, which the report explains, rather than that
 * something failed. */
static bool explains(lapse_status status)
{
    return status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_INPUT || status == LAPSE_ERROR_UNKNOWN;
}

/* Keeps the sentence of an error, with a capital letter and a full stop. */
static void keep_reason(const lapse_error *error, char reason[512])
{
    snprintf(reason, 511, "%.508s.", error->message);
    if (reason[0] >= 'a' && reason[0] <= 'z')
        reason[0] = (char)(reason[0] - 32);
}

/* -------------------------------------------------------------------------------------------------- make ------ */

static lapse_status read_spectrum(lp_inspection *about, lapse_error *error)
{
    lapse_error own = {0};
    lapse_status status = lapse_model_spectrum(about->model, &about->spectrum, &own);
    lapse_lags_default(&about->lags);
    if (status == LAPSE_OK) {
        about->has_spectrum = true;
        return lapse_lags_resolve(&about->spectrum, &about->lags, error);
    }
    if (!explains(status)) {
        if (error)
            *error = own;
        return status;
    }
    keep_reason(&own, about->no_spectrum);
    return LAPSE_OK;
}

static lapse_status read_survey(lp_inspection *about, lapse_error *error)
{
    const lapse_inspect_options *options = about->options;
    int blocks = lapse_model_attention_blocks(about->model);
    lapse_error own = {0};
    about->survey.block = blocks == 0 ? -1 : options->block < 0 ? blocks - 1 : options->block;
    if (!about->dataset) {
        snprintf(about->no_survey, sizeof about->no_survey, "This figure needs data: lapse inspect MODEL DATA.");
        return LAPSE_OK;
    }
    LP_TRY(find_action(about, error));
    lapse_status status = lp_survey_make(&about->survey, about->model, about->dataset, options->split, options->cases,
                                         about->survey.block, &own);
    if (status == LAPSE_OK) {
        about->has_survey = true;
        return LAPSE_OK;
    }
    if (!explains(status) || options->split) {
        if (error)
            *error = own;
        return status;
    }
    keep_reason(&own, about->no_survey);
    return LAPSE_OK;
}

static lapse_status make_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    LP_TRY(read_spectrum(about, error));
    LP_TRY(read_survey(about, error));
    if (about->options->log)
        LP_TRY(lp_run_log_read(about->options->log, &about->seconds, &about->epochs, error));
    for (int i = 0; i < TABLE; i++) {
        figures->section = table[i].section;
        LP_TRY(table[i].make(about, figures, error));
    }
    return figures->failed ? lp_fail_memory(error, "the figures of a report", sizeof *figures) : LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------- output ----- */

static lapse_status write_figure(const lp_figure *f, const char *folder, lapse_error *error)
{
    lp_svg svg = {0};
    lp_buffer path = {0};
    lp_svg_open(&svg, LP_FIGURE_WIDTH, lp_figure_height(f, LP_FIGURE_WIDTH, true), f->title);
    lp_figure_draw(f, &svg, 0, 0, LP_FIGURE_WIDTH, true);
    lp_svg_close(&svg);
    lapse_status status = LAPSE_OK;
    if (svg.failed || !lp_buffer_print(&path, "%s/%s.svg", folder, f->id))
        status = lp_fail_memory(error, "a figure", svg.text.size);
    if (status == LAPSE_OK)
        status = lapse_file_write(path.data, svg.text.data, svg.text.size, error);
    lp_svg_clear(&svg);
    lp_buffer_clear(&path);
    return status;
}

static lapse_status write_figures(const lp_figures *figures, const char *folder, lapse_error *error)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return lp_fail_errno(error, "create", folder);
    for (const lp_figure *f = figures->first; f; f = f->next)
        if (!f->missing)
            LP_TRY(write_figure(f, folder, error));
    return LAPSE_OK;
}

static lapse_status write_report(const lp_inspection *about, lp_figures *figures, const char *path, lapse_error *error)
{
    lp_buffer page = {0};
    lapse_status status = lp_report_add(about, figures, &page) ? lapse_file_write(path, page.data, page.size, error)
                                                               : lp_fail_memory(error, "a report", page.size);
    lp_buffer_clear(&page);
    return status;
}

lapse_status lapse_inspect(const lapse_model *model, const lapse_dataset *dataset, const lapse_inspect_options *options,
                           const char *path, lapse_inspection *inspection, lapse_error *error)
{
    LP_REQUIRE(error, model, options);
    if (options->sequence_count > 0)
        LP_REQUIRE(error, options->sequences);
    LP_TRY(check(model, dataset, options, error));
    lp_inspection about = {.model = model, .dataset = dataset, .options = options, .action = -1};
    lp_figures figures = {0};
    lapse_inspection made = {0};
    lapse_status status = make_figures(&about, &figures, error);
    if (status == LAPSE_OK && options->figures)
        status = write_figures(&figures, options->figures, error);
    if (status == LAPSE_OK && path)
        status = write_report(&about, &figures, path, error);
    for (const lp_figure *f = figures.first; f; f = f->next) {
        made.figures += !f->missing;
        made.missing += f->missing != NULL;
    }
    if (status == LAPSE_OK && inspection)
        *inspection = made;
    lp_figures_clear(&figures);
    lp_free(about.seconds);
    lp_survey_clear(&about.survey);
    lapse_spectrum_clear(&about.spectrum);
    return status;
}
