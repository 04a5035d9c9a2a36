# packages.sh: what each job needs of the system, and getting it. Sourced by ./run.
#
# A need is probed for by what it does, not by its package's name: another compiler, or a library built by hand, serves as
# well. Only what is missing is installed; where nothing is missing nothing is said and apt is not touched.
# shellcheck shell=bash

# job | package | what it is for | probe
packages_table='
build|gcc|the C compiler|tool cc
build|libc6-dev|the C library to build against|compile cc stdio.h
build|cmake|to configure|tool cmake
build|ninja-build|to build|tool ninja
build|pkg-config|to find libraries|tool pkg-config
build|libopenblas-openmp-dev|matrix products|module openblas
build|libjansson-dev|JSON|module jansson
build|zlib1g-dev|gzip|module zlib
build|libxxhash-dev|checksums|module libxxhash
unit|libcmocka-dev|unit tests|module cmocka
valgrind|valgrind|to find wrong uses of memory|tool valgrind
full|valgrind|to find wrong uses of memory|tool valgrind
full|g++|the header as C++|tool g++
full|clang|a second compiler|tool clang
full|python3-numpy|the forward pass rewritten in NumPy|numpy
lint|clang-format|formatting|tool clang-format
lint|clang-tidy|static checks|tool clang-tidy
lint|clang|how clang-tidy is to read the sources|tool clang
lint|cppcheck|static checks|tool cppcheck
lint|shellcheck|checks of the scripts|tool shellcheck
fuzz|clang|the compiler that fuzzes|tool clang
fuzz|libclang-rt-dev|the fuzzer itself|fuzzer
'

# packages_have TYPE ARGUMENT...: whether the system already offers it.
packages_have()
{
    case $1 in
    tool) command -v "$2" ;;
    module) command -v pkg-config && pkg-config --exists "$2" ;;
    compile)
        command -v "$2" && echo "#include <$3>" | "$2" -E -x c -
        ;;
    numpy) /usr/bin/python3 -c 'import numpy' ;;
    fuzzer)
        command -v clang && echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
            clang -fsanitize=fuzzer,address -x c - -o /dev/null
        ;;
    esac >/dev/null 2>&1
}

# packages_need JOB...: returns when all that the jobs need is there; ends the script where it cannot be had.
packages_need()
{
    local job package purpose probe missing=() reasons=()
    while IFS='|' read -r job package purpose probe; do
        [[ -n $job && " $* " == *" $job "* && " ${missing[*]-} " != *" $package "* ]] || continue
        # shellcheck disable=SC2086 # a probe is several words
        packages_have $probe && continue
        missing+=("$package")
        reasons+=("  $package: $purpose")
    done <<<"$packages_table"
    [ ${#missing[@]} -gt 0 ] || return 0

    if ! command -v apt-get >/dev/null; then
        echo "Needed, and not found (by their Debian names; this system has no apt):"
        printf '%s\n' "${reasons[@]}"
        exit 1
    fi >&2
    local install="apt-get install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        local update=
        packages_listed || update="sudo apt-get update && "
        echo "Needed, and not installed:"
        printf '%s\n' "${reasons[@]}"
        echo "Please run this line, then ./run again:"
        echo "$update""sudo $install"
        exit 1
    fi >&2
    echo "Installing what is missing (apt-get):" >&2
    printf '%s\n' "${reasons[@]}" >&2
    packages_install "$install"
}

# Whether apt has package lists. A bare system has none until its first update.
packages_listed()
{
    compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null
}

# packages_install COMMAND: runs it as root, after an update where there are no lists or they were too old.
packages_install()
{
    local log
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    local quiet="-qq -o Dpkg::Use-Pty=0"
    # shellcheck disable=SC2086 # words on purpose
    if ! packages_listed || ! ${1/install/install $quiet} >"$log" 2>&1; then
        apt-get update $quiet >"$log" 2>&1 && ${1/install/install $quiet} >"$log" 2>&1 || {
            tail -n 20 "$log"
            echo "run: installing failed; the line was: $1"
            rm -f "$log"
            exit 1
        } >&2
    fi
    rm -f "$log"
}
