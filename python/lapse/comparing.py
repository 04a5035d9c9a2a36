"""Comparison of models in one table, and the search of training options."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _c
from ._c import NULL, call, encode, ffi, lib, text
from ._table import Table
from ._values import Duration, Path, fill, integer, path_text
from .dataset import Events, dataset_of
from .model import Model, changes_of
from .training import check_option, set_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import CompareOptions, TrainOptions

Progress = Dict[str, Union[int, float, str, None]]
Value = Union[str, int, float, bool, None]
Names = Union[str, Sequence[str], None]


class _Bar:
    """A line on standard error that is redrawn, and stopping by Ctrl-C or an error of a callback."""

    def __init__(self, show: bool) -> None:
        self.show = show and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self.drawn, self.error, self.interrupted = 0.0, None, False  # type: Any

    def step(self, line: Callable[[], str], on_progress: Optional[Callable[[], Any]] = None) -> bool:
        try:
            if on_progress is not None and on_progress() is False:
                self.interrupted = True
            if self.show and time.monotonic() - self.drawn > 0.2:
                self.drawn = time.monotonic()
                print("\r" + line()[:118].ljust(118), end="", file=sys.stderr, flush=True)
            return not self.interrupted
        except KeyboardInterrupt:
            self.interrupted = True
        except BaseException as error:  # re-raised when the C call has returned
            self.error = error
        return False

    def stop(self, kind: Any, error: Any, trace: Any) -> None:
        """An interrupt outside of step."""
        if not isinstance(error, KeyboardInterrupt):
            self.error = error
        self.interrupted = True

    def end(self) -> None:
        if self.drawn:
            print(file=sys.stderr)
        if self.error is not None:
            raise self.error


def _spread(value: Any) -> tuple:
    return value.mean, value.std


class Comparison:
    """The table of `compare`. `rows` has one row for each model and encoding, `cells` all cells of the grid, `runs` every
    training run of the rows.

    >>> c = lapse.compare(data, models=["markov", "majority"], seeds=2, progress=False)
    >>> c.rows["model"].tolist(), c.best
    (['markov', 'majority'], 'markov')
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        info = lib.lapse_sweep_describe(self._handle)
        self.metrics = [(text(info.metric_names[m]) or "").replace("-", "_") for m in range(info.metric_count)]
        self.metric = self.metrics[info.metric]
        self.select, self.split, self.protocol = text(info.select), text(info.split), text(info.protocol)
        self.finished, self.total = info.finished, info.runs
        self._rows, self._seeds = info.rows, info.seeds

    def _cells(self, function: Any, chosen_only_scores: bool) -> Table:
        cell, columns = ffi.new("lapse_sweep_cell *"), {}  # type: Any, Dict[str, List[Any]]
        index = 0
        while function(self._handle, index, cell):
            scores = cell.chosen or not chosen_only_scores
            row: Dict[str, Any] = {"model": text(cell.row), "config": text(cell.config), "chosen": bool(cell.chosen),
                                   "best": bool(cell.best), "runs": cell.runs, "diverged": cell.diverged}
            row["valid"], row["valid_std"] = _spread(cell.valid)
            for m, name in enumerate(self.metrics):
                row[name], row[name + "_std"] = _spread(cell.metrics[m]) if scores else (math.nan, math.nan)
            row.update(difference=cell.difference.mean, difference_low=cell.difference.low,
                       difference_high=cell.difference.high, p=cell.p, epochs=cell.epochs.mean,
                       epoch_seconds=cell.epoch_seconds.mean, seconds=cell.seconds.mean,
                       reach_seconds=cell.reach.mean, parameters=cell.parameters)
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
            index += 1
        return Table(columns)

    @property
    def rows(self) -> Table:
        """Mean and standard deviation over seeds, times, and the paired test against the best row."""
        return self._cells(lib.lapse_sweep_row, False)

    @property
    def cells(self) -> Table:
        """Every cell of the grid with its validation score. Only chosen cells have test scores."""
        return self._cells(lib.lapse_sweep_cell_at, True)

    @property
    def best(self) -> Optional[str]:
        """The name of the best row."""
        rows = self.rows
        return next((name for name, best in zip(rows["model"].tolist(), rows["best"].tolist()) if best), None)

    def _results(self) -> Any:
        result, cell = ffi.new("lapse_sweep_result *"), ffi.new("lapse_sweep_cell *")
        for row in range(self._rows):
            lib.lapse_sweep_row(self._handle, row, cell)
            for seed in range(self._seeds):
                if lib.lapse_sweep_result_at(self._handle, row, seed, result):
                    yield text(cell.row), result

    @property
    def runs(self) -> Table:
        """One line for each run of a row."""
        lines = [{"model": name, "seed": r.seed, "valid": r.valid,
                  **{metric: r.metrics[m] for m, metric in enumerate(self.metrics)}, "epochs": r.epochs,
                  "best_epoch": r.best_epoch, "seconds": r.seconds} for name, r in self._results()]
        return Table({name: [line[name] for line in lines] for name in lines[0]} if lines else {"model": []})

    @property
    def curves(self) -> Table:
        """The validation score by epoch and by seconds, for each run of a row."""
        lines = [(name, r.seed, e + 1, r.curve[2 * e], r.curve[2 * e + 1]) for name, r in self._results()
                 for e in range(r.epochs)]
        return Table(dict(zip(("model", "seed", "epoch", "seconds", "valid"), map(list, zip(*lines)))) if lines else
                     {"model": []})

    def save_svg(self, path: Path, title: Optional[str] = None) -> None:
        """Draws the validation scores against time."""
        call(lib.lapse_sweep_save_svg, self._handle, encode(title) if title is not None else NULL, encode(path_text("path", path)))

    def __repr__(self) -> str:
        return f"<lapse.Comparison of {self._rows} rows, {self.finished} of {self.total} runs finished>"


def protocols() -> List[str]:
    """The ranking protocols of `compare`.

    >>> lapse.protocols()
    ['full-unseen', 'full', 'uniform', 'popularity']
    """
    return _c.names(lib.lapse_rank_protocol_names())


def _settings() -> set:
    option, names = ffi.new("lapse_option *"), set()
    while lib.lapse_sweep_option(len(names), option):
        names.add(text(option.name))
    return names


def _plan(given: Dict[str, Any]) -> Any:
    handle = ffi.new("lapse_sweep_plan **")
    call(lib.lapse_sweep_plan_new, handle)
    plan = ffi.gc(handle[0], lib.lapse_sweep_plan_free)
    own = _settings() | {"models", "encodings", "seeds", "rows", "title"}
    described: Dict[str, Any] = {}
    for name, value in given.items():
        name = name.replace("_", "-")
        if value is None:
            continue
        value = _plain(name, value)
        if name == "grid":
            described["grid"] = _grid(value)
        elif name == "rows":
            described["rows"] = [_row(row) for row in value]
        elif name in own:
            described[name] = value
        else:
            check_option(name.replace("-", "_"))
            described.setdefault("options", {})[name] = value
    try:
        coded = json.dumps(described).encode()
    except TypeError as error:
        raise _c.UsageError(f"a comparison takes texts, numbers and lists of them: {error}") from None
    try:
        call(lib.lapse_sweep_plan_parse, plan, coded, len(coded))
    except _c.InputError as error:  # the text is made of arguments: they are wrong, and the line says nothing
        raise _c.UsageError(error.message) from None
    return plan


def _plain(name: str, value: Any) -> Any:
    """A value for JSON: numbers of NumPy and paths as those of Python; log_loss is log-loss to the tool."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) or isinstance(value, (range, tuple)):
        value = list(value)
    if isinstance(value, list):
        return [_plain(name, part) for part in value]
    if isinstance(value, str) and name in ("metric", "select"):
        return value.replace("_", "-")
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _grid(grid: Mapping[str, Sequence[Any]]) -> Dict[str, Any]:
    return {name.replace("_", "-"): [_plain(name, value) for value in values] for name, values in grid.items()}


def _row(row: Mapping[str, Any]) -> Dict[str, Any]:
    """name and grid of a row; everything else are its options."""
    made: Dict[str, Any] = {"options": {k.replace("_", "-"): _plain(k, v) for k, v in row.items() if k not in ("name", "grid")}}
    if "name" in row:
        made["name"] = row["name"]
    if "grid" in row:
        made["grid"] = _grid(row["grid"])
    return made


def compare(data: Optional[Events] = None, models: Names = None, encodings: Names = None, seeds: Union[int, str, Sequence[int]] = 5,
            grid: Optional[Mapping[str, Sequence[Value]]] = None,
            rows: Optional[Sequence[Mapping[str, Union[Value, Mapping[str, Sequence[Value]]]]]] = None,
            plan: Optional[Path] = None, on_progress: Optional[Callable[[Progress], object]] = None,
            progress: bool = True, **options: "Unpack[CompareOptions]") -> Comparison:
    """Trains models over encodings, a grid of option values and seeds, and compares them in one table.

    `rows` are further rows: dicts of training options, with a `name` and a `grid` of their own. `plan` is the JSON file of a
    comparison; arguments override it. `options` are training options for all rows, or settings of `lapse compare`: metric,
    split, protocol, reach, grid_seeds, parallel, and keep, the folder from which a stopped comparison continues.
    `on_progress` gets done, running, left and seconds_left, and stops by returning False, as does Ctrl-C.

    >>> c = lapse.compare(data, models=["markov"], grid={"order": [1, 2]}, seeds=range(1, 3), progress=False)
    >>> c.rows["config"].tolist()[0].startswith("order ")
    True
    """
    chosen = seeds if isinstance(seeds, str) else list(seeds) if hasattr(seeds, "__iter__") else integer("seeds", seeds)
    given: Dict[str, Any] = dict(options)
    described = _plan({**given, "models": models, "encodings": encodings, "grid": grid, "rows": rows,
                       "seeds": None if plan is not None and seeds == 5 else chosen})
    if plan is not None:
        call(lib.lapse_sweep_plan_load, described, encode(path_text("plan", plan)))
    if data is None:
        out = ffi.new("char[4096]")
        data = text(lib.lapse_sweep_plan_get(described, b"data", out, 4096))
        if not data:
            raise _c.UsageError("a comparison needs data")
    dataset = dataset_of(data)
    handle = ffi.new("lapse_sweep **")
    call(lib.lapse_sweep_new, dataset._handle, described, handle)
    comparison = ffi.gc(handle[0], lib.lapse_sweep_free)
    bar = _Bar(progress)

    def step(p: Any, _: Any) -> bool:
        state = {"done": p.done, "running": p.running, "left": p.left, "total": p.total, "seconds": p.seconds,
                 "seconds_left": p.seconds_left, "newest": text(p.newest)}
        return bar.step(lambda: f"{p.done} of {p.total} runs done, {p.running} running, {p.left} left, "
                                f"{p.seconds_left:.0f} s to the end  {state['newest'] or ''}",
                        (lambda: on_progress(state)) if on_progress else None)

    callback = ffi.callback("lapse_on_sweep_progress", step, error=False, onerror=bar.stop)
    try:
        call(lib.lapse_sweep_run, comparison, callback, NULL)
    finally:
        bar.end()
    return Comparison(comparison)


def tune(data: Events, budget: Duration = 600, trials: int = 0, parallel: int = 0,
         keep: Optional[Path] = None, on_progress: Optional[Callable[[Progress], object]] = None,
         progress: bool = True, **options: "Unpack[TrainOptions]") -> Model:
    """Searches training options on the validation split within a budget of time, and returns the best model.

    `budget` is seconds or a text such as "10m". The first trial has the options as given, and options that are given are never
    changed. `model.properties` has what was tried, under "tune.". `on_progress` ends the search by returning False, as does
    Ctrl-C.

    >>> model = lapse.tune(data, trials=2, model="markov", progress=False)
    >>> model.properties["tune.trials"]
    '2'
    """
    dataset = dataset_of(data)
    handle = ffi.new("lapse_train_options **")
    call(lib.lapse_train_options_new, handle)
    chosen = ffi.gc(handle[0], lib.lapse_train_options_free)
    set_options(chosen, dict(options))
    keeper = _c.Keeper()
    limits = fill(keeper, "lapse_tune_options", dict(seconds=budget, trials=trials, parallel=parallel, folder=keep))
    bar = _Bar(progress)

    def step(p: Any, _: Any) -> bool:
        state = {"finished": p.finished, "stopped": p.stopped, "running": p.running, "seconds": p.seconds, "first": p.first,
                 "best": p.best, "best_trial": p.best_trial, "change": changes_of(text(p.change) or "")}
        return bar.step(lambda: f"{p.finished} trials finished, {p.stopped} stopped, best {text(p.metric)} {p.best:.4f} "
                                f"{state['change']}  {p.seconds:.0f} of {p.budget:.0f} s",
                        (lambda: on_progress(state)) if on_progress else None)

    callback = ffi.callback("lapse_on_tune_progress", step, error=False, onerror=bar.stop)
    model = ffi.new("lapse_model **")
    try:
        call(lib.lapse_tune, dataset._handle, chosen, limits, callback, NULL, model)
    finally:
        bar.end()
    return Model(model[0], dataset)
