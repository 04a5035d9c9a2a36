#include "serve/keepers.h"

#include <math.h>

lapse_status lp_keepers_init(lp_keepers *keepers, const lapse_model *model, int64_t capacity, lapse_error *error)
{
    *keepers = (lp_keepers){.whole = {0}};
    return lp_keeper_init(&keepers->whole, model, capacity, error);
}

void lp_keepers_clear(lp_keepers *keepers)
{
    for (int i = 0; i < LP_KEEPERS_SPANS; i++) {
        if (keepers->thinned[i])
            lp_keeper_clear(keepers->thinned[i]);
        lp_free(keepers->thinned[i]);
    }
    lp_keeper_clear(&keepers->whole);
    *keepers = (lp_keepers){.whole = {0}};
}

void lp_keepers_forget(lp_keepers *keepers)
{
    lp_keeper_forget(&keepers->whole);
    for (int i = 0; i < LP_KEEPERS_SPANS; i++)
        if (keepers->thinned[i])
            lp_keeper_forget(keepers->thinned[i]);
}

void lp_keepers_drop(lp_keepers *keepers, int64_t count)
{
    lp_keeper_drop(&keepers->whole, count);
    for (int i = 0; i < LP_KEEPERS_SPANS; i++)
        if (keepers->thinned[i])
            lp_keeper_drop(keepers->thinned[i], count);
}

/* A keeper for spans of up to 2^i seconds; NULL where it would have almost all frequencies, or there is no memory for it. */
static lp_keeper *make_thinned(const lp_keeper *whole, int i)
{
    int count = 0;
    lp_thinning thinning;
    const double *frequencies = lp_keeper_frequencies(whole, &count);
    if (!frequencies || lp_thinning_make(&thinning, count, frequencies, ldexp(1, i), NULL) != LAPSE_OK)
        return NULL;
    lp_keeper *made = 8 * thinning.kept <= 7 * count ? lp_alloc(1, sizeof *made) : NULL;
    if (made && lp_keeper_init_thinned(made, whole, &thinning, NULL) != LAPSE_OK) {
        lp_free(made);
        made = NULL;
    }
    lp_thinning_clear(&thinning);
    return made;
}

/* The power of two for the window's events and the moment asked about; LP_KEEPERS_SPANS: there is none. */
static int span_of(const lp_model_config *config, const lp_history *history, double time)
{
    int64_t seen = history->count < config->context ? history->count : config->context;
    double first = history->times[history->count - seen], last = history->times[history->count - 1];
    double longest = (config->target_known ? time : last) - first;
    int i = 0;
    if (seen < LP_KEEPERS_EVENTS)
        return LP_KEEPERS_SPANS;
    frexp(last - first, &i);
    i = i < 0 ? 0 : i;
    if (longest > ldexp(1, i))
        i += LP_KEEPERS_FAR;
    return longest > ldexp(1, i) || i > LP_KEEPERS_SPANS ? LP_KEEPERS_SPANS : i;
}

static lp_keeper *choose(lp_keepers *keepers, const lp_history *history, double time)
{
    int i = span_of(&keepers->whole.model->config, history, time);
    if (i == LP_KEEPERS_SPANS)
        return &keepers->whole;
    if (!keepers->tried[i]) {
        keepers->tried[i] = true;
        keepers->thinned[i] = make_thinned(&keepers->whole, i);
    }
    return keepers->thinned[i] ? keepers->thinned[i] : &keepers->whole;
}

void lp_keepers_ask(lp_keepers *keepers, const lp_history *history, double time, double horizon, lp_on_answer on_answer,
                    void *context)
{
    lp_keeper *keeper = choose(keepers, history, horizon > time ? horizon : time);
    lp_keeper_ask(keeper, history, time, on_answer, context);
}
