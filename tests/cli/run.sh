#!/usr/bin/env bash
# End-to-end tests of the tool: the exact output and the exit status of each command.
#
#   tests/cli/run.sh build/lapse [CASE...]            runs all cases, or those named
#   tests/cli/run.sh --record build/lapse [CASE...]   records the current output in the cases: read the diff
#
# A case is a file cases/NAME.t: a transcript that runs from top to bottom in a new folder with a copy of files/.
#
#   # a comment
#   $ lapse info nothing.lapse            a command for bash; \ at the end of a line continues it
#   | text                                its standard output
#   ! lapse: nothing.lapse: ...           its standard error
#   = 1                                   its exit status, if not 0
#
# Seconds and speeds differ from run to run and are replaced by N on both sides. Every command is one test. A case NAME_cuda.t uses the
# emulated GPU plugin next to the tool. It is skipped if there is no plugin, and under valgrind and sanitizers, which do not support the
# plugin's stacks. A case NAME_portable.t uses the kernels of any CPU: every digit is the same everywhere, except under
# sanitizers, where only exit statuses are compared. A case NAME_terminal.t uses script(1). It is skipped where there is no pseudo-terminal, as in a chroot without devpts.
set -u
export LC_ALL=C

record=
if [ "${1:-}" = --record ]; then
    record=yes
    shift
fi
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/cli/run.sh [--record] PATH-OF-LAPSE [CASE...]" >&2
    exit 2
fi
tool=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
export LAPSE_TESTS=${here%/cli} # for cases that use other tests' files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$tool" "$work/bin/lapse"
PATH=$work/bin:$PATH
passed=0
failed=0
skipped=0
plugin=$(dirname "$tool")/liblapse_cuda_emulated.so

# Replaces values that differ between two equal runs.
normalise() {
    sed -E -e 's#[0-9.]+ MB/s#N MB/s#g' \
        -e 's#[0-9.]+[kM]? events/s#N events/s#g' \
        -e 's#(in|after|events/s,) [0-9.]+ s\b#\1 N s#g' \
        -e 's#("seconds": )[0-9.e+-]+#\1N#g' \
        -e "s#$work#WORK#g"
}

# Runs $command in the case's folder and stores its transcript in $actual.
run_command() {
    # A command that hangs is killed with its children, and fails.
    (cd "$folder" && exec timeout -s KILL 120 bash -c "$command" >"$private.out" 2>"$private.err" </dev/null)
    local status=$?
    actual=$(
        normalise <"$private.out" | sed -e 's/^$/|/;t' -e 's/^/| /'
        # A last line without a newline would be joined with the next output.
        [ -s "$private.out" ] && [ -n "$(tail -c 1 "$private.out" | tr -d '\n')" ] && echo
        normalise <"$private.err" | sed -e 's/^$/!/;t' -e 's/^/! /'
        [ $status -ne 0 ] && echo "= $status"
    )
}

# What is compared where digits differ: sanitizers change the order in which loops add up.
statuses() {
    grep -E '^=|status' <<<"$1" | sed 's/[0-9]\{6,\}//'
}

# Compares $expected, the lines under $command, with its current output.
finish_command() {
    [ -n "$command" ] || return 0
    run_command
    if [ -n "$record" ]; then
        [ -n "$actual" ] && printf '%s\n' "$actual" >>"$private.recorded"
    elif [ "$actual" = "$expected" ] || { [ -n "$digits_differ" ] && [ "$(statuses "$actual")" = "$(statuses "$expected")" ]; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name: $command"
        diff <(printf '%s\n' "$expected") <(printf '%s\n' "$actual") | sed -n 's/^[<>]/    &/p'
    fi
    command=
}

# The transcript, standard output and standard error of a command are $private.*; the counts are left in $private.count.
run_case() {
    local line more
    name=$(basename "$1" .t)
    folder=$work/$name
    private=$work/private.$name
    digits_differ=
    [[ $name != *_portable ]] || digits_differ=${LAPSE_TEST_UNDER:-}
    command=
    cp -r "$here/files" "$folder"
    : >"$private.recorded"
    while IFS= read -r line <&3 || [ -n "$line" ]; do
        case $line in
        '$ '*)
            finish_command
            printf '%s\n' "$line" >>"$private.recorded"
            command=${line#'$ '}
            while [ "${command%\\}" != "$command" ] && IFS= read -r more <&3; do
                printf '%s\n' "$more" >>"$private.recorded"
                command=${command%\\}$more
            done
            expected=
            ;;
        '| '* | '|' | '! '* | '!' | '= '*)
            expected=$expected${expected:+$'\n'}$line
            ;;
        *)
            finish_command
            printf '%s\n' "$line" >>"$private.recorded"
            ;;
        esac
    done 3<"$1"
    finish_command
    [ -z "$record" ] || cp "$private.recorded" "$1"
    rm -rf "$folder"
    echo "$passed $failed" >"$private.count"
}

# Runs a case beside others, one for each core.
running=0
start_case() {
    [ $running -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
    run_case "$1" >"$work/private.$(basename "$1" .t).log" 2>&1 &
    running=$((running + 1))
}

if [ $# -eq 0 ]; then
    set -- "$here"/cases/*.t
else
    set -- "${@/#/$here/cases/}"
    set -- "${@/%/.t}"
fi
# skip CASE WHY
skip() {
    skipped=$((skipped + 1))
    echo "skipped $(basename "$1" .t): $2"
}
terminal=no
[ "$(script -qec 'test -t 1 && echo yes' /dev/null </dev/null 2>/dev/null | tr -d '\r')" = yes ] && terminal=yes
for case_file in "$@"; do
    case $case_file in
    *_cuda.t)
        if [ ! -e "$plugin" ]; then
            skip "$case_file" "there is no emulated GPU plugin"
        elif [ -n "${LAPSE_TEST_UNDER:-}" ]; then
            skip "$case_file" "the emulated GPU plugin does not run under $LAPSE_TEST_UNDER"
        else
            LAPSE_CUDA_PLUGIN=$plugin start_case "$case_file"
        fi
        ;;
    *_terminal.t)
        if [ $terminal = yes ]; then
            start_case "$case_file"
        else
            skip "$case_file" "there is no pseudo-terminal"
        fi
        ;;
    *_portable.t) LAPSE_CPU_LEVEL=portable OPENBLAS_CORETYPE=Prescott start_case "$case_file" ;;
    *) start_case "$case_file" ;;
    esac
done
wait
for case_file in "$@"; do
    private=$work/private.$(basename "$case_file" .t)
    [ -e "$private.log" ] || continue # skipped
    cat "$private.log"
    read -r more less <"$private.count" || { echo "FAILED $case_file: it did not end"; more=0 less=1; }
    passed=$((passed + more)) failed=$((failed + less))
done
if [ -n "$record" ]; then
    echo "recorded; read what changed with git diff"
    exit 0
fi
[ $skipped -eq 0 ] || skips=", $skipped skipped"
echo "$passed passed, $failed failed${skips:-}"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
