/* line_shape.c: see line_shape.h. A shape is taken only where most of the first lines have it and no delimiter of CSV divides them.
 * Lines keep their numbers: a rule or a comment becomes an empty line. */
#include "data/import/line_shape.h"

#include "base/timestamp.h"
#include "data/import/csv.h"

#include <string.h>

enum { LINES = 40, FEWEST = 5, MOST_PARTS = 64 };

/* Columns of the common and the combined log format of web servers. */
static const char access_names[] = "host\tidentity\tuser\ttime\trequest\tstatus\tbytes\n";
static const char combined_names[] = "host\tidentity\tuser\ttime\trequest\tstatus\tbytes\treferrer\tagent\n";

typedef struct lines {
    const char *begin[LINES], *end[LINES];
    int count;
} lines;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next part of a line: a run without blanks, or what is between quotes or brackets. False at the end. */
static bool next_part(const char **at, const char *end, const char **begin, const char **stop)
{
    const char *p = *at;
    while (p < end && is_blank(*p))
        p++;
    if (p == end)
        return false;
    char close = *p == '"' ? '"' : *p == '[' ? ']' : 0;
    const char *last = p + 1;
    while (close && last < end && *last != close)
        last += 1 + (*last == '\\' && last + 1 < end);
    if (close && last < end && (last + 1 == end || is_blank(last[1]))) {
        *begin = p + 1;
        *stop = last;
        *at = last + 1;
        return true;
    }
    *begin = p;
    while (p < end && !is_blank(*p))
        p++;
    *stop = *at = p;
    return true;
}

static int count_parts(const char *begin, const char *end)
{
    const char *first, *last;
    int count = 0;
    while (count < MOST_PARTS && next_part(&begin, end, &first, &last))
        count++;
    return count;
}

static bool starts(const char *begin, const char *end, const char *prefix)
{
    size_t size = strlen(prefix);
    return (size_t)(end - begin) >= size && memcmp(begin, prefix, size) == 0;
}

/* A line of dashes, bars, pluses, equal signs and colons. */
static bool is_rule(const char *begin, const char *end)
{
    int dashes = 0;
    for (; begin < end; begin++) {
        if (!strchr("-|+=: \t", *begin) || !*begin)
            return false;
        dashes += *begin == '-' || *begin == '=';
    }
    return dashes >= 3;
}

/* key= at the beginning of a part. */
static const char *value_of(const char *begin, const char *end)
{
    const char *at = begin;
    while (at < end &&
           ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
            strchr("_.-", *at)) &&
           *at)
        at++;
    return at > begin && at < end && *at == '=' ? at + 1 : NULL;
}

/* A part with key=value, whose value may be in quotes. */
static bool next_pair(const char **at, const char *end, const char **begin, const char **stop)
{
    const char *p = *at;
    while (p < end && is_blank(*p))
        p++;
    const char *value = p < end ? value_of(p, end) : NULL;
    *begin = p;
    if (!value || value == end || *value != '"') {
        while (p < end && !is_blank(*p))
            p++;
    } else {
        for (p = value + 1; p < end && *p != '"'; p++)
            p += *p == '\\' && p + 1 < end;
        p += p < end;
    }
    *stop = *at = p;
    return *begin < p;
}

/* ------------------------------------------------------------------------------------------------- finding ---- */

static lines first_lines(const char *text, size_t size)
{
    lines found = {.count = 0};
    const char *end = text + size;
    while (text < end && found.count < LINES) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            break;
        const char *last = stop > text && stop[-1] == '\r' ? stop - 1 : stop;
        if (last > text) {
            found.begin[found.count] = text;
            found.end[found.count++] = last;
        }
        text = stop + 1;
    }
    return found;
}

/* Whether a delimiter of CSV divides most lines into the same number of fields, three or more. */
static bool is_delimited(const lines *all)
{
    static const char delimiters[] = {',', '\t', ';', '|'};
    for (size_t d = 0; d < sizeof delimiters; d++) {
        int same = 0, before = -1;
        for (int i = 0; i < all->count; i++) {
            int count = 0;
            for (const char *at = all->begin[i]; at < all->end[i]; at++)
                count += *at == delimiters[d];
            same += count >= 2 && (before < 0 || count == before);
            before = count;
        }
        if (same * 2 >= all->count)
            return true;
    }
    return false;
}

static bool is_time(const char *begin, const char *end)
{
    bool digits = end - begin >= 10;
    for (const char *at = begin; at < end && digits; at++)
        digits = (*at >= '0' && *at <= '9') || *at == '.';
    return digits || lp_timestamp_is_date(begin, end);
}

/* host identity user [time] "request" status bytes */
static bool is_access(const char *at, const char *end)
{
    const char *begin, *stop;
    for (int i = 0; i < 5; i++) {
        if (!next_part(&at, end, &begin, &stop))
            return false;
        if ((i == 3 && (begin[-1] != '[' || !memchr(begin, ':', (size_t)(stop - begin)))) ||
            (i == 4 && begin[-1] != '"'))
            return false;
    }
    return true;
}

static lp_line_shape blanks_of(const lines *all)
{
    lp_line_shape shape = {.form = LP_LINES_BLANKS};
    int access = 0, timed = 0, fewest = MOST_PARTS, same = 0,
        usual = count_parts(all->begin[all->count - 1], all->end[all->count - 1]);
    for (int i = 0; i < all->count; i++) {
        const char *at = all->begin[i], *begin, *stop;
        int count = count_parts(at, all->end[i]);
        fewest = count < fewest ? count : fewest;
        same += count == usual;
        access += is_access(at, all->end[i]);
        bool time = false;
        for (int p = 0; p < 3 && !time && next_part(&at, all->end[i], &begin, &stop); p++)
            time = is_time(begin, stop);
        timed += time;
    }
    bool most = access * 10 >= all->count * 9;
    if (most)
        shape.names = usual >= 9 ? combined_names : access_names;
    shape.parts = most ? (usual >= 9 ? 9 : 7) : same * 10 >= all->count * 9 ? usual : fewest;
    if (!most && (shape.parts < 3 || timed * 10 < all->count * 9))
        shape.form = LP_LINES_PLAIN;
    return shape;
}

lp_line_shape lp_line_shape_find(const char *text, size_t size)
{
    lines all = first_lines(text, size);
    int pairs = 0, commented = 0;
    bool fields = false;
    for (int i = 0; i < all.count; i++) {
        const char *at = all.begin[i], *begin, *stop;
        int count = 0;
        if (i < 4 && is_rule(at, all.end[i]) && memchr(at, at[0] == '|' ? '|' : '+', (size_t)(all.end[i] - at)) &&
            all.count > i + 1)
            return (lp_line_shape){.form = LP_LINES_RULED};
        fields = fields || starts(at, all.end[i], "#Fields: ");
        commented += *at == '#';
        while (next_pair(&at, all.end[i], &begin, &stop))
            count += value_of(begin, stop) != NULL;
        pairs += count >= 3;
    }
    if (fields && commented < all.count)
        return (lp_line_shape){.form = LP_LINES_BLANKS, .parts = MOST_PARTS, .fields = true};
    if (all.count < FEWEST || *all.begin[0] == '{' || *all.begin[0] == '[' || is_delimited(&all))
        return (lp_line_shape){.form = LP_LINES_PLAIN};
    if (pairs * 10 >= all.count * 9)
        return (lp_line_shape){.form = LP_LINES_PAIRS};
    return blanks_of(&all);
}

/* ------------------------------------------------------------------------------------------------- writing ---- */

/* A field of a line with tabs: quoted where it has a quote, without tabs. */
static bool add_field(lp_buffer *out, const char *begin, const char *end, bool first)
{
    bool quote = begin < end && memchr(begin, '"', (size_t)(end - begin));
    bool good = (first || lp_buffer_add(out, "\t", 1)) && (!quote || lp_buffer_add(out, "\"", 1));
    for (; good && begin < end; begin++)
        good = (*begin != '"' || lp_buffer_add(out, "\"", 1)) && lp_buffer_add(out, *begin == '\t' ? " " : begin, 1);
    return good && (!quote || lp_buffer_add(out, "\"", 1));
}

static bool write_parts(const lp_line_shape *shape, const char *at, const char *end, lp_buffer *out)
{
    const char *begin, *stop, *before = at;
    bool good = true;
    for (int i = 0; good && i < shape->parts && next_part(&at, end, &begin, &stop); before = at, i++) {
        if (i + 1 == shape->parts && at < end && !shape->names) { /* the rest */
            begin = before;
            while (begin < end && is_blank(*begin))
                begin++;
            stop = end;
        }
        good = add_field(out, begin, stop, i == 0);
    }
    return good;
}

static bool write_cells(const char *at, const char *end, lp_buffer *out)
{
    while (at < end && is_blank(*at))
        at++;
    while (end > at && is_blank(end[-1]))
        end--;
    if (!memchr(at, '|', (size_t)(end - at)))
        return true;          /* "(42 rows)" */
    bool framed = *at == '|'; /* otherwise the last cell may be empty */
    at += framed;
    end -= framed && end > at && end[-1] == '|';
    for (bool first = true, good = true; good; first = false) {
        const char *stop = at < end ? memchr(at, '|', (size_t)(end - at)) : NULL, *begin = at,
                   *last = stop ? stop : end;
        while (begin < last && is_blank(*begin))
            begin++;
        while (last > begin && is_blank(last[-1]))
            last--;
        good = add_field(out, begin, last, first);
        if (!stop || !good)
            return good;
        at = stop + 1;
    }
    return false;
}

static bool add_json(lp_buffer *out, const char *begin, const char *end)
{
    bool good = lp_buffer_add(out, "\"", 1);
    for (; good && begin < end; begin++) {
        bool escape = *begin == '"' || *begin == '\\';
        if ((unsigned char)*begin < 0x20)
            good = lp_buffer_add(out, " ", 1);
        else
            good = (!escape || lp_buffer_add(out, "\\", 1)) && lp_buffer_add(out, begin, 1);
    }
    return good && lp_buffer_add(out, "\"", 1);
}

static bool write_pairs(const char *at, const char *end, lp_buffer *out)
{
    const char *begin, *stop;
    bool good = lp_buffer_add(out, "{", 1), first = true;
    while (good && next_pair(&at, end, &begin, &stop)) {
        const char *value = value_of(begin, stop);
        if (!value)
            continue;
        bool quoted = stop - value >= 2 && *value == '"' && stop[-1] == '"';
        good = (first || lp_buffer_add(out, ",", 1)) && add_json(out, begin, value - 1) && lp_buffer_add(out, ":", 1);
        good = good && (quoted ? lp_buffer_add(out, value, (size_t)(stop - value)) : add_json(out, value, stop));
        first = false;
    }
    return good && lp_buffer_add(out, "}", 1);
}

bool lp_line_shape_write(const lp_line_shape *shape, const char *begin, const char *end, lp_buffer *out)
{
    const char *names = "#Fields: ";
    bool good = true;
    end -= end > begin && end[-1] == '\r';
    if (shape->fields && starts(begin, end, names))
        good = write_parts(shape, begin + strlen(names), end, out);
    else if (begin == end || (shape->fields && *begin == '#') || (shape->form == LP_LINES_RULED && is_rule(begin, end)))
        good = true;
    else if (shape->form == LP_LINES_BLANKS)
        good = write_parts(shape, begin, end, out);
    else if (shape->form == LP_LINES_PAIRS)
        good = write_pairs(begin, end, out);
    else if (shape->form == LP_LINES_RULED)
        good = write_cells(begin, end, out);
    return good && lp_buffer_add(out, "\n", 1);
}
