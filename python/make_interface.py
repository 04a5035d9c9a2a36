"""Writes the Python module that describes the C interface, from the headers themselves.

    make_interface.py COMPILER OUTPUT HEADER...

The compiler preprocesses each header; only the lines of the header itself are kept, not those of the C library's. cffi
parses them and writes a module for its ABI mode, so that no struct is written twice and nothing is parsed at run time.
"""

import os
import re
import subprocess
import sys

import cffi


def declarations(compiler: str, header: str) -> str:
    """The preprocessed lines that come from the header itself."""
    run = subprocess.run([compiler, "-E", "-xc", header], capture_output=True, text=True, check=True)
    lines, inside = [], False
    for line in run.stdout.splitlines():
        mark = re.match(r'#\s*(?:line\s+)?\d+\s+"([^"]*)"', line)
        if mark:
            inside = os.path.realpath(mark.group(1)) == os.path.realpath(header)
        elif inside:
            lines.append(line)
    # cffi knows bool; the preprocessor has replaced it.
    return re.sub(r"\b_Bool\b", "bool", "\n".join(lines))


def main(compiler: str, output: str, *headers: str) -> None:
    ffi = cffi.FFI()
    ffi.set_source("lapse._interface", None)
    for header in reversed(headers):
        ffi.cdef(declarations(compiler, header))
    # Called by C from any thread; Python code is behind them.
    ffi.emit_python_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
