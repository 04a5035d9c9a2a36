/* sweep_plan.c: setting a plan by name. */
#include "search/sweep_plan.h"

#include "base/text.h"
#include "model/metric.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SEEDS = 10000 };

/* In the order of lp_split and of lp_protocol. */
static const char *const *split_names(void)
{
    static const char *const names[] = {"train", "valid", "test", NULL};
    return names;
}

const char *const *lapse_rank_protocol_names(void)
{
    static const char *const names[] = {"full-unseen", "full", "uniform", "popularity", NULL};
    return names;
}

static const char *const *metric_names(void)
{
    return lp_metric_names;
}

#define AT(member) .offset = offsetof(lp_sweep_settings, member), .group = "Comparison"

/* clang-format off */
const lp_option lp_sweep_options[] = {
    {.name = "data", .type = LAPSE_OPTION_FILE, AT(data), .placeholder = "FILE", .initial = "",
     .help = "events to train on: a dataset file of `lapse import`"},
    {.name = "keep", .type = LAPSE_OPTION_FILE, AT(folder), .placeholder = "DIR", .initial = "",
     .help = "folder of finished runs"},
    {.name = "split", .type = LAPSE_OPTION_CHOICE, AT(split), .placeholder = "SPLIT", .choices = split_names,
     .initial = "test", .help = "split of the table's scores"},
    {.name = "metric", .type = LAPSE_OPTION_CHOICE, AT(metric), .placeholder = "METRIC", .choices = metric_names,
     .rule = "the one that selects epochs", .help = "metric of the best row and of the paired test"},
    {.name = "protocol", .type = LAPSE_OPTION_CHOICE, AT(protocol), .placeholder = "NAME",
     .choices = lapse_rank_protocol_names, .initial = "full-unseen", .help = "recommend: ranking protocol of the scores"},
    {.name = "negatives-per-case", .type = LAPSE_OPTION_INTEGER, AT(negatives), .placeholder = "N", .least = 1,
     .most = LP_RANK_NEGATIVES_LIMIT, .initial = "100", .help = "recommend: negative samples of the sampled protocols"},
    {.name = "cases", .type = LAPSE_OPTION_INTEGER, AT(cases), .placeholder = "N", .least = 0, .most = 2e9,
     .initial = "0", .help = "recommend: maximum number of events to rank, sampled at random; 0: all"},
    {.name = "reach", .type = LAPSE_OPTION_NUMBER, AT(reach), .placeholder = "X", .least = -1e12, .most = 1e12,
     .rule = "none", .help = "validation score whose time is measured: seconds until the first epoch that reaches it"},
    {.name = "grid-seeds", .type = LAPSE_OPTION_INTEGER, AT(grid_seeds), .placeholder = "N", .least = 0, .most = MAX_SEEDS,
     .initial = "0", .help = "seeds that choose a row's settings in a grid; the other seeds run the chosen ones; 0: all"},
    {.name = "bootstrap", .type = LAPSE_OPTION_INTEGER, AT(bootstrap), .placeholder = "N", .least = 0, .most = 1e6,
     .initial = "2000", .help = "bootstrap resamples of the paired test; 0: no test"},
    {.name = "parallel", .type = LAPSE_OPTION_INTEGER, AT(parallel), .placeholder = "N", .least = 1, .most = 256,
     .rule = "as many as there are cores", .help = "runs at the same time; does not change the scores"},
    {0},
};
/* clang-format on */
_Static_assert(sizeof lp_sweep_options / sizeof *lp_sweep_options <= LP_SWEEP_OPTIONS, "options of a plan");

/* ------------------------------------------------------------------------------------------------- lists ----- */

/* Splits a text at commas into texts of the arena. Empty parts are an error. */
static lapse_status split_list(lp_arena *arena, const char *what, const char *text, const char ***values, int *count,
                               lapse_error *error)
{
    int commas = 0;
    char *copy = lp_arena_text(arena, text);
    for (const char *c = text; *c; c++)
        commas += *c == ',';
    const char **parts = lp_arena_alloc(arena, ((size_t)commas + 1) * sizeof *parts);
    if (!copy || !parts)
        return lp_fail_memory(error, "a list of values", strlen(text));
    int found = 0;
    for (char *at = copy; at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = 0;
        const char *begin = at, *end = at + strlen(at);
        lp_text_trim(&begin, &end);
        if (begin == end)
            return lp_fail(error, LAPSE_ERROR_USAGE, "%s is a list of values separated by commas, not '%.80s'", what,
                           text);
        at[end - at] = 0;
        parts[found++] = begin;
        at = comma ? comma + 1 : NULL;
    }
    *values = parts;
    *count = found;
    return LAPSE_OK;
}

/* An integer from 0 to 2^64 - 1 that fills the text. */
static bool parse_seed(const char *text, size_t size, uint64_t *seed)
{
    *seed = 0;
    for (size_t i = 0; i < size; i++)
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(*seed, (uint64_t)10, seed) ||
            __builtin_add_overflow(*seed, (uint64_t)(text[i] - '0'), seed))
            return false;
    return size > 0;
}

static lapse_status fail_seeds(const char *text, lapse_error *error)
{
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "seeds is a number N for 1 to N, a range such as 3..7, or a list such as 1,5,9, of at most %d "
                   "different seeds, not '%.80s'",
                   MAX_SEEDS, text);
}

/* "10": 1 to 10; "3..7"; "1,5,9"; and lists of ranges. */
static lapse_status set_seeds(lapse_sweep_plan *plan, const char *text, lapse_error *error)
{
    const char **parts;
    int count = 0, seeds = 0;
    uint64_t *list = lp_arena_alloc(&plan->arena, MAX_SEEDS * sizeof *list);
    if (!list)
        return lp_fail_memory(error, "seeds", MAX_SEEDS * sizeof *list);
    LP_TRY(split_list(&plan->arena, "seeds", text, &parts, &count, error));
    for (int i = 0; i < count; i++) {
        uint64_t first = 1, last;
        const char *dots = strstr(parts[i], "..");
        bool good = dots ? parse_seed(parts[i], (size_t)(dots - parts[i]), &first) &&
                               parse_seed(dots + 2, strlen(dots + 2), &last)
                         : parse_seed(parts[i], strlen(parts[i]), &last);
        if (good && !dots && count > 1)
            first = last;
        if (!good || last < first || last - first >= MAX_SEEDS || (int)(last - first) + seeds >= MAX_SEEDS)
            return fail_seeds(text, error);
        for (uint64_t seed = first;; seed++) {
            for (int k = 0; k < seeds; k++)
                if (list[k] == seed)
                    return fail_seeds(text, error);
            list[seeds++] = seed;
            if (seed == last)
                break;
        }
    }
    plan->seeds = list;
    plan->seed_count = seeds;
    return LAPSE_OK;
}

/* "OPTION=v1,v2". */
static lapse_status set_grid(lapse_sweep_plan *plan, const char *text, lapse_error *error)
{
    const char *equals = strchr(text, '=');
    char name[64];
    size_t size = equals ? (size_t)(equals - text) : 0;
    if (!equals || size == 0 || size >= sizeof name)
        return lp_fail(error, LAPSE_ERROR_USAGE, "a grid is OPTION=VALUE,VALUE,..., not '%.80s'", text);
    memcpy(name, text, size);
    name[size] = 0;
    lp_sweep_grid made = {0};
    LP_TRY(split_list(&plan->arena, "a grid", equals + 1, &made.values, &made.count, error));
    return lp_sweep_plan_grid(plan, plan->grid, &plan->grid_count, name, &made, error);
}

lapse_status lp_sweep_plan_grid(lapse_sweep_plan *plan, lp_sweep_grid *grid, int *count, const char *name,
                                const lp_sweep_grid *values, lapse_error *error)
{
    static const char *const excluded[] = {"model",  "seed", "device", "threads", "checkpoint", "checkpoint-every",
                                           "resume", NULL};
    lapse_option option;
    if (!lapse_train_option_find(name, &option))
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no training option '%.80s' for a grid", name);
    if (lp_name_index(name, excluded) >= 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "a grid cannot vary '%.80s'; models and seeds have lists of their own",
                       name);
    for (int i = 0; i < *count; i++)
        if (strcmp(grid[i].option, name) == 0)
            return LAPSE_OK; /* set before */
    if (*count == LP_SWEEP_GRIDS)
        return lp_fail(error, LAPSE_ERROR_USAGE, "a grid has at most %d options", LP_SWEEP_GRIDS);
    for (int v = 0; v < values->count; v++) {
        lapse_train_options trial = plan->train;
        LP_TRY(lapse_train_options_set(&trial, name, values->values[v], error));
    }
    grid[*count] = *values;
    grid[*count].option = option.name;
    ++*count;
    return LAPSE_OK;
}

static lapse_status set_names(lapse_sweep_plan *plan, const char *option, const char *text, const char ***values,
                              int *count, lapse_error *error)
{
    LP_TRY(split_list(&plan->arena, option, text, values, count, error));
    for (int i = 0; i < *count; i++) {
        lapse_train_options trial = plan->train;
        LP_TRY(lapse_train_options_set(&trial, option, (*values)[i], error));
        for (int k = 0; k < i; k++)
            if (strcmp((*values)[k], (*values)[i]) == 0)
                return lp_fail(error, LAPSE_ERROR_USAGE, "the %s '%.80s' is there twice", option, (*values)[i]);
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ public ----- */

lapse_status lapse_sweep_plan_new(lapse_sweep_plan **plan, lapse_error *error)
{
    LP_REQUIRE(error, plan);
    lapse_sweep_plan *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a comparison", sizeof *made);
    lp_train_options_default(&made->train);
    lp_options_default(lp_sweep_options, &made->settings);
    *plan = made;
    return LAPSE_OK;
}

void lapse_sweep_plan_free(lapse_sweep_plan *plan)
{
    if (!plan)
        return;
    lp_arena_clear(&plan->arena);
    lp_free(plan->rows);
    lp_free(plan);
}

static lapse_status set_option(lapse_sweep_plan *plan, int index, const char *value, lapse_error *error)
{
    if (plan->given[index])
        return LAPSE_OK;
    LP_TRY(lp_option_set(&lp_sweep_options[index], &plan->settings, value, error));
    plan->given[index] = true;
    return LAPSE_OK;
}

lapse_status lapse_sweep_plan_set(lapse_sweep_plan *plan, const char *name, const char *value, lapse_error *error)
{
    LP_REQUIRE(error, plan, name, value);
    for (int i = 0; lp_sweep_options[i].name; i++)
        if (strcmp(lp_sweep_options[i].name, name) == 0)
            return set_option(plan, i, value, error);
    if (strcmp(name, "models") == 0)
        return plan->models ? LAPSE_OK : set_names(plan, "model", value, &plan->models, &plan->model_count, error);
    if (strcmp(name, "encodings") == 0)
        return plan->encodings ? LAPSE_OK
                               : set_names(plan, "encoding", value, &plan->encodings, &plan->encoding_count, error);
    if (strcmp(name, "seeds") == 0)
        return plan->seeds ? LAPSE_OK : set_seeds(plan, value, error);
    if (strcmp(name, "grid") == 0)
        return set_grid(plan, value, error);
    if (strcmp(name, "title") == 0) {
        plan->title = plan->title ? plan->title : lp_arena_text(&plan->arena, value);
        return plan->title ? LAPSE_OK : lp_fail_memory(error, "a title", strlen(value));
    }
    lapse_option option;
    if (!lapse_train_option_find(name, &option))
        return lp_fail(error, LAPSE_ERROR_USAGE, "a comparison has no setting '%.80s', and neither has training", name);
    return lp_train_option_given(&plan->train, name) ? LAPSE_OK
                                                     : lapse_train_options_set(&plan->train, name, value, error);
}

const char *lapse_sweep_plan_get(const lapse_sweep_plan *plan, const char *name, char *out, size_t out_size)
{
    const lp_option *own = lp_options_find(lp_sweep_options, name);
    if (!own)
        return lapse_train_options_get(&plan->train, name, out, out_size);
    char text[LP_OPTION_TEXT_SIZE];
    lp_option_text(own, &plan->settings, text);
    size_t length = strlen(text);
    if (!out_size)
        return NULL;
    length = length < out_size ? length : out_size - 1;
    memcpy(out, text, length);
    out[length] = 0;
    return out;
}

lapse_train_options *lapse_sweep_plan_train_options(lapse_sweep_plan *plan)
{
    return &plan->train;
}

const char *lapse_sweep_plan_title(const lapse_sweep_plan *plan)
{
    return plan->title;
}

bool lapse_sweep_option(int index, lapse_option *option)
{
    int count = (int)(sizeof lp_sweep_options / sizeof *lp_sweep_options) - 1;
    if (index < 0 || index >= count)
        return false;
    *option = lp_option_describe(&lp_sweep_options[index]);
    return true;
}
