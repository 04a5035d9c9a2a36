#!/bin/bash
# bench.sh: builds and runs the benchmarks: programs bench/NAME.c and scripts bench/NAME.sh (default: all of them). LAPSE is the
# path of the tool. The working directory is an empty folder, which is removed afterwards.
#
#   scripts/bench.sh [NAME ...]
set -eu
cd "$(dirname "$0")/.."
. scripts/build.sh
known=()
for source in bench/*.c bench/*.sh; do
    [ -e "$source" ] || continue
    name=${source##*/}
    known+=("${name%.*}")
done
if [ ${#known[@]} -eq 0 ]; then
    echo "bench: no benchmarks found"
    exit 0
fi
for name in "$@"; do
    [[ " ${known[*]} " == *" $name "* ]] || {
        echo "bench: unknown benchmark '$name'; the benchmarks are: ${known[*]}" >&2
        exit 2
    }
done
[ $# -gt 0 ] || set -- "${known[@]}"
echo "benchmarks: $*"
build_configure build
build_quietly build product bench
echo "machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; commit: $(git rev-parse --short HEAD)"
export LAPSE=$PWD/build/lapse DATA=${DATA:-$PWD/../shared/data}
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
for name in "$@"; do
    echo "== $name"
    if [ -e "$root/bench/$name.c" ]; then
        "$root/build/bench/$name"
    else
        bash "$root/bench/$name.sh"
    fi
done
