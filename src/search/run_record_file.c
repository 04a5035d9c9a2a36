/* run_record_file.c: the JSON file of a finished training run. Numbers are written in the digits that restore them, so a table made
 * from files equals one made from the runs. */
#include "search/run_record.h"

#include "base/file.h"
#include "base/json_reader.h"
#include "base/memory.h"
#include "train/provenance.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* ----------------------------------------------------------------------------------------------- writing ----- */

static bool add_number(lp_buffer *out, double value)
{
    char text[LP_NUMBER_SIZE];
    return lp_buffer_print(out, "%s", isfinite(value) ? lp_number_text(value, text) : "null");
}

static bool add_text(lp_buffer *out, const char *text)
{
    bool good = lp_buffer_add(out, "\"", 1);
    for (; good && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c < 0x20)
            good = lp_buffer_print(out, "\\u%04x", (unsigned)c);
        else
            good = lp_buffer_add(out, text, 1);
    }
    return good && lp_buffer_add(out, "\"", 1);
}

static bool add_curve(lp_buffer *out, const lp_run_record *record)
{
    bool good = lp_buffer_print(out, "],\n\"curve\": [");
    for (int i = 0; good && i < record->epochs; i++)
        good = lp_buffer_print(out, i ? ",[" : "[") && add_number(out, record->curve[i].seconds) &&
               lp_buffer_print(out, ",") && add_number(out, record->curve[i].score) && lp_buffer_print(out, "]");
    return good;
}

static bool add_groups(lp_buffer *out, const lp_run_record *record)
{
    bool good = lp_buffer_print(out, "],\n\"groups\": [");
    for (int g = 0; good && g < record->group_count; g++) {
        const lp_record_group *group = &record->groups[g];
        good = lp_buffer_print(out, "%s[%d,%lld", g ? ",\n" : "", (int)group->group, (long long)group->cases);
        for (int m = 0; good && m < record->metrics; m++)
            good = lp_buffer_print(out, ",") && add_number(out, group->sums[m]);
        good = good && lp_buffer_print(out, "]");
    }
    return good && lp_buffer_print(out, "],\n");
}

/* The last line of a record: the checksum of all bytes before it. So a number that was changed does not become a result. */
enum { CHECKSUM_SIZE = 32 };

static void checksum_line(const char *text, size_t size, char line[CHECKSUM_SIZE + 1])
{
    snprintf(line, CHECKSUM_SIZE + 1, "\"checksum\": \"%016llx\"}\n", (unsigned long long)XXH3_64bits(text, size));
}

static bool add_checksum(lp_buffer *out)
{
    char line[CHECKSUM_SIZE + 1];
    checksum_line(out->data, out->size, line);
    return lp_buffer_add(out, line, CHECKSUM_SIZE);
}

static bool is_intact(const char *text, size_t size)
{
    char line[CHECKSUM_SIZE + 1];
    if (size < CHECKSUM_SIZE)
        return false;
    checksum_line(text, size - CHECKSUM_SIZE, line);
    return memcmp(text + size - CHECKSUM_SIZE, line, CHECKSUM_SIZE) == 0;
}

static bool add_record(lp_buffer *out, const lp_run_record *record, const char *key, const char *name)
{
    return lp_buffer_print(out, "{\"lapse\": \"%s\", \"commit\": \"%s\",\n\"run\": ", LAPSE_VERSION,
                           lp_build_commit()) &&
           add_text(out, name) && lp_buffer_print(out, ",\n\"key\": ") && add_text(out, key) &&
           lp_buffer_print(out,
                           ",\n\"diverged\": %s, \"stopped\": %s, \"score\": ", record->diverged ? "true" : "false",
                           record->stopped ? "true" : "false") &&
           add_number(out, record->score) &&
           lp_buffer_print(out, ", \"epochs\": %d, \"best_epoch\": %d, \"seconds\": ", record->epochs,
                           record->best_epoch) &&
           add_number(out, record->seconds) &&
           lp_buffer_print(
               out, ", \"parameters\": %lld,\n\"metrics\": %d, \"cases\": %lld, \"sequences\": %lld,\n\"means\": [",
               (long long)record->parameters, record->metrics, (long long)record->cases, (long long)record->sequences);
}

static bool add_means(lp_buffer *out, const lp_run_record *record)
{
    bool good = true;
    for (int m = 0; good && m < record->metrics; m++)
        good = lp_buffer_print(out, m ? "," : "") && add_number(out, lp_run_record_mean(record, m));
    return good;
}

lapse_status lp_run_record_save(const lp_run_record *record, const char *key, const char *name, const char *path,
                                lapse_error *error)
{
    lp_buffer out = {0};
    lp_writer writer = {0};
    bool made = add_record(&out, record, key, name) && add_means(&out, record) && add_curve(&out, record) &&
                add_groups(&out, record) && add_checksum(&out);
    lapse_status status =
        made ? lp_writer_open(&writer, path, error) : lp_fail_memory(error, "a run's record", out.size);
    if (status == LAPSE_OK)
        status = lp_writer_add(&writer, out.data, out.size, error);
    if (status == LAPSE_OK)
        status = lp_writer_commit(&writer, error);
    lp_writer_abandon(&writer);
    lp_buffer_clear(&out);
    return status;
}

/* ----------------------------------------------------------------------------------------------- reading ----- */

typedef struct reading {
    lp_run_record *record;
    const char *key;
    bool same_key;   /* the file's key is the expected one */
    unsigned fields; /* bit by field that was read */
    bool memory;     /* ran out of it */
} reading;

static bool read_int(lp_json *json, int64_t least, int64_t most, int64_t *value)
{
    return lp_json_integer(json, value) && *value >= least && *value <= most;
}

static bool read_curve(lp_json *json, reading *r)
{
    int count = lp_json_count(*json);
    lp_run_record *record = r->record;
    record->curve = lp_alloc((size_t)count, sizeof *record->curve);
    r->memory = r->memory || !record->curve;
    bool good = record->curve && count == record->epochs && lp_json_take(json, '[');
    for (int i = 0; good && i < count; i++)
        good = (i == 0 || lp_json_take(json, ',')) && lp_json_take(json, '[') &&
               lp_json_number(json, &record->curve[i].seconds) && lp_json_take(json, ',') &&
               lp_json_number(json, &record->curve[i].score) && lp_json_take(json, ']') &&
               record->curve[i].seconds >= 0;
    return good && lp_json_take(json, ']');
}

static bool read_group(lp_json *json, const lp_run_record *record, int32_t least, lp_record_group *group)
{
    int64_t index;
    bool good = lp_json_take(json, '[') && read_int(json, least, LP_RECORD_GROUPS - 1, &index) &&
                lp_json_take(json, ',') && read_int(json, 1, record->cases, &group->cases);
    for (int m = 0; good && m < record->metrics; m++)
        good = lp_json_take(json, ',') && lp_json_number(json, &group->sums[m]) && isfinite(group->sums[m]);
    if (good)
        group->group = (int32_t)index;
    return good && lp_json_take(json, ']');
}

/* Groups ascend, and their cases add up. */
static bool read_groups(lp_json *json, reading *r)
{
    lp_run_record *record = r->record;
    int count = lp_json_count(*json);
    int64_t cases = 0;
    record->groups = lp_alloc((size_t)count, sizeof *record->groups);
    r->memory = r->memory || !record->groups;
    bool good = record->groups && count <= LP_RECORD_GROUPS && lp_json_take(json, '[');
    for (int g = 0; good && g < count; g++) {
        int32_t least = g > 0 ? record->groups[g - 1].group + 1 : 0;
        good = (g == 0 || lp_json_take(json, ',')) && read_group(json, record, least, &record->groups[g]);
        cases += good ? record->groups[g].cases : 0;
    }
    record->group_count = good ? count : 0;
    return good && cases == record->cases && lp_json_take(json, ']');
}

static bool read_key(lp_json *json, reading *r)
{
    lp_json_text text;
    if (!lp_json_string(json, &text))
        return false;
    char *key = lp_alloc((size_t)(text.end - text.begin) + 1, 1);
    r->memory = r->memory || !key;
    if (!key)
        return false;
    lp_json_decode(text, key);
    r->same_key = strncmp(key, r->key, strlen(r->key)) == 0;
    r->record->key = key;
    return true;
}

static bool read_flag(lp_json *json, bool *flag)
{
    return lp_json_bool(json, flag);
}

/* Fields in the order of the file: later ones depend on the counts of earlier ones. */
enum {
    F_KEY,
    F_DIVERGED,
    F_STOPPED,
    F_SCORE,
    F_EPOCHS,
    F_BEST,
    F_SECONDS,
    F_PARAMETERS,
    F_METRICS,
    F_CASES,
    F_SEQUENCES,
    F_CURVE,
    F_GROUPS,
    FIELDS
};
static const char *const field_names[FIELDS] = {"key",        "diverged", "stopped",    "score",   "epochs",
                                                "best_epoch", "seconds",  "parameters", "metrics", "cases",
                                                "sequences",  "curve",    "groups"};

static bool read_field(lp_json *json, int field, reading *r)
{
    lp_run_record *record = r->record;
    int64_t whole = 0;
    bool good = true;
    switch (field) {
    case F_KEY:
        return read_key(json, r);
    case F_DIVERGED:
        return read_flag(json, &record->diverged);
    case F_STOPPED:
        return read_flag(json, &record->stopped);
    case F_SCORE:
        return lp_json_number(json, &record->score);
    case F_SECONDS:
        return lp_json_number(json, &record->seconds) && record->seconds >= 0;
    case F_EPOCHS:
        good = read_int(json, 0, 1000000, &whole);
        record->epochs = (int)whole;
        return good;
    case F_BEST:
        good = read_int(json, 0, 1000000, &whole);
        record->best_epoch = (int)whole;
        return good;
    case F_METRICS:
        good = read_int(json, 0, LP_OUTCOME_METRICS, &whole);
        record->metrics = (int)whole;
        return good;
    case F_PARAMETERS:
        return read_int(json, 0, INT64_MAX, &record->parameters);
    case F_CASES:
        return read_int(json, 0, INT64_MAX, &record->cases);
    case F_SEQUENCES:
        return read_int(json, 0, INT64_MAX, &record->sequences);
    case F_CURVE:
        return read_curve(json, r);
    default:
        return read_groups(json, r);
    }
}

/* Each field once, in any order as long as counts come before what they count; other names are skipped. */
static bool read_record(lp_json *json, reading *r)
{
    if (!lp_json_take(json, '{'))
        return false;
    do {
        lp_json_text name, skipped;
        int field = 0;
        if (!lp_json_string(json, &name) || !lp_json_take(json, ':'))
            return false;
        size_t size = (size_t)(name.end - name.begin);
        while (field < FIELDS &&
               (strlen(field_names[field]) != size || memcmp(field_names[field], name.begin, size) != 0))
            field++;
        unsigned needed = field == F_CURVE ? 1u << F_EPOCHS : field == F_GROUPS ? 1u << F_METRICS | 1u << F_CASES : 0;
        if (field == FIELDS ? !lp_json_any(json, &skipped)
                            : r->fields >> field & 1 || (r->fields & needed) != needed || !read_field(json, field, r))
            return false;
        r->fields |= field < FIELDS ? 1u << field : 0;
    } while (lp_json_take(json, ','));
    return r->fields == (1u << FIELDS) - 1 && r->record->best_epoch <= r->record->epochs;
}

lapse_status lp_run_record_parse(lp_run_record *record, const char *key, const char *path, const char *text,
                                 size_t size, lapse_error *error)
{
    reading r = {.record = record, .key = key};
    text = size ? text : "";
    lp_json json = {text, text + size};
    *record = (lp_run_record){0};
    bool good = lp_json_valid(text, size) && read_record(&json, &r);
    if (good && r.same_key)
        return LAPSE_OK;
    lp_run_record_clear(record);
    if (r.memory)
        return lp_fail_memory(error, "a run's record", size);
    return lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                      good ? "the file is the record of another run; delete it to train this run again"
                           : "the file is not a whole record of a run; delete it to train the run again");
}

lapse_status lp_run_record_load(lp_run_record *record, const char *key, const char *path, bool *found,
                                lapse_error *error)
{
    struct stat there;
    *found = false;
    *record = (lp_run_record){0};
    if (stat(path, &there) != 0)
        return errno == ENOENT ? LAPSE_OK : lp_fail_errno(error, "open", path);
    lp_map map;
    LP_TRY(lp_map_open(&map, path, error));
    lapse_status status = lp_run_record_parse(record, key, path, map.data, map.size, error);
    if (status == LAPSE_OK && !is_intact(map.data, map.size)) {
        lp_run_record_clear(record);
        status =
            lp_fail_at(error, LAPSE_ERROR_FORMAT, path, 0, 0,
                       "the record of a run was changed: its checksum is another; delete it to train the run again");
    }
    lp_map_close(&map);
    *found = status == LAPSE_OK;
    return status;
}
