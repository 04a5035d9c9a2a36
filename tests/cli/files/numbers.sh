#!/bin/bash
# numbers.sh: reads options of `lapse train`, a run in each line; the first word is the data. Prints a checksum of what the run
# gives: losses and scores of every epoch, the evaluation, and predictions for the first histories.
head -40 shop.csv >first_shop.csv
head -40 items.csv >first_items.csv
while read -r data options; do
    # shellcheck disable=SC2086 # a list of words
    if lapse train $data.lapse -o n.st --dims 6 --epochs 2 --threads 2 --checkpoint none --log n.log $options >n.out 2>n.warnings; then
        {
            sed -E 's/"seconds": ?[0-9.e-]+//g' n.log
            sed -E 's/ *[0-9.]+[kM]? events.s, [0-9.]+ s//; s/(in|after) [0-9.]+ s//' n.out n.warnings
            lapse eval n.st $data.lapse --bootstrap 7 --threads 1 --json
            lapse predict n.st first_$data.csv --at +1h --at +30d --top 4 --json
            case $options in *--when* | *rmtpp*) lapse predict n.st first_$data.csv --when --within 2d --json ;; esac
        } >n.text 2>n.err
        [ ! -s n.err ] || sed 's/^/    /' n.err
        echo "$(cksum <n.text | cut -d ' ' -f 1) $data $options"
    else
        echo "$data $options: $(tail -1 n.warnings)"
    fi
done
