"""Defines the TLS keys of software in a topology file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ...language.beside import named_file
from ...language.scalars import Base

Pem = Annotated[Any, named_file("certificates/ca.pem")]


class Tls(Base):
    """Certificates in PEM; without files, those of an authority that the lab derives from its seed."""

    ca: Pem = Field(
        None, description="File with the trusted certificates, beside this one; by default the lab's."
    )
    cert: Pem = Field(
        None, description="File with the program's certificate, and those between it and the root."
    )
    key: Pem = Field(None, description="File with the private key of `cert`.")


class BrokerTls(Tls):
    """TLS of a broker, whose port then accepts nothing else."""

    mutual: bool = Field(False, description="Admit only clients with a certificate that `ca` has signed.")


class ClientTls(Tls):
    """TLS of a client."""

    mutual: bool = Field(False, description="Present a certificate of the lab's authority, without `cert`.")
    server_name: str | None = Field(
        None,
        min_length=1,
        description="Name in the broker's certificate, sent as SNI too; by default the broker's node.",
    )
    versions: list[Literal["1.2", "1.3"]] = Field(
        default_factory=lambda: list[Literal["1.2", "1.3"]](["1.2", "1.3"]),
        min_length=1,
        description="Versions of TLS that the client offers.",
    )


def _lab(value: Any) -> Any:
    return {} if value == "lab" else value


BrokerTlsKey = Annotated[
    BrokerTls | None,
    BeforeValidator(_lab, json_schema_input_type=BrokerTls | Literal["lab"] | None),
    Field(description="Speak TLS: `lab` for certificates of the lab, or files of your own."),
]
ProgramTlsKey = Annotated[
    Tls | None,
    BeforeValidator(_lab, json_schema_input_type=Tls | Literal["lab"] | None),
    Field(
        description="Files NAME/ca.pem, NAME/server.pem and NAME/server.key for a server: `lab` for "
        "certificates of the lab, or files of your own."
    ),
]
ClientTlsKey = Annotated[
    ClientTls | None,
    BeforeValidator(_lab, json_schema_input_type=ClientTls | Literal["lab"] | None),
    Field(description="Speak TLS: `lab` for certificates of the lab, or files of your own."),
]
