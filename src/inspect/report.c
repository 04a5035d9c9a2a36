/* report.c: the report as one HTML page without references to other files. */
#include "inspect/figure_draw.h"
#include "inspect/inspection.h"
#include "inspect/report_page.h"

#include "base/text.h"

#include <stdio.h>
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

/* The settings that most readers look for; all of them follow in a fold. */
static void settings(page *p, const lapse_model *model)
{
    static const char *const first[] = {"model",       "task",  "predict", "encoding", "event_types",    "dims",
                                        "blocks",      "heads", "context", "source",   "dataset.events", "split",
                                        "score.epoch", "seed",  "version", NULL};
    const char *name, *value;
    raw(p, "<table>\n");
    for (int i = 0; first[i]; i++) {
        value = lp_model_property_find(model, first[i]);
        if (value)
            row(p, first[i], value);
    }
    raw(p, "</table>\n<details><summary>All settings, as in the model file</summary>\n<table>\n");
    for (int i = 0; lapse_model_property(model, i, &name, &value); i++)
        row(p, name, value);
    raw(p, "</table></details>\n");
}

static void data_summary(page *p, const lp_inspection *about)
{
    const lapse_dataset *d = about->dataset;
    char text[512];
    raw(p, "<p>");
    if (!d) {
        raw(p, "No data was given: the report shows what the model file alone can tell.");
    } else {
        snprintf(text, sizeof text, "Data: %lld events of %lld types in %lld sequences%s.", (long long)d->event_count,
                 (long long)d->types.count, (long long)d->sequence_count,
                 lapse_dataset_fingerprint(d) == about->model->fingerprint ? ", the data that the model was trained on"
                                                                           : "");
        escaped(p, text);
    }
    if (d && about->has_survey) {
        const lp_survey *s = &about->survey;
        snprintf(text, sizeof text,
                 " Figures from data use %lld of the %lld target events of the split %s, in %lld sequences.",
                 (long long)s->case_count, (long long)s->case_total, s->split, (long long)s->sequence_count);
        escaped(p, text);
    } else if (d) {
        escaped(p, " ");
        escaped(p, about->no_survey);
    }
    raw(p, "</p>\n");
}

/* ------------------------------------------------------------------------------------------------- figures ---- */

static void figure(page *p, const lp_figure *f)
{
    raw(p, "<figure id=\"");
    escaped(p, f->id);
    raw(p, "\">\n");
    if (!f->missing) {
        raw(p, "<a class=\"csv\" href=\"#\" data-csv=\"");
        escaped(p, f->id);
        raw(p, "\">CSV</a>");
    }
    raw(p, "<h3>");
    escaped(p, f->title);
    raw(p, "</h3>\n");
    if (f->missing) {
        raw(p, "<p class=\"missing\">");
        escaped(p, f->missing);
        raw(p, "</p>\n");
    } else {
        lp_svg svg = {0};
        lp_svg_open_inline(&svg, LP_FIGURE_WIDTH, lp_figure_height(f, LP_FIGURE_WIDTH, false), f->title);
        lp_figure_draw(f, &svg, 0, 0, LP_FIGURE_WIDTH, false);
        lp_svg_close(&svg);
        p->failed |= svg.failed || !lp_buffer_add(p->out, svg.text.data, svg.text.size);
        lp_svg_clear(&svg);
        raw(p, "<figcaption>");
        escaped(p, f->caption);
        raw(p, "</figcaption>\n");
    }
    if (f->details) {
        raw(p, "<div class=\"case\" data-case=\"");
        escaped(p, f->id);
        raw(p, "\"></div>\n");
    }
    raw(p, "</figure>\n");
}

typedef struct section {
    const char *id, *title, *text;
} section;

static const section sections[] = {
    {"run", "The run", ""},
    {"encoding", "The time encoding",
     "Attention sees the time between two events through these waves: a feature is a cosine or a sine of the lag, and "
     "the "
     "kernel says how alike two times are."},
    {"attention", "Attention and influence by elapsed time",
     "How much the last event counts when the next one comes, depending on how long ago it was."},
    {"cases", "Case studies", "Histories whose predictions change much with the time of the next event."},
    {"errors", "Where it fails", ""},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void add_section(page *p, const lp_inspection *about, const lp_figures *figures, const section *s)
{
    raw(p, "<section id=\"");
    raw(p, s->id);
    raw(p, "\">\n<h2>");
    raw(p, s->title);
    raw(p, "</h2>\n");
    if (strcmp(s->id, "run") == 0) {
        data_summary(p, about);
        settings(p, about->model);
        raw(p, "<p></p>\n");
    } else if (*s->text) {
        raw(p, "<p>");
        raw(p, s->text);
        raw(p, "</p>\n");
    }
    raw(p, "<div class=\"figures\">\n");
    for (const lp_figure *f = figures->first; f; f = f->next)
        if (strcmp(f->section, s->id) == 0)
            figure(p, f);
    raw(p, "</div>\n</section>\n");
}

/* The numbers of all figures, for the script. */
static void add_data(page *p, const lp_figures *figures, bool csv_safe)
{
    const char *comma = "";
    raw(p, "<script type=\"application/json\" id=\"data\">{\"csv\":{");
    for (const lp_figure *f = figures->first; f; f = f->next) {
        lp_buffer csv = {0};
        if (f->missing)
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
        p->failed |= !lp_json_add(p->out, f->id);
        raw(p, ":");
        raw(p, f->details);
        comma = ",\n";
    }
    raw(p, "}}</script>\n<script>");
    raw(p, lp_page_script);
    raw(p, "</script>\n");
}

bool lp_report_add(const lp_inspection *about, const lp_figures *figures, lp_buffer *out)
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
    raw(&p, "\n</style>\n</head>\n<body>\n<main>\n<h1>");
    escaped(&p, title);
    raw(&p, "</h1>\n<nav>");
    for (int i = 0; i < SECTIONS; i++) {
        raw(&p, "<a href=\"#");
        raw(&p, sections[i].id);
        raw(&p, "\">");
        raw(&p, sections[i].title);
        raw(&p, "</a> ");
    }
    raw(&p, "</nav>\n");
    for (int i = 0; i < SECTIONS; i++)
        add_section(&p, about, figures, &sections[i]);
    raw(&p, "</main>\n");
    add_data(&p, figures, about->options->csv_safe);
    raw(&p, "</body>\n</html>\n");
    return !p.failed;
}
