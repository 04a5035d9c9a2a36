#!/bin/bash
# fuzz.sh: runs every fuzz target (tests/fuzz/fuzz_*.c) for a number of seconds. The seed corpus is tests/fuzz/corpus/NAME and
# tests/hostile. Inputs that crash a target are saved in build-fuzz/found; add them to the corpus with the fix.
#
#   scripts/fuzz.sh [SECONDS]
set -u
seconds=${1:-60}
case $seconds in
'' | *[!0-9]*)
    echo "fuzz: '$seconds' is not a number of seconds" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.." || exit 1
. scripts/build.sh
build_configure build-fuzz -DCMAKE_C_COMPILER=clang -DLAPSE_FUZZ=ON -DLAPSE_SHARED=OFF -DLAPSE_CUDA=OFF \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g" || exit 1
mapfile -t targets < <(for source in tests/fuzz/fuzz_*.c; do basename "$source" .c; done)
build_quietly build-fuzz "${targets[@]}" || exit 1

failed=0 count=0
mkdir -p build-fuzz/found
for source in tests/fuzz/fuzz_*.c; do
    [ -e "$source" ] || continue
    name=$(basename "$source" .c)
    echo "== $name, $seconds s"
    count=$((count + 1))
    seeds=()
    for folder in tests/fuzz/corpus/"$name" tests/fuzz/corpus/"${name#fuzz_}" tests/hostile; do
        [ ! -d "$folder" ] || seeds+=("$folder")
    done
    # libFuzzer writes new inputs to the first folder, which is outside the source tree.
    mkdir -p build-fuzz/corpus/"$name"
    if build-fuzz/"$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix=build-fuzz/found/"$name"- build-fuzz/corpus/"$name" "${seeds[@]}" >build-fuzz/"$name".log 2>&1; then
        grep -E 'number_of_executed_units|average_exec_per_sec|peak_rss' build-fuzz/"$name".log | sed 's/^stat::/   /'
    else
        failed=$((failed + 1))
        tail -n 40 build-fuzz/"$name".log
    fi
done
echo "$count fuzzed, $failed failed"
[ $failed -eq 0 ]
