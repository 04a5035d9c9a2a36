/* fuzz_time.c: fuzzes the parsers of times, durations and numbers. What they accept is within its range, survives being formatted
 * and parsed again, and for numbers equals what strtod reads. */
#include "base/option.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "fuzz/support/fuzz.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 512 };

/* The parsers of fields, whose text has no NUL at its end. */
static void parse_field(const char *begin, const char *end)
{
    for (int order = LP_DATE_YEAR_FIRST; order <= LP_DATE_DAY_FIRST; order++) {
        double time = NAN;
        lp_local local;
        const char *reason = lp_timestamp_parse(begin, end, (lp_date_order)order, NULL, &time, &local);
        FUZZ_CHECK(reason ? isnan(time) : time >= LP_TIME_MIN && time <= LP_TIME_MAX);
    }
    char shown[LP_EXCERPT_SIZE];
    lp_text_excerpt(begin, end, shown);
    FUZZ_CHECK(!lp_text_is_utf8(begin, end) || lp_text_is_utf8(shown, shown + strlen(shown)));
}

static void parse_number(const char *text, size_t size)
{
    double number, again;
    char shown[LP_NUMBER_SIZE];
    if (!lp_number_parse(text, text + size, &number))
        return;
    FUZZ_CHECK(isfinite(number) && number == strtod(text, NULL));
    lp_number_text(number, shown);
    FUZZ_CHECK(lp_number_parse(shown, shown + strlen(shown), &again) && again == number);
}

static void parse_time(const char *text)
{
    double time, again;
    char shown[64], narrow[8];
    lapse_error error;
    if (lapse_time_parse(text, &time, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_INPUT && *error.message);
        return;
    }
    FUZZ_CHECK(time >= LP_TIME_MIN && time <= LP_TIME_MAX);
    lapse_time_format(time, shown, sizeof shown);
    lapse_time_format(time, narrow, sizeof narrow);
    /* Within a millisecond of the end of the year 9999, rounding leaves the range. */
    if (lapse_time_parse(shown, &again, NULL) == LAPSE_OK)
        FUZZ_CHECK(fabs(again - time) <= 0.0006);
    else
        FUZZ_CHECK(time > LP_TIME_MAX - 0.001);
}

static void parse_duration(const char *text)
{
    double seconds;
    char shown[64], narrow[4];
    lapse_error error;
    if (lapse_duration_parse(text, &seconds, &error) != LAPSE_OK) {
        FUZZ_CHECK(error.status == LAPSE_ERROR_INPUT && *error.message);
        return;
    }
    FUZZ_CHECK(seconds >= 0 && seconds <= LP_TIME_MAX - LP_TIME_MIN);
    FUZZ_CHECK(strlen(lapse_duration_format(seconds, shown, sizeof shown)) > 2);
    lapse_duration_format(-seconds, narrow, sizeof narrow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size = size < LONGEST ? size : LONGEST;
    parse_field((const char *)data, (const char *)data + size);
    char text[LONGEST + 1];
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    parse_number(text, size);
    parse_time(text);
    parse_duration(text);
    for (size_t i = 0; i < size; i++)
        FUZZ_CHECK(lapse_utf8_size(text + i) <= (int)(size - i) || !text[i]);
    /* The bits of a double, so that every one is formatted. */
    double any;
    if (size >= sizeof any) {
        memcpy(&any, data, sizeof any);
        char shown[64];
        lapse_time_format(any, shown, sizeof shown);
        lapse_duration_format(any, shown, sizeof shown);
    }
    return 0;
}
