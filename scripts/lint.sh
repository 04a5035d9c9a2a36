#!/bin/bash
# lint.sh: what a reader should not have to look for: formatting, static checks, scripts, the rules of the tree.
# Every check runs, and the exit status is 1 if any of them found something.
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
        echo "   found something ($((SECONDS - begin)) s)"
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
    local file places status=0
    while read -r file; do
        places=$(clang-format --dry-run "$file" 2>&1 | grep -c 'clang-format-violations')
        [ "$places" -gt 0 ] || continue
        echo "$file: $places places; corrected by: clang-format -i $file"
        status=1
    done < <(sources '*.c' '*.h' '*.cu' '*.cuh')
    # Other versions lay out a few places otherwise.
    if [ $status -ne 0 ] && ! clang-format --version | grep -q ' version 14\.'; then
        echo "the layout is that of clang-format 14; this is another one, so the above is only said"
        status=0
    fi
    return $status
}

tidy()
{
    # Configured for clang, whose options these are; nothing is built.
    build_configure build-lint -DCMAKE_C_COMPILER=clang -DLAPSE_CUDA=OFF || return 1
    sources 'src/*.c' 'cli/*.c' |
        xargs -r -P "$(nproc)" -n 4 clang-tidy -p build-lint --quiet --warnings-as-errors='*' 2>/dev/null
}

# Left out: uninitvar, which fires on whatever is passed by pointer to be filled (compilers and valgrind look for it better);
# invalidFunctionArg, on logarithms of what is not 0; and a comparison with 0x1p51, which cppcheck reads as 0.
check_c()
{
    cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -j "$(nproc)" \
        --suppress=uninitvar --suppress=invalidFunctionArg \
        --suppress=incorrectLogicOperator:src/backend/cpu/fast/fast_math.h \
        --suppress=normalCheckLevelMaxBranches --suppress=missingIncludeSystem \
        -Iinclude -Isrc -DLP_REAL=float -DLP_LEVEL=portable include src cli 2>&1
}

scripts_of_shell()
{
    sources '*.sh' run .ci/run | xargs -r shellcheck -S warning
}

part "clang-format" formatting
part "modules" scripts/check_modules.sh
part "shellcheck" scripts_of_shell
part "cppcheck" check_c
part "clang-tidy" tidy
exit $failed
