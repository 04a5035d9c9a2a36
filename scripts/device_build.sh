#!/bin/bash
# device_build.sh: collects everything that a machine with a GPU needs to test and time the CUDA backend in one folder. That machine
# needs only a driver and the C library. Without cmocka here, only the tool (with `lapse bench`) and the plugin are built.
#
#   scripts/device_build.sh [FOLDER]      builds here, and fills FOLDER (default: build/device)
#   FOLDER/run.sh [tests|steps|sanitize]  there: the unit tests on the GPU; steps compared with the CPU, with times; the tests under
#                                         compute-sanitizer. Default: the first two
set -eu
cd "$(dirname "$0")/.."
. scripts/build.sh
folder=${1:-build/device}
programs="lapse"
tests="device_steps op_speed test_cuda_ops test_cuda_product test_cuda_tiles test_cuda_precision test_cuda_step test_cuda_sweep" # need cmocka

build_configure build -DLAPSE_CUDA=ON
targets=$(ninja -C build -t targets all | sed 's/:.*//')
for test in $tests; do
    if grep -qxF "$test" <<<"$targets"; then
        programs="$programs $test"
    else
        echo "left out: $test (cmocka is not installed)" >&2
    fi
done
# shellcheck disable=SC2086 # a list of words
build_quietly build $programs lapse_cuda
mkdir -p "$folder/lib"
for program in $programs; do
    cp "build/$program" "$folder/"
done
for test in $tests; do
    case " $programs " in *" $test "*) ;; *) rm -f "$folder/$test" ;; esac
done
cp build/liblapse_cuda.so "$folder/"
# The libraries it was linked with, except those of the C library, which belong to the system.
# shellcheck disable=SC2086 # a list of words
(cd build && ldd $programs) | grep -oE '/[^ ]+\.so[^ ]*' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|pthread|rt|resolv))\.so' | while read -r library; do
    cp -L "$library" "$folder/lib/"
done
# shellcheck disable=SC2086 # a list of words
(cd "$folder" && strip --strip-debug $programs liblapse_cuda.so lib/*)

cat >"$folder/run.sh" <<'END'
#!/bin/bash
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH=$PWD/lib:${LD_LIBRARY_PATH:-} LAPSE_CUDA_PLUGIN=$PWD/liblapse_cuda.so LAPSE_TEST_DEVICE=cuda
status=0
# run_test PROGRAM [ARGUMENT ...]: skips a program that was not built. $tool: a command to run it under.
tool=
run_test()
{
    if [ -x "./$1" ]; then
        $tool "./$@" || status=1
    else
        echo "skipped: $1 was not built" >&2
    fi
}
case ${1:-all} in
all | tests)
    run_test test_cuda_ops
    run_test test_cuda_product
    run_test test_cuda_tiles
    run_test test_cuda_precision
    run_test test_cuda_step
    ;;&
all | steps)
    run_test device_steps
    run_test op_speed tf32
    ;;
sanitize)
    tool="compute-sanitizer --tool memcheck" run_test test_cuda_step
    tool="compute-sanitizer --tool racecheck" run_test test_cuda_step
    ;;
esac
exit $status
END
chmod +x "$folder/run.sh"
du -sh "$folder" | cut -f 1
