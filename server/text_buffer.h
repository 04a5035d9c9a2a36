/* text_buffer.h: a growing buffer of bytes, and JSON written into it.
 *
 * Out of memory is remembered in `failed`, so that a writer checks once, at the end. A buffer is initialized with {0}. */
#ifndef SERVER_TEXT_BUFFER_H
#define SERVER_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct srv_text {
    char *data; /* owned; not terminated, unless srv_text_string has been called */
    size_t size, capacity;
    bool failed;
} srv_text;

void srv_text_clear(srv_text *text);
void srv_text_bytes(srv_text *text, const void *data, size_t size);
void srv_text_add(srv_text *text, const char *string);
void srv_text_format(srv_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The bytes, followed by a 0 that does not count; NULL if memory has run out. Valid until the next addition. */
const char *srv_text_string(srv_text *text);

/* A JSON string with its quotes. Bytes are UTF-8. */
void srv_text_quote(srv_text *text, const char *string);
/* A JSON number with the fewest digits that read back as the same double; null for one that is not finite. */
void srv_text_number(srv_text *text, double value);
void srv_text_whole(srv_text *text, int64_t value);

/* Members of the innermost object: a comma if it has a member already, then the name. */
void srv_text_name(srv_text *text, const char *name);
void srv_text_open(srv_text *text, char bracket);  /* '{' or '['; after a value, a comma first */
void srv_text_close(srv_text *text, char bracket); /* '}' or ']' */
void srv_text_comma(srv_text *text);               /* before an element, unless it is the first */
void srv_text_member(srv_text *text, const char *name, const char *string);
void srv_text_member_number(srv_text *text, const char *name, double value);
void srv_text_member_whole(srv_text *text, const char *name, int64_t value);
void srv_text_member_bool(srv_text *text, const char *name, bool value);

#endif
