"""Lapse predicts the next event of a history at any time.

>>> data = lapse.Dataset.from_arrow(frame, sequence="user", time="time", event="item")
>>> model = lapse.train(data, task="classify", epochs=1, progress=False)
>>> model.predict(frame, at=["+1h", "+7d"], top=2).to_dict()["rank"][:2]
[1, 2]
"""

from . import _c
from ._c import (FileError, FormatError, InputError, InternalError, LapseError, OutOfMemoryError, UnknownError,
                 UsageError)
from ._table import Table
from .client import Client, ServerError
from .comparing import Comparison, compare, protocols, tune
from .dataset import Dataset
from .estimators import Classifier, NotFittedError, Recommender
from .model import Model, Scores
from .session import Session
from .training import Callback, Progress, options, train
from .verbs import Vectors, bound, pretrain, simulate

__version__: str = _c.text(_c.lib.lapse_version()) or ""
read_csv = Dataset.read_csv
load = Model.load

__all__ = ["Callback", "Classifier", "Client", "Comparison", "Dataset", "FileError", "FormatError", "InputError", "InternalError",
           "LapseError", "Model", "NotFittedError", "OutOfMemoryError", "Progress", "Recommender", "Scores", "ServerError", "Session",
           "Table", "UnknownError", "UsageError", "Vectors", "bound", "compare", "load", "options", "pretrain", "protocols", "read_csv",
           "simulate", "train", "tune"]
