"""Results as tables: columns in NumPy, and the Arrow PyCapsule protocol, without a dependency on PyArrow."""

from __future__ import annotations

import ctypes
import datetime
import html
import itertools
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._c import NULL, UsageError, ffi

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

STREAM = b"arrow_array_stream"


class Texts:
    """Many texts as UTF-8, one after the other: text i is data[offsets[i] : offsets[i + 1]] without the NUL at its end."""

    def __init__(self, data: bytes, offsets: np.ndarray) -> None:
        self.data, self.offsets = data, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        return self.data[int(self.offsets[index]) : int(self.offsets[index + 1]) - 1].decode()

    def list(self) -> List[str]:
        return self.data.decode().split("\0")[:-1]


def _integers(texts: List[str]) -> np.ndarray:
    numbers = np.array(texts)
    for kind in (np.int64, np.uint64):
        try:
            return numbers.astype(kind)
        except (OverflowError, ValueError):
            pass
    return np.array(list(map(int, texts)), dtype=object)


# What ids were before they became text, by the name in the property `type.event`: the values of texts.
_TYPES: Dict[str, Callable[[List[str]], np.ndarray]] = {
    "integer": _integers,
    "float": lambda texts: np.array(texts).astype(np.float64),
    "boolean": lambda texts: np.array(texts) == "true",
    "date": lambda texts: np.array(texts, dtype="U10").astype("datetime64[D]"),
    "timestamp": lambda texts: np.char.rstrip(np.array(texts), "Z").astype("datetime64[us]"),
    "uuid": lambda texts: np.array(list(map(uuid.UUID, texts)), dtype=object),
}


def typed(texts: Sequence[str], kind: Optional[str]) -> np.ndarray:
    """Ids as what they were: integers, UUIDs, ...; texts where that is not possible, as of sessions, "7/1"."""
    texts = list(texts)
    if kind in _TYPES and texts:
        try:
            return _TYPES[kind](texts)
        except (ValueError, OverflowError):
            pass
    return np.array(texts, dtype=object)


class Names:
    """A column of ids: codes[i] is the index of id i in names, which are texts; `kind` is what they were before."""

    def __init__(self, codes: np.ndarray, names: Union[Sequence[str], Texts], kind: Optional[str] = None) -> None:
        self.codes, self.kind = np.ascontiguousarray(codes, dtype=np.int32), kind if kind in _TYPES else None
        self._names, self._values = names, None  # type: Any

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def names(self) -> List[str]:
        if isinstance(self._names, Texts):
            self._names = self._names.list()
        return self._names  # type: ignore[no-any-return]

    def values(self, codes: Optional[np.ndarray] = None) -> np.ndarray:
        """The ids as what they were; with codes, of these only, without reading all names."""
        if codes is not None and self._values is None:
            return typed([self._names[code] for code in codes], self.kind)
        if self._values is None:
            self._values = typed(self.names, self.kind)
        return self._values[self.codes if codes is None else codes]  # type: ignore[no-any-return]


class Times:
    """A column of times in unix seconds, which Arrow sees as timestamps in UTC with microseconds.

    Times that are not finite, or 280,000 years away, are missing: NaT in NumPy and pandas, null in Arrow.
    """

    def __init__(self, seconds: np.ndarray) -> None:
        self.seconds = np.asarray(seconds, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.seconds)

    def known(self) -> np.ndarray:
        return np.abs(self.seconds) < 9e12

    def micro(self) -> np.ndarray:
        known = self.known()
        micro = np.rint(np.where(known, self.seconds, 0) * 1e6).astype(np.int64)
        return np.where(known, micro, np.iinfo(np.int64).min)  # NaT


Column = Union[np.ndarray, Names, Times]
Cell = Union[str, int, float, bool, datetime.date, datetime.datetime, uuid.UUID, None]


class Table:
    """A table of results. pandas, Polars, PyArrow and DuckDB read it through the Arrow protocol; iteration gives its rows.

    >>> table = lapse.Table({"lag": [1.0, 2.0], "kernel": [0.5, 0.25]})
    >>> table.column_names, len(table), table["kernel"].tolist()
    (['lag', 'kernel'], 2, [0.5, 0.25])
    >>> [row["lag"] for row in table]
    [1.0, 2.0]
    """

    def __init__(self, columns: "Mapping[str, object]") -> None:
        self._columns: Dict[str, Column] = {
            str(name): column if isinstance(column, (Names, Times)) else np.asarray(column)
            for name, column in columns.items()
        }
        if len({len(column) for column in self._columns.values()}) > 1:
            raise UsageError("the columns of a table need the same length: " + ", ".join(
                f"{name} has {len(column)}" for name, column in self._columns.items()))

    @property
    def column_names(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            raise KeyError(f"there is no column {name!r}: the columns are {', '.join(self._columns)}")
        return self._columns[name]

    def __getitem__(self, name: str) -> "np.ndarray[Any, Any]":
        """A column as a NumPy array: ids as what they were at import, texts as objects, times as datetime64[us] in UTC."""
        return _head(self._column(name), None)

    def __iter__(self) -> "Iterator[Dict[str, Cell]]":
        """The rows, as dicts."""
        columns = [_python(column, None) for column in self._columns.values()]
        return (dict(zip(self._columns, row)) for row in zip(*columns))

    def to_dict(self) -> "Dict[str, List[Union[str, int, float, bool, None]]]":
        """The columns as lists that JSON takes: times as ISO 8601, None where a number is not finite or a time is missing.

        >>> lapse.Table({"kernel": [0.5, float("nan")]}).to_dict()
        {'kernel': [0.5, None]}
        """
        return {name: [_json(value) for value in _python(column, None)] for name, column in self._columns.items()}

    def to_pandas(self) -> "pandas.DataFrame":
        """The table as a pandas DataFrame. Times have the zone UTC."""
        import pandas

        frame = pandas.DataFrame({name: self[name] for name in self._columns})
        for name, column in self._columns.items():
            if isinstance(column, Times):
                frame[name] = frame[name].dt.tz_localize("UTC")
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """The table as a Polars DataFrame."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> "pyarrow.Table":
        """The table as a PyArrow table."""
        import pyarrow

        return pyarrow.table(self)

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The Arrow PyCapsule protocol: a stream of one array. The schema is always that of the table."""
        return _new_stream(self._columns, len(self))

    def _shown(self) -> List[List[str]]:
        columns = [[_short(value) for value in _python(column, 10)] for column in self._columns.values()]
        return [list(row) for row in zip(*columns)]

    def __repr__(self) -> str:
        rows = [self.column_names, *self._shown()]
        widths = [max(len(row[c]) for row in rows) for c in range(len(self._columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines + ([f"... {len(self)} rows"] if len(self) >= len(rows) else []))

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        shown = self._shown()
        body = "".join(row(cells, "td") for cells in shown)
        note = f"<p>{len(self)} rows</p>" if len(self) > len(shown) else ""
        return f"<table>{row(self.column_names, 'th')}{body}</table>{note}"


def _head(column: Column, count: Optional[int]) -> np.ndarray:
    """The first values of a column (None: all) as a NumPy array."""
    if isinstance(column, Names):
        return column.values() if count is None else column.values(column.codes[:count])
    if isinstance(column, Times):
        return Times(column.seconds[:count]).micro().view("datetime64[us]")
    return column[:count]


def _python(column: Column, count: Optional[int]) -> List[Any]:
    """The first values of a column as objects of Python; times are aware datetimes, or None."""
    values: List[Any] = _head(column, count).tolist()
    if isinstance(column, Times):
        return [value.replace(tzinfo=datetime.timezone.utc) if isinstance(value, datetime.datetime) else None for value in values]
    return values


def _short(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _json(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value if isinstance(value, (str, int, bool)) or value is None else str(value)


def is_table(value: Any) -> bool:
    """Whether a value has the Arrow stream protocol."""
    return hasattr(value, "__arrow_c_stream__")


def stream_of(table: Any) -> Tuple[Any, Any]:
    """The Arrow stream of a table, and the capsule that owns it."""
    try:
        capsule = table.__arrow_c_stream__()
    except ImportError:
        raise
    except Exception as error:  # of PyArrow, for what it cannot convert
        raise UsageError(f"this {type(table).__name__} cannot be read as Arrow: {error}") from error
    return ffi.cast("struct ArrowArrayStream *", _capsule_pointer(capsule, STREAM)), capsule


# ------------------------------------------------------------------------------------------------------ export ----
# A consumer owns what it was given until it calls release, and may move it: copy the struct and mark the original as
# released. So what a struct points to is kept here, by the address in its private_data, until its release is called.

_ALIVE: Dict[int, Any] = {}


def _address(pointer: Any) -> int:
    return int(ffi.cast("intptr_t", pointer))


def _own(struct: Any, release: Any, *kept: Any) -> Any:
    key = ffi.new("char *")
    struct.private_data, struct.release = key, release
    _ALIVE[_address(key)] = (key, struct, kept)
    return struct


def _release(struct: Any) -> None:
    """Releases a schema or array with those of its parts that were not moved."""
    parts = [struct.children[i] for i in range(struct.n_children)]
    if struct.dictionary != NULL:
        parts.append(struct.dictionary)
    for part in parts:
        if part.release != NULL:
            part.release(part)
    struct.release = NULL
    _ALIVE.pop(_address(struct.private_data), None)


_release_schema = ffi.callback("void(struct ArrowSchema *)", _release)
_release_array = ffi.callback("void(struct ArrowArray *)", _release)


@ffi.callback("int(struct ArrowArrayStream *, struct ArrowSchema *)", error=5)
def _get_schema(stream: Any, out: Any) -> int:
    _fill_schema(out, _ALIVE[_address(stream.private_data)].parts)
    return 0


@ffi.callback("int(struct ArrowArrayStream *, struct ArrowArray *)", error=5)
def _get_next(stream: Any, out: Any) -> int:
    state = _ALIVE[_address(stream.private_data)]
    out.release = NULL
    if not state.done:
        _fill_array(out, state.parts, state.rows)
    state.done = True
    return 0


@ffi.callback("const char *(struct ArrowArrayStream *)")
def _get_last_error(stream: Any) -> Any:
    return NULL


@ffi.callback("void(struct ArrowArrayStream *)")
def _release_stream(stream: Any) -> None:
    _ALIVE.pop(_address(stream.private_data), None)
    stream.release = NULL


_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _free_stream(capsule: int) -> None:
    """The destructor of a capsule: releases the stream, unless a consumer moved it out."""
    struct = _ALIVE.pop(_pointer_of(capsule, STREAM), None)
    if struct is not None and struct.release != NULL:
        struct.release(struct)


class _State:
    """What an exported stream still has to give."""

    def __init__(self, columns: Dict[str, Column], rows: int) -> None:
        self.parts = [(name, *_part(column)) for name, column in columns.items()]
        self.rows, self.done = rows, False


def _new_stream(columns: Dict[str, Column], rows: int) -> Any:
    struct, key = ffi.new("struct ArrowArrayStream *"), ffi.new("char *")
    state = _State(columns, rows)
    state.key = key
    struct.get_schema, struct.get_next = _get_schema, _get_next
    struct.get_last_error, struct.release, struct.private_data = _get_last_error, _release_stream, key
    _ALIVE[_address(key)], _ALIVE[_address(struct)] = state, struct
    return _new_capsule(_address(struct), STREAM, ctypes.cast(_free_stream, ctypes.c_void_p))


# The format and the buffers of a column, the first of which is the bitmap of values that are not missing (None: all), and the
# buffers of its dictionary.
Part = Tuple[bytes, List[Optional[np.ndarray]], List[Optional[np.ndarray]]]

_FORMATS = {"f8": b"g", "f4": b"f", "i8": b"l", "i4": b"i", "u8": b"L", "u4": b"I"}


def _part(column: Column) -> Part:
    if isinstance(column, Names):
        missing = column.codes < 0
        valid = np.packbits(~missing, bitorder="little") if missing.any() else None
        if column.kind and valid is None and column.values().dtype != object:
            return _part(column.values())
        if isinstance(column._names, Texts):
            data, ends = column._names.data, column._names.offsets.astype(np.int64)
            # Arrow has no NUL after a text, so each one is a byte shorter.
            offsets = ends - np.arange(len(ends))
            return b"i", [valid, column.codes], [None, offsets, np.frombuffer(data.replace(b"\0", b"") + b"\0", dtype=np.uint8)]
        coded = list(map(str.encode, column.names))
        offsets = np.zeros(len(coded) + 1, dtype=np.int64)
        np.cumsum(list(map(len, coded)), out=offsets[1:])
        return b"i", [valid, column.codes], [None, offsets, np.frombuffer(b"".join(coded) + b"\0", dtype=np.uint8)]
    if isinstance(column, Times):
        known = column.known()
        return b"tsu:UTC", [None if known.all() else np.packbits(known, bitorder="little"), column.micro()], []
    if column.dtype == bool:
        return b"b", [None, np.packbits(column, bitorder="little")], []
    if column.dtype.kind == "M":
        return _part(Times((column - np.datetime64(0, "s")) / np.timedelta64(1, "s")))
    if column.dtype.kind in "OU":
        return _part(coded_names(column))
    values = np.ascontiguousarray(column)
    values = values if values.dtype.str[1:] in _FORMATS else values.astype(np.int32 if values.dtype.kind in "iu" else np.float64)
    return _FORMATS[values.dtype.str[1:]], [None, values], []


def coded_names(column: np.ndarray) -> Names:
    """A column of texts and other objects as texts and their codes; None and NaN are missing."""
    values = column.tolist()
    known = [value for value in dict.fromkeys(values) if value is not None and str(value == value) == "True"]  # nor pandas.NA
    code = dict(zip(known, range(len(known))))
    codes = np.fromiter(map(code.get, values, itertools.repeat(-1)), np.int32, len(values))
    kinds = {type(value) for value in known}
    kind = "uuid" if kinds == {uuid.UUID} else "integer" if kinds == {int} else None
    return Names(codes, list(map(str, known)), kind)


def _schema(out: Any, format: bytes, name: str, *kept: Any) -> Any:
    texts = ffi.new("char[]", format), ffi.new("char[]", name.encode())
    out.format, out.name, out.flags = texts[0], texts[1], 2  # 2: nullable
    return _own(out, _release_schema, texts, *kept)


def _fill_schema(out: Any, parts: Any) -> None:
    children = []
    for name, format, _, terms in parts:
        child = _schema(ffi.new("struct ArrowSchema *"), format, name)
        if terms:
            child.dictionary = _schema(ffi.new("struct ArrowSchema *"), b"U", "")
        children.append(child)
    pointers = ffi.new("struct ArrowSchema *[]", children or 1)
    out.n_children, out.children, out.dictionary, out.metadata = len(children), pointers, NULL, NULL
    _schema(out, b"+s", "", pointers, children)


def _array(length: int, values: List[Optional[np.ndarray]]) -> Any:
    array = ffi.new("struct ArrowArray *")
    views = [ffi.from_buffer(value) if value is not None and value.nbytes else NULL for value in values]
    buffers = ffi.new("void *[]", views)
    array.length, array.n_buffers, array.buffers = length, len(views), buffers
    array.null_count = 0 if values[0] is None else -1  # -1: not counted
    return _own(array, _release_array, buffers, views, values)


def _fill_array(out: Any, parts: Any, rows: int) -> None:
    children = []
    for _, _, values, terms in parts:
        child = _array(rows, values)
        if terms:
            child.dictionary = _array(len(terms[1]) - 1, terms)
        children.append(child)
    pointers, buffers = ffi.new("struct ArrowArray *[]", children or 1), ffi.new("void *[]", [NULL])
    out.length, out.null_count, out.offset, out.n_buffers, out.n_children = rows, 0, 0, 1, len(children)
    out.buffers, out.children, out.dictionary = buffers, pointers, NULL
    _own(out, _release_array, pointers, buffers, children)
