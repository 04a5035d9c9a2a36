/* results.c: see results.h. */
#include "results.h"

#include <stdlib.h>
#include <unistd.h>

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
        whole = fclose(memory) == 0 && whole && text; /* without memory for its end fclose succeeds, and there is no text */
    int result = CLI_DONE;
    if (!whole)
        result = cli_fail("out of memory");
    else if (lapse_file_write(output, text, size, &error) != LAPSE_OK)
        result = cli_error(&error);
    free(text);
    return result;
}

int64_t cli_results_shown(const char *output, bool table, int64_t histories)
{
    enum { AT_TERMINAL = 20 };
    return table && !output && histories > AT_TERMINAL && isatty(STDOUT_FILENO) == 1 ? AT_TERMINAL : histories;
}

void cli_results_rest(int64_t shown, int64_t histories)
{
    if (shown < histories)
        cli_note("the first %s of %s histories; -o FILE or a pipe has all, --csv and --json too", cli_count(shown).text,
                 cli_count(histories).text);
}
