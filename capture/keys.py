"""Reads the keys of TLS connections that a run's programs have written (SSLKEYLOGFILE), for tshark."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capture.errors import CaptureError

FOLDER = "raw/logs"
LARGEST = 64 << 20  # largest size of a file in bytes
# A line has a label, the client's random number and the secret (draft-ietf-tls-keylogfile). With the label
# RSA, an encrypted secret stands in place of the random number.
_LINE = re.compile(r"[A-Z][A-Z0-9_]* [0-9A-Fa-f]{16,64} [0-9A-Fa-f]{2,512}")


def keys(run_dir: Path) -> list[str]:
    """Returns the lines of all files of keys of a run, in the order of their names, without comments; empty
    without such a file. CaptureError with file and line for a line that is not a key, and for a file that
    is not text, is too large, or is a link.
    """
    found = []
    for file in sorted((run_dir / FOLDER).glob("*.keys")):
        for number, line in enumerate(_text(file).splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if not _LINE.fullmatch(line.strip()):
                rule = 'is no key of TLS, "LABEL RANDOM SECRET" in hexadecimal digits'
                raise CaptureError(f"{file}:{number}: {line[:60]!r}: {rule}; remove the line or the file")
            found.append(line.strip())
    return found


def _text(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        raise CaptureError(f"{file}: is no regular file; remove it")
    if file.stat().st_size > LARGEST:
        raise CaptureError(f"{file}: has more than {LARGEST} bytes; remove it")
    try:
        return file.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        number = file.read_bytes()[: error.start].count(b"\n") + 1
        raise CaptureError(f"{file}:{number}: is no text in ASCII; remove the line or the file") from error


@contextmanager
def key_file(run_dir: Path) -> Iterator[Path | None]:
    """Yields a file with all keys of a run, which is removed at the end; None if the run has no keys. Raises
    the same errors as `keys`.
    """
    found = keys(run_dir)
    if not found:
        yield None
        return
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as made:
        made.write("\n".join(found) + "\n")
        made.flush()
        yield Path(made.name)
