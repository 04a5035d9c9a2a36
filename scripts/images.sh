#!/bin/bash
# images.sh: makes the pictures of README.md in docs/images with Lapse itself: figures of the report that `lapse demo` ends with.
#
#   scripts/images.sh [PATH-OF-LAPSE]
set -eu
cd "$(dirname "$0")/.."
tool=$(realpath "${1:-build/lapse}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tool" demo --keep "$work" >/dev/null
"$tool" inspect "$work/mercer.safetensors" "$work/shop.lapse" --figures "$work/figures"
for figure in scores-event-accuracy influence case-1-predictions; do
    cp "$work/figures/$figure.svg" docs/images/
done
