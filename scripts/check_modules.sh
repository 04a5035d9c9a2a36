#!/bin/bash
# check_modules.sh: the rules of the tree that a compiler does not know. Prints each breach as FILE:LINE: what is wrong, and
# exits 1 if there was any.
#
#   scripts/check_modules.sh [ROOT]
#
# A file may be excused in scripts/modules_excused.txt, with a reason: `RULE PATH REASON`, where RULE is the word in brackets
# that ends the message.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2
modules="base data graph backend nn model train inspect serve bench" # a room sees itself and those before it
longest=700                                                  # lines of a file

# Functions not to be called: anywhere, and in the library.
unsafe="gets strcpy strcat sprintf vsprintf atoi atol atof alloca strtok"
random="rand srand random srandom drand48"
loud="exit _exit abort printf puts putchar perror vprintf"
memory="malloc calloc realloc free strdup strndup aligned_alloc posix_memalign asprintf vasprintf"
banned=$(tr ' ' '|' <<<"$unsafe $random $loud $memory")

include='include *["<]([^">]*)[">]'
excused=scripts/modules_excused.txt
breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

# Files of the tree, those not yet added to git included. Where git cannot say (a tarball, another's folder): all but what
# was built.
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

# breach RULE PLACE MESSAGE: PLACE is FILE or FILE:LINE.
breach()
{
    if ! [ -f $excused ] || ! grep -qE "^$1 ${2%%:*} [^ ]" $excused; then
        echo "$2: $3 [$1]" >>"$breaches"
    fi
}

# bare FILE: its code with comments, strings and characters blanked, line by line.
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

# calls RULE FILE WHY NAME...: breaches wherever one of these functions is called. A member of that name is no call of it.
calls()
{
    local rule=$1 file=$2 why=$3 names line text
    shift 3
    names=$(IFS='|' && echo "$*")
    while IFS=: read -r line text; do
        text=$(grep -oE "(^|[^A-Za-z0-9_.>])($names) *\(" <<<"$text" | head -n 1 | grep -oE "[a-z_]+")
        breach "$rule" "$file:$line" "$text is called; $why"
    done < <(grep -nE "(^|[^A-Za-z0-9_.>])($names) *\(" <<<"$code")
}

# Includes of a file in a room: "room/file.h" of its own room or an earlier one, or the public header.
check_source_includes()
{
    local file=$1 room=${1#src/} line text target allowed=" " each
    room=${room%%/*}
    if [[ " $modules " != *" $room "* ]]; then
        breach room "$file" "src/$room is no room: the modules are $modules"
        return
    fi
    for each in $modules; do
        allowed+="$each "
        [ "$each" != "$room" ] || break
    done
    while IFS=: read -r line text; do
        [[ $text =~ $include ]] && target=${BASH_REMATCH[1]}
        each=${target%%/*}
        if [[ $text == *\<* && " $modules " != *" $each "* ]]; then
            continue
        elif [ "$target" = lapse.h ]; then
            continue
        elif [[ $target != */* || " $modules " != *" $each "* ]]; then
            breach include "$file:$line" "\"$target\" should be written \"room/file.h\""
        elif [[ $allowed != *" $each "* ]]; then
            breach include "$file:$line" "room $room must not include \"$target\": $each comes after it"
        fi
    done < <(grep -nE "^ *# *$include" "$file")
}

# Includes of the tool and the examples: the public header, their own folder, the system.
check_user_includes()
{
    local file=$1 line text target
    while IFS=: read -r line text; do
        [[ $text =~ $include ]] && target=${BASH_REMATCH[1]}
        if [[ " $modules " == *" ${target%%/*} "* ]]; then
            breach include "$file:$line" "$target is inside the library: use lapse.h alone"
        elif [[ $text == *\"* && $target != lapse.h && ! -f $(dirname "$file")/$target && ! -f $target ]]; then
            breach include "$file:$line" "\"$target\" lies outside $(dirname "$file"): use lapse.h alone"
        fi
    done < <(grep -nE "^ *# *$include" "$file")
}

check_code()
{
    local file=$1 code
    code=$(bare "$file")
    grep -qE "(^|[^A-Za-z0-9_.>])($banned) *\(" <<<"$code" || return
    # shellcheck disable=SC2086 # lists of words
    {
        calls call "$file" "it cannot be used safely" $unsafe
        calls call "$file" "randomness comes from base/random.h" $random
    }
    if [[ $file == src/* ]]; then
        # shellcheck disable=SC2086
        calls call "$file" "the library returns errors, and never prints or ends the program" $loud
        # shellcheck disable=SC2086
        [ "$file" = src/base/memory.c ] || calls memory "$file" "memory comes from base/memory.h" $memory
    fi
}

while read -r file; do
    case $file in
    src/*) check_source_includes "$file" ;;
    cli/* | examples/*) check_user_includes "$file" ;;
    esac
    check_code "$file"
done < <(files src cli examples | grep -E '\.(c|h|cu|cuh)$')

# A name says which file is meant, wherever it lies.
while read -r name; do
    for file in $(files . | grep -E "(^|/)$name\$"); do
        breach name "$file" "another file is called $name too"
    done
done < <(files . | grep -E '\.(c|h|cu|cuh|py|sh)$' | grep -vE '(^|/)run\.sh$' | sed 's|.*/||' | sort | uniq -d)

mapfile -t texts < <(files . |
    grep -E '\.(c|h|cu|cuh|py|sh|md|txt|cmake|map|in|1)$|(^|/)(run|\.clang-tidy|\.clang-format)$')
while read -r count file; do
    [ "$count" -le $longest ] || breach long "$file" "$count lines are more than $longest: divide it, or excuse it"
done < <(wc -l "${texts[@]}" | sed '$d')
while IFS=: read -r file line _; do
    breach mark "$file:$line" "a mark of unfinished work"
done < <(grep -HnwE 'TO''DO|FIX''ME|XX''X' "${texts[@]}")
while IFS=: read -r file line _; do
    breach path "$file:$line" "a path of one machine"
done < <(grep -HnE '(^|[^A-Za-z0-9_.$}*])/(work|home|root|Users|mnt)/' "${texts[@]}")

sort -u "$breaches"
[ ! -s "$breaches" ]
