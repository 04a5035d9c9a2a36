#!/usr/bin/env python3
"""paper_results.py: takes the tables of `./run paper` to bench/results/paper, without what the page does not show.

    scripts/paper_results.py OUT FOLDER

OUT has PLAN.json of `lapse compare`, PLAN.machine and the folder of runs, from which the commit comes. A table that is not whole is
left out, and the one that FOLDER has stays.
"""
import glob
import json
import os
import sys


def commit_of(out, plan):
    """The newest commit that runs of this folder have; runs of other commits are never used by a table."""
    runs = sorted(glob.glob(os.path.join(out, "runs", "*.json")), key=os.path.getmtime)
    for path in reversed(runs):
        if os.path.getmtime(path) <= os.path.getmtime(plan):
            with open(path, encoding="utf-8") as file:
                return file.readline().split('"commit": "')[1].split('"')[0]
    return "unknown"


METRICS = ("log-loss", "accuracy", "ndcg@10", "hit@10", "ndcg@5", "hit@5")


def number(value):
    return None if value is None else float(f"{value:.6g}")


def spread(cell, name):
    return {"mean": number(cell[name]["mean"]), "std": number(cell[name]["std"])}


def compact(table, machine, commit, curves):
    names = [name for name in METRICS if name in table["rows"][0]]
    rows = []
    for row in table["rows"]:
        kept = {"name": row["name"], "config": row["config"], "seeds": row["runs"] - row["diverged"], "diverged": row["diverged"],
                "valid": number(row["valid"]["mean"]), "epoch_seconds": number(row["epoch_seconds"]),
                "seconds": number(row["seconds"])}
        kept.update({name: spread(row, name) for name in names})
        if curves and row["seeds"]:
            kept["curve"] = [[number(point["seconds"]), number(point["valid"])] for point in row["seeds"][0]["curve"]]
        rows.append(kept)
    cells = [{"row": cell["name"], "config": cell["config"], "valid": number(cell["valid"]["mean"]), "chosen": cell["chosen"]}
             for cell in table.get("cells", ())]
    cells = [cell for cell in cells if sum(other["row"] == cell["row"] for other in cells) > 1]
    pairs = [{**pair, **{key: number(pair[key]) for key in ("mean", "low", "high", "p")}} for pair in table.get("pairs", ())]
    return {"title": table["title"], "metric": table["metric"], "select": table["select"], "protocol": table.get("protocol"),
            "machine": machine["machine"], "commit": commit, "runs": table["runs"], "rows": rows, "cells": cells, "pairs": pairs}


def written(value):
    """JSON with one line for each row, cell and pair."""
    lines = []
    for key, part in value.items():
        if isinstance(part, list):
            items = ",\n".join("    " + json.dumps(item, ensure_ascii=False) for item in part)
            lines.append(f"  {json.dumps(key)}: [\n{items}\n  ]" if part else f"  {json.dumps(key)}: []")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(part, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(out, folder):
    os.makedirs(folder, exist_ok=True)
    for path in sorted(glob.glob(os.path.join(out, "*.json"))):
        plan = os.path.basename(path)[:-5]
        if not os.path.exists(os.path.join(out, plan + ".machine")):
            continue
        with open(path, encoding="utf-8") as file, open(os.path.join(out, plan + ".machine"), encoding="utf-8") as other:
            table, machine = json.load(file), json.load(other)
        if table["finished"] < table["runs"]:
            print(f"left out: {plan} has {table['finished']} of {table['runs']} runs")
            continue
        with open(os.path.join(folder, plan + ".json"), "w", encoding="utf-8") as file:
            file.write(written(compact(table, machine, commit_of(out, path), plan == "movielens-time")))
        print(f"{plan}: {len(table['rows'])} rows")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
