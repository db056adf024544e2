"""Replaces Mininet's modules by those of the recorder, runs the script, and prints the networks that it
built.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

from . import (
    cli,
    functions,
    interfaces,
    net,
    nodes,
    outside,
    said,
    stubs,
    switches,
    topologies,
    unknown,
    waiting,
)
from .machine import keep_away, refused

KNOWN: dict[str, Any] = {
    **functions.FUNCTIONS,
    "Mininet": net.Net, "MininetWithControlNet": net.Net, "Topo": topologies.Topo,
    "SingleSwitchTopo": topologies.SingleSwitchTopo, "MinimalTopo": topologies.SingleSwitchTopo,
    "SingleSwitchReversedTopo": topologies.SingleSwitchReversedTopo, "LinearTopo": topologies.LinearTopo,
    "TreeTopo": topologies.TreeTopo, "TorusTopo": topologies.TorusTopo,
    "TreeNet": lambda depth=1, fanout=2, **keys: net.Net(topo=topologies.TreeTopo(depth, fanout), **keys),
    "Node": nodes.Node, "Host": nodes.Node, "CPULimitedHost": nodes.CPULimitedHost, "Switch": switches.Switch,
    "OVSSwitch": switches.Stp, "OVSKernelSwitch": switches.Stp, "OVSBatch": switches.Stp,
    "LinuxBridge": switches.LinuxBridge, "OVSBridge": switches.Bridge,
    "UserSwitch": switches.UserSwitch, "IVSSwitch": switches.UserSwitch, "CLI": cli.CLI,
    "Intf": interfaces.Intf, "TCIntf": interfaces.TCIntf, "Link": interfaces.PlainLink,
    "TCLink": interfaces.TCLink,
    "TCULink": interfaces.TCLink, "OVSLink": interfaces.PlainLink, "OVSIntf": interfaces.Intf,
}  # fmt: skip


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook that provides a module of the recorder for every name `mininet` and below."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname.partition(".")[0] != "mininet":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: types.ModuleType) -> None:
        def known(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if name == "quietRun":
                return lambda *words, **keys: refused(*words, **{**keys, "text": True}).stdout
            return KNOWN.get(name) or stubs.Loose(name, (stubs.Stub,), {})

        module.__getattr__ = known  # type: ignore[method-assign]
        # names that `from mininet.node import *` gives
        module.__dict__["__all__"] = [*KNOWN, *stubs.SILENT, *stubs.NAMED, "quietRun"]


def main(file: str, stop_at_start: bool, arguments: list[str]) -> None:
    """Runs the script and prints one JSON object: its networks with nodes, the reports on parts that are left
    out or changed, and the failure (null if it ended well). Output of the script goes to standard error.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    said.SCRIPT[0], net.STOP_AT_START[0] = file, stop_at_start
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).parent))
    sys.meta_path.insert(0, Finder())
    keep_away()
    outside.watch()
    waiting.keep_time()
    unknown.watch_patterns()
    if "asyncio" in Path(file).read_text("utf-8", "replace"):
        waiting.keep_asyncio()
    error, scope = _run(file)
    outside.unseeded(file)
    waiting.ended(error is not None)
    topos = scope.get("topos")
    if not net.NETS and isinstance(topos, dict) and topos and error is None:
        error = _custom(file, topos)
    nets = [one.recorded() for one in net.NETS if one.nameToNode]
    json.dump({"nets": nets, "left": said.LEFT, "changed": said.CHANGED, "error": error}, out)
    out.flush()
    os._exit(0)  # a thread of the script may run for ever


def _run(file: str) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Runs the script; returns its failure (None if it ended well or was stopped at the network's start) and
    its global names (empty unless it ran to its end).
    """
    try:
        return None, runpy.run_path(file, run_name="__main__")
    except net.BuiltError:
        return None, {}
    except SystemExit as end:
        failed = end.code not in (None, 0, False)
        return (_failure(file, end, f"ended with sys.exit({end.code!r})") if failed else None), {}
    except BaseException as failure:  # the script may raise anything, even KeyboardInterrupt
        return _failure(file, failure, f"{type(failure).__name__}: {failure}"), {}


def _custom(file: str, topos: dict[str, Any]) -> dict[str, Any] | None:
    """Builds the first topology of `topos`, which the script defines for `mn --custom`, and reports the
    others; returns a failure, or None.
    """
    name = next(iter(topos))
    if len(topos) > 1:
        said.leave(f"topologies {', '.join(sorted(map(str, topos)))}: the first, {name}, is taken")
    try:
        made = net.Net(topo=topos[name](), build=False)
        made.__dict__["custom"] = True
        made.build()
    except BaseException as failure:
        return _failure(file, failure, f"{type(failure).__name__}: {failure}")
    return None


def _failure(file: str, failure: BaseException, text: str) -> dict[str, Any]:
    """Returns the failure for an exception: the innermost line of the script in it (0: none), the text up to
    300 characters, and whether the script is Python 2.
    """
    trace, line = failure.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(failure, SyntaxError) and failure.filename == file:
        line = failure.lineno or 0
    return {"line": line, "text": said.stable(" ".join(text.split()))[:300], "python2": _of_python_2(failure)}


def _of_python_2(failure: BaseException) -> bool:
    text = str(failure)
    if isinstance(failure, SyntaxError):
        return any(
            one in text
            for one in (
                "Missing parentheses in call to", "multiple exception types must be parenthesized",
                "leading zeros in decimal", "inconsistent use of tabs", "invalid hexadecimal",
            )
        )  # fmt: skip
    if isinstance(failure, NameError):
        return any(
            f"'{one}'" in text
            for one in (
                "xrange",
                "raw_input",
                "unicode",
                "long",
                "unichr",
                "basestring",
                "reduce",
                "file",
                "execfile",
            )
        )
    old = (
        "Queue",
        "ConfigParser",
        "urllib2",
        "StringIO",
        "commands",
        "Tkinter",
        "httplib",
        "thread",
        "cPickle",
        "urlparse",
    )
    if isinstance(failure, ModuleNotFoundError):
        return failure.name in old
    return isinstance(failure, AttributeError) and any(
        f"'{one}'" in text for one in ("iteritems", "has_key", "itervalues")
    )
