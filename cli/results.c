/* results.c: see results.h. */
#include "results.h"

#include "ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "console.h"
#include "lapse_lab.h"

/* skip: leaves out the first line. */
static int write_text(const char *output, cli_results_print print, const void *results, bool skip)
{
    char *text = NULL;
    size_t size = 0;
    lapse_error error;
    if (!output)
        return print(results, stdout) ? CLI_DONE : cli_fail("out of memory");
    FILE *memory = open_memstream(&text, &size);
    bool whole = memory && print(results, memory);
    if (memory)
        whole =
            fclose(memory) == 0 && whole && text; /* without memory for its end fclose succeeds, and there is no text */
    int result = CLI_DONE;
    if (!whole)
        result = cli_fail("out of memory");
    size_t head = whole && skip && memchr(text, '\n', size) ? strcspn(text, "\n") + 1 : 0;
    if (whole && lapse_file_write(output, text + head, size - head, &error) != LAPSE_OK)
        result = cli_error(&error);
    free(text);
    return result;
}

int cli_results_write(const char *output, cli_results_print print, const void *results)
{
    return write_text(output, print, results, false);
}

int cli_results_write_part(const char *output, cli_results_print print, const void *results)
{
    char name[4096];
    int rank = lapse_comm_rank(cli_ranks());
    if (!cli_ranks())
        return cli_results_write(output, print, results);
    if (snprintf(name, sizeof name, "%s.part-%05d", output, rank) >= (int)sizeof name)
        return cli_fail("%s: the name is too long", output);
    return write_text(name, print, results, rank > 0);
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
