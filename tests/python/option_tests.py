"""Tests of options in sentences, of the verbs of the tool and of interrupts: a part of test_package.py, which imports it."""

import json
import os
import re
import signal

import numpy as np

import lapse
from lapse import _wording
from lapse._c import lib

from __main__ import ROOT, SHOP, raises, shop, small_model, tool

# --------------------------------------------------------------------------------------------------------- verbs ----


def test_further_verbs_do_what_the_tool_does():
    lapse.simulate("a.csv", "sessions", catalogue="ai.csv", items=600, sequences=50, seed=5)
    tool("simulate", "--preset", "sessions", "--items", "600", "--sequences", "50", "--seed", "5", "-o", "b.csv",
         "--catalogue", "bi.csv")
    for left, right in (("a.csv", "b.csv"), ("ai.csv", "bi.csv")):
        assert open(left, "rb").read() == open(right, "rb").read()
    data = lapse.read_csv("a.csv", event="item")
    data.save("a.lapse")
    made = lapse.pretrain(data, catalogue="ai.csv", dims=8, epochs=1, session_gap="1d", seed=2)
    made.save("a.vectors")
    tool("pretrain", "a.lapse", "-o", "b.vectors", "--catalogue", "ai.csv", "--dims", "8", "--epochs", "1",
         "--session-gap", "1d", "--seed", "2")
    read = lapse.Vectors.load("b.vectors")
    assert made.names == read.names and np.array_equal(made.array, read.array) and made.array.shape[1] == 8
    assert not made.array.flags.writeable and made.properties.keys() == read.properties.keys()
    told = json.loads(tool("bound", "--epsilon", "0.2", "--tmax", "30d", "--sigma", "1/1d", "--repeats", "0", "--json"))
    assert lapse.bound(epsilon=0.2, span="30d", sigma=1 / 86400) == told["proof"]["samples"], told


def test_every_verb_of_the_tool_has_its_call():
    calls = {"simulate": "simulate", "import": "read_csv", "info": "Dataset.properties", "check": "Dataset.check",
             "pretrain": "pretrain", "train": "train", "compare": "compare", "tune": "tune", "eval": "Model.evaluate",
             "predict": "Model.predict", "forecast": "Model.forecast", "inspect": "Model.inspect", "kernel": "Model.kernel",
             "bound": "bound", "serve": "Client"}
    verbs = re.findall(r"^  ([a-z]+)  +[a-z]", tool("--help"), re.M)
    assert set(verbs) - set(calls) == {"demo", "bench", "help", "store"}, verbs  # of the terminal and of developers
    for verb, path in calls.items():
        member = lapse
        for part in path.split("."):
            member = getattr(member, part)


# ----------------------------------------------------------------------------------------------------- sentences ----


def test_sentences_name_options_as_python_does():
    for said, wanted in (
            ("select one with --event item or --event action, or both with --event item,action",
             'select one with event="item" or event="action", or both with event=["item", "action"]'),
            ("train with --dims 32, or --learning-rate 1e-3.", "train with dims=32, or learning_rate=1e-3."),
            ("try a smaller --learning-rate than 0.1", "try a smaller learning_rate than 0.1"),
            ("import with --deduplicate exact.", 'import with deduplicate="exact".'),
            ("set --time-unit mdy (month first)", 'set time_unit="mdy" (month first)'),
            ("import it with --split-column COLUMN", "import it with split=COLUMN"),
            ("add --field price", 'add fields=["price"]'),
            ("import the data with --event 'a,b'", 'import the data with event=["a", "b"]'),
            ("--split-by leave-one-out, sequence or time", 'split_by="leave-one-out", sequence or time'),
            ("choose another --split-by rule", "choose another split_by rule"),
            ("train it with --when", "train it with when=True"),
            ("--when needs a network", "when=True needs a network"),
            ("--no-header is for CSV; --bad-rows skip", "header=False is for CSV; skip_bad_rows=True"),
            ("use fewer --epochs, or --session-gap 30m", 'use fewer epochs, or session_gap="30m"'),
            ("min-rounds is 'x-y'; log-loss", "min_rounds is 'x-y'; log-loss"),
            ("`lapse train --log` writes it", "`lapse train --log` writes it"),
            ("a - b -- c", "a - b -- c")):
        assert _wording.in_python(said, lib) == wanted, (said, _wording.in_python(said, lib))


def test_no_sentence_of_the_library_keeps_a_dashed_option():
    found = 0
    for folder, _, files in os.walk(os.path.join(ROOT, "src")):
        for file in files:
            if not file.endswith(".c") or os.path.basename(folder) in ("inspect", "plot"):  # HTML and SVG
                continue
            code = open(os.path.join(folder, file), encoding="utf-8").read()
            for literal in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', code):
                sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literal)).replace("--%s", "--dims")
                if re.search(r"(?<![\w(-])--[a-z]", sentence):
                    found += 1
                    left = re.sub(r"lapse [a-z]+ --", "", _wording.in_python(sentence, lib))
                    assert not re.search(r"--[a-z]", left), (file, left)
    assert found > 40


def test_errors_name_arguments():
    columns = {"user": ["a"], "time": np.array([1.0]), "item": ["x"], "action": ["y"]}
    data, model = shop(), small_model(epochs=1)
    for kind, part, call in (
            (lapse.InputError, 'sequence="user" time="time" event="action"',
             lambda: lapse.Dataset.from_arrow(lapse.Table(columns))),
            (lapse.UsageError, "learning_rate takes a number", lambda: lapse.train(data, learning_rate="x")),
            (lapse.UsageError, "did you mean learning_rate?", lambda: lapse.train(data, learnin_rate=1)),
            (lapse.UsageError, "did you mean learning_rate?", lambda: lapse.compare(data, learnin_rate=1)),
            (lapse.UsageError, "did you mean min_events", lambda: lapse.read_csv("shop.csv", min_event=1)),
            (lapse.UsageError, "the options are", lambda: lapse.simulate("x.csv", colour="red")),
            (lapse.UsageError, "time_unit is 'x'", lambda: lapse.read_csv("shop.csv", time_unit="x", **SHOP)),
            (lapse.UsageError, "import it with split=COLUMN", lambda: lapse.train(data, split_by="column")),
            (lapse.UsageError, "train it with when=True", lambda: model.forecast(data))):
        said = str(raises(kind, call))
        assert part in said and "--" not in said, said
    assert not [help for help in lapse.options()["help"] if "--" in help]


def test_an_interrupt_keeps_the_best_model():
    def interrupt(row):
        if row["epoch"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    # SIGINT is ignored in a background job of a script, and Python then leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = small_model(epochs=1000, patience=1000, on_epoch=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 3 <= len(model.history) < 1000
    assert model.predict(shop(), top=1)["rank"].tolist() == [1] * shop().sequences
