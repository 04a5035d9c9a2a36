"""ddp_step.py: events a second of PyTorch's DistributedDataParallel (gloo) on the model of torch_step.py.

Each process has one thread and its part of every batch, padded and built before timing starts. Embedding gradients are dense, as DDP needs
them. Prints the best mode, for comparison with scripts/measure_ranks.sh on the same machine.

    python3 ddp_step.py [--preset ml-1m] [--ranks 2] [--steps 12]
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from torch_step import PRESETS, Model, batches


def work(rank, ranks, p, mode, steps, port, result):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(Model(p, "sdpa" in mode))
    run = torch.compile(model) if "compiled" in mode else model
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    torch.manual_seed(2 + rank)
    data, tokens = batches(dict(p, batch=p["batch"] // ranks), 4, "cpu")
    for i in range(steps + 4):
        if i == 4:
            dist.barrier()
            start = time.perf_counter()
        loss = run(*data[i % len(data)])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
    dist.barrier()
    taken = time.perf_counter() - start
    total = torch.tensor([tokens * steps / taken])
    dist.all_reduce(total)
    if rank == 0:
        result.put(float(total))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="ml-1m", choices=PRESETS)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--modes", nargs="+", default=["eager", "eager sdpa", "compiled sdpa"])
    options = parser.parse_args()
    preset = dict(PRESETS[options.preset])
    preset["frequencies"] = preset["periods"] * (preset["harmonics"] if preset["encoding"] == "mercer" else 1)
    context = mp.get_context("spawn")
    for number, mode in enumerate(options.modes):
        result = context.SimpleQueue()
        arguments = (options.ranks, preset, mode, options.steps, 29611 + number, result)
        mp.spawn(work, arguments, nprocs=options.ranks)
        print(f"torch {torch.__version__} ddp gloo, {options.ranks} ranks, {mode}: {result.get():.0f} events/s", flush=True)


if __name__ == "__main__":
    main()
