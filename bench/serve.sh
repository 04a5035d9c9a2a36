#!/usr/bin/env bash
# serve.sh: rates and latencies of `lapse serve`, with client and server on the same machine.
#
#   bench/serve.sh build/lapse MODEL EVENTS.csv[.gz] [STORE]     columns user,time,item; needs cc and python3
#
# STORE: postgresql://..., or a file; a temporary file if it is missing. HISTORIES (20,000) histories of 100 events are imported, unless
# the file exists. SECONDS_EACH (4) and MEMORY (1.2e8: about 1,700 histories of 50 dims) may be set; PREPARE=1 imports and ends, so that
# the rest can run alone on the machine. PEER names a Python with PyTorch and FastAPI (bench/peers/fastapi_serve.py): two processes of it are
# measured in the same run.
set -eu
tool=$(realpath "$1") model=$(realpath "$2") events=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
store=${4:-$work/bench.db}
seconds=${SECONDS_EACH:-4}
server='' peers=()
cleanup()
{
    # shellcheck disable=SC2086 # no server: no word
    kill $server "${peers[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
cc -O2 -o "$work/load" "$here/serve_load.c" -lm

start()
{
    "$tool" serve "$model" --store "$store" --listen 127.0.0.1:0 "$@" >"$work/out" 2>"$work/err" &
    server=$!
    while ! grep -q ready "$work/out"; do
        kill -0 "$server" || { cat "$work/err"; exit 1; }
        sleep 0.05
    done
    port=$(sed 's/.*:\([0-9]*\)\/$/\1/' "$work/out")
}

stop()
{
    kill "$server"
    wait "$server" || true
}

ticks()
{
    awk '{ print $14 + $15 }' "/proc/$server/stat"
}

# measure NAME REQUESTS OPTION...: of the load; prints the time of the server's threads for each request, too.
measure()
{
    local name=$1 before after
    shift
    before=$(ticks)
    "$work/load" "$port" "$work/$1" --seconds "$seconds" --warm 0.5 "${@:2}" >"$work/result" || true
    after=$(ticks)
    sed "s|^all  *|$(printf '%-52s' "$name")|" "$work/result" | awk -v used=$(((after - before) * 1000000 / $(getconf CLK_TCK))) \
        -v all="$(awk -v s="$seconds" '/^all/ { print $2 * (s + 0.5) }' "$work/result")" '{ print }
        END { printf "%-52s %9.1f us of processor time each\n", "", used / all }'
}

python3 - "$events" "$work" "${HISTORIES:-20000}" "$([ -e "$store" ] || echo new)" <<'END'
import csv, gzip, json, random, sys
path, work, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
rows = [(row["time"], row["item"]) for row in csv.DictReader(gzip.open(path, "rt") if path.endswith("gz") else open(path))]
items, draw = sorted({item for _, item in rows}), random.Random(1)
names = [f"u{k:06}" for k in range(count)]
with open(work + "/events.csv", "w") as out:
    out.write("user,time,item\n")
    for k, name in enumerate(names if sys.argv[4] == "new" else []):
        at = k * 97 % (len(rows) - 100)
        out.write("".join(f"{name},{time},{item}\n" for time, item in rows[at:at + 100]))


def lines(name, number, line):
    with open(f"{work}/{name}", "w") as out:
        out.write("".join(line(i) + "\n" for i in range(number)))


def predict(name):
    return 'POST /v1/predict {"history":"%s","at":"+1h","top":10}' % name


def event(name):
    return '{"history":"%s","time":%d,"event":"%s","id":"##########"}' % (name, 1.7e9 + draw.randrange(10**7), draw.choice(items))


def mixed(_):
    kind = draw.random()
    if kind < 0.2:
        return "POST /v1/events " + event(names[draw.randrange(1000)])
    return predict(names[draw.randrange(1000) if kind < 0.92 else draw.randrange(count)])


shuffled = draw.sample(names, count)
lines("cached", 1000, lambda i: predict(names[i]))
lines("cold", count, lambda i: predict(shuffled[i]))
lines("one", 20000, lambda i: "POST /v1/events " + event(f"new{i}"))
lines("thousand", 100, lambda i: "POST /v1/events [" + ",".join(event(f"new{(1000 * i + k) % 20000}") for k in range(1000)) + "]")
lines("mixed", 50000, mixed)
open(work + "/names", "w").write("\n".join(names[:1000]))
END
if [ ! -e "$store" ]; then
    start --import "$work/events.csv"
    stop
fi
[ -z "${PREPARE:-}" ] || exit 0
start --memory "${MEMORY:-1.2e8}"
cat "$work/out"
cut -d' ' -f1-3 /proc/loadavg | sed 's/^/load of the machine: /'
"$work/load" "$port" "$work/cached" --connections 8 --seconds 0.5 >"$work/warm"
measure "predict, cached, 64 connections" cached
measure "predict, cached, 15,000 a second on 64 connections" cached --rate 15000
measure "predict, cached, 15,000 a second on 1,000 connections" cached --rate 15000 --connections 1000
for python in ${PEER:+1 2}; do
    "$PEER" "$here/peers/fastapi_serve.py" $((18760 + python)) "$work/names" >"$work/peer" 2>&1 &
    peers+=($!)
    until curl -sf -o "$work/first" http://127.0.0.1:$((18760 + python))/v1/predict -d '{"history": "u000000"}'; do sleep 0.2; done
done
if [ -n "${PEER:-}" ]; then
    "$work/load" 18761 "$work/cached" --connections 32 --seconds "$seconds" >"$work/peer1" &
    "$work/load" 18762 "$work/cached" --connections 32 --seconds "$seconds" | sed 's/^all /FastAPI and PyTorch, one of two processes/'
    wait $!
    sed 's/^all /FastAPI and PyTorch, the other process    /' "$work/peer1"
    kill "${peers[@]}"
    peers=()
fi
measure "predict, cold, 64 connections" cold
measure "events, one per request, 64 connections" one
measure "events, requests of 1,000, 8 connections" thousand --connections 8
measure "mixed, 64 connections" mixed
capacity=$(awk '/^all/ { print $2 }' "$work/result")
for percent in 50 80 95; do
    measure "mixed, Poisson arrivals at $percent % of that" mixed --rate $((capacity * percent / 100)) --connections 1000
done
curl -s "http://127.0.0.1:$port/metrics" | grep -E '^lapse_(resident|cache)_bytes|^lapse_cache_histories'
stop
server=
