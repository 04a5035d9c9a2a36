#!/usr/bin/env bash
# Kills training without warning at random moments, resumes it each time, and compares the model with that of an undisturbed
# run: they must be the same file. At every moment the model and the checkpoint are whole or absent.
#
#   tests/resume/run.sh build/lapse [KILLS]
#
# KILLS is the number of kills in all (default: LAPSE_TEST_KILLS, or 15), shared out among the runs below: each loss of a
# recommender, a classifier, and an encoding whose frequencies are sampled. LAPSE_TEST_SEED repeats the moments of an earlier
# run, as far as the machine allows.
set -u
export LC_ALL=C
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -x "$1" ]; then
    echo "usage: tests/resume/run.sh PATH-OF-LAPSE [KILLS]" >&2
    exit 2
fi
tool=$(realpath "$1")
kills=${2:-${LAPSE_TEST_KILLS:-15}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
seed=${LAPSE_TEST_SEED:-$(date +%N | sed 's/^0*//')}
seed=$((${seed:-1} % 32768))
RANDOM=$seed
echo "seed $seed"
passed=0
failed=0

# The runs: a name, and the options that differ.
runs=(
    "classify --task classify"
    "softmax --task recommend --loss softmax"
    "bce --task recommend --loss bce --negatives popularity"
    "sampled-softmax --task recommend --loss sampled-softmax --negative-count 8"
    "bochner-invcdf --task classify --encoding bochner-invcdf --hidden 8 --frequency-samples 2"
)

# check WHAT COMMAND...: one test.
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name: $what"
        sed 's/^/   /' "$work/err"
    fi
}

# train MODEL THREADS [option...]
train() {
    local model=$1 threads=$2
    shift 2
    # shellcheck disable=SC2086 # word splitting is intended
    exec "$tool" train d.lapse -o "$model" --threads "$threads" --dims 8 --context 16 --periods 4 --batch 8 --epochs 4 \
        --learning-rate 0.01 --no-eval $options "$@" >/dev/null 2>err
}

# Whether the model is the undisturbed run's, or there is none.
whole_or_absent() {
    [ ! -e "$1" ] || cmp -s whole "$1"
}

# Whether there is no checkpoint, or one that can be read: it has a checksum over all its data, and its settings can be printed.
readable_or_absent() {
    [ ! -e "$1" ] || "$tool" info "$1" >/dev/null 2>err
}

# Whether the folder has only the files that belong there. A temporary file has a name only from the last sync of its data to its
# rename: a kill in between leaves it, whole and beside the old file. It is counted and removed.
nothing_else() {
    local file
    for file in *; do
        case $file in
        shop.csv | d.lapse | err | whole | once | killed | killed.checkpoint) ;;
        killed.*.tmp)
            leftovers=$((leftovers + 1))
            rm -f "$file"
            ;;
        *)
            echo "left behind: $file" >>err
            return 1
            ;;
        esac
    done
}

now() {
    date +%s%N
}

# kill_at_random: starts a run, kills it at a random moment within two thirds of its length, and checks what is left. The length
# follows the load of the machine: about three kills to a run that comes to its end.
kill_at_random() {
    local wait_for=$((length * RANDOM / 32768 / 1500)) pid status # microseconds
    train killed $((1 + RANDOM % 2)) --checkpoint-every 0s --resume &
    pid=$!
    sleep "$(printf '%d.%06d' $((wait_for / 1000000)) $((wait_for % 1000000)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    check "nothing is left behind" nothing_else
    if [ $status -eq 137 ]; then
        done_kills=$((done_kills + 1)) length=$((length * 11 / 10))
        # A kill may come after the model was written and before the process ended.
        check "the model is not there, or whole" whole_or_absent killed
        check "the checkpoint is not there, or whole" readable_or_absent killed.checkpoint
    else
        # It came to its end before the kill: one more model to compare, and a new start.
        check "a resumed run ends with 0" test $status -eq 0
        check "the model of a run killed and resumed" cmp -s whole killed
        ends=$((ends + 1)) length=$((length * 3 / 4))
    fi
    rm -f killed
}

name=setup options=
"$tool" simulate --preset shop --sequences 60 --days 60 --seed 3 -o shop.csv >/dev/null 2>err &&
    "$tool" import shop.csv -o d.lapse --event action,item >/dev/null 2>err
check "data to learn from" test $? -eq 0

all_kills=0 number=0 leftovers=0
for run in "${runs[@]}"; do
    name=${run%% *} options=${run#* }
    rm -f whole once
    (train whole 2 --checkpoint none)
    check "a run without checkpoints" test $? -eq 0
    begin=$(now)
    (train once 1 --checkpoint-every 0s)
    check "a run with a checkpoint at every step" cmp -s whole once
    check "a finished run leaves no checkpoint" test ! -e once.checkpoint
    length=$(($(now) - begin)) # nanoseconds
    measured=$((length / 1000000))
    number=$((number + 1))
    quota=$((kills * number / ${#runs[@]} - all_kills))
    done_kills=0 ends=0
    while [ $done_kills -lt $quota ]; do
        kill_at_random
    done
    all_kills=$((all_kills + done_kills))
    (train killed 2 --checkpoint-every 0s --resume)
    check "the last resumed run ends with 0" test $? -eq 0
    check "its model is the uninterrupted run's" cmp -s whole killed
    check "and leaves no checkpoint" test ! -e killed.checkpoint
    rm -f killed
    echo "$name: $done_kills kills, $((ends + 1)) runs to the end, $measured ms undisturbed"
done
echo "$all_kills of $kills kills; $leftovers temporary files left between link and rename"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
