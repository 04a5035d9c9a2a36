/* json_reader.h: reads JSON text (RFC 8259) in place. Nothing is allocated, so there is no failure but malformed text.
 *
 * lp_json_valid checks the whole text once. The other functions move a cursor through text that it has accepted, and return
 * false if what is there is something else; the cursor then stays.
 */
#ifndef LP_JSON_READER_H
#define LP_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lp_json {
    const char *at, *end;
} lp_json;

/* Whether the text is one JSON value, nested up to 64 deep, without the escape of a NUL character. Numbers are not limited,
 * and an object may have a name twice. */
bool lp_json_valid(const char *text, size_t size);
/* The same; *where is the offset of the first malformed byte, or size if the text ends too early. */
bool lp_json_check(const char *text, size_t size, size_t *where);

/* Takes a punctuation character. */
bool lp_json_take(lp_json *json, char character);

/* A string as it is written, between its quotes. */
typedef struct lp_json_text {
    const char *begin, *end;
} lp_json_text;

/* Takes a string. */
bool lp_json_string(lp_json *json, lp_json_text *text);

/* Decodes a string into out, of end - begin + 1 bytes, and terminates it by NUL. */
void lp_json_decode(lp_json_text text, char *out);

/* Takes a number that is an integer of 64 bits, written without a fraction or an exponent. */
bool lp_json_integer(lp_json *json, int64_t *value);

/* Takes a number within the range of double, or null as NaN. */
bool lp_json_number(lp_json *json, double *value);

/* Takes true or false. */
bool lp_json_bool(lp_json *json, bool *value);

/* Takes a value of any type; its text as it is written, with the quotes of a string. */
bool lp_json_any(lp_json *json, lp_json_text *text);

/* The number of members of the object at the cursor, which does not move; 0 if it is not an object. */
size_t lp_json_members(const lp_json *json);

/* The number of elements of the array at the cursor, which does not move; 0: there is no array. */
int lp_json_count(lp_json json);

#endif
