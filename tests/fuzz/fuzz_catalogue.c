/* fuzz_catalogue.c: fuzzes the catalogue of items that `lapse pretrain` reads. The first byte chooses how its columns are given:
 * by default, or as text that is the first two lines of the input. The rest is the catalogue, plain or gzip. */
#include "data/import/catalogue.h"
#include "data/import/chunks.h"
#include "fuzz/support/fuzz.h"
#include "lapse_lab.h"

#include <string.h>

enum { LINE_LIMIT = 1024, SHARE = 256 }; /* bytes; inputs per pretraining */

static void check(const lp_catalogue *catalogue)
{
    const uint64_t *start = catalogue->start;
    FUZZ_CHECK(start[0] == 0 && catalogue->described_new <= catalogue->described);
    for (uint32_t i = 0; i < catalogue->items.count; i++)
        for (uint64_t f = start[i]; f < start[i + 1]; f++)
            FUZZ_CHECK(catalogue->feature[f] >= 0 && (uint32_t)catalogue->feature[f] < catalogue->features.count);
}

/* Cuts the first line off *data and returns it, at most 63 bytes of it; NULL where it is empty. */
static const char *cut_line(const uint8_t **data, size_t *size, char line[64])
{
    const uint8_t *end = memchr(*data, '\n', *size);
    size_t length = end ? (size_t)(end - *data) : *size, used = length < 63 ? length : 63;
    memcpy(line, *data, used);
    line[used] = 0;
    *data += end ? length + 1 : length;
    *size -= end ? length + 1 : length;
    return *line ? line : NULL;
}

static void pretrain(const uint8_t *data, size_t size, const lp_catalogue_columns *columns)
{
    lapse_pretrain_options options;
    lapse_pretrain_options_default(&options);
    options.catalogue = fuzz_file(data, size);
    options.item = columns->item;
    options.words = columns->words;
    options.dims = 2;
    options.epochs = 1;
    lapse_vectors *vectors = NULL;
    FUZZ_CHECK(lapse_pretrain(fuzz_events(), &options, NULL, NULL, &vectors, NULL) == LAPSE_OK);
    lapse_vectors_free(vectors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t choice = *data++;
    char item[64], words[64];
    lp_catalogue_columns columns = {0};
    bool taken = fuzz_takes(data, --size, SHARE);
    if (choice & 1)
        columns.item = cut_line(&data, &size, item);
    if (choice & 2)
        columns.words = cut_line(&data, &size, words);
    lp_catalogue catalogue;
    lapse_error error;
    lp_chunks_set_limit(LINE_LIMIT);
    FUZZ_CHECK(lp_catalogue_start(&catalogue, &fuzz_events()->types, NULL) == LAPSE_OK);
    lapse_status status = lp_catalogue_read_memory(&catalogue, "fuzz", data, size, &columns, &error);
    FUZZ_CHECK(status == LAPSE_OK || status == LAPSE_ERROR_INPUT);
    if (status == LAPSE_OK)
        check(&catalogue);
    lp_catalogue_clear(&catalogue);
    if (status == LAPSE_OK && taken)
        pretrain(data, size, &columns);
    return 0;
}
