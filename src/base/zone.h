/* zone.h: time zones of the system's database (TZif files, RFC 8536): from a local time to UTC.
 *
 * localtime and tzset depend on the environment variable TZ, which is not safe to change in a program with threads. A
 * lp_zone is immutable, so any number of threads may use one.
 */
#ifndef LP_ZONE_H
#define LP_ZONE_H

#include "base/error.h"

typedef struct lp_zone lp_zone;

/* How a local time relates to the clock of its zone. */
typedef enum lp_local {
    LP_LOCAL_NONE = 0,      /* the text has a zone of its own */
    LP_LOCAL_UNIQUE = 1,    /* it occurs once */
    LP_LOCAL_AMBIGUOUS = 2, /* it occurs twice, where clocks are set back: the earlier one is taken */
    LP_LOCAL_MISSING = 3,   /* it does not occur, where clocks are set forward: shifted forward by the skipped time */
    LP_LOCALS = 4
} lp_local;

/* Opens a zone by its name, such as "Europe/Berlin"; "UTC" and offsets such as "+02:00" need no database. The folder of
 * the database is the environment variable TZDIR, or /usr/share/zoneinfo. The caller frees *zone. */
lapse_status lp_zone_open(lp_zone **zone, const char *name, lapse_error *error);
/* NULL is allowed. */
void lp_zone_free(lp_zone *zone);

/* Reads a zone from the bytes of a TZif file. */
lapse_status lp_zone_parse(lp_zone **zone, const char *name, const void *data, size_t size, lapse_error *error);

/* The offset, in seconds east of Greenwich, of a local time: seconds since 1970-01-01 on the zone's clock. zone NULL is
 * UTC. */
int64_t lp_zone_offset(const lp_zone *zone, int64_t local, lp_local *how);

#endif
