# build.sh: functions that configure and build. Sourced by the other scripts.
# shellcheck shell=bash

# build_configure FOLDER [cmake option ...]: configures FOLDER for ninja. A folder that was configured for another source tree
# (the tree was moved or copied) is deleted first.
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

# Builds the tool and the library in build/, without the tests.
build_tool()
{
    build_configure build
    ninja -C build product
}

# build_quietly FOLDER [target ...]: builds, and prints only warnings and errors.
build_quietly()
{
    local folder=$1
    shift
    ninja -C "$folder" "$@" >"$folder/build.log" 2>&1 || {
        grep -vE '^(\[[0-9]+/[0-9]+\]|ninja: Entering)' "$folder/build.log"
        return 1
    }
}
