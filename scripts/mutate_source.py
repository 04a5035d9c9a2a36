"""Changes of C sources for mutate.py: finds the places that can be changed, and writes a file in which each chosen change is made only
when the variable lp_mutant has its number. So one build holds all changes, and a run of it chooses one.

A place is one of
    relation    a < b becomes a <= b, a == b becomes a != b, ...
    sum         a + b becomes a - b, a += b becomes a -= b, and the reverse
    constant    a number becomes one more or one less
    statement   an expression statement, break or continue is deleted
    condition   the condition of if, while or ?: is negated
in the body of a function. What the preprocessor reads, assertions and initializers outside functions are left alone.
"""

import re

KINDS = ("relation", "sum", "constant", "statement", "condition")
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OPPOSITE = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
# Calls that a release build does not have, or that change nothing but speed.
IGNORED = {"LP_ASSERT", "_Static_assert", "static_assert", "__builtin_prefetch"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
TYPES = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "bool", "_Bool", "const", "static",
         "struct", "union", "enum", "volatile", "register", "extern", "typedef", "inline", "_Static_assert", "_Alignas"}
# No expression statement begins with these.
KEYWORDS = TYPES | {"if", "else", "for", "while", "do", "switch", "case", "default", "return", "goto", "sizeof"}

TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.)*)
  | (?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|[uUL]?'(?:[^'\\\n]|\\.)*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
""", re.X | re.S | re.M)


class Token:
    __slots__ = ("kind", "text", "at", "partner")

    def __init__(self, kind, text, at):
        self.kind, self.text, self.at, self.partner = kind, text, at, -1


def tokens_of(source):
    tokens, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if not match:  # not C
            return []
        if match.lastgroup not in ("blank", "directive"):
            tokens.append(Token(match.lastgroup, match.group(), at))
        at = match.end()
    opened = []
    for i, token in enumerate(tokens):
        if token.text in OPEN:
            opened.append(i)
        elif token.text in CLOSE:
            if not opened or OPEN[tokens[opened[-1]].text] != token.text:
                return []
            token.partner = opened.pop()
            tokens[token.partner].partner = i
    return [] if opened else tokens


def bodies_of(tokens):
    """The token ranges of function bodies: braces after a parenthesis that are in no other braces."""
    i, bodies = 0, []
    while i < len(tokens):
        if tokens[i].text == "{":
            if i > 0 and tokens[i - 1].text == ")":
                bodies.append((i, tokens[i].partner))
            i = tokens[i].partner
        i += 1
    return bodies


def is_binary(tokens, i):
    before = tokens[i - 1]
    if before.kind in ("number", "text") or before.text == "]":
        return True
    if before.text == ")":
        return not is_cast(tokens, i - 1)
    return before.kind == "name" and before.text not in KEYWORDS


def is_cast(tokens, close):
    """Whether a closing parenthesis ends a cast, as far as the text shows."""
    inside = tokens[tokens[close].partner + 1:close]
    before = tokens[tokens[close].partner - 1]
    if not inside or before.kind == "name" and before.text not in ("return", "case", "else"):
        return before.text in ("if", "while", "for", "switch")
    if inside[-1].text == "*" and inside[0].kind == "name":
        return True
    return all(t.kind == "name" for t in inside) and (inside[0].text in TYPES or inside[-1].text.endswith("_t"))


# Marks that end an operand of a relation, besides what ends an expression.
LOWER = {"&&", "||", "?", ":", ",", ";", "==", "!="} | ASSIGNMENTS
BITS = {"&", "^", "|"}


def operand_start(tokens, op, stops):
    """The first token of the left operand of the operator at op."""
    i = op - 1
    while True:
        token = tokens[i]
        if token.text in CLOSE and token.text != "}":
            i = token.partner - 1
            continue
        ends = token.text in stops and not (token.text in "&-+*" and not is_binary(tokens, i))
        if ends or token.text in OPEN or token.text == "}" or token.text in ("return", "case", "else", "do"):
            return i + 1
        i -= 1


def operand_end(tokens, op, stops):
    """The last token of the right operand."""
    i = op + 1
    while True:
        token = tokens[i]
        if token.text in OPEN:
            i = token.partner + 1
            continue
        ends = token.text in stops and not (token.text in "&-+*" and not is_binary(tokens, i))
        if ends or token.text in CLOSE:
            return i - 1
        i += 1


class Site:
    """A place: tokens first to last (op: the operator), what is there and what it becomes."""

    def __init__(self, kind, file, source, tokens, first, last, op=None, becomes=None, step=0):
        self.kind, self.file, self.first, self.last, self.op, self.becomes, self.step = kind, file, first, last, op, becomes, step
        at = tokens[first if op is None else op].at
        end = at + len(tokens[op].text) if op is not None else tokens[last].at + len(tokens[last].text)
        self.line = source.count("\n", 0, at) + 1
        line_start, line_end = source.rfind("\n", 0, at) + 1, source.find("\n", at)
        self.last_line = source.count("\n", 0, tokens[last].at) + 1
        self.first_line = source.count("\n", 0, tokens[first].at) + 1
        self.before = " ".join(source[line_start:line_end].split())
        if kind == "statement":
            new = ";"
        elif kind == "condition":
            new = "!(" + source[at:end] + ")"
        elif kind == "constant":
            new = source[at:end] + (" + 1" if step > 0 else " - 1")
        else:
            new = becomes
        changed = source[line_start:at] + new + (source[end:line_end] if end <= line_end else "")
        self.after = " ".join(changed.split())


def statement_of(tokens, i, end):
    """The last token of an expression statement, break or continue that begins at i, or None."""
    token = tokens[i]
    if token.text in ("break", "continue"):
        return i + 1
    if token.text in KEYWORDS or token.kind in ("number", "text") or token.text in ("{", "}", ";"):
        return None
    if token.kind == "name" and (tokens[i + 1].kind == "name" or tokens[i + 1].text == ":"):
        return None
    if token.kind == "name" and tokens[i + 1].text == "*" and tokens[i + 2].text in ("*", "const") or \
            token.kind == "name" and tokens[i + 1].text == "*" and tokens[i + 2].kind == "name":
        return None
    if token.text == "(" and is_cast(tokens, token.partner):
        return None  # (void)x
    while i < end and tokens[i].text != ";":
        i = tokens[i].partner + 1 if tokens[i].text in OPEN else i + 1
    return i if i < end else None


def sites_of(file, source, random):
    """All places of a file."""
    tokens, sites = tokens_of(source), []

    def add(kind, *arguments, **named):
        sites.append(Site(kind, file, source, tokens, *arguments, **named))

    for begin, end in bodies_of(tokens):
        ignored = begin
        for i in range(begin + 1, end):
            token, before = tokens[i], tokens[i - 1]
            if token.text in IGNORED and tokens[i + 1].text == "(":
                ignored = tokens[i + 1].partner + 1  # with the semicolon
            if i <= ignored:
                continue
            if token.text in TURNED:
                stops = LOWER | BITS | ({"<", "<=", ">", ">="} if token.text not in ("==", "!=") else set())
                add("relation", operand_start(tokens, i, stops), operand_end(tokens, i, stops), op=i, becomes=TURNED[token.text])
            elif token.text in ("+", "-") and is_binary(tokens, i):
                stops = LOWER | BITS | {"<", "<=", ">", ">=", "<<", ">>"}
                add("sum", operand_start(tokens, i, stops), operand_end(tokens, i, stops | {"+", "-"}), op=i,
                    becomes=OPPOSITE[token.text])
            elif token.text in ("+=", "-="):
                add("sum", i + 1, operand_end(tokens, i, {",", ";"}), op=i, becomes=OPPOSITE[token.text])
            elif token.kind == "number":
                add("constant", i, i, step=random.choice((1, -1)))
            elif token.text in ("if", "while") and tokens[i + 1].text == "(":
                add("condition", i + 2, tokens[i + 1].partner - 1)
            elif token.text == "?":
                add("condition", operand_start(tokens, i, {"?", ":", ",", ";"} | ASSIGNMENTS), i - 1)
            starts = before.text in ("{", "}", ";", "else") or \
                before.text == ")" and tokens[before.partner - 1].text in ("if", "while", "for")
            if starts and not in_parentheses(tokens, i, begin):
                last = statement_of(tokens, i, end)
                if last is not None:
                    add("statement", i, last)
    return sites


def in_parentheses(tokens, i, begin):
    """Whether a token is in the header of a for, or in an initializer."""
    i -= 1
    while i > begin:
        if tokens[i].text in CLOSE:
            i = tokens[i].partner
        elif tokens[i].text in ("(", "["):
            return True
        elif tokens[i].text == "{":
            return tokens[i - 1].text in ("=", ",", "{", "(", "[", "return") or \
                tokens[i - 1].text == ")" and is_cast(tokens, i - 1) and tokens[tokens[i - 1].partner - 1].kind != "name"
        i -= 1
    return False


# Declarations, and a line marker that makes the source a system header (3): without warnings.
HEAD = 'extern int lp_mutant; extern unsigned char *lp_mutant_reached;\n# 1 "%s" 3\n'


def schemata(source, chosen):
    """The source with all chosen changes; chosen: {number: site}."""
    tokens = tokens_of(source)
    before, after, replaced = {}, {}, {}
    # The outermost opens first and closes last.
    for number, s in sorted(chosen.items(), key=lambda item: item[1].first - item[1].last):
        mark, chosen_now = f"lp_mutant_reached[{number}] = 3", f"lp_mutant == {number}"
        on = f"({mark}, {chosen_now})"
        opening, closing = "", ""
        if s.kind == "constant":
            opening, closing = "(", f" {'+' if s.step > 0 else '-'} {on})"
        elif s.kind == "statement":
            opening, closing = f"{{ if (!{on}) ", " }"
        elif s.kind == "condition":
            opening, closing = "((", f") ? !{on} : {on})"
        elif tokens[s.op].text in ("+=", "-="):
            opening, closing = f"({on} ? -1 : 1) * (", ")"
        else:
            a, b, op = f"lp_a{number}", f"lp_b{number}", tokens[s.op].text
            opening = f"({{ __auto_type {a} = ("
            replaced[s.op] = f") + 0; __auto_type {b} = ("
            differs = f"({a} {s.becomes} {b}) != ({a} {op} {b})"
            closing = f") + 0; lp_mutant_reached[{number}] |= {differs} ? 3 : 1; " \
                      f"{chosen_now} ? {a} {s.becomes} {b} : {a} {op} {b}; }})"
        before.setdefault(s.first, []).append(opening)
        after.setdefault(s.last, []).insert(0, closing)
    out, at = [HEAD % next((s.file for s in chosen.values()), "")], 0
    for i, token in enumerate(tokens):
        out.append(source[at:token.at])
        out += before.get(i, []) + [replaced.get(i, token.text)] + after.get(i, [])
        at = token.at + len(token.text)
    return "".join(out) + source[at:]


# Reads which change to make, and records which places were reached; without functions that a test replaces.
CONTROL = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int lp_mutant;
static unsigned char places[PLACES];
unsigned char *lp_mutant_reached = places;
__attribute__((constructor)) static void lp_mutant_read(void)
{
    const char *number = getenv("LAPSE_MUTANT"), *trace = getenv("LAPSE_MUTANT_TRACE");
    lp_mutant = number ? atoi(number) : 0;
    long file = trace ? syscall(SYS_openat, AT_FDCWD, trace, O_RDWR) : -1;
    if (file < 0)
        return;
    long shared = syscall(SYS_mmap, NULL, (size_t)PLACES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared != -1 && (unsigned long)shared < -4096ul)
        lp_mutant_reached = (unsigned char *)shared;
    syscall(SYS_close, file);
}
"""
