/* fuzz_checkpoint.c: fuzzes the checkpoint file: a training run loads it, and a share of the inputs is trained further. A
 * checkpoint is accepted only by the run that wrote it, so mutations start from one that this program has written. */
#include "fuzz/support/fuzz.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Inputs per training, and per check before a file is overwritten; mutations per new start; bytes of an input. */
enum { SHARE = 256, CHECKED = 16, FRESH = 16, LONGEST = 8192 };

static lapse_train_options *options_of_run(const char *checkpoint, bool resume)
{
    const char *const settings[][2] = {{"model", "lstm"},
                                       {"dims", "2"},
                                       {"context", "3"},
                                       {"batch", "4"},
                                       {"epochs", "2"},
                                       {"threads", "1"},
                                       {"shards", "1"},
                                       {"checkpoint", checkpoint},
                                       {"checkpoint-every", "1e9"},
                                       {"resume", resume ? "true" : "false"}};
    lapse_train_options *options;
    FUZZ_CHECK(lapse_train_options_new(&options, NULL) == LAPSE_OK);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        FUZZ_CHECK(lapse_train_options_set(options, settings[i][0], settings[i][1], NULL) == LAPSE_OK);
    return options;
}

/* A run that checkpoints are loaded into. */
static lapse_trainer *trainer(void)
{
    static lapse_trainer *made;
    if (made)
        return made;
    lapse_train_options *options = options_of_run("", false);
    FUZZ_CHECK(lapse_trainer_new(fuzz_events(), options, &made, NULL) == LAPSE_OK);
    lapse_train_options_free(options);
    return made;
}

/* The bytes of a checkpoint of that run. */
static const lp_buffer *checkpoint(void)
{
    static lp_buffer bytes;
    if (bytes.size)
        return &bytes;
    char folder[] = "/tmp/fuzz_checkpoint.XXXXXX", path[64];
    FUZZ_CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run", folder);
    FUZZ_CHECK(lp_checkpoint_save(trainer(), path, NULL) == LAPSE_OK);
    lp_map map;
    FUZZ_CHECK(lp_map_open(&map, path, NULL) == LAPSE_OK && lp_buffer_add(&bytes, map.data, map.size));
    FUZZ_CHECK(bytes.size < LONGEST);
    lp_map_close(&map);
    unlink(path);
    rmdir(folder);
    return &bytes;
}

/* Resumes a run from the file until it ends. */
static void resume(const char *path)
{
    lapse_train_options *options = options_of_run(path, true);
    lapse_model *model = NULL;
    lapse_status status = lapse_train(fuzz_events(), options, NULL, NULL, &model, NULL);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_FORMAT);
    lapse_model_free(model);
    lapse_train_options_free(options);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const lp_buffer *whole = checkpoint();
    if ((seed % FRESH == 0 || size == 0) && whole->size <= max_size) {
        memcpy(data, whole->data, whole->size);
        size = whole->size;
    }
    return fuzz_container_mutate(data, size, max_size, seed / FRESH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_json_start();
    const lp_buffer *whole = checkpoint();
    bool own = size == 0; /* stands for the program's own checkpoint */
    const char *path = own ? fuzz_mapped(whole->data, whole->size) : fuzz_mapped(data, size);
    lapse_error error;
    bool found;
    if ((own || fuzz_takes(data, size, CHECKED)) && lp_checkpoint_check(path, &error) != LAPSE_OK)
        FUZZ_CHECK(error.status == LAPSE_ERROR_USAGE);
    if (lp_checkpoint_load(trainer(), path, &found, &error) != LAPSE_OK) {
        FUZZ_CHECK(!own && (error.status == LAPSE_ERROR_USAGE || error.status == LAPSE_ERROR_FORMAT));
        return 0;
    }
    if (own || fuzz_takes(data, size, SHARE))
        resume(path);
    return 0;
}
