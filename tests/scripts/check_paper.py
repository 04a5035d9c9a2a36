"""check_paper.py: docs/paper.md is what scripts/paper_page.py makes of bench/results/paper, its numbers are those of the JSON, and its
sentences follow the paired tests. run.sh calls it."""
import json
import os
import re
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import paper_page as pages  # noqa: E402

RESULTS = os.path.join(ROOT, "bench/results/paper")
checks = wrong = 0


def check(name, good):
    global checks, wrong
    checks += 1
    if not good:
        wrong += 1
        print(f"not ok: {name}")


def numbers_of(path):
    """All means of a result, as the page prints them."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    found = set()
    for row in result["rows"]:
        for metric in pages.NAMES:
            if metric in row and row[metric]["mean"] is not None:
                found |= {f"{100 * row[metric]['mean']:.2f}", f"{row[metric]['mean']:.3f}"}
    return found


def made_up(folder, mean, low, high, p):
    plan = pages.read(os.path.join(ROOT, "bench/paper/stackoverflow.json"))
    rows = [{"name": row["name"], "config": "", "seeds": 2, "valid": 0.4, "accuracy": {"mean": 0.4, "std": 0.01},
             "log-loss": {"mean": 1.5, "std": 0.1}} for row in plan["rows"]]
    pair = {"row": "Mercer", "minus": "RMTPP", "mean": mean, "low": low, "high": high, "p": p}
    with open(os.path.join(folder, "stackoverflow.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": "m", "commit": "c", "runs": 1, "rows": rows, "pairs": [pair]}, file)
    return pages.Table("stackoverflow", folder)


with tempfile.TemporaryDirectory() as folder:
    for mean, p, one, two in ((0.01, 0.001, "is above", "is below"), (-0.01, 0.001, "is below", "is above"),
                              (0.01, 0.3, "do not differ", "do not differ")):
        table = made_up(folder, mean, mean - 0.005, mean + 0.005, p)
        check(f"verdict of {mean}, p {p}", one in pages.verdict(table, "Mercer", "RMTPP", "accuracy"))
        check(f"verdict of {mean}, p {p}, reversed", two in pages.verdict(table, "RMTPP", "Mercer", "accuracy"))
        check("interval in percent", f"{100 * (mean - 0.005):+.2f} to {100 * (mean + 0.005):+.2f}" in pages.verdict(
            table, "Mercer", "RMTPP", "accuracy"))
    check("rows without a test", "not run together" in pages.verdict(table, "Mercer", "LSTM", "accuracy"))

with open(os.path.join(ROOT, "docs/paper.md"), encoding="utf-8") as file:
    page = file.read()
check("docs/paper.md is the page of scripts/paper_page.py", page == pages.page(RESULTS))
published = {cell for table in pages.PAPER.values() for metric in table.values() for cell in metric.values()}
measured = set().union(*(numbers_of(os.path.join(RESULTS, name)) for name in os.listdir(RESULTS) if name.endswith(".json")))
cells = 0
for line in page.splitlines():
    for cell in [part.strip() for part in line.split("|")[2:-1]] if line.startswith("|") else []:
        if re.fullmatch(r"\d+\.\d+( \([\d.]+\))?", cell) and cell not in published:
            cells += 1
            number = cell.split()[0]
            check(f"the cell {cell} is in no result: {line}", number in measured or "training" in line or line.count("|") == 5)
print(f"{checks - cells} checks and {cells} cells, {wrong} wrong")
sys.exit(wrong > 0)
