"""Finds plug-ins: kinds that packages of others offer by Python entry points, beside vNET's own.

Each registry of kinds is a `Registry`: its own kinds are listed in the code, others come from the entry
points of its group. These are loaded only when a name is unknown, or when all kinds are listed, so that a
command without plug-ins does not pay for them. A plug-in that cannot be used becomes a `Refused` with its
origin and its error; the others work.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Group of entry points -> version of the interface between vNET and the plug-ins of this group. A module that
# an entry point names states the version that it was written for: `INTERFACE = 1`. A change that breaks
# plug-ins raises the number.
INTERFACES: Mapping[str, int] = {
    "vnet.software": 1,
    "vnet.queues": 1,
    "vnet.importers": 1,
    "vnet.papers": 1,
}


@dataclass(frozen=True, slots=True)
class Offer:
    """An entry point of an installed package."""

    group: str
    name: str
    target: str  # "module:attribute"
    package: str
    version: str
    place: str = ""  # directory of the package's metadata

    def __str__(self) -> str:
        return f"{self.package} {self.version} ({self.group}: {self.name} = {self.target})"


@dataclass(frozen=True, slots=True)
class Refused:
    """A plug-in that cannot be used, and why."""

    offer: Offer
    error: str

    def __str__(self) -> str:
        return f"plug-in {self.offer}: {self.error}"


class PluginError(Exception):
    """A plug-in cannot be used; the text is the rule that it breaks, and the remedy."""


def offers(group: str) -> tuple[Offer, ...]:
    """Returns the entry points of a group, by name; imports none of their modules."""
    from importlib import metadata  # slow, and labs pay for every import

    found = {
        Offer(group, one.name, one.value, one.dist.name, one.dist.version, str(one.dist.locate_file("")))
        for one in metadata.entry_points(group=group)
        if one.dist is not None
    }
    return tuple(sorted(found, key=lambda offer: (offer.name, offer.package, offer.version)))


def load(offer: Offer, kind: type[T]) -> T:
    """Imports what an entry point names; raises PluginError unless it is an instance of `kind`, in a module
    written for the present version of the interface.
    """
    module_name, _, attribute = offer.target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise PluginError(f"cannot be imported: {_described(error)}; repair or uninstall it") from error
    present, stated = INTERFACES[offer.group], getattr(module, "INTERFACE", None)
    if stated is None:
        raise PluginError(f"{module_name} states no INTERFACE; write `INTERFACE = {present}` in it")
    if stated != present:
        remedy = f"install a version of {offer.package} for {present}"
        raise PluginError(f"is written for INTERFACE {stated!r}, and this vNET has {present}; {remedy}")
    value = getattr(module, attribute, None)
    if not isinstance(value, kind):
        rule = f"{offer.target} is {type(value).__name__}" if hasattr(module, attribute) else "names nothing"
        raise PluginError(f"{rule}; make it a {kind.__module__}.{kind.__qualname__}")
    return value


def _described(error: BaseException) -> str:
    """Returns an exception with the file and line that raised it."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    at = frames[-1] if frames else None
    place = f" ({at.filename}:{at.lineno})" if at and "importlib" not in at.filename else ""
    return f"{type(error).__name__}: {error}{place}"


@dataclass(frozen=True)
class Strangers(Generic[T]):
    """The plug-ins of one group: those that can be used by name, each with its origin, and the others."""

    usable: Mapping[str, tuple[Offer, T]]
    refused: tuple[Refused, ...]


class Registry(Mapping[str, T]):
    """Maps names to kinds: vNET's own, and those of plug-ins once a name was unknown or `all` was called.

    `fault` returns the rule that a plug-in's kind breaks, with its remedy; "" if it breaks none.
    """

    def __init__(
        self, group: str, own: Mapping[str, T], kind: type[T], fault: Callable[[str, T], str] | None = None
    ) -> None:
        self.group, self.own, self._kind, self._fault = group, own, kind, fault

    @cached_property
    def strangers(self) -> Strangers[T]:
        """Loads the plug-ins of the group, once."""
        usable: dict[str, tuple[Offer, T]] = {}
        refused: list[Refused] = []
        found = offers(self.group)
        times = Counter(offer.name for offer in found)
        for offer in found:
            try:
                self._alone(offer, found, times[offer.name])
                usable[offer.name] = (offer, self._accepted(offer))
            except PluginError as error:
                refused.append(Refused(offer, str(error)))
        return Strangers(usable, tuple(refused))

    def _alone(self, offer: Offer, found: tuple[Offer, ...], times: int) -> None:
        if offer.name in self.own:
            raise PluginError(f"vNET has its own {offer.name!r}, which is used; rename the plug-in's")
        if times > 1:
            others = [str(one) for one in found if one.name == offer.name and one != offer]
            rule = f"{' and '.join(others)} has the same name, so that none is used"
            raise PluginError(f"{rule}; uninstall all but one")

    def _accepted(self, offer: Offer) -> T:
        kind = load(offer, self._kind)
        if self._fault is not None and (fault := self._fault(offer.name, kind)):
            raise PluginError(fault)
        return kind

    @property
    def loaded(self) -> Mapping[str, tuple[Offer, T]]:
        """Returns the plug-ins if `strangers` has loaded them, else an empty mapping; loads nothing."""
        strangers: Strangers[T] | None = self.__dict__.get("strangers")
        return strangers.usable if strangers is not None else {}

    def all(self) -> dict[str, T]:
        """Loads the plug-ins, and returns all kinds by name, vNET's own and those of plug-ins."""
        return {**self.own, **{name: kind for name, (_, kind) in self.strangers.usable.items()}}

    def __getitem__(self, name: str) -> T:
        return self.own[name] if name in self.own else self.strangers.usable[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter((*self.own, *self.loaded))

    def __len__(self) -> int:
        return len(self.own) + len(self.loaded)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.strangers.usable

    def directories(self) -> list[str]:
        """Returns the directories where the loaded plug-ins and their metadata are, for the search path of a
        Python that has no site-packages.
        """
        found: dict[str, None] = {}
        for offer, _ in self.loaded.values():
            top = sys.modules[offer.target.partition(":")[0].partition(".")[0]]
            file = Path(top.__file__ or "")
            found[str(file.parents[1] if hasattr(top, "__path__") else file.parent)] = None
            found[offer.place] = None
        return list(found)

    def origin(self, name: Any) -> Offer | None:
        """Returns the package that a kind comes from; None for vNET's own."""
        return self.loaded[name][0] if name in self.loaded else None
