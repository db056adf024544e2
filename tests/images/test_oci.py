"""Tests container images from archives: the content that is read and unpacked, and refusals that leave
nothing behind.
"""

import gzip
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import oci_archives as made
import pytest

from orchestrator.images import ImageError
from orchestrator.images.oci import bounded, layers, read, unpacked

CONFIG = {"Entrypoint": ["/app"], "Cmd": ["-v"], "Env": ["PATH=/bin", "A=b=c"], "WorkingDir": "/srv"}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


BASE = made.tar(
    made.directory("./"),
    made.directory("bin"),
    made.entry("bin/app", b"one", mode=0o755),
    made.link("bin/sh", "app"),
    made.link("bin/again", "bin/app", tarfile.LNKTYPE),
    made.directory("etc", 0o555),
    made.entry("etc/old", b"old"),
    made.directory("var/lib"),
    made.entry("var/lib/kept", b"below"),
    made.link("out", "/etc/passwd"),
)
NEXT = made.tar(
    made.entry("var/lib/new", b"new"),
    made.entry("var/lib/.wh..wh..opq"),
    made.entry("etc/.wh.old"),
    made.entry("bin/app", b"two", mode=0o700),
    made.entry("out", b"a file of the image's own"),
)


@pytest.mark.parametrize("form", [made.oci, made.docker], ids=["oci", "docker"])
def test_layers_lie_over_one_another(tmp_path: Path, env: dict[str, str], form: Callable[..., Path]) -> None:
    archive = read(form(tmp_path / "image.tar", BASE, NEXT, config=CONFIG))
    assert archive.settings.argv == ("/app", "-v")
    assert archive.settings.env == {"PATH": "/bin", "A": "b=c"} and archive.settings.workdir == "/srv"
    root = unpacked(archive, env)
    assert root.name == archive.digest and root.parent.stat().st_mode & 0o777 == 0o700
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    assert found == ["bin", "bin/again", "bin/app", "bin/sh", "etc", "out", "var", "var/lib", "var/lib/new"]
    assert (root / "bin/app").read_bytes() == b"two" and (root / "bin/again").read_bytes() == b"one"
    assert stat.S_IMODE((root / "bin/app").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "etc").stat().st_mode) == 0o555
    assert (root / "bin/sh").readlink() == Path("app")
    assert (root / "out").read_bytes() == b"a file of the image's own" and not (root / "out").is_symlink()
    assert (root / "bin/app").stat().st_mtime == 1_000_000_000
    assert unpacked(archive, env) == root
    assert sorted(p.name for p in root.parent.iterdir()) == [f".{archive.digest}.lock", archive.digest]


BIG = made.entry("big", b"x" * 3000)
REFUSED: dict[str, tuple[bytes, str]] = {
    "up": (made.tar(made.entry("../evil", b"x")), "leads out of the image"),
    "up within": (made.tar(made.entry("a/../../evil", b"x")), "leads out of the image"),
    "absolute": (made.tar(made.entry("/evil", b"x")), "leads out of the image"),
    "through a link": (
        made.tar(made.link("way", ".."), made.entry("way/evil", b"x")),
        "way: a path goes through a link or a file",
    ),
    "through an absolute link": (
        made.tar(made.link("way", "/tmp"), made.directory("way/evil")),
        "way: a path goes through a link or a file",
    ),
    "through a file": (
        made.tar(made.entry("way"), made.entry("way/evil")),
        "way: a path goes through a link or a file",
    ),
    "hard link up": (made.tar(made.link("a", "../../b", tarfile.LNKTYPE)), "leads out of the image"),
    "hard link to nothing": (
        made.tar(made.link("a", "b", tarfile.LNKTYPE)),
        "not there; build the image again",
    ),
    "hard link through a link": (
        made.tar(made.link("way", "/etc"), made.link("a", "way/passwd", tarfile.LNKTYPE)),
        "way: a path goes through a link or a file",
    ),
    "hard link to a directory": (
        made.tar(made.directory("b"), made.link("a", "b", tarfile.LNKTYPE)),
        "is a link to the directory b",
    ),
    "character device": (made.tar(made.entry("dev/mem", type=tarfile.CHRTYPE)), "is a device"),
    "block device": (made.tar(made.entry("dev/sda", type=tarfile.BLKTYPE)), "is a device"),
    "pipe": (made.tar(made.entry("pipe", type=tarfile.FIFOTYPE)), "is no file, directory or link"),
    "whiteout of what is above": (made.tar(made.entry("a/.wh...")), "hides what is above"),
    "whiteout through a link": (
        made.tar(made.link("way", "/tmp"), made.entry("way/.wh.x"), made.entry("way/y")),
        "way: a path goes through a link or a file",
    ),
    "too much": (made.tar(BIG, BIG, BIG), "the layers have more than"),
    "too many": (
        made.tar(*(made.directory(f"d{n}") for n in range(12))),
        "the layers have more than 9 files",
    ),
    "long header": (made.tar(made.entry("x" * 2500, b"")), "has a header of"),
    "no tar": (b"nonsense" * 100, "is no tar"),
    "cut off": (BASE[:1537], "is no tar"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_could_do_harm_is_refused_and_leaves_nothing(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    content, rule = REFUSED[what]
    monkeypatch.setattr(layers, "MOST_BYTES", 8 << 10 if what == "too much" else 1 << 20)
    monkeypatch.setattr(layers, "MOST_ENTRIES", 9)
    monkeypatch.setattr(bounded, "MOST_AT_ONCE", 2 << 10)
    archive = read(made.oci(tmp_path / "image.tar", made.tar(made.directory("a")), content))
    with pytest.raises(ImageError) as told:
        unpacked(archive, env)
    assert rule in str(told.value) and str(told.value).startswith(f"image oci:{tmp_path}/image.tar: layer ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "image.tar"]
    store = tmp_path / "cache" / "vnet" / "oci"
    assert [path.name for path in store.iterdir()] == [f".{archive.digest}.lock"]


def test_sparse_files_count_with_their_holes_over_all_layers(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MOST_BYTES", 1 << 20)
    holes = [made.sparse(tmp_path, f"hole{number}", 600 << 10) for number in range(2)]
    assert all(len(layer) < 32 << 10 for layer in holes)
    assert (
        unpacked(read(made.oci(tmp_path / "one.tar", holes[0])), env) / "hole0"
    ).stat().st_size == 600 << 10
    with pytest.raises(ImageError, match="its files have more than"):
        unpacked(read(made.oci(tmp_path / "two.tar", *holes)), env)


def test_a_symbolic_link_may_lead_anywhere_and_is_never_followed(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "mine").write_text("mine")
    over = made.tar(made.entry("way", b"theirs"), made.entry(".wh.gone"))
    below = made.tar(made.link("way", str(tmp_path / "mine")), made.link("gone", str(tmp_path)))
    root = unpacked(read(made.oci(tmp_path / "image.tar", below, over)), env)
    assert (tmp_path / "mine").read_text() == "mine"
    assert (root / "way").read_text() == "theirs" and [path.name for path in root.iterdir()] == ["way"]


def test_an_archive_that_is_compressed_itself_is_read(tmp_path: Path, env: dict[str, str]) -> None:
    packed = tmp_path / "image.tar.gz"
    packed.write_bytes(gzip.compress(made.docker(tmp_path / "image.tar", BASE, NEXT).read_bytes()))
    assert (unpacked(read(packed), env) / "bin/app").read_bytes() == b"two"


def test_an_archive_whose_own_header_is_a_bomb_is_refused(tmp_path: Path) -> None:
    """Shows that a file name of 32 MiB, packed into 32 KiB, is refused before tarfile reads it in
    one piece.
    """
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 32 << 20
    bomb = tmp_path / "bomb.tar.gz"
    bomb.write_bytes(gzip.compress(header.tobuf() + bytes(header.size + 1024)))
    with pytest.raises(ImageError, match=r"^image oci:.*bomb.tar.gz: has a header of \d+ bytes; "):
        read(bomb)


def test_a_layer_that_is_not_what_the_image_says_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    ids = {"type": "layers", "diff_ids": [f"sha256:{'0' * 64}"]}
    with pytest.raises(ImageError, match="the archive is damaged"):
        unpacked(read(made.oci(tmp_path / "image.tar", BASE, rootfs=ids)), env)


def _no_image(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    path = tmp_path / "image.tar"
    return {
        "absent": (tmp_path / "absent", "No such file"),
        "directory": (tmp_path, "Is a directory"),
        "text": (tmp_path / "text", "name an archive of docker save"),
        "other tar": (made.written(path, [("a", b"")]), "has neither oci-layout nor manifest.json"),
        "two": (made.written(tmp_path / "two", [("manifest.json", b"[{}, {}]")]), "does not name one image"),
        "no json": (
            made.written(tmp_path / "nj", [("oci-layout", b""), ("index.json", b"{")]),
            "is no JSON mapping",
        ),
        "no blob": (
            made.written(
                tmp_path / "nb",
                [("oci-layout", b""), ("index.json", b'{"manifests": [{"digest": "sha256:../../etc"}]}')],
            ),
            "is no digest by sha256",
        ),
        "arm": (made.oci(tmp_path / "arm", BASE, architecture="arm64"), "is for linux/arm64"),
        "odd env": (made.oci(tmp_path / "env", BASE, config={"Env": "A=b"}), "Env is not a list of texts"),
        "odd workdir": (made.oci(tmp_path / "wd", BASE, config={"WorkingDir": "srv"}), "WorkingDir or User"),
        "no layers": (made.oci(tmp_path / "nl", BASE, rootfs={}), "does not name the 1 layers"),
    }


NO_IMAGE = [
    "absent",
    "directory",
    "text",
    "other tar",
    "two",
    "no json",
    "no blob",
    "arm",
    "odd env",
    "odd workdir",
]


@pytest.mark.parametrize("what", [*NO_IMAGE, "no layers"])
def test_what_is_no_image_is_said(tmp_path: Path, what: str) -> None:
    (tmp_path / "text").write_text("text")
    path, rule = _no_image(tmp_path)[what]
    with pytest.raises(ImageError) as told:
        read(path)
    assert rule in str(told.value) and str(told.value).startswith(f"image oci:{path}: ")
