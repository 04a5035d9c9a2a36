"""Runs tests on a build with changes, for mutate.py: which places each test reaches, and which test sees a change."""

import concurrent.futures
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

PLACES = 65536  # bytes of the file in which a run marks the places it reaches
MEMORY = 16 << 30  # address space of a test: a change may allocate without end
FILE = 1 << 30


class Test:
    """A program, a case of the command-line tests, or a suite. reached: numbers of the places that it enters."""

    def __init__(self, name, command, seconds=0.0, passed=None, reached=()):
        self.name, self.command, self.seconds, self.passed, self.reached = name, command, seconds, passed, set(reached)


def tests_of(tree, build):
    """All tests that a build has, as relative paths of the tree."""
    tests = []
    for source in sorted(os.listdir(os.path.join(tree, "tests/unit"))):
        name = source[:-2]
        if source.endswith(".c") and os.access(os.path.join(build, name), os.X_OK):
            tests.append(Test(name, [os.path.join(build, name)]))
    tool = os.path.join(build, "lapse")
    for case in sorted(os.listdir(os.path.join(tree, "tests/cli/cases"))):
        if not case.endswith("_cuda.t"):
            tests.append(Test("cli " + case[:-2], ["tests/cli/run.sh", tool, case[:-2]]))
    for suite in ("python", "faults"):
        tests.append(Test(suite, [f"tests/{suite}/run.sh", tool]))
    return tests


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_test(test, tree, build, limit, number=0, trace=None):
    """Runs a test with a change. Returns its exit status, None after `limit` seconds, and how many checks passed, if it says."""
    folder = tempfile.mkdtemp(prefix="lapse-mutate-")
    environment = dict(os.environ, LAPSE_MUTANT=str(number), LAPSE_TEST_TIER="quick", LAPSE_TEST_UNDER="", TMPDIR=folder,
                       CMOCKA_MESSAGE_OUTPUT="TAP", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                       LD_LIBRARY_PATH=build + os.pathsep + os.environ.get("LD_LIBRARY_PATH", ""))
    if trace:
        environment["LAPSE_MUTANT_TRACE"] = trace
    try:
        with tempfile.TemporaryFile(dir=folder) as output:
            process = subprocess.Popen(test.command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            # Programs that a test has left, too; a suite may remove its files first.
            for kill in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, kill)
                    if kill == signal.SIGTERM and status is None:
                        time.sleep(1)
                except ProcessLookupError:
                    pass
            process.wait()
            output.seek(0)
            said = re.findall(rb"(\d+) passed, (\d+) failed", output.read()[-4096:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return status, int(said[-1][0]) if said else None


def sees(test, status, passed):
    """Whether the outcome of a run is worse than without a change."""
    if test.passed is not None:
        return passed is None or passed < test.passed
    return status != 0


def record(test, tree, build):
    """Records the output of a case of the command-line tests in the copy: a loop with a change is not vectorized, and so adds up in another
    order, which changes the last digits."""
    name = test.name.removeprefix("cli ")
    if name == test.name:
        return False
    case = Test(test.name, [test.command[0], "--record", *test.command[1:]])
    return run_test(case, tree, build, 900)[0] == 0


def trace_test(test, tree, build, may_record=True):
    """Runs a test without a change: its time, what passes, and the places that it reaches. Returns False if it cannot tell anything."""
    with tempfile.NamedTemporaryFile(prefix="lapse-trace-") as trace:
        trace.truncate(PLACES)
        begin = time.monotonic()
        status, test.passed = run_test(test, tree, build, 900, trace=trace.name)
        if status != 0 and may_record and record(test, tree, build):
            return trace_test(test, tree, build, False)
        test.seconds = time.monotonic() - begin
        reached = open(trace.name, "rb").read()
    test.recorded = not may_record
    test.reached = {i for i, byte in enumerate(reached) if byte}
    test.differing = {i for i, byte in enumerate(reached) if byte > 1}
    return bool(test.passed) if test.passed is not None else status == 0


def trace_all(tests, tree, build, jobs, say):
    kept = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for test, good in zip(tests, pool.map(lambda t: trace_test(t, tree, build), tests)):
            if good:
                kept.append(test)
                if test.recorded:
                    say(f"{test.name} was recorded anew")
            else:
                say(f"{test.name} fails without a change, or was skipped: not used")
    # Cases that compare every digit see most of the changes that they enter.
    return sorted(kept, key=lambda t: t.seconds / (5 if t.name.endswith(("_portable", "cli collection")) else 1))


def judge(number, tests, tree, build):
    """The first test that sees a change, and how many entered the place."""
    entering = [t for t in tests if number in t.differing]
    for test in entering:
        status, passed = run_test(test, tree, build, 10 + 4 * test.seconds, number)
        if sees(test, status, passed):
            return test.name + (" (timeout)" if status is None else ""), len(entering)
    return None, len(entering)


def judge_all(numbers, tests, tree, build, jobs, on_result):
    """Judges all changes, in the order in which they were drawn: what is judged first is a sample of all."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(judge, n, tests, tree, build): n for n in sorted(numbers)}
        for done in concurrent.futures.as_completed(waiting):
            on_result(waiting[done], *done.result())
