"""Reads archives of docker save, podman save or skopeo: the image's settings and layers, by digest."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from orchestrator.images.errors import ImageError
from orchestrator.images.oci.bounded import Bounded

MOST_JSON = 4 << 20  # longest manifest or configuration in bytes
MOST_LAYERS = 512
MOST_MEMBERS = 4_096  # largest number of members of the archive itself: settings and layers
MOST_BYTES = 16 << 30  # largest size in bytes of a compressed archive after decompression
# Errors that tarfile and the decompressors raise for a file that is not an archive.
BROKEN = (EOFError, tarfile.TarError, zlib.error, ValueError, OverflowError, RecursionError)
GZIP = b"\x1f\x8b"
NESTED = 3  # largest depth, because an index may lead to another index
PLATFORM = ("linux", "amd64")


@dataclass(frozen=True, slots=True)
class Settings:
    """The image's settings for the start of its program: command, environment, directory, user."""

    argv: tuple[str, ...]  # entrypoint and command; empty if the image names none
    env: dict[str, str]
    workdir: str  # working directory; "" if the image names none
    user: str  # "" stands for root
    entrypoint: tuple[str, ...] = ()  # the part of `argv` that a node's own command keeps


@dataclass(frozen=True, slots=True)
class Layer:
    name: str  # name of the member in the archive
    diff_id: str  # SHA-256 of the layer's tar, uncompressed


@dataclass(frozen=True, slots=True)
class Archive:
    """One image in an archive.

    `digest` is the SHA-256 of its configuration, which names all layers by digest.
    """

    path: Path
    digest: str
    settings: Settings
    layers: tuple[Layer, ...]


def read(path: Path) -> Archive:
    """Returns the only image of an archive (oci-archive or docker-archive), or of several in an OCI index the
    one for PLATFORM.

    Raises ImageError with the remedy if the file is not such an archive, is damaged, holds several images or
    one for another platform, or has settings that vNET cannot use. Does not check the layers' content.
    """
    with opened(path) as tar:
        config_name, layer_names = _oci(tar) if _has(tar, "oci-layout") else _docker(tar)
        content = _bytes(tar, config_name)
        digest = hashlib.sha256(content).hexdigest()
        named = config_name.rpartition("/")[2].removesuffix(".json")
        if len(named) == len(digest) and named != digest:
            raise ImageError(f"{config_name}: has SHA-256 {digest}; the archive is damaged, save it again")
        config = _mapping(config_name, content)
        _platform(config)
        rootfs = config.get("rootfs")
        ids = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
        if not isinstance(ids, list) or len(ids) != len(layer_names) or len(ids) > MOST_LAYERS:
            raise ImageError(
                f"{config_name}: rootfs.diff_ids does not name the {len(layer_names)} layers; save it again"
            )
        layers = tuple(Layer(name, _sha256(one)) for name, one in zip(layer_names, ids, strict=True))
        return Archive(path, digest, _settings(config_name, config.get("config")), layers)


@contextmanager
def opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Opens the archive as a tar, gzipped or not; turns every read error into an ImageError that names it."""
    try:
        with path.open("rb") as file, ExitStack() as stack:
            packed = file.read(2) == GZIP
            file.seek(0)
            source: Any = stack.enter_context(gzip.open(file)) if packed else file
            bounded = Bounded(source, MOST_BYTES if packed else None)
            tar = stack.enter_context(tarfile.open(fileobj=bounded, mode="r:"))  # type: ignore[call-overload]
            for number, _ in enumerate(tar):  # limits the number of entries, because tarfile keeps them all
                if number >= MOST_MEMBERS:
                    raise ImageError(f"holds more than {MOST_MEMBERS} files; it is no archive of one image")
            yield tar
    except ImageError as error:
        raise ImageError(f"image oci:{path}: {error}") from None
    except (OSError, *BROKEN) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ImageError(
            f"image oci:{path}: {why}; name an archive of docker save, podman save or skopeo copy"
        ) from None


def member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    """Opens a plain file of the archive, also through one symbolic link, as old docker-archives have; raises
    ImageError if there is none.
    """
    try:
        found = tar.getmember(name)
        if found.issym():
            folder = name.rpartition("/")[0]
            found = tar.getmember(_plain(f"{folder}/{found.linkname}"))
        file = tar.extractfile(found) if found.isreg() else None
    except KeyError:
        file = None
    if file is None:
        raise ImageError(f"{name}: is not in the archive; save it again")
    return file


def _plain(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _has(tar: tarfile.TarFile, name: str) -> bool:
    return name in tar.getnames()


def _oci(tar: tarfile.TarFile) -> tuple[str, list[str]]:
    """Returns the member names of the configuration and of the layers, by OCI's image layout."""
    name, depth = "index.json", 0
    while True:
        document = _json(tar, name)
        if "manifests" not in document:
            break
        depth += 1
        if depth > NESTED:
            raise ImageError(f"{name}: is an index of an index of an index; save one image")
        name = _blob(name, _one(name, document["manifests"]))
    layers = document.get("layers")
    if not isinstance(layers, list):
        raise ImageError(f"{name}: has no list of layers; save it again")
    return _blob(name, document.get("config")), [_blob(name, layer) for layer in layers]


def _one(name: str, manifests: Any) -> Any:
    """Returns the only manifest, or of several the only one for PLATFORM; raises ImageError if there is no
    such manifest, or more than one.
    """
    found = [one for one in manifests if isinstance(one, dict)] if isinstance(manifests, list) else []
    if len(found) > 1:
        platforms = [(one, one.get("platform") or {}) for one in found]
        found = [one for one, p in platforms if (p.get("os"), p.get("architecture")) == PLATFORM]
    if len(found) != 1:
        raise ImageError(f"{name}: holds {len(found)} images for {'/'.join(PLATFORM)}; save one alone")
    return found[0]


def _docker(tar: tarfile.TarFile) -> tuple[str, list[str]]:
    """Returns the member names of the configuration and of the layers, by docker save's older form."""
    name = "manifest.json"
    if not _has(tar, name):
        raise ImageError("has neither oci-layout nor manifest.json; name an archive of docker save or skopeo")
    content = _bytes(tar, name)
    try:
        images = json.loads(content)
    except ValueError:
        images = None
    if not isinstance(images, list) or len(images) != 1 or not isinstance(images[0], dict):
        raise ImageError(f"{name}: does not name one image; save one alone")
    config, layers = images[0].get("Config"), images[0].get("Layers")
    if (
        not isinstance(config, str)
        or not isinstance(layers, list)
        or not all(isinstance(n, str) for n in layers)
    ):
        raise ImageError(f"{name}: names no Config and Layers; save it again")
    return config, layers


def _blob(name: str, descriptor: Any) -> str:
    digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
    return f"blobs/sha256/{_sha256(digest, name)}"


def _sha256(digest: Any, where: str = "rootfs.diff_ids") -> str:
    text = digest if isinstance(digest, str) else ""
    algorithm, _, value = text.partition(":")
    if algorithm != "sha256" or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise ImageError(f"{where}: {text[:80]!r} is no digest by sha256; save it again")
    return value


def _json(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    return _mapping(name, _bytes(tar, name))


def _bytes(tar: tarfile.TarFile, name: str) -> bytes:
    content = member(tar, name).read(MOST_JSON + 1)
    if len(content) > MOST_JSON:
        raise ImageError(f"{name}: has more than {MOST_JSON >> 20} MiB; save it again")
    return content


def _mapping(name: str, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ImageError(f"{name}: is no JSON mapping; save it again")
    return found


def _platform(config: dict[str, Any]) -> None:
    found = (config.get("os", PLATFORM[0]), config.get("architecture", PLATFORM[1]))
    if found != PLATFORM:
        raise ImageError(
            f"is for {found[0]}/{found[1]}, not {'/'.join(PLATFORM)}; save the one for this machine"
        )


def _settings(name: str, config: Any) -> Settings:
    given = config if isinstance(config, dict) else {}
    env = {
        key: value for key, _, value in (text.partition("=") for text in _texts(name, given, "Env")) if key
    }
    workdir, user = given.get("WorkingDir") or "", given.get("User") or ""
    texts = isinstance(workdir, str) and isinstance(user, str) and "\0" not in workdir + user
    if not texts or (workdir and not workdir.startswith("/")):
        raise ImageError(f"{name}: WorkingDir or User is not a text that can be used; correct the image")
    entrypoint = tuple(_texts(name, given, "Entrypoint"))
    argv = (*entrypoint, *_texts(name, given, "Cmd"))
    return Settings(argv, env, workdir, user, entrypoint)


def _texts(name: str, given: dict[str, Any], key: str) -> list[str]:
    found = given.get(key) or []
    if not isinstance(found, list) or not all(isinstance(one, str) and "\0" not in one for one in found):
        raise ImageError(f"{name}: {key} is not a list of texts; correct the image")
    return found
