#!/bin/bash
# parts.sh FILE...: a line for each figure of a report, and for what is not in figures: its checksum, size and name.
for page; do
    rm -rf parts && mkdir parts
    awk '/<figure id="/ { split($0, word, "\""); part = word[2] }
        { print > ("parts/" (part ? part : "page")) }
        /<\/figure>/ { part = "" }' "$page"
    (cd parts && cksum -- *)
done
