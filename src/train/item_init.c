/* item_init.c: pre-trained item vectors as initial embedding, and the ridge regression that places cold items. */
#include "train/item_init.h"

#include "data/dataset/fingerprint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FITTED = 50000 }; /* items that the regression is fitted to: the most frequent ones */

/* ---------------------------------------------------------------------------------------------- the items ---- */

static const char *property(const lapse_vectors *vectors, const char *wanted)
{
    const char *name, *value;
    for (int i = 0; lapse_vectors_property(vectors, i, &name, &value); i++)
        if (strcmp(name, wanted) == 0)
            return value;
    return "";
}

/* Vectors of the same data must have been learned from the same split: others have read what is held out here. */
static lapse_status check_split(const lapse_vectors *vectors, const lapse_dataset *dataset,
                                const lapse_train_options *options, lapse_error *error)
{
    char fingerprint[32], seed[32];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, lp_dataset_fingerprint(dataset));
    snprintf(seed, sizeof seed, "%" PRIu64, options->run.seed);
    const char *split_by = property(vectors, "split_by"), *their_seed = property(vectors, "seed");
    const char *ours = lapse_split_by_names()[options->run.split_by];
    if (strcmp(property(vectors, "dataset.fingerprint"), fingerprint) != 0)
        return LAPSE_OK;
    bool same = strcmp(split_by, ours) == 0 && (strcmp(split_by, "sequence") != 0 || strcmp(their_seed, seed) == 0);
    if (same)
        return LAPSE_OK;
    return lp_fail(
        error, LAPSE_ERROR_USAGE,
        "these item vectors were learned with " LP_OPTION(
            "--split-by %s") " and seed %s, so they may have read what this run "
                             "(" LP_OPTION("--split-by %s") ", seed %s) holds out; pretrain with the same two",
        split_by, their_seed, ours, seed);
}

static lapse_status check_dims(const lapse_vectors *vectors, const lapse_train_options *options, lapse_error *error)
{
    if (options->model.dims == vectors->dims)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "the item vectors have %d numbers each and the model %d dims; train with " LP_OPTION(
                       "--dims %d") ", or pretrain with " LP_OPTION("--dims %d"),
                   vectors->dims, options->model.dims, vectors->dims, options->model.dims);
}

static bool add_name(lp_intern *names, const lp_names *from, int64_t i, uint32_t *number, bool *added)
{
    const char *name = lp_names_get(from, i);
    size_t size = from->offset[i + 1] - from->offset[i] - 1;
    *number = lp_intern_add(names, name, size, lp_intern_key(name, size), added);
    return *number < INT32_MAX;
}

/* Names all items of the model, and finds each one's vector. */
static bool name_items(lp_item_init *init, const lapse_dataset *dataset)
{
    const lapse_vectors *vectors = init->vectors;
    size_t most = (size_t)(dataset->types.count + vectors->count);
    uint32_t number;
    bool good = true, added;
    for (int64_t i = 0; good && i < dataset->types.count; i++)
        good = add_name(&init->names, &dataset->types, i, &number, &added);
    init->row = lp_alloc(most, sizeof *init->row);
    init->count = lp_alloc(most, sizeof *init->count);
    good = good && init->row && init->count;
    for (size_t i = 0; good && i < most; i++)
        init->row[i] = -1;
    for (int64_t i = 0; good && i < vectors->count; i++) {
        if (!lp_vectors_known(vectors, i))
            continue;
        good = add_name(&init->names, &vectors->names, i, &number, &added);
        if (good)
            init->row[number] = (int32_t)i;
    }
    return good;
}

static lapse_status prepare(lp_item_init *init, const lapse_dataset *dataset, const uint8_t *split,
                            const lapse_train_options *options, lapse_error *error)
{
    LP_TRY(check_split(init->vectors, dataset, options, error));
    LP_TRY(check_dims(init->vectors, options, error));
    if (!name_items(init, dataset))
        return lp_fail_memory(error, "the items", (size_t)init->vectors->count * 2 * sizeof *init->row);
    for (int64_t i = 0; i < dataset->event_count; i++)
        init->count[dataset->type[i]] += split[i] == LP_SPLIT_TRAIN;
    return LAPSE_OK;
}

lapse_status lp_item_init_open(lp_item_init *init, lapse_vectors *vectors, const lapse_dataset *dataset,
                               const uint8_t *split, const lapse_train_options *options, lapse_error *error)
{
    *init = (lp_item_init){.vectors = vectors};
    lapse_status status = vectors ? prepare(init, dataset, split, options, error) : LAPSE_OK;
    if (status != LAPSE_OK)
        lp_item_init_clear(init);
    return status;
}

void lp_item_init_clear(lp_item_init *init)
{
    lapse_vectors_free(init->vectors);
    lp_intern_clear(&init->names);
    lp_free(init->row);
    lp_free(init->count);
    *init = (lp_item_init){0};
}

static const float *vector_of(const lp_item_init *init, int64_t item)
{
    return init->vectors->vector + (int64_t)init->row[item] * init->vectors->dims;
}

/* Copies the vectors to a table [names.count x dims], scaled to this deviation of its elements. */
static void fill_table(const lp_item_init *init, double deviation, float *table)
{
    int dims = init->vectors->dims;
    double squares = 0, count = 0;
    for (int64_t i = 0; i < init->names.count; i++) {
        for (int d = 0; init->row[i] >= 0 && d < dims; d++)
            squares += (double)vector_of(init, i)[d] * vector_of(init, i)[d];
        count += init->row[i] >= 0 ? dims : 0;
    }
    float scale = count > 0 ? (float)(deviation / sqrt(squares / count)) : 0;
    for (int64_t i = 0; i < init->names.count; i++)
        for (int d = 0; init->row[i] >= 0 && d < dims; d++)
            table[i * dims + d] = scale * vector_of(init, i)[d];
}

/* ------------------------------------------------------------------------------------------ cold items - ---- */

/* Ridge regression from [vector, 1] to a row of the table: gram [n x n], moments [n x dims], n = dims + 1. */
typedef struct fit {
    int dims, n;
    double *gram, *moments; /* owned; moments become the map */
    double *input;          /* [n], owned */
} fit;

static void load_input(const fit *f, const float *vector)
{
    for (int d = 0; d < f->dims; d++)
        f->input[d] = (double)vector[d];
    f->input[f->dims] = 1;
}

static void add_item(const fit *f, const float *vector, const float *learned)
{
    load_input(f, vector);
    for (int i = 0; i < f->n; i++) {
        double x = f->input[i], *gram = f->gram + (size_t)i * (size_t)f->n;
        double *moments = f->moments + (size_t)i * (size_t)f->dims;
        for (int j = 0; j <= i; j++)
            gram[j] += x * f->input[j];
        for (int d = 0; d < f->dims; d++)
            moments[d] += x * (double)learned[d];
    }
}

/* Solves (gram + lambda I) map = moments by a Cholesky decomposition; lambda is 1e-3 of the mean of the diagonal. */
static void solve(const fit *f)
{
    int n = f->n, dims = f->dims;
    double *g = f->gram, *m = f->moments, trace = 0;
    for (int i = 0; i < n; i++)
        trace += g[(size_t)i * (size_t)n + (size_t)i];
    for (int i = 0; i < n; i++) {
        g[i * n + i] += 1e-3 * trace / n + 1e-12;
        for (int j = 0; j <= i; j++) {
            double sum = g[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= g[i * n + k] * g[j * n + k];
            g[i * n + j] = i == j ? sqrt(fmax(sum, 1e-300)) : sum / g[j * n + j];
        }
        for (int k = 0; k < i; k++)
            for (int d = 0; d < dims; d++)
                m[i * dims + d] -= g[i * n + k] * m[k * dims + d];
        for (int d = 0; d < dims; d++)
            m[i * dims + d] /= g[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            for (int d = 0; d < dims; d++)
                m[i * dims + d] -= g[k * n + i] * m[k * dims + d];
        for (int d = 0; d < dims; d++)
            m[i * dims + d] /= g[i * n + i];
    }
}

static void place_item(const fit *f, const float *vector, float *row)
{
    load_input(f, vector);
    for (int d = 0; d < f->dims; d++) {
        double sum = 0;
        for (int i = 0; i < f->n; i++)
            sum += f->input[i] * f->moments[i * f->dims + d];
        row[d] = (float)sum;
    }
}

static lapse_status place_in_table(const lp_item_init *init, float *table, lapse_error *error)
{
    int dims = init->vectors->dims;
    size_t n = (size_t)dims + 1;
    fit f = {.dims = dims,
             .n = dims + 1,
             .gram = lp_alloc(n * n, sizeof *f.gram),
             .moments = lp_alloc(n * (size_t)dims, sizeof *f.moments),
             .input = lp_alloc(n, sizeof *f.input)};
    bool good = f.gram && f.moments && f.input;
    int fitted = 0;
    for (int64_t i = 0; good && i < init->names.count && fitted < MOST_FITTED; i++) {
        if (init->row[i] >= 0 && init->count[i] > 0) {
            add_item(&f, vector_of(init, i), table + i * dims);
            fitted++;
        }
    }
    if (good && fitted > 0)
        solve(&f);
    for (int64_t i = 0; good && fitted > 0 && i < init->names.count; i++)
        if (init->row[i] >= 0 && init->count[i] == 0)
            place_item(&f, vector_of(init, i), table + i * dims);
    lp_free(f.gram);
    lp_free(f.moments);
    lp_free(f.input);
    return good ? LAPSE_OK : lp_fail_memory(error, "the vectors of cold items", n * n * sizeof(double));
}

/* Cold items get the mean bias of the rarest items that occur. */
static void place_bias(const lp_item_init *init, float *bias)
{
    int32_t rarest = INT32_MAX;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < init->names.count; i++)
        if (init->count[i] > 0 && init->count[i] < rarest)
            rarest = init->count[i];
    for (int64_t i = 0; i < init->names.count; i++) {
        sum += init->count[i] == rarest ? (double)bias[i] : 0;
        count += init->count[i] == rarest;
    }
    for (int64_t i = 0; count > 0 && i < init->names.count; i++)
        if (init->row[i] >= 0 && init->count[i] == 0)
            bias[i] = (float)(sum / (double)count);
}

/* ------------------------------------------------------------------------------------------- item tables ----- */

/* The tables with one vector per item: the input embedding, and the output vectors where they are separate. */
static const char *const item_tables[] = {"event.embedding", "output.weight"};
enum { TABLES = sizeof item_tables / sizeof *item_tables };

static float *table_of(const lapse_model *model, const char *name)
{
    const lp_tensor *tensor = lp_model_tensor_find(model, name);
    return tensor ? tensor->data : NULL;
}

void lp_item_init_fill(const lp_item_init *init, lapse_model *model)
{
    /* As large as trained vectors are, whose scores have a deviation of about 2, so that the first steps do not drown them. */
    double deviation = 2 / sqrt((double)model->config.dims);
    for (int i = 0; init->vectors && i < TABLES; i++) {
        float *table = table_of(model, item_tables[i]);
        if (table)
            fill_table(init, deviation, table);
    }
}

lapse_status lp_item_init_place(const lp_item_init *init, lapse_model *model, lapse_error *error)
{
    for (int i = 0; i < TABLES; i++) {
        float *table = table_of(model, item_tables[i]);
        if (table)
            LP_TRY(place_in_table(init, table, error));
    }
    float *bias = table_of(model, "output.bias");
    if (bias)
        place_bias(init, bias);
    return LAPSE_OK;
}
