/* console.h: output for people: errors and notes on standard error, formatted numbers, wrapped text, interrupts. */
#ifndef CLI_CONSOLE_H
#define CLI_CONSOLE_H

#include <stdint.h>
#include <stdio.h>

#include <lapse.h>

/* Exit statuses of every verb. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* A short text returned by value, so that a formatted number can be an argument: cli_count(n).text. */
typedef struct cli_words {
    char text[64];
} cli_words;

cli_words cli_count(int64_t n);                                     /* 480,413 */
cli_words cli_plural(int64_t n, const char *one, const char *many); /* 1 row, 480,413 rows */
cli_words cli_rate(double per_second);                              /* 312k */
cli_words cli_bytes(double bytes);                                  /* 12.3 MB */
cli_words cli_percent(double fraction, int decimals);               /* 47.9 %; "-" for NaN */
cli_words cli_seconds(double seconds);                              /* 0.21 s, 1 min 12 s */
cli_words cli_duration(double seconds);                             /* lapse_duration_format */
cli_words cli_timestamp(double time);                               /* lapse_time_format; a number, after cli_times_of such data */
void cli_times_of(const lapse_dataset *dataset);                    /* whose times are printed from now on */

/* Prints "lapse: " and a line of text on standard error. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error of the library with its file, line and column; returns the exit status. */
int cli_error(const lapse_error *error);

/* Prints text with control characters replaced by '?', so that a name in a file cannot control the terminal. */
void cli_text_print(FILE *file, const char *text);
/* Number of code points: the width on a terminal, except for wide characters. */
int cli_text_width(const char *text);

/* Prints words wrapped at `width` columns and ends the line. `used` columns of the first line are already taken; later
 * lines are indented by `indent`. */
void cli_paragraph(FILE *file, const char *text, int used, int indent, int width);

/* Width of the terminal of a stream, or 80. */
int cli_width(FILE *file);

/* Monotonic clock, in seconds. */
double cli_clock(void);

/* Handling of SIGINT and SIGTERM: the first signal sets a flag, so that the verb can save its work; the second ends the
 * process. */
void cli_interrupt_watch(void);
void cli_interrupt_unwatch(void);
bool cli_interrupted(void);
/* Called by the handler of SIGTERM; NULL: nothing. */
extern void (*cli_on_terminate)(void);

#endif
