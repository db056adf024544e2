"""Reads profiles, which are named impairments with the source of every figure, and replaces `profile:` in
topologies.

A profile is looked up as `profiles/NAME.yaml` beside the topology file, then in this package. Its `both`, or
its `forward` (from the link's first end, where the user of a radio or modem is) and `reverse`, hold
`QUANTITY: {value: ..., source: ...}`; `link` holds keys of the link itself (`duplex`) in the same form. Keys
that the topology writes beside `profile:`, or at the link, replace those of the profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from ...language.problem import Problem, TopologyError, closest, shown
from ...language.source import Document, Path, read_document

OWN = FilePath(__file__).parent
BESIDE = "profiles"  # name of the directory beside a topology file
SIDES = ("forward", "reverse")
_KEYS = {"title", "source", "about", "both", "link", *SIDES}
Values = dict[str, Any]


class ProfileError(Exception):
    """Raised for a profile that does not exist or whose file is invalid, with rule and remedy."""

    def __init__(self, rule: str, remedy: str) -> None:
        super().__init__(f"{rule}; {remedy}")
        self.rule, self.remedy = rule, remedy


@dataclass(frozen=True)
class Profile:
    """A profile's values in the notation of topology files, by direction; `sources` are by "direction
    quantity".
    """

    name: str
    title: str
    forward: Values
    reverse: Values
    link: Values
    sources: dict[str, str]


def names(directory: FilePath) -> list[str]:
    """Returns the names of all profiles that a topology in `directory` can use."""
    found = {file.stem for place in (OWN, directory / BESIDE) for file in place.glob("*.yaml")}
    return sorted(found)


def find(name: str, directory: FilePath) -> Profile:
    """Returns the profile of that name; ProfileError if there is none, or its file is invalid."""
    known = names(directory)
    if name not in known:
        beside = directory / BESIDE
        raise ProfileError("is no profile", f"{closest(name, known, what='profiles')} (your own: {beside}/)")
    own = directory / BESIDE / f"{name}.yaml"
    return _read(own if own.exists() else OWN / f"{name}.yaml")


@cache
def _read(file: FilePath) -> Profile:
    try:
        document = read_document(str(file), file.read_bytes())
        problems = list(_problems(document))
        if problems:
            raise TopologyError(problems)
    except TopologyError as error:
        first = error.problems[0]
        place = f"{first.file}:{first.line}: {first.path}"
        raise ProfileError(f"is a profile whose file is wrong: {place}: {first.rule}", first.remedy) from None
    except OSError as error:
        raise ProfileError(f"cannot be read ({error.strerror})", f"make {file} readable") from None
    data = document.data
    sides = {side: data.get(side, data.get("both", {})) for side in SIDES}
    sides["link"] = data.get("link", {})
    sources = {
        f"{side} {key}": one["source"] for side, values in sides.items() for key, one in values.items()
    }
    forward, reverse, link = (
        {key: one["value"] for key, one in sides[part].items()} for part in (*SIDES, "link")
    )
    return Profile(file.stem, data["title"], forward, reverse, link, sources)


def _problems(document: Document) -> Iterator[Problem]:
    data = document.data
    if not isinstance(data, dict):
        yield document.problem((), shown(data), "a profile is a mapping", "write title, source and both")
        return
    for key in data.keys() - _KEYS:
        yield document.problem((key,), "", "is not a key of a profile", closest(key, _KEYS, what="keys"))
    for key in ("title", "source"):
        if not isinstance(data.get(key), str) or not data[key].strip():
            yield document.problem((key,), "", "is missing", f"write `{key}:`, a line of text")
    if ("both" in data) == any(side in data for side in SIDES):
        yield document.problem((), "", "has not one impairment for each direction",
                               "write `both:`, or `forward:` and `reverse:`")  # fmt: skip
    for side in ("both", *SIDES, "link"):
        yield from _figures(document, side, data.get(side, {}))


def _figures(document: Document, side: str, values: Any) -> Iterator[Problem]:
    if not isinstance(values, dict):
        yield document.problem(
            (side,), shown(values), "must be a mapping", "write `QUANTITY: {value, source}`"
        )
        return
    for key, one in values.items():
        whole = isinstance(one, dict) and one.keys() == {"value", "source"}
        if not whole or not isinstance(one["source"], str) or not one["source"].strip():
            rule, remedy = "has not a value and its source", "write {value: 20 ms, source: where it stands}"
            yield document.problem((side, key), shown(one), rule, remedy)


def expand(data: Any, document: Document, problems: list[Problem]) -> Any:
    """Returns the file's data with every `profile:` of links, media and timeline replaced by its values;
    reports invalid ones.
    """
    directory = FilePath(document.file).parent
    if not isinstance(data, dict):
        return data
    changed = dict(data)
    if isinstance(links := data.get("links"), dict):
        changed["links"] = {
            name: _owner(one, ("links", name), directory, document, problems) for name, one in links.items()
        }
    if isinstance(segments := data.get("segments"), dict):
        changed["segments"] = {
            name: _medium(one, ("segments", name), directory, document, problems)
            for name, one in segments.items()
        }
    if isinstance(events := data.get("timeline"), list):
        changed["timeline"] = [
            _owner(one, ("timeline", n), directory, document, problems) for n, one in enumerate(events)
        ]
    return changed


def _owner(owner: Any, path: Path, directory: FilePath, document: Document, problems: list[Problem]) -> Any:
    """Expands the profiles of a link or an event; a link also gets the profile's keys of the link. A
    direction with an invalid profile is left out and reported.
    """
    if not isinstance(owner, dict):
        return owner
    found = dict(owner)
    for key in ("both", *SIDES):
        values = owner.get(key)
        if not isinstance(values, Mapping) or "profile" not in values:
            continue
        del found[key]
        try:
            profile = find(str(values["profile"]), directory)
        except ProfileError as error:
            at = (*path, key, "profile")
            problems.append(document.problem(at, shown(values["profile"]), error.rule, error.remedy))
            continue
        own = {name: value for name, value in values.items() if name != "profile"}
        for side in SIDES if key == "both" else (key,):
            if side != key and side in owner:
                at = (*path, side)
                rule = "conflicts with `both`"
                problems.append(document.problem(at, "", rule, "write forward and reverse, or both"))
                continue
            found[side] = _merged(profile, side, own)
        if path[0] == "links":
            found = {**profile.link, **found}
    return found


def _medium(
    segment: Any, path: Path, directory: FilePath, document: Document, problems: list[Problem]
) -> Any:
    """Expands the profile of a segment's medium, which must be the same in both directions; reports an
    invalid one and leaves it out.
    """
    values = segment.get("medium") if isinstance(segment, dict) else None
    if not isinstance(values, Mapping) or "profile" not in values:
        return segment
    found = {key: value for key, value in segment.items() if key != "medium"}
    here, name = (*path, "medium", "profile"), values["profile"]
    try:
        profile = find(str(name), directory)
    except ProfileError as error:
        problems.append(document.problem(here, shown(name), error.rule, error.remedy))
        return found
    if profile.forward != profile.reverse:
        rule = "gives each direction its own, and a medium has one for all"
        problems.append(document.problem(here, shown(name), rule, "write its figures"))
        return found
    own = {key: value for key, value in values.items() if key != "profile"}
    return {**profile.link, **found, "medium": _merged(profile, "forward", own)}


def _merged(profile: Profile, side: str, own: Values) -> Values:
    """Returns a profile's values, replaced by the topology's own values: each key of the topology replaces
    the profile's key, a loss model the whole loss model, and delays the whole delay model.
    """
    values = getattr(profile, side)
    models = {"loss", "loss_correlation", "gilbert_elliott"}
    delays = {"delays", "delay", "jitter", "distribution", "delay_correlation"}
    dropped: set[str] = set()
    if "gilbert_elliott" in own or "loss" in own:
        dropped |= models
    if "delays" in own:
        dropped |= delays
    elif own.keys() & delays:
        dropped |= {"delays"}
    kept = {key: value for key, value in values.items() if key not in dropped}
    return {**kept, **own, "profile": profile.name}
