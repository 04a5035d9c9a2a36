/* test_zone.c: local times in time zones: where clocks are changed, in the future, and malformed files. */
#include "base/calendar.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/zone.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double parse(const char *text, const char *zone)
{
    double time = 0;
    lapse_error error = {0};
    if (lapse_time_parse_zone(text, zone, &time, &error) != LAPSE_OK)
        fail_msg("'%s' in %s: %s", text, zone, error.message);
    return time;
}

/* Each local time beside the same time with its offset. */
static void local_times(void **state)
{
    (void)state;
    static const struct {
        const char *local, *zone, *same;
    } cases[] = {
        {"2024-03-01 12:00:00", "Europe/Berlin", "2024-03-01T12:00:00+01:00"},
        {"2024-07-01 12:00", "Europe/Berlin", "2024-07-01T12:00+02:00"},
        {"2024-07-01T12:00:00.25", "Europe/Berlin", "2024-07-01T12:00:00.25+02:00"},
        {"2024-07-01", "Europe/Berlin", "2024-06-30T22:00:00Z"},
        {"2024-07-01T12:00Z", "Europe/Berlin", "2024-07-01T12:00Z"},
        /* Clocks are set forward at 02:00: 02:30 does not occur, and is shifted by the skipped hour. */
        {"2024-03-31 01:59:59", "Europe/Berlin", "2024-03-31T01:59:59+01:00"},
        {"2024-03-31 02:00", "Europe/Berlin", "2024-03-31T03:00+02:00"},
        {"2024-03-31 02:30", "Europe/Berlin", "2024-03-31T03:30+02:00"},
        {"2024-03-31 03:00", "Europe/Berlin", "2024-03-31T03:00+02:00"},
        /* Clocks are set back at 03:00: 02:30 occurs twice, the earlier one is taken. */
        {"2024-10-27 01:59:59", "Europe/Berlin", "2024-10-27T01:59:59+02:00"},
        {"2024-10-27 02:00", "Europe/Berlin", "2024-10-27T02:00+02:00"},
        {"2024-10-27 02:59:59", "Europe/Berlin", "2024-10-27T02:59:59+02:00"},
        {"2024-10-27 03:00", "Europe/Berlin", "2024-10-27T03:00+01:00"},
        /* The rule for the future. */
        {"2080-07-01 12:00", "Europe/Berlin", "2080-07-01T12:00+02:00"},
        {"9998-12-24 12:00", "Europe/Berlin", "9998-12-24T12:00+01:00"},
        {"2080-07-01 12:00", "America/New_York", "2080-07-01T12:00-04:00"},
        {"2080-01-01 12:00", "America/New_York", "2080-01-01T12:00-05:00"},
        {"2080-01-01 12:00", "Australia/Sydney", "2080-01-01T12:00+11:00"},
        {"2080-07-01 12:00", "Australia/Sydney", "2080-07-01T12:00+10:00"},
        /* The last day before each change of that year, and the day of it. */
        {"2080-03-30 12:00", "Europe/Berlin", "2080-03-30T12:00+01:00"},
        {"2080-03-31 12:00", "Europe/Berlin", "2080-03-31T12:00+02:00"},
        {"2080-10-26 12:00", "Europe/Berlin", "2080-10-26T12:00+02:00"},
        {"2080-10-27 12:00", "Europe/Berlin", "2080-10-27T12:00+01:00"},
        {"2080-03-09 12:00", "America/New_York", "2080-03-09T12:00-05:00"},
        {"2080-03-10 12:00", "America/New_York", "2080-03-10T12:00-04:00"},
        {"2080-11-02 12:00", "America/New_York", "2080-11-02T12:00-04:00"},
        {"2080-11-03 12:00", "America/New_York", "2080-11-03T12:00-05:00"},
        {"2080-04-06 12:00", "Australia/Sydney", "2080-04-06T12:00+11:00"},
        {"2080-04-07 12:00", "Australia/Sydney", "2080-04-07T12:00+10:00"},
        {"2080-10-05 12:00", "Australia/Sydney", "2080-10-05T12:00+10:00"},
        {"2080-10-06 12:00", "Australia/Sydney", "2080-10-06T12:00+11:00"},
        {"2080-07-01 12:00", "Asia/Kolkata", "2080-07-01T12:00+05:30"},
        /* The past: other rules, local mean time, a day that was skipped. */
        {"1945-06-01 12:00", "Europe/Berlin", "1945-06-01T12:00+03:00"},
        {"1960-06-01 12:00", "Europe/Berlin", "1960-06-01T12:00+01:00"},
        {"1850-01-01 00:53:28", "Europe/Berlin", "1850-01-01T00:00:00Z"},
        {"2011-12-29 23:00", "Pacific/Apia", "2011-12-29T23:00-10:00"},
        {"2011-12-31 01:00", "Pacific/Apia", "2011-12-31T01:00+14:00"},
        {"2024-07-01 12:00", "Australia/Lord_Howe", "2024-07-01T12:00+10:30"},
        /* Without the database. */
        {"2024-07-01 12:00", "UTC", "2024-07-01T12:00Z"},
        {"2024-07-01 12:00", "+02:00", "2024-07-01T12:00+02:00"},
        {"2024-07-01 12:00", "-0330", "2024-07-01T12:00-03:30"},
        {"2024-07-01 12:00", "+05", "2024-07-01T12:00+05:00"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (parse(cases[i].local, cases[i].zone) != parse(cases[i].same, NULL))
            fail_msg("'%s' in %s is not %s", cases[i].local, cases[i].zone, cases[i].same);
}

/* Every local half hour of a century, or of fewer years in the quick tier, against mktime of the C library, which runs in a process of its own because TZ is global. */
static void local_times_agree_with_the_system(void **state)
{
    (void)state;
    static const char *const names[] = {"Europe/Berlin",     "America/New_York",  "Australia/Sydney",
                                        "America/Sao_Paulo", "Africa/Casablanca", "Asia/Tehran",
                                        "Europe/Dublin",     "Pacific/Chatham"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        setenv("TZ", names[n], 1); /* this program has one thread */
        tzset();
        lp_zone *zone = NULL;
        lapse_error error = {0};
        if (lp_zone_open(&zone, names[n], &error) != LAPSE_OK)
            fail_msg("%s", error.message);
        int64_t skipped = 0, twice = 0;
        for (int64_t utc = 0; utc < (int64_t)small_effort(100, 20) * 365 * 86400; utc += 1800) {
            time_t instant = (time_t)utc;
            struct tm clock;
            localtime_r(&instant, &clock);
            int64_t local = lp_days_of_date(clock.tm_year + 1900, clock.tm_mon + 1, clock.tm_mday) * 86400 +
                            clock.tm_hour * 3600 + clock.tm_min * 60 + clock.tm_sec;
            lp_local how;
            int64_t offset = lp_zone_offset(zone, local, &how);
            if (how == LP_LOCAL_MISSING)
                skipped++;
            else if (local - offset != utc && how == LP_LOCAL_AMBIGUOUS && local - offset < utc)
                twice++; /* the later one of two */
            else if (local - offset != utc)
                fail_msg("%s: local %ld is %ld, not %ld", names[n], (long)local, (long)(local - offset), (long)utc);
        }
        assert_int_equal(skipped, 0); /* every instant has a local time that occurs */
        assert_true(twice > 0);
        lp_zone_free(zone);
    }
    unsetenv("TZ");
    tzset();
}

static void wrong_zones_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        lapse_status status;
        const char *message;
    } cases[] = {
        {"Europe/Berln", LAPSE_ERROR_USAGE,
         "there is no time zone 'Europe/Berln' in /usr/share/zoneinfo; give a name such as Europe/Berlin, UTC, or an "
         "offset such as +02:00"},
        {"Europe", LAPSE_ERROR_USAGE,
         "there is no time zone 'Europe' in /usr/share/zoneinfo; give a name such as Europe/Berlin, UTC, or an offset "
         "such as +02:00"},
        {"../../../etc/passwd", LAPSE_ERROR_USAGE,
         "'../../../etc/passwd' is not the name of a time zone; give a name such as Europe/Berlin, UTC, or an offset "
         "such as +02:00"},
        {"/etc/localtime", LAPSE_ERROR_USAGE,
         "'/etc/localtime' is not the name of a time zone; give a name such as Europe/Berlin, UTC, or an offset such "
         "as "
         "+02:00"},
        {"", LAPSE_ERROR_USAGE,
         "'' is not the name of a time zone; give a name such as Europe/Berlin, UTC, or an offset such as +02:00"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_zone *zone = NULL;
        lapse_error error = {0};
        assert_int_equal(lp_zone_open(&zone, cases[i].name, &error), cases[i].status);
        assert_string_equal(error.message, cases[i].message);
        assert_null(zone);
    }
    lp_zone *zone = NULL;
    lapse_error error = {0};
    setenv("TZDIR", "/nonexistent", 1);
    assert_int_equal(lp_zone_open(&zone, "Europe/Berlin", &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.message,
                        "the time zone database is missing: there is no folder /nonexistent; install the "
                        "package tzdata, or set TZDIR to the folder of the database");
    assert_int_equal(lp_zone_open(&zone, "+01:00", &error), LAPSE_OK);
    lp_zone_free(zone);
    unsetenv("TZDIR");
}

/* A version 2 file without changes, with this rule. */
static size_t make_file(unsigned char *out, const char *rule)
{
    static const unsigned char types[] = {0, 0, 0, 0, 0, 0};
    size_t size = 0;
    for (int part = 0; part < 2; part++) {
        memset(out + size, 0, 44);
        memcpy(out + size, "TZif2", 5);
        out[size + 20 + 4 * 4 + 3] = 1; /* types */
        out[size + 20 + 4 * 5 + 3] = 4; /* letters */
        memcpy(out + size + 44, types, 6);
        memcpy(out + size + 50, "UTC", 4);
        size += 54;
    }
    return size + (size_t)sprintf((char *)out + size, "\n%s\n", rule);
}

static void rules_of_the_future(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t local, offset; /* 2024 */
        lp_local how;
    } cases[] = {
        {"AAA-1", 1719835200, 3600, LP_LOCAL_UNIQUE},
        {"azAZz-1", 1719835200, 3600, LP_LOCAL_UNIQUE},
        {"ZaA-24", 1719835200, 86400, LP_LOCAL_UNIQUE},
        {"AAA3BBB2,J1/0,J365/25", 1719835200, -7200, LP_LOCAL_UNIQUE},
        {"AAA3BBB,M1.1.0,M12.5.6", 1719835200, -7200, LP_LOCAL_UNIQUE},
        {"AAA3BBB,M3.2.0,M11.1.0", 1719835200, -7200, LP_LOCAL_UNIQUE},
        {"<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", 1719835200, -7200, LP_LOCAL_UNIQUE},
        {"AAA0BBB,J60/0,J300/0", 1709251200, 0, LP_LOCAL_MISSING},    /* J60 is March 1 in every year */
        {"AAA0BBB,59/0,300/0", 1709164800, 0, LP_LOCAL_MISSING},      /* 59 is February 29 in a leap year */
        {"AAA3BBB2,0/0,J365/25", 1719835200, -7200, LP_LOCAL_UNIQUE}, /* summer time for the whole year */
        {"AAA3BBB2,0/0,J365/25", 1704067200, -7200, LP_LOCAL_UNIQUE}, /* also at its end */
    };
    unsigned char file[300];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_zone *zone = NULL;
        lapse_error error = {0};
        if (lp_zone_parse(&zone, "t", file, make_file(file, cases[i].rule), &error) != LAPSE_OK)
            fail_msg("%s: %s", cases[i].rule, error.message);
        lp_local how;
        int64_t offset = lp_zone_offset(zone, cases[i].local, &how);
        if (offset != cases[i].offset || how != cases[i].how)
            fail_msg("%s: offset %ld, %d", cases[i].rule, (long)offset, (int)how);
        lp_zone_free(zone);
    }
    static const char *const wrong[] = {"A",
                                        "AAA",
                                        "AAA99",
                                        "AAA1BBB",
                                        "AAA1BBB,M3",
                                        "AAA1BBB,M13.1.0,M1.1.0",
                                        "AAA1BBB,M3.2.0",
                                        "AAA1BBB,J0,J5",
                                        "AAA1BBB,J366,J5",
                                        "AAA1BBB,366,5",
                                        "AAA1BBB,M0.1.0,M1.1.0",
                                        "AAA1BBB,M1.0.0,M1.1.0",
                                        "AAA1BBB,M1.6.0,M1.1.0",
                                        "AAA1BBB,M1.1.7,M1.1.0",
                                        "AA1",
                                        "AA@1",
                                        "AA[1",
                                        "AA`1",
                                        "AA{1",
                                        "<AAA1",
                                        "AAA1BBB,M3.2.0,M11.1.0x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lp_zone *zone = NULL;
        if (lp_zone_parse(&zone, "t", file, make_file(file, wrong[i]), NULL) != LAPSE_ERROR_FORMAT)
            fail_msg("%s is accepted", wrong[i]);
    }
}

/* Truncated at every byte, and with random bytes: an error or a zone, never a crash. */
static void malformed_files(void **state)
{
    (void)state;
    lp_map map;
    assert_int_equal(lp_map_open(&map, "/usr/share/zoneinfo/Europe/Berlin", NULL), LAPSE_OK);
    for (size_t size = 0; size < map.size; size++) {
        char *copy = lp_alloc(size, 1);
        lp_zone *zone = NULL;
        if (size)
            memcpy(copy, map.data, size);
        lapse_error error = {0};
        assert_int_equal(lp_zone_parse(&zone, "t", copy, size, &error), LAPSE_ERROR_FORMAT);
        assert_string_equal(error.message, "the file of the time zone 't' is not a valid TZif file");
        lp_free(copy);
    }
    char *copy = lp_alloc(map.size, 1);
    lp_random random = lp_random_start(7, LP_PURPOSE_TEST, 0);
    printf("seed 7\n");
    for (int round = 0; round < 2000; round++) {
        memcpy(copy, map.data, map.size);
        for (int i = 0; i < 3; i++)
            copy[lp_random_below(&random, (uint32_t)map.size)] = (char)lp_random_below(&random, 256);
        lp_zone *zone = NULL;
        lp_local how;
        if (lp_zone_parse(&zone, "t", copy, map.size, NULL) == LAPSE_OK)
            lp_zone_offset(zone, (int64_t)round * 1000000, &how);
        lp_zone_free(zone);
    }
    lp_free(copy);
    lp_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_times),
        cmocka_unit_test(local_times_agree_with_the_system),
        cmocka_unit_test(wrong_zones_are_refused),
        cmocka_unit_test(rules_of_the_future),
        cmocka_unit_test(malformed_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
