#!/bin/bash
# paper.sh: remakes the tables and figures of the paper (docs/paper.md) in the folder build/paper, from the plans in bench/paper.
#
#   scripts/paper.sh [PART ...]     stackoverflow movielens sensitivity time sessions attention encodings (default: all)
#
# DEVICE=cpu|cuda|auto (default auto), SEEDS=N for fewer or more than the plans have, DATA=FOLDER for the data, OUT=FOLDER for the
# results. Finished runs are kept in OUT, so a call that was stopped continues.
set -eu
cd "$(dirname "$0")/.."
lapse=$PWD/build/lapse
plans=$PWD/bench/paper
data=$(realpath -m "${DATA:-../shared/data}")
out=$(realpath -m "${OUT:-build/paper}")
device=${DEVICE:-auto}
parts=${*:-stackoverflow movielens sensitivity time sessions attention encodings}
known=" stackoverflow movielens sensitivity time sessions attention encodings "
for part in $parts; do
    [[ $known == *" $part "* ]] || {
        echo "paper: unknown part '$part'; the parts are:$known" >&2
        exit 2
    }
done
mkdir -p "$out"
cd "$out"
# A GPU where there is one: processes share it only where it is named.
if [ "$device" = auto ]; then
    device=cpu
    [ ! -e /dev/nvidiactl ] || device=cuda
fi
failed=0

# have FILE SOURCE OPTION...: imports SOURCE to FILE once; false where there is no SOURCE.
have()
{
    local file=$1 source=$2
    shift 2
    [ -e "$file" ] && return
    if [ ! -e "$source" ]; then
        echo "skipped: there is no $source"
        return 1
    fi
    "$lapse" import "$source" -o "$file" "$@" >/dev/null 2>import.log || {
        cat import.log
        return 1
    }
}

# table PLAN OPTION...: the table of a plan as PLAN.md and PLAN.json. One that fails does not stop the others.
table()
{
    local plan=$1
    shift
    echo "== $plan"
    local common=("$plans/$plan.json" --device "$device" --keep runs)
    [ -z "${SEEDS:-}" ] || common+=(--seeds "$SEEDS")
    if ! "$lapse" compare "${common[@]}" --format markdown -o "$plan.md" "$@" ||
        ! "$lapse" compare "${common[@]}" --format json -o "$plan.json"; then
        failed=1
        return
    fi
    cat "$plan.md"
}

stackoverflow() { have stackoverflow.lapse "$data/stackoverflow/events.csv.gz"; }
movielens() { have movielens.lapse "$data/ml-1m/events.csv.gz" --sequence user --time time --event item; }
sessions()
{
    [ -e sessions.csv ] || "$lapse" simulate --preset sessions -o sessions.csv --catalogue sessions-items.csv || return 1
    have sessions.lapse sessions.csv --event item --action action --field department --min-sequence-events 10 --min-users 5
}

# trained MODEL DATA OPTION...: trains a model once, with its log.
trained()
{
    local model=$1 events=$2
    shift 2
    [ -e "$model" ] || "$lapse" train "$events" -o "$model" --device "$device" --log "${model%.safetensors}.jsonl" "$@" >"${model%.safetensors}.txt"
}

for part in $parts; do
    case $part in
    stackoverflow) # table 2, first panel
        if stackoverflow; then table stackoverflow; fi
        ;;
    movielens) # table 2, second panel
        if movielens; then table movielens; table movielens-published; fi
        ;;
    sensitivity) # figures 1a, 1b and 5
        if movielens; then table movielens-invcdf; table movielens-harmonics; table movielens-dims; fi
        ;;
    time) # figure 4: one run at a time, so that seconds compare
        if movielens; then table movielens-time --curves figure-4.svg; fi
        ;;
    sessions) # table 2, third panel, and figure 6
        if sessions; then table sessions; table sessions-dims; else failed=1; fi
        ;;
    attention) # figures 2a to 2c, 7 and 8
        sessions && trained sessions.safetensors sessions.lapse --task recommend --target action=view --split-by session &&
            "$lapse" inspect sessions.safetensors sessions.lapse -o attention.html --figures attention \
                --log sessions.jsonl --case-studies 2 || failed=1
        ;;
    encodings) # figure 9
        if movielens; then
            for encoding in bochner mercer; do
                trained $encoding.safetensors movielens.lapse --task recommend --encoding $encoding --no-eval &&
                    "$lapse" kernel $encoding.safetensors --svg figure-9-$encoding.svg >figure-9-$encoding.txt || failed=1
            done
        fi
        ;;
    esac
done
echo "results are in $out"
exit $failed
