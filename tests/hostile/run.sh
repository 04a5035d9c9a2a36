#!/usr/bin/env bash
# Whole commands under attack: comparisons and searches that are killed, that share a folder, or whose records were changed; the largest
# learning rates; a full disk and a folder that cannot be written, for each verb that writes.
#
#   tests/hostile/run.sh build/lapse [PART...]
#
# PART is kills, writers, records, rates or disk; all of them by default. LAPSE_TEST_SEED repeats the random numbers of an earlier run, as
# far as the machine allows. The files beside this script are inputs of other tests.
set -u
export LC_ALL=C
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/hostile/run.sh PATH-OF-LAPSE [PART...]" >&2
    exit 2
fi
tool=$(realpath "$1")
files=$(cd "$(dirname "$0")/../cli/files" && pwd)
shift
parts=${*:-kills writers records rates disk}
work=$(mktemp -d)
mounted=
trap '[ -z "$mounted" ] || umount "$mounted"; rm -rf "$work"' EXIT
cp "$files"/* "$work" && cd "$work" || exit 2
seed=${LAPSE_TEST_SEED:-$(date +%N | sed 's/^0*//')}
seed=$((${seed:-1} % 32768))
RANDOM=$seed
echo "seed $seed"
passed=0
failed=0
skipped=0

# check WHAT COMMAND...: one test. The standard error of the command under attack is in err.
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        sed 's/^/   /' err | head -5
    fi
}

small="--dims 8 --context 8 --periods 2 --batch 4 --threads 1"
# shellcheck disable=SC2086 # word splitting is intended
compare() { # OUT KEEP [option...]
    local out=$1 keep=$2
    shift 2
    "$tool" compare events.lapse --models attention,lstm,markov --seeds 2 --epochs 30 --patience 30 --no-times --parallel 2 --keep "$keep" \
        --format csv -o "$out" $small "$@" >/dev/null 2>err
}

# shellcheck disable=SC2086
tune() { # MODEL KEEP [option...]
    local model=$1 keep=$2
    shift 2
    "$tool" tune events.lapse -o "$model" --trials 4 --budget 10m --parallel 2 --epochs 20 --keep "$keep" $small "$@" >/dev/null 2>err
}

# The status of a command that ended with an error, rather than by a signal, and said why.
is_refusal() { # STATUS
    [ "$1" -eq 1 ] && grep -q '^lapse: .' err
}

# Starts "$@", kills it and its children at a random moment within $1 milliseconds.
kill_within() {
    local most=$1 pid
    shift
    set -m
    "$@" &
    pid=$!
    set +m
    sleep "$(printf '0.%03d' $((RANDOM % most)))"
    kill -9 -- -$pid 2>/dev/null
    wait $pid 2>/dev/null
}

kills() {
    local i
    compare whole.csv whole.runs
    check "an undisturbed comparison" test $? -eq 0
    for i in 1 2 3 4 5 6; do
        kill_within 400 compare killed.csv killed.runs
        check "a killed comparison leaves its table whole or absent" eval '[ ! -e killed.csv ] || cmp -s killed.csv whole.csv'
        rm -f killed.csv
    done
    compare killed.csv killed.runs
    check "a killed comparison continues" test $? -eq 0
    check "with the same table" cmp -s killed.csv whole.csv
    tune whole.st whole.trials
    check "an undisturbed search" test $? -eq 0
    for i in 1 2 3 4; do
        kill_within 400 tune killed.st killed.trials
        check "a killed search leaves a model that loads, or none" eval '[ ! -e killed.st ] || "$tool" info killed.st >/dev/null 2>err'
    done
    tune killed.st killed.trials
    check "a killed search continues" test $? -eq 0
    check "with a model that predicts" eval '"$tool" predict killed.st history.csv --at +1h >/dev/null 2>err'
}

writers() {
    local first second
    compare whole.csv whole.runs
    compare one.csv shared.runs &
    first=$!
    compare two.csv shared.runs &
    second=$!
    wait $first
    check "the first of two comparisons in one folder" test $? -eq 0
    wait $second
    check "the second of them" test $? -eq 0
    check "both have the table of one" eval 'cmp -s one.csv whole.csv && cmp -s two.csv whole.csv'
    tune one.st shared.trials &
    first=$!
    tune two.st shared.trials &
    second=$!
    wait $first
    check "the first of two searches in one folder" test $? -eq 0
    wait $second
    check "the second of them" test $? -eq 0
    check "both models load" eval '"$tool" info one.st >/dev/null 2>err && "$tool" info two.st >/dev/null 2>err'
}

# mutate FILE: changes a byte, cuts the file, repeats a part of it, empties it, or makes it a folder.
mutate() {
    local size at
    size=$(stat -c %s "$1")
    at=$((RANDOM % (size > 0 ? size : 1)))
    case $((RANDOM % 6)) in
    0) printf "\\x$(printf %02x $((RANDOM % 256)))" | dd of="$1" bs=1 seek=$at conv=notrunc status=none ;;
    1) printf '%d' $((RANDOM % 10)) | dd of="$1" bs=1 seek=$at conv=notrunc status=none ;;
    2) truncate -s $at "$1" ;;
    3) head -c $at "$1" >part && cat part >>"$1" ;;
    4) : >"$1" ;;
    5) rm "$1" && mkdir "$1" ;;
    esac
}

# No result of a changed record: the table is that of the runs, or an error names the file.
records() {
    local i status names name
    compare whole.csv whole.runs
    tune whole.st whole.trials
    for i in $(seq 40); do
        rm -rf bad.runs bad.csv
        cp -r whole.runs bad.runs
        names=(bad.runs/*.json)
        name=${names[RANDOM % ${#names[@]}]}
        mutate "$name"
        compare bad.csv bad.runs
        status=$?
        if [ $status -eq 0 ]; then
            check "a changed record does not change the table" cmp -s bad.csv whole.csv
        else
            check "a changed record is refused by name" eval 'is_refusal $status && grep -q "$name" err'
            check "and the table is not written" test ! -e bad.csv
        fi
    done
    for i in $(seq 16); do
        rm -rf bad.trials bad.st
        cp -r whole.trials bad.trials
        mapfile -t names < <(find bad.trials -type f ! -name lock)
        mutate "${names[RANDOM % ${#names[@]}]}"
        tune bad.st bad.trials
        status=$?
        check "a changed trial: a model that loads, or an error" eval \
            'if [ $status -eq 0 ]; then "$tool" info bad.st >/dev/null 2>err; else is_refusal $status && [ ! -e bad.st ]; fi'
    done
}

# The largest learning rates: a model whose predictions are finite, or an error that says that training diverged.
rates() {
    local model rate status
    for model in attention sasrec lstm gru4rec rnn-attention rmtpp timejoint caser transrec; do
        for rate in 10 1 0.3; do
            rm -f wild.st
            # shellcheck disable=SC2086
            "$tool" train events.lapse -o wild.st --model $model --learning-rate $rate --clip 1e9 --epochs 4 --no-eval $small --json >out 2>err
            status=$?
            if grep -q "one task: recommend\|recommend" err && [ $status -eq 2 ]; then
                # shellcheck disable=SC2086
                "$tool" train events.lapse -o wild.st --task recommend --model $model --learning-rate $rate --clip 1e9 --epochs 4 --no-eval \
                    $small --json >out 2>err
                status=$?
            fi
            if [ $status -eq 0 ]; then
                check "$model at $rate: finite predictions" eval \
                    '"$tool" predict wild.st history.csv --at +1h --csv >answer 2>err && ! grep -qi "nan\|inf" answer'
            else
                check "$model at $rate: an error that says so" eval 'is_refusal $status && grep -q diverged err && [ ! -e wild.st ]'
            fi
        done
    done
}

# Each verb that writes, with its output in the folder $1.
verbs() {
    cat <<END
import events.csv -o $1/out
train events.lapse -o $1/out --epochs 1 --no-eval $small
train events.lapse -o $1/out --model markov --no-eval
train events.lapse -o good.st --epochs 1 --no-eval --log $1/log $small
pretrain events.lapse -o $1/out --dims 8 --epochs 1
compare events.lapse --models markov --seeds 1 --keep none -o $1/out
compare events.lapse --models markov --seeds 1 --keep $1/runs
tune events.lapse -o $1/out --trials 1 --epochs 1 $small
predict model.st history.csv --at +1h --csv -o $1/out
predict model.st history.csv --when --now 2026-03-01 -o $1/out
forecast model.st history.csv --horizon 1h --samples 5 -o $1/out
inspect model.st events.lapse -o $1/out --bootstrap 0
inspect model.st --figures $1/figures
kernel model.st --svg $1/out
simulate --sequences 5 --days 10 -o $1/out
demo --keep $1
END
}

# Each verb fails with the reason, leaves nothing in the folder and its inputs as they were.
attack() { # FOLDER REASON
    local folder=$1 reason=$2 line status before
    before=$(md5sum events.csv events.lapse model.st history.csv)
    while IFS= read -r line; do
        # shellcheck disable=SC2086
        timeout 120 "$tool" $line >out 2>err </dev/null
        status=$?
        check "$reason: ${line%% *} says so: $line" eval 'is_refusal $status && grep -qi "$reason" err'
        check "$reason: ${line%% *} leaves no temporary file" eval '[ -z "$(find "$folder" -name "*.tmp" -o -name "out*")" ]'
        find "$folder" -mindepth 1 ! -name ballast -delete 2>/dev/null
    done < <(verbs "$folder")
    check "$reason: inputs are as they were" test "$before" = "$(md5sum events.csv events.lapse model.st history.csv)"
}

disk() {
    # shellcheck disable=SC2086
    "$tool" train events.lapse -o model.st --when --when-components 2 --epochs 1 --no-eval $small >out 2>err
    check "a model to write about" test $? -eq 0
    mkdir -p disk
    if ! mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
        skipped=$((skipped + 1))
        echo "skipped disk: cannot mount a small file system"
        return
    fi
    mounted=$work/disk
    dd if=/dev/zero of=disk/ballast bs=4k count=64 status=none 2>/dev/null
    attack disk "no space left"
    mount -o remount,ro disk
    attack disk "read-only file system"
    umount disk && mounted=
}

"$tool" import events.csv -o events.lapse >/dev/null 2>err
check "data" test $? -eq 0
for part in $parts; do
    $part
done
[ $skipped -eq 0 ] || skips=", $skipped skipped"
echo "$passed passed, $failed failed${skips:-}"
[ "$failed" -eq 0 ]
