/* expression.c: see expression.h. A recursive-descent parser makes nodes; an item is evaluated by walking them. */
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 256, DEPTH = 32 };

typedef enum operation {
    OR,
    AND,
    NOT,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    IN,
    ADD,
    SUB,
    MUL,
    DIV,
    NEG,
    LITERAL,
    FIELD,
    LIST
} operation;

typedef struct node {
    operation op;
    int left, right; /* nodes; of a list: the first element and, as `next` of elements, the others; -1: none */
    int next;
    json_t *value; /* of a literal, the name of a field; owned */
} node;

struct srv_expression {
    node nodes[NODES];
    int count, root;
};

typedef struct parser {
    srv_expression *e;
    const char *text, *at, *field;
    int depth;
    srv_problem *problem;
} parser;

static int parse_or(parser *p);

static int fail(parser *p, const char *what)
{
    if (p->problem->status == 0)
        srv_refuse(p->problem, 400, p->field, "%s: %s at byte %d", p->field, what, (int)(p->at - p->text));
    return -1;
}

static int add(parser *p, operation op, int left, int right, json_t *value)
{
    if (p->e->count == NODES) {
        json_decref(value);
        return fail(p, "the expression is too long");
    }
    p->e->nodes[p->e->count] = (node){op, left, right, -1, value};
    return p->e->count++;
}

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

/* Takes a word or an operator. */
static bool take(parser *p, const char *token)
{
    size_t size = strlen(token);
    skip_space(p);
    if (strncmp(p->at, token, size) != 0 ||
        (isalpha((unsigned char)*token) && (isalnum((unsigned char)p->at[size]) || p->at[size] == '_')))
        return false;
    p->at += size;
    return true;
}

static int parse_text(parser *p)
{
    const char *end = p->at + 1;
    while (*end && *end != *p->at)
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!*end)
        return fail(p, "a string does not end");
    srv_text text = {0};
    for (const char *from = p->at + 1; from < end; from++) {
        from += *from == '\\';
        srv_text_bytes(&text, from, 1);
    }
    const char *string = srv_text_string(&text);
    json_t *value = string ? json_string(string) : NULL;
    srv_text_clear(&text);
    p->at = end + 1;
    return value ? add(p, LITERAL, -1, -1, value) : fail(p, "a string is not UTF-8");
}

static int parse_list(parser *p)
{
    int list = add(p, LIST, -1, -1, NULL), last = -1;
    while (list >= 0 && !take(p, "]")) {
        int element = (last < 0 || take(p, ",")) ? parse_or(p) : fail(p, "a comma or ] is missing");
        if (element < 0)
            return -1;
        *(last < 0 ? &p->e->nodes[list].left : &p->e->nodes[last].next) = element;
        last = element;
    }
    return list;
}

static int parse_value(parser *p)
{
    static const char *const words[] = {"true", "false", "null"};
    skip_space(p);
    if (take(p, "(")) {
        int inside = parse_or(p);
        return inside < 0 || take(p, ")") ? inside : fail(p, "a ) is missing");
    }
    if (take(p, "["))
        return parse_list(p);
    for (int i = 0; i < 3; i++)
        if (take(p, words[i]))
            return add(p, LITERAL, -1, -1, i == 0 ? json_true() : i == 1 ? json_false() : json_null());
    if (*p->at == '"' || *p->at == '\'')
        return parse_text(p);
    if (take(p, "-")) {
        int of = parse_value(p);
        return of < 0 ? -1 : add(p, NEG, of, -1, NULL);
    }
    char *end;
    double number = isdigit((unsigned char)*p->at) ? strtod(p->at, &end) : NAN;
    if (isfinite(number)) {
        p->at = end;
        return add(p, LITERAL, -1, -1, json_real(number));
    }
    size_t size = 0;
    while (isalnum((unsigned char)p->at[size]) || p->at[size] == '_' || p->at[size] == '.' ||
           (unsigned char)p->at[size] >= 0x80)
        size++;
    json_t *name = size ? json_stringn(p->at, size) : NULL;
    if (!name)
        return fail(p, "a field or a value is missing");
    p->at += size;
    return add(p, FIELD, -1, -1, name);
}

static int parse_product(parser *p)
{
    int left = parse_value(p);
    while (left >= 0) {
        operation op = take(p, "*") ? MUL : take(p, "/") ? DIV : LIST;
        if (op == LIST)
            break;
        int right = parse_value(p);
        left = right < 0 ? -1 : add(p, op, left, right, NULL);
    }
    return left;
}

static int parse_sum(parser *p)
{
    int left = parse_product(p);
    while (left >= 0) {
        operation op = take(p, "+") ? ADD : take(p, "-") ? SUB : LIST;
        if (op == LIST)
            break;
        int right = parse_product(p);
        left = right < 0 ? -1 : add(p, op, left, right, NULL);
    }
    return left;
}

static int parse_comparison(parser *p)
{
    static const struct {
        const char *token;
        operation op;
    } operators[] = {{"==", EQ}, {"!=", NE}, {"<=", LE}, {">=", GE}, {"<", LT}, {">", GT}, {"in", IN}};
    int left = parse_sum(p);
    if (left < 0)
        return -1;
    const char *before = p->at;
    bool negated = take(p, "not");
    for (size_t i = negated ? 6 : 0; i < sizeof operators / sizeof *operators; i++) {
        if (!take(p, operators[i].token))
            continue;
        int right = parse_sum(p);
        if (right >= 0 && operators[i].op == IN && p->e->nodes[right].op != LIST)
            return fail(p, "a list [...] must follow in");
        int made = right < 0 ? -1 : add(p, operators[i].op, left, right, NULL);
        return negated && made >= 0 ? add(p, NOT, made, -1, NULL) : made;
    }
    p->at = before;
    return left;
}

static int parse_not(parser *p)
{
    if (++p->depth > DEPTH)
        return fail(p, "the expression is nested too deeply");
    int made;
    if (take(p, "not")) {
        int of = parse_not(p);
        made = of < 0 ? -1 : add(p, NOT, of, -1, NULL);
    } else {
        made = parse_comparison(p);
    }
    p->depth--;
    return made;
}

static int parse_and(parser *p)
{
    int left = parse_not(p);
    while (left >= 0 && take(p, "and")) {
        int right = parse_not(p);
        left = right < 0 ? -1 : add(p, AND, left, right, NULL);
    }
    return left;
}

static int parse_or(parser *p)
{
    int left = parse_and(p);
    while (left >= 0 && take(p, "or")) {
        int right = parse_and(p);
        left = right < 0 ? -1 : add(p, OR, left, right, NULL);
    }
    return left;
}

bool srv_expression_new(const char *text, const char *field, srv_expression **out, srv_problem *problem)
{
    parser p = {.e = calloc(1, sizeof *p.e), .text = text, .at = text, .field = field, .problem = problem};
    problem->status = 0;
    if (!p.e)
        return srv_refuse(problem, 503, NULL, "out of memory");
    p.e->root = parse_or(&p);
    skip_space(&p);
    if (p.e->root >= 0 && *p.at)
        p.e->root = fail(&p, "an operator is missing");
    if (p.e->root < 0) {
        srv_expression_free(p.e);
        return false;
    }
    *out = p.e;
    return true;
}

void srv_expression_free(srv_expression *e)
{
    for (int i = 0; e && i < e->count; i++)
        json_decref(e->nodes[i].value);
    free(e);
}

/* -------------------------------------------------------------------------------------------- evaluation ----- */

/* A value: text, or a number; neither: null. Truth values are the numbers 0 and 1. */
typedef struct value {
    const char *text;
    double number; /* NaN: none */
} value;

typedef struct item {
    const srv_expression *e;
    const json_t *fields;
    const char *name;
} item;

static value number(double x)
{
    return (value){NULL, x};
}

static value of_json(const json_t *json)
{
    if (json_is_string(json))
        return (value){json_string_value(json), NAN};
    return number(json_is_number(json) ? json_number_value(json) : json_is_boolean(json) ? json_is_true(json) : NAN);
}

static bool same(value a, value b)
{
    if (a.text && b.text)
        return strcmp(a.text, b.text) == 0;
    return !a.text && !b.text && ((isnan(a.number) && isnan(b.number)) || a.number == b.number);
}

static int compare(value a, value b, bool *known)
{
    *known = a.text && b.text ? true : !a.text && !b.text && !isnan(a.number) && !isnan(b.number);
    if (a.text && b.text)
        return strcmp(a.text, b.text);
    return (a.number > b.number) - (a.number < b.number);
}

static bool truth(value v)
{
    return v.text ? *v.text != 0 : !isnan(v.number) && v.number != 0;
}

static value evaluate(const item *it, int index)
{
    const node *n = &it->e->nodes[index];
    if (n->op == LITERAL)
        return of_json(n->value);
    if (n->op == FIELD) {
        const json_t *found = json_object_get(it->fields, json_string_value(n->value));
        return !found && strcmp(json_string_value(n->value), "item") == 0 ? (value){it->name, NAN} : of_json(found);
    }
    if (n->op == LIST)
        return number(NAN);
    value a = evaluate(it, n->left);
    if (n->op == NOT)
        return number(!truth(a));
    if (n->op == NEG)
        return number(-a.number);
    if (n->op == OR || n->op == AND)
        return number((truth(a) == (n->op == OR)) ? n->op == OR : truth(evaluate(it, n->right)));
    if (n->op == IN) {
        for (int i = it->e->nodes[n->right].left; i >= 0; i = it->e->nodes[i].next)
            if (same(a, evaluate(it, i)))
                return number(1);
        return number(0);
    }
    value b = evaluate(it, n->right);
    bool known;
    int order = compare(a, b, &known);
    switch (n->op) {
    case EQ:
        return number(same(a, b));
    case NE:
        return number(!same(a, b));
    case LT:
        return number(known && order < 0);
    case LE:
        return number(known && order <= 0);
    case GT:
        return number(known && order > 0);
    case GE:
        return number(known && order >= 0);
    case ADD:
        return number(a.number + b.number);
    case SUB:
        return number(a.number - b.number);
    case MUL:
        return number(a.number * b.number);
    default:
        return number(a.number / b.number);
    }
}

bool srv_expression_true(const srv_expression *e, const json_t *fields, const char *name)
{
    return truth(evaluate(&(item){e, fields, name}, e->root));
}

double srv_expression_number(const srv_expression *e, const json_t *fields, const char *name)
{
    return evaluate(&(item){e, fields, name}, e->root).number;
}
