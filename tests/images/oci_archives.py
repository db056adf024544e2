"""Makes archives of container images as docker save and skopeo write them, member by member."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def entry(
    name: str, content: bytes = b"", *, mode: int = 0o644, **more: Any
) -> tuple[tarfile.TarInfo, bytes]:
    """Returns a member of a layer; further keys (`type`, `linkname`) are tarfile's."""
    about = tarfile.TarInfo(name)
    about.size, about.mode, about.mtime = len(content), mode, 1_000_000_000
    for key, value in more.items():
        setattr(about, key, value)
    return about, content


def directory(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, mode=mode, type=tarfile.DIRTYPE)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=kind, linkname=target)


def tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as file:
        for about, content in entries:
            file.addfile(about, io.BytesIO(content))
    return out.getvalue()


def oci(path: Path, *layers: bytes, config: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Writes an oci-archive with gzip layers; `changes` replace parts of the configuration."""
    told = {
        "os": "linux",
        "architecture": "amd64",
        "config": config or {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}" for layer in layers]},
    } | changes
    blobs = [json.dumps(told).encode(), *(gzip.compress(layer, mtime=0) for layer in layers)]
    described = [{"digest": f"sha256:{_sha256(blob)}", "size": len(blob)} for blob in blobs]
    manifest = json.dumps({"schemaVersion": 2, "config": described[0], "layers": described[1:]}).encode()
    index = {"schemaVersion": 2, "manifests": [{"digest": f"sha256:{_sha256(manifest)}"}]}
    members = {f"blobs/sha256/{_sha256(blob)}": blob for blob in (*blobs, manifest)}
    members |= {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    return written(path, members.items())


def docker(path: Path, *layers: bytes, config: dict[str, Any] | None = None) -> Path:
    """Writes a docker-archive of the older form, with uncompressed layers."""
    ids = [f"sha256:{_sha256(layer)}" for layer in layers]
    told = json.dumps({"config": config or {}, "rootfs": {"type": "layers", "diff_ids": ids}}).encode()
    names = [f"{_sha256(layer)[:12]}/layer.tar" for layer in layers]
    manifest = [{"Config": f"{_sha256(told)}.json", "RepoTags": ["app:1"], "Layers": names}]
    members = {f"{_sha256(told)}.json": told, "manifest.json": json.dumps(manifest).encode()}
    return written(path, [*members.items(), *zip(names, layers, strict=True)])


def written(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    path.write_bytes(tar(*(entry(name, content) for name, content in members)))
    return path


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sparse(directory: Path, name: str, size: int) -> bytes:
    """Returns a layer, made by GNU tar, with one file that is only a hole."""
    with (directory / name).open("wb") as file:
        file.truncate(size)
    argv = ["tar", "--sparse", "--format=gnu", "-C", str(directory), "-cf", "-", name]
    layer = subprocess.run(argv, check=True, capture_output=True).stdout
    (directory / name).unlink()
    return layer
