"""Tests that the kernel updates the carrier of an interface at once when the lab requests the interface's
state.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from lab_running import needs_light

from orchestrator.lab import carriers

pytestmark = [needs_light, pytest.mark.root]
PAIRS = 300  # the kernel's own link watch takes three seconds for these
SINCE = (6, 8)  # Linux version from which on a request processes the carrier


@pytest.fixture
def netns() -> Iterator[str]:
    name = f"carriers-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


def batch(netns: str, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    subprocess.run(["ip", "-n", netns, "-batch", "-"], input=text, text=True, check=True)


def test_those_that_are_down_or_absent_are_named(netns: str) -> None:
    batch(netns, ["link add near type veth peer name far", "link set near up"])
    assert carriers.not_passing({netns: ["near", "far", "nowhere"]}) == {netns: ["near", "far", "nowhere"]}
    batch(netns, ["link set far up"])
    assert carriers.not_passing({netns: ["nowhere"]}) == {netns: ["nowhere"]}


def test_hundreds_pass_frames_as_soon_as_they_are_asked_for(netns: str) -> None:
    if tuple(map(int, os.uname().release.split(".")[:2])) < SINCE:
        pytest.skip("this kernel's link watch does not hurry")
    names = [f"{end}{number}" for number in range(PAIRS) for end in "ab"]
    batch(netns, [f"link add a{number} type veth peer name b{number}" for number in range(PAIRS)])
    batch(netns, [f"link set {name} up" for name in names])
    assert carriers.not_passing({netns: names}) == {}
