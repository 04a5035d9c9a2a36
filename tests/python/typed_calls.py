"""Calls that a type checker accepts, and calls that it refuses: each line that ends with `# refused` is an error of mypy --strict and
of pyright, and no other line is (test_types in manners_tests.py). Never run."""

import datetime

import numpy as np

import lapse

data = lapse.read_csv("shop.csv", sequence="user", event=["action", "item"], min_events=2, session_gap="30m")
model = lapse.train(data, task="classify", epochs=3, learning_rate=0.01, when=True)
table = lapse.Table({"user": [1, 2], "time": [1.0, 2.0], "item": ["a", "b"]})
session = model.session()

# Accepted.
lapse.Dataset.from_arrow(table, sequence="user", time="time", event="item", deduplicate="exact")
lapse.read_csv("u.data", header=False, sequence=1, time=4, event=2, delimiter="\t")
lapse.train(table, encoding="mercer", dims=np.int64(8), dropout=np.float32(0.1), seed=7, threads=1)
lapse.train(data, on_epoch=lambda progress: progress["loss"] < 1, callbacks=[lapse.Callback()], patience=3)
model.predict(table, at=["+1h", datetime.timedelta(days=1), np.datetime64("2027-01-01"), 5.0], top=3, sequence="user")
model.predict("shop.csv", at=datetime.datetime.now(), unseen=True, skip_unknown=True)
model.evaluate(data, split="valid")["log_loss"]
model.when(data, within=["1d", datetime.timedelta(days=7)], now="now")
model.forecast(data, horizon=86400, samples=10)
session.append("2026-11-15T12:00:00Z", 5)
session.append(np.datetime64("2026-11-15"), "view", price=3.5, category=None)
session.predict("+1h", top=2)[0][1] + 1.0
lapse.tune(data, budget=datetime.timedelta(minutes=1), trials=2, model="markov")
lapse.compare(data, models=["lstm"], seeds=range(3), epochs=2, metric="log_loss", grid={"dims": [8, 16]})
lapse.pretrain(data, dims=8, epochs=1, session_gap="1d").save("v.safetensors")
lapse.simulate("shop.csv", preset="shop", sequences=60, seed=1)
lapse.bound(epsilon=0.1, span="30d", sigma=1e-5)
lapse.Classifier(sequence="user", time="time", event="item", epochs=1, random_state=3).fit(table).predict_proba(table)
model.inspect("report.html", data, cases=100, sequences=["u1"])
[row["event"] for row in model.predict(data)]

# Refused.
lapse.train(data, epoch=3)  # refused
lapse.train(data, epochs="three")  # refused
lapse.train(data, task="classification")  # refused
lapse.train(data, encoding="mercr")  # refused
lapse.train(data, lr=0.1)  # refused
lapse.train(data, when="yes")  # refused
lapse.train([1, 2, 3])  # refused
model.predict(table, att="+1h")  # refused
model.predict(table, at=None)  # refused
model.predict(table, top="ten")  # refused
model.predicts(table)  # refused
session.append(5)  # refused
session.append("now", ["view"])  # refused
session.predict("now", topk=3)  # refused
lapse.read_csv("shop.csv", min_event=2)  # refused
lapse.Dataset.from_arrow(table, deduplicate="all")  # refused
lapse.compare(data, model=3)  # refused
lapse.tune(data, budjet="10m")  # refused
lapse.simulate("shop.csv", colour="red")  # refused
lapse.Classifier(nonsense=3)  # refused
