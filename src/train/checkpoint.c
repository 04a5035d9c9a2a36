/* checkpoint.c: saves and restores a training run. A checkpoint is a model file with more tensors. */
#include "train/checkpoint.h"

#include "model/model_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The state is one tensor of doubles in this order; integers below 2^53 are exact. TIMES: 1 if the network of times is trained. */
enum { STEP, EPOCH, WINDOW, LOSS, TARGETS, SCORE, BEST_SCORE, BEST_EPOCH, TIMES, STATE_COUNT };
enum { EXTRA_TENSORS = 5 };

static const char STATE[] = "run.state", PARAMETERS[] = "run.parameters", MOMENT1[] = "run.moment1",
                  MOMENT2[] = "run.moment2", AVERAGE[] = "run.average";

/* A buffer of the backend in host memory: itself on a host backend, otherwise a copy in the container's arena. */
static float *on_host(const lp_trainer *trainer, float *buffer, lp_container *container)
{
    size_t size = trainer->adam.size * sizeof *buffer;
    if (trainer->backend->host)
        return buffer;
    float *copy = lp_arena_alloc(&container->arena, size);
    if (copy)
        trainer->backend->copy_to_host(trainer->backend->context, copy, buffer, size);
    return copy;
}

lapse_status lp_checkpoint_check(const char *path, lapse_error *error)
{
    struct stat there;
    if (lstat(path, &there) != 0 && errno == ENOENT)
        return LAPSE_OK;
    lp_container container;
    lapse_status status = lp_container_open(&container, path, error);
    if (status == LAPSE_OK && !lp_container_tensor(&container, STATE))
        status = LAPSE_ERROR_FORMAT;
    lp_container_close(&container);
    if (status != LAPSE_ERROR_FORMAT)
        return status;
    return lp_fail_at(error, LAPSE_ERROR_USAGE, path, 0, 0,
                      "this file is not a checkpoint, and a checkpoint would overwrite it; set another " LP_OPTION(
                          "--checkpoint FILE"));
}

lapse_status lp_checkpoint_save(lp_trainer *trainer, const char *path, lapse_error *error)
{
    if (lp_comm_rank(trainer->divided) == 0 && !lp_file_version_equal(lp_file_version_of(path), trainer->checkpoint))
        LP_TRY(lp_checkpoint_check(path, error));
    const lp_trainer_state *state = &trainer->state;
    double numbers[STATE_COUNT] = {
        [STEP] = (double)state->step,
        [EPOCH] = state->epoch,
        [WINDOW] = (double)state->window,
        [LOSS] = state->loss,
        [TARGETS] = (double)state->targets,
        [SCORE] = state->score,
        [BEST_SCORE] = state->best_score,
        [BEST_EPOCH] = state->best_epoch,
        [TIMES] = trainer->trained != trainer->model,
    };
    lp_container container = {0};
    lapse_status status = lp_model_contain(trainer->model, EXTRA_TENSORS, &container, error);
    if (status == LAPSE_OK) {
        int64_t size = (int64_t)trainer->adam.size;
        const float *const arrays[] = {trainer->parameters, trainer->adam.moment1, trainer->adam.moment2,
                                       trainer->average};
        for (int i = 0; i < 4; i++)
            lp_container_divide(&container, arrays[i], &trainer->network.graph);
        lp_tensor *extra = container.tensors + container.tensor_count;
        extra[0] = (lp_tensor){PARAMETERS, LP_TENSOR_F32, 1, size, on_host(trainer, trainer->parameters, &container)};
        extra[1] = (lp_tensor){MOMENT1, LP_TENSOR_F32, 1, size, on_host(trainer, trainer->adam.moment1, &container)};
        extra[2] = (lp_tensor){MOMENT2, LP_TENSOR_F32, 1, size, on_host(trainer, trainer->adam.moment2, &container)};
        if (!extra[0].data || !extra[1].data || !extra[2].data)
            status = lp_fail_memory(error, "a checkpoint", 3 * trainer->adam.size * sizeof(float));
        container.tensor_count += 3;
        if (trainer->average)
            container.tensors[container.tensor_count++] =
                (lp_tensor){AVERAGE, LP_TENSOR_F32, 1, size, trainer->average};
        if (status == LAPSE_OK) /* scores of the state are NaN before the first */
            status = lp_container_check_finite(&container, path, error);
        container.tensors[container.tensor_count++] = (lp_tensor){STATE, LP_TENSOR_F64, 1, STATE_COUNT, numbers};
        if (status == LAPSE_OK)
            status = lp_container_save(&container, path, error);
    }
    lp_arena_clear(&container.arena);
    if (status == LAPSE_OK)
        trainer->checkpoint = lp_file_version_of(path);
    return status;
}

/* Checks that every property of this run has the same value in the checkpoint. */
static lapse_status check_same_run(const lp_trainer *trainer, const lp_container *container, const char *path,
                                   lapse_error *error)
{
    const lapse_model *model = trainer->model;
    for (int i = 0; i < model->property_count; i++) {
        const char *name = model->property_name[i], *stored = lp_container_property(container, name);
        if (!stored || strcmp(stored, model->property_value[i]) != 0)
            return lp_fail_at(error, LAPSE_ERROR_USAGE, path, 0, 0,
                              "this checkpoint is of another run: %s was '%s' and is now '%s'; give the same data and "
                              "options, or remove the checkpoint to start anew",
                              name, stored ? stored : "not set", model->property_value[i]);
    }
    return LAPSE_OK;
}

/* The tensor of this name, of `count` elements in one row. */
static lapse_status find(const lp_container *container, const char *name, const char *path, lp_tensor_type type,
                         size_t count, const void **data, lapse_error *error)
{
    const lp_tensor *tensor = lp_container_tensor(container, name);
    if (!tensor || tensor->type != type || tensor->rows != 1 || (size_t)tensor->cols != count)
        return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                          "this is not a checkpoint that can be used: '%s' is missing or wrong", name);
    *data = tensor->data;
    return LAPSE_OK;
}

/* A tensor of the size of the parameters, whose numbers are finite. */
static lapse_status find_numbers(const lp_trainer *trainer, const lp_container *container, const char *name,
                                 const char *path, const void **data, lapse_error *error)
{
    LP_TRY(find(container, name, path, LP_TENSOR_F32, trainer->adam.size, data, error));
    for (size_t i = 0; i < trainer->adam.size; i++) {
        float value; /* a tensor of a file may be unaligned */
        memcpy(&value, (const char *)*data + i * sizeof value, sizeof value);
        if (!isfinite(value))
            return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                              "this is not a checkpoint that can be used: '%s' has a number that is not finite", name);
    }
    return LAPSE_OK;
}

static lapse_status load_buffer(const lp_trainer *trainer, const lp_container *container, const char *name,
                                const char *path, float *buffer, lapse_error *error)
{
    const void *data = NULL;
    LP_TRY(find_numbers(trainer, container, name, path, &data, error));
    lp_trainer_copy(trainer, buffer, data);
    return LAPSE_OK;
}

/* Whether all counts are integers within the range of their types, and the network that is trained exists. */
static bool is_valid(const lp_trainer *trainer, const double numbers[STATE_COUNT])
{
    static const int counts[] = {STEP, EPOCH, WINDOW, TARGETS, BEST_EPOCH, TIMES};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double value = numbers[counts[i]], most = counts[i] == EPOCH || counts[i] == BEST_EPOCH ? UINT32_MAX : 0x1p53;
        if (!(value >= 0 && value <= most && value == floor(value)))
            return false;
    }
    return numbers[TIMES] <= (trainer->model->times ? 1 : 0);
}

static lapse_status copy_history(lapse_model *model, const lapse_model *stored, int epochs, lapse_error *error)
{
    if (stored->epochs > epochs)
        LP_TRY(lp_history_reserve(model, stored->epochs, error));
    model->epochs = stored->epochs;
    if (stored->epochs > 0)
        memcpy(model->history, stored->history,
               (size_t)stored->epochs * (size_t)lp_history_columns(&model->config) * sizeof *model->history);
    return LAPSE_OK;
}

/* Copies the best parameters, the history, and the scores of a network that has been trained. */
static lapse_status copy_best(lp_trainer *trainer, const lapse_model *best, const char *path, lapse_error *error)
{
    lapse_model *to[] = {trainer->model, trainer->model->times};
    const lapse_model *from[] = {best, best->times};
    for (int i = 0; i < 2 && to[i]; i++) {
        /* The properties that are compared do not fix the size: the numbers of categories are in the vocabularies alone. */
        size_t size = to[i]->network.graph.parameter_size;
        if (!from[i] || from[i]->network.graph.parameter_size != size)
            return lp_fail_at(
                error, LAPSE_ERROR_FORMAT, path, 0, 0,
                "this is not a checkpoint that can be used: its model does not have the sizes of this run's");
        lp_item_rows_copy(&to[i]->network.graph, trainer->divided, to[i]->parameters, from[i]->parameters);
        LP_TRY(copy_history(to[i], from[i], trainer->options.run.epochs, error));
    }
    for (int i = 0; i < best->property_count; i++)
        LP_TRY(lp_model_property_set(trainer->model, error, best->property_name[i], "%s", best->property_value[i]));
    return LAPSE_OK;
}

/* The metrics of the best epoch, from the history. */
static lapse_status restore_metrics(lp_trainer *trainer, const char *path, lapse_error *error)
{
    const lapse_model *trained = trainer->trained;
    uint32_t best = trainer->state.best_epoch;
    if ((uint32_t)trained->epochs != trainer->state.epoch || best > trainer->state.epoch)
        return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                          "this is not a checkpoint that can be used: 'history' is missing or wrong");
    if (best > 0)
        memcpy(trainer->metrics, lp_history_metrics(trained, (int)best),
               (size_t)(lp_history_columns(&trained->config) - 1) * sizeof *trainer->metrics);
    return LAPSE_OK;
}

static lapse_status restore(lp_trainer *trainer, const lp_container *container, const char *path, lapse_error *error)
{
    double numbers[STATE_COUNT];
    const void *stored = NULL;
    LP_TRY(check_same_run(trainer, container, path, error));
    LP_TRY(find(container, STATE, path, LP_TENSOR_F64, STATE_COUNT, &stored, error));
    memcpy(numbers, stored, sizeof numbers);
    if (!is_valid(trainer, numbers))
        return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                          "this is not a checkpoint that can be used: '%s' is missing or wrong", STATE);
    if (numbers[TIMES] > 0)
        LP_TRY(lp_trainer_times(trainer, error));
    LP_TRY(load_buffer(trainer, container, PARAMETERS, path, trainer->parameters, error));
    LP_TRY(load_buffer(trainer, container, MOMENT1, path, trainer->adam.moment1, error));
    LP_TRY(load_buffer(trainer, container, MOMENT2, path, trainer->adam.moment2, error));
    if (trainer->average) {
        LP_TRY(find_numbers(trainer, container, AVERAGE, path, &stored, error));
        lp_item_rows_copy(&trainer->network.graph, trainer->divided, trainer->average, stored);
    }
    lapse_model *best;
    LP_TRY(lp_model_from_container(container, path, trainer->divided, &best, error));
    lapse_status status = copy_best(trainer, best, path, error);
    lapse_model_free(best);
    trainer->state = (lp_trainer_state){
        .step = (uint64_t)numbers[STEP],
        .epoch = (uint32_t)numbers[EPOCH],
        .window = (int64_t)numbers[WINDOW],
        .loss = numbers[LOSS],
        .targets = (int64_t)numbers[TARGETS],
        .score = numbers[SCORE],
        .best_score = numbers[BEST_SCORE],
        .best_epoch = (uint32_t)numbers[BEST_EPOCH],
    };
    return status == LAPSE_OK ? restore_metrics(trainer, path, error) : status;
}

lapse_status lp_checkpoint_load(lp_trainer *trainer, const char *path, bool *found, lapse_error *error)
{
    *found = access(path, F_OK) == 0;
    if (!*found)
        return LAPSE_OK;
    lp_container container;
    LP_TRY(lp_container_open(&container, path, error));
    lapse_status status = restore(trainer, &container, path, error);
    if (status == LAPSE_OK)
        trainer->checkpoint = lp_file_version_of(path);
    lp_container_close(&container);
    return status;
}

lapse_status lp_checkpoint_delete(lp_trainer *trainer, const char *path, lapse_error *error)
{
    lp_file_version none = {0};
    char file[PATH_MAX];
    bool mine = !lp_file_version_equal(trainer->checkpoint, none) &&
                lp_file_version_equal(lp_file_version_of(path), trainer->checkpoint);
    if (!mine)
        return LAPSE_OK;
    if (!realpath(path, file) || unlink(file) != 0)
        return lp_fail_errno(error, "delete", path);
    trainer->checkpoint = none;
    struct stat link;
    if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && unlink(path) != 0)
        return lp_fail_errno(error, "delete", path);
    return LAPSE_OK;
}
