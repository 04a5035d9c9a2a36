"""Datasets: events sorted by sequence and time, from any table with the Arrow protocol, or from a file."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from . import _c
from ._c import NULL, Keeper, call, cards, encode, ffi, lib, text
from ._table import Table, is_table, stream_of

FIELD_TYPES = ("action", "category", "number")

# Options of an import by name, as in lapse_import_options; --time-unit is time_unit.
IMPORT_OPTIONS = ("time_unit", "timezone", "delimiter", "header", "skip_bad_rows", "min_events", "min_count", "min_rounds",
                  "min_sequence_events", "min_users", "session_gap", "deduplicate", "encoding", "basket", "threads")


def import_options(keeper: Keeper, given: Dict[str, Any]) -> Any:
    """Fills lapse_import_options from keyword arguments."""
    options = ffi.new("lapse_import_options *")
    lib.lapse_import_options_default(options)
    members = {name for name, _ in ffi.typeof("lapse_import_options").fields} - {
        "categories", "category_count", "number_count"}
    fields, numbers = given.pop("fields", None) or (), given.pop("numbers", None) or ()
    event = given.get("event")
    if event is not None and not isinstance(event, str):
        given["event"] = ",".join(event)
    options.categories, options.category_count = keeper.strings(fields), len(fields)
    options.numbers, options.number_count = keeper.strings(numbers), len(numbers)
    for name, value in given.items():
        if name not in members:
            raise _c.unknown_option("import", name, (members | {"fields"}) - {"input"})
        if value is None:
            continue
        if name == "session_gap":
            value = _c.duration(value)
        setattr(options, name, keeper.string(value) if isinstance(value, (str, os.PathLike)) else value)
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


class Dataset:
    """Events sorted by sequence and time. Immutable: any number of threads may use one.

    >>> data = lapse.Dataset.from_arrow(frame, sequence="user", time="time", event="item")
    >>> data.sequences, data.events == len(frame)
    (60, True)
    """

    def __init__(self, handle: Any, report: Optional[Dict[str, Any]] = None) -> None:
        self._handle = ffi.gc(handle, lib.lapse_dataset_close)
        self.report = report or {}

    @classmethod
    def from_arrow(cls, table: Any, sequence: Optional[str] = None, time: Optional[str] = None,
                   event: Union[str, Sequence[str], None] = None, fields: Sequence[str] = (),
                   numbers: Sequence[str] = (), action: Optional[str] = None, split: Optional[str] = None,
                   **options: Any) -> "Dataset":
        """A dataset of a table with the Arrow protocol: of pandas, Polars, PyArrow, DuckDB, Ibis, ...

        Columns that are not given are found by their usual names and the values of the first rows; `report["columns"]`
        says which. `fields` are categories and `numbers` are numeric
        columns of past events. `options` are those of `lapse import`: min_events, session_gap="30m",
        deduplicate="exact", skip_bad_rows=True, ... The table's memory is read in place.

        >>> lapse.Dataset.from_arrow(frame, sequence="user", time="time", event=["action", "item"]).event_types
        16
        """
        if not is_table(table):
            raise _c.UsageError(f"a {type(table).__name__} has no Arrow stream (__arrow_c_stream__): give a DataFrame or "
                                "an Arrow table; pandas needs PyArrow for it")
        stream, capsule = stream_of(table)
        data = cls._import(lib.lapse_dataset_from_arrow, stream, sequence=sequence, time=time, event=event,
                           fields=fields, numbers=numbers, action=action, split=split, **options)
        del capsule
        return data

    @classmethod
    def read_csv(cls, path: Union[str, os.PathLike], **options: Any) -> "Dataset":
        """A dataset of a CSV, TSV or JSON Lines file, plain or gzip; the options are those of `from_arrow`, and delimiter, header.

        >>> lapse.read_csv("shop.csv", event=["action", "item"]).sequences > 0
        True
        """
        return cls._import(lib.lapse_dataset_read, None, input=os.fspath(path), **options)

    @classmethod
    def _import(cls, function: Any, stream: Any, **given: Any) -> "Dataset":
        keeper = Keeper()
        options = import_options(keeper, given)
        handle, report = ffi.new("lapse_dataset **"), ffi.new("lapse_import_report *")
        call(function, *([] if stream is None else [stream]), options, handle, report)
        return cls(handle[0], report_of(report))

    @classmethod
    def open(cls, path: Union[str, os.PathLike]) -> "Dataset":
        """Opens a dataset file, which is mapped into memory.

        >>> data.save("shop.lapse"); lapse.Dataset.open("shop.lapse").events == data.events
        True
        """
        handle = ffi.new("lapse_dataset **")
        call(lib.lapse_dataset_open, encode(path), handle)
        return cls(handle[0])

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes a dataset file, which `lapse` reads too.

        >>> data.save("shop.lapse")
        """
        call(lib.lapse_dataset_save, self._handle, encode(path))

    @property
    def sequences(self) -> int:
        """The number of sequences."""
        return lib.lapse_dataset_sequence_count(self._handle)

    @property
    def events(self) -> int:
        """The number of events in all sequences."""
        return lib.lapse_dataset_event_count(self._handle)

    @property
    def event_types(self) -> int:
        """The number of distinct event names."""
        return lib.lapse_dataset_event_type_count(self._handle)

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
    def times(self) -> np.ndarray:
        """The times of all events in unix seconds, without a copy; read-only."""
        return self._column("time")

    @property
    def types(self) -> np.ndarray:
        """The ids of all events' names, without a copy; read-only."""
        return self._column("type")

    @property
    def offsets(self) -> np.ndarray:
        """The first event of each sequence, and the number of events; without a copy."""
        return _view(lib.lapse_dataset_offsets(self._handle), self.sequences + 1, np.uint64, self)

    def sequence_name(self, index: int) -> str:
        """The name of a sequence.

        >>> data.sequence_name(0) in set(frame.user.astype(str))
        True
        """
        name = text(lib.lapse_dataset_sequence_name(self._handle, index))
        if name is None:
            raise IndexError(index)
        return name

    def event_name(self, index: int) -> str:
        """The name of an event type.

        >>> data.event_name(data.types[0]) != ""
        True
        """
        name = text(lib.lapse_dataset_event_type_name(self._handle, index))
        if name is None:
            raise IndexError(index)
        return name

    def check(self, task: Optional[str] = None, split_by: Optional[str] = None, seed: Optional[int] = None) -> Table:
        """Data-quality and leakage checks, as `lapse check` prints them.

        >>> set(data.check()["severity"]) <= {"ok", "note", "warning"}
        True
        """
        keeper, options, check = Keeper(), ffi.new("lapse_check_options *"), ffi.new("lapse_check *")
        lib.lapse_check_options_default(options)
        for name, value in (("task", task), ("split_by", split_by), ("seed", seed)):
            if value is not None:
                setattr(options, name, keeper.string(value) if isinstance(value, str) else value)
        call(lib.lapse_dataset_check, self._handle, options, check)
        rows = [check.findings[i] for i in range(check.finding_count)]
        return Table({"check": [text(row.name) for row in rows],
                      "severity": [text(lib.lapse_severity_name(row.severity)) for row in rows],
                      "count": [row.count for row in rows], "total": [row.total for row in rows],
                      "finding": [text(row.text) for row in rows], "advice": [text(row.advice) for row in rows]})

    def __repr__(self) -> str:
        return f"<lapse.Dataset: {self.events} events in {self.sequences} sequences, {self.event_types} event types>"

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


def dataset_of(data: Any, **options: Any) -> Dataset:
    """A Dataset as it is; a table by from_arrow; a path by its file."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (str, os.PathLike)):
        is_dataset = os.fspath(data).endswith(".lapse")
        return Dataset.open(data) if is_dataset else Dataset.read_csv(data, **options)
    return Dataset.from_arrow(data, **options)


def names_of(function: Any, handle: Any, count: int) -> List[str]:
    """The names 0 .. count - 1."""
    return [ffi.string(function(handle, i)).decode() for i in range(count)]
