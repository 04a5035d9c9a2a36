#!/bin/bash
# movielens.sh: ranking on MovieLens-1M, the tables of docs/results.md: the last film of each user is the test, the one before it
# the validation. Hit@10 and NDCG@10 of the test split on four protocols (docs/evaluation.md), mean (standard deviation) over seeds.
#
#   ./run bench movielens      SEEDS="1 2", ROWS="bce softmax" for fewer; DEVICE=cuda|cpu (default auto); DATA=FOLDER for data elsewhere
#
# On a CPU a row takes an hour or more; on a GPU a minute.
set -eu
data=${DATA:-../shared/data}/ml-1m/events.csv.gz
seeds=${SEEDS:-1 2 3}
rows=${ROWS:-baselines bce softmax best unknown models defaults}
device=${DEVICE:-auto}
if [ ! -e "$data" ]; then
    echo "skipped: there is no $data"
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$LAPSE" import "$data" -o "$folder/ml.lapse" --sequence user --time time --event item >"$folder/log" 2>&1 ||
    { cat "$folder/log"; exit 1; }

# row NAME OPTION...: trains with every seed and prints one line.
row()
{
    local name=$1 seed
    shift
    : >"$folder/scores"
    SECONDS=0
    for seed in $seeds; do
        "$LAPSE" train "$folder/ml.lapse" -o "$folder/m" --task recommend --seed "$seed" --checkpoint none --no-eval "$@" \
            >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
        "$LAPSE" eval "$folder/m" "$folder/ml.lapse" --split test --bootstrap 0 --cutoffs 10 --json >>"$folder/scores"
    done
    awk -v name="$name" -v seconds=$SECONDS '
        function number() { v = $0; sub(/.*: */, "", v); return v + 0 }
        /"(full-unseen|full|uniform|popularity)":/ { split($0, part, "\""); at = part[2] }
        /"hit@10"/ { add(at " hit", number()) }
        /"ndcg@10"/ { add(at " ndcg", number()); if (at == "full-unseen") { seeds++; list = list sprintf(" %.4f", number()) } }
        function add(key, x) { n[key]++; s[key] += x; q[key] += x * x }
        function show(key, scale, digits,   mean, d) {
            mean = s[key] / n[key]; d = n[key] > 1 ? (q[key] - n[key] * mean * mean) / (n[key] - 1) : 0
            return sprintf("%.*f (%.*f)", digits, scale * mean, digits, scale * sqrt(d > 0 ? d : 0)) }
        END { printf "| %-28s | %s | %s | %s | %s | %3.0f s |%s\n", name, show("uniform hit", 100, 2), show("uniform ndcg", 100, 2),
              show("full-unseen hit", 1, 4), show("full-unseen ndcg", 1, 4), seconds / seeds, list }' "$folder/scores"
}

wants() { [[ " $rows " == *" $1 "* ]]; }

echo "| MovieLens-1M, test           | 100 uniform: Hit@10, % | NDCG@10, % | all unseen: Hit@10 | NDCG@10 | each | its NDCG@10 by seed"
echo "|------------------------------|------------------------|------------|--------------------|---------|------|"
paper="--device $device --gap-input off --context 200 --batch 128 --blocks 2 --heads 1 --dims 50 --dropout 0.2 --epochs 200 --patience 20"
periods="--period-min 1m --period-max 1500d"
if wants baselines; then
    row popularity --model popularity
    row recency --model recency
    row item-markov --model item-markov
fi
if wants bce; then
    row "bce, position" $paper --loss bce --encoding position
    row "bce, bochner 50" $paper $periods --loss bce --encoding bochner --periods 50
    row "bce, mercer 10 x 5" $paper $periods --loss bce --encoding mercer --periods 10 --harmonics 5
fi
if wants softmax; then
    row "softmax, position" $paper --loss softmax --encoding position --precision tf32
    row "softmax, bochner 50" $paper $periods --loss softmax --encoding bochner --periods 50 --precision tf32
    row "softmax, mercer 10 x 5" $paper $periods --loss softmax --encoding mercer --periods 10 --harmonics 5 --precision tf32
fi
best="--device $device --gap-input off --precision tf32 --context 200 --batch 128 --blocks 2 --heads 2 --dims 128 --dropout 0.4 --epochs 200 --patience 20 --loss softmax --encoding bochner --periods 64"
if wants best; then
    row "best found, time known" $best
fi
if wants unknown; then
    row "best found, time unknown" $best --target-time unknown
fi
if wants models; then
    for model in gru4rec rnn-attention sasrec caser transrec; do
        row "$model, defaults" --device "$device" --model "$model"
    done
fi
if wants defaults; then
    row "defaults, gap input off" --device "$device" --gap-input off
    row "defaults alone" --device "$device"
fi
