"""Compiles Python files for a closed root: on standard input [[source, target, shown path], ...] as JSON.

Run by the interpreter that will load them, as `python -S -s -B compile_files.py`; standard library only. Each
file is compiled in a process that was just forked: bytecode tells objects apart by how often they are
referred to (marshal, FLAG_REF), and so by what was compiled before in the same process.
"""

import json
import os
import py_compile
import sys
from pathlib import Path


def compile_one(source: str, target: str, shown: str) -> None:
    """Without a check of the source's time, which an archive does not keep."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(source, f"{target}.{os.getpid()}", shown, doraise=True, invalidation_mode=mode)
    Path(f"{target}.{os.getpid()}").replace(target)


def main() -> None:
    for source, target, shown in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            try:
                compile_one(source, target, shown)
            except (
                py_compile.PyCompileError
            ):  # a template, or Python 2: whoever imports it gets the same error
                os._exit(0)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"{source}: was not compiled")


main()
