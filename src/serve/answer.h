/* answer.h: what a query returns, in memory of the thread that queries. */
#ifndef LP_ANSWER_H
#define LP_ANSWER_H

#include "serve/program.h"

typedef struct lp_answer {
    lp_target target;
    int first_row, rows; /* that the outputs of the run are, of `state` and `time_outputs` */
    int sample;          /* parameter sample that the next output belongs to */
    double *output;      /* [rows x classes], of the caller: where probabilities go; NULL: scores suffice */
    const float *logits; /* scores or logits: of the last row where the model ranks */
    float *
        state; /* [rows of a run x dims]: of a recommender, the mean over parameter samples, as in evaluation; owned, as
                            * are those below */
    float *
        time_outputs; /* [rows of a run x parameter samples x columns of lp_network_time]: of models that predict times */
    double *time_memory; /* [lp_time_law_size]: the numbers of the newest law */
    float *scores;       /* [score_rows x classes of the largest target]: of a recommender, or logs of probabilities */
    int score_rows;      /* rows that are scored together */
    double *probabilities; /* [classes]: of baselines, and of means over parameter samples */
    uint64_t *only;        /* a bit set of a filter (item_filter.h) */
} lp_answer;

/* After an error, clear it. */
lapse_status lp_answer_init(lp_answer *answer, const lp_program *program, lapse_error *error);
void lp_answer_clear(lp_answer *answer);

/* Whether predictions consist of probabilities rather than scores. */
bool lp_model_has_probabilities(const lapse_model *model);

/* Begins the outputs of a run about `rows` rows, for a target. */
void lp_answer_begin(lp_answer *answer, const lp_program *program, lp_target target, int first_row, int rows,
                     double *output);

/* After several runs whose rows of the states follow each other: they are one answer about `rows` rows. */
void lp_answer_join(lp_answer *answer, int rows, double *output);

/* Adds the outputs of a run for one parameter sample. */
void lp_answer_add(lp_answer *answer, const lp_program *program, const lp_outcome *outcome);

/* Scores all items for rows first .. first + count - 1 of a recommender, count <= score_rows: answer->scores [count x items]. Fails
 * if one is not finite. */
lapse_status lp_answer_score(lp_answer *answer, const lp_program *program, int first, int count, lapse_error *error);

/* After the runs: scores the items of a recommender for each row, and checks all outputs of the target. */
lapse_status lp_answer_finish(lp_answer *answer, const lp_program *program, lapse_error *error);

#endif
