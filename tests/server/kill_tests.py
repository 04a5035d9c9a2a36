"""Mixed requests while servers are killed and the database is restarted: nothing acknowledged is lost or doubled, and answers stay
exact. LAPSE_SERVER_REQUESTS is the number of requests of each test: 3,000 in the suite."""
import http.client
import json
import os
import random
import threading
import time

from server_kit import Database, Server, TOOL, check, data, equal, same_as_tool, test

REQUESTS = int(os.environ.get("LAPSE_SERVER_REQUESTS", "3000"))
CLIENTS = 6
START = 1767225600


class Client(threading.Thread):
    """Appends to histories of its own and asks about them. A request without a response is sent again: its events may be stored."""

    def __init__(self, number, servers, names, share):
        super().__init__()
        self.number, self.servers, self.names, self.share = number, servers, names, share
        self.draw = random.Random(number)
        self.histories, self.answers, self.problems = {}, [], []
        self.sent = self.done = self.refused = 0
        self.connection = self.used = None

    def send(self, method, path, body):
        while True:
            server = self.servers[self.draw.randrange(len(self.servers))]
            try:
                if self.used is not server:
                    self.connection, self.used = server.connect(), server
                self.connection.request(method, path, body if body is None else json.dumps(body))
                response = self.connection.getresponse()
                raw = response.read()
            except (OSError, http.client.HTTPException):
                self.used = None
                time.sleep(0.01)
                continue
            self.done += 1
            if response.status != 503:
                return response.status, raw
            self.refused += 1
            time.sleep(0.01)

    def good(self, method, path, body):
        status, raw = self.send(method, path, body)
        check(status == 200, f"{method} {path}: {status} {raw[:300]}")
        return raw

    def append(self):
        name, events = f"c{self.number}-{self.draw.randrange(20)}", []
        for _ in range(self.draw.choice((1, 1, 1, 7))):
            self.sent += 1
            events.append({"history": name, "time": START + self.draw.randrange(10**7), "event": self.draw.choice(self.names),
                           "id": f"{self.number}-{self.sent}"})
        value = json.loads(self.good("POST", "/v1/events", events))
        equal((value["stored"] + value["duplicates"], value["errors"]), (len(events), 0))
        self.histories.setdefault(name, []).extend(events)

    def predict(self):
        name = self.draw.choice(list(self.histories))
        body = {"history": name, "at": "+1h", "top": 3, "strict": True}
        raw = self.good("POST", "/v1/predict", body)
        answer = json.loads(raw)["answers"][0]
        equal(answer["events"], len(self.histories[name]), f"events of {name}")
        self.answers = self.answers[-50:] + [raw]
        if self.draw.random() < 0.2:
            events = [{k: e[k] for k in ("time", "event", "id")} for e in self.histories[name]]
            inline = json.loads(self.good("POST", "/v1/predict", {"events": events, "at": "+1h", "top": 3, "strict": True}))["answers"][0]
            equal(inline["predictions"], answer["predictions"], name)

    def replay(self):
        raw = self.draw.choice(self.answers)
        equal(self.good("POST", "/v1/replay", {"answer": json.loads(raw)["answer"]}), raw, "replay")

    def history(self):
        name = self.draw.choice(list(self.histories))
        stored = json.loads(self.good("GET", f"/v1/histories/{name}?limit=1000", None))
        equal(stored["count"], len(self.histories[name]), name)

    def run(self):
        try:
            self.append()
            self.predict()
            while self.done < self.share:
                self.draw.choice((self.append, self.append, self.append, self.predict, self.predict, self.predict, self.replay,
                                  self.history))()
        except Exception as error:  # the test fails with it
            self.problems.append(f"client {self.number}: {type(error).__name__}: {error}")


def endure(store, count, database=None):
    names = sorted({e["event"] for events in data.histories("items.csv").values() for e in events})

    def start():
        return Server(TOOL, data.path("items.safetensors"), "--store", store, "--memory", "3e6")

    servers = [start() for _ in range(count)]
    clients = [Client(i, servers, names, REQUESTS // CLIENTS) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        kill_until_done(servers, clients, start, database)
        compare(servers, clients)
    finally:
        for server in servers:
            server.process.kill()


def kill_until_done(servers, clients, start, database):
    draw, again = random.Random(1), time.time() + 4
    while any(client.is_alive() for client in clients):
        time.sleep(draw.uniform(0.5, 2))
        if database and time.time() > again:
            database.stop()
            database.start()
            again = time.time() + 8
        else:
            i = draw.randrange(len(servers))
            servers[i].process.kill()
            servers[i].process.communicate()
            servers[i] = start()
    equal([p for client in clients for p in client.problems][:1], [])


def compare(servers, clients):
    """The servers' answers, the tool's."""
    done, refused = sum(c.done for c in clients), sum(c.refused for c in clients)
    rows = [(name, e["time"], e["event"]) for c in clients for name, events in c.histories.items()
            for e in sorted(events, key=lambda e: (e["time"], e["id"].encode()))]
    with open(data.path("endured.csv"), "w") as file:
        file.write("user,time,item\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    for server in servers:
        answers = server.good("/v1/predict", {"history": sorted({r[0] for r in rows}), "at": "+1h", "top": 5})["answers"]
        same_as_tool(answers, "items.safetensors", "endured.csv", "--at", "+1h", "--top", "5")
        resident = int(next(l for l in server.get("/metrics")[1].splitlines() if l.startswith("lapse_resident_bytes ")).split()[1])
        check(resident < 400e6, f"{resident} bytes are resident")
        server.stop()
    print(f"   {done} responses, {refused} of them 503, {len(rows)} events")


@test
def test_kill_loses_nothing_acknowledged():
    endure(data.path("killed.db"), 1)


@test
def test_kill_of_two_servers_and_postgresql_loses_nothing():
    with Database() as database:
        endure(database.url, 2, database)
