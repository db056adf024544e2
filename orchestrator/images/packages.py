"""Resolves and downloads Debian packages with apt and unpacks them into a directory, all without root.

Downloaded packages stay in a cache.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.images.cache import cache_dir
from orchestrator.images.errors import ImageError
from orchestrator.images.run import require, run

_URI = re.compile(r"'(?P<uri>[^']+)' (?P<file>\S+_\S+_\S+\.deb) (?P<size>\d+)")
UPDATE = "apt-get update as root, or look at /etc/apt/sources.list"


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    deb: str  # name of the package file, as apt prints it

    @property
    def pin(self) -> str:
        return f"{self.name}={self.version}"


def _apt(state: Path) -> list[str]:
    """Returns the start of an apt-get command that runs as the present user.

    It uses this machine's sources and lists, and `state` for downloads.
    """
    user = pwd.getpwuid(os.geteuid()).pw_name
    options = [f"APT::Sandbox::User={user}", f"Dir::Cache={state}", "APT::Install-Recommends=false"]
    return ["apt-get", "-q", *(word for option in options for word in ("-o", option))]


def _state() -> Path:
    state = cache_dir().parent / "apt"
    (state / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    return state


def resolve(wanted: Sequence[str], keep: Callable[[str], bool]) -> list[Package]:
    """Returns the wanted packages and those of their dependencies whose names `keep` accepts, sorted by name.

    The result includes packages that this machine has installed already. Errors: ImageError.
    """
    require({"apt-get": "apt", "dpkg-deb": "dpkg"})
    state = _state()
    nothing = state / "no-status"
    nothing.touch()
    argv = [*_apt(state), "-o", f"Dir::State::status={nothing}", "--print-uris", "-y", "install", *wanted]
    try:
        answer = run(argv, why=f"packages {' '.join(wanted)}")
    except ImageError as error:
        raise ImageError(f"{error.text}\n{UPDATE}") from None
    found = [_package(match["file"]) for match in _URI.finditer(answer)]
    return sorted((p for p in found if p.name in wanted or keep(p.name)), key=lambda p: p.name)


def _package(file: str) -> Package:
    name, version, _ = file.removesuffix(".deb").split("_")
    return Package(name, version.replace("%3a", ":"), file)


def fetch(packages: Iterable[Package]) -> dict[Package, Path]:
    """Returns the file of each package; downloads those that the cache does not hold. Errors: ImageError.

    apt compares downloads with its signed lists.
    """
    state = _state()
    kept = state / "debs"
    kept.mkdir(exist_ok=True)
    files = {package: kept / package.deb for package in packages}
    missing = [package.pin for package, file in files.items() if not file.exists()]
    if missing:
        fresh = state / f"fetch-{os.getpid()}"
        fresh.mkdir()
        try:
            run([*_apt(state), "download", *missing], why="packages cannot be fetched", cwd=fresh)
            for deb in fresh.iterdir():
                deb.rename(kept / deb.name)
        finally:
            for left in fresh.iterdir():
                left.unlink()
            fresh.rmdir()
    for package, file in files.items():
        if not file.exists():
            raise ImageError(f"{package.pin}: apt did not give {file.name}; {UPDATE}")
    return files


def unpack(debs: Iterable[Path], directory: Path) -> None:
    """Unpacks the files of all packages into one directory tree. Errors: ImageError."""
    for deb in debs:
        run(["dpkg-deb", "-x", deb, directory], why=f"{deb.name} cannot be unpacked")


def sources() -> tuple[str, str]:
    """Returns the first Debian suite and its mirror among apt's sources, such as ("trixie", "http://...").

    Suites of updates and security are skipped. Errors: ImageError if there is none.
    """
    for codename, site in _suites():
        if site.rstrip("/").endswith("/debian") and codename.isalpha():
            return codename, site
    raise ImageError("apt's sources name no Debian mirror (a URI that ends in /debian); add one to /etc/apt")


def one_line_sources() -> str:
    """Returns a sources.list with the suite that `sources` finds and the suites whose names begin with its
    name, such as its security suite, each only with `main`. Raises the errors of `sources`.
    """
    release, _ = sources()
    suites = [(codename, site) for codename, site in _suites() if codename.startswith(release)]
    return "".join(f"deb {site} {codename} main\n" for codename, site in suites)


def _suites() -> list[tuple[str, str]]:
    """Returns (codename, site) of each Debian archive among apt's sources, including those of security."""
    argv = ["apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)", "Created-By: Packages"]
    lines = dict.fromkeys(run(argv, why="apt's sources").splitlines())
    pairs = [(codename, site) for codename, _, site in (line.partition(" ") for line in lines)]
    return [(codename, site) for codename, site in pairs if re.search(r"/debian(-security)?/?$", site)]
