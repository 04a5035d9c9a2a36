"""Tests of the Python package. Without pandas, Polars, PyArrow, DuckDB or scikit-learn the tests that need them are skipped.

    test_package.py PATH-OF-LAPSE [--all] [--skipped] [TEST...]

--all: everything must be there; --skipped: counts one more skipped test, for what could not be installed; TEST: only these.
"""

import contextlib
import copy
import datetime
import doctest
import gc
import importlib
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import numpy as np

import lapse
from lapse import _c, _table
from lapse._c import ffi, lib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = sys.argv[1]
ALL = "--all" in sys.argv


class Skip(Exception):
    """A test that needs a package that is not there."""


def need(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        if ALL:
            raise
        raise Skip(f"{name} is not installed") from None


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], check=True, capture_output=True, text=True).stdout


def raises(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


SHOP = dict(sequence="user", time="time", event=["action", "item"])


def shop_table():
    """The rows of shop.csv, in a table without any other package."""
    columns = list(zip(*(line.split(",") for line in open("shop.csv").read().splitlines())))
    table = {column[0]: list(column[1:]) for column in columns}
    return lapse.Table({**table, "time": np.array([float(t) for t in table["time"]])})


def shop():
    return lapse.read_csv("shop.csv", **SHOP)


def small_model(**options):
    return lapse.train(shop(), **{"epochs": 2, "seed": 3, "threads": 1, "progress": False, **options})


# ----------------------------------------------------------------------------------------------------- interface ----


def test_every_declaration_of_the_header_is_reached():
    header = "".join(open(os.path.join(ROOT, "include", name)).read() for name in ("lapse.h", "lapse_lab.h"))
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    functions = set(re.findall(r"\b(lapse_\w+)\s*\((?!\*)", code))
    functions -= {"lapse_on_progress", "lapse_on_sweep_progress", "lapse_on_tune_progress"}
    assert len(functions) > 60
    for name in functions:
        assert callable(getattr(lib, name)), name
    types = set(re.findall(r"^}\s*(lapse_\w+);", code, re.M)) | set(re.findall(r"typedef struct (lapse_\w+) \1;", code))
    for name in types | {"lapse_on_progress"}:
        assert ffi.typeof(name), name
    for name in re.findall(r"^\s+(LAPSE_[A-Z_0-9]+) = \d+", code, re.M):
        assert isinstance(getattr(lib, name), int), name


def test_versions_agree():
    header = open(os.path.join(ROOT, "include", "lapse.h")).read()
    version = re.search(r'LAPSE_VERSION "(.*)"', header).group(1)
    project = re.search(r'^version = "(.*)"', open(os.path.join(ROOT, "pyproject.toml")).read(), re.M).group(1)
    assert lapse.__version__ == version == project


def test_everything_exported_has_a_docstring():
    for name in lapse.__all__:
        assert getattr(lapse, name).__doc__, name
    for kind in (lapse.Dataset, lapse.Model, lapse.Session, lapse.Classifier, lapse.Recommender, lapse.Table, lapse.Callback):
        for name, member in vars(kind).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, (property, classmethod))):
                target = member.__func__ if isinstance(member, classmethod) else member
                assert target.__doc__, f"{kind.__name__}.{name}"


def test_every_function_has_an_example():
    members = [(kind, name) for kind in (lapse.Dataset, lapse.Model, lapse.Session, lapse.Classifier, lapse.Recommender,
                                         lapse.Vectors) for name in vars(kind)]
    for owner, name in [(lapse, name) for name in lapse.__all__] + members:
        member = getattr(owner, name)
        own = not isinstance(member, type) or not issubclass(member, lapse.LapseError)
        if not name.startswith("_") and callable(member) and own:
            assert ">>>" in (member.__doc__ or ""), f"{owner.__name__}.{name}"


def test_the_package_needs_only_the_c_library():
    folder = os.path.dirname(lapse.__file__)
    if not os.path.isdir(os.path.join(folder, "libraries")):
        raise Skip("the package is not installed from a wheel")
    out = subprocess.run(["ldd", os.path.join(folder, "liblapse.so")], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        if "=>" in line and not re.match(r"\s*lib(c|m|dl|rt|pthread)\.so", line):
            assert folder in line, line


# ------------------------------------------------------------------------------------------------------ datasets ----


def test_a_table_gives_the_dataset_of_the_csv_file():
    data = lapse.Dataset.from_arrow(shop_table(), **SHOP)
    assert data.fingerprint == shop().fingerprint
    assert data.report["rows"] == data.events == len(data.times) == data.offsets[-1]
    data.save("again.lapse")
    assert lapse.Dataset.open("again.lapse").fingerprint == data.fingerprint
    tool("import", "shop.csv", "-o", "tool.lapse", "--event", "action,item")
    assert lapse.Dataset.open("tool.lapse").fingerprint == data.fingerprint


def test_every_library_gives_the_same_dataset():
    pandas, polars, pyarrow, duckdb = need("pandas"), need("polars"), need("pyarrow"), need("duckdb")
    wanted = shop().fingerprint
    frame = pandas.read_csv("shop.csv")
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    polars_frame = polars.read_csv("shop.csv")
    polars_frame.write_parquet("shop.parquet")
    categories = frame.astype({"user": "category", "action": "category", "item": "category"})
    iso = frame.assign(time=pandas.to_datetime((frame.time * 1000).round().astype("int64"), unit="ms", utc=True))
    connection = duckdb.connect()
    tables = {
        "pandas": frame, "pandas categories": categories, "pandas timestamps": iso, "polars": polars_frame,
        "polars categories": polars_frame.with_columns(polars.col("item").cast(polars.Categorical)),
        "pyarrow": arrow, "many chunks": pyarrow.Table.from_batches(arrow.to_batches(max_chunksize=37)),
        "sliced": pyarrow.concat_tables([arrow.slice(0, 100), arrow.slice(100)]),
        "reader": arrow.to_reader(max_chunksize=50),
        "string views": arrow.set_column(0, "user", arrow["user"].cast(pyarrow.string_view())),
        "duckdb": connection.sql("select * from 'shop.csv'"),
        "parquet": connection.sql("select * from 'shop.parquet'"),
        "parquet by pyarrow": need("pyarrow.parquet").read_table("shop.parquet"),
        "parquet by polars": polars.read_parquet("shop.parquet"),
    }
    for name, table in tables.items():
        assert lapse.Dataset.from_arrow(table, **SHOP).fingerprint == wanted, name


def test_integers_and_filters_are_those_of_the_csv_file():
    rng = np.random.default_rng(5)
    table = lapse.Table({"user": rng.integers(0, 50, 2000), "time": rng.integers(0, 10**6, 2000),
                         "item": rng.integers(0, 30, 2000), "price": rng.random(2000)})
    with open("numbers.csv", "w") as file:
        print(*table.column_names, sep=",", file=file)
        for row in zip(*(table[name].tolist() for name in table.column_names)):
            print(*row, sep=",", file=file)
    for options in ({}, {"min_events": 30}, {"session_gap": "1h", "deduplicate": "consecutive"},
                    {"numbers": ["price"]}, {"min_count": 60, "min_rounds": "iterated", "threads": 1},
                    {"min_sequence_events": 30, "min_users": 3, "session_gap": "1h"}):
        a = lapse.Dataset.from_arrow(table, sequence="user", time="time", event="item", **options)
        b = lapse.read_csv("numbers.csv", sequence="user", time="time", event="item", **options)
        arrow = {**b.report, "bytes": 0, "format": "Arrow", "encoding": None}
        assert a.fingerprint == b.fingerprint and a.report == arrow, options


def test_only_target_events_are_scored():
    data = lapse.read_csv("shop.csv", sequence="user", time="time", event="item", action="action")
    model = lapse.train(data, epochs=1, seed=3, threads=1, progress=False, target="action=view")
    cases = {target: model.evaluate(data, target=target, bootstrap=0).info["cases"]
             for target in (None, "action=view", "action=buy", "all")}
    assert cases[None] == cases["action=view"] and cases["all"] == cases["action=view"] + cases["action=buy"]
    items = lapse.train(data, task="recommend", model="popularity", target="action=view")
    assert items.evaluate(data, target="all").info["cases"] > items.evaluate(data).info["cases"]
    error = raises(lapse.UnknownError, lapse.train, data, target="action=look")
    assert "its actions are: view, buy" in str(error)


def test_columns_are_found_as_those_of_the_csv_file():
    # The sample of 256 KiB ends where that of the file does: up to `known` rows have an event, and decide the column.
    for rows, known in ((9000, 4000), (20000, 19000), (20000, 4000)):
        users, events = [f"user {i % 700}" for i in range(rows)], [["view", "buy"][i % 2] for i in range(rows)]
        table = {"user": users, "id": np.arange(rows), "timestamp": np.arange(rows) + 10**9,
                 "item": [f"item {i % 90}" for i in range(rows)], "action": events[:known] + [""] * (rows - known)}
        with open("found.csv", "w") as file:
            print(*table, sep=",", file=file)
            for row in zip(*table.values()):
                print(*row, sep=",", file=file)
        results = []
        for read, source in ((lapse.read_csv, "found.csv"), (lapse.Dataset.from_arrow, lapse.Table(table))):
            try:
                report = read(source, skip_bad_rows=True).report
                results.append({**report, "bytes": 0, "format": ""})
            except lapse.InputError as error:
                results.append(error.message)
        assert results[0] == results[1], results


def test_times_without_a_zone_are_local():
    times = np.array(["2026-07-01T12:00:00", "2026-10-25T02:30:00", "2026-03-29T02:30:00"], dtype="datetime64[ms]")
    with open("local.csv", "w") as file:
        print("user,time,event", *(f"a,{when},x" for when in times), sep="\n", file=file)
    data = lapse.read_csv("local.csv", timezone="Europe/Berlin")
    assert [data.report[name] for name in ("local_rows", "ambiguous_rows", "missing_rows")] == [3, 1, 1]
    assert data.report["timezone"] == "Europe/Berlin" and data.report["columns"]["time"]["column"] == "time"


def test_errors_are_exceptions_with_their_place():
    table = {"user": ["a", "", "b"], "time": np.array([1.0, 2, np.nan]), "event": ["x", "y", "z"]}
    error = raises(lapse.InputError, lapse.Dataset.from_arrow, lapse.Table(table))
    assert (error.line, error.column, error.message) == (2, 1, "row 2, column 'user': the name of the sequence is empty")
    assert lapse.Dataset.from_arrow(lapse.Table(table), skip_bad_rows=True).report["bad_rows"] == 2
    assert "no column 'what'" in str(raises(lapse.InputError, lapse.Dataset.from_arrow, lapse.Table(table), event="what"))
    assert raises(lapse.FileError, lapse.Dataset.open, "missing.lapse").file == "missing.lapse"
    raises(OSError, lapse.Model.load, "missing.safetensors")
    with open("broken.safetensors", "wb") as file:
        file.write(b"\x10\0\0\0\0\0\0\0 not a model")
    raises(lapse.FormatError, lapse.load, "broken.safetensors")
    raises(lapse.UsageError, lapse.Dataset.from_arrow, [1, 2])
    raises(lapse.UsageError, lapse.Dataset.from_arrow, lapse.Table(table), colour="red")
    raises(ValueError, lapse.train, shop(), learning_rate="fast")
    assert "colour" in str(raises(lapse.UsageError, lapse.train, shop(), colour="red"))
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.message, copied.line) == (error.message, error.line)


def test_views_outlive_their_dataset():
    times = lapse.Dataset.from_arrow(shop_table(), **SHOP).times
    gc.collect()
    assert np.isfinite(times).all() and not times.flags.writeable


def test_checks_are_a_table():
    table = shop().check(task="classify")
    assert "tied-times" in table["check"] and set(table["severity"]) <= {"ok", "note", "warning"}


# ------------------------------------------------------------------------------------------------------- training ----


def test_training_gives_the_file_of_the_tool():
    tool("import", "shop.csv", "-o", "same.lapse", "--event", "action,item")
    for options in ({"task": "classify", "dropout": 0.1}, {"task": "recommend", "dims": 16}, {"model": "markov"}):
        given = [f"--{name}={value}" for name, value in options.items()]
        tool("train", "same.lapse", "-o", "tool.safetensors", "--epochs=2", "--seed=3", "--threads=1", "--no-eval",
             *given)
        model = lapse.train("same.lapse", epochs=2, seed=3, threads=1, progress=False, **options)
        assert model.to_bytes() == open("tool.safetensors", "rb").read(), options


def test_epochs_are_reported_and_can_stop_training():
    rows = []
    model = small_model(epochs=3, on_epoch=rows.append)
    assert [row["epoch"] for row in rows] == [1, 2, 3] and len(model.history) == 3
    assert all(np.isfinite(row["loss"]) for row in rows)
    assert len(small_model(epochs=5, on_epoch=lambda row: row["epoch"] < 2).history) == 2

    assert model.status == "complete"
    stopped = small_model(epochs=5, on_epoch=lambda row: row["epoch"] < 2)
    assert stopped.status == "stopped" and lapse.Model.from_bytes(stopped.to_bytes()).status == "stopped"

    def fail(row):
        raise RuntimeError("no")

    raises(RuntimeError, small_model, on_epoch=fail)


def test_training_like_a_model_takes_its_options():
    model = small_model(encoding="bochner", dims=16)
    again = small_model(like=model)
    assert again.properties["encoding"] == "bochner" and again.to_bytes() == model.to_bytes()
    assert small_model(like=model, encoding="mercer").properties["encoding"] == "mercer"


def test_options_are_those_of_the_table():
    table = lapse.options()
    names = table["name"].tolist()
    assert "learning_rate" in names and "encoding" in names and len(names) == len(set(names)) > 40
    assert small_model(encoding="bochner").properties["encoding"] == "bochner"


def test_threads_may_share_a_model_and_a_dataset():
    model, data = small_model(), shop()
    wanted = model.predict(data, top=3, threads=1).to_dict()
    found = []
    threads = [threading.Thread(target=lambda: found.append(model.predict(data, top=3, threads=1).to_dict()))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4


# --------------------------------------------------------------------------------------------------------- models ----


def test_predictions_are_those_of_the_tool():
    model = small_model()
    model.save("p.safetensors")
    lines = tool("predict", "p.safetensors", "shop.csv", "--at", "+1h", "--at", "+7d", "--top", "3", "--csv").splitlines()
    table = model.predict(shop_table(), at=["+1h", "+7d"], top=3)
    assert len(table) == len(lines) - 1
    for i, line in enumerate(lines[1:]):
        sequence, at, when, _, rank, event, probability = line.split(",")
        assert (sequence, at, int(rank), event) == tuple(table[n][i] for n in ("sequence", "at", "rank", "event"))
        assert abs(float(probability) - table["probability"][i]) < 1e-8
        assert abs(float(when) * 1e6 - table["time"][i].astype(int)) <= 1
    later = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
    same = [model.predict(shop(), at=at, top=2)["probability"].tolist() for at in (later, later.timestamp(),
                                                                                  "2030-01-01T00:00:00Z")]
    assert same[0] == same[1] == same[2]


def test_results_are_tables_of_every_library():
    pandas, polars, pyarrow, duckdb = need("pandas"), need("polars"), need("pyarrow"), need("duckdb")
    table = small_model().predict(shop(), at=["+1h", "+7d"], top=3)
    frame, other, arrow = table.to_pandas(), table.to_polars(), table.to_arrow()
    assert len(frame) == len(other) == arrow.num_rows == len(table)
    assert frame["probability"].tolist() == other["probability"].to_list() == table["probability"].tolist()
    assert frame["event"].tolist() == other["event"].to_list() == arrow["event"].to_pylist()
    assert arrow.schema.field("time").type == pyarrow.timestamp("us", "UTC")
    assert frame["time"].dtype == pandas.DatetimeTZDtype("us", "UTC") and str(other["time"].dtype).startswith("Datetime")
    assert duckdb.from_arrow(arrow).aggregate("sum(rank)").fetchall()[0][0] == int(table["rank"].sum())
    assert lapse.Dataset.from_arrow(arrow, sequence="sequence", time="time", event="event").events == len(table)
    child = pyarrow.record_batch(pyarrow.table(table).to_batches()[0]).column("event")
    del table, arrow
    gc.collect()
    assert child.to_pylist() == frame["event"].tolist()
    del child, other
    gc.collect()
    assert not _table._ALIVE


def test_a_released_or_dropped_stream_frees_everything():
    capsule = shop_table().__arrow_c_stream__()
    assert _table._ALIVE
    del capsule
    gc.collect()
    assert not _table._ALIVE
    lapse.Dataset.from_arrow(shop_table(), **SHOP)
    raises(lapse.InputError, lapse.Dataset.from_arrow, shop_table(), event="nothing")
    gc.collect()
    assert not _table._ALIVE


def test_models_are_sent_by_their_bytes():
    model = small_model()
    data = model.to_bytes()
    assert pickle.loads(pickle.dumps(model)).to_bytes() == data == copy.deepcopy(model).to_bytes()
    assert lapse.Model.from_bytes(data).predict(shop(), top=1).to_dict() == model.predict(shop(), top=1).to_dict()
    assert pickle.loads(pickle.dumps(model)).history.to_dict() == model.history.to_dict()


def test_scores_are_those_of_the_tool():
    tool("import", "shop.csv", "-o", "e.lapse", "--event", "action,item")
    for task, name in (("classify", "accuracy"), ("recommend", "ndcg@10")):
        model = lapse.train("e.lapse", task=task, epochs=1, seed=1, progress=False)
        model.save("e.safetensors")
        said = re.findall(r"[-+.0-9e]+", tool("eval", "e.safetensors", "e.lapse", "--json"))
        numbers = [float(number) for number in said if re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", number)]
        assert any(abs(number - model.scores[name]) < 1e-5 for number in numbers), (name, model.scores[name])
        assert model.scores.low[name] <= model.scores[name] <= model.scores.high[name]
        assert "<table" in model._repr_html_()
    error = raises(lapse.UsageError, lambda: lapse.load("e.safetensors").scores)
    assert "evaluate" in str(error)


def test_kernel_and_vectors_are_the_models():
    model = small_model()
    vectors = model.item_vectors()
    assert vectors.shape[0] == len(model.event_types) and vectors.dtype == np.float32 and not vectors.flags.writeable
    assert model.kernel([0.0])[0] >= model.kernel(["1h"])[0]
    assert np.isclose(model.kernel(0.0)[0], model.spectrum()["weight"].sum())
    assert "event.embedding" in model.tensors()
    raises(lapse.UsageError, small_model(model="markov").kernel, [1.0])


def test_reports():
    model, data, path = small_model(), shop(), "report.html"
    made = model.inspect(path, data, split="all", cases=200, sequences=[data.sequence_name(0)])
    assert made["figures"] > 10
    page = open(path, encoding="utf-8").read()
    assert page.count("<svg") == made["figures"] and 'id="case-1-weights"' in page
    assert model.inspect(path)["figures"] < made["figures"]
    raises(lapse.UsageError, model.inspect, path, None, colour="red")
    raises(lapse.UnknownError, model.inspect, path, data, sequences=["nobody"])


# -------------------------------------------------------------------------------------------------------- sessions ----


def test_sessions_predict_what_the_batch_predicts():
    model, data = small_model(), shop()
    session = model.session()
    first, last = int(data.offsets[0]), int(data.offsets[1])
    for i in range(first, last):
        session.append(data.times[i], data.event_name(data.types[i]))
    wanted = model.predict(data, at="+1h", top=3)
    found = session.predict(session.last + 3600, top=3)
    assert [name for name, _ in found] == wanted["event"][:3].tolist()
    assert np.allclose([p for _, p in found], wanted["probability"][:3], atol=1e-6)
    assert np.isclose(session.predict_proba(session.last + 60).sum(), 1)
    sweep = session.sweep("1h", "30d", 5, top=2)
    assert len(sweep) == 10 and np.isclose(sweep["lag"][0], 3600) and np.isclose(sweep["lag"][-1], 30 * 86400)
    raises(lapse.UnknownError, session.append, session.last, "nothing known")
    raises(lapse.LapseError, session.append, 0, model.event_types[0])
    session.clear()
    raises(lapse.UsageError, session.sweep, "1h", "2h")


def test_attention_weights():
    data, model = shop(), small_model(blocks=2, heads=2)
    session = model.session()
    for i in range(5):
        session.append(data.times[i], data.event_name(data.types[i]))
    at = session.last + 3600
    for block, head in ((-1, None), (0, 0), (1, 1)):
        weights = session.attention(at, block, head)
        assert weights.shape == (5,) and (weights >= 0).all() and np.isclose(weights.sum(), 1)
    both = (session.attention(at, 1, 0) + session.attention(at, 1, 1)) / 2
    assert np.allclose(session.attention(at), both)
    raises(lapse.UsageError, session.attention, at, 2)
    raises(lapse.UsageError, session.attention, at, 0, 2)
    raises(lapse.LapseError, session.attention, 0)
    without = small_model(model="lstm").session()
    without.append(0, model.event_types[0])
    raises(lapse.UsageError, without.attention, 1)


def test_models_tell_when_the_next_event_comes():
    model = small_model(when=True)
    table = model.when(shop(), within=["1d", "7d"])
    low, middle, high = (table[name] for name in ("q0.1", "q0.5", "q0.9"))
    assert (table["start"] < low).all() and (low < middle).all() and (middle < high).all()
    assert (np.asarray(table["within 1d"]) <= np.asarray(table["within 7d"])).all()
    session = model.session()
    session.append(1000.0, model.event_types[0])
    first, second = session.when([0.5]), session.when([0.5], now=10000.0)
    assert 1000 < first[0] and 10000 < second[0]
    assert abs(session.within(5000.0).sum() - 0.5) < 0.5 and session.sample(draw=4) == session.sample(draw=4)
    made = model.forecast(shop(), horizon="3d", samples=20, threads=1)
    again = model.forecast(shop(), horizon="3d", samples=20, threads=2)
    assert (np.asarray(made["expected"]) == np.asarray(again["expected"])).all()
    assert np.asarray(model.evaluate_times(shop())["nll"]).shape == (5,)
    assert (np.asarray(model.evaluate_times(shop())["rmse"]) > 0).all()
    scores = model.evaluate_returns(shop(), within=["1h", "1d"], now="end", split="all")
    assert np.asarray(scores["brier"]).shape == (8,) and list(scores["within"]) == ["1h"] * 4 + ["1d"] * 4
    assert (np.asarray(scores["returned"])[:4] <= np.asarray(scores["returned"])[4:]).all()
    ends = model.when(shop(), now="end")["start"]
    assert len(set(np.asarray(ends).tolist())) == 1 and (model.when(shop(), now="last")["start"] == table["start"]).all()
    raises(lapse.UsageError, small_model().when, shop())


def test_times_that_are_not_finite_are_missing():
    table = lapse.Table({"user": ["a"] * 4, "time": _table.Times([1.5, np.inf, np.nan, 1e300]), "event": ["x"] * 4})
    assert table["time"][0] == np.datetime64("1970-01-01T00:00:01.5") and np.isnat(table["time"][1:]).all()
    data = lapse.Dataset.from_arrow(table, skip_bad_rows=True)
    assert data.times.tolist() == [1.5] and data.report["bad_rows"] == 3


def test_sessions_take_fields_by_name():
    data = lapse.read_csv("shop.csv", sequence="user", time="time", event="item", action="action", fields=["category"])
    model = lapse.train(data, epochs=1, seed=1, progress=False)
    session = model.session()
    session.append("2026-11-15T12:00:00Z", model.event_types[0], action="view", category="photo")
    assert len(session.predict(session.last + 10, top=2)) == 2
    raises(lapse.UsageError, session.append, session.last, model.event_types[0], action="view")
    raises(lapse.UsageError, session.append, session.last, model.event_types[0], action="view", category="x", price=1)


# ------------------------------------------------------------------------------------------------------ estimators ----


def test_estimators_fit_predict_and_score():
    table = shop_table()
    users = len(set(table["user"]))
    classifier = lapse.Classifier(**SHOP, epochs=2, seed=1).fit(table)
    assert classifier.predict(table).shape == (users,)
    proba = classifier.predict_proba(table)
    assert proba.shape == (users, len(classifier.classes_)) and np.allclose(proba.sum(axis=1), 1)
    assert (classifier.classes_[proba.argmax(axis=1)] == classifier.predict(table)).all()
    assert 0 <= classifier.score(table) <= 1
    recommender = lapse.Recommender(top=3, sequence="user", time="time", event="item", epochs=1, seed=1).fit(table)
    assert recommender.predict(table).shape == recommender.predict_proba(table).shape == (users, 3)
    assert 0 <= recommender.score(table) <= 1
    other = type(recommender)(**recommender.get_params())
    assert other.get_params() == recommender.get_params() and other.set_params(top=5, dims=8).get_params()["dims"] == 8


def test_scikit_learn_clones_and_searches():
    sklearn_base, selection, pandas = need("sklearn.base"), need("sklearn.model_selection"), need("pandas")
    frame = pandas.read_csv("shop.csv")
    classifier = lapse.Classifier(**SHOP, epochs=1, seed=1)
    assert sklearn_base.clone(classifier).get_params() == classifier.get_params()
    search = selection.GridSearchCV(classifier, {"dims": [8, 16]}, cv=selection.GroupKFold(2), error_score="raise")
    search.fit(frame, groups=frame.user)
    assert search.best_params_["dims"] in (8, 16) and search.predict(frame).shape == (frame.user.nunique(),)


# ------------------------------------------------------------------------------------------------------------ docs ----


def doc_blocks():
    text = open(os.path.join(ROOT, "docs", "python.md")).read()
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_examples_of_the_documentation_run():
    for name in ("pandas", "polars", "pyarrow", "duckdb", "sklearn"):
        need(name)
    space = {}
    for block in doc_blocks():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, "docs/python.md", "exec"), space)
        except Exception as error:
            raise AssertionError(f"{error!r} in:\n{block}") from error


def test_no_task_needs_more_than_five_lines():
    text = open(os.path.join(ROOT, "docs", "python.md")).read()
    part = text[text.index("## Ten tasks") :]
    part = part.split("\n## ")[0]
    tasks = re.findall(r"^```python\n(.*?)^```", part, re.M | re.S)
    assert len(tasks) == 10
    for task in tasks:
        assert len([line for line in task.splitlines() if line.strip()]) <= 5, task


def test_docstrings_run():
    pandas = need("pandas")
    frame, data, model, failed = pandas.read_csv("shop.csv"), shop(), small_model(), []
    for name in ("lapse", "lapse._c", "lapse._table", "lapse.dataset", "lapse.training", "lapse.model",
                 "lapse.session", "lapse.estimators", "lapse.comparing", "lapse.verbs"):
        module = sys.modules[name]
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            test.globs.update(lapse=lapse, frame=frame, data=data, model=model)
            out = []
            if doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=out.append).failed:
                failed.append("".join(out))
    assert not failed, "\n".join(failed)


def test_the_notebook_runs():
    """In an empty folder, as a reader runs it."""
    for name in ("pandas", "matplotlib", "nbconvert", "ipykernel"):
        need(name)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(ROOT, "examples", "notebook.ipynb"), os.path.join(folder, "reader.ipynb"))
        ran = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "notebook.ipynb",
                              os.path.join(folder, "reader.ipynb")], capture_output=True, text=True, cwd=folder,
                             env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(lapse.__file__)))})
        assert ran.returncode == 0, ran.stderr[-2000:]
        cells = json.load(open(os.path.join(folder, "notebook.ipynb")))["cells"]
    assert sum("image/png" in output.get("data", {}) for cell in cells for output in cell.get("outputs", [])) == 3


# ---------------------------------------------------------------------------------------------------- comparison ----

SHORT = dict(epochs=2, dims=8, blocks=1, context=8)


def test_comparisons_equal_the_tool():
    data = shop()
    data.save("compare.lapse")
    seen = []
    table = lapse.compare(data, models=["attention", "markov"], encodings=["mercer", "position"], seeds=range(1, 3),
                          on_progress=seen.append, progress=False, **SHORT)
    said = json.loads(tool("compare", "compare.lapse", "--models", "attention,markov", "--encodings", "mercer,position",
                           "--seeds", "2", "--keep", "none", "--format", "json", "--epochs", "2", "--dims", "8", "--blocks",
                           "1", "--context", "8"))
    rows = table.rows
    assert rows["model"].tolist() == [row["name"] for row in said["rows"]] == ["attention, mercer", "attention, position",
                                                                              "markov"]
    for metric, column in (("log-loss", "log_loss"), ("accuracy", "accuracy")):
        assert np.allclose(rows[column], [row[metric]["mean"] for row in said["rows"]], rtol=1e-8)
    assert table.best == rows["model"].tolist()[int(np.argmin(rows["log_loss"]))]
    assert len(table.runs) == 6 and len(table.curves) == 8 and (table.finished, table.total) == (6, 6)
    table.save_svg("curves.svg", "Curves")
    assert open("curves.svg").read().count("<path") >= 4
    assert seen and seen[-1]["done"] == 6 and seen[-1]["left"] == 0


def test_comparisons_have_grids_rows_files_and_folders():
    data = shop()
    given = dict(models=["markov"], grid={"order": [1, 3]}, rows=[{"name": "one", "model": "markov", "order": 1}], seeds=2,
                 keep="kept", progress=False)
    first, again = lapse.compare(data, **given), lapse.compare(data, **given)
    assert first.rows["model"].tolist() == ["markov", "one"] and len(first.cells) == 3
    assert first.runs["seconds"].tolist() == again.runs["seconds"].tolist(), "the runs are kept"
    data.save("planned.lapse")
    json.dump({"data": "planned.lapse", "models": ["majority"], "seeds": 3}, open("plan.json", "w"))
    assert lapse.compare(plan="plan.json", progress=False).total == 3
    assert lapse.compare(data, plan="plan.json", models="markov,majority", progress=False).total == 6
    for wrong in (dict(models=["nothing"]), dict(models=["markov", "nothing"]), dict(encodings=["nothing"]), dict(metric="nothing"),
                  dict(models=["markov"], epochs=-1), dict(grid={"order": []}), dict(seeds=-3)):
        error = raises(lapse.UsageError, lapse.compare, data, progress=False, **wrong)  # as lapse.train has it
        assert error.line == 0 and next(word for word in ("nothing", "-1", "empty", "-3") if word in str(error))
    open("wrong.json", "w").write('{"models": ["nothing"]}')
    assert raises(lapse.InputError, lapse.compare, data, plan="wrong.json", progress=False).line == 1
    assert "data" in str(raises(lapse.UsageError, lapse.compare, models=["markov"], progress=False))
    stopped = lapse.compare(data, seeds=50, on_progress=lambda p: False, progress=False, **SHORT)
    assert stopped.finished < stopped.total


def test_tuning_returns_the_best_trial():
    data = shop()
    model = lapse.tune(data, budget="5m", trials=4, progress=False, seed=3, **SHORT)
    scores = [float(re.search(r"log-loss ([0-9.]+)", model.properties[f"tune.trial.{i}"]).group(1)) for i in range(1, 5)]
    assert int(model.properties["tune.best"]) == 1 + scores.index(min(scores))
    assert abs(float(model.properties["score.valid.log_loss"]) - min(scores)) < 1e-4
    assert model.trials["trial"].tolist() == [1, 2, 3, 4] and model.trials["log_loss"].tolist() == scores
    assert model.trials["changes"][0] == "" and all(re.match(r"[a-z_0-9]+=\S", text) for text in model.trials["changes"][1:])
    assert (model.trials["best_epoch"] <= model.trials["epochs"]).all() and set(model.trials["outcome"]) <= {"finished", "stopped"}
    raises(lapse.UsageError, lapse.tune, data, budget=0)


from option_tests import *  # noqa: E402, F401, F403: they use the functions above
from manners_tests import *  # noqa: E402, F401, F403
from silence_tests import *  # noqa: E402, F401, F403


def main():
    wanted = [name for name in sys.argv[2:] if not name.startswith("--")]
    tests = [(name, value) for name, value in globals().items() if name.startswith("test_") and (not wanted or name in wanted)]
    passed, failed, skipped = 0, 0, int("--skipped" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tool("simulate", "--preset", "shop", "--sequences", "60", "--seed", "1", "-o", "shop.csv")
        for name, test in tests:
            begin = time.monotonic()
            try:
                test()
                passed += 1
            except Skip as reason:
                skipped += 1
                print(f"skipped {name}: {reason}")
            except BaseException:
                failed += 1
                print(f"FAILED {name}")
                traceback.print_exc(file=sys.stdout)
            if time.monotonic() - begin > 10:
                print(f"{name} took {time.monotonic() - begin:.0f} s")
        os.chdir("/")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
