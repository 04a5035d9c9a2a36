#!/usr/bin/env bash
# Kills training without warning at random moments, resumes it each time, and compares the model with that of a run nobody
# disturbed: they must be the same file.
#
#   tests/resume/run.sh build/lapse
#
# LAPSE_TEST_SEED repeats the moments of an earlier run, as far as the machine allows.
set -u
export LC_ALL=C
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/resume/run.sh PATH-OF-LAPSE" >&2
    exit 2
fi
tool=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
kills=20
seed=${LAPSE_TEST_SEED:-$(date +%N | sed 's/^0*//')}
seed=$((${seed:-1} % 32768))
RANDOM=$seed
echo "seed $seed"
passed=0
failed=0

# check WHAT COMMAND...: one test.
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        sed 's/^/   /' "$work/err"
    fi
}

# train MODEL THREADS [option...]
train() {
    local model=$1 threads=$2
    shift 2
    exec "$tool" train d.lapse -o "$model" --threads "$threads" --dims 8 --context 16 --periods 4 --harmonics 2 --batch 8 \
        --epochs 4 --learning-rate 0.01 --no-eval "$@" >/dev/null 2>err
}

whole_or_absent() {
    [ ! -e "$1" ] || cmp -s whole "$1"
}

now() {
    date +%s%N
}

"$tool" simulate --preset shop --sequences 60 --days 60 --seed 3 -o shop.csv >/dev/null 2>err &&
    "$tool" import shop.csv -o d.lapse --event action,item >/dev/null 2>err
check "data to learn from" test $? -eq 0
(train whole 2 --checkpoint none)
check "a run without checkpoints" test $? -eq 0
begin=$(now)
(train once 1 --checkpoint-every 0s)
check "a run with a checkpoint at every step" cmp -s whole once
check "a finished run leaves no checkpoint" test ! -e once.checkpoint
length=$(($(now) - begin)) # nanoseconds

# Moments spread over two thirds of a run, so that several kills fall into each and all parts of it are met.
done_kills=0 ends=0
while [ $done_kills -lt $kills ]; do
    wait_for=$((length * RANDOM / 32768 / 1500)) # microseconds
    train killed $((1 + RANDOM % 2)) --checkpoint-every 0s --resume &
    pid=$!
    sleep "$(printf '%d.%06d' $((wait_for / 1000000)) $((wait_for % 1000000)))"
    if kill -9 $pid 2>/dev/null; then
        wait $pid 2>/dev/null
        status=$?
    else
        wait $pid
        status=$?
    fi
    if [ $status -eq 137 ]; then
        done_kills=$((done_kills + 1))
        # A kill may come after the model was written and before the process ended.
        check "the model is not there, or whole" whole_or_absent killed
        rm -f killed
    else
        # It came to its end before the kill: one more model to compare, and a new start.
        check "a resumed run ends with 0" test $status -eq 0
        check "the model of a run killed and resumed" cmp -s whole killed
        ends=$((ends + 1))
        rm -f killed
    fi
done
(train killed 2 --checkpoint-every 0s --resume)
check "the last resumed run ends with 0" test $? -eq 0
check "its model is the uninterrupted run's" cmp -s whole killed
check "and leaves no checkpoint" test ! -e killed.checkpoint
echo "$done_kills kills, $((ends + 1)) runs to the end, $((length / 1000000)) ms each undisturbed"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
