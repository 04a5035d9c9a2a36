#!/bin/bash
# sessions.sh: the shop of `lapse simulate --preset sessions`: the next viewed item, the table of docs/results.md. Hit@5, NDCG@5,
# Hit@10 and NDCG@10 of the test sessions in percent, mean (standard deviation) over seeds, which set data and initialization.
#
#   ./run bench sessions       SEEDS="1 2", ROWS="mercer sasrec" for fewer; DEVICE=cuda|cpu (default auto); ITEMS, USERS: the size;
#                              CUT=1 cuts histories into sessions, as the paper does; OPTIONS of every training
#
# On two cores choose a smaller size: ITEMS=800 USERS=1000.
set -eu
seeds=${SEEDS:-1 2 3 4 5 6 7 8 9 10}
device=${DEVICE:-auto}
items=${ITEMS:-2000}
users=${USERS:-3000}
rows=${ROWS:-popularity item-markov gru4rec rnn-attention transrec sasrec none position sinusoid random bochner-normal bochner-invcdf bochner mercer law}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
simulation() { "$LAPSE" simulate --preset sessions --items "$items" --sequences "$users" --seed "$1" "${@:2}"; }
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }; }

split="--split-by session" sessions=
if [ -n "${CUT:-}" ]; then
    split="--split-by time" sessions="--session-gap 30m"
fi
for seed in $seeds; do
    quietly simulation "$seed" -o "$folder/s.csv"
    quietly "$LAPSE" import "$folder/s.csv" -o "$folder/$seed.lapse" --sequence user --time time --event item --action action \
        --field department --min-sequence-events 10 --min-users 5 $sessions
    quietly "$LAPSE" train "$folder/$seed.lapse" -o "$folder/$seed.popularity" --task recommend --model popularity \
        --target action=view $split
done

# row NAME OPTION...: trains with every seed and prints one line.
row()
{
    local name=$1 seed
    shift
    : >"$folder/$name.scores"
    SECONDS=0
    for seed in $seeds; do
        if [ "$name" = law ]; then
            simulation "$seed" -o /dev/null --score "$folder/$seed.popularity" --data "$folder/$seed.lapse" --json \
                2>"$folder/log" >>"$folder/$name.scores" || { cat "$folder/log"; exit 1; }
            continue
        fi
        quietly "$LAPSE" train "$folder/$seed.lapse" -o "$folder/m" --task recommend --seed "$seed" --device "$device" \
            --target action=view $split --checkpoint none --no-eval ${OPTIONS:-} "$@"
        "$LAPSE" eval "$folder/m" "$folder/$seed.lapse" --split test --bootstrap 0 --negatives 0 --json >>"$folder/$name.scores"
    done
    awk -v name="$name" -v seconds=$SECONDS '
        function number() { v = $0; sub(/.*: */, "", v); return v + 0 }
        /"(full-unseen|full|uniform|popularity)":/ { split($0, part, "\""); at = part[2] }
        at == "full-unseen" && /"(hit|ndcg)@(5|10)"/ {
            split($0, part, "\""); key = part[2]; x = number(); n[key]++; s[key] += x; q[key] += x * x
            if (key == "ndcg@10") list = list sprintf(" %.2f", 100 * x) }
        function show(key,   mean, d) {
            mean = s[key] / n[key]; d = n[key] > 1 ? (q[key] - n[key] * mean * mean) / (n[key] - 1) : 0
            return sprintf("%.2f (%.2f)", 100 * mean, 100 * sqrt(d > 0 ? d : 0)) }
        END { printf "| %-14s | %s | %s | %s | %s | %.0f s |%s\n", name, show("hit@5"), show("ndcg@5"), show("hit@10"),
              show("ndcg@10"), seconds / n["ndcg@10"], list }' "$folder/$name.scores"
}

echo "| next view      | Hit@5 | NDCG@5 | Hit@10 | NDCG@10 | each | NDCG@10 by seed"
echo "|----------------|-------|--------|--------|---------|------|"
for name in $rows; do
    case $name in
    law) row law ;;
    popularity | item-markov | gru4rec | rnn-attention | transrec | sasrec | caser)
        if "$LAPSE" train --help all | grep -qw -- "$name"; then
            row "$name" --model "$name"
        else
            echo "| $name | this build does not have the model |"
        fi ;;
    *) row "$name" --encoding "$name" ;;
    esac
done
