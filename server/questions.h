/* questions.h: a request about histories, read from its JSON; and the members that such requests share. */
#ifndef SERVER_QUESTIONS_H
#define SERVER_QUESTIONS_H

#include "answer_token.h"
#include "query_times.h"
#include "subjects.h"

enum { SRV_TOP_DEFAULT = 10, SRV_TOP_MAX = 10000, SRV_SUBJECTS_MAX = 1000, SRV_EVENTS_MAX = 10000 };

typedef struct srv_question {
    srv_subject *subject;
    double at;
    int64_t top;
    lapse_recommendation *best; /* [top]; inside srv_asked.best */
    int64_t count;              /* -1: it cannot be asked: `problem` says why */
    const char *problem;
    struct srv_reason *reasons; /* owned; of explain */
    int reason_count;
} srv_question;

/* What an event did to the first prediction. */
typedef struct srv_reason {
    double time;
    char event[128];
    double attention; /* weight of the last block, mean over heads */
    double influence; /* score with the event, less the score without it; NaN: not computed */
} srv_reason;

/* What a request asks, of one model; a request about many histories may be answered by several. */
typedef struct srv_view {
    srv_model *model;
    const char *target;
    lapse_item_filter filter;
    bool filtered, nothing;   /* nothing: the filter allows no item of the model */
    srv_selection *selection; /* a reference; NULL: none */
    int64_t *only, *exclude;  /* owned */
} srv_view;

typedef struct srv_asked {
    srv_request *request; /* its response */
    json_t *json;         /* what is asked: of the request, or of the token that is replayed (owned then) */
    srv_text token;       /* of a replay: its bytes; owned */
    const char *body;     /* the text of json */
    size_t body_size;
    bool pinned; /* as of `position`, by these models: a replay, or as_of */
    uint64_t models[SRV_TOKEN_MODELS], found;
    int model_count;
    double model_time; /* of several models: the time whose split decides; NaN: as in models */
    srv_subject *subjects;
    int subject_count;
    srv_view views[4];
    int view_count;
    srv_question *questions;
    int question_count;
    lapse_recommendation *best;
    srv_catalogue *catalogue; /* a reference */
    bool rank, explain, when; /* rank: POST /v1/rank, candidates are ordered */
    bool strict;              /* fewer predictions rather than popular events */
    int64_t top;              /* as requested; 0: all */
    int64_t position;         /* of the log, that the answers are about */
    double *horizons;         /* of POST /v1/when; owned; NULL: another request */
    int horizon_count;
    double now; /* what "now" means */
} srv_asked;

extern const srv_member srv_predict_members[], srv_rank_members[], srv_predict_response[], srv_replay_members[],
    srv_replay_response[];

/* Sets json and body: of the request itself, or of the token that it replays. */
bool srv_ask_begin(srv_asked *asked);
/* Reads histories and events: subjects without sessions. Sets the problem of the request on failure. */
bool srv_ask_subjects(srv_asked *asked);
/* Reads the rest, when the subjects are open: questions. */
bool srv_ask_questions(srv_asked *asked);
srv_view *srv_ask_view(srv_asked *asked, srv_model *model);
void srv_ask_write(srv_asked *asked);
void srv_ask_clear(srv_asked *asked);

/* Whether a name of a history is usable. */
bool srv_name_check(const char *name, const char *field, srv_problem *problem);

#endif
