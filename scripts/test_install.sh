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

# Word splitting of the flags is intended.
# shellcheck disable=SC2046
use()
{
    echo "$1 against the $2 library"
    local static='' link=''
    if [ "$2" = static ]; then
        static=--static
        # Links the archive by its name; its own dependencies stay shared.
        link=s/-llapse/-l:liblapse.a/
    fi
    $1 "$3" -o "$prefix/$4" $(pkg-config --cflags lapse) $(pkg-config $static --libs lapse | sed "$link")
}
use cc shared tests/install/header_only.c shared
use cc static tests/install/header_only.c static
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
fi
