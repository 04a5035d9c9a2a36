/* prepare.h: what is left out of sorted events, and where their sequences are cut: the last step of an import before
 * names get their numbers. */
#ifndef LP_PREPARE_H
#define LP_PREPARE_H

#include "data/import/sort.h"

typedef enum lp_deduplicate {
    LP_DEDUPLICATE_NONE = 0,
    LP_DEDUPLICATE_EXACT = 1,      /* a later event of the same sequence, time and event type is left out */
    LP_DEDUPLICATE_CONSECUTIVE = 2 /* an event of the event type right before it is left out */
} lp_deduplicate;

/* "none", "exact", "consecutive", NULL; and "once", "iterated", NULL. */
extern const char *const lp_deduplicate_names[], *const lp_min_rounds_names[];

typedef struct lp_preparation {
    /* What is wanted. */
    double session_gap; /* seconds between neighbours beyond which a sequence is cut; 0: never */
    lp_deduplicate deduplicate;
    int64_t min_count, min_events;
    bool iterated; /* the two minimums again and again, until both hold */

    /* What was done, set by lp_prepare. */
    int64_t cut_sequences, sessions; /* sequences that were cut, and how many there were after it */
    int64_t duplicate_rows, rare_rows, rare_event_types, short_rows, short_sequences;
    int64_t rounds; /* of the minimums that left something out */
} lp_preparation;

/* Where a sequence came from. */
typedef struct lp_origin {
    int64_t sequence; /* before it was cut */
    int64_t part;     /* counted from 1, short ones that were dropped included; 0: sequences were not to be cut */
} lp_origin;

/* Changes columns in place; type_count[0 .. event types-1] has the events of each event type, before and after. *origins is NULL
 * where nothing was cut or dropped, otherwise it tells of every sequence left and is the caller's (lp_free). False when
 * out of memory. */
bool lp_prepare(lp_preparation *preparation, lp_event_columns *columns, int64_t *type_count, int64_t types,
                lp_origin **origins);

#endif
