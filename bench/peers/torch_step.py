"""torch_step.py: PyTorch on the work of `lapse bench`, side by side.

The model is the one that Lapse trains (docs/model.md): exact lags by reflected queries, so that attention is an ordinary one
with heads of dims + 2 frequencies. PyTorch gets what suits it: batches padded to the longest history and laid out before the
clock starts, times in single precision, its own attention where it has one, its compiler, and on a GPU tf32, bf16 and its fused
optimizer. The best of all its modes is what the ratio is taken of. Beside times on the wall stands the CPU time of all threads,
which a busy machine disturbs less; idle threads of PyTorch may spin in it, so that one thread is the fairest to it. Last comes the
time of an epoch; on a GPU its steps do not wait for one another.

    python3 torch_step.py [--preset ml-1m] [--device cpu] [--threads 2] [--rounds 5] [--lapse build/lapse]
"""
import argparse
import json
import math
import subprocess
import time

import torch
import torch.nn.functional as F
from torch import nn

PRESETS = {
    "ml-1m": dict(items=3416, shortest=18, median=96, mean=165.5, dims=50, blocks=2, context=200, batch=128,
                  frequencies=50, harmonics=5, dropout=0.2, loss="bce"),
    "ml-1m-softmax": dict(items=3416, shortest=18, median=96, mean=165.5, dims=50, blocks=2, context=200, batch=128,
                          frequencies=50, harmonics=5, dropout=0.2, loss="softmax"),
    "so": dict(items=22, shortest=40, median=58, mean=72.4, dims=32, blocks=1, context=100, batch=64,
               frequencies=80, harmonics=5, dropout=0.1, loss="softmax"),
}


STEPS = 48  # of an epoch of MovieLens-1M


def reflect(x, u):
    """M(t') x, where u = u(t'): see ARCHITECTURE.md."""
    xc, xs = x.chunk(2, -1)
    c, s = u.chunk(2, -1)
    return torch.cat([xc * c + xs * s, xc * s - xs * c], -1)


class Block(nn.Module):
    def __init__(self, p, fused):
        super().__init__()
        d, e = p["dims"], 2 * p["frequencies"]
        self.rate, self.fused = p["dropout"], fused
        self.norm, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.times = nn.ParameterList([nn.Parameter(torch.randn(d, e) / math.sqrt(e)) for _ in range(3)])
        self.inner, self.outer = nn.Linear(d, d), nn.Linear(d, d)
        self.drop = nn.Dropout(p["dropout"])

    def attend(self, query, key, value, scale):
        if self.fused:
            full = query * (scale * math.sqrt(query.shape[-1]))
            return F.scaled_dot_product_attention(full[:, None], key[:, None], value[:, None], is_causal=True,
                                                  dropout_p=self.rate).squeeze(1)
        scores = (query @ key.transpose(1, 2)) * scale
        size = scores.shape[-1]
        later = torch.ones(size, size, dtype=torch.bool, device=scores.device).triu(1)
        return self.drop(scores.masked_fill(later, -1e9).softmax(-1)) @ value

    def forward(self, z, u, until, own, amplitude):
        d = z.shape[-1]
        wq, wk, wv = (w * amplitude for w in self.times)
        normal = self.norm(z)
        query = self.query(normal) + own @ wq.t()
        turned = reflect(query @ wk, until)
        out = self.attend(torch.cat([query, turned], -1), torch.cat([self.key(z), u], -1),
                          torch.cat([self.value(z), u], -1), 1 / math.sqrt(d))
        mixed = normal + out[..., :d] + reflect(out[..., d:], until) @ wv.t()
        hidden = self.norm2(mixed)
        return hidden + self.drop(self.outer(self.drop(F.relu(self.inner(hidden)))))


class Model(nn.Module):
    def __init__(self, p, fused):
        super().__init__()
        self.p = p
        self.items = nn.Embedding(p["items"] + 1, p["dims"], padding_idx=0)
        self.bias = nn.Parameter(torch.zeros(p["items"] + 1))
        self.period = nn.Parameter(torch.linspace(0, 12, p["frequencies"] // p["harmonics"]))
        self.amplitude = nn.Parameter(torch.ones(2 * p["frequencies"]))
        self.blocks = nn.ModuleList([Block(p, fused) for _ in range(p["blocks"])])
        self.norm = nn.LayerNorm(p["dims"])
        self.drop = nn.Dropout(p["dropout"])

    def basis(self, t, frequency):
        phase = t[..., None] * frequency
        return torch.cat([phase.cos(), phase.sin()], -1)

    def forward(self, item, t, until, target, negative):
        steps = torch.arange(1, self.p["harmonics"] + 1, device=t.device)
        frequency = (steps * torch.exp(-self.period)[:, None]).flatten()
        u, v = self.basis(t, frequency), self.basis(until, frequency)
        own = reflect(u, v)
        z = self.drop(self.items(item) * math.sqrt(self.p["dims"]))
        for block in self.blocks:
            z = block(z, u, v, own, self.amplitude)
        z, there = self.norm(z), (target > 0).float()
        if self.p["loss"] == "bce":
            good = (z * self.items(target)).sum(-1) + self.bias[target]
            bad = (z * self.items(negative)).sum(-1) + self.bias[negative]
            losses = F.softplus(-good) + F.softplus(bad)
            return (losses * there).sum() / there.sum()
        scores = z @ self.items.weight.t() + self.bias
        return F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=0)


def batches(p, count, device):
    """Histories padded behind their end, with lengths drawn as `lapse bench` draws them."""
    middle, average = p["median"] - p["shortest"], p["mean"] - p["shortest"]
    deviation = math.sqrt(2 * math.log(average / middle))
    made = []
    for _ in range(count):
        lengths = (p["shortest"] + middle * torch.exp(deviation * torch.randn(p["batch"]))).long()
        lengths = lengths.clamp(2, p["context"])
        longest = int(lengths.max())
        there = torch.arange(longest)[None, :] < lengths[:, None]
        item, target, negative = (torch.randint(1, p["items"] + 1, there.shape) for _ in range(3))
        t = torch.rand(there.shape).mul(30).cumsum(1)
        until = torch.cat([t[:, 1:], t[:, -1:] + 1], 1) - t[:, -1:]
        made.append([x.to(device) for x in (item * there, t - t[:, -1:], until, target * there, negative)])
    return made


def step_seconds(p, device, mode, rounds):
    torch.manual_seed(1)
    model = Model(p, "sdpa" in mode).to(device)
    torch.backends.cuda.matmul.allow_tf32 = "tf32" in mode or "bf16" in mode
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32
    run = model
    if "compiled" in mode:
        run = torch.compile(model, mode="reduce-overhead" if device == "cuda" else "default")
    fused = dict(fused=True) if device == "cuda" else {}
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), **fused)
    work = batches(p, 4, device)

    def step(i, wait=True):
        with torch.autocast(device, dtype=torch.bfloat16, enabled="bf16" in mode):
            loss = run(*work[i % len(work)])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        if device == "cuda" and wait:
            torch.cuda.synchronize()

    for i in range(5):
        step(i)
    taken, busy = [], []
    for i in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        step(i)
        taken.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    epoch = STEPS * sorted(taken)[len(taken) // 2]
    if device == "cuda":  # steps that do not wait for one another
        start = time.perf_counter()
        for i in range(STEPS):
            step(i, False)
        torch.cuda.synchronize()
        epoch = time.perf_counter() - start
    return sorted(taken)[len(taken) // 2], min(taken), min(busy), epoch


def modes(device):
    event types = ["eager"]
    if hasattr(F, "scaled_dot_product_attention"):
        event types.append("eager sdpa")
    if hasattr(torch, "compile"):
        event types += [event type.replace("eager", "compiled") for event type in event types]
    if device == "cuda":
        event types += [f"{event type} {how}" for event type in list(event types) for how in ("tf32", "bf16")]
    return event types


def lapse_seconds(options):
    """Median and undisturbed step of Lapse, in precisions that its device has."""
    found = {}
    for precision in ("fp32", "tf32", "bf16") if options.device == "cuda" else ("fp32",):
        command = [options.lapse, "bench", "--json", "--preset", options.preset, "--device", options.device,
                   "--precision", precision, "--threads", str(options.threads), "--rounds", str(options.rounds * 4)]
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        found[f"lapse {precision}"] = (report["step_seconds"], report["step_best_seconds"],
                                       report["step_minimum_seconds"], report["epoch_seconds"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="ml-1m")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lapse", default="lapse")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} CPU threads"
    print(f"PyTorch {torch.__version__} and Lapse, preset {options.preset}, {where}; milliseconds a step\n")
    print("| | median | best | least CPU time | an epoch |\n|---|---|---|---|---|")
    ours = lapse_seconds(options)
    for name, (median, best, least, epoch) in ours.items():
        print(f"| {name} | {1e3 * median:.2f} | {1e3 * best:.2f} | {1e3 * least * options.threads:.2f} | "
              f"{1e3 * epoch:.1f} |")
    peers = {}
    for mode in modes(options.device):
        try:
            peers[mode] = step_seconds(PRESETS[options.preset], options.device, mode, options.rounds)
            print(f"| PyTorch {mode} | {1e3 * peers[mode][0]:.2f} | {1e3 * peers[mode][1]:.2f} | "
                  f"{1e3 * peers[mode][2]:.2f} | {1e3 * peers[mode][3]:.1f} |", flush=True)
        except Exception as reason:  # a mode that this PyTorch or machine cannot do is no result
            print(f"| PyTorch {mode} | failed: {str(reason).splitlines()[0][:100]} | | | |", flush=True)
    median, best, busy, epoch = (min(x[i] for x in peers.values()) for i in range(4))
    for name, mine in ours.items():
        print(f"\n{name}: PyTorch's best median takes {median / mine[0]:.2f} times as long, its best step "
              f"{best / mine[1]:.2f} times as long as the best of Lapse, and {busy / (mine[2] * options.threads):.2f} "
              f"times the CPU time; its best epoch takes {epoch / mine[3]:.2f} times as long")


if __name__ == "__main__":
    main()
