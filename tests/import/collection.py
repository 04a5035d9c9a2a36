"""collection.py: writes a collection of small event files, shaped like public data sets and product exports, and what a person sees
in each of them.

    collection.py FOLDER            writes the files and FOLDER/expected.json

A case names the columns that a person would accept for each role, the first and last time, and the numbers of rows and users that an
import must find. Its kind is `clear` (a person sees the roles at a glance), `ambiguous` (two readings are equally good: a question is
right, a guess is not unless it is the expected one) or `hopeless` (not events: success is wrong). Half of each kind is `dev`, for
looking at; half is `held`, for the score alone. Everything follows from the seed of the case's name.
"""
import datetime
import gzip
import hashlib
import json
import os
import random
import sys

CASES = []
EPOCH = datetime.datetime(1970, 1, 1)


def case(name, columns, user, time, event, kind="clear", **shape):
    CASES.append(dict(name=name, columns=columns, user=user, time=time, event=event, kind=kind, **shape))


# ------------------------------------------------------------------------------------------------- rows ----

def stream(rng, users=24, types=12, rows=420, start="2024-01-03 08:15:00", mean=5400, tick=1, order="time", **_):
    """Rows with a user u, a type e, a time t (unix seconds), a visit s and a number i."""
    begin = (datetime.datetime.fromisoformat(start) - EPOCH).total_seconds()
    now, out, last, visit = begin, [], {}, {}
    for i in range(rows):
        now += -mean * 0.2 + mean * 2.4 * rng.random() ** 2 + mean * 0.3
        u = int(users * rng.random() ** 1.5)
        e = int(types * rng.random() ** 1.8)
        t = round(now / tick) * tick
        if u not in last or now - last[u] > 12 * mean:
            visit[u] = len(visit) * 1000 + i
        last[u] = now
        out.append(dict(u=u, e=e, t=t, s=visit[u], i=i))
    if order == "user":
        out.sort(key=lambda r: (r["u"], r["t"]))
    elif order == "latest":
        out.reverse()
    elif order == "none":
        rng.shuffle(out)
    return out


def day_of(r):
    return EPOCH + datetime.timedelta(seconds=r["t"])


def when(text, hours=0):
    """The time in a format of strftime, which also knows %-d style without padding as %{d}, and %{ms} for milliseconds."""
    def value(r, rng):
        d = day_of(r) + datetime.timedelta(hours=hours)
        out = text.replace("%{d}", str(d.day)).replace("%{m}", str(d.month)).replace("%{H}", str(d.hour))
        out = out.replace("%{I}", str((d.hour + 11) % 12 + 1)).replace("%{ms}", "%03d" % (d.microsecond // 1000))
        for token, names in MONTHS.items():
            out = out.replace(token, names[d.month - 1])
        return d.strftime(out)
    return value


MONTHS = {
    "%{de}": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
    "%{fr}": "janv. févr. mars avril mai juin juil. août sept. oct. nov. déc.".split(),
    "%{es}": "ene feb mar abr may jun jul ago sep oct nov dic".split(),
}


def unix(scale=1, decimals=0):
    return lambda r, rng: "%.*f" % (decimals, r["t"] * scale)


def integer(scale=1):
    return lambda r, rng: int(round(r["t"] * scale))


def serial(decimals=6):
    return lambda r, rng: "%.*f" % (decimals, r["t"] / 86400 + 25569)


def user(pattern, start=1000, step=37):
    return lambda r, rng: pattern % (start + r["u"] * step)


def user_code(size=12):
    return lambda r, rng: hashlib.md5(b"u%d" % r["u"]).hexdigest()[:size]


def pick(*names):
    return lambda r, rng: names[r["e"] % len(names)]


def per_user(*names):
    return lambda r, rng: names[r["u"] % len(names)]


def item(pattern, start=100, step=13):
    return lambda r, rng: pattern % (start + r["e"] * step)


def row_number(pattern="%d", start=1):
    return lambda r, rng: pattern % (start + r["i"])


def row_code(size=16):
    return lambda r, rng: hashlib.md5(b"r%d" % r["i"]).hexdigest()[:size]


def visit(pattern="%d"):
    return lambda r, rng: pattern % (r["s"] + 5000)


def money(low=1, high=200, comma=False):
    return lambda r, rng: ("%.2f" % (low + (high - low) * rng.random())).replace(".", "," if comma else ".")


def count(low=1, high=6):
    return lambda r, rng: "%d" % (low + int((high - low) * rng.random()))


def any_of(*names):
    return lambda r, rng: names[int(len(names) * rng.random())]


def constant(text):
    return lambda r, rng: text


def words(r, rng):
    pool = "please check this again today we could not find the invoice and the printer was offline".split()
    return " ".join(pool[int(len(pool) * rng.random())] for _ in range(4 + int(6 * rng.random())))


def nested(**parts):
    return lambda r, rng: {key: value(r, rng) for key, value in parts.items()}


def number_of(value):
    return lambda r, rng: float(value(r, rng)) if "." in str(value(r, rng)) else int(value(r, rng))


# ----------------------------------------------------------------------------------------------- writing ----

def cell(value, delimiter, quote):
    text = str(value)
    if quote or delimiter in text or '"' in text or "\n" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def write(folder, one):
    rng = random.Random(int(hashlib.md5(one["name"].encode()).hexdigest()[:12], 16))
    rows = stream(rng, **one)
    table = [[value(r, rng) for _, value in one["columns"]] for r in rows]
    names = [name for name, _ in one["columns"]]
    form, delimiter, end = one.get("form", "csv"), one.get("delimiter", ","), one.get("eol", "\n")
    if form in ("jsonl", "json", "pretty"):
        objects = [dict(zip(names, values)) for values in table]
        text = ("\n".join(json.dumps(o, ensure_ascii=False) for o in objects) + "\n" if form == "jsonl"
                else json.dumps(objects, ensure_ascii=False, indent=2 if form == "pretty" else None) + "\n")
        if one.get("wrap"):
            text = json.dumps({**one.get("around", {}), one["wrap"]: objects, "total": len(objects)}, ensure_ascii=False)
        suffix = "jsonl" if form == "jsonl" else "json"
    else:
        lines = list(one.get("before", []))
        if one.get("header", True):
            lines.append(delimiter.join(cell(n, delimiter, one.get("quote")) for n in names))
        lines += [values[0] if form == "lines" else delimiter.join(cell(v, delimiter, one.get("quote")) for v in values) for values in table]
        lines += one.get("after", [])
        text = end.join(lines) + end
        suffix = {"\t": "tsv"}.get(delimiter, one.get("suffix", "csv"))
    data = text.encode(one.get("encoding", "utf-8"))
    path = one["name"] + "." + suffix
    if one.get("zip"):
        data, path = gzip.compress(data, mtime=0), path + ".gz"
    with open(os.path.join(folder, path), "wb") as file:
        file.write(data)
    shift = one.get("shift", 0)
    kept = [r for r in rows if not one.get("drop") or not one["drop"](r)]
    return dict(name=one["name"], file=path, kind=one["kind"], user=one["user"], time=one["time"], event=one["event"],
                first=min(r["t"] for r in kept) - shift, last=max(r["t"] for r in kept) - shift, rows=len(kept),
                users=len({r["u"] for r in kept}), tick=one.get("tick", 1), any_times=one.get("any_times", False))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: collection.py FOLDER")
    import cases  # noqa: F401 - fills CASES
    import more_cases  # noqa: F401
    os.makedirs(sys.argv[1], exist_ok=True)
    expected = []
    for kind in ("clear", "ambiguous", "hopeless"):
        chosen = sorted((c for c in CASES if c["kind"] == kind and "half" not in c), key=lambda c: hashlib.md5(c["name"].encode()).hexdigest())
        for i, one in enumerate(chosen):
            expected.append(dict(write(sys.argv[1], one), half="held" if i % 2 else "dev"))
    expected += [dict(write(sys.argv[1], one), half=one["half"]) for one in CASES if "half" in one]
    with open(os.path.join(sys.argv[1], "expected.json"), "w") as file:
        json.dump(expected, file, indent=1)


if __name__ == "__main__":
    sys.modules["collection"] = sys.modules["__main__"]
    main()
