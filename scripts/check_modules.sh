#!/bin/bash
# check_modules.sh: checks rules that a compiler does not check: module dependencies, banned functions, file names and lengths.
# Prints each violation as FILE:LINE: MESSAGE [RULE], and exits 1 if there are any.
#
#   scripts/check_modules.sh [ROOT]
#
# scripts/modules_excused.txt lists exceptions, with a reason: `RULE PATH REASON`.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
# A file may include headers of its own module and of the modules before it. A path such as data/dataset is a sub-module; the files that
# are in none of them belong to the module of their first folder.
modules="base comm formula data/dataset data/import data/batch data/check graph backend backend/cpu backend/cuda nn model evaluate train search
    simulate serve inspect bench"
modules=$(echo $modules)
folders=" $(tr ' ' '\n' <<<"$modules" | sed 's|/.*||' | sort -u | tr '\n' ' ')"
max_lines=700 # per file

# Banned functions. `loud` and `memory` apply to the library only, `linux` to the library and the tool: files *_linux.c have them.
unsafe="gets strcpy strcat sprintf vsprintf atoi atol atof alloca strtok"
random="rand srand random srandom drand48"
loud="exit _exit abort printf puts putchar perror vprintf"
memory="malloc calloc realloc free strdup strndup aligned_alloc posix_memalign asprintf vasprintf"
linux="memrchr getrandom sched_getaffinity prctl memfd_create fallocate le64toh pthread_condattr_setclock linkat gettid"
banned=$(tr ' ' '|' <<<"$unsafe $random $loud $memory $linux")

include='include *["<]([^">]*)[">]'
excused=scripts/modules_excused.txt
violations=$(mktemp)
trap 'rm -f "$violations"' EXIT

# Files of the source tree, including those not yet added to git. Without git (a tarball): all files outside the build folders.
files()
{
    if [ -e .git ] && git ls-files >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
            [ ! -f "$file" ] || echo "$file"
        done
    else
        find "$@" -type f 2>/dev/null | sed 's|^\./||' | grep -vE '^(\.git|build[^/]*)/'
    fi | sort -u
}

# violation RULE LOCATION MESSAGE: LOCATION is FILE or FILE:LINE.
violation()
{
    if ! [ -f $excused ] || ! grep -qE "^$1 ${2%%:*} [^ ]" $excused; then
        echo "$2: $3 [$1]" >>"$violations"
    fi
}

# bare FILE: the code without comments, string and character literals, line by line.
bare()
{
    awk '{
        out = ""; line = $0
        while (line != "") {
            if (comment) {
                end = index(line, "*/")
                if (!end) break
                line = substr(line, end + 2); comment = 0
            } else if (substr(line, 1, 2) == "//") {
                break
            } else if (substr(line, 1, 2) == "/*") {
                comment = 1; line = substr(line, 3)
            } else if (match(line, /^"(\\.|[^"\\])*"/) || match(line, /^\047(\\.|[^\047\\])*\047/)) {
                out = out "_"; line = substr(line, RLENGTH + 1)
            } else if (match(line, /^[A-Za-z0-9_ .,;:<>=+(){}&!?%|*-]+/)) {
                out = out substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 1)
            } else {
                out = out substr(line, 1, 1); line = substr(line, 2)
            }
        }
        print out
    }' "$1"
}

# calls RULE FILE WHY NAME...: reports each call of one of these functions. A struct member of that name is not a call.
calls()
{
    local rule=$1 file=$2 why=$3 names line text
    shift 3
    names=$(IFS='|' && echo "$*")
    while IFS=: read -r line text; do
        text=$(grep -oE "(^|[^A-Za-z0-9_.>])($names) *\(" <<<"$text" | head -n 1 | grep -oE "[a-z_]+")
        violation "$rule" "$file:$line" "call of $text: $why"
    done < <(grep -nE "(^|[^A-Za-z0-9_.>])($names) *\(" <<<"$code")
}

# module_of PATH: the module that a path below src belongs to; empty if there is none.
module_of()
{
    local path=$1
    while [[ $path == */* ]]; do
        path=${path%/*}
        [[ " $modules " != *" $path "* ]] || break
    done
    [[ " $modules " != *" $path "* ]] || echo "$path"
}

# Includes of a file in a module: "module/file.h" of its own module or an earlier one, or the public headers.
check_source_includes()
{
    local file=$1 module line text target allowed=" " each
    module=$(module_of "${1#src/}")
    if [ -z "$module" ]; then
        violation module "$file" "$(dirname "$file") is not a module: the modules are $modules"
        return
    fi
    for each in $modules; do
        allowed+="$each "
        [ "$each" != "$module" ] || break
    done
    while IFS=: read -r line text; do
        [[ $text =~ $include ]] && target=${BASH_REMATCH[1]}
        if [[ $text == *\<* && $folders != *" ${target%%/*} "* ]] || is_public "$target"; then
            continue
        fi
        each=$(module_of "$target")
        if [ -z "$each" ]; then
            violation include "$file:$line" "\"$target\" must be written \"module/file.h\""
        elif [[ $allowed != *" $each "* ]]; then
            violation include "$file:$line" "module $module must not include \"$target\": $each is a later module"
        fi
    done < <(grep -nE "^ *# *$include" "$file")
}

# The public headers.
is_public()
{
    [ -f "include/$1" ]
}

# Includes of the tool, the server and the examples: the public headers, their own folder, system headers.
check_user_includes()
{
    local file=$1 line text target
    while IFS=: read -r line text; do
        [[ $text =~ $include ]] && target=${BASH_REMATCH[1]}
        if [[ $folders == *" ${target%%/*} "* ]]; then
            violation include "$file:$line" "$target is internal to the library: include only lapse.h"
        elif [[ $text == *\"* && ! -f include/$target && ! -f $(dirname "$file")/$target && ! -f $target ]]; then
            violation include "$file:$line" "\"$target\" is outside $(dirname "$file"): include only lapse.h"
        fi
    done < <(grep -nE "^ *# *$include" "$file")
}

check_code()
{
    local file=$1 code
    code=$(bare "$file")
    grep -qE "(^|[^A-Za-z0-9_.>])($banned) *\(" <<<"$code" || return
    # shellcheck disable=SC2086 # word splitting is intended
    {
        calls call "$file" "it is unsafe" $unsafe
        calls call "$file" "use base/random.h" $random
    }
    # shellcheck disable=SC2086
    [[ $file != @(src|cli)/* || $file == *_linux.c ]] || calls linux "$file" "only Linux has it: use system.h or process.h" $linux
    if [[ $file == src/* ]]; then
        # shellcheck disable=SC2086
        calls call "$file" "the library returns errors, and never prints or exits" $loud
        # shellcheck disable=SC2086
        [ "$file" = src/base/memory.c ] || calls memory "$file" "use base/memory.h" $memory
    fi
}

while read -r file; do
    case $file in
    src/*) check_source_includes "$file" ;;
    cli/* | server/* | examples/*) check_user_includes "$file" ;;
    esac
    check_code "$file"
done < <(files src cli server examples | grep -E '\.(c|h|cu|cuh)$')

# File names are unique in the tree.
while read -r name; do
    for file in $(files . | grep -E "(^|/)$name\$"); do
        violation name "$file" "another file has the name $name"
    done
done < <(files . | grep -E '\.(c|h|cu|cuh|py|sh)$' | grep -vE '(^|/)run\.sh$' | sed 's|.*/||' | sort | uniq -d)

mapfile -t texts < <(files . |
    grep -E '\.(c|h|cu|cuh|py|sh|md|txt|cmake|map|in|1)$|(^|/)(run|\.clang-tidy|\.clang-format)$')
while read -r count file; do
    [ "$count" -le $max_lines ] || violation long "$file" "$count lines, at most $max_lines are allowed: split the file, or add an exception"
done < <(wc -l "${texts[@]}" | sed '$d')
while IFS=: read -r file line _; do
    violation mark "$file:$line" "marker of unfinished work"
done < <(grep -HnwE 'TO''DO|FIX''ME|XX''X' "${texts[@]}")
while IFS=: read -r file line _; do
    violation path "$file:$line" "machine-specific path"
done < <(grep -HnE '(^|[^A-Za-z0-9_.$}*])/(work|home|root|Users|mnt)/' "${texts[@]}")

sort -u "$violations"
[ ! -s "$violations" ]
