#!/bin/bash
# run.sh: tests of the scripts: check_modules.sh reports each violation, tally.sh counts correctly, mutate.py makes the changes that it
# lists, ./run installs only missing packages, cmake/commit.cmake finds the commit of the build.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# expect NAME WANTED GOT
expect()
{
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'not ok: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
    fi
}

# ------------------------------------------------------------------------------------------------- modules ------

# tree: creates a small source tree without violations.
tree()
{
    rm -rf "$work/tree"
    mkdir -p "$work/tree"/{src/base,src/data/dataset,src/data/import,src/nn,cli,examples,include,scripts}
    cd "$work/tree" || exit 1
    touch include/lapse.h cli/options.h scripts/modules_excused.txt
    printf '#include "base/error.h"\n#include "lapse.h"\n#include <stdio.h>\n' >src/data/import/reader.c
    printf '/* never calls exit(1) or free(x)\n * nor printf("") */\nchar *a = "strcpy(a)"; // atoi(b)\nx->free(y);\nlp_free(y);\n' >src/nn/block.c
    printf '#include <lapse.h>\n#include "options.h"\nint main(void) { free(malloc(1)); printf(""); exit(0); }\n' >cli/main.c
}

# violation NAME FILE TEXT WANTED: after TEXT is appended to FILE, check_modules.sh must print exactly WANTED.
violation()
{
    local got
    tree
    mkdir -p "$(dirname "$2")"
    printf '%b\n' "$3" >>"$2"
    got=$("$root/scripts/check_modules.sh" "$work/tree")
    expect "modules: $1" "$4 (1)" "$got ($?)"
}

tree
got=$("$root/scripts/check_modules.sh" "$work/tree")
expect "modules: a clean tree" " (0)" "$got ($?)"
got=$("$root/scripts/check_modules.sh" "$root")
expect "modules: this tree" " (0)" "$got ($?)"

modules="base comm formula data/dataset data/import data/batch data/check graph backend backend/cpu backend/cuda nn model evaluate train search"
modules+=" simulate serve inspect bench"
violation "a later module" src/data/import/new.c '#include "nn/block.h"' \
    'src/data/import/new.c:1: module data/import must not include "nn/block.h": nn is a later module [include]'
violation "a later module in angle brackets" src/data/import/new.c '#include <nn/block.h>' \
    'src/data/import/new.c:1: module data/import must not include "nn/block.h": nn is a later module [include]'
violation "an include without a module" src/nn/new.c '\n #  include "block.h"' \
    'src/nn/new.c:2: "block.h" must be written "module/file.h" [include]'
violation "a folder that is not a module" src/misc/new.c 'int x;' \
    "src/misc/new.c: src/misc is not a module: the modules are $modules [module]"
violation "a file beside sub-modules" src/data/new.c 'int x;' \
    "src/data/new.c: src/data is not a module: the modules are $modules [module]"
violation "a later sub-module" src/data/dataset/new.c '#include "data/import/reader.h"' \
    'src/data/dataset/new.c:1: module data/dataset must not include "data/import/reader.h": data/import is a later module [include]'
violation "the tool includes an internal header" cli/new.c '#include "base/error.h"' \
    'cli/new.c:1: base/error.h is internal to the library: include only lapse.h [include]'
violation "an example includes a header of another folder" examples/new.c '#include "../cli/console.h"' \
    'examples/new.c:1: "../cli/console.h" is outside examples: include only lapse.h [include]'
for name in gets strcpy strcat sprintf atoi alloca; do
    violation "$name" cli/new.c "  $name (x);" "cli/new.c:1: call of $name: it is unsafe [call]"
done
violation "rand" src/nn/new.c 'int x = 3 * rand();' \
    'src/nn/new.c:1: call of rand: use base/random.h [call]'
for name in exit abort printf; do
    violation "$name" src/base/new.c "/* a */ $name(x); /* b */" \
        "src/base/new.c:1: call of $name: the library returns errors, and never prints or exits [call]"
done
for name in malloc free realloc strdup; do
    violation "$name" src/base/new.c "{$name(x);}" "src/base/new.c:1: call of $name: use base/memory.h [memory]"
done
violation "a call that only Linux has" cli/new.c 'x = memfd_create("a", 0);' \
    'cli/new.c:1: call of memfd_create: only Linux has it: use system.h or process.h [linux]'
violation "two files of one name" cli/block.c 'int x;' 'cli/block.c: another file has the name block.c [name]
src/nn/block.c: another file has the name block.c [name]'
violation "a long file" src/nn/new.h "$(printf '\\n%.0s' {1..800})" \
    'src/nn/new.h: 801 lines, at most 700 are allowed: split the file, or add an exception [long]'
violation "a marker" docs/new.md 'a TO''DO here' 'docs/new.md:1: marker of unfinished work [mark]'
violation "another marker" src/nn/new.c '/* FIX''ME */' 'src/nn/new.c:1: marker of unfinished work [mark]'
violation "a path" scripts/new.sh "cd /ho""me/someone" 'scripts/new.sh:1: machine-specific path [path]'

tree
echo 'free(x);' >src/nn/new.c
echo 'memory src/nn/new.c the parser allocates by itself' >scripts/modules_excused.txt
got=$("$root/scripts/check_modules.sh" "$work/tree")
expect "modules: excused with a reason" " (0)" "$got ($?)"
echo 'memory src/nn/new.c' >scripts/modules_excused.txt
got=$("$root/scripts/check_modules.sh" "$work/tree")
expect "modules: excused without a reason" \
    "src/nn/new.c:1: call of free: use base/memory.h [memory] (1)" "$got ($?)"
touch src/base/memory.c
echo 'free(x);' >src/base/memory.c
rm src/nn/new.c
got=$("$root/scripts/check_modules.sh" "$work/tree")
expect "modules: memory.c may free" " (0)" "$got ($?)"
cd "$root" || exit 1

# ----------------------------------------------------------------------------------------------- counting ------

# counted COMMAND...: the totals after one call of a function of tally.sh.
counted()
{
    (
        . scripts/tally.sh
        "$@" >/dev/null
        (finish) | tail -n 1
    )
}

# tap NAME WANTED STATUS LINES
tap()
{
    printf '%b' "$4" >"$work/tap"
    expect "count: $1" "$2" "$(counted tally_tap program "$work/tap" "$3")"
}
tap "all pass" "2 passed, 0 failed" 0 '1..2\nok 1 - a\nok 2 - b\n# ok - tests\n'
tap "two groups" "3 passed, 0 failed" 0 '1..2\nok 1 - a\nok 2 - b\n1..1\nok 1 - c\n'
tap "one fails" "1 passed, 1 failed" 1 '1..2\nok 1 - a\nnot ok 2 - b\n# why\n'
tap "one is skipped" "1 passed, 0 failed, 1 skipped" 0 '1..2\nok 1 - a\nnot ok 2 # SKIP b\n'
tap "one is skipped, newer cmocka" "1 passed, 0 failed, 1 skipped" 0 '1..2\nok 1 - a\nok 2 # SKIP b\n'
tap "a crash" "1 passed, 1 failed" 134 '1..3\nok 1 - a\n'
tap "a crash after a failure" "1 passed, 2 failed" 139 '1..3\nok 1 - a\nnot ok 2 - b\n'
tap "an early exit" "1 passed, 1 failed" 0 '1..2\nok 1 - a\n'
tap "a leak at the end" "1 passed, 1 failed" 99 '1..1\nok 1 - a\n'
tap "an exit status of 0 with a failure" "0 passed, 2 failed" 0 '1..1\nnot ok 1 - a\n'
tap "no output" "0 passed, 1 failed" 127 ''
tap "lines that a test printed" "1 passed, 0 failed" 0 '1..1\nok then\nnot ok 7\nok 1 - a\n'

# suite NAME WANTED STATUS LINES
suite()
{
    printf '%b' "$4" >"$work/suite"
    expect "count: $1" "$2" "$(counted tally_suite cli "$work/suite" "$3")"
}
suite "a suite" "7 passed, 0 failed" 0 'noise\n7 passed, 0 failed\n'
suite "a suite with skips" "7 passed, 0 failed, 2 skipped" 0 '7 passed, 0 failed, 2 skipped\n'
suite "a suite that fails" "6 passed, 1 failed" 1 '6 passed, 1 failed\n'
suite "a suite that fails as a whole" "6 passed, 1 failed" 1 '6 passed, 0 failed\n'
suite "a suite that does not count" "0 passed, 1 failed" 0 '6 passed, 0 failed\ndone\n'
expect "count: a command that fails" "0 passed, 1 failed" "$(counted check name false)"
expect "count: a command that passes" "1 passed, 0 failed" "$(counted check name true)"
(
    . scripts/tally.sh
    check name false >/dev/null
    finish >/dev/null
)
expect "count: the exit status of a failure" 1 $?
(
    . scripts/tally.sh
    check name true
    finish >/dev/null
)
expect "count: the exit status of success" 0 $?

# --------------------------------------------------------------------------------------------------- run ------

expect "run: lists its tasks" "build demo test bench paper lint fuzz mutate python wheel deb clean" \
    "$(./run | sed -n 's/^  \([a-z]*\) .*/\1/p' | uniq | xargs)"
got=$(./run nonsense 2>&1 | head -n 1)
expect "run: an unknown task" "run: unknown task 'nonsense'" "$got"
./run nonsense >/dev/null 2>&1
expect "run: the exit status of an unknown task" 2 $?
got=$(./run test everything 2>&1)
expect "run: unknown tests" "run: unknown tests 'everything': use quick, full, sanitize, valgrind or aarch64 (2)" "$got ($?)"

got="$(scripts/fuzz.sh everything 2>&1) ($?)"
known=$(cd tests/fuzz && for each in fuzz_*.c; do basename "${each#fuzz_}" .c; done | xargs)
expect "fuzz: an unknown target" \
    "fuzz: 'everything' is neither a number of seconds, nor 'together', nor a target: $known (2)" "$got"
for each in tests/fuzz/corpus/*; do
    expect "fuzz: the corpus $(basename "$each") has a target" yes "$([ -f "tests/fuzz/fuzz_$(basename "$each").c" ] && echo yes)"
done

# ------------------------------------------------------------------------------------------------- changes ------

# All changes of a small program in one build: without a number it does what it did, with one something else, and it marks the places
# that it reaches.
python3 - "$work" <<'END' >"$work/changes.txt" 2>&1
import os, random, subprocess, sys
sys.path.insert(0, "scripts")
sys.dont_write_bytecode = True
import mutate_source
work, source = sys.argv[1], open("tests/mutate/changes.c").read()
body = source[:source.index("int main")]
sites = dict(enumerate(mutate_source.sites_of("changes.c", source, random.Random(1)), 1))
chosen = {n: s for n, s in sites.items() if s.line <= body.count("\n")}
open(work + "/changes.c", "w").write(mutate_source.schemata(source, chosen))
open(work + "/control.c", "w").write(mutate_source.CONTROL.replace("PLACES", "100"))
subprocess.run(["cc", "-w", "-o", work + "/changes", work + "/changes.c", work + "/control.c"], check=True)
open(work + "/trace", "wb").write(bytes(100))
def run(number):
    return subprocess.run([work + "/changes"], env={"LAPSE_MUTANT": str(number), "LAPSE_MUTANT_TRACE": work + "/trace"},
                          stdout=subprocess.PIPE, text=True, timeout=10).stdout.strip()
print("unchanged:", run(0))
same = [f"{s.line}: {s.before}: {s.after}" for n, s in chosen.items() if run(n) == run(0)]
print("reached:", sum(map(bool, open(work + "/trace", "rb").read())), "of", len(chosen), "kinds:", *sorted({s.kind for s in chosen.values()}))
print("without effect:", *same, sep="\n")
print("relation turned:", run(min(n for n, s in chosen.items() if s.kind == "relation")))
END
expect "mutate: all changes of a program" "unchanged: 0 15 20 5 1 3
reached: 25 of 25 kinds: condition constant relation statement sum
without effect:
24: a = 6;: ;
24: a = 6;: a = 6 - 1;
30: return a ? 1 : 2;: return a ? 1 : 2 - 1;
37: total += p[i] - (n > 2 && p[0] == 1 ? 1 : -1);: total += p[i] - (n >= 2 && p[0] == 1 ? 1 : -1);
37: total += p[i] - (n > 2 && p[0] == 1 ? 1 : -1);: total += p[i] - (n > 2 - 1 && p[0] == 1 ? 1 : -1);
37: total += p[i] - (n > 2 && p[0] == 1 ? 1 : -1);: total += p[i] - (n > 2 && p[0] == 1 ? 1 : -1 + 1);
relation turned: 1 15 20 5 1 3" "$(cat "$work/changes.txt")"

# needing ID HAVE FAILING: packages_need on a system where the user is ID, the requirements that match HAVE are met, and the
# first FAILING calls of apt-get install fail. Prints the messages and every call of apt-get.
needing()
{
    local user=$1 have=$2
    echo "$3" >"$work/failing"
    (
        . scripts/packages.sh
        id() { echo "$user"; }
        packages_have() { [[ "$*" =~ $have ]]; }
        packages_listed() { [ "$listed" = yes ]; }
        apt-get()
        {
            echo "apt-get $*" >&3
            # A pipeline runs this in a process of its own.
            if [ "$1" = install ] && [ "$(cat "$work/failing")" -gt 0 ]; then
                echo $(($(cat "$work/failing") - 1)) >"$work/failing"
                echo "E: no such package"
                return 1
            fi
            [ "$1" != install ] || printf '%s\n' "${installing[@]}"
        }
        packages_need build unit
        echo "continues"
    ) 3>&1 2>&1
}
installing=()
listed=yes
expect "packages: nothing is missing" "continues (0)" "$(needing 1000 . 0) ($?)"
expect "packages: without root" "Missing packages:
  cmake: configuration
  libcmocka-dev: unit tests
Install them, then start ./run again:
sudo apt-get install -y --no-install-recommends cmake libcmocka-dev (1)" "$(needing 1000 'cc|ninja|pkg|blas|jansson|zlib|xxhash|microhttpd|sqlite3|libpq|python3|zoneinfo' 0) ($?)"
listed=no
expect "packages: without root or lists" \
    "sudo apt-get update && sudo apt-get install -y --no-install-recommends libcmocka-dev" \
    "$(needing 1000 'cc|cmake|ninja|pkg|blas|jansson|zlib|xxhash|microhttpd|sqlite3|libpq|python3|zoneinfo' 0 | tail -n 1)"
expect "packages: as root, a new system" "Installing missing packages (apt-get, one to five minutes):
  libcmocka-dev: unit tests
apt-get update -q -o Dpkg::Use-Pty=0
apt-get install -q -o Dpkg::Use-Pty=0 -y --no-install-recommends libcmocka-dev
continues (0)" "$(needing 0 'cc|cmake|ninja|pkg|blas|jansson|zlib|xxhash|microhttpd|sqlite3|libpq|python3|zoneinfo' 0) ($?)"
listed=yes
expect "packages: as root, old lists" "Installing missing packages (apt-get, one to five minutes):
  libcmocka-dev: unit tests
apt-get install -q -o Dpkg::Use-Pty=0 -y --no-install-recommends libcmocka-dev
apt-get update -q -o Dpkg::Use-Pty=0
apt-get install -q -o Dpkg::Use-Pty=0 -y --no-install-recommends libcmocka-dev
continues (0)" "$(needing 0 'cc|cmake|ninja|pkg|blas|jansson|zlib|xxhash|microhttpd|sqlite3|libpq|python3|zoneinfo' 1) ($?)"
mapfile -t installing < <(
    echo "0 upgraded, 12 newly installed, 0 to remove and 3 not upgraded."
    echo "Need to get 34.5 MB of archives."
    seq -f 'Get:%.0f http://mirror.example/debian bookworm/main amd64 package 1.0 [1 kB]' 12
    seq -f 'Setting up package%.0f (1.0) ...' 12
)
expect "packages: progress" "  Need to get 34.5 MB of archives.
  fetched 10 of 12 packages
  fetched 12 of 12 packages
  set up 10 of 12 packages
  set up 12 of 12 packages
continues" "$(needing 0 'cc|cmake|ninja|pkg|blas|jansson|zlib|xxhash|microhttpd|sqlite3|libpq|python3|zoneinfo' 0 | tail -n 6)"
installing=()
expect "packages: as root, installation fails" \
    "run: installation failed: apt-get install -y --no-install-recommends libcmocka-dev" \
    "$(needing 0 'cc|cmake|ninja|pkg|blas|jansson|zlib|xxhash|microhttpd|sqlite3|libpq|python3|zoneinfo' 2 | tail -n 1)"

# ----------------------------------------------------------------------------------------------- the map ------

expect "docs/paper.md: its numbers are those of bench/results/paper" "0 wrong" "$(python3 tests/scripts/check_paper.py | tail -n 1 | sed 's/.*, //')"
expect "ARCHITECTURE.md: its statements are true" "30 statements checked, 0 false" "$(python3 tests/scripts/check_map.py | tail -n 3)"
sed 's|`src/nn/attention_block.c`|`src/nn/attention_blocks.c`|; /^| `src\/bench` /d' ARCHITECTURE.md >"$work/page.md"
expect "ARCHITECTURE.md: false statements are found" "false: every file that the page names exists: src/nn/attention_blocks.c
false: the table of modules is that of check_modules.sh
30 statements checked, 2 false" "$(python3 tests/scripts/check_map.py "$work/page.md")"

# -------------------------------------------------------------------------------------------------- commit ------

# commit_of FOLDER: what cmake/commit.cmake writes for this source folder, as "unknown", "HASH" or "HASH+".
commit_of()
{
    cmake -DSOURCE="$1" -DOUTPUT="$work/commit.h" -P "$root/cmake/commit.cmake"
    sed -nE 's/^#define LP_COMMIT "(.*)"$/\1/p' "$work/commit.h" | sed -E 's/^[0-9a-f]{12}/HASH/'
}

if command -v cmake >/dev/null && command -v git >/dev/null; then
    repository=$work/repository
    mkdir -p "$repository/inside"
    expect "commit: outside git" unknown "$(GIT_CEILING_DIRECTORIES=$work commit_of "$repository")"
    git -C "$repository" init -q
    echo text >"$repository/file"
    git -C "$repository" add file
    git -C "$repository" -c user.name=n -c user.email=e commit -qm first
    expect "commit: a clean checkout" HASH "$(commit_of "$repository")"
    expect "commit: a folder within another project" unknown "$(commit_of "$repository/inside")"
    written=$(stat -c %Y.%i "$work/commit.h")
    commit_of "$repository/inside" >/dev/null
    expect "commit: an equal header is not written again" "$written" "$(stat -c %Y.%i "$work/commit.h")"
    echo more >>"$repository/file"
    expect "commit: a changed checkout" HASH+ "$(commit_of "$repository")"
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
