#!/bin/bash
# lint.sh: what a reader should not have to look for: formatting, static checks, scripts, the rules of the tree.
# Every check runs, and the exit status is 1 if any of them found something.
set -u
cd "$(dirname "$0")/.."
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
    sources '*.c' '*.h' '*.cu' '*.cuh' | xargs -r clang-format --dry-run -Werror
}

tidy()
{
    build_configure build || return 1
    # Kernels of reference/ are compiled twice, and would be checked twice.
    sources 'src/*.c' 'cli/*.c' 'examples/*.c' | grep -v '^examples/' |
        xargs -r -P "$(nproc)" -n 4 clang-tidy -p build --quiet --warnings-as-errors='*' 2>/dev/null
}

check_c()
{
    cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -j "$(nproc)" \
        --suppress=normalCheckLevelMaxBranches --suppress=missingIncludeSystem \
        -Iinclude -Isrc -DLP_REAL=float include src cli 2>&1
}

scripts_of_shell()
{
    sources '*.sh' run .ci/run | xargs -r shellcheck -x
}

part "clang-format" formatting
part "rooms" scripts/check_rooms.sh
part "shellcheck" scripts_of_shell
part "cppcheck" check_c
part "clang-tidy" tidy
[ $failed -eq 0 ] && echo "lint: clean" || echo "lint: see above"
exit $failed
