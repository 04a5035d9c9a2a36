#!/usr/bin/env python3
"""forward_pass.py: loads a model file of Lapse and computes its predictions, with NumPy alone.

    docs/forward_pass.py MODEL.safetensors EVENT@TIME ... --at TIME
        prints the probability of every event type for the event at TIME (seconds), after these events; and for a model with
        --when the time by which the next event has come with probability 0.1, 0.5 and 0.9

This is docs/model.md (and, for `--when`, docs/when.md) as a program, in the order of the page. It computes in double and pair by
pair: slow and direct. The tests compare it with `lapse predict`. Shapes: n events of the window, D dims, H heads, E numbers of a
time feature, M components of a mixture.
"""
import copy
import json
import math
import struct
import sys

import numpy as np


# ---- container, metadata, vocabulary ----


class Model:
    """A model file: metadata (strings), tensors (matrices by name), names (of the event types), categories (of each field)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        size = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:8 + size])
        self.metadata = header.pop("__metadata__")
        if (self.metadata["format"], self.metadata["format.version"]) != ("lapse-model", "2"):
            raise ValueError("this is not a model file of format version 2")
        types = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "U64": "<u8", "U8": "|u1"}
        self.tensors = {}
        for name, entry in header.items():
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            self.tensors[name] = np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
        self.names = self.vocabulary("vocabulary.event")
        self.field_types = [self.metadata[f"field.{y}.type"] for y in range(self.number("fields", 0))]
        self.samples = self.number("frequency_samples", 1)  # frequency samples
        self.categories = [None if field_type == "number" else self.vocabulary(f"vocabulary.field.{y}")
                           for y, field_type in enumerate(self.field_types)]

    def vocabulary(self, name):
        offset, text = self.tensors[name + ".offset"][0].tolist(), self.tensors[name + ".bytes"].tobytes()
        return [text[begin:end - 1].decode() for begin, end in zip(offset[:-1], offset[1:])]

    def times(self):
        """The network of times of a model with `when`, as a model: its target time is unknown, and its lag to the target always 0."""
        other = copy.copy(self)
        other.metadata = {**self.metadata, "target_time": "unknown"}
        if self.metadata["model"] != "attention":
            other.metadata.pop("lags", None)
        own = {name[len("when."):]: tensor for name, tensor in self.tensors.items() if name.startswith("when.")}
        other.tensors = {**self.tensors, **own}
        return other

    def number(self, key, absent=None):
        return int(self.metadata.get(key, absent))

    def real(self, key):
        return float(self.metadata[key])

    def double(self, name):
        """A tensor as a matrix of doubles."""
        return self.tensors[name].astype(np.float64)

    def row(self, name):
        return self.double(name)[0]


class History:
    """The window of past events, oldest first: types (numbers), times (seconds), gaps (None: no event before), fields (a list for each
    event: texts of categories, and numbers, None where missing); the query time, and the row of user.embedding (0: unknown)."""

    def __init__(self, model, events, times, query_time, fields=(), user=0):
        times, window = np.array(times, np.float64), slice(-model.number("context"), None)
        self.all_types, self.gaps = [model.names.index(event) for event in events], [None, *np.diff(times)][window]
        self.types, self.times, self.fields = self.all_types[window], times[window], fields[window]
        self.query_time, self.user = query_time, user


# ---- input and output of networks ----


def softmax(x):
    weight = np.exp(x - x.max())
    return weight / weight.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer(model, name, x):
    return x @ model.double(name + ".weight").T + model.row(name + ".bias")


def standardized(x, mean, deviation):
    return np.clip((x - mean) / deviation, -10, 10)


def gap_rows(model, history):
    """g [n, 2]"""
    offset, mean, deviation = (model.real(f"gap.{part}") for part in ("offset", "mean", "deviation"))
    return np.array([[0, 1] if gap is None else [standardized(np.log(gap + offset), mean, deviation), 0] for gap in history.gaps])


def input_layer(model, history):
    """Z [n, D]"""
    z = model.double("event.embedding")[history.types]
    if model.metadata["task"] == "recommend" and model.metadata["model"] != "transrec":
        z = z * np.sqrt(model.number("dims"))
    for y, field_type in enumerate(model.field_types):
        column = [event[y] for event in history.fields]
        if field_type == "number":
            mean, deviation = model.real(f"field.{y}.mean"), model.real(f"field.{y}.deviation")
            v = np.array([[0 if b is None else standardized(b, mean, deviation)] for b in column])
        else:
            v = model.double(f"field.{y}.embedding")[[model.categories[y].index(c) for c in column]]
        z = z + v @ model.double(f"field.{y}.weight").T
    if model.metadata.get("gap_input", "off") == "on":
        z = z + np.maximum(0, layer(model, "gap.hidden", gap_rows(model, history))) @ model.double("gap.output.weight").T
    return z


def output_layer(model, states, target):
    """Probabilities, from the state of each frequency sample."""
    if model.metadata["task"] == "classify":
        output = {"event": "output", "action": "output.action"}[target]
        return np.mean([softmax(layer(model, output, state)) for state in states], axis=0)
    items = model.double("output.weight" if model.metadata["item_output"] == "separate" else "event.embedding")
    return softmax(item_scores(model, items, np.mean(states, axis=0)) + model.double("output.bias")[:, 0])


def item_scores(model, items, state):
    """Without the biases."""
    if model.metadata["model"] != "transrec":
        return items @ state
    return -(np.abs(state - items) if model.metadata["distance"] == "l1" else (state - items) ** 2).sum(axis=1)


# ---- attention ----


def layer_norm(model, name, x):
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * model.row(name + ".weight") + model.row(name + ".bias")


def time_features(model, history, sample):
    """x(q, i) of every pair [n, n, E]; those of i > q are not used."""
    times, n, encoding = history.times, len(history.times), model.metadata["encoding"]
    if encoding == "none":
        return np.zeros((n, n, 0))
    if encoding in ("position", "sinusoid"):
        return np.broadcast_to(model.double("time.position")[:n], (n, n, model.number("dims")))
    queries = times if model.metadata["target_time"] == "unknown" else np.append(times[1:], history.query_time)
    lags = queries[:, None] - times
    if model.metadata["lags"] == "anchored":
        lags = np.broadcast_to(times - queries[-1], (n, n))
    harmonics = np.arange(1, 1 + (model.number("harmonics") if encoding == "mercer" else 1))
    turns = lags[:, :, None] * (harmonics * np.exp(-model.double("time.log_period")[sample])[:, None]).ravel()
    angle = 2 * np.pi * (turns - np.round(turns))
    amplitude = model.row("time.amplitude") if encoding == "mercer" else 1
    return amplitude * np.concatenate([np.cos(angle), np.sin(angle)], axis=2)


def attention_block(model, name, z, x):
    """The block's output [n, D], and the weights of the last position [H, n]."""
    roles, (n, dims), width = ("query", "key", "value"), z.shape, z.shape[1] // model.number("heads")
    normal = layer_norm(model, name + ".norm", z)
    event = {role: layer(model, f"{name}.{role}.event", normal if role == "query" else z) for role in roles}
    time = {role: np.zeros((dims, 0)) for role in roles}
    for role in roles if x.shape[2] else ():
        time[role] = (model.double(f"{name}.{role}.event.weight") @ model.double(f"{name}.time.weight")
                      if model.metadata["combine"] == "add" else model.double(f"{name}.{role}.time.weight"))
    second = {"linear": (), "mlp-query": ("query",), "mlp": roles}[model.metadata.get("projection", "linear")]

    def project(role, rows, features):
        inner = event[role][rows] + features @ time[role].T
        return layer(model, f"{name}.{role}.outer", np.maximum(0, inner)) if role in second else inner

    attended, weights = np.zeros((n, dims)), np.zeros((dims // width, n))
    for q in range(n):
        query = project("query", q, x[q, q])
        key, value = (project(role, slice(q + 1), x[q, :q + 1]) for role in ("key", "value"))
        for h in range(dims // width):
            head = slice(h * width, (h + 1) * width)
            weights[h, :q + 1] = softmax(key[:, head] @ query[head] / np.sqrt(width))
            attended[q, head] = weights[h, :q + 1] @ value[:, head]
    g = layer_norm(model, name + ".forward.norm", normal + attended)
    return g + layer(model, name + ".forward.outer", np.maximum(0, layer(model, name + ".forward.inner", g))), weights


def attention_blocks(model, z, x):
    """The state [D], and the weights of the last position [blocks, H, n]."""
    weights = []
    for n in range(model.number("blocks")):
        z, last = attention_block(model, f"block.{n}", z, x)
        weights.append(last)
    return layer_norm(model, "output.norm", z[-1]), np.array(weights)


def attended_samples(model, history):
    """State and weights of each frequency sample, of the models with attention blocks."""
    z = input_layer(model, history)
    if model.metadata["model"] == "sasrec":
        return [attention_blocks(model, z + model.double("position.embedding")[:len(z)][::-1], np.zeros((len(z), len(z), 0)))]
    return [attention_blocks(model, z, time_features(model, history, sample)) for sample in range(model.samples)]


# ---- the other networks: the state [D], of caser [2 D], before the target lag ----


def sasrec(model, history):
    return attended_samples(model, history)[0][0]


def rnn_layer(model, name, x):
    h, y = np.zeros(x.shape[1]), []
    for x_q in x:
        h = np.maximum(0, x_q @ model.double(name + ".weight_ih").T + model.row(name + ".bias_ih") + model.double(name + ".weight_hh") @ h)
        y.append(h)
    return np.array(y)


def lstm_layer(model, name, x):
    h, y = np.zeros(x.shape[1]), []
    c = h
    for x_q in x:
        a = x_q @ model.double(name + ".weight_ih").T + h @ model.double(name + ".weight_hh").T
        i, f, g, o = np.split(a + model.row(name + ".bias_ih") + model.row(name + ".bias_hh"), 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        y.append(h)
    return np.array(y)


def gru_layer(model, name, x):
    h, y = np.zeros(x.shape[1]), []
    for x_q in x:
        u_r, u_z, u_n = np.split(x_q @ model.double(name + ".weight_ih").T + model.row(name + ".bias_ih"), 3)
        v_r, v_z, v_n = np.split(h @ model.double(name + ".weight_hh").T + model.row(name + ".bias_hh"), 3)
        r, z = sigmoid(u_r + v_r), sigmoid(u_z + v_z)
        h = (1 - z) * np.tanh(u_n + r * v_n) + z * h
        y.append(h)
    return np.array(y)


def layers(model, one, name, x):
    """The outputs of the last layer [n, D]."""
    for number in range(model.number("layers")):
        x = one(model, f"{name}.{number}", x)
    return x


def lstm(model, history):
    return layers(model, lstm_layer, "lstm", input_layer(model, history))[-1]


def gru4rec(model, history):
    return layers(model, gru_layer, "gru", input_layer(model, history))[-1]


def rmtpp(model, history):
    return layers(model, rnn_layer, "rnn", input_layer(model, history))[-1] if model.metadata["cell"] == "rnn" else gru4rec(model, history)


def rnn_attention(model, history):
    h = layers(model, gru_layer, "gru", input_layer(model, history))
    a = sigmoid(h[-1] @ model.double("local.query.weight").T + h @ model.double("local.key.weight").T) @ model.row("local.score.weight")
    return h[-1] @ model.double("state.global.weight").T + a @ h @ model.double("state.local.weight").T


def caser(model, history):
    length, z = model.number("conv_length"), input_layer(model, history)
    newest = np.concatenate([z[::-1], np.zeros((2 * length, z.shape[1]))])  # newest first, then zeros
    joined = model.row("join.bias")
    for h in range(1, length + 1):
        weight, bias = model.double(f"horizontal.{h}.weight"), model.row(f"horizontal.{h}.bias")
        weight = weight.reshape(h, len(bias), -1)
        values = [bias + sum(weight[m] @ newest[k + m] for m in range(h)) for k in range(min(length - h + 1, len(z)))]
        joined = joined + np.maximum(0, np.max(values, axis=0, initial=0)) @ model.double(f"join.{h}.weight").T
    if model.number("conv_vertical"):
        vertical = model.double("vertical.weight").reshape(-1, length) @ newest[:length]
        joined = joined + vertical.ravel() @ model.double("join.vertical.weight").T
    return np.concatenate([np.maximum(0, joined), model.double("user.embedding")[history.user]])


def transrec(model, history):
    return input_layer(model, history)[-1] + model.row("translation") + model.double("user.embedding")[history.user]


def timejoint(model, history):
    one_hot = np.array([softmax(row) for row in layer(model, "bucket", gap_rows(model, history))])
    return layers(model, lstm_layer, "lstm", (input_layer(model, history) + one_hot @ model.double("bucket.embedding")) / 2)[-1]


NETWORKS = {"attention": None, "sasrec": sasrec, "lstm": lstm, "gru4rec": gru4rec, "rnn-attention": rnn_attention, "caser": caser,
            "transrec": transrec, "rmtpp": rmtpp, "timejoint": timejoint}


def states(model, history):
    """The state of each frequency sample, with the target lag where the model reads it."""
    name = model.metadata["model"]
    if name == "attention":
        return [state for state, _ in attended_samples(model, history)]
    state = NETWORKS[name](model, history)
    found = [state]
    if "lags" in model.metadata:
        phi = [time_features(model, history, sample)[-1, -1] for sample in range(model.samples)]
        hidden = [np.maximum(0, layer(model, "lag.hidden", state) + each @ model.double("lag.time.weight").T) for each in phi]
        found = [state + each @ model.double("lag.output.weight").T for each in hidden]
    return found


# ---- baselines ----


def majority(model, history):
    return model.row("majority.probability")


def popularity(model, history):
    count = model.row("popularity.count")
    return (count + 1) / (count.sum() + len(count))


def recency(model, history):
    start, times, half_life = model.tensors["recency.start"][0].tolist(), model.row("recency.time"), model.row("recency.half_life")[0]
    t = history.times[-1] if model.metadata["target_time"] == "unknown" else history.query_time
    of_type = [times[begin:end] for begin, end in zip(start[:-1], start[1:])]
    s = np.array([np.exp2(-(t - u[u < t]) / half_life).sum() for u in of_type])
    prior = np.array([len(u) + 1 for u in of_type]) / (len(times) + len(of_type))
    return (s + prior) / (1 + s.sum())


def markov(model, history):
    types, order = history.all_types, model.number("order", 1)  # item-markov has no order: 1
    p = np.full(len(model.names), 1 / len(model.names))
    for k in range(min(order, len(types)) + 1):
        count = np.zeros(len(model.names))
        gram, times = model.tensors[f"markov.{k}.gram"], model.tensors[f"markov.{k}.count"][:, 0]
        match = (gram[:, :-1] == types[len(types) - k:]).all(axis=1)
        count[gram[match, -1]] = times[match]
        prior = len(model.names) if k == 0 else model.row("markov.strength")[0]
        p = (count + prior * p) / (count.sum() + prior)
    return p


BASELINES = {"markov": markov, "item-markov": markov, "recency": recency, "popularity": popularity, "majority": majority}


# ---- the event at a time, and the time of the next event ----


def predict(model, events, times, query_time, fields=(), target="event", user=0):
    """Probabilities of all event types, in the order of model.names, for the event at query_time after these events. With target
    "action": of all actions, in the order of model.categories[0]. user: the index of the sequence in the training data plus 1."""
    history = History(model, events, times, query_time, fields, user)
    name = model.metadata["model"]
    return BASELINES[name](model, history) if name in BASELINES else output_layer(model, states(model, history), target)


def attention_weights(model, events, times, query_time):
    """How much the last event attends to each event of the window [blocks, H, n], the mean over frequency samples."""
    history = History(model, events, times, query_time)
    return np.mean([weights for _, weights in attended_samples(model, history)], axis=0)


def mixture(model, history):
    """Weights, means and deviations of log(seconds) of all components, and the rates of the background beside them."""
    times = model.times()
    found = states(times, history)
    mean, deviation, m = model.real("when.mean"), model.real("when.deviation"), model.number("when_components")
    rows = np.array([layer(times, "mixture.output", np.maximum(0, layer(times, "mixture.hidden", state))) for state in found])
    weight = np.array([softmax(row) for row in rows[:, :m]]) / len(rows)
    rate = np.zeros_like(weight)
    if model.metadata.get("when_background", "none") != "none":
        rate = rate + np.exp(-(mean + deviation * 10 * np.tanh(rows[:, -1:] / 10)))
    spread = deviation * np.exp(5 * np.tanh(rows[:, 2 * m:3 * m] / 5))
    return weight.ravel(), (mean + deviation * rows[:, m:2 * m]).ravel(), spread.ravel(), rate.ravel()


def season_integral(model, start, seconds):
    """Integral of the season's level over the seconds from start on."""
    if model.metadata.get("when_background", "none") != "week":
        return seconds

    def since_monday(time):
        week, second = divmod(time - 4 * 86400, 7 * 86400)
        return week * 7 * 86400 + (model.row("when.season") * np.clip(second - np.arange(168) * 3600.0, 0, 3600)).sum()

    return since_monday(start + seconds) - since_monday(start)


def quantile(model, events, times, probability, fields=()):
    """The time by which the next event has come with this probability, by bisection."""
    history = History(model, events, times, times[-1], fields)
    weight, mean, deviation, rate = mixture(model, history)
    low, high = (mean - 40 * deviation).min(), (mean + 40 * deviation).max()
    for _ in range(200):
        x = (low + high) / 2
        seen = season_integral(model, times[-1], np.exp(x)) if x < 35 else np.exp(min(x, 700))
        tail = [math.erfc((x - m) / s / 2 ** 0.5) / 2 for m, s in zip(mean, deviation)]
        low, high = (x, high) if (weight * tail * np.exp(-rate * seen)).sum() > 1 - probability else (low, x)
    return times[-1] + np.exp(x)


def main(arguments):
    if len(arguments) < 4 or arguments[-2] != "--at":
        sys.exit(__doc__)
    model = Model(arguments[0])
    events, times = zip(*((event, float(time)) for event, _, time in (each.rpartition("@") for each in arguments[1:-2])))
    p = predict(model, events, times, float(arguments[-1]))
    for k in np.argsort(-p, kind="stable"):
        print(f"{p[k]:.9f}  {model.names[k]}")
    for probability in (0.1, 0.5, 0.9) if model.metadata.get("when") == "true" else ():
        print(f"{quantile(model, events, times, probability):.3f}  next event, {probability:.0%}")


if __name__ == "__main__":
    main(sys.argv[1:])
