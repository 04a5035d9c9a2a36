#!/usr/bin/env python3
"""defaults.py: trains settings on many small and large data sets, and prints their validation scores.

    bench/defaults.py --folder DIR [--lapse build/lapse] [--jobs N] [--sets shop-50,so-150] [--seeds 1-3]
                      [--settings 'name=options;name=options'] [--data ../shared/data]

Sets are simulated, or samples of the files of --data (Stack Overflow, MovieLens-1M); datasets that lie in the folder
already are used as they are. Every run is a line of DIR/results.jsonl and is not repeated: a script that was stopped goes on. The
table has for each set and setting the mean over seeds of the validation score (log-loss to classify, NDCG@10 to recommend), of the
epochs and of the seconds.
Choices are made on it, never on test scores.
"""
import argparse
import concurrent.futures
import csv
import gzip
import hashlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time

SHOP = "--event action,item"
# name: task, how to make it ("simulate" with its options, or a file of --data with a share of its users), options of import
SETS = {
    **{f"shop-{n}": ("classify", f"simulate --preset shop --days 60 --sequences {n}", SHOP) for n in (50, 100, 150, 400, 500, 1600)},
    **{f"cycle-{n}": ("classify", f"simulate --preset cycle --sequences {n}", "") for n in (50, 150, 500)},
    **{f"sessions-{n}": ("recommend", f"simulate --preset sessions --items 500 --days 60 --sequences {n}", "--event item") for n in (150, 600)},
    **{f"catalogue-{n}": ("recommend", f"simulate --preset catalogue --items 1000 --sequences {n}", "") for n in (150, 600)},
    **{f"so-{n}": ("classify", f"stackoverflow random {n}", "--event event") for n in (50, 150, 450, 1400)},
    "so-long": ("classify", "stackoverflow longest 195", "--event event"),
    "so": ("classify", "stackoverflow random 1000000", "--event event"),
    **{f"ml-{n}": ("recommend", f"ml-1m random {n}", "--event item") for n in (100, 600)},
    "ml-1m": ("recommend", "ml-1m random 1000000", "--event item"),
}


def numbers(text):
    """"1-3,7" -> [1, 2, 3, 7]"""
    spans = [part.split("-") for part in text.split(",")]
    return [n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)]


def sample_users(path, rule, count, out):
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.reader(file))
    events = {}
    for row in rows[1:]:
        events[row[0]] = events.get(row[0], 0) + 1

    def chance(user):
        return hashlib.sha256(user.encode()).hexdigest()

    chosen = set(sorted(events, key=chance if rule == "random" else lambda user: (-events[user], user))[:count])
    with open(out, "w", newline="") as file:
        csv.writer(file).writerows([rows[0], *(row for row in rows[1:] if row[0] in chosen)])


class Bench:
    def __init__(self, args):
        self.args, self.lock = args, threading.Lock()
        self.results = os.path.join(args.folder, "results.jsonl")
        os.makedirs(args.folder, exist_ok=True)
        self.done = {}
        if os.path.exists(self.results):
            with open(self.results) as file:
                for run in map(json.loads, file):
                    self.done[run["set"], run["options"], run["seed"]] = run

    def lapse(self, *words):
        return subprocess.run([self.args.lapse, *words], capture_output=True, text=True, check=False)

    def dataset(self, name):
        """The set's dataset file."""
        path, text = (os.path.join(self.args.folder, name + end) for end in (".lapse", ".csv"))
        if os.path.exists(path):
            return path
        _, source, options = SETS[name]
        words = source.split()
        if words[0] == "simulate":
            made = self.lapse(*words, "--seed", "7", "-o", text)
            if made.returncode:
                sys.exit(made.stderr)
        else:
            sample_users(os.path.join(self.args.data, words[0], "events.csv.gz"), words[1], int(words[2]), text)
        made = self.lapse("import", text, "-o", path, *options.split())
        if made.returncode:
            sys.exit(made.stderr)
        os.remove(text)
        return path

    def run(self, name, options, seed):
        if (name, options, seed) in self.done:
            return
        model = os.path.join(self.args.folder, hashlib.sha256(f"{name} {options} {seed}".encode()).hexdigest()[:16])
        task = SETS[name][0]
        words = ["train", self.dataset(name), "-o", model, "--seed", str(seed), "--threads", str(self.args.threads), "--no-eval",
                 "--checkpoint", "none", "--json", *shlex.split(options)]
        start = time.monotonic()
        made = self.lapse(*words, *([] if "--task" in options else ["--task", task]))
        seconds = time.monotonic() - start
        if made.returncode:
            print(f"{name} seed {seed} {options}: {made.stderr.strip()}", file=sys.stderr)
            return
        trained = json.loads(made.stdout)
        scores = json.loads(self.lapse("eval", model, self.dataset(name), "--split", "valid", "--bootstrap", "0", "--threads",
                                       str(self.args.threads), "--json").stdout)
        os.remove(model)
        run = {"set": name, "options": options, "seed": seed, "task": task, "seconds": round(seconds, 2), "epochs": trained["epochs"],
               "best_epoch": trained["best_epoch"], "scores": scores}
        with self.lock, open(self.results, "a") as file:
            file.write(json.dumps(run) + "\n")
            self.done[name, options, seed] = run

    def run_all(self, sets, settings, seeds):
        for name in sets:
            self.dataset(name)
        jobs = [(name, options, seed) for seed in seeds for name in sets for options in settings.values()]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for _ in pool.map(lambda job: self.run(*job), jobs):
                pass

    def table(self, sets, settings, seeds):
        width = max(map(len, settings))
        for name in sets:
            print(f"{name}:")
            for title, options in settings.items():
                runs = [self.done[name, options, seed] for seed in seeds if (name, options, seed) in self.done]
                if not runs:
                    continue
                recommend = runs[0]["task"] == "recommend"
                values = [score_of(run) for run in runs]
                mean = sum(values) / len(values)
                deviation = (sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)) ** .5
                more = [sum(run[key] for run in runs) / len(runs) for key in ("epochs", "seconds")]
                times = [run["scores"]["time"]["scores"][0]["nll"] for run in runs if "time" in run["scores"]]
                nll = f"  time NLL {sum(times) / len(times):7.4f}" if times else ""
                print(f"  {title:{width}}  {'NDCG@10 ' if recommend else 'log-loss'} {mean:7.4f}  sd {deviation:6.4f}  "
                      f"epochs {more[0]:5.1f}  seconds {more[1]:7.1f}  seeds {len(runs)}{nll}")


def score_of(run):
    if run["task"] == "classify":
        return run["scores"]["log_loss"]
    return run["scores"]["protocols"]["full-unseen"]["ndcg@10"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--lapse", default="build/lapse")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each run")
    parser.add_argument("--sets", default="shop-50,shop-100,shop-400,so-50,so-150,so-450")
    parser.add_argument("--seeds", default="1-2")
    parser.add_argument("--settings", default="defaults=")
    args = parser.parse_args()
    settings = {part.split("=", 1)[0].strip(): part.split("=", 1)[1].strip() for part in args.settings.split(";") if part.strip()}
    sets, seeds = args.sets.split(","), numbers(args.seeds)
    bench = Bench(args)
    bench.run_all(sets, settings, seeds)
    bench.table(sets, settings, seeds)


if __name__ == "__main__":
    main()
