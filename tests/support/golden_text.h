/* golden_text.h: a text that a test makes, against one that was recorded in tests/golden. */
#ifndef LP_GOLDEN_TEXT_H
#define LP_GOLDEN_TEXT_H

#include <stddef.h>

/* Fails the test at the first line that differs. With the environment variable LAPSE_TEST_RECORD the file is written anew: read its
 * diff. */
void golden_text_check(const char *path, const char *text, size_t size);

#endif
