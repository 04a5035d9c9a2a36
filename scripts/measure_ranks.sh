#!/usr/bin/env bash
# measure_ranks.sh: training speed by number of ranks of one thread each, on simulated data of MovieLens' size.
#
#   scripts/measure_ranks.sh PATH-OF-LAPSE RANKS...       such as: build/lapse 1 2 4
#
# LAPSE_MEASURE_DATA is another dataset, LAPSE_MEASURE_OPTIONS other training options, LAPSE_MEASURE_LAUNCHER the launcher up to its -n,
# LAPSE_MEASURE_RUNS the runs of each. Prints the events a second of the median of the runs,
# and the efficiency: the rate of n ranks by n times that of the first number.
set -eu
tool=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
data=${LAPSE_MEASURE_DATA:+$(realpath "$LAPSE_MEASURE_DATA")}
options=${LAPSE_MEASURE_OPTIONS:---task recommend --loss bce --dims 50 --heads 1 --context 200 --batch 128 --periods 10 --epochs 3}
cd "$work"
if [ -z "$data" ]; then
    "$tool" simulate --preset catalogue --items 3416 --sequences 6040 --days 700 --seed 1 -o data.csv 2>/dev/null >/dev/null
    "$tool" import data.csv -o data.lapse >/dev/null 2>&1
    data=$work/data.lapse
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
echo "load $(cut -d ' ' -f 1 /proc/loadavg), $(nproc) cores, $options"
first=
for ranks in "$@"; do
    rates=()
    for ((run = 0; run < ${LAPSE_MEASURE_RUNS:-3}; run++)); do
        # shellcheck disable=SC2086 # launcher and options are several words
        ${LAPSE_MEASURE_LAUNCHER:-mpirun --oversubscribe --bind-to none} -n "$ranks" "$tool" train "$data" -o model.st --threads 1 --no-eval --checkpoint none \
            $options >/dev/null 2>progress
        rates+=("$(tr '\r' '\n' <progress | grep -oE '[0-9.]+[kM]? events/s' | tail -n 1 | sed -E 's/ .*//; s/k/e3/; s/M/e6/')")
    done
    rate=$(printf '%s\n' "${rates[@]}" | sort -g | sed -n "$(((run + 1) / 2))p")
    first=${first:-$ranks $rate}
    awk -v n="$ranks" -v rate="$rate" -v first="$first" 'BEGIN { split(first, f, " ");
        printf "%d ranks: %d events/s, efficiency %.0f %%\n", n, rate, 100 * rate / f[2] * f[1] / n }'
done
