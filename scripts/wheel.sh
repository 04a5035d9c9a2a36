#!/bin/bash
# wheel.sh: builds wheels for Linux with glibc 2.28 or later (manylinux_2_28): Debian 10, RHEL 8, Ubuntu 20.04 and newer.
#
#   scripts/wheel.sh [x86_64|aarch64 ...]        into build-wheel/
#
# Compiler and linker are Zig's, a package of pip that has the C library of every release; OpenBLAS is the package scipy-openblas32,
# which is built for the same tag. zlib and xxhash are static, from Debian's packages for the machine. So the wheel contains OpenBLAS
# once, and nothing of the machine that builds it. auditwheel and twine check the result.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build-wheel
tools=$work/tools
[ $# -gt 0 ] || set -- x86_64

mkdir -p "$work"
[ -x "$tools/bin/pip" ] || python3 -m venv "$tools"
"$tools/bin/pip" install -q --disable-pip-version-check "ziglang>=0.13,<0.18" scikit-build-core cffi auditwheel twine wheel ninja cmake

# compiler FILE TARGET: a compiler for CMake. Zig spells levels of x86-64 with underscores, and has no symbols for the processor's
# features, which are in libgcc.
compiler()
{
    cat >"$1" <<END
#!/bin/bash
options=()
for option in "\$@"; do
    case \$option in -march=x86-64*) option=\${option//x86-64/x86_64} option=\${option//_64-v/_64_v} ;; esac
    options+=("\$option")
done
exec "$tools/bin/python" -m ziglang cc -target $2-linux-gnu.2.28 -fno-sanitize=undefined "\${options[@]}"
END
    printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$tools/bin/python" >"$1-ar"
    printf '#!/bin/sh\nexec "%s" -m ziglang ranlib "$@"\n' "$tools/bin/python" >"$1-ranlib"
    chmod +x "$1" "$1-ar" "$1-ranlib"
}

# debian FOLDER ARCHITECTURE: zlib, xxhash and libgcc of Debian for the machine.
debian()
{
    local package
    (
        mkdir -p "$1" && cd "$1"
        for package in "zlib1g-dev:$2" "libxxhash-dev:$2" "libgcc-12-dev:$2"; do
            compgen -G "${package%:*}_*" >/dev/null || apt-get download -q "$package" >/dev/null
        done
        for package in ./*.deb; do
            dpkg-deb -x "$package" .
        done
    )
}

# pc FILE NAME CFLAGS LIBS: a description for pkg-config.
pc()
{
    printf 'Name: %s\nDescription: %s\nVersion: 1\nCflags: %s\nLibs: %s\n' "$2" "$2" "$3" "$4" >"$1"
}

for machine in "$@"; do
    case $machine in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    *)
        echo "wheel.sh: unknown machine '$machine': use x86_64 or aarch64" >&2
        exit 2
        ;;
    esac
    if ! { dpkg --print-architecture && dpkg --print-foreign-architectures; } | grep -qx "$architecture"; then
        echo "wheel.sh: the packages of $architecture are not listed: dpkg --add-architecture $architecture && apt-get update" >&2
        exit 1
    fi
    folder=$work/$machine
    mkdir -p "$folder/pc" "$folder/zlib"
    compiler "$folder/cc" "$machine"
    debian "$folder/debian" "$architecture"
    "$tools/bin/pip" install -q --disable-pip-version-check --no-deps --upgrade --target "$folder/openblas" --only-binary :all: \
        --platform "manylinux_2_28_$machine" --platform "manylinux2014_$machine" scipy-openblas32
    library=$folder/debian/usr/lib/$machine-linux-gnu
    blas=$folder/openblas/scipy_openblas32
    # Only the headers of the libraries: Debian's C library must not be seen.
    cp "$folder/debian/usr/include/"{zlib.h,xxh*.h} "$folder/zlib/"
    find "$folder/debian/usr/include" -name zconf.h -exec cp {} "$folder/zlib/" \;
    names="-DBLAS_SYMBOL_PREFIX=scipy_"
    for name in $(grep -rohE '\<(cblas|openblas)_[a-z_]+\(' src/backend | tr -d '(' | sort -u); do
        names="$names -D$name=scipy_$name"
    done
    pc "$folder/pc/openblas.pc" openblas "-I$blas/include $names" "-L$blas/lib -lscipy_openblas"
    libgcc=
    [ "$machine" != x86_64 ] || libgcc=$(find "$folder/debian" -name libgcc.a | head -n 1)
    pc "$folder/pc/libxxhash.pc" xxhash "-I$folder/zlib" "$library/libxxhash.a $libgcc"

    options=()
    define()
    {
        options+=("--config-settings=cmake.define.$1=$2")
    }
    define LAPSE_CUDA OFF
    define CMAKE_C_COMPILER "$folder/cc"
    define CMAKE_AR "$folder/cc-ar"
    define CMAKE_RANLIB "$folder/cc-ranlib"
    define ZLIB_LIBRARY "$library/libz.a"
    define ZLIB_INCLUDE_DIR "$folder/zlib"
    define LAPSE_BUNDLE "$blas/lib/libscipy_openblas.so"
    if [ "$machine" != "$(uname -m)" ]; then
        [ -e "$work/$(uname -m)/build/python/_options.py" ] || { echo "wheel.sh: build $(uname -m) first" >&2; exit 2; }
        define CMAKE_SYSTEM_NAME Linux
        define CMAKE_SYSTEM_PROCESSOR "$machine"
        define LAPSE_PYTHON_OPTIONS "$work/$(uname -m)/build/python/_options.py"
    fi
    rm -rf "$folder/wheel" "$folder/build"
    PATH=$tools/bin:$PATH PKG_CONFIG_LIBDIR=$folder/pc LD_LIBRARY_PATH=$blas/lib "$tools/bin/pip" wheel . --disable-pip-version-check --no-deps \
        --no-build-isolation -w "$folder/wheel" --config-settings=build-dir="$folder/build" "${options[@]}" >"$folder/log" 2>&1 || {
        tail -n 40 "$folder/log"
        exit 1
    }
    "$tools/bin/wheel" tags --remove --platform-tag "manylinux_2_28_$machine" "$folder"/wheel/lapse-*.whl >/dev/null
    "$tools/bin/auditwheel" show "$folder"/wheel/lapse-*.whl | tee "$folder/audit"
    grep -Eq "manylinux_2_(17|2[0-8])_$machine" "$folder/audit" || { echo "wheel.sh: the wheel needs a later C library"; exit 1; }
    "$tools/bin/twine" check "$folder"/wheel/lapse-*.whl
    cp "$folder"/wheel/lapse-*.whl "$work/"
done
ls -l "$work"/*.whl
