"""Further verbs of the tool: simulate, pretrain and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

import numpy as np

from . import _c
from ._c import NULL, Keeper, call, encode, ffi, lib
from ._values import Duration, Path, duration, fill, path_text
from .dataset import Events, _view, dataset_of, names_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import BoundOptions, PretrainOptions, SimulateOptions


def simulate(path: Path, preset: str = "shop", catalogue: Optional[Path] = None, law: Optional[Path] = None,
             **options: "Unpack[SimulateOptions]") -> int:
    """Simulates events from a known process and writes them as CSV; returns their number. `catalogue` and `law` are files
    for the items and for the true probabilities. Options: sequences, items, days, seed.

    >>> lapse.simulate("small.csv", preset="cycle", sequences=20, seed=3) > 0
    True
    """
    keeper, handle = Keeper(), ffi.new("lapse_simulation **")
    call(lib.lapse_simulate, fill(keeper, "lapse_simulate_options", {"preset": preset, **options}), handle)
    simulation = ffi.gc(handle[0], lib.lapse_simulation_free)
    for function, file in ((lib.lapse_simulation_save, path), (lib.lapse_simulation_save_catalogue, catalogue),
                           (lib.lapse_simulation_save_law, law)):
        if file is not None:
            call(function, simulation, encode(path_text("path", file)))
    return int(lib.lapse_simulation_event_count(simulation))


class Vectors:
    """Vectors of items, for the option item_vectors of `train`.

    >>> vectors = lapse.pretrain(data, dims=8, epochs=1)
    >>> vectors.array.shape == (len(vectors.names), 8)
    True
    """

    def __init__(self, handle: Any) -> None:
        self._handle = ffi.gc(handle, lib.lapse_vectors_free)

    @classmethod
    def load(cls, path: Path) -> "Vectors":
        """Loads vectors of `save` or of `lapse pretrain`.

        >>> lapse.pretrain(data, epochs=1).save("v.safetensors"); len(lapse.Vectors.load("v.safetensors").names) > 0
        True
        """
        handle = ffi.new("lapse_vectors **")
        call(lib.lapse_vectors_load, encode(path_text("path", path)), handle)
        return cls(handle[0])

    def save(self, path: Path) -> None:
        """Writes the file that `train` takes as item_vectors.

        >>> lapse.pretrain(data, dims=8, epochs=1).save("v.safetensors")
        """
        call(lib.lapse_vectors_save, self._handle, encode(path_text("path", path)))

    @property
    def names(self) -> List[str]:
        """The items, in the order of the rows of `array`."""
        return names_of(lib.lapse_vectors_name, self._handle, lib.lapse_vectors_count(self._handle))

    @property
    def array(self) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """One row per item, without a copy; read-only."""
        count, dims = lib.lapse_vectors_count(self._handle), lib.lapse_vectors_dims(self._handle)
        first = lib.lapse_vectors_get(self._handle, 0) if count else NULL
        return _view(first, count * dims, np.float32, self).reshape(count, dims)

    @property
    def properties(self) -> Dict[str, str]:
        """How the vectors were made, as texts."""
        return _c.properties(lib.lapse_vectors_property, self._handle)

    def __repr__(self) -> str:
        return "<lapse.Vectors: {} items, {} dims>".format(*self.array.shape)


def pretrain(data: Events, **options: "Unpack[PretrainOptions]") -> Vectors:
    """Item vectors by skip-gram with negative sampling, from the sequences and from features in a catalogue. Options are
    those of `lapse pretrain`: catalogue, item, words, dims, window, session_gap, negative_count, popularity_power,
    learning_rate, epochs, split_by, seed.

    >>> lapse.pretrain(data, dims=8, epochs=1).save("v.safetensors")
    >>> lapse.train(data, task="recommend", dims=8, item_vectors="v.safetensors", epochs=1, progress=False).task
    'recommend'
    """
    keeper, handle = Keeper(), ffi.new("lapse_vectors **")
    given = fill(keeper, "lapse_pretrain_options", dict(options))
    call(lib.lapse_pretrain, dataset_of(data)._handle, given, NULL, NULL, handle)
    return Vectors(handle[0])


def bound(unit: Duration = 0, **options: "Unpack[BoundOptions]") -> int:
    """The number of frequency samples that approximate a kernel within epsilon at every lag up to span, with probability
    1 - delta: by the corrected proof, or with a unit of time by the claim as printed (docs/theory.md). Options: epsilon,
    span and unit (seconds or "30d"), sigma (radians per second), delta.

    >>> lapse.bound(epsilon=0.1, span="30d", sigma=1e-5) > 1000
    True
    """
    samples = ffi.new("int64_t *")
    given = fill(Keeper(), "lapse_bound_options", dict(options))
    call(lib.lapse_bound_samples, given, duration("unit", unit), samples)
    return int(samples[0])
