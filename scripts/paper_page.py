#!/usr/bin/env python3
"""paper_page.py: writes docs/paper.md from the measurements in bench/results/paper and the numbers of the paper, below.

    scripts/paper_page.py [FILE] [FOLDER]      FILE: docs/paper.md; FOLDER: bench/results/paper

Every number of the page that Lapse measured comes from a JSON file of FOLDER (scripts/paper_results.py). Sentences that compare two
rows are chosen by the paired test of these rows: nothing here says which row wins.
"""
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LEVEL = 0.05  # of p, where a sentence says that rows differ

# Table 2 of the paper, in percent: mean and, where it has one, the standard deviation over ten runs.
PAPER = {
    "stackoverflow": {"accuracy": {
        "LSTM": "46.03 (.21)", "TimeJoint": "46.30 (.23)", "RMTPP": "46.23 (.24)", "PosEnc": "44.03 (.33)",
        "Bochner Normal": "44.89 (.46)", "Bochner Inv CDF": "44.67 (.38), NVP", "Bochner Non-para": "46.27 (.29)",
        "Mercer": "46.83 (.20), k = 10"}},
    "movielens": {
        "hit@10": {"GRU4Rec 2016": "75.01 (.25)", "Caser": "78.86", "TransRec": "64.15", "SASRec": "82.45 (.31)",
                   "Bochner Normal": "81.60 (.69)", "Bochner Inv CDF": "82.52 (.36), MAF", "Bochner Non-para": "82.86 (.22)",
                   "Mercer": "82.92 (.17), k = 5"},
        "ndcg@10": {"GRU4Rec 2016": "55.13 (.14)", "Caser": "55.38", "TransRec": "39.72", "SASRec": "59.05 (.14)",
                    "Bochner Normal": "59.47 (.56)", "Bochner Inv CDF": "60.80 (.47), MAF", "Bochner Non-para": "60.83 (.15)",
                    "Mercer": "61.67 (.11), k = 5"}},
    "sessions": {
        "hit@5": {"GRU4Rec 2016": "4.12", "RNN + attention": "5.90", "TransRec": "7.03", "SASRec": "8.63", "Bochner Normal": "4.27",
                  "Bochner Inv CDF": "9.04, MAF", "Bochner Non-para": "9.25", "Mercer": "10.92, k = 25"},
        "ndcg@5": {"GRU4Rec 2016": "4.03", "RNN + attention": "4.66", "TransRec": "5.62", "SASRec": "6.92", "Bochner Normal": "4.06",
                   "Bochner Inv CDF": "7.27", "Bochner Non-para": "7.34", "Mercer": "8.90"},
        "hit@10": {"GRU4Rec 2016": "6.71", "RNN + attention": "9.03", "TransRec": "10.38", "SASRec": "12.49", "Bochner Normal": "7.66",
                   "Bochner Inv CDF": "12.77", "Bochner Non-para": "13.16", "Mercer": "14.94"},
        "ndcg@10": {"GRU4Rec 2016": "4.97", "RNN + attention": "7.36", "TransRec": "8.72", "SASRec": "10.84",
                    "Bochner Normal": "6.02", "Bochner Inv CDF": "10.95", "Bochner Non-para": "11.36", "Mercer": "12.81"}},
}
NAMES = {"log-loss": "log-loss", "accuracy": "accuracy", "hit@5": "Hit@5", "ndcg@5": "NDCG@5", "hit@10": "Hit@10", "ndcg@10": "NDCG@10"}
KNOWN = ", time known"
NOT_RUN = "not run"
# Rows that read no time, in any panel.
TIMELESS = ("majority", "markov", "popularity", "item-markov")
# The published recurrent model that the sentence on time and architecture takes.
REFERENCE = {"stackoverflow": "RMTPP", "movielens": "SASRec", "sessions": "SASRec"}


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Table:
    """The rows of a plan, with results where there are some."""

    def __init__(self, plan, folder):
        self.plan = read(os.path.join(ROOT, "bench/paper", plan + ".json"))
        self.result = read(os.path.join(folder, plan + ".json"))
        self.name = plan
        self.rows = {row["name"]: row for row in (self.result or {"rows": ()})["rows"]}
        self.pairs = {(pair["row"], pair["minus"]): pair for pair in (self.result or {"pairs": ()})["pairs"]}

    def order(self):
        return [row["name"] for row in self.plan["rows"]]

    def value(self, name, metric, scale=100, digits=2):
        row = self.rows.get(name)
        if row is None or metric not in row or row[metric]["mean"] is None:
            return NOT_RUN
        text = f"{scale * row[metric]['mean']:.{digits}f}"
        return text + (f" ({shortened(scale * row[metric]['std'], digits)})" if row["seeds"] > 1 else "")

    def config(self, name):
        row = self.rows.get(name)
        return row["config"] if row and row["config"] else ""

    def seeds(self, name):
        return str(self.rows[name]["seeds"]) if name in self.rows else NOT_RUN

    def pair(self, one, two):
        """(mean, low, high, p) of one minus two, in percent; None: not measured."""
        for sign, key in ((1, (one, two)), (-1, (two, one))):
            pair = self.pairs.get(key)
            if pair and pair["mean"] is not None and pair["low"] is not None:
                ends = sorted((sign * pair["low"], sign * pair["high"]))
                return tuple(100 * x for x in (sign * pair["mean"], *ends)) + (pair["p"],)
        return None

    def source(self):
        """Machine and commit, for the line under a table."""
        if not self.result:
            return f"*{NOT_RUN}*"
        note = " " + self.result["note"] if self.result.get("note") else ""
        return f"*{self.result['machine']}, commit {self.result['commit']}, {self.result['runs']} runs.{note}*"


def shortened(value, digits):
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def shown_difference(pair):
    return f"{pair[0]:+.2f} ({pair[1]:+.2f} to {pair[2]:+.2f}, p = {pair[3]:.2g})"


def verdict(t, one, two, metric):
    """A sentence on two rows, by their paired test."""
    pair = t.pair(one, two)
    if pair is None:
        return f"{one} and {two} were {NOT_RUN} together."
    if pair[3] is None or pair[3] >= LEVEL:
        return f"{one} and {two} do not differ in {metric}: {shown_difference(pair)}."
    return f"{one} is {'above' if pair[0] > 0 else 'below'} {two} in {metric}: {shown_difference(pair)}."


def panel(t, metrics, known):
    suffix = KNOWN if known else ""
    names = [name[:len(name) - len(suffix)] for name in t.order() if name.endswith(KNOWN) == known]
    head = ["", "target_time"] + [part for metric in metrics for part in
                                  ((f"paper: {NAMES[metric]}",) if metric in PAPER[t.name] else ()) + (f"ours: {NAMES[metric]}",)]
    rows = []
    for name in names:
        row = next(row for row in t.plan["rows"] if row["name"] == name + suffix)
        cells = [name, target_time(row, known)]
        for metric in metrics:
            if metric in PAPER[t.name]:
                cells.append(PAPER[t.name][metric].get(name, ""))
            scale, digits = (1, 3) if metric == "log-loss" else (100, 2)
            cells.append(t.value(name + suffix, metric, scale, digits))
        rows.append(cells + [t.config(name + suffix), t.seeds(name + suffix)])
    return table(head + ["config", "seeds"], rows)


def target_time(row, known):
    options = row["options"]
    reads = options.get("encoding", "mercer" if "model" not in options else "none") not in ("none", "position", "sinusoid")
    return ("known" if known else "unknown") if reads else "not used"


def best_known(t, names, metric):
    found = [name for name in names if name + KNOWN in t.rows]
    return max(found, key=lambda name: t.rows[name + KNOWN][metric]["mean"], default=None)


def conclusions(t, metric):
    """Sentences, what did not reproduce first."""
    label, reference = NAMES[metric], REFERENCE[t.name]
    encodings = ["Bochner Normal", "Bochner Inv CDF", "Bochner Non-para", "Mercer"]
    lines = []
    if not t.result:
        return [f"- The table was {NOT_RUN}."]
    first = best_known(t, encodings, metric)
    if first and first != "Mercer":
        lines.append(f"- **Not reproduced:** Mercer is first in the paper. Here {first} is, of the four encodings with the time known. "
                     + verdict(t, first + KNOWN, "Mercer" + KNOWN, label))
    elif first:
        other = best_known(t, [name for name in encodings if name != "Mercer"], metric)
        lines.append(f"- Mercer is first of the four encodings, as in the paper. {verdict(t, 'Mercer' + KNOWN, other + KNOWN, label)}")
    reverse = [(a, b) for a, b in same_order(t, metric)]
    for a, b in reverse:
        pair = t.pair(a, b)
        if pair and pair[3] is not None and pair[3] < LEVEL:
            lines.append(f"- **Not reproduced:** {a} is below {b} in the paper. Here, with the time unknown, "
                         f"{verdict(t, a, b, label)}")
    if t.pair("Mercer" + KNOWN, reference + KNOWN):
        time, rest, all_of_it = (t.pair(reference + KNOWN, reference), t.pair("Mercer" + KNOWN, reference + KNOWN),
                                 t.pair("Mercer" + KNOWN, reference))
        lines.append(f"- **Time and architecture.** Mercer with the time known minus {reference} without it: "
                     f"{shown_difference(all_of_it)}. Of that, {reference} gains {shown_difference(time)} from the time alone, and "
                     f"the architecture adds {shown_difference(rest)}.")
    for a, b in (("Mercer" + KNOWN, "Mercer"), ("Mercer", reference), ("Mercer" + KNOWN, "Bochner Non-para" + KNOWN),
                 ("Bochner Normal" + KNOWN, "Bochner Non-para" + KNOWN)):
        if t.pair(a, b):
            lines.append("- " + verdict(t, a, b, label))
    return sorted(lines, key=lambda line: "Not reproduced" not in line)


def same_order(t, metric):
    """Pairs of published rows whose order is that of the paper the other way round: (above here, above in the paper)."""
    published = PAPER[t.name][metric]
    names = [name for name in published if name in t.rows]
    number = {name: float(published[name].split()[0].rstrip(",")) for name in names}
    return [(a, b) for a in names for b in names
            if number[a] < number[b] and t.rows[a][metric]["mean"] > t.rows[b][metric]["mean"]]


def simple(t, metrics, first="row"):
    rows = [[name] + [t.value(name, metric) for metric in metrics] + [t.seeds(name)] for name in t.order()]
    return table([first] + [NAMES[metric] for metric in metrics] + ["seeds"], rows)


def valid_table(t, metrics, first):
    """With the validation score, of which the best is marked."""
    best = max((row["valid"] for row in t.rows.values()), default=None)
    rows = [[name, "not run" if name not in t.rows else f"{100 * t.rows[name]['valid']:.2f}" +
             (", chosen" if t.rows[name]["valid"] == best else "")] + [t.value(name, metric) for metric in metrics] + [t.seeds(name)]
            for name in t.order()]
    return table([first, "validation"] + [NAMES[metric] for metric in metrics] + ["seeds"], rows)


def speed(t):
    rows = []
    for name in t.order():
        row = t.rows.get(name)
        rows.append([name] + ([f"{1000 * row['epoch_seconds']:.0f}", f"{row['seconds']:.1f}", t.value(name, "ndcg@10")] if row else
                              [NOT_RUN] * 3))
    return table(["", "an epoch, ms", "training, s", "test NDCG@10"], rows)


def page(folder):
    t = {name: Table(name, folder) for name in (
        "stackoverflow", "movielens", "sessions", "stackoverflow-k", "movielens-k", "stackoverflow-blocks", "movielens-blocks",
        "movielens-invcdf", "sessions-invcdf", "movielens-harmonics", "movielens-time-dims", "sessions-time-dims", "movielens-dims",
        "movielens-time")}
    text = read_text("bench/paper/page.md")
    parts = {}
    for name, metrics, metric in (("stackoverflow", ("accuracy", "log-loss"), "accuracy"),
                                  ("movielens", ("hit@10", "ndcg@10"), "ndcg@10"),
                                  ("sessions", ("hit@5", "ndcg@5", "hit@10", "ndcg@10"), "ndcg@10")):
        parts[name + " unknown"] = panel(t[name], metrics, False)
        parts[name + " known"] = panel(t[name], metrics, True)
        parts[name + " conclusions"] = conclusions(t[name], metric)
    for name, result in t.items():
        parts[name + " source"] = [result.source()]
    for name in ("stackoverflow-k", "stackoverflow-blocks"):
        parts[name] = valid_table(t[name], ("accuracy",), "")
    for name in ("movielens-k", "movielens-blocks"):
        parts[name] = valid_table(t[name], ("hit@10", "ndcg@10"), "")
    for name in ("movielens-invcdf", "sessions-invcdf", "movielens-harmonics", "movielens-time-dims", "sessions-time-dims",
                 "movielens-dims"):
        parts[name] = simple(t[name], ("ndcg@10", "hit@10"), "")
    parts["movielens-time"] = speed(t["movielens-time"])
    for key, lines in parts.items():
        assert "{{" + key + "}}" in text, key
        text = text.replace("{{" + key + "}}", "\n".join(lines))
    assert "{{" not in text, text[text.index("{{"):][:60]
    return text


def read_text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def main(path="docs/paper.md", folder=os.path.join(ROOT, "bench/results/paper")):
    text = page(folder)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
