/* test_columns.c: columns found by their names and values, the report of the choice, and time formats found in a column. */
#include "support/table_text.h"

#include "base/memory.h"
#include "data/import/column_names.h"
#include "data/import/column_words.h"
#include "data/import/import.h"
#include "lapse_lab.h"
#include "support/golden_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static lapse_import_report report_of(const char *text, const lapse_import_options *options)
{
    lapse_dataset *dataset = NULL;
    lapse_import_report report;
    lapse_error error = {0};
    if (import_bytes(text, strlen(text), options, 64, &dataset, &report, &error) != LAPSE_OK)
        fail_msg("%s:%ld:%ld: %s", error.file, (long)error.line, (long)error.column, error.message);
    lapse_dataset_close(dataset);
    return report;
}

/* Headers as they are written elsewhere, with one row, and the columns that are found. */
static void usual_headers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sequence, *time, *event, *ignored;
    } cases[] = {
        {"order_id,customer_id,order_date,sku,qty,price\n1,a,2024-03-01,x,1,2.5\n", "customer_id", "order_date", "sku",
         "order_id, qty, price"},
        {"patient\tdate\tcode\np\t2024-03-01\tE11\n", "patient", "date", "code", ""},
        {",user,time,item\n0,a,2024-03-01 12:00:00,x\n", "user", "time", "item", "(without a name)"},
        {"userId,movieId,rating,timestamp\n1,2,3.5,964982703\n", "userId", "timestamp", "movieId", "rating"},
        {"user_id:token\titem_id:token\ttimestamp:float\n1\t2\t881250949\n", "user_id", "timestamp", "item_id", ""},
        {"user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t2\t3\t881250949\n", "user_id", "timestamp",
         "item_id", "rating"},
        {"timestamp,visitorid,event,transactionid\n1433221332117,257597,view,\n", "visitorid", "timestamp", "event",
         "transactionid"},
        {"session_id,timestamp_ms,item_id\n1,1433221332117,2\n", "session_id", "timestamp_ms", "item_id", ""},
        {"InvoiceNo,StockCode,InvoiceDate,CustomerID\n1,x,2010-12-01,a\n", "CustomerID", "InvoiceDate", "StockCode",
         "InvoiceNo"},
        {"case:concept:name,concept:name,time:timestamp\n1,x,2010-12-01\n", "case:concept:name", "time:timestamp",
         "concept:name", ""},
        {"User ID,Created At,Event-Type\na,2010-12-01,x\n", "User ID", "Created At", "Event-Type", ""},
        {"customer_id,order_purchase_timestamp,product_id\na,2017-10-02 10:56:33,x\n", "customer_id",
         "order_purchase_timestamp", "product_id", ""},
        {"userid,visitDate,page\na,2017-10-02,x\n", "userid", "visitDate", "page", ""},
        /* A time of day belongs to its date. */
        {"user,date,time,event\na,2017-10-02,10:56:33,x\n", "user", "date,time", "event", ""},
        /* Users before sessions; ids before names. */
        {"session_id,user,user_id,time,item,item_id\ns,u,a,1,n,x\n", "user_id", "time", "item_id",
         "session_id, user, item"},
        /* Weak names after others. */
        {"id,account,ts,category,item\n1,a,1,c,x\n", "account", "ts", "item", "id, category"},
    };
    lapse_import_options options = defaults();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_import_report report = report_of(cases[i].text, &options);
        assert_string_equal(report.columns[LAPSE_COLUMN_SEQUENCE].column, cases[i].sequence);
        assert_string_equal(report.columns[LAPSE_COLUMN_TIME].column, cases[i].time);
        assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].column, cases[i].event);
        assert_string_equal(report.ignored, cases[i].ignored);
        for (int role = 0; role < 3; role++)
            assert_false(report.columns[role].given);
    }
}

static void the_choice_is_reported(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    const char *text = "user_id,session_id,time,created_at,event,code,note\na,s,1,2,x,y,z\n";
    lapse_import_report report = report_of(text, &options);
    assert_string_equal(report.columns[LAPSE_COLUMN_SEQUENCE].runner_up, "session_id");
    assert_string_equal(report.columns[LAPSE_COLUMN_TIME].runner_up, "created_at");
    assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].runner_up, "code");
    assert_string_equal(report.ignored, "session_id, created_at, code, note");
    assert_int_equal(report.ignored_count, 4);
    assert_string_equal(report.format, "CSV");
    assert_string_equal(report.time_unit, "relative numbers");
    assert_int_equal(report.local_rows, 0);
    options.sequence = "session_id";
    options.event = "event,code";
    report = report_of(text, &options);
    assert_true(report.columns[LAPSE_COLUMN_SEQUENCE].given && report.columns[LAPSE_COLUMN_EVENT].given);
    assert_false(report.columns[LAPSE_COLUMN_TIME].given);
    assert_string_equal(report.columns[LAPSE_COLUMN_SEQUENCE].column, "session_id");
    assert_string_equal(report.columns[LAPSE_COLUMN_SEQUENCE].runner_up, "");
    assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].column, "event,code");
    assert_string_equal(report.ignored, "user_id, created_at, note");
    /* A column that is given for another role, or as a field, is not found. */
    options = defaults();
    options.action = "action";
    report = report_of("user,time,action,item\na,1,view,x\n", &options);
    assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].column, "item");
    options = defaults();
    options.sequence = "item";
    report = report_of("user,time,action,item\na,1,view,x\n", &options);
    assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].column, "action");
    options = defaults();
    options.event = "item_id:token"; /* with the type that RecBole writes, or without */
    report = report_of("user_id:token\titem_id:token\tt:float\ttimestamp:float\n1\t2\t3\t4\n", &options);
    assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].column, "item_id");
}

/* 30 rows, in which a column has different values in every row. */
static void values_decide_too(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        const char *sequence, *event; /* NULL: the message below */
        const char *message;
    } cases[] = {
        /* the columns: all different, 3 values, time, all different, 3 values */
        {"id,user,time,code,event", "user", "event", NULL},
        {"id,case,time,code,kind", "case", "kind", NULL},
        {"user,session,time,code,kind", "session", "kind", NULL},
        {"id,group,time,code,event", NULL, NULL,
         "the columns are not certain: the sequence ('group' or 'id'); set --sequence group --time time --event event"},
        {"x,user,time,code,what", "user", "what", NULL},
        {"user,group,time,code,event", NULL, NULL,
         "the columns are not certain: the sequence ('group' or 'user'); set --sequence group --time time --event "
         "event"},
        {"user,group,time,item,note", NULL, NULL,
         "the columns are not certain: the sequence ('note' or 'user'); set --sequence note --time time --event group"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lp_buffer text = {0};
        lp_buffer_print(&text, "%s\n", cases[i].header);
        for (int row = 0; row < 30; row++)
            lp_buffer_print(&text, "i%d,u%d,%d,c%d,e%d\n", row, row % 3, row, row, row / 3 % 3);
        lp_buffer_add(&text, "", 1);
        lapse_import_options options = defaults();
        if (cases[i].message) {
            refuse_with(text.data, text.size - 1, &options, LAPSE_ERROR_INPUT, 1, 0, cases[i].message);
        } else {
            lapse_import_report report = report_of(text.data, &options);
            assert_string_equal(report.columns[LAPSE_COLUMN_SEQUENCE].column, cases[i].sequence);
            assert_string_equal(report.columns[LAPSE_COLUMN_EVENT].column, cases[i].event);
        }
        lp_buffer_clear(&text);
    }
}

static void equally_good_columns_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"user,time,action,item\na,1,view,x\n",
         "the columns are not certain: the event ('action' or 'item'); set --sequence user --time time --event action"},
        {"timestamp,visitorid,event,itemid\n1,a,view,x\n",
         "the columns are not certain: the event ('event' or 'itemid'); set --sequence visitorid --time timestamp "
         "--event event"},
        {"user,ship_date,return_date,item\na,2024-01-01,2024-01-02,x\n",
         "the columns are not certain: the time ('ship_date' or 'return_date'); set --sequence user --time ship_date "
         "--event item"},
        {"userId,user_id,time,item\na,b,1,x\nc,b,2,x\n", "the columns are not certain: the sequence ('userId' or "
                                                         "'user_id'); set --sequence userId --time time --event item"},
        {"196,242,3,881250949\n186,302,3,891717742\n",
         "the first line is data, not a header; not certain: the time ('4' or '2'), the event ('3' or '2'); set "
         "--sequence 1 --time 4 "
         "--event 3 --no-header"},
    };
    lapse_import_options options = defaults();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_with(cases[i].text, strlen(cases[i].text), &options, LAPSE_ERROR_INPUT, 1, 0, cases[i].message);
}

/* A file without a header is never read by position where another column may be meant: ratings are no events. */
static void columns_without_names_are_asked(void **state)
{
    (void)state;
    lp_buffer text = {0};
    for (int row = 0; row < 60; row++)
        lp_buffer_print(&text, "%d,%d,%d,%d\n", row % 7, 100 + row * 7 % 11, 1 + row % 5, 881250949 + row * 1000);
    lapse_import_options options = defaults();
    options.header = false;
    lapse_dataset *dataset = NULL;
    lapse_import_report report;
    lapse_error error;
    assert_int_equal(import_bytes(text.data, text.size, &options, 4096, &dataset, &report, &error), LAPSE_ERROR_INPUT);
    assert_true(report.question);
    assert_string_equal(report.columns[LAPSE_COLUMN_TIME].column, "4");
    assert_non_null(strstr(report.paste, " --no-header"));
    options.sequence = "1", options.time = "4", options.event = "2";
    assert_int_equal(import_bytes(text.data, text.size, &options, 4096, &dataset, &report, &error), LAPSE_OK);
    lapse_dataset_close(dataset);
    lp_buffer_clear(&text);
}

/* The options that would do, for a shell: names with blanks and quotes, a time in two columns, no header. */
static void commands_to_paste(void **state)
{
    (void)state;
    static const struct {
        const char *text, *paste, *other;
    } cases[] = {
        {"User ID,event time,action,item\na,1,view,x\n", "--sequence 'User ID' --time 'event time' --event action",
         "--sequence 'User ID' --time 'event time' --event item"},
        {"user's id,time,action,item\na,1,view,x\n", "--sequence 'user'\\''s id' --time time --event action",
         "--sequence 'user'\\''s id' --time time --event item"},
        {"user,date,hour,action,item id\na,2024-01-01,07:14,view,x\na,2024-01-02,08:14,buy,x\n",
         "--sequence user --time date,hour --event action", "--sequence user --time date,hour --event 'item id'"},
        {"user;time;action;item\na;1;view;x\n", "--sequence user --time time --event action",
         "--sequence user --time time --event item"},
        {"user,time,event\na,1/2/2024,x\na,2/3/2024,y\n", "--sequence user --time time --event event --time-unit dmy",
         "--sequence user --time time --event event --time-unit mdy"},
        {"196,242,3,881250949\n186,302,3,891717742\n", "--sequence 1 --time 4 --event 3 --no-header", ""},
    };
    lapse_import_options options = defaults();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_dataset *dataset = NULL;
        lapse_import_report report;
        lapse_error error;
        lapse_status status =
            import_bytes(cases[i].text, strlen(cases[i].text), &options, 4096, &dataset, &report, &error);
        if (status != LAPSE_ERROR_INPUT || strcmp(report.paste, cases[i].paste) != 0 ||
            strcmp(report.paste_other, cases[i].other) != 0)
            fail_msg("%s: %d, %s, %s (%s)", cases[i].text, status, report.paste, report.paste_other, error.message);
    }
}

/* What a name says, role by role. */
static void words_of_names(void **state)
{
    (void)state;
    static const char *const names[] = {"user",
                                        "User ID",
                                        "customer_id",
                                        "customerID",
                                        "CUSTOMER",
                                        "visitDate",
                                        "order_purchase_timestamp",
                                        "shipped_ts",
                                        "ts",
                                        "update",
                                        "candidate",
                                        "times",
                                        "timeout",
                                        "x.time",
                                        "lastSeenDatetime",
                                        "event",
                                        "eventType",
                                        "event time",
                                        "item",
                                        "item_id",
                                        "itemName",
                                        "product-code",
                                        "price",
                                        "note",
                                        "session",
                                        "SessionId",
                                        "sid",
                                        "uid",
                                        "id",
                                        "ID",
                                        "user.event.time",
                                        "date of birth",
                                        "year",
                                        "hour",
                                        "created",
                                        "created_at",
                                        "CreatedAt",
                                        "at",
                                        "when",
                                        "action",
                                        "activity",
                                        "case",
                                        "case:concept:name",
                                        "concept:name",
                                        "time:timestamp",
                                        "column",
                                        "a",
                                        "",
                                        "_",
                                        "__date",
                                        "Date_",
                                        "unix_time_ms",
                                        "t",
                                        "category",
                                        "brand",
                                        "Nutzer",
                                        "utilisateur",
                                        "fecha",
                                        "Datum",
                                        "\xE6\x97\xA5\xE6\x9C\x9F",
                                        "account number",
                                        "device",
                                        "patient_no",
                                        "genre",
                                        "title",
                                        "count",
                                        "amount",
                                        "rating",
                                        "address"};
    lp_buffer text = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lp_buffer_print(&text, "%s:", names[i]);
        for (int role = 0; role < 3; role++) {
            lp_name_match match = lp_column_name_match(names[i], (lapse_column_role)role);
            lp_buffer_print(&text, " %.3f %d %d %d;", lp_column_words(names[i], (lapse_column_role)role), match.rank,
                            match.rank < 0 ? 0 : match.weak, match.rank < 0 ? 0 : (int)match.group);
        }
        lp_buffer_print(&text, "\n");
    }
    golden_text_check("tests/golden/column_words.txt", text.data, text.size);
    lp_buffer_clear(&text);
}

static void usual_names_are_listed(void **state)
{
    (void)state;
    for (int role = 0; role < 3; role++) {
        const char *name;
        int count = 0;
        for (; (name = lapse_column_name((lapse_column_role)role, count)); count++)
            assert_int_equal(lp_column_name_match(name, (lapse_column_role)role).rank, count);
        assert_true(count > 20);
    }
    assert_null(lapse_column_name(LAPSE_COLUMN_TIME, -1));
    assert_null(lapse_column_name((lapse_column_role)3, 0));
}

/* ------------------------------------------------------------------------------------------------ times ------ */

static void formats_of_time(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *unit, *expected;
        int64_t local_rows;
    } cases[] = {
        {"1326506723", "1326506724", "unix seconds", "a: 1326506723 x, 1326506724 x;", 0},
        {"1326506723403000", "1326506724403000", "unix microseconds", "a: 1326506723.4030001 x, 1326506724.4030001 x;",
         0},
        {"1326506723403000000", "1326506724403000001", "unix nanoseconds",
         "a: 1326506723.4030001 x, 1326506724.4030001 x;", 0},
        {"1.326506723e18", "1326506724000000000", "unix nanoseconds", "a: 1326506723 x, 1326506724 x;", 0},
        {"2012-01-14 02:05:23", "2012-01-14T02:05:24Z", "ISO 8601", "a: 1326506723 x, 1326506724 x;", 1},
        {"2012/01/14", "2012/1/15 0:00", "ISO 8601", "a: 1326499200 x, 1326585600 x;", 2},
        {"01/14/2012", "1/2/2013 12:00 AM", "month/day/year", "a: 1326499200 x, 1357084800 x;", 2},
        {"02/01/2013", "14.01.2012", "day/month/year", "a: 1326499200 x, 1357084800 x;", 2},
    };
    lapse_import_options options = defaults();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "user,time,event\na,%s,x\na,%s,x\n", cases[i].first, cases[i].second);
        expect_with(text, strlen(text), &options, cases[i].expected);
        lapse_import_report report = report_of(text, &options);
        assert_string_equal(report.time_unit, cases[i].unit);
        assert_int_equal(report.local_rows, cases[i].local_rows);
        assert_string_equal(report.timezone, "UTC");
    }
    options.time_unit = "us";
    expect_with("user,time,event\na,1500000,x\n", 28, &options, "a: 1.5 x;");
    options.time_unit = "ns";
    expect_with("user,time,event\na,-1500000000,x\n", 32, &options, "a: -1.5 x;");
    options.time_unit = "dmy";
    expect_with("user,time,event\na,02/01/2013,x\n", 31, &options, "a: 1357084800 x;");
    options.time_unit = "mdy";
    expect_with("user,time,event\na,01/02/2013,x\n", 31, &options, "a: 1357084800 x;");
}

static void times_in_a_zone(void **state)
{
    (void)state;
    lapse_import_options options = defaults();
    options.timezone = "Europe/Berlin";
    const char *text = "user,time,event\na,2024-03-01 12:00,x\na,2024-03-31 02:30,x\na,2024-10-27 02:30,x\n"
                       "a,2024-10-27 02:30Z,x\n";
    expect_with(text, strlen(text), &options, "a: 1709290800 x, 1711848600 x, 1729989000 x, 1729996200 x;");
    lapse_import_report report = report_of(text, &options);
    assert_int_equal(report.local_rows, 3);
    assert_int_equal(report.missing_rows, 1);
    assert_int_equal(report.ambiguous_rows, 1);
    assert_string_equal(report.timezone, "Europe/Berlin");
    options.timezone = "Berlin";
    refuse_with(text, strlen(text), &options, LAPSE_ERROR_USAGE, 0, 0,
                "there is no time zone 'Berlin' in /usr/share/zoneinfo; give a name such as Europe/Berlin, UTC, or an "
                "offset such as +02:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_headers),
        cmocka_unit_test(the_choice_is_reported),
        cmocka_unit_test(values_decide_too),
        cmocka_unit_test(equally_good_columns_are_refused),
        cmocka_unit_test(columns_without_names_are_asked),
        cmocka_unit_test(commands_to_paste),
        cmocka_unit_test(words_of_names),
        cmocka_unit_test(usual_names_are_listed),
        cmocka_unit_test(formats_of_time),
        cmocka_unit_test(times_in_a_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
