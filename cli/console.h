/* console.h: how the tool speaks to a person: errors and notes on standard error, numbers the way one reads them. */
#ifndef CLI_CONSOLE_H
#define CLI_CONSOLE_H

#include <stdint.h>
#include <stdio.h>

#include <lapse.h>

/* Exit statuses of every verb. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* A short text returned by value, so that a formatted number can stand in a call: cli_count(n).text. */
typedef struct cli_words {
    char text[64];
} cli_words;

cli_words cli_count(int64_t n);                                     /* 480,413 */
cli_words cli_plural(int64_t n, const char *one, const char *many); /* 1 row, 480,413 rows */
cli_words cli_rate(double per_second);                              /* 312k */
cli_words cli_bytes(double bytes);                                  /* 12.3 MB */
cli_words cli_percent(double share, int decimals);                  /* 47.9 % */
cli_words cli_seconds(double seconds);                              /* 0.21 s, 1 min 12 s */
cli_words cli_duration(double seconds);                             /* lapse_duration_format */
cli_words cli_timestamp(double time);                               /* lapse_time_format */

/* "lapse: " and a line of text on standard error. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The library's error, with its place, and the exit status it means. */
int cli_error(const lapse_error *error);

/* Text from a file, with control characters shown as '?': a name must not be able to drive the terminal. */
void cli_text_print(FILE *file, const char *text);
/* Code points in text: columns it takes on a terminal, wide letters aside. */
int cli_text_width(const char *text);

/* Paragraph of words, broken to fit into `width`. The first line is taken to have `used` columns already; the later
 * ones are indented by `indent`. Ends the line. */
void cli_paragraph(FILE *file, const char *text, int used, int indent, int width);

/* Columns of the terminal behind a stream, or 80. */
int cli_width(FILE *file);

/* Seconds on a clock that only runs forward. */
double cli_clock(void);

/* SIGINT and SIGTERM: the first only sets a flag, so that work can end in order; the second ends the process. */
void cli_interrupt_watch(void);
void cli_interrupt_unwatch(void);
bool cli_interrupted(void);

#endif
