#!/usr/bin/env python3
"""fastapi_serve.py: POST /v1/predict in FastAPI and PyTorch, as teams build it: for bench/serve.sh --peer.

    fastapi_serve.py PORT HISTORIES [--batch N]

HISTORIES has a name per line; each is a history of 200 events in memory, ready as tensors. The network is that of question.py: the
same work as Lapse's model of MovieLens, with random parameters, traced and frozen where PyTorch can. Requests that wait are one
batch of the network, at most N of them (default 16); 1: each request alone. Nothing is durable, and the answer is names and scores.
"""
import argparse
import asyncio

import torch
import uvicorn
from fastapi import FastAPI, Request

from question import CONTEXT, ITEMS, Recommender


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("histories")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = Recommender(True).eval()
    histories = {}
    for name in open(options.histories).read().split():
        times = torch.cumsum(torch.rand(CONTEXT, dtype=torch.float64) * 40000, 0)
        query_times = torch.cat((times[1:], times[-1:] + 3600))
        histories[name] = (torch.randperm(ITEMS)[:CONTEXT], times - query_times[-1], query_times - query_times[-1])
    inputs = next(iter(histories.values()))
    with torch.no_grad():
        one = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, inputs)))
    many = None
    if options.batch > 1 and hasattr(torch, "vmap"):
        many = torch.vmap(model)
    app = FastAPI()
    waiting, ready = [], asyncio.Event()

    @torch.no_grad()
    def answer(names):
        if many and len(names) > 1:
            scores, top = many(*(torch.stack(part) for part in zip(*(histories[name] for name in names))))
        else:
            scores, top = (torch.stack(part) for part in zip(*(one(*histories[name]) for name in names)))
        return [[{"event": f"item{i}", "score": s} for i, s in zip(*row)] for row in zip(top.tolist(), scores.tolist())]

    async def batches():
        while True:
            await ready.wait()
            ready.clear()
            while waiting:
                batch = waiting[:options.batch]
                del waiting[:options.batch]
                for (_, future), predictions in zip(batch, answer([name for name, _ in batch])):
                    future.set_result(predictions)
                await asyncio.sleep(0)

    @app.on_event("startup")
    async def begin():
        asyncio.create_task(batches())

    @app.post("/v1/predict")
    async def predict(request: Request):
        future = asyncio.get_running_loop().create_future()
        waiting.append(((await request.json())["history"], future))
        ready.set()
        return {"predictions": await future}

    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="error", access_log=False)


if __name__ == "__main__":
    main()
