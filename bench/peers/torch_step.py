"""torch_step.py: time of a training step of PyTorch and of `lapse bench`, on the same workload.

The model is that of Lapse (docs/model.md): exact lags by reflected queries, so that attention is standard attention with heads of
dims / heads + 2 * frequencies. PyTorch has every advantage: batches padded to the longest history and built before timing starts, times in
single precision, scaled_dot_product_attention, torch.compile, and on a GPU tf32, bf16 and its fused optimizer. The ratio compares
with the best of all its modes. Besides wall-clock time the table has the CPU time of all threads, which depends less on the load
of the machine; idle PyTorch threads may spin in it, so one thread is the fairest comparison. The last column is the time of an
epoch; on a GPU its steps run without synchronization. Tokens are events of the histories, without padding.

    python3 torch_step.py [--preset ml-1m] [--device cpu] [--threads 2] [--rounds 5] [--lapse build/lapse]
        [--dims 128 --heads 2 --blocks 2 --context 200 --batch 128 --encoding bochner --periods 64 --loss softmax ...]
        [--modes 'compiled bf16' 'compiled sdpa bf16' ...] [--precisions bf16 tf32]
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
    "ml-1m": dict(items=3416, shortest=18, median=96, mean=165.5, dims=50, heads=1, blocks=2, context=200, batch=128,
                  encoding="mercer", periods=10, harmonics=5, dropout=0.2, loss="bce"),
    "so": dict(items=22, shortest=40, median=58, mean=72.4, dims=32, heads=1, blocks=1, context=100, batch=64,
               encoding="mercer", periods=16, harmonics=5, dropout=0.1, loss="softmax"),
}
PRESETS["ml-1m-softmax"] = dict(PRESETS["ml-1m"], loss="softmax")
# Options of both programs.
SIZES = dict(dims=int, heads=int, blocks=int, context=int, batch=int, encoding=str, periods=int, harmonics=int,
             dropout=float, loss=str)


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
        self.rate, self.fused, self.heads = p["dropout"], fused, p["heads"]
        self.norm, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.times = nn.ParameterList([nn.Parameter(torch.randn(d, e) / math.sqrt(e)) for _ in range(3)])
        self.inner, self.outer = nn.Linear(d, d), nn.Linear(d, d)
        self.drop = nn.Dropout(p["dropout"])

    def split(self, x):
        """[histories x length x columns] to [histories x heads x length x columns of a head]."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attend(self, query, key, value, scale):
        if self.fused:
            full = query * (scale * math.sqrt(query.shape[-1]))
            return F.scaled_dot_product_attention(full, key, value, is_causal=True, dropout_p=self.rate)
        scores = (query @ key.transpose(-1, -2)) * scale
        size = scores.shape[-1]
        later = torch.ones(size, size, dtype=torch.bool, device=scores.device).triu(1)
        return self.drop(scores.masked_fill(later, -1e9).softmax(-1)) @ value

    def forward(self, z, u, query_u, own, amplitude):
        d, width = z.shape[-1], z.shape[-1] // self.heads
        wq, wk, wv = (w * amplitude for w in self.times)
        normal = self.norm(z)
        query = self.split(self.query(normal) + own @ wq.t())
        u, query_u = (x[:, None].expand(-1, self.heads, -1, -1) for x in (u, query_u))
        reflected = reflect(query @ wk.unflatten(0, (self.heads, width)), query_u)
        out = self.attend(torch.cat([query, reflected], -1), torch.cat([self.split(self.key(z)), u], -1),
                          torch.cat([self.split(self.value(z)), u], -1), 1 / math.sqrt(width))
        timed = reflect(out[..., width:], query_u) @ wv.unflatten(0, (self.heads, width)).transpose(-1, -2)
        mixed = normal + (out[..., :width] + timed).transpose(1, 2).reshape(z.shape)
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

    def forward(self, item, t, query_time, target, negative):
        harmonics = torch.arange(1, self.p["harmonics"] + 1, device=t.device)
        frequency = (harmonics * torch.exp(-self.period)[:, None]).flatten()
        u, v = self.basis(t, frequency), self.basis(query_time, frequency)
        own = reflect(u, v)
        z = self.drop(self.items(item) * math.sqrt(self.p["dims"]))
        for block in self.blocks:
            z = block(z, u, v, own, self.amplitude)
        z, mask = self.norm(z), (target > 0).float()
        if self.p["loss"] == "bce":
            positive = (z * self.items(target)).sum(-1) + self.bias[target]
            other = (z * self.items(negative)).sum(-1) + self.bias[negative]
            losses = F.softplus(-positive) + F.softplus(other)
            return (losses * mask).sum() / mask.sum()
        scores = z @ self.items.weight.t() + self.bias
        return F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=0)


def batches(p, count, device):
    """Histories padded at their end, with the distribution of lengths of `lapse bench`."""
    middle, average = p["median"] - p["shortest"], p["mean"] - p["shortest"]
    deviation = math.sqrt(2 * math.log(average / middle))
    result, tokens = [], 0
    for _ in range(count):
        lengths = (p["shortest"] + middle * torch.exp(deviation * torch.randn(p["batch"]))).long()
        lengths = lengths.clamp(2, p["context"])
        longest = int(lengths.max())
        tokens += int(lengths.sum())
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        item, target, negative = (torch.randint(1, p["items"] + 1, mask.shape) for _ in range(3))
        t = torch.rand(mask.shape).mul(30).cumsum(1)
        query_time = torch.cat([t[:, 1:], t[:, -1:] + 1], 1) - t[:, -1:]
        result.append([x.to(device) for x in (item * mask, t - t[:, -1:], query_time, target * mask, negative)])
    return result, tokens / count


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
    work, tokens = batches(p, 4, device)

    def step(i, synchronize=True):
        with torch.autocast(device, dtype=torch.bfloat16, enabled="bf16" in mode):
            loss = run(*work[i % len(work)])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        if device == "cuda" and synchronize:
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
    if device == "cuda":  # steps without synchronization
        start = time.perf_counter()
        for i in range(STEPS):
            step(i, False)
        torch.cuda.synchronize()
        epoch = time.perf_counter() - start
    return sorted(taken)[len(taken) // 2], min(taken), min(busy), epoch, tokens * STEPS / epoch


def modes(device):
    names = ["eager"]
    if hasattr(F, "scaled_dot_product_attention"):
        names.append("eager sdpa")
    if hasattr(torch, "compile"):
        names += [name.replace("eager", "compiled") for name in names]
    if device == "cuda":
        names += [f"{name} {precision}" for name in list(names) for precision in ("tf32", "bf16")]
    return names


def lapse_seconds(options, changed):
    """Median, best, minimum and epoch seconds of Lapse, and its tokens per second, for each precision of the device."""
    found = {}
    for precision in options.precisions if options.device == "cuda" else ("fp32",):
        command = [options.lapse, "bench", "--json", "--preset", options.preset, "--device", options.device,
                   "--precision", precision, "--threads", str(options.threads), "--rounds", str(options.rounds * 4)]
        for name, value in changed.items():
            command += [f"--{name}", str(value)]
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        found[f"lapse {precision}"] = (report["step_seconds"], report["step_best_seconds"],
                                       report["step_minimum_seconds"], report["epoch_seconds"],
                                       report["input_events"] * report["steps"] / report["epoch_seconds"])
    return found


def row(name, mine, threads=1):
    print(f"| {name} | {1e3 * mine[0]:.2f} | {1e3 * mine[1]:.2f} | {1e3 * mine[2] * threads:.2f} | {1e3 * mine[3]:.1f} | "
          f"{1e-6 * mine[4]:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="ml-1m")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lapse", default="lapse", help="the program; '' times PyTorch alone")
    parser.add_argument("--modes", nargs="+", help="PyTorch's modes (default: all)")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "tf32", "bf16"], help="Lapse's, on a GPU")
    for name, kind in SIZES.items():
        parser.add_argument(f"--{name}", type=kind, help="as of `lapse bench` (default: that of the preset)")
    options = parser.parse_args()
    changed = {name: getattr(options, name) for name in SIZES if getattr(options, name) is not None}
    sizes = dict(PRESETS[options.preset], **changed)
    if sizes["encoding"] not in ("mercer", "bochner") or sizes["loss"] not in ("bce", "softmax"):
        parser.error("the peer has the encodings mercer and bochner, and the losses bce and softmax")
    sizes["harmonics"] = sizes["harmonics"] if sizes["encoding"] == "mercer" else 1
    sizes["frequencies"] = sizes["periods"] * sizes["harmonics"]
    torch.set_num_threads(options.threads)
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} CPU threads"
    what = ", ".join(f"{name} {sizes[name]}" for name in SIZES)
    print(f"PyTorch {torch.__version__} and Lapse, preset {options.preset}, {where}; milliseconds per step\n{what}\n")
    print("| | median | best | minimum CPU time | epoch | million tokens/s |\n|---|---|---|---|---|---|")
    ours = lapse_seconds(options, changed) if options.lapse else {}
    for name, mine in ours.items():
        row(name, mine, options.threads)
    peers = {}
    for mode in options.modes or modes(options.device):
        try:
            peers[mode] = step_seconds(sizes, options.device, mode, options.rounds)
            row(f"PyTorch {mode}", peers[mode])
        except Exception as reason:  # a mode that this PyTorch or machine does not support
            print(f"| PyTorch {mode} | failed: {str(reason).splitlines()[0][:100]} | | | | |", flush=True)
    if not peers:
        return
    fastest = max(peers, key=lambda mode: peers[mode][4])
    print(f"\nPyTorch's best: {fastest}, {1e-6 * peers[fastest][4]:.2f} million tokens/s")
    median, best, busy, epoch = (min(x[i] for x in peers.values()) for i in range(4))
    for name, mine in ours.items():
        print(f"\n{name}: PyTorch's best median takes {median / mine[0]:.2f} times as long, its best step "
              f"{best / mine[1]:.2f} times as long as the best of Lapse, and {busy / (mine[2] * options.threads):.2f} "
              f"times the CPU time; its best epoch takes {epoch / mine[3]:.2f} times as long; Lapse has "
              f"{mine[4] / peers[fastest][4]:.2f} times its tokens per second")


if __name__ == "__main__":
    main()
