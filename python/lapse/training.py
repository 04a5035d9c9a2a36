"""Training: every option of the table by its name, a bar, callbacks, and Ctrl-C."""

from __future__ import annotations

import logging
import math
import re
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Union

from . import _c
from ._c import NULL, call, encode, ffi, lib, text
from ._table import Table
from ._values import members, option_text
from .dataset import Events, dataset_of
from .model import Model, epoch_row

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import TrainOptions

log = logging.getLogger("lapse")


class Progress(Dict[str, Union[int, float, bool]]):
    """What callbacks receive: a dict for loggers, whose entries are attributes too.

    At the end of an epoch: epoch, loss, the metrics on the validation split, best (whether this epoch is the best so far) and
    seconds. During it: epoch, epochs, step, steps, loss, seconds and seconds_left.

    >>> lapse.Progress(epoch=1, loss=0.5).loss
    0.5
    """

    stopped = False

    def __getattr__(self, name: str) -> Union[int, float, bool]:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}: there are {', '.join(self)}") from None

    def stop(self) -> None:
        """Ends the run after this callback; the best model so far is returned.

        >>> lapse.train(data, epochs=9, on_epoch=lambda p: p.stop(), progress=False).status
        'stopped'
        """
        self.stopped = True


class Callback:
    """A base class for callbacks of `train`, which override what they need.

    >>> class Losses(lapse.Callback):
    ...     def on_epoch(self, progress):
    ...         print(progress.epoch, progress.loss > 0)
    >>> model = lapse.train(data, epochs=2, callbacks=[Losses()], progress=False)
    1 True
    2 True
    """

    def on_begin(self, options: Mapping[str, str]) -> None:
        """Before the first step, with the options as texts."""

    def on_step(self, progress: Progress) -> Optional[object]:
        """After every step. False stops the run, as `progress.stop()` does."""
        return None

    def on_epoch(self, progress: Progress) -> Optional[object]:
        """After every epoch. False stops the run, as `progress.stop()` does."""
        return None

    def on_end(self, model: Model) -> None:
        """After the run, with the best model; not after an error."""


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
    """Refuses a name that is not a training option."""
    if lib.lapse_train_option_find(encode(name.replace("_", "-")), ffi.new("lapse_option *")):
        return
    if name in members("lapse_import_options") or name == "fields":
        raise _c.UsageError(f"'{name}' is not a training option: it belongs to the data, lapse.train(lapse.Dataset.from_arrow(table, "
                            f"{name}=...), ...)", option=name)
    raise _c.unknown_option("training", name, options()["name"].tolist())


def set_options(handle: Any, given: Mapping[str, Any]) -> None:
    """Sets training options from keyword arguments; None leaves the default."""
    for name, value in given.items():
        check_option(name)
        if value is not None:
            shown = option_text(name, value)
            # The metric is log_loss in Python and log-loss in the tool; no other choice has an underscore.
            shown = shown.replace("_", "-") if name in ("select", "metric") else shown
            call(lib.lapse_train_options_set, handle, encode(name.replace("_", "-")), encode(shown))


class _Watch:
    """What the progress callback does: the bar, callbacks, and stopping."""

    def __init__(self, callbacks: Sequence[Callback], on_epoch: Optional[Callable[[Progress], object]], bar: bool) -> None:
        self.callbacks, self.on_epoch, self.bar = callbacks, on_epoch, bar
        self.drawn, self.error = 0.0, None  # type: Any
        self.interrupted, self.keyboard, self.epochs = False, False, 0
        self.steps = [callback.on_step for callback in callbacks if type(callback).on_step is not Callback.on_step]
        self.terminal = sys.stderr.isatty() or "ipykernel" in sys.modules

    def step(self, p: Any) -> bool:
        try:
            self.epochs = p.epochs
            if self.steps:
                self.report(self.steps, Progress(epoch=p.epoch, epochs=p.epochs, step=p.step, steps=p.steps, loss=p.loss,
                                                 seconds=p.seconds, seconds_left=p.seconds_left))
            if p.epoch_end:
                self.end_epoch(p)
            if self.bar and (p.epoch_end or time.monotonic() - self.drawn > 0.1):
                self.draw(p)
            return not self.interrupted
        except KeyboardInterrupt:
            self.interrupted = self.keyboard = True
        except BaseException as error:  # re-raised when the C call has returned
            self.error = error
        return False

    def stop(self, kind: Any, error: Any, trace: Any) -> None:
        """An interrupt outside of step."""
        self.keyboard = self.keyboard or isinstance(error, KeyboardInterrupt)
        if not isinstance(error, KeyboardInterrupt):
            self.error = error

    def report(self, functions: Sequence[Callable[[Progress], object]], progress: Progress) -> None:
        for function in functions:
            if function(progress) is False or progress.stopped:
                self.interrupted = True

    def end_epoch(self, p: Any) -> None:
        row = Progress({**epoch_row(p.newest), "best": p.best_epoch == p.epoch, "seconds": p.seconds})
        log.info("epoch %d of at most %d: %s", p.epoch, p.epochs,
                 ", ".join(f"{name} {value:.4g}" for name, value in row.items() if name not in ("epoch", "best")))
        self.report([*([self.on_epoch] if self.on_epoch else []), *(callback.on_epoch for callback in self.callbacks)], row)

    def draw(self, p: Any) -> None:
        self.drawn = time.monotonic()
        if not self.terminal:
            return
        done = int(20 * p.step / max(p.steps, 1))
        loss = "" if math.isnan(p.loss) else f"  loss {p.loss:.4f}"
        score = "" if math.isnan(p.score) else f"  {text(p.score_name)} {p.score:.4f}"
        network = "times: " if p.times else ""
        line = f"{network}epoch {p.epoch}/{p.epochs} [{'#' * done}{'.' * (20 - done)}]{loss}{score}  {p.seconds:.0f} s"
        print("\r" + line.ljust(78), end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.bar and self.terminal and self.drawn:
            print(file=sys.stderr)


def train(data: Events, on_epoch: Optional[Callable[[Progress], object]] = None, progress: bool = True,
          like: Optional[Model] = None, callbacks: Sequence[Callback] = (), **options: "Unpack[TrainOptions]") -> Model:
    """Trains a model, and returns the one with the best validation score.

    `data` is a Dataset, a table with the Arrow protocol or a path. `options` are those of `lapse train` by their names
    (`lapse.options()` lists them). `on_epoch` gets the `Progress` of each epoch (with
    when=True then those of the network of times), `callbacks` have more methods; both stop
    training by returning False. Ctrl-C stops training too, with a warning, and the best model so far is returned: its `status`
    is "stopped". `like` is a model whose options are taken where none are given. The logger "lapse" gets a line for each epoch.

    >>> model = lapse.train(data, task="classify", epochs=1, device="auto", progress=False)
    >>> model.history["epoch"].tolist()
    [1]
    """
    for name in options:
        check_option(name)
    dataset = dataset_of(data)
    handle = ffi.new("lapse_train_options **")
    call(lib.lapse_train_options_new, handle)
    chosen = ffi.gc(handle[0], lib.lapse_train_options_free)
    given: Dict[str, Any] = dict(options)
    if "checkpoint" in given and given["checkpoint"] is None:
        given["checkpoint"] = ""
    set_options(chosen, given)
    if like is not None:
        call(lib.lapse_train_options_like, chosen, like._handle, dataset._handle)
    watch = _Watch(callbacks, on_epoch, progress)
    for callback in callbacks:
        callback.on_begin(_option_texts(chosen))
    reported = ffi.callback("lapse_on_progress", lambda p, _: watch.step(p), error=False, onerror=watch.stop)
    model = ffi.new("lapse_model **")
    try:
        call(lib.lapse_train, dataset._handle, chosen, reported, NULL, model)
    finally:
        watch.end()
    trained = Model(model[0], dataset)
    if watch.error is not None:
        raise watch.error
    epochs = len(trained.history)
    if trained.status == "diverged":
        warnings.warn("training diverged: the loss is not finite; the model is that of the best epoch before. Try a smaller "
                      "learning_rate or clip", stacklevel=2)
    elif trained.status == "stopped" and not epochs:
        warnings.warn("training was stopped in its first epoch: the model has hardly learned", stacklevel=2)
    elif trained.status == "stopped" and watch.keyboard:
        warnings.warn(f"training was stopped by Ctrl-C after {epochs} of at most {watch.epochs} epochs: the model is that of the "
                      "best epoch so far", stacklevel=2)
    log.info("training is %s after %d epochs", trained.status or "complete", epochs)
    for callback in callbacks:
        callback.on_end(trained)
    return trained


def _option_texts(handle: Any) -> Dict[str, str]:
    """Every option that is set, as text."""
    out, found = ffi.new("char[4096]"), {}
    for name in options()["name"].tolist():
        value = text(lib.lapse_train_options_get(handle, encode(name.replace("_", "-")), out, 4096))
        if value:
            found[name] = value
    return found
