"""Speed and memory of the Python package, beside the tool.

    python bench/python_speed.py PATH-OF-LAPSE [MILLIONS [REPEATS]]

Needs PyArrow. Each measurement is the best of REPEATS (default 3), in processes of its own, on all cores:

  import     MILLIONS of rows (default 8; user, time, event; strings; 200,000 users, 500 event types, users mixed) from a CSV file
             and from an Arrow table in memory: seconds, seconds of the CPU (for a machine that others use too), and the maximum
             memory above the table divided by the size of the dataset
  predict    100,000 histories, top 10, by the tool (from a dataset of its own: CSV read included) and by the package from a table
  question   one query to a session, top 10, beside the bare C call
"""

import json
import os
import subprocess
import sys
import tempfile
import time


def memory(name):
    """VmRSS or VmHWM of this process, in bytes."""
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))


def events(rows, users, kinds, seed):
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    names = pa.array([f"event {i}" for i in range(kinds)])
    return pa.table({
        "user": pa.array(rng.integers(1, users + 1, rows)).cast(pa.string()),
        "time": pa.array(np.sort(rng.integers(1325376000000, 1388448000000, rows)), pa.timestamp("ms", "UTC")),
        "event": names.take(pa.array((rng.random(rows) ** 2 * kinds).astype(np.int64))),
    })


def as_text(table):
    import pyarrow.compute as pc

    milliseconds = pc.cast(table["time"], "int64")
    seconds = pc.cast(pc.divide(pc.cast(milliseconds, "float64"), 1000.0), "string")
    return table.set_column(1, "time", seconds)


def import_arrow(rows):
    import lapse

    table = events(rows, 200_000, 500, 1)
    lapse.Dataset.from_arrow(events(1000, 10, 5, 2))  # loads the library
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets VmHWM
    before, begin, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    data = lapse.Dataset.from_arrow(table)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    data.save("arrow.lapse")
    return {"seconds": seconds, "cpu": cpu, "above": memory("VmHWM") - before, "dataset": os.path.getsize("arrow.lapse"),
            "fingerprint": data.fingerprint}


def import_csv(rows):
    import lapse

    begin, cpu = time.perf_counter(), time.process_time()
    data = lapse.read_csv("events.csv")
    return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "fingerprint": data.fingerprint}


def write_csv(rows):
    import pyarrow.csv

    pyarrow.csv.write_csv(as_text(events(rows, 200_000, 500, 1)), "events.csv",
                          pyarrow.csv.WriteOptions(quoting_style="none"))
    return {}


def predict(tool):
    import lapse
    import pyarrow.csv

    table = events(2_000_000, 100_000, 50, 3)
    pyarrow.csv.write_csv(as_text(table), "histories.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    model = lapse.train(lapse.Dataset.from_arrow(events(100_000, 5_000, 50, 4)), epochs=1, context=16, progress=False)
    model.save("m.safetensors")
    begin = time.perf_counter()
    with open(os.devnull, "w") as out:
        subprocess.run([tool, "predict", "m.safetensors", "histories.csv", "--at", "+1d", "--csv"], check=True, stdout=out,
                       stderr=out)
    by_tool = time.perf_counter() - begin
    begin = time.perf_counter()
    rows = len(model.predict(table, at="+1d", top=10))
    return {"tool": by_tool, "package": time.perf_counter() - begin, "rows": rows}


def question(_):
    import lapse
    from lapse._c import ffi, lib

    model = lapse.train(lapse.Dataset.from_arrow(events(100_000, 5_000, 500, 4)), epochs=1, progress=False)
    session = model.session()
    for i in range(50):
        session.append(1e9 + i * 60.0, f"event {i}")
    best, count, error = ffi.new("lapse_recommendation[]", 10), ffi.new("int64_t *"), ffi.new("lapse_error *")
    times = {}
    for name, ask in (("call", lambda t: lib.lapse_session_recommend(session._handle, t, 10, False, best, count, error)),
                      ("package", lambda t: session.predict(t))):
        best_time = 1e9
        for _ in range(20):
            begin = time.perf_counter()
            for i in range(200):
                ask(2e9 + i * 100.0)
            best_time = min(best_time, (time.perf_counter() - begin) / 200)
        times[name] = best_time * 1e6
    return times


def run(name, argument, repeats):
    """The results of a function, each in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--run", name, str(argument)]
    return [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
            for _ in range(repeats)]


def main():
    if sys.argv[1] == "--run":
        argument = sys.argv[3]
        print(json.dumps(globals()[sys.argv[2]](int(argument) if argument.isdigit() else argument)))
        return
    tool, rows = os.path.abspath(sys.argv[1]), int(float(sys.argv[2] if len(sys.argv) > 2 else 8) * 1e6)
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run("write_csv", rows, 1)
        arrow, text = run("import_arrow", rows, repeats), run("import_csv", rows, repeats)
        assert arrow[0]["fingerprint"] == text[0]["fingerprint"]
        for kind in ("seconds", "cpu"):
            a, t = min(r[kind] for r in arrow), min(r[kind] for r in text)
            print(f"import    {rows / 1e6:g} million rows: CSV {t:.2f} s, Arrow {a:.2f} s ({kind}): {t / a:.1f} times as fast")
        print(f"          maximum "
              f"memory above the table / dataset {min(r['above'] for r in arrow) / arrow[0]['dataset']:.2f}")
        p = min(run("predict", tool, repeats), key=lambda r: r["package"] / r["tool"])
        print(f"predict   {p['rows']} rows: tool {p['tool']:.2f} s, package {p['package']:.2f} s")
        q = min(run("question", 0, repeats), key=lambda r: r["package"] - r["call"])
        print(f"question  call {q['call']:.1f} us, package {q['package']:.1f} us: {q['package'] - q['call']:.1f} us more")


if __name__ == "__main__":
    main()
