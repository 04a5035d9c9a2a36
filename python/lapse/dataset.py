"""Datasets: events sorted by sequence and time, from any table with the Arrow protocol, or from a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

import numpy as np

from . import _c
from ._c import NULL, Keeper, call, cards, encode, ffi, lib, text
from ._table import Names, Table, Texts, coded_names, is_table, stream_of, typed
from ._values import ArrowTable, Column, Id, Path, fill, fixed_time, integer, members, name_list, path_text

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import Unpack

    from ._options import CheckOptions, FileOptions, ImportOptions

FIELD_TYPES = ("action", "category", "number")
HIDDEN = ("category_count", "number_count", "preferred", "preferred_split", "preferred_unit", "input")


def import_options(keeper: Keeper, given: Dict[str, Any], source: Optional[str] = None) -> Any:
    """Fills lapse_import_options from keyword arguments."""
    given = dict(given)
    given["categories"] = given.pop("fields", None)
    for role in ("time", "event"):
        if given.get(role) is not None:
            given[role] = ",".join(name_list(role, given[role]))
    unknown = next((name for name in given if name not in members("lapse_import_options") or name in HIDDEN), None)
    if unknown is not None:
        raise _c.unknown_option("import", unknown, set(members("lapse_import_options")) - {*HIDDEN, "categories"} | {"fields"})
    options = fill(keeper, "lapse_import_options", given)
    if source is not None:
        options.input = keeper.string(source)
    return options


def report_of(report: Any) -> Dict[str, Any]:
    """The counts of an import, and under "columns" by role: the column, the runner-up, and whether it was given."""
    made = {}
    for name, _ in ffi.typeof("lapse_import_report").fields:
        value = getattr(report, name)
        if name == "columns":
            value = {role: {"column": text(value[i].column), "runner_up": text(value[i].runner_up) or None,
                            "given": value[i].given} for i, role in enumerate(("sequence", "time", "event"))}
        elif name != "first_bad_row" and isinstance(value, ffi.CData):
            value = text(value)
        if name != "first_bad_row":
            made[name] = value
    return made


Events = Union["Dataset", ArrowTable, Path]


class Dataset:
    """Events sorted by sequence and time. Immutable: any number of threads may use one.

    >>> data = lapse.Dataset.from_arrow(frame, sequence="user", time="time", event="item")
    >>> data.sequences, data.events == len(frame)
    (60, True)
    """

    def __init__(self, handle: Any, report: Optional[Dict[str, Any]] = None, kinds: Optional[Dict[str, str]] = None) -> None:
        self._handle = ffi.gc(handle, lib.lapse_dataset_close)
        self._names: Optional[Texts] = None
        self._found, self._kinds = report or {}, kinds or {}

    @property
    def report(self) -> Dict[str, Any]:
        """What the import found: counts of rows, and under "columns" the column of each role."""
        return self._found

    @classmethod
    def from_arrow(cls, table: ArrowTable, sequence: Optional[Column] = None, time: Optional[Column] = None,
                   event: Union[Column, Sequence[Column], None] = None, fields: Union[Column, Sequence[Column]] = (),
                   numbers: Union[Column, Sequence[Column]] = (), action: Optional[Column] = None,
                   split: Optional[Column] = None, **options: "Unpack[ImportOptions]") -> "Dataset":
        """A dataset of a table with the Arrow protocol: of pandas, Polars, PyArrow, DuckDB, Ibis, ...

        Columns that are not given are found by their usual names and the values of the first rows; `report["columns"]`
        says which. `fields` are categories and `numbers` are numeric
        columns of past events. `options` are those of `lapse import`: min_events, session_gap="30m",
        deduplicate="exact", skip_bad_rows=True, ... The table's memory is read in place.

        >>> len(lapse.Dataset.from_arrow(frame, sequence="user", time="time", event=["action", "item"]).event_types)
        16
        """
        columns: Dict[str, Any] = dict(sequence=sequence, time=time, event=event, fields=fields, numbers=numbers, action=action,
                                       split=split)
        if hasattr(table, "to_records") and hasattr(table, "dtypes"):
            return cls._from_pandas(table, columns, options)
        if hasattr(table, "collect_schema") and hasattr(table, "collect"):
            raise _c.UsageError("a LazyFrame has no rows yet: give frame.collect()")
        if not is_table(table):
            raise _c.UsageError(f"a {type(table).__name__} has no Arrow stream (__arrow_c_stream__): give a DataFrame, an Arrow "
                                "table, a lapse.Table of columns, or the path of a file to lapse.read_csv")
        return cls._from_table(table, columns, options)

    @classmethod
    def _from_table(cls, table: Any, columns: Dict[str, Any], options: Any, kinds: Optional[Dict[str, str]] = None,
                    labels: Sequence[str] = ()) -> "Dataset":
        keeper = Keeper()
        given = import_options(keeper, {**columns, **options})
        stream, capsule = stream_of(table)
        labels = labels or _labels(table)
        try:
            data = cls._import(lib.lapse_dataset_from_arrow, stream, given)
        except _c.InputError as error:
            if error.line and 0 < error.column <= len(labels):
                raise _c.InputError(f"row {error.line}, column {labels[error.column - 1]!r}: {error.message}", "", error.line,
                                    error.column, error.option, error.value) from None
            raise
        finally:
            del capsule
        roles = data.report["columns"]
        data._kinds = {role: kinds[roles[role]["column"]] for role in roles if kinds and roles[role]["column"] in kinds}
        return data

    @classmethod
    def from_pandas(cls, frame: "pandas.DataFrame", sequence: Optional[Column] = None, time: Optional[Column] = None,
                    event: Union[Column, Sequence[Column], None] = None, fields: Union[Column, Sequence[Column]] = (),
                    numbers: Union[Column, Sequence[Column]] = (), action: Optional[Column] = None,
                    split: Optional[Column] = None, **options: "Unpack[ImportOptions]") -> "Dataset":
        """A dataset of a pandas DataFrame, with the arguments of `from_arrow`. It needs no PyArrow.

        >>> lapse.Dataset.from_pandas(frame, event="item").events == len(frame)
        True
        """
        return cls._from_pandas(frame, dict(sequence=sequence, time=time, event=event, fields=fields, numbers=numbers,
                                            action=action, split=split), options)

    @classmethod
    def from_polars(cls, frame: "polars.DataFrame", sequence: Optional[str] = None, time: Optional[str] = None,
                    event: Union[str, Sequence[str], None] = None, fields: Union[str, Sequence[str]] = (),
                    numbers: Union[str, Sequence[str]] = (), action: Optional[str] = None,
                    split: Optional[str] = None, **options: "Unpack[ImportOptions]") -> "Dataset":
        """A dataset of a Polars DataFrame, with the arguments of `from_arrow`.

        >>> import polars
        >>> lapse.Dataset.from_polars(polars.from_pandas(frame), event="item").events == len(frame)
        True
        """
        return cls.from_arrow(frame, sequence, time, event, fields, numbers, action, split, **options)

    @classmethod
    def _from_pandas(cls, frame: Any, columns: Dict[str, Any], options: Any) -> "Dataset":
        """pandas: labels that are not texts, UUIDs, an index that is a column, and no PyArrow."""
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()
        labels = [str(label) for label in frame.columns]
        if labels != list(frame.columns):
            frame = frame.set_axis(labels, axis=1)
        kinds, replaced = {}, {}
        for label in labels:
            column = frame[label]
            if str(column.dtype) != "object" or getattr(column, "ndim", 1) != 1:
                continue
            coded = coded_names(column.iloc[:1000].to_numpy())
            if coded.kind == "uuid" or not _has_pyarrow():
                replaced[label] = coded_names(column.to_numpy())
                if replaced[label].kind:
                    kinds[label] = str(replaced[label].kind)
        if not replaced and _has_pyarrow():
            return cls._from_table(frame, columns, options, labels=labels)
        made = Table({label: replaced[label] if label in replaced else _pandas_column(frame[label]) for label in labels})
        return cls._from_table(made, columns, options, kinds, labels)

    @classmethod
    def read_csv(cls, path: Path, sequence: Optional[Column] = None, time: Optional[Column] = None,
                 event: Union[Column, Sequence[Column], None] = None, fields: Union[Column, Sequence[Column]] = (),
                 numbers: Union[Column, Sequence[Column]] = (), action: Optional[Column] = None,
                 split: Optional[Column] = None, **options: "Unpack[FileOptions]") -> "Dataset":
        """A dataset of a CSV, TSV or JSON Lines file, plain or gzip; the options are those of `from_arrow`, and delimiter, header.

        >>> lapse.read_csv("shop.csv", event=["action", "item"]).sequences > 0
        True
        """
        columns: Dict[str, Any] = dict(sequence=sequence, time=time, event=event, fields=fields, numbers=numbers, action=action,
                                       split=split)
        keeper = Keeper()
        return cls._import(lib.lapse_dataset_read, None, import_options(keeper, {**columns, **options}, path_text("path", path)))

    @classmethod
    def _import(cls, function: Any, stream: Any, options: Any) -> "Dataset":
        handle, report = ffi.new("lapse_dataset **"), ffi.new("lapse_import_report *")
        call(function, *([] if stream is None else [stream]), options, handle, report)
        return cls(handle[0], report_of(report))

    @classmethod
    def open(cls, path: Path) -> "Dataset":
        """Opens a dataset file, which is mapped into memory.

        >>> data.save("shop.lapse"); lapse.Dataset.open("shop.lapse").events == data.events
        True
        """
        handle = ffi.new("lapse_dataset **")
        call(lib.lapse_dataset_open, encode(path_text("path", path)), handle)
        return cls(handle[0])

    def save(self, path: Path) -> None:
        """Writes a dataset file, which `lapse` reads too.

        >>> data.save("shop.lapse")
        """
        call(lib.lapse_dataset_save, self._handle, encode(path_text("path", path)))

    @property
    def sequences(self) -> int:
        """The number of sequences."""
        return lib.lapse_dataset_sequence_count(self._handle)

    @property
    def events(self) -> int:
        """The number of events in all sequences."""
        return lib.lapse_dataset_event_count(self._handle)

    @property
    def event_types(self) -> List[Id]:
        """The names of all event types, as what they were at import: texts, integers, ...

        >>> data.event_types[0] in set(frame["action"] + " " + frame["item"])
        True
        """
        return typed(self._texts("event_type").list(), self._kind("event")).tolist()

    def _kind(self, role: str) -> Optional[str]:
        """What the ids of sequences or events were before they became text; None: text."""
        if role not in self._kinds:
            self._kinds[role] = self.properties.get(f"type.{role}", "")
        return self._kinds[role] or None

    def _sequence_column(self, codes: np.ndarray) -> Names:
        """A column of sequences of these numbers."""
        if self._names is None:
            self._names = self._texts("sequence")
        return Names(codes, self._names, self._kind("sequence"))

    def _texts(self, what: str) -> Texts:
        """The names of all sequences or event types."""
        data, offsets = ffi.new("const char **"), ffi.new("const uint64_t **")
        getattr(lib, f"lapse_dataset_{what}_names")(self._handle, data, offsets)
        count = getattr(lib, f"lapse_dataset_{what}_count")(self._handle)
        ends = np.frombuffer(ffi.buffer(offsets[0], 8 * (count + 1)), np.uint64)
        return Texts(bytes(ffi.buffer(data[0], int(ends[-1]))), ends.copy())

    @property
    def fingerprint(self) -> int:
        """A hash of the events: equal datasets have equal ones, whatever they were read from."""
        return lib.lapse_dataset_fingerprint(self._handle)

    @property
    def properties(self) -> Dict[str, str]:
        """What is known of the source and of the events, as texts."""
        return _c.properties(lib.lapse_dataset_property, self._handle)

    @property
    def fields(self) -> Dict[str, str]:
        """The type of each field: action, category or number."""
        field, found = ffi.new("lapse_field *"), {}
        while lib.lapse_dataset_field(self._handle, len(found), field):
            found[text(field.name)] = FIELD_TYPES[field.type]
        return found

    def _column(self, kind: str) -> np.ndarray:
        times, types, count = ffi.new("const double **"), ffi.new("const int32_t **"), ffi.new("int64_t *")
        lib.lapse_dataset_sequence(self._handle, 0, times, types, count)
        pointer, dtype = (times[0], np.float64) if kind == "time" else (types[0], np.int32)
        return _view(pointer, self.events, dtype, self)

    @property
    def times(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """The times of all events in unix seconds, without a copy; read-only."""
        return self._column("time")

    @property
    def types(self) -> "np.ndarray[Any, np.dtype[np.int32]]":
        """The ids of all events' names, without a copy; read-only."""
        return self._column("type")

    @property
    def offsets(self) -> "np.ndarray[Any, np.dtype[np.uint64]]":
        """The first event of each sequence, and the number of events; without a copy."""
        return _view(lib.lapse_dataset_offsets(self._handle), self.sequences + 1, np.uint64, self)

    def sequence_name(self, index: int) -> Id:
        """The name of a sequence, as what it was at import.

        >>> data.sequence_name(0) in set(frame.user)
        True
        """
        return self._name(lib.lapse_dataset_sequence_name, index, "sequence")

    def event_name(self, index: int) -> Id:
        """The name of an event type, as what it was at import.

        >>> data.event_name(data.types[0]) != ""
        True
        """
        return self._name(lib.lapse_dataset_event_type_name, index, "event")

    def _name(self, function: Any, index: int, role: str) -> Id:
        name = text(function(self._handle, integer("index", index)))
        if name is None:
            raise IndexError(index)
        return typed([name], self._kind(role)).tolist()[0]

    def check(self, **options: "Unpack[CheckOptions]") -> Table:
        """Data-quality and leakage checks, as `lapse check` prints them. Options: task, split_by, seed, now.

        >>> set(data.check()["severity"]) <= {"ok", "note", "warning"}
        True
        """
        keeper, check = Keeper(), ffi.new("lapse_check *")
        given: Dict[str, Any] = dict(options)
        if given.get("now") is not None:
            given["now"] = fixed_time("now", given["now"])
        options_ = fill(keeper, "lapse_check_options", given)
        call(lib.lapse_dataset_check, self._handle, options_, check)
        rows = [check.findings[i] for i in range(check.finding_count)]
        return Table({"check": [text(row.name) for row in rows],
                      "severity": [text(lib.lapse_severity_name(row.severity)) for row in rows],
                      "count": [row.count for row in rows], "total": [row.total for row in rows],
                      "finding": [text(row.text) for row in rows], "advice": [text(row.advice) for row in rows]})

    def __repr__(self) -> str:
        types = lib.lapse_dataset_event_type_count(self._handle)
        return f"<lapse.Dataset: {self.events} events in {self.sequences} sequences, {types} event types>"

    def _repr_html_(self) -> str:
        return cards({"dataset": repr(self)[1:-1], **self.properties})


def _view(pointer: Any, count: int, dtype: Any, owner: Any) -> np.ndarray:
    """A read-only NumPy view of C memory, which keeps its owner alive."""
    if pointer == NULL or count == 0:
        return np.empty(0, dtype)
    buffer = ffi.buffer(ffi.gc(pointer, lambda _: owner), count * np.dtype(dtype).itemsize)
    array = np.frombuffer(buffer, dtype)
    array.flags.writeable = False
    return array


def _labels(table: Any) -> List[str]:
    """The names of the columns of a table, for messages; empty if it has them in no usual place."""
    for name in ("column_names", "columns"):
        labels = getattr(table, name, None)
        if labels is not None and not callable(labels):
            return [str(label) for label in labels]
    return []


def _has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _pandas_column(column: Any) -> Any:
    """A column of pandas for a Table, without PyArrow."""
    if hasattr(column, "cat"):
        names = coded_names(column.cat.categories.to_numpy())
        return Names(column.cat.codes.to_numpy(), names.names, names.kind)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    values = column.to_numpy()
    return coded_names(values) if values.dtype == object else values


def dataset_of(data: Any, **options: Any) -> Dataset:
    """A Dataset as it is; a table by from_arrow; a path by its file."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        is_dataset = str(os.fspath(data)).endswith(".lapse")
        return Dataset.open(data) if is_dataset else Dataset.read_csv(data, **options)
    return Dataset.from_arrow(data, **options)


def names_of(function: Any, handle: Any, count: int) -> List[str]:
    """The names 0 .. count - 1."""
    return [ffi.string(function(handle, i)).decode() for i in range(count)]
