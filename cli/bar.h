/* bar.h: progress of a training run: on a terminal one line that is redrawn, otherwise one line per epoch. */
#ifndef CLI_BAR_H
#define CLI_BAR_H

#include <stdbool.h>

#include "console.h"

typedef struct cli_bar {
    const char *label; /* printed before every line, or NULL */
    bool terminal;     /* standard error is a terminal */
    bool open;         /* a line has been drawn and not ended */
    double drawn;      /* time of the last drawing, by cli_clock */
} cli_bar;

/* A validation metric as text: "accuracy 47.9 %", "log-loss 1.2164". */
cli_words cli_metric(const char *name, double value);

cli_bar cli_bar_new(const char *label);
void cli_bar_update(cli_bar *bar, const lapse_progress *progress);
/* Ends the line and leaves it visible. */
void cli_bar_end(cli_bar *bar);
/* Erases the line. */
void cli_bar_wipe(cli_bar *bar);

#endif
