/* item_catalogue.h: items with fields, as of a position of the log; and which of them a request may be answered with. A catalogue
 * does not change: a new one replaces it, and requests finish on the one that they began with. */
#ifndef SERVER_ITEM_CATALOGUE_H
#define SERVER_ITEM_CATALOGUE_H

#include "models.h"
#include "store.h"

enum { SRV_SELECTIONS = 32 };

/* The items that a filter allows, and their boosts; shared by reference. */
typedef struct srv_selection {
    atomic_int references;
    char *filter, *boost; /* owned; "": none */
    uint64_t fingerprint; /* of the model whose event types they are */
    uint64_t *only;       /* a bit for each event type */
    float *offset;        /* NULL: no boost */
} srv_selection;

typedef struct srv_catalogue {
    atomic_int references;
    int64_t position; /* of the newest change in it */
    json_t *items;    /* name -> {"fields": {...}, "available": bool}; owned */
    char **popular;   /* names of events, the most frequent first; owned */
    int popular_count;
    bool unavailable; /* some item is not available */
    pthread_mutex_t mutex;
    srv_selection *selections[SRV_SELECTIONS]; /* the newest filters; the oldest is replaced */
    int selection_next;
} srv_catalogue;

/* Reads the catalogue at a position. */
bool srv_catalogue_read(srv_store *store, int64_t position, srv_catalogue **catalogue);
srv_catalogue *srv_catalogue_take(srv_catalogue *catalogue);
void srv_catalogue_drop(srv_catalogue *catalogue);

/* The selection of a filter and a boost (NULL: none); *selection is NULL if nothing restricts. The caller drops it. */
bool srv_catalogue_select(srv_catalogue *catalogue, const srv_model *model, const char *filter, const char *boost,
                          srv_selection **selection, srv_problem *problem);
void srv_selection_drop(srv_selection *selection);

/* Writes a new list of popular events, if it has changed; *written says whether. In a transaction of its own. */
bool srv_popular_update(srv_store *store, bool *written, int64_t *position);

#endif
