#!/bin/bash
# device_build.sh: everything that a machine with a GPU needs to test and time the CUDA backend, in one folder: it may have
# nothing but a driver and the C library.
#
#   scripts/device_build.sh [FOLDER]      builds here, and fills FOLDER (build/device if not given)
#   FOLDER/run.sh [tests|steps|sanitize]  there: the unit tests on the GPU; steps against the CPU, with times; the tests under
#                                         compute-sanitizer; without a word the first two
set -eu
cd "$(dirname "$0")/.."
. scripts/build.sh
folder=${1:-build/device}
programs="lapse test_cuda_ops test_cuda_step test_cuda_tiles device_steps op_speed"

build_configure build -DLAPSE_CUDA=ON
build_quietly build
mkdir -p "$folder/lib"
for program in $programs; do
    cp "build/$program" "$folder/"
done
cp build/liblapse_cuda.so "$folder/"
# The libraries it was linked with, but for those of the C library, which belong to the system.
# shellcheck disable=SC2086 # a list of words
(cd build && ldd $programs) | grep -oE '/[^ ]+\.so[^ ]*' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|pthread|rt))\.so' | while read -r library; do
    cp -L "$library" "$folder/lib/"
done
(cd "$folder" && strip --strip-debug $programs liblapse_cuda.so lib/*)

cat >"$folder/run.sh" <<'END'
#!/bin/bash
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH=$PWD/lib:${LD_LIBRARY_PATH:-} LAPSE_CUDA_PLUGIN=$PWD/liblapse_cuda.so LAPSE_TEST_DEVICE=cuda
status=0
case ${1:-all} in
all | tests)
    ./test_cuda_ops || status=1
    ./test_cuda_tiles || status=1
    ./test_cuda_step || status=1
    ;;&
all | steps)
    ./device_steps || status=1
    ./op_speed tf32 || status=1
    ;;
sanitize)
    compute-sanitizer --tool memcheck ./test_cuda_step || status=1
    compute-sanitizer --tool racecheck ./test_cuda_step || status=1
    ;;
esac
exit $status
END
chmod +x "$folder/run.sh"
du -sh "$folder" | cut -f 1
