#!/bin/bash
# item_vectors.sh: what item vectors (`lapse pretrain`) add on a simulated catalogue, the table of docs/item-vectors.md: a
# recommender that starts by chance, one that starts from vectors of events alone, and one from vectors of events and the
# catalogue. Seeds set the catalogue, the events, the vectors and the training. Mean (standard deviation).
#
#   ./run bench item_vectors        SEEDS="1" for fewer, EPOCHS=12, LONG=36, ITEMS=20000, SEQUENCES=10000
set -eu
seeds=${SEEDS:-1 2 3}
epochs=${EPOCHS:-12}
long=${LONG:-36}
items=${ITEMS:-20000}
sequences=${SEQUENCES:-10000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# quietly COMMAND...: shows what it printed only where it failed.
quietly()
{
    "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
}

for seed in $seeds; do
    at=$folder/$seed
    quietly "$LAPSE" simulate --preset catalogue --items "$items" --sequences "$sequences" --seed "$seed" -o "$at.csv" \
        --catalogue "$at.items.csv"
    quietly "$LAPSE" import "$at.csv" -o "$at.lapse" --sequence user --time time --event item
    quietly "$LAPSE" pretrain "$at.lapse" -o "$at.events" --dims 32 --seed "$seed"
    quietly "$LAPSE" pretrain "$at.lapse" -o "$at.both" --dims 32 --seed "$seed" --catalogue "$at.items.csv"
done

# row NAME EPOCHS VECTORS: trains with every seed, ranks the test events in the whole catalogue, prints one line. Vectors are
# the end of the file's name, or nothing. A target that is new never occurred in the training split; by chance it would stand
# anywhere among the candidates, which is an NDCG@10 of 4.5436 / candidates.
row()
{
    local name=$1 count=$2 vectors=$3 seed
    : >"$folder/scores"
    SECONDS=0
    for seed in $seeds; do
        quietly "$LAPSE" train "$folder/$seed.lapse" -o "$folder/m" --task recommend --loss sampled-softmax \
            --dims 32 --blocks 1 --gap-input off --epochs "$count" --seed "$seed" --checkpoint none --no-eval \
            ${vectors:+--item-vectors "$folder/$seed.$vectors"}
        "$LAPSE" eval "$folder/m" "$folder/$seed.lapse" --negatives 0 --cutoffs 10 --slices --bootstrap 0 >>"$folder/scores"
    done
    awk -v name="$name" -v seconds=$SECONDS '
        /^candidates/ { c += $2 }
        /^Hit@10/ { h += $2 }
        /^NDCG@10/ { n++; s += $2; q += $2 * $2; all = all " " $2 }
        /^new: / { w += $NF; cases += $(NF - 2) }
        END { mean = s / n; d = n > 1 ? sqrt((q - n * mean * mean) / (n - 1)) : 0
              printf "| %-29s | %.4f (%.4f) | %.4f | %.4f, of %d | %.5f | %4.0f s |%s\n", name, mean, d, h / n, w / n,
                     cases, 4.5436 * n / c, seconds / n, all }' "$folder/scores"
}

echo "| $items items, $sequences sequences | NDCG@10         | Hit@10 | NDCG@10 of new items | by chance | each  | by seed"
echo "|-------------------------------|-----------------|--------|----------------------|---------|--------|"
row "start by chance" "$epochs" ""
row "start by chance, $long epochs" "$long" ""
row "vectors of events" "$epochs" events
row "vectors of events, catalogue" "$epochs" both
