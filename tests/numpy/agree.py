"""agree.py: trains tiny models of every sort and compares `lapse predict` with forward.py. Called by run.sh.

    agree.py LAPSE EMPTY-FOLDER

Histories are chosen for the edges of the window: one event, fewer than the context, exactly as many, one more, and so many
that a session has to move its events down; some events share their time.
"""
import csv
import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np

import forward

TOLERANCE = 1e-5
CONTEXT = 8
LENGTHS = (1, 2, CONTEXT - 1, CONTEXT, CONTEXT + 1, 2 * CONTEXT, 2 * CONTEXT + 1, 5 * CONTEXT + 3)
AT = ("+0s", "+250ms", "+40m", "+3d", "+1w", "+2y", "2031-07-01T00:00:00Z")
SECONDS = {"+0s": 0, "+250ms": 0.25, "+40m": 2400, "+3d": 259200, "+1w": 604800, "+2y": 2 * 365.25 * 86400}
TRAIN = ["--epochs", "3", "--batch", "16", "--learning-rate", "0.02", "--threads", "1", "--checkpoint", "none", "--no-eval"]


PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/model.md")
ALWAYS = "checksum format format.version task model target_time event types context seed split dataset.fingerprint source".split()
OF_ATTENTION = "encoding projection combine dims blocks heads periods harmonics period_min period_max dropout score.epoch".split()


def documented(model):
    """The page names every key and tensor of the file, and the file has every key it should."""
    with open(PAGE, encoding="utf-8") as file:
        names = set(re.findall(r"`([^`\n]+)`", file.read()))
    baseline = model.metadata["model"] != "attention"
    for key in ALWAYS + (["order"] if baseline else OF_ATTENTION):
        forward.require(key in model.metadata, f"the file does not say '{key}'")
    parts = {"block": "<n>", "time.flow": "<m>", "markov": "<k>"}
    tensors = {re.sub(r"^(block|time\.flow|markov)\.\d+", lambda found: f"{found[1]}.{parts[found[1]]}", name)
               for name in model.tensors}
    for name in (re.sub(r"\bfield\.\d+\.", "field.<y>.", name) for name in tensors | set(model.metadata)):
        forward.require(name in names, f"docs/model.md does not tell of '{name}'")


class Suite:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.passed = self.failed = 0
        self.largest = 0.0
        self.histories = []

    def path(self, name):
        return f"{self.folder}/{name}"

    def lapse(self, *arguments):
        """The tool's standard output."""
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, cwd=self.folder)
        if done.returncode != 0:
            raise ValueError(f"lapse {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def check(self, what, test, *arguments):
        try:
            test(*arguments)
            self.passed += 1
        except Exception as error:  # whatever goes wrong, the others still run
            self.failed += 1
            print(f"FAILED {what}: {type(error).__name__}: {error}")

    def prepare(self):
        """Shop data, and histories of the lengths wanted made of its events."""
        self.lapse("simulate", "--preset", "shop", "--sequences", "150", "--days", "60", "--seed", "5", "-o", "shop.csv")
        self.lapse("import", "shop.csv", "-o", "shop.lapse", "--event", "action,item")
        with open(self.path("shop.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        events = [row["action"] + " " + row["item"] for row in rows]
        random = np.random.default_rng(11)
        with open(self.path("history.csv"), "w") as file:
            file.write("user,time,event\n")
            for number, length in enumerate(LENGTHS):
                gaps = np.round(random.exponential(random.choice([5, 3600, 400000], length)), 3)
                gaps[random.random(length) < 0.15] = 0
                times = np.round(1767225600 + 1e6 * number + np.cumsum(gaps), 3)
                first = random.integers(len(events) - length)
                event types = events[first:first + length]  # as they followed each other, so that Markov chains know them
                self.histories.append((f"h{length}", event types, [float(f"{t:.3f}") for t in times]))
                file.writelines(f"h{length},{t:.3f},{event type}\n" for event type, t in zip(event types, times))

    def train(self, name, *options):
        self.lapse("train", "shop.lapse", "-o", name, *TRAIN, *options)
        return forward.Model(self.path(name))

    def agree(self, name, *options):
        """One model: all histories at all times."""
        model = self.train(name, *options)
        documented(model)
        asked = [word for at in AT for word in ("--at", at)]
        answers = json.loads(self.lapse("predict", name, "history.csv", *asked, "--top", "0", "--json"))["sequences"]
        forward.require([a["sequence"] for a in answers] == [h[0] for h in self.histories], "other sequences were answered")
        seen = []
        for (sequence, events, times), given in zip(self.histories, answers):
            for at, answer in zip(AT, given["predictions"]):
                when = times[-1] + SECONDS[at] if at in SECONDS else 1940630400.0
                forward.require(abs(answer["time"] - when) < 2e-3, f"{sequence} was asked at {answer['time']}, not {when}")
                expected = forward.predict(model, events, times, when)
                called = "item" if model.metadata["task"] == "recommend" else "event"
                found = {top[called]: top["probability"] for top in answer["top"]}
                forward.require(set(found) == set(model.names), f"{sequence} {at}: not all event types were answered")
                difference = max(abs(found[event type] - p) for event type, p in zip(model.names, expected))
                self.largest = max(self.largest, difference)
                forward.require(difference <= TOLERANCE, f"{sequence} {at}: probabilities differ by {difference:.2g}")
                seen.append(expected)
        self.sees_what_it_should(model, np.array(seen).reshape(len(LENGTHS), len(AT), -1))

    def prepare_fields(self):
        """The shop by items, with actions, a category that is sometimes empty, and two numbers of which one is often
        missing and the other hardly ever changes; and histories of it."""
        random = np.random.default_rng(12)
        with open(self.path("shop.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["place"] = str(random.choice(["", "home", "shop, old", "w\u00e4g"]))
            row["price"] = "" if random.random() < 0.4 else f"{random.normal(1e6, 3):.2f}"
            row["rank"] = "1e9" if random.random() < 0.02 else "7"
        columns = ["user", "time", "item", "action", "place", "price", "rank"]
        with open(self.path("fields.csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        self.lapse("import", "fields.csv", "-o", "fields.lapse", "--event", "item", "--action", "action", "--field", "place",
                   "--number", "price", "--number", "rank")
        self.rich = []
        with open(self.path("rich.csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            for length in LENGTHS:
                first = random.integers(len(rows) - length)
                past = [dict(row, user=f"h{length}", time=f"{1.77e9 + 5000.5 * i:.3f}")
                        for i, row in enumerate(rows[first:first + length])]
                writer.writerows(past)
                self.rich.append(past)

    def agree_with_fields(self, name, *options):
        """One model that sees fields: all histories at all times, for everything it predicts."""
        self.lapse("train", "fields.lapse", "-o", name, *TRAIN, *options)
        model = forward.Model(self.path(name))
        documented(model)
        asked = [word for at in AT for word in ("--at", at)]
        answers = json.loads(self.lapse("predict", name, "rich.csv", *asked, "--top", "0", "--json"))["sequences"]
        targets = {"event": ("top", model.names), "action": ("top_actions", model.categories[0])}
        wanted = ["event", "action"] if model.metadata["predict"] == "both" else [model.metadata["predict"]]
        for past, given in zip(self.rich, answers):
            events, times = [row["item"] for row in past], [float(row["time"]) for row in past]
            fields = [[row["action"], row["place"], float(row["price"]) if row["price"] else None, float(row["rank"])]
                      for row in past]
            for answer in given["predictions"]:
                forward.require([targets[t][0] for t in wanted] == [key for key in answer if key.startswith("top")],
                                "other things were answered")
                for target in wanted:
                    expected = forward.predict(model, events, times, answer["time"], fields, target)
                    found = {top[target]: top["probability"] for top in answer[targets[target][0]]}
                    difference = max(abs(found[event type] - p) for event type, p in zip(targets[target][1], expected))
                    self.largest = max(self.largest, difference)
                    forward.require(len(found) == len(expected) and difference <= TOLERANCE,
                                    f"{past[0]['user']}, {target}: probabilities differ by {difference:.2g}")

    @staticmethod
    def sees_what_it_should(model, seen):
        """Agreement would mean little if every answer were the same: time must matter exactly where it should."""
        over_time = np.abs(seen - seen[:, :1]).max()
        over_histories = np.abs(seen - seen[:1]).max()
        sees_time = (model.metadata["model"] == "attention"
                     and model.metadata["encoding"] not in ("position", "sinusoid", "none")
                     and model.metadata["target_time"] == "known")
        forward.require(over_time > 0.01 if sees_time else over_time == 0, f"answers change by {over_time:.2g} over time")
        forward.require((over_histories > 0.01) == (model.metadata["model"] != "majority"),
                        f"answers change by {over_histories:.2g} from history to history")

    def same_twice(self):
        """Equal runs, and other numbers of threads, give equal files."""
        files = []
        for threads in ("1", "2"):
            self.lapse("train", "shop.lapse", "-o", "same.safetensors", *TRAIN, "--dims", "8", "--threads", threads)
            with open(self.path("same.safetensors"), "rb") as file:
                files.append(file.read())
        forward.require(files[0] == files[1], "equal runs gave files that differ")

    def refuses(self, name, change, complaint):
        """A file changed by change(bytes) is refused with these words."""
        with open(self.path(name), "rb") as file:
            changed = change(bytearray(file.read()))
        with open(self.path("changed.safetensors"), "wb") as file:
            file.write(changed)
        try:
            self.lapse("predict", "changed.safetensors", "history.csv", "--at", "+1h")
        except ValueError as error:
            forward.require("ended with 1:" in str(error) and complaint in str(error), f"the complaint is another: {error}")
        else:
            raise ValueError("the file was accepted")


def flipped(place):
    def change(data):
        data[place] ^= 1
        return data
    return change


def main(tool, folder):
    suite = Suite(tool, folder)
    suite.prepare()
    small = ["--dims", "8", "--context", str(CONTEXT)]
    shapes = itertools.product(("position", "bochner", "mercer"), (1, 2), (1, 2), ("known", "unknown"))
    for encoding, blocks, heads, target in shapes:
        options = [*small, "--encoding", encoding, "--blocks", str(blocks), "--heads", str(heads), "--target-time", target]
        if encoding != "position":
            options += ["--periods", "5"]
        if encoding == "mercer":
            options += ["--harmonics", "3"]
        name = f"{encoding}-{blocks}-{heads}-{target}.safetensors"
        suite.check(name, suite.agree, name, *options)
    ways = itertools.product(("position", "bochner", "mercer"), ("linear", "mlp-query", "mlp"), ("concatenate", "add"))
    for number, (encoding, projection, combine) in enumerate(ways):
        name = f"{encoding}-{projection}-{combine}.safetensors"
        target = "unknown" if number % 5 == 4 else "known"
        suite.check(name, suite.agree, name, *small, "--encoding", encoding, "--projection", projection, "--combine", combine,
                    "--blocks", str(1 + number % 2), "--heads", "2", "--periods", "5", "--target-time", target)
    suite.prepare_fields()
    for predict, encoding in itertools.product(("event", "action", "both"), ("position", "bochner", "mercer")):
        name = f"{predict}-{encoding}.safetensors"
        suite.check(name, suite.agree_with_fields, name, *small, "--predict", predict, "--encoding", encoding, "--periods", "5")
    suite.check("fields and draws", suite.agree_with_fields, "drawn.safetensors", *small, "--predict", "both", "--encoding",
                "bochner-normal", "--periods", "5", "--draws", "3")
    suite.check("wide fields", suite.agree_with_fields, "wide.safetensors", *small, "--predict", "both", "--field-dims", "11",
                "--projection", "mlp", "--combine", "add")
    # The encodings that are left: fixed ones, and sampled ones with one draw or several.
    for number, encoding in enumerate(("none", "sinusoid", "random", "bochner-normal")):
        for draws in ("1", "3"):
            name = f"{encoding}-{draws}.safetensors"
            suite.check(name, suite.agree, name, *small, "--encoding", encoding, "--periods", "5", "--draws", draws,
                        "--blocks", str(1 + number % 2), "--heads", "2")
    for number, inverse in enumerate(("mlp", "mlp-residual", "maf", "iaf", "nvp")):
        name = f"{inverse}.safetensors"
        suite.check(name, suite.agree, name, *small, "--encoding", "bochner-invcdf", "--inverse-cdf", inverse, "--periods", "5",
                    "--hidden", "6", "--draws", str(1 + number % 3), "--combine", "add" if number % 2 else "concatenate")
    for start in ("geometric", "paper", "random", "linear"):
        name = f"{start}.safetensors"
        suite.check(name, suite.agree, name, *small, "--periods", "5", "--harmonics", "2", "--period-init", start,
                    "--periods-fixed")
    for number, (encoding, output) in enumerate(itertools.product(("position", "bochner", "mercer"), ("shared", "separate"))):
        name = f"recommend-{encoding}-{output}.safetensors"
        loss = ("softmax", "bce", "sampled-softmax")[number % 3]
        suite.check(name, suite.agree, name, *small, "--task", "recommend", "--encoding", encoding, "--item-output", output,
                    "--loss", loss, "--blocks", "2", "--heads", "2", "--periods", "5")
    suite.check("recommend and draws", suite.agree, "recommend-drawn.safetensors", *small, "--task", "recommend", "--encoding",
                "bochner-normal", "--periods", "5", "--draws", "3")
    # Odd sizes: nothing is a multiple of anything, three of each; and one of each.
    odd = ["--dims", "15", "--blocks", "3", "--heads", "3", "--context", "5", "--periods", "7", "--harmonics", "3"]
    suite.check("odd sizes", suite.agree, "odd.safetensors", *odd)
    # Two dims: a norm of two numbers is only well-conditioned where they differ, as with this seed.
    least = ["--dims", "2", "--blocks", "1", "--heads", "1", "--context", "1", "--periods", "1", "--harmonics", "1", "--seed", "3"]
    suite.check("least sizes", suite.agree, "least.safetensors", *least)
    suite.check("default sizes", suite.agree, "default.safetensors")
    suite.check("majority", suite.agree, "majority.safetensors", "--model", "majority")
    for order in "123":
        suite.check(f"markov {order}", suite.agree, f"markov{order}.safetensors", "--model", "markov", "--order", order)
    suite.check("markov and context", suite.agree, "short.safetensors", "--model", "markov", "--order", "3", "--context", "1")
    suite.check("equal runs", suite.same_twice)
    for what, place in (("metadata", 60), ("checksum", 8 + 29), ("tensor", -1)):
        suite.check(f"an edited {what}", suite.refuses, "odd.safetensors", flipped(place), "checksum does not match")
    suite.check("a file cut off", suite.refuses, "odd.safetensors", lambda data: data[:-1], "was it cut off?")
    print(f"largest difference of a probability: {suite.largest:.2g}")
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
