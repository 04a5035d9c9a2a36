/* file_kind.h: recognizes files that are not delimited text or JSON Lines by their first bytes. */
#ifndef LP_FILE_KIND_H
#define LP_FILE_KIND_H

#include "base/error.h"

/* An error that names the kind of a file and the way to read it, if its first bytes are those of a known kind. */
lapse_status lp_file_kind_check(const char *text, size_t size, const char *file, lapse_error *error);

/* Whether a text is JSON Lines: its first character that is not blank is a brace. */
bool lp_is_json_lines(const char *text, size_t size);

#endif
