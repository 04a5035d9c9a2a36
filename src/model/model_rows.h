/* model_rows.h: the rows of the model table, each in a file of its own. */
#ifndef LP_MODEL_ROWS_H
#define LP_MODEL_ROWS_H

#include "model/model.h"

extern const lp_model_row lp_model_attention, lp_model_sasrec, lp_model_lstm, lp_model_gru4rec, lp_model_rnn_attention,
    lp_model_caser, lp_model_transrec, lp_model_rmtpp, lp_model_timejoint, lp_model_markov, lp_model_item_markov,
    lp_model_popularity, lp_model_recency, lp_model_majority;

#endif
