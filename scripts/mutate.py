#!/usr/bin/env python3
"""mutate.py: changes the source in one place at a time and runs the tests that enter it; lists the changes that no test sees.

    scripts/mutate.py [--count N] [--seed S] [--changed] [--jobs J] [--only PATH] [--folder NAME] [--build-only]
                      [--without TEST ...] [--built]

--count N      number of changes (default: 100)
--seed S       seed that chooses them (default: the time); the first line of the output has it
--changed      only lines that differ from main
--jobs J       tests that run at once (default: the number of cores)
--only PATH    only files whose path begins with this
--folder NAME  where the copy and its build are (default: build-mutate)
--build-only   ends after the build
--without T... tests that are not run: faults, which takes minutes for each change that no other test sees
--built        takes the build of an earlier call, also on a machine without a compiler

The files of src and cli are changed, but not plugins (GPU kernels, MPI), in a copy. mutate_source.py says what changes. One build
has all of them, and an environment variable chooses one. Each test runs once without a change; so it is known how long it takes and
which places it enters, and at which the changed operator would have given another value. Then each change is judged by the tests in
which it makes a difference, the shortest first, until one fails: unit tests, commands, the Python package and failure injection as
`./run test quick` runs them, but no emulated GPU kernels. Cases that fail without a change, because instrumented loops add up in
another order, are recorded anew in the copy.

Changes that no test can see because they change no behaviour are listed with the reason in tests/mutate/equivalent.txt. The last line of
the output is `N changes: N caught, N without effect, N survived`. The exit status is 1 if any survived.
"""

import argparse
import importlib.util
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import mutate_run
import mutate_source

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = TREE = BUILD = PLAN = ""  # set by main
EQUIVALENT = "tests/mutate/equivalent.txt"


def say(line):
    print(line, flush=True)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tracked(*folders):
    """The files of the working tree that git does not ignore; where there is no repository, all that are in no folder build*."""
    if os.path.exists(os.path.join(ROOT, ".git")):
        return git("ls-files", "--cached", "--others", "--exclude-standard", *folders).split("\n")
    names = []
    for folder, inside, files in os.walk(ROOT):
        inside[:] = [name for name in inside if not name.startswith("build") and name not in (".git", "__pycache__")]
        names += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files]
    return [name for name in names if not folders or name.split(os.sep)[0] in folders]


def write(path, content):
    """Writes a file if its content differs, so that only what changed is built again."""
    if os.path.exists(path) and open(path, "rb").read() == content:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def sources():
    """The C files that are changed: {path: text}."""
    files = tracked("src", "cli")
    return {f: open(os.path.join(ROOT, f)).read() for f in sorted(files)
            if f.endswith(".c") and "/cuda/" not in f and "/mpi/" not in f and os.path.exists(os.path.join(ROOT, f))}


def copy_tree(skipped):
    """The working tree, without the sources in `skipped`."""
    wanted = set()
    for name in tracked():
        path = os.path.join(ROOT, name)
        if not name or not os.path.isfile(path):
            continue
        wanted.add(name)
        if name in skipped:
            continue
        content = open(path, "rb").read()
        write(os.path.join(TREE, name), content)
        os.chmod(os.path.join(TREE, name), os.stat(path).st_mode)
    wanted.add("src/base/mutant.c")
    for folder, inside, names in os.walk(TREE):
        inside[:] = [name for name in inside if os.path.join(folder, name) != BUILD]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, TREE) not in wanted:
                os.remove(path)
    write(os.path.join(TREE, "src/base/mutant.c"),
          mutate_source.CONTROL.replace("PLACES", str(mutate_run.PLACES)).encode())


def changed_lines():
    """{file: lines} that differ from main as it was when the branch left it."""
    lines, file = {}, None
    for line in git("diff", "-U0", git("merge-base", "main", "HEAD").strip(), "--", "src", "cli").split("\n"):
        if line.startswith("+++ "):
            file = line[6:]
        found = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if found:
            begin, count = int(found.group(1)), int(found.group(2) or 1)
            lines.setdefault(file, set()).update(range(begin, begin + count))
    for file in git("ls-files", "--others", "--exclude-standard", "src", "cli").split():
        lines[file] = set(range(1, 100000))
    return lines


def draw_order(options, texts):
    """All places in the order in which they are drawn: of each kind in turn, wherever in the source."""
    order = random.Random(options.seed)
    lines = changed_lines() if options.changed else None
    by_kind = {kind: [] for kind in mutate_source.KINDS}
    for file, text in texts.items():
        for site in mutate_source.sites_of(file, text, order):
            if lines is None or site.line in lines.get(file, ()):
                by_kind[site.kind].append(site)
    for sites in by_kind.values():
        order.shuffle(sites)
    longest = max(map(len, by_kind.values()))
    return [sites[i] for i in range(longest) for sites in by_kind.values() if i < len(sites)]


def check_syntax(file, text, chosen, commands):
    """The chosen changes of a file that compile, with each of its commands: some files are built for several levels."""
    while True:
        write(os.path.join(TREE, file), mutate_source.schemata(text, chosen).encode() if chosen else text.encode())
        if not chosen:
            return chosen
        for command in commands:
            run = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
            if run.returncode != 0:
                break
        else:
            return chosen
        errors = {int(n) for n in re.findall(re.escape(os.path.basename(file)) + r":(\d+):\d+: (?:fatal )?error", run.stderr)}
        kept = {n: s for n, s in chosen.items() if not any(s.first_line <= e <= s.last_line for e in errors)}
        chosen = kept if len(kept) < len(chosen) else {}


def configure():
    # Built like the product in a folder of the same depth, so that ccache knows the files without a change.
    os.environ["CCACHE_BASEDIR"] = TREE
    subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DLAPSE_CUDA=OFF", "-DLAPSE_WERROR=OFF",
                    "-DCMAKE_CXX_COMPILER=NOTFOUND"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    commands = {}
    for entry in json.load(open(os.path.join(BUILD, "compile_commands.json"))):
        out = shlex.split(entry["command"])
        if "-o" in out:
            at = out.index("-o")
            del out[at:at + 2]
        out = [word for word in out if not word.endswith("ccache")] + ["-fsyntax-only"]
        commands.setdefault(os.path.relpath(entry["file"], TREE), []).append(out)
    return commands


def drop_failing(log, texts, chosen):
    """Takes back the changes on lines that the compiler refuses only when it generates code, such as operands that must be constants; all
    changes of a file where no line is known. Returns whether there was one."""
    dropped = False
    for source in set(re.findall(r"-c \S*?/tree/(\S+\.c)\b", "\n".join(re.findall(r"FAILED: .*\n.*", log)))):
        lines = {int(n) for n in re.findall(re.escape(source) + r":(\d+):\d+: (?:fatal )?error", log)}
        known = chosen.get(source, {})
        kept = {n: s for n, s in known.items() if lines and not any(s.first_line <= e <= s.last_line for e in lines)}
        kept = kept if len(kept) < len(known) else {}
        dropped = dropped or len(kept) < len(known)
        chosen[source] = kept
        write(os.path.join(TREE, source), (mutate_source.schemata(texts[source], kept) if kept else texts[source]).encode())
    return dropped


def build(options):
    """Chooses the changes and builds them. Returns {number: site}."""
    texts = sources()
    order = draw_order(options, texts)
    order = [s for s in order if s.file.startswith(options.only)]
    if not order:
        say("0 changes: there is no place to change")
        sys.exit(0)
    copy_tree(texts)
    # Files that no draw touches are the originals; those that one does are written by check_syntax.
    known = {f: t for f, t in texts.items()}
    for file, text in known.items():
        if not os.path.exists(os.path.join(TREE, file)):
            write(os.path.join(TREE, file), text.encode())
    commands = configure()
    chosen, at, number = {}, 0, 0
    while at < len(order) and sum(map(len, chosen.values())) < options.count:
        touched = set()
        missing = options.count - sum(map(len, chosen.values()))
        for site in order[at:at + missing]:
            number += 1
            chosen.setdefault(site.file, {})[number] = site
            touched.add(site.file)
        at += missing
        with ThreadPoolExecutor(options.jobs) as pool:
            for file, good in zip(sorted(touched), pool.map(
                    lambda f: check_syntax(f, texts[f], chosen[f], commands[f]), sorted(touched))):
                chosen[file] = good
    for file, text in texts.items():
        if not chosen.get(file):
            write(os.path.join(TREE, file), text.encode())
    programs = [name[:-2] for name in os.listdir(os.path.join(TREE, "tests/unit"))
                if name.endswith(".c") and not name.startswith("test_cuda")]
    shared = ["lapse_shared"] if importlib.util.find_spec("cffi") else []  # for the Python package
    log = os.path.join(FOLDER, "build.log")
    targets = ["lapse_tool", *({"faults"} - set(options.without)), *programs, *shared]
    for _ in range(6):
        with open(log, "w") as file:
            done = subprocess.run(["ninja", "-C", BUILD, "-k", "0", "-j", str(options.jobs), *targets], stdout=file, stderr=subprocess.STDOUT)
        if done.returncode == 0 or not drop_failing(open(log, errors="replace").read(), texts, chosen):
            break
    if done.returncode != 0:
        sys.exit(f"mutate: the build failed: {log}\n" + open(log, errors="replace").read()[-3000:])
    return {n: s for file in chosen.values() for n, s in file.items()}


def equivalent_changes():
    """{(file, before, after)}: blocks of four lines: the file, `- before`, `+ after`, `= reason`."""
    known, file, before = set(), None, None
    for line in open(os.path.join(ROOT, EQUIVALENT)) if os.path.exists(os.path.join(ROOT, EQUIVALENT)) else ():
        line = line.rstrip("\n")
        if line.startswith("- "):
            before = line[2:]
        elif line.startswith("+ "):
            known.add((file, before, line[2:]))
        elif line and line[0] not in "=#":
            file = line
    return known


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip().replace("scripts/mutate.py", "./run mutate"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--folder", default="build-mutate")
    parser.add_argument("--without", nargs="*", default=[])
    options = parser.parse_args()
    if options.count < 1 or options.jobs < 1:
        parser.error("--count and --jobs are at least 1")
    global FOLDER, TREE, BUILD, PLAN
    FOLDER = os.path.join(ROOT, options.folder)
    TREE, BUILD, PLAN = (os.path.join(FOLDER, name) for name in ("tree", "tree/build", "plan.json"))
    os.makedirs(FOLDER, exist_ok=True)
    begin = time.monotonic()
    if options.built:
        plan = json.load(open(PLAN))
    else:
        say(f"seed {options.seed}")
        sites = build(options)
        plan = {"seed": options.seed, "sites": {n: [s.file, s.line, s.kind, s.before, s.after] for n, s in sites.items()}}
        json.dump(plan, open(PLAN, "w"), indent=1)
        say(f"{len(sites)} changes of {len({s.file for s in sites.values()})} files built in {time.monotonic() - begin:.0f} s")
    if options.build_only:
        return 0
    return judge(options, {int(n): s for n, s in plan["sites"].items()}, begin)


def judge(options, sites, begin):
    known, table = equivalent_changes(), open(os.path.join(FOLDER, "results.txt"), "w")
    wanted = {n for n, s in sites.items() if (s[0], s[3], s[4]) not in known}
    tests = [t for t in mutate_run.tests_of(TREE, BUILD) if t.name not in options.without]
    tests = mutate_run.trace_all(tests, TREE, BUILD, options.jobs, say)
    entered = set().union(*(t.reached for t in tests)) if tests else set()
    say(f"{len(tests)} tests enter {len(entered & set(sites))} of {len(sites)} places, {time.monotonic() - begin:.0f} s")
    results, done = {}, 0

    def on_result(number, test, entering):
        nonlocal done
        done += 1
        results[number] = [test, entering]
        file, line, kind, before, after = sites[number]
        print(f"{file}:{line}: {kind}: {test or 'SURVIVED'} ({entering} tests enter it)\n- {before}\n+ {after}", file=table, flush=True)
        if test is None:
            say(f"{file}:{line}: {kind}" + ("" if entering else ", entered by no test") + f"\n- {before}\n+ {after}")
        if done % 50 == 0:
            say(f"{done} of {len(wanted)} judged, {time.monotonic() - begin:.0f} s")

    mutate_run.judge_all(wanted, tests, TREE, BUILD, options.jobs, on_result)
    survived = sum(test is None for test, _ in results.values())
    say(f"{len(sites)} changes: {len(results) - survived} caught, {len(sites) - len(results)} without effect, {survived} survived")
    return survived > 0


if __name__ == "__main__":
    sys.exit(main())
