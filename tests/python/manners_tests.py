"""Tests of test_package.py: what users of Python expect: types, ids, times in every form, mistakes, scikit-learn, callbacks."""

import contextlib
import datetime
import inspect
import io
import json
import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
import uuid
import warnings

import numpy as np
from __main__ import ALL, ROOT, SHOP, Skip, need, raises, shop, shop_table, small_model

import lapse

COLUMNS = dict(sequence="user", time="time", event="item")


def numbered(kind=int):
    """Events whose users and items have another type than text."""
    rng = np.random.default_rng(4)
    return {"user": [kind(u) for u in rng.integers(1, 30, 600)], "time": np.sort(rng.random(600) * 1e6),
            "item": [kind(i) for i in rng.integers(100, 105, 600)]}


# --------------------------------------------------------------------------------------------------------- types ----


def checkers():
    folder = os.path.dirname(sys.executable)
    return {"mypy": [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--show-error-codes"],
            "pyright": [os.path.join(folder, "pyright"), "--pythonpath", sys.executable]}


def test_types():
    """mypy --strict and pyright accept and refuse what typed_calls.py says."""
    path = os.path.join(ROOT, "tests", "python", "typed_calls.py")
    source = open(path, encoding="utf-8").read().splitlines()
    wanted = {i + 1 for i, line in enumerate(source) if line.endswith("# refused")}
    accepted = [line for line in source[source.index("# Accepted.") + 1 : source.index("# Refused.")] if line]
    assert len(wanted) == len(accepted) == 20
    shutil.copy(path, "typed_calls.py")
    package = os.path.dirname(os.path.dirname(os.path.abspath(lapse.__file__)))
    # An installed package is found without, and mypy refuses its folder.
    paths = {} if "site-packages" in package else {"MYPYPATH": package, "PYTHONPATH": package}
    for name, command in checkers().items():
        need(name)
        made = subprocess.run([*command, "typed_calls.py"], capture_output=True, text=True,
                              env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **paths})
        found = {int(line) for line in re.findall(r"typed_calls\.py:(\d+)(?::\d+)?[: -]+error", made.stdout)}
        assert found == wanted, (name, sorted(found - wanted), sorted(wanted - found), made.stdout[-3000:], made.stderr[-500:])


def test_public_signatures_have_no_any():
    for owner in (lapse, lapse.Dataset, lapse.Model, lapse.Session, lapse.Classifier, lapse.Recommender, lapse.Table, lapse.Vectors,
                  lapse.Comparison, lapse.Scores, lapse.Callback, lapse.Progress):
        for name in getattr(owner, "__all__", None) or vars(owner):
            member = inspect.getattr_static(owner, name)
            member = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            if name.startswith("_") or not inspect.isfunction(member):
                continue
            for label, annotation in member.__annotations__.items():
                # The elements of an array may have any type; parameters and reports are dicts of several types.
                shown = re.sub(r"np\.ndarray\[Any, [^]]*\]\]?|Dict\[str, Any\]", "array", str(annotation))
                assert not re.search(r"\bAny\b", shown) or (name, label) == ("set_params", "params"), (owner, name, label, annotation)


# ----------------------------------------------------------------------------------------------------------- ids ----


def test_ids_come_back_as_they_went_in():
    kinds = {"int": (int, np.int64), "float": (float, np.float64), "bool": (lambda i: bool(i % 2), np.bool_)}
    for name, (kind, dtype) in kinds.items():
        table = lapse.Table({**numbered(kind), **({"user": numbered()["user"]} if name == "bool" else {})})
        data = lapse.Dataset.from_arrow(table, **COLUMNS)
        model = lapse.train(data, epochs=1, progress=False)
        for source in (table, data):
            made = model.predict(source, top=2)
            assert made["event"].dtype == dtype and made["sequence"].dtype == (np.int64 if name == "bool" else dtype), name
            assert set(made["sequence"].tolist()) == set(table["user"].tolist()) and set(made["event"]) <= set(table["item"])
        assert set(model.event_types) == set(data.event_types) == set(table["item"].tolist()), name
        copied = lapse.Model.from_bytes(model.to_bytes())
        assert copied.event_types == model.event_types and type(copied.event_types[0]) is type(table["item"].tolist()[0])
        session = copied.session()
        session.append(1.0, table["item"][0])
        assert session.predict(2.0, top=1)[0][0] in set(table["item"].tolist())
        assert data.sequence_name(0) == table["user"][0] and data.event_name(data.types[0]) in set(table["item"].tolist())


def test_a_join_with_the_ids_of_the_source_works():
    pandas = need("pandas")
    frame = pandas.DataFrame(numbered())
    model = lapse.train(lapse.Dataset.from_pandas(frame, **COLUMNS), epochs=1, progress=False)
    users = pandas.DataFrame({"user": frame.user.unique(), "name": [f"n{u}" for u in frame.user.unique()]})
    joined = model.predict(frame, top=1).to_pandas().merge(users, left_on="sequence", right_on="user")
    assert len(joined) == frame.user.nunique() and (joined.name == "n" + joined.user.astype(str)).all()
    assert model.predict(frame.astype({"user": "category"}), top=1)["sequence"].dtype == np.int64
    assert model.predict(frame.astype({"user": str}), top=1)["sequence"].dtype == object
    people = {u: uuid.uuid5(uuid.NAMESPACE_DNS, str(u)) for u in frame.user}
    made = model.predict(frame.assign(user=frame.user.map(people)), top=1)
    assert set(made["sequence"]) == set(people.values()) and made.to_dict()["sequence"][0] == str(made["sequence"][0])
    sessions = lapse.Dataset.from_pandas(frame, **COLUMNS, session_gap="1h")
    assert "/" in model.predict(sessions, top=1)["sequence"][0]


def test_pandas_and_polars_have_their_own_doors():
    pandas, polars = need("pandas"), need("polars")
    frame = pandas.read_csv("shop.csv")
    wanted = shop().fingerprint
    assert lapse.Dataset.from_pandas(frame, **SHOP).fingerprint == wanted
    assert lapse.Dataset.from_pandas(frame.set_index("user"), **SHOP).fingerprint == wanted
    assert lapse.Dataset.from_polars(polars.read_csv("shop.csv"), **SHOP).fingerprint == wanted
    numbers = frame.rename(columns={"user": 0, "time": 1, "item": 2})[[0, 1, 2]]
    assert lapse.Dataset.from_pandas(numbers, sequence=0, time=1, event=2).events == len(frame)
    lazy = raises(lapse.UsageError, lapse.Dataset.from_arrow, polars.LazyFrame({"user": ["a"]}))
    assert "collect()" in str(lazy)
    mixed = pandas.DataFrame({"user": ["a", 2**70], "time": [1, 2], "item": ["x", "y"]})
    assert isinstance(raises(lapse.LapseError, lapse.Dataset.from_arrow, mixed), lapse.UsageError)


def test_pandas_needs_no_pyarrow():
    pandas, dataset = need("pandas"), sys.modules["lapse.dataset"]
    frame = pandas.read_csv("shop.csv").astype({"item": "category"})
    frame["when"] = pandas.to_datetime((frame.time * 1000).round().astype("int64"), unit="ms", utc=True)
    before = dataset._has_pyarrow
    dataset._has_pyarrow = lambda: False
    try:
        assert lapse.Dataset.from_pandas(frame, **SHOP).fingerprint == shop().fingerprint
        assert lapse.Dataset.from_pandas(frame, **{**SHOP, "time": "when"}).fingerprint == shop().fingerprint
        error = raises(lapse.InputError, lapse.Dataset.from_pandas, frame.assign(user=[None, *frame.user[1:]]), **SHOP)
        assert "row 1, column 'user'" in str(error)
    finally:
        dataset._has_pyarrow = before


def test_tables_iterate_and_are_json():
    table = small_model().predict(shop_table(), at=["+1h", "+7d"], top=2)
    rows = list(table)
    assert len(rows) == len(table) and rows[0]["rank"] == 1 and rows[0]["time"].tzinfo == datetime.timezone.utc
    read = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert read["rank"] == table["rank"].tolist() and read["time"][0] == rows[0]["time"].isoformat().replace("+00:00", "Z")
    odd = lapse.Table({"a": [1.0, float("nan"), float("inf")]})
    assert odd.to_dict() == {"a": [1.0, None, None]}
    assert "columns are" in str(raises(KeyError, lambda: table["what"]))
    assert "length" in str(raises(lapse.UsageError, lapse.Table, {"a": [1], "b": [1, 2]}))
    names = table._columns["sequence"]._names
    assert repr(table).splitlines()[0].split() == table.column_names and "rows" in repr(table)
    assert table._columns["sequence"]._names is names, "a repr reads no other names"


# --------------------------------------------------------------------------------------------------------- times ----


def test_times_have_every_form_in_every_call():
    model, data, last = small_model(when=True), shop(), 1000.0
    name, hour = model.event_types[0], datetime.timedelta(hours=1)

    def session():
        made = model.session()
        made.append(last, name)
        return made

    relative = ["+1h", hour, np.timedelta64(1, "h"), np.timedelta64(3600, "s")]
    with contextlib.suppress(ImportError):
        import pandas

        relative.append(pandas.Timedelta("1h"))
    for at in relative:
        made = session()
        wanted = session().predict(last + 3600, top=2)
        assert made.predict(at, top=2) == wanted
        assert (made.predict_proba(at) == made.predict_proba(last + 3600)).all() and len(made.attention(at)) == 1
        assert (made.within(at) == made.within(last + 3600)).all() and made.when([0.5], now=at) == made.when([0.5], now=last + 3600)
        assert made.sample(now=at) == made.sample(now=last + 3600)
        made.append(at, name)
        assert made.last == last + 3600
        assert model.predict(data, at=at, top=1)["probability"].tolist() == model.predict(data, at="+1h", top=1)["probability"].tolist()
        assert (model.when(data, within=[at if at != "+1h" else "1h"]).column_names[-1]).startswith("within")
    day = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
    absolute = [day, day.replace(tzinfo=None), day.date(), np.datetime64("2030-01-01"), np.datetime64("2030-01-01T00:00:00.000"),
                day.timestamp(), np.float64(day.timestamp()), int(day.timestamp()), np.int64(day.timestamp()), "2030-01-01",
                "2030-01-01T00:00:00Z", str(day.timestamp())]
    with contextlib.suppress(ImportError):
        absolute.append(pandas.Timestamp("2030-01-01", tz="UTC"))
    for at in absolute:
        assert session().predict(at, top=2) == session().predict(day.timestamp(), top=2), at
        assert set(model.predict(data, at=at, top=1)["time"]) == {np.datetime64("2030-01-01")}, at
        assert set(model.when(data, now=at)["start"]) == {np.datetime64("2030-01-01")}, at
    assert len(session().predict("now", top=1)) == 1 and model.predict(data, at="now", top=1)["rank"][0] == 1
    assert "append an event first" in str(raises(lapse.UsageError, model.session().predict, "+1h"))
    assert "depends on the last event" in str(raises(lapse.UsageError, model.when, data, now="+1h"))
    for wrong in (None, [1], True, float("nan"), np.datetime64("NaT"), "tomorrow", b"x", {}):
        assert raises(lapse.LapseError, session().predict, wrong), wrong
        raises(lapse.LapseError, model.predict, data, at=[wrong] if wrong != [1] else [[1]])


# ------------------------------------------------------------------------------------------------------ mistakes ----


def test_mistakes_give_sentences():
    """What users type: each is an exception of the package with a sentence that names the argument, and nothing of cffi."""
    data, model = shop(), small_model()
    session = model.session()
    session.append(1000.0, model.event_types[0])
    nulls = {"user": np.array(["a", "b", None], dtype=object), "time": [1.0, 2.0, 3.0], "item": ["x", "y", "z"]}
    unknown = lapse.Table({"user": ["a"], "time": [1.0], "action": ["wave"], "item": ["x"]})
    for call, part in (
            (lambda: lapse.Dataset.from_arrow(lapse.Table(nulls), **COLUMNS), "row 3, column 'user'"),
            (lambda: model.predict(unknown, skip_unknown=True), "no history has an event"),
            (lambda: model.predict(data, top=-1), "0 for all"),
            (lambda: model.predict(data, top="ten"), "top takes a whole number, not 'ten'"),
            (lambda: session.append(2000.0, 5), "'5'"),
            (lambda: session.append(2000.0, None), "event takes a text or another id, not None"),
            (lambda: session.append(2000.0, "a\0b"), "NUL"),
            (lambda: lapse.read_csv("shop.csv", **SHOP, min_events="two"), "min_events takes a whole number"),
            (lambda: lapse.read_csv("shop.csv", **SHOP, min_events=2**70), "min_events takes a whole number"),
            (lambda: lapse.read_csv("shop.csv", **SHOP, skip_bad_rows="perhaps"), "skip_bad_rows takes True or False"),
            (lambda: lapse.read_csv("shop.csv", **SHOP, session_gap="soon"), "soon"),
            (lambda: lapse.read_csv("shop.csv", **SHOP, fields="colour"), "no column 'colour'"),
            (lambda: lapse.read_csv(5, **SHOP), "path takes a path, not 5"),
            (lambda: lapse.train(data, when=3.5), "when takes true or false"),
            (lambda: lapse.train(data, item_vectors=np.zeros((2, 2))), "item_vectors takes a path"),
            (lambda: lapse.train(data, sequence="user"), "lapse.Dataset.from_arrow"),
            (lambda: lapse.train(data, lr=0.1), "did you mean learning_rate?"),
            (lambda: lapse.train(data, random_state=3), "did you mean seed?"),
            (lambda: lapse.train(data, epochs=[3]), "epochs takes"),
            (lambda: model.predict(shop_table(), att="+1h"), "no argument 'att': did you mean at?"),
            (lambda: model.predict(shop_table(), colour="red"), "no import option 'colour'"),
            (lambda: lapse.Dataset.from_arrow(lapse.Table({"user": ["a", "b\0c"], "time": [1.0, 2.0], "item": ["x", "y"]}), event="item"), "NUL"),
            (lambda: model.evaluate(data, bootstrap="many"), "bootstrap takes a whole number"),
            (lambda: model.kernel(["soon"]), "soon"),
            (lambda: model.save(None), "path takes a path, not None"),
            (lambda: lapse.compare(data, models=["markov"], seeds="three"), "three"),
            (lambda: lapse.tune(data, budget=None, trials="x"), "trials takes a whole number"),
            (lambda: lapse.simulate("x.csv", sequences=2.5), "sequences takes a whole number, not 2.5"),
            (lambda: lapse.bound(epsilon="small"), "epsilon")):
        error = raises(lapse.LapseError, call)
        assert part in str(error) and not re.search(r"cffi|cdata|ctype|char \*|--[a-z]", str(error)), (part, str(error))
    error = raises(lapse.UsageError, lapse.train, data, learning_rate="fast")
    assert (error.option, error.value) == ("learning_rate", "fast")
    assert pickle.loads(pickle.dumps(error)).option == "learning_rate"


def test_values_of_numpy_are_values():
    assert lapse.read_csv("shop.csv", **SHOP, min_events=np.int64(2), skip_bad_rows=np.bool_(True)).events > 0
    assert lapse.read_csv("shop.csv", **SHOP, min_events="2").fingerprint == lapse.read_csv("shop.csv", **SHOP, min_events=2).fingerprint
    model = small_model(when=np.bool_(True), dims=np.int32(8), dropout=np.float32(0.25), epochs="1")
    assert model.properties["dims"] == "8" and lapse.Model.from_bytes(model.to_bytes()).status == "complete"
    data = lapse.read_csv("shop.csv", sequence="user", time="time", event="item", fields="category")
    assert list(data.fields) == ["category"]
    assert len(lapse.compare(shop(), models=["markov"], grid={"order": np.array([1, 2])}, seeds=np.arange(1, 3), progress=False).cells) == 2
    assert small_model(select="log_loss").properties["train.select"] == "log-loss" and model.scores["log-loss"] == model.scores["log_loss"]


def test_a_file_without_a_header_says_what_it_took():
    with open("bare.csv", "w") as file:
        file.writelines(f"u{i % 5},{1000 + i},x{i % 3},7\n" for i in range(50))
    error = raises(lapse.InputError, lapse.read_csv, "bare.csv", header=False)
    assert "not certain; set sequence=1 time=2 event=3 header=False" in str(error)
    assert lapse.read_csv("bare.csv", header=False, sequence=1, time=2, event=3).events == 50


def test_nothing_of_the_library_shows():
    assert not {"lib", "ffi", "text"} & set(vars(lapse)) and isinstance(lapse.__version__, str)


# --------------------------------------------------------------------------------------- sessions and vectors ----


def test_sessions_are_pickled_and_shown():
    model = small_model()
    session = model.session()
    for i in range(5):
        session.append(1000.0 * i, model.event_types[i % 3])
    copied = pickle.loads(pickle.dumps(session))
    assert len(copied) == 5 and copied.last == session.last and copied.predict("+1h") == session.predict("+1h")
    assert "5 events" in repr(session)


def test_vectors_of_histories_give_the_scores():
    data = lapse.Dataset.from_arrow(lapse.Table(numbered()), **COLUMNS)
    model = lapse.train(data, task="recommend", dims=8, epochs=1, progress=False)
    names, states = model.history_vectors(data, at="+1h")
    vectors, biases = model.score_vectors()
    best = np.array(model.event_types)[(states @ vectors.T + biases).argmax(axis=1)]
    table = model.predict(data, at="+1h", top=1)
    assert (names == table["sequence"]).all() and (best == table["item"]).all()
    raises(lapse.UsageError, small_model().history_vectors, shop())


# ----------------------------------------------------------------------------------------------------- callbacks ----


def test_callbacks_receive_an_object():
    seen = []

    class Watch(lapse.Callback):
        def on_begin(self, options):
            seen.append(("begin", options["epochs"]))

        def on_step(self, progress):
            assert 1 <= progress.step <= progress.steps and progress["epochs"] == 3

        def on_epoch(self, progress):
            seen.append((progress.epoch, progress.loss == progress["loss"], progress.log_loss > 0))
            if progress.epoch == 2:
                progress.stop()

        def on_end(self, model):
            seen.append(("end", model.status))

    model = small_model(epochs=3, callbacks=[Watch()])
    assert seen == [("begin", "3"), (1, True, True), (2, True, True), ("end", "stopped")] and model.status == "stopped"
    assert "there is no 'what'" in str(raises(AttributeError, lambda: lapse.Progress(a=1).what))


def test_progress_is_logged():
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log = logging.getLogger("lapse")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        small_model(epochs=2)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    assert len(lines) == 3 and "epoch 1 of at most 2: loss" in lines[0] and "complete after 2 epochs" in lines[2]


def test_tqdm_mlflow_and_wandb_follow_a_run():
    """The callbacks of docs/python.md with the packages themselves, offline."""
    text = open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8").read()
    block = next(b for b in re.findall(r"^```py\n(.*?)^```", text, re.M | re.S) if "tqdm" in b)
    for name in ("tqdm", "mlflow", "wandb"):
        need(name)
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", MLFLOW_TRACKING_URI="sqlite:///mlflow.db",
                      MLFLOW_ALLOW_FILE_STORE="true", GIT_PYTHON_REFRESH="quiet")
    space = {"data": shop(), "lapse": lapse}
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(block, "docs/python.md", "exec"), space)
    import mlflow

    run = mlflow.search_runs(search_all_experiments=True).iloc[0]
    assert run["metrics.loss"] > 0 and os.path.isdir("wandb") and space["bar"].n == 3


# -------------------------------------------------------------------------------------------------- scikit-learn ----


def test_estimators_have_the_manners_of_scikit_learn():
    raises(lapse.UsageError, lapse.Classifier, nonsense=3)
    raises(lapse.UsageError, lapse.Classifier().set_params, nonsense=3)
    error = raises(lapse.NotFittedError, lapse.Classifier().predict, shop_table())
    assert "fit first" in str(error) and isinstance(error, (ValueError, AttributeError))
    table = shop_table()
    one, two = (lapse.Classifier(**SHOP, epochs=1, random_state=3).fit(table) for _ in range(2))
    assert one.model_.to_bytes() == two.model_.to_bytes() and one.get_params()["random_state"] == 3
    assert one.classes_.tolist() == sorted(one.classes_.tolist())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one.score(table)
        half = {name: table[name][: len(table) // 2] for name in table.column_names}
        one.score(lapse.Table(half))
    assert ["GroupKFold" in str(w.message) for w in caught] == [True]


def test_one_prediction_per_row():
    pandas = need("pandas")
    frame = pandas.read_csv("shop.csv").sample(frac=1, random_state=1)
    rows = lapse.Classifier(**SHOP, epochs=2, per="row", random_state=1).fit(frame)
    proba = rows.predict_proba(frame)
    assert proba.shape == (len(frame), len(rows.classes_)) and np.allclose(proba.sum(axis=1), 1)
    y = (frame.action + " " + frame.item).to_numpy()
    first = frame.sort_values("time", kind="stable").drop_duplicates("user").index
    accuracy = (rows.predict(frame) == y)[~frame.index.isin(first)].mean()
    assert abs(accuracy - rows.model_.evaluate(rows._dataset(frame), split="all", bootstrap=0)["accuracy"]) < 0.01
    # The rows of one history, in the order of their times, are the answers of a session; its first row has the shares of the classes.
    user = frame.user.value_counts().index[0]
    places, session, classes = np.flatnonzero(frame.user == user), rows.model_.session(), rows.model_.event_types
    places = places[np.argsort(frame.time.to_numpy()[places], kind="stable")]
    shares = pandas.Series(y).value_counts(normalize=True)
    assert np.allclose(proba[places[0]], [shares[name] for name in rows.classes_])
    for before, place in zip(places, places[1:]):
        session.append(frame.time.iloc[before], y[before])
        asked = dict(zip(classes, session.predict_proba(frame.time.iloc[place])))
        assert np.allclose(proba[place], [asked[name] for name in rows.classes_], atol=1e-6)
    fields = lapse.Classifier(sequence="user", time="time", event="item", fields=["action"], epochs=1, per="row").fit(frame)
    assert np.allclose(fields.predict_proba(frame).sum(axis=1), 1)
    ranks = lapse.Recommender(sequence="user", time="time", event="item", epochs=1, per="row", top=2, dims=8).fit(frame)
    items = ranks.predict(frame)
    assert items.shape == (len(frame), 2) and (items[frame.index.isin(first)] == "").all()


def test_scorers_of_scikit_learn():
    selection, base, exceptions, pandas = need("sklearn.model_selection"), need("sklearn.base"), need("sklearn.exceptions"), need("pandas")
    frame = pandas.read_csv("shop.csv")
    y = (frame.action + " " + frame.item).to_numpy()
    classifier = lapse.Classifier(**SHOP, epochs=1, per="row", random_state=1)
    assert base.is_classifier(classifier) and not base.is_classifier(lapse.Recommender())
    raises(exceptions.NotFittedError, classifier.predict, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = selection.cross_val_score(classifier, frame, y, groups=frame.user, cv=selection.GroupKFold(2), scoring="neg_log_loss",
                                           error_score="raise")
    assert (scores < 0).all() and (scores > -3).all()
