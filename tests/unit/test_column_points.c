/* test_column_points.c: the evidence for the columns of a table, number by number: what each column gets for each role, and what is chosen.
 * Tables lie at the limits of the rules and beside them. A change of the rules changes the record: read its diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/import/column_guess.h"

/* The import of this program calls the function of this file, which looks at what it is given. */
#define lp_column_guess_roles choose_roles
static bool choose_roles(const lp_guess_input *input, lp_column_guess *guess);
#include "data/import/column_guess.c"
#undef lp_column_guess_roles

#include "lapse_lab.h"
#include "support/golden_text.h"
#include "support/table_text.h"

static lp_buffer record;

static void record_column(const guesser *g, int64_t i)
{
    const lp_column_values *v = &g->table.columns[i];
    const char *name = g->input->columns->name[i];
    lp_buffer_print(&record, "  %s:", g->input->named ? name : "-");
    for (int role = 0; role < 3; role++) {
        double words = g->input->named ? lp_column_words(name, (lapse_column_role)role) : 0;
        double points = role == LAPSE_COLUMN_SEQUENCE ? sequence_points(g, v, words)
                        : role == LAPSE_COLUMN_TIME   ? time_points(g, v, words)
                                                      : event_points(g, v, words);
        lp_buffer_print(&record, " %.2f/%.4f", words, points);
    }
    lp_buffer_print(&record, " ids %d", looks_like_ids(g, i));
    for (int64_t j = 0; j < g->table.count; j++) {
        double points = 0;
        bool same = false;
        if (j != i)
            assert_true(pair_points(g, i, j, &points) && equivalent(g, i, j, &same));
        lp_buffer_print(&record, " %.4f,%d%d%d", points, same, comes_before(g, i, j), is_day_of(g, i, j));
    }
    lp_buffer_print(&record, "\n");
}

bool lp_column_guess_roles(const lp_guess_input *input, lp_column_guess *guess)
{
    guesser g = {.input = input};
    assert_true(lp_table_values_init(&g.table, input->sample, input->columns->count));
    g.sure = 1;
    for (int64_t i = 0; i < g.table.count; i++)
        record_column(&g, i);
    lp_table_values_clear(&g.table);
    assert_true(choose_roles(input, guess));
    for (int role = 0; role < 3; role++) {
        const lp_role_guess *r = &guess->role[role];
        lp_buffer_print(&record, "  %" PRId64 " %" PRId64 " close %d tied %d (%s) %s\n", r->column, r->runner_up, r->close,
                        r->tied, r->reason, r->sample);
    }
    lp_buffer_print(&record, "  clock %" PRId64 "\n", guess->clock);
    return true;
}

/* A value of a column in a row. */
static void add_value(lp_buffer *text, char kind, int row, int rows)
{
    int day = row % 28 + 1, hour = row * 7 % 24;
    switch (kind) {
    case 'n': lp_buffer_print(text, "%d", row); break;
    case 'u': lp_buffer_print(text, "u%d", row * 7 % (rows / 3 + 1)); break;
    case 'h': lp_buffer_print(text, "h%d", row / 2); break;
    case '1': lp_buffer_print(text, "%d", 1000 + row % 10); break;
    case '9': lp_buffer_print(text, "c%d", row % 9); break;
    case 'b': lp_buffer_print(text, "kind %c", 'a' + row / 5 % 14); break;
    case 'B': lp_buffer_print(text, "%c%c", 'a' + row % 15, 'a'); break;
    case '2': lp_buffer_print(text, "%s", row % 2 ? "buy" : "view"); break;
    case 'c': lp_buffer_print(text, "same"); break;
    case 'w': lp_buffer_print(text, "a text of %d words that says no more", row * 3 % (rows * 2 / 3 + 1)); break;
    case 'W': lp_buffer_print(text, "a note of six words %d", row / 2); break;
    case 'f': lp_buffer_print(text, "%d.5", row % 11); break;
    case 'e': lp_buffer_print(text, "name%d@example.org", row % 12); break;
    case 't': lp_buffer_print(text, "%d", 1600000000 + 997 * row); break;
    case 'T': lp_buffer_print(text, "%d", 1600000000 + (row % 6 == 5 ? -5000 : 997) * row); break;
    case 'm': lp_buffer_print(text, "%d", 300000000 + row); break;
    case 'd': lp_buffer_print(text, "2021-03-%02d", day); break;
    case 'D': lp_buffer_print(text, "2021-03-%02d %02d:15:00", day, hour); break;
    case 'E': lp_buffer_print(text, "2021-03-%02d %02d:45:00", day, hour); break;
    case 'k': lp_buffer_print(text, "%02d:30", hour); break;
    case 'x': lp_buffer_print(text, "%d.25", 44000 + row); break;
    case 'y': lp_buffer_print(text, "202103%02d", day); break;
    case 'r': lp_buffer_print(text, "%.3f", row * 0.079); break;
    case 'g': lp_buffer_print(text, "%s", row % 3 ? "" : "g1"); break;
    case 'q': lp_buffer_print(text, row % 10 ? "q%d" : "q", row % 11); break;
    case '0': lp_buffer_print(text, "%s", row % 4 ? "17850" : "17850.0"); break;
    default: break;
    }
}

static void points_are_as_recorded(void **state)
{
    (void)state;
    static const int rows[] = {1, 5, 19, 20, 30, 99, 100, 126};
    static const struct {
        const char *names, *kinds;
    } tables[] = {
        {"user,time,event", "utb"},
        {"id,user,time,code,event", "nu2wB"},
        {"a,b,c,d,e,f", "hnt2cf"},
        {"client_id,day,clock,kind,note", "edk9W"},
        {"session,start,end,item,action", "1DEB2"},
        {"group,ts,item,price,product", "9xefb"},
        {"visitor,created_at,date,what", "hDdw"},
        {"case,when,activity,empty", "uyBg"},
        {"user,timestamp,rating,movie,g", "1rf0g"},
        {"x,y,z", "mTb"},
        {"who,orderDate,order_date_end,sku,action", "eTtB2"},
        {"user_id,t,category,words", "hmbw"},
        {"a,b,c,d,e,f,g,h,i,j,k,l", "nuh19bBteDfq"},
    };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            if (r % 2 != t % 2 && t > 0)
                continue;
            lp_buffer text = {0};
            lp_buffer_print(&text, "%s\n", tables[t].names);
            for (int row = 0; row < rows[r]; row++)
                for (const char *kind = tables[t].kinds; *kind; kind++) {
                    add_value(&text, *kind, row, rows[r]);
                    lp_buffer_add(&text, kind[1] ? "," : "\n", 1);
                }
            lapse_import_options options = defaults();
            lapse_dataset *dataset = NULL;
            lapse_import_report report;
            lapse_error error;
            lp_buffer_print(&record, "%s of %d rows\n", tables[t].names, rows[r]);
            lapse_status status = import_bytes(text.data, text.size, &options, 1 << 16, &dataset, &report, &error);
            lp_buffer_print(&record, "  %s\n", status == LAPSE_OK ? "taken" : error.message);
            if (status == LAPSE_OK)
                lapse_dataset_close(dataset);
            lp_buffer_clear(&text);
        }
    golden_text_check("tests/golden/column_points.txt", record.data, record.size);
    lp_buffer_clear(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points_are_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
