/* request_schema.h: the members of a JSON object, as a table. One table validates requests, and is printed as JSON Schema. */
#ifndef SERVER_REQUEST_SCHEMA_H
#define SERVER_REQUEST_SCHEMA_H

#include <jansson.h>

#include "text_buffer.h"

/* Types of a value, which are or-ed. */
enum { SRV_STRING = 1, SRV_NUMBER = 2, SRV_WHOLE = 4, SRV_BOOL = 8, SRV_OBJECT = 16, SRV_ARRAY = 32, SRV_NULL = 64 };

/* A member of an object. A table ends with a row without a name. */
typedef struct srv_member {
    const char *name;
    unsigned types;
    bool required;
    const char *help;
    const struct srv_member *members; /* of an object, and of objects in an array; NULL: any */
    unsigned element;                 /* types of the elements of an array; 0: any */
    double low, high;                 /* limits of a number, unless both are 0 */
    int64_t most;                     /* elements of an array, bytes of a string; 0: SRV_STRING_MAX, any elements */
    const char *const *choices;       /* of a string: NULL-terminated; NULL: any */
} srv_member;

enum { SRV_STRING_MAX = 1024 };

/* What a request has done wrong: a sentence, and where. */
typedef struct srv_problem {
    int status; /* HTTP */
    char detail[512];
    char field[160];  /* such as events[3].time; "": the whole request */
    int64_t position; /* byte of the body, from 0; -1: not known */
} srv_problem;

/* Fills a problem and returns false. */
bool srv_refuse(srv_problem *problem, int status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Checks an object against a table. */
bool srv_schema_check(const json_t *object, const srv_member *members, srv_problem *problem);

/* Writes the JSON Schema of an object. Responses have no limits on names: further members may be added (`open`). */
void srv_schema_write(srv_text *text, const srv_member *members, bool open);

/* "schema":{...} of the value of one member. */
void srv_schema_write_values(srv_text *text, const srv_member *member);

#endif
