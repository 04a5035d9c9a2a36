#!/usr/bin/env bash
# levels.sh: how far the CPU levels come apart in training: the same run at each level, for several seeds, on simulated shops.
#
#   bench/levels.sh build/lapse [SEQUENCES] [OPTIONS OF lapse train...]
#
# Prints the log-loss of the validation and of the test split at every level that this CPU has, and the largest difference.
set -euo pipefail
lapse=$(realpath "$1")
sequences=${2:-100}
shift $(($# < 2 ? $# : 2))
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$lapse" simulate --sequences "$sequences" -o shop.csv >/dev/null
"$lapse" import shop.csv -o shop.lapse --sequence user --time time --event item >/dev/null
score() { grep -ao "\"score.$2.log_loss\":\"[^\"]*" "$1" | cut -d'"' -f4; }
for seed in 1 2 3 4 5; do
    for level in portable x86-64-v3 x86-64-v4; do
        LAPSE_CPU_LEVEL=$level "$lapse" train shop.lapse -o model --task classify --epochs 20 --patience 20 --threads 1 \
            --seed "$seed" "$@" >log 2>&1 || { cat log >&2; exit 1; }
        echo "$seed $level $(score model valid) $(score model test)"
    done
done | tee scores
awk '{ for (k = 3; k <= 4; k++) { i = $1 " " k; if (!(i in low) || $k < low[i]) low[i] = $k; if (!(i in high) || $k > high[i]) high[i] = $k } }
     END { for (i in low) if (high[i] - low[i] > most) most = high[i] - low[i]; printf "largest difference %.1e\n", most }' scores
