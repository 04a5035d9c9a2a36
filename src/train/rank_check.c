/* rank_check.c: compares what the result of a run depends on between ranks. */
#include "train/rank_check.h"

#include "backend/cpu/cpu.h"
#include "data/dataset/fingerprint.h"
#include "train/provenance.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { TEXT = 1 << 16 };

/* A text that grows up to TEXT bytes. */
typedef struct lines {
    char *text;
    size_t at;
} lines;

__attribute__((format(printf, 2, 3))) static void add(lines *all, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(all->text + all->at, TEXT - all->at, format, arguments);
    va_end(arguments);
    all->at += length > 0 ? (size_t)length : 0;
    all->at = all->at < TEXT ? all->at : TEXT - 1;
}

/* Options that may differ: they change no result, or are rank 0's. */
static bool may_differ(const char *name)
{
    return strcmp(name, "threads") == 0 || strncmp(name, "checkpoint", 10) == 0;
}

static uint64_t hash_of(const lp_trainer *trainer, const float *buffer)
{
    size_t tables = trainer->divided ? trainer->adam.table_size : 0;
    return trainer->backend->host ? XXH3_64bits(buffer + tables, (trainer->adam.size - tables) * sizeof *buffer) : 0;
}

/* The last ones first: those of the run, from which the model's follow. */
static void add_options(const lp_trainer *trainer, lines *all)
{
    lapse_option option;
    int count = 0;
    while (lapse_train_option(count, &option))
        count++;
    while (--count >= 0 && lapse_train_option(count, &option)) {
        char value[4096] = "";
        if (may_differ(option.name) || !lapse_train_options_apply(&trainer->options, option.name))
            continue;
        lapse_train_options_get(&trainer->options, option.name, value, sizeof value);
        add(all, "--%s %s\n", option.name, value);
    }
}

static void describe(const lp_trainer *trainer, lines *all)
{
    const lp_trainer_state *state = &trainer->state;
    add(all, "version %s\ncommit %s\n", lapse_version(), lp_build_commit());
    add(all, "cpu-level %s\nOpenBLAS-kernels %s\n", lp_cpu_level(), lp_cpu_blas_core());
    add(all, "data %" PRIu64 " events, fingerprint %016" PRIx64 "\n", (uint64_t)trainer->dataset->event_count,
        lp_dataset_fingerprint(trainer->dataset));
    add_options(trainer, all);
    add(all, "checkpoint epoch %u, step %" PRIu64 "\n", (unsigned)state->epoch + 1, state->step);
    add(all, "parameters %016" PRIx64 ", moments %016" PRIx64 "\n", hash_of(trainer, trainer->parameters),
        hash_of(trainer, trainer->adam.moment2));
}

lapse_status lp_rank_check(const lp_trainer *trainer, lapse_error *error)
{
    if (!trainer->comm)
        return LAPSE_OK;
    lines all = {lp_alloc(TEXT, 1), 0};
    if (!all.text)
        return lp_fail_memory(error, "a comparison of the ranks", TEXT);
    describe(trainer, &all);
    lapse_status status = lp_comm_same(trainer->comm, "comparing the ranks", all.text, error);
    lp_free(all.text);
    return status;
}
