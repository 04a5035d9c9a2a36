/* error.h: error reporting: functions return a status and fill the caller's lapse_error with a message. */
#ifndef LP_ERROR_H
#define LP_ERROR_H

#include "lapse.h"

#include <stdarg.h>

/* Fills *error (may be NULL) and returns status: return lp_fail(...). */
lapse_status lp_fail(lapse_error *error, lapse_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the position in an input file: line and column from 1, 0 if not applicable. */
lapse_status lp_fail_at(lapse_error *error, lapse_status status, const char *file, int64_t line, int64_t column,
                        const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The same with a list of arguments, for functions that have `...` themselves. */
lapse_status lp_fail_list(lapse_error *error, lapse_status status, const char *file, int64_t line, int64_t column,
                          const char *format, va_list arguments);

/* The same for a failed system call: appends the text of errno. verb is "open", "read", "write", ... */
lapse_status lp_fail_errno(lapse_error *error, const char *verb, const char *file);

/* Out of memory when allocating `size` bytes for `what`. */
lapse_status lp_fail_memory(lapse_error *error, const char *what, size_t size);

/* Returns the status of a call that fails. */
#define LP_TRY(call)                          \
    do {                                      \
        lapse_status lp_try_status_ = (call); \
        if (lp_try_status_ != LAPSE_OK)       \
            return lp_try_status_;            \
    } while (0)

#endif
