"""evaluation.py: the statements of docs/evaluation.md that another program needs to repeat a score to the digit: the fixed negatives of
the sampled protocols, the windows of sasrec, the quadrature of the CRPS and the floor of rmtpp. agree.py calls check_evaluation."""
import csv
import itertools
import json
import math
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs"))
import forward_pass as page  # noqa: E402
from rules import require  # noqa: E402

WORD = 2 ** 32


def philox(seed, counter):
    c = list(counter)
    for r in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        k0, k1 = (seed + r * 0x9E3779B9) % WORD, (seed // WORD + r * 0xBB67AE85) % WORD
        c = [b // WORD ^ c[1] ^ k0, b % WORD, a // WORD ^ c[3] ^ k1, a % WORD]
    return c


def negatives(seed, event, wanted, counts, popularity, excluded):
    """In the order in which they are drawn. counts: training events of each item."""
    weight = np.array(counts if popularity else [1] * len(counts))
    ends, purpose, found = np.cumsum(weight), 26 if popularity else 25, []
    allowed = [i for i in range(len(counts)) if i not in excluded and weight[i] > 0]
    if len(allowed) <= wanted:
        return allowed
    for block in range(16 * wanted):
        w = philox(seed, (event % WORD, event // WORD, block, purpose))
        for x in (WORD * w[0] + w[1], WORD * w[2] + w[3]):
            item = int(np.searchsorted(ends, x * int(ends[-1]) >> 64, side="right"))
            if len(found) < wanted and item not in excluded and item not in found:
                found.append(item)
    if len(found) == wanted:
        return found
    keys = []
    for i in allowed:
        w = philox(seed, (event % WORD, event // WORD, i, purpose + 2))
        keys.append((-np.log(((WORD * w[0] + w[1] >> 11) + 0.5) / 2 ** 53) / weight[i], i))
    return [i for _, i in sorted(keys)[:wanted]]


def shown(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def vectors_are_true(suite):
    with open(os.path.join(os.path.dirname(page.__file__), "evaluation.md"), encoding="utf-8") as file:
        text = " ".join(file.read().split())
    given = re.search(r"event 0 has ([\d, ]+) \(uniform\) and ([\d, ]+) \(popularity\)", text)
    for listed, popularity in zip(given.groups(), (False, True)):
        require(shown(listed) == negatives(1, 0, 5, [1] * 1000, popularity, set()), f"other negatives than {listed}")


def ranked_data(suite):
    """Sequences of which some have most of the popular items, so that rejection gives up; rows in the order of the dataset."""
    random, rows = np.random.default_rng(3), []
    for user in range(40):
        events = random.integers(0, 60, random.integers(4, 12)) if user % 5 else np.r_[0:12, 0:12, random.integers(12, 60, 2)]
        rows += [(user, f"i{int(item) if user % 5 == 0 or i % 2 else int(item) % 12}") for i, item in enumerate(events)]
    with open(suite.path("ranked.csv"), "w") as file:
        file.write("user,time,item\n" + "".join(f"{user:03d},{86400 * 400 + 60 * i},{item}\n" for i, (user, item) in enumerate(rows)))
    suite.lapse("import", "ranked.csv", "-o", "ranked.lapse", "--sequence", "user", "--time", "time", "--event", "item")
    return rows


def sampled_protocols_agree(suite, small):
    rows = ranked_data(suite)
    model = suite.train("ranked.lapse", "ranked.safetensors", *small, "--model", "transrec")
    ids = [model.names.index(item) for _, item in rows]
    by_user = {user: [i for i, row in enumerate(rows) if row[0] == user] for user, _ in rows}
    counts = np.zeros(len(model.names), int)
    for events in by_user.values():
        for i in events[:-2]:
            counts[ids[i]] += 1
    scores = json.loads(suite.lapse("eval", "ranked.safetensors", "ranked.lapse", "--split", "test", "--bootstrap", "0",
                                    "--negatives", "10", "--negative-seed", "7", "--cutoffs", "1,5", "--json"))
    for name, popularity in (("uniform", False), ("popularity", True)):
        hits = {1: [], 5: []}
        for user, events in by_user.items():
            target, past = events[-1], events[:-1]
            p = page.predict(model, [rows[i][1] for i in past], [86400.0 * 400 + 60 * i for i in past], 86400.0 * 400 + 60 * target,
                             user=1 + sorted(by_user).index(user))
            other = negatives(7, target, 10, counts, popularity, {ids[i] for i in events})
            rank = 1 + sum(p[i] >= p[ids[target]] for i in other)
            for k in hits:
                hits[k].append(rank <= k)
        found = find(scores, name)
        for k in hits:
            require(abs(mean_of(found[f"hit@{k}"]) - np.mean(hits[k])) < 1e-9,
                    f"{name}: Hit@{k} is {mean_of(found[f'hit@{k}'])}, not {np.mean(hits[k])}")


def mean_of(value):
    return value["mean"] if isinstance(value, dict) else value


def find(value, key):
    """The first member of this name, at any depth."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        found = find(part, key)
        if found is not None:
            return found
    return None


def shop_sequences(suite):
    """The events of each user of the shop, with their times."""
    with open(suite.path("shop.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    users = {}
    for row in rows:
        users.setdefault(row[list(row)[0]], []).append((row["action"] + " " + row["item"], float(row["time"])))
    return users


def windows_of_sasrec_agree(suite, small):
    """The log-loss of the whole data: every case with the last events before it."""
    model = suite.train("shop.lapse", "windows.safetensors", *small, "--model", "sasrec", "--task", "classify")
    context, losses = model.number("context"), []
    for events in itertools.islice(shop_sequences(suite).values(), 150):
        for q in range(1, len(events)):
            past = events[max(0, q - context):q]
            p = page.predict(model, [e for e, _ in past], [t for _, t in past], events[q][1])
            losses.append(-np.log(p[model.names.index(events[q][0])]))
    scores = json.loads(suite.lapse("eval", "windows.safetensors", "shop.lapse", "--split", "all", "--bootstrap", "0", "--json"))
    found = mean_of(find(scores, "log_loss") or find(scores, "log-loss"))
    require(abs(found - np.mean(losses)) < 1e-6, f"the log-loss is {found}, not {np.mean(losses)}")


ERFC = np.vectorize(math.erfc)


def survival_of(model, events, times):
    """The survival of the next event's time, and its density, as functions of an array of seconds."""
    history = page.History(model, events, times, times[-1])
    if model.metadata["model"] == "rmtpp":
        score = float(page.layer(model, "time", page.rmtpp(model, history))[0])
        slope, unit = model.row("time.slope")[0], model.real("time_unit")
        integral = lambda t: np.exp(score) * np.expm1(slope * t / unit) / slope  # noqa: E731
        return (lambda t: np.exp(-integral(t))), (lambda t: score + slope * t / unit - integral(t) - np.log(unit))
    weight, mean, deviation, rate = page.mixture(model, history)

    def survival(t):
        seen = np.array([page.season_integral(model, times[-1], each) for each in t])
        z = (np.log(t)[:, None] - mean) / deviation
        return (weight * ERFC(z / 2 ** 0.5) / 2 * np.exp(-rate * seen[:, None])).sum(axis=1)

    return survival, None


def crps_of(survival, gap):
    """By the trapezoid rule, over all times at which the square is not below 1e-20 of its largest."""
    never = float(survival(np.array([1e15]))[0])
    x = np.linspace(np.log(1e-3), np.log(1e10), 12001)
    after = (survival(np.exp(x)) - never) / (1 - never)

    def integral(inside, values):
        part, at = (values ** 2 * np.exp(x))[inside], x[inside]
        return float(((part[1:] + part[:-1]) / 2 * np.diff(at)).sum())

    edge = np.searchsorted(x, np.log(gap))
    middle = np.exp(x[edge]) - gap, gap - np.exp(x[edge - 1])
    return (integral(slice(0, edge), 1 - after) + integral(slice(edge, None), after) + middle[1] * (1 - after[edge]) ** 2 +
            middle[0] * after[edge] ** 2)


def times_agree(suite, small, name, *options):
    model = suite.train("shop.lapse", name, *small, *options)
    sequences = list(itertools.islice(shop_sequences(suite).values(), 4))
    with open(suite.path("few.csv"), "w") as file:
        file.write("user,time,event\n" + "".join(f"u{u},{time},{event}\n" for u, events in enumerate(sequences)
                                                for event, time in events[:9]))
    suite.lapse("import", "few.csv", "-o", "few.lapse")
    floor, crps, nll = model.real("when_floor"), [], []
    for events in sequences:
        for q in range(1, len(events[:9])):
            past, gap = events[:q], max(events[q][1] - events[q - 1][1], floor)
            survival, log_density = survival_of(model, [e for e, _ in past], [t for _, t in past])
            crps.append(crps_of(survival, gap))
            if log_density:
                nll.append(-log_density(gap))
    scores = find(json.loads(suite.lapse("eval", name, "few.lapse", "--split", "all", "--bootstrap", "0", "--json")), "time")
    unit = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}[find(scores, "unit")]
    found = mean_of(find(scores, "crps")) * unit
    require(abs(found / np.mean(crps) - 1) < 3e-5, f"{name}: the CRPS is {found}, not {np.mean(crps)}")
    if nll:
        found = mean_of(find(scores, "nll")) + np.log(unit)
        require(abs(found - np.mean(nll)) < 1e-5, f"{name}: the NLL is {found}, not {np.mean(nll)}")


def check_evaluation(suite, small):
    suite.check("times of rmtpp", times_agree, suite, small, "times.safetensors", "--model", "rmtpp")
    suite.check("times with a weekly background", times_agree, suite, small, "times.safetensors", "--model", "lstm", "--when",
                "--when-components", "3", "--when-background", "week")
    suite.check("vectors of negatives", vectors_are_true, suite)
    suite.check("sampled protocols", sampled_protocols_agree, suite, small)
    suite.check("windows of sasrec", windows_of_sasrec_agree, suite, small)
