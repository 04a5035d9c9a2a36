"""Tests of histories and stores: durability, order, retries, erasure, several servers."""
import json
import os
import signal
import subprocess
import time

from server_kit import Database, Server, TOOL, append, check, data, equal, events_of, same_as_tool, test


@test
def test_stored_histories_equal_predict_and_survive():
    histories, store = data.histories("items.csv"), data.path("stored.db")
    ask = {"history": list(histories), "at": ["+1h", "+7d"], "top": 5}
    with Server(TOOL, data.path("items.safetensors"), "--store", store) as server:
        status, value = append(server, events_of(histories))
        total = sum(len(events) for events in histories.values())
        equal((status, value["stored"], value["duplicates"], value["errors"]), (200, total, 0, 0))
        answers = server.good("/v1/predict", ask)["answers"]
        same_as_tool(answers, "items.safetensors", "items.csv", "--at", "+1h", "--at", "+7d", "--top", "5")
        equal(server.good("/v1/predict", ask)["answers"], answers, "cached")
        server.stop(signal.SIGKILL)
    with Server(TOOL, data.path("items.safetensors"), "--store", store) as server:
        equal(server.good("/v1/predict", ask)["answers"], answers, "after kill -9")
        equal(append(server, events_of(histories))[1]["duplicates"], total, "sent again")
        equal(server.good("/v1/predict", ask)["answers"], answers, "after duplicates")
        status, text = subprocess.run([TOOL, "serve", data.path("items.safetensors"), "--store", store, "--listen", "127.0.0.1:0"],
                                      capture_output=True, text=True, timeout=20).returncode, ""
        equal(status, 1, "a second server on one file")


@test
def test_event_is_visible_to_the_next_query():
    history = next(iter(data.histories("shop.csv").values()))
    with Server(TOOL, data.path("shop.safetensors")) as server:
        for i, event in enumerate(history[:30]):
            append(server, dict(event, history="one", id=str(i)))
            body = {"at": "+1h", "top": 0}
            stored = server.good("/v1/predict", dict(body, history="one"))["answers"][0]
            posted = server.good("/v1/predict", dict(body, events=history[:i + 1]))["answers"][0]
            equal(stored["predictions"], posted["predictions"], f"after {i + 1} events")
            equal((stored["history"], stored["events"]), ("one", i + 1))


@test
def test_order_of_arrival_does_not_matter():
    import random
    histories = data.histories("shop.csv", 6)
    events = [dict(event, time=round(event["time"] / 86400) * 86400) for event in events_of(histories)]  # with ties
    ask = {"history": list(histories), "at": ["+1h", "+3d"], "top": 0}
    expected = None
    for seed in range(6):
        order = random.Random(seed)
        arrivals = events + order.sample(events, len(events) // 3)
        order.shuffle(arrivals)
        with Server(TOOL, data.path("shop.safetensors")) as server:
            for i in range(0, len(arrivals), 50):
                equal(append(server, arrivals[i:i + 50])[0], 200)
                server.good("/v1/predict", dict(ask, at="+30d"))  # histories are cached while late events arrive
            answers = server.raw("POST", "/v1/predict", json.dumps(ask))[2]
        answers = json.dumps(json.loads(answers)["answers"])
        expected = expected or answers
        equal(answers, expected, f"order {seed}")


@test
def test_forms_and_errors_of_events():
    with Server(TOOL, data.path("shop.safetensors")) as server:
        event = {"history": "a", "time": "2026-02-01T10:00:00Z", "event": "view tent"}
        equal(append(server, event)[1]["stored"], 1)
        lines = json.dumps(dict(event, id="1")) + "\n{broken\n\n" + json.dumps(dict(event, id="1")) + "\n"
        value = append(server, lines)[1]
        equal([e["status"] for e in value["events"]], ["stored", "error", "duplicate"])
        value = append(server, [dict(event, id="2"), dict(event, time="soon"), {"history": "a"}])[1]
        equal([e.get("field") for e in value["events"]], [None, "time", "time"])
        equal((value["stored"], value["errors"]), (1, 2))
        for body, field in ((dict(event, time="soon"), "time"), ({"time": 1, "event": "a"}, "history"),
                            (dict(event, history=""), "history"), (dict(event, history="a\tb"), "history"),
                            (dict(event, id="a\nb"), "id"), (dict(event, history="x" * 2000), "history"),
                            (dict(event, fields={"a": [1]}), "fields.a"), (dict(event, what=1), "what"), ([], None), (3, "")):
            status, problem = append(server, body)
            equal((status, problem.get("field", "")), (400, field or ""), str(body)[:80])
        equal(append(server, [dict(event, id=str(i)) for i in range(10001)])[0], 400)
        equal(server.good("/v1/predict", {"history": "a"})["answers"][0]["events"], 3)
        answer = server.good("/v1/predict", {"history": "nobody"})["answers"][0]
        check("no history" in answer["problem"], str(answer))


@test
def test_histories_are_read_merged_and_erased():
    store = data.path("erased.db")
    with Server(TOOL, data.path("shop.safetensors"), "--store", store) as server:
        for i in range(5):
            append(server, {"history": "visitor", "time": 100 + i, "event": "view tent", "id": str(i), "fields": {"n": i}})
            append(server, {"history": "customer", "time": 102.5 + i, "event": "view kibble", "id": f"c{i}"})
        page = server.good("/v1/histories/visitor?limit=2&offset=1", None, "GET")
        equal([e["id"] for e in page["events"]], ["1", "2"])
        equal((page["count"], page["next"], page["events"][0]["fields"]), (5, 3, {"n": 1}))
        equal(server.get("/v1/histories/visitor?limit=x")[0], 400)
        equal(server.good("/v1/histories?search=vis", None, "GET"), {"names": ["visitor"]})
        equal(server.good("/v1/histories?limit=1", None, "GET"), {"names": ["customer"]})
        equal(server.get("/v1/histories/visitor?what=1")[0], 400)
        server.good("/v1/histories/merge", {"from": "visitor", "into": "customer"})
        merged = server.good("/v1/histories/visitor", None, "GET")
        equal((merged["history"], [e["time"] for e in merged["events"]]),
              ("customer", [100, 101, 102, 102.5, 103, 103.5, 104, 104.5, 105.5, 106.5]))
        append(server, {"history": "visitor", "time": 200, "event": "view tent", "id": "new"})
        answers = server.good("/v1/predict", {"history": ["visitor", "customer"], "at": 300, "top": 0})["answers"]
        equal([a["events"] for a in answers], [11, 11])
        equal(answers[0]["predictions"], answers[1]["predictions"])
        append(server, {"history": "other", "time": 1, "event": "view tent", "id": "kept"})
        equal(server.call("DELETE", "/v1/histories/visitor")[0], 200)
        for name in ("visitor", "customer"):
            equal(server.get(f"/v1/histories/{name}")[0], 404)
        equal(server.call("DELETE", "/v1/histories/visitor")[0], 404)
        check("no history" in server.good("/v1/predict", {"history": "customer"})["answers"][0]["problem"], "erased")
        equal(server.good("/v1/histories/other", None, "GET")["count"], 1)
        server.stop()
    for suffix in ("", "-wal"):
        if os.path.exists(store + suffix):
            check(b"visitor" not in open(store + suffix, "rb").read(), f"the name is still in the store{suffix}")


@test
def test_import_and_backup():
    store, copy = data.path("imported.db"), data.path("copy.db")
    for again in range(2):
        with Server(TOOL, data.path("shop.safetensors"), "--store", store, "--import", data.path("shop.lapse")) as server:
            histories = data.histories("shop.csv")
            answers = server.good("/v1/predict", {"history": list(histories), "at": "+1h", "top": 5})["answers"]
            same_as_tool(answers, "shop.safetensors", "shop.csv", "--at", "+1h", "--top", "5", "--event", "action,item")
            data.run("import", "--store", store, "-o", "next.lapse")
            found = [{q["sequence"]: q["predictions"] for q in data.predicted("shop.safetensors", name, "--at", "+1h", "--top", "5")["sequences"]}
                     for name in ("next.lapse", "shop.lapse")]
            equal(found[0], found[1], "the histories as a dataset")
            if again:
                data.run("store", "backup", store, "-o", copy)
                first = next(iter(histories))
                server.call("DELETE", f"/v1/histories/{first}")
                equal(append(server, {"history": "later", "time": 1, "event": "x"})[0], 200)
            out = server.stop()[2]
        check(("imported 0 events" if again else "; 0 were there") in out, out)
    with Server(TOOL, data.path("shop.safetensors"), "--store", copy) as server:
        equal(server.get(f"/v1/histories/{first}")[0], 404, "erased in the backup")
        equal(server.get("/v1/histories/later")[0], 404)
        equal(server.good("/v1/predict", {"history": list(histories)[1], "at": "+1h", "top": 5})["answers"][0], answers[1])


@test
def test_retention():
    store, now = data.path("kept.db"), time.time()
    with Server(TOOL, data.path("shop.safetensors"), "--store", store) as server:
        for i in range(10):
            append(server, {"history": "a", "time": now - 86400 * i, "event": "view tent", "id": f"a{i}"})
            append(server, {"history": "b", "time": now - 10 - i, "event": "view tent"})
        old = server.good("/v1/predict", {"history": "a"})["answer"]
        server.stop()
    with Server(TOOL, data.path("shop.safetensors"), "--store", store, "--keep", "5d", "--keep-events", "4") as server:
        kept = server.good("/v1/histories/a", None, "GET")["events"]
        equal([e["id"] for e in kept], ["a3", "a2", "a1", "a0"])
        equal(server.good("/v1/histories/b", None, "GET")["count"], 4)
        equal(server.post("/v1/replay", {"answer": old})[0], 410)


@test
def test_two_servers_share_postgresql():
    import random
    histories = data.histories("items.csv", 6)
    events = events_of(histories)
    ask = {"history": list(histories), "at": ["+1h", "+3d"], "top": 0}
    model = data.path("items.safetensors")
    with Server(TOOL, model) as alone:
        append(alone, events)
        alone_answers = alone.good("/v1/predict", ask)["answers"]
    with Database() as database, Server(TOOL, model, "--store", database.url) as one, \
            Server(TOOL, model, "--store", database.url) as two:
        servers = [one, two]
        for order in range(20):
            draw = random.Random(order)
            arrivals = [dict(e, history=f"{order:02}{e['history']}") for e in events]
            arrivals += draw.sample(arrivals, len(arrivals) // 3)
            draw.shuffle(arrivals)
            for i in range(0, len(arrivals), 60):
                servers[i // 60 % 2].good("/v1/events", arrivals[i:i + 60])
            if order % 4 == 0:  # others are read from the store
                one.good("/v1/predict", dict(ask, history=[f"{order:02}{name}" for name in histories]))
        asked = json.dumps(alone_answers)
        for order in range(20):
            names = [f"{order:02}{name}" for name in histories]
            for i, server in enumerate(servers):
                answers = json.dumps(server.good("/v1/predict", dict(ask, history=names))["answers"])
                equal(answers.replace(f'"{order:02}', '"'), asked, f"order {order}, server {i}")
        arrivals = events + random.Random(1).sample(events, len(events) // 3)
        random.Random(2).shuffle(arrivals)
        for i in range(0, len(arrivals), 20):
            servers[i // 20 % 2].good("/v1/events", arrivals[i:i + 20])
            counts = [s.good("/v1/predict", dict(ask, at="+30d", top=1))["answers"] for s in servers]
            equal(counts[0], counts[1], "the other server sees the events")
        for server in servers:
            equal(server.good("/v1/predict", ask)["answers"], alone_answers)
        first = alone_answers[0]["predictions"][0]["event"]
        one.good("/v1/items", {"items": [{"name": first, "available": False}]}, "PATCH")
        check(first not in [p["event"] for p in two.good("/v1/predict", ask)["answers"][0]["predictions"]], "available")
        status, _, raw = two.raw("POST", "/v1/predict", json.dumps(ask))
        append(one, dict(events[0], id="late", time=1))
        equal(one.raw("POST", "/v1/replay", json.dumps({"answer": json.loads(raw)["answer"]}))[2], raw, "replay by the other")
        two.good("/v1/histories/merge", {"from": list(histories)[0], "into": list(histories)[1]})
        equal(one.good("/v1/histories/" + list(histories)[0], None, "GET")["history"], list(histories)[1])
        append(one, dict(events[0], id="after the merge"))
        total = one.good("/v1/histories/" + list(histories)[1], None, "GET")["count"]
        equal(total, len(histories[list(histories)[0]]) + len(histories[list(histories)[1]]) + 2)
        equal(two.good("/v1/predict", {"history": list(histories)[1], "at": "+30d"})["answers"][0]["events"], total)
        database.stop()
        equal(append(one, dict(events[0], id="down"))[0], 503)
        database.start()
        equal(append(one, dict(events[0], id="up"))[0], 200)
        equal(two.good("/v1/predict", {"history": list(histories)[1], "at": "+30d"})["answers"][0]["events"], total + 1)
