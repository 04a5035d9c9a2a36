/* times.h: predicted times of the next event of histories, for `lapse predict --when`: as a table, CSV or JSON. */
#ifndef CLI_TIMES_H
#define CLI_TIMES_H

#include <stdio.h>

#include <lapse.h>

/* Horizons of --within, at most. */
enum { CLI_HORIZONS = 32 };

typedef struct cli_horizons {
    char text[CLI_HORIZONS][32]; /* as typed */
    double seconds[CLI_HORIZONS];
    int count;
} cli_horizons;

/* Parses durations separated by commas: 1d,7d. */
lapse_status cli_horizons_parse(cli_horizons *horizons, const char *text, lapse_error *error);

/* Quantiles that are shown: an interval of 80 % and the median. */
enum { CLI_LOW, CLI_MEDIAN, CLI_HIGH, CLI_QUANTILES };
extern const double cli_quantile_levels[CLI_QUANTILES];

typedef struct cli_times {
    const char *model_file, *history_file;
    lapse_model *model;
    lapse_dataset *history;
    cli_horizons within;
    int64_t shown;       /* histories of a table, the first ones */
    bool csv_safe;       /* as cli_csv_field */
    int64_t types, top;  /* event types of the model; those shown for each horizon, 0: all of them */
    bool no_types;       /* none are shown, and none are computed: they take most of the time */
    double *start;       /* [sequences] */
    double *quantiles;   /* [sequences x CLI_QUANTILES] */
    double *mean, *alive; /* [sequences], as in lapse_when_options */
    double span;          /* seconds that the training data covers */
    double *probability; /* [sequences x horizons]: that the next event comes within */
    double *by_type;     /* [sequences x horizons x types]: the same and of this type; NULL: not wanted */
} cli_times;

/* Computes the times. now: NaN: from each history's last event on. Returns an exit status. */
int cli_times_compute(cli_times *times, double now, bool skip_unknown, int threads);
/* Reports histories without an answer. Returns CLI_FAILED if there are only such. */
int cli_times_report(const cli_times *times);
void cli_times_clear(cli_times *times);

/* Print all times. False: out of memory. */
bool cli_times_table(const cli_times *times, FILE *file);
bool cli_times_csv(const cli_times *times, FILE *file);
bool cli_times_list(const cli_times *times, FILE *file); /* JSON */

#endif
