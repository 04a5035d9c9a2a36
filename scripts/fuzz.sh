#!/bin/bash
# fuzz.sh: runs fuzz targets (tests/fuzz/fuzz_*.c) for a number of seconds each, one per core at a time. The seed corpus is
# tests/fuzz/corpus/NAME; new inputs go to FOLDER/corpus/NAME and are used by the next run. Inputs that crash a target, leak
# memory or take too long are saved in FOLDER/found; add them to the corpus with the fix. FOLDER/total/NAME adds up the executions,
# CPU seconds and findings of all runs. FOLDER is build-fuzz, which `./run clean` deletes, or FUZZ_FOLDER of the environment. The
# last line of the output is `N targets, N findings; N executions in all runs`.
#
#   scripts/fuzz.sh [SECONDS] [together] [TARGET ...]
#
# together  all targets at once: the run takes SECONDS in all, and the targets share the cores
# TARGET    csv, model, ...; default: all
#
# Targets train and predict with a share of their inputs. With FUZZ_ALL=1 in the environment they do with all, and are slower.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=60 together=no targets=()
for argument in "$@"; do
    if [[ $argument =~ ^[0-9]+$ && $argument -gt 0 ]]; then
        seconds=$argument
    elif [ "$argument" = together ]; then
        together=yes
    elif [ -f "tests/fuzz/fuzz_$argument.c" ]; then
        targets+=("$argument")
    else
        echo "fuzz: '$argument' is neither a number of seconds, nor 'together', nor a target:" \
            "$(cd tests/fuzz && echo fuzz_*.c | sed 's/fuzz_\([a-z_0-9]*\)\.c/\1/g')" >&2
        exit 2
    fi
done
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
fi
jobs=$(nproc)
[ $together = no ] || jobs=${#targets[@]}

. scripts/build.sh
build_configure build-fuzz -DCMAKE_C_COMPILER=clang -DLAPSE_FUZZ=ON -DLAPSE_SHARED=OFF -DLAPSE_CUDA=OFF \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O2 -g" || exit 1
build_quietly build-fuzz "${targets[@]/#/fuzz_}" || exit 1

most_findings=8 # of a target, which then stops
format='%-12s %12s %10s %10s %8s %8s %8s %14s\n' # of a row
folder=${FUZZ_FOLDER:-build-fuzz}
mkdir -p "$folder/found" "$folder/total"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Faster allocations: no stacks of allocations in reports (a replay of the input shows them), and less freed memory held back.
export ASAN_OPTIONS=quarantine_size_mb=4:malloc_context_size=0:max_malloc_fill_size=0

# stat_of LOG NAME: the sum of a final statistic of libFuzzer over all runs in a log.
stat_of()
{
    sed -n "s/^stat::$2: *//p" "$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

# add_total TARGET EXECUTIONS CPU FINDINGS: adds a run to the target's total, `executions cpu_seconds findings`. Several calls may do so
# at once.
add_total()
{
    local file=$folder/total/$1
    shift
    (
        flock 9
        { echo "$@" && cat "$file" 2>/dev/null; } | awk '{ for (i = 1; i <= 3; i++) sum[i] += $i }
            END { printf "%d %d %d\n", sum[1], sum[2], sum[3] }' >"$file.new" && mv "$file.new" "$file"
    ) 9>"$folder/total.lock"
}

# fuzz TARGET: runs one target until its time is over, again after each finding, and prints its row.
fuzz()
{
    local name=$1 log=build-fuzz/fuzz_$1.log corpus=$folder/corpus/$1 begin=$SECONDS left findings=0 seeds=()
    # libFuzzer writes new inputs to the first folder, which is outside the source tree.
    mkdir -p "$corpus"
    [ ! -d tests/fuzz/corpus/"$name" ] || seeds+=(tests/fuzz/corpus/"$name")
    : >"$log"
    local TIMEFORMAT='cpu %U %S'
    while left=$((seconds - (SECONDS - begin))) && [ $left -gt 0 ] && [ $findings -lt $most_findings ]; do
        { time build-fuzz/fuzz_"$name" -max_total_time=$left -max_len=8192 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
            -verbosity=0 -artifact_prefix="$folder/found/$name-" "$corpus" "${seeds[@]}" && break; } >>"$log" 2>&1
        findings=$((findings + 1))
    done
    local runs wall=$((SECONDS - begin)) cpu rate cpu_rate peak
    runs=$(stat_of "$log" number_of_executed_units)
    cpu=$(awk '$1 == "cpu" { sum += $2 + $3 } END { print (sum > 0 ? sum : 1) }' "$log")
    rate=$((runs / (wall > 0 ? wall : 1)))
    cpu_rate=$(awk -v runs="$runs" -v cpu="$cpu" 'BEGIN { printf "%d", runs / cpu }')
    peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log" | sort -n | tail -n 1)
    add_total "$name" "$runs" "$cpu" $findings
    # shellcheck disable=SC2059 # the format is a variable
    printf "$format" "$name" "$runs" $rate "$cpu_rate" "$(find "$corpus" -type f | wc -l)" "${peak:-0}" $findings "$(cut -d ' ' -f 1 "$folder/total/$name")" |
        tee "build-fuzz/fuzz_$name.row"
    [ $findings -eq 0 ] || grep -hE 'SUMMARY|runtime error|^ *#[0-9]+ .*(src|tests)/' "$log" | head -n 20 | cut -c 1-160
}

# shellcheck disable=SC2059
printf "$format" target executions per_s per_cpu_s inputs peak_mb findings in_all_runs
running=0
for name in "${targets[@]}"; do
    [ $running -lt "$jobs" ] || { wait -n; running=$((running - 1)); }
    rm -f "build-fuzz/fuzz_$name.row"
    fuzz "$name" &
    running=$((running + 1))
done
wait
# A target without a row did not end as it should.
found=$(for name in "${targets[@]}"; do cat "build-fuzz/fuzz_$name.row" || echo 1; done 2>/dev/null |
    awk '{ sum += NF > 1 ? $(NF - 1) : 1 } END { print sum }')
echo "${#targets[@]} targets, $found findings; $(cat "$folder"/total/* | awk '{ sum += $1 } END { printf "%d", sum }') executions in all runs"
[ "$found" -eq 0 ]
