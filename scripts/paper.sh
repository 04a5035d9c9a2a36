#!/bin/bash
# paper.sh: remakes the tables and figures of the paper (docs/paper.md) in the folder build/paper, from the plans in bench/paper.
#
#   scripts/paper.sh [PART ...]     stackoverflow movielens sessions sensitivity time search attention encodings (default: all)
#   scripts/paper.sh page           takes the results of build/paper to bench/results/paper, and writes docs/paper.md from these
#
# DEVICE=cpu|cuda|auto (default auto), SEEDS=N for fewer or more than the plans have, DATA=FOLDER for the data, OUT=FOLDER for the
# results, LAPSE=FILE for another tool, LIMIT=SECONDS to stop in time. Finished runs are kept in OUT, so a call that was stopped
# continues; a table is written when all of its runs are there.
set -eu
cd "$(dirname "$0")/.."
lapse=$(realpath "${LAPSE:-build/lapse}")
plans=$PWD/bench/paper
data=$(realpath -m "${DATA:-../shared/data}")
out=$(realpath -m "${OUT:-build/paper}")
device=${DEVICE:-auto}
parts=${*:-stackoverflow movielens sessions sensitivity time search attention encodings}
known=" stackoverflow movielens sessions sensitivity time search attention encodings page "
for part in $parts; do
    [[ $known == *" $part "* ]] || {
        echo "paper: unknown part '$part'; the parts are:$known" >&2
        exit 2
    }
done
mkdir -p "$out"
if [ "$parts" = page ]; then
    python3 scripts/paper_results.py "$out" bench/results/paper
    exec python3 scripts/paper_page.py docs/paper.md
fi
cd "$out"
# A GPU where there is one: processes share it only where it is named.
if [ "$device" = auto ]; then
    device=cpu
    [ ! -e /dev/nvidiactl ] || device=cuda
fi
failed=0
# What the tables say of themselves: the machine and the commit.
machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
[ "$device" = cpu ] || machine="$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1), $machine"
printf '{"machine": "%s, %s cores", "lapse": "%s"}\n' "$machine" "$(nproc)" "$("$lapse" --version | head -1)" >machine.json

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

# table PLAN OPTION...: the table of a plan as PLAN.json. One that fails or is stopped does not stop the others.
table()
{
    local plan=$1 common limit=()
    shift
    if [ -n "${LIMIT:-}" ]; then
        [ "$SECONDS" -lt "$LIMIT" ] || return 0
        limit=(timeout --signal=INT $((LIMIT - SECONDS)))
    fi
    echo "== $plan, $SECONDS s"
    common=("$plans/$plan.json" --device "$device" --keep runs --bootstrap 2000)
    [ -z "${SEEDS:-}" ] || common+=(--seeds "$SEEDS")
    "${limit[@]}" "$lapse" compare "${common[@]}" --format json --pairs --cells -o "$plan.json" "$@" 2>"$plan.log" || failed=1
    tail -1 "$plan.log"
    cp machine.json "$plan.machine"
}

stackoverflow() { have stackoverflow.lapse "$data/stackoverflow/events.csv.gz"; }
movielens() { have movielens.lapse "$data/ml-1m/events.csv.gz" --sequence user --time time --event item; }
sessions()
{
    [ -e sessions.csv ] || "$lapse" simulate --preset sessions -o sessions.csv --catalogue sessions-items.csv || return 1
    # Each session is a sequence, as in the paper.
    have sessions.lapse sessions.csv --event item --action action --field department --min-sequence-events 10 --min-users 5 \
        --session-gap 30m || return 1
    [ -e sessions-vectors.safetensors ] || "$lapse" pretrain sessions.lapse -o sessions-vectors.safetensors \
        --catalogue sessions-items.csv --dims 100 --split-by time >pretrain.txt
}

# trained MODEL DATA OPTION...: trains a model once, with its log.
trained()
{
    local model=$1 events=$2
    shift 2
    [ -e "$model" ] || "$lapse" train "$events" -o "$model" --device "$device" --log "${model%.safetensors}.jsonl" "$@" >"${model%.safetensors}.txt"
}

stackoverflow_table() { if stackoverflow; then table "$@"; fi; }
movielens_table() { if movielens; then table "$@"; fi; }
sessions_table() { if sessions; then table "$@"; else failed=1; fi; }

for part in $parts; do
    case $part in
    stackoverflow) # table 2, first panel
        stackoverflow_table stackoverflow
        ;;
    movielens) # table 2, second panel
        movielens_table movielens
        ;;
    sessions) # table 2, third panel
        sessions_table sessions
        ;;
    sensitivity) # figures 1a, 1b, 5 and 6
        for plan in invcdf harmonics time-dims dims; do movielens_table movielens-$plan; done
        for plan in invcdf time-dims; do sessions_table sessions-$plan; done
        ;;
    time) # figure 4: one run at a time, so that seconds compare
        movielens_table movielens-time --curves figure-4.svg
        ;;
    search) # Mercer's k; blocks and heads
        for plan in k blocks; do
            stackoverflow_table stackoverflow-$plan
            movielens_table movielens-$plan
        done
        ;;
    attention) # figures 2a to 2c, 7 and 8
        sessions && trained sessions.safetensors sessions.lapse --task recommend --target action=view &&
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
echo "results are in $out, $SECONDS s"
exit $failed
