#!/bin/bash
# stackoverflow.sh: accuracy on the Stack Overflow badges, the table of docs/results.md: every encoding at equal settings (one
# block, 32 dims, no gap input), the baselines, and the defaults alone; seeds 1 to 5 set both the split and the start. Mean
# (standard deviation).
#
#   ./run bench stackoverflow        SEEDS="1 2 3" for fewer, DEVICE=cuda for a GPU, DATA=FOLDER for data elsewhere
set -eu
data=${DATA:-../shared/data}/stackoverflow/events.csv.gz
seeds=${SEEDS:-1 2 3 4 5}
device=${DEVICE:-cpu}
if [ ! -e "$data" ]; then
    echo "skipped: there is no $data"
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$LAPSE" import "$data" -o "$folder/so.lapse" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }

# row NAME OPTION...: trains with every seed and prints one line.
row()
{
    local name=$1 seed
    shift
    : >"$folder/scores"
    SECONDS=0
    for seed in $seeds; do
        "$LAPSE" train "$folder/so.lapse" -o "$folder/m" --seed "$seed" --device "$device" --checkpoint none --no-eval "$@" \
            >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
        "$LAPSE" eval "$folder/m" "$folder/so.lapse" --split test --bootstrap 0 --json >>"$folder/scores"
        echo >>"$folder/scores"
    done
    awk -v name="$name" -v seconds=$SECONDS '
        function number(key) { match($0, "\"" key "\": *[0-9.e+-]+"); v = substr($0, RSTART, RLENGTH); sub(/.*: */, "", v); return v + 0 }
        /"accuracy"/ { n++; a = 100 * number("accuracy"); s += a; q += a * a; all = all sprintf(" %.2f", a) }
        /"log_loss"/ { m++; l = number("log_loss"); t += l }
        END { mean = s / n; d = n > 1 ? sqrt((q - n * mean * mean) / (n - 1)) : 0
              printf "| %-27s | %.2f (%.2f) | %.4f | %3.0f s |%s\n", name, mean, d, t / m, seconds / n, all }' "$folder/scores"
}

echo "| Stack Overflow, test        | accuracy, %  | log-loss | each  | by seed"
echo "|-----------------------------|--------------|--------|-------|"
row majority --model majority
row "markov 1" --model markov --order 1
row "markov 2" --model markov --order 2
row "markov 3" --model markov --order 3
plain="--dims 32 --blocks 1 --heads 1 --context 100 --dropout 0.2 --gap-input off"
row none $plain --encoding none
row position $plain --encoding position
row sinusoid $plain --encoding sinusoid
row "random, 50 frequencies" $plain --encoding random --periods 50
row "bochner-normal, 50" $plain --encoding bochner-normal --periods 50
for map in mlp mlp-residual maf iaf nvp; do
    row "bochner-invcdf $map, 50" $plain --encoding bochner-invcdf --inverse-cdf "$map" --periods 50
done
row "bochner, 50 frequencies" $plain --encoding bochner --periods 50
row "mercer, 10 x 5" $plain --encoding mercer --periods 10 --harmonics 5
row "mercer, 16 x 5" $plain --encoding mercer --periods 16 --harmonics 5
row "mercer, time unknown" $plain --encoding mercer --target-time unknown
row "mercer, mlp-query" $plain --projection mlp-query
row "mercer, added" $plain --combine add
row "mercer, anchored mlp" $plain --projection mlp
# As the paper has them: frequencies sampled themselves and independently, other initial periods, periods that are not learned.
for name in "linear --frequency-scale linear" "independent --independent-draws" \
    "linear, independent --frequency-scale linear --independent-draws"; do
    row "bochner-normal, ${name%% --*}" $plain --encoding bochner-normal --${name#* --}
    row "bochner-invcdf mlp, ${name%% --*}" $plain --encoding bochner-invcdf --inverse-cdf mlp --${name#* --}
done
row "mercer, geometric, fixed" $plain --periods-fixed
for init in paper paper-frequency random linear; do
    row "mercer, $init" $plain --period-init $init
    row "mercer, $init, fixed" $plain --period-init $init --periods-fixed
done
# Exact lags for an MLP: a window for every target. Slow: seed 1 alone.
all=$seeds seeds=1
row "mercer, mlp, each window" $plain --projection mlp --windows each --batch 1024 --epochs 20
row "mercer, linear, each window" $plain --windows each --batch 1024 --epochs 20
seeds=$all
for model in lstm timejoint rmtpp; do
    row "$model, time unknown" --model "$model" --target-time unknown --epochs 200
done
row "defaults, gap input off" --task classify --gap-input off
row "defaults alone" --task classify
