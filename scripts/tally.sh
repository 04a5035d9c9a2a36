# tally.sh: counts passed, failed and skipped tests of every test program. Sourced by test.sh and tests/scripts/run.sh.
# shellcheck shell=bash

passed=0 failed=0 skipped=0
failures=()

# tally_add PASSED FAILED SKIPPED
tally_add()
{
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# tally_fail NAME WHY
tally_fail()
{
    tally_add 0 1 0
    failures+=("$step_name: $1: $2")
    echo "   FAILED $1: $2"
}

# tally_skip NAME WHY
tally_skip()
{
    tally_add 0 0 1
    echo "   skipped $1: $2"
}

# tally_tap NAME FILE STATUS: counts the results in the TAP output of a cmocka program with this exit status. The plan gives the
# number of tests, so a crash, an early exit or a line printed by a test cannot count as a pass.
tally_tap()
{
    local name=$1 file=$2 status=$3 plan good bad skip
    read -r plan good bad skip < <(awk '
        /^1\.\.[0-9]+$/ { plan += substr($0, 4) }
        /^(not )?ok [0-9]+ # SKIP/ { skip++; next }
        /^ok [0-9]+ - / { good++ }
        /^not ok [0-9]+ - / { bad++ }
        END { print plan + 0, good + 0, bad + 0, skip + 0 }' "$file")
    tally_add "$good" "$bad" "$skip"
    local line
    while read -r line; do
        failures+=("$step_name: $name: $line")
    done < <(sed -n 's/^not ok [0-9]* - //p' "$file")
    local why=
    if [ "$plan" -eq 0 ]; then
        why="it ran no tests"
    elif [ $((good + bad + skip)) -ne "$plan" ]; then
        why="it ended after $((good + bad + skip)) of $plan tests"
    elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        why="its tests passed, but the program failed"
    elif [ "$status" -eq 0 ] && [ "$bad" -gt 0 ]; then
        why="tests failed, but its exit status is 0"
    fi
    [ -z "$why" ] || tally_fail "$name" "$why ($(tally_ending "$status"))"
    if [ -n "$why" ] || [ "$bad" -gt 0 ]; then
        sed 's/^/   | /' "$file" | tail -n 60
    fi
    if [ "$skip" -gt 0 ]; then
        sed -n "s/^\(not \)\?ok [0-9]* # SKIP/   skipped $name:/p" "$file"
        grep -i '^skip' "$file" | sed 's/^/   | /'
    fi
}

# tally_ending STATUS: an exit status as text.
tally_ending()
{
    if [ "$1" -eq 124 ]; then
        echo "timed out"
    elif [ "$1" -gt 128 ]; then
        echo "killed by signal $(kill -l $(($1 - 128)))"
    else
        echo "exit status $1"
    fi
}

# tally_suite NAME FILE STATUS: counts the results of a script whose last line is `N passed, N failed[, N skipped]`.
tally_suite()
{
    local name=$1 file=$2 status=$3 last
    last=$(tail -n 1 "$file")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        local bad=${BASH_REMATCH[2]}
        tally_add "${BASH_REMATCH[1]}" "$bad" "${BASH_REMATCH[4]:-0}"
        if [ "$bad" -gt 0 ]; then
            failures+=("$step_name: $name: $last")
        elif [ "$status" -ne 0 ]; then
            tally_fail "$name" "it counts no failure, but the script failed ($(tally_ending "$status"))"
            bad=1
        fi
        [ "$bad" -eq 0 ] || sed 's/^/   | /' "$file" | tail -n 100
        grep -iE '^ *skipped ' "$file" | sed 's/^ */   /'
    else
        tally_fail "$name" "its last line does not count the results ($(tally_ending "$status"))"
        sed 's/^/   | /' "$file" | tail -n 60
    fi
    return 0
}

# check NAME COMMAND...: one test; its output is printed only if it fails.
check()
{
    local name=$1 log status=0
    shift
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ $status -eq 0 ]; then
        tally_add 1 0 0
    else
        tally_fail "$name" "$(tally_ending $status)"
        sed 's/^/   | /' "$log" | tail -n 60
    fi
    rm -f "$log"
    return $status
}

# step NAME COMMAND...: runs one part of the tests and prints its counts and time.
step_name=
step()
{
    local before=("$passed" "$failed" "$skipped") begin=$EPOCHREALTIME end status=0
    step_name=$1
    shift
    echo "== $step_name"
    "$@" || status=$?
    end=$EPOCHREALTIME
    local line="   $((passed - before[0])) passed, $((failed - before[1])) failed"
    [ "$skipped" -eq "${before[2]}" ] || line+=", $((skipped - before[2])) skipped"
    local tenths=$(((${end/[.,]/} - ${begin/[.,]/}) / 100000))
    echo "$line ($((tenths / 10)).$((tenths % 10)) s)"
    return $status
}

# Prints the failures and the totals, and exits.
finish()
{
    if [ ${#failures[@]} -gt 0 ]; then
        echo "== failures"
        printf '   %s\n' "${failures[@]}"
    fi
    local line="$passed passed, $failed failed"
    [ "$skipped" -eq 0 ] || line+=", $skipped skipped"
    echo "$line"
    [ "$failed" -eq 0 ]
    exit
}
