#!/usr/bin/env bash
# The demo as a whole: what its table must show, that it keeps its report alone, and that Ctrl-C ends it in order.
#
#   tests/demo/run.sh build/lapse
set -u
export LC_ALL=C
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/demo/run.sh PATH-OF-LAPSE" >&2
    exit 2
fi
tool=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp"
export TMPDIR=$work/tmp
passed=0
failed=0

# check WHAT COMMAND...: one test.
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
    fi
}

# value MODEL MEMBER: a number out of the demo's JSON.
value() {
    awk -v model="\"$1\"," -v member="\"$2\":" '
        $1 == "\"name\":" { here = substr($0, index($0, ":") + 2) == model }
        here && $1 == member { sub(",", "", $2); print $2 }' "$work/out"
}

# holds EXPRESSION: whether it is true in awk.
holds() {
    awk "BEGIN { exit !($1) }"
}

empty() {
    [ -z "$(ls -A "$1")" ]
}

"$tool" demo --json >"$work/out" 2>"$work/err"
check "the demo ends with 0" test $? -eq 0
check "the temporary folder is gone" empty "$TMPDIR"
for gain in accuracy_gain log_loss_gain; do
    mercer=$(value mercer $gain) position=$(value position $gain)
    echo "$gain: mercer ${mercer:-none}, position ${position:-none}"
    check "mercer reaches 85 % of the possible $gain" holds "${mercer:-0} >= 0.85"
    check "position reaches clearly less" holds "${position:-1} <= ${mercer:-0} - 0.25"
done
check "nothing is better than the best possible" holds \
    "$(value mercer log_loss) > $(value 'best possible' log_loss) && $(value bochner log_loss) > $(value 'best possible' log_loss)"

# The text explains the two encodings and ends with three commands, which work as printed on a CSV of the shop.
"$tool" demo >"$work/text" 2>"$work/err"
check "the demo in words ends with 0" test $? -eq 0
page=$(grep -o "$TMPDIR/.*/report.html" "$work/text")
check "the demo ends with a report" grep -q '<h1>[^<]*; elapsed time is worth [0-9]* points</h1>' "$page"
check "nothing else is kept" test "$(find "$TMPDIR" -type f)" = "$page"
rm -r "$(dirname "$page")"
mkdir "$work/shop"
for word in "bochner by" "mercer by"; do
    check "the demo explains '$word'" grep -q "$word" "$work/text"
done
tail -n 3 "$work/text" | sed 's/^ *//' >"$work/commands"
check "three commands are about a CSV" test "$(grep -c "^$tool [a-z]* .*events.csv" "$work/commands")" -eq 3
(
    cd "$work/shop" && "$tool" simulate --preset shop -o shop.csv && head -n 2000 shop.csv | cut -d , -f 1-3 >events.csv && set -e
    while read -r line; do
        timeout 120 bash -c "$line"
    done <"$work/commands"
) >"$work/tried" 2>&1
check "the commands work" test $? -eq 0
check "the last one predicts" grep -q "^sequence *rank *at +1h *at +7d" "$work/tried"

"$tool" demo >"$work/out" 2>"$work/err" &
demo=$!
for _ in $(seq 600); do
    grep -q '^markov 3' "$work/err" && break
    sleep 0.1
done
kill -INT $demo
wait $demo
check "Ctrl-C ends the demo with 130" test $? -eq 130
check "the temporary folder is gone after Ctrl-C" empty "$TMPDIR"
check "Ctrl-C leaves no half table" test ! -s "$work/out"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
