#!/usr/bin/env python3
"""question.py: latency of one query to a recommender: PyTorch and ONNX Runtime compared with Lapse, on one thread.

    question.py [--question build/bench/question] [--encoding mercer|position] [--rounds N]

All do the same work: a history of 200 events, 3,416 items, 50 dims, 2 blocks, 1 head, exact lags over 80 frequencies (mercer) or
learned positions (position), the top 10 of the items that are not in the history. PyTorch and ONNX Runtime run the whole history
through the network for each query, as their users do; the last block computes the query of the last position only. PyTorch runs
eagerly, traced and frozen, and compiled where it can; ONNX Runtime runs where it is installed. Every mode must return the result
of the eager mode before it is timed. The ratios are the best median of PyTorch or ONNX Runtime to that of Lapse.
"""

import argparse
import io
import subprocess
import time

import torch
from torch import nn

ITEMS, DIMS, BLOCKS, CONTEXT, TOP, FREQUENCIES = 3416, 50, 2, 200, 10, 80


def reflect(x, cosine, sine):
    """M(t') x for every row x, where M(t') u(t) = u(t' - t)."""
    c, s = x[..., :FREQUENCIES], x[..., FREQUENCIES:]
    return torch.cat((c * cosine + s * sine, c * sine - s * cosine), -1)


class Block(nn.Module):
    def __init__(self, timed, last):
        super().__init__()
        self.timed, self.last = timed, last
        self.norm, self.forward_norm = nn.LayerNorm(DIMS), nn.LayerNorm(DIMS)
        self.query, self.key, self.value = (nn.Linear(DIMS, DIMS) for _ in range(3))
        self.inner, self.outer = nn.Linear(DIMS, DIMS), nn.Linear(DIMS, DIMS)
        if timed:
            self.query_time, self.key_time, self.value_time = (
                nn.Linear(2 * FREQUENCIES, DIMS, bias=False) for _ in range(3)
            )
        self.register_buffer("mask", torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1))

    def forward(self, z, basis, cosine, sine):
        normal = self.norm(z)
        mask = self.mask
        if self.last:
            normal, mask = normal[-1:], mask[-1:]
            cosine, sine = cosine[-1:], sine[-1:]
        query, key, value = self.query(normal), self.key(z), self.value(z)
        if self.timed:
            own = basis[-1:] if self.last else basis
            query = query + self.query_time(reflect(own, cosine, sine))
            time_query = reflect(query @ self.key_time.weight, cosine, sine)
            scores = query @ key.T + time_query @ basis.T
        else:
            scores = query @ key.T
        probabilities = torch.softmax(scores / DIMS**0.5 + mask, -1)
        out = normal + probabilities @ value
        if self.timed:
            out = out + self.value_time(reflect(probabilities @ basis, cosine, sine))
        h = self.forward_norm(out)
        return h + self.outer(torch.relu(self.inner(h)))


class Recommender(nn.Module):
    def __init__(self, timed):
        super().__init__()
        self.timed = timed
        self.items = nn.Embedding(ITEMS, DIMS)
        self.bias = nn.Parameter(torch.zeros(ITEMS))
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, DIMS))
        self.blocks = nn.ModuleList(Block(timed, i == BLOCKS - 1) for i in range(BLOCKS))
        self.norm = nn.LayerNorm(DIMS)
        self.register_buffer("frequency", 6.28318530718 / torch.logspace(3, 8, FREQUENCIES, dtype=torch.float64))

    def forward(self, items, times, query_times):
        z = self.items(items) * DIMS**0.5
        if not self.timed:
            z = z + self.position
        phase = (times[:, None] * self.frequency).float()
        basis = torch.cat((torch.cos(phase), torch.sin(phase)), -1)
        query_phase = (query_times[:, None] * self.frequency).float()
        cosine, sine = torch.cos(query_phase), torch.sin(query_phase)
        for block in self.blocks:
            z = block(z, basis, cosine, sine)
        scores = self.items.weight @ self.norm(z)[-1] + self.bias
        scores = scores.index_fill(0, items, float("-inf"))
        return torch.topk(scores, TOP)


def measure(query, rounds):
    for _ in range(20):
        query()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        query()
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    return seconds[rounds // 2], seconds[rounds * 99 // 100]


def onnx_mode(model, inputs):
    import onnxruntime

    file = io.BytesIO()
    torch.onnx.export(model, inputs, file, opset_version=14, input_names=["items", "times", "query_times"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    names = {given.name for given in session.get_inputs()}
    feeds = {n: x.numpy() for n, x in zip(("items", "times", "query_times"), inputs) if n in names}
    return lambda: session.run(None, feeds)


def modes(model, inputs):
    """Names and callables. Prints the reason where a mode is not available."""
    yield "PyTorch eager", lambda: model(*inputs)
    try:
        traced = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, inputs)))
        yield "PyTorch traced", lambda: traced(*inputs)
    except Exception as error:  # pylint: disable=broad-except
        print(f"PyTorch traced: not available ({type(error).__name__})")
    try:
        compiled = torch.compile(model)
        compiled(*inputs)
        yield "PyTorch compiled", lambda: compiled(*inputs)
    except Exception as error:  # pylint: disable=broad-except
        print(f"PyTorch compiled: not available ({type(error).__name__})")
    try:
        yield "ONNX Runtime", onnx_mode(model, inputs)
    except Exception as error:  # pylint: disable=broad-except
        print(f"ONNX Runtime: not available ({type(error).__name__}: {str(error)[:100]})")


def lapse_times(program, encoding, rounds):
    """Median and 99th percentile of each case that bench/question prints, in seconds."""
    text = subprocess.run([program, encoding, str(rounds)], check=True, capture_output=True, text=True).stdout
    print(text, end="")
    lines = [line.split() for line in text.splitlines()[1:]]
    return {words[0]: (float(words[2]) * 1e-6, float(words[5]) * 1e-6) for words in lines}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--question", default="build/bench/question")
    parser.add_argument("--encoding", default="mercer", choices=("mercer", "position"))
    parser.add_argument("--rounds", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Recommender(options.encoding == "mercer").eval()
    items = torch.randperm(ITEMS)[:CONTEXT]
    times = torch.cumsum(torch.rand(CONTEXT, dtype=torch.float64) * 40000, 0)
    query_times = torch.cat((times[1:], times[-1:] + 3600))
    inputs = (items, times - query_times[-1], query_times - query_times[-1])
    print(f"PyTorch {torch.__version__}, one thread")
    best = {}
    with torch.no_grad():
        expected = model(*inputs)
        for name, query in modes(model, inputs):
            scores, top = (torch.as_tensor(part) for part in query())
            if not torch.allclose(scores, expected[0], atol=1e-3) or top[0] != expected[1][0]:
                raise SystemExit(f"{name}: the result differs from the eager mode")
            median, p99 = measure(query, options.rounds)
            print(f"{name:18} p50 {1e6 * median:8.1f} us   p99 {1e6 * p99:8.1f} us")
            family = name.split()[0]
            best[family] = min(best.get(family, median), median)
    lapse = lapse_times(options.question, options.encoding, options.rounds)
    for family, seconds in best.items():
        for case, (median, _) in lapse.items():
            print(f"best median of {family}: {seconds / median:.1f} times that of Lapse, case '{case}'")


if __name__ == "__main__":
    main()
