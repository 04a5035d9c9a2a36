#!/usr/bin/env bash
# Imports about 230 files shaped like public data sets and product exports, without options, and counts how many are imported
# as a person would import them, end in a question, are silently wrong, or are refused (collection.py, cases.py, score.py).
#
#   tests/import/run.sh build/lapse [--list dev|held]
set -u
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/import/run.sh PATH-OF-LAPSE [--list dev|held]" >&2
    exit 2
fi
tool=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/collection.py" "$work" && python3 "$here/score.py" "$tool" "$work" "$@"
