/* request_schema.c: see request_schema.h. */
#include "request_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool srv_refuse(srv_problem *problem, int status, const char *field, const char *format, ...)
{
    va_list arguments;
    problem->status = status;
    problem->position = -1;
    snprintf(problem->field, sizeof problem->field, "%s", field ? field : "");
    va_start(arguments, format);
    vsnprintf(problem->detail, sizeof problem->detail, format, arguments);
    va_end(arguments);
    return false;
}

static unsigned type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return SRV_STRING;
    case JSON_INTEGER:
        return SRV_WHOLE | SRV_NUMBER;
    case JSON_REAL:
        return SRV_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE:
        return SRV_BOOL;
    case JSON_OBJECT:
        return SRV_OBJECT;
    case JSON_ARRAY:
        return SRV_ARRAY;
    case JSON_NULL:
        return SRV_NULL;
    }
    return 0;
}

static const struct {
    unsigned type;
    const char *schema, *words;
} type_names[] = {
    {SRV_STRING, "string", "a string"}, {SRV_NUMBER, "number", "a number"},  {SRV_WHOLE, "integer", "a whole number"},
    {SRV_BOOL, "boolean", "a boolean"}, {SRV_OBJECT, "object", "an object"}, {SRV_ARRAY, "array", "an array"},
    {SRV_NULL, "null", "null"},
};
enum { TYPE_COUNT = sizeof type_names / sizeof *type_names };

static void name_types(unsigned types, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < TYPE_COUNT && used < size; i++)
        if (types & type_names[i].type)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " or " : "", type_names[i].words);
}

/* Where a value is in the body; its text is made for a problem alone. */
typedef struct place {
    const struct place *above;
    const char *name; /* NULL: an element */
    size_t index;
} place;

static const char *name_place(const place *at, char *out, size_t size)
{
    size_t used = at->above ? strlen(name_place(at->above, out, size)) : 0;
    if (at->name)
        snprintf(out + used, size - used, "%s%.60s", used ? "." : "", at->name);
    else if (at->above)
        snprintf(out + used, size - used, "[%zu]", at->index);
    else
        out[0] = 0;
    return out;
}

static bool refuse(srv_problem *problem, const place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(srv_problem *problem, const place *at, const char *format, ...)
{
    char path[160], detail[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    name_place(at, path, sizeof path);
    return srv_refuse(problem, 400, path, "%s%s", path, detail);
}

static bool check_members(const json_t *object, const srv_member *members, const place *at, srv_problem *problem);

static bool check_string(const json_t *value, const srv_member *m, const place *at, srv_problem *problem)
{
    size_t most = m->most && !(m->types & SRV_ARRAY) ? (size_t)m->most : SRV_STRING_MAX;
    if (json_string_length(value) > most)
        return refuse(problem, at, " has %zu bytes, at most %zu are allowed", json_string_length(value), most);
    if (!m->choices)
        return true;
    char list[256] = "";
    for (int i = 0; m->choices[i]; i++) {
        if (strcmp(m->choices[i], json_string_value(value)) == 0)
            return true;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", m->choices[i]);
    }
    return refuse(problem, at, " must be one of %s", list);
}

static bool check_value(const json_t *value, const srv_member *m, unsigned types, const place *at, srv_problem *problem)
{
    if (types && !(type_of(value) & types)) {
        char words[160];
        name_types(types, words, sizeof words);
        return refuse(problem, at, " must be %s", words);
    }
    if (json_is_string(value))
        return check_string(value, m, at, problem);
    if (json_is_number(value) && (m->low != 0 || m->high != 0)) {
        double number = json_number_value(value);
        if (!(number >= m->low && number <= m->high))
            return refuse(problem, at, " must be from %.15g to %.15g", m->low, m->high);
    }
    if (json_is_object(value) && m->members)
        return check_members(value, m->members, at, problem);
    if (!json_is_array(value))
        return true;
    if (m->most && json_array_size(value) > (size_t)m->most)
        return refuse(problem, at, " has %zu elements, at most %lld are allowed", json_array_size(value),
                      (long long)m->most);
    size_t i;
    json_t *element;
    json_array_foreach(value, i,
                       element) if (!check_value(element, m, m->element, &(place){at, NULL, i}, problem)) return false;
    return true;
}

static bool check_members(const json_t *object, const srv_member *members, const place *at, srv_problem *problem)
{
    const char *name;
    json_t *value;
    size_t found = 0, required = 0;
    json_object_foreach((json_t *)object, name, value)
    {
        const srv_member *m = members;
        const place inner = {at, name, 0};
        while (m->name && strcmp(m->name, name) != 0)
            m++;
        if (!m->name) {
            refuse(problem, &inner, "%s", "");
            snprintf(problem->detail, sizeof problem->detail, "unknown member '%.60s'", name);
            return false;
        }
        if (!check_value(value, m, m->types, &inner, problem))
            return false;
        found += m->required;
    }
    for (const srv_member *m = members; m->name; m++)
        required += m->required;
    for (const srv_member *m = members; m->name && found < required; m++)
        if (m->required && !json_object_get(object, m->name))
            return refuse(problem, &(place){at, m->name, 0}, " is missing");
    return true;
}

bool srv_schema_check(const json_t *object, const srv_member *members, srv_problem *problem)
{
    if (!json_is_object(object))
        return srv_refuse(problem, 400, NULL, "the body must be a JSON object");
    return check_members(object, members, &(place){0}, problem);
}

/* ------------------------------------------------------------------------------------------ JSON Schema ------ */

static void write_types(srv_text *text, unsigned types)
{
    bool several = (types & (types - 1)) != 0;
    srv_text_name(text, "type");
    if (several)
        srv_text_open(text, '[');
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (!(types & type_names[i].type))
            continue;
        if (several)
            srv_text_comma(text);
        srv_text_quote(text, type_names[i].schema);
    }
    if (several)
        srv_text_close(text, ']');
}

static void write_members(srv_text *text, const srv_member *members, bool open);

static void write_member(srv_text *text, const srv_member *m, bool open)
{
    srv_text_name(text, m->name);
    srv_text_open(text, '{');
    if (m->types)
        write_types(text, m->types);
    if (m->help)
        srv_text_member(text, "description", m->help);
    if (m->low != 0 || m->high != 0) {
        srv_text_member_number(text, "minimum", m->low);
        srv_text_member_number(text, "maximum", m->high);
    }
    if ((m->types & SRV_STRING) && !open)
        srv_text_member_whole(text, "maxLength", m->most && !(m->types & SRV_ARRAY) ? m->most : SRV_STRING_MAX);
    if (m->choices) {
        srv_text_name(text, "enum");
        srv_text_open(text, '[');
        for (int i = 0; m->choices[i]; i++) {
            srv_text_comma(text);
            srv_text_quote(text, m->choices[i]);
        }
        srv_text_close(text, ']');
    }
    if (m->types & SRV_ARRAY) {
        if (m->most)
            srv_text_member_whole(text, "maxItems", m->most);
        srv_text_name(text, "items");
        srv_text_open(text, '{');
        if (m->element)
            write_types(text, m->element);
        if (m->members && (m->element & SRV_OBJECT))
            write_members(text, m->members, open);
        srv_text_close(text, '}');
    } else if (m->members) {
        write_members(text, m->members, open);
    }
    srv_text_close(text, '}');
}

/* The keywords of an object, as members of an open one. */
static void write_members(srv_text *text, const srv_member *members, bool open)
{
    bool required = false;
    srv_text_name(text, "properties");
    srv_text_open(text, '{');
    for (const srv_member *m = members; m->name; m++) {
        write_member(text, m, open);
        required |= m->required;
    }
    srv_text_close(text, '}');
    if (!open)
        srv_text_member_bool(text, "additionalProperties", false);
    if (!required)
        return;
    srv_text_name(text, "required");
    srv_text_open(text, '[');
    for (const srv_member *m = members; m->name; m++)
        if (m->required) {
            srv_text_comma(text);
            srv_text_quote(text, m->name);
        }
    srv_text_close(text, ']');
}

void srv_schema_write(srv_text *text, const srv_member *members, bool open)
{
    srv_text_open(text, '{');
    srv_text_member(text, "type", "object");
    write_members(text, members, open);
    srv_text_close(text, '}');
}

void srv_schema_write_values(srv_text *text, const srv_member *member)
{
    srv_member named = *member;
    named.name = "schema";
    write_member(text, &named, false);
}
