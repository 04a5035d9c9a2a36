/* table_layout.c: see table_layout.h. The delimiter is the one that gives most of the first records the same number of fields; by
 * default that of the first line. Lines before the first record with that number, most of whose fields are filled, are skipped. */
#include "data/import/table_layout.h"

#include "base/memory.h"
#include "data/import/csv.h"

#include <string.h>

enum { RECORDS = 40, FEWEST = 5, BYTES = 1 << 16 };

typedef struct records {
    int64_t count;
    int64_t fields[RECORDS], filled[RECORDS], lines[RECORDS];
    size_t begin[RECORDS];
    int64_t usual;  /* the most frequent number of fields */
    int64_t agreed; /* records that have it */
} records;

/* Reads the first records; blank lines belong to the record after them. */
static bool read_records(const char *text, size_t size, char delimiter, records *r)
{
    *r = (records){0};
    size_t whole = lp_csv_cut_text(text, size < BYTES ? size : BYTES, delimiter).size;
    char *copy = lp_alloc(whole + LP_CSV_PADDING, 1);
    lp_csv_record record;
    bool good = copy && lp_csv_record_init(&record, (int64_t)whole + 1 < 4096 ? (int64_t)whole + 1 : 4096);
    if (!copy)
        return false;
    lp_csv_scanner scanner;
    memcpy(copy, text, whole);
    if (good)
        lp_csv_start(&scanner, copy, whole, delimiter);
    int64_t lines = 0;
    for (size_t begin = 0; good && r->count < RECORDS && begin < whole && lp_csv_next(&scanner, &record);
         begin = (size_t)(scanner.at - copy)) {
        if (!lp_csv_is_blank(&record)) {
            int64_t i = r->count++;
            r->begin[i] = begin;
            r->fields[i] = record.count;
            r->lines[i] = lines;
            for (int64_t f = 0; f < record.count && f < record.capacity; f++)
                r->filled[i] += record.begin[f] < record.end[f];
        }
        lines += record.lines;
    }
    for (int64_t i = 0; i < r->count; i++) {
        int64_t same = 0;
        for (int64_t j = 0; j < r->count; j++)
            same += r->fields[j] == r->fields[i];
        if (same > r->agreed || (same == r->agreed && r->fields[i] > r->usual)) {
            r->agreed = same;
            r->usual = r->fields[i];
        }
    }
    lp_csv_record_clear(&record);
    lp_free(copy);
    return good;
}

static bool is_regular(const records *r)
{
    return r->count < FEWEST || (r->fields[0] == r->usual && r->usual > 1 && r->agreed * 10 >= r->count * 8 &&
                                 r->filled[0] * 2 >= r->fields[0]);
}

bool lp_table_layout_find(const char *text, size_t size, char delimiter, lp_table_layout *layout)
{
    static const char candidates[] = {',', '\t', ';', '|'};
    records r, best;
    *layout = (lp_table_layout){.delimiter = delimiter ? delimiter : lp_csv_guess(text, size)};
    if (!read_records(text, size, layout->delimiter, &best))
        return false;
    if (is_regular(&best))
        return true;
    for (size_t c = 0; !delimiter && c < sizeof candidates; c++) {
        if (!read_records(text, size, candidates[c], &r))
            return false;
        bool better = r.usual > 1 && (best.usual < 2 || r.agreed * best.count > best.agreed * r.count ||
                                      (r.agreed * best.count == best.agreed * r.count && r.usual > best.usual));
        if (better) {
            best = r;
            layout->delimiter = candidates[c];
        }
    }
    if (best.usual < 2 || best.agreed * 10 < best.count * 6 || best.count < FEWEST)
        return true;
    for (int64_t i = 0; i < best.count; i++)
        if (best.fields[i] == best.usual && best.filled[i] * 5 >= best.usual * 3) {
            layout->skip = best.begin[i];
            layout->lines = best.lines[i];
            return true;
        }
    return true;
}
