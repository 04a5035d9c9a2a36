#!/usr/bin/env bash
# serve.sh: requests a second of `lapse serve`, with wrk on the same machine, and the processor time of the server for each.
#
#   bench/serve.sh build/lapse MODEL EVENTS.csv[.gz] [STORE]     needs wrk and python3; columns user,time,item
#
# Processor time does not depend on what else the machine does; requests a second do.
set -eu
tool=$(realpath "$1") model=$(realpath "$2") events=$(realpath "$3")
work=$(mktemp -d)
store=${4:-$work/bench.db}
seconds=${SECONDS_EACH:-5}
server=
cleanup()
{
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

start()
{
    "$tool" serve "$model" --store "$store" --listen 127.0.0.1:0 "$@" >"$work/out" 2>"$work/err" &
    server=$!
    while ! grep -q ready "$work/out"; do
        kill -0 "$server" || { cat "$work/err"; exit 1; }
        sleep 0.05
    done
    url=$(sed 's/.*http/http/; s|/$||' "$work/out")
}

ticks()
{
    awk '{ print $14 + $15 }' "/proc/$server/stat"
}

# measure NAME CONNECTIONS SCRIPT EVENTS: EVENTS of a request.
measure()
{
    local before after
    before=$(ticks)
    wrk -t1 -c"$2" -d"${seconds}s" --latency -s "$3" "$url" >"$work/wrk"
    after=$(ticks)
    awk -v name="$1" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v each="$4" '
        /50%/ { p50 = $2 } /99%/ { p99 = $2 } /Requests\/sec/ { rate = $2 } /requests in/ { n = $1 }
        /Non-2xx/ { bad = " (" $0 ")" }
        END { printf "%-44s %9.0f /s  p50 %-9s p99 %-9s %7.1f us of processor time each%s\n", name, rate * each, p50, p99,
              n ? ticks / hz / n / each * 1e6 : 0, bad }' "$work/wrk"
}

python3 - "$events" "$work" <<'END'
import csv, gzip, json, sys
path, work = sys.argv[1:]
text = gzip.open(path, "rt") if path.endswith("gz") else open(path)
names, lines, batch = [], [], 0
for i, row in enumerate(csv.DictReader(text)):
    if not names or names[-1] != row["user"]:
        names.append(row["user"])
        if len(names) > 1000:
            break
    lines.append(json.dumps({"history": row["user"], "time": float(row["time"]), "event": row["item"], "id": str(i)}))
open(work + "/histories", "w").write("\n".join(names[:1000]))
for i in range(0, len(lines), 5000):
    open(f"{work}/batch{i // 5000:04d}", "w").write("\n".join(lines[i:i + 5000]) + "\n")
open(work + "/items", "w").write("\n".join(sorted({json.loads(line)["event"] for line in lines})))
END
cat >"$work/predict.lua" <<END
local names, i = {}, 0
for line in io.lines("$work/histories") do names[#names + 1] = line end
request = function()
    i = i % #names + 1
    return wrk.format("POST", "/v1/predict", nil, '{"history":"' .. names[i] .. '","at":"+1h","top":10}')
end
END
event_script()
{
    cat <<END
local items, i, run = {}, 0, tostring(os.time()) .. "-$1-"
for line in io.lines("$work/items") do items[#items + 1] = line end
local function event()
    i = i + 1
    return '{"history":"new' .. (i % 20000) .. '","time":' .. (1700000000 + i) .. ',"event":"' .. items[i % #items + 1] ..
        '","id":"' .. run .. i .. '"}'
end
request = function()
    local lines = {}
    for k = 1, $1 do lines[k] = event() end
    return wrk.format("POST", "/v1/events", nil, table.concat(lines, "\n"))
end
END
}
event_script 1 >"$work/one.lua"
event_script 1000 >"$work/thousand.lua"

start
cut -d' ' -f1-3 /proc/loadavg | sed 's/^/load of the machine: /'
for batch in "$work"/batch*; do
    curl -s -o /dev/null "$url/v1/events" --data-binary @"$batch"
done
curl -s "$url/healthz" >/dev/null
wrk -t1 -c8 -d2s -s "$work/predict.lua" "$url" >/dev/null # the cache is warm
measure "predict, cached, 64 connections" 64 "$work/predict.lua" 1
measure "predict, cached, 1,000 connections" 1000 "$work/predict.lua" 1
measure "events, one per request, 64 connections" 64 "$work/one.lua" 1
measure "events, 1,000 per request, 8 connections" 8 "$work/thousand.lua" 1000
curl -s "$url/metrics" | grep -E '^lapse_(resident|cache)_bytes|^lapse_cache_histories'
kill "$server"; wait "$server" || true
start --memory 1000000
measure "predict, cold, 64 connections" 64 "$work/predict.lua" 1
kill "$server"; wait "$server" || true
server=
