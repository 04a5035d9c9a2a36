"""Lapse predicts the next event of a history at any time.

>>> data = lapse.Dataset.from_arrow(frame, sequence="user", time="time", event="item")
>>> model = lapse.train(data, task="classify", epochs=1, progress=False)
>>> model.predict(frame, at=["+1h", "+7d"], top=2).to_dict()["rank"][:2]
[1, 2]
"""

from ._c import (FileError, FormatError, InputError, InternalError, LapseError, OutOfMemoryError, UnknownError,
                 UsageError, lib, text)
from ._table import Table
from .client import Client, ServerError
from .comparing import Comparison, compare, protocols, tune
from .dataset import Dataset
from .estimators import Classifier, Recommender
from .model import Model, Scores
from .session import Session
from .training import options, train
from .verbs import Vectors, bound, pretrain, simulate

__version__ = text(lib.lapse_version())
read_csv = Dataset.read_csv
load = Model.load

__all__ = ["Classifier", "Client", "Comparison", "Dataset", "FileError", "FormatError", "InputError", "InternalError", "LapseError", "Model",
           "OutOfMemoryError", "Recommender", "Scores", "ServerError", "Session", "Table", "UnknownError", "UsageError", "Vectors", "bound",
           "compare", "load", "options", "pretrain", "protocols", "read_csv", "simulate", "train", "tune"]
