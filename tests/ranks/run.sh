#!/usr/bin/env bash
# Trains on several ranks under mpirun, and compares the model with that of one process: they must be the same file. Then makes ranks
# disagree, kills, stops and cuts them off, and resumes on other numbers of ranks.
#
#   tests/ranks/run.sh build/lapse [FAULTS [faults]]
#
# FAULTS is the number of killed and stopped ranks (default: LAPSE_TEST_KILLS, or 4); with "faults" nothing else is tested. Every MPI library that has an mpirun of its own is
# tested. A network is cut between two namespaces, which needs root.
set -u
export LC_ALL=C
if [ $# -lt 1 ] || [ $# -gt 3 ] || [ ! -x "$1" ]; then
    echo "usage: tests/ranks/run.sh PATH-OF-LAPSE [FAULTS [faults]]" >&2
    exit 2
fi
tool=$(realpath "$1")
faults=${2:-${LAPSE_TEST_KILLS:-4}}
work=$(mktemp -d)
token=ranks-$$
export LAPSE_TEST_RUN=$token OMP_NUM_THREADS=1
passed=0 failed=0 skipped=0

# Processes of this run, by the variable that they inherit: those of lapse alone, or all.
processes()
{
    local environment process
    for environment in /proc/[0-9]*/environ; do
        process=${environment%/environ} process=${process#/proc/}
        [ "$process" != $$ ] && grep -qsz "^LAPSE_TEST_RUN=$token\$" "$environment" &&
            { [ "$1" = all ] || [ "$(cat "/proc/$process/comm" 2>/dev/null)" = lapse ]; } && echo "$process"
    done
}

finish()
{
    local process
    for process in $(processes all); do
        [ "$process" = "$BASHPID" ] || kill -9 "$process" 2>/dev/null
    done
    ip netns del "lapse-a$$" 2>/dev/null
    ip netns del "lapse-b$$" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 2

# check WHAT COMMAND...: one test.
check()
{
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        grep -a lapse: err | tail -n 3
    fi
}

skip()
{
    skipped=$((skipped + 1))
    echo "skipped: $1"
}

summary()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
}

# The launchers, with the variable that names a rank.
launchers=()
if command -v mpirun.openmpi >/dev/null; then
    launchers+=("openmpi OMPI_COMM_WORLD_RANK mpirun.openmpi --oversubscribe")
    command -v mpirun.mpich >/dev/null && launchers+=("mpich PMI_RANK mpirun.mpich")
elif command -v mpirun >/dev/null; then
    mpirun --version | grep -q "Open MPI" && launchers+=("openmpi OMPI_COMM_WORLD_RANK mpirun --oversubscribe") ||
        launchers+=("mpich PMI_RANK mpirun")
fi
if [ ${#launchers[@]} -eq 0 ] || ! compgen -G "$(dirname "$tool")/liblapse_mpi*.so" >/dev/null; then
    skip "no mpirun, or Lapse was built without mpicc: several ranks are not tested"
    summary
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$tool" simulate --preset shop --sequences 200 --seed 3 -o shop.csv 2>err || exit 2
"$tool" import shop.csv -o classes.lapse --event action,item >/dev/null 2>err || exit 2
"$tool" import shop.csv -o items.lapse --event item >/dev/null 2>err || exit 2
common="--dims 8 --context 16 --batch 32 --epochs 2 --learning-rate 0.01"

# choose LAUNCHER: sets name, variable and launcher.
choose()
{
    read -r name variable launcher <<<"$1"
}

# on RANKS [command...]: under the launcher.
on()
{
    local ranks=$1
    shift
    # shellcheck disable=SC2086 # the launcher is several words
    timeout -k 5 "${LIMIT:-120}" $launcher -n "$ranks" "$@" >out 2>err
}

# ------------------------------------------------------------------------------------------------- the same bytes ----
same_model()
{
    rm -f ranks.st
    # shellcheck disable=SC2086
    on "$1" "$tool" train $2 -o ranks.st --threads "$3" $common && cmp -s one.st ranks.st
}
test_bytes()
{

runs=(
    "classes.lapse --task classify --periods 4"
    "classes.lapse --task classify --encoding bochner-invcdf --hidden 8 --frequency-samples 2"
    "classes.lapse --task classify --model lstm"
    "classes.lapse --task classify --when --periods 4"
    "items.lapse --task recommend --loss bce --negatives popularity --periods 4"
    "items.lapse --task recommend --loss sampled-softmax --negative-count 8 --periods 4 --shards 7"
    "items.lapse --task recommend --loss softmax --periods 4 --ema-decay 0.5"
)
for run in "${runs[@]}"; do
    # shellcheck disable=SC2086
    "$tool" train $run -o one.st --threads 1 $common >/dev/null 2>err || check "$run" false
    choose "${launchers[0]}"
    for ranks in 2 3 4; do
        for threads in 1 2; do
            check "$name, $ranks ranks of $threads threads: $run" same_model $ranks "$run" $threads
        done
    done
    for other in "${launchers[@]:1}"; do
        choose "$other"
        check "$name, 3 ranks: $run" same_model 3 "$run" 1
    done
done
same_scores()
{
    "$tool" eval one.st "$1" --json --threads 1 >scores 2>err && on 3 "$tool" eval one.st "$1" --json && cmp -s scores out
}
same_table()
{
    local options="--models attention,markov --encodings mercer,position --seeds 2 --dims 8 --context 16 --epochs 1"
    # shellcheck disable=SC2086
    "$tool" compare classes.lapse $options --keep alone >table 2>err &&
        on 3 "$tool" compare classes.lapse $options --keep shared && cmp -s <(timeless table) <(timeless out)
}
timeless()
{
    sed -E 's/ +[0-9.]+ s//g; s/ +/ /g' "$1"
}
choose "${launchers[0]}"
check "the table of a comparison" same_table
check "scores of a recommender" same_scores items.lapse
# shellcheck disable=SC2086
"$tool" train ${runs[3]} -o one.st --threads 1 $common >/dev/null 2>err
check "scores of a model of events and times" same_scores classes.lapse
common="$common --shards 2"
# shellcheck disable=SC2086
"$tool" train ${runs[4]} -o one.st --threads 1 $common >/dev/null 2>err
check "more ranks than shards" same_model 3 "${runs[4]}" 1
}

# Item tables divided by rows: the same model and the same scores, of which each rank has a part.
divided=(
    "--loss sampled-softmax --periods 4 --item-output separate --ema-decay 0.5 --clip 0.1 --l2 0.01"
    "--loss bce --periods 4 --when"
    "--loss bce --model transrec --shards 3"
)
same_divided_scores()
{
    "$tool" eval one.st goods.lapse --json --threads 1 >scores 2>err && on 3 "$tool" eval one.st goods.lapse --json --shard-items && cmp -s scores out
}
says_why_not()
{
    ! on 2 "$tool" train goods.lapse -o bad.st --task recommend --loss softmax --shard-items --epochs 1 &&
        grep -q "lapse: --shard-items needs a network with --task recommend and a loss that samples items" err
}
test_divided()
{
    local run name launcher variable
    "$tool" simulate --preset catalogue --items 3000 --sequences 300 --days 200 --seed 3 -o goods.csv >/dev/null 2>&1 || exit 2
    "$tool" import goods.csv -o goods.lapse >/dev/null 2>err || exit 2
    choose "${launchers[${#launchers[@]} - 1]}"
    for run in "${divided[@]}"; do
        # shellcheck disable=SC2086
        "$tool" train goods.lapse --task recommend $run -o one.st --threads 1 $common >/dev/null 2>err || check "$run" false
        check "divided, 2 ranks: $run" same_model 2 "goods.lapse --task recommend $run --shard-items" 2
        check "divided, 3 ranks: $run" same_model 3 "goods.lapse --task recommend $run --shard-items" 1
        check "divided: scores of $run" same_divided_scores
    done
    check "divided: a loss that reads whole tables" says_why_not
}

# Predictions in parts, and a search whose ranks share its trials.
same_predictions()
{
    rm -f parts.csv*
    "$tool" predict one.st "$1" ${2:-} --csv -o whole.csv --threads 1 2>err || return 1
    # shellcheck disable=SC2086
    on 3 "$tool" predict one.st "$1" ${2:-} --csv -o parts.csv && cat parts.csv.part-0000[012] | cmp -s - whole.csv
}
tunes()
{
    on 2 "$tool" tune classes.lapse -o tuned.st --budget 60s --trials 3 --dims 8 --context 16 --epochs 2 --periods 4 &&
        [ "$("$tool" info tuned.st --json | grep -c 'tune.trial')" -ge 1 ] && [ ! -e tuned.st.trials ]
}
test_work()
{
    choose "${launchers[0]}"
    # shellcheck disable=SC2086
    "$tool" train items.lapse --task recommend -o one.st --epochs 1 --dims 8 --periods 4 --when --no-eval >/dev/null 2>err || check "a model of times" false
    check "predictions in parts" same_predictions items.lapse "--at +1h --top 3"
    check "predictions of times in parts" same_predictions items.lapse --when
    check "a search on ranks" tunes
}

# ----------------------------------------------------------------------------------------------- ranks disagree ------
test_disagreement()
{
# says WHAT PATTERN LEFT : RIGHT: two ranks with different arguments end with this sentence.
says()
{
    local pattern=$1 left=$2 right=$3 variable=${4:-LAPSE_TEST_RUN=$token}
    # shellcheck disable=SC2086
    ! timeout 60 $launcher -n 1 "$tool" train $left -o bad.st : -n 1 env "$variable" "$tool" train $right -o bad.st >out 2>err &&
        grep -qE "^(lapse: |)$pattern" err && [ ! -e bad.st ]
}
quick="--task classify --dims 8 --context 16 --batch 32 --epochs 1 --periods 4"
check "other seeds" says "lapse: ranks 0 and 1 disagree: --seed is '1' on rank 0 and '2' on rank 1" \
    "classes.lapse $quick --seed 1" "classes.lapse $quick --seed 2"
check "other data" says "lapse: ranks 0 and 1 disagree: data is '.* events, fingerprint" "classes.lapse $quick" "items.lapse $quick"
check "another CPU level" says "lapse: ranks 0 and 1 disagree: cpu-level is '.*LAPSE_CPU_LEVEL" \
    "classes.lapse $quick" "classes.lapse $quick" LAPSE_CPU_LEVEL=portable
check "data that one rank lacks" says "lapse: rank 1: none.lapse: cannot open" "classes.lapse $quick" "none.lapse $quick"
# prints LINES ARGUMENT...: three ranks fail, and print so many lines in all.
prints()
{
    local lines=$1
    shift
    ! on 3 "$tool" "$@" && [ "$(grep -c "^lapse: " err)" -eq "$lines" ]
}
check "an error of all ranks is printed once" prints 1 train none.lapse -o bad.st
check "a verb of one process" prints 2 import shop.csv -o bad.lapse

other_plugin()
{
    ! LAPSE_MPI_PLUGIN=$(dirname "$tool")/liblapse_mpi_mpich.so on 2 "$tool" train classes.lapse -o bad.st --epochs 1 &&
        grep -q "but the MPI library sees 1: the launcher is not that of MPICH" err
}
no_plugin()
{
    ! LAPSE_MPI_PLUGIN=$PWD/none.so on 2 "$tool" train classes.lapse -o bad.st --epochs 1 &&
        grep -q "started 2 processes .*, but MPI cannot be used: LAPSE_MPI_PLUGIN: the plugin could not be opened" err
}
[ ${#launchers[@]} -lt 2 ] || check "a plugin of another MPI library" other_plugin
check "no plugin" no_plugin
}
if [ "${3:-}" != faults ]; then
    test_bytes
    common=${common% --shards 2}
    test_divided
    test_work
    test_disagreement
fi

# -------------------------------------------------------------------------------------------------------- faults -----
long="classes.lapse -o f.st --task classify --threads 1 --dims 16 --context 64 --periods 4 --batch 32 --epochs 400 --patience 400 --no-eval --checkpoint-every 0.2s"
# shellcheck disable=SC2086
"$tool" train ${long/-o f.st/-o whole.st} >/dev/null 2>err || exit 2

rank_process()
{
    local process
    for process in $(processes lapse); do
        grep -qsz "^$variable=$1\$" "/proc/$process/environ" && echo "$process"
    done
}

# Whether no process of lapse is left after at most 60 s, and a sentence names the rank: the launcher's may come later.
ended()
{
    local turn
    for ((turn = 0; turn < 600; turn++)); do
        [ -n "$(processes lapse)" ] || break
        sleep 0.1
    done
    [ "$turn" -lt 600 ] || return 1
    for ((turn = 0; turn < 200; turn++)); do
        grep -qaE "rank $1 (did not answer|with PID)|BAD TERMINATION" err out && return
        sleep 0.1
    done
    return 1
}

# fault SIGNAL RANK RANKS: hits a rank in the middle of a run, then resumes on another number of ranks.
fault()
{
    local signal=$1 rank=$2 ranks=$3 turn victim
    rm -f f.st f.st.checkpoint
    # shellcheck disable=SC2086
    LAPSE_COMM_TIMEOUT=5 timeout -k 5 600 $launcher -n "$ranks" "$tool" train $long >out 2>err &
    for ((turn = 0; turn < 1200; turn++)); do
        [ -e f.st.checkpoint ] && break
        sleep 0.05
    done
    sleep "0.$((RANDOM % 10))"
    victim=$(rank_process "$rank")
    kill "-$signal" "$victim" 2>/dev/null || { echo "lapse: no rank $rank: the run was over" >>err; return 1; }
    ended "$rank" || { echo "lapse: not ended, or rank $rank not named" >>err; return 1; }
    wait
    # shellcheck disable=SC2086
    LIMIT=600 on $((ranks - 1)) "$tool" train $long --resume || { echo "lapse: not resumed" >>err; return 1; }
    cmp whole.st f.st >>err
}
signals=(STOP KILL)
for ((i = 0; i < faults; i++)); do
    choose "${launchers[i / 2 % ${#launchers[@]}]}"
    rank=$((RANDOM % 3))
    check "$name: ${signals[i % 2]} of rank $rank of 3, resumed on 2" fault "${signals[i % 2]}" $rank 3
done

# The same with divided item tables.
divided_fault()
{
    local long="goods.lapse -o f.st --task recommend --loss sampled-softmax --threads 1 --periods 4 --dims 8 --context 16 --batch 8 --no-eval --epochs 60 --patience 60 --checkpoint-every 0.1s"
    # shellcheck disable=SC2086
    "$tool" train ${long/-o f.st/-o whole.st} >/dev/null 2>err || return 1
    long="$long --shard-items"
    fault KILL 1 3
}
if [ "${3:-}" != faults ]; then
    check "divided: KILL of rank 1 of 3, resumed on 2" divided_fault
fi

# cut: two hosts that are namespaces, whose network is cut.
cut_network()
{
    local turn
    cat >agent <<AGENT
#!/bin/bash
# agent HOST COMMAND...: runs a command on the other host
shift
exec ip netns exec lapse-b$$ bash -c "\$*"
AGENT
    chmod +x agent
    rm -f f.st f.st.checkpoint
    # shellcheck disable=SC2086
    LAPSE_COMM_TIMEOUT=5 timeout -k 5 60 ip netns exec "lapse-a$$" $launcher --mca plm_rsh_agent "$PWD/agent" --mca btl tcp,self \
        --mca btl_tcp_if_include 10.99.7.0/24 --mca oob_tcp_if_include 10.99.7.0/24 -x LAPSE_COMM_TIMEOUT -x LAPSE_TEST_RUN \
        --wdir "$PWD" --host 10.99.7.1:1,10.99.7.2:1 -n 2 "$tool" train $long --epochs 4000 --patience 4000 >out 2>err &
    disown
    for ((turn = 0; turn < 200; turn++)); do
        [ -e f.st.checkpoint ] && break
        sleep 0.1
    done
    ip -n "lapse-a$$" link set va down
    ended 1 && [ -s f.st.checkpoint ] && "$tool" info f.st.checkpoint >/dev/null
}
choose "${launchers[0]}"
if [ "$name" = openmpi ] && ip netns add "lapse-a$$" 2>/dev/null && ip netns add "lapse-b$$" &&
    ip link add va netns "lapse-a$$" type veth peer name vb netns "lapse-b$$" 2>/dev/null; then
    host=1
    for side in a b; do
        ip -n "lapse-$side$$" addr add 10.99.7.$host/24 dev v$side
        ip -n "lapse-$side$$" link set v$side up
        ip -n "lapse-$side$$" link set lo up
        host=$((host + 1))
    done
    check "the network between two ranks is cut" cut_network
else
    skip "no network namespaces (root and Open MPI): no network is cut"
fi
summary
