"""Defines the keys of an FTP server or client in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Base, Size, Span, text
from ..peers import Peer
from ..sending import Sending

SMALLEST_BYTES = 1
LARGEST_BYTES = 1 << 32
# Largest number of transfers of a flow, because a program gets the list of their times (docs/accounting.md).
LONGEST_SCHEDULE = 10_000


class Transfers(Sending):
    """Files of one size, each scheduled at a time; a late file waits for the files before it."""

    size: Size = Field(description="Size of each file.")


class FtpOptions(Peer):
    """Keys of a server (`listen`) or of a client (`to`) that downloads, uploads or both."""

    download: Transfers | None = Field(None, description="to: files that the client downloads.")
    upload: Transfers | None = Field(None, description="to: files that the client uploads.")
    login: Literal["once", "each"] = Field(
        "once", description="to: one session for all transfers, or one for each of them."
    )
    timeout: Span = Field(
        text("30 s"),
        description="to: silence after which the transfer and its session end.",
    )


class Ftp(Base):
    """The software key `ftp`: a server or a client."""

    ftp: FtpOptions = Field(description="The side.")
