"""make_op_golden.py: writes op.safetensors: outputs and gradients of losses and convolutions as PyTorch computes them, which
tests/unit/test_op_golden.c compares with.

    python3 tests/golden/make_op_golden.py          (PyTorch and NumPy; not needed to run the tests)

Everything is drawn from a fixed seed. Inputs and parameters are F32, so that float and double kernels start from the same
numbers; torch computes in float64.

Losses, "<loss>.<case>." before the name (A rows, N negatives, I items, D columns), summed over rows:

    z [A, D]; items [I, D]; bias [I, 1]; target [A, 1]; negative [A, N]; loss [1, 1]; gradient.z, gradient.items, gradient.bias

The law of the time to the next event, "mixture.<case>." before the name (K components; src/formula/mixture.h),
summed over rows:

    mixture [A, 3 K]; gap [A, 1]: seconds, -c: right-censored at c; loss [1, 1]; gradient.mixture
    with a background: mixture [A, 3 K + 1]; season [A, 2]: integral over the gap, level at its end

Ops over segments, "<op>.<case>." before the name (T tokens of all sequences laid end to end):

    segment [1, sequences + 1]: token offsets
    input, gradient.input [T, D]; output, seed [T, columns]: the loss is sum(output * seed)
    weight, bias and their gradients: of conv1d as torch.nn.Conv1d has them, flattened to [filters, D * height]; of vertical
    [filters, height]

conv1d pads each sequence with height - 1 zeros before its start; vertical is torch.nn.Conv2d with one input channel and filters
of [height, 1], padded alike; max_rows is a maximum over the last `height` rows that exist.
"""
import json
import os
import struct

import numpy as np
import torch

LOSS_CASES = {
    "small": dict(rows=3, negatives=1, items=5, cols=2, spread=1.0),
    "wide": dict(rows=7, negatives=9, items=20, cols=11, spread=0.7),
    "many": dict(rows=5, negatives=70, items=150, cols=6, spread=1.0),
    "far": dict(rows=6, negatives=5, items=12, cols=9, spread=4.0),
}
REGULARIZATION = 0.5
SEQUENCE_CASES = {
    "one": dict(cols=3, filters=2, height=1, lengths=(4, 1, 6)),
    "short": dict(cols=5, filters=4, height=5, lengths=(1, 2, 3, 9, 4)),
    "long": dict(cols=12, filters=16, height=7, lengths=(40, 3, 17)),
}
# Of "far", the deviations are small and the gaps far from all means: by up to 60 deviations on both sides.
MIXTURE_CASES = {
    "near": dict(rows=24, components=5, spread=1.0, reach=1.0),
    "one": dict(rows=9, components=1, spread=0.5, reach=3.0),
    "far": dict(rows=40, components=3, spread=0.3, reach=12.0),
    "background": dict(rows=30, components=4, spread=1.0, reach=1.5, background=1),
    "background-far": dict(rows=40, components=3, spread=0.3, reach=6.0, background=1),
}
FLOOR, MEAN, DEVIATION, BOUND = 2.0, 5.0, 1.5, 5.0
TYPES = {"float32": "F32", "float64": "F64", "int32": "I32"}


def bce(r, s):
    return -torch.nn.functional.logsigmoid(r).sum() - torch.nn.functional.logsigmoid(-s).sum()


def bpr(r, s):
    return -torch.nn.functional.logsigmoid(r[:, None] - s).mean(1).sum()


def bpr_max(r, s):
    weight = torch.softmax(s, 1)
    return (-torch.log((weight * torch.sigmoid(r[:, None] - s)).sum(1)) + REGULARIZATION * (weight * s ** 2).sum(1)).sum()


def top1_max(r, s):
    return (torch.softmax(s, 1) * (torch.sigmoid(s - r[:, None]) + torch.sigmoid(s ** 2))).sum()


LOSSES = {"bce": bce, "bpr": bpr, "bpr-max": bpr_max, "top1-max": top1_max}


def draw(random, shape, spread=1.0):
    return random.normal(0, spread, shape).astype(np.float32)


def leaf(value):
    return torch.from_numpy(value).double().requires_grad_()


def make_loss(random, function, case):
    z, items = draw(random, (case["rows"], case["cols"]), case["spread"]), draw(random, (case["items"], case["cols"]))
    bias = draw(random, (case["items"], 1))
    target = random.integers(0, case["items"], (case["rows"], 1)).astype(np.int32)
    negative = random.integers(0, case["items"], (case["rows"], case["negatives"])).astype(np.int32)
    leaves = {"z": leaf(z), "items": leaf(items), "bias": leaf(bias)}
    scores = leaves["z"] @ leaves["items"].T + leaves["bias"][:, 0]
    loss = function(scores.gather(1, torch.from_numpy(target).long())[:, 0], scores.gather(1, torch.from_numpy(negative).long()))
    loss.backward()
    return {"z": z, "items": items, "bias": bias, "target": target, "negative": negative,
            "loss": loss.detach().numpy().reshape(1, 1), **{f"gradient.{k}": v.grad.numpy() for k, v in leaves.items()}}


def make_mixture(random, case):
    rows, count = case["rows"], case["components"]
    background = case.get("background", 0)
    mixture = draw(random, (rows, 3 * count + background), case["spread"])
    if case["reach"] > 5:
        mixture[:, 2 * count:3 * count] -= 1.5
    gap = np.exp(MEAN + DEVIATION * random.uniform(-case["reach"], case["reach"], (rows, 1)))
    gap[::2] *= -1
    gap[1] = 0
    x = leaf(mixture)
    a, m, r = x[:, :3 * count].split(count, 1)
    l = BOUND * torch.tanh(r / BOUND)
    censored = torch.from_numpy(gap < 0)
    seconds = torch.from_numpy(np.where(gap < 0, -gap, np.maximum(gap, FLOOR)))
    y = (torch.log(seconds) - MEAN) / DEVIATION
    z = (y - m) * torch.exp(-l)
    density = -l - z ** 2 / 2 - np.log(2 * np.pi) / 2
    survival = torch.special.log_ndtr(-z)
    tensors = {"mixture": mixture, "gap": gap}
    integral = torch.zeros(1, dtype=torch.float64)
    if background:
        level = random.uniform(0.05, 3, (rows, 1))
        tensors["season"] = np.concatenate([seconds.numpy() * random.uniform(0.5, 1.5, (rows, 1)), level], 1)
        log_rate = -(MEAN + DEVIATION * 2 * BOUND * torch.tanh(x[:, 3 * count:] / (2 * BOUND)))
        integral = torch.exp(log_rate) * torch.from_numpy(tensors["season"][:, :1])
        hazard = log_rate + torch.log(torch.from_numpy(level) * seconds * DEVIATION)
        density = torch.logaddexp(density, hazard + survival)
    log_likelihood = torch.logsumexp(torch.log_softmax(a, 1) + torch.where(censored, survival, density), 1)
    loss = (integral.sum(-1) - log_likelihood).sum()
    loss.backward()
    return {**tensors, "loss": loss.detach().numpy().reshape(1, 1), "gradient.mixture": x.grad.numpy()}


def conv1d(random, case):
    layer = torch.nn.Conv1d(case["cols"], case["filters"], case["height"]).double()
    start = {"weight": draw(random, tuple(layer.weight.shape)), "bias": draw(random, (1, case["filters"]))}
    with torch.no_grad():
        for name, value in layer.named_parameters():
            value.copy_(torch.from_numpy(start[name].reshape(value.shape)))
    start["weight"] = start["weight"].reshape(case["filters"], -1)

    def run(x):
        return layer(torch.nn.functional.pad(x.T[None], (case["height"] - 1, 0)))[0].T

    return run, start, dict(layer.named_parameters())


def vertical(random, case):
    layer = torch.nn.Conv2d(1, case["filters"], (case["height"], 1), bias=False).double()
    start = {"weight": draw(random, (case["filters"], case["height"]))}
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(start["weight"].reshape(layer.weight.shape)))

    def run(x):
        y = layer(torch.nn.functional.pad(x[None, None], (0, 0, case["height"] - 1, 0)))[0]
        return y.permute(1, 0, 2).reshape(len(x), -1)

    return run, start, dict(layer.named_parameters())


def max_rows(random, case):
    def run(x):
        padded = torch.nn.functional.pad(x.T[None], (case["height"] - 1, 0), value=-torch.inf)
        return torch.nn.functional.max_pool1d(padded, case["height"], stride=1)[0].T

    return run, {}, {}


OPS = {"conv1d": conv1d, "vertical": vertical, "max_rows": max_rows}


def make_op(random, make, case):
    run, start, parameters = make(random, case)
    lengths = case["lengths"]
    given = draw(random, (sum(lengths), case["cols"]))
    x = leaf(given)
    output = torch.cat([run(part) for part in x.split(lengths)])
    seed = draw(random, tuple(output.shape))
    (output * torch.from_numpy(seed)).sum().backward()
    return {"segment": np.cumsum((0,) + lengths).astype(np.int32)[None], "input": given, "seed": seed,
            "output": output.detach().numpy(), "gradient.input": x.grad.numpy(), **start,
            **{f"gradient.{k}": v.grad.numpy().reshape(start[k].shape) for k, v in parameters.items()}}


def save(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": TYPES[value.dtype.name], "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    torch.set_num_threads(1)
    random = np.random.default_rng(20260301)
    tensors, metadata = {}, {"regularization": str(REGULARIZATION)}
    for loss, function in LOSSES.items():
        for name, case in LOSS_CASES.items():
            tensors.update({f"{loss}.{name}.{key}": value for key, value in make_loss(random, function, case).items()})
            metadata.update({f"{loss}.{name}.{key}": str(case[key]) for key in ("rows", "negatives", "items", "cols")})
    for op, make in OPS.items():
        for name, case in SEQUENCE_CASES.items():
            tensors.update({f"{op}.{name}.{key}": value for key, value in make_op(random, make, case).items()})
            metadata.update({f"{op}.{name}.{key}": str(case[key]) for key in ("cols", "filters", "height")})
            metadata[f"{op}.{name}.sequences"] = str(len(case["lengths"]))
    metadata.update({"mixture.floor": str(FLOOR), "mixture.mean": str(MEAN), "mixture.deviation": str(DEVIATION)})
    for name, case in MIXTURE_CASES.items():
        tensors.update({f"mixture.{name}.{key}": value for key, value in make_mixture(random, case).items()})
        metadata.update({f"mixture.{name}.{key}": str(case[key]) for key in ("rows", "components")})
        metadata[f"mixture.{name}.background"] = str(case.get("background", 0))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "op.safetensors")
    save(path, tensors, metadata)
    print(f"{len(tensors)} tensors, {os.path.getsize(path)} bytes in {path}")


if __name__ == "__main__":
    main()
