/* csv_cell.c: see csv_cell.h. */
#include "csv_cell.h"

#include <string.h>

void cli_csv_field(FILE *file, const char *text, bool safe)
{
    bool guard = safe && *text && strchr("=+-@\t\r\n", *text);
    bool quote = strpbrk(text, ",\"\r\n") != NULL || *text == ' ';
    if (quote)
        fputc('"', file);
    if (guard)
        fputc('\'', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    if (quote)
        fputc('"', file);
}
