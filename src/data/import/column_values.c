/* column_values.c: see column_values.h. */
#include "data/import/column_values.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/dataset/intern.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1500 };

static bool is_whole_with_zero(const char *begin, const char *end)
{
    return end - begin > 2 && end[-1] == '0' && end[-2] == '.';
}

static void count_characters(lp_column_values *values, const char *begin, const char *end)
{
    bool letter = false, digit = false, at_sign = false;
    int blanks = 0;
    for (const char *at = begin; at < end; at++) {
        letter = letter || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (unsigned char)*at >= 0x80;
        values->words += *at == ' ';
        digit = digit || (*at >= '0' && *at <= '9');
        blanks += *at == ' ';
        at_sign = at_sign || *at == '@';
    }
    values->texts += letter;
    values->paths += end - begin > 0 && (*begin == '/' || (end - begin > 7 && memcmp(begin, "http", 4) == 0));
    values->codes += (digit && blanks <= 1) || at_sign;
}

static bool add_value(lp_column_values *values, lp_intern *names, int64_t row, const char *begin, const char *end)
{
    size_t size = (size_t)(end - begin);
    bool added;
    double number;
    uint32_t id = lp_intern_add(names, begin, size, lp_intern_key(begin, size), &added);
    if (id == LP_INTERN_NONE)
        return false;
    values->id[row] = (int32_t)id;
    values->filled++;
    values->example = values->example ? values->example : begin;
    values->example_end = values->example_end ? values->example_end : end;
    if (lp_number_parse(begin, end, &number)) {
        values->numbers++;
        values->fractions += number != floor(number);
        values->codes += number == floor(number) && end - begin >= 4; /* shorter ones may be amounts */
        values->replies += end - begin == 3 && number >= 100 && number < 600 && fmod(number, 100) <= 31;
        values->zeros += is_whole_with_zero(begin, end);
    } else {
        count_characters(values, begin, end);
    }
    return true;
}

/* Reads the times of a column most of whose values are times. */
static bool read_times(lp_column_values *values, const lp_sample *sample, int64_t column, int64_t rows)
{
    lp_time_format format = {.unit = values->look.unit == LP_TIME_UNCERTAIN ? LP_TIME_DAY_FIRST : values->look.unit};
    int64_t up = 0, down = 0;
    double before = NAN;
    if (values->look.times * 10 < values->look.filled * 9 || values->look.times == 0)
        return true;
    values->time = lp_alloc((size_t)rows, sizeof *values->time);
    if (!values->time)
        return false;
    values->first = INFINITY;
    values->last = -INFINITY;
    for (int64_t row = 0; row < rows; row++) {
        const char *begin = sample->begin[row * sample->column_count + column];
        const char *end = sample->end[row * sample->column_count + column];
        double time = NAN;
        lp_local local;
        if (begin == end || lp_time_read(&format, begin, end, &time, &local))
            time = NAN;
        values->time[row] = time;
        up += time > before;
        down += time < before;
        before = isnan(time) ? before : time;
        values->first = time < values->first ? time : values->first;
        values->last = time > values->last ? time : values->last;
    }
    values->rising = up + down ? (double)up / (double)(up + down) : 0;
    values->falling = up + down ? (double)down / (double)(up + down) : 0;
    return true;
}

static bool describe(lp_column_values *values, const lp_sample *sample, int64_t column, int64_t rows)
{
    lp_intern names = {0};
    values->id = lp_alloc((size_t)rows, sizeof *values->id);
    bool good = values->id != NULL;
    for (int64_t row = 0; good && row < rows; row++) {
        const char *begin = sample->begin[row * sample->column_count + column];
        const char *end = sample->end[row * sample->column_count + column];
        values->id[row] = -1;
        if (begin)
            lp_text_trim(&begin, &end);
        if (begin && begin < end && !memchr(begin, 0, (size_t)(end - begin)))
            good = add_value(values, &names, row, begin, end);
    }
    values->distinct = (int32_t)names.count;
    lp_intern_clear(&names);
    values->clock_digits = values->filled >= 20 ? lp_sample_clock_digits(sample, column) : 0;
    values->look = lp_time_look_at(sample, column, rows);
    return good && read_times(values, sample, column, rows);
}

bool lp_table_values_init(lp_table_values *table, const lp_sample *sample, int64_t columns)
{
    *table = (lp_table_values){.count = columns};
    table->rows = sample->row_count < MOST_ROWS ? sample->row_count : MOST_ROWS;
    table->columns = lp_alloc((size_t)columns, sizeof *table->columns);
    bool good = table->columns != NULL;
    for (int64_t c = 0; good && c < columns && c < sample->column_count; c++)
        good = describe(&table->columns[c], sample, c, table->rows);
    return good;
}

void lp_table_values_clear(lp_table_values *table)
{
    for (int64_t c = 0; table->columns && c < table->count; c++) {
        lp_free(table->columns[c].id);
        lp_free(table->columns[c].time);
    }
    lp_free(table->columns);
    *table = (lp_table_values){0};
}

/* Of the values of `of` with several rows, the part that has several values of `other`. *single: no value has several. */
static bool variety(const lp_column_values *of, const lp_column_values *other, int64_t rows, double *part, bool *single)
{
    enum { SEVERAL_ROWS = 1, SEVERAL_VALUES = 2 };
    int32_t *first = lp_alloc((size_t)of->distinct + 1, sizeof *first);
    char *state = lp_alloc((size_t)of->distinct + 1, 1);
    bool good = first && state;
    int64_t repeated = 0, varied = 0;
    for (int64_t row = 0; good && row < rows; row++) {
        int32_t a = of->id[row], b = other->id[row];
        if (a < 0 || b < 0)
            continue;
        if (first[a])
            state[a] |= (char)(first[a] == b + 1 ? SEVERAL_ROWS : SEVERAL_ROWS | SEVERAL_VALUES);
        first[a] = b + 1;
    }
    for (int32_t a = 0; good && a < of->distinct; a++) {
        repeated += (state[a] & SEVERAL_ROWS) != 0;
        varied += (state[a] & SEVERAL_VALUES) != 0;
    }
    *part = repeated ? (double)varied / (double)repeated : 0;
    *single = varied == 0;
    lp_free(first);
    lp_free(state);
    return good;
}

bool lp_column_pair_of(const lp_column_values *a, const lp_column_values *b, int64_t rows, lp_column_pair *pair)
{
    bool a_single = false, b_single = false;
    *pair = (lp_column_pair){0};
    if (!a->id || !b->id)
        return true;
    bool good = variety(a, b, rows, &pair->varies, &a_single) && variety(b, a, rows, &pair->shared, &b_single);
    pair->one_to_one = a_single && b_single;
    return good;
}

bool lp_sample_has_zeros(const lp_sample *sample, int64_t column)
{
    int64_t zeros = 0;
    for (int64_t row = 0; column < sample->column_count && row < sample->row_count; row++) {
        const char *begin = sample->begin[row * sample->column_count + column];
        const char *end = sample->end[row * sample->column_count + column];
        if (!begin || begin == end)
            continue;
        bool zero = is_whole_with_zero(begin, end);
        zeros += zero;
        for (const char *at = begin; at < end - 2 * zero; at++)
            if (*at < '0' || *at > '9')
                return false;
    }
    return zeros > 0;
}

int lp_sample_clock_digits(const lp_sample *sample, int64_t column)
{
    int64_t filled = 0, large = 0;
    bool minutes = true, seconds = true;
    for (int64_t row = 0; column < sample->column_count && row < sample->row_count; row++) {
        const char *begin = sample->begin[row * sample->column_count + column];
        const char *end = sample->end[row * sample->column_count + column];
        int number = 0;
        if (begin)
            lp_text_trim(&begin, &end);
        if (!begin || begin == end)
            continue;
        if (end - begin > 6)
            return 0;
        for (const char *at = begin; at < end; at++) {
            if (*at < '0' || *at > '9')
                return 0;
            number = number * 10 + (*at - '0');
        }
        filled++;
        large += number >= 100;
        minutes = minutes && end - begin <= 4 && number < 2400 && number % 100 < 60;
        seconds = seconds && number < 240000 && number / 100 % 100 < 60 && number % 100 < 60;
    }
    return large * 2 < filled || filled == 0 ? 0 : minutes ? 4 : seconds ? 6 : 0;
}
