#!/bin/bash
# test_aarch64.sh: builds for 64-bit ARM and runs unit tests under qemu.
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
failed=0
for program in "${programs[@]}"; do
    echo "== $program"
    LAPSE_TEST_TIER=quick OMP_NUM_THREADS=1 timeout 1200 qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$root/usr/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu/openblas-openmp" \
        "$folder/$program" || failed=$((failed + 1))
done
echo "${#programs[@]} programs under qemu-aarch64, $failed failed"
exit $((failed > 0))
