#!/bin/bash
# lint.sh: checks formatting, module dependencies, shell scripts and C code (static analysis). Runs all checks; the exit status
# is 1 if any of them found a problem.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/build.sh
failed=0

# part NAME COMMAND...
part()
{
    local name=$1 begin=$SECONDS
    shift
    echo "== $name"
    if "$@"; then
        echo "   clean ($((SECONDS - begin)) s)"
    else
        echo "   problems found ($((SECONDS - begin)) s)"
        failed=1
    fi
}

sources()
{
    git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
        [ ! -f "$file" ] || echo "$file"
    done
}

formatting()
{
    local file violations status=0
    while read -r file; do
        violations=$(clang-format --dry-run "$file" 2>&1 | grep -c 'clang-format-violations')
        [ "$violations" -gt 0 ] || continue
        echo "$file: $violations violations; run: clang-format -i $file"
        status=1
    done < <(sources '*.c' '*.h' '*.cu' '*.cuh')
    # Other versions of clang-format format some constructs differently.
    if [ $status -ne 0 ] && ! clang-format --version | grep -q ' version 14\.'; then
        echo "the code is formatted with clang-format 14; this is another version, so the violations above are only warnings"
        status=0
    fi
    return $status
}

tidy()
{
    # clang-tidy needs the compile commands of clang, and the header that the build makes.
    build_configure build-lint -DCMAKE_C_COMPILER=clang -DLAPSE_CUDA=OFF || return 1
    ninja -C build-lint lapse_commit >/dev/null || return 1
    sources 'src/*.c' 'cli/*.c' |
        xargs -r -P "$(nproc)" -n 4 clang-tidy -p build-lint --quiet --warnings-as-errors='*' 2>/dev/null
}

# Suppressed false positives: uninitvar, on variables that are filled through a pointer (compilers and valgrind detect these
# better); invalidFunctionArg, on logarithms of nonzero values; and a comparison with 0x1p51, which cppcheck parses as 0.
check_c()
{
    cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -j "$(nproc)" \
        --suppress=uninitvar --suppress=invalidFunctionArg \
        --suppress=incorrectLogicOperator:src/backend/cpu/fast/fast_math.h \
        --suppress=normalCheckLevelMaxBranches --suppress=missingIncludeSystem \
        -Iinclude -Isrc -DLP_REAL=float -DLP_LEVEL=portable include src cli 2>&1
}

check_shell()
{
    sources '*.sh' run .ci/run | xargs -r shellcheck -S warning
}

part "clang-format" formatting
part "modules" scripts/check_modules.sh
part "shellcheck" check_shell
part "cppcheck" check_c
part "clang-tidy" tidy
exit $failed
