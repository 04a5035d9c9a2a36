/* evaluator_model.c: evaluates a model with its own parameters, and checks that all scores are finite. */
#include "evaluate/evaluator.h"

#include "base/finite.h"

#include <float.h>
#include <math.h>

/* Scores of a recommender are finite if this bound of theirs is. */
static bool ranks_finite(const lp_evaluator *evaluator)
{
    const lp_network *network = &evaluator->network;
    const float *parameters = evaluator->model->parameters;
    lapse_comm *divided = evaluator->item_rows.comm;
    int64_t begin = lp_item_begin(divided, network->items->rows, lp_comm_rank(divided));
    size_t items = (size_t)(lp_item_begin(divided, network->items->rows, lp_comm_rank(divided) + 1) - begin);
    size_t dims = (size_t)network->items->cols;
    int64_t cases = divided ? evaluator->case_count : evaluator->own_end - evaluator->own_first;
    double state = lp_largest_float(evaluator->states, (size_t)cases * dims);
    double item = lp_largest_float(parameters + network->items->offset + (size_t)begin * dims, items * dims);
    double bias = lp_largest_float(parameters + network->bias->offset + begin, items);
    return state * item * (double)dims + bias <= FLT_MAX; /* not if one of them is infinite */
}

/* The loss of a network is infinite only if a logit is; that of a baseline, or of a mean over frequency samples, where the
 * probability is 0. */
static bool losses_finite(const lp_evaluator *evaluator)
{
    bool logits = lp_model_is_network(&evaluator->model->config) && lp_network_samples(&evaluator->network) == 1,
         finite = true;
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        const lp_case *cases = evaluator->predictions[t].cases;
        for (int64_t i = 0; cases && i < evaluator->case_count; i++)
            finite &= !isnan(cases[i].loss) && !(logits && isinf(cases[i].loss));
    }
    for (int64_t i = 0; evaluator->time.width && i < evaluator->case_count; i++)
        finite &= !isnan(evaluator->time.cases[i].nll);
    return finite;
}

lapse_status lp_evaluator_run_model(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_backend *backend = evaluator->backend;
    const float *parameters = evaluator->model->parameters;
    bool ranks = lp_model_ranks(&evaluator->model->config);
    if (!backend->host) {
        size_t size = evaluator->network.graph.parameter_size * sizeof *parameters;
        evaluator->parameters = backend->buffer_new(backend->context, size);
        if (!evaluator->parameters)
            return lp_fail_memory(error, "the parameters", size);
        backend->copy_to_device(backend->context, evaluator->parameters, parameters, size);
        parameters = evaluator->parameters;
    }
    lp_evaluator_run(evaluator, parameters);
    if (ranks)
        lp_evaluator_rank(evaluator, parameters);
    LP_TRY(lp_backend_check(backend, error));
    LP_TRY(lp_comm_check(evaluator->comm, error));
    bool finite = ranks ? ranks_finite(evaluator) : losses_finite(evaluator);
    finite = !lp_comm_any(evaluator->comm, "evaluating", !finite);
    LP_TRY(lp_comm_check(evaluator->comm, error));
    return finite ? LAPSE_OK : lp_model_fail_infinite(evaluator->model, error);
}
