#!/usr/bin/env bash
# Tests of `lapse serve`: each starts servers of its own at free ports of 127.0.0.1 and stops them.
#
#   tests/server/run.sh build/lapse [TEST...]   runs all tests, or those whose names contain one of the words
#
# Every response is checked against /openapi.json. Answers are compared with those of `lapse predict`.
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/server/run.sh PATH-OF-LAPSE [TEST...]" >&2
    exit 2
fi
if ! command -v python3 >/dev/null; then
    echo "skipped: python3 is not installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
if "$1" serve nothing 2>&1 | grep -q 'built without the server'; then
    echo "skipped: lapse was built without the server"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
exec python3 tests/server/server_tests.py "$@"
