# python.sh: virtual environments and wheels. Sourced by ./run and tests/python/run.sh.
# shellcheck shell=bash

# python_venv FOLDER: makes a virtual environment.
python_venv()
{
    "${PYTHON:-python3}" -m venv "$1"
}

# python_wheel PIP FOLDER [OPTION ...]: builds the wheel into FOLDER. PIP's environment has scikit-build-core and cffi. The build folder is kept, so
# that a second build is fast.
python_wheel()
{
    "$1" wheel . --disable-pip-version-check --no-deps --no-build-isolation -w "$2" --config-settings=build-dir=build-python "${@:3}"
}

# python_environment FOLDER: a virtual environment with the package and with pandas, and how to use it.
python_environment()
{
    [ -x "$1/bin/pip" ] || python_venv "$1"
    "$1/bin/pip" install -q --disable-pip-version-check scikit-build-core cffi numpy pandas pyarrow
    rm -rf build-python/wheel
    python_wheel "$1/bin/pip" build-python/wheel --config-settings=cmake.define.LAPSE_CUDA=AUTO >build-python.log 2>&1 || {
        tail -n 40 build-python.log
        return 1
    }
    rm -f build-python.log
    "$1/bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps build-python/wheel/lapse-*.whl
    echo "built    $(echo build-python/wheel/lapse-*.whl)"
    echo "use it   . $1/bin/activate && python -c 'import lapse; print(lapse.__version__)'"
    echo "read     docs/python.md, examples/notebook.ipynb"
}
