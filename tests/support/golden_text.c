/* golden_text.c: reads, compares and records. */
#include "support/golden_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

void golden_text_check(const char *path, const char *text, size_t size)
{
    FILE *file = getenv("LAPSE_TEST_RECORD") ? fopen(path, "wb") : NULL;
    if (file) {
        assert_int_equal(fwrite(text, 1, size, file), size);
        fclose(file);
    }
    file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    int line = 1;
    const char *begin = text;
    for (const char *at = text; at < text + size; at++) {
        if (getc(file) != (unsigned char)*at)
            fail_msg("%s:%d differs: %.100s", path, line, begin);
        line += *at == '\n';
        begin = *at == '\n' ? at + 1 : begin;
    }
    assert_int_equal(getc(file), EOF);
    fclose(file);
}
