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
        echo "$file: $places places; put right by: clang-format -i $file"
        status=1
    done < <(sources '*.c' '*.h' '*.cu' '*.cuh')
    return $status
}

tidy()
{
    build_configure build || return 1
    sources 'src/*.c' 'cli/*.c' |
        xargs -r -P "$(nproc)" -n 4 clang-tidy -p build --quiet --warnings-as-errors='*' 2>/dev/null
}

check_c()
{
    cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -j "$(nproc)" \
        --suppress=invalidFunctionArg --suppress=normalCheckLevelMaxBranches --suppress=missingIncludeSystem \
        -Iinclude -Isrc -DLP_REAL=float include src cli 2>&1
}

scripts_of_shell()
{
    sources '*.sh' run .ci/run | xargs -r shellcheck -S warning
}

part "clang-format" formatting
part "rooms" scripts/check_rooms.sh
part "shellcheck" scripts_of_shell
part "cppcheck" check_c
part "clang-tidy" tidy
exit $failed
