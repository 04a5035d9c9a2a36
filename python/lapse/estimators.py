"""Estimators in the style of scikit-learn, which they do not depend on."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import _c
from ._c import lib, text
from ._table import Names, Table
from ._values import Column, Times, flag
from .dataset import Dataset, Events, dataset_of
from .model import QUERY, Model
from .training import check_option, train

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._options import TrainOptions


class NotFittedError(_c.UsageError, AttributeError):
    """An estimator was asked before `fit`."""


def _not_fitted(name: str) -> Exception:
    message = f"this {name} has no model yet: call fit first"
    if "sklearn" in sys.modules:  # its own error too, so that it is caught as such
        from sklearn.exceptions import NotFittedError as Other

        return type("NotFittedError", (NotFittedError, Other), {})(message)
    return NotFittedError(message)


class _Estimator:
    """X is a table of events with the Arrow protocol; y is not used in `fit`, because the events are the labels."""

    _task = ""
    _columns = ("sequence", "time", "event", "fields", "numbers", "action", "split")
    _own = (*_columns, "at", "per", "progress", "random_state")

    def __init__(self, sequence: Optional[Column] = None, time: Optional[Column] = None,
                 event: Union[Column, Sequence[Column], None] = None, fields: Union[Column, Sequence[Column]] = (),
                 numbers: Union[Column, Sequence[Column]] = (), action: Optional[Column] = None, split: Optional[Column] = None,
                 at: Times = "+1h", per: str = "history", progress: bool = False, random_state: Optional[int] = None,
                 **options: "Unpack[TrainOptions]") -> None:
        self.sequence, self.time, self.event, self.fields, self.numbers = sequence, time, event, fields, numbers
        self.action, self.split, self.at, self.per, self.progress = action, split, at, per, progress
        self.random_state = random_state
        self.options: Dict[str, Any] = {}
        self._set_options(dict(options))

    def _set_options(self, options: Dict[str, Any]) -> None:
        for name in options:
            check_option(name)
        self.options.update(options)

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters by name: columns, `at`, `per`, `random_state`, and training options."""
        return {**{name: getattr(self, name) for name in self._own}, **self.options}

    def set_params(self, **params: Any) -> "Self":
        """Sets parameters by name."""
        self._set_options({name: value for name, value in params.items() if name not in self._own})
        for name in self._own:
            if name in params:
                setattr(self, name, params[name])
        return self

    def _dataset(self, X: Any) -> Dataset:
        return dataset_of(X) if isinstance(X, Dataset) else dataset_of(X, **{name: getattr(self, name) for name in self._columns})

    def fit(self, X: Events, y: Optional[object] = None) -> "Self":
        """Trains `model_` on a table of events."""
        options = dict(self.options)
        if self.random_state is not None:
            options["seed"] = self.random_state
        if self.per not in ("history", "row"):
            raise _c.UsageError(f"per is '{self.per}'; it must be 'history' or 'row'", option="per", value=str(self.per))
        dataset = self._dataset(X)
        self.model_: Model = train(dataset, progress=flag("progress", self.progress), task=self._task, **options)  # type: ignore[typeddict-item]
        classes = [text(lib.lapse_model_target_name(self.model_._handle, self._target().encode(), i)) or ""
                   for i in range(lib.lapse_model_target_size(self.model_._handle, self._target().encode()))]
        values = Names(np.arange(len(classes)), classes, self.model_._kind(self._target())).values()
        self._order = np.argsort(values.astype(str) if values.dtype == object else values, kind="stable")
        self.classes_ = values[self._order]
        self._fingerprint = dataset.fingerprint
        counts = dict(zip(dataset.event_types, np.bincount(dataset.types, minlength=len(dataset.event_types)).tolist()))
        self._shares = np.array([counts.get(name, 0) for name in values.tolist()], np.float64)
        self._seen = set(map(hash, dataset._texts("sequence").list()))
        self.n_features_in_ = len(getattr(X, "columns", ())) or 3
        return self

    def _target(self) -> str:
        return self.model_.targets[0]

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise _not_fitted(type(self).__name__)
        return self.model_

    def _warn_of_known(self, dataset: Dataset) -> None:
        """Scores of histories that the model was trained on are too good: cross-validation must not divide a history."""
        names = dataset._texts("sequence").list()
        known = sum(map(self._seen.__contains__, map(hash, names)))
        if known and dataset.fingerprint != self._fingerprint:
            warnings.warn(f"{known} of {len(names)} histories were in the training data too: cross-validate with GroupKFold and "
                          "the sequences as groups", stacklevel=3)

    def _rows(self, X: Any, dataset: Dataset, top: int, unseen: bool = False) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each row of X predicted at its time from the rows before it: the numbers of the rows, their answers, and how many each has,
        -1 for the first row of a history."""
        if isinstance(X, Dataset) or not hasattr(X, "__getitem__"):
            raise _c.UsageError("per='row' needs a table with columns, such as a DataFrame: a Dataset has another order")
        roles = dataset.report["columns"]
        # The same sequences and times, with the number of the row as the event: it tells where each row is in the dataset.
        places = Table({"sequence": np.asarray(X[roles["sequence"]["column"]]), "time": np.asarray(X[roles["time"]["column"]]),
                        "row": np.arange(len(X))})
        order = Dataset.from_arrow(places, sequence="sequence", time="time", event="row")
        begin = dataset.offsets[:-1].astype(np.int64)
        counts = np.diff(dataset.offsets.astype(np.int64))
        queries = np.empty(dataset.events, QUERY)
        queries["sequence"], queries["time"] = np.repeat(np.arange(dataset.sequences), counts), dataset.times
        before = np.arange(dataset.events) - np.repeat(begin, counts)
        return (np.array(order.event_types)[order.types],
                *self.model_._answers(dataset, queries, top, unseen, False, self._target(), 0, events=before))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value not in (None, (), False))
        return f"{type(self).__name__}({given})"


class Classifier(_Estimator):
    """Predicts the type of the next event: after each history, or with per="row" for each row of X, from the rows before it.

    >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
    >>> c.predict_proba(frame).shape == (60, len(c.classes_))
    True
    """

    _task = "classify"
    _estimator_type = "classifier"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(estimator_type="classifier", target_tags=TargetTags(required=False), transformer_tags=None,
                    classifier_tags=ClassifierTags(), regressor_tags=None, input_tags=InputTags(two_d_array=False, string=True))

    def predict(self, X: Events, at: Optional[Times] = None) -> "np.ndarray[Any, Any]":
        """The most probable event: of each history, or with per="row" for each row of X.

        >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
        >>> set(c.predict(frame)) <= set(c.classes_)
        True
        """
        best = self.predict_proba(X, at).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Events, at: Optional[Times] = None) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """The probability of each of `classes_`: [histories, classes], or with per="row" [rows of X, classes]. The first event
        of a history, before which there is nothing, has the shares of the classes in the training data.

        >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1, per="row").fit(frame)
        >>> c.predict_proba(frame).shape == (len(frame), len(c.classes_))
        True
        """
        model, dataset = self._fitted(), self._dataset(X)
        if self.per == "row":
            row, best, counts = self._rows(X, dataset, 0)
        else:
            _, _, best, counts, _ = model._answers_to(dataset, self.at if at is None else at, 0, False, False, None, 0)
            row = np.arange(len(best))
        out = np.zeros((len(best), len(self.classes_)))
        np.put_along_axis(out, best["item"], best["probability"], axis=1)
        out[counts < 0] = self._shares / self._shares.sum()
        return out[np.argsort(row)][:, self._order]

    def score(self, X: Events, y: Optional[object] = None) -> float:
        """The accuracy over all events of a table, each predicted from those before it.

        >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
        >>> 0 < c.score(frame) < 1
        True
        """
        model, dataset = self._fitted(), self._dataset(X)
        self._warn_of_known(dataset)
        return model.evaluate(dataset, split="all", bootstrap=0)["accuracy"]


class Recommender(_Estimator):
    """Ranks the items of a catalogue.

    >>> r = lapse.Recommender(sequence="user", time="time", event="item", epochs=1, top=2).fit(frame)
    >>> r.predict(frame).shape
    (60, 2)
    """

    _task = "recommend"
    _own = (*_Estimator._own, "top", "unseen")

    def __init__(self, top: int = 10, unseen: bool = False, sequence: Optional[Column] = None, time: Optional[Column] = None,
                 event: Union[Column, Sequence[Column], None] = None, fields: Union[Column, Sequence[Column]] = (),
                 numbers: Union[Column, Sequence[Column]] = (), action: Optional[Column] = None, split: Optional[Column] = None,
                 at: Times = "+1h", per: str = "history", progress: bool = False, random_state: Optional[int] = None,
                 **options: "Unpack[TrainOptions]") -> None:
        super().__init__(sequence, time, event, fields, numbers, action, split, at, per, progress, random_state, **options)
        self.top, self.unseen = top, unseen

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=None, classifier_tags=None,
                    regressor_tags=None, input_tags=InputTags(two_d_array=False, string=True))

    def _ranked(self, X: Events, at: Optional[Times], member: str, empty: object) -> np.ndarray:
        model, dataset = self._fitted(), self._dataset(X)
        if self.per == "row":
            row, best, counts = self._rows(X, dataset, self.top, self.unseen)
            best, counts = best[np.argsort(row)], counts[np.argsort(row)]
        else:
            _, _, best, counts, _ = model._answers_to(dataset, self.at if at is None else at, self.top, self.unseen, False, None, 0)
        filled = np.arange(best.shape[1]) < counts[:, None]
        if member == "item":
            items = np.array(model.event_types, dtype=object)
            return np.where(filled, items[best["item"]], empty)
        return np.where(filled, best[member], empty)

    def predict(self, X: Events, at: Optional[Times] = None) -> "np.ndarray[Any, Any]":
        """The `top` items for each history, the best first: [histories, top]; "" where there are fewer.

        >>> r = lapse.Recommender(event="item", epochs=1, top=3).fit(frame)
        >>> r.predict(frame).shape
        (60, 3)
        """
        return self._ranked(X, at, "item", "")

    def predict_proba(self, X: Events, at: Optional[Times] = None) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """The probabilities of the items that `predict` gives.

        >>> r = lapse.Recommender(event="item", epochs=1, top=3).fit(frame)
        >>> r.predict_proba(frame).shape
        (60, 3)
        """
        return self._ranked(X, at, "probability", 0.0)

    def score(self, X: Events, y: Optional[object] = None) -> float:
        """NDCG@10 over all events of a table, each predicted from those before it.

        >>> r = lapse.Recommender(event="item", epochs=1, top=3).fit(frame)
        >>> 0 < r.score(frame) <= 1
        True
        """
        model, dataset = self._fitted(), self._dataset(X)
        self._warn_of_known(dataset)
        return model.evaluate(dataset, split="all", bootstrap=0, cutoffs=(10,))["ndcg@10"]
