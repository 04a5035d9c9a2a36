#!/bin/bash
# test_install.sh: installs a build into an empty prefix and tests the installed files: header and library with pkg-config
# (shared, static, and from C++), the example, the tool, the man page.
#
#   scripts/test_install.sh BUILD
set -eu
build=$1
cd "$(dirname "$0")/.."
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix/usr"

pc=$(find "$prefix" -name lapse.pc)
library=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=$library
version=$(sed -n 's/^#define LAPSE_VERSION "\(.*\)"/\1/p' include/lapse.h)
[ "$(pkg-config --modversion lapse)" = "$version" ] || { echo "lapse.pc does not have version $version"; exit 1; }

# use COMPILER LIBRARY SOURCE PROGRAM: compiles and links by the flags of pkg-config alone. Word splitting of the flags is intended.
# shellcheck disable=SC2046
use()
{
    echo "$1 against the $2 library"
    local static=
    [ "$2" = shared ] || static=--static
    $1 "$3" -o "$prefix/$4" $(pkg-config $static --cflags --libs lapse)
}

# loads PROGRAM: whether it needs the shared library at run time.
loads()
{
    ldd "$prefix/$1" 2>&1 | grep -q liblapse
}

# check WHAT COMMAND...: exits if the command fails.
check()
{
    local what=$1
    shift
    "$@" || { echo "failed: $what"; exit 1; }
}

not()
{
    ! "$@"
}

use cc shared tests/install/header_only.c shared
use cc static tests/install/header_only.c static
check "the shared library is used" loads shared
check "--static links the static library" not loads static
"$prefix/shared"
LD_LIBRARY_PATH='' "$prefix/static"
if command -v g++ >/dev/null; then
    use "g++ -x c++" shared tests/install/header_only.c plus
    "$prefix/plus"
fi

echo "exported symbols: only lapse_*"
others=$(nm -D --defined-only "$library/liblapse.so" | awk '$2 != "A" && $3 !~ /^lapse_/')
[ -z "$others" ] || { echo "$others"; exit 1; }

tool=$prefix/usr/bin/lapse
if [ -x "$tool" ]; then
    echo "tool and man page"
    "$tool" --version | grep -F "$version"
    grep -q '^\.TH' "$(find "$prefix" -name lapse.1)"
fi
if [ -x "$tool" ] && [ -e examples/ask.c ]; then
    echo "example"
    use "cc -Wall -Wextra -Werror" shared examples/ask.c ask
    "$tool" simulate --preset shop --sequences 60 --seed 1 -o "$prefix/shop.csv"
    "$tool" import "$prefix/shop.csv" -o "$prefix/shop.lapse" --event action,item
    "$tool" train "$prefix/shop.lapse" -o "$prefix/shop.safetensors" --task classify --epochs 1
    "$prefix/ask" "$prefix/shop.safetensors" | tee "$prefix/answer"
    [ "$(grep -c ": .* (.*%)$" "$prefix/answer")" -eq 2 ]
    use cc static examples/ask.c ask_archive
    check "--static links the static library" not loads ask_archive
    LD_LIBRARY_PATH='' "$prefix/ask_archive" "$prefix/shop.safetensors" | cmp - "$prefix/answer"
    # A static program needs archives of all libraries, which Debian's development packages have. The linker warns that dlopen, by
    # which the GPU plugin is loaded, needs the shared C library at run time.
    if echo 'int main(void) { return 0; }' |
        cc -static -x c - -o "$prefix/probe" -lopenblas -ljansson -lxxhash -lz -lm 2>/dev/null; then
        use "cc -static" static examples/ask.c ask_static
        check "-static links everything" not loads ask_static
        env -i "$prefix/ask_static" "$prefix/shop.safetensors" | cmp - "$prefix/answer"
    else
        echo "skipped cc -static: there are no static libraries of the dependencies"
    fi
fi
