/* verb_serve.c: `lapse serve`: the options of the server, each of which has an environment variable too. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/serve.h"
#include "verb.h"

#ifdef LAPSE_SERVER

/* LAPSE_LISTEN for --listen: the default of an option that is not on the command line. */
static const char *from_environment(const char *name, const char *value)
{
    char variable[64] = "LAPSE_";
    size_t used = strlen(variable);
    for (; *name && used + 1 < sizeof variable; name++)
        variable[used++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    variable[used] = 0;
    const char *found = getenv(variable);
    return found && *found ? found : value;
}

static int run(void *settings, const cli_call *call)
{
    (void)call;
    return srv_run(settings);
}

static void defaults(void *settings)
{
    srv_options *s = settings;
    srv_options_default(s);
    s->listen = from_environment("listen", s->listen);
    s->store = from_environment("store", s->store);
    s->import = from_environment("import", s->import);
    s->token_file = from_environment("token-file", s->token_file);
    s->tls_cert = from_environment("tls-cert", s->tls_cert);
    s->tls_key = from_environment("tls-key", s->tls_key);
    lapse_duration_parse(from_environment("keep", "0s"), &s->keep, NULL);
    s->keep_events = strtoll(from_environment("keep-events", "0"), NULL, 10);
    s->insecure = from_environment("insecure", NULL) != NULL;
    s->memory = strtod(from_environment("memory", "1e9"), NULL);
    s->threads = (int)strtol(from_environment("threads", "0"), NULL, 10);
}

#else

static int run(void *settings, const cli_call *call)
{
    (void)settings;
    (void)call;
    return cli_fail("this lapse was built without the server. On Debian and Ubuntu, install its libraries and build again: "
                    "sudo apt-get install -y libmicrohttpd-dev libsqlite3-dev libjansson-dev");
}

static void defaults(void *settings)
{
    *(srv_options *)settings = (srv_options){.listen = "127.0.0.1:8080", .memory = 1e9};
}

#endif

static const cli_argument arguments[] = {
    {"MODEL", offsetof(srv_options, model), "model file from `lapse train`", false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "listen", .type = CLI_TEXT, .offset = offsetof(srv_options, listen), .placeholder = "HOST:PORT",
     .help = "address to listen at; port 0 is any free port"},
    {.name = "store", .type = CLI_TEXT, .offset = offsetof(srv_options, store), .placeholder = "FILE.db",
     .help = "SQLite file of the histories, created if missing; or postgresql://..., which several servers may share", .unset = "a temporary file"},
    {.name = "keep", .type = CLI_DURATION, .offset = offsetof(srv_options, keep), .placeholder = "DURATION",
     .help = "delete events that are older, at the start and once an hour, such as 2y", .unset = "for ever"},
    {.name = "keep-events", .type = CLI_COUNT, .offset = offsetof(srv_options, keep_events), .placeholder = "N",
     .help = "delete all but the newest N events of a history, likewise", .unset = "all"},
    {.name = "memory", .type = CLI_NUMBER, .offset = offsetof(srv_options, memory), .placeholder = "BYTES",
     .help = "histories with their sessions to keep in memory, in bytes"},
    {.name = "import", .type = CLI_TEXT, .offset = offsetof(srv_options, import), .placeholder = "EVENTS",
     .help = "events to store at the start: a dataset file or text; those that are there already are not added again",
     .unset = "none", .file = CLI_INPUT_FILE},
    {.name = "token-file", .type = CLI_TEXT, .offset = offsetof(srv_options, token_file), .placeholder = "FILE",
     .help = "lines of a right (read, write, admin) and a bearer token; required unless only this machine can connect",
     .unset = "no token is needed", .file = CLI_INPUT_FILE},
    {.name = "tls-cert", .type = CLI_TEXT, .offset = offsetof(srv_options, tls_cert), .placeholder = "FILE",
     .help = "certificate chain in PEM, with --tls-key", .unset = "no TLS", .file = CLI_INPUT_FILE},
    {.name = "tls-key", .type = CLI_TEXT, .offset = offsetof(srv_options, tls_key), .placeholder = "FILE",
     .help = "its private key in PEM", .unset = "no TLS", .file = CLI_INPUT_FILE},
    {.name = "insecure", .type = CLI_FLAG, .offset = offsetof(srv_options, insecure),
     .help = "other machines may connect without TLS, as behind a proxy"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(srv_options, threads), .placeholder = "N",
     .help = "threads that answer queries", .unset = "all cores"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse serve shop.safetensors",
    "lapse serve shop.safetensors --listen 127.0.0.1:9000",
    NULL,
};

const cli_verb cli_verb_serve = {
    .name = "serve",
    .summary = "answer predictions over HTTP",
    .description = "Serves a model: what comes next at a given time, as HTTP and JSON (docs/serve.md). /openapi.json describes "
                   "the interface. SIGTERM stops the server after every accepted request has been answered. Every option "
                   "has an environment variable: LAPSE_LISTEN for --listen.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(srv_options),
    .defaults = defaults,
    .run = run,
};
