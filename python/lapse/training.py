"""Training: every option of the table by its name, a bar, callbacks, and Ctrl-C."""

from __future__ import annotations

import math
import os
import re
import sys
import time
import warnings
from typing import Any, Callable, Dict, Optional

from . import _c
from ._c import NULL, call, encode, ffi, lib, text
from ._table import Table
from .dataset import Dataset, dataset_of
from .model import Model, epoch_row

Row = Dict[str, Any]


def options() -> Table:
    """Every option of `train`: name, values, default and one line of help.

    >>> "learning_rate" in lapse.options()["name"]
    True
    """
    option, rows = ffi.new("lapse_option *"), []
    while lib.lapse_train_option(len(rows), option):
        kind = option.type
        values = ("|".join(_c.names(option.choices)) if kind == lib.LAPSE_OPTION_CHOICE else
                  {lib.LAPSE_OPTION_INTEGER: "integer", lib.LAPSE_OPTION_NUMBER: "number",
                   lib.LAPSE_OPTION_DURATION: "duration", lib.LAPSE_OPTION_FLAG: "true or false",
                   lib.LAPSE_OPTION_SEED: "integer", lib.LAPSE_OPTION_FILE: "path",
                   lib.LAPSE_OPTION_TEXT: "text"}[kind])
        rows.append((text(option.name).replace("-", "_"), values, text(option.initial) or text(option.rule) or "",
                     re.sub("--[a-z-]+", lambda name: name.group()[2:].replace("-", "_"), text(option.help) or "")))
    return Table(dict(zip(("name", "values", "default", "help"), map(list, zip(*rows)))))


def check_option(name: str) -> None:
    """Refuses a name that is no training option."""
    if not lib.lapse_train_option_find(encode(name.replace("_", "-")), ffi.new("lapse_option *")):
        raise _c.unknown_option("training", name, options()["name"].tolist())


def set_options(handle: Any, given: Dict[str, Any]) -> None:
    """Sets training options from keyword arguments; None leaves the default."""
    for name, value in given.items():
        check_option(name)
        if value is None:
            continue
        shown = ("true" if value else "false") if isinstance(value, bool) else os.fspath(value) if isinstance(
            value, os.PathLike) else repr(value) if isinstance(value, float) else str(value)
        call(lib.lapse_train_options_set, handle, encode(name.replace("_", "-")), encode(shown))


class _Watch:
    """What the progress callback does: the bar, on_epoch, and stopping."""

    def __init__(self, on_epoch: Optional[Callable[[Row], Any]], bar: bool) -> None:
        self.on_epoch, self.bar = on_epoch, bar
        self.drawn, self.error = 0.0, None  # type: Any
        self.interrupted = False
        self.terminal = sys.stderr.isatty() or "ipykernel" in sys.modules

    def step(self, p: Any) -> bool:
        try:
            if p.epoch_end:
                self.end_epoch(p)
            if self.bar and (p.epoch_end or time.monotonic() - self.drawn > 0.1):
                self.draw(p)
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

    def end_epoch(self, p: Any) -> None:
        row = {**epoch_row(p.newest), "best": p.best_epoch == p.epoch, "seconds": p.seconds}
        if self.on_epoch and self.on_epoch(row) is False:
            self.interrupted = True

    def draw(self, p: Any) -> None:
        self.drawn = time.monotonic()
        if not self.terminal:
            return
        done = int(20 * p.step / max(p.steps, 1))
        loss = "" if math.isnan(p.loss) else f"  loss {p.loss:.4f}"
        score = "" if math.isnan(p.score) else f"  {text(p.score_name)} {p.score:.4f}"
        line = f"epoch {p.epoch}/{p.epochs} [{'#' * done}{'.' * (20 - done)}]{loss}{score}  {p.seconds:.0f} s"
        print("\r" + line.ljust(78), end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.bar and self.terminal and self.drawn:
            print(file=sys.stderr)


def train(data: Any, on_epoch: Optional[Callable[[Row], Any]] = None, progress: bool = True,
          like: Optional[Model] = None, **options: Any) -> Model:
    """Trains a model, and returns the one with the best validation score.

    `data` is a Dataset, a table with the Arrow protocol or a path. `options` are those of `lapse train` by their names
    (`lapse.options()` lists them). `on_epoch` gets the row of each epoch, and stops training by returning False. Ctrl-C
    stops training too, and the best model so far is returned: its `status` is "stopped". `like` is a model whose options are taken where none are
    given.

    >>> model = lapse.train(data, task="classify", epochs=1, device="auto", progress=False)
    >>> model.history["epoch"].tolist()
    [1]
    """
    dataset = dataset_of(data)
    handle = ffi.new("lapse_train_options **")
    call(lib.lapse_train_options_new, handle)
    chosen = ffi.gc(handle[0], lib.lapse_train_options_free)
    if "checkpoint" in options and options["checkpoint"] is None:
        options["checkpoint"] = ""
    set_options(chosen, options)
    if like is not None:
        call(lib.lapse_train_options_like, chosen, like._handle, dataset._handle)
    watch = _Watch(on_epoch, progress)
    callback = ffi.callback("lapse_on_progress", lambda p, _: watch.step(p), error=False, onerror=watch.stop)
    model = ffi.new("lapse_model **")
    try:
        call(lib.lapse_train, dataset._handle, chosen, callback, NULL, model)
    finally:
        watch.end()
    trained = Model(model[0], dataset)
    if watch.error is not None:
        raise watch.error
    if trained.status == "diverged":
        warnings.warn("training diverged: the loss is not finite; the model is that of the best epoch before. Try a smaller "
                      "learning_rate or clip", stacklevel=2)
    elif trained.status == "stopped" and not len(trained.history):
        warnings.warn("training was stopped in its first epoch: the model has hardly learned", stacklevel=2)
    return trained
