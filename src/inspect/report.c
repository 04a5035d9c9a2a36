/* report.c: the report as one HTML page without references to other files. */
#include "inspect/figure_draw.h"
#include "inspect/inspection.h"
#include "inspect/report_page.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A page that is being written. */
typedef struct page {
    lp_buffer *out;
    bool failed;
} page;

static void raw(page *p, const char *text)
{
    p->failed |= !lp_buffer_add(p->out, text, strlen(text));
}

static void escaped(page *p, const char *text)
{
    p->failed |= !lp_xml_add(p->out, text);
}

bool lp_json_add(lp_buffer *out, const char *text)
{
    const char *end = text + strlen(text);
    bool good = lp_buffer_add(out, "\"", 1);
    while (good && text < end) {
        size_t size = lp_utf8_size(text, end);
        unsigned char c = (unsigned char)*text;
        if (size == 0)
            good = lp_buffer_add(out, "?", 1);
        else if (c < 32 || c == 127 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&')
            good = lp_buffer_print(out, "\\u%04x", c);
        else
            good = lp_buffer_add(out, text, size);
        text += size ? size : 1;
    }
    return good && lp_buffer_add(out, "\"", 1);
}

/* ------------------------------------------------------------------------------------------------- tables ----- */

static void row(page *p, const char *name, const char *value)
{
    raw(p, "<tr><th>");
    escaped(p, name);
    raw(p, "</th><td>");
    escaped(p, value);
    raw(p, "</td></tr>\n");
}

static void settings(page *p, const lapse_model *model)
{
    const char *name, *value;
    raw(p, "<details id=\"settings\"><summary>All settings of the model</summary>\n<table>\n");
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        row(p, name, value);
    raw(p, "</table></details>\n");
}

/* ------------------------------------------------------------------------------------------------- heading ---- */

/* What the figures are about, in a sentence. */
static void add_subject(page *p, const lp_inspection *about, lp_figures *figures)
{
    const lapse_dataset *d = about->dataset;
    const lp_survey *s = &about->survey;
    escaped(p, lp_figures_text(figures, "Model %s. ", about->model->config.row->name));
    if (!d)
        raw(p, "No data was given: the page shows what the model file alone can tell.");
    else if (!about->has_survey)
        escaped(p, about->no_survey);
    else
        escaped(p, lp_figures_text(
                       figures, "Figures use %s%s events of the %s split, in %s sequences%s.",
                       s->case_count == s->case_total
                           ? "all "
                           : lp_figures_text(figures, "%s of the ", lp_figures_whole(figures, s->case_count)),
                       lp_figures_whole(figures, s->case_total), s->split, lp_figures_whole(figures, s->sequence_count),
                       lapse_dataset_fingerprint(d) == about->model->fingerprint
                           ? ""
                           : "; the model was trained on other data"));
}

static void add_heading(page *p, const lp_inspection *about, lp_figures *figures, const char *title)
{
    raw(p, about->is_beaten ? "<h1 class=\"beaten\">" : "<h1>");
    escaped(p, about->headline ? about->headline : title);
    raw(p, "</h1>\n<p>");
    if (about->headline) {
        escaped(p, lp_figures_text(figures, "%s. %s%s", title, about->verdict, *about->verdict ? ". " : ""));
    }
    add_subject(p, about, figures);
    raw(p, "</p>\n");
}

/* ------------------------------------------------------------------------------------------------- figures ---- */

static void figure(page *p, const lp_figure *f, int order)
{
    lp_svg svg = {0};
    char style[40];
    snprintf(style, sizeof style, "\" style=\"order:%d\">\n", order);
    raw(p, "<figure id=\"");
    escaped(p, f->id);
    raw(p, style);
    if (!f->csv_left_out) {
        raw(p, "<a class=\"csv\" href=\"#\" data-csv=\"");
        escaped(p, f->id);
        raw(p, "\" aria-label=\"Numbers as CSV: ");
        escaped(p, f->title);
        raw(p, "\">CSV</a>");
    }
    raw(p, "<h3>");
    escaped(p, f->title);
    raw(p, "</h3>\n");
    lp_svg_open_inline(&svg, LP_FIGURE_WIDTH, lp_figure_height(f, LP_FIGURE_WIDTH, false), f->title, f->caption);
    lp_figure_draw(f, &svg, 0, 0, LP_FIGURE_WIDTH, false);
    lp_svg_close(&svg);
    p->failed |= svg.failed || !lp_buffer_add(p->out, svg.text.data, svg.text.size);
    lp_svg_clear(&svg);
    raw(p, "<figcaption>");
    escaped(p, f->caption);
    raw(p, "</figcaption>\n");
    if (f->details) {
        raw(p, "<div class=\"case\" data-case=\"");
        escaped(p, f->cursor);
        raw(p, "\"></div>\n");
    }
    raw(p, "</figure>\n");
}

/* The height of a figure's card in a column, about. */
static double height_of(const lp_figure *f)
{
    double lines =
        1.4 * (1 + floor((double)strlen(f->title) / 40)) + 1.5 * (1 + floor((double)strlen(f->caption) / 55));
    return 1.12 * lp_figure_height(f, LP_FIGURE_WIDTH, false) + 15 * lines + (f->details ? 190 : 28);
}

/* A figure in one of the columns. */
typedef struct card {
    const lp_figure *figure;
    double height;
    int order, column;
} card;

/* Taller cards first, after those of the first section: then columns end at about the same height. */
static int by_height(const void *a, const void *b)
{
    const card *x = a, *y = b;
    return x->height != y->height ? (x->height < y->height) - (x->height > y->height) : x->order - y->order;
}

/* Adds the figures of some sections in three columns, each to the one that is shortest. A narrow screen has one column, in the order of the
 * sections. */
static void add_columns(page *p, lp_figures *figures, const char *const *sections)
{
    enum { COLUMNS = 3 };
    double filled[COLUMNS] = {0};
    int count = 0, most = 0, first = 0;
    for (const lp_figure *f = figures->first; f; f = f->next)
        most++;
    card *cards = lp_figures_alloc(figures, (size_t)most, sizeof *cards);
    for (int s = 0; cards && sections[s]; s++) {
        for (const lp_figure *f = figures->first; f; f = f->next)
            if (!f->missing && strcmp(f->section, sections[s]) == 0) {
                cards[count] = (card){f, height_of(f), count, 0};
                count++;
            }
        first = s == 0 ? count : first;
    }
    if (count > first)
        qsort(cards + first, (size_t)(count - first), sizeof *cards, by_height);
    for (int i = 0; i < count; i++) {
        for (int c = 1; c < COLUMNS; c++)
            cards[i].column = filled[c] < filled[cards[i].column] ? c : cards[i].column;
        filled[cards[i].column] += cards[i].height;
    }
    raw(p, "<div class=\"columns\">\n");
    for (int column = 0; column < COLUMNS; column++) {
        raw(p, "<div>\n");
        for (int i = 0; i < count; i++)
            if (cards[i].column == column)
                figure(p, cards[i].figure, cards[i].order + 1);
        raw(p, "</div>\n");
    }
    raw(p, "</div>\n");
}

static void add_figures(page *p, lp_figures *figures)
{
    static const char *const shown[] = {"lead", "scores", "cases", NULL}, *const folded[] = {"", "curious", NULL};
    bool any = false;
    for (const lp_figure *f = figures->first; f; f = f->next)
        any |= !f->missing && strcmp(f->section, folded[1]) == 0;
    add_columns(p, figures, shown);
    if (!any)
        return;
    raw(p,
        "<details id=\"curious\"><summary>For the mathematically curious: the time encoding and attention</summary>\n");
    add_columns(p, figures, folded);
    raw(p, "</details>\n");
}

static void add_missing(page *p, const lp_figures *figures)
{
    const char *begin = "<details id=\"missing\"><summary>Not in this report, and why</summary>\n<ul>\n", *end = "";
    for (const lp_figure *f = figures->first; f; f = f->next) {
        if (!f->missing)
            continue;
        raw(p, begin);
        raw(p, "<li><strong>");
        escaped(p, f->title);
        raw(p, ".</strong> <span class=\"missing\">");
        escaped(p, f->missing);
        raw(p, "</span></li>\n");
        begin = "";
        end = "</ul></details>\n";
    }
    raw(p, end);
}

/* The numbers of all figures, for the script. */
static void add_data(page *p, const lp_figures *figures, bool csv_safe)
{
    const char *comma = "";
    raw(p, "<script type=\"application/json\" id=\"data\">{\"csv\":{");
    for (const lp_figure *f = figures->first; f; f = f->next) {
        lp_buffer csv = {0};
        if (f->missing || f->csv_left_out)
            continue;
        raw(p, comma);
        p->failed |= !lp_json_add(p->out, f->id);
        raw(p, ":");
        p->failed |= !lp_figure_csv(f, csv_safe, &csv) || !lp_buffer_add(&csv, "", 1) || !lp_json_add(p->out, csv.data);
        lp_buffer_clear(&csv);
        comma = ",\n";
    }
    raw(p, "},\"cases\":{");
    comma = "";
    for (const lp_figure *f = figures->first; f; f = f->next) {
        if (!f->details)
            continue;
        raw(p, comma);
        p->failed |= !lp_json_add(p->out, f->cursor);
        raw(p, ":");
        raw(p, f->details);
        comma = ",\n";
    }
    raw(p, "}}</script>\n<script>");
    raw(p, lp_page_script);
    raw(p, "</script>\n");
}

bool lp_report_add(const lp_inspection *about, lp_figures *figures, lp_buffer *out)
{
    page p = {out, false};
    const char *title = about->options->title ? about->options->title : about->model->config.row->name;
    raw(&p, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    escaped(&p, title);
    raw(&p, "</title>\n<style>\n");
    raw(&p, lp_page_style);
    raw(&p, lp_svg_style);
    raw(&p, "\n</style>\n</head>\n<body>\n<main>\n");
    add_heading(&p, about, figures, title);
    add_figures(&p, figures);
    settings(&p, about->model);
    add_missing(&p, figures);
    raw(&p, "</main>\n");
    add_data(&p, figures, about->options->csv_safe);
    raw(&p, "</body>\n</html>\n");
    return !p.failed && !figures->failed;
}
