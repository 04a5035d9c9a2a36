#!/usr/bin/env bash
# Runs README.md: every command of its indented blocks, in order, in one shell, in a folder that has only what a checkout has, and a CSV
# of one's own. Then the commands of docs, each in a folder of small files with the names that the pages use.
#
#   tests/readme/run.sh build/lapse
#
# A command must succeed. A file that it writes must not exist before (the sections overwrite nothing of each other) and must have
# contents afterwards; a file that it reads must exist. `expected` lists what the text around the commands says about their output.
# C code in fences must compile, and links to files must lead to files. All commands together may take 600 s of processor time: five
# minutes on two cores. Not repeated here, because other suites do it: `./run demo`, `./run test`, and the build.
set -u
export LC_ALL=C
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/readme/run.sh PATH-OF-LAPSE" >&2
    exit 2
fi
tool=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(dirname "$tool")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readme=$root/README.md
limit=600
passed=0
failed=0

# check WHAT COMMAND...: one test.
check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
    fi
}

# What the README says of an output. A row: part of a command, then a regular expression that a line of its output matches.
expected() {
    cat <<'END'
lapse check shop.csv|^ *event +action,item +
lapse check shop.csv|^[0-9]+ warnings?, [0-9]+ notes?$
lapse import shop.csv -o shop.lapse|^wrote +shop\.lapse
lapse info shop.lapse|^column\.event +action,item$
lapse train shop.lapse|^accuracy +[0-9.]+ %
lapse eval shop.safetensors|^split +test:
lapse predict shop.safetensors shop.csv --at +1h|^sequence +rank +at \+1h +at \+7d$
lapse train --help|--help all
lapse kernel|^wrote +kernel\.svg
lapse pretrain|^items +.* trained on events, .* initialized from the catalogue
lapse train purchases.lapse -o purchases.safetensors|NDCG@10
lapse eval purchases.safetensors|^ +full-unseen +full +uniform +popularity$
lapse eval purchases.safetensors|^Hit@5 
lapse eval purchases.safetensors|^NDCG@10 
lapse eval purchases.safetensors|^MRR 
lapse train shop.csv -o actions.safetensors|action 'action', category 'category'
lapse train shop.csv -o actions.safetensors|^target +action
./ask shop.safetensors|^72 h later: .* %\)$
END
}

# commands FILE: one a line: indented blocks outside fences, with continued lines joined and comments removed.
commands() {
    awk '
        /^```/ { fence = !fence; next }
        fence { next }
        /^    / && (before == "" || code) {
            code = 1
            line = substr($0, 5)
            text = text line
            if (sub(/\\$/, "", text)) { gsub(/ +$/, " ", text); next }
            sub(/ +# .*$/, "", text)
            if (text != "") print text
            text = ""
            next
        }
        { code = 0; before = $0 }' "$1"
}

# writes COMMAND: the files that a command writes.
writes() {
    awk '{
        for (i = 1; i < NF; i++)
            if ($i == "-o" || $i == "--svg" || ($i == "--catalogue" && $2 == "simulate")) print $(i + 1)
    }' <<<"$1"
}

# reads COMMAND: the other words that name a file.
reads() {
    tr ' ' '\n' <<<"$1" | grep -E '^[A-Za-z0-9_./-]+\.(csv|lapse|safetensors|c)$' | grep -vxFf <(writes "$1"; echo /) | sort -u
}

# ---- the folder: of a checkout, what the commands may use ----
mkdir "$work/lapse" "$work/bin" "$work/root"
cd "$work/lapse" || exit 1
"$tool" simulate --preset shop --sequences 100 -o shop.csv >/dev/null 2>&1
cut -d , -f 1-3 shop.csv >events.csv
rm shop.csv
ln -s "$root/examples" examples
ln -s "$build" build
printf '#!/bin/sh\ncase $1 in build | demo | test) ;; *) exit 2 ;; esac\n' >run
# `sudo` installs below a folder; there is no cache of the dynamic linker to renew.
printf '#!/bin/sh\n[ "$1" = ldconfig ] || exec env DESTDIR=%s "$@"\n' "$work/root" >"$work/bin/sudo"
chmod +x run "$work/bin/sudo"
export PATH=$work/bin:$build:$PATH
libraries=$work/root/usr/local/lib
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# ---- the commands ----
mapfile -t list < <(commands "$readme")
check "README.md has commands" test ${#list[@]} -ge 20
begun=$SECONDS
for command in "${list[@]}"; do
    for file in $(writes "$command"); do
        check "$command: $file is not of another command" test ! -e "$file"
    done
    for file in $(reads "$command"); do
        check "$command: $file exists" test -s "$file"
    done
    from=$SECONDS
    eval "$command" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    [ $((SECONDS - from)) -lt 20 ] || echo "took $((SECONDS - from)) s: $command"
    check "$command: exit status $status" test $status -eq 0
    [ $status -eq 0 ] || tail -n 5 "$work/err"
    for file in $(writes "$command"); do
        check "$command: writes $file" test -s "$file"
    done
    while IFS='|' read -r part pattern; do
        [[ $command == *"$part"* ]] || continue
        check "$command: prints $pattern" grep -qE -- "$pattern" "$work/out" "$work/err"
    done < <(expected)
    case $command in
    *" --json"*) check "$command: prints JSON" python3 -m json.tool "$work/out" /dev/null ;;
    esac
done
while IFS='|' read -r part _; do
    check "a command has '$part'" grep -qF -- "$part" <(printf '%s\n' "${list[@]}")
done < <(expected)

# Processor time of all commands, in seconds: the second line of `times` has that of finished children. In a pipeline it would be
# that of another shell.
times >"$work/times"
spent=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); all += 60 * part[1] + part[2] } print int(all) }' \
    "$work/times")
echo "the commands took $((SECONDS - begun)) s, $spent s of processor time"
check "the commands take some processor time, and at most $limit s" test "$spent" -gt 0 -a "$spent" -le $limit

[ ! -e "$root/.git" ] || check "git ignores what the tour writes" git -C "$root" check-ignore -q tour/shop.csv

# ---- docs, with the installed tool ----
# A command of `lapse` runs for at most a second. It may end with 0, be stopped while it works, or lack a GPU or one of the data sets
# that are not here. A command under mpirun runs without it (tests/ranks). Status 2 is an option or a verb that does not exist.
mkdir "$work/small"
cd "$work/small" || exit 1
export PATH=$work/root/usr/local/bin:$PATH
ln -s "$root/bench" bench
{
    lapse simulate --preset shop --sequences 60 --days 60 -o shop.csv
    lapse import shop.csv -o shop.lapse --event action,item
    lapse import shop.csv -o fields.lapse --event item --action action --field category
    lapse simulate --preset sessions --sequences 60 --items 100 -o s.csv --catalogue s-items.csv
    lapse import s.csv -o s.lapse --event item --action action --field department
    lapse simulate --preset catalogue --items 100 --sequences 60 -o d.csv --catalogue items.csv
    lapse import d.csv -o d.lapse
    small="--dims 8 --blocks 1 --context 16 --epochs 1 --no-eval --checkpoint none"
    # shellcheck disable=SC2086 # options are words
    {
        lapse train shop.lapse -o when.safetensors --task classify --when --log run.jsonl $small
        lapse train d.lapse -o r.safetensors --task recommend $small
    }
    for name in events so h; do cp shop.lapse $name.lapse; done
    for name in m model shop; do cp when.safetensors $name.safetensors; done
    cp when.safetensors m
    cp r.safetensors ml.safetensors
    cp d.csv customers.csv
    cp d.lapse ml.lapse
} >"$work/out" 2>&1 || tail -n 5 "$work/out"
ran=0 stopped=0 absent=0
for page in "$root"/docs/*.md "$root"/CONTRIBUTING.md; do
    rm -rf "$work/page"
    cp -r "$work/small" "$work/page"
    cd "$work/page" || exit 1
    while read -r command; do
        what="$(basename "$page"): $command"
        case $command in
        lapse\ serve* | curl*) ;; # tests/server
        lapse* | *=*\ lapse*)
            status=0
            timeout -k 2 1 bash -c "$command" >"$work/out" 2>&1 </dev/null || status=$?
            if [ $status -eq 0 ]; then
                ran=$((ran + 1))
            elif [ $status -ge 124 ]; then
                stopped=$((stopped + 1))
            elif grep -qE 'CUDA|GPU|No such file' "$work/out"; then
                absent=$((absent + 1))
                status=0
            fi
            check "$what: exit status $status: $(tail -n 1 "$work/out")" test $status -eq 0 -o $status -eq 124
            ;;
        ./run*) check "$what is a task" grep -qE "^( \*|)$(awk '{ print $2 }' <<<"$command")[) |]" "$root/run" ;;
        *)
            for word in $command; do
                [[ $word != */*.* || $word == *://* ]] || check "$what: $word exists" test -e "$root/$word" -o "$word" = build/device/run.sh
            done
            ;;
        esac
    done < <(commands "$page" | sed -E 's/^(mpirun|srun) -n [0-9]+ //' | grep -E '^(lapse|[A-Z_]+=[^ ]+ lapse|\./run|python3|curl|scripts/|tests/|build/)')
done
echo "commands of docs: $ran ran, $stopped were stopped, $absent lack a GPU or their data"

# ---- C code and links ----
{
    echo '#include <lapse.h>'
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    awk '/^```c$/ { code = 1; next } /^```/ { code = 0 } code' "$readme"
    echo 'return 0; }'
} >"$work/short.c"
# shellcheck disable=SC2046 # flags are words
check "the C code of README.md compiles" cc -Wall -Werror -o short "$work/short.c" $(pkg-config --cflags --libs lapse)
check "the C code of README.md runs" ./short
for page in "$root"/*.md "$root"/docs/*.md; do
    for link in $(grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//' | grep -v '^http' | sort -u); do
        check "$(basename "$page"): the link $link" test -e "$(dirname "$page")/$link"
    done
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
