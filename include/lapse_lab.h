/* lapse_lab.h: what a study needs beyond lapse.h: comparisons over models and seeds, the search of options, the spectrum and kernel of a
 * model, sampling bounds, the report page, simulated events with a known law, and benchmarks. The contracts at the top of lapse.h hold
 * for every call. */
#ifndef LAPSE_LAB_H
#define LAPSE_LAB_H

#include "lapse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------- sweeps ----- */

/* A sweep trains models over encodings, a grid of option values and seeds, and compares them in one table: `lapse compare`.
 *
 * A cell is a set of training options, and a run is a cell with a seed. A row of the table is a cell, or where it has a grid, the
 * one of its cells with the best validation score. docs/compare.md has the definitions. */
typedef struct lapse_sweep_plan lapse_sweep_plan;
typedef struct lapse_sweep lapse_sweep;

/* The ranking protocols, NULL-terminated, in the order of lapse_rank_scores. */
const char *const *lapse_rank_protocol_names(void);

lapse_status lapse_sweep_plan_new(lapse_sweep_plan **plan, lapse_error *error);
void lapse_sweep_plan_free(lapse_sweep_plan *plan);

/* Sets a part of the plan from text, if it is not set yet: "models" and "encodings" (names separated by commas), "seeds" ("10": 1
 * to 10; "3..7"; "1,5,9"), "grid" ("OPTION=VALUE,VALUE", once for each option), "title", a setting of lapse_sweep_option, or any
 * training option, for the rows whose model has it. */
lapse_status lapse_sweep_plan_set(lapse_sweep_plan *plan, const char *name, const char *value, lapse_error *error);

/* Sets from JSON what is not set yet. */
lapse_status lapse_sweep_plan_parse(lapse_sweep_plan *plan, const char *text, size_t size, lapse_error *error);
lapse_status lapse_sweep_plan_load(lapse_sweep_plan *plan, const char *path, lapse_error *error);

/* The settings of a plan, for index 0, 1, ... until it returns false. */
bool lapse_sweep_option(int index, lapse_option *option);

/* Formats a setting or a training option into out and returns out; "" if it is chosen later, NULL for an unknown name. */
const char *lapse_sweep_plan_get(const lapse_sweep_plan *plan, const char *name, char *out, size_t out_size);

/* The training options of all rows, inside the plan; and the title, NULL: none. */
lapse_train_options *lapse_sweep_plan_train_options(lapse_sweep_plan *plan);
const char *lapse_sweep_plan_title(const lapse_sweep_plan *plan);

/* Lists the cells, checks the options of each against the dataset, and reads the runs that the setting "keep" holds already. The
 * folder is created if it is missing; without one, runs are kept in memory only. The plan may be freed. */
lapse_status lapse_sweep_new(const lapse_dataset *dataset, const lapse_sweep_plan *plan, lapse_sweep **sweep,
                             lapse_error *error);
void lapse_sweep_free(lapse_sweep *sweep);

typedef struct lapse_sweep_progress {
    int total;           /* runs of the sweep as known now: a grid with "grid-seeds" adds runs later */
    int done;            /* finished, including those that were kept from before */
    int running, left;   /* in all processes; not begun */
    double seconds;      /* since the start of the call */
    double seconds_left; /* estimate; NaN: no run has ended yet */
    const char *newest;  /* the run that ended last, such as "attention, mercer, seed 3"; NULL: none in this call */
    double score;        /* its validation score */
} lapse_sweep_progress;

/* Called several times per second on the thread of lapse_sweep_run. Return false to stop. */
typedef bool (*lapse_on_sweep_progress)(const lapse_sweep_progress *progress, void *context);

/* Trains all runs that are not finished. Each finished run is saved in the folder at once, so a sweep that was stopped or killed
 * continues. Several processes may run one sweep: they share the folder, and no run is trained twice. A run that diverges is a
 * result. Returns LAPSE_OK with runs missing if on_progress stops it. on_progress and context may be NULL. */
lapse_status lapse_sweep_run(lapse_sweep *sweep, lapse_on_sweep_progress on_progress, void *context,
                             lapse_error *error);

typedef struct lapse_sweep_info {
    const char *split;    /* of the scores */
    const char *target;   /* "event" or "action" */
    const char *protocol; /* of a recommender; NULL for classifiers */
    const char *select;   /* the validation metric */
    double reach;         /* of the setting; NaN: none */
    int metric_count;
    const char *metric_names[LAPSE_METRIC_LIMIT]; /* of the table */
    int metric;                                   /* the one of the paired test */
    int rows, cells, seeds;
    int runs, finished; /* that the table needs; of these, finished */
    int parallel;       /* runs at the same time in this process */
    const char *device; /* of networks: "cpu" or "cuda" */
} lapse_sweep_info;

lapse_sweep_info lapse_sweep_describe(const lapse_sweep *sweep);

/* Mean and standard deviation (n - 1) over runs; the deviation of one run is 0. */
typedef struct lapse_spread {
    double mean, std;
    int count;
} lapse_spread;

/* A cell with its scores over all seeds. Numbers of no run are NaN. */
typedef struct lapse_sweep_cell {
    const char *row;                          /* name of its row */
    int row_index;                            /* from 0 */
    const char *config;                       /* its values of the grid: "dropout 0.3, dims 64"; "" without a grid */
    bool chosen;                              /* it represents its row */
    bool best;                                /* among the rows */
    int runs, diverged;                       /* finished runs; of these, without scores */
    lapse_spread valid;                       /* validation score */
    lapse_spread metrics[LAPSE_METRIC_LIMIT]; /* on the table's split */
    int64_t cases;                            /* of the first seed */
    int64_t parameters;
    lapse_spread epochs;        /* until the end of training */
    lapse_spread epoch_seconds; /* an epoch with its validation */
    lapse_spread seconds;       /* of training */
    lapse_spread reach;    /* seconds until the validation score of the setting "reach"; count: runs that reached it */
    lapse_mean difference; /* of a row: its mean minus the best row's, with a 95 % interval; NaN: too few sequences */
    double p;              /* of a row: two-sided p-value of no difference; NaN for the best row */
} lapse_sweep_cell;

/* The rows of the table in the order of the plan; all cells, of which only the chosen ones have differences. Index 0, 1, ... until
 * it returns false. */
bool lapse_sweep_row(const lapse_sweep *sweep, int index, lapse_sweep_cell *row);
bool lapse_sweep_cell_at(const lapse_sweep *sweep, int index, lapse_sweep_cell *cell);

/* The run of a row with a seed, given as index 0, 1, ... of the plan's seeds; false: there is no such run, or it is not finished. */
typedef struct lapse_sweep_result {
    uint64_t seed;
    bool diverged;                      /* there are no scores */
    double valid;                       /* validation score */
    double metrics[LAPSE_METRIC_LIMIT]; /* on the table's split */
    double seconds;                     /* of training */
    int epochs, best_epoch;
    const double *curve; /* 2 * epochs numbers: for each epoch, seconds since the start and the validation score */
} lapse_sweep_result;

bool lapse_sweep_result_at(const lapse_sweep *sweep, int row, int seed, lapse_sweep_result *result);

/* Draws the validation score of every run of the rows against the seconds of its training, as an SVG file; "-" is standard output.
 * The title may be NULL. */
lapse_status lapse_sweep_save_svg(const lapse_sweep *sweep, const char *title, const char *path, lapse_error *error);

/* ----------------------------------------------------------------------------------------------- tuning ----- */

/* Searches training options within a budget of time, on the validation split alone: `lapse tune`. The first trial has the options as
 * given and is trained to its end, so the result is never worse on the validation split. Later trials change a few options that were
 * not given, starting from the best trial so far; those that are worse than the median of the others at the same epoch are stopped
 * (docs/tune.md). */
typedef struct lapse_tune_options {
    double seconds; /* budget: running trials are stopped at its end, and their best epochs count */
    int trials;     /* maximum; 0: as many as the budget allows */
    int parallel;   /* trials at the same time in this process; 0: all cores on the CPU, 1 on a GPU */
    const char *
        folder; /* where several processes share the trials of one search, created if missing; NULL: this process alone */
} lapse_tune_options;

void lapse_tune_options_default(lapse_tune_options *options);

typedef struct lapse_tune_progress {
    int finished, stopped, running; /* trials: trained to their end; stopped early or diverged; now */
    double seconds, budget;
    const char *metric; /* the option "select" */
    double first;       /* validation score of the first trial; NaN: it has none yet */
    double best;        /* of the best trial; NaN likewise */
    int best_trial;     /* from 1; 0: none yet */
    const char *change; /* options that the best trial changed: "dropout 0.2, heads 4"; "": none */
} lapse_tune_progress;

/* Called several times per second on the thread of lapse_tune. Return false to end the search. */
typedef bool (*lapse_on_tune_progress)(const lapse_tune_progress *progress, void *context);

/* Returns the model of the best trial. Its properties "tune.trials", "tune.trial.1", ... tell what was tried. on_progress and
 * context may be NULL. */
lapse_status lapse_tune(const lapse_dataset *dataset, const lapse_train_options *options,
                        const lapse_tune_options *tune, lapse_on_tune_progress on_progress, void *context,
                        lapse_model **model, lapse_error *error);

/* ------------------------------------------------------------------------------------- spectrum and kernel ----- */

/* The learned time encoding of a model: its frequencies w and the amplitudes of their two features,
 *
 *     Phi(lag) = ( cosine[i] cos(w_i lag), for all i; then sine[i] sin(w_i lag), for all i )
 *
 * in the order of the model. docs/theory.md has the formulas. */
typedef struct lapse_spectrum {
    int count;         /* frequencies; Phi has 2 * count elements */
    double *frequency; /* radians per second; may be negative or 0 if it was sampled */
    double *period;    /* seconds: 2 pi / |frequency|; infinite where that is below 1e-15 */
    int *harmonic;     /* multiple of the fundamental frequency; 1: the fundamental */
    double *cosine;    /* amplitude of its cosine */
    double *sine;      /* amplitude of its sine */
    double *weight;    /* coefficient in the kernel: (cosine^2 + sine^2) / 2; cosine^2 at frequency 0 */
    int *order;        /* indices by descending weight; ties by descending period */
} lapse_spectrum;

/* Fills an uninitialized *spectrum. A model without lags (a baseline, or position encodings) has none:
 * LAPSE_ERROR_USAGE. */
lapse_status lapse_model_spectrum(const lapse_model *model, lapse_spectrum *spectrum, lapse_error *error);
void lapse_spectrum_clear(lapse_spectrum *spectrum);

/* K(lag) = sum of weight cos(frequency lag): the mean over all t of <Phi(t), Phi(t - lag)>. Where the amplitudes of
 * cosine and sine are equal, every t gives the mean. */
double lapse_spectrum_kernel(const lapse_spectrum *spectrum, double lag);

/* Fills features[0 .. 2 count - 1] with Phi(lag). */
void lapse_spectrum_features(const lapse_spectrum *spectrum, double lag, double *features);

/* A range of lags. */
typedef struct lapse_lags {
    const char *axis; /* spacing: "log" or "linear" */
    double from, to;  /* seconds, both included; 0: chosen from the periods (a linear axis begins at 0) */
    int points;       /* 2 to 100,000 */
} lapse_lags;

void lapse_lags_default(lapse_lags *lags);
const char *const *lapse_axis_names(void);

/* Chooses unset values from the spectrum, and validates all values. */
lapse_status lapse_lags_resolve(const lapse_spectrum *spectrum, lapse_lags *lags, lapse_error *error);

/* The lag of an index from 0 to points - 1, in seconds. The lags must be resolved. */
double lapse_lags_at(const lapse_lags *lags, int index);

/* Draws spectrum, kernel and Phi over resolved lags as an SVG file; "-" is standard output. The title may be NULL. */
lapse_status lapse_spectrum_save_svg(const lapse_spectrum *spectrum, const lapse_lags *lags, const char *title,
                                     const char *path, lapse_error *error);

/* The number of frequency samples whose mean cosine approximates a kernel within epsilon at every lag up to span, with
 * probability 1 - delta: Claim 1 of the paper, and the corrected result of its proof (docs/theory.md). */
typedef struct lapse_bound_options {
    double epsilon; /* maximum error of a kernel that is 1 at lag 0: 0.0001 to 2 */
    double span;    /* seconds: maximum lag */
    double sigma;   /* radians per second: root mean square of the frequencies */
    double delta;   /* probability of a larger error: above 0, below 1 */
    int repeats;    /* independent samples of a measurement */
    uint64_t seed;  /* of the samples */
    int threads;    /* 0: all cores; at most 4096; never changes the result */
} lapse_bound_options;

typedef struct lapse_bound_error {
    int64_t samples;     /* frequencies per repeat */
    int repeats, within; /* repeats, and those with an error below epsilon */
    double mean, worst;  /* maximum error over all lags: its mean and maximum over the repeats */
    int points;          /* grid of lags from 0 to span */
    double step;         /* seconds between grid points; above 0.1 / sigma the errors may be underestimated */
} lapse_bound_error;

void lapse_bound_options_default(lapse_bound_options *options);

/* The number of samples by the claim as printed, with times in units of `unit` seconds, on which its result depends; or
 * with unit 0, by the corrected proof, which does not depend on the unit. */
lapse_status lapse_bound_samples(const lapse_bound_options *options, double unit, int64_t *samples, lapse_error *error);

/* Measures the error of this number of samples on the kernel exp(-(sigma lag)^2 / 2), whose frequencies are normal with
 * standard deviation sigma. Takes about repeats * points * samples nanoseconds. */
lapse_status lapse_bound_measure(const lapse_bound_options *options, int64_t samples, lapse_bound_error *measured,
                                 lapse_error *error);

/* ------------------------------------------------------------------------------------------------- report ----- */

/* A report on a model: figures of its run, its time encoding, its attention and its errors (docs/inspect.md). */
typedef struct lapse_inspect_options {
    const char *title;  /* of the report; NULL: the name of the model type */
    const char *split;  /* whose target events are shown; NULL: "test", of other data than that of the training "all" */
    int64_t cases;      /* about so many target events; a sample of whole sequences if there are more */
    const char *action; /* attention to events with this action only; NULL: all */
    int block;          /* whose attention weights are shown, from 0; -1: the last */
    int case_studies;   /* number of case studies, 0 to 20, if sequences are not named */
    const char *const *sequences; /* sequence_count names of sequences for case studies; NULL: chosen */
    int sequence_count;
    const char *log;     /* log file of the training run (lapse train --log), for clock times; NULL: none */
    const char *figures; /* folder where each figure is written as SVG, created if it is missing; NULL: none */
    int bootstrap;       /* resamples for the intervals of the scores; 0: none */
    int threads;         /* 0: all cores; never changes the result */
} lapse_inspect_options;

typedef struct lapse_inspection {
    int figures; /* drawn */
    int missing; /* not possible with this model and data; the report says why */
} lapse_inspection;

void lapse_inspect_options_default(lapse_inspect_options *options);

/* Writes the report as one HTML page that needs no other file; "-" is standard output, NULL: no page. Equal inputs give
 * equal bytes. dataset may be NULL: the report shows what the model alone can tell. A dataset whose columns do not suit the
 * model is explained in the report. inspection may be NULL. */
lapse_status lapse_inspect(const lapse_model *model, const lapse_dataset *dataset, const lapse_inspect_options *options,
                           const char *path, lapse_inspection *inspection, lapse_error *error);

/* -------------------------------------------------------------------------------------------- simulation ----- */

/* Events simulated from a known distribution (the law), so that the best possible scores are known. */
typedef struct lapse_simulation lapse_simulation;

typedef struct lapse_simulate_options {
    const char *preset; /* "shop", "cycle", "catalogue" or "sessions" */
    int64_t sequences;  /* 0: the preset's */
    int64_t items;      /* of the presets "catalogue" (100 to 20,000,000) and "sessions" (500 to 20,000,000); 0: the
                         * preset's. Fixed in other presets */
    double days;        /* length of each history; 0: the preset's */
    uint64_t seed;
} lapse_simulate_options;

void lapse_simulate_options_default(lapse_simulate_options *options);
lapse_status lapse_simulate(const lapse_simulate_options *options, lapse_simulation **simulation, lapse_error *error);
void lapse_simulation_free(lapse_simulation *simulation);
int64_t lapse_simulation_event_count(const lapse_simulation *simulation);

/* Writes the events as CSV; "-" is standard output. */
lapse_status lapse_simulation_save(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* Writes the items of the presets "catalogue" and "sessions" as CSV: item,name,brand,category, of "sessions" also
 * department. Fails for other presets. */
lapse_status lapse_simulation_save_catalogue(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* Writes the true probability of every event type at every event, as CSV. Fails for the preset "catalogue", and for more
 * than 10,000 event types. */
lapse_status lapse_simulation_save_law(const lapse_simulation *simulation, const char *path, lapse_error *error);

/* The best possible scores: those of the true probabilities, on the events that lapse_evaluate scores for this model,
 * dataset (imported from the simulation, possibly in sessions or filtered) and split. The law knows the user's whole
 * history. */
lapse_status lapse_simulation_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                       const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                       lapse_scores *scores, lapse_error *error);

/* The same for the time of the next event: the scores of the law of time, given the user's whole history and the clock, on the
 * events that lapse_time_evaluate scores for this model, dataset and split, which leave out no event of the simulation. No model
 * has a lower expected NLL. *scores has one row, "law". Fails for the preset "catalogue". */
lapse_status lapse_simulation_time_evaluate(const lapse_simulation *simulation, const lapse_model *model,
                                            const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                            lapse_time_scores *scores, lapse_error *error);

/* Fills count[sequences]: the expected number of events of each sequence of a dataset within the horizon, from futures drawn from
 * the law given the user's whole history up to its last event. It is what lapse_forecasts.count estimates. Only for the preset
 * "shop". skip_unknown is ignored: every event is known. */
lapse_status lapse_simulation_forecast(const lapse_simulation *simulation, const lapse_dataset *histories,
                                       const lapse_forecast_options *options, double *count, lapse_error *error);

/* The same for ranking metrics: items ranked by their true probabilities, on the events that lapse_rank_evaluate ranks.
 * Runs on one thread. */
lapse_status lapse_simulation_rank(const lapse_simulation *simulation, const lapse_model *model,
                                   const lapse_dataset *dataset, const lapse_rank_options *options,
                                   lapse_rank_scores *scores, lapse_error *error);

/* ----------------------------------------------------------------------------------------------- benchmark ----- */

/* Training and evaluation speed on this machine, with events simulated in memory. */
typedef struct lapse_bench_options {
    const char *preset;    /* sizes of a known task: "ml-1m", "ml-1m-softmax", "so", "catalogue" */
    const char *what;      /* "train": training steps; "predict": evaluation of the validation split */
    int64_t items;         /* size of the catalogue; 0: the preset's */
    int batch;             /* windows per step; 0: the preset's */
    int shards;            /* parts of a batch; 0: as in training */
    int rounds;            /* timed steps, after a warm-up */
    int threads;           /* 0: all cores */
    const char *device;    /* as in training */
    const char *precision; /* as in training; NULL: chosen by the device */
    uint64_t seed;
    const lapse_train_options *training; /* options set here replace those of the preset, such as dims; NULL: none */
} lapse_bench_options;

/* One op of the network, or another part of a step; totals over a step. Seconds are summed over threads: a step on two
 * threads has twice its wall time. On a GPU a row is a kernel launch, which may compute several nodes of the graph; its
 * name is the op of the first node. Launches are timed one by one, but some run concurrently in a step. */
typedef struct lapse_bench_row {
    const char *name;
    const char *type; /* of a launch: "node", "fused" kernel, chain of "rows", "reduction" over rows, "pack" of weights,
                       * or the name of a sampled loss with its gradient, such as "bce"; otherwise NULL */
    int launch;       /* index in a step, from 1; 0: not a launch */
    int nodes;        /* that a launch computes, wholly or in part */
    int64_t calls;
    double seconds;     /* minimum over the rounds */
    double flop, bytes; /* operations, and the minimum of bytes moved; 0: not known */
    double roofline;    /* seconds at the roofline: the larger of flop / peak and bytes / bandwidth */
} lapse_bench_row;

typedef struct lapse_bench_report {
    const char *preset, *what;
    const char *device, *precision;
    const char *level; /* instruction-set level of the CPU kernels, such as "x86-64-v4" */
    int threads, rounds;
    int64_t items, parameters;
    double error;     /* the largest of a gradient, against the reference kernels in double: see lapse_bench */
    double peak;      /* flop/s of fused multiply-adds on these threads, or of a GPU in this precision */
    double bandwidth; /* bytes/s of copies within buffers of the size of a thread's work buffer */
    double step_best, step_median, step_p90; /* seconds */
    double step_minimum;                     /* sum of the rows: a step without interference */
    int64_t steps;                           /* per epoch; 1 for predict */
    double epoch;                            /* seconds: steps * median; on a GPU, of steps without a sync in between */
    double windows, events;                  /* per step, on average: windows and target events */
    double tokens;                           /* input events per step, on average */
    double flop;                             /* per step, on average */
    int row_count;                           /* 0 if the device has no profiler */
    lapse_bench_row *rows;                   /* by descending seconds; freed by lapse_bench_report_clear */
} lapse_bench_report;

const char *const *lapse_bench_preset_names(void);
const char *const *lapse_bench_what_names(void);
void lapse_bench_options_default(lapse_bench_options *options);

/* Runs a benchmark. First compares the gradients of one step on a small batch with the reference kernels in double. If
 * the root mean square error of a parameter's gradient exceeds 1e-4 (tf32: 5e-2, bf16: 2e-1) of the gradient's root mean
 * square, or of a tenth of the median parameter's, the call returns LAPSE_ERROR_INTERNAL without timing. */
lapse_status lapse_bench(const lapse_bench_options *options, lapse_bench_report *report, lapse_error *error);
void lapse_bench_report_clear(lapse_bench_report *report);

#ifdef __cplusplus
}
#endif

#endif
