#!/usr/bin/env bash
# Failure injection over all verbs: the Nth allocation, open, read, write, sync, link, close, ... of a command fails, for every
# N, or in the quick tier and under sanitizers for every 24th (tests/faults/fault_run.c).
#
#   tests/faults/run.sh build/lapse [CASE...]
#
# LAPSE_TEST_SEED repeats the choice of an earlier quick run.
set -u
export LC_ALL=C
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/faults/run.sh PATH-OF-LAPSE [CASE...]" >&2
    exit 2
fi
program=$(dirname "$(realpath "$1")")/faults
files=$(cd "$(dirname "$0")/../cli/files" && pwd)
shift
if [ ! -x "$program" ]; then
    echo "skipped: $program was not built"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
stride=1
[ "${LAPSE_TEST_TIER:-full}" = full ] || stride=24
[ -z "${LAPSE_TEST_UNDER:-}" ] || stride=24
seed=()
[ -z "${LAPSE_TEST_SEED:-}" ] || seed=(--seed "$LAPSE_TEST_SEED")
# A file system in memory, where there is one: the test syncs tens of thousands of files.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
TMPDIR=$(mktemp -d) || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
"$program" --stride $stride --jobs "$(nproc)" "${seed[@]}" "$files" "$@"
