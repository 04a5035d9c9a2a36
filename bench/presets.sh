#!/bin/bash
# presets.sh: `lapse bench` for every preset, training and scoring. ROUNDS says how often each is measured.
set -eu
for preset in ml-1m ml-1m-softmax so catalogue; do
    for what in train predict; do
        "$LAPSE" bench --preset $preset --what $what --rounds "${ROUNDS:-20}"
        echo
    done
done
