"""Sessions: one growing history, and predictions at any time."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _c
from ._c import NULL, call, encode, ffi, lib
from ._table import Names, Table, Times
from ._values import Duration, Id, Time, duration, flag, id_text, integer, moment, number
from .model import Model

Field = Union[Id, None]


class Session:
    """A history that grows event by event. It belongs to one thread at a time. A time is unix seconds, ISO 8601, "now" or a
    datetime; or "+1h" or a timedelta, which count from the last event. Pickled with its model.

    >>> s = model.session()
    >>> s.append(0, model.event_types[0])
    >>> name, probability = s.predict(3600)[0]
    """

    def __init__(self, model: Model) -> None:
        handle = ffi.new("lapse_session **")
        call(lib.lapse_session_new, model._handle, handle)
        self.model: Model = model
        self.last: Optional[float] = None
        self._handle = ffi.gc(handle[0], lib.lapse_session_free)
        self._names = model.event_types
        self._fields = list(model.fields.items())
        self._error = ffi.new("lapse_error *")
        self._count = ffi.new("int64_t *")
        self._best: Dict[int, Any] = {}

    def _time(self, value: object, name: str = "time") -> float:
        """A time in unix seconds."""
        if type(value) is float and value - value == 0:
            return value
        relative, seconds = moment(name, value)
        if relative and self.last is None:
            raise _c.UsageError(f"{name} is {value!r}, which counts from the last event: append an event first", option=name)
        return seconds + (self.last or 0.0) if relative else seconds

    def _now(self, value: Optional[object]) -> float:
        return math.nan if value is None else self._time(value, "now")

    def __len__(self) -> int:
        return int(lib.lapse_session_count(self._handle))

    def __repr__(self) -> str:
        return f"<lapse.Session: {len(self)} events{f', the last at {self.last}' if self.last is not None else ''}, of {self.model!r}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return Session._restored, (self.model, self.save())

    @staticmethod
    def _restored(model: Model, saved: bytes) -> "Session":
        session = Session(model)
        session.restore(saved)
        return session

    def clear(self) -> None:
        """Removes all events.

        >>> s = model.session(); s.append(0, model.event_types[0]); s.clear(); s.last is None
        True
        """
        lib.lapse_session_clear(self._handle)
        self.last = None

    def append(self, time: Time, event: Id, **fields: Field) -> None:
        """Appends an event, with all fields that the model has, by their names. Times must not decrease.

        >>> s = model.session(); s.append("2026-11-15T12:00:00Z", model.event_types[0])
        """
        when = self._time(time)
        name = event if type(event) is str else id_text("event", event)
        if not self._fields and not fields:
            if lib.lapse_session_append(self._handle, when, encode(name), self._error):
                _c.raise_error(self._error)
        else:
            self._append(when, name, fields)
        self.last = when

    def _append(self, when: float, event: str, fields: Dict[str, Any]) -> None:
        missing = [name for name, _ in self._fields if name not in fields]
        unknown = [name for name in fields if name not in dict(self._fields)]
        if missing or unknown:
            raise _c.UsageError(f"the model's fields are {', '.join(n for n, _ in self._fields) or 'none'}: "
                                f"missing {missing}, unknown {unknown}")
        keeper, values = _c.Keeper(), ffi.new("lapse_value[]", len(self._fields))
        for value, (name, kind) in zip(values, self._fields):
            given = fields[name]
            if kind == "number":
                value.number = math.nan if given is None else number(name, given)
            else:
                value.text = keeper.string(None if given is None else id_text(name, given))
        coded = ffi.new("char[]", encode(event))
        row = ffi.new("lapse_event *", {"time": when, "event": coded, "fields": values,
                                        "field_count": len(self._fields)})
        call(lib.lapse_session_append_event, self._handle, row)

    def predict(self, time: Time, top: int = 10, unseen: bool = False) -> List[Tuple[Id, float]]:
        """The `top` most probable next events at this time (0: all), as pairs of name and probability, the highest first.

        >>> s = model.session(); s.append(0, model.event_types[0]); len(s.predict(60, top=1))
        1
        """
        when = self._time(time)
        best = self._best.get(top)
        if best is None:
            best = self._best[top] = ffi.new("lapse_recommendation[]", _c.top_of(integer("top", top), len(self._names)))
        if lib.lapse_session_recommend(self._handle, when, len(best), flag("unseen", unseen), best, self._count, self._error):
            _c.raise_error(self._error)
        names = self._names
        return [(names[b.item], b.probability) for b in best[0 : self._count[0]]]

    def predict_proba(self, time: Time, target: Optional[str] = None) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """The probability of every event type (or class of a target) at this time.

        >>> s = model.session(); s.append(0, model.event_types[0]); round(float(s.predict_proba(60).sum()), 6)
        1.0
        """
        when = self._time(time)
        target = target or self.model.targets[0]
        size = lib.lapse_model_target_size(self.model._handle, encode(target))
        if size == 0:
            raise _c.UnknownError(f"the model does not predict '{target}'")
        out = np.empty(size)
        call(lib.lapse_session_predict_target, self._handle, when, encode(target), ffi.from_buffer("double[]", out))
        return out

    def state(self, time: Time) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """The vector of the history at this time, of a recommender: its product with the vector of an item, plus the item's
        bias (`Model.score_vectors`), is the item's score.

        >>> ranks = lapse.train(data, task="recommend", dims=8, epochs=1, progress=False)
        >>> s = ranks.session(); s.append(0, ranks.event_types[0]); s.state(60).shape
        (8,)
        """
        out = np.empty(max(lib.lapse_model_state_dims(self.model._handle), 1), np.float32)
        call(lib.lapse_session_state, self._handle, self._time(time), ffi.from_buffer("float[]", out))
        return out

    def save(self, rows: bool = True) -> bytes:
        """The session as bytes, for `restore`. rows: with what has been computed of the events; less to compute, but far more
        bytes.

        >>> s = model.session(); s.append(0, model.event_types[0]); saved = s.save()
        >>> other = model.session(); other.restore(saved); other.predict(60) == s.predict(60)
        True
        """
        needed = ffi.new("int64_t *")
        call(lib.lapse_session_save, self._handle, rows, NULL, 0, needed)
        out = bytearray(needed[0])
        call(lib.lapse_session_save, self._handle, rows, ffi.from_buffer(out), len(out), needed)
        return bytes(out)

    def restore(self, saved: bytes) -> None:
        """Makes this session, of the same model, the saved one.

        >>> s = model.session(); s.append(0, model.event_types[0])
        >>> again = model.session(); again.restore(s.save(rows=False)); again.predict(60) == s.predict(60)
        True
        """
        call(lib.lapse_session_restore, self._handle, ffi.from_buffer(saved), len(saved))
        last = lib.lapse_session_last_time(self._handle)
        self.last = None if math.isnan(last) else last

    def attention(self, time: Time, block: int = -1, head: Optional[int] = None) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """How much the newest event attends to each event of the window, oldest first, when the next event happens at this
        time. The weights add up to 1. A block counted from the end is negative, as in a list; without a head, the mean over
        heads.

        >>> s = model.session(); s.append(0, model.event_types[0]); s.append(60, model.event_types[0])
        >>> len(s.attention(3600)), round(float(s.attention(3600).sum()), 6)
        (2, 1.0)
        """
        blocks = lib.lapse_model_attention_blocks(self.model._handle)
        heads = lib.lapse_model_attention_heads(self.model._handle)
        if blocks and not (-blocks <= block < blocks and (head is None or 0 <= head < heads)):
            raise _c.UsageError(f"block {block}, head {head}: the model has {blocks} blocks of {heads} heads")
        out = np.empty(lib.lapse_session_window(self._handle))
        call(lib.lapse_session_attention, self._handle, self._time(time), block % blocks if blocks else 0,
             -1 if head is None else head, ffi.from_buffer("double[]", out))
        return out

    def when(self, probabilities: Sequence[float] = (0.1, 0.5, 0.9), now: Optional[Time] = None) -> List[float]:
        """The times (unix seconds) by which the next event has come with these probabilities, given that nothing has
        happened up to `now`; the model was trained with when=True.

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> s = timed.session(); s.append(0, timed.event_types[0])
        >>> early, median, late = s.when([0.1, 0.5, 0.9]); early <= median <= late
        True
        """
        levels = np.array([number("probabilities", level) for level in probabilities], np.float64)
        out = np.empty(len(levels))
        ask = ffi.new("lapse_when *")
        lib.lapse_when_default(ask)
        ask.now = self._now(now)
        ask.probabilities, ask.probability_count = ffi.from_buffer("double[]", levels), len(levels)
        ask.quantiles = ffi.from_buffer("double[]", out)
        call(lib.lapse_session_when, self._handle, ask)
        return out.tolist()

    def within(self, until: Time, now: Optional[Time] = None) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """The probability that the next event comes by `until` and is of this type, for every event type.

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> s = timed.session(); s.append(0, timed.event_types[0])
        >>> bool(0 < s.within(86400).sum() < 1)
        True
        """
        out = np.empty(len(self._names))
        call(lib.lapse_session_within, self._handle, self._now(now), self._time(until, "until"),
             ffi.from_buffer("double[]", out))
        return out

    def sample(self, seed: int = 1, draw: int = 0, now: Optional[Time] = None) -> Tuple[float, Optional[Id]]:
        """A drawn next event: its time in unix seconds and its type. The same seed and draw give the same event.

        >>> timed = lapse.train(data, when=True, epochs=1, progress=False)
        >>> s = timed.session(); s.append(0, timed.event_types[0])
        >>> time, event = s.sample(seed=7); time >= 0
        True
        """
        time, event = ffi.new("double *"), ffi.new("int64_t *")
        call(lib.lapse_session_sample, self._handle, self._now(now), integer("seed", seed), integer("draw", draw), time, event)
        return time[0], self._names[event[0]] if event[0] >= 0 else None

    def sweep(self, start: Duration, end: Duration, points: int = 50, top: int = 5) -> Table:
        """Predictions at `points` lags after the last event, from `start` to `end`, spaced logarithmically.

        The event types are the `top` ones by their largest probability at any lag. Columns: lag (seconds), time, event,
        probability.

        >>> s = model.session(); s.append(0, model.event_types[0]); len(s.sweep("1h", "30d", 5, top=2))
        10
        """
        if self.last is None:
            raise _c.UsageError("a sweep needs a history: append an event first")
        lags = np.geomspace(duration("start", start), duration("end", end), integer("points", points))
        rows = np.stack([self.predict_proba(self.last + float(lag), self.model.targets[0]) for lag in lags])
        chosen = np.argsort(-rows.max(axis=0), kind="stable")[: _c.top_of(integer("top", top), rows.shape[1])]
        target = self.model.targets[0]
        names = [_c.text(lib.lapse_model_target_name(self.model._handle, encode(target), int(i))) for i in chosen]
        count = len(chosen)
        return Table({"lag": np.repeat(lags, count), "time": Times(np.repeat(self.last + lags, count)),
                      target: Names(np.tile(np.arange(count), len(lags)), names, self.model._kind(target)),
                      "probability": rows[:, chosen].reshape(-1)})
