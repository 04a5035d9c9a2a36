"""score.py: imports every file of the collection without options, and counts what happens.

    score.py LAPSE FOLDER [--list dev|held]

right      imported with the roles, times, rows and users that a person sees; for a hopeless file, any refusal
question   an error that has a complete command, and the command imports the file right
wrong      imported otherwise, without a question: silently wrong
refused    an error without such a command
The last lines are the counts; the exit status is 1 if a half is below BAR.
"""
import json
import os
import shlex
import subprocess
import sys

# Of each half: at least so many clear files right; at most so many wrong (of all kinds) and refused (of the clear and ambiguous).
BAR = {"dev": {"right": 110, "wrong": 0, "refused": 0}, "held": {"right": 70, "wrong": 0, "refused": 0}}


def run(tool, folder, arguments):
    done = subprocess.run([tool] + arguments, cwd=folder, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def faults(one, report):
    """What is wrong with an import, as a list of words."""
    def same(role, names):
        found = report["columns"][role]["column"]
        return found in names or found.replace(",", " ") in names
    out = [role for role, names in (("sequence", one["user"]), ("time", one["time"]), ("event", one["event"])) if not same(role, names)]
    if report["events"] != one["rows"]:
        out.append("%d events for %d" % (report["events"], one["rows"]))
    if report["columns"]["sequence"]["column"] in one["user"][:1] and report["sequences"] != one["users"]:
        out.append("%d users for %d" % (report["sequences"], one["users"]))
    for end in () if one["any_times"] else ("first", "last"):
        if abs(report[end + "_time"] - one[end]) > 1:
            out.append("%s time %.17g for %.17g" % (end, report[end + "_time"], one[end]))
    return out


def attempt(tool, folder, one, arguments):
    status, out, messages = run(tool, folder, arguments + ["--json"])
    if status:
        return "error", messages
    wrong = faults(one, json.loads(out))
    return ("wrong", "; ".join(wrong) + "\n" + messages) if wrong else ("right", messages)


def judge(tool, folder, one):
    result, text = attempt(tool, folder, one, ["import", one["file"], "-o", "out.lapse"])
    if one["kind"] == "hopeless":
        return ("right", text) if result == "error" else ("wrong", "imported\n" + text)
    if result != "error":
        return result, text
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("lapse import ")]
    for command in commands:
        answer, reason = attempt(tool, folder, one, shlex.split(command)[1:])
        if answer == "right" or (one["kind"] == "ambiguous" and answer != "error"):
            return "question", text
        text += "    pasted: %s: %s\n" % (answer, reason)
    return "refused", text


def main():
    tool, folder = os.path.realpath(sys.argv[1]), sys.argv[2]
    listed = sys.argv[4] if len(sys.argv) > 4 else None
    with open(os.path.join(folder, "expected.json")) as file:
        cases = json.load(file)
    results, failed = {}, 0
    for one in cases:
        result, text = judge(tool, folder, one)
        results.setdefault((one["half"], one["kind"]), []).append(result)
        if listed == one["half"] and (result in ("wrong", "refused") or one["kind"] != "hopeless" and result != "right"):
            print("--- %s (%s): %s\n%s" % (one["file"], one["kind"], result, text))
    print("half  kind       files  right  question  wrong  refused")
    for (half, kind), found in sorted(results.items()):
        print("%-5s %-10s %5d %6d %9d %6d %8d" % (half, kind, len(found), *(found.count(r) for r in ("right", "question", "wrong",
        "refused"))))
    for half, bar in BAR.items():
        everything = [r for (h, _), found in results.items() if h == half for r in found]
        for what, good in (("right", results[(half, "clear")].count("right") >= bar["right"]),
                           ("wrong", everything.count("wrong") <= bar["wrong"]),
                           ("refused", everything.count("refused") <= bar["refused"])):
            failed += not good
            if not good:
                print("FAILED: %s: %s is beyond the bar of %d" % (half, what, bar[what]))
    print("%d passed, %d failed" % (3 * len(BAR) - failed, failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
