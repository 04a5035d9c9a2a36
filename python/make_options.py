"""Writes the Python module that gives type checkers and editors every option: a TypedDict for each `**options`.

    make_options.py LIBRARY INTERFACE OUTPUT

LIBRARY is the shared library and INTERFACE the module of make_interface.py: the tables of options are the library's, and the
structs those of its headers.
"""

import importlib.util
import sys

spec = importlib.util.spec_from_file_location("interface", sys.argv[2])
interface = importlib.util.module_from_spec(spec)
spec.loader.exec_module(interface)
ffi, lib = interface.ffi, interface.ffi.dlopen(sys.argv[1])

HEAD = '''"""Every option of the package by name and type, for type checkers and editors. Made by make_options.py from the library."""

import os
from typing import Any, Literal, Optional, Sequence, TypedDict, Union

import numpy as np

from ._values import Column, Duration, Time

Path = Union[str, "os.PathLike[str]"]
Names = Union[Column, Sequence[Column]]
Integer = Union[int, "np.integer[Any]"]
Number = Union[float, "np.floating[Any]", "np.integer[Any]"]
Flag = Union[bool, np.bool_]

'''


def text(pointer):
    return ffi.string(pointer).decode() if pointer != ffi.NULL else ""


def names(values):
    """A NULL-terminated list of texts."""
    found = []
    while values[len(found)] != ffi.NULL:
        found.append(text(values[len(found)]))
    return found


def table(function):
    """The rows of a table of options: name, type and help."""
    option, rows = ffi.new("lapse_option *"), []
    while function(len(rows), option):
        name = text(option.name).replace("-", "_")
        if option.type == lib.LAPSE_OPTION_CHOICE:
            choices = [c.replace("-", "_") if name in ("select", "metric") else c for c in names(option.choices)]
            kind = "Literal[" + ", ".join(f'"{choice}"' for choice in choices) + "]"
        else:
            kind = {lib.LAPSE_OPTION_INTEGER: "Integer", lib.LAPSE_OPTION_SEED: "Integer", lib.LAPSE_OPTION_NUMBER: "Number",
                    lib.LAPSE_OPTION_DURATION: "Duration", lib.LAPSE_OPTION_FLAG: "Flag", lib.LAPSE_OPTION_FILE: "Path",
                    lib.LAPSE_OPTION_TEXT: "str"}[option.type]
        rows.append((name, f"Optional[{kind}]", text(option.help)))
    return rows


def struct(name, without=(), **other):
    """The members of a struct of options."""
    kinds = {"char *": "str", "char const *": "str", "char * *": "Names", "_Bool": "Flag", "bool": "Flag", "double": "Number", "char const * const *": "Names"}
    counts = {"category_count", "number_count", "sequence_count"}
    return [(member, f"Optional[{other.get(member) or kinds.get(field.type.cname, 'Integer')}]", "")
            for member, field in ffi.typeof(name).fields if member not in {*without, *counts}]


def written(name, rows):
    lines = [f"class {name}(TypedDict, total=False):"]
    for option, kind, help in rows:
        lines.append(f"    {option}: {kind}")
        if help:
            lines.append(f'    """{help}."""')
    return "\n".join(lines) + "\n"


def main(output):
    choices = {"deduplicate": 'Literal["none", "exact", "consecutive"]', "min_rounds": 'Literal["once", "iterated"]',
               "time_unit": 'Literal["auto", "s", "ms", "us", "ns", "iso", "mdy", "dmy", "text", "compact", "excel", "relative"]'}
    columns = ("sequence", "time", "event", "action", "split", "categories", "numbers")
    hidden = ("input", "preferred", "preferred_split", "preferred_unit", "preferred_encoding")
    file_only = ("delimiter", "header", "encoding")
    imports = dict(session_gap="Duration", **choices)
    train, sweep = table(lib.lapse_train_option), table(lib.lapse_sweep_option)
    taken = {row[0] for row in sweep}
    given = [(name, "Optional[Names]" if name in ("event", "numbers") else "Optional[Column]", "") for name in columns[:5]]
    classes = {
        "TrainOptions": train,
        "CompareOptions": sweep[1:] + [row for row in train if row[0] not in taken],  # without data, an argument
        "ImportOptions": struct("lapse_import_options", (*columns, *hidden, *file_only), **imports),
        "FileOptions": struct("lapse_import_options", (*columns, *hidden), **imports),
        "HistoryOptions": given + struct("lapse_import_options", (*columns, *hidden, "threads"), **imports),
        "CheckOptions": struct("lapse_check_options", now="Time"),
        "InspectOptions": struct("lapse_inspect_options"),
        "SimulateOptions": struct("lapse_simulate_options", ("preset",)),
        "PretrainOptions": struct("lapse_pretrain_options", session_gap="Duration", catalogue="Path"),
        "BoundOptions": struct("lapse_bound_options", span="Duration"),
    }
    with open(output, "w", encoding="utf-8") as file:
        file.write(HEAD + "\n\n".join("\n" + written(*item) for item in classes.items()))


if __name__ == "__main__":
    main(sys.argv[3])
