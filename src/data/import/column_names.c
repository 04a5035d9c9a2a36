/* column_names.c: one table of the usual names of columns, with their roles. Within a group the order of the table is the
 * order of preference. */
#include "data/import/column_names.h"

#include "base/text.h"
#include "lapse_lab.h"

#include <string.h>

typedef struct usual_name {
    const char *name;
    int group;
    bool weak;
} usual_name;

enum { ACTIONS = 0, ITEMS = 1 };

static const usual_name sequence_names[] = {
    {"sequence_id", 0, false},
    {"sequence", 0, false},
    {"user_id", 0, false},
    {"user", 0, false},
    {"uid", 0, false},
    {"username", 0, false},
    {"customer_id", 0, false},
    {"customer", 0, false},
    {"cust_id", 0, false},
    {"client_id", 0, false},
    {"client", 0, false},
    {"visitor_id", 0, false},
    {"visitor", 0, false},
    {"full_visitor_id", 0, false},
    {"member_id", 0, false},
    {"member", 0, false},
    {"subscriber_id", 0, false},
    {"account_id", 0, false},
    {"account", 0, false},
    {"patient_id", 0, false},
    {"patient", 0, false},
    {"subject_id", 0, false},
    {"subject", 0, false},
    {"person_id", 0, false},
    {"person", 0, false},
    {"player_id", 0, false},
    {"student_id", 0, false},
    {"reviewer_id", 0, false},
    {"household_key", 0, false},
    {"case_id", 0, false},
    {"case:concept:name", 0, false},
    {"case", 0, false},
    {"session_id", 0, false},
    {"session", 0, false},
    {"device_id", 0, false},
    {"device", 0, true},
    {"machine_id", 0, false},
    {"vehicle_id", 0, false},
    {"trace_id", 0, false},
    {"ip", 0, true},
    {"id", 0, true},
};

static const usual_name time_names[] = {
    {"timestamp", 0, false},
    {"event_time", 0, false},
    {"event_timestamp", 0, false},
    {"time", 0, false},
    {"datetime", 0, false},
    {"timestamp_ms", 0, false},
    {"ts", 0, false},
    {"unix_time", 0, false},
    {"epoch", 0, false},
    {"time:timestamp", 0, false},
    {"order_date", 0, false},
    {"purchase_date", 0, false},
    {"invoice_date", 0, false},
    {"transaction_date", 0, false},
    {"occurred_at", 0, false},
    {"created_at", 0, false},
    {"created", 0, false},
    {"start_time", 0, false},
    {"started_at", 0, false},
    {"visit_date", 0, false},
    {"event_date", 0, false},
    {"unix_review_time", 0, false},
    {"date", 0, false},
    {"when", 0, false},
};

static const usual_name event_names[] = {
    {"event", ACTIONS, false},
    {"event_type", ACTIONS, false},
    {"event_name", ACTIONS, false},
    {"action", ACTIONS, false},
    {"action_type", ACTIONS, false},
    {"activity", ACTIONS, false},
    {"concept:name", ACTIONS, false},
    {"interaction", ACTIONS, false},
    {"behavior", ACTIONS, false},
    {"behavior_type", ACTIONS, false},
    {"type", ACTIONS, false},
    {"item_id", ITEMS, false},
    {"item", ITEMS, false},
    {"product_id", ITEMS, false},
    {"product", ITEMS, false},
    {"sku", ITEMS, false},
    {"stock_code", ITEMS, false},
    {"article_id", ITEMS, false},
    {"article", ITEMS, false},
    {"asin", ITEMS, false},
    {"movie_id", ITEMS, false},
    {"movie", ITEMS, false},
    {"track_id", ITEMS, false},
    {"song_id", ITEMS, false},
    {"book_id", ITEMS, false},
    {"isbn", ITEMS, false},
    {"video_id", ITEMS, false},
    {"game_id", ITEMS, false},
    {"news_id", ITEMS, false},
    {"business_id", ITEMS, false},
    {"venue_id", ITEMS, false},
    {"page", ITEMS, false},
    {"url", ITEMS, false},
    {"code", ACTIONS, true},
    {"diagnosis", ACTIONS, true},
    {"procedure", ACTIONS, true},
    {"drug", ACTIONS, true},
    {"kind", ACTIONS, true},
    {"product_name", ACTIONS, true},
    {"category", ACTIONS, true},
    {"label", ACTIONS, true},
    {"status", ACTIONS, true},
    {"title", ACTIONS, true},
    {"name", ACTIONS, true},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct {
    const usual_name *names;
    int count;
} roles[] = {
    [LAPSE_COLUMN_SEQUENCE] = {sequence_names, COUNT(sequence_names)},
    [LAPSE_COLUMN_TIME] = {time_names, COUNT(time_names)},
    [LAPSE_COLUMN_EVENT] = {event_names, COUNT(event_names)},
};

const char *lapse_column_name(lapse_column_role role, int index)
{
    bool known = (unsigned)role < COUNT(roles) && index >= 0 && index < roles[role].count;
    return known ? roles[role].names[index].name : NULL;
}

static bool is_separator(char c)
{
    return c == '_' || c == '-' || c == ' ' || c == '.' || c == ':' || c == '/';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (is_separator(*a))
            a++;
        while (is_separator(*b))
            b++;
        if (lower(*a) != lower(*b))
            return false;
        if (!*a)
            return true;
    }
}

/* Whether the last word of a name is one that ends the names of time columns: "order_purchase_timestamp", "visitDate". */
static bool ends_like_time(const char *name)
{
    static const char *const words[] = {"timestamp", "time", "date", "datetime", "ts", NULL};
    const char *end = name + strlen(name), *word = end;
    bool capital = false;
    while (word > name && !is_separator(word[-1]) && !capital) {
        word--;
        capital = *word >= 'A' && *word <= 'Z' && word > name && word[-1] >= 'a' && word[-1] <= 'z';
    }
    for (int i = 0; words[i]; i++)
        if (lp_text_is(word, end, words[i]))
            return true;
    return false;
}

lp_name_match lp_column_name_match(const char *name, lapse_column_role role)
{
    for (int i = 0; i < roles[role].count; i++) {
        const usual_name *usual = &roles[role].names[i];
        if (same_name(name, usual->name))
            return (lp_name_match){i, usual->group, usual->weak};
    }
    if (role == LAPSE_COLUMN_TIME && ends_like_time(name))
        return (lp_name_match){roles[role].count, 0, true};
    return (lp_name_match){.rank = -1};
}
