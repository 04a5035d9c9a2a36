# packages.sh: the system packages that each task requires, and their installation. Sourced by ./run.
#
# A requirement is tested by its function, not by the package name: another compiler, or a library built from source, is fine.
# Only missing packages are installed; if none is missing, nothing is printed and apt is not called.
# shellcheck shell=bash

# task | package | purpose | probe
packages_table='
build|gcc|C compiler|tool cc
build|libc6-dev|C library headers|compile cc stdio.h
build|cmake|configuration|tool cmake
build|ninja-build|build|tool ninja
build|pkg-config|library lookup|tool pkg-config
build|libopenblas-openmp-dev|matrix multiplication|module openblas
build|libjansson-dev|the server of lapse serve, and tests|module jansson
build|zlib1g-dev|gzip|module zlib
build|libxxhash-dev|checksums|module libxxhash
build|libmicrohttpd-dev|the server of lapse serve|module libmicrohttpd
build|libsqlite3-dev|histories of lapse serve|module sqlite3
build|libpq-dev|histories of lapse serve in PostgreSQL|module libpq
full|postgresql|a database for the tests of lapse serve|postgres
unit|libcmocka-dev|unit tests|module cmocka
unit|python3|programs that check the map and the changes of ./run mutate|tool python3
unit|tzdata|time zones, for the tests of --timezone|file /usr/share/zoneinfo/Europe/Berlin
valgrind|valgrind|memory checker|tool valgrind
full|valgrind|memory checker|tool valgrind
full|libopenmpi-dev|the plugin for several ranks|tool mpicc
full|openmpi-bin|mpirun, for the tests of several ranks|tool mpirun
full|g++|C++ compiler, to test the header|tool g++
full|clang|second compiler|tool clang
full|python3-numpy|NumPy, for the independent forward pass|numpy
full|python3-venv|virtual environment for the tests of the Python package|venv
mutate|python3|the program that changes the source|tool python3
python|python3-venv|virtual environment|venv
wheel|binutils|reads the libraries for auditwheel|tool readelf
deb|dpkg-dev|dependencies of the packages|tool dpkg-shlibdeps
deb|file|kinds of files, for cpack|tool file
aarch64|gcc-aarch64-linux-gnu|compiler for 64-bit ARM|tool aarch64-linux-gnu-gcc
aarch64|libc6-dev-arm64-cross|C library for 64-bit ARM|file /usr/aarch64-linux-gnu/lib/crti.o
aarch64|qemu-user-static|emulator of 64-bit ARM|tool qemu-aarch64-static
lint|clang-format|formatting|tool clang-format
lint|clang-tidy|static checks|tool clang-tidy
lint|clang|compile commands for clang-tidy|tool clang
lint|cppcheck|static checks|tool cppcheck
lint|shellcheck|shell script checks|tool shellcheck
fuzz|clang|the compiler with libFuzzer|tool clang
fuzz|libclang-rt-dev|libFuzzer|fuzzer
'

# packages_have PROBE ARGUMENT...: whether the system meets the requirement.
packages_have()
{
    case $1 in
    tool) command -v "$2" ;;
    file) [ -e "$2" ] ;;
    module) command -v pkg-config && pkg-config --exists "$2" ;;
    compile)
        command -v "$2" && echo "#include <$3>" | "$2" -E -x c -
        ;;
    numpy) /usr/bin/python3 -c 'import numpy' ;;
    postgres) compgen -G '/usr/lib/postgresql/*/bin/initdb' ;;
    venv) python3 -c 'import ensurepip, venv' ;;
    fuzzer)
        command -v clang && echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
            clang -fsanitize=fuzzer,address -x c - -o /dev/null
        ;;
    esac >/dev/null 2>&1
}

# packages_need TASK...: installs the packages that the tasks require; exits the script if that is not possible.
packages_need()
{
    local task package purpose probe missing=() reasons=()
    while IFS='|' read -r task package purpose probe; do
        [[ -n $task && " $* " == *" $task "* && " ${missing[*]-} " != *" $package "* ]] || continue
        # shellcheck disable=SC2086 # a probe is several words
        packages_have $probe && continue
        missing+=("$package")
        reasons+=("  $package: $purpose")
    done <<<"$packages_table"
    [ ${#missing[@]} -gt 0 ] || return 0

    if ! command -v apt-get >/dev/null; then
        echo "Missing packages (Debian names; this system has no apt):"
        printf '%s\n' "${reasons[@]}"
        exit 1
    fi >&2
    local install="apt-get install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        local update=
        packages_listed || update="sudo apt-get update && "
        echo "Missing packages:"
        printf '%s\n' "${reasons[@]}"
        echo "Install them, then start ./run again:"
        echo "$update""sudo $install"
        exit 1
    fi >&2
    echo "Installing missing packages (apt-get, one to five minutes):" >&2
    printf '%s\n' "${reasons[@]}" >&2
    packages_install "$install"
}

# Whether apt has package lists. A new system has none until its first update.
packages_listed()
{
    compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null
}

# packages_progress: of the output of apt-get, the size of the download, and a line for every tenth package and for the last.
packages_progress()
{
    awk '
        /^Need to get / { print "  " $0; fflush() }
        / newly installed/ { for (i = 2; i <= NF; i++) if ($i == "newly") all = $(i - 1) }
        /^Get:/ && !/ (InRelease|Release|Packages|Translation-)/ { fetched++; report("fetched", fetched) }
        /^Setting up / { ready++; report("set up", ready) }
        function report(what, count) {
            if (count % 10 == 0 || count == all) { print "  " what " " count (all ? " of " all : "") " packages"; fflush() }
        }'
}

# packages_apt COMMAND...: runs apt-get, prints its progress, and appends its output to $log.
packages_apt()
{
    "$@" 2>&1 | tee -a "$log" | packages_progress >&2
    return "${PIPESTATUS[0]}"
}

# packages_install COMMAND: runs COMMAND as root, after `apt-get update` if there are no package lists or they are too old.
packages_install()
{
    local log
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    local quiet="-q -o Dpkg::Use-Pty=0"
    # shellcheck disable=SC2086 # words on purpose
    if ! packages_listed || ! packages_apt ${1/install/install $quiet}; then
        packages_apt apt-get update $quiet && packages_apt ${1/install/install $quiet} || {
            tail -n 20 "$log"
            echo "run: installation failed: $1"
            rm -f "$log"
            exit 1
        } >&2
    fi
    rm -f "$log"
}
