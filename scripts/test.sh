#!/bin/bash
# test.sh: builds and runs the tests. The last line of the output is the total: `N passed, N failed`.
#
#   scripts/test.sh [quick|full|sanitize|valgrind]
#
# quick     unit tests, with fewer seeds and sizes if they are slow, and the suites in quick_suites; about two minutes after the build
# full      quick, then every other suite (tests/*/run.sh), known inputs of the fuzz targets, sanitizers, valgrind, an installed
#           tree, the bytes of a build in another folder, clang, nvcc
# sanitize  unit tests, command-line tests, failure injection and known hostile files, built with the address and undefined-behaviour
#           sanitizers; concurrent sessions, trainers and verbs, built with the thread sanitizer
# valgrind  unit tests under valgrind; full leaves out the slowest
#
# A suite is a script tests/NAME/run.sh. Its argument is the path of the tool, its last line is `N passed, N failed` (with
# `, N skipped` if any were skipped), and its exit status is 0 if none failed. The environment variables LAPSE_TEST_TIER (quick or
# full) and LAPSE_TEST_UNDER (sanitizers, valgrind or empty) let programs choose fewer and smaller sizes (small_effort in
# tests/support/small_data.h).
# The exit status is 0 only if nothing failed. A program that crashes or exits early is a failure.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/build.sh
. scripts/tally.sh

quick_suites="cli scripts faults python"
limit=${LAPSE_TEST_LIMIT:-900} # timeout of a program, in seconds
jobs=$(nproc)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export LAPSE_TEST_TIER=full LAPSE_TEST_UNDER=
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}

# build_all FOLDER [cmake option ...]: configures and builds; counts and prints a failure.
build_all()
{
    local folder=$1
    check "build in $folder" build_all_of "$@"
}

build_all_of()
{
    build_configure "$@" && build_quietly "$1"
}

# unit FOLDER [wrapper ...]: runs every unit test program of FOLDER except those in $left_out, one per core at a time; prints the
# results in order.
left_out=
unit()
{
    local folder=$1 program name running=0
    shift
    local programs=()
    for source in tests/unit/test_*.c; do
        name=$(basename "$source" .c)
        [[ " $left_out " != *" $name "* && -x $folder/$name ]] && programs+=("$folder/$name")
    done
    for program in "${programs[@]}"; do
        [ $running -lt "$jobs" ] || { wait -n; running=$((running - 1)); }
        unit_program "$program" "$@" &
        running=$((running + 1))
    done
    wait
    for program in "${programs[@]}"; do
        name=$(basename "$program")
        tally_tap "$name" "$logs/$name.out" "$(cat "$logs/$name.status")"
        [ "$(cat "$logs/$name.seconds")" -lt 10 ] || echo "   $name took $(cat "$logs/$name.seconds") s"
    done
    [ ${#programs[@]} -gt 0 ] || tally_fail "unit tests" "no test program was built: is cmocka installed?"
}

unit_program()
{
    local program=$1 name begin=$SECONDS
    shift
    name=$(basename "$program")
    CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 "$limit" "$@" "$program" >"$logs/$name.out" 2>&1 </dev/null
    echo $? >"$logs/$name.status"
    echo $((SECONDS - begin)) >"$logs/$name.seconds"
}

# suite NAME FOLDER: runs tests/NAME/run.sh with the tool of FOLDER.
suite()
{
    local status=0
    if [ "$1" != scripts ] && [ ! -x "$2/lapse" ]; then
        tally_skip "$1" "no tool in $2"
        return
    fi
    timeout -k 5 "$limit" "tests/$1/run.sh" "$PWD/$2/lapse" >"$logs/suite" 2>&1 </dev/null || status=$?
    tally_suite "$1" "$logs/suite" $status
}

header()
{
    local strict="-Wall -Wextra -Wshadow -pedantic-errors -Werror -fsyntax-only -Iinclude"
    # shellcheck disable=SC2086 # word splitting is intended
    {
        check "lapse.h as C17" cc -std=c17 -Wstrict-prototypes $strict -x c tests/install/header_only.c
        if command -v g++ >/dev/null; then
            check "lapse.h as C++17" g++ -std=c++17 $strict -x c++ tests/install/header_only.c
        else
            tally_skip "lapse.h as C++17" "g++ is not installed"
        fi
    }
}

# replay FOLDER: runs every fuzz target on its corpus and on the hostile files.
replay()
{
    local source name
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        local files=()
        mapfile -t files < <(find tests/fuzz/corpus/"${name#fuzz_}" tests/hostile -type f 2>/dev/null | sort)
        check "$name on ${#files[@]} known files" timeout "$limit" "$1/$name" "${files[@]}"
    done
}

sanitizers()
{
    export LAPSE_TEST_UNDER=sanitizers
    # With detect_stack_use_after_return, gcc 12 aligns locals to at most 32 bytes, but vectors need 64. Later versions of gcc
    # enable it by default.
    export ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
    if build_all build-sanitize -DLAPSE_SANITIZE=address,undefined -DLAPSE_WERROR=OFF -DLAPSE_CUDA=OFF \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g"; then
        unit build-sanitize
        [ -x tests/cli/run.sh ] && suite cli build-sanitize
        [ -x tests/faults/run.sh ] && suite faults build-sanitize
        replay build-sanitize
    fi
    export LAPSE_TEST_UNDER=
    unset ASAN_OPTIONS UBSAN_OPTIONS
}

# Two programs and the tool, at the portable CPU level: the only one that is instrumented. OpenBLAS and libgomp are not: products run
# in the calling thread, so they synchronize nothing, and no suppressions are needed.
thread_sanitizer()
{
    local fixed=()
    # Some versions of the sanitizer do not support all address-space layouts.
    ! setarch -R true 2>/dev/null || fixed=(setarch -R)
    check "build in build-thread" thread_build || return 0
    export LAPSE_TEST_UNDER=sanitizers LAPSE_CPU_LEVEL=portable TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    unit build-thread "${fixed[@]}"
    check "verbs with 4 threads" thread_verbs "${fixed[@]}"
    export LAPSE_TEST_UNDER=
    unset LAPSE_CPU_LEVEL TSAN_OPTIONS
}

thread_build()
{
    build_configure build-thread -DLAPSE_SANITIZE=thread -DLAPSE_WERROR=OFF -DLAPSE_CUDA=OFF -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="-O1 -g" && build_quietly build-thread lapse_tool test_concurrent test_prefetch
}

# thread_verbs [wrapper ...]: every verb that has threads, on data of several chunks, shards and queries.
thread_verbs()
{
    local folder=$logs/threads tool=$PWD/build-thread/lapse small="--threads 4 --dims 8 --context 8 --batch 16 --epochs 2" line
    mkdir -p "$folder"
    while read -r line; do
        # shellcheck disable=SC2086 # word splitting is intended
        (cd "$folder" && "$@" "$tool" $line </dev/null) || return
    done <<END
simulate --sequences 60 --days 40 -o shop.csv
import shop.csv -o shop.lapse --event action,item --field category --threads 4
train shop.lapse -o class.st $small --checkpoint-every 0s
train shop.lapse -o rank.st $small --task recommend --loss sampled-softmax
train shop.lapse -o lstm.st $small --model lstm
eval class.st shop.lapse --threads 4
eval rank.st shop.lapse --threads 4
eval lstm.st shop.lapse --threads 4
predict class.st shop.csv --at +1d --threads 4 --csv
predict rank.st shop.csv --at +1d --threads 4 --json
inspect class.st shop.lapse -o report.html --threads 4
bound --tmax 2h --sigma 1/2h --epsilon 0.5 --repeats 4 --threads 4
END
}

under_valgrind()
{
    if ! command -v valgrind >/dev/null; then
        tally_skip valgrind "valgrind is not installed"
        return
    fi
    export LAPSE_TEST_UNDER=valgrind
    # libgomp frees the memory of its threads only at exit: valgrind reports it as reachable or possibly lost.
    unit build valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite --track-origins=no
    export LAPSE_TEST_UNDER=
}

with_clang()
{
    if ! command -v clang >/dev/null; then
        tally_skip clang "clang is not installed"
        return
    fi
    rm -rf build-clang
    # Without C++: the emulated GPU plugin has been built.
    build_all build-clang -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=NOTFOUND -DLAPSE_CUDA=OFF
}

with_nvcc()
{
    if ! command -v nvcc >/dev/null; then
        tally_skip nvcc "nvcc is not on the PATH"
        return
    fi
    check "device code with nvcc" nvcc_build
}

nvcc_build()
{
    build_configure build-cuda -DLAPSE_CUDA=ON && build_quietly build-cuda cuda
}

# The kernels with the shared memory of GPUs other than the default, 9.0.
emulated_devices()
{
    local device program
    for device in 80 86 89 100 120; do
        for program in test_cuda_step test_cuda_sweep; do
            [ ! -x "build/$program" ] || check "$program, compute capability $device, emulated" \
                env LAPSE_EMULATE=$device LAPSE_TEST_TIER=quick timeout -k 5 "$limit" "build/$program"
        done
    done
}

other_suites()
{
    local script name
    for script in tests/*/run.sh; do
        [ -x "$script" ] || continue
        name=$(basename "$(dirname "$script")")
        [[ " $quick_suites " == *" $name "* ]] || suite "$name" build
    done
}

quick()
{
    step "build" build_all build || finish
    step "modules" check "module dependencies" scripts/check_modules.sh
    step "header" header
    step "unit tests" unit build
    for name in $quick_suites; do
        [ ! -x "tests/$name/run.sh" ] || step "$name" suite "$name" build
    done
}

case ${1:-full} in
quick)
    LAPSE_TEST_TIER=quick
    quick
    ;;
full)
    quick
    step "installed tree" check "install, build an example against it, run it" scripts/test_install.sh build
    step "another folder" check "the same bytes from another folder" scripts/test_reproducible.sh build
    step "other suites" other_suites
    step "known inputs of the fuzz targets" replay build
    step "clang" with_clang
    step "nvcc" with_nvcc
    step "emulated GPUs" emulated_devices
    step "sanitizers" sanitizers
    step "thread sanitizer" thread_sanitizer
    # About numbers and threads: minutes under valgrind. The sanitizers run them, and others run the same code here.
    left_out="test_branches test_concurrent test_cpu_level test_forecast test_inspect test_model test_models test_ops test_recommend test_recurrent test_rmtpp"
    left_out+=" test_select test_session_many test_simulate test_sweep test_train_fields test_train_limits test_when test_zone"
    step "valgrind" under_valgrind
    ;;
sanitize)
    step "sanitizers" sanitizers
    step "thread sanitizer" thread_sanitizer
    ;;
valgrind)
    step "build" build_all build || finish
    step "valgrind" under_valgrind
    ;;
esac
finish
