/* verb_kernel.c: `lapse kernel`: the learned time encoding of a model: its spectrum, kernel and features.
 *
 * Text has periods in readable units, by descending weight; CSV and JSON have seconds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lookup.h"
#include "table.h"
#include "verb.h"
#include "lapse_lab.h"

enum { BAR = 20 /* columns on each side of zero */ };

typedef struct kernel_settings {
    const char *model, *svg, *part;
    lapse_lags lags;
    int top;
    bool csv, json;
} kernel_settings;

/* The time encoding of a model. */
typedef struct subject {
    lapse_model *model;
    lapse_spectrum spectrum;
    lapse_lags lags;
    double *features; /* [2 count] */
    double height;    /* K(0) */
} subject;

static const char *const parts[] = {"all", "spectrum", "kernel", "phi", NULL};

static const char *const *part_names(void)
{
    return parts;
}

static bool wants(const kernel_settings *s, const char *part)
{
    return strcmp(s->part, "all") == 0 || strcmp(s->part, part) == 0;
}

static const char *encoding_of(const subject *about)
{
    const char *encoding = cli_model_property(about->model, "encoding");
    return encoding ? encoding : "";
}

static cli_words period_words(double period)
{
    cli_words words = {"constant"};
    return isfinite(period) ? cli_duration(period) : words;
}

/* ------------------------------------------------------------------------------------------------- text ------- */

static bool print_spectrum(const kernel_settings *s, const subject *about)
{
    const lapse_spectrum *spectrum = &about->spectrum;
    int shown = s->top > 0 && s->top < spectrum->count ? s->top : spectrum->count;
    cli_table table = {.align = "lrrrrr"};
    static const char *const heads[] = {"period", "harmonic", "cosine", "sine", "weight", "fraction"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        cli_table_add(&table, "%s", heads[i]);
    for (int rank = 0; rank < shown; rank++) {
        int i = about->spectrum.order[rank];
        cli_table_add(&table, "%s", period_words(spectrum->period[i]).text);
        if (spectrum->harmonic[i] > 1)
            cli_table_add(&table, "%d of %s", spectrum->harmonic[i],
                          period_words(spectrum->period[i] * spectrum->harmonic[i]).text);
        else
            cli_table_add(&table, "%s", "-");
        cli_table_add(&table, "%.4f", spectrum->cosine[i]);
        cli_table_add(&table, "%.4f", spectrum->sine[i]);
        cli_table_add(&table, "%.4f", spectrum->weight[i]);
        cli_table_add(&table, "%s", cli_percent(about->height > 0 ? spectrum->weight[i] / about->height : 0, 1).text);
    }
    fputs("\nSpectrum, by descending weight\n", stdout);
    bool whole = cli_table_print(&table, stdout, 0);
    if (shown < spectrum->count)
        printf("and %s; --top 0 shows all\n", cli_plural(spectrum->count - shown, "more", "more").text);
    return whole;
}

/* A bar from zero in the middle, "      ####|" or "          |###", without trailing spaces. */
static void bar_of(double value, char bar[2 * BAR + 2])
{
    int length = (int)lrint(fmin(fabs(value), 1) * BAR);
    memset(bar, ' ', 2 * BAR + 1);
    bar[BAR] = '|';
    memset(value < 0 ? bar + BAR - length : bar + BAR + 1, '#', (size_t)length);
    bar[value < 0 ? BAR + 1 : BAR + 1 + length] = 0;
}

static bool print_kernel(const subject *about)
{
    cli_table table = {.align = "lrrl"};
    static const char *const heads[] = {"lag", "K(lag)", "K(lag)/K(0)", ""};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        cli_table_add(&table, "%s", heads[i]);
    for (int i = 0; i < about->lags.points; i++) {
        double lag = lapse_lags_at(&about->lags, i), k = lapse_spectrum_kernel(&about->spectrum, lag);
        double value = about->height > 0 ? k / about->height : 0;
        char bar[2 * BAR + 2];
        bar_of(value, bar);
        cli_table_add(&table, "%s", cli_duration(lag).text);
        cli_table_add(&table, "%.4f", k);
        cli_table_add(&table, "%.3f", fabs(value) < 0.0005 ? 0 : value);
        cli_table_add(&table, "%s", bar);
    }
    printf("\nKernel, on a %s axis\n", about->lags.axis);
    return cli_table_print(&table, stdout, 0);
}

/* One of five symbols for a value from -1 to 1. */
static char cell_of(double value)
{
    static const char cells[] = "=- +#";
    return cells[(int)lrint(2 + 2 * fmax(-1, fmin(1, value)))];
}

static bool print_phi(const kernel_settings *s, const subject *about)
{
    const lapse_spectrum *spectrum = &about->spectrum;
    int shown = s->top > 0 && s->top < spectrum->count ? s->top : spectrum->count, points = about->lags.points;
    double maximum = 0;
    for (int i = 0; i < spectrum->count; i++)
        maximum = fmax(maximum, fmax(fabs(spectrum->cosine[i]), fabs(spectrum->sine[i])));
    cli_table table = {.align = "lll"};
    char *row = malloc((size_t)points + 1);
    if (!row)
        return false;
    for (int line = 0; line < 2 * shown; line++) {
        int i = about->spectrum.order[line / 2];
        bool sine = line % 2 == 1;
        for (int column = 0; column < points; column++) {
            double angle = spectrum->frequency[i] * lapse_lags_at(&about->lags, column);
            double value = sine ? spectrum->sine[i] * sin(angle) : spectrum->cosine[i] * cos(angle);
            row[column] = cell_of(maximum > 0 ? value / maximum : 0);
        }
        row[points] = 0;
        cli_table_add(&table, "%s", sine ? "" : period_words(spectrum->period[i]).text);
        cli_table_add(&table, "%s", sine ? "sine" : "cosine");
        cli_table_add(&table, "[%s]", row);
    }
    free(row);
    printf("\nPhi at lags from %s to %s: = and - below zero, + and # above, # is %.4f\n",
           cli_duration(about->lags.from).text, cli_duration(about->lags.to).text, maximum);
    return cli_table_print(&table, stdout, 0);
}

static int print_text(const kernel_settings *s, const subject *about)
{
    fputs("model      ", stdout);
    cli_text_print(stdout, s->model);
    printf(", encoding %s\nkernel     %s, K(0) = %.4f\n", encoding_of(about),
           cli_plural(about->spectrum.count, "frequency", "frequencies").text, about->height);
    bool whole = true;
    if (wants(s, "spectrum"))
        whole = print_spectrum(s, about) && whole;
    if (wants(s, "kernel"))
        whole = print_kernel(about) && whole;
    if (wants(s, "phi"))
        whole = print_phi(s, about) && whole;
    return whole ? CLI_DONE : cli_fail("out of memory");
}

/* -------------------------------------------------------------------------------------------- CSV, JSON ------- */

static int print_csv_spectrum(const subject *about)
{
    const lapse_spectrum *spectrum = &about->spectrum;
    puts("frequency,period,harmonic,cosine,sine,weight");
    for (int rank = 0; rank < spectrum->count; rank++) {
        int i = about->spectrum.order[rank];
        printf("%.12g,%.12g,%d,%.9g,%.9g,%.9g\n", spectrum->frequency[i], spectrum->period[i], spectrum->harmonic[i],
               spectrum->cosine[i], spectrum->sine[i], spectrum->weight[i]);
    }
    return CLI_DONE;
}

/* One row per lag with K and Phi, or the selected part. Columns of Phi are in the order of the model's tensors. */
static int print_csv(const kernel_settings *s, const subject *about)
{
    int count = about->spectrum.count;
    if (strcmp(s->part, "spectrum") == 0)
        return print_csv_spectrum(about);
    fputs("lag", stdout);
    if (wants(s, "kernel"))
        fputs(",kernel", stdout);
    for (int i = 0; i < 2 * count && wants(s, "phi"); i++)
        printf(",%s%d", i < count ? "cosine" : "sine", i % count + 1);
    fputc('\n', stdout);
    for (int point = 0; point < about->lags.points; point++) {
        double lag = lapse_lags_at(&about->lags, point);
        printf("%.12g", lag);
        if (wants(s, "kernel"))
            printf(",%.9g", lapse_spectrum_kernel(&about->spectrum, lag));
        lapse_spectrum_features(&about->spectrum, lag, about->features);
        for (int i = 0; i < 2 * count && wants(s, "phi"); i++)
            printf(",%.9g", about->features[i]);
        fputc('\n', stdout);
    }
    return CLI_DONE;
}

static void json_spectrum(cli_json *json, const subject *about)
{
    const lapse_spectrum *spectrum = &about->spectrum;
    cli_json_array(json, "spectrum");
    for (int rank = 0; rank < spectrum->count; rank++) {
        int i = about->spectrum.order[rank];
        cli_json_object(json, NULL);
        cli_json_whole(json, "feature", i + 1);
        cli_json_number(json, "frequency", spectrum->frequency[i], 12);
        cli_json_number(json, "period", spectrum->period[i], 12);
        cli_json_text(json, "period_words", period_words(spectrum->period[i]).text);
        cli_json_whole(json, "harmonic", spectrum->harmonic[i]);
        cli_json_number(json, "cosine", spectrum->cosine[i], 9);
        cli_json_number(json, "sine", spectrum->sine[i], 9);
        cli_json_number(json, "weight", spectrum->weight[i], 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void json_lags(cli_json *json, const kernel_settings *s, const subject *about)
{
    cli_json_text(json, "axis", about->lags.axis);
    cli_json_array(json, "lags");
    for (int point = 0; point < about->lags.points; point++) {
        double lag = lapse_lags_at(&about->lags, point);
        cli_json_object(json, NULL);
        cli_json_number(json, "lag", lag, 12);
        if (wants(s, "kernel"))
            cli_json_number(json, "kernel", lapse_spectrum_kernel(&about->spectrum, lag), 9);
        if (wants(s, "phi")) {
            lapse_spectrum_features(&about->spectrum, lag, about->features);
            cli_json_array(json, "phi");
            for (int i = 0; i < 2 * about->spectrum.count; i++)
                cli_json_number(json, NULL, about->features[i], 9);
            cli_json_end(json, ']');
        }
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static int print_json(const kernel_settings *s, const subject *about)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", s->model);
    cli_json_text(&json, "encoding", encoding_of(about));
    cli_json_whole(&json, "frequencies", about->spectrum.count);
    cli_json_number(&json, "kernel_at_zero", about->height, 9);
    if (wants(s, "spectrum"))
        json_spectrum(&json, about);
    if (wants(s, "kernel") || wants(s, "phi"))
        json_lags(&json, s, about);
    cli_json_end(&json, '}');
    return CLI_DONE;
}

static int save_svg(const kernel_settings *s, const subject *about)
{
    lapse_error error;
    char title[512];
    snprintf(title, sizeof title, "Time kernel of %.400s, encoding %.60s", s->model, encoding_of(about));
    if (lapse_spectrum_save_svg(&about->spectrum, &about->lags, title, s->svg, &error) != LAPSE_OK)
        return cli_error(&error);
    if (strcmp(s->svg, "-") == 0)
        return CLI_DONE;
    fputs("wrote      ", stdout);
    cli_text_print(stdout, s->svg);
    fputc('\n', stdout);
    return CLI_DONE;
}

/* -------------------------------------------------------------------------------------------------- run ------- */

static int show(const kernel_settings *s, subject *about)
{
    size_t count = (size_t)about->spectrum.count;
    about->features = calloc(2 * count + 1, sizeof *about->features);
    if (!about->features)
        return cli_fail("out of memory");
    about->height = lapse_spectrum_kernel(&about->spectrum, 0);
    return s->svg    ? save_svg(s, about)
           : s->csv  ? print_csv(s, about)
           : s->json ? print_json(s, about)
                     : print_text(s, about);
}

static int run(void *settings, const cli_call *call)
{
    const kernel_settings *s = settings;
    subject about = {.lags = s->lags};
    lapse_error error;
    if (s->csv + s->json + (s->svg != NULL) > 1)
        return cli_usage(call->verb, "--csv, --json and --svg are mutually exclusive");
    lapse_status status = lapse_model_load(s->model, &about.model, &error);
    if (status == LAPSE_OK)
        status = lapse_model_spectrum(about.model, &about.spectrum, &error);
    if (status == LAPSE_OK)
        status = lapse_lags_resolve(&about.spectrum, &about.lags, &error);
    int result = status == LAPSE_OK ? show(s, &about) : cli_error(&error);
    free(about.features);
    lapse_spectrum_clear(&about.spectrum);
    lapse_model_free(about.model);
    return result;
}

static void defaults(void *settings)
{
    kernel_settings *s = settings;
    lapse_lags_default(&s->lags);
    s->part = parts[0];
    s->top = 12;
}

static const cli_argument arguments[] = {
    {"MODEL", offsetof(kernel_settings, model), "model file with a time encoding", false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "axis", .type = CLI_CHOICE, .offset = offsetof(kernel_settings, lags.axis), .placeholder = "AXIS",
     .help = "spacing of the lags", .choices = lapse_axis_names},
    {.name = "from", .type = CLI_DURATION, .offset = offsetof(kernel_settings, lags.from), .placeholder = "DURATION",
     .help = "first lag, such as 1m", .unset = "1/10 of the shortest period; 0 on a linear axis"},
    {.name = "to", .type = CLI_DURATION, .offset = offsetof(kernel_settings, lags.to), .placeholder = "DURATION",
     .help = "last lag, such as 2y", .unset = "the longest period"},
    {.name = "points", .type = CLI_WHOLE, .offset = offsetof(kernel_settings, lags.points), .placeholder = "N",
     .help = "number of lags; a plot has one per pixel column"},
    {.name = "part", .type = CLI_CHOICE, .offset = offsetof(kernel_settings, part), .placeholder = "PART",
     .help = "part to print", .choices = part_names},
    {.name = "top", .type = CLI_WHOLE, .offset = offsetof(kernel_settings, top), .placeholder = "N",
     .help = "frequencies to print, by descending weight; 0 prints all"},
    {.name = "csv", .type = CLI_FLAG, .offset = offsetof(kernel_settings, csv),
     .help = "CSV output: one row per lag with K and Phi; with --part spectrum, one per frequency"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(kernel_settings, json), .help = "JSON output: one object"},
    {.name = "svg", .type = CLI_TEXT, .offset = offsetof(kernel_settings, svg), .placeholder = "FILE",
     .file = CLI_OUTPUT_FILE,
     .help = "SVG plot of all parts, instead of text; - is standard output", .unset = "none"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse kernel model.safetensors",
                                       "lapse kernel model.safetensors --axis linear --to 30d --svg kernel.svg",
                                       "lapse kernel model.safetensors --csv --part spectrum", NULL};

const cli_verb cli_verb_kernel = {
    .name = "kernel",
    .summary = "show the learned time kernel of a model",
    .description =
        "Shows the periods of a model's time encoding with their amplitudes (the spectrum), the kernel K(lag), which "
        "is "
        "the similarity of two timestamps at that lag, and the features Phi(lag). docs/theory.md has the formulas.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(kernel_settings),
    .defaults = defaults,
    .run = run,
};
