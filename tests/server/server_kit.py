"""What the tests of the server share: data and models, a server process, requests whose responses are checked against the
server's own description."""
import atexit
import glob
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Failure(what)


def equal(actual, expected, what=""):
    if actual != expected:
        raise Failure(f"{what}: {str(actual)[:600]} is not {str(expected)[:600]}")


# ---- JSON Schema: the keywords that /openapi.json has

TYPES = {"string": str, "object": dict, "array": list, "boolean": bool, "null": type(None)}


def has_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def validate(value, schema, where):
    known = {"type", "description", "properties", "required", "additionalProperties", "items", "enum", "minimum", "maximum",
             "maxLength", "maxItems"}
    check(set(schema) <= known, f"{where}: the schema has {set(schema) - known}")
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    check(not types or any(has_type(value, t) for t in types), f"{where} is not {types}: {value!r}"[:300])
    if "enum" in schema and isinstance(value, str):
        check(value in schema["enum"], f"{where}: {value!r}")
    if isinstance(value, dict):
        for name in schema.get("required", []):
            check(name in value, f"{where}.{name} is missing: {value!r}"[:300])
        properties = schema.get("properties", {})
        for name, member in value.items():
            if name in properties:
                validate(member, properties[name], f"{where}.{name}")
            else:
                check(not properties, f"{where}.{name} is not in the description")
    if isinstance(value, list):
        for i, element in enumerate(value):
            validate(element, schema.get("items", {}), f"{where}[{i}]")


# ---- the server

class Server:
    def __init__(self, tool, *arguments, environment=None, wait=True):
        self.process = subprocess.Popen([tool, "serve", *arguments, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        self.connection = None
        self.description = None
        self.headers = {}
        if wait:
            self.ready = self.process.stdout.readline()
            found = re.search(r"https?://([\d.]+):(\d+)/", self.ready)
            if not found:
                self.process.kill()
                raise Failure(f"the server did not start: {self.ready}{self.process.stderr.read()}")
            self.host, self.port = found[1], int(found[2])
            self.description = self.get("/openapi.json", described=False)[1]

    def connect(self):
        if "https" in self.ready:
            return http.client.HTTPSConnection(self.host, self.port, timeout=60, context=ssl._create_unverified_context())
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def raw(self, method, path, body=None, headers=None, connection=None):
        """Status, headers and bytes; connects again if the server has closed the connection."""
        for attempt in range(2):
            if connection is None:
                connection = self.connection = self.connection or self.connect()
            try:
                connection.request(method, path, body, {**self.headers, **(headers or {})})
                response = connection.getresponse()
                return response.status, response.headers, response.read()
            except (ConnectionError, http.client.BadStatusLine):
                connection.close()
                self.connection = connection = None
                if attempt:
                    raise

    def call(self, method, path, body=None, headers=None, described=True, connection=None):
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        status, answer_headers, raw = self.raw(method, path, data, headers, connection)
        kind = answer_headers["Content-Type"]
        value = json.loads(raw) if "json" in kind and "ndjson" not in kind else raw.decode()
        if described:
            self.validate(method, path.split("?")[0], status, kind, value)
        return status, value

    def validate(self, method, path, status, kind, value):
        for pattern, operations in self.description["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) and method.lower() in operations:
                responses = operations[method.lower()]["responses"]
                content = responses["200" if status == 200 else "default"]["content"]
                check(kind.split(";")[0] in content, f"{method} {path}: type {kind} is not in the description")
                validate(value, content[kind.split(";")[0]]["schema"], f"{method} {path}")
                return
        check(status in (404, 405), f"{method} {path} is not in the description")

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body, **options):
        return self.call("POST", path, body, **options)

    def good(self, path, body, method="POST"):
        status, value = self.call(method, path, body)
        check(status == 200, f"{method} {path}: {status} {value}"[:500])
        return value

    def stop(self, how=signal.SIGTERM):
        if self.connection:
            self.connection.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            out, err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("the server does not stop")
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


# ---- data

def tool_run(tool, folder, *arguments):
    done = subprocess.run([tool, *arguments], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, f"lapse {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class Data:
    """A shop (event types) and a catalogue (items), with a model of each."""

    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        small = ["--epochs", "2", "--dims", "16", "--heads", "1"]
        self.run("simulate", "--preset", "shop", "--sequences", "120", "-o", "shop.csv")
        self.run("import", "shop.csv", "-o", "shop.lapse", "--event", "action,item")
        self.run("train", "shop.lapse", "-o", "shop.safetensors", "--task", "classify", *small)
        self.run("simulate", "--preset", "catalogue", "--items", "300", "--sequences", "200", "-o", "items.csv")
        self.run("import", "items.csv", "-o", "items.lapse")
        self.run("train", "items.lapse", "-o", "items.safetensors", "--task", "recommend", *small)

    def run(self, *arguments):
        return tool_run(self.tool, self.folder, *arguments)

    def path(self, name):
        return os.path.join(self.folder, name)

    def histories(self, name, most=20):
        """History -> events, in the order of the file."""
        rows = open(self.path(name)).read().splitlines()
        header = rows[0].split(",")
        found = {}
        for row in rows[1:]:
            row = dict(zip(header, row.split(",")))
            event = row["item"] if name == "items.csv" else f"{row['action']} {row['item']}"
            found.setdefault(row["user"], []).append({"time": float(row["time"]), "event": event})
        return dict(list(found.items())[:most])

    def predicted(self, model, events, *arguments):
        """(history, at) -> [(event, probability)] of `lapse predict`."""
        answer = json.loads(self.run("predict", model, events, "--json", *arguments))
        return answer


class Database:
    """A PostgreSQL of its own, in a new folder; not root, because it refuses that."""

    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not found:
            raise Skipped("PostgreSQL is not installed")
        self.bin, self.folder = found[-1], tempfile.mkdtemp()
        self.user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            subprocess.run(["chown", "postgres", self.folder], check=True)
        self.run("initdb", "-D", self.folder + "/data", "-U", "lapse", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()
        self.url = f"postgresql://lapse@/postgres?host={self.folder}"

    def run(self, program, *arguments):
        done = subprocess.run([*self.user, f"{self.bin}/{program}", *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder)
        check(done.returncode == 0, f"{program}: {done.stderr}")

    def start(self):
        self.run("pg_ctl", "-D", self.folder + "/data", "-w", "-l", self.folder + "/log", "-o",
                 f"-c listen_addresses='' -c fsync=off -k {self.folder}", "start")  # killed, but the machine is not

    def stop(self):
        self.run("pg_ctl", "-D", self.folder + "/data", "-w", "-m", "immediate", "stop")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()
        shutil.rmtree(self.folder)


TOOL = os.path.abspath(sys.argv[1])
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
data = Data(TOOL, FOLDER)
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


def append(server, events, **options):
    return server.call("POST", "/v1/events", events, **options)


def events_of(histories):
    """The events of all histories, each with an id."""
    return [dict(event, history=name, id=f"{name}-{i}") for name, events in histories.items() for i, event in enumerate(events)]


def train_other(name, seed, events="items.lapse", task="recommend"):
    data.run("train", events, "-o", name, "--task", task, "--epochs", "1", "--dims", "16", "--heads", "1", "--seed", str(seed))


def run_tests(tests, words):
    passed = failed = skipped = 0
    for test in tests:
        if words and not any(word in test.__name__ for word in words):
            continue
        begun = time.time()
        try:
            test()
            passed += 1
        except Skipped as why:
            skipped += 1
            print(f"skipped {test.__name__}: {why}")
        except Exception as error:  # a test that breaks is a failure, whatever broke
            failed += 1
            print(f"FAILED {test.__name__}: {type(error).__name__}: {error}")
        if time.time() - begun > 10:
            print(f"   {test.__name__} took {time.time() - begun:.0f} s")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0)
