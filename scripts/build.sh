# build.sh: configuring and building, the same way for every job. Sourced.
# shellcheck shell=bash

# build_configure FOLDER [cmake option ...]: makes FOLDER ready for ninja. A folder configured somewhere else (the tree was
# moved or copied) is made anew.
build_configure()
{
    local folder=$1
    shift
    if [ -f "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
        rm -rf "$folder"
    fi
    cmake -S . -B "$folder" -G Ninja "$@" >"$folder.log" 2>&1 || {
        cat "$folder.log"
        rm -f "$folder.log"
        return 1
    } >&2
    rm -f "$folder.log"
}

# The tool and the library in build/, without the tests.
build_tool()
{
    build_configure build
    ninja -C build product
}

# build_quietly FOLDER [target ...]: builds, and shows only what goes wrong.
build_quietly()
{
    local folder=$1
    shift
    ninja -C "$folder" "$@" >"$folder/build.log" 2>&1 || {
        grep -vE '^(\[[0-9]+/[0-9]+\]|ninja: Entering)' "$folder/build.log"
        return 1
    }
}
