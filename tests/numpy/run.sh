#!/usr/bin/env bash
# run.sh: trains small models of every architecture and compares `lapse predict` with docs/forward_pass.py, the
# forward pass of docs/model.md in NumPy.
#
#   tests/numpy/run.sh PATH-OF-LAPSE
#
# The environment variable PYTHON names another Python with NumPy.
set -u
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/numpy/run.sh PATH-OF-LAPSE" >&2
    exit 2
fi
# Debian's python3-numpy belongs to the system's Python, which may not be the first on the PATH.
for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 python3 none; do
    "$python" -c 'import numpy' 2>/dev/null && break
done
if [ "$python" = none ]; then
    echo "skipped numpy: there is no Python with NumPy (Debian: python3-numpy)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
tool=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" "$(dirname "$0")/agree.py" "$tool" "$work"
