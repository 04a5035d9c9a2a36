"""Tests of `lapse serve`."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from server_kit import Data, Failure, Server, check, equal, run_tests

TOOL = os.path.abspath(sys.argv[1])
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def same_as_tool(answers, model, events, *arguments):
    """Compares answers with `lapse predict`, which prints nine digits."""
    printed = data.predicted(model, events, *arguments)
    expected = {(s["sequence"], p["time"]): [(t.get("event", t.get("item")), t["probability"]) for t in p["top"]]
                for s in printed["sequences"] for p in s["predictions"]}
    for answer in answers:
        got = [(p["event"], float("%.9g" % p["probability"])) for p in answer["predictions"]]
        want = expected[(answer["history"], answer["at"])]
        equal([g[0] for g in got], [w[0] for w in want], answer["history"])
        for g, w in zip(got, want):
            check(abs(g[1] - w[1]) <= 1e-8 * abs(w[1]), f"{answer['history']}: {g} is not {w}")


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
            ({}, "events", "missing"),
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
        equal(server.get("/v1/predict")[0], 405)
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


with tempfile.TemporaryDirectory() as folder:
    data = Data(TOOL, folder)
    run_tests(TESTS, sys.argv[2:])
