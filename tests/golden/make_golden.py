"""make_golden.py: writes step.safetensors, whole training steps by PyTorch. tests/unit/test_golden.c compares with them.

    python3 tests/golden/make_golden.py          (needs NumPy and PyTorch; the tests do not)

Run it again only when the model changes. It draws everything from a fixed seed. The network is an independent implementation of
docs/model.md in its most direct form: it computes keys and values for every pair (q, i) from the features Phi(s_q - t_i) of the
pair's lag, one window at a time, in float64, with gradients by torch.autograd. It shares no code with Lapse and does not use
the reflection that Lapse computes lags with.

For each case (mercer, bochner, position) the file holds these tensors, each name preceded by the case's name and a point:

    event, position, time, query_time, target       [T, 1]: the batch, windows concatenated
    mask                                            [T, 1]: 1 at target positions, otherwise 0
    segment                                         [1, windows + 1]: first token of each window, and T
    loss                                            [1, 1]: sum over the target positions
    initial.NAME, gradient.NAME                     a parameter, and the gradient of the mean loss
    first.NAME                                      the parameter after Adam's step 1, with both moments 0
    moment1.NAME, moment2.NAME, later.NAME          Adam's moments before its step LATER, and the parameter after it

The metadata holds the sizes of each case and the optimizer's settings. Inputs (initial, moments, mask) are F32, results are
F64. The first step of Adam hardly depends on the size of a gradient. The later step does, so it tests clipping, l2 and the bias
corrections.
"""
import json
import math
import os
import struct

import numpy as np
import torch

LATER = 5
ADAM = {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "l2": 0.01, "clip": 0.25}
CASES = {
    "mercer": dict(event_types=6, dims=8, blocks=2, heads=2, context=7, periods=3, harmonics=2, target_known=1),
    "bochner": dict(event_types=5, dims=6, blocks=1, heads=3, context=7, periods=4, harmonics=1, target_known=0),
    "position": dict(event_types=7, dims=8, blocks=2, heads=1, context=7, periods=0, harmonics=0, target_known=1),
}
WINDOWS = (7, 1, 4, 6, 2, 7, 3)
PERIOD_MIN, PERIOD_MAX = 600.0, 1209600.0
TYPES = {"float32": "F32", "float64": "F64", "int32": "I32"}


def parameter_shapes(case):
    event_types, dims = case["event_types"], case["dims"]
    lags = 2 * case["periods"] * case["harmonics"]
    shapes = {"event.embedding": (event_types, dims)}
    if lags:
        shapes["time.log_period"] = (1, case["periods"])
    else:
        shapes["time.position"] = (case["context"], dims)
    if case["harmonics"] > 1:
        shapes["time.amplitude"] = (1, lags)
    for index in range(case["blocks"]):
        name = f"block.{index}"
        for part in ("norm", "forward.norm"):
            shapes[f"{name}.{part}.weight"] = shapes[f"{name}.{part}.bias"] = (1, dims)
        for role in ("query", "key", "value"):
            shapes[f"{name}.{role}.event.weight"] = (dims, dims)
            shapes[f"{name}.{role}.event.bias"] = (1, dims)
            shapes[f"{name}.{role}.time.weight"] = (dims, lags or dims)
        for part in ("inner", "outer"):
            shapes[f"{name}.forward.{part}.weight"] = (dims, dims)
            shapes[f"{name}.forward.{part}.bias"] = (1, dims)
    shapes["output.norm.weight"] = shapes["output.norm.bias"] = (1, dims)
    shapes["output.weight"], shapes["output.bias"] = (event_types, dims), (1, event_types)
    return shapes


def draw_parameters(random, case):
    """Random values for all parameters, also for those that training starts at 0 or 1: no gradient may vanish."""
    initial = {}
    for name, shape in parameter_shapes(case).items():
        value = random.normal(0, 0.4, shape)
        if name == "time.log_period":
            value = np.linspace(math.log(PERIOD_MIN), math.log(PERIOD_MAX), shape[1])[None] + random.normal(0, 0.1, shape)
        elif name.endswith("norm.weight") or name == "time.amplitude":
            value = 1 + 0.3 * value
        initial[name] = value.astype(np.float32)
    return initial


def draw_batch(random, case):
    """Windows of unix times with gaps from 0 to days. As in Lapse, the last query time of each window is 0."""
    batch = {name: [] for name in ("event", "position", "time", "query_time", "target", "mask")}
    for length in WINDOWS:
        gaps = random.exponential(random.choice([30.0, 7200.0, 200000.0], length + 1))
        gaps[random.random(length + 1) < 0.1] = 0
        times = 1.7e9 + np.round(np.cumsum(gaps), 3)
        event_types = random.integers(case["event_types"], size=length + 1)
        query_time = times[1:] if case["target_known"] else times[:-1]
        batch["event"] += list(event_types[:-1])
        batch["target"] += list(event_types[1:])
        batch["position"] += list(range(length))
        batch["time"] += list(times[:-1] - query_time[-1])
        batch["query_time"] += list(query_time - query_time[-1])
        batch["mask"] += list((random.random(length) < 0.7).astype(float))
    types = {"time": np.float64, "query_time": np.float64, "mask": np.float32}
    batch = {name: np.array(values, types.get(name, np.int32))[:, None] for name, values in batch.items()}
    batch["segment"] = np.cumsum((0,) + WINDOWS).astype(np.int32)[None]
    return batch


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, unbiased=False, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def layer(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def pair_features(p, case, time, query_time):
    """[n, n, E]: time features of position q attending to event i."""
    count = len(time)
    if not case["periods"]:
        return p["time.position"][:count].expand(count, count, -1)
    harmonics = torch.arange(1, case["harmonics"] + 1, dtype=torch.float64)
    frequency = (2 * math.pi * torch.exp(-p["time.log_period"][0])[:, None] * harmonics[None]).reshape(-1)
    angle = (query_time[:, None] - time[None, :])[:, :, None] * frequency
    amplitude = p.get("time.amplitude", torch.ones(1, 1, dtype=torch.float64))
    return torch.cat([torch.cos(angle), torch.sin(angle)], -1) * amplitude


def attention_block(p, case, name, z, x):
    count, dims = z.shape
    heads = case["heads"]
    n = layer_norm(p, name + ".norm", z)
    own = x[torch.arange(count), torch.arange(count)]
    query = layer(p, name + ".query.event", n) + own @ p[name + ".query.time.weight"].T
    key = layer(p, name + ".key.event", z)[None] + x @ p[name + ".key.time.weight"].T
    value = layer(p, name + ".value.event", z)[None] + x @ p[name + ".value.time.weight"].T
    query, key, value = (m.reshape(*m.shape[:-1], heads, dims // heads) for m in (query, key, value))
    score = torch.einsum("qhd,qihd->hqi", query, key) / math.sqrt(dims / heads)
    later = torch.triu(torch.ones(count, count, dtype=torch.bool), 1)
    probability = torch.softmax(score.masked_fill(later, -math.inf), -1)
    mixed = torch.einsum("hqi,qihd->qhd", probability, value).reshape(count, dims)
    hidden = layer_norm(p, name + ".forward.norm", n + mixed)
    return hidden + layer(p, name + ".forward.outer", torch.relu(layer(p, name + ".forward.inner", hidden)))


def total_loss(p, case, batch):
    loss = 0
    bounds = batch["segment"][0]
    for begin, end in zip(bounds[:-1], bounds[1:]):
        column = {name: torch.from_numpy(values[begin:end, 0].copy()) for name, values in batch.items() if name != "segment"}
        x = pair_features(p, case, column["time"], column["query_time"])
        z = p["event.embedding"][column["event"].long()]
        for index in range(case["blocks"]):
            z = attention_block(p, case, f"block.{index}", z, x)
        logits = layer(p, "output", layer_norm(p, "output.norm", z))
        each = torch.nn.functional.cross_entropy(logits, column["target"].long(), reduction="none")
        loss = loss + (each * column["mask"].double()).sum()
    return loss


def adam_step(p, gradient, moments, step):
    """Parameters after one step of torch.optim.Adam on the clipped gradient of the mean loss plus l2/2 * |p|^2."""
    p = {name: value.detach().clone().requires_grad_() for name, value in p.items()}
    total = {name: gradient[name] + ADAM["l2"] * p[name].detach() for name in p}
    norm = math.sqrt(sum(float((g * g).sum()) for g in total.values()))
    assert norm > 1.5 * ADAM["clip"], f"the norm {norm} does not exceed the clipping threshold enough"
    betas = (ADAM["beta1"], ADAM["beta2"])
    optimizer = torch.optim.Adam(p.values(), lr=ADAM["learning_rate"], betas=betas, eps=ADAM["epsilon"])
    for name, value in p.items():
        value.grad = total[name] * (ADAM["clip"] / norm)
        if moments:
            first, second = (torch.from_numpy(moments[which][name].astype(np.float64)) for which in ("moment1", "moment2"))
            optimizer.state[value] = {"step": torch.tensor(float(step - 1)), "exp_avg": first, "exp_avg_sq": second}
    optimizer.step()
    return {name: value.detach().numpy() for name, value in p.items()}


def make_case(random, name, case):
    initial, batch = draw_parameters(random, case), draw_batch(random, case)
    p = {key: torch.from_numpy(value.astype(np.float64)).requires_grad_() for key, value in initial.items()}
    loss = total_loss(p, case, batch)
    targets = batch["mask"].sum(dtype=np.float64)
    (loss / targets).backward()
    gradient = {key: value.grad for key, value in p.items()}
    # Moments of the size that a training run has: that of the clipped gradient.
    moments = {"moment1": {}, "moment2": {}}
    for key, value in initial.items():
        moments["moment1"][key] = random.normal(0, 0.01, value.shape).astype(np.float32)
        moments["moment2"][key] = (random.uniform(0.2, 2, value.shape) * 1e-5).astype(np.float32)
    tensors = {f"{name}.{key}": value for key, value in batch.items()}
    tensors[f"{name}.loss"] = np.array([[loss.item()]])
    parts = {"initial": initial, "gradient": {key: g.numpy() for key, g in gradient.items()}, **moments,
             "first": adam_step(p, gradient, None, 1), "later": adam_step(p, gradient, moments, LATER)}
    for part, values in parts.items():
        tensors.update({f"{name}.{part}.{key}": value for key, value in values.items()})
    return tensors


def save(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": TYPES[value.dtype.name], "shape": list(value.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.set_num_threads(1)
    random = np.random.default_rng(20260101)
    tensors, metadata = {}, {key: repr(value) for key, value in ADAM.items()}
    metadata["later"] = str(LATER)
    for name, case in CASES.items():
        tensors.update(make_case(random, name, case))
        metadata.update({f"{name}.{key}": str(value) for key, value in case.items()})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "step.safetensors")
    save(path, tensors, metadata)
    print(f"{len(tensors)} tensors, {os.path.getsize(path)} bytes in {path}")


if __name__ == "__main__":
    main()
