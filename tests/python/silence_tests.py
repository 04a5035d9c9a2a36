"""Tests of test_package.py: what must not be silent: histories without an answer, runs and forecasts that were stopped."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
from __main__ import ROOT, Skip, raises, shop, small_model

import lapse


def test_top_0_is_all_as_in_the_tool():
    model = small_model()
    types, session = len(model.event_types), model.session()
    session.append(1000.0, model.event_types[0])
    table = model.predict(shop(), top=0)
    assert len(table) == types * len(set(table["sequence"])) == len(model.predict(shop(), top=types + 5))
    assert len(session.predict(2000.0, top=0)) == types == len(session.predict(2000.0, top=types + 5))
    assert len(session.sweep("1h", "2h", points=2, top=0)) == 2 * types
    for ask in (lambda: model.predict(shop(), top=-1), lambda: session.predict(2000.0, top=-1)):
        assert "0 for all" in str(raises(lapse.UsageError, ask))


def test_histories_of_unknown_events_are_not_silent():
    model = small_model(when=True)
    known, times = model.event_types[0], np.array([1000.0, 2000.0])
    columns = dict(sequence="user", time="time", event="item")
    both = lapse.Dataset.from_arrow(lapse.Table({"user": ["a", "b"], "time": times, "item": [known, "wave"]}), **columns)
    none = lapse.Dataset.from_arrow(lapse.Table({"user": ["a", "b"], "time": times, "item": ["wave", "nod"]}), **columns)
    for ask in (model.predict, model.when, lambda data, **options: model.forecast(data, samples=5, **options)):
        raises(lapse.LapseError, ask, both)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert set(ask(both, skip_unknown=True)["sequence"]) == ({"a", "b"} if ask == model.when else {"a"})
        assert ["1 of 2 histories" in str(w.message) for w in caught] == [True]
        raises(lapse.UnknownError, ask, none, skip_unknown=True)
    error = raises(lapse.LapseError, model.predict, both, at=500.0, skip_unknown=True)
    assert "before" in str(error)


def test_forecasts_are_refused_and_interrupted():
    model = small_model(when=True)
    assert "max_events" in str(raises(lapse.UsageError, model.forecast, shop(), horizon="9000y"))
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        raises(KeyboardInterrupt, model.forecast, shop(), horizon="9000y", max_events=0, threads=1)
    finally:
        signal.signal(signal.SIGINT, old)


def test_an_interrupt_in_the_first_epoch_is_not_silent():
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = lapse.train(shop(), epochs=3, dims=256, blocks=4, batch=1, threads=1, progress=False)
        assert model.status == "stopped" and len(model.history) == 0
        assert ["first epoch" in str(w.message) for w in caught] == [True]
    finally:
        signal.signal(signal.SIGINT, old)


def test_failures_of_the_system_are_exceptions():
    """Every Nth allocation, open, read, write, ... of the library fails once: fault_script.py, in a process of its own."""
    here, library = os.path.join(ROOT, "tests", "python"), os.path.abspath("faults.so")
    if not shutil.which("cc"):
        raise Skip("there is no C compiler")
    made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(here, "library_faults.c"), "-ldl", "-lpthread"],
                          capture_output=True, text=True)
    if made.returncode:
        raise Skip("the C library is not glibc")
    path = os.path.dirname(os.path.dirname(os.path.abspath(lapse.__file__)))
    ran = subprocess.run([sys.executable, os.path.join(here, "fault_script.py"), library,
                          "6" if os.environ.get("LAPSE_TEST_TIER") == "quick" else "60"], capture_output=True, text=True,
                         env={**os.environ, "LD_PRELOAD": library, "PYTHONPATH": path})
    assert ran.returncode == 0, f"exit status {ran.returncode}\n{ran.stdout}{ran.stderr}"
    assert int(ran.stdout.split()[0]) > 50, ran.stdout
