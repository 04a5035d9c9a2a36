/* prepare.h: preprocessing of sorted events: filters, sessions, deduplication, k-core filtering. The last step of an import
 * before ids are assigned. */
#ifndef LP_PREPARE_H
#define LP_PREPARE_H

#include "data/import/sort.h"
#include "lapse.h"

typedef enum lp_deduplicate {
    LP_DEDUPLICATE_NONE = 0,
    LP_DEDUPLICATE_EXACT = 1,      /* drop later events with the same sequence, time and type */
    LP_DEDUPLICATE_CONSECUTIVE = 2 /* drop an event with the type of the event before it */
} lp_deduplicate;

/* "none", "exact", "consecutive", NULL; and "once", "iterated", NULL. */
extern const char *const lp_deduplicate_names[], *const lp_min_rounds_names[];

typedef struct lp_preparation {
    double session_gap; /* a longer gap, in seconds, starts a new session; 0: no sessions */
    lp_deduplicate deduplicate;
    int64_t min_sequence_events, min_users; /* of the source's sequences, before sessions are cut */
    int64_t min_count, min_events;
    bool basket;                 /* events of one sequence and time are shuffled */
    bool iterated;               /* repeat min_count and min_events until both hold (k-core filtering) */
    lapse_import_report *report; /* counts what the preparation moves and drops */
} lp_preparation;

/* The origin of a session. */
typedef struct lp_origin {
    int64_t sequence; /* sequence of the source */
    int64_t part;     /* session number from 1, counting dropped ones; 0: no sessions */
} lp_origin;

/* Whether lp_prepare may change anything. */
bool lp_prepares(const lp_preparation *preparation);

/* Preprocesses columns in place and updates type_count[0 .. types-1], the events of each type. *origins is NULL if
 * nothing was split or dropped; otherwise it has an entry per remaining sequence and the caller frees it with
 * lp_free. False when out of memory. */
bool lp_prepare(const lp_preparation *preparation, lp_sequence_columns *columns, int64_t *type_count, int64_t types,
                lp_origin **origins);

#endif
