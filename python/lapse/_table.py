"""Results as tables: columns in NumPy, and the Arrow PyCapsule protocol, without a dependency on PyArrow."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from ._c import NULL, ffi

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

STREAM = b"arrow_array_stream"


class Names:
    """A column of texts: codes[i] is the index of text i in names."""

    def __init__(self, codes: np.ndarray, names: List[str]) -> None:
        self.codes, self.names = np.ascontiguousarray(codes, dtype=np.int32), names

    def __len__(self) -> int:
        return len(self.codes)


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


class Table:
    """A table of results. pandas, Polars, PyArrow and DuckDB read it through the Arrow protocol.

    >>> table = lapse.Table({"lag": [1.0, 2.0], "kernel": [0.5, 0.25]})
    >>> table.column_names, len(table), table["kernel"].tolist()
    (['lag', 'kernel'], 2, [0.5, 0.25])
    """

    def __init__(self, columns: Dict[str, Any]) -> None:
        self._columns: Dict[str, Column] = {
            name: column if isinstance(column, (Names, Times)) else np.asarray(column)
            for name, column in columns.items()
        }

    @property
    def column_names(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def __getitem__(self, name: str) -> np.ndarray:
        """A column as a NumPy array: texts as objects, times as datetime64[us] in UTC."""
        column = self._columns[name]
        if isinstance(column, Names):
            return np.array(column.names, dtype=object)[column.codes]
        return column.micro().view("datetime64[us]") if isinstance(column, Times) else column

    def to_dict(self) -> Dict[str, list]:
        """The columns as lists."""
        return {name: self[name].tolist() for name in self._columns}

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame. Times have the zone UTC."""
        import pandas

        frame = pandas.DataFrame({name: self[name] for name in self._columns})
        for name, column in self._columns.items():
            if isinstance(column, Times):
                frame[name] = frame[name].dt.tz_localize("UTC")
        return frame

    def to_polars(self) -> Any:
        """The table as a Polars DataFrame."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> Any:
        """The table as a PyArrow table."""
        import pyarrow

        return pyarrow.table(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule protocol: a stream of one array. The schema is always that of the table."""
        return _new_stream(self._columns, len(self))

    def __repr__(self) -> str:
        shown = min(len(self), 10)
        rows = [self.column_names] + [
            [_short(self[name][i]) for name in self._columns] for i in range(shown)
        ]
        widths = [max(len(str(row[c])) for row in rows) for c in range(len(self._columns))]
        lines = ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines + ([f"... {len(self)} rows"] if len(self) > shown else []))

    def _repr_html_(self) -> str:
        import html

        def row(cells: Any, tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

        shown = min(len(self), 10)
        body = "".join(row([_short(self[name][i]) for name in self._columns], "td") for i in range(shown))
        note = f"<p>{len(self)} rows</p>" if len(self) > shown else ""
        return f"<table>{row(self.column_names, 'th')}{body}</table>{note}"


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else value


def is_table(value: Any) -> bool:
    """Whether a value has the Arrow stream protocol."""
    return hasattr(value, "__arrow_c_stream__")


def stream_of(table: Any) -> Tuple[Any, Any]:
    """The Arrow stream of a table, and the capsule that owns it."""
    capsule = table.__arrow_c_stream__()
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
        coded = [name.encode("utf-8") for name in column.names]
        offsets = np.zeros(len(coded) + 1, dtype=np.int64)
        np.cumsum([len(name) for name in coded], out=offsets[1:])
        return b"i", [None, column.codes], [None, offsets, np.frombuffer(b"".join(coded) + b"\0", dtype=np.uint8)]
    if isinstance(column, Times):
        known = column.known()
        return b"tsu:UTC", [None if known.all() else np.packbits(known, bitorder="little"), column.micro()], []
    if column.dtype == bool:
        return b"b", [None, np.packbits(column, bitorder="little")], []
    if column.dtype.kind in "OU":
        names, codes = np.unique(column.astype(str), return_inverse=True)
        return _part(Names(codes, [str(name) for name in names]))
    values = np.ascontiguousarray(column)
    return _FORMATS[values.dtype.str[1:]], [None, values], []


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
