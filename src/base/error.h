/* error.h: error reporting: functions return a status and fill the caller's lapse_error with a message. */
#ifndef LP_ERROR_H
#define LP_ERROR_H

#include "base/wording.h"

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

/* LAPSE_ERROR_USAGE: the public function was given NULL for argument `index` of a list, which is separated by commas. */
lapse_status lp_fail_null(lapse_error *error, const char *function, const char *arguments, size_t index);

/* For the first lines of public functions: returns LAPSE_ERROR_USAGE if one of the pointers is NULL. All of them are
 * evaluated, so a member of a struct is checked after the struct. */
#define LP_REQUIRE(error, ...)                                                            \
    do {                                                                                  \
        const void *const lp_require_[] = {__VA_ARGS__};                                  \
        for (size_t lp_i_ = 0; lp_i_ < sizeof lp_require_ / sizeof *lp_require_; lp_i_++) \
            if (!lp_require_[lp_i_])                                                      \
                return lp_fail_null(error, __func__, #__VA_ARGS__, lp_i_);                \
    } while (0)

/* Returns the status of a call that fails. */
#define LP_TRY(call)                          \
    do {                                      \
        lapse_status lp_try_status_ = (call); \
        if (lp_try_status_ != LAPSE_OK)       \
            return lp_try_status_;            \
    } while (0)

#endif
