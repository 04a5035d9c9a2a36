"""Calls of the package while the Nth allocation, open, read, write, ... of its library fails (library_faults.c, preloaded).

    fault_script.py FAULT_LIBRARY MOST

MOST is the number of failures of one group in one call. A call ends with its usual result or with an exception of the package, and the
same call succeeds afterwards. Prints the number of failures.
"""

import ctypes
import os
import random
import sys
import warnings

import lapse
from lapse._c import ffi, lib

GROUPS = ("allocate", "open", "transfer", "finish", "thread")
faults = ctypes.CDLL(sys.argv[1])
faults.fault_arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
faults.fault_disarm.restype = ctypes.c_long
HERE = ctypes.c_void_p(int(ffi.cast("uintptr_t", ffi.addressof(lib, "lapse_model_load"))))
COLUMNS = dict(sequence="user", time="time", event=["action", "item"])
QUICK = dict(epochs=1, dims=4, context=8, periods=2, batch=16, seed=3, threads=2, progress=False, checkpoint="none")


def armed(group, number, call):
    """The result or exception of a call, the number of calls of the group, and whether one failed."""
    failed, result = ctypes.c_bool(), None
    faults.fault_arm(group, number, HERE)
    try:
        result = call()
    except (lapse.LapseError, MemoryError) as error:
        result = error
    finally:
        count = faults.fault_disarm(ctypes.byref(failed))
    return result, count, failed.value


data = lapse.read_csv("shop.csv", **COLUMNS)
model = lapse.train(data, when=True, **QUICK)
model.save("m.st")
table = lapse.Table({"user": ["a", "a", "b"], "time": data.times[:3].copy(), "event": model.event_types[:3]})


def session():
    s = model.session()
    s.append(0.0, model.event_types[0])
    s.append(60.0, model.event_types[1])
    return s.predict(3600.0, top=3), s.when([0.5]), s.predict_proba(120.0).tolist()


def saved():
    model.save("again.st")
    return open("again.st", "rb").read()


CALLS = {
    "read_csv": lambda: lapse.read_csv("shop.csv", **COLUMNS).times.tolist(),
    "from_arrow": lambda: lapse.Dataset.from_arrow(table, sequence="user", time="time", event="event").times.tolist(),
    "check": lambda: data.check(now="2030-01-01").to_dict(),
    "train": lambda: lapse.train(data, **QUICK).to_bytes(),
    "load": lambda: lapse.Model.load("m.st").properties,
    "save": saved,
    "bytes": lambda: lapse.Model.from_bytes(model.to_bytes()).properties,
    "predict": lambda: model.predict(data, at=["+1h", "+7d"], top=2).to_dict(),
    "when": lambda: model.when(data, within=["7d"])["within 7d"].tolist(),
    "forecast": lambda: model.forecast(data, horizon="1d", samples=5)["expected"].tolist(),
    "evaluate": lambda: dict(model.evaluate(data, bootstrap=10)),
    "evaluate_times": lambda: model.evaluate_times(data)["nll"].tolist(),
    "evaluate_returns": lambda: model.evaluate_returns(data, within="1h", split="all")["brier"].tolist(),
    "session": session,
    "kernel": lambda: model.kernel(["1h", "1d"]).tolist(),
}

warnings.simplefilter("ignore")
most, total, seed = int(sys.argv[2]), 0, int(os.environ.get("LAPSE_TEST_SEED", random.randrange(1 << 30)))
random.seed(seed)
for name, call in CALLS.items():
    usual = call()
    for group, group_name in enumerate(GROUPS):
        _, count, _ = armed(group, 0, call)
        numbers = range(1, count + 1) if count <= most else sorted(random.sample(range(1, count + 1), most))
        for number in numbers:
            result, _, failed = armed(group, number, call)
            total += failed
            place = f"{name}: {group_name} {number} of {count} failed, seed {seed}"
            if isinstance(result, BaseException):
                assert failed and str(result), f"{place}: {result!r}"
            else:
                assert result == usual, f"{place}: another result without an exception"
        assert call() == usual, f"{name}: after failures of {group_name}, seed {seed}: another result"
print(f"{total} failures in {len(CALLS)} calls")
