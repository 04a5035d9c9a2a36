/* results.c: see results.h. */
#include "results.h"

#include <stdlib.h>

#include "console.h"
#include "lapse_lab.h"

int cli_results_write(const char *output, cli_results_print print, const void *results)
{
    char *text = NULL;
    size_t size = 0;
    lapse_error error;
    if (!output)
        return print(results, stdout) ? CLI_DONE : cli_fail("out of memory");
    FILE *memory = open_memstream(&text, &size);
    bool whole = memory && print(results, memory);
    if (memory)
        whole = fclose(memory) == 0 && whole;
    int result = CLI_DONE;
    if (!whole)
        result = cli_fail("out of memory");
    else if (lapse_file_write(output, text, size, &error) != LAPSE_OK)
        result = cli_error(&error);
    free(text);
    return result;
}
