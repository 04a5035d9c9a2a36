/* test_interface.c: contracts that the opening comment of lapse.h states for all calls: NULL where it is not allowed is
 * refused, indices out of range, objects that are freed before those that use them; and the deletion of checkpoints. */
#include "support/small_data.h"
#include "support/small_train.h"
#include "lapse_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
static void overwrite_freed(bool on)
{
    mallopt(M_PERTURB, on ? 0xA5 : 0);
}
#else
static void overwrite_freed(bool on)
{
    (void)on;
}
#endif

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

/* --------------------------------------------------------------------------------------------------- NULL ---- */

/* Stands for an object: a call that reads it before it refuses another argument's NULL finds zeros. */
static _Alignas(64) char dummy[1 << 16];

/* Argument i of a call: NULL for one of them. */
#define P(i) (null == (i) ? NULL : (void *)dummy)
#define CALL(name, expression)                                    \
    static lapse_status call_##name(int null, lapse_error *error) \
    {                                                             \
        (void)null; /* without required pointers */               \
        return lapse_##name expression;                           \
    }

CALL(time_parse, (P(0), P(1), error))
CALL(time_parse_zone, (P(0), NULL, P(1), error))
CALL(duration_parse, (P(0), P(1), error))
CALL(file_write, (P(0), P(1), 1, error))
CALL(memory_bound_begin, (P(0), 1 << 30, error))
CALL(comm_new, (P(0), P(1), error))
CALL(comm_open, (P(0), error))
CALL(comm_barrier, (NULL, error))
CALL(dataset_select, (P(0), P(1), 1, P(2), error))
CALL(return_evaluate, (P(0), P(1), P(2), P(3), error))
CALL(sweep_test, (P(0), 0, 1, 0, P(1), P(2), error))
CALL(train_options_like, (P(0), P(1), P(2), error))
CALL(compare, (P(0), P(1), P(2), P(3), error))
CALL(model_record, (P(0), P(1), error))
CALL(dataset_read, (P(0), P(1), NULL, error))
CALL(dataset_from_arrow, (P(0), P(1), P(2), NULL, error))
CALL(dataset_save, (P(0), P(1), error))
CALL(dataset_open, (P(0), P(1), error))
CALL(dataset_check, (P(0), P(1), P(2), error))
CALL(train_options_new, (P(0), error))
CALL(train_options_set, (P(0), P(1), P(2), error))
CALL(trainer_new, (P(0), P(1), P(2), error))
CALL(trainer_run, (P(0), NULL, NULL, P(1), error))
CALL(trainer_delete_checkpoint, (P(0), error))
CALL(train, (P(0), P(1), NULL, NULL, P(2), error))
CALL(pretrain, (P(0), P(1), NULL, NULL, P(2), error))
CALL(vectors_save, (P(0), P(1), error))
CALL(vectors_load, (P(0), P(1), error))
CALL(model_save, (P(0), P(1), error))
CALL(model_load, (P(0), P(1), error))
CALL(model_load_divided, (P(0), NULL, P(1), error))
CALL(evaluate, (P(0), P(1), P(2), P(3), error))
CALL(rank_evaluate, (P(0), P(1), P(2), P(3), error))
CALL(rank_compare, (P(0), P(1), P(2), P(3), P(4), error))
CALL(session_new, (P(0), P(1), error))
CALL(session_append, (P(0), 0, P(1), error))
CALL(session_append_event, (P(0), P(1), error))
CALL(session_predict, (P(0), 0, P(1), error))
CALL(session_predict_target, (P(0), 0, P(1), P(2), error))
CALL(inspect, (P(0), NULL, P(1), NULL, NULL, error))
CALL(session_attention, (P(0), 0, 0, 0, P(1), error))
CALL(session_recommend, (P(0), 0, 1, false, P(1), P(2), error))
CALL(session_sync, (P(0), P(1), 1, NULL, error))
CALL(session_bytes, (P(0), 1, P(1), error))
CALL(session_save, (P(0), true, NULL, 0, P(1), error))
CALL(session_restore, (P(0), P(1), 1, error))
CALL(session_predict_many, (P(0), 1, NULL, P(1), error))
CALL(session_recommend_many, (P(0), 1, NULL, error))
CALL(session_state, (P(0), 0, P(1), error))
CALL(session_state_many, (P(0), 1, P(1), error))
CALL(session_when, (P(0), P(1), error))
CALL(session_within, (P(0), 0, 0, P(1), error))
CALL(session_sample, (P(0), 0, 1, 1, P(1), P(2), error))
CALL(when_all, (P(0), P(1), P(2), P(3), NULL, NULL, NULL, error))
CALL(forecast, (P(0), P(1), P(2), P(3), error))
CALL(time_evaluate, (P(0), P(1), P(2), P(3), error))
CALL(predict_all, (P(0), P(1), P(2), 1, P(3), P(4), P(5), error))
CALL(predict_prefixes, (P(0), P(1), P(2), NULL, 1, P(3), P(4), P(5), error))
CALL(model_spectrum, (P(0), P(1), error))
CALL(lags_resolve, (P(0), P(1), error))
CALL(spectrum_save_svg, (P(0), P(1), NULL, P(2), error))
CALL(bound_samples, (P(0), 0, P(1), error))
CALL(bound_measure, (P(0), 1, P(1), error))
CALL(simulate, (P(0), P(1), error))
CALL(simulation_save, (P(0), P(1), error))
CALL(simulation_save_catalogue, (P(0), P(1), error))
CALL(simulation_save_law, (P(0), P(1), error))
CALL(simulation_evaluate, (P(0), P(1), P(2), P(3), P(4), error))
CALL(simulation_time_evaluate, (P(0), P(1), P(2), P(3), P(4), error))
CALL(simulation_forecast, (P(0), P(1), P(2), P(3), error))
CALL(simulation_rank, (P(0), P(1), P(2), P(3), P(4), error))
CALL(bench, (P(0), P(1), error))
CALL(sweep_plan_new, (P(0), error))
CALL(sweep_plan_set, (P(0), P(1), P(2), error))
CALL(sweep_plan_parse, (P(0), P(1), 1, error))
CALL(sweep_plan_load, (P(0), P(1), error))
CALL(sweep_new, (P(0), P(1), P(2), error))
CALL(sweep_run, (P(0), NULL, NULL, error))
CALL(sweep_save_svg, (P(0), NULL, P(1), error))
CALL(tune, (P(0), P(1), P(2), NULL, NULL, P(3), error))

/* Every call that returns a status: its pointer parameters in order, those that may be NULL in brackets. */
#define ROW(name, pointers)                   \
    {                                         \
        "lapse_" #name, pointers, call_##name \
    }
static const struct {
    const char *name, *pointers;
    lapse_status (*call)(int null, lapse_error *error);
} calls[] = {
    ROW(time_parse, "text time"),
    ROW(time_parse_zone, "text [timezone] time"),
    ROW(duration_parse, "text seconds"),
    ROW(file_write, "path data"),
    ROW(memory_bound_begin, "folder"),
    ROW(comm_new, "functions comm"),
    ROW(comm_open, "comm"),
    ROW(comm_barrier, "[comm]"),
    ROW(dataset_select, "dataset sequences selected"),
    ROW(return_evaluate, "model dataset options scores"),
    ROW(sweep_test, "sweep difference p"),
    ROW(train_options_like, "options model dataset"),
    ROW(compare, "model dataset options comparison"),
    ROW(model_record, "model comparison"),
    ROW(dataset_read, "options dataset [report]"),
    ROW(dataset_from_arrow, "stream options dataset [report]"),
    ROW(dataset_save, "dataset path"),
    ROW(dataset_open, "path dataset"),
    ROW(dataset_check, "dataset options check"),
    ROW(train_options_new, "options"),
    ROW(train_options_set, "options name value"),
    ROW(trainer_new, "dataset options trainer"),
    ROW(trainer_run, "trainer [context] model"),
    ROW(trainer_delete_checkpoint, "trainer"),
    ROW(train, "dataset options [context] model"),
    ROW(pretrain, "dataset options [context] vectors"),
    ROW(vectors_save, "vectors path"),
    ROW(vectors_load, "path vectors"),
    ROW(model_save, "model path"),
    ROW(model_load, "path model"),
    ROW(model_load_divided, "path [comm] model"),
    ROW(evaluate, "model dataset options scores"),
    ROW(rank_evaluate, "model dataset options scores"),
    ROW(rank_compare, "model dataset options scores comparison"),
    ROW(session_new, "model session"),
    ROW(session_append, "session event"),
    ROW(session_append_event, "session event"),
    ROW(session_predict, "session probabilities"),
    ROW(session_predict_target, "session target probabilities"),
    ROW(inspect, "model [dataset] options [path] [inspection]"),
    ROW(session_attention, "session weights"),
    ROW(session_recommend, "session best count"),
    ROW(session_sync, "session events [reused]"),
    ROW(session_bytes, "model bytes"),
    ROW(session_save, "session [buffer] needed"),
    ROW(session_restore, "session buffer"),
    ROW(session_predict_many, "queries [target] probabilities"),
    ROW(session_recommend_many, "queries [target]"),
    ROW(session_state, "session state"),
    ROW(session_state_many, "queries states"),
    ROW(session_when, "session when"),
    ROW(session_within, "session probabilities"),
    ROW(session_sample, "session time event"),
    ROW(when_all, "model histories options start [quantiles] [within] [type_within]"),
    ROW(forecast, "model histories options forecasts"),
    ROW(time_evaluate, "model dataset options scores"),
    ROW(predict_all, "model histories queries options best counts"),
    ROW(predict_prefixes, "model histories queries [events] options best counts"),
    ROW(model_spectrum, "model spectrum"),
    ROW(lags_resolve, "spectrum lags"),
    ROW(spectrum_save_svg, "spectrum lags [title] path"),
    ROW(bound_samples, "options samples"),
    ROW(bound_measure, "options measured"),
    ROW(simulate, "options simulation"),
    ROW(simulation_save, "simulation path"),
    ROW(simulation_save_catalogue, "simulation path"),
    ROW(simulation_save_law, "simulation path"),
    ROW(simulation_evaluate, "simulation model dataset options scores"),
    ROW(simulation_time_evaluate, "simulation model dataset options scores"),
    ROW(simulation_forecast, "simulation histories options count"),
    ROW(simulation_rank, "simulation model dataset options scores"),
    ROW(bench, "options report"),
    ROW(sweep_plan_new, "plan"),
    ROW(sweep_plan_set, "plan name value"),
    ROW(sweep_plan_parse, "plan text"),
    ROW(sweep_plan_load, "plan path"),
    ROW(sweep_new, "dataset plan sweep"),
    ROW(sweep_run, "sweep [context]"),
    ROW(sweep_save_svg, "sweep [title] path"),
    ROW(tune, "dataset options tune [context] model"),
};
enum { CALLS = sizeof calls / sizeof *calls };

/* The next pointer that must not be NULL; false: there is none. Advances *pointers. */
static bool next_required(const char **pointers, char name[64])
{
    int used = 0;
    while (sscanf(*pointers, " %63s%n", name, &used) == 1) {
        *pointers += used;
        if (*name != '[')
            return true;
    }
    return false;
}

static void null_is_refused(void **state)
{
    (void)state;
    for (size_t c = 0; c < CALLS; c++) {
        const char *pointers = calls[c].pointers;
        char name[64], wanted[160];
        for (int null = 0; next_required(&pointers, name); null++) {
            lapse_error error = {0};
            memset(dummy, 0, sizeof dummy);
            lapse_status status = calls[c].call(null, &error);
            snprintf(wanted, sizeof wanted, "%s: %s is NULL", calls[c].name, name);
            if (status != LAPSE_ERROR_USAGE || error.status != status || strcmp(error.message, wanted) != 0)
                fail_msg("status %d, '%s', should be '%s'", (int)status, error.message, wanted);
            assert_int_equal(calls[c].call(null, NULL), LAPSE_ERROR_USAGE);
        }
    }
}

/* The pointer parameters of a declaration after its parenthesis, without the error. */
static void list_pointers(const char *declaration, char *out)
{
    const char *end = strchr(declaration, ';');
    *out = 0;
    while (declaration < end) {
        const char *next = declaration + strcspn(declaration, ",;"), *last = next, *first;
        while (!isalnum((unsigned char)last[-1]))
            last--;
        for (first = last; isalnum((unsigned char)first[-1]) || first[-1] == '_';)
            first--;
        if (memchr(declaration, '*', (size_t)(first - declaration)) && strncmp(first, "error", 5) != 0)
            sprintf(out + strlen(out), "%s%.*s", *out ? " " : "", (int)(last - first), first);
        declaration = next + 1;
    }
}

/* The table has every declaration of the headers, with all its pointers. */
static void the_table_is_complete(void **state)
{
    (void)state;
    lp_buffer header = small_file_read("include/lapse.h"), lab = small_file_read("include/lapse_lab.h");
    lp_buffer_add(&header, lab.data, lab.size);
    lp_buffer_add(&header, "", 1);
    lp_buffer_clear(&lab);
    size_t found = 0;
    for (const char *at = header.data; (at = strstr(at, "\nlapse_status lapse_")); found++) {
        at += sizeof "\nlapse_status " - 1;
        size_t size = strcspn(at, "("), c = 0;
        while (c < CALLS && (strlen(calls[c].name) != size || strncmp(calls[c].name, at, size) != 0))
            c++;
        if (c == CALLS)
            fail_msg("%.*s is not in the table", (int)size, at);
        char pointers[400], listed[400] = "";
        list_pointers(at + size + 1, pointers);
        for (const char *p = calls[c].pointers; *p; p++)
            if (*p != '[' && *p != ']')
                strncat(listed, p, 1);
        if (strcmp(pointers, listed) != 0)
            fail_msg("%s has the pointers '%s', and in the table '%s'", calls[c].name, pointers, listed);
    }
    assert_int_equal(found, CALLS);
    lp_buffer_clear(&header);
}

/* NULL members of structs that must not be NULL. */
static void null_members_are_refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    options.run.epochs = 1;
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    lapse_session *session = NULL;
    lapse_error error = {0};
    lapse_evaluate_options evaluate;
    lapse_scores scores;
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = NULL;
    assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "lapse_evaluate: options->split is NULL");
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append_event(session, &(lapse_event){.time = 1}, &error), LAPSE_ERROR_USAGE);
    assert_int_equal(lapse_predict_all(model, dataset, NULL, -1, &(lapse_predict_options){.top = 1}, NULL, NULL, NULL),
                     LAPSE_ERROR_USAGE);
    assert_int_equal(lapse_predict_all(model, dataset, NULL, 0, &(lapse_predict_options){.top = 1}, NULL, NULL, NULL),
                     LAPSE_OK);
    lapse_bench_options bench;
    lapse_bench_report report;
    lapse_bench_options_default(&bench);
    bench.device = NULL;
    assert_int_equal(lapse_bench(&bench, &report, &error), LAPSE_ERROR_USAGE);
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------ indices ---- */

static void indices_out_of_range(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_pretrain_options options;
    lapse_pretrain_options_default(&options);
    options.epochs = 1;
    options.dims = 4;
    lapse_vectors *vectors = NULL;
    assert_int_equal(lapse_pretrain(dataset, &options, NULL, NULL, &vectors, NULL), LAPSE_OK);
    lapse_train_options train = small_train_options();
    train.run.epochs = 1;
    lapse_model *model = small_train(dataset, &train, NULL, NULL);
    const int64_t beyond[] = {-1, 1 << 20, INT64_MIN, INT64_MAX, lapse_vectors_count(vectors)};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        const double *times, *numbers;
        const int32_t *types, *categories;
        const char *name, *value;
        lapse_field field;
        lapse_option option;
        int64_t count = 1;
        int small = beyond[i] < 0 ? -1 : 1 << 20;
        assert_null(lapse_vectors_name(vectors, beyond[i]));
        assert_null(lapse_vectors_get(vectors, beyond[i]));
        assert_int_equal(lapse_vectors_occurrences(vectors, beyond[i]), 0);
        assert_false(lapse_vectors_property(vectors, small, &name, &value));
        assert_null(lapse_dataset_event_type_name(dataset, beyond[i]));
        if (i < 4)
            assert_null(lapse_dataset_sequence_name(dataset, beyond[i]));
        lapse_dataset_sequence(dataset, i < 4 ? beyond[i] : -1, &times, &types, &count);
        assert_int_equal(count, 0);
        assert_false(lapse_dataset_field(dataset, small, &field));
        assert_null(lapse_dataset_category_name(dataset, small, beyond[i]));
        lapse_dataset_field_values(dataset, small, beyond[i], &categories, &numbers);
        assert_true(!categories && !numbers);
        assert_false(lapse_dataset_property(dataset, small, &name, &value));
        assert_null(lapse_model_event_type_name(model, beyond[i]));
        assert_false(lapse_model_field(model, small, &field));
        assert_null(lapse_model_category_name(model, small, beyond[i]));
        assert_int_equal(lapse_model_category_find(model, small, "a"), -1);
        assert_null(lapse_model_target(model, small));
        assert_null(lapse_model_target_name(model, "event", beyond[i]));
        assert_false(lapse_model_property(model, small, &name, &value));
        assert_false(lapse_train_option(small, &option));
    }
    lapse_model_free(model);
    lapse_vectors_free(vectors);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------- freeing --- */

static void a_session_keeps_its_model(void **state)
{
    (void)state;
    overwrite_freed(true);
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    options.run.epochs = 1;
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    lapse_session *one = NULL, *two = NULL;
    double before[5], after[5];
    assert_int_equal(lapse_session_new(model, &one, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &two, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(one, 1, "a", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(one, 2, before, NULL), LAPSE_OK);
    lapse_model_free(model);
    assert_int_equal(lapse_session_predict(one, 2, after, NULL), LAPSE_OK);
    assert_memory_equal(before, after, sizeof before);
    lapse_session_free(one);
    assert_int_equal(lapse_session_append(two, 1, "a", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(two, 2, after, NULL), LAPSE_OK);
    assert_memory_equal(before, after, sizeof before);
    lapse_session_free(two);
    lapse_dataset_close(dataset);
    overwrite_freed(false);
}

static void a_trainer_keeps_its_dataset(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1), *opened = NULL;
    lapse_train_options options = small_train_options();
    lapse_model *wanted = small_train(dataset, &options, NULL, NULL), *model = NULL;
    lapse_trainer *trainer = NULL;
    assert_int_equal(lapse_dataset_save(dataset, small_path("d.lapse"), NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_open(small_path("d.lapse"), &opened, NULL), LAPSE_OK);
    assert_int_equal(lapse_trainer_new(opened, &options, &trainer, NULL), LAPSE_OK);
    lapse_dataset_close(opened); /* unmaps the file, unless the trainer keeps it */
    assert_int_equal(lapse_trainer_run(trainer, NULL, NULL, &model, NULL), LAPSE_OK);
    assert_int_equal(lapse_model_save(wanted, small_path("wanted"), NULL), LAPSE_OK);
    assert_int_equal(lapse_model_save(model, small_path("model"), NULL), LAPSE_OK);
    small_files_same(small_path("wanted"), small_path("model"));
    lapse_model_free(model); /* before the trainer that made it */
    lapse_trainer_free(trainer);
    lapse_model_free(wanted);
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------------- checkpoints --- */

static bool stop_at_once(const lapse_progress *progress, void *context)
{
    (void)progress;
    (void)context;
    return false;
}

/* A trainer that has written the checkpoint `path` and stopped. */
static lapse_trainer *stopped(const lapse_dataset *dataset, const char *path)
{
    lapse_train_options options = small_train_options();
    lapse_trainer *trainer = NULL;
    lapse_model *model = NULL;
    small_set(&options, "checkpoint", path);
    assert_int_equal(lapse_trainer_new(dataset, &options, &trainer, NULL), LAPSE_OK);
    assert_int_equal(lapse_trainer_run(trainer, stop_at_once, NULL, &model, NULL), LAPSE_OK);
    lapse_model_free(model);
    assert_int_equal(access(path, F_OK), 0);
    return trainer;
}

static void checkpoints_are_deleted(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    char path[512], target[512];
    snprintf(path, sizeof path, "%s", small_path("run.checkpoint"));
    snprintf(target, sizeof target, "%s", small_path("target.checkpoint"));
    /* Its own file; a second time there is none. */
    lapse_trainer *trainer = stopped(dataset, path);
    assert_int_equal(lapse_trainer_delete_checkpoint(trainer, NULL), LAPSE_OK);
    assert_int_equal(access(path, F_OK), -1);
    small_file_write(path, "another file", 12);
    assert_int_equal(lapse_trainer_delete_checkpoint(trainer, NULL), LAPSE_OK);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
    lapse_trainer_free(trainer);
    /* A file that replaced it stays, also a checkpoint of another run. */
    trainer = stopped(dataset, path);
    lapse_trainer *other = stopped(dataset, path);
    assert_int_equal(lapse_trainer_delete_checkpoint(trainer, NULL), LAPSE_OK);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(lapse_trainer_delete_checkpoint(other, NULL), LAPSE_OK);
    assert_int_equal(access(path, F_OK), -1);
    lapse_trainer_free(trainer);
    lapse_trainer_free(other);
    /* A link and its target. */
    other = stopped(dataset, target);
    assert_int_equal(symlink(target, path), 0);
    trainer = stopped(dataset, path);
    assert_int_equal(lapse_trainer_delete_checkpoint(trainer, NULL), LAPSE_OK);
    struct stat there;
    assert_int_equal(lstat(path, &there), -1);
    assert_int_equal(lstat(target, &there), -1);
    lapse_trainer_free(trainer);
    lapse_trainer_free(other);
    lapse_dataset_close(dataset);
}

/* The direction of a file is a member of the option. */
static void options_say_which_files_are_written(void **state)
{
    (void)state;
    lapse_option option;
    assert_true(lapse_train_option_find("checkpoint", &option) && option.output);
    assert_true(lapse_train_option_find("item-vectors", &option) && !option.output);
    for (int i = 0; lapse_train_option(i, &option); i++)
        assert_true(!option.output || option.type == LAPSE_OPTION_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(null_members_are_refused),
        cmocka_unit_test(indices_out_of_range),
        cmocka_unit_test(a_session_keeps_its_model),
        cmocka_unit_test_teardown(a_trainer_keeps_its_dataset, remove_files),
        cmocka_unit_test_teardown(checkpoints_are_deleted, remove_files),
        cmocka_unit_test(options_say_which_files_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
