/* sweep.c: lists the rows, cells and runs of a plan, and reads the runs that are finished already. */
#include "search/sweep.h"

#include "backend/backend.h"
#include "base/condition.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/dataset/fingerprint.h"
#include "train/provenance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_RUNS = 1000000, DEFAULT_SEEDS = 5 };

/* While rows and cells are listed. */
typedef struct listing {
    lapse_sweep *sweep;
    const lapse_sweep_plan *plan;
    int cell_capacity, row_capacity;
    bool used[LP_TRAIN_OPTION_LIMIT]; /* training options of the plan that some row has */
    bool used_grid[LP_SWEEP_GRIDS];   /* grids of the plan, likewise */
    lapse_train_options options;      /* of the cell that is being made */
    const lp_sweep_grid *grid[2 * LP_SWEEP_GRIDS];
    int value[2 * LP_SWEEP_GRIDS]; /* of the cell that is being made: index */
    int grid_count;
} listing;

static lapse_status fail_memory(lapse_error *error)
{
    return lp_fail_memory(error, "a comparison", sizeof(lp_sweep_cell));
}

/* ------------------------------------------------------------------------------------------------- cells ----- */

/* Options that do not change the result of a run, or that a run sets by itself. */
static bool is_machine_option(const char *name)
{
    static const char *const names[] = {"seed", "threads", "checkpoint", "checkpoint-every", "resume", NULL};
    return lp_name_index(name, names) >= 0;
}

/* The content of the item vectors is what counts, not the path. */
static lapse_status add_vectors(lp_buffer *out, const char *path, lapse_error *error)
{
    lp_map map;
    LP_TRY(lp_map_open(&map, path, error));
    bool good = lp_buffer_print(out, "item-vectors=%016llx\n", (unsigned long long)XXH3_64bits(map.data, map.size));
    lp_map_close(&map);
    return good ? LAPSE_OK : fail_memory(error);
}

/* The given options that have an effect. The others have their defaults, which the version fixes. */
static lapse_status make_key(lapse_sweep *sweep, const lapse_train_options *given, const lapse_train_options *resolved,
                             const char **key, lapse_error *error)
{
    lp_buffer out = {0};
    lapse_option option;
    char text[LP_OPTION_TEXT_SIZE];
    lapse_status status = LAPSE_OK;
    bool good = lp_buffer_print(&out, "model=%s\n", lapse_train_options_get(given, "model", text, sizeof text));
    for (int i = 0; good && status == LAPSE_OK && lapse_train_option(i, &option); i++) {
        if (!given->given[i] || is_machine_option(option.name) || strcmp(option.name, "model") == 0 ||
            !lapse_train_options_apply(resolved, option.name))
            continue;
        lapse_train_options_get(given, option.name, text, sizeof text);
        if (strcmp(option.name, "item-vectors") == 0)
            status = add_vectors(&out, text, error);
        else
            good = lp_buffer_print(&out, "%s=%s\n", option.name, text);
    }
    *key = good && status == LAPSE_OK ? lp_arena_text(&sweep->arena, out.data) : NULL;
    lp_buffer_clear(&out);
    return *key || status != LAPSE_OK ? status : fail_memory(error);
}

/* Adds the row's name and the cell's values to an error. */
static lapse_status locate(const char *row, const char *config, lapse_status status, lapse_error *error)
{
    char message[sizeof error->message];
    if (status == LAPSE_OK || status == LAPSE_ERROR_MEMORY || !error)
        return status;
    snprintf(message, sizeof message, "%.80s%s%.120s: %.300s", row, *config ? ", " : "", config, error->message);
    memcpy(error->message, message, sizeof message);
    return status;
}

/* All cells have one task, validation metric and target. */
static lapse_status take_task(lapse_sweep *sweep, const lapse_train_options *resolved, lapse_error *error)
{
    int task = resolved->model.task, select = resolved->run.select;
    lp_target target = resolved->model.predict == LP_PREDICT_ACTION ? LP_TARGET_ACTION : LP_TARGET_EVENT;
    if (sweep->cell_count == 0) {
        sweep->task = task;
        sweep->select = select;
        sweep->target = target;
    }
    if (sweep->task != task || sweep->select != select || sweep->target != target)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "all rows of a comparison need the same task, the same validation metric (--select) and the same "
            "target; set them with " LP_OPTION("--task") ", " LP_OPTION("--select") " and " LP_OPTION("--predict"));
    return LAPSE_OK;
}

static lapse_status grow_cells(listing *l, lapse_error *error)
{
    lapse_sweep *sweep = l->sweep;
    if (sweep->cell_count < l->cell_capacity)
        return LAPSE_OK;
    int capacity = l->cell_capacity ? 2 * l->cell_capacity : 16;
    lp_sweep_cell *cells = lp_alloc((size_t)capacity, sizeof *cells);
    if (!cells)
        return fail_memory(error);
    if (sweep->cell_count > 0)
        memcpy(cells, sweep->cells, (size_t)sweep->cell_count * sizeof *cells);
    lp_free(sweep->cells);
    sweep->cells = cells;
    l->cell_capacity = capacity;
    return LAPSE_OK;
}

/* A cell whose values have no effect equals another one of the row, and is left out. */
static bool is_new(const lapse_sweep *sweep, int row, const char *key)
{
    for (int c = 0; c < sweep->cell_count; c++)
        if (sweep->cells[c].row == row && strcmp(sweep->cells[c].key, key) == 0)
            return false;
    return true;
}

/* The cell's values of the grid: all of them, or where the options are resolved, those that have an effect. */
static lapse_status make_config(const listing *l, const lapse_train_options *resolved, const char **config,
                                lapse_error *error)
{
    lp_buffer out = {0};
    bool good = lp_buffer_print(&out, "%s", "");
    for (int g = 0; good && g < l->grid_count; g++)
        if (!resolved || lapse_train_options_apply(resolved, l->grid[g]->option))
            good = lp_buffer_print(&out, "%s%s %s", out.size > 0 ? ", " : "", l->grid[g]->option,
                                   l->grid[g]->values[l->value[g]]);
    *config = good ? lp_arena_text(&l->sweep->arena, out.data) : NULL;
    lp_buffer_clear(&out);
    return *config ? LAPSE_OK : fail_memory(error);
}

static lapse_status add_cell(listing *l, lapse_error *error)
{
    lapse_sweep *sweep = l->sweep;
    int row = sweep->row_count - 1;
    lapse_train_options resolved = l->options;
    lp_resolved besides = {0};
    const char *key, *config;
    LP_TRY(make_config(l, NULL, &config, error));
    snprintf(resolved.run.checkpoint, sizeof resolved.run.checkpoint, "none");
    resolved.run.seed = sweep->seeds[0];
    LP_TRY(locate(sweep->row_names[row], config, lp_train_options_resolve(&resolved, sweep->dataset, &besides, error),
                  error));
    lp_free(besides.split);
    lapse_vectors_free(besides.vectors);
    LP_TRY(take_task(sweep, &resolved, error));
    LP_TRY(make_key(sweep, &l->options, &resolved, &key, error));
    if (!is_new(sweep, row, key))
        return LAPSE_OK;
    if ((int64_t)(sweep->cell_count + 1) * sweep->seed_count > MAX_RUNS)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the comparison has more than %d runs", MAX_RUNS);
    LP_TRY(make_config(l, &resolved, &config, error));
    LP_TRY(grow_cells(l, error));
    lp_sweep_cell cell = {.row = row, .key = key, .config = config, .p = NAN};
    cell.options = lp_alloc(1, sizeof *cell.options);
    if (!cell.options)
        return fail_memory(error);
    *cell.options = l->options;
    cell.difference = (lapse_mean){NAN, NAN, NAN};
    sweep->cells[sweep->cell_count++] = cell;
    return LAPSE_OK;
}

/* Sets the options of a grid from `axis` on in all combinations. */
static lapse_status add_cells(listing *l, int axis, lapse_error *error)
{
    if (axis == l->grid_count)
        return add_cell(l, error);
    const lp_sweep_grid *grid = l->grid[axis];
    const lapse_train_options before = l->options;
    for (l->value[axis] = 0; l->value[axis] < grid->count; l->value[axis]++) {
        l->options = before;
        LP_TRY(lapse_train_options_set(&l->options, grid->option, grid->values[l->value[axis]], error));
        LP_TRY(add_cells(l, axis + 1, error));
    }
    l->options = before;
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------------- rows ----- */

/* Options of the plan that the row's model does not have are for other rows. */
static void withdraw_foreign(listing *l)
{
    char model[64];
    lapse_option option;
    lapse_train_options_get(&l->options, "model", model, sizeof model);
    for (int i = 0; lapse_train_option(i, &option); i++) {
        if (!l->plan->train.given[i])
            continue;
        if (lapse_model_has_option(model, option.name))
            l->used[i] = true;
        else
            lp_train_option_withdraw(&l->options, option.name);
    }
}

/* The values of a row's own grid come before the plan's of the same option. An option that the row sets is not varied. */
static void take_grid(listing *l, const lp_sweep_row *row)
{
    char model[64];
    lapse_train_options_get(&l->options, "model", model, sizeof model);
    l->grid_count = 0;
    for (int g = 0; row && g < row->grid_count; g++)
        l->grid[l->grid_count++] = &row->grid[g];
    for (int g = 0; g < l->plan->grid_count; g++) {
        const lp_sweep_grid *grid = &l->plan->grid[g];
        bool set = !lapse_model_has_option(model, grid->option);
        for (int i = 0; row && i < row->grid_count; i++)
            set = set || strcmp(row->grid[i].option, grid->option) == 0;
        for (int i = 0; row && i < row->option_count; i++)
            set = set || strcmp(row->options[i].name, grid->option) == 0;
        if (set)
            continue;
        l->grid[l->grid_count++] = grid;
        l->used_grid[g] = true;
    }
}

static lapse_status add_row(listing *l, const char *name, const lp_sweep_row *row, lapse_error *error)
{
    lapse_sweep *sweep = l->sweep;
    if (sweep->row_count == l->row_capacity) {
        int capacity = l->row_capacity ? 2 * l->row_capacity : 16;
        const char **names = lp_arena_alloc(&sweep->arena, (size_t)capacity * sizeof *names);
        if (!names)
            return fail_memory(error);
        if (sweep->row_count > 0)
            memcpy(names, sweep->row_names, (size_t)sweep->row_count * sizeof *names);
        sweep->row_names = names;
        l->row_capacity = capacity;
    }
    const char *copy = lp_arena_text(&sweep->arena, name);
    if (!copy)
        return fail_memory(error);
    for (int r = 0; r < sweep->row_count; r++)
        if (strcmp(sweep->row_names[r], name) == 0)
            return lp_fail(error, LAPSE_ERROR_USAGE, "two rows have the name '%.80s'; give them names in the file",
                           name);
    sweep->row_names[sweep->row_count++] = copy;
    withdraw_foreign(l);
    take_grid(l, row);
    return add_cells(l, 0, error);
}

/* Whether training accepts these options for the dataset. */
static lapse_status resolves(const lapse_sweep *sweep, const lapse_train_options *options, lapse_error *error)
{
    lapse_train_options trial = *options;
    lp_resolved besides = {0};
    trial.run.checkpoint[0] = 0;
    lapse_status status = lp_train_options_resolve(&trial, sweep->dataset, &besides, error);
    lp_free(besides.split);
    lapse_vectors_free(besides.vectors);
    return status;
}

/* A row for each encoding that the model supports. Returns their number through *made. */
static lapse_status add_encodings(listing *l, const char *model, int *made, lapse_error *error)
{
    const lapse_train_options chosen = l->options;
    withdraw_foreign(l);
    lapse_status without = resolves(l->sweep, &l->options, error);
    if (without == LAPSE_ERROR_MEMORY)
        return without;
    for (int e = 0; e < l->plan->encoding_count; e++) {
        char name[160];
        l->options = chosen;
        LP_TRY(lapse_train_options_set(&l->options, "encoding", l->plan->encodings[e], error));
        withdraw_foreign(l);
        lapse_status status = resolves(l->sweep, &l->options, error);
        if (status == LAPSE_ERROR_MEMORY)
            return status;
        if (status == LAPSE_ERROR_USAGE && without == LAPSE_OK)
            continue; /* the model supports other encodings */
        snprintf(name, sizeof name, "%s, %s", model, l->plan->encodings[e]);
        LP_TRY(add_row(l, name, NULL, error));
        ++*made;
    }
    l->options = chosen;
    return LAPSE_OK;
}

/* Each model with each encoding that it supports; a model that supports none of them once. */
static lapse_status add_products(listing *l, lapse_error *error)
{
    const lapse_sweep_plan *plan = l->plan;
    char model[64];
    bool encoded = !plan->encodings;
    for (int m = 0; m < (plan->model_count ? plan->model_count : 1); m++) {
        int made = 0;
        l->options = plan->train;
        if (plan->models)
            LP_TRY(lapse_train_options_set(&l->options, "model", plan->models[m], error));
        lapse_train_options_get(&l->options, "model", model, sizeof model);
        if (plan->encodings && lapse_model_has_option(model, "encoding"))
            LP_TRY(add_encodings(l, model, &made, error));
        if (made == 0)
            LP_TRY(add_row(l, model, NULL, error));
        encoded = encoded || made > 0;
    }
    return encoded ? LAPSE_OK
                   : lp_fail(error, LAPSE_ERROR_USAGE,
                             "none of these models has one of the encodings, so " LP_OPTION(
                                 "--encodings") " has no effect");
}

static lapse_status add_named(listing *l, const lp_sweep_row *row, lapse_error *error)
{
    char model[64], name[96];
    l->options = l->plan->train;
    for (int i = 0; i < row->option_count; i++)
        LP_TRY(lapse_train_options_set(&l->options, row->options[i].name, row->options[i].value, error));
    lapse_train_options_get(&l->options, "model", model, sizeof model);
    snprintf(name, sizeof name, "%s", row->name ? row->name : model);
    for (int i = 0; i < row->option_count; i++)
        if (!lapse_model_has_option(model, row->options[i].name))
            return lp_fail(error, LAPSE_ERROR_USAGE, "%.80s: the model '%s' has no option '%s'", name, model,
                           row->options[i].name);
    return add_row(l, row->name ? row->name : model, row, error);
}

static lapse_status list_rows(lapse_sweep *sweep, const lapse_sweep_plan *plan, lapse_error *error)
{
    listing *l = lp_alloc(1, sizeof *l);
    if (!l)
        return fail_memory(error);
    *l = (listing){.sweep = sweep, .plan = plan};
    lapse_status status = LAPSE_OK;
    lapse_option option;
    if (plan->models || plan->encodings || !plan->rows)
        status = add_products(l, error);
    for (int r = 0; status == LAPSE_OK && r < plan->row_count; r++)
        status = add_named(l, &plan->rows[r], error);
    for (int i = 0; status == LAPSE_OK && lapse_train_option(i, &option); i++)
        if (plan->train.given[i] && !l->used[i])
            status = lp_fail(error, LAPSE_ERROR_USAGE, "no model of this comparison has an option " LP_OPTION("--%s"),
                             option.name);
    for (int g = 0; status == LAPSE_OK && g < plan->grid_count; g++)
        if (!l->used_grid[g])
            status = lp_fail(error, LAPSE_ERROR_USAGE, "no row of this comparison has the grid's option '%s'",
                             plan->grid[g].option);
    lp_free(l);
    return status;
}

/* -------------------------------------------------------------------------------------------------- runs ----- */

static lapse_status make_runs(lapse_sweep *sweep, lapse_error *error)
{
    const lp_run_evaluation *e = &sweep->evaluation;
    unsigned long long data = (unsigned long long)lp_dataset_fingerprint(sweep->dataset);
    sweep->run_count = sweep->cell_count * sweep->seed_count;
    sweep->runs = lp_alloc((size_t)sweep->run_count, sizeof *sweep->runs);
    if (!sweep->runs)
        return fail_memory(error);
    for (int s = 0; s < sweep->seed_count; s++)
        for (int c = 0; c < sweep->cell_count; c++) {
            lp_sweep_run *run = lp_sweep_run_of(sweep, c, s);
            lp_buffer key = {0};
            bool good =
                lp_buffer_print(&key, "lapse=%s\ncommit=%s\ndata=%016llx\nseed=%llu\nsplit=%s\n", LAPSE_VERSION,
                                lp_build_commit(), data, (unsigned long long)sweep->seeds[s], lp_split_name(e->split));
            if (good && sweep->task == LP_TASK_RECOMMEND)
                good = lp_buffer_print(&key, "protocol=%s\nnegatives=%d\ncases=%lld\n", lp_protocol_name(e->protocol),
                                       e->negatives, (long long)e->cases);
            good = good && lp_buffer_print(&key, "%s", sweep->cells[c].key);
            *run = (lp_sweep_run){.cell = c, .seed = s, .left = NAN};
            run->key = good ? lp_arena_text(&sweep->arena, key.data) : NULL;
            lp_buffer_clear(&key);
            if (!run->key)
                return fail_memory(error);
            run->hash = XXH3_64bits(run->key, strlen(run->key));
        }
    return LAPSE_OK;
}

const char *lp_sweep_path(const lapse_sweep *sweep, const lp_sweep_run *run, char path[LP_SWEEP_PATH])
{
    snprintf(path, LP_SWEEP_PATH, "%s/%016llx.json", sweep->folder.path, (unsigned long long)run->hash);
    return path;
}

const char *lp_sweep_run_name(const lapse_sweep *sweep, const lp_sweep_run *run, char *out, size_t size)
{
    const lp_sweep_cell *cell = &sweep->cells[run->cell];
    snprintf(out, size, "%s%s%s, seed %llu", sweep->row_names[cell->row], *cell->config ? ", " : "", cell->config,
             (unsigned long long)sweep->seeds[run->seed]);
    return out;
}

lapse_status lp_sweep_read(lapse_sweep *sweep, lp_sweep_run *run, lapse_error *error)
{
    char path[LP_SWEEP_PATH];
    bool found = false;
    if (!*sweep->folder.path)
        return LAPSE_OK;
    LP_TRY(lp_run_record_load(&run->record, run->key, lp_sweep_path(sweep, run, path), &found, error));
    if (found)
        run->state = LP_RUN_DONE;
    return LAPSE_OK;
}

static lapse_status open_folder(lapse_sweep *sweep, lapse_error *error)
{
    LP_TRY(lp_run_folder_open(&sweep->folder, sweep->settings.folder, error));
    for (int i = 0; i < sweep->run_count; i++)
        LP_TRY(lp_sweep_read(sweep, &sweep->runs[i], error));
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ public ----- */

static lapse_status take_seeds(lapse_sweep *sweep, const lapse_sweep_plan *plan, lapse_error *error)
{
    bool single = !plan->seeds && lp_train_option_given(&plan->train, "seed");
    sweep->seed_count = plan->seeds ? plan->seed_count : single ? 1 : DEFAULT_SEEDS;
    sweep->seeds = lp_arena_alloc(&sweep->arena, (size_t)sweep->seed_count * sizeof *sweep->seeds);
    if (!sweep->seeds)
        return fail_memory(error);
    for (int s = 0; s < sweep->seed_count; s++)
        sweep->seeds[s] = plan->seeds ? plan->seeds[s] : single ? plan->train.run.seed : (uint64_t)s + 1;
    return LAPSE_OK;
}

static lapse_status take_metric(lapse_sweep *sweep, lapse_error *error)
{
    bool of_targets = lp_metric_task((lp_metric)sweep->select) == sweep->task; /* not the loss of times */
    sweep->metric = of_targets ? sweep->select : (int)lp_metric_first((lp_task)sweep->task);
    if (sweep->settings.metric != LP_UNSET)
        sweep->metric = sweep->settings.metric;
    if (lp_metric_task((lp_metric)sweep->metric) == sweep->task)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "the task %s has no metric '%s'; use %s", lp_task_names[sweep->task],
                   lp_metric_names[sweep->metric],
                   sweep->task == LP_TASK_CLASSIFY ? "log-loss or accuracy" : "ndcg@10, hit@10 or mrr");
}

/* The device is opened here, so that "auto" and its own name share records. */
static lapse_status open_device(lapse_sweep_plan *plan, const char **device, lapse_error *error)
{
    const lp_backend *backend;
    LP_TRY(lp_backend_open(lp_device_names()[plan->train.run.device], &backend, error));
    *device = backend->name;
    plan->train.run.device = lp_device_of(backend);
    if (backend->host)
        lp_train_option_withdraw(&plan->train, "device");
    return LAPSE_OK;
}

static void share_cores(lapse_sweep *sweep, const lapse_train_options *train)
{
    int cores = lp_threads_available(), left = 0;
    bool given = lp_train_option_given(train, "threads"), gpu = strcmp(sweep->device, lp_devices[0].name) != 0;
    for (int i = 0; i < sweep->run_count; i++)
        left += sweep->runs[i].state != LP_RUN_DONE;
    int fitting = given && cores / train->run.threads > 0 ? cores / train->run.threads : given ? 1 : cores;
    sweep->parallel = gpu ? 1 : sweep->settings.parallel != LP_UNSET ? sweep->settings.parallel : fitting;
    if (sweep->parallel > left)
        sweep->parallel = left > 0 ? left : 1;
    sweep->threads = given ? train->run.threads : cores / sweep->parallel > 0 ? cores / sweep->parallel : 1;
}

static lapse_status make(lapse_sweep *sweep, const lapse_sweep_plan *given, lapse_error *error)
{
    lapse_sweep_plan *plan = lp_alloc(1, sizeof *plan); /* a copy that shares the lists: the device is resolved in it */
    if (!plan)
        return fail_memory(error);
    *plan = *given;
    lapse_status status = lp_run_record_check(&plan->train, error);
    if (status == LAPSE_OK)
        status = take_seeds(sweep, plan, error);
    if (status == LAPSE_OK)
        status = open_device(plan, &sweep->device, error);
    if (status == LAPSE_OK)
        status = list_rows(sweep, plan, error);
    if (status == LAPSE_OK)
        status = take_metric(sweep, error);
    if (status == LAPSE_OK)
        status = make_runs(sweep, error);
    if (status == LAPSE_OK)
        status = open_folder(sweep, error);
    if (status == LAPSE_OK) {
        lp_sweep_choose(sweep);
        share_cores(sweep, &plan->train);
        status = lp_sweep_test(sweep, error);
    }
    lp_free(plan);
    return status;
}

lapse_status lapse_sweep_new(const lapse_dataset *dataset, const lapse_sweep_plan *plan, lapse_sweep **sweep,
                             lapse_error *error)
{
    LP_REQUIRE(error, dataset, plan, sweep);
    lapse_sweep *made = lp_alloc(1, sizeof *made);
    if (!made)
        return fail_memory(error);
    const lp_sweep_settings *s = &plan->settings;
    bool sampled = s->protocol == LP_PROTOCOL_UNIFORM || s->protocol == LP_PROTOCOL_POPULARITY;
    made->dataset = lp_dataset_share(dataset);
    made->settings = *s;
    made->folder.lock = -1;
    made->best = -1;
    made->evaluation = (lp_run_evaluation){.split = (lp_split)s->split,
                                           .protocol = (lp_protocol)s->protocol,
                                           .negatives = sampled ? s->negatives : 0,
                                           .cases = s->cases};
    pthread_mutex_init(&made->mutex, NULL);
    lp_condition_init(&made->changed);
    lapse_status status = make(made, plan, error);
    if (status != LAPSE_OK) {
        lapse_sweep_free(made);
        return status;
    }
    *sweep = made;
    return LAPSE_OK;
}

void lapse_sweep_free(lapse_sweep *sweep)
{
    if (!sweep)
        return;
    for (int i = 0; sweep->runs && i < sweep->run_count; i++)
        lp_run_record_clear(&sweep->runs[i].record);
    for (int c = 0; c < sweep->cell_count; c++)
        lp_free(sweep->cells[c].options);
    lp_free(sweep->cells);
    lp_free(sweep->runs);
    lp_arena_clear(&sweep->arena);
    lp_run_folder_close(&sweep->folder);
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->mutex);
    lapse_dataset_close(sweep->dataset);
    lp_free(sweep);
}
