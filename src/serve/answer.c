/* answer.c: outputs of queries, over parameter samples. */
#include "serve/answer.h"

#include "base/assert.h"
#include "base/finite.h"
#include "model/when_head.h"
#include "serve/item_filter.h"

#include <string.h>

bool lp_model_has_probabilities(const lapse_model *model)
{
    const lp_model_config *config = &model->config;
    return !lp_model_is_network(config) ||
           (lp_network_samples(&model->network) > 1 && config->task != LP_TASK_RECOMMEND);
}

/* Rows whose scores of all classes stay in a core's cache, or a few where they do not. */
static int score_rows(size_t classes, int rows)
{
    enum { ELEMENTS = 1 << 17, FEW = 4 };
    int fit = (int)(ELEMENTS / (classes + 1)), most = rows < FEW ? rows : FEW;
    return fit > rows ? rows : fit > most ? fit : most;
}

lapse_status lp_answer_init(lp_answer *answer, const lp_program *program, lapse_error *error)
{
    const lapse_model *model = program->model;
    const lp_model_config *config = &model->config;
    size_t names = 0, rows = (size_t)program->rows, samples = (size_t)program->samples, times = 0, law = 0;
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        size_t size = lp_model_predicts(config, (lp_target)t) ? (size_t)lp_model_target_size(config, (lp_target)t) : 0;
        names = size > names ? size : names;
    }
    if (lp_network_time(&model->network)) {
        times = rows * samples * (size_t)lp_network_time(&model->network)->cols;
        law = lp_time_law_size(model, program->samples);
    }
    size_t states = lp_model_ranks(config) ? rows * (size_t)lp_model_state_dims(config) : 0;
    answer->state = lp_alloc(states, sizeof *answer->state);
    answer->time_outputs = lp_alloc(times, sizeof *answer->time_outputs);
    answer->time_memory = lp_alloc(law, sizeof *answer->time_memory);
    answer->score_rows = lp_model_ranks(config) ? score_rows(names, program->rows) : 1;
    answer->scores = lp_alloc((size_t)answer->score_rows * names, sizeof *answer->scores);
    answer->probabilities = lp_alloc(lp_model_has_probabilities(model) ? names : 0, sizeof *answer->probabilities);
    answer->only = lp_alloc(lp_item_mask_words(model), sizeof *answer->only);
    if (answer->state && answer->time_outputs && answer->time_memory && answer->scores && answer->probabilities &&
        answer->only)
        return LAPSE_OK;
    return lp_fail_memory(error, "a query", (states + times) * sizeof(float) + law * sizeof(double) + names * 12);
}

void lp_answer_clear(lp_answer *answer)
{
    lp_free(answer->state);
    lp_free(answer->time_outputs);
    lp_free(answer->time_memory);
    lp_free(answer->scores);
    lp_free(answer->probabilities);
    lp_free(answer->only);
    *answer = (lp_answer){0};
}

void lp_answer_begin(lp_answer *answer, const lp_program *program, lp_target target, int first_row, int rows,
                     double *output)
{
    const lp_model_config *config = &program->model->config;
    LP_ASSERT(first_row >= 0 && rows >= 0 && first_row + rows <= program->rows);
    answer->target = target;
    answer->first_row = first_row;
    answer->rows = rows;
    answer->output = output;
    answer->logits = NULL;
    answer->sample = 0;
    if (output)
        memset(output, 0, (size_t)rows * (size_t)lp_model_target_size(config, target) * sizeof *output);
    size_t dims = lp_model_ranks(config) ? (size_t)lp_model_state_dims(config) : 0;
    memset(answer->state + (size_t)first_row * dims, 0, (size_t)rows * dims * sizeof *answer->state);
}

void lp_answer_join(lp_answer *answer, int rows, double *output)
{
    answer->first_row = 0;
    answer->rows = rows;
    answer->output = output;
}

void lp_answer_add(lp_answer *answer, const lp_program *program, const lp_outcome *outcome)
{
    const lp_model_config *config = &program->model->config;
    size_t samples = (size_t)program->samples, rows = (size_t)answer->rows, first = (size_t)answer->first_row;
    size_t width = lp_outcome_time(outcome) ? (size_t)lp_network_time(&program->network)->cols : 0;
    size_t dims = outcome->state ? (size_t)lp_model_state_dims(config) : 0;
    LP_ASSERT(answer->sample < program->samples);
    for (size_t c = 0; c < rows * dims; c++)
        answer->state[first * dims + c] += outcome->state[c] / (float)samples;
    for (size_t r = 0; width && r < rows; r++)
        memcpy(answer->time_outputs + ((first + r) * samples + (size_t)answer->sample) * width,
               lp_outcome_time(outcome) + r * width, width * sizeof *answer->time_outputs);
    answer->sample++;
    answer->logits = outcome->logits[answer->target];
    size_t classes = (size_t)lp_model_target_size(config, answer->target);
    for (size_t r = 0; answer->logits && answer->output && r < rows; r++)
        lp_softmax_add(answer->logits + r * classes, (int)classes, 1.0 / (double)samples, answer->output + r * classes);
}

lapse_status lp_answer_score(lp_answer *answer, const lp_program *program, int first, int count, lapse_error *error)
{
    const lapse_model *model = program->model;
    const lp_network *network = &program->network;
    const lp_ranking_kernels *kernels = lp_backend_ranking(program->backend);
    const float *bias = model->parameters + network->bias->offset;
    int items = model->config.event_types, dims = lp_model_state_dims(&model->config);
    lp_score_rule rule = lp_model_score_rule(&model->config);
    const float *state = answer->state + (size_t)(answer->first_row + first) * (size_t)dims;
    LP_ASSERT(count > 0 && count <= answer->score_rows && first + count <= answer->rows);
    const float *table = model->parameters + network->items->offset;
    if (rule == LP_SCORE_PRODUCT)
        kernels->many_scores(count, items, dims, state, table, program->items, program->stride, bias, answer->scores);
    else
        kernels->distances(rule, count, items, dims, state, table, bias, answer->scores);
    answer->logits = answer->scores;
    return lp_all_finite(answer->scores, (size_t)count * (size_t)items) ? LAPSE_OK
                                                                        : lp_model_fail_infinite(model, error);
}

/* Turns scores into probabilities of each row, which go to the output. */
static lapse_status finish_ranks(lp_answer *answer, const lp_program *program, lapse_error *error)
{
    int items = program->model->config.event_types;
    for (int row = 0, count; row < answer->rows; row += count) {
        count = answer->rows - row < answer->score_rows ? answer->rows - row : answer->score_rows;
        LP_TRY(lp_answer_score(answer, program, row, count, error));
        for (int i = 0; answer->output && i < count; i++)
            lp_softmax_add(answer->scores + (size_t)i * (size_t)items, items, 1,
                           answer->output + (size_t)(row + i) * (size_t)items);
    }
    return LAPSE_OK;
}

lapse_status lp_answer_finish(lp_answer *answer, const lp_program *program, lapse_error *error)
{
    const lapse_model *model = program->model;
    size_t size = (size_t)lp_model_target_size(&model->config, answer->target);
    size_t elements = (size_t)answer->rows * size;
    if (lp_model_ranks(&model->config))
        LP_TRY(finish_ranks(answer, program, error));
    else if (!lp_all_finite(answer->logits, elements))
        return lp_model_fail_infinite(model, error);
    bool finite = !answer->output || lp_all_finite_double(answer->output, elements);
    return finite ? LAPSE_OK : lp_model_fail_infinite(model, error);
}
