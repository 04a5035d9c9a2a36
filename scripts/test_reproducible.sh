#!/bin/bash
# test_reproducible.sh: builds the tool and the libraries twice, in two folders of different length, and compares their bytes.
#
#   scripts/test_reproducible.sh [cmake option ...]
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
failed=0
for folder in one another/folder; do
    mkdir -p "$work/$folder"
    git ls-files -z | xargs -0 cp --parents -t "$work/$folder"
    cmake -S "$work/$folder" -B "$work/$folder/build" -G Ninja -DLAPSE_CUDA=OFF "$@" >"$work/log" || { cat "$work/log"; exit 1; }
    ninja -C "$work/$folder/build" ${JOBS:+-j "$JOBS"} product >"$work/log" || { tail -n 20 "$work/log"; exit 1; }
done
for file in lapse liblapse.a liblapse.so lapse.1 lapse.bash; do
    if cmp "$work/one/build/$file" "$work/another/folder/build/$file"; then
        echo "the same bytes: $file"
    else
        failed=1
    fi
done
exit $failed
