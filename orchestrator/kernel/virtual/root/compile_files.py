"""Compiles Python files for a closed root: standard input is [[source, target, shown path], ...] as JSON.

The interpreter that will load the files runs this as `python -S -s -B compile_files.py`; standard library
only. Each file is compiled in a newly forked process, because what a process compiled before changes its
bytecode (reference counts decide marshal's FLAG_REF).
"""

import json
import os
import py_compile
import sys
from pathlib import Path


def compile_one(source: str, target: str, shown: str) -> None:
    """Compiles `source` into the bytecode file `target`, with `shown` as the path in tracebacks, and
    without a check of the source's time, which an archive does not keep. Raises PyCompileError.
    """
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
            ):  # a template, or a file of Python 2; a program that imports it gets the same error
                os._exit(0)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"{source}: was not compiled")


main()
