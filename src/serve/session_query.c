/* session_query.c: queries about one live history.
 *
 * With a sampled encoding the prediction is the mean over the stored parameter samples.
 */
#include "backend/backend.h"
#include "base/assert.h"
#include "base/finite.h"
#include "model/when_head.h"
#include "serve/attention_weights.h"
#include "serve/item_filter.h"
#include "serve/session.h"
#include "serve/top_k.h"

#include <math.h>
#include <string.h>

int lp_output_rows(const lapse_model *model, int wanted)
{
    enum { OUTPUT_ELEMENTS = 1 << 18 };
    int most = 1 + OUTPUT_ELEMENTS / (model->config.event_types + 1);
    return wanted < most ? wanted : most;
}

lapse_status lp_session_check(const lapse_session *session, double time, const char *name, lp_target *target,
                              lapse_error *error)
{
    const lapse_model *model = session->model;
    *target = lp_model_target_find(model, name);
    if (*target == LP_TARGET_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", name,
                       lapse_model_target(model, 0));
    if (session->count == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the history is empty: append at least one event before the query");
    if (!isfinite(time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the query time is not a number");
    if (time < session->times[session->count - 1])
        return lp_fail(error, LAPSE_ERROR_INPUT, "the query time, %.3f s, lies before the last event, at %.3f s", time,
                       session->times[session->count - 1]);
    return LAPSE_OK;
}

/* Runs a network: fills the answer's state, or its logits and, if it is not NULL, `output`. */
static lapse_status run_network(const lapse_session *session, lp_session_network network, double time, lp_target target,
                                int row, double *output, lapse_error *error)
{
    lp_decoder *decoder = network.decoder;
    LP_ASSERT(decoder);
    lp_history history = lp_session_history(session);
    lp_answer_begin(&decoder->answer, decoder->program, target, row, 1, output);
    return lp_decoder_query(decoder, network.cache, &history, time, error);
}

static lapse_status read_state(lapse_session *session, double time, float *state, lapse_error *error)
{
    size_t dims = (size_t)lp_model_state_dims(&session->model->config);
    LP_TRY(run_network(session, lp_session_events(session), time, LP_TARGET_EVENT, 0, NULL, error));
    memcpy(state, session->decoder->answer.state, dims * sizeof *state);
    return lp_all_finite(state, dims) ? LAPSE_OK : lp_model_fail_infinite(session->model, error);
}

lapse_status lp_session_check_state(const lapse_session *session, double time, lapse_error *error)
{
    lp_target target;
    if (!lp_model_ranks(&session->model->config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' has no states: train a network with " LP_OPTION("--task recommend"),
                       session->model->config.row->name);
    if (lp_model_score_rule(&session->model->config) != LP_SCORE_PRODUCT)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' has no states whose products with item vectors are scores: its scores are distances",
                       session->model->config.row->name);
    return lp_session_check(session, time, "event", &target, error);
}

lapse_status lapse_session_state(lapse_session *session, double time, float *state, lapse_error *error)
{
    LP_REQUIRE(error, session, state);
    LP_TRY(lp_session_check_state(session, time, error));
    return lp_session_state(session, time, state, error);
}

lapse_status lp_session_state(lapse_session *session, double time, float *state, lapse_error *error)
{
    lp_target target;
    LP_TRY(lp_session_check(session, time, "event", &target, error));
    LP_TRY(lp_session_hold(session, error));
    lapse_status status = read_state(session, time, state, error);
    lp_session_release(session);
    return status;
}

/* Fills `output` with probabilities; NULL: scores suffice, which baselines do not have. */
static lapse_status query(lapse_session *session, double time, lp_target target, double *output, lapse_error *error)
{
    const lapse_model *model = session->model;
    size_t size = (size_t)lp_model_target_size(&model->config, target);
    if (lp_model_is_network(&model->config)) {
        LP_TRY(run_network(session, lp_session_events(session), time, target, 0, output, error));
        return lp_answer_finish(&session->decoder->answer, session->decoder->program, error);
    }
    double at = lp_model_target_known(&model->config) ? time : session->times[session->count - 1];
    model->config.row->predict(model, &(lp_query){session->types, session->count, at}, output);
    return lp_all_finite_double(output, size) ? LAPSE_OK : lp_model_fail_infinite(model, error);
}

lapse_status lp_session_law(lapse_session *session, lp_next_time *law, lapse_error *error)
{
    lp_session_network network;
    LP_TRY(lp_session_times(session, &network, error));
    const lp_answer *answer = &network.decoder->answer;
    const lapse_model *model = network.decoder->program->model;
    int samples = network.decoder->program->samples;
    double last = session->times[session->count - 1];
    size_t outputs = (size_t)samples * (size_t)lp_network_time(&model->network)->cols;
    LP_TRY(run_network(session, network, last, LP_TARGET_EVENT, 0, NULL, error));
    if (!lp_all_finite(answer->time_outputs, outputs))
        return lp_model_fail_infinite(model, error);
    *law = lp_time_law_of(model, last, answer->time_outputs, samples, answer->time_memory);
    return LAPSE_OK;
}

lapse_status lp_session_probabilities(lapse_session *session, double time, double *probabilities, lapse_error *error)
{
    return query(session, time, LP_TARGET_EVENT, probabilities, error);
}

lapse_status lp_session_branches(lapse_session *session, lp_session_network network, lp_branch_rows *rows,
                                 const lp_branch_query *query, double *probabilities, lapse_error *error)
{
    lp_decoder *decoder = network.decoder;
    lp_history history = lp_session_history(session);
    lp_answer_begin(&decoder->answer, decoder->program, LP_TARGET_EVENT, 0, query->count, probabilities);
    LP_TRY(lp_decoder_query_branches(decoder, network.cache, &history, rows, query, error));
    return probabilities ? lp_answer_finish(&decoder->answer, decoder->program, error) : LAPSE_OK;
}

lapse_status lp_session_probabilities_at(lapse_session *session, int count, const double *time, double *probabilities,
                                         lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    lp_decoder *decoder = session->decoder;
    int32_t branch[LP_WITHIN_NODES], length[LP_WITHIN_NODES], type[LP_WITHIN_NODES], source[LP_WITHIN_NODES];
    double event_time[LP_WITHIN_NODES];
    float gap[LP_WITHIN_NODES];
    int64_t last = session->count - 1;
    bool together = decoder->program->incremental && count <= LP_WITHIN_NODES;
    for (int i = 0; !together && i < count; i++)
        LP_TRY(
            lp_session_probabilities(session, time[i], probabilities + (size_t)i * (size_t)config->event_types, error));
    if (!together)
        return LAPSE_OK;
    if (!decoder->at_times.data)
        LP_TRY(lp_branch_rows_init(&decoder->at_times, decoder->program,
                                   lp_output_rows(session->model, LP_WITHIN_NODES), 0, error));
    for (int i = 0; i < count; i++) {
        branch[i] = i;
        length[i] = 0;
        event_time[i] = session->times[last];
        type[i] = session->types[last];
        source[i] = (int32_t)last;
        gap[i] = lp_model_reads_gap(config) ? session->gaps[last] : NAN;
    }
    lp_branch_query query = {.count = count,
                             .branch = branch,
                             .length = length,
                             .event_time = event_time,
                             .type = type,
                             .source = source,
                             .gap = lp_model_reads_gap(config) ? gap : NULL,
                             .time = time};
    return lp_session_branches(session, lp_session_events(session), &decoder->at_times, &query, probabilities, error);
}

lapse_status lp_session_branch(lapse_session *session, lp_session_network network, double time, int row,
                               double *probabilities, lapse_error *error)
{
    lp_decoder *decoder = network.decoder;
    LP_TRY(run_network(session, network, time, LP_TARGET_EVENT, row, probabilities, error));
    return probabilities ? lp_answer_finish(&decoder->answer, decoder->program, error) : LAPSE_OK;
}

lapse_status lapse_session_predict(lapse_session *session, double time, double *probabilities, lapse_error *error)
{
    LP_REQUIRE(error, session, probabilities);
    return lapse_session_predict_target(session, time, "event", probabilities, error);
}

lapse_status lapse_session_predict_target(lapse_session *session, double time, const char *target,
                                          double *probabilities, lapse_error *error)
{
    LP_REQUIRE(error, session, target, probabilities);
    lp_target number;
    LP_TRY(lp_session_check(session, time, target, &number, error));
    LP_TRY(lp_session_hold(session, error));
    lapse_status status = query(session, time, number, probabilities, error);
    lp_session_release(session);
    return status;
}

void lp_session_select(const lapse_session *session, lp_answer *answer, float *scores, const lapse_item_filter *filter,
                       int64_t top, lapse_recommendation *best, int64_t *count)
{
    const lapse_model *model = session->model;
    bool probable = lp_model_has_probabilities(model);
    int names = lp_model_target_size(&model->config, answer->target);
    double all = probable ? 0 : lp_backend_ranking(lp_backend_find("cpu"))->log_sum(names, scores);
    lp_item_filter_apply(filter, model, session->types, session->count, answer->only, scores);
    lp_top_k found = {.best = best, .most = top};
    lp_top_k_offer(&found, scores, names, 0);
    lp_top_k_sort(&found);
    *count = found.size;
    for (int64_t i = 0; i < *count; i++) {
        double offset = filter && filter->offset ? (double)filter->offset[best[i].item] : 0;
        LP_ASSERT(best[i].item >= 0 && best[i].item < names);
        best[i].probability = probable ? answer->probabilities[best[i].item] : exp(best[i].score - offset - all);
    }
}

/* lp_session_best with a decoder. */
static lapse_status choose(lapse_session *session, double time, lp_target target, int64_t top,
                           const lapse_item_filter *filter, lapse_recommendation *best, int64_t *count,
                           lapse_error *error)
{
    lp_answer *answer = &session->decoder->answer;
    bool probable = lp_model_has_probabilities(session->model);
    int names = lp_model_target_size(&session->model->config, target);
    LP_TRY(query(session, time, target, probable ? answer->probabilities : NULL, error));
    answer->target = target;
    for (int i = 0; probable && i < names; i++)
        answer->scores[i] = (float)log(answer->probabilities[i]);
    if (!probable && answer->logits != answer->scores)
        memcpy(answer->scores, answer->logits, (size_t)names * sizeof *answer->scores);
    lp_session_select(session, answer, answer->scores, filter, top, best, count);
    return LAPSE_OK;
}

lapse_status lp_session_best(lapse_session *session, double time, const char *target, int64_t top,
                             const lapse_item_filter *filter, lapse_recommendation *best, int64_t *count,
                             lapse_error *error)
{
    lp_target number;
    LP_TRY(lp_session_check(session, time, target, &number, error));
    LP_TRY(lp_session_hold(session, error));
    lapse_status status = choose(session, time, number, top, filter, best, count, error);
    lp_session_release(session);
    return status;
}

lapse_status lapse_session_recommend(lapse_session *session, double time, int64_t top, bool unseen,
                                     lapse_recommendation *best, int64_t *count, lapse_error *error)
{
    LP_REQUIRE(error, session, best, count);
    if (top < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "top is %lld; it must be at least 1", (long long)top);
    lapse_item_filter filter = {.unseen = unseen};
    return lp_session_best(session, time, "event", top, &filter, best, count, error);
}

/* --------------------------------------------------------------------------------------------- attention ----- */

int lapse_model_attention_blocks(const lapse_model *model)
{
    const lp_graph *graph = &model->network.graph;
    int blocks = 0;
    while (lp_attention_node(graph, blocks) < graph->node_count)
        blocks++;
    return blocks;
}

int lapse_model_attention_heads(const lapse_model *model)
{
    const lp_graph *graph = &model->network.graph;
    int first = lp_attention_node(graph, 0);
    return first < graph->node_count ? graph->nodes[first]->attributes.heads : 0;
}

int64_t lapse_session_window(const lapse_session *session)
{
    int64_t context = session->model->config.context;
    return session->count < context ? session->count : context;
}

lapse_status lapse_session_attention(lapse_session *session, double time, int block, int head, double *weights,
                                     lapse_error *error)
{
    LP_REQUIRE(error, session, weights);
    const lapse_model *model = session->model;
    int blocks = lapse_model_attention_blocks(model), heads = lapse_model_attention_heads(model);
    if (blocks == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' has no attention whose weights add up to 1; the models attention and sasrec do",
                       model->config.row->name);
    if (block < 0 || block >= blocks)
        return lp_fail(error, LAPSE_ERROR_USAGE, "block is %d; the model has %d, numbered from 0", block, blocks);
    if (head < -1 || head >= heads)
        return lp_fail(error, LAPSE_ERROR_USAGE, "head is %d; the model has %d, numbered from 0, and -1 is their mean",
                       head, heads);
    lp_target target;
    LP_TRY(lp_session_check(session, time, NULL, &target, error));
    LP_TRY(lp_session_hold(session, error));
    lp_history history = lp_session_history(session);
    lapse_status status =
        lp_decoder_attention(session->decoder, &session->cache, &history, time, block, head, weights, error);
    lp_session_release(session);
    if (status == LAPSE_OK && !lp_all_finite_double(weights, (size_t)lapse_session_window(session)))
        status = lp_model_fail_infinite(model, error);
    return status;
}
