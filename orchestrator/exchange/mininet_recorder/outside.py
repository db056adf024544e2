"""Reports what the script asks of the machine, which the sandbox answers: files, the environment, the clock,
chance, names and modules.
"""

from __future__ import annotations

import datetime
import importlib.abc
import os
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .said import LEFT, asked, here, leave, script_directory
from .waiting import SLEPT

_WRITTEN: set[str] = set()  # files that the script itself writes
_SILENT = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")
_WRITE = os.O_WRONLY | os.O_RDWR
# Events of Python's audit (sys.audit) that ask other machines, or for this one's name.
_SOCKETS = frozenset((
    "socket.connect", "socket.sendto", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.gethostname", "urllib.Request",
))  # fmt: skip


def _absolute(path: str) -> str:
    return os.path.normpath(Path(path).absolute())


def _elsewhere(path: Any) -> str:
    """Returns the absolute path if it is neither beside the script nor written by it; else ""."""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    text = _absolute(os.fsdecode(path))
    own = script_directory()
    beside = Path(text).is_relative_to(own) or own.is_relative_to(text)
    return "" if beside or text in _WRITTEN or text in _SILENT else text


def _told(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function like os.stat that reports a question for a file elsewhere, with the answer."""

    def ask(path: Any = ".", *words: Any, **keys: Any) -> Any:
        place = _elsewhere(path) if asked() else ""
        try:
            answer = call(path, *words, **keys)
        except OSError:
            if place:
                leave(f"the script asks for {place:.80}, which is not there in this import")
            raise
        if place:
            state = "not there" if answer is False else "there"
            leave(f"the script asks for {place:.80}, which is {state} in this import")
        return answer

    return ask


def _audit(event: str, words: tuple[Any, ...]) -> None:
    if event == "open" and words and isinstance(words[2], int):
        if words[2] & _WRITE:
            if isinstance(words[0], str) and here():
                _WRITTEN.add(_absolute(words[0]))
        elif asked() and (place := _elsewhere(words[0])):
            leave(f"the script reads {place:.80}, as it is in this import")
    elif event in _SOCKETS and asked():
        leave(f"{event} is answered without a network, in this import")


class _Environment(type(os.environ)):  # type: ignore[misc]
    """The environment, with reports of the variables that the script reads and has not set."""

    def __init__(self, own: Any) -> None:
        super().__init__(own._data, own.encodekey, own.decodekey, own.encodevalue, own.decodevalue)
        self.__dict__["given"] = set()

    def __getitem__(self, key: Any) -> Any:
        if key not in self.given and asked():
            state = "is set" if self.encodekey(key) in self._data else "is not set"
            leave(f"the script reads {key!s:.40} of the environment, which {state} in this import")
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.given.add(key)
        super().__setitem__(key, value)

    def __iter__(self) -> Any:
        if asked():
            leave("the script reads the whole environment, which is this import's")
        return super().__iter__()


class _Chance(random.Random):
    """A generator whose draws without a seed of the script are reported."""

    def __init__(self, x: Any = None) -> None:
        self.seeded = False
        super().__init__(x)
        self.seeded = x is not None

    def seed(self, a: Any = None, version: int = 2) -> None:
        self.seeded = a is not None
        super().seed(a, version)

    def setstate(self, state: Any) -> None:
        self.seeded = True
        super().setstate(state)

    def _drawn(self) -> None:
        if not self.seeded and asked():
            leave("the script draws by chance without a seed: it gives another network each time")

    def random(self) -> float:
        self._drawn()
        return super().random()

    def getrandbits(self, k: int) -> int:
        self._drawn()
        return super().getrandbits(k)


def _clock(call: Callable[..., Any], name: str, scale: int = 1) -> Callable[..., Any]:
    """Returns a clock that counts what the script sleeps, and reports its use."""

    def read() -> Any:
        if asked():
            leave(f"the script reads the clock ({name}), which is this import's")
        return call() + type(call())(SLEPT[0] * scale)

    return read


class _Moment(datetime.datetime):
    """datetime.datetime, with reports of a use of the clock."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        if asked():
            leave("the script reads the clock (datetime), which is this import's")
        return super().now(tz) + datetime.timedelta(seconds=SLEPT[0])

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)  # noqa: UP017

    @classmethod
    def today(cls) -> Any:
        return cls.now()


class _Day(datetime.date):
    """datetime.date, with reports of a use of the clock."""

    @classmethod
    def today(cls) -> Any:
        moment = _Moment.now()
        return cls(moment.year, moment.month, moment.day)


class _Input:
    """The standard input of the script: it is empty, which is reported."""

    encoding = "utf-8"

    def read(self, *_words: Any) -> str:
        leave("the script reads its standard input, which is empty in this import")
        return ""

    readline = read

    def readlines(self, *_words: Any) -> list[str]:
        return [line for line in (self.read(),) if line]

    def __iter__(self) -> Any:
        return iter(self.readlines())

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 0


class _Missing(importlib.abc.MetaPathFinder):
    """The last import hook: reports a module that the script looks for and that is not there."""

    def find_spec(self, fullname: str, _path: Any, _target: Any = None) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if Path(frame.f_code.co_filename).is_relative_to(script_directory()):
            leave(f"the module {fullname:.60} is not there in this import")


def _named(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def ask(*words: Any, **keys: Any) -> Any:
        if asked():
            leave(f"the script asks for {name}, which is this import's")
        return call(*words, **keys)

    return ask


def unseeded(file: str) -> None:
    """Reports draws of numpy, whose generators are not replaced, in a script that gives them no seed."""
    if "numpy" not in sys.modules:
        return
    text = Path(file).read_text("utf-8", "replace")
    drawn = re.search(r"\b(np|numpy)\.random\.|from numpy\.random import|from numpy import random", text)
    if drawn and not re.search(
        r"\bseed\(\s*\w|default_rng\(\s*\w|RandomState\(\s*\w|SeedSequence\(\s*\w", text
    ):
        line = text.count("\n", 0, drawn.start()) + 1
        LEFT.append(f"line {line}: numpy draws by chance without a seed: it gives another network each time")


def watch() -> None:
    """Replaces the functions that ask the machine by ones that report it, before the script runs."""
    for name in ("stat", "lstat", "access", "listdir", "scandir", "readlink"):
        setattr(os, name, _told(getattr(os, name)))
    for name in ("cpu_count", "uname", "getlogin", "getloadavg", "urandom", "getpid", "times"):
        setattr(os, name, _named(getattr(os, name), f"os.{name}"))
    time.clock_gettime = _named(time.clock_gettime, "time.clock_gettime")
    for name in ("strftime", "localtime", "gmtime", "ctime", "asctime"):
        setattr(time, name, _clocked(getattr(time, name), name))
    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, _clock(getattr(time, name), f"time.{name}"))
        setattr(time, f"{name}_ns", _clock(getattr(time, f"{name}_ns"), f"time.{name}_ns", 10**9))
    datetime.datetime, datetime.date = _Moment, _Day  # type: ignore[misc]
    os.environb = _Environment(os.environb)
    os.environ = _Environment(os.environ)  # noqa: B003 (its variables stay)
    chance = _Chance()
    for name in dir(random):
        if getattr(getattr(random, name), "__self__", None).__class__ is random.Random:
            setattr(random, name, getattr(chance, name))
    random.Random = random.SystemRandom = _Chance  # type: ignore[misc, assignment]
    sys.stdin = _Input()
    sys.meta_path.append(_Missing())
    sys.addaudithook(_audit)


def _clocked(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Returns a function of a moment that reports its use without one, which means now."""
    takes = 1 if name == "strftime" else 0

    def read(*words: Any) -> Any:
        if len(words) <= takes and asked():
            leave(f"the script reads the clock (time.{name}), which is this import's")
        return call(*words)

    return read
