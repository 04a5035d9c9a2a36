/* error.h: how a failure travels: a status returned, a sentence in the caller's lapse_error. */
#ifndef LP_ERROR_H
#define LP_ERROR_H

#include "lapse.h"

/* Fills *error (may be NULL) and returns status, so that a failure is one line: return lp_fail(...). */
lapse_status lp_fail(lapse_error *error, lapse_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for input: where says the file, line and column (0: none applies). */
lapse_status lp_fail_at(lapse_error *error, lapse_status status, const char *file, int64_t line, int64_t column,
                        const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The same for a refused system call: appends what errno says. verb is "open", "read", "write", ... */
lapse_status lp_fail_errno(lapse_error *error, const char *verb, const char *file);

/* Out of memory while making `what` of `size` bytes. */
lapse_status lp_fail_memory(lapse_error *error, const char *what, size_t size);

/* Runs a call and passes its failure on. */
#define LP_TRY(call)                          \
    do {                                      \
        lapse_status lp_try_status_ = (call); \
        if (lp_try_status_ != LAPSE_OK)       \
            return lp_try_status_;            \
    } while (0)

#endif
