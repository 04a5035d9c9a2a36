"""Estimators in the style of scikit-learn, which they do not depend on."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from . import _c
from ._c import encode, lib
from .dataset import Dataset, dataset_of
from .model import Model
from .training import train


class _Estimator:
    """X is a table of events with the Arrow protocol; y is not used, because the events are the labels."""

    _task = ""
    _columns = ("sequence", "time", "event", "fields", "numbers", "action", "split")

    def __init__(self, sequence: Optional[str] = None, time: Optional[str] = None, event: Any = None,
                 fields: Sequence[str] = (), numbers: Sequence[str] = (), action: Optional[str] = None,
                 split: Optional[str] = None, at: Any = "+1h", progress: bool = False, **options: Any) -> None:
        self.sequence, self.time, self.event, self.fields, self.numbers = sequence, time, event, fields, numbers
        self.action, self.split, self.at, self.progress = action, split, at, progress
        self.options = options

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters by name: columns, `at`, and training options."""
        own = {name: getattr(self, name) for name in (*self._columns, "at", "progress")}
        return {**own, **self.options}

    def set_params(self, **params: Any) -> "_Estimator":
        """Sets parameters by name."""
        for name, value in params.items():
            if name in (*self._columns, "at", "progress"):
                setattr(self, name, value)
            else:
                self.options[name] = value
        return self

    def _dataset(self, X: Any) -> Dataset:
        return dataset_of(X) if isinstance(X, Dataset) else dataset_of(
            X, **{name: getattr(self, name) for name in self._columns})

    def fit(self, X: Any, y: Any = None) -> "_Estimator":
        """Trains `model_` on a table of events."""
        self.model_: Model = train(self._dataset(X), progress=self.progress, task=self._task, **self.options)
        self.classes_ = np.array(self.model_.event_types, dtype=object)
        return self

    def _best(self, X: Any, top: int, at: Any) -> Any:
        return self.model_.predict(self._dataset(X), at=self.at if at is None else at, top=top)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self.get_params().items() if v not in (None, (), False))
        return f"{type(self).__name__}({given})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=None,
                    classifier_tags=None, regressor_tags=None)


class Classifier(_Estimator):
    """Predicts the type of the next event.

    >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
    >>> c.predict_proba(frame).shape == (60, len(c.classes_))
    True
    """

    _task = "classify"

    def predict(self, X: Any, at: Any = None) -> np.ndarray:
        """The most probable next event of each history.

        >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
        >>> set(c.predict(frame)) <= set(c.classes_)
        True
        """
        return self._best(X, 1, at)[self.model_.targets[0]]

    def predict_proba(self, X: Any, at: Any = None) -> np.ndarray:
        """The probability of each of `classes_` for each history: [histories, classes].

        >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
        >>> bool(abs(c.predict_proba(frame).sum(axis=1) - 1).max() < 1e-5)
        True
        """
        table = self._best(X, len(self.classes_), at)
        out = np.zeros((len(table) // len(self.classes_), len(self.classes_)))
        columns = {name: i for i, name in enumerate(self.classes_)}
        codes = table._columns[self.model_.targets[0]]
        order = np.array([columns[name] for name in codes.names])[codes.codes]
        out[np.arange(len(table)) // len(self.classes_), order] = table["probability"]
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """The accuracy over all events of a table, each predicted from those before it.

        >>> c = lapse.Classifier(sequence="user", time="time", event="item", epochs=1).fit(frame)
        >>> 0 < c.score(frame) < 1
        True
        """
        return self.model_.evaluate(self._dataset(X), split="all", bootstrap=0)["accuracy"]


class Recommender(_Estimator):
    """Ranks the items of a catalogue.

    >>> r = lapse.Recommender(sequence="user", time="time", event="item", epochs=1, top=2).fit(frame)
    >>> r.predict(frame).shape
    (60, 2)
    """

    _task = "recommend"

    def __init__(self, top: int = 10, unseen: bool = False, **params: Any) -> None:
        super().__init__(**params)
        self.top, self.unseen = top, unseen

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters by name: those of a Classifier, `top` and `unseen`.

        >>> lapse.Recommender(top=3).get_params()["top"]
        3
        """
        return {**super().get_params(deep), "top": self.top, "unseen": self.unseen}

    def set_params(self, **params: Any) -> "_Estimator":
        """Sets parameters by name.

        >>> lapse.Recommender().set_params(top=3).top
        3
        """
        self.top, self.unseen = params.pop("top", self.top), params.pop("unseen", self.unseen)
        return super().set_params(**params)

    def predict(self, X: Any, at: Any = None) -> np.ndarray:
        """The `top` items for each history, the best first: [histories, top]; "" where there are fewer.

        >>> r = lapse.Recommender(event="item", epochs=1, top=3).fit(frame)
        >>> r.predict(frame).shape
        (60, 3)
        """
        dataset = self._dataset(X)
        table = self.model_.predict(dataset, at=self.at if at is None else at, top=self.top, unseen=self.unseen)
        out = np.full((dataset.sequences, _c.top_of(self.top, len(self.classes_))), "", dtype=object)
        out[table._columns["sequence"].codes, table["rank"] - 1] = table["item"]
        return out

    def predict_proba(self, X: Any, at: Any = None) -> np.ndarray:
        """The probabilities of the items that `predict` gives.

        >>> r = lapse.Recommender(event="item", epochs=1, top=3).fit(frame)
        >>> r.predict_proba(frame).shape
        (60, 3)
        """
        dataset = self._dataset(X)
        table = self.model_.predict(dataset, at=self.at if at is None else at, top=self.top, unseen=self.unseen)
        out = np.zeros((dataset.sequences, _c.top_of(self.top, len(self.classes_))))
        out[table._columns["sequence"].codes, table["rank"] - 1] = table["probability"]
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """NDCG@10 over all events of a table, each predicted from those before it.

        >>> r = lapse.Recommender(event="item", epochs=1, top=3).fit(frame)
        >>> 0 < r.score(frame) <= 1
        True
        """
        return self.model_.evaluate(self._dataset(X), split="all", bootstrap=0, cutoffs=(10,))["ndcg@10"]
