/* error.c: fills lapse_error. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

lapse_status lp_fail_list(lapse_error *error, lapse_status status, const char *file, int64_t line, int64_t column,
                          const char *format, va_list arguments)
{
    if (error) {
        error->status = status;
        error->line = line;
        error->column = column;
        snprintf(error->file, sizeof error->file, "%s", file ? file : "");
        char sentence[2 * sizeof error->message];
        vsnprintf(sentence, sizeof sentence, format, arguments);
        error->value[0] = 0;
        lp_wording_subject(sentence, error->option, sizeof error->option);
        lp_wording_write(lp_wording(), sentence, error->message, sizeof error->message);
    }
    return status;
}

lapse_status lp_fail(lapse_error *error, lapse_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lp_fail_list(error, status, NULL, 0, 0, format, arguments);
    va_end(arguments);
    return status;
}

lapse_status lp_fail_at(lapse_error *error, lapse_status status, const char *file, int64_t line, int64_t column,
                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lp_fail_list(error, status, file, line, column, format, arguments);
    va_end(arguments);
    return status;
}

lapse_status lp_fail_errno(lapse_error *error, const char *verb, const char *file)
{
    int code = errno;
    if (code == ENOMEM)
        return lp_fail_at(error, LAPSE_ERROR_MEMORY, file, 0, 0, "cannot %s: out of memory", verb);
    return lp_fail_at(error, LAPSE_ERROR_FILE, file, 0, 0, "cannot %s: %s", verb, strerror(code));
}

lapse_status lp_fail_memory(lapse_error *error, const char *what, size_t size)
{
    return lp_fail(error, LAPSE_ERROR_MEMORY, "out of memory: %s needs %.1f MB", what, (double)size / 1e6);
}

lapse_status lp_fail_null(lapse_error *error, const char *function, const char *arguments, size_t index)
{
    for (; index > 0; index--)
        arguments += strcspn(arguments, ",") + 1;
    arguments += strspn(arguments, " ");
    return lp_fail(error, LAPSE_ERROR_USAGE, "%s: %.*s is NULL", function, (int)strcspn(arguments, ","), arguments);
}

const char *lapse_status_name(lapse_status status)
{
    static const char *const names[] = {"ok", "memory", "usage", "input", "file", "format", "unknown", "internal"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

const char *lapse_version(void)
{
    return LAPSE_VERSION;
}
