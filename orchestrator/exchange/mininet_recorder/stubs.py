"""Provides stubs for the parts of Mininet that do not describe the network, and reports most of their
uses.
"""

from __future__ import annotations

import functools
from typing import Any

from .said import SCRIPT, call_text, here, leave, pause
from .unknown import unknown

# Controllers whose switches learn addresses, as the bridges of a lab do; "Ellipsis": the default.
LEARNING = frozenset(["Ellipsis", "Controller", "OVSController", "DefaultController"])
# Functions of Mininet's modules that print, log or talk to the user, and do not change a network.
SILENT = frozenset(
    [
        "setLogLevel",
        "info",
        "debug",
        "output",
        "error",
        "warn",
        "warning",
        "lg",
        "MininetLogger",
        "dumpNodeConnections",
        "dumpNetConnections",
        "dumpNodes",
        "dumpPorts",
        "cleanup",
        "Cleanup",
        "ensureRoot",
        "fixLimits",
        "isShellBuiltin",
        "Controller",
        "OVSController",
        "RemoteController",
        "NOX",
        "Ryu",
        "NullController",
        "DefaultController",
        "makeTerm",
        "makeTerms",
        "cleanUpScreens",
        "runX11",
        "tunnelX11",
        "VERSION",
    ]
)


# Other names of Mininet's modules, whose use is reported; `from mininet.util import *` gives them.
NAMED = (
    "NAT", "run", "checkRun", "errRun", "errFail", "oldQuietRun", "which", "makeIntfPair", "moveIntf",
    "moveIntfNoRetry", "pmonitor", "sysctlTestAndSet", "rlimitTestAndSet", "mountCgroups", "waitListening",
    "sh", "killprocs", "findController", "isReadable", "MultiGraph",
)  # fmt: skip


class Loose(type):
    """Metaclass whose classes return a stub for every unknown attribute, since scripts also use them without
    an instance, as in `lg.setLogLevel()`.
    """

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{cls.__name__}.{name}", cls.__name__ in SILENT or name in SILENT)


class Stub(metaclass=Loose):
    """Replaces a name that does not describe the network: accepts any use. Unless it is silent, it reports
    when it is called, and when the script sets an attribute of it.
    """

    def __init__(self, *words: Any, **keys: Any) -> None:
        given = words[:2] if type(self) is Stub and len(words) == 2 and isinstance(words[0], str) else None
        name, silent = given or (type(self).__name__, type(self).__name__ in SILENT)
        self.__dict__.update(_name=name, _silent=silent)
        if given is None and not silent and type(self) is not Stub:
            leave(f"{call_text(str(name), words, keys)} is not done")

    def __call__(self, *words: Any, **keys: Any) -> Stub:
        if not self._silent:
            leave(f"{call_text(self._name, words, keys)} is not done")
        return Stub(f"{self._name}()", self._silent)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(
            f"{self.__dict__.get('_name', type(self).__name__)}.{name}", self.__dict__.get("_silent", False)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if not self.__dict__.get("_silent", True) and here():
            leave(f"{self._name}.{name} = {value!s:.40} is not done")
        self.__dict__[name] = value

    def __bool__(self) -> bool:
        if self._name.endswith("()") and here():
            leave(f"the script depends on {self._name}, which is not known here: one way of it counts")
        return True

    def __iter__(self) -> Any:
        return iter(())

    def __str__(self) -> str:
        return ""

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_error: Any) -> None:
        pass


class Recorded:
    """Base of recorded parts of the network. Unknown attributes are stubs, which report a call; an existing
    attribute outside KEPT that the script sets keeps its value, and the attempt is reported.
    """

    KEPT: frozenset[str] = frozenset()  # attributes that a script may set, without effect on the network

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self}.{name}", False)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and name not in self.KEPT and _from_script():
            leave(f"{self}.{name} = {value!s:.40} is not taken over")
            return
        self.__dict__[name] = value


def _from_script() -> bool:
    """Returns whether the caller's caller is code of the script: it sets an attribute itself."""
    import sys

    return sys._getframe(2).f_code.co_filename == SCRIPT[0]


def silent(name: str, answer: Any = None) -> Any:
    """Returns a method that reports each call as left out, has no other effect, and returns `answer`."""

    def call(self: Any, *words: Any, **keys: Any) -> Any:
        leave(f"{call_text(f'{self}.{name}', words, keys)} is not done")
        return answer

    return call


def tested(name: str, answer: Any = None) -> Any:
    """Returns a method like that of `silent` for a test of the network, during which time passes; its answer
    is not known.
    """
    left_out = silent(name)

    def call(self: Any, *words: Any, **keys: Any) -> Any:
        pause()
        left_out(self, *words, **keys)
        source = f"the result of {name}"
        parts = isinstance(answer, list)
        return unknown([unknown(one, source) for one in answer] if parts else answer, source)

    return call


def answered(name: str, answer: Any) -> Any:
    """Returns a method that only asks the network, and whose answer is not known: like `answer`."""

    def call(self: Any, *_words: Any, **_keys: Any) -> Any:
        return unknown(answer, f"{self}.{name}")

    return call


def quiet(answer: Any = None) -> Any:
    """Returns a method that has no effect, is not reported, and returns `answer`."""
    return lambda _self, *_words, **_keys: answer


def controller_name(given: Any) -> str:
    """Returns the name of a controller's class, which may be a partial, an instance or several of these."""
    while isinstance(given, functools.partial):
        given = given.func
    if isinstance(given, list | tuple):
        return ", ".join(dict.fromkeys(map(controller_name, given)))
    name = getattr(given, "__name__", None)
    return name if isinstance(name, str) else type(given).__name__.capitalize()
