"""Tests of `lapse serve`: the interface, answers, models, the page. store_tests.py has those of histories and stores."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import kill_tests  # noqa: F401, registers its tests
import store_tests  # noqa: F401
from server_kit import (Failure, Server, Skipped, TESTS, TOOL, append, check, data, equal, events_of, run_tests, same_as_tool, test,
                        train_other)


@test
def test_ready_and_health():
    with Server(TOOL, data.path("shop.safetensors")) as server:
        milliseconds = float(re.search(r"ready in (\d+) ms", server.ready)[1])
        check(milliseconds < 1000, f"ready in {milliseconds} ms")
        equal(server.get("/healthz"), (200, {"status": "ok"}))
        equal(server.get("/readyz")[0], 200)
        equal(server.stop()[0], 0)


@test
def test_posted_histories_equal_predict():
    for model, events in (("shop.safetensors", "shop.csv"), ("items.safetensors", "items.csv")):
        with Server(TOOL, data.path(model)) as server:
            histories = data.histories(events)
            body = {"events": list(histories.values()), "at": ["+1h", "+7d"], "top": 5}
            answers = server.good("/v1/predict", body)["answers"]
            equal(len(answers), 2 * len(histories))
            for i, answer in enumerate(answers):
                answer["history"] = list(histories)[i // 2]
            arguments = ["--event", "action,item"] if events == "shop.csv" else []
            same_as_tool(answers, model, events, "--at", "+1h", "--at", "+7d", "--top", "5", *arguments)


@test
def test_bad_requests():
    with Server(TOOL, data.path("shop.safetensors")) as server:
        event = {"time": 1, "event": "view kibble"}
        cases = [
            ("{", None, "not JSON"),
            ("[]", None, "must be a JSON object"),
            ({}, "history", "missing"),
            ({"events": []}, "events", "empty"),
            ({"events": [{"time": "yesterday", "event": "a"}]}, "events[0].time", "not a time"),
            ({"events": [{"event": "a"}]}, "events[0].time", "missing"),
            ({"events": [event, 3]}, "events[1]", "object"),
            ({"events": [event], "top": -1}, "top", "from 0"),
            ({"events": [event], "top": 2.5}, "top", "whole number"),
            ({"events": [event], "at": "+1x"}, "at", "length of time"),
            ({"events": [event], "at": "1h..30d"}, "at", "sweep"),
            ({"events": [event], "at": [1] * 1001}, "at", "1001 elements"),
            ({"events": [event], "topp": 1}, "topp", "unknown member"),
            ({"events": [event], "target": "weather"}, "target", "weather"),
        ]
        for body, field, words in cases:
            status, problem = server.post("/v1/predict", body)
            equal((status, problem.get("field")), (400, field), str(body)[:100])
            check(words in problem["detail"], f"{body}: {problem}"[:300])
        equal(server.get("/nothing")[0], 404)
        status, headers, _ = server.raw("PUT", "/v1/histories/a")
        equal((status, headers["Allow"]), (405, "GET, DELETE"))
        equal(server.get("/v1/attribution?limit=1&limit=1")[0], 400)
        equal(server.post("/v1/predict", "x" * (2 << 20))[0], 413)
        answer = server.good("/v1/predict", {"events": [{"time": 1, "event": "unheard of"}]})["answers"][0]
        check("knows no event" in answer["problem"] and answer["predictions"] == [], str(answer))
        answer = server.good("/v1/predict", {"events": [event], "at": 0})["answers"][0]
        check("before the last" in answer["problem"], str(answer))


@test
def test_stop_answers_every_accepted_request():
    with Server(TOOL, data.path("shop.safetensors")) as server:
        events = list(data.histories("shop.csv").values())[:4]
        body = json.dumps({"events": events, "at": "1h..30d/100", "top": 3})
        done, stopping = [], threading.Event()

        def client():
            connection = server.connect()
            while not stopping.is_set():
                try:
                    connection.request("POST", "/v1/predict", body)
                except ConnectionError:
                    return  # closed before the request was accepted
                try:
                    response = connection.getresponse()
                    done.append((response.status, len(json.loads(response.read())["answers"])))
                except ConnectionResetError:
                    return
                if response.headers["Connection"] == "close":
                    return

        threads = [threading.Thread(target=client) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        equal(server.stop()[0], 0)
        stopping.set()
        for thread in threads:
            thread.join()
        check(len(done) > 8, f"{len(done)} answers")
        equal(set(done), {(200, 400)})


@test
def test_catalogue_filters_and_popular_events():
    histories = data.histories("items.csv")
    with Server(TOOL, data.path("items.safetensors")) as server:
        append(server, events_of(histories))
        name = next(iter(histories))
        everything = server.good("/v1/predict", {"history": name, "at": "+1h", "top": 0})["answers"][0]["predictions"]
        names = [p["event"] for p in everything]
        price = {n: i % 40 for i, n in enumerate(sorted(names))}
        items = [{"name": n, "fields": {"category": "toys" if i % 3 else "books", "price": price[n], "brand": f"b{i % 5}"}}
                 for i, n in enumerate(sorted(names))]
        server.good("/v1/items", {"items": items}, "PUT")
        fields = {i["name"]: i["fields"] for i in items}

        def predicted(**more):
            answer = server.good("/v1/predict", {"history": name, "at": "+1h", "strict": True, **more})["answers"][0]
            return [p["event"] for p in answer["predictions"]]

        toys = 'category == "toys" and price < 20 and not brand in ["b1", "b2"]'
        allowed = [n for n in names if fields[n]["category"] == "toys" and fields[n]["price"] < 20
                   and fields[n]["brand"] not in ("b1", "b2")]
        equal(predicted(filter=toys, top=0), allowed, "filter")
        equal(predicted(filter=toys), allowed[:10], "filter before the top-k")
        equal(predicted(filter="price * 2 - 1 >= 77 or item == '" + names[5] + "'", top=0),
              [n for n in names if price[n] >= 39 or n == names[5]])
        equal(predicted(filter="missing == null", top=3), names[:3])
        equal(predicted(filter="missing < 3 or missing > 3"), [])
        equal(predicted(only=names[7:12] + ["never seen"]), names[7:12])
        equal(predicted(exclude=names[:4], top=2), names[4:6])
        boosted = sorted(everything, key=lambda p: -(p["score"] + 100 * (fields[p["event"]]["category"] == "books")))
        equal(predicted(boost="100 * (category == 'books')", top=5), [p["event"] for p in boosted[:5]])
        ranked = server.good("/v1/rank", {"history": name, "at": "+1h", "candidates": [names[9], names[2], "new", names[4]]})
        equal([(p["event"], p["source"]) for p in ranked["answers"][0]["predictions"]],
              [(names[2], "model"), (names[4], "model"), (names[9], "model"), ("new", "unknown")])
        server.good("/v1/items", {"items": [{"name": names[0], "available": False}]}, "PATCH")
        equal(predicted(top=2), names[1:3], "unavailable")
        page = server.good("/v1/items?search=BOOKS&limit=3", None, "GET")
        equal([i["name"] for i in page["items"]], [i["name"] for i in items if i["fields"]["category"] == "books"][:3])
        kept = server.good("/v1/items?search=" + names[0], None, "GET")["items"]
        check({"name": names[0], "fields": fields[names[0]], "available": False} in kept, str(kept))
        answer = server.good("/v1/predict", {"history": "nobody", "top": 5, "exclude": names[:1]})["answers"][0]
        counts = {}
        for event in events_of(histories):
            counts[event["event"]] = counts.get(event["event"], 0) + 1
        popular = [n for n in sorted(counts, key=lambda n: (-counts[n], n)) if n != names[0]][:5]
        equal([(p["event"], p["source"]) for p in answer["predictions"]], [(n, "popular") for n in popular])
        equal(server.good("/v1/predict", {"history": "nobody", "strict": True})["answers"][0]["predictions"], [])
        for text, words in (("price <", "missing"), ("(price", ")"), ("price in 3", "list"), ("a b", "operator"),
                            ("'x", "end"), ("(" * 100, "deep"), ("not " * 100 + "a", "deep")):
            status, problem = server.post("/v1/predict", {"history": name, "filter": text})
            equal((status, problem["field"]), (400, "filter"), text)
            check(words in problem["detail"], problem["detail"])


@test
def test_answers_are_replayed_after_everything():
    import shutil
    store, folder = data.path("replay.db"), data.path("replay")
    os.mkdir(folder)
    shutil.copy(data.path("items.safetensors"), folder + "/first.safetensors")
    train_other(folder + "/second.safetensors", 7)
    histories = data.histories("items.csv")
    old = []

    def ask(server, path, body):
        status, _, raw = server.raw("POST", path, json.dumps(body))
        equal(status, 200, raw)
        old.append((json.loads(raw)["answer"], raw))

    def replay_all(server, what):
        for token, raw in old:
            status, _, again = server.raw("POST", "/v1/replay", json.dumps({"answer": token}))
            equal((status, again), (200, raw), what)

    with Server(TOOL, folder + "/first.safetensors", "--store", store) as server:
        names = list(histories)
        for i, event in enumerate(events_of(histories)):
            append(server, event)
            if i % 7 == 0:
                ask(server, "/v1/predict", {"history": [event["history"], names[3]], "at": ["+2h", "now"], "top": 4})
            if i % 31 == 0:
                ask(server, "/v1/predict", {"history": event["history"], "at": "+1h", "filter": "price > 3", "unseen": True})
                ask(server, "/v1/rank", {"history": names[1], "at": "+1h", "candidates": [event["event"], "x"]})
                server.good("/v1/items", {"items": [{"name": event["event"], "fields": {"price": i % 9}}]}, "PATCH")
        ask(server, "/v1/predict", {"events": histories[names[0]], "at": "+1h", "explain": True})
        check(len(json.loads(old[-1][1])["answers"][0]["reasons"]) > 3, "reasons")
        replay_all(server, "at once")
        moment = time.time()
        before = server.good("/v1/predict", {"history": names[2], "at": "+1h"})["answers"]
        time.sleep(0.01)
        append(server, {"history": names[2], "time": 5, "event": histories[names[2]][0]["event"], "id": "late"})
        append(server, {"history": names[2], "time": 1999999999, "event": histories[names[2]][0]["event"], "id": "new"})
        server.good("/v1/models", {"name": "second"})
        server.good("/v1/aliases", {"aliases": {"live": "second"}}, "PUT")
        after = server.good("/v1/predict", {"history": names[2], "at": "+1h"})["answers"]
        check(after[0]["model"] != before[0]["model"] and after[0]["events"] == before[0]["events"] + 2, "the model changed")
        equal(server.good("/v1/predict", {"history": names[2], "at": "+1h", "as_of": moment})["answers"], before, "as_of")
        equal(server.post("/v1/predict", {"history": names[2], "as_of": moment + 1e6})[0], 400)
        replay_all(server, "after late events and a swap")
        server.stop(signal.SIGKILL)
    with Server(TOOL, folder + "/second.safetensors", "--store", store) as server:
        replay_all(server, "after a restart with another model")
        equal(server.post("/v1/replay", {"answer": old[0][0][:-3] + "AAA"})[0], 400, "a damaged token")
        server.call("DELETE", f"/v1/histories/{names[3]}")
        token = next(t for t, raw in old if names[3].encode() + b'"' in raw and json.loads(raw)["answers"][-1]["events"])
        status, problem = server.post("/v1/replay", {"answer": token})
        check(status == 410 and "erased" in problem["detail"], str(problem))
    os.remove(folder + "/first.safetensors")
    with Server(TOOL, folder + "/second.safetensors", "--store", store) as server:
        token = json.loads(old[-1][1])["answer"]
        status, problem = server.post("/v1/replay", {"answer": token})
        check(status == 410 and "model" in problem["detail"], str(problem))


@test
def test_models_are_swapped_under_load():
    import shutil
    folder = data.path("swap")
    os.mkdir(folder)
    shutil.copy(data.path("items.safetensors"), folder + "/a.safetensors")
    train_other(folder + "/b.safetensors", 5)
    histories = list(data.histories("items.csv").values())[:8]
    with Server(TOOL, folder + "/a.safetensors") as server:
        server.good("/v1/models", {"name": "b"})
        status, problem = server.post("/v1/models", {"name": "../a"})
        equal(status, 400)
        open(folder + "/broken.safetensors", "w").write("no model")
        status, problem = server.post("/v1/models", {"name": "broken"})
        check(status == 400 and "broken.safetensors" in problem["detail"], str(problem))
        expected, answers, failures, stopping = {}, [], [], threading.Event()
        body = {"events": histories, "at": "+1h", "top": 3}
        for name in "ab":
            server.good("/v1/aliases", {"aliases": {"live": name}}, "PUT")
            value = server.good("/v1/predict", body)["answers"]
            expected[value[0]["model"]] = value
        equal(len(expected), 2)

        def client():
            connection = server.connect()
            while not stopping.is_set():
                connection.request("POST", "/v1/predict", json.dumps(body))
                response = connection.getresponse()
                value = json.loads(response.read())
                if response.status != 200 or expected[value["answers"][0]["model"]] != value["answers"]:
                    failures.append(value)
                answers.append(value["answers"][0]["model"])

        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(100):
            if i % 2:
                server.good("/v1/models", {"name": "a"})
            server.good("/v1/aliases", {"aliases": {"live": "ab"[i % 2]}}, "PUT")
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        stopping.set()
        for thread in threads:
            thread.join()
        equal(failures[:1], [])
        equal(set(answers), set(expected))
        value = server.good("/v1/aliases", {"aliases": {"live": "a", "canary": "b"}, "split": {"live": 70, "canary": 30}}, "PUT")
        equal(value["split"], {"live": 70, "canary": 30})
        names = [f"h{i}" for i in range(200)]
        append(server, [dict(histories[0][0], history=name) for name in names])
        models = [a["model"] for a in server.good("/v1/predict", {"history": names, "at": "+1h", "top": 1})["answers"]]
        check(30 < sum(m == models[0] for m in models) < 170, "the split")
        equal(server.call("DELETE", "/v1/models/b")[0], 409)
        equal(server.call("PUT", "/v1/aliases", {"aliases": {"canary": "b"}})[0], 400)


@test
def test_tokens_and_exposure():
    tokens = data.path("tokens")
    open(tokens, "w").write("# tokens\nread read-read-read-read\nwrite write-write-write\nadmin admin-admin-admin\n")
    event = {"history": "a", "time": 1, "event": "view tent"}
    with Server(TOOL, data.path("shop.safetensors"), "--token-file", tokens) as server:
        for token, statuses in (("", (401, 401, 401)), ("read-read-read-rea", (401, 401, 401)),
                                ("read-read-read-read", (200, 403, 403)), ("write-write-write", (200, 200, 403)),
                                ("admin-admin-admin", (200, 200, 200))):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            got = (server.post("/v1/predict", {"history": "a"}, headers=headers)[0],
                   server.post("/v1/events", event, headers=headers)[0],
                   server.call("PUT", "/v1/aliases", {"aliases": {"live": "shop"}}, headers=headers)[0])
            equal(got, statuses, token)
        equal(server.get("/healthz")[0], 200)
    for arguments in ((), ("--token-file", tokens), ("--insecure",)):
        done = subprocess.run([TOOL, "serve", data.path("shop.safetensors"), "--listen", "0.0.0.0:0", *arguments],
                              capture_output=True, text=True, timeout=20)
        check(done.returncode == 1 and "needs --token-file" in done.stderr, done.stderr)


@test
def test_certificates_are_read_again():
    import shutil
    import ssl
    if not shutil.which("openssl"):
        raise Skipped("openssl is not installed")
    files = [data.path(name) for name in ("cert.pem", "key.pem")]

    def make(common):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={common}", "-out", files[0],
                        "-keyout", files[1]], check=True, capture_output=True)

    def shown():
        return ssl.get_server_certificate((server.host, server.port))

    def reload(until):
        server.process.send_signal(signal.SIGHUP)
        for _ in range(100):
            if until():
                return
            time.sleep(0.05)
        raise Failure("SIGHUP had no effect")

    make("first")
    with Server(TOOL, data.path("shop.safetensors"), "--tls-cert", files[0], "--tls-key", files[1]) as server:
        equal(shown(), open(files[0]).read(), "the first certificate")
        equal(append(server, {"history": "a", "time": 1, "event": "view tent"})[0], 200)
        old = server.connection
        make("second")
        reload(lambda: shown() == open(files[0]).read())
        equal(server.get("/healthz", connection=old)[0], 200, "an open connection goes on")
        kept = shown()
        open(files[1], "w").write("no key")
        server.process.send_signal(signal.SIGHUP)
        problem = "reloaded"
        while "reloaded" in problem:
            problem = server.process.stderr.readline()
        check("--tls-key" in problem, problem)
        equal((shown(), server.get("/healthz")[0]), (kept, 200), "a broken file changes nothing")


@test
def test_when_equals_predict():
    data.run("train", "shop.lapse", "-o", "when.safetensors", "--task", "classify", "--when", "--epochs", "1", "--dims", "16",
             "--heads", "1")
    histories = data.histories("shop.csv", 5)
    printed = json.loads(data.run("predict", "when.safetensors", "shop.csv", "--event", "action,item", "--when", "--within", "1d,7d", "--json",
                                  "--now", "2026-01-01"))
    with Server(TOOL, data.path("when.safetensors")) as server:
        append(server, events_of(histories))
        body = {"history": list(histories), "at": "+0s", "within": ["1d", "7d"], "top": 100}
        status, _, raw = server.raw("POST", "/v1/when", json.dumps(body))
        value = server.good("/v1/when", body)
        for answer in value["answers"]:
            want = next(s for s in printed["sequences"] if s["sequence"] == answer["history"])
            got = [w["probability"] for w in answer["within"]]
            check(0 < got[0] < got[1] < 1 and answer["low"] < answer["median"] < answer["high"], str(answer))
            numbers = []

            def collect(part):
                for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
                    collect(inner)
                if isinstance(part, float):
                    numbers.append(part)

            collect(want)
            for within in answer["within"]:
                types = [t["probability"] for t in within["types"]]
                check(types == sorted(types, reverse=True) and abs(sum(types) - within["probability"]) < 1e-9, str(within))
                got += types[:2]
            for probability in got:
                check(any(abs(n - probability) < 1e-8 for n in numbers), f"{probability} is not in {numbers}")
        again = server.raw("POST", "/v1/replay", json.dumps({"answer": json.loads(raw)["answer"]}))[2]
        equal(again, raw, "replay")
        name = next(iter(histories))
        rows = "".join(f"{name},{e['time']!r},{e['event']}\n" for e in histories[name])
        open(data.path("one.csv"), "w").write("user,time,event\n" + rows)
        printed = json.loads(data.run("forecast", "when.safetensors", "one.csv", "--event", "event", "--horizon", "7d", "--samples",
                                      "20", "--top", "10", "--json"))["sequences"][0]
        drawn = server.good("/v1/forecast", {"history": [name, "nobody"], "horizon": "7d", "samples": 20})["answers"]
        equal((float("%.9g" % drawn[0]["events"]), float("%.9g" % drawn[0]["any"]), [t["event"] for t in drawn[0]["types"][:3]]),
              (printed["events"], printed["any"], [t["event"] for t in printed["types"][:3]]))
        equal((drawn[1]["samples"], drawn[1]["events"]), (0, None))
    with Server(TOOL, data.path("shop.safetensors")) as server:
        status, problem = server.post("/v1/when", {"events": list(histories.values())[0]})
        check(status == 400 and "--when" in problem["detail"], str(problem))


@test
def test_page():
    with Server(TOOL, data.path("shop.safetensors")) as server:
        status, headers, page = server.raw("GET", "/")
        nonce = re.search(r"script-src 'nonce-(\w+)'", headers["Content-Security-Policy"])[1]
        text = page.decode()
        equal((status, text.count(f'nonce="{nonce}"'), "NONCE" in text), (200, 2, False))
        check("unsafe" not in headers["Content-Security-Policy"] and "http://" not in text.replace("http://www.w3.org", ""), "policy")
        check(nonce not in server.raw("GET", "/")[2].decode(), "the nonce is new every time")


@test
def test_page_shows_what_the_api_returns():
    import html
    import shutil
    browser = next((b for b in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome") if b and shutil.which(b)), None)
    if not browser:
        raise Skipped("Chromium is not installed")
    with Server(TOOL, data.path("shop.safetensors")) as server:
        histories = data.histories("shop.csv", 3)
        events = events_of(histories)
        events[0]["history"] = events[1]["history"] = name = "<b>'\"&u"
        append(server, events)
        at = "+" + "%.3f" % (60 * (365 * 86400 / 60) ** (40 / 119)) + "s"
        answer = server.good("/v1/predict", {"history": name, "at": at, "explain": True})["answers"][0]
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=15000", "--dump-dom",
                               f"http://{server.host}:{server.port}/#" + urllib.parse.quote(name)],
                              capture_output=True, text=True, timeout=100)
        page = done.stdout
        ranking = re.search(r'<ol id="ranking".*?</ol>', page, re.S)[0]
        shown = re.findall(r'<span title="([^"]*)">([^<]*)</span>.*?<b>([^<]*)</b>', ranking, re.S)
        equal([html.unescape(s[1]) for s in shown], [p["event"] for p in answer["predictions"]], page[-3000:])
        for (_, _, percent), prediction in zip(shown, answer["predictions"]):
            check(abs(float(percent.split()[0]) / 100 - prediction["probability"]) < 0.0006, f"{percent} {prediction}")
        weights = re.search(r'<ol id="weights">.*?</ol>', page, re.S)[0]
        equal(len(re.findall("<li>", weights)), len(answer["reasons"]))
        check("Content Security Policy" not in done.stderr, done.stderr[-500:])


@test
def test_attribution():
    histories = data.histories("items.csv", 5)
    with Server(TOOL, data.path("items.safetensors")) as server:
        append(server, events_of(histories))
        ranks = [0] * 10
        for i, name in enumerate(histories):
            value = server.good("/v1/predict", {"history": name, "at": "+1h", "top": 5})
            event = value["answers"][0]["predictions"][i % 3]["event"]
            ranks[i % 3] += 1
            append(server, {"history": name, "time": 1999999999, "event": event, "id": "hit", "answer": value["answer"]})
        append(server, {"history": name, "time": 1999999999, "event": "i1", "id": "no", "answer": "damaged"})
        found = server.good("/v1/attribution", None, "GET")
        equal((found["models"][0]["ranks"], found["models"][0]["events"], found["refused"]), (ranks, 5, 1))


@test
def test_python_client():
    import importlib.util
    spec = importlib.util.spec_from_file_location("lapse_client", os.path.join(os.path.dirname(__file__), "../../python/lapse/client.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with Server(TOOL, data.path("shop.safetensors")) as server:
        client = module.Client(f"http://{server.host}:{server.port}", retries=1)
        events = events_of(data.histories("shop.csv"))
        equal(client.append(events + events[:3]), {"stored": len(events), "duplicates": 3, "errors": 0})
        name = events[0]["history"]
        answers = client.call("POST", "/v1/predict", {"history": name, "at": "+1h"})["answers"]
        equal(answers, server.good("/v1/predict", {"history": name, "at": "+1h"})["answers"])
        client.erase(name)
        try:
            client.call("GET", "/v1/histories/" + name)
            raise Failure("the history was erased")
        except module.ServerError as error:
            equal((error.status, str(error)), (404, "there is no history of this name"))


@test
def test_metrics():
    with Server(TOOL, data.path("shop.safetensors"), environment={"LAPSE_MEMORY": "20000"}) as server:
        for i in range(50):
            append(server, {"history": f"h{i}", "time": 1, "event": "view tent"})
            server.good("/v1/predict", {"history": f"h{i}"})
        server.get("/nothing")
        values = dict(re.findall(r"^(\S+) (\S+)$", server.get("/metrics")[1], re.M))
        equal(values['lapse_requests_total{method="POST",path="/v1/predict",status="2xx"}'], "50")
        equal(values['lapse_requests_total{method="",path="",status="4xx"}'], "1")
        equal(values['lapse_request_seconds_count{method="POST",path="/v1/events"}'], "50")
        check(int(values["lapse_cache_bytes"]) <= 20000, values["lapse_cache_bytes"])
        check(int(values["lapse_cache_evictions_total"]) > 30, values["lapse_cache_evictions_total"])


@test
def test_hostile_requests():
    import random
    import socket
    draw = random.Random(3)
    seeds = [b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\r\n"
             b'{"history": "u1", "at": ["+1h", "1h..3d/5"], "filter": "a<3"}',
             b"GET /v1/histories/%2e%2e%2f?limit=3&offset=%00 HTTP/1.1\r\nHost: a\r\n\r\n",
             b'POST /v1/events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n30\r\n{"history":"u","time":1,"event":"x"}\r\n0\r\n\r\n']
    with Server(TOOL, data.path("shop.safetensors")) as server:
        idle = [socket.create_connection((server.host, server.port)) for _ in range(200)]
        for connection in idle[:100]:
            connection.sendall(b"POST /v1/predict HTTP/1.1\r\nHost:")  # slow clients
        for i in range(600):
            data_sent = bytearray(draw.choice(seeds))
            for _ in range(draw.randrange(6)):
                data_sent[draw.randrange(len(data_sent))] = draw.randrange(256)
            connection = socket.create_connection((server.host, server.port))
            connection.settimeout(0.02)
            try:
                connection.sendall(bytes(data_sent))
                connection.recv(100)
            except OSError:
                pass
            connection.close()
        equal(server.get("/healthz")[0], 200)
        equal(server.good("/v1/predict", {"history": "a"})["answers"][0]["events"], 0)
        for connection in idle:
            connection.close()
        status, text = server.stop()[::2]
        equal((status, text), (0, ""))


@test
def test_wrong_usage():
    def fails(*arguments):
        done = subprocess.run([TOOL, "serve", *arguments], capture_output=True, text=True, timeout=20)
        return done.returncode, done.stderr

    status, text = fails(data.path("nothing.safetensors"))
    check(status == 1 and "nothing.safetensors" in text, text)
    status, text = fails(data.path("shop.safetensors"), "--listen", "nowhere")
    check(status != 0 and "HOST:PORT" in text, text)
    with Server(TOOL, data.path("shop.safetensors")) as server:
        status, text = fails(data.path("shop.safetensors"), "--listen", f"127.0.0.1:{server.port}")
        check(status == 1 and "in use" in text, text)


run_tests(TESTS, sys.argv[2:])
