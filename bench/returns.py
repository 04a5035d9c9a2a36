#!/usr/bin/env python3
"""Chances of a return by default, on simulated histories whose later events are known.

    bench/returns.py LAPSE [NAME ...]        needs NumPy and scikit-learn

For each law: histories until a day are written to a CSV file, `lapse train --when` learns from it without further options, and `lapse
eval --within 1d,7d,30d` scores its chances for the 30 days after that day, beside its baselines. Gradient boosting of scikit-learn
(HistGradientBoostingClassifier) is fitted to features of the same histories, as they were one horizon earlier.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

DAY, START, CUT, AFTER = 86400.0, 1735689600, 240.0, 30.0
HORIZONS = (1, 7, 30)


def leavers(r):
    """Customers with rates of their own, who may leave for good after each event: the law of BG/NBD."""
    t, rate, leaves = r.uniform(0, CUT - 1), r.gamma(2.0, 0.08) + 1e-3, r.beta(1.2, 8)
    while t < CUT + AFTER:
        yield t, "buy" if r.random() < .3 else "visit"
        if r.random() < leaves:
            return
        t += r.exponential(1 / rate)


def pausers(r):
    """Users with busy spells, gaps of about a day, and pauses of about a month."""
    t, busy = r.uniform(0, CUT - 1), r.gamma(4, .25)
    while t < CUT + AFTER:
        yield t, "visit" if r.random() < .8 else "buy"
        t += r.exponential(1 / busy) if r.random() < .9 else r.lognormal(np.log(25), .5)


def cut_off(r):
    """Users who never leave, with log-normal gaps: only the export ends their histories."""
    t, mean = r.uniform(-100, CUT - 1), r.normal(np.log(8), .8)
    while t < CUT + AFTER:
        if t >= 0:
            yield t, "visit" if r.random() < .8 else "buy"
        t += r.lognormal(mean, .9)


def closed(r):
    """Tickets: a few replies, then closed for good."""
    t = r.uniform(0, CUT - 1)
    yield t, "opened"
    for i in range(1 + r.poisson(3)):
        t += r.lognormal(np.log(.4), 1.2)
        yield t, "customer" if i % 2 else "agent"
    yield t + r.lognormal(np.log(2), .7), "closed"


LAWS = {"leavers": (leavers, 10000), "pausers": (pausers, 4000), "cut off": (cut_off, 8000), "closed": (closed, 10000)}


def simulate(law, users, seed=1):
    r = np.random.default_rng(seed)
    rows = ((u, START + t * DAY, event) for u in range(users) for t, event in law(r) if t < CUT + AFTER)
    return [(u, round(t), event) for u, t, event in rows]


def write(path, rows):
    with open(path, "w") as file:
        file.write("user,time,event\n")
        file.writelines(f"u{u},{t},{event}\n" for u, t, event in rows)


def features(rows, origin, horizon):
    """Recency, frequency, age, gaps, recent counts and the last event's type, and whether an event comes within the horizon."""
    histories, later, names = {}, {}, {}
    for u, t, event in rows:
        if t <= origin:
            histories.setdefault(u, []).append((t, names.setdefault(event, len(names))))
        else:
            later.setdefault(u, t)
    x = []
    for events in histories.values():
        times = np.array([t for t, _ in events])
        gaps = np.diff(times) / DAY if len(times) > 1 else np.array([np.nan])
        since = (origin - times) / DAY
        x.append([since[-1], len(times), since[0], gaps.mean(), gaps[-1], np.median(gaps), gaps.std(), (since < 7).sum(),
                  (since < 30).sum(), events[-1][1], since[-1] / (gaps.mean() if gaps.mean() > 0 else 1)])
    return np.array(x), np.array([later.get(u, np.inf) <= origin + horizon for u in histories])


def boosting(rows, origin, horizon):
    """Brier score at the origin of boosting that was fitted one horizon earlier."""
    x, y = features([row for row in rows if row[1] <= origin], origin - horizon, horizon)
    model = HistGradientBoostingClassifier(max_iter=200, learning_rate=0.05, early_stopping=True, random_state=1).fit(x, y)
    x, y = features(rows, origin, horizon)
    return np.mean((model.predict_proba(x)[:, 1] - y) ** 2)


def run(lapse, name, folder):
    law, users = LAWS[name]
    rows, origin = simulate(law, users), START + CUT * DAY
    known, whole, model = (os.path.join(folder, file) for file in ("known.csv", "whole.csv", "model.safetensors"))
    write(known, [row for row in rows if row[1] <= origin])
    write(whole, [*rows, ("-last", START + (CUT + AFTER) * DAY, rows[0][2])])  # the observation ends there
    columns = ["--user", "user", "--time", "time", "--event", "event"]
    subprocess.run([lapse, "train", known, "-o", model, "--when", "--no-eval", *columns], check=True, capture_output=True)
    scores = json.loads(subprocess.run(
        [lapse, "eval", model, whole, "--within", ",".join(f"{h}d" for h in HORIZONS), "--now", str(origin), "--split", "all",
         "--samples", "0", "--json", *columns], check=True, capture_output=True).stdout)
    for horizon, row in zip(HORIZONS, scores["within"]):
        brier = {score["name"]: score["brier"] for score in row["scores"]}
        own = row["scores"][0]
        observed = row["returned"] / scores["cases"]
        print(f"| {name} | {horizon} d | {100 * observed:.2f} | {100 * own['mean']:.2f} | {observed / own['mean']:.3f} | "
              f"{own['brier']:.4f} ({own['brier_low']:.4f} to {own['brier_high']:.4f}) | {brier['constant']:.4f} | "
              f"{brier['logistic']:.4f} | {boosting(rows, origin, horizon * DAY):.4f} | {brier['bg/nbd']:.4f} |", flush=True)


def main():
    print("| law | within | came back, % | mean chance, % | ratio | Brier, Lapse | constant | logistic | boosting | BG/NBD |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in sys.argv[2:] or LAWS:
        with tempfile.TemporaryDirectory() as folder:
            run(sys.argv[1], name, folder)


if __name__ == "__main__":
    main()
