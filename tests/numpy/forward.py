"""forward.py: the forward pass of every Lapse model in NumPy, an independent implementation of docs/model.md.

It needs NumPy alone and has its own safetensors reader. It computes in double and pair by pair, in the order of the page: slow
and direct.

    forward.py MODEL EVENT@TIME ... --at TIME        prints the probability of every event type (models without fields)
"""
import json
import struct
import sys

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "U64": "<u8", "U8": "|u1"}
BEGINNING = b'{"__metadata__":{"checksum":"'


def unique(pairs):
    """A JSON object without duplicate names."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the header has a duplicate name")
    return found


def require(condition, message):
    if not condition:
        raise ValueError(message)


class Model:
    """A model file: metadata (strings), tensors (matrices by name), names (of event types), categories (of each field)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.read()
        self.names = self.vocabulary("vocabulary.event")
        require(len(self.names) == self.number("event_types"), "the vocabulary does not have event_types names")
        self.field_types = [self.metadata[f"field.{y}.type"] for y in range(int(self.metadata.get("fields", 0)))]
        self.categories = [None if field_type == "number" else self.vocabulary(f"vocabulary.field.{y}")
                           for y, field_type in enumerate(self.field_types)]

    def vocabulary(self, name):
        offset = [int(begin) for begin in self.tensors[name + ".offset"][0]]
        text = self.tensors[name + ".bytes"][0].tobytes()
        require(offset[-1] == len(text) and all(text[end - 1] == 0 for end in offset[1:]), f"{name} has a wrong offset")
        return [text[begin:end - 1].decode("utf-8") for begin, end in zip(offset[:-1], offset[1:])]

    def read(self):
        """Parses the file, and checks every rule of the page and of the safetensors format."""
        size = struct.unpack_from("<Q", self.bytes)[0]
        require(size % 8 == 0 and 8 + size <= len(self.bytes), "the header has a wrong size")
        text = self.bytes[8:8 + size]
        require(text.startswith(BEGINNING), "the checksum is not the first member")
        digits = text[29:45].decode("ascii")
        require(all(c in "0123456789abcdef" for c in digits) and text[45:46] == b'"', "the checksum is not 16 digits")
        require(text.rstrip(b" ").endswith(b"}"), "the header is not padded with spaces")
        header = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
        self.metadata = header.pop("__metadata__")
        require(self.metadata["checksum"] == digits, "the checksum is not in bytes 29 to 44")
        require(all(isinstance(value, str) for value in self.metadata.values()), "a value of the metadata is not a string")
        self.tensors, position = {}, 0
        for name, entry in header.items():
            require(set(entry) == {"dtype", "shape", "data_offsets"}, f"the entry of {name} has other members")
            begin, end = entry["data_offsets"]
            dtype, shape = np.dtype(TYPES[entry["dtype"]]), entry["shape"]
            require(len(shape) == 2 and min(shape) >= 0, f"{name} does not have two dimensions")
            require(begin == position, f"there is a gap before {name}")
            require(end - begin == dtype.itemsize * shape[0] * shape[1], f"{name} has the wrong size")
            data = self.bytes[8 + size + begin:8 + size + end]
            require(len(data) == end - begin, f"{name} is truncated")
            self.tensors[name] = np.frombuffer(data, dtype).reshape(shape)
            position = end
        require(8 + size + position == len(self.bytes), "there are bytes after the last tensor")

    def number(self, key):
        return int(self.metadata[key])

    def double(self, name):
        """A tensor, converted to double."""
        return self.tensors[name].astype(np.float64)


class History:
    """Past events, oldest first: types (numbers), times (seconds), gaps (None for the first event of the sequence), fields (a
    list for each event), the query time, and the user (the row of `user.embedding`; 0: unknown)."""

    def __init__(self, types, times, fields, query_time, gaps=None, user=0):
        self.types, self.times, self.fields, self.query_time = types, np.array(times, np.float64), fields, query_time
        self.user = user
        self.gaps = [None, *np.diff(self.times)] if gaps is None else gaps

    def window(self, context):
        return History(self.types[-context:], self.times[-context:], self.fields[-context:], self.query_time,
                       self.gaps[-context:], self.user)


# ---- input and output layers of networks ----


def softmax(x):
    weight = np.exp(x - x.max())
    return weight / weight.sum()


def layer(model, name, x):
    return x @ model.double(name + ".weight").T + model.double(name + ".bias")[0]


def gap_rows(model, window):
    """The rows g of the events' gaps."""
    offset, mean, deviation = (float(model.metadata[f"gap.{part}"]) for part in ("offset", "mean", "deviation"))
    return np.array([[0.0, 1.0] if gap is None else [min(10.0, max(-10.0, (np.log(gap + offset) - mean) / deviation)), 0.0]
                     for gap in window.gaps])


def input_layer(model, window):
    z = model.double("event.embedding")[window.types]
    if model.metadata["task"] == "recommend":
        z = z * np.sqrt(model.number("dims"))
    for y, field_type in enumerate(model.field_types):
        column = [event[y] for event in window.fields]
        if field_type == "number":
            mean, deviation = (float(model.metadata[f"field.{y}.{part}"]) for part in ("mean", "deviation"))
            v = np.array([[0.0 if b is None else min(10.0, max(-10.0, (b - mean) / deviation))] for b in column])
        else:
            v = model.double(f"field.{y}.embedding")[[model.categories[y].index(c) for c in column]]
        z = z + v @ model.double(f"field.{y}.weight").T
    if model.metadata.get("gap_input", "off") == "on":
        hidden = np.maximum(0, layer(model, "gap.hidden", gap_rows(model, window)))
        z = z + hidden @ model.double("gap.output.weight").T
    return z


def output_layer(model, states, target):
    """Probabilities from the state of each frequency sample."""
    if model.metadata["task"] == "classify":
        output = {"event": "output", "action": "output.action"}[target]
        return np.mean([softmax(layer(model, output, state)) for state in states], axis=0)
    items = model.double("output.weight" if model.metadata["item_output"] == "separate" else "event.embedding")
    return softmax(items @ np.mean(states, axis=0) + model.double("output.bias")[:, 0])


def mixture(model, states):
    """The law of the time of the next event, from the state of each frequency sample that does not know it: weights, means and
    deviations of log(seconds), and the rate of the background beside them, of all components."""
    mean, deviation = float(model.metadata["when.mean"]), float(model.metadata["when.deviation"])
    rows = [layer(model, "when.output", np.maximum(0, layer(model, "when.hidden", state))) for state in states]
    a, m, r = (np.array([row[part] for row in rows]) for part in np.split(np.arange(3 * model.number("when_components")), 3))
    weight = np.array([softmax(row) for row in a]) / len(rows)
    rate = np.zeros_like(a)
    if model.metadata.get("when_background", "none") != "none":
        b = np.array([row[-1] for row in rows])[:, None]
        rate = rate + np.exp(-(mean + deviation * 5 * np.tanh(b / 5)))
    return weight.ravel(), (mean + deviation * m).ravel(), (deviation * np.exp(5 * np.tanh(r / 5))).ravel(), rate.ravel()


def season_integral(model, start, seconds):
    """Integral of the season's level over these seconds."""
    if model.metadata.get("when_background", "none") != "week":
        return seconds
    level = model.double("when.season")[0]
    require(len(level) == 168 and abs(level.mean() - 1) < 1e-9 and level.min() > 0, "when.season is wrong")
    hours = np.arange(168) * 3600.0

    def since_monday(time):
        week, second = divmod(time - 4 * 86400, 7 * 86400)
        return week * 7 * 86400 + (level * np.clip(second - hours, 0, 3600)).sum()

    return since_monday(start + seconds) - since_monday(start)


# ---- attention ----


def layer_norm(model, name, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * model.double(name + ".weight")[0] + model.double(name + ".bias")[0]


def query_times(model, window):
    """s_q of every position."""
    if model.metadata["target_time"] == "unknown":
        return window.times
    return np.append(window.times[1:], window.query_time)


def time_features(model, window, sample):
    """x(q, i) for every pair: [n, n, E]; elements with i > q are not used."""
    count, times, queries = len(window.times), window.times, query_times(model, window)
    encoding = model.metadata["encoding"]
    if encoding == "none":
        return np.zeros((count, count, 0))
    if encoding in ("position", "sinusoid"):
        return np.broadcast_to(model.double("time.position")[:count], (count, count, model.number("dims")))
    require(encoding in ("mercer", "bochner", "bochner-normal", "bochner-invcdf", "random"), f"unknown encoding {encoding}")
    harmonics = np.arange(1, (model.number("harmonics") if encoding == "mercer" else 1) + 1)
    frequency = (2 * np.pi * harmonics * np.exp(-model.double("time.log_period")[sample])[:, None]).ravel()
    lags = queries[:, None] - times[None, :]
    if model.metadata["lags"] == "anchored":
        lags = np.broadcast_to(times - queries[-1], (count, count))
    phase = lags[:, :, None] * frequency / (2 * np.pi)
    angle = 2 * np.pi * (phase - np.round(phase))
    amplitude = model.double("time.amplitude")[0] if encoding == "mercer" else 1.0
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=2) * amplitude


def attention_block(model, name, z, x):
    """The block's output, and the weights of the last position: [heads, n]."""
    count, dims = z.shape
    width = dims // model.number("heads")
    normal = layer_norm(model, name + ".norm", z)
    roles = ("query", "key", "value")
    if x.shape[2] == 0:
        weight = {role: np.zeros((dims, 0)) for role in roles}
    elif model.metadata["combine"] == "add":
        weight = {role: model.double(f"{name}.{role}.event.weight") @ model.double(f"{name}.time.weight") for role in roles}
    else:
        weight = {role: model.double(f"{name}.{role}.time.weight") for role in roles}
    mlp = {"linear": (), "mlp-query": ("query",), "mlp": roles}[model.metadata.get("projection", "linear")]

    def outer(role, inner):
        return layer(model, f"{name}.{role}.outer", np.maximum(0, inner)) if role in mlp else inner

    query = layer(model, name + ".query.event", normal)
    key, value = layer(model, name + ".key.event", z), layer(model, name + ".value.event", z)
    attended, weights = np.zeros_like(z), np.zeros((dims // width, count))
    for q in range(count):
        query_q = outer("query", query[q] + x[q, q] @ weight["query"].T)
        keys = outer("key", key[:q + 1] + x[q, :q + 1] @ weight["key"].T)
        values = outer("value", value[:q + 1] + x[q, :q + 1] @ weight["value"].T)
        for first in range(0, dims, width):
            head = slice(first, first + width)
            probability = softmax(keys[:, head] @ query_q[head] / np.sqrt(width))
            attended[q, head] = probability @ values[:, head]
            weights[first // width, :q + 1] = probability
    hidden = layer_norm(model, name + ".forward.norm", normal + attended)
    inner = np.maximum(0, layer(model, name + ".forward.inner", hidden))
    return hidden + layer(model, name + ".forward.outer", inner), weights


def attention_blocks(model, z, x):
    """The state of the last position, and the weights of all blocks: [blocks, heads, n]."""
    weights = []
    for n in range(model.number("blocks")):
        z, of_block = attention_block(model, f"block.{n}", z, x)
        weights.append(of_block)
    return layer_norm(model, "output.norm", z[-1]), np.array(weights)


def attention_samples(model, history):
    """attention_blocks of each frequency sample."""
    window = history.window(model.number("context"))
    return [attention_blocks(model, input_layer(model, window), time_features(model, window, sample))
            for sample in range(int(model.metadata.get("frequency_samples", 1)))]


def attention_states(model, history):
    return [state for state, _ in attention_samples(model, history)]


def attention(model, history, target):
    return output_layer(model, attention_states(model, history), target)


def attention_when(model, history):
    """The query time is that of the last event."""
    return mixture(model, attention_states(model, History(history.types, history.times, history.fields, history.times[-1])))


# ---- target lag ----


def with_lag(model, window, state):
    """The state of each frequency sample, with the lag from the last event to the query time where the model reads it."""
    if "lags" not in model.metadata:
        return [state]
    states = []
    for sample in range(int(model.metadata.get("frequency_samples", 1))):
        phi = time_features(model, window, sample)[-1, -1]
        hidden = np.maximum(0, layer(model, "lag.hidden", state) + phi @ model.double("lag.time.weight").T)
        states.append(state + hidden @ model.double("lag.output.weight").T)
    return states


# ---- sasrec ----


def sasrec_samples(model, history):
    window = history.window(model.number("context"))
    z = input_layer(model, window)
    count = len(z)
    z = z + model.double("position.embedding")[:count][::-1]
    return [attention_blocks(model, z, np.zeros((count, count, 0)))]


def sasrec(model, history, target):
    (state, _), = sasrec_samples(model, history)
    return output_layer(model, with_lag(model, history.window(model.number("context")), state), target)


def sasrec_when(model, history):
    (state, _), = sasrec_samples(model, history)
    return mixture(model, [state])


# ---- lstm ----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_layer(model, name, x):
    weight_ih, weight_hh = model.double(name + ".weight_ih"), model.double(name + ".weight_hh")
    bias = model.double(name + ".bias_ih")[0] + model.double(name + ".bias_hh")[0]
    h = c = np.zeros(weight_hh.shape[1])
    y = []
    for x_q in x:
        i, f, g, o = np.split(x_q @ weight_ih.T + h @ weight_hh.T + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        y.append(h)
    return np.array(y)


def lstm_state(model, window):
    x = input_layer(model, window)
    for number in range(model.number("layers")):
        x = lstm_layer(model, f"lstm.{number}", x)
    return x[-1]


def lstm(model, history, target):
    window = history.window(model.number("context"))
    return output_layer(model, with_lag(model, window, lstm_state(model, window)), target)


def lstm_when(model, history):
    """The state without the lag to the target; the frequency samples have the same law."""
    return mixture(model, [lstm_state(model, history.window(model.number("context")))])


# ---- gru4rec ----


def gru_layer(model, name, x):
    weight_ih, weight_hh = model.double(name + ".weight_ih"), model.double(name + ".weight_hh")
    bias_ih, bias_hh = model.double(name + ".bias_ih")[0], model.double(name + ".bias_hh")[0]
    h = np.zeros(weight_hh.shape[1])
    y = []
    for x_q in x:
        x_r, x_z, x_n = np.split(x_q @ weight_ih.T + bias_ih, 3)
        a_r, a_z, a_n = np.split(h @ weight_hh.T + bias_hh, 3)
        r, z = sigmoid(x_r + a_r), sigmoid(x_z + a_z)
        h = (1 - z) * np.tanh(x_n + r * a_n) + z * h
        y.append(h)
    return np.array(y)


def gru4rec(model, history, target):
    window = history.window(model.number("context"))
    x = input_layer(model, window)
    for number in range(model.number("layers")):
        x = gru_layer(model, f"gru.{number}", x)
    return output_layer(model, with_lag(model, window, x[-1]), target)


# ---- rnn-attention ----


def rnn_attention(model, history, target):
    window = history.window(model.number("context"))
    h = input_layer(model, window)
    for number in range(model.number("layers")):
        h = gru_layer(model, f"gru.{number}", h)
    query, key = h[-1] @ model.double("local.query.weight").T, h @ model.double("local.key.weight").T
    c = np.zeros(h.shape[1])
    for h_j, key_j in zip(h, key):
        c = c + (model.double("local.score.weight")[0] @ sigmoid(query + key_j)) * h_j
    state = h[-1] @ model.double("state.global.weight").T + c @ model.double("state.local.weight").T
    return output_layer(model, with_lag(model, window, state), target)


# ---- caser and transrec ----


def caser(model, history, target):
    window = history.window(model.number("context"))
    length, x = model.number("conv_length"), input_layer(model, window)
    padded = np.concatenate([np.zeros((2 * length, x.shape[1])), x])  # zeros before the window
    joined = model.double("join.bias")[0]
    for h in range(1, length + 1):
        weight, bias = model.double(f"horizontal.{h}.weight"), model.double(f"horizontal.{h}.bias")[0]
        filters = len(bias)
        best = np.zeros(filters)
        for k in range(min(length - h + 1, len(x))):
            newest = len(padded) - 1 - k
            value = bias + sum(weight[m * filters:(m + 1) * filters] @ padded[newest - m] for m in range(h))
            best = np.maximum(best, value)
        joined = joined + best @ model.double(f"join.{h}.weight").T
    if model.number("conv_vertical"):
        weight = model.double("vertical.weight").reshape(-1, length)
        vertical = np.concatenate([sum(v[m] * padded[len(padded) - 1 - m] for m in range(length)) for v in weight])
        joined = joined + vertical @ model.double("join.vertical.weight").T
    state = np.maximum(0, joined) @ model.double("state.weight").T + model.double("user.embedding")[window.user]
    return output_layer(model, with_lag(model, window, state), target)


def transrec(model, history, target):
    window = history.window(model.number("context"))
    state = input_layer(model, window)[-1] + model.double("translation")[0] + model.double("user.embedding")[window.user]
    states = [2 * np.sqrt(model.number("dims")) * each for each in with_lag(model, window, state)]
    return output_layer(model, states, target)


# ---- rmtpp and timejoint ----


def gru_layers(model, window, x, target):
    for number in range(model.number("layers")):
        x = gru_layer(model, f"gru.{number}", x)
    return output_layer(model, with_lag(model, window, x[-1]), target)


def rmtpp(model, history, target):
    window = history.window(model.number("context"))
    return gru_layers(model, window, input_layer(model, window), target)


def timejoint(model, history, target):
    window = history.window(model.number("context"))
    one_hot = np.array([softmax(row) for row in layer(model, "bucket", gap_rows(model, window))])
    x = (input_layer(model, window) + one_hot @ model.double("bucket.embedding")) / 2
    return gru_layers(model, window, x, target)


# ---- baselines ----


def majority(model, history, target):
    return model.double("majority.probability")[0]


def popularity(model, history, target):
    count = model.double("popularity.count")[0]
    return (count + 1) / (count.sum() + len(count))


def recency(model, history, target):
    start = [int(begin) for begin in model.tensors["recency.start"][0]]
    times, half_life = model.tensors["recency.time"][0], model.tensors["recency.half_life"][0, 0]
    require(half_life == float(model.metadata["half_life"]), "the half-life of the metadata is another one")
    t = history.times[-1] if model.metadata["target_time"] == "unknown" else history.query_time
    by_type = [times[begin:end] for begin, end in zip(start[:-1], start[1:])]
    s = np.array([np.exp2(-(t - u[u < t]) / half_life).sum() for u in by_type])
    prior = np.array([len(u) + 1 for u in by_type]) / (len(times) + len(by_type))
    return (s + prior) / (1 + s.sum())


def markov_chain(model, history, order):
    strength = model.double("markov.strength")[0, 0]
    p = np.full(len(model.names), 1.0 / len(model.names))
    for k in range(min(order, len(history.types)) + 1):
        past = history.types[len(history.types) - k:]
        count = np.zeros(len(model.names))
        for row, row_count in zip(model.tensors[f"markov.{k}.gram"], model.tensors[f"markov.{k}.count"]):
            if list(row[:-1]) == past:
                count[row[-1]] = row_count[0]
        prior = len(model.names) if k == 0 else strength
        p = (count + prior * p) / (count.sum() + prior)
    return p


def markov(model, history, target):
    return markov_chain(model, history, model.number("order"))


def item_markov(model, history, target):
    return markov_chain(model, history, 1)


# Every row of the table of models in docs/model.md.
MODELS = {"attention": attention, "sasrec": sasrec, "lstm": lstm, "gru4rec": gru4rec, "rnn-attention": rnn_attention,
          "caser": caser, "transrec": transrec, "rmtpp": rmtpp, "timejoint": timejoint, "markov": markov, "item-markov": item_markov, "recency": recency,
          "popularity": popularity, "majority": majority}


# Models whose --when is rebuilt here.
WHEN = {"attention": attention_when, "sasrec": sasrec_when, "lstm": lstm_when}


def quantile(model, events, times, probability, fields=()):
    """The time by which the next event has come with this probability, by bisection of the cdf."""
    from math import erfc
    types = [model.names.index(event) for event in events]
    weight, mean, deviation, rate = WHEN[model.metadata["model"]](model, History(types, times, fields, times[-1]))
    low, high = (mean - 40 * deviation).min(), (mean + 40 * deviation).max()
    for _ in range(200):
        x = (low + high) / 2
        seen = season_integral(model, times[-1], np.exp(x)) if x < 35 else np.exp(min(x, 700))
        survival = sum(w * erfc((x - m) / s / 2 ** 0.5) / 2 * np.exp(-q * seen)
                       for w, m, s, q in zip(weight, mean, deviation, rate))
        low, high = (x, high) if survival > 1 - probability else (low, x)
    return times[-1] + np.exp(x)


def predict(model, events, times, query_time, fields=(), target="event", user=0):
    """Probabilities of all event types, in the order of model.names, for the event at query_time after these events. With
    target "action": of all actions, in the order of model.categories[0]. fields holds for every event a list of the texts
    (categories) and numbers (None where missing) of the model's fields. user is the index of the sequence in the training
    data plus 1, or 0 where it is unknown."""
    require(model.metadata["format"] == "lapse-model" and model.metadata["format.version"] == "2", "another format")
    require(model.metadata["task"] in ("classify", "recommend"), "another task")
    types = [model.names.index(event) for event in events]
    return MODELS[model.metadata["model"]](model, History(types, times, fields, query_time, user=user), target)


# Models whose attention weights add up to 1.
ATTENTION = {"attention": attention_samples, "sasrec": sasrec_samples}


def attention_weights(model, events, times, query_time):
    """How much the last event attends to each event of the window: [blocks, heads, n], the mean over frequency samples."""
    types = [model.names.index(event) for event in events]
    samples = ATTENTION[model.metadata["model"]](model, History(types, times, (), query_time))
    return np.mean([weights for _, weights in samples], axis=0)


def main(arguments):
    if len(arguments) < 4 or arguments[-2] != "--at":
        sys.exit(__doc__)
    model = Model(arguments[0])
    history = [argument.rpartition("@") for argument in arguments[1:-2]]
    p = predict(model, [event for event, _, _ in history], [float(t) for _, _, t in history], float(arguments[-1]))
    for k in np.argsort(-p, kind="stable"):
        print(f"{p[k]:.9f}  {model.names[k]}")


if __name__ == "__main__":
    main(sys.argv[1:])
