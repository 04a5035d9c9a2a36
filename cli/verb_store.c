/* verb_store.c: `lapse store`: an online backup of the histories of `lapse serve`. */
#include <string.h>

#include "server/serve.h"
#include "verb.h"

typedef struct store_settings {
    const char *action, *store, *output;
} store_settings;

static int run(void *settings, const cli_call *call)
{
    store_settings *s = settings;
    if (strcmp(s->action, "backup") != 0)
        return cli_usage(call->verb, "the action is backup, not '%.40s'", s->action);
#ifdef LAPSE_SERVER
    char message[512];
    if (!srv_backup(s->store, s->output, message))
        return cli_fail("%s", message);
    cli_note("wrote %s; an erased history is erased there too, as long as the file stays in its place", s->output);
    return CLI_DONE;
#else
    return cli_fail("this lapse was built without the server");
#endif
}

static const cli_argument arguments[] = {
    {"ACTION", offsetof(store_settings, action), "backup", false, CLI_NO_FILE},
    {"STORE", offsetof(store_settings, store), "SQLite file of lapse serve --store", false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(store_settings, output), .placeholder = "FILE",
     .help = "file to write", .required = true, .file = CLI_OUTPUT_FILE},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse store backup shop.db -o backup.db", NULL};

const cli_verb cli_verb_store = {
    .name = "store",
    .summary = "back up the histories of lapse serve",
    .description = "Writes a copy of the store, consistent and complete, while the server runs. The server erases histories in "
                   "the backups that it knows of, too. PostgreSQL has its own tools: pg_dump.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(store_settings),
    .run = run,
};
