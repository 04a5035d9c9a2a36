#!/usr/bin/env bash
# run.sh: opens pages of `lapse inspect` in headless Chromium, as wide as a desktop and a phone, light and dark, and counts their faults.
#
#   tests/browser/run.sh PATH-OF-LAPSE
set -u
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/browser/run.sh PATH-OF-LAPSE" >&2
    exit 2
fi
for browser in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome none; do
    command -v "$browser" >/dev/null && break
done
if [ "$browser" = none ] || ! command -v python3 >/dev/null; then
    echo "skipped browser: Chromium (Debian: chromium) or python3 is not installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
tool=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$(dirname "$0")/pages.py" "$tool" "$browser" "$work"
