"""Options in the library's sentences, in the words of Python: `--event item` becomes event="item".

The library names an option as the command line does, or by its bare name: min-events. Which word after an option is its value depends on the option's
type, which comes from the library's table of training options and from the structs of lapse.h.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Set, Tuple

from ._interface import ffi

# Options of the command line whose argument has another name in Python. A list has brackets; the rest is a whole argument.
RENAMED = {"field": "fields", "number": "numbers", "split-column": "split", "of-action": "action", "case": "sequences"}
LISTS = ("fields", "numbers", "sequences")
ARGUMENTS = {"no-header": "header=False", "bad-rows skip": "skip_bad_rows=True", "bad-rows fail": "skip_bad_rows=False"}

# A word that follows an option of free text without being its value.
NO_VALUE = {"a", "and", "are", "at", "for", "has", "if", "in", "instead", "is", "may", "must", "needs", "of", "or", "takes",
            "than", "that", "the", "to", "which", "with"}

OPTION = re.compile(r"""(?<![\w-])--([a-z][a-z0-9-]*)(?:\ ('[^']*'|"[^"]*"|[^\s,;:()'"]+(?:,[^\s,;:()'"]+)*))?""")
BARE = re.compile(r"""(?<![\w'"/.=-])[a-z]+(?:-[a-z0-9]+)+(?![\w'"/.-])""")
NUMBER = re.compile(r"[-+]?[0-9.][\w.+-]*")

Options = Dict[str, Tuple[str, Set[str]]]
_known: Options = {}


def _text(pointer: Any) -> str:
    return ffi.string(pointer).decode()


def _is_opaque(struct: str) -> bool:
    try:
        return ffi.sizeof(struct) < 0
    except ffi.error:
        return True


def _options(lib: Any) -> Options:
    """The kind (flag, number, choice, text or file) and the choices of each option, by its name in Python."""
    kinds = {lib.LAPSE_OPTION_FLAG: "flag", lib.LAPSE_OPTION_CHOICE: "choice", lib.LAPSE_OPTION_INTEGER: "number",
             lib.LAPSE_OPTION_NUMBER: "number", lib.LAPSE_OPTION_DURATION: "number", lib.LAPSE_OPTION_SEED: "number"}
    option, index, found = ffi.new("lapse_option *"), 0, {}  # type: Any, int, Options
    while lib.lapse_train_option(index, option):
        choices, i = set(), 0
        while option.choices != ffi.NULL and option.choices[i] != ffi.NULL:
            choices.add(_text(option.choices[i]))
            i += 1
        found[_text(option.name).replace("-", "_")] = (kinds.get(option.type, "file"), choices)
        index += 1
    for struct in ffi.list_types()[0]:
        if not re.fullmatch(r"lapse_\w+_options", struct) or _is_opaque(struct):
            continue
        for name, member in ffi.typeof(struct).fields:
            kind = {"_Bool": "flag", "char const *": "text", "char *": "text"}.get(member.type.cname)
            kind = kind or ("number" if member.type.kind == "primitive" else "file")
            # The columns of an import may have any name, and so are text; other texts are names of files or choices.
            kind = "file" if kind == "text" and struct != "lapse_import_options" else kind
            if name not in found or (kind == "text" and found[name][0] == "number"):
                found[name] = (kind, set())
    found.update({name: ("text", set()) for name in LISTS})
    return found


def _value(kind: str, choices: Set[str], word: str) -> Optional[str]:
    """The value in Python, or None if the word is not a value of the option."""
    if word[0] in "'\"":
        return '"' + word[1:-1] + '"'
    if re.fullmatch(r"[A-Z]+", word):  # a placeholder
        return word
    if kind == "number" and NUMBER.fullmatch(word):
        return word if re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", word) else f'"{word}"'
    if word in choices or (kind == "text" and word not in NO_VALUE):
        return '"' + word + '"'
    return None


def in_python(sentence: str, lib: Any) -> str:
    """A sentence of the library, with options as arguments of Python. Commands, such as `lapse train --log`, remain."""
    if "-" not in sentence:
        return sentence
    if not _known:
        _known.update(_options(lib))

    def argument(match: Any) -> str:
        if re.search(r"lapse [a-z]+ $", sentence[:match.start()]):
            return match.group(0)
        option, word = match.group(1), match.group(2) or ""
        rest = re.search(r"[.?!]*$", word).group(0) if word[:1] not in ("'", '"') else ""
        word = word[:len(word) - len(rest)]
        after = (" " + word if word else "") + rest
        if option in ARGUMENTS:
            return ARGUMENTS[option] + after
        if f"{option} {word}" in ARGUMENTS:
            return ARGUMENTS[f"{option} {word}"] + rest
        name = RENAMED.get(option, option.replace("-", "_"))
        kind, choices = _known.get(name, ("file", set()))
        if kind == "flag":
            return f"{name}=True{after}"
        value = _value(kind, choices, word) if word else None
        if value is None:
            return name + after
        if name in LISTS or (name == "event" and "," in value):
            value = "[" + (value.replace(",", '", "') if value[0] == '"' else value) + "]"
        return f"{name}={value}{rest}"

    return BARE.sub(bare, OPTION.sub(argument, sentence))


def bare(match: Any) -> str:
    """A word with hyphens, which may be the name of an option: min-events is min_events."""
    name = match.group(0).replace("-", "_")
    return name if name in _known else match.group(0)
