#!/bin/bash
# test_aarch64.sh: builds for 64-bit ARM, runs unit tests under qemu, and compares predictions with those of the tool of this machine
# (build/lapse, where it was built).
#
#   scripts/test_aarch64.sh [PROGRAM ...]      default: the programs below; `all`: every unit test (hours)
#
# The ARM libraries are packages of this release of Debian, unpacked into build-aarch64/root: the system itself stays as it is.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build-aarch64
root=$folder/root
packages="libopenblas0-openmp libopenblas-openmp-dev libgfortran5 libgomp1 libgcc-s1 libjansson4 libjansson-dev zlib1g
    zlib1g-dev libxxhash0 libxxhash-dev libcmocka0 libcmocka-dev"
# Kernels, formats, scanners, memory, threads, sessions, and files of models and expected results that x86 wrote.
chosen="base memory_pages fast_math fast_kernels ops op_golden golden cache_ops random ranking csv jsonl file dataset_file
    arrow session decoder models when"

# The lists and archives of apt for the other architecture, in a folder of our own.
fetch()
{
    local apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
    : >"$apt/status"
    local options=(-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "Dir::State::status=$apt/status"
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Acquire::Languages=none -qq)
    apt-get "${options[@]}" update
    # shellcheck disable=SC2086 # words on purpose
    (cd "$apt/debs" && apt-get "${options[@]}" download $packages)
    mkdir -p "$root"
    for deb in "$apt"/debs/*.deb; do
        dpkg -x "$deb" "$root"
    done
    # What update-alternatives does in an installed system, so that -lopenblas is found.
    ln -sf openblas-openmp/libopenblas.so openblas-openmp/libopenblas.so.0 "$root/usr/lib/aarch64-linux-gnu"
    rm -rf "$apt"
    touch "$folder/fetched"
}

[ -e "$folder/fetched" ] || {
    echo "fetching the ARM libraries into $root" >&2
    fetch
}
[ -e "$folder/build.ninja" ] || cmake -S . -B "$folder" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
    -DCMAKE_CXX_COMPILER=NOTFOUND -DLAPSE_CUDA=OFF >"$folder.log" || { cat "$folder.log"; exit 1; }
rm -f "$folder.log"

if [ "${1-}" = all ]; then
    set -- tests/unit/test_*.c
    set -- "${@##*/test_}"
    set -- "${@%.c}"
elif [ $# -eq 0 ]; then
    # shellcheck disable=SC2086 # words on purpose
    set -- $chosen
fi
programs=()
for name; do
    [ -f "tests/unit/test_$name.c" ] && [[ $name != cuda* ]] && programs+=("test_$name")
done
ninja -C "$folder" lapse_tool "${programs[@]}"
# arm PROGRAM ARGUMENT...: runs a program of the ARM build.
arm()
{
    local program=$1
    shift
    OMP_NUM_THREADS=1 timeout 1200 qemu-aarch64-static -L /usr/aarch64-linux-gnu \
        -E LD_LIBRARY_PATH="$root/usr/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu/openblas-openmp" "$folder/$program" "$@"
}

# The predictions of one model file, in CSV: the same texts, and numbers that differ by at most 1e-6 times 1 + their size.
same_predictions()
{
    local work=$folder/predictions model
    rm -rf "$work" && mkdir -p "$work"
    build/lapse simulate --preset shop --sequences 60 --seed 1 -o "$work/shop.csv" >"$work/log" 2>&1 || return
    for model in attention lstm; do
        build/lapse train "$work/shop.csv" -o "$work/$model.st" --event item --model $model --epochs 2 --dims 16 --threads 1 --when >"$work/log" 2>&1 || return
        build/lapse predict "$work/$model.st" "$work/shop.csv" --at +1h --at +7d --csv -o "$work/here.csv" 2>>"$work/log" || return
        arm lapse predict "$work/$model.st" "$work/shop.csv" --at +1h --at +7d --csv -o "$work/arm.csv" 2>>"$work/log" || return
        paste -d '\n' "$work/here.csv" "$work/arm.csv" | awk -F , -v model=$model '
            NR % 2 { count = split($0, here); next }
            {
                bad += NF != count
                for (i = 1; i <= NF; i++) {
                    if ($i == here[i]) continue
                    difference = $i - here[i]; difference = difference < 0 ? -difference : difference
                    scale = 1 + (here[i] < 0 ? -here[i] : here[i])
                    if ($i !~ /^[-+.0-9e]+$/ || difference > 1e-6 * scale) bad++
                    if (difference / scale > most) most = difference / scale
                }
            }
            END { printf "%s: %d lines, largest difference %.1e, %d beyond 1e-6\n", model, NR / 2, most, bad; exit bad > 0 || NR < 200 }' || return
    done
}

failed=0
for program in "${programs[@]}"; do
    echo "== $program"
    LAPSE_TEST_TIER=quick arm "$program" || failed=$((failed + 1))
done
if [ -x build/lapse ]; then
    echo "== predictions of x86-64 and aarch64"
    same_predictions || { cat "$folder/predictions/log"; failed=$((failed + 1)); }
fi
echo "${#programs[@]} programs under qemu-aarch64, $failed failed"
exit $((failed > 0))
