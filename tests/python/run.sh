#!/usr/bin/env bash
# run.sh: tests the Python package.
#
#   tests/python/run.sh PATH-OF-LAPSE
#
# In the full tier: builds the wheel, installs it into a fresh virtual environment with the libraries that it works with, and runs
# every test. In the quick tier, and where pip cannot install: the same tests with the shared library beside the tool and the NumPy
# and cffi that are there; tests that need more are skipped. The environment variable PYTHON names another Python.
set -u
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
    echo "usage: tests/python/run.sh PATH-OF-LAPSE" >&2
    exit 2
fi
tool=$(realpath "$1")
build=$(dirname "$tool")
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. scripts/python.sh

# The package from the source tree, for a Python that has NumPy and cffi.
from_tree()
{
    local python
    for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3 none; do
        "$python" -c 'import numpy, cffi' 2>/dev/null && break
    done
    if [ "$python" = none ] || [ ! -e "$build/liblapse.so" ]; then
        echo "skipped python: there is no Python with NumPy and cffi (Debian: python3-numpy, python3-cffi), or no shared library"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    cp -r python/lapse "$work/"
    cp "$build/liblapse.so" "$work/lapse/"
    "$python" python/make_interface.py cc "$work/lapse/_interface.py" include/lapse_lab.h include/lapse.h src/data/import/arrow_abi.h >"$work/log" 2>&1 &&
        "$python" python/make_options.py "$work/lapse/liblapse.so" "$work/lapse/_interface.py" "$work/lapse/_options.py" >>"$work/log" 2>&1 || {
        cat "$work/log"
        echo "0 passed, 1 failed"
        exit 1
    }
    PYTHONPATH=$work "$python" tests/python/test_package.py "$tool" "$@"
}

if [ "${LAPSE_TEST_TIER:-full}" = quick ]; then
    from_tree
    exit
fi
if ! python_venv "$work/venv" >"$work/log" 2>&1 ||
    ! "$work/venv/bin/pip" install -q numpy pandas polars pyarrow duckdb scikit-learn matplotlib scikit-build-core cffi mypy "pyright[nodejs]" pandas-stubs tqdm mlflow wandb nbconvert ipykernel >>"$work/log" 2>&1; then
    tail -n 5 "$work/log" | sed 's/^/   | /'
    echo "skipped python: pip cannot make an environment with pandas, Polars, PyArrow, DuckDB and scikit-learn"
    from_tree --skipped
    exit
fi
# The GPU plugin takes minutes to compile, and the tests do not use it.
if ! python_wheel "$work/venv/bin/pip" "$work/wheel" --config-settings=cmake.define.LAPSE_CUDA=OFF >"$work/log" 2>&1 ||
    ! "$work/venv/bin/pip" install -q "$work"/wheel/lapse-*.whl >>"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    echo "the wheel could not be built or installed"
    echo "0 passed, 1 failed"
    exit 1
fi
cd "$work" && "$work/venv/bin/python" "$OLDPWD/tests/python/test_package.py" "$tool" --all
