"""The command `lapse` of an installed package: the program beside the library."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Becomes the program."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lapse")
    os.execv(program, [program, *sys.argv[1:]])
