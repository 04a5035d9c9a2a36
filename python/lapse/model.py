"""Models: prediction, evaluation, inspection, files and bytes."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _c
from ._c import NULL, Keeper, call, cards, encode, ffi, lib, text
from ._table import Names, Table, Times, typed
from ._values import (Duration, Id, Path, Time, duration, fill, fixed_time, flag, id_text, integer, members, moment, number, path_text,
                      set_integer, time_list)
from ._values import Times as TimesLike
from .dataset import FIELD_TYPES, Dataset, Events, _view, dataset_of, names_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import HistoryOptions, InspectOptions
    from .session import Session

TENSOR_TYPES = (np.float32, np.int32, np.uint8, np.uint64, np.float64)
# A property tune.trial.N of a model file.
_TRIAL = re.compile(r"(?P<changes>.*): (?:(?P<metric>\S+) (?P<score>\S+)(?: in epoch (?P<best>\d+) of (?P<epochs>\d+)(?:, (?P<ended>stopped))?)?"
                    r"|(?P<none>diverged|no epoch))")
QUERY = np.dtype([("sequence", np.int64), ("time", np.float64)])
CHOICE = np.dtype([("item", np.int64), ("score", np.float64), ("probability", np.float64)])


def epoch_row(epoch: Any) -> Dict[str, Any]:
    """A lapse_epoch by names; with two targets the names of metrics begin with the target's."""
    metrics = [epoch.metrics[i] for i in range(epoch.metric_count)]
    several = len({text(metric.target) for metric in metrics}) > 1
    row = {"epoch": epoch.epoch, "loss": epoch.loss}
    for metric in metrics:
        name = text(metric.name).replace("-", "_")
        row[f"{text(metric.target)}_{name}" if several else name] = metric.value
    return row


def _now_of(dataset: Dataset, now: Optional[Time]) -> float:
    """The time that `now` means, in unix seconds; NaN: each history's last event."""
    if isinstance(now, str) and now == "end":
        return float(dataset.times.max())
    return fixed_time("now", None if isinstance(now, str) and now == "last" else now)


def _report_unanswered(without: np.ndarray) -> None:
    """Warns of histories without an event that the model knows, which have no row; an error if there are no others."""
    if without.size and without.all():
        raise _c.UnknownError("no history has an event that the model knows")
    if without.any():
        warnings.warn(f"{without.sum():,} of {without.size:,} histories have no event that the model knows: no prediction",
                      stacklevel=3)


def changes_of(written: str) -> str:
    """The changes of a trial, "learning-rate 0.01, dropout 0.2", as arguments: "learning_rate=0.01, dropout=0.2"."""
    if written in ("", "options as given"):
        return ""
    parts = [change.partition(" ") for change in written.split(", ")]
    return ", ".join(f"{name.replace('-', '_')}={value}" for name, _, value in parts)


class Scores(Mapping[str, float]):
    """Metrics by name; intervals are in `low` and `high`.

    >>> scores = model.evaluate(data, split="test")
    >>> 0 <= scores["accuracy"] <= 1, scores.low["accuracy"] <= scores.high["accuracy"]
    (True, True)
    """

    def __init__(self, values: Dict[str, float], low: Dict[str, float], high: Dict[str, float],
                 info: Dict[str, Union[str, int, None]]) -> None:
        self._values, self.low, self.high, self.info = values, low, high, info

    def __getitem__(self, name: str) -> float:
        return self._values[name.lower().replace("-", "_")]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "Scores(" + ", ".join(f"{name}: {value:.4g}" for name, value in self._values.items()) + ")"

    def _repr_html_(self) -> str:
        return cards({**self.info, **{name: f"{value:.4g}" for name, value in self._values.items()}})


class Model:
    """A trained model. Immutable: any number of threads may use one. Pickled, copied and sent by the bytes of its file.

    >>> model.save("shop.safetensors"); lapse.Model.load("shop.safetensors").to_bytes() == model.to_bytes()
    True
    """

    def __init__(self, handle: Any, data: Optional[Dataset] = None) -> None:
        self._handle = ffi.gc(handle, lib.lapse_model_free)
        self._data, self._scores = data, None  # type: Any

    # ------------------------------------------------------------------------------------------ files ----

    @classmethod
    def load(cls, path: Path) -> "Model":
        """Loads a model file, which `lapse train` or `save` wrote.

        >>> lapse.Model.load("shop.safetensors").task
        'classify'
        """
        handle = ffi.new("lapse_model **")
        call(lib.lapse_model_load, encode(path_text("path", path)), handle)
        return cls(handle[0])

    def save(self, path: Path) -> None:
        """Writes a model file: the same bytes as `lapse train` writes.

        >>> model.save("shop.safetensors")
        """
        call(lib.lapse_model_save, self._handle, encode(path_text("path", path)))

    def to_bytes(self) -> bytes:
        """The bytes of the model's file.

        >>> lapse.Model.from_bytes(model.to_bytes()).task
        'classify'
        """
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Model":
        """A model from the bytes of a file.

        >>> lapse.Model.from_bytes(model.to_bytes()).event_types == model.event_types
        True
        """
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            with open(path, "wb") as file:
                file.write(data)
            return cls.load(path)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Model.from_bytes, (self.to_bytes(),)

    def __copy__(self) -> "Model":
        return self

    # -------------------------------------------------------------------------------------- description ----

    @property
    def properties(self) -> Dict[str, str]:
        """The configuration of the model and of its training, as texts."""
        return _c.properties(lib.lapse_model_property, self._handle)

    @property
    def status(self) -> str:
        """How training ended: "complete", "stopped" (by Ctrl-C or on_epoch), or "diverged" after the best epoch. "" of
        models that are not trained by epochs.

        >>> model.status
        'complete'
        """
        return self.properties.get("run.status", "")

    @property
    def task(self) -> str:
        """The task: classify or recommend."""
        return self.properties.get("task", "classify")

    @property
    def event_types(self) -> List[Id]:
        """The names of the event types that the model knows, as what they were at import: texts, integers, ..."""
        names = names_of(lib.lapse_model_event_type_name, self._handle, lib.lapse_model_event_type_count(self._handle))
        return typed(names, self._kind("event")).tolist()

    def _kind(self, target: str) -> Optional[str]:
        """What event types were before they became text; None: text."""
        return self.properties.get("type.event") if target in ("event", "item") else None

    @property
    def fields(self) -> Dict[str, str]:
        """The type of each input field: action, category or number."""
        field, found = ffi.new("lapse_field *"), {}
        while lib.lapse_model_field(self._handle, len(found), field):
            found[text(field.name)] = FIELD_TYPES[field.type]
        return found

    @property
    def targets(self) -> List[str]:
        """What the model predicts: event, action or both."""
        found: List[str] = []
        while True:
            name = text(lib.lapse_model_target(self._handle, len(found)))
            if name is None:
                return found
            found.append(name)

    @property
    def history(self) -> Table:
        """One row per epoch of training, as in the model file: loss, and the metrics on the validation split.

        >>> model.history.column_names
        ['epoch', 'loss', 'log_loss', 'accuracy']
        """
        return self._epochs(lib.lapse_model_history)

    @property
    def times_history(self) -> Table:
        """The same of the network of times of a model that was trained with when=True; otherwise no rows."""
        return self._epochs(lib.lapse_model_times_history)

    @property
    def trials(self) -> Table:
        """What `tune` tried: the number of each trial, what it changed, its validation score, its best epoch and number of epochs (0
        where there are none), and whether it was stopped or diverged. Of another model no rows.

        >>> lapse.tune(data, trials=2, model="markov", progress=False).trials.column_names
        ['trial', 'changes', 'log_loss', 'best_epoch', 'epochs', 'outcome']
        """
        found: List[Tuple[int, "re.Match[str]"]] = []
        for name, value in self.properties.items():
            match = _TRIAL.fullmatch(value) if name.startswith("tune.trial.") else None
            if match:
                found.append((int(name[len("tune.trial."):]), match))
        found.sort(key=lambda trial: trial[0])
        metric = next((m["metric"].replace("-", "_") for _, m in found if m["metric"]), "score")
        whole = lambda part: np.array([int(m[part] or 0) for _, m in found], np.int64)  # noqa: E731
        return Table({"trial": np.array([number for number, _ in found], np.int64),
                      "changes": np.array([changes_of(m["changes"]) for _, m in found], dtype=object),
                      metric: np.array([float(m["score"] or "nan") for _, m in found]),
                      "best_epoch": whole("best"), "epochs": whole("epochs"),
                      "outcome": np.array([m["none"] or m["ended"] or "finished" for _, m in found], dtype=object)})

    def _epochs(self, history: Any) -> Table:
        epoch, rows = ffi.new("lapse_epoch *"), []
        while history(self._handle, len(rows), epoch):
            rows.append(epoch_row(epoch))
        return Table({name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ("epoch", "loss"))})

    def __repr__(self) -> str:
        p = self.properties
        return (f"<lapse.Model: {p.get('model', 'model')} to {self.task}, "
                f"{lib.lapse_model_event_type_count(self._handle)} event types>")

    def _repr_html_(self) -> str:
        rows: Dict[str, Any] = {"model": repr(self)[1:-1]}
        if self._data is not None:
            rows.update({name: f"{value:.4g}" for name, value in self.scores.items()})
        rows.update(self.properties)
        return cards(rows)

    # ----------------------------------------------------------------------------------------- evaluation ----

    @property
    def scores(self) -> Scores:
        """The scores on the test split of the data that the model was trained on in this process.

        >>> model.scores["accuracy"] > 0
        True
        """
        if self._scores is None:
            if self._data is None:
                raise _c.UsageError("the model was not trained in this process: use evaluate(data)")
            self._scores = self.evaluate(self._data)
        return self._scores

    def evaluate(self, data: Events, split: str = "test", cutoffs: Sequence[int] = (5, 10),
                 protocol: str = "full-unseen", target: Optional[str] = None, bootstrap: int = 1000,
                 threads: int = 0, device: str = "auto", negatives: int = 0) -> Scores:
        """Metrics on a split: accuracy, log_loss and macro_f1 of a classifier; hit@K, ndcg@K and mrr of a recommender.

        `target` is what is predicted ("event", "action"), at which events ("action=view", "all"), or both
        ("event,action=view"); by default as in training.

        >>> "log_loss" in model.evaluate(data, split="valid")
        True
        """
        dataset, keeper = self._histories(data), Keeper()
        given = dict(split=split, target=target, bootstrap=bootstrap, threads=threads, device=device)
        if self.task == "recommend":
            cuts = [integer("cutoffs", cut) for cut in cutoffs]
            return self._rank(dataset, fill(keeper, "lapse_rank_options", {**given, "negatives": negatives}), cuts, protocol)
        options, scores = fill(keeper, "lapse_evaluate_options", given), ffi.new("lapse_scores *")
        call(lib.lapse_evaluate, self._handle, dataset._handle, options, scores)
        values = {"accuracy": scores.accuracy, "log_loss": scores.log_loss, "macro_f1": scores.macro_f1}
        low = {"accuracy": scores.accuracy_low, "log_loss": scores.log_loss_low}
        high = {"accuracy": scores.accuracy_high, "log_loss": scores.log_loss_high}
        info = {"target": text(scores.target), "split": split, "cases": scores.cases, "sequences": scores.sequences}
        lib.lapse_scores_clear(scores)
        return Scores(values, low, high, info)

    def _rank(self, dataset: Dataset, options: Any, cutoffs: List[int], protocol: str) -> Scores:
        scores, cuts = ffi.new("lapse_rank_scores *"), ffi.new("int[]", cutoffs)
        options.cutoffs, options.cutoff_count = cuts, len(cutoffs)
        call(lib.lapse_rank_evaluate, self._handle, dataset._handle, options, scores)
        try:
            found = [scores.whole.scores[i] for i in range(len(scores.whole.scores))]
            one = next((s for s in found if s.protocol != NULL and text(s.protocol) == protocol and s.candidates), None)
            if one is None:
                raise _c.UsageError(f"the protocol '{protocol}' was not used: uniform and popularity need negatives > 0")
            means = {f"hit@{k}": one.hit[i] for i, k in enumerate(cutoffs)}
            means.update({f"ndcg@{k}": one.ndcg[i] for i, k in enumerate(cutoffs)})
            means["mrr"] = one.mrr
            info = {"protocol": protocol, "split": text(options.split), "cases": scores.whole.cases, "items": scores.items}
            return Scores(*({name: getattr(mean, part) for name, mean in means.items()}
                            for part in ("mean", "low", "high")), info)
        finally:
            lib.lapse_rank_scores_clear(scores)

    # ----------------------------------------------------------------------------------------- prediction ----

    def _histories(self, data: Any, columns: Optional[Mapping[str, Any]] = None) -> Dataset:
        """A dataset with the model's fields. Columns that are not given are those of the training data."""
        if isinstance(data, Dataset) or (isinstance(data, (str, os.PathLike)) and str(os.fspath(data)).endswith(".lapse")):
            return dataset_of(data)
        known, given = self.properties, dict(columns or {})
        for name in set(given) - {*members("lapse_import_options"), "fields"}:
            similar = difflib.get_close_matches(name, ("at", "top", "unseen", "target", "threads", "within", "now", "horizon", "samples"), 1)
            if similar:
                raise _c.UsageError(f"there is no argument '{name}': did you mean {similar[0]}?", option=name)
        for role in ("sequence", "time", "event"):
            given[role] = given.get(role) or known.get(f"column.{role}")
        if isinstance(given["event"], str):
            given["event"] = given["event"].split(",")
        fields = self.fields
        given.setdefault("action", next((name for name, kind in fields.items() if kind == "action"), None))
        given["fields"] = [name for name, kind in fields.items() if kind == "category"]
        given["numbers"] = [name for name, kind in fields.items() if kind == "number"]
        return dataset_of(data, **given)

    def _answers_to(self, dataset: Dataset, at: object, top: int, unseen: bool, skip_unknown: bool, target: Optional[str],
                    threads: int, states: Optional[np.ndarray] = None) -> Tuple[List[Any], np.ndarray, np.ndarray, np.ndarray, str]:
        """The times as a list, the queries, their answers and how many each has, and the target."""
        asked = time_list("at", at)
        ends = dataset.times[dataset.offsets[1:].astype(np.int64) - 1]
        queries = np.empty((dataset.sequences, len(asked)), QUERY)
        queries["sequence"] = np.arange(dataset.sequences)[:, None]
        for i, when in enumerate(asked):
            relative, seconds = moment("at", when)
            queries["time"][:, i] = ends + seconds if relative else seconds
        target = target or self.targets[0]
        best, counts = self._answers(dataset, queries, top, unseen, skip_unknown, target, threads, states)
        _report_unanswered(counts[:: len(asked)] < 0 if len(asked) else np.zeros(0, bool))
        return asked, queries.reshape(-1), best, counts, target

    def _answers(self, dataset: Dataset, queries: np.ndarray, top: int, unseen: bool, skip_unknown: bool, target: str, threads: int,
                 states: Optional[np.ndarray] = None, events: Optional[np.ndarray] = None) -> Tuple[np.ndarray, np.ndarray]:
        """The answers to queries, and how many each has. events: how many events of its sequence each query is about."""
        size = lib.lapse_model_target_size(self._handle, encode(target))
        keeper = Keeper()
        options = fill(keeper, "lapse_predict_options", dict(target=target, top=_c.top_of(integer("top", top), size), unseen=unseen,
                                                             skip_unknown=skip_unknown, threads=threads))
        best, counts = np.zeros((queries.size, options.top), CHOICE), np.zeros(queries.size, np.int64)
        if states is not None:
            options.states = ffi.from_buffer("float[]", states)
        call(lib.lapse_predict_prefixes, self._handle, dataset._handle, ffi.from_buffer("lapse_query[]", queries),
             _c.NULL if events is None else ffi.from_buffer("int64_t[]", events), queries.size, options, ffi.from_buffer("lapse_recommendation[]", best),
             ffi.from_buffer("int64_t[]", counts))
        return best, counts

    def predict(self, histories: Events, at: TimesLike = "+1h", top: int = 10, unseen: bool = False,
                skip_unknown: bool = False, target: Optional[str] = None, threads: int = 0,
                **columns: "Unpack[HistoryOptions]") -> Table:
        """The most probable next events of every history, at each time.

        `histories` is a table with the Arrow protocol, a path or a Dataset. A time is "+1h" or a timedelta (after the last
        event of the history), "now", ISO 8601, a datetime or unix seconds. `top` 0 is all of them. `unseen` leaves out the
        events of the history, `skip_unknown` those that the model does not know: a history without any other has no row,
        which is a warning, and an UnknownError if no history has one. The columns of the result: sequence, at, time, rank,
        event (or item), score, probability. Ids are what they were in the table: integers, UUIDs, ...

        >>> model.predict(frame, at=["+1h", "+7d"], top=2).column_names[:4]
        ['sequence', 'at', 'time', 'rank']
        """
        dataset = self._histories(histories, columns)
        asked, queries, best, counts, target = self._answers_to(dataset, at, top, unseen, skip_unknown, target, threads)
        filled = np.arange(best.shape[1]) < counts[:, None]
        query, rank = np.nonzero(filled)
        chosen = best[query, rank]
        items, codes = np.unique(chosen["item"], return_inverse=True)
        kind = "item" if self.task == "recommend" else target
        name = [text(lib.lapse_model_target_name(self._handle, encode(target), int(i))) or "" for i in items]
        return Table({
            "sequence": dataset._sequence_column(queries["sequence"][query]),
            "at": Names(query % len(asked) if asked else query, [str(when) for when in asked]),
            "time": Times(queries["time"][query]),
            "rank": (rank + 1).astype(np.int32),
            kind: Names(codes, name, self._event_kind(dataset, target)),
            "score": np.ascontiguousarray(chosen["score"]),
            "probability": np.ascontiguousarray(chosen["probability"]),
        })

    def _event_kind(self, dataset: Dataset, target: str) -> Optional[str]:
        """What event types are in a result: what they are in the histories, or were in the data of training."""
        return (dataset._kind("event") or self._kind("event")) if target == "event" else None

    def history_vectors(self, histories: Events, at: Time = "+1h", skip_unknown: bool = False, threads: int = 0,
                        **columns: "Unpack[HistoryOptions]") -> "Tuple[np.ndarray[Any, Any], np.ndarray[Any, np.dtype[np.float32]]]":
        """Of a recommender: the names of all histories, and the vector of each at a time, in the rows of an array. Its product
        with the vectors of `score_vectors`, plus their biases, are the scores of the items.

        >>> ranks = lapse.train(data, task="recommend", dims=8, epochs=1, progress=False)
        >>> names, vectors = ranks.history_vectors(data); vectors.shape == (len(names), 8)
        True
        """
        dims = lib.lapse_model_state_dims(self._handle)
        if dims == 0:
            raise _c.UsageError("the model has no history vectors: a network trained with task='recommend' does")
        dataset = self._histories(histories, columns)
        states = np.zeros((dataset.sequences, dims), np.float32)
        _, _, _, counts, _ = self._answers_to(dataset, [at], 1, False, skip_unknown, None, threads, states)
        known = np.flatnonzero(counts >= 0)
        return dataset._sequence_column(known).values(), states[known]

    # ---------------------------------------------------------------------------- time of the next event ----

    def evaluate_times(self, data: Events, split: str = "test", bootstrap: int = 0, threads: int = 0) -> Table:
        """Scores of the predicted times of the next event, of the model (trained with when=True) and of baselines.

        Columns: name, unit, nll (nats per event, for times in this unit), mae, rmse, crps, coverage_50, coverage_80,
        coverage_95, pit_distance. mae is the error of the median, rmse that of the mean.

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> len(timed.evaluate_times(data)["nll"]) > 1
        True
        """
        keeper, scores = Keeper(), ffi.new("lapse_time_scores *")
        options = fill(keeper, "lapse_evaluate_options", dict(split=split, bootstrap=bootstrap, threads=threads))
        call(lib.lapse_time_evaluate, self._handle, self._histories(data)._handle, options, scores)
        rows = [scores.scores[i] for i in range(scores.count)]
        table = {"name": Names(np.arange(len(rows)), [text(row.name) for row in rows]),
                 "unit": Names(np.zeros(len(rows), np.int64), [text(scores.unit_name)])}
        table.update({name: np.array([getattr(row, name) for row in rows]) for name in ("nll", "mae", "rmse", "crps")})
        for i, level in enumerate((50, 80, 95)):
            table[f"coverage_{level}"] = np.array([row.coverage[i] for row in rows])
        table["pit_distance"] = np.array([row.pit_distance for row in rows])
        return Table(table)

    def evaluate_returns(self, data: Events, within: Union[Duration, Sequence[Duration]] = "7d", now: Optional[Time] = None,
                         split: str = "test", bootstrap: int = 0, threads: int = 0) -> Table:
        """Scores of the chances that histories go on within each duration after `now`, on what they did later (model with
        when=True), beside a constant, a logistic regression and BG/NBD.

        Histories are known up to `now`: "end" is the longest duration of `within` before the end of the data, and so is None,
        unless the split divides sequences at a time: then it is that time. Columns: within, name, cases, returned (histories
        that came back), brier, brier_low, brier_high (with bootstrap), log_loss, mean_chance.

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> len(timed.evaluate_returns(data, within=["1h", "1d"], split="all")["name"])
        8
        """
        dataset, keeper, scores = self._histories(data), Keeper(), ffi.new("lapse_return_scores *")
        options = fill(keeper, "lapse_return_options", dict(split=split, bootstrap=bootstrap, threads=threads, samples=0))
        within = time_list("within", within)
        horizons = np.array([duration("within", length) for length in within], np.float64)
        options.horizons, options.horizon_count = ffi.from_buffer("double[]", horizons), len(horizons)
        options.now = _now_of(dataset, now) - (max(horizons, default=0.0) if now == "end" else 0.0)
        call(lib.lapse_return_evaluate, self._handle, dataset._handle, options, scores)
        rows = [(i, scores.horizons[i], scores.horizons[i].scores[k]) for i in range(len(horizons)) for k in range(4)]
        table: Dict[str, Any] = {"within": Names(np.array([i for i, _, _ in rows]), [str(length) for length in within]),
                                 "name": Names(np.arange(len(rows)), [text(row.name) for _, _, row in rows]),
                                 "cases": np.full(len(rows), scores.cases),
                                 "returned": np.array([horizon.returned for _, horizon, _ in rows])}
        for column in ("brier", "brier_low", "brier_high", "log_loss"):
            table[column] = np.array([getattr(row, column) for _, _, row in rows])
        table["mean_chance"] = np.array([row.mean for _, _, row in rows])
        return Table(table)

    def when(self, histories: Events, within: Union[Duration, Sequence[Duration]] = (), now: Optional[Time] = None,
             probabilities: Sequence[float] = (0.1, 0.5, 0.9), skip_unknown: bool = False, threads: int = 0,
             **columns: "Unpack[HistoryOptions]") -> Table:
        """The time of the next event of every history, by a model that was trained with when=True.

        Columns: sequence, start (the time that answers count from: now, or the last event), a time for each of the
        `probabilities` ("q0.5" is the median; missing where the event never comes), the mean of the time if the history
        goes on, the probability that it does ("alive"), and for each duration of `within` the probability that the next
        event comes within that time after the start ("within 7d"). Nothing has happened since the last event up to `now`:
        a time, "now", "end" (of the newest event in `histories`), "last" or None (each history's last event).

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> timed.when(data, within=["7d"]).column_names
        ['sequence', 'start', 'q0.1', 'q0.5', 'q0.9', 'mean', 'alive', 'within 7d']
        """
        dataset = self._histories(histories, columns)
        count, options = dataset.sequences, ffi.new("lapse_when_options *")
        levels = np.array([number("probabilities", level) for level in probabilities], np.float64)
        within = time_list("within", within)
        horizons = np.array([duration("within", length) for length in within], np.float64)
        lib.lapse_when_options_default(options)
        options.now = _now_of(dataset, now)
        options.probabilities, options.probability_count = ffi.from_buffer("double[]", levels), len(levels)
        options.horizons, options.horizon_count = ffi.from_buffer("double[]", horizons), len(horizons)
        options.skip_unknown = flag("skip_unknown", skip_unknown)
        set_integer(options, "threads", threads)
        start, quantiles = np.empty(count), np.empty((count, len(levels)))
        chances, mean, alive = np.empty((count, len(horizons))), np.empty(count), np.empty(count)
        options.mean, options.alive = ffi.from_buffer("double[]", mean), ffi.from_buffer("double[]", alive)
        call(lib.lapse_when_all, self._handle, dataset._handle, options, ffi.from_buffer("double[]", start),
             ffi.from_buffer("double[]", quantiles), ffi.from_buffer("double[]", chances), NULL)
        _report_unanswered(np.isnan(start))
        table: Dict[str, Any] = {"sequence": dataset._sequence_column(np.arange(count)), "start": Times(start)}
        for i, level in enumerate(levels):
            table[f"q{level:g}"] = Times(quantiles[:, i])
        table.update(mean=Times(mean), alive=alive)
        for i, length in enumerate(within):
            table[f"within {length}"] = np.ascontiguousarray(chances[:, i])
        return Table(table)

    def forecast(self, histories: Events, horizon: Duration = "7d", samples: int = 500, now: Optional[Time] = None,
                 seed: int = 1, skip_unknown: bool = False, threads: int = 0, max_events: int = 100_000_000,
                 **columns: "Unpack[HistoryOptions]") -> Table:
        """The events of every history until a horizon, from futures drawn event by event (model with when=True).

        Columns: sequence, event, expected (number of events of this type), any (probability of at least one); a row for
        each history and event type. `now` is as in `when`. A forecast that needs more than `max_events` drawn events by its estimate is an error
        (0: no limit); one that reaches them all the same warns, and has no rows of the histories that are left.

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> timed.forecast(data, horizon="7d", samples=10).column_names
        ['sequence', 'event', 'expected', 'any']
        """
        dataset = self._histories(histories, columns)
        made = ffi.new("lapse_forecasts *")
        options = fill(Keeper(), "lapse_forecast_options", dict(
            horizon=horizon, samples=samples, seed=seed, skip_unknown=skip_unknown, threads=threads, max_events=max_events))
        options.now = _now_of(dataset, now)
        interrupts: List[BaseException] = []
        callback = ffi.callback("lapse_on_forecast", lambda progress, context: not interrupts, error=False,
                                onerror=lambda kind, error, trace: interrupts.append(error))
        options.on_progress = callback
        call(lib.lapse_forecast, self._handle, dataset._handle, options, made)
        try:
            count, types = made.sequence_count, made.type_count
            size = count * types * np.dtype(np.float64).itemsize
            expected = np.frombuffer(ffi.buffer(made.type_expected, size), np.float64).copy()
            chance = np.frombuffer(ffi.buffer(made.type_any, size), np.float64).copy()
            drawn = np.frombuffer(ffi.buffer(made.samples, count * np.dtype(np.int64).itemsize), np.int64).copy()
        finally:
            lib.lapse_forecasts_clear(made)
        if interrupts:
            raise interrupts[0]
        _report_unanswered(drawn == 0)
        if (drawn < 0).any():
            warnings.warn(f"stopped at max_events: {(drawn < 0).sum():,} of {count:,} histories have no forecast", stacklevel=2)
        rows = np.repeat(drawn > 0, types)
        names = names_of(lib.lapse_model_event_type_name, self._handle, types)
        return Table({"sequence": dataset._sequence_column(np.repeat(np.arange(count), types)[rows]),
                      "event": Names(np.tile(np.arange(types), count)[rows], names, self._event_kind(dataset, "event")),
                      "expected": expected[rows], "any": chance[rows]})

    def session(self) -> "Session":
        """A history that grows event by event.

        >>> s = model.session(); s.append(0, model.event_types[0]); len(s.predict(3600, top=2))
        2
        """
        from .session import Session

        return Session(self)

    # ----------------------------------------------------------------------------------------- inspection ----

    def inspect(self, path: Path, data: Optional[Events] = None, **options: "Unpack[InspectOptions]") -> Dict[str, int]:
        """Writes a report on the model as one HTML page, with figures from these events if they are given, and returns the
        numbers of figures and of missing ones. Options are those of `lapse_inspect_options` in lapse_lab.h, by their names.

        >>> model.inspect("report.html", data, cases=100)["figures"] > 10
        True
        """
        keeper, made = Keeper(), ffi.new("lapse_inspection *")
        given = fill(keeper, "lapse_inspect_options", dict(options))
        dataset = self._histories(data) if data is not None else None
        call(lib.lapse_inspect, self._handle, dataset._handle if dataset else NULL, given, encode(path_text("path", path)), made)
        return {"figures": made.figures, "missing": made.missing}

    def kernel(self, lags: "Union[Duration, Sequence[Duration], np.ndarray[Any, Any]]") -> "np.ndarray[Any, np.dtype[np.float64]]":
        """The learned time kernel at lags in seconds (or texts such as "1h").

        >>> model.kernel(["1h", "1d"]).shape
        (2,)
        """
        spectrum = ffi.new("lapse_spectrum *")
        call(lib.lapse_model_spectrum, self._handle, spectrum)
        values = [duration("lags", lag) for lag in time_list("lags", lags)]
        out = np.array([lib.lapse_spectrum_kernel(spectrum, lag) for lag in values])
        lib.lapse_spectrum_clear(spectrum)
        return out

    def spectrum(self) -> Table:
        """The learned periods in seconds and their weights, the largest first.

        >>> model.spectrum().column_names
        ['period', 'harmonic', 'weight']
        """
        spectrum = ffi.new("lapse_spectrum *")
        call(lib.lapse_model_spectrum, self._handle, spectrum)
        order = [spectrum.order[i] for i in range(spectrum.count)]
        table = Table({"period": np.array([spectrum.period[i] for i in order]),
                       "harmonic": np.array([spectrum.harmonic[i] for i in order]),
                       "weight": np.array([spectrum.weight[i] for i in order])})
        lib.lapse_spectrum_clear(spectrum)
        return table

    def tensors(self) -> "Dict[str, np.ndarray[Any, Any]]":
        """What the model has learned, by the names in its file: read-only NumPy arrays, without a copy.

        >>> "event.embedding" in model.tensors()
        True
        """
        tensor, found = ffi.new("lapse_tensor *"), {}
        index = 0
        while lib.lapse_model_tensor(self._handle, index, tensor):
            view = _view(tensor.data, tensor.rows * tensor.cols, TENSOR_TYPES[tensor.type], self)
            found[text(tensor.name)] = view.reshape(tensor.rows, tensor.cols)
            index += 1
        return found

    def item_vectors(self) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """The vector of each event type, in the order of `event_types`; read-only, without a copy.

        >>> len(model.item_vectors()) == len(model.event_types)
        True
        """
        tensors = self.tensors()
        if "event.embedding" not in tensors:
            raise _c.UsageError("the model has no item vectors: it is a baseline")
        return tensors["event.embedding"][: lib.lapse_model_event_type_count(self._handle)]

    def score_vectors(self) -> "Tuple[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, np.dtype[np.float32]]]":
        """Of a recommender: the vectors of all items that scores are products with, and their biases, in the order of
        `event_types`: the score of item i is `session.state(time) @ vectors[i] + biases[i]`.

        >>> ranks = lapse.train(data, task="recommend", dims=8, epochs=1, progress=False)
        >>> vectors, biases = ranks.score_vectors(); vectors.shape == (len(ranks.event_types), 8)
        True
        """
        dims = lib.lapse_model_state_dims(self._handle)
        if dims == 0:
            raise _c.UsageError("the model has no item vectors: a network trained with task='recommend' does")
        items = lib.lapse_model_event_type_count(self._handle)
        vectors = _view(lib.lapse_model_item_vectors(self._handle), items * dims, np.float32, self)
        return vectors.reshape(items, dims), _view(lib.lapse_model_item_biases(self._handle), items, np.float32, self)
