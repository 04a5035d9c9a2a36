/* bar.h: progress of a training run: on a terminal a line for each epoch and one below that is redrawn, otherwise a line for each
 * quarter of the epochs. */
#ifndef CLI_BAR_H
#define CLI_BAR_H

#include <stdbool.h>

#include "console.h"

typedef struct cli_bar {
    const char *label; /* printed before every line; on a terminal the lines of epochs do not stay. NULL: none */
    bool terminal;     /* standard error is a terminal */
    bool open;         /* a line has been drawn and not ended */
    double drawn;      /* time of the last drawing, by cli_clock */
    bool announced;    /* a long run has been announced */
    int quarter;       /* the last one that has a line; from 4 on of the network of times */
} cli_bar;

/* A validation metric as text: "accuracy 47.9 %", "log-loss 1.2164". */
cli_words cli_metric(const char *name, double value);

cli_bar cli_bar_new(const char *label);
void cli_bar_update(cli_bar *bar, const lapse_progress *progress);
/* Shows how far a computation other than training is, from two seconds on: on a terminal a line that is redrawn, otherwise a line for
 * each quarter. what: "forecast: 12 of 80 histories"; left: seconds. */
void cli_bar_fraction(cli_bar *bar, const char *what, double fraction, double seconds, double left);
/* Ends the line and leaves it visible. */
void cli_bar_end(cli_bar *bar);
/* Erases the line. */
void cli_bar_wipe(cli_bar *bar);

#endif
