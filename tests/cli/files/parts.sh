#!/bin/bash
# parts.sh FILE...: a line for each figure of a report, and for what is not in figures: its checksum, size and name. The commit of the
# build is left out.
for page; do
    rm -rf parts && mkdir parts
    sed -E 's/([> ])[0-9a-f]{12}\+?([< ])/\1C\2/g' "$page" | awk '/<figure id="/ { split($0, word, "\""); part = word[2] }
        { print > ("parts/" (part ? part : "page")) }
        /<\/figure>/ { part = "" }'
    (cd parts && cksum -- *)
done
