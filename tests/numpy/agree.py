"""agree.py: trains small models of every architecture and compares `lapse predict` with docs/forward_pass.py. run.sh calls it.

    agree.py LAPSE EMPTY-FOLDER

The lists of models, encodings and other choices come from the tool: a model or an encoding that docs/forward_pass.py does not have fails.
Histories have the lengths at which a window changes: one event, less than the context, the context, one more, and lengths at
which a session moves its buffers. Some events have equal times.
"""
import csv
import ctypes
import datetime
import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np

from evaluation import check_evaluation
from rules import check_file, require

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
sys.path.insert(0, DOCS)
import forward_pass as page  # noqa: E402

def unix(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


MODELS = {**page.NETWORKS, **page.BASELINES}
ATTENTION = ("attention", "sasrec")  # models whose attention weights add up to 1
TOLERANCE = 1e-5
CONTEXT = 8
LENGTHS = (1, 2, CONTEXT - 1, CONTEXT, CONTEXT + 1, 2 * CONTEXT, 2 * CONTEXT + 1, 5 * CONTEXT + 3)
AT = ("+0s", "+250ms", "+40m", "+3d", "+1w", "+2y", "2031-07-01T00:00:00Z")
SECONDS = {"+0s": 0, "+250ms": 0.25, "+40m": 2400, "+3d": 259200, "+1w": 604800, "+2y": 2 * 365.25 * 86400}
TRAIN = ["--epochs", "3", "--batch", "16", "--learning-rate", "0.02", "--threads", "1", "--checkpoint", "none", "--no-eval"]
SMALL = ["--dims", "8", "--context", str(CONTEXT)]

# Options of further models of an architecture, besides its defaults; for both tasks and both target times.
VARIANTS = {
    "attention": [["--heads", "2", "--blocks", "2"], ["--heads", "2", "--blocks", "3", "--encoding", "position"],
                  ["--heads", "2", "--blocks", "2", "--gap-input", "off"], ["--encoding", "position", "--gap-input", "on"]],
    "sasrec": [["--blocks", "1", "--heads", "2"], ["--blocks", "3", "--gap-input", "on"], ["--dims", "5", "--context", "3"],
               ["--encoding", "mercer", "--periods", "4"]],
    "lstm": [["--layers", "2"], ["--gap-input", "on"], ["--layers", "3"], ["--layers", "1", "--dims", "5", "--context", "3"],
             ["--encoding", "mercer", "--periods", "4"], ["--encoding", "bochner-normal", "--periods", "5", "--frequency-samples", "3"]],
    "gru4rec": [["--layers", "2"], ["--preset", "2016"], ["--preset", "2018"], ["--gap-input", "on"], ["--layers", "1", "--dims", "5", "--context", "3"],
                ["--encoding", "bochner", "--periods", "5"]],
    "rnn-attention": [["--layers", "2"], ["--gap-input", "on"], ["--layers", "1", "--dims", "5", "--context", "3"],
                      ["--encoding", "mercer", "--periods", "4"]],
    "caser": [["--conv-length", "3", "--conv-vertical", "0"], ["--conv-length", "12", "--conv-filters", "3", "--gap-input", "on"],
              ["--conv-length", "1", "--dims", "5", "--context", "3"],
              ["--encoding", "mercer", "--periods", "4", "--conv-targets", "3"]],
    "transrec": [["--gap-input", "on"], ["--distance", "l1"], ["--dims", "5", "--context", "3"], ["--encoding", "bochner", "--periods", "5"]],
    "rmtpp": [["--layers", "2"], ["--cell", "gru"], ["--gap-input", "off"], ["--encoding", "mercer", "--periods", "4"],
              ["--layers", "1", "--dims", "5", "--context", "3", "--time-unit", "1h", "--time-weight", "0.5"]],
    "timejoint": [["--layers", "2"], ["--gap-input", "on"], ["--encoding", "mercer", "--periods", "4"],
                  ["--layers", "1", "--dims", "5", "--context", "3", "--buckets", "7", "--duration-weight", "0"]],
    "markov": [["--order", "2"], ["--order", "3", "--context", "1"]],
}

PAGES = [os.path.join(DOCS, name) for name in ("model.md", "when.md")]
ALWAYS = ("checksum format format.version task model target_time event_types context seed split dataset.fingerprint source "
          "column.sequence column.time column.event").split()
OF_NETWORKS = "dims dropout gap_input fields score.epoch run.status train.learning_rate train.epochs".split()
OF_MODEL = {"attention": "encoding projection combine blocks heads".split(), "sasrec": ["encoding", "blocks", "heads"],
            "lstm": ["encoding", "layers"], "gru4rec": ["encoding", "layers"], "rnn-attention": ["encoding", "layers"],
            "caser": "encoding sequences conv_length conv_filters conv_vertical train.conv_targets".split(),
            "transrec": ["encoding", "sequences", "distance"],
            "rmtpp": ["encoding", "layers", "time_unit", "cell", "when_floor", "train.time_weight"],
            "timejoint": ["encoding", "layers", "buckets", "train.duration_weight", "gap.offset", "gap.mean", "gap.deviation"],
            "markov": ["order"],
            "recency": ["half_life"]}


def documented_names():
    """Names in backquotes on the pages. `.bias` after `x.weight` is x.bias."""
    found = []
    for path in PAGES:
        with open(path, encoding="utf-8") as file:
            found += re.findall(r"`([^`\n]+)`", file.read())
    names = set(found)
    for before, name in zip(found, found[1:]):
        if name.startswith("."):
            names.add(before.rpartition(".")[0] + name)
    return names


def documented(model):
    """The pages name every key and tensor of the file (those of a network of times without "when."), and it has every required key."""
    names = documented_names()
    is_network = "fields" in model.metadata
    required = ALWAYS + (OF_NETWORKS if is_network else []) + OF_MODEL.get(model.metadata["model"], [])
    for key in required:
        require(key in model.metadata, f"the metadata has no '{key}'")
    parts = {"block": "<n>", "time.flow": "<m>", "markov": "<k>", "lstm": "<l>", "gru": "<l>", "rnn": "<l>", "horizontal": "<h>", "join": "<h>"}
    tensors = {re.sub(r"^(block|time\.flow|markov|lstm|gru|rnn|horizontal|join)\.\d+", lambda found: f"{found[1]}.{parts[found[1]]}", name)
               for name in (re.sub(r"^when\.(?!season|history)", "", name) for name in model.tensors)}
    for name in (re.sub(r"\bfield\.\d+\.", "field.<y>.", name) for name in tensors | set(model.metadata)):
        require(name in names, f"docs/model.md does not describe '{name}'")


class Sessions:
    """Attention weights of a model file, by the shared library beside the tool."""

    def __init__(self, library, path):
        self.c = ctypes.CDLL(library)
        self.c.lapse_session_window.restype = ctypes.c_int64
        self.model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("lapse_model_load", os.fsencode(path), ctypes.byref(self.model))
        self.call("lapse_session_new", self.model, ctypes.byref(self.session))

    def call(self, name, *arguments):
        message = ctypes.create_string_buffer(4096)  # a lapse_error: the status, then the text
        if getattr(self.c, name)(*arguments, message):
            raise ValueError(f"{name}: {message.raw[4:].partition(bytes(1))[0].decode()}")

    def weights(self, events, times, query_time, cached):
        """[blocks, heads, events of the window]. cached: the session has answered a query after each event, so that it has
        cached the earlier rows one by one, and moved them with its window."""
        self.c.lapse_session_clear(self.session)
        for event, time in zip(events, times):
            self.call("lapse_session_append", self.session, ctypes.c_double(time), event.encode())
            if cached:
                out = (ctypes.c_double * self.c.lapse_session_window(self.session))()
                self.call("lapse_session_attention", self.session, ctypes.c_double(time + 5), 0, 0, out)
        shape = (self.c.lapse_model_attention_blocks(self.model), self.c.lapse_model_attention_heads(self.model),
                 self.c.lapse_session_window(self.session))
        found = np.zeros(shape)
        for block, head in itertools.product(range(shape[0]), range(shape[1])):
            out = (ctypes.c_double * shape[2])()
            self.call("lapse_session_attention", self.session, ctypes.c_double(query_time), block, head, out)
            found[block, head] = out
        return found

    def close(self):
        self.c.lapse_session_free(self.session)
        self.c.lapse_model_free(self.model)


class Suite:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.passed = self.failed = 0
        self.largest = 0.0
        self.largest_weight = 0.0
        self.compared_weights = 0
        self.histories = []
        self.networks = []
        library = os.path.join(os.path.dirname(tool), "liblapse.so")
        self.library = library if os.path.exists(library) else None

    def path(self, name):
        return f"{self.folder}/{name}"

    def run(self, *arguments):
        return subprocess.run([self.tool, *arguments], capture_output=True, text=True, cwd=self.folder)

    def lapse(self, *arguments):
        """The tool's standard output."""
        done = self.run(*arguments)
        if done.returncode != 0:
            raise ValueError(f"lapse {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def choices(self, option):
        """The values that an option of `lapse train` accepts, from the error message for another value."""
        message = self.run("train", "shop.lapse", "-o", "none.safetensors", f"--{option}", "?").stderr
        found = re.search(rf"--{option} takes one of (.+), not '\?'", message)
        if not found:
            raise ValueError(f"the tool does not list the choices of --{option}: {message.strip()}")
        return found[1].split(", ")

    def tasks(self, model):
        """The tasks that a model can be trained for."""
        refused = "cannot be trained for the task"
        return [task for task in self.choices("task")
                if refused not in self.run("train", "shop.lapse", "-o", "probe.safetensors", "--model", model, "--task", task,
                                           *TRAIN, "--epochs", "1").stderr]

    def encodings(self, model):
        """The encodings that a model can be trained with."""
        refused = f"the model '{model}' sees the order of events without the encoding"
        return [encoding for encoding in self.choices("encoding")
                if refused not in self.run("train", "shop.lapse", "-o", "probe.safetensors", "--model", model, "--encoding",
                                           encoding, *TRAIN, "--epochs", "1", "--dims", "2", "--blocks", "1").stderr]

    def of_task(self, task):
        """The networks that can be trained for a task."""
        return [model for model in self.networks if task in self.tasks(model)]

    def check(self, name, test, *arguments):
        try:
            test(*arguments)
            self.passed += 1
        except Exception as error:  # the other checks still run
            self.failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}")

    def prepare(self):
        """Shop data, and histories of LENGTHS events from it."""
        self.lapse("simulate", "--preset", "shop", "--sequences", "150", "--days", "60", "--seed", "5", "-o", "shop.csv")
        self.lapse("import", "shop.csv", "-o", "shop.lapse", "--event", "action,item")
        with open(self.path("shop.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        events = [row["action"] + " " + row["item"] for row in rows]
        random = np.random.default_rng(11)
        with open(self.path("history.csv"), "w") as file:
            file.write("user,time,event\n")
            for length in LENGTHS:
                gaps = np.round(random.exponential(random.choice([5, 3600, 400000], length)), 3)
                gaps[random.random(length) < 0.15] = 0
                first = random.integers(len(events) - length)
                past = events[first:first + length]  # consecutive events, so that Markov models have counts for them
                # The last event is one second after an event of the data, so that recency has a weight for it.
                times = np.round(float(rows[first]["time"]) + 1 - gaps.sum() + np.cumsum(gaps), 3)
                self.histories.append((f"h{length}", past, [float(f"{t:.3f}") for t in times]))
                file.writelines(f"h{length},{t:.3f},{event}\n" for event, t in zip(past, times))

    def train(self, dataset, name, *options):
        self.lapse("train", dataset, "-o", name, *TRAIN, *options)
        model = page.Model(self.path(name))
        check_file(self.path(name), model)
        documented(model)
        return model

    def predict(self, name, histories):
        query_times = [word for at in AT for word in ("--at", at)]
        return json.loads(self.lapse("predict", name, histories, *query_times, "--top", "0", "--json"))["sequences"]

    def agree(self, name, *options):
        """One model: all histories at all query times."""
        model = self.train("shop.lapse", name, *options)
        answers = self.predict(name, "history.csv")
        require([a["sequence"] for a in answers] == [h[0] for h in self.histories], "other sequences in the output")
        seen = []
        for (sequence, events, times), given in zip(self.histories, answers):
            for at, answer in zip(AT, given["predictions"]):
                when = times[-1] + SECONDS[at] if at in SECONDS else 1940630400.0
                require(abs(answer["time"] - when) < 2e-3, f"{sequence}: query time {answer['time']}, not {when}")
                expected = page.predict(model, events, times, when)
                member = "item" if model.metadata["task"] == "recommend" else "event"
                found = {top[member]: top["probability"] for top in answer["top"]}
                require(set(found) == set(model.names), f"{sequence} {at}: not all event types are in the output")
                difference = max(abs(found[event] - p) for event, p in zip(model.names, expected))
                self.largest = max(self.largest, difference)
                require(difference <= TOLERANCE, f"{sequence} {at}: probabilities differ by {difference:.2g}")
                seen.append(expected)
        self.agree_on_attention(name, model)
        self.depends_on_inputs(model, np.array(seen).reshape(len(LENGTHS), len(AT), -1))
        return model

    def agree_on_attention(self, name, model):
        """The attention weights of all blocks and heads, for every history at three query times, with and without cached rows.
        A model whose weights docs/forward_pass.py does not have must have none."""
        if not self.library:
            return
        sessions = Sessions(self.library, self.path(name))
        if model.metadata["model"] not in ATTENTION:
            require(sessions.c.lapse_model_attention_blocks(sessions.model) == 0, "docs/forward_pass.py has no attention weights of it")
            sessions.close()
            return
        self.compared_weights += 1
        for sequence, events, times in self.histories:
            for lag, cached in itertools.product((0, 2400, 604800), (False, True)):
                expected = page.attention_weights(model, events, times, times[-1] + lag)
                found = sessions.weights(events, times, times[-1] + lag, cached)
                require(found.shape == expected.shape, f"{sequence}: weights {found.shape}, not {expected.shape}")
                difference = np.abs(found - expected).max()
                self.largest_weight = max(self.largest_weight, difference)
                require(difference <= TOLERANCE, f"{sequence} +{lag} s: weights differ by {difference:.2g}")
        sessions.close()

    def agree_when(self, name, *options):
        """The time of the next event of a model that learns when: the quantiles of all histories, to 1e-5 of the time to them."""
        model = self.train("shop.lapse", name, "--when", *options)
        self.agree_on_attention(name, model)
        answers = json.loads(self.lapse("predict", name, "history.csv", "--when", "--now", "1970-01-01", "--json"))["sequences"]
        for (sequence, events, times), given in zip(self.histories, answers):
            require(abs(unix(given["from"]) - times[-1]) < 2e-3, f"{sequence}: from {given['from']}, not {times[-1]}")
            for member, probability in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9)):
                expected = page.quantile(model, events, times, probability)
                span = expected - times[-1]
                difference = abs(unix(given[member]) - expected)
                require(difference <= 5 * TOLERANCE * span + 2e-3,
                                f"{sequence}: {member} is {given[member]}, not {expected}")

    def agree_with_model(self, name, model, *options):
        """One model of the tool's table, which must have a forward pass here."""
        require(model in MODELS, f"docs/forward_pass.py has no forward pass of the model '{model}'")
        trained = self.agree(name, "--model", model, *SMALL, *options)
        if "fields" in trained.metadata and model not in self.networks:
            self.networks.append(model)

    def agree_with_users(self, name, model):
        """A model with user vectors: the sequences of the training data have theirs, also in sessions of several queries."""
        trained = self.train("shop.lapse", name, "--model", model, *SMALL)
        require(np.abs(trained.double("user.embedding")[0]).max() == 0, "the unknown user has a vector")
        learned = np.abs(trained.double("user.embedding")[1:]).max(axis=1) > 0  # users with an event to predict in training
        require(learned.mean() > 0.5, "most users have no vector")
        with open(self.path("shop.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        answers = json.loads(self.lapse("predict", name, "shop.lapse", "--at", "+1h", "--top", "0", "--json"))["sequences"]
        for user, given in enumerate(answers[:20]):
            past = [row for row in rows if row["user"] == given["sequence"]]
            events, answer = [row["action"] + " " + row["item"] for row in past], given["predictions"][0]
            expected = page.predict(trained, events, [float(row["time"]) for row in past], answer["time"], user=user + 1)
            found = {top["item"]: top["probability"] for top in answer["top"]}
            difference = max(abs(found[event] - p) for event, p in zip(trained.names, expected))
            require(difference <= TOLERANCE, f"{given['sequence']}: probabilities differ by {difference:.2g}")

    def prepare_fields(self):
        """The shop by items, with actions, a category that is sometimes empty, a number that is often missing and a number that
        is nearly constant; and histories of it."""
        random = np.random.default_rng(12)
        with open(self.path("shop.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["location"] = str(random.choice(["", "home", "shop, old", "w\u00e4g"]))
            row["price"] = "" if random.random() < 0.4 else f"{random.normal(1e6, 3):.2f}"
            row["rank"] = "1e9" if random.random() < 0.02 else "7"
        columns = ["user", "time", "item", "action", "location", "price", "rank"]
        with open(self.path("fields.csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        self.lapse("import", "fields.csv", "-o", "fields.lapse", "--event", "item", "--action", "action", "--field", "location",
                   "--number", "price", "--number", "rank")
        self.field_histories = []
        with open(self.path("field_history.csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            for length in LENGTHS:
                first = random.integers(len(rows) - length)
                past = [dict(row, user=f"h{length}", time=f"{1.77e9 + 5000.5 * i:.3f}")
                        for i, row in enumerate(rows[first:first + length])]
                writer.writerows(past)
                self.field_histories.append(past)

    def agree_with_fields(self, name, *options):
        """One model with fields: all histories at all query times, for each of its targets."""
        model = self.train("fields.lapse", name, *options)
        answers = self.predict(name, "field_history.csv")
        member = "item" if model.metadata["task"] == "recommend" else "event"
        targets = {"event": ("top", member, model.names), "action": ("top_actions", "action", model.categories[0])}
        wanted = ["event", "action"] if model.metadata["predict"] == "both" else [model.metadata["predict"]]
        for past, given in zip(self.field_histories, answers):
            events, times = [row["item"] for row in past], [float(row["time"]) for row in past]
            fields = [[row["action"], row["location"], float(row["price"]) if row["price"] else None, float(row["rank"])]
                      for row in past]
            for answer in given["predictions"]:
                require([targets[t][0] for t in wanted] == [key for key in answer if key.startswith("top")],
                                "other targets in the output")
                for target in wanted:
                    key, member, names = targets[target]
                    expected = page.predict(model, events, times, answer["time"], fields, target)
                    found = {top[member]: top["probability"] for top in answer[key]}
                    difference = max(abs(found[value] - p) for value, p in zip(names, expected))
                    self.largest = max(self.largest, difference)
                    require(len(found) == len(expected) and difference <= TOLERANCE,
                                    f"{past[0]['user']}, {target}: probabilities differ by {difference:.2g}")

    @staticmethod
    def depends_on_inputs(model, seen):
        """Predictions change with the query time and with the history where the model reads them, and only there."""
        name, known = model.metadata["model"], model.metadata["target_time"] == "known"
        over_time = np.abs(seen - seen[:, :1]).max()
        over_histories = np.abs(seen - seen[:1]).max()
        reads_time = known and (name == "recency" or "lags" in model.metadata)
        reads_history = name not in ("majority", "popularity")
        least = 1e-3 if name == "recency" else 0.005
        require(over_time > least if reads_time else over_time == 0, f"predictions change by {over_time:.2g} over time")
        require(over_histories > least if reads_history else over_histories == 0,
                        f"predictions change by {over_histories:.2g} from history to history")

    def deterministic(self):
        """Equal runs, also with another number of threads, write equal files."""
        files = []
        for threads in ("1", "2"):
            self.lapse("train", "shop.lapse", "-o", "same.safetensors", *TRAIN, "--dims", "8", "--threads", threads)
            with open(self.path("same.safetensors"), "rb") as file:
                files.append(file.read())
        require(files[0] == files[1], "equal runs wrote files that differ")

    def refuses(self, name, change, complaint):
        """The tool refuses a file changed by change(bytes), with these words."""
        with open(self.path(name), "rb") as file:
            changed = change(bytearray(file.read()))
        with open(self.path("changed.safetensors"), "wb") as file:
            file.write(changed)
        try:
            self.lapse("predict", "changed.safetensors", "history.csv", "--at", "+1h")
        except ValueError as error:
            require("ended with 1:" in str(error) and complaint in str(error), f"another message: {error}")
        else:
            raise ValueError("the tool accepted the file")


def flipped(position):
    def change(data):
        data[position] ^= 1
        return data
    return change


def check_models(suite):
    """Every model of the tool's table, with its variants, both tasks and both target times."""
    suite.check("models without a forward pass", require, set(suite.choices("model")) <= set(MODELS),
                f"docs/forward_pass.py has {sorted(MODELS)}, the tool has {suite.choices('model')}")
    for model in suite.choices("model"):
        for number, variant in enumerate([[], *VARIANTS.get(model, [])]):
            for task, target_time in itertools.product(suite.tasks(model), suite.choices("target-time")):
                name = f"{model}-{number}-{task}-{target_time}.safetensors"
                suite.check(name, suite.agree_with_model, name, model, "--task", task, "--target-time", target_time, *variant)


def check_users(suite):
    for model in ("caser", "transrec"):
        suite.check(f"users of {model}", suite.agree_with_users, f"users-{model}.safetensors", model)


def check_attention(suite):
    shapes = itertools.product(("position", "bochner", "mercer"), (1, 2), (1, 2), ("known", "unknown"))
    for encoding, blocks, heads, target_time in shapes:
        name = f"{encoding}-{blocks}-{heads}-{target_time}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--encoding", encoding, "--blocks", str(blocks), "--heads", str(heads),
                    "--target-time", target_time, "--periods", "5", "--harmonics", "3")
    # Every encoding, with one frequency sample and with several where it samples them.
    for number, (encoding, samples) in enumerate(itertools.product(suite.choices("encoding"), ("1", "3"))):
        name = f"{encoding}-{samples}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--encoding", encoding, "--periods", "5", "--hidden", "6",
                    "--frequency-samples", samples, "--blocks", str(1 + number // 2 % 2), "--heads", "2")
    for number, encoding in enumerate(suite.encodings("sasrec")):
        name = f"sasrec-{encoding}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--model", "sasrec", "--encoding", encoding, "--periods", "5", "--hidden",
                    "6", "--frequency-samples", "2", "--blocks", str(2 + number % 2), "--heads", "2")
    grid = itertools.product(("position", "bochner", "mercer"), suite.choices("projection"), suite.choices("combine"))
    for number, (encoding, projection, combine) in enumerate(grid):
        name = f"{encoding}-{projection}-{combine}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--encoding", encoding, "--projection", projection, "--combine", combine,
                    "--blocks", str(1 + number % 2), "--heads", "2", "--periods", "5",
                    "--target-time", "unknown" if number % 5 == 4 else "known")
    for number, inverse in enumerate(suite.choices("inverse-cdf")):
        name = f"inverse-{inverse}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--encoding", "bochner-invcdf", "--inverse-cdf", inverse, "--periods", "5",
                    "--hidden", "6", "--frequency-samples", str(1 + number % 3),
                    "--combine", "add" if number % 2 else "concatenate")
    for init in suite.choices("period-init"):
        name = f"init-{init}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--periods", "5", "--harmonics", "2", "--period-init", init,
                    "--periods-fixed")
    # Sizes that share no divisor with a vector width, the smallest sizes, and the defaults.
    odd = ["--dims", "15", "--blocks", "3", "--heads", "3", "--context", "5", "--periods", "7", "--harmonics", "3"]
    suite.check("odd sizes", suite.agree, "odd.safetensors", *odd)
    # Layer norm of two numbers is well-conditioned only where they differ, as with this seed.
    least = ["--dims", "2", "--blocks", "1", "--heads", "1", "--context", "1", "--periods", "1", "--harmonics", "1",
             "--seed", "11"]
    suite.check("smallest sizes", suite.agree, "least.safetensors", *least)
    suite.check("default sizes", suite.agree, "default.safetensors")


def check_item_vectors(suite):
    """A recommender that starts from item vectors, one of them of an item that only the catalogue has."""
    with open(suite.path("catalogue.csv"), "w") as file:
        file.write("item,category\nview coffee,drink\nview abacus,drink\n")
    suite.lapse("pretrain", "shop.lapse", "-o", "items.safetensors", "--catalogue", "catalogue.csv", "--item", "item", "--dims",
                "8", "--epochs", "1")
    model = suite.agree("cold.safetensors", *SMALL, "--task", "recommend", "--item-vectors", "items.safetensors")
    require(model.names[-1] == "view abacus", "the item of the catalogue is not the last one")
    require("train.item_vectors" in model.metadata, "the metadata has no 'train.item_vectors'")


def check_fields(suite):
    """Networks with fields: every target, both tasks."""
    classifiers = suite.of_task("classify")
    for model, predict in itertools.product(classifiers, suite.choices("predict")):
        name = f"fields-{model}-{predict}.safetensors"
        suite.check(name, suite.agree_with_fields, name, *SMALL, "--model", model, "--predict", predict)
    for model in suite.of_task("recommend"):
        name = f"fields-{model}-recommend.safetensors"
        suite.check(name, suite.agree_with_fields, name, *SMALL, "--model", model, "--task", "recommend")
    for model in classifiers:
        name = f"fields-{model}-wide.safetensors"
        suite.check(name, suite.agree_with_fields, name, *SMALL, "--model", model, "--predict", "both", "--field-dims", "11")
    for predict, encoding in itertools.product(("event", "action", "both"), ("position", "bochner")):
        name = f"fields-{predict}-{encoding}.safetensors"
        suite.check(name, suite.agree_with_fields, name, *SMALL, "--predict", predict, "--encoding", encoding, "--periods", "5")
    suite.check("fields and frequency samples", suite.agree_with_fields, "fields-sampled.safetensors", *SMALL, "--predict",
                "both", "--encoding", "bochner-normal", "--periods", "5", "--frequency-samples", "3")
    suite.check("fields and projections", suite.agree_with_fields, "fields-mlp.safetensors", *SMALL, "--predict", "both",
                "--projection", "mlp", "--combine", "add")


def check_recommenders(suite):
    losses = suite.choices("loss")
    grid = itertools.product(suite.of_task("recommend"), suite.choices("item-output"), suite.choices("negatives"))
    only_output = {"caser": "separate", "transrec": "shared"}  # by their definition
    for model, output, negatives in grid:
        if only_output.get(model, output) != output:
            continue
        sampled = "top1" if model == "transrec" else "sampled-softmax"
        name = f"recommend-{model}-{output}-{negatives}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--model", model, "--task", "recommend", "--item-output", output,
                    "--negatives", negatives, "--loss", "bce" if negatives == "uniform" else sampled)
    for encoding, loss in itertools.product(("position", "bochner", "mercer"), losses):
        name = f"recommend-{encoding}-{loss}.safetensors"
        suite.check(name, suite.agree, name, *SMALL, "--task", "recommend", "--encoding", encoding, "--loss", loss,
                    "--blocks", "2", "--heads", "2", "--periods", "5")
    suite.check("recommend and frequency samples", suite.agree, "recommend-sampled.safetensors", *SMALL, "--task", "recommend",
                "--encoding", "bochner-normal", "--periods", "5", "--frequency-samples", "3")


def check_when(suite):
    """Networks that learn when: the network of times, and the mixture."""
    attention = ([], ["--blocks", "1", "--heads", "1"], ["--blocks", "3", "--heads", "2"], ["--encoding", "position"],
                 ["--encoding", "bochner-normal", "--periods", "5", "--frequency-samples", "3"],
                 ["--projection", "mlp-query", "--combine", "add"], ["--target-time", "unknown"], ["--task", "recommend"],
                 ["--when-components", "3", "--when-floor", "1m"],
                 ["--when-background", "constant"], ["--when-background", "week", "--when-components", "4"],
                 ["--when-background", "week", "--encoding", "bochner-normal", "--periods", "5", "--frequency-samples", "3"])
    for number, options in enumerate(attention):
        suite.check(f"when {number}", suite.agree_when, f"when-{number}.safetensors", *SMALL, *options)
    # Every model with attention weights and every encoding: the last block and those before it, two heads.
    pairs = [(model, encoding) for model in ATTENTION for encoding in suite.encodings(model)]
    for number, (model, encoding) in enumerate(pairs):
        suite.check(f"when {model} {encoding}", suite.agree_when, f"when-{model}-{encoding}.safetensors", *SMALL, "--model", model,
                    "--encoding", encoding, "--periods", "5", "--hidden", "6", "--blocks", str(2 + number % 2), "--heads", "2",
                    "--frequency-samples", "2", "--task", ("classify", "recommend")[number % 3 // 2])
    for options in (["--model", "sasrec"], ["--model", "lstm"], ["--model", "lstm", "--encoding", "mercer", "--periods", "4"],
                    ["--model", "gru4rec", "--task", "recommend", "--loss", "bpr-max"],
                    ["--model", "transrec", "--task", "recommend", "--encoding", "mercer", "--periods", "4"],
                    ["--model", "caser", "--task", "recommend"]):
        suite.check(f"when {options}", suite.agree_when, "when-other.safetensors", *SMALL, *options)


def main(tool, folder):
    suite = Suite(tool, folder)
    suite.prepare()
    suite.prepare_fields()
    check_models(suite)
    check_users(suite)
    check_attention(suite)
    check_fields(suite)
    check_recommenders(suite)
    check_evaluation(suite, SMALL)
    check_when(suite)
    suite.check("item vectors", check_item_vectors, suite)
    suite.check("equal runs", suite.deterministic)
    for part, position in (("metadata", 60), ("checksum", 8 + 29), ("tensor", -1)):
        suite.check(f"an edited {part}", suite.refuses, "odd.safetensors", flipped(position), "checksum does not match")
    suite.check("a truncated file", suite.refuses, "odd.safetensors", lambda data: data[:-1], "cut off")
    print(f"largest difference of a probability: {suite.largest:.2g}, of an attention weight: {suite.largest_weight:.2g} "
          f"in {suite.compared_weights} models")
    if not suite.library:
        print("attention weights were not compared: there is no liblapse.so beside the tool")
    print(f"{suite.passed} passed, {suite.failed} failed")
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
