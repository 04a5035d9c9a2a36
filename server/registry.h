/* registry.h: the models of a server by name, aliases of them, and the split of histories between aliases. */
#ifndef SERVER_REGISTRY_H
#define SERVER_REGISTRY_H

#include "models.h"
#include "store.h"

enum { SRV_MODELS_MAX = 16, SRV_OLD_MODELS = 4 };

typedef struct srv_named_model {
    char *name; /* owned: the file without folder and ending */
    srv_model *model;
} srv_named_model;

typedef struct srv_split {
    char alias[32];
    srv_model *model; /* not a reference: of a named model */
    int percent;
} srv_split;

typedef struct srv_registry {
    pthread_mutex_t mutex;
    char *folder; /* of the model files; owned */
    srv_named_model models[SRV_MODELS_MAX];
    int count;
    srv_split aliases[4]; /* the first is "live" */
    int alias_count;
    srv_model *old[SRV_OLD_MODELS]; /* of former times, for replays */
    int old_next;
    srv_store store; /* that remembers which model was live at which time */
} srv_registry;

/* Begins with one model file, which is live. */
bool srv_registry_new(srv_registry *registry, const char *model, const char *store, lapse_error *error);
void srv_registry_clear(srv_registry *registry);

/* The models that answer at one moment, as references; and a reference to the one of a history (NULL: events of a request). A
 * request uses one lineup, so that a swap does not mix its answers. */
typedef struct srv_lineup {
    srv_model *models[4];
    int percents[4], count;
} srv_lineup;

srv_lineup srv_registry_lineup(srv_registry *registry);
void srv_lineup_drop(srv_lineup *lineup);
srv_model *srv_lineup_pick(const srv_lineup *lineup, const char *history);
/* A reference to the model with a fingerprint, which is loaded if its file still has these bytes; NULL: it is gone. */
srv_model *srv_registry_find(srv_registry *registry, uint64_t fingerprint);
/* The fingerprint of the model that answered about a history at a time; 0: there was none. */
uint64_t srv_registry_at(srv_registry *registry, const char *history, double time);

/* Loads a file of the folder, validates it, and puts it in the place of the model with this name. *before: the model that it
 * replaces, a reference, or NULL. */
bool srv_registry_load(srv_registry *registry, const char *name, srv_model **before, srv_problem *problem);
bool srv_registry_unload(srv_registry *registry, const char *name, srv_model **before, srv_problem *problem);
/* {"live": "a", "canary": "b"}, {"live": 90, "canary": 10} */
bool srv_registry_alias(srv_registry *registry, const json_t *aliases, const json_t *split, srv_problem *problem);
/* Loads all files again (SIGHUP); prints what fails, which leaves the old model in place. `drop` takes over what is replaced. */
void srv_registry_reload(srv_registry *registry, void (*drop)(void *context, srv_model *before), void *context);
void srv_registry_write(srv_registry *registry, srv_text *out);

#endif
