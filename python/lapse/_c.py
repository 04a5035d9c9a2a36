"""The C library: loading it, calling it, and its errors as exceptions."""

from __future__ import annotations

import difflib
import os
import sys
from typing import Any, Iterable, Optional, Union

from ._interface import ffi

_file = "liblapse.dylib" if sys.platform == "darwin" else "liblapse.so"
lib = ffi.dlopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), _file))
NULL = ffi.NULL
lib.lapse_wording_set(lib.LAPSE_WORDING_PYTHON)  # sentences have event="item", where the tool says --event item


class LapseError(Exception):
    """An error of the library. `message` is its sentence; `file`, `line` and `column` locate malformed input; `option` is the
    option that the sentence is about and `value` what it cannot be, "" if it is about none.

    >>> try:
    ...     lapse.Dataset.open("missing.lapse")
    ... except lapse.LapseError as error:
    ...     print(type(error).__name__, error.file)
    FileError missing.lapse
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0, option: str = "", value: str = "") -> None:
        place = ":".join(str(part) for part in (file, line, column) if part)
        super().__init__(f"{place}: {message}" if file else message)
        self.message, self.file, self.line, self.column, self.option, self.value = message, file, line, column, option, value

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.file, self.line, self.column, self.option, self.value)


class OutOfMemoryError(LapseError, MemoryError):
    """The library could not allocate memory."""


class UsageError(LapseError, ValueError):
    """An argument or option is wrong."""


class InputError(LapseError, ValueError):
    """Malformed input data; `line` is the line of a text, or the row of a table."""


class FileError(LapseError, OSError):
    """The system refused to open, read or write a file."""

    def __str__(self) -> str:
        return str(self.args[0])


class FormatError(LapseError, ValueError):
    """A dataset or model file is invalid, truncated or corrupt."""


class UnknownError(LapseError, LookupError):
    """A name that the model or dataset does not have."""


class InternalError(LapseError, RuntimeError):
    """A bug in Lapse, or a failure of the device."""


ERRORS = {
    lib.LAPSE_ERROR_MEMORY: OutOfMemoryError,
    lib.LAPSE_ERROR_USAGE: UsageError,
    lib.LAPSE_ERROR_INPUT: InputError,
    lib.LAPSE_ERROR_FILE: FileError,
    lib.LAPSE_ERROR_FORMAT: FormatError,
    lib.LAPSE_ERROR_UNKNOWN: UnknownError,
    lib.LAPSE_ERROR_INTERNAL: InternalError,
}


def raise_error(error: Any) -> None:
    """Raises the exception of a filled lapse_error."""
    kind = ERRORS.get(error.status, InternalError)
    raise kind(text(error.message) or "", text(error.file) or "", error.line, error.column,
               (text(error.option) or "").replace("-", "_"), text(error.value) or "")


def call(function: Any, *arguments: Any) -> None:
    """Calls a function whose last parameter is a lapse_error, and raises what it reports."""
    error = ffi.new("lapse_error *")
    if function(*arguments, error) != lib.LAPSE_OK:
        raise_error(error)


def text(pointer: Any) -> Optional[str]:
    """A C string as text; None for NULL."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer != NULL else None


def top_of(top: int, size: int) -> int:
    """The number of predictions to make of `size` candidates (0: not known here): all of them for a top of 0."""
    if top < 0:
        raise UsageError(f"top is {top}; it must be at least 1, or 0 for all")
    return max(1, min(top or size, size)) if size else max(1, top)


# What other libraries call an option.
OTHER_NAMES = {"lr": "learning_rate", "random_state": "seed", "n_epochs": "epochs", "max_epochs": "epochs", "batch_size": "batch",
               "weight_decay": "l2", "embedding_dim": "dims", "hidden_size": "dims", "num_heads": "heads", "n_heads": "heads",
               "num_layers": "blocks", "n_layers": "blocks", "n_jobs": "threads", "early_stopping": "patience", "optimizer_lr": "learning_rate",
               "user": "sequence", "item": "event", "timestamp": "time", "user_col": "sequence", "sep": "delimiter", "tz": "timezone"}


def unknown_option(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error of an option that does not exist, with the most similar names, or all."""
    known = set(known)
    similar = [OTHER_NAMES[name]] if OTHER_NAMES.get(name) in known else difflib.get_close_matches(name, list(known))
    return UsageError(f"there is no {kind} option '{name}': " + (
        f"did you mean {' or '.join(similar)}?" if similar else f"the options are {', '.join(sorted(known))}"), option=name)


def encode(value: Union[str, os.PathLike]) -> bytes:
    """A text or path as bytes for C."""
    coded = os.fsencode(value)
    if b"\0" in coded:
        raise UsageError("a text for the library must not contain a NUL character")
    return coded


class Keeper:
    """Keeps C strings and arrays alive that a C struct points to."""

    def __init__(self) -> None:
        self.kept: list = []

    def string(self, value: Optional[str]) -> Any:
        if value is None:
            return NULL
        self.kept.append(ffi.new("char[]", encode(value)))
        return self.kept[-1]

    def strings(self, values: Any) -> Any:
        self.kept.append(ffi.new("const char *[]", [self.string(value) for value in values] or [NULL]))
        return self.kept[-1]


def properties(function: Any, handle: Any) -> dict:
    """The name and text of every property of an object."""
    name, value, found = ffi.new("const char **"), ffi.new("const char **"), {}
    while function(handle, len(found), name, value):
        found[text(name[0])] = text(value[0])
    return found


def names(values: Any) -> list:
    """A NULL-terminated list of C strings."""
    found: list = []
    while values[len(found)] != NULL:
        found.append(text(values[len(found)]))
    return found


def cards(rows: dict) -> str:
    """A small HTML table of names and values."""
    import html

    lines = "".join(
        f"<tr><th style='text-align:left'>{html.escape(str(k))}</th><td>{html.escape(str(v))}</td></tr>"
        for k, v in rows.items()
    )
    return f"<table>{lines}</table>"
