/* wording.h: options within sentences. The library marks them, and a sentence for a caller has them as the caller types them:
 * --event item on a command line, event="item" in Python (lapse_wording_set). */
#ifndef LP_WORDING_H
#define LP_WORDING_H

#include "lapse_lab.h"

/* An option in a literal: LP_OPTION("--event item"), LP_OPTION("--%s"); a value may follow the name after a space, in single
 * quotes if it has spaces. LP_FLAG: one without a value, which switches something on, or off if it begins with --no-. */
#define LP_OPTION(text) "\1" text "\2"
#define LP_FLAG(text) "\1" text "\3"

/* Copies a sentence with its options in this wording, cut to fit. Returns out. */
char *lp_wording_write(lapse_wording wording, const char *sentence, char *out, size_t size);

/* The wording of lapse_wording_set. */
lapse_wording lp_wording(void);

/* The name of the first option of a sentence that begins with it: what the sentence is about; otherwise "". Returns out. */
char *lp_wording_subject(const char *sentence, char *out, size_t size);

#endif
