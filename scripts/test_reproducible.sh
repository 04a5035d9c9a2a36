#!/bin/bash
# test_reproducible.sh: builds a copy of this tree in another folder, and compares the bytes of the tool and the libraries with those of
# a build here.
#
#   scripts/test_reproducible.sh [BUILD]      default: build; JOBS is the number of jobs of ninja
set -eu
cd "$(dirname "$0")/.."
. scripts/build.sh
if [ -n "${CCACHE_BASEDIR:-}" ]; then
    echo "skipped: ccache writes relative names of sources where CCACHE_BASEDIR is set"
    exit 0
fi
built=$(realpath "${1:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy=$work/another/folder
git clone -q --shared . "$copy"
git diff --binary HEAD >"$work/changes"
[ ! -s "$work/changes" ] || git -C "$copy" apply "$work/changes"
git ls-files -z -o --exclude-standard | xargs -0r cp --parents -t "$copy"

export CCACHE_DISABLE=1
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$built/CMakeCache.txt")
cd "$copy"
build_configure build -DLAPSE_CUDA=OFF -DCMAKE_C_COMPILER="$compiler"
build_quietly build ${JOBS:+-j "$JOBS"} product
failed=0
for file in lapse liblapse.a liblapse.so lapse.1 lapse.bash; do
    cmp "$built/$file" "build/$file" || failed=1
done
[ $failed -ne 0 ] || echo "the same bytes in two folders"
exit $failed
