"""Tests of options in sentences, of the verbs of the tool and of interrupts: a part of test_package.py, which imports it."""

import json
import os
import re
import signal

import numpy as np

import lapse

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


def test_every_option_in_a_sentence_of_the_library_is_marked():
    """LP_OPTION or LP_FLAG: base/wording.h; texts for the command line alone are the exceptions."""
    found = 0
    for folder, _, files in os.walk(os.path.join(ROOT, "src")):
        for file in files:
            if not file.endswith((".c", ".h")) or os.path.basename(folder) in ("inspect", "plot"):  # HTML and SVG
                continue
            code = re.sub(r"/\*.*?\*/", "", open(os.path.join(folder, file), encoding="utf-8").read(), flags=re.S)
            code = re.sub(r"\.(help|rule) = *(\"(?:[^\"\\]|\\.)*\"\s*)+", "", code)
            found += len(re.findall(r"LP_(?:OPTION|FLAG)\(", code))
            left = re.sub(r"LP_(?:OPTION|FLAG)\(\"[^\"]*\"\)|lapse [a-z]+ --", "", code)
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', left):
                assert not re.search(r"\w --[a-z%]", literal), (file, literal)
    assert found > 60


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
