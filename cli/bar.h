/* bar.h: the progress of a training: one line redrawn on a terminal, a plain line an epoch elsewhere. */
#ifndef CLI_BAR_H
#define CLI_BAR_H

#include <stdbool.h>

#include "console.h"

typedef struct cli_bar {
    const char *label; /* stands before every line, or NULL */
    bool terminal;     /* standard error is one */
    bool open;         /* a line has been drawn and not been ended */
    double drawn;      /* when, on cli_clock */
} cli_bar;

/* A score of the event type that the progress watches: 47.9 %, or 0.2164 of an NDCG. */
cli_words cli_score(const lapse_progress *progress, double score);

cli_bar cli_bar_new(const char *label);
void cli_bar_update(cli_bar *bar, const lapse_progress *progress);
/* Leaves the last state standing and ends its line. */
void cli_bar_end(cli_bar *bar);
/* Wipes the line instead. */
void cli_bar_wipe(cli_bar *bar);

#endif
