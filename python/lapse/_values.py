"""Arguments of Python as values for C, with our sentences for those that do not fit: nothing of cffi shows."""

from __future__ import annotations

import datetime
import math
import os
import time as clock
import uuid
from typing import Any, Dict, Iterable, List, Optional, Protocol, Sequence, Tuple, Union

import numpy as np

from . import _c
from ._c import Keeper, UsageError, call, encode, ffi, lib


class ArrowTable(Protocol):
    """A table with the Arrow protocol: of pandas, Polars, PyArrow, DuckDB, Ibis, or a lapse.Table."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The PyCapsule of an Arrow stream."""


Path = Union[str, "os.PathLike[str]"]
Id = Union[str, int, float, uuid.UUID, datetime.date, np.generic]
Column = Union[str, int]
Time = Union[float, int, str, datetime.date, datetime.timedelta, np.generic]
Times = Union[Time, Sequence[Time], "np.ndarray[Any, Any]"]
Duration = Union[float, int, str, datetime.timedelta, np.generic]


def refused(name: str, takes: str, value: object) -> UsageError:
    """The error of a value that an argument cannot have."""
    shown = repr(value) if len(repr(value)) <= 60 else f"a {type(value).__name__}"
    return UsageError(f"{name} takes {takes}, not {shown}", option=name, value=shown)


def flag(name: str, value: object) -> bool:
    """True or False."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise refused(name, "True or False", value)


def integer(name: str, value: object) -> int:
    """A whole number: of Python or NumPy, or its text."""
    try:
        if isinstance(value, (str, float, np.floating)):
            number = int(value) if isinstance(value, str) else int(value) if float(value).is_integer() else None
        else:
            number = None if isinstance(value, (bool, np.bool_)) else value.__index__()  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError, OverflowError):
        number = None
    if number is None or not -2**63 <= number < 2**64:
        raise refused(name, "a whole number", value)
    return number


def number(name: str, value: object) -> float:
    """A number: of Python or NumPy, or its text."""
    if isinstance(value, (int, float, np.number, np.bool_)) or isinstance(value, str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise refused(name, "a number", value)


def duration(name: str, value: object) -> float:
    """A duration in seconds: a number, its text, a text with a unit such as "15m", a timedelta of Python, pandas or NumPy."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return _parsed(name, lib.lapse_duration_parse, value)
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, np.timedelta64):
        seconds = float(value / np.timedelta64(1, "s"))
    else:
        return number(name, value) if not isinstance(value, (bool, np.bool_)) else _no_duration(name, value)
    return seconds if math.isfinite(seconds) else _no_duration(name, value)


def _parsed(name: str, function: Any, value: str) -> float:
    """A text as the library reads it."""
    out = ffi.new("double *")
    try:
        call(function, encode(value), out)
    except _c.LapseError as error:
        raise UsageError(f"{name}: {error.message}", option=name, value=value) from None
    return float(out[0])


def _no_duration(name: str, value: object) -> float:
    raise refused(name, 'a duration such as "7d", a timedelta or seconds', value)


def moment(name: str, value: object) -> Tuple[bool, float]:
    """A time: whether it is relative to the last event ("+1h", a timedelta), and its seconds; otherwise unix seconds, of a
    number, its text, ISO 8601, "now", or a datetime of Python, pandas or NumPy. One without a zone is UTC."""
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and value.startswith("+"):
        return True, duration(name, value[1:])
    elif isinstance(value, (datetime.timedelta, np.timedelta64)):
        return True, duration(name, value)
    elif isinstance(value, str):
        if value == "now":
            return False, clock.time()
        seconds = _parsed(name, lib.lapse_time_parse, value)
    elif isinstance(value, datetime.datetime):
        seconds = (value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)).timestamp()
    elif isinstance(value, datetime.date):
        seconds = float(datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.timezone.utc).timestamp())
    elif isinstance(value, np.datetime64):
        seconds = float("nan") if np.isnat(value) else float((value - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    elif isinstance(value, np.number):
        seconds = float(value)
    else:
        raise refused(name, 'a time ("+1h", "now", ISO 8601, a datetime, a timedelta or unix seconds)', value)
    if not math.isfinite(seconds):
        raise refused(name, "a time that is finite", value)
    return False, seconds


def fixed_time(name: str, value: Optional[object]) -> float:
    """A time that does not depend on a history, in unix seconds; NaN for None."""
    if value is None:
        return math.nan
    relative, seconds = moment(name, value)
    if relative:
        raise UsageError(f"{name} is one time for all histories, and {value!r} depends on the last event of each", option=name)
    return seconds


def time_list(name: str, value: object) -> List[Any]:
    """One time or several, as a list."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return [value]
    return list(value)


def id_text(name: str, value: object) -> str:
    """An id as the text by which the library knows it: as an import of a column of this type makes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (datetime.date, np.datetime64)):
        out = ffi.new("char[64]")
        return _c.text(lib.lapse_time_format(moment(name, value)[1], out, 64)) or ""
    raise refused(name, "a text or another id", value)


def path_text(name: str, value: object) -> str:
    """A path."""
    if not isinstance(value, (str, os.PathLike)):
        raise refused(name, "a path", value)
    return str(os.fspath(value))


def name_list(name: str, value: object) -> List[str]:
    """Names of columns or sequences: one, or several."""
    if value is None:
        return []
    if isinstance(value, (str, int)):
        return [id_text(name, value)]
    if not isinstance(value, Iterable):
        raise refused(name, "a list of names", value)
    return [id_text(name, part) for part in value]


def option_text(name: str, value: object) -> str:
    """The value of a training option as text."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        return repr(duration(name, value))
    if isinstance(value, (str, int, np.integer)):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise refused(name, "a path of a file that Vectors.save wrote" if name == "item_vectors" else "a text or a number", value)


def members(struct: str) -> Dict[str, str]:
    """The members of a struct of options, and the C type of each."""
    return {name: member.type.cname for name, member in ffi.typeof(struct).fields}


# Members of structs that are lists, and the member that counts them.
LISTS = {"categories": "category_count", "numbers": "number_count", "sequences": "sequence_count"}


def fill(keeper: Keeper, struct: str, given: Dict[str, Any], hidden: Sequence[str] = ()) -> Any:
    """A struct of options with its defaults, and what is given by the names of its members; None leaves a default."""
    options = ffi.new(struct + " *")
    getattr(lib, struct + "_default")(options)
    known = members(struct)
    lists = [name for name, count in LISTS.items() if count in known]
    offered = set(known) - {LISTS[name] for name in lists} - set(hidden)
    for name, value in given.items():
        if name not in offered:
            raise _c.unknown_option(struct.split("_")[1], name, offered)
        if value is None:
            continue
        if name in lists:
            names = name_list(name, value)
            setattr(options, name, keeper.strings(names))
            setattr(options, LISTS[name], len(names))
        elif known[name] in ("char *", "char const *"):
            setattr(options, name, keeper.string(str(os.fspath(value)) if isinstance(value, os.PathLike) else id_text(name, value)))
        elif known[name] in ("_Bool", "bool"):
            setattr(options, name, flag(name, value))
        elif known[name] == "double":
            setattr(options, name, duration(name, value))
        else:
            set_integer(options, name, value)
    return options


def set_integer(struct: Any, name: str, value: object) -> None:
    """Sets an integer member, whose range C has."""
    whole = integer(name, value)
    try:
        setattr(struct, name, whole)
    except OverflowError:
        raise refused(name, "a smaller number", value) from None
