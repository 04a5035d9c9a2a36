"""torch_recurrent.py: time of a training step of a recurrent network in PyTorch (on a GPU: cuDNN) and of `lapse bench`.

The network is that of Lapse's gru4rec or lstm: embedding, dropout, one layer, scores by the item vectors (gru4rec) or a linear layer
(lstm), softmax over all items. PyTorch has every advantage: batches padded to the longest history and built before timing starts,
scores computed at real events alone, and all of its precisions.

    python3 torch_recurrent.py [--model gru4rec] [--device cpu] [--threads 2] [--dims 64] [--rounds 5] [--lapse build/lapse]
"""
import argparse
import json
import subprocess

import torch
import torch.nn.functional as F
from torch import nn

import torch_step


class Network(nn.Module):
    def __init__(self, model, items, dims, dropout):
        super().__init__()
        self.items = nn.Embedding(items + 1, dims, padding_idx=0)
        self.layer = (nn.GRU if model == "gru4rec" else nn.LSTM)(dims, dims, batch_first=True)
        self.output = None if model == "gru4rec" else nn.Linear(dims, items + 1)
        self.bias = nn.Parameter(torch.zeros(items + 1))
        self.drop = nn.Dropout(dropout)

    def forward(self, item, target, real):
        h, _ = self.layer(self.drop(self.items(item)))
        h = h.flatten(0, 1)[real]
        scores = self.output(h) if self.output else h @ self.items.weight.t() + self.bias
        return F.cross_entropy(scores, target.flatten()[real])


def seconds(options, sizes, mode):
    """Median step, best step and epoch."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode != "fp32"
    model = Network(options.model, sizes["items"], options.dims, sizes["dropout"]).to(options.device)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), **(dict(fused=True) if options.device == "cuda" else {}))
    work, tokens = torch_step.batches(sizes, 4, options.device)
    work = [(item, target, (target.flatten() > 0).nonzero()[:, 0]) for item, _, _, target, _ in work]

    def step(i):
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=mode == "bf16"):
            loss = model(*work[i % len(work)])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()

    def timed(count, first):
        if options.device == "cuda":
            torch.cuda.synchronize()
        begin = torch_step.time.perf_counter()
        for i in range(count):
            step(first + i)
        if options.device == "cuda":
            torch.cuda.synchronize()
        return torch_step.time.perf_counter() - begin

    timed(5, 0)
    taken = sorted(timed(1, i) for i in range(options.rounds))
    steps = torch_step.STEPS
    epoch = timed(steps, 0) if options.device == "cuda" else steps * taken[len(taken) // 2]
    return taken[len(taken) // 2], taken[0], epoch, tokens * steps / epoch


def lapse(options, precision):
    command = [options.lapse, "bench", "--json", "--preset", options.preset, "--model", options.model, "--dims", str(options.dims),
               "--device", options.device, "--precision", precision, "--threads", str(options.threads), "--rounds",
               str(options.rounds * 2)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return (report["step_seconds"], report["step_best_seconds"], report["epoch_seconds"],
            report["input_events"] * report["steps"] / report["epoch_seconds"])


def row(name, mine):
    print(f"| {name} | {1e3 * mine[0]:.2f} | {1e3 * mine[1]:.2f} | {1e3 * mine[2]:.1f} | {1e-6 * mine[3]:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=("gru4rec", "lstm"), default="gru4rec")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dims", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lapse", default="lapse")
    options = parser.parse_args()
    options.preset = "ml-1m-softmax" if options.model == "gru4rec" else "so"
    sizes = torch_step.PRESETS[options.preset]
    torch.set_num_threads(options.threads)
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} CPU threads"
    print(f"{options.model}, preset {options.preset}, dims {options.dims}; PyTorch {torch.__version__}, {where}; milliseconds\n")
    print("| | step, median | best | epoch | million tokens/s |\n|---|---|---|---|---|")
    modes = ["fp32", "tf32", "bf16"] if options.device == "cuda" else ["fp32", "bf16"]
    ours = {mode: lapse(options, mode) for mode in (modes if options.device == "cuda" else ["fp32"])}
    for mode, mine in ours.items():
        row(f"Lapse {mode}", mine)
    peers = {}
    for mode in modes:
        try:
            peers[mode] = seconds(options, sizes, mode)
            row(f"PyTorch {mode}", peers[mode])
        except RuntimeError as reason:  # a precision that this machine does not have
            print(f"| PyTorch {mode} | failed: {str(reason)[:80]} | | | |", flush=True)
    best, mine = max(peers.values(), key=lambda x: x[3]), max(ours.values(), key=lambda x: x[3])
    print(f"\nLapse has {mine[3] / best[3]:.2f} times the tokens per second of PyTorch's best")


if __name__ == "__main__":
    main()
