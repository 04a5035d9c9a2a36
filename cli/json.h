/* json.h: streaming writer of one JSON value, indented or on one line. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_JSON_DEPTH 16

typedef struct cli_json {
    FILE *file;
    int depth;                   /* number of open containers */
    bool filled[CLI_JSON_DEPTH]; /* the container at this depth has a member */
    bool compact;                /* on one line */
} cli_json;

/* Initialize with {.file = stdout}. name is NULL for the outermost value and within an array. */
void cli_json_object(cli_json *json, const char *name);
void cli_json_array(cli_json *json, const char *name);
void cli_json_end(cli_json *json, char bracket); /* '}' or ']'; the outermost one also ends the line */
void cli_json_text(cli_json *json, const char *name, const char *text);
void cli_json_whole(cli_json *json, const char *name, int64_t value);
void cli_json_seed(cli_json *json, const char *name, uint64_t value);
/* digits: significant digits. NaN and infinities become null. */
void cli_json_number(cli_json *json, const char *name, double value, int digits);
void cli_json_bool(cli_json *json, const char *name, bool value);

#endif
