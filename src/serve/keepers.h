/* keepers.h: the keepers of one history: one with all frequencies of the model, and others with fewer for spans that need no
 * more (nn/thinning.h).
 *
 * Which of them answers depends on the history and the moment asked about alone, so the same question gets the same bits again,
 * whatever came before. A short history is cheap with all frequencies. A longer one has a keeper for the next power of two
 * of its span, in seconds, another for moments beyond that, and the whole one for those beyond that: each makes its own
 * rows of the events, so there are never more than three. A keeper is made when it is first wanted, and stays; where it would
 * spare little, the whole one takes its place.
 */
#ifndef LP_KEEPERS_H
#define LP_KEEPERS_H

#include "serve/keeper.h"

enum {
    LP_KEEPERS_SPANS = 48,  /* spans of up to 2^i seconds */
    LP_KEEPERS_EVENTS = 64, /* a history with fewer keeps all frequencies */
    LP_KEEPERS_FAR = 4 /* powers of two from a history's span to what else may be asked about without all of them */
};

typedef struct lp_keepers {
    lp_keeper whole;
    lp_keeper *thinned[LP_KEEPERS_SPANS]; /* NULL: not made; owned */
    bool tried[LP_KEEPERS_SPANS];         /* wanted before, so that one that is not there will not be made */
} lp_keepers;

lapse_status lp_keepers_init(lp_keepers *keepers, const lapse_model *model, int64_t capacity, lapse_error *error);
void lp_keepers_clear(lp_keepers *keepers);

/* As those of one keeper. */
void lp_keepers_forget(lp_keepers *keepers);
void lp_keepers_drop(lp_keepers *keepers, int64_t count);

/* Questions up to `horizon` will be asked about the history, so one keeper should answer them all; not after `time`: nobody
 * knows. Allocates nothing, unless it is the first question about so long a span. */
void lp_keepers_ask(lp_keepers *keepers, const lp_history *history, double time, double horizon, lp_on_answer on_answer,
                    void *context);

#endif
