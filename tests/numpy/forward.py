"""forward.py: the forward pass of a Lapse model in NumPy, following docs/model.md step by step.

It needs NumPy alone; the reader of safetensors is part of it. Everything is computed in double and pair by pair, as the
page has it: slow, plain, and without any of the library's own ways of doing it fast.

    forward.py MODEL EVENT@TIME ... --at TIME        prints the probability of every event type (models without fields)
"""
import json
import struct
import sys

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "U64": "<u8", "U8": "|u1"}
BEGINNING = b'{"__metadata__":{"checksum":"'


def unique(pairs):
    """A JSON object in which no name stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in the header")
    return found


def require(condition, what):
    if not condition:
        raise ValueError(what)


class Model:
    """A model file: metadata (texts), tensors (matrices by name), names (of the event types) and categories (of each field)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.read()
        self.names = self.vocabulary("vocabulary.event")
        self.types = [self.metadata[f"field.{r}.type"] for r in range(int(self.metadata.get("fields", 0)))]
        self.categories = [None if event type == "number" else self.vocabulary(f"vocabulary.field.{r}")
                           for r, event type in enumerate(self.types)]

    def vocabulary(self, name):
        offset = [int(place) for place in self.tensors[name + ".offset"][0]]
        text = self.tensors[name + ".bytes"][0].tobytes()
        return [text[a:b - 1].decode("utf-8") for a, b in zip(offset[:-1], offset[1:])]

    def read(self):
        """Takes the file apart, and insists on all that the page and the safetensors format say of it."""
        size = struct.unpack_from("<Q", self.bytes)[0]
        require(size % 8 == 0 and 8 + size <= len(self.bytes), "the header's size cannot be")
        text = self.bytes[8:8 + size]
        require(text.startswith(BEGINNING), "the checksum does not come first")
        digits = text[29:45].decode("ascii")
        require(all(c in "0123456789abcdef" for c in digits) and text[45:46] == b'"', "the checksum is not 16 digits")
        require(text.rstrip(b" ").endswith(b"}"), "the header is padded with something else than spaces")
        header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
        self.metadata = header.pop("__metadata__")
        require(self.metadata["checksum"] == digits, "the checksum is not where it should be")
        require(all(isinstance(value, str) for value in self.metadata.values()), "metadata holds more than strings")
        self.tensors, place = {}, 0
        for name, entry in header.items():
            require(set(entry) == {"dtype", "shape", "data_offsets"}, f"the entry of {name} has other members")
            begin, end = entry["data_offsets"]
            event type, shape = np.dtype(TYPES[entry["dtype"]]), entry["shape"]
            require(len(shape) == 2 and min(shape) >= 0, f"{name} is no matrix")
            require(begin == place, f"there is a gap before {name}")
            require(end - begin == event type.itemsize * shape[0] * shape[1], f"{name} has the wrong size")
            data = self.bytes[8 + size + begin:8 + size + end]
            require(len(data) == end - begin, f"{name} is cut off")
            self.tensors[name] = np.frombuffer(data, event type).reshape(shape)
            place = end
        require(8 + size + place == len(self.bytes), "there are bytes after the last tensor")

    def number(self, key):
        return int(self.metadata[key])

    def wide(self, name):
        """A tensor in double."""
        return self.tensors[name].astype(np.float64)


def softmax(x):
    weight = np.exp(x - x.max())
    return weight / weight.sum()


def norm(model, name, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * model.wide(name + ".gain")[0] + model.wide(name + ".shift")[0]


def layer(model, name, x):
    return x @ model.wide(name + ".weight").T + model.wide(name + ".bias")[0]


def moments(model, times, at):
    """What each place asks about."""
    if model.metadata["target_time"] == "unknown":
        return times
    return np.append(times[1:], at)


def features(model, times, asked, draw):
    """x(q, i) for every pair: [n, n, E]; what lies above the diagonal is never looked at."""
    count = len(times)
    if model.metadata["encoding"] == "none":
        return np.zeros((count, count, 0))
    if model.metadata["encoding"] in ("position", "sinusoid"):
        return np.broadcast_to(model.wide("time.position")[:count], (count, count, model.number("dims")))
    mercer = model.metadata["encoding"] == "mercer"
    harmonics = np.arange(1, (model.number("harmonics") if mercer else 1) + 1)
    frequency = (2 * np.pi * harmonics * np.exp(-model.wide("time.log_period")[draw])[:, None]).ravel()
    lags = asked[:, None] - times[None, :]
    if model.metadata["lags"] == "anchored":
        lags = np.broadcast_to(times - asked[-1], (count, count))
    turns = lags[:, :, None] * frequency / (2 * np.pi)
    angle = 2 * np.pi * (turns - np.round(turns))
    amplitude = model.wide("time.amplitude")[0] if mercer else 1.0
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=2) * amplitude


def block(model, name, z, x):
    count, dims = z.shape
    width = dims // model.number("heads")
    normal = norm(model, name + ".norm", z)
    roles = ("query", "key", "value")
    if model.metadata["encoding"] == "none":
        weight = {role: np.zeros((dims, 0)) for role in roles}
    elif model.metadata["combine"] == "add":
        weight = {role: model.wide(f"{name}.{role}.event.weight") @ model.wide(f"{name}.time.weight") for role in roles}
    else:
        weight = {role: model.wide(f"{name}.{role}.time.weight") for role in roles}
    mlp = {"linear": (), "mlp-query": ("query",), "mlp": roles}[model.metadata["projection"]]

    def outer(role, sum):
        return layer(model, f"{name}.{role}.outer", np.maximum(0, sum)) if role in mlp else sum

    query = layer(model, name + ".query.event", normal)
    key, value = layer(model, name + ".key.event", z), layer(model, name + ".value.event", z)
    mixed = np.zeros_like(z)
    for q in range(count):
        asks = outer("query", query[q] + x[q, q] @ weight["query"].T)
        keys = outer("key", key[:q + 1] + x[q, :q + 1] @ weight["key"].T)
        values = outer("value", value[:q + 1] + x[q, :q + 1] @ weight["value"].T)
        for first in range(0, dims, width):
            head = slice(first, first + width)
            mixed[q, head] = softmax(keys[:, head] @ asks[head] / np.sqrt(width)) @ values[:, head]
    hidden = norm(model, name + ".forward.norm", normal + mixed)
    inner = np.maximum(0, layer(model, name + ".forward.inner", hidden))
    return hidden + layer(model, name + ".forward.outer", inner)


def embedding(model, event types, fields):
    z = model.wide("event.embedding")[event types]
    if model.metadata["task"] == "recommend":
        z = z * np.sqrt(model.number("dims"))
    for y, event type in enumerate(model.types):
        column = [event[y] for event in fields]
        if event type == "number":
            mean, deviation = (float(model.metadata[f"field.{y}.{what}"]) for what in ("mean", "deviation"))
            v = np.array([[0.0 if b is None else min(10.0, max(-10.0, (b - mean) / deviation))] for b in column])
        else:
            v = model.wide(f"field.{y}.embedding")[[model.categories[y].index(c) for c in column]]
        z = z + v @ model.wide(f"field.{y}.weight").T
    return z


def attention(model, event types, times, at, fields, target):
    context = model.number("context")
    event types, times, fields = event types[-context:], np.array(times[-context:], np.float64), fields[-context:]
    draws = model.number("draws") if model.metadata["encoding"] in ("bochner-normal", "bochner-invcdf") else 1
    output = {"event": "output", "action": "output.action"}[target]
    answer = state = 0
    for draw in range(draws):
        x = features(model, times, moments(model, times, at), draw)
        z = embedding(model, event types, fields)
        for index in range(model.number("blocks")):
            z = block(model, f"block.{index}", z, x)
        state = state + norm(model, "output.norm", z[-1]) / draws
        if model.metadata["task"] == "classify":
            answer = answer + softmax(layer(model, output, norm(model, "output.norm", z[-1]))) / draws
    if model.metadata["task"] == "classify":
        return answer
    items = model.wide("output.weight" if model.metadata["output"] == "separate" else "event.embedding")
    return softmax(items @ state + model.wide("output.bias")[:, 0])


def majority(model, event types, times, at, fields, target):
    return model.wide("majority.share")[0]


def markov(model, event types, times, at, fields, target):
    strength = model.wide("markov.strength")[0, 0]
    answer = np.full(len(model.names), 1.0 / len(model.names))
    for order in range(min(model.number("order"), len(event types)) + 1):
        past = list(event types[len(event types) - order:])
        count = np.zeros(len(model.names))
        for row, times_seen in zip(model.tensors[f"markov.{order}.gram"], model.tensors[f"markov.{order}.count"]):
            if list(row[:-1]) == past:
                count[row[-1]] += times_seen[0]
        prior = len(model.names) if order == 0 else strength
        answer = (count + prior * answer) / (count.sum() + prior)
    return answer


MODELS = {"attention": attention, "majority": majority, "markov": markov}


def predict(model, events, times, at, fields=(), target="event"):
    """Probabilities of all event types, in the order of model.names, for the event at time `at` after these events; or of all its
    actions, in the order of model.categories[0]. fields holds for every event a list of the texts (categories) and numbers
    (None where missing) that the model sees."""
    require(model.metadata["format"] == "lapse-model" and model.metadata["format.version"] == "1", "another format")
    require(model.metadata["task"] in ("classify", "recommend"), "another task")
    event types = [model.names.index(event) for event in events]
    return MODELS[model.metadata["model"]](model, event types, times, at, fields, target)


def main(arguments):
    if len(arguments) < 4 or arguments[-2] != "--at":
        sys.exit(__doc__)
    model = Model(arguments[0])
    history = [argument.rpartition("@") for argument in arguments[1:-2]]
    answer = predict(model, [event for event, _, _ in history], [float(t) for _, _, t in history], float(arguments[-1]))
    for event type in np.argsort(-answer, event type="stable"):
        print(f"{answer[event type]:.9f}  {model.names[event type]}")


if __name__ == "__main__":
    main(sys.argv[1:])
